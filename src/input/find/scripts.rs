//! Where scripts and their source maps may be.

use std::path::{Path, PathBuf};

use super::{Place, SearchPaths};
use crate::input::Door;

/// Where scripts and their maps are looked for.
#[derive(Debug, Clone, Default)]
pub struct ScriptPlaces {
    /// `--source-map DIR`
    pub folders: Vec<PathBuf>,
    /// Folders that stand for `/`.
    pub roots: Vec<PathBuf>,
}

impl SearchPaths {
    /// The same for scripts and their maps.
    #[must_use]
    pub fn of_scripts(&self) -> ScriptPlaces {
        ScriptPlaces {
            folders: self.source_maps.clone(),
            roots: self.roots(),
        }
    }
}

impl ScriptPlaces {
    /// A script by the path that the runtime told, and by its name in the folders that the user named.
    pub(crate) fn scripts(&self, path: &Path) -> impl Iterator<Item = Place> {
        let named = path.file_name().into_iter().flat_map(|name| {
            let folders = self.folders.iter();
            folders.map(move |dir| Door::named(dir.join(name)).into())
        });
        let roots = self.roots.iter().map(|root| Place::in_root(root, path));
        roots.chain(named)
    }

    /// The map of a script: in the folders that the user named, where the script's own `url` says if that stays in its folder
    /// (`found` is where the script was found), beside where the script was. With them what it is called there.
    pub(crate) fn maps(
        &self,
        script: &Path,
        found: Option<&Path>,
        url: Option<&str>,
    ) -> Option<(Vec<Place>, PathBuf)> {
        let name = script.file_name()?.to_string_lossy().into_owned() + ".map";
        let folders = self.folders.iter();
        let mut places: Vec<Place> = folders
            .map(|dir| Door::named(dir.join(&name)).into())
            .collect();
        let named = url.filter(|url| !url.contains(':') && !url.starts_with('/'));
        let below = found.and_then(Path::parent).zip(named);
        places.extend(below.map(|(folder, inside)| Door::beneath(folder, inside).into()));
        let beside = script.parent()?.join(&name);
        places.extend(self.roots.iter().map(|root| Place::in_root(root, &beside)));
        Some((places, beside))
    }
}

/// The map beside a module of WebAssembly that its `url` names: only the last part counts.
pub(crate) fn map_of_module(module: &Path, url: &str) -> Option<Door> {
    let name = Path::new(url).file_name()?;
    let folder = module.parent().unwrap_or(Path::new(""));
    Some(Door::beneath(folder, name))
}

/// Whether a file in a folder is taken for a source map, by its name.
#[must_use]
pub(crate) fn is_source_map_name(name: &[u8]) -> bool {
    name.ends_with(b".map")
}
