//! Pairs calls of allocators with their returns and frees.
//!
//! In: what each call, return and free said, in order of time, and births, programs and ends of processes. Out:
//! [`Tally`], the blocks that count, those that are left at the end, what could not be paired.
//!
//! State is kept for each process, by address, and for each thread, its calls that have not returned. Calls of
//! allocators from allocators count nothing: `realloc(NULL)` of glibc is a call of `malloc`.

use rustc_hash::FxHashMap;

use crate::ids::{Idx, IndexVec, ThreadId};
use crate::session::SampleId;
use crate::session::jit::ProcessId;

use super::addresses::Addresses;
pub use super::addresses::BlockId;
use super::allocators::Kind;

/// Blocks of one heap at most.
const MOST_BLOCKS: usize = 1 << 26;
/// Blocks that forked processes may take over, all together.
const MOST_INHERITED: usize = 1 << 26;
/// Calls of one thread that may be pending: allocators nest a few times.
const MOST_PENDING: usize = 256;

/// One thing that concerns the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// A call of an allocator.
    Call {
        /// What it does.
        kind: Kind,
        /// Its address.
        function: u64,
        /// How many are asked for.
        bytes: u64,
        /// What `realloc` is given.
        pointer: u64,
        /// Which heap of the process, for guests with several.
        heap: u64,
        /// Its returns are recorded.
        returns: bool,
    },
    /// A return from one.
    Return {
        /// The address of the function.
        function: u64,
        /// What it gives.
        value: u64,
    },
    /// A block is given back.
    Free {
        /// Where it is.
        pointer: u64,
        /// In which heap of the process.
        heap: u64,
    },
    /// A process is made as a copy of another.
    Born {
        /// Whose memory is copied.
        parent: ProcessId,
        /// Who has the copy.
        child: ProcessId,
    },
    /// A process forgets everything.
    Exec(ProcessId),
}

/// A counted allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The sample of the call.
    pub call: SampleId,
    /// That of the return, if there is one; else the same.
    pub end: SampleId,
    /// Bytes in two halves: blocks are many, and their size would else be a multiple of 8.
    size: [u32; 2],
    /// Before or with which sample it was gone; all ones as long as it is there.
    pub gone: SampleId,
}

/// A block that is there.
const THERE: SampleId = SampleId(u32::MAX);

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that count, in the order of their returns.
    pub blocks: IndexVec<BlockId, Block>,
    /// Calls of allocators from allocators.
    pub nested: u64,
    /// Allocations whose address nobody told.
    pub without_address: u64,
    /// Calls that were given nothing.
    pub failed: u64,
    /// Frees of what nobody was seen to allocate.
    pub unpaired_frees: u64,
    /// Blocks whose address was given out once more.
    pub lost_frees: u64,
    /// Calls that never returned: jumped over, or lost.
    pub without_return: u64,
    /// Returns without a call.
    pub unpaired_returns: u64,
    /// Bytes of the blocks with address, now and when they were most, and the sample with which that was.
    pub live: u64,
    /// See `live`.
    pub peak: u64,
    /// See `live`.
    pub peak_at: SampleId,
    /// Blocks that there had been then.
    peak_blocks: usize,
}

impl Tally {
    /// Whether the block of this number was there when there was most.
    #[must_use]
    pub fn is_of_peak(&self, number: BlockId) -> bool {
        let block = self
            .blocks
            .get(number)
            .filter(|_| number.index() < self.peak_blocks);
        block.is_some_and(|block| block.gone > self.peak_at)
    }
}

/// A block that came with a fork.
const INHERITED: BlockId = BlockId(u32::MAX);

#[derive(Debug, Clone, Copy)]
struct Pending {
    kind: Kind,
    function: u64,
    bytes: u64,
    call: SampleId,
    heap: u64,
    pointer: u64,
    /// The block that `realloc` was given.
    taken: Option<BlockId>,
    is_nested: bool,
}

