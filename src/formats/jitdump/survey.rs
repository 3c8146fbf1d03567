//! A dump as its author would want to see it: bytes in, facts about all of its records out.
//!
//! One pass over the records of [`Reader`], which knows the format; here they are only counted and
//! compared. [`super::lint`] judges the facts, `pjit jitdump` prints both.

use std::collections::{BTreeMap, HashSet};

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

/// How often something occurs, and the offset of the first record where it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Occurrences {
    /// How often.
    pub count: u64,
    /// Where first, in bytes from the start of the file.
    pub first: u64,
}

/// What is in a dump.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The header.
    pub header: Header,
    /// Bytes of the file.
    pub file_size: u64,
    /// Bytes of the file before the first record.
    pub records_at: u64,
    /// Records by kind.
    pub counts: Counts,
    /// Where reading ended early.
    pub cut: Option<Cut>,
    /// The size that the record there claims, if that much of it is there.
    pub cut_size: Option<u64>,
    /// Who wrote it.
    pub producer: Producer,
    /// How many names are the producer's, of so many that were looked at.
    pub names_like: (u64, u64),
    /// Processes and threads.
    pub writers: Writers,
    /// Timestamps of records.
    pub times: Times,
    /// Loads.
    pub code: Code,
    /// Moves that fit no load.
    pub lost_moves: Occurrences,
    /// Moves whose size or index is not that of the code they move.
    pub unlike_moves: Occurrences,
    /// Line tables.
    pub debug: Debug,
    /// Unwinding records.
    pub unwinding: UnwindingFacts,
    /// Records of kinds that the format does not have: how many of each.
    pub unknown_kinds: BTreeMap<u32, Occurrences>,
    /// Records of a known kind that cannot be used.
    pub unusable: Occurrences,
    /// Headers where records should be.
    pub headers_within: Occurrences,
    /// Records behind a CLOSE.
    pub after_close: Occurrences,
}

/// Who wrote the records.
#[derive(Clone, Debug, Default)]
pub struct Writers {
    /// Loads and moves by process id; of very many the first.
    pub pids: BTreeMap<u32, Occurrences>,
    /// Loads by thread id; of very many the first.
    pub tids: BTreeMap<u32, Occurrences>,
    /// Loads and moves by another process than the header's.
    pub foreign: Occurrences,
    /// Loads whose thread id no thread can have.
    pub impossible_tids: Occurrences,
}

/// The timestamps of loads and moves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The earliest that is not 0.
    pub first: Option<u64>,
    /// The latest.
    pub last: u64,
    /// Earlier than one before.
    pub backwards: Occurrences,
    /// The longest step back.
    pub longest_step_back: u64,
    /// Without a time.
    pub zero: Occurrences,
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
    /// Loads that repeat address, size and bytes of code that is there.
    pub repeated: Occurrences,
    /// Loads of other code in exactly the place of an earlier one.
    pub replaced: Occurrences,
    /// Loads that overlap earlier ones in part.
    pub overlapping: Occurrences,
    /// Those of them that share a few bytes with the end or the start of a neighbour.
    pub reaching: Occurrences,
    /// `code_index` of an earlier load.
    pub repeated_index: Occurrences,
    /// No name.
    pub nameless: Occurrences,
    /// No bytes.
    pub empty: Occurrences,
    /// No address.
    pub nowhere: Occurrences,
    /// Address and size reach beyond the last address.
    pub wrapping: Occurrences,
    /// `vma` is 0.
    pub no_vma: Occurrences,
    /// `vma` is neither 0 nor the address.
    pub other_vma: Occurrences,
    /// Fewer bytes of code than claimed, though the file goes on.
    pub short: Occurrences,
    /// Bytes between name and code.
    pub apart: Occurrences,
    /// The name has no end.
    pub unterminated: Occurrences,
}

/// Line tables.
#[derive(Clone, Debug, Default)]
pub struct Debug {
    /// Loads with one.
    pub functions: u64,
    /// Entries of these.
    pub entries: u64,
    /// Different files.
    pub files: u64,
    /// Entries without a file.
    pub without_file: u64,
    /// Tables whose addresses are too high by the size of an ELF header.
    pub shifted: Occurrences,
    /// Tables with names that are none.
    pub broken_names: Occurrences,
    /// Tables that could not be read.
    pub unreadable: Occurrences,
    /// Tables with entries before their code.
    pub before: Occurrences,
    /// Tables with entries behind their code.
    pub behind: Occurrences,
    /// Tables with no load behind them.
    pub stray: Occurrences,
    /// Those of them whose code was loaded before.
    pub late: Occurrences,
}

