//! How much each payer pays, and for what.

use std::cmp::Reverse;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::{ActivityId, Payer, PayerId, Payers};
use crate::ids::IndexVec;
use crate::profile::Profile;
use crate::questions::tally::{Count, Tally};

/// What one payer pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Who.
    pub payer: PayerId,
    /// How much.
    pub count: Count,
    /// What for, the heaviest first.
    pub activities: Vec<(&'static str, Count)>,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// What.
    pub name: &'static str,
    /// How much.
    pub count: Count,
    /// Who pays, the heaviest first.
    pub payers: Vec<(PayerId, Count)>,
}

/// Who pays, and what is done. Both lists add up to all samples, exactly.
#[derive(Debug, Default)]
pub struct Spending {
    /// Payers by number.
    pub payers: IndexVec<PayerId, Payer>,
    /// By payer, the heaviest first.
    pub payments: Vec<Payment>,
    /// By activity, the heaviest first.
    pub activities: Vec<Activity>,
}

impl Spending {
    /// Adds up all stacks of a tally.
    #[must_use]
    pub fn of(profile: &Profile, tally: &Tally, mut payers: Payers<'_>) -> Self {
        let mut sums: FxHashMap<(PayerId, ActivityId), Count> = FxHashMap::default();
        for stack in &tally.stacks {
            let key = payers.of(stack.frames(profile));
            sums.entry(key).or_default().add(stack.count);
        }
        let Payers {
            payers,
            activities: names,
            ..
        } = payers;
        let sums: Vec<(PayerId, &'static str, Count)> = sums
            .iter()
            .map(|((payer, what), count)| (*payer, names[*what], *count))
            .collect();
        let by_payer = grouped(sums.iter().copied());
        let by_activity = grouped(
            sums.iter()
                .map(|(payer, what, count)| (*what, *payer, *count)),
        );
        let mut payments: Vec<Payment> = by_payer
            .into_iter()
            .map(|(payer, (count, mut activities))| {
                activities.sort_unstable_by_key(|(name, count)| (Reverse(count.period), *name));
                Payment {
                    payer,
                    count,
                    activities,
                }
            })
            .collect();
        payments.sort_unstable_by_key(|payment| {
            let payer = &payers[payment.payer];
            (Reverse(payment.count.period), &payer.name, payer.ecosystem)
        });
        let mut activities: Vec<Activity> = by_activity
            .into_iter()
            .map(|(name, (count, mut of))| {
                of.sort_unstable_by_key(|(id, count)| {
                    let payer = &payers[*id];
                    (Reverse(count.period), &payer.name, payer.ecosystem)
                });
                Activity {
                    name,
                    count,
                    payers: of,
                }
            })
            .collect();
        activities.sort_unstable_by_key(|activity| (Reverse(activity.count.period), activity.name));
        Self {
            payers,
            payments,
            activities,
        }
    }
}

type Groups<K, V> = FxHashMap<K, (Count, Vec<(V, Count)>)>;

fn grouped<K: Eq + Hash, V>(parts: impl Iterator<Item = (K, V, Count)>) -> Groups<K, V> {
    let mut groups: Groups<K, V> = FxHashMap::default();
    for (key, value, count) in parts {
        let (sum, values) = groups.entry(key).or_default();
        sum.add(count);
        values.push((value, count));
    }
    groups
}
