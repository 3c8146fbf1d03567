//! The claim rules against a model that keeps everything in lists and asks nobody to be fast.

use proptest::prelude::*;

use super::*;

/// What can happen, on small numbers so that everything collides.
#[derive(Clone, Debug)]
enum Event {
    Load { process: u32, start: u64, len: u64 },
    Move { process: u32, start: u64, to: u64 },
    Mapped { process: u32, start: u64, len: u64 },
    Fork { parent: u32, child: u32 },
    Exec { process: u32 },
}

/// For each process what is in force, recorded anew after every event.
#[derive(Default, Clone)]
struct Model {
    live: Vec<Vec<(u64, u64, u32)>>,
    /// Bytes to a unit.
    scale: u64,
}

impl Model {
    fn end(&mut self, process: u32, start: u64, end: u64) {
        let new = scaled(start, end - start, self.scale);
        let live = &mut self.live[process as usize];
        for (s, e, code) in std::mem::take(live) {
            let old = scaled(s, e - s, self.scale);
            if e <= start || end <= s || start == end {
                live.push((s, e, code));
            } else if overlap::is_slight(old, new) {
                let left = overlap::untouched(old, new);
                let units = |at: Avma| at.0 / self.scale;
                live.extend(left.map(|part| (units(part.start), units(part.end), code)));
            }
        }
    }

    fn load(&mut self, process: u32, start: u64, end: u64, code: u32) {
        if start < end {
            self.end(process, start, end);
            self.live[process as usize].push((start, end, code));
        }
    }

    fn at(&self, process: u32, at: u64) -> Option<u32> {
        self.live[process as usize]
            .iter()
            .find(|&&(s, e, _)| s <= at && at < e)
            .map(|&(_, _, code)| code)
    }
}

const PROCESSES: u32 = 12;
const ADDRESSES: u64 = 48;

fn event() -> impl Strategy<Value = Event> {
    let process = 0..PROCESSES;
    let place = (0..ADDRESSES, 0..12_u64);
    prop_oneof![
        6 => (process.clone(), place.clone()).prop_map(|(process, (start, len))| Event::Load { process, start, len }),
        2 => (process.clone(), 0..ADDRESSES, 0..ADDRESSES).prop_map(|(process, start, to)| Event::Move { process, start, to }),
        1 => (process.clone(), place).prop_map(|(process, (start, len))| Event::Mapped { process, start, len }),
        3 => (process.clone(), process.clone()).prop_map(|(parent, child)| Event::Fork { parent, child }),
        1 => process.prop_map(|process| Event::Exec { process }),
    ]
}

fn range(start: u64, len: u64) -> AvmaRange {
    AvmaRange::new(Avma(start), len)
}

/// Bytes to a unit of the small numbers: within a page, about a page, many pages.
fn scale() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), Just(700), Just(4096), Just(5000), Just(1 << 20)]
}

fn scaled(start: u64, len: u64, scale: u64) -> AvmaRange {
    range(start * scale, len * scale)
}

/// First and last address of a unit.
fn ends_of(unit: u64, scale: u64) -> [Avma; 2] {
    [Avma(unit * scale), Avma(unit * scale + scale - 1)]
}

