//! What was tried for each file that was looked for, so that `-v` tells why one is missing.
//!
//! In: places in the order in which they were tried, and what became of each. Out: a list in [`Diagnostics`] for each kind of
//! file. Without `-v` nothing is noted.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{Place, marker_name};
use crate::diagnostics::Diagnostics;
use crate::input::{Door, InputError};

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// What was mapped.
    Program,
    /// The kernel's image in every process.
    Vdso,
    /// The separate debug file of a program.
    Debug,
    /// What debug files share (dwz).
    SharedDebug,
    /// What a compiler left apart: `.dwo`, `.dwp`.
    SplitDebug,
    /// The kernel's symbols.
    Kernel,
    /// A file of a kernel module.
    Module,
    /// A dump of code that was made at run time.
    Dump,
    /// A perf map.
    PerfMap,
    /// WebAssembly, and what it was compiled to.
    Wasm,
    /// The map of a script or a module.
    SourceMap,
    /// Text that people wrote.
    Source,
}

impl Kind {
    /// What they are called, with what proves that a file is the right one.
    const fn heading(self) -> &'static str {
        match self {
            Self::Program => "programs and libraries (known by build ID, inode or what was mapped)",
            Self::Vdso => "vdso (known by build ID)",
            Self::Debug => "debug files (known by build ID, else by the checksum in the link)",
            Self::SharedDebug => "shared debug files (known by build ID)",
            Self::SplitDebug => "split debug files (known by the id of the unit)",
            Self::Kernel => "kernel symbols (known by build ID, else by release)",
            Self::Module => "kernel modules (known by build ID)",
            Self::Dump => "dumps (known by what is in them)",
            Self::PerfMap => "perf maps (known by what is in them)",
            Self::Wasm => "WebAssembly (known by what is in it)",
            Self::SourceMap => "source maps (known by the script)",
            Self::Source => "sources (known by checksum or place)",
        }
    }
}

/// What became of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is there.
    NotThere,
    /// Something is there that is not used, and why.
    Unfit(Cow<'static, str>),
    /// It is used.
    Taken,
}

impl From<&InputError> for Outcome {
    fn from(error: &InputError) -> Self {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        match error {
            InputError::Io { source, .. } if matches!(source.kind(), NotFound | NotADirectory) => {
                Self::NotThere
            }
            InputError::Io { source, .. } => Self::Unfit(source.to_string().into()),
            InputError::NotRegular { .. } => "not a regular file".into(),
            InputError::Refused { why, .. } => why.text().into(),
        }
    }
}

impl From<&'static str> for Outcome {
    fn from(why: &'static str) -> Self {
        Self::Unfit(why.into())
    }
}

impl From<String> for Outcome {
    fn from(why: String) -> Self {
        Self::Unfit(why.into())
    }
}

/// The search for one file. It is told when it ends.
pub(crate) struct Look<'d> {
    kind: Kind,
    /// What is looked for, as the recording or a file calls it.
    what: String,
    tried: RefCell<Vec<(PathBuf, Outcome)>>,
    /// Nothing if nobody wants to know.
    diag: Option<&'d Diagnostics>,
}

impl<'d> Look<'d> {
    /// Begins to look.
    pub(crate) fn new(diag: &'d Diagnostics, kind: Kind, what: &[u8]) -> Self {
        // Dumps are mapped as programs are, and have a list of their own.
        let is_dump = matches!(kind, Kind::Program | Kind::Debug) && marker_name(what).is_some();
        let diag = Some(diag).filter(|diag| diag.wants_notes() && !is_dump);
        let what = diag.map(|_| String::from_utf8_lossy(what).into_owned());
        Self {
            kind,
            what: what.unwrap_or_default(),
            tried: RefCell::default(),
            diag,
        }
    }

    /// The ways to places, one after the other; a place without one is noted.
    pub(crate) fn doors(
        &self,
        places: impl IntoIterator<Item = Place>,
    ) -> impl Iterator<Item = Door> {
        places.into_iter().filter_map(|place| {
            let path = self.diag.map(|_| place.path().to_owned());
            let door = place.into_door();
            if let (Some(path), None) = (path, &door) {
                self.missed(&path, Outcome::NotThere);
            }
            door
        })
    }

    /// Notes why what is at a place is not used. What was told first stays.
    pub(crate) fn missed(&self, path: &Path, why: impl Into<Outcome>) {
        self.note(path, || why.into());
    }

    /// Notes that the file at a place is used, whatever was said of it before.
    pub(crate) fn took(&self, path: &Path) {
        self.note(path, || Outcome::Taken);
    }

    fn note(&self, path: &Path, outcome: impl FnOnce() -> Outcome) {
        /// Of one file.
        const MOST: usize = 256;
        if self.diag.is_none() {
            return;
        }
        let mut tried = self.tried.borrow_mut();
        let outcome = outcome();
        let is_full = tried.len() == MOST;
        let same = tried.iter_mut().find(|(known, _)| known == path);
        match same {
            Some((_, known)) if outcome == Outcome::Taken => *known = outcome,
            Some(_) => {}
            None if !is_full => tried.push((path.to_owned(), outcome)),
            None if outcome == Outcome::Taken => tried[MOST - 1] = (path.to_owned(), outcome),
            None => {}
        }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        if let Some(diag) = self.diag {
            let tried = std::mem::take(&mut *self.tried.borrow_mut());
            let is_found = tried.iter().any(|(_, outcome)| *outcome == Outcome::Taken);
            let line = told(&self.what, is_found, &tried);
            diag.list(self.kind.heading(), is_found, line);
        }
    }
}

