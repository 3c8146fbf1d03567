//! What units of DWARF said about addresses before, for the recordings behind: runs of one program are at the same addresses.
//!
//! Kept are answers without lines. A unit is read again only for addresses that nobody asked about.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::QueryId;
use super::declared::Declared;
use super::dwarf::{Unit, UnitId};
use super::expanded::{Expanded, Expansion, NameNumber, Wanted};
use super::inlines::Names;
use super::origin::Author;
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec};

/// Answers by unit, and by whether it was asked whose code functions are.
#[derive(Default)]
pub(super) struct Memo<'a>(Mutex<FxHashMap<(UnitId, bool), Shared<'a>>>);

/// One thread at a time reads a unit.
type Shared<'a> = Arc<Mutex<UnitMemo<'a>>>;

/// Addresses that are kept of a unit; beyond them it is begun anew.
const MOST: usize = 1 << 17;

/// A unit that is read, and what was found in it.
#[derive(Default)]
pub(super) struct Reading<'a> {
    /// The unit, once it was asked for; nothing if it cannot be read.
    pub(super) unit: Option<Option<Unit<'a>>>,
    pub(super) names: Names<'a>,
    /// What it says; grows.
    pub(super) out: Expanded<'a>,
}

#[derive(Default)]
struct UnitMemo<'a> {
    /// By address; nothing where the unit does not describe it.
    answers: FxHashMap<u64, Option<Known>>,
    /// With all calls and names, and no answers.
    reading: Reading<'a>,
}

/// As [`Expansion`].
struct Known {
    size: u64,
    calls: std::ops::Range<usize>,
    author: Author,
    declared: Option<Declared>,
}

impl<'a> Memo<'a> {
    /// What a unit says about addresses (ordered), of which `read` is asked those that are new.
    pub(super) fn of_unit(
        &self,
        key: (UnitId, bool),
        asked: &[Wanted],
        read: impl FnOnce(&[Wanted], &mut Reading<'a>),
    ) -> Expanded<'a> {
        let unit = {
            let mut units = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(units.entry(key).or_default())
        };
        let mut unit = unit.lock().unwrap_or_else(PoisonError::into_inner);
        if unit.answers.len() > MOST {
            *unit = UnitMemo::default();
        }
        let is_new = |wanted: &&Wanted| !unit.answers.contains_key(&wanted.svma);
        let mut new: Vec<Wanted> = asked.iter().filter(is_new).copied().collect();
        new.dedup_by_key(|wanted| wanted.svma);
        if !new.is_empty() {
            // Answers tell which of these they are of.
            for (at, wanted) in new.iter_mut().enumerate() {
                wanted.query = QueryId::from_usize(at);
            }
            read(&new, &mut unit.reading);
            unit.keep(IndexSlice::new(&new));
        }
        unit.tell(asked)
    }
}

impl UnitMemo<'_> {
    fn keep(&mut self, asked: &IndexSlice<QueryId, [Wanted]>) {
        self.answers.extend(asked.iter().map(|w| (w.svma, None)));
        for answer in self.reading.out.answers.drain(..) {
            let known = Known {
                size: answer.size,
                calls: answer.calls,
                author: answer.author,
                declared: answer.declared,
            };
            let svma = asked[answer.query].svma;
            self.answers.insert(svma, Some(known));
        }
    }
}

impl<'a> UnitMemo<'a> {
    /// The answers, with names numbered as they are met.
    fn tell(&self, asked: &[Wanted]) -> Expanded<'a> {
        let all = &self.reading.out;
        let mut out = Expanded::default();
        let mut numbers: IndexVec<NameNumber, Option<NameNumber>> =
            index_vec![None; all.names.len()];
        for wanted in asked {
            let Some(Some(known)) = self.answers.get(&wanted.svma) else {
                continue;
            };
            let start = out.calls.len();
            for &(name, _) in &all.calls[known.calls.clone()] {
                let number = *numbers[name].get_or_insert_with(|| {
                    out.origins.extend(all.origins.get(name).cloned());
                    out.names.push(all.names[name])
                });
                out.calls.push((number, None));
            }
            out.answers.push(Expansion {
                query: wanted.query,
                size: known.size,
                calls: start..out.calls.len(),
                line: None,
                author: known.author.clone(),
                declared: known.declared.clone(),
            });
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::expanded::NameOrigin;
    use super::*;

    fn wanted(svma: u64, query: u32) -> Wanted {
        Wanted {
            svma,
            query: QueryId(query),
            inlines: true,
            lines: false,
        }
    }

    /// Even addresses have their own number of calls to one of three names inside them.
    fn find(asked: &[Wanted], out: &mut Expanded<'static>) {
        const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];
        for wanted in asked.iter().filter(|wanted| wanted.svma % 2 == 0) {
            let start = out.calls.len();
            for call in 0..wanted.svma % 5 {
                let name = out.names.push(NAMES[(wanted.svma + call) as usize % 3]);
                out.origins.push(NameOrigin::default());
                out.calls.push((name, None));
            }
            out.answers.push(Expansion {
                query: wanted.query,
                size: wanted.svma * 10,
                calls: start..out.calls.len(),
                line: None,
                author: Author::of_path("/rust/deps/a.rs"),
                declared: None,
            });
        }
    }

    fn plain(found: &Expanded<'_>) -> Vec<(QueryId, u64, Vec<String>, Author)> {
        let plain = |answer: &Expansion| {
            let calls = found.calls[answer.calls.clone()].iter();
            let name =
                |call: &(NameNumber, _)| String::from_utf8_lossy(found.names[call.0]).into_owned();
            (
                answer.query,
                answer.size,
                calls.map(name).collect(),
                answer.author.clone(),
            )
        };
        found.answers.iter().map(plain).collect()
    }

    #[test]
    fn what_was_asked_before_is_answered_as_the_unit_would() {
        let memo = Memo::default();
        let runs: [&[u64]; 4] = [&[2, 3, 4, 4], &[1, 2, 4, 8], &[2, 3, 4], &[4, 6, 16]];
        let mut asked = Vec::new();
        for run in runs {
            let questions: Vec<Wanted> = run.iter().zip(7..).map(|(a, q)| wanted(*a, q)).collect();
            let told = memo.of_unit((UnitId(1), true), &questions, |new, reading| {
                asked.extend(new.iter().map(|wanted| wanted.svma));
                find(new, &mut reading.out);
            });
            let mut alone = Expanded::default();
            find(&questions, &mut alone);
            assert_eq!(plain(&told), plain(&alone));
            assert_eq!(told.names.len(), told.origins.len());
        }
        assert_eq!(asked, [2, 3, 4, 1, 8, 6, 16]);
    }
}
