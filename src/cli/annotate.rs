//! `pjit annotate`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::ask::{Annotate, Request, forget_large};
use crate::assembly::{self, Assembly};
use crate::code::{self, Column, NotFound, Options, Outcome, PercentType, Selection};
use crate::diagnostics::Diagnostics;
use crate::disasm::Syntax;
use crate::dso::NameStyle;
use crate::dso::demangle::demangle;
use crate::find::SourcePaths;
use crate::load::LoadOptions;
use crate::output::annotate::write;
use crate::output::text::harmless;

use super::filters::{StackFilterArgs, TaskFilterArgs, WhenArgs};
use super::input::{Environment, InputArgs};
use super::named::{Named, Wanted};
use super::page::Page;
use super::report::When;
use super::terminal::{Output, colored};
use super::verb::{Context, Verb, answered, no_color, wrong_usage};
use crate::time_spec::parse_cpus;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit annotate spin", "one function"),
        ("pjit annotate", "all functions, heaviest first"),
        (
            "pjit annotate -l --percent-limit 5",
            "with a summary by line",
        ),
        (
            "pjit annotate -s hot::spin --source-root ~/src/hot --asm-raw",
            "",
        ),
        (
            "pjit annotate parse --hide '^mem'",
            "what memcpy costs at its calls",
        ),
        (
            "pjit annotate --focus handle_request",
            "only below that function",
        ),
    ],
    short: &[
        "symbol",
        "print-line",
        "percent-limit",
        "no-source",
        "asm-raw",
        "disassembler-style",
        "merge-versions",
        "source-root",
        "vmlinux",
        "dsos",
    ],
    notes: "Exit status: 0, 1 if pjit cannot show what you asked for, 2 for wrong arguments.",
};

/// Arguments of `pjit annotate`.
// perf has -f; there is nothing here that it could force.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("force", |arg| arg.hide(true)))]
pub struct AnnotateArgs {
    /// Only this function, by its name or the beginning of one name
    #[arg(value_name = "SYMBOL")]
    positional: Option<String>,

    /// The recording and its companions.
    #[command(flatten)]
    input: InputArgs,

    /// What is shown.
    #[command(flatten)]
    what: WhatArgs,

    /// Which tasks' samples.
    #[command(flatten)]
    tasks: TaskFilterArgs,

    /// Which samples, and which frames of theirs.
    #[command(flatten)]
    stacks: StackFilterArgs,

    /// How it is shown.
    #[command(flatten)]
    layout: LayoutArgs,

    /// Where sources are.
    #[command(flatten)]
    sources: SourceArgs,

    /// Options of perf without effect here.
    #[command(flatten)]
    perf: PerfArgs,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What")]
struct WhatArgs {
    /// Only this function (repeatable)
    #[arg(short = 's', long = "symbol", value_name = "SYMBOL")]
    symbols: Vec<String>,

    /// Only functions whose name contains this
    #[arg(long = "symbol-filter", value_name = "TEXT")]
    symbol_filter: Option<String>,

    /// Only functions of these programs and libraries
    #[arg(
        short = 'd',
        long = "dsos",
        value_name = "DSO,...",
        value_delimiter = ','
    )]
    dsos: Vec<String>,

    /// Only these CPUs, such as 0-2,5
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    cpu: Option<String>,

    #[command(flatten)]
    when: WhenArgs,

    /// Leave out functions below this share
    #[arg(long = "percent-limit", value_name = "PERCENT", default_value_t = 0.0)]
    percent_limit: f64,

    /// Show versions of a JIT function together, with a table of them
    #[arg(long = "merge-versions")]
    merge_versions: bool,

    /// Leave out functions whose code is missing
    #[arg(long = "skip-missing")]
    skip_missing: bool,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Layout")]
struct LayoutArgs {
    /// Percentages of local-period, local-hits, global-period, ...
    #[arg(long = "percent-type", value_name = "TYPE", value_parser = percent_type, default_value = "local-period")]
    percent_type: PercentType,

    /// Show numbers of samples instead of percentages
    #[arg(short = 'n', long = "show-nr-samples")]
    show_nr_samples: bool,

