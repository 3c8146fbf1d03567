//! The records of samples, read once more where their bytes lie: by several threads in a mapped file, else chunk by chunk.
//!
//! In: which samples. Out: their bytes, one sample after the other of a piece. What they mean the stages find out.

use super::SampleRef;
use crate::input::{Store, Window, prefetch};
use crate::parallel::in_parallel;
use crate::perfdata::{RecordPos, Recording};

/// Where records are.
#[derive(Clone, Copy)]
pub struct Records<'s, 'a> {
    /// The recording, which was gone through once.
    pub recording: &'s Recording<'a>,
    /// What has it mapped.
    pub store: &'s Store,
    /// Worker threads.
    pub threads: usize,
}

/// Samples that one thread reads.
pub struct Piece<'p, 'a> {
    recording: &'p Recording<'a>,
    samples: &'p [SampleRef],
    is_wanted: &'p (dyn Fn(&SampleRef) -> bool + Sync),
    /// The part of a mapped file that is looked at.
    window: Option<&'p Window<'p>>,
}

impl<'a> Records<'_, 'a> {
    /// What `work` makes of each piece of the samples, in their order. Of streams and compressed recordings there is one piece.
    pub fn read<R: Send>(
        &self,
        samples: &[SampleRef],
        is_wanted: &(dyn Fn(&SampleRef) -> bool + Sync),
        work: impl Fn(&Piece<'_, 'a>) -> R + Sync,
    ) -> Vec<R> {
        /// Samples that one thread takes at a time.
        const SIZE: usize = 4096;
        let recording = self.recording;
        let piece = |part, window| Piece {
            recording,
            samples: part,
            is_wanted,
            window,
        };
        if !recording.is_read_directly(samples.iter().map(|sample| sample.pos)) {
            return vec![work(&piece(samples, None))];
        }
        let window = Window::new(self.store, recording.region(), Window::BEHIND_FIRST);
        let pieces = samples.chunks(SIZE).collect();
        in_parallel(pieces, self.threads, |chunk: &[SampleRef]| {
            work(&piece(chunk, Some(&window)))
        })
    }
}

impl Piece<'_, '_> {
    /// Number of samples, wanted or not.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.samples.len()
    }

    /// True without samples.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Calls `see` with each wanted sample, its place in the piece, and the bytes of its record.
    pub fn each(&self, mut see: impl FnMut(usize, &SampleRef, Option<&[u8]>)) {
        /// Samples that are read while another one is on its way from memory.
        const AHEAD: usize = 8;
        let Some(window) = self.window else {
            return self.each_of_chunks(see);
        };
        let mut positions = self.samples.iter().map(|sample| sample.pos);
        if let Some(first) = positions.find(|pos| *pos != RecordPos::NONE) {
            window.reached(first.offset());
        }
        for (at, sample) in self.samples.iter().enumerate() {
            self.expect(self.samples.get(at + AHEAD));
            if self.wants(sample) {
                see(at, sample, self.recording.record_bytes(sample.pos));
            }
        }
    }

    fn wants(&self, sample: &SampleRef) -> bool {
        sample.pos != RecordPos::NONE && (self.is_wanted)(sample)
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

    fn each_of_chunks(&self, mut see: impl FnMut(usize, &SampleRef, Option<&[u8]>)) {
        let samples = self.samples;
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.retain(|rank| self.wants(&samples[*rank]));
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
                    see(rank, sample, Recording::record_in(&bytes, sample.pos));
                }
            }
            rest = later;
        }
    }
}
