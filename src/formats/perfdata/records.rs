//! Records other than samples, parsed and borrowed.
//!
//! In: the bytes of one whole record. Out: a [`Record`] that borrows its strings. Called while records are
//! delivered; knows nothing of order or of what a record does to a process. Layouts: `enum
//! perf_event_type` in `include/uapi/linux/perf_event.h`, and `tools/lib/perf/include/perf/event.h` for perf's own
//! types from 64 on.

use smallvec::SmallVec;

use crate::address::Avma;
use crate::build_id::BuildId;

use super::CpuMode;
use super::bytes::{Cursor, u16_at, u32_at, u64_at, until_nul};
use super::counts::{self, EventUpdate, Stat, StatConfig, StatRound};

/// Numbers of record types.
pub(super) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const READ: u32 = 8;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const UNTHROTTLE: u32 = 6;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const AUX: u32 = 11;
    pub(crate) const ITRACE_START: u32 = 12;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    pub(crate) const NAMESPACES: u32 = 16;
    pub(crate) const KSYMBOL: u32 = 17;
    pub(crate) const BPF_EVENT: u32 = 18;
    pub(crate) const CGROUP: u32 = 19;
    pub(crate) const TEXT_POKE: u32 = 20;
    pub(crate) const CALLCHAIN_DEFERRED: u32 = 22;
    /// The last kernel type known to pjit.
    pub(crate) const LAST_KERNEL: u32 = CALLCHAIN_DEFERRED;
    /// The first of perf's own types.
    pub(crate) const FIRST_USER: u32 = 64;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const HEADER_TRACING_DATA: u32 = 66;
    pub(crate) const HEADER_BUILD_ID: u32 = 67;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const ID_INDEX: u32 = 69;
    pub(crate) const AUXTRACE_INFO: u32 = 70;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const THREAD_MAP: u32 = 73;
    pub(crate) const CPU_MAP: u32 = 74;
    pub(crate) const STAT_CONFIG: u32 = 75;
    pub(crate) const STAT: u32 = 76;
    pub(crate) const STAT_ROUND: u32 = 77;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const TIME_CONV: u32 = 79;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
    /// The last of perf's own types known to pjit (`SCHEDSTAT_DOMAIN`).
    pub(crate) const LAST_USER: u32 = 86;
}

/// Bits of `misc` above the cpu mode; their meaning depends on the type.
mod misc {
    /// MMAP: data mapping. COMM: by exec. FORK: synthesised. SWITCH: out.
    pub(super) const BIT_13: u16 = 1 << 13;
    /// MMAP2: has a build ID. SWITCH: preempted.
    pub(super) const BIT_14: u16 = 1 << 14;
    /// LOST_SAMPLES: dropped by a BPF filter. Build-ID table: has a size.
    pub(super) const BIT_15: u16 = 1 << 15;
}

/// A file's identity in the recorded system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inode {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// Inode.
    pub number: u64,
    /// Generation of the inode.
    pub generation: u64,
}

/// A mapping came into being (MMAP and MMAP2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mmap<'b> {
    /// Process; all ones for the kernel.
    pub pid: u32,
    /// Thread that mapped.
    pub tid: u32,
    /// First address.
    pub start: Avma,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file, in bytes. For the kernel map: run-time address of the reference symbol.
    pub pgoff: u64,
    /// Path or special name.
    pub name: &'b [u8],
    /// Kernel maps have kernel mode.
    pub cpumode: CpuMode,
    /// PROT_EXEC; for the old MMAP: not marked as data.
    pub executable: bool,
    /// `PROT_*` (0 in the old MMAP).
    pub prot: u32,
    /// `MAP_*` (0 in the old MMAP).
    pub flags: u32,
    /// Device and inode, unless the record has a build ID instead.
    pub inode: Option<Inode>,
    /// Build ID, when the kernel wrote it into the record.
    pub build_id: Option<BuildId>,
}

