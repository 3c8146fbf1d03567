//! What the events of a recording say of the heap: which functions are probed, where their arguments are in payloads.
//!
//! In: tracepoints of probes, whose payloads have the address of the function, and the symbols at those addresses. Out: a
//! [`Fact`] for each sample. Names of events are chosen by users: what counts is the function.

use rustc_hash::FxHashMap;

use super::allocators::{Kind, is_upper_layer, kind, kind_of_event};
use super::heap::Fact;
use super::read::{Source, stack_pointer};
use crate::address::Avma;
use crate::ids::Idx;
use crate::jit::ProcessId;
use crate::perfdata::{EventId, FieldAt, Sample};
use crate::session::{SampleRef, Samples, Session};

/// Names of arguments.
const SIZES: [&str; 6] = ["size", "new_size", "bytes", "len", "n", "length"];
const COUNTS: [&str; 4] = ["nmemb", "count", "num", "nelem"];
const POINTERS: [&str; 4] = ["ptr", "p", "pointer", "addr"];
const HEAPS: [&str; 1] = ["ctx"];

/// A probe on an allocator's function.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    pub(super) kind: Kind,
    /// As symbol tables have it.
    pub(super) name: String,
    pub(super) is_return: bool,
    /// Layers over other allocators: `operator new`.
    pub(super) is_upper: bool,
    /// Where functions of this probe are: in their file, and in the processes of its first samples.
    places: Vec<u64>,
    addresses: Vec<u64>,
    address: FieldAt,
    size: Option<FieldAt>,
    count: Option<FieldAt>,
    pointer: Option<FieldAt>,
    heap: Option<FieldAt>,
}

/// What the payload of a probe says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Said {
    address: u64,
    /// Bytes, or what was returned.
    value: u64,
    pointer: u64,
    heap: u64,
    pub(super) stack: u64,
}

/// By event: the probe that it is, if it is one on an allocator.
pub(super) fn probes(source: Source<'_, '_>, samples: &Samples) -> Vec<Option<Probe>> {
    let events = &source.recording.events;
    let mut found = vec![None; events.len()];
    let address = |event: usize| -> Option<(FieldAt, bool)> {
        let field = |name| {
            source
                .recording
                .tracepoints
                .field(events[event].attr.config, name)
        };
        let entry = field("__probe_ip").map(|at| (at, false));
        entry.or_else(|| field("__probe_func").map(|at| (at, true)))
    };
    let first = first_samples(samples, events.len());
    for (event, slot) in found.iter_mut().enumerate() {
        if !events[event].attr.is_tracepoint() {
            continue;
        }
        if let Some((at, is_return)) = address(event) {
            *slot = probe(source, (event, &first[event]), at, is_return);
        }
    }
    found
}

/// The first samples of each event, in which its function is looked for: the first of all may be entries of a PLT.
fn first_samples(samples: &Samples, events: usize) -> Vec<Vec<SampleRef>> {
    const LOOKED_AT: usize = 16;
    let mut first = vec![Vec::new(); events];
    for sample in &samples.all {
        let of_event = &mut first[sample.event.index()];
        if of_event.len() < LOOKED_AT {
            of_event.push(*sample);
        }
    }
    first
}

fn probe(
    source: Source<'_, '_>,
    (event, first): (usize, &[SampleRef]),
    address: FieldAt,
    is_return: bool,
) -> Option<Probe> {
    let wanted: Vec<bool> = (0..source.recording.events.len())
        .map(|e| e == event)
        .collect();
    let addresses = source.read(first, &wanted, |_, sample| {
        u64::try_from(address.number(sample.raw?)?).ok()
    });
    let at = |(sample, at): (&SampleRef, &u64)| place_at(source.session, sample, *at);
    let places = first.iter().zip(&addresses).filter_map(at).collect();
    let mut named = first
        .iter()
        .zip(addresses.iter().copied())
        .rev()
        .filter_map(|(sample, place)| {
            let name = function_at(source.session, sample, place)?;
            kind(&name).map(|kind| (kind, name))
        });
    let name = source.recording.events[event].name.as_str();
    let (kind, name) = named
        .next()
        .or_else(|| kind_of_event(name).map(|kind| (kind, short_event(name).to_owned())))?;
    let id = source.recording.events[event].attr.config;
    let arguments = Arguments::of(source, id);
    let is_upper = is_upper_layer(&name);
    Some(Probe {
        size: arguments.size(kind, is_return),
        count: arguments.named(&COUNTS).or_else(|| arguments.count(kind)),
        pointer: arguments.pointer(kind),
        heap: arguments.named(&HEAPS),
        kind,
        name: shown(&name),
        is_return,
        is_upper,
        places,
        addresses,
        address,
    })
}

