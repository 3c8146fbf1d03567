//! V8: Node.js, Chromium, Deno. Facts of releases 11.3 to 15.0.
//!
//! Its names say what compiled a function and where in the sources it is. Functions share frames: bytecode handlers and many
//! builtins jump from piece to piece inside the interpreter's frame.

use super::library::is_standard;
use super::name_place::{Fileless, NamePlace, number};
use super::names::{self, ANONYMOUS, is_number, trailing_number};
use super::package::{is_package, of_module, of_script};
use super::{
    Activity, CleanName, Habit, Kind, Lapse, Producer, Runtime, Tier, Whose, recipe, switch,
};

/// What the names of functions that came out of scripts begin with, today and up to Node 16; the function's place is behind.
const SCRIPTS: [&str; 5] = ["JS:", "Script:", "Eval:", "LazyCompile:", "Function:"];

pub(super) const V8: Runtime = Runtime {
    producer: Producer::V8,
    name: "V8 (Node.js, Chromium, Deno)",
    short_name: "V8",
    engine: "V8",
    prefixes: &[
        b"JS:",
        b"Builtin:",
        b"BytecodeHandler:",
        b"RegExp:",
        b"Script:",
        b"Eval:",
        b"LazyCompile:",
        b"Function:",
    ],
    tags_all_names: true,
    header_padding: Some(0xDEAD_BEEF),
    lapses: &[
        Lapse::Padding,
        Lapse::WallClockHeader,
        Lapse::NoClose,
        Lapse::Repeats,
        Lapse::ShiftedLines,
        Lapse::BrokenFileNames,
        Lapse::EmptyUnwinding,
    ],
    habit,
    is_entered_by_return,
    built_in: Some("Builtins_"),
    // With `--interpreted-frames-native-stack` each function has a copy of its own. Optimised code that is given up inside a loop
    // goes on without one, and so do functions of the snapshot.
    nameless: &[
        "Builtin:InterpreterEntryTrampoline",
        "Builtins_InterpreterEntryTrampoline",
    ],
    has_source_maps: true,
    clean,
    place,
    fileless,
    mangled: |name| {
        let (word, _) = compiled_wasm(name)?;
        (word.starts_with("_Z") || word.starts_with("_R")).then_some(word)
    },
    kind,
    tier,
    is_script: |name| is_script(name.as_bytes()),
    own: Some("JS outside node: and node_modules"),
    recipes: recipe::V8,
    switches: switch::V8,
    gaps_in_dump: Some(
        "V8's dump leaves out its tables of jumps to wasm functions, which only lead to code that it has, and the copy of \
         its builtins under --use-largepages: node --no-short-builtin-calls makes none",
    ),
    activities: ACTIVITIES,
    programs: &["node", "nodejs", "deno", "d8"],
    libraries: &["libnode"],
    package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const ACTIVITIES: &[Activity] = &[
    Activity::new(
        0,
        "profiling itself",
        r"LinuxPerfJitLogger|PerfJitLogger|PerfBasicLogger|::V8FileLogger::|^v8::internal::(Log|Logger)::|
            LogFunctionEvent",
    ),
    Activity::new(
        1,
        "GC",
        r"^v8::internal::(Scaveng|Mark(Compact|ing)|ConcurrentMarking|IncrementalMarking|Sweeper|MinorGC|
            MinorMark|GCTracer|GlobalHandles::(Iterate|Process|PostGarbage)|Heap::(CollectGarbage|
            PerformGarbageCollection|Scavenge|MarkCompact|CollectAllGarbage|FinalizeIncrementalMarking)|
            ArrayBufferSweeper|Evacuat|PageEvacuation|MemoryAllocator::Unmapper|PointersUpdating|
            ClearStringTable|IterateAndScavenge|BodyDescriptor|Pretenuring|WeakObjects|UnifiedHeap)|^cppgc::|
            StackGuard::HandleGC",
    ),
    Activity::new(
        1,
        "JIT compile",
        r"^v8::internal::(compiler::|maglev::|turboshaft::|baseline::|wasm::(?:Wasm|Lift|Turbo|Compil|
            ModuleDecoder|AsyncCompile)|OptimizingCompileDispatcher|OptimizedCompilationJob|
            TurbofanCompilationJob|OptimizingCompile|Compiler::(CompileOptimized|FinalizeTurbofan|
            FinalizeOptimized|FinalizeMaglev|CompileSharedWithBaseline|CompileBaseline|InstallOptimized)|
            BaselineBatchCompiler|ConcurrentBaselineCompiler|TieringManager|Runtime_(CompileOptimized|
            CompileBaseline|CompileMaglev|HealOptimized))",
    ),
    Activity::new(
        1,
        "deoptimisation",
        r"^v8::internal::(Deoptimizer|TranslatedState|Runtime_NotifyDeoptimized)",
    ),
    Activity::new(
        1,
        "parsing",
        r"^v8::internal::(Parser|PreParser|ParserBase|Scanner|parsing::|ParseInfo|AstValueFactory|Rewriter|
            DeclarationScope|Scope::|BackgroundCompileTask|CodeSerializer|Compiler::(Compile\b|
            GetFunctionFromEval|GetSharedFunctionInfo|GetWrappedFunction)|UnoptimizedCompilation|
            interpreter::(Bytecode(Generator|Array|Register)|Interpreter(CompilationJob)|ConstantArray)|
            (anonymous\ namespace)::CompileToplevel|\(anonymous\ namespace\)::(CompileToplevel|
            FinalizeUnoptimized|ExecuteSingleUnoptimized|IterativelyExecute))|^v8::ScriptCompiler|
            Builtins?[_:]CompileLazy|Runtime_CompileLazy|^node::contextify::Compile",
    ),
    Activity::new(
        1,
        "regex",
        r"^v8::internal::(RegExp|Irregexp|NativeRegExp|regexp)|Runtime_RegExp|Builtins?[_:]RegExp|^RegExp:",
    ),
    Activity::new(
        1,
        "certificates",
        r"^node::crypto::(NewRootCertStore|UseExtraCaCerts|X509Certificate|SecureContext)|^(X509_STORE_load|
            PEM_read_bio_X509)",
    ),
    Activity::new(1, "JSON", r"^v8::internal::(Json|JSON)|Builtins?[_:]Json"),
    Activity::new(
        2,
        "inline caches",
        r"(Load|Store|KeyedLoad|KeyedStore|KeyedHas|LoadGlobal|StoreGlobal|DefineNamedOwn|DefineKeyedOwn|
            Clone\w+|StoreInArrayLiteral|LoadSuper)IC|^v8::internal::(IC|LoadIC|StoreIC|KeyedLoadIC|
            KeyedStoreIC|StubCache|AccessorAssembler|FeedbackNexus|LookupIterator|TransitionsAccessor|
            Map::(TransitionTo|Update|TryUpdate|Reconfigure|CopyAdd|CopyWith)|JSObject::(Migrate|AddDataElement|
            DefineOwn))|Runtime_\w*IC_\w+|Megamorphic|GrowFastElements|GetProperty\b",
    ),
    Activity::new(
        2,
        "strings",
        r"^v8::internal::(String|StringTable|ConsString|Factory::(NewConsString|InternalizeString|
            NewStringFrom|NewProperSubString)|Utf8)|Builtins?[_:](String|Sub|FastString)|Runtime_String",
    ),
    Activity::new(
        2,
        "maps and sets",
        r"OrderedHash|Builtins?[_:](Map|Set|WeakMap|WeakSet)(Prototype|Constructor|Iterator)|FindOrderedHash|
            ^v8::internal::(OrderedHash|NameDictionary|NumberDictionary|Dictionary|HashTable|BaseNameDictionary|
            EphemeronHashTable)",
    ),
    Activity::new(
        2,
        "allocation",
        r"Runtime_AllocateIn|^v8::internal::(Factory|HeapAllocator|Heap::Allocate|LocalHeap|PagedSpace|
            NewSpace|SemiSpace)|Builtins?[_:](AllocateIn|CreateObject|CreateShallow|CreateEmpty|FastNew|Grow|
            CopyFast|ExtractFast|CloneFast)",
    ),
    Activity::new(
        3,
        "interpreter",
        r"^BytecodeHandler:|^Builtins_\w*Handler$|InterpreterEntry|^JS:~",
    ),
    Activity::new(3, "baseline code", r"^JS:\^|Baseline"),
    Activity::new(3, "optimised code", r"^JS:[*+o]"),
    Activity::new(3, "calls and builtins", r"^Builtins?[_:]"),
    Activity::new(
        3,
        "runtime calls",
        r"^v8::internal::(Runtime_|Builtin_|\(anonymous\ namespace\)::(Invoke|HandleApiCall)|Isolate::|
            Execution::)|^v8::",
    ),
    Activity::new(
        2,
        "timers and event loop",
        r"^(uv__run_timers|uv__update_time)",
    ),
];