/// How perf's clock relates to the processor's counter (TIME_CONV).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeConv {
    /// `time_shift` of the perf mmap page.
    pub shift: u64,
    /// `time_mult`.
    pub mult: u64,
    /// `time_zero`, nanoseconds.
    pub zero: u64,
    /// `time_cycles` (0 in older recordings).
    pub cycles: u64,
    /// `time_mask` (0 in older recordings).
    pub mask: u64,
    /// Whether `zero` is valid.
    pub cap_user_time_zero: bool,
    /// Whether `cycles` and `mask` are valid.
    pub cap_user_time_short: bool,
}

/// A record that is not a sample. Pids are as the record has them; names come without their NUL.
#[derive(Clone, PartialEq, Debug)]
pub enum Record<'b> {
    /// MMAP or MMAP2.
    Mmap(Mmap<'b>),
    /// A thread got a name.
    Comm {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The name.
        comm: &'b [u8],
        /// Because of an exec.
        exec: bool,
    },
    /// A process or thread was born.
    Fork {
        /// Its process.
        pid: u32,
        /// Its parent's process.
        ppid: u32,
        /// Its thread.
        tid: u32,
        /// Its parent's thread.
        ptid: u32,
        /// Written by `perf record` for what already ran: the maps are not copied.
        synthesized: bool,
    },
    /// A process or thread ended.
    Exit {
        /// Its process.
        pid: u32,
        /// Its parent's process.
        ppid: u32,
        /// Its thread.
        tid: u32,
        /// Its parent's thread.
        ptid: u32,
    },
    /// Namespaces of a process.
    Namespaces {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// (device, inode) in the order net, uts, ipc, pid, user, mnt, cgroup.
        links: SmallVec<[(u64, u64); 7]>,
    },
    /// Kernel code came or went (BPF programs, trampolines).
    Ksymbol {
        /// First address.
        addr: Avma,
        /// Length in bytes.
        len: u32,
        /// 1: BPF, 2: out-of-line code.
        ksym_type: u16,
        /// It went.
        unregister: bool,
        /// Name.
        name: &'b [u8],
    },
    /// A BPF program was loaded (1) or unloaded (2).
    Bpf {
        /// `enum perf_bpf_event_type`.
        type_: u16,
        /// Flags.
        flags: u16,
        /// Id of the program.
        id: u32,
        /// Hash of the program.
        tag: [u8; 8],
    },
    /// A cgroup and its path.
    Cgroup {
        /// Id as in samples.
        id: u64,
        /// Path from the root of the hierarchy.
        path: &'b [u8],
    },
    /// The ring buffer was full.
    Lost {
        /// Counter.
        id: u64,
        /// How many records were lost.
        lost: u64,
    },
    /// Samples that were counted but not written.
    LostSamples {
        /// How many.
        lost: u64,
        /// Dropped by a BPF filter, not by lack of room.
        bpf: bool,
    },
    /// The counter of a task that ended (`perf record -s`).
    Read {
        /// Process of the task that ended.
        pid: u32,
        /// The task.
        tid: u32,
        /// Its counter as the event's `read_format` says, then what all records end with.
        values: &'b [u8],
    },
    /// The kernel stopped (or resumed) the counter because it fired too often.
    Throttle {
        /// Counter.
        id: u64,
        /// Stopped, not resumed.
        on: bool,
    },
    /// Context switch.
    Switch {
        /// Away from the thread of the record.
        out: bool,
        /// It could have run on.
        preempted: bool,
        /// (pid, tid) of the other side, in CPU-wide recordings.
        other: Option<(u32, u32)>,
        /// (pid, tid) of the thread itself, if records say whose they are.
        task: Option<(u32, u32)>,
    },
    /// AUX data arrived.
    Aux {
        /// Position.
        offset: u64,
        /// Length.
        size: u64,
        /// `PERF_AUX_FLAG_*`.
        flags: u64,
    },
    /// Instruction trace started.
    ItraceStart {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
    },
    /// The kernel patched itself.
    TextPoke {
        /// Where.
        addr: Avma,
        /// Bytes before.
        old: &'b [u8],
        /// Bytes after.
        new: &'b [u8],
    },
    /// Clock conversion.
    TimeConv(TimeConv),
    /// Build ID of a file, in a stream.
    BuildId(super::BuildIdEntry),
    /// The user's part of chains that were recorded before it, with this number in its place: a kernel that unwinds on
    /// the way back to user space writes it then.
    CallchainDeferred {
        /// The number.
        cookie: u64,
        /// Addresses and markers, eight bytes each.
        words: &'b [u8],
    },
    /// Ids of counters with their CPU and thread.
    IdIndex,
    /// The threads that were recorded.
    ThreadMap(&'b [u8]),
    /// The CPUs that were recorded.
    CpuMap,
    /// Name, unit or CPUs of an event, in a stream: its counter, and what it is.
    EventUpdate(u64, EventUpdate<'b>),
    /// A count (`perf stat record`).
    Stat(Stat),
    /// All counts were read.
    StatRound(StatRound),
    /// How they were.
    StatConfig(StatConfig),
    /// A type that is known but says nothing about code, or an unknown one (counted).
    Other {
        /// Number of the type.
        type_: u32,
    },
}

/// Parses a whole record (with its 8-byte header) that is not a sample. `None`: malformed.
pub(super) fn parse(record: &[u8]) -> Option<Record<'_>> {
    let type_ = u32_at(record, 0)?;
    let misc = u16_at(record, 4)?;
    let body = record.get(8..)?;
    Some(match type_ {
        kind::MMAP => Record::Mmap(mmap(misc, body)?),
        kind::MMAP2 => Record::Mmap(mmap2(misc, body)?),
        kind::COMM => Record::Comm {
            pid: u32_at(body, 0)?,
            tid: u32_at(body, 4)?,
            comm: until_nul(body.get(8..)?)?,
            exec: misc & misc::BIT_13 != 0,
        },
        kind::FORK => {
            let [pid, ppid, tid, ptid] = task(body)?;
            Record::Fork {
                pid,
                ppid,
                tid,
                ptid,
                synthesized: misc & misc::BIT_13 != 0,
            }
        }
        kind::EXIT => {
            let [pid, ppid, tid, ptid] = task(body)?;
            Record::Exit {
                pid,
                ppid,
                tid,
                ptid,
            }
        }
        kind::NAMESPACES => namespaces(body)?,
        kind::KSYMBOL => Record::Ksymbol {
            addr: Avma(u64_at(body, 0)?),
            len: u32_at(body, 8)?,
            ksym_type: u16_at(body, 12)?,
            unregister: u16_at(body, 14)? & 1 != 0,
            name: until_nul(body.get(16..)?)?,
        },
        kind::BPF_EVENT => Record::Bpf {
            type_: u16_at(body, 0)?,
            flags: u16_at(body, 2)?,
            id: u32_at(body, 4)?,
            tag: *body.get(8..)?.first_chunk()?,
        },
        kind::CGROUP => Record::Cgroup {
            id: u64_at(body, 0)?,
            path: until_nul(body.get(8..)?)?,
        },
        kind::LOST => Record::Lost {
            id: u64_at(body, 0)?,
            lost: u64_at(body, 8)?,
        },
        kind::LOST_SAMPLES => Record::LostSamples {
            lost: u64_at(body, 0)?,
            bpf: misc & misc::BIT_15 != 0,
        },
        kind::READ => Record::Read {
            pid: u32_at(body, 0)?,
            tid: u32_at(body, 4)?,
            values: body.get(8..)?,
        },
        kind::THROTTLE | kind::UNTHROTTLE => Record::Throttle {
            id: u64_at(body, 8)?,
            on: type_ == kind::THROTTLE,
        },
        kind::SWITCH => switch(misc, None),
        kind::SWITCH_CPU_WIDE => switch(misc, Some((u32_at(body, 0)?, u32_at(body, 4)?))),
        kind::AUX => Record::Aux {
            offset: u64_at(body, 0)?,
            size: u64_at(body, 8)?,
            flags: u64_at(body, 16)?,
        },
        kind::ITRACE_START => Record::ItraceStart {
            pid: u32_at(body, 0)?,
            tid: u32_at(body, 4)?,
        },
        kind::TEXT_POKE => text_poke(body)?,
        kind::TIME_CONV => Record::TimeConv(time_conv(body)?),
        kind::HEADER_BUILD_ID => Record::BuildId(build_id(misc, body)?),
        kind::CALLCHAIN_DEFERRED => {
            let mut cursor = Cursor::new(body.get(16..)?);
            Record::CallchainDeferred {
                cookie: u64_at(body, 0)?,
                words: cursor.words(u64_at(body, 8)?)?,
            }
        }
        kind::ID_INDEX => Record::IdIndex,
        kind::THREAD_MAP => Record::ThreadMap(body),
        kind::CPU_MAP => Record::CpuMap,
        kind::EVENT_UPDATE => {
            let (id, update) = counts::event_update(body)?;
            Record::EventUpdate(id, update)
        }
        kind::STAT => Record::Stat(counts::stat(body)?),
        kind::STAT_ROUND => Record::StatRound(counts::stat_round(body)?),
        kind::STAT_CONFIG => Record::StatConfig(counts::stat_config(body)?),
        _ => Record::Other { type_ },
    })
}

/// Whether pjit knows what a record of this type is.
pub(super) const fn is_known(type_: u32) -> bool {
    matches!(type_, kind::MMAP..=kind::LAST_KERNEL | kind::FIRST_USER..=kind::LAST_USER)
}

fn mmap(misc: u16, body: &[u8]) -> Option<Mmap<'_>> {
    Some(Mmap {
        pid: u32_at(body, 0)?,
        tid: u32_at(body, 4)?,
        start: Avma(u64_at(body, 8)?),
        len: u64_at(body, 16)?,
        pgoff: u64_at(body, 24)?,
        name: until_nul(body.get(32..)?)?,
        cpumode: CpuMode::from_misc(misc),
        executable: misc & misc::BIT_13 == 0,
        prot: 0,
        flags: 0,
        inode: None,
        build_id: None,
    })
}

