//! `pjit record`: programs recorded for real. What runs keeps its status, its signals and its environment; nothing is left behind.
//!
//! Skipped with a message where there is no perf, or recording is not allowed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

mod running;
mod runtimes;

use rustix::process::Signal;
use serde_json::Value;

use crate::live::{Lab, total};
use crate::support::{give_interrupts, pjit, program, send, skip};

/// A folder in which things can be recorded.
pub(crate) fn lab(test: &str) -> Option<Lab> {
    let lab = Lab::empty(&format!("record-{test}"));
    can_record(&lab).then_some(lab)
}

fn can_record(lab: &Lab) -> bool {
    let tried = lab.record("try.data", &["-e", "cpu-clock:u"], &["true"]);
    let _ = fs::remove_file(lab.path("try.data"));
    tried.is_some()
}

/// `pjit record …` in the folder, with the variables of whoever runs the tests but for those that it merges.
pub(crate) fn record(lab: &Lab, words: &[&str]) -> Command {
    let mut command = pjit();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(lab.path(".")).arg("record").args(words);
    command
}

pub(crate) fn done(command: &mut Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

/// Names in the folder, without those of programs that were built there.
fn names(folder: &Path) -> BTreeSet<String> {
    let inside = fs::read_dir(folder).expect("it can be listed").flatten();
    let names = inside.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

fn story(folder: &Path) -> Value {
    let text = fs::read(folder.join("record.json")).expect("it was told");
    serde_json::from_slice(&text).expect("it is JSON")
}

#[test]
fn the_status_is_the_commands() {
    let Some(lab) = lab("status") else { return };
    fs::write(lab.path("plain"), "no program").expect("written");
    let sh = |script| ["-q", "--", "sh", "-c", script];
    assert_eq!(done(&mut record(&lab, &sh("exit 37"))).0, Some(37));
    assert_eq!(done(&mut record(&lab, &sh("kill -SEGV $$"))).0, Some(139));
    for (command, status) in [
        ("./nothing", 127),
        ("nothing-of-this-name", 127),
        ("./plain", 126),
    ] {
        let (code, out, err) = done(&mut record(&lab, &["--", command]));
        assert_eq!(code, Some(status), "{command}: {err}");
        assert!(err.starts_with("error: "), "{err}");
        assert_eq!(out, "");
    }
    let made = names(&lab.path("."));
    let folders: Vec<_> = made
        .iter()
        .filter(|name| name.starts_with("pjit-sh-"))
        .collect();
    // Two within a second have folders of their own, too.
    assert_eq!(folders.len(), 2, "{made:?}");
    assert_eq!(made.len(), folders.len() + 1, "{made:?}");
}

#[test]
fn what_cannot_be_recorded_leaves_nothing_and_is_125() {
    let Some(lab) = lab("cannot") else { return };
    let path = lab.path("no-perf");
    fs::create_dir(&path).expect("made");
    let cases: [(&[&str], &str); 8] = [
        (&["-o", "-", "--", "true"], "none to standard output"),
        (&[], "nothing to record"),
        (&["-p", "4194999"], "has ended"),
        (&["-o", "missing/deep", "--", "true"], "is not there"),
        (
            &["--duration", "1", "--", "true"],
            "--duration is for -p and -a",
        ),
        (&["-a", "--duration", "1", "--", "true"], "not both"),
        (&["--no-such-option"], "has no option --no-such-option"),
        (
            &["--no-switch", "cobol", "--", "true"],
            "--no-switch takes ",
        ),
    ];
    for (words, told) in cases {
        let (code, out, err) = done(&mut record(&lab, words));
        assert_eq!((code, out.as_str()), (Some(125), ""), "{words:?}: {err}");
        assert!(err.contains(told), "{words:?}: {err}");
    }
    let (code, _, err) = done(record(&lab, &["--", "/bin/true"]).env("PATH", &path));
    assert_eq!(code, Some(125), "{err}");
    assert!(
        err.contains("no perf on PATH") && err.contains("hint: "),
        "{err}"
    );
    assert_eq!(names(&lab.path(".")), ["no-perf".to_owned()].into());

    // Never over another one.
    let twice = |_| done(&mut record(&lab, &["-q", "-o", "out", "--", "true"]));
    let [first, second] = [(); 2].map(twice);
    assert_eq!(first.0, Some(0), "{}", first.2);
    assert_eq!(second.0, Some(125));
    assert!(second.2.contains("has a recording already"), "{}", second.2);
    // Names of another kernel would be taken for this one's.
    fs::create_dir(lab.path("half")).expect("made");
    fs::write(lab.path("half/kallsyms.gz"), "of another").expect("written");
    let (code, _, err) = done(&mut record(&lab, &["-o", "half", "--", "true"]));
    assert_eq!(code, Some(125), "{err}");
    assert!(
        err.contains("has the kallsyms.gz of another recording"),
        "{err}"
    );
}

#[test]
fn less_is_asked_for_where_others_lock_what_the_trial_had() {
    let Some(lab) = lab("locked") else { return };
    let words = ["-o", "out", "--", "sh", "-c", "exit 7"];
    // What this user may have without another one is not less than that.
    let had = done(&mut record(&lab, &["-o", "had", "--", "true"])).2;
    // As if another recording had begun behind the trial: perf that is attached gets 512K and no more.
    let search = std::env::var("PATH").unwrap_or_default();
    let fake = lab.path("bin");
    fs::create_dir(&fake).expect("made");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--control*'-m 512K'*|*'-m 512K'*--control*) ;; *--control*)\n  \
         echo 'Permission error mapping pages.' >&2; exit 255;; esac\nPATH='{search}' exec perf \"$@\"\n"
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::write(fake.join("perf"), script).expect("written");
    fs::set_permissions(fake.join("perf"), mode).expect("can be run");
    let path = format!("{}:{search}", fake.display());
    let (code, _, err) = done(record(&lab, &words).env("PATH", &path));
    assert_eq!(code, Some(7), "{err}");
    // Nothing was lost by it.
    let noted = |err: &str| err.contains("a ring of 512K");
    assert!(!noted(&err) || noted(&had), "{err}\n{had}");
    let told = story(&lab.path("out"));
    assert!(told.to_string().contains("\"512K\""), "{told}");
    let notes = told["notes"].to_string();
    assert!(notes.contains("a ring of 512K a processor"), "{told}");
    // A size that was asked for is not changed.
    let mine = ["-m", "1M", "-o", "mine", "--", "true"];
    let (code, _, err) = done(record(&lab, &mine).env("PATH", &path));
    assert_eq!(code, Some(125), "{err}");
    assert!(err.contains("error: perf did not start"), "{err}");
    assert!(!lab.path("mine").exists(), "{err}");
}

