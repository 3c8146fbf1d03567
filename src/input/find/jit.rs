//! Where dumps and perf maps may be, and what they are called.
//!
//! A dump need not lie where it was recorded: profiles are copied from servers and out of containers. Whatever is found by name
//! is checked to be what it should be by who opens it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Place, SearchPaths, path_of};
use crate::input::{Door, files_in, living};
use crate::runtimes::dump_names::{decimal, numbers_of_dump};

/// So many perf maps of processes that the recording does not know are looked at.
const MOST_OTHERS: usize = 256;

/// Where to look for dumps and perf maps.
#[derive(Clone, Debug, Default)]
pub struct JitSearch {
    /// `--jitdump FILE_OR_DIR`; before everything else.
    pub jitdumps: Vec<PathBuf>,
    /// `--perf-map FILE_OR_DIR`; before everything else.
    pub perf_maps: Vec<PathBuf>,
    /// The folder that holds the recording.
    pub recording_dir: PathBuf,
    /// The current directory.
    pub cwd: PathBuf,
    /// `--symfs DIR`: stands for `/` when a recorded path is opened.
    pub symfs: Option<PathBuf>,
    /// The same once more.
    pub more_symfs: Vec<PathBuf>,
    /// Processes that live and began later than this are not those of the recording, if it is known when that ended.
    pub ended: Option<SystemTime>,
}

impl SearchPaths {
    /// The same for dumps and perf maps of a recording that `ended` then.
    #[must_use]
    pub fn of_jit(&self, ended: Option<SystemTime>) -> JitSearch {
        JitSearch {
            jitdumps: self.jitdumps.clone(),
            perf_maps: self.perf_maps.clone(),
            recording_dir: self.recording_dir.clone().unwrap_or_default(),
            cwd: PathBuf::from("."),
            symfs: self.symfs.clone(),
            more_symfs: self.more_symfs.clone(),
            ended,
        }
    }
}

/// What a mapped file's name says about JIT code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MarkerName<'n> {
    /// The path without what the kernel appends to the names of deleted files.
    pub(crate) path: &'n [u8],
    /// The process id in the name, as the writer saw it. JavaScriptCore puts the thread's in front; the last counts.
    pub(crate) number: u32,
    /// One of the files that `perf inject --jit` makes; the dump it was made of lay beside.
    pub(crate) injected: bool,
}

impl MarkerName<'_> {
    /// The path of the dump, as recorded or as it was before `perf inject --jit`.
    pub(crate) fn dump_path(&self) -> Vec<u8> {
        if !self.injected {
            return self.path.to_owned();
        }
        let folder = &self.path[..self.path.len() - file_name(self.path).len()];
        [folder, dump_name(self.number).as_bytes()].concat()
    }
}

/// perf's pattern for dumps (`util/jitdump.c`, `jit_detect`), with as many numbers as there are, and what inject puts
/// in their place. Whose dump it is, the mapping tells, and the pids in the file.
pub(crate) fn marker_name(path: &[u8]) -> Option<MarkerName<'_>> {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let name = file_name(path);
    if let Some(numbers) = numbers_of_dump(name) {
        return Some(MarkerName {
            path,
            number: *numbers.last()?,
            injected: false,
        });
    }
    let numbers = name.strip_prefix(b"jitted-")?.strip_suffix(b".so")?;
    let dash = numbers.iter().position(|&b| b == b'-')?;
    decimal(&numbers[dash + 1..])?;
    Some(MarkerName {
        path,
        number: decimal(&numbers[..dash])?,
        injected: true,
    })
}

/// The path of the dump that a mapped file is, if it is one.
pub(crate) fn dump_of_mapping(path: &[u8]) -> Option<&[u8]> {
    marker_name(path)
        .filter(|marker| !marker.injected)
        .map(|marker| marker.path)
}

/// What the dump of a process is called beside its recording, by the process that had it mapped under a name.
pub(crate) fn gathered_name(name: &[u8], pid: u32) -> String {
    outer_name(name, pid).unwrap_or_else(|| String::from_utf8_lossy(name).into_owned())
}

