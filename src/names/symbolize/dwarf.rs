//! The DWARF of one DSO: its sections, and which unit describes which addresses.
//!
//! In: the ELF file with debug information (and the one it shares entries with), or a module of WebAssembly. Out: units by address, found
//! from the first entry of each unit alone, so that the cost does not depend on the size of the units.
//! Nothing here is kept for units that nobody asks for but their headers.

use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gimli::{
    AttributeSpecification, AttributeValue, DebugAddrBase, DebugInfoOffset, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, DwarfFileType, DwoId, EntriesRaw, LittleEndian,
    Reader as _, UnitHeader, UnitOffset, UnitType, constants as dw,
};

use super::abbreviations::{
    Abbreviations, declaration, number, skip_specifications, specification,
};
use super::unpacked::Unpacked;
use crate::dso::elf::ElfFile;
use crate::ids::{Idx, IndexVec, numbers};
use crate::input::Store;

pub(super) use super::abbreviations::{MAX_ATTRIBUTES, Reader};

/// A unit and how its entries are laid out. gimli's own table of abbreviations stays empty, but for units of `.dwo` files.
pub(super) struct Unit<'a> {
    inner: gimli::Unit<Reader<'a>>,
    pub(super) table: Arc<Abbreviations>,
}

impl<'a> Deref for Unit<'a> {
    type Target = gimli::Unit<Reader<'a>>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Unit<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl<'a> Unit<'a> {
    /// The attributes of the entry at a position, in front of which `entries` stands; `None` if there is no entry or it lists
    /// too many.
    pub(super) fn entry(
        &self,
        at: UnitOffset<usize>,
    ) -> Option<(EntriesRaw<'_, Reader<'a>>, &[AttributeSpecification])> {
        let mut rest = self.header.range_from(at..).ok()?.slice();
        let length = rest.len();
        let abbreviation = self.table.get(number(&mut rest)?)?;
        let specs = self.table.specs(abbreviation);
        let behind_code = UnitOffset(at.0 + length - rest.len());
        let entries = self.attributes(behind_code)?;
        (specs.len() <= MAX_ATTRIBUTES).then_some((entries, specs))
    }

    /// Reads attributes from a position on.
    pub(super) fn attributes(&self, at: UnitOffset<usize>) -> Option<EntriesRaw<'_, Reader<'a>>> {
        let none = &self.inner.abbreviations;
        self.header.entries_raw(none, Some(at)).ok()
    }

    /// The same of the first entry.
    pub(super) fn root(&self) -> Option<(EntriesRaw<'_, Reader<'a>>, &[AttributeSpecification])> {
        self.entry(self.header.root_offset())
    }
}

numbers! {
    /// Index into [`DebugInfo::headers`].
    pub(super) struct UnitId(pub(super) u32);
}

/// Longest name that is kept.
const MAX_NAME: usize = 1 << 14;
/// Attributes for each byte of a unit's entries, on average; flags need no bytes.
pub(super) const ATTRIBUTES_PER_BYTE: usize = 8;

/// A string, of which no more is looked at than is kept: in a section without NULs each is as long as the section.
pub(super) fn string<'a>(
    info: &DebugInfo<'a>,
    unit: &Unit<'a>,
    value: AttributeValue<Reader<'a>>,
) -> Option<&'a [u8]> {
    let own = &info.dwarf.debug_str;
    let (section, at) = match value {
        AttributeValue::DebugStrRef(at) => (own, at),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            (own, info.dwarf.string_offset(unit, index).ok()?)
        }
        AttributeValue::DebugStrRefSup(at) => (&info.dwarf.sup()?.debug_str, at),
        other => {
            let text = info.dwarf.attr_string(unit, other).ok()?.slice();
            info.note_text(text);
            return Some(text);
        }
    };
    let tail = gimli::Section::reader(section).slice().get(at.0..)?;
    let tail = &tail[..tail.len().min(MAX_NAME)];
    let text = &tail[..memchr::memchr(0, tail).unwrap_or(tail.len())];
    info.note_text(text);
    Some(text)
}

