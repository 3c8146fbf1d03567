//! Reads Zstandard (RFC 8878): a stream of frames, as it comes, block by block.
//!
//! In: compressed bytes in pieces of any length. Out: everything that the blocks which are whole by then decode to.
//! Memory: the window that a frame asks for (128 MB at most, as `zstd` allows without an option) and what the caller did
//! not yet [forget](Decoder::forget). Any bytes may come in. Dictionaries are refused; checksums are not verified.
//!
//! Why not a library: see the crate's table of them. `perf record -z` never ends its one frame, and what it wrote so far
//! must be known at the end of each record.

mod bits;
mod block;
mod fse;
mod huffman;

use block::Coding;

/// The data are no Zstandard, or were changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Damaged;

/// No block decodes to more.
const MOST_OF_BLOCK: usize = 128 << 10;
const MOST_WINDOW: u64 = 128 << 20;
const MAGIC: u32 = 0xfd2f_b528;
/// The lower four bits of the magic of a skippable frame are free.
const SKIPPABLE: u32 = 0x184d_2a50;

/// What comes next.
#[derive(Clone, Copy)]
enum Expected {
    Frame,
    Block,
    Checksum,
    /// So many bytes of no interest.
    Skipped(u32),
}

/// Decodes a stream of frames.
pub(crate) struct Decoder {
    expected: Expected,
    /// The front of a header or block whose rest is still to come.
    begun: Vec<u8>,
    /// Decoded bytes, with room behind them.
    buffer: Vec<u8>,
    filled: usize,
    /// Where the frame began in `buffer`.
    frame: usize,
    window: usize,
    checksum: bool,
    coding: Coding,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            expected: Expected::Frame,
            begun: Vec::new(),
            buffer: Vec::new(),
            filled: 0,
            frame: 0,
            window: 0,
            checksum: false,
            coding: Coding::default(),
        }
    }
}

