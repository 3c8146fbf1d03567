//! The text of a kernel's symbols: `/proc/kallsyms`, or a copy of it.
//!
//! In: bytes. Out: symbols of the kernel and of its modules, sorted, and the addresses of a few that tell where a kernel lies.

use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::entries::{Origin, SymbolEntry, end_of_last};
use super::symtab::KALLSYMS_DATA;
use crate::ids::{IndexSlice, IndexVec, index_vec, numbers};

/// Most symbols; such a kernel has half a million. A line may have five bytes.
const MAX_SYMBOLS: usize = 4 << 20;

/// A parsed kallsyms text.
pub(super) struct Kallsyms<'a> {
    pub(super) text: &'a [u8],
    pub(super) kernel: Vec<SymbolEntry>,
    /// By name in brackets: `[ext4]`.
    pub(super) modules: FxHashMap<&'a [u8], Vec<SymbolEntry>>,
    pub(super) references: Vec<(&'static [u8], u64)>,
}

/// What a kallsyms says, or why it cannot be used.
type Said<'a> = Result<Arc<Kallsyms<'a>>, String>;

/// The same, once somebody has asked for it.
type SaidCell<'a> = Arc<OnceLock<Said<'a>>>;

/// Texts of kernels by their bytes, packed or not, and what they say.
#[derive(Default)]
pub(super) struct Texts<'a>(Mutex<Vec<(&'a [u8], SaidCell<'a>)>>);

impl<'a> Texts<'a> {
    /// What a kallsyms says; `read` reads it if nobody has read one of the same bytes. Each recording may have a copy of its
    /// machine's, and unpacking that takes longer than the rest of a small recording.
    pub(super) fn said(
        &self,
        bytes: &'a [u8],
        read: impl FnOnce() -> Result<Kallsyms<'a>, String>,
    ) -> Said<'a> {
        let cell = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match known.iter().find(|(other, _)| *other == bytes) {
                Some((_, cell)) => Arc::clone(cell),
                None => {
                    let cell = SaidCell::default();
                    known.push((bytes, Arc::clone(&cell)));
                    cell
                }
            }
        };
        cell.get_or_init(|| read().map(Arc::new)).clone()
    }
}

pub(super) const NO_LINES: &str = "holds no kallsyms lines (`ffffffff81000000 T _text`)";

/// Why a file cannot be a kallsyms, by its first lines; `None` for one that may be.
#[must_use]
pub fn kallsyms_problem(bytes: &[u8]) -> Option<&'static str> {
    /// A kallsyms begins with symbols; this holds a thousand of them.
    const FRONT: usize = 64 << 10;
    let mut front = &bytes[..bytes.len().min(FRONT)];
    let mut text = Vec::new();
    if front.starts_with(&[0x1f, 0x8b]) {
        // Of a gzip file's front, the end is missing.
        let _ = flate2::bufread::MultiGzDecoder::new(front)
            .take(FRONT as u64)
            .read_to_end(&mut text);
        front = &text;
    }
    let mut lines = front.split(|byte| *byte == b'\n');
    (!lines.any(|line| Line::parse(line).is_some())).then_some(NO_LINES)
}

numbers! {
    /// A module of the kernel, or the kernel itself.
    struct ModuleId(u32);
}

impl ModuleId {
    const KERNEL: Self = Self(0);
}

impl<'a> Kallsyms<'a> {
    /// Reads lines `ADDRESS TYPE NAME[\t[MODULE]]`; types T, W, D, B in either case are symbols
    /// (`util/symbol.c:symbol_type__filter`). Every symbol reaches to the next.
    pub(super) fn parse(text: &'a [u8]) -> Self {
        let mut lines = Vec::with_capacity(text.len() / 45);
        let mut modules: IndexVec<ModuleId, &'a [u8]> = index_vec![&b""[..]];
        let mut module_numbers: FxHashMap<&'a [u8], ModuleId> = FxHashMap::default();
        let mut references = Vec::new();
        let mut upper = Upper::ZERO;
        let mut at = 0;
        while at < text.len() && lines.len() < MAX_SYMBOLS {
            let (symbol, length) = Line::first(&text[at..], &mut upper);
            if let Some(symbol) = symbol {
                let module = match symbol.module {
                    b"" => ModuleId::KERNEL,
                    name => *module_numbers
                        .entry(name)
                        .or_insert_with(|| modules.push(name)),
                };
                if module == ModuleId::KERNEL {
                    note_reference(&mut references, symbol.name, symbol.address);
                }
                if let (true, Ok(name)) = (symbol.is_shown(), u32::try_from(at + symbol.name_at)) {
                    let data = if matches!(symbol.kind | 0x20, b't' | b'w') {
                        0
                    } else {
                        KALLSYMS_DATA
                    };
                    lines.push((symbol.address, name & !KALLSYMS_DATA | data, module));
                }
            }
            at += length + 1;
        }
        // By address, at equal ones in the order of the file, of which the last wins.
        lines.sort_by_key(|&(address, _, _)| address);
        Self::split(text, &lines, &modules, references)
    }

