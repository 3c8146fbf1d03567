//! Recording for real: the room of pjit that starts programs, besides the pager and the client of debuginfod ([`crate::fetch`]).
//!
//! In: a plan. Out: a folder with the recording and what belongs to it, and the status of the command. Changes no setting and no
//! file outside of that folder but those that the recorded programs wrote for it; ends and signals nothing that it did not start.

mod again;
mod allocator;
mod command;
mod copies;
mod folder;
mod gather;
mod harvest;
mod keeper;
mod machine;
mod perf;
mod preflight;
pub mod profiles;
mod programs;
mod signals;
mod tracing;
mod used;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGTERM};

use super::plan::environment::{self, Choice, Environment};
use super::plan::options::{Asked, Options};
use super::plan::trouble::{self, Trouble};
use super::plan::{Facts, Note, Target, command as words};
use crate::find::SearchPaths;
use crate::load::Whereabouts;
pub use again::{Again, again};
use command::{Gate, status_of, status_of_signal};
use folder::Folder;
pub use folder::fresh as fresh_folder;
pub use gather::Moved;
use keeper::Keeper;
pub(crate) use machine::program as program_on_path;
use perf::Perf;
use signals::Arriving;
use tracing::Added;
use used::Used;

/// The status where pjit cannot record, as `timeout` and `env` have it.
pub const CANNOT: u8 = 125;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is recorded.
    pub target: Target,
    /// What ends the recording of what runs already.
    pub stop_watch: Vec<OsString>,
    /// How long that is recorded.
    pub duration: Option<Duration>,
    /// Whether a command's children are recorded to their end, too.
    pub until_exit: bool,
    /// What puts load on a server, for a shell; the server is ended behind it.
    pub load: Option<String>,
    /// Options of perf.
    pub asked: Asked,
    /// Whether all programs that were met are copied.
    pub files: bool,
    /// Where their debug files are looked for.
    pub search: SearchPaths,
    /// What becomes of runtimes.
    pub choice: Choice,
    /// The folder, if it was named.
    pub folder: Option<PathBuf>,
}

/// Why nothing was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// 125, or what shells have for commands that cannot be run.
    pub status: u8,
    /// What is wrong.
    pub text: String,
    /// What mends it.
    pub remedies: Vec<String>,
}

impl Failure {
    fn of(trouble: Trouble) -> Self {
        Self {
            status: CANNOT,
            text: trouble.text,
            remedies: trouble.remedies,
        }
    }

    fn new(text: impl Into<String>) -> Self {
        Self::of(Trouble::new(text, []))
    }
}

/// A recording that is possible.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What was asked for.
    pub request: Request,
    /// perf.
    perf: PathBuf,
    /// Facts of the machine.
    facts: Facts,
    /// What works.
    pub options: Options,
    /// What the command's environment gets.
    pub environment: Environment,
    /// Where it will lie.
    pub folder: PathBuf,
    /// Whether that is the user's word, or within what is.
    is_placed: bool,
    /// What cannot be had.
    pub notes: Vec<Note>,
    /// Probes, until the last run is over.
    probes: Option<Rc<Added>>,
}

/// What was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// The command's status.
    pub status: u8,
    /// Where it lies.
    pub folder: PathBuf,
    /// What to know.
    pub notes: Vec<Note>,
    /// Files that were gathered.
    pub moved: Vec<Moved>,
    /// Whether the terminal is gone, and with it who reads.
    pub is_alone: bool,
    /// What the recording says of processes.
    pub whereabouts: Whereabouts,
    /// Whether the command waited for most of its time.
    pub has_waited: bool,
}

impl Recorded {
    /// Whether it has every switch of threads.
    #[must_use]
    pub fn has_switches(&self) -> bool {
        let mut events = self.whereabouts.events.iter();
        events.any(|event| event.starts_with("sched:sched_switch"))
    }
}

/// What works here, without a command.
///
/// # Errors
/// When nothing does.
pub fn doctor(asked: &Asked) -> Result<(Options, Vec<Note>), Failure> {
    let target = Target::Command(vec!["true".into()]);
    let facts = machine::facts();
    let perf = perf_program()?;
    let options = Options::of(asked, &target, &facts);
    tried(&perf, options, &target, &facts)
}

