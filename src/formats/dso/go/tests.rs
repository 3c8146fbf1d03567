//! Tables as each version writes them, and tables that were spoilt.

use super::*;
use proptest::prelude::*;

/// Where the table lies in the program's memory; what comes before is empty.
const AT: u64 = 0x1000;
const TEXT: u64 = 0x40_0000;
/// Sizes of `main.main` and `runtime.goexit`.
const SIZES: [u64; 2] = [0x40, 0x10];
const FILES: [&str; 2] = ["/src/main.go", "/src/inlined.go"];
/// (value, bytes of code) runs for the stack height of `main.main`.
const HEIGHTS: [(i32, u32); 3] = [(0, 4), (24, 0x38), (0, 4)];

/// A table of (value, length) runs.
fn values(runs: &[(i32, u32)], quantum: u32) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), -1);
    let mut put = |mut n: u32| {
        while n >= 0x80 {
            bytes.push((n & 0x7f) as u8 | 0x80);
            n >>= 7;
        }
        bytes.push(n as u8);
    };
    for &(value, len) in runs {
        let delta: i32 = value - last;
        put(((delta << 1) ^ (delta >> 31)).cast_unsigned());
        put(len / quantum);
        last = value;
    }
    bytes.push(0);
    bytes
}

/// Bytes to which parts are added, each at a known place.
#[derive(Default)]
struct Parts(Vec<u8>);

impl Parts {
    fn add(&mut self, bytes: &[u8]) -> u32 {
        let at = u32::try_from(self.0.len()).expect("small");
        self.0.extend_from_slice(bytes);
        at
    }

    fn text(&mut self, text: &str) -> u32 {
        let at = self.add(text.as_bytes());
        self.0.push(0);
        at
    }
}

/// A program's memory with a table at [`AT`], as Go of that version writes it.
fn memory(version: Version) -> Vec<u8> {
    memory_with(version, TEXT, "runtime.goexit")
}

/// A table for code at `text`: `main.main` with 0x40 bytes and a frame of 24 bytes, and another function behind it.
pub(crate) fn table_for(text: u64, other: &str) -> Vec<u8> {
    memory_with(Version::Go1_2, text, other).split_off(0x1000)
}

