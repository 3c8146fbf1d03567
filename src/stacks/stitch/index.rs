//! Which samples of a thread passed the frame at which another one's stack was cut, and how they went on from there.
//!
//! In: the workers' trees of stacks. Out: [`Index`], the trees of threads in which something was cut, with *keys*: a place
//! in code and on the stack at which some stack was cut. The *donors* of a key are samples that have a frame there and
//! whose frames further out are known; what lies outside of it is its *continuation*, known by a number that is
//! equal for equal ones. Nearly all frames are in no continuation of a key: only for those that are, more is done than to see that.

mod donors;
mod places;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::Avma;
use crate::collect::{NodeId, Owner, PathEnd, PathNode, PathRoot, PathSample, Paths, Pc, PcId};
use crate::ids::{Idx, IndexSlice, IndexVec, Spare, index_vec};
use crate::session::SampleId;
pub(super) use donors::{Donor, Donors, Summary};
use places::PcNumbers;

crate::ids::numbers! {
    /// What continuations are told apart by: addresses and stack pointers up to the root. Equal numbers, equal continuations.
    pub(super) struct Shape(u32);
}

impl Shape {
    /// Not looked at yet.
    const NONE: Self = Self(u32::MAX);
}

crate::ids::numbers! {
    /// Number of a key.
    pub(super) struct KeyId(pub(super) u32);
    /// What trees of one thread with one end have together.
    struct RootId(Spare);
    /// Number of a node that has a key.
    struct LinkId(Spare);
    /// A sample among those of threads in which something was cut.
    pub(super) struct NearId(Spare);
}

/// What is known of a node besides.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// None for threads in which nothing was cut.
    root: Option<RootId>,
    /// The nearest node from here outwards that has a key.
    link: Option<LinkId>,
}

/// A node that has a key.
#[derive(Clone, Copy, Debug)]
struct Keyed {
    node: NodeId,
    key: KeyId,
    /// The next one outwards.
    outer: Option<LinkId>,
    /// How all stacks through it go on.
    shape: Shape,
    /// First and last sample that has it.
    samples: Option<(NearId, NearId)>,
}

/// A stack that was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CutStack {
    pub(super) rank: SampleId,
    sample: NearId,
    /// Its innermost frame.
    pub(super) node: NodeId,
    /// Its outermost frame.
    pub(super) border: NodeId,
    /// The key of that, if it has one.
    pub(super) key: Option<KeyId>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// As they were collected; where they are of interest, their addresses are places.
    nodes: IndexVec<NodeId, PathNode>,
    sides: IndexVec<NodeId, Side>,
    roots: IndexVec<RootId, (Owner, PathEnd)>,
    /// By place: an address that is there.
    places: IndexVec<PcId, PcId>,
    keyed: IndexVec<LinkId, Keyed>,
    /// By node, as far as somebody asked.
    known_shapes: FxHashMap<NodeId, Shape>,
    shapes: FxHashMap<(Shape, PcId, Avma), Shape>,
    /// Those of threads in which something was cut, by rank.
    samples: IndexVec<NearId, PathSample>,
    keys: FxHashMap<(Owner, PcId, Avma), KeyId>,
    donors: IndexVec<KeyId, Donors>,
    /// Those with the highest stack pointer first: what can be a donor of one is decided before it.
    pub(super) cuts: Vec<CutStack>,
}

impl Index {
    /// Looks at the trees of all workers, of threads in which something was cut.
    pub(super) fn new(paths: Paths, pcs: &IndexSlice<PcId, [Pc]>) -> Self {
        let cut = paths.roots.iter().filter(|root| root.end == PathEnd::Cut);
        let owners: FxHashSet<Owner> = cut.map(|root| root.owner).collect();
        let mut index = Self {
            nodes: paths.nodes,
            samples: paths.samples.into(),
            ..Self::default()
        };
        let roots = paths.roots.iter();
        index.place_nodes(roots.filter(|root| owners.contains(&root.owner)), pcs);
        let (samples, sides) = (&mut index.samples, &index.sides);
        samples.retain(|sample| sides[sample.node].root.is_some());
        samples.sort_unstable_by_key(|sample| sample.rank);
        index.find_cuts();
        index.link_nodes();
        index.find_donors();
        index
    }