fn perf_program() -> Result<PathBuf, Failure> {
    machine::program("perf".as_ref())
        .ok_or_else(|| Failure::of(trouble::no_perf(&machine::os_release())))
}

fn tried(
    perf: &Path,
    options: Options,
    target: &Target,
    facts: &Facts,
) -> Result<(Options, Vec<Note>), Failure> {
    let wanted = options.ring;
    let (options, mut notes) = preflight::preflight(perf, options, target, facts)?;
    // The trial has told of a ring that became smaller in it.
    if wanted == options.ring {
        notes.extend(trouble::of_small_ring(&options, facts));
    }
    notes.extend(trouble::of_settings(&options, facts));
    Ok((options, notes))
}

/// Finds out whether it can be recorded, and how. With `dry` nothing is started.
///
/// # Errors
/// When it cannot; nothing was written, and the command was not started.
pub fn prepare(request: Request, dry: bool) -> Result<Prepared, Failure> {
    let facts = machine::facts();
    let mut request = request;
    if let Target::Command(command) = &request.target {
        runnable(command)?;
        request.target = Target::Command(words::with_switch(command, &request.choice.without));
    }
    runnable_if_any(&request.stop_watch)?;
    if let Some(agent) = &request.choice.java_agent {
        // A JVM ends where it cannot load it.
        let agent = facts.here.join(agent);
        if !agent.is_file() {
            return Err(Failure::new(format!("{}: no such file", agent.display())));
        }
        request.choice.java_agent = Some(agent);
    }
    let perf = match perf_program() {
        Ok(perf) => perf,
        Err(_) if dry => "perf".into(),
        Err(failure) => return Err(failure),
    };
    let folder = folder::path(request.folder.as_deref(), &request.target, &facts)?;
    let space = folder::little_space(&folder)?;
    let mut wanted = Options::of(&request.asked, &request.target, &facts);
    let mut probes = None;
    let mut told = None;
    if let Some(alloc) = &request.asked.alloc {
        let graph = request.asked.call_graph.as_ref();
        if !dry {
            tracing::list()?;
        }
        let found = allocator::probes(&request.target, alloc, graph, &tracing::group())?;
        told = Some(Note::new(format!(
            "probes on {} of {}",
            found.functions(),
            found.file.display()
        )));
        if !dry {
            probes = Some(Rc::new(Added::add(&found)?));
        }
        wanted = wanted.with_probes(found, &request.asked);
    }
    let (options, mut notes) = if dry {
        let mut notes = trouble::of_settings(&wanted, &facts);
        notes.extend(trouble::of_small_ring(&wanted, &facts));
        (wanted, notes)
    } else {
        tried(&perf, wanted, &request.target, &facts)?
    };
    notes.extend(told);
    let mut environment = planned(&request, &facts, &folder);
    notes.append(&mut environment.notes);
    if let Target::Command(command) = &request.target {
        notes.extend(words::notes(command));
    }
    notes.extend(space);
    let is_placed = request.folder.is_some();
    Ok(Prepared {
        is_placed,
        request,
        perf,
        facts,
        options,
        environment,
        folder,
        notes,
        probes,
    })
}

/// What the environment of a command gets.
fn planned(request: &Request, facts: &Facts, folder: &Path) -> Environment {
    if !matches!(request.target, Target::Command(_)) {
        return Environment::default();
    }
    let given: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    environment::plan(&given, &request.choice, facts, folder)
}

/// Asks that there is such a program.
fn runnable(command: &[OsString]) -> Result<(), Failure> {
    let name = command.first().map(OsString::as_os_str).unwrap_or_default();
    if machine::program(name).is_some() {
        return Ok(());
    }
    let shown = name.display();
    let (status, text) = if machine::is_there(name) {
        (126, format!("{shown}: cannot be run"))
    } else {
        (127, format!("{shown}: no such command"))
    };
    Err(Failure {
        status,
        ..Failure::new(text)
    })
}

