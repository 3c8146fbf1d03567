//! Tests of the dump reader on dumps written byte by byte.

use super::*;
use crate::jitdump::debug_info::{CodeOfLines, line_at};
use crate::jitdump::testing::{DumpWriter, eh_frame, eh_frame_header};

const START: u64 = 0x7f00_0000_1000;

/// A dump read to its end.
#[derive(Debug, PartialEq, Eq)]
struct JitDump<'a> {
    header: Header,
    loads: Vec<Load<'a>>,
    moves: Vec<Move>,
    counts: Counts,
    cut: Option<Cut>,
    producer: Producer,
}

fn parse(bytes: &[u8]) -> Result<JitDump<'_>, DumpError> {
    let mut reader = Reader::new(bytes)?;
    let (mut loads, mut moves) = (Vec::new(), Vec::new());
    while let Some((_, content)) = reader.step() {
        match content {
            Content::Load(load) => loads.push(load),
            Content::Move(moved) => moves.push(moved),
            _ => {}
        }
    }
    let producer = reader.producer();
    let Reader {
        header,
        counts,
        cut,
        ..
    } = reader;
    Ok(JitDump {
        header,
        loads,
        moves,
        counts,
        cut,
        producer,
    })
}

fn lines_of<'a>(load: &Load<'a>, producer: Producer) -> Vec<(u64, u32, u32, &'a [u8])> {
    let info = load.lines.expect("the load has lines");
    info.lines(&load.of_lines(producer))
        .iter()
        .map(|l| (l.offset, l.line, l.column, l.file))
        .collect()
}

#[test]
fn reads_every_field_in_both_byte_orders() {
    for mut writer in [DumpWriter::new(42, 1000), DumpWriter::big_endian(42, 1000)] {
        writer
            .load(2000, 42, START, 7, b"fib", b"\x90\x90\xc3")
            .moved(3000, 42, START, START + 0x100, 3, 7);
        let dump = parse(&writer.bytes).expect("a dump");
        assert_eq!(
            (dump.header.pid, dump.header.timestamp, dump.header.size),
            (42, 1000, 40)
        );
        let load = &dump.loads[0];
        assert_eq!(
            (load.file_offset, load.time, load.pid, load.index),
            (40, 2000, 42, 7)
        );
        assert_eq!((load.address, load.size), (Avma(START), 3));
        assert_eq!((load.name, load.code), (&b"fib"[..], &b"\x90\x90\xc3"[..]));
        let moved = dump.moves[0];
        assert_eq!((moved.from, moved.to), (Avma(START), Avma(START + 0x100)));
        assert_eq!((moved.time, moved.size, moved.index), (3000, 3, 7));
        assert_eq!(dump.cut, None);
    }
}

#[test]
fn starts_behind_headers_of_any_size() {
    for size in [8, 40, 48, 80, 200] {
        let mut writer = DumpWriter::with_header(false, size, 0, 1, 0, 0);
        writer.load(1, 1, START, 0, b"f", b"\xc3");
        let dump = parse(&writer.bytes).expect("a dump");
        assert_eq!(dump.loads.len(), 1, "header of {size}");
        assert_eq!(dump.producer == Producer::Mono, size == 8);
    }
    // The header claims 64 but the records begin at 40.
    let mut writer = DumpWriter::new(1, 0);
    writer.load(1, 1, START, 0, b"f", b"\xc3");
    writer.bytes[8] = 64;
    assert_eq!(parse(&writer.bytes).expect("a dump").loads.len(), 1);
}

#[test]
fn skips_headers_of_a_second_writer() {
    let mut writer = DumpWriter::new(1, 0);
    writer
        .load(1, 1, START, 0, b"f", b"\xc3")
        .header(40, 0, 1, 5, 0)
        .load(2, 1, START + 16, 0, b"g", b"\xc3");
    let dump = parse(&writer.bytes).expect("a dump");
    assert_eq!(dump.loads.len(), 2);
}

