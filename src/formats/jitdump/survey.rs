//! A dump as its author would want to see it: bytes in, facts about all of its records out.
//!
//! One pass over the records of [`Reader`], which knows the format; here they are only counted and
//! compared. [`super::lint`] judges the facts, `pjit jitdump` prints both.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::debug_info::{CodeOfLines, DebugInfo};
use super::dump::{
    Content, Counts, Cut, DumpError, Header, Load, LoadForm, Move, Reader, RecordHead,
};
use super::overlap::is_slight;
use super::unwinding::Unwinding;
use crate::address::{Avma, AvmaRange};
use crate::runtimes::Producer;

/// So many different pids, tids and unknown kinds are told apart.
const MAX_DISTINCT: usize = 64;
/// Linux hands out no greater process or thread id (`PID_MAX_LIMIT`).
const MAX_PID: u32 = 4 << 20;

/// Ways in which records leave the format or are unusual, in the order in which [`super::lint`] names them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Odd {
    /// The time is before that of an earlier record.
    Backwards,
    /// The time is 0.
    NoTime,
    /// A load or move by another process than the header's.
    Foreign,
    /// No thread can have the thread id.
    ImpossibleTid,
    /// A header where a record should be.
    HeaderWithin,
    /// A known kind, but too short or of an impossible size.
    Unusable,
    /// A kind that the format does not have.
    UnknownKind(u32),
    /// A record behind a CLOSE.
    AfterClose,
    /// A move that fits no load.
    LostMove,
    /// A move whose size or index is not that of the code it moves.
    UnlikeMove,
    /// A load without an address.
    Nowhere,
    /// Address and size reach beyond the last address.
    Wrapping,
    /// The load shares a few bytes with the end or the start of a neighbour.
    Reaching,
    /// The name has no NUL.
    Unterminated,
    /// `vma` is 0.
    NoVma,
    /// `vma` is neither 0 nor the address.
    OtherVma,
    /// Fewer bytes of code than claimed, though the file goes on.
    ShortCode,
    /// Bytes between name and code.
    Apart,
    /// A load without bytes.
    Empty,
    /// The `code_index` of an earlier load.
    RepeatedIndex,
    /// A load without a name.
    Nameless,
    /// A load that repeats address, size and bytes of code that is there.
    Repeated,
    /// A line table that could not be read.
    UnreadableLines,
    /// Addresses of lines are too high by the size of an ELF header.
    ShiftedLines,
    /// A line table with names that are none.
    BrokenFileNames,
    /// A line table with no load behind it.
    StrayLines,
    /// A line table whose code was loaded before it.
    LateLines,
    /// Lines before their code.
    LinesBefore,
    /// Lines behind their code.
    LinesBehind,
    /// Frame descriptions that do not cover the load at any address.
    MisfitUnwinding,
    /// An unwinding record with no load behind it.
    StrayUnwinding,
    /// An unwinding record with the header in front.
    HeaderFirst,
    /// A load with an empty unwinding record.
    EmptyUnwinding,
}

/// Number of records that are odd in one way, and the place of the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Occurrences {
    /// Number of records.
    pub count: u64,
    /// Offset of the first one in the file.
    pub first: u64,
}

/// Facts about all records of a dump.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The header.
    pub header: Header,
    /// Bytes of the file.
    pub file_size: u64,
    /// Bytes of the file before the first record.
    pub records_at: u64,
    /// Records by kind.
    pub counts: Counts,
    /// Place where reading ended early.
    pub cut: Option<Cut>,
    /// Size that the record there claims, if its head is there.
    pub cut_size: Option<u64>,
    /// Runtime that wrote it.
    pub producer: Producer,
    /// Number of names that look like the producer's, of so many that were looked at.
    pub names_like: (u64, u64),
    /// Process ids of loads and moves; of very many the first.
    pub pids: BTreeSet<u32>,
    /// Thread ids of loads; of very many the first.
    pub tids: BTreeSet<u32>,
    /// Timestamps of records.
    pub times: Times,
    /// Loads.
    pub code: Code,
    /// Line tables.
    pub lines: Lines,
    /// Loads with unwinding records.
    pub unwindings: u64,
    /// Unwinding records by (size of the data, of the header in it, mapped size); of very many the first.
    pub unwinding_sizes: BTreeMap<(u64, u64, u64), u64>,
    /// Everything odd, with the records that have it.
    pub odd: BTreeMap<Odd, Occurrences>,
}

