//! Options that every subcommand shares: which recording, where symbols and JIT code are found.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;

use clap::Args;

use super::named::{Named, Wanted};
use super::perfconfig::PerfConfig;
use super::refusal::said;
use crate::collect;
use crate::find::{
    CACHE, DebuginfodHome, SearchPaths, WasmKind, is_dump_name, is_perf_map_name,
    is_source_map_name,
};
use crate::input::{expand, is_fifo, newest_recorded, stdin_is_fifo, written};
use crate::load::{LoadOptions, Source};
use crate::needs::Needs;
use crate::stitch::Mending;
use crate::symbolize;

/// More threads than any machine has processors are no faster, and cannot be had.
const MOST_JOBS: usize = 256;

/// The recording and its companions.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Recording to read, or - for standard input
    #[arg(short = 'i', long = "input", value_name = "FILE")]
    pub input: Vec<PathBuf>,

    /// Also read this dump, or all in this folder
    #[arg(long = "jitdump", value_name = "FILE_OR_DIR")]
    pub jitdump: Vec<PathBuf>,

    /// Also read this perf map, or all in this folder
    #[arg(long = "perf-map", value_name = "FILE_OR_DIR")]
    pub perf_map: Vec<PathBuf>,

    /// Show weights that pjit would refuse, such as --weight live
    #[arg(short = 'f', long = "force")]
    pub force: bool,

    /// Don't read ~/.perfconfig
    #[arg(long = "no-config")]
    pub no_config: bool,

    /// Exit with status 1 on any warning
    #[arg(long = "strict")]
    pub strict: bool,

    /// Use N threads [default: all CPUs]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    pub jobs: Option<usize>,

    /// List the files that were used, and the places that were searched
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count)]
    pub verbose: u8,

    #[command(flatten)]
    symbols: SymbolArgs,

    #[command(flatten)]
    lines: LineArgs,

    /// Marks, and what is done about cut stacks.
    #[command(flatten)]
    pub cuts: CutArgs,
}

/// What is done about stacks that are larger than what was recorded of them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Incomplete stacks")]
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "help texts show what stands in stacks"
)]
pub struct CutArgs {
    /// Don't mark missing frames, and add no roots
    #[arg(long = "no-cut-marks", overrides_with = "cut_marks")]
    pub no_cut_marks: bool,

    /// Mark missing frames with the reason: [cut], [missing file], [too deep] (default, but not of script)
    #[arg(long = "cut-marks", overrides_with = "no_cut_marks")]
    pub cut_marks: bool,

    /// Complete cut stacks from other samples of the thread, if all of them agree (an inference)
    #[arg(long = "stitch", overrides_with = "no_stitch")]
    stitch: bool,

    /// Don't complete cut stacks (default)
    #[arg(long = "no-stitch", overrides_with = "stitch")]
    no_stitch: bool,

    /// Don't add the thread's outermost functions to cut stacks
    #[arg(long = "no-root")]
    no_root: bool,
}

impl CutArgs {
    fn mending(&self) -> Mending {
        Mending {
            graft: !self.no_root && !self.no_cut_marks,
            stitch: self.stitch,
        }
    }
}

/// Where the sources of JIT code are told.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Symbols")]
struct LineArgs {
    /// Take wasm source lines from this .cwasm file or folder (repeatable)
    #[arg(long = "cwasm", value_name = "FILE_OR_DIR")]
    cwasm: Vec<PathBuf>,

    /// Take wasm debug information from this .wasm file or folder (repeatable)
    #[arg(long = "wasm", value_name = "FILE_OR_DIR")]
    wasm: Vec<PathBuf>,

    /// Take source maps (NAME.js.map) from this folder; report, fold and script show original names too (repeatable)
    #[arg(long = "source-map", value_name = "DIR")]
    source_map: Vec<PathBuf>,
}

/// Where symbols come from and how they are shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Symbols")]
struct SymbolArgs {
    /// Take kernel symbols from this vmlinux
    #[arg(short = 'k', long = "vmlinux", value_name = "FILE")]
    vmlinux: Option<PathBuf>,

    /// Take kernel symbols from this file
    #[arg(long = "kallsyms", value_name = "FILE")]
    kallsyms: Option<PathBuf>,

    /// Don't use a vmlinux
    #[arg(long = "ignore-vmlinux")]
    ignore_vmlinux: bool,

    /// Read symbols of kernel modules from their files
    #[arg(short = 'm', long = "modules")]
    modules: bool,

    /// Recorded files, also DIR,flat (repeatable)
    #[arg(long = "symfs", value_name = "DIR")]
    symfs: Vec<PathBuf>,

