//! `pjit bundle`: what it packs reads alike where nothing else is, to the byte; and nothing is overwritten or left behind.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::inlines::{code, recording_of, recording_of_program};
use crate::live::Lab;
use crate::support::{SAMPLES, give_interrupts, pjit, sample, send, skip};

/// What is compared.
const VIEWS: [&[&str]; 6] = [
    &["report"],
    &["report", "--no-children", "-g", "caller"],
    &["report", "--no-children", "-g", "none", "-s", "sym,srcline"],
    &["fold"],
    &["script", "-F", "+srcline"],
    &["annotate", "--skip-missing"],
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("it can be run");
    let error = text(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    output
}

/// Packs a recording; tells what was said.
fn bundle(data: &Path, options: &[&OsStr], output: &Path) -> String {
    let mut command = pjit();
    command.arg("bundle").args(options).arg(data);
    text(&succeed(command.arg("-o").arg(output)).stderr)
}

/// What the views print of a recording.
fn views(data: &Path, options: &[&OsStr]) -> Vec<Vec<u8>> {
    let of = |view: &&[&str]| {
        let mut command = pjit();
        command.args(*view).args(options).arg("-i").arg(data);
        succeed(&mut command).stdout
    };
    VIEWS.iter().map(of).collect()
}

fn compare(name: &str, before: &[Vec<u8>], after: &[Vec<u8>]) {
    for ((view, before), after) in VIEWS.iter().zip(before).zip(after) {
        assert!(!before.is_empty(), "{name} {view:?}: nothing to compare");
        assert!(before == after, "{name} {view:?} differs");
    }
}

fn unpack(archive: &Path, into: &Path) {
    fs::create_dir_all(into).expect("made");
    let mut tar = Command::new("tar");
    succeed(tar.arg("xzf").arg(archive).arg("-C").arg(into));
}

#[test]
fn bundles_of_the_samples_read_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in SAMPLES.into_iter().chain(["wasm"]) {
        let symfs = sample(name, "symfs");
        let symfs: [&OsStr; 2] = ["--symfs".as_ref(), symfs.as_ref()];
        let data = sample(name, "perf.data");
        let before = views(&data, &symfs);
        for slim in [false, true] {
            let mut options = symfs.to_vec();
            options.extend(slim.then_some(OsStr::new("--slim")));
            let made = folder.path().join(format!("{name}-{slim}"));
            bundle(&data, &options, &made);
            compare(name, &before, &views(&made, &[]));
            let archive = folder.path().join(format!("{name}-{slim}.tar.gz"));
            bundle(&data, &options, &archive);
            let unpacked = folder.path().join("unpacked");
            unpack(&archive, &unpacked);
            let inside = unpacked.join(format!("{name}-{slim}"));
            succeed(Command::new("diff").arg("-r").arg(&made).arg(&inside));
        }
    }
}

/// `perf record --threads` makes a folder of files that belong together.
#[test]
fn the_folder_of_parallel_recording_is_one_recording() {
    let Some(lab) = Lab::with("bundle-threads", "pf", &[]) else {
        return;
    };
    let options = ["--threads", "-F", "997", "-g", "-e", "cpu-clock"];
    let spin = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    // The program is there for the sake of the folder only.
    let command = ["sh", "-c", &format!("{spin} & {spin}; wait")];
    if lab.record("perf.data", &options, &command).is_none() {
        return;
    }
    let data = lab.path("perf.data");
    assert!(data.is_dir(), "it is a folder");
    let read = |data: &Path| {
        let fold = succeed(pjit().arg("fold").arg(data)).stdout;
        let script = succeed(pjit().args(["script", "-F", "+srcline"]).arg(data)).stdout;
        (fold, script)
    };
    let before = read(&data);
    assert!(before.0.len() > 100 && before.1.len() > 100);
    let made = lab.path("made");
    bundle(&data, &[], &made);
    assert!(before == read(&made), "the folder reads differently");
    let archive = lab.path("slim.tar.gz");
    bundle(&data, &["--slim".as_ref()], &archive);
    unpack(&archive, &lab.path("unpacked"));
    let inside = lab.path("unpacked").join("slim");
    assert!(before == read(&inside), "the archive reads differently");
    assert!(inside.join("perf.data").is_dir());
}

