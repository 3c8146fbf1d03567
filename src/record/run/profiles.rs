//! Makes a profile: `pjit record`, then `pjit export`, in a folder that goes when it is done.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// A kind of profile: the last part of its address, what `record` is told, what `export` weighs, and what it is.
pub struct Kind {
    pub name: &'static str,
    record: &'static [&'static str],
    export: &'static [&'static str],
    pub about: &'static str,
}

/// All of them. The first is what go's client asks for.
pub const KINDS: [Kind; 4] = [
    Kind {
        name: "profile",
        record: &[],
        export: &[],
        about: "CPU time",
    },
    Kind {
        name: "allocs",
        record: &["--alloc"],
        export: &["--weight", "alloc"],
        about: "bytes that were allocated meanwhile",
    },
    Kind {
        name: "heap",
        record: &["--live"],
        export: &["--weight", "live"],
        about: "bytes that were allocated meanwhile and not freed",
    },
    Kind {
        name: "offcpu",
        record: &["--offcpu"],
        export: &["--weight", "blocked"],
        about: "time that threads waited",
    },
];

/// A profile.
pub struct Profile {
    /// The file.
    pub bytes: Vec<u8>,
    /// How long it took after what was recorded.
    pub reading: Duration,
}

/// Why there is no profile: a status of HTTP, and a text.
pub struct Unmade {
    /// 404 for what cannot be recorded here at all.
    pub status: u16,
    /// In words.
    pub text: String,
}

impl Unmade {
    fn of(status: u16, text: &str) -> Self {
        Self {
            status,
            text: text.to_owned(),
        }
    }
}

/// What nobody will read.
const ALONE: &str = "nobody waits for it";
/// Bytes that are kept of what a program says.
const MOST_SAID: u64 = 4096;

/// Records and exports, with one child at a time that a signal can end.
#[derive(Default)]
pub struct Maker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The program that works.
    child: Option<u32>,
    is_stopped: bool,
}

impl State {
    /// Has what runs end. It was not waited for yet, so that the number is still its own.
    fn end_child(&self) {
        if let Some(group) = self.child.and_then(group) {
            let _ = kill_process_group(group, Signal::TERM);
        }
    }
}

impl Maker {
    /// A profile of so many seconds, or the answer that says why there is none. It is given up when nobody waits for it.
    pub fn make(
        &self,
        kind: &Kind,
        target: &[OsString],
        seconds: u64,
        is_awaited: &dyn Fn() -> bool,
    ) -> Result<Profile, Unmade> {
        let internal = |error: io::Error| Unmade::of(500, &error.to_string());
        let folder = tempfile::Builder::new().prefix("pjit-serve-").tempdir();
        let folder = folder.map_err(internal)?;
        let (recording, file) = (
            folder.path().join("recording"),
            folder.path().join("x.pb.gz"),
        );
        let program = std::env::current_exe().map_err(internal)?;
        let mut record = Command::new(&program);
        record.args(["record", "-q", "--duration", &seconds.to_string()]);
        record.env("TMPDIR", folder.path());
        record
            .args(kind.record)
            .args(target)
            .arg("-o")
            .arg(&recording);
        // Of CPU time there is always some way to record it; what others need may not be there at all.
        let status = if kind.record.is_empty() { 500 } else { 404 };
        let began = Instant::now();
        self.run(record, status, is_awaited)?;
        let recorded = began.elapsed().min(Duration::from_secs(seconds));
        let mut export = Command::new(&program);
        export
            .args(["export", "--format", "pprof"])
            .args(kind.export);
        export.arg("-o").arg(&file).arg(&recording);
        let export_began = Instant::now();
        self.run(export, status, is_awaited)?;
        let reading = export_began.elapsed();
        let bytes = fs::read(&file).and_then(|bytes| lasting(&bytes, recorded));
        let bytes = bytes.map_err(internal)?;
        Ok(Profile { bytes, reading })
    }