fn habit(name: &[u8]) -> Habit {
    if name.starts_with(b"JS:^") {
        Habit::Sparkplug
    } else if name.starts_with(b"BytecodeHandler:") || name.starts_with(b"Builtin:") {
        Habit::V8Pieces
    } else {
        Habit::FramePointers
    }
}

/// What optimised code that is given up goes on with.
fn is_entered_by_return(name: &[u8]) -> bool {
    const BUILTINS: [&[u8]; 5] = [
        b"Builtin:NotifyDeoptimized",
        b"Builtin:ContinueTo",
        b"Builtin:InterpreterEnterAt",
        b"Builtin:BaselineOrInterpreterEnterAt",
        b"Builtin:RestartFrameTrampoline",
    ];
    BUILTINS.iter().any(|front| name.starts_with(front))
}

/// Which of its compilers made a function.
fn tier(name: &str) -> Tier {
    let starts = |prefix: &str| name.starts_with(prefix);
    if let Some(builtin) = name.strip_prefix("Builtins_") {
        let interprets = builtin.ends_with("Handler") || builtin.contains("Interpreter");
        return if interprets {
            Tier::Interpreted
        } else {
            Tier::Builtin
        };
    }
    if is_wasm(name) {
        return Tier::Wasm;
    }
    match name.strip_prefix("JS:").and_then(marked) {
        Some(('~', _)) => Tier::Interpreted,
        Some(('^', _)) => Tier::Baseline,
        Some(('+', _)) => Tier::Middle,
        Some(('*', _)) => Tier::Optimised,
        _ if starts("BytecodeHandler:") => Tier::Interpreted,
        _ if starts("Builtin:") => Tier::Builtin,
        _ if starts("RegExp:") => Tier::RegExp,
        _ => Tier::Unknown,
    }
}

