//! Which functions allocate, and what their arguments mean.
//!
//! In: names of functions, as symbol tables and demanglers have them. Out: the [`Kind`] of a function that can be
//! probed, and whether a frame belongs to an allocator, so that a row should begin behind it.

use crate::runtimes::wasmtime_function;

/// What a probed function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `malloc(size)`: the argument of this number is the size.
    Alloc(usize),
    /// `calloc(count, size)`.
    AllocMany,
    /// `realloc(ptr, size)`.
    Realloc,
    /// `reallocarray(ptr, count, size)`.
    ReallocMany,
    /// `posix_memalign(&ptr, align, size)`: the address is not returned, but 0.
    AllocInto,
    /// `mmap(addr, length, …)`.
    Map,
    /// `free(ptr)`.
    Free,
    /// `munmap(addr, length)`.
    Unmap,
}

impl Kind {
    /// Whether it gives memory.
    #[must_use]
    pub fn allocates(self) -> bool {
        !matches!(self, Self::Free | Self::Unmap)
    }

    /// Whether it takes a block for it.
    #[must_use]
    pub fn reallocates(self) -> bool {
        matches!(self, Self::Realloc | Self::ReallocMany)
    }
}

const KINDS: [(&str, Kind); 40] = [
    ("malloc", Kind::Alloc(0)),
    ("valloc", Kind::Alloc(0)),
    ("pvalloc", Kind::Alloc(0)),
    ("mallocx", Kind::Alloc(0)),
    ("__rust_alloc", Kind::Alloc(0)),
    ("__rust_alloc_zeroed", Kind::Alloc(0)),
    ("__rdl_alloc", Kind::Alloc(0)),
    ("__rdl_alloc_zeroed", Kind::Alloc(0)),
    ("__rg_alloc", Kind::Alloc(0)),
    ("__rg_alloc_zeroed", Kind::Alloc(0)),
    ("runtime.mallocgc", Kind::Alloc(0)),
    ("runtime.alloc", Kind::Alloc(0)),
    ("operator new", Kind::Alloc(0)),
    ("_Znwm", Kind::Alloc(0)),
    ("_Znam", Kind::Alloc(0)),
    ("_ZnwmSt11align_val_t", Kind::Alloc(0)),
    ("memalign", Kind::Alloc(1)),
    ("aligned_alloc", Kind::Alloc(1)),
    ("mmap", Kind::Map),
    ("mmap64", Kind::Map),
    ("munmap", Kind::Unmap),
    ("calloc", Kind::AllocMany),
    ("reallocarray", Kind::ReallocMany),
    ("realloc", Kind::Realloc),
    ("rallocx", Kind::Realloc),
    ("__rust_realloc", Kind::Realloc),
    ("__rdl_realloc", Kind::Realloc),
    ("__rg_realloc", Kind::Realloc),
    ("posix_memalign", Kind::AllocInto),
    ("free", Kind::Free),
    ("cfree", Kind::Free),
    ("sdallocx", Kind::Free),
    ("dallocx", Kind::Free),
    ("__rust_dealloc", Kind::Free),
    ("__rdl_dealloc", Kind::Free),
    ("__rg_dealloc", Kind::Free),
    ("operator delete", Kind::Free),
    ("_ZdlPv", Kind::Free),
    ("_ZdlPvm", Kind::Free),
    ("_ZdaPv", Kind::Free),
];

/// What allocators put in front of the names they take from C.
const PREFIXES: [&str; 9] = [
    "__GI___libc_",
    "__libc_",
    "__GI_",
    "_rjem_je_",
    "_rjem_",
    "je_",
    "mi_",
    "tc_",
    "__",
];

/// The name without version, arguments and prefix.
fn plain(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let of_guest = wasmtime_function(name.as_bytes()).and_then(|(.., own)| own);
    let name = of_guest.map_or(name, |own| &name[name.len() - own.len()..]);
    // Mangled names are kept: what they have behind them is their arguments.
    let name = name.split('(').next().unwrap_or(name);
    let name = name.strip_suffix("[]").unwrap_or(name);
    // A Rust symbol of today's mangling: `_RNvCs…_7___rustc12___rust_alloc`.
    match name.rfind("__rust_").or_else(|| name.rfind("__rdl_")) {
        Some(at) if name.starts_with("_R") || name.contains("::") => &name[at..],
        _ => name,
    }
}

