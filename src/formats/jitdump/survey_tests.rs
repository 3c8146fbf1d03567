//! Tests of what is found out about dumps, on dumps written byte by byte.

use proptest::prelude::*;

use super::lint::{Finding, Grade, HeaderClock, header_clock, lint};
use super::survey::{Odd, Survey, survey};
use super::testing::{DumpWriter, eh_frame, eh_frame_header};
use crate::runtimes::Producer;

const START: u64 = 0x7f00_0000_1000;
/// Within an hour of the times that the tests give their records.
const TIME: u64 = 5_000_000_000_000;

fn surveyed(writer: &DumpWriter) -> Survey {
    survey(&writer.bytes).expect("a dump")
}

fn findings(writer: &DumpWriter) -> Vec<Finding> {
    lint(&surveyed(writer), None)
}

fn texts(writer: &DumpWriter) -> Vec<(Grade, String)> {
    let findings = findings(writer).into_iter();
    findings
        .map(|finding| (finding.grade, finding.text))
        .collect()
}

/// A dump that nothing can be said against.
fn clean() -> DumpWriter {
    let mut writer = DumpWriter::new(7, TIME);
    writer.load(TIME + 1, 7, START, 0, b"f", &[0x90; 16]).load(
        TIME + 2,
        7,
        START + 16,
        1,
        b"g",
        &[0xc3; 16],
    );
    writer
}

#[test]
fn a_clean_dump_has_no_lints() {
    let mut writer = clean();
    writer
        .moved(TIME + 3, 7, START, START + 64, 16, 0)
        .close(TIME + 4);
    assert_eq!(texts(&writer), []);
    let mut big_endian = DumpWriter::big_endian(7, TIME);
    big_endian
        .load(TIME + 1, 7, START, 0, b"f", &[0x90; 16])
        .close(TIME + 4);
    assert_eq!(texts(&big_endian), []);
}

#[test]
fn sizes_that_reach_into_the_next_function_are_told() {
    let told = |step: u64| {
        let mut writer = DumpWriter::new(7, TIME);
        for index in 0..5 {
            let at = START + index * step;
            writer.load(TIME, 7, at, index, b"f", &[0x90; 0x40]);
        }
        writer.close(TIME + 1);
        let found = texts(&writer);
        found
            .iter()
            .any(|text| text.1.contains("4 LOADs by a few bytes"))
    };
    assert_eq!([0x20, 0x38, 0x40].map(told), [false, true, false]);
}

/// What live code a load meets, by looking at all of it.
#[derive(Default, Debug, PartialEq, Eq)]
struct Met {
    repeated: u64,
    replaced: u64,
    overlapping: u64,
}

fn naive(loads: &[(u64, u64, u8)]) -> Met {
    let mut live: Vec<(u64, u64, u8)> = Vec::new();
    let mut met = Met::default();
    for &(start, size, byte) in loads {
        let hit = |&(s, z, _): &(u64, u64, u8)| s < start + size && start < s + z;
        let hits: Vec<_> = live.iter().copied().filter(hit).collect();
        if let [(s, z, b)] = hits[..]
            && (s, z) == (start, size)
        {
            met.repeated += u64::from(b == byte);
            met.replaced += u64::from(b != byte);
        } else {
            met.overlapping += u64::from(!hits.is_empty());
        }
        live.retain(|code| !hit(code));
        live.push((start, size, byte));
    }
    met
}

proptest! {
    #[test]
    fn addresses_used_twice_are_counted_as_a_naive_look_does(
        loads in prop::collection::vec((0_u64..64, 1_u64..12, 0_u8..2), 0..60)
    ) {
        let mut writer = DumpWriter::new(7, TIME);
        for (index, &(start, size, byte)) in (0..).zip(&loads) {
            writer.load(TIME, 7, START + start, index, b"f", &vec![byte; size as usize]);
        }
        let survey = surveyed(&writer);
        let met = Met {
            repeated: survey.count(Odd::Repeated),
            replaced: survey.code.replaced,
            overlapping: survey.code.overlapping,
        };
        prop_assert_eq!(met, naive(&loads));
    }

    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0_usize..300) {
        let mut writer = clean();
        writer.unwinding(20, 0, &eh_frame_header(0));
        writer.debug_info(START + 64, &[(START + 64, 3, 0, b"a")], 0);
        writer.load(TIME + 3, 7, START + 64, 2, b"h", &[0x90; 16]);
        let at = at.min(writer.bytes.len());
        writer.bytes.splice(at.., bytes.iter().copied());
        if let Ok(survey) = survey(&writer.bytes) {
            let _ = lint(&survey, Some(7));
        }
    }
}

