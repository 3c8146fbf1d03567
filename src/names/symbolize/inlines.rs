//! Which functions are inlined at given addresses of one unit.
//!
//! In: a unit and the addresses in it that are asked for, ordered. Out: for each the inlined calls around it. One
//! pass over the unit's entries; functions that contain no address are skipped, and nothing is kept of them. Functions
//! may stand inside others (regions of OpenMP, nested functions of GNU C, Ada, Fortran), also inside those that were
//! skipped: where an address is left without a function, a second pass looks into all of them.

use std::sync::Arc;

use gimli::{
    AttributeSpecification, AttributeValue, DebugInfoOffset, EntriesRaw, UnitOffset,
    constants as dw,
};
use rustc_hash::FxHashMap;

use super::abbreviations::number;
use super::declared::{Declared, Mark};
use super::dwarf::{
    ATTRIBUTES_PER_BYTE, Bounds, DebugInfo, MAX_ATTRIBUTES, Reader, Unit, UnitId, string,
};
use super::expanded::NameNumber;
use super::lines::{LineAt, Lines};
use super::origin::{Author, SourceFile};
use super::scopes::Scopes;
use crate::ids::IndexVec;

/// An inlined call: the function that was inlined, and the place it was called from.
#[derive(Clone, Copy, Debug)]
pub(super) struct InlinedCall {
    /// The entry that describes it.
    entry: UnitOffset<usize>,
    /// Its abstract function, where the name is.
    origin: Option<EntryRef>,
    /// Where the call stands in the sources.
    pub(super) site: LineAt,
    depth: isize,
}

impl InlinedCall {
    /// The entry that tells about the function.
    fn start(&self) -> EntryRef {
        self.origin.unwrap_or(EntryRef::Unit(self.entry))
    }
}

/// A reference to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum EntryRef {
    /// In the same unit.
    Unit(UnitOffset<usize>),
    /// Anywhere in the file.
    File(DebugInfoOffset<usize>),
    /// In the supplementary file.
    Supplementary(DebugInfoOffset<usize>),
}

impl EntryRef {
    fn of(value: AttributeValue<Reader<'_>>) -> Option<Self> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Self::Unit(offset)),
            AttributeValue::DebugInfoRef(offset) => Some(Self::File(offset)),
            AttributeValue::DebugInfoRefSup(offset) => Some(Self::Supplementary(offset)),
            _ => None,
        }
    }
}

/// What the unit says about one address.
#[derive(Default)]
pub(super) struct UnitAnswer {
    /// Length of the function that contains the address; the smallest counts when several do.
    function: Option<u64>,
    /// The entry that describes that function.
    entry: Option<UnitOffset<usize>>,
    /// Where its code begins.
    start: u64,
    /// The function that `calls` belong to, as a running number.
    owner: u32,
    /// The inlined calls around the address, outermost first.
    pub(super) calls: Vec<InlinedCall>,
}

impl UnitAnswer {
    /// Whether some function of the unit contains the address.
    pub(super) fn is_inside_function(&self) -> bool {
        self.function.is_some()
    }

    /// Where the code of the function around the address begins.
    pub(super) const fn function_start(&self) -> u64 {
        self.start
    }

    /// Size of the function around the address.
    pub(super) fn function_size(&self) -> u64 {
        self.function.unwrap_or(NO_SIZE)
    }
}

/// Stands for the size of a function that is not told of.
pub(super) const NO_SIZE: u64 = u64::MAX;
/// Deepest nesting of inlined calls around one address, on average over many; compilers stop far earlier.
const MAX_NESTING: usize = 32;
/// Inlined calls that are kept of any unit, so that few addresses may have many.
const CALLS: usize = 1 << 14;

/// Finds the inlined calls around each of the addresses (ordered).
pub(super) fn find<'a>(
    info: &DebugInfo<'a>,
    unit: &Unit<'a>,
    addresses: &[u64],
) -> Vec<UnitAnswer> {
    let mut scan = Scan::new(info, unit, addresses);
    // A damaged unit gives what was found before the damage.
    let _ = scan.run();
    let (mut found, has_skipped) = (scan.found, scan.has_skipped);
    let missing = || (0..found.len()).filter(|&at| found[at].function.is_none());
    let missing: Vec<usize> = missing().collect();
    if has_skipped && !missing.is_empty() {
        let addresses: Vec<u64> = missing.iter().map(|&at| addresses[at]).collect();
        let mut again = Scan::new(info, unit, &addresses);
        again.skips = false;
        let _ = again.run();
        for (at, nested) in missing.into_iter().zip(again.found) {
            found[at] = nested;
        }
    }
    found
}

