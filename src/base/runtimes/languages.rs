//! Libraries that compilers of smaller languages link into each program, by how these languages mangle names.
//!
//! In: a name of the program itself. Out: whether the language's authors wrote it. Where there is debug information, the folder of
//! the source tells more (`Origin`). Names: GHC's z-encoding (GHC wiki, "Symbol names"), `ocamlopt`'s and Nim 1.6's output.

use super::{Activity, Scope};

/// What GHC's runtime does (9.0's names).
pub(super) const HASKELLS: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^(evacuate\w*|scavenge_\w+|GarbageCollect|scheduleDoGC|performGC|gcWorkerThread|mark(CAFs|Weak\w+|
            Capabilit\w+|StablePtr\w*)|copy_tag\w*|alloc_for_copy|initialize_gc\w*|traverse(Weak\w*|BlackholeQueue)|
            tidyThreadList|resurrect\w+|nonmoving\w*|resize_(generations|nursery)|stash_mut_list|
            todo_block_full|(alloc|grab_local)_todo_block|prepare_(un)?collected_gen|sweep|compact|
            update_(fwd|bkwd)\w*)$",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(allocate\w*|alloc(Group|Block|LargeChunk|MBlock)\w*|free(Group|Chain)\w*|getMBlocks?\w*|
            osGetMBlocks|stg_new\w*Array\w*zh|resetNurser\w+|clear_?[nN]urser\w+)$",
    ),
];

/// What OCaml's runtime does (4.13's and 5.2's names).
pub(super) const OCAMLS: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^(caml_(call_gc|garbage_collection|gc_\w+|(empty_)?minor_(heap\w*|collection\w*)|major_(collection|
            slice)\w*|oldify\w*|darken\w*|compact\w*|finish_\w+_cycle|check_urgent_gc|scan_\w*roots\w*|
            (oldify|do)_\w*roots\w*|final_(do|update)\w*|alloc_small_dispatch|opportunistic_major\w*|stw_\w+|
            redarken\w*|ephe_\w+|sweep\w*|mark\w*)|mark_\w+|(pool_)?sweep\w*|oldify_\w+|
            major_collection_slice|start_cycle|do_compaction|ephe_\w+|clean_slice|cycle_\w+)$",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(caml_alloc\w*|caml_(add_to|expand)_heap|expand_heap|(bf|ff|nf)_\w+|caml_shared_try_alloc|
            pool_\w+|caml_fl_\w+)$",
    ),
];

/// Whether a name is of OCaml's, Nim's or Haskell's library or runtime.
#[must_use]
pub fn is_of_library(name: &str) -> bool {
    is_ocaml(name) || is_nim(name) || is_haskell(name)
}

/// `Stdlib.Map.bal_170` (as symbol tables of debug builds have it), `camlStdlib__Map__bal_170`, and C of the runtime.
fn is_ocaml(name: &str) -> bool {
    const FRONTS: [&str; 6] = [
        "Stdlib.",
        "CamlinternalFormat",
        "CamlinternalOO",
        "camlStdlib",
        "camlCamlinternal",
        "caml_",
    ];
    name.starts_with(['S', 'C', 'c']) && FRONTS.iter().any(|front| name.starts_with(front))
}

fn begins_upper(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// `camlHot__fib_510`: a module of OCaml, whoever wrote it.
fn is_compiled_by_ocaml(name: &str) -> bool {
    name.strip_prefix("caml").is_some_and(begins_upper)
}

/// `cmp__system_7435`, `murmurHash__pureZhashes_192`: the module stands behind the last `__`, its folders apart by `Z`.
fn is_nim(name: &str) -> bool {
    const C_NAMES: [&str; 6] = [
        "nimCmpMem",
        "nimCopyMem",
        "nimSetMem",
        "nimZeroMem",
        "nimGC_setStackBottom",
        "nimRegisterGlobalMarker",
    ];
    if C_NAMES.contains(&name) {
        return true;
    }
    // All names of native code come here, and few end so.
    let front = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_numbered = front.len() < name.len();
    let Some(front) = front.strip_suffix('_').filter(|_| is_numbered) else {
        return false;
    };
    // The search of std for two bytes costs more than the rest of all this.
    let Some(at) = front.as_bytes().windows(2).rposition(|two| two == b"__") else {
        return false;
    };
    let module = &front[at + 2..];
    let folders = ["systemZ", "pureZ", "stdZ", "coreZ", "posixZ"];
    let is_known = module == "system" || folders.iter().any(|folder| module.starts_with(folder));
    is_known && !module.ends_with('_')
}

/// `base_GHCziShow_zdwitoszq_info`: package, module and name, with a word for what it is. A module alone in front is the program's.
fn is_haskell(name: &str) -> bool {
    if is_of_stg(name) {
        return true;
    }
    let Some((package, rest)) = name.split_once('_').filter(|_| is_closure(name)) else {
        return false;
    };
    let is_package = package.starts_with(|first: char| first.is_ascii_lowercase());
    let is_module = begins_upper(rest);
    // A C function may be called `get_User_info`: one of them is encoded in nearly all packages.
    let is_encoded = ["zm", "zi", "zd"].iter().any(|code| name.contains(code));
    is_package && is_module && (package == "base" || is_encoded)
}

/// `stg_upd_frame_info`, `stg_ap_pp_fast`, `stg_catchzh` of GHC's runtime. A function of C may be called `stg_read`.
fn is_of_stg(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("stg_") else {
        return false;
    };
    let fronts = ["ap_", "gc_", "upd_"];
    let ends = ["zh", "_fast", "_frame"];
    fronts.iter().any(|front| rest.starts_with(front))
        || ends.iter().any(|end| rest.ends_with(end))
        || is_closure(name)
}

/// Whether GHC made the code of this name.
fn is_closure(name: &str) -> bool {
    let Some((front, end)) = name.rsplit_once('_') else {
        return false;
    };
    match end {
        "info" | "slow" | "entry" | "ret" | "closure" | "alt" | "srt" => true,
        "itable" => front.ends_with("_info"),
        _ => false,
    }
}

/// A language whose runtime is linked into programs and written in C, or as C is: names alone do not tell that from the program's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// GHC's.
    Haskell,
    /// D's.
    D,
    /// OCaml's.
    OCaml,
}

