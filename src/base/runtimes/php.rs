//! PHP's opcache.

use super::name_place::{NamePlace, number};
use super::names::{is_number, trailing_number};
use super::{
    Activity, CleanName, Ecosystem, HostLoop, Kind, Producer, Runtime, Whose, recipe, switch,
};

pub(super) const PHP: Runtime = Runtime {
    producer: Producer::Php,
    name: "PHP",
    short_name: "PHP",
    engine: "PHP",
    prefixes: &[b"JIT$", b"TRACE-"],
    tags_all_names: true,
    loops: &["execute_ex"],
    host_loop: Some(HostLoop {
        file: b"php",
        function: b"execute_ex",
        saves_all: b"JIT$$trace_exit",
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
    recipes: recipe::PHP,
    switches: switch::PHP,
    stays_silent: Some(recipe::PHP_IS_SILENT),
    activities: ACTIVITIES,
    programs: &["php", "php-fpm", "php-cgi"],
    // Up to 8.4 what its compiled code calls is in a file of its own.
    libraries: &["libphp", "opcache"],
    package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const ACTIVITIES: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^(gc_(mark|collect|scan|possible|buffer|remove|compact)\w*|zend_gc_)",
    ),
    Activity::new(
        1,
        "JIT compile",
        // Compiled code calls `zend_jit_find_func_helper` and its like.
        r"^(zend_(real_)?jit(_(hot_func|func|compile\w*|build\w*|op_array\w*|setup\w*|link\w*|trace|
            trace_(hot|compile|start|record|optimize|allocate|build|restart|execute|add)\w*))?$|ir_|dasm_|
            zend_runtime_jit|tracing_jit)",
    ),
    Activity::new(
        1,
        "parsing",
        r"^(zendparse|lex_scan|zend_compile|zend_ast|compile_file|opcache_compile|zend_optimize|zend_dfa|
            zend_ssa|zend_accel|persistent_compile|pass_two|zend_inference|sccp_|zend_persist|zend_build_)",
    ),
    Activity::new(
        1,
        "regex",
        r"^(pcre|php_pcre|match$|jit_match|compile_branch|sljit)|libpcre",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(_?e(malloc|free|realloc|calloc|strdup)|zend_mm_|_emalloc|_efree|_erealloc|zend_objects_(new|
            destroy|store)|rc_dtor|zend_array_destroy|zend_string_alloc|zend_object_std_dtor|zval_ptr_dtor)",
    ),
    Activity::new(
        2,
        "hash tables",
        r"^(_?zend_hash|zend_symtable|_zend_new_array|zend_array_dup|php_array_|zif_array|zend_std_(read|
            write|get)|zend_fetch_dimension)",
    ),
    Activity::new(
        2,
        "strings",
        r"^(zend_str|zif_(str|sub|preg|sprintf|explode|implode|trim)|php_(trim|str|implode|explode)|smart_str|
            zend_binary_str|zend_memn|concat_function)",
    ),
    Activity::new(
        3,
        "interpreter",
        r"^(ZEND_|execute_ex|zend_execute|zend_call|zend_vm|zend_do_fcall|zend_leave|i_init|zend_)",
    ),
    Activity::new(3, "compiled code", r"^(JIT\$|TRACE-)"),
];

fn package(_: &str, clean: &CleanName, kind: Kind) -> Whose {
    if kind == Kind::Runtime {
        return Whose::Nobody;
    }
    let vendor = clean
        .file
        .rsplit_once("/vendor/")
        .map(|(_, rest)| rest.split('/'));
    if let Some(mut parts) = vendor
        && let (Some(owner), Some(package)) = (parts.next(), parts.next())
    {
        return Whose::Package(Ecosystem::Php, format!("{owner}/{package}"));
    }
    // Two parts of the namespace.
    let mut parts = clean.name.split('\\');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(owner), Some(package), Some(_)) => {
            Whose::Package(Ecosystem::Php, format!("{owner}\\{package}"))
        }
        (Some(owner), Some(_), None) => Whose::Package(Ecosystem::Php, owner.to_owned()),
        _ => Whose::Package(Ecosystem::Own, "PHP functions".to_owned()),
    }
}

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
        word: 0..0,
        file: start..start + path.len(),
        line,
        column: 0,
        all: start..end,
    })
}