/// Unwinding records.
#[derive(Clone, Debug, Default)]
pub struct UnwindingFacts {
    /// Loads with one.
    pub functions: u64,
    /// Loads with an empty one.
    pub empty: Occurrences,
    /// Records with the header in front.
    pub header_first: Occurrences,
    /// Records by (size of the data, of the header in it, mapped size); of very many the first.
    pub sizes: BTreeMap<(u64, u64, u64), Occurrences>,
    /// Loads whose frame descriptions do not cover them at any address.
    pub misfit: Occurrences,
    /// Records with no load behind them.
    pub stray: Occurrences,
}

/// Code that is where it was loaded.
struct Live<'a> {
    end: u64,
    index: u64,
    code: &'a [u8],
}

/// What is known while the records go by.
struct Surveyor<'a> {
    survey: Survey,
    live: BTreeMap<u64, Live<'a>>,
    names: HashSet<&'a [u8]>,
    files: HashSet<&'a [u8]>,
    indexes: Vec<(u64, u64)>,
    pending_debug: BTreeMap<u64, u64>,
    pending_unwinding: Option<u64>,
    /// Tables and unwinding records wait for the end, when it is known who wrote them.
    described: Vec<Described<'a>>,
}

/// A load with what came with it.
struct Described<'a> {
    offset: u64,
    address: Avma,
    size: u64,
    name: &'a [u8],
    lines: Option<DebugInfo<'a>>,
    unwinding: Option<Unwinding<'a>>,
}

impl Occurrences {
    fn add(&mut self, offset: u64) {
        if self.count == 0 {
            self.first = offset;
        }
        self.count += 1;
    }

    fn add_if(&mut self, condition: bool, offset: u64) {
        if condition {
            self.add(offset);
        }
    }
}

/// Reads a dump and describes it.
///
/// # Errors
/// When the bytes are no jitdump.
pub fn survey(bytes: &[u8]) -> Result<Survey, DumpError> {
    let mut reader = Reader::new(bytes)?;
    let mut surveyor = Surveyor::new(*reader.header(), bytes.len() as u64);
    surveyor.survey.records_at = reader.offset();
    while let Some((head, content)) = reader.step() {
        surveyor.record(head, content);
    }
    let survey = &mut surveyor.survey;
    (survey.counts, survey.cut) = (reader.counts(), reader.cut().cloned());
    survey.producer = reader.producer();
    survey.names_like = reader.names_like(survey.producer);
    Ok(surveyor.finish())
}

/// What tells how to read the lines of a load.
#[must_use]
pub fn code_of_lines<'a>(load: &Load<'a>, producer: Producer) -> CodeOfLines<'a> {
    CodeOfLines {
        address: load.address,
        size: load.size,
        name: load.name,
        producer,
    }
}

impl<'a> Surveyor<'a> {
    fn new(header: Header, file_size: u64) -> Self {
        Self {
            survey: Survey {
                header,
                file_size,
                records_at: 0,
                counts: Counts::default(),
                cut: None,
                cut_size: None,
                producer: Producer::Unknown,
                names_like: (0, 0),
                writers: Writers::default(),
                times: Times::default(),
                code: Code::default(),
                lost_moves: Occurrences::default(),
                unlike_moves: Occurrences::default(),
                debug: Debug::default(),
                unwinding: UnwindingFacts::default(),
                unknown_kinds: BTreeMap::new(),
                unusable: Occurrences::default(),
                headers_within: Occurrences::default(),
                after_close: Occurrences::default(),
            },
            live: BTreeMap::new(),
            names: HashSet::new(),
            files: HashSet::new(),
            indexes: Vec::new(),
            pending_debug: BTreeMap::new(),
            pending_unwinding: None,
            described: Vec::new(),
        }
    }

