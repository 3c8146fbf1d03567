//! From bytes to instructions: one sweep from the start, and what is not code.
//!
//! Native functions are swept as objdump does it. In JIT code, constants that instructions refer to are data, and where a sample
//! lies in the middle of an instruction, the sweep begins again at the sample.

use crate::arch::Arch;
use crate::disasm::{Disassembler, Flow, Instruction};

/// An instruction, or bytes that are none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Piece {
    pub(super) offset: u32,
    pub(super) len: u32,
    /// Where its text begins and ends.
    text: (usize, usize),
    pub(super) found: Instruction,
    /// Bytes that nobody executes: constants, padding.
    pub(super) is_data: bool,
}

/// Pieces in order. Their texts are one string: a function may have a million of them.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    all: Vec<Piece>,
    texts: String,
}

impl Pieces {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Piece> {
        self.all.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Offset behind the last one. Code of very many instructions goes on there.
    pub(super) fn end(&self) -> usize {
        let last = self.all.last();
        last.map_or(0, |last| last.offset as usize + last.len as usize)
    }

    pub(super) fn text(&self, piece: &Piece) -> &str {
        &self.texts[piece.text.0..piece.text.1]
    }

    fn push(&mut self, piece: Piece, text: &str) {
        let start = self.texts.len();
        self.texts.push_str(text);
        self.all.push(Piece {
            text: (start, self.texts.len()),
            ..piece
        });
    }

    fn truncate(&mut self, count: usize) {
        if let Some(first) = self.all.get(count) {
            self.texts.truncate(first.text.0);
            self.all.truncate(count);
        }
    }

    /// Whether it is what runtimes fill up with: breakpoints, instructions without effect, zeroes.
    fn is_padding(&self, piece: &Piece) -> bool {
        let text = self.text(piece);
        text == "int3"
            || text.contains("nop")
            || text == "xchg   %ax,%ax"
            || text == "add    %al,(%rax)"
            || text == "udf\t#0"
    }
}

/// What is swept.
#[derive(Clone, Copy)]
pub(super) struct Sweep<'s> {
    pub(super) bytes: &'s [u8],
    pub(super) start: u64,
    /// Offsets of samples, in order.
    pub(super) hits: &'s [u64],
    pub(super) arch: Arch,
    /// Instructions after which it ends.
    pub(super) most: usize,
}

/// Runs of zeroes from this length on are left out, as objdump does it; at the end fewer than [`FEW_ZEROES`] are.
const MANY_ZEROES: usize = 8;
const FEW_ZEROES: usize = 3;

/// The text of what is left out.
pub(super) const GAP: &str = "...";

