//! `pjit annotate` against the perf of this machine, on recordings made here, and against `pjit report` on the samples.
//!
//! Skipped with a message where there is no perf 6, no C compiler, or recording is not allowed. Known differences, which are taken
//! out before comparing:
//! * the number behind the colon: perf 6 counts lines of objdump's output, pjit prints the line's number in its file;
//! * `function():` lines without debug information, which pjit has only with it, and `FILE:LINE` lines of files that are
//!   not there, which perf takes for source;
//! * names of ifunc stubs (`*ABS*+0x9c6a0@plt`), and versions of symbols (`@@GLIBC_2.2.5`) in stripped libraries;
//! * names in stripped libraries, for which pjit also reads a debug file that is there;
//! * which of the addresses in data behind the last symbol is named by which table;
//! * names for addresses before the first symbol (`<spin-0x101ac>`), which objdump prints, and places of line 0 behind
//!   instructions, which perf prints;
//! * the order of functions and lines of equal weight, which in perf depends on addresses in its heap.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::inlines::{code, recording_of};
use crate::live::unaborted;
use crate::recording::{Recording, Sample, Stacks};
use crate::support::{SAMPLES, perf, pjit, sample, skip, stdout_of};

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t mix(uint32_t x) {
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ (x << 5);
}

__attribute__((noinline)) uint32_t spin(uint32_t *table, int len, uint32_t s)
{
    for (int i = 0; i < 20000; i++) {
        s = mix(s);
        int k = (s ^ i) % len;
        table[k] = table[k] / 7 + i;
    }
    return s;
}

__attribute__((noinline)) double roots(double a, int n) {
    double sum = 0;
    for (int i = 1; i < n; i++)
        sum += a / i;
    return sum;
}

__attribute__((noinline)) int choose(int what) {
    switch (what % 6) {
    case 0: return puts("") + 1;
    case 1: return what * 7;
    case 2: return what / 3;
    case 3: return what - 11;
    case 4: return what ^ 0x55;
    default: return 2;
    }
}

/* In a section of its own, and where compilers put what runs rarely. */
__attribute__((section(".hot_code"), noinline)) uint32_t placed(uint32_t s, int n) {
    for (int i = 0; i < n; i++)
        s = mix(s) + i;
    return s;
}

__attribute__((cold, noinline)) uint32_t rare(uint32_t s, int n) {
    while (n-- > 0)
        s = mix(s ^ n);
    return s;
}

int main(void) {
    static uint32_t table[4096];
    uint32_t s = 1;
    double d = 0;
    char text[64];
    size_t length = 0;
    for (int i = 0; i < 1500; i++) {
        s = spin(table, 4096 - (i & 1), s);
        d += roots(s, 5000);
        s = rare(placed(s, 10000), 10000);
        for (int j = 1; j < 3000; j++)
            length += choose(6 * j + 1 + j % 5);
        for (int j = 0; j < 20; j++) {
            snprintf(text, sizeof text, "%d %u", j, s);
            length += strlen(text);
        }
    }
    return (s + (uint32_t)d + length) & 0;
}
"#;

fn succeeds(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Recordings of a program with debug information: one event, two events, a group. `Err`: why there are none.
struct Fixture {
    _folder: tempfile::TempDir,
    one: PathBuf,
    two: PathBuf,
    group: PathBuf,
    /// An event that hits little before one that hits all.
    faults: PathBuf,
}

fn has_perf_6() -> Result<(), &'static str> {
    let version = perf()
        .arg("--version")
        .output()
        .map_err(|_| "no perf here")?;
    let is_6 = String::from_utf8_lossy(&version.stdout).starts_with("perf version 6");
    is_6.then_some(()).ok_or("no perf 6 here")
}