/// What a function of this name does, if it is known to allocate or free.
pub(super) fn kind(name: &str) -> Option<Kind> {
    let name = plain(name);
    let of = |bare: &str| {
        let found = KINDS.iter().find(|(known, _)| *known == bare);
        found.map(|(_, kind)| *kind)
    };
    let mut without = PREFIXES.iter().filter_map(|p| name.strip_prefix(p));
    of(name).or_else(|| without.find_map(of))
}

/// The part of an event's name that may be a function's: `libc_malloc_ret__return_2` is of `malloc`.
pub(super) fn kind_of_event(event: &str) -> Option<Kind> {
    let name = event.rsplit(':').next().unwrap_or(event);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = name.trim_end_matches('_');
    let name = name.strip_suffix("__return").unwrap_or(name);
    let name = name.strip_suffix("_ret").unwrap_or(name);
    kind(name)
}

/// Whether the function is a layer over `malloc` that has a probe of its own.
pub(super) fn is_upper_layer(name: &str) -> bool {
    let name = plain(name);
    let fronts = ["operator new", "_Zn", "__rust_", "__rdl_"];
    fronts.iter().any(|front| name.starts_with(front))
}

/// Whether a frame of this name is part of allocating, so that who allocates is behind it.
#[must_use]
pub fn is_allocator(name: &str) -> bool {
    const INNER: [&str; 13] = [
        // musl's, which `malloc` is another name of.
        "default_malloc",
        "_int_malloc",
        "_int_realloc",
        "_int_memalign",
        "_mid_memalign",
        "_mid_memalign.isra.0",
        "__posix_memalign",
        "runtime.newobject",
        "runtime.makeslice",
        "runtime.growslice",
        "runtime.mallocgcSmallNoscan",
        "exchange_malloc",
        "box_new",
    ];
    const FRONTS: [&str; 12] = [
        "alloc::",
        "<alloc::",
        "core::alloc::",
        "<core::alloc::",
        "std::alloc::",
        "<std::alloc::",
        "std::allocator",
        "std::__new_allocator",
        "__gnu_cxx::new_allocator",
        "__gnu_cxx::__alloc_traits",
        "operator new",
        "operator delete",
    ];
    kind(name).is_some()
        || INNER.contains(&name)
        || FRONTS.iter().any(|front| name.starts_with(front))
        || name.contains("RawVec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_all_their_names() {
        assert_eq!(kind("malloc"), Some(Kind::Alloc(0)));
        assert_eq!(kind("__libc_calloc"), Some(Kind::AllocMany));
        assert_eq!(kind("cfree@GLIBC_2.2.5"), Some(Kind::Free));
        assert_eq!(kind("mi_realloc"), Some(Kind::Realloc));
        assert_eq!(kind("_rjem_malloc"), Some(Kind::Alloc(0)));
        assert_eq!(kind("operator new[](unsigned long)"), Some(Kind::Alloc(0)));
        assert_eq!(
            kind("_RNvCs1ZPuKb3ASXg_7___rustc12___rust_alloc"),
            Some(Kind::Alloc(0))
        );
        assert_eq!(kind("wasm[0]::function[12]::malloc"), Some(Kind::Alloc(0)));
        assert_eq!(kind("my_malloc"), None);
        assert_eq!(
            kind_of_event("probe_libc:calloc_ret__return"),
            Some(Kind::AllocMany)
        );
        assert_eq!(kind_of_event("guest:free_1"), Some(Kind::Free));
        assert_eq!(kind_of_event("sched:sched_switch"), None);
    }

    #[test]
    fn frames_of_allocators_are_told_from_those_that_use_them() {
        for name in [
            "__GI___libc_malloc",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            "operator new",
            "std::allocator_traits<std::allocator<int>>::allocate",
        ] {
            assert!(is_allocator(name), "{name}");
        }
        for name in [
            "main",
            "allocate_page",
            "app::alloc::pool",
            "malloc_trim_loop",
        ] {
            assert!(!is_allocator(name), "{name}");
        }
    }
}
