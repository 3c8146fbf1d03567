//! `perf_event_attr`: how an event was counted and what its samples hold.
//!
//! In: the structure as the recording has it, of any size from version 0 on. Out: its fields as numbers; flags
//! by name. Unknown bits and trailing fields are kept or ignored, never an error
//! (`include/uapi/linux/perf_event.h`, `struct perf_event_attr`).

use std::fmt;

use crate::unit::Unit;

use super::bytes::{u16_at, u32_at, u64_at};

/// Bits of `sample_type` (`enum perf_event_sample_format`).
pub mod sample_type {
    #![allow(missing_docs, reason = "the names are those of the kernel's header")]
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Bits of `read_format` (`enum perf_event_read_format`).
pub mod read_format {
    #![allow(missing_docs, reason = "the names are those of the kernel's header")]
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
}

/// Which code an event counts. Users who may not record the kernel (`perf_event_paranoid` 2) get [`Ring::User`] without asking.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// That of programs and of the kernel.
    #[default]
    All,
    /// That of programs alone (`:u`).
    User,
    /// The kernel's alone (`:k`).
    Kernel,
}

/// Bits of the flag word of the attribute, in the order of the C bit field.
pub mod flag {
    #![allow(missing_docs, reason = "the names are those of the kernel's header")]
    pub const DISABLED: u64 = 1 << 0;
    pub const INHERIT: u64 = 1 << 1;
    pub const PINNED: u64 = 1 << 2;
    pub const EXCLUSIVE: u64 = 1 << 3;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HV: u64 = 1 << 6;
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    pub const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const FREQ: u64 = 1 << 10;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const EXCLUDE_HOST: u64 = 1 << 19;
    pub const EXCLUDE_GUEST: u64 = 1 << 20;
    pub const MMAP2: u64 = 1 << 23;
    pub const USE_CLOCKID: u64 = 1 << 25;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
}

/// Bit of `branch_sample_type`: a hardware index precedes the branches.
pub(super) const BRANCH_HW_INDEX: u64 = 1 << 17;
/// Bit of `branch_sample_type`: one word of counters for each branch follows them.
pub(super) const BRANCH_COUNTERS: u64 = 1 << 19;

/// The smallest attribute that was ever published (`PERF_ATTR_SIZE_VER0`).
pub(super) const ATTR_SIZE_VER0: usize = 64;

/// A clock, as `clock_gettime` numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClockId(pub i32);

impl ClockId {
    /// `CLOCK_MONOTONIC`, what `perf record -k mono` asks for and jitdumps use.
    pub const MONOTONIC: Self = Self(1);
}

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0 => "realtime",
            1 => "monotonic",
            2 => "process_cpu_id",
            3 => "thread_cpu_id",
            4 => "monotonic_raw",
            5 => "realtime_coarse",
            6 => "monotonic_coarse",
            7 => "boottime",
            11 => "tai",
            _ => "(not found)",
        })
    }
}

/// One `perf_event_attr`. Fields that an older recording lacks are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attr {
    /// `PERF_TYPE_*` or the number of a dynamic PMU.
    pub type_: u32,
    /// Size in bytes that the recording gives for the attribute.
    pub size: u32,
    /// What to count, by `type_`.
    pub config: u64,
    /// Sampling period in event units, or the frequency in Hz when [`Attr::is_freq`].
    pub sample_period: u64,
    /// What samples hold: bits of [`sample_type`].
    pub sample_type: u64,
    /// What counter values hold: bits of [`read_format`].
    pub read_format: u64,
    /// The flag word: bits of [`flag`].
    pub flags: u64,
    /// `wakeup_events` or `wakeup_watermark`.
    pub wakeup: u32,
    /// Kind of breakpoint.
    pub bp_type: u32,
    /// `bp_addr`, `kprobe_func`, `uprobe_path`.
    pub config1: u64,
    /// `bp_len`, `kprobe_addr`, `probe_offset`.
    pub config2: u64,
    /// `enum perf_branch_sample_type`.
    pub branch_sample_type: u64,
    /// Which user registers samples hold.
    pub sample_regs_user: u64,
    /// How many bytes of user stack were asked for.
    pub sample_stack_user: u32,
    /// Clock of the time stamps if [`flag::USE_CLOCKID`] is set.
    pub clockid: i32,
    /// Which interrupted registers samples hold.
    pub sample_regs_intr: u64,
    /// AUX wakeup watermark.
    pub aux_watermark: u32,
    /// Longest callchain.
    pub sample_max_stack: u16,
    /// Bytes of AUX data in samples.
    pub aux_sample_size: u32,
    /// AUX action (pause, resume).
    pub aux_action: u32,
    /// Value passed back with SIGTRAP.
    pub sig_data: u64,
    /// Extension of `config2`.
    pub config3: u64,
}

