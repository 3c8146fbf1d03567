//! The DWARF of one DSO: its sections, and which unit describes which addresses.
//!
//! In: the ELF file with debug information (and the one it shares entries with). Out: units by address, found
//! from the first entry of each unit alone, so that the cost does not depend on the size of the units.
//! Nothing here is kept for units that nobody asks for but their headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gimli::{
    Abbreviations, AttributeSpecification, AttributeValue, DebugAddrBase, DebugInfoOffset,
    DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, DwarfFileType, DwoId, LittleEndian,
    Reader as _, UnitHeader, UnitOffset, UnitType, constants as dw,
};

use crate::dso::elf::ElfFile;

pub(super) type Reader<'a> = gimli::EndianSlice<'a, LittleEndian>;
pub(super) type Unit<'a> = gimli::Unit<Reader<'a>>;

/// DWARF sections and the units in them.
pub(super) struct DebugInfo<'a> {
    pub(super) dwarf: gimli::Dwarf<Reader<'a>>,
    /// In order of their offsets.
    headers: Vec<UnitHeader<Reader<'a>>>,
    /// Ordered by start.
    ranges: Vec<UnitRange>,
    /// Units that do not say which addresses they describe.
    unplaced: Vec<u32>,
    /// Units of the supplementary file.
    pub(super) supplementary: Option<Box<DebugInfo<'a>>>,
    /// Ranges that may still be read. Compilers write one list for each entry; a file made to cost
    /// time lets every entry refer to the same long one.
    ranges_left: AtomicUsize,
    /// Abbreviations that may still be read in search of those of roots.
    abbreviations_left: AtomicUsize,
}

struct UnitRange {
    start: u64,
    end: u64,
    /// The highest end of this range and all before it.
    reach: u64,
    unit: u32,
}

impl<'a> DebugInfo<'a> {
    /// The DWARF of a file; `None` when there is none, or it is of a kind that is not read (big-endian, or not
    /// linked and so without addresses).
    /// `lines`: whether source lines will be asked for.
    pub(super) fn new(
        elf: &ElfFile<'a>,
        supplementary: Option<&ElfFile<'a>>,
        lines: bool,
    ) -> Option<Self> {
        if elf.is_big_endian() || elf.is_relocatable() {
            return None;
        }
        let mut info = Self::sections(elf, lines)?;
        info.supplementary = supplementary
            .and_then(|elf| Self::sections(elf, false))
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

    fn sections(elf: &ElfFile<'a>, lines: bool) -> Option<Self> {
        use gimli::SectionId as Id;
        elf.debug_section(".debug_info")?;
        let section = |id: Id| -> Result<Reader<'a>, gimli::Error> {
            // What nobody asks for need not be unpacked: where variables are, macros, often lines.
            let wanted = match id {
                Id::DebugLine => lines,
                Id::DebugInfo | Id::DebugAbbrev | Id::DebugAddr => true,
                Id::DebugStr | Id::DebugStrOffsets | Id::DebugLineStr => true,
                Id::DebugRanges | Id::DebugRngLists => true,
                _ => false,
            };
            let data = wanted.then(|| elf.debug_section(id.name())).flatten();
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
            .filter_map(|header| self.dwarf.unit(*header).ok())
            .find(|unit| unit.dwo_id == Some(id))
    }

    fn of_sections(dwarf: gimli::Dwarf<Reader<'a>>) -> Self {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        // Behind a damaged header nothing can be found.
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let ranges = dwarf.ranges.debug_ranges();
        let lists = gimli::Section::reader(ranges).len()
            + gimli::Section::reader(dwarf.ranges.debug_rnglists()).len();
        let units = headers.len();
        Self {
            dwarf,
            headers,
            ranges: Vec::new(),
            unplaced: Vec::new(),
            supplementary: None,
            ranges_left: AtomicUsize::new(lists.saturating_mul(4).saturating_add(1 << 20)),
            abbreviations_left: AtomicUsize::new(units.saturating_mul(64).saturating_add(1 << 20)),
        }
    }

    fn place_units(&mut self) {
        let mut ranges = Vec::new();
        for index in 0..self.headers.len() {
            let number = u32::try_from(index).expect("a unit has more than one byte");
            let before = ranges.len();
            let told = self.unit_ranges(index, |start, end| {
                if start < end && start != 0 {
                    ranges.push(UnitRange {
                        start,
                        end,
                        reach: 0,
                        unit: number,
                    });
                }
            });
            if told == Some(false) && ranges.len() == before {
                self.unplaced.push(number);
            }
        }
        ranges.sort_unstable_by_key(|r| (r.start, r.end, r.unit));
        let mut reach = 0;
        for range in &mut ranges {
            reach = range.end.max(reach);
            range.reach = reach;
        }
        self.ranges = ranges;
    }

    /// Calls `add` for the ranges of a unit. Says whether the unit told its ranges; `None` if it describes no code.
    fn unit_ranges(&self, index: usize, mut add: impl FnMut(u64, u64)) -> Option<bool> {
        let header = self.headers[index];
        let root = RootEntry::read(self, &header)?;
        if root.tag == dw::DW_TAG_partial_unit || matches!(header.type_(), UnitType::Type { .. }) {
            return None;
        }
        let unit = root.unit(&self.dwarf, header, Arc::default());
        let bounds = Bounds::of(self, &unit, root.attributes.iter().copied());
        bounds.each(self, &unit, &mut add);
        Some(bounds.is_told())
    }

    /// The units that may describe an address, in the order of the file.
    pub(super) fn units_at(&self, at: u64) -> impl Iterator<Item = u32> + '_ {
        let behind = self.ranges.partition_point(|r| r.start <= at);
        let near = self.ranges[..behind]
            .iter()
            .rev()
            .take_while(move |r| at < r.reach);
        let mut found: Vec<u32> = near.filter(|r| at < r.end).map(|r| r.unit).collect();
        if found.is_empty() {
            found.clone_from(&self.unplaced);
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter()
    }

    /// How much work a unit is: its length.
    pub(super) fn unit_size(&self, unit: u32) -> usize {
        self.headers[unit as usize].length_including_self()
    }

    /// A unit ready for reading, without its line program.
    pub(super) fn unit(&self, unit: u32) -> Option<Unit<'a>> {
        let header = *self.headers.get(unit as usize)?;
        if self.dwarf.file_type == DwarfFileType::Dwo {
            return self.dwarf.unit(header).ok();
        }
        let abbreviations = self.dwarf.abbreviations(&header).ok()?;
        let root = RootEntry::read(self, &header)?;
        Some(root.unit(&self.dwarf, header, abbreviations))
    }

