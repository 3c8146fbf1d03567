//! Whether the events that weights are made of were recorded so that they can be.
//!
//! In: how tracepoints were asked for, and what of them was lost. Out: findings, none for recordings without such events.

use std::collections::BTreeSet;

use super::remedy::{Draft, Remedy, finding};
use super::{Level, percent};
use crate::ids::Idx;
use crate::jit::ProcessId;
use crate::perfdata::attr::sample_type;
use crate::perfdata::{Event, Recording};
use crate::session::{Samples, Session};
use crate::weigh::Pairs;

/// Lost shares in per cent from which on sums are doubtful, and wrong.
const DOUBTFUL: f64 = 1.0;
const WRONG: f64 = 5.0;

/// Records of switches (`PERF_RECORD_SWITCH` and `_CPU_WIDE`).
const SWITCH_RECORDS: [u32; 2] = [14, 15];

/// What there is to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weights {
    /// Tracepoints of which only some were recorded, and one in how many; 0 where that was left to a frequency.
    pub sampled: Vec<(String, u64)>,
    /// Tracepoints that were all recorded although a count was given.
    pub uncounted: Vec<String>,
    /// Samples of probes, and how many are lost.
    pub probes: Option<(u64, u64)>,
    /// Where allocations are recorded: the programs that none was recorded of, each once, by comm.
    pub without_allocations: Vec<String>,
    /// There is `sched:sched_switch`, but no record of switches.
    pub lacks_switches: bool,
    /// What belongs together, if that was asked for.
    pub pairs: Vec<Pairs>,
}

/// Programs that a message names.
const NAMES: usize = 3;

