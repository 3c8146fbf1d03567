//! Where the text of sources may be.

use std::path::{Path, PathBuf};

use super::{Place, debuginfod};
use crate::build_id::BuildId;
use crate::input::source::is_hidden;
use crate::input::{Door, FoundBy};

/// The most parts of a path that are looked for below a folder.
const MOST_PARTS: usize = 64;

/// Where sources are looked for.
#[derive(Debug, Clone, Default)]
pub struct SourcePaths {
    /// Folders that the user named, below which recorded paths, and the ends of them, are looked for.
    pub roots: Vec<PathBuf>,
    /// The recording's own folder, which goes behind them. It may be somebody's home, with everything in it.
    pub beside: Option<PathBuf>,
    /// What is put before recorded paths.
    pub prefix: Option<PathBuf>,
    /// How many folders are taken from the beginning of recorded paths before that.
    pub strip: usize,
    /// What stands for `/` where everything came with the recording; goes before all others.
    pub symfs: Option<PathBuf>,
    /// When the recording was made, to tell sources that changed since.
    pub recorded: Option<std::time::SystemTime>,
    /// The cache of debuginfod's client.
    pub debuginfod: Option<PathBuf>,
}

impl SourcePaths {
    /// Whether a name of a source can be that of a file: `https://…` and `webpack://…` can not, nor what is longer than paths are.
    pub(crate) fn can_be_path(name: &[u8]) -> bool {
        const MOST_NAME: usize = 4096;
        name.len() <= MOST_NAME && memchr::memmem::find(name, b"://").is_none()
    }

    /// Where a source may be, best first; `build` is that of which debug information names it.
    pub(crate) fn candidates<'p>(
        &'p self,
        name: &'p Path,
        build: Option<BuildId>,
    ) -> impl Iterator<Item = (Place, FoundBy)> + 'p {
        let relative = name.strip_prefix("/").unwrap_or(name);
        let stripped = move || relative.iter().skip(self.strip).collect::<PathBuf>();
        let bundled = self.symfs.as_ref();
        let bundled = bundled.map(|root| (Place::in_root(root, name), FoundBy::Folder));
        let prefixed = match &self.prefix {
            Some(prefix) => Some((Door::beneath(prefix, stripped()).into(), FoundBy::Folder)),
            None if self.strip > 0 => {
                let path = Path::new("/").join(stripped());
                Some((Door::recorded(path).into(), FoundBy::Path))
            }
            None => None,
        };
        let recorded = name.is_absolute().then(|| Door::recorded(name).into());
        let recorded = recorded.map(|place| (place, FoundBy::Path));
        // A source tree that moved: the longest end of the path that is below the folder.
        let parts: Vec<_> = relative.iter().collect();
        let plain = parts.iter().rev().take_while(|part| **part != "..").count();
        let first = parts.len() - plain.min(MOST_PARTS);
        let named = self.roots.iter().map(|root| (root, FoundBy::Folder));
        let folders = named.chain(self.beside.iter().map(|folder| (folder, FoundBy::Beside)));
        let ends = folders.flat_map(move |(folder, found)| {
            let parts = parts.clone();
            let ends =
                (first..parts.len()).map(move |from| parts[from..].iter().collect::<PathBuf>());
            // What is hidden in a folder that nobody named is nobody's business.
            let is_shown = move |end: &PathBuf| found == FoundBy::Folder || !is_hidden(end);
            ends.filter(is_shown)
                .map(move |end| (Door::beneath(folder, end).into(), found))
        });
        let given = bundled.into_iter().chain(prefixed);
        let fetched = self.debuginfod.as_deref().zip(build);
        let fetched = fetched.into_iter().flat_map(move |(cache, id)| {
            let names = name.to_str().and_then(debuginfod::of_source);
            let names = names.into_iter().flatten();
            names.map(move |source| debuginfod::of_build(cache, &id, &source))
        });
        let fetched = fetched.map(|place| (place, FoundBy::Build));
        given.chain(recorded).chain(ends).chain(fetched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_ends_of_a_long_name_are_looked_for() {
        let paths = SourcePaths {
            roots: vec![PathBuf::from("/nowhere")],
            ..SourcePaths::default()
        };
        let name = PathBuf::from("/a".repeat(1000));
        assert_eq!(paths.candidates(&name, None).count(), 1 + MOST_PARTS);
        let up = Path::new("/a/b/../c/d");
        let ends: Vec<_> = paths.candidates(up, None).map(|(place, _)| place).collect();
        assert_eq!(ends.len(), 3);
        assert_eq!(ends[1].path(), Path::new("/nowhere/c/d"));
    }
}