fn fixture() -> Result<Fixture, &'static str> {
    has_perf_6()?;
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("hot.c"), folder.path().join("hot"));
    std::fs::write(&source, SOURCE).expect("it can be written");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-g", "-o"]).args([&program, &source]);
    if !succeeds(&mut compile) {
        return Err("no C compiler here");
    }
    let record = |name: &str, events: &str| {
        let file = folder.path().join(name);
        let mut record = perf();
        record
            .args(["record", "-q", "-F", "999", "-e", events, "-o"])
            .arg(&file)
            .arg(&program);
        let recorded = unaborted(|| record.stdin(Stdio::null()).output());
        let is_done = recorded.is_ok_and(|recorded| recorded.status.success());
        is_done.then_some(file)
    };
    let recorded = (
        record("one.data", "cpu-clock:u"),
        record("two.data", "cpu-clock:u,task-clock:u"),
        record("group.data", "{cpu-clock:u,task-clock:u}"),
        record("faults.data", "page-faults:u,cpu-clock:u"),
    );
    let (Some(one), Some(two), Some(group), Some(faults)) = recorded else {
        return Err("recording is not allowed here");
    };
    Ok(Fixture {
        _folder: folder,
        one,
        two,
        group,
        faults,
    })
}

fn output(command: &mut Command) -> String {
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A line without what is known to differ; `None` for lines that only one of the two has.
fn comparable(line: &str) -> Option<String> {
    let text = line.trim_start();
    if let Some(rest) = text.strip_prefix(": ") {
        let text = rest
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start();
        let path = text.split(" (discriminator").next().unwrap_or(text);
        let is_file = path.starts_with(['.', '/']) && path.contains(':') && !path.contains(' ');
        let is_function = text.ends_with("():");
        return (!is_file && !is_function).then(|| format!(": {text}"));
    }
    let mut line = line.to_owned();
    while let Some(at) = line.find("@@GLIBC_").or_else(|| line.find("@GLIBC_")) {
        let rest = line[at + 1..].trim_start_matches('@');
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
            .unwrap_or(rest.len());
        let end = line.len() - rest.len() + end;
        line.replace_range(at..end, "");
    }
    if let Some(at) = line.rfind(" <").filter(|at| line[*at..].contains("-0x")) {
        line.truncate(at);
    }
    if let Some(at) = line
        .find('<')
        .filter(|_| line.contains("*ABS*") || line.contains("@plt>"))
    {
        line.truncate(at);
    }
    Some(line)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter_map(comparable).collect()
}

/// Lines that both have, as multisets, as a share of perf's; and some that only one has.
fn share(theirs: &str, ours: &str) -> (f64, Vec<String>) {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    let theirs = lines(theirs);
    for line in &theirs {
        *counts.entry(line.clone()).or_default() += 1;
    }
    for line in lines(ours) {
        *counts.entry(line).or_default() -= 1;
    }
    let apart: i64 = counts.values().map(|count| count.abs()).sum();
    let only = counts.iter().filter(|(_, count)| **count != 0);
    let some = only
        .take(12)
        .map(|(line, count)| format!("{count:+} {line}"));
    (
        1.0 - apart as f64 / theirs.len().max(1) as f64,
        some.collect(),
    )
}

/// The blocks of what `perf annotate` printed, each from its head on.
fn printed_blocks(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines() {
        if line.starts_with(" Percent ") {
            all.push(String::new());
        }
        let block = all.last_mut().expect("at least one");
        block.push_str(line);
        block.push('\n');
    }
    all
}

#[test]
fn blocks_are_perfs() {
    let fixture = match fixture() {
        Ok(fixture) => fixture,
        Err(why) => return skip("perf", why),
    };
    let cases: &[(&Path, &[&str])] = &[
        (&fixture.one, &["spin"]),
        (&fixture.one, &["choose"]),
        (&fixture.one, &["-s", "choose"]),
        (&fixture.one, &["-n", "spin"]),
        (&fixture.one, &["--show-total-period", "spin"]),
        (&fixture.one, &["-l", "spin"]),
        (&fixture.one, &["-P", "-l", "choose"]),
        (&fixture.one, &["-P", "spin"]),
        (&fixture.one, &["--asm-raw", "choose"]),
        (&fixture.one, &["-M", "intel", "spin"]),
        (&fixture.one, &["--no-source", "spin"]),
        (&fixture.one, &["--percent-type", "local-hits", "spin"]),
        (
            &fixture.one,
            &[
                "--percent-type",
                "global-period",
                "--percent-limit",
                "2",
                "-d",
                "hot",
            ],
        ),
        (&fixture.one, &["--percent-limit", "5"]),
        (&fixture.one, &["placed"]),
        (&fixture.one, &["rare"]),
        // The limit leaves out single samples of a fast machine: some stubs of the PLT are `_init` to perf.
        (&fixture.one, &["--percent-limit", "2", "-d", "hot"]),
        (&fixture.one, &["-C", "0"]),
        (&fixture.two, &["spin"]),
        (&fixture.two, &["--percent-limit", "2", "-d", "hot"]),
        (&fixture.two, &["--group", "spin"]),
        (&fixture.two, &["--group", "-n", "spin"]),
        (&fixture.group, &["spin"]),
        (&fixture.group, &["--show-total-period", "spin"]),
    ];
    for (file, options) in cases {
        let theirs = output(
            perf()
                .args(["annotate", "--stdio", "-i"])
                .arg(file)
                .args(*options),
        );
        let ours = output(
            Command::new(env!("CARGO_BIN_EXE_pjit"))
                .arg("annotate")
                .arg("-i")
                .arg(file)
                .args(*options),
        );
        // `-C 0` may have no samples on some machines.
        if theirs.is_empty() && options[0] == "-C" {
            continue;
        }
        assert!(
            theirs.lines().count() > 20,
            "{options:?}: perf prints {theirs}"
        );
        let (share, others) = share(&theirs, &ours);
        assert!(share >= 0.99, "{options:?}: {share}: {others:#?}");
        if options == &["placed"] {
            assert!(ours.contains("Disassembly of section .hot_code:"), "{ours}");
        }
    }
    // Everything, libc included, which has other names with its debug file: pjit looks for that, objdump only with `-S`.
    let theirs = output(
        perf()
            .args(["annotate", "--stdio", "--no-source", "-i"])
            .arg(&fixture.one),
    );
    let ours = output(
        Command::new(env!("CARGO_BIN_EXE_pjit"))
            .args(["annotate", "--no-source", "-i"])
            .arg(&fixture.one),
    );
    let nameless = |text: &str| {
        let bare = |line: &str| line.split(" <").next().unwrap_or_default().to_owned() + "\n";
        text.lines().map(bare).collect::<String>()
    };
    // A sample in a stub of the PLT, one in many runs, is a block of `_init` to perf: stubs have no symbols to it.
    let theirs = printed_blocks(&theirs)
        .into_iter()
        .filter(|block| !block.contains(" <_init>:"))
        .collect::<String>();
    assert!(theirs.contains(" <spin>:"), "{theirs}");
    let (theirs, ours) = (nameless(&theirs), nameless(&ours));
    let (share, others) = share(&theirs, &ours);
    assert!(share >= 0.99, "all: {share}: {others:#?}");
}

/// Each event has the blocks of what has its share of it.
#[test]
fn limits_are_of_each_event() {
    let fixture = match fixture() {
        Ok(fixture) => fixture,
        Err(why) => return skip("perf", why),
    };
    let blocks = |text: &str| {
        let head = text.lines().filter(|line| line.starts_with(" Percent "));
        head.count()
    };
    let mut met = 0;
    for limit in ["4", "15", "40"] {
        let options = ["--percent-limit", limit, "-d", "hot"];
        let mut theirs = perf();
        theirs.args(["annotate", "--stdio", "-i"]);
        let theirs = output(theirs.arg(&fixture.faults).args(options));
        let mut ours = Command::new(env!("CARGO_BIN_EXE_pjit"));
        let ours = output(
            ours.args(["annotate", "-i"])
                .arg(&fixture.faults)
                .args(options),
        );
        assert_eq!(blocks(&ours), blocks(&theirs), "{limit}: {theirs}{ours}");
        met += blocks(&ours);
    }
    assert!(met > 0);
}

/// Headers and dashes stand byte for byte, also of the first block of each.
/// What compilers split off a function or copy of it is shown with it: `list` and `summary` count it there.
#[test]
fn parts_and_copies_come_with_their_function() {
    const PARTS: &str = r#"
        #define BODY(n) unsigned s = n; for (int i = 0; i < 20000; i++) s = s * 3 + (s ^ i); return s;
        __attribute__((noinline)) unsigned work(int n) { BODY(n) }
        __attribute__((noinline)) unsigned part(int n) __asm__("work.cold");
        __attribute__((noinline)) unsigned copy(int n) __asm__("work.constprop.0");
        __attribute__((noinline)) unsigned other(int n) __asm__("work.other");
        unsigned part(int n) { BODY(n + 1) }
        unsigned copy(int n) { BODY(n + 2) }
        unsigned other(int n) { BODY(n + 3) }
        int main(void) {
            volatile unsigned s = 0;
            for (int i = 0; i < 2000; i++) s += work(i) + part(i) + copy(i) + other(i);
            return 0;
        }"#;
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("p.c"), folder.path().join("p"));
    std::fs::write(&source, PARTS).expect("it can be written");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-o"]).args([&program, &source]);
    if has_perf_6().is_err() || !succeeds(&mut compile) {
        return skip("perf", "no perf 6 or no C compiler here");
    }
    let file = folder.path().join("p.data");
    let mut record = perf();
    record.args(["record", "-q", "-F", "999", "-e", "cpu-clock:u", "-o"]);
    record.arg(&file).arg(&program).stdin(Stdio::null());
    if !unaborted(|| record.output()).is_ok_and(|recorded| recorded.status.success()) {
        return skip("perf", "recording is not allowed here");
    }
    let shown = |name: &str| {
        let mut pjit = pjit();
        pjit.args(["annotate", "--stdio", "-s", name, "-i"]);
        let text = output(pjit.arg(&file));
        let heads = text.lines().filter_map(|line| line.split_once(" <"));
        let heads = heads.filter_map(|(address, name)| {
            let is_head = name.ends_with(">:") && address.trim_start().starts_with(':');
            is_head.then(|| name.trim_end_matches(">:").to_owned())
        });
        let mut heads: Vec<String> = heads.collect();
        heads.sort_unstable();
        heads
    };
    assert_eq!(shown("work"), ["work", "work.cold", "work.constprop.0"]);
    assert_eq!(shown("work.cold"), ["work.cold"]);
}

