//! Functions of a file that says nothing of them: no call frame information, no symbols.
//!
//! In: the file's code, and the pointers that its loader would write. Out: where functions begin. Everything that is
//! called directly, or that an instruction or a relocated pointer leads to, begins one, if the code before it does not go
//! on there. Where a byte of other code looks like a call, the place that it seems to lead to is seldom such a one. A function that is missed makes its neighbour seem longer, which does no harm:
//! what is made of it has to prove itself (`rules::Check::Proven`).

use std::ops::Range;

use crate::address::Svma;
use crate::dso::elf::ElfFile;

/// Where functions of a file begin, by stated address.
pub(super) struct Functions {
    /// Of the section or segment that was looked through.
    text: Range<u64>,
    /// Distances from its beginning, in order.
    starts: Vec<u32>,
}

/// More code than any program has; a file that claims more is not looked through.
const MOST_TEXT: usize = 1 << 30;
/// More calls than the largest programs have.
const MOST_STARTS: usize = 1 << 25;

impl Functions {
    /// The functions of an x86-64 file's `.text`; `None` without one, or with hardly any.
    pub(super) fn of(image: &ElfFile<'_>) -> Option<Self> {
        let section = image
            .section(".text")
            .filter(|text| text.data.len() < MOST_TEXT)?;
        let start = section.svma.0;
        let text = Text {
            code: section.data,
            start,
        };
        let mut starts = Vec::new();
        text.led_to(&mut starts);
        text.prologues(&mut starts);
        if starts.len() > MOST_STARTS {
            return None;
        }
        let pointers = image.section(".rela.dyn").map_or(&[][..], |s| s.data);
        for pointer in pointers.as_chunks::<24>().0 {
            let addend = pointer
                .last_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes));
            starts.extend(text.start_at(addend));
        }
        starts.sort_unstable();
        starts.dedup();
        (starts.len() > 1).then_some(Self {
            text: start..start.saturating_add(section.data.len() as u64),
            starts,
        })
    }

    /// The function around an address, up to the next one.
    pub(super) fn around(&self, at: Svma) -> Option<Range<u64>> {
        let offset = u32::try_from(at.0.checked_sub(self.text.start)?).ok()?;
        if at.0 >= self.text.end {
            return None;
        }
        let behind = self.starts.partition_point(|&start| start <= offset);
        let absolute = |distance: u32| self.text.start + u64::from(distance);
        let start = absolute(*self.starts.get(behind.checked_sub(1)?)?);
        let end = self
            .starts
            .get(behind)
            .map_or(self.text.end, |&next| absolute(next));
        Some(start..end)
    }
}

/// Code at its stated address.
struct Text<'a> {
    code: &'a [u8],
    start: u64,
}

impl Text<'_> {
    /// Adds the beginnings that direct calls, and `lea` of addresses, lead to.
    fn led_to(&self, starts: &mut Vec<u32>) {
        for at in memchr::memchr2_iter(0xe8, 0x8d, self.code) {
            let distance_at = match self.code[at] {
                0xe8 => at + 1,
                // REX.W, and an address relative to the instruction pointer.
                _ if at > 0
                    && matches!(self.code[at - 1], 0x48 | 0x4c)
                    && self
                        .code
                        .get(at + 1)
                        .is_some_and(|modrm| modrm & 0xc7 == 0x05) =>
                {
                    at + 2
                }
                _ => continue,
            };
            let Some(distance) = self
                .code
                .get(distance_at..)
                .and_then(|rest| rest.first_chunk())
            else {
                continue;
            };
            let from = self.start.wrapping_add(distance_at as u64 + 4);
            let target = from.wrapping_add_signed(i64::from(i32::from_le_bytes(*distance)));
            starts.extend(self.start_at(target));
            if starts.len() > MOST_STARTS {
                return;
            }
        }
    }

    /// Adds where code that begins as functions do stands behind code that ends: functions that only
    /// pointers lead to.
    fn prologues(&self, starts: &mut Vec<u32>) {
        const PUSHES: [&[u8]; 2] = [&[0x41, 0x57, 0x41, 0x56], &[0x55, 0x48, 0x89, 0xe5]];
        for pushes in PUSHES {
            for at in memchr::memmem::find_iter(self.code, pushes) {
                // rbp goes first where it is kept as well.
                let with_rbp = pushes[0] == 0x41 && at > 0 && self.code[at - 1] == 0x55;
                let at = at - usize::from(with_rbp);
                starts.extend(self.start_at(self.start.wrapping_add(at as u64)));
                if starts.len() > MOST_STARTS {
                    return;
                }
            }
        }
    }

    /// An address, if a function may begin there: behind something that does not go on into it. Programs that are
    /// optimised for size do not align their functions.
    fn start_at(&self, address: u64) -> Option<u32> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        if offset >= self.code.len() {
            return None;
        }
        ends_code(&self.code[..offset]).then_some(u32::try_from(offset).ok()?)
    }
}

/// The ends of the padding that assemblers make of one instruction.
const LONG_NOPS: [&[u8]; 5] = [
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
    &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
];

/// Whether bytes end with what stands before a function: padding, or an instruction that does not go on (a call of a
/// function that does not return among them).
fn ends_code(before: &[u8]) -> bool {
    let opcode = |back: usize| before.len().checked_sub(back).map(|at| before[at]);
    match opcode(1) {
        None | Some(0xcc | 0x90 | 0xc3) => true,
        Some(0x0b) => opcode(2) == Some(0x0f),
        Some(last) => {
            last == 0 && LONG_NOPS.iter().any(|nop| before.ends_with(nop))
                // A call that goes forward ends with zero, as much else does.
                || (last != 0 || before.len().is_multiple_of(16)) && matches!(opcode(5), Some(0xe8 | 0xe9))
                // Through the global offset table.
                || opcode(6) == Some(0xff) && matches!(opcode(5), Some(0x15 | 0x25))
                || opcode(2) == Some(0xeb)
                || opcode(3) == Some(0xc2)
                || opcode(2) == Some(0xff) && last & 0xf0 == 0xe0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_begin_where_something_leads_and_looks_like_it() {
        let mut code = vec![0x90; 0x80];
        let call = |code: &mut Vec<u8>, at: usize, to: i64| {
            code[at] = 0xe8;
            let distance = i32::try_from(to - at as i64 - 5).expect("near");
            code[at + 1..at + 5].copy_from_slice(&distance.to_le_bytes());
        };
        call(&mut code, 0x00, 0x20);
        // Not aligned; into the middle of code; out of the text.
        call(&mut code, 0x05, 0x24);
        code[0x2f] = 0x55;
        call(&mut code, 0x20, 0x30);
        call(&mut code, 0x25, 0x1000);
        // lea rdi, [rip+…]
        code[0x40..0x43].copy_from_slice(&[0x48, 0x8d, 0x3d]);
        code[0x43..0x47].copy_from_slice(&(0x60i32 - 0x47).to_le_bytes());
        let text = Text {
            code: &code,
            start: 0x1_0000,
        };
        let mut starts = Vec::new();
        text.led_to(&mut starts);
        assert_eq!(starts, [0x20, 0x60]);
        let functions = Functions {
            text: 0x1_0000..0x1_0080,
            starts,
        };
        let around = |at| functions.around(Svma(at));
        assert_eq!(around(0x1_001f), None);
        assert_eq!(around(0x1_0020), Some(0x1_0020..0x1_0060));
        assert_eq!(around(0x1_007f), Some(0x1_0060..0x1_0080));
        assert_eq!(around(0x1_0080), None);
    }
}
