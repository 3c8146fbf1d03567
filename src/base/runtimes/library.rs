//! Which names belong to the standard library of a language, where its code lies in the program itself.
//!
//! In: a clean name of a native or WebAssembly function. Out: whether the library's authors wrote it.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::crates::{crate_of, first_word};
use super::languages::is_of_library;

/// Whether a crate or an outermost namespace is of a standard library.
fn is_namespace(name: &str) -> bool {
    matches!(
        name,
        "std"
            | "core"
            | "alloc"
            | "proc_macro"
            | "test"
            | "compiler_builtins"
            | "dlmalloc"
            | "hashbrown"
            | "std_detect"
            | "panic_unwind"
            | "panic_abort"
            | "unwind"
            | "rustc_demangle"
            | "gimli"
            | "addr2line"
            | "miniz_oxide"
            | "memchr"
            | "adler2"
            | "object"
            | "libc"
            | "__gnu_cxx"
            | "__cxxabiv1"
    )
}

/// Functions of C's library and of the start of programs that are linked into them.
const C_FUNCTIONS: [&str; 79] = [
    "_fini",
    "_init",
    "_start",
    "abort",
    "aligned_alloc",
    "bsearch",
    "calloc",
    "cfree",
    "close",
    "dlcalloc",
    "dlfree",
    "dlmalloc",
    "dlmemalign",
    "dlrealloc",
    "fclose",
    "fflush",
    "fgets",
    "fmt_fp",
    "fopen",
    "fprintf",
    "fputs",
    "fread",
    "free",
    "fstat",
    "fwrite",
    "getline",
    "lseek",
    "lstat",
    "malloc",
    "memchr",
    "memcmp",
    "memcpy",
    "memmem",
    "memmove",
    "mempcpy",
    "memrchr",
    "memset",
    "open",
    "posix_memalign",
    "printf",
    "printf_core",
    "puts",
    "qsort",
    "qsort_r",
    "read",
    "realloc",
    "sbrk",
    "sift",
    "snprintf",
    "sprintf",
    "stat",
    "stpcpy",
    "strcasecmp",
    "strcat",
    "strchr",
    "strcmp",
    "strcpy",
    "strcspn",
    "strdup",
    "strerror",
    "strlen",
    "strncasecmp",
    "strncat",
    "strncmp",
    "strncpy",
    "strndup",
    "strnlen",
    "strrchr",
    "strspn",
    "strstr",
    "strtod",
    "strtok",
    "strtol",
    "strtoul",
    "trinkle",
    "vfprintf",
    "vsnprintf",
    "wrapper_cmp",
    "write",
];

/// GCC's unwinder (`libgcc/unwind-dw2.c` and what it includes), which C++ programs have linked in, and without debug information.
const UNWINDER: [&str; 22] = [
    "base_of_encoded_value",
    "execute_cfa_program",
    "execute_cfa_program_generic",
    "execute_cfa_program_specialized",
    "execute_stack_op",
    "extract_cie_info",
    "fde_mixed_encoding_compare",
    "fde_single_encoding_compare",
    "find_fde_tail",
    "get_cie_encoding",
    "init_dwarf_reg_size_table",
    "linear_search_fdes",
    "parse_lsda_header",
    "read_encoded_value",
    "read_encoded_value_with_base",
    "size_of_encoded_value",
    "uw_advance_context",
    "uw_frame_state_for",
    "uw_init_context_1",
    "uw_install_context_1",
    "uw_update_context",
    "uw_update_context_1",
];

/// What compilers and linkers add to every program, and what Go's assembler makes without a package.
const ADDED: [&str; 16] = [
    ".plt",
    ".plt.got",
    ".plt.sec",
    "aeshashbody",
    "callRet",
    "cmpbody",
    "countbody",
    "deregister_tm_clones",
    "frame_dummy",
    "gogo",
    "gosave_systemstack_switch",
    "indexbody",
    "indexbytebody",
    "memeqbody",
    "register_tm_clones",
    "setg_gcc",
];

/// All of these. Each name of a program is looked for.
static LINKED_IN: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
    let lists = [&C_FUNCTIONS[..], &UNWINDER, &ADDED];
    lists.into_iter().flatten().copied().collect()
});

/// Parts of Go's library by the first element of their path.
const GO_PACKAGES: [&str; 46] = [
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "sync",
    "syscall",
    "text",
    "time",
    "unicode",
    "unique",
    "weak",
];

/// The outermost packages of D's runtime and library.
const D_PACKAGES: [&str; 7] = ["core", "etc", "gc", "ldc", "object", "rt", "std"];