/// Pairs facts as they come.
#[derive(Debug, Default)]
pub struct Pairing {
    /// By process and heap: numbers in [`Tally::blocks`].
    heaps: FxHashMap<(ProcessId, u64), Addresses>,
    /// By number of the thread.
    pending: Vec<Vec<Pending>>,
    /// By thread: bytes of a `realloc(NULL)` that came just before, when returns are not recorded.
    fresh: FxHashMap<ThreadId, u64>,
    tally: Tally,
    inherited: usize,
}

impl Pairing {
    /// The next fact: of which thread and process, and its sample or the next one.
    pub fn take(&mut self, (thread, process): (ThreadId, ProcessId), sample: SampleId, fact: Fact) {
        match fact {
            Fact::Call {
                kind,
                function,
                bytes,
                pointer,
                heap,
                returns,
            } => {
                let pending = Pending {
                    kind,
                    function,
                    bytes,
                    call: sample,
                    heap,
                    pointer,
                    taken: None,
                    is_nested: false,
                };
                self.call(thread, process, pending, returns);
            }
            Fact::Return { function, value } => {
                self.returned((thread, process), sample, function, value);
            }
            Fact::Free { pointer, heap } => self.free((thread, process), sample, pointer, heap),
            Fact::Born { parent, child } => self.born(parent, child),
            Fact::Exec(process) => {
                let of = self.heaps.extract_if(|(of, _), _| *of == process);
                let gone: Vec<Addresses> = of.map(|(_, blocks)| blocks).collect();
                // In the order of nothing: each is treated alike.
                for (_, block) in gone.iter().flat_map(Addresses::iter) {
                    self.close(block, sample);
                }
            }
        }
    }

    /// Has loaded what is known of an address, of which a fact follows soon: a table of many blocks is no longer near.
    pub fn expect(&self, process: ProcessId, heap: u64, address: u64) {
        if let Some(blocks) = self.heaps.get(&(process, heap)) {
            blocks.expect(address);
        }
    }

    /// Calls of a thread that have not returned.
    fn pending(&mut self, thread: ThreadId) -> &mut Vec<Pending> {
        let number = thread.index();
        if number >= self.pending.len() {
            self.pending.resize_with(number + 1, Vec::new);
        }
        &mut self.pending[number]
    }