/// Whether a file is what V8 logs to as soon as a process writes a dump.
pub(crate) fn is_log_beside_dump(name: &[u8], pid: u32) -> bool {
    let end = format!("-{pid}-v8.log");
    name.starts_with(b"isolate-0x") && name.ends_with(end.as_bytes())
}

/// A path as a process sees it, whose folder of `/proc` this is.
pub(crate) fn seen_by(process: &Path, path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    process.join("root").join(path)
}

/// A dump or a map where its writer left it on this machine.
pub(crate) fn left_behind(path: &Path) -> Door {
    Door::recorded(path)
}

/// Where the dump of a process lies that wrote it to the folder for temporary files.
pub(crate) fn temporary_dump(pid: u32) -> PathBuf {
    Path::new(MAPS).join(dump_name(pid))
}

/// The folder for temporary files, where runtimes write.
pub(crate) fn temporary_folder() -> &'static Path {
    Path::new(MAPS)
}

/// Whether a recorded path is that of a dump that has the name of a temporary file, as Bun's has.
pub(crate) fn is_temporary_dump(path: &[u8]) -> bool {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let name = file_name(path);
    !name.ends_with(b".dump") && numbers_of_dump(name).is_some()
}

/// The last part of a path.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or(path)
}

/// What the dump of a process is called.
fn dump_name(pid: u32) -> String {
    format!("jit-{pid}.dump")
}

/// What the perf map of a process is called.
pub(crate) fn perf_map_name(pid: u32) -> String {
    format!("perf-{pid}.map")
}

/// Where runtimes write the perf map of a process; perf gives code without a file this name.
pub(crate) fn perf_map_path(pid: u32) -> PathBuf {
    Path::new(MAPS).join(perf_map_name(pid))
}

/// What .NET to 5 writes with its perf map: the files that it loaded, which a recording knows.
pub(crate) fn perf_info_path(pid: u32) -> PathBuf {
    Path::new(MAPS).join(format!("perfinfo-{pid}.map"))
}

/// The process whose code without a file perf gives this name.
pub(crate) fn pid_of_perf_map(name: &str) -> Option<u32> {
    let number = name.strip_prefix("/tmp/perf-")?.strip_suffix(".map")?;
    number.parse().ok()
}

/// Where runtimes write perf maps.
const MAPS: &str = "/tmp";

/// The places of dumps and perf maps.
pub(crate) struct JitPlaces {
    search: JitSearch,
    /// `--jitdump` and `--perf-map` with directories replaced by what they hold.
    jitdumps: Vec<Door>,
    perf_maps: Vec<Door>,
}

impl JitPlaces {
    pub(crate) fn new(search: JitSearch) -> Self {
        Self {
            jitdumps: expand(&search.jitdumps, is_dump_name),
            perf_maps: expand(&search.perf_maps, is_perf_map_name),
            search,
        }
    }

    /// Files that may be the dump recorded under `path`, best first. `pid` is the process that mapped it.
    pub(crate) fn dump_candidates(&self, path: &[u8], pid: u32) -> Vec<Place> {
        let (name, recorded) = (file_name(path), path_of(path));
        let mut candidates: Vec<Place> = named(&self.jitdumps, name).collect();
        // Dumps of several pid namespaces share a name; who gathers them names them by the ids of the recording.
        if let Some(outer) = outer_name(name, pid) {
            candidates.extend(named(&self.jitdumps, outer.as_bytes()));
            candidates.extend(self.beside(Path::new(&outer)));
        }
        candidates.extend(self.recorded(recorded));
        candidates.extend(self.beside(path_of(name)));
        candidates.extend(self.in_process(pid, recorded));
        candidates
    }

    /// A name in the folder of the recording, and in the current one.
    fn beside(&self, name: &Path) -> [Place; 2] {
        [&self.search.recording_dir, &self.search.cwd]
            .map(|folder| Door::beneath(folder, name).into())
    }

    /// Dumps that no marker led to: those of `--jitdump`, and those beside the recording.
    pub(crate) fn other_dumps(&self) -> Vec<Door> {
        let beside = expand(
            std::slice::from_ref(&self.search.recording_dir),
            is_dump_name,
        );
        self.jitdumps.iter().cloned().chain(beside).collect()
    }

