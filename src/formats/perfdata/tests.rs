//! Tests of the whole reader on recordings that [`super::testing`] builds.

use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;

use crate::address::{Avma, Timestamp};
use crate::diagnostics::{Diagnostics, Level};
use crate::input::Store;

use super::open::open_mapped;
use super::testing::*;
use super::*;

/// What came out, in order: samples as (time, ip), records as (time, first word of their debug text).
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Sample { time: u64, ip: u64 },
    Record { time: u64, what: String },
}

struct Read {
    seen: Vec<Seen>,
    heads: Vec<SampleHead>,
    stats: DeliverStats,
    warnings: Vec<String>,
}

fn read(recording: &Recording<'_>) -> Read {
    let diag = Diagnostics::new();
    let (mut seen, mut heads) = (vec![], vec![]);
    let stats = recording.deliver(&diag, &mut |_| {}, &mut |delivered| match delivered {
        Delivered::Sample(head) => {
            heads.push(head);
            seen.push(Seen::Sample {
                time: head.time.0,
                ip: head.ip.0,
            });
        }
        Delivered::Record { record, time, .. } => {
            let what = format!("{record:?}");
            let what = what
                .split([' ', '(', '{'])
                .next()
                .unwrap_or_default()
                .to_owned();
            // A stream's own records have no counterpart in a file.
            if what != "Other" {
                seen.push(Seen::Record { time: time.0, what });
            }
        }
    });
    let warnings = diag
        .take()
        .into_iter()
        .filter(|(level, _)| *level == Level::Warning);
    Read {
        seen,
        heads,
        stats,
        warnings: warnings.map(|(_, text)| text).collect(),
    }
}

fn open(bytes: &[u8]) -> Result<Recording<'_>, OpenError> {
    open_mapped(Path::new("test.data"), bytes)
}

fn read_file(bytes: &[u8]) -> Read {
    read(&open(bytes).expect("a good header"))
}

fn read_stream(bytes: Vec<u8>) -> Read {
    let reader = Cursor::new(bytes);
    read(&Recording::from_stream(Path::new("-"), reader).expect("a good stream"))
}

fn ips(read: &Read) -> Vec<u64> {
    read.heads.iter().map(|head| head.ip.0).collect()
}

fn at(time: u64, ip: u64) -> TestSample {
    TestSample {
        misc: 2,
        ip,
        pid: 7,
        tid: 8,
        time,
        ..TestSample::default()
    }
}

// ---- order ------------------------------------------------------------------------------------

/// One step of a recording for the ordering tests.
#[derive(Debug, Clone)]
enum Step {
    Sample(u64),
    Comm(u64),
    Round,
}

/// perf's rules as section 1.3 of its description states them, done the slow way: one sorted list into
/// which every record is inserted behind its equals.
fn model(steps: &[Step]) -> Vec<Seen> {
    let mut out = vec![];
    let mut queue: Vec<(u64, Seen)> = vec![];
    let (mut limit, mut latest) = (0, 0);
    for (n, step) in steps.iter().enumerate() {
        let (time, seen) = match step {
            Step::Round => {
                while limit != 0 && queue.first().is_some_and(|(time, _)| *time <= limit) {
                    out.push(queue.remove(0).1);
                }
                limit = latest;
                continue;
            }
            Step::Sample(time) => (
                *time,
                Seen::Sample {
                    time: *time,
                    ip: n as u64,
                },
            ),
            Step::Comm(time) => (
                *time,
                Seen::Record {
                    time: *time,
                    what: "Comm".to_owned(),
                },
            ),
        };
        if time == 0 || time == u64::MAX {
            out.push(match seen {
                Seen::Record { what, .. } => Seen::Record { time: 0, what },
                sample @ Seen::Sample { .. } => sample,
            });
            continue;
        }
        latest = if queue.is_empty() {
            time
        } else {
            latest.max(time)
        };
        let place = queue
            .iter()
            .position(|(other, _)| *other > time)
            .unwrap_or(queue.len());
        queue.insert(place, (time, seen));
    }
    out.extend(queue.into_iter().map(|(_, seen)| seen));
    out
}

fn build(steps: &[Step]) -> TestRecording {
    let mut recording = TestRecording::simple();
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Round => recording.finished_round(),
            Step::Sample(time) => recording.sample(0, &at(*time, n as u64)),
            Step::Comm(time) => recording.comm(7, 8, "x", *time),
        };
    }
    recording
}

fn step() -> impl Strategy<Value = Step> {
    let time = prop_oneof![20 => 1u64..40, 1 => Just(0), 1 => Just(u64::MAX)];
    prop_oneof![
        6 => time.clone().prop_map(Step::Sample),
        2 => time.prop_map(Step::Comm),
        2 => Just(Step::Round),
    ]
}

proptest! {
    #[test]
    fn records_come_in_perfs_order(steps in proptest::collection::vec(step(), 0..60)) {
        let recording = build(&steps);
        let expected = model(&steps);
        prop_assert_eq!(&read_file(&recording.file()).seen, &expected);
        prop_assert_eq!(&read_stream(recording.stream()).seen, &expected);
        prop_assert_eq!(&read_file(&recording.compressed_file(100, false)).seen, &expected);
    }
}

#[test]
fn equal_times_keep_the_order_of_the_file() {
    let steps = [
        Step::Sample(5),
        Step::Comm(5),
        Step::Sample(5),
        Step::Sample(4),
    ];
    assert_eq!(ips(&read_file(&build(&steps).file())), [3, 0, 2]);
}

#[test]
fn a_late_record_is_counted_and_comes_with_the_next_flush() {
    let steps = [
        Step::Sample(10),
        Step::Round,
        Step::Sample(20),
        Step::Round,
        Step::Sample(5),
        Step::Sample(30),
    ];
    let read = read_file(&build(&steps).file());
    assert_eq!(ips(&read), [0, 4, 2, 5]);
    assert_eq!(read.stats.out_of_order, 1);
}