#[test]
fn reads_records_without_a_header() {
    let mut writer = DumpWriter::new(9, 0);
    writer
        .load(1, 9, START, 0, b"f", b"\xc3")
        .load(2, 9, START + 16, 1, b"g", b"\xc3");
    let headless = parse(&writer.bytes[40..]).expect("records");
    assert_eq!(
        (
            headless.loads.len(),
            headless.header.pid,
            headless.header.missing
        ),
        (2, 9, true)
    );
    writer.bytes[..40].fill(0xee);
    assert_eq!(parse(&writer.bytes).expect("records").loads.len(), 2);
}

#[test]
fn refuses_other_files() {
    assert_eq!(parse(b""), Err(DumpError::Empty));
    for bytes in [&b"\x7fELF\x02\x01\x01\0\0\0\0\0"[..], b"abc", &[0; 100]] {
        assert!(matches!(parse(bytes), Err(DumpError::NotADump { .. })));
    }
}

#[test]
fn takes_the_code_address_and_falls_back_on_vma() {
    let mut writer = DumpWriter::new(1, 0);
    writer
        .load_with(1, 1, 0, START, 1, 0, b"llvm", b"\xc3")
        .load_with(1, 1, START + 16, 0, 1, 0, b"vma only", b"\xc3");
    let dump = parse(&writer.bytes).expect("a dump");
    assert_eq!(dump.loads[0].address, Avma(START));
    assert_eq!(dump.loads[1].address, Avma(START + 16));
    assert_eq!(dump.producer, Producer::Llvm);
}

#[test]
fn code_is_the_end_of_the_record() {
    let mut writer = DumpWriter::new(1, 0);
    // Padding between name and code.
    writer.load_with(1, 1, START, START, 2, 0, b"f", b"\0\0\0\x90\xc3");
    // No code bytes at all, as HotSpot writes it.
    writer.load_with(2, 1, START + 16, START + 16, 100, 1, b"stub", b"");
    // A NUL in the code, none behind the name.
    writer.record(
        0,
        3,
        &[
            [0; 8].as_slice(),
            &[0; 8],
            &START.to_le_bytes(),
            &3_u64.to_le_bytes(),
            &[0; 8],
            b"ab\x90\0\xc3",
        ]
        .concat(),
    );
    let dump = parse(&writer.bytes).expect("a dump");
    let got: Vec<_> = dump
        .loads
        .iter()
        .map(|l| (l.name, l.code, l.size))
        .collect();
    assert_eq!(
        got,
        [
            (&b"f"[..], &b"\x90\xc3"[..], 2),
            (b"stub", b"", 100),
            (b"ab", b"\x90\0\xc3", 3)
        ]
    );
}

#[test]
fn keeps_a_last_load_whose_name_is_whole() {
    let mut writer = DumpWriter::new(1, 0);
    writer.load(1, 1, START, 0, b"first", b"\x90\xc3");
    let begin = writer.bytes.len();
    writer.load(2, 1, START + 16, 1, b"second", b"\x90\x90\x90\xc3");
    for length in begin..writer.bytes.len() {
        let dump = parse(&writer.bytes[..length]).expect("a dump");
        let name_is_whole = length >= begin + LOAD_SIZE + b"second\0".len();
        assert_eq!(
            dump.loads.len(),
            1 + usize::from(name_is_whole),
            "cut at {length}"
        );
        assert_eq!(dump.cut.is_some(), length > begin);
        if name_is_whole {
            assert_eq!(dump.loads[1].code.len(), length - begin - LOAD_SIZE - 7);
            assert_eq!(dump.loads[1].size, 4);
        }
    }
}

#[test]
fn goes_on_behind_close_and_unknown_records_and_ends_at_a_senseless_size() {
    let mut writer = DumpWriter::new(1, 0);
    writer
        .load(1, 1, START, 0, b"f", b"\xc3")
        .close(2)
        .record(77, 2, b"what")
        .load(3, 1, START + 16, 1, b"g", b"\xc3");
    let end = writer.bytes.len();
    writer.bytes.extend_from_slice(&[0; 16]);
    writer.load(4, 1, START + 32, 2, b"h", b"\xc3");
    let dump = parse(&writer.bytes).expect("a dump");
    assert_eq!(
        (dump.loads.len(), dump.counts.closes, dump.counts.unknown),
        (2, 1, 1)
    );
    let cut = dump.cut.expect("it was cut");
    assert_eq!((cut.offset, cut.reason), (end as u64, CutReason::TooSmall));
}

