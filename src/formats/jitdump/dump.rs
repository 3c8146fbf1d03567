//! One jitdump file: bytes in, code loads and moves out, in file order and without copying.
//!
//! [`Reader`] is bounded: it allocates only what waits for its load (debug information,
//! which may come long before). Format: `tools/perf/Documentation/jitdump-specification.txt`,
//! `util/jitdump.h`; the deviations handled here are those that runtimes were seen to write.

use rustc_hash::FxHashMap;

use super::bytes::{ByteOrder, until_nul};
use super::debug_info::{CodeOfLines, DebugInfo};
use super::unwinding::Unwinding;
use crate::address::Avma;
use crate::runtimes::{Lapse, Producer, Votes};

const MAGIC: u32 = 0x4A69_5444;
const HEADER_SIZE: usize = 40;
const PREFIX_SIZE: usize = 16;
/// Fixed part of a load; the name follows.
const LOAD_SIZE: usize = 56;
const MOVE_SIZE: usize = 64;
/// perf reads code sizes as signed 32-bit numbers; more is damage.
const MAX_CODE_SIZE: u64 = 1 << 31;
/// No known writer has a header beyond 80 bytes.
const MAX_HEADER_SIZE: usize = 4096;

/// Why a file is not a jitdump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// Nothing in it.
    #[error("empty file")]
    Empty,
    /// Neither a header nor records.
    #[error("not a jitdump: starts with {magic:#010x}, expected {MAGIC:#010x}")]
    NotADump {
        /// The first four bytes, little endian.
        magic: u32,
    },
}

/// The header of a dump. Only hints: several runtimes write nonsense into most fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Format version; 1.
    pub version: u32,
    /// The size it claims to have. Mono writes 8; records start at 40 even so.
    pub size: u32,
    /// ELF machine; 0 for CPython 3.13.0.
    pub elf_machine: u32,
    /// Padding; `0xDEADBEEF` for V8, garbage for CPython 3.13.0.
    pub pad1: u32,
    /// Process id of the writer, in its own pid namespace.
    pub pid: u32,
    /// When the file was begun: on the clock of the records, or wall-clock microseconds (V8, CPython).
    pub timestamp: u64,
    /// All flags; bit 0 is the only one defined.
    pub flags: u64,
    /// True if timestamps are raw TSC values (flag bit 0).
    pub arch_timestamps: bool,
    /// True if the writer was big endian.
    pub big_endian: bool,
    /// True if there is no header at all; every other field is then a guess.
    pub missing: bool,
}

/// `JIT_CODE_LOAD`: a piece of code came into being.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load<'a> {
    /// Offset of the record in the file: its identity, as `index` may repeat.
    pub file_offset: u64,
    /// Raw timestamp.
    pub time: u64,
    /// Process id as the writer sees it.
    pub pid: u32,
    /// Thread id; nonsense from BEAM.
    pub tid: u32,
    /// Address at which the code runs.
    pub address: Avma,
    /// `vma` as it stands in the record; LLVM leaves it 0.
    pub vma: Avma,
    /// Number of bytes.
    pub size: u64,
    /// `code_index`: counts up, unless there are two writers.
    pub index: u64,
    /// Arbitrary bytes.
    pub name: &'a [u8],
    /// Layout of name and code in the record.
    pub form: LoadForm,
    /// Machine code; shorter than `size` where the file was cut or the runtime kept it back.
    pub code: &'a [u8],
    /// Source lines, decoded on demand.
    pub lines: Option<DebugInfo<'a>>,
    /// Unwinding record, decoded on demand.
    pub unwinding: Option<Unwinding<'a>>,
}

impl<'a> Load<'a> {
    /// Code and producer, by which the lines of the load are read.
    #[must_use]
    pub const fn of_lines(&self, producer: Producer) -> CodeOfLines<'a> {
        CodeOfLines {
            address: self.address,
            size: self.size,
            name: self.name,
            producer,
        }
    }
}

