//! A worker's memory of what lay where: the mapping of a page, the JIT code of an address.
//!
//! Asked by [`super::space`] for every frame; a miss asks the session.

use std::cell::{Cell, RefCell};

use crate::address::{Avma, Timestamp};
use crate::input::prefetch;
use crate::jit::{JitCodeId, JitHit, JitIndex, JitMatch, ProcessId};
use crate::session::SpaceId;
use crate::session::maps::{MapTable, Mapping};
use crate::unwind::{FramePlaceId, Lifetime};

/// A worker's memory of which mapping a page belongs to: frames keep to a few hundred pages, and
/// asking the persistent map costs ten times as much. Direct mapped; a clash only costs the lookup.
pub struct MapCache<'s> {
    slots: Box<[Cell<CachedPage<'s>>]>,
    /// The same for addresses, where there is JIT code.
    codes: RefCell<Codes>,
}

/// Which JIT code lay at the addresses that were asked for; as large as those need it up to a limit.
#[derive(Default)]
struct Codes {
    slots: Vec<CachedCode>,
    /// Addresses put in since the table has this size.
    filled: usize,
}

/// Where in which JIT code an address of a process lay for some time. Half a cache line.
#[derive(Clone, Copy)]
struct CachedCode {
    /// The address in the upper 48 bits, the process in the lower 16.
    key: u64,
    from: Timestamp,
    /// For how long at least, in steps of 2^20 ns; the largest number is for ever.
    steps: u32,
    /// [`NO_CODE`](Self::NO_CODE) where no JIT code lay.
    code: JitCodeId,
    offset: u32,
    /// See [`CodeSpace::note`](crate::unwind::CodeSpace::note).
    noted: Option<FramePlaceId>,
}

/// What a cached or made answer says.
pub(super) struct CodeAt {
    pub(super) hit: Option<JitHit>,
    pub(super) life: Lifetime,
    /// What was [noted](MapCache::note).
    pub(super) noted: Option<FramePlaceId>,
}

type CachedPage<'s> = Option<(SpaceId, u64, &'s Mapping)>;

impl Default for MapCache<'_> {
    fn default() -> Self {
        Self {
            slots: vec![Cell::new(None); Self::SLOTS].into_boxed_slice(),
            codes: RefCell::default(),
        }
    }
}

impl<'s> MapCache<'s> {
    const SLOTS: usize = 1024;

    /// The JIT code in force at an address and time, and when the answer is the same.
    #[inline]
    pub(super) fn code(
        &self,
        jit: &JitIndex<'_>,
        process: ProcessId,
        at: Avma,
        time: Timestamp,
    ) -> CodeAt {
        let key = CachedCode::key(process, at);
        let mut codes = self.codes.borrow_mut();
        if let Some(key) = key {
            let known = codes.slot(key);
            if known.key == key && known.life().contains(time) {
                return CodeAt {
                    hit: known.hit(),
                    life: known.life(),
                    noted: known.noted,
                };
            }
        }
        let found = look_up(jit, process, at, time);
        if let Some(key) = key {
            codes.put(key, &found);
        }
        found
    }

