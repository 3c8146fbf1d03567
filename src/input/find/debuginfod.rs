//! The cache of debuginfod's client: debug files, programs and sources that somebody fetched from a server, by build ID.
//!
//! Only names are made here. Nothing is asked of a server, and what is found has to prove that it is of that build: the client
//! stores whatever came. What it names otherwise (sections, files of a client that was ended) is not looked at.

use std::path::{Path, PathBuf};

use super::Place;
use crate::build_id::BuildId;
use crate::input::Door;

/// What a client's environment says of its cache, as the client asks for it.
#[derive(Debug, Clone, Default)]
pub struct DebuginfodHome {
    /// `$DEBUGINFOD_CACHE_PATH`
    pub cache: Option<PathBuf>,
    /// `$XDG_CACHE_HOME`
    pub xdg: Option<PathBuf>,
    /// `$HOME`
    pub home: Option<PathBuf>,
}

impl DebuginfodHome {
    /// The folder of the cache, whether it is there or not.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let given =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        if let Some(cache) = given(&self.cache) {
            return Some(cache);
        }
        let home = given(&self.home);
        let old = home
            .as_ref()
            .map(|home| home.join(".debuginfod_client_cache"));
        if let Some(old) = old.filter(|old| old.is_dir()) {
            return Some(old);
        }
        let cache = given(&self.xdg).or_else(|| Some(home?.join(".cache")));
        cache.map(|cache| cache.join("debuginfod_client"))
    }
}

/// The debug file of a build.
pub(crate) const DEBUG: &str = "debuginfo";
/// The program or library itself.
pub(crate) const PROGRAM: &str = "executable";

/// A file of a build in a client's cache. No link leads out of that.
pub(crate) fn of_build(cache: &Path, id: &BuildId, name: &str) -> Place {
    Door::beneath(cache, Path::new(&id.to_string()).join(name)).into()
}

/// What the sources of a build are called that has a file of this absolute path: by newer clients, and by those before 0.192.
pub(crate) fn of_source(path: &str) -> Option<[String; 2]> {
    // The hash is made of signed characters on some machines.
    if !path.starts_with('/') || !path.is_ascii() {
        return None;
    }
    Some([hashed(path), doubled(path)])
}

/// The client's `path_escape`: eight digits of a hash, and as much of the end of the path as 126 characters hold.
fn hashed(path: &str) -> String {
    const MOST: usize = 126;
    const DIGITS: usize = 9;
    let add = |hash: u32, byte: u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
    let hash = path.bytes().fold(5381, add);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let kept = &path[path.len().saturating_sub(MOST - DIGITS)..];
    let kept: String = kept
        .chars()
        .map(|c| if plain(c) { c } else { '#' })
        .collect();
    format!("source-{hash:08x}-{kept}")
}

/// As clients before did it.
fn doubled(path: &str) -> String {
    format!("source{}", path.replace('#', "#_").replace('/', "##"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_client_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| Some(folder.path().join(name));
        let mut home = DebuginfodHome {
            cache: path("given"),
            xdg: path("xdg"),
            home: path(""),
        };
        assert_eq!(home.folder(), path("given"));
        home.cache = Some(PathBuf::new());
        assert_eq!(home.folder(), path("xdg/debuginfod_client"));
        home.xdg = None;
        assert_eq!(home.folder(), path(".cache/debuginfod_client"));
        std::fs::create_dir(folder.path().join(".debuginfod_client_cache")).expect("made");
        assert_eq!(home.folder(), path(".debuginfod_client_cache"));
        assert_eq!(DebuginfodHome::default().folder(), None);
    }

    #[test]
    fn sources_have_the_names_that_clients_give_them() {
        // As elfutils 0.192 and 0.188 called them.
        let names = |newer: &str, older: &str| Some([newer.to_owned(), older.to_owned()]);
        assert_eq!(
            of_source("/tmp/dbg/src/hot.c"),
            names(
                "source-09dd0c63-#tmp#dbg#src#hot.c",
                "source##tmp##dbg##src##hot.c"
            )
        );
        assert_eq!(
            of_source("/tmp/dbg/src/a b+c#d.c"),
            names(
                "source-0847def0-#tmp#dbg#src#a#b#c#d.c",
                "source##tmp##dbg##src##a b+c#_d.c"
            )
        );
        assert_eq!(of_source("src/x.c"), None);
        let long = format!("/{}/x.c", "a".repeat(300));
        let [hashed, _] = of_source(&long).expect("a path");
        assert_eq!(hashed.len(), "source-".len() + 126);
        assert!(hashed.ends_with("aaa#x.c"));
    }
}
