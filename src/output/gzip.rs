//! One gzip member, made on several threads: the bytes do not depend on their number.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use crate::parallel::in_parallel;

/// What one thread compresses at once. Blocks know nothing of each other, which costs a per cent or two of size.
const BLOCK: usize = 1 << 20;

/// Writes the bytes as one member without a name or a time: browsers read no second one.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(bytes: &[u8], threads: usize, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])?;
    let blocks: Vec<&[u8]> = if bytes.is_empty() {
        vec![bytes]
    } else {
        bytes.chunks(BLOCK).collect()
    };
    let last = blocks.len() - 1;
    let blocks = blocks.into_iter().enumerate().collect();
    let packed = in_parallel(blocks, threads, |(at, block)| pack(block, at == last));
    for block in packed {
        out.write_all(&block?)?;
    }
    let mut crc = Crc::new();
    crc.update(bytes);
    out.write_all(&crc.sum().to_le_bytes())?;
    out.write_all(&crc.amount().to_le_bytes())
}

/// A piece of one stream that ends at a whole byte.
fn pack(block: &[u8], is_last: bool) -> io::Result<Vec<u8>> {
    let mut compress = Compress::new(Compression::new(6), false);
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
        for len in [0, 1, 1000, BLOCK, BLOCK + 1, 3 * BLOCK + 77] {
            let bytes: Vec<u8> = (0..len as u32)
                .map(|i| (i.wrapping_mul(2_654_435_761) >> (i % 29)) as u8)
                .collect();
            let mut first = Vec::new();
            write(&bytes, 1, &mut first).expect("a vector takes everything");
            let mut again = Vec::new();
            write(&bytes, 3, &mut again).expect("a vector takes everything");
            assert!(first == again);
            let mut read = Vec::new();
            GzDecoder::new(&first[..])
                .read_to_end(&mut read)
                .expect("gzip");
            assert!(read == bytes, "{len}");
        }
    }
}
