//! Collects what the recording tells about JIT code, then reads the dumps and builds the index.
//!
//! Fed by the session builder while it walks the recording; [`JitBuilder::finish`] does all the work:
//! find each dump, relate its clock, give every load to a process, replay loads, moves, forks, execs
//! and mappings in order of time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rustc_hash::FxHashMap;

use super::claims::ClaimsBuilder;
use super::clock::{self, Evidence, RecordingClock, Relation};
use super::files::{Finder, Found, JitSearch, MarkerName, file_name, marker_name};
use super::{
    Companions, JitCode, JitIndex, JitObject, JitObjectId, JitObjectKind, JitStats, ProcessId, Twin,
};
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::diagnostics::Diagnostics;
use crate::input::Store;
use crate::jitdump::Producer;
use crate::jitdump::dump::{Counts, Cut, CutReason, Entry, Header, Load, Move, Reader};
use crate::jitdump::perfmap;
use crate::perfdata::TimeConv;

/// A load that is this much older than its dump's mapping was written by an earlier process.
const STALE: u64 = 1_000_000_000;
/// So many mappings of anonymous memory are remembered for each process.
const MAX_ANONYMOUS: usize = 1 << 16;

/// Collects, then builds a [`JitIndex`].
pub struct JitBuilder<'a> {
    store: &'a Store,
    search: JitSearch,
    clock: RecordingClock,
    conversion: Option<TimeConv>,
    markers: Vec<Marker>,
    changes: Vec<(Timestamp, Change)>,
    born: FxHashMap<ProcessId, Timestamp>,
    anonymous: BTreeMap<ProcessId, Anonymous>,
    end: Timestamp,
}

/// A mapping of a dump.
struct Marker {
    process: ProcessId,
    pid: u32,
    path: Vec<u8>,
    number: u32,
    injected: bool,
    /// [`Timestamp::START`] if the record was synthesised.
    time: Timestamp,
}

/// What happens to a process' code other than through a dump.
#[derive(Clone, Copy)]
enum Change {
    Fork { parent: ProcessId, child: ProcessId },
    Exec(ProcessId),
    Mapped(ProcessId, AvmaRange),
}

/// Executable anonymous memory of a process.
#[derive(Default)]
struct Anonymous {
    pid: u32,
    /// Everything so far, by start; no two touch.
    all: BTreeMap<u64, u64>,
    /// What each mapping added, with its time.
    fresh: Vec<(AvmaRange, Timestamp)>,
    /// Start and end of whole mappings.
    mappings: BTreeSet<(Avma, Avma)>,
}

impl<'a> JitBuilder<'a> {
    /// A builder that will look for files where `search` says.
    #[must_use]
    pub fn new(store: &'a Store, search: JitSearch, clock: RecordingClock) -> Self {
        Self {
            store,
            search,
            clock,
            conversion: None,
            markers: Vec::new(),
            changes: Vec::new(),
            born: FxHashMap::default(),
            anonymous: BTreeMap::new(),
            end: Timestamp::START,
        }
    }

    /// A user mapping, of whatever kind. Whether its name is that of a dump or of a file that
    /// `perf inject --jit` put in its place; such mappings hold no code of their own, and
    /// [`JitBuilder::exec_file_mapping`] is not to be told of them.
    pub fn marker(&mut self, process: ProcessId, pid: u32, path: &[u8], time: Timestamp) -> bool {
        let Some(MarkerName {
            path,
            number,
            injected,
        }) = marker_name(path)
        else {
            return false;
        };
        // Injected recordings name every function; one of them leads to the dump.
        let known = |old: &Marker| old.process == process && old.injected && old.number == number;
        if !(injected && self.markers.iter().rev().any(known)) {
            let time = if injected { Timestamp::START } else { time };
            self.markers.push(Marker {
                process,
                pid,
                path: path.to_owned(),
                number,
                injected,
                time,
            });
        }
        true
    }

    /// A process was born with its parent's memory.
    pub fn fork(&mut self, parent: ProcessId, child: ProcessId, time: Timestamp) {
        self.born.insert(child, time);
        self.change(time, Change::Fork { parent, child });
    }

    /// A process runs another program.
    pub fn exec(&mut self, process: ProcessId, time: Timestamp) {
        self.change(time, Change::Exec(process));
        self.anonymous.remove(&process);
    }

    /// A file was mapped executable: the memory is no longer JIT code.
    pub fn exec_file_mapping(&mut self, process: ProcessId, range: AvmaRange, time: Timestamp) {
        self.change(time, Change::Mapped(process, range));
    }

