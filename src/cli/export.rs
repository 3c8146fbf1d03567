//! `pjit export`: a recording as a file for another tool.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::filters::FilterArgs;
use super::input::{InputArgs, SeveralArgs};
use super::labels::LabelArgs;
use super::page::Page;
use super::record::parse_bytes;
use super::target::ReplaceArgs;
use super::terminal::{Output, with_progress};
use super::verb::{answered, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};
use crate::ask::{
    Arena, AskError, Export, Exported, Library, Request, Written, ask_each, forget_large,
};
use crate::diagnostics::Diagnostics;
use crate::load::LoadOptions;
use crate::output::caption::plural;
#[cfg(feature = "dataset")]
use crate::output::dataset::DatasetOptions;
use crate::output::gzip::{self, Effort};
use crate::output::pprof::{Label, PprofOptions};
use crate::output::stacks_csv;
use crate::output::text::harmless;
use crate::tags::Tags;

pub(super) const PAGE: Page = Page {
    examples: &[
        (
            "pjit export -o app.json.gz",
            "for https://profiler.firefox.com",
        ),
        (
            "pjit export -o app.pb.gz",
            "for go tool pprof -http=: app.pb.gz",
        ),
        (
            "pjit export -o app.speedscope.json",
            "for https://www.speedscope.app",
        ),
        (
            "pjit export -o all.csv.gz runs/*.data",
            "a row for each stack, for SQL",
        ),
        (
            "pjit export --format parquet -o ROOT runs/*.data",
            "tables for SQL engines",
        ),
    ],
    short: &[
        "output",
        "format",
        "event",
        "per-cpu",
        "labels",
        "label",
        "max-stacks",
        "merge",
        "wall",
        "samples",
        "weight",
    ],
    notes: "The file name decides the format: .json for the Firefox Profiler; .pb or .pprof; .speedscope.json; .csv; each with .gz too. Both web pages read the file in your browser. For pictures and folded stacks, use pjit flamegraph and pjit fold.",
};

/// Arguments of `pjit export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Recordings to read [default: perf.data]; several for pprof, added up, CSV and parquet
    #[arg(value_name = "FILE", conflicts_with = "input")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    several: SeveralArgs,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// What samples weigh.
    #[command(flatten)]
    weight: WeightArgs,

    /// Write to FILE, or - for standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", required = true)]
    output: PathBuf,

    #[command(flatten)]
    replace: ReplaceArgs,

    /// Write this format, whatever the file is called
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,

    /// Only this event [default: all; Firefox: the main one, others are markers]
    #[arg(long, visible_alias = "event-filter", value_name = "NAME")]
    event: Option<String>,

    /// Firefox: make a track for each CPU instead of each thread
    #[arg(long, visible_alias = "per-cpu-threads")]
    per_cpu: bool,

    /// pprof: labels, also cpu and event, or none
    #[arg(
        long,
        value_name = "LIST",
        default_value = "process,pid,thread,tid,package,activity",
        value_parser = parse_labels
    )]
    labels: Labels,

    /// pprof: keep the N heaviest stacks; the others are [rest]
    #[arg(long, value_name = "N")]
    max_stacks: Option<usize>,

    /// pprof: keep so many stacks that the file, unpacked, has at most N bytes (4M)
    #[arg(long, value_name = "N", value_parser = parse_bytes)]
    max_bytes: Option<u64>,

    #[command(flatten)]
    label: LabelArgs,

    /// speedscope: write one entry for each stack, without time
    #[arg(long)]
    merge: bool,

    /// speedscope: keep times without a sample in their place
    #[arg(long, conflicts_with = "merge")]
    wall: bool,

    /// CSV, parquet: write a row for each sample, with time and CPU
    #[arg(long)]
    samples: bool,

    #[command(flatten)]
    filters: FilterArgs,
}

/// Formats of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// For the Firefox Profiler, profiler.firefox.com
    Firefox,
    /// profile.proto, for go tool pprof, Pyroscope, Parca
    Pprof,
    /// For speedscope, www.speedscope.app
    Speedscope,
    /// For spreadsheets and databases
    Csv,
    /// A folder of tables of many recordings, for SQL engines
    Parquet,
}

impl ExportFormat {
    /// By the end of a file's name, and whether it is to be packed.
    fn of(path: &Path) -> Option<(Self, bool)> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (stem, packed) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (name.as_str(), false),
        };
        let ends = |end: &str| stem.ends_with(end);
        if ends(".pb") || ends(".pprof") {
            // pprof's files are packed whatever they are called.
            return Some((Self::Pprof, true));
        }
        if ends(".speedscope.json") {
            return Some((Self::Speedscope, packed));
        }
        if ends(".json") {
            return Some((Self::Firefox, packed));
        }
        ends(".csv").then_some((Self::Csv, packed))
    }
}

