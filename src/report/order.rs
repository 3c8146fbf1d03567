//! Row order that perf gets from a red-black tree.
//!
//! perf inserts rows one after the other, and one of its comparisons (equal shares: by depth of the chains,
//! but only within a thread) is not transitive. Which order comes out then depends on the shape of
//! the tree, so a sort cannot reproduce it (`__hists__insert_output_entry`, `util/hist.c`).

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    left: u32,
    right: u32,
    parent: u32,
    red: bool,
}

struct Tree {
    nodes: Vec<Node>,
    root: u32,
}

/// The order in which `count` items come out of a red-black tree into which they went by number; an item
/// goes left of another when `comes_first(item, other)`.
pub(crate) fn red_black_order(
    count: usize,
    mut comes_first: impl FnMut(u32, u32) -> bool,
) -> Vec<u32> {
    let mut tree = Tree {
        nodes: Vec::with_capacity(count),
        root: NIL,
    };
    for item in 0..count as u32 {
        tree.insert(item, &mut comes_first);
    }
    tree.in_order()
}

impl Tree {
    fn insert(&mut self, item: u32, comes_first: &mut impl FnMut(u32, u32) -> bool) {
        let (mut parent, mut at, mut left) = (NIL, self.root, false);
        while at != NIL {
            parent = at;
            left = comes_first(item, at);
            let node = self.nodes[at as usize];
            at = if left { node.left } else { node.right };
        }
        self.nodes.push(Node {
            left: NIL,
            right: NIL,
            parent,
            red: true,
        });
        match parent {
            NIL => self.root = item,
            _ if left => self.nodes[parent as usize].left = item,
            _ => self.nodes[parent as usize].right = item,
        }
        self.rebalance(item);
    }

    fn is_red(&self, node: u32) -> bool {
        node != NIL && self.nodes[node as usize].red
    }

    fn rebalance(&mut self, mut at: u32) {
        loop {
            let parent = self.nodes[at as usize].parent;
            if !self.is_red(parent) {
                break;
            }
            // A red parent is never the root, so there is one above it.
            let grand = self.nodes[parent as usize].parent;
            let on_left = self.nodes[grand as usize].left == parent;
            let uncle = if on_left {
                self.nodes[grand as usize].right
            } else {
                self.nodes[grand as usize].left
            };
            if self.is_red(uncle) {
                self.nodes[parent as usize].red = false;
                self.nodes[uncle as usize].red = false;
                self.nodes[grand as usize].red = true;
                at = grand;
                continue;
            }
            let inner = if on_left {
                self.nodes[parent as usize].right
            } else {
                self.nodes[parent as usize].left
            };
            let mut top = parent;
            if inner == at {
                self.rotate(parent, on_left);
                top = at;
            }
            self.nodes[top as usize].red = false;
            self.nodes[grand as usize].red = true;
            self.rotate(grand, !on_left);
            break;
        }
        self.nodes[self.root as usize].red = false;
    }

    /// Turns `at` down to the left (or right); the child on the other side takes its place.
    fn rotate(&mut self, at: u32, to_left: bool) {
        let Node {
            left,
            right,
            parent,
            ..
        } = self.nodes[at as usize];
        let up = if to_left { right } else { left };
        let moved = if to_left {
            self.nodes[up as usize].left
        } else {
            self.nodes[up as usize].right
        };
        if to_left {
            self.nodes[at as usize].right = moved;
            self.nodes[up as usize].left = at;
        } else {
            self.nodes[at as usize].left = moved;
            self.nodes[up as usize].right = at;
        }
        if moved != NIL {
            self.nodes[moved as usize].parent = at;
        }
        self.nodes[at as usize].parent = up;
        self.nodes[up as usize].parent = parent;
        match parent {
            NIL => self.root = up,
            _ if self.nodes[parent as usize].left == at => self.nodes[parent as usize].left = up,
            _ => self.nodes[parent as usize].right = up,
        }
    }

    fn in_order(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut open = Vec::new();
        let mut at = self.root;
        while at != NIL || !open.is_empty() {
            while at != NIL {
                open.push(at);
                at = self.nodes[at as usize].left;
            }
            if let Some(node) = open.pop() {
                order.push(node);
                at = self.nodes[node as usize].right;
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_stable_sort_where_the_comparison_is_an_order() {
        let values: Vec<u32> = (0..500).map(|i| (i * 7919) % 23).collect();
        let mut expected: Vec<u32> = (0..500).collect();
        expected.sort_by_key(|i| values[*i as usize]);
        assert_eq!(
            red_black_order(500, |a, b| values[a as usize] < values[b as usize]),
            expected
        );
        assert!(red_black_order(0, |_, _| true).is_empty());
    }

    #[test]
    fn the_shape_of_the_tree_decides_where_it_is_not() {
        // 0 and 2 are only comparable with each other. Three insertions make 1 the root, so a fourth
        // item meets 1 first and never learns that it should precede 0.
        let first = |a: u32, b: u32| a == 3 && b == 0;
        assert_eq!(red_black_order(4, first), [0, 1, 2, 3]);
        assert_eq!(red_black_order(1, first), [0]);
    }
}
