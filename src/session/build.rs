//! From delivered records to a [`Session`]: the one place where records change state.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::{Avma, AvmaRange, FileOffset, Timestamp};
use crate::diagnostics::Diagnostics;
use crate::dso::{DsoId, DsoKind, DsoTable, KernelReference, MappedPart, VDSO_32};
use crate::find::{is_temporary_dump, perf_map_path};
use crate::ids::{IndexSlice, IndexVec, ThreadId, index_vec};
use crate::input::Window;
use crate::perfdata::attr::read_format;
use crate::perfdata::{CpuMode, Delivered, EventId, Mmap, Record, Recording, SampleHead};
use crate::run_state::RunState;

use super::frame_sizes::FrameSizes;
use super::kernel_maps::KernelMaps;
use super::maps::{MapTable, Mapping};
use super::marks::{Asked, Mark, Moment};
use super::returns::{Returns, TRAMPOLINES};
use super::running::Running;
use super::threads::Threads;
use super::{Label, SampleId, SampleRef, Samples, Session, Space, SpaceId, TaskCounter};
use crate::jit::{JitBuilder, ProcessId};

/// Whether a mapping's name is that of a file, and not of the dynamic loader, which runs before all programs.
fn is_program(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let loader =
        name.starts_with(b"ld-") || name.starts_with(b"ld.so") || name.starts_with(b"ld64");
    path.starts_with(b"/") && !path.starts_with(b"//") && !loader
}

/// CPUs of a machine that is not described, as perf assumes.
const MOST_CPUS: u32 = 4096;
/// Moments of one kind that are kept of a recording at most.
const MOST_TOLD: usize = 1 << 20;

/// Place of the cgroup namespace among those of a record (`CGROUP_NS_INDEX`).
const CGROUP_NAMESPACE: usize = 6;

/// `MAP_SHARED` (`include/uapi/linux/mman.h`).
const MAP_SHARED: u32 = 1;
/// The process of which threads of the kernel are children.
const KTHREADD: u32 = 2;

/// Name of the kernel's mapping, in front of its reference symbol.
const KERNEL_NAME: &[u8] = b"[kernel.kallsyms]";

/// Which samples to keep at all; what is dropped here counts nowhere.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Half-open ranges of time in ns; empty: all.
    pub times: Vec<(u64, u64)>,
    /// CPUs; empty: all.
    pub cpus: Vec<u32>,
    /// Which events begin and end what is kept.
    pub switch: Switch,
}

/// Events that begin and end what is kept, for all threads together, as in perf (`util/evswitch.c`). They themselves are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switch {
    /// Nothing is kept before this one, and behind the other one until it comes again.
    pub on: Option<EventId>,
    /// What ends it. Without the first it leaves out its first sample and nothing else.
    pub off: Option<EventId>,
    /// Both are kept, too.
    pub shows: bool,
    /// Those on CPUs that are not kept count, as in perf's report, but not in its script.
    pub of_any_cpu: bool,
}

impl Switch {
    /// Whether a sample is kept; `is_off` is whether those before it were not.
    fn keeps(self, event: EventId, is_off: &mut bool) -> bool {
        if *is_off && self.on.is_some() {
            *is_off = self.on != Some(event);
            return !*is_off && self.shows;
        }
        if *is_off || self.off != Some(event) {
            return true;
        }
        *is_off = true;
        self.shows
    }
}

impl Filter {
    /// Whether samples may be left out.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        let is_switched = self.switch.on.is_some() || self.switch.off.is_some();
        !self.times.is_empty() || !self.cpus.is_empty() || is_switched
    }

    /// Whether nothing is left out.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        self.times.is_empty() && self.cpus.is_empty() && self.switch == Switch::default()
    }

    fn keeps(&self, t: u64, cpu: Option<u32>, event: EventId, is_off: &mut bool) -> bool {
        let is_on_cpu = self.keeps_cpu(cpu);
        let may_switch = self.keeps_time(t) && (is_on_cpu || self.switch.of_any_cpu);
        may_switch && self.switch.keeps(event, is_off) && is_on_cpu
    }

    /// Whether samples of this time and CPU are kept.
    #[must_use]
    pub fn keeps_at(&self, t: u64, cpu: Option<u32>) -> bool {
        self.keeps_time(t) && self.keeps_cpu(cpu)
    }

    fn keeps_time(&self, t: u64) -> bool {
        self.times.is_empty() || self.times.iter().any(|&(from, to)| from <= t && t <= to)
    }

    /// Whether samples of this CPU are kept.
    #[must_use]
    pub fn keeps_cpu(&self, cpu: Option<u32>) -> bool {
        self.cpus.is_empty() || cpu.is_some_and(|cpu| self.cpus.contains(&cpu))
    }
}

