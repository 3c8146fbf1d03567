//! The shape of the kernel's red-black tree (`lib/rbtree.c`), where what perf does depends on it.
//!
//! perf searches overlapping symbols in such a tree and stops at the first node that contains the address,
//! so which of several nested symbols is found, and whether any is, depends on the shape of the tree; and it puts rows in order by
//! comparisons that are no order. Nodes are small integers, and what is less is the caller's business.

use std::cmp::Ordering;

use crate::ids::{Idx, IndexVec, index_vec, numbers};

numbers! {
    /// A node of a tree.
    pub(crate) struct NodeId(pub(crate) u32);
}

/// No node.
pub(crate) const NIL: NodeId = NodeId(u32::MAX >> 1);

/// Trees have more nodes than caches have room for: 12 bytes each.
#[derive(Clone, Copy)]
struct Node {
    /// The parent above the lowest bit, which is set in red nodes.
    parent_and_colour: u32,
    /// Left, right.
    children: [NodeId; 2],
}

impl Node {
    fn red_leaf(parent: NodeId) -> Self {
        Self {
            parent_and_colour: parent.0 << 1 | RED,
            children: [NIL; 2],
        }
    }

    fn parent(self) -> NodeId {
        NodeId(self.parent_and_colour >> 1)
    }

    fn is_red(self) -> bool {
        self.parent_and_colour & RED != 0
    }

    fn has_two_children(self) -> bool {
        self.children[LEFT] != NIL && self.children[RIGHT] != NIL
    }
}

const RED: u32 = 1;

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// A red-black tree over the nodes `0..len`; which ones are in is up to the caller.
pub(crate) struct RbTree {
    nodes: IndexVec<NodeId, Node>,
    root: NodeId,
}

impl RbTree {
    /// An empty tree that can take the nodes `0..len`, not more than 2³¹ - 1.
    pub(crate) fn new(len: usize) -> Self {
        debug_assert!(len <= NIL.index());
        Self {
            nodes: index_vec![Node::red_leaf(NIL); len],
            root: NIL,
        }
    }

    /// Walks down, to the left where what is sought is said to be less than a node, to the right where it is
    /// greater, until it is equal.
    pub(crate) fn search(&self, mut compare: impl FnMut(NodeId) -> Ordering) {
        let mut node = self.root;
        while node != NIL {
            node = match compare(node) {
                Ordering::Less => self.child(node, LEFT),
                Ordering::Greater => self.child(node, RIGHT),
                Ordering::Equal => return,
            }
        }
    }

    /// Inserts a node, to the left of those that it is said to come before.
    pub(crate) fn insert(&mut self, new: NodeId, mut comes_before: impl FnMut(NodeId) -> bool) {
        let (mut before, mut behind, mut at) = (NIL, NIL, self.root);
        while at != NIL {
            if comes_before(at) {
                (behind, at) = (at, self.child(at, LEFT));
            } else {
                (before, at) = (at, self.child(at, RIGHT));
            }
        }
        self.insert_between(new, before, behind);
    }

