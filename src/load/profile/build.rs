//! From address stacks and resolved addresses to the [`Profile`].
//!
//! What is equal is found first, in parallel and in the order in which it lies in memory ([`super::places`] for frames,
//! [`equal_stacks`] for stacks). Then everything gets its id in the order of the rows, that is of the first sample in
//! time, so that ids and with them the output do not depend on threads or hashing ([`super::numbering`]). Rows become
//! entries or samples ([`super::table`]), and frames and symbols are filled in last ([`super::fill`]).

use rustc_hash::FxHashMap;

use crate::address::FileOffset;
use crate::collect::{AddressStacks, Collected, Facets, FacetsNumberer, PcId, Rows};
use crate::ids::{Idx as _, IndexSlice, IndexVec, Part, index_vec};
use crate::jit::{JitCodeId, ProcessId};
use crate::needs::Needs;
use crate::perfdata::{CpuMode, Event, EventId};
use crate::session::{Samples, Session, Target};
use crate::symbolize::{Answers, NameStyle, Query, Site};
use crate::wasm::{WasmCode, WasmPlace};

use super::fill::Filler;
use super::mapped;
use super::names::JitNames;
use super::numbering::{Met, Numbered, Numberer, equal_stacks};
use super::optimised::optimised;
use super::places::FramesOfPcs;
use super::predictions;
use super::table::Tabler;
use super::{CommId, FrameId, Profile, Stacks, Thread, ThreadId};

/// Takes recorded callers as they are where they are no places that calls return to, as symbols tell.
///
/// In the kernel an interrupted function stands in the chain like a caller: its first instruction is more likely there than a
/// call at a function's end, behind which the kernel leaves a gap. Handlers of signals return to a trampoline that nobody called.
pub fn settle_calls(collected: &mut Collected, session: &Session<'_>) {
    for pc in &mut collected.pcs {
        let Target::Dso(dso) = pc.target else {
            continue;
        };
        if !pc.returns {
            continue;
        }
        let Some(symbols) = session.dsos.symbols(dso) else {
            continue;
        };
        let behind = pc.address.wrapping_add(1);
        let begins = symbols.find(behind).filter(|found| found.start == behind);
        let is_recorded = begins.is_some_and(|symbol| {
            if pc.mode == CpuMode::User {
                is_trampoline(symbol.name)
            } else {
                !is_padding(symbol.name)
            }
        });
        if is_recorded {
            pc.take_as_recorded();
        }
    }
}

/// Whether the kernel's build names so what stands in front of a function and never runs.
fn is_padding(name: &[u8]) -> bool {
    name.starts_with(b"__pfx_") || name.starts_with(b"__cfi_")
}

/// Whether handlers of signals return to it.
fn is_trampoline(name: &[u8]) -> bool {
    matches!(
        name,
        b"__restore_rt" | b"__restore" | b"__default_rt_sa_restorer" | b"__default_sa_restorer"
    ) || name.ends_with(b"sigreturn")
}

/// The addresses that have to be resolved in DSOs and modules of WebAssembly, each once, sorted.
#[must_use]
pub fn queries(collected: &Collected, wasm: &WasmCode<'_>, needs: Needs) -> Vec<Query> {
    let query = |place, address| Query {
        place,
        address,
        inlines: needs.contains(Needs::INLINED),
        lines: needs.contains(Needs::LINES),
    };
    let of_wasm = |place: WasmPlace| Query {
        lines: needs.contains(Needs::LINES) || needs.contains(Needs::WASM_LINES),
        ..query(Site::Wasm(place.part), place.offset.into())
    };
    let mut queries = Vec::with_capacity(collected.pcs.len());
    for pc in &collected.pcs {
        match pc.target {
            Target::Dso(dso) => {
                queries.push(query(Site::Dso(dso), pc.address));
                let place = wasm.place_of_dso(dso, FileOffset(pc.address));
                queries.extend(place.map(of_wasm));
            }
            Target::Jit(code, _) => {
                let place = wasm.place_of_jit(code, pc.address);
                queries.extend(place.map(of_wasm));
            }
            Target::Nowhere | Target::Label(_) => {}
        }
    }
    if needs.contains(Needs::CODE) && needs.contains(Needs::LINES) {
        queries.extend(whole_functions(collected, wasm).map(of_wasm));
    }
    queries.sort_unstable_by_key(place);
    queries.dedup();
    queries
}

/// The places in code that was hit from which on another line may count.
fn whole_functions<'w>(
    collected: &Collected,
    wasm: &'w WasmCode<'_>,
) -> impl Iterator<Item = WasmPlace> + 'w {
    let hit = collected.pcs.iter().filter_map(|pc| match pc.target {
        Target::Jit(code, _) => Some(code),
        _ => None,
    });
    let mut hit: Vec<JitCodeId> = hit.collect();
    hit.sort_unstable();
    hit.dedup();
    let places = move |code: JitCodeId| {
        let offsets = wasm.offsets(code).into_iter();
        offsets.filter_map(move |offset| wasm.place_of_jit(code, offset))
    };
    hit.into_iter().flat_map(places)
}

fn place(query: &Query) -> (Site, u64) {
    (query.place, query.address)
}

