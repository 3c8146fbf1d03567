//! The dataset of many recordings: the schema to the letter, the same bytes from any path and any number of threads, no half files,
//! and one answer of all engines that are here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::support::{SAMPLES, bare, cells, pjit, sample, skip, stdout_of};

/// Tables with their columns and what these are: version 1, which never changes.
const SCHEMA: [(&str, &[(&str, &str)]); 6] = [
    (
        "recordings",
        &[
            ("recording", "int64"),
            ("start", "micros"),
            ("duration_us", "int64"),
            ("host", "text"),
            ("service", "text"),
            ("version", "text"),
            ("arch", "text"),
            ("command", "text"),
            ("quality", "text"),
            ("pjit", "text"),
            ("samples", "int64"),
            ("lost", "int64"),
        ],
    ),
    (
        "labels",
        &[("recording", "int64"), ("key", "text"), ("value", "text")],
    ),
    (
        "samples",
        &[
            ("recording", "int64"),
            ("event", "text"),
            ("unit", "text"),
            ("process", "text"),
            ("thread", "text"),
            ("payer", "text"),
            ("activity", "text"),
            ("leaf", "int64"),
            ("stack", "int64"),
            ("weight", "int64"),
            ("samples", "int64"),
        ],
    ),
    (
        "stacks",
        &[("stack", "int64"), ("depth", "int32"), ("frame", "int64")],
    ),
    (
        "frames",
        &[
            ("frame", "int64"),
            ("name", "text"),
            ("object", "text"),
            ("package", "text"),
            ("kind", "text"),
        ],
    ),
    (
        "times",
        &[
            ("recording", "int64"),
            ("event", "text"),
            ("unit", "text"),
            ("time", "micros"),
            ("cpu", "int32"),
            ("tid", "int64"),
            ("stack", "int64"),
            ("weight", "int64"),
        ],
    ),
];

fn export(root: &Path, options: &[&str], files: &[PathBuf]) -> Output {
    pjit()
        .args(["export", "--format", "parquet", "-o"])
        .arg(root)
        .args(options)
        .args(files)
        .output()
        .expect("the binary can be run")
}

fn exported(root: &Path, options: &[&str], files: &[PathBuf]) -> String {
    let output = export(root, options, files);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn all_samples() -> Vec<PathBuf> {
    SAMPLES.map(|name| sample(name, "perf.data")).to_vec()
}

/// All files below a folder, with their bytes.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below").to_owned();
                found.insert(name, fs::read(&path).expect("it can be read"));
            }
        }
    }
    found
}

type Row = BTreeMap<String, Field>;

fn read(path: &Path) -> Vec<Row> {
    let file = File::open(path).expect("it can be opened");
    let reader = SerializedFileReader::new(file).expect("a whole file");
    let rows = reader.get_row_iter(None).expect("rows");
    let columns = |row: parquet::record::Row| {
        let columns = row.get_column_iter();
        columns
            .map(|(name, field)| (name.clone(), field.clone()))
            .collect()
    };
    rows.map(|row| columns(row.expect("a row"))).collect()
}

/// The rows of a table, of all recordings.
fn table(root: &Path, name: &str) -> Vec<Row> {
    let folder = root.join("v1").join(name);
    files(&folder)
        .keys()
        .flat_map(|file| read(&folder.join(file)))
        .collect()
}

fn text<'r>(row: &'r Row, column: &str) -> &'r str {
    match &row[column] {
        Field::Str(text) => text,
        other => panic!("{column}: {other:?}"),
    }
}