impl Language {
    /// The language whose compiler made a name that occurs in no other programs.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        if is_haskell(name) {
            return Some(Self::Haskell);
        }
        if is_ocaml(name) || is_compiled_by_ocaml(name) {
            return Some(Self::OCaml);
        }
        // `_D3hot3fibFiZi`
        let length = name.strip_prefix("_D")?;
        length
            .starts_with(|first: char| first.is_ascii_digit())
            .then_some(Self::D)
    }

    /// Whose names tell what its runtime does.
    #[must_use]
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::Haskell => Some(Scope::Haskell),
            Self::OCaml => Some(Scope::OCaml),
            Self::D => None,
        }
    }

    /// Whether a function without debug information is of the runtime in a program of the language.
    #[must_use]
    pub fn has_in_runtime(self, name: &str) -> bool {
        /// `_d_newclass`, `gc_qalloc`, `_aaGetY` (druntime 2.100).
        const DS_FRONTS: [&str; 9] = [
            "_d_",
            "_aa",
            "_ad",
            "_aApply",
            "gc_",
            "rt_",
            "thread_",
            "lifetime_",
            "onOutOfMemory",
        ];
        match self {
            Self::Haskell => {
                let is_own = is_closure(name) && begins_upper(name);
                // What has no name of its own, a case's branch for one, is of the function in front of it.
                let is_local =
                    name.starts_with('.') || name.starts_with("_c") || name.starts_with("_s");
                !is_own && !is_local
            }
            Self::D => DS_FRONTS.iter().any(|front| name.starts_with(front)),
            // Most of its collector are static functions of C: `mark_slice`, `bf_allocate`.
            Self::OCaml => {
                let is_shown = begins_upper(name) && name.contains('.');
                !is_shown && !is_compiled_by_ocaml(name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_by_how_names_are_mangled() {
        for name in [
            "Stdlib.Array.maxson_317",
            "camlStdlib__Map__bal_170",
            "caml_string_compare",
            "cmp__system_7435",
            "murmurHash__pureZhashes_192",
            "nimSetMem__systemZmemory_7",
            "nimCmpMem",
            "base_GHCziShow_zdwitoszq_info",
            "ghczmprim_GHCziClasses_zdfOrdInt_info",
            "containerszm0zi6zi4zi1_DataziMapziInternal_balanceL_info",
            "stg_upd_frame_info",
            "stg_ap_pp_fast",
            "stg_newByteArrayzh",
        ] {
            assert!(is_of_library(name), "{name}");
        }
        for name in [
            "Hot.fib_510",
            "camlHot__fib_510",
            "fib__hot_5",
            "sort__algorithms_5",
            "Main_zdwfib_info",
            "get_User_info",
            "my_caml",
            "stage_one",
            "stg_read",
            "a__b",
        ] {
            assert!(!is_of_library(name), "{name}");
        }
        let is_of_d = |name| Language::of_name(name) == Some(Language::D);
        assert!(is_of_d("_D3hot3fibFiZi") && !is_of_d("_Dmain") && !is_of_d("_Dx"));
        let is_of_ds_runtime = |name| Language::D.has_in_runtime(name);
        assert!(is_of_ds_runtime("gc_qalloc") && !is_of_ds_runtime("fib"));
        let is_of_haskells_runtime = |name| Language::Haskell.has_in_runtime(name);
        assert!(is_of_haskells_runtime("evacuate") && !is_of_haskells_runtime("Main_zdwfib_info"));
        // GHC writes it, and collects garbage below it.
        assert!(is_of_haskells_runtime("main"));
        let is_ocaml = |name| Language::of_name(name) == Some(Language::OCaml);
        for name in ["camlHot__fib_510", "Stdlib.Map.add_200", "caml_oldify_one"] {
            assert!(is_ocaml(name), "{name}");
        }
        assert!(!is_ocaml("camlp4") && !is_ocaml("Hot.fib"));
        let is_of_ocamls_runtime = |name| Language::OCaml.has_in_runtime(name);
        for name in ["mark_slice_darken", "bf_allocate", "main"] {
            assert!(is_of_ocamls_runtime(name), "{name}");
        }
        assert!(!is_of_ocamls_runtime("camlHot__fib_510") && !is_of_ocamls_runtime("Hot.fib_510"));
    }
}