#[test]
fn without_trailers_the_order_is_that_of_the_file() {
    let mut recording = TestRecording::new(vec![TestEvent {
        flags: 0,
        ..TestEvent::default()
    }]);
    recording
        .sample(0, &at(9, 1))
        .comm(7, 8, "x", 3)
        .sample(0, &at(4, 2));
    let read = read_file(&recording.file());
    let comm = Seen::Record {
        time: 0,
        what: "Comm".to_owned(),
    };
    assert_eq!(
        read.seen,
        [
            Seen::Sample { time: 9, ip: 1 },
            comm,
            Seen::Sample { time: 4, ip: 2 }
        ]
    );
}

// ---- events and layouts -----------------------------------------------------------------------

/// Two events with different samples, told apart by IDENTIFIER.
fn two_events() -> TestRecording {
    let a = TestEvent {
        sample_type: IP | TID | TIME | CPU | PERIOD | IDENTIFIER,
        ids: vec![11, 12],
        name: "cpu-clock:u",
        ..TestEvent::default()
    };
    let b = TestEvent {
        sample_type: IP | TIME | ADDR | IDENTIFIER,
        sample_period: 77,
        ids: vec![21],
        name: "page-faults",
        ..TestEvent::default()
    };
    TestRecording::new(vec![a, b])
}

#[test]
fn samples_find_their_event_by_id() {
    let mut recording = two_events();
    recording.sample(
        1,
        &TestSample {
            id: 21,
            addr: 5,
            ..at(1, 0x10)
        },
    );
    recording.sample(
        0,
        &TestSample {
            id: 12,
            cpu: 3,
            period: 99,
            ..at(2, 0x20)
        },
    );
    recording.sample(
        0,
        &TestSample {
            id: 666,
            ..at(3, 0x30)
        },
    );
    let file = recording.file();
    let opened = open(&file).expect("a good header");
    let names: Vec<&str> = opened.events.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["cpu-clock:u", "page-faults"]);
    let read = read(&opened);
    let [b, a] = read.heads[..] else {
        panic!("two samples: {:?}", read.heads)
    };
    assert_eq!(
        (b.event, b.ip, b.period, b.cpu),
        (EventId(1), Avma(0x10), 77, None)
    );
    assert_eq!((b.pid, b.tid), (u32::MAX, u32::MAX));
    assert_eq!(
        (a.event, a.ip, a.period, a.cpu),
        (EventId(0), Avma(0x20), 99, Some(3))
    );
    assert_eq!(
        (a.pid, a.tid, a.time, a.cpumode),
        (7, 8, Timestamp(2), CpuMode::User)
    );
    assert_eq!(read.stats.unknown_ids, 1);
    assert_eq!(read.warnings.len(), 1, "{:?}", read.warnings);
}

#[test]
fn attributes_of_other_sizes_are_read() {
    for attr_size in [64, 72, 96, 112, 144, 256] {
        let event = TestEvent {
            attr_size,
            regs_user: 0xff,
            ..TestEvent::default()
        };
        let mut recording = TestRecording::new(vec![event]);
        recording.sample(0, &at(1, 0x10));
        for bytes in [recording.file(), recording.stream()] {
            let opened = open(&bytes).expect("a good header");
            let attr = opened.events[0].attr;
            assert_eq!(attr.size, attr_size);
            assert_eq!(attr.sample_regs_user, if attr_size < 96 { 0 } else { 0xff });
            assert_eq!(ips(&read(&opened)), [0x10]);
        }
    }
}

#[test]
fn counter_values_become_the_periods_of_the_members() {
    let leader = TestEvent {
        sample_type: IP | TID | TIME | READ | ID,
        read_format: 4 | 8 | 16,
        ids: vec![1],
        ..TestEvent::default()
    };
    let member = TestEvent {
        ids: vec![2],
        ..leader.clone()
    };
    let mut recording = TestRecording::new(vec![leader, member]);
    let values = [
        [(10, 1, 0), (5, 2, 0)],
        [(30, 1, 0), (5, 2, 0)],
        [(31, 1, 0), (9, 2, 0)],
    ];
    // The last is written first: periods follow the order of delivery.
    for (time, read) in [(3, values[2]), (1, values[0]), (2, values[1])] {
        recording.sample(
            0,
            &TestSample {
                id: 1,
                read: read.to_vec(),
                ..at(time, time)
            },
        );
    }
    let read = read_file(&recording.file());
    let periods: Vec<_> = read
        .heads
        .iter()
        .map(|h| (h.time.0, h.event.0, h.layout.0, h.period))
        .collect();
    assert_eq!(
        periods,
        [
            (1, 0, 0, 10),
            (1, 1, 0, 5),
            (2, 0, 0, 20),
            (3, 0, 0, 1),
            (3, 1, 0, 4)
        ]
    );
    assert_eq!(read.stats.samples, 3);
}

#[test]
fn a_single_counter_value_is_a_period_too() {
    let event = TestEvent {
        sample_type: IP | TID | TIME | READ | ID,
        read_format: 1 | 2 | 4,
        ids: vec![1],
        ..TestEvent::default()
    };
    let mut recording = TestRecording::new(vec![event]);
    for (time, value) in [(1, 100), (2, 250)] {
        recording.sample(
            0,
            &TestSample {
                id: 1,
                read: vec![(value, 1, 0)],
                ..at(time, time)
            },
        );
    }
    let periods: Vec<u64> = read_file(&recording.file())
        .heads
        .iter()
        .map(|h| h.period)
        .collect();
    assert_eq!(periods, [100, 150]);
}

// ---- samples in full --------------------------------------------------------------------------

fn words(max: usize) -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(any::<u64>(), 0..max)
}

