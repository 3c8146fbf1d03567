//! The rule for each place met so far.
//!
//! Nearly every frame of every sample that is not its predecessor's is answered here. Large modules come by a hundred
//! thousand places, so what counts is how many of them fit into a processor's cache: an entry is 16 bytes, the hash
//! table has four-byte numbers, and rules, of which there are few, are kept apart.

use rustc_hash::FxHashMap;

use super::rules::Rule;
use super::{FramePlace, FramePlaceId};
use crate::dso::DsoId;
use crate::ids::{Idx, IndexVec, numbers};
use crate::input::prefetch;

numbers! {
    /// A rule among those that places share.
    struct RuleId(u32);
}

/// What is known about a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPlace {
    pub(super) rule: Rule,
    /// Its number; nothing for a place without identity.
    pub(super) id: Option<FramePlaceId>,
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

/// Slots of a fresh table: 16 KiB.
const INITIAL: usize = 4096;

/// Packs a place into 63 bits and a tag. `None` for places without identity and for those
/// that do not fit (a 16 TiB file, the 500 000th DSO), which are worked out anew each time.
#[inline]
pub(super) fn key_of(place: &FramePlace) -> Option<u64> {
    let key = match *place {
        FramePlace::File { dso, offset } if dso.index() < 1 << 19 && offset.0 < 1 << 44 => {
            (dso.index() as u64) << 44 | offset.0
        }
        FramePlace::Jit { id, offset } if id.0 < u32::MAX >> 1 && offset < 1 << 32 => {
            1 << 63 | u64::from(id.0) << 32 | offset
        }
        _ => return None,
    };
    Some(key)
}

/// What is kept of a place.
#[derive(Clone, Copy)]
struct Kept {
    key: u64,
    rule: CheckedRule,
}

/// Number of a rule, and a [`CallCheck`] in the lowest two bits.
#[derive(Clone, Copy)]
struct CheckedRule(u32);

impl CheckedRule {
    /// Rules that there is room for. More different ones would take more memory than there is.
    const MOST: usize = 1 << 30;

    const fn new(rule: RuleId, call: CallCheck) -> Self {
        Self(rule.0 << 2 | call as u32)
    }

    #[inline]
    const fn rule(self) -> RuleId {
        RuleId(self.0 >> 2)
    }

    #[inline]
    const fn call(self) -> CallCheck {
        match self.0 & 3 {
            0 => CallCheck::Untested,
            1 => CallCheck::Call,
            2 => CallCheck::NoCall,
            _ => CallCheck::NoBytes,
        }
    }
}

/// A table of the numbers of entries: open addressing with linear probing, at most half full.
pub(super) struct Memo {
    slots: Vec<Option<FramePlaceId>>,
    kept: IndexVec<FramePlaceId, Kept>,
    /// Most places share theirs with many others.
    rules: IndexVec<RuleId, Rule>,
    rule_numbers: FxHashMap<Rule, RuleId>,
}

impl Memo {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![None; INITIAL],
            kept: IndexVec::new(),
            rules: IndexVec::new(),
            rule_numbers: FxHashMap::default(),
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The files that places lie in, each once.
    pub(super) fn files(&self) -> Vec<DsoId> {
        let keys = self.kept.iter().map(|kept| kept.key);
        let files = keys.filter(|key| key >> 63 == 0);
        let mut files: Vec<DsoId> = files
            .map(|key| DsoId::from_usize((key >> 44) as usize))
            .collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<KnownPlace> {
        let (id, kept) = self.find(key).ok()?;
        Some(self.known(id, kept))
    }

    /// The entry of a number, if that is the one of the key.
    #[inline]
    pub(super) fn numbered(&self, id: FramePlaceId, key: u64) -> Option<KnownPlace> {
        let kept = self.kept.get(id)?;
        (kept.key == key).then(|| self.known(id, kept))
    }

    #[inline]
    fn known(&self, id: FramePlaceId, kept: &Kept) -> KnownPlace {
        KnownPlace {
            rule: self.rules[kept.rule.rule()],
            id: Some(id),
            call: kept.rule.call(),
        }
    }

    /// Gets the entry of a key on its way, by its number if that is known.
    pub(super) fn expect(&self, number: Option<FramePlaceId>, key: u64) {
        match number.and_then(|number| self.kept.get(number)) {
            Some(kept) => prefetch(std::slice::from_ref(kept)),
            None => prefetch(std::slice::from_ref(&self.slots[self.first_slot(key)])),
        }
    }

    /// Adds the rule of a place that is not in the table, and returns its entry.
    pub(super) fn insert(&mut self, key: u64, rule: Rule) -> KnownPlace {
        if self.kept.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let unkept = KnownPlace::unkept(rule);
        let Err(slot) = self.find(key) else {
            return unkept;
        };
        let next = self.rules.next_idx();
        let number = *self.rule_numbers.entry(rule).or_insert(next);
        if number.index() >= CheckedRule::MOST {
            return unkept;
        }
        if number == next {
            self.rules.push(rule);
        }
        let id = self.kept.push(Kept {
            key,
            rule: CheckedRule::new(number, unkept.call),
        });
        self.slots[slot] = Some(id);
        KnownPlace {
            id: Some(id),
            ..unkept
        }
    }

    /// Remembers the outcome of a call check.
    pub(super) fn set_call(&mut self, entry: &KnownPlace, call: CallCheck) {
        if let Some(id) = entry.id {
            let kept = &mut self.kept[id];
            kept.rule = CheckedRule::new(kept.rule.rule(), call);
        }
    }

    /// The entry of a key, or the empty slot where it belongs.
    #[inline]
    fn find(&self, key: u64) -> Result<(FramePlaceId, &Kept), usize> {
        // The length is a power of two and the table never full, so this ends.
        let mut at = self.first_slot(key);
        while let Some(id) = self.slots[at] {
            let kept = &self.kept[id];
            if kept.key == key {
                return Ok((id, kept));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        Err(at)
    }

    #[inline]
    fn first_slot(&self, key: u64) -> usize {
        spread(key) & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.slots.len() * 2;
        // The old table is given back before the new one is made.
        self.slots = Vec::new();
        self.slots = vec![None; len];
        for (id, kept) in self.kept.iter_enumerated() {
            let mut at = spread(kept.key) & (len - 1);
            while self.slots[at].is_some() {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = Some(id);
        }
    }
}

impl KnownPlace {
    /// The rule of a place that has no key.
    pub(super) const fn unkept(rule: Rule) -> Self {
        Self {
            rule,
            id: None,
            call: CallCheck::Untested,
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
    use crate::jit::JitCodeId;

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
            assert_eq!(entry.id.map(Idx::index), Some(i as usize));
        }
        let entry = memo.get(160).expect("was inserted");
        memo.set_call(&entry, CallCheck::Call);
        for i in 0..20_000u32 {
            let entry = memo.get(u64::from(i) * 16).expect("was inserted");
            assert_eq!(entry.id.map(Idx::index), Some(i as usize));
            assert_eq!(entry.rule.cfa_offset, i.cast_signed());
        }
        assert_eq!(memo.get(160).map(|e| e.call), Some(CallCheck::Call));
        assert!(memo.get(8).is_none());
    }

    #[test]
    fn places_have_distinct_keys() {
        let file = key_of(&FramePlace::File {
            dso: DsoId::from_usize(3),
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
                dso: DsoId::from_usize(0),
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
