//! Branches, calls that the processor kept, accesses to memory, and a trace: what pjit prints of small recordings, line by line,
//! and against what is worked out here from the bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::questions::against_schema;
use crate::recording::{CONTEXT_USER, Recording, Sample as Taken, Stacks};
use crate::support::{Random, pjit, sample};

/// Texts of a row's cells, and how many samples it has.
type Counted = BTreeMap<String, u64>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hardware")
}

fn file(name: &str) -> PathBuf {
    folder().join(format!("{name}.data"))
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(file(name)).expect("the recording is there")
}

/// Standard output and what was said, for arguments in one string. Files of this machine are of no use.
fn run_on(path: &Path, arguments: &str) -> (bool, String, String) {
    let empty = tempfile::tempdir().expect("a folder");
    let mut words = arguments.split(' ');
    let output = pjit()
        .args(words.next())
        .arg("-i")
        .arg(path)
        .arg("--symfs")
        .arg(empty.path())
        .arg("--perf-map")
        .arg(folder())
        .args(words)
        .output()
        .expect("the binary can be run");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        output.status.success(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn run(name: &str, arguments: &str) -> String {
    let (is_good, out, said) = run_on(&file(name), arguments);
    assert!(is_good, "pjit {arguments} on {name}: {said}");
    out
}

/// Rows of a report with `-n`: the cells behind the number of samples. Each text has one row.
fn rows(name: &str, options: &str) -> Counted {
    let text = run(name, &format!("report -n -t | {options}"));
    let mut counted = Counted::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if line.starts_with('#') || cells.len() < 3 {
            continue;
        }
        let samples = cells[1].parse().expect("a number");
        let before = counted.insert(cells[2..].join(" "), samples);
        assert_eq!(before, None, "two rows of one text: {line}");
    }
    counted
}

/// A sample as its bytes say, of recordings with one event.
#[derive(Debug, Default, Clone)]
struct Sample {
    /// Where the number of its branches stands.
    count_at: usize,
    pid: u32,
    cpu: Option<u32>,
    period: u64,
    branches: Vec<[u64; 3]>,
    weight: u64,
    data_source: u64,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// `struct perf_file_header`, the first attribute, and all SAMPLE records.
fn samples(bytes: &[u8]) -> Vec<Sample> {
    let (attribute, data, size) = (
        word(bytes, 24) as usize,
        word(bytes, 40) as usize,
        word(bytes, 48) as usize,
    );
    let (kind, branch_kind) = (word(bytes, attribute + 24), word(bytes, attribute + 72));
    let has = |bit: u32| kind >> bit & 1 != 0;
    let (mut at, mut all) = (data, Vec::new());
    while at + 8 <= data + size {
        let header = word(bytes, at);
        let length = (header >> 48) as usize;
        if header as u32 == 9 {
            let mut sample = Sample::default();
            let mut next = at + 8;
            let take = |next: &mut usize| {
                *next += 8;
                word(bytes, *next - 8)
            };
            // Identifier, address, task, time, data address, id, stream, processor, period.
            for bit in [16, 0, 1, 2, 3, 6, 9, 7, 8] {
                if has(bit) {
                    let value = take(&mut next);
                    match bit {
                        1 => sample.pid = value as u32,
                        7 => sample.cpu = Some(value as u32),
                        8 => sample.period = value,
                        _ => {}
                    }
                }
            }
            assert!(!has(4) && !has(10), "no counters and no payloads here");
            if has(5) {
                next += 8 * take(&mut next) as usize;
            }
            if has(11) {
                sample.count_at = next;
                let count = take(&mut next);
                next += if branch_kind >> 17 & 1 != 0 { 8 } else { 0 };
                let mut entry = || [take(&mut next), take(&mut next), take(&mut next)];
                sample.branches = (0..count).map(|_| entry()).collect();
            }
            if has(14) || has(24) {
                sample.weight = take(&mut next);
            }
            if has(15) {
                sample.data_source = take(&mut next);
            }
            all.push(sample);
        }
        at += length;
    }
    all
}

/// Branches without registers that were not filled, each with its sample.
fn branches(name: &str) -> Vec<(Sample, [u64; 3])> {
    let all = samples(&bytes(name)).into_iter();
    let all = all.flat_map(|sample| {
        let branches = sample.branches.clone().into_iter();
        branches.map(move |branch| (sample.clone(), branch))
    });
    all.filter(|(_, [from, to, _])| (*from, *to) != (0, 0))
        .collect()
}

fn counted(texts: impl Iterator<Item = String>) -> Counted {
    let mut counted = Counted::new();
    texts.for_each(|text| *counted.entry(text).or_default() += 1);
    counted
}

const BRANCHES: [&str; 3] = ["branch-flags", "skylake-branches", "simpleperf-lbr"];

/// perf has several rows for one text, negative cycles, and the weight of another branch here (docs/perf.md).
#[test]
fn rows_of_flags_are_what_the_bytes_say() {
    let text = |key: &str, (sample, [_, _, flags]): &(Sample, [u64; 3])| {
        let cycles = flags >> 4 & 0xffff;
        match key {
            "mispredict" if flags & 2 != 0 => "N".to_owned(),
            "mispredict" if flags & 1 != 0 => "Y".to_owned(),
            "mispredict" => "N/A".to_owned(),
            "in_tx" => if flags & 4 != 0 { "T" } else { "." }.to_owned(),
            "abort" => if flags & 8 != 0 { "A" } else { "." }.to_owned(),
            "cycles" if cycles == 0 => "-".to_owned(),
            "cycles" => cycles.to_string(),
            "local_weight" => cycles.max(1).to_string(),
            _ => sample
                .cpu
                .map_or("-001".to_owned(), |cpu| format!("{cpu:03}")),
        }
    };
    for name in BRANCHES {
        let all = branches(name);
        for keys in [
            "mispredict",
            "in_tx",
            "abort",
            "cycles",
            "local_weight",
            "mispredict,cycles",
            "in_tx,abort",
            "cpu,mispredict",
        ] {
            let texts = all.iter().map(|branch| {
                let cells = keys.split(',').map(|key| text(key, branch));
                cells.collect::<Vec<_>>().join(" ")
            });
            let expected = counted(texts);
            assert_eq!(
                rows(name, &format!("-b -s {keys}")),
                expected,
                "{name} {keys}"
            );
        }
    }
    let most = branches("skylake-branches");
    let most = most.iter().map(|(_, [.., flags])| flags >> 4 & 0xffff);
    assert_eq!(
        most.max(),
        Some(42141),
        "more than a signed number of 16 bits holds"
    );
}

/// Without symbols, each pair of addresses is a row.
#[test]
fn pairs_of_addresses_are_rows() {
    for name in ["skylake-branches", "simpleperf-lbr"] {
        let mut pairs: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for (_, [from, to, _]) in branches(name) {
            *pairs.entry((from, to)).or_default() += 1;
        }
        let mut expected: Vec<u64> = pairs.into_values().collect();
        expected.sort_unstable();
        for keys in ["addr_from,addr_to", "symbol_from,symbol_to"] {
            let text = run(name, &format!("report -b -n -t | -s {keys}"));
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let mut found: Vec<u64> = lines
                .filter_map(|line| line.split('|').nth(1)?.trim().parse().ok())
                .collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{name} {keys}");
        }
    }
}

/// By perf maps: who has an address.
fn named(pid: u32, address: u64) -> Option<&'static str> {
    let is_second = pid == 990_102;
    let base = if is_second { 0x3000_0000 } else { 0x2000_0000 };
    match address.checked_sub(base)? >> 12 {
        0 => Some("hot"),
        1 => Some("cold"),
        2 => Some("helper"),
        _ => None,
    }
}

/// A row stays if one of its ends fits; perf looks at where the sample was taken.
#[test]
fn filters_look_at_both_ends() {
    let all = branches("branch-flags");
    let shown = |sample: &Sample, at: u64| match named(sample.pid, at) {
        Some(name) => format!("[.] {name}"),
        None => format!("[H] {at:#018x}"),
    };
    let of_hot = all.iter().filter(|(sample, [from, to, _])| {
        let is_hot = |at: &u64| named(sample.pid, *at) == Some("hot");
        is_hot(from) || is_hot(to)
    });
    let expected =
        counted(of_hot.map(|(sample, [from, to, _])| {
            format!("{} {}", shown(sample, *from), shown(sample, *to))
        }));
    assert_eq!(expected.values().sum::<u64>(), 28, "{expected:?}");
    let found = rows("branch-flags", "-b -S hot -s symbol_from,symbol_to");
    assert_eq!(found, expected);
    let named_all = all.iter().filter(|(sample, [from, to, _])| {
        [from, to]
            .iter()
            .any(|at| named(sample.pid, **at).is_some())
    });
    let expected = counted(named_all.map(|(sample, [from, ..])| shown(sample, *from)));
    let found = rows("branch-flags", "-b -S hot,cold,helper -s symbol_from");
    assert_eq!(found, expected);
    let unnamed = rows("branch-flags", "-b -U -s symbol_from");
    assert_eq!(
        unnamed, expected,
        "what has no name at either end is left out"
    );
    let part = rows(
        "branch-flags",
        "-b --symbol-filter elpe -s symbol_from,symbol_to",
    );
    assert_eq!(part.values().sum::<u64>(), 12, "{part:?}");
}

/// Where a branch leads may be of another mode than the sample, whose mark perf prints.
#[test]
fn marks_are_those_of_the_end_of_a_branch() {
    let mut backwards = bytes("branch-flags");
    let all = samples(&backwards);
    // The kernel is where branches come from there, so they are turned around.
    for sample in &all {
        for (number, [from, to, _]) in (0..).zip(&sample.branches) {
            let at = sample.count_at + 8 + 24 * number;
            assert_eq!(word(&backwards, at), *from);
            backwards[at..at + 8].copy_from_slice(&to.to_le_bytes());
            backwards[at + 8..at + 16].copy_from_slice(&from.to_le_bytes());
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, backwards).expect("written");
    let all = branches("branch-flags").into_iter();
    let of_kernel = all.filter(|(_, [from, ..])| *from >> 63 != 0).count();
    assert_eq!(of_kernel, 3);
    for key in ["sym", "addr_to", "symbol_to"] {
        let (_, text, said) = run_on(&path, &format!("report -b -t | -F overhead,sample,{key}"));
        let rows = text
            .lines()
            .filter(|line| line.contains("0xffffffff81000010"));
        let rows: Vec<Vec<&str>> = rows
            .map(|row| row.split('|').map(str::trim).collect())
            .collect();
        assert_eq!(rows.len(), 1, "{key}: {text} {said}");
        assert_eq!(rows[0][1..], ["3", "[H] 0xffffffff81000010"], "{key}");
    }
}

/// The same numbers whatever the keys are: perf counts the first branch of each row.
#[test]
fn statistics_count_every_branch_once() {
    let words = [
        "", "COND", "UNCOND", "IND", "CALL", "IND_CALL", "RET", "SYSCALL", "SYSRET",
    ];
    let all = branches("branch-flags");
    let typed: Vec<[u64; 3]> = all
        .into_iter()
        .map(|(_, branch)| branch)
        .filter(|branch| branch[2] >> 20 & 15 != 0)
        .collect();
    let share = |is: &dyn Fn(&[u64; 3]) -> bool| {
        let of = typed.iter().filter(|branch| is(branch)).count();
        100.0 * of as f64 / typed.len() as f64
    };
    let crosses = |of: &[u64; 3], bits: u32| of[0] >> bits != of[1] >> bits;
    let mut expected = vec![
        (
            "COND_FWD",
            share(&|of| of[2] >> 20 & 15 == 1 && of[1] > of[0]),
        ),
        (
            "COND_BWD",
            share(&|of| of[2] >> 20 & 15 == 1 && of[1] <= of[0]),
        ),
        ("CROSS_4K", share(&|of| crosses(of, 12) && !crosses(of, 21))),
        ("CROSS_2M", share(&|of| crosses(of, 21))),
    ];
    let kinds = words.iter().enumerate().skip(1);
    expected
        .extend(kinds.map(|(kind, word)| (*word, share(&|of| of[2] >> 20 & 15 == kind as u64))));
    expected.retain(|(_, share)| *share > 0.0);
    let expected: Vec<String> = expected
        .iter()
        .map(|(word, share)| format!("{word:>8}: {share:5.1}%"))
        .collect();
    assert!(
        expected.contains(&"    COND:  39.5%".to_owned()),
        "{expected:?}"
    );
    for keys in ["", " -s mispredict", " -s weight", " -s dso_to"] {
        let text = run("branch-flags", &format!("report{keys}"));
        let lines = text
            .lines()
            .skip_while(|line| *line != "# Branch Statistics:");
        let lines: Vec<&str> = lines
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(lines, expected, "{keys}");
    }
    let untyped = run("skylake-branches", "report");
    assert!(
        !untyped.contains("Statistics"),
        "the processor did not tell"
    );
}

/// What the report says of its numbers.
#[test]
fn branch_tables_say_what_they_count() {
    for name in BRANCHES {
        let all = samples(&bytes(name));
        let entries: usize = all.iter().map(|sample| sample.branches.len()).sum();
        let taken = branches(name);
        let with: usize = all
            .iter()
            .filter(|sample| sample.branches.iter().any(|of| (of[0], of[1]) != (0, 0)))
            .count();
        let text = run(name, "report -b");
        assert!(
            text.contains(&format!("# Samples: {with} ")),
            "{name}: {text}"
        );
        let total = format!("# Event count (approx.): {}\n", taken.len());
        assert!(text.contains(&total), "{name}: {text}");
        let empty = entries - taken.len();
        let said = format!("; {empty} empty branch entries left out");
        assert_eq!(text.contains(&said), empty > 0, "{name}: {text}");
        assert!(text.contains("branches, not time; --no-branch-stack shows samples"));
        let of_samples = run(name, "report --no-branch-stack --no-children");
        let periods: u64 = all.iter().map(|sample| sample.period).sum();
        let total = format!("# Event count (approx.): {periods}\n");
        assert!(
            of_samples.contains(&total) || name == "branch-flags",
            "{of_samples}"
        );
        assert!(!of_samples.contains("branches, not time"));
    }
}

#[test]
fn views_of_branches_print_what_they_did() {
    let bless = std::env::var_os("PJIT_BLESS").is_some();
    for (name, recording, arguments) in [
        ("pjit.branches.txt", "branch-flags", "report"),
        ("pjit.hierarchy.txt", "branch-flags", "report --hierarchy"),
        (
            "pjit.skylake.txt",
            "skylake-branches",
            "report --percent-limit 1",
        ),
        (
            "pjit.brstacksym.txt",
            "branch-flags",
            "script -F tid,ip,sym,brstacksym",
        ),
        ("pjit.accesses.txt", "mem-levels", "report --mem-mode"),
        (
            "pjit.lines.txt",
            "mem-levels",
            "report --mem-mode -n -s dcacheline,sym,mem",
        ),
        ("pjit.script.txt", "mem-levels", "script"),
        (
            "pjit.calls.txt",
            "lbr-cases",
            "report --no-children -g caller",
        ),
    ] {
        let path = folder().join(name);
        let now = run(recording, arguments);
        // Not those of this machine.
        let now = now.replace(&format!("{}/", folder().display()), "");
        if bless {
            fs::write(&path, &now).expect("written");
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            before == now,
            "{name} differs (PJIT_BLESS=1 renews it): {now}"
        );
    }
}

/// As other tools read them, and as the bytes say.
#[test]
fn script_prints_all_entries_of_all_samples() {
    for name in BRANCHES {
        let text = run(name, "script -F ip,brstack");
        let expected: Vec<Vec<String>> = samples(&bytes(name))
            .iter()
            .map(|sample| {
                let of = |[from, to, flags]: &[u64; 3]| {
                    let predicted = match flags & 3 {
                        0 => '-',
                        1 => 'M',
                        _ => 'P',
                    };
                    let transaction = if flags & 4 != 0 { 'X' } else { '-' };
                    let abort = if flags & 8 != 0 { 'A' } else { '-' };
                    let cycles = flags >> 4 & 0xffff;
                    format!("{from:#x}/{to:#x}/{predicted}/{transaction}/{abort}/{cycles}/")
                };
                sample.branches.iter().map(of).collect()
            })
            .collect();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().skip(1).collect())
            .collect();
        assert_eq!(lines.len(), expected.len(), "{name}");
        for (line, expected) in lines.iter().zip(&expected) {
            assert_eq!(line.len(), expected.len(), "{line:?}");
            for (entry, expected) in line.iter().zip(expected) {
                assert!(entry.starts_with(expected), "{entry} {expected}");
            }
        }
    }
}

/// Of files where the address lies in them; of JIT code, which no file has, the address.
#[test]
fn branches_by_place_in_the_file() {
    /// `tests/data/hardware`: made with two processes, each with a file of one page.
    const FILE: &str = "/opt/none.so";
    let whole = bytes("branch-flags");
    let (data, size) = (word(&whole, 40) as usize, word(&whole, 48) as usize);
    let (mut files, mut at) = (Vec::new(), data);
    while at < data + size {
        let header = word(&whole, at);
        let record = &whole[at..at + (header >> 48) as usize];
        at += record.len();
        let names_it = |record: &[u8]| String::from_utf8_lossy(record).contains(FILE);
        if header as u32 == 10 && names_it(record) {
            files.push((
                word(record, 8) as u32,
                [16, 24, 32].map(|at| word(record, at)),
            ));
        }
    }
    assert_eq!(files.len(), 2);
    let place = |pid: u32, at: u64| {
        let around = files
            .iter()
            .find(|(of, [start, length, _])| *of == pid && (*start..start + length).contains(&at));
        around.map_or(at, |(_, [start, _, offset])| at - start + offset)
    };
    let text = run("branch-flags", "script -F ip,brstackoff");
    let all = samples(&whole);
    assert_eq!(text.lines().count(), all.len());
    let mut in_files = 0;
    for (line, sample) in text.lines().zip(&all) {
        let entries: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert_eq!(entries.len(), sample.branches.len(), "{line}");
        for (entry, [from, to, _]) in entries.iter().zip(&sample.branches) {
            let places = [from, to].map(|at| place(sample.pid, *at));
            let expected = format!("{:#x}/{:#x}/", places[0], places[1]);
            assert!(entry.starts_with(&expected), "{entry}: {expected}");
            in_files += usize::from(places != [*from, *to]);
        }
    }
    assert!(in_files > 0, "some are in the file");
}

/// perf 6.1 has addresses in files there.
#[test]
fn callers_have_the_addresses_that_were_recorded() {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(77, 77, b"app");
    recording.map(77, 0x7f00_0000_0000, 0x10_0000, 0x2000, b"/opt/none.so");
    let chain = [CONTEXT_USER, 0x7f00_0000_1234, 0x7f00_0000_5678, 0x10];
    recording.sample(&Taken {
        ip: chain[1],
        pid: 77,
        tid: 77,
        time: 1000,
        period: 1,
        chain: &chain,
        user: None,
    });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, recording.file()).expect("written");
    let (_, text, said) = run_on(&path, "script -F ip");
    let lines = text
        .split_whitespace()
        .map(|word| u64::from_str_radix(word, 16));
    let lines: Vec<u64> = lines.map(|word| word.expect("an address")).collect();
    assert_eq!(lines, chain[1..], "{said}");
}

