//! Interned sequences: each distinct run of ids kept once, end to end in one vector.
//!
//! Call stacks are the bulk of a profile's memory and most of them differ, so a set of boxed slices
//! would cost an allocation for each. Used for stacks of addresses and for stacks of frames.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::marker::PhantomData;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::ids::{Idx, IndexVec, Spare, index_vec, numbers};
use crate::parallel::{in_parallel, sort_pieces};

numbers! {
    /// A place among the items of all sequences.
    struct ItemId(u32);
    /// A text among those that are sorted.
    struct TextId(u32);
    /// An item in a table of numbers.
    struct KnownId(Spare);
}

/// Distinct sequences of `T`, known by an `I` each, with a tag that is part of its identity.
#[derive(Debug)]
pub struct Sequences<I: Idx, T, G> {
    items: IndexVec<ItemId, T>,
    /// End of each sequence in `items`, and its tag.
    ends: IndexVec<I, (ItemId, G)>,
}

impl<I: Idx, T, G> Default for Sequences<I, T, G> {
    fn default() -> Self {
        Self {
            items: IndexVec::new(),
            ends: IndexVec::new(),
        }
    }
}

impl<I: Idx, T: Copy, G: Copy> Sequences<I, T, G> {
    /// Room for so many items of all sequences.
    #[must_use]
    pub fn with_capacity(items: usize) -> Self {
        Self {
            items: IndexVec::with_capacity(items),
            ends: IndexVec::new(),
        }
    }

    /// The items of a sequence.
    ///
    /// # Panics
    /// When `id` was not given out by this set.
    #[must_use]
    pub fn get(&self, id: I) -> &[T] {
        let start = match id.index() {
            0 => ItemId(0),
            place => self.ends[place - 1].0,
        };
        self.items[start..self.ends[id].0].as_raw_slice()
    }

    /// The tag of a sequence.
    ///
    /// # Panics
    /// When `id` was not given out by this set.
    #[must_use]
    pub fn tag(&self, id: I) -> G {
        self.ends[id].1
    }

    /// Number of sequences.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The numbers of all.
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T, G> {
        self.ends.indices()
    }

    /// Adds all sequences of another set, their items changed by `item`; they are not looked for. Their ids are those in
    /// the other set, counted on from the number of sequences that were here.
    ///
    /// # Panics
    /// Beyond 4 G items.
    pub fn append<U: Copy>(&mut self, other: &Sequences<I, U, G>, item: impl Fn(U) -> T) {
        let before = self.items.len();
        self.items.extend(other.items.iter().map(|&i| item(i)));
        let moved = |end: ItemId| ItemId::from_usize(before + end.index());
        let ends = other.ends.iter().map(|&(end, tag)| (moved(end), tag));
        self.ends.extend(ends);
    }

    /// Adds a sequence without looking whether it is there.
    ///
    /// # Panics
    /// Beyond 4 G items, which is 16 GB of them.
    pub fn push(&mut self, items: &[T], tag: G) -> I {
        self.items.raw.extend_from_slice(items);
        self.ends.push((self.items.next_idx(), tag))
    }
}

impl<I: Idx + Send + Sync, T: Idx + Ord + Sync, G: Copy + Sync> Sequences<I, T, G> {
    /// The numbers in the order of the sequences; of equal ones in that of what `tie` makes of their tags.
    #[must_use]
    pub fn in_order<K: Ord>(&self, threads: usize, tie: impl Fn(G) -> K + Sync) -> Vec<I> {
        let mut order: Vec<Ahead<I>> = self.ids().map(|of| Ahead { next: 0, of }).collect();
        let whole = |a: &Ahead<I>, b: &Ahead<I>| self.compare(a.of, b.of, 0, &tie);
        let sort = |piece: &mut [Ahead<I>]| self.sort(piece, 0, &tie);
        sort_pieces(&mut order, threads, sort, whole);
        order.into_iter().map(|ahead| ahead.of).collect()
    }

