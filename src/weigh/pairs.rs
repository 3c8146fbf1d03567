//! `--weight duration`: time from the first event of a pair to the second, at the first one's stack.
//!
//! What belongs together: a probe on a function's entry and one on its return, by thread and function; entry to and
//! exit from a system call, by thread; issue and completion of a block request, by device and sector; what a user
//! names, by thread or by a field. Calls nest: a return belongs to the latest entry.

use rustc_hash::FxHashMap;

use super::events::{self, names, plain_name, which};
use super::fields::have_chains;
use super::made::within;
use super::read::Source;
use super::spec::Pair;
use super::timeline::{Step, Story};
use super::{Derived, Options, WeighError, Weighed};
use crate::ids::{Idx, IndexVec, ThreadId};
use crate::perfdata::{EventId, FieldAt, Recording};
use crate::session::{Filter, SampleId, SampleRef, Session};
use crate::unit::Unit;

/// Begins that wait for their end at most: what a file could make many of has a limit.
const MOST_OPEN: usize = 1 << 22;

/// What an event is to pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Role {
    pair: u32,
    begins: bool,
    by: By,
}

/// What tells which begin an end belongs to, besides the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Thread,
    ThreadAnd(FieldAt),
    Fields(FieldAt, Option<FieldAt>),
}

/// Value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Key(Option<ThreadId>, i128, i128);

/// `--weight duration`.
pub(super) fn weigh(
    source: Source<'_, '_>,
    session: &mut Session<'_>,
    pair: Option<&Pair>,
    options: &Options,
    filter: &Filter,
) -> Result<Weighed, WeighError> {
    let recording = source.recording;
    let roles = match pair {
        Some(pair) => named(recording, pair)?,
        None => found(recording)?,
    };
    let has_role: Vec<bool> = roles.iter().map(|roles| !roles.is_empty()).collect();
    let keys: IndexVec<SampleId, _> = source
        .read(
            session.samples.as_raw_slice(),
            &has_role,
            |event, sample| {
                let raw = sample.raw.unwrap_or_default();
                let index = source.index(event)?;
                let role = roles[index].first()?;
                Some(match role.by {
                    By::Thread => (0, 0),
                    By::ThreadAnd(at) => (at.number(raw)?, 0),
                    By::Fields(a, b) => (a.number(raw)?, b.map_or(Some(0), |b| b.number(raw))?),
                })
            },
        )
        .into();
    let mut open: FxHashMap<(u32, Key), Vec<SampleId>> = FxHashMap::default();
    let (mut waiting, mut unpaired, mut left_out) = (0_usize, 0_u64, 0_u64);
    let mut paired: Vec<SampleRef> = Vec::new();
    for step in Story::of(session, &[]).steps() {
        let Step::Sample(number, sample) = step else {
            continue;
        };
        // An event may end one pair and begin another.
        for role in &roles[sample.event.index()] {
            let thread = (!matches!(role.by, By::Fields(..))).then_some(sample.thread);
            let key = (role.pair, Key(thread, keys[number].0, keys[number].1));
            if role.begins {
                if waiting < MOST_OPEN {
                    open.entry(key).or_default().push(number);
                    waiting += 1;
                } else {
                    left_out += 1;
                }
                continue;
            }
            let Some(begin) = open.get_mut(&key).and_then(Vec::pop) else {
                unpaired += 1;
                continue;
            };
            waiting -= 1;
            let begun = &session.samples[begin];
            let period = within(filter, begun.time.0, sample.time.0);
            let cpus = &filter.cpus;
            let cpu = u32::try_from(begun.cpu).ok();
            if cpus.is_empty() || cpu.is_some_and(|cpu| cpus.contains(&cpu)) {
                paired.push(SampleRef {
                    period,
                    event: EventId(0),
                    ..*begun
                });
            }
        }
    }
    let starts: Vec<bool> = roles
        .iter()
        .map(|roles| roles.iter().any(|role| role.begins))
        .collect();
    let mut of: Vec<_> = recording.events.iter().zip(&starts).collect();
    of.retain(|(_, starts)| **starts);
    let of = names(of.into_iter().map(|(event, _)| event));
    let name = match pair {
        Some(_) => format!("{} (time between both)", options.text),
        None => format!("duration (time from {of} to their ends)"),
    };
    let mut quality = format!("durations: {} pairs", paired.len());
    for (count, what) in [
        (unpaired, "ends without begin"),
        (waiting as u64, "begins without end"),
        (left_out, "begins left out"),
    ] {
        if count > 0 {
            quality.push_str(&format!(", {count} {what}"));
        }
    }
    paired.sort_by_key(|sample| sample.time);
    session.samples = paired.into();
    Ok(Weighed {
        event: Some(Derived {
            name,
            unit: Unit::Nanoseconds,
            counted: "calls",
            lines: Vec::new(),
            has_callchains: have_chains(recording, &starts),
        }),
        quality: vec![quality],
        trim: None,
    })
}