#[test]
fn columns_that_were_not_recorded_are_refused() {
    for (name, column, what) in [
        ("mem-levels", "brstack", "branch stacks"),
        ("branch-flags", "addr", "addresses of data"),
        ("branch-flags", "data_src", "sources of data"),
        ("branch-flags", "weight", "weights"),
        ("mem-levels", "ins_lat", "latencies of instructions"),
    ] {
        let (is_good, _, said) = run_on(&file(name), &format!("script -F ip,{column}"));
        assert!(
            !is_good && said.contains(&format!("-F {column}: the event ")),
            "{said}"
        );
        assert!(said.contains(&format!("recorded without {what}")), "{said}");
    }
}

/// Costs are those of the bytes, and levels are told apart that perf keeps together.
#[test]
fn accesses_weigh_what_they_cost() {
    let all = samples(&bytes("mem-levels"));
    let total: u64 = all.iter().map(|sample| sample.weight.max(1)).sum();
    let text = run("mem-levels", "report --mem-mode -s mem");
    assert!(
        text.contains(&format!("# Total weight : {total}\n# Sort order   : mem\n")),
        "{text}"
    );
    let expected = counted(all.iter().map(|sample| sample.weight.to_string()));
    assert_eq!(rows("mem-levels", "--mem-mode -s local_weight"), expected);
    assert_eq!(
        rows("mem-levels", "-s local_weight"),
        expected,
        "also without the mode"
    );
    // By `union perf_mem_data_src`: the level's number, whether it is far, the older bits.
    let level = |source: u64| match (source >> 33 & 15, source >> 37 & 1, source >> 5 & 0x3fff) {
        (14, ..) => "PMEM",
        (13, ..) => "RAM",
        (4, ..) => "L4",
        (3, 1, _) => "Remote node, same socket L3",
        (3, ..) => "L3 hit",
        (1, ..) => "L1 hit",
        _ => "N/A",
    };
    let snoop = |source: u64| match (source >> 38 & 3, source >> 19 & 31) {
        (1, _) => "Fwd",
        (2, _) => "Peer",
        (0, 2) => "None",
        _ => "N/A",
    };
    let of =
        |text: &dyn Fn(u64) -> String| counted(all.iter().map(|sample| text(sample.data_source)));
    let levels = of(&|source| level(source).to_owned());
    assert_eq!(levels.len(), 7, "{levels:?}");
    assert_eq!(rows("mem-levels", "--mem-mode -s mem"), levels);
    assert_eq!(
        rows("mem-levels", "--mem-mode -s snoop"),
        of(&|source| snoop(source).to_owned())
    );
    let both = of(&|source| format!("{} {}", level(source), snoop(source)));
    assert_eq!(rows("mem-levels", "--mem-mode -s mem,snoop"), both);
}