#[test]
fn headers_are_perfs() {
    let fixture = match fixture() {
        Ok(fixture) => fixture,
        Err(why) => return skip("perf", why),
    };
    let head = |text: &str| text.lines().take(6).map(str::to_owned).collect::<Vec<_>>();
    for (file, options) in [
        (&fixture.one, &["spin"][..]),
        (&fixture.one, &["-n", "spin"]),
        (&fixture.one, &["--show-total-period", "spin"]),
        (&fixture.two, &["--group", "spin"]),
        (&fixture.group, &["spin"]),
        (&fixture.group, &["--show-total-period", "spin"]),
    ] {
        let theirs = output(
            perf()
                .args(["annotate", "--stdio", "-i"])
                .arg(file)
                .args(options),
        );
        let ours = output(
            Command::new(env!("CARGO_BIN_EXE_pjit"))
                .arg("annotate")
                .arg("-i")
                .arg(file)
                .args(options),
        );
        assert_eq!(head(&ours), head(&theirs), "{options:?}");
    }
}

/// Of events side by side the first one decides which functions are shown.
#[test]
fn groups_show_what_their_first_event_hit() {
    let fixture = match fixture() {
        Ok(fixture) => fixture,
        Err(why) => return skip("perf", why),
    };
    let options = ["--group", "--no-source", "-i"];
    let theirs = output(
        perf()
            .args(["annotate", "--stdio"])
            .args(options)
            .arg(&fixture.faults),
    );
    let mut pjit = Command::new(env!("CARGO_BIN_EXE_pjit"));
    let ours = output(pjit.arg("annotate").args(options).arg(&fixture.faults));
    let heads = |text: &str| {
        let heads = text.lines().filter(|line| line.contains("|\tSource code"));
        let mut heads: Vec<String> = heads.map(str::to_owned).collect();
        heads.sort();
        heads
    };
    assert!(!heads(&theirs).is_empty());
    assert_eq!(heads(&ours), heads(&theirs));
    // `choose` is hit by the second event only.
    assert!(!ours.contains("<choose>:\n"), "{ours}");
}