    fn record(&mut self, head: RecordHead, content: Content<'a>) {
        let at = head.offset;
        if head.present < head.size {
            self.survey.cut_size = Some(head.size);
        }
        let closed = self.survey.counts.closes > 0 && !matches!(content, Content::Header(_));
        self.survey.after_close.add_if(closed, at);
        match content {
            Content::Header(_) => {
                self.survey.headers_within.add(at);
                // Another writer: it closes for itself.
                self.survey.counts.closes = 0;
            }
            Content::Load(load) => self.load(head, load),
            Content::Move(moved) => self.moved(head, moved),
            Content::DebugInfo(info) => {
                let replaced = self.pending_debug.insert(info.code_address().0, at);
                if let Some(earlier) = replaced {
                    self.survey.debug.stray.add(earlier);
                }
            }
            Content::Unwinding(unwinding) => self.unwinding(head, unwinding),
            Content::Close => self.survey.counts.closes += 1,
            Content::Unknown => count(&mut self.survey.unknown_kinds, head.id, at),
            Content::Unusable => self.survey.unusable.add_if(head.present == head.size, at),
        }
    }

    fn load(&mut self, head: RecordHead, load: Load<'a>) {
        let at = head.offset;
        self.written(load.pid, load.time, at);
        let writers = &mut self.survey.writers;
        count(&mut writers.tids, load.tid, at);
        writers.impossible_tids.add_if(load.tid > MAX_PID, at);
        self.survey.code.fields(&head, &load);
        self.names.insert(load.name);
        self.indexes.push((load.index, at));
        self.place(&load);
        self.pending_debug.remove(&load.address.0);
        self.pending_unwinding = None;
        if load.lines.is_some() || load.unwinding.is_some() {
            self.described.push(Described {
                offset: at,
                address: load.address,
                size: load.size,
                name: load.name,
                lines: load.lines,
                unwinding: load.unwinding,
            });
        }
    }

    fn moved(&mut self, head: RecordHead, moved: Move) {
        let at = head.offset;
        self.written(moved.pid, moved.time, at);
        let Some(code) = self.live.remove(&moved.from.0) else {
            self.survey.lost_moves.add(at);
            return;
        };
        let size = code.end - moved.from.0;
        let unlike = code.index != moved.index || size != moved.size;
        self.survey.unlike_moves.add_if(unlike, at);
        let end = moved.to.0.saturating_add(size);
        self.clear(moved.to.0, end);
        self.live.insert(moved.to.0, Live { end, ..code });
    }

    fn unwinding(&mut self, head: RecordHead, unwinding: Unwinding<'a>) {
        let facts = &mut self.survey.unwinding;
        if let Some(earlier) = self.pending_unwinding.replace(head.offset) {
            facts.stray.add(earlier);
        }
        facts
            .header_first
            .add_if(unwinding.header_first(), head.offset);
        let header = unwinding.header().len() as u64;
        let data = header + unwinding.eh_frame().len() as u64;
        count(
            &mut facts.sizes,
            (data, header, unwinding.mapped_size()),
            head.offset,
        );
    }

    fn written(&mut self, pid: u32, time: u64, at: u64) {
        let survey = &mut self.survey;
        count(&mut survey.writers.pids, pid, at);
        let foreign = pid != survey.header.pid && !survey.header.missing;
        survey.writers.foreign.add_if(foreign, at);
        survey.times.add(time, at);
    }

    /// Puts code where it was loaded, and counts what happened to what was there.
    fn place(&mut self, load: &Load<'a>) {
        let (start, at) = (load.address.0, load.file_offset);
        let end = start.saturating_add(load.size);
        if start == end {
            return;
        }
        let same = self.live.get(&start).filter(|live| live.end == end);
        let repeats = same.is_some_and(|live| live.code == load.code);
        let same = same.is_some();
        let reaches = self.reaches_neighbour(start, end);
        self.survey.code.reaching.add_if(reaches, at);
        let cleared = self.clear(start, end);
        let code = &mut self.survey.code;
        match (cleared, same) {
            (0, _) => {}
            (_, true) if repeats => code.repeated.add(at),
            (_, true) => code.replaced.add(at),
            _ => code.overlapping.add(at),
        }
        self.live.insert(
            start,
            Live {
                end,
                index: load.index,
                code: load.code,
            },
        );
    }

    /// Whether code and a neighbour share so few bytes that the size of one of them may be rounded up.
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

    /// Removes all code that overlaps a range; live code never overlaps itself.
    fn clear(&mut self, start: u64, end: u64) -> u64 {
        let mut cleared = 0;
        while let Some((&below, live)) = self.live.range(..end).next_back()
            && live.end > start
        {
            self.live.remove(&below);
            cleared += 1;
        }
        cleared
    }

    fn finish(mut self) -> Survey {
        self.leftovers();
        for described in std::mem::take(&mut self.described) {
            self.describe(&described);
        }
        let survey = &mut self.survey;
        survey.code.names = self.names.len() as u64;
        survey.debug.files = self.files.len() as u64;
        survey.code.repeated_index = repeated(self.indexes);
        self.survey
    }