/// A root with the program, what it is linked to, and a folder for bundles.
fn bare_root(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    fs::create_dir_all(&root).expect("made");
    let program = env!("CARGO_BIN_EXE_pjit");
    fs::copy(program, root.join("pjit")).expect("copied");
    let libraries = Command::new("ldd").arg(program).output();
    let libraries = libraries.map_or_else(|_| String::new(), |output| text(&output.stdout));
    let paths = libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    for path in paths {
        let inside = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(inside.parent().expect("it has one")).expect("made");
        fs::copy(path, inside).expect("copied");
    }
    root
}

#[test]
fn a_bundle_needs_nothing_of_the_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = bare_root(folder.path());
    let mut probe = Command::new("unshare");
    probe.args(["--map-root-user", "chroot"]).arg(&root);
    let works = probe.args(["/pjit", "--version"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return skip("mount", "unshare and chroot are not allowed");
    }
    for name in ["native", "node"] {
        let symfs = sample(name, "symfs");
        let symfs: [&OsStr; 2] = ["--symfs".as_ref(), symfs.as_ref()];
        let data = sample(name, "perf.data");
        let options = [symfs[0], symfs[1], "--slim".as_ref()];
        bundle(&data, &options, &root.join(name));
        let before = views(&data, &symfs);
        let inside = |view: &&[&str]| {
            let mut command = Command::new("unshare");
            command
                .env_clear()
                .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
            command.args(["--map-root-user", "chroot"]).arg(&root);
            command
                .arg("/pjit")
                .args(*view)
                .args(["-i", &format!("/{name}")]);
            succeed(&mut command).stdout
        };
        let after: Vec<_> = VIEWS.iter().map(inside).collect();
        compare(name, &before, &after);
    }
}

#[test]
fn the_same_recording_makes_the_same_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = sample("native", "perf.data");
    let made = |number: usize, jobs: &str| {
        let inside = folder.path().join(number.to_string());
        fs::create_dir(&inside).expect("made");
        let archive = inside.join("x.tar.gz");
        bundle(
            &data,
            &["--slim".as_ref(), "-j".as_ref(), jobs.as_ref()],
            &archive,
        );
        fs::read(archive).expect("it is there")
    };
    let first = made(0, "1");
    assert!(first == made(1, "1") && first == made(2, "3"));
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "mine").expect("written");
    fs::write(at("x.tar.gz"), "mine").expect("written");
    fs::create_dir(at("empty")).expect("made");
    std::os::unix::fs::symlink("/nonexistent/target", at("link")).expect("made");
    for name in ["file", "x.tar.gz", "empty", "link"] {
        let mut command = pjit();
        command.arg("bundle").arg(sample("wasm", "perf.data"));
        let output = command.arg("-o").arg(at(name)).output().expect("it runs");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {error}");
        assert!(error.contains("is there already"), "{name}: {error}");
    }
    for name in ["file", "x.tar.gz"] {
        assert_eq!(fs::read(at(name)).expect("there"), b"mine");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 4);
    assert_eq!(fs::read_dir(at("empty")).expect("listed").count(), 0);
}

#[test]
fn a_signal_leaves_nothing_behind() {
    give_interrupts();
    for (output, signal) in [
        ("made", Signal::TERM),
        ("made", Signal::INT),
        ("made.tar.gz", Signal::TERM),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = pjit();
        command.arg("bundle").arg(sample("native", "perf.data"));
        let child = command.arg("-o").arg(folder.path().join(output)).spawn();
        let mut child = child.expect("it runs");
        let started = Instant::now();
        let is_begun = || fs::read_dir(folder.path()).expect("listed").count() > 0;
        // Of an archive nothing is to be seen before it is whole.
        let patience = if output == "made" { 20_000 } else { 50 };
        while !is_begun() && started.elapsed() < Duration::from_millis(patience) {
            std::thread::sleep(Duration::from_millis(1));
        }
        send(signal, child.id());
        let status = child.wait().expect("it ends");
        // It may have been done before the signal came.
        let left = if status.success() { 1 } else { 0 };
        let files = fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(files, left, "{output} {signal:?} {status}");
    }
}

