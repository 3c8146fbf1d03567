//! Walks through a mapped recording: pages ahead are mapped by a second thread, pages behind go back to the system.
//!
//! In: the position that a walk has reached. Effect: recordings are larger than memory sometimes; without giving
//! back every page ever touched stays resident. And mapping a page costs more than reading the front of the
//! records in it, so that a walk by one thread is half as fast as it could be.
//!
//! Tried and not better: `pread` of the front of each record (a system call costs as much as its share of a
//! fault), `MAP_POPULATE` and `MADV_POPULATE_READ` (the same work, and nobody to share it with), `MADV_RANDOM`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::Store;

/// A walk from the front to the back of a mapped file, by any number of threads.
pub struct Window<'a> {
    store: &'a Store,
    bytes: &'a [u8],
    /// Bytes that stay resident behind the walk.
    behind: usize,
    /// Where the walk is.
    reached: AtomicUsize,
    /// Everything in front of this offset was given back.
    released: AtomicUsize,
    ended: AtomicBool,
    /// A second thread runs ahead.
    scouted: bool,
}

impl<'a> Window<'a> {
    /// Bytes that stay behind a walk when nobody will read them again. Records wait for their turn, and threads
    /// may be a little apart; this covers both.
    pub const BEHIND: usize = 64 << 20;
    /// Bytes that stay behind a walk that another one will follow: mapping the pages of a smaller recording
    /// once more would take longer than everything else the first walk does.
    pub const BEHIND_FIRST: usize = 1 << 30;
    /// Pages are given back in steps of this many bytes: a system call each.
    const RELEASE_STEP: usize = 16 << 20;
    /// How often walks should tell where they are.
    pub const STEP: usize = 1 << 20;
    /// How far the scout goes ahead of the walk.
    const AHEAD: usize = 32 << 20;
    /// One fault maps so many bytes at once (`fault_around_bytes` of the kernel).
    const FAULT: usize = 64 << 10;

    /// A walk over `bytes`, which `store` has mapped, that keeps `behind` bytes.
    #[must_use]
    pub fn new(store: &'a Store, bytes: &'a [u8], behind: usize) -> Self {
        Self {
            store,
            bytes,
            behind,
            reached: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            scouted: false,
        }
    }

    /// The same walk with a scout, if there is a second of `threads` for it and it would save more than its thread
    /// costs.
    #[must_use]
    pub fn shared_by(self, threads: usize) -> Self {
        Self {
            scouted: threads > 1 && self.bytes.len() > Self::AHEAD / 4,
            ..self
        }
    }

    /// Whether somebody has to run [`scout`](Self::scout) beside the walk.
    #[must_use]
    pub fn is_scouted(&self) -> bool {
        self.scouted
    }

    /// The walk has come to `offset`. A scout gives pages back itself unless it cannot keep up.
    pub fn reached(&self, offset: usize) {
        if self.scouted {
            self.reached.store(offset, Ordering::Relaxed);
            self.release_behind(offset, Self::BEHIND);
        } else {
            self.release_behind(offset, Self::RELEASE_STEP);
        }
    }

    /// The walk is at its end; its scout goes home.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Runs ahead of the walk and touches its pages, until the walk is at its end. It need not be the
    /// faster one: what the walk has reached by itself is left out.
    pub fn scout(&self) {
        const PAUSE: Duration = Duration::from_micros(100);
        let mut next = 0;
        while !self.ended.load(Ordering::Relaxed) {
            let reached = self.reached.load(Ordering::Relaxed);
            self.release_behind(reached, Self::RELEASE_STEP);
            // The step that the walk is in is its own.
            next = (reached + Self::STEP).max(next);
            if next > reached + Self::AHEAD || next >= self.bytes.len() {
                std::thread::sleep(PAUSE);
                continue;
            }
            let end = self.bytes.len().min(next + Self::STEP);
            for page in (next..end).step_by(Self::FAULT) {
                std::hint::black_box(self.bytes[page]);
            }
            next = end;
        }
    }

    /// Gives back what lies far behind `offset` when it is at least `step` bytes.
    fn release_behind(&self, offset: usize, step: usize) {
        let to = offset.min(self.bytes.len()).saturating_sub(self.behind);
        let from = self.released.load(Ordering::Relaxed);
        if to < from.saturating_add(step) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scout_comes_home_and_changes_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("data");
        let content: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).expect("written");
        let store = Store::new();
        let bytes = store.map(&super::super::Door::named(path)).expect("mapped");
        let window = Window {
            scouted: true,
            ..Window::new(&store, bytes, 0)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| window.scout());
            for offset in (0..=bytes.len()).step_by(10_000) {
                window.reached(offset);
            }
            window.end();
        });
        assert_eq!(bytes, content);
    }
}
