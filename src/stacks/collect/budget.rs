//! How much the second pass keeps of what a recording holds in few bytes.
//!
//! A compressed recording of 300 kB can hold a gigabyte of long call chains that differ in one address each, and the format of
//! a tracepoint makes kilobytes of a payload of a few bytes. What is kept is counted, over all threads; behind the budget stacks
//! have their leaf alone, payloads no text, and that is said.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::diagnostics::Diagnostics;
use crate::perfdata::Recording;

/// Frames of distinct stacks: 256 MB.
const FRAMES: usize = 64 << 20;
/// Bytes of distinct texts of payloads.
const TEXTS: usize = 256 << 20;

/// What may still be kept.
pub(super) struct Budget {
    most_frames: usize,
    most_texts: usize,
    frames: AtomicUsize,
    texts: AtomicUsize,
    without_callers: AtomicUsize,
    without_text: AtomicUsize,
}

impl Budget {
    /// The budget of a recording. What is not compressed has no more frames than bytes, and may keep them.
    pub(super) fn of(recording: &Recording<'_>) -> Self {
        let frames = if recording.is_compressed() {
            FRAMES.max(recording.region().len() / size_of::<u64>())
        } else {
            usize::MAX
        };
        Self::new(frames, TEXTS)
    }

    fn new(most_frames: usize, most_texts: usize) -> Self {
        Self {
            most_frames,
            most_texts,
            frames: AtomicUsize::new(0),
            texts: AtomicUsize::new(0),
            without_callers: AtomicUsize::new(0),
            without_text: AtomicUsize::new(0),
        }
    }

    /// Whether a sample may have a stack that was not met before; it is counted if not.
    pub(super) fn has_frames(&self) -> bool {
        let has = self.frames.load(Ordering::Relaxed) < self.most_frames;
        if !has {
            self.without_callers.fetch_add(1, Ordering::Relaxed);
        }
        has
    }

    /// So many frames are kept.
    pub(super) fn keep_frames(&self, count: usize) {
        if count > 0 {
            self.frames.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The text that a payload has: its own, or none that is worth a word.
    pub(super) fn keep_text(&self, text: String) -> String {
        let before = self.texts.fetch_add(text.len(), Ordering::Relaxed);
        if before < self.most_texts {
            return text;
        }
        self.without_text.fetch_add(1, Ordering::Relaxed);
        "[cut]".to_owned()
    }

    /// Says what is missing.
    pub(super) fn say(&self, diag: &Diagnostics) {
        let callers = self.without_callers.load(Ordering::Relaxed);
        if callers > 0 {
            diag.warn(format!(
                "{callers} samples count without callers: the stacks of this compressed recording take more than {} MB",
                (self.most_frames * size_of::<u32>()) >> 20
            ));
        }
        let texts = self.without_text.load(Ordering::Relaxed);
        if texts > 0 {
            diag.warn(format!(
                "{texts} payloads of tracepoints are left out ([cut]): their texts take more than {} MB",
                self.most_texts >> 20
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_budget_is_counted_and_said() {
        let budget = Budget::new(10, 5);
        let diag = Diagnostics::new();
        assert!(budget.has_frames());
        budget.keep_frames(9);
        assert!(budget.has_frames());
        assert_eq!(budget.keep_text("12345".to_owned()), "12345");
        budget.say(&diag);
        assert_eq!(diag.warnings().len(), 0);
        budget.keep_frames(1);
        assert!(!budget.has_frames());
        assert_eq!(budget.keep_text("6".to_owned()), "[cut]");
        budget.say(&diag);
        let said = diag.warnings().join("\n");
        assert!(
            said.contains("1 samples") && said.contains("1 payloads"),
            "{said}"
        );
    }
}
