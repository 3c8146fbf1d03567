//! One set of filters and one configuration: what `report` understands, the other commands do too.

use std::collections::BTreeMap;
use std::path::Path;

use object::Object as _;

use crate::support::{folded, perf, pjit, program, sample, skip, stdout_of};

/// What is left of the sample's period: the sum over all rows of the report.
fn of_report(filters: &[&str]) -> u64 {
    let view = "report -q --no-children -g none -s comm -F period,comm -t,";
    let view: Vec<&str> = view.split(' ').chain(filters.iter().copied()).collect();
    let text = stdout_of(&view, "node");
    let rows = text.lines().filter_map(|line| line.split_once(','));
    rows.map(|(period, _)| period.trim().parse::<u64>().expect("a period"))
        .sum()
}

fn of_fold(command: &str, filters: &[&str]) -> u64 {
    let view: Vec<&str> = command.split(' ').chain(filters.iter().copied()).collect();
    folded(&stdout_of(&view, "node")).values().sum()
}

#[test]
fn fold_counts_what_the_report_counts_under_the_same_filters() {
    let whole = of_report(&[]);
    for filters in [
        &["--comms", "node"][..],
        &["-c", "nobody,node"],
        &["-d", "node"],
        &["--dsos", "libc.so.6,node"],
        &["-d", "node", "--time", "0%-50%"],
        &["--time", "10%/2"],
        &["--tid=17068"],
        &["--pid=17065", "-d", "[kernel.kallsyms]"],
    ] {
        let (wanted, got) = (of_report(filters), of_fold("fold", filters));
        assert_eq!(got, wanted, "{filters:?}");
        assert!(wanted > 0 && wanted <= whole, "{filters:?}");
    }
    assert!(of_report(&["--tid=17068"]) < whole);
    // Without a list they are what they were.
    assert_eq!(of_fold("fold --pid", &[]), whole);
    assert_eq!(of_fold("fold --tid", &[]), whole);
    assert!(stdout_of(&["fold", "--pid"], "node").starts_with("node-17065;"));
}

#[test]
fn names_and_parents_filter_alike() {
    // Rows that are told apart by symbols: `--symbol-filter` looks at those in the report.
    let of_report = |sample: &str, filters: &[&str]| {
        let view = "report -q --no-children -g none -s sym -F period,sym -t,";
        let view: Vec<&str> = view.split(' ').chain(filters.iter().copied()).collect();
        let text = stdout_of(&view, sample);
        let rows = text.lines().filter_map(|line| line.split_once(','));
        rows.map(|(period, _)| period.trim().parse::<u64>().expect("a period"))
            .sum::<u64>()
    };
    for (sample, filters) in [
        ("node", &["--symbol-filter", "v8::"][..]),
        ("node", &["--symbol-filter=Builtin", "-d", "node"]),
        ("node", &["-x", "-p", "wordCount|fib"]),
        (
            "node",
            &["--exclude-other", "--parent=^v8::", "--time=0%-50%"],
        ),
        ("wasm", &["--hide-unresolved"]),
        ("wasm", &["-U", "-x", "-p", "^run$"]),
    ] {
        let view: Vec<&str> = ["fold"].iter().chain(filters).copied().collect();
        let got: u64 = folded(&stdout_of(&view, sample)).values().sum();
        assert_eq!(got, of_report(sample, filters), "{filters:?}");
        assert!(got > 0 && got < of_report(sample, &[]), "{filters:?}");
    }
    let nameless = |options: &[&str]| {
        let stacks = stdout_of(options, "wasm");
        let is_nameless =
            |frame: &str| frame.starts_with('[') && !["[cut]", "[caller missing]"].contains(&frame);
        let mut stacks = stacks.lines().filter_map(|line| line.rsplit_once(' '));
        stacks.any(|(stack, _)| stack.split(';').any(is_nameless))
    };
    assert!(nameless(&["fold"]) && !nameless(&["fold", "-U"]));
    let said = stdout_of(&["summary", "-x", "-p", "wordCount"], "node");
    let filters = "--exclude-other --parent wordCount";
    assert!(said.contains(filters), "{said}");
    let output = pjit()
        .args(["fold", "-p", "x", "-i", "samples/node/perf.data"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("it can be run");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--exclude-other"), "{said}");
}

#[test]
fn other_views_filter_alike() {
    let whole = of_report(&[]);
    let share = of_report(&["-d", "node"]);
    assert!(share < whole);
    let csv = stdout_of(
        &["export", "--format", "csv", "-o", "-", "-d", "node"],
        "node",
    );
    let mut lines = csv.lines();
    let heading: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let column = heading.iter().position(|name| *name == "weight");
    let column = column.unwrap_or_else(|| panic!("{heading:?}"));
    let period = |line: &str| {
        line.split(',')
            .nth(column)
            .and_then(|cell| cell.parse::<u64>().ok())
    };
    let sum: u64 = lines.filter_map(period).sum();
    assert_eq!(sum, share);
    let summary = stdout_of(&["summary", "-d", "node"], "node");
    assert!(summary.contains("--dsos node"), "{summary}");
    let nobody = pjit()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "flamegraph",
            "-o",
            "-",
            "--format",
            "svg",
            "--comms",
            "nobody",
        ])
        .arg("samples/node/perf.data")
        .output()
        .expect("it can be run");
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(said.contains("--comms nobody leaves no sample"), "{said}");
}

