//! Literals: Huffman codes, described by weights.
//!
//! In: the description of a tree, then one or four streams. Out: the literals.

use super::Damaged;
use super::bits::{Backward, top};
use super::fse;

/// The longest code.
const MOST_BITS: u32 = 11;

/// From the next bits to (symbol, bits that it takes).
#[derive(Clone, Debug)]
pub(super) struct Tree {
    entries: Box<[(u8, u8); 1 << MOST_BITS]>,
    bits: u32,
}

impl Tree {
    /// The tree described at the front of `data`, and how long the description is.
    pub(super) fn read(data: &[u8]) -> Result<(Self, usize), Damaged> {
        let (&head, rest) = data.split_first().ok_or(Damaged)?;
        let mut weights = [0; 256];
        let (number, len) = if head < 128 {
            let len = usize::from(head);
            let packed = rest.get(..len).ok_or(Damaged)?;
            (packed_weights(packed, &mut weights)?, len)
        } else {
            let number = usize::from(head) - 127;
            let len = number.div_ceil(2);
            let pairs = rest.get(..len).ok_or(Damaged)?;
            for (two, byte) in weights.chunks_exact_mut(2).zip(pairs) {
                two.copy_from_slice(&[byte >> 4, byte & 15]);
            }
            (number, len)
        };
        // An odd number leaves half a byte that is none.
        weights[number..].fill(0);
        Ok((Self::new(&mut weights, number)?, 1 + len))
    }

    /// The last weight is what is missing to a power of two.
    fn new(weights: &mut [u8; 256], number: usize) -> Result<Self, Damaged> {
        let mut sum = 0u32;
        for weight in weights.iter() {
            let share = 1u32.checked_shl(u32::from(*weight)).ok_or(Damaged)? >> 1;
            sum = sum.checked_add(share).ok_or(Damaged)?;
        }
        let bits = sum.checked_ilog2().ok_or(Damaged)? + 1;
        let missing = (1u32.checked_shl(bits).ok_or(Damaged)?).wrapping_sub(sum);
        if bits > MOST_BITS || !missing.is_power_of_two() {
            return Err(Damaged);
        }
        *weights.get_mut(number).ok_or(Damaged)? = missing.ilog2() as u8 + 1;
        let mut entries = Box::new([(0, 0); 1 << MOST_BITS]);
        // Where the codes of each weight begin; there are no others than up to `bits`.
        let mut starts = [0; MOST_BITS as usize + 2];
        for weight in weights.iter().filter(|weight| **weight > 0) {
            let next = starts.get_mut(usize::from(*weight) + 1);
            *next.ok_or(Damaged)? += 1 << (weight - 1);
        }
        let mut at = 0;
        for start in &mut starts {
            at += *start;
            *start = at;
        }
        for (symbol, weight) in (0u8..=255).zip(&*weights).filter(|(_, w)| **w > 0) {
            let start = &mut starts[usize::from(*weight)];
            let end = *start + (1 << (weight - 1));
            let of_symbol = entries.get_mut(*start..end).ok_or(Damaged)?;
            of_symbol.fill((symbol, bits as u8 + 1 - weight));
            *start = end;
        }
        (at == 1 << bits)
            .then_some(Self { entries, bits })
            .ok_or(Damaged)
    }

    /// The literals of one stream.
    pub(super) fn one(&self, data: &[u8], out: &mut [u8]) -> Result<(), Damaged> {
        self.rest(Backward::new(data)?, out)
    }

    /// The literals of four streams behind a table of their sizes.
    pub(super) fn four(&self, data: &[u8], out: &mut [u8]) -> Result<(), Damaged> {
        let (sizes, mut rest) = data.split_first_chunk::<6>().ok_or(Damaged)?;
        let mut parts = [rest; 4];
        for (part, size) in parts.iter_mut().zip(sizes.chunks_exact(2)) {
            let size = usize::from(size[0]) | usize::from(size[1]) << 8;
            (*part, rest) = rest.split_at_checked(size).ok_or(Damaged)?;
        }
        parts[3] = rest;
        let each = out.len().div_ceil(4);
        let (a, out) = out.split_at_mut_checked(each).ok_or(Damaged)?;
        let (b, out) = out.split_at_mut_checked(each).ok_or(Damaged)?;
        let (c, d) = out.split_at_mut_checked(each).ok_or(Damaged)?;
        let [mut p, mut q, mut r, mut s] = [
            Backward::new(parts[0])?,
            Backward::new(parts[1])?,
            Backward::new(parts[2])?,
            Backward::new(parts[3])?,
        ];
        // Side by side, since each waits for its own bits.
        const AT_ONCE: usize = (Backward::WORD / MOST_BITS) as usize;
        let rounds = d.len() / AT_ONCE;
        let (fa, ra) = a.split_at_mut(rounds * AT_ONCE);
        let (fb, rb) = b.split_at_mut(rounds * AT_ONCE);
        let (fc, rc) = c.split_at_mut(rounds * AT_ONCE);
        let (fd, rd) = d.split_at_mut(rounds * AT_ONCE);
        let ab = fa.as_chunks_mut().0.iter_mut().zip(fb.as_chunks_mut().0);
        let cd = fc.as_chunks_mut().0.iter_mut().zip(fd.as_chunks_mut().0);
        for ((first, second), (third, fourth)) in ab.zip(cd) {
            self.some::<AT_ONCE>(&mut p, first)?;
            self.some::<AT_ONCE>(&mut q, second)?;
            self.some::<AT_ONCE>(&mut r, third)?;
            self.some::<AT_ONCE>(&mut s, fourth)?;
        }
        self.rest(p, ra)?;
        self.rest(q, rb)?;
        self.rest(r, rc)?;
        self.rest(s, rd)
    }

    #[inline(always)]
    fn some<const N: usize>(
        &self,
        bits: &mut Backward<'_>,
        out: &mut [u8; N],
    ) -> Result<(), Damaged> {
        let mut word = bits.word();
        let mut taken = 0;
        for to in out {
            let (symbol, len) = self.entries[top(word, self.bits) as usize % (1 << MOST_BITS)];
            *to = symbol;
            word <<= len;
            taken += u32::from(len);
        }
        bits.skip(taken)
    }

    /// All that is left of a stream.
    fn rest(&self, mut bits: Backward<'_>, out: &mut [u8]) -> Result<(), Damaged> {
        for to in out {
            self.some::<1>(&mut bits, std::array::from_mut(to))?;
        }
        (bits.left() == 0).then_some(()).ok_or(Damaged)
    }
}

/// Weights as two interleaved states of one table; how many there are.
fn packed_weights(data: &[u8], weights: &mut [u8; 256]) -> Result<usize, Damaged> {
    const MOST_LOG: u32 = 6;
    let (table, len) = fse::Table::read(data, 256, MOST_LOG)?;
    let mut bits = Backward::new(data.get(len..).ok_or(Damaged)?)?;
    let mut states = [0; 2];
    for state in &mut states {
        *state = bits.take(table.log)? as usize;
    }
    let mut number = 0;
    let mut put = |weight| {
        // The last one is not written.
        let slot = weights[..255].get_mut(number).ok_or(Damaged)?;
        *slot = weight;
        number += 1;
        Ok(())
    };
    loop {
        let entry = table.entry(states[0]);
        put(entry.symbol)?;
        if usize::from(entry.bits) > bits.left() {
            put(table.entry(states[1]).symbol)?;
            return Ok(number);
        }
        let next = usize::from(entry.next) + bits.take(u32::from(entry.bits))? as usize;
        states = [states[1], next];
    }
}
