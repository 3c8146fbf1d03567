//! A look at all stacks before they are walked, for the sizes of frames in code that has frame pointers and no bytes.
//!
//! In: the samples of processes with such code. Out: [`FrameSizes`]. What is found is the same whoever looks at which sample first.

use super::again::limit_dump;
use super::map_cache::MapCache;
use super::space::SpaceAt;
use crate::arch::Arch;
use crate::input::Store;
use crate::perfdata::Recording;
use crate::session::frame_sizes::FrameSizes;
use crate::session::records::Records;
use crate::session::{SampleRef, Samples, Session};
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
    let is_wanted = |sample: &SampleRef| {
        let process = session.space(sample.space).process;
        session.jit.keeps_frames_in(process)
    };
    let look = Look {
        recording,
        session,
        limit: options.dump_limit,
    };
    let records = Records {
        recording,
        store,
        threads: options.threads,
    };
    let parts = records.read(&samples.all.raw, &is_wanted, |piece| {
        let (mut found, mut met) = (FrameSizes::default(), Met::default());
        let cache = MapCache::default();
        piece.each(|_, head, record| look.take(head, record, &cache, (&mut found, &mut met)));
        found
    });
    let mut found = FrameSizes::default();
    parts.into_iter().for_each(|part| found.join(part));
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
        (found, met): (&mut FrameSizes, &mut Met),
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
