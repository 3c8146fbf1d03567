//! All DSOs of one path, and which of them a record means.
//!
//! In: the inode and the build ID of a record, either of which may be absent. Out: the first DSO of the path, in the order in
//! which they were made, that nothing tells apart from it. An inode only tells apart where both have one (of equal ones the
//! generation only where both know it), and so does a build ID. A DSO that is met takes what it did not know.
//! Few DSOs are compared one by one, many are found by an index: a recording may map a path 40 000 times, each time as another
//! file.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::evidence::{Inode, is_same_file};
use super::{BuildId, DsoId};

/// What is known of a file besides its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) inode: Option<Inode>,
    pub(super) build_id: Option<BuildId>,
}

impl Identity {
    /// Whether nothing tells them apart.
    fn agrees(&self, other: &Self) -> bool {
        let ids = self.build_id.as_ref().zip(other.build_id.as_ref());
        let inodes = self.inode.zip(other.inode);
        ids.is_none_or(|(a, b)| a.matches(b)) && inodes.is_none_or(|(a, b)| is_same_file(a, b))
    }

    /// The same with what another knows that this one does not.
    fn completed(self, other: &Self) -> Self {
        let has_generation = |known: &Inode| known.3 != 0;
        Self {
            inode: self
                .inode
                .filter(has_generation)
                .or(other.inode)
                .or(self.inode),
            build_id: self.build_id.or(other.build_id),
        }
    }
}

/// What DSOs have in common: a part of their inode, and their build ID.
type Key = (ByInode, ById);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ByInode {
    Any,
    Absent,
    /// Of any generation, known or not.
    Number(u32, u32, u64),
    Exact(Inode),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ById {
    Any,
    Absent,
    /// Padded: an ID may be written down with the zeroes behind it or without.
    Is([u8; BuildId::MAX]),
}

impl ById {
    fn of(id: &BuildId) -> Self {
        Self::Is(id.padded())
    }
}

/// The DSOs of one path.
#[derive(Debug, Default)]
pub(super) struct SamePath {
    /// In the order in which they were made.
    all: Vec<(DsoId, Identity)>,
    /// Empty as long as they are few.
    index: BTreeSet<(Key, usize)>,
}

/// So many are compared one by one.
const FEW: usize = 16;

impl SamePath {
    /// All of them, in the order in which they were made.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = DsoId> {
        self.all.iter().map(|(id, _)| *id)
    }

    /// The DSO that a record means, with all that is known of it now.
    pub(super) fn find(&mut self, wanted: &Identity) -> Option<(DsoId, Identity)> {
        let at = if self.all.len() <= FEW {
            self.all
                .iter()
                .position(|(_, known)| known.agrees(wanted))?
        } else {
            self.first(wanted)?
        };
        let (id, known) = self.all[at];
        let now = known.completed(wanted);
        if now != known {
            self.all[at].1 = now;
            if !self.index.is_empty() {
                self.forget(at, &known);
                self.note(at, &now);
            }
        }
        Some((id, now))
    }

    /// A new one.
    pub(super) fn push(&mut self, id: DsoId, identity: Identity) {
        self.all.push((id, identity));
        let new = match self.all.len() {
            ..=FEW => return,
            _ if self.index.is_empty() => 0,
            len => len - 1,
        };
        for at in new..self.all.len() {
            let known = self.all[at].1;
            self.note(at, &known);
        }
    }

    /// The first that agrees, by the index.
    fn first(&self, wanted: &Identity) -> Option<usize> {
        let inodes = match wanted.inode {
            None => [Some(ByInode::Any), None, None],
            Some((major, minor, number, 0)) => [
                Some(ByInode::Absent),
                Some(ByInode::Number(major, minor, number)),
                None,
            ],
            Some(inode @ (major, minor, number, _)) => [
                Some(ByInode::Absent),
                Some(ByInode::Exact(inode)),
                Some(ByInode::Exact((major, minor, number, 0))),
            ],
        };
        let ids = match &wanted.build_id {
            None => [Some(ById::Any), None],
            Some(id) => [Some(ById::Absent), Some(ById::of(id))],
        };
        let keys = inodes
            .into_iter()
            .flatten()
            .flat_map(|inode| ids.into_iter().flatten().map(move |id| (inode, id)));
        let found = keys.filter_map(|key| {
            let next = self.index.range((key, 0)..).next();
            next.filter(|next| next.0 == key).map(|next| next.1)
        });
        found.min()
    }

    fn note(&mut self, at: usize, identity: &Identity) {
        let entries = keys(identity).map(|key| (key, at));
        self.index.extend(entries);
    }

    fn forget(&mut self, at: usize, identity: &Identity) {
        for key in keys(identity) {
            self.index.remove(&(key, at));
        }
    }
}

