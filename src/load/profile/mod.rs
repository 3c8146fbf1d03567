//! The product of the reading half: one table of (event, comm, thread, leaf, stack) → period.
//!
//! Views see this and nothing else: no records, no ELF, no files. Frames, symbols and stacks are
//! interned; the order of everything is the order of first appearance in time, so output never
//! depends on hashing or on the number of threads.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::address::{Avma, AvmaRange, CodeOffset, FileOffset};
use crate::build_id::BuildId;
use crate::collect::Squares;
use crate::ids::{Idx as _, IndexVec, Spare, index_vec, numbers};
use crate::intern::Sequences;
use crate::metrics::{is_clock, plain_name};
use crate::run_state::RunState;
use crate::runtimes::CleanName;
use crate::runtimes::crates::crate_of;
use crate::runtimes::query::{Fit, More, Query};
use crate::unit::Unit;
use crate::weigh::{Derived, Evidence, Interval, Trim};

/// The runtime that made code while the program ran.
pub use crate::runtimes::{Producer, Whose};

mod build;
mod fill;
mod filter;
mod jit_lines;
mod mapped;
pub(crate) mod names;
mod normalize;
mod numbering;
mod optimised;
mod places;
mod pool;
mod predictions;
mod table;
#[cfg(test)]
mod tests;
mod trim;

pub use build::{Built, Material, build, queries, settle_calls};
pub use filter::{SampleFilter, SampleMatcher, matching_functions, parents};

pub use pool::Pool;
pub(crate) use pool::counted_by;
pub use predictions::Predictions;

pub use crate::collect::{Branched, Facet, Facets, FacetsId, FacetsPool, Of, Show, TextId};
pub use crate::ids::{CommId, ThreadId};
pub use crate::perfdata::{
    Branch, CpuMode, DataSource, EventId, FieldKey, FieldValue, Ring, Trace,
};
pub use crate::session::threads::Namespace;
pub use crate::stack_end::{ByEnd, StackEnd};

numbers! {
    /// Index into [`Profile::objects`].
    pub struct ObjectId(Spare);
    /// Index into [`Profile::symbols`].
    pub struct SymbolId(Spare);
    /// Index into [`Profile::frames`].
    pub struct FrameId(Spare);
    /// Index into [`Profile::stacks`].
    pub struct StackId(Spare);
    /// Index into [`Profile::code`].
    pub struct CodeId(Spare);
    /// Index into [`Profile::strings`]: source files.
    pub struct StringId(Spare);
    /// Index into [`Profile::entries`].
    pub struct EntryId(Spare);
}

/// Lets a list of the profile be asked by its own kind of number: `profile[frame]`.
macro_rules! indexed {
    ($($id:ident, $list:ident: $item:ty;)*) => {$(
        impl std::ops::Index<$id> for Profile {
            type Output = $item;

            #[inline]
            fn index(&self, id: $id) -> &$item {
                &self.$list[id]
            }
        }
    )*};
}

indexed! {
    EventId, events: EventSummary;
    CommId, comms: String;
    ThreadId, threads: Thread;
    ObjectId, objects: Object;
    SymbolId, symbols: Symbol;
    FrameId, frames: Frame;
    StringId, strings: String;
    CodeId, code: CodeVersion;
    EntryId, entries: Entry;
}

/// Everything the views need.
#[derive(Debug, Default)]
pub struct Profile {
    /// One for each event of the recording, in file order.
    pub events: IndexVec<EventId, EventSummary>,
    /// Distinct comms.
    pub comms: IndexVec<CommId, String>,
    /// Threads by (pid, tid), a reused tid counts once per life.
    pub threads: IndexVec<ThreadId, Thread>,
    /// DSOs that samples or frames hit.
    pub objects: IndexVec<ObjectId, Object>,
    /// Symbols that samples or frames hit.
    pub symbols: IndexVec<SymbolId, Symbol>,
    /// Interned frames.
    pub frames: IndexVec<FrameId, Frame>,
    /// Interned stacks.
    pub stacks: Stacks,
    /// Source files.
    pub strings: IndexVec<StringId, String>,
    /// Fields of tracepoints that the view asked for.
    pub fields: Vec<FieldKey>,
    /// What tells entries and samples apart besides.
    pub facets: Facets,
    /// JIT code that samples or frames hit, if the view asked for it.
    pub code: IndexVec<CodeId, CodeVersion>,
    /// The table, ordered by `first`; empty if the view asked for samples.
    pub entries: IndexVec<EntryId, Entry>,
    /// Sums of the squares of periods, of entries whose samples have unequal ones, if the view asked for it.
    pub unequal: Squares,
    /// The samples in the order of their times, if the view asked for them.
    pub samples: Vec<Sample>,
    /// When the samples of entries were taken, in order, if the view asked for it: for [`Self::moments`].
    pub times: Vec<Taken>,
    /// When threads were not on a processor, in the order in which that began, if the view asked for it.
    pub waits: Vec<Wait>,
    /// Programs that processes ran before their last `exec`, where samples or frames hit them.
    pub past_programs: Vec<ObjectId>,
    /// Bytes of optimised code that V8 made for each package, the most first, if the view asked for it: run or not.
    pub optimised: Vec<(Whose, u64)>,
    /// What was counted of branches, if rows are those and not samples.
    pub branches: Option<Branched>,
    /// How well branches before samples were predicted, if the view asked for it.
    pub predictions: Predictions,
    /// Samples that say where the data of their access came from, if periods are what accesses cost.
    pub accesses: Option<u64>,
    /// Facts about the recording for headers.
    pub recording: RecordingSummary,
    /// How good the data is; printed as one `#` line.
    pub quality: Quality,
    /// The frames that stand where frames are missing; nothing where no marks were asked for.
    pub marks: ByEnd<Option<FrameId>>,
}

