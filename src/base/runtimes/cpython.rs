//! CPython's perf trampolines. Facts of releases 3.12 to 3.14.

use super::package::{is_package, pypi};
use super::{
    Activity, CleanName, Ecosystem, Habit, Kind, Lapse, Producer, Runtime, Whose, recipe, switch,
};

pub(super) const CPYTHON: Runtime = Runtime {
    producer: Producer::CPython,
    name: "CPython",
    short_name: "CPython",
    engine: "CPython",
    prefixes: &[b"py::"],
    is_whole: names_a_file,
    tags_all_names: true,
    loops: &["_PyEval_EvalFrameDefault"],
    lapses: &[
        Lapse::NoMachine,
        Lapse::Padding,
        Lapse::WallClockHeader,
        Lapse::NoClose,
    ],
    habit: |_| Habit::PyTrampoline,
    clean,
    kind,
    own: Some("Python outside its library and site-packages"),
    recipes: recipe::CPYTHON,
    switches: switch::CPYTHON,
    tells_since: Some(("python", (3, 12))),
    loses_dumps: Some(
        "PYTHONPERFSUPPORT=1 pjit record …: CPython then writes a map instead, at once; children that end by os._exit, as those \
         of multiprocessing do, lose their dumps",
    ),
    activities: ACTIVITIES,
    made: "interpreter",
    programs: &["python", "pypy"],
    libraries: &["libpython"],
    package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const ACTIVITIES: &[Activity] = &[
    Activity::new(
        0,
        "profiling itself",
        r"perf_(map|trampoline|jit)|_PyPerf|PyUnstable_PerfMap|perf_map_jit",
    ),
    Activity::new(
        1,
        "GC",
        r"^(gc_collect|_?PyGC_Collect|gc_(refs|main|sweep|mark|young|full)|update_refs|subtract_refs|
            visit_(decref|reachable|move)|move_unreachable|deduce_unreachable|delete_garbage|untrack_(tuples|
            dicts)|collect_generations|gcstate_|clear_weakrefs|finalize_garbage|_Py_RunGC|collect(?:_main|
            _with_callback)?$)",
    ),
    Activity::new(
        1,
        "parsing",
        r"^(_?PyParser|_PyPegen|_PyAST|PyAST|_PyCompile|_PySymtable|compiler_|codegen_|tok_|_PyTokenizer|
            symtable_|optimize_cfg|_PyAssemble|_PyCfg|r_object|PyMarshal_Read|w_object|\w+_rule$)",
    ),
    Activity::new(
        1,
        "importing",
        r"^(import_(find|name)|PyImport_Import|_imp_|_PyImport|dlopen|_dl_(open|map|relocate)|dl_open_worker|
            do_lookup_x|_dl_lookup_symbol|_PyImport_LoadDynamicModule)",
    ),
    Activity::new(
        1,
        "regex",
        r"^(sre_|_sre|pattern_|SRE\(|match_getslice|sre_ucs)|_sre_",
    ),
    Activity::new(
        1,
        "JSON",
        r"^(scan_once_|_parse_(object|array)|scanner_call|scanstring_|py_scanstring|encoder_|ascii_escape|
            py_encode_basestring|_match_number|speedups|parse_object|raise_errmsg)",
    ),
    Activity::new(
        2,
        "waiting for the GIL",
        r"^(take_gil|drop_gil|_PyEval_(?:Take|Drop)|PyEval_(?:Save|Restore|Acquire)Thread)|^(_?PyMutex_Lock|
            _PyParkingLot|_PySemaphore)",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(pymalloc_|_?PyObject_(Malloc|Free|Calloc|Realloc|GC_New|GC_Del|New)|_PyObject_(Malloc|Free|New|
            Alloc|GC_)|_?PyMem_|arena_map|new_arena|gc_alloc|_mi_|mi_|PyType_GenericAlloc|_PyType_AllocNoTrack|
            unicode_dealloc|subtype_dealloc|dict_dealloc|tuple_?dealloc|list_dealloc|_Py_Dealloc|float_dealloc|
            long_dealloc|\w+_dealloc$|address_in_range|insert_to_freepool|allocate_from_new_pool)",
    ),
    Activity::new(
        2,
        "attribute lookup",
        r"^(_PyType_Lookup|_?PyObject_(GetAttr|GenericGetAttr|LookupAttr|GetMethod|SetAttr|GenericSetAttr)|
            _PyObject_Generic|find_name_in_mro|type_getattro|slot_tp_getattr|module_getattro|_Py_type_getattro|
            descr_|method_get|PyObject_IsInstance|is_subtype|PyType_IsSubtype|_Py_Specialize|
            _PyObject_GetMethod|_PyDict_LoadGlobal)",
    ),
    Activity::new(
        2,
        "dictionaries",
        r"^(_Py_dict_|_?PyDict_|dict_|dictresize|insertdict|insert_to_empty|find_empty_slot|build_indices|
            set_(add|lookkey|contains)|unicodekeys_lookup|compare_unicode|lookdict|dictiter|do_lookup\b)",
    ),
    Activity::new(
        2,
        "strings",
        r"^(_?PyUnicode_|unicode_|_PyUnicodeWriter|asciilib_|ucs[124]lib_|bytes_|PyBytes_|_?PyBytes|
            fastsearch|resize_compact|find_maxchar)",
    ),
    Activity::new(
        2,
        "numbers",
        r"^(_?PyLong_|long_|x_(add|sub|mul)|k_mul|PyFloat_|float_|_Py_dg_|PyNumber_|binary_op1|
            PyOS_(string_to_double|double_to_string))",
    ),
    Activity::new(
        3,
        "interpreter",
        r"^(_PyEval_|_PyFunction_Vectorcall|_PyFrame|_?PyObject_(Call|Vectorcall)|_PyVectorcall|vectorcall|
            initialize_locals|_PyCode|Py_(IN|DE)CREF|Py_XDECREF|_PyThreadState|get_state|_PyInterpreterState|
            py::|trampoline|list_|tuple|PyList|PyTuple|_PyList|map_next|gen_send|gen_iternext|_PyGen|
            method_vectorcall|cfunction_|builtin_|slot_|wrap|type_call|object_|PyIter|_PyStack|unsafe_|merge_|
            binarysort|sort)",
    ),
];

