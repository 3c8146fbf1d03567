//! Puts what belongs to a recording beside it: dumps, perf maps, names of the kernel.
//!
//! Which files those are, the recording tells: dumps by the paths that were mapped, and what lies in `/tmp` under the number of a
//! process of it. Only regular files, through the gate; only of this user or root; only what was written since the start. What
//! was made since then, by a process that is gone, is moved; everything else is copied.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;

use super::folder::keep_kallsyms;
use super::keeper::Kept;
use crate::diagnostics::Diagnostics;
use crate::find::{
    file_name, gathered_name, is_log_beside_dump, left_behind, path_of, perf_info_path,
    perf_map_name, perf_map_path, temporary_dump,
};
use crate::input::{born, identity};
use crate::load::{Source, Whereabouts, whereabouts};
use crate::record::plan::environment::Environment;
use crate::record::plan::{Note, Target};
use crate::runtimes::Producer;

/// The kernel stamps files with the time of its last tick.
const TICK: Duration = Duration::from_millis(20);

/// A file that lies beside the recording now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// What it is called there.
    pub name: String,
    /// Where it was.
    pub from: PathBuf,
    /// Whether it is still there, too.
    pub copied: bool,
}

/// What was gathered.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) moved: Vec<Moved>,
    pub(super) notes: Vec<Note>,
    pub(super) whereabouts: Whereabouts,
}

/// Gathers what belongs to the recording in `folder`, which began then.
pub(super) fn gather(folder: &Path, target: &Target, began: SystemTime, kept: &Kept) -> Gathered {
    let diag = Diagnostics::new();
    let source = Source::File(folder.join("perf.data"));
    let mut gathered = Gathered::default();
    match whereabouts(&source, &diag) {
        Ok(found) => gathered.whereabouts = found,
        Err(error) => {
            gathered.notes.push(Note::new(error.to_string()));
            return gathered;
        }
    }
    let found = gathered.whereabouts.clone();
    let gathering = Gathering {
        folder,
        began: began.checked_sub(TICK).unwrap_or(began),
        is_command: matches!(target, Target::Command(_)),
        kept,
    };
    for (path, pids) in &found.dumps {
        gathering.dump(path, pids, &mut gathered);
    }
    for &pid in &found.processes {
        let name = perf_map_name(pid);
        if kept.has(pid) {
            gathering.take_held(kept.map(pid), &name, &mut gathered);
            let dump_name = dump_name_of(pid);
            gathering.take_held(kept.dump(pid), &dump_name, &mut gathered);
            continue;
        }
        if gathering.take(&perf_map_path(pid), &name, pid, &mut gathered) && !lives(pid, None) {
            gathering.remove_made(&perf_info_path(pid));
        }
        gathering.take(&temporary_dump(pid), &dump_name_of(pid), pid, &mut gathered);
    }
    if found.in_kernel > 0
        && let Err(error) = keep_kallsyms(folder)
        && error.kind() == io::ErrorKind::AlreadyExists
    {
        let name = crate::find::KALLSYMS_PACKED;
        let note = format!("{name}: was there before, and stays; it may be of another kernel");
        gathered.notes.push(Note::new(note));
    }
    gathered.notes.extend(too_old(&found));
    let going_on = if gathering.is_command {
        found
            .born
            .iter()
            .filter(|&&pid| lives(pid, Some(began)))
            .count()
    } else {
        0
    };
    if going_on > 0 {
        let (noun, verb) = if going_on == 1 {
            ("process", "goes")
        } else {
            ("processes", "go")
        };
        let note = Note::new(format!("{going_on} {noun} of the command {verb} on"));
        gathered
            .notes
            .push(note.mended_by("--until-exit records to the last one's end"));
    }
    gathered
}

/// Whether processes took so much time that what is missing of them is worth telling.
fn took_time(found: &Whereabouts, pids: &BTreeSet<u32>) -> bool {
    /// Per cent of all samples.
    const WORTH_TELLING: u64 = 5;
    let all: u64 = found.samples.values().sum();
    let samples = pids.iter().filter_map(|pid| found.samples.get(pid));
    all > 0 && samples.sum::<u64>() * 100 >= all * WORTH_TELLING
}

/// Runtimes that got their switches, took time and wrote nothing.
pub(super) fn silent(gathered: &Gathered, environment: &Environment) -> Vec<Note> {
    let found = &gathered.whereabouts;
    let has_switch = |name: &str| {
        let mut variables = environment.variables.iter();
        variables.any(|variable| variable.name == name)
    };
    let told = |pid: &&u32| {
        let names = [perf_map_name(**pid), dump_name_of(**pid)];
        let mut moved = gathered.moved.iter();
        moved.any(|moved| names.contains(&moved.name))
    };
    let notes = Producer::all().filter_map(|runtime| {
        let silence = runtime.stays_silent?;
        let is_its = |path: &[u8]| {
            let name = file_name(path);
            match runtime.library {
                Some(library) => name == library.as_bytes(),
                None => runtime.runs(&String::from_utf8_lossy(name)),
            }
        };
        if !runtime
            .switches
            .iter()
            .all(|switch| has_switch(switch.variable))
        {
            return None;
        }
        let mut programs = found.programs.iter();
        let (_, mapped) = programs.find(|(path, _)| is_its(path))?;
        let pids: BTreeSet<u32> = mapped.by.iter().filter(|pid| !told(pid)).copied().collect();
        let note = Note::new(format!("{} {}", runtime.short_name, silence.why));
        let note = note.mended_by(silence.record);
        took_time(found, &pids).then_some(note)
    });
    notes.collect()
}

