//! Where the kernel, its modules and its programs lie, over time.
//!
//! BPF programs and trampolines come and go, and the kernel uses their addresses again: an address alone does not tell
//! what was there.

use super::maps::{MapTable, Mapping};
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::dso::DsoId;

/// States of the kernel's mappings; most recordings have one.
#[derive(Debug)]
pub struct KernelMaps {
    /// With the time from which each holds, in order.
    states: Vec<(Timestamp, MapTable)>,
    /// What was removed.
    gone: Vec<Mapping>,
}

impl Default for KernelMaps {
    fn default() -> Self {
        Self {
            states: vec![(Timestamp::START, MapTable::default())],
            gone: Vec::new(),
        }
    }
}

impl KernelMaps {
    /// A part of the kernel that recordings tell of once, at whatever time.
    pub(super) fn insert_part(&mut self, mapping: Mapping, time: Timestamp) {
        match self.states.as_mut_slice() {
            [(_, only)] => only.insert(mapping),
            _ => self.from(time).insert(mapping),
        }
    }

    /// Code that was registered then.
    pub(super) fn register(&mut self, mapping: Mapping, time: Timestamp) {
        self.from(time).insert(mapping);
    }

    /// Code of this name was removed.
    pub(super) fn unregister(&mut self, range: AvmaRange, dso: DsoId, time: Timestamp) {
        let removed = self.from(time).remove(range, dso);
        self.gone.extend(removed);
    }

    /// What is to be changed from a time on.
    fn from(&mut self, time: Timestamp) -> &mut MapTable {
        let last = self.states.len() - 1;
        let (since, table) = &self.states[last];
        if *since < time {
            let changed = table.clone();
            self.states.push((time, changed));
        }
        let newest = self.states.len() - 1;
        &mut self.states[newest].1
    }

    /// The number of the state at a time.
    #[must_use]
    pub fn state_at(&self, time: Timestamp) -> usize {
        match self.states.len() {
            1 => 0,
            _ => {
                self.states
                    .partition_point(|(since, _)| *since <= time)
                    .max(1)
                    - 1
            }
        }
    }

    /// What lay at an address in a state.
    #[must_use]
    pub fn find(&self, state: usize, at: Avma) -> Option<&Mapping> {
        self.states.get(state)?.1.find(at)
    }

    /// What was there in the end, and what was gone by then.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        let last = self.states.last();
        let last = last.into_iter().flat_map(|(_, table)| table.iter());
        last.chain(&self.gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::FileOffset;
    use crate::ids::Idx;

    fn code(dso: usize) -> Mapping {
        Mapping {
            range: AvmaRange::new(Avma(0x1000), 0x100),
            offset: FileOffset(0x1000),
            dso: DsoId::from_usize(dso),
            executable: true,
            anonymous: false,
            copied: false,
            behind_dump: false,
            rights: 5,
            shared: false,
            inode: 0,
            recorded: 0,
        }
    }

    #[test]
    fn code_is_there_between_its_registration_and_its_end() {
        let mut maps = KernelMaps::default();
        let mut kernel = code(9);
        kernel.range = AvmaRange::new(Avma(0x8000), 0x1000);
        maps.insert_part(kernel, Timestamp(7));
        maps.register(code(1), Timestamp(20));
        maps.unregister(code(1).range, code(1).dso, Timestamp(40));
        maps.unregister(code(1).range, code(1).dso, Timestamp(41));
        maps.register(code(2), Timestamp(50));
        let at = |time, at| {
            let found = maps.find(maps.state_at(Timestamp(time)), Avma(at));
            found.map(|mapping| mapping.dso.index())
        };
        let seen = [0, 19, 20, 39, 40, 49, 50, 60].map(|time| at(time, 0x1010));
        let (first, second) = (Some(1), Some(2));
        assert_eq!(seen, [None, None, first, first, None, None, second, second]);
        assert_eq!([at(0, 0x8000), at(60, 0x8000)], [Some(9), Some(9)]);
        let mut all: Vec<_> = maps.iter().map(|mapping| mapping.dso.index()).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 9]);
    }
}
