//! What lies at the paths that a recording names: nothing but regular files is read, none outside `--symfs`, and nothing is
//! asked of the network. What is written is whole or not there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSymbol};
use rustix::process::Signal;

use crate::corrupt::{Ended, limited, limited_to};
use crate::jitdump::{Dump, HEAD, Head};
use crate::recording::{CONTEXT_KERNEL, CONTEXT_USER, Map, Recording, Sample, Stacks};
use crate::support::{folded, give_interrupts, pjit, sample, send, skip};

const PID: u32 = 77;
/// Where the process of these recordings has its file, and where its JIT code.
const FILE: u64 = 0x10_0000;
const JIT: u64 = 0x7f12_0000_4000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const NOW: u64 = 9_000_000_500_000;

/// A process with a file, a dump, memory without a file, and the kernel below.
fn process(file: &Path, dump: &Path) -> Recording {
    use std::os::unix::ffi::OsStrExt;
    let mut recording = Recording::new(Stacks::Callchain);
    recording.kernel_map(KERNEL, 0x10_0000, b"[kernel.kallsyms]_text");
    recording.comm(PID, PID, b"it");
    let mut map = |start, file| recording.map_at(&Map::page(NOW, PID, start, file));
    map(FILE, file.as_os_str().as_bytes());
    map(0x30_0000, dump.as_os_str().as_bytes());
    map(JIT, b"//anon");
    let chain = [
        CONTEXT_KERNEL,
        KERNEL + 0x20,
        CONTEXT_USER,
        JIT + 4,
        FILE + 0x10,
    ];
    for i in 0..5 {
        recording.sample(&Sample {
            ip: KERNEL + 0x20,
            pid: PID,
            tid: PID,
            time: NOW + 1_000_000 + i,
            period: 1,
            chain: &chain,
            user: None,
        });
    }
    recording
}

fn dump_of(pid: u32, time: u64, name: &[u8]) -> Vec<u8> {
    let mut dump = Dump::new(&Head { pid, time, ..HEAD });
    dump.load_of(pid, time + 10, JIT, 0, name, &[0x90; 16]);
    dump.0
}

const KALLSYMS: &str =
    "ffffffff81000000 T _text\nffffffff81000010 T of_the_kernel\nffffffff81100000 T _etext\n";

/// What stands where a file should be.
#[derive(Clone, Copy, Debug)]
enum Thing {
    Fifo,
    Folder,
    Socket,
    LinkTo(&'static str),
    LinkLoop,
    /// A file of so many zeros that takes no room on the disk.
    Zeros(u64),
}

const THINGS: [Thing; 9] = [
    Thing::Fifo,
    Thing::Folder,
    Thing::Socket,
    Thing::LinkTo("/dev/zero"),
    Thing::LinkTo("/dev/tty"),
    // Regular files for `stat`, of unknown size, one of which never ends.
    Thing::LinkTo("/proc/self/mem"),
    Thing::LinkTo("/proc/kmsg"),
    Thing::LinkLoop,
    Thing::Zeros(1 << 36),
];

fn put(thing: Thing, path: &Path) {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).expect("it can be made");
    }
    match thing {
        Thing::Fifo => {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.is_ok_and(|s| s.success()), "mkfifo");
        }
        Thing::Folder => fs::create_dir(path).expect("it can be made"),
        Thing::Socket => {
            std::os::unix::net::UnixListener::bind(path).expect("it can be made");
        }
        Thing::LinkTo(target) => symlink(target, path).expect("it can be made"),
        Thing::LinkLoop => {
            symlink(path.file_name().expect("a name"), path).expect("it can be made")
        }
        Thing::Zeros(size) => fs::File::create(path)
            .and_then(|file| file.set_len(size))
            .expect("it can be made"),
    }
}

/// Fails unless all samples are there, in time and without a word to the terminal.
fn assert_all_there(ended: &Ended, what: &str) {
    assert_eq!(ended.code, Some(0), "{what}: {}", ended.stderr);
    let weight: u64 = folded(&ended.stdout).values().sum();
    assert_eq!(weight, 5, "{what}: {}", ended.stdout);
    assert!(
        !ended.stderr.contains("panicked"),
        "{what}: {}",
        ended.stderr
    );
}