impl<'a> Session<'a> {
    /// Walks the recording once and builds the history. `kernel_hit` is called when the first kernel
    /// address turns up, and perhaps again. `window` is told where the walk is, and its scout maps pages ahead of it.
    pub fn index(
        recording: &Recording<'a>,
        window: &Window<'_>,
        table: DsoTable<'a>,
        dumps: JitBuilder<'a>,
        asked: &Asked,
        diag: &Diagnostics,
        kernel_hit: &mut dyn FnMut(),
    ) -> (Self, Samples) {
        let mut builder = Builder::new(table, dumps, asked, recording.events.len());
        diag.begin("reading", recording.region().len() as u64);
        let mut counters = Vec::new();
        let mut take = |delivered: Delivered<'_>| {
            if let Delivered::Sample(head) = &delivered
                && head.cpumode == CpuMode::Kernel
            {
                kernel_hit();
            }
            if let Delivered::Record {
                record: Record::Read { pid, tid, values },
                ..
            } = &delivered
            {
                counters.extend(task_counter(recording, *pid, *tid, values));
            }
            builder.take(delivered);
        };
        let stats = std::thread::scope(|scope| {
            if window.is_scouted() {
                scope.spawn(|| window.scout());
            }
            let mut reached = 0;
            let mut walked = |offset: usize| {
                diag.advance(offset.saturating_sub(reached) as u64);
                reached = offset;
                window.reached(offset);
            };
            let stats = recording.deliver(diag, &mut walked, &mut take);
            window.end();
            stats
        });
        let Builder {
            samples,
            mut dsos,
            mut jit,
            threads,
            rowless,
            deferred,
            cgroups,
            spaces,
            kernel,
            current,
            execs,
            programs,
            past_programs,
            marks,
            losses,
            lost_at,
            born,
            seen,
            switches,
            running,
            has_return_probes,
            has_copied_code,
            left_out,
            ..
        } = builder;
        let guests: u64 = rowless.iter().map(|(count, _)| *count).sum();
        if guests > 0 {
            let all = guests + samples.len() as u64;
            diag.warn(format!(
                "{guests} of {all} samples are of guests, whose code the recording does not tell: they are left out of all but totals"
            ));
        }
        let last = current
            .into_iter()
            .map(|(process, current)| (process, current.maps))
            .collect();
        dsos.settle();
        if let Some(seen) = seen {
            dsos.tell_times(seen);
        }
        let ended = threads.ended();
        ended.into_iter().for_each(|(of, time)| jit.ended(of, time));
        let mut jit = jit.finish(threads.processes(), diag);
        let ran = samples.iter().filter(|sample| sample.mode == CpuMode::User);
        let ran = ran.map(|sample| (spaces[sample.space].process, sample.ip));
        let left_out = left_out.in_order(threads.processes());
        jit.prove_twins(dsos.arch(), ran, left_out, diag);
        let jit_dsos = jit
            .objects()
            .iter()
            .map(|object| dsos.intern(object.path(), DsoKind::JitDump, None, None))
            .collect();
        let (lives, processes) = (threads.lives().to_vec(), threads.processes().to_vec());
        let session = Self {
            dsos,
            jit,
            comms: threads.comms.into_names(),
            threads: lives,
            stats,
            counters,
            deferred,
            cgroups,
            execs,
            marks,
            losses,
            lost_at,
            born,
            seen,
            switches,
            parallelism: running.finish(recording.features.nr_cpus_avail.unwrap_or(MOST_CPUS)),
            has_return_probes,
            has_copied_code,
            returns: Returns::default(),
            frame_sizes: FrameSizes::default(),
            spaces,
            processes,
            last,
            kernel,
            programs,
            past_programs,
            jit_dsos,
        };
        let samples = Samples {
            all: samples,
            rowless,
            labels: Vec::new(),
        };
        (session, samples)
    }

    /// The history, with what return probes replaced.
    #[must_use]
    pub fn with_returns(self, returns: Returns) -> Self {
        Self { returns, ..self }
    }

    /// The history, with what stacks tell of the sizes of frames.
    #[must_use]
    pub fn with_frame_sizes(self, frame_sizes: FrameSizes) -> Self {
        Self {
            frame_sizes,
            ..self
        }
    }
}