impl Profile {
    /// The frame at an address that a facet is.
    #[must_use]
    pub fn frame_of(&self, facets: FacetsId, facet: Facet) -> Option<FrameId> {
        let place = self.facets.place(facets, facet)?;
        Some(FrameId::from_usize(usize::try_from(place).ok()?))
    }

    /// The branches of a sample, if they were asked for, latest first, with the frames of both ends.
    pub fn branches_of(
        &self,
        facets: FacetsId,
    ) -> impl Iterator<Item = (FrameId, FrameId, Branch)> + '_ {
        let all = self.facets.branches(facets);
        let frame = |place: u32| FrameId::from_usize(usize::try_from(place).unwrap_or(usize::MAX));
        all.map(move |(from, to, flags)| {
            let (from, to) = (frame(from), frame(to));
            let branch = Branch {
                from: self[from].address,
                to: self[to].address,
                flags,
            };
            (from, to, branch)
        })
    }

    /// Whether a frame is no function but stands where frames are missing.
    #[must_use]
    pub fn is_mark(&self, frame: FrameId) -> bool {
        self.marks.0.contains(&Some(frame))
    }

    /// Whether a frame's function was inlined into its caller.
    #[must_use]
    #[inline]
    pub fn is_inlined(&self, frame: FrameId) -> bool {
        self[frame]
            .symbol
            .is_some_and(|symbol| self[symbol].inlined)
    }

    /// The frames of a sample, leaf first; without a chain there is its own frame alone.
    #[must_use]
    pub fn frames_of<'p>(&'p self, stack: StackId, leaf: &'p FrameId) -> &'p [FrameId] {
        match self.stacks.get(stack) {
            [] => std::slice::from_ref(leaf),
            frames => frames,
        }
    }
}

impl Profile {
    /// By object: whether a process ran it as its program.
    #[must_use]
    pub fn are_programs(&self) -> IndexVec<ObjectId, bool> {
        let mut are = index_vec![false; self.objects.len()];
        let last = self.threads.iter().filter_map(|thread| thread.main);
        for program in last.chain(self.past_programs.iter().copied()) {
            are[program] = true;
        }
        are
    }

    /// A place in the sources as text, `file:line`.
    #[must_use]
    pub fn line_text(&self, line: SourceLine) -> String {
        format!("{}{}", self[line.file], line.suffix())
    }
}

/// One event's totals.
#[derive(Debug, Default, Clone)]
pub struct EventSummary {
    /// As perf prints it.
    pub name: String,
    /// Number of samples, filtered by time and CPU only.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
    /// Samples that the kernel could not write.
    pub lost: u64,
    /// Those among them that filters took away; their frames are not in the table any more.
    pub filtered_samples: u64,
    /// The sum of their periods.
    pub filtered_period: u64,
    /// Leader of its group (its own index when it stands alone).
    pub leader: EventId,
    /// Name of the group, if it was given one.
    pub group_name: Option<String>,
    /// Whether its samples were recorded with call chains (or stacks to unwind).
    pub has_callchains: bool,
    /// Whether it is a tracepoint.
    pub is_tracepoint: bool,
    /// Which code it counts.
    pub ring: Ring,
    /// Whether a counter of the processor counts it, of which there are few.
    pub is_hardware: bool,
    /// Whether each time that it happened is a sample.
    pub is_whole: bool,
    /// What its periods are.
    pub unit: Unit,
    /// What its samples are, if its periods are weights that were asked for: `blocks`, `intervals`.
    pub counted: Option<&'static str>,
    /// What headers say of it besides.
    pub notes: Vec<String>,
    /// How often it was to be sampled.
    pub sampling: Sampling,
    /// What its samples hold besides.
    pub holds: Holds,
}

/// What samples of an event hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// The processor.
    pub cpu: bool,
    /// The address of data.
    pub address: bool,
    /// Where the data came from.
    pub data_source: bool,
    /// What the access cost.
    pub cost: bool,
    /// What the instruction waited.
    pub instruction_latency: bool,
    /// Branches.
    pub branches: bool,
    /// It is an event of the processor's own numbers: perf shows what its accesses were without being asked.
    pub is_raw: bool,
}

