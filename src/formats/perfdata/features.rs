//! What a recording says about itself: host, command line, build IDs, clocks.
//!
//! In: the feature sections behind the data of a file, or the FEATURE records of a stream. Out:
//! [`Features`], plain values. Layouts: `tools/perf/Documentation/perf.data-file-format.txt` and the
//! writers in `tools/perf/util/header.c`. A section that is cut or makes no sense leaves its fields empty.

use std::ops::Range;
use std::time::SystemTime;

use super::attr::Attr;
use super::bytes::{Cursor, u16_at, u32_at, u64_at, until_nul};
use super::head::record_header;
use super::records;
use super::{ClockId, CpuMode, EventId};
use crate::build_id::BuildId;
use crate::ids::Idx;

/// Numbers of features (`enum` in `tools/perf/util/header.h`).
pub(super) mod id {
    pub(crate) const TRACING_DATA: u32 = 1;
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const HOSTNAME: u32 = 3;
    pub(crate) const OSRELEASE: u32 = 4;
    pub(crate) const VERSION: u32 = 5;
    pub(crate) const ARCH: u32 = 6;
    pub(crate) const NRCPUS: u32 = 7;
    pub(crate) const CPUDESC: u32 = 8;
    pub(crate) const CPUID: u32 = 9;
    pub(crate) const TOTAL_MEM: u32 = 10;
    pub(crate) const CMDLINE: u32 = 11;
    pub(crate) const EVENT_DESC: u32 = 12;
    pub(crate) const CPU_TOPOLOGY: u32 = 13;
    pub(crate) const NUMA_TOPOLOGY: u32 = 14;
    pub(crate) const BRANCH_STACK: u32 = 15;
    pub(crate) const PMU_MAPPINGS: u32 = 16;
    pub(crate) const GROUP_DESC: u32 = 17;
    pub(crate) const AUXTRACE: u32 = 18;
    pub(crate) const STAT: u32 = 19;
    pub(crate) const CACHE: u32 = 20;
    pub(crate) const SAMPLE_TIME: u32 = 21;
    pub(crate) const MEM_TOPOLOGY: u32 = 22;
    pub(crate) const CLOCKID: u32 = 23;
    pub(crate) const DIR_FORMAT: u32 = 24;
    pub(crate) const BPF_PROG_INFO: u32 = 25;
    pub(crate) const BPF_BTF: u32 = 26;
    pub(crate) const COMPRESSED: u32 = 27;
    pub(crate) const CPU_PMU_CAPS: u32 = 28;
    pub(crate) const CLOCK_DATA: u32 = 29;
    pub(crate) const HYBRID_TOPOLOGY: u32 = 30;
    pub(crate) const PMU_CAPS: u32 = 31;
    /// The last one that is known.
    pub(crate) const LAST: u32 = PMU_CAPS;
}

/// A file and its build ID, from the header's table or a stream's records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildIdEntry {
    /// -1 for the host.
    pub pid: i32,
    /// The build ID.
    pub build_id: BuildId,
    /// Path, `[kernel.kallsyms]`, `[vdso]`, `[module]`.
    pub name: Vec<u8>,
    /// Kernel files have kernel mode.
    pub cpumode: CpuMode,
}

/// The same moment on two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockData {
    /// The recording's clock.
    pub clockid: ClockId,
    /// Nanoseconds since 1970.
    pub wall_ns: u64,
    /// Nanoseconds on the recording's clock.
    pub clock_ns: u64,
}

/// Group of events (GROUP_DESC).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Name from the command line; `{anon_group}` if it has none.
    pub name: String,
    /// The leading event; nothing for a number that none can have.
    pub leader: Option<EventId>,
    /// Number of members, the leader included.
    pub members: u32,
}

impl Group {
    /// Where its members are among so many events.
    pub(super) fn places(&self, events: usize) -> Range<usize> {
        let Some(leader) = self.leader else {
            return 0..0;
        };
        let behind = leader.index().saturating_add(self.members as usize);
        leader.index().min(events)..behind.min(events)
    }
}