#[test]
fn a_dry_run_prints_what_can_be_typed_and_writes_nothing() {
    let lab = Lab::empty("record-dry");
    let words = [
        "--dry-run",
        "-o",
        "out",
        "-F",
        "499",
        "--",
        "node",
        "a b.js",
    ];
    // Only asked whether there is such a program.
    fs::write(lab.path("node"), "#!/bin/sh\nexit 9\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(lab.path("node"), mode).expect("allowed");
    let path = lab.path(".").display().to_string();
    let mut command = record(&lab, &words);
    let (code, out, err) = done(command.env("PATH", path).env("NODE_OPTIONS", "--trace-gc"));
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains(
            "export NODE_OPTIONS='--trace-gc --perf-prof --interpreted-frames-native-stack'\n"
        ),
        "{out}"
    );
    assert!(
        out.contains("perf record -F 499 -k mono --call-graph dwarf,"),
        "{out}"
    );
    assert!(out.ends_with("-- node 'a b.js'\n"), "{out}");
    // A ring that is small here, for an ordinary user, is told in front.
    let told = out.lines().take_while(|line| line.starts_with("# "));
    assert!(told.count() <= 1, "{out}");
    assert_eq!(names(&lab.path(".")), ["node".to_owned()].into());
}

#[test]
fn variables_are_merged_and_output_is_the_commands() {
    let Some(lab) = lab("variables") else { return };
    lay(&lab, "variables.sh");
    let mut command = record(&lab, &["-o", "out", "--", "sh", "variables.sh"]);
    command
        .env("NODE_OPTIONS", "--max-old-space-size=512")
        .env("JAVA_TOOL_OPTIONS", "-Xmx64m")
        .env("PHP_INI_SCAN_DIR", "/etc/mine")
        .env("PYTHONPERFSUPPORT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it can be run");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"typed\n").expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "typed");
    assert_eq!(
        lines[1],
        "--max-old-space-size=512 --perf-prof --interpreted-frames-native-stack"
    );
    assert!(lines[2].starts_with("-Xmx64m -XX:+Ignore"), "{text}");
    assert!(
        lines[3].starts_with("/etc/mine:") && lines[3].ends_with("/out/.php"),
        "{text}"
    );
    assert_eq!(lines[4..], ["0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("# pjit summary: "), "{said}");
    assert!(said.contains("\nnext: pjit "), "{said}");
    assert!(said.lines().count() <= 40, "{said}");
    // Nothing but what belongs there, and for nobody else.
    let made = names(&lab.path("out"));
    let known = ["perf.data", "record.json", "kallsyms.gz"].map(str::to_owned);
    assert!(made.is_subset(&known.into()), "{made:?}");
    let mode = fs::metadata(lab.path("out")).expect("there").permissions();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode);
    assert_eq!(mode & 0o777, 0o700);
    let told = story(&lab.path("out"));
    assert_eq!(told["status"], 0);
    // Of the user's variables nothing is kept.
    assert!(!told.to_string().contains("max-old-space"), "{told}");
    assert_eq!(
        told["environment"]["NODE_OPTIONS"],
        "--perf-prof --interpreted-frames-native-stack"
    );
}

/// A folder with a program of `tests/programs` in it, and its source.
fn built(test: &str, program: &str) -> Option<Lab> {
    let lab = lab(test)?;
    builds(&lab, program, &["-O1", "-g"]).then_some(lab)
}

/// Compiles another one there.
fn builds(lab: &Lab, program: &str, flags: &[&str]) -> bool {
    let source = format!("{program}.c");
    lay(lab, &source);
    let made = Command::new("cc")
        .args(flags)
        .args(["-o", program, &source])
        .current_dir(lab.path("."))
        .output();
    match made {
        Ok(made) if made.status.success() => true,
        Ok(made) => panic!("{}", String::from_utf8_lossy(&made.stderr)),
        Err(_) => {
            skip("cc", "it cannot be run");
            false
        }
    }
}

