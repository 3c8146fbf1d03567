//! ARM's own tables for unwinding: `.ARM.exidx` and `.ARM.extab`.
//!
//! In: the sections of a file. Out: the [`Frame`] of the function around an address, as it is behind the calls of the
//! function's body: the tables say nothing of prologues and epilogues. Sources: "Exception Handling ABI for the ARM Architecture"
//! (IHI 0038), sections 6 (index table) and 10 (bytecode).

use crate::dso::elf::ElfFile;

/// The tables of one file.
pub(crate) struct ExceptionTables<'a> {
    /// Pairs of words, by the function's address, which each counts from its own place.
    index: &'a [[u8; 8]],
    index_at: u32,
    /// The sections that entries may lie in, with their addresses.
    entries: &'a [u8],
    entries_at: u32,
}

/// Where a function's caller is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// The register that the caller's stack pointer counts from.
    pub register: u8,
    /// How many bytes above it the caller's stack pointer is.
    pub offset: i32,
    /// Where r0 to r15 were saved, in bytes from the caller's stack pointer.
    pub saved: [Option<i32>; 16],
}

const SP: u8 = 13;
const LR: u8 = 14;
const PC: u8 = 15;
/// "The function cannot be unwound."
const CANNOT: u32 = 1;
const FINISH: u8 = 0xb0;
/// Frames beyond this are damage.
const FAR: i32 = 1 << 24;

impl<'a> ExceptionTables<'a> {
    /// The tables of a file, if its index is sorted.
    #[must_use]
    pub(crate) fn of(image: &ElfFile<'a>) -> Option<Self> {
        let index = image.section(".ARM.exidx")?;
        let extab = image.section(".ARM.extab");
        let (entries, entries_at) = extab.map_or((&[][..], 0), |s| (s.data, s.svma.0));
        Self::new(index.data, index.svma.0, entries, entries_at)
    }

    /// The tables in these bytes, which are mapped at these addresses.
    #[must_use]
    pub(crate) fn new(
        index: &'a [u8],
        index_at: u64,
        entries: &'a [u8],
        entries_at: u64,
    ) -> Option<Self> {
        let this = Self {
            index: index.as_chunks().0,
            index_at: u32::try_from(index_at).ok()?,
            entries,
            entries_at: u32::try_from(entries_at).ok()?,
        };
        let starts = (0..this.index.len()).map(|number| this.start(number));
        (!this.index.is_empty() && starts.is_sorted()).then_some(this)
    }

    /// The frame of the function around a stated address; `None` where the tables have none.
    #[must_use]
    pub(crate) fn frame(&self, svma: u64) -> Option<Frame> {
        let svma = u32::try_from(svma).ok()?;
        let number = self.last_before(svma)?;
        let word = second(&self.index[number]);
        if word == CANNOT {
            return None;
        }
        if word >> 31 != 0 {
            return Machine::new().run(compact(word)?.iter().copied());
        }
        let place = self.place(number).wrapping_add(4);
        let at = place
            .wrapping_add(offset(word))
            .checked_sub(self.entries_at)?;
        entry(self.entries.get(usize::try_from(at).ok()?..)?)
    }

