//! HotSpot with its JVMTI agent, or perf maps of its. Facts of OpenJDK 17 and 25.

use super::{
    Activity, CleanName, Ecosystem, Habit, Kind, Lapse, Producer, Runtime, Tier, Whose, recipe,
    switch,
};

pub(super) const HOTSPOT: Runtime = Runtime {
    producer: Producer::HotSpot,
    name: "HotSpot (Java, libperf-jvmti)",
    short_name: "Java",
    engine: "HotSpot",
    prefixes: &[b"I2C/C2I adapters", b"StubRoutines", b"MethodHandle"],
    is_name: |name| is_java_method(name) || signature(name).is_some(),
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
    own: Some("classes outside java., javax., jdk., sun., scala., kotlin., clojure."),
    recipes: recipe::HOTSPOT,
    switches: switch::HOTSPOT,
    stays_silent: Some(recipe::HOTSPOT_IS_SILENT),
    frames: Some(
        "java -XX:+PreserveFramePointer, or -agentpath:libperf-jvmti.so, whose dump has the code",
    ),
    agent: Some(", whose dump has the code"),
    activities: ACTIVITIES,
    programs: &["java"],
    libraries: &["libjvm", "libjli"],
    package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const ACTIVITIES: &[Activity] = &[
    Activity::new(
        0,
        "profiling itself",
        r"compiled_method_load|jvmti_|Jvmti(Export|Env|Code)|compiled_method_load_cb",
    ),
    Activity::new(
        1,
        "GC",
        r"^(G1|CMS|Parallel(Scavenge|Compact)|PS(?:Promotion|Scavenge|ParallelCompact|CardTable|Young|Old|
            Adj)|ParCompaction|ParMark|Shenandoah|Z(?:Mark|Relocate|Heap|Barrier|Driver|Page|Worker|Collector)|
            X(?:Mark|Relocate)|SerialHeap|GenCollected|DefNew|MarkSweep|Generation|CardTable|OopStorage|
            StringDedup|GCTask|Mark(?:Compact)|ReferenceProcessor|WeakProcessor|PreservedMarks|
            TenuredGeneration|BarrierSet|ConcurrentGCThread|ThreadLocalAllocBuffer::retire|VM_(?:G1|Gen|
            Parallel|Collect|GC)|Universe::heap|CollectedHeap::collect|Epsilon)|oop_oop_iterate|
            Closure::do_(oop|object|void)|OopOopIterate|::(gc_|evacuate|drain_queue|trim_queue)",
    ),
    Activity::new(
        1,
        "JIT compile",
        r"^(C2Compiler|Compile::|Compiler::|C1_|Compilation::|PhaseChaitin|Phase[A-Z]|Parse::|ParseGenerator|
            IdealLoop|IdealKit|GraphKit|GraphBuilder|Matcher|IRScope|IR::|LinearScan|LIR_|LIRGenerator|
            ci[A-Z]\w+::|Node::|\w+Node::|Type(Int\w*|Long|F|D|Tuple|Ary|Vect\w*|\w*Ptr|Narrow\w*|Func|
            Interfaces)?::|NodeHash|ConnectionGraph|IndexSet|PhaseIFG|LiveRange|OptoRuntime::generate|
            CompileBroker|CompileQueue|CompilationPolicy|OopFlow|InlineTree|CallGenerator|
            WarmCallInfo|ValueMap|Canonicalizer|SuperWord|Block(?:Begin|List)|nmethod::(?:new_nmethod|nmethod)|
            CodeBuffer|Assembler|MacroAssembler|Method(?:Liveness|Data)|JVMCI|BufferBlob|State::|RegMask|
            Instruction::|Dict::|Unique_Node_List|VectorSet|ScheduleDAG|DU_Chain)|_state::",
    ),
    Activity::new(
        1,
        "class loading",
        r"^(ClassFileParser|ClassLoader|SystemDictionary|Klass(?:Factory|Table)|InstanceKlass::(?:link|
            initialize|verify)|Verifier|ClassVerifier|StackMap|Rewriter|ConstantPool|LinkResolver|SymbolTable|
            Symbol::|ClassLoaderData|MetaspaceShared|FileMapInfo|constantPoolHandle|StackMapFrame|
            VerificationType|Dictionary::|PlaceholderTable|ModuleEntry|InterpreterRuntime::(?:resolve|ldc)|
            JVM_(?:FindClass|DefineClass|InitClass))",
    ),
    Activity::new(2, "deoptimisation", r"^(Deoptimiz|vframe|UnRoll)"),
    Activity::new(
        2,
        "locks",
        r"ObjectMonitor|ObjectSynchronizer|BasicLock|monitor(enter|exit)|^(Monitor|Mutex|PlatformMonitor|
            PlatformMutex|Parker|PlatformParker|PlatformEvent|os::Pd?Monitor)::|Unsafe_(Park|Unpark)",
    ),
    Activity::new(
        1,
        "waiting by spinning",
        r"^SpinPause|TaskTerminator|ParallelTaskTerminator|SpinYield",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(CollectedHeap|MemAllocator|ObjAllocator|ThreadLocalAllocBuffer|InstanceKlass::allocate|
            TypeArrayKlass::allocate|ObjArrayKlass::allocate|OptoRuntime::new|Runtime1::new|
            InterpreterRuntime::(_new|newarray|anewarray|multianewarray))|_new_(instance|array|slow)|^Metaspace",
    ),
    Activity::new(
        3,
        "interpreter",
        r"^Interpreter$|^Interpreter\b|^(InterpreterRuntime|BytecodeInterpreter|TemplateInterpreter|
            return\ entry\ points|invoke\ return|method\ entry\ point)",
    ),
];

