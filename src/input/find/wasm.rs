//! Where files of WebAssembly and what they were compiled to may be.

use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashSet;

use super::{Place, SearchPaths};
use crate::input::{Door, files_in};

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

impl SearchPaths {
    /// Files of a kind, each path once: those that the user named, those beside the recording, and those that its command line
    /// names, word by word. The flag tells the first.
    pub(crate) fn webassembly(&self, kind: WasmKind, command: &[String]) -> Vec<(Place, bool)> {
        let named = match kind {
            WasmKind::Module => &self.wasm,
            WasmKind::Compiled => &self.cwasm,
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
        let others = self
            .wasm_beside(kind, command)
            .into_iter()
            .map(|place| (place, false));
        let mut known = FxHashSet::default();
        let all = named.chain(others);
        // A path without parts that lead nowhere.
        all.filter(|(place, _)| known.insert(place.path().components().collect::<PathBuf>()))
            .collect()
    }

    /// Files beside the recording, and those that its command line names.
    fn wasm_beside(&self, kind: WasmKind, command: &[String]) -> Vec<Place> {
        let folder = self.recording_dir.as_deref().unwrap_or(Path::new(""));
        let mut places = with_extension(folder, kind);
        for word in command {
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
                places.extend(self.in_roots(&path));
                continue;
            }
            if path.components().all(|part| part != Component::ParentDir) {
                places.push(Door::beneath(folder, &path).into());
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