fn memory_with(version: Version, text: u64, other: &str) -> Vec<u8> {
    let new = version >= Version::Go1_18;
    let mut image = vec![0; AT as usize];
    // Lists of inlined calls: two, each with one call that is at offset 0x10 of its function.
    let (size, name_at, caller_at) = if version == Version::Go1_20 {
        (16, 4, 8)
    } else {
        (20, 12, 16)
    };
    // The first byte of the strings, of the files and of the values stands for nothing.
    let mut names = Parts(vec![0]);
    let own = ["main.main", other].map(|name| names.text(name));
    let inlined = names.text("main.inlined");
    let mut files = Parts(vec![0]);
    let paths = FILES.map(|file| files.text(file));
    let mut tables = Parts(vec![0]);
    let heights = tables.add(&values(&HEIGHTS, 1));
    let numbers = tables.add(&values(&[(0, 0x20), (1, 8), (0, 0x18)], 1));
    let lines = tables.add(&values(&[(10, 0x20), (99, 8), (11, 0x18)], 1));
    let calls = tables.add(&values(&[(-1, 0x20), (0, 8), (-1, 0x18)], 1));

    let header = if new { 72 } else { 64 };
    let pointer = |n: u64| n.to_le_bytes().to_vec();
    let mut list = vec![0; size];
    // In Go 1.2 tables all positions count from the table's beginning; see below.
    list[caller_at..caller_at + 4].copy_from_slice(&0x10u32.to_le_bytes());

    let describe = |index: usize, shift: u32, list_at: u64| {
        let start = text + index as u64 * SIZES[0];
        let mut d: Vec<u8> = if new {
            u32::try_from(start - text)
                .expect("small")
                .to_le_bytes()
                .to_vec()
        } else {
            pointer(start)
        };
        let table = |at: u32| at + shift;
        for n in [
            own[index] + shift,
            0,
            0,
            table(heights),
            table(numbers),
            table(lines),
            3,
        ] {
            d.extend_from_slice(&n.to_le_bytes());
        }
        if version > Version::Go1_2 {
            d.extend_from_slice(&0u32.to_le_bytes()); // unit
        }
        if version == Version::Go1_20 {
            d.extend_from_slice(&9u32.to_le_bytes()); // first line
        }
        let (values, data) = (2usize, if version == Version::Go1_2 { 4usize } else { 3 });
        d.extend_from_slice(&[0, 0, 0, u8::try_from(data + 1).expect("small")]);
        for n in 0..=values {
            let value = if n == values { table(calls) } else { 0 };
            d.extend_from_slice(&value.to_le_bytes());
        }
        if !new {
            d.resize(d.len().next_multiple_of(8), 0);
        }
        for n in 0..=data {
            let is_list = n == data;
            match (new, is_list) {
                (true, true) => {
                    d.extend_from_slice(&u32::try_from(list_at).expect("small").to_le_bytes())
                }
                (true, false) => d.extend_from_slice(&u32::MAX.to_le_bytes()),
                (false, true) => d.extend(pointer(list_at)),
                (false, false) => d.extend(pointer(0)),
            }
        }
        d.resize(d.len().next_multiple_of(8), 0);
        d
    };
    let mut table = vec![0u8; header];
    let magic: u32 = match version {
        Version::Go1_2 => 0xffff_fffb,
        Version::Go1_16 => 0xffff_fffa,
        Version::Go1_18 => 0xffff_fff0,
        Version::Go1_20 => 0xffff_fff1,
    };
    table[..4].copy_from_slice(&magic.to_le_bytes());
    table[6..8].copy_from_slice(&[1, 8]);
    let width = if new { 4 } else { 8 };
    let functions_len = 5 * width;
    // The list of calls comes first in memory, so that its address is known.
    let list_at = 0x100;
    let functions = |descriptions: [u64; 2], base: u64| {
        let mut bytes = Vec::new();
        let starts = [base, base + SIZES[0], base + SIZES[0] + SIZES[1]];
        for number in [
            starts[0],
            descriptions[0],
            starts[1],
            descriptions[1],
            starts[2],
        ] {
            bytes.extend_from_slice(&number.to_le_bytes()[..width]);
        }
        bytes
    };
    if version == Version::Go1_2 {
        // All in one: number of functions, functions, place of the files' table, then everything else.
        table.truncate(8);
        table.extend(pointer(2));
        let begin = table.len() + functions_len + 4;
        let shift = u32::try_from(begin).expect("small");
        let strings = shift + u32::try_from(names.0.len()).expect("small");
        let values_at = strings + u32::try_from(files.0.len()).expect("small");
        let mut rest = [names.0.clone(), files.0.clone(), tables.0.clone()].concat();
        let unpadded = begin + rest.len();
        rest.resize(rest.len() + unpadded.next_multiple_of(8) - unpadded, 0);
        let file_table = shift + u32::try_from(rest.len()).expect("small");
        for n in paths {
            rest.extend((n + strings).to_le_bytes());
        }
        let mut places = [0; 2];
        for (index, place) in places.iter_mut().enumerate() {
            *place = (begin + rest.len()) as u64;
            // Names count from the table like everything else.
            let mut d = describe(index, values_at, list_at);
            d[8..12].copy_from_slice(&(own[index] + shift).to_le_bytes());
            rest.extend(d);
        }
        list[name_at..name_at + 4].copy_from_slice(&(inlined + shift).to_le_bytes());
        table.extend(functions(places, text));
        table.extend(file_table.to_le_bytes());
        table.extend(rest);
    } else {
        list[name_at..name_at + 4].copy_from_slice(&inlined.to_le_bytes());
        let units: Vec<u8> = paths.iter().flat_map(|n| n.to_le_bytes()).collect();
        let mut words = vec![2, 2];
        if new {
            words.push(0);
        }
        for part in [&names.0, &units, &files.0, &tables.0] {
            words.push(table.len() as u64);
            table.extend_from_slice(part);
            table.resize(table.len().next_multiple_of(8), 0);
        }
        words.push(table.len() as u64);
        let padded = functions_len.next_multiple_of(8);
        let first = describe(0, 0, list_at);
        let places = [padded as u64, (padded + first.len()) as u64];
        let second = describe(1, 0, list_at);
        let mut body = functions(places, if new { 0 } else { text });
        body.resize(padded, 0);
        table.extend([body, first, second].concat());
        for (n, word) in words.iter().enumerate() {
            table[8 + n * 8..16 + n * 8].copy_from_slice(&word.to_le_bytes());
        }
    }
    image[list_at as usize..list_at as usize + list.len()].copy_from_slice(&list);
    let names_at = word(&table, if new { 8 + 24 } else { 8 + 16 });
    image.extend_from_slice(&table);
    if version > Version::Go1_2 {
        // The module: the table, its names, …, first and last address, the text, …, where lists count from.
        let mut module = vec![0u64; 64];
        (module[0], module[1]) = (AT, AT + names_at);
        (module[20], module[21], module[22]) = (text, text + 0x50, text);
        (module[30], module[43]) = (AT * 77, 0);
        image.resize(image.len().next_multiple_of(8), 0);
        image.extend(module.iter().flat_map(|word| word.to_le_bytes()));
    }
    image
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .map_or(0, |b| u64::from_le_bytes(b.try_into().expect("eight")))
}