impl Attr {
    /// Reads the attribute that fills `bytes`. What the attribute's own size (0 means the first
    /// version) does not cover is 0. `None` if not even version 0 is there.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let size = u32_at(bytes, 4)?;
        let own = if size == 0 {
            ATTR_SIZE_VER0
        } else {
            usize::try_from(size).ok()?
        };
        if own < ATTR_SIZE_VER0 || bytes.len() < ATTR_SIZE_VER0 {
            return None;
        }
        let b = bytes.get(..own).unwrap_or(bytes);
        let long = |at| u64_at(b, at).unwrap_or(0);
        let int = |at| u32_at(b, at).unwrap_or(0);
        Some(Self {
            type_: int(0),
            size,
            config: long(8),
            sample_period: long(16),
            sample_type: long(24),
            read_format: long(32),
            flags: long(40),
            wakeup: int(48),
            bp_type: int(52),
            config1: long(56),
            config2: long(64),
            branch_sample_type: long(72),
            sample_regs_user: long(80),
            sample_stack_user: int(88),
            clockid: int(92).cast_signed(),
            sample_regs_intr: long(96),
            aux_watermark: int(104),
            sample_max_stack: u16_at(b, 108).unwrap_or(0),
            aux_sample_size: int(112),
            aux_action: int(116),
            sig_data: long(120),
            config3: long(128),
        })
    }

    /// Whether samples hold the field of this [`sample_type`] bit.
    #[must_use]
    pub const fn has(&self, sample_type_bit: u64) -> bool {
        self.sample_type & sample_type_bit != 0
    }

    /// Whether the bit of [`flag`] is set.
    #[must_use]
    pub const fn flag(&self, bit: u64) -> bool {
        self.flags & bit != 0
    }

    /// Whether `sample_period` is a frequency in Hz.
    #[must_use]
    pub const fn is_freq(&self) -> bool {
        self.flag(flag::FREQ)
    }

    /// Whether it has records written when threads lose and get processors.
    #[must_use]
    pub const fn is_context_switch(&self) -> bool {
        self.flag(flag::CONTEXT_SWITCH)
    }

    /// Demanded skid constraint, the number of `p`s in the event's name.
    #[must_use]
    pub const fn precise_ip(&self) -> u8 {
        ((self.flags >> 15) & 3) as u8
    }

    /// Whether records other than samples carry time and thread at their end.
    #[must_use]
    pub const fn sample_id_all(&self) -> bool {
        self.flag(flag::SAMPLE_ID_ALL)
    }

    /// Which code it counts, by `exclude_user` and `exclude_kernel`.
    #[must_use]
    pub const fn ring(&self) -> Ring {
        match (
            self.flag(flag::EXCLUDE_USER),
            self.flag(flag::EXCLUDE_KERNEL),
        ) {
            (false, true) => Ring::User,
            (true, false) => Ring::Kernel,
            _ => Ring::All,
        }
    }

    /// Whether samples have call chains: recorded, or stacks to unwind.
    #[must_use]
    pub const fn has_callchains(&self) -> bool {
        self.has(sample_type::CALLCHAIN) || self.has(sample_type::STACK_USER)
    }

    /// How many frames the kernel puts into a chain: what was asked for, or what `kernel.perf_event_max_stack` is by itself.
    #[must_use]
    pub const fn max_stack(&self) -> usize {
        /// `PERF_MAX_STACK_DEPTH` of `linux/perf_event.h`.
        const BY_ITSELF: usize = 127;
        match self.sample_max_stack {
            0 => BY_ITSELF,
            most => most as usize,
        }
    }

    /// Whether a counter of the processor counts it: `PERF_TYPE_HARDWARE`, `_HW_CACHE` or `_RAW`.
    #[must_use]
    pub const fn is_hardware(&self) -> bool {
        matches!(self.type_, 0 | 3 | 4)
    }

    /// Whether it is an event by the processor's own numbers (`PERF_TYPE_RAW`).
    #[must_use]
    pub const fn is_raw(&self) -> bool {
        self.type_ == 4
    }

    /// Whether it is a tracepoint (`PERF_TYPE_TRACEPOINT`).
    #[must_use]
    pub const fn is_tracepoint(&self) -> bool {
        self.type_ == 2
    }

    /// Whether it is a clock that was to tick more often than it does: every 10 µs at most (`perf_swevent_start_hrtimer`,
    /// `kernel/events/core.c`). Its samples say what was asked for.
    #[must_use]
    pub const fn is_clock_too_often(&self) -> bool {
        const SHORTEST: u64 = 10_000;
        let is_clock = matches!((self.type_, self.config), (1, 0 | 1));
        is_clock && !self.is_freq() && 0 < self.sample_period && self.sample_period < SHORTEST
    }

    /// What its periods are: software events may be clocks, hardware events cycles. What a clock says that was asked too often is
    /// no time.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        match (self.type_, self.config) {
            _ if self.is_clock_too_often() => Unit::Count,
            (1, 0 | 1) => Unit::Nanoseconds,
            (0, 0 | 9) => Unit::Cycles,
            _ => Unit::Count,
        }
    }

    /// Whether branch stacks are call stacks (`PERF_SAMPLE_BRANCH_CALL_STACK`, `--call-graph lbr`).
    #[must_use]
    pub const fn records_lbr_callstack(&self) -> bool {
        self.has(sample_type::BRANCH_STACK) && self.branch_sample_type & (1 << 11) != 0
    }

    /// Whether samples have branch stacks that are no call stacks (`perf record -b`).
    #[must_use]
    pub const fn has_branches(&self) -> bool {
        self.has(sample_type::BRANCH_STACK) && !self.records_lbr_callstack()
    }

    /// The clock of the time stamps; `None` means the kernel's own (`perf_clock`).
    #[must_use]
    pub fn clock(&self) -> Option<ClockId> {
        self.flag(flag::USE_CLOCKID)
            .then_some(ClockId(self.clockid))
    }
}