/// A signal that was ignored at the start stays ignored: a job that a script starts in its background goes on.
#[test]
fn an_ignored_signal_does_not_end_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("made");
    let recording = sample("native", "perf.data");
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" INT; exec "$0" bundle "$1" -o "$2""#]);
    command
        .arg(env!("CARGO_BIN_EXE_pjit"))
        .arg(recording)
        .arg(&made);
    let mut child = command.spawn().expect("there is a shell");
    let started = Instant::now();
    while fs::read_dir(folder.path()).expect("listed").count() == 0
        && started.elapsed() < Duration::from_secs(20)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    send(Signal::INT, child.id());
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    assert!(made.join("bundle.txt").exists());
}

/// Recordings may call files anything; what they name is put below the folder, and found there.
#[test]
fn no_name_leads_out_of_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let names: [(&[u8], &[u8]); 6] = [
        (b"/../../../../tmp/../escaped/hot", b"escaped/hot"),
        (b"/a/./b//../c/hot", b"a/c/hot"),
        (b"../up/hot", b"up/hot"),
        (
            b"/new\nline/\x1b[31m\xff\xfe/hot",
            b"new\nline/\x1b[31m\xff\xfe/hot",
        ),
        (b"/bundle.txt", b"bundle.txt"),
        (b"/linked/hot", b"linked/hot"),
    ];
    let program = fs::read(sample("native", "symfs/tmp/pjit-sample/native/hot-cpp"));
    let program = program.expect("the sample has it");
    for (number, (recorded, inside)) in names.into_iter().enumerate() {
        let work = folder.path().join(number.to_string());
        let symfs = work.join("in/symfs");
        fs::create_dir_all(&symfs).expect("made");
        if inside.starts_with(b"linked") {
            // A link inside, which leads to the outside of its root.
            std::os::unix::fs::symlink("/../../real", symfs.join("linked")).expect("made");
            fs::create_dir(symfs.join("real")).expect("made");
            fs::write(symfs.join("real/hot"), &program).expect("written");
        } else {
            let file = symfs.join(OsStr::from_bytes(inside));
            fs::create_dir_all(file.parent().expect("it has one")).expect("made");
            fs::write(file, &program).expect("written");
        }
        let data = work.join("in/perf.data");
        let code: Vec<_> = code(&program).into_iter().step_by(16).collect();
        fs::write(&data, recording_of(recorded, &code)).expect("written");
        let before = views(&data, &[]);
        let out = work.join("out");
        fs::create_dir(&out).expect("made");
        bundle(&data, &["--without-source".as_ref()], &out.join("b"));
        assert!(
            out.join("b/symfs")
                .join(OsStr::from_bytes(inside))
                .is_file()
        );
        let find = succeed(Command::new("find").arg(&out).args(["-type", "l"]));
        assert!(find.stdout.is_empty(), "a bundle has no links");
        assert_eq!(fs::read_dir(&out).expect("listed").count(), 1);
        fs::remove_dir_all(work.join("in")).expect("removed");
        compare(&text(recorded), &before, &views(&out.join("b"), &[]));
    }
    assert!(!Path::new("/tmp/escaped").exists() && !Path::new("/escaped").exists());
}

#[test]
fn what_could_not_be_had_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    fs::write(&data, recording_of(b"/nowhere/program", &[(0x1000, 0)])).expect("written");
    let said = bundle(&data, &[], &folder.path().join("b"));
    assert!(
        said.contains("without /nowhere/program: not found"),
        "{said}"
    );
    let list = fs::read_to_string(folder.path().join("b/bundle.txt")).expect("there");
    assert!(
        list.contains("Not here:\n  /nowhere/program: not found\n"),
        "{list}"
    );
    let packed = folder.path().join("x.tar.gz");
    bundle(&data, &[], &packed);
    let mut report = pjit();
    let output = report
        .arg("report")
        .arg("-i")
        .arg(&packed)
        .output()
        .expect("it runs");
    let said = text(&output.stderr);
    assert!(
        !output.status.success() && said.contains("hint: unpack it"),
        "{said}"
    );
}