    /// Build-ID cache [default: ~/.debug]
    #[arg(long = "buildid-dir", value_name = "DIR")]
    buildid_dir: Option<PathBuf>,

    /// Leave out inlined functions
    #[arg(long = "no-inline", overrides_with = "inline")]
    no_inline: bool,

    /// Show inlined functions (default)
    #[arg(long = "inline", overrides_with = "no_inline")]
    inline: bool,

    /// Show mangled names
    #[arg(long = "no-demangle", overrides_with = "demangle")]
    no_demangle: bool,

    /// Demangle names (default)
    #[arg(long = "demangle", overrides_with = "no_demangle")]
    demangle: bool,

    /// Demangle kernel names too
    #[arg(long = "demangle-kernel")]
    demangle_kernel: bool,
}

impl InputArgs {
    /// The paths that its options name, besides the recording's.
    #[must_use]
    pub fn named(&self) -> Vec<Named<'_>> {
        type Matches = fn(&[u8]) -> bool;
        let dumps = Wanted::FileOrFolderOf(is_dump_name, "jit-PID.dump");
        let maps = Wanted::FileOrFolderOf(is_perf_map_name, "perf-PID.map");
        let compiled: Matches = |name| WasmKind::Compiled.has(name);
        let modules: Matches = |name| WasmKind::Module.has(name);
        let source_maps: Matches = is_source_map_name;
        let (symbols, lines) = (&self.symbols, &self.lines);
        let all: [(&'static str, &[PathBuf], Wanted); 9] = [
            ("--jitdump", &self.jitdump, dumps),
            ("--perf-map", &self.perf_map, maps),
            ("--vmlinux", symbols.vmlinux.as_slice(), Wanted::File),
            ("--kallsyms", symbols.kallsyms.as_slice(), Wanted::File),
            ("--symfs", symbols.symfs.as_slice(), Wanted::Folder),
            (
                "--buildid-dir",
                symbols.buildid_dir.as_slice(),
                Wanted::Folder,
            ),
            (
                "--cwasm",
                &lines.cwasm,
                Wanted::FileOrFolderOf(compiled, ".cwasm file"),
            ),
            (
                "--wasm",
                &lines.wasm,
                Wanted::FileOrFolderOf(modules, ".wasm file"),
            ),
            (
                "--source-map",
                &lines.source_map,
                Wanted::FolderOf(source_maps, ".map file"),
            ),
        ];
        let mut named = Vec::new();
        for (option, paths, wanted) in all {
            // As in perf, an empty --symfs is none.
            let is_none = |path: &Path| option == "--symfs" && path.as_os_str().is_empty();
            let paths = paths.iter().filter(|path| !is_none(path));
            named.extend(paths.map(|path| Named {
                option,
                path: if option == "--symfs" {
                    layout(path).0
                } else {
                    path
                },
                wanted,
            }));
        }
        named
    }

    /// What to load, with `positional` as the recording where `-i` is not given.
    #[must_use]
    pub fn load_options(
        &self,
        positional: Option<&PathBuf>,
        environment: &Environment,
    ) -> LoadOptions {
        let named = self.input.first().or(positional);
        let source = named.map_or_else(unnamed, |path| source(path));
        self.load_options_of(source, environment)
    }

    /// What to load of a recording that other arguments name.
    #[must_use]
    pub fn load_options_of(&self, source: Source, environment: &Environment) -> LoadOptions {
        let symbols = &self.symbols;
        let names = symbolize::Options {
            names: match (symbols.no_demangle, self.verbose > 0) {
                (true, _) => symbolize::NameStyle::Raw,
                (false, true) => symbolize::NameStyle::Full,
                (false, false) => symbolize::NameStyle::Short,
            },
            demangle_kernel: symbols.demangle_kernel,
        };
        let defaults = collect::Options::default();
        let roots = symbols.symfs.iter().map(|root| layout(root));
        let mut symfs = roots.clone().map(|(dir, _)| dir.to_owned());
        let flat_symfs = roots.filter(|(_, is_flat)| *is_flat);
        LoadOptions {
            search: SearchPaths {
                symfs: symfs.next(),
                more_symfs: symfs.collect(),
                flat_symfs: flat_symfs.map(|(dir, _)| dir.to_owned()).collect(),
                buildid_dir: symbols
                    .buildid_dir
                    .clone()
                    .or_else(|| environment.buildid_dir(self.no_config)),
                debuginfod: environment.debuginfod.clone(),
                recording_dir: None,
                kallsyms: symbols.kallsyms.clone(),
                vmlinux: symbols.vmlinux.clone(),
                ignore_vmlinux: symbols.ignore_vmlinux,
                modules: symbols.modules,
                jitdumps: self.jitdump.clone(),
                perf_maps: self.perf_map.clone(),
                wasm: self.lines.wasm.clone(),
                cwasm: self.lines.cwasm.clone(),
                source_maps: self.lines.source_map.clone(),
                bundle: None,
            },
            refused: Needs::INLINED.only_if(symbols.no_inline)
                | Needs::MARKS.only_if(self.cuts.no_cut_marks),
            reading: collect::Options {
                threads: self.jobs.unwrap_or(defaults.threads).clamp(1, MOST_JOBS),
                ..defaults
            },
            mending: self.cuts.mending(),
            names,
            ..LoadOptions::of(source)
        }
    }
}

