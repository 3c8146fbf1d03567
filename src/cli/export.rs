//! `pjit export`: a recording as a file for another tool.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::filters::FilterArgs;
use super::input::InputArgs;
use super::target::ReplaceArgs;
use super::terminal::{Output, with_progress};
use super::verb::{leave, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};
use crate::ask::{self, require_samples, shown_event};
use crate::load::{self, LoadOptions};
use crate::needs::Needs;
use crate::output::caption::{Caption, plural};
use crate::output::firefox::{self, FirefoxOptions};
use crate::output::gzip::{self, Effort};
use crate::output::pprof::{self, Label, PprofOptions};
use crate::output::text::harmless;
use crate::output::{speedscope, stacks_csv};
use crate::profile::Profile;
use crate::questions::filter::Filters;
use crate::questions::kinds::OwnRules;

/// Arguments of `pjit export`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  pjit export -o app.pb.gz && go tool pprof -http=:4000 app.pb.gz
  pjit export perf.data -o app.json.gz                open in https://profiler.firefox.com, nothing is uploaded
  pjit export perf.data -o app.speedscope.json        open in https://www.speedscope.app or `npx speedscope`
  pjit export -o all.csv.gz runs/*.data               one row a stack, for DuckDB and other SQL engines

The format follows from the file's name: .json, .json.gz for the Firefox Profiler; .pb, .pb.gz, .pprof;
.speedscope.json, .speedscope.json.gz; .csv, .csv.gz. Pictures and folded stacks: pjit flamegraph, pjit fold.")]
pub struct ExportArgs {
    /// Recordings to read (default: perf.data); several for CSV only
    #[arg(value_name = "FILE", conflicts_with = "input")]
    files: Vec<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// What samples weigh.
    #[command(flatten)]
    weight: WeightArgs,

    /// File to write, `-` for standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", required = true)]
    output: PathBuf,

    #[command(flatten)]
    replace: ReplaceArgs,

    /// What to write, whatever the file is called
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Show the samples of this event (default: all; Firefox: the main one, a clock or cycles if there is one; others are markers)
    #[arg(long, visible_alias = "event-filter", value_name = "NAME")]
    event: Option<String>,

    /// Firefox: a track for each CPU instead of each thread; threads are roots of its stacks
    #[arg(long, visible_alias = "per-cpu-threads")]
    per_cpu: bool,

    /// pprof: labels of samples, of process, pid, thread, tid, cpu, event; or none
    #[arg(
        long,
        value_name = "LIST",
        default_value = "process,pid,thread,tid",
        value_parser = parse_labels
    )]
    labels: Labels,

    /// pprof: keep the N heaviest stacks, the others are [rest] (for servers with limits)
    #[arg(long, value_name = "N")]
    max_stacks: Option<usize>,

    /// speedscope: one entry a stack instead of samples in the order of their times
    #[arg(long)]
    merge: bool,

    /// CSV: one row a sample, with time and CPU
    #[arg(long)]
    samples: bool,

    #[command(flatten)]
    filters: FilterArgs,
}

/// Formats of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For the Firefox Profiler, profiler.firefox.com
    Firefox,
    /// profile.proto, for go tool pprof, Pyroscope, Parca
    Pprof,
    /// For speedscope, www.speedscope.app
    Speedscope,
    /// For spreadsheets and databases
    Csv,
}

impl Format {
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
            format!("no label '{word}'; there are {names}, or none")
        })
    };
    list.split(',')
        .map(label)
        .collect::<Result<_, _>>()
        .map(Labels)
}

impl Verb for ExportArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let by_name = Format::of(&self.output);
        let Some(format) = self.format.or(by_name.map(|(format, _)| format)) else {
            return wrong_usage(&format!(
                "{}: of no known format; name it .json.gz, .pb.gz, .speedscope.json or .csv, or say --format firefox, pprof, \
                 speedscope or csv (pictures: pjit flamegraph; folded stacks: pjit fold)",
                self.output.display()
            ));
        };
        // Tried here; what is read is each recording's own business.
        let mut any = self
            .input
            .load_options(None, context.environment, Needs::empty());
        let filters = match self.filters.apply(&mut any) {
            Ok(filters) => filters,
            Err(text) => return wrong_usage(&text),
        };
        if format != Format::Csv && self.files.len() > 1 {
            return wrong_usage("only CSV takes several recordings");
        }
        let to_stdout = self.output.as_os_str() == "-";
        if to_stdout && format == Format::Pprof && std::io::stdout().is_terminal() {
            return wrong_usage("pprof's format is not for terminals; name a file with -o");
        }
        let packed = by_name.is_some_and(|(_, packed)| packed);
        let path = (!to_stdout).then_some(self.output.as_path());
        let mut out = Output::to(path, self.replace.force_output).context("output")?;
        let line = match format {
            Format::Firefox => self.firefox((context, &filters), packed, &mut out)?,
            Format::Pprof => self.pprof((context, &filters), &mut out)?,
            Format::Speedscope => self.speedscope((context, &filters), packed, &mut out)?,
            Format::Csv => self.csv((context, &filters), packed, &mut out)?,
        };
        out.finish().context("output")?;
        if !to_stdout {
            let name = self.output.display().to_string();
            writeln!(std::io::stderr(), "{}: {line}", harmless(&name))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
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
    let mut packer = gzip::Packer::new(out, threads, effort).context("output")?;
    let done = write(&mut packer)?;
    packer.finish().context("output")?;
    Ok(done)
}

/// What an export works with: the process, and which stacks are wanted.
type Asked<'a> = (&'a Context<'a>, &'a Filters);

impl ExportArgs {
    fn options(
        &self,
        file: Option<&PathBuf>,
        (context, _): Asked<'_>,
        needs: Needs,
    ) -> LoadOptions {
        let mut load = self.input.load_options(file, context.environment, needs);
        self.weight.apply(&mut load, self.input.force, true);
        let _ = self.filters.apply(&mut load);
        load
    }

    fn load(&self, load: &LoadOptions, (context, filters): Asked<'_>) -> anyhow::Result<Profile> {
        let mut profile = with_progress(context.diag, || load::load(load, context.diag))?;
        require_samples(&profile)?;
        ask::filter(&mut profile, filters, &OwnRules::default())?;
        Ok(profile)
    }

    /// The same without the samples of events that were not asked for.
    fn load_event(&self, load: &LoadOptions, asked: Asked<'_>) -> anyhow::Result<Profile> {
        let mut profile = self.load(load, asked)?;
        if self.event.is_some() {
            let event = shown_event(&profile, self.event.as_deref())?;
            profile.entries.retain(|entry| entry.event == event);
            profile.samples.retain(|sample| sample.event == event);
        }
        Ok(profile)
    }

    fn pprof(&self, asked: Asked<'_>, out: &mut Output) -> anyhow::Result<String> {
        let options = PprofOptions {
            labels: self.labels.0.clone(),
            max_stacks: self.max_stacks,
        };
        let load = self.options(self.files.first(), asked, options.needs());
        let profile = self.load_event(&load, asked)?;
        // As Go packs profiles: by the quickest level, or nearly.
        let effort = Effort::Quick.for_functions(profile.symbols.len());
        let written = put(Some(effort), load.reading.threads, out, |out| {
            pprof::write(&profile, &options, out).context("output")
        })?;
        leave(profile);
        let rest = match written.left_out {
            0 => String::new(),
            count => format!(" ({count} more as [rest])"),
        };
        Ok(format!(
            "{}{rest} of {}; go tool pprof -http=: {}",
            plural(written.stacks, "stack"),
            plural(written.functions, "function"),
            self.output.display()
        ))
    }

    fn firefox(&self, asked: Asked<'_>, packed: bool, out: &mut Output) -> anyhow::Result<String> {
        let mut load = self.options(self.files.first(), asked, firefox::NEEDS);
        let is_whole = asked.1.is_empty() && load.filter.keeps_all() && load.time.is_none();
        let has_waits = is_whole && self.weight.spec().keeps_events();
        load.needs |= Needs::WAITS.only_if(has_waits);
        let profile = self.load(&load, asked)?;
        let options = FirefoxOptions {
            event: shown_event(&profile, self.event.as_deref())?,
            per_cpu: self.per_cpu,
        };
        let has_cpu = profile.samples.iter().any(|sample| sample.cpu.is_some());
        anyhow::ensure!(
            has_cpu || !self.per_cpu,
            "--per-cpu: {} does not tell CPUs (perf record --sample-cpu)",
            profile.recording.path
        );
        let written = put(
            packed.then_some(Effort::UntilLarge.for_functions(profile.symbols.len())),
            load.reading.threads,
            out,
            |out| firefox::write(&profile, options, out).context("output"),
        )?;
        let shown = Caption::of(&profile, options.event).shown;
        leave(profile);
        let kind = if self.per_cpu { "CPU" } else { "thread" };
        Ok(format!(
            "{shown}, {}, {}; open it in https://profiler.firefox.com",
            plural(written.tracks, kind),
            plural(written.markers, "marker")
        ))
    }

    fn speedscope(
        &self,
        asked: Asked<'_>,
        packed: bool,
        out: &mut Output,
    ) -> anyhow::Result<String> {
        let needs = speedscope::NEEDS | Needs::SAMPLES.only_if(!self.merge);
        let load = self.options(self.files.first(), asked, needs);
        let profile = self.load_event(&load, asked)?;
        let written = put(
            packed.then_some(Effort::Small),
            load.reading.threads,
            out,
            |out| speedscope::write(&profile, out).context("output"),
        )?;
        anyhow::ensure!(
            written.is_whole,
            "more than {} MB, which no browser opens; --merge makes it smaller, and speedscope reads pprof's format \
             (-o X.pb.gz)",
            speedscope::LARGEST >> 20
        );
        leave(profile);
        Ok(format!(
            "{}; open it in https://www.speedscope.app",
            plural(written.profiles, "profile")
        ))
    }

    fn csv(&self, asked: Asked<'_>, packed: bool, out: &mut Output) -> anyhow::Result<String> {
        let threads = self.options(None, asked, Needs::empty()).reading.threads;
        put(packed.then_some(Effort::Small), threads, out, |out| {
            self.csv_rows(asked, out)
        })
    }

    /// One recording after the other, so that there is never more than one in memory.
    fn csv_rows(&self, asked: Asked<'_>, out: &mut dyn Write) -> anyhow::Result<String> {
        stacks_csv::write_heading(self.samples, out)?;
        let files: Vec<Option<&PathBuf>> = match self.files.as_slice() {
            [] => vec![None],
            files => files.iter().map(Some).collect(),
        };
        let mut rows = 0;
        for file in &files {
            let load = self.options(*file, asked, stacks_csv::needs(self.samples));
            let profile = self.load_event(&load, asked)?;
            rows += stacks_csv::write(&profile, self.samples, load.reading.threads, out)?;
        }
        let files = plural(files.len(), "recording");
        Ok(format!("{} of {files}", plural(rows, "row")))
    }
}
