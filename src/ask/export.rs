//! A recording as a file for another tool: the question of `pjit export`.

use std::io::{self, Write};

use super::phases::over_time;
use super::problem::{require, tell_lost};
use super::{AskError, Question, Request, shown_event, tell_other};
use crate::diagnostics::Diagnostics;
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::load::{Library, LoadOptions};
use crate::needs::Needs;
use crate::output::caption::{Caption, plural};
use crate::output::firefox::{self, FirefoxOptions};
use crate::output::gzip::Effort;
use crate::output::over_time::When;
use crate::output::pprof::{self, PprofOptions};
use crate::output::{speedscope, stacks_csv};
use crate::profile::{EventId, Profile};
use crate::questions::over_time::OverTime;
use crate::questions::summary::labels;

/// A file for another tool.
#[derive(Debug, Clone)]
pub enum Export {
    /// For the Firefox Profiler.
    Firefox {
        /// A track for each CPU instead of each thread.
        per_cpu: bool,
    },
    /// For pprof and what reads its format.
    Pprof(PprofOptions),
    /// For speedscope.
    Speedscope {
        /// One entry a stack instead of samples in the order of their times.
        merged: bool,
        /// Times without a sample are in their place, so that times are those of the clock on the wall.
        wall: bool,
    },
    /// For databases and spreadsheets.
    Csv {
        /// One row a sample instead of one a stack.
        samples: bool,
    },
}

/// A recording that can be written in a format.
pub struct Exported {
    profile: Profile,
    /// The event that a format shows which has only one.
    event: EventId,
    format: Export,
    threads: usize,
    /// Phases, spells and gaps, if the format shows them, and names of functions.
    when: Option<(OverTime, Vec<String>)>,
    /// Times of phases, if the format tells them.
    phases: Vec<(u64, u64)>,
}

/// What was written.
pub enum Written {
    /// A whole file, in words: `12 stacks of 3 functions`.
    File(String),
    /// So many rows, of one recording perhaps of many.
    Rows(usize),
}

impl Question for Export {
    type Answer = Exported;