/// The folder of `--symfs DIR,LAYOUT`, and whether its files are side by side; as in perf the last comma counts.
fn layout(root: &Path) -> (&Path, bool) {
    let text = root.to_str().unwrap_or_default();
    let flat = text.strip_suffix(",flat").map(|dir| (Path::new(dir), true));
    let whole = text.strip_suffix(",hierarchy");
    flat.or_else(|| Some((Path::new(whole?), false)))
        .unwrap_or((root, false))
}

/// The recordings that a path that was typed stands for: of a folder of several, each of them.
pub(super) fn recordings_at(path: &Path) -> Vec<PathBuf> {
    let file = recording_in(path);
    let is_folder = file == path && file.is_dir();
    // Of one without recordings it is told when it is read.
    let inside = is_folder.then(|| expand(std::slice::from_ref(&file)));
    inside.and_then(Result::ok).unwrap_or_else(|| vec![file])
}

/// What a path that was typed stands for.
fn source(path: &Path) -> Source {
    if path.as_os_str() == "-" {
        Source::Stdin
    } else {
        Source::File(recording_in(path))
    }
}

/// Recordings by a list.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub(super) struct ListArgs {
    /// Add up the recordings that this file lists, one a line
    #[arg(long = "from", value_name = "LIST")]
    from: Option<PathBuf>,
}

/// Several recordings as one.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub(super) struct SeveralArgs {
    #[command(flatten)]
    list: ListArgs,

    /// Give each of several recordings the same weight
    #[arg(long = "normalize")]
    normalizes: bool,
}

impl SeveralArgs {
    /// Whether recordings that are added up are to weigh the same.
    pub(super) const fn normalizes(&self) -> bool {
        self.normalizes
    }

    /// Whether a list names recordings.
    pub(super) const fn is_named(&self) -> bool {
        self.list.from.is_some()
    }

    /// What to load: all recordings that are named, in folders and lists too.
    ///
    /// # Errors
    /// When a list or a folder cannot be read, or holds none; when one alone is to weigh as much as others.
    pub(super) fn load_options(
        &self,
        files: &[PathBuf],
        input: &InputArgs,
        environment: &Environment,
    ) -> Result<LoadOptions, String> {
        let mut load = self.list.load_options(files, input, environment)?;
        load.normalizes = self.normalizes;
        if self.normalizes && load.more.is_empty() {
            return Err("--normalize is for several recordings, and this is one".to_owned());
        }
        Ok(load)
    }
}

impl ListArgs {
    /// What to load: all recordings that are named, in folders and lists too.
    ///
    /// # Errors
    /// When a list or a folder cannot be read, or holds none.
    pub(super) fn load_options(
        &self,
        files: &[PathBuf],
        input: &InputArgs,
        environment: &Environment,
    ) -> Result<LoadOptions, String> {
        let mut paths: Vec<PathBuf> = input.input.iter().chain(files).cloned().collect();
        if let Some(list) = &self.from {
            paths.extend(listed(list)?);
        }
        let mut sources = Vec::new();
        for path in &paths {
            match source(path) {
                Source::File(_) => {
                    sources.extend(recordings_at(path).into_iter().map(Source::File));
                }
                other => sources.push(other),
            }
        }
        if sources.len() > 1 && sources.contains(&Source::Stdin) {
            return Err("- is one recording, and others are named too".to_owned());
        }
        // A file that is named twice is one.
        let mut known = BTreeSet::new();
        sources.retain(|source| match source {
            Source::File(path) => {
                known.insert(path.canonicalize().unwrap_or_else(|_| path.clone()))
            }
            _ => true,
        });
        let mut sources = sources.into_iter();
        let mut load = match sources.next() {
            Some(first) => input.load_options_of(first, environment),
            None => input.load_options(None, environment),
        };
        load.more = sources.collect();
        Ok(load)
    }
}