/// DWARF sections and the units in them.
pub(super) struct DebugInfo<'a> {
    pub(super) dwarf: gimli::Dwarf<Reader<'a>>,
    /// In order of their offsets.
    headers: IndexVec<UnitId, UnitHeader<Reader<'a>>>,
    /// Ordered by start.
    ranges: Vec<UnitRange>,
    /// Units that do not say which addresses they describe.
    unplaced: Vec<UnitId>,
    /// Whether it describes WebAssembly: every function has a sequence of lines of its own.
    pub(super) is_wasm: bool,
    /// Whose bytes these are, if somebody wants to know which of them are looked at.
    store: Option<&'a Store>,
    /// Units of the supplementary file.
    pub(super) supplementary: Option<Box<DebugInfo<'a>>>,
    /// Ranges that may still be read. Compilers write one list for each entry; a file made to cost
    /// time lets every entry refer to the same long one.
    ranges_left: AtomicUsize,
    /// Attributes of abbreviations that may still be read: tables may be shared, or overlap to cost time.
    abbreviations_left: AtomicUsize,
    /// Bytes of line programs that may still be read; compilers write one for each unit.
    lines_left: AtomicUsize,
    /// The table of abbreviations that was parsed last, by its place: some compilers write one for all units.
    abbreviations: Mutex<Option<(TablePlace, Arc<Abbreviations>)>>,
}

/// Where a table is, and for units of which widths it was read.
type TablePlace = (usize, gimli::Encoding);

/// Units at one address that are always looked at.
const FEW_UNITS: usize = 8;
/// Units that are looked at besides, over all addresses.
const MANY_UNITS: usize = 1 << 20;

struct UnitRange {
    start: u64,
    end: u64,
    unit: UnitId,
}

impl<'a> DebugInfo<'a> {
    /// The DWARF of a file; `None` when there is none, or it is of a kind that is not read (big-endian, or not
    /// linked and so without addresses).
    /// `lines`: whether source lines will be asked for.
    pub(super) fn of_files<'f: 'a>(
        elf: &ElfFile<'f>,
        supplementary: Option<&ElfFile<'f>>,
        lines: bool,
        unpacked: Option<&Unpacked<'a>>,
    ) -> Option<Self> {
        if elf.is_big_endian() || elf.is_relocatable() {
            return None;
        }
        let mut info = Self::of_elf(elf, lines, unpacked)?;
        info.supplementary = supplementary
            .and_then(|file| Self::of_elf(file, false, unpacked))
            .map(Box::new);
        if let Some(other) = &info.supplementary {
            info.dwarf.sup = Some(Arc::new(gimli::Dwarf {
                debug_str: other.dwarf.debug_str,
                ..gimli::Dwarf::default()
            }));
        }
        info.place_units();
        Some(info)
    }

    /// The DWARF of a module of WebAssembly, by the names of its sections.
    pub(super) fn of_wasm(section: impl Fn(&str) -> Option<&'a [u8]>, lines: bool) -> Option<Self> {
        let mut info = Self::sections(section, lines)?;
        info.is_wasm = true;
        info.place_units();
        Some(info)
    }

    /// The DWARF of a file without the addresses of its units. What is read of the largest sections is noted piece by piece.
    pub(super) fn of_elf<'f: 'a>(
        elf: &ElfFile<'f>,
        lines: bool,
        unpacked: Option<&Unpacked<'a>>,
    ) -> Option<Self> {
        const LARGE: [&str; 3] = [".debug_info", ".debug_line", ".debug_str"];
        let section = |name: &str| match (LARGE.contains(&name), unpacked) {
            (_, Some(unpacked)) => unpacked.section(elf, name),
            (true, None) => elf.debug_section_unread(name),
            (false, None) => elf.debug_section(name),
        };
        let mut info = Self::sections(section, lines)?;
        info.store = Some(elf.store());
        info.headers.iter().for_each(|header| {
            info.note_unit(header, 0..header.root_offset().0);
        });
        Some(info)
    }

