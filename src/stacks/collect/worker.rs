//! The parallel pass: hands blocks of samples to workers and merges their tables.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::address::Avma;
use crate::diagnostics::Diagnostics;
use crate::ids::Idx;
use crate::input::{Store, Window, prefetch};
use crate::needs::Needs;
use crate::perfdata::{BranchStack, FieldKey, RecordPos, Recording, Sample};
use crate::session::{Label, SampleId, SampleRef, Samples, Session};
use crate::stack_end::StackEnd;
use crate::unwind::{Activation, CodeSpace as _, Unwinder};

use super::again::{Learned, limit_dump};
use super::budget::Budget;
use super::chain::{ChainBuilder, ChainOut};
use super::depth::{Reach, Walked};
use super::facets::{FacetsId, Place, SampleAt, Taken, are_in_records};
use super::map_cache::MapCache;
use super::paths::PathEnd;
use super::roots::{Cut, Owner};
use super::space::SpaceAt;
use super::table::Table;
use super::{AddressStackId, BITS_OF_BRANCH, Collected, Options, PcId, Row, RowKey, Rows, Shared};

/// Samples handed out at once: enough to make the hand-out free, few enough to share the end evenly.
const BLOCK: usize = 256;

/// Runs pass two over all samples. `learned` keeps what was found out about code, where stacks may be looked at again.
#[must_use]
pub fn collect<'a>(
    recording: &Recording<'a>,
    store: &Store,
    (session, samples): (&Session<'a>, &Samples),
    learned: &Learned<'a>,
    (needs, options): (Needs, Options),
    fields: &[FieldKey],
    diag: &Diagnostics,
) -> Collected {
    let shared = Shared {
        arch: session.dsos.arch(),
        tables: &learned.tables(),
        learned,
        window: &Window::new(store, recording.region(), Window::BEHIND),
        recording,
        session,
        samples,
        needs,
        options,
        fields,
        budget: &Budget::of(recording),
        diag,
    };
    diag.begin("stacks", samples.all.len() as u64);
    let mut collected = if reads_records(needs) {
        from_records(shared)
    } else {
        from_heads(shared)
    };
    collected.kind = if needs.contains(Needs::BRANCHES) {
        Rows::Branches
    } else if needs.contains(Needs::SAMPLES) {
        Rows::Samples
    } else {
        Rows::Merged
    };
    shared.budget.say(diag);
    if collected.unreadable > 0 {
        let then = match collected.kind {
            Rows::Branches => "their branches are left out",
            Rows::Merged | Rows::Samples => "they count without a stack",
        };
        diag.warn(format!(
            "{} samples have a record that contradicts itself; {then}",
            collected.unreadable
        ));
    }
    collected
}

/// Whether the samples' records are read again, or what the index holds is enough.
#[must_use]
pub fn reads_records(needs: Needs) -> bool {
    needs.contains(Needs::STACKS) || are_in_records(needs)
}

/// A flat table needs nothing but what the index kept.
fn from_heads(shared: Shared<'_, '_>) -> Collected {
    let next = AtomicUsize::new(0);
    in_parallel(shared.options.threads, |_| {
        let cache = MapCache::default();
        let mut worker = Worker::new(shared, &cache);
        while let Some(block) = take_block(&next, shared) {
            for rank in block {
                let rank = SampleId::from_usize(rank);
                worker.count(rank, StackEnd::NotRecorded, None);
            }
        }
        worker.table
    })
}

fn from_records(shared: Shared<'_, '_>) -> Collected {
    let positions = shared.samples.all.iter().map(|sample| sample.pos);
    if shared.recording.is_read_directly(positions) {
        let next = AtomicUsize::new(0);
        in_parallel(shared.options.threads, |_| {
            let cache = MapCache::default();
            let mut worker = Worker::new(shared, &cache);
            while let Some(block) = take_block(&next, shared) {
                shared
                    .window
                    .reached(shared.samples.all[block.start].pos.offset());
                for rank in block {
                    prefetch_sample(shared, rank + AHEAD);
                    let record = shared.recording.record_bytes(shared.samples.all[rank].pos);
                    worker.sample(SampleId::from_usize(rank), record);
                }
            }
            worker.finish()
        })
    } else {
        from_chunks(shared)
    }
}

