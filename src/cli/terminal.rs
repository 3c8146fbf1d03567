//! Where output goes (stdout, a pager, a file), and progress while a long run is under way.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::target::{Place, may_be_replaced, settle_rights};
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
    replaces: Replaces,
    /// The rights that it may have at most.
    limit: u32,
}

/// What may be at the path of a file when it gets its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replaces {
    Nothing,
    /// What can be made again.
    Outputs,
    Anything,
}

/// What is half written is for nobody else, and what it is made of may be private.
const PRIVATE: u32 = 0o600;

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
        Mode::from_raw_mode(PRIVATE),
    );
    file.ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// A file of this name that was not there.
pub(super) fn new_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    options.open(path)
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

impl PendingFile {
    fn new(temporary: PathBuf, path: PathBuf, replaces: Replaces) -> Self {
        Self {
            temporary,
            path,
            whole: false,
            is_nameless: false,
            replaces,
            limit: 0o777,
        }
    }

    /// Gives a whole file its rights and its name.
    fn place(&mut self, file: &File) -> anyhow::Result<()> {
        match self.replaces {
            Replaces::Nothing => settle_rights(file, None, self.limit)?,
            _ => settle_rights(file, Some(&self.path), self.limit)?,
        }
        if self.replaces == Replaces::Nothing && self.is_nameless {
            give_name(file, &self.path)?;
            self.whole = true;
            return Ok(());
        }
        if self.is_nameless {
            give_name(file, &self.temporary)?;
            self.is_nameless = false;
        }
        // What is there now may be another file than in the beginning.
        match self.replaces {
            Replaces::Nothing => refuse_existing(&self.path)?,
            Replaces::Outputs => may_be_replaced(&self.path)?,
            Replaces::Anything => {}
        }
        std::fs::rename(&self.temporary, &self.path)?;
        self.whole = true;
        Ok(())
    }
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

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

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
    /// written as it is. `force`: whatever it is that is replaced.
    ///
    /// # Errors
    /// When the file cannot be made, or what is there may not be replaced.
    pub fn to(path: Option<&Path>, force: bool) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::open(None));
        };
        let cannot = || cannot_write(path);
        let path = match Place::of(path, force)? {
            Place::Stdout => return Ok(Self::open(None)),
            Place::AsItIs => {
                let file = OpenOptions::new().write(true).open(path);
                let file = file.with_context(cannot)?;
                let path = path.to_owned();
                let mut pending = PendingFile::new(PathBuf::new(), path, Replaces::Nothing);
                pending.whole = true;
                return Ok(Self::File(BufWriter::with_capacity(BUFFER, file), pending));
            }
            Place::File(path) => path,
        };
        let replaces = if force {
            Replaces::Anything
        } else {
            Replaces::Outputs
        };
        Self::file(path, replaces).with_context(cannot)
    }

    /// The same for a file that must not be there yet.
    ///
    /// # Errors
    /// When it is there or cannot be made.
    pub fn to_new(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::open(None));
        };
        refuse_existing(path)?;
        Self::file(path.to_owned(), Replaces::Nothing)
    }

    fn file(path: PathBuf, replaces: Replaces) -> io::Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let (file, is_nameless) = match nameless(&path) {
            Some(file) => (file, true),
            None => (new_private(&temporary)?, false),
        };
        let mut pending = PendingFile::new(temporary, path, replaces);
        pending.is_nameless = is_nameless;
        Ok(Self::File(BufWriter::with_capacity(BUFFER, file), pending))
    }

    /// Allows others no more than this with the file.
    pub fn limit_rights(&mut self, mode: u32) {
        if let Self::File(_, pending) = self {
            pending.limit &= mode;
        }
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
    /// When the last bytes cannot be written, or what is there by now may not be replaced.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush().context("cannot write the output"),
            Self::Pager(mut out, mut child) => {
                let flushed = out.flush();
                drop(out);
                Ok(left(&mut child, flushed)?)
            }
            Self::File(mut out, mut pending) => {
                let path = pending.path.clone();
                out.flush().with_context(|| cannot_write(&path))?;
                if pending.whole {
                    Ok(())
                } else {
                    pending.place(out.get_ref())
                }
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
        let mut out = Output::to(Some(&path), false).expect("made");
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
        let mut out = Output::to(Some(&path), false).expect("made");
        out.write_all(b"whole").expect("written");
        out.finish().expect("renamed");
        assert_eq!(std::fs::read(&path).expect("there"), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1);
    }
}