/// Innermost frames are where the samples were taken; where the newest call led is no frame.
#[test]
fn calls_that_the_processor_kept_are_stacks() {
    let text = run("lbr-cases", "script -F tid,ip,sym");
    let mut stacks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [_] => stacks.push(Vec::new()),
            [address, name] => {
                let is_kernel = address.starts_with("ffff");
                let stack = stacks.last_mut().expect("a sample");
                stack.insert(0, if is_kernel { "[k]" } else { name });
            }
            _ => {}
        }
    }
    let stacks: Vec<String> = stacks.iter().map(|stack| stack.join(";")).collect();
    let by_construction = [
        "start;main;alpha;beta",
        "start;main;alpha;gamma",
        "start;main;alpha;beta",
        "main;alpha;leaf",
        "start;main;alpha;beta;[k];[k]",
        "start;main;recur;recur;recur",
        "start;main;alpha;beta;delta",
        "[k]",
        "start;main;alpha;beta",
    ];
    assert_eq!(stacks, by_construction);
}

#[test]
fn a_trace_without_samples_is_refused_by_its_name() {
    let (is_good, _, said) = run_on(&file("simpleperf-etm"), "report");
    assert!(
        !is_good && said.contains("a CoreSight ETM trace of 384 bytes"),
        "{said}"
    );
    assert!(said.contains("perf inject -i "), "{said}");
    let (_, text, _) = run_on(&file("simpleperf-etm"), "check");
    assert!(
        text.contains("CoreSight ETM") && !text.contains("record longer"),
        "{text}"
    );
}