    /// Show periods instead of percentages
    #[arg(long = "show-total-period", conflicts_with = "show_nr_samples")]
    show_total_period: bool,

    /// Show all events side by side
    #[arg(long = "group")]
    group: bool,

    /// Add a summary by source line, and lines after instructions
    #[arg(short = 'l', long = "print-line")]
    print_line: bool,

    /// Show whole paths of files
    #[arg(short = 'P', long = "full-paths")]
    full_paths: bool,

    /// Show source lines between instructions (default)
    #[arg(long = "source", overrides_with = "no_source")]
    source: bool,

    /// Show no source lines
    #[arg(long = "no-source", overrides_with = "source")]
    no_source: bool,

    /// Show the bytes of instructions
    #[arg(long = "asm-raw")]
    asm_raw: bool,

    /// Syntax of x86 operands: att or intel
    #[arg(short = 'M', long = "disassembler-style", value_name = "STYLE", value_parser = syntax, default_value = "att")]
    syntax: Syntax,

    /// Colours: auto, always or never
    #[arg(long = "color", visible_alias = "stdio-color", value_name = "WHEN", value_enum, num_args = 0..=1,
          default_missing_value = "always")]
    color: Option<When>,

    /// Don't use a pager
    #[arg(long = "no-pager")]
    no_pager: bool,
}

/// Where sources are looked for.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sources")]
pub(super) struct SourceArgs {
    /// Look for sources in this folder, by the ends of their paths (repeatable)
    #[arg(long = "source-root", value_name = "DIR")]
    source_root: Vec<PathBuf>,

    /// Put this folder before the paths of sources
    #[arg(long = "prefix", value_name = "DIR")]
    prefix: Option<PathBuf>,

    /// Remove N folders from the paths of sources, before --prefix
    #[arg(long = "prefix-strip", value_name = "N", default_value_t = 0)]
    prefix_strip: usize,
}

#[derive(Debug, Clone, Args)]
struct PerfArgs {
    /// As perf's plain text (the default)
    #[arg(long = "stdio", hide = true)]
    stdio: bool,
    #[arg(long = "stdio2", hide = true)]
    stdio2: bool,
    #[arg(short = 'q', long = "quiet", hide = true)]
    quiet: bool,
    #[arg(long = "objdump", value_name = "PROGRAM", hide = true)]
    objdump: Option<String>,
    #[arg(long = "addr2line", value_name = "PROGRAM", hide = true)]
    addr2line: Option<String>,
    #[arg(long = "tui", hide = true)]
    tui: bool,
    #[arg(long = "gtk", hide = true)]
    gtk: bool,
    #[arg(short = 'D', long = "dump-raw-trace", hide = true)]
    dump: bool,
    #[arg(long = "data-type", hide = true)]
    data_type: bool,
    #[arg(long = "insn-stat", hide = true)]
    insn_stat: bool,
    #[arg(long = "code-with-type", hide = true)]
    code_with_type: bool,
    #[arg(long = "itrace", value_name = "OPTIONS", num_args = 0..=1, hide = true)]
    itrace: Option<Option<String>>,
}

fn percent_type(name: &str) -> Result<PercentType, String> {
    let known = PercentType::NAMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<&str> = PercentType::NAMES.iter().map(|(each, _)| *each).collect();
        format!("takes {}", names.join(", "))
    })
}

fn syntax(name: &str) -> Result<Syntax, String> {
    match name {
        "att" => Ok(Syntax::Att),
        "intel" => Ok(Syntax::Intel),
        _ => Err("takes att or intel".to_owned()),
    }
}