    /// Executable memory without a file (`//anon`, `[anon:…]`, `[heap]`, `/memfd:…`, `/dev/zero`, …):
    /// where JIT code may be, but ends none, as runtimes change the protection all the time.
    pub fn anonymous(&mut self, process: ProcessId, pid: u32, range: AvmaRange, time: Timestamp) {
        self.seen_until(time);
        let anonymous = self.anonymous.entry(process).or_default();
        anonymous.pid = pid;
        anonymous.add(range, time);
    }

    /// TIME_CONV: how the processor's counter relates to the kernel's clock.
    pub fn time_conversion(&mut self, conversion: TimeConv) {
        self.conversion = Some(conversion).filter(|conversion| conversion.cap_user_time_zero);
    }

    /// The recording goes on at least until then; tell of the last sample.
    pub fn seen_until(&mut self, time: Timestamp) {
        self.end = self.end.max(time);
    }

    /// Reads what was found and builds the index. `pids` has the process id of every [`ProcessId`].
    #[must_use]
    pub fn finish(self, pids: &[u32], diag: &Diagnostics) -> JitIndex<'a> {
        let lives = Lives::new(pids, &self.born);
        let mut finder = Finder::new(self.store, self.search.clone());
        let mut dumps = self.find_dumps(&mut finder, &lives, diag);
        self.relate_clocks(&mut dumps, diag);
        let mut index = JitIndex::default();
        let owners: Vec<_> = dumps
            .iter_mut()
            .map(|dump| self.give_to_processes(dump, &lives))
            .collect();
        for (dump, owner) in dumps.iter().zip(&owners) {
            let marker = dump.markers.first().map(|&number| &self.markers[number]);
            dump.report(owner, diag);
            index.objects.push(dump.object(marker, owner));
        }
        index.claims = self.replay(&mut dumps, &owners);
        for (object, dump) in index.objects.iter_mut().zip(&dumps) {
            object.stats.repeated = dump.aliases;
        }
        index.codes = joined(dumps);
        index.twins = self.twins(&index);
        self.add_perf_maps(&mut index, &mut finder, &lives, diag);
        index
    }

    fn change(&mut self, time: Timestamp, change: Change) {
        self.seen_until(time);
        self.changes.push((time, change));
    }

    /// Opens and reads the dump of every marker, then those without a marker whose process is known.
    fn find_dumps(
        &self,
        finder: &mut Finder<'a>,
        lives: &Lives,
        diag: &Diagnostics,
    ) -> Vec<Dump<'a>> {
        let mut dumps: Vec<Dump<'a>> = Vec::new();
        for (number, marker) in self.markers.iter().enumerate() {
            let Some(found) = self.dump_of(marker, finder, &dumps) else {
                diag.warn(not_found(marker));
                continue;
            };
            match found {
                FoundDump::Known(at) => dumps[at].markers.push(number),
                FoundDump::New(dump) => dumps.push(Dump {
                    markers: vec![number],
                    ..*dump
                }),
            }
        }
        for path in finder.other_dumps() {
            let asked_for = finder.was_asked_for(&path);
            // What lies beside the recording may be a copy of what was found or asked for.
            let same = |dump: &Dump<'_>| dump.file.path.file_name() == path.file_name();
            if !asked_for && dumps.iter().any(same) {
                continue;
            }
            let Some(file) = finder.open(&path) else {
                continue;
            };
            if dumps.iter().any(|dump| dump.file.is(&file)) {
                continue;
            }
            match Dump::read(file, self.store) {
                Some(dump) if dump.writers.iter().any(|&(_, pid)| lives.knows(pid)) => {
                    dumps.push(dump)
                }
                Some(_) if asked_for => diag.warn(format!(
                    "{}: written by no process of this recording; not used",
                    path.display()
                )),
                None if asked_for => {
                    diag.warn(format!("{}: not a jitdump; not used", path.display()))
                }
                _ => {}
            }
        }
        dumps
    }

    /// The best file for a marker: one whose records may be of that process, else any dump.
    fn dump_of(
        &self,
        marker: &Marker,
        finder: &mut Finder<'a>,
        known: &[Dump<'a>],
    ) -> Option<FoundDump<'a>> {
        let name = MarkerName {
            path: &marker.path,
            number: marker.number,
            injected: marker.injected,
        };
        let mut second_best = None;
        for path in finder.dump_candidates(&name, marker.pid) {
            let Some(file) = finder.open(&path) else {
                continue;
            };
            if let Some(at) = known.iter().position(|dump| dump.file.is(&file)) {
                return Some(FoundDump::Known(at));
            }
            let Some(dump) = Dump::read(file, self.store) else {
                continue;
            };
            if finder.was_asked_for(&path) || dump.may_be_of(marker) {
                return Some(FoundDump::New(Box::new(dump)));
            }
            second_best = second_best.or(Some(dump));
        }
        second_best.map(|dump| FoundDump::New(Box::new(dump)))
    }

    fn relate_clocks(&self, dumps: &mut [Dump<'a>], diag: &Diagnostics) {
        let evidence: Vec<_> = dumps.iter().map(|dump| self.evidence(dump)).collect();
        let relations = clock::relate(&self.clock, self.conversion.as_ref(), &evidence);
        for (dump, relation) in dumps.iter_mut().zip(relations) {
            dump.relation = relation;
            let text = relation.describe();
            match relation {
                Relation::Same => {}
                Relation::Counter { .. } => {
                    diag.note(format!("{}: {text}", dump.file.path.display()))
                }
                Relation::Shifted { .. } => diag.warn(format!(
                    "{}: {text}, because the recording has another clock (record with -k mono)",
                    dump.file.path.display()
                )),
                Relation::Unknown(_) => diag.warn(format!(
                    "{}: {text}; code that shares addresses with later code may be misnamed",
                    dump.file.path.display()
                )),
            }
        }
    }

    fn evidence(&self, dump: &Dump<'a>) -> Evidence {
        let markers = dump.markers.iter().map(|&number| &self.markers[number]);
        let marker = markers
            .clone()
            .map(|marker| marker.time)
            .filter(|&time| time > Timestamp::START)
            .min();
        let end = (self.end > Timestamp::START).then_some(self.end);
        // What is older than the recording can be, an earlier process wrote.
        let last = dump
            .codes
            .iter()
            .map(|code| code.loaded.0)
            .max()
            .unwrap_or(0);
        let duration = marker
            .zip(end)
            .map(|(marker, end)| end.0.saturating_sub(marker.0).saturating_add(STALE));
        let oldest = duration.map_or(0, |duration| last.saturating_sub(duration));
        let recent = dump
            .codes
            .iter()
            .filter(|code| code.loaded.0 >= oldest && code.size > 0);
        let first = recent.clone().map(|code| code.loaded.0).min();
        let mut fresh = Vec::new();
        for marker in markers {
            if let Some(anonymous) = self.anonymous.get(&marker.process) {
                fresh.extend(
                    anonymous.first_loads(recent.clone().map(|code| (code.range(), code.loaded.0))),
                );
            }
        }
        Evidence {
            marker,
            header: if dump.header.timestamp >= oldest {
                dump.header.timestamp
            } else {
                0
            },
            arch_timestamps: dump.header.arch_timestamps,
            loads: first.map(|first| (first, last)),
            fresh,
            end,
        }
    }

    /// Finds the process of every load and move, and puts their times on the recording's clock.
    fn give_to_processes(&self, dump: &mut Dump<'a>, lives: &Lives) -> Owners {
        let markers: Vec<_> = dump
            .markers
            .iter()
            .map(|&number| &self.markers[number])
            .collect();
        let mut owners = Owners::default();
        let mut writers = dump.writers.iter().peekable();
        let mut pid = dump.header.pid;
        let place = |pid, raw| {
            let time = dump.relation.apply(raw, self.conversion.as_ref());
            let owner = owner_of(pid, time, &markers, lives);
            (owner, time.unwrap_or_else(|| blind_time(owner, &markers)))
        };
        for (number, code) in (0_u32..).zip(&mut dump.codes) {
            if let Some(&(_, writer)) = writers.next_if(|&&(from, _)| from <= number) {
                pid = writer;
            }
            let (owner, time) = place(pid, code.loaded.0);
            code.loaded = time;
            owners.add_load(owner);
        }
        for moved in &mut dump.moves {
            let (owner, time) = place(moved.pid, moved.time);
            moved.time = time.0;
            owners.of_moves.push(owner);
        }
        owners
    }

    /// Applies everything that happened in order of time: what a dump tells first, as perf's inject
    /// writes it first, then mappings and execs, then forks.
    fn replay(&self, dumps: &mut [Dump<'a>], owners: &[Owners]) -> super::claims::Claims {
        let mut happenings = happenings(dumps, owners);
        let changes = (0_u32..)
            .zip(&self.changes)
            .map(|(number, (time, change))| Happening {
                time: *time,
                rank: if matches!(change, Change::Fork { .. }) {
                    Rank::Fork
                } else {
                    Rank::Change
                },
                dump: 0,
                number,
            });
        happenings.extend(changes);
        happenings.sort_by_key(|happening| (happening.time, happening.rank));
        let mut replay = Replay {
            claims: ClaimsBuilder::default(),
            first_codes: first_codes(dumps),
        };
        for owners in owners {
            if let Some(process) = owners.of_loads.iter().flatten().next() {
                replay.claims.reserve(*process, owners.of_loads.len());
            }
        }
        for happening in &happenings {
            let (dump, number) = (happening.dump as usize, happening.number as usize);
            match happening.rank {
                Rank::Load => replay.load(dumps, dump, number, owners[dump].of_loads[number]),
                Rank::Move => replay.moved(dumps, dump, number, owners[dump].of_moves[number]),
                Rank::Change | Rank::Fork => replay.change(self.changes[number]),
            }
        }
        replay.claims.freeze()
    }

    /// wasmtime's guest debugging runs a copy of the code that it reports: an anonymous mapping
    /// without loads is taken for the copy of the only other one of its length that has some.
    fn twins(&self, index: &JitIndex<'a>) -> FxHashMap<ProcessId, Vec<Twin>> {
        let mut twins = FxHashMap::default();
        for (&process, anonymous) in &self.anonymous {
            let mut by_length: BTreeMap<u64, Vec<AvmaRange>> = BTreeMap::new();
            for &(start, end) in &anonymous.mappings {
                by_length
                    .entry(end.since(start))
                    .or_default()
                    .push(AvmaRange { start, end });
            }
            let found: Vec<_> = by_length
                .into_values()
                .filter(|mappings| (2..=16).contains(&mappings.len()))
                .flat_map(|mappings| twins_among(index, process, &mappings))
                .collect();
            if !found.is_empty() {
                twins.insert(process, found);
            }
        }
        twins
    }

    fn add_perf_maps(
        &self,
        index: &mut JitIndex<'a>,
        finder: &mut Finder<'a>,
        lives: &Lives,
        diag: &Diagnostics,
    ) {
        let unnumbered = finder.unnumbered_perf_maps();
        for (&process, anonymous) in &self.anonymous {
            let inner = self
                .markers
                .iter()
                .find(|marker| marker.process == process)
                .map(|marker| marker.number);
            let mut candidates =
                finder.perf_map_candidates(anonymous.pid, inner.unwrap_or(anonymous.pid));
            if self.anonymous.len() == 1 {
                candidates.splice(0..0, unnumbered.iter().map(|path| (path.clone(), false)));
            }
            for (path, anybodys) in candidates {
                let Some(file) = finder.open(&path) else {
                    continue;
                };
                let map = perfmap::parse(file.bytes);
                if anybodys
                    && let Some(why) = self.why_stale(&map, &file, process, anonymous, lives)
                {
                    diag.warn(format!(
                        "{}: {why}; not used (--perf-map uses it)",
                        path.display()
                    ));
                    continue;
                }
                add_perf_map(index, process, anonymous.pid, &path, &map);
                diag.note(format!(
                    "{}: {} entries used for process {}",
                    path.display(),
                    map.entries.len(),
                    anonymous.pid
                ));
                break;
            }
        }
    }

    /// Why a map under a name that any process may use is not of this process.
    fn why_stale(
        &self,
        map: &perfmap::PerfMap<'_>,
        file: &Found<'_>,
        process: ProcessId,
        anonymous: &Anonymous,
        lives: &Lives,
    ) -> Option<&'static str> {
        let born = lives.born(process).filter(|&born| born > Timestamp::START);
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

/// What a marker led to.
enum FoundDump<'a> {
    /// A dump that another marker led to as well.
    Known(usize),
    New(Box<Dump<'a>>),
}

/// One dump, read.
struct Dump<'a> {
    file: Found<'a>,
    header: Header,
    counts: Counts,
    cut: Option<Cut>,
    producer: Producer,
    /// Loads in file order; `loaded` is raw until the clocks are related.
    codes: Vec<JitCode<'a>>,
    /// `code_index` of every load, if there are moves.
    indexes: Vec<u64>,
    /// From which load on which process wrote.
    writers: Vec<(u32, u32)>,
    /// In file order; times as those of `codes`.
    moves: Vec<Move>,
    relation: Relation,
    markers: Vec<usize>,
    aliases: u64,
}

impl<'a> Dump<'a> {
    /// `None` if the file is no dump.
    fn read(file: Found<'a>, store: &'a Store) -> Option<Self> {
        let mut reader = Reader::new(file.bytes).ok()?;
        let (mut codes, mut indexes, mut writers, mut moves) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for entry in &mut reader {
            match entry {
                Entry::Load(load) => {
                    if writers.last().is_none_or(|&(_, pid)| pid != load.pid) {
                        writers.push((u32::try_from(codes.len()).unwrap_or(u32::MAX), load.pid));
                    }
                    indexes.push(load.index);
                    codes.push(code_of(&load, store));
                }
                Entry::Move(moved) => moves.push(moved),
            }
        }
        let producer = reader.producer();
        for code in codes
            .iter_mut()
            .filter(|code: &&mut JitCode<'_>| code.producer == Producer::Unknown)
        {
            code.producer = producer;
        }
        if moves.is_empty() {
            indexes = Vec::new();
        }
        let (header, counts, cut) = (*reader.header(), reader.counts(), reader.cut().cloned());
        Some(Self {
            file,
            header,
            counts,
            cut,
            producer,
            codes,
            indexes,
            writers,
            moves,
            relation: Relation::Same,
            markers: Vec::new(),
            aliases: 0,
        })
    }

    /// Whether the process of a marker, or one of its children, may have written this.
    fn may_be_of(&self, marker: &Marker) -> bool {
        self.codes.is_empty()
            || self
                .writers
                .iter()
                .any(|&(_, pid)| pid == marker.pid || pid == marker.number)
    }

    /// Says what was wrong with it.
    fn report(&self, owners: &Owners, diag: &Diagnostics) {
        let path = self.file.path.display();
        if let Some(cut) = &self.cut {
            diag.warn(describe_cut(&self.file.path, cut));
        }
        let odd = self.counts.malformed + self.counts.unknown;
        if odd > 0 {
            diag.warn(format!(
                "{path}: {odd} records of unknown or impossible form skipped"
            ));
        }
        if owners.foreign > 0 {
            diag.warn(format!(
                "{path}: {} of {} functions are of an earlier or unknown process; not used",
                owners.foreign,
                self.codes.len()
            ));
        }
    }

    /// The dump as an object of the index.
    fn object(&self, marker: Option<&Marker>, owners: &Owners) -> JitObject {
        let found = || self.file.path.as_os_str().as_encoded_bytes().to_vec();
        let recorded = marker.filter(|marker| !marker.injected);
        let path = recorded.map_or_else(found, |marker| marker.path.clone());
        let functions = owners.of_loads.iter().flatten().count() as u64;
        let name = String::from_utf8_lossy(file_name(&path)).into_owned();
        let mut summary = format!("{name}: {functions} functions");
        let clock = self.relation.describe();
        if !clock.is_empty() {
            summary.push_str(", ");
            summary.push_str(&clock);
        }
        JitObject {
            path,
            kind: JitObjectKind::Dump,
            pid: self.pid(marker),
            producer: self.producer,
            functions,
            summary,
            stats: JitStats {
                found_at: self.file.path.clone(),
                counts: self.counts.clone(),
                cut: self.cut.clone(),
                repeated: 0,
                foreign: owners.foreign,
                clock,
            },
        }
    }

    /// The process that mapped it, or the one that wrote it.
    fn pid(&self, marker: Option<&Marker>) -> u32 {
        let writer = self
            .writers
            .first()
            .map_or(self.header.pid, |&(_, pid)| pid);
        marker.map_or(writer, |marker| marker.pid)
    }
}

/// The codes of all dumps, in order.
fn joined<'a>(dumps: Vec<Dump<'a>>) -> Vec<JitCode<'a>> {
    let mut codes = dumps.into_iter().map(|dump| dump.codes);
    let mut all = codes.next().unwrap_or_default();
    codes.for_each(|more| all.extend(more));
    all.shrink_to_fit();
    all
}