/// With good files everything has a name: the places below are really looked at.
#[test]
fn good_companions_are_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("perf.data"),
        process(Path::new("/nonexistent/it"), &at("jit-77.dump")).file(),
    )
    .expect("it can be written");
    fs::write(at("jit-77.dump"), dump_of(PID, NOW, b"of_the_dump")).expect("it can be written");
    fs::write(at("kallsyms"), KALLSYMS).expect("it can be written");
    let stacks = limited(pjit().arg("fold").arg(at("perf.data"))).stdout;
    assert_eq!(stacks, "it;[it];of_the_dump;of_the_kernel 5\n");
    fs::remove_file(at("jit-77.dump")).expect("it can be removed");
    fs::write(at("perf-77.map"), format!("{JIT:x} 10 of_the_map\n")).expect("it can be written");
    let stacks = limited(pjit().arg("fold").arg(at("perf.data"))).stdout;
    assert_eq!(stacks, "it;[it];of_the_map;of_the_kernel 5\n");
}

#[test]
fn what_is_no_regular_file_is_left_alone() {
    for thing in THINGS {
        for place in [
            "it.so",
            "recorded/jit-77.dump",
            "jit-77.dump",
            "perf-77.map",
            "kallsyms",
            "kallsyms.gz",
            "symfs",
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let at = |name: &str| folder.path().join(name);
            let recording = process(&at("it.so"), &at("recorded/jit-77.dump"));
            fs::write(at("perf.data"), recording.file()).expect("it can be written");
            put(thing, &at(place));
            // A hole of many gigabytes may be mapped, but not read through.
            let ended = limited_to(pjit().arg("fold").arg(at("perf.data")), "unlimited");
            assert_all_there(&ended, &format!("{thing:?} at {place}"));
        }
    }
}

/// The same for files that the user names: they are an error, at once.
#[test]
fn what_is_no_regular_file_is_refused() {
    for thing in THINGS {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(
            at("perf.data"),
            process(&at("it.so"), &at("jit-77.dump")).file(),
        )
        .expect("it can be written");
        put(thing, &at("thing"));
        let run = |arguments: &[&str]| {
            let command = &mut pjit();
            let command = command.args(arguments).arg(at("thing"));
            limited_to(command, "unlimited")
        };
        let data = at("perf.data");
        let data = data.to_str().expect("a plain path");
        let named = [
            &["fold", data, "--kallsyms"][..],
            &["fold", data, "--vmlinux"],
            &["jitdump"],
        ];
        for arguments in named {
            let ended = run(arguments);
            let opens = matches!(
                thing,
                Thing::Zeros(_) | Thing::LinkTo("/proc/self/mem" | "/proc/kmsg")
            );
            let fits =
                ended.code == Some(1) || opens && arguments[0] == "fold" && ended.code == Some(0);
            assert!(
                fits,
                "{thing:?} {arguments:?}: {:?} {}",
                ended.code, ended.stderr
            );
            assert!(!ended.stderr.is_empty(), "{thing:?} {arguments:?}");
        }
        for option in ["--jitdump", "--perf-map", "--symfs", "--buildid-dir"] {
            let (ended, what) = (run(&["fold", data, option]), format!("{thing:?} {option}"));
            let is_folder = at("thing").is_dir();
            let wants_folder = ["--symfs", "--buildid-dir"].contains(&option);
            if fs::metadata(at("thing")).is_err() || wants_folder && !is_folder {
                assert_eq!(ended.code, Some(1), "{what}: {}", ended.stderr);
                assert!(ended.stderr.contains(option), "{what}: {}", ended.stderr);
            } else {
                assert_all_there(&ended, &what);
            }
        }
    }
}

/// Paths of `.gnu_debuglink` and `.gnu_debugaltlink` come out of a file.
#[test]
fn links_to_debug_files_lead_to_regular_files() {
    let whole = fs::read(sample_binary()).expect("the sample has it");
    for thing in THINGS {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let target = folder.path().join("target");
        put(thing, &target);
        for section in [".gnu_debuglink", ".gnu_debugaltlink"] {
            let link = target.to_str().expect("a plain path");
            let root = folder.path().join("symfs");
            let binary = root.join(recorded_binary().strip_prefix("/").expect("absolute"));
            fs::create_dir_all(binary.parent().expect("a folder")).expect("it can be made");
            fs::write(&binary, with_link(&whole, section, link)).expect("it can be written");
            let ended = limited_to(
                pjit()
                    .arg("fold")
                    .arg("--symfs")
                    .arg(&root)
                    .arg(sample("native", "perf.data")),
                "unlimited",
            );
            assert_eq!(ended.code, Some(0), "{thing:?} {section}: {}", ended.stderr);
            assert!(
                ended.stdout.contains("lang_start_internal"),
                "{thing:?} {section}"
            );
        }
    }
}