/// Lays a file of `tests/programs` into the folder.
fn lay(lab: &Lab, file: &str) {
    fs::copy(Lab::program(file), lab.path(file)).expect("it is there");
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Children of a process that run a program whose name begins so.
fn children(of: u32, begins: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{of}/task"))
        .into_iter()
        .flatten()
        .flatten();
    for task in tasks {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found.retain(|pid| runtimes::program_of(*pid).starts_with(begins));
    found
}

fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// Starts it in a session of its own, as no terminal's; waits until the server is ready.
fn serving(lab: &Lab, out: &str) -> Child {
    give_interrupts();
    let _ = fs::remove_file(lab.path("ready"));
    // Small rings have a lower rate.
    let mut command = record(lab, &["-q", "-F", "999", "-o", out, "--", "./server"]);
    command.process_group(0).stderr(Stdio::null());
    let child = command.spawn().expect("it can be run");
    wait_for("the server is ready", || lab.path("ready").exists());
    std::thread::sleep(Duration::from_millis(200));
    child
}

/// As many samples as a recording with 999 Hz would have; those with small rings have fewer.
fn samples_of(lab: &Lab, out: &str, function: &str) -> u64 {
    let folded = lab.show(&["fold", "--weight", "samples"], out);
    let has = |line: &&str| line.contains(function);
    let lines: Vec<&str> = folded.lines().filter(has).collect();
    let plan = fs::read(lab.path(out).join("record.json")).unwrap_or_default();
    let plan: Value = serde_json::from_slice(&plan).unwrap_or_default();
    let rate = plan["frequency"].as_u64().unwrap_or(999);
    total(&lines.join("\n")) * 999 / rate.clamp(1, 999)
}

#[test]
fn signals_are_the_commands_and_its_end_is_recorded() {
    let Some(lab) = built("signals", "server") else {
        return;
    };
    for (signal, out) in [
        (Signal::INT, "int"),
        (Signal::TERM, "term"),
        (Signal::HUP, "hup"),
    ] {
        let mut child = serving(&lab, out);
        send(signal, child.id());
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(42), "{out}");
        assert!(samples_of(&lab, out, "clean_up") > 20, "{out}");
        assert!(samples_of(&lab, out, "serve") > 20, "{out}");
        assert_eq!(story(&lab.path(out))["status"], 42);
    }
}

#[test]
fn whoever_is_killed_the_others_end_well() {
    let Some(lab) = built("killed", "server") else {
        return;
    };
    // pjit itself: perf completes its file, the command is asked to end.
    let mut child = serving(&lab, "pjit");
    let (perfs, servers) = (children(child.id(), "perf"), children(child.id(), "server"));
    assert_eq!((perfs.len(), servers.len()), (1, 1));
    send(Signal::KILL, child.id());
    let _ = child.wait();
    wait_for("both are gone", || is_gone(perfs[0]) && is_gone(servers[0]));
    assert!(samples_of(&lab, "pjit", "serve") > 20);
    let checked = pjit()
        .args(["check", "pjit"])
        .current_dir(lab.path("."))
        .output()
        .expect("it can be run");
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("ok    recording "), "{checked}");

    // perf: the command goes on, and its status is kept.
    let mut child = serving(&lab, "perf");
    send(Signal::KILL, children(child.id(), "perf")[0]);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(children(child.id(), "server").len(), 1);
    send(Signal::TERM, child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(42));
    let told = story(&lab.path("perf"));
    let notes = told["notes"].to_string();
    assert!(notes.contains("perf was killed"), "{notes}");
    assert!(told["perf_ended"].as_f64() < told["ran"].as_f64(), "{told}");
}

/// SIGINT and SIGTERM let perf complete its file, of which nothing tells how much is missing.
#[test]
fn an_end_of_perf_before_the_commands_is_told() {
    let Some(lab) = built("early", "rounds") else {
        return;
    };
    let checked = |out: &str| lab.pjit(&["check"], out).1;
    let early = "warn  recording.ended-early ";
    if program("pkill").is_none() {
        skip("pkill", "there is none");
        return;
    }
    for signal in ["INT", "TERM"] {
        let script = format!("./rounds 300; pkill -{signal} -P $PPID perf; ./rounds 600");
        let words = ["-o", signal, "--", "sh", "-c", &script];
        let (code, _, err) = done(&mut record(&lab, &words));
        assert_eq!(code, Some(0), "{err}");
        let told = story(&lab.path(signal));
        let [at, of] = ["perf_ended", "ran"].map(|name| told[name].as_f64().expect("a number"));
        assert!(0.0 < at && at + 0.1 <= of, "{told}");
        let note = format!(" at {at:.1} s");
        assert!(err.contains(&note), "{note}\n{err}");
        let text = checked(signal);
        let line = format!(" the recording ends {at:.1} s into the {of:.1} s of the command");
        assert!(
            text.contains(early) && text.contains(&line),
            "{line}\n{text}"
        );
    }
    // An end at its time is none.
    let (code, _, err) = done(&mut record(&lab, &["-o", "whole", "--", "./rounds", "300"]));
    assert!(code == Some(0) && !err.contains(" ends at "), "{err}");
    assert!(story(&lab.path("whole"))["perf_ended"].is_null());
    assert!(!checked("whole").contains("ended-early"));
}

