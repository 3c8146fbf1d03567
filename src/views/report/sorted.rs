//! The order in which rows stand.
//!
//! In: rows with what they count. Out: their numbers in perf's order.

use std::cmp::Ordering;

use super::Report;
use super::apart::Order;
use super::classes::{Class, Classes, Rank, SymbolPart, SymbolRank};
use super::keys::{Key, Role};
use super::options::ChainOrder;
use super::order::red_black_order;
use super::rows::{Contexts, Counts, Row};
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec, numbers};
use crate::intern::byte_ranks;
use crate::profile::{Profile, SymbolId, ThreadId};

numbers! {
    /// A row among those that are put into order.
    pub(crate) struct RowPlace(pub(crate) u32);
    /// A row among those by the order of samples.
    struct ByKey(u32);
    /// A name, by its place among all.
    struct NameRank(u32);
}

type Rows = IndexSlice<RowPlace, [Row]>;

/// Puts rows into perf's order. `members` gives the counts of a row's group members behind the leader.
pub(crate) fn ordered<'r>(
    rows: &Rows,
    view: &Ordered<'_>,
    members: impl Fn(RowPlace) -> &'r [Counts],
) -> Vec<RowPlace> {
    let is_tree = view.children && view.has_trees;
    let by_place = |slot: &Slot| matches!(slot, Slot::Symbol { by_name: false });
    let symbols = if is_tree || view.slots.iter().any(by_place) {
        SymbolNumbers::of(rows, view)
    } else {
        SymbolNumbers::default()
    };
    let numbers = Numbers::for_print(rows, view, &symbols, &members);
    if !is_tree {
        return numbers.order(rows, view);
    }
    let by_key = Numbers::for_samples(rows, view, &symbols).order(rows, view);
    let by_key: IndexVec<ByKey, RowPlace> = by_key.into();
    let order: Vec<ByKey> = if numbers.children_at == Some(0) {
        let fronts = Front::of_rows(&by_key, rows, &numbers, view);
        red_black_order(by_key.len(), |a: ByKey, b| {
            fronts[a].cmp(&fronts[b]) == Ordering::Less
        })
    } else {
        red_black_order(by_key.len(), |a: ByKey, b| {
            numbers.compare(by_key[a], by_key[b], rows, view) == Ordering::Less
        })
    };
    order.into_iter().map(|i| by_key[i]).collect()
}

/// What decides between rows when callers are credited and come first among the columns; small, as rows are compared
/// with some twenty others from all over the table.
struct Front {
    children: u64,
    thread: ThreadId,
    /// The order of depths, whichever end of the chains comes first.
    depth: u32,
    /// Rank by the other columns.
    rest: u32,
}

impl Front {
    /// Those of the rows that `order` lists.
    fn of_rows(
        order: &IndexSlice<ByKey, [RowPlace]>,
        rows: &Rows,
        numbers: &Numbers,
        view: &Ordered<'_>,
    ) -> IndexVec<ByKey, Self> {
        let ranks = numbers.ranks_of_rest();
        let of = |place: &RowPlace| {
            let row = &rows[*place];
            Self {
                children: numbers.of(*place)[0],
                thread: row.thread,
                depth: match view.order {
                    ChainOrder::Caller => !row.max_depth,
                    ChainOrder::Callee => row.max_depth,
                },
                rest: ranks[*place],
            }
        };
        order.iter().map(of).collect()
    }

    /// By depth only within a thread, see [`Ordered::by_depth`].
    fn cmp(&self, other: &Self) -> Ordering {
        let by_depth = || {
            if self.thread == other.thread {
                self.depth.cmp(&other.depth)
            } else {
                Ordering::Equal
            }
        };
        (self.children.cmp(&other.children))
            .then_with(by_depth)
            .then(self.rest.cmp(&other.rest))
    }
}

/// What decides the order of rows, as numbers side by side: following rows to their frames, symbols and names for each of a
/// million comparisons costs several times as much.
struct Numbers {
    all: Vec<u64>,
    /// Numbers of one row.
    width: usize,
    /// The one that holds what callers are credited with: rows of one thread that are equal so far go by depth.
    children_at: Option<usize>,
}