    /// Whether the user named this very file, not a folder that holds it and others.
    pub(crate) fn was_named(&self, path: &Path) -> bool {
        self.search.jitdumps.iter().any(|named| named == path)
    }

    /// Whether the user named this file, or a folder that holds it.
    pub(crate) fn was_asked_for(&self, path: &Path) -> bool {
        self.jitdumps
            .iter()
            .chain(&self.perf_maps)
            .any(|asked| asked.path() == path)
    }

    /// Files that may be the perf map of a process, best first; `inner_pid` is its id in its own
    /// namespace. The flag tells those that another process may have left: where any may, or under an id that processes of
    /// several namespaces have.
    pub(crate) fn perf_map_candidates(&self, pid: u32, inner_pid: u32) -> Vec<(Place, bool)> {
        let mut candidates = Vec::new();
        for number in [pid, inner_pid] {
            let (name, recorded) = (perf_map_name(number), perf_map_path(number));
            let given = named(&self.perf_maps, name.as_bytes());
            candidates.extend(given.map(|place| (place, false)));
            let is_inner = number != pid;
            let beside = Door::beneath(&self.search.recording_dir, &name);
            candidates.push((beside.into(), is_inner));
            candidates.extend(self.recorded(&recorded).map(|place| {
                let is_anybodys = is_inner || place.path() == recorded;
                (place, is_anybodys)
            }));
            if number == inner_pid {
                candidates.extend(self.in_process(pid, &recorded).map(|place| (place, true)));
            }
        }
        candidates
    }

    /// Perf maps under ids that `is_known` does not know: those that were given, those beside the recording, and those where
    /// they were recorded. The flag tells those that lie where any process may have left one.
    pub(crate) fn other_perf_maps(&self, is_known: impl Fn(u32) -> bool) -> Vec<(Door, bool)> {
        let is_other = |name: &[u8]| map_number(name).is_some_and(|number| !is_known(number));
        let is_other_file = |door: &Door| {
            let name = door.path().file_name();
            name.is_some_and(|name| is_other(name.as_encoded_bytes()))
        };
        let sure = self
            .perf_maps
            .iter()
            .filter(|door| is_other_file(door))
            .cloned();
        let beside = expand(std::slice::from_ref(&self.search.recording_dir), is_other);
        let folders = self.recorded(Path::new(MAPS));
        let folders = folders.map(|folder| folder.path().to_owned());
        let folders: Vec<PathBuf> = folders.filter(|folder| folder.is_dir()).collect();
        let there = expand(&folders, is_other);
        let anybodys = self.search.symfs.is_none();
        let all = sure.chain(beside).map(|door| (door, false));
        let all = all.chain(there.into_iter().map(|door| (door, anybodys)));
        all.take(MOST_OTHERS).collect()
    }

    /// The files that `--perf-map` names, with the process that a file's name tells.
    pub(crate) fn named_perf_maps(&self) -> Vec<(Door, Option<u32>)> {
        let files = self.perf_maps.iter().filter(|door| {
            let mut named = self.search.perf_maps.iter();
            named.any(|named| named == door.path())
        });
        let number = |door: &Door| map_number(door.path().file_name()?.as_encoded_bytes());
        files.map(|door| (door.clone(), number(door))).collect()
    }

    /// A recorded path, under the roots that stand for the recorded machine's if there are some: what this machine has
    /// there is not the recording's then.
    fn recorded(&self, path: &Path) -> impl Iterator<Item = Place> {
        let roots = self.search.symfs.iter().chain(&self.search.more_symfs);
        let below = roots.map(|root| Place::in_root(root, path));
        let is_here = self.search.symfs.is_none() && path.is_absolute();
        let here = is_here.then(|| Door::recorded(path).into());
        below.chain(here)
    }

    /// Where a process that still lives in another mount namespace sees a path. Its links are those of its own root: the owner of a
    /// container would else lead us to any file of this machine. Under a root that stands for the recorded machine's there are no
    /// processes, and one that began after the recording has only the number of a recorded one.
    fn in_process(&self, pid: u32, path: &Path) -> Option<Place> {
        let began_later = |ended| began_later(pid, ended) == Some(true);
        if self.search.symfs.is_some() || self.search.ended.is_some_and(began_later) {
            return None;
        }
        Some(Place::in_root(&root_of(pid), path))
    }
}

