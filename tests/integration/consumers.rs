//! Exports in the programs that they are for, all without a network: the Firefox Profiler's own loading code
//! (npm's `@firefox-devtools/profiler-cli`), speedscope (npm) in Chromium, DuckDB (PyPI).
//!
//! `.ci/run` installs what is needed; elsewhere the tests skip themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::live::{Lab, truth};
use crate::support::{
    SAMPLES, bare, cells, chromium, folded, modules, pjit, run, sample, skip, stdout_of,
};

/// Exports a sample; the folder lives as long as the file is needed.
fn exported(name: &str, file: &str, options: &[&str]) -> (tempfile::TempDir, PathBuf) {
    // Short: sockets have paths of 107 bytes at most.
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    let path = folder.path().join(file);
    let mut arguments = vec!["export", "-o", path.to_str().expect("UTF-8")];
    arguments.extend(options);
    let output = run(&arguments, name);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {said}");
    (folder, path)
}

/// The Firefox Profiler without its pages, with a file that it has read.
pub(crate) struct Profiler {
    folder: PathBuf,
    /// Nothing if somebody else keeps it.
    kept: Option<tempfile::TempDir>,
    daemon: Child,
    program: PathBuf,
}

impl Profiler {
    /// Nothing without the program.
    fn open(name: &str, options: &[&str]) -> Option<Self> {
        let (folder, file) = exported(name, "x.json.gz", options);
        let mut opened = Self::with(folder.path(), &file)?;
        opened.kept = Some(folder);
        Some(opened)
    }