/// Whether a function of the program itself is one of its language's library.
#[must_use]
pub fn is_standard(name: &str) -> bool {
    if name.ends_with("@plt") {
        return true;
    }
    // Modules have a hundred thousand names, and most are such paths.
    if let Some(first) = first_of_path(name) {
        // `<alloc::string::String as app::Trait>::f` is the trait's.
        return is_namespace(first) && crate_of(name).is_none_or(is_namespace);
    }
    // A mangled name begins like a reserved one, and yet may be the user's: `_D3hot3fibFiZi` was taken for the library's.
    if let Some(package) = mangled_package(name) {
        return is_namespace(package) || D_PACKAGES.contains(&package);
    }
    if is_reserved(name) || is_made_by_go(name) || is_of_library(name) {
        return true;
    }
    if is_allocator(name) {
        return true;
    }
    // Most names are paths, and none of these is.
    let is_plain = !name.as_bytes().contains(&b':');
    if is_plain && LINKED_IN.contains(name) {
        return true;
    }
    match outermost(name) {
        Some(namespace) => is_namespace(namespace),
        None => is_of_go(name),
    }
}

/// The same of a name that a compiler of C++ spelled: there are no crates, and own functions may be called as those of C are.
#[must_use]
pub fn is_standard_in_cpp(name: &str) -> bool {
    let is_library = |of| matches!(of, "std" | "__gnu_cxx" | "__cxxabiv1");
    // What handles exceptions is written in both languages.
    let is_unwinder = UNWINDER.binary_search(&name).is_ok();
    is_allocator(name)
        || is_unwinder
        || is_reserved(name)
        || outermost(name).is_some_and(is_library)
}

/// C++'s own `operator new` and `operator delete`.
fn is_allocator(name: &str) -> bool {
    name.starts_with("operator new") || name.starts_with("operator delete")
}

/// Whether C's library has a function of this name.
#[must_use]
pub fn is_c_function(name: &str) -> bool {
    C_FUNCTIONS.binary_search(&name).is_ok()
}

/// Whether a name is one that a compiler mangled: `_ZN3hot3fibEi`, `_RNvC3hot3fib`, `_D3hot3fibFiZi`, `__hot_MOD_fib`.
#[must_use]
pub fn is_mangled(name: &str) -> bool {
    let is_rust = |rest: &str| rest.starts_with(|first: char| first.is_ascii_uppercase());
    name.starts_with("_Z")
        || name.strip_prefix("_R").is_some_and(is_rust)
        || mangled_package(name).is_some()
}

/// The outermost namespace, package or module in a mangled name, or the function where it has none; nothing where it is not easily told.
pub(super) fn mangled_package(name: &str) -> Option<&str> {
    if name == "_Dmain" {
        return Some("main");
    }
    if let Some((module, _)) = name
        .strip_prefix("__")
        .and_then(|rest| rest.split_once("_MOD_"))
    {
        return Some(module);
    }
    let nested = name
        .strip_prefix("_ZN")
        .map(|rest| rest.trim_start_matches(['K', 'V']));
    let rest = nested
        .or_else(|| name.strip_prefix("_Z"))
        .or_else(|| name.strip_prefix("_D"))?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = rest[..end].parse().ok()?;
    let package = rest[end..].get(..length)?;
    // Rust's `_$LT$T as Trait$GT$` and C++'s nameless namespace say nothing.
    (!package.starts_with('_') || is_namespace(package)).then_some(package)
}

/// `__x` and `_X` belong to compilers and libraries.
fn is_reserved(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next() == Some(b'_')
        && bytes
            .next()
            .is_some_and(|b| b == b'_' || b.is_ascii_uppercase())
}

/// `type..eq.[2]string`, `type:.hash.main.point`, `_rt0_amd64_linux`, `debugCall64`
fn is_made_by_go(name: &str) -> bool {
    let is_of_type = name.starts_with("type..") || name.starts_with("type:.");
    let is_numbered = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let is_call = name.strip_prefix("debugCall").is_some_and(is_numbered);
    is_of_type || is_call || name.starts_with("_rt0_")
}

/// `net/http.(*Client).Do`, `runtime.mallocgc`
fn is_of_go(name: &str) -> bool {
    let package = name.split(['.', '/']).next().unwrap_or(name);
    let follows = name[package.len()..].bytes().next();
    // `os.x` may be a clone of C's `os`, but those end in numbers.
    let is_path = follows == Some(b'/') || follows == Some(b'.');
    is_path && package != name && GO_PACKAGES.binary_search(&package).is_ok()
}

