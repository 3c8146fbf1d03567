//! Runs `debuginfod-find`, one file at a time, and ends it where it runs over.
//!
//! No shell is between: the words are a kind, a build ID in hexadecimal, and for sources a path that was judged
//! ([`super::can_be_asked`]).

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::{Cache, Outcome, State, Wanted};
use crate::record::run::program_on_path;

/// The program.
const PROGRAM: &str = "debuginfod-find";
/// What it reads of its environment: servers, seconds without 100 KB, seconds in all, bytes of a file.
const URLS: &str = "DEBUGINFOD_URLS";
const TIMEOUT: &str = "DEBUGINFOD_TIMEOUT";
const MAXTIME: &str = "DEBUGINFOD_MAXTIME";
const MAXSIZE: &str = "DEBUGINFOD_MAXSIZE";

/// Why nothing can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No server is set.
    NoServer,
    /// There is no client.
    NoClient,
}

/// How long a client may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Seconds without progress.
    pub timeout: u64,
    /// Seconds in all; none if the user said so.
    pub most: Option<u64>,
}

impl Patience {
    /// The user's, or else pjit's.
    fn of(setting: impl Fn(&str) -> Option<String>) -> Self {
        const DEFAULT: [u64; 2] = [90, 300];
        let seconds = |name| setting(name)?.trim().parse::<u64>().ok();
        let most = seconds(MAXTIME).unwrap_or(DEFAULT[1]);
        Self {
            timeout: seconds(TIMEOUT).unwrap_or(DEFAULT[0]),
            most: (most > 0).then_some(most),
        }
    }
}

/// debuginfod's client.
#[derive(Debug)]
pub struct Client {
    program: PathBuf,
    cache: Cache,
    /// How long it may take for a file.
    pub patience: Patience,
    /// Bytes that may still be fetched.
    left: u64,
}

impl Client {
    /// The one on PATH, which may fetch so many bytes.
    ///
    /// # Errors
    /// When there is none, or no server that it could ask.
    pub fn find(cache: Cache, most: u64) -> Result<Self, Failure> {
        let setting = |name: &str| std::env::var(name).ok();
        if setting(URLS).is_none_or(|urls| urls.trim().is_empty()) {
            return Err(Failure::NoServer);
        }
        Ok(Self {
            program: program_on_path(PROGRAM.as_ref()).ok_or(Failure::NoClient)?,
            cache,
            patience: Patience::of(setting),
            left: most,
        })
    }