/// By event: what it is in the pair that a user named.
fn named(recording: &Recording<'_>, pair: &Pair) -> Result<Vec<Vec<Role>>, WeighError> {
    let (from, to) = (
        events::named(recording, &pair.from)?,
        events::named(recording, &pair.to)?,
    );
    let by = |event: usize| match &pair.by {
        None => Ok(By::Thread),
        Some(field) => {
            let event = &recording.events[event];
            let at = recording.tracepoints.field(event.attr.config, field);
            let at = at.ok_or_else(|| {
                let names = recording.tracepoints.field_names(event.attr.config);
                let names: Vec<&str> = names.collect();
                WeighError(format!(
                    "unknown field `{field}` ({} has {})",
                    event.name,
                    names.join(", ")
                ))
            })?;
            Ok(By::Fields(at, None))
        }
    };
    let mut roles = vec![Vec::new(); recording.events.len()];
    roles[to].push(Role {
        pair: 0,
        begins: false,
        by: by(to)?,
    });
    roles[from].push(Role {
        pair: 0,
        begins: true,
        by: by(from)?,
    });
    Ok(roles)
}

/// By event: what it is in one of the known pairs.
fn found(recording: &Recording<'_>) -> Result<Vec<Vec<Role>>, WeighError> {
    let events = &recording.events;
    let field = |event: usize, name: &str| {
        let id = events[event].attr.config;
        recording.tracepoints.field(id, name)
    };
    let mut roles: Vec<Vec<Role>> = vec![Vec::new(); events.len()];
    let mut add = |event: usize, pair: usize, begins: bool, by: By| {
        let pair = u32::try_from(pair).expect("there are fewer events");
        roles[event].push(Role { pair, begins, by });
    };
    let tracepoints = which(recording, |event| event.attr.is_tracepoint());
    let tracepoints: Vec<usize> = (0..events.len()).filter(|i| tracepoints[*i]).collect();
    for &event in &tracepoints {
        let name = plain_name(&events[event]);
        if let Some(at) = field(event, "__probe_func") {
            // All functions are one pair: the address tells them apart.
            add(event, 0, false, By::ThreadAnd(at));
        } else if let Some(at) = field(event, "__probe_ip") {
            add(event, 0, true, By::ThreadAnd(at));
        } else if let Some((exit, by)) = end_of(name) {
            let end = tracepoints
                .iter()
                .find(|e| plain_name(&events[**e]) == exit);
            let end_by = end.and_then(|end| Some((*end, by(recording, *end)?)));
            if let (Some((end, end_by)), Some(by)) = (end_by, by(recording, event)) {
                add(event, 1 + event, true, by);
                add(end, 1 + event, false, end_by);
            }
        }
    }
    let begins = |roles: &Vec<Role>| roles.iter().any(|role| role.begins);
    let ends = |roles: &Vec<Role>| roles.iter().any(|role| !role.begins);
    if roles.iter().any(begins) && roles.iter().any(ends) {
        return Ok(roles);
    }
    let text = "--weight duration: no pair of events (X and X%return, sys_enter_X and sys_exit_X, block_rq_issue and \
                block_rq_complete); --weight 'A..B' or 'A..B by FIELD' names one";
    Err(WeighError(text.to_owned()))
}

type Keys = fn(&Recording<'_>, usize) -> Option<By>;

/// The event that ends what this one begins, and what both are known by.
fn end_of(name: &str) -> Option<(String, Keys)> {
    let by_thread: Keys = |_, _| Some(By::Thread);
    let by_sector: Keys = |recording, event| {
        let id = recording.events[event].attr.config;
        let field = |name| recording.tracepoints.field(id, name);
        Some(By::Fields(field("dev")?, Some(field("sector")?)))
    };
    if let Some(call) = name.strip_prefix("syscalls:sys_enter_") {
        return Some((format!("syscalls:sys_exit_{call}"), by_thread));
    }
    match name {
        "raw_syscalls:sys_enter" => Some(("raw_syscalls:sys_exit".to_owned(), by_thread)),
        "block:block_rq_issue" => Some(("block:block_rq_complete".to_owned(), by_sector)),
        _ => None,
    }
}