/// A program in the place of the kernel of `samples/native`, linked at another address or at the recorded one, with a function of
/// four instructions over and over for each of its kernel's symbols. `None` without a compiler.
fn vmlinux(folder: &Path, name: &str, address: u64) -> Option<PathBuf> {
    const RECORDED: u64 = 0xffff_ffff_8100_0000;
    const END: u64 = RECORDED + 0x130_0000;
    let packed = std::fs::File::open(sample("native", "kallsyms.gz")).expect("the sample is there");
    let symbols = std::io::read_to_string(flate2::read::GzDecoder::new(packed)).expect("text");
    let mut functions: Vec<(u64, &str)> = Vec::new();
    for line in symbols.lines() {
        let [address, kind, name] = line.split(' ').collect::<Vec<_>>()[..] else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).expect("an address");
        if (RECORDED..END).contains(&address) && "tTwW".contains(kind) {
            functions.push((address, name));
        }
    }
    functions.sort_unstable();
    let mut code = String::from(".text\n");
    for (at, &(address, name)) in functions.iter().enumerate() {
        let next = functions
            .iter()
            .map(|next| next.0)
            .find(|next| *next > address);
        let size = next.map_or(4096, |next| next - address).min(4096);
        let offset = address - RECORDED;
        code += &format!(
            ".org {offset}\n.globl {name}\n.type {name},@function\n{name}:\n.size {name},{size}\n"
        );
        if functions.get(at + 1).is_none_or(|next| next.0 != address) {
            code += &format!(
                ".rept {}\nmov 8(%rdi),%rax\ntest %rax,%rax\njne _text\nnop\n.endr\n",
                size / 14
            );
        }
    }
    let (source, program) = (folder.join("kernel.s"), folder.join(name));
    std::fs::write(&source, code).expect("it can be written");
    let mut link = Command::new("cc");
    link.args(["-g", "-nostdlib", "-static", "-Wl,-e,_text"])
        .arg(format!("-Wl,-Ttext={address:#x}"))
        .arg("-Wl,--build-id=0x4a5a9b0affb66c437abcd455d2738af879985fa9")
        .arg("-o")
        .args([&program, &source]);
    succeeds(&mut link).then_some(program)
}

