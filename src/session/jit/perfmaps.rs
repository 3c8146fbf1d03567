//! Perf maps of the recorded processes: found, judged, added to the index.

use std::collections::BTreeMap;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::clock::RecordingClock;
use super::codes::{CodeList, MapCodes, filled};
use super::files::Finder;
use super::found::FoundFile;
use super::memory::Anonymous;
use super::owners::{Lives, STALE};
use super::{JitAbsent, JitIndex, JitObject, JitObjectId, JitObjectKind, JitStats, ProcessId};
use crate::address::Timestamp;
use crate::diagnostics::Diagnostics;
use crate::jitdump::perfmap::{self, MapEntry, PerfMap};

/// Some ten million functions.
const MAX_SIZE: usize = 1 << 30;

/// What is needed to find the perf maps of a recording and to judge them.
pub(super) struct Maps<'m, 'a> {
    pub(super) finder: &'m mut Finder<'a>,
    pub(super) clock: &'m RecordingClock,
    pub(super) lives: &'m Lives,
    pub(super) diag: &'m Diagnostics,
}

impl<'a> Maps<'_, 'a> {
    /// Adds the map of every process with executable memory of its own. `inner` has the process ids
    /// that differ inside a pid namespace.
    pub(super) fn add(
        mut self,
        index: &mut JitIndex<'a>,
        memory: &BTreeMap<ProcessId, Anonymous>,
        inner: &FxHashMap<ProcessId, u32>,
    ) {
        let unnumbered = self.finder.unnumbered_perf_maps();
        for (&process, anonymous) in memory {
            let pid = anonymous.pid;
            let inner = inner.get(&process).copied().unwrap_or(pid);
            let mut candidates = self.finder.perf_map_candidates(pid, inner);
            if memory.len() == 1 {
                candidates.splice(0..0, unnumbered.iter().map(|path| (path.clone(), false)));
            }
            let found = candidates.iter().find_map(|(path, anybodys)| {
                let (map, problem) = self.map(path, *anybodys, process, anonymous)?;
                if problem.is_some() {
                    index.absent.push(JitAbsent {
                        path: path.as_os_str().as_encoded_bytes().to_vec(),
                        pid,
                        problem,
                    });
                }
                problem.is_none().then_some((path, map))
            });
            if let Some((path, map)) = found {
                let place = format!("/tmp/perf-{pid}.map");
                self.finder.note_used(Path::new(&place), path);
                let entries = map.entries.len();
                add_perf_map(index, process, pid, path, map);
                let path = path.display();
                self.diag
                    .note(format!("{path}: {entries} entries used for process {pid}"));
            }
        }
    }

    /// The map at a path, if there is one, and why it is not used.
    fn map(
        &mut self,
        path: &Path,
        anybodys: bool,
        process: ProcessId,
        anonymous: &Anonymous,
    ) -> Option<(PerfMap<'a>, Option<&'static str>)> {
        let file = self.finder.open(path)?;
        if file.bytes.len() > MAX_SIZE {
            let path = path.display();
            self.diag
                .warn(format!("{path}: too large for a perf map; not used"));
            return None;
        }
        let map = perfmap::parse(file.bytes);
        let problem = self
            .why_stale(&map, &file, process, anonymous)
            .filter(|_| anybodys);
        if let Some(problem) = problem {
            let path = path.display();
            self.diag
                .warn(format!("{path}: {problem}; not used (--perf-map uses it)"));
        }
        Some((map, problem))
    }

    /// Why a map under a name that any process may use is not of this process.
    fn why_stale(
        &self,
        map: &PerfMap<'_>,
        file: &FoundFile<'_>,
        process: ProcessId,
        anonymous: &Anonymous,
    ) -> Option<&'static str> {
        let born = self
            .lives
            .born(process)
            .filter(|&born| born > Timestamp::START);
        let modified = file.modified.and_then(|wall| self.clock.of_wall(wall));
        if let (Some(born), Some(modified)) = (born, modified)
            && modified < i128::from(born.0) - i128::from(STALE)
        {
            return Some("older than the process");
        }
        let fits = map
            .entries
            .iter()
            .any(|entry| anonymous.covers(entry.start.0));
        (!fits).then_some("nothing in it lies in executable memory of the process")
    }
}

/// As [`super::codes::filled`] says; the entries are in order.
fn fill_gaps(entries: &mut [MapEntry<'_>]) {
    for at in 1..entries.len() {
        let next = entries[at].start;
        let entry = &mut entries[at - 1];
        if let Ok(size) = u32::try_from(entry.size) {
            entry.size = filled(entry.start, size, next).into();
        }
    }
}

fn add_perf_map<'a>(
    index: &mut JitIndex<'a>,
    process: ProcessId,
    pid: u32,
    path: &Path,
    map: PerfMap<'a>,
) {
    let Ok(object) = u32::try_from(index.objects.len()).map(JitObjectId) else {
        return;
    };
    let functions = map.entries.len();
    let name = format!("perf-{pid}.map");
    let mut codes = MapCodes::new(object, map.entries);
    let producer = codes.producer;
    if producer.row().tells_part_of_sizes {
        fill_gaps(&mut codes.entries.raw);
    }
    index.codes.push(CodeList::PerfMap(codes));
    index.perf_maps.insert(process, object);
    index.objects.push(JitObject {
        path: path.as_os_str().as_encoded_bytes().to_vec(),
        kind: JitObjectKind::PerfMap,
        pid,
        producer,
        functions: functions as u64,
        summary: format!("{name}: {functions} entries"),
        stats: JitStats {
            found_at: path.to_owned(),
            ..JitStats::default()
        },
    });
}
