//! A second look at samples that were collected: the bytes of their stacks, and registers further out.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use crate::address::Avma;
use crate::arch::Arch;
use crate::perfdata::{Recording, Sample};
use crate::session::{SampleId, Samples, Session};
use crate::unwind::{CfiTables, KeptRegisters, Unwinder, UserState, stack_pointer};

use super::map_cache::MapCache;
use super::space::SpaceAt;

/// What the first look at samples found out about code, for a second one: the unwinder of one of the workers, which knows
/// the rules of most places.
#[derive(Default)]
pub struct Learned<'a> {
    before: Mutex<Option<Unwinder<'a>>>,
    unwinder: Mutex<Option<Unwinder<'a>>>,
    lasts: bool,
}

impl<'a> Learned<'a> {
    /// With what was learned in another recording, whose files have the same numbers; what is learned in this one is kept for others.
    #[must_use]
    pub fn lasting(before: Option<Unwinder<'a>>) -> Self {
        Self {
            before: Mutex::new(before),
            unwinder: Mutex::default(),
            lasts: true,
        }
    }

    /// The unwinder of another recording, for the first that asks.
    pub(super) fn before(&self) -> Option<Unwinder<'a>> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.take()
    }

    /// What is known of files, for all workers.
    pub(super) fn tables(&self) -> Arc<CfiTables<'a>> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.as_ref().map_or_else(Arc::default, Unwinder::tables)
    }

    /// Whether an unwinder is kept, whatever this recording needs.
    pub(super) const fn lasts(&self) -> bool {
        self.lasts
    }

    /// Takes a worker's unwinder, unless another worker gave its own.
    pub(super) fn keep(&self, unwinder: Unwinder<'a>) {
        let mut kept = self.unwinder.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(unwinder);
    }
}

/// Looks samples up again, by their place in time order.
pub struct Again<'s, 'a> {
    recording: &'s Recording<'a>,
    session: &'s Session<'a>,
    samples: &'s Samples,
    cache: &'s MapCache<'s>,
    arch: Option<Arch>,
    unwinder: RefCell<Unwinder<'a>>,
    dump_limit: Option<usize>,
}

impl<'s, 'a> Again<'s, 'a> {
    /// For the samples of a recording. With a limit, more of each stack was not recorded.
    #[must_use]
    pub fn new(
        recording: &'s Recording<'a>,
        (session, samples): (&'s Session<'a>, &'s Samples),
        cache: &'s MapCache<'s>,
        learned: Learned<'a>,
        dump_limit: Option<usize>,
    ) -> Self {
        let arch = session.dsos.arch();
        let unwinder = learned.unwinder.into_inner();
        let unwinder = unwinder.unwrap_or_else(PoisonError::into_inner);
        let unwinder = unwinder.unwrap_or_else(|| Unwinder::new(arch, Arc::default()));
        Self {
            recording,
            session,
            samples,
            cache,
            arch,
            unwinder: RefCell::new(unwinder),
            dump_limit,
        }
    }

    /// What was learned, for another recording.
    #[must_use]
    pub fn into_unwinder(self) -> Unwinder<'a> {
        self.unwinder.into_inner()
    }

    /// A sample's stack: where it was copied from, and the bytes.
    #[must_use]
    pub fn stack(&self, rank: SampleId) -> Option<(Avma, &'a [u8])> {
        let UserState { regs, stack } = self.state(rank)?;
        let sp = stack_pointer(self.arch?, &regs)?;
        Some((sp, stack))
    }

    /// What a sample's registers held in the frame so many frames outside of its own.
    #[must_use]
    pub fn registers(&self, rank: SampleId, depth: usize) -> Option<KeptRegisters> {
        let state = self.state(rank)?;
        let head = self.samples.all.get(rank)?;
        let space = SpaceAt::of(self.session, head, self.cache);
        let mut unwinder = self.unwinder.borrow_mut();
        unwinder.registers_at(&state, &space, depth)
    }

    fn state(&self, rank: SampleId) -> Option<UserState<'a>> {
        let head = self.samples.all.get(rank)?;
        let event = &self.recording.events[head.layout];
        let record = self.recording.record_bytes(head.pos)?;
        let mut sample = event.parse_sample(record).ok()?;
        limit_dump(&mut sample, self.dump_limit);
        Some(UserState {
            regs: sample.user_regs?,
            stack: sample.user_stack?,
        })
    }
}

/// Forgets what was copied of a stack beyond a limit.
pub(super) fn limit_dump(sample: &mut Sample<'_>, limit: Option<usize>) {
    if let Some((stack, limit)) = sample.user_stack.zip(limit)
        && stack.len() > limit
    {
        sample.user_stack = Some(&stack[..limit]);
        sample.user_stack_ends = false;
    }
}