impl PerfArgs {
    /// What pjit does not do.
    fn refused(&self) -> Option<&'static str> {
        let options = [
            (self.tui, "pjit has no --tui: it prints text"),
            (self.gtk, "pjit has no --gtk: it prints text"),
            (
                self.dump,
                "pjit has no -D\nhint: perf report -D shows raw records",
            ),
            (
                self.data_type,
                "pjit has no --data-type: it knows no types of data",
            ),
            (
                self.insn_stat,
                "pjit has no --insn-stat: it knows no types of data",
            ),
            (
                self.code_with_type,
                "pjit has no --code-with-type: it knows no types of data",
            ),
            (
                self.itrace.is_some(),
                "pjit has no --itrace: it decodes no hardware traces",
            ),
        ];
        let given = options.into_iter().find(|(is_given, _)| *is_given);
        given.map(|(_, text)| text)
    }

    fn warnings(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            (self.stdio2, "--stdio2: printed as --stdio"),
            (
                self.objdump.is_some(),
                "--objdump: not needed, pjit disassembles itself",
            ),
            (
                self.addr2line.is_some(),
                "--addr2line: not needed, pjit reads DWARF itself",
            ),
        ];
        options
            .into_iter()
            .filter(|(is_given, _)| *is_given)
            .map(|(_, text)| text)
    }
}

impl AnnotateArgs {
    /// What is asked for.
    fn request(&self, environment: &Environment) -> Result<Request<Annotate>, String> {
        let mut load = self.input.load_options(None, environment);
        if let Some(list) = &self.what.cpu {
            load.filter.cpus = parse_cpus(list)?;
        }
        let filters = self.stacks.filters(self.tasks.filter())?;
        let filters = self.what.when.apply(&mut load, filters)?;
        let view = Annotate {
            selection: self.selection(),
            objects: self.what.dsos.clone(),
            code: self.code(&load),
            options: self.view(),
        };
        Ok(Request {
            filters,
            ..Request::of(load, view)
        })
    }

    /// As in perf, a name that was asked for is shown however little it has.
    fn percent_limit(&self) -> f64 {
        let is_named = !self.what.symbols.is_empty() || self.positional.is_some();
        if is_named {
            0.0
        } else {
            self.what.percent_limit
        }
    }

    fn selection(&self) -> Selection {
        let names = self.what.symbols.iter().chain(&self.positional);
        let spellings = |name: &String| {
            let mut all = vec![name.clone()];
            for style in [NameStyle::Short, NameStyle::Full] {
                all.push(demangle(name.as_bytes(), style).into_owned());
            }
            all.dedup();
            all
        };
        let symbols: Vec<_> = names.map(spellings).collect();
        Selection {
            percent_limit: self.percent_limit(),
            symbols,
            contains: self.what.symbol_filter.clone(),
        }
    }

    fn view(&self) -> Options {
        Options {
            percent_type: self.layout.percent_type,
            column: match (self.layout.show_nr_samples, self.layout.show_total_period) {
                (true, _) => Column::Samples,
                (_, true) => Column::Period,
                _ => Column::Percent,
            },
            group: self.layout.group,
            full_paths: self.layout.full_paths,
            source: !self.layout.no_source,
            print_lines: self.layout.print_line,
            raw: self.layout.asm_raw,
            merge_versions: self.what.merge_versions,
            percent_limit: self.percent_limit(),
        }
    }

    fn code(&self, load: &LoadOptions) -> assembly::Request {
        assembly::Request {
            syntax: self.layout.syntax,
            lines: !self.layout.no_source || self.layout.print_line,
            sources: !self.layout.no_source,
            only_files: false,
            keeps_sources: true,
            paths: self.sources.paths(load),
        }
    }
}

/// The folders that `--source-root` names.
pub(super) fn source_roots(folders: &[PathBuf]) -> impl Iterator<Item = Named<'_>> {
    folders.iter().map(|path| Named {
        option: "--source-root",
        path,
        wanted: Wanted::Folder,
    })
}

impl SourceArgs {
    /// The folders that were named.
    pub(super) fn roots(&self) -> &[PathBuf] {
        &self.source_root
    }

    /// Where sources are looked for: beside the recording, and where these options say.
    pub(super) fn paths(&self, load: &LoadOptions) -> SourcePaths {
        SourcePaths {
            prefix: self.prefix.clone(),
            strip: self.prefix_strip,
            ..load.sources(&self.source_root)
        }
    }
}

