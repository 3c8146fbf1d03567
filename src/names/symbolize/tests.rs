//! Inlined functions and lines, on DWARF made for the purpose.

use std::path::Path;
use std::process::Command;

use gimli::write::{
    Address, AttributeValue, DebugInfoRef, Dwarf, EndianVec, LineProgram, LineString, Range,
    RangeList, Sections, Unit, UnitEntryId,
};
use gimli::{Encoding, Format, LineEncoding, LittleEndian, constants as dw};

use super::{Options, Query, Request, Resolution, Site, resolve};
use crate::diagnostics::Diagnostics;
use crate::dso::build_elf::{ElfBuilder, FUNC, PROGBITS};
use crate::dso::{DsoKind, DsoTable};
use crate::find::SearchPaths;
use crate::input::Store;
use crate::needs::Needs;
use crate::skip::skip;
use crate::wasm::WasmCode;

const fn encoding(version: u16) -> Encoding {
    Encoding {
        format: Format::Dwarf32,
        version,
        address_size: 8,
    }
}

fn text(dwarf: &mut Dwarf, text: &str) -> AttributeValue {
    AttributeValue::StringRef(dwarf.strings.add(text))
}

fn place(unit: &mut Unit, entry: UnitEntryId, ranges: &[(u64, u64)]) {
    if let [(start, end)] = ranges {
        let entry = unit.get_mut(entry);
        entry.set(
            dw::DW_AT_low_pc,
            AttributeValue::Address(Address::Constant(*start)),
        );
        entry.set(dw::DW_AT_high_pc, AttributeValue::Udata(end - start));
        return;
    }
    // Before DWARF 5 lists count from the unit's start.
    let early = unit.version() < 5;
    let range = |&(start, end): &(u64, u64)| {
        if early {
            Range::OffsetPair {
                begin: start - 0x2000,
                end: end - 0x2000,
            }
        } else {
            Range::StartEnd {
                begin: Address::Constant(start),
                end: Address::Constant(end),
            }
        }
    };
    let list = RangeList(ranges.iter().map(range).collect());
    let list = unit.ranges.add(list);
    unit.get_mut(entry)
        .set(dw::DW_AT_ranges, AttributeValue::RangeListRef(list));
}

/// `outer` calls `middle` in line 10 (in two pieces), `middle` calls `inner` in line 20; `inner` is declared in
/// another unit. All inlined.
fn program(version: u16) -> Vec<u8> {
    let mut dwarf = Dwarf::default();
    let other = dwarf
        .units
        .add(Unit::new(encoding(version), LineProgram::none()));
    let linkage = text(&mut dwarf, "_ZN5inner3fooEi");
    let unit = dwarf.units.get_mut(other);
    let declared = unit.add(unit.root(), dw::DW_TAG_subprogram);
    unit.get_mut(declared).set(dw::DW_AT_linkage_name, linkage);
    let abstract_inner = unit.add(unit.root(), dw::DW_TAG_subprogram);
    unit.get_mut(abstract_inner)
        .set(dw::DW_AT_specification, AttributeValue::UnitRef(declared));

    let mut lines = LineProgram::new(
        encoding(version),
        LineEncoding::default(),
        LineString::String(b"/src".to_vec()),
        None,
        LineString::String(b"main.c".to_vec()),
        None,
    );
    let directory = lines.default_directory();
    let file = lines.add_file(LineString::String(b"main.c".to_vec()), directory, None);
    lines.begin_sequence(Some(Address::Constant(0x2000)));
    for (offset, line) in [(0, 1), (0x20, 30), (0x30, 21), (0x40, 2)] {
        let row = lines.row();
        (row.address_offset, row.file, row.line) = (offset, file, line);
        lines.generate_row();
    }
    lines.end_sequence(0x100);
    let id = dwarf.units.add(Unit::new(encoding(version), lines));
    let names = ["/src", "middle", "outer"].map(|name| text(&mut dwarf, name));
    let [comp_dir, middle_name, outer_name] = names;
    let unit = dwarf.units.get_mut(id);
    let root = unit.root();
    unit.get_mut(root).set(dw::DW_AT_comp_dir, comp_dir);
    place(unit, root, &[(0x2000, 0x2100)]);
    let abstract_middle = unit.add(root, dw::DW_TAG_subprogram);
    unit.get_mut(abstract_middle)
        .set(dw::DW_AT_name, middle_name);
    let outer = unit.add(root, dw::DW_TAG_subprogram);
    unit.get_mut(outer).set(dw::DW_AT_name, outer_name);
    place(unit, outer, &[(0x2000, 0x2100)]);
    let block = unit.add(outer, dw::DW_TAG_lexical_block);
    let middle = unit.add(block, dw::DW_TAG_inlined_subroutine);
    place(unit, middle, &[(0x2010, 0x2038), (0x2080, 0x2090)]);
    let origin = AttributeValue::UnitRef(abstract_middle);
    call(unit, middle, origin, file, 10);
    let inner = unit.add(middle, dw::DW_TAG_inlined_subroutine);
    place(unit, inner, &[(0x2020, 0x2030)]);
    let origin = AttributeValue::DebugInfoRef(DebugInfoRef::Entry(other, abstract_inner));
    call(unit, inner, origin, file, 20);
    elf_of(&mut dwarf)
}

