//! The terminal: where output goes (a pager or stdout), and progress while a long run is under way.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::diagnostics::Diagnostics;

/// Where a report goes.
pub enum Output {
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
    /// A pager; the child is waited for by [`Output::finish`].
    Pager(BufWriter<ChildStdin>, Child),
}

const BUFFER: usize = 1 << 16;

impl Output {
    /// Standard output, through a pager when that is a terminal and one is wanted. `pager` is the command
    /// (`$PERF_PAGER`, `$PAGER`), run by a shell as perf does; empty or `cat` means none.
    #[must_use]
    pub fn open(pager: Option<&str>) -> Self {
        let wanted =
            pager.filter(|command| io::stdout().is_terminal() && !matches!(*command, "" | "cat"));
        wanted
            .and_then(Self::start)
            .unwrap_or_else(|| Self::Stdout(BufWriter::with_capacity(BUFFER, io::stdout())))
    }

    fn start(command: &str) -> Option<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            // As perf and git: quit if it fits one screen, keep colours, chop long lines.
            .env(
                "LESS",
                std::env::var_os("LESS").unwrap_or_else(|| "FRSX".into()),
            )
            .stdin(Stdio::piped())
            .spawn()
            .ok()?;
        let stdin = child.stdin.take()?;
        Some(Self::Pager(BufWriter::with_capacity(BUFFER, stdin), child))
    }

    /// Flushes, and waits for the pager to be left.
    ///
    /// # Errors
    /// When the last bytes cannot be written.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::Pager(mut out, mut child) => {
                let flushed = out.flush();
                drop(out);
                child.wait()?;
                flushed
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Pager(out, _) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Pager(out, _) => out.flush(),
        }
    }
}

/// Whether colours are wanted: `--color`/`--stdio-color` first, then `NO_COLOR`, then whether stdout is a terminal.
#[must_use]
pub fn colored(choice: Option<bool>, no_color: bool) -> bool {
    choice.unwrap_or_else(|| !no_color && io::stdout().is_terminal())
}

/// Runs `work` and, when stderr is a terminal and it takes longer than a second, shows how far it is.
pub fn with_progress<T>(diag: &Diagnostics, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, wait): (Sender<()>, Receiver<()>) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || show_progress(diag, &wait));
        let result = work();
        drop(done);
        result
    })
}

fn show_progress(diag: &Diagnostics, wait: &Receiver<()>) {
    let mut shown = false;
    let mut delay = Duration::from_secs(1);
    while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(delay) {
        delay = Duration::from_millis(200);
        let (stage, percent) = diag.progress();
        let _ = write!(io::stderr(), "\r\x1b[Kpjit: {stage} {percent} %");
        shown = true;
    }
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}
