//! The history: who ran, what was mapped or jitted, when.
//!
//! [`Session::index`] takes the records of a recording in delivery order and keeps, for each sample,
//! a small reference with its thread, comm and address space. Afterwards the session is immutable
//! and shared by all workers; [`Session::at`] answers what lay at an address for one sample.
//!
//! Address spaces are snapshots: a new one is taken only when a sample follows a change, and
//! snapshots share what did not change ([`maps`]). JIT code is not a mapping; it has an index of its
//! own by address and time ([`jit`]).

pub mod jit;
pub mod listing;
pub mod maps;
pub mod threads;

mod build;

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;
use std::ops::Range;

use crate::address::{Avma, FileOffset, Timestamp};
use crate::dso::{DsoId, DsoTable, FileTrouble};
use crate::input::prefetch;
use crate::perfdata::{CpuMode, DeliverStats, EventId, RecordPos};
use crate::profile::{CommId, ThreadId};
use crate::unwind::{self, CodeSpace, Lifetime, Place, Scene};

use jit::{JitCodeId, JitHit, JitIndex, JitMatch, JitObjectId, ProcessId};
use maps::{MapTable, Mapping};
use threads::ThreadLife;

pub use build::Filter;

/// A state of a process' mappings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpaceId(pub u32);

/// What pass two needs to know of a sample; some 64 bytes each.
#[derive(Clone, Copy, Debug)]
pub struct SampleRef {
    /// Where its record is.
    pub pos: RecordPos,
    /// When it was taken.
    pub time: Timestamp,
    /// Where it was taken.
    pub ip: Avma,
    /// Its weight.
    pub period: u64,
    /// Whose it is.
    pub thread: ThreadId,
    /// The thread's comm at that time.
    pub comm: CommId,
    /// The process' mappings at that time.
    pub space: SpaceId,
    /// CPU, or -1.
    pub cpu: i32,
    /// What was counted.
    pub event: EventId,
    /// Whose layout its record has: the group's leader for members that share a record.
    pub layout: EventId,
    /// Where `ip` belongs.
    pub mode: CpuMode,
}

/// The final count of an event in one task (`perf record -s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCounter {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// What was counted.
    pub event: EventId,
    /// How much.
    pub value: u64,
}

/// The mappings of one process between two changes.
#[derive(Debug, Clone)]
struct Space {
    process: ProcessId,
    maps: MapTable,
}

/// The immutable history of a recording.
pub struct Session<'a> {
    /// Samples in time order, without those that the filter dropped.
    pub samples: Vec<SampleRef>,
    /// All DSOs; their files open on first use.
    pub dsos: DsoTable<'a>,
    /// JIT code of all processes.
    pub jit: JitIndex<'a>,
    /// Comms, indexed by [`CommId`].
    pub comms: Vec<String>,
    /// Threads, indexed by [`ThreadId`].
    pub threads: Vec<ThreadLife>,
    /// What was read.
    pub stats: DeliverStats,
    /// Period of the samples that count in totals but have no row (guests), by event.
    pub rowless: Vec<(u64, u64)>,
    /// Counters of the tasks that ended, as they were read.
    pub counters: Vec<TaskCounter>,
    spaces: Vec<Space>,
    /// Mappings of each process at the end.
    last: FxHashMap<ProcessId, MapTable>,
    kernel: MapTable,
    /// The DSO of each jitdump, indexed by `JitObjectId`.
    jit_dsos: Vec<DsoId>,
}

/// What a code address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// Nothing is mapped there.
    Nowhere,
    /// A DSO; its address is a file offset, or the process address for kernel and anonymous memory.
    Dso(DsoId),
    /// An entry of a jitdump or perf map, and the DSO it is shown under; its address is an offset.
    Jit(JitCodeId, DsoId),
}

/// A code address and what it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Located {
    /// What it belongs to.
    pub target: Target,
    /// The address in the target's space.
    pub address: u64,
}