/// A thread; `comm` is its final one (perf's pid column and column widths use it).
#[derive(Debug, Clone)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Its process: the number of one life, for a pid that is used again is another process.
    pub process: u32,
    /// Comm at the end of the recording.
    pub comm: CommId,
    /// The comm of its process' first thread, by which its program is known; its own where that is in no record.
    pub program: CommId,
    /// The program that its process runs, if a sample or frame hit it: the first file it mapped executable after its last
    /// `exec`, the second where that is the dynamic loader.
    pub main: Option<ObjectId>,
    /// When it was made, in ns, if the recording tells.
    pub start: Option<u64>,
    /// When it ended, in ns, if the recording tells.
    pub end: Option<u64>,
    /// All its comms, each with the time in ns from which it had it; 0 for what it had when recording began.
    pub comms: Vec<(u64, CommId)>,
    /// Its cgroup namespaces, each with the time in ns from which it was in it, where that was recorded.
    pub cgroups: Vec<(u64, Namespace)>,
    /// Threads with samples that it stands for where several recordings are one: the number of the recording, pid and tid.
    pub lives: Vec<(u32, u32, u32)>,
}

impl Thread {
    /// Whether it is what a processor runs when there is nothing to do.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.pid == 0 && self.tid == 0
    }

    /// The processes that it is of: the number of the recording and that of the process, or its pid where several recordings are one.
    /// Ids of two recordings have nothing in common.
    pub fn processes(&self) -> impl Iterator<Item = (u32, u32)> {
        let one = self.lives.is_empty().then_some((0, self.process));
        let several = self
            .lives
            .iter()
            .map(|(recording, pid, _)| (*recording, *pid));
        one.into_iter().chain(several)
    }

    /// The cgroup namespace that it was in.
    #[must_use]
    pub fn cgroup_at(&self, time: u64) -> Option<Namespace> {
        let before = self.cgroups.partition_point(|(from, _)| *from <= time);
        let last = self.cgroups.get(before.checked_sub(1)?)?;
        Some(last.1)
    }
}

/// A DSO as views show it.
#[derive(Debug, Clone)]
pub struct Object {
    /// Base name as perf shows it: `libc.so.6`, `[kernel.kallsyms]`, `[JIT] tid 12`, `jit-12.dump`.
    pub short_name: String,
    /// Path.
    pub long_name: String,
    /// When the run came to know it, whether or not a sample had hit it then: perf orders equal branches of
    /// call trees by it.
    pub rank: u32,
    /// Whether unresolved addresses print as they are (kernel, anonymous, JIT), not as file offsets. Those in a
    /// kernel module print as their distance from its start.
    pub identity: bool,
    /// Whether it is the kernel or a module.
    pub is_kernel: bool,
    /// Whether its code was made at run time (jitdump or perf map).
    pub is_jit: bool,
    /// perf's letter for where its symbols come from, `!` for nowhere (`util/dso.c:dso__symtab_origin`).
    pub origin: char,
    /// Its build ID, if it is proven: from its records, or from the recording's table where no other file had the path.
    pub build_id: Option<BuildId>,
    /// Where it was mapped executable, in the order of the processes, if the view asked for it.
    pub ranges: Vec<MappedRange>,
}

/// Where a part of a file lay in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MappedRange {
    /// Process id.
    pub pid: u32,
    /// Its addresses.
    pub range: AvmaRange,
    /// Position in the file of the byte at its start.
    pub offset: FileOffset,
}

impl Object {
    /// Whether it stands for no code but for something that a frame says.
    #[must_use]
    pub fn is_label(&self) -> bool {
        self.rank == u32::MAX
    }
}

impl EventSummary {
    /// Whether its samples tell of time off the processors: `perf record --off-cpu` gives it periods in ns.
    #[must_use]
    pub fn is_off_cpu(&self) -> bool {
        self.counted.is_none() && plain_name(&self.name) == "offcpu-time"
    }

    /// Whether its periods are ns of CPU, not weights of another meaning.
    #[must_use]
    pub fn is_cpu_time(&self) -> bool {
        self.unit == Unit::Nanoseconds && self.counted.is_none() && !self.is_tracepoint
    }

    /// Whether samples stand for what was not recorded. Weights that were asked for are of things that were recorded one by one,
    /// but for those that clocks have.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        !self.is_whole && !self.is_off_cpu() && self.counted.is_none_or(|what| what == "samples")
    }

    /// Whether it happens while a processor runs, and as often as that is fast: it stands for CPU.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        self.is_cpu_time()
            || self.counted.is_none()
                && (self.unit == Unit::Cycles || self.is_of_cycles())
                && !self.is_tracepoint
    }

    fn is_of_cycles(&self) -> bool {
        matches!(plain_name(&self.name), "cycles" | "ref-cycles")
    }

    /// Whether it is a clock or cycles, of which each sample weighs one.
    fn ticks(&self) -> bool {
        self.counted == Some("samples")
            && !self.is_tracepoint
            && (is_clock(&self.name) || self.is_of_cycles())
    }
}

