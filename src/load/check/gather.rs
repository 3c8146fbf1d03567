//! Collects what a recording says about its own quality.
//!
//! In: what the reading stages made of it. Out: [`Evidence`], plain numbers and names. Nothing is judged here.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::Avma;
use crate::collect::{AddressStackId, MapCache, Pc, PcId, SpaceAt};
use crate::dso::elf::ElfFile;
use crate::dso::go::GoTable;
use crate::dso::{Dso, DsoId, DsoKind, Evidence as FileEvidence, FileTrouble, KernelState};
use crate::ids::{Idx, IndexVec};
use crate::input::Story;
use crate::jit::{Absence, JitMatch};
use crate::perfdata::attr::{flag, sample_type};
use crate::perfdata::{Attr, CpuMode, Recording, Ring};
use crate::profile::{EventId, StackEnd, ThreadId};
use crate::runtimes::{Habit, Producer, Scope};
use crate::session::{Label, Samples, Session, Target};
use crate::symbolize::{Symbol, missing_split_file};

use super::brief::{self, Brief};
use super::stages::Stages;
use super::{
    Again, BranchStacks, Clock, Culprit, Dump, Early, EndShare, Evidence, FileProof, Judged,
    KernelSymbols, Loss, OfEvent, Reason, SharedCode, Skipped, Unread, Unresolved, Whole,
    is_doubtful, quoted,
};

/// What records it once more, of a recording at this path.
fn again(path: &str, story: &Story) -> Again {
    if story.command.is_empty() {
        return Again::Anew;
    }
    let folder = Path::new(path).parent().and_then(Path::to_str);
    let folder = folder.filter(|folder| !folder.is_empty()).unwrap_or(".");
    Again::By(format!("pjit record --again {}", quoted(folder)))
}

/// Everything that [`super::judge`] looks at.
#[must_use]
pub fn gather(path: String, stages: &Stages<'_, '_>) -> Evidence {
    let Stages {
        recording,
        session,
        collected,
        ..
    } = *stages;
    let (unresolved, resolved_by_file) = symbols(stages);
    let inferred = inferred(session, stages.samples);
    Evidence {
        again: stages.story.map(|story| again(&path, story)),
        path,
        whole: whole(recording, session),
        status: stages.story.and_then(|story| story.status),
        keeps_frames: stages.story.is_some_and(|story| story.keeps_frames),
        early: stages.story.and_then(early),
        loss: Loss {
            samples: collected.rows.iter().map(|row| row.samples).sum(),
            lost: session.stats.lost(),
            lost_of_judged: stages
                .judged
                .map(|event| session.stats.lost_of(|of| of == event)),
            chunks: session.stats.lost_chunks,
            throttled: session.stats.throttled,
            guests: stages
                .samples
                .rowless
                .iter()
                .map(|(samples, _)| samples)
                .sum(),
        },
        judged: judged(stages),
        events: events(stages),
        unknown_machine: unknown_machine(recording, session),
        ends: ends(stages),
        mended: stages.mended.clone(),
        grafted: ended(stages, StackEnd::Rooted),
        rooted: rooted(stages),
        skipped: skipped(stages),
        calls_kept: collected.most_branches,
        asked_frames: asked_frames(recording),
        brief: brief_threads(stages),
        unfollowed: unfollowed(recording, session, stages.samples),
        ends_in_go: ends_in_go(stages),
        unread: Unread {
            trace: session.stats.trace,
            branches: recording.has_branches().then_some(BranchStacks {
                entries: collected.most_entries,
                are_shown: recording.shows_branches(),
            }),
            lacks_accesses: recording.asks_for_accesses() && collected.accesses == 0,
            is_simpleperf: recording.features.is_simpleperf(),
        },
        sizes: collected.depths.sizes(),
        unresolved,
        clock: clock(recording),
        dumps: session.jit.objects().iter().map(Dump::of).collect(),
        absent: session.jit.absent().to_vec(),
        loses_dumps: loses_dumps(session),
        late: inferred.late,
        latest: inferred.latest,
        twins: inferred.twins,
        doubtful: doubtful(stages),
        kernel: kernel(stages),
        without_dwarf: without_dwarf(session, &resolved_by_file),
        wasm: super::wasm::gather(stages),
        unchecked: unchecked(session, &resolved_by_file),
        files: files(session, &resolved_by_file),
        copied: copied(stages),
        shared: shared(stages),
        untold: untold(stages),
        weights: stages.weights.clone(),
    }
}