    /// Runs a program of which nothing is wanted but that it succeeds, as long as somebody waits.
    fn run(
        &self,
        mut command: Command,
        status: u16,
        is_awaited: &dyn Fn() -> bool,
    ) -> Result<(), Unmade> {
        if !is_awaited() {
            return Err(Unmade::of(status, ALONE));
        }
        let mut child = self.start(&mut command)?;
        let number = child.id();
        let stderr = child.stderr.take();
        let reader = std::thread::spawn(|| stderr.map(first_words).unwrap_or_default());
        let (done, was_awaited) = self.wait(child, is_awaited);
        end_group(number);
        // It cannot have panicked; what it has not read is not told.
        let said = reader.join().unwrap_or_default();
        if !was_awaited {
            return Err(Unmade::of(status, ALONE));
        }
        if done.is_some_and(|exit| exit.success()) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&said);
        let error = said.lines().find_map(|line| line.strip_prefix("error: "));
        Err(Unmade::of(
            status,
            error.unwrap_or("it could not be recorded"),
        ))
    }

    /// Waits for a program, and ends it when nobody waits for what it makes: its status, and whether somebody waited to the end.
    fn wait(&self, mut child: Child, is_awaited: &dyn Fn() -> bool) -> (Option<ExitStatus>, bool) {
        const STEP: Duration = Duration::from_millis(25);
        let mut was_awaited = true;
        loop {
            {
                let mut state = self.lock();
                let done = child.try_wait();
                if !matches!(done, Ok(None)) {
                    state.child = None;
                    return (done.ok().flatten(), was_awaited);
                }
                if was_awaited && !is_awaited() {
                    was_awaited = false;
                    state.end_child();
                }
            }
            std::thread::sleep(STEP);
        }
    }

    fn start(&self, command: &mut Command) -> Result<Child, Unmade> {
        let mut state = self.lock();
        if state.is_stopped {
            return Err(Unmade::of(503, "pjit serve ends"));
        }
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        // What it starts is ended with it.
        let command = command.stderr(Stdio::piped()).process_group(0);
        let child = command.spawn();
        let child = child.map_err(|error| Unmade::of(500, &error.to_string()))?;
        state.child = Some(child.id());
        Ok(child)
    }

    /// Ends what runs, and lets nothing else begin.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        state.end_child();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of what a program says. What is beyond it is of no use, but has to go somewhere.
fn first_words(mut stderr: ChildStderr) -> Vec<u8> {
    let mut said = Vec::new();
    let _ = (&mut stderr).take(MOST_SAID).read_to_end(&mut said);
    let _ = io::copy(&mut stderr, &mut io::sink());
    said
}

/// A packed profile that says how long was recorded. By itself it says how long there were samples, of which a program that
/// sleeps has few.
fn lasting(packed: &[u8], recorded: Duration) -> io::Result<Vec<u8>> {
    /// Number 10 of `Profile` in pprof's `profile.proto`, a varint. Of a field that is there twice the last one counts.
    const DURATION_NANOS: u8 = 10 << 3;
    const VARINT: u8 = 0x80;
    let mut profile = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut profile)?;
    profile.push(DURATION_NANOS);
    let mut nanos = u64::try_from(recorded.as_nanos()).unwrap_or(u64::MAX);
    while nanos >= VARINT.into() {
        profile.push(nanos.to_le_bytes()[0] | VARINT);
        nanos >>= 7;
    }
    profile.push(nanos.to_le_bytes()[0]);
    let mut again = GzEncoder::new(Vec::new(), Compression::default());
    again.write_all(&profile)?;
    again.finish()
}

fn group(child: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child).ok()?)
}

/// Waits for what a program started and left behind, and ends it if that takes long: it may still write.
fn end_group(child: u32) {
    const STEP: Duration = Duration::from_millis(10);
    const PATIENCE: u32 = 300;
    let Some(group) = group(child) else { return };
    for _ in 0..PATIENCE {
        if test_kill_process_group(group).is_err() {
            return;
        }
        std::thread::sleep(STEP);
    }
    let _ = kill_process_group(group, Signal::KILL);
}

/// The name of a process that lives; nothing of one that has ended.
pub fn name_of(pid: u32) -> Option<String> {
    let folder = Path::new("/proc").join(pid.to_string());
    let stat = fs::read(folder.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (front, rest) = stat.rsplit_once(')')?;
    // What its parent has not waited for has ended all the same.
    let has_ended = rest.trim_start().starts_with(['Z', 'X']);
    let (_, name) = front.split_once('(')?;
    (!has_ended).then(|| name.to_owned())
}
