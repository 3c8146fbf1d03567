//! `pjit flamegraph`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::annotate::{SourceArgs, source_roots};
use super::change::{Sides, weights_of_run};
use super::filters::MarkedFilterArgs;
use super::input::InputArgs;
use super::named::Named;
use super::picture::{Format, Target};
use super::target::{ReplaceArgs, read_named};
use super::terminal::{Output, with_progress};
use super::verb::{leave, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};
use crate::ask::{filter, require_samples, shown_event};
use crate::assembly::{Assembly, Functions, Request};
use crate::code::{self, Column, PercentType, Selection};
use crate::flame::{
    self, Comparison, Findings, Flame, Limit, Naming, Paths, Roots, SeriesId, Shape, Weights, prune,
};
use crate::ids::IndexVec;
use crate::load::{self, LoadOptions};
use crate::needs::Needs;
use crate::output::caption::{Caption, grouped, plural};
use crate::output::html::{self, Content, FunctionCode, PageOptions};
use crate::output::svg::{self, BackgroundColor, Drawing, Palette, SvgOptions};
use crate::output::text::harmless;
use crate::profile::{EventId, Profile};
use crate::questions::filter::Filters;
use crate::questions::idle::leave_out;
use crate::questions::kinds::OwnRules;
use crate::unit::Unit;

/// Arguments of `pjit flamegraph`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  pjit flamegraph
  pjit flamegraph perf.data -o node.html
  pjit flamegraph --event cycles --icicle --percent-limit 0.5 -o - > flame.svg
  pjit flamegraph --diff before/perf.data after/perf.data -o change.html
  pjit flamegraph --diff a1.data --diff a2.data --diff a3.data --to b1.data b2.data b3.data -o change.svg

The page (.html) is one file that needs no network: all frames, from the root or from the leaves, by process,
thread and event, callers and callees, a table, search; ? shows its keys. The SVG has the widest 5000 frames.")]
pub struct FlamegraphArgs {
    /// Recording to read (default: perf.data); with --diff, several are the runs that are compared with the base
    #[arg(value_name = "FILE", conflicts_with = "input")]
    files: Vec<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// What samples weigh.
    #[command(flatten)]
    weight: WeightArgs,

    /// File to write, .svg or .html, `-` for standard output (default: standard output, flamegraph.svg on a terminal)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    replace: ReplaceArgs,

    /// What to write, whatever the file is called
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Show what changed since this run: a recording, or a file of folded stacks; repeatable: three runs of each are tested
    #[arg(long, value_name = "BASE")]
    diff: Vec<PathBuf>,

    /// New runs, in place of FILE
    #[arg(long, value_name = "NEW", num_args = 1.., requires = "diff", conflicts_with = "files")]
    to: Vec<PathBuf>,

    /// How the difference is shown.
    #[command(flatten)]
    comparison: ComparisonArgs,

    /// Draw the samples of this event (default: the main one, a clock or cycles if there is one)
    #[arg(long, visible_alias = "event-filter", value_name = "NAME")]
    event: Option<String>,

    /// Draw the root on top
    #[arg(long, visible_alias = "icicle")]
    inverted: bool,

    /// Draw callers above callees: what one function costs, whoever calls it
    #[arg(long)]
    reverse: bool,

    /// Put source lines and instructions of the hottest functions into the page (at most 1 MB), as far as they are at hand
    #[arg(long, conflicts_with = "diff")]
    source: bool,

    /// With --source: folder below which sources are looked for by the ends of their paths (repeatable)
    #[arg(long = "source-root", value_name = "DIR")]
    source_root: Vec<PathBuf>,

    /// Title (default: the recorded command line)
    #[arg(long, value_name = "TEXT", help_heading = "Look")]
    title: Option<String>,

    /// Second title (default: event, samples and total)
    #[arg(long, value_name = "TEXT", help_heading = "Look")]
    subtitle: Option<String>,

    #[command(flatten)]
    filters: MarkedFilterArgs,