fn call(
    unit: &mut Unit,
    entry: UnitEntryId,
    origin: AttributeValue,
    file: gimli::write::FileId,
    line: u64,
) {
    let entry = unit.get_mut(entry);
    entry.set(dw::DW_AT_abstract_origin, origin);
    entry.set(dw::DW_AT_call_file, AttributeValue::FileIndex(Some(file)));
    entry.set(dw::DW_AT_call_line, AttributeValue::Udata(line));
}

fn elf_of(dwarf: &mut Dwarf) -> Vec<u8> {
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    dwarf.write(&mut sections).expect("can be written");
    let mut elf = ElfBuilder::new(0x100);
    elf.symbols(".symtab", &[("outer_symbol", 0x2000, 0xf0, FUNC, 1)]);
    let add =
        |id: gimli::SectionId, data: &EndianVec<LittleEndian>| -> Result<(), gimli::write::Error> {
            if !data.slice().is_empty() {
                elf.section(id.name(), PROGBITS, data.slice().to_vec());
            }
            Ok(())
        };
    sections.for_each(add).expect("nothing fails");
    elf.build()
}

/// Resolves file offsets in a program.
fn answers(program: &[u8], addresses: &[u64], threads: usize) -> Resolution {
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("prog"), program).expect("write");
    answers_in(dir.path(), addresses, threads)
}

/// Resolves file offsets in `prog` in a folder.
fn answers_in(dir: &Path, addresses: &[u64], threads: usize) -> Resolution {
    let (store, diag) = (Store::new(), Diagnostics::new());
    let search = SearchPaths {
        symfs: Some(dir.to_owned()),
        ..SearchPaths::default()
    };
    let mut dsos = DsoTable::new(&store, search, &diag);
    let dso = dsos.intern(b"/prog", DsoKind::File, None, None);
    let query = |&address: &u64| Query {
        place: Site::Dso(dso),
        address,
        inlines: true,
        lines: true,
    };
    let queries: Vec<Query> = addresses.iter().map(query).collect();
    let request = Request {
        queries: &queries,
        names: Options::default(),
        needs: Needs::empty(),
        bare: &[],
        threads,
    };
    resolve(request, &dsos, &WasmCode::default())
}

/// `inner main.c:1 < outer main.c:2`, innermost first.
fn shown(answers: &Resolution, index: usize) -> String {
    let answer = &answers.answers[index];
    let line = |line: Option<super::SourceLine>| {
        line.map_or("?".to_owned(), |l| {
            format!("{}:{}", answers.strings[l.file], l.line)
        })
    };
    let mut out = String::new();
    for frame in answer.inlined(answers) {
        out += &format!("{} {} < ", answers.strings[frame.name], line(frame.line));
    }
    let symbol = answer
        .symbol
        .map_or("?", |symbol| &answers.symbols[symbol].name);
    out + &format!("{symbol} {}", line(answer.line))
}

#[test]
fn chains_and_call_sites() {
    for version in [4, 5] {
        let got = answers(
            &program(version),
            &[0x1000, 0x1012, 0x1024, 0x1034, 0x1085, 0x10f8],
            1,
        );
        assert_eq!(shown(&got, 0), "outer_symbol /src/main.c:1");
        assert_eq!(
            shown(&got, 1),
            "middle /src/main.c:1 < outer_symbol /src/main.c:10"
        );
        assert_eq!(
            shown(&got, 2),
            "inner::foo /src/main.c:30 < middle /src/main.c:20 < outer_symbol /src/main.c:10"
        );
        assert_eq!(
            shown(&got, 3),
            "middle /src/main.c:21 < outer_symbol /src/main.c:10"
        );
        assert_eq!(
            shown(&got, 4),
            "middle /src/main.c:2 < outer_symbol /src/main.c:10"
        );
        // No symbol, no inlined functions, as in perf; the line is known all the same.
        assert_eq!(shown(&got, 5), "? /src/main.c:2");
    }
}