fn runnable_if_any(command: &[OsString]) -> Result<(), Failure> {
    if command.is_empty() {
        Ok(())
    } else {
        runnable(command)
    }
}

/// Records.
///
/// # Errors
/// When perf does not start after all; nothing is left of it then, and the command was not started.
pub fn record(mut prepared: Prepared) -> Result<Recorded, Failure> {
    let interrupted = prepared
        .probes
        .as_ref()
        .and_then(|added| added.interrupted());
    if let Some(signal) = interrupted {
        return Err(Failure {
            status: status_of_signal(signal),
            ..Failure::new("ended before the command was started")
        });
    }
    let began = SystemTime::now();
    let mut folder = prepared.take_folder()?;
    // Where that fails, what lies in it is somebody else's, and stays.
    folder.claim()?;
    let plan = folder::Story {
        request: &prepared.request,
        options: &prepared.options,
        environment: &prepared.environment,
        status: None,
        began,
        ran: None,
        used: None,
        perf_ended: None,
        notes: &prepared.notes,
        moved: &[],
    };
    // Without it a recording that is ended by force is as good, but for `--again`.
    let _ = folder.tell_plan(&plan);
    let keeper = Keeper::start(&prepared.request.target);
    let outcome = folder
        .add_files(&prepared.environment.files)
        .map_err(|error| Failure::new(format!("{}: {error}", prepared.folder.display())))
        .and_then(|()| run(&prepared, &folder));
    let kept = keeper.end();
    let ended = match outcome {
        Ok(ended) => ended,
        Err(failure) => {
            folder.remove_files(&prepared.environment.files);
            folder.remove();
            return Err(failure);
        }
    };
    folder.remove_files(&prepared.environment.files);
    if !folder.has_recording() {
        folder.remove();
        let text = format!("{} was removed meanwhile", folder.path().display());
        let trouble = Trouble::new(text, ["-o DIR outside of what the command cleans"]);
        return Err(Failure::of(trouble));
    }
    let Prepared {
        request,
        environment,
        mut notes,
        facts,
        options: planned,
        ..
    } = prepared;
    let options = ended.options;
    if options.ring < planned.ring {
        notes.push(trouble::of_ring(&options, &facts));
    }
    let mut gathered = gather::gather(folder.path(), &request.target, began, &kept);
    notes.extend(ended.notes);
    let command = ended.command.as_ref();
    let cut = command.and_then(|command| command.cut(&gathered.whereabouts));
    let why = ended.early.as_ref().map_or(Why::Unknown, |early| early.why);
    let early = cut.map(|after| Early { after, why }).or(ended.early);
    let perf_ended = early.as_ref().map(|early| early.after);
    notes.extend(early.as_ref().map(Early::note));
    notes.append(&mut gathered.notes);
    if request.choice.java_agent.is_none() {
        notes.extend(gather::silent(&gathered, &environment));
    }
    let found = &gathered.whereabouts;
    let (copied, told) = copies::keep_fleeting(
        folder.path(),
        &found.programs,
        &found.samples,
        &request.target,
        &kept,
    );
    gathered.moved.extend(copied);
    notes.extend(told);
    if request.files {
        let (files, remarks) = copies::keep_all(folder.path(), request.search.clone());
        gathered.moved.extend(files);
        notes.extend(remarks);
    }
    let story = folder::Story {
        request: &request,
        options: &options,
        environment: &environment,
        status: Some(ended.status),
        began,
        ran: command.map(|command| command.ran),
        used: command.and_then(|command| command.used),
        perf_ended,
        notes: &notes,
        moved: &gathered.moved,
    };
    /// Shorter than this a command waited for nothing but its turn.
    const LEAST_WAIT: Duration = Duration::from_millis(500);
    let has_waited = match (story.ran, story.used) {
        (Some(ran), Some(used)) => ran >= LEAST_WAIT && (used.user + used.system) * 10 < ran,
        _ => false,
    };
    let written = folder.tell(&story);
    folder.forget_places();
    folder.finish(perf_ended.is_some());
    if let Err(error) = written {
        notes.push(Note::new(format!("record.json: {error}")));
    }
    Ok(Recorded {
        status: ended.status,
        folder: folder.path().to_owned(),
        notes,
        moved: gathered.moved,
        is_alone: ended.is_alone,
        whereabouts: gathered.whereabouts,
        has_waited,
    })
}

