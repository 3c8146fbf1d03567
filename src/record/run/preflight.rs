//! One real trial before anything is started: the very options, and the very target.
//!
//! Reading settings is not enough: filters of system calls do not show there, and distributions give numbers other meanings. What
//! fails is asked for with less, a step at a time. Nothing is left behind.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Failure, machine};
use crate::record::plan::options::Options;
use crate::record::plan::trouble::{self, Next};
use crate::record::plan::{Facts, Note, Target};

/// So many trials at most.
const TRIALS: usize = 8;

/// What works here, and what is lost against what was wanted.
pub(super) fn preflight(
    perf: &Path,
    wanted: Options,
    target: &Target,
    facts: &Facts,
) -> Result<(Options, Vec<Note>), Failure> {
    let mut options = wanted;
    let mut notes = Vec::new();
    for _ in 0..TRIALS {
        let Err(said) = trial(perf, &options, target)? else {
            return Ok((options, notes));
        };
        match trouble::next(&said, &options, target, facts) {
            Next::Again(less, note) => {
                options = *less;
                notes.extend(note);
            }
            Next::Ends(trouble) => return Err(Failure::of(trouble)),
        }
    }
    let text = "perf cannot record here, whatever is left out of the options";
    Err(Failure::of(trouble::Trouble::new(text, [])))
}

/// Records nothing for a moment; what perf said if it fails.
fn trial(perf: &Path, options: &Options, target: &Target) -> Result<Result<(), String>, Failure> {
    let mut command = Command::new(perf);
    command.arg("record").args(options.words());
    // No file: a signal that ends us would leave it.
    command.args(["-o", "/dev/null"]);
    match target {
        Target::Command(_) => {}
        Target::Processes(pids) => drop(command.arg("-p").arg(list(pids))),
        Target::Machine => drop(command.arg("-a")),
    }
    command.args(["--", "true"]);
    let done = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|_| Failure::of(trouble::no_perf(&machine::os_release())))?;
    if done.status.success() {
        return Ok(Ok(()));
    }
    let said = [done.stderr, done.stdout].concat();
    Ok(Err(String::from_utf8_lossy(&said).into_owned()))
}

/// Processes as perf takes them.
pub(super) fn list(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    pids.join(",")
}