/// What the program prints of itself, what the kernel told pjit, and what the pages say.
#[test]
fn cpu_time_without_samples_is_told() {
    let Some(lab) = built("unseen", "brief") else {
        return;
    };
    let used = |out: &str| {
        let told = story(&lab.path(out));
        ["user", "system"].map(|name| told["cpu"][name].as_f64().expect("a number"))
    };
    let (code, printed, err) = done(&mut record(
        &lab,
        &[
            "-q", "-F", "999", "-o", "short", "--", "./brief", "4000", "100000", "40000000",
        ],
    ));
    assert_eq!(code, Some(0), "{err}");
    let [user, system] = used("short");
    let (told, truth) = (user + system, crate::live::truth(&printed)["cpu"]);
    // It runs a little before it counts, and behind that; ticks are cut.
    assert!(
        (truth - 0.05..1.1 * truth + 0.05).contains(&told),
        "{told} {truth}"
    );
    let seen = total(&lab.show(&["fold"], "short")) as f64 / 1e9;
    // Some twenty samples are what such a program has.
    let (status, text, _) = lab.pjit(&["check", "--min-samples", "1"], "short");
    // Where the kernel may not be recorded, its time is not asked for.
    let (ring, told, level) = if text.contains("user mode alone") {
        ("user ", user, "warn")
    } else {
        ("", told, "FAIL")
    };
    let both = format!("{seen:.2} of {told:.2} s");
    assert_eq!(status, if level == "FAIL" { 3 } else { 0 }, "{text}");
    let code = format!("{level}  samples.unseen ");
    let line = text.lines().find(|line| line.starts_with(&code));
    let line = line.unwrap_or_else(|| panic!("{both}\n{text}"));
    assert!(
        line.contains(&format!(" {both} {ring}CPU time was sampled; ")),
        "{both}\n{line}"
    );
    assert!(text.contains(" threads that lived shortly") && !text.contains("samples.brief"));
    let page = lab.show(&["summary"], "short").replace("\n#  ", "");
    assert!(
        page.contains(&format!("{both} {ring}CPU sampled")),
        "{page}"
    );
    let page: serde_json::Value =
        serde_json::from_str(&lab.show(&["summary", "--format", "json"], "short")).expect("JSON");
    let seconds = page["recordings"][0]["cpu_seconds"]
        .as_f64()
        .expect("a number");
    assert!((seconds - told).abs() < 1e-6, "{seconds} {told}");
    // A part of the time has a part of the samples.
    let (_, text, _) = lab.pjit(&["check", "--time", "50%-100%"], "short");
    assert!(!text.contains("samples.unseen"), "{text}");

    // All of it has samples; and a child that nobody waits for has more.
    assert!(builds(&lab, "rounds", &["-O1"]));
    for (out, script) in [
        ("whole", "./rounds 500; :"),
        ("left", "./rounds 500 & exec sleep 1"),
    ] {
        let words = ["-q", "-F", "999", "-o", out, "--", "sh", "-c", script];
        let (code, _, err) = done(&mut record(&lab, &words));
        assert_eq!(code, Some(0), "{err}");
        let text = lab.pjit(&["check"], out).1;
        assert!(!text.contains("samples.unseen"), "{text}");
        let page = lab.show(&["summary"], out);
        assert!(!page.contains("sampled"), "{page}");
    }
    let left: f64 = used("left").iter().sum();
    assert!(left < 0.1, "{left}");
    assert!(samples_of(&lab, "left", "busy") > 50);
}

#[test]
fn a_command_that_removes_the_folder_leaves_no_recording() {
    let Some(lab) = built("removed", "rounds") else {
        return;
    };
    let words = ["-o", "gone", "--", "sh", "-c", "./rounds 100; rm -r gone"];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(125), "{err}");
    assert!(err.contains("gone was removed meanwhile"), "{err}");
    assert!(
        !err.contains("next:") && !lab.path("gone").exists(),
        "{err}"
    );
}

#[test]
fn what_goes_on_is_recorded_if_that_is_wanted() {
    let Some(lab) = built("daemon", "server") else {
        return;
    };
    if program("setsid").is_none() || program("timeout").is_none() {
        skip("setsid", "there is none");
        return;
    }
    let script = "setsid timeout -s TERM 1.5 ./server >/dev/null 2>&1 & exit 3";
    let (code, _, err) = done(&mut record(
        &lab,
        &["-o", "without", "--", "sh", "-c", script],
    ));
    assert_eq!(code, Some(3), "{err}");
    assert!(
        err.contains(" on\n") && err.contains("--until-exit"),
        "{err}"
    );
    let (code, _, err) = done(&mut record(
        &lab,
        &["-q", "--until-exit", "-o", "with", "--", "sh", "-c", script],
    ));
    assert_eq!(code, Some(3), "{err}");
    assert!(samples_of(&lab, "with", "serve") > 200);
    assert!(samples_of(&lab, "with", "clean_up") > 20);
}

/// A picture of nothing helps nobody.
#[test]
fn a_command_that_waits_is_recorded_where_it_waits_next() {
    let Some(lab) = lab("waits") else { return };
    let (code, _, err) = done(&mut record(&lab, &["-o", "out", "--", "sleep", "1"]));
    assert_eq!(code, Some(0), "{err}");
    let next = err.lines().find(|line| line.starts_with("next: "));
    let next = next.expect("something to type");
    let wanted = "pjit record --offcpu -- sleep 1   # says where it waits";
    assert!(next.ends_with(wanted), "{err}");
}

/// A program that does not outlive a test that fails.
struct Ended(Child);

