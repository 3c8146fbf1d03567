//! How much each payer pays, and for what.

use std::cmp::Reverse;
use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{ActivityId, Payer, PayerId, Payers};
use crate::functions::tally::{Count, Tally, WeightedStack, of_event};
use crate::ids::{IndexVec, index_vec};
use crate::profile::{CommId, Entry, Facet, FrameId, Profile};
use crate::runtimes::{Ecosystem, Whose};

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

/// A frame that belongs to who pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaidFrame {
    /// The frame.
    pub frame: FrameId,
    /// Its package.
    pub payer: PayerId,
    /// What it pays for.
    pub credited: Count,
    /// As the innermost frame.
    pub own: Count,
}

/// What else samples are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grouping {
    /// By nothing, unless several programs ran: then by program.
    #[default]
    Programs,
    /// By program, be it one.
    Processes,
    /// By cgroup, as containers have one each.
    Cgroups,
    /// By host that was recorded on.
    Hosts,
}

/// Samples of one program, cgroup or host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The program's name, the cgroup's path, or the host's name.
    pub name: String,
    /// How many processes of it have samples.
    pub processes: usize,
    /// Its samples.
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
    /// For whom threads of V8 compile, an estimate: packages with their parts of the bytes that were made, the most first.
    pub compiled_for: Vec<(PayerId, f64)>,
    /// By frame of who pays, in no order.
    pub frames: Vec<PaidFrame>,
    /// By program, cgroup or host, the heaviest first; they add up to all samples, too. Empty where nobody asked and one program ran.
    pub groups: Vec<Group>,
}

impl Spending {
    /// Adds up all stacks of a tally.
    #[must_use]
    pub fn of(
        profile: &Profile,
        tally: &Tally,
        mut payers: Payers<'_>,
        grouping: Grouping,
    ) -> Self {
        let mut sums: FxHashMap<(PayerId, ActivityId), Count> = FxHashMap::default();
        let mut paying: IndexVec<FrameId, Option<usize>> = index_vec![None; profile.frames.len()];
        let mut paid: Vec<PaidFrame> = Vec::new();
        let mut of_stack = Vec::with_capacity(tally.stacks.len());
        for stack in &tally.stacks {
            let frames = stack.frames(profile);
            let told = payers.of_samples(stack);
            of_stack.push(told.payer);
            sums.entry((told.payer, told.activity))
                .or_default()
                .add(stack.count);
            let Some(depth) = told.depth else { continue };
            let frame = frames[depth];
            let at = *paying[frame].get_or_insert_with(|| {
                paid.push(PaidFrame {
                    frame,
                    payer: told.payer,
                    credited: Count::default(),
                    own: Count::default(),
                });
                paid.len() - 1
            });
            paid[at].credited.add(stack.count);
            if depth == 0 {
                paid[at].own.add(stack.count);
            }
        }
        let compiled_for = compiled_for(profile, &mut payers);
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
                activities.sort_unstable_by_key(|(name, part)| (Reverse(part.period), *name));
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
                of.sort_unstable_by_key(|(id, part)| {
                    let payer = &payers[*id];
                    (Reverse(part.period), &payer.name, payer.ecosystem)
                });
                Activity {
                    name,
                    count,
                    payers: of,
                }
            })
            .collect();
        activities.sort_unstable_by_key(|activity| (Reverse(activity.count.period), activity.name));
        let payer_of = |entry: &Entry| {
            let key = (entry.stack, entry.leaf);
            let key_of = |stack: &WeightedStack| (stack.id(), stack.leaf());
            let at = tally.stacks.binary_search_by_key(&key, key_of);
            at.ok().map(|at| of_stack[at])
        };
        let groups = groups(profile, tally, grouping, &payers, payer_of);
        Self {
            payers,
            payments,
            activities,
            compiled_for,
            frames: paid,
            groups,
        }
    }
}

/// Packages by the bytes of optimised code that was made for them.
fn compiled_for(profile: &Profile, payers: &mut Payers<'_>) -> Vec<(PayerId, f64)> {
    let made = &profile.optimised;
    let total: u64 = made
        .iter()
        .fold(0, |sum, (_, size)| sum.saturating_add(*size));
    let packages = made.iter().filter_map(|(whose, size)| match whose {
        Whose::Nobody | Whose::Std(_) => None,
        Whose::Package(..) | Whose::File(_) => {
            let id = payers.met(whose.clone())?;
            Some((id, *size as f64 / total.max(1) as f64))
        }
    });
    packages.collect()
}

/// The group of recordings that do not tell their host.
pub const UNKNOWN_HOST: &str = "unknown host";

/// Samples by program, cgroup or host.
fn groups(
    profile: &Profile,
    tally: &Tally,
    grouping: Grouping,
    payers: &IndexVec<PayerId, Payer>,
    payer_of: impl Fn(&Entry) -> Option<PayerId>,
) -> Vec<Group> {
    let program_of = |entry: &Entry| profile[profile[entry.thread].program].as_str();
    let words = |entry: &Entry, facet| profile.facets.words(entry.facets, facet);
    let name_of = |entry: &Entry| match grouping {
        Grouping::Programs | Grouping::Processes => program_of(entry).to_owned(),
        Grouping::Cgroups => words(entry, Facet::Cgroup)
            .unwrap_or("no cgroup")
            .to_owned(),
        Grouping::Hosts => words(entry, Facet::Host)
            .filter(|host| !host.is_empty())
            .unwrap_or(UNKNOWN_HOST)
            .to_owned(),
    };
    if grouping == Grouping::Programs {
        let mut programs: FxHashMap<CommId, Count> = FxHashMap::default();
        for entry in of_event(profile, tally.event) {
            let program = profile[entry.thread].program;
            programs.entry(program).or_default().add(count_of(entry));
        }
        let is_large = |count: &&Count| count.period.saturating_mul(20) >= tally.total.period;
        if programs.values().filter(is_large).count() < 2 {
            return Vec::new();
        }
    }
    /// Weight, processes, and who pays.
    type Sum = (Count, FxHashSet<(u32, u32)>, FxHashMap<PayerId, Count>);
    let mut sums: FxHashMap<String, Sum> = FxHashMap::default();
    for entry in of_event(profile, tally.event) {
        let count = count_of(entry);
        let (sum, processes, of) = sums.entry(name_of(entry)).or_default();
        sum.add(count);
        processes.extend(profile[entry.thread].processes());
        if let Some(payer) = payer_of(entry) {
            of.entry(payer).or_default().add(count);
        }
    }
    let mut groups: Vec<Group> = sums
        .into_iter()
        .map(|(name, (count, processes, of))| {
            let mut of: Vec<(PayerId, Count)> = of.into_iter().collect();
            of.sort_unstable_by_key(|(id, part)| by_weight(&payers[*id], *part));
            Group {
                name,
                processes: processes.len(),
                count,
                payers: of,
            }
        })
        .collect();
    groups.sort_unstable_by(|a, b| {
        (Reverse(a.count.period), &a.name).cmp(&(Reverse(b.count.period), &b.name))
    });
    groups
}

/// The heaviest first, then by name.
fn by_weight(payer: &Payer, count: Count) -> (Reverse<u64>, String, Option<Ecosystem>) {
    (Reverse(count.period), payer.name.clone(), payer.ecosystem)
}

fn count_of(entry: &Entry) -> Count {
    Count {
        period: entry.period,
        samples: entry.samples,
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