    /// The unit that contains a position of `.debug_info`, and the position in it.
    pub(super) fn unit_of(
        &self,
        offset: DebugInfoOffset<usize>,
    ) -> Option<(u32, UnitOffset<usize>)> {
        let start = |h: &UnitHeader<Reader<'a>>| h.debug_info_offset().map_or(usize::MAX, |o| o.0);
        let index = self
            .headers
            .partition_point(|h| start(h) <= offset.0)
            .checked_sub(1)?;
        let inside = offset.0 - start(&self.headers[index]);
        let length = self.headers[index].length_including_self();
        (inside < length).then_some((u32::try_from(index).ok()?, UnitOffset(inside)))
    }
}

/// The first entry of a unit.
struct RootEntry<'a> {
    tag: gimli::DwTag,
    attributes: Vec<(gimli::DwAt, AttributeValue<Reader<'a>>)>,
}

impl<'a> RootEntry<'a> {
    fn read(info: &DebugInfo<'a>, header: &UnitHeader<Reader<'a>>) -> Option<Self> {
        let root = header.root_offset();
        let mut input = header.range_from(root..).ok()?;
        let before = input.len();
        let code = input.read_uleb128().ok()?;
        let behind_code = UnitOffset(root.0 + before - input.len());
        let (tag, specs) = abbreviation(info, header, code)?;
        // The abbreviation was read by hand: whole tables of them cost more than all roots together.
        let none = Abbreviations::default();
        let mut entries = header.entries_raw(&none, Some(behind_code)).ok()?;
        let mut attributes = Vec::with_capacity(specs.len());
        for spec in specs {
            let attribute = entries.read_attribute(spec).ok()?;
            attributes.push((attribute.name(), attribute.value()));
        }
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
        abbreviations: Arc<Abbreviations>,
    ) -> Unit<'a> {
        let (encoding, main) = (header.encoding(), DwarfFileType::Main);
        let mut unit = Unit {
            abbreviations,
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
        unit
    }
}

/// Reads one declaration out of a table of abbreviations: most roots use the first.
fn abbreviation<'a>(
    info: &DebugInfo<'a>,
    header: &UnitHeader<Reader<'a>>,
    wanted: u64,
) -> Option<(gimli::DwTag, Vec<AttributeSpecification>)> {
    let mut input = *gimli::Section::reader(&info.dwarf.debug_abbrev);
    input.skip(header.debug_abbrev_offset().0).ok()?;
    loop {
        let code = input.read_uleb128().ok()?;
        if code == 0 || !spend(&info.abbreviations_left) {
            return None;
        }
        let tag = gimli::DwTag(input.read_uleb128_u16().ok()?);
        input.read_u8().ok()?;
        let mut specs = Vec::new();
        loop {
            let name = gimli::DwAt(input.read_uleb128_u16().ok()?);
            let form = gimli::DwForm(input.read_uleb128_u16().ok()?);
            if name.0 == 0 && form.0 == 0 {
                break;
            }
            let constant = if form == dw::DW_FORM_implicit_const {
                Some(input.read_sleb128().ok()?)
            } else {
                None
            };
            if code == wanted {
                specs.push(AttributeSpecification::new(name, form, constant));
            }
        }
        if code == wanted {
            return Some((tag, specs));
        }
    }
}

/// Takes one from a budget; false when it is used up.
fn spend(budget: &AtomicUsize) -> bool {
    // Lost updates between threads only stretch the budget.
    let left = budget.load(Ordering::Relaxed);
    budget.store(left.saturating_sub(1), Ordering::Relaxed);
    left != 0
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
                    if !spend(&info.ranges_left) {
                        return;
                    }
                    f(range.begin, range.end);
                }
            }
            return;
        }
        let Some(low) = self.low else { return };
        let end = self.size.map(|size| low.saturating_add(size)).or(self.high);
        if let Some(end) = end {
            f(low, end);
        }
    }
}