    /// Asks for a file. `progress` hears how many bytes are there; it ends when `is_stopped`.
    pub fn fetch(
        &mut self,
        wanted: &Wanted,
        is_stopped: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Outcome {
        if self.left == 0 {
            return Outcome::TooLarge;
        }
        let before = self.cache.listed(wanted);
        let mut child = match self.command(wanted).spawn() {
            Ok(child) => child,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        limit(&child, self.left);
        let ended = self.wait(&mut child, is_stopped, &mut || {
            progress(self.cache.written(wanted, before.as_ref()));
        });
        let outcome = match ended {
            None => Outcome::Ended,
            Some(status) if status.success() => self.judge(wanted),
            Some(status) => self.failure(wanted, status, &words_of(&mut child)),
        };
        if !matches!(outcome, Outcome::Fetched(_)) {
            self.cache.tidy(wanted, before.as_ref());
        }
        outcome
    }

    fn command(&self, wanted: &Wanted) -> Command {
        let mut command = Command::new(&self.program);
        let own = std::env::var(MAXSIZE)
            .ok()
            .and_then(|own| own.trim().parse().ok());
        let most = own
            .filter(|own| *own > 0)
            .unwrap_or(self.left)
            .min(self.left);
        command
            .args(wanted.words())
            .env("LC_ALL", "C")
            .env("DEBUGINFOD_CACHE_PATH", self.cache.folder())
            .env(TIMEOUT, self.patience.timeout.to_string())
            .env(MAXTIME, self.patience.most.unwrap_or(0).to_string())
            .env(MAXSIZE, most.to_string())
            .env_remove("DEBUGINFOD_PROGRESS")
            .env_remove("DEBUGINFOD_VERBOSE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Waits for its end; nothing if it was ended.
    fn wait(
        &self,
        child: &mut Child,
        is_stopped: &AtomicBool,
        progress: &mut dyn FnMut(),
    ) -> Option<ExitStatus> {
        /// What it may be late with its own limit.
        const GRACE: Duration = Duration::from_secs(5);
        const STEP: Duration = Duration::from_millis(20);
        let began = Instant::now();
        let most = self
            .patience
            .most
            .map(|most| Duration::from_secs(most) + GRACE);
        loop {
            let is_over = most.is_some_and(|most| began.elapsed() > most);
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if !is_over && !is_stopped.load(Ordering::Relaxed) => {
                    std::thread::sleep(STEP);
                    progress();
                }
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return None;
                }
            }
        }
    }

    /// What came, if it is what was asked for.
    fn judge(&mut self, wanted: &Wanted) -> Outcome {
        match self.cache.state(wanted) {
            State::Here => {
                let size = self.cache.size(wanted);
                self.left = self.left.saturating_sub(size);
                Outcome::Fetched(size)
            }
            State::Absent => Outcome::Failed("the client stored it elsewhere".to_owned()),
            missed @ State::Missed { .. } => Outcome::Missed(missed),
            State::Other(_) => {
                self.cache.remove(wanted);
                Outcome::Other
            }
        }
    }

    /// What its words mean.
    fn failure(&self, wanted: &Wanted, status: ExitStatus, words: &str) -> Outcome {
        const UNREACHABLE: [&str; 5] = [
            "Connection refused",
            "No route to host",
            "Network is unreachable",
            "Host is unreachable",
            "Connection reset",
        ];
        if status.signal() == Some(libc::SIGXFSZ) || words.contains("File too large") {
            return Outcome::TooLarge;
        }
        if words.contains("Timer expired") || words.contains("timed out") {
            return Outcome::TooSlow;
        }
        if UNREACHABLE.iter().any(|known| words.contains(known)) {
            return Outcome::Unreachable(words.to_owned());
        }
        match self.cache.state(wanted) {
            missed @ State::Missed { .. } => Outcome::Missed(missed),
            _ if words.is_empty() => Outcome::Failed(format!("{PROGRAM}: {status}")),
            _ => Outcome::Failed(words.to_owned()),
        }
    }
}

/// Keeps a client from writing more than this into a file, however much a server sends.
fn limit(child: &Child, most: u64) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for (resource, ceiling) in [(Resource::Core, 0), (Resource::Fsize, most)] {
        let limit = Rlimit {
            current: Some(ceiling),
            maximum: Some(ceiling),
        };
        // It has just been started, or has ended.
        let _ = prlimit(pid, resource, limit);
    }
}

/// The last line of what a client said that has ended, without its first words.
fn words_of(child: &mut Child) -> String {
    const MOST: u64 = 1 << 14;
    let mut said = Vec::new();
    if let Some(words) = &mut child.stderr {
        let _ = words.take(MOST).read_to_end(&mut said);
    }
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    let last = last.unwrap_or_default();
    last.rsplit_once("failed: ")
        .map_or(last, |(_, why)| why)
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_patience_goes_first() {
        let with = |most: Option<&'static str>| {
            Patience::of(move |name| most.filter(|_| name == MAXTIME).map(str::to_owned))
        };
        let of = |timeout, most| Patience { timeout, most };
        assert_eq!(with(None), of(90, Some(300)));
        assert_eq!(with(Some("7")), of(90, Some(7)));
        assert_eq!(with(Some("0")), of(90, None));
        assert_eq!(with(Some("x")), of(90, Some(300)));
    }
}
