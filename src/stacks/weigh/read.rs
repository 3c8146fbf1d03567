//! The records of samples, read before the parallel pass for what decides their weight.
//!
//! In: which samples, and what to take of each. Out: a number or two for each sample, in their order.

use crate::diagnostics::Diagnostics;
use crate::ids::Idx;
use crate::input::{Store, Window, prefetch};
use crate::parallel::in_parallel;
use crate::perfdata::{Event, RecordPos, Recording, Sample};
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

    /// Has the front of a record loaded, which is read soon.
    fn expect(&self, sample: Option<&SampleRef>) {
        // Of samples with a few frames all that is before the stack.
        const FRONT: usize = 256;
        let region = self.recording.region();
        let start = sample.map_or(usize::MAX, |sample| sample.pos.offset());
        if let Some(front) = region.get(start..region.len().min(start.saturating_add(FRONT))) {
            prefetch(front);
        }
    }

    /// What `take` finds in each sample of the `wanted` events; the default for the others, and where it finds nothing.
    pub(super) fn read<T: Clone + Default + Send>(
        &self,
        samples: &[SampleRef],
        wanted: &[bool],
        take: impl Fn(&Event, &Sample<'_>) -> Option<T> + Sync,
    ) -> Vec<T> {
        let is_wanted =
            |sample: &SampleRef| wanted[sample.event.index()] && sample.pos != RecordPos::NONE;
        let taken = |sample: &SampleRef, record: Option<&[u8]>| {
            let event = &self.recording.events[sample.layout];
            let parsed = record.and_then(|record| event.parse_sample(record).ok());
            parsed
                .and_then(|parsed| take(event, &parsed))
                .unwrap_or_default()
        };
        let mut found = vec![T::default(); samples.len()];
        let positions = samples.iter().map(|sample| sample.pos);
        if self.recording.is_read_directly(positions) {
            self.read_mapped(samples, &mut found, &is_wanted, &taken);
        } else {
            self.read_chunked(samples, &mut found, &is_wanted, &taken);
        }
        found
    }

    fn read_mapped<T: Send>(
        &self,
        samples: &[SampleRef],
        found: &mut [T],
        is_wanted: &(impl Fn(&SampleRef) -> bool + Sync),
        taken: &(impl Fn(&SampleRef, Option<&[u8]>) -> T + Sync),
    ) {
        const PIECE: usize = 4096;
        /// Samples that are read while another one is on its way from memory.
        const AHEAD: usize = 8;
        let window = Window::new(self.store, self.recording.region(), Window::BEHIND_FIRST);
        let pieces = samples.chunks(PIECE).zip(found.chunks_mut(PIECE));
        in_parallel(pieces.collect(), self.threads, |(samples, found)| {
            if let Some(first) = samples.first().filter(|s| s.pos != RecordPos::NONE) {
                window.reached(first.pos.offset());
            }
            for (at, (sample, slot)) in samples.iter().zip(found).enumerate() {
                self.expect(samples.get(at + AHEAD));
                if is_wanted(sample) {
                    *slot = taken(sample, self.recording.record_bytes(sample.pos));
                }
            }
        });
    }

    fn read_chunked<T>(
        &self,
        samples: &[SampleRef],
        found: &mut [T],
        is_wanted: &impl Fn(&SampleRef) -> bool,
        taken: &impl Fn(&SampleRef, Option<&[u8]>) -> T,
    ) {
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.retain(|rank| is_wanted(&samples[*rank]));
        order.sort_by_key(|rank| samples[*rank].pos);
        let chunks = self.recording.chunks_to_keep();
        let mut rest = order.as_slice();
        while !rest.is_empty()
            && let Some((number, bytes)) = chunks.next()
        {
            let here = rest.partition_point(|rank| samples[*rank].pos.chunk() <= number);
            let (now, later) = rest.split_at(here);
            for &rank in now {
                let sample = &samples[rank];
                if sample.pos.chunk() == number {
                    let record = Recording::record_in(&bytes, sample.pos);
                    found[rank] = taken(sample, record);
                }
            }
            rest = later;
        }
    }
}