/// What to do about empty dumps, by the first program whose runtime is known to leave them.
fn loses_dumps(session: &Session<'_>) -> Option<&'static str> {
    let all = session.jit.absent().iter();
    let mut empty = all.filter(|absent| absent.why == Absence::Empty);
    empty.find_map(|absent| {
        let program = session.main_program(absent.process)?;
        match Scope::of_file(&session.dsos.get(program).short_name, true)? {
            Scope::Runtime(producer) => producer.row().loses_dumps,
            _ => None,
        }
    })
}

/// Threads that began and have no sample, where no event was inherited and none was of processors: those tell of theirs.
fn unfollowed(recording: &Recording<'_>, session: &Session<'_>, samples: &Samples) -> usize {
    let follows = |attr: &Attr| attr.flag(flag::INHERIT) || attr.has(sample_type::CPU);
    if session.born.is_empty() || recording.events.iter().any(|event| follows(&event.attr)) {
        return 0;
    }
    let mut born: FxHashSet<ThreadId> = session.born.iter().copied().collect();
    for sample in &samples.all {
        born.remove(&sample.thread);
    }
    born.len()
}

/// What threads may have run without a sample; nothing where not all samples were looked at.
fn brief_threads(stages: &Stages<'_, '_>) -> Brief {
    let first = || stages.rows().next().map(|row| row.key.event);
    // Without any sample it is the first one that should have some.
    let event = stages.judged.or_else(first).unwrap_or(EventId(0));
    if stages.is_narrowed {
        return Brief::default();
    }
    let Stages {
        recording,
        session,
        samples,
        story,
        ..
    } = *stages;
    brief::gather(recording, session, samples, event, story)
}

/// Whether perf ended before its time.
fn early(story: &Story) -> Option<Early> {
    Some(Early {
        after: story.perf_ended?,
        ran: story.ran,
    })
}

/// What shares are told of.
fn judged(stages: &Stages<'_, '_>) -> Judged {
    let Stages {
        recording, session, ..
    } = *stages;
    let first = || stages.rows().next().map(|row| row.key.event);
    let shown = stages.judged.or_else(first);
    let shown = shown.and_then(|at| recording.events.get(at));
    let mut judged = Judged {
        event: shown
            .filter(|_| stages.judged.is_some())
            .map(|event| event.name.clone()),
        ring: shown.map_or(Ring::All, |event| event.attr.ring()),
        ..Judged::default()
    };
    for row in stages.rows() {
        judged.samples += row.samples;
        if session.threads[row.key.thread].is_idle() {
            judged.idle += row.samples;
        }
    }
    judged
}

/// Samples in code that a perf map tells several functions of, and those that were called from it.
fn doubtful(stages: &Stages<'_, '_>) -> (u64, u64) {
    let (mut own, mut called) = (0, 0);
    stages
        .collected
        .doubtful(&stages.session.jit, |row, is_own| {
            if stages.judges(row) {
                *(if is_own { &mut own } else { &mut called }) += row.samples;
            }
        });
    (own, called)
}

/// Samples by event.
fn events(stages: &Stages<'_, '_>) -> Vec<OfEvent> {
    let events = stages.recording.events.iter();
    let mut all: IndexVec<EventId, OfEvent> = events
        .map(|event| OfEvent {
            name: event.name.clone(),
            samples: 0,
            is_sampled: !event.attr.is_tracepoint(),
            is_too_often: event.attr.is_clock_too_often(),
        })
        .collect();
    for row in &stages.collected.rows {
        if let Some(event) = all.get_mut(row.key.event) {
            event.samples += row.samples;
        }
    }
    all.raw.retain(|event| event.samples > 0);
    all.raw
}

fn unknown_machine(recording: &Recording<'_>, session: &Session<'_>) -> Option<String> {
    let arch = session.dsos.arch();
    let name = recording.features.arch.as_deref();
    name.filter(|_| arch.is_none()).map(str::to_owned)
}

fn whole(recording: &Recording<'_>, session: &Session<'_>) -> Whole {
    let stats = &session.stats;
    let unknown: u64 = stats.unknown_types.values().sum();
    Whole {
        damage: stats.damage,
        bytes: stats.bytes_read,
        skipped: stats.malformed + stats.unknown_ids + unknown,
        frequency: recording
            .events
            .iter()
            .filter(|event| event.attr.is_freq())
            .map(|event| event.attr.sample_period)
            .max(),
        has_large_rings: brief::options(recording).any(|word| word == "16M"),
    }
}

fn clock(recording: &Recording<'_>) -> Clock {
    let mut attrs = recording.events.iter().map(|event| &event.attr);
    if !attrs.any(|attr| attr.has(sample_type::TIME)) {
        let is_apart = recording.events.iter().any(|event| event.ids.len() > 1);
        return Clock::Absent { is_apart };
    }
    let clock = recording
        .events
        .first()
        .and_then(|event| event.attr.clock());
    match clock {
        None => Clock::Scheduler,
        Some(crate::perfdata::ClockId::MONOTONIC) => Clock::Monotonic,
        Some(other) => Clock::Other(other.to_string()),
    }
}

/// Samples whose stacks ended for a reason.
fn ended(stages: &Stages<'_, '_>, end: StackEnd) -> u64 {
    let stacks = &stages.collected.stacks;
    let rows = stages.rows();
    let of_end = rows.filter(|row| stacks.tag(row.key.stack) == end);
    of_end.map(|row| row.samples).sum()
}

/// Samples by the reason for the end of their stacks, and whose code the last frame was in.
fn ends(stages: &Stages<'_, '_>) -> Vec<EndShare> {
    let mut found: BTreeMap<StackEnd, (u64, Culprits)> = BTreeMap::new();
    for row in stages.rows() {
        let end = stages.collected.stacks.tag(row.key.stack).recorded();
        let (samples, culprits) = found.entry(end).or_default();
        *samples += row.samples;
        let has_no_culprit = matches!(
            end,
            StackEnd::NotRecorded
                | StackEnd::Recorded
                | StackEnd::CallerMissing
                | StackEnd::BranchesFull
                | StackEnd::ChainFull
                | StackEnd::Skipped
                | StackEnd::DumpTooShort
                | StackEnd::AbsentPage
        );
        if end.is_complete() || has_no_culprit {
            continue;
        }
        if let Some(last) = stages.collected.stacks.get(row.key.stack).last() {
            let pc = &stages.collected.pcs[*last];
            culprits.add(pc, row.samples);
        }
    }
    let shares = found
        .into_iter()
        .map(|(end, (samples, culprits))| EndShare {
            end,
            samples,
            culprits: culprits.named(stages.session),
        });
    shares.collect()
}

/// Samples by DSO.
#[derive(Default)]
struct Culprits(BTreeMap<Option<DsoId>, u64>);

impl Culprits {
    fn add(&mut self, pc: &Pc, samples: u64) {
        *self.0.entry(dso_of(pc)).or_default() += samples;
    }

    /// The heaviest first.
    fn named(self, session: &Session<'_>) -> Vec<Culprit> {
        let runtimes = Runtimes::of(session);
        let named = self.0.into_iter();
        by_weight(
            named
                .map(|(dso, samples)| culprit(&runtimes, dso, samples))
                .collect(),
        )
    }
}

fn by_weight(mut culprits: Vec<Culprit>) -> Vec<Culprit> {
    culprits.sort_by(|a, b| (b.samples, &a.path).cmp(&(a.samples, &b.path)));
    culprits
}

fn culprit(runtimes: &Runtimes<'_, '_>, dso: Option<DsoId>, samples: u64) -> Culprit {
    let build_id = dso.and_then(|dso| runtimes.session.dsos.build_id(dso));
    let Some(dso) = dso.map(|dso| runtimes.session.dsos.get(dso)) else {
        return Culprit {
            name: "[unknown]".to_owned(),
            path: String::new(),
            samples,
            runtime: None,
            build_id: None,
            inode: None,
            rest: None,
        };
    };
    Culprit {
        name: dso.short_name.clone(),
        path: String::from_utf8_lossy(&dso.long_name).into_owned(),
        samples,
        runtime: runtimes.made(dso),
        build_id,
        inode: dso.inode_among_others(),
        rest: None,
    }
}

/// Who made code at run time. Found out once for all DSOs: thousands of processes may each have a dump and memory of their own.
struct Runtimes<'s, 'a> {
    session: &'s Session<'a>,
    /// By the paths of dumps.
    dumps: OnceCell<FxHashMap<&'s [u8], Producer>>,
    /// Of memory without a dump.
    owner: OnceCell<Producer>,
}

impl<'s, 'a> Runtimes<'s, 'a> {
    fn of(session: &'s Session<'a>) -> Self {
        Self {
            session,
            dumps: OnceCell::new(),
            owner: OnceCell::new(),
        }
    }

    /// Who made the code of a DSO; `None` for files.
    fn made(&self, dso: &Dso) -> Option<Producer> {
        let dumps = self.dumps.get_or_init(|| {
            let mut dumps = FxHashMap::default();
            for dump in self.session.jit.objects().iter() {
                dumps.entry(dump.path()).or_insert(dump.producer);
            }
            dumps
        });
        if let Some(producer) = dumps.get(dso.long_name.as_slice()) {
            return Some(*producer);
        }
        match dso.kind {
            DsoKind::JitDump => Some(Producer::Unknown),
            DsoKind::Anonymous => Some(*self.owner.get_or_init(|| self.owner())),
            _ => None,
        }
    }

    /// Without dump, who is loaded tells.
    fn owner(&self) -> Producer {
        let dsos = &self.session.dsos;
        let mut all = (0..dsos.len()).map(DsoId::from_usize);
        let owner = all.find_map(|dso| {
            let name = &dsos.get(dso).short_name;
            Producer::all().find(|runtime| runtime.library == Some(name))
        });
        owner.map_or(Producer::Unknown, |runtime| runtime.producer)
    }
}

const fn dso_of(pc: &Pc) -> Option<DsoId> {
    match pc.target {
        Target::Nowhere | Target::Label(_) => None,
        Target::Dso(dso) | Target::Jit(_, dso) => Some(dso),
    }
}

/// How few frames of a chain were asked for; 0 if no fewer than the kernel gives by itself.
fn asked_frames(recording: &Recording<'_>) -> u16 {
    let by_itself = Attr::default().max_stack();
    let asked = recording
        .events
        .iter()
        .map(|event| event.attr.sample_max_stack);
    let few = asked.filter(|most| *most > 0 && usize::from(*most) < by_itself);
    few.min().unwrap_or(0)
}

/// Samples without a name by reason, and the samples in each file, without those of the idle task.
fn symbols(stages: &Stages<'_, '_>) -> (Vec<Unresolved>, BTreeMap<DsoId, u64>) {
    let mut found: BTreeMap<Reason, (u64, Culprits)> = BTreeMap::new();
    let mut by_file: BTreeMap<DsoId, u64> = BTreeMap::new();
    let mut reasons = Reasons::of(stages);
    for row in stages.busy_rows() {
        let pc = stages.shown(row);
        if let Target::Dso(dso) = pc.target {
            *by_file.entry(dso).or_default() += row.samples;
        }
        if let Some(reason) = reasons.reason(row.key.thread, pc) {
            let (samples, culprits) = found.entry(reason).or_default();
            *samples += row.samples;
            culprits.add(pc, row.samples);
        }
    }
    let unresolved = found
        .into_iter()
        .map(|(reason, (samples, culprits))| Unresolved {
            reason,
            samples,
            culprits: culprits.named(stages.session),
        });
    (unresolved.collect(), by_file)
}

/// Why addresses have no names. Rows are many, and addresses of files are few.
struct Reasons<'s, 'd, 'a> {
    stages: &'s Stages<'d, 'a>,
    of_files: FxHashMap<(DsoId, u64), Option<Reason>>,
}