/// The counter in a READ record; its event by id where the record has one, else the first. Groups are not read.
fn task_counter(
    recording: &Recording<'_>,
    pid: u32,
    tid: u32,
    values: &[u8],
) -> Option<TaskCounter> {
    let format = recording.events.first()?.attr.read_format;
    let has = |bit: u64| format & bit != 0;
    if has(read_format::GROUP) {
        return None;
    }
    let word = |index: usize| {
        let bytes = values.get(8 * index..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    };
    let times = [
        read_format::TOTAL_TIME_ENABLED,
        read_format::TOTAL_TIME_RUNNING,
    ];
    let id_at = 1 + times.into_iter().filter(|bit| has(*bit)).count();
    let id = if has(read_format::ID) {
        word(id_at)
    } else {
        None
    };
    let event = recording
        .events
        .iter()
        .position(|event| id.is_some_and(|id| event.ids.contains(&id)));
    let event = EventId(u16::try_from(event.unwrap_or(0)).ok()?);
    Some(TaskCounter {
        pid,
        tid,
        event,
        value: word(0)?,
    })
}

/// The mappings of a process, and the snapshot that samples are given until they change.
#[derive(Default)]
struct Current {
    maps: MapTable,
    snapshot: Option<SpaceId>,
}

struct Builder<'a, 'f> {
    samples: IndexVec<SampleId, SampleRef>,
    dsos: DsoTable<'a>,
    jit: JitBuilder<'a>,
    threads: Threads,
    rowless: IndexVec<EventId, (u64, u64)>,
    deferred: FxHashMap<u64, Box<[u64]>>,
    cgroups: FxHashMap<u64, String>,
    spaces: IndexVec<SpaceId, Space>,
    kernel: KernelMaps,
    current: FxHashMap<ProcessId, Current>,
    execs: FxHashMap<ProcessId, Vec<Timestamp>>,
    /// The program of each process: the first file it mapped executable that is no dynamic loader.
    programs: FxHashMap<ProcessId, DsoId>,
    /// Programs that processes ran before others.
    past_programs: FxHashSet<DsoId>,
    asked: &'f Asked,
    marks: Vec<Mark>,
    losses: Vec<SampleId>,
    lost_at: Vec<Timestamp>,
    born: Vec<ThreadId>,
    seen: Option<(u64, u64)>,
    switches: u64,
    running: Running,
    has_return_probes: bool,
    has_copied_code: bool,
    hits: Hits,
    left_out: LeftOut,
    /// Whether an event that begins what is kept is waited for.
    is_off: bool,
}

/// Where samples lay that are not asked for: they tell as much about the code there as the others.
#[derive(Default)]
struct LeftOut {
    /// By process id.
    pages: FxHashSet<(u32, u64)>,
}

impl LeftOut {
    const PAGE_BITS: u32 = 12;
    /// So many pages are remembered.
    const MOST: usize = 1 << 18;

    fn add(&mut self, head: &SampleHead) {
        if head.cpumode == CpuMode::User && self.pages.len() < Self::MOST {
            self.pages.insert((head.pid, head.ip.0 >> Self::PAGE_BITS));
        }
    }

    /// The pages, of every life of a process id.
    fn in_order(
        &self,
        pids: &IndexSlice<ProcessId, [u32]>,
    ) -> impl Iterator<Item = (ProcessId, AvmaRange)> {
        let mut pages: Vec<_> = self.pages.iter().copied().collect();
        pages.sort_unstable();
        let of_pid = move |(process, &pid): (ProcessId, &u32)| {
            let first = pages.partition_point(|page| page.0 < pid);
            let own = pages[first..].iter().take_while(move |page| page.0 == pid);
            let range = |&(_, page): &(u32, u64)| {
                AvmaRange::new(Avma(page << Self::PAGE_BITS), 1 << Self::PAGE_BITS)
            };
            let own: Vec<_> = own.map(|page| (process, range(page))).collect();
            own
        };
        pids.iter_enumerated().flat_map(of_pid)
    }
}

/// Addresses that samples hit lately, and how many that lie in no file may still be looked up.
struct Hits {
    recent: Vec<(SpaceId, Avma)>,
    left: u32,
    /// Where the last one was that was looked up.
    last: Option<(SpaceId, Mapping)>,
}

impl Default for Hits {
    fn default() -> Self {
        Self {
            recent: vec![(SpaceId(u32::MAX), Avma(0)); Self::SLOTS],
            left: 4096,
            last: None,
        }
    }
}

impl Hits {
    const SLOTS: usize = 4096;

    /// Whether it is worth a look what is mapped there. Which of two symbols that overlap is hit is a matter of bytes,
    /// so pages will not do.
    fn is_new(&mut self, space: SpaceId, at: Avma) -> bool {
        let mixed = at.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let slot = &mut self.recent[mixed as usize % Self::SLOTS];
        self.left > 0 && std::mem::replace(slot, (space, at)) != (space, at)
    }
}

impl<'a, 'f> Builder<'a, 'f> {
    fn new(dsos: DsoTable<'a>, jit: JitBuilder<'a>, asked: &'f Asked, events: usize) -> Self {
        let mut threads = Threads::default();
        threads.find_or_make(0, 0);
        Self {
            samples: IndexVec::new(),
            dsos,
            jit,
            threads,
            rowless: index_vec![(0, 0); events],
            deferred: FxHashMap::default(),
            cgroups: FxHashMap::default(),
            execs: FxHashMap::default(),
            spaces: IndexVec::new(),
            kernel: KernelMaps::default(),
            current: FxHashMap::default(),
            programs: FxHashMap::default(),
            past_programs: FxHashSet::default(),
            asked,
            marks: Vec::new(),
            losses: Vec::new(),
            lost_at: Vec::new(),
            born: Vec::new(),
            seen: None,
            switches: 0,
            running: Running::default(),
            has_return_probes: false,
            has_copied_code: false,
            hits: Hits::default(),
            left_out: LeftOut::default(),
            is_off: asked.filter.switch.on.is_some(),
        }
    }

    fn take(&mut self, delivered: Delivered<'_>) {
        match delivered {
            Delivered::Sample(sample) => self.sample(&sample),
            Delivered::Record { record, time, .. } => self.record(&record, time),
        }
    }

    fn sample(&mut self, head: &SampleHead) {
        self.jit.seen_until(head.time);
        if head.time.is_time() {
            let (first, last) = self.seen.unwrap_or((head.time.0, 0));
            self.seen = Some((first.min(head.time.0), last.max(head.time.0)));
        }
        let (filter, is_off) = (&self.asked.filter, &mut self.is_off);
        if !filter.keeps(head.time.0, head.cpu, head.event, is_off) {
            self.left_out.add(head);
            return;
        }
        if matches!(head.cpumode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            let (samples, period) = &mut self.rowless[head.event];
            *samples += 1;
            *period = period.wrapping_add(head.period);
            return;
        }
        let thread = self.threads.find_or_make(head.pid, head.tid);
        let life = self.threads.get(thread);
        let (comm, process) = (life.comm, life.process);
        let space = self.snapshot(process);
        if head.cpumode == CpuMode::User && self.hits.is_new(space, head.ip) {
            self.preload(space, head.ip);
        }
        if self.asked.parallelism {
            self.running.sample(self.samples.len());
        }
        self.samples.push(SampleRef {
            pos: head.pos,
            time: head.time,
            ip: head.ip,
            period: head.period,
            thread,
            comm,
            space,
            cpu: head.cpu.map_or(-1, |cpu| i32::try_from(cpu).unwrap_or(-1)),
            event: head.event,
            layout: head.layout,
            mode: head.cpumode,
            state: RunState::Unknown,
            label: Label::NONE,
        });
    }

    /// Has the symbols read of the file that a sample hit.
    fn preload(&mut self, space: SpaceId, at: Avma) {
        let last = self
            .hits
            .last
            .filter(|(of, mapping)| *of == space && mapping.range.contains(at));
        let mapping = last.map(|(_, mapping)| mapping);
        let mapping = mapping.or_else(|| self.spaces[space].maps.find(at).copied());
        self.hits.last = mapping.map(|mapping| (space, mapping));
        match mapping.filter(|m| m.executable && !m.anonymous) {
            Some(mapping) => self.dsos.preload(mapping.dso, mapping.file_offset(at)),
            None => self.hits.left -= 1,
        }
    }

    fn snapshot(&mut self, process: ProcessId) -> SpaceId {
        let current = self.current.entry(process).or_default();
        *current.snapshot.get_or_insert_with(|| {
            self.spaces.push(Space {
                process,
                maps: current.maps.clone(),
            })
        })
    }

    fn record(&mut self, record: &Record<'_>, time: Timestamp) {
        if let Record::Switch {
            out, other, task, ..
        } = *record
        {
            self.switches += u64::from(out);
            if self.asked.parallelism {
                self.running.switch(out, other, task);
            }
        }
        if matches!(record, Record::Lost { .. }) && self.lost_at.len() < MOST_TOLD {
            self.lost_at.push(time);
        }
        self.change(record, time);
        if self.asked.marks && time != Timestamp::START {
            self.mark_of(record, time);
        }
    }

    /// The moment that a record stands for, which has taken effect.
    fn mark_of(&mut self, record: &Record<'_>, time: Timestamp) {
        match *record {
            Record::Lost { .. } => self.losses.push(self.samples.next_idx()),
            Record::Switch {
                out,
                preempted,
                task: Some((pid, tid)),
                ..
            } => {
                let what = if out {
                    Moment::Out { preempted }
                } else {
                    Moment::In
                };
                self.mark((pid, tid), time, what);
            }
            Record::Exit { pid, tid, .. } => self.mark((pid, tid), time, Moment::Exit),
            Record::Mmap(ref mmap) if mmap.cpumode != CpuMode::Kernel => {
                self.mark((mmap.pid, mmap.tid), time, Moment::Ran);
            }
            Record::Comm { pid, tid, exec, .. } => {
                let thread = self.threads.find_or_make(pid, tid);
                let process = self.threads.get(thread).process;
                let what = if exec {
                    Moment::Exec(process)
                } else {
                    Moment::Ran
                };
                self.mark((pid, tid), time, what);
            }
            Record::Fork {
                pid,
                ppid,
                tid,
                ptid,
                synthesized: false,
            } => {
                let parent = self.threads.find_or_make(ppid, ptid);
                let child = self.threads.find_or_make(pid, tid);
                let born = Moment::Born {
                    parent: self.threads.get(parent).process,
                    child: self.threads.get(child).process,
                };
                self.mark((ppid, ptid), time, Moment::Ran);
                self.mark((pid, tid), time, born);
            }
            _ => {}
        }
    }

    fn mark(&mut self, (pid, tid): (u32, u32), time: Timestamp, what: Moment) {
        let thread = self.threads.find_or_make(pid, tid);
        self.marks.push(Mark {
            before: self.samples.next_idx(),
            thread,
            comm: self.threads.get(thread).comm,
            time,
            what,
        });
    }

    /// What a record changes of processes and their memory.
    fn change(&mut self, record: &Record<'_>, time: Timestamp) {
        match record {
            Record::CallchainDeferred { cookie, words } => {
                let words = words.as_chunks::<8>().0;
                let words = words.iter().map(|word| u64::from_le_bytes(*word));
                self.deferred.insert(*cookie, words.collect());
            }
            Record::Mmap(mmap) => match mmap.cpumode {
                CpuMode::Kernel => self.kernel_mapping(mmap, time),
                CpuMode::User | CpuMode::Unknown => self.user_mapping(mmap, time),
                _ => {}
            },
            Record::Comm {
                pid,
                tid,
                comm,
                exec,
            } => {
                let thread = self.threads.find_or_make(*pid, *tid);
                if *exec {
                    self.exec(thread, time);
                }
                self.threads
                    .set_comm(thread, &String::from_utf8_lossy(comm), time);
            }
            Record::Fork {
                pid,
                ppid,
                tid,
                ptid,
                synthesized,
            } => {
                let start = (!synthesized).then_some(time);
                let fork = self.threads.fork((*pid, *tid), (*ppid, *ptid), start);
                if !synthesized && self.born.len() < MOST_TOLD {
                    self.born.push(self.threads.find_or_make(*pid, *tid));
                }
                if *synthesized && pid != ppid && (*pid == KTHREADD || *ppid == KTHREADD) {
                    self.jit.may_be_kernels(fork.child);
                }
                if fork.parent != fork.child && !synthesized {
                    let maps = self.current.entry(fork.parent).or_default().maps.clone();
                    let born = Current {
                        maps,
                        snapshot: None,
                    };
                    self.current.entry(fork.child).or_insert(born);
                    if let Some(&program) = self.programs.get(&fork.parent) {
                        self.programs.insert(fork.child, program);
                    }
                    self.jit.fork(fork.parent, fork.child, time);
                }
            }
            Record::Exit { pid, tid, .. } => {
                self.threads.exit((*pid, *tid), time);
                self.running.exit();
            }
            Record::Cgroup { id, path } => {
                let path = || String::from_utf8_lossy(path).into_owned();
                self.cgroups.entry(*id).or_insert_with(path);
            }
            Record::Namespaces { pid, tid, links } => {
                if let Some(cgroup) = links.get(CGROUP_NAMESPACE) {
                    let thread = self.threads.find_or_make(*pid, *tid);
                    self.threads.set_cgroup(thread, *cgroup, time);
                }
            }
            Record::TimeConv(conversion) => self.jit.time_conversion(*conversion),
            Record::Ksymbol {
                addr,
                len,
                unregister,
                name,
                ..
            } => {
                let dso = self.dsos.intern(name, DsoKind::KernelSymbol, None, None);
                let range = AvmaRange::new(*addr, u64::from(*len));
                if *unregister {
                    self.kernel.unregister(range, dso, time);
                } else {
                    self.dsos.add_symbol(dso, *addr, u64::from(*len), name);
                    let mapping = in_kernel(range, FileOffset(addr.0), dso);
                    self.kernel.register(mapping, time);
                }
            }
            _ => {}
        }
    }

    /// A new program in the same process: nothing of the old one is mapped any more.
    fn exec(&mut self, thread: crate::ids::ThreadId, time: Timestamp) {
        let process = self.threads.get(thread).process;
        self.current.insert(process, Current::default());
        self.past_programs.extend(self.programs.remove(&process));
        self.jit.exec(process, time);
        self.execs.entry(process).or_default().push(time);
    }

    fn kernel_mapping(&mut self, mmap: &Mmap<'_>, time: Timestamp) {
        let range = AvmaRange::new(mmap.start, mmap.len);
        let dso = match mmap.name.strip_prefix(KERNEL_NAME) {
            Some(symbol) => {
                let reference = KernelReference {
                    symbol: symbol.to_vec(),
                    address: Avma(mmap.pgoff),
                    end: range.end,
                };
                self.dsos.set_kernel_reference(reference);
                self.dsos
                    .intern(KERNEL_NAME, DsoKind::Kernel, mmap.build_id, None)
            }
            None => self
                .dsos
                .intern(mmap.name, DsoKind::Module, mmap.build_id, None),
        };
        if self.dsos.get(dso).kind == DsoKind::Module {
            self.dsos.set_module_start(dso, range.start);
        }
        let mapping = in_kernel(range, FileOffset(range.start.0), dso);
        self.kernel.insert_part(mapping, time);
    }

    fn user_mapping(&mut self, mmap: &Mmap<'_>, time: Timestamp) {
        let thread = self.threads.find_or_make(mmap.pid, mmap.tid);
        let process = self.threads.get(thread).process;
        let range = AvmaRange::new(mmap.start, mmap.len);
        let class = NameClass::of(mmap);
        self.has_return_probes |= mmap.name == TRAMPOLINES;
        // A runtime maps its dump executable so that it is recorded; who only reads one does not run its code.
        let is_marker = mmap.executable
            && may_be_marker(mmap)
            && self.jit.marker(process, mmap.pid, mmap.name, time);
        if let (true, Some(inode)) = (is_marker, mmap.inode) {
            self.jit.marked_file(process, inode.number);
        }
        if mmap.executable && !is_marker {
            if class.is_anonymous_like() {
                let backing = mmap.inode.map_or(0, |inode| inode.number);
                self.jit
                    .anonymous((process, mmap.pid), range, backing, time);
            } else {
                self.jit.exec_file_mapping(process, range, time);
            }
        }
        let copy_of = self.copied_code(process, range, class);
        let (dso, offset) = copy_of.unwrap_or_else(|| self.dso_of(mmap, class));
        if mmap.executable && !is_marker && is_program(mmap.name) && !class.is_anonymous_like() {
            self.programs.entry(process).or_insert(dso);
        }
        if mmap.executable && class == NameClass::File {
            self.dsos.note_mapped(
                dso,
                MappedPart {
                    offset,
                    len: mmap.len,
                },
                time,
            );
            self.dsos.note_process(dso, mmap.pid, time);
        }
        let mapping = Mapping {
            range,
            offset,
            dso,
            executable: mmap.executable,
            anonymous: class.is_anonymous_like(),
            copied: copy_of.is_some(),
            behind_dump: copy_of.is_none()
                && is_dropped_by_inject(mmap.name)
                && self.jit.is_marked(process),
            rights: (mmap.prot & 7) as u8,
            shared: mmap.flags & MAP_SHARED != 0,
            inode: mmap.inode.map_or(0, |inode| inode.number),
            recorded: mmap.pgoff.wrapping_sub(offset.0),
        };
        let current = self.current.entry(process).or_default();
        current.maps.insert(mapping);
        current.snapshot = None;
    }

    /// The program whose code lay where a process maps memory without a file, and where in it. A program stays mapped
    /// as long as it runs, so nobody else's code can be there; a library may have been unloaded.
    fn copied_code(
        &mut self,
        process: ProcessId,
        range: AvmaRange,
        class: NameClass,
    ) -> Option<(DsoId, FileOffset)> {
        if class != NameClass::PerfMapped {
            return None;
        }
        let program = *self.programs.get(&process)?;
        let offset = self.current.get(&process)?.maps.code_in(program, range)?;
        self.has_copied_code = true;
        Some((program, offset))
    }

    /// The DSO of a user mapping and the file offset of its start (`util/map.c`).
    fn dso_of(&mut self, mmap: &Mmap<'_>, class: NameClass) -> (DsoId, FileOffset) {
        let offset = FileOffset(mmap.pgoff);
        let inode = mmap
            .inode
            .map(|i| (i.major, i.minor, i.number, i.generation));
        match class {
            NameClass::PerfMapped if mmap.executable => {
                let name = perf_map_path(mmap.pid);
                let name = name.as_os_str().as_encoded_bytes();
                (
                    self.dsos.intern(name, DsoKind::Anonymous, None, None),
                    FileOffset(mmap.start.0),
                )
            }
            NameClass::PerfMapped => (
                self.dsos.intern(mmap.name, DsoKind::Special, None, None),
                FileOffset(mmap.start.0),
            ),
            NameClass::Vdso => {
                // Those of 64-bit processes lie above what 32 bits reach.
                let is_narrow = mmap.start.0.saturating_add(mmap.len) <= 1 << 32;
                let name = if is_narrow { VDSO_32 } else { mmap.name };
                let dso = self.dsos.intern(name, DsoKind::Vdso, mmap.build_id, None);
                (dso, FileOffset(0))
            }
            NameClass::Special => (
                self.dsos.intern(mmap.name, DsoKind::Special, None, None),
                offset,
            ),
            NameClass::Memfd | NameClass::File => (
                self.dsos
                    .intern(mmap.name, DsoKind::File, mmap.build_id, inode),
                offset,
            ),
        }
    }
}

fn in_kernel(range: AvmaRange, offset: FileOffset, dso: DsoId) -> Mapping {
    Mapping {
        range,
        offset,
        dso,
        executable: true,
        anonymous: false,
        copied: false,
        behind_dump: false,
        rights: 5,
        shared: false,
        inode: 0,
        recorded: 0,
    }
}

/// Whether a mapping under the name of a temporary file is what a runtime makes of its dump: a page, for the record alone.
fn may_be_marker(mmap: &Mmap<'_>) -> bool {
    const LARGEST_PAGE: u64 = 1 << 16;
    mmap.len <= LARGEST_PAGE || !is_temporary_dump(mmap.name)
}

/// What perf takes for memory that JIT code may be in (`util/jitdump.c`).
fn is_dropped_by_inject(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 3] = [b"//anon", b"[anon:", b"/memfd:"];
    NAMES.iter().any(|prefix| name.starts_with(prefix))
}

