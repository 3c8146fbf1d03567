//! One compressed block: literals, and sequences that say where they and earlier bytes go.
//!
//! In: the bytes of a block and what was decoded before. Out: the bytes it stands for, behind those. Keeps the tables and
//! offsets that a later block of the frame may repeat.

use super::bits::{Backward, top};
use super::fse::Table;
use super::huffman::Tree;
use super::{Damaged, MOST_OF_BLOCK};

/// Copies may write so many bytes more than they need to.
pub(super) const BEHIND: usize = 64;
/// Short copies are made of such pieces.
const PIECE: usize = 16;
/// Longer ones are one copy, which costs a call.
const MOST_IN_PIECES: usize = 8 * PIECE;
/// Bits that the next three states take.
const MOST_FOR_STATES: u32 = 9 + 9 + 8;

/// What blocks of a frame hand on.
pub(super) struct Coding {
    tree: Option<Tree>,
    lengths: Option<Numbers>,
    offsets: Option<Numbers>,
    matches: Option<Numbers>,
    last_offsets: [usize; 3],
    literals: Vec<u8>,
}

impl Default for Coding {
    fn default() -> Self {
        Self {
            tree: None,
            lengths: None,
            offsets: None,
            matches: None,
            last_offsets: [1, 4, 8],
            literals: Vec::new(),
        }
    }
}

impl Coding {
    /// Decodes a block behind the first `at` bytes of `out`, which are the window; where it ends. `out` has room for a block
    /// and [`BEHIND`] bytes.
    pub(super) fn block(
        &mut self,
        content: &[u8],
        out: &mut [u8],
        at: usize,
        window: usize,
    ) -> Result<usize, Damaged> {
        let (count, sequences) = self.read_literals(content)?;
        let literals = std::mem::take(&mut self.literals);
        let end = self.sequences(sequences, &literals, count, out, at, window);
        self.literals = literals;
        end
    }

