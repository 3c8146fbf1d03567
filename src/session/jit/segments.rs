//! Rectangles of addresses and times, frozen for lookups.
//!
//! Addresses are cut into stretches that had the same owners at all times. Most had one owner ever and lead
//! straight to it. Claims that share addresses with others have a segment tree over their boundaries: each is
//! filed under the few nodes that make up its range; the claims of one node share addresses, so they follow
//! each other in time and are found by binary search. Empty nodes are skipped by links. A table of pages,
//! as fine as there are stretches, leads to the stretch.
//!
//! Memory is linear for ranges that seldom overlap, and never more than `n log n` positions, however
//! they were made. A list of claims for each page is simpler but grows with `n²` for code that is
//! generated to the same addresses again and again. Pages in a hash table cost a cache miss more for each lookup.

use std::ops::Range;

use super::JitCodeId;
use super::load_map::Pages;
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::ids::{Idx, IndexSlice, IndexVec, Part, Spare, numbers};

numbers! {
    /// Index into [`Segments::claims`].
    #[derive(Default)]
    struct ClaimId(u32);
    /// Index into [`Segments::nodes`].
    struct NodeId(Spare);
}

/// Code that lay somewhere for some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim {
    pub(super) range: AvmaRange,
    /// Where the code's first byte lies, of which others may have taken the place.
    pub(super) origin: Avma,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// What lies there.
    pub(super) code: JitCodeId,
}

/// An immutable set of claims.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// By time.
    claims: IndexVec<ClaimId, Frozen>,
    /// By address.
    stretches: Vec<Stretch>,
    nodes: IndexVec<NodeId, Node>,
    /// The claims of the nodes, by time.
    filed: Vec<ClaimId>,
    pages: Pages,
}

/// A claim without its addresses, which the stretches know.
#[derive(Clone, Copy, Debug)]
struct Frozen {
    origin: Avma,
    from: Timestamp,
    to: Timestamp,
    code: JitCodeId,
}

/// Addresses that had the same owners at all times.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: u64,
    /// No dump has code of 4 GB.
    len: u32,
    target: Target,
}

/// Where a stretch leads: to its only claim, which is marked, or to the innermost node that is not empty.
#[derive(Clone, Copy, Debug)]
struct Target(u32);

impl Target {
    /// Marks claims.
    const SINGLE: u32 = 1 << 31;
    /// Behind all nodes: [`Segments::new`] keeps their number low.
    const NOWHERE: u32 = Self::SINGLE - 1;

    const fn claim(claim: ClaimId) -> Self {
        Self(Self::SINGLE | claim.0)
    }

    fn node(node: Option<NodeId>) -> Self {
        Self(node.map_or(Self::NOWHERE, |node| node.index() as u32))
    }

    fn single(self) -> Option<ClaimId> {
        (self.0 & Self::SINGLE != 0).then_some(ClaimId(self.0 & !Self::SINGLE))
    }

    /// For those that lead to no claim.
    fn innermost(self) -> Option<NodeId> {
        (self.0 != Self::NOWHERE).then(|| NodeId::from_usize(self.0 as usize))
    }
}

/// A node that is not empty.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Part of `filed`.
    claims: Part<ClaimId>,
    /// The next node outwards that is not empty.
    outer: Option<NodeId>,
}

/// Code found at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    /// Where its first byte lies.
    pub(super) start: Avma,
    /// Begin and end of the claim.
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) code: JitCodeId,
}