impl From<Derived> for EventSummary {
    fn from(event: Derived) -> Self {
        Self {
            name: event.name,
            has_callchains: event.has_callchains,
            unit: event.unit,
            counted: Some(event.counted),
            notes: event.lines,
            ..Self::default()
        }
    }
}

impl Entry {
    /// Sum of the squares of its samples' periods, if these are equal.
    #[must_use]
    pub fn equal_squares(&self) -> f64 {
        let sum = self.period as f64;
        sum * sum / self.samples.max(1) as f64
    }
}

impl Profile {
    /// Samples that the kernel could not write: those of an event, or what all that was made into a weight lacks.
    #[must_use]
    pub fn lost_of(&self, event: EventId) -> u64 {
        let event = self.events.get(event);
        match event.filter(|event| event.counted.is_none()) {
            Some(event) => event.lost,
            None => self.recording.lost,
        }
    }

    /// The event that stands for the program: a clock or cycles, else the one with most samples; of equals the first. Time off the
    /// processors is the answer only where nothing else was sampled.
    #[must_use]
    pub fn main_event(&self) -> EventId {
        let events = self.events.iter_enumerated();
        let key = |(at, event): &(EventId, &EventSummary)| {
            let is_on_cpu = event.samples > 0 && !event.is_off_cpu();
            let is_cpu = is_on_cpu && (event.is_cpu() || event.ticks());
            (is_on_cpu, is_cpu, event.samples, Reverse(*at))
        };
        let most = events.max_by_key(key);
        most.map_or(EventId::default(), |(at, _)| at)
    }

    /// Sum of the squares of an entry's periods.
    #[must_use]
    pub fn squares_of(&self, entry: &Entry) -> f64 {
        let known = self.unequal.get(&(entry.first, entry.event));
        known.copied().unwrap_or_else(|| entry.equal_squares())
    }

    /// The entries, and the samples where the view asked for those.
    pub fn portions(&self) -> impl Iterator<Item = Portion> {
        let entries = self.entries.iter().map(|entry| Portion {
            event: entry.event,
            state: entry.state,
            comm: entry.comm,
            thread: entry.thread,
            leaf: entry.leaf,
            stack: entry.stack,
            period: entry.period,
            samples: entry.samples,
            time: entry.time,
        });
        let samples = self.samples.iter().map(|sample| Portion {
            event: sample.event,
            state: sample.state,
            comm: sample.comm,
            thread: sample.thread,
            leaf: sample.leaf,
            stack: sample.stack,
            period: sample.period,
            samples: 1,
            time: sample.time.unwrap_or(0),
        });
        entries.chain(samples)
    }

    /// All samples that have a time, each with the place of what it is part of among [`Self::portions`]: in the order of their
    /// times, but for entries that have one time of their own.
    pub fn moments(&self) -> impl Iterator<Item = Moment> {
        let mut portion_of: Vec<u32> = Vec::new();
        if !self.times.is_empty() {
            let last = self.entries.iter().map(|entry| entry.first).max();
            portion_of = vec![u32::MAX; last.map_or(0, |last| last as usize + 1)];
            for (number, entry) in (0..).zip(&self.entries) {
                portion_of[entry.first as usize] = number;
            }
        }
        let listed = self.times.iter().filter_map(move |taken| {
            // What filters took away is in no entry any more.
            let portion = *portion_of.get(taken.row as usize)?;
            (portion != u32::MAX).then_some(Moment {
                time: taken.time,
                period: taken.period,
                samples: 1,
                portion: portion as usize,
            })
        });
        let own = self.portions().enumerate();
        let own = own
            .filter(|(_, of)| of.time > 0)
            .map(|(portion, of)| Moment {
                time: of.time,
                period: of.period,
                samples: of.samples,
                portion,
            });
        listed.chain(own)
    }

    /// Leaves out frames that stacks begin with.
    pub fn trim(&mut self, trim: Trim) {
        trim::trim(self, trim);
    }
}

/// A symbol of one object.
#[derive(Debug, Clone)]
pub struct Symbol {
    /// Where it lives.
    pub object: ObjectId,
    /// Demangled name, raw (not yet made safe for the terminal).
    pub name: String,
    /// Start in its object's space: where it stands in the file. Objects that are no file (kernel, code made at run time,
    /// names of perf maps) count as files of the whole address space.
    pub start: FileOffset,
    /// End, exclusive as perf counts it.
    pub end: FileOffset,
    /// STT_OBJECT: rows print `name+0xOFF`.
    pub is_data: bool,
    /// Whether its file spells it as compilers of C++ do.
    pub is_cpp: bool,
    /// Came from DWARF inline information.
    pub inlined: bool,
    /// Who generated it, if it is code made at run time.
    pub producer: Option<Producer>,
    /// Whose code it is by its source file.
    pub origin: Origin,
    /// The crate or module that has it, where its name leaves that open: told where the view asked whose code functions are.
    pub package: Option<Arc<str>>,
    /// Parameters, where the view asked whose code functions are and others of the object have the same name.
    pub parameters: Option<Box<str>>,
    /// Where it is defined, in the same case.
    pub place: Option<Box<Place>>,
    /// Whether debug information tells of it, where inlined functions or lines were asked for.
    pub is_described: bool,
    /// What else its code is called in its file, where the view asked for that.
    pub others: Option<Box<Others>>,
    /// As the runtime or the file named it, where [`Symbol::name`] is the author's.
    pub recorded: Option<Box<Recorded>>,
}