/// Whether a colon that stands alone comes behind the name, as in `py::f:/x.py`: a wasm module may call its functions `py::f`.
fn names_a_file(name: &[u8]) -> bool {
    let name = name.split(|&b| b == 0).next().unwrap_or_default();
    let mut parts = name.split(|&b| b == b':').skip(2);
    parts.next().is_some_and(|function| !function.is_empty())
        && parts.next().is_some_and(|file| !file.is_empty())
}

/// `py::NAME:FILE`
fn clean(name: &str) -> CleanName {
    let rest = name.strip_prefix("py::").unwrap_or(name);
    match rest.split_once(':') {
        Some((function, file)) => CleanName {
            name: function.to_owned(),
            file: file.to_owned(),
            ..CleanName::default()
        },
        None => CleanName::plain(rest),
    }
}

fn package(_: &str, clean: &CleanName, kind: Kind) -> Whose {
    match kind {
        Kind::Std => Whose::Std("python library"),
        _ => match pypi(&clean.file) {
            Some(name) => Whose::Package(Ecosystem::PyPi, name),
            None => Whose::File(clean.file.clone()),
        },
    }
}

fn kind(_: &str, clean: &CleanName) -> Kind {
    let file = clean.file.as_str();
    let in_library = file
        .find("/lib/python3.")
        .is_some_and(|_| !is_package(file));
    if file.starts_with("<frozen") || in_library {
        Kind::Std
    } else if is_package(file) {
        Kind::Dependency
    } else {
        Kind::Own
    }
}