/// Whether a process that lives began later than this; nothing where the system does not tell.
pub(super) fn began_later(pid: u32, than: SystemTime) -> Option<bool> {
    /// Start times are told to a tick, and clocks are set.
    const WITHIN: Duration = Duration::from_secs(2);
    let began = living::began(pid)?.checked_sub(WITHIN)?;
    Some(began > than)
}

/// The root of a process.
pub(crate) fn root_of(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("root")
}

/// What a dump with this name is called by who knows its process by another id than is in the name.
pub(crate) fn outer_name(name: &[u8], pid: u32) -> Option<String> {
    let numbers = numbers_of_dump(name)?;
    let is_told = numbers.contains(&pid) && name.ends_with(b".dump");
    (!is_told).then(|| dump_name(pid))
}

/// Files as they are, directories as the files in them that `wanted` names.
fn expand(paths: &[PathBuf], wanted: impl Fn(&[u8]) -> bool) -> Vec<Door> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let inside = files_in(path).into_iter();
            files.extend(inside.filter_map(|file| {
                let name = file.file_name()?;
                wanted(name.as_encoded_bytes()).then(|| Door::beneath(path, name))
            }));
        } else {
            files.push(Door::named(path));
        }
    }
    files
}

fn named(files: &[Door], name: &[u8]) -> impl Iterator<Item = Place> {
    let fits = move |file: &&Door| {
        let own = file.path().file_name();
        own.is_some_and(|own| own.as_encoded_bytes() == name)
    };
    files.iter().filter(fits).cloned().map(Place::from)
}

/// Whether a file of this name is taken for a dump in folders.
#[must_use]
pub fn is_dump_name(name: &[u8]) -> bool {
    marker_name(name).is_some_and(|marker| !marker.injected)
}

/// The same for a perf map.
#[must_use]
pub fn is_perf_map_name(name: &[u8]) -> bool {
    map_number(name).is_some()
}

/// The process id in `perf-PID.map`.
fn map_number(name: &[u8]) -> Option<u32> {
    decimal(name.strip_prefix(b"perf-")?.strip_suffix(b".map")?)
}

/// What `pjit record` writes of each recording: the command, and what runtimes were told.
pub(crate) const STORY: &str = "record.json";

/// Where it is in a folder.
#[must_use]
pub(crate) fn story_in(folder: &Path) -> Door {
    Door::beneath(folder, STORY)
}

/// The same while it is recorded, and where its recorder was killed.
pub(crate) const PLAN: &str = ".record.json";

