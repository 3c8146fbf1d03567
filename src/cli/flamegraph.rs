//! `pjit flamegraph`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::annotate::source_roots;
use super::browser::{Browser, temporary};
use super::filters::MarkedFilterArgs;
use super::input::{Environment, InputArgs};
use super::named::Named;
use super::picture::{Format, Target};
use super::target::ReplaceArgs;
use super::terminal::Output;
use super::verb::{answered, leave, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};
use crate::ask::{Flamegraph, FrameLook, Request};
use crate::flame::{ColorBy, Comparison, Limit, Roots, Shape};
use crate::input::open_named;
use crate::output::html::PageOptions;
use crate::output::svg::{self, BackgroundColor, Palette, SvgOptions};
use crate::output::text::harmless;

/// Arguments of `pjit flamegraph`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  pjit flamegraph
  pjit flamegraph perf.data -o node.html
  pjit flamegraph --open
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

    /// Show the page in the browser ($BROWSER, else the desktop's); without -o it is a temporary file
    #[arg(long)]
    open: bool,

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

    /// Draw the root on top (default: where the SVG is taller than a screen)
    #[arg(long, visible_alias = "icicle", overrides_with = "upright")]
    inverted: bool,

    /// Draw the root below, however tall the SVG is
    #[arg(long, overrides_with = "inverted")]
    upright: bool,

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
    frames: FrameArgs,

    #[command(flatten)]
    filters: MarkedFilterArgs,

    /// Options that the page does without.
    #[command(flatten)]
    look: LookArgs,
}

/// What frames stand for, and what their colours tell.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Frames")]
struct FrameArgs {
    /// What colours tell: package, activity or kind of code (default: package if there are several)
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "diff")]
    color_by: Option<ColorBy>,

    /// Tell the tiers of a function apart, by the names that the runtime gives them
    #[arg(long, conflicts_with = "diff")]
    tiers: bool,

    /// Show all frames around packages; of a recording with JIT code they are one frame: runtime
    #[arg(long, conflicts_with = "diff")]
    with_runtime: bool,

    /// Show all frames of deep recursion; in an SVG that is taller than a screen they are one: … 40 frames
    #[arg(long, conflicts_with = "diff")]
    with_recursion: bool,
}

impl ValueEnum for ColorBy {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Package, Self::Activity, Self::Kind]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
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
/// Frames that browsers show without delay.
const FRAMES: usize = 5000;

impl Verb for FlamegraphArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let browser = self.open.then(Browser::find).transpose()?;
        let mut target = match (&browser, &self.output) {
            (Some(_), None) => Target {
                path: None,
                format: self.format.unwrap_or(Format::Html),
            },
            _ => Target::of(self.output.as_deref(), self.format, self.input.force)?,
        };
        if self.open && self.output.is_some() && target.path.is_none() {
            return Err(wrong_usage("--open shows a file, not standard output"));
        }
        if let Some(option) = self.look.first().filter(|_| target.format == Format::Html) {
            return Err(wrong_usage(format!(
                "{option} is for SVG; the page holds all frames and has its own look"
            )));
        }
        if self.source && target.format != Format::Html {
            return Err(wrong_usage("--source is for the page (-o X.html)"));
        }
        if self.comparison.shape == Some(Shape::Both) && target.format == Format::Svg {
            return Err(wrong_usage(
                "--shape both is for the page (-o X.html); SVG draws one run, after or before",
            ));
        }
        let new = if self.to.is_empty() {
            &self.files
        } else {
            &self.to
        };
        if new.len() > 1 && self.diff.is_empty() {
            return Err(wrong_usage(
                "one recording, or --diff BASE with those that are compared with it",
            ));
        }
        let request = self
            .request(new, target.format, context.environment)
            .map_err(wrong_usage)?;
        let svg = self.svg_options()?;
        if self.open && target.path.is_none() {
            target.path = Some(temporary(match target.format {
                Format::Svg => "flamegraph.svg",
                Format::Html => "flamegraph.html",
            })?);
        }
        let mut out =
            Output::to(target.path.as_deref(), self.replace.force_output).context("output")?;
        let picture = answered(&request, context.diag)?;
        let closing = match target.format {
            Format::Svg => picture.draw(&svg, self.look.limit(), &mut out)?,
            Format::Html => picture.page(&self.page_options(), &mut out)?,
        };
        out.finish().context("output")?;
        if let Some(path) = target.path {
            let line = format!("{}: {closing}", path.display());
            writeln!(std::io::stderr(), "{}", harmless(&line))?;
            if let Some(browser) = browser {
                browser.show(&path)?;
            }
        }
        leave(picture);
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
    /// Which frames are wide enough to be drawn.
    fn limit(&self) -> Limit {
        Limit {
            percent: self.percent_limit.unwrap_or(PERCENT_LIMIT),
            frames: self.percent_limit.is_none().then_some(FRAMES),
        }
    }

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
                open_named(path)
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
            inverted: self.direction(),
            color_by: self.frames.color_by,
            count_name: look.countname.clone(),
            palette_map,
            ..SvgOptions::default()
        })
    }

    /// Whether the root is on top, if anybody said so.
    fn direction(&self) -> Option<bool> {
        (self.inverted || self.upright).then_some(self.inverted)
    }

    fn page_options(&self) -> PageOptions {
        PageOptions {
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            inverted: self.inverted,
            color_by: self.frames.color_by,
            reverse: self.reverse,
            ..PageOptions::default()
        }
    }

    fn frame_look(&self, format: Format) -> FrameLook {
        let rows = svg::rows_of_screen(self.look.height.map(|height| height as usize));
        let folds = format == Format::Svg && !self.frames.with_recursion;
        FrameLook {
            tiers: self.frames.tiers,
            with_runtime: self.frames.with_runtime,
            highest: folds.then(|| (rows, self.look.limit())),
        }
    }

    /// What is asked for, of these recordings.
    fn request(
        &self,
        new: &[PathBuf],
        format: Format,
        environment: &Environment,
    ) -> Result<Request<Flamegraph>, String> {
        let mut load = self.input.load_options(new.first(), environment);
        self.weight.apply(&mut load, self.input.force, true);
        let filters = self.filters.apply(&mut load)?;
        let view = Flamegraph {
            is_page: format == Format::Html,
            roots: match (self.filters.marks_tid(), self.filters.marks_pid()) {
                (true, _) => Roots::Thread,
                (false, true) => Roots::Process,
                (false, false) => Roots::Comm,
            },
            reverse: self.reverse,
            base: self.diff.clone(),
            more: new.get(1..).unwrap_or_default().to_vec(),
            comparison: self.comparison.get(),
            look: self.frame_look(format),
            code: self.source.then(|| self.source_root.clone()),
        };
        Ok(Request {
            event: self.event.clone(),
            filters,
            ..Request::of(load, view)
        })
    }
}
