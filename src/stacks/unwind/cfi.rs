//! Finds the frame description entry (FDE) for an address of a file or of a JIT record.
//!
//! In: `.eh_frame` with its search table `.eh_frame_hdr` (LSB, "Exception Frames"), `.debug_frame`, or the bytes of
//! a jitdump unwinding record. Out: a [`FdeRef`], and what `gimli` makes of it. The search table is used where
//! it stands, without building anything; without a sane one the section is read through once.

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice,
    FrameDescriptionEntry, LittleEndian, UnwindContext, UnwindSection, UnwindTableRow, Vendor,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arch::Architecture;
use super::arm::exidx::ExceptionTables;
use super::discover::Functions;
use super::flow::Flows;
use super::rows::{RowRange, Rows};
use crate::address::{Avma, Svma};
use crate::dso::{DsoId, elf::ElfFile, go::GoTable};

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Fde<'a> = FrameDescriptionEntry<Slice<'a>>;
type Cie<'a> = CommonInformationEntry<Slice<'a>>;

/// The call frame information of all files met so far, shared by all threads. A thread locks it once
/// for each file.
#[derive(Default)]
pub struct CfiTables<'a> {
    files: Mutex<FxHashMap<DsoId, Arc<FileCfi<'a>>>>,
    /// Functions without such information.
    pub(super) flows: Flows,
}

impl<'a> CfiTables<'a> {
    /// No files yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets code that was made at run time, whose numbers are those of other code in other recordings; what is left is known of
    /// these files.
    pub(super) fn forget_code(&self) -> Vec<DsoId> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: Vec<DsoId> = files.keys().copied().collect();
        known.extend(self.flows.forget_code());
        known
    }

    /// The call frame information of a file.
    pub(super) fn file(
        &self,
        dso: DsoId,
        binary: Option<&ElfFile<'a>>,
        debug: Option<&ElfFile<'a>>,
    ) -> Arc<FileCfi<'a>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.entry(dso) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(new) => Arc::clone(new.insert(Arc::new(FileCfi::new(binary.or(debug))))),
        }
    }
}

/// One section of call frame information.
#[derive(Clone)]
pub(super) struct Table<'a> {
    kind: TableKind<'a>,
    bases: BaseAddresses,
    /// Bytes of large entries that may still be evaluated. Compilers write none that reach [`SMALL`] by much, and each is evaluated
    /// once or, for rules that are kept by nobody, for each frame; a file made to cost time has one of a megabyte.
    left: Arc<AtomicUsize>,
}

/// An entry and its CIE of this many bytes cost nothing of [`Table::left`].
const SMALL: usize = 1024;
/// [`Table::left`] of a file: a second or two.
const LARGE_OF_FILE: usize = 512 << 20;
/// [`Table::left`] of JIT code, of which there are many, in multiples of its size.
const LARGE_OF_JIT: usize = 64;

#[derive(Clone)]
enum TableKind<'a> {
    Eh(EhFrame<Slice<'a>>),
    Debug(DebugFrame<Slice<'a>>),
}

/// Runs `$body` with `$section` bound to the section of either kind.
macro_rules! with_section {
    ($table:expr, $section:ident => $body:expr) => {
        match &$table.kind {
            TableKind::Eh($section) => $body,
            TableKind::Debug($section) => $body,
        }
    };
}

/// An FDE: the table's number in its file, and the position in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct FdeRef {
    pub(super) table: u8,
    pub(super) offset: u32,
}

/// An FDE's code range and position, as found by reading a section through.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexEntry {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u32,
}

impl<'a> Table<'a> {
    fn eh_frame(data: &'a [u8], at: u64, address_size: u8) -> Self {
        let mut section = EhFrame::new(data, LittleEndian);
        section.set_address_size(address_size);
        section.set_vendor(Vendor::AArch64);
        Self {
            kind: TableKind::Eh(section),
            bases: BaseAddresses::default().set_eh_frame(at),
            left: Arc::new(AtomicUsize::new(LARGE_OF_FILE)),
        }
    }