    /// Notes that a part of a unit is looked at.
    fn note_unit(&self, header: &UnitHeader<Reader<'a>>, part: Range<usize>) {
        if let (Some(store), Some(start)) = (self.store, header.debug_info_offset()) {
            let all = gimli::Section::reader(&self.dwarf.debug_info).slice();
            let unit = all.get(start.0..).unwrap_or_default();
            let part = part.start..part.end.min(unit.len());
            store.read(unit.get(part).unwrap_or_default());
        }
    }

    /// Keeps a text as long as the file's bytes; nothing where nobody owns these.
    pub(super) fn kept(&self, text: Vec<u8>) -> Option<&'a [u8]> {
        self.store.map(|store| store.keep(text))
    }

    /// Notes that a string is looked at.
    pub(super) fn note_text(&self, text: &[u8]) {
        if let Some(store) = self.store {
            store.read_text(text);
        }
    }

    fn sections(section_of: impl Fn(&str) -> Option<&'a [u8]>, lines: bool) -> Option<Self> {
        use gimli::SectionId as Id;
        section_of(".debug_info")?;
        let section = |id: Id| -> Result<Reader<'a>, gimli::Error> {
            // What nobody asks for need not be unpacked: where variables are, macros, often lines.
            let wanted = match id {
                Id::DebugLine => lines,
                Id::DebugInfo | Id::DebugAbbrev | Id::DebugAddr => true,
                Id::DebugStr | Id::DebugStrOffsets | Id::DebugLineStr => true,
                Id::DebugRanges | Id::DebugRngLists => true,
                _ => false,
            };
            let data = wanted.then(|| section_of(id.name())).flatten();
            Ok(Reader::new(data.unwrap_or_default(), LittleEndian))
        };
        let mut dwarf = gimli::Dwarf::load(section).ok()?;
        dwarf.file_type = DwarfFileType::Main;
        Some(Self::of_sections(dwarf))
    }

    /// What a `.dwo` file holds, joined with the sections of the file that refers to it.
    pub(super) fn split(dwarf: gimli::Dwarf<Reader<'a>>) -> Self {
        Self::of_sections(dwarf)
    }

    /// The unit of a `.dwo` file that a skeleton names.
    pub(super) fn split_unit(&self, id: DwoId) -> Option<Unit<'a>> {
        /// Before DWARF 5 only the root tells; compilers write one unit into a file.
        const MOST: usize = 64;
        let may_be = |header: &&UnitHeader<Reader<'a>>| match header.type_() {
            UnitType::SplitCompilation(found) => found == id,
            UnitType::Compilation => header.version() < 5,
            _ => false,
        };
        let units = self.headers.iter().filter(may_be).take(MOST);
        units
            .filter_map(|header| self.whole_unit(*header))
            .find(|unit| unit.dwo_id == Some(id))
    }

    fn of_sections(dwarf: gimli::Dwarf<Reader<'a>>) -> Self {
        let mut headers = IndexVec::new();
        let mut units = dwarf.units();
        // Behind a damaged header nothing can be found.
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let info = Self {
            dwarf,
            headers,
            ranges: Vec::new(),
            unplaced: Vec::new(),
            is_wasm: false,
            store: None,
            supplementary: None,
            ranges_left: AtomicUsize::default(),
            abbreviations_left: AtomicUsize::default(),
            lines_left: AtomicUsize::default(),
            abbreviations: Mutex::default(),
        };
        info.refill();
        info
    }

    /// Sets what may still be read to what it was at the beginning.
    pub(super) fn refill(&self) {
        let (ranges, abbreviations, lines) = self.budgets();
        self.ranges_left.store(ranges, Ordering::Relaxed);
        self.abbreviations_left
            .store(abbreviations, Ordering::Relaxed);
        self.lines_left.store(lines, Ordering::Relaxed);
        if let Some(other) = &self.supplementary {
            other.refill();
        }
    }

    /// How many ranges, attributes of abbreviations, and bytes of line programs may be read.
    fn budgets(&self) -> (usize, usize, usize) {
        let ranges = self.dwarf.ranges.debug_ranges();
        let lists = gimli::Section::reader(ranges).len()
            + gimli::Section::reader(self.dwarf.ranges.debug_rnglists()).len();
        let abbreviations = gimli::Section::reader(&self.dwarf.debug_abbrev).len();
        let lines = gimli::Section::reader(&self.dwarf.debug_line).len();
        let units = self.headers.len();
        (
            lists.saturating_mul(4).saturating_add(1 << 20),
            units
                .saturating_mul(1024)
                .saturating_add(abbreviations)
                .saturating_add(1 << 22),
            lines.saturating_mul(4).saturating_add(1 << 20),
        )
    }

    fn place_units(&mut self) {
        let mut ranges = Vec::new();
        for unit in self.headers.indices() {
            let before = ranges.len();
            let told = self.unit_ranges(unit, |start, end| {
                if start < end {
                    ranges.push(UnitRange { start, end, unit });
                }
            });
            if told == Some(false) && ranges.len() == before {
                self.unplaced.push(unit);
            }
        }
        ranges.sort_unstable_by_key(|r| (r.start, r.end, r.unit));
        self.ranges = ranges;
    }

    /// Calls `add` for the ranges of a unit. Says whether the unit told its ranges; `None` if it describes no code.
    fn unit_ranges(&self, id: UnitId, mut add: impl FnMut(u64, u64)) -> Option<bool> {
        let header = self.headers[id];
        let root = RootEntry::read(self, &header, |code| declared(self, &header, code))?;
        if root.tag == dw::DW_TAG_partial_unit || matches!(header.type_(), UnitType::Type { .. }) {
            return None;
        }
        let unit = root.unit(&self.dwarf, header, Arc::default());
        let bounds = Bounds::of(self, &unit, root.attributes.iter().copied());
        bounds.each(self, &unit, &mut add);
        Some(bounds.is_told())
    }

    /// Calls `f` with the index of each of the addresses (ordered) and a unit that may describe it, in the order of the file. Of
    /// very many units at one address, those whose ranges start last.
    pub(super) fn units_at(&self, addresses: &[u64], f: impl FnMut(usize, UnitId)) {
        units_at(&self.ranges, &self.unplaced, addresses, f);
    }

    /// The units that can be read, in the order of the file.
    pub(super) fn units(&self) -> impl Iterator<Item = Unit<'a>> {
        self.headers.indices().filter_map(|unit| self.unit(unit))
    }

    /// How much work a unit is: its length.
    pub(super) fn unit_size(&self, unit: UnitId) -> usize {
        self.headers[unit].length_including_self()
    }

    /// A unit ready for reading, without its line program.
    pub(super) fn unit(&self, unit: UnitId) -> Option<Unit<'a>> {
        let header = *self.headers.get(unit)?;
        self.note_unit(&header, 0..header.length_including_self());
        if self.dwarf.file_type == DwarfFileType::Dwo {
            return self.whole_unit(header);
        }
        let table = self.abbreviations(&header)?;
        let root = RootEntry::read(self, &header, |code| {
            let found = table.get(code)?;
            Some((found.tag, table.specs(found)))
        })?;
        Some(root.unit(&self.dwarf, header, table))
    }

    /// A unit with all that gimli reads of its root.
    fn whole_unit(&self, header: UnitHeader<Reader<'a>>) -> Option<Unit<'a>> {
        let table = self.abbreviations(&header)?;
        let inner = self.dwarf.unit(header).ok()?;
        Some(Unit { inner, table })
    }

    fn abbreviations(&self, header: &UnitHeader<Reader<'a>>) -> Option<Arc<Abbreviations>> {
        let place = (header.debug_abbrev_offset().0, header.encoding());
        let last = || {
            self.abbreviations
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((_, known)) = last().as_ref().filter(|(at, _)| *at == place) {
            return Some(Arc::clone(known));
        }
        let section = gimli::Section::reader(&self.dwarf.debug_abbrev).slice();
        let may = |count| spend(&self.abbreviations_left, count);
        let table = Abbreviations::parse(section.get(place.0..)?, header, may)?;
        let table = Arc::new(table);
        *last() = Some((place, Arc::clone(&table)));
        Some(table)
    }

    /// Whether the line program at a place of `.debug_line` may be read, which is asked once for each unit.
    pub(super) fn may_read_lines(&self, offset: gimli::DebugLineOffset<usize>) -> bool {
        let mut rest = *gimli::Section::reader(&self.dwarf.debug_line);
        let all = rest;
        let length = rest
            .skip(offset.0)
            .and_then(|()| rest.read_initial_length());
        if let (Some(store), Ok((length, _))) = (self.store, &length) {
            let program = all.slice().get(offset.0..).unwrap_or_default();
            let head = program.len().saturating_sub(rest.len());
            let size = length.saturating_add(head).min(program.len());
            store.read(&program[..size]);
        }
        length.is_ok_and(|(length, _)| spend(&self.lines_left, length.min(rest.len())))
    }

    /// The unit that contains a position of `.debug_info`, and the position in it.
    pub(super) fn unit_of(
        &self,
        offset: DebugInfoOffset<usize>,
    ) -> Option<(UnitId, UnitOffset<usize>)> {
        let start = |h: &UnitHeader<Reader<'a>>| h.debug_info_offset().map_or(usize::MAX, |o| o.0);
        let index = self
            .headers
            .raw
            .partition_point(|h| start(h) <= offset.0)
            .checked_sub(1)?;
        let unit = UnitId::from_usize(index);
        let inside = offset.0 - start(&self.headers[unit]);
        let length = self.headers[unit].length_including_self();
        (inside < length).then_some((unit, UnitOffset(inside)))
    }
}

/// The first entry of a unit.
struct RootEntry<'a> {
    tag: gimli::DwTag,
    attributes: Vec<(gimli::DwAt, AttributeValue<Reader<'a>>)>,
}

impl<'a> RootEntry<'a> {
    /// Reads it as `declared` says that entries of its code are laid out.
    fn read<S: AsRef<[AttributeSpecification]>>(
        info: &DebugInfo<'a>,
        header: &UnitHeader<Reader<'a>>,
        declared: impl FnOnce(u64) -> Option<(gimli::DwTag, S)>,
    ) -> Option<Self> {
        let root = header.root_offset();
        let mut rest = header.range_from(root..).ok()?.slice();
        let length = rest.len();
        let code = number(&mut rest)?;
        let behind_code = UnitOffset(root.0 + length - rest.len());
        let (tag, specs) = declared(code)?;
        let specs = specs.as_ref();
        if specs.len() > MAX_ATTRIBUTES {
            return None;
        }
        let none = gimli::Abbreviations::default();
        let mut entries = header.entries_raw(&none, Some(behind_code)).ok()?;
        let mut attributes = Vec::with_capacity(specs.len());
        for spec in specs {
            let attribute = entries.read_attribute(*spec).ok()?;
            attributes.push((attribute.name(), attribute.value()));
        }
        info.note_unit(header, root.0..entries.next_offset().0);
        Some(Self { tag, attributes })
    }

    fn get(&self, name: gimli::DwAt) -> Option<&AttributeValue<Reader<'a>>> {
        self.attributes
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| value)
    }

    /// The unit with the bases that its root gives (DWARF 5, and GNU's forerunners).
    fn unit(
        &self,
        dwarf: &gimli::Dwarf<Reader<'a>>,
        header: UnitHeader<Reader<'a>>,
        table: Arc<Abbreviations>,
    ) -> Unit<'a> {
        let (encoding, main) = (header.encoding(), DwarfFileType::Main);
        let mut unit = gimli::Unit {
            abbreviations: Arc::default(),
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, main),
            addr_base: DebugAddrBase(0),
            loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, main),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, main),
            line_program: None,
            dwo_id: None,
            header,
        };
        for (name, value) in &self.attributes {
            match (*name, value) {
                (dw::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    unit.str_offsets_base = *base;
                }
                (
                    dw::DW_AT_addr_base | dw::DW_AT_GNU_addr_base,
                    AttributeValue::DebugAddrBase(base),
                ) => {
                    unit.addr_base = *base;
                }
                (
                    dw::DW_AT_rnglists_base | dw::DW_AT_GNU_ranges_base,
                    AttributeValue::DebugRngListsBase(base),
                ) => {
                    unit.rnglists_base = *base;
                }
                _ => {}
            }
        }
        // Only now: the address may be an index from the base. Range lists count from it.
        let low = self
            .get(dw::DW_AT_low_pc)
            .and_then(|low| dwarf.attr_address(&unit, *low).ok().flatten());
        unit.low_pc = low.unwrap_or(0);
        Unit { inner: unit, table }
    }
}

