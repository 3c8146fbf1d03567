//! What is in force in one process: disjoint ranges by start address.
//!
//! A plain map until the process forks. Then it is shared with the child and both change their own
//! version of it, so that ten thousand children of a process with a hundred thousand functions cost
//! nothing until they generate code themselves.

use std::collections::BTreeMap;

use imbl::OrdMap;

use super::ProcessId;
use crate::address::Avma;

/// A claim that is in force; its start address is the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Live {
    pub(super) end: Avma,
    pub(super) code: u32,
    pub(super) owner: ProcessId,
    /// Position among the claims of the owner.
    pub(super) index: u32,
}

/// Disjoint ranges by start address.
#[derive(Debug)]
pub(super) enum LiveMap {
    /// Of one process.
    Own(BTreeMap<u64, Live>),
    /// Of one that has forked, or was born by a fork.
    Shared(OrdMap<u64, Live>),
}

impl Default for LiveMap {
    fn default() -> Self {
        Self::Own(BTreeMap::new())
    }
}

impl LiveMap {
    pub(super) fn get(&self, start: Avma) -> Option<Live> {
        match self {
            Self::Own(map) => map.get(&start.0).copied(),
            Self::Shared(map) => map.get(&start.0).copied(),
        }
    }

    /// The last range that begins before `end`.
    pub(super) fn last_before(&self, end: Avma) -> Option<(Avma, Live)> {
        let (start, live) = match self {
            Self::Own(map) => map.range(..end.0).next_back()?,
            Self::Shared(map) => map.range(..end.0).next_back()?,
        };
        Some((Avma(*start), *live))
    }

    pub(super) fn insert(&mut self, start: Avma, live: Live) {
        match self {
            Self::Own(map) => {
                map.insert(start.0, live);
            }
            Self::Shared(map) => {
                map.insert(start.0, live);
            }
        }
    }

    pub(super) fn remove(&mut self, start: Avma) {
        match self {
            Self::Own(map) => {
                map.remove(&start.0);
            }
            Self::Shared(map) => {
                map.remove(&start.0);
            }
        }
    }

    /// Another version of this map, at the price of a pointer.
    pub(super) fn share(&mut self) -> Self {
        if let Self::Own(map) = self {
            *self = Self::Shared(std::mem::take(map).into_iter().collect());
        }
        match self {
            Self::Own(_) => Self::default(),
            Self::Shared(map) => Self::Shared(map.clone()),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Avma, Live)> {
        let (own, shared) = match self {
            Self::Own(map) => (Some(map.iter()), None),
            Self::Shared(map) => (None, Some(map.iter())),
        };
        let all = own
            .into_iter()
            .flatten()
            .chain(shared.into_iter().flatten());
        all.map(|(&start, &live)| (Avma(start), live))
    }
}