    /// Finds the nodes of some roots, and makes their addresses comparable.
    fn place_nodes<'p>(
        &mut self,
        roots: impl Iterator<Item = &'p PathRoot>,
        pcs: &IndexSlice<PcId, [Pc]>,
    ) {
        let nothing = Side {
            root: None,
            link: None,
        };
        self.sides = index_vec![nothing; self.nodes.len()];
        let mut known: FxHashMap<(Owner, PathEnd), RootId> = FxHashMap::default();
        for root in roots {
            let of_root = *known.entry((root.owner, root.end)).or_insert_with(|| {
                let owned_end = (root.owner, root.end);
                self.roots.push(owned_end)
            });
            self.sides[root.node].root = Some(of_root);
            // The end is part of how a stack goes on.
            let shape = Shape::from_usize(of_root.index());
            self.known_shapes.insert(root.node, shape);
        }
        let mut places = PcNumbers::new(pcs);
        for (at, node) in self.nodes.iter_mut_enumerated() {
            let root = self.sides[node.parent].root;
            if node.parent != at && root.is_some() {
                self.sides[at].root = root;
                node.pc = places.of(node.pc);
            }
        }
        self.places = places.all;
    }

    fn find_cuts(&mut self) {
        for (at, sample) in self.samples.iter_enumerated() {
            if self.recorded_end(sample.node) != PathEnd::Cut {
                continue;
            }
            let border = self.outwards(sample.node).last().unwrap_or(sample.node);
            let frame = *self.frame(border);
            let owner = self.owner(border);
            let new = KeyId::from_usize(self.keys.len());
            // Of a frame that was interrupted, equal addresses say nothing.
            let key = (frame.spot.is_exact()).then(|| {
                let key = (owner, frame.pc, frame.spot.sp());
                *self.keys.entry(key).or_insert(new)
            });
            self.cuts.push(CutStack {
                rank: sample.rank,
                sample: at,
                node: sample.node,
                border,
                key,
            });
        }
        self.donors.resize_with(self.keys.len(), Donors::default);
        let nodes = &self.nodes;
        let sp = |cut: &CutStack| nodes[cut.border].spot.sp();
        (self.cuts).sort_by(|a, b| (sp(b), a.rank).cmp(&(sp(a), b.rank)));
    }

    /// Finds the nodes that have keys. Those of cut stacks have frames outside of them once they are completed.
    fn link_nodes(&mut self) {
        let mut is_border: IndexVec<PcId, bool> = index_vec![false; self.places.len()];
        for cut in &self.cuts {
            is_border[self.frame(cut.border).pc] = true;
        }
        for (at, node) in self.nodes.iter_enumerated() {
            let Some(root) = self.sides[at].root else {
                continue;
            };
            if node.parent == at {
                continue;
            }
            let outer = self.sides[node.parent].link;
            let key = if is_border[node.pc] && node.spot.is_exact() {
                self.key_of(node, root)
            } else {
                None
            };
            let new = |border_key| {
                self.keyed.push(Keyed {
                    node: at,
                    key: border_key,
                    outer,
                    shape: Shape::NONE,
                    samples: None,
                })
            };
            self.sides[at].link = key.map(new).or(outer);
        }
    }

    /// The key of a node, if it has one and frames outside of it or will have some.
    fn key_of(&self, node: &PathNode, root: RootId) -> Option<KeyId> {
        let (owner, end) = self.roots[root];
        let is_outermost = self.is_root(node.parent);
        if is_outermost && end != PathEnd::Cut {
            return None;
        }
        self.keys.get(&(owner, node.pc, node.spot.sp())).copied()
    }

    /// Makes complete stacks donors of all keys that they pass.
    fn find_donors(&mut self) {
        for (at, sample) in self.samples.iter_enumerated() {
            if self.recorded_end(sample.node) == PathEnd::Cut {
                continue;
            }
            let mut next = self.sides[sample.node].link;
            while let Some(link) = next {
                let keyed = &mut self.keyed[link];
                self.donors[keyed.key].add_own(at);
                let first = keyed.samples.map_or(at, |(first, _)| first);
                keyed.samples = Some((first, at));
                next = keyed.outer;
            }
        }
        for link in self.keyed.indices() {
            if let Some((first, last)) = self.keyed[link].samples {
                self.summarize(link, first, last);
            }
        }
    }

    /// Tells the key of a node that samples have it, and how they go on.
    fn summarize(&mut self, link: LinkId, first: NearId, last: NearId) {
        let Keyed { node, key, .. } = self.keyed[link];
        let PathNode { parent, fp, .. } = *self.frame(node);
        let shape = self.shape(parent);
        self.keyed[link].shape = shape;
        let summary = Summary {
            first: self.donor_at(first, link),
            last: self.donor_at(last, link),
            shape: Some(shape),
        };
        self.donors[key].join(fp, summary);
    }

    fn donor_at(&self, sample: NearId, link: LinkId) -> Donor {
        let PathSample { rank, node: leaf } = self.samples[sample];
        let node = self.keyed[link].node;
        Donor {
            rank,
            node,
            leaf,
            link,
        }
    }

    /// Lets a cut stack go on as a donor does. All that have its border go on in one way, if they do: what is asked of donors
    /// lies there. Is it not so, it helps no others.
    pub(super) fn complete(&mut self, cut: &CutStack, donor: &Donor) {
        let outside = self.frame(donor.node).parent;
        let border = self.frame(cut.border).parent;
        if self.is_root(border) {
            self.nodes[cut.border].parent = outside;
            if let Some(link) = self.sides[cut.border].link {
                self.keyed[link].outer = self.sides[outside].link;
            }
        } else if self.shape(border) != self.shape(outside) {
            return;
        }
        let mut next = self.sides[cut.node].link;
        while let Some(link) = next {
            let Keyed { key, outer, .. } = self.keyed[link];
            self.donors[key].add_completed(cut.sample);
            self.summarize(link, cut.sample, cut.sample);
            next = outer;
        }
    }

    /// How a stack goes on from a node outwards, that itself included.
    fn shape(&mut self, node: NodeId) -> Shape {
        let mut unknown = Vec::new();
        let mut at = node;
        let mut shape = loop {
            match self.known_shapes.get(&at) {
                Some(shape) => break *shape,
                None => unknown.push(at),
            }
            at = self.frame(at).parent;
        };
        for inner in unknown.into_iter().rev() {
            let PathNode { pc, spot, .. } = *self.frame(inner);
            let new = Shape::from_usize(self.roots.len() + self.shapes.len());
            shape = *self.shapes.entry((shape, pc, spot.sp())).or_insert(new);
            self.known_shapes.insert(inner, shape);
        }
        shape
    }

    /// The nearest donors of a key on either side of a sample, from there on.
    pub(super) fn donors_around(
        &self,
        key: KeyId,
        rank: SampleId,
    ) -> (
        impl Iterator<Item = Donor> + Clone + '_,
        impl Iterator<Item = Donor> + Clone + '_,
    ) {
        let (before, after) = self.donors(key).around(self.sample_of(rank));
        let donor = move |sample| self.donor(sample, key);
        (before.filter_map(donor), after.filter_map(donor))
    }

    /// How many of the donors of a key that were recorded whole are before a sample.
    pub(super) fn whole_before(&self, key: KeyId, rank: SampleId) -> usize {
        self.donors(key).own_before(self.sample_of(rank))
    }

    /// The first sample that is not before a rank.
    fn sample_of(&self, rank: SampleId) -> NearId {
        let before = (self.samples.raw).partition_point(|sample| sample.rank < rank);
        NearId::from_usize(before)
    }

    /// The donors of a key that were recorded whole, so many on either side of a place among them.
    pub(super) fn whole_around(&self, key: KeyId, place: usize, most: usize) -> Vec<Donor> {
        let own = self.donors(key).own();
        let near = &own[place.saturating_sub(most)..own.len().min(place + most)];
        let donor = |sample: &NearId| self.donor(*sample, key);
        near.iter().filter_map(donor).collect()
    }

    /// The donors of a key.
    pub(super) fn donors(&self, key: KeyId) -> &Donors {
        &self.donors[key]
    }

    /// A sample as a donor of a key.
    fn donor(&self, sample: NearId, key: KeyId) -> Option<Donor> {
        let leaf = self.samples[sample].node;
        let outer = |link: &LinkId| self.keyed[*link].outer;
        let mut links = std::iter::successors(self.sides[leaf].link, outer);
        let link = links.find(|link| self.keyed[*link].key == key)?;
        Some(self.donor_at(sample, link))
    }

    /// A node and those outside of it.
    pub(super) fn outwards(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let outer = move |inner: &NodeId| {
            let parent = self.frame(*inner).parent;
            (!self.is_root(parent)).then_some(parent)
        };
        std::iter::successors(Some(node), outer)
    }

    /// How a donor's stack goes on inside of the frame at the key: frames with the same places are equal here.
    pub(super) fn inside(&self, donor: &Donor, most: usize) -> Vec<(PcId, Avma)> {
        let inner = self.outwards(donor.leaf);
        let inner = inner.take_while(|node| *node != donor.node);
        let frames: Vec<NodeId> = inner.collect();
        let placed = |node: &NodeId| {
            let frame = self.frame(*node);
            (frame.pc, frame.spot.sp())
        };
        frames.iter().rev().take(most).map(placed).collect()
    }

    /// A frame.
    pub(super) fn frame(&self, node: NodeId) -> &PathNode {
        &self.nodes[node]
    }

    /// Whether it stands outside of outermost frames.
    fn is_root(&self, node: NodeId) -> bool {
        self.frame(node).parent == node
    }

    /// The tree of a node, of which only samples of threads in which something was cut ask.
    fn root(&self, node: NodeId) -> (Owner, PathEnd) {
        let root = self.sides[node].root;
        self.roots[root.expect("a node of a thread in which something was cut")]
    }

    /// Whose frame it is.
    pub(super) fn owner(&self, node: NodeId) -> Owner {
        self.root(node).0
    }

    /// How its stack ended when it was recorded.
    fn recorded_end(&self, node: NodeId) -> PathEnd {
        self.root(node).1
    }

    /// How a donor's stack goes on outside of its frame.
    pub(super) fn continuation(&self, donor: &Donor) -> Shape {
        self.keyed[donor.link].shape
    }

    /// Addresses outside of a frame, and whether they end at the base of a fiber.
    pub(super) fn outside(&self, node: NodeId) -> (Vec<PcId>, bool) {
        let frames = self.outwards(node).skip(1);
        let address = |outer: NodeId| self.places[self.frame(outer).pc];
        let outermost = self.outwards(node).last().unwrap_or(node);
        let is_fiber = self.recorded_end(self.frame(outermost).parent) == PathEnd::Fiber;
        (frames.map(address).collect(), is_fiber)
    }
}
