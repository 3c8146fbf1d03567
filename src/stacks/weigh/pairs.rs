//! `--weight duration`: time from the first event of a pair to the second, at the first one's stack.
//!
//! What belongs together: a probe on a function's entry and one on its return, by thread and function; entry to and
//! exit from a system call, by thread; issue and completion of a block request, by device and sector; what a user
//! names, by thread or by a field. Calls nest: a return belongs to the latest entry. A call weighs its time without that of
//! calls within it, so that the time of a stack and all that is above it is time that passed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{self, names, plain_name, which};
use super::fields::have_chains;
use super::made::within;
use super::read::{Source, stack_pointer};
use super::timeline::{Step, Story};
use super::{Derived, Options, WeighError, Weighed};
use crate::ids::{Idx, IndexVec, ThreadId};
use crate::perfdata::{EventId, FieldAt, Recording};
use crate::session::marks::Moment;
use crate::session::returns::DEEPEST;
use crate::session::{Filter, SampleId, SampleRef, Samples};
use crate::span_spec::Pair;
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
    /// A thread is in one system call at a time.
    SystemCall,
    /// Address of the function that is probed.
    Function(FieldAt),
    Fields(FieldAt, Option<FieldAt>),
}

/// Value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Key(Option<ThreadId>, i128, i128);

/// `--weight duration`.
pub(super) fn weigh(
    source: Source<'_, '_>,
    samples: &mut Samples,
    pair: Option<&Pair>,
    options: &Options,
    filter: &Filter,
) -> Result<Weighed, WeighError> {
    let recording = source.recording;
    let roles = match pair {
        Some(pair) => named(recording, pair)?,
        None => found(recording)?,
    };
    let mut paired: Vec<SampleRef> = Vec::new();
    let pairing = follow(source, samples, &roles, filter, |matched| {
        let begun = &samples.all[matched.begin];
        let is_in_time = matched.time > 0 || filter.times.is_empty();
        if is_in_time && filter.keeps_cpu(u32::try_from(begun.cpu).ok()) {
            paired.push(SampleRef {
                period: matched.own,
                event: EventId(0),
                ..*begun
            });
        }
    });
    let quality = format!("durations: {} pairs{}", paired.len(), pairing.lost());
    let by_field = |role: &Role| matches!(role.by, By::Fields(..));
    let overlaps = roles.iter().flatten().any(by_field);
    let line = passed(&paired, overlaps);
    let starts: Vec<bool> = roles
        .iter()
        .map(|roles| roles.iter().any(|role| role.begins))
        .collect();
    let mut of: Vec<_> = recording.events.iter().zip(&starts).collect();
    of.retain(|(_, is_start)| **is_start);
    let of = names(of.into_iter().map(|(event, _)| event));
    let name = match pair {
        Some(_) => format!("{} (time between both)", options.text),
        None => format!("duration (time from {of} to their ends)"),
    };
    paired.sort_by_key(|sample| sample.time);
    samples.all = paired.into();
    Ok(Weighed {
        event: Some(Derived {
            name,
            unit: Unit::Nanoseconds,
            counted: "calls",
            lines: vec![line],
            has_callchains: have_chains(recording, &starts),
        }),
        quality: vec![quality],
        ..Weighed::default()
    })
}

/// An end with the begin that belongs to it.
struct Paired {
    begin: SampleId,
    end: SampleId,
    /// How much of the chosen time is between them.
    time: u64,
    /// How much of that is in no other pair of the thread.
    own: u64,
}

