//! One set of filters and one configuration: what `report` understands, the other commands do too.

use std::path::Path;

use object::Object as _;

use crate::support::{folded, pjit, stdout_of};

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
    assert!(
        said.contains("no sample is left by --comms nobody"),
        "{said}"
    );
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
