//! Reading a recording: bytes of `perf.data` in, parsed records in delivery order out.
//!
//! File mode, pipe mode (a stream, or one saved to a file) and zstd-compressed records share one
//! path: a [`Recording`] is a list of *chunks* of whole records. For a plain file there is one chunk,
//! the map itself; for streams and compressed records a chunk is some megabytes that are kept
//! compressed or decoded again when needed.
//!
//! Two passes: [`Recording::deliver`] walks the headers once and hands every record, samples as
//! [`SampleHead`]s, to the session builder in perf's order (`util/ordered-events.c`); the stacks are read in a
//! second, parallel pass by [`Recording::chunks`] and [`Event::parse_sample`].
//!
//! Nothing here opens files other than through [`crate::input`]; nothing here interprets what a
//! record means for the state of a process.

pub mod attr;
mod branch;
mod bytes;
mod chunks;
mod counts;
mod deliver;
mod event_name;
pub mod features;
mod foreign;
mod head;
mod header_text;
mod inflate;
mod memory;
mod open;
mod order;
mod records;
mod sample;
mod source;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tracing;

pub use crate::build_id::BuildId;
pub use attr::{Attr, ClockId, Ring};
pub use branch::{Branch, BranchStack};
pub use chunks::{Chunks, RecordPos};
pub use counts::{EventUpdate, MappedThread, Stat, StatConfig, StatRound, mapped_threads};
pub use features::{BuildIdEntry, ClockData, Features};
pub use foreign::{Foreign, Packer};
pub use head::SampleHead;
pub use memory::{Cost, DataSource};
pub use open::{OpenError, Recording};
pub use order::{Damage, DeliverStats, Delivered, Trace};
pub use records::{Inode, Mmap, Record, TimeConv};
pub use sample::{Callchain, ReadValues, Registers, Sample, SampleError};
pub use tracing::{FieldAt, FieldKey, FieldValue, Functions, NoField, Tracepoints};

crate::ids::numbers! {
    /// Index of an event of the recording, in file order.
    #[derive(Default)]
    pub struct EventId(pub u16);
}

/// What was counted: one `perf_event_attr` with its name and ids.
#[derive(Clone, Debug)]
pub struct Event {
    /// Name as perf prints it (`cpu-clock:ppp`, `sched:sched_switch`).
    pub name: String,
    /// The attributes it was opened with.
    pub attr: Attr,
    /// The kernel's ids of its counters, one for each CPU or thread.
    pub ids: Vec<u64>,
    /// The leader of its group, itself if it leads one or stands alone.
    pub leader: EventId,
    /// Name of its group if it leads one that was named on the command line.
    pub group_name: Option<String>,
}

/// The processor mode of a record: the low three bits of `misc`
/// (`PERF_RECORD_MISC_CPUMODE_MASK`, `include/uapi/linux/perf_event.h`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum CpuMode {
    /// Not told.
    #[default]
    Unknown,
    /// `[k]`
    Kernel,
    /// `[.]`
    User,
    /// `[H]`
    Hypervisor,
    /// `[g]`
    GuestKernel,
    /// `[u]`
    GuestUser,
}

impl CpuMode {
    /// The mode in the low bits of a record's `misc`.
    #[must_use]
    pub const fn from_misc(misc: u16) -> Self {
        match misc & 7 {
            1 => Self::Kernel,
            2 => Self::User,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }
}