impl<'s, 'd, 'a> Reasons<'s, 'd, 'a> {
    fn of(stages: &'s Stages<'d, 'a>) -> Self {
        Self {
            stages,
            of_files: FxHashMap::default(),
        }
    }

    fn reason(&mut self, thread: ThreadId, pc: &Pc) -> Option<Reason> {
        let find = || reason(self.stages, thread, pc);
        match pc.target {
            // Of code in files the thread says nothing.
            Target::Dso(dso) => *self.of_files.entry((dso, pc.address)).or_insert_with(find),
            _ => find(),
        }
    }
}

/// Why an address has no name, or none that can be trusted.
fn reason(stages: &Stages<'_, '_>, thread: ThreadId, pc: &Pc) -> Option<Reason> {
    let session = stages.session;
    let dso = match (pc.target, pc.mode) {
        (Target::Jit(code, _), _) => {
            let object = session.jit.object(session.jit.code(code).object());
            let fit = object.stats.clock_fit;
            return is_doubtful(fit, &clock(stages.recording)).then_some(Reason::OtherRun);
        }
        // perf cannot tell where a kernel lies whose addresses it may not see.
        (Target::Nowhere, CpuMode::Kernel) => {
            return Some(if session.knows_kernel() {
                Reason::UntoldKernel
            } else {
                Reason::RestrictedKernel
            });
        }
        (Target::Nowhere, CpuMode::User) => {
            return Some(if is_runtime_memory(session, thread, pc.at) {
                Reason::JitWithoutDump
            } else if session.final_mappings(thread).next().is_none() {
                Reason::UntoldProcess
            } else {
                Reason::Unmapped
            });
        }
        (Target::Nowhere, _) => return Some(Reason::Other),
        (Target::Label(_), _) => return None,
        (Target::Dso(dso), _) => dso,
    };
    let known = session.dsos.get(dso);
    let is_kernel = matches!(known.kind, DsoKind::Kernel | DsoKind::Module);
    if is_kernel && session.dsos.kernel_state() == Some(KernelState::OtherBuild) {
        return Some(Reason::OtherKernel);
    }
    if is_named(stages, dso, pc.address) {
        return None;
    }
    Some(match known.kind {
        DsoKind::Kernel | DsoKind::Module => match session.dsos.kernel_state() {
            Some(KernelState::Restricted) => Reason::RestrictedKernel,
            Some(KernelState::Found) => Reason::NoSymbols,
            _ => Reason::NoKernelSymbols,
        },
        DsoKind::Anonymous => Reason::JitWithoutDump,
        DsoKind::File | DsoKind::Special
            if is_memory(&known.long_name) && !session.dsos.is_mapped_file(dso) =>
        {
            Reason::JitWithoutDump
        }
        DsoKind::File | DsoKind::Vdso => match session.dsos.trouble(dso) {
            Some(FileTrouble::Missing) => Reason::MissingFile,
            Some(FileTrouble::NotElf) => Reason::NotElf,
            Some(FileTrouble::Pe) => Reason::PeFile,
            Some(FileTrouble::Changed) => Reason::ChangedFile,
            Some(FileTrouble::Ambiguous) => Reason::AmbiguousFile,
            Some(FileTrouble::Unreadable) => Reason::UnreadableFile,
            None => Reason::NoSymbols,
        },
        DsoKind::KernelSymbol | DsoKind::JitDump | DsoKind::Special => Reason::Other,
    })
}