impl Verb for AnnotateArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let diag = context.diag;
        if let Some(text) = self.perf.refused() {
            return Err(wrong_usage(text));
        }
        self.perf
            .warnings()
            .for_each(|text| diag.warn(text.to_owned()));
        let request = self.request(context.environment).map_err(wrong_usage)?;
        let mut annotated = answered(&request, diag)?;
        if let Some(unknown) = &annotated.unknown {
            anyhow::bail!("{}", not_found(unknown, &annotated.assembly));
        }
        let warnings = annotated.assembly.warnings.drain(..);
        warnings.for_each(|line| diag.warn(line));
        let pager = (!self.layout.no_pager).then_some(context.environment.pager.as_str());
        let mut out = Output::open(pager);
        let color = colored(self.layout.color.and_then(When::choice), no_color());
        let (plan, outcome) = annotated.plan();
        for line in annotated.filters() {
            writeln!(out, "# {}", harmless(&line))?;
        }
        write(&plan, color, request.load.reading.threads, &mut out)?;
        out.finish()?;
        let assembly = &annotated.assembly;
        self.say(assembly, &outcome, diag);
        if outcome.shown.is_empty() {
            anyhow::bail!(
                "no function is left to show: {}",
                nothing(assembly, &outcome)
            );
        }
        let unshown = code::unshown(assembly, &request.view.selection, &outcome.shown);
        anyhow::ensure!(unshown.is_empty(), "not shown: {}", unshown.join(", "));
        drop(plan);
        forget_large(annotated);
        Ok(ExitCode::SUCCESS)
    }

    fn named(&self) -> Vec<Named<'_>> {
        let roots = source_roots(&self.sources.source_root);
        self.input.named().into_iter().chain(roots).collect()
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl AnnotateArgs {
    /// What is not in the output, and why.
    fn say(&self, assembly: &Assembly, outcome: &Outcome, diag: &Diagnostics) {
        let is_all = outcome.shown.is_empty();
        let mut said: Vec<&str> = Vec::new();
        let missing = outcome.missing.iter();
        for why in missing.filter(|_| !self.what.skip_missing || is_all) {
            if !said.contains(&why.blame.as_str()) {
                said.push(&why.blame);
                let name = &assembly.functions.all[why.function].name;
                diag.warn(format!("{name}: no code: {} {}", why.blame, why.reason));
            }
        }
        if !outcome.of_others.is_empty() {
            diag.warn(format!(
                "functions that only other events of a group than its first one hit are not shown, as in perf: {}",
                outcome.of_others.len()
            ));
        }
        let is_wanted = self.selection().symbols.is_empty() && !self.what.skip_missing;
        for line in unnamed(assembly, WORTH_SAYING).filter(|_| is_wanted && !is_all) {
            diag.warn(line);
        }
    }
}

/// Per cent of all samples from which on those in no function are worth a word.
const WORTH_SAYING: f64 = 1.0;

/// What is said of samples in no function.
fn unnamed(assembly: &Assembly, from: f64) -> impl Iterator<Item = String> {
    let objects = assembly.functions.unnamed().into_iter();
    objects
        .filter(move |object| object.percent >= from)
        .map(|object| {
            let (path, why) = (object.path, object.why);
            format!(
                "{:.1}% of the samples are in no function: {path} {why}",
                object.percent
            )
        })
}

/// Why nothing was shown.
fn nothing(assembly: &Assembly, outcome: &Outcome) -> String {
    if !outcome.missing.is_empty() {
        return "none has code at hand".to_owned();
    }
    if !outcome.of_others.is_empty() {
        return "the first event of the group hit none of them".to_owned();
    }
    if assembly.functions.all.is_empty() {
        let reasons: Vec<String> = unnamed(assembly, 0.0).take(3).collect();
        return format!("no sample is in one; {}", reasons.join("; "));
    }
    "the filters or --percent-limit hide all of them".to_owned()
}

fn not_found(unknown: &NotFound, assembly: &Assembly) -> String {
    if PathBuf::from(&unknown.name).is_file() {
        return format!(
            "no function matches '{}', which is a file: name recordings with -i",
            unknown.name
        );
    }
    let mut text = format!("no function with samples matches '{}'", unknown.name);
    if !unknown.nearest.is_empty() {
        text += &format!("; similar: {}", unknown.nearest.join(", "));
    }
    for line in unnamed(assembly, WORTH_SAYING).take(3) {
        text += &format!("; {line}");
    }
    text
}
