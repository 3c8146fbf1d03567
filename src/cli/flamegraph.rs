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
use super::input::{Environment, InputArgs, SeveralArgs, recordings_at};
use super::named::Named;
use super::page::Page;
use super::picture::{PictureFormat, Target};
use super::question::OwnArgs;
use super::target::ReplaceArgs;
use super::terminal::Output;
use super::verb::{answered, wrong_usage};
use super::weight::WeightArgs;
use super::{Context, Verb};
use crate::ask::{Flamegraph, FrameLook, Request, forget_large};
use crate::flame::{ColorBy, Comparison, Limit, Roots, Shape};
use crate::input::open_named;
use crate::output::html::PageOptions;
use crate::output::svg::{self, BackgroundColor, Palette, SvgOptions};
use crate::output::text::harmless;

pub(super) const PAGE: Page = Page {
    examples: &[
        ("pjit flamegraph --open", "in your browser"),
        (
            "pjit flamegraph perf.data -o node.html",
            "a page to explore",
        ),
        ("pjit flamegraph -o flame.svg", "a picture"),
        (
            "pjit flamegraph --event cycles --icicle -o - > flame.svg",
            "",
        ),
        (
            "pjit flamegraph --diff before/perf.data after/perf.data -o change.html",
            "",
        ),
        (
            "pjit flamegraph --diff a1.data --diff a2.data --to b1.data b2.data -o c.svg",
            "",
        ),
    ],
    short: &[
        "output",
        "open",
        "format",
        "diff",
        "to",
        "event",
        "color-by",
        "reverse",
        "source",
        "percent-limit",
        "force",
    ],
    notes: "The page (.html) is one file that needs no network. It has all frames, from the root or from the leaves, by process, thread, event and time. It has callers and callees, a table and a search; ? shows its keys. The SVG has the widest 5000 frames.",
};

/// Arguments of `pjit flamegraph`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("force", |arg| arg.help("Replace an existing flamegraph.svg or flamegraph.html")))]
pub struct FlamegraphArgs {
    /// Recordings to read, added up [default: perf.data]; with --diff, the new runs
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

    /// Write to this .svg or .html file, or -
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show the page in the browser
    #[arg(long)]
    open: bool,

    #[command(flatten)]
    replace: ReplaceArgs,

    /// Write this format, whatever the file is called
    #[arg(long, value_enum)]
    format: Option<PictureFormat>,

    /// Show what changed since this recording (repeatable)
    #[arg(long, value_name = "BASE")]
    diff: Vec<PathBuf>,

    /// New runs, instead of FILE
    #[arg(long, value_name = "NEW", num_args = 1.., requires = "diff", conflicts_with = "files")]
    to: Vec<PathBuf>,

    /// Only this event [default: a clock or cycles]
    #[arg(long, visible_alias = "event-filter", value_name = "NAME")]
    event: Option<String>,

    /// Draw the root on top (default for tall SVGs)
    #[arg(long, visible_alias = "icicle", overrides_with = "upright")]
    inverted: bool,

    /// Draw the root below
    #[arg(long, overrides_with = "inverted")]
    upright: bool,

    /// Draw callers above callees, to see what a function costs
    #[arg(long)]
    reverse: bool,

    /// Put code of the hottest functions into the page
    #[arg(long, conflicts_with = "diff")]
    source: bool,

    /// With --source: look for sources in this folder (repeatable)
    #[arg(long = "source-root", value_name = "DIR")]
    source_root: Vec<PathBuf>,

    /// Leave the time panel out of the page
    #[arg(long, conflicts_with = "diff")]
    no_time: bool,

    /// How the difference is shown.
    #[command(flatten)]
    comparison: ComparisonArgs,

    /// Title [default: the program]
    #[arg(long, value_name = "TEXT", help_heading = "Look")]
    title: Option<String>,

    /// Second title [default: event, samples and total]
    #[arg(long, value_name = "TEXT", help_heading = "Look")]
    subtitle: Option<String>,

    #[command(flatten)]
    frames: FrameArgs,

    #[command(flatten)]
    own: OwnArgs,

    #[command(flatten)]
    filters: MarkedFilterArgs,

    /// Options that the page does without.
    #[command(flatten)]
    look: LookArgs,
}

