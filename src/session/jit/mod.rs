//! The index of JIT code of all processes, by address and time.
//!
//! In: the dumps and perf maps that the recording's markers lead to ([`JitBuilder`], fed by the
//! session builder). Out: what JIT code lay at an address of a process at a time ([`JitIndex`]).
//! Built once, immutable and shared by all threads afterwards.
//!
//! ```text
//! marker, fork, exec, mappings ─► builder ─► files ─► clock ─► lasting ─► claims ─► JitIndex
//!                                            (dumps)  (time)   (no replay) (who owned what when)
//! ```
//!
//! Dumps are read, and their code sorted by address, in a thread of their own ([`EarlyReader`]); a dump that only
//! ever adds code needs little more once the recording has been walked.

mod builder;
mod claims;
mod clock;
mod codes;
mod dumps;
mod early;
mod evaled;
mod files;
mod found;
mod lasting;
mod live;
mod load_map;
mod marker;
mod memory;
mod owners;
mod perfmaps;
mod replay;
mod search;
mod segments;
mod twins;

pub use builder::JitBuilder;
pub use clock::RecordingClock;
pub use codes::JitCode;
#[cfg(test)]
pub(crate) use codes::{CodeList, codes_of, map_of, map_with_frames_of};
pub use early::EarlyReader;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::{Avma, AvmaRange, Timestamp};
use crate::ids::{IndexSlice, IndexVec};
use crate::jitdump::dump::{Counts, Cut};
use crate::runtimes::Producer;

crate::ids::numbers! {
    /// One life of a process: from fork (or first sight) to exit. A pid that is used again gets a new
    /// one; exec does not.
    pub struct ProcessId(pub u32);
    /// One piece of JIT code of the run: a load of a dump or an entry of a perf map.
    #[derive(Default)]
    pub struct JitCodeId(pub u32);
    /// One dump or perf map of the run.
    #[derive(Default)]
    pub struct JitObjectId(pub u32);
}

/// What a dump says about unwinding a piece of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitUnwinding<'a> {
    /// Call frame information that fits the code.
    EhFrame {
        /// The contents of `.eh_frame`, in the byte order of the recording and in a form that
        /// `gimli` reads.
        eh_frame: &'a [u8],
        /// The address of its first byte, to which pc-relative pointers refer. Counts with
        /// [`JitCode::start`] as the address of the code, also when the code was moved.
        base: Avma,
    },
    /// An empty table: the runtime asks for frame-pointer unwinding (V8 does for most code).
    FramePointer,
}

/// Where a sampled address lies in JIT code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JitHit {
    /// The code.
    pub code: JitCodeId,
    /// Bytes from its start.
    pub offset: u64,
    /// How sure that is.
    pub how: JitMatch,
}

/// How a [`JitHit`] was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum JitMatch {
    /// A load that was active at the sample's time.
    Active,
    /// The first load there soon after the sample's time, because the runtime wrote its record late.
    Late,
    /// The copy of a loaded module (wasmtime's guest debugging), which the samples prove.
    Twin,
    /// A perf map, which knows no times.
    PerfMap,
}

/// A dump or perf map that was used.
#[derive(Clone, Debug)]
pub struct JitObject {
    path: Vec<u8>,
    kind: JitObjectKind,
    /// The process it belongs to; of several the first.
    pub pid: u32,
    /// Who wrote it.
    pub producer: Producer,
    /// Functions in it that some process could have run.
    pub functions: u64,
    /// One phrase for the report's quality line: functions, clock.
    pub summary: String,
    /// What was read, and what of it was not used. All zero for perf maps.
    pub stats: JitStats,
}

/// What a dump held, for those who judge a recording.
#[derive(Clone, Debug, Default)]
pub struct JitStats {
    /// Where it was found.
    pub found_at: PathBuf,
    /// Records by kind.
    pub counts: Counts,
    /// Where reading ended early.
    pub cut: Option<Cut>,
    /// Whether it is still being written.
    pub is_growing: bool,
    /// Loads that told again what lay there already.
    pub repeated: u64,
    /// Loads of an earlier process or of one that was not recorded.
    pub foreign: u64,
    /// Loads that took the place of other code that was still in force.
    pub replaced: u64,
    /// How its times were brought onto the recording's clock.
    pub clock_fit: ClockFit,
    /// The same in words; empty if nothing had to be done.
    pub clock: String,
}

/// How the times of a dump become the recording's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClockFit {
    /// As they are, on the same clock.
    #[default]
    Same,
    /// As they are: the clocks differ, or may, and nothing tells by how much.
    Assumed,
    /// Shifted by a measured offset.
    Shifted,
    /// Converted from the processor's counter.
    Converted,
    /// Not at all.
    Unused,
}