fn any_sample() -> impl Strategy<Value = (TestEvent, TestSample)> {
    let event = (
        0u64..1 << 25,
        0u64..32,
        any::<bool>(),
        any::<bool>(),
        any::<u64>(),
        any::<u64>(),
    );
    let variable = (
        words(6),
        proptest::collection::vec(any::<u8>(), 0..20),
        proptest::collection::vec(any::<[u64; 3]>(), 0..4),
        (0usize..4).prop_map(|n| vec![0x5a; n * 8]),
        0u64..3,
        words(3),
    );
    (event, variable, any::<[u64; 12]>()).prop_map(|(event, variable, word)| {
        let (sample_type, read_format, hw_idx, counters, regs_user, regs_intr) = event;
        // The kernel never writes both kinds of weight.
        let sample_type = if sample_type & WEIGHT != 0 {
            sample_type & !WEIGHT_STRUCT
        } else {
            sample_type
        };
        let (callchain, raw, branches, stack, abi, values) = variable;
        let event = TestEvent {
            sample_type,
            read_format,
            branch_sample_type: u64::from(hw_idx) << 17 | u64::from(counters) << 19,
            regs_user,
            regs_intr,
            ..TestEvent::default()
        };
        let regs = |mask: u64| {
            (0..u64::from(mask.count_ones()))
                .map(|n| n * 3 + 1)
                .collect()
        };
        let grouped = read_format & 8 != 0;
        let read = values
            .iter()
            .map(|v| (*v, if read_format & 4 != 0 { v ^ 1 } else { 0 }, 9));
        let read: Vec<_> = if grouped {
            read.collect()
        } else {
            vec![(4, if read_format & 4 != 0 { 5 } else { 0 }, 6)]
        };
        let sample = TestSample {
            misc: 1,
            ip: word[0],
            pid: 3,
            tid: 4,
            time: word[1],
            addr: word[2],
            id: word[3],
            stream_id: word[4],
            cpu: 5,
            period: word[5],
            read,
            callchain,
            raw,
            hw_idx: word[6],
            branches,
            user_abi: abi,
            user_regs: regs(regs_user),
            stack_copied: stack.len() as u64 / 2,
            stack,
            weight: word[7],
            data_src: word[8],
            transaction: word[9],
            intr_abi: 2,
            intr_regs: regs(regs_intr),
            phys_addr: word[10],
            cgroup: word[11],
            data_page_size: 4096,
            code_page_size: 1 << 21,
            aux: vec![1, 2, 3, 4, 5, 6, 7, 8],
        };
        (event, sample)
    })
}

/// What the reader makes of a sample, as a test sample, so that the two can be compared.
fn as_test_sample(s: &Sample<'_>, like: &TestSample) -> TestSample {
    let regs = |r: Option<Registers<'_>>| -> Vec<u64> {
        r.map(|r| (0..64).filter_map(|n| r.get(n)).collect())
            .unwrap_or_default()
    };
    TestSample {
        misc: like.misc,
        ip: s.ip.map_or(0, |a| a.0),
        pid: s.pid.unwrap_or(0),
        tid: s.tid.unwrap_or(0),
        time: s.time.map_or(0, |t| t.0),
        addr: s.addr.unwrap_or(0),
        id: s.id.unwrap_or(0),
        stream_id: s.stream_id.unwrap_or(0),
        cpu: s.cpu.unwrap_or(0),
        period: s.period.unwrap_or(0),
        read: s
            .read
            .map(|r| r.iter().map(|(v, id)| (v, id, 0)).collect())
            .unwrap_or_default(),
        callchain: s.callchain.map(|c| c.iter().collect()).unwrap_or_default(),
        raw: s.raw.unwrap_or_default().to_vec(),
        hw_idx: s.branch_stack.and_then(|b| b.hw_idx).unwrap_or(0),
        branches: s
            .branch_stack
            .map(|b| b.iter().map(|e| [e.from.0, e.to.0, e.flags]).collect())
            .unwrap_or_default(),
        user_abi: s.user_regs.map_or(0, |r| r.abi),
        user_regs: regs(s.user_regs),
        stack: s.user_stack.unwrap_or_default().to_vec(),
        stack_copied: s.user_stack.map_or(0, |s| s.len() as u64),
        weight: s.weight.map_or(0, |cost| {
            cost.weight | cost.instruction_latency << 32 | cost.stage_cycles << 48
        }),
        data_src: s.data_src.map_or(0, |source| source.0),
        transaction: s.transaction.unwrap_or(0),
        intr_abi: s.intr_regs.map_or(0, |r| r.abi),
        intr_regs: regs(s.intr_regs),
        phys_addr: s.phys_addr.unwrap_or(0),
        cgroup: s.cgroup.unwrap_or(0),
        data_page_size: s.data_page_size.unwrap_or(0),
        code_page_size: s.code_page_size.unwrap_or(0),
        aux: s.aux.unwrap_or_default().to_vec(),
    }
}