fn mmap2(misc: u16, body: &[u8]) -> Option<Mmap<'_>> {
    /// `PROT_EXEC` of mman.h.
    const PROT_EXEC: u32 = 4;
    let has_build_id = misc & misc::BIT_14 != 0 && is_build_id(body.get(32..56)?);
    let prot = u32_at(body, 56)?;
    Some(Mmap {
        name: until_nul(body.get(64..)?)?,
        executable: prot & PROT_EXEC != 0,
        prot,
        flags: u32_at(body, 60)?,
        inode: if has_build_id {
            None
        } else {
            Some(inode(body.get(32..56)?)?)
        },
        build_id: if has_build_id {
            sized_build_id(body.get(32..56)?)
        } else {
            None
        },
        pid: u32_at(body, 0)?,
        tid: u32_at(body, 4)?,
        start: Avma(u64_at(body, 8)?),
        len: u64_at(body, 16)?,
        pgoff: u64_at(body, 24)?,
        cpumode: CpuMode::from_misc(misc),
    })
}

fn inode(field: &[u8]) -> Option<Inode> {
    Some(Inode {
        major: u32_at(field, 0)?,
        minor: u32_at(field, 4)?,
        number: u64_at(field, 8)?,
        generation: u64_at(field, 16)?,
    })
}