impl<'a> Session<'a> {
    /// The code of a sample's process at the sample's time.
    #[must_use]
    pub fn at<'s>(&'s self, sample: &SampleRef, cache: &'s MapCache<'s>) -> SpaceAt<'s, 'a> {
        SpaceAt {
            session: self,
            space: &self.spaces[sample.space.0 as usize],
            space_id: sample.space,
            thread: sample.thread,
            time: sample.time,
            cache,
        }
    }

    /// How the JIT code at a sample's own address was found, if that is where it was taken.
    #[must_use]
    pub fn jit_match<'s>(
        &'s self,
        sample: &SampleRef,
        cache: &'s MapCache<'s>,
    ) -> Option<jit::JitMatch> {
        if sample.mode != CpuMode::User {
            return None;
        }
        match self.at(sample, cache).find(sample.ip) {
            Found::Jit(hit) => Some(hit.how),
            _ => None,
        }
    }

    /// The kernel mapping that contains an address.
    #[must_use]
    pub fn locate_kernel(&self, at: Avma) -> Located {
        match self.kernel.find(at) {
            Some(mapping) => Located {
                target: Target::Dso(mapping.dso),
                address: at.0,
            },
            None => Located {
                target: Target::Nowhere,
                address: at.0,
            },
        }
    }

    /// Name and start of the kernel's function at an address. Waits for the kernel's symbols.
    #[must_use]
    pub fn kernel_function(&self, at: Avma) -> Option<(String, u64)> {
        let located = self.locate_kernel(at);
        let Target::Dso(dso) = located.target else {
            return None;
        };
        let symbol = self.dsos.symbols(dso)?.find(located.address)?;
        let name = String::from_utf8_lossy(symbol.name).into_owned();
        Some((name, symbol.start))
    }

    /// The mappings of a thread's process at the end of the recording, by address.
    pub fn final_mappings(&self, thread: ThreadId) -> impl Iterator<Item = &Mapping> {
        let process = self.threads[thread.0 as usize].process;
        self.last.get(&process).into_iter().flat_map(MapTable::iter)
    }

    /// Number of address-space snapshots.
    #[must_use]
    pub fn space_count(&self) -> usize {
        self.spaces.len()
    }
}

/// One process at one time.
pub struct SpaceAt<'s, 'a> {
    session: &'s Session<'a>,
    space: &'s Space,
    space_id: SpaceId,
    thread: ThreadId,
    time: Timestamp,
    cache: &'s MapCache<'s>,
}

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
    /// See [`CodeSpace::note`].
    number: u32,
}

/// What a cached or made answer says.
struct CodeAt {
    hit: Option<JitHit>,
    life: Lifetime,
    number: Option<u32>,
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
    fn code(&self, jit: &JitIndex<'_>, process: ProcessId, at: Avma, time: Timestamp) -> CodeAt {
        let key = CachedCode::key(process, at);
        let mut codes = self.codes.borrow_mut();
        if let Some(key) = key {
            let known = codes.slot(key);
            if known.key == key && known.life().contains(time) {
                return CodeAt {
                    hit: known.hit(),
                    life: known.life(),
                    number: Some(known.number),
                };
            }
        }
        let found = look_up(jit, process, at, time);
        if let Some(key) = key {
            codes.put(key, &found);
        }
        found
    }

    fn find(&self, id: SpaceId, maps: &'s MapTable, at: Avma) -> Option<&'s Mapping> {
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

/// What the index of JIT code says about an address at a time, and when it says so.
fn look_up(jit: &JitIndex<'_>, process: ProcessId, at: Avma, time: Timestamp) -> CodeAt {
    let (hit, life) = match jit.lookup_with_span(process, at, time) {
        Some((hit, (from, to))) => (Some(hit), Lifetime { from, to }),
        None if jit.ever(process, at) => (None, Lifetime::NEVER),
        None => (None, Lifetime::ALWAYS),
    };
    CodeAt {
        hit,
        life,
        number: None,
    }
}

impl Codes {
    /// Slots at first and at most, powers of two. Deep stacks of large modules come by tens of thousands of
    /// addresses.
    const FIRST: usize = 1 << 12;
    const MOST: usize = 1 << 16;

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
        number: u32::MAX,
    };
    const STEP_BITS: u32 = 20;

    /// `None` for addresses and processes that do not fit.
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
            number: u32::MAX,
        })
    }

    /// When the entry holds; maybe not all of the time when it would.
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

    fn hit(&self) -> Option<JitHit> {
        (self.code != Self::NO_CODE).then_some(JitHit {
            code: self.code,
            offset: u64::from(self.offset),
            how: JitMatch::Active,
        })
    }
}

