//! Which samples of a thread passed the frame at which another one's stack was cut, and how they went on from there.
//!
//! In: the workers' trees of stacks. Out: [`Index`], one tree for the threads in which something was cut, with *keys*: a place
//! in code and on the stack at which some stack was cut. The *donors* of a key are samples that have a frame there and
//! whose frames further out are known; what lies outside of it is its *continuation*, known by a number that is
//! equal for equal ones.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::address::Avma;
use crate::collect::{NO_NODE, Owner, PathEnd, PathNode, PathSample, Paths, Pc, PcId};
use crate::intern::ItemIndex;

/// What continuations are told apart by: addresses and stack pointers up to the root. Equal numbers, equal continuations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Shape(u32);

/// Number of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct KeyId(pub(super) u32);

/// A frame of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) frame: PathNode,
    /// Index into [`Index::roots`].
    pub(super) root: u32,
    shape: Shape,
    /// The nearest node from here outwards that has a key and is not the outermost one.
    link: u32,
}

/// A stack that was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CutStack {
    pub(super) rank: u32,
    /// Its innermost frame.
    pub(super) node: u32,
    /// Its outermost frame.
    pub(super) border: u32,
    /// The key of that, if it has one.
    pub(super) key: Option<KeyId>,
}

/// A sample that has a frame at a key, and frames outside of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Donor {
    pub(super) rank: u32,
    /// Its frame there.
    pub(super) node: u32,
    /// Its innermost frame.
    pub(super) leaf: u32,
    /// Whether it is complete of itself.
    pub(super) is_own: bool,
}

/// The donors of one key.
#[derive(Debug, Default)]
pub(super) struct Donors {
    /// By rank.
    pub(super) all: Vec<Donor>,
    /// By frame pointer, `None` where it is not known.
    by_fp: FxHashMap<Option<u64>, Summary>,
    /// Of all.
    total: Option<Summary>,
}

/// What some donors of a key say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    /// The earliest.
    pub(super) first: Donor,
    /// The latest.
    pub(super) last: Donor,
    /// How all of them go on; `None` if they disagree.
    pub(super) shape: Option<Shape>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    nodes: Vec<Node>,
    by_frame: ItemIndex,
    pub(super) roots: Vec<(Owner, PathEnd)>,
    /// By place: an address that is there.
    places: Vec<PcId>,
    shapes: FxHashMap<(Shape, PcId, Avma), Shape>,
    /// Samples of each thread.
    ranks: FxHashMap<Owner, Vec<u32>>,
    keys: FxHashMap<(Owner, PcId, Avma), KeyId>,
    pub(super) donors: Vec<Donors>,
    /// Those with the highest stack pointer first: what can be a donor of one is decided before it.
    pub(super) cuts: Vec<CutStack>,
}

impl Summary {
    fn of(donor: Donor, shape: Shape) -> Self {
        Self {
            first: donor,
            last: donor,
            shape: Some(shape),
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            shape: self.shape.filter(|shape| Some(*shape) == other.shape),
        }
    }
}

impl Donors {
    fn add(&mut self, donor: Donor, fp: Option<u64>, shape: Shape) {
        let at = self.all.partition_point(|known| known.rank < donor.rank);
        self.all.insert(at, donor);
        let new = Summary::of(donor, shape);
        let known = self.by_fp.entry(fp).or_insert(new);
        *known = known.join(new);
        self.total = Some(self.total.map_or(new, |total| total.join(new)));
    }

    /// What the donors say whose frame pointer is that one, as far as both are known.
    pub(super) fn fitting(&self, fp: Option<u64>) -> Option<Summary> {
        let of = |fp: Option<u64>| self.by_fp.get(&fp).copied();
        match fp {
            None => self.total,
            Some(_) => match (of(fp), of(None)) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (a, b) => a.or(b),
            },
        }
    }
}