/// A function that is shown by its author's name: of a script that has a source map, or of a compiler that spells names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The name in the recording.
    pub name: String,
    /// Whether the word in [`Symbol::name`] is still the runtime's: the original has none at hand. Another build may have that word
    /// for another function.
    pub is_word: bool,
}

impl Symbol {
    /// The crate of a function of Rust, by its name and what is known beside.
    #[must_use]
    pub fn crate_of(&self) -> Option<&str> {
        self.package.as_deref().or_else(|| crate_of(&self.name))
    }

    /// Another function whose code it is, too: nothing tells which of them ran.
    #[must_use]
    pub fn folded_with(&self) -> Option<&str> {
        let others = self.others.as_ref().filter(|_| !self.inlined)?;
        others.folded.as_deref()
    }

    /// As the recording has it.
    #[must_use]
    pub fn recorded_name(&self) -> &str {
        let recorded = self.recorded.as_ref();
        recorded.map_or(&self.name, |recorded| &recorded.name)
    }

    /// How a text that was typed fits it, by all that is known of it.
    #[must_use]
    pub fn fit(
        &self,
        query: &Query,
        clean: &CleanName,
        (folder, printed): (&str, &[&str]),
    ) -> Option<Fit> {
        let order = self.place.as_deref().map(Place::order).unwrap_or_default();
        let more = More {
            folder: Some(folder),
            printed,
            ..more(self.parameters.as_deref(), self.place.as_deref(), &order)
        };
        query.fit(&self.name, clean, &more)
    }
}

/// What is known of a function besides its name, with [`Place::order`].
#[must_use]
pub fn more<'n>(parameters: Option<&'n str>, place: Option<&'n Place>, order: &'n str) -> More<'n> {
    More {
        parameters,
        place: place.map(|place| (place.file.as_str(), place.line)),
        order: Some(order),
        ..More::default()
    }
}

pub use crate::symbolize::{Mark, Origin, Others, Place};

/// One logical frame. With key `function`, frames of one symbol are one frame and `address` is that of
/// the first appearance; unresolved frames, and all frames when addresses are needed, are kept apart by address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Where the address is mapped; `None` prints `[unknown]`.
    pub object: Option<ObjectId>,
    /// Resolved symbol.
    pub symbol: Option<SymbolId>,
    /// Absolute address (a return address minus one for unwound callers).
    pub address: Avma,
    /// The same in the object's space, as [`Symbol::start`]: what perf prints for unresolved leaf rows. In a kernel module
    /// without a symbol there the distance from its start.
    pub object_address: FileOffset,
    /// Mode in which it ran.
    pub mode: CpuMode,
    /// Its place in the sources, only when the view asked for lines.
    pub line: Option<SourceLine>,
    /// Which version of the function, for JIT code if the view asked for it.
    pub code: Option<CodeId>,
}

impl Frame {
    /// How far behind the beginning of its function it stands, in bytes.
    #[must_use]
    pub const fn offset_in(&self, symbol: &Symbol) -> u64 {
        self.object_address.since(symbol.start)
    }

    /// Where its function lies in the process.
    #[must_use]
    pub const fn address_of(&self, symbol: &Symbol) -> Avma {
        Avma(self.address.0.wrapping_sub(self.offset_in(symbol)))
    }
}

/// A place in the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// Path of the file as the compiler or the runtime named it.
    pub file: StringId,
    /// Line from 1; 0 for code that belongs to none.
    pub line: u32,
    /// Column from 1; 0 when it is not told.
    pub column: u32,
    /// The code itself has no line: it is that of the code before it, and the code behind has another (WebAssembly).
    pub near: bool,
}

impl SourceLine {
    /// As `line`: the file's text tells the place alone (`app.wasm+0xb24`).
    pub const NO_LINE: u32 = crate::symbolize::SourceLine::NO_LINE;

    /// What stands behind the file: `:25`.
    #[must_use]
    pub fn suffix(&self) -> String {
        match self.line {
            Self::NO_LINE => String::new(),
            line => format!(":{line}"),
        }
    }
}

