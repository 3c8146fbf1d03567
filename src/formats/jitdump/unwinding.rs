//! `JIT_CODE_UNWINDING_INFO`: one record in, call frame information with its address out.
//!
//! Two layouts are in use. perf's `util/genelf.c`, V8 and CPython put `.eh_frame` first and its header
//! last; the specification's text and LLVM's ORC plugin put the header first. The address to which
//! pc-relative pointers refer is nowhere stated, so it is found by what makes the descriptions fit
//! the code.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, RunTimeEndian, UnwindSection as _,
};

use super::bytes::ByteOrder;
use crate::address::Avma;

/// Fixed part of the record.
const HEAD_SIZE: usize = 40;
/// `DW_EH_PE_udata8`, `DW_EH_PE_sdata8`, `DW_EH_PE_absptr`: an absolute address of eight bytes.
const ABSOLUTE: [u8; 3] = [0x04, 0x0c, 0x00];
/// More frame descriptions than one object has functions.
const MAX_DESCRIPTIONS: usize = 1 << 20;

/// The unwinding record of one or several pieces of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unwinding<'a> {
    eh_frame: &'a [u8],
    header: &'a [u8],
    header_first: bool,
    order: ByteOrder,
    mapped_size: u64,
    /// The load right behind the record, by which its address is found.
    anchor: Avma,
    anchor_size: u64,
    /// The address of `.eh_frame`, when it is known and some description covers the code.
    known_base: Option<Avma>,
}

/// Call frame information with the address that makes it fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EhFrameAt<'a> {
    /// The contents of `.eh_frame`, in the byte order of the dump's writer.
    pub eh_frame: &'a [u8],
    /// The address of its first byte.
    pub base: Avma,
}

impl<'a> Unwinding<'a> {
    /// The whole record, prefix included; `None` if its sizes are impossible.
    pub(crate) fn new(record: &'a [u8], order: ByteOrder) -> Option<Self> {
        let size = usize::try_from(order.u64(record, 16)?).ok()?;
        let header_size = usize::try_from(order.u64(record, 24)?).ok()?;
        let mapped_size = order.u64(record, 32)?;
        let data = record.get(HEAD_SIZE..)?.get(..size)?;
        let frame_size = size.checked_sub(header_size)?;
        let (frame_first, header_last) = data.split_at(frame_size);
        let (header_first, frame_last) = data.split_at(header_size);
        let leads = is_header(header_first)
            && starts_with_cie(frame_last, order)
            && !(is_header(header_last) && starts_with_cie(frame_first, order));
        let (eh_frame, header) = if leads {
            (frame_last, header_first)
        } else {
            (frame_first, header_last)
        };
        Some(Self {
            eh_frame,
            header,
            header_first: leads,
            order,
            mapped_size,
            anchor: Avma(0),
            anchor_size: 0,
            known_base: None,
        })
    }