    fn heap(&mut self, process: ProcessId, heap: u64) -> &mut Addresses {
        self.heaps.entry((process, heap)).or_default()
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> Tally {
        let left: usize = self.pending.iter().map(Vec::len).sum();
        self.tally.without_return += left as u64;
        self.tally
    }

    fn call(&mut self, thread: ThreadId, process: ProcessId, mut call: Pending, returns: bool) {
        call.is_nested = !self.pending(thread).is_empty();
        if returns {
            if call.kind.reallocates() && call.pointer != 0 {
                // Another thread may get the address before this one is back.
                call.taken = self.heap(process, call.heap).remove(call.pointer);
            }
            let calls = self.pending(thread);
            let is_full = calls.len() >= MOST_PENDING;
            if is_full {
                calls.remove(0);
            }
            calls.push(call);
            self.tally.without_return += u64::from(is_full);
            return;
        }
        let follows = self.fresh.remove(&thread) == Some(call.bytes);
        let is_plain = matches!(call.kind, Kind::Alloc(0));
        if call.kind.reallocates() && call.pointer == 0 {
            self.fresh.insert(thread, call.bytes);
        }
        if call.is_nested || (follows && is_plain) {
            self.tally.nested += 1;
            return;
        }
        if call.kind.reallocates()
            && call.pointer != 0
            && let Some(block) = self.heap(process, call.heap).remove(call.pointer)
        {
            self.close(block, call.call);
        }
        self.tally.without_address += 1;
        self.count(&call, call.call, false);
    }

    fn returned(
        &mut self,
        (thread, process): (ThreadId, ProcessId),
        sample: SampleId,
        function: u64,
        value: u64,
    ) {
        let calls = self.pending(thread);
        let Some(at) = calls.iter().rposition(|call| call.function == function) else {
            self.tally.unpaired_returns += 1;
            return;
        };
        let jumped_over = calls.split_off(at + 1);
        let Some(call) = calls.pop() else { return };
        let is_outermost = calls.is_empty();
        self.tally.without_return += jumped_over.len() as u64;
        for call in jumped_over {
            self.give_back(process, &call);
        }
        if call.is_nested && !is_outermost {
            // What the outer call was given stays with it; what this one was given is gone with its success.
            if value == 0 {
                self.give_back(process, &call);
            } else if let Some(block) = call.taken {
                self.close(block, sample);
            }
            self.tally.nested += 1;
            return;
        }
        self.succeeded(process, sample, &call, value);
    }

    /// An outermost call is back.
    fn succeeded(&mut self, process: ProcessId, sample: SampleId, call: &Pending, value: u64) {
        let into = call.kind == Kind::AllocInto;
        if (value == 0) != into {
            // `realloc(p, 0)` frees.
            if call.bytes > 0 {
                self.tally.failed += 1;
                self.give_back(process, call);
            } else if let Some(block) = call.taken {
                self.close(block, sample);
            }
            return;
        }
        if let Some(block) = call.taken {
            self.close(block, sample);
        }
        let block = self.count(call, sample, !into);
        if into {
            self.tally.without_address += 1;
            return;
        }
        let heap = self.heap(process, call.heap);
        if heap.len() >= MOST_BLOCKS {
            self.tally.without_address += 1;
            self.tally.blocks[block].lose();
            return;
        }
        if let Some(before) = heap.insert(value, block) {
            self.tally.lost_frees += 1;
            self.close(before, sample);
        }
        let tally = &mut self.tally;
        tally.live = tally.live.saturating_add(call.bytes);
        if tally.live > tally.peak {
            tally.peak = tally.live;
            tally.peak_at = sample;
            tally.peak_blocks = tally.blocks.len();
        }
    }

    fn give_back(&mut self, process: ProcessId, call: &Pending) {
        if let Some(block) = call.taken {
            self.heap(process, call.heap).insert(call.pointer, block);
        }
    }

    fn count(&mut self, call: &Pending, end: SampleId, has_address: bool) -> BlockId {
        let mut new = Block {
            call: call.call,
            end,
            size: [call.bytes as u32, (call.bytes >> 32) as u32],
            gone: THERE,
        };
        if !has_address {
            new.lose();
        }
        self.tally.blocks.push(new)
    }

    fn free(
        &mut self,
        (thread, process): (ThreadId, ProcessId),
        sample: SampleId,
        pointer: u64,
        heap: u64,
    ) {
        let inside = self.pending(thread).last();
        if pointer == 0 || inside.is_some_and(|call| call.kind.reallocates()) {
            return;
        }
        match self.heap(process, heap).remove(pointer) {
            Some(block) => self.close(block, sample),
            None => self.tally.unpaired_frees += 1,
        }
    }

    /// A block is there no longer.
    fn close(&mut self, block: BlockId, sample: SampleId) {
        if block == INHERITED {
            return;
        }
        let block = &mut self.tally.blocks[block];
        self.tally.live = self.tally.live.saturating_sub(block.bytes());
        block.gone = sample;
    }

    /// The child has a copy of all blocks, which nobody allocated anew.
    fn born(&mut self, parent: ProcessId, child: ProcessId) {
        if parent == child {
            return;
        }
        let mut taken_over = Vec::new();
        for ((of, heap), blocks) in &self.heaps {
            let fits = self.inherited + blocks.len() <= MOST_INHERITED;
            if *of == parent && fits {
                self.inherited += blocks.len();
                let mut taken = Addresses::default();
                for (address, _) in blocks.iter() {
                    taken.insert(address, INHERITED);
                }
                taken_over.push(((child, *heap), taken));
            }
        }
        self.heaps.extend(taken_over);
    }
}

impl Block {
    /// How large it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.size[0]) | u64::from(self.size[1]) << 32
    }

