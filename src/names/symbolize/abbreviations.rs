//! Tables of abbreviations: how the entries of units are laid out.
//!
//! In: the bytes of a table, and how wide the units' addresses and offsets are. Out: declarations by their codes, each with
//! what passing such an entry by takes. Nearly all entries are passed by, so that this is worked out once for each
//! declaration, not for each entry: in a recording with many inlined functions these were a third of all instructions.
//! Format: DWARF 5, 7.5.3.

use gimli::{AttributeSpecification, UnitHeader, constants as dw};

use crate::ids::Part;

pub(super) type Reader<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;

/// Compilers use some twenty; attributes need no bytes, so that one byte of an entry may stand for any number.
pub(super) const MAX_ATTRIBUTES: usize = 256;

/// The declarations of one table.
#[derive(Default)]
pub(super) struct Abbreviations {
    /// Ordered by code.
    all: Vec<Abbreviation>,
    specs: Vec<AttributeSpecification>,
    skips: Vec<Skip>,
}

/// One declaration.
#[derive(Clone, Copy)]
pub(super) struct Abbreviation {
    code: u64,
    pub(super) tag: gimli::DwTag,
    pub(super) has_children: bool,
    /// Whether such an entry may say where its code lies, or where the next entry beside it begins.
    pub(super) is_placed: bool,
    specs: Part<AttributeSpecification>,
    skips: Part<Skip>,
}

/// A part of an entry, on the way to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Skip {
    /// So many bytes, of one or more attributes.
    Bytes(u32),
    /// A number of its own length.
    Number,
    /// A text and its NUL.
    Text,
    /// A block behind its length, in so many bytes.
    Block(u8),
    /// A block behind its length, a number of its own length.
    NumberedBlock,
    /// The form stands in the entry.
    Indirect,
    /// Nobody knows how long it is.
    Unknown,
}

impl Skip {
    fn of(spec: AttributeSpecification, header: &UnitHeader<Reader<'_>>) -> Self {
        if let Some(bytes) = spec.size(header).and_then(|size| u32::try_from(size).ok()) {
            return Self::Bytes(bytes);
        }
        match spec.form() {
            dw::DW_FORM_block1 => Self::Block(1),
            dw::DW_FORM_block2 => Self::Block(2),
            dw::DW_FORM_block4 => Self::Block(4),
            dw::DW_FORM_block | dw::DW_FORM_exprloc => Self::NumberedBlock,
            dw::DW_FORM_string => Self::Text,
            dw::DW_FORM_udata
            | dw::DW_FORM_sdata
            | dw::DW_FORM_ref_udata
            | dw::DW_FORM_strx
            | dw::DW_FORM_GNU_str_index
            | dw::DW_FORM_addrx
            | dw::DW_FORM_GNU_addr_index
            | dw::DW_FORM_loclistx
            | dw::DW_FORM_rnglistx => Self::Number,
            dw::DW_FORM_indirect => Self::Indirect,
            _ => Self::Unknown,
        }
    }

    /// Passes it by; `None` at the end of the bytes. Few are neither bytes nor numbers.
    #[inline(always)]
    fn pass(self, rest: &mut &[u8], header: &UnitHeader<Reader<'_>>) -> Option<()> {
        let length = match self {
            Self::Bytes(bytes) => bytes as usize,
            Self::Number => rest.iter().position(|byte| byte & 0x80 == 0)? + 1,
            _ => return self.pass_other(rest, header),
        };
        *rest = rest.get(length..)?;
        Some(())
    }

    fn pass_other(self, rest: &mut &[u8], header: &UnitHeader<Reader<'_>>) -> Option<()> {
        let length = match self {
            Self::Text => (memchr::memchr(0, rest)? + 1) as u64,
            Self::Block(width) => {
                let (length, behind) = rest.split_at_checked(usize::from(width))?;
                *rest = behind;
                let digits = length.iter().rev();
                digits.fold(0, |number, &byte| number << 8 | u64::from(byte))
            }
            Self::NumberedBlock => number(rest)?,
            Self::Indirect => {
                let mut form = dw::DW_FORM_indirect;
                while form == dw::DW_FORM_indirect {
                    form = gimli::DwForm(u16::try_from(number(rest)?).ok()?);
                }
                let constant = (form == dw::DW_FORM_implicit_const).then_some(0);
                let spec = AttributeSpecification::new(dw::DW_AT_null, form, constant);
                return Self::of(spec, header).pass(rest, header);
            }
            Self::Bytes(_) | Self::Number | Self::Unknown => return None,
        };
        *rest = rest.get(usize::try_from(length).ok()?..)?;
        Some(())
    }
}