#[test]
fn rows_that_were_not_recorded_are_refused() {
    for (name, arguments, what) in [
        ("mem-levels", "report -b", "-b needs branch stacks"),
        (
            "mem-levels",
            "report -s dso_from",
            "the key dso_from needs branches",
        ),
        (
            "branch-flags",
            "report -s mem",
            "the key mem needs accesses to memory",
        ),
        (
            "branch-flags",
            "report --mem-mode",
            "--mem-mode needs memory data",
        ),
    ] {
        let (is_good, out, said) = run_on(&file(name), arguments);
        assert!(
            !is_good && out.is_empty() && said.contains(what),
            "{arguments}: {said}"
        );
    }
    let (_, text, _) = run_on(&file("branch-flags"), "check");
    assert!(
        text.contains("branch stacks of 4 entries; the report shows branches"),
        "{text}"
    );
}

/// `samples/minijit` with two branches in each sample: where the sample was taken, and an address of code that is replaced.
fn branches_of_jit_code(replaced: u64) -> Vec<u8> {
    const BRANCH_STACK: u64 = 1 << 11;
    let whole = fs::read(sample("minijit", "perf.data")).expect("a sample");
    let (attribute, data, size) = (
        word(&whole, 24) as usize,
        word(&whole, 40) as usize,
        word(&whole, 48) as usize,
    );
    let kind = word(&whole, attribute + 24);
    // IP, TID, TIME, ADDR, CALLCHAIN, PERIOD, registers and stack, DATA_SRC: branches follow the chain.
    assert_eq!(kind, 0xb12f);
    let mut out = whole[..data].to_vec();
    out[attribute + 24..][..8].copy_from_slice(&(kind | BRANCH_STACK).to_le_bytes());
    out[attribute + 72..][..8].copy_from_slice(&1_u64.to_le_bytes());
    let mut at = data;
    while at < data + size {
        let header = word(&whole, at);
        let mut record = whole[at..at + (header >> 48) as usize].to_vec();
        at += record.len();
        if header as u32 == 9 {
            let behind = 8 + 5 * 8 + 8 + 8 * word(&record, 48) as usize;
            let address = word(&record, 8);
            let branches = [2, address, address, 2, replaced, replaced, 2];
            let branches = branches.iter().flat_map(|word: &u64| word.to_le_bytes());
            record.splice(behind..behind, branches);
            let length = (record.len() as u16).to_le_bytes();
            record[6..8].copy_from_slice(&length);
        }
        out.extend(record);
    }
    let more = (out.len() - data - size) as u64;
    out[48..56].copy_from_slice(&(size as u64 + more).to_le_bytes());
    let features = out.len();
    out.extend(&whole[data + size..]);
    let count: u32 = whole[72..104].iter().map(|byte| byte.count_ones()).sum();
    for number in 0..count as usize {
        let moved = word(&out, features + 16 * number) + more;
        out[features + 16 * number..][..8].copy_from_slice(&moved.to_le_bytes());
    }
    out
}

