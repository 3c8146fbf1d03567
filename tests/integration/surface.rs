//! Option by option against the perf of this machine: fresh recordings of a small program, the same text.
//!
//! Skipped with a message where there is no perf 6, no C compiler, or recording is not allowed. (perf 7 lays some of it out
//! in another way.) What differs on purpose is not among the options here; docs/perf.md lists it. A line may stand elsewhere
//! when rows or branches have equal weight, because perf orders those by heap addresses.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{perf, pjit, skip};

const PROGRAM: &str = r"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#define F __attribute__((noinline))
static volatile unsigned long sink;
static unsigned long mix(unsigned long x) { for (int i = 0; i < 50; i++) x = x * 6364136223846793005UL + (x >> 7); return x; }
F void leaf_a(int n) { for (int i = 0; i < n; i++) sink += mix(i); }
F void leaf_b(int n) { for (int i = 0; i < n; i++) sink ^= mix(sink + i); sink++; }
F void mid(int n) { leaf_a(n); leaf_b(n / 2); sink++; }
F void rec(int d, int n) { if (d) rec(d - 1, n); else mid(n); sink++; }
static void *thread(void *n) { rec(3, (int)(long)n); return 0; }
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, thread, (void *)60000L);
    for (int i = 0; i < 20; i++) { rec(i % 4, 12000); mid(12000); }
    pthread_join(t, 0);
    if (!fork()) { mid(100000); _exit(0); }
    wait(0);
    return 0;
}
";

/// What is recorded: name, and the options of `perf record`.
const RECORDINGS: [(&str, &str); 5] = [
    ("flat", "-e cpu-clock:u -c 500000"),
    ("chains", "-e cpu-clock:u -c 500000 -g"),
    (
        "cpus",
        "-e cpu-clock:u -c 500000 -g --sample-cpu --namespaces -s -d -T --code-page-size",
    ),
    ("two", "-e cpu-clock:u,task-clock:u -c 1000000 -g"),
    ("group", "-e {cpu-clock:u,task-clock:u}:S -F 1999 -g"),
];

/// Options of reports, for all recordings with chains.
const GRAPHS: &str = "
-g caller -G
-g caller --no-children
-g callee
-g callee --no-children
-g
-g --no-children
-ng
-gnone
-Gn
-G --no-children
--inverted
--call-graph
--call-graph=graph,5
--call-graph fractal,10,caller,period
-g fractal,0.5 --no-children
-g flat
-g flat,period --no-children
-g folded
-g folded,count,callee --no-children
-g folded,0 -t,
-g graph,0.5,3
-g graph,0.5,10,caller,function,period
-g gr,0.5,calle,fu,pe
-g 5
-g 0,2
-g count
-g period,caller,graph,3
-g none
-g none --no-children
-g caller,none
--no-call-graph
--percent-limit 5 -g caller
-g caller,2 --percent-limit 5
--max-stack 2
--max-stack 2 --no-children
-s parent
-s parent -p ^mid$
-p ^mid$
-p ^mid$ -g none
--ignore-callees ^mid$ --no-children
-s overhead_children,sym
-F overhead_children,overhead,sym
-U --no-children
";

/// Options of reports, for all recordings.
const TABLES: &str = "
-s comm
-s pid
-s dso
-s sym
-s symbol
-s addr --no-children
-s addr,sym -g caller --no-children --percent-limit 2
--hierarchy -s {code_page_size,addr},sym -g none
-F overhead,addr,code_page_size -w 2,2,30 -g none --no-children
-s cpu
-s socket --no-children
-s period,sym
-s sample,sym
-s overhead,sym
-s symbol_size,sym
-s dso_size
-s dso_size,dso --no-children
-s sym,dso_size
-F overhead,dso_size,comm
-s srcfile --no-children
-s +cpu
-s pid,comm,dso,sym,cpu
-s Com,DSO
-F overhead,sym
-F sym,overhead
-F overhead,sym -t,
-F +period
-F sample,period,dso -s dso
-F comm,dso,sym,overhead,overhead_sys,overhead_us
-F overhead_guest_sys,overhead_guest_us,sym
-F pid,sym
--fields dso,overhead
--field-s=,
-c a.out
-c a.out,ls
-d a.out --no-children
-d a.out,libc.so.6 --no-children
-S leaf_a --no-children
-S leaf_a,leaf_b --no-children
-c a.out -d a.out -S leaf_a --no-children
--percentage relative
--percentage relative -d a.out --no-children
--percentage absolute -d a.out --no-children
--percentage relative -S leaf_a --percent-limit 5 --no-children
--percent-l 5
-U
-m
--ignore-vmlinux
-w 10
-w 4,8,12
-w 4,8,12,100
-w 0,0,0,0
-t,
-t ;
-t \\t
-t ::
-n
--show-nr-samples --show-total-period
--show-n
--show-cpu-utilization
--header
--header-only
-I --header-only
-I
--stats
--tasks
--mmaps
--tasks --mmaps
-q
-f
-v -g none
--stdio-color always
--stdio-color=never
--stdio-color
--demangle
--no-demangle
--demangle-kernel
--time 10%/2
--time 10%-20%
--time 0%-10%,30%-40%
--time 10%/1,10%/3
--time ,999999999
--time 1,
--sort dso,symbol -t, --no-children
--hier -g none
--hierarchy -g none --percent-limit 5
--hierarchy -g none -s dso,sym
--hierarchy -g none -s comm,{dso,sym}
--hierarchy -g none -n
--hierarchy -g none -w 10,20
--hierarchy -g none -t,
--hierarchy --no-children
--hierarchy
--group
--no-group
--group -g none -n --show-total-period
--group --percent-limit 3
--skip-empty
--full-source-path
-M intel
--samples 3
--percent-type local-period
--asm-raw --source
--pretty normal
--no-ch --no-inl
";

