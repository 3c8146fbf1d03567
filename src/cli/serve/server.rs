//! Listens, looks at who asks for what, and answers.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::ServeArgs;
use super::http::{Answer, Request, is_gone};
use crate::cli::verb::wrong_usage;
use crate::input::living;
use crate::output::text::harmless;
use crate::record::run::profiles::{KINDS, Maker, name_of};

/// Connections at a time.
const MOST_OPEN: usize = 16;
/// How long nothing may happen before it is looked for signals.
const STEP: Duration = Duration::from_millis(25);
/// How long what runs may take to end when a signal came.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
/// Seconds without `?seconds=`, as in Go.
const SECONDS: u64 = 30;
/// As Go's own server says it.
const BUSY: &str = "Could not enable CPU profiling: cpu profiling already in use";
const FOLDER: &str = "/debug/pprof/";

/// To standard error; that of a terminal that is gone takes nothing, and that is all right.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// What all connections share.
struct Server {
    maker: Maker,
    /// What `record` is told.
    target: Vec<OsString>,
    process: Option<Process>,
    /// What `Host` may be; nothing where the address does not tell.
    hosts: Option<Vec<String>>,
    token: Option<String>,
    is_busy: AtomicBool,
    /// The process has ended, and somebody was told.
    is_over: AtomicBool,
    open: AtomicUsize,
}

/// The process that is profiled.
struct Process {
    pid: u32,
    name: String,
    began: Option<SystemTime>,
}

impl Process {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let name = name_of(pid).with_context(|| format!("there is no process {pid}"))?;
        Ok(Self {
            pid,
            name: harmless(&name).into_owned(),
            began: living::began(pid),
        })
    }

    /// Whether it is there, and not another one of its number.
    fn lives(&self) -> bool {
        /// Both are told to a second, by clocks that may be set.
        const APART: Duration = Duration::from_secs(2);
        let near = |a: SystemTime, b: SystemTime| {
            a.duration_since(b)
                .or_else(|_| b.duration_since(a))
                .is_ok_and(|apart| apart < APART)
        };
        let is_same = match (self.began, living::began(self.pid)) {
            (Some(then), Some(now)) => near(then, now),
            _ => true,
        };
        is_same && name_of(self.pid).is_some()
    }
}

/// Serves until a signal comes, or somebody asks and the process has ended.
pub(super) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let is_near = args.address.ip().is_loopback();
    if !is_near && args.token.is_none() {
        return Err(wrong_usage(format!(
            "other machines reach {}, and everybody there could ask\nhint: --token FILE",
            args.address
        )));
    }
    let token = args.token.as_deref().map(token_of).transpose()?;
    let process = args.process.map(Process::of).transpose()?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_stopped))?;
    }
    let cannot = || format!("cannot listen on {}", args.address);
    let listener = TcpListener::bind(args.address).with_context(cannot)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let whose = match &process {
        Some(process) => format!("process {} ({})", process.pid, process.name),
        None => "this machine".to_owned(),
    };
    let target = match args.process {
        Some(pid) => vec!["-p".into(), pid.to_string().into()],
        None => vec!["-a".into()],
    };
    let server = Arc::new(Server {
        maker: Maker::default(),
        target,
        process,
        hosts: hosts(address),
        token,
        is_busy: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        open: AtomicUsize::new(0),
    });
    say(&format!("{whose}: go tool pprof http://{address}"));
    while !is_stopped.load(Ordering::SeqCst) && !server.is_over.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((stream, _)) => accepted(&server, stream),
            // Nobody, or somebody who is gone already.
            Err(_) => std::thread::sleep(STEP),
        }
    }
    server.maker.stop();
    // Whoever records takes its files away.
    let mut waited = Duration::ZERO;
    while server.is_busy.load(Ordering::SeqCst) && waited < ENDS_WITHIN {
        std::thread::sleep(STEP);
        waited += STEP;
    }
    Ok(ExitCode::SUCCESS)
}

/// The first line of a file.
fn token_of(path: &Path) -> anyhow::Result<String> {
    const MOST: u64 = 4096;
    let cannot = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(cannot)?;
    file.take(MOST)
        .read_to_string(&mut text)
        .with_context(cannot)?;
    let token = text.lines().next().unwrap_or_default().trim();
    anyhow::ensure!(
        token.len() >= 16,
        "{}: a token has 16 letters or more",
        path.display()
    );
    Ok(token.to_owned())
}

/// What a client of this address says to whom it speaks. A page of another site, which a name server leads here, says its own name.
fn hosts(address: SocketAddr) -> Option<Vec<String>> {
    let port = address.port();
    match address.ip() {
        ip if ip.is_unspecified() => None,
        ip if ip.is_loopback() => {
            let names = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
            let own = std::iter::once(address.to_string());
            Some(names.into_iter().chain(own).collect())
        }
        IpAddr::V4(_) | IpAddr::V6(_) => Some(vec![address.to_string()]),
    }
}

