//! Where output goes (stdout, a pager, a file), and progress while a long run is under way.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
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
    /// A file that gets its name only when it is whole.
    File(BufWriter<File>, PendingFile),
}

/// A file without a name, which goes with the process whatever ends it; where the system has none, one under a temporary
/// name beside its final one, removed again unless [`Output::finish`] renames it.
pub struct PendingFile {
    temporary: PathBuf,
    path: PathBuf,
    whole: bool,
    is_nameless: bool,
    replaces: bool,
}

/// A file in the folder of `path` that has no name yet.
#[cfg(target_os = "linux")]
fn nameless(path: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = open(
        folder.unwrap_or(Path::new(".")),
        flags,
        Mode::from_raw_mode(0o666),
    );
    file.ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// Puts a nameless file into its folder.
#[cfg(target_os = "linux")]
fn give_name(file: &File, name: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn give_name(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.whole && !self.is_nameless {
            // Nothing is lost when it cannot be removed, and there is nobody to tell.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Nothing is overwritten, and nothing mixed with what is there.
pub(super) fn refuse_existing(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "is there already; nothing is overwritten",
        )),
        Err(_) => Ok(()),
    }
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

    /// A file, or standard output for none. What is not a regular file (`/dev/stdout`, a FIFO) is
    /// written as it is.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn to(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::open(None));
        };
        if path.exists() && !path.is_file() {
            let file = OpenOptions::new().write(true).open(path)?;
            let pending = PendingFile {
                temporary: PathBuf::new(),
                path: PathBuf::new(),
                whole: true,
                is_nameless: false,
                replaces: true,
            };
            return Ok(Self::File(BufWriter::with_capacity(BUFFER, file), pending));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let (file, is_nameless) = match nameless(path) {
            Some(file) => (file, true),
            None => {
                let mut options = OpenOptions::new();
                (
                    options.write(true).create_new(true).open(&temporary)?,
                    false,
                )
            }
        };
        let pending = PendingFile {
            temporary,
            path: path.to_owned(),
            whole: false,
            is_nameless,
            replaces: true,
        };
        Ok(Self::File(BufWriter::with_capacity(BUFFER, file), pending))
    }

    /// The same for a file that must not be there yet.
    ///
    /// # Errors
    /// When it is there or cannot be made.
    pub fn to_new(path: Option<&Path>) -> io::Result<Self> {
        if let Some(path) = path {
            refuse_existing(path)?;
        }
        let mut output = Self::to(path)?;
        if let Self::File(_, pending) = &mut output {
            pending.replaces = false;
        }
        Ok(output)
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
                left(&mut child, flushed)
            }
            Self::File(mut out, mut pending) => {
                out.flush()?;
                if !pending.whole && !pending.replaces && pending.is_nameless {
                    give_name(out.get_ref(), &pending.path)?;
                    pending.whole = true;
                }
                if !pending.whole {
                    if !pending.replaces {
                        refuse_existing(&pending.path)?;
                    }
                    if pending.is_nameless {
                        give_name(out.get_ref(), &pending.temporary)?;
                        pending.is_nameless = false;
                    }
                    std::fs::rename(&pending.temporary, &pending.path)?;
                    pending.whole = true;
                }
                Ok(())
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Pager(out, child) => match out.write(bytes) {
                Ok(count) => Ok(count),
                failed => left(child, Ok(())).and(failed),
            },
            Self::File(out, _) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Pager(out, _) => out.flush(),
            Self::File(out, _) => out.flush(),
        }
    }
}

/// Waits for a pager; one that the shell could not start has shown nothing, which is an error.
fn left(child: &mut Child, written: io::Result<()>) -> io::Result<()> {
    /// What a shell exits with when it cannot run a command, or does not find it.
    const NOT_RUN: [i32; 2] = [126, 127];
    match child.wait()?.code() {
        Some(code) if NOT_RUN.contains(&code) => Err(io::Error::other(
            "the pager could not be run (PERF_PAGER, PAGER); --no-pager does without",
        )),
        _ => written,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_its_name_when_it_is_whole() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("out");
        let mut out = Output::to(Some(&path)).expect("made");
        out.write_all(b"half").expect("written");
        assert!(!path.exists());
        #[cfg(target_os = "linux")]
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("listed").count(),
            0,
            "nothing is left behind, whatever ends the process"
        );
        drop(out);
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 0);
        let mut out = Output::to(Some(&path)).expect("made");
        out.write_all(b"whole").expect("written");
        out.finish().expect("renamed");
        assert_eq!(std::fs::read(&path).expect("there"), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1);
    }
}
