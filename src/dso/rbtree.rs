//! The shape of the kernel's red-black tree (`lib/rbtree.c`), for symbol lookup the way perf does it.
//!
//! perf searches overlapping symbols in such a tree and stops at the first node that contains the address,
//! so which of several nested symbols is found, and whether any is, depends on the shape of the tree.
//! Nodes are small integers. Only [`super::symtab`] uses this, and only
//! for DSOs whose symbols overlap where somebody asks.

/// No node.
pub(crate) const NIL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    key: u64,
    parent: u32,
    left: u32,
    right: u32,
    red: bool,
}

/// A red-black tree over the nodes `0..len`; which ones are in is up to the caller.
pub(crate) struct RbTree {
    nodes: Vec<Node>,
    root: u32,
}

impl RbTree {
    /// An empty tree that can take the nodes `0..len`.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            nodes: vec![
                Node {
                    key: 0,
                    parent: NIL,
                    left: NIL,
                    right: NIL,
                    red: true
                };
                len
            ],
            root: NIL,
        }
    }

    /// Walks down to the left of keys above `at`, to the right of others, until a node that is not left of
    /// `at` contains it.
    pub(crate) fn search(&self, at: u64, mut contains: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut node = self.root;
        while node != NIL {
            if at < self.node(node).key {
                node = self.node(node).left;
            } else if contains(node) {
                return Some(node);
            } else {
                node = self.node(node).right;
            }
        }
        None
    }

    /// Inserts a node between its neighbours in order, [`NIL`] at the ends. Who knows them need not walk down from
    /// the root: one of the two has a free place there, and the walk would end in it.
    pub(crate) fn insert_between(&mut self, new: u32, key: u64, before: u32, behind: u32) {
        let left = before == NIL || self.node(before).right != NIL;
        let parent = if left { behind } else { before };
        *self.node_mut(new) = Node {
            key,
            parent,
            left: NIL,
            right: NIL,
            red: true,
        };
        match (parent, left) {
            (NIL, _) => self.root = new,
            (_, true) => self.node_mut(parent).left = new,
            (_, false) => self.node_mut(parent).right = new,
        }
        self.balance_insertion(new);
    }

    /// Whether the tree has the same shape whichever of two neighbours in order is taken out, one standing where
    /// the other would. If the first is above the second, the second is its successor and takes its
    /// place when it goes. If it is below and the second has no other child, it is a red leaf and takes the second's.
    pub(crate) fn are_exchangeable(&self, before: u32, behind: u32) -> bool {
        self.node(before).right != NIL || self.node(behind).right == NIL
    }

    fn balance_insertion(&mut self, mut node: u32) {
        loop {
            let parent = self.node(node).parent;
            if parent == NIL {
                self.node_mut(node).red = false;
                return;
            }
            if !self.node(parent).red {
                return;
            }
            let grandparent = self.node(parent).parent;
            let parent_is_left = self.node(grandparent).left == parent;
            let uncle = self.child(grandparent, !parent_is_left);
            if self.is_red(uncle) {
                self.node_mut(uncle).red = false;
                self.node_mut(parent).red = false;
                self.node_mut(grandparent).red = true;
                node = grandparent;
                continue;
            }
            let mut upper = parent;
            if self.child(parent, !parent_is_left) == node {
                self.rotate(parent, parent_is_left);
                upper = node;
            }
            self.node_mut(upper).red = false;
            self.node_mut(grandparent).red = true;
            self.rotate(grandparent, !parent_is_left);
            return;
        }
    }

    /// Takes a node out.
    pub(crate) fn remove(&mut self, node: u32) {
        let Node {
            left,
            right,
            parent,
            red,
            ..
        } = *self.node(node);
        if left == NIL || right == NIL {
            let child = if left == NIL { right } else { left };
            self.replace_child(parent, node, child);
            if child != NIL {
                // The only child of a node is red, and the node black: the child takes its place and colour.
                self.node_mut(child).parent = parent;
                self.node_mut(child).red = red;
            } else if !red {
                self.balance_removal(parent);
            }
            return;
        }
        let mut successor = right;
        while self.node(successor).left != NIL {
            successor = self.node(successor).left;
        }
        let orphan = self.node(successor).right;
        let orphan_parent = if successor == right {
            successor
        } else {
            self.node(successor).parent
        };
        let successor_was_red = self.node(successor).red;
        if successor != right {
            self.node_mut(orphan_parent).left = orphan;
            self.node_mut(successor).right = right;
            self.node_mut(right).parent = successor;
        }
        if orphan != NIL {
            self.node_mut(orphan).parent = orphan_parent;
            self.node_mut(orphan).red = false;
        }
        self.node_mut(successor).left = left;
        self.node_mut(left).parent = successor;
        self.replace_child(parent, node, successor);
        let moved = self.node_mut(successor);
        moved.parent = parent;
        moved.red = red;
        if orphan == NIL && !successor_was_red {
            self.balance_removal(orphan_parent);
        }
    }

    /// Repairs the count of black nodes: one is missing on an empty side of `parent`.
    fn balance_removal(&mut self, mut parent: u32) {
        let mut node = NIL;
        while parent != NIL {
            // When the node is empty either side may be: the kernel takes the left one if its child is gone.
            let node_is_left = self.node(parent).right != node;
            let mut sibling = self.child(parent, !node_is_left);
            if self.is_red(sibling) {
                self.node_mut(sibling).red = false;
                self.node_mut(parent).red = true;
                self.rotate(parent, node_is_left);
                sibling = self.child(parent, !node_is_left);
            }
            if sibling == NIL {
                return;
            }
            let far = self.child(sibling, !node_is_left);
            if !self.is_red(far) {
                let near = self.child(sibling, node_is_left);
                if !self.is_red(near) {
                    self.node_mut(sibling).red = true;
                    if self.node(parent).red {
                        self.node_mut(parent).red = false;
                        return;
                    }
                    node = parent;
                    parent = self.node(node).parent;
                    continue;
                }
                self.rotate(sibling, !node_is_left);
                self.node_mut(near).red = false;
                self.node_mut(sibling).red = true;
                sibling = near;
            }
            let far = self.child(sibling, !node_is_left);
            self.node_mut(sibling).red = self.node(parent).red;
            self.node_mut(parent).red = false;
            if far != NIL {
                self.node_mut(far).red = false;
            }
            self.rotate(parent, node_is_left);
            return;
        }
    }

    /// Rotates `at` down to the left or to the right; its other child takes its place.
    fn rotate(&mut self, at: u32, to_left: bool) {
        let up = self.child(at, !to_left);
        let inner = self.child(up, to_left);
        let parent = self.node(at).parent;
        self.set_child(at, !to_left, inner);
        if inner != NIL {
            self.node_mut(inner).parent = at;
        }
        self.set_child(up, to_left, at);
        self.replace_child(parent, at, up);
        self.node_mut(up).parent = parent;
        self.node_mut(at).parent = up;
    }

    fn replace_child(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else if self.node(parent).left == old {
            self.node_mut(parent).left = new;
        } else {
            self.node_mut(parent).right = new;
        }
    }

    fn child(&self, of: u32, left: bool) -> u32 {
        if left {
            self.node(of).left
        } else {
            self.node(of).right
        }
    }

    fn set_child(&mut self, of: u32, left: bool, child: u32) {
        let node = self.node_mut(of);
        if left {
            node.left = child;
        } else {
            node.right = child;
        }
    }

    fn is_red(&self, node: u32) -> bool {
        node != NIL && self.node(node).red
    }

    fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    fn node_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RbTree {
        /// Inserts a node, behind those with an equal key, as the kernel does.
        pub(crate) fn insert(&mut self, new: u32, key: u64) {
            let (mut before, mut behind, mut at) = (NIL, NIL, self.root);
            while at != NIL {
                let node = self.node(at);
                if key < node.key {
                    (behind, at) = (at, node.left);
                } else {
                    (before, at) = (at, node.right);
                }
            }
            self.insert_between(new, key, before, behind);
        }

        fn in_order(&self, at: u32, out: &mut Vec<u32>) {
            if at != NIL {
                self.in_order(self.node(at).left, out);
                out.push(at);
                self.in_order(self.node(at).right, out);
            }
        }

        /// Number of black nodes on every path, checking colours and parents.
        fn black_height(&self, at: u32) -> u32 {
            if at == NIL {
                return 1;
            }
            let node = *self.node(at);
            for child in [node.left, node.right] {
                assert!(child == NIL || self.node(child).parent == at);
                assert!(!(node.red && self.is_red(child)));
            }
            let height = self.black_height(node.left);
            assert_eq!(height, self.black_height(node.right));
            height + u32::from(!node.red)
        }
    }

    #[test]
    fn stays_a_red_black_tree() {
        let keys: Vec<u64> = (0..400u64).map(|i| i * 7919 % 401).collect();
        let mut tree = RbTree::new(keys.len());
        for new in 0..400u32 {
            tree.insert(new, keys[new as usize]);
            tree.black_height(tree.root);
        }
        let mut left: Vec<u32> = (0..400).collect();
        for gone in (0..400u32).map(|i| i * 163 % 400).take(390) {
            tree.remove(gone);
            left.retain(|&n| n != gone);
            assert!(!tree.is_red(tree.root));
            tree.black_height(tree.root);
            let mut order = Vec::new();
            tree.in_order(tree.root, &mut order);
            left.sort_by_key(|&n| keys[n as usize]);
            assert_eq!(order, left);
        }
    }
}