/// An address as found in the order of precedence: dump, file, late dump, perf map, anonymous.
enum Found<'s> {
    Jit(JitHit),
    Mapping(&'s Mapping),
    Nothing,
}

impl<'s, 'a> SpaceAt<'s, 'a> {
    /// Where the memory ends that a stack pointer leads to, if the recording tells. A main thread's stack has grown
    /// downwards since it was recorded; its end has not moved.
    #[must_use]
    pub fn stack_end(&self, sp: Avma) -> Option<Avma> {
        let maps = &self.space.maps;
        if let Some(mapping) = maps.find(sp) {
            return (!mapping.executable).then_some(mapping.range.end);
        }
        let above = maps.next_behind(sp)?;
        let name = &self.session.dsos.get(above.dso).long_name;
        name.starts_with(b"[stack").then_some(above.range.end)
    }

    /// Why the file of a DSO is not at hand.
    #[must_use]
    pub fn trouble(&self, dso: DsoId) -> Option<FileTrouble> {
        self.session.dsos.trouble(dso)
    }

    /// What an address belongs to, in the given mode.
    #[must_use]
    pub fn locate_in(&self, mode: CpuMode, at: Avma) -> Located {
        match mode {
            CpuMode::Kernel => self.session.locate_kernel(at),
            CpuMode::User => self.locate_user(at),
            _ => Located {
                target: Target::Nowhere,
                address: at.0,
            },
        }
    }

    /// What a user address belongs to.
    #[must_use]
    pub fn locate_user(&self, at: Avma) -> Located {
        match self.find(at) {
            Found::Mapping(mapping) if self.is_hidden(mapping) => Located {
                target: Target::Nowhere,
                address: at.0,
            },
            Found::Jit(hit) => Located {
                target: Target::Jit(hit.code, self.dso_of_code(hit.code, at)),
                address: hit.offset,
            },
            Found::Mapping(mapping) if self.session.dsos.get(mapping.dso).kind.is_identity() => {
                Located {
                    target: Target::Dso(mapping.dso),
                    address: at.0,
                }
            }
            Found::Mapping(mapping) => Located {
                target: Target::Dso(mapping.dso),
                address: mapping.file_offset(at).0,
            },
            Found::Nothing => Located {
                target: Target::Nowhere,
                address: at.0,
            },
        }
    }

    #[inline]
    fn place_in(&self, mapping: &Mapping, at: Avma) -> Place<'s, 'a> {
        Place::File {
            dso: mapping.dso,
            offset: FileOffset(mapping.file_offset(at).0),
            binary: self.session.dsos.binary(mapping.dso),
            debug: self.session.dsos.debug(mapping.dso),
        }
    }

    /// Whether the mapping would be missing in what `perf inject --jit` makes of the recording.
    fn is_hidden(&self, mapping: &Mapping) -> bool {
        mapping.behind_dump && self.session.jit.has_dump(self.space.process)
    }