impl Numbers {
    /// Ascending, as perf compares samples: see [`Ordered::by_key`].
    fn for_samples(rows: &Rows, view: &Ordered<'_>, symbols: &SymbolNumbers) -> Self {
        let mut all = Vec::with_capacity(rows.len() * view.slots.len());
        for (place, row) in rows.iter_enumerated() {
            let slots = view.slots.iter();
            all.extend(slots.map(|slot| view.number(slot, row, symbols.of_row(place))));
        }
        Self {
            all,
            width: view.slots.len(),
            children_at: None,
        }
    }

    /// In the order of printing: counters descending, in groups the leader's and then the members' in turn, symbols by
    /// name.
    fn for_print<'r>(
        rows: &Rows,
        view: &Ordered<'_>,
        symbols: &SymbolNumbers,
        members: &impl Fn(RowPlace) -> &'r [Counts],
    ) -> Self {
        let by_name =
            |slot: &Slot| matches!(slot, Slot::Symbol { by_name: true } | Slot::SymbolAnd(_));
        let names = if view.slots.iter().any(by_name) {
            name_ranks(rows, view)
        } else {
            IndexVec::new()
        };
        let mut numbers = Self {
            all: Vec::new(),
            width: 0,
            children_at: None,
        };
        for (place, row) in rows.iter_enumerated() {
            for slot in &view.slots {
                let all = &mut numbers.all;
                match *slot {
                    Slot::Credited(value) => {
                        // Rows that come to a second one have one depth.
                        numbers.children_at.get_or_insert(all.len());
                        all.push(!value(&row.counts));
                    }
                    Slot::Counter(value) => {
                        let members = members(place);
                        let first = view.sort_index.and_then(|i| members.get(i.checked_sub(1)?));
                        let first = first.unwrap_or(&row.counts);
                        let counts = std::iter::once(first).chain(members);
                        all.extend(counts.map(|counts| !value(counts)));
                    }
                    Slot::Symbol { by_name: true } => all.push(names[place].into()),
                    Slot::SymbolAnd(text) => {
                        all.extend([u64::from(names[place]), view.text(row, text).0.into()])
                    }
                    ref slot => all.push(view.number(slot, row, symbols.of_row(place))),
                }
            }
            if place.index() == 0 {
                numbers.width = numbers.all.len();
                numbers.all.reserve_exact(numbers.width * (rows.len() - 1));
            }
        }
        numbers
    }

    fn of(&self, row: RowPlace) -> &[u64] {
        &self.all[row.index() * self.width..][..self.width]
    }

    /// The rows in the order of their numbers; those with equal ones as perf compares samples, and then by number.
    fn order(&self, rows: &Rows, view: &Ordered<'_>) -> Vec<RowPlace> {
        let as_samples = |a: &RowPlace, b: &RowPlace| {
            let by_sample = view.as_samples(&rows[*a], &rows[*b]);
            by_sample.then(a.cmp(b))
        };
        let Some((mut packed, bits)) = self.packed(rows) else {
            let mut order: Vec<RowPlace> = rows.indices().collect();
            order.sort_unstable_by(|a, b| {
                (self.of(*a).cmp(self.of(*b))).then_with(|| as_samples(a, b))
            });
            return order;
        };
        packed.sort_unstable();
        let place = |number: &u128| RowPlace((number & ((1 << bits) - 1)) as u32);
        let mut order: Vec<RowPlace> = packed.iter().map(place).collect();
        let mut start = 0;
        for same in packed.chunk_by(|a, b| a >> bits == b >> bits) {
            if same.len() > 1 {
                order[start..start + same.len()].sort_unstable_by(as_samples);
            }
            start += same.len();
        }
        order
    }

    /// All numbers of each row in one, with the row's own in the last bits, and how many bits those are. There is room in
    /// it for those of most tables, and one comparison then takes the place of many.
    fn packed(&self, rows: &Rows) -> Option<(Vec<u128>, u32)> {
        let bits_of = |most: u64| u64::BITS - most.leading_zeros();
        let mut ranges = vec![(u64::MAX, 0); self.width];
        for numbers in self.all.chunks_exact(self.width.max(1)) {
            for ((least, most), number) in ranges.iter_mut().zip(numbers) {
                (*least, *most) = ((*least).min(*number), (*most).max(*number));
            }
        }
        let places: Vec<(u64, u32)> = ranges
            .iter()
            .map(|(least, most)| (*least, bits_of(most.saturating_sub(*least))))
            .collect();
        let row_bits = bits_of(rows.len() as u64);
        if places.iter().map(|(_, bits)| bits).sum::<u32>() + row_bits > u128::BITS {
            return None;
        }
        let pack = |row: RowPlace| {
            let numbers = self.of(row).iter().zip(&places);
            let packed = numbers.fold(0_u128, |so_far, (number, (least, bits))| {
                so_far << bits | u128::from(number - least)
            });
            packed << row_bits | u128::from(row.0)
        };
        Some((rows.indices().map(pack).collect(), row_bits))
    }

    /// Rank of each row by all numbers but the first; equal rows have one rank.
    fn ranks_of_rest(&self) -> IndexVec<RowPlace, u32> {
        let rest = |row: RowPlace| &self.of(row)[1..];
        let rows = self.all.len() / self.width.max(1);
        let mut order: Vec<RowPlace> = (0..rows).map(RowPlace::from_usize).collect();
        order.sort_unstable_by(|a, b| rest(*a).cmp(rest(*b)));
        let mut ranks = index_vec![0; rows];
        let mut rank = 0;
        for (i, row) in order.iter().enumerate() {
            rank += u32::from(i > 0 && rest(order[i - 1]) != rest(*row));
            ranks[*row] = rank;
        }
        ranks
    }

    fn compare(&self, a: RowPlace, b: RowPlace, rows: &Rows, view: &Ordered<'_>) -> Ordering {
        let (x, y) = (self.of(a), self.of(b));
        let Some(at) = self.children_at else {
            return x.cmp(y);
        };
        let depth = || view.by_depth(&rows[a], &rows[b]);
        let so_far = x[..=at].cmp(&y[..=at]).then_with(depth);
        so_far.then_with(|| x[at + 1..].cmp(&y[at + 1..]))
    }
}

