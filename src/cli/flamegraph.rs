//! `pjit flamegraph`.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::flame::{self, Flame, Limit, Naming, Roots, Weights, prune};
use crate::load;
use crate::output::caption::{Caption, grouped, is_time};
use crate::output::svg::{self, BackgroundColor, Drawing, Palette, SvgOptions};
use crate::output::text::harmless;
use crate::profile::Profile;

use super::input::InputArgs;
use super::terminal::{Output, with_progress};
use super::verb::{leave, require_samples, wrong_usage};
use super::{Context, Verb};

/// Arguments of `pjit flamegraph`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  pjit flamegraph
  pjit flamegraph perf.data -o node.svg --title 'node, 100 requests'
  pjit flamegraph --event cycles --icicle --percent-limit 0.5 -o - > flame.svg")]
pub struct FlamegraphArgs {
    /// Recording to read (default: perf.data)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The recording and its companions.
    #[command(flatten)]
    pub input: InputArgs,

    /// Picture to write, `-` for standard output (default: standard output, flamegraph.svg on a terminal)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Put the process id behind the comm
    #[arg(long)]
    pid: bool,

    /// Put process and thread id behind the comm
    #[arg(long)]
    tid: bool,

    /// Draw the samples of this event (default: the first one with call chains)
    #[arg(long, visible_alias = "event-filter", value_name = "NAME")]
    event: Option<String>,

    /// What widths are
    #[arg(long, value_enum, default_value_t = WidthArg::Period)]
    weight: WidthArg,

    /// Leave out frames below this share (default: 0.01, or more so that 5000 frames are left)
    #[arg(long, visible_alias = "minwidth", value_name = "PERCENT", value_parser = percent)]
    percent_limit: Option<f64>,

    /// Draw the root on top
    #[arg(long, visible_alias = "icicle")]
    inverted: bool,

    /// Draw callers above callees: what one function costs, whoever calls it
    #[arg(long)]
    reverse: bool,

    #[command(flatten)]
    look: LookArgs,
}

