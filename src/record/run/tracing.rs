//! Probes as long as a recording needs them: added to the kernel's list, and removed at every end.
//!
//! They have a name with pjit's number in it, so that a later pjit can remove what one left that was killed. Signals that end pjit are
//! held back from before the first is added: who is asked to end meanwhile removes them and then does.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};
use signal_hook::consts::SIGCHLD;

use super::Failure;
use super::signals::Arriving;
use crate::record::plan::probes::Probes;
use crate::record::plan::trouble::Trouble;

/// Where the kernel may show its list.
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const EVENTS: &str = "uprobe_events";
/// What groups of ours begin with.
const GROUP: &str = "pjit_";

/// The name that probes of this process share.
pub(super) fn group() -> String {
    format!("{GROUP}{}", std::process::id())
}

/// The kernel's list.
pub(super) fn list() -> Result<PathBuf, Failure> {
    let mut lists = TRACING.iter().map(|folder| Path::new(folder).join(EVENTS));
    let found = lists.find(|list| list.exists());
    // Who may not look into the folder sees nothing there.
    let is_hidden = || {
        TRACING
            .iter()
            .any(|folder| access(*folder, Access::EXEC_OK).is_err())
    };
    match found {
        Some(list) if access(&list, Access::WRITE_OK).is_ok() => Ok(list),
        None if rustix::process::geteuid().is_root() || !is_hidden() => {
            Err(Failure::of(Trouble::new(
                "the kernel's list of probes is not there: tracefs is not mounted",
                ["sudo mount -t tracefs none /sys/kernel/tracing"],
            )))
        }
        _ => Err(Failure::of(Trouble::new(
            "this user may not add probes",
            ["sudo pjit record --alloc …"],
        ))),
    }
}

/// Probes that are there until this is gone.
#[derive(Debug)]
pub(super) struct Added {
    list: PathBuf,
    names: Vec<String>,
    arriving: Arriving,
}

impl Added {
    /// Adds them, and removes those of processes that are gone.
    pub(super) fn add(probes: &Probes) -> Result<Self, Failure> {
        let list = list()?;
        remove_of_the_dead();
        let mut added = Self {
            list,
            names: Vec::new(),
            arriving: Arriving::new(),
        };
        for (line, probe) in probes.lines().iter().zip(&probes.all) {
            if let Err(error) = with_patience(|| write(&added.list, line)) {
                let text = format!(
                    "the kernel takes no probe on {} of {}: {error}",
                    probe.name,
                    probes.file.display()
                );
                return Err(Failure::of(Trouble::new(
                    text,
                    ["--lib FILE names another allocator"],
                )));
            }
            added.names.push(format!("{}/{}", probes.group, probe.name));
        }
        Ok(added)
    }

    /// The signal that asked pjit to end since, if one did.
    pub(super) fn interrupted(&self) -> Option<i32> {
        let mut arrived = self.arriving.numbers.try_iter();
        arrived.find(|&signal| signal != SIGCHLD)
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        for name in &self.names {
            if let Err(error) = with_patience(|| write(&self.list, &format!("-:{name}"))) {
                let list = self.list.display();
                let text = format!("note: the probe {name} is left in {list}: {error}\n");
                // That of a terminal that is gone takes nothing.
                let _ = io::stderr().write_all(text.as_bytes());
            }
        }
    }
}

/// Removes what a pjit left that was killed. What somebody still records the kernel keeps; perf of a pjit that was just killed lets go
/// of one after the other.
pub(super) fn remove_of_the_dead() {
    let Ok(list) = list() else { return };
    // What is left then the next one removes.
    let _ = with_patience(|| {
        let text = fs::read_to_string(&list).unwrap_or_default();
        let dead = text
            .lines()
            .filter_map(name_of)
            .filter(|name| is_of_dead(name));
        let removed = dead.map(|name| write(&list, &format!("-:{name}")));
        removed.fold(Ok(()), io::Result::and)
    });
}

/// Whether a probe is of a pjit that is gone.
fn is_of_dead(name: &str) -> bool {
    let pid = name
        .strip_prefix(GROUP)
        .and_then(|rest| rest.split('/').next());
    let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// `GROUP/NAME` of `p:GROUP/NAME FILE:OFFSET …`
fn name_of(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let (letter, name) = word.split_once(':')?;
    let is_probe = letter.starts_with(['p', 'r']) && name.contains('/');
    is_probe.then_some(name)
}

/// One line at a time, as the kernel wants it.
fn write(list: &Path, line: &str) -> io::Result<()> {
    let mut file = fs::File::options().append(true).open(list)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Again for a while: the kernel refuses while others come and go, and as long as perf is not quite gone.
fn with_patience(what: impl Fn() -> io::Result<()>) -> io::Result<()> {
    const TRIES: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(200);
    let mut done = what();
    for _ in 1..TRIES {
        let is_busy = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::ResourceBusy
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::WouldBlock
            )
        };
        if !done.as_ref().is_err_and(is_busy) {
            break;
        }
        std::thread::sleep(PAUSE);
        done = what();
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_list() {
        assert_eq!(
            name_of("p:pjit_7/malloc /lib/x:0x1 size=%di"),
            Some("pjit_7/malloc")
        );
        assert_eq!(
            name_of("r16:pjit_7/m__return /x:0x1"),
            Some("pjit_7/m__return")
        );
        for none in ["", "p", "p:x", "-:a/b", "# a"] {
            assert_eq!(name_of(none), None, "{none}");
        }
    }
}