/// Functions of modules, as `wasm-function[3]` or `JS:name-3-turbofan`.
fn is_wasm(name: &str) -> bool {
    name.starts_with("wasm-function[") || compiled_wasm(name).is_some()
}

/// The name in `JS:name-3-turbofan`, and the same with the function's number in its module, which any other function in front of it
/// changes.
fn compiled_wasm(name: &str) -> Option<(&str, &str)> {
    let (numbered, compiler) = name.strip_prefix("JS:")?.rsplit_once('-')?;
    let (own, number) = numbered.rsplit_once('-')?;
    let is_it = is_number(number) && matches!(compiler, "turbofan" | "liftoff");
    is_it.then_some((own, numbered))
}

/// `JS:*name file:line:column` as `JS:name file:line:column`, and `JS:name-3-turbofan` as `JS:name-3`.
pub(super) fn without_tier(name: &str) -> Option<String> {
    let wasm = compiled_wasm(name).map(|(_, numbered)| numbered);
    let rest = match wasm {
        Some(numbered) => numbered,
        None => marked(name.strip_prefix("JS:")?)?.1,
    };
    Some(format!("JS:{rest}"))
}

/// What stands in front of a function's name to say which compiler made it.
const TIERS: [char; 4] = ['~', '^', '*', '+'];
/// In front of that, since V8 15: the function was replaced while it ran, in a loop.
const IN_LOOP: char = 'o';
/// Behind that, since Node 24: the code is for one context alone. It comes and goes from one compilation to the next.
const FOR_ONE_CONTEXT: char = '\'';

/// The mark of a tier, and the name behind all marks, if there are any.
fn marked(name: &str) -> Option<(char, &str)> {
    let in_loop = name.strip_prefix(IN_LOOP);
    let name = in_loop
        .filter(|rest| rest.starts_with(TIERS))
        .unwrap_or(name);
    let rest = name.strip_prefix(TIERS)?;
    let rest = rest.strip_prefix(FOR_ONE_CONTEXT).unwrap_or(rest);
    Some((name.chars().next()?, rest))
}

/// How many bytes of marks stand in front of a name.
fn marks(name: &[u8]) -> usize {
    let is_mark = |at: usize| {
        name.get(at)
            .is_some_and(|b| TIERS.contains(&char::from(*b)))
    };
    let in_loop = usize::from(name.first() == Some(&(IN_LOOP as u8)) && is_mark(1));
    if !is_mark(in_loop) {
        return 0;
    }
    let behind = in_loop + 1;
    behind + usize::from(name.get(behind) == Some(&(FOR_ONE_CONTEXT as u8)))
}