impl Index {
    /// Puts the trees of all workers together, of threads in which something was cut.
    pub(super) fn new(paths: &Paths, pcs: &[Pc]) -> Self {
        let cut = paths.roots.iter().filter(|root| root.end == PathEnd::Cut);
        let owners: FxHashSet<Owner> = cut.map(|root| root.owner).collect();
        let mut index = Self::default();
        let moved = index.join(paths, pcs, &owners);
        let samples = paths.samples.iter().map(|sample| PathSample {
            node: moved[sample.node as usize],
            ..*sample
        });
        let mut samples: Vec<PathSample> = samples.filter(|s| s.node != NO_NODE).collect();
        samples.sort_unstable_by_key(|sample| sample.rank);
        index.find_cuts(&samples);
        index.link_nodes();
        for sample in &samples {
            let owner = index.owner(sample.node);
            index.ranks.entry(owner).or_default().push(sample.rank);
            index.add_donor(sample.rank, sample.node, true);
        }
        index
    }

    /// Where each worker's nodes are now.
    fn join(&mut self, paths: &Paths, pcs: &[Pc], owners: &FxHashSet<Owner>) -> Vec<u32> {
        let mut moved = vec![NO_NODE; paths.nodes.len()];
        let mut known_roots: FxHashMap<(Owner, u8), u32> = FxHashMap::default();
        for root in paths
            .roots
            .iter()
            .filter(|root| owners.contains(&root.owner))
        {
            let of_root = known_roots.entry((root.owner, root.end as u8));
            moved[root.node as usize] =
                *of_root.or_insert_with(|| self.add_root(root.owner, root.end));
        }
        let mut places: FxHashMap<Pc, PcId> = FxHashMap::default();
        for (at, node) in paths.nodes.iter().enumerate() {
            let Some(&parent) = moved.get(node.parent as usize) else {
                continue;
            };
            if parent == NO_NODE {
                continue;
            }
            // Addresses of several workers are equal by what they are.
            let place = *places.entry(pcs[node.pc.0 as usize]).or_insert_with(|| {
                self.places.push(node.pc);
                PcId(number(self.places.len() - 1))
            });
            moved[at] = self.intern(PathNode {
                parent,
                pc: place,
                ..*node
            });
        }
        moved
    }

    fn add_root(&mut self, owner: Owner, end: PathEnd) -> u32 {
        let root = number(self.roots.len());
        self.roots.push((owner, end));
        self.nodes.push(Node {
            frame: PathNode {
                parent: NO_NODE,
                pc: PcId(root),
                sp: Avma(0),
                fp: None,
                is_exact: false,
            },
            root,
            // The end is part of how a stack goes on.
            shape: Shape(number(self.nodes.len())),
            link: NO_NODE,
        });
        number(self.nodes.len() - 1)
    }

    /// The node of a frame; `frame.pc` is a place.
    fn intern(&mut self, frame: PathNode) -> u32 {
        let new = number(self.nodes.len());
        let nodes = &self.nodes;
        let hash = |frame: &PathNode| FxBuildHasher.hash_one(frame);
        let is = |id: u32| nodes[id as usize].frame == frame;
        let hash_of = |id: u32| hash(&nodes[id as usize].frame);
        let known = self.by_frame.find_or_add(hash(&frame), new, is, hash_of);
        if let Some(known) = known {
            return known;
        }
        let parent = self.nodes[frame.parent as usize];
        let shape = (parent.shape, frame.pc, frame.sp);
        self.nodes.push(Node {
            frame,
            root: parent.root,
            shape: *self.shapes.entry(shape).or_insert(Shape(new)),
            link: NO_NODE,
        });
        new
    }

    fn find_cuts(&mut self, samples: &[PathSample]) {
        for sample in samples {
            if self.end_of(sample.node) != PathEnd::Cut {
                continue;
            }
            let border = self.outermost(sample.node);
            let frame = self.nodes[border as usize].frame;
            let owner = self.owner(border);
            let new = KeyId(number(self.keys.len()));
            // Of a frame that was interrupted, equal addresses say nothing.
            let key = (frame.is_exact)
                .then(|| *(self.keys.entry((owner, frame.pc, frame.sp))).or_insert(new));
            self.cuts.push(CutStack {
                rank: sample.rank,
                node: sample.node,
                border,
                key,
            });
        }
        self.donors.resize_with(self.keys.len(), Donors::default);
        let nodes = &self.nodes;
        let sp = |cut: &CutStack| nodes[cut.border as usize].frame.sp;
        (self.cuts).sort_by(|a, b| (sp(b), a.rank).cmp(&(sp(a), b.rank)));
    }

    fn end_of(&self, node: u32) -> PathEnd {
        self.roots[self.nodes[node as usize].root as usize].1
    }

