//! Rectangles of addresses and times, frozen for lookups.
//!
//! A segment tree over the boundaries of all address ranges. A range is filed under the few nodes
//! that make it up; the claims of one node share addresses, so they follow each other in time and
//! are found by binary search. Empty nodes are skipped by links. Memory is linear for ranges that
//! seldom overlap, and never more than `n log n` positions, however they were made.

use super::claims::Claim;
use crate::address::{Avma, AvmaRange, Timestamp};

const NONE: u32 = u32::MAX;
/// Every so many boundaries one is copied into a table that stays in the cache.
const STRIDE: usize = 32;

/// An immutable set of claims.
#[derive(Debug, Default)]
pub(super) struct Segments {
    claims: Vec<Claim>,
    /// Where ranges begin and end, sorted.
    bounds: Vec<u64>,
    /// Every [`STRIDE`]th of `bounds`.
    coarse: Vec<u64>,
    /// For each stretch between two bounds its innermost node that is not empty.
    nodes_of_leaves: Vec<u32>,
    nodes: Vec<Node>,
    /// The claims of the nodes, by time.
    filed: Vec<u32>,
}

/// A node that is not empty.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Its claims in `filed`.
    begin: u32,
    end: u32,
    /// The next node outwards that is not empty.
    outer: u32,
}

impl Segments {
    /// Claims of length and duration zero cover nothing and are left out.
    pub(super) fn new(mut claims: Vec<Claim>) -> Self {
        claims.retain(|claim| claim.from < claim.to && !claim.range.is_empty());
        claims.sort_by_key(|claim| (claim.from, claim.range.start));
        let mut bounds: Vec<u64> = claims
            .iter()
            .flat_map(|c| [c.range.start.0, c.range.end.0])
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let coarse = bounds.iter().copied().step_by(STRIDE).collect();
        let mut segments = Self {
            claims,
            bounds,
            coarse,
            ..Self::default()
        };
        segments.file();
        segments
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The claim in force at `time`.
    pub(super) fn at(&self, at: Avma, time: Timestamp) -> Option<&Claim> {
        self.nodes_at(at).find_map(|filed| {
            let next = filed.partition_point(|&claim| self.claims[claim as usize].from <= time);
            let claim = &self.claims[*filed.get(next.checked_sub(1)?)? as usize];
            (time < claim.to).then_some(claim)
        })
    }

    /// The first claim that begins after `time`.
    pub(super) fn after(&self, at: Avma, time: Timestamp) -> Option<&Claim> {
        let first_of = |filed: &[u32]| {
            let next = filed.partition_point(|&claim| self.claims[claim as usize].from <= time);
            filed.get(next).copied()
        };
        // Claims are numbered by time.
        self.nodes_at(at)
            .filter_map(first_of)
            .min()
            .map(|claim| &self.claims[claim as usize])
    }

    /// Whether the address was ever covered.
    pub(super) fn ever(&self, at: Avma) -> bool {
        self.nodes_at(at).next().is_some()
    }

    /// The code of some claim that ever touched the range.
    pub(super) fn touching(&self, range: AvmaRange) -> Option<u32> {
        let first = self
            .bounds
            .partition_point(|&bound| bound <= range.start.0)
            .saturating_sub(1);
        let stretches = self.bounds.get(first..)?;
        let inside = stretches.iter().take_while(|&&bound| bound < range.end.0);
        inside.enumerate().find_map(|(i, _)| {
            let node = *self.nodes_of_leaves.get(first + i)?;
            let filed = *self
                .filed
                .get(self.nodes.get(node as usize)?.begin as usize)?;
            let claim = &self.claims[filed as usize];
            claim.range.overlaps(&range).then_some(claim.code)
        })
    }

    /// The claims of all nodes over an address, innermost first.
    fn nodes_at(&self, at: Avma) -> impl Iterator<Item = &[u32]> {
        let mut node = self
            .leaf(at)
            .map_or(NONE, |leaf| self.nodes_of_leaves[leaf]);
        std::iter::from_fn(move || {
            let Node { begin, end, outer } = *self.nodes.get(node as usize)?;
            node = outer;
            Some(&self.filed[begin as usize..end as usize])
        })
    }

    /// The stretch between two bounds that holds the address.
    fn leaf(&self, at: Avma) -> Option<usize> {
        let stretch = self
            .coarse
            .partition_point(|&bound| bound <= at.0)
            .checked_sub(1)?
            * STRIDE;
        let fine = &self.bounds[stretch..self.bounds.len().min(stretch + STRIDE)];
        let leaf = stretch + fine.partition_point(|&bound| bound <= at.0) - 1;
        (leaf + 1 < self.bounds.len()).then_some(leaf)
    }

    /// Files every claim under its nodes. Nodes are numbered as in a heap with the leaves last.
    fn file(&mut self) {
        let leaves = self.bounds.len().saturating_sub(1);
        let mut counts = vec![0_u32; 2 * leaves + 1];
        self.each_filing(leaves, |node, _| counts[node] += 1);
        // Counts become positions.
        let mut position = 0;
        for count in &mut counts {
            position += std::mem::replace(count, position);
        }
        let mut filed = vec![0; position as usize];
        let mut free = counts.clone();
        self.each_filing(leaves, |node, claim| {
            filed[free[node] as usize] = claim;
            free[node] += 1;
        });
        self.filed = filed;
        self.link(leaves, &counts);
    }

    /// Calls `f` with every node and claim that belong together, claims in order of time.
    fn each_filing(&self, leaves: usize, mut f: impl FnMut(usize, u32)) {
        for (number, claim) in (0_u32..).zip(&self.claims) {
            let mut left = self
                .bounds
                .partition_point(|&bound| bound < claim.range.start.0)
                + leaves;
            let mut right = self
                .bounds
                .partition_point(|&bound| bound < claim.range.end.0)
                + leaves;
            while left < right {
                if left % 2 == 1 {
                    f(left, number);
                    left += 1;
                }
                if right % 2 == 1 {
                    right -= 1;
                    f(right, number);
                }
                left /= 2;
                right /= 2;
            }
        }
    }

    /// Numbers the nodes that are not empty and links each to the next one outwards.
    fn link(&mut self, leaves: usize, positions: &[u32]) {
        let mut innermost = vec![NONE; 2 * leaves];
        for node in 1..2 * leaves {
            let outer = innermost[node / 2];
            let (begin, end) = (positions[node], positions[node + 1]);
            innermost[node] = outer;
            if begin < end {
                innermost[node] = u32::try_from(self.nodes.len())
                    .expect("fewer nodes than positions, which are u32");
                self.nodes.push(Node { begin, end, outer });
            }
        }
        self.nodes_of_leaves = innermost.split_off(leaves);
    }
}