/// Gathers what belongs to a recording whose recorder was killed: what lies beside it afterwards.
///
/// # Errors
/// When it is none of ours, or was gathered before.
pub fn finish(folder: &Path) -> Result<(Vec<Moved>, Vec<Note>), Failure> {
    let recording = folder.join("perf.data");
    let meta = std::fs::metadata(&recording)
        .map_err(|error| Failure::new(format!("{}: {error}", recording.display())))?;
    if folder.join(folder::STORY).symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "{} is whole already",
            folder.display()
        )));
    }
    tracing::remove_of_the_dead();
    // The recording is the first file that was made.
    let began = crate::input::born(&recording)
        .or_else(|| meta.modified().ok())
        .unwrap_or(SystemTime::now());
    let target = Target::Command(Vec::new());
    let gathered = gather::gather(folder, &target, began, &keeper::Kept::default());
    folder::forget_switches(folder);
    let mut notes = gathered.notes;
    let ended = meta.modified().unwrap_or(SystemTime::now());
    if let Err(error) = folder::finish(folder, ended, &gathered.moved) {
        let text = format!("record.json: {error}; --again does not know how it was recorded");
        notes.push(Note::new(text));
    }
    Ok((gathered.moved, notes))
}

/// How a run ended.
struct Ended {
    status: u8,
    notes: Vec<Note>,
    is_alone: bool,
    /// The command, if there was one.
    command: Option<Lived>,
    /// What was seen of perf's end before its time.
    early: Option<Early>,
    /// With which it was recorded.
    options: Options,
}

/// A command that has ended.
struct Lived {
    pid: u32,
    /// How long it ran.
    ran: Duration,
    /// CPU time of it and of its children.
    used: Option<Used>,
}

/// Starts all, and waits for the end.
fn run(prepared: &Prepared, folder: &Folder) -> Result<Ended, Failure> {
    let arriving = Arriving::new();
    match &prepared.request.target {
        Target::Command(words) => run_command(prepared, words, folder, &arriving),
        target => watch(prepared, target, folder, &arriving),
    }
}

/// A command from its start to its end.
fn run_command(
    prepared: &Prepared,
    words: &[OsString],
    folder: &Folder,
    arriving: &Arriving,
) -> Result<Ended, Failure> {
    let name = words.first().map(OsString::as_os_str).unwrap_or_default();
    let program = machine::program(name).unwrap_or_else(|| name.into());
    let trouble = |error: io::Error| Failure::new(format!("{}: {error}", name.display()));
    let (waiting, gate) =
        command::waiting(&program, words, &prepared.environment.variables).map_err(trouble)?;
    // perf ends with the thread that started it, which stays until this side hangs up.
    let (stay, attached) = attach(prepared, folder, gate)?;
    let started = waiting.start();
    let attached = attached.recv();
    let (mut perf, options) = match attached {
        Ok(Some(begun)) => begun,
        Ok(None) | Err(_) if started.is_err() => {
            return Err(not_attached(folder, started.err()));
        }
        Ok(None) | Err(_) => return Err(not_attached(folder, None)),
    };
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            perf.end();
            drop(stay);
            let status = match error.kind() {
                io::ErrorKind::NotFound => 127,
                _ => 126,
            };
            return Err(Failure {
                status,
                ..trouble(error)
            });
        }
    };
    let mut load = Load::new(prepared.request.load.as_deref());
    let mut watch = Watch::new();
    let pid = child.id();
    let followed = follow(&mut child, arriving, || {
        watch.tick(&mut perf, folder);
        load.tick(pid);
    });
    let mut last = followed.last;
    let ran = watch.began.elapsed();
    let notes = load.end();
    if prepared.request.until_exit {
        while !perf.has_ended() && last.is_none() {
            last = next_signal(arriving, Duration::from_millis(50));
        }
    }
    watch.tick(&mut perf, folder);
    perf.end();
    drop(stay);
    let command = Lived {
        pid,
        ran,
        used: followed.used,
    };
    Ok(Ended {
        status: followed.status,
        notes,
        is_alone: last == Some(SIGHUP),
        command: Some(command),
        early: watch.early(),
        options,
    })
}

