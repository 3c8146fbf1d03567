//! One process of the history at the time of one sample: what code lies at an address.
//!
//! This is where the history ([`Session`]) becomes what the unwinder asks ([`CodeSpace`]).

use std::ops::Range;

use crate::address::{Avma, FileOffset, Timestamp};
use crate::dso::{DsoId, DsoKind, FileTrouble};
use crate::ids::ThreadId;
use crate::jit::{JitCodeId, JitHit, JitObjectId};
use crate::perfdata::CpuMode;
use crate::session::maps::Mapping;
use crate::session::{Located, SampleRef, Session, Space, SpaceId, Target};
use crate::unwind::{self, CodeLocation, CodeSpace, FramePlaceId, Lifetime, Scene};

use crate::session::returns::TRAMPOLINES;

use super::map_cache::{CodeAt, MapCache};

/// One process at one time.
pub struct SpaceAt<'s, 'a> {
    session: &'s Session<'a>,
    space: &'s Space,
    space_id: SpaceId,
    thread: ThreadId,
    time: Timestamp,
    /// Of the kernel's mappings.
    kernel_state: usize,
    cache: &'s MapCache<'s>,
}

/// An address as found in the order of precedence: dump, file, late dump, perf map, anonymous.
enum AddressHit<'s> {
    Jit(JitHit),
    Mapping(&'s Mapping),
    Nothing,
}

impl<'s, 'a> SpaceAt<'s, 'a> {
    /// The code of a sample's process at the sample's time.
    #[must_use]
    pub fn of(session: &'s Session<'a>, sample: &SampleRef, cache: &'s MapCache<'s>) -> Self {
        Self {
            session,
            space: session.space(sample.space),
            space_id: sample.space,
            thread: sample.thread,
            time: sample.time,
            kernel_state: session.kernel_state_at(sample.time),
            cache,
        }
    }

    /// The JIT code at the sample's own address, if that is where it was taken.
    #[must_use]
    pub fn jit_hit(&self, sample: &SampleRef) -> Option<JitHit> {
        if sample.mode != CpuMode::User {
            return None;
        }
        match self.find(sample.ip) {
            AddressHit::Jit(hit) => Some(hit),
            _ => None,
        }
    }

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

    /// The user's part of a chain that has this number in its place.
    #[must_use]
    pub fn deferred(&self, cookie: u64) -> Option<&'s [u64]> {
        self.session.deferred.get(&cookie).map(|words| &**words)
    }

    /// Whether the process has memory of its own: a kernel thread has none.
    #[must_use]
    pub fn has_user(&self) -> bool {
        self.space.maps.iter().next().is_some()
    }

    /// Why the file of a DSO is not at hand.
    #[must_use]
    pub fn trouble(&self, dso: DsoId) -> Option<FileTrouble> {
        self.session.dsos.trouble(dso)
    }

    /// Whether it is a file or the kernel's, and not memory in which code is made.
    #[must_use]
    pub fn is_of_file(&self, dso: DsoId) -> bool {
        use DsoKind::{Anonymous, JitDump, Special};
        !matches!(
            self.session.dsos.get(dso).kind,
            Anonymous | JitDump | Special
        )
    }

    /// The state of the process' mappings and of the kernel's, as one number.
    #[must_use]
    pub fn state(&self) -> u64 {
        u64::from(self.space_id.0) << 32 | self.kernel_state as u64
    }

    /// Whether an address means the same at all times, as long as the state is what it is: there is no JIT code.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.session.jit.code_count() == 0
    }

    /// The sample's time.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        self.time
    }

    /// The state of the kernel's mappings at the sample's time.
    #[must_use]
    pub fn kernel_state(&self) -> usize {
        self.kernel_state
    }

    /// What an address belongs to, in the given mode.
    #[must_use]
    pub fn locate_in(&self, mode: CpuMode, at: Avma) -> Located {
        match mode {
            CpuMode::Kernel => self.session.locate_kernel(at, self.kernel_state),
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
        self.locate_user_for(at).0
    }

    /// The same, and when it does as long as the [state](Self::state) is what it is.
    #[must_use]
    pub fn locate_user_for(&self, at: Avma) -> (Located, Lifetime) {
        let (found, life, _) = self.find_for(at);
        let located = match found {
            AddressHit::Mapping(mapping) if self.is_hidden(mapping) => Located {
                target: Target::Nowhere,
                address: at.0,
            },
            AddressHit::Jit(hit) => Located {
                target: Target::Jit(hit.code, self.dso_of_code(hit.code, at)),
                address: hit.offset,
            },
            AddressHit::Mapping(mapping)
                if self.session.dsos.get(mapping.dso).kind.is_identity() =>
            {
                Located {
                    target: Target::Dso(mapping.dso),
                    address: at.0,
                }
            }
            AddressHit::Mapping(mapping) => Located {
                target: Target::Dso(mapping.dso),
                address: mapping.file_offset(at).0,
            },
            AddressHit::Nothing => Located {
                target: Target::Nowhere,
                address: at.0,
            },
        };
        (located, life)
    }

    #[inline]
    fn place_in(&self, mapping: &Mapping, at: Avma) -> CodeLocation<'s, 'a> {
        let [binary, debug] = self.session.dsos.code_files(mapping.dso);
        CodeLocation::File {
            dso: mapping.dso,
            offset: FileOffset(mapping.file_offset(at).0),
            binary,
            debug,
        }
    }

    /// Whether the mapping would be missing in what `perf inject --jit` makes of the recording.
    fn is_hidden(&self, mapping: &Mapping) -> bool {
        mapping.behind_dump && self.session.jit.has_dump(self.space.process)
    }

    #[inline]
    fn mapping(&self, at: Avma) -> Option<&'s Mapping> {
        self.cache.find(self.space_id, &self.space.maps, at)
    }

    fn find(&self, at: Avma) -> AddressHit<'s> {
        self.find_for(at).0
    }

    /// What lies at an address, when it does as long as the mappings stay what they are, and what was noted for it.
    #[inline]
    fn find_for(&self, at: Avma) -> (AddressHit<'s>, Lifetime, Option<FramePlaceId>) {
        let jit = &self.session.jit;
        let process = self.space.process;
        if jit.code_count() == 0 {
            let found = self
                .mapping(at)
                .map_or(AddressHit::Nothing, AddressHit::Mapping);
            return (found, Lifetime::ALWAYS, None);
        }
        let CodeAt { hit, life, noted } = self.cache.code(jit, process, at, self.time);
        if let Some(hit) = hit {
            return (AddressHit::Jit(hit), life, noted);
        }
        let mapping = self.mapping(at);
        if let Some(mapping) = mapping
            && !mapping.anonymous
        {
            return (AddressHit::Mapping(mapping), life, noted);
        }
        let unmapped = jit.lookup_unmapped(process, at, self.time);
        let (unmapped, span) = unmapped.map_or((None, None), |(former, span)| (Some(former), span));
        let lifetime = span.map_or(Lifetime::NEVER, |(from, to)| Lifetime { from, to });
        let found = match (unmapped, mapping) {
            (Some(code), _) => AddressHit::Jit(code),
            (None, Some(mapping)) => AddressHit::Mapping(mapping),
            (None, None) => AddressHit::Nothing,
        };
        (found, lifetime, noted)
    }

    /// Code of a dump belongs to the dump, code of a perf map to the anonymous memory around it.
    fn dso_of_code(&self, id: JitCodeId, at: Avma) -> DsoId {
        // Most runs have one dump, and the code itself is not in the cache.
        let object = match self.session.jit.objects().len() {
            1 => JitObjectId(0),
            _ => self.session.jit.code(id).object(),
        };
        let of_map = self.session.jit.object(object).is_perf_map();
        let around = if of_map { self.mapping(at) } else { None };
        let around = around.filter(|mapping| !mapping.copied);
        around.map_or(self.session.dso_of_dump(object), |mapping| mapping.dso)
    }
}