/// A dump or perf map that would be needed and is not used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JitAbsent {
    /// Its path, as recorded or where it was found.
    pub path: Vec<u8>,
    /// The process it is for.
    pub pid: u32,
    /// The same.
    pub process: ProcessId,
    /// Why it is not used.
    pub why: Absence,
}

/// Why a dump or perf map is not used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Absence {
    /// It was not found.
    Missing,
    /// It is there, without a byte: its process ended before it wrote.
    Empty,
    /// It is of something else, in words.
    Stale(&'static str),
}

impl Absence {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Missing => "not found",
            Self::Empty => "empty",
            Self::Stale(why) => why,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum JitObjectKind {
    Dump,
    PerfMap,
}

impl JitObject {
    /// The path as the recording has it, or where the file was found if no record names it.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The last part of the path: how the object is shown.
    #[must_use]
    pub fn file_name(&self) -> &[u8] {
        self.path
            .rsplit(|&b| b == b'/')
            .next()
            .unwrap_or(&self.path)
    }

    /// Whether it is a perf map: its code is shown under the memory that holds it.
    #[must_use]
    pub fn is_perf_map(&self) -> bool {
        self.kind == JitObjectKind::PerfMap
    }
}

/// All JIT code of the run.
#[derive(Debug, Default)]
pub struct JitIndex<'a> {
    codes: codes::Codes<'a>,
    objects: IndexVec<JitObjectId, JitObject>,
    claims: claims::Claims,
    /// Where and when files were mapped executable into processes that have code of dumps, in order.
    files: Vec<(ProcessId, Timestamp, AvmaRange)>,
    perf_maps: FxHashMap<ProcessId, OwnMap>,
    /// The processes with maps of code that keeps frame pointers where it calls.
    keeping: FxHashSet<ProcessId>,
    /// Of processes that were born while it was recorded.
    births: Births,
    twins: FxHashMap<ProcessId, Vec<Twin>>,
    /// The processes that mapped a dump that was found.
    merged: FxHashSet<ProcessId>,
    absent: Vec<JitAbsent>,
    /// How long after it had run code was told of, at most, among what was asked for.
    latest: AtomicU64,
    /// Files of code that `eval` made, once somebody asks.
    evaled: OnceLock<evaled::Evaled>,
}

/// A copy of a mapping with JIT code.
#[derive(Clone, Copy, Debug)]
struct Twin {
    copy: AvmaRange,
    original: Avma,
}

impl Twin {
    /// What was copied.
    const fn origin(&self) -> AvmaRange {
        AvmaRange::new(self.original, self.copy.len())
    }
}

/// The perf map of one program of a process.
#[derive(Debug)]
struct OwnMap {
    object: JitObjectId,
    /// When the program began and when another took its place.
    from: Timestamp,
    until: Timestamp,
    /// Memory that became executable while it was recorded, by address: disjoint ranges with their time.
    fresh: Vec<(AvmaRange, Timestamp)>,
    /// Memory that had other code at some time without a word of which one it tells, by address: disjoint ranges.
    unsure: Vec<AvmaRange>,
}

/// From one time until another.
type Span = (Timestamp, Timestamp);

impl OwnMap {
    const fn is_of(&self, time: Timestamp) -> bool {
        self.from.0 <= time.0 && time.0 < self.until.0
    }

    /// Whether an address may have been executable at a time.
    fn was_there(&self, at: Avma, time: Timestamp) -> bool {
        around(&self.fresh, at).is_none_or(|since| since <= time)
    }

    /// Whether it is known which code it tells of at an address.
    fn is_sure(&self, at: Avma) -> bool {
        !has(&self.unsure, at)
    }
}

/// Whether one of the disjoint ranges, which are in order, has an address.
fn has(ranges: &[AvmaRange], at: Avma) -> bool {
    let next = ranges.partition_point(|range| range.start <= at);
    next.checked_sub(1)
        .is_some_and(|before| ranges[before].contains(at))
}

/// The time of the range around an address.
fn around(ranges: &[(AvmaRange, Timestamp)], at: Avma) -> Option<Timestamp> {
    let next = ranges.partition_point(|(range, _)| range.start <= at);
    let (range, time) = ranges[next.checked_sub(1)?];
    range.contains(at).then_some(time)
}

/// How a process began.
#[derive(Clone, Copy, Debug)]
struct Birth {
    parent: ProcessId,
    at: Timestamp,
    /// When it ran another program than its parent.
    until: Timestamp,
}

/// The births of processes that came of others.
type Births = FxHashMap<ProcessId, Birth>;