fn short_event(name: &str) -> &str {
    let name = name.rsplit(':').next().unwrap_or(name);
    name.split("_ret").next().unwrap_or(name)
}

/// `calloc` for `__libc_calloc@GLIBC_2.2.5`.
fn shown(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    let name = name
        .trim_start_matches("__GI_")
        .trim_start_matches("__libc_");
    match name {
        "cfree" => "free".to_owned(),
        "__posix_memalign" => "posix_memalign".to_owned(),
        name => name.to_owned(),
    }
}

/// The name of the function at an address of a sample's process.
fn function_at(session: &Session<'_>, sample: &SampleRef, at: u64) -> Option<String> {
    let mapping = session.space(sample.space).maps.find(Avma(at))?;
    let offset = mapping.file_offset(Avma(at));
    let symbol = session.dsos.symbols(mapping.dso)?.find(offset.0)?;
    Some(String::from_utf8_lossy(symbol.name).into_owned())
}

/// Where an address of a sample's process is in its file.
fn place_at(session: &Session<'_>, sample: &SampleRef, at: u64) -> Option<u64> {
    let mapping = session.space(sample.space).maps.find(Avma(at))?;
    Some(mapping.file_offset(Avma(at)).0)
}

/// The arguments that a probe was told to record, in order.
struct Arguments<'s> {
    all: Vec<(&'s str, FieldAt)>,
}

impl<'s> Arguments<'s> {
    fn of(source: Source<'s, '_>, id: u64) -> Self {
        let tracepoints = &source.recording.tracepoints;
        let names = tracepoints
            .field_names(id)
            .filter(|name| !name.starts_with("__probe"));
        let all = names.filter_map(|name| Some((name, tracepoints.field(id, name)?)));
        Self { all: all.collect() }
    }

    fn named(&self, names: &[&str]) -> Option<FieldAt> {
        let mut names = names.iter();
        names.find_map(|name| {
            let known = self.all.iter().find(|(known, _)| known == name);
            known.map(|(_, at)| *at)
        })
    }

    fn nth(&self, index: usize) -> Option<FieldAt> {
        self.all.get(index).map(|(_, at)| *at)
    }

    /// Where the bytes are; of a return, what is returned.
    fn size(&self, kind: Kind, is_return: bool) -> Option<FieldAt> {
        if is_return {
            return self.nth(0);
        }
        let by_name = self.named(&SIZES);
        // Whoever records one argument only records the one that counts.
        let last = self.nth(self.all.len().saturating_sub(1));
        by_name.or_else(|| match kind {
            Kind::Alloc(index) => self.nth(index).or(last),
            Kind::Map => self.nth(1).or(last),
            Kind::Free => None,
            _ => last,
        })
    }

    fn count(&self, kind: Kind) -> Option<FieldAt> {
        match kind {
            Kind::AllocMany => self.nth(0).filter(|_| self.all.len() > 1),
            Kind::ReallocMany => self.nth(1).filter(|_| self.all.len() > 2),
            _ => None,
        }
    }

    fn pointer(&self, kind: Kind) -> Option<FieldAt> {
        match kind {
            Kind::Free | Kind::Unmap | Kind::Realloc | Kind::ReallocMany => {
                self.named(&POINTERS).or_else(|| self.nth(0))
            }
            _ => None,
        }
    }
}

impl Probe {
    /// What a payload says.
    pub(super) fn said(&self, sample: &Sample<'_>) -> Option<Said> {
        let payload = sample.raw?;
        let number = |at: FieldAt| -> Option<u64> {
            let number = at.number(payload)?;
            Some(u64::try_from(number.max(0)).unwrap_or(u64::MAX))
        };
        // All ones is what `mmap` gives back when it fails, whatever the sign of the field.
        let is_failure = |at: FieldAt| at.number(payload) == Some(-1);
        let given = |at: Option<FieldAt>| at.map_or(Some(0), number);
        let size = given(self.size)?;
        let value = match self.count.filter(|_| !self.is_return) {
            Some(count) => size.saturating_mul(number(count)?),
            None if self.is_return && self.size.is_some_and(is_failure) => u64::MAX,
            None => size,
        };
        Some(Said {
            address: number(self.address)?,
            value,
            pointer: given(self.pointer)?,
            heap: given(self.heap)?,
            stack: stack_pointer(sample),
        })
    }
}