    fn mapping(&self, at: Avma) -> Option<&'s Mapping> {
        self.cache.find(self.space_id, &self.space.maps, at)
    }

    fn find(&self, at: Avma) -> Found<'s> {
        self.find_for(at).0
    }

    /// What lies at an address, when it does as long as the mappings stay what they are, and what was noted for it.
    fn find_for(&self, at: Avma) -> (Found<'s>, Lifetime, Option<u32>) {
        let jit = &self.session.jit;
        let process = self.space.process;
        if jit.code_count() == 0 {
            let found = self.mapping(at).map_or(Found::Nothing, Found::Mapping);
            return (found, Lifetime::ALWAYS, None);
        }
        let CodeAt { hit, life, number } = self.cache.code(jit, process, at, self.time);
        if let Some(hit) = hit {
            return (Found::Jit(hit), life, number);
        }
        let mapping = self.mapping(at);
        if let Some(mapping) = mapping
            && !mapping.anonymous
        {
            return (Found::Mapping(mapping), life, number);
        }
        let unmapped = jit.lookup_unmapped(process, at, self.time);
        let found = match (unmapped, mapping) {
            (Some(hit), _) => Found::Jit(hit),
            (None, Some(mapping)) => Found::Mapping(mapping),
            (None, None) => Found::Nothing,
        };
        (found, Lifetime::NEVER, number)
    }

    /// Code of a dump belongs to the dump, code of a perf map to the anonymous memory around it.
    fn dso_of_code(&self, id: JitCodeId, at: Avma) -> DsoId {
        // Most runs have one dump, and the code itself is not in the cache.
        let object = match self.session.jit.objects() {
            [_] => JitObjectId(0),
            _ => self.session.jit.code(id).object(),
        };
        let of_map = self.session.jit.object(object).is_perf_map();
        let around = if of_map { self.mapping(at) } else { None };
        around.map_or(self.session.jit_dsos[object.0 as usize], |mapping| {
            mapping.dso
        })
    }
}

impl<'a> CodeSpace<'a> for SpaceAt<'_, 'a> {
    fn locate(&self, at: Avma) -> Place<'_, 'a> {
        self.locate_for(at).place
    }

    fn locate_for(&self, at: Avma) -> unwind::Found<'_, 'a> {
        let (found, life, number) = self.find_for(at);
        let place = match found {
            Found::Jit(hit) => Place::Jit {
                id: hit.code,
                code: self.session.jit.code(hit.code),
                offset: hit.offset,
            },
            Found::Mapping(mapping) if !mapping.executable => Place::Nothing,
            Found::Mapping(mapping) if mapping.anonymous => Place::Anonymous,
            Found::Mapping(mapping) => self.place_in(mapping, at),
            Found::Nothing => Place::Nothing,
        };
        unwind::Found {
            place,
            life,
            number,
        }
    }

    fn note(&self, at: Avma, number: u32) {
        if self.session.jit.code_count() > 0
            && let Some(key) = CachedCode::key(self.space.process, at)
        {
            let mut codes = self.cache.codes.borrow_mut();
            let slot = codes.slot(key);
            if slot.key == key {
                slot.number = number;
            }
        }
    }

    fn expect(&self, at: Avma) {
        if self.session.jit.code_count() > 0
            && let Some(key) = CachedCode::key(self.space.process, at)
        {
            let mut codes = self.cache.codes.borrow_mut();
            prefetch(std::slice::from_ref(codes.slot(key)));
        }
    }

    fn scene(&self) -> Option<Scene> {
        Some(Scene {
            space: self.space_id.0,
            thread: self.thread.0,
            time: self.time,
        })
    }

    fn mapped_files(&self, part: &[u8]) -> Vec<Place<'_, 'a>> {
        let files = self.space.maps.iter();
        let files = files.filter(|mapping| mapping.executable && !mapping.anonymous);
        let named = files.filter(|mapping| {
            let path = &self.session.dsos.get(mapping.dso).long_name;
            let name = path.rsplit(|&byte| byte == b'/').next();
            name.is_some_and(|name| memchr::memmem::find(name, part).is_some())
        });
        named
            .map(|mapping| self.place_in(mapping, mapping.range.start))
            .collect()
    }

    fn function_bounds(&self, dso: DsoId, at: FileOffset) -> Option<Range<FileOffset>> {
        let symbol = self.session.dsos.symbols(dso)?.find(at.0)?;
        Some(FileOffset(symbol.start)..FileOffset(symbol.end))
    }
}
