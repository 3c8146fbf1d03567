//! What `pjit diff` says of the functions of a tree of two sides: pictures colour that, and nothing else.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::FunctionId;
use crate::functions::Identity;
use crate::ids::IndexVec;
use crate::questions::compare::{self, Row, Verdict};

/// What the test says of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// In a word or two.
    pub word: &'static str,
    /// 1 where it takes more, -1 where it takes less, 0 where nobody knows of a change.
    pub way: i8,
}

impl Finding {
    /// Of what was not tested.
    pub const NONE: Self = Self {
        word: "not tested",
        way: 0,
    };

    fn of(row: &Row, is_amount: bool) -> Self {
        // Nothing tells which of its name it is on the other side.
        if row.is_unclear || row.is_unsure {
            return Self::NONE;
        }
        let Some(verdict) = row.verdict else {
            return Self {
                word: "no change found",
                way: 0,
            };
        };
        let way = match verdict {
            Verdict::Slower | Verdict::New => 1,
            Verdict::Faster | Verdict::Gone => -1,
            Verdict::Large if row.ratio.map_or(row.difference() > 0.0, |r| r.value > 1.0) => 1,
            Verdict::Large => -1,
            _ => 0,
        };
        Self {
            word: verdict.word(is_amount),
            way,
        }
    }
}

/// What is known of two sides besides their weights.
#[derive(Clone, PartialEq, Debug)]
pub struct Findings {
    /// By function.
    pub of: IndexVec<FunctionId, Finding>,
    /// By what weights of the new side and of the base are multiplied to be those of one run, without what everything became
    /// slower or faster by.
    pub scale: [f64; 2],
    /// Why little or nothing is coloured.
    pub note: Option<String>,
}

impl Findings {
    /// What a comparison says of the functions of a tree, which are known by their identities; of none without one. `names` are
    /// those that functions of the base have in the tree.
    #[must_use]
    pub fn of(
        identities: &IndexVec<FunctionId, Option<Identity>>,
        comparison: &compare::Comparison,
        names: &BTreeMap<Identity, Identity>,
        is_amount: bool,
    ) -> IndexVec<FunctionId, Finding> {
        let mut known: FxHashMap<Identity, Finding> = FxHashMap::default();
        let program = comparison.program.as_ref();
        for row in &comparison.rows {
            let identity = match program {
                Some(program) => program.as_new(row.identity.clone()),
                None => row.identity.clone(),
            };
            let name = names.get(&identity).filter(|_| row.is_of_base).cloned();
            known.insert(name.unwrap_or(identity), Finding::of(row, is_amount));
        }
        let finding = |identity: &Option<Identity>| {
            let known = identity.as_ref().and_then(|identity| known.get(identity));
            known.copied().unwrap_or(Finding::NONE)
        };
        identities.iter().map(finding).collect()
    }
}