    /// Nobody knows where it is, so it counts as gone.
    fn lose(&mut self) {
        self.gone = SampleId(0);
    }

    /// Whether it was never given back.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.gone == THERE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// And an address takes 27 bytes at most: 48 together are not reached.
    #[test]
    fn a_block_takes_twenty_bytes() {
        assert_eq!(size_of::<Block>(), 20);
    }

    const OF: (ThreadId, ProcessId) = (ThreadId(1), ProcessId(1));
    const MALLOC: u64 = 0x100;
    const REALLOC: u64 = 0x200;

    #[derive(Default)]
    struct Tale {
        pairing: Pairing,
        time: u64,
    }

    impl Tale {
        fn take(&mut self, of: (ThreadId, ProcessId), fact: Fact) -> &mut Self {
            self.time += 1;
            let sample = SampleId(u32::try_from(self.time).expect("few"));
            self.pairing.take(of, sample, fact);
            self
        }

        fn call(&mut self, function: u64, bytes: u64, pointer: u64) -> &mut Self {
            let kind = if function == MALLOC {
                Kind::Alloc(0)
            } else {
                Kind::Realloc
            };
            self.take(
                OF,
                Fact::Call {
                    kind,
                    function,
                    bytes,
                    pointer,
                    heap: 0,
                    returns: true,
                },
            )
        }

        fn back(&mut self, function: u64, value: u64) -> &mut Self {
            self.take(OF, Fact::Return { function, value })
        }

        fn free(&mut self, pointer: u64) -> &mut Self {
            self.take(OF, Fact::Free { pointer, heap: 0 })
        }

        fn tally(&mut self) -> Tally {
            std::mem::take(&mut self.pairing).finish()
        }
    }

    fn live(tally: &Tally) -> Vec<u64> {
        let live = tally.blocks.iter().filter(|block| block.is_live());
        live.map(Block::bytes).collect()
    }

    #[test]
    fn a_block_lives_from_its_return_to_its_free() {
        let mut tale = Tale::default();
        tale.call(MALLOC, 10, 0).back(MALLOC, 0xa);
        tale.call(MALLOC, 20, 0).back(MALLOC, 0xb);
        tale.free(0xa).free(0xc).free(0);
        let tally = tale.tally();
        assert_eq!(live(&tally), [20]);
        assert_eq!((tally.live, tally.peak, tally.peak_at.0), (20, 30, 4));
        assert_eq!(tally.unpaired_frees, 1);
    }

    #[test]
    fn realloc_is_a_free_and_a_new_block() {
        let mut tale = Tale::default();
        tale.call(REALLOC, 16, 0).call(MALLOC, 16, 0);
        tale.back(MALLOC, 0xa).back(REALLOC, 0xa);
        tale.call(REALLOC, 32, 0xa).free(0xa).back(REALLOC, 0xb);
        let tally = tale.tally();
        assert_eq!((tally.blocks.len(), tally.nested), (2, 1));
        assert_eq!(live(&tally), [32]);
        assert_eq!(tally.peak, 32);
    }

    #[test]
    fn a_realloc_that_fails_leaves_its_block() {
        let mut tale = Tale::default();
        tale.call(MALLOC, 16, 0).back(MALLOC, 0xa);
        tale.call(REALLOC, 1 << 60, 0xa).back(REALLOC, 0);
        tale.call(REALLOC, 0, 0xa).back(REALLOC, 0);
        let tally = tale.tally();
        assert_eq!((tally.failed, tally.live, live(&tally).len()), (1, 0, 0));
    }