#[cfg(test)]
mod tests {
    use linux_perf_data::linux_perf_event_reader as reader;
    use reader::{AttrFlags, ReadFormat, RecordType, SampleFormat};

    use super::{flag, read_format, sample_type};
    use crate::perfdata::records::kind;

    /// Written by somebody else from the same header.
    #[test]
    fn numbers_are_those_of_another_reader() {
        let formats = SampleFormat::all().bits();
        assert_eq!(formats, sample_type::WEIGHT_STRUCT * 2 - 1);
        for (ours, theirs) in [
            (sample_type::REGS_USER, SampleFormat::REGS_USER.bits()),
            (sample_type::DATA_SRC, SampleFormat::DATA_SRC.bits()),
            (sample_type::IDENTIFIER, SampleFormat::IDENTIFIER.bits()),
            (sample_type::CGROUP, SampleFormat::CGROUP.bits()),
            (read_format::ID, ReadFormat::ID.bits()),
            (read_format::GROUP, ReadFormat::GROUP.bits()),
            (flag::FREQ, AttrFlags::FREQ.bits()),
            (flag::SAMPLE_ID_ALL, AttrFlags::SAMPLE_ID_ALL.bits()),
            (flag::MMAP2, AttrFlags::MMAP2.bits()),
            (flag::CONTEXT_SWITCH, AttrFlags::CONTEXT_SWITCH.bits()),
        ] {
            assert_eq!(ours, theirs);
        }
        for (ours, theirs) in [
            (kind::MMAP, RecordType::MMAP),
            (kind::SAMPLE, RecordType::SAMPLE),
            (kind::MMAP2, RecordType::MMAP2),
            (kind::LOST_SAMPLES, RecordType::LOST_SAMPLES),
            (kind::CGROUP, RecordType::CGROUP),
            (kind::TEXT_POKE, RecordType::TEXT_POKE),
        ] {
            assert_eq!(ours, theirs.0);
        }
    }
}