    /// The last entry whose function begins at or before an address.
    fn last_before(&self, svma: u32) -> Option<usize> {
        let (mut low, mut high) = (0, self.index.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.start(middle) <= svma {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// The address of an entry.
    fn place(&self, number: usize) -> u32 {
        let bytes = u32::try_from(number.wrapping_mul(8)).unwrap_or(u32::MAX);
        self.index_at.wrapping_add(bytes)
    }

    /// The address of its function.
    fn start(&self, number: usize) -> u32 {
        let [a, b, c, d, ..] = self.index[number];
        let word = u32::from_le_bytes([a, b, c, d]);
        self.place(number).wrapping_add(offset(word))
    }
}

fn second(pair: &[u8; 8]) -> u32 {
    let [.., a, b, c, d] = *pair;
    u32::from_le_bytes([a, b, c, d])
}

/// A distance of 31 bits.
const fn offset(word: u32) -> u32 {
    ((word << 1).cast_signed() >> 1).cast_unsigned()
}

/// The three instructions in an entry of the compact model that needs no more room.
const fn compact(word: u32) -> Option<[u8; 3]> {
    let [model, a, b, c] = word.to_be_bytes();
    if model == 0x80 { Some([a, b, c]) } else { None }
}

/// The frame that an entry of `.ARM.extab` describes.
fn entry(bytes: &[u8]) -> Option<Frame> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    let [model, count, ..] = u32::from_le_bytes(*first).to_be_bytes();
    let (head, skipped, more, rest) = match model {
        0x80 => (*first, 1, 0, rest),
        0x81 | 0x82 => (*first, 2, count, rest),
        0x83.. => return None,
        // A routine of a language; all that are known go on as the compact model does.
        _ => {
            let (head, rest) = rest.split_first_chunk::<4>()?;
            (*head, 1, u32::from_le_bytes(*head).to_be_bytes()[0], rest)
        }
    };
    let more = rest.as_chunks::<4>().0.get(..usize::from(more))?;
    let words = std::iter::once(&head).chain(more);
    let opcodes = words.flat_map(|word| u32::from_le_bytes(*word).to_be_bytes());
    Machine::new().run(opcodes.skip(skipped))
}

/// What the bytecode has done so far.
struct Machine {
    register: u8,
    /// The virtual stack pointer, in bytes from that register.
    at: i32,
    /// Where registers were saved, from it likewise.
    saved: [Option<i32>; 16],
}

impl Machine {
    const fn new() -> Self {
        Self {
            register: SP,
            at: 0,
            saved: [None; 16],
        }
    }

    /// Goes through the bytecode; `None` where it says that it cannot be done, or something that is not understood.
    fn run(mut self, mut code: impl Iterator<Item = u8>) -> Option<Frame> {
        while let Some(op) = code.next() {
            if op == FINISH {
                break;
            }
            self.step(op, &mut code)?;
        }
        let caller = self.at;
        Some(Frame {
            register: self.register,
            offset: caller,
            saved: self.saved.map(|at| at.map(|at| at - caller)),
        })
    }

    fn step(&mut self, op: u8, code: &mut impl Iterator<Item = u8>) -> Option<()> {
        let low = i32::from(op & 0x3f);
        match op {
            0x00..=0x3f => self.up(low * 4 + 4),
            0x40..=0x7f => self.up(-(low * 4 + 4)),
            0x80..=0x8f => {
                let mask = u16::from(op & 15) << 8 | u16::from(code.next()?);
                // No register at all says that the function cannot be unwound.
                (mask != 0).then_some(())?;
                self.pop(mask << 4)
            }
            0x90..=0x9f => self.base(op & 15),
            0xa0..=0xaf => {
                let upto = u32::from(op & 7);
                let link = u16::from(op >> 3 & 1) << LR;
                self.pop(((2u16 << upto) - 1) << 4 | link)
            }
            0xb1 => {
                let mask = code.next().filter(|mask| (1..16).contains(mask))?;
                self.pop(u16::from(mask))
            }
            0xb2 => {
                let words = i32::try_from(uleb(code)?).ok()?;
                self.up(words.checked_mul(4)?.checked_add(0x204)?)
            }
            // The signature of the return address, which has a word of its own, and what it was signed with.
            0xb4 => self.up(4),
            0xb5 => Some(()),
            // Floating-point registers as `fstmx` stored them, with a word more.
            0xb3 => self.up(i32::from(code.next()? & 15) * 8 + 12),
            0xb8..=0xbf => self.up(i32::from(op & 7) * 8 + 12),
            // Those of `vpush`.
            0xc8 | 0xc9 => self.up(i32::from(code.next()? & 15) * 8 + 8),
            0xd0..=0xd7 => self.up(i32::from(op & 7) * 8 + 8),
            // Intel's wireless extension.
            0xc0..=0xc5 => self.up(i32::from(op & 7) * 8 + 8),
            0xc6 => self.up(i32::from(code.next()? & 15) * 8 + 8),
            _ => None,
        }
    }

    fn up(&mut self, bytes: i32) -> Option<()> {
        self.at += bytes;
        (self.at.abs() < FAR).then_some(())
    }

    /// The virtual stack pointer becomes a register of the function.
    fn base(&mut self, register: u8) -> Option<()> {
        let is_own = self.saved.iter().all(Option::is_none);
        (is_own && register != SP && register != PC).then_some(())?;
        (self.register, self.at) = (register, 0);
        Some(())
    }

    fn pop(&mut self, registers: u16) -> Option<()> {
        // The stack pointer itself: nobody writes that.
        (registers & 1 << SP == 0).then_some(())?;
        for register in (0..16).filter(|n| registers >> n & 1 != 0) {
            self.saved[register] = Some(self.at);
            self.up(4)?;
        }
        Some(())
    }
}

fn uleb(code: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..28).step_by(7) {
        let byte = code.next()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl Frame {
    /// Where the return address was saved, if it was.
    pub(crate) fn return_address(&self) -> Option<i32> {
        self.saved[usize::from(PC)].or(self.saved[usize::from(LR)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: u32 = 0x2_0000;
    const ENTRIES: u32 = 0x1_8000;

    /// An index of functions with their second words.
    fn index(functions: &[(u32, u32)]) -> Vec<u8> {
        let place = (INDEX..).step_by(8);
        let pairs = place.zip(functions).flat_map(|(place, (start, word))| {
            let start = start.wrapping_sub(place) & 0x7fff_ffff;
            [start, *word]
        });
        pairs.flat_map(u32::to_le_bytes).collect()
    }

    /// The second word of the entry with this number that lies so far into `.ARM.extab`.
    fn refers(number: u32, to: u32) -> u32 {
        (ENTRIES + to).wrapping_sub(INDEX + number * 8 + 4) & 0x7fff_ffff
    }

    fn frame(word: u32) -> Option<Frame> {
        let index = index(&[(0x1000, word)]);
        ExceptionTables::new(&index, INDEX.into(), &[], 0)?.frame(0x1010)
    }

    fn saved(frame: &Frame) -> Vec<(usize, i32)> {
        let all = frame.saved.iter().enumerate();
        all.filter_map(|(register, at)| Some((register, (*at)?)))
            .collect()
    }

    #[test]
    fn entries_in_the_index() {
        // As readelf tells: vsp = vsp + 8; pop {r4, r5, r6, r7, r14}.
        let found = frame(0x8001_abb0).expect("a frame");
        assert_eq!((found.register, found.offset), (SP, 28));
        assert_eq!(
            saved(&found),
            [(4, -20), (5, -16), (6, -12), (7, -8), (14, -4)]
        );
        assert_eq!(found.return_address(), Some(-4));
        // pop {r3, r14}
        let found = frame(0x80b1_0884).and_then(|f| f.return_address());
        assert_eq!(found, None, "b1 08 pops r3; 84 needs another byte, b0 ends");
        let found = frame(0x8084_08b0).expect("a frame");
        assert_eq!((found.offset, saved(&found)), (8, vec![(7, -8), (14, -4)]));
        // vsp = r7; pop {r7, r14}
        let found = frame(0x8097_8408).expect("a frame");
        assert_eq!((found.register, found.offset), (7, 8));
        // vsp = vsp + 0x204 + (0x81 << 2), and the last byte is missing
        assert_eq!(
            frame(0x80b2_8101).map(|f| f.offset),
            Some(0x204 + (0x81 << 2))
        );
        for refused in [
            CANNOT,
            0x8080_00b0,
            0x80b7_b0b0,
            0x8101_0101,
            0x80ff_b0b0,
            0x809d_b0b0,
        ] {
            assert_eq!(frame(refused), None, "{refused:x}");
        }
    }

    #[test]
    fn entries_elsewhere() {
        let words: [u32; 6] = [
            // Compact, one more word: 0xb4 (signature), vpop {d8-d9}, pop {r4-r5, r14}
            0x8101_b4d1,
            0xa9b0_b0b0,
            // A language's routine, no more words: pop {r4, r14}
            0x7fff_0000,
            0x00a8_b0b0,
            // One more word than there is room for in the section
            0x8102_b0b0,
            0xb0b0_b0b0,
        ];
        let entries: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let index = index(&[
            (0x1000, refers(0, 0)),
            (0x1100, refers(1, 8)),
            (0x1200, refers(2, 16)),
            (0x1300, refers(3, 0x1000)),
        ]);
        let tables = ExceptionTables::new(&index, INDEX.into(), &entries, ENTRIES.into());
        let tables = tables.expect("sorted");
        let first = tables.frame(0x10ff).expect("a frame");
        assert_eq!(
            (first.offset, first.saved[4], first.saved[14]),
            (32, Some(-12), Some(-4))
        );
        assert_eq!(tables.frame(0x1100).map(|f| f.offset), Some(8));
        assert_eq!((tables.frame(0x1200), tables.frame(0x1300)), (None, None));
        assert_eq!(tables.frame(0xfff), None, "before all functions");
    }

    #[test]
    fn an_index_that_is_not_sorted_is_none() {
        let index = index(&[(0x2000, CANNOT), (0x1000, CANNOT)]);
        assert!(ExceptionTables::new(&index, INDEX.into(), &[], 0).is_none());
        assert!(ExceptionTables::new(&[], 0, &[], 0).is_none());
        assert!(ExceptionTables::new(&index, u64::MAX, &[], 0).is_none());
    }
}
