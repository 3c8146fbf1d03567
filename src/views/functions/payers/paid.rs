//! Payers and activities of all stacks of a profile: what rows, filters and lines are told apart by.

use rustc_hash::FxHashMap;

use super::{NO_PROCESSOR, Payer, PayerId, Payers};
use crate::functions::Functions;
use crate::ids::{IndexVec, index_vec};
use crate::profile::{Entry, FrameId, Profile, StackId};
use crate::run_state::RunState;

/// What stacks may be told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Who pays.
    Package,
    /// What is done.
    Activity,
}

impl Part {
    /// As keys and options have it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Activity => "activity",
        }
    }
}

type Pair = (PayerId, &'static str);

/// Who pays for each stack, and what it does.
#[derive(Debug, Default)]
pub struct Paid {
    payers: IndexVec<PayerId, Payer>,
    of_stack: IndexVec<StackId, Option<Pair>>,
    /// Of samples without a chain.
    of_leaf: FxHashMap<FrameId, Pair>,
    /// Names in order.
    labels: Vec<String>,
    activities: Vec<&'static str>,
}

fn named(payers: &mut Payers<'_>, stack: StackId, leaf: FrameId) -> Pair {
    let told = payers.of_stack(stack, leaf);
    (told.payer, payers.activities()[told.activity])
}

impl Paid {
    /// Looks at the stacks of all samples.
    #[must_use]
    pub fn of(profile: &Profile, functions: &Functions) -> Self {
        let mut payers = Payers::new(profile, functions);
        let mut paid = Self {
            of_stack: index_vec![None; profile.stacks.len()],
            ..Self::default()
        };
        let entries = profile
            .entries
            .iter()
            .map(|entry| (entry.stack, entry.leaf));
        let samples = profile
            .samples
            .iter()
            .map(|sample| (sample.stack, sample.leaf));
        for (stack, leaf) in entries.chain(samples) {
            match profile.stacks.get(stack) {
                [] => {
                    let pair = paid.of_leaf.entry(leaf);
                    pair.or_insert_with(|| named(&mut payers, stack, leaf));
                }
                _ => {
                    paid.of_stack[stack].get_or_insert_with(|| named(&mut payers, stack, leaf));
                }
            }
        }
        let pairs = paid.of_stack.iter().flatten().chain(paid.of_leaf.values());
        paid.activities = pairs.map(|(_, activity)| *activity).collect();
        paid.activities.push(NO_PROCESSOR);
        paid.activities.sort_unstable();
        paid.activities.dedup();
        paid.payers = payers.payers;
        paid.labels = paid.payers.iter().map(Payer::label).collect();
        paid.labels.sort_unstable();
        paid
    }

    fn pair(&self, stack: StackId, leaf: FrameId) -> Option<Pair> {
        let of_stack = self.of_stack.get(stack).copied().flatten();
        of_stack.or_else(|| self.of_leaf.get(&leaf).copied())
    }

    /// Who pays for a sample.
    #[must_use]
    pub fn payer(&self, stack: StackId, leaf: FrameId) -> Option<&Payer> {
        self.pair(stack, leaf).map(|(payer, _)| &self.payers[payer])
    }

    /// What a sample does.
    #[must_use]
    pub fn activity(&self, stack: StackId, leaf: FrameId, state: RunState) -> Option<&'static str> {
        if state == RunState::Runnable {
            return Some(NO_PROCESSOR);
        }
        self.pair(stack, leaf).map(|(_, activity)| activity)
    }

    /// The place of a sample's part among all by name, and that name.
    #[must_use]
    pub fn ranked(&self, part: Part, entry: &Entry) -> (usize, &str) {
        let (stack, leaf) = (entry.stack, entry.leaf);
        let ranked = || match part {
            Part::Package => {
                let label = self.payer(stack, leaf)?.label();
                let at = self.labels.binary_search(&label).ok()?;
                Some((at, self.labels[at].as_str()))
            }
            Part::Activity => {
                let activity = self.activity(stack, leaf, entry.state)?;
                let at = self.activities.binary_search(&activity).ok()?;
                Some((at, activity))
            }
        };
        ranked().unwrap_or((usize::MAX, super::UNKNOWN))
    }
}