    fn needs(&self) -> Needs {
        match self {
            Self::Firefox { .. } => firefox::NEEDS,
            Self::Pprof(options) => options.needs(),
            Self::Speedscope { merged, .. } => speedscope::NEEDS | Needs::SAMPLES.only_if(!merged),
            Self::Csv { samples } => stacks_csv::needs(*samples),
        }
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Exported, AskError> {
        let diag = library.diag();
        let mut load = request.load_options()?;
        let format = request.view.clone();
        // Of a part nobody knows what the rest would have told.
        let is_whole = request.filters.texts().is_empty()
            && load.filter.keeps_all()
            && load.time.is_none()
            && load.weight.spec.keeps_events();
        if let Export::Firefox { .. } = format {
            load.needs |= (Needs::WAITS | Needs::KINDS).only_if(is_whole);
        }
        let threads = load.reading.threads;
        let (mut profile, _) = request.profile_of(&load, library)?;
        tell_lost(&profile, diag);
        let asked = request.event.as_deref();
        let mut event = EventId::default();
        let (mut when, mut phases) = (None, Vec::new());
        match format {
            Export::Firefox { per_cpu } => {
                event = shown_event(&profile, asked)?;
                tell_other(&profile, (event, asked), diag);
                when = is_whole.then(|| over_time_of(&profile)).flatten();
                let has_cpu = profile.samples.iter().any(|sample| sample.cpu.is_some());
                require(has_cpu || !per_cpu, || {
                    let path = &profile.recording.path;
                    format!(
                        "--per-cpu needs CPU numbers, which {path} does not have: pjit record --perf=--sample-cpu"
                    )
                })?;
            }
            Export::Csv { samples: true } => {
                phases = phases_of(&profile, is_whole, &load, diag);
            }
            _ => {}
        }
        let is_wall = matches!(format, Export::Speedscope { wall: true, .. });
        // These formats keep events apart.
        if is_wall || asked.is_some() && !matches!(format, Export::Firefox { .. }) {
            event = shown_event(&profile, asked)?;
            profile.entries.retain(|entry| entry.event == event);
            profile.samples.retain(|sample| sample.event == event);
        }
        require(!is_wall || speedscope::knows_wall(&profile, event), || {
            let name = &profile[event].name;
            format!("--wall needs samples of a clock with times, which those of {name} are not")
        })?;
        Ok(Exported {
            profile,
            event,
            format,
            threads,
            when,
            phases,
        })
    }
}

/// What a whole recording says about when, and the names of its functions.
fn over_time_of(profile: &Profile) -> Option<(OverTime, Vec<String>)> {
    let functions = Functions::of(profile, &OwnRules::default());
    let over = OverTime::of(profile, &functions, profile.main_event())?;
    Some((over, labels(&functions, false)))
}

/// Times of the phases of a recording of which this is all or a part. Where it cannot be read again that is said, and there are none.
fn phases_of(
    profile: &Profile,
    is_whole: bool,
    load: &LoadOptions,
    diag: &Diagnostics,
) -> Vec<(u64, u64)> {
    let own = OwnRules::default();
    if is_whole {
        return OverTime::phases(profile, &Functions::of(profile, &own), profile.main_event());
    }
    let over = over_time(load, &own).unwrap_or_else(|error| {
        diag.warn(format!("the column of phases is empty: {error}"));
        OverTime::default()
    });
    let times = over.phases.iter().map(|phase| (phase.from, phase.to));
    times.collect()
}

impl Exported {
    /// How hard the file is packed, where it is.
    #[must_use]
    pub fn effort(&self) -> Effort {
        let functions = self.profile.symbols.len();
        match self.format {
            Export::Firefox { .. } => Effort::UntilLarge.for_functions(functions),
            // As Go packs profiles: by the quickest level, or nearly.
            Export::Pprof(_) => Effort::Quick.for_functions(functions),
            Export::Speedscope { .. } | Export::Csv { .. } => Effort::Small,
        }
    }

    /// Writes the file, not packed; of CSV the rows without the heading, which several recordings share.
    ///
    /// # Errors
    /// When `out` cannot be written, or the file would be larger than its tool can open.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<Written> {
        let profile = &self.profile;
        let text = match &self.format {
            Export::Pprof(options) => {
                let written = pprof::write(profile, options, out)?;
                let rest = match written.left_out {
                    0 => String::new(),
                    count => format!(" ({count} more as [rest])"),
                };
                format!(
                    "{}{rest} of {}",
                    plural(written.stacks, "stack"),
                    plural(written.functions, "function")
                )
            }
            Export::Firefox { per_cpu } => {
                let options = FirefoxOptions {
                    event: self.event,
                    per_cpu: *per_cpu,
                };
                let when = self
                    .when
                    .as_ref()
                    .map(|(over, labels)| When { over, labels });
                let written = firefox::write(profile, options, when, out)?;
                let shown = Caption::of(profile, self.event).shown;
                let kind = if *per_cpu { "CPU" } else { "thread" };
                format!(
                    "{shown}, {}, {}",
                    plural(written.tracks, kind),
                    plural(written.markers, "marker")
                )
            }
            Export::Speedscope { wall, .. } => {
                let written = speedscope::write(profile, *wall, out)?;
                if !written.is_whole {
                    return Err(io::Error::new(
                        io::ErrorKind::FileTooLarge,
                        format!(
                            "more than {} MB, which no browser opens; --merge makes it smaller, and speedscope reads pprof's \
                             format (-o X.pb.gz)",
                            speedscope::LARGEST >> 20
                        ),
                    ));
                }
                plural(written.profiles, "profile")
            }
            Export::Csv { samples } => {
                return stacks_csv::write(
                    profile,
                    samples.then_some(&self.phases),
                    self.threads,
                    out,
                )
                .map(Written::Rows);
            }
        };
        Ok(Written::File(text))
    }
}