    /// Sorts sequences that are equal before `offset`. Call paths begin alike, and whole ones are long: what all have in
    /// common is passed once, and sorted is by the two items behind it.
    fn sort<K: Ord>(&self, some: &mut [Ahead<I>], offset: usize, tie: &impl Fn(G) -> K) {
        /// Fewer are compared as they are.
        const FEW: usize = 8;
        /// Items from which on all are: a recording may be made of paths that part one by one.
        const DEEP: usize = 1024;
        if some.len() < FEW || offset >= DEEP {
            some.sort_unstable_by(|a, b| self.compare(a.of, b.of, offset, tie));
            return;
        }
        let offset = offset + self.common(some, offset);
        for ahead in some.iter_mut() {
            let rest = self.get(ahead.of).get(offset..).unwrap_or_default();
            // 0 where the sequence has ended.
            let item = |at: usize| rest.get(at).map_or(0, |item| item.index() as u64 + 1);
            ahead.next = item(0) << 32 | item(1);
        }
        some.sort_unstable_by_key(|ahead| ahead.next);
        for same in some.chunk_by_mut(|a, b| a.next == b.next) {
            if same.len() > 1 {
                self.sort(same, offset + 2, tie);
            }
        }
    }

    /// How many items behind `offset` are the same in all.
    fn common(&self, some: &[Ahead<I>], offset: usize) -> usize {
        let rest = |ahead: &Ahead<I>| self.get(ahead.of).get(offset..).unwrap_or_default();
        let first = some.first().map(rest).unwrap_or_default();
        some.iter().fold(first.len(), |common, ahead| {
            let pairs = first[..common].iter().zip(rest(ahead));
            pairs.take_while(|(a, b)| a == b).count()
        })
    }

    fn compare<K: Ord>(&self, a: I, b: I, offset: usize, tie: &impl Fn(G) -> K) -> Ordering {
        let key = |of: I| self.get(of).get(offset..).unwrap_or_default();
        let tags = || tie(self.tag(a)).cmp(&tie(self.tag(b)));
        key(a).cmp(key(b)).then_with(tags)
    }
}

/// A sequence to be sorted, with the two of its items that are looked at next.
struct Ahead<I> {
    next: u64,
    of: I,
}

/// Finds sequences by content; kept apart from [`Sequences`] so that it can be dropped when all are in.
#[derive(Debug)]
pub struct SequenceIndex<I: Idx> {
    /// Hash → the newest sequence with it; older ones are chained in `older`.
    newest: FxHashMap<u64, I>,
    older: IndexVec<I, Option<I>>,
}

impl<I: Idx> Default for SequenceIndex<I> {
    fn default() -> Self {
        Self {
            newest: FxHashMap::default(),
            older: IndexVec::new(),
        }
    }
}

impl<I: Idx> SequenceIndex<I> {
    /// The id of a sequence, which is added if it is new.
    pub fn intern<T, G>(&mut self, all: &mut Sequences<I, T, G>, items: &[T], tag: G) -> I
    where
        T: Copy + Eq + Hash,
        G: Copy + Eq + Hash,
    {
        let hash = hash_of(items, tag);
        let newest = self.newest.get(&hash).copied();
        let mut next = newest;
        while let Some(at) = next {
            if all.tag(at) == tag && all.get(at) == items {
                return at;
            }
            next = self.older[at];
        }
        let id = all.push(items, tag);
        self.newest.insert(hash, id);
        self.older.push(newest);
        id
    }
}

fn hash_of<T: Hash, G: Hash>(items: &[T], tag: G) -> u64 {
    let mut state = FxBuildHasher.build_hasher();
    for item in items {
        item.hash(&mut state);
    }
    tag.hash(&mut state);
    state.finish()
}

/// Finds items of a list by content: a table of their numbers. The list has the keys; a map with copies of
/// them takes several times the memory.
#[derive(Debug)]
pub struct ItemIndex<I> {
    /// Open addressing, at most half full; a power of two.
    slots: Vec<Option<KnownId>>,
    used: usize,
    numbers: PhantomData<fn() -> I>,
}

impl<I> Default for ItemIndex<I> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            used: 0,
            numbers: PhantomData,
        }
    }
}