/// `work` calls `before` and `after` inline; between them stands a function of its own, as GCC writes regions of
/// OpenMP and nested functions, which calls `inside` inline.
fn nesting() -> Vec<u8> {
    let mut dwarf = Dwarf::default();
    let names = ["before", "inside", "after"].map(|name| text(&mut dwarf, name));
    let id = dwarf.units.add(Unit::new(encoding(5), LineProgram::none()));
    let unit = dwarf.units.get_mut(id);
    let root = unit.root();
    place(unit, root, &[(0x2000, 0x2100)]);
    let [before, inside, after] = names.map(|name| {
        let function = unit.add(root, dw::DW_TAG_subprogram);
        unit.get_mut(function).set(dw::DW_AT_name, name);
        AttributeValue::UnitRef(function)
    });
    let function = |unit: &mut Unit, parent, range| {
        let function = unit.add(parent, dw::DW_TAG_subprogram);
        unit.get_mut(function).set_sibling(true);
        place(unit, function, &[range]);
        function
    };
    let inlined = |unit: &mut Unit, parent, origin, range| {
        let call = unit.add(parent, dw::DW_TAG_inlined_subroutine);
        unit.get_mut(call).set(dw::DW_AT_abstract_origin, origin);
        place(unit, call, &[range]);
    };
    let work = function(unit, root, (0x2000, 0x2080));
    inlined(unit, work, before, (0x2010, 0x2020));
    let region = function(unit, work, (0x2080, 0x20c0));
    inlined(unit, region, inside, (0x2090, 0x20a0));
    inlined(unit, work, after, (0x2030, 0x2040));
    function(unit, root, (0x20c0, 0x20f0));
    elf_of(&mut dwarf)
}

#[test]
fn what_is_inlined_does_not_depend_on_what_else_is_asked() {
    let program = nesting();
    let places = [
        (0x1008, ""),
        (0x1018, "before"),
        (0x1038, "after"),
        (0x1048, ""),
        (0x1088, ""),
        (0x1098, "inside"),
        (0x10d0, ""),
    ];
    for asked in 1..1 << places.len() {
        let asked = places
            .iter()
            .enumerate()
            .filter(|(at, _)| asked >> at & 1 == 1);
        let (addresses, expected): (Vec<u64>, Vec<&str>) = asked.map(|(_, place)| *place).unzip();
        let got = answers(&program, &addresses, 1);
        let inlined = |at: usize| {
            let frames = got.answers[at].inlined(&got);
            let names = frames.iter().map(|frame| got.strings[frame.name].as_str());
            names.collect::<Vec<_>>().join(" ")
        };
        let found: Vec<String> = (0..addresses.len()).map(inlined).collect();
        assert_eq!(found, expected, "{addresses:x?}");
    }
}

#[test]
fn threads_do_not_change_anything() {
    let addresses: Vec<u64> = (0x1000..0x1100).rev().collect();
    let (one, many) = (
        answers(&program(5), &addresses, 1),
        answers(&program(5), &addresses, 5),
    );
    assert_eq!(one.answers, many.answers);
    assert_eq!(one.strings, many.strings);
    assert_eq!(one.symbols, many.symbols);
    assert_eq!(one.inlined, many.inlined);
}

#[test]
fn damaged_dwarf_does_no_harm() {
    let addresses: Vec<u64> = (0x1000..0x1100).step_by(8).collect();
    for version in [4, 5] {
        let good = program(version);
        let mut state = u64::from(version);
        for _ in 0..400 {
            let mut bytes = good.clone();
            for _ in 0..3 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // Behind `.text`, before the section headers.
                let room = bytes.len() - 0x1100 - 64 * 14;
                let at = 0x1100 + usize::try_from(state >> 33).expect("31 bits") % room;
                bytes[at] = u8::try_from(state >> 20 & 0xff).expect("8 bits");
            }
            let _ = answers(&bytes, &addresses, 1);
        }
    }
}