/// By row: its place in the order of symbols ([`Ordered::by_key`]).
#[derive(Default)]
struct SymbolNumbers(IndexVec<RowPlace, u32>);

impl SymbolNumbers {
    fn of(rows: &Rows, view: &Ordered<'_>) -> Self {
        let symbol_of = |row: &Row| symbol_order(&view.classes.all[row.class]);
        let symbols = rows.iter().map(symbol_of);
        let mut order: Vec<(_, RowPlace)> = symbols.zip(rows.indices()).collect();
        order.sort_unstable();
        let mut ranks = index_vec![0; rows.len()];
        let mut rank = 0;
        for (i, (symbol, row)) in order.iter().enumerate() {
            rank += u32::from(i > 0 && order[i - 1].0 != *symbol);
            ranks[*row] = rank;
        }
        Self(ranks)
    }

    fn of_row(&self, row: RowPlace) -> u32 {
        self.0.get(row).copied().unwrap_or(0)
    }
}

/// Unresolved symbols last, by address; others by DSO before all else.
fn symbol_order(class: &Class) -> (bool, u32, SymbolRank) {
    let unresolved = matches!(class.symbol, SymbolPart::Address(_));
    let dso = if unresolved { 0 } else { class.dso };
    (unresolved, dso, class.symbol.rank())
}

/// By row: rank of its symbol's name in byte order; equal names have one rank, and rows without symbol are last.
fn name_ranks(rows: &Rows, view: &Ordered<'_>) -> IndexVec<RowPlace, u32> {
    let profile = view.profile;
    let symbol_of = |row: &Row| profile[row.frame].symbol;
    let named: Vec<(RowPlace, SymbolId)> = rows
        .iter_enumerated()
        .filter_map(|(place, row)| Some((place, symbol_of(row)?)))
        .collect();
    let name = |&(_, symbol): &(_, SymbolId)| profile[symbol].name.as_bytes();
    let names: Vec<&[u8]> = named.iter().map(name).collect();
    let mut ranks = index_vec![u32::MAX; rows.len()];
    let of_names: Vec<NameRank> = byte_ranks(&names, view.threads);
    for ((row, _), NameRank(rank)) in named.iter().zip(of_names) {
        ranks[*row] = rank;
    }
    ranks
}

/// Where what a key compares is found.
enum Slot {
    /// What callers are credited with.
    Credited(fn(&Counts) -> u64),
    /// Another counter.
    Counter(fn(&Counts) -> u64),
    /// A place among the context's values.
    Context(usize),
    Dso,
    Symbol {
        /// When rows are printed.
        by_name: bool,
    },
    /// A place among the frame's texts.
    Text(usize),
    /// The symbol, and then a place among the frame's texts.
    SymbolAnd(usize),
    Nothing,
}