impl Abbreviations {
    /// Reads a table to its end; `None` if it is damaged, or so many more attributes and declarations `may` not be read. Addresses and
    /// offsets are as wide as those of the unit.
    pub(super) fn parse(
        mut rest: &[u8],
        header: &UnitHeader<Reader<'_>>,
        mut may: impl FnMut(usize) -> bool,
    ) -> Option<Self> {
        let mut table = Self::default();
        // A table may end with its section.
        while !rest.is_empty() {
            let code = number(&mut rest)?;
            if code == 0 {
                break;
            }
            let declaration = declaration(&mut rest)?;
            let specs = table.specs.len();
            let mut count = 0;
            while let Some(spec) = specification(&mut rest)? {
                // No more are kept than show that they are too many.
                if count <= MAX_ATTRIBUTES {
                    table.specs.push(spec);
                }
                count += 1;
            }
            if !may(1 + count) {
                return None;
            }
            table.add(code, declaration, specs, header);
        }
        if !table.all.is_sorted_by(|a, b| a.code < b.code) {
            table.all.sort_unstable_by_key(|found| found.code);
            let doubled = |pair: &[Abbreviation]| pair[0].code == pair[1].code;
            if table.all.windows(2).any(doubled) {
                return None;
            }
        }
        Some(table)
    }

    fn add(
        &mut self,
        code: u64,
        (tag, has_children): (gimli::DwTag, bool),
        specs: usize,
        header: &UnitHeader<Reader<'_>>,
    ) {
        let (first, mut is_placed) = (self.skips.len(), false);
        for spec in &self.specs[specs..] {
            is_placed |= matches!(
                spec.name(),
                dw::DW_AT_low_pc | dw::DW_AT_ranges | dw::DW_AT_sibling
            );
            let skip = Skip::of(*spec, header);
            match (self.skips[first..].last_mut(), skip) {
                (_, Skip::Bytes(0)) => {}
                (Some(Skip::Bytes(before)), Skip::Bytes(more)) => {
                    *before = before.saturating_add(more);
                }
                _ => self.skips.push(skip),
            }
        }
        self.all.push(Abbreviation {
            code,
            tag,
            has_children,
            is_placed,
            specs: Part::new(specs..self.specs.len()),
            skips: Part::new(first..self.skips.len()),
        });
    }

    /// The declaration of a code.
    #[inline]
    pub(super) fn get(&self, code: u64) -> Option<&Abbreviation> {
        // Compilers number them from 1.
        let index = usize::try_from(code.wrapping_sub(1)).ok()?;
        if let Some(found) = self.all.get(index).filter(|found| found.code == code) {
            return Some(found);
        }
        let place = self.all.binary_search_by_key(&code, |found| found.code);
        place.ok().map(|place| &self.all[place])
    }

    /// The attributes of such an entry.
    #[inline]
    pub(super) fn specs(&self, of: &Abbreviation) -> &[AttributeSpecification] {
        of.specs.of(&self.specs)
    }

    /// Passes the attributes of such an entry by; `None` at the end of the bytes.
    #[inline(always)]
    pub(super) fn pass(
        &self,
        of: &Abbreviation,
        rest: &mut &[u8],
        header: &UnitHeader<Reader<'_>>,
    ) -> Option<()> {
        for skip in of.skips.of(&self.skips) {
            skip.pass(rest, header)?;
        }
        Some(())
    }
}