/// Whether an address lies in memory without a file, which belongs to nothing where a dump was found but
/// does not tell of it.
fn is_runtime_memory(session: &Session<'_>, thread: ThreadId, at: Avma) -> bool {
    // A runtime may have taken the right to execute away again since.
    let mapping = session.final_mapping(thread, at);
    mapping.is_some_and(|mapping| mapping.anonymous)
}

/// Memory that has a name and holds what a runtime put there.
fn is_memory(name: &[u8]) -> bool {
    name.starts_with(b"/memfd:") || name.starts_with(b"[anon:")
}

/// Whether an address of a file has a name.
pub(crate) fn is_named(stages: &Stages<'_, '_>, dso: DsoId, address: u64) -> bool {
    stages.symbol(dso, address).is_some()
}

/// Samples whose recorded chain gets to where programs and threads begin.
fn rooted(stages: &Stages<'_, '_>) -> u64 {
    /// Below main lie a few functions of the C library.
    const OUTERMOST: usize = 6;
    let stacks = &stages.collected.stacks;
    let mut known: BTreeMap<AddressStackId, bool> = BTreeMap::new();
    let mut samples = 0;
    for row in stages.rows() {
        if !stacks.tag(row.key.stack).is_recorded() {
            continue;
        }
        let reaches = *known.entry(row.key.stack).or_insert_with(|| {
            let outermost = stacks.get(row.key.stack).iter().rev();
            let pcs = outermost.map(|pc| &stages.collected.pcs[*pc]);
            let is_named = pcs
                .clone()
                .take(OUTERMOST)
                .any(|pc| is_beginning(stages, pc));
            is_named || begins_in_libc(stages, pcs)
        });
        if reaches {
            samples += row.samples;
        }
    }
    samples
}

