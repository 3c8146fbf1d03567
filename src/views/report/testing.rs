//! Profiles for tests, written by hand.

use rustc_hash::FxHashMap;

use crate::address::{Avma, FileOffset};
use crate::ids::Idx;
use crate::profile::CpuMode;
use crate::profile::{
    CommId, Entry, EventId, EventSummary, FacetsId, Frame, FrameId, Object, ObjectId, Origin,
    Profile, StackEnd, Symbol, SymbolId, Thread, ThreadId,
};

/// Builds a profile from stacks written as text.
pub(crate) struct ProfileBuilder {
    profile: Profile,
    frames: FxHashMap<String, FrameId>,
    symbols: FxHashMap<String, SymbolId>,
    /// Whether stacks count as unwound, not as recorded by the kernel.
    pub(crate) unwound: bool,
    /// Event of the next samples.
    pub(crate) event: EventId,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        let mut profile = Profile::default();
        profile.recording.path = "perf.data".to_owned();
        let mut builder = Self {
            profile,
            frames: FxHashMap::default(),
            symbols: FxHashMap::default(),
            unwound: false,
            event: EventId(0),
        };
        builder.add_event("cycles");
        builder
    }
}

impl ProfileBuilder {
    /// Adds an event with chains, which leads itself.
    pub(crate) fn add_event(&mut self, name: &str) -> EventId {
        let leader = self.profile.events.next_idx();
        self.profile.events.push(EventSummary {
            name: name.to_owned(),
            leader,
            has_callchains: true,
            ..EventSummary::default()
        });
        leader
    }

    /// Adds one sample of a thread that is called like its comm. Frames are given leaf first and separated by `;`:
    /// `name`, `name@object`, `name(inlined)`, `0x…` for what has no symbol, `0x…@` for what is not even mapped.
    pub(crate) fn sample(&mut self, comm: &str, stack: &str, period: u64) {
        let frames: Vec<FrameId> = stack
            .split(';')
            .filter(|f| !f.is_empty())
            .map(|f| self.frame(f))
            .collect();
        let leaf = frames[0];
        self.sample_at(comm, leaf, &frames, period);
    }

    /// Adds one sample with a chain of its own.
    pub(crate) fn sample_at(&mut self, comm: &str, leaf: FrameId, frames: &[FrameId], period: u64) {
        let thread = self.thread(comm);
        let end = if self.unwound {
            StackEnd::Complete
        } else {
            StackEnd::Recorded
        };
        let stack = self.profile.stacks.push(frames, end);
        let first = self.profile.entries.len() as u64;
        let event = self.event;
        let comm = self.profile[thread].comm;
        let totals = &mut self.profile.events[event];
        totals.samples += 1;
        totals.period += period;
        let entry = Entry {
            event,
            state: crate::run_state::RunState::Unknown,
            comm,
            thread,
            leaf,
            stack,
            facets: FacetsId::NONE,
            time: 0,
            period,
            samples: 1,
            first,
        };
        self.profile.entries.push(entry);
    }

    fn thread(&mut self, comm: &str) -> ThreadId {
        if let Some(at) = self.profile.comms.iter().position(|c| c == comm) {
            return ThreadId::from_usize(at);
        }
        let id = self.profile.comms.len() as u32;
        self.profile.comms.push(comm.to_owned());
        self.profile.threads.push(Thread {
            pid: 100 + id,
            tid: 100 + id,
            process: id,
            comm: CommId(id),
            program: CommId(id),
            main: None,
            start: None,
            end: None,
            comms: Vec::new(),
            cgroups: Vec::new(),
            lives: Vec::new(),
        });
        ThreadId(id)
    }

    fn object(&mut self, name: &str) -> ObjectId {
        if let Some(at) = self
            .profile
            .objects
            .iter()
            .position(|o| o.short_name == name)
        {
            return ObjectId::from_usize(at);
        }
        let rank = self.profile.objects.len() as u32;
        self.profile.objects.push(Object {
            rank,
            short_name: name.to_owned(),
            long_name: format!("/usr/bin/{name}"),
            identity: name.starts_with('['),
            is_kernel: name == "[kernel.kallsyms]",
            is_jit: false,
            origin: 'd',
            build_id: None,
            ranges: Vec::new(),
        });
        self.profile.objects.last_idx()
    }

    /// The frame that a text stands for. Symbols lie at 0x1000, 0x1010 and so on in the order they are first named,
    /// and 0x70000000 higher in memory.
    pub(crate) fn frame(&mut self, text: &str) -> FrameId {
        if let Some(id) = self.frames.get(text) {
            return *id;
        }
        let (name, object) = text.split_once('@').unwrap_or((text, "a"));
        let object = (!object.is_empty()).then(|| self.object(object));
        let frame = match name.strip_prefix("0x") {
            Some(digits) => self.unresolved(
                u64::from_str_radix(digits, 16).expect("hexadecimal digits"),
                object,
            ),
            None => self.resolved(name, object.expect("a symbol lies in an object")),
        };
        self.profile.frames.push(frame);
        let id = self.profile.frames.last_idx();
        self.frames.insert(text.to_owned(), id);
        id
    }

    fn unresolved(&self, address: u64, object: Option<ObjectId>) -> Frame {
        let is_identity = object.is_none_or(|object| self.profile[object].identity);
        Frame {
            object,
            symbol: None,
            address: Avma(address),
            object_address: FileOffset(if is_identity {
                address
            } else {
                address.wrapping_sub(0x7000_0000)
            }),
            mode: CpuMode::User,
            line: None,
            code: None,
        }
    }

    fn resolved(&mut self, name: &str, object: ObjectId) -> Frame {
        let inlined = name.ends_with("(inlined)");
        let plain = name.trim_end_matches("(inlined)");
        let next = self.profile.symbols.len() as u64;
        let start = 0x1000 + 0x10 * next;
        let symbols = &mut self.profile.symbols;
        let symbol = *self
            .symbols
            .entry(format!("{name}@{object:?}"))
            .or_insert_with(|| {
                symbols.push(Symbol {
                    object,
                    name: plain.to_owned(),
                    start: FileOffset(start),
                    end: FileOffset(start + 0x10),
                    is_data: false,
                    is_cpp: false,
                    inlined,
                    producer: None,
                    package: None,
                    origin: Origin::Unknown,
                    parameters: None,
                    place: None,
                    is_described: false,
                    others: None,
                    recorded: None,
                });
                SymbolId::from_usize(next as usize)
            });
        let is_kernel = self.profile[object].is_kernel;
        Frame {
            object: Some(object),
            symbol: Some(symbol),
            address: Avma(start + 0x7000_0000),
            object_address: FileOffset(start),
            mode: if is_kernel {
                CpuMode::Kernel
            } else {
                CpuMode::User
            },
            line: None,
            code: None,
        }
    }

    /// The profile.
    pub(crate) fn finish(self) -> Profile {
        self.profile
    }
}