/// The kernel by a vmlinux, at the addresses that were recorded and elsewhere.
#[test]
fn the_kernel_is_annotated_by_its_vmlinux() {
    // Sources in hidden folders are not shown.
    let folder = tempfile::Builder::new().prefix("pjit").tempdir();
    let folder = folder.expect("a folder");
    let places = [
        ("vmlinux", 0xffff_ffff_8100_0000),
        ("vmlinux-moved", 0xffff_ffff_8020_0000),
    ];
    for (name, address) in places {
        let Some(kernel) = vmlinux(folder.path(), name, address) else {
            return skip("cc", "no C compiler here");
        };
        let kernel = kernel.to_str().expect("a plain path");
        let of_kernel = |text: &str| {
            let mut is_kernel = false;
            let kept = text.lines().filter(|line| {
                if line.contains("|\tSource code") {
                    is_kernel = line.contains(&format!(" of {name} for "));
                }
                is_kernel
            });
            kept.map(|line| format!("{line}\n")).collect::<String>()
        };
        let root = folder.path().to_str().expect("a plain path");
        // It was compiled from elsewhere.
        let options = ["-k", kernel, "--source-root", root];
        let (status, ours, said) = annotate(&options, "native");
        let ours = of_kernel(&ours);
        assert_eq!(
            (status, said.contains("no code")),
            (Some(0), false),
            "{said}"
        );
        let found = blocks(&ours);
        let samples: u64 = found.iter().map(|block| block.samples).sum();
        assert_eq!((found.len(), samples), (13, 18), "{ours}");
        let hit = format!("{:x}:       jne    {address:x}", address + 0x6f_8511);
        assert!(
            ours.contains(&format!("   33.33 :   {hit} <")),
            "{hit}: {ours}"
        );
        assert!(
            ours.contains("test %rax,%rax"),
            "lines of the source: {ours}"
        );
        // The same of another build.
        let mut other = std::fs::read(kernel).expect("it is there");
        let id = b"\x4a\x5a\x9b\x0a\xff\xb6";
        let at = other.windows(6).position(|bytes| bytes == id);
        other[at.expect("a build ID")] = 0;
        let path = folder.path().join("other");
        std::fs::write(&path, other).expect("it can be written");
        let said = annotate(&["-k", path.to_str().expect("a plain path")], "native").2;
        assert!(said.contains("other: build ID is 005a9b0aff"), "{said}");
        // perf of the same.
        if let Err(why) = has_perf_6() {
            return skip("perf", why);
        }
        let theirs = perf()
            .args(["annotate", "--stdio", "-k", kernel, "-i"])
            .arg(sample("native", "perf.data"))
            .output()
            .expect("it runs");
        let theirs = of_kernel(&String::from_utf8_lossy(&theirs.stdout));
        let (share, others) = share(&theirs, &ours);
        assert!(
            share >= 0.99 && theirs.lines().count() > 2000,
            "{name}: {share}: {others:#?}"
        );
    }
}