/// The sample without what its event does not record.
fn recorded(event: &TestEvent, s: &TestSample) -> TestSample {
    let has = |bits: u64| event.sample_type & bits != 0;
    let word = |bits, value: u64| if has(bits) { value } else { 0 };
    let short = |bits, value: u32| if has(bits) { value } else { 0 };
    let user = has(REGS_USER) && s.user_abi != 0;
    let stack = if has(STACK_USER) {
        s.stack[..s.stack.len() / 2].to_vec()
    } else {
        vec![]
    };
    let read = s.read.iter().map(|(v, id, _)| (*v, *id, 0)).collect();
    TestSample {
        misc: s.misc,
        ip: word(IP, s.ip),
        pid: short(TID, s.pid),
        tid: short(TID, s.tid),
        time: word(TIME, s.time),
        addr: word(ADDR, s.addr),
        id: word(ID | IDENTIFIER, s.id),
        stream_id: word(STREAM_ID, s.stream_id),
        cpu: short(CPU, s.cpu),
        period: word(PERIOD, s.period),
        read: if has(READ) { read } else { vec![] },
        callchain: if has(CALLCHAIN) {
            s.callchain.clone()
        } else {
            vec![]
        },
        raw: if has(RAW) { s.raw.clone() } else { vec![] },
        hw_idx: if event.branch_sample_type & (1 << 17) != 0 {
            word(BRANCH_STACK, s.hw_idx)
        } else {
            0
        },
        branches: if has(BRANCH_STACK) {
            s.branches.clone()
        } else {
            vec![]
        },
        user_abi: if user { s.user_abi } else { 0 },
        user_regs: if user { s.user_regs.clone() } else { vec![] },
        stack_copied: stack.len() as u64,
        stack,
        weight: word(WEIGHT | WEIGHT_STRUCT, s.weight),
        data_src: word(DATA_SRC, s.data_src),
        transaction: word(TRANSACTION, s.transaction),
        intr_abi: word(REGS_INTR, s.intr_abi),
        intr_regs: if has(REGS_INTR) {
            s.intr_regs.clone()
        } else {
            vec![]
        },
        phys_addr: word(PHYS_ADDR, s.phys_addr),
        cgroup: word(CGROUP, s.cgroup),
        data_page_size: word(DATA_PAGE_SIZE, s.data_page_size),
        code_page_size: word(CODE_PAGE_SIZE, s.code_page_size),
        aux: if has(AUX) { s.aux.clone() } else { vec![] },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_combination_of_fields_is_parsed((event, sample) in any_sample()) {
        let mut recording = TestRecording::new(vec![event.clone()]);
        recording.sample(0, &sample);
        let bytes = recording.file();
        let opened = open(&bytes).expect("a good header");
        let parsed = opened.events[0].parse_sample(&recording.data).expect("a good sample");
        prop_assert_eq!(parsed.cpumode, CpuMode::Kernel);
        prop_assert_eq!(as_test_sample(&parsed, &sample), recorded(&event, &sample));
        // Cut anywhere it is an error, or what was cut was only padding; never a panic.
        for len in 0..recording.data.len() {
            let _ = opened.events[0].parse_sample(&recording.data[..len]);
        }
    }
}

#[test]
fn registers_are_found_by_number() {
    let values: Vec<u8> = [10u64, 20, 30]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let registers = Registers {
        abi: 2,
        mask: 1 << 3 | 1 << 46 | 1 << 63,
        values: &values,
    };
    let found: Vec<_> = (0..70)
        .filter_map(|n| registers.get(n).map(|v| (n, v)))
        .collect();
    assert_eq!(found, [(3, 10), (46, 20), (63, 30)]);
}

// ---- damage -----------------------------------------------------------------------------------

/// Rounds, several kinds of records, samples with stacks; features behind.
fn small_recording() -> TestRecording {
    let event = TestEvent {
        sample_type: IP | TID | TIME | CALLCHAIN | STACK_USER,
        name: "cpu-clock",
        ..TestEvent::default()
    };
    let mut recording = TestRecording::new(vec![event]);
    recording.feature(3, feature_string("host"));
    recording
        .comm(7, 8, "prog", 0)
        .mmap2(7, 0x1000, 0x2000, 0, "/bin/prog", 0);
    for n in 1..=12u64 {
        let sample = TestSample {
            callchain: vec![n; (n % 3) as usize],
            stack: vec![n as u8; 16],
            stack_copied: 16,
            ..at(100 - n % 4 + n * 2, n)
        };
        recording.sample(0, &sample);
        if n % 4 == 0 {
            recording
                .finished_round()
                .task(7, 0, [9, 7, 9, 8], 100 + n * 2);
        }
    }
    recording
}

/// How many samples of the recording end at or before `cut`.
fn samples_before(recording: &TestRecording, cut: usize) -> usize {
    let starts = std::iter::once(&0).chain(&recording.ends);
    let whole = starts.zip(&recording.ends).filter(|(_, end)| **end <= cut);
    whole
        .filter(|(start, _)| recording.data[**start] == 9)
        .count()
}

#[test]
fn a_file_cut_anywhere_gives_all_samples_before_the_cut() {
    let recording = small_recording();
    let file = recording.file();
    let data = recording.data_offset();
    assert!(read_file(&file).warnings.is_empty());
    for cut in 0..file.len() {
        let Ok(opened) = open(&file[..cut]) else {
            assert!(cut <= data, "cannot open a file cut at {cut}");
            continue;
        };
        let read = read(&opened);
        assert_eq!(
            read.heads.len(),
            samples_before(&recording, cut.saturating_sub(data)),
            "cut at {cut}"
        );
        assert_eq!(read.warnings.len(), 1, "cut at {cut}: {:?}", read.warnings);
    }
}

#[test]
fn an_uncompleted_file_cut_anywhere_gives_all_samples_before_the_cut() {
    let recording = small_recording();
    let file = recording.unclosed_file();
    let data = recording.data_offset();
    for cut in data..=file.len() {
        let read = read_file(&file[..cut]);
        assert_eq!(
            read.heads.len(),
            samples_before(&recording, cut - data),
            "cut at {cut}"
        );
        assert_eq!(read.warnings.len(), 1, "cut at {cut}: {:?}", read.warnings);
        assert!(
            read.warnings[0].contains("never completed"),
            "{:?}",
            read.warnings
        );
    }
}

#[test]
fn a_stream_cut_anywhere_gives_all_samples_before_the_cut() {
    let recording = small_recording();
    let stream = recording.stream();
    let data = stream.len() - recording.data.len();
    for cut in data..=stream.len() {
        let at_boundary = recording.ends.contains(&(cut - data)) || cut == data;
        for read in [
            read_file(&stream[..cut]),
            read_stream(stream[..cut].to_vec()),
        ] {
            assert_eq!(
                read.heads.len(),
                samples_before(&recording, cut - data),
                "cut at {cut}"
            );
            // A stream does not say how long it should be.
            assert_eq!(
                read.warnings.is_empty(),
                at_boundary,
                "cut at {cut}: {:?}",
                read.warnings
            );
        }
    }
}

#[test]
fn a_compressed_file_cut_anywhere_gives_what_was_packed_before() {
    let recording = small_recording();
    let whole = recording.compressed_file(150, true);
    let data = recording.data_offset();
    let all = ips(&read_file(&recording.file()));
    for cut in data..whole.len() {
        let read = read_file(&whole[..cut]);
        assert_eq!(read.warnings.len(), 1, "cut at {cut}: {:?}", read.warnings);
        assert!(read.heads.len() <= all.len());
    }
    assert_eq!(ips(&read_file(&whole)), all);
    // Every piece that is wholly there is used.
    let packed = recording.compressed_data(150, true);
    let first = usize::from(u16::from_le_bytes([packed[6], packed[7]]));
    let read = read_file(&whole[..data + first]);
    assert_eq!(read.heads.len(), samples_before(&recording, 150));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn flipped_bytes_do_no_harm(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        form in 0..4_usize,
    ) {
        static FORMS: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
            let recording = small_recording();
            [
                recording.file(),
                recording.stream(),
                recording.compressed_file(200, false),
                recording.compressed_stream(200),
            ]
        });
        let mut bytes = FORMS[form].clone();
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= value;
        }
        if let Ok(opened) = open(&bytes) {
            let _ = read(&opened);
            let _ = opened.header_lines(true);
            let chunks = opened.chunks();
            while chunks.next().is_some() {}
        }
        if form % 2 == 1 && let Ok(opened) = Recording::from_stream(Path::new("-"), &bytes[..]) {
            let _ = read(&opened);
        }
    }
}

