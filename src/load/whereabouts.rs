//! Where what belongs to a recording was when it was made: its processes, and the dumps that they had mapped.
//!
//! In: a recording. Out: numbers and recorded paths; nothing is looked for on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{LoadError, Source};
use crate::address::Timestamp;
use crate::build_id::BuildId;
use crate::diagnostics::Diagnostics;
use crate::find::dump_of_mapping;
use crate::input::Store;
use crate::perfdata::{CpuMode, Delivered, Mmap, Record};

/// What a recording says of its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// All that it names.
    pub processes: BTreeSet<u32>,
    /// Those that began while it was made.
    pub born: BTreeSet<u32>,
    /// Paths of dumps, with the processes that had them mapped.
    pub dumps: BTreeMap<Vec<u8>, BTreeSet<u32>>,
    /// Paths of files whose code was mapped, with the processes, and the builds that are told.
    pub programs: BTreeMap<Vec<u8>, Mapped>,
    /// Samples, by process.
    pub samples: BTreeMap<u32, u64>,
    /// Samples in the kernel.
    pub in_kernel: u64,
    /// Names of its events.
    pub events: Vec<String>,
    /// Those that ended while it was made.
    ended: BTreeSet<u32>,
    /// Times of its first and last record that have some, in ns.
    span: Option<(u64, u64)>,
    /// Whether the kernel could not write all records.
    has_lost: bool,
}

/// Who had a file mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Processes.
    pub by: BTreeSet<u32>,
    /// Build IDs, where the kernel told them.
    pub builds: BTreeSet<BuildId>,
}

/// Reads them.
///
/// # Errors
/// When the recording cannot be opened.
pub fn whereabouts(source: &Source, diag: &Diagnostics) -> Result<Whereabouts, LoadError> {
    let store = Store::new();
    let recording = source.open(&store, diag)?;
    recording.read_once();
    let mut found = Whereabouts {
        events: recording
            .events
            .iter()
            .map(|event| event.name.clone())
            .collect(),
        ..Whereabouts::default()
    };
    recording.deliver(diag, &mut |_| {}, &mut |delivered| found.take(delivered));
    Ok(found)
}

impl Whereabouts {
    fn take(&mut self, delivered: Delivered<'_>) {
        match delivered {
            Delivered::Sample(head) => {
                self.take_time(head.time);
                *self.samples.entry(head.pid).or_default() += 1;
                self.in_kernel += u64::from(head.cpumode == CpuMode::Kernel);
            }
            Delivered::Record { record, time, .. } => {
                self.take_time(time);
                self.take_record(&record);
            }
        }
    }

    fn take_record(&mut self, record: &Record<'_>) {
        match *record {
            Record::Mmap(Mmap {
                pid,
                name,
                executable,
                build_id,
                ..
            }) => {
                if let Some(path) = dump_of_mapping(name) {
                    self.dumps.entry(path.to_vec()).or_default().insert(pid);
                } else if executable && name.starts_with(b"/") {
                    let mapped = self.programs.entry(name.to_vec()).or_default();
                    mapped.by.insert(pid);
                    mapped.builds.extend(build_id);
                }
            }
            Record::Comm { pid, .. } => drop(self.processes.insert(pid)),
            Record::Fork {
                pid,
                ppid,
                synthesized,
                ..
            } => {
                self.processes.insert(pid);
                if !synthesized && pid != ppid {
                    self.born.insert(pid);
                }
            }
            Record::Exit { pid, tid, .. } if pid == tid => drop(self.ended.insert(pid)),
            Record::Lost { .. } => self.has_lost = true,
            _ => {}
        }
    }

    fn take_time(&mut self, time: Timestamp) {
        let Timestamp(time @ 1..) = time else { return };
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    /// How long it goes, if it ends before a process did that it is of: the end of that is a record. Where some were lost, that may
    /// be among them.
    #[must_use]
    pub fn ends_before(&self, pid: u32) -> Option<Duration> {
        let (first, last) = self.span?;
        let is_cut = !self.has_lost && !self.ended.contains(&pid);
        is_cut.then(|| Duration::from_nanos(last - first))
    }
}