    fn split(
        text: &'a [u8],
        lines: &[(u64, u32, ModuleId)],
        modules: &IndexSlice<ModuleId, [&'a [u8]]>,
        references: Vec<(&'static [u8], u64)>,
    ) -> Self {
        let mut kernel = Vec::with_capacity(lines.len());
        let mut by_module: FxHashMap<&'a [u8], Vec<SymbolEntry>> = FxHashMap::default();
        for (i, &(start, name, module)) in lines.iter().enumerate() {
            let end = match lines.get(i + 1) {
                Some(&(next, _, other)) if other == module || next == start => next,
                // The last one of the kernel or of a module ends with the page behind its own.
                Some(_) => start
                    .saturating_add(4096)
                    .checked_next_multiple_of(4096)
                    .unwrap_or(u64::MAX),
                None => end_of_last(start),
            };
            let entry = SymbolEntry::new(start, Origin::raw(name), end - start);
            match module {
                ModuleId::KERNEL => kernel.push(entry),
                module => by_module.entry(modules[module]).or_default().push(entry),
            }
        }
        Self {
            text,
            kernel,
            modules: by_module,
            references,
        }
    }

    pub(super) fn reference(&self, name: &[u8]) -> Option<u64> {
        self.references
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, address)| address)
    }

    pub(super) fn is_restricted(&self) -> bool {
        self.kernel.iter().all(|e| e.start == 0)
    }
}

fn note_reference(references: &mut Vec<(&'static [u8], u64)>, name: &[u8], address: u64) {
    // Of 100 000 names a few remain to be compared.
    if !matches!(name, [b'_', b't' | b's' | b'e', ..]) {
        return;
    }
    for known in [&b"_text"[..], b"_stext", b"_etext", b"_edata"] {
        if name == known && !references.iter().any(|(noted, _)| *noted == known) {
            references.push((known, address));
        }
    }
}

struct Line<'a> {
    address: u64,
    kind: u8,
    name: &'a [u8],
    name_at: usize,
    module: &'a [u8],
}

impl<'a> Line<'a> {
    /// The first line of a text, if it is one, and its length.
    #[inline]
    fn first(text: &'a [u8], upper: &mut Upper) -> (Option<Self>, usize) {
        if let Some((line, length)) = Self::first_of_kernel(text, upper) {
            return (Some(line), length);
        }
        let length = memchr::memchr(b'\n', text).unwrap_or(text.len());
        (Self::parse(&text[..length]), length)
    }

    /// The same of a line of the kernel's own as the kernel writes it: sixteen digits, no module. Nearly all of 100 000 lines
    /// are like this one, and reading them is a third of a flat report of a small recording.
    #[inline]
    fn first_of_kernel(text: &'a [u8], upper: &mut Upper) -> Option<(Self, usize)> {
        const NAME: usize = 19;
        let (&[digits @ .., b' ', kind, b' '], rest) = text.split_first_chunk::<NAME>()? else {
            return None;
        };
        let end = memchr::memchr3(b'\n', b'\t', b' ', rest)?;
        let name = &rest[..end];
        let line = Self {
            address: upper.sixteen_digits(digits)?,
            kind,
            name,
            name_at: NAME,
            module: b"",
        };
        (rest[end] == b'\n' && end > 0).then_some((line, NAME + end))
    }

    fn parse(line: &'a [u8]) -> Option<Self> {
        let digits = match line.get(16) {
            Some(b' ') => 16,
            _ => line
                .iter()
                .take(17)
                .position(|&b| b == b' ')
                .filter(|&n| n > 0)?,
        };
        let address = parse_hex(&line[..digits])?;
        let [kind, b' ', rest @ ..] = &line[digits + 1..] else {
            return None;
        };
        let (name, module) = match memchr::memchr2(b'\t', b' ', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        let module = module.strip_suffix(b"\r").unwrap_or(module);
        (!name.is_empty()).then_some(Self {
            address,
            kind: *kind,
            name,
            name_at: digits + 3,
            module,
        })
    }

    fn is_shown(&self) -> bool {
        let ignored = matches!(self.name, [b'$', ..] | [b'.', b'L', ..] | [b'L', b'0', ..]);
        matches!(self.kind | 0x20, b't' | b'w' | b'd' | b'b') && !ignored
    }
}

/// The upper eight digits of the last address, which nearly all have, and what they stand for.
struct Upper {
    digits: [u8; 8],
    value: u64,
}

impl Upper {
    const ZERO: Self = Self {
        digits: *b"00000000",
        value: 0,
    };