#[test]
fn impossible_sizes_are_counted_not_believed() {
    let mut writer = DumpWriter::new(1, 0);
    writer
        .load_with(1, 1, START, START, u64::MAX, 0, b"huge", b"")
        .record(0, 1, b"short")
        .record(1, 1, b"short");
    writer.load(2, 1, START, 1, b"f", b"\xc3");
    let dump = parse(&writer.bytes).expect("a dump");
    assert_eq!(
        (dump.loads.len(), dump.moves.len(), dump.counts.malformed),
        (1, 0, 3)
    );
}

#[test]
fn debug_info_goes_to_the_load_at_its_address() {
    let mut writer = DumpWriter::new(1, 0);
    // As LLVM's ORC plugin writes: all lines, then all loads.
    writer
        .debug_info(START, &[(START, 1, 0, b"a.c")], 0)
        .debug_info(START + 16, &[(START + 16, 2, 0, b"b.c")], 4);
    writer
        .load(1, 1, START + 16, 0, b"b", b"\x90\xc3")
        .load(1, 1, START, 1, b"a", b"\x90\xc3");
    writer.load(1, 1, START, 2, b"again", b"\x90\xc3");
    writer.debug_info(START + 64, &[], 0);
    let dump = parse(&writer.bytes).expect("a dump");
    assert_eq!(
        lines_of(&dump.loads[0], Producer::Unknown),
        [(0, 2, 0, &b"b.c"[..])]
    );
    assert_eq!(
        lines_of(&dump.loads[1], Producer::Unknown),
        [(0, 1, 0, &b"a.c"[..])]
    );
    assert!(dump.loads[2].lines.is_none());
    assert_eq!(dump.counts.debug_infos, 3);
}

#[test]
fn lines_are_repaired_as_their_writer_demands() {
    let shifted: &[(u64, u32, u32, &[u8])] = &[
        (START + 0x40, 3, 9, b"/x/a.js"),
        (START + 0x48, 4, 1, b"\xff"),
        (START + 0x4f, 0, 0, b""),
    ];
    let before_start: &[(u64, u32, u32, &[u8])] = &[
        (START - 0x32, 10, 0, b"m.erl"),
        (START + 4, 11, 0, b"m.erl"),
    ];
    let mut writer = DumpWriter::new(1, 0);
    writer
        .debug_info(START, shifted, 3)
        .load(1, 1, START, 0, b"JS:^f /x/a.js:3:9", &[0x90; 16]);
    writer
        .debug_info(START, before_start, 0)
        .load(2, 1, START, 1, b"m:f/1", &[0x90; 16]);
    let dump = parse(&writer.bytes).expect("a dump");
    let expected: &[(u64, u32, u32, &[u8])] = &[
        (0, 3, 9, b"/x/a.js"),
        (8, 4, 1, b"/x/a.js"),
        (15, 0, 0, b""),
    ];
    assert_eq!(lines_of(&dump.loads[0], Producer::V8), expected);
    // Entries behind the end of the code give the shift away without knowing the writer.
    assert_eq!(lines_of(&dump.loads[0], Producer::Unknown), expected);
    assert_eq!(
        lines_of(&dump.loads[1], Producer::Beam),
        [(0, 10, 0, &b"m.erl"[..]), (4, 11, 0, b"m.erl")]
    );
    let code = CodeOfLines {
        address: Avma(START),
        size: 16,
        name: b"",
        producer: Producer::V8,
    };
    let lines = dump.loads[0].lines.expect("lines").lines(&code);
    let at = |offset| line_at(&lines, offset).map(|l| l.line);
    assert_eq!(
        [at(0), at(7), at(8), at(14), at(15), at(99)],
        [Some(3), Some(3), Some(4), Some(4), None, None]
    );
}

