//! The part of a row's identity that comes from the sample: event, filters, and the keys that look at neither frame nor chain.

use std::cell::OnceCell;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::chains::Chains;
use super::super::classes::ranks;
use super::super::columns::Columns;
use super::super::keys::{Key, Order};
use super::super::options::RowOptions;
use super::Input;
use crate::ids::{Idx, IndexVec, numbers};
use crate::intern::ItemIndex;
use crate::profile::{
    CommId, Entry, EventId, FieldKey, FieldValue, Namespace, Profile, StringId, SymbolId, Thread,
    ValuesId,
};
use crate::questions::functions::{FunctionId, Functions};

/// Rank of what there is none of: behind all.
const NONE: u32 = u32::MAX;

/// What keys ask of samples. Ranks are in byte order of the names, and made when first asked for.
pub(crate) struct SampleValues<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) rows: &'a RowOptions,
    pub(super) chains: &'a Chains,
    functions: &'a Functions,
    comms: OnceCell<IndexVec<CommId, u32>>,
    symbols: OnceCell<IndexVec<SymbolId, u32>>,
    strings: OnceCell<IndexVec<StringId, u32>>,
    /// By field, the rank of its value in each list of values.
    fields: OnceCell<Vec<IndexVec<ValuesId, u32>>>,
    /// Of functions.
    names: OnceCell<IndexVec<FunctionId, u32>>,
    /// All cgroup namespaces, sorted.
    namespaces: OnceCell<Vec<Namespace>>,
}

/// The innermost function of a sample's stack that is the user's own.
pub(crate) fn own_function(
    profile: &Profile,
    functions: &Functions,
    entry: &Entry,
) -> Option<FunctionId> {
    let frames = match profile.stacks.get(entry.stack) {
        [] => std::slice::from_ref(&entry.leaf),
        frames => frames,
    };
    let mut of_frames = frames.iter().map(|frame| functions.of_frame(*frame));
    of_frames.find(|function| functions.is_own(*function))
}

impl<'a> SampleValues<'a> {
    pub(super) fn new(input: &Input<'a>) -> Self {
        Self {
            profile: input.profile,
            rows: &input.options.rows,
            chains: input.chains,
            functions: input.functions,
            names: OnceCell::new(),
            namespaces: OnceCell::new(),
            comms: OnceCell::new(),
            symbols: OnceCell::new(),
            strings: OnceCell::new(),
            fields: OnceCell::new(),
        }
    }

    /// The thread of a sample.
    pub(crate) fn thread(&self, entry: &Entry) -> &'a Thread {
        &self.profile[entry.thread]
    }

    /// Rank of the comm.
    pub(crate) fn comm(&self, entry: &Entry) -> u32 {
        let names = || self.profile.comms.iter().map(String::as_str);
        let ranks = self.comms.get_or_init(|| ranks_of(names()));
        ranks[entry.comm]
    }

    /// Rank of the name of the frame that `--parent` found, [`NONE`] if there is none.
    pub(crate) fn parent(&self, entry: &Entry) -> u32 {
        let parent = self.chains.parent(entry.stack);
        let symbol = parent.and_then(|frame| self.profile[frame].symbol);
        let names = || self.profile.symbols.iter().map(|s| s.name.as_str());
        let ranks = self.symbols.get_or_init(|| ranks_of(names()));
        symbol.map_or(NONE, |symbol| ranks[symbol])
    }

    /// Rank of the value of a field, [`NONE`] if the sample is of another event or has none.
    pub(crate) fn field(&self, entry: &Entry, key: Key) -> u32 {
        let Key::Field(number) = key else {
            return NONE;
        };
        let profile = self.profile;
        let number = usize::from(number);
        if profile.fields[number].event != entry.event {
            return NONE;
        }
        let ranks = self.fields.get_or_init(|| {
            let fields = profile.fields.iter();
            fields.map(|field| field_ranks(profile, field)).collect()
        });
        entry.values.map_or(NONE, |values| ranks[number][values])
    }

    /// Rank of the name of the own function, [`NONE`] if there is none.
    pub(crate) fn own(&self, entry: &Entry) -> u32 {
        let names = || {
            self.functions
                .all
                .iter()
                .map(|f| f.identity.name.name.as_str())
        };
        let ranks = self.names.get_or_init(|| ranks_of(names()));
        let own = own_function(self.profile, self.functions, entry);
        own.map_or(NONE, |function| ranks[function])
    }

    /// Rank of the thread's cgroup namespace, behind those that are none.
    pub(crate) fn namespace(&self, entry: &Entry) -> u32 {
        let all = self.namespaces.get_or_init(|| {
            let threads = self.profile.threads.iter();
            let mut all: Vec<Namespace> = threads
                .flat_map(|thread| thread.cgroups.iter().map(|(_, namespace)| *namespace))
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        });
        let own = self.thread(entry).cgroup_at(entry.time);
        let rank = own.and_then(|own| all.binary_search(&own).ok());
        rank.map_or(0, |rank| rank as u32 + 1)
    }

    /// Rank of a tracepoint's payload, [`NONE`] if there is none.
    pub(crate) fn payload(&self, entry: &Entry) -> u32 {
        let names = || self.profile.strings.iter().map(String::as_str);
        let ranks = self.strings.get_or_init(|| ranks_of(names()));
        entry.trace.map_or(NONE, |text| ranks[text])
    }
}

/// Ranks of a field's values by the lists they stand in: higher bytes come first, as in perf.
fn field_ranks(profile: &Profile, field: &FieldKey) -> IndexVec<ValuesId, u32> {
    let raw = |values: &[FieldValue]| values.get(field.place).map(|value| value.raw.clone());
    let all: Vec<_> = profile.values.iter().map(|values| raw(values)).collect();
    let mut sorted = all.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    sorted.dedup();
    let rank = |raw: &Option<Box<[u8]>>| {
        let place = sorted.binary_search_by(|other| raw.cmp(other));
        place.map_or(0, |at| at as u32)
    };
    all.iter().map(rank).collect()
}

fn ranks_of<'t, I: Idx>(texts: impl Iterator<Item = &'t str>) -> IndexVec<I, u32> {
    ranks(&texts.collect::<Vec<_>>()).into()
}

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
    pub(super) fn of(columns: &Columns) -> Self {
        let from_samples = columns.order.iter().filter_map(|key| match key.order() {
            Some(Order::Sample(value)) => Some((*key, value)),
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
    pub(super) fn values(&self, context: ContextId) -> &[u64] {
        &self.words(context)[1..]
    }

    /// Where the value of a key is among [`values`](Self::values).
    pub(super) fn place_of(&self, key: Key) -> Option<usize> {
        self.keys.iter().position(|(known, _)| *known == key)
    }
}