/// The fixed part of a load that is whole; [`LoadText`] has the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoadHead {
    /// As [`Load::file_offset`].
    pub(crate) file_offset: u64,
    /// Raw timestamp.
    pub(crate) time: u64,
    /// As [`Load::pid`].
    pub(crate) pid: u32,
    /// As [`Load::tid`].
    pub(crate) tid: u32,
    /// As [`Load::address`].
    pub(crate) address: Avma,
    /// As [`Load::size`].
    pub(crate) size: u32,
}

/// Layout of name and code in the record of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LoadForm {
    /// The code follows the name's NUL.
    #[default]
    Close,
    /// Bytes lie between them. perf takes the record's end for the code, others what follows the name.
    Apart,
    /// The name has no NUL.
    Unterminated,
    /// The record is too short for the size that it gives the code.
    Short,
}

/// `JIT_CODE_MOVE`: code went to another address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// Offset of the record in the file.
    pub file_offset: u64,
    /// Raw timestamp.
    pub time: u64,
    /// Process id as the writer sees it.
    pub pid: u32,
    /// Thread id as the writer sees it.
    pub tid: u32,
    /// Old address.
    pub from: Avma,
    /// New address.
    pub to: Avma,
    /// Number of bytes.
    pub size: u64,
    /// `code_index` of its load.
    pub index: u64,
}

/// Offset and prefix of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHead {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Its kind.
    pub id: u32,
    /// Raw timestamp.
    pub time: u64,
    /// The size it claims, prefix included.
    pub size: u64,
    /// Number of those bytes that the file has.
    pub present: u64,
}

/// Content of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// A header where a record should be.
    Header(Header),
    /// `JIT_CODE_LOAD`
    Load(Load<'a>),
    /// `JIT_CODE_MOVE`
    Move(Move),
    /// `JIT_CODE_DEBUG_INFO`; also found in [`Load::lines`] of the load it belongs to.
    DebugInfo(DebugInfo<'a>),
    /// `JIT_CODE_CLOSE`
    Close,
    /// `JIT_CODE_UNWINDING_INFO`; also found in [`Load::unwinding`] of the load it belongs to.
    Unwinding(Unwinding<'a>),
    /// A kind that the format does not have.
    Unknown,
    /// A known kind that is cut, too short or claims impossible sizes.
    Unusable,
}

/// Place and reason of an end before the end of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Offset of the damaged record.
    pub offset: u64,
    /// Bytes from there to the end of the file.
    pub rest: u64,
    /// Its fault.
    pub reason: CutReason,
}

/// Fault of a record that ends the reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutReason {
    /// The file ends inside it: the writer was killed or is still writing.
    EndOfFile,
    /// It claims to be smaller than its own prefix.
    TooSmall,
}

/// Numbers of records.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// `JIT_CODE_LOAD` records that could be used.
    pub loads: u64,
    /// `JIT_CODE_MOVE` records that could be used.
    pub moves: u64,
    /// `JIT_CODE_DEBUG_INFO` records.
    pub debug_infos: u64,
    /// `JIT_CODE_UNWINDING_INFO` records.
    pub unwindings: u64,
    /// `JIT_CODE_CLOSE` records.
    pub closes: u64,
    /// Records of an unknown kind.
    pub unknown: u64,
    /// Records of a known kind that are too short or claim impossible sizes.
    pub malformed: u64,
}

/// Reads the records of one dump in file order.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    at: usize,
    header: Header,
    counts: Counts,
    cut: Option<Cut>,
    /// Debug information whose load has not come yet, by code address.
    lines: FxHashMap<u64, DebugInfo<'a>>,
    unwinding: PendingUnwinding<'a>,
    /// LLVM's listener leaves `vma` empty.
    only_code_addr: bool,
    votes: Votes,
}

/// The unwinding record that the next load, or several, may take.
#[derive(Debug, Default)]
struct PendingUnwinding<'a> {
    record: Option<Unwinding<'a>>,
    taken: bool,
    /// Ranges that the frame descriptions of `record` cover, once somebody asked.
    covered: Option<(Avma, Vec<(u64, u64)>)>,
}