    /// The contents of `.eh_frame`.
    #[must_use]
    pub const fn eh_frame(&self) -> &'a [u8] {
        self.eh_frame
    }

    /// `.eh_frame` as strict readers accept it. V8 declares pointers to exception tables and, by their
    /// encoding, that there are none (`zLR` with `DW_EH_PE_omit`), which `gimli` refuses to read.
    #[must_use]
    pub fn readable_eh_frame(&self) -> Cow<'a, [u8]> {
        let mut fixed = Cow::Borrowed(self.eh_frame);
        let mut at = 0;
        while let Some(length) = self.order.u32(self.eh_frame, at) {
            if omits_exception_table(self.eh_frame.get(at..).unwrap_or_default()) {
                // Read as two encodings of addresses, of which the second counts.
                fixed.to_mut()[at + 10] = b'R';
            }
            let Some(next) = (length as usize)
                .checked_add(4)
                .and_then(|size| size.checked_add(at))
            else {
                break;
            };
            if length == 0 {
                break;
            }
            at = next;
        }
        fixed
    }

    /// The same with a repaired copy of `.eh_frame`.
    #[must_use]
    pub const fn with_eh_frame(self, eh_frame: &'a [u8]) -> Self {
        Self { eh_frame, ..self }
    }

    /// The contents of `.eh_frame_hdr`.
    #[must_use]
    pub const fn header(&self) -> &'a [u8] {
        self.header
    }

    /// True if the header stands in front, as the specification's text has it, false if behind, as perf has it.
    #[must_use]
    pub const fn header_first(&self) -> bool {
        self.header_first
    }

    /// Number of bytes of unwinding data the writer mapped behind the code.
    #[must_use]
    pub const fn mapped_size(&self) -> u64 {
        self.mapped_size
    }

    /// True if there are no frame descriptions: the writer asks for frame-pointer unwinding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.u32(self.eh_frame, 0).unwrap_or(0) == 0
    }

    pub(crate) fn anchor(&mut self, address: Avma, size: u64) {
        (self.anchor, self.anchor_size) = (address, size);
    }

    /// The call frame information for the code of `size` bytes at `address`, with the first base
    /// that makes its frame descriptions lie inside the code it was written for.
    #[must_use]
    pub fn resolve(&self, address: Avma, size: u64) -> Option<EhFrameAt<'a>> {
        if let Some(base) = self.known_base {
            let eh_frame = self.eh_frame;
            return Some(EhFrameAt { eh_frame, base });
        }
        let base = self.base()?;
        let end = address.0.checked_add(size)?;
        let fits = |&(start, stop): &(u64, u64)| start < end && address.0 < stop;
        self.descriptions(base)
            .iter()
            .any(fits)
            .then_some(EhFrameAt {
                eh_frame: self.eh_frame,
                base,
            })
    }

    /// The same record for code that [`Unwinding::covered`] says it covers.
    pub(crate) const fn with_base(self, base: Avma) -> Self {
        Self {
            known_base: Some(base),
            ..self
        }
    }

    /// The address of `.eh_frame` and the address ranges of all frame descriptions, sorted; no ranges
    /// when no base fits.
    pub(crate) fn covered(&self) -> (Avma, Vec<(u64, u64)>) {
        let Some(base) = self.base() else {
            return (Avma(0), Vec::new());
        };
        let mut ranges = self.descriptions(base);
        ranges.sort_unstable();
        (base, ranges)
    }

    fn base(&self) -> Option<Avma> {
        if let Some(base) = self.absolute_base() {
            return Some(base);
        }
        let end = self.anchor.0.checked_add(self.anchor_size)?;
        let inside = |ranges: &[(u64, u64)]| {
            !ranges.is_empty()
                && ranges
                    .iter()
                    .all(|&(start, stop)| self.anchor.0 <= start && stop <= end && start < stop)
        };
        // perf lays the unwinding data behind the code, rounded up to 8 (`util/genelf.c`).
        let behind_code = Avma(
            self.anchor
                .0
                .checked_add(self.anchor_size.checked_next_multiple_of(8)?)?,
        );
        if inside(&self.descriptions(behind_code)) {
            return Some(behind_code);
        }
        let first = self.descriptions(Avma(0)).first()?.0;
        let at_code = Avma(self.anchor.0.wrapping_sub(first));
        inside(&self.descriptions(at_code)).then_some(at_code)
    }

    /// LLVM's ORC plugin writes the address of `.eh_frame` into the header.
    fn absolute_base(&self) -> Option<Avma> {
        let encoding = *self.header.get(1)?;
        let base = self.order.u64(self.header, 4)?;
        (self.header.first() == Some(&1) && ABSOLUTE.contains(&encoding) && base != 0)
            .then_some(Avma(base))
    }

    /// The address ranges of the frame descriptions if `.eh_frame` lies at `base`.
    fn descriptions(&self, base: Avma) -> Vec<(u64, u64)> {
        let endian = match self.order {
            ByteOrder::Little => RunTimeEndian::Little,
            ByteOrder::Big => RunTimeEndian::Big,
        };
        let readable = self.readable_eh_frame();
        let eh_frame = EhFrame::new(&readable, endian);
        let starts = BaseAddresses::default()
            .set_eh_frame(base.0)
            .set_text(self.anchor.0);
        let mut entries = eh_frame.entries(&starts);
        let mut ranges = Vec::new();
        // Each is read once: many descriptions may refer to a long one.
        let mut common = BTreeMap::new();
        // Damage ends the list: what was readable may still cover the code.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let fde = partial.parse(|section, bases, offset| match common.entry(offset.0) {
                Entry::Occupied(known) => {
                    Ok::<_, gimli::Error>(CommonInformationEntry::clone(known.get()))
                }
                Entry::Vacant(place) => Ok(place
                    .insert(section.cie_from_offset(bases, offset)?)
                    .clone()),
            });
            let Ok(fde) = fde else {
                break;
            };
            ranges.push((
                fde.initial_address(),
                fde.initial_address().wrapping_add(fde.len()),
            ));
            if ranges.len() >= MAX_DESCRIPTIONS {
                break;
            }
        }
        ranges
    }
}

/// True if a common information entry begins like V8's: `zLR`, and no pointers to exception tables.
fn omits_exception_table(entry: &[u8]) -> bool {
    const OMIT: u8 = 0xff;
    // Length and id; version; augmentation; alignments and return address register in one byte each;
    // length of the augmentation data; its first byte.
    matches!(entry, [_, _, _, _, 0, 0, 0, 0, 1 | 3, b'z', b'L', b'R', 0, code, data, register, 2, OMIT, ..]
        if [code, data, register].iter().all(|byte| *byte & 0x80 == 0))
}

/// `.eh_frame_hdr` begins with its version.
fn is_header(bytes: &[u8]) -> bool {
    bytes.first() == Some(&1)
}

/// `.eh_frame` begins with a length and the zero that marks a common information entry.
fn starts_with_cie(bytes: &[u8], order: ByteOrder) -> bool {
    order
        .u32(bytes, 0)
        .is_some_and(|length| length != 0 && (length as usize) < bytes.len())
        && order.u32(bytes, 4) == Some(0)
}