/// The view on a sample, which has to be named with `-i`: what stands alone is a function.
fn annotate(options: &[&str], name: &str) -> (Option<i32>, String, String) {
    let output = pjit()
        .args(["annotate", "-i"])
        .arg(sample(name, "perf.data"))
        .arg("--symfs")
        .arg(sample(name, "symfs"))
        .args(options)
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A block of the output: its object, its name, its number of samples, and the number before each instruction.
struct Block {
    object: String,
    name: String,
    samples: u64,
    numbers: Vec<f64>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    for line in text.lines() {
        if let Some((_, rest)) = line
            .split_once("Disassembly of ")
            .filter(|_| line.contains("|\tSource code"))
        {
            let object = rest.split(' ').next().unwrap_or_default().to_owned();
            let samples = rest
                .split_once(" samples,")
                .and_then(|(front, _)| front.rsplit_once('('));
            let samples = samples
                .and_then(|(_, number)| number.parse().ok())
                .expect("a number of samples");
            found.push(Block {
                object,
                name: String::new(),
                samples,
                numbers: Vec::new(),
            });
        }
        let Some(block) = found.last_mut() else {
            continue;
        };
        if let Some((_, name)) = line
            .split_once('<')
            .filter(|_| line.ends_with(">:") && block.name.is_empty())
        {
            block.name = name.trim_end_matches(">:").to_owned();
        }
        let number = line
            .split_once(" :  ")
            .and_then(|(number, _)| number.trim().parse::<f64>().ok());
        block.numbers.extend(number);
    }
    found
}

#[test]
fn sums_are_those_of_the_report() {
    for name in SAMPLES {
        let percent = blocks(&annotate(&["--no-source", "--skip-missing"], name).1);
        let counted = blocks(&annotate(&["--no-source", "--skip-missing", "-n"], name).1);
        assert!(!counted.is_empty(), "{name}");
        for block in &percent {
            let sum: f64 = block.numbers.iter().sum();
            let rounding = 0.005 * block.numbers.len() as f64;
            assert!(
                (sum - 100.0).abs() <= 0.1f64.max(rounding.min(0.5)),
                "{name} {}: {sum}",
                block.name
            );
        }
        let mut of_annotate: BTreeMap<(String, String), u64> = BTreeMap::new();
        for block in &counted {
            let sum: f64 = block.numbers.iter().sum();
            assert_eq!(sum as u64, block.samples, "{name} {}", block.name);
            *of_annotate
                .entry((block.object.clone(), block.name.clone()))
                .or_default() += block.samples;
        }
        let report = stdout_of(
            &[
                "report",
                "--stdio",
                "--no-children",
                "-g",
                "none",
                "-n",
                "-s",
                "dso,sym",
                "-t",
                "\u{1}",
            ],
            name,
        );
        let rows = report
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let mut of_report: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in rows {
            let fields: Vec<&str> = row.split('\u{1}').map(str::trim).collect();
            if let [_, samples, object, symbol] = fields[..] {
                let symbol = symbol.get(4..).unwrap_or_default().to_owned();
                *of_report.entry((object.to_owned(), symbol)).or_default() +=
                    samples.parse::<u64>().expect("a number");
            }
        }
        for (key, samples) in of_annotate
            .iter()
            .filter(|((object, _), _)| object.starts_with("jit-"))
        {
            assert_eq!(of_report.get(key), Some(samples), "{name} {key:?}");
        }
    }
}

/// No instruction of JIT code hides a sample: bytes are shown only where the sweep had to begin again.
#[test]
fn jit_samples_stand_at_instructions() {
    for (name, wanted) in [("minijit", 100), ("wasmtime", 40), ("node", 40)] {
        let text = annotate(&["--no-source", "--skip-missing", "-n"], name).1;
        let (mut at_instruction, mut elsewhere, mut is_jit) = (0u64, 0u64, false);
        for line in text.lines() {
            if line.contains("|\tSource code") {
                is_jit = line.contains("Disassembly of jit-");
            }
            let Some((number, rest)) = line.split_once(" :  ").filter(|_| is_jit) else {
                continue;
            };
            let number: u64 = number.trim().parse().expect("a number");
            let text = rest
                .split_once(':')
                .map_or("", |(_, text)| text.trim_start());
            if text.starts_with(['.', '(']) {
                elsewhere += number;
            } else {
                at_instruction += number;
            }
        }
        assert_eq!(elsewhere, 0, "{name}");
        assert!(
            at_instruction >= wanted,
            "{name}: {at_instruction} samples in JIT code"
        );
    }
}

/// What is inlined everywhere has lines, and no code of its own.
#[test]
fn what_has_no_code_of_its_own_says_where_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "static inline __attribute__((always_inline)) int twice(int n) {\n  volatile int sum = n;\n  BODY return sum;\n}\n\
        __attribute__((noinline)) int one(int n) { return twice(n); }\n\
        __attribute__((noinline)) int other(int n) { return twice(n + 1); }\n\
        int main(int n, char **v) { return one(n) + other(n); }\n";
    let source = source.replace("BODY", &"sum += n;".repeat(100));
    fs::write(folder.path().join("a.c"), source).expect("written");
    let program = folder.path().join("a");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-o", "a", "a.c"])
        .current_dir(&folder);
    if !succeeds(&mut cc) {
        return skip("c++", "it cannot be built");
    }
    let elf = fs::read(&program).expect("built");
    let data = folder.path().join("it.data");
    let path = program.to_str().expect("a plain path");
    fs::write(&data, recording_of(path.as_bytes(), &code(&elf))).expect("written");
    let ask = |name: &str| {
        let output = pjit().args(["annotate", name, "-i"]).arg(&data).output();
        let output = output.expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (status, said) = ask("twice");
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.starts_with("error: 'twice' has no code of its own: it is inlined into "),
        "{said}"
    );
    let path = data.display();
    for part in [
        "one (",
        "other (",
        " samples)",
        &format!("hint: pjit list twice -i {path}, or pjit annotate o"),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(ask("one").0, Some(0));
    let (status, said) = ask("three");
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("no function with samples matches 'three'"),
        "{said}"
    );
}

