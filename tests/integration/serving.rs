//! `pjit serve`: what go's client asks for, who is refused, and that no file and no child is left.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{perf, pjit, send, skip};

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that works, and who serves its profiles.
struct Service {
    program: Ends,
    server: Ends,
    address: String,
    /// Where its temporary files are.
    folder: tempfile::TempDir,
}

impl Service {
    fn start(options: &[&str]) -> Self {
        let program = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell");
        let program = Ends(program);
        let folder = tempfile::tempdir().expect("a folder");
        let server = pjit()
            .args(["serve", "-p", &program.0.id().to_string()])
            .args(["--listen", "127.0.0.1:0"])
            .args(options)
            .env("TMPDIR", folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be run");
        let mut server = Ends(server);
        let stderr = server.0.stderr.as_mut().expect("a pipe");
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line).expect("a line");
        let address = line.trim().rsplit_once("http://").expect("an address").1;
        assert!(line.contains("(sh)"), "{line}");
        Self {
            address: address.to_owned(),
            program,
            server,
            folder,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .expect("set");
        stream
    }

    /// Status and body of an answer to a request as it is written.
    fn raw(&self, request: &str) -> (u16, String, Vec<u8>) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("written");
        answer(&mut stream)
    }

    fn ask(&self, path: &str, headers: &str) -> (u16, String, Vec<u8>) {
        let host = &self.address;
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n"
        ))
    }

    fn status(&self, path: &str, headers: &str) -> u16 {
        self.ask(path, headers).0
    }

    /// Whether files or processes are left that speak of its folder.
    fn leavings(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path()).expect("it can be listed");
        let mut left: Vec<String> = files
            .map(|file| format!("{:?}", file.expect("a file").path()))
            .collect();
        let name = self.folder.path().display().to_string();
        for process in fs::read_dir("/proc").expect("it can be listed").flatten() {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            if words.contains(&name) {
                left.push(words);
            }
        }
        left
    }

    /// Waits until the server has ended; its status.
    fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if let Some(status) = self.server.0.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end")
    }
}

fn answer(stream: &mut TcpStream) -> (u16, String, Vec<u8>) {
    let mut bytes = Vec::new();
    // A server that has heard enough closes what it did not read.
    let read = stream.read_to_end(&mut bytes);
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(at) = at else {
        assert!(read.is_err() || bytes.is_empty(), "{bytes:?}");
        return (0, String::new(), Vec::new());
    };
    let head = String::from_utf8(bytes[..at].to_vec()).expect("text");
    let body = bytes[at + 4..].to_vec();
    let status = head.split(' ').nth(1).expect("a status").parse();
    (status.expect("a number"), head, body)
}

fn can_record() -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let status = perf()
        .args(["record", "-q", "-e", "cpu-clock", "-o"])
        .arg(folder.path().join("x.data"))
        .arg("true")
        .stderr(Stdio::null())
        .status();
    let can = status.is_ok_and(|status| status.success());
    if !can {
        skip("perf", "it cannot record here");
    }
    can
}

#[test]
fn whoever_has_no_business_is_refused() {
    let service = Service::start(&[]);
    let profile = "/debug/pprof/profile";
    for seconds in [
        "0",
        "-1",
        "x",
        "1000000000",
        "601",
        "",
        "1&seconds=2",
        "%31",
    ] {
        let path = format!("{profile}?seconds={seconds}");
        assert_eq!(service.status(&path, ""), 400, "{path}");
    }
    for path in [
        "/",
        "/debug/pprof",
        "/debug/pprof/nothing",
        "/debug/pprof/../pprof/",
        "/profile",
    ] {
        assert_eq!(service.status(path, ""), 404, "{path}");
    }
    for headers in [
        "Origin: http://a.example\r\n",
        "Host: a.example\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        assert_eq!(service.status(profile, headers), 403, "{headers}");
    }
    for host in [
        "",
        "Host: a.example\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: 127.0.0.1:1\r\n",
    ] {
        let request = format!("GET /debug/pprof/ HTTP/1.1\r\n{host}\r\n");
        assert_eq!(service.raw(&request).0, 403, "{host}");
    }
    let port = service.address.rsplit_once(':').expect("a port").1;
    for name in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"] {
        let request = format!("GET /debug/pprof/ HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n");
        let (status, head, body) = service.raw(&request);
        let text = String::from_utf8(body).expect("text");
        assert!(
            status == 200 && text.contains("profile: CPU time"),
            "{name}: {text}"
        );
        assert!(
            head.contains("text/plain") && head.contains("nosniff"),
            "{head}"
        );
    }
    let (status, head, body) = service.ask("/debug/pprof/nothing", "");
    assert!(status == 404 && head.contains("X-Go-Pprof: 1"), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("/debug/pprof/profile"));
    assert_eq!(service.raw("POST / HTTP/1.1\r\n\r\n").0, 405);
    assert_eq!(service.raw("\x16\x03\x01 not http\r\n\r\n").0, 400);
    assert_eq!(service.leavings(), Vec::<String>::new());
}