impl<'a> Reader<'a> {
    /// Checks that the bytes are a jitdump and goes to its first record.
    ///
    /// # Errors
    /// When they are not.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DumpError> {
        let (header, order, at) = find_records(bytes)?;
        Ok(Self {
            bytes,
            order,
            at,
            header,
            counts: Counts::default(),
            cut: None,
            lines: FxHashMap::default(),
            unwinding: PendingUnwinding::default(),
            only_code_addr: false,
            votes: Votes::default(),
        })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Offset of the next record in the file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Numbers of records that were read so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Place and reason of an early end; known once there is no next record.
    #[must_use]
    pub const fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Who wrote the records read so far: what the whole file shows first, then what most names look like.
    #[must_use]
    pub fn producer(&self) -> Producer {
        let named = self.votes.producer();
        let named = Some(named).filter(|producer| producer.is_known());
        let lapses = |lapse| match lapse {
            Lapse::NoVma => self.only_code_addr,
            Lapse::HeaderSize => self.header.size == 8 && !self.header.missing,
            _ => false,
        };
        Producer::of_padding(self.header.pad1)
            .or(named)
            .or_else(|| Producer::of_lapses(lapses))
            .unwrap_or_default()
    }

    /// Number of names that look like this runtime's, and how many were looked at.
    #[must_use]
    pub fn names_like(&self, producer: Producer) -> (u64, u64) {
        (self.votes.count(producer), self.votes.asked())
    }