/// The timestamps of loads and moves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The earliest that is not 0.
    pub first: Option<u64>,
    /// The latest.
    pub last: u64,
    /// The longest step back.
    pub longest_step_back: u64,
    previous: u64,
}

/// All loads together.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Bytes, also of code that was replaced.
    pub bytes: u64,
    /// The lowest start.
    pub lowest: Option<u64>,
    /// The highest end.
    pub highest: u64,
    /// Size of the largest.
    pub largest: u64,
    /// Bytes of the longest name.
    pub longest_name: u64,
    /// Different names.
    pub names: u64,
    /// Loads of other code in exactly the place of an earlier one.
    pub replaced: u64,
    /// Loads that overlap earlier ones in part.
    pub overlapping: u64,
}

/// All line tables together.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Loads with one.
    pub functions: u64,
    /// Entries of these.
    pub entries: u64,
    /// Different files.
    pub files: u64,
}

/// Code that is where it was loaded.
struct Live<'a> {
    end: u64,
    index: u64,
    code: &'a [u8],
}

/// State of the pass over the records.
#[derive(Default)]
struct Surveyor<'a> {
    survey: Survey,
    live: BTreeMap<u64, Live<'a>>,
    names: HashSet<&'a [u8]>,
    files: HashSet<&'a [u8]>,
    indexes: Vec<(u64, u64)>,
    pending_debug: BTreeMap<u64, u64>,
    pending_unwinding: Option<u64>,
    is_closed: bool,
    /// Loads with tables or unwinding records wait for the end, when it is known who wrote them.
    described: Vec<Load<'a>>,
}

/// Reads a dump and describes it.
///
/// # Errors
/// When the bytes are no jitdump.
pub fn survey(bytes: &[u8]) -> Result<Survey, DumpError> {
    let mut reader = Reader::new(bytes)?;
    let mut surveyor = Surveyor::default();
    surveyor.survey.header = *reader.header();
    surveyor.survey.file_size = bytes.len() as u64;
    surveyor.survey.records_at = reader.offset();
    while let Some((head, content)) = reader.step() {
        surveyor.record(head, content);
    }
    let survey = &mut surveyor.survey;
    (survey.counts, survey.cut) = (reader.counts().clone(), reader.cut().cloned());
    survey.producer = reader.producer();
    survey.names_like = reader.names_like(survey.producer);
    Ok(surveyor.finish())
}

impl Survey {
    /// Number of records that are odd in this way.
    #[must_use]
    pub fn count(&self, odd: Odd) -> u64 {
        self.odd.get(&odd).map_or(0, |found| found.count)
    }

    fn add(&mut self, odd: Odd, at: u64) {
        let found = self.odd.entry(odd).or_insert(Occurrences {
            count: 0,
            first: at,
        });
        found.count += 1;
    }

    fn add_if(&mut self, condition: bool, odd: Odd, at: u64) {
        if condition {
            self.add(odd, at);
        }
    }

    fn add_unknown(&mut self, kind: u32, at: u64) {
        let all = Odd::UnknownKind(0)..=Odd::UnknownKind(u32::MAX);
        let odd = Odd::UnknownKind(kind);
        let has_room = self.odd.range(all).count() < MAX_DISTINCT;
        self.add_if(has_room || self.odd.contains_key(&odd), odd, at);
    }
}

impl<'a> Surveyor<'a> {
    fn record(&mut self, head: RecordHead, content: Content<'a>) {
        let at = head.offset;
        if head.present < head.size {
            self.survey.cut_size = Some(head.size);
        }
        let is_header = matches!(content, Content::Header(_));
        let is_after = self.is_closed && !is_header;
        self.survey.add_if(is_after, Odd::AfterClose, at);
        match content {
            Content::Header(_) => {
                self.survey.add(Odd::HeaderWithin, at);
                // Another writer: it closes for itself.
                self.is_closed = false;
            }
            Content::Load(load) => self.load(head, load),
            Content::Move(moved) => self.moved(at, moved),
            Content::DebugInfo(info) => {
                if let Some(earlier) = self.pending_debug.insert(info.code_address().0, at) {
                    self.survey.add(Odd::StrayLines, earlier);
                }
            }
            Content::Unwinding(unwinding) => self.unwinding(at, &unwinding),
            Content::Close => self.is_closed = true,
            Content::Unknown => self.survey.add_unknown(head.id, at),
            Content::Unusable => {
                let is_whole = head.present == head.size;
                self.survey.add_if(is_whole, Odd::Unusable, at);
            }
        }
    }

