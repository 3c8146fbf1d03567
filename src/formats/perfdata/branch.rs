//! Branch stacks of samples (`PERF_SAMPLE_BRANCH_STACK`): the last branches that the processor kept, latest first.
//!
//! In: the bytes of the field, of which the record says how many entries they are. Out: entries with their flags by name
//! (`struct perf_branch_entry`, `include/uapi/linux/perf_event.h`). Nothing is copied, and no count is believed that the record
//! has no room for.

use crate::address::Avma;

use super::attr::{Attr, BRANCH_COUNTERS, BRANCH_HW_INDEX};
use super::bytes::Cursor;

/// One branch: from where, to where, and `struct perf_branch_entry`'s flag word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    /// Address of the branch.
    pub from: Avma,
    /// Its target.
    pub to: Avma,
    /// mispred:1, predicted:1, in_tx:1, abort:1, cycles:16, type:4, …
    pub flags: u64,
}

impl Branch {
    /// Words of types (`util/branch.c`); the last one says that [`Self::kind`] is of another list.
    const KINDS: [&str; 16] = [
        "",
        "COND",
        "UNCOND",
        "IND",
        "CALL",
        "IND_CALL",
        "RET",
        "SYSCALL",
        "SYSRET",
        "COND_CALL",
        "COND_RET",
        "ERET",
        "IRQ",
        "SERROR",
        "NO_TX",
        "",
    ];
    const NEW_KINDS: [&str; 8] = [
        "FAULT_ALGN",
        "FAULT_DATA",
        "FAULT_INST",
        "ARCH_1",
        "ARCH_2",
        "ARCH_3",
        "ARCH_4",
        "ARCH_5",
    ];
    /// Words of speculation.
    const SPECULATIONS: [&str; 4] = [
        "-",
        "SPEC_WRONG_PATH",
        "NON_SPEC_CORRECT_PATH",
        "SPEC_CORRECT_PATH",
    ];
    /// How many there are of [`Self::kind`].
    pub const ALL_KINDS: usize = Self::KINDS.len() + Self::NEW_KINDS.len();
    /// That of conditional branches.
    pub const CONDITIONAL: usize = 1;

    const fn bit(&self, number: u32) -> bool {
        self.flags >> number & 1 != 0
    }

    /// Whether the register was not yet filled: there was no branch.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.from.0 == 0 && self.to.0 == 0
    }

    /// Whether the processor predicted it; nothing if it did not say.
    #[must_use]
    pub const fn is_predicted(&self) -> Option<bool> {
        match (self.bit(0), self.bit(1)) {
            (_, true) => Some(true),
            (true, false) => Some(false),
            (false, false) => None,
        }
    }

    /// Whether it was in a transaction.
    #[must_use]
    pub const fn in_transaction(&self) -> bool {
        self.bit(2)
    }

    /// Whether it ended one.
    #[must_use]
    pub const fn is_abort(&self) -> bool {
        self.bit(3)
    }

    /// Cycles since the branch before it; 0 where that is not known.
    #[must_use]
    pub const fn cycles(&self) -> u64 {
        self.flags >> 4 & 0xffff
    }

    /// Its type as a number below [`Self::ALL_KINDS`]; 0 where that is not known.
    #[must_use]
    pub const fn kind(&self) -> usize {
        match self.flags >> 20 & 15 {
            15 => Self::KINDS.len() + (self.flags >> 26 & 7) as usize,
            kind => kind as usize,
        }
    }

    /// The word of a type; empty where that is not known.
    #[must_use]
    pub fn kind_name(kind: usize) -> &'static str {
        let mut all = Self::KINDS.iter().chain(&Self::NEW_KINDS);
        all.nth(kind).copied().unwrap_or("")
    }

    /// Whether it was taken on the right path, or only tried.
    #[must_use]
    pub const fn speculation(&self) -> &'static str {
        Self::SPECULATIONS[(self.flags >> 24 & 3) as usize]
    }
}

/// The last branches before a sample, latest first.
#[derive(Clone, Copy, Debug)]
pub struct BranchStack<'b> {
    /// Low level index of the first entry; all ones when unknown.
    pub hw_idx: Option<u64>,
    entries: &'b [u8],
}

impl<'b> BranchStack<'b> {
    /// Takes the field off the front of what is left of a record.
    pub(super) fn parse(attr: &Attr, c: &mut Cursor<'b>) -> Option<Self> {
        let nr = c.u64()?;
        let hw_idx = if attr.branch_sample_type & BRANCH_HW_INDEX != 0 {
            Some(c.u64()?)
        } else {
            None
        };
        let entries = c.words(nr.checked_mul(3)?)?;
        if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
            c.words(nr)?;
        }
        Some(Self { hw_idx, entries })
    }

    /// The branches in recorded order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Branch> + Clone + use<'b> {
        let words = self.entries.as_chunks::<8>().0;
        words.as_chunks::<3>().0.iter().map(|words| {
            let [from, to, flags] = words.map(u64::from_le_bytes);
            Branch {
                from: Avma(from),
                to: Avma(to),
                flags,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(flags: u64) -> Branch {
        Branch {
            from: Avma(1),
            to: Avma(2),
            flags,
        }
    }

    #[test]
    fn flags_have_names() {
        assert_eq!(branch(0).is_predicted(), None);
        assert_eq!(branch(1).is_predicted(), Some(false));
        assert_eq!(branch(2).is_predicted(), Some(true));
        assert!(branch(4).in_transaction() && !branch(8).in_transaction());
        assert!(branch(8).is_abort() && !branch(4).is_abort());
        assert_eq!(branch(42141 << 4 | 2).cycles(), 42141, "not signed");
        assert_eq!(Branch::kind_name(branch(8 << 20).kind()), "SYSRET");
        let extended = branch(15 << 20 | 1 << 26).kind();
        assert_eq!(Branch::kind_name(extended), "FAULT_DATA");
        assert_eq!(Branch::kind_name(branch(0).kind()), "");
        assert_eq!(branch(3 << 24).speculation(), "SPEC_CORRECT_PATH");
        assert!(extended < Branch::ALL_KINDS);
        assert_eq!(Branch::kind_name(Branch::CONDITIONAL), "COND");
    }

    #[test]
    fn counts_that_the_record_has_no_room_for_are_refused() {
        let attr = Attr::default();
        let of = |nr: u64, entries: usize| {
            let mut bytes = nr.to_le_bytes().to_vec();
            bytes.resize(8 + 24 * entries, 1);
            BranchStack::parse(&attr, &mut Cursor::new(&bytes)).map(|stack| stack.iter().len())
        };
        assert_eq!(of(2, 2), Some(2));
        assert_eq!(of(0, 2), Some(0));
        for nr in [3, 1 << 40, u64::MAX, u64::MAX / 3 + 2] {
            assert_eq!(of(nr, 2), None, "{nr}");
        }
    }
}