#[test]
fn header_clocks_are_told_apart() {
    let clock = |header, first: Option<u64>| {
        let mut writer = DumpWriter::new(7, header);
        if let Some(first) = first {
            writer.load(first, 7, START, 0, b"f", b"\xc3");
        }
        header_clock(&surveyed(&writer))
    };
    assert_eq!(clock(TIME, Some(TIME + 1)), HeaderClock::Records);
    assert_eq!(clock(0, Some(TIME)), HeaderClock::None);
    let micros = 1_795_259_326_317_521;
    assert_eq!(clock(micros, Some(TIME)), HeaderClock::Wall { unit: 1_000 });
    assert_eq!(
        clock(micros * 1000, Some(TIME)),
        HeaderClock::Wall { unit: 1 }
    );
    // Three weeks after boot, nanoseconds look like microseconds since 1970.
    assert_eq!(clock(micros, Some(micros + 1)), HeaderClock::Records);
    // Attached to: hours between header and first record.
    assert_eq!(clock(TIME, Some(TIME * 9)), HeaderClock::Records);
    assert_eq!(clock(TIME * 9, Some(TIME)), HeaderClock::Unknown);
    assert_eq!(clock(TIME, None), HeaderClock::Unknown);
}

#[test]
fn unwinding_that_fits_nothing_is_an_error() {
    let with = |distance, header_first: bool| {
        let mut writer = DumpWriter::new(7, TIME);
        let (frame, header) = (eh_frame(distance, 16), eh_frame_header(1));
        let data = if header_first {
            [header, frame].concat()
        } else {
            [frame, header].concat()
        };
        writer.unwinding(20, 72, &data);
        writer
            .load(TIME + 1, 7, START, 0, b"f", &[0x90; 16])
            .close(TIME);
        writer
    };
    assert_eq!(texts(&with(16, false)), []);
    let first = findings(&with(16, true));
    assert_eq!((first.len(), first[0].grade), (1, Grade::Warning));
    assert!(
        first[0].text.contains(".eh_frame_hdr in front"),
        "{first:?}"
    );
    // One description for more code than there is.
    let mut writer = with(16, false);
    let at = 40 + 40 + 32;
    writer.bytes[at] = 200;
    let misfit = findings(&writer);
    assert_eq!(
        (misfit.len(), misfit[0].grade),
        (1, Grade::Error),
        "{misfit:?}"
    );
}

#[test]
fn what_a_runtime_is_known_for_is_usual() {
    let dump = |names: &[&[u8]]| {
        let mut writer = DumpWriter::new(7, 1_795_259_326_317_521);
        for (index, name) in (0..).zip(names) {
            writer.load(TIME, 7, START + 16 * index, index, name, &[0x90; 16]);
        }
        writer
    };
    let python = dump(&[b"py::f:/a.py", b"py::g:/a.py"]);
    assert_eq!(surveyed(&python).producer, Producer::CPython);
    assert!(findings(&python).iter().all(|finding| finding.usual));
    let nobody = dump(&[b"f", b"g"]);
    assert!(findings(&nobody).iter().all(|finding| !finding.usual));
    assert_eq!(findings(&python).len(), findings(&nobody).len());
}

#[test]
fn descriptions_may_share_a_long_entry() {
    // Each of many descriptions refers to one common entry with a very long augmentation.
    const LONG: usize = 200_000;
    let mut cie = vec![0, 0, 0, 0, 1, b'z'];
    cie.resize(6 + LONG, b'R');
    cie.extend_from_slice(&[0, 1, 0x78, 16]);
    cie.extend_from_slice(&[
        (LONG & 0x7f | 0x80) as u8,
        (LONG >> 7 & 0x7f | 0x80) as u8,
        (LONG >> 14) as u8,
    ]);
    cie.resize(cie.len() + LONG, 0x1b);
    let mut data = (cie.len() as u32).to_le_bytes().to_vec();
    data.extend_from_slice(&cie);
    for _ in 0..20_000 {
        let common = data.len() as u32 + 4;
        data.extend_from_slice(&16_u32.to_le_bytes());
        data.extend_from_slice(&common.to_le_bytes());
        let behind_code = data.len() as i32 + 16;
        data.extend_from_slice(&(-behind_code).to_le_bytes());
        data.extend_from_slice(&[16, 0, 0, 0, 0, 0, 0, 0]);
    }
    let mut writer = DumpWriter::new(7, TIME);
    writer.unwinding(0, 0, &data);
    writer.load(TIME, 7, START, 0, b"f", &[0x90; 16]);
    let started = std::time::Instant::now();
    let survey = surveyed(&writer);
    assert_eq!(
        (survey.unwindings, survey.count(Odd::MisfitUnwinding)),
        (1, 0),
        "all were read"
    );
    assert!(started.elapsed().as_secs() < 5);
}
