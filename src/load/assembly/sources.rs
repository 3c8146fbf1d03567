//! The text of sources.
//!
//! In: paths that debug information names. Out: their lines, for the files that are found where [`crate::find`] says; the text in a
//! source map that led to them goes before all files. A name may be that of any file of this machine, so only what is proven to be a source is shown
//! ([`crate::input::SourceClaim`]). Each file is read once, by whatever names.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Assembly, Request, Row, TextId};
use crate::diagnostics::Diagnostics;
use crate::find::{Kind, Look, SourcePaths};
use crate::ids::{IndexVec, index_vec, numbers};
use crate::input::{FoundBy, Identity, Judged, Kept, SourceClaim, note_opened};
use crate::runtimes::names::script_path;
use crate::symbolize::{Answers, Ran, SourceMaps};

/// The lines of a file.
#[derive(Debug, Clone, Default)]
pub struct Source(Arc<Lines>);

#[derive(Debug, Default)]
struct Lines {
    text: String,
    /// Where lines begin.
    starts: IndexVec<LinePlace, usize>,
}

numbers! {
    /// A line of a file, from 0.
    struct LinePlace(u32);
}

/// Bytes of the longest file that is read, and of all together.
const MOST: u64 = 64 << 20;
const MOST_OF_ALL: u64 = 256 << 20;

impl Source {
    fn new(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(behind).collect();
        Self(Arc::new(Lines { text, starts }))
    }

    /// The lines of a text.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self::new(text.as_bytes())
    }

    /// A line by its number from 1, without its end.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&str> {
        let Lines { text, starts } = &*self.0;
        let start = *starts.get(LinePlace(number.checked_sub(1)?))?;
        let end = starts
            .get(LinePlace(number))
            .map_or(text.len(), |next| next - 1);
        let line = text.get(start..end)?;
        (start < text.len()).then(|| line.trim_end_matches('\r'))
    }
}

/// Reads the files that places of the listings name.
pub(super) fn read(
    request: &Request,
    claims: &FxHashMap<String, SourceClaim>,
    maps: &SourceMaps<'_>,
    diag: &Diagnostics,
    assembly: &mut Assembly,
) {
    let mut is_wanted: IndexVec<TextId, bool> = index_vec![false; assembly.texts.len()];
    let rows = assembly
        .listings
        .iter()
        .flatten()
        .flat_map(|listing| &listing.rows);
    for row in rows {
        if let Row::Code(code) = row
            && let Some(file) = code.place.and_then(|place| place.file)
        {
            is_wanted[file] = true;
        }
    }
    let mut reader = Reader::new(&request.paths, (claims, maps), diag);
    for file in is_wanted.indices().filter(|file| is_wanted[*file]) {
        let name = &assembly.texts[file];
        match reader.text(name) {
            Some((source, Some(found))) => {
                assembly.found.push((name.clone(), found));
                if request.keeps_sources {
                    assembly.sources.push((file, source));
                }
            }
            Some((source, None)) => assembly.sources.push((file, source)),
            None => assembly.not_found.push(name.clone()),
        }
    }
    assembly.warnings.extend(reader.warnings());
}

/// Texts of sources by the names that recordings have for them.
#[derive(Debug, Default)]
pub struct Sources {
    /// Those that were found.
    pub texts: FxHashMap<String, Source>,
    /// Those that were not, and what is recorded of them.
    pub missing: Vec<(String, SourceClaim)>,
    /// Names that led to files only that are not what ran.
    pub others: FxHashSet<String>,
    /// What to say about them.
    pub warnings: Vec<String>,
}

impl Sources {
    /// Finds the sources of these names, each once.
    pub(crate) fn find(
        names: Vec<String>,
        paths: &SourcePaths,
        answers: Answers<'_>,
        diag: &Diagnostics,
    ) -> Self {
        let of_names = (&answers.resolution.claims, answers.maps);
        let mut reader = Reader::new(paths, of_names, diag);
        let (mut texts, mut missing) = (FxHashMap::default(), Vec::new());
        for name in names {
            match reader.text(&name) {
                Some((source, _)) => drop(texts.insert(name, source)),
                None => {
                    let claim = reader.claims.get(&name).cloned();
                    missing.push((name, claim.unwrap_or_default()));
                }
            }
        }
        Self {
            texts,
            missing,
            warnings: reader.warnings().collect(),
            others: reader.others,
        }
    }
}