impl Segments {
    /// Claims of length and duration zero cover nothing and are left out.
    pub(super) fn new(mut claims: Vec<Claim>) -> Self {
        claims.retain(|claim| claim.from < claim.to && !claim.range.is_empty());
        claims.sort_by_key(|claim| (claim.from, claim.range.start));
        // Beyond are numbers with another meaning; a dump of 128 GB could hold so many.
        claims.truncate(Target::SINGLE as usize / 64);
        let claims = IndexVec::from(claims);
        let mut segments = Self::default();
        segments.stretches.reserve_exact(claims.len());
        let mut filing = Filing::default();
        let order = by_address(&claims);
        let mut rest = order.as_slice();
        while let Some(&(_, first)) = rest.first() {
            let end_of = |claim: ClaimId| claims[claim].range.end.0;
            let mut end = end_of(first);
            let touching = rest.iter().take_while(|&&(start, claim)| {
                let reaches = start < end;
                end = end.max(end_of(claim));
                reaches
            });
            let (cluster, behind) = rest.split_at(touching.count());
            match cluster {
                [(_, single)] => segments.push_single(*single, claims[*single].range),
                _ => segments.file(&claims, cluster, &mut filing),
            }
            rest = behind;
        }
        // Not in place: that would keep the larger memory.
        segments.claims = claims.iter().map(Frozen::from).collect();
        let stretches = &segments.stretches;
        let span = |at: usize| (stretches[at].start, stretches[at].end());
        segments.pages = Pages::of(stretches.len(), span);
        segments
    }

    pub(super) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The claim in force at `time`.
    pub(super) fn at(&self, at: Avma, time: Timestamp) -> Option<Owner> {
        let stretch = self.stretch(at)?;
        if let Some(single) = stretch.target.single() {
            return self.claims[single].owner_at(time);
        }
        self.nodes_from(stretch).find_map(|filed| {
            let next = filed.partition_point(|&claim| self.claims[claim].from <= time);
            self.claims[*filed.get(next.checked_sub(1)?)?].owner_at(time)
        })
    }

