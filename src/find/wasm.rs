//! Where files of WebAssembly and what they were compiled to may be.

use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashSet;

use super::Place;
use crate::input::{Door, files_in};

/// What the user named.
#[derive(Debug, Clone, Default)]
pub struct WasmSearch {
    /// `--cwasm FILE_OR_DIR`
    pub cwasm: Vec<PathBuf>,
    /// `--wasm FILE_OR_DIR`
    pub wasm: Vec<PathBuf>,
}

/// The two kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WasmKind {
    /// Modules.
    Module,
    /// What they were compiled to.
    Compiled,
}

impl WasmKind {
    /// How their names end.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Module => "wasm",
            Self::Compiled => "cwasm",
        }
    }

    /// Whether a file in a folder is taken for one, by its name.
    #[must_use]
    pub(crate) fn has(self, name: &[u8]) -> bool {
        let name = name.strip_suffix(self.extension().as_bytes());
        name.is_some_and(|name| name.ends_with(b"."))
    }
}

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub struct WasmPlaces<'s> {
    /// What the user named.
    pub named: &'s WasmSearch,
    /// The folder of the recording.
    pub folder: &'s Path,
    /// Folders that stand for `/`.
    pub roots: &'s [PathBuf],
    /// What was recorded, word by word.
    pub command: &'s [String],
}

impl WasmPlaces<'_> {
    /// Files of a kind, each path once: those that the user named, those beside the recording, and those that its command line
    /// names. The flag tells the first.
    pub(crate) fn all(&self, kind: WasmKind) -> Vec<(Place, bool)> {
        let named = match kind {
            WasmKind::Module => &self.named.wasm,
            WasmKind::Compiled => &self.named.cwasm,
        };
        let named = named.iter().flat_map(|path| {
            let inside = with_extension(path, kind);
            if inside.is_empty() {
                vec![Door::named(path).into()]
            } else {
                inside
            }
        });
        let named = named.map(|place| (place, true));
        let others = self.beside(kind).into_iter().map(|place| (place, false));
        let mut known = FxHashSet::default();
        let all = named.chain(others);
        // A path without parts that lead nowhere.
        all.filter(|(place, _)| known.insert(place.path().components().collect::<PathBuf>()))
            .collect()
    }

    /// Files beside the recording, and those that its command line names.
    fn beside(&self, kind: WasmKind) -> Vec<Place> {
        let mut places = with_extension(self.folder, kind);
        for word in self.command {
            // `--flag=module.wasm`
            let word = word
                .rsplit_once('=')
                .map_or(word.as_str(), |(_, value)| value);
            let path = Path::new(word);
            let is_module = ["wasm", "cwasm", "wat"].map(|known| has_extension(path, known));
            if !is_module.contains(&true) {
                continue;
            }
            let path = path.with_extension(kind.extension());
            if path.is_absolute() {
                let roots = self.roots.iter();
                places.extend(roots.map(|root| Place::in_root(root, &path)));
                continue;
            }
            if path.components().all(|part| part != Component::ParentDir) {
                places.push(Door::beneath(self.folder, &path).into());
            }
            places.push(Door::recorded(path).into());
        }
        places
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The files of a folder with an extension, by name.
fn with_extension(folder: &Path, kind: WasmKind) -> Vec<Place> {
    let files = files_in(folder).into_iter();
    let files = files.filter(|path| has_extension(path, kind.extension()));
    files
        .filter_map(|path| Some(Door::beneath(folder, path.file_name()?).into()))
        .collect()
}
