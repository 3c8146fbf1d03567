//! `pjit bundle`: a recording with everything that reading it takes, in one folder or archive.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::ask::{Bundle, Request, forget_large};
use crate::assembly;
use crate::bundle::{Item, Plan, Wanted};
use crate::find::{KALLSYMS_PACKED, SourcePaths};
use crate::input::{BUNDLE_KERNEL, BUNDLE_LIST, BUNDLE_MARK, Rights, Role};
use crate::load::{LoadOptions, Source};
use crate::output::gzip::{self, Effort};
use crate::output::text::harmless;

use super::annotate::{SourceArgs, source_roots};
use super::input::InputArgs;
use super::less::{Less, OfBundle};
use super::named::Named;
use super::page::Page;
use super::parcel::{Content, Folder, Parcel, modified_of};
use super::verb::{answered, wrong_usage};
use super::{Context, Verb};

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit bundle", "perf.data as perf.bundle.tar.gz"),
        ("pjit bundle --slim -o run7.tar.gz", "much smaller"),
        ("ssh server 'cd runs && pjit bundle -o -' > runs.tar.gz", ""),
        (
            "tar xzf perf.bundle.tar.gz && pjit report perf.bundle",
            "on the other machine",
        ),
    ],
    short: &["output", "slim", "without-source", "source-root"],
    notes: "Every view reads a bundle without options, and takes nothing else from the machine. -o never replaces a file.",
};

/// Arguments of `pjit bundle`.
#[derive(Debug, Clone, Args)]
pub struct BundleArgs {
    #[command(flatten)]
    input: Less<OfBundle>,

    /// Recording to pack [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// Folder or archive to make, or - [default: NAME.bundle.tar.gz]
    #[arg(short = 'o', long = "output", value_name = "DIR|X.tar.gz")]
    output: Option<PathBuf>,

    /// Keep only the parts of programs and debug files that views read
    #[arg(long = "slim")]
    slim: bool,

    /// Leave out sources and scripts
    #[arg(long = "without-source")]
    without_source: bool,

    /// Where sources are.
    #[command(flatten)]
    sources: SourceArgs,
}

/// Where the bundle goes.
struct Target {
    /// None for standard output.
    path: Option<PathBuf>,
    is_archive: bool,
    /// The folder's name, in an archive too.
    name: PathBuf,
}

const STREAM: &str = "bundle cannot pack a stream\nhint: save it to a file first";

impl Verb for BundleArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        let recording = match &load.source {
            Source::File(path) if path.is_file() || path.is_dir() => path.clone(),
            Source::Default if Path::new("perf.data").exists() => PathBuf::from("perf.data"),
            Source::File(path) if path.exists() => return Err(wrong_usage(STREAM)),
            Source::Stdin => return Err(wrong_usage(STREAM)),
            Source::File(path) => path.clone(),
            Source::Default => PathBuf::from("perf.data"),
        };
        let target = self.target(&recording);
        if target.path.is_none() && std::io::stdout().is_terminal() {
            return Err(wrong_usage(
                "an archive is not for a terminal\nhint: -o FILE.tar.gz",
            ));
        }
        let begun = target.begin(load.reading.threads);
        let mut parcel = begun.with_context(|| target.shown())?;
        let request = self.request(LoadOptions {
            source: Source::File(recording.clone()),
            ..load
        });
        let bundled = answered(&request, context.diag)?;
        let plan = &bundled.plan;
        let mut packed = Packed::default();
        packed.add_recording(plan, &mut parcel)?;
        packed.add_items(&recording, plan, &mut parcel)?;
        packed.add_list(&recording, &plan.kernel, &mut parcel)?;
        parcel.finish().with_context(|| target.shown())?;
        forget_large(bundled);
        writeln!(std::io::stderr(), "{}", harmless(&packed.summary(&target)))?;
        Ok(ExitCode::SUCCESS)
    }

    fn named(&self) -> Vec<Named<'_>> {
        let roots = source_roots(self.sources.roots());
        self.input.named().into_iter().chain(roots).collect()
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl BundleArgs {
    /// What is asked for: everything that any view may want, with the code and the sources of all functions with samples.
    fn request(&self, load: LoadOptions) -> Request<Bundle> {
        let code = assembly::Request {
            lines: true,
            sources: !self.without_source,
            paths: SourcePaths {
                recorded: None,
                ..self.sources.paths(&load)
            },
            ..assembly::Request::default()
        };
        let wanted = Wanted {
            slim: self.slim,
            without_source: self.without_source,
        };
        Request::of(load, Bundle { wanted, code })
    }

    fn target(&self, recording: &Path) -> Target {
        let mut name = named_after(recording).to_owned();
        name.push(".bundle");
        let Some(output) = &self.output else {
            let mut path = name.clone();
            path.push(".tar.gz");
            return Target {
                path: Some(path.into()),
                is_archive: true,
                name: name.into(),
            };
        };
        let file_name = output.file_name().unwrap_or_default().to_string_lossy();
        let stem = [".tar.gz", ".tgz"]
            .iter()
            .find_map(|ending| file_name.strip_suffix(ending));
        let is_stdout = output.as_os_str() == "-";
        Target {
            path: (!is_stdout).then(|| output.clone()),
            is_archive: is_stdout || stem.is_some(),
            name: stem
                .filter(|stem| !stem.is_empty())
                .map_or_else(|| name.into(), PathBuf::from),
        }
    }
}

