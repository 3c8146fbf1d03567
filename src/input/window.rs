//! Bounds how much of a recording is resident while it is walked through.
//!
//! In: the position that a walk has reached. Effect: pages that lie far behind go back to the system.
//! Recordings are larger than memory sometimes; without this every page ever touched stays mapped.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Store;

/// A walk from the front to the back of a mapped file, by any number of threads.
pub struct Window<'a> {
    store: &'a Store,
    bytes: &'a [u8],
    /// Everything in front of this offset was given back.
    released: AtomicUsize,
}

impl<'a> Window<'a> {
    /// Bytes that stay resident behind the walk. Large, because the second pass over a recording finds the
    /// pages of the first still there when it is smaller than this.
    pub const BEHIND: usize = 1 << 30;
    /// Pages are given back in steps of this many bytes: a system call each.
    const STEP: usize = 64 << 20;

    /// A walk over `bytes`, which `store` has mapped.
    #[must_use]
    pub fn new(store: &'a Store, bytes: &'a [u8]) -> Self {
        Self {
            store,
            bytes,
            released: AtomicUsize::new(0),
        }
    }

    /// The walk has come to `offset`. Threads may be a little apart; [`Self::BEHIND`] covers that.
    pub fn reached(&self, offset: usize) {
        let from = self.released.load(Ordering::Relaxed);
        let to = offset.min(self.bytes.len()).saturating_sub(Self::BEHIND);
        if to < from.saturating_add(Self::STEP) {
            return;
        }
        let mine = self
            .released
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_ok() {
            self.store.release(&self.bytes[from..to]);
        }
    }
}