/// An event as the header describes it (EVENT_DESC).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventDesc {
    /// Its attribute.
    pub attr: Attr,
    /// Its name.
    pub name: String,
    /// Ids of its counters.
    pub ids: Vec<u64>,
}

/// Place of a CPU in the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuPlace {
    /// Core in the socket.
    pub core: i32,
    /// Socket in the machine.
    pub socket: i32,
    /// Die in the socket (0 in older recordings).
    pub die: i32,
}

/// CPU topology; CPU lists are as in sysfs (`0-3,8`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuTopology {
    /// CPUs that share a socket.
    pub sockets: Vec<String>,
    /// CPUs that share a die.
    pub dies: Vec<String>,
    /// CPUs that share a core.
    pub threads: Vec<String>,
    /// By CPU; empty in older recordings.
    pub cpus: Vec<CpuPlace>,
}

/// A NUMA node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumaNode {
    /// Number.
    pub node: u32,
    /// Memory, kB.
    pub total: u64,
    /// Free memory, kB.
    pub free: u64,
    /// Its CPUs.
    pub cpus: String,
}

/// One cache of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u32,
    /// Bytes.
    pub line_size: u32,
    /// Number of sets.
    pub sets: u32,
    /// Associativity.
    pub ways: u32,
    /// `Data`, `Instruction`, `Unified`.
    pub kind: String,
    /// `32K`.
    pub size: String,
    /// CPUs that share it.
    pub cpus: String,
}

/// Memory blocks that are present in a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryNode {
    /// Number.
    pub node: u64,
    /// Bit *n*: block *n* is there.
    pub blocks: Vec<u64>,
    /// Number of valid bits.
    pub bits: u64,
}

/// A BPF program that was loaded while recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BpfProgram {
    /// Id.
    pub id: u32,
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// Hashes of its functions.
    pub tags: Vec<[u8; 8]>,
    /// Start addresses of its functions in the kernel.
    pub ksyms: Vec<u64>,
    /// Lengths of its functions.
    pub lens: Vec<u32>,
}

/// Compression of the records (COMPRESSED).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compression {
    /// 1: zstd.
    pub kind: u32,
    /// Level.
    pub level: u32,
    /// Uncompressed to compressed size, rounded.
    pub ratio: u32,
    /// Size of the ring buffer in bytes.
    pub mmap_len: u32,
}

/// Capabilities of a PMU: names with values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PmuCaps {
    /// Name of the PMU.
    pub pmu: String,
    /// (name, value).
    pub caps: Vec<(String, String)>,
}

/// The frame of the file: what `--header` prints first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileFrame {
    /// Whether the records came as a stream; all offsets are 0 then.
    pub stream: bool,
    /// Offset of the records in the file.
    pub data_offset: u64,
    /// Size of the records in bytes, as the header says.
    pub data_size: u64,
    /// Offset of the feature table.
    pub feat_offset: u64,
}

