//! The command: started by pjit itself, kept waiting until perf is attached.
//!
//! So its exit status, its signals and its end are pjit's to handle, not perf's. It runs in pjit's own process group: what a terminal
//! sends reaches it as if pjit were not there. SIGTERM comes to it where pjit is killed.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::perf::die_with;
use crate::record::plan::environment::Variable;

/// What lets the command go.
const GO: u8 = b'g';

/// The other side of a command that waits.
pub(super) struct Gate {
    number: PipeReader,
    way: PipeWriter,
}

/// A command that is not started yet.
pub(super) struct Waiting {
    command: Command,
    /// Says that there will be no process.
    number: PipeWriter,
}

/// A command that will wait at a gate.
pub(super) fn waiting(
    program: &Path,
    words: &[OsString],
    variables: &[Variable],
) -> io::Result<(Waiting, Gate)> {
    let (number_out, number) = io::pipe()?;
    let (way_in, way) = io::pipe()?;
    let mut command = Command::new(program);
    let (name, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    command.arg0(name).args(arguments);
    for variable in variables {
        command.env(variable.name, &variable.value);
    }
    let told = number.try_clone()?;
    let own = rustix::process::getpid();
    #[expect(
        unsafe_code,
        reason = "there is no other way to act between fork and exec"
    )]
    // SAFETY: the closure makes system calls and nothing else: it allocates nothing and takes no lock. It owns the descriptors.
    unsafe {
        command.pre_exec(move || {
            die_with(own, Signal::TERM)?;
            let pid = rustix::process::getpid().as_raw_pid();
            rustix::io::write(&told, &pid.to_ne_bytes())?;
            let mut word = [0];
            loop {
                match rustix::io::read(way_in.as_fd(), &mut word) {
                    Err(rustix::io::Errno::INTR) => {}
                    Ok(1) if word == [GO] => return Ok(()),
                    _ => return Err(io::ErrorKind::Interrupted.into()),
                }
            }
        });
    }
    let waiting = Waiting { command, number };
    let gate = Gate {
        number: number_out,
        way,
    };
    Ok((waiting, gate))
}

/// A command that is not recorded, running.
pub(super) fn at_once(program: &Path, words: &[OsString]) -> io::Result<Child> {
    let (name, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    Command::new(program).arg0(name).args(arguments).spawn()
}

impl Waiting {
    /// Starts it, and comes back when it was let go and is running. It ends with the thread that calls this.
    pub(super) fn start(mut self) -> io::Result<Child> {
        let started = self.command.spawn();
        if started.is_err() {
            // Where there was no process, somebody still waits for its number.
            let _ = self.number.write_all(&0i32.to_ne_bytes());
        }
        started
    }
}

impl Gate {
    /// The number of the process that waits; none if there will be none.
    pub(super) fn pid(&mut self) -> Option<u32> {
        let mut bytes = [0; 4];
        self.number.read_exact(&mut bytes).ok()?;
        let pid = i32::from_ne_bytes(bytes);
        u32::try_from(pid).ok().filter(|&pid| pid != 0)
    }

    /// Lets it go, or has it end without having begun.
    pub(super) fn open(mut self, go: bool) {
        // It may have been killed meanwhile, which its parent will see.
        let _ = self.way.write_all(&[if go { GO } else { b'n' }]);
    }
}

/// Whether a child has ended. It is not waited for.
pub(super) fn has_ended(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), options) {
        Ok(ended) => ended.is_some(),
        // What cannot be asked about is not there any more.
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

/// The status that a shell has for what a signal ended.
pub(super) fn status_of_signal(signal: i32) -> u8 {
    u8::try_from((128 + signal) & 0xff).unwrap_or(1)
}

/// The status that a shell has for it.
pub(super) fn status_of(ended: ExitStatus) -> u8 {
    let code = ended
        .code()
        .or_else(|| ended.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(1) & 0xff).unwrap_or(1)
}
