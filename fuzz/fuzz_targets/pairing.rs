//! Calls, returns and frees in any order, of few threads, functions and addresses so that much of it meets: no panic, and
//! totals that hold. Five bytes are a fact: what, thread, address, and its size.
#![no_main]

use pjit::ids::ThreadId;
use pjit::session::SampleId;
use pjit::jit::ProcessId;
use pjit::weigh::Kind;
use pjit::weigh::heap::{At, Block, Fact, Pairing};

const KINDS: [Kind; 4] = [
    Kind::Alloc(0),
    Kind::AllocMany,
    Kind::Realloc,
    Kind::AllocInto,
];

fn fact(what: u8, place: u8, bytes: u64) -> Fact {
    let function = 0x100 + u64::from(what >> 4) % 4;
    let (pointer, heap) = (u64::from(place >> 1), u64::from(place & 1));
    match what & 15 {
        0..=5 => Fact::Call {
            kind: KINDS[(function - 0x100) as usize],
            function,
            bytes,
            pointer,
            heap,
            returns: what & 15 < 5,
        },
        6..=10 => Fact::Return {
            function,
            value: pointer,
        },
        11..=13 => Fact::Free { pointer, heap },
        14 => {
            let (process, time) = (ProcessId(u32::from(place) % 3), bytes);
            match what >> 4 & 1 {
                0 => Fact::Exec { process, time },
                _ => Fact::End { process, time },
            }
        }
        _ => Fact::Born {
            parent: ProcessId(u32::from(place) % 3),
            child: ProcessId(u32::from(what >> 4) % 3),
        },
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut pairing = Pairing::default();
    let mut asked = 0_u64;
    for (number, step) in (0..).zip(bytes.chunks_exact(5)) {
        // Up to what four threads cannot make overflow, and beyond 32 bits.
        let size = u64::from(u16::from_le_bytes([step[3], step[4]])) << (step[1] & 31);
        let fact = fact(step[0], step[2], size);
        if let Fact::Call { bytes, .. } = fact {
            asked = asked.saturating_add(bytes);
        }
        let thread = u32::from(step[1] >> 6);
        let at = At {
            thread: ThreadId(thread),
            process: ProcessId(thread / 2),
            sample: SampleId(number),
            stack: u64::from(step[1] & 3) << 4,
        };
        pairing.take(at, fact);
    }
    let tally = pairing.finish();
    let sum = |blocks: &mut dyn Iterator<Item = &Block>| blocks.map(Block::bytes).sum::<u64>();
    let counted = sum(&mut tally.blocks.iter());
    let live = sum(&mut tally.blocks.iter().filter(|block| tally.is_live(block)));
    let at_peak = tally
        .blocks
        .indices()
        .filter(|number| tally.is_of_peak(*number));
    let at_peak: u64 = at_peak.map(|number| tally.blocks[number].bytes()).sum();
    assert!(counted <= asked, "more was given than was asked for");
    assert_eq!(live, tally.live);
    assert!(live <= tally.peak && tally.peak <= counted);
    assert_eq!(at_peak, tally.peak);
    assert!(tally.blocks.iter().all(|block| block.call <= block.end));
});