/// A function as a runtime compiled it once: what it compiles again, at another tier or address, is another version.
#[derive(Debug, Clone)]
pub struct CodeVersion {
    /// The function; versions of one name share it.
    pub symbol: SymbolId,
    /// The dump or perf map.
    pub object: ObjectId,
    /// Process that the dump or map belongs to.
    pub pid: u32,
    /// Where it was loaded.
    pub start: Avma,
    /// Its size in bytes, of which `bytes` may have fewer.
    pub size: u64,
    /// Its instructions as they were dumped; none for perf maps.
    pub bytes: Box<[u8]>,
    /// Its source lines by rising offset: each holds from its offset to the next.
    pub lines: Vec<(CodeOffset, SourceLine)>,
    /// When it was loaded, in ns; 0 for perf maps, which know no times.
    pub from: u64,
    /// When other code took its place, in ns.
    pub to: Option<u64>,
}

/// Interned stacks: runs of frames, leaf first, inlined frames expanded (innermost first).
#[derive(Debug, Default)]
pub struct Stacks(Sequences<StackId, FrameId, StackEnd>);

impl Stacks {
    /// Frames of a stack, leaf first.
    #[must_use]
    #[inline]
    pub fn get(&self, id: StackId) -> &[FrameId] {
        self.0.get(id)
    }

    /// Why the stack ended.
    #[must_use]
    pub fn end(&self, id: StackId) -> StackEnd {
        self.0.tag(id)
    }

    /// Room for so many frames of all stacks.
    #[must_use]
    pub fn with_capacity(frames: usize) -> Self {
        Self(Sequences::with_capacity(frames))
    }

    /// Number of stacks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a stack; interning is the builder's business.
    pub fn push(&mut self, frames: &[FrameId], end: StackEnd) -> StackId {
        self.0.push(frames, end)
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What was counted.
    pub event: EventId,
    /// What the thread was doing, where the weight tells.
    pub state: RunState,
    /// Comm at the time of the sample.
    pub comm: CommId,
    /// Thread.
    pub thread: ThreadId,
    /// The sample's own ip, resolved without inlines.
    pub leaf: FrameId,
    /// Its call chain; empty stack when there is none.
    pub stack: StackId,
    /// The facets that the view asked for, see [`Profile::facets`].
    pub facets: FacetsId,
    /// Sample time quantised as the view asked, 0 otherwise.
    pub time: u64,
    /// Sum of periods.
    pub period: u64,
    /// Number of samples.
    pub samples: u64,
    /// Rank in time order of the first sample.
    pub first: u64,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it was taken, in ns, if that was recorded.
    pub time: Option<u64>,
    /// Where, if that was recorded.
    pub cpu: Option<u32>,
    /// What was counted.
    pub event: EventId,
    /// What the thread was doing, where the weight tells.
    pub state: RunState,
    /// Comm at that time.
    pub comm: CommId,
    /// Thread.
    pub thread: ThreadId,
    /// Its own ip, resolved without inlines.
    pub leaf: FrameId,
    /// Its call chain; empty stack when there is none.
    pub stack: StackId,
    /// Its weight in the event's unit.
    pub period: u64,
    /// The address of the data (or what the event defines it to be), if it was recorded.
    pub address: Option<u64>,
    /// The facets that the view asked for, see [`Profile::facets`].
    pub facets: FacetsId,
}

/// What a stack of a thread weighs: an entry, or a sample where the view asked for those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// What was counted.
    pub event: EventId,
    /// What the thread was doing, where the weight tells.
    pub state: RunState,
    /// Comm at the time.
    pub comm: CommId,
    /// Thread.
    pub thread: ThreadId,
    /// The sample's own ip, resolved without inlines.
    pub leaf: FrameId,
    /// Its call chain; empty stack when there is none.
    pub stack: StackId,
    /// Sum of periods.
    pub period: u64,
    /// Number of samples.
    pub samples: u64,
    /// When, in ns; 0 where that is not known, or not one time.
    pub time: u64,
}

/// When a sample of an entry was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// In ns.
    pub time: u64,
    /// Its weight in the event's unit.
    pub period: u64,
    /// [`Entry::first`] of its entry, by which that is known whatever becomes of others.
    pub row: u32,
}

/// Samples of one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// In ns.
    pub time: u64,
    /// Their weight in the event's unit.
    pub period: u64,
    /// How many they are.
    pub samples: u64,
    /// Place of what they are part of among [`Profile::portions`].
    pub portion: usize,
}

/// A time in which a thread was not on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Which thread.
    pub thread: ThreadId,
    /// From when, in ns: the time of the sample of the switch, if there is one.
    pub from: u64,
    /// Until when; nothing if the recording ended before.
    pub to: Option<u64>,
    /// `to` is a bound: the thread's next switch away. It ran before that, and nothing tells since when.
    pub is_bound: bool,
    /// Why.
    pub state: RunState,
}

impl From<Interval> for Wait {
    fn from(interval: Interval) -> Self {
        Self {
            thread: interval.thread,
            from: interval.from,
            to: (interval.evidence != Evidence::Open).then_some(interval.to),
            is_bound: interval.evidence == Evidence::Bound,
            state: interval.state,
        }
    }
}