/// The name of a recording: that of its folder where it is called as all are.
fn named_after(recording: &Path) -> &OsStr {
    let folder = recording.parent().and_then(Path::file_name);
    let is_any = recording
        .file_name()
        .is_some_and(|name| name == "perf.data");
    let stem = recording.file_stem().unwrap_or_default();
    folder.filter(|_| is_any).unwrap_or(stem)
}

impl Target {
    fn shown(&self) -> String {
        let path = self.path.as_deref().unwrap_or(Path::new("-"));
        path.display().to_string()
    }

    fn begin(&self, threads: usize) -> std::io::Result<Parcel> {
        match &self.path {
            Some(path) if !self.is_archive => Folder::new(path).map(Parcel::Folder),
            path => Parcel::archive(path.as_deref(), self.name.clone(), threads),
        }
    }
}

/// Files and bytes of one kind.
#[derive(Default, Clone, Copy)]
struct Size {
    files: usize,
    /// As they are.
    whole: u64,
    /// As they were written.
    kept: u64,
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.whole += other.whole;
        self.kept += other.kept;
    }
}

/// What was packed.
#[derive(Default)]
struct Packed {
    recording: Size,
    /// Who may read the recording.
    rights: Option<Rights>,
    /// By [`Role`]: programs, debug files, kernel, JIT, sources.
    roles: [Size; 5],
    lines: Vec<String>,
    missing: Vec<String>,
    missing_sources: usize,
}

impl Packed {
    fn add(
        &mut self,
        place: &Path,
        mut content: Content,
        modified: u64,
        parcel: &mut Parcel,
    ) -> std::io::Result<Size> {
        let size = Size {
            files: 1,
            whole: content.len,
            kept: content.size(),
        };
        parcel.add(place, &mut content, modified)?;
        self.lines.push(format!(
            "{:>12} {:>12}  {}",
            size.kept,
            size.whole,
            harmless(&place.display().to_string())
        ));
        Ok(size)
    }

    /// The recording: a file, or those of the folder that `perf record --threads` makes that were read. What else lies there is
    /// no part of it.
    fn add_recording(&mut self, plan: &Plan, parcel: &mut Parcel) -> anyhow::Result<()> {
        ensure!(
            !plan.recording.is_empty(),
            "the recording itself was not found among the files that were read"
        );
        for (name, origin) in &plan.recording {
            let place = Path::new("perf.data");
            let place = name
                .as_ref()
                .map_or(place.to_owned(), |name| place.join(name));
            let content = Content::open(origin)?;
            let modified = content.modified;
            self.rights = Some(content.rights);
            let size = self.add(&place, content, modified, parcel)?;
            self.recording += size;
        }
        Ok(())
    }

    /// What cannot be written here, as names that are too long for this file system, is left out and said.
    fn add_items(
        &mut self,
        recording: &Path,
        plan: &Plan,
        parcel: &mut Parcel,
    ) -> anyhow::Result<()> {
        let modified = modified_of(recording);
        self.missing = plan.missing.clone();
        self.missing_sources = plan.missing_sources;
        for item in &plan.items {
            let added = content_of(item)
                .and_then(|content| Ok(self.add(&item.place, content, modified, parcel)?));
            match added {
                Ok(size) => self.roles[number(item.role)] += size,
                Err(error) if is_fatal(&error, parcel) => return Err(error),
                Err(error) => self
                    .missing
                    .push(format!("{}: {error}", item.place.display())),
            }
        }
        Ok(())
    }