/// Sees whether perf ends before its time.
struct Watch {
    began: Instant,
    /// When it was seen that it had ended, and the signal that did it.
    ended: Option<(Duration, Option<i32>)>,
    /// Whether the disk was full, and it was told to end: better a recording that ends early than one without its end.
    is_full: bool,
}

/// The end of a recording before that of what it is of.
struct Early {
    /// Since the beginning.
    after: Duration,
    why: Why,
}

/// Why a recording ended early.
#[derive(Clone, Copy)]
enum Why {
    /// The disk was nearly full.
    Full,
    /// A signal that perf could not handle.
    Killed,
    /// A signal with which it completes its file.
    Ended,
    /// Not seen.
    Unknown,
}

impl Early {
    fn note(&self) -> Note {
        let at = self.after.as_secs_f64();
        let text = match self.why {
            Why::Full => "the disk was nearly full: the recording ends there".to_owned(),
            Why::Killed => format!("perf was killed at {at:.1} s: the recording ends there"),
            Why::Ended => format!("perf was ended at {at:.1} s: the recording ends there"),
            Why::Unknown => format!("the recording ends at {at:.1} s, before the command did"),
        };
        let note = Note::new(text);
        match self.why {
            Why::Full => note.mended_by("-o DIR on another disk, or -F 99"),
            Why::Killed | Why::Ended | Why::Unknown => note,
        }
    }
}

impl Watch {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            ended: None,
            is_full: false,
        }
    }

    fn tick(&mut self, perf: &mut Perf, folder: &Folder) {
        if self.ended.is_some() {
            return;
        }
        self.is_full = !perf.has_ended() && folder.is_full();
        if self.is_full {
            perf.end();
        }
        if perf.has_ended() {
            self.ended = Some((self.began.elapsed(), perf.ended_by()));
        }
    }

    /// What was seen of an end that was not perf's own, which a signal does.
    fn early(&self) -> Option<Early> {
        let (after, signal) = self.ended?;
        let why = match signal {
            _ if self.is_full => Why::Full,
            Some(SIGINT | SIGTERM) => Why::Ended,
            Some(_) => Why::Killed,
            None => return None,
        };
        Some(Early { after, why })
    }
}

impl Lived {
    /// When its recording ended, if that was before it did. perf writes for a while when it was asked to end, so nobody may have
    /// seen that.
    fn cut(&self, found: &Whereabouts) -> Option<Duration> {
        /// Until perf begins, and where all of a service are asked to end.
        const MOMENT: Duration = Duration::from_millis(100);
        let after = found.ends_before(self.pid)?;
        (self.ran.saturating_sub(after) >= MOMENT).then_some(after)
    }
}

/// What puts load on a server, from its start a while after the server's.
struct Load<'l> {
    line: Option<&'l str>,
    began: Instant,
    running: Option<Child>,
    notes: Vec<Note>,
}

impl<'l> Load<'l> {
    fn new(line: Option<&'l str>) -> Self {
        Self {
            line,
            began: Instant::now(),
            running: None,
            notes: Vec::new(),
        }
    }

    /// Starts it when it is time, and ends the server, which is a child that was not waited for, when it has ended.
    fn tick(&mut self, server: u32) {
        const READY: Duration = Duration::from_secs(1);
        if let Some(line) = self.line.filter(|_| self.began.elapsed() >= READY) {
            self.line = None;
            let words = ["sh", "-c", line].map(OsString::from);
            match command::at_once(Path::new("/bin/sh"), &words) {
                Ok(child) => self.running = Some(child),
                Err(error) => self.notes.push(Note::new(format!("{line}: {error}"))),
            }
        }
        let Some(running) = &mut self.running else {
            return;
        };
        if let Ok(Some(ended)) = running.try_wait() {
            self.running = None;
            if !ended.success() {
                let text = format!("the load ended with status {}", status_of(ended));
                self.notes.push(Note::new(text));
            }
            signals::send(server, signal_hook::consts::SIGTERM);
        }
    }