#[test]
fn a_record_of_size_0_ends_the_reading_with_a_warning() {
    let mut recording = TestRecording::simple();
    recording.sample(0, &at(1, 0x10));
    recording.data.extend_from_slice(&[0; 64]);
    for read in [
        read_file(&recording.file()),
        read_stream(recording.stream()),
    ] {
        assert_eq!(ips(&read), [0x10]);
        assert_eq!(read.warnings.len(), 1, "{:?}", read.warnings);
    }
}

#[test]
fn unknown_and_malformed_records_are_skipped_and_counted() {
    let mut recording = TestRecording::simple();
    recording
        .record(63, 0, &[0; 8])
        .record(200, 0, &[])
        .record(200, 0, &[]);
    recording.record(9, 2, &[1; 8]).record(3, 0, &[b'x'; 16]);
    recording.sample(0, &at(1, 0x10));
    let read = read_file(&recording.file());
    assert_eq!(ips(&read), [0x10]);
    assert_eq!(
        read.stats.unknown_types.into_iter().collect::<Vec<_>>(),
        [(63, 1), (200, 2)]
    );
    assert_eq!(read.stats.malformed, 2);
    assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
}

#[test]
fn what_is_no_recording_is_refused() {
    let file = TestRecording::simple().file();
    let foreign = |bytes: &[u8]| match open(bytes) {
        Err(OpenError::NotPerfData { what, .. }) => Some(what),
        _ => None,
    };
    assert_eq!(foreign(b""), Some(Foreign::Empty));
    let program = b"\x7fELF\x02\x01\x01\0\0\0\0\0";
    assert_eq!(foreign(program), Some(Foreign::Program));
    assert!(matches!(
        open(b"PERFFILE\0\0\0\0\0\0\0\0"),
        Err(OpenError::OldFormat { .. })
    ));
    // While perf writes a slice there are records behind an empty header; what else begins with zeros is not perf's.
    let mut unfinished = file.clone();
    let data = u64::from_le_bytes(*file[40..].first_chunk().expect("a header"));
    unfinished[..usize::try_from(data).expect("small")].fill(0);
    let is_unfinished = |bytes: &[u8]| matches!(open(bytes), Err(OpenError::Unfinished { .. }));
    assert!(is_unfinished(&unfinished));
    unfinished[99] = 1;
    assert_eq!(foreign(&unfinished), Some(Foreign::Other));
    let mut swapped = file.clone();
    swapped[..8].reverse();
    assert!(matches!(open(&swapped), Err(OpenError::BigEndian { .. })));
    let stream = Recording::from_stream(Path::new("-"), &file[..]);
    assert!(matches!(
        stream.map(|_| ()),
        Err(OpenError::NotPerfData { .. })
    ));
    let mut main_file_of_directory = TestRecording::simple();
    main_file_of_directory
        .comm(7, 8, "x", 0)
        .feature(24, 1u64.to_le_bytes().to_vec());
    let main_file = main_file_of_directory.file();
    let folder = tempfile::tempdir().expect("a folder");
    let part = folder.path().join("data");
    std::fs::write(&part, &main_file).expect("written");
    let (store, diag) = (Store::new(), Diagnostics::new());
    assert!(matches!(
        Recording::open(&part, &store, &diag).map(|_| ()),
        Err(OpenError::PartOfDirectory { .. })
    ));
    assert!(Recording::open(folder.path(), &store, &diag).is_ok());
    let store = Store::new();
    let directory = Recording::open(Path::new("/"), &store, &Diagnostics::new());
    assert!(matches!(
        directory.map(|_| ()),
        Err(OpenError::Directory { .. })
    ));
}

#[test]
fn aux_data_is_stepped_over() {
    let mut recording = TestRecording::simple();
    recording.sample(0, &at(1, 0x10));
    let mut body = vec![0; 40];
    body[0] = 24;
    recording.record(71, 0, &body);
    recording.data.extend_from_slice(&[0xff; 24]);
    recording.sample(0, &at(2, 0x20));
    for read in [
        read_file(&recording.file()),
        read_stream(recording.stream()),
    ] {
        assert_eq!(ips(&read), [0x10, 0x20]);
        let told = "a hardware trace of 24 bytes was recorded too";
        let [said] = &read.warnings[..] else {
            panic!("{:?}", read.warnings);
        };
        assert!(said.contains(told), "{said}");
    }
}

