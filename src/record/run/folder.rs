//! The folder of a recording: where it lies, and what pjit itself writes into it.
//!
//! Stacks hold what the program had in its memory: nobody else may look into it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, lchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;
use serde_json::{Value, json};

use super::used::Used;
use super::{Failure, Moved, Request};
use crate::find::{CACHE, KALLSYMS_PACKED, PLAN, plan_in, running_kallsyms};
use crate::input::{self, Store, local_time};
use crate::record::plan::environment::{self, Environment, Made};
use crate::record::plan::options::{CallGraph, Options};
use crate::record::plan::trouble::Trouble;
use crate::record::plan::{Facts, Note, Target};

/// perf's file in it.
const RECORDING: &str = "perf.data";
/// What perf said.
const LOG: &str = "perf.log";
/// How it was recorded.
pub(super) use crate::input::find::STORY;

/// A folder that was made.
pub(super) struct Folder {
    path: PathBuf,
    /// Whether it was not there before.
    is_new: bool,
    /// What perf says, once this folder is ours.
    log: Option<File>,
}

/// Where a recording of this will lie, absolute.
pub(super) fn path(
    named: Option<&Path>,
    target: &Target,
    facts: &Facts,
) -> Result<PathBuf, Failure> {
    let path = match named {
        // Elsewhere that is a stream, and a folder of that name would hide standard input from other commands.
        Some(path) if path == Path::new("-") => {
            return Err(Failure::of(Trouble::new(
                "record writes a folder, and none to standard output",
                ["-o DIR"],
            )));
        }
        Some(path) => facts.here.join(path),
        None => fresh(&facts.here, &target.label()),
    };
    if path.join(RECORDING).symlink_metadata().is_ok() {
        return Err(is_taken(&path));
    }
    // Views would take these for this recording's.
    for name in [KALLSYMS_PACKED, STORY] {
        if path.join(name).symlink_metadata().is_ok() {
            return Err(Failure::of(Trouble::new(
                format!("{} has the {name} of another recording", path.display()),
                ["-o DIR names another folder"],
            )));
        }
    }
    let parent = if path.is_dir() {
        path.as_path()
    } else {
        path.parent().unwrap_or(Path::new("/"))
    };
    if access(parent, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let what = if parent.is_dir() {
            "cannot be written"
        } else {
            "is not there"
        };
        return Err(Failure::of(Trouble::new(
            format!("{} {what}", parent.display()),
            ["-o DIR names another folder"],
        )));
    }
    Ok(path)
}

/// True if something lies there, but for a folder without anything in it.
pub(super) fn has_something(path: &Path) -> bool {
    let is_empty = |mut entries: fs::ReadDir| entries.next().is_none();
    path.symlink_metadata().is_ok() && !fs::read_dir(path).is_ok_and(is_empty)
}

/// What is said where a recording lies already.
pub(super) fn is_taken(path: &Path) -> Failure {
    Failure::of(Trouble::new(
        format!("{} has a recording already", path.display()),
        ["-o DIR names another folder"],
    ))
}

/// A new folder for a recording of this, by the clock; the second of a second has a number.
#[must_use]
pub fn fresh(here: &Path, label: &str) -> PathBuf {
    let name = format!("pjit-{label}-{}", moment());
    let numbered = (2..1000).map(|number| here.join(format!("{name}-{number}")));
    let mut paths = std::iter::once(here.join(&name)).chain(numbered);
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
    paths.find(is_free).unwrap_or_else(|| here.join(&name))
}

/// `20260131-235959`, by the clock of the wall.
fn moment() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |now| now.as_secs());
    let date = i64::try_from(seconds).ok().and_then(local_time);
    date.map_or_else(
        || seconds.to_string(),
        |date| {
            format!(
                "{:04}{:02}{:02}-{:02}{:02}{:02}",
                date.year(),
                date.month(),
                date.month_day(),
                date.hour(),
                date.minute(),
                date.second()
            )
        },
    )
}

