//! Pairs calls of allocators with their returns and frees.
//!
//! In: what each call, return and free said, in order of time, and births, programs and ends of processes. Out:
//! [`Tally`], the blocks that count, those that are left at the end, what could not be paired.
//!
//! State is kept for each process, by address, and for each thread, its calls that have not returned. Calls of
//! allocators from allocators count nothing: `realloc(NULL)` of glibc is a call of `malloc`. A call whose return was lost
//! looks as if all later ones of its thread were within it, so [`Pairing`] ends calls that cannot be pending any more.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::ids::{Idx, IndexVec, ThreadId};
use crate::jit::ProcessId;
use crate::session::SampleId;

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
    /// A mapping is taken back.
    Unmap {
        /// Where it begins.
        start: u64,
        /// How long it is.
        bytes: u64,
    },
    /// A process forgets everything.
    Exec {
        /// Which one.
        process: ProcessId,
        /// When, in ns.
        time: u64,
    },
    /// The thread is at its end: what it called will not return.
    Exit,
    /// A process is at its end, and gives back what it has.
    End {
        /// Which one.
        process: ProcessId,
        /// When, in ns.
        time: u64,
    },
}

/// Where a fact was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// By which thread.
    pub thread: ThreadId,
    /// In which process.
    pub process: ProcessId,
    /// Its sample, or the next one.
    pub sample: SampleId,
    /// The stack pointer, or 0 if it was not recorded.
    pub stack: u64,
}

/// A counted allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The sample of the call.
    pub call: SampleId,
    /// That of the return, if there is one; else the same.
    pub end: SampleId,
    /// Bytes in two halves: blocks are many, and their size would else be a multiple of 8. The highest bit tells that the
    /// block's heap ended before it was freed.
    size: [u32; 2],
    /// With which sample it was freed, or the number of its heap's end; all ones as long as it is there.
    gone: u32,
}

/// A block that is there.
const THERE: u32 = u32::MAX;
/// In the upper half of a size.
const ENDED: u32 = 1 << 31;

/// How a heap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ending {
    /// Before which sample.
    before: SampleId,
    /// When, in ns.
    time: u64,
    /// Another program took its place: its blocks are nobody's.
    is_exec: bool,
}

/// When a block was there no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// Not before the recording ended.
    Never,
    /// With a sample.
    With(SampleId),
    /// At a time in ns, with its process or program.
    At(u64),
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that count, in the order of their returns.
    pub blocks: IndexVec<BlockId, Block>,
    /// Calls of allocators from allocators.
    pub nested: u64,
    /// Allocations whose address nobody told.
    pub without_address: u64,
    /// Their bytes.
    pub bytes_without_address: u64,
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
    /// Bytes and number of the blocks that were there when their process ended, which are not in `live`.
    pub ended: (u64, u64),
    /// Blocks that there had been then.
    peak_blocks: usize,
    endings: Vec<Ending>,
}

impl Tally {
    /// Whether the block of this number was there when there was most.
    #[must_use]
    pub fn is_of_peak(&self, number: BlockId) -> bool {
        let block = self
            .blocks
            .get(number)
            .filter(|_| number.index() < self.peak_blocks);
        block.is_some_and(|block| match self.ending(block) {
            Some(ending) => ending.before > self.peak_at,
            None => block.gone > self.peak_at.0,
        })
    }

    /// Whether it was never given back, but perhaps by the end of its process.
    #[must_use]
    pub fn is_live(&self, block: &Block) -> bool {
        let ending = self.ending(block);
        ending.map_or(block.gone == THERE, |ending| !ending.is_exec)
    }

    /// When it was there no longer.
    #[must_use]
    pub fn gone(&self, block: &Block) -> Gone {
        match self.ending(block) {
            Some(ending) => Gone::At(ending.time),
            None if block.gone == THERE => Gone::Never,
            None => Gone::With(SampleId(block.gone)),
        }
    }

