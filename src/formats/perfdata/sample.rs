//! One SAMPLE record in full, without copying.
//!
//! In: the bytes of the record and the attribute of its event. Out: a [`Sample`] that borrows them. Called by
//! the parallel sample pass; allocates nothing. Field order: `PERF_RECORD_SAMPLE` in
//! `include/uapi/linux/perf_event.h` and, for the last five fields, `perf_output_sample()` in the
//! kernel, which the header's comment does not mention completely.

use crate::address::{Avma, Timestamp};

use super::attr::{Attr, read_format, sample_type as st};
use super::branch::BranchStack;
use super::bytes::{Cursor, u16_at, u32_at, u64_at};
use super::memory::{Cost, DataSource};
use super::{CpuMode, Event};

/// Why a sample could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The bytes are not a SAMPLE record.
    #[error("not a sample record")]
    NotASample,
    /// A field reaches behind the end of the record.
    #[error("the sample record is too short for its {0}")]
    TooShort(&'static str),
}

/// Everything a sample may hold. Fields that the event did not ask for are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'b> {
    /// Mode of the processor.
    pub cpumode: CpuMode,
    /// Instruction pointer.
    pub ip: Option<Avma>,
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: Option<u32>,
    /// When.
    pub time: Option<Timestamp>,
    /// Data address, or what the event defines it to be.
    pub addr: Option<u64>,
    /// Id of the counter (IDENTIFIER or ID).
    pub id: Option<u64>,
    /// Id of the stream.
    pub stream_id: Option<u64>,
    /// Processor.
    pub cpu: Option<u32>,
    /// Weight in event units, as the record has it. (See [`super::SampleHead::period`] for perf's rules.)
    pub period: Option<u64>,
    /// Counter values.
    pub read: Option<ReadValues<'b>>,
    /// The kernel's callchain, markers included.
    pub callchain: Option<Callchain<'b>>,
    /// Payload of tracepoints and the like.
    pub raw: Option<&'b [u8]>,
    /// Last branches.
    pub branch_stack: Option<BranchStack<'b>>,
    /// User registers.
    pub user_regs: Option<Registers<'b>>,
    /// Copy of the user stack from the stack pointer up; only what was really copied.
    pub user_stack: Option<&'b [u8]>,
    /// The kernel could copy less of the stack than was asked for: its memory ends behind what there is.
    pub user_stack_ends: bool,
    /// Cost of the access (WEIGHT or WEIGHT_STRUCT).
    pub weight: Option<Cost>,
    /// Where the data came from.
    pub data_src: Option<DataSource>,
    /// Transaction flags.
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<Registers<'b>>,
    /// Physical data address.
    pub phys_addr: Option<u64>,
    /// Cgroup id.
    pub cgroup: Option<u64>,
    /// Page size at the data address.
    pub data_page_size: Option<u64>,
    /// Page size at the instruction pointer.
    pub code_page_size: Option<u64>,
    /// AUX data.
    pub aux: Option<&'b [u8]>,
}

/// The callchain of a sample: raw words, leaf first, context markers (≥ -4095) included.
#[derive(Clone, Copy, Debug)]
pub struct Callchain<'b> {
    words: &'b [u8],
}

impl<'b> Callchain<'b> {
    /// The words in recorded order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'b> {
        self.words
            .as_chunks::<8>()
            .0
            .iter()
            .map(|w| u64::from_le_bytes(*w))
    }

    /// Number of words, markers included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.words.len() / 8
    }

    /// Whether there is no word.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// A set of registers: bit *n* of the mask says that register number *n* is there
/// (`arch/*/include/uapi/asm/perf_regs.h`).
#[derive(Clone, Copy, Debug)]
pub struct Registers<'b> {
    /// 1: 32-bit task, 2: 64-bit task (`enum perf_sample_regs_abi`; 0 has no registers and is `None`).
    pub abi: u64,
    /// Which registers are there.
    pub mask: u64,
    /// Their values in ascending number, eight bytes each.
    pub values: &'b [u8],
}