/// Answers in a thread of its own, if there are not too many.
fn accepted(server: &Arc<Server>, mut stream: TcpStream) {
    // What is accepted may be as the listener is.
    if stream.set_nonblocking(false).is_err() {
        return;
    }
    if server.open.fetch_add(1, Ordering::SeqCst) >= MOST_OPEN {
        server.open.fetch_sub(1, Ordering::SeqCst);
        let _ = Answer::text(503, "too many requests").send(&mut stream);
        return;
    }
    let server = Arc::clone(server);
    std::thread::spawn(move || {
        let answer = match Request::read(&mut stream) {
            Ok(request) => server.answer(&request, &|| !is_gone(&stream)),
            Err(answer) => answer,
        };
        // Nobody may be there any more.
        let _ = answer.send(&mut stream);
        let has_ended = server
            .process
            .as_ref()
            .is_some_and(|process| !process.lives());
        if has_ended && answer.status == 500 {
            server.is_over.store(true, Ordering::SeqCst);
        }
        server.open.fetch_sub(1, Ordering::SeqCst);
    });
}

impl Server {
    /// What a request gets. A profile ends when nobody waits for it any more.
    fn answer(&self, request: &Request, is_awaited: &dyn Fn() -> bool) -> Answer {
        if let Some(refused) = self.refused(request) {
            return refused;
        }
        let Some(name) = request.path.strip_prefix(FOLDER) else {
            return unknown();
        };
        if name.is_empty() {
            let rows = KINDS
                .iter()
                .map(|kind| format!("{}: {}", kind.name, kind.about));
            return Answer::text(200, &rows.collect::<Vec<_>>().join("\n"));
        }
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
            return unknown();
        };
        let seconds = request
            .part("seconds")
            .map_or(Ok(SECONDS), str::parse::<u64>);
        let Some(seconds) = seconds.ok().filter(|seconds| (1..=600).contains(seconds)) else {
            return Answer::text(400, "seconds is a number from 1 to 600");
        };
        if let Some(process) = self.process.as_ref().filter(|process| !process.lives()) {
            let text = format!("process {} ({}) has ended", process.pid, process.name);
            return Answer::text(500, &text);
        }
        if self.is_busy.swap(true, Ordering::SeqCst) {
            return Answer::text(500, BUSY);
        }
        let made = self.maker.make(kind, &self.target, seconds, is_awaited);
        self.is_busy.store(false, Ordering::SeqCst);
        match made {
            Ok(profile) => {
                tell_slow(profile.reading, seconds);
                Answer::profile(profile.bytes)
            }
            Err(unmade) => Answer::text(unmade.status, &harmless(&unmade.text)),
        }
    }

    /// Why somebody is not answered at all.
    fn refused(&self, request: &Request) -> Option<Answer> {
        let is_foreign = self.hosts.as_ref().is_some_and(|hosts| {
            let host = request.header("host").map(str::to_ascii_lowercase);
            host.is_none_or(|host| !hosts.contains(&host))
        });
        // A page may ask for a picture without Origin; browsers say that it is a page which asks.
        let is_of_page = request.has("origin")
            || request.has("sec-fetch-site") && request.header("sec-fetch-site") != Some("none");
        if is_foreign || is_of_page {
            return Some(Answer::text(
                403,
                "this address is not for pages of the web",
            ));
        }
        let token = self.token.as_ref()?;
        let given = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "));
        let is_right = given.is_some_and(|given| is_same(given.as_bytes(), token.as_bytes()));
        (!is_right).then(|| Answer::text(401, "a token is needed: Authorization: Bearer TOKEN"))
    }
}

/// go's client waits for half as long again as it asked for, and five seconds.
fn tell_slow(took: Duration, seconds: u64) {
    let patience = Duration::from_secs_f64(seconds as f64 / 2.0 + 5.0);
    if took > patience {
        say(&format!(
            "warning: reading took {:.0} s, for which go tool pprof does not wait\nhint: go tool pprof -timeout {:.0}",
            took.as_secs_f64(),
            seconds as f64 + 2.0 * took.as_secs_f64()
        ));
    }
}

fn unknown() -> Answer {
    let names = KINDS.map(|kind| format!("{FOLDER}{}", kind.name));
    Answer::text(404, &format!("there are {}", names.join(", ")))
}

/// Takes as long whichever letter is the first wrong one.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let wrong = a.iter().zip(b).fold(0, |wrong, (a, b)| wrong | (a ^ b));
    wrong == 0 && a.len() == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_those_of_the_address() {
        let of = |text: &str| hosts(text.parse().expect("an address"));
        let near = of("127.0.0.1:6061").expect("some");
        assert!(near.contains(&"localhost:6061".to_owned()));
        assert!(!near.contains(&"localhost:80".to_owned()));
        assert!(of("[::1]:7").expect("some").contains(&"[::1]:7".to_owned()));
        assert_eq!(of("10.0.0.5:6061"), Some(vec!["10.0.0.5:6061".to_owned()]));
        assert_eq!(of("0.0.0.0:6061"), None);
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(is_same(b"abc", b"abc"));
        assert!(!is_same(b"ab", b"abc") && !is_same(b"abd", b"abc") && !is_same(b"", b"abc"));
    }

    #[test]
    fn a_process_is_known_by_its_number_and_its_beginning() {
        let own = Process::of(std::process::id()).expect("this one");
        assert!(own.lives());
        let other = Process {
            began: own.began.map(|began| began - Duration::from_secs(60)),
            ..own
        };
        assert!(!other.lives());
    }
}