/// What the recording says about itself. Absent features are `None` or empty.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Features {
    /// Which features are present, by number.
    pub present: [u64; 4],
    /// The frame of the file.
    pub frame: FileFrame,
    /// Name of the host.
    pub hostname: Option<String>,
    /// Release of its kernel (`uname -r`).
    pub os_release: Option<String>,
    /// Version of perf that recorded.
    pub perf_version: Option<String>,
    /// Machine (`uname -m`): `x86_64`, `aarch64`.
    pub arch: Option<String>,
    /// CPUs online.
    pub nr_cpus_online: Option<u32>,
    /// CPUs available.
    pub nr_cpus_avail: Option<u32>,
    /// Model of the CPU in words.
    pub cpu_desc: Option<String>,
    /// Model of the CPU in numbers.
    pub cpuid: Option<String>,
    /// Memory in kB.
    pub total_mem: Option<u64>,
    /// The `perf record` command line.
    pub cmdline: Vec<String>,
    /// Events by their names.
    pub event_desc: Vec<EventDesc>,
    /// CPU topology.
    pub cpu_topology: Option<CpuTopology>,
    /// NUMA nodes.
    pub numa_nodes: Vec<NumaNode>,
    /// (type number, name) of the machine's PMUs.
    pub pmu_mappings: Vec<(u32, String)>,
    /// Caches.
    pub caches: Vec<Cache>,
    /// Build IDs of files.
    pub build_ids: Vec<BuildIdEntry>,
    /// Resolution of the clock that was chosen with `-k`, in ns.
    pub clockid: Option<u64>,
    /// Wall clock and recording clock at one moment.
    pub clock_data: Option<ClockData>,
    /// Times of the first and the last sample, ns.
    pub sample_time: Option<(u64, u64)>,
    /// Size of a memory block in bytes, and the nodes.
    pub mem_topology: Option<(u64, Vec<MemoryNode>)>,
    /// Groups of events.
    pub groups: Vec<Group>,
    /// BPF programs.
    pub bpf_programs: Vec<BpfProgram>,
    /// Ids of BPF type information.
    pub bpf_btf: Vec<u32>,
    /// Compression of the records.
    pub compression: Option<Compression>,
    /// Capabilities of the CPU's PMU.
    pub cpu_pmu_caps: Vec<(String, String)>,
    /// CPUs of hybrid PMUs: (PMU, CPUs).
    pub hybrid_topology: Vec<(String, String)>,
    /// Capabilities of other PMUs.
    pub pmu_caps: Vec<PmuCaps>,
    /// Version of the directory format.
    pub dir_format: Option<u64>,
    /// Last modification of the file.
    pub captured: Option<SystemTime>,
}

impl Features {
    /// The numbers of features that a newer perf wrote.
    pub fn unknown(&self) -> impl Iterator<Item = u32> + '_ {
        let bits = u32::try_from(self.present.len()).unwrap_or(u32::MAX);
        (id::LAST + 1..bits.saturating_mul(64)).filter(|feature| self.has(*feature))
    }

    /// Whether Android's simpleperf made the recording: its own features are numbered from 128 on.
    #[must_use]
    pub fn is_simpleperf(&self) -> bool {
        self.present.get(2).is_some_and(|word| *word != 0)
    }

    /// Whether the file says that it holds counts of `perf stat record`.
    #[must_use]
    pub fn has_counts(&self) -> bool {
        self.has(id::STAT)
    }

    /// Whether the feature of this number (`HEADER_*`) is present.
    #[must_use]
    pub fn has(&self, feature: u32) -> bool {
        let word = usize::try_from(feature / 64)
            .ok()
            .and_then(|n| self.present.get(n));
        word.is_some_and(|word| word & (1 << (feature % 64)) != 0)
    }

    pub(super) fn mark(&mut self, feature: u32) {
        if let Some(word) = usize::try_from(feature / 64)
            .ok()
            .and_then(|n| self.present.get_mut(n))
        {
            *word |= 1 << (feature % 64);
        }
    }

    /// Takes in one section. Unknown features are ignored.
    pub(super) fn read(&mut self, feature: u32, section: &[u8]) {
        let c = &mut Cursor::new(section);
        match feature {
            id::HOSTNAME => self.hostname = text(c),
            id::OSRELEASE => self.os_release = text(c),
            id::VERSION => self.perf_version = text(c),
            id::ARCH => self.arch = text(c),
            id::CPUDESC => self.cpu_desc = text(c),
            id::CPUID => self.cpuid = text(c),
            id::NRCPUS => (self.nr_cpus_avail, self.nr_cpus_online) = (c.u32(), c.u32()),
            id::TOTAL_MEM => self.total_mem = c.u64(),
            id::CMDLINE => self.cmdline = list(c, text),
            id::BUILD_ID => self.build_ids = build_ids(section),
            id::EVENT_DESC => self.event_desc = event_desc(c).unwrap_or_default(),
            id::CPU_TOPOLOGY => {
                self.cpu_topology = cpu_topology(c, self.nr_cpus_avail.unwrap_or(0))
            }
            id::NUMA_TOPOLOGY => self.numa_nodes = list(c, numa_node),
            id::PMU_MAPPINGS => self.pmu_mappings = list(c, |c| Some((c.u32()?, text(c)?))),
            id::GROUP_DESC => self.groups = list(c, group),
            id::CACHE => self.caches = caches(c).unwrap_or_default(),
            id::SAMPLE_TIME => self.sample_time = c.u64().zip(c.u64()),
            id::MEM_TOPOLOGY => self.mem_topology = mem_topology(c),
            id::CLOCKID => self.clockid = c.u64(),
            id::CLOCK_DATA => self.clock_data = clock_data(c),
            id::DIR_FORMAT => self.dir_format = c.u64(),
            id::BPF_PROG_INFO => self.bpf_programs = list(c, bpf_program),
            id::BPF_BTF => self.bpf_btf = list(c, bpf_btf),
            id::COMPRESSED => self.compression = compression(c),
            id::CPU_PMU_CAPS => self.cpu_pmu_caps = list(c, pair),
            id::HYBRID_TOPOLOGY => self.hybrid_topology = list(c, pair),
            id::PMU_CAPS => self.pmu_caps = list(c, pmu_caps),
            _ => {}
        }
    }
}

