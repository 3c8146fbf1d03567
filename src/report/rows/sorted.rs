//! The order in which rows stand.
//!
//! In: rows with what they count. Out: their numbers in perf's order.

use std::cmp::Ordering;

use super::super::classes::{Class, Classes, SymbolPart, SymbolRank};
use super::super::columns::Columns;
use super::super::keys::Key;
use super::super::options::ChainOrder;
use super::super::order::red_black_order;
use super::{Context, Counts, Row};
use crate::intern::byte_ranks;
use crate::profile::{Profile, SymbolId};

/// Puts rows into perf's order. `members` gives the counts of a row's group members behind the leader.
pub(crate) fn ordered<'r>(
    rows: &[Row],
    view: &Ordered<'_>,
    members: impl Fn(u32) -> &'r [Counts],
) -> Vec<u32> {
    let is_tree = view.children && view.has_trees;
    let symbols = if is_tree || view.columns.has_key(Key::SymbolSize) {
        SymbolNumbers::of(rows, view)
    } else {
        SymbolNumbers::default()
    };
    let numbers = Numbers::for_print(rows, view, &symbols, &members);
    if !is_tree {
        return numbers.order(rows, view);
    }
    let by_key = Numbers::for_samples(rows, view, &symbols).order(rows, view);
    let order = if numbers.children_at == Some(0) {
        let fronts = Front::of_rows(&by_key, rows, &numbers, view);
        red_black_order(by_key.len(), |a, b| {
            fronts[a as usize].cmp(&fronts[b as usize]) == Ordering::Less
        })
    } else {
        red_black_order(by_key.len(), |a, b| {
            let (a, b) = (by_key[a as usize], by_key[b as usize]);
            numbers.compare(a, b, rows, view) == Ordering::Less
        })
    };
    order.into_iter().map(|i| by_key[i as usize]).collect()
}

/// What decides between rows when callers are credited and come first among the columns; small, as rows are compared
/// with some twenty others from all over the table.
struct Front {
    children: u64,
    thread: u32,
    /// The order of depths, whichever end of the chains comes first.
    depth: u32,
    /// Rank by the other columns.
    rest: u32,
}

