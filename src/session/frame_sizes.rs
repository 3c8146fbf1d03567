//! How large frames of methods are of whose code nothing but the place is known.
//!
//! In: sizes that were seen, in any order. Out: for a piece of code the one that all of them say.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::jit::JitCodeId;

/// From the stack pointer in calls to the frame pointer, by method. Compilers settle it once for each method.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FrameSizes {
    /// Nothing where two sizes were seen: one of them, or both, are of something else.
    seen: FxHashMap<JitCodeId, Option<u64>>,
}

impl FrameSizes {
    /// A frame of that size was seen.
    pub fn add(&mut self, code: JitCodeId, size: u64) {
        self.merge(code, Some(size));
    }

    /// Takes what was seen elsewhere.
    pub fn join(&mut self, other: Self) {
        for (code, size) in other.seen {
            self.merge(code, size);
        }
    }

    /// The size of a method's frames, if it is known.
    #[must_use]
    pub fn of(&self, code: JitCodeId) -> Option<u64> {
        *self.seen.get(&code)?
    }

    fn merge(&mut self, code: JitCodeId, size: Option<u64>) {
        match self.seen.entry(code) {
            Entry::Vacant(new) => drop(new.insert(size)),
            Entry::Occupied(mut known) if *known.get() != size => drop(known.insert(None)),
            Entry::Occupied(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_with_two_sizes_has_none_in_whichever_order_they_come() {
        const CODES: [JitCodeId; 3] = [JitCodeId(1), JitCodeId(2), JitCodeId(3)];
        let of = |seen: &[(usize, u64)]| {
            let mut sizes = FrameSizes::default();
            seen.iter()
                .for_each(|(n, size)| sizes.add(CODES[*n], *size));
            sizes
        };
        let (one, other) = ([(0, 32), (1, 16), (0, 32)], [(1, 48), (2, 0), (0, 32)]);
        let mut joined = of(&one);
        joined.join(of(&other));
        assert_eq!(CODES.map(|code| joined.of(code)), [Some(32), None, Some(0)]);
        let mut turned = of(&other);
        turned.join(of(&one));
        assert_eq!(joined, turned);
        // A third word decides nothing.
        turned.join(of(&[(1, 48)]));
        assert_eq!(joined, turned);
    }
}
