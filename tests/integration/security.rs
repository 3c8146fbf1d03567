//! What hostile input makes pjit open: nothing but what SECURITY.md allows. Each test is one way in, tried; the table there names it.
//!
//! A secret is a file that input names though it is none of its business; a text in it tells whether it was read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::inlines::{code, recording_of, recording_of_program};
use crate::paths::with_section;
use crate::recording::{CONTEXT_USER, Map, Recording, Sample, Stacks};
use crate::support::{pjit, sample};

const PID: u32 = 7;
/// Where memory for code is.
const JIT: u64 = 0x1000_0000;
const SECRET: &str = "the-secret-word";

/// A folder with a recording in `case`, and what it must not lead to beside that.
pub(crate) struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    /// Writes a recording with a sample at an address.
    fn write_sampled(&self, mut recording: Recording, ip: u64) {
        recording.sample(&Sample {
            ip,
            pid: PID,
            tid: PID,
            time: 10,
            period: 1,
            chain: &[CONTEXT_USER, ip],
            user: None,
        });
        self.write("case/perf.data", recording.file());
    }

    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("pjit").tempdir();
        let folder = folder.expect("a folder");
        fs::create_dir(folder.path().join("case")).expect("made");
        let case = Self { folder };
        // Whatever a secret may look like: a line of a perf map, a comment of C.
        let text = format!("{JIT:x} 100 {SECRET}\n// {SECRET}\n");
        case.write("secret", text);
        case
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().expect("it is there");
        folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    /// A link in the folder of the recording.
    fn link(&self, to: &str, name: &str) {
        symlink(self.path(to), self.path("case").join(name)).expect("linked");
    }

    /// The recording: samples in memory for code, and in files that are mapped by these names.
    fn record(&self, names: &[&[u8]]) {
        let mut recording = Recording::new(Stacks::Callchain);
        recording.comm(PID, PID, b"program");
        recording.map(PID, JIT, 0x10_0000, 0, b"//anon");
        recording.map(PID, 0x30_0000, 0x1000, 0, b"/nowhere/jit-7.dump");
        let mut places = vec![JIT + 4];
        for (at, name) in (1..).zip(names) {
            recording.map(PID, at << 32, 0x1000, 0, name);
            places.push((at << 32) + 0x10);
        }
        for (time, &ip) in (2000..).zip(&places) {
            recording.sample(&Sample {
                ip,
                pid: PID,
                tid: PID,
                time,
                period: 1,
                chain: &[CONTEXT_USER, ip],
                user: None,
            });
        }
        self.write("case/perf.data", recording.file());
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = pjit();
        command.current_dir(self.path("case")).args(arguments);
        command.env("DEBUGINFOD_CACHE_PATH", self.path("fetched"));
        command.output().expect("it runs")
    }

    /// What a verb prints, and what it says.
    fn said(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    /// The files of a bundle, by their names in it.
    fn bundle(&self, options: &[&str]) -> (Vec<String>, String) {
        let made = self.path("made");
        let _ = fs::remove_dir_all(&made);
        let to = made.to_str().expect("a plain path");
        let (_, said) = self.said(&[&["bundle", "-o", to], options].concat());
        let mut files = Vec::new();
        let mut todo = vec![made.clone()];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.path() {
                    path if path.is_dir() => todo.push(path),
                    path => files.push(path),
                }
            }
        }
        let has_secret = |file: &PathBuf| {
            let bytes = fs::read(file).expect("read");
            memchr::memmem::find(&bytes, SECRET.as_bytes()).is_some()
        };
        files.sort();
        let names = files.iter().map(|file| {
            let name = file.strip_prefix(&made).expect("inside").display();
            let mark = if has_secret(file) {
                " with the secret"
            } else {
                ""
            };
            format!("{name}{mark}")
        });
        (names.collect(), said)
    }

    /// Neither shown nor packed.
    #[track_caller]
    fn assert_safe(&self) {
        for verb in [&["annotate"][..], &["report", "--stdio"]] {
            let (out, said) = self.said(verb);
            assert!(!out.contains(SECRET), "{verb:?}: {out}{said}");
        }
        let (files, said) = self.bundle(&[]);
        assert!(files.iter().any(|file| file == "perf.data"), "{said}");
        let leaked = files.iter().find(|file| file.ends_with("the secret"));
        assert_eq!(leaked, None, "{said}");
    }

    /// A dump of one function whose lines are in these files, beside the recording.
    fn dump(&self, function: &str, sources: &[&str]) {
        let mut dump = Vec::new();
        for word in [0x4a69_5444_u32, 1, 40, 62, 0, PID] {
            dump.extend(word.to_le_bytes());
        }
        dump.extend([0; 16]);
        let mut record = |kind: u32, time: u64, body: &[u8]| {
            dump.extend(kind.to_le_bytes());
            dump.extend((16 + body.len() as u32).to_le_bytes());
            dump.extend(time.to_le_bytes());
            dump.extend(body);
        };
        let mut lines = Vec::new();
        lines.extend(JIT.to_le_bytes());
        lines.extend((sources.len() as u64).to_le_bytes());
        for (at, source) in (JIT..).zip(sources) {
            lines.extend(at.to_le_bytes());
            lines.extend([2, 0, 0, 0, 0, 0, 0, 0]);
            lines.extend(source.as_bytes());
            lines.push(0);
        }
        record(2, 1000, &lines);
        let mut load = Vec::new();
        load.extend(PID.to_le_bytes());
        load.extend(PID.to_le_bytes());
        for word in [JIT, JIT, 64, 1] {
            load.extend(u64::to_le_bytes(word));
        }
        load.extend(function.as_bytes());
        load.push(0);
        load.extend([0x90; 64]);
        record(0, 1001, &load);
        self.write("case/jit-7.dump", dump);
    }
}