/// How perf treats a mapping by its name (`util/map.c`), and what JIT runtimes use it for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NameClass {
    /// Symbols would come from `/tmp/perf-PID.map`.
    PerfMapped,
    Vdso,
    /// `[anon:…]`, `[vsyscall]`, `[uprobes]`.
    Special,
    /// `/memfd:…`, shared or not told: an ordinary DSO that may hold JIT code. A private mapping cannot be written by
    /// another one, so that is a program or library that was loaded from there.
    Memfd,
    File,
}

impl NameClass {
    fn of(mmap: &Mmap<'_>) -> Self {
        const MAP_HUGETLB: u32 = 0x40000;
        const MAP_PRIVATE: u32 = 2;
        const PERF_MAPPED: [&[u8]; 6] = [
            b"//anon",
            b"/dev/zero",
            b"/anon_hugepage",
            b"[heap]",
            b"[stack",
            b"/SYSV",
        ];
        let name = mmap.name;
        if mmap.flags & MAP_HUGETLB != 0
            || PERF_MAPPED.iter().any(|prefix| name.starts_with(prefix))
        {
            Self::PerfMapped
        } else if name.starts_with(b"[vdso") {
            Self::Vdso
        } else if name.starts_with(b"[") {
            Self::Special
        } else if name.starts_with(b"/memfd:") && mmap.flags & MAP_PRIVATE == 0 {
            Self::Memfd
        } else {
            Self::File
        }
    }

