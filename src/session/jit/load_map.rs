//! From an address to the one piece of code there, for dumps that never use an address twice.
//!
//! In: the loads of a dump. Out: [`LoadMap`], if no two of them share an address; [`Pages`], which also lead into
//! [`super::segments`].

use super::JitCodeId;
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::ids::{IndexSlice, numbers};

numbers! {
    /// A load among those of its dump, in file order; of a perf map an entry among its entries.
    pub(super) struct LoadId(pub(super) u32);
}

impl LoadId {
    /// The last number where there are more: nobody writes files of so many.
    pub(super) fn at(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Its number among all code of the run, given the first of its list.
    #[inline]
    pub(super) const fn code(self, first: JitCodeId) -> JitCodeId {
        JitCodeId(first.0.saturating_add(self.0))
    }

    /// Code of the run among that of its list.
    #[inline]
    pub(super) const fn of(code: JitCodeId, first: JitCodeId) -> Self {
        Self(code.0 - first.0)
    }
}

/// The loads of a dump, in file order.
pub(super) type Loads = IndexSlice<LoadId, [Load]>;

const NONE: u32 = u32::MAX;
/// What is further apart than this shares no table of pages.
const FAR: u64 = 1 << 18;
/// Pages have at least 64 bytes: smaller ones would all lead to one range.
const MIN_PAGE_BITS: u32 = 6;

/// What is kept of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Load {
    pub(super) start: Avma,
    /// Raw until the clocks are related.
    pub(super) time: Timestamp,
    /// Nobody writes code of 4 GB.
    pub(super) size: u32,
    /// The lower half of its record's offset.
    pub(super) at: u32,
}

impl Load {
    pub(super) const fn range(&self) -> AvmaRange {
        AvmaRange::new(self.start, self.size as u64)
    }
}

/// Where the loads of a dump lie: no two in one place, those without code nowhere.
#[derive(Debug)]
pub(super) struct LoadMap {
    /// Their numbers by address; empty if that is how they are numbered.
    order: Vec<LoadId>,
    count: usize,
    pages: Pages,
}

impl LoadMap {
    /// `None` if two share an address.
    pub(super) fn of(loads: &Loads) -> Option<Self> {
        let mut places = Self {
            order: Vec::new(),
            count: loads.len(),
            pages: Pages::default(),
        };
        if !follow_each_other(loads.iter().map(Load::range)) {
            places.order = by_address(loads);
            places.count = places.order.len();
            let mut ranges = places.order.iter().map(|&at| loads[at].range());
            if !follow_each_other(&mut ranges) {
                return None;
            }
        }
        let span = |at| {
            let range = loads[places.number(at)].range();
            (range.start.0, range.end.0)
        };
        places.pages = Pages::of(places.count, span);
        Some(places)
    }

    /// The load that covers an address.
    #[inline]
    pub(super) fn at(&self, loads: &Loads, at: Avma) -> Option<LoadId> {
        let (first, last) = self.pages.around(at.0)?;
        let behind = self.partition_point(first, last + 1, |n| loads[n].start <= at);
        let number = self.number(behind.checked_sub(1).filter(|&index| index >= first)?);
        (loads[number].range().contains(at)).then_some(number)
    }

    /// All that touch a range, by address.
    pub(super) fn touching(&self, loads: &Loads, range: AvmaRange) -> impl Iterator<Item = LoadId> {
        let first = self.partition_point(0, self.count, |n| loads[n].range().end <= range.start);
        (first..self.count)
            .map(|at| self.number(at))
            .take_while(move |&n| loads[n].start < range.end)
    }

    /// The number of the load that is `at`th by address.
    fn number(&self, at: usize) -> LoadId {
        match self.order.get(at) {
            Some(&number) => number,
            None => LoadId(at as u32),
        }
    }

