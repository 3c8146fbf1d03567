//! Source maps: from places in a script that a compiler or bundler made to those in what it was made of.
//!
//! In: the script as the runtime named it, line and column. Out: file, line and column of the original. A map is looked for by
//! `--source-map`, by the script's own `sourceMappingURL`, and beside the script; one that does not fit the script is not
//! used. Each is read once, when it is first asked for.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use sourcemap::{DecodedMap, SourceMap};

use crate::diagnostics::Diagnostics;
use crate::dso::resolve_in;
use crate::input::{Role, Store};

/// Larger maps are not read.
const MAX_MAP: usize = 256 << 20;

/// Where maps are looked for, and those that were found.
#[derive(Default)]
pub struct SourceMaps<'a> {
    search: Option<Search<'a>>,
    known: Mutex<FxHashMap<String, Option<Arc<SourceMap>>>>,
}

/// Where maps are looked for.
pub struct Search<'a> {
    /// Owns the files.
    pub store: &'a Store,
    /// For what is not used.
    pub diag: &'a Diagnostics,
    /// `--source-map DIR`: also asks for original places in names.
    pub folders: Vec<PathBuf>,
    /// Folders that stand for `/`.
    pub roots: Vec<PathBuf>,
}

/// A place in an original source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Original {
    /// As the map names it, absolute if the script's path is known.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl<'a> SourceMaps<'a> {
    /// None read yet.
    #[must_use]
    pub fn new(search: Search<'a>) -> Self {
        Self {
            search: Some(search),
            known: Mutex::default(),
        }
    }

    /// Whether names shall have original places.
    #[must_use]
    pub fn renames(&self) -> bool {
        self.search
            .as_ref()
            .is_some_and(|search| !search.folders.is_empty())
    }

    /// Where a place (line and column from 1, column 0 for none) of a script comes from.
    #[must_use]
    pub fn original(&self, script: &str, line: u32, column: u32) -> Option<Original> {
        let search = self.search.as_ref()?;
        let path = script.strip_prefix("file://").unwrap_or(script);
        if !path.starts_with('/') {
            return None;
        }
        let map = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let found = || search.find(Path::new(path)).map(Arc::new);
            let found = known.entry(path.to_owned()).or_insert_with(found);
            found.clone()?
        };
        let line = line.checked_sub(1)?;
        let token = map.lookup_token(line, column.saturating_sub(1))?;
        // A token counts to the end of its line.
        if token.get_dst_line() != line {
            return None;
        }
        let source = token.get_source()?;
        Some(Original {
            file: absolute(Path::new(path), source),
            line: token.get_src_line().checked_add(1)?,
            column: token.get_src_col().saturating_add(1),
        })
    }
}