/// What lay at the address of a branch when its sample was taken, not before or later.
#[test]
fn branches_of_jit_code_have_the_names_of_their_time() {
    // In `jit::reuse_A`, then in `jit::reuse_B`.
    const REPLACED: u64 = 0x7fd4_c2b9_c0c8;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, branches_of_jit_code(REPLACED)).expect("written");
    let script = |path: &Path, columns: &str| {
        let mut script = pjit();
        script.arg("script").arg("-i").arg(path).arg("--jitdump");
        script
            .arg(sample("minijit", ""))
            .args(["-G", "-F", columns]);
        let output = script.output().expect("the binary can be run");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let own = script(&sample("minijit", "perf.data"), "ip,sym,symoff");
    let all = script(&path, "ip,sym,symoff,brstacksym");
    assert_eq!(own.lines().count(), 197);
    let mut met = Counted::new();
    for (own, line) in own.lines().zip(all.lines()) {
        let name = own.trim().split_once(' ').expect("a name").1;
        let own_branch = format!("{own} {name}/{name}/P/-/-/0//- ");
        let rest = line.strip_prefix(&own_branch);
        let rest = rest.unwrap_or_else(|| panic!("{line}: {own_branch}"));
        if name.starts_with("jit::reuse_") {
            let of = &name[.."jit::reuse_A".len()];
            assert_eq!(
                rest.trim(),
                format!("{of}+0x8/{of}+0x8/P/-/-/0//-"),
                "{line}"
            );
            *met.entry(of.to_owned()).or_default() += 1;
        }
    }
    assert!(met.len() == 2 && met.values().all(|of| *of > 20), "{met:?}");
}