    /// The next record, of whatever kind.
    pub fn step(&mut self) -> Option<(RecordHead, Content<'a>)> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        if let Some(size) = self.header_within(rest) {
            let head = RecordHead {
                offset: self.at as u64,
                id: 0,
                time: 0,
                size: size as u64,
                present: size.min(rest.len()) as u64,
            };
            self.at = self.at.saturating_add(size);
            return Some((head, Content::Header(read_header(self.order, rest))));
        }
        let record = self.next_record(rest)?;
        let head = RecordHead {
            offset: record.at as u64,
            id: record.id,
            time: record.time,
            size: record.size as u64,
            present: record.bytes.len() as u64,
        };
        Some((head, self.content(&record)))
    }

    /// The next record if it is a load like most: all there, with room for the code that it claims. Its name is not
    /// read, and what comes with it is to be [taken](Self::take_lines). Otherwise [`step`](Self::step) has to be asked.
    #[inline]
    pub(crate) fn whole_load(&mut self) -> Option<LoadHead> {
        let rest = self.bytes.get(self.at..)?;
        let head: &[u8; LOAD_SIZE] = rest.first_chunk()?;
        let (id, record_size, time) = prefix(self.order, head)?;
        let word = |at| self.order.u64(head, at);
        let (vma, code_addr, size) = (word(24)?, word(32)?, word(40)?);
        if id != 0 || size > MAX_CODE_SIZE {
            return None;
        }
        let size = u32::try_from(size).ok()?;
        let record = rest.get(..record_size)?;
        let before_code = record.len().checked_sub(size as usize)?;
        let name = record.get(LOAD_SIZE..before_code)?;
        let load = LoadHead {
            file_offset: self.at as u64,
            time,
            pid: self.order.u32(head, 16)?,
            tid: self.order.u32(head, 20)?,
            address: address(vma, code_addr),
            size,
        };
        self.at += record_size;
        self.counts.loads += 1;
        self.only_code_addr |= vma == 0 && code_addr != 0;
        (self.votes).add_with(name, |name| until_nul(name).map_or(name, |(name, _)| name));
        Some(load)
    }

    /// The lines of the load that was read last, if it is at `address`.
    #[inline]
    pub(crate) fn take_lines(&mut self, address: Avma) -> Option<DebugInfo<'a>> {
        if self.lines.is_empty() {
            return None;
        }
        self.lines.remove(&address.0)
    }

    /// The unwinding record of the load that was read last, of `size` bytes at `address`.
    #[inline]
    pub(crate) fn take_unwinding(&mut self, address: Avma, size: u64) -> Option<Unwinding<'a>> {
        self.unwinding.record.as_ref()?;
        self.unwinding.take(address, size)
    }

    /// How the records' numbers are to be read.
    pub(crate) const fn order(&self) -> ByteOrder {
        self.order
    }

    /// The record at the start of `rest`: id, timestamp, whole bytes as far as they are there, and its
    /// claimed size.
    fn next_record(&mut self, rest: &'a [u8]) -> Option<Record<'a>> {
        let Some((id, size, time)) = prefix(self.order, rest) else {
            return self.end_early(rest, CutReason::EndOfFile);
        };
        if size < PREFIX_SIZE {
            return self.end_early(rest, CutReason::TooSmall);
        }
        let record = Record {
            id,
            time,
            size,
            at: self.at,
            bytes: &rest[..size.min(rest.len())],
        };
        self.at = self.at.saturating_add(size);
        if size > rest.len() {
            // Even the last record may still be a load with its whole name.
            self.end_early(rest, CutReason::EndOfFile);
        }
        Some(record)
    }

    /// The size of a file header that stands where a record should: a second writer opened the file.
    fn header_within(&self, rest: &[u8]) -> Option<usize> {
        (self.order.u32(rest, 0)? == MAGIC).then(|| header_size(self.order, rest))
    }

    fn end_early(&mut self, rest: &[u8], reason: CutReason) -> Option<Record<'a>> {
        let offset = (self.bytes.len() - rest.len()) as u64;
        self.cut = Some(Cut {
            offset,
            rest: rest.len() as u64,
            reason,
        });
        self.at = self.bytes.len();
        None
    }

    fn content(&mut self, record: &Record<'a>) -> Content<'a> {
        let content = match record.id {
            0 => self.load(record).map(Content::Load),
            1 => {
                let moved = self.moved(record);
                self.counts.moves += u64::from(moved.is_some());
                moved.map(Content::Move)
            }
            2 => self.keep_debug_info(record).map(Content::DebugInfo),
            3 => {
                // "No more records", which is not "the code is gone"; and two writers may share a file.
                self.counts.closes += 1;
                Some(Content::Close)
            }
            4 => self.keep_unwinding(record).map(Content::Unwinding),
            _ => {
                self.counts.unknown += 1;
                Some(Content::Unknown)
            }
        };
        self.count_use(content.is_some(), record);
        content.unwrap_or(Content::Unusable)
    }

    /// A record that is cut is told by [`Cut`]; one that is whole and senseless is malformed.
    fn count_use(&mut self, used: bool, record: &Record<'_>) {
        self.counts.malformed += u64::from(!used && !record.is_cut());
    }

    fn load(&mut self, record: &Record<'a>) -> Option<Load<'a>> {
        let word = |at| self.order.u64(record.bytes, at);
        let (vma, code_addr, size) = (word(24)?, word(32)?, word(40)?);
        let (pid, tid) = (
            self.order.u32(record.bytes, 16)?,
            self.order.u32(record.bytes, 20)?,
        );
        let index = word(48)?;
        let (name, code, form) = name_and_code(record, size)?;
        let address = address(vma, code_addr);
        self.counts.loads += 1;
        self.only_code_addr |= vma == 0 && code_addr != 0;
        self.votes.add(name);
        Some(Load {
            file_offset: record.at as u64,
            time: record.time,
            pid,
            tid,
            address,
            vma: Avma(vma),
            size,
            index,
            name,
            form,
            code,
            lines: self.take_lines(address),
            unwinding: self.take_unwinding(address, size),
        })
    }

    fn moved(&self, record: &Record<'_>) -> Option<Move> {
        let bytes = record.bytes.get(..MOVE_SIZE)?;
        let word = |at| self.order.u64(bytes, at);
        let size = word(48)?;
        (size <= MAX_CODE_SIZE).then_some(())?;
        Some(Move {
            file_offset: record.at as u64,
            time: record.time,
            pid: self.order.u32(bytes, 16)?,
            tid: self.order.u32(bytes, 20)?,
            from: Avma(word(32)?),
            to: Avma(word(40)?),
            size,
            index: word(56)?,
        })
    }

    fn keep_debug_info(&mut self, record: &Record<'a>) -> Option<DebugInfo<'a>> {
        self.counts.debug_infos += 1;
        let info = DebugInfo::new(record.bytes, self.order).filter(|_| !record.is_cut())?;
        self.lines.insert(info.code_address().0, info);
        Some(info)
    }

    fn keep_unwinding(&mut self, record: &Record<'a>) -> Option<Unwinding<'a>> {
        self.counts.unwindings += 1;
        let unwinding = Unwinding::new(record.bytes, self.order).filter(|_| !record.is_cut());
        self.unwinding = PendingUnwinding {
            record: unwinding,
            taken: false,
            covered: None,
        };
        unwinding
    }
}

impl<'a> PendingUnwinding<'a> {
    /// The record for the load of `size` bytes at `address`: the load right behind it takes it as it
    /// is, later ones only if its frame descriptions cover them (LLVM's ORC plugin writes one record
    /// for a whole object).
    fn take(&mut self, address: Avma, size: u64) -> Option<Unwinding<'a>> {
        let record = self.record.as_mut()?;
        if !self.taken {
            self.taken = true;
            record.anchor(address, size);
            let record = *record;
            if record.is_empty() {
                self.record = None;
            }
            return Some(record);
        }
        let (base, covered) = self.covered.get_or_insert_with(|| record.covered());
        let next = covered.partition_point(|&(start, _)| start <= address.0);
        let (start, end) = *covered.get(next.checked_sub(1)?)?;
        (start <= address.0 && address.0 < end).then(|| record.with_base(*base))
    }
}

/// One record as it lies in the file.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    id: u32,
    time: u64,
    /// Claimed size; `bytes` is shorter where the file ends early.
    size: usize,
    at: usize,
    bytes: &'a [u8],
}

impl Record<'_> {
    const fn is_cut(&self) -> bool {
        self.bytes.len() < self.size
    }
}

