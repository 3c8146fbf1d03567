//! CPython's perf trampolines. Facts of releases 3.12 to 3.14.

use super::kind::is_package;
use super::{CleanName, Habit, Kind, Lapse, Producer, Runtime};

pub(super) const CPYTHON: Runtime = Runtime {
    producer: Producer::CPython,
    name: "CPython",
    short_name: "CPython",
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
    record: Some("python3 -X perf_jit"),
    ..Runtime::UNKNOWN
};

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
        Some((name, file)) => CleanName {
            name: name.to_owned(),
            file: file.to_owned(),
            ..CleanName::default()
        },
        None => CleanName::plain(rest),
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
