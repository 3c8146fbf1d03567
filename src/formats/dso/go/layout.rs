//! Where a `.gopclntab` has its parts, by version.

use std::ops::Range;

use super::memory::Memory;

/// The formats that differ, by the first Go that wrote them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Version {
    Go1_2,
    Go1_16,
    Go1_18,
    Go1_20,
}

/// The parts of a table.
pub(super) struct Layout<'a> {
    pub(super) version: Version,
    /// Addresses in tables of values count in these.
    pub(super) quantum: u64,
    pub(super) count: usize,
    /// Added to addresses of functions.
    text: u64,
    /// Pairs of address and position in `descriptions`, and the end of the last function.
    functions: &'a [u8],
    /// Of a number in `functions`.
    width: usize,
    descriptions: &'a [u8],
    names: &'a [u8],
    /// Numbers of the files of each unit.
    units: &'a [u8],
    files: &'a [u8],
    /// Tables of values by address.
    pub(super) values: &'a [u8],
    /// Where inlined calls may be described, besides what the function points to itself.
    pub(super) inline_bases: Vec<u64>,
}

/// The words of `runtime.moduledata` that are the same from Go 1.16 on.
const WORDS: usize = 64;
const MIN_PC: usize = 20;
const TEXT: usize = 22;
/// From here on pointers stand that differ from version to version.
const OTHERS: Range<usize> = 24..WORDS;

impl<'a> Layout<'a> {
    /// `None` if it is no such table or one that makes no sense.
    pub(super) fn of(
        data: &'a [u8],
        at: u64,
        text: &Range<u64>,
        memory: &Memory<'a>,
    ) -> Option<Self> {
        let magic = u32::from_le_bytes(*data.first_chunk()?);
        let (quantum, pointer) = (*data.get(6)?, *data.get(7)?);
        let version = match magic {
            0xffff_fffb => Version::Go1_2,
            0xffff_fffa => Version::Go1_16,
            0xffff_fff0 => Version::Go1_18,
            0xffff_fff1 => Version::Go1_20,
            _ => return None,
        };
        if data.get(4..6)? != [0, 0] || !matches!(quantum, 1 | 2 | 4) || pointer != 8 {
            return None;
        }
        let word = |number: usize| word_at(data, 8 + number * 8);
        let part = |number: usize| data.get(usize::try_from(word(number)?).ok()?..);
        let count = usize::try_from(word(0)?).ok()?;
        let mut layout = Self {
            version,
            quantum: quantum.into(),
            count,
            text: 0,
            functions: data.get(16..)?,
            width: 8,
            descriptions: data,
            names: data,
            units: &[],
            files: data,
            values: data,
            inline_bases: Vec::new(),
        };
        if version > Version::Go1_2 {
            // Go 1.18 put the beginning of the text before the offsets.
            let first = if version == Version::Go1_16 { 2 } else { 3 };
            layout.names = part(first)?;
            layout.units = part(first + 1)?;
            layout.files = part(first + 2)?;
            layout.values = part(first + 3)?;
            layout.descriptions = part(first + 4)?;
            layout.functions = layout.descriptions;
            let names = at.wrapping_add(word(first)?);
            let module = memory.structure::<WORDS>(at, names);
            if let Some(module) = &module {
                layout.inline_bases = module[OTHERS].to_vec();
            }
            if version >= Version::Go1_18 {
                layout.width = 4;
                layout.text = layout.text_start(word(2)?, module.as_ref(), text)?;
            }
        }
        layout.is_sane(text).then_some(layout)
    }

    /// The address that functions count from: of the module's description, else of the table (Go 1.26 and
    /// position-independent programs have 0 there), else where the text begins.
    fn text_start(
        &self,
        own: u64,
        module: Option<&[u64; WORDS]>,
        text: &Range<u64>,
    ) -> Option<u64> {
        let first = u64::from(u32_at(self.functions, 0)?);
        let of_module = module
            .filter(|words| words[TEXT].checked_add(first) == Some(words[MIN_PC]))
            .map(|words| words[TEXT]);
        let own = Some(own).filter(|own| text.contains(own));
        of_module.or(own).or(Some(text.start))
    }

