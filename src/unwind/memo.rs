//! The rule for each place met so far: a flat hash table, one cache line's half per entry.
//!
//! Nearly every frame of every sample is answered here, so the table holds the rule itself and
//! not a reference to it.

use super::rules::Rule;
use super::{FramePlace, UserFrame};

/// What is known about a place. 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    key: u64,
    pub(super) rule: Rule,
    /// [`super::UserFrame::id`].
    pub(super) id: u32,
    /// Whether the address behind the place follows a call instruction.
    pub(super) call: CallCheck,
}

/// Outcome of the check for a call instruction before a return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallCheck {
    /// Nobody asked yet.
    Untested,
    /// There is one.
    Call,
    /// There is something else.
    NoCall,
    /// The bytes are not at hand.
    NoBytes,
}

/// Key of an empty slot; [`key_of`] never makes it.
const EMPTY: u64 = u64::MAX;
/// Slots of a fresh table: 128 KiB.
const INITIAL: usize = 4096;

/// Packs a place into 63 bits and a tag. `None` for places without identity and for those
/// that do not fit (a 16 TiB file, the 500 000th DSO), which are worked out anew each time.
#[inline]
pub(super) fn key_of(place: &FramePlace) -> Option<u64> {
    let key = match *place {
        FramePlace::File { dso, offset } if dso.0 < 1 << 19 && offset.0 < 1 << 44 => {
            u64::from(dso.0) << 44 | offset.0
        }
        FramePlace::Jit { id, offset } if id.0 < u32::MAX >> 1 && offset < 1 << 32 => {
            1 << 63 | u64::from(id.0) << 32 | offset
        }
        _ => return None,
    };
    Some(key)
}

/// Open addressing with linear probing, at most half full.
pub(super) struct Memo {
    slots: Vec<Entry>,
    used: usize,
}

impl Memo {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![Entry::EMPTY; INITIAL],
            used: 0,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.used).unwrap_or(u32::MAX)
    }

    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<&Entry> {
        let slot = &self.slots[self.find(key)];
        (slot.key == key).then_some(slot)
    }

    /// Adds the rule of a place that is not in the table, and returns its entry.
    pub(super) fn insert(&mut self, key: u64, rule: Rule) -> Entry {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let entry = Entry {
            key,
            rule,
            id: self.len(),
            call: CallCheck::Untested,
        };
        let at = self.find(key);
        self.slots[at] = entry;
        self.used += 1;
        entry
    }

    /// Remembers the outcome of a call check.
    pub(super) fn set_call(&mut self, entry: &Entry, call: CallCheck) {
        let at = self.find(entry.key);
        if entry.key != EMPTY && self.slots[at].key == entry.key {
            self.slots[at].call = call;
        }
    }

    /// The slot of a key, or the empty one where it belongs.
    #[inline]
    fn find(&self, key: u64) -> usize {
        // The length is a power of two and the table never full, so this ends.
        let mask = self.slots.len() - 1;
        let mut at = spread(key) & mask;
        while self.slots[at].key != key && self.slots[at].key != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![Entry::EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, doubled);
        for entry in old.into_iter().filter(|e| e.key != EMPTY) {
            let at = self.find(entry.key);
            self.slots[at] = entry;
        }
    }
}

impl Entry {
    const EMPTY: Self = Self {
        key: EMPTY,
        rule: Rule::NONE,
        id: UserFrame::NO_ID,
        call: CallCheck::Untested,
    };

    /// The rule of a place that has no key.
    pub(super) const fn unkept(rule: Rule) -> Self {
        Self {
            rule,
            ..Self::EMPTY
        }
    }
}

/// Multiplicative hash; its good bits are the high ones.
#[inline]
fn spread(key: u64) -> usize {
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(hash >> 24).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::FileOffset;
    use crate::dso::DsoId;
    use crate::session::jit::JitCodeId;

    #[test]
    fn keeps_every_key_while_growing() {
        let mut memo = Memo::new();
        for i in 0..20_000u32 {
            let entry = memo.insert(
                u64::from(i) * 16,
                Rule {
                    cfa_offset: i.cast_signed(),
                    ..Rule::NONE
                },
            );
            assert_eq!(entry.id, i);
        }
        let entry = *memo.get(160).expect("was inserted");
        memo.set_call(&entry, CallCheck::Call);
        for i in 0..20_000u32 {
            let entry = memo.get(u64::from(i) * 16).expect("was inserted");
            assert_eq!((entry.id, entry.rule.cfa_offset), (i, i.cast_signed()));
        }
        assert_eq!(memo.get(160).map(|e| e.call), Some(CallCheck::Call));
        assert!(memo.get(8).is_none());
    }

    #[test]
    fn places_have_distinct_keys() {
        let file = key_of(&FramePlace::File {
            dso: DsoId(3),
            offset: FileOffset(0x1000),
        });
        let jit = key_of(&FramePlace::Jit {
            id: JitCodeId(3),
            offset: 0x1000,
        });
        assert!(file.is_some() && jit.is_some() && file != jit);
        assert_eq!(key_of(&FramePlace::Anonymous), None);
        assert_eq!(
            key_of(&FramePlace::File {
                dso: DsoId(0),
                offset: FileOffset(1 << 44)
            }),
            None
        );
        assert_eq!(
            key_of(&FramePlace::Jit {
                id: JitCodeId(u32::MAX),
                offset: u64::from(u32::MAX)
            }),
            None
        );
    }
}
