//! Folded stacks as call paths: what other programs made of a recording, to be compared with one.

use rustc_hash::FxHashMap;

use crate::ids::{IndexVec, index_vec};
use crate::intern::Sequences;
use crate::profile::EventId;

use super::build::{Paths, Tag};
use super::{Function, FunctionId, Kind, Series, SeriesId, shown};

/// Why a file is not one of folded stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldedError {
    /// A line without a weight at its end.
    #[error("line {0} has no weight at its end: not a file of folded stacks")]
    NoWeight(usize),
    /// Nothing to read.
    #[error("no stack in it")]
    Empty,
}

/// Reads lines like `comm;main;f 12`.
///
/// # Errors
/// When a line is not of that form, or there is none.
pub fn read(bytes: &[u8]) -> Result<Paths, FoldedError> {
    let mut names: FxHashMap<(Vec<u8>, bool), FunctionId> = FxHashMap::default();
    let mut paths = Paths {
        moments: Vec::new(),
        functions: IndexVec::new(),
        objects: IndexVec::new(),
        series: index_vec![Series {
            event: EventId::default(),
            thread: None,
            run: 0,
        }],
        all: Sequences::default(),
        identities: IndexVec::new(),
        natures: None,
    };
    let mut path = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"# ") {
            continue;
        }
        let (stack, weight) = split(line).ok_or(FoldedError::NoWeight(at + 1))?;
        path.clear();
        for (depth, name) in stack.split(|byte| *byte == b';').enumerate() {
            let key = (name.to_vec(), depth == 0);
            let known = names.entry(key);
            let new = || paths.functions.push(function(name, depth == 0));
            path.push(*known.or_insert_with(new));
        }
        let tag = Tag {
            series: SeriesId(0),
            period: weight,
            samples: 0,
        };
        paths.all.push(&path, tag);
    }
    if paths.all.is_empty() {
        return Err(FoldedError::Empty);
    }
    Ok(paths)
}

/// The stack and its weight; what is behind a point is left out, as inferno does.
fn split(line: &[u8]) -> Option<(&[u8], u64)> {
    let at = line.iter().rposition(|byte| *byte == b' ')?;
    let weight = std::str::from_utf8(&line[at + 1..]).ok()?;
    let whole = weight.split_once('.').map_or(weight, |(whole, _)| whole);
    Some((line[..at].trim_ascii_end(), whole.parse().ok()?))
}

fn function(bytes: &[u8], is_first: bool) -> Function {
    let text = String::from_utf8_lossy(bytes);
    let (name, kind) = match &*text {
        text if is_first => (text, Kind::Comm),
        text => [
            ("_[k]", Kind::Kernel),
            ("_[j]", Kind::Jit),
            ("_[i]", Kind::Inlined),
        ]
        .into_iter()
        .find_map(|(mark, kind)| Some((text.strip_suffix(mark)?, kind)))
        .unwrap_or((text, Kind::User)),
    };
    Function {
        name: shown(name).into_owned(),
        object: None,
        kind,
        symbol: None,
        raw: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_paths_with_weights() {
        let paths = read(b"x;main;f 12\n\n# a comment\nx;main;g_[k] 3.9\n").expect("folded");
        assert_eq!(paths.all.len(), 2);
        let names: Vec<_> = paths.functions.iter().map(|f| (&*f.name, f.kind)).collect();
        let expected = [
            ("x", Kind::Comm),
            ("main", Kind::User),
            ("f", Kind::User),
            ("g", Kind::Kernel),
        ];
        assert_eq!(names, expected);
        let last = paths.all.ids().last().expect("two");
        assert_eq!(paths.all.tag(last).period, 3);
    }

    #[test]
    fn other_files_are_told_with_the_line() {
        assert_eq!(
            read(b"a;b 1\nPERFILE2").err(),
            Some(FoldedError::NoWeight(2))
        );
        assert_eq!(read(b"\n").err(), Some(FoldedError::Empty));
        assert_eq!(read(b"a -3").err(), Some(FoldedError::NoWeight(1)));
    }
}
