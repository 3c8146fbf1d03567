//! Debug files, programs and sources from debuginfod servers, brought by the client of the distribution.
//!
//! In: builds and sources that a recording lacks ([`Wanted`]). Out: files in the client's cache, where all views find them, and
//! an [`Outcome`] for each. The client is the only thing here that opens a connection; it checks nothing of what it gets, so each file
//! is opened again and has to be of that build. Only files of the client's cache are removed, and only those that it left there for us.

mod cache;
#[cfg(target_os = "linux")]
mod client;

use std::collections::BTreeMap;
use std::time::SystemTime;

pub use cache::{Cache, State};
#[cfg(target_os = "linux")]
pub use client::{Client, Failure, Patience};

use crate::build_id::BuildId;
use crate::find::debuginfod::{DEBUG, PROGRAM, of_source};
use crate::input::SourceClaim;

/// A file that a server may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The file of the build, as reports show it.
    pub name: String,
    /// The build.
    pub build: BuildId,
    /// What of it.
    pub what: What,
    /// Samples that would be told more of; nothing for sources.
    pub samples: u64,
}

/// What of a build is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Its debug file.
    Debug,
    /// The program or library itself.
    Program,
    /// A source, by the path that debug information has.
    Source(String, SourceClaim),
}

impl Wanted {
    /// The words behind the client's name.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let id = self.build.to_string();
        match &self.what {
            What::Debug => vec![DEBUG.to_owned(), id],
            What::Program => vec![PROGRAM.to_owned(), id],
            What::Source(path, _) => vec!["source".to_owned(), id, path.clone()],
        }
    }

    /// Names that clients give it in the folder of the build.
    fn names(&self) -> Vec<String> {
        match &self.what {
            What::Debug => vec![DEBUG.to_owned()],
            What::Program => vec![PROGRAM.to_owned()],
            What::Source(path, _) => of_source(path).into_iter().flatten().collect(),
        }
    }

    /// What it is, in a word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.what {
            What::Debug => "debug file",
            What::Program => "program",
            What::Source(..) => "source",
        }
    }
}

/// Whether a server may be asked for a source of this name: an absolute path without `..` and without characters that act.
#[must_use]
pub fn can_be_asked(path: &str) -> bool {
    let is_plain = path.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    path.starts_with('/') && is_plain && path.split('/').all(|part| part != "..")
}

/// What several recordings want, each once, the heaviest first.
#[must_use]
pub fn together(all: impl IntoIterator<Item = Wanted>) -> Vec<Wanted> {
    let mut known: BTreeMap<Vec<String>, Wanted> = BTreeMap::new();
    for one in all {
        let samples = one.samples;
        let sum = known
            .entry(one.words())
            .or_insert(Wanted { samples: 0, ..one });
        sum.samples += samples;
    }
    let mut merged: Vec<Wanted> = known.into_values().collect();
    merged.sort_by_key(|one| std::cmp::Reverse(one.samples));
    merged
}

/// What became of a file that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is there, so many bytes long.
    Fetched(u64),
    /// What came is no file of that build, and was removed.
    Other,
    /// No server has it, or one failed; the client remembers that in this file until then.
    Missed(State),
    /// It is larger than may be fetched yet.
    TooLarge,
    /// It came too slowly.
    TooSlow,
    /// pjit has ended the client.
    Ended,
    /// No server answers, in the client's words.
    Unreachable(String),
    /// Something else, in the client's words.
    Failed(String),
}

/// A moment of the clock on the wall, by hour and minute.
#[must_use]
pub fn hour(at: SystemTime) -> String {
    let seconds = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(seconds.as_secs()).ok();
    let date = seconds.and_then(crate::input::local_time);
    date.map_or_else(String::new, |date| {
        format!("{:02}:{:02}", date.hour(), date.minute())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_asked_for() {
        for good in ["/usr/src/x.c", "/a b/c..d.c"] {
            assert!(can_be_asked(good), "{good}");
        }
        for bad in [
            "src/x.c",
            "/usr/../etc/shadow",
            "/x\n.c",
            "/größe.c",
            "",
            "-x",
            "/..",
        ] {
            assert!(!can_be_asked(bad), "{bad}");
        }
    }

    #[test]
    fn what_several_recordings_want_is_wanted_once() {
        let wanted = |id: u8, samples| Wanted {
            name: "x".to_owned(),
            build: BuildId::new(&[id; 20]).expect("not zero"),
            what: What::Debug,
            samples,
        };
        let all = together([wanted(1, 5), wanted(2, 7), wanted(1, 4)]);
        let samples: Vec<u64> = all.iter().map(|one| one.samples).collect();
        assert_eq!(samples, [9, 7]);
    }
}