/// Reads what a declaration says in front of its attributes: its tag, and whether entries are below such an entry.
pub(super) fn declaration(rest: &mut &[u8]) -> Option<(gimli::DwTag, bool)> {
    let tag = u16::try_from(number(rest)?).ok().filter(|tag| *tag != 0)?;
    let (&children, behind) = rest.split_first()?;
    *rest = behind;
    (children <= 1).then_some((gimli::DwTag(tag), children == 1))
}

/// Passes by what a declaration says of its attributes, and says how many there are.
pub(super) fn skip_specifications(rest: &mut &[u8]) -> Option<usize> {
    let mut count = 0;
    loop {
        let (name, form) = (number(rest)?, number(rest)?);
        if name == 0 && form == 0 {
            return Some(count);
        }
        if form == u64::from(dw::DW_FORM_implicit_const.0) {
            signed(rest)?;
        }
        count += 1;
    }
}

/// Reads how one attribute is stored; `Some(None)` at the end of the declaration.
#[inline(always)]
pub(super) fn specification(rest: &mut &[u8]) -> Option<Option<AttributeSpecification>> {
    let name = gimli::DwAt(u16::try_from(number(rest)?).ok()?);
    let form = gimli::DwForm(u16::try_from(number(rest)?).ok()?);
    if name.0 == 0 && form.0 == 0 {
        return Some(None);
    }
    if name.0 == 0 || form.0 == 0 {
        return None;
    }
    let constant = if form == dw::DW_FORM_implicit_const {
        Some(signed(rest)?)
    } else {
        None
    };
    Some(Some(AttributeSpecification::new(name, form, constant)))
}

/// Reads an unsigned number of its own length (LEB128).
#[inline(always)]
pub(super) fn number(rest: &mut &[u8]) -> Option<u64> {
    match rest.split_first()? {
        (&byte @ ..0x80, behind) => {
            *rest = behind;
            Some(byte.into())
        }
        _ => long_number(rest),
    }
}

fn long_number(rest: &mut &[u8]) -> Option<u64> {
    let mut reader = Reader::new(rest, gimli::LittleEndian);
    let number = gimli::Reader::read_uleb128(&mut reader).ok()?;
    *rest = reader.slice();
    Some(number)
}

/// The same with a sign.
#[inline]
pub(super) fn signed(rest: &mut &[u8]) -> Option<i64> {
    match **rest {
        // The last bit but one is the sign.
        [byte @ ..0x80, ref behind @ ..] => {
            *rest = behind;
            Some(i64::from((byte << 1).cast_signed() >> 1))
        }
        [low, high @ ..0x80, ref behind @ ..] => {
            *rest = behind;
            let number = u16::from(low & 0x7f) | u16::from(high) << 7;
            Some(i64::from((number << 2).cast_signed() >> 2))
        }
        _ => long_signed(rest),
    }
}

fn long_signed(rest: &mut &[u8]) -> Option<i64> {
    let mut reader = Reader::new(rest, gimli::LittleEndian);
    let number = gimli::Reader::read_sleb128(&mut reader).ok()?;
    *rest = reader.slice();
    Some(number)
}

#[cfg(test)]
mod tests {
    use gimli::{DebugInfo, DwForm, LittleEndian, UnitOffset};
    use proptest::prelude::*;

    use super::*;

    /// A unit of DWARF 4 or 5 with these bytes as entries.
    fn section(version: u16, wide: bool, entries: &[u8]) -> Vec<u8> {
        let mut unit = version.to_le_bytes().to_vec();
        let offset: &[u8] = if wide { &[0; 8] } else { &[0; 4] };
        if version >= 5 {
            unit.extend([1, 8]);
            unit.extend(offset);
        } else {
            unit.extend(offset);
            unit.push(8);
        }
        unit.extend(entries);
        let mut section = Vec::new();
        if wide {
            section.extend([0xff; 4]);
            section.extend((unit.len() as u64).to_le_bytes());
        } else {
            section.extend(u32::try_from(unit.len()).expect("short").to_le_bytes());
        }
        section.extend(unit);
        section
    }