/// How many samples ahead their first lines are asked for.
const AHEAD: usize = 4;

/// Gets the front of a sample's record on its way: its fields, registers and the innermost frames' stack,
/// and the end, where the stack's size is.
fn prefetch_sample(shared: Shared<'_, '_>, rank: usize) {
    /// Fields, a kernel chain of some length and registers take about half of it.
    const FRONT: usize = 4096;
    let Some(sample) = shared.samples.all.get(rank) else {
        return;
    };
    let region = shared.recording.region();
    let start = sample.pos.offset();
    if let Some(front) = region.get(start..region.len().min(start + FRONT)) {
        prefetch(front);
    }
    // The next record usually follows directly: the byte before it is the end of this one.
    if let Some(next) = shared.samples.all.get(rank + 1) {
        let end = next.pos.offset();
        if let Some(last) = region.get(end.saturating_sub(8)..end) {
            prefetch(last);
        }
    }
}

/// Streams and compressed recordings: chunk by chunk, each decoded once.
fn from_chunks(shared: Shared<'_, '_>) -> Collected {
    let samples = &shared.samples.all;
    let mut by_position: Vec<SampleId> = samples.indices().collect();
    by_position.sort_by_key(|&rank| samples[rank].pos);
    let recorded = by_position.partition_point(|&rank| samples[rank].pos < RecordPos::NONE);
    let made_up = Mutex::new(by_position.split_off(recorded));
    let by_position = &by_position;
    let chunks = shared.recording.chunks();
    // Chunks come in order, and none comes behind one that cannot be decoded.
    let read = AtomicUsize::new(0);
    let collected = in_parallel(shared.options.threads, |_| {
        let cache = MapCache::default();
        let mut worker = Worker::new(shared, &cache);
        while let Some((chunk, bytes)) = chunks.next() {
            let bytes: Cow<'_, [u8]> = bytes;
            let from = by_position.partition_point(|&rank| samples[rank].pos.chunk() < chunk);
            let behind = by_position.partition_point(|&rank| samples[rank].pos.chunk() <= chunk);
            for &rank in &by_position[from..behind] {
                let offset = samples[rank].pos.offset();
                worker.sample(rank, record_at(&bytes, offset));
            }
            read.fetch_max(behind, Ordering::Relaxed);
        }
        let made_up = std::mem::take(&mut *made_up.lock().unwrap_or_else(PoisonError::into_inner));
        for rank in made_up {
            worker.sample(rank, None);
        }
        worker.table
    });
    let lost = by_position.len() - read.into_inner();
    if lost > 0 {
        shared.diag.warn(format!(
            "{lost} samples could not be read a second time; they are left out"
        ));
    }
    collected
}

/// The record that starts at `offset` of a chunk (`struct perf_event_header`: type, misc, size).
fn record_at(chunk: &[u8], offset: usize) -> Option<&[u8]> {
    let record = chunk.get(offset..)?;
    let &[_, _, _, _, _, _, low, high, ..] = record else {
        return None;
    };
    record.get(..usize::from(u16::from_le_bytes([low, high])))
}

/// The next block of sample ranks for a worker.
fn take_block(next: &AtomicUsize, shared: Shared<'_, '_>) -> Option<std::ops::Range<usize>> {
    let len = shared.samples.all.len();
    let start = next.fetch_add(BLOCK, Ordering::Relaxed);
    if start >= len {
        return None;
    }
    shared.diag.advance(BLOCK as u64);
    Some(start..len.min(start + BLOCK))
}