/// Samples within whose stacks frames are missing, by the code that was left without them. Innermost frames count for what is usual.
fn skipped(stages: &Stages<'_, '_>) -> Skipped {
    let (stacks, pcs) = (&stages.collected.stacks, &stages.collected.pcs);
    let is_gap = |pc: &PcId| pcs[*pc].target == Target::Label(Label::SKIPPED);
    let (mut samples, mut culprits) = (0, Culprits::default());
    let mut leaves: BTreeMap<DsoId, [u64; 2]> = BTreeMap::new();
    for row in stages.rows() {
        let stack = stacks.get(row.key.stack);
        let gap = stack.iter().position(is_gap).filter(|at| *at > 0);
        if let Some(inner) = gap.and_then(|at| stack.get(at - 1)) {
            samples += row.samples;
            culprits.add(&pcs[*inner], row.samples);
        }
        if let Some(Target::Jit(_, dso)) = stack.first().map(|leaf| pcs[*leaf].target) {
            let [all, left] = leaves.entry(dso).or_default();
            *all += row.samples;
            *left += row.samples * u64::from(gap == Some(1));
        }
    }
    let habitual = leaves.iter().filter(|(_, [all, left])| left * 2 > *all);
    let name = |dso: DsoId| stages.session.dsos.get(dso).short_name.clone();
    Skipped {
        samples,
        culprits: culprits.named(stages.session),
        habitual: habitual.map(|(dso, _)| name(*dso)).collect(),
    }
}