/// A source beside the script it was compiled to, without `webpack://` and the like.
fn absolute(script: &Path, source: &str) -> String {
    if source.starts_with('/') || source.contains("://") {
        return source.strip_prefix("file://").unwrap_or(source).to_owned();
    }
    let mut path = script.parent().unwrap_or(Path::new("/")).to_owned();
    for part in Path::new(source).components() {
        match part {
            std::path::Component::ParentDir => {
                path.pop();
            }
            std::path::Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}

impl Search<'_> {
    /// The map of a script, if there is one that fits.
    fn find(&self, script: &Path) -> Option<SourceMap> {
        let text = self.roots.iter().find_map(|root| {
            let path = resolve_in(root, script)?;
            let text = self.store.map(&path).ok()?;
            self.store.used(script, &path, Role::Source);
            Some(text)
        });
        let name = script.file_name()?.to_string_lossy().into_owned() + ".map";
        let mut places: Vec<PathBuf> = self.folders.iter().map(|dir| dir.join(&name)).collect();
        let url = text.and_then(mapping_url);
        let beside = script.parent()?;
        let named = url.filter(|url| !url.contains(':'));
        let recorded = named.into_iter().chain([name.as_str()]);
        let recorded = recorded.map(|name| beside.join(name));
        for path in recorded {
            places.extend(self.roots.iter().filter_map(|root| resolve_in(root, &path)));
        }
        let inside = url.filter(|url| url.starts_with("data:"));
        let inside = inside.and_then(|url| sourcemap::decode_data_url(url).ok());
        if let Some(map) = inside.and_then(flat) {
            return self.fitting(map, script, script, text);
        }
        places.into_iter().find_map(|path| {
            let bytes = self.store.map(&path).ok()?;
            let map = (bytes.len() <= MAX_MAP).then(|| sourcemap::decode_slice(bytes));
            let map = match map? {
                Ok(map) => flat(map)?,
                Err(why) => {
                    let path = path.display();
                    self.diag
                        .warn(format!("{path}: not a source map ({why}); not used"));
                    return None;
                }
            };
            let map = self.fitting(map, &path, script, text)?;
            self.store.used(&beside.join(&name), &path, Role::Jit);
            Some(map)
        })
    }

    /// The map, if it can be that of the script.
    fn fitting(
        &self,
        map: SourceMap,
        path: &Path,
        script: &Path,
        text: Option<&[u8]>,
    ) -> Option<SourceMap> {
        let why = match text {
            Some(text) => {
                (!reaches_into(&map, text)).then_some("has places that the script has not")
            }
            // Without the script there is only its name.
            None => {
                let name = script.file_name()?.to_string_lossy().into_owned();
                let other = |file: &str| Path::new(file).file_name().is_some_and(|f| *f != *name);
                let is_other = map.get_file().is_some_and(other);
                is_other.then_some("is the map of another script")
            }
        };
        let (shown, script) = (path.display(), script.display());
        match why {
            Some(why) => {
                self.diag
                    .warn(format!("{shown}: {why} ({script}); not used"));
                None
            }
            None => {
                self.diag.note(format!("{script}: sources by {shown}"));
                Some(map)
            }
        }
    }
}

/// Whether the script has all places that the map tells of.
fn reaches_into(map: &SourceMap, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let lengths: Vec<usize> = text
        .split('\n')
        .map(|line| line.encode_utf16().count())
        .collect();
    map.tokens().all(|token| {
        let length = lengths.get(token.get_dst_line() as usize);
        length.is_some_and(|&length| token.get_dst_col() as usize <= length)
    })
}

fn flat(map: DecodedMap) -> Option<SourceMap> {
    match map {
        DecodedMap::Regular(map) => Some(map),
        DecodedMap::Index(map) => map.flatten().ok(),
        DecodedMap::Hermes(_) => None,
    }
}

/// What stands behind the last `sourceMappingURL=` of a script.
fn mapping_url(text: &[u8]) -> Option<&str> {
    const KEY: &[u8] = b"sourceMappingURL=";
    let start = memchr::memmem::rfind(text, KEY)? + KEY.len();
    let url = &text[start..];
    let end = url.iter().position(u8::is_ascii_whitespace);
    std::str::from_utf8(&url[..end.unwrap_or(url.len())]).ok()
}

/// A map of positions in a module of WebAssembly: line 1, columns for bytes.
pub(super) struct WasmMap(SourceMap);

impl WasmMap {
    /// Reads the map beside a module that its URL names.
    pub(super) fn read(store: &Store, module: &Path, url: &str) -> Option<Self> {
        let map = if url.starts_with("data:") {
            sourcemap::decode_data_url(url).ok()?
        } else {
            let name = Path::new(url).file_name()?;
            let path = module.with_file_name(name);
            let map = sourcemap::decode_slice(store.map(&path).ok()?).ok()?;
            store.used(Path::new(name), &path, Role::Jit);
            map
        };
        flat(map).map(Self)
    }

    /// Source and line (from 1) and column (from 1) of a position.
    pub(super) fn find(&self, position: u64) -> Option<(String, u32, u32)> {
        let token = self.0.lookup_token(0, u32::try_from(position).ok()?)?;
        let line = token.get_src_line().checked_add(1)?;
        Some((
            token.get_source()?.to_owned(),
            line,
            token.get_src_col().saturating_add(1),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `function f(){g()}` of line 3, and `g` of line 7, of `../src/app.ts`.
    const MAP: &str = r#"{"version":3,"file":"app.js","sources":["../src/app.ts"],"names":[],"mappings":"AAEA,aAIA"}"#;
    const SCRIPT: &str = "function f(){g()}\n//# sourceMappingURL=app.js.map\n";

    fn maps<'a>(store: &'a Store, diag: &'a Diagnostics, root: &Path) -> SourceMaps<'a> {
        SourceMaps::new(Search {
            store,
            diag,
            folders: Vec::new(),
            roots: vec![root.to_owned()],
        })
    }

    fn with_files(files: &[(&str, &str)], test: impl Fn(&SourceMaps<'_>)) {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(dir.path().join("app/dist")).expect("made");
        for (name, text) in files {
            std::fs::write(dir.path().join("app/dist").join(name), text).expect("written");
        }
        let (store, diag) = (Store::new(), Diagnostics::new());
        test(&maps(&store, &diag, dir.path()));
    }

    #[test]
    fn places_of_a_script_lead_to_its_sources() {
        with_files(&[("app.js", SCRIPT), ("app.js.map", MAP)], |maps| {
            let at = |line, column| maps.original("/app/dist/app.js", line, column);
            let original = |line| {
                Some(Original {
                    file: "/app/src/app.ts".to_owned(),
                    line,
                    column: 1,
                })
            };
            assert_eq!(at(1, 1), original(3));
            assert_eq!(at(1, 13), original(3));
            assert_eq!(at(1, 14), original(7));
            assert_eq!(at(2, 1), None);
            assert_eq!(maps.original("node:events", 1, 1), None);
            let url = "file:///app/dist/app.js";
            assert_eq!(maps.original(url, 1, 14), original(7));
        });
    }

    #[test]
    fn maps_that_do_not_fit_are_not_used() {
        let cut = "f()\n//# sourceMappingURL=app.js.map\n";
        with_files(&[("app.js", cut), ("app.js.map", MAP)], |maps| {
            assert_eq!(maps.original("/app/dist/app.js", 1, 1), None);
        });
        with_files(&[("other.js.map", MAP)], |maps| {
            assert_eq!(maps.original("/app/dist/other.js", 1, 1), None);
        });
        with_files(&[("app.js", SCRIPT), ("app.js.map", "no map")], |maps| {
            assert_eq!(maps.original("/app/dist/app.js", 1, 1), None);
        });
    }

    #[test]
    fn urls_are_the_last_of_their_kind() {
        assert_eq!(mapping_url(SCRIPT.as_bytes()), Some("app.js.map"));
        assert_eq!(
            mapping_url(b"a sourceMappingURL=x\n//# sourceMappingURL=y"),
            Some("y")
        );
        assert_eq!(mapping_url(b"nothing"), None);
    }
}