/// Runs `work` on `threads` threads and merges what they made, in the order of the threads.
fn in_parallel(threads: usize, work: impl Fn(usize) -> Table + Sync) -> Collected {
    let work = |i| work(i).finish();
    let tables = std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..threads.max(1))
            .map(|i| scope.spawn(move || work(i)))
            .collect();
        let mut tables = vec![work(0)];
        for handle in others {
            match handle.join() {
                Ok(table) => tables.push(table),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        tables
    });
    Collected::of(tables)
}

struct Worker<'s, 'a> {
    shared: Shared<'s, 'a>,
    cache: &'s MapCache<'s>,
    chains: ChainBuilder<'a>,
    table: Table,
    /// The chain of the sample at hand.
    ids: Vec<PcId>,
    /// Whether that may be completed.
    is_cut: bool,
}

impl<'s, 'a> Worker<'s, 'a> {
    fn new(shared: Shared<'s, 'a>, cache: &'s MapCache<'s>) -> Self {
        let new = || Unwinder::new(shared.arch, Arc::clone(shared.tables));
        let unwinder = shared.learned.before().unwrap_or_else(new);
        Self {
            shared,
            cache,
            chains: ChainBuilder::new(
                unwinder,
                shared.options.max_frames,
                (
                    shared.needs.contains(Needs::MARKS),
                    !shared.needs.contains(Needs::RETURNS),
                ),
            ),
            table: Table::new(shared.needs),
            ids: Vec::new(),
            is_cut: false,
        }
    }

    fn needs(&self, what: Needs) -> bool {
        self.shared.needs.contains(what)
    }

    fn finish(self) -> Table {
        if self.needs(Needs::PATHS) || self.shared.learned.lasts() {
            self.shared.learned.keep(self.chains.into_unwinder());
        }
        self.table
    }

    /// Reads one sample's record, builds its chain and counts it.
    fn sample(&mut self, rank: SampleId, record: Option<&[u8]>) {
        let head = &self.shared.samples.all[rank];
        let event = &self.shared.recording.events[head.layout];
        self.ids.clear();
        self.is_cut = false;
        if head.pos == RecordPos::NONE {
            self.count(rank, StackEnd::NotRecorded, None);
            return;
        }
        let Some(mut sample) = record.and_then(|bytes| event.parse_sample(bytes).ok()) else {
            self.table.unreadable += 1;
            if !self.needs(Needs::BRANCHES) {
                self.count(rank, StackEnd::NotRecorded, None);
            }
            return;
        };
        let entries = sample.branch_stack.map_or(0, |stack| stack.iter().len());
        self.table.most_entries = self.table.most_entries.max(entries);
        if self.needs(Needs::BRANCHES) {
            self.branches(rank, &sample);
            return;
        }
        if self.needs(Needs::PREDICTIONS) && event.attr.has_branches() {
            self.predictions(head, &sample);
        }
        limit_dump(&mut sample, self.shared.options.dump_limit);
        let mut end = StackEnd::NotRecorded;
        if self.needs(Needs::STACKS) {
            let space = SpaceAt::of(self.shared.session, head, self.cache);
            let mut out = ChainOut {
                addresses: &mut self.table.addresses,
                ids: &mut self.ids,
            };
            end = self.chains.build(&sample, &event.attr, &space, &mut out);
            self.table.most_branches = self.chains.most_branches();
            if self.needs(Needs::DEPTHS) {
                self.note_depth(head, &sample, end);
            }
            if self.needs(Needs::ROOTS) {
                self.note_roots(rank, end);
            }
        }
        let tells = sample.data_src.is_some_and(|source| !source.is_nothing());
        self.table.accesses += u64::from(tells);
        let taken = Taken {
            sample: &sample,
            branch: None,
        };
        self.count(rank, end, Some(&taken));
    }

