//! Lines and inlined functions of WebAssembly: `samples/wasm`, and what is said where something is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::recording::{Recording, Sample, Stacks};
use crate::support::{folded, perf, pjit, sample, skip, stdout_of};

/// A copy of the sample without the files named.
fn copy(without: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(sample("wasm", ".")).expect("the sample is there") {
        let path = entry.expect("it can be listed").path();
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        if path.is_file() && !without.contains(&name.as_str()) {
            fs::copy(&path, dir.path().join(&name)).expect("copied");
        }
    }
    let path = dir.path().to_owned();
    (dir, path)
}

/// Standard output and errors of a command in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = pjit().current_dir(folder).args(arguments).output();
    let output = output.expect("it can be run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

const LINES: [&str; 5] = [
    "script",
    "-G",
    "-F",
    "ip,sym,dso,srcline",
    "--full-source-path",
];

/// Function and line of each sample in code of the dump, trampolines aside.
fn lines(script: &str) -> Vec<(String, String)> {
    let rows: Vec<&str> = script.lines().collect();
    let mut found = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(front) = row
            .split_once(" (")
            .filter(|(_, dso)| dso.contains(".dump)"))
        else {
            continue;
        };
        let (_, symbol) = front.0.trim().split_once(' ').expect("address and symbol");
        if symbol.contains("trampoline") {
            continue;
        }
        let line = rows.get(at + 1).filter(|line| line.starts_with("  "));
        found.push((
            symbol.to_owned(),
            line.map_or("", |line| line.trim()).to_owned(),
        ));
    }
    found
}

/// The first and last line of a function of the source.
fn function_of_source(name: &str) -> (usize, usize) {
    let source = fs::read_to_string(sample("wasm", "source/hot.rs")).expect("the source is there");
    let rows: Vec<&str> = source.lines().collect();
    let head = format!("fn {name}(");
    let first = rows
        .iter()
        .position(|row| row.contains(&head))
        .expect("a function");
    let length = rows[first..]
        .iter()
        .position(|row| *row == "}")
        .expect("its end");
    (first + 1, first + 1 + length)
}

#[test]
fn samples_have_lines_of_their_own_function_or_of_what_is_inlined() {
    let found = lines(&stdout_of(&LINES, "wasm"));
    assert!(found.len() > 300, "{}", found.len());
    let with_line = found.iter().filter(|(_, line)| line.contains(':')).count();
    assert!(
        with_line * 100 >= found.len() * 99,
        "{with_line} of {}",
        found.len()
    );
    let functions = ["spin", "primes", "sort"];
    for function in functions {
        let name = format!("hot::{function}");
        let own = found.iter().filter(|(symbol, _)| symbol.starts_with(&name));
        let (mut inside, mut all) = (0, 0);
        let ((first, last), mix) = (function_of_source(function), function_of_source("mix"));
        for (_, line) in own {
            all += 1;
            let of_user = line
                .strip_prefix("/src/hot.rs:")
                .map(|l| l.parse::<usize>());
            inside += usize::from(match of_user {
                Some(Ok(line)) => (first..=last).contains(&line) || (mix.0..=mix.1).contains(&line),
                Some(Err(_)) => false,
                None => line.contains("library/core/"),
            });
        }
        assert!(all > 20, "{function} has {all} samples");
        assert_eq!(inside, all, "{function}");
    }
}

#[test]
fn inlined_functions_are_frames() {
    let stacks = folded(&stdout_of(&["fold"], "wasm"));
    let mixed = stacks.keys().filter(|stack| stack.contains("spin"));
    let inlined = mixed.filter(|stack| stack.ends_with("mix")).count();
    assert!(inlined > 0, "{:#?}", stacks.keys());
    let plain = folded(&stdout_of(&["fold", "--no-inline"], "wasm"));
    assert!(plain.keys().all(|stack| !stack.ends_with("mix")));
    assert_eq!(stacks.values().sum::<u64>(), plain.values().sum::<u64>());
}

#[test]
fn check_says_what_is_missing() {
    let checked = |without: &[&str]| {
        let (_keep, folder) = copy(without);
        let text = run_in(&folder, &["check", "-i", "perf.data"]).0;
        let row = text.lines().position(|line| line.contains("wasm-lines"));
        let rows: Vec<&str> = text.lines().skip(row.expect("a row")).collect();
        rows.join("\n")
    };
    assert!(checked(&[]).contains("have a line"));
    let without = checked(&["hot.cwasm", "hot.wasm"]);
    assert!(
        without.contains("no .cwasm") && without.contains("wasmtime compile hot.wasm -o hot.cwasm")
    );
    let without = checked(&["hot.cwasm"]);
    assert!(without.contains("only the file of their function") && without.contains("no .cwasm"));
    let without = checked(&["hot.wasm"]);
    assert!(without.contains("no .wasm was found"), "{without}");
}