    fn debug_frame(data: &'a [u8], address_size: u8) -> Self {
        let mut section = DebugFrame::new(data, LittleEndian);
        section.set_address_size(address_size);
        section.set_vendor(Vendor::AArch64);
        Self {
            kind: TableKind::Debug(section),
            bases: BaseAddresses::default(),
            left: Arc::new(AtomicUsize::new(LARGE_OF_FILE)),
        }
    }

    /// The records of a jitdump: an `.eh_frame` at `base`.
    pub(super) fn jit(eh_frame: &'a [u8], base: Avma) -> Self {
        let left = eh_frame.len().saturating_mul(LARGE_OF_JIT);
        Self {
            left: Arc::new(AtomicUsize::new(left)),
            ..Self::eh_frame(eh_frame, base.0, 8)
        }
    }

    fn fde(&self, offset: u32) -> Option<Fde<'a>> {
        let fde = with_section!(self, section => parse_fde(section, &self.bases, offset))?;
        let size = fde.entry_len().saturating_add(fde.cie().entry_len());
        (size <= SMALL || self.spend(size)).then_some(fde)
    }

    fn spend(&self, size: usize) -> bool {
        // Lost updates between threads only stretch the budget.
        let left = self.left.load(Ordering::Relaxed);
        self.left
            .store(left.saturating_sub(size), Ordering::Relaxed);
        left >= size
    }

    /// Converts all rows of an FDE.
    pub(super) fn convert<A: Architecture>(
        &self,
        offset: u32,
        context: &mut UnwindContext<usize>,
        rows: &mut Rows,
    ) -> Option<RowRange> {
        let fde = self.fde(offset)?;
        let (base, signal) = (fde.initial_address(), fde.is_signal_trampoline());
        let first = rows.begin();
        with_section!(self, section => {
            let mut table = fde.rows(section, &self.bases, context).ok()?;
            // A damaged instruction ends the rows; what was read before it holds.
            while let Ok(Some(row)) = table.next_row() {
                if !rows.push::<A>(first, base, row, signal) {
                    break;
                }
            }
        });
        Some(rows.finish(first, base, fde.end_address()))
    }

    /// Hands the row for an address to `use_row`, with what is needed to get at its expressions.
    pub(super) fn with_row<T>(
        &self,
        offset: u32,
        svma: u64,
        context: &mut UnwindContext<usize>,
        use_row: impl FnOnce(&UnwindTableRow<usize>, &RowSource<'_, 'a>) -> Option<T>,
    ) -> Option<T> {
        let fde = self.fde(offset)?;
        let source = RowSource {
            table: self,
            encoding: fde.cie().encoding(),
            signal: fde.is_signal_trampoline(),
        };
        with_section!(self, section => {
            let row = fde.unwind_info_for_address(section, &self.bases, context, svma).ok()?;
            use_row(row, &source)
        })
    }

    /// Reads the section through: all FDEs by address. Ends at the first damaged entry.
    pub(super) fn index(&self) -> Vec<IndexEntry> {
        let mut found = with_section!(self, section => index_section(section, &self.bases));
        found.sort_unstable_by_key(|e| (e.start, e.end, e.offset));
        found
    }
}

/// What belongs to a row besides the row.
pub(super) struct RowSource<'t, 'a> {
    table: &'t Table<'a>,
    pub(super) encoding: gimli::Encoding,
    pub(super) signal: bool,
}

impl<'a> RowSource<'_, 'a> {
    /// The bytes of an expression of the row.
    pub(super) fn expression(
        &self,
        expression: &gimli::UnwindExpression<usize>,
    ) -> Option<Slice<'a>> {
        with_section!(self.table, section => expression.get(section).ok().map(|e| e.0))
    }
}