/// What stands between a call and the method that it is of: the stubs of virtual calls, and those of calls whose target is being changed.
const JUMPS: [&[u8]; 2] = [b"vtable chunks", b"InlineCacheBuffer"];

/// Methods are named like `Lpkg/Class;method(Lsig;)V`, in HotSpot's own maps like `int pkg.Class.method(int)`; everything
/// else is runtime code.
fn habit(name: &[u8]) -> Habit {
    let by_agent = name.starts_with(b"L") && name.contains(&b';');
    if by_agent || signature(name).is_some() {
        Habit::Unknown
    } else if JUMPS.iter().any(|jumps| name.starts_with(jumps)) {
        Habit::Jumps
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

/// What follows the type of the result in `int pkg.Class.method(int)`, as HotSpot itself writes methods.
fn signature(name: &[u8]) -> Option<&[u8]> {
    let open = name.iter().position(|&b| b == b'(')?;
    let space = name[..open].iter().position(|&b| b == b' ')?;
    let method = &name[space + 1..open];
    let dot = method.iter().rposition(|&b| b == b'.')?;
    let is_method = (1..method.len() - 1).contains(&dot) && !method.contains(&b' ');
    let is_native = method.contains(&b':');
    (space > 0 && is_method && !is_native && name.ends_with(b")")).then(|| &name[space + 1..])
}

/// Without numbers and addresses of hidden classes, and without the result's type, which its agent does not write first either.
fn clean(name: &str) -> &str {
    let method = signature(name.as_bytes()).and_then(|method| std::str::from_utf8(method).ok());
    let name = method.unwrap_or(name);
    // `…$$Lambda$18.0x00007f…::run`, `…$$Lambda/0x…`, `…$$Lambda.0x…`: the rest is different in each run.
    match name.find("$$Lambda") {
        Some(at) => &name[..at + "$$Lambda".len()],
        None => name,
    }
}

/// Beginnings of domains, behind which a package's owner and its name follow.
const DOMAINS: [&str; 14] = [
    "com", "org", "net", "io", "edu", "dev", "de", "fr", "gov", "me", "ch", "nl", "uk", "co",
];

fn package(name: &str, _: &CleanName, kind: Kind) -> Whose {
    let class = class(name);
    match kind {
        Kind::Runtime => return Whose::Nobody,
        Kind::Std => {
            let library = LIBRARIES.iter().find(|(front, _)| is_in(class, front));
            return Whose::Std(library.map_or("java library", |(_, library)| library));
        }
        _ => {}
    }
    // Parts that begin with a capital are classes.
    let parts: Vec<&str> = class
        .split(['.', '/'])
        .take_while(|part| !part.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect();
    let parts = match parts.as_slice() {
        [] => {
            let outermost = class.split('$').next().unwrap_or(class);
            return Whose::Package(Ecosystem::Own, outermost.to_owned());
        }
        [first, ..] if DOMAINS.contains(first) => &parts[..parts.len().min(3)],
        parts => &parts[..1],
    };
    Whose::Package(Ecosystem::Java, parts.join("."))
}

/// The class of a method, with its package.
fn class(name: &str) -> &str {
    let own = signature(name.as_bytes()).and_then(|own| std::str::from_utf8(own).ok());
    let name = own.unwrap_or(name);
    let agent = name.strip_prefix('L').and_then(|name| name.split_once(';'));
    if let Some((class, _)) = agent {
        return class;
    }
    let name = name.split('(').next().unwrap_or(name);
    let name = name.rsplit(' ').next().unwrap_or(name);
    let method = name.rfind("::").or_else(|| name.rfind('.'));
    method.map_or(name, |at| &name[..at])
}

/// Libraries of the languages, by the front of their packages.
const LIBRARIES: [(&str, &str); 8] = [
    ("java.", "java library"),
    ("javax.", "java library"),
    ("jdk.", "java library"),
    ("sun.", "java library"),
    ("com.sun.", "java library"),
    ("scala.", "Scala library"),
    ("kotlin.", "Kotlin library"),
    ("clojure.", "Clojure library"),
];
/// Scala's compiler is a program.
const NO_LIBRARY: &str = "scala.tools.";

/// Whether a class lies in a package, however its file writes it: `java/util/HashMap`, `java.util.HashMap`.
fn is_in(class: &str, package: &str) -> bool {
    class.len() >= package.len()
        && (class.bytes().zip(package.bytes())).all(|(c, p)| c == p || c == b'/' && p == b'.')
}

fn kind(name: &str, _: &CleanName) -> Kind {
    let own = signature(name.as_bytes()).and_then(|own| std::str::from_utf8(own).ok());
    let name = own.unwrap_or(name);
    let is_stub = !name.contains('(')
        || ["I2C/C2I adapters", "Interpreter", "StubRoutines"]
            .iter()
            .any(|front| name.starts_with(front));
    // What a symbol of the file format looks like: `Ljava/util/HashMap;get(Ljava/lang/Object;)…`.
    let path = name
        .strip_prefix('L')
        .filter(|_| name.contains(';'))
        .unwrap_or(name);
    let is_library = LIBRARIES.iter().any(|(package, _)| is_in(path, package));
    if is_stub {
        Kind::Runtime
    } else if is_library && !is_in(path, NO_LIBRARY) {
        Kind::Std
    } else {
        Kind::Own
    }
}

#[cfg(test)]
mod tests {
    use super::{HOTSPOT, Producer};
    use crate::runtimes::{CleanName, Habit, Kind};

    #[test]
    fn methods_of_its_own_maps_are_methods() {
        let hot = Some(Producer::HotSpot);
        for (name, producer, habit, kind) in [
            ("int Hot.fib(int)", hot, Habit::Unknown, Kind::Own),
            ("LHot;fib(I)I", hot, Habit::Unknown, Kind::Own),
            (
                "java.lang.Object java.util.HashMap.get(java.lang.Object)",
                hot,
                Habit::Unknown,
                Kind::Std,
            ),
            (
                "void Hot$$Lambda.0x00007f1c50001000.run()",
                hot,
                Habit::Unknown,
                Kind::Own,
            ),
            (
                "Lscala/collection/immutable/HashMap;get(Ljava/lang/Object;)Lscala/Option;",
                hot,
                Habit::Unknown,
                Kind::Std,
            ),
            (
                "void scala.tools.nsc.Global.compile(scala.Option)",
                hot,
                Habit::Unknown,
                Kind::Own,
            ),
            ("Interpreter", None, Habit::Blob, Kind::Runtime),
            (
                "StubRoutines (initial stubs)",
                hot,
                Habit::Blob,
                Kind::Runtime,
            ),
            ("I2C/C2I adapters(0xbb)", hot, Habit::Blob, Kind::Runtime),
            ("void ns::f(int)", None, Habit::Blob, Kind::Own),
            ("Hot:fib (int)", None, Habit::Blob, Kind::Own),
        ] {
            let found = Producer::of_name(name.as_bytes());
            assert_eq!(found == Producer::HotSpot, producer.is_some(), "{name}");
            assert_eq!((HOTSPOT.habit)(name.as_bytes()), habit, "{name}");
            let found = (HOTSPOT.kind)(name, &CleanName::plain(name));
            assert_eq!(found, kind, "{name}");
        }
    }
}