    /// Reads the literals, with [`BEHIND`] more; how many there are, and what follows them in the block.
    fn read_literals<'c>(&mut self, content: &'c [u8]) -> Result<(usize, &'c [u8]), Damaged> {
        let head = LiteralsHeader::read(content)?;
        let rest = content.get(head.len..).ok_or(Damaged)?;
        self.literals.resize(head.count + BEHIND, 0);
        let literals = self.literals.get_mut(..head.count).ok_or(Damaged)?;
        let (mut packed, rest) = rest.split_at_checked(head.packed).ok_or(Damaged)?;
        match head.kind {
            0 => literals.copy_from_slice(packed),
            1 => literals.fill(*packed.first().ok_or(Damaged)?),
            kind => {
                if kind == 2 {
                    let (tree, len) = Tree::read(packed)?;
                    self.tree = Some(tree);
                    packed = packed.get(len..).ok_or(Damaged)?;
                }
                let tree = self.tree.as_ref().ok_or(Damaged)?;
                if head.one_stream {
                    tree.one(packed, literals)?;
                } else {
                    tree.four(packed, literals)?;
                }
            }
        }
        Ok((head.count, rest))
    }

    fn sequences(
        &mut self,
        data: &[u8],
        literals: &[u8],
        count: usize,
        out: &mut [u8],
        start: usize,
        window: usize,
    ) -> Result<usize, Damaged> {
        let (number, data) = number_of_sequences(data)?;
        let mut to = Output {
            out,
            at: start,
            end: start + MOST_OF_BLOCK,
            window,
        };
        let mut taken = 0;
        if number > 0 {
            let (&modes, data) = data.split_first().ok_or(Damaged)?;
            let data = self.read_tables(modes, data)?;
            taken = self.execute(number, data, literals, count, &mut to)?;
        } else if !data.is_empty() {
            return Err(Damaged);
        }
        to.literals(literals, taken, count - taken)?;
        Ok(to.at)
    }

    fn read_tables<'c>(&mut self, modes: u8, mut data: &'c [u8]) -> Result<&'c [u8], Damaged> {
        if modes & 3 != 0 {
            return Err(Damaged);
        }
        read_table(&mut self.lengths, modes >> 6, &mut data, &LENGTHS)?;
        read_table(&mut self.offsets, modes >> 4 & 3, &mut data, &OFFSETS)?;
        read_table(&mut self.matches, modes >> 2 & 3, &mut data, &MATCHES)?;
        Ok(data)
    }

    /// Carries out the sequences; how many literals they took.
    fn execute(
        &mut self,
        number: usize,
        data: &[u8],
        literals: &[u8],
        count: usize,
        to: &mut Output<'_>,
    ) -> Result<usize, Damaged> {
        let tables = [&self.lengths, &self.offsets, &self.matches];
        let [Some(lengths), Some(offsets), Some(matches)] = tables.map(Option::as_ref) else {
            return Err(Damaged);
        };
        let mut bits = Backward::new(data)?;
        let mut length = bits.take(lengths.log)? as usize;
        let mut offset = bits.take(offsets.log)? as usize;
        let mut match_ = bits.take(matches.log)? as usize;
        let mut recent = self.last_offsets;
        let mut taken = 0;
        for left in (0..number).rev() {
            let (l, o, m) = (
                lengths.cell(length),
                offsets.cell(offset),
                matches.cell(match_),
            );
            let mut word = bits.word();
            let extra = o.extra + m.extra + l.extra;
            let base = o.base as usize + top(word, o.extra.into()) as usize;
            word <<= o.extra;
            if u32::from(extra) > Backward::WORD - MOST_FOR_STATES {
                // Of the rest there are at most 16 + 16 bits and those for the states.
                bits.skip(o.extra.into())?;
                word = bits.word();
            }
            let match_len = m.base as usize + top(word, m.extra.into()) as usize;
            word <<= m.extra;
            let literal_len = l.base as usize + top(word, l.extra.into()) as usize;
            word <<= l.extra;
            let mut read = u32::from(extra);
            if read > Backward::WORD - MOST_FOR_STATES {
                read -= u32::from(o.extra);
            }
            if left > 0 {
                length = usize::from(l.next) + top(word, l.bits.into()) as usize;
                word <<= l.bits;
                match_ = usize::from(m.next) + top(word, m.bits.into()) as usize;
                word <<= m.bits;
                offset = usize::from(o.next) + top(word, o.bits.into()) as usize;
                read += u32::from(l.bits + m.bits + o.bits);
            }
            bits.skip(read)?;
            let distance = distance(base, literal_len == 0, &mut recent);
            if literal_len > count - taken {
                return Err(Damaged);
            }
            to.literals(literals, taken, literal_len)?;
            taken += literal_len;
            to.repeat(distance, match_len)?;
        }
        self.last_offsets = recent;
        (bits.left() == 0).then_some(taken).ok_or(Damaged)
    }
}

/// The distance that an offset value stands for, which becomes the latest of the last three.
#[inline(always)]
fn distance(value: usize, no_literals: bool, recent: &mut [usize; 3]) -> usize {
    let [a, b, c] = *recent;
    if value > 3 {
        *recent = [value - 3, a, b];
        return value - 3;
    }
    match value - 1 + usize::from(no_literals) {
        0 => {}
        1 => *recent = [b, a, c],
        2 => *recent = [c, a, b],
        // 0 is refused as a distance.
        _ => *recent = [a.wrapping_sub(1), a, b],
    }
    recent[0]
}

/// The bytes that are being put together.
struct Output<'o> {
    out: &'o mut [u8],
    at: usize,
    /// The block may not go further.
    end: usize,
    window: usize,
}