fn table_of(image: &[u8]) -> Option<GoTable<'_>> {
    let memory = Memory::of_bytes(image);
    let text = TEXT..TEXT + 0x100;
    GoTable::of_bytes(&image[AT as usize..], AT, text, memory)
}

const VERSIONS: [Version; 4] = [
    Version::Go1_2,
    Version::Go1_16,
    Version::Go1_18,
    Version::Go1_20,
];

#[test]
fn functions_have_names_places_and_heights_in_all_versions() {
    for version in VERSIONS {
        let image = memory(version);
        let table = table_of(&image).unwrap_or_else(|| panic!("{version:?}: a table"));
        let found: Vec<_> = table
            .functions()
            .map(|f| (f.name, f.start.0, f.end.0, f.base()))
            .collect();
        let expected = [
            (&b"main.main"[..], TEXT, TEXT + 0x40, None),
            (
                b"runtime.goexit",
                TEXT + 0x40,
                TEXT + 0x50,
                Some(GoBase::Beginning),
            ),
        ];
        assert_eq!(found, expected, "{version:?}");
        let main = table.find(Svma(TEXT + 0x3f)).expect("inside");
        let height = |at| table.stack_height(&main, Svma(TEXT + at));
        assert_eq!(
            [
                height(0),
                height(4),
                height(0x3b),
                height(0x3c),
                height(0x40)
            ],
            [Some(0), Some(24), Some(24), Some(0), None],
            "{version:?}"
        );
        assert!(!main.moves_stack(&table));
        let frame = |at| {
            table
                .frames(&main, Svma(TEXT + at))
                .last()
                .copied()
                .expect("one")
        };
        assert_eq!(
            (frame(0).file, frame(0).line),
            (FILES[0].as_bytes(), 10),
            "{version:?}"
        );
        assert_eq!(frame(0x3f).line, 11, "{version:?}");
        let shown: Vec<_> = table
            .frames(&main, Svma(TEXT + 0x24))
            .into_iter()
            .map(|f| (f.name, f.file, f.line))
            .collect();
        let expected = [
            (&b"main.inlined"[..], FILES[1].as_bytes(), 99),
            (b"main.main", FILES[0].as_bytes(), 10),
        ];
        assert_eq!(shown, expected, "{version:?}");
        assert_eq!(table.find(Svma(TEXT + 0x50)), None);
        assert_eq!(table.find(Svma(TEXT - 1)), None);
    }
}

#[test]
fn spoilt_tables_end_the_answer_and_nothing_else() {
    for version in VERSIONS {
        let image = memory(version);
        for cut in AT as usize..image.len() {
            if let Some(table) = table_of(&image[..cut]) {
                ask_everything(&table);
            }
        }
    }
}

fn ask_everything(table: &GoTable<'_>) {
    for function in table.functions().take(64) {
        for at in [0, 4, 0x20, 0x3f] {
            let at = Svma(function.start.0.wrapping_add(at));
            let _ = (
                table.find(at),
                table.stack_height(&function, at),
                table.frames(&function, at),
            );
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(version in 0..4usize, changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..8)) {
        let mut image = memory(VERSIONS[version]);
        for (at, byte) in changes {
            let at = AT as usize + usize::from(at) % (image.len() - AT as usize);
            image[at] = byte;
        }
        if let Some(table) = table_of(&image) {
            ask_everything(&table);
        }
    }
}