fn number(row: &Row, column: &str) -> i64 {
    match &row[column] {
        Field::Long(number) | Field::TimestampMicros(number) => *number,
        Field::Int(number) => (*number).into(),
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn the_schema_is_that_of_version_1() {
    let folder = tempfile::tempdir().expect("a folder");
    exported(
        folder.path(),
        &["--samples"],
        &[sample("node", "perf.data")],
    );
    let all = files(folder.path());
    assert_eq!(all.len(), SCHEMA.len(), "{:?}", all.keys());
    for (name, columns) in SCHEMA {
        let here = |path: &&PathBuf| path.starts_with(Path::new("v1").join(name));
        let path = all.keys().find(here).expect("a file of each table");
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        assert_eq!(parts[2], "date=2026-11-21");
        let stem = parts[3].strip_suffix(".parquet").expect("its ending");
        assert!(
            stem.len() == 16 && stem.bytes().all(|b| b.is_ascii_hexdigit()),
            "{stem}"
        );
        let file = File::open(folder.path().join(path)).expect("it can be opened");
        let reader = SerializedFileReader::new(file).expect("a whole file");
        let schema = reader.metadata().file_metadata().schema_descr();
        let found: Vec<(String, &str)> = schema
            .columns()
            .iter()
            .map(|column| {
                assert_eq!(
                    (column.max_def_level(), column.max_rep_level()),
                    (0, 0),
                    "required"
                );
                let kind = format!("{} {:?}", column.physical_type(), column.logical_type_ref());
                let kind = match &*kind {
                    "INT32 None" => "int32",
                    "INT64 None" => "int64",
                    "BYTE_ARRAY Some(String)" => "text",
                    kind if kind.starts_with("INT64 Some(Timestamp") => {
                        assert!(
                            kind.contains("is_adjusted_to_u_t_c: true") && kind.contains("MICROS"),
                            "{kind}"
                        );
                        "micros"
                    }
                    kind => panic!("{kind}"),
                };
                (column.name().to_owned(), kind)
            })
            .collect();
        let wanted: Vec<(String, &str)> = columns
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), *kind))
            .collect();
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn files_are_the_same_whatever_their_path_order_and_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = |name: &str| folder.path().join(name);
    let options = ["--label", "host=a", "--label", "run=1"];
    exported(
        &root("one"),
        &[&options[..], &["-j1"]].concat(),
        &all_samples(),
    );
    let one = files(&root("one"));
    assert_eq!(one.len(), 5 * SAMPLES.len());
    // Twice, from other places, the last one first.
    exported(
        &root("one"),
        &[&options[..], &["-j4"]].concat(),
        &all_samples(),
    );
    assert!(one == files(&root("one")));
    let mut elsewhere = Vec::new();
    for name in SAMPLES.iter().rev() {
        let copy = folder.path().join(format!("copy of {name}"));
        fs::create_dir(&copy).expect("made");
        let from = sample(name, "perf.data");
        crate::support::copy_folder(from.parent().expect("a folder"), &copy);
        elsewhere.push(copy.join("perf.data"));
    }
    let turned = ["--label", "run=1", "--label", "host=a", "-j4"];
    exported(&root("two"), &turned, &elsewhere);
    let two = files(&root("two"));
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        two.keys().collect::<Vec<_>>()
    );
    for (path, bytes) in &one {
        assert!(two[path] == *bytes, "{}", path.display());
    }
    // Another label makes another recording of the same functions.
    exported(&root("one"), &["--label", "host=b"], &all_samples());
    assert_eq!(files(&root("one")).len(), 2 * one.len());
}

/// Sum of rows of a report by name and object.
fn reported(name: &str) -> BTreeMap<(String, String), i64> {
    let mut all: BTreeMap<(String, String), i64> = BTreeMap::new();
    for (period, [object, symbol]) in cells(&stdout_of(&bare("period", "dso,sym"), name)) {
        *all.entry((symbol, object)).or_default() += i64::try_from(period).expect("a period");
    }
    all
}