/// All that a DSO can be found by.
fn keys(identity: &Identity) -> impl Iterator<Item = Key> {
    let inodes = match identity.inode {
        None => [ByInode::Any, ByInode::Absent, ByInode::Absent],
        Some(inode @ (major, minor, number, _)) => [
            ByInode::Any,
            ByInode::Number(major, minor, number),
            ByInode::Exact(inode),
        ],
    };
    let id = identity.build_id.as_ref().map_or(ById::Absent, ById::of);
    inodes
        .into_iter()
        .flat_map(move |inode| [(inode, ById::Any), (inode, id)])
}

/// The build IDs that the recording's table has for a path.
#[derive(Debug, Default)]
pub(super) struct TableIds {
    pub(super) all: Arc<Vec<BuildId>>,
    /// Those before went to DSOs that had none.
    next: usize,
    /// Those that records of mappings told.
    told: FxHashSet<[u8; BuildId::MAX]>,
}

impl TableIds {
    pub(super) fn push(&mut self, id: BuildId) {
        Arc::make_mut(&mut self.all).push(id);
    }

    /// The same one if an ID is given, else the next unused.
    pub(super) fn take(&mut self, given: Option<BuildId>) -> Option<BuildId> {
        if let Some(id) = given {
            self.told.insert(id.padded());
            return given;
        }
        let rest = self.all.get(self.next..)?;
        let free = rest.iter().position(|id| !self.told.contains(&id.padded()));
        let at = self.next + free.unwrap_or(rest.len());
        self.next = at + 1;
        self.all.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Idx as _;

    /// The rule without an index.
    fn meet(all: &mut Vec<Identity>, wanted: &Identity) -> usize {
        let at = all.iter().position(|known| known.agrees(wanted));
        let at = at.unwrap_or_else(|| {
            all.push(*wanted);
            all.len() - 1
        });
        all[at] = all[at].completed(wanted);
        at
    }

    fn met(path: &mut SamePath, wanted: &Identity) -> usize {
        let (id, now) = path.find(wanted).unwrap_or_else(|| {
            let id = DsoId::from_usize(path.all.len());
            path.push(id, *wanted);
            (id, *wanted)
        });
        assert_eq!(path.all[id.index()].1, now);
        id.index()
    }

    fn identity(inode: u64, generation: u64, id: u8) -> Identity {
        let inode = (inode > 0).then_some((8, 1, inode, generation));
        Identity {
            inode,
            build_id: BuildId::new(&[id; 8]),
        }
    }

    proptest::proptest! {
        /// Whatever was known and what comes to be known: the index finds what comparing one by one finds.
        #[test]
        fn the_index_finds_the_first_that_agrees(
            records in proptest::collection::vec((0u64..12, 0u64..3, 0u8..8), 1..300),
        ) {
            let (mut path, mut all) = (SamePath::default(), Vec::new());
            for (inode, generation, id) in records {
                let wanted = identity(inode, generation, id);
                proptest::prop_assert_eq!(met(&mut path, &wanted), meet(&mut all, &wanted));
            }
        }
    }

    /// One by one these were five thousand million comparisons.
    #[test]
    fn very_many_files_of_one_path_are_told_apart() {
        const FILES: u64 = 40_000;
        let mut path = SamePath::default();
        for round in 0..2 {
            for number in 0..FILES {
                let inode = Some((8, 1, number + 1, round));
                let mut id = [1; 20];
                id[..8].copy_from_slice(&number.to_le_bytes());
                let build_id = BuildId::new(&id);
                for wanted in [(inode, None), (inode, build_id), (None, build_id)] {
                    let (inode, build_id) = wanted;
                    assert_eq!(
                        met(&mut path, &Identity { inode, build_id }),
                        number as usize
                    );
                }
            }
        }
        assert_eq!(path.all().len() as u64, FILES);
    }

    #[test]
    fn ids_of_the_table_are_given_once() {
        let [a, b, c] = [1, 2, 3].map(|byte| BuildId::new(&[byte; 20]));
        let mut table = TableIds::default();
        for id in [a, b, a, c].into_iter().flatten() {
            table.push(id);
        }
        assert_eq!(table.take(b), b);
        assert_eq!(table.take(None), a);
        assert_eq!(table.take(None), a);
        assert_eq!(table.take(None), c);
        assert_eq!(table.take(None), None);
        assert_eq!(table.take(None), None);
    }
}