/// What a profile is made of.
pub enum Material<'c> {
    /// Somebody else looks at it, too.
    Lent(&'c Collected),
    /// Nobody needs stacks and rows behind those of the profile: they are given back, as both are large.
    Spent(&'c mut Collected),
}

impl Material<'_> {
    fn get(&self) -> &Collected {
        match self {
            Self::Lent(collected) => collected,
            Self::Spent(collected) => collected,
        }
    }

    fn forget_stacks(&mut self) {
        if let Self::Spent(collected) = self {
            collected.stacks = AddressStacks::default();
        }
    }

    fn forget_rows(&mut self) {
        if let Self::Spent(collected) = self {
            collected.rows = Vec::new();
            collected.addresses = Vec::new();
            collected.row_of = Vec::new();
            collected.facets = Facets::default();
        }
    }
}

/// A profile, and where its frames are from.
pub struct Built {
    /// Its entries, frames, symbols and stacks.
    pub profile: Profile,
    /// By frame: an address that it was met at; nothing for one that is no function. Empty if nobody else looks.
    pub met: IndexVec<FrameId, Option<PcId>>,
}

/// Builds the entries, frames, symbols and stacks of a profile.
#[must_use]
pub fn build(
    mut material: Material<'_>,
    (session, samples): (&Session<'_>, &Samples),
    events: &IndexSlice<EventId, [Event]>,
    answers: Answers<'_>,
    names: NameStyle,
    needs: Needs,
    threads: usize,
) -> Built {
    let collected = material.get();
    let names = JitNames::of(collected, session, answers, (names, needs), threads);
    let places = FramesOfPcs::of(collected, session, answers, names, needs);
    let resolution = answers.resolution;
    let (same_stack, capacity) = equal_stacks(&collected.stacks, &places, threads);
    let mut profile = Profile {
        comms: session.comms.clone(),
        threads: threads_of(session),
        stacks: Stacks::with_capacity(capacity),
        ..Profile::default()
    };
    let numberer = Numberer {
        collected,
        marks: needs.contains(Needs::MARKS),
        places: &places,
        same_stack,
        stacks: index_vec![None; collected.stacks.len()],
        frames: index_vec![None; places.all.len()],
        pc_frames: Vec::new(),
        of_pcs: index_vec![Part::default(); collected.pcs.len()],
        stack_frames: Vec::new(),
        order: IndexVec::with_capacity(places.all.len() + 1),
        labels: IndexVec::new(),
        profile: &mut profile,
    };
    let Numbered {
        rows,
        order,
        labels,
        frames,
    } = numberer.rows();
    let mapped = if needs.contains(Needs::RANGES) {
        mapped::mappings(collected, session, samples)
    } else {
        Vec::new()
    };
    profile.predictions = predictions::of(collected, &places, resolution);
    if needs.contains(Needs::OPTIMISED) {
        profile.optimised = optimised(session, answers.maps);
    }
    material.forget_stacks();
    let kept = material.get();
    let frame_at = |pc: PcId| {
        let frame = frames[places.leaf(pc)];
        frame.map_or(u32::MAX, |frame| frame.index() as u32)
    };
    let mut tabler = Tabler {
        collected: kept,
        recorded: samples,
        numbers: &rows,
        facets: FacetsNumberer::new(&kept.facets, session, &frame_at),
        profile: &mut profile,
    };
    match kept.kind {
        Rows::Merged | Rows::Branches => tabler.entries(),
        Rows::Samples => tabler.samples(events),
    }
    let facets = tabler.facets.finish();
    profile.facets = facets;
    drop(rows);
    material.forget_rows();
    let rest = material.get();
    Filler {
        collected: rest,
        session,
        labels_of_samples: &samples.labels,
        answers,
        resolution,
        profile: &mut profile,
        objects: index_vec![None; session.dsos.len()],
        symbols: index_vec![None; places.symbols()],
        files: index_vec![None; places.files.len()],
        code_files: FxHashMap::default(),
        versions: FxHashMap::default(),
        ends: None,
        places,
        labels,
    }
    .fill(&order, &mapped, needs);
    let met = match material {
        Material::Lent(_) => order.into_iter().map(Met::pc).collect(),
        Material::Spent(_) => IndexVec::new(),
    };
    Built { profile, met }
}

fn threads_of(session: &Session<'_>) -> IndexVec<ThreadId, Thread> {
    let threads = || session.threads.iter();
    let leaders = threads().filter(|t| t.pid == t.tid);
    let leaders: FxHashMap<ProcessId, CommId> = leaders.map(|t| (t.process, t.comm)).collect();
    threads()
        .map(|t| Thread {
            pid: t.pid,
            tid: t.tid,
            process: t.process.0,
            comm: t.comm,
            program: leaders.get(&t.process).copied().unwrap_or(t.comm),
            main: None,
            start: t.start.map(|time| time.0),
            end: t.end.map(|time| time.0),
            comms: t.comms.iter().map(|&(time, comm)| (time.0, comm)).collect(),
            cgroups: t.cgroups.iter().map(|&(time, of)| (time.0, of)).collect(),
            lives: Vec::new(),
        })
        .collect()
}