fn parse_fde<'a, S>(section: &S, bases: &BaseAddresses, offset: u32) -> Option<Fde<'a>>
where
    S: UnwindSection<Slice<'a>>,
{
    let offset = S::Offset::from(usize::try_from(offset).ok()?);
    section
        .fde_from_offset(bases, offset, |section, bases, at| {
            section.cie_from_offset(bases, at)
        })
        .ok()
}

fn index_section<'a, S>(section: &S, bases: &BaseAddresses) -> Vec<IndexEntry>
where
    S: UnwindSection<Slice<'a>>,
    S::Offset: std::hash::Hash + Eq,
{
    let mut found = Vec::new();
    let mut cies: FxHashMap<S::Offset, Cie<'a>> = FxHashMap::default();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let parsed = partial.parse(|own_section, own_bases, at| match cies.entry(at) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(new) => Ok(new
                .insert(own_section.cie_from_offset(own_bases, at)?)
                .clone()),
        });
        let Ok(fde) = parsed else { continue };
        let (start, end) = (fde.initial_address(), fde.end_address());
        // Functions that the linker dropped keep their entry in .debug_frame, at address 0.
        if let (true, Ok(offset)) = (start != 0 && start < end, u32::try_from(fde.offset())) {
            found.push(IndexEntry { start, end, offset });
        }
    }
    found
}

/// The FDE that covers an address.
pub(super) fn lookup(index: &[IndexEntry], svma: u64) -> Option<u32> {
    let behind = index.partition_point(|e| e.start <= svma);
    let entry = index.get(behind.checked_sub(1)?)?;
    (svma < entry.end).then_some(entry.offset)
}

/// The binary search table of `.eh_frame_hdr`, used in place: pairs of 32-bit offsets from the
/// section's address (function start, FDE), sorted.
struct SearchTable<'a> {
    pairs: &'a [[u8; 8]],
    base: u64,
}

impl<'a> SearchTable<'a> {
    /// Version 1, table encoding `DW_EH_PE_datarel | DW_EH_PE_sdata4`, sorted: what every linker writes.
    /// Anything else counts as absent.
    fn parse(data: &'a [u8], base: u64, address_size: u8) -> Option<Self> {
        let &[1, eh_frame_encoding, count_encoding, 0x3b, ref rest @ ..] = data else {
            return None;
        };
        let rest = rest.get(encoded_size(eh_frame_encoding, address_size)?..)?;
        // udata4 or sdata4; DW_EH_PE_omit means no table.
        if !matches!(count_encoding, 0x03 | 0x0b) {
            return None;
        }
        let count = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        let pairs = rest.get(4..)?.as_chunks::<8>().0;
        let pairs = pairs.get(..count)?;
        let table = Self { pairs, base };
        (count > 0 && pairs.is_sorted_by_key(start_of)).then_some(table)
    }

    /// Addresses of the FDE that may cover an address, and of the function it says it is for.
    fn find(&self, svma: u64) -> Option<(u64, u64)> {
        let at = svma.wrapping_sub(self.base).cast_signed();
        let behind = self
            .pairs
            .partition_point(|pair| i64::from(start_of(pair)) <= at);
        let pair = &self.pairs[behind.checked_sub(1)?];
        let absolute = |offset: i32| self.base.wrapping_add_signed(i64::from(offset));
        Some((absolute(second_of(pair)), absolute(start_of(pair))))
    }
}

fn start_of(pair: &[u8; 8]) -> i32 {
    i32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]])
}

fn second_of(pair: &[u8; 8]) -> i32 {
    i32::from_le_bytes([pair[4], pair[5], pair[6], pair[7]])
}

/// Bytes of an address in a file.
fn address_size(image: &ElfFile<'_>) -> u8 {
    if image.is_64() { 8 } else { 4 }
}

/// Size of a pointer by its `DW_EH_PE_*` format, in a file with addresses of so many bytes.
const fn encoded_size(encoding: u8, address_size: u8) -> Option<usize> {
    match encoding & 0x0f {
        0x00 => Some(address_size as usize),
        0x04 | 0x0c => Some(8),
        0x02 | 0x0a => Some(2),
        0x03 | 0x0b => Some(4),
        _ => None,
    }
}