    /// The number that sixteen digits stand for, eight of them at a time.
    #[inline]
    fn sixteen_digits(&mut self, digits: [u8; 16]) -> Option<u64> {
        let (upper, lower) = digits.split_first_chunk::<8>()?;
        if *upper != self.digits {
            self.value = eight_digits(*upper)?;
            self.digits = *upper;
        }
        Some(self.value << 32 | eight_digits(*lower.first_chunk()?)?)
    }
}

/// The number that eight digits of either case stand for.
fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let text = u64::from_be_bytes(digits);
    // One in each byte that may be a letter.
    let letters = text >> 6 & ONES;
    // A byte is 24 at most: none reaches into its neighbour.
    let values = (text & (0x0f * ONES)) + 9 * letters;
    // Written again in small letters, with 10 to 15 for those of letters only.
    let again = values + 0x30 * ONES + (0x61 - 0x3a) * letters;
    let of_letters = (values + 6 * ONES) >> 4 & ONES;
    if again != text | (0x20 * letters) || of_letters != letters || values & (0xf0 * ONES) != 0 {
        return None;
    }
    let pairs = (values >> 4 | values) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs >> 8 | pairs) & 0x0000_ffff_0000_ffff;
    Some((fours >> 16 | fours) & 0xffff_ffff)
}

/// The number that digits of either case stand for; the upper bits of longer ones are lost.
pub(super) fn parse_hex(digits: &[u8]) -> Option<u64> {
    let (mut value, mut seen) = (0u64, 0);
    for &digit in digits {
        let digit = HEX[usize::from(digit)];
        value = value << 4 | u64::from(digit & 0xf);
        seen |= digit;
    }
    (seen != NO_DIGIT).then_some(value)
}

/// What is no hexadecimal digit; all of them together have fewer bits.
const NO_DIGIT: u8 = 0xff;

/// Values of hexadecimal digits.
const HEX: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_hexadecimal() {
        assert_eq!(parse_hex(b"ffffffff81aBcD09"), Some(0xffff_ffff_81ab_cd09));
        assert_eq!(parse_hex(b"0f"), Some(15));
        for wrong in [
            &b"12g4"[..],
            b"/123",
            b":",
            b"@",
            b"`1",
            b"G",
            b"0x12",
            b"\xff",
        ] {
            assert_eq!(parse_hex(wrong), None);
        }
    }

    #[test]
    fn sixteen_digits_are_what_they_are_one_by_one() {
        let mut upper = Upper::ZERO;
        for at in 0..16 {
            for byte in 0..=255 {
                let mut digits = *b"0123456789abcDEF";
                digits[at] = byte;
                let number = upper.sixteen_digits(digits);
                assert_eq!(number, parse_hex(&digits), "{digits:?}");
            }
        }
    }

    #[test]
    fn the_first_line_is_the_same_read_at_once_and_byte_by_byte() {
        for line in [
            &b"ffffffff81000000 T _stext"[..],
            b"ffffffff81000000 T ",
            b"ffffffff81000000 T",
            b"ffffffff8100000g T _stext",
            b"fffffff81000000 T _stext",
            b"ffffffff81000000  T _stext",
            b"ffffffff81000000 t mod_init\t[ext4]",
            b"ffffffff81000000 t name with words",
            b"",
        ] {
            let with_end = [line, b"\nffffffff81000001 T other\n"].concat();
            let facts = |line: &Line<'_>| {
                let texts = [line.name, line.module].map(<[u8]>::to_vec);
                (line.address, line.kind, line.name_at, texts)
            };
            let mut upper = Upper::ZERO;
            let (first, length) = Line::first(&with_end, &mut upper);
            assert_eq!(length, line.len());
            assert_eq!(
                first.as_ref().map(facts),
                Line::parse(line).as_ref().map(facts)
            );
            let last = Line::first(line, &mut upper).0;
            assert_eq!(last.as_ref().map(facts), first.as_ref().map(facts));
        }
    }
}