/// The programs of a recording without a sample of some events, by comm. perf starts a program through its own.
fn without_allocations(
    session: &Session<'_>,
    samples: &Samples,
    is_of_alloc: &[bool],
) -> Vec<String> {
    let of_alloc = samples
        .all
        .iter()
        .filter(|sample| is_of_alloc[sample.event.index()]);
    let seen: BTreeSet<(ProcessId, u32)> = of_alloc
        .map(|sample| {
            (
                session.threads[sample.thread].process,
                session.program_of(sample),
            )
        })
        .collect();
    let without = session
        .programs()
        .filter(|(process, number, _)| !seen.contains(&(*process, *number)));
    let names: BTreeSet<&str> = without
        .map(|(_, _, comm)| session.comms[comm].as_str())
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

impl Weights {
    /// Looks at a recording.
    #[must_use]
    pub fn of(recording: &Recording<'_>, session: &Session<'_>, samples: &Samples) -> Self {
        let mut found = Self::default();
        let mut is_probe = vec![false; recording.events.len()];
        let mut has_switches = false;
        for (event, slot) in recording.events.iter().zip(&mut is_probe) {
            if !event.attr.is_tracepoint() {
                continue;
            }
            let field = |name| recording.tracepoints.field(event.attr.config, name);
            *slot = field("__probe_ip").is_some() || field("__probe_func").is_some();
            has_switches |= event.name == "sched:sched_switch";
            found.note_sampling(event);
        }
        if is_probe.contains(&true) {
            let of_probes = |s: &&_| {
                let sample: &crate::session::SampleRef = s;
                is_probe[sample.event.index()]
            };
            let there = samples.all.iter().filter(of_probes).count() as u64;
            let lost = session.stats.lost_of(|event| is_probe[event.index()]);
            found.probes = Some((there, lost));
            let events = recording.events.iter().zip(&is_probe);
            let is_of_alloc = events.map(|(event, is_one)| *is_one && event.name.contains("alloc"));
            let is_of_alloc: Vec<bool> = is_of_alloc.collect();
            if is_of_alloc.contains(&true) {
                found.without_allocations = without_allocations(session, samples, &is_of_alloc);
            }
        }
        let by_type = &session.stats.by_type;
        let is_told = SWITCH_RECORDS.iter().any(|kind| by_type.contains_key(kind));
        found.lacks_switches = has_switches && !is_told;
        found
    }

    fn note_sampling(&mut self, event: &Event) {
        let attr = &event.attr;
        if attr.is_freq() {
            self.sampled.push((event.name.clone(), 0));
        } else if attr.sample_period > 1 && attr.has(sample_type::PERIOD) {
            self.uncounted.push(event.name.clone());
        } else if attr.sample_period > 1 {
            self.sampled.push((event.name.clone(), attr.sample_period));
        }
    }

    /// What is to be said of it.
    pub(super) fn judge(&self, out: &mut Vec<Draft>) {
        let mut say = |level, check, text: String, fix: Option<Remedy>| {
            out.push(finding(level, check, text).fixed_by(fix));
        };
        if let Some((there, lost)) = self.probes {
            let share = percent(lost, lost.saturating_add(there));
            let level = match share {
                share if share > WRONG => Level::Fail,
                share if share > DOUBTFUL => Level::Warn,
                share if share > 0.0 => Level::Note,
                _ => Level::Ok,
            };
            let text = format!("{there} events of probes, {lost} lost ({share:.2}%)");
            let fix = Remedy::record("-m 64M")
                .then(", and stacks of 1024 bytes: --call-graph dwarf,1024");
            let fix = (level > Level::Ok).then_some(fix);
            say(level, "weights.lost", text, fix);
        }
        if !self.without_allocations.is_empty() {
            let names = self.without_allocations.iter().take(NAMES);
            let names = names.map(String::as_str).collect::<Vec<_>>().join(", ");
            let text = format!(
                "no allocation was recorded of {names}: it made none, or its allocator is not the one that the probes are in"
            );
            let fix = "record that program itself, not what starts it";
            say(Level::Warn, "weights.allocator", text, Some(fix.into()));
        }
        for pairs in &self.pairs {
            let share = percent(pairs.without, pairs.all);
            let level = match share {
                share if share > WRONG && pairs.harms => Level::Fail,
                share if share > DOUBTFUL => Level::Warn,
                _ if pairs.is_blind => Level::Warn,
                _ => Level::Ok,
            };
            let fix = match (level > Level::Ok, pairs.harms) {
                _ if pairs.is_blind => Some(Remedy::record("--live").then(" without --min")),
                (true, true) => {
                    let all =
                        "record all functions that allocate, and free, from the program's start (";
                    Some(Remedy::from(all).then(Remedy::record("--live")).then(")"))
                }
                (true, false) => Some(Remedy::record("--offcpu")),
                (false, _) => None,
            };
            let text = format!("{} ({share:.2}% unpaired)", pairs.text);
            say(level, "weights.pairs", text, fix);
        }
        if let Some((name, period)) = self.sampled.first() {
            let how = match period {
                0 => "by frequency".to_owned(),
                period => format!("1 in {period}"),
            };
            let text = format!(
                "{name} was sampled {how}: sums are estimates, rare large values are missing"
            );
            let fix = "leave -F and -c away, and give clocks a frequency of their own: -e cpu-clock/freq=997/";
            say(Level::Warn, "weights.sampling", text, Some(fix.into()));
        }
        if let Some(name) = self.uncounted.first() {
            let text = format!("{name} was recorded each time: -c has no effect on tracepoints");
            let fix = Remedy::record("-c N --perf=--no-period");
            say(Level::Note, "weights.sampling", text, Some(fix));
        }
        if self.lacks_switches {
            let text = "sched:sched_switch without records of switches: when threads came back is known for some only";
            let fix = Remedy::record("--offcpu");
            say(Level::Note, "weights.switches", text.to_owned(), Some(fix));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(weights: &Weights) -> Vec<(Level, &'static str)> {
        let mut out = Vec::new();
        weights.judge(&mut out);
        out.iter()
            .map(|finding| (finding.level, finding.check))
            .collect()
    }

    #[test]
    fn only_what_is_there_is_judged() {
        assert_eq!(said(&Weights::default()), []);
        let lost = |lost| {
            said(&Weights {
                probes: Some((100, lost)),
                ..Weights::default()
            })
        };
        assert_eq!(lost(0), [(Level::Ok, "weights.lost")]);
        assert_eq!(lost(1), [(Level::Note, "weights.lost")]);
        assert_eq!(lost(3), [(Level::Warn, "weights.lost")]);
        assert_eq!(lost(9), [(Level::Fail, "weights.lost")]);
    }

    #[test]
    fn what_has_no_other_half_is_judged_by_its_share() {
        let of = |without, harms| {
            let pairs = Pairs {
                text: "heap: 100 blocks".into(),
                all: 1000,
                without,
                harms,
                is_blind: false,
            };
            let weights = Weights {
                pairs: vec![pairs],
                ..Weights::default()
            };
            said(&weights)
        };
        assert_eq!(of(10, true), [(Level::Ok, "weights.pairs")]);
        assert_eq!(of(11, true), [(Level::Warn, "weights.pairs")]);
        assert_eq!(of(51, true), [(Level::Fail, "weights.pairs")]);
        assert_eq!(of(51, false), [(Level::Warn, "weights.pairs")]);
    }

    #[test]
    fn sampling_and_missing_switches_are_told() {
        let weights = Weights {
            sampled: vec![("probe:malloc".into(), 100)],
            uncounted: vec!["probe:free".into()],
            lacks_switches: true,
            ..Weights::default()
        };
        let checks: Vec<_> = said(&weights).into_iter().map(|(_, check)| check).collect();
        assert_eq!(
            checks,
            ["weights.sampling", "weights.sampling", "weights.switches"]
        );
    }
}
