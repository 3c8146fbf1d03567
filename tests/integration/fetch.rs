//! `pjit fetch` with the real client: against the real server, against one that sends what it likes, and with a client that does
//! not end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::inlines::code;
use crate::live::Lab;
use crate::security::{Case, hex, program, record_build};
use crate::support::{pjit, program as on_path, skip};

/// What a server answers.
#[derive(Clone)]
enum Reply {
    Bytes(Vec<u8>),
    /// A status with headers, and nothing else.
    Status(&'static str),
    /// A byte now and then.
    Slow,
    Endless,
}

/// A server on this machine that answers all with one reply.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (reply, heard) = (reply.clone(), Arc::clone(&heard));
                std::thread::spawn(move || answer(stream, &reply, &heard));
            }
        });
        let url = format!("http://{address}");
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

/// Clients go away when they have enough.
fn answer(mut stream: TcpStream, reply: &Reply, heard: &Mutex<Vec<String>>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    heard.lock().ok()?.push(path);
    while lines.next()?.is_ok_and(|line| !line.is_empty()) {}
    let mut send = |bytes: &[u8]| stream.write_all(bytes).and_then(|()| stream.flush()).ok();
    let ok = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    match reply {
        Reply::Bytes(bytes) => {
            send(format!("{ok}Content-Length: {}\r\n\r\n", bytes.len()).as_bytes())?;
            send(bytes)
        }
        Reply::Status(status) => {
            send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes())
        }
        Reply::Slow => {
            send(format!("{ok}Content-Length: 1000000\r\n\r\n").as_bytes())?;
            loop {
                send(b"x")?;
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        Reply::Endless => {
            send(format!("{ok}\r\n").as_bytes())?;
            loop {
                send(&[0; 1 << 16])?;
            }
        }
    }
}

/// A recording of a build that is nowhere, and an empty cache.
struct Lacking {
    case: Case,
    build: String,
}

impl Lacking {
    fn new() -> Self {
        let case = Case::new();
        let bytes = program();
        let note = memchr::memmem::find(&bytes, b"\x14\0\0\0\x03\0\0\0GNU\0").expect("a note");
        let own: [u8; 20] = bytes[note + 12..note + 32].try_into().expect("twenty");
        record_build(&case, own, code(&bytes)[0].0);
        Self {
            case,
            build: hex(&own),
        }
    }

    fn command(&self, words: &[&str], url: &str) -> Command {
        let mut command = pjit();
        command
            .args(words)
            .current_dir(self.case.path("case"))
            .env("DEBUGINFOD_CACHE_PATH", self.case.path("cache"))
            .env("DEBUGINFOD_URLS", url)
            .env("DEBUGINFOD_TIMEOUT", "2")
            .env("DEBUGINFOD_MAXTIME", "6");
        command
    }

    fn fetch(&self, words: &[&str], url: &str) -> Fetched {
        let words = [&["fetch"], words].concat();
        Fetched::of(self.command(&words, url).output())
    }

    /// Files of the build in the cache, with their sizes.
    fn cached(&self) -> Vec<(String, u64)> {
        let folder = self.case.path("cache").join(&self.build);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, entry.metadata().expect("it is there").len())
            })
            .collect();
        files.sort();
        files
    }
}

struct Fetched {
    status: Option<i32>,
    out: String,
    err: String,
}

