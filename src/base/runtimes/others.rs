//! Runtimes of which little is known but their names.

use super::{
    Activity, CleanName, Ecosystem, Habit, Kind, Lapse, Producer, Runtime, Tier, Whose, recipe,
    switch,
};

/// JavaScriptCore: Bun, WebKit.
pub(super) const JSC: Runtime = Runtime {
    producer: Producer::Jsc,
    name: "JavaScriptCore (Bun)",
    short_name: "JavaScriptCore",
    engine: "JavaScriptCore",
    prefixes: &[b"JSC-"],
    tags_all_names: true,
    lapses: &[Lapse::NoClose],
    recipes: recipe::JSC,
    switches: switch::JSC,
    clean: |name| {
        let function = compiled(name).filter(|(tier, _)| *tier != Tier::RegExp);
        CleanName::plain(function.map_or(name, |(_, name)| name).trim_end())
    },
    tier: |name| compiled(name).map_or(Tier::Unknown, |(tier, _)| tier),
    kind: |name, _| match compiled(name) {
        Some((Tier::RegExp, _)) => Kind::Runtime,
        Some(_) => Kind::Own,
        None if name.starts_with(FRONT) => Kind::Runtime,
        None => Kind::Own,
    },
    // Its names tell no file, and so no package.
    package: |_, _, kind| match kind {
        Kind::Own => Whose::Package(Ecosystem::Own, "JavaScript functions".to_owned()),
        _ => Whose::Nobody,
    },
    activities: JSC_ACTIVITIES,
    programs: &["bun", "jsc"],
    libraries: &["libJavaScriptCore", "libjavascriptcoregtk"],
    ..Runtime::UNKNOWN
};

/// What all names of JavaScriptCore begin with. Behind it stands what made the code: most of that are thunks and stubs.
const FRONT: &str = "JSC-";

/// The compiler of a function of JavaScriptCore, and the rest of its name: `fib#BbF6aX` of `JSC-FTL: fib#BbF6aX`.
fn compiled(name: &str) -> Option<(Tier, &str)> {
    const FRONTS: [(&str, Tier); 6] = [
        ("JSC-Baseline: ", Tier::Baseline),
        ("JSC-DFG: ", Tier::Middle),
        ("JSC-FTL: ", Tier::Optimised),
        ("JSC-YarrJIT: ", Tier::RegExp),
        ("JSC-WasmBBQ: ", Tier::Wasm),
        ("JSC-WasmOMG: ", Tier::Wasm),
    ];
    let mut fronts = FRONTS.into_iter();
    fronts.find_map(|(front, tier)| Some((tier, name.strip_prefix(front)?)))
}

/// What its own functions do, and its code.
const JSC_ACTIVITIES: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^JSC::(Heap::|MarkedBlock|SlotVisitor|MarkStack|IncrementalSweeper|Block(Directory|sDirectory)|
            ConservativeRoots|LocalAllocator::(?:sweep|doTestCollect)|JSSegmentedVariableObject::visit)|
            ::visitChildren|MarkingConstraint|runMutatorThread|[Gg]arbage[Cc]ollect",
    ),
    Activity::new(
        1,
        "JIT compile",
        r"^JSC::(DFG::|FTL::|B3::|Air::|JIT\b|JIT::|JITWorklist|JITThunks|JITPlan|BBQ|OMG|Wasm::|LinkBuffer|
            MacroAssembler|AssemblyHelpers|InlineCacheCompiler|CCallHelpers|PolymorphicAccess|LLInt::jitCompile|
            LinkBuffer)",
    ),
    Activity::new(
        1,
        "parsing",
        r"^JSC::(Parser|Lexer|BytecodeGenerator|UnlinkedCodeBlock|UnlinkedFunctionExecutable|CodeCache|parse|
            ScriptExecutable::(prepare|newCodeBlock)|ASTBuilder|SyntaxChecker|CodeBlock::finishCreation|
            BytecodeGeneratorification)",
    ),
    Activity::new(1, "regex", r"^JSC::(Yarr|RegExp)|regExpProto|^JSC-YarrJIT"),
    Activity::new(
        2,
        "inline caches",
        r"operation(Get|Put|Try|In|Has|Instance|Delete)\w*(Optimize|Generic|Megamorphic|GaveUp|ById|ByVal)|
            ^JSC::(repatch|PropertyInlineCache|StructureStubInfo|Structure::|PropertyTable|MegamorphicCache|
            JSObject::(get|put)\w+Slot)|llint_slow_path_(get|put|in)_|^JSC-InlineCache",
    ),
    Activity::new(
        2,
        "allocation",
        r"^JSC::(allocateCell|LocalAllocator|CompleteSubspace|JSObject::create|JSArray::create|operationNew|
            Butterfly)|operation(New|Create|Allocate)|^pas_|bmalloc",
    ),
    Activity::new(
        2,
        "strings",
        r"^(JSC::(JSString|JSRopeString|Identifier)|WTF::(String|AtomString|StringImpl))|operation(MakeRope|
            String|ToString)",
    ),
    Activity::new(
        2,
        "maps and sets",
        r"operation(Map|Set|WeakMap)|^JSC::(HashMapImpl|JSMap|JSSet|OrderedHash|JSOrderedHash|mapProto|
            setProto)",
    ),
    Activity::new(
        3,
        "interpreter",
        r"^(llint_|op_|JSC::LLInt|vmEntry|jsc_llint|\.?LLInt)",
    ),
    Activity::new(3, "baseline code", r"^(Baseline|\[Baseline\]|Baseline:\ )"),
    Activity::new(3, "optimised code", r"^(DFG|FTL)"),
    Activity::new(3, "runtime calls", r"^JSC::|operation[A-Z]"),
];