#[test]
fn a_core_dump_is_no_program() {
    let case = Case::new();
    let mut core =
        fs::read(sample("native", "symfs/tmp/pjit-sample/native/hot-cpp")).expect("read");
    core[16] = 4;
    core.extend(SECRET.as_bytes());
    case.write("core", core);
    let path = case.path("core");
    case.record(&[path.to_str().expect("a plain path").as_bytes()]);
    case.assert_safe();
    assert!(!case.bundle(&[]).0.iter().any(|file| file.contains("core")));
}

/// A program of the user that the recording only guesses at.
#[test]
fn a_program_is_packed_if_it_is_what_was_mapped() {
    let case = Case::new();
    let program = fs::read(sample("native", "symfs/tmp/pjit-sample/native/hot-cpp")).expect("read");
    case.write("program", &program);
    let path = case.path("program");
    let path = path.to_str().expect("a plain path").to_owned();
    let packed = |case: &Case, options: &[&str]| {
        let (files, said) = case.bundle(options);
        let inside = format!("symfs{path}");
        (files.contains(&inside), said)
    };
    let places: Vec<_> = code(&program).into_iter().take(3).collect();
    case.write("case/perf.data", recording_of(path.as_bytes(), &places));
    let (is_packed, said) = packed(&case, &[]);
    assert!(!is_packed && said.contains("not proven"), "{said}");
    assert!(packed(&case, &["--symfs", "/"]).0, "the user says so");
    // The whole executable segment.
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(PID, PID, b"program");
    let header = 64
        + 56 * (0..)
            .find(|at| program[64 + 56 * at..][..8] == [1, 0, 0, 0, 5, 0, 0, 0])
            .expect("code");
    let word = |at: usize| u64::from_le_bytes(program[at..at + 8].try_into().expect("eight"));
    let (start, end) = (word(header + 8), word(header + 8) + word(header + 32));
    let start = start / 4096 * 4096;
    recording.map_at(&Map {
        length: end.next_multiple_of(4096) - start,
        offset: start,
        ..Map::page(0, PID, 0x40_0000, path.as_bytes())
    });
    let ip = 0x40_0000 + places[1].0 - start;
    case.write_sampled(recording, ip);
    let (is_packed, said) = packed(&case, &[]);
    assert!(is_packed, "{said}");
}

#[test]
fn what_the_kernel_makes_is_not_opened() {
    let case = Case::new();
    case.record(&[
        b"/proc/self/pagemap",
        b"/proc/self/root/proc/self/pagemap",
        b"/proc/kmsg",
    ]);
    case.assert_safe();
    let said = case.said(&["report", "--stdio"]).1;
    assert!(said.contains("that the kernel makes"), "{said}");
}