/// The places that were tried for a file, in a line: all that tells why it was not found, or where it was.
fn told(what: &str, is_found: bool, tried: &[(PathBuf, Outcome)]) -> String {
    /// A debug file has ten places, and as many in a folder that stands for `/`.
    const MOST: usize = 20;
    let mut text = format!("{}: ", short(what));
    if tried.is_empty() {
        return text + "nothing tells where it may be";
    }
    let is_told = |outcome: &Outcome| !is_found || *outcome != Outcome::NotThere;
    // What was taken may be the last of very many.
    let (taken, others): (Vec<_>, Vec<_>) = tried
        .iter()
        .filter(|(_, outcome)| is_told(outcome))
        .partition(|(_, outcome)| *outcome == Outcome::Taken);
    let shown = others.iter().take(MOST).chain(taken.iter().take(MOST));
    let (mut last, mut count) = (None, 0);
    for (path, outcome) in shown {
        if last == Some(outcome) {
            text.push_str(", ");
        } else {
            let separator = if last.is_none() { "" } else { "; " };
            let outcome = match outcome {
                Outcome::NotThere => "not there",
                Outcome::Unfit(why) => why,
                Outcome::Taken => "taken",
            };
            let _ = write!(text, "{separator}{outcome}: ");
        }
        text.push_str(&short(&path.to_string_lossy()));
        last = Some(outcome);
        count += 1;
    }
    match tried.len() - count {
        0 => {}
        1 => text.push_str("; 1 other place was tried"),
        more => drop(write!(text, "; {more} other places were tried")),
    }
    text
}

/// The end of a long text, which tells more than its beginning.
fn short(text: &str) -> Cow<'_, str> {
    const MOST: usize = 160;
    let from = text.len().saturating_sub(MOST);
    match text.char_indices().find(|(at, _)| *at >= from) {
        Some((at, _)) if at > 0 => format!("…{}", &text[at..]).into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Level;

    fn lines(look: impl FnOnce(&Diagnostics)) -> Vec<String> {
        let diag = Diagnostics::new();
        look(&diag);
        let lines = diag.take().into_iter();
        lines
            .inspect(|(level, _)| assert_eq!(*level, Level::Note))
            .map(|(_, line)| line)
            .collect()
    }

    #[test]
    fn places_are_told_in_order_with_what_became_of_them() {
        let at = Path::new;
        let all = lines(|diag| {
            let look = Look::new(diag, Kind::Debug, b"/bin/app");
            for gone in ["/a", "/b"] {
                look.missed(at(gone), Outcome::NotThere);
            }
            look.missed(at("/c"), "another build");
            look.missed(at("/c"), "told later");
            drop(look);
            let look = Look::new(diag, Kind::Debug, b"/bin/found");
            look.missed(at("/d"), "by its path alone");
            look.missed(at("/c"), "another build");
            look.missed(at("/e"), Outcome::NotThere);
            look.took(at("/d"));
            drop(look);
            drop(Look::new(diag, Kind::Debug, b"/bin/none"));
        });
        let expected = [
            "  /bin/app: not there: /a, /b; another build: /c",
            "  /bin/none: nothing tells where it may be",
            "  /bin/found: another build: /c; taken: /d; 1 other place was tried",
        ];
        assert!(all[0].ends_with(": 1 found, 2 not found"), "{}", all[0]);
        assert_eq!(all[1..], expected);
    }

    /// A recording may name very many files, by very long names, and each may have very many places.
    #[test]
    fn what_is_told_is_bounded() {
        let long = "x".repeat(4000);
        let all = lines(|diag| {
            for number in 0..10_000 {
                let name = format!("/{long}/{number}");
                let look = Look::new(diag, Kind::Program, name.as_bytes());
                look.missed(Path::new(&name), Outcome::NotThere);
            }
            let look = Look::new(diag, Kind::Source, b"a.c");
            for number in 0..1000 {
                look.missed(Path::new(&format!("/{number}/a.c")), Outcome::NotThere);
            }
            look.took(Path::new("/last/a.c"));
        });
        assert!(all.len() < 20 && all.iter().all(|line| line.len() < 4000));
        let more = all
            .iter()
            .filter(|line| line.contains("more than 4096 not found"));
        assert_eq!(more.count(), 1);
        let source = all.last().expect("lines");
        assert_eq!(
            source,
            "  a.c: taken: /last/a.c; 255 other places were tried"
        );
    }

    #[test]
    fn nothing_is_noted_for_who_wants_no_notes() {
        let diag = Diagnostics::brief();
        let look = Look::new(&diag, Kind::Program, b"/bin/app");
        look.took(Path::new("/bin/app"));
        assert!(look.tried.borrow().is_empty());
        drop(look);
        diag.note("a note");
        diag.warn("a warning");
        assert_eq!(diag.take().len(), 1);
        // A dump has a list of its own.
        let all = lines(|diag| drop(Look::new(diag, Kind::Program, b"/tmp/jit-7.dump")));
        assert!(all.is_empty(), "{all:?}");
    }

    #[test]
    fn the_gates_reasons_are_told() {
        let outcome = |error: &InputError| Outcome::from(error);
        let path = PathBuf::from("/x");
        let refused = InputError::Refused {
            path: path.clone(),
            why: crate::input::Refusal::Outside,
        };
        assert!(matches!(outcome(&refused), Outcome::Unfit(why) if why.contains("a link")));
        let no_file = InputError::NotRegular { path: path.clone() };
        assert_eq!(outcome(&no_file), "not a regular file".into());
        for kind in [
            std::io::ErrorKind::NotFound,
            std::io::ErrorKind::NotADirectory,
        ] {
            let gone = InputError::io(&path, kind.into());
            assert_eq!(outcome(&gone), Outcome::NotThere);
        }
    }
}