/// Which process each entry of a dump belongs to.
#[derive(Default)]
struct Owners {
    of_loads: Vec<Option<ProcessId>>,
    of_moves: Vec<Option<ProcessId>>,
    /// Loads of no process of this recording.
    foreign: u64,
}

impl Owners {
    fn add_load(&mut self, owner: Option<ProcessId>) {
        self.of_loads.push(owner);
        self.foreign += u64::from(owner.is_none());
    }
}

/// The process lives of each pid.
struct Lives {
    by_pid: FxHashMap<u32, Vec<(Timestamp, ProcessId)>>,
    born: FxHashMap<ProcessId, Timestamp>,
}

impl Lives {
    fn new(pids: &[u32], born: &FxHashMap<ProcessId, Timestamp>) -> Self {
        let mut by_pid: FxHashMap<u32, Vec<(Timestamp, ProcessId)>> = FxHashMap::default();
        for (number, &pid) in (0_u32..).zip(pids) {
            let process = ProcessId(number);
            let birth = born.get(&process).copied().unwrap_or(Timestamp::START);
            by_pid.entry(pid).or_default().push((birth, process));
        }
        for lives in by_pid.values_mut() {
            lives.sort_unstable();
        }
        Self {
            by_pid,
            born: born.clone(),
        }
    }

