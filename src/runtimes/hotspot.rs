//! HotSpot with its JVMTI agent, or perf maps of its. Facts of OpenJDK 17.

use super::{CleanName, Habit, Kind, Lapse, Producer, Runtime, Tier};

pub(super) const HOTSPOT: Runtime = Runtime {
    producer: Producer::HotSpot,
    name: "HotSpot (Java, libperf-jvmti)",
    short_name: "Java",
    prefixes: &[b"I2C/C2I adapters", b"StubRoutines", b"MethodHandle"],
    is_name: is_java_method,
    library: Some("libjvm.so"),
    patches_calls: true,
    lapses: &[Lapse::ShortCode],
    habit,
    interpreter: Some(b"Interpreter"),
    tier: |name| match name {
        "Interpreter" => Tier::Interpreted,
        _ => Tier::Unknown,
    },
    clean: |name| CleanName::plain(clean(name)),
    kind,
    own: Some("classes outside java., javax., jdk., sun."),
    record: Some("java -agentpath:libperf-jvmti.so"),
    frames: Some(
        "java -XX:+PreserveFramePointer, or -agentpath:libperf-jvmti.so, whose dump has the code",
    ),
    ..Runtime::UNKNOWN
};

/// Methods are named like `Lpkg/Class;method(Lsig;)V`, everything else is runtime code.
fn habit(name: &[u8]) -> Habit {
    if name.starts_with(b"L") && name.contains(&b';') {
        Habit::Unknown
    } else {
        Habit::Blob
    }
}

/// `Lpkg/Class;method(Lsig;)V`, as libperf-jvmti writes methods.
fn is_java_method(name: &[u8]) -> bool {
    if name.first() != Some(&b'L') {
        return false;
    }
    let Some(semicolon) = name.iter().position(|&b| b == b';') else {
        return false;
    };
    let rest = &name[semicolon..];
    let open = rest.iter().position(|&b| b == b'(');
    let close = rest.iter().rposition(|&b| b == b')');
    // A descriptor of the result follows, which is never empty.
    open.zip(close)
        .is_some_and(|(open, close)| open < close && close + 1 < rest.len())
}

/// Without numbers and addresses of hidden classes.
fn clean(name: &str) -> &str {
    // `…$$Lambda$18.0x00007f…::run`, `…$$Lambda/0x…`, `…$$Lambda.0x…`: the rest is different in each run.
    match name.find("$$Lambda") {
        Some(at) => &name[..at + "$$Lambda".len()],
        None => name,
    }
}

fn kind(name: &str, _: &CleanName) -> Kind {
    const PACKAGES: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];
    let is_stub = !name.contains('(')
        || name.starts_with("I2C/C2I adapters")
        || name.starts_with("Interpreter");
    // What a symbol of the file format looks like: `Ljava/util/HashMap;get(Ljava/lang/Object;)…`.
    let path = name
        .strip_prefix('L')
        .filter(|_| name.contains(';'))
        .unwrap_or(name);
    let is_library = PACKAGES.iter().any(|package| {
        let folder = package.replace('.', "/");
        name.starts_with(package) || path.starts_with(&folder)
    });
    if is_stub {
        Kind::Runtime
    } else if is_library {
        Kind::Std
    } else {
        Kind::Own
    }
}