/// QEMU's translated code: all of it runs in the one frame that the code before it has built.
pub(super) const QEMU: Runtime = Runtime {
    producer: Producer::Qemu,
    name: "QEMU",
    short_name: "QEMU",
    engine: "QEMU",
    prefixes: &[b"guest-0x", b"tcg-prologue-buffer"],
    tells_part_of_sizes: true,
    lapses: &[Lapse::NoClose],
    habit: |_| Habit::Translated,
    recipes: recipe::QEMU,
    switches: switch::QEMU,
    ..Runtime::UNKNOWN
};

/// What YJIT writes before the name of a method.
const YJIT_NAME: &str = "[JIT] ";

/// Methods of Ruby's core that are written in Ruby (3.3 and 3.4) and call the program's blocks.
const YJIT_CORE: [&str; 7] = [
    "Integer#times",
    "Array#each",
    "Array#map",
    "Array#select",
    "Kernel#loop",
    "Kernel#tap",
    "Kernel#then",
];

/// Ruby's YJIT (3.3): a perf map with an entry for each block of a method, and frame pointers, if it is asked for both.
pub(super) const YJIT: Runtime = Runtime {
    producer: Producer::Yjit,
    name: "Ruby (YJIT)",
    short_name: "YJIT",
    engine: "Ruby",
    prefixes: &[YJIT_NAME.as_bytes()],
    tags_all_names: true,
    clean: |name| CleanName::plain(name.strip_prefix(YJIT_NAME).unwrap_or(name)),
    kind: |_, clean| {
        if YJIT_CORE.contains(&clean.name.as_str()) {
            Kind::Std
        } else {
            Kind::Own
        }
    },
    own: Some("Ruby methods"),
    recipes: recipe::YJIT,
    frames: Some("ruby --yjit --yjit-perf (=map alone leaves frame pointers out)"),
    activities: RUBY_ACTIVITIES,
    programs: &["ruby"],
    libraries: &["libruby"],
    package: ruby_package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const RUBY_ACTIVITIES: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^(gc_|rgengc|objspace_(each|reach|mark|free_)|heap_page_|lazy_sweep|rb_gc|mark_(const|method|m|tbl|
            hash|set|stack)|obj_free|major_gc|sweep_|garbage_collect)",
    ),
    Activity::new(
        1,
        "JIT compile",
        r"^(yjit|rb_yjit|zjit|rb_zjit|rjit|mjit|rb_mjit)",
    ),
    Activity::new(
        1,
        "parsing",
        r"^(yyparse|ruby_yyparse|parser_|rb_iseq_(compile|new|load)|iseq_|compile_|prism|pm_|rb_ast|yp_|ibf_|
            tokadd|nextc)",
    ),
    Activity::new(1, "regex", r"^(onig|rb_reg|match_at|reg_|forward_search)"),
    Activity::new(
        2,
        "allocation",
        r"^(newobj|rb_(newobj|ec_wb|wb_|class_new|obj_alloc|ary_new|str_new|hash_new)|ruby_x(malloc|free|
            calloc|realloc)|objspace_xmalloc|rvalue|ec_str|str_alloc|ary_alloc)",
    ),
    Activity::new(
        2,
        "inline caches",
        r"^(vm_(getivar|setivar|search_method|callable|cc_|ic_|lookup)|rb_(callable|vm_cc|id_table)|gccct|
            method_entry|cached_callable|rb_shape|shape_)",
    ),
    Activity::new(
        2,
        "hash tables",
        r"^(st_|ar_|rb_(st|hash)_|hash_|any_hash|rb_any_hash|tbl_)",
    ),
    Activity::new(
        2,
        "strings",
        r"^(rb_(str|enc|sym|interned)|str_|enc_|search_nonascii|coderange)",
    ),
    Activity::new(
        3,
        "interpreter",
        r"^(vm_|rb_vm_|invoke|rb_yield|rb_ec_|opt_|rb_(call|funcall|ary|int|fix|obj|class|iseq|each))",
    ),
];

fn ruby_package(_: &str, _: &CleanName, kind: Kind) -> Whose {
    if kind == Kind::Std {
        return Whose::Std("Ruby core");
    }
    Whose::Package(Ecosystem::Own, "Ruby methods".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_javascriptcore_are_one_in_all_tiers() {
        for (name, tier, clean) in [
            ("JSC-Baseline: fib#BbF6aX", Tier::Baseline, "fib#BbF6aX"),
            ("JSC-DFG: fib#BbF6aX", Tier::Middle, "fib#BbF6aX"),
            ("JSC-FTL: fib#BbF6aX", Tier::Optimised, "fib#BbF6aX"),
            ("JSC-Thunk: call", Tier::Unknown, "JSC-Thunk: call"),
            ("JSC-YarrJIT: /a+/g", Tier::RegExp, "JSC-YarrJIT: /a+/g"),
        ] {
            assert_eq!((JSC.tier)(name), tier, "{name}");
            let cleaned = (JSC.clean)(name);
            assert_eq!(cleaned.name, clean, "{name}");
            let is_own = !matches!(tier, Tier::Unknown | Tier::RegExp);
            let kind = if is_own { Kind::Own } else { Kind::Runtime };
            assert_eq!((JSC.kind)(name, &cleaned), kind, "{name}");
        }
    }
}