    fn knows(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    fn born(&self, process: ProcessId) -> Option<Timestamp> {
        self.born.get(&process).copied()
    }

    /// The life of a pid at a time; without a time the last.
    fn at(&self, pid: u32, time: Option<Timestamp>) -> Option<ProcessId> {
        let lives = self.by_pid.get(&pid)?;
        let Some(time) = time else {
            return Some(lives.last()?.1);
        };
        // Clocks that were shifted may be a little off.
        let latest = time.0.saturating_add(STALE);
        let born_before = |limit: u64| {
            lives
                .partition_point(|&(born, _)| born.0 <= limit)
                .checked_sub(1)
        };
        let at = born_before(time.0).or_else(|| born_before(latest))?;
        Some(lives[at].1)
    }
}

/// The process that an entry with this pid and time belongs to; `None` for those of an earlier
/// process whose file was appended to, and of processes that were not recorded.
fn owner_of(
    pid: u32,
    time: Option<Timestamp>,
    markers: &[&Marker],
    lives: &Lives,
) -> Option<ProcessId> {
    let fresh =
        |marker: &&&Marker| time.is_none_or(|time| time.0.saturating_add(STALE) >= marker.time.0);
    if markers.iter().any(|marker| marker.pid == pid) {
        let own = markers
            .iter()
            .filter(|marker| marker.pid == pid)
            .any(|marker| fresh(&marker));
        return lives.at(pid, time).filter(|_| own);
    }
    // In a pid namespace the runtime knows itself by the number in the file's name.
    let inner = |marker: &&&Marker| marker.number == pid && marker.pid != pid;
    if let Some(marker) = markers
        .iter()
        .filter(inner)
        .filter(fresh)
        .max_by_key(|marker| marker.time)
    {
        return Some(marker.process);
    }
    if markers.iter().any(|marker| inner(&marker)) {
        return None;
    }
    lives.at(pid, time)
}

/// The time of entries whose own time is not used: they hold from the mapping of their dump on.
fn blind_time(owner: Option<ProcessId>, markers: &[&Marker]) -> Timestamp {
    let own = markers
        .iter()
        .filter(|marker| Some(marker.process) == owner);
    own.map(|marker| marker.time).min().unwrap_or_default()
}

/// What happens at one time, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Load,
    Move,
    Change,
    Fork,
}

