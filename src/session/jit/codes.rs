//! All JIT code of the run: what its dumps and perf maps hold, read when it is asked for.
//!
//! In: dumps, record by record, and perf maps. Out: [`JitCode`], which tells everything about one piece of code.
//!
//! There are hundreds of thousands of functions, and of most nobody asks more than address and time. So a load is kept as
//! these two and where its record lies ([`Load`], 24 bytes); name and machine code are found again in the record.

use rustc_hash::FxHashMap;

use super::load_map::{Load, LoadId, LoadMap};
use super::{JitCodeId, JitObjectId, JitUnwinding};
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::ids::{Idx, IndexVec, numbers};
use crate::input::Store;
use crate::jitdump::ByteOrder;
use crate::jitdump::debug_info::{CodeOfLines, DebugInfo, Line};
use crate::jitdump::dump::{self, LoadHead, LoadText, Reader};
use crate::jitdump::perfmap::{MapEntry, PerfMap};
use crate::jitdump::unwinding::Unwinding;
use crate::runtimes::{Guests, Habit, Producer, Tier};

/// A piece of JIT code. Whatever is asked about it is looked up then.
#[derive(Clone, Copy, Debug)]
pub struct JitCode<'s, 'a> {
    list: &'s CodeList<'a>,
    number: LoadId,
}

impl<'a> JitCode<'_, 'a> {
    /// Name as the runtime wrote it, arbitrary bytes.
    #[must_use]
    pub fn name(self) -> &'a [u8] {
        match self.list {
            CodeList::Dump(dump) => dump.name(self.number),
            CodeList::PerfMap(map) => map.entry(self.number).name,
        }
    }

    /// Where it was loaded. Code that was moved keeps this address: everything about it is
    /// relative to it, and a [`JitHit::offset`](super::JitHit::offset) counts from it.
    #[must_use]
    pub fn start(self) -> Avma {
        self.range().start
    }

    /// Length in bytes; may be more than [`JitCode::bytes`] has.
    #[must_use]
    pub fn size(self) -> u64 {
        match self.list {
            CodeList::Dump(dump) => dump.load(self.number).size.into(),
            CodeList::PerfMap(map) => map.range(self.number).len(),
        }
    }

    /// Where it was loaded, from first to last address.
    #[must_use]
    pub fn range(self) -> AvmaRange {
        match self.list {
            CodeList::Dump(dump) => dump.load(self.number).range(),
            CodeList::PerfMap(map) => map.range(self.number),
        }
    }

    /// The machine code as it was dumped, from the start; shorter than the size where the dump was cut,
    /// empty for perf maps.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        match self.list {
            CodeList::Dump(dump) => dump.bytes(self.number),
            CodeList::PerfMap(_) => &[],
        }
    }

    /// When it was loaded, on the recording's clock.
    #[must_use]
    pub fn loaded(self) -> Timestamp {
        match self.list {
            CodeList::Dump(dump) => dump.load(self.number).time,
            CodeList::PerfMap(_) => Timestamp::START,
        }
    }

    /// The dump or perf map it comes from.
    #[must_use]
    pub fn object(self) -> JitObjectId {
        match self.list {
            CodeList::Dump(dump) => dump.object,
            CodeList::PerfMap(map) => map.object,
        }
    }

    /// Who generated it.
    #[must_use]
    pub fn producer(self) -> Producer {
        match self.list {
            CodeList::Dump(dump) => dump.producer,
            CodeList::PerfMap(map) => map.producer_of(self.number),
        }
    }

    /// Whether its lines, if it has some, are of places in the code. V8 writes for code of its baseline compiler where lines are in
    /// the bytecode, and all of interpreted code is the interpreter's: one line would have the weight of all. Others that know no
    /// lines write that of the function alone.
    #[must_use]
    pub fn has_true_lines(self) -> bool {
        let name = String::from_utf8_lossy(self.name());
        let tier = (self.producer().row().tier)(&name);
        if self.producer() == Producer::V8 {
            return !matches!(tier, Tier::Interpreted | Tier::Baseline);
        }
        let lines = self.lines();
        lines.iter().filter(|line| line.line > 0).nth(1).is_some()
    }

    /// Whether other code was at this offset of it at another time, and nothing tells when: maps have no times.
    #[must_use]
    pub fn is_doubtful(self, offset: u64) -> bool {
        let CodeList::PerfMap(map) = self.list else {
            return false;
        };
        let at = Avma(self.start().0.wrapping_add(offset));
        let behind = map.reused.partition_point(|range| range.start <= at);
        let range = behind.checked_sub(1).map(|before| map.reused[before]);
        range.is_some_and(|range| range.contains(at))
    }

    /// How it treats the stack.
    #[must_use]
    pub fn habit(self) -> Habit {
        let habit = (self.producer().row().habit)(self.name());
        match self.list {
            CodeList::PerfMap(map) if map.keeps_frames && habit == Habit::Unknown => {
                Habit::CallersKeepFrames
            }
            _ => habit,
        }
    }

    /// Unwinding information that the dump holds for this code. Looks through the record: ask once
    /// for each piece of code.
    #[must_use]
    pub fn unwinding(self) -> Option<JitUnwinding<'a>> {
        match self.list {
            CodeList::Dump(dump) => dump.unwinding(self.number),
            CodeList::PerfMap(_) => None,
        }
    }

    /// Whether [`unwinding`](Self::unwinding) would find something to look through.
    #[must_use]
    pub fn has_unwinding(self) -> bool {
        match self.list {
            CodeList::Dump(dump) => dump.frames(self.number) != Frames::Nothing,
            CodeList::PerfMap(_) => false,
        }
    }

    /// Whether [`lines`](Self::lines) would find a record of them.
    #[must_use]
    pub fn has_lines(self) -> bool {
        self.debug_info().is_some()
    }

    /// All source lines, by rising offset; see [`crate::jitdump::debug_info::line_at`].
    #[must_use]
    pub fn lines(self) -> Vec<Line<'a>> {
        self.debug_info()
            .map(|info| info.lines(&self.of_lines()))
            .unwrap_or_default()
    }

    /// The same where they are of places in the code; see [`has_true_lines`](Self::has_true_lines).
    #[must_use]
    pub fn true_lines(self) -> Vec<Line<'a>> {
        if self.has_true_lines() {
            self.lines()
        } else {
            Vec::new()
        }
    }

    fn debug_info(self) -> Option<DebugInfo<'a>> {
        match self.list {
            CodeList::Dump(dump) => dump.lines(self.number),
            CodeList::PerfMap(_) => None,
        }
    }

    fn of_lines(self) -> CodeOfLines<'a> {
        CodeOfLines {
            address: self.start(),
            size: self.size(),
            name: self.name(),
            producer: self.producer(),
        }
    }
}