/// A program with functions that are inlined into one another.
const INLINING: &str = "
struct point { long x, y, z; double weight; const char *name; };
struct list { struct point *first, *last; unsigned long count; struct list *next; };
#define INLINE static inline __attribute__((always_inline))
INLINE long sum_of_points(struct list *list, long factor) {
    long sum = 0;
    for (struct point *p = list->first; p != list->last; p++) sum += p->x * p->y + p->z * factor;
    return sum;
}
INLINE long sum_of_lists(struct list *lists, long factor, long limit) {
    long sum = 0;
    for (struct list *l = lists; l && sum < limit; l = l->next) sum += sum_of_points(l, factor);
    return sum;
}
__attribute__((noinline)) long WORK(struct list *lists, long factor) {
    return sum_of_lists(lists, factor, 1000) + sum_of_lists(lists, factor + 1, 2000);
}
int main(int argc, char **argv) { struct list l = {0}; (void)argv; return (int)WORK(&l, argc); }
";

/// Builds `INLINING` twice in a folder, with different names of one function, as `prog` and `other`. `None`
/// where there is no compiler.
fn build_inlining(dir: &Path, flags: &[&str]) -> Option<()> {
    std::fs::write(dir.join("source.c"), INLINING).ok()?;
    for name in ["prog", "other"] {
        let mut compiler = Command::new("gcc");
        compiler
            .args(["-O2", "-g", "source.c", "-o", name])
            .args(flags);
        let define = format!("-DWORK={name}_work");
        let done = compiler.arg(define).current_dir(dir).output().ok()?;
        done.status.success().then_some(())?;
    }
    Some(())
}

/// File offsets of the whole `.text` of `prog`, and what they resolve to.
fn everything_in(dir: &Path) -> Vec<String> {
    let store = Store::new();
    let bytes = std::fs::read(dir.join("prog")).expect("was built");
    let elf = crate::dso::elf::ElfFile::parse(store.keep(bytes), &store).expect("is an ELF file");
    let text = elf.section(".text").expect("has code");
    let start = text.file_offset.0;
    let offsets: Vec<u64> = (start..start + text.data.len() as u64).collect();
    let got = answers_in(dir, &offsets, 2);
    (0..offsets.len()).map(|i| shown(&got, i)).collect()
}

#[test]
fn dwarf_that_dwz_shared_gives_the_same_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    if build_inlining(dir, &[]).is_none() {
        skip("cc", "gcc is needed");
        return;
    }
    let before = everything_in(dir);
    let nested = "sum_of_points ";
    assert!(
        before.iter().any(|chain| chain.starts_with(nested)),
        "{before:?}"
    );
    let mut dwz = Command::new("dwz");
    dwz.args(["-m", "shared.dwz", "-M", "shared.dwz", "prog", "other"]);
    if !dwz
        .current_dir(dir)
        .status()
        .is_ok_and(|status| status.success())
    {
        skip("dwz", "cannot be run");
        return;
    }
    assert!(
        dir.join("shared.dwz").exists(),
        "there is something to share"
    );
    assert_eq!(everything_in(dir), before);
    // Without it nobody knows the names of what is inlined, and `??` would be one function of all.
    std::fs::remove_file(dir.join("shared.dwz")).expect("it can be removed");
    let outermost = |chain: &String| chain.rsplit(" < ").next().map(str::to_owned);
    let without: Vec<_> = everything_in(dir).iter().map(outermost).collect();
    assert_eq!(without, before.iter().map(outermost).collect::<Vec<_>>());
    assert!(
        everything_in(dir)
            .iter()
            .all(|chain| !chain.contains(" < "))
    );
}

