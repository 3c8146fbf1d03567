//! Probes on this machine's glibc, for tests that record what a program asks of its allocator.
//!
//! perf and the kernel refuse probes while others come and go, sometimes without a word, and recordings with probes of
//! others that are just removed fail. So all of it goes on in turn, in all processes of this machine, and is asked for again.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::live::Lab;
use crate::support::skip;

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";
/// How often perf is asked, and how long is waited in between.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(500);

static IN_THIS_PROCESS: Mutex<()> = Mutex::new(());

/// The turn of one test: no other has probes or records with them.
pub(crate) struct Turn {
    _process: MutexGuard<'static, ()>,
    machine: Option<Child>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(mut holder) = self.machine.take() {
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

/// A process that holds the lock of the machine until its input ends, also when this one dies.
fn holder() -> Option<Child> {
    // Not in this process' own folder of temporary files.
    let mut holder = Command::new("flock")
        .arg("/tmp/pjit-test-probes.lock")
        .args(["sh", "-c", "echo; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let has_it = holder.stdout.take().map(|mut out| out.read(&mut [0]));
    matches!(has_it, Some(Ok(1))).then_some(holder)
}

impl Turn {
    fn take() -> Self {
        let process = IN_THIS_PROCESS
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Self {
            _process: process,
            machine: holder(),
        }
    }
}

/// The turn to add probes; `None`, and why, where there are no rights.
pub(crate) fn turn() -> Option<Turn> {
    // To try again helps where others add probes, not where there is nobody who could.
    if Command::new("perf").arg("--version").output().is_err() {
        skip("probe", "there is no perf");
        return None;
    }
    // Registers are those of x86-64.
    if cfg!(not(target_arch = "x86_64")) {
        skip("probe", "another processor");
        return None;
    }
    // What never can be had is not worth waiting for.
    let tracefs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let may = |folder: &&str| {
        let events = format!("{folder}/uprobe_events");
        File::options().append(true).open(events).is_ok()
    };
    if !tracefs.iter().any(may) {
        skip("probe", "no rights to write uprobe_events of tracefs");
        return None;
    }
    Some(Turn::take())
}

/// Probes that are removed by name when they are no longer needed: drop them before looking at what was recorded, others wait.
pub(crate) struct Probes {
    group: String,
    _turn: Turn,
}

impl Drop for Probes {
    fn drop(&mut self) {
        let all = format!("{}:*", self.group);
        let _ = again(|| perf(&["-d", &all]));
    }
}

fn perf(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("perf")
        .args(["probe", "-q"])
        .args(arguments)
        .output();
    let output = output.map_err(|_| "there is no perf".to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(said)
}

/// Does it until it goes well, or long enough.
pub(crate) fn again<T, E>(what: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let mut done = what();
    for _ in 1..TRIES {
        if done.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        done = what();
    }
    done
}

impl Probes {
    /// Adds some to glibc; `None`, and why, where there are no rights or none such can be had.
    pub(crate) fn add(group: &str, probes: &[&str]) -> Option<Self> {
        Self::on(LIBC, group, probes)
    }

    /// Adds some to a program or library.
    pub(crate) fn on(file: &str, group: &str, probes: &[&str]) -> Option<Self> {
        let added = Self {
            group: format!("pjit_{group}_{}", std::process::id()),
            _turn: turn()?,
        };
        let named = probes
            .iter()
            .map(|probe| format!("--add={}:{probe}", added.group));
        let named: Vec<String> = named.collect();
        let all: Vec<&str> = ["-x", file]
            .into_iter()
            .chain(named.iter().map(String::as_str))
            .collect();
        let add = || {
            let done = perf(&all);
            if done.is_err() {
                // Those before the one that was refused may be there.
                let _ = perf(&["-d", &added.event("*")]);
            }
            done
        };
        if let Err(why) = again(add) {
            skip("probe", &format!("on {file}: {why}"));
            return None;
        }
        Some(added)
    }

    /// The name of an event.
    pub(crate) fn event(&self, name: &str) -> String {
        format!("{}:{name}", self.group)
    }

    /// Records with them: what the program printed. Each try is a recording of its own.
    pub(crate) fn record(
        &self,
        lab: &Lab,
        name: &str,
        options: &[&str],
        command: &[&str],
    ) -> Option<String> {
        let recorded = again(|| lab.try_record(name, options, command));
        recorded.map_err(|why| skip("perf", &why)).ok()
    }
}