    /// Ends what is left of it.
    fn end(mut self) -> Vec<Note> {
        if let Some(mut running) = self.running.take() {
            self.notes
                .push(Note::new("the command ended before its load"));
            let _ = running.kill();
            let _ = running.wait();
        }
        self.notes
    }
}

/// perf that records, and with which options.
type Begun = (Perf, Options);

/// Has a thread attach perf to the command that waits at the gate, and let it go.
fn attach(
    prepared: &Prepared,
    folder: &Folder,
    mut gate: Gate,
) -> Result<(Sender<()>, Receiver<Option<Begun>>), Failure> {
    let log = folder
        .log()
        .map_err(|error| Failure::new(format!("{}: {error}", folder.path().display())))?;
    let (stay, stays) = channel::<()>();
    let (sender, attached) = channel();
    let (program, options, out) = (
        prepared.perf.clone(),
        prepared.options.clone(),
        folder.recording(),
    );
    std::thread::spawn(move || {
        let perf = gate.pid().and_then(|pid| {
            let target = Target::Processes(vec![pid]);
            Perf::begin(&program, options, &target, &out, &log).ok()?
        });
        gate.open(perf.is_some());
        let _ = sender.send(perf);
        // Until the other side hangs up.
        let _ = stays.recv();
    });
    Ok((stay, attached))
}

fn not_attached(folder: &Folder, error: Option<io::Error>) -> Failure {
    let said = folder.read_log();
    let said = match (said.is_empty(), error) {
        (false, _) => said,
        (true, Some(error)) => error.to_string(),
        (true, None) => "it says nothing".to_owned(),
    };
    if said.contains("No such process") {
        return Failure::new("what was to be recorded has ended");
    }
    Failure::new(format!("perf did not start: {said}"))
}

/// How a child ended.
struct Followed {
    status: u8,
    /// The last signal that came meanwhile.
    last: Option<i32>,
    /// CPU time of it, and of the children that it waited for.
    used: Option<Used>,
}

/// Waits for a child, and passes signals on to it.
fn follow(child: &mut Child, arriving: &Arriving, mut tick: impl FnMut()) -> Followed {
    const TWICE: Duration = Duration::from_secs(2);
    let mut last = None;
    let mut interrupted: Option<Instant> = None;
    // What came before the command was there did not reach it.
    while let Ok(signal) = arriving.numbers.try_recv() {
        if signal != SIGCHLD {
            signals::send(child.id(), signal);
            last = Some(signal);
        }
    }
    loop {
        if command::has_ended(child) {
            // Nothing tells that any more when it was waited for.
            let used = Used::by(child.id());
            let status = child.wait().map_or(1, status_of);
            return Followed { status, last, used };
        }
        tick();
        let Some(signal) = next_signal(arriving, Duration::from_millis(100)) else {
            continue;
        };
        last = Some(signal);
        let again = interrupted.is_some_and(|before| before.elapsed() < TWICE);
        match signal {
            SIGINT if again => signals::send(child.id(), SIGKILL),
            SIGINT => {
                interrupted = Some(Instant::now());
                if !signals::is_in_front() {
                    signals::send(child.id(), SIGINT);
                }
            }
            other => signals::send(child.id(), other),
        }
    }
}

/// The next signal but for news of children, if one comes.
fn next_signal(arriving: &Arriving, longest: Duration) -> Option<i32> {
    match arriving.numbers.recv_timeout(longest) {
        Ok(signal) => Some(signal).filter(|&signal| signal != SIGCHLD),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            std::thread::sleep(longest);
            None
        }
    }
}