    /// Functions in order, all of them in the text.
    fn is_sane(&self, text: &Range<u64>) -> bool {
        let Some(bytes) = self
            .count
            .checked_mul(2)
            .and_then(|n| n.checked_add(1)?.checked_mul(self.width))
        else {
            return false;
        };
        if self.count == 0 || self.functions.len() < bytes {
            return false;
        }
        let starts = || (0..=self.count).filter_map(|index| self.start(index));
        let inside = self.start(0).is_some_and(|first| text.contains(&first));
        inside && starts().count() == self.count + 1 && starts().is_sorted()
    }

    fn number(&self, at: usize) -> Option<u64> {
        match self.width {
            4 => u32_at(self.functions, at).map(u64::from),
            _ => word_at(self.functions, at),
        }
    }

    /// Where a function begins; the one behind the last ends it.
    pub(super) fn start(&self, index: usize) -> Option<u64> {
        self.text
            .checked_add(self.number(index.checked_mul(2 * self.width)?)?)
    }

    /// The last function that begins at or before an address.
    pub(super) fn index_of(&self, at: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.start(middle)? <= at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// Position of a function's description.
    pub(super) fn description(&self, index: usize) -> Option<usize> {
        let at = self.number((index.checked_mul(2)?.checked_add(1)?).checked_mul(self.width)?)?;
        usize::try_from(at).ok()
    }

    /// A number of a description, `at` bytes behind its begin.
    pub(super) fn field(&self, description: usize, at: usize) -> Option<u32> {
        u32_at(self.descriptions, description.checked_add(at)?)
    }

    /// A pointer of a description.
    pub(super) fn pointer(&self, description: usize, at: usize) -> Option<u64> {
        word_at(self.descriptions, description.checked_add(at)?)
    }

    pub(super) const fn name_at(&self) -> usize {
        self.width
    }

    pub(super) const fn height_at(&self) -> usize {
        self.width + 12
    }

    pub(super) const fn file_at(&self) -> usize {
        self.width + 16
    }

    pub(super) const fn line_at(&self) -> usize {
        self.width + 20
    }

    /// Tables of other values, by number: how many there are, and where the first's number stands.
    pub(super) fn more_values(&self, description: usize) -> Option<(u32, usize)> {
        let count = self.field(description, self.width + 24)?;
        Some((count, self.width + 28 + self.fixed()))
    }

    /// Bytes of a description between the number of those tables and the first of them.
    const fn fixed(&self) -> usize {
        match self.version {
            Version::Go1_2 => 4,
            Version::Go1_16 | Version::Go1_18 => 8,
            Version::Go1_20 => 12,
        }
    }

    /// `funcFlag`s (Go 1.17 and later; before that the byte is 0).
    pub(super) fn flags(&self, description: usize) -> Option<u8> {
        let at = self.width + 28 + self.fixed() - 3;
        self.descriptions.get(description.checked_add(at)?).copied()
    }

    /// Number of other data of a function.
    pub(super) fn data_count(&self, description: usize) -> Option<u8> {
        let at = self.width + 28 + self.fixed() - 1;
        self.descriptions.get(description.checked_add(at)?).copied()
    }

    /// A name by its position.
    pub(super) fn name(&self, at: u32) -> Option<&'a [u8]> {
        text_at(self.names, at)
    }

    /// A file by its number in the function.
    pub(super) fn file(&self, description: usize, number: i32) -> Option<&'a [u8]> {
        let number = usize::try_from(number).ok()?;
        if self.version == Version::Go1_2 {
            let table = (self.count * 2 + 1) * self.width;
            let files = u32_at(self.functions, table)? as usize;
            let at = u32_at(self.files, files.checked_add(number.checked_mul(4)?)?)?;
            return text_at(self.files, at);
        }
        let unit = self.field(description, self.width + 28)? as usize;
        let at = u32_at(self.units, unit.checked_add(number)?.checked_mul(4)?)?;
        (at != u32::MAX).then(|| text_at(self.files, at))?
    }
}

fn word_at(data: &[u8], at: usize) -> Option<u64> {
    let bytes = data.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// A text that ends with a zero, of a length that names and paths have.
fn text_at(data: &[u8], at: u32) -> Option<&[u8]> {
    const LONGEST: usize = 1 << 14;
    let tail = data.get(at as usize..)?;
    let end = memchr::memchr(0, &tail[..tail.len().min(LONGEST)])?;
    (end > 0).then(|| &tail[..end])
}