    fn ending(&self, block: &Block) -> Option<&Ending> {
        let number = (block.size[1] & ENDED != 0).then_some(block.gone)?;
        self.endings.get(number as usize)
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
    /// The stack pointer, or 0.
    stack: u64,
    /// It has been given memory by another allocator.
    has_asked: bool,
    /// How often something had been lost before it.
    losses: u32,
}

impl Pending {
    /// Whether what happens with this stack pointer cannot be from within this call: stacks grow down. Who jumps to another
    /// function at its end, as glibc's `realloc(NULL, n)` does to `malloc(n)`, leaves the stack as it was.
    fn is_not_below(&self, stack: u64) -> bool {
        self.stack != 0 && self.stack < stack
    }

    /// Whether a return with this stack pointer may be this call's: what was called is off the stack, no more.
    fn may_return_to(&self, stack: u64) -> bool {
        /// Bytes of a return address, and some room.
        const RETURN: u64 = 16;
        self.stack == 0 || stack == 0 || stack.wrapping_sub(self.stack) <= RETURN
    }
}

/// Pairs facts as they come.
#[derive(Debug, Default)]
pub struct Pairing {
    /// By process and heap: numbers in [`Tally::blocks`].
    heaps: FxHashMap<(ProcessId, u64), Addresses>,
    mappings: FxHashMap<ProcessId, Mappings>,
    /// By number of the thread.
    pending: Vec<Vec<Pending>>,
    /// By thread: bytes of a `realloc(NULL)` that came just before, when returns are not recorded.
    fresh: FxHashMap<ThreadId, u64>,
    tally: Tally,
    inherited: usize,
    losses: u32,
}

/// What a program has mapped itself.
#[derive(Debug, Default)]
struct Mappings {
    /// By address: where the piece ends, and of which block it is. No two have a byte in common.
    pieces: BTreeMap<u64, (u64, BlockId)>,
    /// Bytes of each block that are mapped yet.
    left: FxHashMap<BlockId, u64>,
}

impl Mappings {
    fn map(&mut self, start: u64, bytes: u64, block: BlockId) {
        let end = start.saturating_add(bytes);
        if end > start {
            self.pieces.insert(start, (end, block));
            self.left.insert(block, end - start);
        }
    }

    /// Takes a range out: the blocks of which nothing is left.
    fn unmap(&mut self, start: u64, bytes: u64) -> Vec<BlockId> {
        let end = start.saturating_add(bytes);
        if let Some((_, piece)) = self.pieces.range_mut(..start).next_back()
            && piece.0 > start
        {
            let behind = *piece;
            piece.0 = start;
            self.pieces.insert(start, behind);
        }
        let mut over = Vec::new();
        while let Some((&from, &(to, block))) = self.pieces.range(start..end).next() {
            self.pieces.remove(&from);
            if to > end {
                self.pieces.insert(end, (to, block));
            }
            if let Some(left) = self.left.get_mut(&block) {
                *left = left.saturating_sub(to.min(end) - from);
                if *left == 0 {
                    self.left.remove(&block);
                    over.push(block);
                }
            }
        }
        over
    }
}

impl Pairing {
    /// Something was lost of what all threads did: calls that are pending may have returned.
    pub fn lost(&mut self) {
        self.losses = self.losses.wrapping_add(1);
    }