/// Reads one declaration out of a table of abbreviations, in the first of which most roots are: whole tables cost more than
/// all roots together.
fn declared<'a>(
    info: &DebugInfo<'a>,
    header: &UnitHeader<Reader<'a>>,
    wanted: u64,
) -> Option<(gimli::DwTag, Vec<AttributeSpecification>)> {
    let section = gimli::Section::reader(&info.dwarf.debug_abbrev).slice();
    let mut rest = section.get(header.debug_abbrev_offset().0..)?;
    loop {
        let code = number(&mut rest)?;
        let (tag, _) = declaration(&mut rest).filter(|_| code != 0)?;
        let (mut specs, mut count) = (Vec::new(), 1);
        if code == wanted {
            while let Some(spec) = specification(&mut rest)? {
                specs.push(spec);
            }
            count += specs.len();
        } else {
            count += skip_specifications(&mut rest)?;
        }
        if !spend(&info.abbreviations_left, count) {
            return None;
        }
        if code == wanted {
            return Some((tag, specs));
        }
    }
}

/// Takes some from a budget; false when it is used up.
fn spend(budget: &AtomicUsize, amount: usize) -> bool {
    // Lost updates between threads only stretch the budget.
    let left = budget.load(Ordering::Relaxed);
    budget.store(left.saturating_sub(amount), Ordering::Relaxed);
    left >= amount && left != 0
}