/// Requests are small, soon there and few.
#[test]
fn requests_have_limits() {
    let service = Service::start(&[]);
    // Half of one, and nobody there any more.
    let mut half = service.connect();
    half.write_all(b"GET /debug/pprof/ HTTP/1.1\r\nHost:")
        .expect("written");
    half.shutdown(Shutdown::Write).expect("closed");
    assert_eq!(answer(&mut half).0, 400);
    // A header of a megabyte is not read to its end.
    let mut large = service.connect();
    let _ = large.write_all(b"GET / HTTP/1.1\r\nX: ");
    let _ = large.write_all(&vec![b'x'; 1 << 20]);
    assert!(matches!(answer(&mut large).0, 431 | 0));
    // So many that say nothing, and one more.
    let mut slow: Vec<TcpStream> = (0..16).map(|_| service.connect()).collect();
    let began = Instant::now();
    // They are counted when they are accepted.
    std::thread::sleep(Duration::from_millis(500));
    let mut more = service.connect();
    assert_eq!(answer(&mut more).0, 503);
    for stream in &mut slow {
        assert_eq!(answer(stream).0, 408);
    }
    let took = began.elapsed();
    assert!((9..20).contains(&took.as_secs()), "{took:?}");
    assert_eq!(service.status("/debug/pprof/", ""), 200);
}

#[test]
fn a_profile_is_that_of_the_process_and_one_at_a_time() {
    if !can_record() {
        return;
    }
    let service = Service::start(&[]);
    let path = "/debug/pprof/profile?seconds=1";
    std::thread::scope(|scope| {
        let first = scope.spawn(|| service.ask(path, ""));
        std::thread::sleep(Duration::from_millis(300));
        let (status, head, body) = service.ask(path, "");
        let text = String::from_utf8_lossy(&body).into_owned();
        assert!(
            status == 500 && head.contains("X-Go-Pprof: 1"),
            "{status} {text}"
        );
        assert!(text.contains("cpu profiling already in use"), "{text}");
        let (status, head, body) = first.join().expect("an answer");
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        assert!(body.starts_with(&[0x1f, 0x8b]) && head.contains("octet-stream"));
        let mut profile = Vec::new();
        let mut packed = flate2::read::MultiGzDecoder::new(&*body);
        packed.read_to_end(&mut profile).expect("gzip");
        let text = String::from_utf8_lossy(&profile).into_owned();
        assert!(text.contains("nanoseconds") && text.contains("cpu"));
    });
    assert_eq!(service.leavings(), Vec::<String>::new());
}

#[test]
fn gos_client_finds_it() {
    let version = Command::new("go").arg("version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return skip("go", "it cannot be run");
    }
    if !can_record() {
        return;
    }
    let service = Service::start(&[]);
    let home = tempfile::tempdir().expect("a folder");
    let host = &service.address;
    for address in [
        host.clone(),
        format!("http://{host}/debug/pprof/profile?seconds=9"),
    ] {
        let output = Command::new("go")
            .args([
                "tool",
                "pprof",
                "-top",
                "-seconds=1",
                "-timeout=60",
                &address,
            ])
            .env("PPROF_TMPDIR", home.path())
            .env("HOME", home.path())
            .output()
            .expect("go can be run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && text.contains("flat%"),
            "{address}: {text}{said}"
        );
    }
}