/// The code of one dump or perf map.
#[derive(Debug)]
pub(crate) enum CodeList<'a> {
    Dump(DumpCodes<'a>),
    PerfMap(MapCodes<'a>),
}

/// The entries of a perf map.
#[derive(Debug)]
pub(crate) struct MapCodes<'a> {
    pub(super) object: JitObjectId,
    /// Whom most names are of.
    pub(super) producer: Producer,
    /// Who appended to it besides.
    pub(super) guests: Guests,
    /// Whether the runtime was told to keep frame pointers.
    pub(super) keeps_frames: bool,
    /// Sorted by address, without overlaps.
    pub(super) entries: IndexVec<LoadId, MapEntry<'a>>,
    /// Entries whose code begins so many bytes earlier, in order: others took its beginning.
    beheaded: Vec<(LoadId, u64)>,
    /// Where the map tells of several functions, in order: the last one's name is shown.
    reused: Vec<AvmaRange>,
}

/// The loads of a dump.
#[derive(Debug, Default)]
pub(crate) struct DumpCodes<'a> {
    pub(crate) object: JitObjectId,
    pub(crate) producer: Producer,
    /// The file.
    bytes: &'a [u8],
    order: ByteOrder,
    /// In file order.
    pub(super) loads: IndexVec<LoadId, Load>,
    /// The first load behind each 4 GB of the file.
    beyond: Vec<LoadId>,
    /// Lines of those that have any.
    lines: Vec<(LoadId, DebugInfo<'a>)>,
    /// From which load on which holds.
    frames: Vec<(LoadId, Frames)>,
    unwindings: IndexVec<RecordId, Unwinding<'a>>,
    /// Those that go by another's name.
    renamed: FxHashMap<LoadId, &'a [u8]>,
    /// Where the loads lie, if no two share an address.
    pub(super) places: Option<LoadMap>,
}

