//! `--hierarchy`: the rows of a table as a tree, a level for each sort key.
//!
//! In: a table's rows. Out: nodes in print order. A node counts what the rows below it count (perf:
//! `hists__hierarchy_insert_entry`, `util/hist.c`).

use std::cmp::Ordering;

use super::keys::Key;
use super::sorted::{Ordered, RowPlace, ordered};
use super::{Counts, Report, Row, Table};
use crate::ids::IndexVec;

/// A line of the tree.
#[derive(Debug, Clone)]
pub struct HierarchyNode {
    /// 0 for the outermost.
    pub depth: usize,
    /// The first row of those below, with what all of them count.
    pub row: Row,
    /// What they count for the events of a group behind the leader.
    pub members: Vec<Counts>,
    /// For the innermost level: the row's place in the table.
    pub leaf: Option<usize>,
    /// Whether a node one level further in reaches the percent limit.
    pub has_shown_children: bool,
}

/// The levels of a table: without fields that are other events'.
#[must_use]
pub fn levels(report: &Report<'_>, table: &Table) -> Vec<Vec<Key>> {
    let own = |level: &Vec<Key>| -> Vec<Key> {
        let keys = level.iter().copied();
        keys.filter(|key| key.is_of(report.profile, table))
            .collect()
    };
    let levels = report.columns.levels.iter().map(own);
    levels.filter(|level| !level.is_empty()).collect()
}

/// The nodes of a table in print order, with those below the limit.
#[must_use]
pub fn hierarchy(report: &Report<'_>, table: &Table) -> Vec<HierarchyNode> {
    let view = report.ordering();
    let levels = levels(report, table);
    let mut places: Vec<usize> = (0..table.rows.len()).collect();
    let keys: Vec<Key> = levels.iter().flatten().copied().collect();
    places.sort_by(|a, b| compare(&view, &keys, &table.rows[*a], &table.rows[*b]));
    let mut maker = LevelMaker {
        report,
        table,
        view,
        levels,
        nodes: Vec::new(),
    };
    maker.add_level(0, &places);
    maker.nodes
}

fn compare(view: &Ordered<'_>, keys: &[Key], a: &Row, b: &Row) -> Ordering {
    keys.iter().fold(Ordering::Equal, |so_far, key| {
        so_far.then_with(|| view.by_key(*key, a, b))
    })
}

struct LevelMaker<'r, 'p> {
    report: &'r Report<'p>,
    table: &'r Table,
    view: Ordered<'r>,
    levels: Vec<Vec<Key>>,
    nodes: Vec<HierarchyNode>,
}

impl LevelMaker<'_, '_> {
    /// Adds the nodes of one level and, behind each, those further in. Returns whether one of the level reaches the
    /// limit. Goes no deeper than there are sort keys.
    fn add_level(&mut self, depth: usize, places: &[usize]) -> bool {
        let Some(keys) = self.levels.get(depth).cloned() else {
            return false;
        };
        let table_rows = &self.table.rows;
        let same = |a: &usize, b: &usize| {
            compare(&self.view, &keys, &table_rows[*a], &table_rows[*b]) == Ordering::Equal
        };
        let groups: IndexVec<RowPlace, &[usize]> = places.chunk_by(same).collect();
        let sums: Vec<(Row, Vec<Counts>)> = groups.iter().map(|group| self.sum(group)).collect();
        let (rows, members): (IndexVec<RowPlace, Row>, IndexVec<RowPlace, Vec<Counts>>) =
            sums.into_iter().unzip();
        let is_innermost = depth + 1 == self.levels.len();
        let mut is_any_shown = false;
        for at in ordered(&rows, &self.view, |row| &members[row]) {
            is_any_shown |= self.report.is_shown(self.table, &rows[at]);
            let node = HierarchyNode {
                depth,
                row: rows[at].clone(),
                members: members[at].clone(),
                leaf: is_innermost.then(|| groups[at][0]),
                has_shown_children: false,
            };
            let number = self.nodes.len();
            self.nodes.push(node);
            self.nodes[number].has_shown_children = self.add_level(depth + 1, groups[at]);
        }
        is_any_shown
    }

    fn sum(&self, group: &[usize]) -> (Row, Vec<Counts>) {
        let rows = &self.table.rows;
        let first = group
            .iter()
            .min_by_key(|place| rows[**place].first)
            .map_or(0, |place| *place);
        let mut row = rows[first].clone();
        row.counts = Counts::default();
        let mut members = vec![Counts::default(); self.table.events.len() - 1];
        for place in group {
            let mut counts = self.table.counts(*place);
            counts
                .next()
                .into_iter()
                .for_each(|leader| row.counts.add(leader));
            counts
                .zip(&mut members)
                .for_each(|(member, sum)| sum.add(member));
        }
        (row, members)
    }
}