impl Sweep<'_> {
    /// As objdump prints native code.
    pub(super) fn native(&self, disassembler: &mut dyn Disassembler) -> Pieces {
        let (mut pieces, mut text) = (Pieces::default(), String::new());
        let mut at = 0;
        while at < self.bytes.len() && pieces.len() < self.most {
            let zeroes = self.zeroes(at);
            if zeroes > 0 {
                pieces.push(data(at, zeroes), GAP);
                at += zeroes;
                continue;
            }
            let (piece, len) = self.instruction(disassembler, at, &mut text);
            pieces.push(piece, &text);
            at += len;
        }
        pieces
    }

    /// How many zeroes are left out here. Inside, code goes on at a multiple of four from their beginning.
    fn zeroes(&self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        let count = rest.iter().take_while(|byte| **byte == 0).count();
        if count == rest.len() {
            let is_padding = !(FEW_ZEROES..MANY_ZEROES).contains(&count);
            return if is_padding { count } else { 0 };
        }
        if count >= MANY_ZEROES {
            count - count % 4
        } else {
            0
        }
    }

    fn instruction(
        &self,
        disassembler: &mut dyn Disassembler,
        at: usize,
        text: &mut String,
    ) -> (Piece, usize) {
        let address = self.start.wrapping_add(at as u64);
        let found = disassembler.decode(&self.bytes[at..], address, text);
        let len = usize::from(found.len).clamp(1, self.bytes.len() - at);
        let piece = Piece {
            offset: number(at),
            len: number(len),
            found,
            ..Piece::default()
        };
        (piece, len)
    }

    /// JIT code: every sample is at the start of a piece.
    pub(super) fn jit(&self, disassembler: &mut dyn Disassembler) -> Pieces {
        let first = self.restarting(disassembler, &[]);
        let decoded = self.up_to(first.end());
        let data = decoded.constants(&first);
        let mut pieces = if data.is_empty() {
            first
        } else {
            decoded.restarting(disassembler, &data)
        };
        decoded.up_to(pieces.end()).shorten_padding(&mut pieces);
        pieces
    }

    /// The same of fewer bytes.
    fn up_to(&self, end: usize) -> Self {
        Self {
            bytes: &self.bytes[..end],
            ..*self
        }
    }

    fn restarting(&self, disassembler: &mut dyn Disassembler, data: &[(usize, usize)]) -> Pieces {
        let (mut pieces, mut text) = (Pieces::default(), String::new());
        let mut at = 0;
        while at < self.bytes.len() && pieces.len() < self.most {
            let constant = data.partition_point(|range| range.1 <= at);
            if let Some(&(start, end)) = data.get(constant).filter(|range| range.0 <= at) {
                let len = if at == start { end - start } else { end - at };
                self.constant(at, len, &mut pieces);
                at += len;
                continue;
            }
            let (piece, len) = self.instruction(disassembler, at, &mut text);
            let next_constant = data.get(constant).map(|range| range.0);
            let cut = next_constant.filter(|start| *start < at + len);
            match self.hit_inside(at, len).into_iter().chain(cut).min() {
                Some(hit) => {
                    self.constant(at, hit - at, &mut pieces);
                    at = hit;
                }
                None => {
                    pieces.push(piece, &text);
                    at += len;
                }
            }
        }
        pieces
    }

    /// A sample behind the start of what is here.
    fn hit_inside(&self, at: usize, len: usize) -> Option<usize> {
        let next = self.hits.partition_point(|hit| *hit <= at as u64);
        let hit = usize::try_from(*self.hits.get(next)?).ok()?;
        (hit < at + len).then_some(hit)
    }

    /// Ranges that are constants. On x86 they lie behind the code; on aarch64 they may lie between.
    fn constants(&self, pieces: &Pieces) -> Vec<(usize, usize)> {
        let inside = |address: u64| {
            let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
            (offset < self.bytes.len()).then_some(offset)
        };
        let refer = pieces.iter().filter(|piece| !piece.found.is_bad);
        let mut wanted: Vec<(usize, usize)> = refer
            .filter_map(|piece| {
                let start = inside(piece.found.memory?)?;
                Some((start, size_of_load(pieces.text(piece))))
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup_by_key(|range| range.0);
        if self.arch == Arch::Aarch64 {
            return self.pools(wanted);
        }
        let first = wanted
            .iter()
            .map(|range| range.0)
            .find(|start| self.ends_before(pieces, *start));
        first.map(|start| self.in_words(start)).unwrap_or_default()
    }

    /// Loads with a literal; the place may be no code.
    fn pools(&self, wanted: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (start, size) in wanted {
            let end = (start + size).min(self.bytes.len());
            let is_free = found.last().is_none_or(|last| last.1 <= start);
            if size > 0 && is_free && !self.is_hit(start, end) {
                found.push((start, end));
            }
        }
        found
    }

    fn is_hit(&self, start: usize, end: usize) -> bool {
        let next = self.hits.partition_point(|hit| *hit < start as u64);
        self.hits.get(next).is_some_and(|hit| *hit < end as u64)
    }

    /// Whether the code is over before an offset that it loads from: nothing runs into it or jumps there.
    fn ends_before(&self, pieces: &Pieces, start: usize) -> bool {
        let behind = pieces
            .all
            .partition_point(|piece| (piece.offset as usize) < start);
        let before = pieces.all[..behind].iter().rev();
        let mut code = before
            .skip_while(|piece| pieces.is_padding(piece) || self.is_padding_up_to(piece, start));
        let leaves = code
            .next()
            .is_some_and(|piece| piece.found.flow == Flow::Leaves);
        let limit = self.start.wrapping_add(start as u64);
        let end = self.start.wrapping_add(self.bytes.len() as u64);
        let jumps = |piece: &Piece| {
            piece
                .found
                .target
                .is_some_and(|target| (limit..end).contains(&target))
        };
        leaves && !self.is_hit(start, self.bytes.len()) && !pieces.all[..behind].iter().any(jumps)
    }

    /// Whether what looks like an instruction is padding that runs into a constant.
    fn is_padding_up_to(&self, piece: &Piece, start: usize) -> bool {
        let from = piece.offset as usize;
        let crosses = from + piece.len as usize > start;
        crosses
            && self.bytes[from..start]
                .iter()
                .all(|byte| matches!(byte, 0 | 0xcc | 0x90))
    }

    /// From an offset to the end in words of eight bytes.
    fn in_words(&self, start: usize) -> Vec<(usize, usize)> {
        let starts = (start..self.bytes.len()).step_by(8);
        starts
            .map(|at| (at, (at + 8).min(self.bytes.len())))
            .collect()
    }

    fn constant(&self, at: usize, len: usize, pieces: &mut Pieces) {
        let bytes = &self.bytes[at..at + len];
        let little = bytes
            .iter()
            .rev()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        let digits = little.trim_start_matches('0');
        let value = if digits.is_empty() { "0" } else { digits };
        let text = match len {
            8 => format!(".quad 0x{value}"),
            4 => format!(".long 0x{value}"),
            _ => {
                let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
                format!(".byte {}", bytes.join(","))
            }
        };
        pieces.push(data(at, len), &text);
    }

    /// Long padding at the end becomes one line.
    fn shorten_padding(&self, pieces: &mut Pieces) {
        const LONG: usize = 16;
        let kept = pieces
            .iter()
            .rposition(|piece| piece.is_data || !pieces.is_padding(piece))
            .map_or(0, |at| at + 1);
        let Some(first) = pieces.all.get(kept) else {
            return;
        };
        let start = first.offset as usize;
        let len = self.bytes.len() - start;
        if len > LONG && !self.is_hit(start, self.bytes.len()) {
            pieces.truncate(kept);
            pieces.push(data(start, len), GAP);
        }
    }
}

fn data(at: usize, len: usize) -> Piece {
    Piece {
        offset: number(at),
        len: number(len),
        is_data: true,
        ..Piece::default()
    }
}

/// How much a load of a literal takes, by its register.
fn size_of_load(text: &str) -> usize {
    match text
        .strip_prefix("ldr\t")
        .and_then(|rest| rest.bytes().next())
    {
        Some(b'x' | b'd') => 8,
        Some(b'w' | b's') => 4,
        Some(b'q') => 16,
        _ if text.starts_with("ldrsw") => 4,
        _ => 0,
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disasm::{Syntax, for_arch};

    fn texts(bytes: &[u8], hits: &[u64], is_jit: bool) -> Vec<(u32, String)> {
        let arch = Arch::X86_64;
        let mut disassembler = for_arch(arch, Syntax::Att).expect("has one");
        let sweep = Sweep {
            bytes,
            start: 0x1000,
            hits,
            arch,
            most: usize::MAX,
        };
        let pieces = if is_jit {
            sweep.jit(&mut *disassembler)
        } else {
            sweep.native(&mut *disassembler)
        };
        let all: usize = pieces.iter().map(|piece| piece.len as usize).sum();
        assert_eq!(all, bytes.len(), "nothing is lost");
        pieces
            .iter()
            .map(|piece| (piece.offset, pieces.text(piece).to_owned()))
            .collect()
    }

    fn list(expected: &[(u32, &str)]) -> Vec<(u32, String)> {
        expected
            .iter()
            .map(|(at, text)| (*at, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn constants_behind_the_code_are_data() {
        // movsd 0x8(%rip),%xmm0; ret; seven bytes of nothing; a constant
        let mut code = b"\xf2\x0f\x10\x05\x08\0\0\0\xc3\0\0\0\0\0\0\0".to_vec();
        code.extend(1.5f64.to_le_bytes());
        let found = texts(&code, &[], true);
        assert_eq!(found[0].1, "movsd  0x8(%rip),%xmm0");
        assert_eq!(
            found.last(),
            Some(&(16, ".quad 0x3ff8000000000000".to_owned()))
        );
        let hit = texts(&code, &[16], true);
        assert_ne!(
            hit.last().expect("a row").1,
            ".quad 0x3ff8000000000000",
            "samples are in code"
        );
    }

    #[test]
    fn padding_before_constants_is_no_code() {
        // movsd 0x7(%rip),%xmm0; nop; nop; ret; one byte of nothing, which with the constant looks like an instruction
        let mut code = b"\xf2\x0f\x10\x05\x04\0\0\0\x90\x90\xc3\0".to_vec();
        code.extend([0x6d, 0x90, 0xd0, 0, 0, 0, 0, 0]);
        let found = texts(&code, &[], true);
        let last: Vec<&str> = found
            .iter()
            .rev()
            .take(2)
            .map(|row| row.1.as_str())
            .collect();
        assert_eq!(last, [".quad 0xd0906d", ".byte 0x00"]);
    }

    #[test]
    fn the_sweep_begins_again_at_a_sample_inside_an_instruction() {
        // One byte in front makes a long instruction of two short ones.
        let found = texts(b"\xb8\x90\x90\xc3\x90\x90", &[2], true);
        assert_eq!(
            found,
            list(&[
                (0, ".byte 0xb8,0x90"),
                (2, "nop"),
                (3, "ret"),
                (4, "nop"),
                (5, "nop")
            ])
        );
    }

    #[test]
    fn zeroes_are_left_out_as_objdump_does_it() {
        let mut code = b"\xc3".to_vec();
        code.extend([0; 9]);
        code.push(0xc3);
        code.extend([0; 2]);
        let found = texts(&code, &[], false);
        assert_eq!(
            found,
            list(&[(0, "ret"), (1, "..."), (9, "add    %al,%bl"), (11, "...")])
        );
    }

    #[test]
    fn padding_is_one_line() {
        let mut code = b"\xc3".to_vec();
        code.extend([0xcc; 40]);
        assert_eq!(texts(&code, &[], true), list(&[(0, "ret"), (1, "...")]));
        assert_eq!(texts(&code, &[7], true).len(), 41);
    }

    /// Instructions of one byte: bytes do not tell how much they take.
    #[test]
    fn the_instructions_are_counted_that_are_decoded() {
        let sweep = Sweep {
            bytes: &[0x90; 100],
            start: 0x1000,
            hits: &[70],
            arch: Arch::X86_64,
            most: 40,
        };
        for sweeps in [Sweep::native, Sweep::jit] {
            let pieces = sweeps(
                &sweep,
                &mut *for_arch(sweep.arch, Syntax::Att).expect("has one"),
            );
            assert!(pieces.len() <= 40);
            assert_eq!(pieces.end(), 40);
        }
    }

    proptest::proptest! {
        /// Whatever the bytes: nothing is lost or shown twice, and every sample is at the start of a line.
        #[test]
        fn every_sample_has_a_line(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 1..400),
            places in proptest::collection::btree_set(0u64..400, 0..20),
            arm in proptest::bool::ANY,
            most in proptest::option::of(1usize..50),
        ) {
            let arch = if arm { Arch::Aarch64 } else { Arch::X86_64 };
            let hits: Vec<u64> = places.into_iter().filter(|at| *at < bytes.len() as u64).collect();
            let sweep = Sweep { bytes: &bytes, start: 0x7f00_0000_1000, hits: &hits, arch, most: most.unwrap_or(usize::MAX) };
            for syntax in [Syntax::Att, Syntax::Intel] {
                let pieces = sweep.jit(&mut *for_arch(arch, syntax).expect("has one"));
                let mut end = 0;
                for piece in pieces.iter() {
                    proptest::prop_assert_eq!(piece.offset, end);
                    proptest::prop_assert!(piece.len > 0);
                    end += piece.len;
                }
                proptest::prop_assert_eq!(end as usize, pieces.end());
                proptest::prop_assert!(pieces.len() <= most.unwrap_or(usize::MAX));
                proptest::prop_assert!(most.is_some() || pieces.end() == bytes.len());
                for hit in hits.iter().filter(|hit| **hit < pieces.end() as u64) {
                    proptest::prop_assert!(pieces.iter().any(|piece| u64::from(piece.offset) == *hit));
                }
            }
        }
    }
}