/// Samples whose stacks ended early in Go's code, by the end.
fn ends_in_go(stages: &Stages<'_, '_>) -> Vec<(StackEnd, u64)> {
    const ENDS: [StackEnd; 3] = [
        StackEnd::DumpTooShort,
        StackEnd::OtherStack,
        StackEnd::CallerMissing,
    ];
    let mut known: BTreeMap<DsoId, bool> = BTreeMap::new();
    let mut is_go = |dso: DsoId| {
        *known.entry(dso).or_insert_with(|| {
            let binary = stages.session.dsos.binary(dso);
            binary.is_some_and(|elf| GoTable::of(elf).is_some())
        })
    };
    let stacks = &stages.collected.stacks;
    let mut found = ENDS.map(|end| (end, 0));
    for row in stages.rows() {
        let end = stacks.tag(row.key.stack).recorded();
        let Some((_, samples)) = found.iter_mut().find(|(wanted, _)| *wanted == end) else {
            continue;
        };
        // What was put under a cut stack lies behind a frame that is none.
        let mut frames = stacks.get(row.key.stack).iter().rev();
        let of_go =
            |pc: &PcId| matches!(stages.collected.pcs[*pc].target, Target::Dso(dso) if is_go(dso));
        if frames.any(of_go) {
            *samples += row.samples;
        }
    }
    found.to_vec()
}

