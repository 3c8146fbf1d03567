//! What a frame contributes to the identity of a row.
//!
//! In: the profile's frames and the keys in use. Out: a dense class for each frame, equal exactly when
//! the frames fall into one row as far as DSO, symbol and source line decide (perf:
//! `sort__dso_cmp`, `sort__sym_cmp`, `sort__srcline_collapse` in `util/sort.c`). Knows keys only by the orders it is given. Called by [`super::rows`].

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::address::FileOffset;
use crate::ids::{Idx, IndexSlice, IndexVec, Spare, index_vec, numbers};

use super::apart::{Order, Orders};
use super::options::ReportOptions;
use super::spec::Key;
use super::texts::{UNMAPPED, dso_ranks};
use crate::functions::Functions;
use crate::intern::ItemIndex;
use crate::profile::{Frame, FrameId, ObjectId, Profile, Symbol, SymbolId};

numbers! {
    /// Index into [`Classes::all`].
    pub(crate) struct ClassId(Spare);
    /// One of the distinct lists of values in [`FrameTexts`].
    pub(crate) struct TextsId(u32);
    /// Index into the distinct values of a key, which are in order.
    #[derive(Default)]
    pub(crate) struct Rank(pub(crate) u32);
    /// A name among those of inlined functions.
    pub(crate) struct InlinedName(u32);
}

/// The parts of a row's identity that come from a frame; parts whose key is not in use are constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    /// Rank of the DSO's short name in byte order.
    pub(crate) dso: u32,
    /// Function or address.
    pub(crate) symbol: SymbolPart,
    /// The texts of other keys, see [`Classes::texts`].
    pub(crate) texts: TextsId,
}

/// The symbol's part of a row's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SymbolPart {
    /// The key is not in use.
    Unused,
    /// A symbol of the table; start and end. Where other code may lie at the same place of what has the same name, symbols are
    /// told apart too: JIT code that was made later, and several builds of a file.
    Range(FileOffset, FileOffset, Option<SymbolId>),
    /// An inlined function: its name, range of the function it was first seen in.
    Inlined(InlinedName, FileOffset, FileOffset),
    /// No symbol: the address as printed.
    Address(u64),
}

/// Kind, start, end, number of the name.
pub(crate) type SymbolRank = (u8, i64, i64, u32);

impl SymbolPart {
    /// perf's ascending order: by start and end, unresolved last, by signed address.
    pub(crate) fn rank(&self) -> SymbolRank {
        match *self {
            Self::Unused => (0, 0, 0, 0),
            Self::Range(start, end, apart) => {
                let number = apart.map_or(0, |symbol| symbol.index() as u32 + 1);
                (1, start.0.cast_signed(), end.0.cast_signed(), number)
            }
            Self::Inlined(name, start, end) => {
                (1, start.0.cast_signed(), end.0.cast_signed(), name.0 + 1)
            }
            Self::Address(at) => (2, at.cast_signed(), 0, 0),
        }
    }
}

/// Classes of all frames.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    /// Distinct classes in order of first use.
    pub(crate) all: IndexVec<ClassId, Class>,
    /// Class of each frame as a sample's own ip; nothing for frames that are none.
    pub(crate) leaf: IndexVec<FrameId, Option<ClassId>>,
    /// Class of each frame as a caller, nothing for marks; empty unless callers are credited.
    pub(crate) caller: IndexVec<FrameId, Option<ClassId>>,
    /// What other keys say of frames.
    pub(crate) texts: FrameTexts,
}

impl Classes {
    /// Classes of all frames of the profile.
    pub(crate) fn of(
        profile: &Profile,
        options: &ReportOptions,
        orders: &Orders,
        functions: &Functions,
        with_callers: bool,
    ) -> Self {
        let mut maker = ClassMaker::new(profile, options, orders, functions);
        // Which row an inlined function falls into depends on all frames before it.
        let is_leaf = if with_callers || options.chains.ignore_callees.is_some() {
            index_vec![true; profile.frames.len()]
        } else {
            let mut is_leaf = index_vec![false; profile.frames.len()];
            let entries = profile.entries.iter();
            entries.for_each(|entry| is_leaf[entry.leaf] = true);
            is_leaf
        };
        let mut classes = Self {
            leaf: maker.classes(&is_leaf, false),
            ..Self::default()
        };
        if with_callers {
            // What stands for missing frames is no function to be credited.
            let frames = profile.frames.indices();
            let is_caller: IndexVec<FrameId, bool> =
                frames.map(|frame| !profile.is_mark(frame)).collect();
            classes.caller = maker.classes(&is_caller, true);
        }
        classes.all = maker.all;
        classes.texts = maker.texts;
        classes
    }