/// What runs already, for a while.
fn watch(
    prepared: &Prepared,
    target: &Target,
    folder: &Folder,
    arriving: &Arriving,
) -> Result<Ended, Failure> {
    let request = &prepared.request;
    let log = folder
        .log()
        .map_err(|error| Failure::new(format!("{}: {error}", folder.path().display())))?;
    let out = folder.recording();
    let wanted = prepared.options.clone();
    let begun = Perf::begin(&prepared.perf, wanted, target, &out, &log)
        .map_err(|error| Failure::new(format!("perf: {error}")))?;
    let Some((mut perf, options)) = begun else {
        return Err(not_attached(folder, None));
    };
    let mut status = 0;
    let mut watched = Watch::new();
    let before = harvest::Before::of_machine();
    let last = if request.stop_watch.is_empty() {
        // Longer than clocks go is for ever.
        let until = request
            .duration
            .and_then(|duration| Instant::now().checked_add(duration));
        let mut last = None;
        while last.is_none()
            && !perf.has_ended()
            && until.is_none_or(|until| Instant::now() < until)
        {
            let left = until.map_or(Duration::MAX, |until| until - Instant::now());
            last = next_signal(arriving, left.min(Duration::from_millis(100)));
            watched.tick(&mut perf, folder);
        }
        last
    } else {
        let words = &request.stop_watch;
        let name = words.first().map(OsString::as_os_str).unwrap_or_default();
        let trouble = |error: io::Error| Failure::new(format!("{}: {error}", name.display()));
        let program = machine::program(name).unwrap_or_else(|| name.into());
        let mut child = command::at_once(&program, words).map_err(trouble)?;
        let followed = follow(&mut child, arriving, || watched.tick(&mut perf, folder));
        status = followed.status;
        followed.last
    };
    if !perf.has_ended() {
        perf.tell("disable");
    }
    // Not recorded any more, and perf's file has room for what it maps.
    let notes = match target {
        Target::Processes(pids) => harvest::harvest(pids, folder.path(), true),
        _ => harvest::harvest(&before.busy(), folder.path(), false),
    };
    watched.tick(&mut perf, folder);
    perf.end();
    Ok(Ended {
        status,
        notes,
        is_alone: last == Some(SIGHUP),
        command: None,
        early: watched.early(),
        options,
    })
}

/// Facts that `prepared` was made of.
impl Prepared {
    /// The same machine and options for another run, into a folder inside of this one.
    #[must_use]
    pub fn run_in(&self, target: Target, folder: &Path) -> Self {
        let folder = self.folder.join(folder);
        let request = Request {
            target,
            ..self.request.clone()
        };
        let mut environment = planned(&request, &self.facts, &folder);
        environment.notes.clear();
        Self {
            request,
            environment,
            folder,
            is_placed: true,
            notes: Vec::new(),
            ..self.clone()
        }
    }

    /// Makes the folder: a new one, unless the user named it. Who makes it first has it.
    fn take_folder(&mut self) -> Result<Folder, Failure> {
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            let folder = Folder::make(&self.folder)?;
            if folder.is_new() || self.is_placed {
                return Ok(folder);
            }
            self.folder = folder::fresh(&self.facts.here, &self.request.target.label());
            self.environment = planned(&self.request, &self.facts, &self.folder);
        }
        Err(Failure::new(format!(
            "{}: others take each name",
            self.folder.display()
        )))
    }

    /// Makes the folder and those in it.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn make_folders(&mut self, inside: &[&str]) -> Result<(), Failure> {
        // Runs of an earlier series would be overwritten, and those that are left would count in the comparison.
        let inside = inside.iter().map(|name| self.folder.join(name));
        let inside: Vec<PathBuf> = inside.collect();
        if let Some(known) = inside.iter().find(|path| folder::has_something(path)) {
            return Err(folder::is_taken(known));
        }
        self.take_folder()?;
        for path in inside {
            Folder::make(&path)?;
        }
        Ok(())
    }

    /// Runs the command without recording it, as it will run: its status.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn warm_up(&self) -> Result<u8, Failure> {
        let Target::Command(words) = &self.request.target else {
            return Ok(0);
        };
        let name = words.first().map(OsString::as_os_str).unwrap_or_default();
        let trouble = |error: io::Error| Failure::new(format!("{}: {error}", name.display()));
        let program = machine::program(name).unwrap_or_else(|| name.into());
        let arriving = Arriving::new();
        let mut child = command::at_once(&program, words).map_err(trouble)?;
        Ok(follow(&mut child, &arriving, || {}).status)
    }

    /// Whether this is root.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.facts.is_root
    }
}