/// How often an event was to be sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// It is not told, as for weights that were made.
    #[default]
    Unknown,
    /// Once in so much of it.
    Every(u64),
    /// So many times a second.
    PerSecond(u64),
}

/// Facts about the recording that headers print.
#[derive(Debug, Default, Clone)]
pub struct RecordingSummary {
    /// Path as given.
    pub path: String,
    /// The recordings that it is made of: itself, or several that became one.
    pub parts: Vec<Part>,
    /// Sum of LOST_SAMPLES counts (`# Total Lost Samples`).
    pub lost_samples: u64,
    /// Samples that the kernel could not write, as far as any record tells.
    pub lost: u64,
    /// Processors that the idle task was met on, if the recording tells.
    pub idle_cpus: usize,
    /// When LOST records were written, which is behind what they tell of, in ns and in order; of very many the first.
    pub lost_at: Vec<u64>,
    /// Number of LOST records ("chunks") and of all records, for perf's warning.
    pub lost_chunks: u64,
    /// All records read.
    pub records: u64,
    /// Lines of the `--header` block as perf prints them, frame included.
    pub header: Vec<String>,
    /// First and last sample time in ns.
    pub time_range: Option<(u64, u64)>,
    /// How much of its time was chosen, in ns; nothing if nobody chose.
    pub chosen_ns: Option<u64>,
    /// Time of the first sample that was there, in ns, also where `--time` left it out.
    pub begin: Option<u64>,
    /// What was chosen of its time, if that is to be said.
    pub chosen: Option<String>,
    /// One moment in ns since 1970 and on the clock of the samples.
    pub wall_clock: Option<(u64, u64)>,
    /// Socket of each CPU, if the recording tells.
    pub sockets: Vec<i32>,
    /// Counters of the tasks that ended: pid, tid, index of the event, count.
    pub counters: Vec<(u32, u32, usize, u64)>,
    /// The command that recorded, as its words.
    pub command: Vec<String>,
    /// Switches away from threads, if they were recorded (`--switch-events`).
    pub switches: u64,
    /// Whether records tell when threads lose and get processors.
    pub tells_switches: bool,
    /// It is one of `perf stat record`.
    pub holds_totals: bool,
    /// What the processor traced, if anything.
    pub trace: Option<Trace>,
    /// Whether samples have branch stacks that are no call stacks.
    pub has_branches: bool,
    /// By what slices of one recording (`perf record --switch-output`) are known: its host, its command and the kernel's ids of
    /// its counters, which no other recording of that boot has. Nothing without ids.
    pub series: Option<u64>,
    /// Whether the recorder was killed: what came then is missing, and nothing tells how much.
    pub is_unfinished: bool,
    /// How the recorded command ended, where `pjit record` tells.
    pub status: Option<u8>,
    /// Nanoseconds of CPU that it and its children used, in programs and in the kernel, where that is known and all of it is shown.
    pub used: Option<[u64; 2]>,
    /// The words of that command, where `pjit record` tells.
    pub asked: Vec<String>,
    /// By what its records are known again, if the view asked for it.
    pub digest: Option<[u8; 32]>,
}

impl RecordingSummary {
    /// How long it is in ns: the times that were chosen, else from the first sample to the last.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        let whole = self
            .time_range
            .map(|(first, last)| last.saturating_sub(first));
        whole.map(|whole| self.chosen_ns.unwrap_or(whole))
    }

    /// What a line of the header says, such as `arch` or `os release`.
    #[must_use]
    pub fn told(&self, field: &str) -> Option<&str> {
        let mut values = self.header.iter().filter_map(|line| {
            let (name, value) = line.strip_prefix("# ")?.split_once(" : ")?;
            (name.trim() == field).then(|| value.trim())
        });
        values.next()
    }

    /// The recorded command. Where `pjit record` does not tell, it is that of perf itself.
    #[must_use]
    pub fn command(&self) -> Option<String> {
        if self.asked.is_empty() {
            return self.told("cmdline").map(str::to_owned);
        }
        Some(self.asked.join(" "))
    }

    /// The socket of a CPU, -1 if it is not known.
    #[must_use]
    pub fn socket(&self, cpu: i32) -> i32 {
        let place = usize::try_from(cpu).ok();
        place
            .and_then(|at| self.sockets.get(at))
            .copied()
            .unwrap_or(-1)
    }
}

/// One of the recordings that a profile is made of.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Part {
    /// Path as given.
    pub path: String,
    /// The end of it that tells it from the others.
    pub name: String,
    /// The host that it was recorded on, if the recording tells.
    pub host: String,
    /// Kind of its processors, as `uname -m` has it, if the recording tells.
    pub arch: String,
    /// Its samples.
    pub samples: u64,
    /// Share of its unwound stacks that reach their beginning; nothing where none were unwound.
    pub whole: Option<f64>,
}