    /// Counts the branches of a sample in its place.
    fn branches(&mut self, rank: SampleId, sample: &Sample<'_>) {
        let event = self.shared.samples.all[rank].event;
        let recorded = sample.branch_stack.iter().flat_map(BranchStack::iter);
        let mut has_some = false;
        for (number, branch) in (0..).zip(recorded) {
            if branch.is_empty() {
                self.table.branches.empty += 1;
                continue;
            }
            has_some = true;
            self.table.branches.add(&branch);
            let taken = Taken {
                sample,
                branch: Some((number, branch)),
            };
            self.count(rank, StackEnd::NotRecorded, Some(&taken));
        }
        self.table.branches.sample(event, has_some);
    }

    /// Notes where branches before a sample were mispredicted.
    fn predictions(&mut self, head: &SampleRef, sample: &Sample<'_>) {
        let space = SpaceAt::of(self.shared.session, head, self.cache);
        if let Some(stack) = &sample.branch_stack {
            let table = &mut self.table;
            (table.predictions).add(stack, &space, &mut table.addresses);
        }
    }

    fn note_depth(&mut self, head: &SampleRef, sample: &Sample<'_>, end: StackEnd) {
        let (Some(stack), Some(span)) = (sample.user_stack, self.chains.span()) else {
            return;
        };
        let reach = match end {
            StackEnd::Complete | StackEnd::FiberBase => Reach::Root,
            StackEnd::DumpTooShort => Reach::Short,
            _ => Reach::Unknown,
        };
        let copied = stack.len() as u64;
        let memory_end = match reach {
            Reach::Short => SpaceAt::of(self.shared.session, head, self.cache).stack_end(span.0),
            _ if end == StackEnd::AbsentPage => None,
            _ if sample.user_stack_ends => Some(Avma(span.0.0.saturating_add(copied))),
            _ => None,
        };
        self.table.depths.add(&Walked {
            thread: head.thread,
            span,
            copied,
            memory_end,
            reach,
        });
    }

    /// Notes where a complete stack begins, and that one was cut.
    fn note_roots(&mut self, rank: SampleId, end: StackEnd) {
        let session = self.shared.session;
        let head = &self.shared.samples.all[rank];
        let end = match end {
            StackEnd::Complete => PathEnd::Start,
            StackEnd::FiberBase => PathEnd::Fiber,
            StackEnd::DumpTooShort => PathEnd::Cut,
            _ => return,
        };
        // What is put under a stack, or taken from it, has to have all frames: each is put beside its place.
        if self.chains.skips() {
            return;
        }
        let space = SpaceAt::of(session, head, self.cache);
        let Some(scene) = space.scene() else { return };
        let owner = Owner {
            thread: head.thread,
            program: session.program_of(head),
        };
        let outer = || self.chains.activations(&scene).rev();
        let frames = || self.ids.iter().rev().copied().zip(outer());
        if self.needs(Needs::PATHS) {
            let leaf_first = self.chains.activations(&scene);
            let one_stack = frames_of_one_stack(leaf_first.map(|activation| activation.sp));
            let other_stacks = outer().len().saturating_sub(one_stack);
            let frames = frames().enumerate().map(|(at, (pc, activation))| {
                let is_exact = activation.is_exact && at >= other_stacks;
                let activation = Activation {
                    is_exact,
                    ..activation
                };
                (pc, activation)
            });
            self.table.paths.add(rank, owner, end, frames);
        }
        let roots = &mut self.table.roots;
        if end != PathEnd::Cut {
            roots.complete(rank, owner, end == PathEnd::Fiber, frames());
        } else if let Some(border) = outer().next() {
            roots.cuts.push(Cut {
                rank,
                owner,
                sp: border.sp,
                stack_end: space.stack_end(border.sp),
            });
            self.is_cut = true;
        }
    }