    /// The text of a key in rows of a class, empty if it is none of those that are told by a text of the frame.
    pub(crate) fn text(&self, class: ClassId, key: Key) -> &str {
        let place = self.texts.place_of(key);
        place.map_or("", |place| self.texts.text(self.all[class].texts, place))
    }

    /// The number of a key in rows of a class, 0 if it is none of those that are told by a number of the frame.
    pub(crate) fn number(&self, class: ClassId, key: Key) -> u64 {
        let place = self.texts.place_of(key);
        place.map_or(0, |place| self.texts.number(self.all[class].texts, place))
    }
}

/// What keys tell frames apart by, besides DSO and symbol.
#[derive(Debug, Default)]
pub(crate) struct FrameTexts {
    columns: Vec<Column>,
    /// By frame; empty if there are no keys.
    of_frame: IndexVec<FrameId, TextsId>,
    /// For each list the rank of the value for each key.
    tuples: Vec<Rank>,
}

/// What one key tells.
#[derive(Debug)]
struct Column {
    key: Key,
    values: Values,
    /// By frame: the rank of its value.
    ranks: IndexVec<FrameId, Rank>,
}

/// Distinct values in order; texts in byte order.
#[derive(Debug)]
enum Values {
    Texts(IndexVec<Rank, String>),
    Numbers(IndexVec<Rank, u64>),
}

impl Column {
    fn of(
        (key, order): (Key, Order),
        profile: &Profile,
        options: &ReportOptions,
        functions: &Functions,
    ) -> Option<Self> {
        let (ranks, values) = match order {
            Order::FrameTexts(texts) => {
                let (ranks, distinct) = ranked(texts(profile, options, functions));
                (ranks, Values::Texts(distinct))
            }
            Order::FrameNumbers(numbers) | Order::SymbolAnd(numbers) => {
                let (ranks, distinct) = ranked(numbers(profile));
                (ranks, Values::Numbers(distinct))
            }
            Order::Sample(_) | Order::Dso | Order::Symbol { .. } | Order::Nothing => return None,
        };
        Some(Self { key, values, ranks })
    }
}

/// The rank of each value, and the distinct values in order.
fn ranked<T: Ord + Clone>(all: Vec<T>) -> (IndexVec<FrameId, Rank>, IndexVec<Rank, T>) {
    let mut distinct = IndexVec::from(all.clone());
    distinct.sort_unstable();
    distinct.dedup();
    let rank = |value: &T| distinct.binary_search(value).unwrap_or_default();
    (all.iter().map(rank).collect(), distinct)
}

impl FrameTexts {
    fn of(
        profile: &Profile,
        options: &ReportOptions,
        orders: &Orders,
        functions: &Functions,
    ) -> Self {
        let columns = orders.iter();
        let columns = columns.filter_map(|key| Column::of(*key, profile, options, functions));
        let mut columns: Vec<Column> = columns.collect();
        if columns.is_empty() {
            return Self::default();
        }
        let mut ranks: Vec<Rank> = Vec::with_capacity(profile.frames.len() * columns.len());
        for frame in profile.frames.indices() {
            ranks.extend(columns.iter().map(|column| column.ranks[frame]));
        }
        columns
            .iter_mut()
            .for_each(|column| column.ranks = IndexVec::new());
        let mut numbers: FxHashMap<&[Rank], TextsId> = FxHashMap::default();
        let mut tuples = Vec::new();
        let of_frame = ranks.chunks_exact(columns.len()).map(|tuple| {
            let new = TextsId::from_usize(numbers.len());
            *numbers.entry(tuple).or_insert_with(|| {
                tuples.extend_from_slice(tuple);
                new
            })
        });
        Self {
            of_frame: of_frame.collect(),
            columns,
            tuples,
        }
    }

    /// Where a key's value is among those of a frame.
    pub(crate) fn place_of(&self, key: Key) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// Rank of a value among all of its key.
    pub(crate) fn rank(&self, texts: TextsId, place: usize) -> Rank {
        self.tuples[texts.index() * self.columns.len() + place]
    }

    fn text(&self, own: TextsId, place: usize) -> &str {
        match &self.columns[place].values {
            Values::Texts(texts) => &texts[self.rank(own, place)],
            Values::Numbers(_) => "",
        }
    }

    fn number(&self, own: TextsId, place: usize) -> u64 {
        match &self.columns[place].values {
            Values::Texts(_) => 0,
            Values::Numbers(numbers) => numbers[self.rank(own, place)],
        }
    }
}

struct ClassMaker<'p> {
    profile: &'p Profile,
    dso_ranks: IndexVec<ObjectId, u32>,
    /// By rank of a DSO's name, whether several objects have it: builds of one path, or files of several folders.
    is_shared: Vec<bool>,
    /// By DSO, range and name, the first symbol of those that shared names make alike.
    namesakes: FxHashMap<(u32, FileOffset, FileOffset, &'p str), SymbolId>,
    has_dso: bool,
    has_symbol: bool,
    texts: FrameTexts,
    all: IndexVec<ClassId, Class>,
    ids: ItemIndex<ClassId>,
    /// Names of inlined functions, and by DSO and name the ranges of the rows they have so far.
    inlined_names: FxHashMap<&'p str, InlinedName>,
    inlined: FxHashMap<(u32, InlinedName), Vec<(FileOffset, FileOffset)>>,
}