/// A custom section in front of all others, as long as it is said.
fn with_front_section(module: &[u8], length: u8) -> Vec<u8> {
    let mut out = module[..8].to_vec();
    out.extend([0, length + 2, 1, b'x']);
    out.resize(out.len() + usize::from(length), 0);
    out.extend(&module[8..]);
    out
}

/// The sections of a module: number, name of a custom one, and all bytes.
fn sections(module: &[u8]) -> Vec<(u8, &[u8], &[u8])> {
    let leb = |at: usize| {
        let (mut value, mut at, mut shift) = (0usize, at, 0);
        loop {
            value |= usize::from(module[at] & 0x7f) << shift;
            shift += 7;
            at += 1;
            if module[at - 1] < 0x80 {
                return (value, at);
            }
        }
    };
    let (mut found, mut at) = (Vec::new(), 8);
    while at < module.len() {
        let (length, body) = leb(at + 1);
        let name = if module[at] == 0 {
            let (length, name) = leb(body);
            &module[name..name + length]
        } else {
            &[]
        };
        found.push((module[at], name, &module[at..body + length]));
        at = body + length;
    }
    found
}

/// What was compiled may have been stripped, or a section longer: all positions are shifted then.
#[test]
fn a_module_that_is_shifted_tells_the_same_lines() {
    let as_it_was = lines(&stdout_of(&LINES, "wasm"));
    for length in [1, 77] {
        let (_keep, folder) = copy(&["hot.wasm"]);
        let module = fs::read(sample("wasm", "hot.wasm")).expect("the module");
        fs::write(folder.join("hot.wasm"), with_front_section(&module, length)).expect("written");
        let script = run_in(&folder, &[&LINES[..], &["-i", "perf.data"]].concat()).0;
        assert_eq!(lines(&script), as_it_was);
    }
}

#[test]
fn without_debug_information_there_are_offsets_in_the_module() {
    let (_keep, folder) = copy(&["hot.wasm"]);
    let module = fs::read(sample("wasm", "hot.wasm")).expect("the module");
    let plain = sections(&module)
        .into_iter()
        .filter(|(_, name, _)| !name.starts_with(b".debug"))
        .flat_map(|(_, _, bytes)| bytes.to_vec());
    let stripped: Vec<u8> = module[..8].iter().copied().chain(plain).collect();
    fs::write(folder.join("hot.wasm"), stripped).expect("written");
    let script = run_in(&folder, &[&LINES[..], &["-i", "perf.data"]].concat()).0;
    let found = lines(&script);
    let offsets = found
        .iter()
        .filter(|(_, line)| line.starts_with("hot.wasm+0x"));
    assert!(offsets.count() * 100 >= found.len() * 99, "{found:?}");
}

/// The function's first line would be a place that nobody was at, with the time of the whole function.
#[test]
fn without_the_compiled_file_functions_have_their_file_alone() {
    let (_keep, folder) = copy(&["hot.cwasm"]);
    let script = run_in(&folder, &[&LINES[..], &["-i", "perf.data"]].concat()).0;
    let spin: BTreeSet<_> = lines(&script)
        .into_iter()
        .filter(|(symbol, _)| symbol.starts_with("hot::spin"))
        .map(|(_, line)| line)
        .collect();
    assert_eq!(spin.into_iter().collect::<Vec<_>>(), ["/src/hot.rs:0"]);
    let list = run_in(&folder, &["list", "hot::spin", "-i", "perf.data"]).0;
    assert!(list.contains("no line is known"), "{list}");
}

/// A module that was named but is another build's gives no line, which nobody understood without a word.
#[test]
fn a_named_module_that_does_not_fit_is_told() {
    let (_keep, folder) = copy(&["hot.wasm"]);
    // One function without parameters, whose body is empty.
    let other = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x04\x01\x02\0\x0b";
    fs::write(folder.join("other.txt"), other).expect("written");
    let fold = ["fold", "-i", "perf.data", "--wasm"];
    let errors = |module: &str| run_in(&folder, &[&fold[..], &[module]].concat()).1;
    let told = errors("other.txt");
    assert!(
        told.contains(
            "other.txt: none of the .cwasm files that were found was made from it; not used"
        ),
        "{told}"
    );
    let module = sample("wasm", "hot.wasm");
    let told = errors(module.to_str().expect("a name"));
    assert!(!told.contains("hot.wasm"), "{told}");
    fs::remove_file(folder.join("hot.cwasm")).expect("removed");
    let told = errors("other.txt");
    assert!(
        told.contains("other.txt: tells nothing of the code in the recording without the .cwasm"),
        "{told}"
    );
}