    /// The same with a file that is there; sockets go into the folder.
    pub(crate) fn with(folder: &Path, file: &Path) -> Option<Self> {
        let program = modules().join("@firefox-devtools/profiler-cli/dist/profiler-cli.js");
        if !program.is_file() || crate::support::program("node").is_none() {
            skip(
                "profiler-cli",
                "npm's @firefox-devtools/profiler-cli is not installed, or node is not",
            );
            return None;
        }
        let daemon = Command::new("node")
            .arg(&program)
            .arg("--daemon")
            .arg(file)
            .args(["--session", "s"])
            .env("PROFILER_CLI_SESSION_DIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node runs");
        let profiler = Self {
            folder: folder.to_owned(),
            kept: None,
            daemon,
            program,
        };
        // Asked too early, the program forgets the session.
        let log = profiler.folder.join("s.log");
        let is_ready =
            || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("loaded successfully"));
        let patience = Instant::now() + Duration::from_secs(120);
        while !is_ready() {
            assert!(
                Instant::now() < patience,
                "{}: it does not get ready",
                file.display()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(profiler)
    }

    fn answer(&self, words: &[&str]) -> Option<String> {
        let output = Command::new("node")
            .arg(&self.program)
            .args(words)
            .args(["--session", "s"])
            .env("PROFILER_CLI_SESSION_DIR", &self.folder)
            .output()
            .expect("node runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }

    fn ask(&self, words: &str) -> Value {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push("--json");
        let text = self.answer(&words).expect("an answer");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The threads that were recorded. The track with what happened over time is none.
    fn threads(&self) -> Vec<Value> {
        let mut all = self.ask("thread list")["threads"]
            .as_array()
            .expect("a list")
            .clone();
        all.retain(|thread| thread["tid"].is_u64());
        all
    }

    /// Samples of each function's own in all threads, by library and name.
    pub(crate) fn functions(&self) -> BTreeMap<(String, String), u64> {
        let mut all = BTreeMap::new();
        for thread in self.threads() {
            for (function, samples) in self.functions_of(&thread) {
                *all.entry(function).or_default() += samples;
            }
        }
        all
    }

    /// The same of one thread.
    fn functions_of(&self, thread: &Value) -> BTreeMap<(String, String), u64> {
        let mut all = BTreeMap::new();
        let handle = thread["threadHandle"].as_str().expect("a handle");
        let answer = self.ask(&format!(
            "thread functions --limit 0 --include-idle --thread {handle}"
        ));
        for function in answer["functions"].as_array().expect("a list") {
            let word = |key: &str| function[key].as_str().unwrap_or_default().to_owned();
            let samples = function["selfSamples"].as_f64().expect("a number");
            if samples > 0.0 {
                *all.entry((word("library"), word("name"))).or_default() += samples as u64;
            }
        }
        all
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Samples by object and symbol as reported; addresses without a name are one function of their object.
fn reported(name: &str, more: &[&str]) -> BTreeMap<(String, String), u64> {
    let mut view = bare("sample", "dso,sym");
    view.extend(
        ["--no-inline"]
            .iter()
            .chain(more)
            .map(|&word| word.to_owned()),
    );
    let mut all = BTreeMap::new();
    for (samples, [object, symbol]) in cells(&stdout_of(&view, name)) {
        let bare = object.trim_matches(['[', ']']);
        let key = if !symbol.starts_with("0x") {
            (object, symbol)
        } else if bare == "unknown" {
            (String::new(), "[unknown]".to_owned())
        } else {
            let bare = format!("[{bare}]");
            (object, bare)
        };
        *all.entry(key).or_default() += samples;
    }
    all
}

#[test]
fn the_firefox_profiler_shows_the_rows_of_the_report() {
    for name in ["minijit", "node", "wasmtime"] {
        let Some(profiler) = Profiler::open(name, &["--no-inline"]) else {
            return;
        };
        assert_eq!(profiler.functions(), reported(name, &[]), "{name}");
        for thread in profiler.threads() {
            let tid = format!("--tid={}", thread["tid"]);
            let own = reported(name, &[&tid]);
            assert_eq!(profiler.functions_of(&thread), own, "{name} {tid}");
        }
    }
}

#[test]
fn the_firefox_profiler_has_activities_as_categories() {
    for name in ["minijit", "native", "node", "typescript", "wasmtime"] {
        let Some(profiler) = Profiler::open(name, &[]) else {
            return;
        };
        let mut shown: BTreeMap<String, u64> = BTreeMap::new();
        for thread in profiler.threads() {
            let handle = thread["threadHandle"].as_str().expect("a handle");
            let answer = profiler.ask(&format!("thread samples --thread {handle}"));
            let categories = &answer["categoryBreakdown"]["categories"];
            for category in categories.as_array().expect("a list") {
                let activity = category["name"].as_str().expect("a name").to_owned();
                let samples = category["samples"].as_f64().expect("a number");
                *shown.entry(activity).or_default() += samples as u64;
            }
        }
        let report = stdout_of(&bare("sample", "activity"), name);
        let reported = cells(&report).into_iter();
        let reported: BTreeMap<String, u64> = reported
            .map(|(samples, [activity])| (activity, samples))
            .collect();
        assert_eq!(shown, reported, "{name}");
    }
}

#[test]
fn the_firefox_profiler_knows_threads_and_inlined_functions() {
    let Some(profiler) = Profiler::open("native", &[]) else {
        return;
    };
    let mut shown: Vec<(String, String, u64)> = profiler
        .threads()
        .iter()
        .map(|thread| {
            let word = |key: &str| thread[key].as_str().expect("text").to_owned();
            let tid = thread["tid"].as_u64().expect("a number");
            (word("name"), word("pid"), tid)
        })
        .collect();
    let script = stdout_of(&["script", "-G", "-F", "comm,pid,tid"], "native");
    let mut recorded: Vec<(String, String, u64)> = script
        .lines()
        .filter_map(|line| {
            let (comm, ids) = line.trim().trim_end_matches(':').rsplit_once(' ')?;
            let (pid, tid) = ids.split_once('/')?;
            Some((comm.trim().to_owned(), pid.to_owned(), tid.parse().ok()?))
        })
        .collect();
    shown.sort();
    recorded.sort();
    recorded.dedup();
    assert_eq!(shown, recorded);
    // The innermost of folded stacks, inlined or not.
    let folded = stdout_of(&["fold"], "native");
    let mut leaves: BTreeMap<String, u64> = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        let leaf = stack.rsplit(';').next().expect("a frame").to_owned();
        *leaves.entry(leaf).or_default() += weight.parse::<u64>().expect("a number");
    }
    let heaviest = leaves
        .iter()
        .max_by_key(|(_, weight)| **weight)
        .expect("stacks");
    let total: u64 = leaves.values().sum();
    let functions = profiler.functions();
    let samples: u64 = functions.values().sum();
    let of_name = functions
        .iter()
        .filter(|((_, name), _)| name.split('(').next() == Some(heaviest.0));
    let own: u64 = of_name.map(|(_, samples)| samples).sum();
    assert_eq!(
        u128::from(own) * u128::from(total),
        u128::from(*heaviest.1) * u128::from(samples)
    );
}

#[test]
fn firefox_files_are_the_same_for_any_number_of_threads() {
    for name in SAMPLES {
        let of = |jobs: &str| {
            let (_folder, path) = exported(name, "x.json.gz", &[jobs]);
            std::fs::read(path).expect("written")
        };
        let one = of("-j1");
        assert!(one == of("-j2") && one == of("-j5"), "{name}");
    }
}

/// What speedscope shows of a sample: its first rows and the names of its profiles.
fn speedscope(name: &str, options: &[&str]) -> Option<Value> {
    let (_folder, file) = exported(name, "x.speedscope.json", options);
    speedscope_of(&file)
}

/// What it shows of a file.
pub(crate) fn speedscope_of(file: &Path) -> Option<Value> {
    let folder = modules().join("speedscope");
    let Some(chromium) =
        chromium().filter(|_| folder.is_dir() && modules().join("puppeteer-core").is_dir())
    else {
        skip(
            "speedscope",
            "npm's speedscope or puppeteer-core, or Chromium is not installed",
        );
        return None;
    };
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/speedscope.js");
    let output = Command::new("node")
        .arg(driver)
        .args([chromium.as_path(), &folder, file])
        .env("NODE_PATH", modules())
        .output()
        .expect("node runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", file.display());
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["errors"], Value::Array(Vec::new()));
    let mut requests = answer["requests"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str);
    assert!(requests.all(|url| url.starts_with("file://")), "{answer}");
    Some(answer)
}

/// Milliseconds of each function's own with two digits, the largest first, and names.
fn sandwich(answer: &Value) -> Vec<(String, String)> {
    let rows = answer["rows"].as_array().expect("rows").iter();
    let rows = rows.skip_while(|row| row[0] != "Total").skip(1);
    rows.map(|row| {
        let cell = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
        let own = cell(1).split("ms").next().unwrap_or_default().to_owned();
        (own, cell(2))
    })
    .collect()
}

#[test]
fn speedscope_shows_the_rows_of_the_report() {
    for (name, options) in [
        ("wasmtime", &["--no-inline"][..]),
        ("wasmtime", &["--no-inline", "--merge"][..]),
    ] {
        let Some(answer) = speedscope(name, options) else {
            return;
        };
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        let arguments = "report --no-inline --no-children -g none -q -s sym -w 0 -F period,sym";
        let words: Vec<&str> = arguments.split(' ').collect();
        for line in stdout_of(&words, name).lines() {
            let mut cells = line.split_whitespace();
            let Some(period) = cells
                .next()
                .map(|cell| cell.parse::<u64>().expect("a number"))
            else {
                continue;
            };
            let symbol = cells.skip(1).collect::<Vec<_>>().join(" ");
            *own.entry(symbol).or_default() += period;
        }
        let mut expected: Vec<(u64, String)> =
            own.into_iter().map(|(symbol, ns)| (ns, symbol)).collect();
        expected.sort_by(|a, b| b.cmp(a));
        let shown = sandwich(&answer);
        assert!(shown.len() >= 5, "{answer}");
        let largest = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
        let periods: Vec<String> = expected
            .iter()
            .take(5)
            .map(|(ns, _)| largest(*ns))
            .collect();
        assert_eq!(
            shown
                .iter()
                .take(5)
                .map(|(ms, _)| ms.clone())
                .collect::<Vec<_>>(),
            periods
        );
        assert_eq!(shown[0].1, expected[0].1);
    }
}

#[test]
fn speedscope_has_a_profile_for_each_thread() {
    let Some(answer) = speedscope("native", &[]) else {
        return;
    };
    let rows = answer["rows"].as_array().expect("rows");
    let profiles = rows.iter().skip(1).take_while(|row| row[0] != "Total");
    let mut shown: Vec<String> = profiles
        .map(|row| row[1].as_str().unwrap_or_default().to_owned())
        .collect();
    let script = stdout_of(&["script", "-G", "-F", "pid,tid"], "native");
    let mut threads: Vec<String> = script
        .lines()
        .map(|line| line.trim().trim_end_matches(':').to_owned())
        .collect();
    threads.sort();
    threads.dedup();
    shown.sort_by_key(|name| name.rsplit('(').next().map(str::to_owned));
    let ids: Vec<&str> = shown
        .iter()
        .filter_map(|name| name.rsplit('(').next()?.strip_suffix(')'))
        .collect();
    assert_eq!(ids, threads);
}

/// What DuckDB answers to queries, each row as text.
pub(crate) fn duckdb(folder: &Path, queries: &[&str]) -> Option<Vec<Vec<Vec<Value>>>> {
    let modules = std::env::var_os("PJIT_PYTHON_MODULES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python"),
        PathBuf::from,
    );
    let program = "import duckdb, json, sys
print(json.dumps([duckdb.sql(query).fetchall() for query in sys.argv[1:]], default=str))";
    let output = Command::new("python3")
        .args(["-c", program])
        .args(queries)
        .current_dir(folder)
        .env("PYTHONPATH", modules)
        .output();
    let output = match output {
        Ok(output) if output.status.success() => output,
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("No module named") => {
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        }
        _ => {
            skip("duckdb", "python3 or PyPI's duckdb is not installed");
            return None;
        }
    };
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Exports recordings into one table.
fn exported_table(folder: &Path, file: &str, options: &[&str]) {
    let output = pjit()
        .args(["export", "-o"])
        .arg(folder.join(file))
        .args(options)
        .args(SAMPLES.map(|name| sample(name, "perf.data")))
        .output()
        .expect("the binary can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn duckdb_reads_many_recordings_as_one_table() {
    let folder = tempfile::tempdir().expect("a folder");
    exported_table(folder.path(), "all.csv.gz", &[]);
    exported_table(folder.path(), "samples.csv.gz", &["--samples"]);
    let by = "select recording, sum(weight)::bigint, sum(samples)::bigint from";
    let order = "group by recording order by recording";
    let queries = [
        format!("{by} 'all.csv.gz' {order}"),
        format!("{by} 'samples.csv.gz' {order}"),
        "select count(*) from 'samples.csv.gz' where time_ns is null".to_owned(),
        "select leaf, sum(weight)::bigint as ns from 'all.csv.gz' where recording like '%minijit%' group by leaf \
         order by ns desc, leaf limit 3"
            .to_owned(),
    ];
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let Some(answers) = duckdb(folder.path(), &queries) else {
        return;
    };
    let mut expected: Vec<Vec<Value>> = SAMPLES
        .iter()
        .map(|name| {
            let weight: u64 = folded(&stdout_of(&["fold"], name)).values().sum();
            let samples = stdout_of(&["script", "-G", "-F", "tid"], name)
                .lines()
                .count();
            let path = sample(name, "perf.data").display().to_string();
            vec![path.into(), weight.into(), samples.into()]
        })
        .collect();
    expected.sort_by_key(|row| row[0].to_string());
    assert_eq!(answers[0], expected);
    assert_eq!(answers[1], expected);
    assert_eq!(answers[2], [[Value::from(0)]]);
    assert_eq!(answers[3].len(), 3);
}

/// Bytes of allocations and nanoseconds of waits are what each function has in the folded stacks.
#[test]
fn consumers_show_weights_in_their_unit() {
    let own = |name: &str, weight: &str| {
        let text = stdout_of(&["fold", "--weight", weight, "--no-inline"], name);
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        for (stack, weight) in folded(&text) {
            let leaf = stack.rsplit(';').next().expect("a frame");
            *own.entry(leaf.to_owned()).or_default() += weight;
        }
        own
    };
    let alloc = own("heap", "alloc");
    if let Some(profiler) = Profiler::open("heap", &["--weight", "alloc", "--no-inline"]) {
        let shown = profiler.functions().into_iter();
        let shown: BTreeMap<String, u64> = shown.map(|((_, name), bytes)| (name, bytes)).collect();
        assert_eq!(shown, alloc);
        let answer = profiler.ask("thread functions --limit 0 --include-idle --thread t-0");
        assert_eq!(answer["weightType"], "bytes");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, weight) in [("heap", "alloc"), ("waits", "blocked")] {
        let (_folder, path) = exported(name, "x.csv", &["--weight", weight, "--no-inline"]);
        std::fs::copy(path, folder.path().join(format!("{weight}.csv"))).expect("a copy");
    }
    let by = "select unit, leaf, sum(weight)::bigint from";
    let queries = ["alloc", "blocked"].map(|of| format!("{by} '{of}.csv' group by all order by 2"));
    let Some(answers) = duckdb(folder.path(), &[&queries[0], &queries[1]]) else {
        return;
    };
    let rows = |unit: &str, own: BTreeMap<String, u64>| -> Vec<Vec<Value>> {
        let rows = own.into_iter().filter(|(_, weight)| *weight > 0);
        rows.map(|(leaf, weight)| vec![unit.into(), leaf.into(), weight.into()])
            .collect()
    };
    assert_eq!(answers[0], rows("bytes", alloc));
    assert_eq!(answers[1], rows("ns", own("waits", "blocked")));
}

/// What documentation tells users to ask is answered.
#[test]
fn duckdb_answers_the_queries_of_the_documentation() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = [
        "web-1/2026-11-20",
        "web-1/2026-11-21",
        "web-2/2026-11-20",
        "web-2/2026-11-21",
    ];
    for (run, name) in runs.iter().zip(SAMPLES) {
        let path = folder.path().join(format!("runs/{run}.data"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::copy(sample(name, "perf.data"), path).expect("copied");
    }
    let output = pjit()
        .current_dir(folder.path())
        .args(["export", "-o", "all.csv.gz"])
        .args(runs.map(|run| format!("runs/{run}.data")))
        .output()
        .expect("the binary can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let page = include_str!("../../docs/exports.md");
    let queries = page.split("```sql\n").skip(1);
    let queries: Vec<&str> = queries
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(queries.len(), 3);
    let Some(answers) = duckdb(folder.path(), &queries) else {
        return;
    };
    let days: Vec<&Value> = answers[0].iter().map(|row| &row[0]).collect();
    assert_eq!(
        days,
        [
            "2026-11-20",
            "2026-11-20",
            "2026-11-20",
            "2026-11-21",
            "2026-11-21",
            "2026-11-21"
        ]
    );
    assert_eq!(answers[1].len(), 2);
    assert!(!answers[2].is_empty());
}

#[test]
fn tables_are_the_same_for_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |jobs: &str| {
        let file = format!("x{jobs}.csv.gz");
        exported_table(folder.path(), &file, &[jobs, "--samples"]);
        std::fs::read(folder.path().join(file)).expect("written")
    };
    let one = of("-j1");
    assert!(one == of("-j2") && one == of("-j5"));
    for name in SAMPLES {
        let of = |jobs: &str| {
            let (_folder, path) = exported(name, "x.speedscope.json.gz", &[jobs]);
            std::fs::read(path).expect("written")
        };
        let one = of("-j1");
        assert!(one == of("-j2") && one == of("-j5"), "{name}");
    }
}

/// Names of functions of a stack in a file for the Firefox Profiler, leaf first.
fn stack_names(file: &Value, mut stack: u64) -> Vec<String> {
    let shared = &file["shared"];
    let at = |table: &str, column: &str, row: u64| {
        shared[table][column][row as usize]
            .as_u64()
            .expect("a number")
    };
    let mut names = Vec::new();
    loop {
        let func = at("frameTable", "func", at("stackTable", "frame", stack));
        let name = &shared["stringArray"][at("funcTable", "name", func) as usize];
        names.push(name.as_str().expect("text").to_owned());
        match at("stackTable", "prefixOffset", stack) {
            0 => return names,
            offset => stack -= offset,
        }
    }
}

fn firefox_file(lab: &Lab, options: &[&str]) -> Value {
    let mut arguments = vec!["export", "--format", "firefox", "-o", "-"];
    arguments.extend(options);
    serde_json::from_str(&lab.show(&arguments, "off.data")).expect("JSON")
}

fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    value
        .pointer(path)
        .and_then(Value::as_array)
        .expect("a list")
}

#[test]
fn firefox_markers_are_the_waits_that_the_program_measured() {
    let Some(lab) = Lab::with("firefox", "off", &[]) else {
        return;
    };
    let events = [
        "-e",
        "sched:sched_switch",
        "-e",
        "cpu-clock/freq=997/",
        "--switch-events",
        "--sample-cpu",
    ];
    let options = [
        &["-k", "mono", "--call-graph", "dwarf,4096", "-m", "16M"],
        &events[..],
    ]
    .concat();
    let Some(printed) = lab.record("off.data", &options, &["./off"]) else {
        return;
    };
    let clock = ["--event", "cpu-clock/freq=997/"];
    let file = firefox_file(&lab, &clock);
    let (mut waited, mut queued) = (BTreeMap::<&str, f64>::new(), BTreeMap::<&str, f64>::new());
    for thread in list(&file, "/threads") {
        let markers = &thread["markers"];
        for (at, data) in list(markers, "/data").iter().enumerate() {
            let Some(stack) = data
                .pointer("/cause/stack")
                .filter(|_| data["state"] == "blocked" || data["state"] == "runnable")
            else {
                continue;
            };
            let names = stack_names(&file, stack.as_u64().expect("a number"));
            let time = |column: &str| markers[column][at].as_f64().expect("a time");
            for site in ["site_sleep", "site_poll"] {
                if names.iter().any(|name| name == site) {
                    let is_wait = data["state"] == "blocked";
                    let sums = if is_wait { &mut waited } else { &mut queued };
                    *sums.entry(site).or_default() += (time("endTime") - time("startTime")) / 1e3;
                }
            }
        }
    }
    let truth = truth(&printed);
    for (site, seconds) in &waited {
        // On a busy machine it is not let run at once before it looks at the clock.
        let (truth, queued) = (truth[*site], queued.get(site).copied().unwrap_or_default());
        assert!(
            *seconds < 1.03 * truth && seconds + queued > 0.97 * truth,
            "{site}: {seconds} and {queued} of {truth}"
        );
    }
    assert_eq!(waited.len(), 2);
    // Each sample is on one CPU, or in one thread.
    let on_cpus = firefox_file(&lab, &[&clock[..], &["--per-cpu"]].concat());
    let samples = |file: &Value| {
        let threads = list(file, "/threads").iter();
        threads
            .map(|thread| thread["samples"]["length"].as_u64().expect("a number"))
            .sum::<u64>()
    };
    assert_eq!(samples(&on_cpus), samples(&file));
    // Where the machine was busy, there is a track of spells and gaps, too.
    let cpus = list(&on_cpus, "/threads").iter();
    let cpus = cpus.filter(|thread| thread["tid"] != "when");
    let names = cpus
        .clone()
        .map(|thread| thread["name"].as_str().expect("text"));
    assert!(
        names
            .clone()
            .all(|name| name.starts_with("CPU ") && name[4..].parse::<u32>().is_ok())
    );
    // Every switch is on the CPU where it was made, as a moment.
    let markers = cpus.flat_map(|thread| list(thread, "/markers/endTime"));
    assert!(markers.clone().count() > 100 && markers.clone().all(Value::is_null));
    // Switches are no use of the CPU.
    let switches = firefox_file(&lab, &["--event", "sched:sched_switch"]);
    let delta = |thread: &Value| thread["samples"]["threadCPUDelta"].is_array();
    assert!(list(&file, "/threads").iter().any(delta));
    assert!(!list(&switches, "/threads").iter().any(delta));
    if let Some(shown) = markers_shown(&on_cpus, "sched:sched_switch") {
        assert_eq!(shown, samples(&switches));
    }
}

/// How many markers of a name the Firefox Profiler has read, if it is at hand.
fn markers_shown(file: &Value, name: &str) -> Option<u64> {
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    let path = folder.path().join("x.json");
    std::fs::write(&path, file.to_string()).expect("written");
    let profiler = Profiler::with(folder.path(), &path)?;
    let shown = profiler.ask("profile markers --limit 0");
    let of_name = list(&shown, "/markers")
        .iter()
        .filter(|marker| marker["name"] == name);
    Some(of_name.count() as u64)
}

#[test]
fn the_firefox_profiler_shows_both_programs_that_a_process_ran() {
    let Some(lab) = Lab::with("lives", "lives", &[]) else {
        return;
    };
    std::fs::copy(lab.path("lives"), lab.path("another")).expect("copied");
    let options = "-k mono -e cpu-clock:u -F 997 -g".split(' ');
    let options: Vec<&str> = options.collect();
    let Some(_) = lab.record("lives.data", &options, &["./lives"]) else {
        return;
    };
    let arguments = ["export", "--format", "firefox", "-o", "-"];
    let file: Value = serde_json::from_str(&lab.show(&arguments, "lives.data")).expect("JSON");
    let threads = list(&file, "/threads").iter();
    let threads: Vec<&Value> = threads.filter(|of| of["name"] != "Over time").collect();
    let [thread] = threads[..] else {
        panic!("one thread, not {}", threads.len());
    };
    assert_eq!(thread["name"], "another");
    let renamed = list(thread, "/markers/data")
        .iter()
        .filter(|data| data["type"] == "renamed")
        .map(|data| data["comm"].as_str().expect("text"));
    let renamed: Vec<&str> = renamed.collect();
    assert!(renamed.ends_with(&["lives", "another"]), "{renamed:?}");
    let mut times: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for stack in list(thread, "/samples/stack") {
        let names = stack_names(&file, stack.as_u64().expect("a number"));
        for life in ["first_life", "second_life"] {
            if names.iter().any(|name| name == life) {
                *times.entry((names[0].clone(), life)).or_default() += 1;
            }
        }
    }
    // As many as perf itself finds, and all with a name.
    let script = Command::new("perf")
        .args(["script", "-F", "ip,sym", "-i"])
        .arg(lab.path("lives.data"))
        .output()
        .expect("perf runs");
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    for life in ["first_life", "second_life"] {
        let found: u64 = times
            .iter()
            .filter_map(|((_, of), count)| (*of == life).then_some(count))
            .sum();
        let stacks = script.split("\n\n").filter(|stack| stack.contains(life));
        assert_eq!(found, stacks.count() as u64, "{life}");
        // On a busy machine a life of some tenths of a second has fewer than a hundred.
        assert!(found > 30, "{life}: {found} samples");
    }
    let nameless = times.keys().find(|(leaf, _)| leaf.starts_with("0x"));
    assert!(nameless.is_none(), "{nameless:?}");
}