/// Programs with samples, or ends of stacks, in code made at run time that nothing tells of.
fn untold(stages: &Stages<'_, '_>) -> Vec<String> {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut reasons = Reasons::of(stages);
    for row in stages.busy_rows() {
        let is_end = stages.collected.stacks.tag(row.key.stack) == StackEnd::UnknownCode;
        let pc = stages.shown(row);
        let mut is_leaf = || reasons.reason(row.key.thread, pc) == Some(Reason::JitWithoutDump);
        if is_end || is_leaf() {
            let process = stages.session.threads[row.key.thread].process;
            let program = stages.session.main_program(process);
            let name = program.map(|dso| stages.session.dsos.get(dso).short_name.as_str());
            *found.entry(name.unwrap_or_default()).or_default() += row.samples;
        }
    }
    let mut names: Vec<(&str, u64)> = found.into_iter().collect();
    names.sort_by_key(|(name, samples)| (std::cmp::Reverse(*samples), *name));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// Whether code begins programs or threads: of C and all that is linked like it, of Go, of Erlang.
fn is_beginning(stages: &Stages<'_, '_>, pc: &Pc) -> bool {
    const NAMES: [&str; 16] = [
        "main",
        "_start",
        "__libc_start_main",
        "__libc_start_call_main",
        "clone",
        "__clone",
        "clone3",
        "__clone3",
        "start_thread",
        "thread_start",
        "_dl_start_user",
        "runtime.main",
        "runtime.goexit",
        "runtime.mstart",
        "runtime.rt0_go",
        "runtime.mcall",
    ];
    match pc.target {
        Target::Nowhere | Target::Label(_) => false,
        Target::Jit(code, _) => stages.session.jit.code(code).habit() == Habit::ErlangBase,
        Target::Dso(dso) => stages.symbol(dso, pc.address).is_some_and(|symbol| {
            let name = symbol.name.split('@').next().unwrap_or_default();
            NAMES.contains(&name.trim_end_matches(".abi0")) || name.contains("wasmtime_fiber_start")
        }),
    }
}

/// Whether a stack, outermost frame first, begins where the C library begins programs and threads: in a few functions of it that have
/// no names in stripped files and called code of another one. Those that have names are told by them: a chain that breaks in
/// `snprintf` begins nothing.
fn begins_in_libc<'p>(stages: &Stages<'_, '_>, frames: impl Iterator<Item = &'p Pc>) -> bool {
    const FILES: [&str; 5] = ["libc.so.", "libc-", "libpthread", "ld-linux", "ld-musl"];
    const MOST: usize = 3;
    let is_nameless_libc = |pc: &Pc| match pc.target {
        Target::Dso(dso) => {
            let file = &stages.session.dsos.get(dso).short_name;
            let is_libc = FILES.iter().any(|front| file.starts_with(front));
            is_libc.then(|| stages.symbol(dso, pc.address).is_none())
        }
        Target::Nowhere | Target::Label(_) | Target::Jit(..) => None,
    };
    let mut below = 0;
    for pc in frames {
        match is_nameless_libc(pc) {
            Some(true) if below < MOST => below += 1,
            Some(_) => return false,
            None => return below > 0 && pc.mode == CpuMode::User && dso_of(pc).is_some(),
        }
    }
    false
}

/// Samples whose JIT code no record says to have been there.
#[derive(Default)]
struct Inferred {
    late: u64,
    latest: u64,
    twins: u64,
}

fn inferred(session: &Session<'_>, samples: &Samples) -> Inferred {
    let mut inferred = Inferred::default();
    if session.jit.code_count() == 0 {
        return inferred;
    }
    let cache = MapCache::default();
    for sample in &samples.all {
        let Some(hit) = SpaceAt::of(session, sample, &cache).jit_hit(sample) else {
            continue;
        };
        match hit.how {
            JitMatch::Active | JitMatch::PerfMap => {}
            JitMatch::Late => {
                let loaded = session.jit.code(hit.code).loaded();
                let distance = loaded.0.saturating_sub(sample.time.0);
                inferred.late += 1;
                inferred.latest = inferred.latest.max(distance);
            }
            JitMatch::Twin => inferred.twins += 1,
        }
    }
    inferred
}

fn kernel(stages: &Stages<'_, '_>) -> KernelSymbols {
    let is_kernel =
        |row: &&crate::collect::Row| stages.collected.pcs[row.key.leaf].mode == CpuMode::Kernel;
    let rows = stages.busy_rows().filter(is_kernel);
    let dsos = &stages.session.dsos;
    KernelSymbols {
        samples: rows.map(|row| row.samples).sum(),
        build_id: dsos.kernel_build_id(),
        state: dsos.kernel_state(),
        source: dsos.kernel_source().unwrap_or_default().to_owned(),
    }
}

/// Files with samples and symbols that do not tell which functions were inlined.
fn without_dwarf(session: &Session<'_>, by_file: &BTreeMap<DsoId, u64>) -> Vec<Culprit> {
    let dsos = &session.dsos;
    let runtimes = Runtimes::of(session);
    let lacking = |(&dso, &samples): (&DsoId, &u64)| {
        let is_file = dsos.get(dso).kind == DsoKind::File;
        // What compiled modules of WebAssembly lack, `wasm-lines` tells.
        let may_have = |elf: &ElfFile<'_>| !elf.is_compiled_wasm();
        let is_here = is_file && dsos.binary(dso).is_some_and(may_have);
        let lacks_all = is_here && lacks_debug_information(session, dso);
        let rest = || {
            dsos.missing_supplementary(dso)
                .or_else(|| missing_split_file(dsos, dso))
        };
        let rest = if is_here && !lacks_all { rest() } else { None };
        (lacks_all || rest.is_some()).then(|| Culprit {
            rest: rest.map(|path| path.display().to_string()),
            ..culprit(&runtimes, Some(dso), samples)
        })
    };
    by_weight(by_file.iter().filter_map(lacking).collect())
}