/// Puts a program into a build-ID cache, as `perf buildid-cache --add` does.
fn remember(program: &Path, cache: &Path) {
    let bytes = std::fs::read(program).expect("it is there");
    let file = object::File::parse(&*bytes).expect("it is ELF");
    let id = file.build_id().ok().flatten().expect("it has a build ID");
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = cache.join(".build-id").join(&id[..2]).join(&id[2..]);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("elf"), bytes).expect("it can be written");
}

#[test]
fn the_configured_build_id_cache_serves_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, sample) = (folder.path().join("cache"), Path::new("samples/native"));
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(sample);
    remember(&sample.join("symfs/tmp/pjit-sample/native/hot-cpp"), &cache);
    std::fs::copy(sample.join("perf.data"), folder.path().join("perf.data")).expect("a copy");
    let config = folder.path().join("perfconfig");
    let text = format!("[buildid]\n dir = {}\n", cache.display());
    std::fs::write(&config, text).expect("it can be written");
    let run = |words: &str| {
        let output = pjit()
            .args(words.split(' '))
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("PERF_CONFIG", &config)
            .output()
            .expect("it can be run");
        assert!(output.status.success() || words.starts_with("check"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // A function of the program, which lies nowhere else.
    for command in [
        "report --no-children -g none -s sym",
        "fold",
        "script",
        "summary",
        "annotate",
        "export --format csv -o -",
    ] {
        let text = run(command);
        assert!(text.contains("hot::Tree"), "{command}: {text}");
        let without = run(&format!("{command} --no-config"));
        assert!(!without.contains("hot::Tree"), "{command} --no-config");
    }
    assert_ne!(run("check"), run("check --no-config"));
}

#[test]
fn kinds_and_own_functions_are_keys() {
    let view = "report -q --no-inline --no-children -g none -t, -F period,kind -s kind";
    let text = stdout_of(&view.split(' ').collect::<Vec<_>>(), "node");
    let rows = text.lines().filter_map(|line| line.split_once(','));
    let mut sum = 0;
    for (period, kind) in rows {
        let period: u64 = period.trim().parse().expect("a period");
        let tag = format!("kind=^{}$", kind.trim());
        let folded = of_fold("fold --no-inline --no-cut-marks", &["--tagfocus", &tag]);
        assert_eq!(folded, period, "{kind}");
        sum += period;
    }
    assert_eq!(sum, of_report(&[]));
    assert!(text.contains("own") && text.contains("runtime"), "{text}");
    let view = "report -q --no-children -g none -t, -F period,own -s own";
    let text = stdout_of(&view.split(' ').collect::<Vec<_>>(), "node");
    let rows = text.lines().filter_map(|line| line.split_once(','));
    let own: u64 = rows
        .map(|(period, _)| period.trim().parse::<u64>().expect("a period"))
        .sum();
    assert_eq!(own, sum);
    assert!(text.contains("[no own function]"), "{text}");
}

/// Where samples are, by the address of the function in the process: how many at each offset, and whether what they stand in was
/// called there.
type Places = BTreeMap<u64, BTreeMap<(u64, bool), u64>>;

/// The stacks as `script` prints them, and the first frame of each that `left` leaves.
fn places_of_script(name: &str, left: impl Fn(&[&str]) -> Option<usize>) -> Places {
    let fields = ["script", "--no-inline", "-F", "comm,ip,sym,symoff,dso"];
    let text = stdout_of(&fields, name);
    let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    let mut places = Places::new();
    for sample in text.split("\n\n") {
        let frames: Vec<&str> = sample.lines().skip(1).map(str::trim).collect();
        let place = left(&frames).and_then(|at| {
            let (address, rest) = frames.get(at)?.split_once(' ')?;
            let (symbol, _) = rest.rsplit_once(" (")?;
            let (_, offset) = symbol.rsplit_once("+0x")?;
            Some((number(address), number(offset), at > 0))
        });
        if let Some((address, offset, is_call)) = place {
            let function = places.entry(address - offset).or_default();
            *function.entry((offset, is_call)).or_default() += 1;
        }
    }
    places
}

/// An instruction as `annotate -n` prints it: offset, number of samples, text.
type Row = (u64, u64, String);

/// The instructions of all functions that the filters leave.
fn rows_of_annotate(name: &str, filters: &[&str]) -> Vec<Vec<Row>> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sample = sample.join("samples").join(name);
    let output = pjit()
        .args(["annotate", "-n", "--no-source", "--skip-missing", "-i"])
        .arg(sample.join("perf.data"))
        .arg("--symfs")
        .arg(sample.join("symfs"))
        .args(filters)
        .output()
        .expect("it can be run");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("# Filter: "), "{text}");
    let number = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let rows = |block: &str| {
        let start = block.lines().find(|line| line.ends_with(">:"));
        let start = start.and_then(|line| line.split_once(" <")?.0.rsplit(' ').next());
        let start = start.and_then(number).expect("where it begins");
        let rows = block.lines().filter_map(|line| {
            let (count, rest) = line.split_once(" :")?;
            let (address, text) = rest.split_once(':')?;
            let count = count.trim().parse().ok()?;
            Some((number(address)? - start, count, text.trim().to_owned()))
        });
        rows.collect()
    };
    text.split("|\tSource code").skip(1).map(rows).collect()
}