#[test]
fn links_beside_a_recording_do_not_lead_out() {
    let case = Case::new();
    case.record(&[b"/nowhere/app"]);
    for name in [
        "perf-7.map",
        "jit-7.dump",
        "kallsyms",
        "vmlinux",
        "app.wasm",
        "bundle.txt",
    ] {
        case.link("secret", name);
    }
    fs::create_dir_all(case.path("root/nowhere")).expect("made");
    let program = sample("native", "symfs/tmp/pjit-sample/native/hot-cpp");
    let mut program = fs::read(program).expect("read");
    program.extend(SECRET.as_bytes());
    case.write("root/nowhere/app", program);
    case.link("root", "symfs");
    case.assert_safe();
    let said = case.said(&["report", "--stdio"]).1;
    assert!(
        said.contains("lead out of the folder") && said.contains("--perf-map"),
        "{said}"
    );
    assert!(said.contains("symfs: a link and no folder"), "{said}");
    // What the user names is the user's affair.
    let named = case.said(&["report", "--stdio", "--perf-map", "perf-7.map"]);
    assert!(named.0.contains(SECRET), "{}", named.1);
}

#[test]
fn only_its_parts_are_packed_of_a_recordings_folder() {
    let case = Case::new();
    case.record(&[]);
    let data = case.path("case/perf.data");
    let bytes = fs::read(&data).expect("read");
    fs::remove_file(&data).expect("removed");
    case.write("case/perf.data/data", bytes);
    case.write("case/perf.data/data.0", "");
    case.link("secret", "perf.data/notes");
    case.write("case/perf.data/more", SECRET);
    let (files, said) = case.bundle(&[]);
    let parts = files.iter().filter(|file| file.starts_with("perf.data/"));
    let parts: Vec<_> = parts.map(String::as_str).collect();
    assert_eq!(parts, ["perf.data/data", "perf.data/data.0"], "{said}");
    case.link("secret", "perf.data/data.1");
    let (_, said) = case.said(&["report", "--stdio"]);
    assert!(said.contains("leads out of the folder"), "{said}");
}

#[test]
fn a_perf_map_has_entries() {
    let case = Case::new();
    case.record(&[]);
    case.write("case/perf-7.map", format!("{SECRET}\n"));
    case.assert_safe();
    // Elsewhere than the memory of the process.
    case.write("case/perf-7.map", format!("50000000 10 {SECRET}\n"));
    case.assert_safe();
    case.write("case/perf-7.map", format!("{JIT:x} 100 one\n"));
    let (files, said) = case.bundle(&[]);
    assert!(
        files.iter().any(|file| file == "symfs/tmp/perf-7.map"),
        "{said}"
    );
}

#[test]
fn a_source_is_proven_to_be_one() {
    let case = Case::new();
    case.record(&[]);
    let hidden = case.path("home/.ssh/key.c");
    case.write("home/.ssh/key.c", format!("\n{SECRET}\n"));
    symlink(&hidden, case.path("home/innocent.c")).expect("linked");
    case.write("home/notes.txt", format!("\n{SECRET}\n"));
    case.write("home/binary.c", format!("\n{SECRET}\n\0"));
    let names = [
        "secret",
        "home/.ssh/key.c",
        "home/innocent.c",
        "home/notes.txt",
        "home/binary.c",
    ];
    let names: Vec<String> = names
        .iter()
        .map(|name| case.path(name).display().to_string())
        .chain(["/etc/passwd".to_owned(), "/usr/../etc/passwd".to_owned()])
        .collect();
    for name in &names {
        // One line alone would be that of the function.
        case.dump("f", &[name, name]);
        case.assert_safe();
        let (shown, said) = case.said(&["annotate"]);
        assert!(
            said.contains("--source-root") && !shown.contains("root:"),
            "{name}: {said}"
        );
        let (files, _) = case.bundle(&[]);
        assert!(
            !files.iter().any(|file| file.contains("passwd")),
            "{files:?}"
        );
    }
    // Where the user says that sources are, and what looks like one.
    let folder = case.path("home");
    let notes = case.path("home/notes.txt");
    case.dump("f", &[notes.to_str().expect("plain"); 2]);
    let options = ["annotate", "--source-root", folder.to_str().expect("plain")];
    assert!(case.said(&options).0.contains(SECRET));
    case.write("home/src/a.c", format!("\n{SECRET}\n"));
    let source = case.path("home/src/a.c");
    case.dump("f", &[source.to_str().expect("plain"); 2]);
    assert!(case.said(&["annotate"]).0.contains(SECRET));
    let (files, said) = case.bundle(&[]);
    assert!(
        files
            .iter()
            .any(|file| file.ends_with("a.c with the secret")),
        "{said}"
    );
}

#[test]
fn a_script_is_known_by_its_map() {
    let case = Case::new();
    case.record(&[]);
    let secret = case.path("secret");
    let line = format!("{JIT:x} 100 JS:*f {}:1:2\n", secret.display());
    case.write("case/perf-7.map", line);
    case.assert_safe();
}