/// A source that was found.
#[derive(Clone)]
struct Found {
    file: Kept,
    source: Source,
}

/// Finds and reads sources, each once.
struct Reader<'p> {
    paths: &'p SourcePaths,
    /// What is recorded of sources, by their names.
    claims: &'p FxHashMap<String, SourceClaim>,
    maps: &'p SourceMaps<'p>,
    diag: &'p Diagnostics,
    /// What was read, whether it may be shown or not; nothing for what is too large.
    known: FxHashMap<Identity, Option<Source>>,
    /// Bytes that were read.
    sum: u64,
    /// Files that are not what was compiled, or may not be, and why.
    changed: Vec<(PathBuf, &'static str)>,
    /// Names that led to files that are not proven to be sources.
    refused: Vec<String>,
    /// Names that led to files that are not what ran.
    others: FxHashSet<String>,
}

impl<'p> Reader<'p> {
    fn new(
        paths: &'p SourcePaths,
        (claims, maps): (&'p FxHashMap<String, SourceClaim>, &'p SourceMaps<'p>),
        diag: &'p Diagnostics,
    ) -> Self {
        Self {
            paths,
            claims,
            maps,
            diag,
            known: FxHashMap::default(),
            sum: 0,
            changed: Vec::new(),
            refused: Vec::new(),
            others: FxHashSet::default(),
        }
    }

    /// The text of the source of a name, and the file that it is in; none where a source map has it.
    fn text(&mut self, name: &str) -> Option<(Source, Option<Kept>)> {
        if let Some(text) = self.maps.content(name) {
            return Some((Source::new(text.as_bytes()), None));
        }
        let unclaimed = SourceClaim::default();
        let claim = self.claims.get(name).unwrap_or(&unclaimed);
        let path = script_path(name);
        let found = self.find((name, Path::new(&*path)), claim)?;
        Some((found.source, Some(found.file)))
    }

    /// What to say about what was found.
    fn warnings(&self) -> impl Iterator<Item = String> {
        self.changed().chain(self.refused())
    }

    /// The first file of this name that is a source.
    fn find(&mut self, (recorded, name): (&str, &Path), claim: &SourceClaim) -> Option<Found> {
        let text = name.as_os_str().as_encoded_bytes();
        if !SourcePaths::can_be_path(text) {
            return None;
        }
        let mut is_refused = false;
        let look = Look::new(self.diag, Kind::Source, text);
        for (place, found_by) in self.paths.candidates(name, claim.build) {
            let Some(door) = look.doors([place]).next() else {
                continue;
            };
            let judged = match door.open() {
                Ok(judged) => {
                    note_opened(door.path(), judged.meta());
                    judged
                }
                Err(error) => {
                    look.missed(door.path(), &error);
                    continue;
                }
            };
            let source = self.read(&judged);
            let is_proven =
                |code: &Source| judged.is_source(code.0.text.as_bytes(), found_by, claim);
            let Some(source) = source.filter(is_proven) else {
                look.missed(door.path(), "not proven to be source code");
                is_refused = true;
                continue;
            };
            let ran = self.maps.judge(recorded, &judged, source.0.text.as_bytes());
            if ran == Ran::No || self.maps.is_original_since(recorded, &judged, found_by) {
                look.missed(door.path(), "not proven to be what ran");
                self.others.insert(recorded.to_owned());
                continue;
            }
            look.took(door.path());
            if ran == Ran::Unknown {
                self.note_change(&judged, &source, claim, found_by);
            }
            return Some(Found {
                file: Kept::of(&judged, false),
                source,
            });
        }
        if is_refused {
            self.refused.push(name.display().to_string());
        }
        None
    }

    fn read(&mut self, judged: &Judged) -> Option<Source> {
        if let Some(known) = self.known.get(&judged.identity()) {
            return known.clone();
        }
        let left = MOST_OF_ALL.saturating_sub(self.sum).min(MOST);
        let mut bytes = Vec::new();
        let part = judged.file().take(left + 1).read_to_end(&mut bytes);
        let is_whole = part.is_ok_and(|len| len as u64 <= left);
        self.sum += bytes.len() as u64;
        // Three bytes for each that is no text.
        let is_text = !bytes.contains(&0);
        let source = (is_whole && is_text).then(|| Source::new(&bytes));
        self.known.insert(judged.identity(), source.clone());
        source
    }

    fn note_change(
        &mut self,
        judged: &Judged,
        source: &Source,
        claim: &SourceClaim,
        found_by: FoundBy,
    ) {
        let text = source.0.text.as_bytes();
        let modified = judged.meta().modified().ok();
        let is_since = |when: Option<SystemTime>| modified.zip(when).is_some_and(|(a, b)| a > b);
        let why = if claim.is_refuted_by(text) {
            "not the text that was compiled, by its checksum"
        } else if is_since(self.paths.recorded) {
            "changed after the recording was made"
        } else if found_by == FoundBy::Path && !claim.is_proven_by(text) && is_since(claim.built) {
            "changed after the program was built"
        } else {
            return;
        };
        let path = judged.door().path();
        if !self.changed.iter().any(|(known, _)| known == path) {
            self.changed.push((path.to_owned(), why));
        }
    }

    fn changed(&self) -> impl Iterator<Item = String> {
        self.changed.iter().map(|(path, why)| {
            let path = path.display();
            format!("{path}: {why}; its lines may not be those that ran")
        })
    }

    /// What was there and is not shown, named once.
    fn refused(&self) -> Option<String> {
        let first = self.refused.first()?;
        let files = match self.refused.len() {
            1 => first.clone(),
            count => format!("{first} and {} more files", count - 1),
        };
        Some(format!(
            "{files}: named as source code, but not proven to be (checksum, place, owner, kind of file); not shown and not \
             packed. If it is, name its folder with --source-root DIR"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let source = Source::new(b"a\r\n\nlast");
        let lines: Vec<_> = (0..5).map(|number| source.line(number)).collect();
        assert_eq!(lines, [None, Some("a"), Some(""), Some("last"), None]);
        assert_eq!(Source::new(b"a\n").line(2), None);
    }

    #[test]
    fn sources_that_moved_are_found_by_the_end_of_their_path() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("src")).expect("made");
        std::fs::write(folder.path().join("src/a.c"), "one\n").expect("written");
        let paths = SourcePaths {
            roots: vec![folder.path().to_owned()],
            ..SourcePaths::default()
        };
        let found = find(&paths, "/build/of/somebody/src/a.c");
        assert_eq!(found.expect("it is there").line(1), Some("one"));
        assert!(find(&paths, "/build/src/b.c").is_none());
        let prefixed = SourcePaths {
            prefix: Some(folder.path().to_owned()),
            strip: 2,
            ..SourcePaths::default()
        };
        assert!(find(&prefixed, "/build/of/src/a.c").is_some());
    }

    fn find(paths: &SourcePaths, name: &str) -> Option<Source> {
        let (diag, nothing) = (Diagnostics::new(), FxHashMap::default());
        let maps = SourceMaps::default();
        let mut reader = Reader::new(paths, (&nothing, &maps), &diag);
        reader.text(name).map(|(source, _)| source)
    }

    #[test]
    #[cfg(unix)]
    fn a_file_of_many_names_is_read_once() {
        let folder = tempfile::Builder::new().prefix("pjit").tempdir();
        let folder = folder.expect("a folder");
        let path = folder.path().join("a.c");
        std::fs::write(&path, "one\n").expect("written");
        let (paths, maps) = (SourcePaths::default(), SourceMaps::default());
        let (diag, nothing) = (Diagnostics::new(), FxHashMap::default());
        let mut reader = Reader::new(&paths, (&nothing, &maps), &diag);
        let names = [0, 1, 2].map(|up| {
            let around = format!("/{}", "usr/../".repeat(up));
            PathBuf::from(format!("{around}{}", path.display()))
        });
        for name in &names {
            let claim = SourceClaim::default();
            assert!(
                reader.find(("", name), &claim).is_some(),
                "{}",
                name.display()
            );
        }
        assert_eq!((reader.sum, reader.known.len()), (4, 1));
    }

    #[test]
    fn no_path_is_so_long_and_no_url_is_one() {
        let paths = SourcePaths::default();
        assert!(find(&paths, &"/a".repeat(4000)).is_none());
        let url = find(&paths, "file:///etc/passwd");
        assert!(url.is_none());
    }
}