    fn outermost(&self, node: u32) -> u32 {
        let outer = self.outwards(node);
        outer.last().unwrap_or(node)
    }

    fn link_nodes(&mut self) {
        for node in 0..number(self.nodes.len()) {
            self.nodes[node as usize].link = self.link_of(node);
        }
    }

    /// The link of a node whose parent has its own.
    fn link_of(&self, node: u32) -> u32 {
        let parent = self.nodes[node as usize].frame.parent;
        if parent == NO_NODE {
            return NO_NODE;
        }
        match self.key_of(node) {
            Some(_) => node,
            None => self.nodes[parent as usize].link,
        }
    }

    /// The key of a node, if it has frames outside of it.
    fn key_of(&self, node: u32) -> Option<KeyId> {
        let Node { frame, root, .. } = self.nodes[node as usize];
        let is_outermost = self.nodes[frame.parent as usize].frame.parent == NO_NODE;
        if !frame.is_exact || is_outermost {
            return None;
        }
        let owner = self.roots[root as usize].0;
        self.keys.get(&(owner, frame.pc, frame.sp)).copied()
    }

    /// Makes a complete stack a donor of all keys that it passes.
    fn add_donor(&mut self, rank: u32, node: u32, is_own: bool) {
        if self.end_of(node) == PathEnd::Cut {
            return;
        }
        let mut at = self.nodes[node as usize].link;
        while at != NO_NODE {
            let parent = self.nodes[at as usize].frame.parent;
            if let Some(key) = self.key_of(at) {
                let donor = Donor {
                    rank,
                    node: at,
                    leaf: node,
                    is_own,
                };
                let fp = self.nodes[at as usize].frame.fp;
                let shape = self.nodes[parent as usize].shape;
                self.donors[key.0 as usize].add(donor, fp, shape);
            }
            at = self.nodes[parent as usize].link;
        }
    }

    /// Lets a cut stack go on as a donor does.
    pub(super) fn complete(&mut self, cut: &CutStack, donor: &Donor) {
        let mut inner: Vec<u32> = self.outwards(cut.node).collect();
        inner.reverse();
        let mut parent = self.nodes[donor.node as usize].frame.parent;
        for node in inner {
            let frame = self.nodes[node as usize].frame;
            let moved = self.intern(PathNode { parent, ..frame });
            self.nodes[moved as usize].link = self.link_of(moved);
            parent = moved;
        }
        self.add_donor(cut.rank, parent, false);
    }

    /// How many samples of its thread a cut stack is away from one.
    pub(super) fn apart(&self, cut: &CutStack, rank: u32) -> u32 {
        let ranks = self.ranks.get(&self.owner(cut.node));
        let ranks = ranks.map_or(&[][..], Vec::as_slice);
        let place = |rank: u32| ranks.partition_point(|known| *known < rank);
        number(place(cut.rank).abs_diff(place(rank)))
    }

    /// A node and those outside of it.
    pub(super) fn outwards(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let outer = move |node: &u32| {
            let parent = self.nodes[*node as usize].frame.parent;
            let is_frame = self.nodes[parent as usize].frame.parent != NO_NODE;
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
            (frame.pc, frame.sp)
        };
        frames.iter().rev().take(most).map(placed).collect()
    }

    /// A frame.
    pub(super) fn frame(&self, node: u32) -> &PathNode {
        &self.nodes[node as usize].frame
    }

    /// Whose frame it is.
    pub(super) fn owner(&self, node: u32) -> Owner {
        self.roots[self.nodes[node as usize].root as usize].0
    }

    /// How a stack goes on outside of a frame.
    pub(super) fn continuation(&self, node: u32) -> Shape {
        let parent = self.nodes[node as usize].frame.parent;
        self.nodes[parent as usize].shape
    }

    /// Addresses outside of a frame, and whether they end at the base of a fiber.
    pub(super) fn outside(&self, node: u32) -> (Vec<PcId>, bool) {
        let frames = self.outwards(node).skip(1);
        let address = |node: u32| self.places[self.nodes[node as usize].frame.pc.0 as usize];
        let is_fiber = self.end_of(node) == PathEnd::Fiber;
        (frames.map(address).collect(), is_fiber)
    }
}

fn number(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 4 G frames")
}