/// Options of reports, for the recording with CPU numbers.
const CPUS: &str = "
-C 0
-C 0,1
-C 0-1 -s cpu,sym
-s cpu,socket
-s code_page_size --no-children
-s code_page,sym -g none --no-children
-s comm,code_page_size,sym -g caller --no-children --percent-limit 3
-s cgroup_id --no-children
-s cgroup_id,comm -g none --no-children
--socket-filter 0
-T
";

/// Options of reports, for recordings of one event. (perf applies the filter to the first event only.)
const SINGLES: &str = "
--symbol-filter leaf
--symbol-filter=leaf_a -n
leaf_a
";

/// Options of reports, for recordings of several events.
const SEVERAL: &str = "
--group --group-sort-idx 1
--group --group-sort-idx 1 --no-children -g none
";

/// Fields of `perf script -F`. Widths of thread ids and addresses of frames differ between versions of perf.
const SCRIPTS: &str = "
-F comm,tid,time,ip,sym
-F ip,sym
-F ip
-F ip,sym,symoff
-F ip,sym,dso
-F comm
-F pid
-F tid
-F comm,pid,tid
-F time,event
-F period
-F comm,period,event
-F comm,tid,event,ip,sym,dso
-F comm,tid,pid,time,event,period,ip,sym,symoff,dso
-F -dso
-F +period
-F -comm,-tid
-F -symoff
-F symoff
-F srcline
--ns
--reltime
--deltatime -F time,event
-G
-G -F ip,sym,symoff,dso
--max-stack 2
--time 10%/2
--comms a.out
-f
";

/// Why it cannot run here.
fn prepare(folder: &Path) -> Result<(), (&'static str, String)> {
    let perf = |words: &[&str]| {
        Command::new("perf")
            .args(words)
            .current_dir(folder)
            .env("HOME", folder)
            .stdin(Stdio::null())
            .output()
    };
    let version = perf(&["--version"]).map_err(|_| ("perf", "it cannot be run".to_owned()))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with("perf version 6.") {
        return Err(("perf", format!("it is {}", version.trim())));
    }
    std::fs::write(folder.join("a.c"), PROGRAM).expect("it can be written");
    let compiled = Command::new("cc")
        .args("-O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread a.c".split(' '))
        .current_dir(folder)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return Err(("cc", "it compiles nothing".to_owned()));
    }
    for (name, options) in RECORDINGS {
        let file = format!("{name}.data");
        let words = ["record", "-q", "-N", "-o", &file];
        let words: Vec<&str> = words
            .into_iter()
            .chain(options.split(' '))
            .chain(["./a.out"])
            .collect();
        for _ in 0..20 {
            let made = perf(&words).map_err(|error| ("perf", error.to_string()))?;
            if !made.status.success() {
                let said = String::from_utf8_lossy(&made.stderr);
                return Err(("perf", format!("it cannot record {name}: {}", said.trim())));
            }
            // Now and then a sample is taken in the loader, for which binutils, which perf asks, takes a header's lines for
            // those of another file where the loader's debug information is installed; or at the start of the table of linked
            // functions, which perf 6.1 takes for the function before it.
            let dsos = perf(&[
                "report", "--stdio", "-i", &file, "-s", "dso,sym", "-g", "none",
            ]);
            let dsos = dsos.map_err(|error| ("perf", error.to_string()))?.stdout;
            let dsos = String::from_utf8_lossy(&dsos);
            if !dsos.contains("ld-linux") && !dsos.contains("_init") {
                break;
            }
        }
    }
    Ok(())
}