/// The number in an attribute; 0 if there is none.
fn small(attribute: &gimli::Attribute<Reader<'_>>) -> u32 {
    let number = attribute.udata_value();
    number.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

struct Scan<'s, 'a> {
    info: &'s DebugInfo<'a>,
    unit: &'s Unit<'a>,
    addresses: &'s [u64],
    found: Vec<UnitAnswer>,
    /// The function that is being read, if it contains an address.
    function: Option<Around>,
    /// Those around it that contain one, outermost first.
    outer: Vec<Around>,
    /// Running number of functions that contain an address.
    functions: u32,
    /// Whether functions without an address are passed over with all that stands inside them.
    skips: bool,
    /// Whether that happened.
    has_skipped: bool,
    /// Addresses inside the entry at hand.
    hits: Vec<usize>,
    /// How many more hits are looked at: an address lies in as many entries as calls are nested around it.
    hits_left: usize,
    /// Attributes that may still be read.
    attributes_left: usize,
}

/// A function that contains an address: how deep its entry stands, and its running number.
#[derive(Clone, Copy)]
struct Around {
    depth: isize,
    owner: u32,
}

impl<'s, 'a> Scan<'s, 'a> {
    fn new(info: &'s DebugInfo<'a>, unit: &'s Unit<'a>, addresses: &'s [u64]) -> Self {
        Self {
            info,
            unit,
            addresses,
            found: std::iter::repeat_with(UnitAnswer::default)
                .take(addresses.len())
                .collect(),
            function: None,
            outer: Vec::new(),
            functions: 0,
            skips: true,
            has_skipped: false,
            hits: Vec::new(),
            hits_left: addresses
                .len()
                .saturating_mul(MAX_NESTING)
                .saturating_add(CALLS),
            attributes_left: (unit.header.length_including_self())
                .saturating_mul(ATTRIBUTES_PER_BYTE),
        }
    }

    /// Looks at all entries; `None` where the unit is damaged, or has too many attributes.
    fn run(&mut self) -> Option<()> {
        let (header, table) = (&self.unit.header, Arc::clone(&self.unit.table));
        let root = header.root_offset().0;
        let all = header.range_from(UnitOffset(root)..).ok()?.slice();
        let (mut rest, mut next_depth) = (all, 0);
        while !rest.is_empty() {
            let entry = UnitOffset(root + all.len() - rest.len());
            let code = number(&mut rest)?;
            if code == 0 {
                next_depth -= 1;
                continue;
            }
            let abbreviation = table.get(code)?;
            let depth = next_depth;
            next_depth += isize::from(abbreviation.has_children);
            let specs = table.specs(abbreviation);
            if specs.len() > MAX_ATTRIBUTES || specs.len() > self.attributes_left {
                return None;
            }
            self.attributes_left -= specs.len();
            while self
                .function
                .is_some_and(|function| depth <= function.depth)
            {
                self.function = self.outer.pop();
            }
            let attributes = || {
                self.unit
                    .attributes(UnitOffset(root + all.len() - rest.len()))
            };
            match abbreviation.tag {
                dw::DW_TAG_subprogram if abbreviation.is_placed => {
                    let mut entries = attributes()?;
                    let (bounds, sibling) = self.function_at(&mut entries, specs)?;
                    rest = &all[entries.next_offset().0 - root..];
                    let is_read = self.enter_function(depth, entry, bounds) || !self.skips;
                    if is_read || !abbreviation.has_children {
                        continue;
                    }
                    if let Some(next) = sibling.filter(|next| *next > entries.next_offset().0) {
                        rest = all.get(next - root..)?;
                        next_depth = depth;
                        self.has_skipped = true;
                    }
                }
                dw::DW_TAG_inlined_subroutine if self.function.is_some() => {
                    let mut entries = attributes()?;
                    let call = InlinedCall {
                        entry,
                        origin: None,
                        site: LineAt::default(),
                        depth,
                    };
                    let (call, bounds) = self.call_at(call, &mut entries, specs)?;
                    rest = &all[entries.next_offset().0 - root..];
                    self.add_call(call, bounds);
                }
                _ => table.pass(abbreviation, &mut rest, header)?,
            }
        }
        Some(())
    }

    /// Where a function's code lies, and where the next entry beside it begins.
    #[inline]
    fn function_at(
        &self,
        entries: &mut EntriesRaw<'_, Reader<'a>>,
        specs: &[AttributeSpecification],
    ) -> Option<(Bounds, Option<usize>)> {
        let (mut bounds, mut sibling) = (Bounds::default(), None);
        for spec in specs {
            let attribute = entries.read_attribute_inline(*spec).ok()?;
            let (name, value) = (attribute.name(), attribute.value());
            match (name, &value) {
                (dw::DW_AT_sibling, AttributeValue::UnitRef(next)) => sibling = Some(next.0),
                _ => bounds.take(&self.info.dwarf, self.unit, name, value),
            }
        }
        Some((bounds, sibling))
    }

    /// What an entry says of an inlined call, and where its code lies.
    #[inline]
    fn call_at(
        &self,
        mut call: InlinedCall,
        entries: &mut EntriesRaw<'_, Reader<'a>>,
        specs: &[AttributeSpecification],
    ) -> Option<(InlinedCall, Bounds)> {
        let mut bounds = Bounds::default();
        for spec in specs {
            let attribute = entries.read_attribute_inline(*spec).ok()?;
            match attribute.name() {
                dw::DW_AT_abstract_origin => call.origin = EntryRef::of(attribute.value()),
                dw::DW_AT_call_line => call.site.line = small(&attribute),
                dw::DW_AT_call_column => call.site.column = small(&attribute),
                dw::DW_AT_call_file => {
                    call.site.file = match attribute.value() {
                        AttributeValue::FileIndex(index) => index,
                        _ => 0,
                    };
                }
                name => bounds.take(&self.info.dwarf, self.unit, name, attribute.value()),
            }
        }
        Some((call, bounds))
    }

    /// Notes which addresses the function contains; says whether there are any.
    fn enter_function(&mut self, depth: isize, entry: UnitOffset<usize>, bounds: Bounds) -> bool {
        let (start, size) = self.collect_hits(bounds);
        if self.hits.is_empty() {
            return false;
        }
        self.functions += 1;
        self.outer.extend(self.function);
        self.function = Some(Around {
            depth,
            owner: self.functions,
        });
        for &hit in &self.hits {
            let found = &mut self.found[hit];
            if found.function.is_none_or(|known| size < known) {
                *found = UnitAnswer {
                    function: Some(size),
                    entry: Some(entry),
                    start,
                    owner: self.functions,
                    calls: Vec::new(),
                };
            }
        }
        true
    }

    fn add_call(&mut self, call: InlinedCall, bounds: Bounds) {
        let Some(function) = self.function else {
            return;
        };
        self.collect_hits(bounds);
        for &hit in &self.hits {
            let found = &mut self.found[hit];
            let inside_last = found
                .calls
                .last()
                .is_none_or(|last| last.depth < call.depth);
            if found.owner == function.owner && inside_last {
                found.calls.push(call);
            }
        }
    }

    /// Puts the indices of the addresses inside the bounds into `hits`; returns where the bounds begin, and their size.
    fn collect_hits(&mut self, bounds: Bounds) -> (u64, u64) {
        self.hits.clear();
        let (hits, addresses, left) = (&mut self.hits, self.addresses, self.hits_left);
        let (mut first_start, mut size, mut ranges) = (None, 0u64, 0);
        bounds.each(self.info, self.unit, |start, end| {
            first_start.get_or_insert(start);
            size = size.saturating_add(end.saturating_sub(start));
            ranges += 1;
            let first = addresses.partition_point(|&a| a < start);
            let inside = addresses[first..]
                .iter()
                .take(left.saturating_sub(hits.len()));
            let inside = inside.take_while(|&&a| a < end).count();
            hits.extend(first..first + inside);
        });
        if ranges > 1 {
            hits.sort_unstable();
            hits.dedup();
        }
        self.hits_left = left.saturating_sub(hits.len());
        (first_start.unwrap_or(0), size)
    }
}

/// Names of functions by their entries; remembers them, and the units that were needed.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// By entry: in the supplementary file or not, and its position.
    known: FxHashMap<(bool, usize), Option<NameNumber>>,
    units: Units<'a>,
    /// Whether plain names get the scopes around them.
    pub(super) qualifies: bool,
    /// The scopes of units, in which names without others are.
    scopes: FxHashMap<FileUnit, Scopes<'a>>,
    /// Whose code entries are and where they are defined, by the same.
    origins: FxHashMap<(bool, usize), Definition>,
    /// Files of units that declare functions; nothing stands for the unit at hand.
    files: FxHashMap<FileUnit, Option<Lines<'a>>>,
    /// Paths of these, by their numbers.
    paths: FxHashMap<(FileUnit, u64), Option<SourceFile>>,
}

