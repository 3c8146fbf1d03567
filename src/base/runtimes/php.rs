//! PHP's opcache.

use super::name_place::{NamePlace, number};
use super::names::{is_number, trailing_number};
use super::{CleanName, HostLoop, Kind, Producer, Runtime};

pub(super) const PHP: Runtime = Runtime {
    producer: Producer::Php,
    name: "PHP",
    short_name: "PHP",
    prefixes: &[b"JIT$", b"TRACE-"],
    tags_all_names: true,
    loops: &["execute_ex"],
    host_loop: Some(HostLoop {
        file: b"php",
        function: b"execute_ex",
    }),
    clean,
    place,
    kind: |name, _| {
        if name.starts_with("JIT$$") {
            Kind::Runtime
        } else {
            Kind::Own
        }
    },
    own: Some("PHP functions"),
    ..Runtime::UNKNOWN
};

/// `JIT$name`, `TRACE-NUMBER$name$line`, and closures, whose names say where they are.
fn clean(name: &str) -> CleanName {
    let plain = match name.strip_prefix("TRACE-").and_then(|t| t.split_once('$')) {
        Some((_, traced)) => match traced.rsplit_once('$') {
            Some((function, line)) if is_number(line) => function,
            _ => traced,
        },
        None => match name.strip_prefix("JIT$") {
            Some(function) if !function.starts_with('$') => function,
            _ => name,
        },
    };
    let closure = plain
        .strip_prefix("{closure:")
        .and_then(|c| c.strip_suffix('}'));
    let Some(place) = closure else {
        return CleanName::plain(plain);
    };
    let (file, line) = trailing_number(place);
    CleanName {
        name: "{closure}".to_owned(),
        file: file.to_owned(),
        line,
        column: 0,
    }
}

/// `{closure:/path/file.php:12}`.
fn place(name: &[u8]) -> Option<NamePlace> {
    const CLOSURE: &[u8] = b"{closure:/";
    let start = memchr::memmem::find(name, CLOSURE)? + CLOSURE.len() - 1;
    let end = start + memchr::memchr(b'}', &name[start..])?;
    let (path, line) = number(&name[start..end])?;
    Some(NamePlace {
        file: start..start + path.len(),
        line,
        column: 0,
        all: start..end,
    })
}