/// The paths in a list, which count from its folder.
fn listed(list: &Path) -> Result<Vec<PathBuf>, String> {
    /// Longest list that is read.
    const MOST: u64 = 16 << 20;
    let cannot = |error: std::io::Error| format!("--from {}: {error}", list.display());
    let is_stdin = list.as_os_str() == "-";
    let mut text = String::new();
    let read = |from: &mut dyn std::io::Read, into: &mut String| {
        std::io::Read::read_to_string(&mut std::io::Read::take(from, MOST + 1), into)
    };
    if is_stdin {
        read(&mut std::io::stdin().lock(), &mut text).map_err(cannot)?;
    } else {
        read(&mut std::fs::File::open(list).map_err(cannot)?, &mut text).map_err(cannot)?;
    }
    if text.len() as u64 > MOST {
        return Err(format!("--from {}: longer than 16 MiB", list.display()));
    }
    let folder = list.parent().filter(|_| !is_stdin).unwrap_or(Path::new(""));
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let paths: Vec<PathBuf> = lines.map(|line| folder.join(line)).collect();
    if paths.is_empty() {
        return Err(format!("--from {} lists no recording", list.display()));
    }
    Ok(paths)
}

/// The recording that a path stands for: of a folder, the `perf.data` in it.
fn recording_in(path: &Path) -> PathBuf {
    let inside = path.join("perf.data");
    // `perf record --threads` makes a folder that is a recording itself.
    // Nobody named a pipe that may lie there, and it may never begin.
    let is_folder_of_one = inside.exists() && !is_fifo(&inside) && !path.join("data").exists();
    if is_folder_of_one {
        inside
    } else {
        path.to_owned()
    }
}

/// The recording where none is named: a stream, else what was written last of `perf.data` and the folders of `pjit record` here.
/// Of a folder that is told.
fn unnamed() -> Source {
    static TOLD: Once = Once::new();
    if stdin_is_fifo() {
        return Source::Default;
    }
    let Some(path) = newest_recorded(Path::new(".")) else {
        return Source::Default;
    };
    let of_perf = Path::new("perf.data");
    if of_perf.exists() && written(of_perf) >= written(&path) {
        return Source::Default;
    }
    let path = path.strip_prefix(".").unwrap_or(&path).to_owned();
    TOLD.call_once(|| {
        let lines = said("note", &format!("reading {}", path.display()), None);
        // Nobody may be there to read it.
        let _ = std::io::stderr().write_all(lines.as_bytes());
    });
    Source::File(path)
}

/// What the environment has to say, read once at the start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `$HOME`
    pub home: Option<PathBuf>,
    /// Command of the pager for terminals: `$PERF_PAGER`, `$PAGER`, else less where it is installed.
    pub pager: String,
    /// `$PERF_CONFIG`: the configuration file to read instead of `~/.perfconfig`.
    pub perf_config: Option<PathBuf>,
    /// The cache of debuginfod's client.
    pub debuginfod: Option<PathBuf>,
}

impl Environment {
    /// As the process was started.
    #[must_use]
    pub fn of_process() -> Self {
        let pager = ["PERF_PAGER", "PAGER"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok())
            .unwrap_or_else(|| "if command -v less >/dev/null; then exec less; fi; cat".to_owned());
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let home = path("HOME").filter(|home| !home.as_os_str().is_empty());
        let debuginfod = DebuginfodHome {
            cache: path("DEBUGINFOD_CACHE_PATH"),
            xdg: path("XDG_CACHE_HOME"),
            home: home.clone(),
        };
        Self {
            pager,
            home,
            perf_config: path("PERF_CONFIG"),
            debuginfod: debuginfod.folder(),
        }
    }

    /// What perf's configuration files say; nothing if they are not to be read.
    #[must_use]
    pub fn config(&self, is_forbidden: bool) -> PerfConfig {
        if is_forbidden {
            PerfConfig::default()
        } else {
            PerfConfig::read(self.perf_config.as_deref(), self.home.as_deref())
        }
    }

    /// What a view reads of a recording where no option says otherwise.
    #[must_use]
    pub fn load_options(&self, source: Source) -> LoadOptions {
        LoadOptions {
            search: self.search(),
            ..LoadOptions::of(source)
        }
    }

    /// Where files are looked for, where no option says otherwise.
    #[must_use]
    pub fn search(&self) -> SearchPaths {
        SearchPaths {
            buildid_dir: self.buildid_dir(false),
            debuginfod: self.debuginfod.clone(),
            ..SearchPaths::default()
        }
    }

    /// The build-ID cache: the configuration's, or that in the home folder.
    fn buildid_dir(&self, no_config: bool) -> Option<PathBuf> {
        let home = self.home.as_deref();
        let default = || home.map(|home| home.join(CACHE));
        let config = self.config(no_config);
        config.buildid_dir(home).or_else(default)
    }
}
