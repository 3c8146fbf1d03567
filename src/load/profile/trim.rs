//! Leaves out the frames that stacks begin with and that belong to what was measured, not to the program.
//!
//! In: a profile, and what to leave out. Out: the same with shorter stacks; rows begin at the first frame that is left.
//! Frames are told by their names, so inlined ones count, too.

use rustc_hash::FxHashMap;

use super::{FrameId, Profile, StackId};
use crate::ids::IndexVec;
use crate::weigh::Trim;

/// Shortens all stacks.
pub(super) fn trim(profile: &mut Profile, trim: Trim) {
    let ids = profile.frames.indices();
    let is_left_out: IndexVec<FrameId, bool> = ids
        .map(|frame| trim.leaves_out(profile.frame_name(frame)))
        .collect();
    let is_label: IndexVec<FrameId, bool> = (profile.frames.iter())
        .map(|frame| {
            let object = frame.object.map(|id| &profile[id]);
            object.is_some_and(super::Object::is_label)
        })
        .collect();
    let mut shorter: FxHashMap<StackId, StackId> = FxHashMap::default();
    let mut frames = Vec::new();
    let entries = profile.entries.iter_mut();
    let entries = entries.map(|entry| (&mut entry.stack, &mut entry.leaf));
    let samples = profile.samples.iter_mut();
    let samples = samples.map(|sample| (&mut sample.stack, &mut sample.leaf));
    for (of_row, leaf) in entries.chain(samples) {
        let stack = *of_row;
        let new = *shorter.entry(stack).or_insert_with(|| {
            let all = profile.stacks.get(stack);
            let labels = all.iter().take_while(|id| is_label[**id]).count();
            let rest = &all[labels..];
            let trimmed = rest.iter().take_while(|id| is_left_out[**id]).count();
            // Something has to be left of a stack.
            if trimmed == 0 || trimmed == rest.len() {
                return stack;
            }
            frames.clear();
            frames.extend_from_slice(&all[..labels]);
            frames.extend_from_slice(&rest[trimmed..]);
            let end = profile.stacks.end(stack);
            profile.stacks.push(&frames, end)
        });
        if new != stack {
            *of_row = new;
            *leaf = profile.stacks.get(new)[0];
        }
    }
}