impl Output<'_> {
    /// Appends `len` literals from `from`; there are [`BEHIND`] more of them.
    #[inline(always)]
    fn literals(&mut self, literals: &[u8], from: usize, len: usize) -> Result<(), Damaged> {
        if len > self.end - self.at {
            return Err(Damaged);
        }
        if len <= PIECE {
            let piece = literals.get(from..from + PIECE).ok_or(Damaged)?;
            let to = self.out.get_mut(self.at..self.at + PIECE);
            to.ok_or(Damaged)?.copy_from_slice(piece);
        } else {
            let piece = literals.get(from..from + len).ok_or(Damaged)?;
            let to = self.out.get_mut(self.at..self.at + len);
            to.ok_or(Damaged)?.copy_from_slice(piece);
        }
        self.at += len;
        Ok(())
    }

    /// Appends `len` bytes that stand `distance` before the end.
    #[inline(always)]
    fn repeat(&mut self, distance: usize, len: usize) -> Result<(), Damaged> {
        let at = self.at;
        if distance == 0 || distance > at || distance > self.window || len > self.end - at {
            return Err(Damaged);
        }
        let end = at + len;
        let out = self.out.get_mut(..end + BEHIND).ok_or(Damaged)?;
        let (mut distance, mut to) = (distance, at);
        // What is repeated is repeated with twice its length, too.
        while distance < PIECE {
            copy_piece(out, to - distance, to);
            to += distance;
            distance *= 2;
        }
        let left = end.saturating_sub(to);
        if left <= MOST_IN_PIECES || distance < left {
            while to < end {
                copy_piece(out, to - distance, to);
                to += PIECE;
            }
        } else {
            let (before, after) = out.split_at_mut(to);
            let from = before.get(to - distance..to - distance + left);
            let target = after.get_mut(..left).ok_or(Damaged)?;
            target.copy_from_slice(from.ok_or(Damaged)?);
        }
        self.at = at + len;
        Ok(())
    }
}

/// Where both places are in `out`.
#[inline(always)]
fn copy_piece(out: &mut [u8], from: usize, to: usize) {
    if let Some(piece) = out.get(from..from + PIECE).and_then(<[u8]>::first_chunk) {
        let piece: [u8; PIECE] = *piece;
        if let Some(to) = out.get_mut(to..to + PIECE) {
            to.copy_from_slice(&piece);
        }
    }
}

struct LiteralsHeader {
    kind: u8,
    one_stream: bool,
    /// Bytes of this header.
    len: usize,
    /// Literals.
    count: usize,
    /// Bytes that they are stored in.
    packed: usize,
}

impl LiteralsHeader {
    fn read(data: &[u8]) -> Result<Self, Damaged> {
        let first = *data.first().ok_or(Damaged)?;
        let (kind, format) = (first & 3, first >> 2 & 3);
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(data.iter().take(5)) {
            *to = *from;
        }
        let word = u64::from_le_bytes(word);
        let field = |from: u32, bits: u32| (word >> from & ((1 << bits) - 1)) as usize;
        let (len, count, packed) = if kind < 2 {
            let (len, count) = match format {
                0 | 2 => (1, field(3, 5)),
                1 => (2, field(4, 12)),
                _ => (3, field(4, 20)),
            };
            (len, count, if kind == 0 { count } else { 1 })
        } else {
            let (len, bits) = match format {
                0 | 1 => (3, 10),
                2 => (4, 14),
                _ => (5, 18),
            };
            (len, field(4, bits), field(4 + bits, bits))
        };
        if count > MOST_OF_BLOCK {
            return Err(Damaged);
        }
        let one_stream = format == 0;
        Ok(Self {
            kind,
            one_stream,
            len,
            count,
            packed,
        })
    }
}

fn number_of_sequences(data: &[u8]) -> Result<(usize, &[u8]), Damaged> {
    let (number, len) = match *data {
        [first, ..] if first < 128 => (usize::from(first), 1),
        [255, low, high, ..] => (0x7f00 + usize::from(low) + (usize::from(high) << 8), 3),
        [first, low, ..] if first < 255 => ((usize::from(first) - 128) << 8 | usize::from(low), 2),
        _ => return Err(Damaged),
    };
    Ok((number, data.get(len..).ok_or(Damaged)?))
}

