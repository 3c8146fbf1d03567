//! Numbers for addresses that are equal in several workers, whose own numbers for them differ.

use rustc_hash::FxHashMap;

use crate::collect::{Pc, PcId};
use crate::ids::{IndexSlice, IndexVec, index_vec};

/// See the module.
pub(super) struct PcNumbers<'p> {
    pcs: &'p IndexSlice<PcId, [Pc]>,
    known: FxHashMap<Pc, PcId>,
    /// By address.
    numbers: IndexVec<PcId, Option<PcId>>,
    /// By number: an address.
    pub(super) all: IndexVec<PcId, PcId>,
}

impl<'p> PcNumbers<'p> {
    pub(super) fn new(pcs: &'p IndexSlice<PcId, [Pc]>) -> Self {
        Self {
            pcs,
            known: FxHashMap::default(),
            numbers: index_vec![None; pcs.len()],
            all: IndexVec::new(),
        }
    }

    /// The number of an address.
    pub(super) fn of(&mut self, pc: PcId) -> PcId {
        let Self { known, all, .. } = self;
        let number_of = &mut self.numbers[pc];
        *number_of.get_or_insert_with(|| {
            let known = known.entry(self.pcs[pc]);
            *known.or_insert_with(|| all.push(pc))
        })
    }
}
