//! Stacks of one thread that are cut and completed from each other: a chain of frames that changes from sample to sample, of
//! which each sample has a part. However it is cut, the output does not depend on the number of threads, and every sample is in it.
#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../src/formats/dso/build_elf.rs"]
mod build_elf;

use build_elf::ElfBuilder;
use pjit_fuzz::{FILE_START, folded_with, recording_of, write};

/// Where the chain of frames begins.
const STACK: u64 = 0x7ffe_0000_0000;
/// Frames of it.
const FRAMES: usize = 32;
/// Bytes from frame to frame.
const FRAME: usize = 32;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut elf = ElfBuilder::without_text(62, 3);
    elf.segment(0, 0, 0x20_0000, 5);
    // Every fifth address is behind a call.
    elf.section_at(
        ".text",
        1,
        6,
        0x1000,
        0x1000,
        [0xe8, 0, 0, 0, 0].repeat(256),
    );
    write("symfs/fuzzed", &elf.build());
    let mut memory = vec![0_u8; FRAMES * FRAME];
    for frame in 0..FRAMES {
        let next = if frame + 1 < FRAMES {
            address(frame + 1)
        } else {
            0
        };
        put(&mut memory, frame, 0, next);
        put(&mut memory, frame, 8, code(0));
    }
    let mut samples = Vec::new();
    for step in bytes.chunks_exact(4).take(512) {
        let frame = usize::from(step[0]) % FRAMES;
        put(&mut memory, frame, 8, code(step[1]));
        put(&mut memory, frame, 16, u64::from(step[1] & 1));
        let innermost = usize::from(step[2]) % FRAMES;
        let end = innermost + usize::from(step[3]) % FRAMES + 1;
        let copy = memory[innermost * FRAME..end.min(FRAMES) * FRAME].to_vec();
        let mut registers = [code(step[3]); 20];
        (registers[6], registers[7]) = (address(innermost), address(innermost));
        registers[1] = u64::from(step[3] & 1);
        samples.push((registers[8], registers, copy));
    }
    let users: Vec<_> = samples
        .iter()
        .map(|(ip, registers, copy)| (*ip, *registers, &copy[..]))
        .collect();
    let recording = recording_of(&users);
    let one = folded_with(&recording, &["--stitch"], 1);
    assert_eq!(one, folded_with(&recording, &["--stitch"], 3));
    let plain = folded_with(&recording, &["--no-cut-marks"], 1);
    assert_eq!(weight(&one), weight(&plain));
});

fn address(frame: usize) -> u64 {
    STACK + (frame * FRAME) as u64
}

fn code(n: u8) -> u64 {
    FILE_START + 0x1000 + 5 * (1 + u64::from(n % 64))
}

fn put(memory: &mut [u8], frame: usize, offset: usize, word: u64) {
    let at = frame * FRAME + offset;
    memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

fn weight(folded: &str) -> u64 {
    let weights = folded.lines().filter_map(|line| line.rsplit(' ').next());
    weights
        .filter_map(|weight| weight.parse::<u64>().ok())
        .sum()
}