impl Fetched {
    fn of(output: std::io::Result<Output>) -> Self {
        let output = output.expect("the binary can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            status: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    fn assert(&self, status: i32, words: &str) {
        let is_there = self.out.contains(words) || self.err.contains(words);
        let all = format!("{:?}\n{}{}", self.status, self.out, self.err);
        assert!(self.status == Some(status) && is_there, "{words}: {all}");
        // Progress is for terminals.
        assert!(!self.err.contains('\r'), "{all}");
    }
}

fn has_client() -> bool {
    let has_it = on_path("debuginfod-find").is_some();
    if !has_it {
        skip("debuginfod", "there is no client");
    }
    has_it
}

#[test]
fn what_a_server_has_is_fetched_once() {
    if !has_client() {
        return;
    }
    let lacking = Lacking::new();
    let server = Server::new(Reply::Bytes(program()));
    let size = program().len() as u64;
    let names = |lacking: &Lacking| {
        let report = ["report", "--stdio", "-s", "sym"];
        Fetched::of(lacking.command(&report, "").output()).out
    };
    assert!(names(&lacking).contains("[.] 0x"), "{}", names(&lacking));
    let command = format!(
        "debug file of app: debuginfod-find debuginfo {}",
        lacking.build
    );
    lacking.fetch(&["--dry-run"], "").assert(0, &command);
    assert_eq!((server.asked().len(), lacking.cached().len()), (0, 0));
    let fetched = lacking.fetch(&["--executables"], &server.url);
    fetched.assert(0, "100.00%  debug file of app: fetched, ");
    fetched.assert(0, "program of app: fetched, ");
    let both = ["debuginfo", "executable"].map(|name| (name.to_owned(), size));
    assert_eq!(lacking.cached(), both);
    let asked =
        ["debuginfo", "executable"].map(|kind| format!("/buildid/{}/{kind}", lacking.build));
    assert_eq!(server.asked(), asked);
    lacking
        .fetch(&[], &server.url)
        .assert(0, "nothing to fetch");
    assert_eq!(server.asked().len(), 2, "asked once");
    assert!(!names(&lacking).contains("[.] 0x"), "{}", names(&lacking));
}

#[test]
fn what_a_server_sends_is_checked() {
    if !has_client() {
        return;
    }
    const OTHER: &str = "the server sent another file; removed";
    const MISS: &str = "no server has it, or one failed; is asked again after";
    let of_another_build = {
        let mut other = program();
        let note = memchr::memmem::find(&other, b"\x14\0\0\0\x03\0\0\0GNU\0").expect("a note");
        other[note + 12] ^= 1;
        other
    };
    let bytes = |bytes: &[u8]| Reply::Bytes(bytes.to_owned());
    let redirect = "302 Found\r\nLocation: file:///etc/passwd";
    // What is sent, the status, what is said, and whether the client remembers a miss.
    let rows: [(Reply, i32, &str, bool); 9] = [
        (bytes(&[0xa5; 5000]), 1, OTHER, false),
        (bytes(b"<html>login please</html>"), 1, OTHER, false),
        (Reply::Bytes(of_another_build), 1, OTHER, false),
        (Reply::Status("404 Not Found"), 0, MISS, true),
        (Reply::Status("503 Service Unavailable"), 0, MISS, true),
        (Reply::Status(redirect), 0, MISS, true),
        (
            Reply::Slow,
            1,
            "too slow (DEBUGINFOD_TIMEOUT=2, DEBUGINFOD_MAXTIME=6)",
            false,
        ),
        (Reply::Endless, 1, "larger than --max-size leaves", false),
        (
            Reply::Bytes(program()),
            1,
            "larger than --max-size leaves",
            false,
        ),
    ];
    std::thread::scope(|scope| {
        for (row, (reply, status, words, is_miss)) in rows.into_iter().enumerate() {
            // Less than there is of the last one.
            let most = if row == 8 { "6K" } else { "3M" };
            scope.spawn(move || {
                let lacking = Lacking::new();
                let server = Server::new(reply);
                let fetched = lacking.fetch(&["--max-size", most], &server.url);
                fetched.assert(status, words);
                let left: Vec<_> = is_miss
                    .then(|| ("debuginfo".to_owned(), 0))
                    .into_iter()
                    .collect();
                assert_eq!(lacking.cached(), left, "row {row}");
                let asked = server.asked().len();
                assert!(asked > 0);
                if is_miss {
                    let again = lacking.fetch(&[], &server.url);
                    again.assert(0, "was not there at ");
                    let file = lacking
                        .case
                        .path("cache")
                        .join(&lacking.build)
                        .join("debuginfo");
                    again.assert(0, &format!("or remove {}", file.display()));
                    assert_eq!(server.asked().len(), asked, "nobody is asked again");
                }
            });
        }
    });
    let lacking = Lacking::new();
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", nobody.local_addr().expect("it has one"));
    drop(nobody);
    let fetched = lacking.fetch(&["--executables"], &url);
    fetched.assert(
        1,
        "no server answers (Connection refused); look at DEBUGINFOD_URLS",
    );
    assert_eq!(
        fetched.out.matches("no server answers").count(),
        1,
        "asked once"
    );
}

#[test]
fn without_server_or_client_it_is_said_what_is_missing() {
    let lacking = Lacking::new();
    let fetched = lacking.fetch(&[], "");
    fetched.assert(2, "error: no debuginfod server is set");
    fetched.assert(2, "DEBUGINFOD_URLS");
    fetched.assert(2, "/etc/debuginfod/");
    let mut command = lacking.command(&["fetch"], "http://127.0.0.1:1");
    let fetched = Fetched::of(command.env("PATH", "/nowhere").output());
    fetched.assert(1, "error: debuginfod-find is not installed");
    fetched.assert(1, "apt install debuginfod");
}

#[test]
fn a_file_in_the_cache_that_is_another_stays_and_is_named() {
    let lacking = Lacking::new();
    let file = format!("cache/{}/debuginfo", lacking.build);
    lacking.case.write(&file, "<html>");
    let path = lacking.case.path(&file);
    let said = format!(
        "the cache has another file; remove {} to ask again",
        path.display()
    );
    lacking.fetch(&["--dry-run"], "").assert(0, &said);
    assert_eq!(fs::read_to_string(path).expect("there"), "<html>");
}

#[test]
fn sources_of_a_function_are_fetched() {
    if !has_client() {
        return;
    }
    const PATH: &str = "/tmp/pjit-sample/native/hot.cpp";
    let recording = crate::support::sample("native", "perf.data");
    let recording = recording.to_str().expect("a plain path");
    let lacking = Lacking::new();
    let list = || Fetched::of(lacking.command(&["list", "main", recording], "").output()).out;
    let words = ["--sources", "main", recording];
    let page = Server::new(Reply::Bytes(b"<!DOCTYPE html>login".to_vec()));
    lacking
        .fetch(&words, &page.url)
        .assert(1, "the server sent another file; removed");
    let lines: String = (1..200)
        .map(|line| format!("// fetched line {line}\n"))
        .collect();
    let server = Server::new(Reply::Bytes(lines.into_bytes()));
    assert!(!list().contains("fetched line"), "{}", list());
    let said = format!("source of {PATH}: fetched, ");
    lacking.fetch(&words, &server.url).assert(0, &said);
    assert_eq!(server.asked().len(), 1, "{:?}", server.asked());
    assert!(
        server.asked()[0].ends_with(&format!("/source{PATH}")),
        "{:?}",
        server.asked()
    );
    assert!(list().contains("// fetched line 83"), "{}", list());
    lacking
        .fetch(&words, &server.url)
        .assert(0, "nothing to fetch");
    let none = lacking.fetch(&["--sources", "nosuchfunction", recording], &server.url);
    none.assert(1, "no function matches 'nosuchfunction'");
}

/// One that writes a part of a file and then sleeps.
fn write_sleepy_client(folder: &Path) {
    let client = folder.join("debuginfod-find");
    let text = "#!/bin/sh\n\
         mkdir -p \"$DEBUGINFOD_CACHE_PATH/$2\"\n\
         echo part >\"$DEBUGINFOD_CACHE_PATH/$2/debuginfo.AbCdEf\"\n\
         exec sleep 60\n";
    fs::write(&client, text).expect("written");
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn a_client_that_runs_over_is_ended() {
    let lacking = Lacking::new();
    let folder = lacking.case.path("bin");
    fs::create_dir(&folder).expect("made");
    write_sleepy_client(&folder);
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let run = |most: &str| {
        let mut command = lacking.command(&["fetch"], "http://127.0.0.1:1");
        command.env("PATH", &path).env("DEBUGINFOD_MAXTIME", most);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        (command.spawn().expect("it can be run"), Instant::now())
    };
    let (child, began) = run("1");
    let fetched = Fetched::of(child.wait_with_output());
    fetched.assert(1, "took longer than DEBUGINFOD_MAXTIME=1, and was ended");
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(lacking.cached(), []);
    // ^C
    let (child, began) = run("300");
    while lacking.cached().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(40), "it begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("sent");
    let fetched = Fetched::of(child.wait_with_output());
    fetched.assert(130, "debug file of app: stopped");
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(lacking.cached(), []);
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A stripped program, and the real server with its debug file: names, then nothing more to ask.
#[test]
fn the_real_server_brings_names() {
    let (Some(server), true) = (on_path("debuginfod"), has_client()) else {
        return skip("debuginfod", "there is no server");
    };
    let Some(lab) = Lab::with("fetch", "calls", &["-Wl,--build-id"]) else {
        return;
    };
    let strip = |words: &[&str]| {
        let done = Command::new("objcopy")
            .args(words)
            .current_dir(lab.path(""))
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    fs::create_dir(lab.path("debug")).expect("made");
    let is_split = strip(&["--only-keep-debug", "calls", "debug/calls.debug"]);
    if !is_split || !strip(&["--strip-all", "calls"]) {
        return skip("objdump", "there is no objcopy");
    }
    if lab
        .record("perf.data", &["-e", "cpu-clock"], &["./calls"])
        .is_none()
    {
        return;
    }
    // Not one of those that the system hands out, as to the other servers here.
    let port = 20_000 + std::process::id() % 10_000;
    let database = lab.path("db.sqlite");
    let database = database.to_str().expect("a plain path");
    let running = Command::new(server)
        .args(["-p", &port.to_string(), "-d", database, "-F"])
        .arg(lab.path("debug"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _running = Running(running.expect("it can be run"));
    let url = format!("http://127.0.0.1:{port}");
    let run = |words: &[&str]| {
        let mut command = pjit();
        command
            .current_dir(lab.path(""))
            .args(words)
            .env("DEBUGINFOD_CACHE_PATH", lab.path("cache"))
            .env("DEBUGINFOD_URLS", &url)
            .env("DEBUGINFOD_TIMEOUT", "5");
        Fetched::of(command.output())
    };
    let advice = run(&["check"]).out;
    assert!(
        advice.contains("pjit fetch may bring the debug file of calls (build ID "),
        "{advice}"
    );
    let unnamed = || {
        let report = run(&["report", "--stdio", "-s", "dso,sym", "--dso", "calls"]).out;
        report
            .lines()
            .filter(|line| line.contains("[.] 0x"))
            .count()
    };
    assert!(unnamed() > 0);
    // It looks at its folder in its own time, and the client remembers that it did not have the file yet.
    let began = Instant::now();
    let fetched = loop {
        let fetched = run(&["fetch"]);
        if fetched.out.contains("fetched, ") {
            break fetched;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", fetched.out);
        let _ = fs::remove_dir_all(lab.path("cache"));
        std::thread::sleep(Duration::from_millis(300));
    };
    fetched.assert(0, "debug file of calls: fetched, ");
    assert_eq!(unnamed(), 0);
    run(&["fetch"]).assert(0, "# pjit fetch: nothing to fetch");
}