    /// The first claim that begins after `time`.
    pub(super) fn after(&self, at: Avma, time: Timestamp) -> Option<Owner> {
        let later = |&claim: &ClaimId| self.claims[claim].from > time;
        let stretch = self.stretch(at)?;
        let first = match stretch.target.single() {
            Some(single) => Some(single).filter(later),
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
        Some(self.claims[first?].owner())
    }

    /// All claims' code and end.
    pub(super) fn ends(&self) -> impl Iterator<Item = (JitCodeId, Timestamp)> {
        self.claims.iter().map(|claim| (claim.code, claim.to))
    }

    /// Whether the address was ever covered.
    pub(super) fn ever(&self, at: Avma) -> bool {
        self.stretch(at).is_some()
    }

    /// The code of some claim that ever touched the range.
    pub(super) fn touching(&self, range: AvmaRange) -> Option<JitCodeId> {
        let first = self
            .stretches
            .partition_point(|stretch| stretch.end() <= range.start.0);
        let stretch = self.stretches.get(first)?;
        if stretch.start >= range.end.0 {
            return None;
        }
        let claim = match stretch.target.single() {
            Some(single) => single,
            None => *self.nodes_from(stretch).next()?.first()?,
        };
        Some(self.claims[claim].code)
    }

    /// The claims of all nodes over a stretch, innermost first.
    fn nodes_from(&self, stretch: &Stretch) -> impl Iterator<Item = &[ClaimId]> {
        let mut next = stretch.target.innermost();
        std::iter::from_fn(move || {
            let Node { claims, outer } = self.nodes[next?];
            next = outer;
            Some(claims.of(&self.filed))
        })
    }

    /// The stretch that holds the address, if it was ever covered.
    #[inline]
    fn stretch(&self, at: Avma) -> Option<&Stretch> {
        let (first, last) = self.pages.around(at.0)?;
        let near = self.stretches.get(first..=last)?;
        let next = near.partition_point(|stretch| stretch.start <= at.0);
        let stretch = &near[next.checked_sub(1)?];
        (at.0 - stretch.start < u64::from(stretch.len)).then_some(stretch)
    }

    fn push_single(&mut self, claim: ClaimId, range: AvmaRange) {
        self.push(range.start.0, range.end.0, Target::claim(claim));
    }

    fn push(&mut self, start: u64, end: u64, target: Target) {
        self.stretches.push(Stretch {
            start,
            len: u32::try_from(end - start).unwrap_or(u32::MAX),
            target,
        });
    }

    /// Files every claim of a cluster under its nodes. Nodes are numbered as in a heap with the leaves last.
    fn file(&mut self, claims: &ByTime, cluster: &[(u64, ClaimId)], filing: &mut Filing) {
        filing.begin(claims, cluster);
        let leaves = filing.bounds.len() - 1;
        let mut counts = vec![0_u32; 2 * leaves + 1];
        filing.each(claims, |node, _| counts[node] += 1);
        // Counts become positions.
        let mut position = u32::try_from(self.filed.len()).unwrap_or(u32::MAX);
        for count in &mut counts {
            position += std::mem::replace(count, position);
        }
        self.filed.resize(position as usize, ClaimId::default());
        let filed = &mut self.filed;
        filing.each(claims, |node, claim| {
            filed[counts[node] as usize] = claim;
            counts[node] += 1;
        });
        // Each position now stands where the next node begins.
        self.link(&filing.bounds, &counts);
    }

    /// Numbers the nodes that are not empty and links each to the next one outwards. `ends` has where
    /// the claims of each node end.
    fn link(&mut self, bounds: &[u64], ends: &[u32]) {
        let leaves = bounds.len() - 1;
        let claims = |node: usize| ends[node - 1] as usize..ends[node] as usize;
        let mut innermost = vec![None; leaves];
        for node in 1..leaves {
            innermost[node] = self.node(innermost[node / 2], claims(node));
        }
        for (node, pair) in (leaves..).zip(bounds.windows(2)) {
            let outer = innermost[node / 2];
            let target = match self.filed[claims(node)] {
                [single] if outer.is_none() => Target::claim(single),
                _ => Target::node(self.node(outer, claims(node))),
            };
            self.push(pair[0], pair[1], target);
        }
    }

    /// A new node, or the one outwards of it if it is empty.
    fn node(&mut self, outer: Option<NodeId>, claims: Range<usize>) -> Option<NodeId> {
        if claims.is_empty() {
            return outer;
        }
        let claims = Part::new(claims);
        Some(self.nodes.push(Node { claims, outer }))
    }
}

type ByTime = IndexSlice<ClaimId, [Claim]>;

/// Claims by start address, with their numbers; most dumps tell them in this order.
fn by_address(claims: &ByTime) -> Vec<(u64, ClaimId)> {
    let starts = claims.iter().map(|claim| claim.range.start.0);
    let mut order: Vec<(u64, ClaimId)> = starts.zip(claims.indices()).collect();
    if !order.is_sorted() {
        order.sort_unstable();
    }
    order
}

/// The claims of one cluster and their boundaries; buffers are used again.
#[derive(Default)]
struct Filing {
    bounds: Vec<u64>,
    /// By time.
    numbers: Vec<ClaimId>,
}

impl Filing {
    fn begin(&mut self, claims: &ByTime, cluster: &[(u64, ClaimId)]) {
        self.numbers.clear();
        self.numbers.extend(cluster.iter().map(|&(_, claim)| claim));
        self.numbers.sort_unstable();
        self.bounds.clear();
        let ranges = self.numbers.iter().map(|&n| claims[n].range);
        self.bounds
            .extend(ranges.flat_map(|range| [range.start.0, range.end.0]));
        self.bounds.sort_unstable();
        self.bounds.dedup();
    }

    /// Calls `f` with every node and claim that belong together, claims in order of time.
    fn each(&self, claims: &ByTime, mut f: impl FnMut(usize, ClaimId)) {
        let leaves = self.bounds.len() - 1;
        for &number in &self.numbers {
            let range = claims[number].range;
            let start = self.bounds.partition_point(|&bound| bound < range.start.0);
            // Most claims are one stretch.
            let end = match self.bounds.get(start + 1) {
                Some(&next) if next == range.end.0 => start + 1,
                _ => self.bounds.partition_point(|&bound| bound < range.end.0),
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
}

impl Stretch {
    const fn end(&self) -> u64 {
        self.start.saturating_add(self.len as u64)
    }
}

impl Frozen {
    const fn owner(&self) -> Owner {
        Owner {
            start: self.origin,
            from: self.from,
            to: self.to,
            code: self.code,
        }
    }

    fn owner_at(&self, time: Timestamp) -> Option<Owner> {
        (self.from <= time && time < self.to).then(|| self.owner())
    }
}

impl From<&Claim> for Frozen {
    fn from(claim: &Claim) -> Self {
        Self {
            origin: claim.origin,
            from: claim.from,
            to: claim.to,
            code: claim.code,
        }
    }
}