/// One of the three kinds of codes.
struct Codes {
    /// Number of symbols.
    symbols: u8,
    most_log: u32,
    /// The distribution of a block that brings none.
    usual: &'static [i16],
    usual_log: u32,
    /// What each symbol says.
    ranges: &'static Ranges,
}

/// What a state says: a number and how the next state is found.
#[derive(Clone, Copy, Default)]
struct Cell {
    /// Smallest next state, and how many bits are added to it.
    next: u16,
    bits: u8,
    /// The number begins here, and so many bits are added to it.
    extra: u8,
    base: u32,
}

/// A table from states to numbers: one look instead of two that wait for each other.
struct Numbers {
    /// The rest of it is not used.
    cells: Box<[Cell; Table::MOST]>,
    log: u32,
}

impl Numbers {
    fn new(table: &Table, ranges: &Ranges) -> Self {
        let mut cells = Box::new([Cell::default(); Table::MOST]);
        for (cell, state) in cells.iter_mut().zip(0..1 << table.log) {
            let entry = table.entry(state);
            let (base, extra) = ranges[usize::from(entry.symbol) % ranges.len()];
            *cell = Cell {
                next: entry.next,
                bits: entry.bits,
                extra,
                base,
            };
        }
        Self {
            cells,
            log: table.log,
        }
    }

    /// A state comes from a table or from `log` bits: it is in the table.
    #[inline(always)]
    fn cell(&self, state: usize) -> Cell {
        self.cells[state % Table::MOST]
    }
}

const LENGTHS: Codes = Codes {
    symbols: 36,
    most_log: 9,
    usual: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
    usual_log: 6,
    ranges: &LENGTH_CODES,
};
const MATCHES: Codes = Codes {
    symbols: 53,
    most_log: 9,
    usual: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
    usual_log: 6,
    ranges: &MATCH_CODES,
};
const OFFSETS: Codes = Codes {
    symbols: 32,
    most_log: 8,
    usual: &[
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ],
    usual_log: 5,
    ranges: &OFFSET_CODES,
};

fn read_table(
    numbers: &mut Option<Numbers>,
    mode: u8,
    data: &mut &[u8],
    codes: &Codes,
) -> Result<(), Damaged> {
    let table = match mode {
        0 => Table::new(codes.usual, codes.usual_log)?,
        1 => {
            let (symbol, rest) = data.split_first().ok_or(Damaged)?;
            if *symbol >= codes.symbols {
                return Err(Damaged);
            }
            *data = rest;
            Table::constant(*symbol)
        }
        2 => {
            let (read, len) = Table::read(data, usize::from(codes.symbols), codes.most_log)?;
            *data = data.get(len..).ok_or(Damaged)?;
            read
        }
        // The one before is used again.
        _ => return Ok(()),
    };
    *numbers = Some(Numbers::new(&table, codes.ranges));
    Ok(())
}

/// (least number, bits that are added to it) of each code.
type Ranges = [(u32, u8); 64];

/// Codes below `plain` stand for themselves and `least`, the others for ranges that follow each other.
const fn length_codes(plain: usize, least: u32, ranges: &[u8]) -> Ranges {
    let mut codes = [(0, 0); 64];
    let (mut code, mut base) = (0, least);
    while code < plain + ranges.len() {
        let bits = if code < plain {
            0
        } else {
            ranges[code - plain]
        };
        codes[code] = (base, bits);
        base += 1 << bits;
        code += 1;
    }
    codes
}

static LENGTH_CODES: Ranges = length_codes(
    16,
    0,
    &[
        1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
    ],
);
static MATCH_CODES: Ranges = length_codes(
    32,
    3,
    &[
        1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
    ],
);
static OFFSET_CODES: Ranges = {
    let mut codes = [(0, 0); 64];
    let mut code = 0;
    while code < 32 {
        codes[code] = (1 << code, code as u8);
        code += 1;
    }
    codes
};
