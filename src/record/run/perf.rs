//! perf, attached to what is recorded and told by pipes when to begin and to stop.
//!
//! It waits (`-D -1`) until it is told `enable`, and says `ack` when it records. It holds both ends of both pipes: where pjit dies,
//! perf would give up on a closed one and leave its file without an end. For the same case it asks the kernel for SIGINT, with
//! which it completes its file. That signal comes when the *thread* ends that started it, so whoever starts it has to stay.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

use super::preflight::list;
use crate::record::plan::options::Options;
use crate::record::plan::{Target, trouble};

/// A recording under way.
pub(super) struct Perf {
    child: Child,
    orders: PipeWriter,
    answers: PipeReader,
    ended: Option<ExitStatus>,
}

impl Perf {
    /// Starts it and has it record, with less where that is needed: with which options. None where it ended instead; `log` has
    /// what it said.
    ///
    /// The trial before may have had what is not there any more: all recordings of a user share what the kernel lets them lock.
    pub(super) fn begin(
        perf: &Path,
        mut options: Options,
        target: &Target,
        out: &Path,
        log: &File,
    ) -> io::Result<Option<(Self, Options)>> {
        loop {
            let mut begun = Self::start(perf, &options, target, out, log)?;
            if begun.tell("enable") {
                return Ok(Some((begun, options)));
            }
            begun.end();
            let less = options.with_less_ring().filter(|_| !options.is_ring_given);
            let Some(less) = less.filter(|_| trouble::is_of_ring(&said(log))) else {
                return Ok(None);
            };
            options = less;
            let mut log = log;
            log.set_len(0)?;
            log.rewind()?;
        }
    }

    /// Starts it; it records nothing yet. What it says goes to `log`.
    fn start(
        perf: &Path,
        options: &Options,
        target: &Target,
        out: &Path,
        log: &File,
    ) -> io::Result<Self> {
        let (orders_in, orders) = io::pipe()?;
        let (answers, answers_out) = io::pipe()?;
        let mut command = Command::new(perf);
        command.arg("record").args(options.words());
        let control = format!("fd:{},{}", orders_in.as_raw_fd(), answers_out.as_raw_fd());
        command.args(["-D", "-1", "--control", &control]);
        command.arg("-o").arg(out);
        match target {
            Target::Processes(pids) => drop(command.arg("-p").arg(list(pids))),
            Target::Command(_) | Target::Machine => drop(command.arg("-a")),
        }
        command
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            // What a terminal sends is meant for the command.
            .process_group(0);
        let ends = [
            orders_in.as_raw_fd(),
            answers_out.as_raw_fd(),
            orders.as_raw_fd(),
            answers.as_raw_fd(),
        ];
        let own = rustix::process::getpid();
        #[expect(
            unsafe_code,
            reason = "there is no other way to act between fork and exec"
        )]
        // SAFETY: the closure makes system calls and nothing else: it allocates nothing and takes no lock. The numbers are of
        // pipes that outlive the call below, and that the new process has copies of.
        unsafe {
            command.pre_exec(move || {
                for end in ends {
                    fcntl_setfd(BorrowedFd::borrow_raw(end), FdFlags::empty())?;
                }
                die_with(own, Signal::INT)
            });
        }
        let child = command.spawn()?;
        drop((orders_in, answers_out));
        Ok(Self {
            child,
            orders,
            answers,
            ended: None,
        })
    }

    /// Gives an order, and waits until it is carried out. False when perf has ended instead.
    pub(super) fn tell(&mut self, order: &str) -> bool {
        if writeln!(self.orders, "{order}").is_err() {
            return false;
        }
        let mut said = Vec::new();
        while !said.ends_with(b"\n") {
            if !self.has_answer() {
                return false;
            }
            let mut bytes = [0; 64];
            match self.answers.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => said.extend(bytes.iter().take(count).filter(|&&b| b != 0)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        said.starts_with(b"ack")
    }

    /// Waits until there is something to read, or perf has ended.
    fn has_answer(&mut self) -> bool {
        const AT_ONCE: rustix::event::Timespec = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        loop {
            let fd = self.answers.as_fd();
            let mut watched = [PollFd::new(&fd, PollFlags::IN)];
            let count = poll(&mut watched, Some(&AT_ONCE));
            if count.is_ok_and(|count| count > 0) {
                return true;
            }
            if self.has_ended() {
                return false;
            }
        }
    }

    /// Whether it has, of itself or by a signal.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_some()
    }

    /// The signal that ended it, if one did.
    pub(super) fn ended_by(&mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let ended = self.has_ended().then_some(self.ended).flatten();
        ended.and_then(|status| status.signal())
    }

    /// Has it complete its file, and waits.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        /// A file that cannot be written any more, for instance.
        const LONGEST: Duration = Duration::from_secs(600);
        if !self.has_ended() {
            let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // It was not waited for, so the number is still its.
                let _ = kill_process(pid, Signal::INT);
            }
        }
        let began = std::time::Instant::now();
        while !self.has_ended() && began.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.ended
    }
}

/// What is in a log.
fn said(mut log: &File) -> String {
    /// perf's words are fewer.
    const LONGEST: u64 = 64 << 10;
    let mut said = Vec::new();
    // What cannot be read says nothing.
    let _ = log.rewind();
    let _ = log.take(LONGEST).read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

/// Asks for a signal where the process ends that started this one; an error if it has.
pub(super) fn die_with(parent: Pid, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    if getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}