    /// Options that the page does without.
    #[command(flatten)]
    look: LookArgs,
}

/// How two runs are shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Difference")]
struct ComparisonArgs {
    /// Run whose weights are widths; both: the larger one, so that nothing is missing (default: both, after for SVG)
    #[arg(long, value_enum, value_name = "RUN", requires = "diff")]
    shape: Option<Shape>,

    /// Compare weights as they are, without taking out what everything became slower or faster by
    #[arg(long, requires = "diff")]
    absolute: bool,

    /// Swap the colours of more and less
    #[arg(long, requires = "diff")]
    negate: bool,
}

impl ValueEnum for Shape {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Both, Self::After, Self::Before]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Both => "both",
            Self::After => "after",
            Self::Before => "before",
        }))
    }
}

/// How the SVG looks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Look of the SVG")]
struct LookArgs {
    /// Leave out frames below this share (default: 0.01, or more so that 5000 frames are left)
    #[arg(long, visible_alias = "minwidth", value_name = "PERCENT", value_parser = percent)]
    percent_limit: Option<f64>,

    /// Comment inside the file
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,

    /// Width in pixels (default: as wide as there is room)
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(100..=100_000))]
    width: Option<u32>,

    /// Height of a frame in pixels
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(4..=400))]
    height: Option<u32>,

    /// Size of the text in pixels
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(4..=100))]
    fontsize: Option<u32>,

    /// Palette of inferno: hot, mem, io, java, js, rust, ... (default: by kind of code)
    #[arg(long, value_name = "PALETTE", value_parser = parsed::<Palette>)]
    colors: Option<Palette>,

    /// Background: yellow, blue, green, grey or #rrggbb
    #[arg(long, value_name = "COLOR", value_parser = parsed::<BackgroundColor>)]
    bgcolors: Option<BackgroundColor>,

    /// Similar names in similar colours of the palette
    #[arg(long)]
    hash: bool,

    /// The same names in the same colours (the default)
    #[arg(long, conflicts_with = "hash")]
    deterministic: bool,

    /// What is counted, in words
    #[arg(long, value_name = "TEXT")]
    countname: Option<String>,

    /// File of colours, a line each: NAME->rgb(R,G,B)
    #[arg(long = "palette-map", value_name = "FILE")]
    palette_map: Option<PathBuf>,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("not a share of 100".to_owned()),
    }
}

fn parsed<T: std::str::FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

/// Share below which frames are too narrow to be seen.
const PERCENT_LIMIT: f64 = 0.01;
/// Per cent of the samples below which the page has no code of a function.
const CODE_LIMIT: f64 = 0.1;
/// Frames that browsers show without delay.
const FRAMES: usize = 5000;