impl Ended {
    fn start(lab: &Lab, program: &str) -> Self {
        let mut command = Command::new(program);
        let child = command.current_dir(lab.path(".")).spawn();
        Self(child.expect("it can be run"))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The size of the ring that a recording had.
fn ring_of(lab: &Lab, out: &str) -> String {
    let told = story(&lab.path(out));
    let words = told["perf"].as_array().expect("words");
    let at = words.iter().position(|word| word == "-m").expect("a size");
    words[at + 1].as_str().expect("a word").to_owned()
}

/// Each runtime that is asked what it can costs more than all else.
#[test]
fn perf_is_started_twice_and_no_runtime() {
    let Some(lab) = lab("starts") else { return };
    let search = std::env::var("PATH").unwrap_or_default();
    let bin = lab.path("bin");
    fs::create_dir(&bin).expect("made");
    let log = lab.path("log");
    let mode: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let runtimes = [
        "node", "deno", "bun", "java", "jcmd", "python3", "php", "erl", "mono", "ruby",
    ];
    for name in runtimes.iter().chain(&["perf"]) {
        let script = format!(
            "#!/bin/sh\necho {name} >>'{}'\nPATH='{search}' exec {name} \"$@\"\n",
            log.display()
        );
        fs::write(bin.join(name), script).expect("written");
        fs::set_permissions(bin.join(name), mode.clone()).expect("can be run");
    }
    let path = format!("{}:{search}", bin.display());
    let words = ["-o", "out", "--", "true"];
    let (code, _, err) = done(record(&lab, &words).env("PATH", &path));
    assert_eq!(code, Some(0), "{err}");
    let log = fs::read_to_string(&log).expect("there");
    assert!(log.lines().all(|name| name == "perf"), "{log}");
    let planned = done(&mut record(&lab, &["--dry-run", "--", "true"])).1;
    let ring = ring_of(&lab, "out");
    if planned.contains(&format!(" -m {ring} ")) {
        assert_eq!(log.lines().count(), 2, "{planned}");
    } else {
        // What other recordings of this user lock at the time counts, so that one trial or more was refused.
        assert!((3..=5).contains(&log.lines().count()), "{ring}: {planned}");
    }
}

/// Better nothing than a recording that ends before it has begun.
#[test]
fn without_space_nothing_is_started() {
    let Some(lab) = lab("space") else { return };
    let script = "mkdir full && mount -t tmpfs -o size=1m none full || exit 99
        \"$0\" record -o full/out -- touch started; status=$?; ls full; exit $status";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_pjit")]);
    command.current_dir(lab.path("."));
    if program("unshare").is_none() || !rustix::process::geteuid().is_root() {
        return skip("mount", "only root can mount a small file system");
    }
    let (code, out, err) = done(&mut command);
    if code == Some(99) {
        return skip("mount", "it is not allowed");
    }
    assert_eq!((code, out.as_str()), (Some(125), ""), "{err}");
    assert!(
        err.contains("MB are free") && err.contains("hint: -o DIR"),
        "{err}"
    );
    assert!(!lab.path("started").exists(), "{err}");
}

/// .NET to 5 writes a second file with its map.
#[test]
fn maps_come_along_and_what_is_written_with_them_goes() {
    let Some(lab) = lab("map") else { return };
    lay(&lab, "map.sh");
    let words = ["-q", "-o", "out", "--", "sh", "map.sh"];
    let (code, out, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    let map = format!("perf-{}.map", out.trim());
    assert!(names(&lab.path("out")).contains(&map), "{err}");
    assert!(!Path::new("/tmp").join(&map).exists());
    assert!(
        !Path::new("/tmp")
            .join(map.replace("perf-", "perfinfo-"))
            .exists()
    );
}

/// Half of a second of all that runs here, of which one is known.
#[test]
fn the_whole_machine_has_what_it_runs() {
    let Some(lab) = built("machine", "server") else {
        return;
    };
    let mut server = Ended::start(&lab, "./server");
    wait_for("the server is ready", || lab.path("ready").exists());
    let words = ["-a", "--duration", "0.5", "-o", "out"];
    let (code, _, err) = done(&mut record(&lab, &words));
    if code == Some(125) && err.contains("hint: sudo pjit record -a") {
        return skip("-a", "it is not allowed");
    }
    assert_eq!(code, Some(0), "{err}");
    assert!(server.0.try_wait().expect("asked").is_none());
    assert!(samples_of(&lab, "out", "serve") > 20, "{err}");
    let notes = err.lines().filter(|line| line.starts_with("note: "));
    assert!(notes.count() <= 3, "{err}");
}

/// More processes than most machines have processors; the ring is what this user may have.
#[test]
fn nothing_is_lost_of_several_busy_processes() {
    let Some(lab) = built("busy", "rounds") else {
        return;
    };
    let script = "./rounds 1500 & ./rounds 1500 & ./rounds 1500 & ./rounds 1500 & wait";
    let (code, _, err) = done(&mut record(
        &lab,
        &["-q", "-o", "out", "--", "sh", "-c", script],
    ));
    assert_eq!(code, Some(0), "{err}");
    let checked = lab.pjit(&["check", "--format", "json"], "out").1;
    let checked: Value = serde_json::from_str(&checked).expect("it is JSON");
    let count = |name: &str| checked[name].as_u64().expect(name);
    // Each takes 1.5 s or so of a processor, however many samples a second there are.
    let seconds = total(&lab.show(&["fold"], "out")) as f64 / 1e9;
    assert!(seconds > 0.5, "{checked}");
    assert!(count("lost") * 100 < count("samples"), "{checked}");
}

/// Nobody of that number may record much; what cannot be had is told, and how it could be.
#[test]
fn ordinary_users_are_told_what_mends_it() {
    let Some(lab) = lab("user") else { return };
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let becomes = Command::new("setpriv")
        .args(nobody)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !becomes.is_ok_and(|status| status.success()) {
        // Root of a namespace of users may know no other user.
        skip("setpriv", "only root can become somebody else");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("pjit");
    fs::copy(env!("CARGO_BIN_EXE_pjit"), &binary).expect("copied");
    let open = |path: &Path, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, mode).expect("allowed");
    };
    open(folder.path(), 0o777);
    open(&binary, 0o755);
    let run = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(nobody);
        command.arg(&binary).arg("record").args(words);
        command
            .current_dir(folder.path())
            .env("HOME", "/nonexistent");
        done(&mut command)
    };
    let (code, _, err) = run(&["-a", "--duration", "1"]);
    assert_eq!(code, Some(125), "{err}");
    assert!(err.contains("hint: sudo pjit record -a"), "{err}");
    let (code, _, err) = run(&["-p", "1", "--duration", "1"]);
    assert_eq!(code, Some(125), "{err}");
    assert!(err.contains("another user"), "{err}");
    assert_eq!(names(folder.path()).len(), 1, "{err}");
    let (code, _, err) = run(&["-o", "/proc", "--", "true"]);
    assert_eq!(code, Some(125), "{err}");
    let (code, _, err) = run(&["-o", "out", "--", "sh", "-c", "exit 5"]);
    assert_eq!(code, Some(5), "{err}");
    let (code, out, err) = run(&["--doctor"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("works: perf record -F "), "{out}");
    drop(lab);
}

#[test]
fn runs_are_recorded_by_turns_and_compared() {
    let Some(lab) = built("runs", "rounds") else {
        return;
    };
    let words = [
        "--runs",
        "2",
        "--base",
        "./rounds 150",
        "-o",
        "out",
        "--",
        "./rounds",
        "300",
    ];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("# pjit diff: 2 runs of base, 2 of new"),
        "{err}"
    );
    let began = |side: &str, run: &str| {
        let folder = lab.path("out").join(side).join(run);
        story(&folder)["began"].as_f64().expect("a time")
    };
    let times = [("base", "01"), ("new", "01"), ("base", "02"), ("new", "02")];
    let times = times.map(|(side, run)| began(side, run));
    assert!(times.is_sorted(), "{times:?}");
    assert!(!err.contains("failed"), "{err}");
    // A second series would overwrite the first, and what is left of that would count.
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(125), "{err}");
    assert!(err.contains("out/base has a recording already"), "{err}");
    assert!(!lab.path("out/base/01/perf.data.old").exists());
}

