//! One gzip member, made on several threads: the bytes do not depend on their number.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use crate::parallel::in_parallel;

/// What one thread compresses at once: memory in use is a few of these for each thread. Blocks know what stands before them,
/// so their size costs nothing of the file's, but to look at that takes time: with 128 KiB two per cent more of an export's.
const BLOCK: usize = 256 << 10;
/// As far as the format looks back.
const WINDOW: usize = 32 << 10;
/// A step from 6 to 5 takes a tenth of the time and leaves one to three per cent more.
const LEVEL: u32 = 5;
/// A quarter of the time for four per cent more of a Firefox file, and for a fifth more of lines of text.
const QUICK_LEVEL: u32 = 3;
/// For what is huge: what begins alike is looked for once.
const LEAST_LEVEL: u32 = 2;
/// Where what is large begins.
const LARGE: u64 = 2 << 20;
/// Functions from which on a file is huge, tens of megabytes before it is packed.
const MANY_FUNCTIONS: usize = 50_000;

/// How much time packing may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Little.
    Quick,
    /// Until the member is large, from where on every step counts.
    UntilLarge,
    /// The same, and from there on with less: a page of two megabytes is a thirtieth larger by it.
    OfPage,
    /// For a small file.
    Small,
    /// For a huge one: a Firefox file is by five per cent larger than with [`UntilLarge`](Self::UntilLarge).
    Least,
}

impl Effort {
    /// This much, but the least for a profile of very many functions.
    #[must_use]
    pub fn for_functions(self, functions: usize) -> Self {
        if functions < MANY_FUNCTIONS {
            self
        } else {
            Self::Least
        }
    }

    /// How a block is packed that so many bytes are in front of.
    fn level(self, before: u64) -> u32 {
        match self {
            Self::Least => LEAST_LEVEL,
            Self::Quick => QUICK_LEVEL,
            Self::UntilLarge if before >= LARGE => QUICK_LEVEL,
            Self::OfPage if before >= LARGE => LEAST_LEVEL,
            Self::UntilLarge | Self::OfPage | Self::Small => LEVEL,
        }
    }
}

/// What a member begins with: no name, no time, no system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Writes the bytes as one member without a name or a time: browsers read no second one.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(bytes: &[u8], threads: usize, effort: Effort, out: &mut dyn Write) -> io::Result<()> {
    let mut packer = Packer::new(out, threads, effort)?;
    packer.write_all(bytes)?;
    packer.finish().map(drop)
}

/// One member of what is written bit by bit: the same bytes as [`write()`] makes.
pub struct Packer<W: Write> {
    out: W,
    threads: usize,
    /// What was packed last and may be looked back at, then what is to be packed.
    waiting: Vec<u8>,
    packed: usize,
    /// How much was packed in all.
    before: u64,
    effort: Effort,
    crc: Crc,
}

impl<W: Write> Packer<W> {
    /// Begins a member.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(mut out: W, threads: usize, effort: Effort) -> io::Result<Self> {
        out.write_all(&HEAD)?;
        Ok(Self {
            out,
            threads: threads.max(1),
            waiting: Vec::new(),
            packed: 0,
            before: 0,
            effort,
            crc: Crc::new(),
        })
    }

    /// Ends the member, and gives back what it was written to.
    ///
    /// # Errors
    /// When the last bytes cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.pack_waiting(true)?;
        self.out.write_all(&self.crc.sum().to_le_bytes())?;
        self.out.write_all(&self.crc.amount().to_le_bytes())?;
        Ok(self.out)
    }

    /// Packs whole blocks, and at the end the rest. The last block waits, since it has to be known as such.
    fn pack_waiting(&mut self, is_end: bool) -> io::Result<()> {
        let whole = (self.waiting.len() - self.packed).saturating_sub(1) / BLOCK * BLOCK;
        let until = if is_end {
            self.waiting.len()
        } else {
            self.packed + whole
        };
        self.crc.update(&self.waiting[self.packed..until]);
        let mut starts: Vec<usize> = (self.packed..until).step_by(BLOCK).collect();
        if is_end && starts.is_empty() {
            starts.push(until);
        }
        let bytes = &self.waiting[..until];
        let (packed, before_all, effort) = (self.packed, self.before, self.effort);
        let level = |start: usize| effort.level(before_all + (start - packed) as u64);
        let blocks = in_parallel(starts, self.threads, |start| {
            let end = until.min(start + BLOCK);
            let before = &bytes[start.saturating_sub(WINDOW)..start];
            pack(
                before,
                &bytes[start..end],
                level(start),
                is_end && end == until,
            )
        });
        self.before += (until - self.packed) as u64;
        for block in blocks {
            self.out.write_all(&block?)?;
        }
        let kept = until.saturating_sub(WINDOW);
        self.waiting.drain(..kept);
        self.packed = until - kept;
        Ok(())
    }

    /// How much may wait before it is packed: a block for each thread.
    fn most(&self) -> usize {
        self.packed + self.threads * BLOCK + 1
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.most() - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..taken]);
        if self.waiting.len() == self.most() {
            self.pack_waiting(false)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A piece of one stream that ends at a whole byte, behind what readers have read before.
fn pack(before: &[u8], block: &[u8], level: u32, is_last: bool) -> io::Result<Vec<u8>> {
    let mut compress = Compress::new(Compression::new(level), false);
    if !before.is_empty() {
        compress.set_dictionary(before).map_err(io::Error::other)?;
    }
    let flush = if is_last {
        FlushCompress::Finish
    } else {
        FlushCompress::Sync
    };
    let mut packed = Vec::with_capacity(block.len() / 3 + 64);
    loop {
        let done = compress.total_in() as usize;
        let status = compress
            .compress_vec(&block[done..], &mut packed, flush)
            .map_err(io::Error::other)?;
        let is_done = match status {
            Status::StreamEnd => true,
            // There was room to spare, so all of it is flushed.
            _ => {
                !is_last
                    && compress.total_in() as usize == block.len()
                    && packed.len() < packed.capacity()
            }
        };
        if is_done {
            return Ok(packed);
        }
        packed.reserve(packed.len().max(64));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn it_is_one_member_whatever_the_number_of_threads() {
        let large = LARGE as usize;
        for len in [
            0,
            1,
            1000,
            BLOCK,
            BLOCK + 1,
            3 * BLOCK + 77,
            large + BLOCK + 1,
        ] {
            let bytes: Vec<u8> = (0..len as u32)
                .map(|i| (i.wrapping_mul(2_654_435_761) >> (i % 29)) as u8)
                .collect();
            let effort = match len % 4 {
                0 => Effort::Quick,
                1 => Effort::OfPage,
                2 => Effort::UntilLarge,
                _ => Effort::Least,
            };
            let mut first = Vec::new();
            write(&bytes, 1, effort, &mut first).expect("a vector takes everything");
            let mut again = Vec::new();
            write(&bytes, 3, effort, &mut again).expect("a vector takes everything");
            assert!(first == again);
            for (threads, step) in [(1, 70_001), (3, BLOCK)] {
                let mut packer = Packer::new(Vec::new(), threads, effort).expect("a vector");
                for piece in bytes.chunks(step) {
                    packer.write_all(piece).expect("a vector");
                }
                assert!(packer.finish().expect("a vector") == first, "{len}");
            }
            let mut read = Vec::new();
            GzDecoder::new(&first[..])
                .read_to_end(&mut read)
                .expect("gzip");
            assert!(read == bytes, "{len}");
        }
    }
}
