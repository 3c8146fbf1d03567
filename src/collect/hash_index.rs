//! A table that finds items by hash: their numbers with half of the hash beside each, so that it is seldom asked about an item
//! that is not the one, and grows without asking about any. For what is larger than a processor's cache.

use crate::input::prefetch;

/// No item.
const NONE: u32 = u32::MAX;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct HashIndex {
    /// Open addressing, at most half full; a power of two. The low half of a hash, and the number.
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl HashIndex {
    /// Gets what is known of a hash on its way.
    pub(super) fn expect(&self, hash: u64) {
        if !self.slots.is_empty() {
            let at = hash as usize & (self.slots.len() - 1);
            prefetch(&self.slots[at..=at]);
        }
    }

    /// The item with this hash that `is` the one.
    pub(super) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                (_, NONE) => return None,
                (half, item) if half == hash as u32 && is(item) => return Some(item),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Adds an item that is not in.
    pub(super) fn add(&mut self, hash: u64, item: u32) {
        if self.used * 2 >= self.slots.len() {
            let len = (self.slots.len() * 2).max(64);
            let old = std::mem::replace(&mut self.slots, vec![(0, NONE); len]);
            for (half, item) in old.into_iter().filter(|slot| slot.1 != NONE) {
                self.put(half, item);
            }
        }
        self.put(hash as u32, item);
        self.used += 1;
    }

    /// Items have 32-bit numbers, so half a hash tells all places apart.
    fn put(&mut self, half: u32, item: u32) {
        let mask = self.slots.len() - 1;
        let mut at = half as usize & mask;
        while self.slots[at].1 != NONE {
            at = (at + 1) & mask;
        }
        self.slots[at] = (half, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_though_halves_of_hashes_are_equal() {
        let hash = |item: u32| u64::from(item) << 40 | u64::from(item % 700);
        let mut index = HashIndex::default();
        assert_eq!(index.find(1, |_| true), None);
        for item in 0..3000 {
            assert_eq!(index.find(hash(item), |at| at == item), None);
            index.expect(hash(item));
            index.add(hash(item), item);
        }
        for item in 0..3000 {
            assert_eq!(index.find(hash(item), |at| at == item), Some(item));
        }
    }
}