/// A script that names a map, with the function that ran where it was recorded.
fn script_with(map: &str) -> String {
    format!("function f() {{}}\ny\n//# sourceMappingURL={map}\n")
}

/// A script and its map in `app/dist`, whose one source has this name.
fn mapped(case: &Case, source: &str, more: &str) {
    case.record(&[]);
    let script = case.path("app/dist/app.js");
    let script = script.to_str().expect("a plain path").to_owned();
    case.dump(&format!("JS:*f {script}:1:11"), &[&script]);
    case.write("app/dist/app.js", script_with("app.js.map"));
    let map = format!(
        r#"{{"version":3,"file":"app.js","sources":["{source}"],"names":[]{more},"mappings":"AAAA;AACA"}}"#
    );
    case.write("app/dist/app.js.map", map);
}

#[test]
fn a_source_map_names_no_files() {
    let case = Case::new();
    case.write("home/.key.ts", format!("\n{SECRET}\n"));
    let secret = case.path("secret").display().to_string();
    let root = format!(r#","sourceRoot":"{}""#, case.path("").display());
    for (source, more) in [
        (secret.as_str(), ""),
        ("../../secret", ""),
        (&format!("file://{secret}"), ""),
        ("secret", &root),
        ("../../home/.key.ts", ""),
    ] {
        mapped(&case, source, more);
        case.assert_safe();
    }
    // Its own text it may show.
    mapped(
        &case,
        "../src/a.ts",
        &format!(r#","sourcesContent":["\n{SECRET}"]"#),
    );
    assert!(case.said(&["annotate"]).0.contains(SECRET));
}

#[test]
fn a_script_names_maps_in_its_folder() {
    let case = Case::new();
    let more = format!(r#","sourcesContent":["\n{SECRET}"]"#);
    mapped(&case, "a.ts", &more);
    let dist = case.path("app/dist");
    fs::rename(dist.join("app.js.map"), case.path("app/other.map")).expect("moved");
    case.write("app/dist/app.js", script_with("../other.map"));
    case.assert_safe();
    assert!(
        case.said(&["annotate"])
            .1
            .contains("leads out of the folder")
    );
    fs::rename(case.path("app/other.map"), dist.join("other.map")).expect("moved");
    case.write("app/dist/app.js", script_with("other.map"));
    assert!(case.said(&["annotate"]).0.contains(SECRET));
}

/// A program of the sample; it has a build ID.
pub(crate) fn program() -> Vec<u8> {
    fs::read(sample("native", "symfs/tmp/pjit-sample/native/hot-cpp")).expect("read")
}

/// A program whose debug information is said to be in a file that has nothing of it.
#[test]
fn split_debug_information_is_known_by_its_id() {
    let case = Case::new();
    let mut secret = program();
    secret.extend(SECRET.as_bytes());
    case.write("secret.so", secret);
    let name = case.path("secret.so");
    // DWARF 4: a unit over all addresses, `DW_AT_GNU_dwo_name` and `DW_AT_GNU_dwo_id`.
    let abbreviations = [
        &[1, 0x11, 0, 0x11, 1, 0x12, 7][..],
        &[0xb0, 0x42, 8, 0xb1, 0x42, 7, 0, 0, 0],
    ];
    let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1];
    // What begins at 0 was thrown away by the linker.
    unit.extend(0x1000_u64.to_le_bytes());
    unit.extend((1_u64 << 40).to_le_bytes());
    unit.extend(name.to_str().expect("a plain path").as_bytes());
    unit.push(0);
    unit.extend(0x1234_u64.to_le_bytes());
    let mut info = (unit.len() as u32).to_le_bytes().to_vec();
    info.extend(unit);
    // Its own debug information is in the way.
    let mut skeleton = program();
    while let Some(at) = memchr::memmem::find(&skeleton, b".debug_") {
        skeleton[at + 1] = b'x';
    }
    let skeleton = with_section(&skeleton, ".debug_info", &info);
    let skeleton = with_section(&skeleton, ".debug_abbrev", &abbreviations.concat());
    case.write("program", &skeleton);
    let places: Vec<_> = code(&skeleton).into_iter().take(3).collect();
    let path = case.path("program");
    let path = path.to_str().expect("a plain path").as_bytes();
    case.write(
        "case/perf.data",
        recording_of_program(path, &skeleton, &places),
    );
    let said = case.said(&["report", "--stdio"]).1;
    assert!(said.contains(".dwo"), "it was looked for: {said}");
    case.assert_safe();
}

/// A file in the build-ID cache has the build ID under which it is there, or is none.
#[test]
fn a_file_of_the_cache_has_its_build_id() {
    let case = Case::new();
    let mut bytes = program();
    let note = memchr::memmem::find(&bytes, b"\x14\0\0\0\x03\0\0\0GNU\0").expect("a note");
    let own: [u8; 20] = bytes[note + 12..note + 32].try_into().expect("twenty");
    bytes.extend(SECRET.as_bytes());
    let packed = |id: [u8; 20]| {
        let hex = hex(&id);
        let place = format!("cache/.build-id/{}/{}/elf", &hex[..2], &hex[2..]);
        case.write(&place, &bytes);
        record_build(&case, id, code(&bytes)[0].0);
        let (files, said) = case.bundle(&["--buildid-dir", "../cache"]);
        assert!(files.iter().any(|file| file == "perf.data"), "{said}");
        files.iter().any(|file| file.ends_with("the secret"))
    };
    assert!(packed(own), "the file that was recorded");
    assert!(!packed([7; 20]), "any other");
}

pub(crate) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A sample at an offset in a file of this build, which is nowhere.
pub(crate) fn record_build(case: &Case, id: [u8; 20], offset: u64) {
    let mut recording = Recording::new(Stacks::Callchain);
    recording.comm(PID, PID, b"program");
    recording.map_at(&Map {
        length: 0x100_0000,
        build_id: Some(id),
        ..Map::page(0, PID, 0x40_0000, b"/nowhere/app")
    });
    let ip = 0x40_0000 + offset;
    case.write_sampled(recording, ip);
}

/// debuginfod's client stores whatever a server sends: a page that asks for a password, another program, nothing.
#[test]
fn what_was_fetched_has_its_build_id() {
    let case = Case::new();
    let bytes = program();
    let note = memchr::memmem::find(&bytes, b"\x14\0\0\0\x03\0\0\0GNU\0").expect("a note");
    let own: [u8; 20] = bytes[note + 12..note + 32].try_into().expect("twenty");
    record_build(&case, own, code(&bytes)[0].0);
    let own = hex(&own);
    let mut other = bytes.clone();
    other[note + 12] ^= 1;
    let file = |name: &str| format!("fetched/{own}/{name}");
    let names = || case.said(&["report", "--stdio", "-s", "sym"]).0;
    let packed = || case.bundle(&[]).0;
    let unnamed = "[.] 0x";
    let page = format!("<html>{SECRET}</html>");
    let sent: [&[u8]; 5] = [b"", SECRET.as_bytes(), page.as_bytes(), &other, &bytes];
    for (at, bytes) in sent.iter().enumerate() {
        let is_own = at == sent.len() - 1;
        case.write(&file("executable"), bytes);
        case.write(&file("debuginfo"), bytes);
        assert_eq!(names().contains(unnamed), !is_own, "{}", names());
        assert_eq!(packed().len(), if is_own { 3 } else { 2 }, "{:?}", packed());
    }
    // What a client left that was ended, and links out of the cache.
    for name in ["executable", "debuginfo"] {
        fs::remove_file(case.path(&file(name))).expect("removed");
        case.write(&file(&format!("{name}.AbCdEf")), &bytes);
        case.write("elsewhere", &bytes);
        symlink(case.path("elsewhere"), case.path(&file(name))).expect("linked");
    }
    assert!(names().contains(unnamed), "{}", names());
    assert_eq!(packed().len(), 2, "{:?}", packed());
}

/// The list of what is opened names tests, and those are there.
#[test]
fn the_list_names_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("SECURITY.md")).expect("it is there");
    let mut sources = Vec::new();
    for folder in [
        "tests/integration",
        "src/input",
        "src/input/find",
        "src/load/assembly",
        "src/session/jit",
    ] {
        for entry in fs::read_dir(root.join(folder)).expect("listed").flatten() {
            sources.push(fs::read_to_string(entry.path()).unwrap_or_default());
        }
    }
    let (_, list) = text.split_once("## What is opened").expect("the list");
    let rows: Vec<&str> = list.split("\n- ").skip(1).collect();
    assert!(rows.len() > 15, "{rows:?}");
    for row in rows {
        let quoted = row.split('`').skip(1).step_by(2);
        let is_name = |word: &&str| word.contains('_') && !word.contains(['.', '/', ' ']);
        let tests: Vec<&str> = quoted.filter(is_name).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let function = format!("fn {test}()");
            let is_there = sources.iter().any(|source| source.contains(&function));
            assert!(is_there, "no such test: {test}");
        }
    }
}
