//! Where files are looked for: which places, in which order, and what proves that a file is the right one.
//!
//! In: names that the recording, programs, scripts and the user tell. Out: `Place`s, best first, with a way to open each
//! ([`crate::input::Door`]); nothing is opened here. Who opens tells a `Look` what became of each place, and `-v` prints that. Doors
//! are made here and nowhere else (`tests/integration/tidy.rs`), so that a new place is one line in this folder.
//!
//! "Roots" are the folders that stand for `/`: those of `--symfs` alone, or else `symfs/` beside the recording, then `/`
//! itself. Links below a root stay in it. "Cache" is the build-ID cache, under `--symfs` the one in the first of them. "debuginfod" is the cache
//! of its client ([`DebuginfodHome`]), which is read under `--symfs` too: a build ID is as true there.
//!
//! | file | places, best first | proof |
//! |---|---|---|
//! | program, library | roots, by the recorded path (memfd: in given roots also without ` (deleted)`); `.debug/` in `symfs/` beside the recording; cache; debuginfod (`executable`); roots of processes that had it mapped and still live | build ID, inode, table, mapping: `dso/evidence.rs` |
//! | vdso | given roots (`/[vdso]`); cache; this process | build ID, kind of machine |
//! | debug file | in each root: beside the program by its link, `.debug/` there, `/usr/lib/debug` by link, by path, by build ID, `.debug/` by name, the program's own path if that was not found; cache (`debug`, `elf`); debuginfod (`debuginfo`) | build ID, else the link's checksum |
//! | shared debug file (dwz) | in each root: by the name in the debug file, `/usr/lib/debug/.dwz`, by build ID | build ID |
//! | `.dwo` | roots, by the compiler's path; beside the program; beside its debug file | id of the unit |
//! | `.dwp` | beside the program; beside its debug file | id of the unit |
//! | kernel's symbols | `--kallsyms`; `--vmlinux`; `kallsyms`, `kallsyms.gz` beside the recording; cache; `vmlinux` in a bundle; vmlinux in the cache, in debuginfod's (`debuginfo`), in `/boot`, `/usr/lib/debug` and `/lib/modules` by release; `/proc/kallsyms` | build ID, else release; size of the code |
//! | kernel module | roots, by the recorded path | build ID |
//! | dump | `--jitdump`; the same, beside the recording and in the current folder under the outer process id; `--symfs` or `/`, by the recorded path; beside the recording; current folder; root of the living process; then every dump of `--jitdump` and beside the recording | writer, clock, inode |
//! | perf map | `--perf-map`; beside the recording; `--symfs` or `/`, in `/tmp`; root of the living process; once more by the inner process id; then maps of unknown ids at the same places | an entry lies in memory of the process |
//! | `.wasm`, `.cwasm` | `--wasm`, `--cwasm`; beside the recording; words of the recorded command line: absolute in the roots, else beside the recording, then in the current folder | code that is the same |
//! | script | roots, by the recorded path; `--source-map`, by its name | functions where the recording has them: `symbolize/ran.rs` |
//! | source map | in the script; `--source-map`; the script's own URL in its folder; roots, beside the script's path | every place in it is one of the script |
//! | map of a module | beside the module, the last part of its URL | none |
//! | source | the map's own text; a bundle's `symfs/`; `--prefix`; as recorded; `--source-root`, then the recording's folder, by the longest end of the path; debuginfod, of the build that the line is of | checksum, place, owner: `input/source.rs` |
//!
//! Orders that differ, and why:
//!
//! | | |
//! |---|---|
//! | What the user names goes first for dumps, perf maps, WebAssembly, source maps and the kernel; `--source-root` goes last | a source as recorded is proven by its checksum or its place, one found by the end of its path by its name alone |
//! | A script's own map (`data:`) goes before `--source-map` | it is a part of the script that ran |
//! | `--symfs` stands alone for what has a path in the recording, as in perf; `symfs/` beside the recording stands before `/`, and not for dumps and perf maps | those lie beside the recording itself, by their names, as they were gathered |
//! | Sources know `symfs/` of bundles only, not `--symfs` | that holds programs; `--prefix` says the same for sources |
//! | Debug files are looked for root by root, and then in the cache | perf's order; a build ID proves as much at each place |

pub(crate) mod debuginfod;
mod jit;
mod kernel;
mod places;
mod programs;
mod scripts;
mod sources;
#[cfg(test)]
mod tests;
mod trail;
mod wasm;

pub use debuginfod::DebuginfodHome;
pub(crate) use jit::{
    JitPlaces, MarkerName, PLAN, STORY, dump_of_mapping, file_name, gathered_name,
    is_log_beside_dump, is_temporary_dump, left_behind, marker_name, outer_name, perf_info_path,
    perf_map_name, perf_map_path, pid_of_perf_map, plan_in, root_of, seen_by, story_in,
    temporary_dump, temporary_folder,
};
pub use jit::{JitSearch, is_dump_name, is_perf_map_name};
pub(crate) use kernel::{KALLSYMS, KALLSYMS_PACKED, VMLINUX, has_kallsyms, running_kallsyms};
pub use places::SearchPaths;
pub(crate) use places::{CACHE, Place, path_of};
pub(crate) use programs::{
    DebugOf, DebugPlace, Proof, VDSO, below_debug_root, debug_origin, own_vdso, place_of_build,
    program_to_run, split_package,
};
pub use scripts::ScriptPlaces;
pub(crate) use scripts::{is_source_map_name, map_of_module};
pub use sources::SourcePaths;
pub(crate) use trail::{Kind, Look, Outcome};
pub(crate) use wasm::WasmKind;
