//! The files that belong to a program, of any bytes: the one that its debug link names, its dwz file, and the one packed into
//! it (`.gnu_debugdata`), well compressed or not. The first byte chooses.
#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../src/formats/dso/build_elf.rs"]
mod build_elf;

use build_elf::ElfBuilder;
use pjit_fuzz::{resolve_all, write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let mut elf = ElfBuilder::new(0x100);
    elf.build_id(&[7; 20]);
    match kind % 4 {
        0 => {
            write("symfs/fuzzed.debug", rest);
            let mut crc = Crc::default();
            crc.update(rest);
            let mut link = b"fuzzed.debug\0\0\0\0".to_vec();
            link.extend(crc.finish().to_le_bytes());
            elf.section(".gnu_debuglink", 1, link);
        }
        1 => {
            write("symfs/fuzzed.dwz", rest);
            let mut link = b"/fuzzed.dwz\0".to_vec();
            link.extend([9; 20]);
            elf.section(".gnu_debugaltlink", 1, link);
            elf.section(".debug_info", 1, vec![0; 32]);
        }
        2 => _ = elf.section(".gnu_debugdata", 1, rest.to_vec()),
        _ => {
            let mut packed = Vec::new();
            lzma_rs::xz_compress(&mut &rest[..], &mut packed).expect("memory takes everything");
            elf.section(".gnu_debugdata", 1, packed);
        }
    }
    write("symfs/fuzzed", &elf.build());
    resolve_all();
});

/// CRC-32 as in zlib.
struct Crc(u32);

impl Default for Crc {
    fn default() -> Self {
        Self(!0)
    }
}

impl Crc {
    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 ^= u32::from(*byte);
            for _ in 0..8 {
                self.0 = self.0 >> 1 ^ (0xedb8_8320 & (self.0 & 1).wrapping_neg());
            }
        }
    }

    fn finish(&self) -> u32 {
        !self.0
    }
}