    /// All nodes from left to right.
    pub(crate) fn in_order(&self) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut open = Vec::new();
        let mut at = self.root;
        while at != NIL || !open.is_empty() {
            while at != NIL {
                open.push(at);
                at = self.child(at, LEFT);
            }
            if let Some(node) = open.pop() {
                order.push(node);
                at = self.child(node, RIGHT);
            }
        }
        order
    }

    /// Inserts a node between its neighbours in order, [`NIL`] at the ends. Who knows them need not walk down from
    /// the root: one of the two has a free place there, and the walk would end in it.
    pub(crate) fn insert_between(&mut self, new: NodeId, before: NodeId, behind: NodeId) {
        let (parent, side) = if before == NIL || self.child(before, RIGHT) != NIL {
            (behind, LEFT)
        } else {
            (before, RIGHT)
        };
        *self.node_mut(new) = Node::red_leaf(parent);
        if parent == NIL {
            self.root = new;
        } else {
            self.node_mut(parent).children[side] = new;
        }
        self.balance_insertion(new);
    }

    /// Whether the tree has the same shape whichever of two neighbours in order is taken out, one standing where
    /// the other would. If the first is above the second, the second is its successor and takes its
    /// place when it goes. If it is below and the second has no other child, it is a red leaf and takes the second's.
    pub(crate) fn are_exchangeable(&self, before: NodeId, behind: NodeId) -> bool {
        self.child(before, RIGHT) != NIL || self.child(behind, RIGHT) == NIL
    }

    fn balance_insertion(&mut self, mut node: NodeId) {
        loop {
            let parent = self.node(node).parent();
            if parent == NIL {
                self.blacken(node);
                return;
            }
            let above = *self.node(parent);
            if !above.is_red() {
                return;
            }
            let grandparent = above.parent();
            let side = self.side_of(parent, grandparent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.blacken(uncle);
                self.blacken(parent);
                self.redden(grandparent);
                node = grandparent;
                continue;
            }
            let mut upper = parent;
            if above.children[1 - side] == node {
                self.rotate(parent, side);
                upper = node;
            }
            self.blacken(upper);
            self.redden(grandparent);
            self.rotate(grandparent, 1 - side);
            return;
        }
    }

    /// Takes a node out.
    pub(crate) fn remove(&mut self, node: NodeId) {
        let removed = *self.node(node);
        let ([left, right], parent) = (removed.children, removed.parent());
        if !removed.has_two_children() {
            let child = if left == NIL { right } else { left };
            self.replace_child(parent, node, child);
            if child != NIL {
                // The only child of a node is red, and the node black: the child takes its place and colour.
                self.node_mut(child).parent_and_colour = removed.parent_and_colour;
            } else if !removed.is_red() {
                self.balance_removal(parent);
            }
            return;
        }
        let mut successor = right;
        while self.child(successor, LEFT) != NIL {
            successor = self.child(successor, LEFT);
        }
        let moved = *self.node(successor);
        let orphan = moved.children[RIGHT];
        let orphan_parent = if successor == right {
            successor
        } else {
            moved.parent()
        };
        if successor != right {
            self.node_mut(orphan_parent).children[LEFT] = orphan;
            self.node_mut(successor).children[RIGHT] = right;
            self.set_parent(right, successor);
        }
        if orphan != NIL {
            self.set_parent(orphan, orphan_parent);
            self.blacken(orphan);
        }
        self.node_mut(successor).children[LEFT] = left;
        self.set_parent(left, successor);
        self.replace_child(parent, node, successor);
        self.node_mut(successor).parent_and_colour = removed.parent_and_colour;
        if orphan == NIL && !moved.is_red() {
            self.balance_removal(orphan_parent);
        }
    }

    /// Repairs the count of black nodes: one is missing on an empty side of `parent`.
    fn balance_removal(&mut self, mut parent: NodeId) {
        let mut node = NIL;
        while parent != NIL {
            // When the node is empty either side may be: the kernel takes the left one if its child is gone.
            let side = if self.child(parent, RIGHT) == node {
                RIGHT
            } else {
                LEFT
            };
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.blacken(sibling);
                self.redden(parent);
                self.rotate(parent, side);
                sibling = self.child(parent, 1 - side);
            }
            if sibling == NIL {
                return;
            }
            if !self.is_red(self.child(sibling, 1 - side)) {
                let near = self.child(sibling, side);
                if !self.is_red(near) {
                    self.redden(sibling);
                    if self.node(parent).is_red() {
                        self.blacken(parent);
                        return;
                    }
                    node = parent;
                    parent = self.node(node).parent();
                    continue;
                }
                self.rotate(sibling, 1 - side);
                self.blacken(near);
                self.redden(sibling);
                sibling = near;
            }
            let far = self.child(sibling, 1 - side);
            let colour = self.node(parent).parent_and_colour & RED;
            self.blacken(sibling);
            self.node_mut(sibling).parent_and_colour |= colour;
            self.blacken(parent);
            if far != NIL {
                self.blacken(far);
            }
            self.rotate(parent, side);
            return;
        }
    }

    /// Rotates `at` down to a side; its child on the other takes its place.
    fn rotate(&mut self, at: NodeId, side: usize) {
        let up = self.child(at, 1 - side);
        let inner = self.child(up, side);
        let parent = self.node(at).parent();
        self.node_mut(at).children[1 - side] = inner;
        if inner != NIL {
            self.set_parent(inner, at);
        }
        self.node_mut(up).children[side] = at;
        self.replace_child(parent, at, up);
        self.set_parent(up, parent);
        self.set_parent(at, up);
    }

    fn replace_child(&mut self, parent: NodeId, old: NodeId, new: NodeId) {
        if parent == NIL {
            self.root = new;
        } else {
            let side = self.side_of(old, parent);
            self.node_mut(parent).children[side] = new;
        }
    }

    /// On which side of its parent a node is.
    fn side_of(&self, node: NodeId, parent: NodeId) -> usize {
        if self.child(parent, LEFT) == node {
            LEFT
        } else {
            RIGHT
        }
    }

    fn child(&self, of: NodeId, side: usize) -> NodeId {
        self.node(of).children[side]
    }

    fn is_red(&self, node: NodeId) -> bool {
        node != NIL && self.node(node).is_red()
    }

    fn set_parent(&mut self, node: NodeId, parent: NodeId) {
        let node = self.node_mut(node);
        node.parent_and_colour = parent.0 << 1 | node.parent_and_colour & RED;
    }

    fn redden(&mut self, node: NodeId) {
        self.node_mut(node).parent_and_colour |= RED;
    }

    fn blacken(&mut self, node: NodeId) {
        self.node_mut(node).parent_and_colour &= !RED;
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RbTree {
        /// Number of black nodes on every path, checking colours and parents.
        fn black_height(&self, at: NodeId) -> u32 {
            if at == NIL {
                return 1;
            }
            let node = *self.node(at);
            for child in node.children {
                assert!(child == NIL || self.node(child).parent() == at);
                assert!(!(node.is_red() && self.is_red(child)));
            }
            let [left, right] = node.children.map(|child| self.black_height(child));
            assert_eq!(left, right);
            left + u32::from(!node.is_red())
        }
    }

    #[test]
    fn stays_a_red_black_tree() {
        let keys: IndexVec<NodeId, u64> = (0..400u64).map(|i| i * 7919 % 401).collect();
        let mut tree = RbTree::new(keys.len());
        for new in keys.indices() {
            tree.insert(new, |node| keys[new] < keys[node]);
            tree.black_height(tree.root);
        }
        let mut left: Vec<NodeId> = keys.indices().collect();
        for gone in (0..400).map(|i| NodeId(i * 163 % 400)).take(390) {
            tree.remove(gone);
            left.retain(|&n| n != gone);
            assert!(!tree.is_red(tree.root));
            tree.black_height(tree.root);
            left.sort_by_key(|&n| keys[n]);
            assert_eq!(tree.in_order(), left);
        }
    }
}