/// Weights of functions are the report's, but for code made at run time, whose names are made clean.
#[test]
fn leaves_weigh_what_the_flat_report_says() {
    let mut found = 0;
    let hash = regex::Regex::new("::h[0-9a-f]{16}$").expect("an expression");
    for name in SAMPLES {
        let folder = tempfile::tempdir().expect("a folder");
        let symfs = sample(name, "symfs");
        let symfs = ["--symfs", symfs.to_str().expect("UTF-8")];
        exported(folder.path(), &symfs, &[sample(name, "perf.data")]);
        let frames = table(folder.path(), "frames");
        let frames: BTreeMap<i64, &Row> = frames
            .iter()
            .map(|row| (number(row, "frame"), row))
            .collect();
        let mut leaves: BTreeMap<(String, String), i64> = BTreeMap::new();
        let (mut weight, mut samples) = (0, 0);
        for row in &table(folder.path(), "samples") {
            let frame = frames[&number(row, "leaf")];
            assert_ne!(text(frame, "kind"), "inlined");
            weight += number(row, "weight");
            samples += number(row, "samples");
            let key = (
                text(frame, "name").to_owned(),
                text(frame, "object").to_owned(),
            );
            *leaves.entry(key).or_default() += number(row, "weight");
        }
        let report = reported(name);
        assert_eq!(weight, report.values().sum::<i64>(), "{name}");
        let lines = stdout_of(&["script", "-G", "-F", "tid"], name);
        assert_eq!(samples, lines.lines().count() as i64, "{name}");
        let [recording] = &table(folder.path(), "recordings")[..] else {
            panic!("{name}: one recording")
        };
        assert_eq!(number(recording, "samples"), samples);
        let is_jit = |object: &str| {
            object == "[jit]" || object.starts_with("jit-") || object.contains("JIT")
        };
        let jit: i64 = report
            .iter()
            .filter(|((_, object), _)| is_jit(object))
            .map(|(_, own)| own)
            .sum();
        let own: i64 = leaves
            .iter()
            .filter(|((_, object), _)| is_jit(object))
            .map(|(_, own)| own)
            .sum();
        assert_eq!(own, jit, "{name}");
        let mut compared: BTreeMap<(String, String), i64> = BTreeMap::new();
        for ((symbol, object), own) in report {
            if !is_jit(&object) && !symbol.starts_with("0x") {
                let symbol = hash.replace(&symbol, "").into_owned();
                *compared.entry((symbol, object)).or_default() += own;
            }
        }
        found += compared.len();
        for (key, own) in compared {
            assert_eq!(leaves.get(&key), Some(&own), "{name}: {key:?}");
        }
    }
    assert!(found > 60, "{found} functions");
}

#[test]
fn samples_have_times_only_if_they_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = [sample("native", "perf.data")];
    exported(folder.path(), &["--samples"], &file);
    let times = table(folder.path(), "times");
    let rows = table(folder.path(), "samples");
    let sum = |rows: &[Row], column| rows.iter().map(|row| number(row, column)).sum::<i64>();
    assert_eq!(times.len() as i64, sum(&rows, "samples"));
    assert_eq!(sum(&times, "weight"), sum(&rows, "weight"));
    let stamps: Vec<i64> = times.iter().map(|row| number(row, "time")).collect();
    let start = number(&table(folder.path(), "recordings")[0], "start");
    assert!(
        stamps.is_sorted() && stamps[0] == start,
        "{start} {stamps:?}"
    );
    let stacks = table(folder.path(), "stacks");
    let known = |row: &Row| stacks.iter().any(|other| other["stack"] == row["stack"]);
    assert!(times.iter().all(known));
    // The rows are the same with and without, and no old table stays behind.
    exported(folder.path(), &[], &file);
    assert_eq!(table(folder.path(), "samples"), rows);
    assert_eq!(table(folder.path(), "times"), Vec::<Row>::new());
}

#[test]
fn labels_are_rows_and_three_are_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = [sample("node", "perf.data")];
    exported(folder.path(), &[], &file);
    let [plain] = &table(folder.path(), "recordings")[..] else {
        panic!("one recording")
    };
    assert_eq!(text(plain, "host"), "sample");
    assert_eq!((text(plain, "service"), text(plain, "version")), ("", ""));
    assert!(text(plain, "command").contains("perf record"));
    assert_eq!(table(folder.path(), "labels"), Vec::<Row>::new());
    let labels = ["host=web 1", "service=shop", "version=2", "run=7"];
    let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
    exported(folder.path(), &labels, &file);
    let rows = table(folder.path(), "labels");
    let pairs: Vec<_> = rows
        .iter()
        .map(|row| (text(row, "key"), text(row, "value")))
        .collect();
    assert_eq!(
        pairs,
        [
            ("host", "web 1"),
            ("run", "7"),
            ("service", "shop"),
            ("version", "2")
        ]
    );
    let rows = table(folder.path(), "recordings");
    let hosts: Vec<_> = rows.iter().map(|row| text(row, "host")).collect();
    assert!(
        hosts.contains(&"web 1") && hosts.contains(&"sample"),
        "{hosts:?}"
    );
}