/// Whether nothing that is at hand of a file tells which functions were inlined.
pub(crate) fn lacks_debug_information(session: &Session<'_>, dso: DsoId) -> bool {
    let debug = session.dsos.debug(dso);
    debug.is_none_or(|elf| elf.debug_section(".debug_info").is_none())
}

/// Files that were used although hardly anything tells whether they are those that were recorded.
fn unchecked(session: &Session<'_>, by_file: &BTreeMap<DsoId, u64>) -> Vec<Culprit> {
    let mut found = Culprits::default();
    for (&dso, &samples) in by_file {
        let is_guess = session.dsos.evidence(dso) < Some(FileEvidence::Table);
        let found_one = session.dsos.binary(dso).filter(|_| is_guess);
        let is_file = session.dsos.get(dso).kind == DsoKind::File;
        if is_file && found_one.is_some_and(|elf| elf.build_id().is_some()) {
            found.0.insert(Some(dso), samples);
        }
    }
    found.named(session)
}

/// What tells of each file with samples that it is the one that was mapped, the heaviest file first.
fn files(session: &Session<'_>, by_file: &BTreeMap<DsoId, u64>) -> Vec<FileProof> {
    let proof = |(&dso, &samples): (&DsoId, &u64)| {
        let evidence = session.dsos.evidence(dso)?;
        Some(FileProof {
            path: String::from_utf8_lossy(&session.dsos.get(dso).long_name).into_owned(),
            evidence: evidence.word(),
            samples,
        })
    };
    let mut found: Vec<FileProof> = by_file.iter().filter_map(proof).collect();
    found.sort_by(|a, b| (b.samples, &a.path).cmp(&(a.samples, &b.path)));
    found
}

/// Samples in code that is one of several functions.
fn shared(stages: &Stages<'_, '_>) -> Vec<SharedCode> {
    // Few functions are, and there are many rows.
    let mut of_file: FxHashMap<DsoId, Vec<(&Symbol, &str)>> = FxHashMap::default();
    for symbol in &stages.answers.resolution.symbols {
        let folded = symbol.others.as_ref().and_then(|of| of.folded.as_deref());
        if let Some(other) = folded {
            let of_file = of_file.entry(symbol.dso).or_default();
            of_file.push((symbol, other));
        }
    }
    if of_file.is_empty() {
        return Vec::new();
    }
    let mut found: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in stages.busy_rows() {
        let pc = stages.shown(row);
        let Target::Dso(dso) = pc.target else {
            continue;
        };
        let mut of_file = of_file.get(&dso).into_iter().flatten();
        let is_there = |(symbol, _): &&(&Symbol, &str)| {
            let answer = || stages.symbol(dso, pc.address);
            (symbol.start..symbol.end).contains(&pc.address)
                && answer().is_some_and(|known| std::ptr::eq(known, *symbol))
        };
        if let Some((symbol, other)) = of_file.find(is_there) {
            *found.entry((&symbol.name, other)).or_default() += row.samples;
        }
    }
    let code = |((name, other), samples): ((&str, &str), u64)| SharedCode {
        name: name.to_owned(),
        other: other.to_owned(),
        samples,
    };
    let mut found: Vec<SharedCode> = found.into_iter().map(code).collect();
    found.sort_by_key(|each| std::cmp::Reverse(each.samples));
    found
}

/// Samples in programs' code where it was copied to memory without a file.
fn copied(stages: &Stages<'_, '_>) -> Vec<Culprit> {
    let session = stages.session;
    let mut found = Culprits::default();
    if !session.has_copied_code {
        return Vec::new();
    }
    for row in stages.busy_rows() {
        let pc = stages.shown(row);
        let mapping = || session.final_mapping(row.key.thread, pc.at);
        let is_copied = || mapping().is_some_and(|mapping| mapping.copied);
        if matches!(pc.target, Target::Dso(_)) && is_copied() {
            found.add(pc, row.samples);
        }
    }
    found.named(session)
}
