//! Row order that perf gets from a red-black tree.
//!
//! perf inserts rows one after the other, and one of its comparisons (equal shares: by depth of the chains,
//! but only within a thread) is not transitive. Which order comes out then depends on the shape of
//! the tree, so a sort cannot reproduce it (`__hists__insert_output_entry`, `util/hist.c`).

use crate::ids::Idx;
use crate::rbtree::{NodeId, RbTree};

/// The order in which `count` items come out of a red-black tree into which they went by number; an item
/// goes left of another when `comes_first(item, other)`.
pub(crate) fn red_black_order<I: Idx>(
    count: usize,
    mut comes_first: impl FnMut(I, I) -> bool,
) -> Vec<I> {
    let id = |node: NodeId| I::from_usize(node.index());
    let mut tree = RbTree::new(count);
    for item in (0..count).map(NodeId::from_usize) {
        tree.insert(item, |other| comes_first(id(item), id(other)));
    }
    tree.in_order().into_iter().map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{IndexVec, numbers};

    numbers! {
        struct Item(u32);
    }

    #[test]
    fn is_a_stable_sort_where_the_comparison_is_an_order() {
        let values: IndexVec<Item, u32> = (0..500).map(|i| (i * 7919) % 23).collect();
        let mut expected: Vec<Item> = values.indices().collect();
        expected.sort_by_key(|i| values[*i]);
        assert_eq!(
            red_black_order(500, |a: Item, b| values[a] < values[b]),
            expected
        );
        assert!(red_black_order(0, |_: Item, _| true).is_empty());
    }

    #[test]
    fn the_shape_of_the_tree_decides_where_it_is_not() {
        // 0 and 2 are only comparable with each other. Three insertions make 1 the root, so a fourth
        // item meets 1 first and never learns that it should precede 0.
        let first = |a: Item, b: Item| (a, b) == (Item(3), Item(0));
        assert_eq!(red_black_order(4, first), [0, 1, 2, 3].map(Item));
        assert_eq!(red_black_order(1, first), [Item(0)]);
    }
}
