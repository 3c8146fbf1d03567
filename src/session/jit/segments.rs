//! Rectangles of addresses and times, frozen for lookups.
//!
//! A segment tree over the boundaries of all address ranges. A range is filed under the few nodes
//! that make it up; the claims of one node share addresses, so they follow each other in time and
//! are found by binary search. Empty nodes are skipped by links, and a stretch of addresses that had
//! one owner ever, as most have, leads straight to it. A table of pages leads to the stretch.
//!
//! Memory is linear for ranges that seldom overlap, and never more than `n log n` positions, however
//! they were made. A list of claims for each page is simpler but grows with `n²` for code that is
//! generated to the same addresses again and again.

use rustc_hash::FxHashMap;

use super::claims::Claim;
use crate::address::{Avma, AvmaRange, Timestamp};

const NONE: u32 = u32::MAX;
/// Marks the number of a claim where the number of a node is expected.
const SINGLE: u32 = 1 << 31;
const PAGE_BITS: u32 = 12;
/// Stretches over more pages are not in the table but in a list.
const MAX_PAGES: u64 = 64;

/// An immutable set of claims.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// By time.
    claims: Vec<Frozen>,
    /// Where ranges begin and end, sorted.
    bounds: Vec<u64>,
    /// For each stretch between two bounds its innermost node that is not empty.
    stretches: Vec<u32>,
    nodes: Vec<Node>,
    /// The claims of the nodes, by time.
    filed: Vec<u32>,
    pages: FxHashMap<u64, Page>,
    /// Stretches over so many pages that they are not in the table.
    wide: Vec<u32>,
}

/// A claim without its end address, which the stretches know.
#[derive(Clone, Copy, Debug)]
struct Frozen {
    start: Avma,
    from: Timestamp,
    to: Timestamp,
    code: u32,
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

/// The stretches that touch a page.
#[derive(Clone, Copy, Debug)]
struct Page {
    first: u32,
    last: u32,
}

/// Code found at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    /// Start of the claim.
    pub(super) start: Avma,
    /// Begin of the claim.
    pub(super) from: Timestamp,
    pub(super) code: u32,
}