#[test]
fn a_recording_that_cannot_be_read_is_named_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    let broken = folder.path().join("broken.data");
    fs::write(&broken, b"PERFILE2 and no more").expect("written");
    let mut files_ = vec![broken];
    files_.extend(all_samples());
    let output = export(&root, &[], &files_);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: ") && said.contains("broken.data"),
        "{said}"
    );
    assert!(said.contains("5 recordings, 1 failed"), "{said}");
    assert_eq!(files(&root).len(), 5 * SAMPLES.len());
}

/// What lies in the way below the folder is no way out of it.
#[test]
#[cfg(unix)]
fn no_link_leads_out_of_the_folder() {
    use std::os::unix::fs::symlink;
    let file = [sample("minijit", "perf.data")];
    for place in ["v1", "v1/.part", "v1/samples", "v1/frames/date=2026-11-21"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        let link = root.join(place);
        fs::create_dir_all(link.parent().expect("a folder")).expect("made");
        fs::create_dir(&outside).expect("made");
        symlink(&outside, &link).expect("a link");
        let output = export(&root, &[], &file);
        assert_eq!(output.status.code(), Some(1), "{place}");
        assert!(files(&outside).is_empty(), "{place}");
    }
    // A link in the place of a file is replaced; where it led nothing changes.
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    exported(&root, &[], &file);
    let before = files(&root);
    let victim = folder.path().join("victim");
    fs::write(&victim, b"mine").expect("written");
    for path in before.keys() {
        fs::remove_file(root.join(path)).expect("removed");
        symlink(&victim, root.join(path)).expect("a link");
    }
    exported(&root, &[], &file);
    assert!(before == files(&root));
    assert_eq!(fs::read(&victim).expect("read"), b"mine");
    assert!(
        !root
            .join("v1/samples")
            .symlink_metadata()
            .expect("there")
            .is_symlink()
    );
}

#[test]
fn what_is_no_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, b"mine").expect("written");
    let output = export(&file, &[], &[sample("node", "perf.data")]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read(&file).expect("read"), b"mine");
    let output = export(Path::new("-"), &[], &[sample("node", "perf.data")]);
    assert_eq!(output.status.code(), Some(2));
}

/// Killed at any moment, it leaves whole files where tables are, and the next run completes them.
#[test]
fn a_killed_export_leaves_no_half_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("whole");
    exported(&whole, &[], &all_samples());
    let expected = files(&whole);
    for delay in (0..12).map(|step| step * 40) {
        let root = folder.path().join(format!("killed-{delay}"));
        let mut child = pjit()
            .args(["export", "--format", "parquet", "-o"])
            .arg(&root)
            .args(all_samples())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the binary can be run");
        std::thread::sleep(std::time::Duration::from_millis(delay));
        // It may have ended by then.
        let _ = child.kill();
        child.wait().expect("it ends");
        let is_unfinished = |path: &Path| path.starts_with("v1/.part");
        for (path, bytes) in files(&root) {
            if !is_unfinished(&path) {
                assert!(expected[&path] == bytes, "{}", path.display());
            }
        }
        exported(&root, &[], &all_samples());
        let mut after = files(&root);
        after.retain(|path, _| !is_unfinished(path));
        assert!(after == expected, "after {delay} ms");
    }
}