/// So many ancestors are asked for a perf map.
const MAX_ANCESTORS: usize = 64;

/// A process at a time, and those whose memory it had then, as long as none had begun another program: each with the time at which it was
/// handed on.
fn lineage(
    births: &Births,
    process: ProcessId,
    time: Timestamp,
) -> impl Iterator<Item = (ProcessId, Timestamp)> {
    let parent = |&(of, now): &(ProcessId, Timestamp)| {
        let birth = births.get(&of).filter(|birth| birth.until > now)?;
        Some((birth.parent, now.min(birth.at)))
    };
    std::iter::successors(Some((process, time)), parent).take(MAX_ANCESTORS)
}

/// Runtimes tell of code at most so long after it ran first. The agent of HotSpot took up to 35 ms.
const LATE: u64 = 1_000_000_000;

impl<'a> JitIndex<'a> {
    /// The code of an id that this index gave out.
    #[must_use]
    pub fn code(&self, id: JitCodeId) -> JitCode<'_, 'a> {
        self.codes.code(id)
    }

    /// The file of code that `eval` made, where its lines tell one and its name does not.
    #[must_use]
    pub fn evaled_file(&self, id: JitCodeId) -> Option<&str> {
        let code = self.code(id);
        (code.producer().row().fileless)(code.name())?;
        let evaled = self.evaled.get_or_init(|| evaled::Evaled::of(self));
        evaled.file(id)
    }