impl Slot {
    fn of(key: Key, classes: &Classes, contexts: &Contexts) -> Self {
        let order = match &key.descriptor().role {
            Role::Counter(counter) if counter.is_credited => return Self::Credited(counter.value),
            Role::Counter(counter) => return Self::Counter(counter.value),
            Role::Part(part) => part.order,
            Role::Rate => return Self::Nothing,
        };
        match order {
            Order::Sample(_) => contexts.place_of(key).map_or(Self::Nothing, Self::Context),
            Order::Dso => Self::Dso,
            Order::Symbol { by_name } => Self::Symbol { by_name },
            Order::FrameTexts(_) | Order::FrameNumbers(_) => {
                let place = classes.texts.place_of(key);
                place.map_or(Self::Nothing, Self::Text)
            }
            Order::SymbolAnd(_) => {
                let place = classes.texts.place_of(key);
                place.map_or(Self::Nothing, Self::SymbolAnd)
            }
            Order::Nothing => Self::Nothing,
        }
    }
}

/// What ordering rows needs to know.
pub(crate) struct Ordered<'a> {
    profile: &'a Profile,
    keys: &'a [Key],
    /// By key.
    slots: Vec<Slot>,
    classes: &'a Classes,
    contexts: &'a Contexts,
    children: bool,
    has_trees: bool,
    order: ChainOrder,
    sort_index: Option<usize>,
    threads: usize,
}

impl<'a> Ordered<'a> {
    /// The order of a report's rows.
    pub(crate) fn of(report: &'a Report<'_>) -> Self {
        let (classes, contexts) = (&report.classes, &report.rows.contexts);
        let keys = &report.columns.order;
        let slot = |key: &Key| Slot::of(*key, classes, contexts);
        Self {
            profile: report.profile,
            keys,
            slots: keys.iter().map(slot).collect(),
            classes,
            contexts,
            children: report.children,
            has_trees: report.has_trees,
            order: report.order,
            sort_index: report.options.rows.group_sort_index,
            threads: report.options.layout.threads,
        }
    }

    /// As perf compares samples, by all keys.
    fn as_samples(&self, a: &Row, b: &Row) -> Ordering {
        self.slots.iter().fold(Ordering::Equal, |so_far, slot| {
            so_far.then_with(|| self.by_slot(slot, a, b))
        })
    }

    /// What a key compares, ascending; `symbol` is the number of the symbol.
    fn number(&self, slot: &Slot, row: &Row, symbol: u32) -> u64 {
        let class = &self.classes.all[row.class];
        match *slot {
            Slot::Context(place) => self.contexts.values(row.context)[place],
            Slot::Dso => class.dso.into(),
            Slot::Symbol { .. } | Slot::SymbolAnd(_) => symbol.into(),
            Slot::Text(place) => self.text(row, place).0.into(),
            Slot::Credited(_) | Slot::Counter(_) | Slot::Nothing => 0,
        }
    }

    fn by_slot(&self, slot: &Slot, a: &Row, b: &Row) -> Ordering {
        let class = |row: &Row| &self.classes.all[row.class];
        match slot {
            Slot::Symbol { .. } => symbol_order(class(a)).cmp(&symbol_order(class(b))),
            Slot::SymbolAnd(place) => (symbol_order(class(a)), self.text(a, *place))
                .cmp(&(symbol_order(class(b)), self.text(b, *place))),
            slot => self.number(slot, a, 0).cmp(&self.number(slot, b, 0)),
        }
    }

    /// Rank of one of the texts of a row's frame.
    fn text(&self, row: &Row, place: usize) -> Rank {
        let class = &self.classes.all[row.class];
        self.classes.texts.rank(class.texts, place)
    }

    /// Ascending, as perf compares samples.
    pub(crate) fn by_key(&self, key: Key, a: &Row, b: &Row) -> Ordering {
        let place = self.keys.iter().position(|known| *known == key);
        place.map_or(Ordering::Equal, |place| {
            self.by_slot(&self.slots[place], a, b)
        })
    }

    /// Rows of one thread and equal share: those with deeper chains first when callers come first.
    fn by_depth(&self, a: &Row, b: &Row) -> Ordering {
        if a.thread != b.thread || !self.has_trees {
            return Ordering::Equal;
        }
        match self.order {
            ChainOrder::Caller => b.max_depth.cmp(&a.max_depth),
            ChainOrder::Callee => a.max_depth.cmp(&b.max_depth),
        }
    }
}