#[test]
fn runs_that_fail_are_told() {
    let Some(lab) = built("failing", "rounds") else {
        return;
    };
    let base = ["--runs", "1", "--base", "./rounds 300; exit 3", "-o", "out"];
    let words = base.iter().chain(&["--", "./rounds", "300"]);
    let words: Vec<&str> = words.copied().collect();
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(3), "{err}");
    assert!(
        err.contains("warning: 1 of 1 runs of base failed (status 3)"),
        "{err}"
    );
    assert!(!err.contains("runs of new failed"), "{err}");
}

#[test]
fn once_more_stacks_are_large_enough() {
    let Some(lab) = built("again", "deep") else {
        return;
    };
    let words = ["-o", "small", "--call-graph", "dwarf,8192", "--", "./deep"];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("next: pjit record --again small"), "{err}");
    let (code, _, err) = done(&mut record(&lab, &["--again", "small", "-o", "large"]));
    assert_eq!(code, Some(0), "{err}");
    let line = |begins: &str| {
        let found = err.lines().find(|line| line.starts_with(begins));
        let percent = found.and_then(|line| line[begins.len()..].trim().split('%').next());
        percent
            .and_then(|number| number.parse::<f64>().ok())
            .unwrap_or(-1.0)
    };
    assert!(line("before:") < 50.0 && line("now:") > 90.0, "{err}");
    // Frame pointers are not followed again where they led nowhere, unless somebody asks for it.
    let words = ["-g", "-o", "fp", "--", "./deep"];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    let asked = |out: &str| story(&lab.path(out))["asked"]["call_graph"].clone();
    assert_eq!(asked("fp"), "fp");
    for (words, graph) in [(&[][..], Value::Null), (&["-g"][..], "fp".into())] {
        let out = format!("again{}", words.len());
        let words = [&["-q", "--again", "fp", "-o", &out], words].concat();
        let (code, _, err) = done(&mut record(&lab, &words));
        assert_eq!((code, asked(&out)), (Some(0), graph), "{err}");
    }
    // Without an argument the newest folder is read.
    let (code, _, err) = done(&mut record(&lab, &["-q", "--", "./deep"]));
    assert_eq!(code, Some(0), "{err}");
    let read = || {
        let summary = pjit().arg("summary").current_dir(lab.path(".")).output();
        let summary = summary.expect("it can be run");
        let said = String::from_utf8_lossy(&summary.stderr).into_owned();
        let is_ours = said.starts_with("note: reading pjit-deep-");
        assert_eq!(is_ours, summary.status.success(), "{said}");
        is_ours
    };
    assert!(read());
    // A recording of perf is read if it is newer.
    let of_perf = fs::File::create(lab.path("perf.data")).expect("made");
    let day = Duration::from_secs(86_400);
    for (time, is_ours) in [
        (SystemTime::now() - day, true),
        (SystemTime::now() + day, false),
    ] {
        of_perf.set_modified(time).expect("set");
        assert_eq!(read(), is_ours);
    }
}

