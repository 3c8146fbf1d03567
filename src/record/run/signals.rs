//! Signals to pjit while it records.
//!
//! What a terminal sends (^C) has reached the command as well, which is in the same group. What somebody sends to pjit alone is
//! passed on. A signal that was ignored when pjit was started, as by `nohup`, stays so.

use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// Signals as they come.
#[derive(Debug)]
pub(super) struct Arriving {
    /// Their numbers.
    pub(super) numbers: Receiver<i32>,
    handle: Option<Handle>,
}

impl Arriving {
    /// Takes signals from now on.
    pub(super) fn new() -> Self {
        let wanted = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD].into_iter();
        let signals = Signals::new(wanted.filter(|&signal| !is_ignored(signal))).ok();
        let (sender, numbers): (Sender<i32>, _) = channel();
        let handle = signals.as_ref().map(Signals::handle);
        if let Some(mut signals) = signals {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    if sender.send(signal).is_err() {
                        return;
                    }
                }
            });
        }
        Self { numbers, handle }
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.close();
        }
    }
}

/// Whether the process was started with this signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Whether the terminal sends its signals to this group.
pub(super) fn is_in_front() -> bool {
    let Ok(terminal) = fs::File::open("/dev/tty") else {
        return false;
    };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp())
}

/// Sends a signal to a process of ours that was not waited for.
pub(super) fn send(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // It may have ended, and nobody is to be told.
        let _ = kill_process(pid, signal);
    }
}