/// The size of a block of QEMU, given where the next one begins.
pub(super) fn filled(start: Avma, size: u32, next: Avma) -> u32 {
    /// Slow ways are shorter.
    const MOST: u32 = 1 << 13;
    let to_next = next.0.checked_sub(start.0).map(u32::try_from);
    match to_next {
        Some(Ok(len)) if len > size && len - size < MOST => len,
        _ => size,
    }
}

numbers! {
    /// A record of unwinding among those of its dump.
    struct RecordId(u32);
}

/// What a dump says about the frames of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frames {
    Nothing,
    /// The runtime asks for frame-pointer unwinding.
    Pointers,
    Described(RecordId),
}

impl<'a> MapCodes<'a> {
    pub(super) fn new(object: JitObjectId, map: PerfMap<'a>) -> Self {
        let entries = map.entries;
        let names = entries.iter().map(|entry| entry.name);
        let sized = entries.iter().map(|entry| (entry.name, entry.size));
        Self {
            object,
            producer: Producer::of_names(names),
            guests: Guests::of(sized),
            keeps_frames: false,
            entries: entries.into(),
            beheaded: (map.beheaded.into_iter())
                .map(|(number, missing)| (LoadId::at(number), missing))
                .collect(),
            reused: map.reused,
        }
    }

    fn producer_of(&self, number: LoadId) -> Producer {
        let named = Producer::of_prefix(self.entry(number).name);
        if self.guests.has(named) {
            named
        } else {
            self.producer
        }
    }

    fn entry(&self, number: LoadId) -> &MapEntry<'a> {
        &self.entries[number]
    }

    /// The addresses of the whole code.
    fn range(&self, number: LoadId) -> AvmaRange {
        let entry = self.entry(number);
        let place = self.beheaded.binary_search_by_key(&number, |&(of, _)| of);
        let missing = place.map_or(0, |place| self.beheaded[place].1);
        AvmaRange {
            start: Avma(entry.start.0.saturating_sub(missing)),
            end: AvmaRange::new(entry.start, entry.size).end,
        }
    }

    /// The entry that covers an address.
    pub(super) fn at(&self, at: Avma) -> Option<LoadId> {
        let next = self.entries.raw.partition_point(|entry| entry.start <= at);
        let number = LoadId::at(next.checked_sub(1)?);
        self.range(number).contains(at).then_some(number)
    }
}

