//! The records of samples, read before the parallel pass for what decides their weight.
//!
//! In: which samples, and what to take of each. Out: a number or two for each sample, in their order.

use crate::diagnostics::Diagnostics;
use crate::ids::Idx;
use crate::input::Store;
use crate::perfdata::{Event, Recording, Sample};
use crate::session::records::Records;
use crate::session::{SampleRef, Session};

/// Where records are.
#[derive(Clone, Copy)]
pub struct Source<'s, 'a> {
    /// The recording, which was gone through once.
    pub recording: &'s Recording<'a>,
    /// What is known of it.
    pub session: &'s Session<'a>,
    /// What has it mapped.
    pub store: &'s Store,
    /// Worker threads.
    pub threads: usize,
    /// Where trouble is told.
    pub diag: &'s Diagnostics,
}

/// The program's stack pointer, or 0 if the sample does not have it.
pub(super) fn stack_pointer(sample: &Sample<'_>) -> u64 {
    /// perf's numbers of the register on aarch64 and x86, and of one that x86-64 alone has: there the former is not recorded.
    const AARCH64: u32 = 31;
    const X86: u32 = 7;
    const R8: u32 = 16;
    let pointer = sample.user_regs.and_then(|regs| {
        let of_x86 = || regs.get(R8).and_then(|_| regs.get(X86));
        regs.get(AARCH64).or_else(of_x86)
    });
    pointer.unwrap_or(0)
}

impl Source<'_, '_> {
    /// The number of an event.
    pub(super) fn index(&self, event: &Event) -> Option<usize> {
        // It is called for each sample: their distance tells, in place of a search.
        let events = &self.recording.events;
        let from = std::ptr::from_ref(event) as usize;
        let index = from.checked_sub(events.as_ptr() as usize)? / size_of::<Event>();
        (index < events.len()).then_some(index)
    }

    /// How many samples are read at a time: what is not mapped has to be decoded, all at once.
    pub(super) fn piece(&self, samples: &[SampleRef]) -> usize {
        const PIECE: usize = 1 << 15;
        let positions = samples.iter().map(|sample| sample.pos);
        if self.recording.is_read_directly(positions) {
            PIECE
        } else {
            usize::MAX
        }
    }

    /// What `take` finds in each sample of the `wanted` events; the default for the others, and where it finds nothing.
    pub(super) fn read<T: Clone + Default + Send>(
        &self,
        samples: &[SampleRef],
        wanted: &[bool],
        take: impl Fn(&Event, &Sample<'_>) -> Option<T> + Sync,
    ) -> Vec<T> {
        let is_wanted = |sample: &SampleRef| wanted[sample.event.index()];
        let records = Records {
            recording: self.recording,
            store: self.store,
            threads: self.threads,
        };
        let parts = records.read(samples, &is_wanted, |piece| {
            let mut found = vec![T::default(); piece.len()];
            piece.each(|at, sample, record| {
                let event = &self.recording.events[sample.layout];
                let parsed = record.and_then(|record| event.parse_sample(record).ok());
                let taken = parsed.and_then(|parsed| take(event, &parsed));
                found[at] = taken.unwrap_or_default();
            });
            found
        });
        parts.concat()
    }
}
