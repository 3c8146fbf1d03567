//! Pairing calls of allocators with their returns and frees, apart from reading them: `cargo bench --bench pairing`.
//!
//! The events are those of `scripts/big-recordings/heap.sh`: blocks that are given back at once, and more and more of
//! them that stay, which is what a table of addresses has to bear.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use pjit::ids::ThreadId;
use pjit::jit::ProcessId;
use pjit::session::SampleId;
use pjit::weigh::Kind;
use pjit::weigh::heap::{At, Fact, Pairing};

fn main() {
    divan::main();
}

/// Blocks that are made: each has a call, a return and a free.
const BLOCKS: usize = 1_000_000;
/// Facts that are paired while one is on its way from memory.
const AHEAD: usize = 16;
const FUNCTION: u64 = 0x7f00_0000;

/// Facts of a program with so many threads, of which each block stays until `live` others were made.
fn events(threads: u32, live: usize) -> Vec<(ThreadId, Fact)> {
    // As glibc gives them: a block's place is taken again when it is free.
    let address = |block: usize| 0x5555_0000_0000 + (block % (live + 1)) as u64 * 48;
    let mut facts = Vec::with_capacity(3 * BLOCKS);
    for (thread, block) in (0..threads).map(ThreadId).cycle().zip(0..BLOCKS) {
        let call = Fact::Call {
            kind: Kind::Alloc(0),
            function: FUNCTION,
            bytes: 24 + (block % 7) as u64,
            pointer: 0,
            heap: 0,
            returns: true,
        };
        let back = Fact::Return {
            function: FUNCTION,
            value: address(block),
        };
        facts.extend([(thread, call), (thread, back)]);
        if let Some(old) = block.checked_sub(live) {
            let pointer = address(old);
            facts.push((thread, Fact::Free { pointer, heap: 0 }));
        }
    }
    facts
}

/// So many blocks at a time, in one thread.
#[divan::bench(args = [0, 1_000, 100_000, 1_000_000])]
fn live(bencher: Bencher<'_, '_>, live: usize) {
    measure(bencher, &events(1, live));
}

/// So many threads.
#[divan::bench(args = [1, 8, 64])]
fn threads(bencher: Bencher<'_, '_>, threads: u32) {
    measure(bencher, &events(threads, 1_000));
}

/// The address that a fact will ask for, where that is known beforehand.
fn asked(fact: &Fact) -> Option<u64> {
    match *fact {
        Fact::Return { value, .. } => Some(value),
        Fact::Free { pointer, .. } => Some(pointer),
        _ => None,
    }
}

fn measure(bencher: Bencher<'_, '_>, facts: &[(ThreadId, Fact)]) {
    bencher
        .counter(ItemsCount::new(facts.len()))
        .bench_local(|| {
            let mut pairing = Pairing::default();
            for (number, (thread, fact)) in (0..).zip(facts) {
                // As samples are read: what is known of an address is on its way when its turn comes.
                let soon = facts.get(number as usize + AHEAD);
                if let Some(address) = soon.and_then(|(_, next)| asked(next)) {
                    pairing.expect(ProcessId(1), 0, address);
                }
                let at = At {
                    thread: *thread,
                    process: ProcessId(1),
                    sample: SampleId(number),
                    stack: 0,
                };
                pairing.take(at, *fact);
            }
            black_box(pairing.finish())
        });
}