/// A unit that declares functions; nothing stands for the unit at hand.
type FileUnit = Option<(bool, UnitId)>;

/// Whose code a function is, and where it is defined.
pub(super) type Definition = (Author, Option<Declared>);

/// Units that entries of another one refer to.
#[derive(Default)]
struct Units<'a>(FxHashMap<(bool, UnitId), Option<Unit<'a>>>);

/// How far chains of origins and specifications are followed.
const MAX_REFERENCES: usize = 16;

impl<'a> Names<'a> {
    /// The linkage name of the function that was inlined, else its plain name, as an index into `names`, which grows. Nothing where it is
    /// told in a file that is not here: addr2line has `??` there, which makes one function of all.
    pub(super) fn of_call(
        &mut self,
        info: &DebugInfo<'a>,
        unit: &Unit<'a>,
        call: &InlinedCall,
        names: &mut IndexVec<NameNumber, &'a [u8]>,
    ) -> Option<NameNumber> {
        let start = call.start();
        let key = key_of(unit, start);
        if let Some(&name) = self.known.get(&key) {
            return name;
        }
        let found = self.look_up(info, unit, start);
        let found = found.filter(|name| !name.is_empty());
        let name = found.map(|name| names.push(name));
        self.known.insert(key, name);
        name
    }

    /// Whose code the function is that was inlined, and where it is defined.
    pub(super) fn definition_of_call(
        &mut self,
        info: &DebugInfo<'a>,
        unit: &Unit<'a>,
        call: &InlinedCall,
    ) -> Definition {
        self.definition(info, unit, call.start())
    }