impl Verb for FlamegraphArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let target = match Target::of(self.output.as_deref(), self.format, self.input.force)? {
            Ok(target) => target,
            Err(text) => return wrong_usage(&text),
        };
        if let Some(option) = self.look.first().filter(|_| target.format == Format::Html) {
            return wrong_usage(&format!(
                "{option} is for SVG; the page holds all frames and has its own look"
            ));
        }
        if self.source && target.format != Format::Html {
            return wrong_usage("--source is for the page (-o X.html)");
        }
        if self.comparison.shape == Some(Shape::Both) && target.format == Format::Svg {
            return wrong_usage(
                "--shape both is for the page (-o X.html); SVG draws one run, after or before",
            );
        }
        let new = if self.to.is_empty() {
            &self.files
        } else {
            &self.to
        };
        if new.len() > 1 && self.diff.is_empty() {
            return wrong_usage(
                "one recording, or --diff BASE with those that are compared with it",
            );
        }
        let needs = flame::NEEDS
            | Needs::CODE.only_if(self.source)
            | Needs::KINDS.only_if(!self.diff.is_empty());
        let mut load = self
            .input
            .load_options(new.first(), context.environment, needs);
        self.weight.apply(&mut load, self.input.force, true);
        let filters = match self.filters.apply(&mut load) {
            Ok(filters) => filters,
            Err(text) => return wrong_usage(&text),
        };
        let svg = self.svg_options()?;
        let mut out =
            Output::to(target.path.as_deref(), self.replace.force_output).context("output")?;
        let (mut profile, assembly) =
            with_progress(context.diag, || self.load(&mut load, &filters, context))?;
        if !self.diff.is_empty() {
            leave_out(&mut profile);
            require_samples(&profile)?;
        }
        let event = shown_event(&profile, self.event.as_deref())?;
        let mut caption = Caption::of(&profile, event);
        let reading = Reading {
            load: &load,
            filters: &filters,
            context,
        };
        let (flame, findings) =
            self.flame((&profile, event), target.format, &reading, &mut caption)?;
        let picture = Picture {
            profile: &profile,
            event,
            flame: &flame,
            findings: findings.as_ref(),
            caption: &caption,
            code: &code_of(&profile, event, &flame, assembly.as_ref()),
        };
        let closing = match target.format {
            Format::Svg => self.draw(&picture, &svg, &mut out)?,
            Format::Html => self.page(&picture, load.reading.threads, &mut out)?,
        };
        out.finish().context("output")?;
        if let Some(path) = target.path {
            let line = format!("{}: {closing}", path.display());
            writeln!(std::io::stderr(), "{}", harmless(&line))?;
        }
        leave((profile, flame));
        Ok(ExitCode::SUCCESS)
    }

    fn named(&self) -> Vec<Named<'_>> {
        let roots = source_roots(&self.source_root);
        self.input.named().into_iter().chain(roots).collect()
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

/// What is written in one format or the other.
struct Picture<'p> {
    profile: &'p Profile,
    event: EventId,
    flame: &'p Flame,
    findings: Option<&'p Findings>,
    caption: &'p Caption,
    code: &'p [FunctionCode],
}

/// How recordings are read.
struct Reading<'r> {
    load: &'r LoadOptions,
    filters: &'r Filters,
    context: &'r Context<'r>,
}

impl ComparisonArgs {
    fn get(&self) -> Comparison {
        Comparison {
            shape: self.shape.unwrap_or_default(),
            absolute: self.absolute,
            negate: self.negate,
        }
    }
}

impl LookArgs {
    /// The first of these options that was given.
    fn first(&self) -> Option<&'static str> {
        [
            (self.percent_limit.is_some(), "--percent-limit"),
            (self.notes.is_some(), "--notes"),
            (self.width.is_some(), "--width"),
            (self.height.is_some(), "--height"),
            (self.fontsize.is_some(), "--fontsize"),
            (self.colors.is_some(), "--colors"),
            (self.bgcolors.is_some(), "--bgcolors"),
            (self.hash, "--hash"),
            (self.deterministic, "--deterministic"),
            (self.countname.is_some(), "--countname"),
            (self.palette_map.is_some(), "--palette-map"),
        ]
        .into_iter()
        .find_map(|(is_given, option)| is_given.then_some(option))
    }
}

impl FlamegraphArgs {
    fn svg_options(&self) -> anyhow::Result<SvgOptions> {
        let look = &self.look;
        let pixels = |number: Option<u32>| number.map(|number| number as usize);
        let palette_map = match &look.palette_map {
            Some(path) => {
                let mut bytes = Vec::new();
                read_named(path)
                    .and_then(|mut file| file.read_to_end(&mut bytes))
                    .with_context(|| path.display().to_string())?;
                Some(svg::read_palette(&bytes).with_context(|| path.display().to_string())?)
            }
            None => None,
        };
        Ok(SvgOptions {
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            notes: look.notes.clone(),
            width: pixels(look.width),
            height: pixels(look.height),
            font_size: pixels(look.fontsize),
            colors: look.colors,
            background: look.bgcolors,
            hash: look.hash,
            inverted: self.inverted,
            count_name: look.countname.clone(),
            palette_map,
            comparison: self.comparison.get(),
        })
    }