    /// The name of code, as V8 would write it if it told files of what `eval` made.
    #[must_use]
    pub fn name_with_file(&self, id: JitCodeId) -> Cow<'a, [u8]> {
        let code = self.code(id);
        let name = code.name();
        let Some(place) = (code.producer().row().fileless)(name) else {
            return Cow::Borrowed(name);
        };
        match self.evaled_file(id) {
            Some(file) => {
                let (front, back) = name.split_at(place.file);
                Cow::Owned([front, file.as_bytes(), back].concat())
            }
            None => Cow::Borrowed(name),
        }
    }

    /// Number of pieces of code; ids count from 0.
    #[must_use]
    pub fn code_count(&self) -> usize {
        self.codes.count() as usize
    }

    /// Whether there are perf maps of code that keeps frame pointers where it calls, and of which nothing tells where its frames are built.
    #[must_use]
    pub fn keeps_frames(&self) -> bool {
        !self.keeping.is_empty()
    }

    /// The same of the map of a process.
    #[must_use]
    pub fn keeps_frames_in(&self, process: ProcessId) -> bool {
        self.keeping.contains(&process)
    }

    /// Dumps and perf maps in use, indexed by [`JitObjectId`].
    #[must_use]
    pub fn objects(&self) -> &IndexSlice<JitObjectId, [JitObject]> {
        &self.objects
    }

    /// The dump or perf map of an id that this index gave out.
    #[must_use]
    pub fn object(&self, id: JitObjectId) -> &JitObject {
        &self.objects[id]
    }

    /// Dumps that processes mapped and that were not found, and perf maps that are not of their process.
    #[must_use]
    pub fn absent(&self) -> &[JitAbsent] {
        &self.absent
    }

    /// One phrase for each dump or perf map.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        self.objects
            .iter()
            .map(|object| object.summary.clone())
            .collect()
    }

    /// The code whose load is active at `time` at address `at` of `process`. Goes before file mappings.
    #[must_use]
    pub fn lookup(&self, process: ProcessId, at: Avma, time: Timestamp) -> Option<JitHit> {
        Self::hit(
            self.claims.at(&self.codes, process, at, time)?,
            at,
            JitMatch::Active,
        )
    }

    /// [`lookup`](Self::lookup), and between which times (the second excluded) it would answer the same.
    #[must_use]
    pub fn lookup_with_span(
        &self,
        process: ProcessId,
        at: Avma,
        time: Timestamp,
    ) -> Option<(JitHit, (Timestamp, Timestamp))> {
        let (claim, span) = self.claims.at_with_span(&self.codes, process, at, time)?;
        Some((Self::hit(claim, at, JitMatch::Active)?, span))
    }

    /// When pieces of code were gone from everywhere they had been: other code took their place, a file was mapped there.
    /// What is not in it was there to the end.
    #[must_use]
    pub fn ends(&self) -> FxHashMap<JitCodeId, Timestamp> {
        let mut ends = self.claims.ends();
        ends.retain(|_, end| *end != claims::FOREVER);
        ends
    }

    /// Whether [`lookup`](Self::lookup) would find something at some time.
    #[must_use]
    pub fn ever(&self, process: ProcessId, at: Avma) -> bool {
        self.claims.ever(&self.codes, process, at)
    }

    /// Whether a dump that the process mapped was found and read.
    #[must_use]
    pub fn has_dump(&self, process: ProcessId) -> bool {
        self.merged.contains(&process)
    }

    /// What to try where neither [`JitIndex::lookup`] nor a file mapping knows the address: a record
    /// written late, the copy of a loaded module, the perf map, in this order.
    ///
    /// With it goes from when until when the answer is the same, if that is known: where no dump ever tells of an address, it is
    /// what the process' own perf map says, as long as that is its map.
    #[must_use]
    pub fn lookup_unmapped(
        &self,
        process: ProcessId,
        at: Avma,
        time: Timestamp,
    ) -> Option<(JitHit, Option<Span>)> {
        let dumped = self.lookup_late(process, at, time);
        let dumped = dumped.or_else(|| self.lookup_twin(process, at, time));
        if let Some(hit) = dumped {
            return Some((hit, None));
        }
        let (hit, span) = self.lookup_perf_map(process, at, time)?;
        let twins = self.twins.get(&process).map_or(&[][..], |twins| twins);
        let is_twin = twins.iter().any(|twin| twin.copy.contains(at));
        Some((hit, span.filter(|_| !is_twin)))
    }

    /// The earliest later load of the process itself: what its parent loads after the fork is in other memory.
    fn lookup_late(&self, process: ProcessId, at: Avma, time: Timestamp) -> Option<JitHit> {
        let found = self.claims.after(&self.codes, process, at, time);
        let found = found.filter(|claim| claim.from.0 - time.0 <= LATE)?;
        if self.was_file_mapped(process, at, time, found.from) {
            return None;
        }
        let distance = found.from.0.saturating_sub(time.0);
        self.latest.fetch_max(distance, Ordering::Relaxed);
        Self::hit(found, at, JitMatch::Late)
    }

    /// How long after it had run code was told of, at most, among what was [looked up](Self::lookup_unmapped); 0 if none.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.latest.load(Ordering::Relaxed)
    }

    /// Whether a file was mapped over an address between two times: what ran there before was other code.
    fn was_file_mapped(
        &self,
        process: ProcessId,
        at: Avma,
        from: Timestamp,
        to: Timestamp,
    ) -> bool {
        let files = &self.files;
        let first = files.partition_point(|&(of, time, _)| (of, time) <= (process, from));
        let mut rest = files[first..]
            .iter()
            .take_while(|&&(of, time, _)| of == process && time <= to);
        rest.any(|(_, _, range)| range.contains(at))
    }

    fn lookup_twin(&self, process: ProcessId, at: Avma, time: Timestamp) -> Option<JitHit> {
        let twin = self
            .twins
            .get(&process)?
            .iter()
            .find(|twin| twin.copy.contains(at))?;
        let original = twin.original.plus(at.since(twin.copy.start));
        let hit = self
            .lookup(process, original, time)
            .or_else(|| self.lookup_late(process, original, time))?;
        Some(JitHit {
            how: JitMatch::Twin,
            ..hit
        })
    }

    /// Perf maps only know addresses that no load ever covered: the dump knows better what came and
    /// went there. A child's own map goes before its parent's, which tells of what was there before the fork.
    fn lookup_perf_map(
        &self,
        process: ProcessId,
        at: Avma,
        time: Timestamp,
    ) -> Option<(JitHit, Option<Span>)> {
        if self.perf_maps.is_empty() {
            return None;
        }
        for (owner, now) in lineage(&self.births, process, time) {
            let map = self.perf_maps.get(&owner).filter(|map| map.is_of(now));
            if let Some(map) = map
                && (owner == process || map.was_there(at, now))
                && map.is_sure(at)
                && let Some(hit) = self.in_perf_map(map.object, at)
            {
                let is_dumped = self.claims.ever(&self.codes, process, at);
                let span = (owner == process).then_some((map.from, map.until));
                return (!is_dumped).then_some((hit, span));
            }
        }
        None
    }

    fn in_perf_map(&self, map: JitObjectId, at: Avma) -> Option<JitHit> {
        let (codes::CodeList::PerfMap(map), first) = self.codes.list(map)? else {
            return None;
        };
        let code = map.at(at)?.code(first);
        Some(JitHit {
            code,
            offset: at.since(self.code(code).start()),
            how: JitMatch::PerfMap,
        })
    }

    fn hit(claim: segments::Owner, at: Avma, how: JitMatch) -> Option<JitHit> {
        Some(JitHit {
            code: claim.code,
            offset: at.since(claim.start),
            how,
        })
    }
}
