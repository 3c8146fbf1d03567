//! What is in force in one process: disjoint ranges by start address.
//!
//! A list as long as every range lies behind the one before, which is how wasm modules are reported;
//! then a plain map; and when the process forks, a map that is shared with the child. Both change
//! their own version of it, so that ten thousand children of a process with a hundred thousand functions cost
//! nothing until they generate code themselves.

use std::collections::BTreeMap;

use imbl::OrdMap;

use super::{JitCodeId, ProcessId};
use crate::address::Avma;

crate::ids::numbers! {
    /// A claim among those that its process made.
    pub(super) struct OwnClaim(pub(super) u32);
}

/// A claim that is in force; its start address is the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Live {
    pub(super) end: Avma,
    pub(super) code: JitCodeId,
    pub(super) owner: ProcessId,
    /// Which of the owner's claims it is.
    pub(super) claim: OwnClaim,
}

/// Disjoint ranges by start address.
#[derive(Debug)]
pub(super) enum LiveMap {
    /// Only ever added to at the end.
    Ascending(Vec<(u64, Live)>),
    /// Of one process.
    Own(BTreeMap<u64, Live>),
    /// Of one that has forked, or was born by a fork.
    Shared(OrdMap<u64, Live>),
}

impl Default for LiveMap {
    fn default() -> Self {
        Self::Ascending(Vec::new())
    }
}

impl LiveMap {
    /// So many are to come.
    pub(super) fn reserve(&mut self, ranges: usize) {
        if let Self::Ascending(list) = self {
            list.reserve(ranges);
        }
    }

    pub(super) fn get(&self, start: Avma) -> Option<Live> {
        match self {
            Self::Ascending(list) => {
                let found = list.binary_search_by_key(&start.0, |&(start, _)| start);
                Some(list[found.ok()?].1)
            }
            Self::Own(map) => map.get(&start.0).copied(),
            Self::Shared(map) => map.get(&start.0).copied(),
        }
    }

    /// The last range that begins before `end`.
    pub(super) fn last_before(&self, end: Avma) -> Option<(Avma, Live)> {
        let (start, live) = match self {
            Self::Ascending(list) => match list.last()? {
                last if last.0 < end.0 => *last,
                _ => {
                    list[list
                        .partition_point(|&(start, _)| start < end.0)
                        .checked_sub(1)?]
                }
            },
            Self::Own(map) => map
                .range(..end.0)
                .next_back()
                .map(|(&start, &live)| (start, live))?,
            Self::Shared(map) => map
                .range(..end.0)
                .next_back()
                .map(|(&start, &live)| (start, live))?,
        };
        Some((Avma(start), live))
    }

    pub(super) fn insert(&mut self, start: Avma, live: Live) {
        match self {
            Self::Ascending(list) if list.last().is_none_or(|&(last, _)| last < start.0) => {
                list.push((start.0, live));
            }
            Self::Shared(map) => {
                map.insert(start.0, live);
            }
            Self::Ascending(_) | Self::Own(_) => {
                self.own().insert(start.0, live);
            }
        }
    }

    pub(super) fn remove(&mut self, start: Avma) {
        match self {
            Self::Shared(map) => {
                map.remove(&start.0);
            }
            Self::Ascending(_) | Self::Own(_) => {
                self.own().remove(&start.0);
            }
        }
    }

    /// Another version of this map, at the price of a pointer.
    pub(super) fn share(&mut self) -> Self {
        if !matches!(self, Self::Shared(_)) {
            *self = Self::Shared(self.iter().map(|(start, live)| (start.0, live)).collect());
        }
        match self {
            Self::Shared(map) => Self::Shared(map.clone()),
            Self::Ascending(_) | Self::Own(_) => Self::default(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Avma, Live)> {
        let (list, own, shared) = match self {
            Self::Ascending(list) => (Some(list.iter()), None, None),
            Self::Own(map) => (None, Some(map.iter()), None),
            Self::Shared(map) => (None, None, Some(map.iter())),
        };
        let list = list
            .into_iter()
            .flatten()
            .map(|(start, live)| (start, live));
        let maps = own
            .into_iter()
            .flatten()
            .chain(shared.into_iter().flatten());
        list.chain(maps).map(|(&start, &live)| (Avma(start), live))
    }

    /// The map of a process that has not forked.
    fn own(&mut self) -> &mut BTreeMap<u64, Live> {
        if !matches!(self, Self::Own(_)) {
            *self = Self::Own(self.iter().map(|(start, live)| (start.0, live)).collect());
        }
        match self {
            Self::Own(map) => map,
            Self::Ascending(_) | Self::Shared(_) => unreachable!("it was made so just now"),
        }
    }
}