/// What is known of a probe at an address of a process.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Its samples count.
    counts: bool,
    /// It is the entry of a function whose returns are recorded.
    returns: bool,
}

/// Turns what payloads said into facts, and leaves out what is said twice.
pub(super) struct Reader<'s, 'a> {
    session: &'s Session<'a>,
    probes: &'s [Option<Probe>],
    /// By event: process and function of its last sample, and what is known of them.
    last: Vec<(u32, u64, Known)>,
    known: FxHashMap<(u16, u32, u64), Known>,
    /// By process and function, of entries and returns: the event that counts.
    first: FxHashMap<(u32, u64, bool), EventId>,
    pub(super) twins: u64,
    pub(super) unreadable: u64,
}

impl<'s, 'a> Reader<'s, 'a> {
    pub(super) fn new(session: &'s Session<'a>, probes: &'s [Option<Probe>]) -> Self {
        Self {
            session,
            probes,
            last: vec![(u32::MAX, 0, Known::default()); probes.len()],
            known: FxHashMap::default(),
            first: FxHashMap::default(),
            twins: 0,
            unreadable: 0,
        }
    }

    /// The fact of a sample.
    pub(super) fn fact(&mut self, sample: &SampleRef, said: Option<Said>) -> Option<Fact> {
        let probes = self.probes;
        let probe = probes[sample.event.index()].as_ref()?;
        let Some(said) = said else {
            self.unreadable += 1;
            return None;
        };
        let known = self.known(sample, probe, said.address);
        if !known.counts {
            self.twins += 1;
            return None;
        }
        Some(match (probe.kind, probe.is_return) {
            (Kind::Free | Kind::Unmap, true) => return None,
            (Kind::Unmap, false) => Fact::Unmap {
                start: said.pointer,
                bytes: said.value,
            },
            (Kind::Free, false) => Fact::Free {
                pointer: said.pointer,
                heap: said.heap,
            },
            (_, true) => Fact::Return {
                function: said.address,
                value: said.value,
            },
            (kind, false) => Fact::Call {
                kind,
                function: said.address,
                bytes: said.value,
                pointer: said.pointer,
                heap: said.heap,
                returns: known.returns,
            },
        })
    }

    /// The process, heap and address that a sample will ask for, if it is known before the samples in front of it are.
    pub(super) fn address(&self, sample: &SampleRef, said: Said) -> Option<(ProcessId, u64, u64)> {
        let probe = self.probes[sample.event.index()].as_ref()?;
        let address = if probe.is_return {
            said.value
        } else {
            said.pointer
        };
        let process = self.session.threads[sample.thread].process;
        (address != 0).then_some((process, said.heap, address))
    }

    /// What is known of samples of this event at this address. They do not count at the entry of a PLT, which only leads to
    /// the function, and not for the second of two events.
    fn known(&mut self, sample: &SampleRef, probe: &Probe, at: u64) -> Known {
        let event = usize::from(sample.event.0);
        let process = self.session.threads[sample.thread].process.0;
        let (last_process, last_at, last_known) = self.last[event];
        if (last_process, last_at) == (process, at) {
            return last_known;
        }
        let key = (sample.event.0, process, at);
        let known = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let name = function_at(self.session, sample, at);
                let is_plt = name.is_some_and(|name| name.ends_with("@plt"));
                let place = (process, at, probe.is_return);
                let first = *self.first.entry(place).or_insert(sample.event);
                let known = Known {
                    counts: !is_plt && first == sample.event,
                    returns: self.returns(sample, at),
                };
                self.known.insert(key, known);
                known
            }
        };
        self.last[event] = (process, at, known);
        known
    }

    /// Whether returns from the function at an address are recorded, in whatever process: probes are on files.
    fn returns(&self, sample: &SampleRef, at: u64) -> bool {
        let place = place_at(self.session, sample, at);
        let mut returns = self.probes.iter().flatten().filter(|p| p.is_return);
        returns.any(|probe| match place {
            Some(place) if !probe.places.is_empty() => probe.places.contains(&place),
            _ => probe.addresses.contains(&at),
        })
    }
}