/// Standard output, and whether it ended well.
fn run(mut command: Command, view: &str, file: &str, line: &str, folder: &Path) -> (bool, String) {
    command.arg(view);
    if view == "report" {
        command.arg("--stdio");
    }
    let output = command
        .args(["-i", file, "--no-inline"])
        .args(line.split_whitespace())
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

/// Without what belongs to one of the two: the quality line, the tip, blanks at the ends of headers of scripts.
fn lines(text: &str, view: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("# Quality: ") {
            lines.next();
        } else if line.starts_with("# (") {
            out.push("# (tip)".to_owned());
        } else if view == "script" && line.starts_with('\t') {
            let name = line.trim().split_once(' ').map_or("", |(_, name)| name);
            out.push(format!("ADDRESS {name}"));
        } else if view == "script" {
            out.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
        } else {
            out.push(line.to_owned());
        }
    }
    while out.last().is_some_and(String::is_empty) {
        out.pop();
    }
    out
}

/// The first difference, if there is one beyond the order of ties.
fn difference(view: &str, file: &str, line: &str, folder: &Path) -> Option<String> {
    let (is_fine, wanted) = run(perf(), view, file, line, folder);
    // perf does not tell where frames are missing.
    let marks = if view == "report" {
        "--no-cut-marks "
    } else {
        ""
    };
    let (is_done, got) = run(pjit(), view, file, &format!("{marks}{line}"), folder);
    let (wanted, got) = (lines(&wanted, view), lines(&got, view));
    let sorted = |lines: &[String]| {
        let mut lines = lines.to_vec();
        lines.sort();
        lines
    };
    // perf ends well with an empty report, and says an error after the first lines of one.
    let has_rows = |lines: &[String]| lines.iter().any(|l| !l.is_empty() && !l.starts_with('#'));
    if !has_rows(&wanted) && !line.contains("-only") {
        return has_rows(&got).then(|| format!("{view} {file} {line}: only pjit has rows"));
    }
    if is_fine == is_done && sorted(&wanted) == sorted(&got) {
        return None;
    }
    let at = wanted
        .iter()
        .zip(&got)
        .position(|(a, b)| a != b)
        .unwrap_or(wanted.len().min(got.len()));
    let of = |lines: &[String]| lines.get(at).map_or("(end)", |l| l).to_owned();
    Some(format!(
        "{view} {file} {line}\n  line {at}\n  perf {:?}\n  pjit {:?}",
        of(&wanted),
        of(&got)
    ))
}

fn options(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.is_empty())
}

#[test]
fn every_option_prints_what_perf_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Err((oracle, why)) = prepare(folder.path()) {
        skip(oracle, &why);
        return;
    }
    let mut compared = 0;
    let mut different = Vec::new();
    let mut compare = |view: &str, name: &str, line: &str| {
        compared += 1;
        different.extend(difference(
            view,
            &format!("{name}.data"),
            line,
            folder.path(),
        ));
    };
    // Every line on the recording with chains, and in turn on one of the others.
    let others = ["flat", "cpus", "two", "group"];
    for (i, line) in options(TABLES).enumerate() {
        compare("report", "chains", line);
        compare("report", others[i % others.len()], line);
    }
    for (i, line) in options(GRAPHS).enumerate() {
        compare("report", "chains", line);
        compare("report", others[1 + i % 3], line);
    }
    for (i, line) in options(SCRIPTS).enumerate() {
        compare("script", "chains", line);
        compare("script", others[i % others.len()], line);
    }
    for name in ["two", "group"] {
        options(SEVERAL).for_each(|line| compare("report", name, line));
    }
    options(SINGLES).for_each(|line| compare("report", "chains", line));
    options(CPUS).for_each(|line| compare("report", "cpus", line));
    let unexpected: Vec<_> = different
        .iter()
        .filter(|found| !KNOWN.iter().any(|(known, _)| found.starts_with(known)))
        .collect();
    assert!(
        unexpected.is_empty(),
        "{} of {compared} print differently, {} as expected:\n{unexpected:#?}",
        different.len(),
        different.len() - unexpected.len()
    );
    assert!(compared > 300, "{compared} lines were compared");
}

/// What prints differently, by view, recording and options, and why that is right.
const KNOWN: [(&str, &str); 0] = [];