impl<'a> DumpCodes<'a> {
    /// None yet of a dump that is about to be read.
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self {
            bytes,
            order,
            ..Self::default()
        }
    }

    /// Takes the load that `reader` has just read.
    #[inline]
    pub(crate) fn push(&mut self, head: &LoadHead, reader: &mut Reader<'a>, store: &'a Store) {
        let lines = reader.take_lines(head.address);
        let unwinding = reader.take_unwinding(head.address, head.size.into());
        self.add(head, lines, unwinding, store);
    }

    /// Takes a load that was read with all that belongs to it.
    pub(crate) fn push_load(&mut self, load: &dump::Load<'a>, store: &'a Store) {
        let head = LoadHead {
            file_offset: load.file_offset,
            time: load.time,
            pid: load.pid,
            tid: load.tid,
            address: load.address,
            // The reader gives no larger ones.
            size: u32::try_from(load.size).unwrap_or(u32::MAX),
        };
        self.add(&head, load.lines, load.unwinding, store);
    }

    #[inline]
    fn add(
        &mut self,
        head: &LoadHead,
        lines: Option<DebugInfo<'a>>,
        unwinding: Option<Unwinding<'a>>,
        store: &'a Store,
    ) {
        let number = self.next_number();
        if let Some(lines) = lines {
            self.lines.push((number, lines));
        }
        if unwinding.is_some() || !self.frames.is_empty() {
            self.add_frames(number, unwinding, store);
        }
        while head.file_offset >> 32 > self.beyond.len() as u64 {
            self.beyond.push(number);
        }
        self.loads.raw.push(Load {
            start: head.address,
            time: Timestamp(head.time),
            size: head.size,
            at: head.file_offset as u32,
        });
    }

    fn add_frames(&mut self, number: LoadId, unwinding: Option<Unwinding<'a>>, store: &'a Store) {
        let frames = match unwinding {
            None => Frames::Nothing,
            Some(unwinding) if unwinding.is_empty() => Frames::Pointers,
            Some(unwinding) => Frames::Described(self.unwindings.push(readable(unwinding, store))),
        };
        let last = self
            .frames
            .last()
            .map_or(Frames::Nothing, |&(_, last)| last);
        if frames != last {
            self.frames.push((number, frames));
        }
    }

    /// All were taken; `found_once` if none was moved.
    /// QEMU tells of a block as far as guest instructions go; what its instructions jump to on their slow ways stands
    /// behind, up to the next block.
    pub(super) fn fill_gaps(&mut self) {
        let loads = self.loads.raw.as_mut_slice();
        for at in 1..loads.len() {
            let next = loads[at].start;
            loads[at - 1].size = filled(loads[at - 1].start, loads[at - 1].size, next);
        }
    }

    pub(super) fn end(&mut self, found_once: bool) {
        self.loads.shrink_to_fit();
        if found_once {
            self.places = LoadMap::of(&self.loads);
        }
    }

    /// The number of the load that is taken next.
    pub(super) fn next_number(&self) -> LoadId {
        LoadId::at(self.loads.len())
    }

    fn load(&self, number: LoadId) -> &Load {
        &self.loads[number]
    }

    fn text(&self, number: LoadId) -> Option<LoadText<'a>> {
        let load = self.load(number);
        let beyond = self.beyond.partition_point(|&first| first <= number);
        let at = (beyond as u64) << 32 | u64::from(load.at);
        LoadText::at(self.bytes, self.order, at, load.size)
    }

    pub(super) fn name(&self, number: LoadId) -> &'a [u8] {
        match self.renamed.get(&number) {
            Some(name) => name,
            None => self.text(number).map_or(&[], |text| text.name()),
        }
    }

    /// Gives a load another name.
    pub(super) fn rename(&mut self, number: LoadId, name: &'a [u8]) {
        self.renamed.insert(number, name);
    }

    pub(super) fn bytes(&self, number: LoadId) -> &'a [u8] {
        self.text(number).map_or(&[], |text| text.code())
    }

    /// The loads that come more than `pause` nanoseconds after the one before, in file order.
    pub(super) fn loads_behind_pauses(&self, pause: u64) -> Vec<LoadId> {
        let pairs = self.loads.iter().zip(self.loads.iter_enumerated().skip(1));
        let late = pairs.filter(|(before, (_, load))| load.time.0.abs_diff(before.time.0) > pause);
        late.map(|(_, (number, _))| number).collect()
    }

    /// Its `code_index`.
    pub(super) fn index(&self, number: LoadId) -> Option<u64> {
        self.text(number)?.index()
    }

    fn lines(&self, number: LoadId) -> Option<DebugInfo<'a>> {
        let found = self.lines.binary_search_by_key(&number, |&(of, _)| of);
        Some(self.lines[found.ok()?].1)
    }

    fn frames(&self, number: LoadId) -> Frames {
        let next = self.frames.partition_point(|&(from, _)| from <= number);
        let last = next.checked_sub(1);
        last.map_or(Frames::Nothing, |at| self.frames[at].1)
    }

    fn unwinding(&self, number: LoadId) -> Option<JitUnwinding<'a>> {
        let record = match self.frames(number) {
            Frames::Nothing => return None,
            Frames::Pointers => return Some(JitUnwinding::FramePointer),
            Frames::Described(record) => self.unwindings[record],
        };
        let load = self.load(number);
        let found = record.resolve(load.start, load.size.into())?;
        Some(JitUnwinding::EhFrame {
            eh_frame: found.eh_frame,
            base: found.base,
        })
    }
}

/// With a table that strict readers read too.
fn readable<'a>(unwinding: Unwinding<'a>, store: &'a Store) -> Unwinding<'a> {
    match unwinding.readable_eh_frame() {
        std::borrow::Cow::Borrowed(_) => unwinding,
        std::borrow::Cow::Owned(fixed) => unwinding.with_eh_frame(store.keep(fixed)),
    }
}