/// Programs that took time, of releases that do not tell of their code: nothing else shows that functions are missing.
fn too_old(found: &Whereabouts) -> Vec<Note> {
    let old = found.programs.iter().filter_map(|(path, mapped)| {
        let name = String::from_utf8_lossy(file_name(path));
        let (runtime, since) = Producer::all().find_map(|runtime| {
            let (word, since) = runtime.tells_since?;
            let (major, minor) = name.strip_prefix(word)?.split_once('.')?;
            let own: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
            (own < since).then_some((runtime, since))
        })?;
        let (major, minor) = since;
        let text = format!(
            "{name} cannot tell which functions of scripts it runs: {} {major}.{minor} or newer can",
            runtime.name
        );
        took_time(found, &mapped.by).then(|| Note::new(text))
    });
    old.collect()
}

/// What the dump of a process is called.
fn dump_name_of(pid: u32) -> String {
    let dump = temporary_dump(pid);
    let name = dump.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether a process runs that began after this.
fn lives(pid: u32, since: Option<SystemTime>) -> bool {
    const WITHIN: Duration = Duration::from_secs(2);
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    let is_running = state.is_some_and(|state| !matches!(state, 'Z' | 'X'));
    let is_it = |earliest: SystemTime| {
        let began = crate::input::living::began(pid);
        began.is_some_and(|began| began + WITHIN >= earliest)
    };
    is_running && since.is_none_or(is_it)
}

struct Gathering<'g> {
    folder: &'g Path,
    began: SystemTime,
    is_command: bool,
    /// What was held of processes in containers.
    kept: &'g Kept,
}

impl Gathering<'_> {
    /// A dump that processes had mapped, and the log that V8 writes beside it.
    fn dump(&self, path: &[u8], pids: &BTreeSet<u32>, gathered: &mut Gathered) {
        let recorded = path_of(path);
        if !recorded.is_absolute() {
            return;
        }
        let name = file_name(path);
        // Dumps of several namespaces may share a path.
        let (held, pids): (BTreeSet<u32>, BTreeSet<u32>) =
            pids.iter().partition(|pid| self.kept.has(**pid));
        for pid in held {
            let file = self.kept.file(pid, path_of(name));
            self.take_held(file, &gathered_name(name, pid), gathered);
        }
        let Some(&pid) = pids.iter().next() else {
            return;
        };
        // The process whose number is in the name wrote it; others inherited the mapping.
        let is_named = |candidate: &&u32| gathered_name(name, **candidate).as_bytes() == name;
        let pid = pids.iter().find(is_named).copied().unwrap_or(pid);
        let is_gone = !lives(pid, None);
        if self.take(recorded, &gathered_name(name, pid), pid, gathered) && is_gone {
            let parent = recorded.parent().unwrap_or(Path::new("/"));
            self.remove_logs(parent, pid);
        }
    }

    /// V8 logs as soon as it writes dumps, and nobody wants that log.
    fn remove_logs(&self, folder: &Path, pid: u32) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if is_log_beside_dump(entry.file_name().as_encoded_bytes(), pid) {
                self.remove_made(&entry.path());
            }
        }
    }

    /// Removes a file of this user's that was made since the start.
    fn remove_made(&self, path: &Path) {
        let is_ours = fs::symlink_metadata(path).is_ok_and(|meta| {
            meta.is_file() && meta.uid() == geteuid().as_raw() && self.is_made_since(path)
        });
        if is_ours {
            let _ = fs::remove_file(path);
        }
    }

    /// Whether it was not there before the start. File systems that do not tell have said nothing.
    fn is_made_since(&self, path: &Path) -> bool {
        born(path).is_some_and(|born| born >= self.began)
    }

    /// Copies a file of a container, if it is of this recording.
    fn take_held(&self, file: Option<File>, name: &str, gathered: &mut Gathered) {
        let to = self.folder.join(name);
        let is_new = |candidate: &File| {
            let meta = candidate.metadata();
            let modified = meta.and_then(|meta| meta.modified());
            !self.is_command || modified.is_ok_and(|modified| modified >= self.began)
        };
        let Some(file) = file.filter(is_new) else {
            return;
        };
        if to.symlink_metadata().is_ok() {
            return;
        }
        match copy(&file, &to) {
            Ok(_) => gathered.moved.push(Moved {
                name: name.to_owned(),
                from: PathBuf::from("(a container)"),
                copied: true,
            }),
            Err(error) => gathered.notes.push(Note::new(format!("{name}: {error}"))),
        }
    }

    /// Takes a file that belongs to a process, if it may be taken.
    fn take(&self, from: &Path, name: &str, pid: u32, gathered: &mut Gathered) -> bool {
        let to = self.folder.join(name);
        // One that was made here out of a running program is there already.
        if to.symlink_metadata().is_ok()
            || gathered
                .moved
                .iter()
                .any(|moved| moved.from == from || moved.name == name)
        {
            return false;
        }
        let Ok(judged) = left_behind(from).open() else {
            return false;
        };
        let meta = judged.meta();
        // No link: what is judged is what has the name.
        let is_it = fs::symlink_metadata(from)
            .is_ok_and(|named| identity(from, &named) == judged.identity());
        let (own, owner) = (geteuid().as_raw(), meta.uid());
        let may_be_taken = owner == own || owner == 0 || own == 0;
        let is_new = meta.modified().is_ok_and(|modified| modified >= self.began);
        // Who ran before may have told of its code before.
        let is_its = || {
            !self.is_command
                && meta.modified().is_ok_and(|modified| {
                    let born = crate::input::living::began(pid);
                    born.is_some_and(|born| modified + Duration::from_secs(1) >= born)
                })
        };
        if !is_it || !may_be_taken || !(is_new || is_its()) {
            return false;
        }
        let is_gone = !lives(pid, None);
        let may_be_moved = is_gone && owner == own && self.is_made_since(from);
        if self.is_command && is_new && born(from).is_some_and(|born| born < self.began) {
            let text = format!(
                "{} was there before: it may tell of older code, too",
                from.display()
            );
            gathered
                .notes
                .push(Note::new(text).mended_by(format!("rm {}", from.display())));
        }
        let wanted = judged.identity();
        let taken = if may_be_moved && fs::rename(from, &to).is_ok() {
            fs::symlink_metadata(&to).map(|arrived| identity(&to, &arrived) == wanted)
        } else {
            copy(judged.file(), &to).inspect(|_| {
                let still = fs::symlink_metadata(from);
                if may_be_moved && still.is_ok_and(|current| identity(from, &current) == wanted) {
                    let _ = fs::remove_file(from);
                }
            })
        };
        match taken {
            Ok(_) => gathered.moved.push(Moved {
                name: name.to_owned(),
                from: from.to_owned(),
                copied: !may_be_moved,
            }),
            Err(error) => {
                let text = format!("{}: {error}", from.display());
                gathered.notes.push(Note::new(text));
            }
        }
        true
    }
}