/// The binary of a sample, below its `symfs`.
fn sample_binary() -> PathBuf {
    sample("native", "symfs").join(recorded_binary().strip_prefix("/").expect("absolute"))
}

/// Its path as recorded.
fn recorded_binary() -> PathBuf {
    let root = sample("native", "symfs");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() == "hot-rust" {
                return Path::new("/").join(entry.path().strip_prefix(&root).expect("below"));
            }
        }
    }
    panic!("the sample has a binary");
}

/// An ELF file with one section more, which holds a path.
fn with_link(elf: &[u8], name: &str, path: &str) -> Vec<u8> {
    let mut link = path.as_bytes().to_vec();
    link.push(0);
    if name == ".gnu_debuglink" {
        link.resize(link.len().next_multiple_of(4) + 4, 0);
    } else {
        link.extend([7; 20]);
    }
    with_section(elf, name, &link)
}

/// An ELF file with one section more.
pub(crate) fn with_section(elf: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    let u64_at = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let (table, count, names) = (u64_at(elf, 0x28) as usize, u16_at(0x3c), u16_at(0x3e));
    let mut out = elf.to_vec();
    let mut sections = elf[table..table + 64 * count].to_vec();
    let old_names = &sections[64 * names..64 * names + 64];
    let (at, size) = (
        u64_at(old_names, 24) as usize,
        u64_at(old_names, 32) as usize,
    );
    let mut all_names = elf[at..at + size].to_vec();
    let name_at = all_names.len() as u32;
    all_names.extend(name.bytes());
    all_names.push(0);
    let mut append = |bytes: &[u8]| {
        let at = out.len() as u64;
        out.extend(bytes);
        (at, bytes.len() as u64)
    };
    let (names_at, names_size) = append(&all_names);
    let (link_at, link_size) = append(data);
    let entry = &mut sections[64 * names..64 * names + 64];
    entry[24..32].copy_from_slice(&names_at.to_le_bytes());
    entry[32..40].copy_from_slice(&names_size.to_le_bytes());
    let mut section = [0; 64];
    section[..4].copy_from_slice(&name_at.to_le_bytes());
    section[4] = 1;
    section[24..32].copy_from_slice(&link_at.to_le_bytes());
    section[32..40].copy_from_slice(&link_size.to_le_bytes());
    section[48] = 1;
    sections.extend(section);
    let (table, _) = append(&sections);
    out[0x28..0x30].copy_from_slice(&table.to_le_bytes());
    out[0x3c..0x3e].copy_from_slice(&(count as u16 + 1).to_le_bytes());
    out
}

/// Neither `..` in a recorded path nor links in the folder lead out of `--symfs`.
#[test]
fn symfs_is_not_left() {
    let recorded = recorded_binary();
    let inside = recorded.strip_prefix("/").expect("absolute");
    let name_of = |root: &Path| {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("perf.data");
        fs::copy(sample("native", "perf.data"), &data).expect("it can be copied");
        let ended = limited(pjit().arg("fold").arg("--symfs").arg(root).arg(&data));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout.contains("lang_start_internal")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).expect("it can be made");
    fs::copy(sample_binary(), outside.join("hot-rust")).expect("it can be copied");
    let new_root = |number: usize| {
        let root = folder.path().join(format!("root{number}"));
        fs::create_dir_all(root.join(inside).parent().expect("a folder")).expect("it can be made");
        root
    };
    let root = new_root(0);
    fs::copy(outside.join("hot-rust"), root.join(inside)).expect("it can be copied");
    assert!(name_of(&root), "the file itself is read");
    let up = "../".repeat(40);
    let absolute = outside.join("hot-rust");
    let relative = format!(
        "{up}{}",
        absolute.strip_prefix("/").expect("absolute").display()
    );
    for (number, target) in [absolute.clone(), PathBuf::from(relative)]
        .iter()
        .enumerate()
    {
        let root = new_root(1 + number);
        symlink(target, root.join(inside)).expect("it can be made");
        assert!(
            fs::read(root.join(inside)).is_ok(),
            "the link leads somewhere"
        );
        assert!(!name_of(&root), "{}", target.display());
    }
    // A link in the middle of the path.
    let root = folder.path().join("root3");
    fs::create_dir_all(
        root.join(inside)
            .parent()
            .and_then(Path::parent)
            .expect("folders"),
    )
    .expect("it can be made");
    symlink(&outside, root.join(inside).parent().expect("a folder")).expect("it can be made");
    assert!(
        fs::read(root.join(inside)).is_ok(),
        "the link leads somewhere"
    );
    assert!(!name_of(&root));
    // The build-ID cache in there, whose entries are links by nature.
    let id = build_id(&fs::read(sample_binary()).expect("the sample has it"));
    let root = folder.path().join("root4");
    let entry = root.join(".debug/.build-id").join(&id[..2]).join(&id[2..]);
    fs::create_dir_all(&entry).expect("it can be made");
    fs::copy(outside.join("hot-rust"), entry.join("elf")).expect("it can be copied");
    assert!(name_of(&root), "the cache is used");
    fs::remove_dir_all(&entry).expect("it can be removed");
    fs::rename(outside.join("hot-rust"), outside.join("elf")).expect("it can be renamed");
    symlink(&outside, &entry).expect("it can be made");
    assert!(
        fs::read(entry.join("elf")).is_ok(),
        "the link leads somewhere"
    );
    assert!(!name_of(&root));
}

