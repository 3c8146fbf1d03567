//! A table of addresses, as small as it can be: which block is at which address of a heap.
//!
//! In: addresses and numbers of blocks. Out: the same. Open addressing in parts, each of which grows on its own and by three quarters:
//! 15 to 26 bytes for each address, where a table that doubles takes up to 30, and for a moment half as much again.

use crate::ids::numbers;
use crate::input::prefetch;

numbers! {
    /// A block, in the order of those that count.
    pub struct BlockId(pub u32);
}

/// Parts of a table.
const PARTS: usize = 64;
/// Slots of a part that has any.
const LEAST: usize = 16;
/// What stands in a slot without a block.
const FREE: u32 = u32::MAX - 1;

/// An address in two halves, and the block.
type Slot = [u32; 3];

/// Blocks by address.
#[derive(Debug, Default, Clone)]
pub(super) struct Addresses {
    parts: Vec<Part>,
    len: usize,
}

#[derive(Debug, Default, Clone)]
struct Part {
    slots: Vec<Slot>,
    len: usize,
}

/// Where an address belongs: the part, and how far in it, as a fraction of all.
fn place(address: u64) -> (usize, u64) {
    let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((hash >> 58) as usize, hash << 6 >> 32)
}

fn split(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

fn joined(slot: &Slot) -> u64 {
    u64::from(slot[0]) | u64::from(slot[1]) << 32
}

impl Addresses {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Has what is known of an address loaded, which is asked for soon.
    pub(super) fn expect(&self, address: u64) {
        /// Tables of fewer are near.
        const FAR: usize = 1 << 14;
        if self.len < FAR {
            return;
        }
        let (part, at) = place(address);
        if let Some(part) = self.parts.get(part).filter(|part| part.len > 0) {
            prefetch(&part.slots[part.first(at)..][..1]);
        }
    }

    /// Puts a block at an address: the one that was there.
    pub(super) fn insert(&mut self, address: u64, block: BlockId) -> Option<BlockId> {
        if self.parts.is_empty() {
            self.parts = vec![Part::default(); PARTS];
        }
        let (part, at) = place(address);
        let before = self.parts[part].insert(address, at, block.0);
        self.len += usize::from(before.is_none());
        before.map(BlockId)
    }

    /// Takes the block at an address out.
    pub(super) fn remove(&mut self, address: u64) -> Option<BlockId> {
        let (part, at) = place(address);
        let block = self.parts.get_mut(part)?.remove(address, at)?;
        self.len -= 1;
        Some(BlockId(block))
    }

    /// All addresses and their blocks, in the order of the table.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, BlockId)> {
        let slots = self.parts.iter().flat_map(|part| &part.slots);
        let taken = slots.filter(|slot| slot[2] != FREE);
        taken.map(|slot| (joined(slot), BlockId(slot[2])))
    }
}

impl Part {
    /// The first slot for a fraction.
    fn first(&self, at: u64) -> usize {
        ((at * self.slots.len() as u64) >> 32) as usize
    }

    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() {
            0
        } else {
            slot + 1
        }
    }

    /// The slot of an address, or the free one where it would be. There is one.
    fn find(&self, address: u64, at: u64) -> usize {
        let halves = split(address);
        let mut slot = self.first(at);
        while self.slots[slot][2] != FREE && self.slots[slot][..2] != halves {
            slot = self.next(slot);
        }
        slot
    }

    fn insert(&mut self, address: u64, at: u64, block: u32) -> Option<u32> {
        if (self.len + 1) * 5 > self.slots.len() * 4 {
            self.grow();
        }
        let slot = self.find(address, at);
        let [low, high] = split(address);
        let before = std::mem::replace(&mut self.slots[slot], [low, high, block])[2];
        if before != FREE {
            return Some(before);
        }
        self.len += 1;
        None
    }

    fn remove(&mut self, address: u64, at: u64) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut hole = self.find(address, at);
        let block = self.slots[hole][2];
        if block == FREE {
            return None;
        }
        // What is behind it moves up, unless it is where it belongs.
        let mut slot = self.next(hole);
        while self.slots[slot][2] != FREE {
            let home = self.first(place(joined(&self.slots[slot])).1);
            let moves = if hole <= slot {
                home <= hole || home > slot
            } else {
                home <= hole && home > slot
            };
            if moves {
                self.slots[hole] = self.slots[slot];
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.slots[hole][2] = FREE;
        self.len -= 1;
        Some(block)
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() + self.slots.len() / 4 * 3).max(LEAST);
        let old = std::mem::replace(&mut self.slots, vec![[0, 0, FREE]; slots]);
        for slot in old.into_iter().filter(|slot| slot[2] != FREE) {
            let address = joined(&slot);
            let to = self.find(address, place(address).1);
            self.slots[to] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    proptest::proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            steps in proptest::collection::vec((0..3_u8, 0..300_u64), 0..2000)
        ) {
            let (mut ours, mut theirs) = (Addresses::default(), BTreeMap::new());
            for (block, (what, place)) in (0..).map(BlockId).zip(steps) {
                // As allocators give them, and some that lie apart.
                let address = if place % 7 == 0 { place << 40 } else { 0x7f00_0000_0000 + place * 16 };
                if what == 0 {
                    proptest::prop_assert_eq!(ours.remove(address), theirs.remove(&address));
                } else {
                    proptest::prop_assert_eq!(ours.insert(address, block), theirs.insert(address, block));
                }
                proptest::prop_assert_eq!(ours.len(), theirs.len());
            }
            let all: BTreeMap<u64, BlockId> = ours.iter().collect();
            proptest::prop_assert_eq!(all, theirs);
        }
    }

    /// With what a million addresses take, there is room for the blocks themselves in 48 bytes.
    #[test]
    fn a_slot_and_a_half_is_what_an_address_takes() {
        let mut table = Addresses::default();
        for number in 0..1_000_000_u32 {
            table.insert(0x7f00_0000_0000 + u64::from(number) * 48, BlockId(number));
        }
        let bytes = table
            .parts
            .iter()
            .map(|part| part.slots.len() * size_of::<Slot>());
        let each = bytes.sum::<usize>() as f64 / table.len() as f64;
        assert!((12.0..27.0).contains(&each), "{each}");
    }
}