/// How far a profile can be trusted: what the quality line says.
#[derive(Debug, Default, Clone)]
pub struct Quality {
    /// What is known of the samples of each event. Of several events that of the shown one counts: a tracepoint, all of whose samples
    /// lie in one named function, says nothing of the names in a program.
    pub events: IndexVec<EventId, EventQuality>,
    /// One text per merged dump: name, loads, clock relation.
    pub dumps: Vec<String>,
    /// Probable share of wrong ones among the stacks that were completed from others.
    pub stitch_error: f64,
    /// Where kernel symbols came from, or what is missing.
    pub kernel: String,
    /// What was paired, left out or guessed for the weights.
    pub weights: Vec<String>,
}

/// How well the samples of an event are known.
#[derive(Debug, Default, Clone)]
pub struct EventQuality {
    /// Its samples.
    pub samples: u64,
    /// Those whose leaf has no symbol.
    pub unresolved_samples: u64,
    /// Those whose leaf has the last of several names that a perf map gives to its address, one after another: maps have no times.
    pub doubtful_samples: u64,
    /// Periods by the reason for the end of the stack.
    pub periods: ByEnd<u64>,
    /// Samples by the same.
    pub ends: ByEnd<u64>,
}

impl EventQuality {
    fn add(&mut self, other: &Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.unresolved_samples += other.unresolved_samples;
        self.doubtful_samples += other.doubtful_samples;
        for (sum, more) in [
            (&mut self.periods, &other.periods),
            (&mut self.ends, &other.ends),
        ] {
            for (total, added) in sum.0.iter_mut().zip(&more.0) {
                *total = total.saturating_add(*added);
            }
        }
    }
}

/// How well samples of an event, or of all, are known.
#[derive(Debug, Default, Clone)]
pub struct Figures {
    /// All samples.
    pub samples: u64,
    /// Those whose leaf has no symbol.
    pub unresolved_samples: u64,
    /// Those whose leaf has a doubtful name.
    pub doubtful_samples: u64,
    /// Period by reason for the end of the stack; of several events the number of samples, for their periods do not add up.
    pub stack_ends: ByEnd<u64>,
}

/// Stacks by how they were found, in the unit of [`Figures::stack_ends`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Those that the kernel or the processor recorded.
    pub recorded: u64,
    /// Those that were unwound, and those of them that reach their beginning.
    pub walked: u64,
    /// All that reach their beginning.
    pub complete: u64,
    /// Those of which nothing was recorded.
    pub missing: u64,
}

impl Quality {
    /// How well the samples of an event are known, or without one those of all events.
    #[must_use]
    pub fn figures(&self, event: Option<EventId>) -> Figures {
        let of = self.events.iter_enumerated();
        let of = of.filter(|(at, of)| event.is_none_or(|event| event == *at) && of.samples > 0);
        let mut sum = EventQuality::default();
        let mut count = 0;
        for (_, quality) in of {
            sum.add(quality);
            count += 1;
        }
        let EventQuality {
            samples,
            unresolved_samples,
            doubtful_samples,
            periods,
            ends,
        } = sum;
        Figures {
            samples,
            unresolved_samples,
            doubtful_samples,
            stack_ends: if count > 1 { ends } else { periods },
        }
    }

    /// Number of samples of all events.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.events.iter().map(|of| of.samples).sum()
    }
}

impl Figures {
    /// How many stacks were unwound, and how many of these are whole.
    #[must_use]
    pub fn walked(&self) -> Walked {
        let ends = &self.stack_ends;
        let sum = |is: &dyn Fn(&StackEnd) -> bool| {
            let of = StackEnd::ALL.into_iter().filter(is);
            of.map(|end| ends[end]).fold(0, u64::wrapping_add)
        };
        let recorded = sum(&|end| end.is_recorded());
        let walked = sum(&|end| *end != StackEnd::NotRecorded && !end.is_recorded());
        // Stacks of the kernel are whole however the others were made, and say nothing of these.
        let is_of_kernel = recorded > 0 && walked == ends[StackEnd::KernelOnly];
        Walked {
            recorded,
            walked: if is_of_kernel { 0 } else { walked },
            complete: sum(&|end| end.is_complete()),
            missing: ends[StackEnd::NotRecorded],
        }
    }

    /// The weight of stacks that were completed from other samples.
    #[must_use]
    pub fn stitched(&self) -> u64 {
        let ends = &self.stack_ends;
        ends[StackEnd::Stitched].saturating_add(ends[StackEnd::StitchedFiber])
    }

    /// Reasons for which stacks ended, with their share of the period in per cent, without those of no weight.
    pub fn ends(&self) -> impl Iterator<Item = (StackEnd, f64)> + '_ {
        let total = self.stack_ends.total();
        StackEnd::ALL
            .into_iter()
            .zip(self.stack_ends.0)
            .filter(|&(_, period)| period > 0)
            .map(move |(end, period)| (end, 100.0 * period as f64 / total as f64))
    }
}