/// The GNU build ID of an ELF file, found by the head of its note.
fn build_id(elf: &[u8]) -> String {
    let head = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = elf
        .windows(head.len())
        .position(|w| w == head)
        .expect("a build ID")
        + head.len();
    elf[at..at + 20]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn recorded_paths_with_dots_stay_below_symfs() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("x")).expect("it can be made");
    fs::create_dir(folder.path().join("x")).expect("it can be made");
    fs::copy(sample_binary(), folder.path().join("hot")).expect("it can be copied");
    let binary = fs::read(sample_binary()).expect("the sample has it");
    let id: Vec<u8> = (0..20)
        .map(|i| u8::from_str_radix(&build_id(&binary)[2 * i..2 * i + 2], 16).expect("hex"))
        .collect();
    for file in ["/../hot", "/x/../../hot", "../hot"] {
        let mut recording = Recording::new(Stacks::None);
        recording.comm(PID, PID, b"it");
        recording.map_at(&Map {
            length: 1 << 30,
            build_id: Some(id.clone().try_into().expect("twenty bytes")),
            ..Map::page(NOW, PID, FILE, file.as_bytes())
        });
        for i in 0..200 {
            recording.sample(&Sample {
                ip: FILE + 0x1000 * i,
                pid: PID,
                tid: PID,
                time: NOW + 1 + i,
                period: 1,
                chain: &[],
                user: None,
            });
        }
        let data = folder.path().join("perf.data");
        fs::write(&data, recording.file()).expect("it can be written");
        let names = |root: &Path| {
            let ended = limited(pjit().arg("fold").arg("--symfs").arg(root).arg(&data));
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            let stacks = folded(&ended.stdout);
            stacks
                .keys()
                .filter(|stack| !stack.ends_with("[hot]"))
                .count()
        };
        assert_eq!(names(&root), 0, "{file}");
        // Inside, `..` stops at the root: the same path finds the file there.
        assert!(names(folder.path()) > 0, "{file}");
    }
}

/// Nothing that could open a connection is linked. `pjit serve` waits for others, and nothing else listens.
#[test]
fn there_is_no_way_to_the_network() {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock"))
        .expect("it can be read");
    let crates: Vec<&str> = lock
        .lines()
        .filter_map(|l| l.strip_prefix("name = \"")?.strip_suffix('"'))
        .collect();
    assert!(crates.contains(&"gimli"), "the list is read");
    for network in [
        "hyper",
        "reqwest",
        "ureq",
        "curl",
        "curl-sys",
        "tokio",
        "mio",
        "socket2",
        "native-tls",
        "openssl",
        "rustls",
        "isahc",
        "attohttpc",
        "minreq",
        "async-std",
        "quinn",
        "h2",
        "trust-dns-resolver",
        "hickory-resolver",
        "debuginfod",
    ] {
        assert!(!crates.contains(&network), "{network}");
    }
    let binary = fs::read(env!("CARGO_BIN_EXE_pjit")).expect("it can be read");
    let elf = object::File::parse(binary.as_slice()).expect("an ELF file");
    let imports: Vec<&str> = elf
        .dynamic_symbols()
        .filter(|s| s.is_undefined())
        .filter_map(|s| s.name().ok())
        .collect();
    assert!(
        imports.contains(&"fstat64") || imports.contains(&"open64"),
        "imports are seen: {imports:?}"
    );
    for import in ["connect", "getaddrinfo", "gethostbyname", "sendto"] {
        assert!(!imports.contains(&import), "{import}");
    }
    let mut rooms = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut listening = Vec::new();
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(room).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                rooms.push(path);
                continue;
            }
            if path.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source");
            if ["std::net", "rustix::net", "os::unix::net"]
                .iter()
                .any(|name| text.contains(name))
            {
                listening.push(path);
            }
        }
    }
    assert!(!listening.is_empty(), "sources are read");
    for path in listening {
        let folder = path.parent().expect("a folder");
        assert!(folder.ends_with("cli/serve"), "{}", path.display());
    }
}