/// With less a recording ends, or does not begin.
const LEAST_SPACE: u64 = 200 << 20;

/// What to say where little is free, or that there is too little.
pub(super) fn little_space(folder: &Path) -> Result<Option<Note>, Failure> {
    const ENOUGH: u64 = 1 << 30;
    let Some(free) = free_space(folder) else {
        return Ok(None);
    };
    let text = format!("{} MB are free where the recording goes", free >> 20);
    if free < LEAST_SPACE {
        let text = format!("{text}, and {} MB are needed", LEAST_SPACE >> 20);
        return Err(Failure::of(Trouble::new(text, ["-o DIR on another disk"])));
    }
    let note = Note::new(text).mended_by("-o DIR on another disk, or -F 99");
    Ok((free < ENOUGH).then_some(note))
}

/// Bytes that this user may still write there.
pub(super) fn free_space(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|path| path.is_dir())?;
    let facts = statvfs(there).ok()?;
    facts.f_bavail.checked_mul(facts.f_frsize)
}

/// What is told of a recording.
pub(super) struct Story<'s> {
    pub(super) request: &'s Request,
    pub(super) options: &'s Options,
    pub(super) environment: &'s Environment,
    /// The command's; nothing while it runs.
    pub(super) status: Option<u8>,
    pub(super) began: SystemTime,
    /// How long the command ran.
    pub(super) ran: Option<Duration>,
    /// CPU time of the command and of the children that it waited for.
    pub(super) used: Option<Used>,
    /// When perf ended, since its beginning, if that was before its time.
    pub(super) perf_ended: Option<Duration>,
    pub(super) notes: &'s [Note],
    pub(super) moved: &'s [Moved],
}

impl Folder {
    /// Makes it.
    pub(super) fn make(path: &Path) -> Result<Self, Failure> {
        let made = DirBuilder::new().mode(0o700).create(path);
        let is_new = made.is_ok();
        match made {
            Err(error) if !path.is_dir() => {
                Err(Failure::new(format!("{}: {error}", path.display())))
            }
            _ => Ok(Self {
                path: path.to_owned(),
                is_new,
                log: None,
            }),
        }
    }