#[test]
fn what_a_killed_recorder_left_is_gathered_later() {
    let Some(lab) = built("finish", "server") else {
        return;
    };
    let mut child = serving(&lab, "out");
    let (perfs, servers) = (children(child.id(), "perf"), children(child.id(), "server"));
    send(Signal::KILL, child.id());
    let _ = child.wait();
    wait_for("both are gone", || is_gone(perfs[0]) && is_gone(servers[0]));
    let (code, _, err) = done(&mut record(&lab, &["--finish", "out"]));
    assert_eq!(code, Some(0), "{err}");
    let made = names(&lab.path("out"));
    let known = ["perf.data", "kallsyms.gz", "record.json"].map(str::to_owned);
    assert!(made.is_subset(&known.into()), "{made:?}");
    let story = fs::read(lab.path("out/record.json")).expect("it was told");
    let story: Value = serde_json::from_slice(&story).expect("JSON");
    let told = (&story["status"], &story["command"][0]);
    assert_eq!(told, (&Value::Null, &Value::from("./server")), "{story}");
    assert!(story["ended"].as_f64() >= story["began"].as_f64());
    let (code, out, err) = done(&mut record(&lab, &["--again", "out", "--dry-run"]));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("./server"), "{out}");
}

#[test]
fn a_server_is_loaded_and_ended() {
    let Some(lab) = built("load", "server") else {
        return;
    };
    let words = [
        "-q",
        "--load",
        "sleep 0.5; touch loaded",
        "-o",
        "out",
        "--",
        "./server",
    ];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(42), "{err}");
    assert!(lab.path("loaded").exists());
    assert!(samples_of(&lab, "out", "clean_up") > 20, "{err}");
}