/// Whether a field that is marked as a build ID is one, and no inode.
///
/// The kernel (6.18 does) makes one record for all who record at that time, and never takes the mark back: where one of them asked
/// for build IDs, the next ones get their inodes with the mark. perf 6.1 ends with `Aborted` there. An inode begins with the number
/// of a device: its low byte is the length here, the rest is reserved, and what is behind a short ID is 0.
fn is_build_id(field: &[u8]) -> bool {
    /// Minor numbers of devices have 20 bits.
    const MINORS: u32 = 1 << 20;
    let len = usize::from(field[0]);
    // Devices of 16 and 20 were drives of the nineties.
    let is_device = len < 16 && u32_at(field, 4).is_none_or(|minor| minor < MINORS);
    let is_empty = |bytes: Option<&[u8]>| bytes.is_some_and(|b| b.iter().all(|byte| *byte == 0));
    !is_device && is_empty(field.get(1..4)) && is_empty(field.get(4 + len..))
}

/// Length byte, three reserved bytes, up to 20 bytes.
fn sized_build_id(field: &[u8]) -> Option<BuildId> {
    let len = usize::from(*field.first()?).min(20);
    BuildId::new(field.get(4..4 + len)?)
}

fn task(body: &[u8]) -> Option<[u32; 4]> {
    Some([
        u32_at(body, 0)?,
        u32_at(body, 4)?,
        u32_at(body, 8)?,
        u32_at(body, 12)?,
    ])
}

