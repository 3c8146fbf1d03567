//! Dumps that need no replay, against a replay of everything.

use proptest::prelude::*;

use super::super::JitCodeId;
use super::super::codes::{CodeList, Codes};
use super::super::found::FoundFile;
use super::super::replay::replay;
use super::super::segments::Owner;
use super::*;
use crate::address::Avma;
use crate::ids::Idx;
use crate::input::Store;
use crate::jitdump::testing::DumpWriter;

const PROCESSES: u32 = 5;
/// Loads begin at multiples of this; few are longer.
const SLOT: u64 = 32;
const SLOTS: u64 = 12;
const TIMES: u64 = 24;

/// Slot, length and time.
type LoadAt = (u64, u64, u64);

/// Loads of one process, the last of which may be another's.
#[derive(Clone, Debug)]
struct Written {
    process: u32,
    loads: Vec<LoadAt>,
    last_of: Option<u32>,
}

fn written() -> impl Strategy<Value = Written> {
    let len = prop_oneof![8 => 1..=SLOT, 1 => Just(0), 1 => SLOT + 1..SLOT + 4];
    let loads = prop::collection::vec((0..SLOTS, len, 1..TIMES), 0..6);
    let last_of = prop_oneof![6 => Just(None), 1 => (0..PROCESSES).prop_map(Some)];
    (0..PROCESSES, loads, any::<bool>(), last_of).prop_map(
        |(process, mut loads, in_order, last_of)| {
            if in_order {
                loads.sort_unstable();
            }
            Written {
                process,
                loads,
                last_of,
            }
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let process = || (0..PROCESSES).prop_map(ProcessId);
    let range = (0..SLOTS, 0..2 * SLOT)
        .prop_map(|(slot, len)| AvmaRange::new(Avma(slot * SLOT + SLOT / 2), len));
    prop_oneof![
        3 => (process(), process()).prop_map(|(parent, child)| Change::Fork { parent, child }),
        2 => process().prop_map(Change::Exec),
        2 => (process(), range).prop_map(|(process, range)| Change::Mapped(process, range)),
    ]
}

fn read<'a>(
    written: &[Written],
    store: &'a Store,
) -> (
    IndexVec<JitObjectId, Dump<'a>>,
    IndexVec<JitObjectId, Owners>,
) {
    let read = written.iter().map(|written| {
        let mut writer = DumpWriter::new(1, 0);
        for &(slot, len, time) in &written.loads {
            let code = vec![0x90; usize::try_from(len).expect("short")];
            writer.load(
                time,
                1,
                slot * SLOT,
                0,
                format!("{slot} {time}").as_bytes(),
                &code,
            );
        }
        let bytes = store.keep(writer.bytes);
        let dump = Dump::read(FoundFile::of_test(bytes), store).expect("a dump");
        let process = ProcessId(written.process);
        let of_loads = match (written.last_of, written.loads.len().checked_sub(1)) {
            (Some(other), Some(others)) => {
                let mut owners = index_vec![Some(process); others];
                owners.push(Some(ProcessId(other)));
                OwnedLoads::Each(owners)
            }
            _ => OwnedLoads::All(process),
        };
        let of_moves = IndexVec::new();
        (dump, Owners { of_loads, of_moves })
    });
    let (dumps, owners): (Vec<_>, Vec<_>) = read.unzip();
    (dumps.into(), owners.into())
}

/// All that one may ask about an address and a time.
#[derive(PartialEq, Debug)]
struct Answer {
    process: ProcessId,
    at: Avma,
    time: Timestamp,
    claim: Option<(Owner, (Timestamp, Timestamp))>,
    after: Option<Owner>,
    ever: bool,
    touching: Option<JitCodeId>,
}

/// How many dumps last, what they count, and what is said about addresses and times.
fn answers(
    mut dumps: IndexVec<JitObjectId, Dump<'_>>,
    owners: &OfDumps<Owners>,
    changes: &[(Timestamp, Change)],
) -> (usize, Vec<(u64, u64)>, Vec<Answer>) {
    let found = lasting(&dumps, owners, changes.iter().copied());
    let claims = replay(&mut dumps, owners, IndexSlice::new(changes));
    let counts = dumps.iter().map(|dump| (dump.aliases, dump.replaced));
    let counts = counts.collect();
    let mut codes = Codes::default();
    for dump in dumps {
        codes.push(CodeList::Dump(dump.codes));
    }
    let mut answers = Vec::new();
    for process in (0..PROCESSES).map(ProcessId) {
        for place in 0..(SLOTS + 1) * 2 {
            let at = Avma(place * SLOT / 2 + place % 3);
            let ever = claims.ever(&codes, process, at);
            let touching = claims.touching(&codes, process, AvmaRange::new(at, SLOT));
            answers.extend((0..TIMES + 2).map(Timestamp).map(|time| Answer {
                process,
                at,
                time,
                claim: claims.at_with_span(&codes, process, at, time),
                after: claims.after(&codes, process, at, time),
                ever,
                touching,
            }));
        }
    }
    (found.iter().flatten().count(), counts, answers)
}

fn in_order(mut changes: Vec<(u64, Change)>) -> Vec<(Timestamp, Change)> {
    let rank = |change: &Change| matches!(change, Change::Fork { .. });
    changes.sort_by_key(|(time, change)| (*time, rank(change)));
    let changes = changes.into_iter();
    changes
        .map(|(time, change)| (Timestamp(time), change))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_lasts_is_what_a_replay_finds(
        written in prop::collection::vec(written(), 1..4),
        changes in prop::collection::vec((0..TIMES, change()), 0..5),
    ) {
        let store = Store::new();
        let changes = in_order(changes);
        let (dumps, owners) = read(&written, &store);
        let (_, quick_counts, quick) = answers(dumps, &owners, &changes);
        let (mut dumps, owners) = read(&written, &store);
        dumps.iter_mut().for_each(|dump| dump.codes.places = None);
        let (lasting, counts, slow) = answers(dumps, &owners, &changes);
        prop_assert_eq!((lasting, counts), (0, quick_counts));
        for (quick, slow) in quick.iter().zip(&slow) {
            prop_assert_eq!(quick, slow);
        }
    }
}

/// How many of the dumps last.
fn lasting_of(written: &[Written], changes: &[(u64, Change)]) -> usize {
    let store = Store::new();
    let (dumps, owners) = read(written, &store);
    answers(dumps, &owners, &in_order(changes.to_vec())).0
}

#[test]
fn nothing_is_replayed_without_need() {
    let of = |process, loads: &[LoadAt]| Written {
        process,
        loads: loads.to_vec(),
        last_of: None,
    };
    let [a, b, c] = [0, 1, 2].map(ProcessId);
    let fork = |parent, child| Change::Fork { parent, child };
    let mapped = |process, slot| Change::Mapped(process, AvmaRange::new(Avma(slot * SLOT), SLOT));
    let dump = of(0, &[(3, 20, 5), (1, 20, 6), (2, 32, 6), (5, 0, 4)]);
    let one = std::slice::from_ref(&dump);
    for (lasts, changes) in [
        (true, vec![]),
        (
            true,
            vec![(1, Change::Exec(a)), (1, mapped(a, 3)), (2, fork(b, a))],
        ),
        (
            true,
            vec![(3, fork(a, b)), (4, fork(b, c)), (8, mapped(b, 9))],
        ),
        (true, vec![(7, mapped(a, 7)), (5, mapped(a, 2))]),
        (
            true,
            vec![
                (7, fork(a, b)),
                (8, Change::Exec(b)),
                (9, mapped(b, 2)),
                (9, fork(b, c)),
            ],
        ),
        (false, vec![(6, mapped(a, 2))]),
        (false, vec![(5, Change::Exec(a))]),
        (false, vec![(7, fork(a, b)), (8, mapped(b, 9))]),
        (false, vec![(7, fork(a, b)), (8, fork(b, c))]),
    ] {
        assert_eq!(lasting_of(one, &changes) == 1, lasts, "{changes:?}");
    }
    // Two that share an address; two dumps of one process; another process' child.
    assert_eq!(lasting_of(&[of(0, &[(3, 33, 5), (4, 3, 9)])], &[]), 0);
    assert_eq!(lasting_of(&[dump.clone(), of(0, &[(8, 3, 9)])], &[]), 0);
    let two = [dump.clone(), of(1, &[(8, 3, 9)])];
    assert_eq!(lasting_of(&two, &[]), 2);
    assert_eq!(lasting_of(&two, &[(7, fork(a, b))]), 0);
    assert_eq!(
        lasting_of(&two, &[(7, fork(a, b)), (8, Change::Exec(b))]),
        2
    );
}

#[test]
fn places_know_their_dump() {
    let store = Store::new();
    let loads = [
        (3, 20, 5),
        (1, 32, 6),
        (2, 32, 6),
        (5, 0, 4),
        (4_000_000, 9, 1),
    ];
    let written = Written {
        process: 0,
        loads: loads.to_vec(),
        last_of: None,
    };
    let (mut dumps, owners) = read(&[written], &store);
    replay(&mut dumps, &owners, IndexSlice::new(&[]));
    let mut codes = Codes::default();
    codes.push(CodeList::Dump(dumps.raw.remove(0).codes));
    let (dump, first) = codes.loads(JitObjectId(0)).expect("a dump");
    let places = dump.places.as_ref().expect("nothing shares an address");
    let at = |at: u64| Some(places.at(&dump.loads, Avma(at))?.index());
    assert_eq!(first, JitCodeId(0));
    assert_eq!(
        [at(31), at(32), at(63), at(64), at(95)],
        [None, Some(1), Some(1), Some(2), Some(2)]
    );
    assert_eq!(
        [at(96), at(115), at(116), at(160)],
        [Some(0), Some(0), None, None]
    );
    let far = 4_000_000 * SLOT;
    assert_eq!(
        [at(far - 1), at(far), at(far + 9), at(u64::MAX)],
        [None, Some(4), None, None]
    );
}