impl Registers<'_> {
    /// The value of the register with perf's number `number`.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(number)?;
        if self.mask & bit == 0 {
            return None;
        }
        let below = (self.mask & (bit - 1)).count_ones();
        u64_at(self.values, usize::try_from(below).ok()? * 8)
    }
}

/// Counter values of a sample (PERF_SAMPLE_READ).
#[derive(Clone, Copy, Debug)]
pub struct ReadValues<'b> {
    format: u64,
    /// One counter's words after the other.
    counters: &'b [u8],
}

impl ReadValues<'_> {
    /// (value, id) of each counter; the id is 0 when the format has none.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        // Not grouped: value, times, id, lost. Grouped: value, id, lost.
        let times = if self.format & read_format::GROUP != 0 {
            0
        } else {
            time_words(self.format)
        };
        let stride = counter_words(self.format) + times;
        self.counters.chunks_exact(stride * 8).map(move |c| {
            let id = if self.format & read_format::ID != 0 {
                u64_at(c, (1 + times) * 8)
            } else {
                None
            };
            (u64_at(c, 0).unwrap_or(0), id.unwrap_or(0))
        })
    }

    pub(super) fn parse<'b>(format: u64, cursor: &mut Cursor<'b>) -> Option<ReadValues<'b>> {
        let counters = if format & read_format::GROUP != 0 {
            let nr = cursor.u64()?;
            cursor.words(time_words(format) as u64)?;
            cursor.words(nr.checked_mul(counter_words(format) as u64)?)?
        } else {
            cursor.words((time_words(format) + counter_words(format)) as u64)?
        };
        Some(ReadValues { format, counters })
    }
}

const fn time_words(format: u64) -> usize {
    (format & (read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING)).count_ones()
        as usize
}

/// Words of a counter without times.
const fn counter_words(format: u64) -> usize {
    1 + (format & (read_format::ID | read_format::LOST)).count_ones() as usize
}

impl Event {
    /// Parses one whole sample record (with its 8-byte header) of this event.
    ///
    /// # Errors
    /// When the record is no sample or a field reaches behind its end.
    pub fn parse_sample<'b>(&self, record: &'b [u8]) -> Result<Sample<'b>, SampleError> {
        parse(&self.attr, record)
    }
}

/// PERF_RECORD_SAMPLE.
const TYPE_SAMPLE: u32 = 9;

pub(super) fn parse<'b>(attr: &Attr, record: &'b [u8]) -> Result<Sample<'b>, SampleError> {
    let misc = u16_at(record, 4).ok_or(SampleError::NotASample)?;
    if u32_at(record, 0) != Some(TYPE_SAMPLE) {
        return Err(SampleError::NotASample);
    }
    let mut sample = Sample {
        cpumode: CpuMode::from_misc(misc),
        ..Sample::default()
    };
    let mut c = Cursor::new(record.get(8..).unwrap_or_default());
    fixed(attr, &mut c, &mut sample).ok_or(SampleError::TooShort("fixed fields"))?;
    stacks(attr, &mut c, &mut sample)?;
    tail(attr, &mut c, &mut sample)?;
    Ok(sample)
}

/// The fields of constant size at the front.
fn fixed(attr: &Attr, c: &mut Cursor<'_>, s: &mut Sample<'_>) -> Option<()> {
    if attr.has(st::IDENTIFIER) {
        s.id = Some(c.u64()?);
    }
    if attr.has(st::IP) {
        s.ip = Some(Avma(c.u64()?));
    }
    if attr.has(st::TID) {
        (s.pid, s.tid) = (Some(c.u32()?), Some(c.u32()?));
    }
    if attr.has(st::TIME) {
        s.time = Some(Timestamp(c.u64()?));
    }
    if attr.has(st::ADDR) {
        s.addr = Some(c.u64()?);
    }
    if attr.has(st::ID) {
        s.id = Some(c.u64()?);
    }
    if attr.has(st::STREAM_ID) {
        s.stream_id = Some(c.u64()?);
    }
    if attr.has(st::CPU) {
        s.cpu = Some(c.u32()?);
        c.u32()?;
    }
    if attr.has(st::PERIOD) {
        s.period = Some(c.u64()?);
    }
    Some(())
}