impl Front {
    /// Those of the rows that `order` lists.
    fn of_rows(order: &[u32], rows: &[Row], numbers: &Numbers, view: &Ordered<'_>) -> Vec<Self> {
        let ranks = numbers.ranks_of_rest();
        let of = |number: &u32| {
            let row = &rows[*number as usize];
            Self {
                children: !row.counts.children_period,
                thread: row.thread.0,
                depth: match view.order {
                    ChainOrder::Caller => !row.max_depth,
                    ChainOrder::Callee => row.max_depth,
                },
                rest: ranks[*number as usize],
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
    fn for_samples(rows: &[Row], view: &Ordered<'_>, symbols: &SymbolNumbers) -> Self {
        let mut all = Vec::with_capacity(rows.len() * view.columns.order.len());
        for (number, row) in rows.iter().enumerate() {
            let keys = view.columns.order.iter();
            all.extend(keys.map(|key| view.number(*key, row, symbols.of_row(number))));
        }
        Self {
            all,
            width: view.columns.order.len(),
            children_at: None,
        }
    }

    /// In the order of printing: counters descending, in groups the leader's and then the members' in turn, symbols by
    /// name.
    fn for_print<'r>(
        rows: &[Row],
        view: &Ordered<'_>,
        symbols: &SymbolNumbers,
        members: &impl Fn(u32) -> &'r [Counts],
    ) -> Self {
        let order = &view.columns.order;
        let names = if order.contains(&Key::Symbol) {
            name_ranks(rows, view)
        } else {
            Vec::new()
        };
        let mut numbers = Self {
            all: Vec::new(),
            width: 0,
            children_at: None,
        };
        for (number, row) in (0..).zip(rows) {
            for key in order {
                let all = &mut numbers.all;
                match *key {
                    Key::OverheadChildren => {
                        if number == 0 {
                            numbers.children_at = Some(all.len());
                        }
                        all.push(!row.counts.children_period);
                    }
                    key if key.is_counter() => {
                        let members = members(number);
                        let first = view.sort_index.and_then(|i| members.get(i.checked_sub(1)?));
                        let first = first.unwrap_or(&row.counts);
                        let counts = std::iter::once(first).chain(members);
                        all.extend(counts.map(|counts| !counter(key, counts)));
                    }
                    Key::Symbol => all.push(names[number as usize].into()),
                    key => all.push(view.number(key, row, symbols.of_row(number as usize))),
                }
            }
            if number == 0 {
                numbers.width = numbers.all.len();
                numbers.all.reserve_exact(numbers.width * (rows.len() - 1));
            }
        }
        numbers
    }

    fn of(&self, row: u32) -> &[u64] {
        &self.all[row as usize * self.width..][..self.width]
    }

    /// The rows in the order of their numbers; those with equal ones as perf compares samples, and then by number.
    fn order(&self, rows: &[Row], view: &Ordered<'_>) -> Vec<u32> {
        let as_samples = |a: &u32, b: &u32| {
            let (x, y) = (&rows[*a as usize], &rows[*b as usize]);
            view.as_samples(x, y).then(a.cmp(b))
        };
        let Some((mut packed, bits)) = self.packed(rows.len()) else {
            let mut order: Vec<u32> = (0..rows.len() as u32).collect();
            order.sort_unstable_by(|a, b| {
                (self.of(*a).cmp(self.of(*b))).then_with(|| as_samples(a, b))
            });
            return order;
        };
        packed.sort_unstable();
        let number = |packed: &u128| (packed & ((1 << bits) - 1)) as u32;
        let mut order: Vec<u32> = packed.iter().map(number).collect();
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
    fn packed(&self, rows: usize) -> Option<(Vec<u128>, u32)> {
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
        let bits = bits_of(rows as u64);
        if places.iter().map(|(_, bits)| bits).sum::<u32>() + bits > u128::BITS {
            return None;
        }
        let pack = |row: usize| {
            let numbers = self.of(row as u32).iter().zip(&places);
            let packed = numbers.fold(0_u128, |so_far, (number, (least, bits))| {
                so_far << bits | u128::from(number - least)
            });
            packed << bits | row as u128
        };
        Some(((0..rows).map(pack).collect(), bits))
    }

    /// Rank of each row by all numbers but the first; equal rows have one rank.
    fn ranks_of_rest(&self) -> Vec<u32> {
        let rest = |row: u32| &self.of(row)[1..];
        let rows = self.all.len() / self.width.max(1);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_unstable_by(|a, b| rest(*a).cmp(rest(*b)));
        let mut ranks = vec![0; rows];
        let mut rank = 0;
        for (i, row) in order.iter().enumerate() {
            rank += u32::from(i > 0 && rest(order[i - 1]) != rest(*row));
            ranks[*row as usize] = rank;
        }
        ranks
    }

    fn compare(&self, a: u32, b: u32, rows: &[Row], view: &Ordered<'_>) -> Ordering {
        let (x, y) = (self.of(a), self.of(b));
        let Some(at) = self.children_at else {
            return x.cmp(y);
        };
        let depth = || view.by_depth(&rows[a as usize], &rows[b as usize]);
        let so_far = x[..=at].cmp(&y[..=at]).then_with(depth);
        so_far.then_with(|| x[at + 1..].cmp(&y[at + 1..]))
    }
}

/// By row: its place in the order of symbols ([`Ordered::by_key`]).
#[derive(Default)]
struct SymbolNumbers(Vec<u32>);

impl SymbolNumbers {
    fn of(rows: &[Row], view: &Ordered<'_>) -> Self {
        let symbol = |row: &Row| symbol_order(&view.classes.all[row.class as usize]);
        let mut order: Vec<(_, u32)> = rows.iter().map(symbol).zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; rows.len()];
        let mut rank = 0;
        for (i, (symbol, row)) in order.iter().enumerate() {
            rank += u32::from(i > 0 && order[i - 1].0 != *symbol);
            ranks[*row as usize] = rank;
        }
        Self(ranks)
    }

    fn of_row(&self, row: usize) -> u32 {
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
fn name_ranks(rows: &[Row], view: &Ordered<'_>) -> Vec<u32> {
    let profile = view.profile;
    let symbol = |row: &Row| profile[row.frame].symbol;
    let named: Vec<(usize, SymbolId)> = rows
        .iter()
        .enumerate()
        .filter_map(|(number, row)| Some((number, symbol(row)?)))
        .collect();
    let name = |&(_, symbol): &(_, SymbolId)| profile[symbol].name.as_bytes();
    let names: Vec<&[u8]> = named.iter().map(name).collect();
    let mut ranks = vec![u32::MAX; rows.len()];
    for ((row, _), rank) in named.iter().zip(byte_ranks(&names, view.threads)) {
        ranks[*row] = rank;
    }
    ranks
}

/// What ordering rows needs to know.
pub(crate) struct Ordered<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) columns: &'a Columns,
    pub(crate) classes: &'a Classes,
    pub(crate) contexts: &'a [Context],
    pub(crate) children: bool,
    pub(crate) has_trees: bool,
    pub(crate) order: ChainOrder,
    pub(crate) sort_index: Option<usize>,
    pub(crate) threads: usize,
}

impl Ordered<'_> {
    /// As perf compares samples, by all keys that [`number`](Self::number) knows.
    fn as_samples(&self, a: &Row, b: &Row) -> Ordering {
        let keys = self.columns.order.iter().filter(|key| **key != Key::Socket);
        keys.fold(Ordering::Equal, |so_far, key| {
            so_far.then_with(|| self.by_key(*key, a, b))
        })
    }

    /// [`by_key`](Self::by_key) as numbers; `symbol` is the one of the symbol.
    fn number(&self, key: Key, row: &Row, symbol: u32) -> u64 {
        let keys = &self.contexts[row.context as usize].keys;
        let class = &self.classes.all[row.class as usize];
        let ascending = |n: i32| u64::from(n.cast_unsigned() ^ 1 << 31);
        match key {
            Key::Comm => keys.comm.into(),
            Key::Pid | Key::Tid => keys.tid.into(),
            Key::Tgid => keys.pid.into(),
            Key::Cpu => ascending(keys.cpu),
            Key::Time => keys.time,
            Key::State => keys.state as u64,
            Key::Cgroup => keys.cgroup.into(),
            Key::Trace => keys.trace.into(),
            Key::Parent => keys.parent.into(),
            Key::Dso => class.dso.into(),
            Key::Srcline => class.srcline.into(),
            Key::Srcfile => class.srcfile.into(),
            Key::Symbol | Key::SymbolSize => symbol.into(),
            _ => 0,
        }
    }

    /// Ascending, as perf compares samples.
    pub(crate) fn by_key(&self, key: Key, a: &Row, b: &Row) -> Ordering {
        let (left, right) = (
            &self.contexts[a.context as usize].keys,
            &self.contexts[b.context as usize].keys,
        );
        let (x, y) = (
            &self.classes.all[a.class as usize],
            &self.classes.all[b.class as usize],
        );
        match key {
            Key::Comm => left.comm.cmp(&right.comm),
            Key::Pid | Key::Tid => left.tid.cmp(&right.tid),
            Key::Tgid => left.pid.cmp(&right.pid),
            Key::Cpu => left.cpu.cmp(&right.cpu),
            Key::Socket => left.socket.cmp(&right.socket),
            Key::Time => left.time.cmp(&right.time),
            Key::State => left.state.cmp(&right.state),
            Key::Cgroup => left.cgroup.cmp(&right.cgroup),
            Key::Trace => left.trace.cmp(&right.trace),
            Key::Parent => left.parent.cmp(&right.parent),
            Key::Dso => x.dso.cmp(&y.dso),
            Key::Srcline => x.srcline.cmp(&y.srcline),
            Key::Srcfile => x.srcfile.cmp(&y.srcfile),
            Key::Symbol | Key::SymbolSize => {
                let resolved = |part: &SymbolPart| !matches!(part, SymbolPart::Address(_));
                let by_dso = if resolved(&x.symbol) && resolved(&y.symbol) {
                    x.dso.cmp(&y.dso)
                } else {
                    Ordering::Equal
                };
                by_dso.then_with(|| x.symbol.cmp_as_perf(&y.symbol))
            }
            _ => Ordering::Equal,
        }
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

/// The number a counter column shows or compares.
#[must_use]
pub fn counter(key: Key, counts: &Counts) -> u64 {
    match key {
        Key::OverheadChildren => counts.children_period,
        Key::OverheadSys => counts.by_mode[0],
        Key::OverheadUs => counts.by_mode[1],
        Key::OverheadGuestSys => counts.by_mode[2],
        Key::OverheadGuestUs => counts.by_mode[3],
        Key::Sample => counts.samples,
        _ => counts.self_period,
    }
}