/// The same as [`outermost`] of a path with nothing in front of it, which can be told at a glance: `app` of `app::f`, `app::f(int, long)`
/// and `<app::T as Trait>::f`. Of other names nothing.
fn first_of_path(name: &str) -> Option<&str> {
    let path = name.strip_prefix('<').unwrap_or(name);
    let first = first_word(path)?;
    let rest = &path[first.len()..];
    let is_in_brackets = path.len() < name.len();
    // A blank in front of parameters ends the type of the result.
    let has_result = || {
        let find = |byte| memchr::memchr(byte, rest.as_bytes());
        find(b' ')
            .is_some_and(|blank| !rest.ends_with(')') || find(b'(').is_none_or(|open| open > blank))
    };
    let is_path = first.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_path && (is_in_brackets || !has_result())).then_some(first)
}

/// The crate or the outermost namespace of a function; nothing where it has none.
#[must_use]
fn outermost(name: &str) -> Option<&str> {
    let name = without_return_type(name);
    if let Some(inside) = name.strip_prefix('<') {
        return of_impl(inside);
    }
    first_segment(name)
}

/// `T as Trait>::f`: the crate of T, or of the trait where T is a primitive or a parameter.
fn of_impl(inside: &str) -> Option<&str> {
    let end = closing(inside).unwrap_or(inside.len());
    let inside = &inside[..end];
    let (of, as_trait) = match split_as(inside) {
        Some((of, as_trait)) => (of, Some(as_trait)),
        None => (inside, None),
    };
    let of = without_sigils(of);
    let found = match of.strip_prefix('<') {
        Some(nested) => of_impl(nested),
        None => first_segment(of),
    };
    // What has no path is a primitive or a parameter: methods of their own come from the core library.
    found.or_else(|| as_trait.map_or(Some("core"), first_segment))
}

/// Without references, pointers, slices and the like in front of a type.
fn without_sigils(mut of: &str) -> &str {
    loop {
        let trimmed = of.trim_start_matches(['&', '*', '[', '(', ' ']);
        let words = ["mut ", "const ", "dyn "];
        let trimmed = words
            .iter()
            .find_map(|w| trimmed.strip_prefix(w))
            .unwrap_or(trimmed);
        if trimmed.len() == of.len() {
            return of;
        }
        of = trimmed;
    }
}

/// The part before the first `::` that is outside of brackets.
fn first_segment(path: &str) -> Option<&str> {
    let ends = |byte: u8| matches!(byte, b':' | b'<' | b'(' | b' ' | b';' | b',');
    let at = path.bytes().position(ends)?;
    path[at..].starts_with("::").then(|| &path[..at])
}

/// Where the bracket closes that was open before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    let mut previous = b' ';
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'<' => depth += 1,
            b'>' if previous != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        previous = b;
    }
    None
}

/// Splits at the ` as ` that is outside of brackets.
fn split_as(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth -= 1,
            b' ' if depth == 0 && text[at..].starts_with(" as ") => {
                return Some((&text[..at], &text[at + 4..]));
            }
            _ => {}
        }
    }
    None
}

