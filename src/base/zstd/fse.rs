//! Finite state entropy: distributions and the decoding tables made of them.
//!
//! In: a description out of a block, or one of the three that the format defines. Out: a table from states to symbols.

use super::Damaged;
use super::bits::Forward;

/// What a state stands for and how the next one is found.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cell {
    /// Smallest next state.
    pub(super) next: u16,
    /// How many bits are added to it.
    pub(super) bits: u8,
    pub(super) symbol: u8,
}

/// A table of at most 512 states.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The rest of it is not used.
    entries: [Cell; Self::MOST],
    /// Base-2 logarithm of the number of states.
    pub(super) log: u32,
}

impl Table {
    pub(super) const MOST: usize = 512;

    /// Of one symbol that takes no bits.
    pub(super) fn constant(symbol: u8) -> Self {
        let mut entries = [Cell::default(); Self::MOST];
        entries[0].symbol = symbol;
        Self { entries, log: 0 }
    }

    /// A state comes from a table or from `log` bits: it is in the table.
    #[inline(always)]
    pub(super) fn entry(&self, state: usize) -> Cell {
        self.entries[state % Self::MOST]
    }

    /// Of a distribution whose parts (-1 is a rare symbol) add up to two to the power of `log`.
    pub(super) fn new(parts: &[i16], log: u32) -> Result<Self, Damaged> {
        let size = 1 << log;
        let mut table = Self::constant(0);
        table.log = log;
        let entries = table.entries.get_mut(..size).ok_or(Damaged)?;
        // How often each symbol was met; it begins with its share.
        let mut seen = [0u16; 256];
        let mut high = size;
        for (symbol, part) in (0u8..).zip(parts) {
            seen[usize::from(symbol)] = part.unsigned_abs();
            if *part < 0 {
                high = high.checked_sub(1).ok_or(Damaged)?;
                entries[high].symbol = symbol;
            }
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, part) in (0u8..).zip(parts) {
            for _ in 0..*part {
                entries[at].symbol = symbol;
                at = (at + step) % size;
                while at >= high {
                    at = (at + step) % size;
                }
            }
        }
        for entry in entries {
            let seen = &mut seen[usize::from(entry.symbol)];
            let bits = log - seen.checked_ilog2().ok_or(Damaged)?;
            entry.bits = bits as u8;
            entry.next = (u32::from(*seen) << bits).wrapping_sub(size as u32) as u16;
            *seen += 1;
        }
        Ok(table)
    }

    /// Of a description at the front of `data`, with at most `symbols` symbols; and how long the description is.
    pub(super) fn read(
        data: &[u8],
        symbols: usize,
        most_log: u32,
    ) -> Result<(Self, usize), Damaged> {
        let mut bits = Forward::new(data);
        let log = bits.peek(4) + 5;
        bits.skip(4);
        if log > most_log {
            return Err(Damaged);
        }
        let mut parts = [0i16; 256];
        let parts = &mut parts[..symbols];
        let (mut left, mut symbol) = (1i32 << log, 0);
        while left > 0 {
            let part = next_part(&mut bits, left);
            *parts.get_mut(symbol).ok_or(Damaged)? = part;
            symbol += 1;
            left -= i32::from(part.abs());
            if part == 0 {
                symbol += more_without_share(&mut bits);
            }
        }
        let len = bits.bytes()?;
        if left < 0 {
            return Err(Damaged);
        }
        Ok((Self::new(parts.get(..symbol).ok_or(Damaged)?, log)?, len))
    }
}

/// How many more symbols have no share, in threes.
fn more_without_share(bits: &mut Forward<'_>) -> usize {
    let mut all = 0;
    loop {
        let more = bits.peek(2);
        bits.skip(2);
        all += more as usize;
        // Behind the end there are only zeros.
        if more < 3 {
            return all;
        }
    }
}

/// The share of the next symbol when `left` are to be given away. Small numbers take a bit less.
fn next_part(bits: &mut Forward<'_>, left: i32) -> i16 {
    let most = left as u32 + 1;
    let width = most.ilog2() + 1;
    let value = bits.peek(width);
    let lower = (1 << (width - 1)) - 1;
    let spare = (1 << width) - 1 - most;
    let (value, width) = if value & lower < spare {
        (value & lower, width - 1)
    } else if value > lower {
        (value - spare, width)
    } else {
        (value, width)
    };
    bits.skip(width);
    value as i16 - 1
}