/// Id, size and timestamp of the record at the start of `bytes`.
fn prefix(order: ByteOrder, bytes: &[u8]) -> Option<(u32, usize, u64)> {
    let size = usize::try_from(order.u32(bytes, 4)?).ok()?;
    Some((order.u32(bytes, 0)?, size, order.u64(bytes, 8)?))
}

/// The rest of a load that was read before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadText<'a> {
    record: Record<'a>,
    size: u32,
    order: ByteOrder,
}

impl<'a> LoadText<'a> {
    /// The load of `size` bytes whose record begins at `at`.
    pub(crate) fn at(bytes: &'a [u8], order: ByteOrder, at: u64, size: u32) -> Option<Self> {
        let at = usize::try_from(at).ok()?;
        let rest = bytes.get(at..)?;
        let (id, record_size, time) = prefix(order, rest)?;
        let record = Record {
            id,
            time,
            size: record_size,
            at,
            bytes: &rest[..record_size.min(rest.len())],
        };
        Some(Self {
            record,
            size,
            order,
        })
    }

    /// As [`Load::name`].
    pub(crate) fn name(&self) -> &'a [u8] {
        let text = name_and_code(&self.record, self.size.into());
        text.map_or(&[], |(name, _, _)| name)
    }

    /// As [`Load::index`].
    pub(crate) fn index(&self) -> Option<u64> {
        self.order.u64(self.record.bytes, 48)
    }

    /// As [`Load::code`].
    pub(crate) fn code(&self) -> &'a [u8] {
        // Where the record has room for the code, that needs not be looked for behind the name.
        let before_code = self.record.size.checked_sub(self.size as usize);
        match before_code.filter(|&at| at >= LOAD_SIZE) {
            Some(at) => self.record.bytes.get(at..).unwrap_or_default(),
            None => {
                let text = name_and_code(&self.record, self.size.into());
                text.map_or(&[], |(_, code, _)| code)
            }
        }
    }
}

/// `vma` is what the format names code by, but LLVM leaves it empty and perf ignores it.
const fn address(vma: u64, code_addr: u64) -> Avma {
    Avma(if code_addr == 0 { vma } else { code_addr })
}