impl<I: Idx> ItemIndex<I> {
    /// An index that need not grow for so many items.
    #[must_use]
    pub fn with_capacity(items: usize) -> Self {
        let len = (items * 2 + 2).next_power_of_two();
        Self {
            slots: vec![None; len],
            ..Self::default()
        }
    }

    /// The item with this hash that `is` the one, or nothing, and then item number `new` is in. `hash_of` tells the
    /// hashes of those that are in already.
    pub fn find_or_add(
        &mut self,
        hash: u64,
        new: I,
        is: impl Fn(I) -> bool,
        hash_of: impl Fn(I) -> u64,
    ) -> Option<I> {
        if self.used * 2 >= self.slots.len() {
            self.grow(hash_of);
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(known) = self.slots[at] {
            let item = I::from_usize(known.index());
            if is(item) {
                return Some(item);
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = Some(KnownId::from_usize(new.index()));
        self.used += 1;
        None
    }

    #[cold]
    fn grow(&mut self, hash_of: impl Fn(I) -> u64) {
        let len = (self.slots.len() * 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![None; len]);
        for item in old.into_iter().flatten() {
            let mut at = hash_of(I::from_usize(item.index())) as usize & (len - 1);
            while self.slots[at].is_some() {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = Some(item);
        }
    }
}

/// Rank of each text in byte order; equal texts have one rank.
#[must_use]
pub fn byte_ranks<R: Idx>(texts: &[&[u8]], threads: usize) -> Vec<R> {
    let names = texts.iter().enumerate();
    let names = names.map(|(of, text)| Name::new(text, TextId::from_usize(of)));
    let parts = parts_in_order(names.collect(), threads);
    let parts = in_parallel(parts, threads, |mut part| {
        Name::sort(&mut part, 0);
        part
    });
    let mut ranks: IndexVec<TextId, R> = index_vec![R::from_usize(0); texts.len()];
    let (mut rank, mut before) = (0, None);
    for name in parts.iter().flatten() {
        rank += usize::from(before.is_some_and(|before| before != name.text));
        before = Some(name.text);
        ranks[name.of] = R::from_usize(rank);
    }
    ranks.raw
}

/// The names in parts of similar size, one for each thread, none of which has a name that belongs before one of another
/// part in front of it.
fn parts_in_order(names: Vec<Name<'_>>, threads: usize) -> Vec<Vec<Name<'_>>> {
    /// Names from which on a thread is worth its start.
    const MANY: usize = 4096;
    let parts = threads.min(names.len() / MANY).max(1);
    if parts == 1 {
        return vec![names];
    }
    let mut some: Vec<&[u8]> = names.iter().step_by(MANY / 16).map(|n| n.text).collect();
    some.sort_unstable();
    let bounds: Vec<&[u8]> = (1..parts)
        .map(|part| some[some.len() * part / parts])
        .collect();
    let mut all: Vec<Vec<Name<'_>>> = Vec::new();
    all.resize_with(parts, || Vec::with_capacity(names.len() / parts));
    for name in names {
        all[bounds.partition_point(|bound| *bound <= name.text)].push(name);
    }
    all
}

/// A text to be sorted, with the eight bytes of it that are looked at next: most comparisons are of these, and names
/// of one module begin alike.
struct Name<'n> {
    next: u64,
    text: &'n [u8],
    of: TextId,
}

impl<'n> Name<'n> {
    fn new(text: &'n [u8], of: TextId) -> Self {
        let mut name = Self { next: 0, text, of };
        name.look_at(0);
        name
    }

    fn look_at(&mut self, offset: usize) {
        let mut bytes = [0; 8];
        let rest = self.text.get(offset..).unwrap_or_default();
        let len = rest.len().min(8);
        bytes[..len].copy_from_slice(&rest[..len]);
        self.next = u64::from_be_bytes(bytes);
    }

    /// Sorts names that are equal before `offset`, where they look.
    fn sort(names: &mut [Name<'_>], mut offset: usize) {
        // Every round looks at eight more bytes of the longest; long names that are nearly equal are compared whole.
        const MOST: usize = 64;
        names.sort_unstable_by_key(|name| name.next);
        offset += 8;
        for same in names.chunk_by_mut(|a, b| a.next == b.next) {
            if same.len() == 1 {
                continue;
            }
            if offset >= MOST || same.len() < 8 {
                same.sort_unstable_by_key(|name| name.text);
                continue;
            }
            same.iter_mut().for_each(|name| name.look_at(offset));
            Self::sort(same, offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sequences_get_one_id_and_tags_keep_them_apart() {
        let mut all: Sequences<KnownId, _, _> = Sequences::default();
        let mut index = SequenceIndex::default();
        let a = index.intern(&mut all, &[1, 2, 3], 'x');
        let b = index.intern(&mut all, &[1, 2], 'x');
        assert_eq!(index.intern(&mut all, &[1, 2, 3], 'x'), a);
        assert_ne!(index.intern(&mut all, &[1, 2, 3], 'y'), a);
        let empty = index.intern(&mut all, &[], 'x');
        assert_eq!(index.intern(&mut all, &[], 'x'), empty);
        assert_eq!(
            (all.get(a), all.get(b), all.get(empty)),
            (&[1, 2, 3][..], &[1, 2][..], &[][..])
        );
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn sequences_come_in_the_order_of_their_items() {
        let mut all: Sequences<KnownId, TextId, u32> = Sequences::default();
        for of in 0..9000_u32 {
            let hash = of.wrapping_mul(2_654_435_761) >> 16;
            // Many begin alike for long, some are the beginning of others, some are equal, and some part late.
            let mut items: Vec<u32> = (0..hash % 7 * 9).map(|at| at / (1 + hash % 3)).collect();
            items.extend((0..hash % 40).map(|at| hash >> (at % 32) & 1));
            if of % 16 == 0 {
                items = vec![3; 1000 + of as usize % 90];
                items.push(of % 5);
            }
            let items: Vec<TextId> = items.into_iter().map(TextId).collect();
            all.push(&items, hash % 11);
        }
        let key = |of: &KnownId| (all.get(*of), all.tag(*of));
        let mut expected: Vec<KnownId> = all.ids().collect();
        expected.sort_by(|a, b| key(a).cmp(&key(b)));
        for threads in [1, 3] {
            let order = all.in_order(threads, |tag| tag);
            assert!(order.iter().map(key).eq(expected.iter().map(key)));
            let mut numbers: Vec<usize> = order.iter().map(|of| of.index()).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..all.len()));
        }
    }

    #[test]
    fn ranks_are_those_of_whole_texts() {
        let stems: [&[u8]; 4] = [b"", b"wasm[0]::function[", b"a", b"\xff\0"];
        let texts: Vec<Vec<u8>> = (0..13_000_usize)
            .map(|i| {
                let mut text = stems[i % 4].to_vec();
                text.extend(std::iter::repeat_n(b'x', i * 7 % 90));
                text.extend((i * 31 % 257).to_string().bytes());
                text.extend(std::iter::repeat_n(0, i % 3));
                text
            })
            .collect();
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let ranks: Vec<TextId> = byte_ranks(&texts, 1);
        let mut sorted: IndexVec<TextId, _> = texts.clone().into();
        sorted.raw.sort_unstable();
        sorted.dedup();
        for (text, rank) in texts.iter().zip(&ranks) {
            assert_eq!(sorted[*rank], *text);
        }
        let on_three: Vec<TextId> = byte_ranks(&texts, 3);
        assert_eq!(on_three, ranks);
    }

    #[test]
    fn items_are_found_by_content_while_the_index_grows() {
        let mut items: IndexVec<ItemId, u64> = IndexVec::new();
        let mut index = ItemIndex::default();
        let hash = |item: u64| item.wrapping_mul(0x9e37_79b9) >> 3;
        for i in 0..10_000_u64 {
            let item = i % 3001 * 17;
            let new = items.next_idx();
            let is = |at: ItemId| items[at] == item;
            let found = index.find_or_add(hash(item), new, is, |at| hash(items[at]));
            assert_eq!(found, (i >= 3001).then_some(ItemId((i % 3001) as u32)));
            if found.is_none() {
                items.push(item);
            }
        }
        assert_eq!(items.len(), 3001);
    }
}