// ---- chunks -----------------------------------------------------------------------------------

/// Samples of [`large_recording`].
const LARGE: u64 = 2000;

/// Some 16 MB of samples, so that streams are cut and packed and decoded records turn their chunk.
fn large_recording() -> TestRecording {
    let event = TestEvent {
        sample_type: IP | TID | TIME | STACK_USER,
        ..TestEvent::default()
    };
    let mut recording = TestRecording::new(vec![event]);
    for n in 0..LARGE {
        let stack = (0..128).flat_map(|i| [(i * n) as u8; 64]).collect();
        recording.sample(
            0,
            &TestSample {
                stack,
                stack_copied: 8192,
                ..at(5000 - n, n)
            },
        );
        if n % 500 == 0 {
            recording.finished_round();
        }
    }
    recording
}

/// Second pass: every sample of the first is found again through the chunks.
fn second_pass(opened: &Recording<'_>) -> Vec<u64> {
    let mut heads = read(opened).heads;
    heads.sort_by_key(|head| head.pos);
    let chunks = opened.chunks();
    let mut found = vec![];
    let mut heads = heads.into_iter().peekable();
    while let Some((number, bytes)) = chunks.next() {
        while let Some(head) = heads.next_if(|head| head.pos.chunk() == number) {
            let record = &bytes[head.pos.offset()..];
            let size = usize::from(u16::from_le_bytes([record[6], record[7]]));
            let sample = opened.events[0]
                .parse_sample(&record[..size])
                .expect("a good sample");
            assert_eq!(sample.ip, Some(head.ip));
            assert_eq!(sample.user_stack.map(<[u8]>::len), Some(8192));
            found.push(head.ip.0);
        }
    }
    assert_eq!(heads.next(), None, "samples whose chunk did not come");
    found
}

#[test]
fn the_second_pass_finds_every_sample_in_every_form() {
    let recording = large_recording();
    let all: Vec<u64> = (0..LARGE).collect();
    for file in [
        recording.file(),
        recording.compressed_file(50_000, true),
        recording.stream(),
    ] {
        assert_eq!(second_pass(&open(&file).expect("a good header")), all);
    }
    for stream in [recording.stream(), recording.compressed_stream(50_000)] {
        let opened =
            Recording::from_stream(Path::new("-"), Cursor::new(stream)).expect("a good stream");
        assert_eq!(second_pass(&opened), all);
    }
}

#[test]
fn compressed_data_cannot_explode() {
    let mut recording = TestRecording::simple();
    recording.sample(0, &at(1, 0x10));
    // 300 MB of one record, packed into one.
    let packed = over_and_over(&[9, 0, 0, 0, 0, 0, 8, 0], 2400);
    assert!(packed.len() < 60_000, "{}", packed.len());
    recording.record(81, 0, &packed);
    let read = read_file(&recording.file());
    assert_eq!(ips(&read), [0x10]);
    assert!(read.warnings[0].contains("expand"), "{:?}", read.warnings);
}

// ---- records and header -----------------------------------------------------------------------

#[test]
fn an_inode_that_is_marked_as_a_build_id_is_an_inode() {
    let read = |field: &[u8; 24]| {
        let mut record = vec![0; 32];
        record.extend(field);
        record.extend([5, 0, 0, 0, 2, 0, 0, 0]);
        record.extend(b"/lib/x\0\0");
        let mut recording = TestRecording::simple();
        recording.kernel_record(10, 2 | 1 << 14, &record, 8);
        let file = recording.file();
        let mut mapped = None;
        let opened = open(&file).expect("a good header");
        opened.deliver(&Diagnostics::new(), &mut |_| {}, &mut |delivered| {
            if let Delivered::Record {
                record: Record::Mmap(mmap),
                ..
            } = delivered
            {
                mapped = Some((
                    mmap.inode.map(|inode| (inode.major, inode.number)),
                    mmap.build_id.map(|id| id.to_string()),
                ));
            }
        });
        mapped.expect("it is a mapping")
    };
    let inode = |major: u32, minor: u32, number: u64, generation: u64| {
        let mut field = [0; 24];
        field[..4].copy_from_slice(&major.to_le_bytes());
        field[4..8].copy_from_slice(&minor.to_le_bytes());
        field[8..16].copy_from_slice(&number.to_le_bytes());
        field[16..].copy_from_slice(&generation.to_le_bytes());
        field
    };
    // As a kernel 6.18 wrote them, beside a recording that asked for build IDs; SCSI, NVMe, a RAID, overlayfs.
    for (major, minor, number, generation) in [
        (254, 0, 0x58_0549, 0xad8b_2668),
        (254, 0, 0x4_f8d3, 0),
        (8, 1, 4242, 0),
        (8, 17, 4242, 77),
        (259, 3, 4242, 0),
        (9, 127, 4242, 0),
        (0, 45, 4242, 0),
    ] {
        let told = read(&inode(major, minor, number, generation));
        assert_eq!(told, (Some((major, number)), None));
    }
    for len in [8_u8, 16, 20] {
        let mut field = [0; 24];
        field[0] = len;
        field[4..4 + usize::from(len)].fill(0xab);
        let told = read(&field);
        assert_eq!(told, (None, Some("ab".repeat(usize::from(len)))));
    }
}