#[test]
fn names_out_of_freed_memory_are_recovered_from_the_load() {
    let path = b"/home/me/my project/src/index.js";
    let mut garbage = path.to_vec();
    garbage[..16].copy_from_slice(b"\xff\xd5\x01\0\0\0\0\0\x12\x34\x56\x78\0\0\0\0");
    let entries: Vec<(u64, u32, u32, &[u8])> = (0..5)
        .map(|i| (START + 0x40 + i, 10 + i as u32, 1, garbage.as_slice()))
        .collect();
    let mut writer = DumpWriter::new(1, 0);
    writer.debug_info(START, &entries, 5);
    writer.load(
        1,
        1,
        START,
        0,
        b"JS:*get it /home/me/my project/src/index.js:10:1",
        &[0x90; 64],
    );
    // The same bytes, but the load is named after another file: lines without a file.
    writer.debug_info(START, &entries, 0).load(
        2,
        1,
        START,
        1,
        b"JS:*f /elsewhere.js:10:1",
        &[0x90; 64],
    );
    let dump = parse(&writer.bytes).expect("a dump");
    let lines = lines_of(&dump.loads[0], Producer::V8);
    assert_eq!(lines.len(), 5);
    assert!(
        lines
            .iter()
            .enumerate()
            .all(|(i, line)| *line == (i as u64, 10 + i as u32, 1, &path[..]))
    );
    let lines = lines_of(&dump.loads[1], Producer::V8);
    assert_eq!((lines.len(), lines[4]), (5, (4, 14, 1, &b""[..])));
}

#[test]
fn a_hostile_line_count_gives_no_lines() {
    let mut writer = DumpWriter::new(1, 0);
    writer.debug_info(START, &[(START, 1, 1, b"a")], 0);
    let count_at = 40 + 24;
    writer.bytes[count_at..count_at + 8].fill(0xff);
    writer.load(1, 1, START, 0, b"f", b"\xc3");
    let dump = parse(&writer.bytes).expect("a dump");
    assert_eq!(lines_of(&dump.loads[0], Producer::Unknown), []);
}

#[test]
fn unwinding_in_both_layouts_finds_its_address() {
    let size = 13_u64;
    let distance = size.next_multiple_of(8);
    let (frame, header) = (eh_frame(distance, size as u32), eh_frame_header(1));
    let frame_first = [frame.as_slice(), &header].concat();
    let mut writer = DumpWriter::new(1, 0);
    writer
        .unwinding(20, 80, &frame_first)
        .load(1, 1, START, 0, b"py::f:x", &[0x90; 13]);
    // Header first, with the absolute address of the frames.
    let base = START + 0x2000;
    let absolute = [&[1, 0x0c, 0xff, 0xff][..], &base.to_le_bytes()].concat();
    let header_first = [absolute.as_slice(), &eh_frame(0x1000, 64)].concat();
    writer.unwinding(12, 0, &header_first);
    writer
        .load(2, 1, START + 0x1000, 1, b"covered", &[0x90; 32])
        .load(3, 1, START + 0x1020, 2, b"too", &[0x90; 32]);
    writer.load(4, 1, START + 0x1040, 3, b"not", &[0x90; 32]);
    let dump = parse(&writer.bytes).expect("a dump");
    let resolved = |i: usize| {
        let load = &dump.loads[i];
        load.unwinding
            .and_then(|u| u.resolve(load.address, load.size))
            .map(|at| at.base.0)
    };
    assert_eq!(resolved(0), Some(START + distance));
    assert_eq!(
        [resolved(1), resolved(2), resolved(3)],
        [Some(base), Some(base), None]
    );
    assert!(dump.loads[3].unwinding.is_none());
}

#[test]
fn unwinding_that_fits_nowhere_is_rejected_and_an_odd_distance_is_found() {
    let mut writer = DumpWriter::new(1, 0);
    // Written for other code: longer than this one.
    writer.unwinding(20, 0, &[eh_frame(16, 4000), eh_frame_header(1)].concat());
    writer.load(1, 1, START, 0, b"f", &[0x90; 13]);
    // Laid out 0x1234 behind its code.
    writer.unwinding(20, 0, &[eh_frame(0x1234, 13), eh_frame_header(1)].concat());
    writer.load(2, 1, START, 1, b"g", &[0x90; 13]);
    let dump = parse(&writer.bytes).expect("a dump");
    let base = |i: usize| {
        let load = &dump.loads[i];
        load.unwinding
            .expect("a record")
            .resolve(load.address, load.size)
            .map(|at| at.base.0)
    };
    assert_eq!((base(0), base(1)), (None, Some(START + 0x1234)));
}