/// Files of another program or of nobody are refused, and the samples are still there.
#[test]
fn what_does_not_fit_is_not_used() {
    let plain = folded(&stdout_of(&["fold", "--no-inline"], "wasm"));
    let compiled = fs::read(sample("wasm", "hot.cwasm")).expect("the file");
    let mut other = compiled.clone();
    // Other machine code: one byte of each 16 of the text.
    for byte in other[0x1000..0x1800].iter_mut().step_by(16) {
        *byte ^= 0x55;
    }
    let cut = compiled[..compiled.len() / 2].to_vec();
    for (bytes, warning) in [
        (other, "other flags"),
        (cut, "not a .cwasm file"),
        (Vec::new(), "not a .cwasm"),
    ] {
        let (_keep, folder) = copy(&["hot.cwasm", "hot.wasm"]);
        fs::write(folder.join("x.cwasm"), bytes).expect("written");
        let (stacks, errors) = run_in(&folder, &["fold", "--cwasm", "x.cwasm", "-i", "perf.data"]);
        assert!(errors.contains(warning), "{errors}");
        let total: u64 = folded(&stacks).values().sum();
        assert_eq!(total, plain.values().sum::<u64>());
    }
}

/// The same program, built for this machine and recorded. `Err`: what is missing.
fn native(folder: &Path) -> Result<PathBuf, &'static str> {
    let source = fs::read_to_string(sample("wasm", "source/hot.rs")).expect("the source is there");
    let (start, end) = ("#![no_std]", "#[inline(always)]");
    let at = |what: &str| source.find(what).expect("it is in the source");
    // Lines keep their numbers.
    let runtime = &source[at(start)..at(end)];
    let blank = "\n".repeat(runtime.matches('\n').count());
    let source = source.replace(runtime, &blank) + "fn main() { println!(\"{}\", run(900)); }\n";
    fs::write(folder.join("hot.rs"), source).expect("written");
    let mut compile = Command::new("rustc");
    compile.args(["--edition", "2024", "-O", "-C", "debuginfo=1", "hot.rs"]);
    let mut record = perf();
    record.args([
        "record",
        "-q",
        "-F",
        "999",
        "-e",
        "cpu-clock:u",
        "-o",
        "hot.data",
        "./hot",
    ]);
    for (mut command, without) in [(compile, "rustc"), (record, "perf")] {
        let output = command.current_dir(folder).output();
        if !output.is_ok_and(|output| output.status.success()) {
            return Err(without);
        }
    }
    Ok(folder.join("hot.data"))
}

/// Shares of a function's samples by line of `hot.rs`, those of 2 % and more, the hottest first.
fn hot_lines(recording: &Path, function: &str) -> Vec<(u32, f64)> {
    let output = pjit()
        .args(["annotate", "-l", "--no-source", "-s", function, "-i"])
        .arg(recording)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let head = text.lines().take_while(|line| !line.contains("|\t"));
    let mut shares = std::collections::BTreeMap::<u32, f64>::new();
    for line in head {
        let (share, place) = line.trim().split_once(' ').unwrap_or_default();
        let number = place
            .trim_start_matches('~')
            .strip_prefix("hot.rs:")
            .and_then(|number| number.parse().ok());
        if let (Ok(share), Some(number)) = (share.parse::<f64>(), number) {
            *shares.entry(number).or_default() += share;
        }
    }
    let mut hot: Vec<_> = shares.into_iter().filter(|line| line.1 >= 2.0).collect();
    hot.sort_by(|a, b| b.1.total_cmp(&a.1));
    hot
}

/// Lines of the recorded WebAssembly and of the same program as native code: the hottest is one of native's hottest or the one beside
/// it, since code without a position of its own has that of the code before; and so are those that have most of the samples. Which
/// of two instructions that wait for each other has the samples is the processor's, and differs with what runs beside.
#[test]
fn hot_lines_are_those_of_native_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let native = match native(folder.path()) {
        Ok(recording) => recording,
        Err(without) => return skip(without, "the program cannot be built or recorded"),
    };
    for function in ["hot::spin", "hot::primes", "hot::sort"] {
        let ours = hot_lines(&sample("wasm", "perf.data"), function);
        let theirs = hot_lines(&native, function);
        let is_hot = |line: u32| theirs.iter().any(|other| line.abs_diff(other.0) <= 1);
        let all: f64 = ours.iter().map(|line| line.1).sum();
        let of_hot = ours.iter().filter(|line| is_hot(line.0));
        let of_hot: f64 = of_hot.map(|line| line.1).sum();
        let seen = format!("{function}: {ours:?}, native {theirs:?}");
        let (Some(our), Some(their)) = (ours.first(), theirs.first()) else {
            panic!("no lines: {seen}");
        };
        let mut hottest = theirs.iter().filter(|line| line.1 >= their.1 / 2.0);
        assert!(hottest.any(|line| our.0.abs_diff(line.0) <= 1), "{seen}");
        assert!(of_hot >= 0.85 * all, "{seen}");
    }
}