/// Files below a folder, by their names in it.
fn below_symfs(folder: &Path) -> BTreeSet<String> {
    let root = folder.join("symfs");
    let mut found = BTreeSet::new();
    let mut todo = vec![root.clone()];
    while let Some(path) = todo.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if let Ok(name) = path.strip_prefix(&root) {
                found.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    found
}

#[test]
fn programs_that_are_gone_later_come_along() {
    let Some(lab) = built("gone", "rounds") else {
        return;
    };
    // Removed while it runs, as by `go run`; and by a name that it never had.
    let script = "cp rounds gone; ./gone 6000 & sleep 0.3; rm gone; wait";
    let (code, _, err) = done(&mut record(
        &lab,
        &["-q", "-o", "out", "--", "sh", "-c", script],
    ));
    assert_eq!(code, Some(0), "{err}");
    let place = lab.path("gone").display().to_string();
    let place = place.trim_start_matches('/').to_owned();
    assert_eq!(below_symfs(&lab.path("out")), [place].into(), "{err}");
    assert!(samples_of(&lab, "out", "busy") > 50, "{err}");
    // A small file is read to its end before it is copied.
    let small = Command::new("cc")
        .args(["-O1", "-s", "-o"])
        .args([lab.path("small"), lab.path("rounds.c")])
        .status();
    assert!(small.is_ok_and(|status| status.success()));
    let script = "cp small brief; ./brief 1500 & sleep 0.3; rm brief; wait";
    let words = ["-q", "-o", "tiny", "--", "sh", "-c", script];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    let place = lab.path("brief").display().to_string();
    let copy = lab.path("tiny/symfs").join(place.trim_start_matches('/'));
    let of = |path: &Path| fs::read(path).map_or(0, |bytes| bytes.len());
    let size = of(&lab.path("small"));
    assert!((1..16 << 10).contains(&size), "{size}");
    assert_eq!(of(&copy), size, "{err}");
    // What stays is left where it is; the folder of the tests may be one for things that go.
    lay(&lab, "counts.sh");
    let words = ["-q", "-o", "stays", "--", "sh", "counts.sh"];
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(below_symfs(&lab.path("stays")), BTreeSet::new());
    // Other file systems, which end with the last who sees them.
    let script = "mount -t tmpfs t /mnt && cp rounds /mnt && cd /mnt && ./rounds 1500";
    let words = [
        "-q", "-o", "inside", "--", "unshare", "-m", "sh", "-c", script,
    ];
    let (code, _, err) = done(&mut record(&lab, &words));
    if code != Some(0) {
        skip("unshare", "no namespace can be made");
        return;
    }
    assert_eq!(
        below_symfs(&lab.path("inside")),
        ["mnt/rounds".to_owned()].into(),
        "{err}"
    );
    assert!(samples_of(&lab, "inside", "busy") > 50, "{err}");
}

/// The kernel records a path below `chroot` without what is above, and nothing here has that.
#[test]
fn programs_below_another_root_come_along() {
    let Some(lab) = built("root", "rounds") else {
        return;
    };
    let inside = lab.path("root/pjit-app");
    fs::create_dir_all(&inside).expect("made");
    let made = Command::new("cc")
        .args(["-O1", "-g", "-static", "-o"])
        .args([inside.join("rounds"), lab.path("rounds.c")])
        .status();
    let root = lab.path("root").display().to_string();
    let possible = Command::new("chroot")
        .args([&root, "/pjit-app/rounds", "0"])
        .status();
    if ![made, possible]
        .into_iter()
        .all(|run| run.is_ok_and(|status| status.success()))
    {
        skip(
            "chroot",
            "it is not allowed, or there is no static C library",
        );
        return;
    }
    let mount = format!("mount --bind {root} /mnt && exec chroot /mnt /pjit-app/rounds 1500");
    let ways: [(&str, &[&str]); 2] = [
        ("out", &["chroot", &root, "/pjit-app/rounds", "1500"]),
        ("bound", &["unshare", "-m", "sh", "-c", &mount]),
    ];
    for (out, command) in ways {
        let words = [&["-q", "-o", out, "--"][..], command].concat();
        let (code, _, err) = done(&mut record(&lab, &words));
        if out == "bound" && code != Some(0) {
            skip("unshare", "no namespace can be made");
            return;
        }
        assert_eq!(code, Some(0), "{err}");
        assert_eq!(
            below_symfs(&lab.path(out)),
            ["pjit-app/rounds".to_owned()].into(),
            "{out}: {err}"
        );
        assert!(samples_of(&lab, out, "busy") > 50, "{out}: {err}");
    }
}

#[test]
fn a_folder_with_its_files_tells_the_same_elsewhere() {
    let Some(lab) = built("files", "rounds") else {
        return;
    };
    let words = ["-q", "--files", "-o", "out", "--", "./rounds", "300"];
    // A second of its own, which is not that of the copy.
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(86_400);
    let program = fs::File::options().append(true).open(lab.path("rounds"));
    let touched = program.and_then(|program| program.set_modified(long_ago));
    touched.expect("touched");
    let (code, _, err) = done(&mut record(&lab, &words));
    assert_eq!(code, Some(0), "{err}");
    let files = below_symfs(&lab.path("out"));
    let has = |name: &str| files.iter().any(|file| file.ends_with(name));
    assert!(has("/rounds") && has("/libc.so.6"), "{files:?}");
    let copy = files.iter().find(|file| file.ends_with("/rounds"));
    let copy = lab.path("out/symfs").join(copy.expect("copied"));
    let times =
        [copy, lab.path("rounds")].map(|file| fs::metadata(file).expect("there").modified());
    let [copied, written] = times.map(|time| time.expect("a time"));
    assert_eq!(copied, written);
    // Sources are the user's to give away.
    assert!(!has(".c"), "{files:?}");
    let show = |root: &[&str]| {
        let views: [&[&str]; 3] = [
            &["report", "-i"],
            &["fold", "-i"],
            &["annotate", "busy", "-i"],
        ];
        views.map(|view| lab.show(&[&view[..1], root, &view[1..]].concat(), "out"))
    };
    let here = show(&[]);
    fs::remove_file(lab.path("rounds")).expect("removed");
    // Nothing else of this machine is read.
    assert_eq!(here, show(&["--symfs", "out/symfs"]));
    let (code, _, err) = lab.pjit(&["bundle", "-o", "packed"], "out");
    assert_eq!(code, 0, "{err}");
    assert_eq!(here[1], lab.show(&["fold"], "packed"));
}

/// Whoever makes a folder first has it: none is shared, be it by the clock's name or by the same word.
#[test]
fn recordings_of_one_moment_have_folders_of_their_own() {
    let Some(lab) = lab("moment") else { return };
    let at_once = |words: &[&str]| {
        let start = || {
            let mut command = record(&lab, words);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().expect("it can be run")
        };
        let children: Vec<Child> = (0..4).map(|_| start()).collect();
        let ends = children.into_iter().map(|child| {
            let done = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            (done.status.code(), said)
        });
        ends.collect::<Vec<_>>()
    };
    for (code, said) in at_once(&["-q", "--", "sh", "-c", "exit 7"]) {
        assert_eq!(code, Some(7), "{said}");
    }
    let folders = names(&lab.path("."));
    assert_eq!(folders.len(), 4, "{folders:?}");
    for folder in &folders {
        assert_eq!(story(&lab.path(folder))["status"], 7, "{folder}");
        assert!(lab.path(folder).join("perf.data").exists(), "{folder}");
    }
    let ends = at_once(&["-q", "-o", "out", "--", "sh", "-c", "sleep 0.5; exit 7"]);
    let won = ends.iter().filter(|(code, _)| *code == Some(7)).count();
    let lost = ends.iter().filter(|(code, said)| {
        let is_told = said.contains("somebody records into") || said.contains("has a recording");
        *code == Some(125) && is_told
    });
    assert_eq!((won, lost.count()), (1, 3), "{ends:?}");
    assert_eq!(story(&lab.path("out"))["status"], 7);
}

/// A terminal sends ^C to all of the group in front: the command gets it once, cleans up, and the report follows.
#[test]
fn in_a_terminal_the_command_is_interrupted_once() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::{Read, Write};
    let Some(lab) = built("terminal", "server") else {
        return;
    };
    if program("setsid").is_none() {
        skip("setsid", "there is none");
        return;
    }
    give_interrupts();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("open");
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let side = || {
        let path = Path::new(name.to_str().expect("plain"));
        fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .expect("opened")
    };
    let mut terminal = fs::File::from(terminal);
    let mut out = terminal.try_clone().expect("once more");
    let screen = std::thread::spawn(move || {
        let mut said = Vec::new();
        let mut part = [0; 4096];
        // It fails when nobody is at the other side any more.
        while let Ok(count) = out.read(&mut part) {
            said.extend(&part[..count]);
        }
        String::from_utf8_lossy(&said).into_owned()
    });
    let mut command = Command::new("setsid");
    command.arg("-c").arg(env!("CARGO_BIN_EXE_pjit"));
    command.args(["record", "-o", "out", "--", "./server"]);
    command
        .current_dir(lab.path("."))
        .env("HOME", "/nonexistent");
    command.stdin(side()).stdout(side()).stderr(side());
    let mut child = command.spawn().expect("it can be run");
    // The command holds copies of the other side.
    drop(command);
    wait_for("the server is ready", || lab.path("ready").exists());
    std::thread::sleep(Duration::from_millis(300));
    terminal.write_all(b"\x03").expect("typed");
    // 41 and the number of signals.
    assert_eq!(child.wait().expect("it ends").code(), Some(42));
    let said = screen.join().expect("it ends");
    assert!(said.contains("next: pjit flamegraph out"), "{said}");
    assert!(samples_of(&lab, "out", "clean_up") > 20, "{said}");
}
