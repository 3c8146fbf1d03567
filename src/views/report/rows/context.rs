//! The part of a row's identity that comes from the sample: event, filters, and the keys that look at neither frame nor chain.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::apart::{Order, Orders, SampleValues};
use super::super::spec::Key;
use crate::ids::{Idx, IndexVec, numbers};
use crate::intern::ItemIndex;
use crate::profile::{Entry, EventId};

numbers! {
    /// One of [`Contexts`].
    pub(crate) struct ContextId(pub(super) u32);
    /// What contexts of several events share, see [`Contexts::identities`].
    pub(crate) struct SharedContext(u32);
}

/// A value of a sample.
type ValueOf = fn(&SampleValues<'_>, &Entry, Key) -> u64;

/// Distinct contexts, numbered in the order in which they are met. Rows of one have the same event, the same filters and
/// the same values of all keys that come from samples.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    keys: Vec<(Key, ValueOf)>,
    /// By context: event and whether it is filtered, and the values of the keys.
    words: Vec<u64>,
    index: ItemIndex<ContextId>,
}

impl Contexts {
    pub(super) fn of(orders: &Orders) -> Self {
        let from_samples = orders.iter().filter_map(|(key, order)| match order {
            Order::Sample(value) => Some((*key, *value)),
            _ => None,
        });
        Self {
            keys: from_samples.collect(),
            ..Self::default()
        }
    }

    /// Words of each.
    fn width(&self) -> usize {
        self.keys.len() + 1
    }

    /// The context of a sample.
    pub(super) fn add(
        &mut self,
        values: &SampleValues<'_>,
        entry: &Entry,
        filtered: bool,
    ) -> ContextId {
        let (width, start) = (self.width(), self.words.len());
        self.words
            .push(u64::from(entry.event.0) << 1 | u64::from(filtered));
        let of_keys = self
            .keys
            .iter()
            .map(|(key, value)| value(values, entry, *key));
        self.words.extend(of_keys);
        let words = &self.words;
        let new = ContextId::from_usize(start / width);
        let of = |context: ContextId| &words[context.index() * width..][..width];
        let hash = |context: ContextId| FxBuildHasher.hash_one(of(context));
        let is = |context: ContextId| of(context) == of(new);
        let known = self.index.find_or_add(hash(new), new, is, hash);
        if known.is_some() {
            self.words.truncate(start);
        }
        known.unwrap_or(new)
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = ContextId> {
        (0..self.words.len() / self.width()).map(ContextId::from_usize)
    }

    fn words(&self, context: ContextId) -> &[u64] {
        &self.words[context.index() * self.width()..][..self.width()]
    }

    /// Its event.
    pub(crate) fn event(&self, context: ContextId) -> EventId {
        EventId((self.words(context)[0] >> 1) as u16)
    }

    /// Whether filters hide it.
    pub(crate) fn is_filtered(&self, context: ContextId) -> bool {
        self.words(context)[0] & 1 == 1
    }

    /// By context: a number that those of several events share if all else is equal.
    pub(crate) fn identities(&self) -> IndexVec<ContextId, SharedContext> {
        let mut known: FxHashMap<(bool, &[u64]), SharedContext> = FxHashMap::default();
        let identity = |context| {
            let new = SharedContext::from_usize(known.len());
            let rest = (self.is_filtered(context), self.values(context));
            *known.entry(rest).or_insert(new)
        };
        self.all().map(identity).collect()
    }

    /// The values of all keys.
    pub(crate) fn values(&self, context: ContextId) -> &[u64] {
        &self.words(context)[1..]
    }

    /// Where the value of a key is among [`values`](Self::values).
    pub(crate) fn place_of(&self, key: Key) -> Option<usize> {
        self.keys.iter().position(|(known, _)| *known == key)
    }
}