/// Counts of entries that the record has no room for: the sample is left out and said, all others are there.
#[test]
fn counts_that_cannot_be_are_counted_and_said() {
    let whole = bytes("skylake-branches");
    let all = samples(&whole);
    let others: usize = all[1..]
        .iter()
        .flat_map(|sample| &sample.branches)
        .filter(|of| (of[0], of[1]) != (0, 0))
        .count();
    let entries = all[0].branches.len() as u64;
    let folder = tempfile::tempdir().expect("a folder");
    for count in [1 << 40, u64::MAX, u64::MAX / 24 + 1, entries + 1] {
        let mut damaged = whole.clone();
        let at = all[0].count_at;
        assert_eq!(word(&damaged, at), entries);
        damaged[at..at + 8].copy_from_slice(&count.to_le_bytes());
        let path = folder.path().join("perf.data");
        fs::write(&path, damaged).expect("written");
        let (is_good, text, said) = run_on(&path, "report -b");
        assert!(is_good, "{count}: {said}");
        let total = format!("# Event count (approx.): {others}\n");
        assert!(text.contains(&total), "{count}: {text}");
        assert!(
            said.contains("1 samples have a record that contradicts itself"),
            "{said}"
        );
        for view in ["script -F ip,brstack", "script", "fold", "summary", "check"] {
            let (_, _, said) = run_on(&path, view);
            assert!(!said.contains("panicked"), "{view}: {said}");
        }
    }
    // Fewer are there than were recorded, or none: what follows is not looked at.
    let mut none = whole.clone();
    none[all[0].count_at..][..8].fill(0);
    let path = folder.path().join("perf.data");
    fs::write(&path, none).expect("written");
    let (is_good, text, said) = run_on(&path, "report -b");
    assert!(
        is_good && text.contains(&format!("(approx.): {others}\n")),
        "{said}"
    );
}

