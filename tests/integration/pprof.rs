//! Exports in `go tool pprof` (Debian: golang-go): the same functions, stacks, labels and sums as everywhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use object::Object as _;
use serde_json::Value;

use crate::support::{bare, cells, folded, run, sample, skip, stdout_of};

/// A folder with an exported sample; nothing without go.
struct Exported {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Exported {
    fn of(name: &str, options: &[&str]) -> Option<Self> {
        let version = Command::new("go").arg("version").output();
        if !version.is_ok_and(|output| output.status.success()) {
            skip("go", "it cannot be run");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.pb.gz");
        let mut arguments = vec!["export", "-o", file.to_str().expect("UTF-8")];
        arguments.extend(options);
        let output = run(&arguments, name);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {said}");
        Some(Self { folder, file })
    }

    fn go(&self, options: &[&str]) -> Command {
        let mut go = Command::new("go");
        go.args([
            "tool",
            "pprof",
            "-unit=ns",
            "-nodefraction=0",
            "-edgefraction=0",
        ])
        .args(options)
        .arg(&self.file)
        .env("PPROF_TMPDIR", self.folder.path())
        .env("HOME", self.folder.path());
        go
    }

    fn ask(&self, options: &[&str]) -> String {
        let output = self.go(options).output().expect("go can be run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{options:?}: {text}{said}");
        text
    }

    /// Rows of `-top` and `-peek`: own and whole weight of each function.
    fn top(&self, options: &[&str]) -> BTreeMap<String, (i64, i64)> {
        let mut all = vec!["-top", "-nodecount=0"];
        all.extend(options);
        let text = self.ask(&all);
        let rows = text
            .lines()
            .skip_while(|line| !line.contains("flat%"))
            .skip(1);
        rows.map(|row| {
            let cells: Vec<&str> = row.split_whitespace().collect();
            (cells[5..].join(" "), (ns(cells[0]), ns(cells[3])))
        })
        .collect()
    }
}

fn ns(cell: &str) -> i64 {
    let digits = cell.trim_end_matches("ns").trim_end_matches(".0");
    digits
        .parse()
        .unwrap_or_else(|_| panic!("not a number of ns: {cell:?}"))
}

/// Sum of the periods.
fn total(name: &str) -> i64 {
    let stacks = folded(&stdout_of(&["fold"], name));
    stacks.values().sum::<u64>() as i64
}

/// Periods by one key, as reported.
fn reported(name: &str, key: &str) -> Vec<(i64, String)> {
    let mut view = bare("period", key);
    view.push("--no-inline".to_owned());
    let mut rows = Vec::new();
    for (period, [key]) in cells(&stdout_of(&view, name)) {
        rows.push((i64::try_from(period).expect("a period"), key));
    }
    rows
}

#[test]
fn top_has_the_rows_of_the_report() {
    for name in ["minijit", "node", "wasmtime"] {
        let Some(exported) = Exported::of(name, &["--no-inline"]) else {
            return;
        };
        let top = exported.top(&[]);
        assert_eq!(
            top.values().map(|(flat, _)| flat).sum::<i64>(),
            total(name),
            "{name}"
        );
        // Rows of one name in two objects are one function to pprof; what has no name is one for each object.
        let mut rows: BTreeMap<String, i64> = BTreeMap::new();
        for (period, symbol) in reported(name, "sym") {
            *rows.entry(symbol).or_default() += period;
        }
        let mut rows: Vec<(i64, String)> =
            rows.into_iter().map(|(name, own)| (own, name)).collect();
        rows.sort_by(|a, b| b.cmp(a));
        rows.retain(|(_, symbol)| !symbol.starts_with("0x"));
        for (own, symbol) in rows.iter().take(5) {
            assert_eq!(
                top.get(symbol).map(|(flat, _)| flat),
                Some(own),
                "{name}: {symbol}"
            );
        }
        let mut heaviest: Vec<i64> = top
            .iter()
            .filter(|(name, _)| !name.starts_with('['))
            .map(|(_, (flat, _))| *flat)
            .collect();
        heaviest.sort_unstable_by_key(|flat| -flat);
        let five = rows.iter().take(5).map(|(own, _)| *own);
        assert_eq!(
            heaviest.into_iter().take(5).collect::<Vec<_>>(),
            five.collect::<Vec<_>>(),
            "{name}"
        );
    }
}

#[test]
fn inlined_functions_can_be_left_out_afterwards() {
    let (Some(inlined), Some(plain)) = (
        Exported::of("native", &[]),
        Exported::of("native", &["--no-inline"]),
    ) else {
        return;
    };
    assert!(
        inlined
            .top(&[])
            .keys()
            .any(|name| name.ends_with("(inline)"))
    );
    assert_eq!(inlined.top(&["-noinlines"]), plain.top(&[]));
}

#[test]
fn peek_shows_callers_and_callees_of_a_function() {
    let Some(exported) = Exported::of("wasmtime", &[]) else {
        return;
    };
    let stacks = folded(&stdout_of(&["fold"], "wasmtime"));
    let (stack, _) = stacks
        .iter()
        .max_by_key(|(_, weight)| **weight)
        .expect("stacks");
    let leaf = stack.rsplit(';').next().expect("a frame");
    let text = exported.ask(&["-peek", &format!("^{}$", regex::escape(leaf))]);
    let own: u64 = stacks
        .iter()
        .filter(|(stack, _)| stack.rsplit(';').next() == Some(leaf))
        .map(|(_, w)| *w)
        .sum();
    let row = text.lines().find(|line| {
        line.ends_with(&format!("| {leaf}")) && line.contains('%') && line.split('%').count() > 3
    });
    let row = row.unwrap_or_else(|| panic!("no row of {leaf}:\n{text}"));
    assert_eq!(
        ns(row.split_whitespace().next().expect("a cell")),
        own as i64
    );
}

/// Caller, callee, weight.
type Edges = BTreeMap<(String, String), i64>;

/// All edges of `pprof -peek .`: callers stand above the line with five numbers, what it calls below.
fn edges_of_pprof(text: &str) -> Edges {
    let mut edges = Edges::new();
    for block in text.split("--+--").skip(2) {
        let rows = block.lines().filter_map(|line| line.split_once('|'));
        let rows: Vec<(Vec<&str>, &str)> = rows
            .map(|(cells, name)| (cells.split_whitespace().collect(), name.trim()))
            .collect();
        let Some(at) = rows.iter().position(|(cells, _)| cells.len() == 5) else {
            continue;
        };
        let name = |row: usize| rows[row].1.trim_end_matches(" (inline)").to_owned();
        for (row, (cells, _)) in rows.iter().enumerate().filter(|(row, _)| *row != at) {
            let (caller, callee) = if row < at { (row, at) } else { (at, row) };
            edges.insert((name(caller), name(callee)), ns(cells[0]));
        }
    }
    edges
}

/// Edges of `pjit peek .` by the functions' whole names, and the names that stand for just one of the functions shown.
fn edges_of_peek(name: &str) -> (Edges, BTreeSet<String>) {
    let view = ["peek", ".", "--format", "json", "--budget", "1000000"];
    let answer: Value = serde_json::from_str(&stdout_of(&view, name)).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let focus = answer["focus"].as_array().expect("functions");
    let names: BTreeMap<String, String> = focus
        .iter()
        .map(|function| (text(&function["id"]), text(&function["full"])))
        .collect();
    let mut edges = Edges::new();
    for function in focus {
        let own = text(&function["full"]);
        for side in ["callers", "callees"] {
            for other in function[side].as_array().expect("steps") {
                let Some(other_name) = other["id"].as_str().and_then(|id| names.get(id)) else {
                    continue;
                };
                let weight = other["weight"].as_i64().expect("a weight");
                let (a, b) = (own.clone(), other_name.clone());
                edges.insert(if side == "callees" { (a, b) } else { (b, a) }, weight);
            }
        }
    }
    let mut count: BTreeMap<&String, u32> = BTreeMap::new();
    names
        .values()
        .for_each(|name| *count.entry(name).or_default() += 1);
    let once = count.into_iter().filter(|(_, count)| *count == 1);
    (edges, once.map(|(name, _)| name.clone()).collect())
}

/// Every edge of `peek` weighs what it does in pprof, which leaves out those from a function to itself.
#[test]
fn peek_has_the_edges_of_pprof() {
    // Closures of one name are several functions, and are left out.
    for (name, least) in [("wasmtime", 70), ("native", 160)] {
        let Some(exported) = Exported::of(name, &[]) else {
            return;
        };
        let (ours, names) = edges_of_peek(name);
        let is_compared = |(caller, callee): &(String, String)| {
            caller != callee && names.contains(caller) && names.contains(callee)
        };
        let theirs = edges_of_pprof(&exported.ask(&["-peek", "."]));
        let pick = |edges: Edges| -> Edges {
            let edges = edges.into_iter();
            edges.filter(|(edge, _)| is_compared(edge)).collect()
        };
        let (ours, theirs) = (pick(ours), pick(theirs));
        assert!(ours.len() >= least, "{name}: {} edges", ours.len());
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn traces_are_the_stacks_of_script() {
    let Some(exported) = Exported::of("native", &[]) else {
        return;
    };
    let text = exported.ask(&["-traces"]);
    let mut shown: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for trace in text
        .split("-----------+-------------------------------------------------------")
        .skip(1)
    {
        let lines = trace.lines().skip_while(|line| {
            !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) || !line.contains("ns ")
        });
        let mut lines = lines.map(str::trim).filter(|line| !line.is_empty());
        let Some((weight, leaf)) = lines.next().and_then(|line| line.split_once("ns ")) else {
            continue;
        };
        let mut frames = vec![leaf.trim()];
        frames.extend(lines);
        let frames = frames.iter().rev().map(|frame| (*frame).to_owned());
        *shown.entry(frames.collect()).or_default() += weight.parse::<u64>().expect("a number");
    }
    assert_eq!(shown, of_script("native"));
}

/// Weight of each stack as `pjit script` prints it, root first, inlined functions marked as pprof marks them.
/// Switches were recorded first; every other view shows the clock.
#[test]
fn it_opens_with_the_event_that_other_views_show() {
    let Some(exported) = Exported::of("waits", &[]) else {
        return;
    };
    let text = exported.ask(&["-top"]);
    assert!(text.contains("Type: cpu\n"), "{text}");
}

fn of_script(name: &str) -> BTreeMap<Vec<String>, u64> {
    let script = stdout_of(&["script", "-F", "period,ip,sym"], name);
    let mut all = BTreeMap::new();
    for sample in script.split("\n\n") {
        let mut lines = sample
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let Some(period) = lines.next() else { continue };
        let frames = lines.map(|line| {
            let (_, function) = line.split_once(' ').expect("an address");
            function.replace(" (inlined)", " (inline)")
        });
        let mut frames: Vec<String> = frames.collect();
        frames.reverse();
        *all.entry(frames).or_default() += period.parse::<u64>().expect("a number");
    }
    all
}

#[test]
fn tags_weigh_what_threads_do() {
    let Some(exported) = Exported::of("native", &["--labels", "tid,event"]) else {
        return;
    };
    let text = exported.ask(&["-tags"]);
    let of_tid = text
        .split("\n\n")
        .find(|block| block.trim_start().starts_with("tid:"));
    let mut shown: Vec<(i64, String)> = of_tid
        .expect("threads")
        .lines()
        .filter_map(|line| {
            let (weight, rest) = line.split_once('(')?;
            let tid = rest.split_once(": ")?.1;
            Some((ns(weight.trim().split_once("ns")?.0), tid.to_owned()))
        })
        .collect();
    let mut rows: Vec<(i64, String)> = reported("native", "tid")
        .into_iter()
        .map(|(period, thread)| {
            (
                period,
                thread.split(':').next().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    shown.sort();
    rows.sort();
    assert_eq!(shown, rows);
    assert!(text.contains("cpu-clock"), "{text}");
}

/// CPUs are texts: a number 0 without a unit would be left out.
#[test]
fn tags_weigh_what_cpus_do() {
    let Some(exported) = Exported::of("heap", &["--labels", "cpu", "--weight", "samples"]) else {
        return;
    };
    let text = exported.ask(&["-tags", "-sample_index=samples"]);
    let script = stdout_of(&["script", "-G", "-F", "cpu"], "heap");
    let mut recorded: BTreeMap<u32, i64> = BTreeMap::new();
    for line in script.lines() {
        let cpu = line.trim().trim_matches(['[', ']']);
        *recorded.entry(cpu.parse().expect("a number")).or_default() += 1;
    }
    let rows = text.lines().filter_map(|line| line.split_once("): "));
    let shown = rows.map(|(weight, cpu)| {
        let weight = weight.split_once("ns").map_or(weight, |(count, _)| count);
        (cpu.trim().parse().expect("a CPU"), ns(weight.trim()))
    });
    assert_eq!(shown.collect::<BTreeMap<u32, i64>>(), recorded, "{text}");
}

#[test]
fn raw_has_build_ids_and_all_samples() {
    let Some(exported) = Exported::of("native", &[]) else {
        return;
    };
    let text = exported.ask(&["-raw"]);
    let samples = text.lines().filter_map(|line| {
        let (values, _) = line.split_once(": ")?;
        let mut values = values.split_whitespace().map(str::parse::<i64>);
        let (count, weight) = (values.next()?.ok()?, values.next()?.ok()?);
        values.next().is_none().then_some((count, weight))
    });
    let (mut count, mut weight) = (0, 0);
    samples.for_each(|(c, w)| (count, weight) = (count + c, weight + w));
    assert_eq!(weight, total("native"));
    let lines = stdout_of(&["script", "-G", "-F", "tid"], "native");
    assert_eq!(count, lines.lines().count() as i64);
    let mappings = text.split("Mappings").nth(1).expect("mappings");
    let program = mappings
        .lines()
        .find(|line| line.contains("hot-rust"))
        .expect("the program");
    let file = fs::read(sample("native", "symfs/tmp/pjit-sample/native/hot-rust")).expect("a file");
    let file = object::File::parse(&*file).expect("ELF");
    let id = file.build_id().expect("notes").expect("a build ID");
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(
        program.split_whitespace().any(|word| word == id),
        "{program}"
    );
    assert!(program.ends_with("[FN][FL][LN][IN]"));
}

#[test]
fn lines_of_sources_have_weights() {
    let Some(exported) = Exported::of("native", &[]) else {
        return;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/native/source");
    let places = [
        "-trim_path=/tmp/pjit-sample/native".to_owned(),
        format!("-source_path={}", source.display()),
    ];
    let text = exported.ask(&["-list", "^hot::fibonacci$", &places[0], &places[1]]);
    let listed: i64 = text
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let line = cells.get(2).and_then(|cell| cell.split(':').next());
            let is_row = line.is_some_and(|line| line.parse::<u32>().is_ok());
            cells
                .first()
                .filter(|cell| is_row && cell.ends_with("ns"))
                .map(|cell| ns(cell))
        })
        .sum();
    assert_eq!(listed, exported.top(&[])["hot::fibonacci"].0, "{text}");
    assert!(text.contains("fn fibonacci"), "{text}");
}

#[test]
fn nothing_differs_from_itself() {
    let Some(exported) = Exported::of("node", &[]) else {
        return;
    };
    let base = format!("-diff_base={}", exported.file.display());
    assert!(exported.top(&[&base]).is_empty());
    let text = exported.ask(&["-top", &base]);
    assert!(text.contains("accounting for 0, 0% of"), "{text}");
}

/// A server of pages and what `go` started for it, which all end with the test, however that ends.
struct Server(Child);

impl Server {
    fn start(mut go: Command) -> Self {
        go.stderr(Stdio::piped()).stdout(Stdio::null());
        Self(go.process_group(0).spawn().expect("go can be run"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `go tool` waits for another process, which does the work.
        let all = format!("kill -s KILL -- -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &all]).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn pages_are_served() {
    let Some(exported) = Exported::of("wasmtime", &[]) else {
        return;
    };
    // Taken again by whoever asks first: tried a few times.
    let served = (0..5).any(|_| {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port")
            .port();
        let http = format!("-http=127.0.0.1:{port}");
        let mut server = Server::start(exported.go(&["-no_browser", &http]));
        let mut said = BufReader::new(server.0.stderr.take().expect("piped"))
            .lines()
            .map_while(Result::ok);
        let is_up = said.any(|line| line.contains("Serving web UI"));
        if is_up {
            for page in ["top", "flamegraph", "peek?f=fib", "source?f=fib"] {
                let text = fetched(port, page);
                assert!(
                    text.starts_with("HTTP/1.0 200") || text.starts_with("HTTP/1.1 200"),
                    "{page}: {text}"
                );
                assert!(text.contains("fib"), "{page}");
            }
        }
        is_up
    });
    assert!(served);
}

fn fetched(port: u16, page: &str) -> String {
    let mut last = String::new();
    for _ in 0..50 {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
            let asked = write!(
                stream,
                "GET /ui/{page} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n"
            );
            let mut bytes = Vec::new();
            if asked.is_ok() && stream.read_to_end(&mut bytes).is_ok() && !bytes.is_empty() {
                return String::from_utf8_lossy(&bytes).into_owned();
            }
            last = String::from_utf8_lossy(&bytes).into_owned();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    last
}

/// Flat and cumulative weight of each function of folded stacks, whose first word is the thread's name.
fn top_of_folded(name: &str, filters: &[&str]) -> BTreeMap<String, (i64, i64)> {
    let mut view = vec!["fold"];
    view.extend(filters);
    let mut top: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for (stack, weight) in folded(&stdout_of(&view, name)) {
        let frames: Vec<&str> = stack.split(';').skip(1).collect();
        let weight = i64::try_from(weight).expect("a small weight");
        let leaf = frames.last().expect("a frame");
        top.entry((*leaf).to_owned()).or_default().0 += weight;
        let distinct: BTreeSet<&str> = frames.into_iter().collect();
        for frame in distinct {
            top.entry(frame.to_owned()).or_default().1 += weight;
        }
    }
    top
}

/// Filters mean what they mean in pprof, alone and together.
#[test]
fn filters_are_pprofs() {
    let Some(exported) = Exported::of("wasmtime", &[]) else {
        return;
    };
    let cases: [&[(&str, &str)]; 8] = [
        &[],
        &[("focus", "^addmul$")],
        &[("ignore", "^addmul$")],
        &[("hide", "^addmul$")],
        &[("hide", "wasmtime")],
        &[("show", "^(addmul|xorshift|fib)$")],
        &[("show-from", "^wasm\\[0\\]")],
        &[("focus", "^addmul$"), ("hide", "^wasmtime")],
    ];
    for case in cases {
        let of_pprof = case
            .iter()
            .map(|(key, value)| format!("-{}={value}", key.replace('-', "_")));
        let of_pprof: Vec<String> = of_pprof.collect();
        let ours: Vec<String> = case
            .iter()
            .map(|(key, value)| format!("--{key}={value}"))
            .collect();
        let theirs: Vec<&str> = of_pprof.iter().map(String::as_str).collect();
        let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
        let top = top_of_folded("wasmtime", &ours);
        assert!(top.len() > 1, "{case:?}: {top:?}");
        // Folded stacks keep `;` for themselves.
        let theirs = exported.top(&theirs).into_iter();
        let theirs: BTreeMap<_, _> = theirs
            .map(|(name, row)| (name.replace(';', ":"), row))
            .collect();
        assert_eq!(top, theirs, "{case:?}");
    }
}

/// Profiles of two hosts are one to pprof, and a label takes each out again.
#[test]
fn several_profiles_are_one_and_labels_tell_them_apart() {
    let (Some(one), Some(other)) = (
        Exported::of("native", &["--label", "host=a"]),
        Exported::of("native", &["--label", "host=b", "--labels", "process"]),
    ) else {
        return;
    };
    let sum = |options: &[&str]| {
        let mut all = vec!["-top", "-nodecount=0"];
        all.extend(options);
        let output = one
            .go(&all)
            .arg(&other.file)
            .output()
            .expect("go can be run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = text.lines().skip_while(|line| !line.contains("flat%"));
        let rows = rows.skip(1).map(|row| row.split_whitespace().next());
        rows.map(|cell| ns(cell.expect("a cell"))).sum::<i64>()
    };
    assert_eq!(sum(&[]), 2 * total("native"));
    assert_eq!(sum(&["-tagfocus", "host=a"]), total("native"));
}