/// Goes through all events in order, and lets `found` hear of each pair.
fn follow(
    source: Source<'_, '_>,
    samples: &Samples,
    roles: &[Vec<Role>],
    filter: &Filter,
    mut found: impl FnMut(Paired),
) -> Pairing {
    let has_role: Vec<bool> = roles.iter().map(|roles| !roles.is_empty()).collect();
    let keys: IndexVec<SampleId, _> = source
        .read(samples.all.as_raw_slice(), &has_role, |event, sample| {
            let raw = sample.raw.unwrap_or_default();
            let index = source.index(event)?;
            let role = roles[index].first()?;
            Some(match role.by {
                By::Thread | By::SystemCall => (0, 0, 0),
                By::Function(at) => (at.number(raw)?, 0, stack_pointer(sample)),
                By::Fields(a, b) => (a.number(raw)?, b.map_or(Some(0), |b| b.number(raw))?, 0),
            })
        })
        .into();
    let returning = returning(samples, roles, &keys);
    let mut open = Pairing::default();
    for step in Story::of(source.session, samples, &[]).steps() {
        let (number, sample) = match step {
            Step::Sample(number, sample) => (number, sample),
            Step::Mark(mark) => {
                if matches!(mark.what, Moment::Exit | Moment::Exec(_)) {
                    open.end_thread(mark.thread);
                }
                continue;
            }
        };
        let (first, second, stack) = keys[number];
        // An event may end one pair and begin another.
        for role in &roles[sample.event.index()] {
            let thread = (!matches!(role.by, By::Fields(..))).then_some(sample.thread);
            let begin = Open {
                key: (role.pair, Key(thread, first, second)),
                by: role.by,
                sample: number,
                time: sample.time.0,
                stack,
                within: 0,
                has_trampoline: returning.contains(&first) && matches!(role.by, By::Function(_)),
            };
            if role.begins {
                open.begin(begin);
            } else if let Some((begin, time, own)) = open.end(&begin, filter) {
                let end = number;
                found(Paired {
                    begin,
                    end,
                    time,
                    own,
                });
            }
        }
    }
    open
}

/// Places of the two events of each pair that a user named, and what had no partner, in words.
///
/// # Errors
/// When the recording has no such event or field.
pub(super) fn places(
    source: Source<'_, '_>,
    samples: &Samples,
    pair: &Pair,
) -> Result<(Vec<(SampleId, SampleId)>, String), WeighError> {
    let roles = named(source.recording, pair)?;
    let mut all = Vec::new();
    let pairing = follow(source, samples, &roles, &Filter::default(), |matched| {
        all.push((matched.begin, matched.end));
    });
    Ok((all, pairing.lost()))
}

/// Addresses of functions whose returns are probed.
fn returning(
    samples: &Samples,
    roles: &[Vec<Role>],
    keys: &IndexVec<SampleId, (i128, i128, u64)>,
) -> FxHashSet<i128> {
    let ends = |event: EventId| {
        let mut roles = roles[event.index()].iter();
        roles.any(|role| !role.begins && matches!(role.by, By::Function(_)))
    };
    let ended = samples.all.iter_enumerated();
    let ended = ended.filter(|(_, sample)| ends(sample.event));
    ended.map(|(number, _)| keys[number].0).collect()
}

