//! The red-black tree that perf makes of a table, for addresses in several symbols: what it finds there depends on its shape.

use std::cmp::Ordering;

use super::better::Contest;
use super::{NEAR, SymbolTable};
use crate::dso::entries::{DYNSYM, MADE, SYMTAB, SymbolEntry};
use crate::ids::{Idx, IndexSlice, index_vec};
use crate::rbtree::{NIL, NodeId, RbTree};

impl SymbolTable<'_> {
    pub(super) fn find_in_tree(&self, at: u64) -> Option<usize> {
        let tree = self.tree.get_or_init(|| self.build_tree());
        let mut found = None;
        tree.search(|node| {
            if at < self.entries[node.index()].start {
                return Ordering::Less;
            }
            let group = self.group_of(node.index());
            // Which one the node stands for need not be known where all or none of them contain the address.
            let ends = || group.clone().map(|i| self.entries[i].end());
            if ends().all(|end| end <= at) {
                return Ordering::Greater;
            }
            let entry = self.best_of(group);
            if at < self.entries[entry].end() {
                found = Some(entry);
                return Ordering::Equal;
            }
            Ordering::Greater
        });
        found
    }

    /// The entries that a node of the tree stands for: the best of them is what perf keeps.
    fn group_of(&self, node: usize) -> std::ops::Range<usize> {
        if self.entries[node].origin.table() == MADE {
            return node..node + 1;
        }
        let start = self.entries[node].start;
        let same = |entry: &SymbolEntry| entry.start == start && entry.origin.table() != MADE;
        let behind = &self.entries[node..];
        let near = behind.iter().take(NEAR).take_while(|e| same(e)).count();
        let count = if near < NEAR {
            near
        } else {
            behind.partition_point(same)
        };
        self.first_of_start(node)..node + count
    }

    pub(super) fn best_of(&self, group: std::ops::Range<usize>) -> usize {
        if group.len() == 1 {
            group.start
        } else {
            self.remembered_best(group)
        }
    }

    /// Does what perf does with its tree, in the same order: insert one table as it is in the file, drop
    /// the losers among equal starts from low to high addresses, then the next table.
    pub(super) fn build_tree(&self) -> RbTree {
        let mut tree = RbTree::new(self.entries.len());
        let mut present = index_vec![false; self.entries.len()];
        let mut neighbours = index_vec![[NIL; 2]; self.entries.len()];
        for table in [SYMTAB, DYNSYM, MADE] {
            let new = self.in_order_of_insertion(table);
            if new.is_empty() {
                continue;
            }
            insert_all(&mut tree, &new, &mut present, &mut neighbours);
            if table != MADE {
                self.drop_duplicates(&mut tree, &mut present);
            }
        }
        tree
    }

    /// The entries of a table as they are in the file.
    fn in_order_of_insertion(&self, table: u32) -> Vec<NodeId> {
        let of_table = || {
            let all = (0..).map(NodeId).zip(&self.entries);
            all.filter(move |(_, entry)| entry.origin.table() == table)
        };
        let (mut count, mut places) = (0, 0);
        for (_, entry) in of_table() {
            count += 1;
            places = places.max(entry.origin.index() + 1);
        }
        // In a text places are far apart.
        if places / 8 > count {
            let mut new: Vec<_> = of_table().map(|(i, entry)| (entry.origin, i)).collect();
            new.sort_unstable();
            return new.into_iter().map(|(_, i)| i).collect();
        }
        let mut by_place = vec![NIL; places];
        for (i, entry) in of_table() {
            by_place[entry.origin.index()] = i;
        }
        by_place.retain(|&i| i != NIL);
        by_place
    }

    /// Leaves one node of each start. Which of two is dropped often makes no difference to the tree; then the second
    /// is, and which symbol the first stands for is decided when somebody asks ([`group_of`](Self::group_of)): to decide may
    /// mean demangling.
    fn drop_duplicates(&self, tree: &mut RbTree, present: &mut Present) {
        // The first entry of the current start, the node of it, and the best so far if that had to be known.
        let mut first = 0;
        let mut current: Option<(NodeId, Option<Contest>)> = None;
        for next in 0..self.entries.len() {
            if self.entries[next].start != self.entries[first].start {
                (first, current) = (next, None);
            }
            let new = NodeId::from_usize(next);
            if !present[new] {
                continue;
            }
            let Some((node, contest)) = &mut current else {
                current = Some((new, None));
                continue;
            };
            let mut dropped = new;
            if !tree.are_exchangeable(*node, new) {
                let contest = contest.get_or_insert_with(|| Contest::new(first));
                contest.go_on(self, next + 1);
                if contest.best == next {
                    dropped = std::mem::replace(node, new);
                }
            }
            tree.remove(dropped);
            present[dropped] = false;
        }
    }
}

/// Inserts entries in the order given. Between which neighbours each goes, the one before it and the one behind, is found
/// backwards: take them out of the full list from the last to the first. Walking down from the root costs ten times as
/// much.
fn insert_all(
    tree: &mut RbTree,
    new: &[NodeId],
    present: &mut Present,
    neighbours: &mut IndexSlice<NodeId, [[NodeId; 2]]>,
) {
    for &i in new {
        present[i] = true;
    }
    let mut last = NIL;
    for (i, _) in (0..)
        .map(NodeId)
        .zip(&*present)
        .filter(|&(_, &present)| present)
    {
        neighbours[i] = [last, NIL];
        if last != NIL {
            neighbours[last][1] = i;
        }
        last = i;
    }
    for &i in new.iter().rev() {
        let [before, behind] = neighbours[i];
        if before != NIL {
            neighbours[before][1] = behind;
        }
        if behind != NIL {
            neighbours[behind][0] = before;
        }
    }
    for &i in new {
        let [before, behind] = neighbours[i];
        tree.insert_between(i, before, behind);
    }
}

/// Which entries are in the tree; its nodes are numbered as the entries.
type Present = IndexSlice<NodeId, [bool]>;