    /// The next fact.
    pub fn take(&mut self, at: At, fact: Fact) {
        let At {
            thread,
            process,
            sample,
            stack,
        } = at;
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
                    stack,
                    has_asked: false,
                    losses: self.losses,
                };
                self.call(thread, process, pending, returns);
            }
            Fact::Return { function, value } => self.returned(at, function, value),
            Fact::Free { pointer, heap } => self.free(at, pointer, heap),
            Fact::Unmap { start, bytes } => self.unmap(process, sample, start, bytes),
            Fact::Born { parent, child } => self.born(parent, child),
            Fact::Exit => self.end_calls(at, |_| true),
            Fact::Exec {
                process: replaced,
                time,
            } => {
                self.end_calls(at, |_| true);
                self.end_heap(replaced, sample, time, true);
            }
            Fact::End {
                process: ended,
                time,
            } => self.end_heap(ended, sample, time, false),
        }
    }

    /// Ends all blocks of a process.
    fn end_heap(&mut self, process: ProcessId, before: SampleId, time: u64, is_exec: bool) {
        let of = self.heaps.extract_if(|(of, _), _| *of == process);
        let heaps: Vec<Addresses> = of.map(|(_, blocks)| blocks).collect();
        let mappings = self.mappings.remove(&process).unwrap_or_default();
        let Ok(number) = u32::try_from(self.tally.endings.len()) else {
            return;
        };
        self.tally.endings.push(Ending {
            before,
            time,
            is_exec,
        });
        // In the order of nothing: each is treated alike.
        let blocks = heaps.iter().flat_map(Addresses::iter);
        let blocks = blocks.map(|(_, block)| block);
        for block in blocks.chain(mappings.left.into_keys()) {
            self.end_block(block, number, is_exec);
        }
    }

    fn end_block(&mut self, block: BlockId, ending: u32, is_exec: bool) {
        let tally = &mut self.tally;
        if block == INHERITED {
            return;
        }
        let block = &mut tally.blocks[block];
        tally.live = tally.live.saturating_sub(block.bytes());
        if !is_exec {
            tally.ended.0 = tally.ended.0.saturating_add(block.bytes());
            tally.ended.1 += 1;
        }
        block.size[1] |= ENDED;
        block.gone = ending;
    }

    /// Ends the pending calls of a thread that cannot have returned any more.
    fn end_calls(&mut self, at: At, is_over: impl Fn(&Pending) -> bool) {
        let calls = self.pending(at.thread);
        if !calls.iter().any(&is_over) {
            return;
        }
        let ended: Vec<Pending> = calls.extract_if(.., |call| is_over(call)).collect();
        self.tally.without_return += ended.len() as u64;
        for call in ended {
            self.give_back(at.process, at.sample, &call);
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

    /// Notes a block of which nobody knows where it is, and so neither whether it was freed.
    fn without_address(&mut self, bytes: u64) {
        self.tally.without_address += 1;
        self.tally.bytes_without_address = self.tally.bytes_without_address.saturating_add(bytes);
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> Tally {
        let left: usize = self.pending.iter().map(Vec::len).sum();
        self.tally.without_return += left as u64;
        self.tally
    }

    fn call(&mut self, thread: ThreadId, process: ProcessId, mut call: Pending, returns: bool) {
        self.end_impossible(thread, process, &call);
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
        if !self.pending(thread).is_empty() || (follows && is_plain) {
            self.tally.nested += 1;
            return;
        }
        if call.kind.reallocates()
            && call.pointer != 0
            && let Some(block) = self.heap(process, call.heap).remove(call.pointer)
        {
            self.close(block, call.call);
        }
        self.without_address(call.bytes);
        self.count(&call, call.call, false);
    }

    /// Ends the calls that this one cannot be from within: those of its own function, for no allocator calls itself; those
    /// that are not above it on the stack; those before something was lost; those that have been given memory before, for
    /// one call asks once.
    fn end_impossible(&mut self, thread: ThreadId, process: ProcessId, call: &Pending) {
        if self.pending(thread).is_empty() {
            return;
        }
        let at = At {
            thread,
            process,
            sample: call.call,
            stack: call.stack,
        };
        self.end_calls(at, |pending| {
            pending.function == call.function
                || pending.is_not_below(call.stack)
                || pending.stack != 0 && pending.stack == call.stack && pending.bytes != call.bytes
                || pending.losses != call.losses
                || pending.has_asked && call.kind != Kind::Map
        });
    }

    fn returned(&mut self, at: At, function: u64, value: u64) {
        let At {
            thread,
            process,
            sample,
            stack,
        } = at;
        let calls = self.pending(thread);
        let is_of = |call: &Pending| call.function == function && call.may_return_to(stack);
        let Some(place) = calls.iter().rposition(is_of) else {
            self.tally.unpaired_returns += 1;
            return;
        };
        let jumped_over = calls.split_off(place + 1);
        let Some(call) = calls.pop() else { return };
        self.tally.without_return += jumped_over.len() as u64;
        for skipped in jumped_over {
            self.give_back(process, sample, &skipped);
        }
        if let Some(outer) = self.pending(thread).last_mut() {
            let has_failed = call.has_failed(value);
            outer.has_asked |= !has_failed && call.kind != Kind::Map;
            // What the outer call was given stays with it; what this one was given is gone with its success.
            if has_failed {
                self.give_back(process, sample, &call);
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
        if call.has_failed(value) {
            // `realloc(p, 0)` frees.
            if call.bytes > 0 {
                self.tally.failed += 1;
                self.give_back(process, sample, call);
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
            self.without_address(call.bytes);
            return;
        }
        if call.kind == Kind::Map {
            // What was mapped there is not any more, told or not.
            self.unmap(process, sample, value, call.bytes);
            let mappings = self.mappings.entry(process).or_default();
            mappings.map(value, call.bytes, block);
        } else {
            let heap = self.heap(process, call.heap);
            if heap.len() >= MOST_BLOCKS {
                self.without_address(call.bytes);
                self.tally.blocks[block].lose();
                return;
            }
            if let Some(before) = heap.insert(value, block) {
                self.tally.lost_frees += 1;
                self.close(before, sample);
            }
        }
        let tally = &mut self.tally;
        tally.live = tally.live.saturating_add(call.bytes);
        if tally.live > tally.peak {
            tally.peak = tally.live;
            tally.peak_at = sample;
            tally.peak_blocks = tally.blocks.len();
        }
    }

    /// The block that `realloc` was given is where it was, unless another one is there by now.
    fn give_back(&mut self, process: ProcessId, sample: SampleId, call: &Pending) {
        let Some(block) = call.taken else {
            return;
        };
        let heap = self.heap(process, call.heap);
        if let Some(newer) = heap.insert(call.pointer, block) {
            heap.insert(call.pointer, newer);
            self.close(block, sample);
        }
    }

    fn count(&mut self, call: &Pending, end: SampleId, has_address: bool) -> BlockId {
        let mut new = Block {
            call: call.call,
            end,
            size: [call.bytes as u32, (call.bytes >> 32) as u32 & !ENDED],
            gone: THERE,
        };
        if !has_address {
            new.lose();
        }
        self.tally.blocks.push(new)
    }

    fn free(&mut self, at: At, pointer: u64, heap: u64) {
        if pointer == 0 {
            return;
        }
        let process = at.process;
        self.end_calls(at, |pending| pending.is_not_below(at.stack));
        let inside = self.pending(at.thread).last();
        let inside = inside.filter(|call| call.kind.reallocates()).copied();
        // What `realloc` was given is settled when it is back.
        if inside.is_some_and(|call| call.pointer == pointer) {
            return;
        }
        match self.heap(process, heap).remove(pointer) {
            Some(block) => self.close(block, at.sample),
            None => self.tally.unpaired_frees += u64::from(inside.is_none()),
        }
    }

    /// Closes the mappings of which nothing is left.
    fn unmap(&mut self, process: ProcessId, sample: SampleId, start: u64, bytes: u64) {
        let Some(mappings) = self.mappings.get_mut(&process) else {
            return;
        };
        for block in mappings.unmap(start, bytes) {
            self.close(block, sample);
        }
    }

    /// A block is there no longer.
    fn close(&mut self, block: BlockId, sample: SampleId) {
        if block == INHERITED {
            return;
        }
        let block = &mut self.tally.blocks[block];
        self.tally.live = self.tally.live.saturating_sub(block.bytes());
        block.gone = sample.0;
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

impl Pending {
    /// Whether what it gave back means that it has nothing to give.
    fn has_failed(&self, value: u64) -> bool {
        match self.kind {
            Kind::AllocInto => value != 0,
            Kind::Map => value == 0 || value == u64::MAX,
            _ => value == 0,
        }
    }
}

impl Block {
    /// How large it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.size[0]) | u64::from(self.size[1] & !ENDED) << 32
    }

    /// Nobody knows where it is, so it counts as gone.
    fn lose(&mut self) {
        self.gone = 0;
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
    const CALLOC: u64 = 0x300;
    const MMAP: u64 = 0x400;

    #[derive(Default)]
    struct Tale {
        pairing: Pairing,
        time: u64,
        stack: u64,
    }

    impl Tale {
        fn take(&mut self, of: (ThreadId, ProcessId), fact: Fact) -> &mut Self {
            self.time += 1;
            let at = At {
                thread: of.0,
                process: of.1,
                sample: SampleId(u32::try_from(self.time).expect("few")),
                stack: self.stack,
            };
            self.pairing.take(at, fact);
            self
        }

        /// What follows happens with this stack pointer.
        fn at(&mut self, stack: u64) -> &mut Self {
            self.stack = stack;
            self
        }

        fn call(&mut self, function: u64, bytes: u64, pointer: u64) -> &mut Self {
            let kind = match function {
                REALLOC => Kind::Realloc,
                CALLOC => Kind::AllocMany,
                MMAP => Kind::Map,
                _ => Kind::Alloc(0),
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
        let live = tally.blocks.iter().filter(|block| tally.is_live(block));
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
    fn a_lost_return_costs_its_own_block() {
        // Of the same function, of another one that was called once, and of both.
        for lost in [&[MALLOC][..], &[CALLOC], &[CALLOC, MALLOC]] {
            let mut tale = Tale::default();
            for function in lost {
                tale.call(*function, 8, 0);
            }
            for block in 1..=100 {
                tale.call(MALLOC, 10, 0).back(MALLOC, block << 8);
            }
            let tally = tale.tally();
            assert!(tally.blocks.len() >= 98, "{lost:x?}: {tally:?}");
            assert_eq!(tally.without_return, lost.len() as u64, "{lost:x?}");
        }
        // Where stacks were recorded, all others are there.
        let mut tale = Tale::default();
        tale.at(0x8000).call(CALLOC, 8, 0);
        for block in 1..=100 {
            tale.at(0x8000).call(MALLOC, 10, 0);
            tale.at(0x8008).back(MALLOC, block << 8);
        }
        let tally = tale.tally();
        assert_eq!((tally.blocks.len(), tally.nested), (100, 0));
        // But who jumps to another allocator is not back before that is.
        let mut tale = Tale::default();
        tale.at(0x8000).call(REALLOC, 16, 0).call(MALLOC, 16, 0);
        tale.at(0x8008).back(MALLOC, 0xa).back(REALLOC, 0xa);
        let tally = tale.tally();
        assert_eq!((tally.nested, tally.live), (1, 16));
        assert_eq!((tally.without_return, tally.unpaired_returns), (0, 0));
        // And where it is told that something was lost.
        let mut tale = Tale::default();
        tale.call(CALLOC, 8, 0);
        tale.pairing.lost();
        tale.call(MALLOC, 10, 0).back(MALLOC, 0xa);
        assert_eq!(tale.tally().blocks.len(), 1);
    }

    #[test]
    fn a_return_is_not_that_of_a_call_elsewhere_on_the_stack() {
        let mut tale = Tale::default();
        tale.at(0x8000).call(MALLOC, 1 << 30, 0);
        tale.at(0x9008).back(MALLOC, 0xa);
        let tally = tale.tally();
        assert_eq!((tally.blocks.len(), tally.unpaired_returns), (0, 1));
    }

    #[test]
    fn frees_count_while_the_return_of_a_realloc_is_missing() {
        let mut tale = Tale::default();
        tale.call(MALLOC, 16, 0).back(MALLOC, 0xa);
        tale.call(REALLOC, 8, 0).free(0xa);
        assert_eq!(tale.tally().live, 0);
    }

    #[test]
    fn the_end_of_a_process_gives_its_heap_back() {
        let mut tale = Tale::default();
        let (process, time) = (OF.1, 77);
        for _ in 0..5 {
            tale.call(MALLOC, 10, 0).back(MALLOC, 0xa);
            tale.call(MMAP, 5, 0).back(MMAP, 0xb000);
            tale.call(MALLOC, 1, 0);
            tale.take(OF, Fact::Exit);
            tale.take(OF, Fact::End { process, time });
        }
        let tally = tale.tally();
        assert_eq!((tally.live, tally.ended, tally.peak), (0, (75, 10), 15));
        assert_eq!(live(&tally).len(), 10);
        assert_eq!((tally.nested, tally.without_return), (0, 5));
        let first = tally.blocks.iter().next().expect("a block");
        assert_eq!(tally.gone(first), Gone::At(77));
    }

    #[test]
    fn a_mapping_lives_until_all_of_it_is_unmapped() {
        let mut tale = Tale::default();
        let unmap = |start, bytes| Fact::Unmap { start, bytes };
        tale.call(MMAP, 100, 0).back(MMAP, 1000);
        tale.call(MMAP, 100, 0).back(MMAP, u64::MAX);
        tale.take(OF, unmap(1040, 20)).take(OF, unmap(900, 140));
        let mut half = tale.tally();
        assert_eq!((half.failed, half.live), (1, 100));
        tale.call(MMAP, 100, 0).back(MMAP, 1000);
        tale.take(OF, unmap(1040, 20)).take(OF, unmap(900, 140));
        tale.take(OF, unmap(1030, 70));
        half = tale.tally();
        assert_eq!((half.live, half.unpaired_frees), (0, 0));
        // Another mapping takes the place of one.
        tale.call(MMAP, 100, 0).back(MMAP, 1000);
        tale.call(MMAP, 300, 0).back(MMAP, 900);
        assert_eq!(tale.tally().live, 300);
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
        let (process, time) = (ProcessId(2), 0);
        tale.take(OF, Fact::Exec { process, time });
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
                kind: [
                    if number > 9 {
                        Kind::Map
                    } else {
                        Kind::Alloc(0)
                    },
                    Kind::Realloc,
                    Kind::AllocInto,
                ][(function - 0x100) as usize],
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
            _ if bytes % 4 < 2 => {
                let (process, time) = (ProcessId(number as u32 % 3), bytes);
                match bytes % 2 {
                    0 => Fact::Exec { process, time },
                    _ => Fact::End { process, time },
                }
            }
            _ if bytes % 4 == 2 => Fact::Unmap {
                start: number,
                bytes,
            },
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
                let at = At {
                    thread: ThreadId(thread),
                    process: ProcessId(thread / 2),
                    sample: SampleId(number),
                    stack: if place % 3 == 0 { bytes } else { 0 },
                };
                pairing.take(at, fact);
            }
            let tally = pairing.finish();
            let counted: u64 = tally.blocks.iter().map(Block::bytes).sum();
            let there: u64 = live(&tally).into_iter().sum();
            let most = tally.blocks.indices().filter(|number| tally.is_of_peak(*number));
            let at_peak: u64 = most.map(|number| tally.blocks[number].bytes()).sum();
            proptest::prop_assert!(counted <= asked);
            proptest::prop_assert_eq!(there, tally.live + tally.ended.0);
            proptest::prop_assert!(tally.live <= tally.peak && tally.peak <= counted);
            proptest::prop_assert_eq!(at_peak, tally.peak);
            proptest::prop_assert!(tally.blocks.iter().all(|block| block.call <= block.end));
        }
    }
}