/// What `annotate` should print for the samples of a function; nothing if they are not of this one.
fn placed(samples: &BTreeMap<(u64, bool), u64>, rows: &[Row]) -> Option<Vec<u64>> {
    let mut counts = vec![0; rows.len()];
    for ((offset, is_call), count) in samples {
        let at = rows
            .partition_point(|row| row.0 <= *offset)
            .checked_sub(1)?;
        // A call is where its return address less one is.
        let is_right = if *is_call {
            rows[at].2.starts_with("call") && rows[at].0 < *offset
        } else {
            rows[at].0 == *offset
        };
        counts[at] += is_right.then_some(count)?;
    }
    Some(counts)
}

/// Compares, and returns how many samples were shown, and how many of them at calls of what they stand in.
fn agree(name: &str, known: &Places, shown: &[Vec<Row>]) -> (u64, u64) {
    let (mut all, mut called) = (0, 0);
    for rows in shown {
        let counts: Vec<u64> = rows.iter().map(|row| row.1).collect();
        let is_same = |samples: &&BTreeMap<_, _>| placed(samples, rows).as_ref() == Some(&counts);
        let samples = known.values().find(is_same);
        let samples = samples.unwrap_or_else(|| panic!("{name}: {rows:?}"));
        all += counts.iter().sum::<u64>();
        let calls = samples.iter().filter(|((_, is_call), _)| *is_call);
        called += calls.map(|(_, count)| count).sum::<u64>();
    }
    (all, called)
}

#[test]
fn annotate_shows_the_samples_that_filters_leave() {
    for (name, word) in [
        ("native", "hot::main"),
        ("wasm", "hot::sort"),
        ("node", "matMul"),
    ] {
        let with = |frames: &[&str]| frames.iter().any(|frame| frame.contains(word));
        let focused = places_of_script(name, |frames| with(frames).then_some(0));
        let ignored = places_of_script(name, |frames| (!with(frames)).then_some(0));
        let (left, _) = agree(name, &focused, &rows_of_annotate(name, &["--focus", word]));
        let (rest, _) = agree(name, &ignored, &rows_of_annotate(name, &["--ignore", word]));
        assert!(left >= 10 && rest >= 10, "{name}: {left} {rest}");
    }
    let (thread, _) = agree(
        "node",
        &places_of_script("node", |frames| (!frames.is_empty()).then_some(0)),
        &rows_of_annotate("node", &["--pid", "17065", "--tagfocus", "kind=own"]),
    );
    assert!(thread >= 10, "{thread}");
}