    /// The filtered profile, and the code of functions if it is wanted.
    fn load(
        &self,
        load: &mut LoadOptions,
        filters: &Filters,
        context: &Context<'_>,
    ) -> anyhow::Result<(Profile, Option<Assembly>)> {
        if !self.source {
            let mut profile = load::load(load, context.diag)?;
            require_samples(&profile)?;
            filter(&mut profile, filters, &OwnRules::default())?;
            return Ok((profile, None));
        }
        load.needs |= Needs::ADDRESSES.only_if(!filters.is_empty());
        let selection = Selection {
            percent_limit: CODE_LIMIT,
            ..Selection::default()
        };
        let request = Request {
            lines: true,
            sources: true,
            keeps_sources: true,
            paths: SourceArgs::below(&self.source_root).paths(load),
            ..Request::default()
        };
        let mut filtered = Ok(IndexVec::new());
        let narrow = |profile: &mut Profile| {
            filtered = filter(profile, filters, &OwnRules::default());
            !filters.is_empty()
        };
        let choose = |functions: &mut Functions| {
            let chosen = code::choose(functions, &selection);
            chosen.unwrap_or_default()
        };
        let (profile, mut assembly) = load::annotate(load, &request, context.diag, narrow, choose)?;
        require_samples(&profile)?;
        filtered?;
        assembly
            .warnings
            .drain(..)
            .for_each(|line| context.diag.warn(line));
        Ok((profile, Some(assembly)))
    }

    fn paths(
        &self,
        profile: &Profile,
        event: Option<EventId>,
        naming: Naming,
        by_thread: bool,
        threads: usize,
    ) -> Paths {
        let options = flame::Options {
            roots: match (self.filters.marks_tid(), self.filters.marks_pid()) {
                (true, _) => Roots::Thread,
                (false, true) => Roots::Process,
                (false, false) => Roots::Comm,
            },
            event,
            reverse: self.reverse && self.diff.is_empty() && naming == Naming::Folded,
            naming,
            by_thread,
            threads,
        };
        flame::paths(profile, &options)
    }

    /// The tree: of one event for the SVG and for differences, of all for the page.
    fn flame(
        &self,
        (profile, event): (&Profile, EventId),
        format: Format,
        reading: &Reading<'_>,
        caption: &mut Caption,
    ) -> anyhow::Result<(Flame, Option<Findings>)> {
        let threads = reading.load.reading.threads;
        if self.diff.is_empty() {
            let is_page = format == Format::Html;
            let naming = if is_page {
                Naming::Whole
            } else {
                Naming::Folded
            };
            let only = (!is_page).then_some(event);
            let paths = self.paths(profile, only, naming, is_page, threads);
            return Ok((flame::plant(paths, threads), None));
        }
        let new = if self.to.is_empty() {
            &self.files
        } else {
            &self.to
        };
        let sides = Sides {
            base: &self.diff,
            more: new.get(1..).unwrap_or_default(),
            load: reading.load,
            filters: reading.filters,
            absolute: self.comparison.absolute,
        };
        let of = |profile: &Profile, event: EventId, naming: Naming| {
            self.paths(profile, Some(event), naming, false, threads)
        };
        let (flame, findings) = sides.join((profile, event), &of, caption, reading.context)?;
        for line in &caption.differences {
            reading.context.diag.warn(line.clone());
        }
        Ok((flame, Some(findings)))
    }