/// Counter values, callchain, raw data, branches, registers, stack.
fn stacks<'b>(attr: &Attr, c: &mut Cursor<'b>, s: &mut Sample<'b>) -> Result<(), SampleError> {
    use SampleError::TooShort;
    if attr.has(st::READ) {
        s.read = Some(ReadValues::parse(attr.read_format, c).ok_or(TooShort("counter values"))?);
    }
    if attr.has(st::CALLCHAIN) {
        let words = c
            .u64()
            .and_then(|nr| c.words(nr))
            .ok_or(TooShort("callchain"))?;
        s.callchain = Some(Callchain { words });
    }
    if attr.has(st::RAW) {
        s.raw = Some(raw(c).ok_or(TooShort("raw data"))?);
    }
    if attr.has(st::BRANCH_STACK) {
        s.branch_stack = Some(BranchStack::parse(attr, c).ok_or(TooShort("branch stack"))?);
    }
    if attr.has(st::REGS_USER) {
        s.user_regs = registers(attr.sample_regs_user, c).ok_or(TooShort("user registers"))?;
    }
    if attr.has(st::STACK_USER) {
        let stack = user_stack(c).ok_or(TooShort("user stack"))?;
        s.user_stack = stack.map(|(copied, _)| copied);
        s.user_stack_ends = stack.is_some_and(|(_, ends)| ends);
    }
    Ok(())
}

/// What comes behind the stack.
fn tail<'b>(attr: &Attr, c: &mut Cursor<'b>, s: &mut Sample<'b>) -> Result<(), SampleError> {
    use SampleError::TooShort;
    let word = |cursor: &mut Cursor<'b>, bits, name| match attr.sample_type & bits {
        0 => Ok(None),
        _ => cursor.u64().map(Some).ok_or(TooShort(name)),
    };
    let weight = word(c, st::WEIGHT | st::WEIGHT_STRUCT, "weight")?;
    s.weight = weight.map(|cost| Cost::of(attr, cost));
    s.data_src = word(c, st::DATA_SRC, "data source")?.map(DataSource);
    s.transaction = word(c, st::TRANSACTION, "transaction")?;
    if attr.has(st::REGS_INTR) {
        s.intr_regs = registers(attr.sample_regs_intr, c).ok_or(TooShort("registers"))?;
    }
    s.phys_addr = word(c, st::PHYS_ADDR, "physical address")?;
    s.cgroup = word(c, st::CGROUP, "cgroup")?;
    s.data_page_size = word(c, st::DATA_PAGE_SIZE, "data page size")?;
    s.code_page_size = word(c, st::CODE_PAGE_SIZE, "code page size")?;
    if attr.has(st::AUX) {
        let data = c
            .u64()
            .and_then(|size| c.take(size))
            .ok_or(TooShort("AUX data"))?;
        s.aux = Some(data);
    }
    Ok(())
}

/// `u32` size and bytes, together padded to a multiple of eight by the kernel.
fn raw<'b>(c: &mut Cursor<'b>) -> Option<&'b [u8]> {
    let size = u64::from(c.u32()?);
    let data = c.take(size)?;
    c.take((8 - (size + 4) % 8) % 8)?;
    Some(data)
}

/// Outer `None`: cut. Inner `None`: the task had no user registers (a kernel thread).
fn registers<'b>(mask: u64, c: &mut Cursor<'b>) -> Option<Option<Registers<'b>>> {
    let abi = c.u64()?;
    if abi == 0 {
        return Some(None);
    }
    let values = c.words(u64::from(mask.count_ones()))?;
    Some(Some(Registers { abi, mask, values }))
}

/// The kernel reserves `size` bytes and says behind them how many it could copy.
fn user_stack<'b>(c: &mut Cursor<'b>) -> Option<Option<(&'b [u8], bool)>> {
    let size = c.u64()?;
    if size == 0 {
        return Some(None);
    }
    let data = c.take(size)?;
    let copied = usize::try_from(c.u64()?)
        .unwrap_or(usize::MAX)
        .min(data.len());
    Some(data.get(..copied).map(|front| (front, copied < data.len())))
}