#[test]
fn records_are_parsed_with_their_flags() {
    let mut recording = TestRecording::simple();
    recording.mmap2(7, 0x1000, 0x2000, 0x3000, "/bin/prog", 5);
    recording
        .comm(7, 8, "prog", 6)
        .task(7, 1 << 13, [9, 7, 10, 8], 7);
    let mut with_build_id = vec![0; 32];
    with_build_id.extend([8, 0, 0, 0]);
    with_build_id.extend([0xab; 8]);
    with_build_id.extend([0; 12]);
    with_build_id.extend([4, 0, 0, 0, 2, 0, 0, 0]);
    with_build_id.extend(b"/lib/x\0\0");
    recording.kernel_record(10, 2 | 1 << 14, &with_build_id, 8);
    let file = recording.file();
    let opened = open(&file).expect("a good header");
    let mut texts = vec![];
    opened.deliver(&Diagnostics::new(), &mut |_| {}, &mut |delivered| {
        if let Delivered::Record { record, time, .. } = delivered {
            texts.push((time.0, format!("{record:?}")));
        }
    });
    let has = |n: usize, time: u64, parts: &[&str]| {
        assert_eq!(texts[n].0, time);
        parts
            .iter()
            .for_each(|part| assert!(texts[n].1.contains(part), "{part}: {}", texts[n].1));
    };
    has(
        0,
        5,
        &[
            "start: Avma(0x1000)",
            "len: 8192",
            "pgoff: 12288",
            "number: 4242",
            "executable: true",
            "build_id: None",
        ],
    );
    has(1, 6, &["comm: [112, 114, 111, 103]", "exec: false"]);
    has(
        2,
        7,
        &["pid: 9, ppid: 7, tid: 10, ptid: 8, synthesized: true"],
    );
    has(3, 8, &["inode: None", "BuildId(abababababababab)"]);
}

#[test]
fn losses_are_counted() {
    let mut recording = TestRecording::simple();
    let lost = |n: u64| [7u64.to_le_bytes(), n.to_le_bytes()].concat();
    recording
        .kernel_record(2, 0, &lost(3), 1)
        .kernel_record(2, 0, &lost(4), 2);
    recording.kernel_record(13, 0, &5u64.to_le_bytes(), 3);
    recording.kernel_record(13, 1 << 15, &6u64.to_le_bytes(), 4);
    recording.kernel_record(5, 0, &[0; 24], 5);
    let stats = read_file(&recording.file()).stats;
    assert_eq!((stats.lost_events, stats.lost_chunks), (7, 2));
    // One loss, told twice.
    assert_eq!((stats.lost(), stats.lost_of(|_| true)), (7, 5));
    assert_eq!(
        (stats.lost_samples, stats.lost_samples_bpf, stats.throttled),
        (vec![5].into(), 6, 1)
    );
}

#[test]
fn losses_of_old_kernels_are_losses() {
    let mut recording = TestRecording::simple();
    let lost = |n: u64| [7u64.to_le_bytes(), n.to_le_bytes()].concat();
    recording.kernel_record(2, 0, &lost(400), 1);
    let stats = read_file(&recording.file()).stats;
    assert_eq!((stats.lost(), stats.lost_of(|_| true)), (400, 400));
}