    fn add_list(
        &mut self,
        recording: &Path,
        kernel: &str,
        parcel: &mut Parcel,
    ) -> anyhow::Result<()> {
        let mut text = format!(
            "{BUNDLE_MARK}{BUNDLE_KERNEL}{}\n\
             Made by pjit {}. Read it with: pjit report FOLDER\n\n\
             {:>12} {:>12}  file\n",
            harmless(kernel),
            env!("CARGO_PKG_VERSION"),
            "bytes",
            "of"
        );
        let lines = self.lines.iter().map(String::as_str);
        text.extend(lines.flat_map(|line| [line, "\n"]));
        if !self.missing.is_empty() {
            text.push_str("\nNot here:\n");
            for line in &self.missing {
                text.push_str(&format!("  {}\n", harmless(line)));
            }
        }
        let modified = modified_of(recording);
        self.add(
            Path::new(BUNDLE_LIST),
            Content::of_bytes(text.into_bytes(), self.rights.unwrap_or(Rights::PRIVATE)),
            modified,
            parcel,
        )?;
        Ok(())
    }

    fn summary(&self, target: &Target) -> String {
        const NAMES: [&str; 5] = [
            "programs",
            "debug files",
            "kernel symbols",
            "dumps and maps",
            "sources",
        ];
        let size = |size: &Size| {
            if size.kept == size.whole {
                megabytes(size.kept)
            } else {
                format!("{} (of {})", megabytes(size.kept), megabytes(size.whole))
            }
        };
        let mut parts = vec![format!("recording {}", size(&self.recording))];
        for (name, own) in NAMES.iter().zip(&self.roles) {
            if own.files > 0 {
                let files = if own.files == 1 { "file" } else { "files" };
                parts.push(format!("{name} {} in {} {files}", size(own), own.files));
            }
        }
        let name = target.shown();
        let written = target.path.as_ref().filter(|_| target.is_archive);
        let written = written.and_then(|path| std::fs::metadata(path).ok());
        let written =
            written.map_or_else(String::new, |meta| format!("{}: ", megabytes(meta.len())));
        let folder = match (&target.path, target.is_archive) {
            (Some(path), false) => format!("pjit report {}", path.display()),
            _ => format!("tar xzf {name} && pjit report {}", target.name.display()),
        };
        format!(
            "{name}: {written}{}{}; {folder}",
            parts.join(", "),
            self.without()
        )
    }

    /// What is not in it.
    fn without(&self) -> String {
        /// So many are named.
        const MOST: usize = 3;
        let mut said: Vec<String> = self.missing.iter().take(MOST).cloned().collect();
        let more = self.missing.len().saturating_sub(MOST);
        if more > 0 {
            said.push(format!("{more} more ({BUNDLE_LIST} lists them)"));
        }
        match self.missing_sources {
            0 => {}
            1 => said.push("1 source file".to_owned()),
            count => said.push(format!("{count} source files")),
        }
        if said.is_empty() {
            return String::new();
        }
        format!("; without {}", said.join(", "))
    }
}

/// The bytes of a file; kernel symbols are packed.
fn content_of(item: &Item) -> anyhow::Result<Content> {
    let mut content = Content::open(&item.origin)?;
    if item.place == Path::new(KALLSYMS_PACKED) {
        let text = content.read()?;
        if text.starts_with(&[0x1f, 0x8b]) {
            return Ok(content.made_into(text));
        }
        let mut packed = Vec::new();
        gzip::write(&text, 1, Effort::Small, &mut packed)?;
        return Ok(content.made_into(packed));
    }
    Ok(match &item.kept {
        Some(kept) => content.reduced(kept),
        None => content,
    })
}

/// Whether an error is of what is written, and not of what is read or named. Of an archive nothing can be taken back.
fn is_fatal(error: &anyhow::Error, parcel: &Parcel) -> bool {
    use std::io::ErrorKind as Kind;
    let io = error.downcast_ref::<std::io::Error>();
    let io = io.map(std::io::Error::kind);
    let is_full = matches!(
        io,
        Some(Kind::StorageFull | Kind::QuotaExceeded | Kind::BrokenPipe | Kind::WriteZero)
    );
    is_full || io.is_some() && matches!(parcel, Parcel::Archive(..))
}

const fn number(role: Role) -> usize {
    match role {
        Role::Program => 0,
        Role::Debug | Role::CheckedDebug => 1,
        Role::Kernel => 2,
        Role::Jit => 3,
        Role::Source => 4,
    }
}

pub(super) fn megabytes(bytes: u64) -> String {
    match bytes {
        0..=99_999 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
