//! What a recording says about itself: host, command line, build IDs, clocks.
//!
//! In: the feature sections behind the data of a file, or the FEATURE records of a stream. Out:
//! [`Features`], plain values. Layouts: `tools/perf/util/header.c` and
//! `tools/perf/Documentation/perf.data-file-format.txt`.

use std::time::SystemTime;

use super::records::BuildId;
use super::{ClockId, CpuMode};

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
    /// Name from the command line; may be empty.
    pub name: String,
    /// Index of the leading event.
    pub leader: u32,
    /// Number of members.
    pub members: u32,
}

/// What the recording says about itself. Absent features are `None` or empty.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Features {
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
    /// Build IDs of files.
    pub build_ids: Vec<BuildIdEntry>,
    /// Resolution of the clock that was chosen with `-k`, in ns.
    pub clockid: Option<u64>,
    /// Wall clock and recording clock at one moment.
    pub clock_data: Option<ClockData>,
    /// Times of the first and the last sample.
    pub sample_time: Option<(u64, u64)>,
    /// Groups of events.
    pub groups: Vec<Group>,
    /// Last modification of the file.
    pub captured: Option<SystemTime>,
}