#[test]
fn the_header_prints_as_perf_prints_it() {
    let mut recording = TestRecording::new(vec![TestEvent {
        name: "cpu-clock:u",
        ids: vec![5, 6],
        ..TestEvent::default()
    }]);
    recording.feature(3, feature_string("box"));
    recording.feature(7, [4u32.to_le_bytes(), 2u32.to_le_bytes()].concat());
    let cmdline = [
        2u32.to_le_bytes().to_vec(),
        feature_string("perf"),
        feature_string("it's"),
    ]
    .concat();
    recording.feature(11, cmdline);
    recording.feature(
        21,
        [
            1_500_000_000u64.to_le_bytes(),
            2_750_001_999u64.to_le_bytes(),
        ]
        .concat(),
    );
    recording.sample(0, &at(1, 1));
    let file = recording.file();
    let lines = open(&file).expect("a good header").header_lines(false);
    let expected = "\
# ========
# captured on    : \n\
# header version : 1
# data offset    : 264
# data size      : 32
# feat offset    : 296
# hostname : box
# nrcpus online : 2
# nrcpus avail : 4
# cmdline : perf it\\'s \n\
# event : name = cpu-clock:u, , id = { 5, 6 }, type = 1, size = 128, { sample_period, sample_freq } = 1000, sample_type = IP|TID|TIME, sample_id_all = 1
# time of first sample : 1.500000
# time of last sample : 2.750001
# sample duration :   1250.002 ms
# missing features: TRACING_DATA BUILD_ID OSRELEASE VERSION ARCH CPUDESC CPUID TOTAL_MEM CPU_TOPOLOGY NUMA_TOPOLOGY BRANCH_STACK PMU_MAPPINGS GROUP_DESC AUXTRACE STAT CACHE MEM_TOPOLOGY CLOCKID DIR_FORMAT BPF_PROG_INFO BPF_BTF COMPRESSED CPU_PMU_CAPS CLOCK_DATA HYBRID_TOPOLOGY PMU_CAPS \n\
# ========
#";
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn unnamed_events_get_perfs_names() {
    let name = |type_, config, flags| {
        let event = TestEvent {
            type_,
            config,
            flags: flags | SAMPLE_ID_ALL,
            ..TestEvent::default()
        };
        let file = TestRecording::new(vec![event]).file();
        open(&file).expect("a good header").events[0].name.clone()
    };
    assert_eq!(name(1, 0, 0), "cpu-clock");
    assert_eq!(name(1, 0, 3 << 15), "cpu-clock:ppp");
    assert_eq!(name(0, 0, 1 << 5 | 1 << 6), "cycles:u");
    assert_eq!(name(0, 1, 1 << 4 | 1 << 6 | 1 << 15), "instructions:kp");
    assert_eq!(name(3, 0x1_0000, 0), "L1-dcache-load-misses");
    assert_eq!(name(3, 0x0102, 0), "LLC-stores");
    assert_eq!(name(2, 99, 0), "unknown:99");
    assert_eq!(name(1, 99, 0), "unknown-software");
}

/// `perf record --threads`: the folder's files are one recording, in the order of times and not of files.
#[test]
fn the_files_of_a_folder_are_one_recording() {
    let mut main = TestRecording::simple();
    main.comm(7, 7, "x", 0)
        .feature(24, 1u64.to_le_bytes().to_vec());
    let piece = |times: &[u64]| {
        let mut piece = TestRecording::simple();
        for &time in times {
            let sample = TestSample {
                pid: 7,
                tid: 7,
                time,
                ..TestSample::default()
            };
            piece.sample(0, &sample).finished_round();
        }
        let file = piece.file();
        let size = u64::from_le_bytes(file[48..56].try_into().expect("eight bytes"));
        let start = piece.data_offset();
        file[start..start + size as usize].to_vec()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    };
    put("data", &main.file());
    put("data.0", &piece(&[10, 40, 70, 90]));
    put("data.1", &piece(&[20, 30, 80]));
    put("data.2", &piece(&[5]));
    put("notes", b"no part of it");
    let (store, diag) = (Store::new(), Diagnostics::new());
    let recording = Recording::open(folder.path(), &store, &diag).expect("a recording");
    let mut times = Vec::new();
    recording.deliver(&diag, &mut |_| {}, &mut |delivered| {
        if let Delivered::Sample(head) = delivered {
            times.push(head.time.0);
        }
    });
    assert_eq!(times, [5, 10, 20, 30, 40, 70, 80, 90]);
    let damage = || {
        let recording = Recording::open(folder.path(), &store, &diag).expect("a recording");
        let stats = recording.deliver(&diag, &mut |_| {}, &mut |_| {});
        stats.damage
    };
    assert_eq!(damage(), None);
    // Where the last of several is whole, another one may be cut.
    let whole = piece(&[10, 40, 70, 90]);
    put("data.0", &whole[..whole.len() - 1]);
    assert_eq!(damage(), Some(Damage::EndCut));
    put("data.0", &whole);
    std::fs::remove_file(folder.path().join("data.1")).expect("removed");
    assert_eq!(damage(), Some(Damage::FileMissing(1)));
}

/// `perf record --threads -z` packs each file of the folder by itself, and ends no frame. One that is damaged costs no other.
#[test]
fn each_file_of_a_folder_is_packed_by_itself() {
    let packed = |times: &[u64]| {
        let mut plain = TestRecording::simple();
        for &time in times {
            let sample = TestSample {
                time,
                ..TestSample::default()
            };
            plain.sample(0, &sample).finished_round();
        }
        // A block that is not the last of its frame.
        let mut payload = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x48];
        payload.extend(&((plain.data.len() as u32) << 3).to_le_bytes()[..3]);
        payload.extend(&plain.data);
        let mut file = TestRecording::default();
        file.record(81, 0, &payload);
        file.data
    };
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    };
    let mut main = TestRecording::simple();
    main.comm(7, 7, "x", 0)
        .feature(24, 1u64.to_le_bytes().to_vec());
    let size_of_buffer = [1u32, 1, 1, 8, 1 << 20].map(u32::to_le_bytes).concat();
    main.feature(27, size_of_buffer);
    put("data", &main.file());
    put("data.0", &packed(&[10, 40, 70]));
    let mut damaged = packed(&[20, 30]);
    damaged[8] = 0;
    put("data.1", &damaged);
    put("data.2", &packed(&[5, 60]));
    let (store, diag) = (Store::new(), Diagnostics::new());
    let recording = Recording::open(folder.path(), &store, &diag).expect("a recording");
    let mut times = Vec::new();
    recording.deliver(&diag, &mut |_| {}, &mut |delivered| {
        if let Delivered::Sample(head) = delivered {
            times.push((head.time.0, head.pos));
        }
    });
    let said = diag.warnings();
    assert!(
        matches!(&said[..], [one] if one.contains("damaged")),
        "{said:?}"
    );
    assert_eq!(
        times.iter().map(|t| t.0).collect::<Vec<_>>(),
        [5, 10, 40, 60, 70]
    );

    // The second pass finds each where the first one saw it.
    let chunks = recording.chunks();
    let again: Vec<_> = std::iter::from_fn(|| chunks.next()).collect();
    for (time, pos) in times {
        let (_, chunk) = again
            .iter()
            .find(|(number, _)| *number == pos.chunk())
            .expect("there");
        let record = &chunk[pos.offset()..];
        assert!(
            record
                .windows(8)
                .take(40)
                .any(|word| word == time.to_le_bytes())
        );
    }
}

#[test]
fn a_processors_trace_is_counted_and_left_out() {
    let mut recording = TestRecording::simple();
    recording.record(70, 0, &[1_u32.to_le_bytes(), [0; 4]].concat());
    // Its size, then what is of no use here; the trace follows outside of the record, here another record of 16 bytes.
    let mut trace = 16_u64.to_le_bytes().to_vec();
    trace.resize(40, 0);
    recording.record(71, 0, &trace);
    recording.record(9, 0, &[0xff; 8]);
    recording.sample(0, &at(2, 0x20));
    let expected = Some(Trace { sort: 1, bytes: 16 });
    for read in [
        read_file(&recording.file()),
        read_stream(recording.stream()),
    ] {
        assert_eq!((read.stats.trace, read.heads.len()), (expected, 1));
    }
}

#[test]
fn simpleperf_has_tracepoint_formats_in_the_record_itself() {
    let mut recording = TestRecording::simple();
    let mut formats = 21_u32.to_le_bytes().to_vec();
    formats.resize(4 + 24, b'x');
    recording.record(66, 0, &formats);
    recording.record(32770, 0, &[0; 8]);
    recording.sample(0, &at(2, 0x20));
    recording.feature(128, vec![0; 16]);
    let read = read_file(&recording.file());
    assert_eq!((read.stats.damage, read.heads.len()), (None, 1));
    let said = read.warnings.join("\n");
    assert!(
        said.contains("recorded by simpleperf; its symbols are not read"),
        "{said}"
    );
    assert!(!said.contains("unknown types"), "{said}");
}