/// Where that is.
pub(crate) fn plan_in(folder: &Path) -> Door {
    Door::beneath(folder, PLAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_told_by_their_names() {
        let number = |path: &str| marker_name(path.as_bytes()).map(|m| (m.number, m.injected));
        assert_eq!(number("/tmp/jit-42.dump"), Some((42, false)));
        assert_eq!(number("jit-1.dump"), Some((1, false)));
        assert_eq!(number("/a b/jit-7.dump (deleted)"), Some((7, false)));
        assert_eq!(number("/w/jit-3359-3353.dump"), Some((3353, false)));
        assert_eq!(number("/tmp/jitted-42-17.so"), Some((42, true)));
        // Bun's, made by mkstemp.
        assert_eq!(number("/tmp/jit-42-43-H94aN4"), Some((43, false)));
        assert_eq!(number("/tmp/jit-42-43-123456"), Some((43, false)));
        assert!(is_temporary_dump(b"/tmp/jit-42-43-H94aN4 (deleted)"));
        assert!(!is_temporary_dump(b"/tmp/jit-42.dump"));
        assert_eq!(
            number("/tmp/jitted-42-18446744073709551615.so"),
            Some((42, true))
        );
        for other in [
            "/tmp/jit-.dump",
            "/tmp/jit--1.dump",
            "/tmp/jit-1-.dump",
            "/tmp/xjit-1.dump",
            "/tmp/jit-1.dumpx",
            "/tmp/jit-42-H94aN4",
            "/tmp/jit-42-43-H94aN",
            "/tmp/jit-a-43-H94aN4",
            "/tmp/jit-1a.dump",
            "/tmp/jitted-1.so",
            "//anon",
            "jit-1.dump/x",
        ] {
            assert_eq!(number(other), None, "{other}");
        }
        assert_eq!(
            marker_name(b"/x/jit-7.dump (deleted)").map(|m| m.path),
            Some(&b"/x/jit-7.dump"[..])
        );
    }

    #[test]
    fn explicit_files_come_first_then_the_recorded_path_then_the_recordings_folder() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let extra = dir.path().join("extra");
        std::fs::create_dir(&extra).expect("create");
        std::fs::write(extra.join("jit-5.dump"), b"x").expect("write");
        std::fs::write(extra.join("other"), b"x").expect("write");
        let search = JitSearch {
            jitdumps: vec![extra.clone()],
            recording_dir: "/rec".into(),
            cwd: "/cwd".into(),
            ..JitSearch::default()
        };
        let places = JitPlaces::new(search);
        let expected = [
            extra.join("jit-5.dump"),
            "/app/jit-5.dump".into(),
            "/rec/jit-5.dump".into(),
            "/cwd/jit-5.dump".into(),
        ];
        let paths = |pid| -> Vec<PathBuf> {
            let doors = places.dump_candidates(b"/app/jit-5.dump", pid);
            doors.iter().map(|place| place.path().to_owned()).collect()
        };
        assert_eq!(paths(5)[..4], expected[..4]);
        let outer = [
            format!("/rec/jit-{}.dump", u32::MAX),
            format!("/cwd/jit-{}.dump", u32::MAX),
        ];
        let outer = outer.map(PathBuf::from);
        let both = [&expected[..1], &outer, &expected[1..]].concat();
        assert_eq!(paths(u32::MAX)[..both.len()], both);
        assert!(places.was_asked_for(&expected[0]) && !places.was_asked_for(&expected[1]));
        assert!(places.was_named(&extra) && !places.was_named(&expected[0]));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_with_the_number_of_a_recorded_one_is_another() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let dump = dir.path().canonicalize().expect("there").join("jit-5.dump");
        std::fs::write(&dump, b"x").expect("write");
        let pid = std::process::id();
        let began = living::began(pid).expect("the system tells it");
        let looks_inside = |ended: Option<SystemTime>, symfs: Option<PathBuf>| {
            let search = JitSearch {
                ended,
                symfs,
                ..JitSearch::default()
            };
            let places = JitPlaces::new(search);
            let doors = places.dump_candidates(dump.as_os_str().as_encoded_bytes(), pid);
            doors.iter().any(|door| door.path().starts_with("/proc"))
        };
        let hour = Duration::from_secs(3600);
        assert!(
            looks_inside(None, None),
            "nothing tells when it was recorded"
        );
        assert!(looks_inside(Some(began + hour), None));
        assert!(!looks_inside(Some(began - hour), None));
        assert!(!looks_inside(Some(began + hour), Some(dir.path().into())));
    }

    #[test]
    fn symfs_stands_for_the_root_and_is_not_left() {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::fs::create_dir_all(dir.path().join("app")).expect("create");
        std::fs::write(dir.path().join("app/jit-5.dump"), b"x").expect("write");
        let search = JitSearch {
            symfs: Some(dir.path().into()),
            ..JitSearch::default()
        };
        let places = JitPlaces::new(search);
        let candidates = |path: &[u8]| places.dump_candidates(path, 9);
        let inside = dir.path().join("app/jit-5.dump");
        let first = |path: &[u8]| places.dump_candidates(path, 5)[0].path().to_owned();
        assert_eq!(first(b"/app/jit-5.dump"), inside);
        assert_eq!(first(b"/../../app/jit-5.dump"), inside);
        let outside = Path::new("/app/jit-5.dump");
        let doors = candidates(b"/app/jit-5.dump");
        assert!(doors.iter().all(|door| door.path() != outside));
    }
}