    #[inline]
    pub(super) fn find(&self, id: SpaceId, maps: &'s MapTable, at: Avma) -> Option<&'s Mapping> {
        let page = at.0 >> 12;
        let mixed = (page ^ u64::from(id.0) << 7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &self.slots[(mixed >> 54) as usize];
        if let Some((space, known, mapping)) = slot.get()
            && space == id
            && known == page
            && mapping.range.contains(at)
        {
            return Some(mapping);
        }
        let found = maps.find(at)?;
        slot.set(Some((id, page, found)));
        Some(found)
    }
}

impl MapCache<'_> {
    /// Keeps the place that the code at an address is.
    pub(super) fn note(&self, process: ProcessId, at: Avma, place: FramePlaceId) {
        if let Some(key) = CachedCode::key(process, at) {
            let mut codes = self.codes.borrow_mut();
            let slot = codes.slot(key);
            if slot.key == key {
                slot.noted = Some(place);
            }
        }
    }

    /// Fetches what is known of an address, which will be asked for soon.
    pub(super) fn expect(&self, process: ProcessId, at: Avma) {
        if let Some(key) = CachedCode::key(process, at) {
            let mut codes = self.codes.borrow_mut();
            prefetch(std::slice::from_ref(codes.slot(key)));
        }
    }
}

/// What the index of JIT code says about an address at a time, and when it says so.
#[inline(never)]
fn look_up(jit: &JitIndex<'_>, process: ProcessId, at: Avma, time: Timestamp) -> CodeAt {
    let (hit, life) = match jit.lookup_with_span(process, at, time) {
        Some((hit, (from, to))) => (Some(hit), Lifetime { from, to }),
        None if jit.ever(process, at) => (None, Lifetime::NEVER),
        None => (None, Lifetime::ALWAYS),
    };
    CodeAt {
        hit,
        life,
        noted: None,
    }
}

impl Codes {
    /// Slots at first and at most, powers of two. Deep stacks of large modules come by tens of thousands of
    /// addresses.
    const FIRST: usize = 1 << 12;
    const MOST: usize = 1 << 16;

    #[inline]
    fn slot(&mut self, key: u64) -> &mut CachedCode {
        if self.slots.is_empty() {
            self.slots = vec![CachedCode::EMPTY; Self::FIRST];
        }
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = mixed as usize & (self.slots.len() - 1);
        &mut self.slots[at]
    }

    fn put(&mut self, key: u64, found: &CodeAt) {
        let Some(entry) = CachedCode::of(key, found) else {
            return;
        };
        self.filled += 1;
        if self.filled > self.slots.len() && self.slots.len() < Self::MOST {
            let twice = self.slots.len() * 2;
            // What was in it is soon found again, and both at once would take more memory.
            self.slots = Vec::new();
            self.slots = vec![CachedCode::EMPTY; twice];
            self.filled = 0;
        }
        *self.slot(key) = entry;
    }
}

impl CachedCode {
    const NO_CODE: JitCodeId = JitCodeId(u32::MAX);
    const EMPTY: Self = Self {
        key: 0,
        from: Timestamp(0),
        steps: 0,
        code: Self::NO_CODE,
        offset: 0,
        noted: None,
    };
    const STEP_BITS: u32 = 20;

    /// `None` for addresses and processes that do not fit.
    #[inline]
    fn key(process: ProcessId, at: Avma) -> Option<u64> {
        (process.0 < 1 << 16 && at.0 < 1 << 48).then_some(at.0 << 16 | u64::from(process.0))
    }

    fn of(key: u64, found: &CodeAt) -> Option<Self> {
        let (code, offset) = match found.hit {
            Some(hit) if hit.how == JitMatch::Active => (hit.code, hit.offset),
            Some(_) => return None,
            None => (Self::NO_CODE, 0),
        };
        let offset = u32::try_from(offset).ok()?;
        let Lifetime { from, to } = found.life;
        let steps = (to.0.saturating_sub(from.0) >> Self::STEP_BITS).min(u64::from(u32::MAX - 1));
        let steps = if to == Lifetime::ALWAYS.to {
            u32::MAX
        } else {
            steps as u32
        };
        Some(Self {
            key,
            from,
            steps,
            code,
            offset,
            noted: None,
        })
    }

    /// When the entry holds; maybe not all of the time when it would.
    #[inline]
    fn life(&self) -> Lifetime {
        let to = match self.steps {
            u32::MAX => Lifetime::ALWAYS.to,
            steps => Timestamp(
                self.from
                    .0
                    .saturating_add(u64::from(steps) << Self::STEP_BITS),
            ),
        };
        Lifetime {
            from: self.from,
            to,
        }
    }

    #[inline]
    fn hit(&self) -> Option<JitHit> {
        (self.code != Self::NO_CODE).then_some(JitHit {
            code: self.code,
            offset: u64::from(self.offset),
            how: JitMatch::Active,
        })
    }
}
