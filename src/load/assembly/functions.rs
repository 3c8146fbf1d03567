//! Which functions samples hit, and where in them.
//!
//! A JIT function has one entry for each piece of code of its name that is different: what a runtime compiled again to the
//! same bytes is one.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Material;
use crate::address::{Avma, Timestamp};
use crate::collect::{Collected, PcId, Row};
use crate::dso::{DsoId, DsoKind, DsoTable, FileTrouble};
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec};
use crate::jit::JitCodeId;
use crate::jitdump::debug_info::Line;
use crate::profile::{EventId, FrameId, Place, Profile, names};
use crate::runtimes::{CleanName, Tier, tier_of_any, without_tier};
use crate::session::Target;
use crate::symbolize::Site;

/// All functions with samples of their own.
#[derive(Debug, Default)]
pub struct Functions {
    /// In the order of their first sample.
    pub all: Vec<Function>,
    /// Period and number of the samples of each event, whether or not they are in a function.
    pub totals: IndexVec<EventId, (u64, u64)>,
    /// The same by object.
    objects: Vec<ObjectTotals>,
}

impl Functions {
    /// Leaves out, of functions and totals, what is not of these objects, named by base name or path.
    pub fn keep_objects(&mut self, wanted: &[String]) {
        let is =
            |name: &str, path: &str| wanted.iter().any(|wanted| wanted == name || wanted == path);
        self.totals.raw.fill((0, 0));
        for object in self.objects.iter().filter(|o| is(&o.name, &o.path)) {
            for (total, own) in self.totals.iter_mut().zip(&object.events) {
                *total = (total.0.saturating_add(own.0), total.1 + own.1);
            }
        }
        self.all
            .retain(|function| is(&function.object, &function.path));
        self.objects.retain(|o| is(&o.name, &o.path));
    }

    /// Objects with samples that are in no function, those with most of them first.
    #[must_use]
    pub fn unnamed(&self) -> Vec<Unnamed<'_>> {
        let all: u64 = self.totals.iter().map(|(_, samples)| samples).sum();
        let objects = self.objects.iter().filter(|object| object.unnamed > 0);
        let mut found: Vec<Unnamed<'_>> = objects
            .map(|object| Unnamed {
                path: &object.path,
                samples: object.unnamed,
                percent: 100.0 * object.unnamed as f64 / all.max(1) as f64,
                why: object.why,
            })
            .collect();
        found.sort_by_key(|object| (std::cmp::Reverse(object.samples), object.path));
        found
    }
}

/// Samples of an object that are in no function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unnamed<'f> {
    /// The object.
    pub path: &'f str,
    /// How many.
    pub samples: u64,
    /// Of all samples.
    pub percent: f64,
    /// Why they are in none, and what to do about it.
    pub why: &'static str,
}

/// Samples of each event in one object, by base name and path.
#[derive(Debug, Default)]
struct ObjectTotals {
    name: String,
    path: String,
    events: IndexVec<EventId, (u64, u64)>,
    /// Those in no function.
    unnamed: u64,
    why: &'static str,
}

/// A function, or one version of it.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name as reports show it.
    pub name: String,
    /// The same as the runtime or the compiler wrote it, where reports show what the author wrote.
    pub recorded: Option<String>,
    /// The same without what runtimes and compilers add.
    pub clean: CleanName,
    /// Its parameters, of one that shares its name with others, where that was asked.
    pub parameters: Option<Box<str>>,
    /// Where it is defined, likewise.
    pub place: Option<Box<Place>>,
    /// Base name of the file or dump, as reports show it.
    pub object: String,
    /// Its path.
    pub path: String,
    /// Where samples are, by event and offset.
    pub hits: Vec<Hit>,
    /// Of JIT code: which version this is.
    pub version: Option<Version>,
    pub(super) origin: Origin,
    /// Index of a sample in it, or of one in what it called.
    pub(super) sample: u64,
    /// Where it was then.
    pub(super) at: Avma,
}

/// Samples of one event at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// The event.
    pub event: EventId,
    /// Bytes from the start of the function.
    pub offset: u64,
    /// Whether what the samples stand in was called there: `offset` is in the call, or where it returns to.
    pub is_call: bool,
    /// Sum of periods.
    pub period: u64,
    /// Number.
    pub samples: u64,
}

/// Samples of one event at one address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed {
    event: EventId,
    /// The address; nothing if they are in nothing that is looked at.
    pc: Option<PcId>,
    is_call: bool,
    period: u64,
    samples: u64,
    /// Rank in time order of the first of them.
    first: u64,
}

impl Weighed {
    /// All samples, where they are.
    pub(super) fn all(collected: &Collected) -> impl Iterator<Item = Self> {
        collected.rows.iter().map(|row| Self {
            event: row.key.event,
            pc: Some(row.key.leaf),
            is_call: false,
            period: row.period,
            samples: row.samples,
            first: row.first,
        })
    }