    /// Memory that a runtime may have put code into.
    fn is_anonymous_like(self) -> bool {
        matches!(self, Self::PerfMapped | Self::Memfd | Self::Special)
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, NameClass, Switch};
    use crate::address::Avma;
    use crate::perfdata::{CpuMode, EventId, Mmap};

    #[test]
    fn one_state_switches_samples_of_all_threads() {
        let (clock, on, off) = (EventId(0), EventId(1), EventId(2));
        let kept = |switch: Switch, samples: &[(u32, EventId)]| {
            let filter = Filter {
                cpus: vec![0],
                times: vec![(0, 9)],
                switch,
            };
            let mut is_off = switch.on.is_some();
            let keep = |(t, (cpu, event)): (u64, &(u32, EventId))| {
                let is_kept = filter.keeps(t, Some(*cpu), *event, &mut is_off);
                is_kept.then_some(t)
            };
            (0..).zip(samples).filter_map(keep).collect::<Vec<_>>()
        };
        let both = Switch {
            on: Some(on),
            off: Some(off),
            ..Switch::default()
        };
        let shown = Switch {
            shows: true,
            ..both
        };
        let samples = [
            (0, clock),
            (0, on),
            (0, clock),
            (0, off),
            (0, clock),
            (0, on),
            (0, on),
        ];
        assert_eq!(kept(both, &samples), [2, 6]);
        assert_eq!(kept(shown, &samples), [1, 2, 3, 5, 6]);
        // Without one that switches on, nothing is off.
        assert_eq!(
            kept(Switch { on: None, ..both }, &samples),
            [0, 1, 2, 4, 5, 6]
        );
        // As perf does: a report looks at CPUs behind the switch, a script before it.
        let samples = [(1, on), (0, clock), (1, clock), (1, off), (0, clock)];
        assert!(kept(both, &samples).is_empty());
        let of_any_cpu = Switch {
            of_any_cpu: true,
            ..both
        };
        assert_eq!(kept(of_any_cpu, &samples), [1]);
    }

    #[test]
    fn memory_that_others_may_write_is_for_code_made_at_run_time() {
        let class = |name, flags| {
            NameClass::of(&Mmap {
                pid: 1,
                tid: 1,
                start: Avma(0x1000),
                len: 0x1000,
                pgoff: 0,
                name,
                cpumode: CpuMode::User,
                executable: true,
                prot: 5,
                flags,
                inode: None,
                build_id: None,
            })
        };
        let (shared, private) = (1, 2);
        assert_eq!(class(b"/memfd:jit (deleted)", shared), NameClass::Memfd);
        assert_eq!(class(b"/memfd:jit (deleted)", 0), NameClass::Memfd);
        assert_eq!(class(b"/memfd:prog (deleted)", private), NameClass::File);
        assert_eq!(class(b"//anon", private), NameClass::PerfMapped);
        assert_eq!(class(b"/usr/bin/ls", private), NameClass::File);
    }
}