/// What the engines answer that are here, by their names: rows of each question of the page.
fn answers(root: &Path, engines: &[&str], zone: &str) -> Option<BTreeMap<String, Value>> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules = std::env::var_os("PJIT_PYTHON_MODULES")
        .map_or_else(|| project.join("target/python"), PathBuf::from);
    let output = Command::new("python3")
        .arg(project.join("scripts/engines"))
        .arg(root)
        .args(engines)
        .env("PYTHONPATH", modules)
        .env("TZ", zone)
        .output();
    let Ok(output) = output else {
        skip(engines[0], "python3 is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("No module named") {
        skip(engines[0], &said);
        return None;
    }
    assert!(output.status.success(), "{engines:?}: {said}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// A dataset of two hosts and two versions.
fn fleet(root: &Path) {
    for (host, version, run, names) in [
        ("a", "1", "1", ["node", "native"]),
        ("b", "2", "2", ["node", "wasmtime"]),
    ] {
        let labels = [
            format!("host={host}"),
            format!("version={version}"),
            format!("run={run}"),
        ];
        let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
        exported(root, &labels, &names.map(|name| sample(name, "perf.data")));
    }
}

#[test]
fn engines_agree_in_any_time_zone_and_after_compaction() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fleet(&root);
    let mut known: Option<Value> = None;
    let engines = ["duckdb", "polars", "datafusion"];
    let mut compare = |zone| {
        let mut is_compared = false;
        for engine in engines {
            let Some(mut rows) = answers(&root, &[engine], zone) else {
                continue;
            };
            let rows = rows.remove(engine).expect("its rows");
            let questions = rows.as_array().expect("questions");
            assert_eq!(questions.len(), 6);
            // That of callers asks for a function which these recordings may lack.
            for at in [0, 1, 2, 3, 5] {
                let found = questions[at].as_array().expect("rows");
                assert!(!found.is_empty(), "question {}", at + 1);
            }
            let known = known.get_or_insert_with(|| rows.clone());
            assert_eq!(*known, rows, "{engine} in {zone}");
            is_compared = true;
        }
        is_compared
    };
    compare("UTC");
    compare("America/New_York");
    if compacted(&root) {
        assert!(compare("UTC"));
    }
}

/// Joins the files of each table and day by the statement of the page.
fn compacted(root: &Path) -> bool {
    let page = include_str!("../../docs/dataset.md");
    let part = page.split("## Compaction\n").nth(1).expect("a part");
    let statement = part
        .split("```sql\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let statement = statement.expect("a statement").trim().trim_end_matches(';');
    assert!(
        statement.contains("SELECT DISTINCT stack, depth, frame")
            && statement.contains("ORDER BY stack, depth")
    );
    let mut statements = Vec::new();
    for (name, columns, order) in [
        (
            "stacks",
            "DISTINCT stack, depth, frame",
            "ORDER BY stack, depth",
        ),
        (
            "frames",
            "DISTINCT frame, name, object, package, kind",
            "ORDER BY frame",
        ),
        ("samples", "*", ""),
        ("labels", "*", ""),
        ("recordings", "*", ""),
    ] {
        let of_table = statement
            .replace("DISTINCT stack, depth, frame", columns)
            .replace("ORDER BY stack, depth", order)
            .replace("stacks", name)
            .replace("ROOT", root.to_str().expect("UTF-8"))
            .replace("DAY", "2026-11-21");
        statements.push(of_table);
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let program = "import duckdb, sys
for statement in sys.argv[1:]: duckdb.execute(statement)";
    let modules = std::env::var_os("PJIT_PYTHON_MODULES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python"),
        PathBuf::from,
    );
    let output = Command::new("python3")
        .args(["-c", program])
        .args(&statements)
        .env("PYTHONPATH", modules)
        .output();
    let Ok(output) = output else {
        skip("duckdb", "python3 is not installed");
        return false;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("No module named") {
        skip("duckdb", &said);
        return false;
    }
    assert!(output.status.success(), "{said}");
    for (name, ..) in SCHEMA.iter().take(5) {
        let folder = root.join("v1").join(name).join("date=2026-11-21");
        let made = root.join(format!("v1/.part/{name}-2026-11-21.parquet"));
        for entry in fs::read_dir(&folder).expect("it can be listed") {
            fs::remove_file(entry.expect("a file").path()).expect("removed");
        }
        fs::rename(made, folder.join("day.parquet")).expect("moved");
    }
    true
}