/// The sample's module with the file that all its lines are of called otherwise: as if another version had been built.
fn other_version(module: &[u8]) -> Vec<u8> {
    let (old, new) = (b"hot.rs\0", b"new.rs\0");
    let mut other = module.to_vec();
    for at in memchr::memmem::find_iter(module, old) {
        other[at..at + old.len()].copy_from_slice(new);
    }
    assert_ne!(other, module);
    other
}

#[test]
fn of_two_modules_that_fit_the_name_decides_or_none_is_used() {
    let module = fs::read(sample("wasm", "hot.wasm")).expect("the module is there");
    let other = other_version(&module);
    let with = |files: &[(&str, &[u8])], arguments: &[&str]| {
        let (_kept, folder) = copy(&["hot.wasm"]);
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes).expect("written");
        }
        let (script, errors) = run_in(&folder, &[&LINES, arguments].concat());
        let of = |file: &str| lines(&script).iter().filter(|l| l.1.contains(file)).count();
        (of("hot.rs:"), of("new.rs:"), errors)
    };
    let (own, others, _) = with(&[("a.wasm", &other), ("hot.wasm", &module)], &[]);
    assert!(own > 100 && others == 0, "{own}, {others}");
    let (own, others, errors) = with(&[("a.wasm", &other), ("b.wasm", &module)], &[]);
    assert_eq!((own, others), (0, 0));
    assert!(errors.contains("which differ"), "{errors}");
    let (own, others, _) = with(
        &[("a.wasm", &other), ("b.wasm", &module)],
        &["--wasm", "a.wasm"],
    );
    assert!(own == 0 && others > 100, "{own}, {others}");
}

#[test]
fn code_that_two_compiled_files_have_is_of_neither_source() {
    let module = fs::read(sample("wasm", "hot.wasm")).expect("the module is there");
    let (_kept, folder) = copy(&[]);
    fs::copy(folder.join("hot.cwasm"), folder.join("a.cwasm")).expect("copied");
    let of_user = |folder: &Path, arguments: &[&str]| {
        let (script, errors) = run_in(folder, &[&LINES, arguments].concat());
        let is_of_user = |line: &&(String, String)| line.1.contains("hot.rs:");
        (lines(&script).iter().filter(is_of_user).count(), errors)
    };
    // Both are made from one module: its lines are right for both.
    assert!(of_user(&folder, &[]).0 > 100);
    fs::write(folder.join("a.wasm"), other_version(&module)).expect("written");
    let (own, errors) = of_user(&folder, &[]);
    assert!(
        own == 0 && errors.contains("have the same code"),
        "{own}, {errors}"
    );
    assert!(of_user(&folder, &["--cwasm", "hot.cwasm"]).0 > 100);
}

/// One byte of one function of twelve: lines of that version are not those of what ran, and those of its module neither.
#[test]
fn a_compiled_file_with_another_function_is_of_another_version() {
    use object::{Object, ObjectSection, ObjectSymbol};
    let (_kept, folder) = copy(&[]);
    let path = folder.join("hot.cwasm");
    let mut bytes = fs::read(&path).expect("it is there");
    let at = {
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let text = file.section_by_name(".text").expect("code");
        let (start, _) = text.file_range().expect("it is in the file");
        let is_primes = |symbol: &object::Symbol<'_, '_>| {
            symbol.name().is_ok_and(|name| name.contains("primes"))
        };
        let primes = file.symbols().find(is_primes).expect("its function");
        usize::try_from(start + primes.address() + primes.size() - 1).expect("small")
    };
    bytes[at] ^= 0xff;
    let (script, errors) = run_in(&folder, &LINES);
    let has_lines = |script: &str| lines(script).iter().any(|line| line.1.contains("hot.rs:"));
    assert!(
        has_lines(&script) && !errors.contains("another version"),
        "{errors}"
    );
    fs::write(&path, bytes).expect("written");
    let (script, errors) = run_in(&folder, &LINES);
    assert!(!has_lines(&script), "{script}");
    assert!(
        errors.contains("another version of the module than ran: hot::primes"),
        "{errors}"
    );
    assert!(errors.contains("11 of 12 functions"), "{errors}");
}