    /// Records that waited for a load in vain.
    fn leftovers(&mut self) {
        if let Some(offset) = self.pending_unwinding {
            self.survey.unwinding.stray.add(offset);
        }
        let debug = &mut self.survey.debug;
        let mut pending: Vec<_> = self.pending_debug.iter().collect();
        pending.sort_unstable_by_key(|&(_, offset)| offset);
        for (address, &offset) in pending {
            let is_late = self.live.contains_key(address);
            debug.late.add_if(is_late, offset);
            debug.stray.add_if(!is_late, offset);
        }
    }

    fn describe(&mut self, load: &Described<'a>) {
        let code = CodeOfLines {
            address: load.address,
            size: load.size,
            name: load.name,
            producer: self.survey.producer,
        };
        if let Some(info) = &load.lines {
            let files = info.lines(&code).into_iter().map(|line| line.file);
            self.files.extend(files.filter(|file| !file.is_empty()));
            self.survey.debug.table(info, &code, load.offset);
        }
        if let Some(unwinding) = &load.unwinding {
            let facts = &mut self.survey.unwinding;
            facts.functions += 1;
            facts.empty.add_if(unwinding.is_empty(), load.offset);
            let fits = unwinding.is_empty() || unwinding.resolve(load.address, load.size).is_some();
            facts.misfit.add_if(!fits, load.offset);
        }
    }
}

impl Times {
    fn add(&mut self, time: u64, at: u64) {
        if time == 0 {
            self.zero.add(at);
            return;
        }
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.backwards.add_if(time < self.previous, at);
        let step_back = self.last.saturating_sub(time);
        self.longest_step_back = self.longest_step_back.max(step_back);
        self.last = self.last.max(time);
        self.previous = time;
    }
}

impl Code {
    fn fields(&mut self, head: &RecordHead, load: &Load<'_>) {
        let (start, at) = (load.address.0, head.offset);
        let is_whole = head.present == head.size;
        self.bytes = self.bytes.saturating_add(load.size);
        self.lowest = Some(self.lowest.map_or(start, |lowest| lowest.min(start)));
        self.highest = self.highest.max(start.saturating_add(load.size));
        self.largest = self.largest.max(load.size);
        self.longest_name = self.longest_name.max(load.name.len() as u64);
        self.nameless.add_if(load.name.is_empty(), at);
        self.empty.add_if(load.size == 0, at);
        self.nowhere.add_if(start == 0, at);
        self.wrapping
            .add_if(start.checked_add(load.size).is_none(), at);
        self.no_vma.add_if(load.vma.0 == 0 && start != 0, at);
        self.other_vma
            .add_if(load.vma.0 != 0 && load.vma != load.address, at);
        self.short
            .add_if(is_whole && load.form == LoadForm::Short, at);
        self.apart.add_if(load.form == LoadForm::Apart, at);
        self.unterminated
            .add_if(load.form == LoadForm::Unterminated, at);
    }
}

impl Debug {
    fn table<'a>(&mut self, info: &DebugInfo<'a>, code: &CodeOfLines<'a>, at: u64) {
        let odd = info.oddities(code);
        self.functions += 1;
        self.entries += odd.entries;
        self.without_file += odd.without_file;
        self.shifted.add_if(odd.shifted, at);
        self.unreadable.add_if(odd.unreadable, at);
        self.broken_names
            .add_if(odd.broken_names && !odd.unreadable, at);
        self.before.add_if(odd.before > 0, at);
        self.behind.add_if(odd.behind > 0, at);
    }
}

/// Counts by key, as long as there are not too many keys.
fn count<K: Ord>(by_key: &mut BTreeMap<K, Occurrences>, key: K, at: u64) {
    if by_key.len() < MAX_DISTINCT || by_key.contains_key(&key) {
        by_key.entry(key).or_default().add(at);
    }
}

/// Indexes that an earlier load has.
fn repeated(mut indexes: Vec<(u64, u64)>) -> Occurrences {
    let mut found = Occurrences::default();
    if indexes.is_sorted_by(|a, b| a.0 < b.0) {
        return found;
    }
    indexes.sort_unstable();
    let mut again: Vec<u64> = indexes
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .map(|pair| pair[1].1)
        .collect();
    again.sort_unstable();
    again.into_iter().for_each(|at| found.add(at));
    found
}