/// Copies an open file to a new one, for this user alone. A dump may still grow; its size now is enough.
fn copy(file: &File, to: &Path) -> io::Result<bool> {
    use std::io::Read;
    let mut options = File::options();
    let mut target = options.write(true).create_new(true).mode(0o600).open(to)?;
    let size = file.metadata()?.len();
    io::copy(&mut file.take(size), &mut target)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::plan::environment::Variable;

    #[test]
    fn runtimes_that_wrote_nothing_are_told() {
        let mut gathered = Gathered::default();
        let found = &mut gathered.whereabouts;
        let java = found.programs.entry(b"/jvm/lib/server/libjvm.so".to_vec());
        java.or_default().by.extend([1, 2]);
        found.samples = [(1, 4), (2, 50), (3, 46)].into();
        let variable = |name| Variable {
            name,
            value: "".into(),
            added: String::new(),
        };
        let environment = |names: &[&'static str]| Environment {
            variables: names.iter().copied().map(variable).collect(),
            ..Environment::default()
        };
        let both = environment(&["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"]);
        let [note] = &silent(&gathered, &both)[..] else {
            panic!("one note")
        };
        assert!(
            note.text.starts_with("Java wrote no perf map: "),
            "{note:?}"
        );
        let remedy = "pjit record --java-agent libperf-jvmti.so -- …";
        assert_eq!(note.remedy.as_deref(), Some(remedy));
        // Who got no switch, or did too little to be worth it, or wrote.
        assert_eq!(silent(&gathered, &environment(&["JAVA_TOOL_OPTIONS"])), []);
        gathered.moved.push(Moved {
            name: "perf-2.map".to_owned(),
            from: "/tmp/perf-2.map".into(),
            copied: false,
        });
        assert_eq!(silent(&gathered, &both), []);
    }

    #[test]
    fn old_releases_that_took_time_are_told() {
        let mut found = Whereabouts::default();
        for (path, pid, samples) in [
            (&b"/usr/bin/python3.11"[..], 1, 90),
            (b"/usr/bin/python3.9", 2, 1),
            (b"/usr/bin/python3.12", 3, 50),
            (b"/usr/bin/pypy3.9", 4, 50),
            (b"/usr/bin/python3-config", 5, 50),
        ] {
            found
                .programs
                .entry(path.to_vec())
                .or_default()
                .by
                .insert(pid);
            found.samples.insert(pid, samples);
        }
        let notes = too_old(&found);
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "python3.11 cannot tell which functions of scripts it runs: CPython 3.12 or newer can"
            ]
        );
    }
}