#[derive(Clone, Copy)]
struct Happening {
    time: Timestamp,
    rank: Rank,
    dump: u32,
    number: u32,
}

/// Loads and moves that belong to a process, dump by dump in file order.
fn happenings(dumps: &[Dump<'_>], owners: &[Owners]) -> Vec<Happening> {
    let mut happenings = Vec::new();
    for ((dump_number, dump), owners) in (0_u32..).zip(dumps).zip(owners) {
        let of = |rank, number, time| Happening {
            time,
            rank,
            dump: dump_number,
            number,
        };
        let loads = (0_u32..)
            .zip(dump.codes.iter().zip(&owners.of_loads))
            .filter(|(_, (_, owner))| owner.is_some());
        happenings.extend(loads.map(|(number, (code, _))| of(Rank::Load, number, code.loaded)));
        let moves = (0_u32..)
            .zip(dump.moves.iter().zip(&owners.of_moves))
            .filter(|(_, (_, owner))| owner.is_some());
        happenings.extend(
            moves.map(|(number, (moved, _))| of(Rank::Move, number, Timestamp(moved.time))),
        );
    }
    happenings
}

/// The id of the first code of each dump.
fn first_codes(dumps: &mut [Dump<'_>]) -> Vec<u32> {
    let mut first = 0_u32;
    for (dump, object) in dumps.iter_mut().zip(0_u32..) {
        for code in &mut dump.codes {
            code.object = JitObjectId(object);
        }
    }
    dumps
        .iter()
        .map(|dump| {
            let own = first;
            first = first.saturating_add(u32::try_from(dump.codes.len()).unwrap_or(u32::MAX));
            own
        })
        .collect()
}

struct Replay {
    claims: ClaimsBuilder,
    first_codes: Vec<u32>,
}

impl Replay {
    fn load(
        &mut self,
        dumps: &mut [Dump<'_>],
        dump: usize,
        number: usize,
        owner: Option<ProcessId>,
    ) {
        let Some(process) = owner else { return };
        let code = &dumps[dump].codes[number];
        let (range, time) = (code.range(), code.loaded);
        if let Some(old) = self.claims.at(process, range)
            && let Some((old_dump, old_number)) = self.position(old)
            && is_alias(&dumps[old_dump].codes[old_number], code)
        {
            let name = better_name(dumps[old_dump].codes[old_number].name, code.name);
            dumps[old_dump].codes[old_number].name = name;
            dumps[dump].aliases += 1;
            return;
        }
        let Ok(number) = u32::try_from(number) else {
            return;
        };
        self.claims.load(
            process,
            range,
            self.first_codes[dump].saturating_add(number),
            time,
        );
    }

    /// The code that moves is the one in force at the old address with the index of the move.
    fn moved(&mut self, dumps: &[Dump<'_>], dump: usize, number: usize, owner: Option<ProcessId>) {
        let Some(process) = owner else { return };
        let moved = dumps[dump].moves[number];
        let Some((code, range)) = self.claims.starting_at(process, moved.from) else {
            return;
        };
        let Some((code_dump, code_number)) = self.position(code) else {
            return;
        };
        if code_dump == dump
            && dumps[dump]
                .indexes
                .get(code_number)
                .is_some_and(|&index| index != moved.index)
        {
            return;
        }
        let to = AvmaRange::new(
            moved.to,
            range.len().min(if moved.size == 0 {
                u64::MAX
            } else {
                moved.size
            }),
        );
        self.claims
            .moved(process, moved.from, to, code, Timestamp(moved.time));
    }

    fn change(&mut self, (time, change): (Timestamp, Change)) {
        match change {
            Change::Fork { parent, child } => self.claims.fork(parent, child, time),
            Change::Exec(process) => self.claims.exec(process, time),
            Change::Mapped(process, range) => self.claims.mapped(process, range, time),
        }
    }

    /// Dump and number of a code.
    fn position(&self, code: u32) -> Option<(usize, usize)> {
        let dump = self
            .first_codes
            .partition_point(|&first| first <= code)
            .checked_sub(1)?;
        Some((dump, (code - self.first_codes[dump]) as usize))
    }
}

/// Whether a load at the same place tells the same again: V8 registers its builtins for every
/// isolate, wasmtime every function once for each module of a component. The interpreter's trampolines of two
/// functions of V8 have the same bytes too, but other names.
fn is_alias(old: &JitCode<'_>, new: &JitCode<'_>) -> bool {
    let same_name = old.name == new.name;
    (same_name || new.producer == Producer::Wasmtime) && old.bytes == new.bytes
}

/// Of a component's names for one function only one is not made of numbers.
fn better_name<'a>(old: &'a [u8], new: &'a [u8]) -> &'a [u8] {
    if is_numbered(old) && !is_numbered(new) {
        new
    } else {
        old
    }
}

/// `wasm[0]::function[24]`, whatever follows.
fn is_numbered(name: &[u8]) -> bool {
    let number = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let Some(rest) = name.strip_prefix(b"wasm[") else {
        return false;
    };
    let Some(rest) = rest[number(rest)..].strip_prefix(b"]::function[") else {
        return false;
    };
    rest[number(rest)..].starts_with(b"]")
}

pub(crate) fn code_of<'a>(load: &Load<'a>, store: &'a Store) -> JitCode<'a> {
    let asks_for_frame_pointers = load.unwinding.is_some_and(|unwinding| unwinding.is_empty());
    let unwinding = load
        .unwinding
        .filter(|unwinding| !unwinding.is_empty())
        .map(|unwinding| match unwinding.readable_eh_frame() {
            std::borrow::Cow::Borrowed(_) => unwinding,
            std::borrow::Cow::Owned(fixed) => unwinding.with_eh_frame(store.keep(fixed)),
        });
    let companions = Companions {
        unwinding,
        lines: load.lines,
    };
    JitCode {
        name: load.name,
        start: load.address,
        size: load.size,
        bytes: load.code,
        loaded: Timestamp(load.time),
        object: JitObjectId(0),
        producer: Producer::of_prefix(load.name),
        companions: (unwinding.is_some() || load.lines.is_some()).then(|| Box::new(companions)),
        asks_for_frame_pointers,
    }
}

impl Anonymous {
    fn add(&mut self, range: AvmaRange, time: Timestamp) {
        if range.is_empty() || self.mappings.len() >= MAX_ANONYMOUS {
            return;
        }
        self.mappings.insert((range.start, range.end));
        let added = self.not_yet(range);
        if time > Timestamp::START {
            self.fresh.extend(added.iter().map(|&added| (added, time)));
        }
        self.unite(range);
    }

    /// The parts of a range that were not there before.
    fn not_yet(&self, range: AvmaRange) -> Vec<AvmaRange> {
        let mut parts = Vec::new();
        let mut at = range.start.0;
        let before = self.all.range(..=at).next_back();
        for (&start, &end) in before
            .into_iter()
            .chain(self.all.range(at + 1..range.end.0.max(at + 1)))
        {
            if start > at {
                parts.push(AvmaRange::new(Avma(at), start - at));
            }
            at = at.max(end);
        }
        if at < range.end.0 {
            parts.push(AvmaRange::new(Avma(at), range.end.0 - at));
        }
        parts
    }

    fn unite(&mut self, range: AvmaRange) {
        let (mut start, mut end) = (range.start.0, range.end.0);
        while let Some((&old_start, &old_end)) = self
            .all
            .range(..=end)
            .next_back()
            .filter(|&(_, &old_end)| old_end >= start)
        {
            self.all.remove(&old_start);
            (start, end) = (start.min(old_start), end.max(old_end));
        }
        self.all.insert(start, end);
    }

    fn covers(&self, at: u64) -> bool {
        self.all
            .range(..=at)
            .next_back()
            .is_some_and(|(_, &end)| at < end)
    }

    /// For each stretch of fresh memory the first load in it.
    fn first_loads(&self, loads: impl Iterator<Item = (AvmaRange, u64)>) -> Vec<(Timestamp, u64)> {
        let mut fresh: Vec<_> = self
            .fresh
            .iter()
            .map(|&(range, time)| (range, time, None::<u64>))
            .collect();
        fresh.sort_unstable_by_key(|(range, time, _)| (range.start, *time));
        for (range, time) in loads {
            let next = fresh.partition_point(|(stretch, _, _)| stretch.start <= range.start);
            let Some((stretch, _, first)) = next.checked_sub(1).map(|at| &mut fresh[at]) else {
                continue;
            };
            if stretch.contains(range.start) {
                *first = Some(first.map_or(time, |first| first.min(time)));
            }
        }
        fresh
            .into_iter()
            .filter_map(|(_, time, first)| Some((time, first?)))
            .collect()
    }
}

/// Mappings of one length: those without loads are copies of the only one that has some.
fn twins_among(index: &JitIndex<'_>, process: ProcessId, mappings: &[AvmaRange]) -> Vec<Twin> {
    let of_wasmtime = |code: u32| {
        index
            .codes
            .get(code as usize)
            .is_some_and(|code| code.producer == Producer::Wasmtime)
    };
    let (with, without): (Vec<_>, Vec<_>) = mappings
        .iter()
        .map(|&mapping| (mapping, index.claims.touching(process, mapping)))
        .partition(|(_, code)| code.is_some());
    match with.as_slice() {
        [(original, Some(code))] if of_wasmtime(*code) => without
            .iter()
            .map(|&(copy, _)| Twin {
                copy,
                original: original.start,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn add_perf_map<'a>(
    index: &mut JitIndex<'a>,
    process: ProcessId,
    pid: u32,
    path: &Path,
    map: &perfmap::PerfMap<'a>,
) {
    let (Ok(object), Ok(first)) = (
        u32::try_from(index.objects.len()),
        u32::try_from(index.codes.len()),
    ) else {
        return;
    };
    let name = format!("perf-{pid}.map");
    let producer = map
        .entries
        .iter()
        .take(4096)
        .map(|entry| Producer::of_name(entry.name))
        .find(|p| *p != Producer::Unknown);
    let producer = producer.unwrap_or_default();
    index.codes.extend(map.entries.iter().map(|entry| JitCode {
        name: entry.name,
        start: entry.start,
        size: entry.size,
        bytes: &[],
        loaded: Timestamp::START,
        object: JitObjectId(object),
        producer: match Producer::of_prefix(entry.name) {
            Producer::Unknown => producer,
            own => own,
        },
        companions: None,
        asks_for_frame_pointers: false,
    }));
    let last = u32::try_from(index.codes.len()).unwrap_or(u32::MAX);
    index.perf_maps.insert(process, first..last);
    index.objects.push(JitObject {
        path: path.as_os_str().as_encoded_bytes().to_vec(),
        kind: JitObjectKind::PerfMap,
        pid,
        producer,
        functions: map.entries.len() as u64,
        summary: format!("{name}: {} entries", map.entries.len()),
        stats: JitStats {
            found_at: path.to_owned(),
            ..JitStats::default()
        },
    });
}

fn not_found(marker: &Marker) -> String {
    let path = String::from_utf8_lossy(&marker.path);
    let pid = marker.pid;
    if marker.injected {
        return format!(
            "{path}: made by perf inject; the dump of process {pid} was not found, so its lines and unwinding records are not used"
        );
    }
    format!(
        "{path}: dump of process {pid} not found there, beside the recording or in the current directory; \
         its JIT code has no names (--jitdump FILE_OR_DIR)"
    )
}

fn describe_cut(path: &Path, cut: &Cut) -> String {
    let (offset, rest) = (cut.offset, cut.rest);
    let what = match cut.reason {
        CutReason::EndOfFile => "ends beyond the file; was the process killed?",
        CutReason::TooSmall => "says it is smaller than its own head",
    };
    format!(
        "{}: the record at {offset:#x} {what} The last {rest} bytes were not read whole",
        path.display()
    )
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