/// A C++ program with functions that are inlined.
const PROGRAM: &str = "#include <algorithm>\n#include <cstdio>\n#include <vector>\n\
    static int twice(int x) { return x * 2 + 1; }\n\
    int main(int argc, char **argv) {\n\
      std::vector<int> v;\n\
      for (int i = 0; i < 1000; i++) v.push_back(twice(i * argc) % 97);\n\
      std::sort(v.begin(), v.end());\n\
      std::printf(\"%d %s\\n\", v[argc], argv[0]);\n\
    }\n";

/// Where debug information may be: what is done to a program in the folder `symfs/app`.
pub(crate) const DEBUG_FILES: [(&str, &str, &str); 6] = [
    ("c++", "inside", "c++ -g -O2 a.cc -o a"),
    (
        "c++",
        "linked",
        "c++ -g -O2 a.cc -o a && objcopy --only-keep-debug a a.debug && strip a && \
      objcopy --add-gnu-debuglink=a.debug a && mkdir .debug && mv a.debug .debug",
    ),
    (
        "c++",
        "by checksum",
        "c++ -g -O2 -Wl,--build-id=none a.cc -o a && objcopy --only-keep-debug a a.debug && \
      strip a && objcopy --add-gnu-debuglink=a.debug a",
    ),
    ("c++", "split", "c++ -g -O2 -gsplit-dwarf a.cc -o a"),
    (
        "dwp",
        "packed",
        "c++ -g -gdwarf-4 -O2 -gsplit-dwarf a.cc -c -o a.o && c++ a.o -o a && dwp -e a && rm *.dwo",
    ),
    (
        "dwz",
        "shared",
        "c++ -g -O2 a.cc -o a && c++ -g -O2 -DX a.cc -o b && dwz -m shared a b && rm b",
    ),
];

#[test]
fn debug_files_come_along() {
    for (oracle, name, how) in DEBUG_FILES {
        let found = Command::new("which")
            .args(["c++", "objcopy", oracle])
            .output();
        if !found.is_ok_and(|output| output.status.success()) {
            skip(oracle, name);
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let app = folder.path().join("in");
        fs::create_dir(&app).expect("made");
        fs::write(app.join("a.cc"), PROGRAM).expect("written");
        succeed(Command::new("sh").args(["-ec", how]).current_dir(&app));
        let program = app.join("a");
        let elf = fs::read(&program).expect("built");
        let code: Vec<_> = code(&elf).into_iter().step_by(4).collect();
        let data = app.join("perf.data");
        let path = program.as_os_str().as_bytes();
        fs::write(&data, recording_of_program(path, &elf, &code)).expect("written");
        let before = views(&data, &[]);
        assert!(
            text(&before[4]).contains("(inlined)"),
            "{name}: no debug information"
        );
        let mut sizes = Vec::new();
        for slim in ["--slim", "--threads=2"] {
            let archive = folder.path().join(format!("{slim}.tar.gz"));
            bundle(&data, &[slim.as_ref()], &archive);
            sizes.push(fs::metadata(&archive).expect("made").len());
            unpack(&archive, &folder.path().join("out"));
        }
        fs::remove_dir_all(&app).expect("removed");
        for slim in ["--slim", "--threads=2"] {
            let after = views(&folder.path().join("out").join(slim), &[]);
            compare(&format!("{name} {slim}"), &before, &after);
        }
        // Where nothing can be left out, names and times that are packed make some bytes.
        let some = sizes[1] / 1000;
        assert!(sizes[0] <= sizes[1] + some, "{name}: {sizes:?}");
    }
}

/// Paths are any bytes, and a bundle without its recording is none.
#[test]
fn recordings_of_any_name_are_packed() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join(OsStr::from_bytes(b"p\xff.data"));
    fs::copy(sample("minijit", "perf.data"), &data).expect("it can be copied");
    let packed = folder.path().join("packed");
    bundle(&data, &[], &packed);
    let (before, after) = (fs::read(&data), fs::read(packed.join("perf.data")));
    assert!(before.is_ok() && before.ok() == after.ok());
}
