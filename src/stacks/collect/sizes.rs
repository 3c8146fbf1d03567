//! A look at all stacks before they are walked, for the sizes of frames in code that has frame pointers and no bytes.
//!
//! In: the samples of processes with such code. Out: [`FrameSizes`]. What is found is the same whoever looks at which sample first.

use super::again::limit_dump;
use super::map_cache::MapCache;
use super::space::SpaceAt;
use crate::arch::Arch;
use crate::ids::Idx;
use crate::input::{Store, Window};
use crate::parallel::in_parallel;
use crate::perfdata::{RecordPos, Recording};
use crate::session::frame_sizes::FrameSizes;
use crate::session::{SampleId, SampleRef, Samples, Session};
use crate::unwind::{Met, UserState, frame_sizes};

use super::Options;

/// Whether there is code whose frames are to be looked at before.
#[must_use]
pub fn needs_sizes(session: &Session<'_>) -> bool {
    session.jit.keeps_frames() && session.dsos.arch() == Some(Arch::X86_64)
}

/// The sizes of frames, as far as stacks of those samples tell.
#[must_use]
pub fn sizes<'a>(
    recording: &Recording<'a>,
    store: &Store,
    (session, samples): (&Session<'a>, &Samples),
    options: Options,
) -> FrameSizes {
    /// Samples that one thread takes at a time.
    const PIECE: usize = 4096;
    let all = &samples.all;
    let is_wanted = |rank: &usize| {
        let sample = &all[SampleId::from_usize(*rank)];
        let process = session.space(sample.space).process;
        sample.pos != RecordPos::NONE && session.jit.keeps_frames_in(process)
    };
    let mut wanted: Vec<usize> = (0..all.len()).filter(is_wanted).collect();
    let look = Look {
        recording,
        session,
        limit: options.dump_limit,
    };
    let sample = |rank: usize| &all[SampleId::from_usize(rank)];
    let mut found = FrameSizes::default();
    if recording.is_read_directly(all.iter().map(|sample| sample.pos)) {
        let window = Window::new(store, recording.region(), Window::BEHIND_FIRST);
        let pieces = wanted.chunks(PIECE).collect();
        let parts = in_parallel(pieces, options.threads, |ranks: &[usize]| {
            let (mut part, mut met) = (FrameSizes::default(), Met::default());
            let cache = MapCache::default();
            if let Some(first) = ranks.first() {
                window.reached(sample(*first).pos.offset());
            }
            for &rank in ranks {
                let record = recording.record_bytes(sample(rank).pos);
                look.take(sample(rank), record, &cache, &mut (&mut part, &mut met));
            }
            part
        });
        parts.into_iter().for_each(|part| found.join(part));
        return found;
    }
    wanted.sort_by_key(|rank| sample(*rank).pos);
    let (mut rest, cache, mut met) = (wanted.as_slice(), MapCache::default(), Met::default());
    let chunks = recording.chunks_to_keep();
    while !rest.is_empty()
        && let Some((number, bytes)) = chunks.next()
    {
        let here = rest.partition_point(|rank| sample(*rank).pos.chunk() <= number);
        let (now, later) = rest.split_at(here);
        for &rank in now {
            let record = Recording::record_in(&bytes, sample(rank).pos);
            let record = record.filter(|_| sample(rank).pos.chunk() == number);
            look.take(sample(rank), record, &cache, &mut (&mut found, &mut met));
        }
        rest = later;
    }
    found
}

struct Look<'s, 'a> {
    recording: &'s Recording<'a>,
    session: &'s Session<'a>,
    limit: Option<usize>,
}

impl<'s> Look<'s, '_> {
    /// Adds what the stack of a sample tells.
    fn take(
        &self,
        head: &SampleRef,
        record: Option<&[u8]>,
        cache: &'s MapCache<'s>,
        (found, met): &mut (&mut FrameSizes, &mut Met),
    ) {
        let event = &self.recording.events[head.layout];
        let Some(mut sample) = record.and_then(|bytes| event.parse_sample(bytes).ok()) else {
            return;
        };
        limit_dump(&mut sample, self.limit);
        let (Some(arch), Some(regs), Some(stack)) = (
            self.session.dsos.arch(),
            sample.user_regs,
            sample.user_stack,
        ) else {
            return;
        };
        let space = SpaceAt::of(self.session, head, cache);
        let state = UserState { regs, stack };
        let code = (head.space.0.into(), &space);
        frame_sizes(arch, &state, code, met, |code, size| found.add(code, size));
    }
}