    /// Writes the SVG; the answer tells what is in it.
    fn draw(
        &self,
        picture: &Picture<'_>,
        options: &SvgOptions,
        out: &mut Output,
    ) -> anyhow::Result<String> {
        let Picture {
            profile,
            event,
            flame,
            findings,
            caption,
            ..
        } = picture;
        let summary = &profile[*event];
        let is_time = summary.unit == Unit::Nanoseconds;
        // Thousandths of a sample are worth something where several runs have a mean; of a nanosecond they are not.
        let fixed = match findings {
            Some(_) if !is_time && summary.period < u64::MAX >> 24 => 1000,
            _ => 1,
        };
        let (mut weights, mut other) = match findings {
            None => (run_weights(flame, *event, 0), None),
            Some(findings) => {
                let of = |run| weights_of_run(flame, findings, run, fixed);
                (of(0), Some(of(1)))
            }
        };
        if let Some(other) = &mut other
            && options.comparison.shape == Shape::Before
        {
            std::mem::swap(&mut weights, other);
        }
        check_weight(&weights)?;
        let limit = Limit {
            percent: self.look.percent_limit.unwrap_or(PERCENT_LIMIT),
            frames: self.look.percent_limit.is_none().then_some(FRAMES),
        };
        let drawing = Drawing {
            flame,
            weights: &weights,
            other: other.as_ref().zip(*findings),
            fixed,
            pruned: prune(flame, &weights, limit),
            caption,
            is_time,
            unit: &summary.name,
        };
        svg::write(&drawing, options, out)?;
        Ok(format!(
            "{}, {} of {} frames drawn; {}",
            caption.whole(),
            grouped(drawing.pruned.kept as u64),
            grouped(flame.nodes.len() as u64 - 1),
            caption.quality
        ))
    }

    /// Writes the page; the answer tells what is in it.
    fn page(
        &self,
        picture: &Picture<'_>,
        threads: usize,
        out: &mut Output,
    ) -> anyhow::Result<String> {
        let Picture {
            profile,
            event,
            flame,
            findings,
            caption,
            code,
        } = picture;
        let content = Content {
            flame,
            profile,
            caption,
            event: *event,
            weights: &weights(flame, *event)?,
            findings: *findings,
            code,
        };
        let options = PageOptions {
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            inverted: self.inverted,
            reverse: self.reverse,
            comparison: self.comparison.get(),
            threads,
        };
        html::write(&content, &options, out)?;
        let frames = grouped(flame.nodes.len() as u64 - 1);
        let code = match (self.source, code.len()) {
            (false, _) => String::new(),
            (true, count) => format!(", code of {}", plural(count, "function")),
        };
        Ok(format!(
            "{}, {frames} frames{code}; {}",
            caption.whole(),
            caption.quality
        ))
    }
}

/// The code that the page is to hold.
fn code_of(
    profile: &Profile,
    event: EventId,
    flame: &Flame,
    assembly: Option<&Assembly>,
) -> Vec<FunctionCode> {
    let Some(assembly) = assembly else {
        return Vec::new();
    };
    let options = code::Options {
        percent_type: PercentType::LocalPeriod,
        column: Column::Percent,
        group: false,
        full_paths: true,
        source: true,
        print_lines: false,
        raw: false,
        merge_versions: false,
    };
    let (plan, outcome) = code::Plan::new(assembly, &profile.events, &options);
    let blocks = (0..plan.len()).map(|number| plan.block(number));
    let name = &profile[event].name;
    let blocks = outcome.shown.into_iter().zip(blocks);
    let blocks: Vec<_> = blocks
        .filter(|(_, block)| block.event.contains(name.as_str()))
        .collect();
    html::codes(flame, &assembly.functions, &blocks)
}

/// Weights of what is shown; an error if there are none.
fn weights(flame: &Flame, event: EventId) -> anyhow::Result<Weights> {
    let weights = run_weights(flame, event, 0);
    check_weight(&weights)?;
    Ok(weights)
}

fn check_weight(weights: &Weights) -> anyhow::Result<()> {
    anyhow::ensure!(
        weights.total.first().is_some_and(|all| *all > 0),
        "nothing to draw: all periods are 0; --weight samples counts samples"
    );
    Ok(())
}

fn run_weights(flame: &Flame, event: EventId, run: u8) -> Weights {
    let is_wanted: IndexVec<SeriesId, bool> = flame
        .series
        .iter()
        .map(|series| series.event == event && series.run == run)
        .collect();
    flame.weights(|cell| {
        if is_wanted[cell.series] {
            cell.period
        } else {
            0
        }
    })
}
