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
use crate::collect::{NO_NODE, Owner, PathEnd, PathNode, PathRoot, PathSample, Paths, Pc, PcId};
use crate::ids::{Idx, IndexSlice};
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
}

/// What is known of a node besides.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// Index into [`Index::roots`], [`NO_NODE`] for threads in which nothing was cut.
    root: u32,
    /// Index into [`Index::keyed`] of the nearest node from here outwards that has a key.
    link: u32,
}

/// A node that has a key.
#[derive(Clone, Copy, Debug)]
struct Keyed {
    node: u32,
    key: KeyId,
    /// The next one outwards.
    outer: u32,
    /// How all stacks through it go on.
    shape: Shape,
    /// First and last sample that has it; none, if the last one is before the first one.
    samples: (u32, u32),
}

/// A stack that was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CutStack {
    pub(super) rank: u32,
    /// Its number among the samples.
    sample: u32,
    /// Its innermost frame.
    pub(super) node: u32,
    /// Its outermost frame.
    pub(super) border: u32,
    /// The key of that, if it has one.
    pub(super) key: Option<KeyId>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// As they were collected; where they are of interest, their addresses are places.
    nodes: Vec<PathNode>,
    sides: Vec<Side>,
    roots: Vec<(Owner, PathEnd)>,
    /// By place: an address that is there.
    places: Vec<PcId>,
    keyed: Vec<Keyed>,
    /// By node, as far as somebody asked.
    known_shapes: FxHashMap<u32, Shape>,
    shapes: FxHashMap<(Shape, PcId, Avma), Shape>,
    /// Those of threads in which something was cut, by rank.
    samples: Vec<PathSample>,
    keys: FxHashMap<(Owner, PcId, Avma), KeyId>,
    donors: Vec<Donors>,
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
            samples: paths.samples,
            ..Self::default()
        };
        let roots = paths.roots.iter();
        index.place_nodes(roots.filter(|root| owners.contains(&root.owner)), pcs);
        let (samples, sides) = (&mut index.samples, &index.sides);
        samples.retain(|sample| sides[sample.node as usize].root != NO_NODE);
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
            root: NO_NODE,
            link: NO_NODE,
        };
        self.sides = vec![nothing; self.nodes.len()];
        let mut known: FxHashMap<(Owner, PathEnd), u32> = FxHashMap::default();
        for root in roots {
            let of_root = *known.entry((root.owner, root.end)).or_insert_with(|| {
                self.roots.push((root.owner, root.end));
                number(self.roots.len() - 1)
            });
            self.sides[root.node as usize].root = of_root;
            // The end is part of how a stack goes on.
            self.known_shapes.insert(root.node, Shape(of_root));
        }
        let mut places = PcNumbers::new(pcs);
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if let Some(parent) = self.sides.get(node.parent as usize)
                && parent.root != NO_NODE
            {
                self.sides[at].root = parent.root;
                node.pc = places.of(node.pc);
            }
        }
        self.places = places.all;
    }

    fn find_cuts(&mut self) {
        for (sample, at) in self.samples.iter().zip(0..) {
            if self.recorded_end(sample.node) != PathEnd::Cut {
                continue;
            }
            let border = self.outwards(sample.node).last().unwrap_or(sample.node);
            let frame = *self.frame(border);
            let owner = self.owner(border);
            let new = KeyId(number(self.keys.len()));
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
        let sp = |cut: &CutStack| nodes[cut.border as usize].spot.sp();
        (self.cuts).sort_by(|a, b| (sp(b), a.rank).cmp(&(sp(a), b.rank)));
    }

    /// Finds the nodes that have keys. Those of cut stacks have frames outside of them once they are completed.
    fn link_nodes(&mut self) {
        let mut is_border = vec![false; self.places.len()];
        for cut in &self.cuts {
            is_border[self.frame(cut.border).pc.index()] = true;
        }
        for (at, node) in (0..).zip(&self.nodes) {
            let root = self.sides[at as usize].root;
            if root == NO_NODE || node.parent == NO_NODE {
                continue;
            }
            let outer = self.sides[node.parent as usize].link;
            let key = match is_border[node.pc.index()] && node.spot.is_exact() {
                true => self.key_of(node, root),
                false => None,
            };
            self.sides[at as usize].link = key.map_or(outer, |key| {
                self.keyed.push(Keyed {
                    node: at,
                    key,
                    outer,
                    shape: Shape::NONE,
                    samples: (u32::MAX, 0),
                });
                number(self.keyed.len() - 1)
            });
        }
    }

    /// The key of a node, if it has one and frames outside of it or will have some.
    fn key_of(&self, node: &PathNode, root: u32) -> Option<KeyId> {
        let (owner, end) = self.roots[root as usize];
        let is_outermost = self.frame(node.parent).parent == NO_NODE;
        if is_outermost && end != PathEnd::Cut {
            return None;
        }
        self.keys.get(&(owner, node.pc, node.spot.sp())).copied()
    }

    /// Makes complete stacks donors of all keys that they pass.
    fn find_donors(&mut self) {
        for (sample, at) in self.samples.iter().zip(0..) {
            if self.recorded_end(sample.node) == PathEnd::Cut {
                continue;
            }
            let mut link = self.sides[sample.node as usize].link;
            while let Some(keyed) = self.keyed.get_mut(link as usize) {
                self.donors[keyed.key.index()].add_own(at);
                keyed.samples = (keyed.samples.0.min(at), at);
                link = keyed.outer;
            }
        }
        for link in 0..number(self.keyed.len()) {
            let (first, last) = self.keyed[link as usize].samples;
            if first <= last {
                self.summarize(link, first, last);
            }
        }
    }

    /// Tells the key of a node that samples have it, and how they go on.
    fn summarize(&mut self, link: u32, first: u32, last: u32) {
        let Keyed { node, key, .. } = self.keyed[link as usize];
        let PathNode { parent, fp, .. } = *self.frame(node);
        let shape = self.shape(parent);
        self.keyed[link as usize].shape = shape;
        let summary = Summary {
            first: self.donor_at(first, link),
            last: self.donor_at(last, link),
            shape: Some(shape),
        };
        self.donors[key.index()].join(fp, summary);
    }

    fn donor_at(&self, sample: u32, link: u32) -> Donor {
        let PathSample { rank, node: leaf } = self.samples[sample as usize];
        let node = self.keyed[link as usize].node;
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
        if self.frame(border).parent == NO_NODE {
            self.nodes[cut.border as usize].parent = outside;
            let link = self.sides[cut.border as usize].link;
            self.keyed[link as usize].outer = self.sides[outside as usize].link;
        } else if self.shape(border) != self.shape(outside) {
            return;
        }
        let mut link = self.sides[cut.node as usize].link;
        while let Some(&Keyed { key, outer, .. }) = self.keyed.get(link as usize) {
            self.donors[key.index()].add_completed(cut.sample);
            self.summarize(link, cut.sample, cut.sample);
            link = outer;
        }
    }

    /// How a stack goes on from a node outwards, that itself included.
    fn shape(&mut self, node: u32) -> Shape {
        let mut unknown = Vec::new();
        let mut at = node;
        let mut shape = loop {
            match self.known_shapes.get(&at) {
                Some(shape) => break *shape,
                None => unknown.push(at),
            }
            at = self.frame(at).parent;
        };
        for at in unknown.into_iter().rev() {
            let PathNode { pc, spot, .. } = *self.frame(at);
            let new = Shape(number(self.roots.len() + self.shapes.len()));
            shape = *self.shapes.entry((shape, pc, spot.sp())).or_insert(new);
            self.known_shapes.insert(at, shape);
        }
        shape
    }

    /// The nearest donors of a key on either side of a sample, from there on.
    pub(super) fn donors_around(
        &self,
        key: KeyId,
        rank: u32,
    ) -> (
        impl Iterator<Item = Donor> + Clone + '_,
        impl Iterator<Item = Donor> + Clone + '_,
    ) {
        let sample = self.samples.partition_point(|sample| sample.rank < rank);
        let (before, after) = self.donors(key).around(number(sample));
        let donor = move |sample| self.donor(sample, key);
        (before.map(donor), after.map(donor))
    }

    /// How many of the donors of a key that were recorded whole are before a sample.
    pub(super) fn whole_before(&self, key: KeyId, rank: u32) -> usize {
        let sample = self.samples.partition_point(|sample| sample.rank < rank);
        self.donors(key).own_before(number(sample))
    }

    /// The donors of a key that were recorded whole, so many on either side of a place among them.
    pub(super) fn whole_around(&self, key: KeyId, place: usize, most: usize) -> Vec<Donor> {
        let own = self.donors(key).own();
        let near = &own[place.saturating_sub(most)..own.len().min(place + most)];
        near.iter().map(|sample| self.donor(*sample, key)).collect()
    }

    /// The donors of a key.
    pub(super) fn donors(&self, key: KeyId) -> &Donors {
        &self.donors[key.index()]
    }

    /// A sample as a donor of a key.
    fn donor(&self, sample: u32, key: KeyId) -> Donor {
        let leaf = self.samples[sample as usize].node;
        let mut link = self.sides[leaf as usize].link;
        while let Some(keyed) = self.keyed.get(link as usize)
            && keyed.key != key
        {
            link = keyed.outer;
        }
        self.donor_at(sample, link)
    }

    /// A node and those outside of it.
    pub(super) fn outwards(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let outer = move |node: &u32| {
            let parent = self.frame(*node).parent;
            let is_frame = self.frame(parent).parent != NO_NODE;
            is_frame.then_some(parent)
        };
        std::iter::successors(Some(node), outer)
    }

    /// How a donor's stack goes on inside of the frame at the key: frames with the same places are equal here.
    pub(super) fn inside(&self, donor: &Donor, most: usize) -> Vec<(PcId, Avma)> {
        let inner = self.outwards(donor.leaf);
        let inner = inner.take_while(|node| *node != donor.node);
        let frames: Vec<u32> = inner.collect();
        let placed = |node: &u32| {
            let frame = self.frame(*node);
            (frame.pc, frame.spot.sp())
        };
        frames.iter().rev().take(most).map(placed).collect()
    }

    /// A frame.
    pub(super) fn frame(&self, node: u32) -> &PathNode {
        &self.nodes[node as usize]
    }

    /// Whose frame it is.
    pub(super) fn owner(&self, node: u32) -> Owner {
        self.roots[self.sides[node as usize].root as usize].0
    }

    /// How its stack ended when it was recorded.
    fn recorded_end(&self, node: u32) -> PathEnd {
        self.roots[self.sides[node as usize].root as usize].1
    }

    /// How a donor's stack goes on outside of its frame.
    pub(super) fn continuation(&self, donor: &Donor) -> Shape {
        self.keyed[donor.link as usize].shape
    }

    /// Addresses outside of a frame, and whether they end at the base of a fiber.
    pub(super) fn outside(&self, node: u32) -> (Vec<PcId>, bool) {
        let frames = self.outwards(node).skip(1);
        let address = |node: u32| self.places[self.frame(node).pc.index()];
        let outermost = self.outwards(node).last().unwrap_or(node);
        let is_fiber = self.recorded_end(self.frame(outermost).parent) == PathEnd::Fiber;
        (frames.map(address).collect(), is_fiber)
    }
}

fn number(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 4 G frames")
}