#[test]
fn messages_say_what_to_do() {
    let (status, _, text) = annotate(&["addmuk"], "wasmtime");
    assert_eq!(status, Some(1));
    assert!(
        text.contains("no function with samples matches 'addmuk'; similar: addmul"),
        "{text}"
    );
    let (status, _, text) = annotate(&["-s", "addmul", "--tui"], "wasmtime");
    assert_eq!((status, text.contains("--tui")), (Some(2), true), "{text}");
    let (status, _, text) = annotate(&["--percent-limit", "101"], "wasmtime");
    assert_eq!(
        (status, text.contains("--percent-limit hide")),
        (Some(1), true),
        "{text}"
    );
    let (status, _, text) = annotate(&["addmul", "--objdump", "/nowhere"], "wasmtime");
    assert_eq!(
        (status, text.contains("--objdump: not needed")),
        (Some(0), true),
        "{text}"
    );
}

/// A recording of `tests/data/aarch64.elf` that was never made: samples at every third instruction, heavier ones in between.
fn on_aarch64(folder: &Path, program: &[u8], mapped: u64) -> PathBuf {
    let path = folder.join("aarch64.elf");
    std::fs::write(&path, program).expect("it can be written");
    let mut recording = Recording::new(Stacks::None);
    recording.comm(7, 7, b"aarch64.elf");
    let name = path.to_str().expect("a plain path");
    recording.map(7, 0x21_0000, 0x1000, mapped, name.as_bytes());
    for (number, ip) in (0x21_01ac_u64..0x21_0330).step_by(12).enumerate() {
        let number = number as u64;
        recording.sample(&Sample {
            ip,
            pid: 7,
            tid: 7,
            time: 1_000 + number,
            period: 100 + number * number % 37,
            chain: &[],
            user: None,
        });
    }
    const ARCH: u32 = 6;
    recording.text_feature(ARCH, b"aarch64");
    recording.name_event(b"cycles");
    let file = folder.join("aarch64.data");
    std::fs::write(&file, recording.file()).expect("it can be written");
    file
}