fn text(c: &mut Cursor<'_>) -> Option<String> {
    Some(String::from_utf8_lossy(c.string()?).into_owned())
}

/// A count and so many elements; ends early where the section ends. Every element takes at least one
/// byte of the section, so that a false count costs nothing.
fn list<T>(c: &mut Cursor<'_>, element: impl FnMut(&mut Cursor<'_>) -> Option<T>) -> Vec<T> {
    let count = c.u32().unwrap_or(0);
    some_of(c, u64::from(count), element)
}

fn some_of<T>(
    c: &mut Cursor<'_>,
    count: u64,
    mut element: impl FnMut(&mut Cursor<'_>) -> Option<T>,
) -> Vec<T> {
    (0..count).map_while(|_| element(c)).collect()
}

fn pair(c: &mut Cursor<'_>) -> Option<(String, String)> {
    Some((text(c)?, text(c)?))
}

/// Records of the build-ID table, each with its own header.
fn build_ids(mut section: &[u8]) -> Vec<BuildIdEntry> {
    let mut entries = Vec::new();
    // perf before 2.6.36 wrote no pid, so that the first name, the kernel's, looks 4 bytes short.
    let old = section
        .get(36..)
        .is_some_and(|name| name.starts_with(b"nel.kallsyms]"));
    while let Some((_, size)) = record_header(section) {
        let Some((record, rest)) = section.split_at_checked(size) else {
            break;
        };
        section = rest;
        let misc = u16_at(record, 4).unwrap_or(0);
        let entry = if old {
            let mut body = vec![0xff; 4];
            body.extend_from_slice(record.get(8..).unwrap_or_default());
            records::build_id(misc, &body)
        } else {
            record
                .get(8..)
                .and_then(|body| records::build_id(misc, body))
        };
        entries.extend(entry);
    }
    entries
}

fn event_desc(c: &mut Cursor<'_>) -> Option<Vec<EventDesc>> {
    let count = c.u32()?;
    let attr_size = c.u32()?;
    Some(some_of(c, u64::from(count), |c| {
        let attr = Attr::parse(c.take(u64::from(attr_size))?)?;
        let ids = c.u32()?;
        let name = text(c)?;
        let ids = c.words(u64::from(ids))?;
        let ids = ids
            .as_chunks::<8>()
            .0
            .iter()
            .map(|id| u64::from_le_bytes(*id))
            .collect();
        Some(EventDesc { attr, name, ids })
    }))
}

fn cpu_topology(c: &mut Cursor<'_>, cpus: u32) -> Option<CpuTopology> {
    let mut topology = CpuTopology {
        sockets: list(c, text),
        threads: list(c, text),
        ..CpuTopology::default()
    };
    topology.cpus = some_of(c, u64::from(cpus), |c| {
        Some(CpuPlace {
            core: c.u32()?.cast_signed(),
            socket: c.u32()?.cast_signed(),
            die: 0,
        })
    });
    if !c.rest().is_empty() {
        topology.dies = list(c, text);
        for place in &mut topology.cpus {
            place.die = c.u32()?.cast_signed();
        }
    }
    Some(topology)
}

fn numa_node(c: &mut Cursor<'_>) -> Option<NumaNode> {
    Some(NumaNode {
        node: c.u32()?,
        total: c.u64()?,
        free: c.u64()?,
        cpus: text(c)?,
    })
}

fn group(c: &mut Cursor<'_>) -> Option<Group> {
    Some(Group {
        name: text(c)?,
        leader: u16::try_from(c.u32()?).ok().map(EventId),
        members: c.u32()?,
    })
}

fn caches(c: &mut Cursor<'_>) -> Option<Vec<Cache>> {
    let version = c.u32()?;
    (version == 1).then(|| {
        list(c, |c| {
            Some(Cache {
                level: c.u32()?,
                line_size: c.u32()?,
                sets: c.u32()?,
                ways: c.u32()?,
                kind: text(c)?,
                size: text(c)?,
                cpus: text(c)?,
            })
        })
    })
}

fn mem_topology(c: &mut Cursor<'_>) -> Option<(u64, Vec<MemoryNode>)> {
    let version = c.u64()?;
    if version != 1 {
        return None;
    }
    let block_size = c.u64()?;
    let count = c.u64()?;
    let nodes = some_of(c, count, |c| {
        let (node, _size) = (c.u64()?, c.u64()?);
        let bits = c.u64()?;
        let words = c.words(bits.div_ceil(64))?;
        let blocks = words
            .as_chunks::<8>()
            .0
            .iter()
            .map(|w| u64::from_le_bytes(*w))
            .collect();
        Some(MemoryNode { node, blocks, bits })
    });
    Some((block_size, nodes))
}

fn clock_data(c: &mut Cursor<'_>) -> Option<ClockData> {
    let version = c.u32()?;
    let clockid = ClockId(c.u32()?.cast_signed());
    (version == 1).then_some(ClockData {
        clockid,
        wall_ns: c.u64()?,
        clock_ns: c.u64()?,
    })
}

fn compression(c: &mut Cursor<'_>) -> Option<Compression> {
    let _version = c.u32()?;
    Some(Compression {
        kind: c.u32()?,
        level: c.u32()?,
        ratio: c.u32()?,
        mmap_len: c.u32()?,
    })
}

fn pmu_caps(c: &mut Cursor<'_>) -> Option<PmuCaps> {
    let caps = list(c, pair);
    Some(PmuCaps {
        pmu: text(c)?,
        caps,
    })
}

fn bpf_btf(c: &mut Cursor<'_>) -> Option<u32> {
    let (id, size) = (c.u32()?, c.u32()?);
    c.take(u64::from(size))?;
    Some(id)
}

/// `struct bpf_prog_info` of the kernel with its arrays behind it. The arrays' pointers were
/// replaced by offsets into the data, and a bit set says which arrays are there
/// (`tools/lib/bpf`, `bpf_program__bpil_addr_to_offs`).
fn bpf_program(c: &mut Cursor<'_>) -> Option<BpfProgram> {
    let (info_len, data_len) = (c.u32()?, c.u32()?);
    let _arrays = c.u64()?;
    let info = c.take(u64::from(info_len))?;
    let data = c.take(u64::from(data_len))?;
    let array = |count_at, at, size: usize| {
        let count = usize::try_from(u32_at(info, count_at).unwrap_or(0)).ok()?;
        let start = usize::try_from(u64_at(info, at)?).ok()?;
        data.get(start..)?.get(..count.checked_mul(size)?)
    };
    let ksyms = array(104, 112, 8).unwrap_or_default();
    let lens = array(108, 120, 4).unwrap_or_default();
    let tags = array(180, 184, 8).unwrap_or_default();
    let name = info.get(64..80).unwrap_or_default();
    let name = until_nul(name).unwrap_or(name);
    Some(BpfProgram {
        id: u32_at(info, 4)?,
        name: String::from_utf8_lossy(name).into_owned(),
        tags: tags.as_chunks().0.to_vec(),
        ksyms: ksyms
            .as_chunks::<8>()
            .0
            .iter()
            .map(|k| u64::from_le_bytes(*k))
            .collect(),
        lens: lens
            .as_chunks::<4>()
            .0
            .iter()
            .map(|k| u32::from_le_bytes(*k))
            .collect(),
    })
}