    /// Those of a profile that was filtered. Frames that were removed have left their samples to their callers. `met`: an
    /// address of each frame, and frames are kept apart by address.
    pub(super) fn left<'p>(
        profile: &'p Profile,
        met: &'p IndexSlice<FrameId, [Option<PcId>]>,
        collected: &'p Collected,
    ) -> impl Iterator<Item = Self> + 'p {
        let at = |pc: PcId| collected.pcs[pc].at;
        let sampled = collected.rows.iter().map(|row: &Row| at(row.key.leaf));
        let sampled: FxHashSet<Avma> = sampled.collect();
        let left = profile.entries.iter().map(move |entry| {
            let pc = met[entry.leaf];
            Self {
                event: entry.event,
                pc,
                is_call: pc.is_some_and(|pc| !sampled.contains(&at(pc))),
                period: entry.period,
                samples: entry.samples,
                first: entry.first,
            }
        });
        // Percentages stay those of all samples.
        let events = profile.events.iter_enumerated();
        let gone = events.map(|(event, summary)| Self {
            event,
            pc: None,
            is_call: false,
            period: summary.filtered_period,
            samples: summary.filtered_samples,
            first: 0,
        });
        left.chain(gone.filter(|gone| gone.samples > 0))
    }
}

/// A version of a JIT function among those that samples hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Version {
    /// From 1, in the order in which they were loaded.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// When it was loaded first, in ns.
    pub loaded: u64,
    /// When other code took the place of all of it, if that happened.
    pub replaced: Option<u64>,
    /// How many pieces of code with samples it is.
    pub loads: usize,
    /// At how many addresses they were loaded.
    pub places: usize,
}

/// Where the code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// A symbol of the resolution.
    Symbol { dso: DsoId, start: u64, end: u64 },
    /// A piece of JIT code.
    Jit(JitCodeId),
}

impl Function {
    /// Period and number of the samples of an event.
    #[must_use]
    pub fn weight(&self, event: EventId) -> (u64, u64) {
        let own = self.hits.iter().filter(|hit| hit.event == event);
        own.fold((0, 0), |(period, samples), hit| {
            (period.saturating_add(hit.period), samples + hit.samples)
        })
    }
}

pub(super) fn find(
    material: &Material<'_, '_>,
    weighed: impl Iterator<Item = Weighed>,
) -> Functions {
    let mut finder = Finder {
        material,
        numbers: FxHashMap::default(),
        pieces: FxHashMap::default(),
        by_pc: index_vec![Known::Unasked; material.collected.pcs.len()],
        objects: FxHashMap::default(),
        found: Functions::default(),
    };
    for samples in weighed {
        finder.add(&samples);
    }
    let Finder {
        pieces, mut found, ..
    } = finder;
    for function in &mut found.all {
        merge(&mut function.hits);
    }
    number_versions(material, &pieces, &mut found.all);
    found
}

/// What an address was found to be.
#[derive(Clone, Copy)]
enum Known {
    Unasked,
    Nothing,
    /// A place in a function.
    At(usize, u64),
}

/// The first sample of a function or piece of code, and where that was then.
#[derive(Clone, Copy)]
struct Met {
    sample: u64,
    at: Avma,
}

/// What makes one function of several pieces of JIT code.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Symbol(u32),
    /// By name, bytes, the file where its lines alone tell it, and lines.
    Version(DsoId, &'a [u8], &'a [u8], Option<&'a str>, Vec<Line<'a>>),
    /// Code without bytes, which may be anything.
    Piece(JitCodeId),
}

/// Of each piece of JIT code the function that it is, and its first sample.
type Pieces = FxHashMap<JitCodeId, (usize, Met)>;

struct Finder<'m, 's, 'a> {
    material: &'m Material<'s, 'a>,
    numbers: FxHashMap<Key<'s>, usize>,
    pieces: Pieces,
    by_pc: IndexVec<PcId, Known>,
    /// Place in [`Functions::objects`].
    objects: FxHashMap<DsoId, usize>,
    found: Functions,
}

/// The total of an event, which may be the first of it.
fn total_of(totals: &mut IndexVec<EventId, (u64, u64)>, event: EventId) -> &mut (u64, u64) {
    if totals.len() <= event.index() {
        totals.resize(event.index() + 1, (0, 0));
    }
    &mut totals[event]
}