/// The call frame information of one file.
pub(super) struct FileCfi<'a> {
    /// `.eh_frame`, and what BOLT keeps of the original one.
    eh_frames: SmallVec<[EhSection<'a>; 1]>,
    search: Option<SearchTable<'a>>,
    scanned: OnceLock<Vec<(u8, Vec<IndexEntry>)>>,
    debug_frames: OnceLock<Vec<(Table<'a>, Vec<IndexEntry>)>>,
    /// Stated addresses of the sections of linkage stubs.
    stubs: SmallVec<[Range<u64>; 3]>,
    /// Functions that were found in the code, once somebody needed them.
    found: OnceLock<Option<Functions>>,
    /// What 32-bit ARM has in place of call frame information.
    pub(super) exidx: Option<ExceptionTables<'a>>,
    /// What a Go program knows of its functions.
    pub(super) go: Option<GoTable<'a>>,
}

struct EhSection<'a> {
    table: Table<'a>,
    range: Range<u64>,
}

/// Number of the first `.debug_frame` among a file's tables.
const FIRST_DEBUG: u8 = 0x80;

impl<'a> FileCfi<'a> {
    fn new(image: Option<&ElfFile<'a>>) -> Self {
        let mut this = Self {
            eh_frames: SmallVec::new(),
            search: None,
            scanned: OnceLock::new(),
            debug_frames: OnceLock::new(),
            stubs: SmallVec::new(),
            found: OnceLock::new(),
            exidx: image.and_then(ExceptionTables::of),
            go: image.and_then(GoTable::of),
        };
        let Some(image) = image else { return this };
        // BOLT rewrites code and .eh_frame, and leaves the entries of untouched code where they were.
        for name in [".eh_frame", ".bolt.org.eh_frame"] {
            if let Some(section) = image.section(name).filter(|s| !s.data.is_empty()) {
                let (table, start) = (
                    Table::eh_frame(section.data, section.svma.0, address_size(image)),
                    section.svma.0,
                );
                this.eh_frames.push(EhSection {
                    table,
                    range: start..start.saturating_add(section.data.len() as u64),
                });
            }
        }
        this.search = image
            .section(".eh_frame_hdr")
            .and_then(|hdr| SearchTable::parse(hdr.data, hdr.svma.0, address_size(image)));
        for name in [".plt", ".plt.sec", ".plt.got", ".iplt"] {
            if let Some(section) = image.section(name) {
                let start = section.svma.0;
                this.stubs
                    .push(start..start.saturating_add(section.data.len() as u64));
            }
        }
        this
    }

    /// The FDE for a stated address.
    pub(super) fn find(
        &self,
        svma: Svma,
        binary: Option<&ElfFile<'a>>,
        debug: Option<&ElfFile<'a>>,
    ) -> Option<FdeRef> {
        self.find_eh(svma.0)
            .or_else(|| self.find_debug(svma.0, binary, debug))
    }