#[test]
fn it_ends_with_the_process_and_says_so() {
    let mut service = Service::start(&[]);
    service.program.0.kill().expect("it lives");
    // Also before somebody has waited for it.
    std::thread::sleep(Duration::from_millis(100));
    let (status, head, body) = service.ask("/debug/pprof/profile?seconds=1", "");
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(status == 500 && text.contains("(sh) has ended"), "{text}");
    assert!(head.contains("X-Go-Pprof: 1"));
    assert_eq!(service.ended(), Some(0));
    assert_eq!(service.leavings(), Vec::<String>::new());
}

#[test]
fn a_signal_leaves_no_file_and_no_child() {
    if !can_record() {
        return;
    }
    for signal in [Signal::TERM, Signal::INT] {
        let mut service = Service::start(&[]);
        let mut stream = service.connect();
        let request = format!(
            "GET /debug/pprof/profile?seconds=60 HTTP/1.1\r\nHost: {}\r\n\r\n",
            service.address
        );
        stream.write_all(request.as_bytes()).expect("written");
        let end = Instant::now() + Duration::from_secs(20);
        while !service.leavings().iter().any(|text| text.contains("perf")) {
            assert!(Instant::now() < end, "it does not record");
            std::thread::sleep(Duration::from_millis(20));
        }
        send(signal, service.server.0.id());
        assert_eq!(service.ended(), Some(0));
        assert_eq!(service.leavings(), Vec::<String>::new());
    }
}

/// Else one who asked for ten minutes and hung up would keep all others waiting for them.
#[test]
fn who_hangs_up_frees_the_profiler() {
    if !can_record() {
        return;
    }
    let service = Service::start(&[]);
    let mut stream = service.connect();
    let request = format!(
        "GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: {}\r\n\r\n",
        service.address
    );
    stream.write_all(request.as_bytes()).expect("written");
    let end = Instant::now() + Duration::from_secs(60);
    while !service.leavings().iter().any(|text| text.contains("perf")) {
        assert!(Instant::now() < end, "it does not record");
        std::thread::sleep(Duration::from_millis(20));
    }
    let path = "/debug/pprof/profile?seconds=1";
    assert_eq!(service.status(path, ""), 500);
    drop(stream);
    let end = Instant::now() + Duration::from_secs(60);
    while service.status(path, "") != 200 {
        assert!(Instant::now() < end, "it still records for nobody");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(service.leavings(), Vec::<String>::new());
}

#[test]
fn other_machines_need_a_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let own = std::process::id().to_string();
    let refused = |options: &[&str]| {
        let output = pjit()
            .args(["serve", "-p", &own])
            .args(options)
            .output()
            .expect("the binary can be run");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, said) = refused(&["--listen", "0.0.0.0:0"]);
    assert!(
        status == Some(2) && said.contains("hint: --token FILE"),
        "{said}"
    );
    let short = file("short", "secret\n");
    let (status, said) = refused(&["--listen", "127.0.0.1:0", "--token", &short]);
    assert!(status == Some(1) && said.contains("16 letters"), "{said}");
    let (status, said) = refused(&["--listen", "localhost"]);
    assert!(
        status == Some(2) && said.contains("127.0.0.1:6061"),
        "{said}"
    );
    let token = "0123456789abcdef";
    let service = Service::start(&["--token", &file("token", &format!("{token}\nmore"))]);
    let status = |headers: &str| service.status("/debug/pprof/", headers);
    assert_eq!(status(""), 401);
    assert_eq!(status("Authorization: Bearer 0123456789abcdeX\r\n"), 401);
    assert_eq!(status(&format!("Authorization: {token}\r\n")), 401);
    assert_eq!(status(&format!("Authorization: Bearer {token}\r\n")), 200);
}