impl<'a> CodeSpace<'a> for SpaceAt<'_, 'a> {
    fn locate(&self, at: Avma) -> CodeLocation<'_, 'a> {
        self.locate_for(at).place
    }

    #[inline]
    fn locate_for(&self, at: Avma) -> unwind::Lookup<'_, 'a> {
        let (found, life, noted) = self.find_for(at);
        let place = match found {
            AddressHit::Jit(hit) => CodeLocation::Jit {
                id: hit.code,
                code: self.session.jit.code(hit.code),
                offset: hit.offset,
            },
            AddressHit::Mapping(mapping) if !mapping.executable => CodeLocation::Nothing,
            AddressHit::Mapping(mapping) if mapping.anonymous && !mapping.copied => {
                CodeLocation::Anonymous
            }
            AddressHit::Mapping(mapping) => self.place_in(mapping, at),
            AddressHit::Nothing => CodeLocation::Nothing,
        };
        unwind::Lookup { place, life, noted }
    }

    #[inline]
    fn note(&self, at: Avma, place: FramePlaceId) {
        if self.session.jit.code_count() > 0 {
            self.cache.note(self.space.process, at, place);
        }
    }

    fn expect(&self, at: Avma) {
        if self.session.jit.code_count() > 0 {
            self.cache.expect(self.space.process, at);
        }
    }

    fn scene(&self) -> Option<Scene> {
        Some(Scene {
            space: self.space_id,
            thread: self.thread,
            time: self.time,
        })
    }

    fn is_vdso(&self, dso: DsoId) -> bool {
        self.session.dsos.get(dso).kind == DsoKind::Vdso
    }

    #[inline]
    fn is_return_probe(&self, at: Avma) -> bool {
        /// It lies at the start of its page.
        const PAGE: u64 = 4096;
        self.session.has_return_probes
            && at.0.is_multiple_of(PAGE)
            && self
                .mapping(at)
                .is_some_and(|mapping| self.session.dsos.get(mapping.dso).long_name == TRAMPOLINES)
    }

    fn behind_return_probe(&self, nth: usize) -> Option<Avma> {
        self.session.returns.behind(self.thread, self.time, nth)
    }

    fn frame_size(&self, code: JitCodeId) -> Option<u64> {
        self.session.frame_sizes.of(code)
    }

    fn mapped_files(&self, part: &[u8]) -> Vec<CodeLocation<'_, 'a>> {
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