/// `void std::sort<int*>` without `void`: the last blank outside of brackets ends the type.
fn without_return_type(name: &str) -> &str {
    if name.starts_with(['<', '{']) || !name.contains(' ') {
        return name;
    }
    let (mut depth, mut start) = (0, 0);
    for (at, b) in name.bytes().enumerate() {
        match b {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b' ' if depth == 0 && !name[..at].ends_with("operator") => start = at + 1,
            _ => {}
        }
    }
    match &name[start..] {
        "const" | "volatile" => name,
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_and_namespaces_decide() {
        for (name, namespace) in [
            ("hotrs::tree", Some("hotrs")),
            ("<hotrs::Rect<T> as hotrs::Shape>::area", Some("hotrs")),
            (
                "<alloc::string::String as core::fmt::Write>::write_str",
                Some("alloc"),
            ),
            (
                "<&mut hotrs::X as core::iter::Iterator>::next",
                Some("hotrs"),
            ),
            ("<T as hotrs::Shape>::area", Some("hotrs")),
            ("<u32 as core::fmt::Display>::fmt", Some("core")),
            ("<[T]>::sort", Some("core")),
            ("<[hotrs::R]>::sort", Some("hotrs")),
            ("<*const hotrs::R>::x", Some("hotrs")),
            (
                "<<hotrs::A as hotrs::B>::C as core::ops::Drop>::drop",
                Some("hotrs"),
            ),
            (
                "<hotrs::main::{{closure}} as core::ops::FnOnce<()>>::call_once",
                Some("hotrs"),
            ),
            ("core::ptr::drop_in_place::<my::T>", Some("core")),
            ("void std::sort<a b>", Some("std")),
            (
                "std::vector<int, std::allocator<int> >::push_back",
                Some("std"),
            ),
            ("sort<int*>", None),
            ("main", None),
            ("my::X::operator bool", Some("my")),
            ("(anonymous namespace)::f", None),
        ] {
            assert_eq!(outermost(name), namespace, "{name}");
        }
    }

    #[test]
    fn the_first_word_of_a_path_is_told_at_a_glance() {
        for (name, first) in [
            ("app::mod_1::f::h0123456789abcdef", Some("app")),
            ("<app::Map<String, as core::fmt::Debug>::f", Some("app")),
            ("app::f(unsigned int, std::string const&)", Some("app")),
            ("std::string app::f(int)", None),
            ("std::vector<int, long> app::f", None),
            ("app::f(int) const", None),
            ("<&app::T as core::ops::Drop>::drop", None),
            ("type:.eq", None),
            ("_app::f", None),
            ("main", None),
        ] {
            assert_eq!(first_of_path(name), first, "{name}");
            assert!(first.is_none() || outermost(name) == first, "{name}");
        }
    }

    #[test]
    fn lists_are_sorted_as_they_are_searched() {
        let lists = [&C_FUNCTIONS[..], &ADDED, &UNWINDER, &GO_PACKAGES];
        assert!(lists.iter().all(|list| list.is_sorted()));
    }

    #[test]
    fn library_names_are_known() {
        for name in [
            "memcpy@plt",
            "__qsort_r",
            "_IO_puts",
            "strcspn",
            "operator new",
            "std::sort<int*>",
            "hashbrown::raw::x",
            "runtime.mallocgc",
            "type..eq.[2]string",
            "_rt0_amd64_linux",
            "debugCall1024",
            "memeqbody",
            "execute_cfa_program",
            "uw_frame_state_for",
            "frame_dummy",
            "net/http.(*Client).Do",
            "_start",
            "__gnu_cxx::x",
            "_D3std5array__T5splitTAyaZQlFNaNfQlZAQp",
            "_D2rt6dmain212_d_run_main2UAAamPUQgZiZ6runAllMFZv",
            "_ZN4core3ptr4swap17h411c72f70882beecE",
            "_ZNKSt6vectorIiE4sizeEv",
            "_ZN9__gnu_cxx1xEv",
            "_Znwm",
        ] {
            assert!(is_standard(name), "{name}");
        }
        for name in [
            "main",
            "main.main",
            "fib",
            "_start_engine",
            "hotrs::memcpy",
            "stdx::f",
            "f.runtime",
            "weird name <with> spaces; and semi",
            "github.com/x/y.F",
            "runtime",
            "word_count",
            "_D3hot3fibFiZi",
            "_D3hot4mainFZ__T9__lambda7TlTlZQpFNaNbNiNfllZb",
            "_Dmain",
            "__hot_MOD_fib",
            "_ZN3hot9fibonacci17h32110d641839aedaE",
            "_ZNK3hot4TreeImE3sumEv",
            "_Z3fibi",
        ] {
            assert!(!is_standard(name), "{name}");
        }
    }

    #[test]
    fn in_cpp_there_are_no_crates() {
        for name in ["std::sort<int*>", "__gnu_cxx::x", "operator new", "__mine"] {
            assert!(is_standard_in_cpp(name), "{name}");
        }
        for name in [
            "core::Engine::run",
            "test::go",
            "sift",
            "read",
            "alloc::y",
            "stdx::f",
        ] {
            assert!(!is_standard_in_cpp(name), "{name}");
        }
    }

    #[test]
    fn go_packages_are_sorted() {
        assert!(GO_PACKAGES.is_sorted());
    }

    proptest::proptest! {
        #[test]
        fn no_name_is_too_strange(name in "[a-z<>:&* \\[\\]()ä{};,@_.-]{0,40}") {
            let _ = (is_standard(&name), outermost(&name));
            let first = first_of_path(&name).filter(|_| !name.contains(' '));
            proptest::prop_assert!(first.is_none() || outermost(&name) == first);
            for front in ["_Z", "_ZN", "_D3", "_D99", "__"] {
                let _ = is_mangled(&format!("{front}{name}"));
            }
        }
    }
}