/// Where the code of an entry lies: `DW_AT_low_pc`, `DW_AT_high_pc`, `DW_AT_ranges`.
#[derive(Default, Clone, Copy)]
pub(super) struct Bounds {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    ranges: Option<gimli::RangeListsOffset<usize>>,
}

impl Bounds {
    fn of<'a>(
        info: &DebugInfo<'a>,
        unit: &Unit<'a>,
        attributes: impl Iterator<Item = (gimli::DwAt, AttributeValue<Reader<'a>>)>,
    ) -> Self {
        let mut bounds = Self::default();
        for (name, value) in attributes {
            bounds.take(&info.dwarf, unit, name, value);
        }
        bounds
    }

    /// Looks at one attribute.
    #[inline]
    pub(super) fn take<'a>(
        &mut self,
        dwarf: &gimli::Dwarf<Reader<'a>>,
        unit: &Unit<'a>,
        name: gimli::DwAt,
        value: AttributeValue<Reader<'a>>,
    ) {
        match name {
            dw::DW_AT_low_pc => self.low = dwarf.attr_address(unit, value).ok().flatten(),
            dw::DW_AT_high_pc => match value {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.high = dwarf.attr_address(unit, value).ok().flatten(),
            },
            dw::DW_AT_ranges => self.ranges = dwarf.attr_ranges_offset(unit, value).ok().flatten(),
            _ => {}
        }
    }

    /// Whether the entry says where its code lies.
    pub(super) fn is_told(&self) -> bool {
        self.ranges.is_some()
            || (self.low.is_some() && (self.size.is_some() || self.high.is_some()))
    }

    /// Calls `f` with the start and end of every range.
    #[inline]
    pub(super) fn each<'a>(
        &self,
        info: &DebugInfo<'a>,
        unit: &Unit<'a>,
        mut f: impl FnMut(u64, u64),
    ) {
        if let Some(offset) = self.ranges {
            if let Ok(mut list) = info.dwarf.ranges(unit, offset) {
                while let Ok(Some(range)) = list.next() {
                    if !spend(&info.ranges_left, 1) {
                        return;
                    }
                    if range.begin != 0 {
                        f(range.begin, range.end);
                    }
                }
            }
            return;
        }
        // What a linker threw away begins at 0.
        let Some(low) = self.low.filter(|low| *low != 0) else {
            return;
        };
        let end = self.size.map(|size| low.saturating_add(size)).or(self.high);
        if let Some(end) = end {
            f(low, end);
        }
    }
}