/// Name and code of a load. The code is the end of the record, as perf reads it, so that padding
/// behind the name does no harm; where the record is too short for the claimed code (HotSpot has
/// none for some stubs), it is what follows the name.
fn name_and_code<'a>(record: &Record<'a>, size: u64) -> Option<(&'a [u8], &'a [u8], LoadForm)> {
    if size > MAX_CODE_SIZE {
        return None;
    }
    let size = usize::try_from(size).ok()?;
    let body = record.bytes.get(LOAD_SIZE..)?;
    let claimed_body = record.size.checked_sub(LOAD_SIZE)?;
    let Some(code_at) = claimed_body.checked_sub(size) else {
        let (name, behind) = until_nul(body)?;
        return Some((name, &body[behind..], LoadForm::Short));
    };
    let before_code = &body[..code_at.min(body.len())];
    let code = body.get(code_at..).unwrap_or_default();
    match until_nul(before_code) {
        Some((name, behind)) if behind == code_at => Some((name, code, LoadForm::Close)),
        Some((name, _)) => Some((name, code, LoadForm::Apart)),
        // Not terminated: fine if the code is there to end it.
        None if !record.is_cut() || code_at < body.len() => {
            Some((before_code, code, LoadForm::Unterminated))
        }
        None => None,
    }
}

/// Where the records of a file begin.
fn find_records(bytes: &[u8]) -> Result<(Header, ByteOrder, usize), DumpError> {
    if bytes.is_empty() {
        return Err(DumpError::Empty);
    }
    for order in [ByteOrder::Little, ByteOrder::Big] {
        if order.u32(bytes, 0) == Some(MAGIC) {
            return Ok((read_header(order, bytes), order, header_size(order, bytes)));
        }
    }
    // The header may have been overwritten or be missing: take records for what they are.
    for at in [0, HEADER_SIZE] {
        if let Some(pid) = bytes.get(at..).and_then(first_load_pid) {
            let header = Header {
                missing: true,
                pid,
                ..Header::default()
            };
            return Ok((header, ByteOrder::Little, at));
        }
    }
    Err(DumpError::NotADump {
        magic: ByteOrder::Little.u32(bytes, 0).unwrap_or_default(),
    })
}

/// The pid of the first load, if these bytes are whole records up to it and to the one behind it.
fn first_load_pid(mut bytes: &[u8]) -> Option<u32> {
    let order = ByteOrder::Little;
    for _ in 0..64 {
        let (id, size, _) = prefix(order, bytes)?;
        let rest = bytes
            .get(size..)
            .filter(|_| id <= 4 && size >= PREFIX_SIZE)?;
        if id == 0 {
            let code_size = usize::try_from(order.u64(bytes, 40)?).ok()?;
            let fits = code_size.checked_add(LOAD_SIZE + 1)? <= size;
            let continues = rest.is_empty()
                || prefix(order, rest)
                    .is_some_and(|(kind, length, _)| kind <= 4 && length >= PREFIX_SIZE);
            return (fits && continues).then(|| order.u32(bytes, 16)).flatten();
        }
        bytes = rest;
    }
    None
}

fn read_header(order: ByteOrder, bytes: &[u8]) -> Header {
    let word = |at| order.u32(bytes, at).unwrap_or_default();
    Header {
        version: word(4),
        size: word(8),
        elf_machine: word(12),
        pad1: word(16),
        pid: word(20),
        timestamp: order.u64(bytes, 24).unwrap_or_default(),
        flags: order.u64(bytes, 32).unwrap_or_default(),
        arch_timestamps: order.u64(bytes, 32).unwrap_or_default() & 1 != 0,
        big_endian: order == ByteOrder::Big,
        missing: false,
    }
}

/// How long the header at the start of `bytes` really is: never less than 40, and not what it claims
/// if only 40 leads to a record.
fn header_size(order: ByteOrder, bytes: &[u8]) -> usize {
    let claimed = order
        .u32(bytes, 8)
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(0);
    let leads_to_record = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        prefix(order, rest).is_some_and(|(id, size, _)| id <= 4 && size >= PREFIX_SIZE)
    };
    let plausible = claimed > HEADER_SIZE && claimed <= MAX_HEADER_SIZE && claimed <= bytes.len();
    if plausible && (leads_to_record(claimed) || !leads_to_record(HEADER_SIZE)) {
        claimed
    } else {
        HEADER_SIZE
    }
}

#[cfg(test)]
#[path = "dump_tests.rs"]
mod tests;
