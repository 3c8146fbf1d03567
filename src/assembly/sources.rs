//! The text of sources.
//!
//! In: paths that debug information names. Out: their lines, for the files that are found: at the recorded path, with
//! `--prefix`, below the folders of `--source-root`, in what came with the recording, and in the source map that led to them. Reads
//! no more than 64 MB of a file.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::{Assembly, Row, SourcePaths, TextId};
use crate::dso::resolve_in;
use crate::ids::{IndexVec, index_vec, numbers};
use crate::input::Store;
use crate::symbolize::SourceMaps;

/// The lines of a file.
#[derive(Debug, Clone, Default)]
pub struct Source {
    text: String,
    /// Where lines begin.
    starts: IndexVec<LinePlace, usize>,
}

numbers! {
    /// A line of a file, from 0.
    struct LinePlace(u32);
}

/// Longest file that is read.
const MOST: u64 = 64 << 20;

impl Source {
    fn new(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(behind).collect();
        Self { text, starts }
    }

    /// A line by its number from 1, without its end.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&str> {
        let start = *self.starts.get(LinePlace(number.checked_sub(1)?))?;
        let end = self
            .starts
            .get(LinePlace(number))
            .map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(start..end)?;
        (start < self.text.len()).then(|| line.trim_end_matches('\r'))
    }
}

/// Reads the files that places of the listings name.
pub(super) fn read(paths: &SourcePaths, maps: &SourceMaps<'_>, assembly: &mut Assembly) {
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
    let mut known: FxHashMap<PathBuf, bool> = FxHashMap::default();
    for file in is_wanted.indices().filter(|file| is_wanted[*file]) {
        let name = &assembly.texts[file];
        let Some((path, source, changed)) = find(paths, Path::new(name)) else {
            match maps.content(name) {
                Some(text) => assembly.sources.push((file, Source::new(text.as_bytes()))),
                None => assembly.not_found.push(name.clone()),
            }
            continue;
        };
        assembly.found.push((name.clone(), path.clone()));
        if changed && known.insert(path.clone(), true).is_none() {
            assembly.warnings.push(format!(
                "{}: changed after the recording was made; its lines may not be those that ran",
                path.display()
            ));
        }
        assembly.sources.push((file, source));
    }
}

/// The first file that is there, its lines, and whether it is newer than the recording.
fn find(paths: &SourcePaths, name: &Path) -> Option<(PathBuf, Source, bool)> {
    candidates(paths, name).into_iter().find_map(|path| {
        let (_, meta) = Store::open(&path).ok()?;
        if meta.len() > MOST {
            return None;
        }
        let store = Store::new();
        let source = Source::new(store.map(&path).ok()?);
        let changed = match (meta.modified(), paths.recorded) {
            (Ok(modified), Some(recorded)) => modified > recorded,
            _ => false,
        };
        Some((path, source, changed))
    })
}

fn candidates(paths: &SourcePaths, name: &Path) -> Vec<PathBuf> {
    let relative = name.strip_prefix("/").unwrap_or(name);
    let stripped: PathBuf = relative.iter().skip(paths.strip).collect();
    let bundled = paths.symfs.as_ref().map(|root| resolve_in(root, name));
    let mut found: Vec<PathBuf> = bundled.into_iter().flatten().collect();
    match &paths.prefix {
        Some(prefix) => found.push(prefix.join(&stripped)),
        None if paths.strip > 0 => found.push(Path::new("/").join(&stripped)),
        None => {}
    }
    if name.is_absolute() {
        found.push(name.to_owned());
    }
    // A source tree that moved: the longest end of the path that is below the folder.
    let parts: Vec<_> = relative.iter().collect();
    for root in &paths.roots {
        for from in 0..parts.len() {
            let end: PathBuf = parts[from..].iter().collect();
            let is_inside = parts[from..].iter().all(|part| *part != "..");
            if is_inside {
                found.push(root.join(end));
            }
        }
    }
    found
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
        let found = find(&paths, Path::new("/build/of/somebody/src/a.c"));
        assert_eq!(found.expect("it is there").1.line(1), Some("one"));
        assert!(find(&paths, Path::new("/build/src/b.c")).is_none());
        let prefixed = SourcePaths {
            prefix: Some(folder.path().to_owned()),
            strip: 2,
            ..SourcePaths::default()
        };
        assert!(find(&prefixed, Path::new("/build/of/src/a.c")).is_some());
    }
}