    /// Counts a sample whose chain is in `ids`, or one of its branches. `taken` is what its record says, if that was read.
    fn count(&mut self, rank: SampleId, end: StackEnd, taken: Option<&Taken<'_>>) {
        let head = &self.shared.samples.all[rank];
        let at = SampleAt {
            shared: self.shared,
            rank,
            event: &self.shared.recording.events[head.layout],
        };
        if head.label != Label::NONE && self.needs(Needs::STACKS) {
            let label = self.table.addresses.label(head.label);
            self.ids.insert(0, label);
        }
        let stack = self.stack(end);
        let is_sample = self.needs(Needs::SAMPLES);
        let quantum = if is_sample || self.needs(Needs::MOMENTS) {
            Some(1)
        } else {
            self.needs(Needs::TIME)
                .then_some(self.shared.options.time_step)
        };
        let branch = taken.and_then(|taken| taken.branch);
        let leaf = match branch {
            Some((_, branch)) => self.branch_end(head, branch.to),
            None => self.leaf(head),
        };
        let key = RowKey {
            event: head.event,
            state: head.state,
            comm: head.comm,
            thread: head.thread,
            leaf,
            stack,
            facets: self.facets(&at, taken),
            time: quantised(head, quantum),
        };
        let (period, first) = match (branch, taken) {
            (Some((number, _)), _) => (1, u64::from(rank.0) << BITS_OF_BRANCH | number),
            (None, Some(taken)) if self.needs(Needs::ACCESSES) => {
                let cost = taken.sample.weight.unwrap_or_default();
                (cost.weight.max(1), rank.0.into())
            }
            _ => (head.period, rank.0.into()),
        };
        if is_sample || self.is_cut {
            let row = Row {
                key,
                period,
                samples: 1,
                first,
            };
            self.table
                .keep(row, taken.and_then(|taken| taken.sample.addr));
        } else {
            self.table.count(key, period, 1, first);
        }
    }

    fn facets(&mut self, at: &SampleAt<'_, '_>, taken: Option<&Taken<'_>>) -> FacetsId {
        let head = at.head();
        let (session, cache) = (self.shared.session, self.cache);
        let Table {
            facets, addresses, ..
        } = &mut self.table;
        facets.read(at, taken, &mut |place| {
            let space = SpaceAt::of(session, head, cache);
            match place {
                Place::Branch(end) => addresses.branch_end(&space, end),
                Place::Data(data) => addresses.at(&space, head.mode, data),
            }
        })
    }

    fn branch_end(&mut self, head: &SampleRef, at: Avma) -> PcId {
        let space = SpaceAt::of(self.shared.session, head, self.cache);
        self.table.addresses.branch_end(&space, at)
    }

    /// The stack whose chain is in `ids`, or its leaf if no more can be kept.
    fn stack(&mut self, end: StackEnd) -> AddressStackId {
        if self.ids.len() > 1 && !self.shared.budget.has_frames() {
            self.ids.truncate(1);
            return self.table.stack(&self.ids, StackEnd::TooDeep);
        }
        let (stack, kept) = self.table.stack_and_growth(&self.ids, end);
        self.shared.budget.keep_frames(kept);
        stack
    }

    /// The sample's own address; nearly always the first of its chain.
    fn leaf(&mut self, head: &SampleRef) -> PcId {
        if head.label != Label::NONE {
            return self.table.addresses.label(head.label);
        }
        if let Some(&first) = self.ids.first() {
            let pc = &self.table.addresses.all()[first];
            if pc.at == head.ip && pc.mode == head.mode {
                return first;
            }
        }
        let space = SpaceAt::of(self.shared.session, head, self.cache);
        self.table.addresses.at(&space, head.mode, head.ip)
    }
}

fn quantised(head: &SampleRef, quantum: Option<u64>) -> u64 {
    match quantum {
        Some(quantum) if quantum > 0 => head.time.0 / quantum * quantum,
        _ => 0,
    }
}

/// How many frames have a place on the stack that is certain, by stack pointers leaf first. Where the stack pointer falls on
/// the way outwards, a handler ran on another stack; what lies behind that is not used.
fn frames_of_one_stack(leaf_first: impl Iterator<Item = Avma>) -> usize {
    let mut last = Avma(0);
    let rises = |sp: &Avma| std::mem::replace(&mut last, *sp) <= *sp;
    leaf_first.take_while(rises).count()
}