/// How the picture looks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Look")]
struct LookArgs {
    /// Title (default: the recorded command line)
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Second title (default: event, samples and total)
    #[arg(long, value_name = "TEXT")]
    subtitle: Option<String>,

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WidthArg {
    /// Sum of periods
    Period,
    /// Number of samples
    Samples,
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
/// What is written on a terminal.
const DEFAULT_OUTPUT: &str = "flamegraph.svg";

impl Verb for FlamegraphArgs {
    fn run(&self, context: &Context<'_>) -> anyhow::Result<ExitCode> {
        let path = self.path()?;
        if let Some(problem) = path.as_deref().and_then(wrong_extension) {
            return wrong_usage(&problem);
        }
        let load = self
            .input
            .load_options(self.file.as_ref(), context.environment);
        let options = self.svg_options()?;
        let mut out = Output::to(path.as_deref()).context("output")?;
        let profile = with_progress(context.diag, || load::load(&load, context.diag))?;
        let event = self.event(&profile)?;
        let flame = flame::build(&profile, &self.flame_options(event, load.needs.threads));
        let closing = self.draw(&profile, event, &flame, &options, &mut out)?;
        out.finish().context("output")?;
        if let Some(path) = path {
            let line = format!("{}: {closing}", path.display());
            writeln!(std::io::stderr(), "{}", harmless(&line))?;
        }
        leave((profile, flame));
        Ok(ExitCode::SUCCESS)
    }

    fn input(&self) -> Option<&InputArgs> {
        Some(&self.input)
    }
}

impl FlamegraphArgs {
    /// Where the picture goes; nothing stands for standard output.
    fn path(&self) -> anyhow::Result<Option<PathBuf>> {
        match &self.output {
            Some(path) if path.as_os_str() == "-" => Ok(None),
            Some(path) => Ok(Some(path.clone())),
            None if std::io::stdout().is_terminal() => {
                let path = Path::new(DEFAULT_OUTPUT);
                anyhow::ensure!(
                    self.input.force || may_be_replaced(path),
                    "{DEFAULT_OUTPUT} is there and was not made by pjit; name another file with -o, or replace it with -f"
                );
                Ok(Some(path.to_owned()))
            }
            None => Ok(None),
        }
    }

    fn svg_options(&self) -> anyhow::Result<SvgOptions> {
        let look = &self.look;
        let pixels = |number: Option<u32>| number.map(|number| number as usize);
        let palette_map = match &look.palette_map {
            Some(path) => {
                let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
                Some(svg::read_palette(&bytes).with_context(|| path.display().to_string())?)
            }
            None => None,
        };
        Ok(SvgOptions {
            title: look.title.clone(),
            subtitle: look.subtitle.clone(),
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
        })
    }

    /// The event to draw: units of several do not add up.
    fn event(&self, profile: &Profile) -> anyhow::Result<u16> {
        require_samples(profile)?;
        let mut events = (0_u16..).zip(&profile.events);
        if let Some(wanted) = &self.event {
            let found = events.find(|(_, event)| event.name == *wanted);
            let names: Vec<&str> = profile.events.iter().map(|e| e.name.as_str()).collect();
            let (at, event) = found.with_context(|| {
                let path = &profile.recording.path;
                format!("no event '{wanted}' in {path}; it has {}", names.join(", "))
            })?;
            anyhow::ensure!(event.samples > 0, "no sample of event '{wanted}'");
            return Ok(at);
        }
        let sampled: Vec<_> = events.filter(|(_, event)| event.samples > 0).collect();
        let with_chains = sampled.iter().find(|(_, event)| event.has_callchains);
        Ok(with_chains.or(sampled.first()).map_or(0, |(at, _)| *at))
    }

    fn flame_options(&self, event: u16, threads: usize) -> flame::Options {
        flame::Options {
            roots: match (self.tid, self.pid) {
                (true, _) => Roots::Thread,
                (false, true) => Roots::Process,
                (false, false) => Roots::Comm,
            },
            event: Some(event),
            reverse: self.reverse,
            naming: Naming::Folded,
            by_thread: false,
            threads,
        }
    }

    /// Writes the picture; the answer tells what is in it.
    fn draw(
        &self,
        profile: &Profile,
        event: u16,
        flame: &Flame,
        options: &SvgOptions,
        out: &mut Output,
    ) -> anyhow::Result<String> {
        let weights = self.weights(flame);
        anyhow::ensure!(
            weights.total.first().is_some_and(|all| *all > 0),
            "nothing to draw: all periods are 0; --weight samples counts samples"
        );
        let limit = Limit {
            percent: self.percent_limit.unwrap_or(PERCENT_LIMIT),
            frames: self.percent_limit.is_none().then_some(FRAMES),
        };
        let summary = &profile.events[usize::from(event)];
        let is_period = self.weight == WidthArg::Period;
        let caption = Caption::of(profile, event);
        let drawing = Drawing {
            flame,
            weights: &weights,
            pruned: prune(flame, &weights, limit),
            caption: &caption,
            is_time: is_period && is_time(summary),
            unit: if is_period { &summary.name } else { "samples" },
        };
        svg::write(&drawing, options, out)?;
        let all = flame.nodes.len() as u64 - 1;
        Ok(format!(
            "{}, {} of {} frames drawn; {}",
            caption.shown,
            grouped(drawing.pruned.kept as u64),
            grouped(all),
            caption.quality
        ))
    }

    fn weights(&self, flame: &Flame) -> Weights {
        match self.weight {
            WidthArg::Period => flame.weights(|cell| cell.period),
            WidthArg::Samples => flame.weights(|cell| cell.samples),
        }
    }
}

/// What is wrong with the name of an output, if anything is.
fn wrong_extension(path: &Path) -> Option<String> {
    let extension = path.extension()?.to_string_lossy().to_lowercase();
    (extension != "svg" && !path.starts_with("/dev")).then(|| {
        format!(
            "flamegraph cannot write .{extension} ({}); it writes .svg",
            path.display()
        )
    })
}

/// Whether nothing of the user's is lost when the file is replaced.
fn may_be_replaced(path: &Path) -> bool {
    let Ok(file) = std::fs::File::open(path) else {
        return !path.exists();
    };
    let mut beginning = Vec::new();
    let read = file.take(1 << 12).read_to_end(&mut beginning);
    read.is_ok() && svg::is_ours(&beginning)
}