    /// A table by the number that [`FileCfi::find`] gave.
    pub(super) fn table(&self, number: u8) -> Option<&Table<'a>> {
        match number.checked_sub(FIRST_DEBUG) {
            None => self.eh_frames.get(usize::from(number)).map(|s| &s.table),
            Some(debug) => self
                .debug_frames
                .get()?
                .get(usize::from(debug))
                .map(|(table, _)| table),
        }
    }

    /// The functions of a file that says nothing of them.
    pub(super) fn functions<A: Architecture>(&self, image: &ElfFile<'a>) -> Option<&Functions> {
        self.found.get_or_init(|| A::functions(image)).as_ref()
    }

    /// Whether an address lies among linkage stubs.
    pub(super) fn is_stub(&self, svma: Svma) -> bool {
        self.stubs.iter().any(|range| range.contains(&svma.0))
    }

    fn find_eh(&self, svma: u64) -> Option<FdeRef> {
        if self.eh_frames.is_empty() {
            return None;
        }
        if let Some(search) = &self.search {
            match self.check(search.find(svma)?, svma) {
                Covering::Covers(fde) => return Some(fde),
                Covering::OtherCode => return None,
                // The table does not belong to the section (a tool moved one of them): do without.
                Covering::Nonsense => {}
            }
        }
        let scanned = self.scanned.get_or_init(|| {
            let numbered = (0u8..).zip(&self.eh_frames);
            numbered
                .map(|(number, section)| (number, section.table.index()))
                .collect()
        });
        scanned.iter().find_map(|(table, index)| {
            Some(FdeRef {
                table: *table,
                offset: lookup(index, svma)?,
            })
        })
    }

    /// Parses the FDE that the search table names and compares it.
    fn check(&self, (fde_at, function_at): (u64, u64), svma: u64) -> Covering {
        let sections = (0u8..).zip(&self.eh_frames);
        let Some((number, section)) = sections
            .into_iter()
            .find(|(_, s)| s.range.contains(&fde_at))
        else {
            return Covering::Nonsense;
        };
        let Ok(offset) = u32::try_from(fde_at - section.range.start) else {
            return Covering::Nonsense;
        };
        match section.table.fde(offset) {
            Some(fde) if fde.contains(svma) => Covering::Covers(FdeRef {
                table: number,
                offset,
            }),
            Some(fde) if fde.initial_address() == function_at => Covering::OtherCode,
            _ => Covering::Nonsense,
        }
    }

    fn find_debug(
        &self,
        svma: u64,
        binary: Option<&ElfFile<'a>>,
        debug: Option<&ElfFile<'a>>,
    ) -> Option<FdeRef> {
        let tables = self.debug_frames.get_or_init(|| {
            let mut tables = Vec::new();
            for file in [binary, debug].into_iter().flatten() {
                if let Some(section) = file.section(".debug_frame").filter(|s| !s.data.is_empty()) {
                    let table = Table::debug_frame(section.data, address_size(file));
                    let index = table.index();
                    tables.push((table, index));
                }
            }
            tables
        });
        let numbered = (FIRST_DEBUG..).zip(tables);
        numbered.into_iter().find_map(|(table, (_, index))| {
            Some(FdeRef {
                table,
                offset: lookup(index, svma)?,
            })
        })
    }
}

enum Covering {
    Covers(FdeRef),
    OtherCode,
    Nonsense,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1, no augmentation, `padding` bytes of DW_CFA_nop.
    fn eh_frame(padding: usize) -> Vec<u8> {
        let entry = |body: &[u8]| {
            let length = u32::try_from(body.len()).expect("small");
            [&length.to_le_bytes()[..], body].concat()
        };
        let mut cie = entry(
            &[
                &[0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8][..],
                &vec![0; padding],
            ]
            .concat(),
        );
        let link = u32::try_from(cie.len() + 4).expect("small");
        let range = [0x1000u64.to_le_bytes(), 0x100u64.to_le_bytes()].concat();
        cie.extend(entry(&[&link.to_le_bytes()[..], &range].concat()));
        cie
    }

    /// How often an entry may be looked at, up to a thousand times.
    fn looks(padding: usize) -> usize {
        let data = eh_frame(padding);
        let table = Table::jit(&data, Avma(0));
        let [entry] = table.index()[..] else {
            panic!("one entry: {:?}", table.index());
        };
        (0..1000)
            .take_while(|_| table.fde(entry.offset).is_some())
            .count()
    }

    #[test]
    fn large_entries_are_not_evaluated_for_ever() {
        assert_eq!(looks(100), 1000);
        assert!(
            (LARGE_OF_JIT - 1..=LARGE_OF_JIT + 1).contains(&looks(100_000)),
            "{}",
            looks(100_000)
        );
    }
}