    /// The first position from `first` to `end` whose load is not `before`.
    fn partition_point(&self, first: usize, end: usize, before: impl Fn(LoadId) -> bool) -> usize {
        let (mut low, mut high) = (first, end.min(self.count));
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.number(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Whether each has a length and begins no earlier than the one before it ends.
fn follow_each_other(ranges: impl Iterator<Item = AvmaRange>) -> bool {
    let mut reached = Avma(0);
    let mut ranges = ranges;
    ranges.all(|range| {
        let before = std::mem::replace(&mut reached, range.end);
        before <= range.start && !range.is_empty()
    })
}

/// The numbers of those with code, by start address.
fn by_address(loads: &Loads) -> Vec<LoadId> {
    let with_code = loads.iter_enumerated();
    let with_code = with_code.filter(|(_, load)| !load.range().is_empty());
    let mut order: Vec<_> = with_code.map(|(n, load)| (load.start, n)).collect();
    order.sort_unstable();
    order.iter().map(|&(_, number)| number).collect()
}

/// Leads from an address to the few ranges among which it is to be looked for. The ranges themselves, sorted and
/// disjoint, are the caller's.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Ranges near each other, by address.
    extents: Vec<Extent>,
    /// By page of each extent: the last range that begins at or before the page's start, or the extent's
    /// first. One more behind each extent's pages: its last range.
    first: Vec<u32>,
    bits: u32,
}

/// A run of pages.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Of its first range; its first page begins at or before.
    start: u64,
    /// Of its last range.
    end: u64,
    /// Its first page in `first`.
    page: u32,
    /// How many ranges begin before it.
    before: u32,
}

impl Pages {
    /// `span` tells start and end of each of so many ranges, none of which is empty.
    pub(super) fn of(count: usize, span: impl Fn(usize) -> (u64, u64)) -> Self {
        let mut pages = Self {
            extents: extents(count, &span),
            ..Self::default()
        };
        // As many pages as ranges; an extent takes up to two however large they are.
        let most = (count + pages.extents.len()) as u64;
        pages.bits = (MIN_PAGE_BITS..u64::BITS)
            .find(|&bits| pages.count(bits) <= most)
            .unwrap_or(u64::BITS - 1);
        let entries = pages.count(pages.bits) + pages.extents.len() as u64;
        (pages.first).reserve_exact(usize::try_from(entries).unwrap_or(0));
        for at in 0..pages.extents.len() {
            let next = pages.extents.get(at + 1);
            let behind = next.map_or(count, |next| next.before as usize);
            pages.fill(at, behind, &span);
        }
        pages
    }

    /// How many pages of `1 << bits` bytes there would be.
    fn count(&self, bits: u32) -> u64 {
        let pages = |extent: &Extent| ((extent.end - 1) >> bits) - (extent.start >> bits) + 1;
        self.extents.iter().map(pages).fold(0, u64::saturating_add)
    }

    /// Adds the pages of an extent, whose ranges end before `behind`.
    fn fill(&mut self, extent: usize, behind: usize, span: &impl Fn(usize) -> (u64, u64)) {
        let Extent {
            start, end, before, ..
        } = self.extents[extent];
        self.extents[extent].page = u32::try_from(self.first.len()).unwrap_or(NONE);
        let mut at = before as usize;
        for page in start >> self.bits..=(end - 1) >> self.bits {
            while at + 1 < behind && span(at + 1).0 <= page << self.bits {
                at += 1;
            }
            self.first.push(at as u32);
        }
        self.first.push((behind - 1) as u32);
    }

    /// The first and the last range that may hold an address.
    #[inline]
    pub(super) fn around(&self, at: u64) -> Option<(usize, usize)> {
        let extent = match self.extents.as_slice() {
            [only] => only,
            extents => {
                let next = extents.partition_point(|extent| extent.start <= at);
                &extents[next.checked_sub(1)?]
            }
        };
        if at >= extent.end {
            return None;
        }
        let page = (at >> self.bits).checked_sub(extent.start >> self.bits)?;
        let page = usize::try_from(page).ok()?;
        let pages = self.first.get(extent.page as usize + page..)?;
        let &[first, last, ..] = pages else {
            return None;
        };
        Some((first as usize, last as usize))
    }
}

/// Runs of ranges that are near each other, without their pages.
fn extents(count: usize, span: &impl Fn(usize) -> (u64, u64)) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for number in 0..count {
        let (start, end) = span(number);
        match extents.last_mut() {
            Some(last) if start.saturating_sub(last.end) < FAR => last.end = end,
            _ => extents.push(Extent {
                start,
                end,
                page: 0,
                before: number as u32,
            }),
        }
    }
    extents
}
