//! Asks programs that run already for names of the code that they made, and reads that code while it is there.
//!
//! A JVM from 17 on writes a perf map when `jcmd` asks for it; with the bytes out of its memory that is a dump whose loads are older
//! than all samples, so that stacks can be followed through it, too. As of the end: what was freed before is missing. The map is
//! removed if it was not there before.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::folder::new_file;
use super::keeper::inner_pid;
use super::machine;
use super::used::own_ticks;
use crate::arch::Arch;
use crate::find::{gathered_name, perf_map_path, seen_by, temporary_dump};
use crate::record::plan::{Note, typed};
use crate::runtimes::Producer;

/// Of processes that were not named, those are asked that took at least this share of one processor.
const LEAST: f64 = 0.01;

/// Processor time of JVMs before the recording, in ticks.
pub(super) struct Before(Vec<(u32, u64)>, Instant);

impl Before {
    /// Of all that run.
    pub(super) fn of_machine() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ticks = pids.filter_map(|pid| Some((pid, own_ticks(pid)?)));
        Self(ticks.collect(), Instant::now())
    }

    /// JVMs that were busy since.
    pub(super) fn busy(&self) -> Vec<u32> {
        const TICKS: f64 = 100.0;
        let least = self.1.elapsed().as_secs_f64() * TICKS * LEAST;
        let now = Self::of_machine();
        let took = now.0.into_iter().filter_map(|(pid, ticks)| {
            let before = self.0.iter().find(|(known, _)| *known == pid);
            let took = ticks.saturating_sub(before.map_or(0, |(_, earlier)| *earlier));
            (took as f64 >= least.max(1.0)).then_some(pid)
        });
        took.filter(|&pid| is_jvm(pid)).collect()
    }
}

fn is_jvm(pid: u32) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    memchr::memmem::find(&maps, b"/libjvm.so").is_some()
}

/// Asks these processes; what came of it.
pub(super) fn harvest(pids: &[u32], folder: &Path, were_named: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    for &pid in pids {
        if is_jvm(pid) {
            notes.extend(of_jvm(pid, folder));
        } else if were_named {
            notes.extend(restart(pid));
        }
    }
    notes
}

/// What a JVM tells.
fn of_jvm(pid: u32, folder: &Path) -> Option<Note> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let inner = inner_pid(&process).unwrap_or(pid);
    let map = seen_by(&process, &perf_map_path(inner));
    let was_there = map.symlink_metadata().is_ok();
    if !was_there && let Err(refused) = ask(pid, &process) {
        let (why, options) = match &refused {
            Refused::Old => ("only releases from 17 on can be asked", OF_OLD_JVMS),
            Refused::Other(why) => (why.as_str(), ""),
        };
        let note = Note::new(format!("process {pid} is a JVM and gives no names: {why}"));
        return Some(note.mended_next_by(command_of(&process, options)));
    }
    let made = make_dump(pid, &process, &map, folder);
    if !was_there {
        // Made for us, by the JVM's user.
        let _ = fs::remove_file(&map);
    }
    match made {
        Ok((0, _)) => Some(Note::new(format!(
            "process {pid}: its map has no code that can be read"
        ))),
        Ok((got, all)) => Some(Note::new(format!(
            "process {pid} is a JVM: {got} of {all} pieces of code, as of the end"
        ))),
        Err(error) => Some(Note::new(format!("process {pid}: {error}"))),
    }
}

/// Options of `pjit record` for a JVM that writes no maps, also at its end: its agent tells names.
const OF_OLD_JVMS: &str = "--java-agent libperf-jvmti.so ";

/// Why a JVM wrote no map.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// Its release has no such command.
    Old,
    /// In words.
    Other(String),
}

impl Refused {
    /// What jcmd said where it failed, on its two outputs. Releases put the answer of the JVM on one or on the other.
    fn of(said: &str, wrong: &str) -> Self {
        if [said, wrong]
            .iter()
            .any(|text| text.contains("Unknown diagnostic command"))
        {
            return Self::Old;
        }
        // An exception's first line says why; the others say where.
        let mut lines = wrong.lines().chain(said.lines().rev()).map(str::trim);
        let why = lines.find(|line| !line.is_empty()).unwrap_or("jcmd failed");
        Self::Other(why.to_owned())
    }
}

