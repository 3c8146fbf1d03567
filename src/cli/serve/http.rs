//! As much of HTTP as is needed to be asked for a profile: one request of a connection, with limits, and one answer.
//!
//! In: bytes of whoever connects. Out: a [`Request`], or the answer that refuses it. The smallest libraries for it let a request be as
//! large and as slow as it likes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes of a request.
const MOST_BYTES: usize = 8 << 10;
/// The time in which it has to arrive, and in which an answer has to be taken.
pub(super) const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

/// What was asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The path, as it was written.
    pub(super) path: String,
    /// What stands behind the `?`.
    pub(super) query: String,
    headers: Vec<(String, String)>,
}

/// What is said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// A profile.
    pub(super) const fn profile(body: Vec<u8>) -> Self {
        Self { status: 200, body }
    }

    /// A text; of one with another status than 200 go's client prints it.
    pub(super) fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            body: format!("{text}\n").into_bytes(),
        }
    }

    /// Writes it. `is_text`: for people.
    fn head(&self, is_text: bool) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let kind = if is_text {
            "text/plain; charset=utf-8"
        } else {
            "application/octet-stream"
        };
        // Without it go's client shows the status alone.
        let shown = if self.status == 200 {
            ""
        } else {
            "X-Go-Pprof: 1\r\n"
        };
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{shown}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status,
            self.body.len()
        )
    }

    /// Sends it, to whoever is still there.
    pub(super) fn send(&self, stream: &mut TcpStream) -> io::Result<()> {
        let is_text = self.status != 200 || !self.body.starts_with(&[0x1f, 0x8b]);
        stream.set_write_timeout(Some(ARRIVES_WITHIN))?;
        stream.write_all(self.head(is_text).as_bytes())?;
        stream.write_all(&self.body)?;
        stream.flush()
    }
}

/// Whether a client has hung up. Go's servers, too, hold one for gone who sends nothing more.
pub(super) fn is_gone(stream: &TcpStream) -> bool {
    let mut watched = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&now)).is_ok_and(|count| count > 0)
}

impl Request {
    /// Reads one; the answer says why there is none.
    pub(super) fn read(stream: &mut TcpStream) -> Result<Self, Answer> {
        let end = Instant::now() + ARRIVES_WITHIN;
        let mut bytes = Vec::new();
        let mut piece = [0; 1024];
        loop {
            if let Some(at) = end_of_head(&bytes) {
                return Self::parse(&bytes[..at]);
            }
            if bytes.len() >= MOST_BYTES {
                return Err(Answer::text(431, "the request is too long"));
            }
            let left = end.saturating_duration_since(Instant::now());
            let late = || Answer::text(408, "the request took too long");
            if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
                return Err(late());
            }
            match stream.read(&mut piece) {
                Ok(0) => return Err(Answer::text(400, "the request is cut")),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(late()),
            }
        }
    }

    fn parse(head: &[u8]) -> Result<Self, Answer> {
        let wrong = || Answer::text(400, "this is no request of HTTP");
        let text = std::str::from_utf8(head).map_err(|_| wrong())?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let words: Vec<&str> = first.split(' ').collect();
        let [method, target, version] = words[..] else {
            return Err(wrong());
        };
        if !version.starts_with("HTTP/1.") {
            return Err(wrong());
        }
        if method != "GET" {
            return Err(Answer::text(405, "only GET is answered"));
        }
        let mut headers = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').ok_or_else(wrong)?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Self {
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
        })
    }

    /// A header, if it is there once.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }

    /// Whether a header is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known == name)
    }

    /// The value of a part of the query; nothing if it is there twice.
    pub(super) fn part(&self, name: &str) -> Option<&str> {
        let parts = self.query.split('&').filter(|part| !part.is_empty());
        let parts = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
        let mut found = parts.filter(|(known, _)| *known == name);
        let (_, value) = found.next()?;
        Some(if found.next().is_none() { value } else { "" })
    }
}

/// Where the lines of a request end.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Request, u16> {
        Request::parse(text.as_bytes()).map_err(|answer| answer.status)
    }

    #[test]
    fn requests_are_taken_apart() {
        let text = "GET /debug/pprof/profile?seconds=5&x HTTP/1.1\r\nHOST: a:1\r\nOrigin:b";
        let request = parsed(text).expect("a request");
        assert_eq!(request.path, "/debug/pprof/profile");
        assert_eq!(
            (request.part("seconds"), request.part("x")),
            (Some("5"), Some(""))
        );
        assert_eq!(
            (request.part("y"), request.header("host")),
            (None, Some("a:1"))
        );
        assert!(request.has("origin") && !request.has("cookie"));
        let twice = parsed("GET /?a=1&a=2 HTTP/1.0\r\nHost: a\r\nHost: b").expect("a request");
        assert_eq!((twice.part("a"), twice.header("host")), (Some(""), None));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, status) in [
            ("", 400),
            ("GET /", 400),
            ("GET / HTTP/2", 400),
            ("GET  / HTTP/1.1", 400),
            ("POST / HTTP/1.1", 405),
            ("GET / HTTP/1.1\r\nno header", 400),
        ] {
            assert_eq!(parsed(text), Err(status), "{text:?}");
        }
        assert_eq!(
            Request::parse(b"GET /\xff HTTP/1.1").map_err(|a| a.status),
            Err(400)
        );
    }

    #[test]
    fn errors_are_shown_by_gos_client() {
        let head = Answer::text(404, "no").head(true);
        assert!(head.contains("X-Go-Pprof: 1\r\n") && head.contains("Content-Length: 3\r\n"));
        assert!(
            !Answer::profile(Vec::new())
                .head(false)
                .contains("X-Go-Pprof")
        );
    }
}