#[test]
fn what_was_hidden_is_paid_at_the_calls_of_the_callers() {
    let words = ["std::", "fibonacci", "operator", "hashbrown", "(/usr"];
    let is_hidden = |frame: &str| words.iter().any(|word| frame.contains(word));
    let known = places_of_script("native", |frames| {
        frames.iter().position(|frame| !is_hidden(frame))
    });
    let hide = "std::|fibonacci|operator|hashbrown|^/usr";
    let shown = rows_of_annotate("native", &["--no-inline", "--hide", hide]);
    let (all, called) = agree("native", &known, &shown);
    assert!(called >= 20 && all - called >= 20, "{called} of {all}");
}

#[test]
fn pictures_and_exports_say_what_was_filtered() {
    for (command, format) in [
        ("flamegraph", "svg"),
        ("flamegraph", "html"),
        ("export", "firefox"),
    ] {
        let view = [command, "--format", format, "-o", "-", "--focus", "compare"];
        let output = crate::support::run(&view, "native");
        let text = String::from_utf8_lossy(&output.stdout);
        let told =
            "15 samples, 152 ms of cpu-clock:pppH (--focus compare: 15 of 177 samples (8.5%))";
        assert!(text.contains(told), "{command} {format}");
    }
    let view = [
        "export", "--format", "pprof", "-o", "-", "--focus", "compare",
    ];
    let packed = crate::support::run(&view, "native").stdout;
    let mut text = Vec::new();
    std::io::copy(&mut flate2::read::GzDecoder::new(&*packed), &mut text).expect("gzip");
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("Filter: --focus compare: 15 of 177 samples (8.5%)"));
}

/// Lines of a command without blanks that only align; `None` if it cannot be run.
fn words_of(mut command: std::process::Command) -> Option<Vec<String>> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    Some(words.collect())
}

#[test]
fn events_switch_samples_on_and_off_as_in_perf() {
    if program("perf").is_none() {
        return skip("perf", "no perf on the path");
    }
    let data = sample("waits", "perf.data");
    let [on, off] = ["sched:sched_switch", "cpu-clock/freq=997/"];
    let mut counts = Vec::new();
    for options in [
        &["--switch-on", on][..],
        &["--switch-off", on],
        &["--switch-on", on, "--switch-off", off],
        &["--switch-on", off, "--switch-off", on],
        &[
            "--switch-on",
            on,
            "--switch-off",
            off,
            "--show-on-off-events",
        ],
        &["--switch-on", on, "--switch-off", on],
        &["--switch-on", off, "--switch-off", on, "--time", "10%-60%"],
    ] {
        let of = |mut command: std::process::Command, view: &[&str]| {
            command.args(view).args(options).arg("-i").arg(&data);
            words_of(command).expect("it runs")
        };
        let view = ["script", "-F", "tid,time,event"];
        let (wanted, got) = (
            of(perf(), &[&view[..], &["-f"]].concat()),
            of(pjit(), &view),
        );
        assert_eq!(got, wanted, "{options:?}");
        counts.push(got.len());
        // The same samples in a report.
        let view = [
            "report",
            "--stdio",
            "-g",
            "none",
            "--no-children",
            "-s",
            "pid",
            "-n",
        ];
        let rows = |mut lines: Vec<String>| {
            lines.retain(|line| !line.starts_with('#') || line.starts_with("# Samples"));
            lines.sort();
            lines
        };
        let (wanted, got) = (
            of(perf(), &[&view[..], &["-f"]].concat()),
            of(pjit(), &view),
        );
        assert_eq!(rows(got), rows(wanted), "{options:?}");
    }
    counts.dedup();
    assert!(
        counts.len() > 4 && counts.iter().all(|count| *count > 0),
        "{counts:?}"
    );
}

#[test]
fn an_event_that_was_not_recorded_switches_nothing() {
    let told = |options: &[&str]| {
        let data = sample("waits", "perf.data");
        let output = pjit()
            .args(options)
            .arg("-i")
            .arg(data)
            .output()
            .expect("it runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, said) = told(&["script", "--switch-off", "sched:switch"]);
    assert!(
        status == Some(1) && said.contains("--switch-off: no event 'sched:switch'\nhint: "),
        "{said}"
    );
    let (status, said) = told(&[
        "report",
        "--weight",
        "offcpu",
        "--switch-on",
        "sched:sched_switch",
    ]);
    assert!(
        status == Some(1) && said.contains("not with --weight"),
        "{said}"
    );
}