/// See [`DebugInfo::units_at`]. The ranges are ordered by start.
fn units_at(
    ranges: &[UnitRange],
    unplaced: &[UnitId],
    addresses: &[u64],
    mut f: impl FnMut(usize, UnitId),
) {
    let mut left = addresses
        .len()
        .saturating_mul(FEW_UNITS)
        .saturating_add(MANY_UNITS);
    let (mut next, mut around, mut found) = (0, Vec::new(), Vec::new());
    for (index, &at) in addresses.iter().enumerate() {
        let behind = next + ranges[next..].partition_point(|r| r.start <= at);
        around.extend(&ranges[next..behind]);
        next = behind;
        around.retain(|r: &&UnitRange| at < r.end);
        if around.len() > left {
            around.drain(..around.len().saturating_sub(FEW_UNITS));
        }
        found.clear();
        found.extend(around.iter().map(|r| r.unit));
        if found.is_empty() {
            found.extend(unplaced.iter().take(left.max(FEW_UNITS)));
        }
        left = left.saturating_sub(found.len());
        found.sort_unstable();
        found.dedup();
        found.iter().for_each(|&unit| f(index, unit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(ranges: &[(u64, u64)], unplaced: u32, addresses: &[u64]) -> Vec<(usize, u32)> {
        let range = |(unit, &(start, end)): (u32, &(u64, u64))| UnitRange {
            start,
            end,
            unit: UnitId(unit),
        };
        let ranges: Vec<_> = (0..).zip(ranges).map(range).collect();
        let unplaced: Vec<UnitId> = (1000..1000 + unplaced).map(UnitId).collect();
        let mut pairs = Vec::new();
        units_at(&ranges, &unplaced, addresses, |index, unit| {
            pairs.push((index, unit.0))
        });
        pairs
    }

    #[test]
    fn units_around_an_address() {
        let ranges = [(10, 90), (20, 30), (20, 40), (60, 70)];
        assert_eq!(
            pairs(&ranges, 1, &[5, 25, 25, 35, 60, 70, 90]),
            [
                (0, 1000),
                (1, 0),
                (1, 1),
                (1, 2),
                (2, 0),
                (2, 1),
                (2, 2),
                (3, 0),
                (3, 2),
                (4, 0),
                (4, 3),
                (5, 0),
                (6, 1000)
            ]
        );
    }

    /// Two thousand units that all claim two thousand addresses are four million pairs.
    #[test]
    fn units_that_claim_everything_are_not_all_looked_at() {
        let addresses: Vec<u64> = (100..2100).collect();
        let limit = MANY_UNITS + 2 * FEW_UNITS * addresses.len();
        let everywhere = pairs(&[(1, 5000); 2000], 0, &addresses);
        assert!((addresses.len()..=limit).contains(&everywhere.len()));
        let nowhere = pairs(&[], 2000, &addresses);
        assert!((addresses.len()..=limit).contains(&nowhere.len()));
    }
}