/// `JS:*name file:line:column` without its tier.
fn clean(name: &str) -> CleanName {
    if let Some(builtin) = name.strip_prefix("Builtins_") {
        return CleanName::plain(&format!("Builtin:{builtin}"));
    }
    if let Some((own, _)) = compiled_wasm(name) {
        return CleanName::plain(names::native(own));
    }
    let Some(rest) = SCRIPTS.iter().find_map(|p| name.strip_prefix(p)) else {
        return CleanName::plain(name);
    };
    let rest = marked(rest).map_or(rest, |(_, rest)| rest);
    let (rest, column) = trailing_number(rest);
    let (rest, line) = trailing_number(rest);
    // One number alone is the line.
    let (line, column) = if line == 0 {
        (column, 0)
    } else {
        (line, column)
    };
    let file_at = [
        "/",
        "node:",
        "file:",
        "ext:",
        "evalmachine.",
        "webpack:",
        "data:",
    ];
    let begins = |at: &usize| {
        let tail = &rest[at + 1..];
        file_at.iter().any(|s| tail.starts_with(s)) || begins_url(tail.as_bytes())
    };
    let at = memchr::memchr_iter(b' ', rest.as_bytes()).find(begins);
    let (function, file) = match at.or_else(|| rest.rfind(' ')) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, ""),
    };
    CleanName {
        name: if function.is_empty() {
            ANONYMOUS
        } else {
            function
        }
        .to_owned(),
        file: names::script_path(file).into_owned(),
        line,
        column,
    }
}

/// `webpack-internal:///./a b.js`: URLs may have blanks in them, too.
fn begins_url(text: &[u8]) -> bool {
    let is_of_scheme = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(*byte);
    let scheme = text.iter().take_while(is_of_scheme).count();
    scheme > 1 && text[scheme..].starts_with(b"://")
}

/// `/path/file.js:12:3` at the end of names.
fn place(name: &[u8]) -> Option<NamePlace> {
    is_script(name).then(|| place_at_end(name)).flatten()
}

/// `JS:*hot :8:13`: a function that `eval` or `new Function` made.
fn fileless(name: &[u8]) -> Option<Fileless> {
    let (rest, column) = number(name)?;
    let (rest, line) = number(rest)?;
    if !rest.ends_with(b" ") || !is_script(name) {
        return None;
    }
    let tier = memchr::memchr(b':', rest)? + 1;
    Some(Fileless {
        word: tier + marks(&rest[tier..]),
        file: rest.len(),
        line,
        column,
    })
}

fn is_script(name: &[u8]) -> bool {
    let begins = SCRIPTS
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()));
    begins && !std::str::from_utf8(name).is_ok_and(is_wasm)
}

fn place_at_end(name: &[u8]) -> Option<NamePlace> {
    let (rest, column) = number(name)?;
    let (path, line) = number(rest)?;
    // Functions are named before their file, by a word or none.
    let tier = memchr::memchr(b':', path)? + 1;
    let space = memchr::memchr(b' ', path.get(tier..)?)?;
    let first = tier + space + 1;
    // `get size /app/x.js`: paths may have blanks in them as well, so the first `/` or scheme counts.
    let begins = |at: &usize| {
        let tail = &path[*at..];
        let schemes: [&[u8]; 4] = [b"/", b"file:", b"node:", b"webpack:"];
        let is_file = || schemes.iter().any(|scheme| tail.starts_with(scheme)) || begins_url(tail);
        path[at - 1] == b' ' && is_file()
    };
    let start = (first..path.len()).find(begins).unwrap_or(first);
    let marks = marks(&path[tier..]);
    (start < path.len()).then_some(NamePlace {
        word: tier + marks..start - 1,
        file: start..path.len(),
        line,
        column,
        all: start..name.len(),
    })
}

fn package(name: &str, clean: &CleanName, kind: Kind) -> Whose {
    if is_script(name.as_bytes()) {
        return of_script(kind, &clean.file);
    }
    // The script that calls it may be interpreted, and then its own code is on no stack.
    if is_wasm(name) {
        return of_module(clean, kind, "WebAssembly");
    }
    Whose::Nobody
}

fn kind(name: &str, clean: &CleanName) -> Kind {
    let file = clean.file.as_str();
    if compiled_wasm(name).is_some() && is_standard(&clean.name) {
        Kind::Std
    } else if !SCRIPTS.iter().any(|prefix| name.starts_with(prefix)) {
        Kind::Runtime
    } else if file.starts_with("node:")
        || file.starts_with("ext:")
        || file.starts_with("internal/")
        || file.starts_with("native ")
    {
        Kind::Std
    } else if is_package(file) {
        Kind::Dependency
    } else if file.is_empty() && clean.line > 0 {
        // `(anonymous):7:32`: `eval` or `new Function` made it, for whoever called that, and no record tells a file.
        Kind::Other
    } else {
        Kind::Own
    }
}
