//! What is left of code when other code is reported over a part of it.
//!
//! Runtimes that round sizes up report functions that reach a few bytes into the next one, and code that is slid down over a
//! neighbour's end takes a few bytes of it: the rest is as good as before.

use crate::address::AvmaRange;

/// So many bytes are an alignment's.
const FEW: u64 = 16;

/// The head and the tail of older code that newer code does not touch; those that are empty are left out.
pub fn untouched(old: AvmaRange, new: AvmaRange) -> impl Iterator<Item = AvmaRange> {
    let head = AvmaRange {
        start: old.start,
        end: old.end.min(new.start),
    };
    let tail = AvmaRange {
        start: old.start.max(new.end),
        end: old.end,
    };
    let parts = [head, tail].into_iter();
    parts.filter(|part| part.start < part.end)
}

/// True if newer code that touches older code leaves it in force where it does not touch it: it begins elsewhere, and takes
/// no more than an alignment or an eighth.
#[must_use]
pub fn is_slight(old: AvmaRange, new: AvmaRange) -> bool {
    let start = old.start.max(new.start);
    let taken = old.end.min(new.end).since(start);
    let few = taken < FEW && taken < old.len() - taken;
    old.start != new.start && (few || taken <= old.len() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Avma;

    fn range(start: u64, end: u64) -> AvmaRange {
        AvmaRange {
            start: Avma(start),
            end: Avma(end),
        }
    }

    #[test]
    fn a_slip_leaves_the_rest_and_a_takeover_nothing() {
        let old = range(0x100, 0x180);
        for (new, slight, left) in [
            (range(0x178, 0x1f8), true, vec![range(0x100, 0x178)]),
            (range(0x88, 0x108), true, vec![range(0x108, 0x180)]),
            (
                range(0x140, 0x150),
                true,
                vec![range(0x100, 0x140), range(0x150, 0x180)],
            ),
            (range(0x100, 0x108), false, vec![range(0x108, 0x180)]),
            (range(0x140, 0x1c0), false, vec![range(0x100, 0x140)]),
            (range(0x80, 0x200), false, vec![]),
        ] {
            assert_eq!(is_slight(old, new), slight, "{new:?}");
            assert_eq!(untouched(old, new).collect::<Vec<_>>(), left, "{new:?}");
        }
        // Few bytes may be most of it.
        assert!(!is_slight(range(0x100, 0x110), range(0x108, 0x118)));
    }
}