    fn load(&mut self, head: RecordHead, load: Load<'a>) {
        let at = head.offset;
        self.written(load.pid, load.time, at);
        if self.survey.tids.len() < MAX_DISTINCT {
            self.survey.tids.insert(load.tid);
        }
        self.survey.code.add(&load);
        let start = load.address.0;
        let is_short = load.form == LoadForm::Short && head.present == head.size;
        for (odd, found) in [
            (Odd::ImpossibleTid, load.tid > MAX_PID),
            (Odd::Nameless, load.name.is_empty()),
            (Odd::Empty, load.size == 0),
            (Odd::Nowhere, start == 0),
            (Odd::Wrapping, start.checked_add(load.size).is_none()),
            (Odd::NoVma, load.vma.0 == 0 && start != 0),
            (Odd::OtherVma, load.vma.0 != 0 && load.vma.0 != start),
            (Odd::ShortCode, is_short),
            (Odd::Apart, load.form == LoadForm::Apart),
            (Odd::Unterminated, load.form == LoadForm::Unterminated),
        ] {
            self.survey.add_if(found, odd, at);
        }
        self.names.insert(load.name);
        self.indexes.push((load.index, at));
        self.place(&load);
        self.pending_debug.remove(&start);
        self.pending_unwinding = None;
        if load.lines.is_some() || load.unwinding.is_some() {
            self.described.push(load);
        }
    }

    fn moved(&mut self, at: u64, moved: Move) {
        self.written(moved.pid, moved.time, at);
        let Some(code) = self.live.remove(&moved.from.0) else {
            return self.survey.add(Odd::LostMove, at);
        };
        let size = code.end - moved.from.0;
        let is_unlike = code.index != moved.index || size != moved.size;
        self.survey.add_if(is_unlike, Odd::UnlikeMove, at);
        let end = moved.to.0.saturating_add(size);
        self.clear(moved.to.0, end);
        self.live.insert(moved.to.0, Live { end, ..code });
    }

    fn unwinding(&mut self, at: u64, unwinding: &Unwinding<'a>) {
        if let Some(earlier) = self.pending_unwinding.replace(at) {
            self.survey.add(Odd::StrayUnwinding, earlier);
        }
        let survey = &mut self.survey;
        survey.add_if(unwinding.header_first(), Odd::HeaderFirst, at);
        let header = unwinding.header().len() as u64;
        let data = header + unwinding.eh_frame().len() as u64;
        let sizes = (data, header, unwinding.mapped_size());
        let known = &mut survey.unwinding_sizes;
        if known.len() < MAX_DISTINCT || known.contains_key(&sizes) {
            *known.entry(sizes).or_default() += 1;
        }
    }

    fn written(&mut self, pid: u32, time: u64, at: u64) {
        let survey = &mut self.survey;
        if survey.pids.len() < MAX_DISTINCT {
            survey.pids.insert(pid);
        }
        let is_foreign = pid != survey.header.pid && !survey.header.missing;
        survey.add_if(is_foreign, Odd::Foreign, at);
        if time == 0 {
            survey.add(Odd::NoTime, at);
        } else {
            let is_earlier = survey.times.add(time);
            survey.add_if(is_earlier, Odd::Backwards, at);
        }
    }

    /// Puts code where it was loaded, and counts what happened to what was there.
    fn place(&mut self, load: &Load<'a>) {
        let (start, at) = (load.address.0, load.file_offset);
        let end = start.saturating_add(load.size);
        if start == end {
            return;
        }
        let same = self.live.get(&start).filter(|live| live.end == end);
        let repeats = same.map(|live| live.code == load.code);
        let reaches = self.reaches_neighbour(start, end);
        self.survey.add_if(reaches, Odd::Reaching, at);
        let cleared = self.clear(start, end);
        match repeats {
            Some(true) => self.survey.add(Odd::Repeated, at),
            Some(false) => self.survey.code.replaced += 1,
            None => self.survey.code.overlapping += u64::from(cleared),
        }
        let (index, code) = (load.index, load.code);
        self.live.insert(start, Live { end, index, code });
    }