impl Segments {
    /// Claims of length and duration zero cover nothing and are left out.
    pub(super) fn new(mut claims: Vec<Claim>) -> Self {
        claims.retain(|claim| claim.from < claim.to && !claim.range.is_empty());
        claims.sort_by_key(|claim| (claim.from, claim.range.start));
        // Beyond are numbers with another meaning; a dump of 128 GB could hold so many.
        claims.truncate(SINGLE as usize / 64);
        let mut bounds: Vec<u64> = claims
            .iter()
            .flat_map(|c| [c.range.start.0, c.range.end.0])
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds.shrink_to_fit();
        let mut segments = Self {
            bounds,
            ..Self::default()
        };
        segments.file(&claims);
        segments.claims = claims.into_iter().map(Frozen::from).collect();
        segments.index_pages();
        segments
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The claim in force at `time`.
    pub(super) fn at(&self, at: Avma, time: Timestamp) -> Option<Owner> {
        let stretch = self.stretch(at)?;
        if let Some(single) = stretch.single() {
            return self.claims[single].owner_at(time);
        }
        self.nodes_from(stretch).find_map(|filed| {
            let next = filed.partition_point(|&claim| self.claims[claim as usize].from <= time);
            self.claims[*filed.get(next.checked_sub(1)?)? as usize].owner_at(time)
        })
    }

    /// The first claim that begins after `time`.
    pub(super) fn after(&self, at: Avma, time: Timestamp) -> Option<Owner> {
        let later = |&claim: &u32| self.claims[claim as usize].from > time;
        let stretch = self.stretch(at)?;
        let first = match stretch.single() {
            Some(single) => u32::try_from(single).ok().filter(later),
            // Claims are numbered by time.
            None => self
                .nodes_from(stretch)
                .filter_map(|filed| {
                    filed
                        .get(filed.partition_point(|claim| !later(claim)))
                        .copied()
                })
                .min(),
        };
        Some(self.claims[first? as usize].owner())
    }

    /// Whether the address was ever covered.
    pub(super) fn ever(&self, at: Avma) -> bool {
        self.stretch(at).is_some()
    }

    /// The code of some claim that ever touched the range.
    pub(super) fn touching(&self, range: AvmaRange) -> Option<u32> {
        let first = self
            .bounds
            .partition_point(|&bound| bound <= range.start.0)
            .saturating_sub(1);
        let until = self.bounds.partition_point(|&bound| bound < range.end.0);
        let stretches = self.stretches.get(first..until.min(self.stretches.len()))?;
        let inside = stretches
            .iter()
            .zip(first..)
            .filter(|&(_, i)| self.bounds[i + 1] > range.start.0);
        let stretch = inside
            .map(|(&stretch, _)| Stretch(stretch))
            .find(|stretch| stretch.0 != NONE)?;
        let claim = match stretch.single() {
            Some(single) => single,
            None => *self.nodes_from(stretch).next()?.first()? as usize,
        };
        Some(self.claims[claim].code)
    }

    /// The claims of all nodes over a stretch, innermost first.
    fn nodes_from(&self, stretch: Stretch) -> impl Iterator<Item = &[u32]> {
        let mut node = stretch.0;
        std::iter::from_fn(move || {
            let Node { begin, end, outer } = *self.nodes.get(node as usize)?;
            node = outer;
            Some(&self.filed[begin as usize..end as usize])
        })
    }

    /// The stretch that holds the address, if it was ever covered.
    #[inline]
    fn stretch(&self, at: Avma) -> Option<Stretch> {
        let number = match self.pages.get(&(at.0 >> PAGE_BITS)) {
            Some(page) => {
                let bounds = &self.bounds[page.first as usize..=page.last as usize];
                page.first as usize
                    + bounds
                        .partition_point(|&bound| bound <= at.0)
                        .checked_sub(1)?
            }
            None => self.wide_stretch(at)?,
        };
        // Behind the last stretch nothing is in the table.
        let inside = at.0 < *self.bounds.get(number + 1)?;
        Some(Stretch(self.stretches[number])).filter(|stretch| inside && stretch.0 != NONE)
    }

    fn wide_stretch(&self, at: Avma) -> Option<usize> {
        let next = self
            .wide
            .partition_point(|&wide| self.bounds[wide as usize] <= at.0);
        let wide = *self.wide.get(next.checked_sub(1)?)? as usize;
        (at.0 < *self.bounds.get(wide + 1)?).then_some(wide)
    }

    fn index_pages(&mut self) {
        for (number, pair) in (0_u32..).zip(self.bounds.windows(2)) {
            let (first, last) = (pair[0] >> PAGE_BITS, (pair[1] - 1) >> PAGE_BITS);
            if last - first > MAX_PAGES {
                if self.stretches[number as usize] != NONE {
                    self.wide.push(number);
                }
                // The rest of a page where other stretches are still leads through the table.
                add_to_page(&mut self.pages, first, number);
                if last << PAGE_BITS != pair[1] {
                    add_to_page(&mut self.pages, last, number);
                }
            } else if self.stretches[number as usize] != NONE {
                (first..=last).for_each(|page| add_to_page(&mut self.pages, page, number));
            } else {
                // A gap only matters between others.
                for page in [first, last] {
                    add_to_page(&mut self.pages, page, number);
                }
            }
        }
        self.pages.shrink_to_fit();
    }

    /// Files every claim under its nodes. Nodes are numbered as in a heap with the leaves last.
    fn file(&mut self, claims: &[Claim]) {
        let leaves = self.bounds.len().saturating_sub(1);
        let mut counts = vec![0_u32; 2 * leaves + 1];
        self.each_filing(claims, |node, _| counts[node] += 1);
        // Counts become positions.
        let mut position = 0;
        for count in &mut counts {
            position += std::mem::replace(count, position);
        }
        let mut filed = vec![0; position as usize];
        self.each_filing(claims, |node, claim| {
            filed[counts[node] as usize] = claim;
            counts[node] += 1;
        });
        // Each position now stands where the next node begins.
        self.filed = filed;
        self.link(leaves, &counts);
    }

    /// Calls `f` with every node and claim that belong together, claims in order of time.
    fn each_filing(&self, claims: &[Claim], mut f: impl FnMut(usize, u32)) {
        let leaves = self.bounds.len().saturating_sub(1);
        for (number, claim) in (0_u32..).zip(claims) {
            let start = self
                .bounds
                .partition_point(|&bound| bound < claim.range.start.0);
            // Most claims are one stretch.
            let end = match self.bounds.get(start + 1) {
                Some(&next) if next == claim.range.end.0 => start + 1,
                _ => self
                    .bounds
                    .partition_point(|&bound| bound < claim.range.end.0),
            };
            let (mut left, mut right) = (start + leaves, end + leaves);
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

    /// Numbers the nodes that are not empty and links each to the next one outwards. `ends` has where
    /// the claims of each node end.
    fn link(&mut self, leaves: usize, ends: &[u32]) {
        let mut innermost = vec![NONE; 2 * leaves];
        for node in 1..2 * leaves {
            let outer = innermost[node / 2];
            let (begin, end) = (ends[node - 1], ends[node]);
            innermost[node] = if begin == end {
                outer
            } else if outer == NONE && end - begin == 1 && node >= leaves {
                SINGLE | self.filed[begin as usize]
            } else {
                self.nodes.push(Node { begin, end, outer });
                u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
            };
        }
        self.stretches = innermost.split_off(leaves);
    }
}

/// What a stretch leads to: a claim, or its innermost node.
#[derive(Clone, Copy)]
struct Stretch(u32);

impl Stretch {
    const fn single(self) -> Option<usize> {
        if self.0 & SINGLE != 0 {
            Some((self.0 & !SINGLE) as usize)
        } else {
            None
        }
    }
}

impl Frozen {
    const fn owner(&self) -> Owner {
        Owner {
            start: self.start,
            from: self.from,
            code: self.code,
        }
    }

    fn owner_at(&self, time: Timestamp) -> Option<Owner> {
        (self.from <= time && time < self.to).then(|| self.owner())
    }
}

impl From<Claim> for Frozen {
    fn from(claim: Claim) -> Self {
        Self {
            start: claim.range.start,
            from: claim.from,
            to: claim.to,
            code: claim.code,
        }
    }
}

fn add_to_page(pages: &mut FxHashMap<u64, Page>, page: u64, stretch: u32) {
    pages
        .entry(page)
        .and_modify(|page| page.last = stretch)
        .or_insert(Page {
            first: stretch,
            last: stretch,
        });
}