#[derive(Debug, Clone)]
struct Labels(Vec<Label>);

fn parse_labels(list: &str) -> Result<Labels, String> {
    if list == "none" {
        return Ok(Labels(Vec::new()));
    }
    let label = |word: &str| {
        let found = Label::NAMES.iter().find(|(name, _)| *name == word);
        found.map(|(_, label)| *label).ok_or_else(|| {
            let names = Label::NAMES.map(|(name, _)| name).join(", ");
            format!("has no label '{word}': one of {names}, none")
        })
    };
    list.split(',')
        .map(label)
        .collect::<Result<_, _>>()
        .map(Labels)
}

impl Verb for ExportArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let by_name = ExportFormat::of(&self.output);
        let Some(format) = self.format.or(by_name.map(|(format, _)| format)) else {
            return Err(wrong_usage(format!(
                "export knows no format for the name {}\nhint: -o x.json.gz, x.pb.gz, x.speedscope.json or x.csv.gz; or --format firefox, pprof, speedscope, csv, parquet",
                self.output.display()
            )));
        };
        self.check_options(format)?;
        let load = self
            .several
            .load_options(&self.files, &self.input, context.environment)
            .map_err(wrong_usage)?;
        if matches!(format, ExportFormat::Firefox | ExportFormat::Speedscope)
            && !load.more.is_empty()
        {
            return Err(wrong_usage(
                "this format takes one recording\nhint: -o all.csv.gz, or all.pb.gz",
            ));
        }
        if self.several.normalizes() && format != ExportFormat::Pprof {
            return Err(wrong_usage(
                "--normalize is for pprof: other formats add up no recordings",
            ));
        }
        let to_stdout = self.output.as_os_str() == "-";
        if to_stdout && format == ExportFormat::Pprof && std::io::stdout().is_terminal() {
            return Err(wrong_usage(
                "pprof's format is not for a terminal\nhint: -o app.pb.gz",
            ));
        }
        let tags = self.tags(format)?;
        let view = match format {
            ExportFormat::Firefox => Export::Firefox {
                per_cpu: self.per_cpu,
            },
            ExportFormat::Pprof => Export::Pprof(PprofOptions {
                labels: self.labels.0.clone(),
                of_recordings: !load.more.is_empty(),
                tags,
                max_stacks: self.max_stacks,
                max_bytes: self.max_bytes,
            }),
            ExportFormat::Speedscope => Export::Speedscope {
                merged: self.merge,
                wall: self.wall,
            },
            ExportFormat::Csv => Export::Csv {
                samples: self.samples,
            },
            ExportFormat::Parquet => return self.dataset(tags, load, context),
        };
        let loads = match format {
            // Rows tell which recording they are of.
            ExportFormat::Csv => load.apart().collect(),
            _ => vec![load],
        };
        let requests = self.requests(&view, loads)?;
        let packed = by_name.is_some_and(|(_, packed)| packed) || format == ExportFormat::Pprof;
        let path = (!to_stdout).then_some(self.output.as_path());
        let mut out = Output::to(path, self.replace.force_output)?;
        let line = match format {
            ExportFormat::Csv => self.csv(&requests, packed, &mut out, context.diag),
            _ => one(&requests, packed, &mut out, context.diag),
        }?;
        out.finish()?;
        if !to_stdout {
            let name = self.output.display().to_string();
            let opened = match format {
                ExportFormat::Firefox => "; open it in https://profiler.firefox.com".to_owned(),
                ExportFormat::Pprof => format!("; go tool pprof -http=: {}", self.output.display()),
                ExportFormat::Speedscope => "; open it in https://www.speedscope.app".to_owned(),
                ExportFormat::Csv | ExportFormat::Parquet => String::new(),
            };
            writeln!(std::io::stderr(), "{}: {line}{opened}", harmless(&name))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }

    fn takes_several(&self) -> bool {
        true
    }
}

/// Writes a file, packed or not.
fn put<T>(
    packed: Option<Effort>,
    threads: usize,
    out: &mut Output,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let Some(effort) = packed else {
        return write(out);
    };
    let mut packer = gzip::Packer::new(out, threads, effort).context("cannot write the output")?;
    let done = write(&mut packer)?;
    packer.finish().context("cannot write the output")?;
    Ok(done)
}

/// Writes a recording, and says in words what of it.
fn one(
    requests: &[Request<Export>],
    packed: bool,
    out: &mut Output,
    diag: &Diagnostics,
) -> anyhow::Result<String> {
    let Some(request) = requests.first() else {
        return Ok(String::new());
    };
    let exported = answered(request, diag)?;
    let effort = packed.then(|| exported.effort());
    let written = put(effort, request.load.reading.threads, out, |out| {
        exported.write(out).context("cannot write the output")
    })?;
    forget_large(exported);
    Ok(match written {
        Written::File(text) => text,
        Written::Rows(rows) => plural(rows, "row"),
    })
}