impl<'a> CodeList<'a> {
    /// The number behind the last.
    fn next_number(&self) -> LoadId {
        match self {
            Self::Dump(dump) => dump.next_number(),
            Self::PerfMap(map) => LoadId::at(map.entries.len()),
        }
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = JitCode<'_, 'a>> {
        (0..self.next_number().0).map(|number| self.code(LoadId(number)))
    }

    const fn code(&self, number: LoadId) -> JitCode<'_, 'a> {
        JitCode { list: self, number }
    }
}

/// The code of all dumps and perf maps.
#[derive(Debug, Default)]
pub(super) struct Codes<'a> {
    lists: IndexVec<JitObjectId, CodeList<'a>>,
    /// The first code of each list.
    first: IndexVec<JitObjectId, JitCodeId>,
    /// Behind the last of all.
    next: JitCodeId,
}

impl<'a> Codes<'a> {
    pub(super) fn push(&mut self, list: CodeList<'a>) {
        self.first.push(self.next);
        self.next = list.next_number().code(self.next);
        self.lists.push(list);
    }

    pub(super) const fn count(&self) -> u32 {
        self.next.0
    }

    pub(super) fn code(&self, id: JitCodeId) -> JitCode<'_, 'a> {
        let list = match self.lists.len() {
            1 => 0,
            _ => self.first.raw.partition_point(|&first| first <= id) - 1,
        };
        let list = JitObjectId::from_usize(list);
        self.lists[list].code(LoadId::of(id, self.first[list]))
    }

    /// A list, and its first code.
    pub(super) fn list(&self, object: JitObjectId) -> Option<(&CodeList<'a>, JitCodeId)> {
        Some((self.lists.get(object)?, self.first[object]))
    }

    /// The loads of a dump, and the first of them.
    pub(super) fn loads(&self, object: JitObjectId) -> Option<(&DumpCodes<'a>, JitCodeId)> {
        match self.list(object)? {
            (CodeList::Dump(dump), first) => Some((dump, first)),
            (CodeList::PerfMap(_), _) => None,
        }
    }
}

/// The loads of a dump that a test made, generated by `producer` or by whom they tell.
#[cfg(test)]
pub(crate) fn codes_of<'a>(
    bytes: &'a [u8],
    producer: Option<Producer>,
    store: &'a Store,
) -> CodeList<'a> {
    let mut reader = Reader::new(bytes).expect("is a dump");
    let mut codes = DumpCodes::new(bytes, reader.order());
    while let Some((_, content)) = reader.step() {
        if let dump::Content::Load(load) = content {
            codes.push_load(&load, store);
        }
    }
    codes.producer = producer.unwrap_or_else(|| reader.producer());
    CodeList::Dump(codes)
}

/// The code of a perf map whose runtime keeps frame pointers.
#[cfg(test)]
pub(crate) fn map_with_frames_of(bytes: &[u8]) -> CodeList<'_> {
    let map = crate::jitdump::perfmap::parse(bytes);
    CodeList::PerfMap(MapCodes {
        keeps_frames: true,
        ..MapCodes::new(JitObjectId(0), map)
    })
}

/// The entries of a perf map that a test made.
#[cfg(test)]
pub(crate) fn map_of(bytes: &[u8]) -> CodeList<'_> {
    let map = crate::jitdump::perfmap::parse(bytes);
    CodeList::PerfMap(MapCodes::new(JitObjectId(0), map))
}

#[cfg(test)]
mod tests {
    use super::filled;
    use crate::address::Avma;

    #[test]
    fn blocks_reach_to_the_next_where_that_is_near() {
        let size = |next| filled(Avma(0x1000), 0x40, Avma(next));
        assert_eq!(size(0x1100), 0x100);
        assert_eq!(size(0x1020), 0x40, "the next one lies inside");
        assert_eq!(size(0x0fff), 0x40, "the buffer was used up");
        assert_eq!(size(0x9000), 0x40, "another thread's part of it");
        assert_eq!(size(0x2_0000_1000), 0x40);
    }
}
