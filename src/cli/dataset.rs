//! Writes tables of recordings below one folder: `ROOT/v1/TABLE/date=DAY/RECORDING.parquet`.
//!
//! Each file is written in `ROOT/v1/.part` and gets its name and folder when it is whole: engines refuse a folder with half a file, or
//! with a file of another name. That of the table `recordings` is the last. Below ROOT no link is followed, whoever put it there.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use super::refusal::said;
use super::target::settle_rights;
use super::terminal::with_progress;
use super::verb::wrong_usage;
use crate::ask::{Arena, AskError, Library, Request, ask_each};
use crate::diagnostics::Diagnostics;
use crate::output::caption::plural;
use crate::output::dataset::{DatasetOptions, TIMES, Tables, VERSION};
use crate::output::text::harmless;

/// Where files are that are not whole.
const UNFINISHED: &str = ".part";

/// Writes the tables of recordings, one after the other, so that there is never more than one in memory. One that cannot be read
/// is told of and counted, and the others are written all the same.
pub(super) fn write(
    requests: &[Request<DatasetOptions>],
    root: &Path,
    diag: &Diagnostics,
) -> anyhow::Result<ExitCode> {
    if root.as_os_str() == "-" {
        return Err(wrong_usage(
            "the dataset is a folder of files\nhint: -o FOLDER",
        ));
    }
    let cannot = || format!("cannot write {}", root.display());
    let root_folder = Folder::root(root).with_context(cannot)?;
    let mut rows = 0;
    let mut failures = Vec::new();
    let each = |answer: Result<Tables, AskError>| {
        let tables = match answer {
            Ok(tables) => tables,
            Err(error) if error.is_request() || requests.len() == 1 => return Err(error.into()),
            Err(error) => {
                failures.push(said("error", &error.to_string(), error.hint()));
                return Ok(());
            }
        };
        root_folder.put(&tables).with_context(cannot)?;
        rows += tables
            .tables
            .iter()
            .map(|table| table.rows())
            .sum::<usize>();
        // One after the other they would be more than any of them.
        drop(tables);
        anyhow::Ok(())
    };
    let arena = Arena::new();
    let library = Library::of_one_question(&arena, diag);
    with_progress(diag, || ask_each(requests, &library, each))?;
    io::stderr().write_all(failures.concat().as_bytes())?;
    let failed = failures.len();
    let note = match failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let line = format!(
        "{}: {}{note}, {}",
        harmless(&root.display().to_string()),
        plural(requests.len(), "recording"),
        plural(rows, "row")
    );
    writeln!(io::stderr(), "{line}")?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

impl Folder {
    /// Writes all files of a recording, and takes away what an earlier export of it has that this one has not.
    fn put(&self, tables: &Tables) -> io::Result<()> {
        let version = self.below(VERSION)?;
        let unfinished = version.below(UNFINISHED)?;
        let name = tables.file_name();
        let date = format!("date={}", tables.date);
        if !tables.tables.iter().any(|table| table.name == TIMES)
            && let Some(times) = version.find(TIMES)?
            && let Some(day) = times.find(&date)?
        {
            day.remove(&name)?;
        }
        for table in &tables.tables {
            let bytes = table.file()?;
            let temporary = format!("{}-{name}.{}", table.name, std::process::id());
            let folder = version.below(table.name)?.below(&date)?;
            let written = unfinished.write(&temporary, &bytes);
            let placed = written.and_then(|()| unfinished.rename(&temporary, &folder, &name));
            if placed.is_err() {
                // Nothing is lost when it cannot be removed.
                let _ = unfinished.remove(&temporary);
            }
            placed?;
        }
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // One of this process' number is what was left by another one that was killed.
        self.remove(name)?;
        let mut file = self.create(name)?;
        file.write_all(bytes)?;
        settle_rights(&file, None, 0o777)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.unlink(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// A folder in it, if it is there.
    fn find(&self, name: &str) -> io::Result<Option<Self>> {
        match self.open(name) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A folder in it, made if it is not there.
    fn below(&self, name: &str) -> io::Result<Self> {
        match self.make(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.open(name),
        }
    }
}

/// A folder that is open: what is in it is reached from there, and no link put in its way leads elsewhere.
#[cfg(unix)]
struct Folder(std::os::fd::OwnedFd);

#[cfg(unix)]
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};

#[cfg(unix)]
impl Folder {
    const FLAGS: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);

    /// The folder that was named, which may be a link.
    fn root(path: &Path) -> io::Result<Self> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Ok(Self(open(path, Self::FLAGS, Mode::empty())?))
    }

    fn open(&self, name: &str) -> io::Result<Self> {
        let flags = Self::FLAGS | OFlags::NOFOLLOW;
        Ok(Self(openat(&self.0, name, flags, Mode::empty())?))
    }

    fn make(&self, name: &str) -> io::Result<()> {
        Ok(mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // What is half written is for nobody else.
        let private = Mode::from_raw_mode(0o600);
        Ok(openat(&self.0, name, flags | OFlags::NOFOLLOW, private)?.into())
    }

    fn rename(&self, from: &str, folder: &Self, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &folder.0, to)?)
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

/// The path of a folder that is no link.
#[cfg(not(unix))]
struct Folder(std::path::PathBuf);

#[cfg(not(unix))]
impl Folder {
    fn root(path: &Path) -> io::Result<Self> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        std::fs::read_dir(path)?;
        Ok(Self(path.to_owned()))
    }

    fn open(&self, name: &str) -> io::Result<Self> {
        let path = self.0.join(name);
        if path.symlink_metadata()?.is_dir() {
            Ok(Self(path))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    fn make(&self, name: &str) -> io::Result<()> {
        std::fs::create_dir(self.0.join(name))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        super::terminal::new_private(&self.0.join(name))
    }

    fn rename(&self, from: &str, folder: &Self, to: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(from), folder.0.join(to))
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.0.join(name))
    }
}