impl ExportArgs {
    /// Refuses what another format has.
    fn check_options(&self, format: ExportFormat) -> anyhow::Result<()> {
        use ExportFormat::{Csv, Firefox, Parquet, Pprof, Speedscope};
        let options = [
            ("--per-cpu", self.per_cpu, &[Firefox][..]),
            ("--max-stacks", self.max_stacks.is_some(), &[Pprof]),
            ("--max-bytes", self.max_bytes.is_some(), &[Pprof]),
            ("--label", self.label.is_given(), &[Pprof, Parquet]),
            ("--merge", self.merge, &[Speedscope]),
            ("--wall", self.wall, &[Speedscope]),
            ("--samples", self.samples, &[Csv, Parquet]),
        ];
        let mut given = options.iter().filter(|(_, is_given, _)| *is_given);
        let Some((option, _, of)) = given.find(|(.., of)| !of.contains(&format)) else {
            return Ok(());
        };
        let values: Vec<_> = of
            .iter()
            .filter_map(ExportFormat::to_possible_value)
            .collect();
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        Err(wrong_usage(format!(
            "{option} is for {} alone\nhint: --format {}",
            names.join(" and "),
            names.first().unwrap_or(&"pprof")
        )))
    }

    /// The labels that were given; a sample of pprof has none of them already.
    fn tags(&self, format: ExportFormat) -> anyhow::Result<Tags> {
        let tags = self.label.tags()?;
        let is_taken = |name: &str| format == ExportFormat::Pprof && tags.get(name).is_some();
        match Label::NAMES.iter().find(|(name, _)| is_taken(name)) {
            Some((name, _)) => Err(wrong_usage(format!(
                "--label cannot give '{name}', which samples have from the recording"
            ))),
            None => Ok(tags),
        }
    }

    /// Writes tables into a folder.
    #[cfg(feature = "dataset")]
    fn dataset(
        &self,
        tags: Tags,
        load: LoadOptions,
        context: &Context<'_>,
    ) -> anyhow::Result<ExitCode> {
        let view = DatasetOptions {
            times: self.samples,
            tags,
        };
        let requests = self.requests(&view, load.apart().collect())?;
        super::dataset::write(&requests, &self.output, context.diag)
    }

    /// Says where there is a pjit that does.
    #[cfg(not(feature = "dataset"))]
    #[expect(clippy::unused_self, reason = "the other one writes what it says")]
    fn dataset(&self, _: Tags, _: LoadOptions, _: &Context<'_>) -> anyhow::Result<ExitCode> {
        Err(wrong_usage(
            "this pjit was built without the dataset, which packages have\nhint: cargo install --path . --locked --features dataset",
        ))
    }

    /// What is asked for of each recording.
    fn requests<Q: Clone>(
        &self,
        view: &Q,
        loads: Vec<LoadOptions>,
    ) -> anyhow::Result<Vec<Request<Q>>> {
        let requests = loads.into_iter();
        let requests = requests.map(|load| self.request(load, view.clone()));
        requests.collect::<Result<_, _>>().map_err(wrong_usage)
    }

    /// What is asked for of a recording.
    fn request<Q>(&self, mut load: LoadOptions, view: Q) -> Result<Request<Q>, String> {
        self.weight.apply(&mut load, self.input.force, true);
        let filters = self.filters.apply(&mut load)?;
        Ok(Request {
            event: self.event.clone(),
            filters,
            ..Request::of(load, view)
        })
    }

    /// Writes one recording after the other, so that there is never more than one in memory.
    fn csv(
        &self,
        requests: &[Request<Export>],
        packed: bool,
        out: &mut Output,
        diag: &Diagnostics,
    ) -> anyhow::Result<String> {
        let threads = requests
            .first()
            .map_or(1, |request| request.load.reading.threads);
        put(packed.then_some(Effort::Small), threads, out, |out| {
            stacks_csv::write_heading(self.samples, out)?;
            let mut rows = 0;
            let (mut files, mut failures) = (0_usize, Vec::new());
            let each = |answer: Result<Exported, AskError>| {
                match answer {
                    Ok(exported) => {
                        files += 1;
                        if let Written::Rows(more) = exported.write(out)? {
                            rows += more;
                        }
                    }
                    Err(error) => failures.push(error),
                }
                anyhow::Ok(())
            };
            let arena = Arena::new();
            let library = Library::of_one_question(&arena, diag);
            with_progress(diag, || ask_each(requests, &library, each))?;
            if files == 0 && !failures.is_empty() {
                return Err(failures.swap_remove(0).into());
            }
            let whys: Vec<String> = failures.iter().map(AskError::to_string).collect();
            diag.leave_out(&whys, requests.len());
            let files = plural(files, "recording");
            Ok(format!("{} of {files}", plural(rows, "row")))
        })
    }
}