/// `Durations: 19.0 ms of 1 thread`.
fn passed(paired: &[SampleRef], overlaps: bool) -> String {
    let mut threads: Vec<ThreadId> = paired.iter().map(|sample| sample.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let sum = paired.iter().map(|sample| sample.period);
    let sum = Unit::Nanoseconds.human(sum.fold(0, u64::saturating_add));
    match (overlaps, threads.len()) {
        (true, _) => format!("Durations: {sum} in all; they may overlap, so less may have passed"),
        (false, 1) => format!("Durations: {sum} of 1 thread"),
        (false, threads) => format!("Durations: {sum} of {threads} threads"),
    }
}

/// A begin that waits for its end.
#[derive(Debug, Clone, Copy)]
struct Open {
    key: (u32, Key),
    by: By,
    sample: SampleId,
    time: u64,
    /// The stack pointer, or 0.
    stack: u64,
    /// How much of the chosen time pairs within it took.
    within: u64,
    /// The kernel watches for its return.
    has_trampoline: bool,
}

/// Begins that wait.
#[derive(Debug, Default)]
struct Pairing {
    /// Of each thread, the innermost last.
    calls: FxHashMap<ThreadId, Vec<Open>>,
    /// Where among them the system call is.
    system_calls: FxHashMap<ThreadId, usize>,
    /// How many of each key are among them.
    keys: FxHashMap<(u32, Key), usize>,
    /// Those that overlap.
    others: FxHashMap<(u32, Key), Vec<SampleAt>>,
    waiting: usize,
    /// Ends without a begin.
    unpaired: u64,
    /// Begins whose end cannot come any more.
    lost: u64,
    /// Begins for which there was no room.
    left_out: u64,
    /// Begins whose end the kernel does not tell.
    too_deep: u64,
}

/// A sample and its time.
type SampleAt = (SampleId, u64);

impl Pairing {
    /// What has no partner, to be put behind what has one: `, 1 begins without end`.
    fn lost(&self) -> String {
        let parts = [
            (self.unpaired, "ends without begin"),
            (self.lost + self.waiting as u64, "begins without end"),
            (self.left_out, "begins left out"),
            (
                self.too_deep,
                "calls within 64 others, whose returns the kernel does not follow",
            ),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts = parts.map(|(count, what)| format!(", {count} {what}"));
        parts.collect()
    }

    fn begin(&mut self, begin: Open) {
        if self.waiting >= MOST_OPEN {
            self.left_out += 1;
            return;
        }
        self.waiting += 1;
        let Some(thread) = begin.key.1.0 else {
            let others = self.others.entry(begin.key).or_default();
            others.push((begin.sample, begin.time));
            return;
        };
        // Stacks grow down: what is called is below who calls, or where it was if that one jumps to it at its end.
        let is_over = |open: &Open| open.stack != 0 && open.stack < begin.stack;
        while self.innermost(thread).is_some_and(|open| is_over(open)) {
            self.drop_innermost(thread);
        }
        let calls = self.calls.entry(thread).or_default();
        let watched = || calls.iter().filter(|open| open.has_trampoline).count();
        if begin.has_trampoline && calls.len() >= DEEPEST && watched() >= DEEPEST {
            // Its time is the outer call's, of the same thread.
            self.waiting -= 1;
            self.too_deep += 1;
            return;
        }
        if begin.by == By::SystemCall
            && let Some(before) = self.system_calls.insert(thread, calls.len())
            && let Some(open) = calls.get_mut(before)
            && open.by == By::SystemCall
        {
            // It stays where it is, without an end.
            forget(&mut self.keys, open.key);
            (open.key, open.by) = (NOBODY, By::Thread);
        }
        *self.keys.entry(begin.key).or_default() += 1;
        calls.push(begin);
    }

    fn innermost(&mut self, thread: ThreadId) -> Option<&mut Open> {
        self.calls.get_mut(&thread)?.last_mut()
    }

    fn take_innermost(&mut self, thread: ThreadId) -> Option<Open> {
        let open = self.calls.get_mut(&thread)?.pop()?;
        forget(&mut self.keys, open.key);
        self.waiting -= 1;
        Some(open)
    }

    /// The innermost call was jumped over, or its end was lost. What was within it was within the next one.
    fn drop_innermost(&mut self, thread: ThreadId) {
        let Some(open) = self.take_innermost(thread) else {
            return;
        };
        self.lost += 1;
        if let Some(outer) = self.innermost(thread) {
            outer.within = outer.within.saturating_add(open.within);
        }
    }

    /// The begin that belongs to an end, how much of the chosen time is between them, and how much of that is in no other pair
    /// of the thread.
    fn end(&mut self, end: &Open, filter: &Filter) -> Option<(SampleId, u64, u64)> {
        let found = match end.key.1.0 {
            None => {
                let found = self.others.get_mut(&end.key).and_then(Vec::pop);
                self.waiting -= usize::from(found.is_some());
                found.map(|(sample, time)| (sample, time, 0))
            }
            Some(thread) => {
                let found = self.end_call(thread, end);
                found.map(|open| (open.sample, open.time, open.within))
            }
        };
        let Some((sample, from, others)) = found else {
            self.unpaired += 1;
            return None;
        };
        let time = within(filter, from, end.time);
        let outer = end.key.1.0.and_then(|thread| self.innermost(thread));
        if let Some(outer) = outer {
            outer.within = outer.within.saturating_add(time);
        }
        Some((sample, time, time.saturating_sub(others)))
    }

    fn end_call(&mut self, thread: ThreadId, end: &Open) -> Option<Open> {
        /// Bytes of a return address, which is off the stack when a function is back, and some room.
        const RETURN: u64 = 16;
        if !self.keys.contains_key(&end.key) {
            return None;
        }
        loop {
            let open = *self.innermost(thread)?;
            let is_known = open.stack != 0 && end.stack != 0;
            if is_known && open.stack > end.stack {
                // It is called by the innermost one: its own begin was lost.
                return None;
            }
            if open.key == end.key && (!is_known || end.stack - open.stack <= RETURN) {
                return self.take_innermost(thread);
            }
            self.drop_innermost(thread);
        }
    }

    /// What a thread had begun has no end.
    fn end_thread(&mut self, thread: ThreadId) {
        while self.innermost(thread).is_some() {
            self.drop_innermost(thread);
        }
        self.calls.remove(&thread);
    }
}

/// The key of a begin that no end belongs to.
const NOBODY: (u32, Key) = (u32::MAX, Key(None, 0, 0));

fn forget(keys: &mut FxHashMap<(u32, Key), usize>, key: (u32, Key)) {
    if let Some(count) = keys.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            keys.remove(&key);
        }
    }
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
            add(event, 0, false, By::Function(at));
        } else if let Some(at) = field(event, "__probe_ip") {
            add(event, 0, true, By::Function(at));
        } else if let Some((exit, by)) = end_of(name) {
            let end = tracepoints
                .iter()
                .find(|e| plain_name(&events[**e]) == exit);
            let end_by = end.and_then(|end| Some((*end, by(recording, *end)?)));
            if let (Some((end_event, end_by)), Some(by)) = (end_by, by(recording, event)) {
                add(event, 1 + event, true, by);
                add(end_event, 1 + event, false, end_by);
            }
        }
    }
    let begins = |of_event: &Vec<Role>| of_event.iter().any(|role| role.begins);
    let ends = |of_event: &Vec<Role>| of_event.iter().any(|role| !role.begins);
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
    let by_thread: Keys = |_, _| Some(By::SystemCall);
    let by_sector: Keys = |recording, event| {
        let id = recording.events[event].attr.config;
        let field = |field_name| recording.tracepoints.field(id, field_name);
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: (u32, Key) = (0, Key(Some(ThreadId(1)), 7, 0));

    fn at(key: (u32, Key), time: u64) -> Open {
        Open {
            key,
            by: By::Thread,
            sample: SampleId(time as u32),
            time,
            stack: 0,
            within: 0,
            has_trampoline: false,
        }
    }

    #[test]
    fn calls_within_calls_are_counted_once() {
        let other = (0, Key(Some(ThreadId(1)), 8, 0));
        let filter = Filter::default();
        let mut pairing = Pairing::default();
        // One calls itself, and another one, which jumps out of a third.
        for (key, time) in [(PAIR, 10), (PAIR, 20), (other, 30), (PAIR, 40)] {
            pairing.begin(at(key, time));
        }
        let ends = [(other, 50), (PAIR, 70), (PAIR, 100), (PAIR, 110)];
        let ended = ends.map(|(key, time)| pairing.end(&at(key, time), &filter));
        let own = |of: Option<(SampleId, u64, u64)>| of.map(|(begin, _, own)| (begin.0, own));
        assert_eq!(
            ended.map(own),
            [Some((30, 20)), Some((20, 30)), Some((10, 40)), None]
        );
        assert_eq!((pairing.lost, pairing.unpaired, pairing.waiting), (1, 1, 0));
    }

    #[test]
    fn calls_that_the_kernel_does_not_follow_leave_the_outer_ones_their_ends() {
        let filter = Filter::default();
        let mut pairing = Pairing::default();
        let deepest = DEEPEST as u64;
        for time in 0..deepest + 6 {
            pairing.begin(Open {
                has_trampoline: true,
                ..at(PAIR, time)
            });
        }
        assert_eq!((pairing.too_deep, pairing.waiting), (6, DEEPEST));
        for nth in 0..deepest {
            let end = pairing.end(&at(PAIR, 100 + nth), &filter);
            let begin = end.map(|(begin, ..)| u64::from(begin.0));
            assert_eq!(begin, Some(deepest - 1 - nth));
        }
        assert_eq!(pairing.waiting, 0);
    }

    #[test]
    fn a_lost_end_leaves_no_begin_for_a_later_one() {
        let filter = Filter::default();
        let mut pairing = Pairing::default();
        pairing.begin(Open {
            stack: 0x900,
            ..at(PAIR, 1)
        });
        // Of another call, whose begin was lost.
        let end = Open {
            stack: 0x800,
            ..at(PAIR, 5)
        };
        assert_eq!(pairing.end(&end, &filter), None);
        pairing.begin(Open {
            stack: 0x910,
            ..at(PAIR, 10)
        });
        let end = Open {
            stack: 0x918,
            ..at(PAIR, 12)
        };
        assert_eq!(pairing.end(&end, &filter), Some((SampleId(10), 2, 2)));
        let call = |time| Open {
            by: By::SystemCall,
            ..at(PAIR, time)
        };
        pairing.begin(call(20));
        pairing.begin(call(30));
        assert_eq!(pairing.end(&call(31), &filter), Some((SampleId(30), 1, 1)));
        assert_eq!(pairing.end(&call(32), &filter), None);
        pairing.begin(at(PAIR, 40));
        pairing.end_thread(ThreadId(1));
        assert_eq!(pairing.end(&at(PAIR, 50), &filter), None);
        assert_eq!((pairing.lost, pairing.waiting), (3, 0));
        assert!(pairing.keys.is_empty());
    }
}