    #[test]
    fn what_was_lost_is_noticed() {
        let mut tale = Tale::default();
        tale.call(MALLOC, 16, 0).back(MALLOC, 0xa);
        // Its free was lost, then a call that never returned, then a return without a call.
        tale.call(REALLOC, 8, 0)
            .call(MALLOC, 16, 0)
            .back(REALLOC, 0xa);
        tale.back(MALLOC, 0xc);
        let tally = tale.tally();
        assert_eq!(tally.lost_frees, 1);
        assert_eq!(tally.without_return, 1);
        assert_eq!(tally.unpaired_returns, 1);
        assert_eq!(tally.live, 8);
    }

    #[test]
    fn a_forked_process_has_blocks_of_no_weight() {
        let child = (ThreadId(2), ProcessId(2));
        let mut tale = Tale::default();
        tale.call(MALLOC, 16, 0).back(MALLOC, 0xa);
        tale.take(
            child,
            Fact::Born {
                parent: ProcessId(1),
                child: ProcessId(2),
            },
        );
        tale.take(
            child,
            Fact::Free {
                pointer: 0xa,
                heap: 0,
            },
        );
        tale.take(OF, Fact::Exec(ProcessId(2)));
        let tally = tale.tally();
        assert_eq!((tally.unpaired_frees, tally.live), (0, 16));
    }

    #[test]
    fn without_returns_volume_is_counted_and_nesting_guessed() {
        let mut tale = Tale::default();
        let call = |kind, bytes, pointer| Fact::Call {
            kind,
            function: 1,
            bytes,
            pointer,
            heap: 0,
            returns: false,
        };
        tale.take(OF, call(Kind::Realloc, 16, 0));
        tale.take(OF, call(Kind::Alloc(0), 16, 0));
        tale.take(OF, call(Kind::Alloc(0), 16, 0));
        tale.take(OF, call(Kind::Realloc, 32, 5));
        let tally = tale.tally();
        assert_eq!((tally.blocks.len(), tally.nested), (3, 1));
    }

    /// A fact of few functions, addresses and processes, so that much of it meets.
    fn any_fact(of: (u8, u64, u64)) -> Fact {
        let (what, number, bytes) = of;
        let function = 0x100 + u64::from(what) % 3;
        match what % 8 {
            0..=2 => Fact::Call {
                kind: [Kind::Alloc(0), Kind::Realloc, Kind::AllocInto][(function - 0x100) as usize],
                function,
                bytes,
                pointer: number,
                heap: number % 2,
                returns: what < 200,
            },
            3..=5 => Fact::Return {
                function,
                value: number,
            },
            6 => Fact::Free {
                pointer: number,
                heap: number % 2,
            },
            _ if bytes % 2 == 0 => Fact::Exec(ProcessId(number as u32 % 3)),
            _ => Fact::Born {
                parent: ProcessId(0),
                child: ProcessId(number as u32 % 3),
            },
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_in_whatever_order_totals_hold(
            facts in proptest::collection::vec((0..3_u32, 0..=255_u8, 0..12_u64, 0..1_000_u64), 0..400)
        ) {
            let mut pairing = Pairing::default();
            let mut asked = 0;
            for (number, (thread, what, place, bytes)) in (0..).zip(facts) {
                let fact = any_fact((what, place, bytes));
                if let Fact::Call { bytes, .. } = fact {
                    asked += bytes;
                }
                let of = (ThreadId(thread), ProcessId(thread / 2));
                pairing.take(of, SampleId(number), fact);
            }
            let tally = pairing.finish();
            let counted: u64 = tally.blocks.iter().map(Block::bytes).sum();
            let there: u64 = live(&tally).into_iter().sum();
            let most = tally.blocks.indices().filter(|number| tally.is_of_peak(*number));
            let at_peak: u64 = most.map(|number| tally.blocks[number].bytes()).sum();
            proptest::prop_assert!(counted <= asked);
            proptest::prop_assert_eq!(there, tally.live);
            proptest::prop_assert!(tally.live <= tally.peak && tally.peak <= counted);
            proptest::prop_assert_eq!(at_peak, tally.peak);
            proptest::prop_assert!(tally.blocks.iter().all(|block| block.call <= block.end));
        }
    }
}