impl Decoder {
    /// What was decoded and not forgotten.
    pub(crate) fn decoded(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// Whether the stream may end here.
    pub(crate) fn is_between_frames(&self) -> bool {
        matches!(self.expected, Expected::Frame) && self.begun.is_empty()
    }

    /// Whether a block began whose rest did not come.
    pub(crate) fn is_within_block(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Decodes from the front of `input` until it is used up or at least `enough` bytes are [decoded](Self::decoded).
    pub(crate) fn feed(&mut self, input: &mut &[u8], enough: usize) -> Result<(), Damaged> {
        while self.filled < enough && !input.is_empty() {
            if let Expected::Skipped(left) = self.expected {
                let now = input.len().min(left as usize);
                *input = &input[now..];
                self.skip(left - now as u32);
                continue;
            }
            if self.begun.is_empty() && self.needed(input)? <= input.len() {
                let (unit, rest) = input.split_at(self.needed(input)?);
                *input = rest;
                self.decode(unit)?;
                continue;
            }
            let missing = self.needed(&self.begun)?.saturating_sub(self.begun.len());
            let (now, rest) = input.split_at(missing.min(input.len()));
            self.begun.extend_from_slice(now);
            *input = rest;
            if self.needed(&self.begun)? == self.begun.len() {
                let unit = std::mem::take(&mut self.begun);
                self.decode(&unit)?;
                self.begun = unit;
                self.begun.clear();
            }
        }
        Ok(())
    }

    /// The first bytes that were decoded are not asked for again. Says how many of them are gone: what the window needs
    /// stays, and what is too little to be worth it.
    pub(crate) fn forget(&mut self, bytes: usize) -> usize {
        let gone = bytes.min(self.filled.saturating_sub(self.window));
        // Moving the rest must not cost more than decoding what goes.
        if gone < self.filled - gone {
            return 0;
        }
        self.buffer.copy_within(gone..self.filled, 0);
        self.filled -= gone;
        self.frame = self.frame.saturating_sub(gone);
        gone
    }

    /// Another stream begins, wherever the last one ended; of what was decoded, so many bytes stay.
    pub(crate) fn restart(&mut self, keep: usize) {
        self.expected = Expected::Frame;
        self.begun.clear();
        self.filled = self.filled.min(keep);
        self.window = 0;
    }

    /// How many bytes the next part takes that begins with `front`; when that is more than there are, ask again.
    fn needed(&self, front: &[u8]) -> Result<usize, Damaged> {
        match self.expected {
            Expected::Frame => Header::needed(front),
            Expected::Block => {
                let Some(head) = front.first_chunk::<3>() else {
                    return Ok(3);
                };
                let size = BlockHeader::new(*head)?.stored();
                Ok(3 + size)
            }
            Expected::Checksum => Ok(4),
            Expected::Skipped(_) => Ok(0),
        }
    }

    fn decode(&mut self, unit: &[u8]) -> Result<(), Damaged> {
        match self.expected {
            Expected::Frame => self.begin(unit),
            Expected::Block => self.block(unit),
            Expected::Checksum => {
                self.expected = Expected::Frame;
                Ok(())
            }
            Expected::Skipped(_) => Err(Damaged),
        }
    }

    fn skip(&mut self, left: u32) {
        self.expected = match left {
            0 => Expected::Frame,
            left => Expected::Skipped(left),
        };
    }

    fn begin(&mut self, unit: &[u8]) -> Result<(), Damaged> {
        match Header::new(unit)? {
            Header::Skippable(len) => self.skip(len),
            Header::Frame { window, checksum } => {
                self.frame = self.filled;
                self.window = window;
                self.checksum = checksum;
                self.coding = Coding::default();
                self.expected = Expected::Block;
            }
        }
        Ok(())
    }

    fn block(&mut self, unit: &[u8]) -> Result<(), Damaged> {
        let (head, content) = unit.split_first_chunk::<3>().ok_or(Damaged)?;
        let head = BlockHeader::new(*head)?;
        let room = self.filled + MOST_OF_BLOCK + block::BEHIND;
        if self.buffer.len() < room {
            self.buffer.resize(room.next_power_of_two(), 0);
        }
        let frame = self.frame.max(self.filled.saturating_sub(self.window));
        let history = self.filled - frame;
        let out = self.buffer.get_mut(frame..).ok_or(Damaged)?;
        let end = match head.kind {
            BlockKind::Raw => {
                let to = out.get_mut(history..history + content.len());
                to.ok_or(Damaged)?.copy_from_slice(content);
                history + content.len()
            }
            BlockKind::Repeated => {
                let byte = *content.first().ok_or(Damaged)?;
                let to = out.get_mut(history..history + head.size);
                to.ok_or(Damaged)?.fill(byte);
                history + head.size
            }
            BlockKind::Compressed => {
                let most = out.get_mut(..history + MOST_OF_BLOCK + block::BEHIND);
                let window = self.window;
                self.coding
                    .block(content, most.ok_or(Damaged)?, history, window)?
            }
        };
        self.filled = frame + end;
        if head.last {
            // What is between frames is behind no window.
            self.window = 0;
            self.expected = if self.checksum {
                Expected::Checksum
            } else {
                Expected::Frame
            };
        }
        Ok(())
    }
}

/// All that a stream decodes to, at most `most` bytes. `None` if it is damaged, cut, or longer.
pub(crate) fn decode_all(mut packed: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut decoder = Decoder::default();
    decoder.feed(&mut packed, most.checked_add(1)?).ok()?;
    let is_whole = packed.is_empty() && decoder.is_between_frames();
    if !is_whole || decoder.filled > most {
        return None;
    }
    decoder.buffer.truncate(decoder.filled);
    Some(decoder.buffer)
}

/// What a frame begins with.
enum Header {
    Frame { window: usize, checksum: bool },
    Skippable(u32),
}

impl Header {
    fn magic(front: &[u8]) -> Option<u32> {
        Some(u32::from_le_bytes(*front.first_chunk()?))
    }

    fn needed(front: &[u8]) -> Result<usize, Damaged> {
        match Self::magic(front) {
            None => Ok(4),
            Some(MAGIC) => Ok(front.get(4).map_or(5, |d| {
                let Fields { window, id, size } = Fields::of(*d);
                5 + window + id + size
            })),
            Some(magic) if magic & !15 == SKIPPABLE => Ok(8),
            Some(_) => Err(Damaged),
        }
    }

    /// Of exactly the bytes of the header.
    fn new(bytes: &[u8]) -> Result<Self, Damaged> {
        let rest = bytes.get(4..).ok_or(Damaged)?;
        if Self::magic(bytes) != Some(MAGIC) {
            let len = *rest.first_chunk().ok_or(Damaged)?;
            return Ok(Self::Skippable(u32::from_le_bytes(len)));
        }
        let (&descriptor, rest) = rest.split_first().ok_or(Damaged)?;
        let fields = Fields::of(descriptor);
        let (window, rest) = rest.split_at_checked(fields.window).ok_or(Damaged)?;
        let (id, size) = rest.split_at_checked(fields.id).ok_or(Damaged)?;
        // A reserved bit, and a dictionary that nobody has.
        if descriptor & 8 != 0 || id.iter().any(|byte| *byte != 0) {
            return Err(Damaged);
        }
        let window = match window.first() {
            Some(byte) => {
                let base = 1u64 << (10 + (byte >> 3));
                base + base / 8 * u64::from(byte & 7)
            }
            // All of the frame is its window.
            None => little_endian(size) + if size.len() == 2 { 256 } else { 0 },
        };
        if window > MOST_WINDOW {
            return Err(Damaged);
        }
        Ok(Self::Frame {
            window: usize::try_from(window).map_err(|_| Damaged)?,
            checksum: descriptor & 4 != 0,
        })
    }
}

/// Sizes of the fields of a frame header.
struct Fields {
    window: usize,
    id: usize,
    size: usize,
}

impl Fields {
    const fn of(descriptor: u8) -> Self {
        let is_single = descriptor & 0x20 != 0;
        Self {
            window: !is_single as usize,
            id: [0, 1, 2, 4][descriptor as usize & 3],
            size: match descriptor >> 6 {
                0 => is_single as usize,
                1 => 2,
                2 => 4,
                _ => 8,
            },
        }
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, add)
}

enum BlockKind {
    Raw,
    Repeated,
    Compressed,
}

struct BlockHeader {
    last: bool,
    kind: BlockKind,
    size: usize,
}

impl BlockHeader {
    fn new(bytes: [u8; 3]) -> Result<Self, Damaged> {
        let word = little_endian(&bytes);
        let size = usize::try_from(word >> 3).map_err(|_| Damaged)?;
        let kind = match word >> 1 & 3 {
            0 => BlockKind::Raw,
            1 => BlockKind::Repeated,
            2 => BlockKind::Compressed,
            _ => return Err(Damaged),
        };
        let last = word & 1 != 0;
        (size <= MOST_OF_BLOCK)
            .then_some(Self { last, kind, size })
            .ok_or(Damaged)
    }

    /// How many bytes follow.
    const fn stored(&self) -> usize {
        match self.kind {
            BlockKind::Repeated => 1,
            _ => self.size,
        }
    }
}

#[cfg(test)]
mod tests;