/// Applies the events to both; returns the index, the model after each point in time, and when each
/// process was born.
fn replay(
    events: &[(Event, u64)],
    scale: u64,
) -> (Claims, Vec<(u64, Model)>, [u64; PROCESSES as usize]) {
    let mut builder = ClaimsBuilder::default();
    let mut model = Model {
        live: vec![Vec::new(); PROCESSES as usize],
        scale,
    };
    let mut sizes = Vec::new();
    let mut born = [0; PROCESSES as usize];
    let mut begun = [false; PROCESSES as usize];
    let mut history = vec![(0, model.clone())];
    let mut time = 1;
    let mut code = 0;
    for (event, pause) in events {
        time += pause;
        let now = Timestamp(time);
        match *event {
            Event::Load {
                process,
                start,
                len,
            } => {
                begun[process as usize] = true;
                builder.load(
                    ProcessId(process),
                    scaled(start, len, scale),
                    JitCodeId(code),
                    now,
                );
                model.load(process, start, start + len, code);
                sizes.push(len);
                code += 1;
            }
            Event::Move { process, start, to } => {
                let Some(&(s, _, moved)) = model.live[process as usize]
                    .iter()
                    .find(|&&(s, _, _)| s == start)
                else {
                    continue;
                };
                begun[process as usize] = true;
                let len = sizes[moved as usize];
                let (from, goal) = (scaled(s, len, scale), scaled(to, len, scale));
                builder.moved(ProcessId(process), from, goal, JitCodeId(moved), now);
                let is_left = |&(start, _, code): &(u64, u64, u32)| {
                    code != moved || start < s || start >= s + len
                };
                model.live[process as usize].retain(is_left);
                model.load(process, to, to + len, moved);
            }
            Event::Mapped {
                process,
                start,
                len,
            } => {
                builder.mapped(ProcessId(process), scaled(start, len, scale), now);
                model.end(process, start, start + len);
            }
            Event::Fork { parent, child } => {
                // A process is born once, before it does anything, and after its parent.
                if parent == child || begun[child as usize] {
                    continue;
                }
                (begun[parent as usize], begun[child as usize]) = (true, true);
                born[child as usize] = time;
                builder.fork(ProcessId(parent), ProcessId(child), now);
                model.live[child as usize] = model.live[parent as usize].clone();
                // What happens in the same instant, happens before the fork.
                time += 1;
            }
            Event::Exec { process } => {
                begun[process as usize] = true;
                builder.exec(ProcessId(process), now);
                model.live[process as usize].clear();
            }
        }
        history.push((now.0, model.clone()));
    }
    (builder.freeze(), history, born)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn lookup_equals_the_model_at_every_time(events in prop::collection::vec((event(), 0..3_u64), 0..60), scale in scale()) {
        let (claims, history, born) = replay(&events, scale);
        for (i, (time, model)) in history.iter().enumerate() {
            // Of several events at one time the last state counts.
            if history.get(i + 1).is_some_and(|(next, _)| next == time) {
                continue;
            }
            for process in (0..PROCESSES).filter(|&process| born[process as usize] <= *time) {
                for at in 0..ADDRESSES + 60 {
                    for address in ends_of(at, scale) {
                        let got = claims.at(&Codes::default(), ProcessId(process), address, Timestamp(*time)).map(|claim| claim.code.0);
                        prop_assert_eq!(got, model.at(process, at), "process {} at {} time {}", process, at, time);
                    }
                }
            }
        }
    }

    #[test]
    fn look_ahead_finds_the_first_later_claim(loads in prop::collection::vec((0..ADDRESSES, 1..12_u64), 1..40), scale in scale()) {
        let mut builder = ClaimsBuilder::default();
        for (i, &(start, len)) in loads.iter().enumerate() {
            builder.load(ProcessId(0), scaled(start, len, scale), JitCodeId(i as u32), Timestamp(10 * i as u64 + 10));
        }
        let claims = builder.freeze();
        for at in 0..ADDRESSES + 12 {
            // Something happens every ten: the first and the last time between. What is in force goes before what comes.
            for time in (0..loads.len() as u64 + 2).flat_map(|i| [10 * i, 10 * i + 9]) {
                if claims.at(&Codes::default(), ProcessId(0), ends_of(at, scale)[(time % 2) as usize], Timestamp(time)).is_some() {
                    continue;
                }
                let first = loads.iter().enumerate().position(|(i, &(start, len))| {
                    10 * i as u64 + 10 > time && start <= at && at < start + len
                });
                let got = claims.after(&Codes::default(), ProcessId(0), ends_of(at, scale)[(time % 2) as usize], Timestamp(time)).map(|claim| claim.code.index());
                prop_assert_eq!(got, first);
            }
            let ever = loads.iter().any(|&(start, len)| start <= at && at < start + len);
            prop_assert_eq!(claims.ever(&Codes::default(), ProcessId(0), ends_of(at, scale)[1]), ever);
            let touching = claims.touching(&Codes::default(), ProcessId(0), scaled(at, 3, scale)).is_some();
            let touched = loads.iter().any(|&(start, len)| start < at + 3 && at < start + len);
            prop_assert_eq!(touching, touched);
        }
    }
}