/// Views that write, with a recording.
fn views() -> Vec<Vec<String>> {
    let data = sample("native", "perf.data").display().to_string();
    let dump = sample("node", "jit-17065.dump").display().to_string();
    let words = |line: &str, file: &String| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        words.push(file.clone());
        words
    };
    vec![
        words("report --stdio", &data),
        words("report --stdio --no-children -g none", &data),
        words("fold", &data),
        words("script", &data),
        words("jitdump --all", &dump),
    ]
}

#[test]
fn a_pipe_closed_in_the_middle_ends_it_quietly() {
    use std::io::Read;
    for view in views() {
        let mut child = pjit()
            .args(&view)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be run");
        let mut first = [0; 100];
        let mut pipe = child.stdout.take().expect("a pipe");
        pipe.read_exact(&mut first).expect("some output");
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{view:?}: {said}");
        assert!(
            !said.contains("pipe") && !said.contains("panicked"),
            "{view:?}: {said}"
        );
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for view in views() {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("it is there");
        let output = pjit()
            .args(&view)
            .stdout(full)
            .output()
            .expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{view:?}: {said}");
        assert!(said.contains("no space left"), "{view:?}: {said}");
        if view[0] == "report" {
            continue;
        }
        let output = pjit()
            .args(&view)
            .args(["-o", "/dev/full"])
            .output()
            .expect("the binary can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{view:?}: {said}");
        assert!(said.contains("no space left"), "{view:?}: {said}");
    }
}

/// A file system of a few pages, for those who may mount one; unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|s| s.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn no_half_written_file_is_left_on_a_full_disk() {
    let Some(disk) = SmallDisk::new() else {
        skip("mount", "no right to mount a file system");
        return;
    };
    let path = disk.0.path().join("out");
    for view in views()
        .into_iter()
        .filter(|v| matches!(v[0].as_str(), "script" | "jitdump"))
    {
        for before in [None, Some("what was there")] {
            if let Some(text) = before {
                fs::write(&path, text).expect("it can be written");
            }
            let output = pjit()
                .args(&view)
                .arg("-o")
                .arg(&path)
                .output()
                .expect("the binary can be run");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{view:?}: {said}");
            assert!(said.contains("no space left"), "{view:?}: {said}");
            assert_eq!(
                fs::read_to_string(&path).ok().as_deref(),
                before,
                "{view:?}"
            );
            let files = fs::read_dir(disk.0.path()).expect("listed").count();
            assert_eq!(files, usize::from(before.is_some()), "{view:?}");
            let _ = fs::remove_file(&path);
        }
    }
}

#[test]
fn a_signal_leaves_no_file_under_the_final_name() {
    give_interrupts();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        fs::write(&path, "what was there").expect("it can be written");
        // It waits for a recording that does not come.
        let mut child = pjit()
            .args(["fold", "-i", "-", "-o"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary can be run");
        std::thread::sleep(std::time::Duration::from_millis(200));
        send(signal, child.id());
        let status = child.wait().expect("it ends");
        assert_eq!(
            status.code(),
            None,
            "{signal:?}: by the signal, as shells expect"
        );
        assert_eq!(
            fs::read_to_string(&path).expect("it is there"),
            "what was there"
        );
    }
}

#[test]
fn an_error_leaves_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out");
    fs::write(&path, "what was there").expect("it can be written");
    for view in ["fold", "script", "jitdump"] {
        let ended = limited(pjit().args([view, "/nonexistent/file", "-o"]).arg(&path));
        assert_eq!(ended.code, Some(1), "{view}");
        assert_eq!(
            fs::read_to_string(&path).expect("it is there"),
            "what was there",
            "{view}"
        );
        assert_eq!(
            fs::read_dir(folder.path()).expect("listed").count(),
            1,
            "{view}"
        );
    }
}