#[test]
fn v8_frames_are_made_readable() {
    // As V8 writes it for 13 bytes of code: `zLR` and an omitted pointer.
    let mut frame = vec![
        0x18, 0, 0, 0, 0, 0, 0, 0, 3, b'z', b'L', b'R', 0, 1, 0x78, 16, 2, 0xff, 0x1b, 12, 7, 8,
        0x90, 1, 0, 0, 0, 0,
    ];
    frame.extend_from_slice(&[0x10, 0, 0, 0, 0x20, 0, 0, 0]);
    frame.extend_from_slice(&(-(16 + 36_i32)).to_le_bytes());
    frame.extend_from_slice(&[13, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend_from_slice(&[0; 4]);
    let mut writer = DumpWriter::new(1, 0);
    writer
        .unwinding(20, 0, &[frame, eh_frame_header(1)].concat())
        .load(1, 1, START, 0, b"JS:*f", &[0x90; 13]);
    let dump = parse(&writer.bytes).expect("a dump");
    let load = &dump.loads[0];
    let resolved = load
        .unwinding
        .expect("a record")
        .resolve(load.address, load.size)
        .expect("it fits");
    assert_eq!(resolved.base.0, START + 16);
}

#[test]
fn an_empty_table_asks_for_frame_pointers_once() {
    let mut writer = DumpWriter::new(1, 0);
    writer
        .unwinding(20, 0, &eh_frame_header(0))
        .load(1, 1, START, 0, b"f", b"\xc3")
        .load(2, 1, START + 16, 1, b"g", b"\xc3");
    let dump = parse(&writer.bytes).expect("a dump");
    assert!(dump.loads[0].unwinding.is_some_and(|u| u.is_empty()));
    assert!(dump.loads[1].unwinding.is_none());
}

/// A dump with a bit of everything.
fn varied() -> Vec<u8> {
    let mut writer = DumpWriter::with_header(false, 40, 0xDEAD_BEEF, 7, 1, 0);
    for i in 0..4_u64 {
        let at = START + i * 0x100;
        writer.debug_info(
            at,
            &[(at + 0x40, 1, 1, b"/a.js"), (at + 0x44, 2, 1, b"\xff")],
            1,
        );
        writer.unwinding(20, 0, &[eh_frame(16, 9), eh_frame_header(1)].concat());
        writer.load(i, 7, at, i, b"JS:*f /a.js:1:1", &[0x55; 9]);
    }
    writer.moved(9, 7, START, START + 0x1000, 9, 0).close(10);
    writer.bytes
}

fn exercise(bytes: &[u8]) {
    let Ok(dump) = parse(bytes) else { return };
    assert!(dump.loads.len() + dump.moves.len() <= bytes.len() / PREFIX_SIZE);
    for load in &dump.loads {
        assert!(load.name.len() + load.code.len() <= bytes.len());
        let code = load.of_lines(dump.producer);
        let lines = load.lines.map(|info| info.lines(&code)).unwrap_or_default();
        assert!(lines.len() <= bytes.len() / 17);
        assert!(lines.is_sorted_by_key(|line| line.offset));
        let _ = load
            .unwinding
            .and_then(|u| u.resolve(load.address, load.size));
    }
}

#[test]
fn cut_anywhere_never_loses_whole_records() {
    let bytes = varied();
    let mut before = 0;
    for length in 0..=bytes.len() {
        exercise(&bytes[..length]);
        let loads = parse(&bytes[..length]).map_or(0, |dump| dump.loads.len());
        assert!(loads >= before, "cut at {length}");
        before = loads;
    }
    assert_eq!(before, 4);
}

#[test]
fn any_flipped_byte_does_no_harm() {
    let bytes = varied();
    for at in 0..bytes.len() {
        for value in [0, 0xff, 0x7f, bytes[at] ^ 1, bytes[at] ^ 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            exercise(&damaged);
        }
    }
}