    /// The same of the function around an address.
    pub(super) fn definition_of_function(
        &mut self,
        info: &DebugInfo<'a>,
        unit: &Unit<'a>,
        found: &UnitAnswer,
    ) -> Definition {
        let entry = found.entry.map(EntryRef::Unit);
        let definition = entry.map(|entry| self.definition(info, unit, entry));
        definition.unwrap_or_default()
    }

    fn definition(&mut self, info: &DebugInfo<'a>, unit: &Unit<'a>, start: EntryRef) -> Definition {
        let key = key_of(unit, start);
        if let Some(known) = self.origins.get(&key) {
            return known.clone();
        }
        let (files, paths) = (&mut self.files, &mut self.paths);
        let is_lambda = std::cell::Cell::new(false);
        let mut look = |file: &DebugInfo<'a>, holder: &Unit<'a>, place, entry: &Named<'a>| {
            let has_name = |name: &[u8]| name.starts_with(b"operator()");
            is_lambda.set(is_lambda.get() || entry.plain.is_some_and(has_name));
            let declared = entry.file?;
            let path = paths.entry((place, declared)).or_insert_with(|| {
                let lines = files
                    .entry(place)
                    .or_insert_with(|| Lines::of(file, holder));
                let path = lines.as_ref()?.path(file, holder, declared)?;
                Some(SourceFile::of(&path))
            });
            Some(path.clone().map(|SourceFile { path, author }| {
                let (line, mark) = (entry.line, Mark::of(entry.plain, entry.column));
                (author, Some(Declared { path, line, mark }))
            }))
        };
        let mut found = self.units.follow(info, unit, start, Way::Same, &mut look);
        if found.is_none() && is_lambda.get() {
            // g++ says of a lambda's function only which object it is called on; the type of that has the place.
            found = self.units.follow(info, unit, start, Way::Object, &mut look);
        }
        let found = found.flatten().unwrap_or_default();
        self.origins.insert(key, found.clone());
        found
    }

    fn look_up(
        &mut self,
        info: &DebugInfo<'a>,
        unit: &Unit<'a>,
        start: EntryRef,
    ) -> Option<&'a [u8]> {
        let (mut plain, mut is_external, mut full) = (None, false, None);
        let (scopes, qualifies) = (&mut self.scopes, self.qualifies);
        let linkage =
            self.units
                .follow(info, unit, start, Way::Same, |file, unit, place, entry| {
                    plain = plain.or(entry.plain);
                    is_external |= entry.is_external;
                    let told = entry.linkage;
                    if let (None, None, true, Some(plain)) = (told, entry.next, qualifies, plain) {
                        let scopes = scopes
                            .entry(place)
                            .or_insert_with(|| Scopes::of(file, unit));
                        full = scopes.qualified(entry.at, plain);
                    }
                    told
                });
        // C in a namespace has no linkage name either, and is seen elsewhere.
        let full = full.filter(|_| linkage.is_none() && !is_external);
        let full = full.and_then(|full| info.kept(full));
        linkage.or(full).or(plain)
    }
}