/// Sizes that are rounded up reach into the next function.
#[test]
fn a_few_bytes_do_not_end_a_function() {
    let mut builder = ClaimsBuilder::default();
    let process = ProcessId(0);
    for code in 0..20 {
        let start = 0x1000 + u64::from(code) * 0x78;
        let loaded = range(start, 0x80);
        builder.load(process, loaded, JitCodeId(code), Timestamp(10));
    }
    // A file over the middle of the third, and code over the start of the fourth.
    builder.mapped(process, range(0x1100, 8), Timestamp(20));
    builder.load(process, range(0x1168, 0x10), JitCodeId(20), Timestamp(20));
    let claims = builder.freeze();
    let at = |at, time| {
        let found = claims.at(&Codes::default(), process, Avma(at), Timestamp(time));
        found.map(|claim| (claim.code.0, at - claim.start.0))
    };
    for code in 0..20 {
        let start = 0x1000 + u64::from(code) * 0x78;
        assert_eq!(at(start + 8, 15), Some((code, 8)));
        assert_eq!(at(start + 0x77, 15), Some((code, 0x77)));
    }
    assert_eq!([at(0x10ff, 20), at(0x1100, 20)], [Some((2, 15)), None]);
    assert_eq!(at(0x1108, 20), Some((2, 0x18)), "counted from its start");
    assert_eq!([at(0x1168, 20), at(0x1180, 20)], [Some((20, 0)), None]);
}

#[test]
fn look_ahead_stops_at_exec() {
    let mut builder = ClaimsBuilder::default();
    builder.exec(ProcessId(0), Timestamp(50));
    builder.load(ProcessId(0), range(0, 10), JitCodeId(0), Timestamp(60));
    let claims = builder.freeze();
    assert!(
        claims
            .after(&Codes::default(), ProcessId(0), Avma(5), Timestamp(40))
            .is_none()
    );
    assert!(
        claims
            .after(&Codes::default(), ProcessId(0), Avma(5), Timestamp(55))
            .is_some()
    );
}

#[test]
fn a_long_line_of_ancestors_is_not_asked_one_by_one() {
    let mut builder = ClaimsBuilder::default();
    for i in 0..1000 {
        builder.load(
            ProcessId(i),
            range(u64::from(i) * 10, 10),
            JitCodeId(i),
            Timestamp(u64::from(i) * 2 + 1),
        );
        builder.fork(
            ProcessId(i),
            ProcessId(i + 1),
            Timestamp(u64::from(i) * 2 + 2),
        );
    }
    // A copy in every ninth generation keeps both the chain and the copies short.
    let claims = builder.freeze();
    assert_eq!(
        claims
            .at(&Codes::default(), ProcessId(1000), Avma(5), Timestamp(9999))
            .map(|claim| claim.code),
        Some(JitCodeId(0))
    );
}

#[test]
fn claims_of_any_shape_take_bounded_memory() {
    // Each claim is wider than the one before it: the worst case for a list per page.
    let mut builder = ClaimsBuilder::default();
    let count = 2000_u64;
    for i in 0..count {
        builder.load(
            ProcessId(0),
            range(count - i, 2 * i + 1),
            JitCodeId(i as u32),
            Timestamp(i + 1),
        );
    }
    let claims = builder.freeze();
    let last = claims.at(
        &Codes::default(),
        ProcessId(0),
        Avma(count),
        Timestamp(count / 2),
    );
    assert_eq!(
        last.map(|claim| u64::from(claim.code.0)),
        Some(count / 2 - 1)
    );
    let empty = ClaimsBuilder::default().freeze();
    assert!(
        empty
            .at(&Codes::default(), ProcessId(3), Avma(0), Timestamp(0))
            .is_none()
    );
}

#[test]
fn processes_that_descend_from_themselves_are_asked_once() {
    let mut builder = ClaimsBuilder::default();
    builder.load(ProcessId(0), range(0, 10), JitCodeId(0), Timestamp(1));
    for (parent, child, time) in [(0, 1, 2), (1, 2, 3), (2, 0, 4), (1, 0, 5), (0, 0, 6)] {
        builder.fork(ProcessId(parent), ProcessId(child), Timestamp(time));
    }
    let claims = builder.freeze();
    let codes = Codes::default();
    let at = |process, at| claims.at(&codes, ProcessId(process), Avma(at), Timestamp(9));
    assert_eq!(at(2, 5).map(|claim| claim.code), Some(JitCodeId(0)));
    assert_eq!(at(0, 20), None);
    assert!(!claims.ever(&codes, ProcessId(0), Avma(20)));
}