/// What frames stand for, and what their colours tell.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Look of frames")]
struct FrameArgs {
    /// Colours: package, activity or kind
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with = "diff",
        hide_possible_values = true
    )]
    color_by: Option<ColorBy>,

    /// Split the tiers of a function
    #[arg(long, conflicts_with = "diff")]
    tiers: bool,

    /// Show all frames of the runtime between packages
    #[arg(long, conflicts_with = "diff")]
    with_runtime: bool,

    /// Show all frames of deep recursion, in tall SVGs too
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
    /// Side that sets the widths; both takes the larger one [default: both, after for SVG]
    #[arg(long, value_enum, value_name = "RUN", requires = "diff")]
    shape: Option<Shape>,

    /// Don't take out the common factor
    #[arg(long, requires = "diff")]
    absolute: bool,

    /// Swap the two colours
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
    /// Leave out frames below this share
    #[arg(long, visible_alias = "minwidth", value_name = "PERCENT", value_parser = percent)]
    percent_limit: Option<f64>,

    /// Comment inside the file
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,

    /// Width in pixels [default: the window's]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(100..=100_000))]
    width: Option<u32>,

    /// Height of a frame in pixels
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(4..=400))]
    height: Option<u32>,

    /// Size of the text in pixels
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(4..=100))]
    fontsize: Option<u32>,

    /// Palette of inferno: hot, mem, io, java, js, rust, ...
    #[arg(long, value_name = "PALETTE", value_parser = parsed::<Palette>)]
    colors: Option<Palette>,

    /// Background: yellow, blue, green, grey or #rrggbb
    #[arg(long, value_name = "COLOR", value_parser = parsed::<BackgroundColor>)]
    bgcolors: Option<BackgroundColor>,

    /// Give similar names similar colours
    #[arg(long)]
    hash: bool,

    /// Give the same names the same colours (default)
    #[arg(long, conflicts_with = "hash")]
    deterministic: bool,

    /// Name of the unit
    #[arg(long, value_name = "TEXT")]
    countname: Option<String>,

    /// File of colours, with lines NAME->rgb(R,G,B)
    #[arg(long = "palette-map", value_name = "FILE")]
    palette_map: Option<PathBuf>,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("takes a percentage from 0 to 100".to_owned()),
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
                format: self.format.unwrap_or(PictureFormat::Html),
            },
            _ => Target::of(self.output.as_deref(), self.format, self.input.force)?,
        };
        if self.open && self.output.is_some() && target.path.is_none() {
            return Err(wrong_usage("--open and -o - exclude each other"));
        }
        if let Some(option) = self
            .look
            .first()
            .filter(|_| target.format == PictureFormat::Html)
        {
            return Err(wrong_usage(format!(
                "{option} is only for SVG\nhint: -o flame.svg"
            )));
        }
        if self.source && target.format != PictureFormat::Html {
            return Err(wrong_usage(
                "--source is only for the page\nhint: -o flame.html",
            ));
        }
        if self.no_time && target.format != PictureFormat::Html {
            return Err(wrong_usage(
                "--no-time is only for the page\nhint: -o flame.html",
            ));
        }
        if self.comparison.shape == Some(Shape::Both) && target.format == PictureFormat::Svg {
            return Err(wrong_usage(
                "--shape both is only for the page\nhint: -o change.html, or --shape after",
            ));
        }
        let new = if self.to.is_empty() {
            &self.files
        } else {
            &self.to
        };
        let request = self
            .request(new, target.format, context.environment)
            .map_err(wrong_usage)?;
        let svg = self.svg_options()?;
        if self.open && target.path.is_none() {
            target.path = Some(temporary(match target.format {
                PictureFormat::Svg => "flamegraph.svg",
                PictureFormat::Html => "flamegraph.html",
            })?);
        }
        let mut out = Output::to(target.path.as_deref(), self.replace.force_output)?;
        let picture = answered(&request, context.diag)?;
        let closing = match target.format {
            PictureFormat::Svg => picture.draw(&svg, self.look.limit(), &mut out)?,
            PictureFormat::Html => picture.page(&self.page_options(), &mut out)?,
        };
        out.finish()?;
        if let Some(path) = target.path {
            let next = if browser.is_some() {
                ""
            } else {
                "; open it in a browser"
            };
            let line = format!("{}: {closing}{next}", path.display());
            writeln!(std::io::stderr(), "{}", harmless(&line))?;
            if let Some(browser) = browser {
                browser.show(&path)?;
            }
        }
        forget_large(picture);
        Ok(ExitCode::SUCCESS)
    }

    fn named(&self) -> Vec<Named<'_>> {
        let roots = source_roots(&self.source_root);
        self.input.named().into_iter().chain(roots).collect()
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }

    fn takes_several(&self) -> bool {
        true
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

    fn frame_look(&self, format: PictureFormat) -> FrameLook {
        let rows = svg::rows_of_screen(self.look.height.map(|height| height as usize));
        let folds = format == PictureFormat::Svg && !self.frames.with_recursion;
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
        format: PictureFormat,
        environment: &Environment,
    ) -> Result<Request<Flamegraph>, String> {
        if self.several.normalizes() && !self.diff.is_empty() {
            return Err(
                "--normalize is for recordings that are added up, not for --diff".to_owned(),
            );
        }
        let files = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().flat_map(|path| recordings_at(path)).collect()
        };
        let (base, runs) = (files(&self.diff), files(new));
        let mut load = if self.diff.is_empty() {
            self.several.load_options(new, &self.input, environment)?
        } else {
            self.input.load_options(runs.first(), environment)
        };
        let new = if self.diff.is_empty() { new } else { &runs };
        let rest = new.get(1..).unwrap_or_default();
        self.weight.apply(&mut load, self.input.force, true);
        let filters = self.filters.apply(&mut load)?;
        let view = Flamegraph {
            is_page: format == PictureFormat::Html,
            roots: match (self.filters.marks_tid(), self.filters.marks_pid()) {
                (true, _) => Roots::Thread,
                (false, true) => Roots::Process,
                (false, false) => Roots::Comm,
            },
            reverse: self.reverse,
            base,
            more: rest.to_vec(),
            comparison: self.comparison.get(),
            look: self.frame_look(format),
            code: self.source.then(|| self.source_root.clone()),
            no_time: self.no_time,
        };
        Ok(Request {
            event: self.event.clone(),
            filters,
            own: self.own.rules()?,
            ..Request::of(load, view)
        })
    }
}