    /// True if code and a neighbour share so few bytes that the size of one of them may be rounded up.
    fn reaches_neighbour(&self, start: u64, end: u64) -> bool {
        const FEW: u64 = 16;
        let new = AvmaRange::new(Avma(start), end - start);
        let below = self.live.range(..start).next_back();
        let above = self.live.range(start..end).next_back();
        below.into_iter().chain(above).any(|(&at, live)| {
            let old = AvmaRange::new(Avma(at), live.end - at);
            let shared = old.end.0.min(end).saturating_sub(at.max(start));
            (1..FEW).contains(&shared) && shared < new.len() && is_slight(old, new)
        })
    }

    /// Removes all code that overlaps a range, if there is any; live code never overlaps itself.
    fn clear(&mut self, start: u64, end: u64) -> bool {
        let before = self.live.len();
        while let Some((&below, live)) = self.live.range(..end).next_back()
            && live.end > start
        {
            self.live.remove(&below);
        }
        self.live.len() < before
    }

    fn finish(mut self) -> Survey {
        self.leftovers();
        for load in std::mem::take(&mut self.described) {
            self.describe(&load);
        }
        let mut survey = self.survey;
        survey.code.names = self.names.len() as u64;
        survey.lines.files = self.files.len() as u64;
        for at in repeated(self.indexes) {
            survey.add(Odd::RepeatedIndex, at);
        }
        survey
    }

    /// Records that waited for a load in vain.
    fn leftovers(&mut self) {
        if let Some(at) = self.pending_unwinding {
            self.survey.add(Odd::StrayUnwinding, at);
        }
        let mut pending: Vec<_> = self.pending_debug.iter().collect();
        pending.sort_unstable_by_key(|&(_, at)| at);
        for (address, &at) in pending {
            let is_late = self.live.contains_key(address);
            self.survey.add_if(is_late, Odd::LateLines, at);
            self.survey.add_if(!is_late, Odd::StrayLines, at);
        }
    }

    fn describe(&mut self, load: &Load<'a>) {
        let at = load.file_offset;
        if let Some(info) = &load.lines {
            self.table(info, &load.of_lines(self.survey.producer), at);
        }
        if let Some(unwinding) = &load.unwinding {
            let is_empty = unwinding.is_empty();
            let fits = is_empty || unwinding.resolve(load.address, load.size).is_some();
            self.survey.unwindings += 1;
            self.survey.add_if(is_empty, Odd::EmptyUnwinding, at);
            self.survey.add_if(!fits, Odd::MisfitUnwinding, at);
        }
    }

    fn table(&mut self, info: &DebugInfo<'a>, code: &CodeOfLines<'a>, at: u64) {
        let files = info.lines(code).into_iter().map(|line| line.file);
        self.files.extend(files.filter(|file| !file.is_empty()));
        let table = info.oddities(code);
        self.survey.lines.functions += 1;
        self.survey.lines.entries += table.entries;
        for (odd, found) in [
            (Odd::ShiftedLines, table.shifted),
            (Odd::UnreadableLines, table.unreadable),
            (
                Odd::BrokenFileNames,
                table.broken_names && !table.unreadable,
            ),
            (Odd::LinesBefore, table.before > 0),
            (Odd::LinesBehind, table.behind > 0),
        ] {
            self.survey.add_if(found, odd, at);
        }
    }
}

impl Times {
    /// Takes the time of one more record; true if an earlier record has a later one.
    fn add(&mut self, time: u64) -> bool {
        let is_earlier = time < self.previous;
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        let step_back = self.last.saturating_sub(time);
        self.longest_step_back = self.longest_step_back.max(step_back);
        self.last = self.last.max(time);
        self.previous = time;
        is_earlier
    }
}

impl Code {
    fn add(&mut self, load: &Load<'_>) {
        let start = load.address.0;
        self.bytes = self.bytes.saturating_add(load.size);
        self.lowest = Some(self.lowest.map_or(start, |lowest| lowest.min(start)));
        self.highest = self.highest.max(start.saturating_add(load.size));
        self.largest = self.largest.max(load.size);
        self.longest_name = self.longest_name.max(load.name.len() as u64);
    }
}

/// Offsets of loads with the index of an earlier one, in the order of the file.
fn repeated(mut indexes: Vec<(u64, u64)>) -> Vec<u64> {
    indexes.sort_unstable();
    let pairs = indexes.windows(2);
    let mut again: Vec<u64> = pairs
        .filter(|pair| pair[0].0 == pair[1].0)
        .map(|pair| pair[1].1)
        .collect();
    again.sort_unstable();
    again
}