#[test]
fn split_dwarf_gives_the_same_functions() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        if build_inlining(dir, &[version]).is_none() {
            skip("cc", "gcc is needed");
            return;
        }
        let before = everything_in(dir);
        build_inlining(dir, &[version, "-gsplit-dwarf"]).expect("as before");
        let splits = || std::fs::read_dir(dir).expect("can be read").flatten();
        let is_split = |path: &Path| path.extension().is_some_and(|e| e == "dwo");
        let files: Vec<_> = splits().map(|e| e.path()).filter(|p| is_split(p)).collect();
        assert!(!files.is_empty(), "the compiler splits");
        assert_eq!(everything_in(dir), before, "{version}");
        let mut dwp = Command::new("dwp");
        dwp.args(["-e", "prog", "-o", "prog.dwp"]).current_dir(dir);
        let packed = dwp.status().is_ok_and(|status| status.success());
        for file in &files {
            std::fs::remove_file(file).expect("it can be removed");
        }
        if packed {
            assert_eq!(everything_in(dir), before, "{version}, packed");
            std::fs::remove_file(dir.join("prog.dwp")).expect("it can be removed");
        } else if version == "-gdwarf-4" {
            // That of binutils packs no DWARF 5.
            skip("dwp", "cannot be run");
        }
        // Without them no inlined functions are known; lines and symbols are.
        let without = everything_in(dir);
        let outermost = |chain: &String| chain.rsplit(" < ").next().map(str::to_owned);
        assert!(without.iter().all(|chain| !chain.contains(" < ")));
        let symbol = |chain: &String| outermost(chain)?.split(' ').next().map(str::to_owned);
        assert!(without.iter().map(symbol).eq(before.iter().map(symbol)));
    }
}

/// A function with `entries` of `flags` attributes without bytes in front of its one inlined call.
fn flagged(entries: usize, flags: u16) -> Vec<u8> {
    let mut dwarf = Dwarf::default();
    let names = ["inlined", "outer"].map(|name| text(&mut dwarf, name));
    let [inlined_name, outer_name] = names;
    let id = dwarf.units.add(Unit::new(encoding(5), LineProgram::none()));
    let unit = dwarf.units.get_mut(id);
    let root = unit.root();
    place(unit, root, &[(0x2000, 0x2100)]);
    let origin = unit.add(root, dw::DW_TAG_subprogram);
    unit.get_mut(origin).set(dw::DW_AT_name, inlined_name);
    let outer = unit.add(root, dw::DW_TAG_subprogram);
    unit.get_mut(outer).set(dw::DW_AT_name, outer_name);
    place(unit, outer, &[(0x2000, 0x2100)]);
    for _ in 0..entries {
        let entry = unit.add(outer, dw::DW_TAG_variable);
        for i in 0..flags {
            unit.get_mut(entry).set(
                gimli::DwAt(dw::DW_AT_lo_user.0 + i),
                AttributeValue::FlagPresent,
            );
        }
    }
    let call = unit.add(outer, dw::DW_TAG_inlined_subroutine);
    place(unit, call, &[(0x2010, 0x2020)]);
    unit.get_mut(call)
        .set(dw::DW_AT_abstract_origin, AttributeValue::UnitRef(origin));
    elf_of(&mut dwarf)
}

/// An entry takes one byte, however many attributes its abbreviation lists: what is read for a unit is limited by its size.
#[test]
fn attributes_without_bytes_are_limited() {
    let first = |program: &[u8]| shown(&answers(program, &[0x1012], 1), 0);
    assert_eq!(first(&flagged(10, 10)), "inlined ? < outer_symbol ?");
    assert_eq!(
        first(&flagged(1, 300)),
        "outer_symbol ?",
        "too many for one"
    );
    assert_eq!(
        first(&flagged(2000, 200)),
        "outer_symbol ?",
        "too many in all"
    );
}

/// Twenty thousand units may refer to one line program.
#[test]
fn line_programs_are_not_run_again_and_again() {
    let store = Store::new();
    let elf = crate::dso::elf::ElfFile::parse(store.keep(program(5)), &store).expect("sound");
    let info = super::DebugStore::default()
        .get(&elf, None, true, Vec::new)
        .expect("it has DWARF")
        .info;
    let length = elf.debug_section(".debug_line").expect("lines").len();
    let runs = (0..1 << 20)
        .take_while(|_| info.may_read_lines(gimli::DebugLineOffset(0)))
        .count();
    assert!(
        (4..=4 + (1 << 20) / (length - 16)).contains(&runs),
        "{runs}"
    );
}

#[test]
fn names_are_whole_until_there_are_too_many_bytes() {
    let long = vec![b'x'; 1 << 20];
    let names = super::run::affordable([&long[..]; 40].into_iter().chain([&b"short"[..]]));
    assert_eq!(names.iter().filter(|n| n.len() == long.len()).count(), 32);
    assert!(names.iter().map(|n| n.len()).sum::<usize>() < 33 << 20);
    assert_eq!(names[40], b"short");
}