fn namespaces(body: &[u8]) -> Option<Record<'_>> {
    let nr = u64_at(body, 8)?;
    let mut cursor = Cursor::new(body.get(16..)?);
    let links = cursor.words(nr.checked_mul(2)?)?;
    let links = links
        .chunks_exact(16)
        .filter_map(|l| Some((u64_at(l, 0)?, u64_at(l, 8)?)))
        .collect();
    Some(Record::Namespaces {
        pid: u32_at(body, 0)?,
        tid: u32_at(body, 4)?,
        links,
    })
}

const fn switch(misc: u16, other: Option<(u32, u32)>) -> Record<'static> {
    Record::Switch {
        out: misc & misc::BIT_13 != 0,
        preempted: misc & misc::BIT_14 != 0,
        other,
        task: None,
    }
}

fn text_poke(body: &[u8]) -> Option<Record<'_>> {
    let mut bytes = Cursor::new(body.get(12..)?);
    Some(Record::TextPoke {
        addr: Avma(u64_at(body, 0)?),
        old: bytes.take(u64::from(u16_at(body, 8)?))?,
        new: bytes.take(u64::from(u16_at(body, 10)?))?,
    })
}

fn time_conv(body: &[u8]) -> Option<TimeConv> {
    let flag = |at| body.get(at).is_some_and(|&b| b != 0);
    // The first version of the record ended behind `zero`.
    let long = body.len() >= 42;
    Some(TimeConv {
        shift: u64_at(body, 0)?,
        mult: u64_at(body, 8)?,
        zero: u64_at(body, 16)?,
        cycles: if long { u64_at(body, 24)? } else { 0 },
        mask: if long { u64_at(body, 32)? } else { 0 },
        cap_user_time_zero: !long || flag(40),
        cap_user_time_short: long && flag(41),
    })
}

/// A build ID of the header table, or of a stream: pid, 20 bytes and a length, file name
/// (`struct perf_record_header_build_id`).
pub(super) fn build_id(misc: u16, body: &[u8]) -> Option<super::BuildIdEntry> {
    let field = body.get(4..28)?;
    let build_id = if misc & misc::BIT_15 != 0 {
        let len = usize::from(*field.get(20)?).min(20);
        BuildId::new(field.get(..len)?)?
    } else {
        BuildId::from_padded(field.get(..20)?)?
    };
    let name = body.get(28..)?;
    Some(super::BuildIdEntry {
        pid: u32_at(body, 0)?.cast_signed(),
        build_id,
        name: until_nul(name).unwrap_or(name).to_vec(),
        cpumode: CpuMode::from_misc(misc),
    })
}