/// Has a JVM write its map.
fn ask(pid: u32, process: &Path) -> Result<(), Refused> {
    const LONGEST: Duration = Duration::from_secs(60);
    let own = fs::read_link(process.join("exe")).ok();
    let beside = own.and_then(|exe| Some(exe.parent()?.join("jcmd")));
    let jcmd = beside
        .filter(|jcmd| machine::program(jcmd.as_os_str()).is_some())
        .or_else(|| machine::program("jcmd".as_ref()))
        .ok_or_else(|| Refused::Other("there is no jcmd, which JDKs have".to_owned()))?;
    let mut child = Command::new(jcmd)
        .arg(pid.to_string())
        .arg("Compiler.perfmap")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Refused::Other(format!("jcmd: {error}")))?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < LONGEST => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Refused::Other("it does not answer".to_owned()));
            }
        }
    };
    let (mut said, mut wrong) = (String::new(), String::new());
    // It has ended, and little was said.
    if let Some(out) = &mut child.stdout {
        let _ = out.take(1 << 16).read_to_string(&mut said);
    }
    if let Some(out) = &mut child.stderr {
        let _ = out.take(1 << 16).read_to_string(&mut wrong);
    }
    if status.success() {
        return Ok(());
    }
    Err(Refused::of(&said, &wrong))
}

/// A map, and the code's bytes out of the process, as a dump from the beginning of time: pieces that could be read, and all.
fn make_dump(pid: u32, process: &Path, map: &Path, folder: &Path) -> io::Result<(u64, u64)> {
    /// Of one process.
    const LARGEST_MAP: u64 = 256 << 20;
    const LARGEST_CODE: usize = 16 << 20;
    let is_file = fs::symlink_metadata(map)?.is_file();
    if !is_file {
        return Err(io::Error::other("its map is no file"));
    }
    let mut bytes = Vec::new();
    File::open(map)?.take(LARGEST_MAP).read_to_end(&mut bytes)?;
    let memory = File::open(process.join("mem"))
        .map_err(|error| io::Error::other(format!("its memory cannot be read ({error})")))?;
    let dump = temporary_dump(pid);
    let name = dump.file_name().unwrap_or_default().as_encoded_bytes();
    let mut out = io::BufWriter::new(new_file(&folder.join(gathered_name(name, pid)))?);
    out.write_all(&header(pid))?;
    let (mut got, mut all) = (0, 0);
    for line in bytes.split(|&b| b == b'\n') {
        let Some((start, size, function)) = entry(line) else {
            continue;
        };
        all += 1;
        if size == 0 || size > LARGEST_CODE {
            continue;
        }
        let mut code = vec![0; size];
        if memory.read_exact_at(&mut code, start).is_err() {
            continue;
        }
        out.write_all(&load(pid, start, got, function, &code))?;
        got += 1;
    }
    out.flush()?;
    Ok((got, all))
}