/// A recording that was never made: what was compiled ahead was mapped and ran, so that there is no dump.
fn of_mapped(folder: &Path) {
    let path = folder.join("hot.cwasm");
    let mut recording = Recording::new(Stacks::None);
    recording.comm(7, 7, b"wasmtime");
    let file = path.as_os_str().as_encoded_bytes();
    let length = fs::metadata(&path).expect("the file").len();
    recording.map(7, 0x10_0000, length.next_multiple_of(0x1000), 0, file);
    // The first functions stand at the beginning of the code.
    for (time, at) in (0x1000..0x1200).step_by(8).enumerate() {
        recording.sample(&Sample {
            ip: 0x10_0000 + at,
            pid: 7,
            tid: 7,
            time: 1_000 + time as u64,
            period: 100,
            chain: &[],
            user: None,
        });
    }
    recording.name_event(b"cycles");
    fs::write(folder.join("mapped.data"), recording.file()).expect("written");
}

#[test]
fn a_compiled_file_that_was_mapped_has_lines_and_names_in_its_code() {
    let (_keep, folder) = copy(&["jit-11250.dump"]);
    of_mapped(&folder);
    let view = ["annotate", "-l", "spin", "-i", "mapped.data"];
    let (text, errors) = run_in(&folder, &view);
    let is_in_source = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let found = text.lines().filter(is_in_source);
    assert!(
        found.clone().any(|line| line.ends_with(" hot.rs:22")),
        "{text}{errors}"
    );
    assert!(text.contains("Disassembly of section .text:"), "{text}");
    let head = text
        .lines()
        .find(|line| line.contains(">:") && line.contains("spin"));
    assert!(
        head.is_some_and(|head| head.contains("<wasm[0]::function[")),
        "{text}"
    );
}

/// Compilers such as AssemblyScript's write a source map, and no debug information.
#[test]
fn of_a_module_with_a_source_map_check_asks_for_the_map() {
    let (_keep, folder) = copy(&["hot.wasm"]);
    let module = fs::read(sample("wasm", "hot.wasm")).expect("the module");
    let plain = sections(&module)
        .into_iter()
        .filter(|(_, name, _)| !name.starts_with(b".debug"));
    let plain = plain.flat_map(|(_, _, bytes)| bytes.to_vec());
    let url = b"\0\x1b\x10sourceMappingURL\x09./hot.map";
    let module: Vec<u8> = module[..8]
        .iter()
        .copied()
        .chain(plain)
        .chain(*url)
        .collect();
    fs::write(folder.join("hot.wasm"), module).expect("written");
    let checked = || {
        let text = run_in(&folder, &["check", "-i", "perf.data"]).0;
        let row = text.lines().position(|line| line.contains("wasm-lines"));
        let rows = text.lines().skip(row.expect("a row")).take(2);
        rows.collect::<Vec<_>>().join("\n")
    };
    let missing = checked();
    assert!(
        missing.contains("names a source map, hot.map, which was not found"),
        "{missing}"
    );
    assert!(
        missing.contains("fix: put hot.map beside the .wasm"),
        "{missing}"
    );
    // No place of it has a source.
    let map = r#"{"version":3,"sources":["a.ts"],"names":[],"mappings":"A"}"#;
    fs::write(folder.join("hot.map"), map).expect("written");
    let left_out = checked();
    assert!(
        left_out.contains("the compiler left out the rest"),
        "{left_out}"
    );
    assert!(!left_out.contains("fix:"), "{left_out}");
}

#[test]
fn of_v8s_webassembly_no_file_has_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recording = Recording::new(Stacks::None);
    recording.comm(7, 7, b"node");
    recording.map(7, 0x10_0000, 0x1000, 0, b"//anon");
    recording.sample(&Sample {
        ip: 0x10_0010,
        pid: 7,
        tid: 7,
        time: 1_000,
        period: 100,
        chain: &[],
        user: None,
    });
    recording.name_event(b"cycles");
    fs::write(folder.path().join("perf.data"), recording.file()).expect("written");
    let map = "100000 100 JS:wasm-function[1]-1-turbofan\n";
    fs::write(folder.path().join("perf-7.map"), map).expect("written");
    let view = ["list", "wasm-function[1]", "-i", "perf.data"];
    let (text, errors) = run_in(folder.path(), &view);
    assert!(
        text.contains("no line is known (V8 writes none for WebAssembly"),
        "{text}{errors}"
    );
    assert!(!text.contains("pjit check"), "{text}");
}