impl<'s> Finder<'_, 's, '_> {
    fn add(&mut self, samples: &Weighed) {
        let total = total_of(&mut self.found.totals, samples.event);
        total.0 = total.0.saturating_add(samples.period);
        total.1 += samples.samples;
        let Some(pc) = samples.pc else {
            return;
        };
        let object = self.count_object(pc, samples);
        if let Known::Unasked = self.by_pc[pc] {
            self.by_pc[pc] = self.place(pc, samples.first);
        }
        if let Known::At(function, offset) = self.by_pc[pc] {
            self.found.all[function].hits.push(Hit {
                event: samples.event,
                offset,
                is_call: samples.is_call,
                period: samples.period,
                samples: samples.samples,
            });
        } else if let Some(object) = object {
            self.found.objects[object].unnamed += samples.samples;
        }
    }

    /// Returns which of [`Functions::objects`] it is.
    fn count_object(&mut self, pc: PcId, samples: &Weighed) -> Option<usize> {
        let (Target::Dso(dso) | Target::Jit(_, dso)) = self.material.collected.pcs[pc].target
        else {
            return None;
        };
        let all = &mut self.found.objects;
        let dsos = &self.material.session.dsos;
        let at = *self.objects.entry(dso).or_insert_with(|| {
            let object = dsos.get(dso);
            let path = String::from_utf8_lossy(&object.long_name).into_owned();
            all.push(ObjectTotals {
                name: object.short_name.clone(),
                path,
                why: why_unnamed(dsos, dso),
                ..ObjectTotals::default()
            });
            all.len() - 1
        });
        let total = total_of(&mut all[at].events, samples.event);
        total.0 = total.0.saturating_add(samples.period);
        total.1 += samples.samples;
        Some(at)
    }

    fn place(&mut self, pc: PcId, sample: u64) -> Known {
        let pc = &self.material.collected.pcs[pc];
        let met = Met { sample, at: pc.at };
        match pc.target {
            Target::Nowhere | Target::Label(_) => Known::Nothing,
            Target::Jit(code, dso) => Known::At(self.jit(code, dso, met), pc.address),
            Target::Dso(dso) => self.symbol(dso, pc.address, met),
        }
    }

    fn symbol(&mut self, dso: DsoId, address: u64, met: Met) -> Known {
        let answers = self.material.answers;
        let answer = answers.get(Site::Dso(dso), address);
        let Some(number) = answer.and_then(|answer| answer.symbol) else {
            return Known::Nothing;
        };
        let symbol = &answers.resolution.symbols[number];
        let origin = Origin::Symbol {
            dso,
            start: symbol.start,
            end: symbol.end,
        };
        let recorded = || symbol.raw.as_deref().map(str::to_owned);
        let make = || (symbol.name.clone(), recorded(), origin);
        let known = self.found.all.len();
        let function = self.function(Key::Symbol(number.0), dso, met, make);
        if known == function {
            let made = &mut self.found.all[function];
            (made.parameters, made.place) = (symbol.parameters.clone(), symbol.place.clone());
        }
        Known::At(function, address.wrapping_sub(symbol.start))
    }

    fn jit(&mut self, id: JitCodeId, dso: DsoId, met: Met) -> usize {
        if let Some((function, _)) = self.pieces.get(&id) {
            return *function;
        }
        let code = self.material.session.jit.code(id);
        let bytes = code.bytes();
        let key = if bytes.is_empty() {
            Key::Piece(id)
        } else {
            let file = self.material.session.jit.evaled_file(id);
            Key::Version(dso, code.name(), bytes, file, code.true_lines())
        };
        let material = self.material;
        let make = || {
            let (name, recorded) = names::of_code(
                material.session,
                material.answers,
                id,
                (material.names, super::NEEDS),
            );
            (name, recorded.map(|of| of.name), Origin::Jit(id))
        };
        let function = self.function(key, dso, met, make);
        self.pieces.insert(id, (function, met));
        function
    }

    fn function(
        &mut self,
        key: Key<'s>,
        dso: DsoId,
        met: Met,
        make: impl FnOnce() -> (String, Option<String>, Origin),
    ) -> usize {
        if let Some(known) = self.numbers.get(&key) {
            return *known;
        }
        let (name, recorded, origin) = make();
        let producer = match origin {
            Origin::Jit(id) => Some(self.material.session.jit.code(id).producer()),
            Origin::Symbol { .. } => None,
        };
        let object = self.material.session.dsos.get(dso);
        self.found.all.push(Function {
            clean: CleanName::of(&name, producer),
            name,
            recorded,
            object: object.short_name.clone(),
            path: String::from_utf8_lossy(&object.long_name).into_owned(),
            hits: Vec::new(),
            version: None,
            parameters: None,
            place: None,
            origin,
            sample: met.sample,
            at: met.at,
        });
        let number = self.found.all.len() - 1;
        self.numbers.insert(key, number);
        number
    }
}