    /// A table of one declaration of these forms, with `code`.
    fn table(code: u8, forms: &[u16]) -> Vec<u8> {
        let mut bytes = vec![code, 0x34, 0];
        for form in forms {
            bytes.push(0x02);
            bytes.extend([form & 0x7f | 0x80, form >> 7].map(|byte| byte as u8));
            if *form == dw::DW_FORM_implicit_const.0 {
                bytes.push(5);
            }
        }
        bytes.extend([0, 0, 0]);
        bytes
    }

    fn form() -> impl Strategy<Value = u16> {
        prop_oneof![8 => 1u16..0x2d, 1 => 0x1f00u16..0x1f22]
    }

    proptest! {
        /// What is passed by in steps worked out before is what gimli passes attribute by attribute.
        #[test]
        fn as_many_bytes_as_gimli_skips(
            forms in prop::collection::vec(form(), 0..6),
            entries in prop::collection::vec(prop_oneof![0u8..0x30, any::<u8>()], 1..80),
            version in 4u16..6,
            wide: bool,
        ) {
            let section = section(version, wide, &entries);
            let info = DebugInfo::new(&section, LittleEndian);
            let header = info.units().next().expect("sound").expect("one");
            let own = Abbreviations::parse(&table(7, &forms), &header, |_| true).expect("sound");
            let declared = own.get(7).expect("declared");
            let mut rest = &entries[..];
            let passed = own.pass(declared, &mut rest, &header).map(|()| entries.len() - rest.len());

            let none = gimli::Abbreviations::default();
            let at = header.root_offset();
            let mut theirs = header.entries_raw(&none, Some(UnitOffset(at.0))).expect("sound");
            let specs = own.specs(declared);
            let skipped = theirs.skip_attributes(specs).ok();
            prop_assert_eq!(passed, skipped.map(|()| theirs.next_offset().0 - at.0));
            prop_assert_eq!(specs.iter().map(|spec| spec.form()).collect::<Vec<_>>(), forms.into_iter().map(DwForm).collect::<Vec<_>>());
        }

        /// Of any bytes there is the same table as gimli's, or none.
        #[test]
        fn the_same_declarations_as_gimli_finds(bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..60)) {
            let section = section(5, false, &[]);
            let info = DebugInfo::new(&section, LittleEndian);
            let header = info.units().next().expect("sound").expect("one");
            let own = Abbreviations::parse(&bytes, &header, |_| true);
            let theirs = gimli::DebugAbbrev::new(&bytes, LittleEndian).abbreviations(gimli::DebugAbbrevOffset(0));
            prop_assert_eq!(own.is_some(), theirs.is_ok());
            if let (Some(own), Ok(theirs)) = (own, theirs) {
                for found in &own.all {
                    let same = theirs.get(found.code).expect("declared");
                    prop_assert_eq!((found.tag, found.has_children), (same.tag(), same.has_children()));
                    prop_assert_eq!(own.specs(found), same.attributes());
                    prop_assert_eq!(own.get(found.code).expect("declared").code, found.code);
                }
            }
        }
    }

    #[test]
    fn a_budget_ends_a_table_and_codes_need_no_order() {
        let section = section(5, false, &[]);
        let info = DebugInfo::new(&section, LittleEndian);
        let header = info.units().next().expect("sound").expect("one");
        let several: Vec<u8> = [9, 3, 200]
            .iter()
            .flat_map(|code| {
                let mut one = table(*code, &[1, 1]);
                one.pop();
                if *code == 200 {
                    one.splice(0..1, [0xc8, 0x01]);
                }
                one
            })
            .chain([0])
            .collect();
        let of = |most: usize| {
            let mut left = most;
            Abbreviations::parse(&several, &header, |count| {
                left = left.saturating_sub(count);
                left > 0
            })
        };
        let all = of(100).expect("sound");
        assert_eq!(
            [3, 9, 200, 4].map(|code| all.get(code).is_some()),
            [true, true, true, false]
        );
        assert!(of(5).is_none());
        let twice = [table(9, &[1]), table(9, &[1])].map(|mut one| {
            one.pop();
            one
        });
        assert!(Abbreviations::parse(&twice.concat(), &header, |_| true).is_none());
    }
}