/// `START SIZE NAME`
fn entry(line: &[u8]) -> Option<(u64, usize, &[u8])> {
    let mut parts = line.splitn(3, |&b| b == b' ');
    let mut number = || {
        let word = std::str::from_utf8(parts.next()?).ok()?;
        u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = parts.next().filter(|name| !name.is_empty())?;
    Some((start, usize::try_from(size).ok()?, name))
}

/// The header of a dump, in this machine's order of bytes.
fn header(pid: u32) -> Vec<u8> {
    const MAGIC: u32 = 0x4a69_5444;
    let machine = Arch::host().map_or(0, Arch::elf);
    let mut bytes = Vec::new();
    for word in [MAGIC, 1, 40, u32::from(machine), 0, pid] {
        bytes.extend(word.to_ne_bytes());
    }
    for word in [1u64, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// `JIT_CODE_LOAD`, older than every sample.
fn load(pid: u32, start: u64, index: u64, name: &[u8], code: &[u8]) -> Vec<u8> {
    const FIXED: usize = 56;
    let size = u32::try_from(FIXED + name.len() + 1 + code.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(FIXED + name.len() + 1 + code.len());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(1u64.to_ne_bytes());
    bytes.extend(pid.to_ne_bytes());
    bytes.extend(pid.to_ne_bytes());
    for word in [start, start, code.len() as u64, index] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(name);
    bytes.push(0);
    bytes.extend(code);
    bytes
}

/// What to say of a runtime that was started without its switch, and cannot be asked.
fn restart(pid: u32) -> Option<Note> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let exe = fs::read_link(process.join("exe")).ok()?;
    let name = exe.file_name()?.to_string_lossy().into_owned();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let mut runtimes = Producer::all().filter(|runtime| !runtime.switches.is_empty());
    let runtime = runtimes.find(|runtime| runtime.programs.contains(&plain))?;
    let inner = inner_pid(&process).unwrap_or(pid);
    let told = [perf_map_path(inner), temporary_dump(inner)];
    let has_told = told.iter().any(|path| seen_by(&process, path).is_file());
    let maps = fs::read(process.join("maps")).unwrap_or_default();
    if has_told || memchr::memmem::find(&maps, b"/jit-").is_some() {
        return None;
    }
    let note = Note::new(format!(
        "process {pid} is {plain}, started without its switch: functions of {} have no names",
        runtime.engine
    ));
    Some(note.mended_next_by(command_of(&process, "")))
}

/// How to start it once more from here, with options of `pjit record`.
fn command_of(process: &Path, options: &str) -> String {
    let bytes = fs::read(process.join("cmdline")).unwrap_or_default();
    let there = fs::read_link(process.join("cwd")).ok();
    // That of a container is none of here.
    let there =
        there.filter(|there| there.is_dir() && std::env::current_dir().ok() != Some(there.clone()));
    let change = there.map_or(String::new(), |there| {
        format!("cd {} && ", typed::quoted(there.as_os_str()))
    });
    format!(
        "{change}pjit record {options}-- {}",
        typed::line(&words_of(&bytes))
    )
}

/// The words of a command line as `/proc` has it. Programs that call themselves something write all of it into the first.
fn words_of(cmdline: &[u8]) -> Vec<OsString> {
    let words = |bytes: &[u8], between: u8| -> Vec<OsString> {
        let parts = bytes.split(|&b| b == between);
        let parts = parts.filter(|part| between == 0 || !part.is_empty());
        parts
            .map(|part| OsStr::from_bytes(part).to_owned())
            .collect()
    };
    let end = cmdline.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
    let all = &cmdline[..end];
    if all.contains(&0) || machine::program(OsStr::from_bytes(all)).is_some() {
        // Empty words at the end are words, too.
        return words(cmdline.strip_suffix(b"\0").unwrap_or(cmdline), 0);
    }
    words(all, b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_maps() {
        assert_eq!(
            entry(b"0x7f00 20 int H.fib(int)"),
            Some((0x7f00, 32, &b"int H.fib(int)"[..]))
        );
        assert_eq!(entry(b"7f00 20 a"), Some((0x7f00, 32, &b"a"[..])));
        for bad in [
            &b""[..],
            b"x 1 a",
            b"1 2",
            b"1 2 ",
            b"1 fffffffffffffffff a",
        ] {
            assert_eq!(entry(bad), None);
        }
    }

    #[test]
    fn old_jvms_are_told_from_others_that_refuse() {
        let old = "4711:\njava.lang.IllegalArgumentException: Unknown diagnostic command\n";
        assert_eq!(Refused::of(old, ""), Refused::Old);
        assert_eq!(Refused::of("4711:\n", old), Refused::Old);
        let other = "com.sun.tools.attach.AttachNotSupportedException: not its user\n\tat A.b\n";
        let Refused::Other(why) = Refused::of("", other) else {
            panic!("this release knows the command")
        };
        assert!(why.ends_with("not its user"), "{why}");
        assert_eq!(
            Refused::of("", ""),
            Refused::Other("jcmd failed".to_owned())
        );
    }

    #[test]
    fn old_jvms_are_started_again_with_their_agent() {
        let own = Path::new("/proc/self");
        let again = command_of(own, OF_OLD_JVMS);
        assert!(
            again.contains("pjit record --java-agent libperf-jvmti.so -- "),
            "{again}"
        );
        assert!(!command_of(own, "").contains("--java-agent"));
    }

    #[test]
    fn words_of_command_lines() {
        let line = |bytes: &[u8]| typed::line(&words_of(bytes));
        assert_eq!(line(b"node\0a b.js\0"), "node 'a b.js'");
        assert_eq!(line(b"node\0a.js\0\0"), "node a.js ''");
        assert_eq!(line(b"/bin/sh\0"), "/bin/sh");
        // By `process.title`.
        assert_eq!(line(b"npm run build\0"), "npm run build");
        assert_eq!(line(b"npm run build\0\0\0\0"), "npm run build");
        assert_eq!(line(b""), "");
    }

    #[test]
    fn records_have_their_size() {
        let record = load(7, 0x1000, 3, b"f", &[0x90; 5]);
        let size = u32::from_ne_bytes(record[4..8].try_into().expect("four bytes"));
        assert_eq!(size as usize, record.len());
        assert_eq!(header(7).len(), 40);
    }
}