impl<'p> ClassMaker<'p> {
    fn new(
        profile: &'p Profile,
        options: &ReportOptions,
        orders: &Orders,
        functions: &Functions,
    ) -> Self {
        let has = |is: fn(&Order) -> bool| orders.iter().any(|(_, order)| is(order));
        let dso_ranks = dso_ranks(profile, options);
        let mut objects = vec![0_u32; dso_ranks.len()];
        dso_ranks
            .iter()
            .for_each(|&rank| objects[rank as usize] += 1);
        Self {
            profile,
            dso_ranks,
            is_shared: objects.iter().map(|&count| count > 1).collect(),
            namesakes: FxHashMap::default(),
            has_dso: has(|order| matches!(order, Order::Dso)),
            has_symbol: has(|order| matches!(order, Order::Symbol { .. } | Order::SymbolAnd(_))),
            texts: FrameTexts::of(profile, options, orders, functions),
            all: IndexVec::new(),
            ids: ItemIndex::default(),
            inlined_names: FxHashMap::default(),
            inlined: FxHashMap::default(),
        }
    }

    /// Classes of the frames that are `wanted`.
    fn classes(
        &mut self,
        wanted: &IndexSlice<FrameId, [bool]>,
        as_caller: bool,
    ) -> IndexVec<FrameId, Option<ClassId>> {
        let frames = wanted.iter_enumerated();
        frames
            .map(|(id, is_wanted)| is_wanted.then(|| self.class(id, as_caller)))
            .collect()
    }

    fn class(&mut self, id: FrameId, as_caller: bool) -> ClassId {
        let frame = &self.profile[id];
        let dso = frame
            .object
            .map_or(UNMAPPED, |object| self.dso_ranks[object]);
        let symbol = if self.has_symbol {
            self.symbol_part(frame, dso, as_caller)
        } else {
            SymbolPart::Unused
        };
        // perf compares the DSOs of resolved symbols whether or not `dso` is a key.
        let needs_dso =
            self.has_dso || matches!(symbol, SymbolPart::Range(..) | SymbolPart::Inlined(..));
        let class = Class {
            dso: if needs_dso { dso } else { UNMAPPED },
            symbol,
            texts: self.texts.of_frame.get(id).copied().unwrap_or(TextsId(0)),
        };
        let all = &self.all;
        let hash = |each: &Class| FxBuildHasher.hash_one(each);
        let is = |other: ClassId| all[other] == class;
        let new = all.next_idx();
        let known = (self.ids).find_or_add(hash(&class), new, is, |other| hash(&all[other]));
        known.unwrap_or_else(|| self.all.push(class))
    }

    fn symbol_part(&mut self, frame: &Frame, dso: u32, as_caller: bool) -> SymbolPart {
        let Some(id) = frame.symbol else {
            return SymbolPart::Address(if as_caller || self.profile.branches.is_some() {
                frame.address.0
            } else {
                frame.object_address.0
            });
        };
        let symbol = &self.profile[id];
        if !symbol.inlined {
            let apart = if is_jit(self.profile, symbol) {
                Some(id)
            } else if self.is_shared.get(dso as usize) == Some(&true) {
                // perf gives all of this to the first of them, but several builds have other functions at one place.
                let namesake = (dso, symbol.start, symbol.end, symbol.name.as_str());
                Some(*self.namesakes.entry(namesake).or_insert(id))
            } else {
                None
            };
            return SymbolPart::Range(symbol.start, symbol.end, apart);
        }
        let new = InlinedName::from_usize(self.inlined_names.len());
        let name = *self.inlined_names.entry(&symbol.name).or_insert(new);
        // One inlined function in two functions that touch is one row, as in perf (`_sort__sym_cmp`).
        let ranges = self.inlined.entry((dso, name)).or_default();
        let touching = ranges
            .iter()
            .find(|(start, end)| *start <= symbol.end && *end >= symbol.start);
        let (start, end) = touching.copied().unwrap_or_else(|| {
            ranges.push((symbol.start, symbol.end));
            (symbol.start, symbol.end)
        });
        SymbolPart::Inlined(name, start, end)
    }
}

/// Whether a function was made at run time. A dump that was mapped counts as a file, so that its object does not always tell.
pub(crate) fn is_jit(profile: &Profile, symbol: &Symbol) -> bool {
    symbol.producer.is_some() || profile[symbol.object].is_jit
}