fn aarch64_program() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/aarch64.elf");
    std::fs::read(file).expect("it is there")
}

/// perf with the objdump of that architecture prints the same blocks, with and without the source.
#[test]
fn aarch64_blocks_are_perfs() {
    if let Err(why) = has_perf_6() {
        return skip("perf", why);
    }
    let objdump = "aarch64-linux-gnu-objdump";
    if !succeeds(Command::new(objdump).arg("--version")) {
        return skip("objdump-aarch64", "it cannot be run");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = on_aarch64(folder.path(), &aarch64_program(), 0);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let prefix = format!("--prefix={}", data.display());
    let source = ["--prefix-strip=1", prefix.as_str()];
    for options in [
        &["spin"][..],
        &["choose"],
        &["-n", "roots"],
        &["--no-source", "_start"],
        &["--asm-raw", "spin"],
        &["--percent-limit", "5"],
    ] {
        let theirs = output(
            perf()
                .args(["annotate", "--stdio", "--objdump", objdump, "-i"])
                .arg(&file)
                .args(source)
                .args(options),
        );
        let ours = output(
            Command::new(env!("CARGO_BIN_EXE_pjit"))
                .args(["annotate", "-i"])
                .arg(&file)
                .args(source)
                .args(options),
        );
        assert!(
            theirs.lines().count() > 20,
            "{options:?}: perf prints {theirs}"
        );
        let (share, others) = share(&theirs, &ours);
        assert!(share == 1.0, "{options:?}: {share}: {others:#?}");
    }
}

/// Where the segment of a symbol lies behind the end of the file.
#[test]
fn code_that_the_file_does_not_hold_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = aarch64_program();
    // The offset of the third segment, which has the code.
    let at = 64 + 2 * 56 + 8;
    program[at..at + 8].copy_from_slice(&0x10_01ac_u64.to_le_bytes());
    let file = on_aarch64(folder.path(), &program, 0x10_0000);
    let ask = |options: &[&str]| {
        let output = pjit()
            .args(["annotate", "-i"])
            .arg(&file)
            .args(options)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (status, said) = ask(&["spin"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("has no bytes for this function: it lies outside of what the file holds"),
        "{said}"
    );
}