/// What an entry is known by: in the supplementary file or not, and its position.
fn key_of(unit: &Unit<'_>, entry: EntryRef) -> (bool, usize) {
    match entry {
        EntryRef::Unit(offset) => {
            let unit_start = unit.header.debug_info_offset().map_or(0, |o| o.0);
            (false, unit_start.wrapping_add(offset.0))
        }
        EntryRef::File(offset) => (false, offset.0),
        EntryRef::Supplementary(offset) => (true, offset.0),
    }
}

impl<'a> Units<'a> {
    /// Goes from an entry to those that it refers to, until `look` finds something in one.
    fn follow<T>(
        &mut self,
        info: &DebugInfo<'a>,
        unit: &Unit<'a>,
        start: EntryRef,
        way: Way,
        mut look: impl FnMut(&DebugInfo<'a>, &Unit<'a>, Option<(bool, UnitId)>, &Named<'a>) -> Option<T>,
    ) -> Option<T> {
        let mut at = start;
        let mut place: Option<(bool, UnitId)> = None;
        let mut is_object = false;
        for _ in 0..MAX_REFERENCES {
            let supplementary = place.is_some_and(|p| p.0);
            let current = if supplementary {
                info.supplementary.as_deref()?
            } else {
                info
            };
            let offset = match at {
                EntryRef::Unit(offset) => offset,
                EntryRef::File(offset) => {
                    let (number, inside) = current.unit_of(offset)?;
                    place = Some((supplementary, number));
                    inside
                }
                EntryRef::Supplementary(offset) => {
                    let (number, inside) = info.supplementary.as_deref()?.unit_of(offset)?;
                    place = Some((true, number));
                    inside
                }
            };
            let (file, unit) = match place {
                None => (info, unit),
                Some(key) => {
                    let file = if key.0 {
                        info.supplementary.as_deref()?
                    } else {
                        info
                    };
                    (
                        file,
                        self.0
                            .entry(key)
                            .or_insert_with(|| file.unit(key.1))
                            .as_ref()?,
                    )
                }
            };
            let entry = Named::read(file, unit, offset)?;
            if let Some(found) = look(file, unit, place, &entry) {
                return Some(found);
            }
            at = match (entry.next, way) {
                (Some(next), _) => next,
                (None, Way::Same) => return None,
                (None, Way::Object) if is_object => entry.of_type?,
                (None, Way::Object) => {
                    is_object = true;
                    entry.object?
                }
            };
        }
        None
    }
}

/// Which references of an entry are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Those to entries that tell more of the same function.
    Same,
    /// These, then the one to the object that the function is called on, then those to its types.
    Object,
}

/// The names that one entry gives itself, and where more is said.
struct Named<'a> {
    at: UnitOffset<usize>,
    linkage: Option<&'a [u8]>,
    plain: Option<&'a [u8]>,
    /// Whether other units see it.
    is_external: bool,
    /// Index of the file in which it is declared.
    file: Option<u64>,
    /// In which line of it.
    line: u32,
    /// In which column of that.
    column: u32,
    next: Option<EntryRef>,
    /// The parameter that is the object it is called on.
    object: Option<EntryRef>,
    of_type: Option<EntryRef>,
}

impl<'a> Named<'a> {
    fn read(info: &DebugInfo<'a>, unit: &Unit<'a>, offset: UnitOffset<usize>) -> Option<Self> {
        let (mut entries, specs) = unit.entry(offset)?;
        let mut named = Self {
            at: offset,
            is_external: false,
            linkage: None,
            plain: None,
            file: None,
            line: 0,
            column: 0,
            next: None,
            object: None,
            of_type: None,
        };
        for spec in specs {
            let attribute = entries.read_attribute(*spec).ok()?;
            let text = || string(info, unit, attribute.value());
            match attribute.name() {
                dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => named.linkage = text(),
                dw::DW_AT_name => named.plain = text(),
                dw::DW_AT_external => {
                    named.is_external = matches!(attribute.value(), AttributeValue::Flag(true));
                }
                dw::DW_AT_decl_file => {
                    named.file = match attribute.value() {
                        AttributeValue::FileIndex(index) => Some(index),
                        _ => None,
                    };
                }
                dw::DW_AT_decl_line => named.line = small(&attribute),
                dw::DW_AT_decl_column => named.column = small(&attribute),
                dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                    named.next = EntryRef::of(attribute.value());
                }
                dw::DW_AT_object_pointer => named.object = EntryRef::of(attribute.value()),
                dw::DW_AT_type => named.of_type = EntryRef::of(attribute.value()),
                _ => {}
            }
        }
        Some(named)
    }
}