/// What to do about a file that cannot be used.
pub(super) fn said_of(trouble: FileTrouble) -> &'static str {
    match trouble {
        FileTrouble::Changed => {
            "is another build than the recorded one: not annotated; put the recorded file below a folder and give that with --symfs"
        }
        FileTrouble::Ambiguous => {
            "has a path that several files had while it was recorded: not annotated; pjit record tells them apart"
        }
        FileTrouble::NotElf => "is no ELF file: what lies in it is not known",
        FileTrouble::Pe => "is no ELF file, but of Windows' format (.NET)",
        FileTrouble::Unreadable => "cannot be read by this user",
        FileTrouble::Missing => {
            "is not at hand; put the recorded file below a folder and give that with --symfs"
        }
    }
}

/// Why samples of an object may be in no function, and what to do about it.
fn why_unnamed(dsos: &DsoTable<'_>, dso: DsoId) -> &'static str {
    let has_symbols = || dsos.symbols(dso).is_some_and(|table| !table.is_empty());
    let files = || [dsos.binary(dso), dsos.debug(dso)].into_iter().flatten();
    let has_table = || files().any(|elf| elf.has_section(".symtab"));
    match dsos.get(dso).kind {
        DsoKind::File | DsoKind::Vdso => match dsos.trouble(dso) {
            Some(trouble) => said_of(trouble),
            None if has_table() => "has no symbol there",
            None => {
                "is stripped: its debug file, or the file before it was stripped below --symfs, would tell"
            }
        },
        DsoKind::Kernel if has_symbols() => "has no symbol there",
        DsoKind::Kernel => "has no symbols at hand: give --kallsyms FILE of the recorded kernel",
        DsoKind::Module => "is a kernel module, and no symbol is known there",
        DsoKind::KernelSymbol => "is made by the kernel",
        DsoKind::Anonymous => {
            "is code made at run time: record with a dump (wasmtime --profile=jitdump, node --perf-prof, java with libperf-jvmti.so)"
        }
        DsoKind::JitDump | DsoKind::Special => "has no function there",
    }
}

/// Adds up what is at one place.
fn merge(hits: &mut Vec<Hit>) {
    hits.sort_unstable();
    hits.dedup_by(|next, kept| {
        let place = |hit: &Hit| (hit.event, hit.offset, hit.is_call);
        let same = place(next) == place(kept);
        if same {
            kept.period = kept.period.saturating_add(next.period);
            kept.samples += next.samples;
        }
        same
    });
}

/// Which kind of compiler made a function, where its name tells that of its versions.
#[must_use]
pub fn tier(name: &str) -> &'static str {
    if without_tier(name) == name {
        return "";
    }
    match tier_of_any(name) {
        Tier::Optimised => "optimised",
        Tier::Baseline => "baseline",
        Tier::Interpreted => "interpreted",
        Tier::Middle => "mid-tier",
        Tier::Builtin | Tier::RegExp | Tier::Wasm | Tier::Unknown => "",
    }
}

/// When other code took the place of a piece of code, if that happened.
fn replaced(material: &Material<'_, '_>, met: Met) -> Option<u64> {
    let session = material.session;
    let samples = &material.samples.all;
    let sample = samples.get(usize::try_from(met.sample).ok()?)?;
    let process = session.threads[sample.thread].process;
    let (_, (_, to)) = session.jit.lookup_with_span(process, met.at, sample.time)?;
    (to != Timestamp(u64::MAX)).then_some(to.0)
}

/// Numbers the versions of each name by the time at which they were loaded.
fn number_versions(material: &Material<'_, '_>, pieces: &Pieces, all: &mut [Function]) {
    let mut places: FxHashSet<(usize, Avma)> = FxHashSet::default();
    for (&id, &(function, met)) in pieces {
        let code = material.session.jit.code(id);
        let (loaded, replaced) = (code.loaded().0, replaced(material, met));
        let version = all[function].version.get_or_insert(Version {
            loaded,
            replaced,
            ..Version::default()
        });
        version.loaded = version.loaded.min(loaded);
        version.replaced = version
            .replaced
            .zip(replaced)
            .map(|(known, new)| known.max(new));
        version.loads += 1;
        version.places += usize::from(places.insert((function, code.start())));
    }
    let mut by_name: FxHashMap<(String, String), Vec<(u64, usize)>> = FxHashMap::default();
    for (number, function) in all.iter().enumerate() {
        if let Some(version) = function.version {
            let name = without_tier(&function.name).into_owned();
            let name = (function.path.clone(), name);
            by_name
                .entry(name)
                .or_default()
                .push((version.loaded, number));
        }
    }
    for (_, mut versions) in by_name {
        versions.sort_unstable();
        let of = u32::try_from(versions.len()).unwrap_or(u32::MAX);
        for (number, &(_, function)) in (1..).zip(&versions) {
            if let Some(version) = &mut all[function].version {
                (version.number, version.of) = (number, of);
            }
        }
    }
}
