//! Asks for one file after the other, and prints what became of each.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::FetchArgs;
use crate::ask::{Fetch, Fetchable, Request};
use crate::check::quoted;
use crate::cli::Context;
use crate::cli::bundle::megabytes;
use crate::cli::refusal::said;
use crate::cli::terminal::Output;
use crate::cli::verb::{answered, wrong_usage};
use crate::fetch::{Cache, Client, Failure, Outcome, State, Wanted, hour};
use crate::output::text::harmless;

/// The status of a process that a terminal's ^C has ended.
const STOPPED: u8 = 130;
const NO_SERVER: &str = "no debuginfod server is set\nhint: export DEBUGINFOD_URLS=https://debuginfod.elfutils.org, or add the URL to /etc/debuginfod/NAME.urls and log in again";
const NO_CLIENT: &str = "debuginfod-find is not installed";
const PACKAGES: &str = "apt install debuginfod, or dnf install elfutils-debuginfod-client";

pub(super) fn run(args: &FetchArgs, context: &Context<'_>) -> anyhow::Result<ExitCode> {
    let environment = context.environment;
    let folder = environment.debuginfod.clone();
    let folder = folder.ok_or_else(|| {
        wrong_usage("there is no folder for what is fetched\nhint: set DEBUGINFOD_CACHE_PATH")
    })?;
    let cache = Cache::of(folder);
    let client = match Client::find(cache.clone(), args.max_size) {
        _ if args.dry_run => None,
        Ok(client) => Some(client),
        Err(Failure::NoServer) => return Err(wrong_usage(NO_SERVER)),
        Err(Failure::NoClient) => {
            let lines = said("error", NO_CLIENT, Some(PACKAGES));
            std::io::stderr().write_all(lines.as_bytes())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let load = args
        .list
        .load_options(&args.files, &args.input, environment)
        .map_err(wrong_usage)?;
    let view = Fetch {
        executables: args.executables,
        sources: args.sources.clone(),
    };
    let fetchable = answered(&Request::of(load, view), context.diag)?;
    let mut out = Output::open(None);
    let mut rows = Rows {
        fetchable: &fetchable,
        out: &mut out,
    };
    rows.head()?;
    let status = match client {
        Some(client) => rows.fetch(client, &cache)?,
        None => rows.list(&cache)?,
    };
    rows.foot()?;
    out.finish()?;
    Ok(status)
}

/// What is printed.
struct Rows<'r> {
    fetchable: &'r Fetchable,
    out: &'r mut Output,
}

impl Rows<'_> {
    fn head(&mut self) -> std::io::Result<()> {
        let files = match self.fetchable.wanted.len() {
            0 => "nothing to fetch".to_owned(),
            1 => "1 file to ask for".to_owned(),
            count => format!("{count} files to ask for"),
        };
        writeln!(self.out, "# pjit fetch: {files}")
    }

    /// `--dry-run`
    fn list(&mut self, cache: &Cache) -> std::io::Result<ExitCode> {
        for wanted in &self.fetchable.wanted {
            let text = known(&cache.state(wanted)).unwrap_or_else(|| {
                let words: Vec<String> = wanted.words().iter().map(|word| quoted(word)).collect();
                format!("debuginfod-find {}", words.join(" "))
            });
            self.row(wanted, &text)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn fetch(&mut self, mut client: Client, cache: &Cache) -> anyhow::Result<ExitCode> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&is_stopped))?;
        }
        let mut is_good = true;
        for wanted in &self.fetchable.wanted {
            if let Some(text) = known(&cache.state(wanted)) {
                self.row(wanted, &text)?;
                continue;
            }
            let outcome = {
                let mut line = Progress::of(wanted);
                client.fetch(wanted, &is_stopped, &mut |bytes| line.show(bytes))
            };
            is_good &= matches!(outcome, Outcome::Fetched(_) | Outcome::Missed(_));
            if is_stopped.load(Ordering::Relaxed) {
                self.row(wanted, "stopped")?;
                return Ok(ExitCode::from(STOPPED));
            }
            self.row(wanted, &became(&outcome, &client))?;
            if matches!(outcome, Outcome::Unreachable(_)) {
                // It would be the same of the rest, each time after a while.
                break;
            }
        }
        Ok(if is_good {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn row(&mut self, wanted: &Wanted, text: &str) -> std::io::Result<()> {
        let (all, own) = (self.fetchable.samples.max(1), wanted.samples);
        let share = match own {
            0 => String::new(),
            own => format!("{:.2}%", 100.0 * own as f64 / all as f64),
        };
        let (name, kind) = (harmless(&wanted.name), wanted.kind());
        writeln!(self.out, "{share:>7}  {kind} of {name}: {}", harmless(text))?;
        self.out.flush()
    }

    /// What nobody is asked for.
    fn foot(&mut self) -> std::io::Result<()> {
        /// So many are named.
        const MOST: usize = 3;
        let lists = [
            (
                "without a proven build ID",
                self.fetchable.unproven.keys().collect::<Vec<_>>(),
            ),
            (
                "of no known build, or with a path that is not sent",
                self.fetchable.unasked.iter().collect(),
            ),
        ];
        for (why, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            let shown = names.iter().take(MOST).map(|name| harmless(name));
            let shown: Vec<_> = shown.collect();
            let more = match names.len().saturating_sub(MOST) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            writeln!(
                self.out,
                "# not asked for, {why}: {}{more}",
                shown.join(", ")
            )?;
        }
        Ok(())
    }
}

/// What there is to say of a file that is not asked for.
fn known(state: &State) -> Option<String> {
    Some(match state {
        State::Absent => return None,
        State::Here => "in the cache already".to_owned(),
        State::Other(file) => format!(
            "the cache has another file; remove {} to ask again",
            file.display()
        ),
        State::Missed { file, at, again } => format!(
            "was not there at {}; is asked again after {}, or remove {}",
            hour(*at),
            hour(*again),
            file.display()
        ),
    })
}

/// What became of a file that was asked for.
fn became(outcome: &Outcome, client: &Client) -> String {
    let patience = client.patience;
    match outcome {
        Outcome::Fetched(size) => format!("fetched, {}", megabytes(*size)),
        Outcome::Other => "the server sent another file; removed".to_owned(),
        Outcome::Missed(state) => match state {
            State::Missed { file, again, .. } => format!(
                "no server has it, or one failed; is asked again after {}, or remove {}",
                hour(*again),
                file.display()
            ),
            _ => "no server has it".to_owned(),
        },
        Outcome::TooLarge => "larger than --max-size leaves; not fetched".to_owned(),
        Outcome::TooSlow => format!(
            "too slow (DEBUGINFOD_TIMEOUT={}, DEBUGINFOD_MAXTIME={}); try again, or set these higher",
            patience.timeout,
            patience.most.unwrap_or(0)
        ),
        Outcome::Ended => format!(
            "debuginfod-find took longer than DEBUGINFOD_MAXTIME={}, and was ended",
            patience.most.unwrap_or(0)
        ),
        Outcome::Unreachable(words) => {
            format!("no server answers ({words}); look at DEBUGINFOD_URLS")
        }
        Outcome::Failed(words) => format!("not fetched: {words}"),
    }
}

/// A line on the terminal while a file is fetched; none elsewhere.
struct Progress {
    front: Option<String>,
    shown: Option<u64>,
}

impl Progress {
    fn of(wanted: &Wanted) -> Self {
        let name = harmless(&wanted.name);
        let front = std::io::stderr().is_terminal();
        Self {
            front: front.then(|| format!("{} of {name}", wanted.kind())),
            shown: None,
        }
    }

    fn show(&mut self, bytes: u64) {
        if let Some(front) = &self.front
            && self.shown != Some(bytes)
        {
            let size = megabytes(bytes);
            // Nobody may be there to read it.
            let _ = write!(std::io::stderr(), "\r\x1b[Kpjit: {front} {size}");
            self.shown = Some(bytes);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