/// The same with its samples so many times: records, and where features lie behind them.
fn repeated(whole: &[u8], times: usize) -> Vec<u8> {
    let (data, size) = (word(whole, 40) as usize, word(whole, 48) as usize);
    let (mut records, mut at) = (Vec::new(), data);
    while at < data + size {
        let header = word(whole, at);
        let record = &whole[at..at + (header >> 48) as usize];
        let times = if header as u32 == 9 { times } else { 1 };
        records.extend(record.repeat(times));
        at += record.len();
    }
    let more = (records.len() - size) as u64;
    let mut out = [&whole[..data], &records, &whole[data + size..]].concat();
    out[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    let features: u32 = whole[72..104].iter().map(|byte| byte.count_ones()).sum();
    for number in 0..features as usize {
        let at = data + records.len() + 16 * number;
        let moved = word(&out, at) + more;
        out[at..at + 8].copy_from_slice(&moved.to_le_bytes());
    }
    out
}

/// One line, with the function that has the most; of few branches nothing is said.
#[test]
fn summaries_say_where_branches_are_mispredicted() {
    const TIMES: u64 = 30;
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let (mut missed, mut all) = (0, 0);
    for (sample, [from, _, flags]) in branches("branch-flags") {
        if flags & 3 != 0 {
            let is_missed = TIMES * u64::from(flags & 2 == 0);
            missed += is_missed;
            all += TIMES;
            let of = by_name
                .entry(named(sample.pid, from).unwrap_or(""))
                .or_default();
            *of = (of.0 + is_missed, of.1 + TIMES);
        }
    }
    let named = by_name.iter().filter(|(name, _)| !name.is_empty());
    let worst = named.max_by_key(|(_, (missed, _))| missed);
    let (name, (of, among)) = worst.expect("some have names");
    let share = 100.0 * missed as f64 / all as f64;
    let expected = format!(
        "# Mispredicted: {share:.1}% ({missed} of {all} branches); most in {name}: {of} of {among}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, repeated(&bytes("branch-flags"), TIMES as usize)).expect("written");
    let (is_good, text, said) = run_on(&path, "summary");
    assert!(is_good, "{said}");
    assert!(
        text.lines().any(|line| line == expected),
        "{expected}: {text}"
    );
    let (_, text, _) = run_on(&path, "summary --format json");
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(against_schema(&answer), Vec::<String>::new());
    let told = &answer["mispredicted"];
    assert_eq!(told["mispredicted"], missed);
    assert_eq!(told["branches"], all);
    let most = serde_json::json!({"function": name, "mispredicted": of, "branches": among});
    assert_eq!(told["most"], most);
    for form in ["summary", "summary --format json"] {
        let few = run("branch-flags", form);
        assert!(!few.to_lowercase().contains("mispredicted"), "too few");
    }
    let accesses = run("mem-levels", "summary");
    assert!(!accesses.contains("CPU"), "loads are no time: {accesses}");
}

/// Whatever is wrong with a recording, there is an answer or a reason.
#[test]
fn damaged_recordings_are_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    let views = [
        "report -b -s symbol_from,addr_to,mispredict,cycles,weight",
        "report --mem-mode",
        "report -s local_weight,weight",
        "script -F ip,dso,brstackoff",
        "script",
    ];
    for (seed, name) in ["branch-flags", "mem-levels", "lbr-cases"]
        .into_iter()
        .enumerate()
    {
        let whole = bytes(name);
        let mut random = Random(41 + seed as u64);
        for round in 0..24 {
            let mut damaged = whole.clone();
            for _ in 0..=round % 6 {
                // Behind the file's header: attributes, records and features.
                let at = 104 + random.below(damaged.len() - 104);
                damaged[at] = *random.choose(&[0, 1, 0x7f, 0x80, 0xff]);
            }
            if round % 8 == 7 {
                damaged.truncate(104 + random.below(damaged.len() - 104));
            }
            fs::write(&path, damaged).expect("written");
            let view = random.choose(&views);
            let (is_good, out, said) = run_on(&path, view);
            let is_answered = is_good && !out.is_empty() || said.contains("error: ");
            assert!(
                is_answered && !said.contains("panicked"),
                "{name} {round} {view}: {said}"
            );
        }
    }
}