    /// Whether it was not there before.
    pub(super) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Makes sure that nobody else records into it: the file for what perf says is ours alone.
    pub(super) fn claim(&mut self) -> Result<(), Failure> {
        match new_file(&self.path.join(LOG)) {
            Ok(log) => {
                self.log = Some(log);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Failure::of(Trouble::new(
                    format!("somebody records into {} already", self.path.display()),
                    ["-o DIR names another folder"],
                )))
            }
            Err(error) => Err(Failure::new(format!("{}: {error}", self.path.display()))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where perf writes.
    pub(super) fn recording(&self) -> PathBuf {
        self.path.join(RECORDING)
    }

    /// Whether what perf wrote is still there: one file, or slices of it.
    pub(super) fn has_recording(&self) -> bool {
        let inside = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names = inside.map(|entry| entry.file_name());
        names.any(|name| name.as_encoded_bytes().starts_with(RECORDING.as_bytes()))
    }

    /// Whether perf will soon find no room any more.
    pub(super) fn is_full(&self) -> bool {
        free_space(&self.path).is_some_and(|free| free < LEAST_SPACE)
    }

    /// The file for what perf says.
    pub(super) fn log(&self) -> io::Result<File> {
        let log = self.log.as_ref().ok_or(io::ErrorKind::NotFound)?;
        log.try_clone()
    }

    /// What it said, on one line.
    pub(super) fn read_log(&self) -> String {
        const LINES: usize = 3;
        let bytes = fs::read(self.path.join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.take(LINES).collect();
        lines.join(" / ")
    }

    /// Makes files that variables lead to.
    pub(super) fn add_files(&self, files: &[Made]) -> io::Result<()> {
        for file in files {
            // Another user may run what reads them, but not look around.
            DirBuilder::new().mode(0o711).create(&file.folder)?;
            new_file(&file.folder.join(file.name))?.write_all(file.text.as_bytes())?;
        }
        Ok(())
    }

    /// Takes them away again.
    pub(super) fn remove_files(&self, files: &[Made]) {
        for file in files {
            let _ = fs::remove_file(file.folder.join(file.name));
            let _ = fs::remove_dir(&file.folder);
        }
    }

    /// Leaves nothing of what was made here.
    pub(super) fn remove(&mut self) {
        for name in [RECORDING, LOG, PLAN] {
            let _ = fs::remove_file(self.path.join(name));
        }
        let inside = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in inside.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".")) {
            if self.is_new {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        if self.is_new {
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// Removes the folders that an agent made in here for its dumps, which are elsewhere now.
    pub(super) fn forget_places(&self) {
        let mut emptied = vec![self.path.join(CACHE)];
        let mut at = 0;
        while let Some(folder) = emptied.get(at) {
            let inside = fs::read_dir(folder).into_iter().flatten().flatten();
            let folders = inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
            emptied.extend(folders);
            at += 1;
        }
        for folder in emptied.iter().rev() {
            // What is not empty stays.
            let _ = fs::remove_dir(folder);
        }
    }

    /// Writes down how it is recorded, for [`finish`].
    pub(super) fn tell_plan(&self, story: &Story<'_>) -> io::Result<()> {
        write(&self.path.join(PLAN), &in_json(story))
    }

    /// Writes down how it was recorded.
    pub(super) fn tell(&self, story: &Story<'_>) -> io::Result<()> {
        let _ = fs::remove_file(self.path.join(PLAN));
        write(&self.path.join(STORY), &in_json(story))
    }

    /// Gives it to who asked for it, where root did that for somebody.
    pub(super) fn finish(&self, keep_log: bool) {
        if !keep_log {
            let _ = fs::remove_file(self.path.join(LOG));
        }
        if !geteuid().is_root() || !self.is_new {
            return;
        }
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let Some(user) = number("SUDO_UID") else {
            return;
        };
        let group = number("SUDO_GID");
        let mut todo = vec![self.path.clone()];
        while let Some(path) = todo.pop() {
            // No links: all of this was made here.
            if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                let inside = fs::read_dir(&path).into_iter().flatten().flatten();
                todo.extend(inside.map(|entry| entry.path()));
            }
            let _ = lchown(path, Some(user), group);
        }
    }
}

/// Tells the same of a recording whose recorder was killed, as far as that had written it down.
///
/// # Errors
/// When it is no such text, or cannot be written.
pub(super) fn finish(folder: &Path, ended: SystemTime, moved: &[Moved]) -> io::Result<()> {
    let text =
        input::Story::text(&plan_in(folder), &Store::new()).ok_or(io::ErrorKind::NotFound)?;
    let mut story: Value = serde_json::from_slice(&text)?;
    let fields = story.as_object_mut().ok_or(io::ErrorKind::InvalidData)?;
    fields.insert("ended".to_owned(), json!(seconds(ended)));
    fields.insert("gathered".to_owned(), gathered(moved));
    write(&folder.join(STORY), &story)?;
    fs::remove_file(folder.join(PLAN))
}

fn write(path: &Path, story: &Value) -> io::Result<()> {
    let text = serde_json::to_string_pretty(story)?;
    let mut file = new_file(path)?;
    writeln!(file, "{text}")
}

fn gathered(moved: &[Moved]) -> Value {
    let all = moved.iter().map(|moved| {
        json!({
            "name": moved.name,
            "from": moved.from.to_string_lossy(),
            "copied": moved.copied,
        })
    });
    all.collect()
}

/// Removes what runtimes were led to while they were recorded, and what perf said.
pub(super) fn forget_switches(folder: &Path) {
    for made in environment::made_files(folder) {
        let _ = fs::remove_file(made.folder.join(made.name));
        let _ = fs::remove_dir(made.folder);
    }
    let _ = fs::remove_file(folder.join(LOG));
}

/// Keeps the names of kernel functions, if they are shown.
pub(super) fn keep_kallsyms(folder: &Path) -> io::Result<()> {
    let path = folder.join(KALLSYMS_PACKED);
    let judged = running_kallsyms().open().map_err(io::Error::other)?;
    let file = new_file(&path)?;
    let pack = || {
        let mut packed = GzEncoder::new(file, Compression::fast());
        io::copy(&mut judged.into_file(), &mut packed)?;
        packed.finish().map(drop)
    };
    // Half of a table is none. One that was there before is not this one's to remove.
    pack().inspect_err(|_| drop(fs::remove_file(&path)))
}

/// A file that was not there, for this user alone.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// What `--again` needs, and what people ask later. Of the user's environment nothing but what was added to it.
fn in_json(story: &Story<'_>) -> Value {
    let Story {
        request, options, ..
    } = story;
    let texts = |words: &[OsString]| -> Vec<String> {
        words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    };
    let (command, processes) = match &request.target {
        Target::Command(words) => (texts(words), Vec::new()),
        Target::Processes(pids) => (Vec::new(), pids.clone()),
        Target::Machine => (Vec::new(), Vec::new()),
    };
    let here = std::env::current_dir().unwrap_or_default();
    let asked = &request.asked;
    let call_graph = |graph: &CallGraph| match graph {
        CallGraph::Dwarf(bytes) => format!("dwarf,{bytes}"),
        CallGraph::Other(word) => word.clone(),
    };
    let variables = story.environment.variables.iter();
    let added = variables.map(|variable| (variable.name.to_owned(), json!(variable.added)));
    json!({
        "pjit": env!("CARGO_PKG_VERSION"),
        "command": command,
        "processes": processes,
        "machine": request.target == Target::Machine,
        "stop_watch": texts(&request.stop_watch),
        "cwd": here.to_string_lossy(),
        "began": seconds(story.began),
        "ended": seconds(SystemTime::now()),
        "ran": story.ran.map(rounded),
        "cpu": story.used.map(|used| json!({
            "user": rounded(used.user),
            "system": rounded(used.system),
        })),
        "perf_ended": story.perf_ended.map(rounded),
        "status": story.status,
        "environment": added.collect::<serde_json::Map<String, Value>>(),
        "perf": options.words(),
        "asked": {
            "events": asked.events,
            "frequency": asked.frequency,
            "period": asked.period,
            "call_graph": asked.call_graph.as_ref().map(call_graph),
            "ring": asked.ring,
            "uncompressed": asked.uncompressed,
            "off_cpu": asked.off_cpu,
            "metrics": asked.metrics,
            "alloc": asked.alloc.as_ref().map(|alloc| json!({
                "live": alloc.live,
                "min": alloc.least,
                "lib": alloc.library.as_ref().map(|library| library.to_string_lossy()),
            })),
            "load": request.load,
            "perf": asked.more,
            "duration": request.duration.map(|duration| duration.as_secs_f64()),
            "until_exit": request.until_exit,
            "files": request.files,
            "no_switch": request.choice.without,
            "java_agent": request.choice.java_agent.as_ref().map(|agent| agent.to_string_lossy()),
        },
        "frequency": options.frequency,
        "call_graph": call_graph(&options.call_graph),
        "notes": story.notes.iter().map(|note| note.text.clone()).collect::<Vec<_>>(),
        "gathered": gathered(story.moved),
    })
}

fn seconds(time: SystemTime) -> f64 {
    rounded(time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// Seconds, to a thousandth.
fn rounded(span: Duration) -> f64 {
    (span.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_table_that_is_there_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(KALLSYMS_PACKED);
        fs::write(&path, "of somebody").expect("written");
        let error = keep_kallsyms(folder.path()).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("still there"), b"of somebody");
    }
}
