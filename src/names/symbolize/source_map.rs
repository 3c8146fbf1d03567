//! Source maps: from places in a script that a compiler or bundler made to those in what it was made of.
//!
//! In: the script as the runtime named it, line and column. Out: file, line and column of the original, and what the function that
//! begins there is called in the original's text. A map is looked for by `--source-map`, by the script's own `sourceMappingURL`, and
//! beside the script; one that does not fit the script is not used. Each is read once, when it is first asked for.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use sourcemap::{DecodedMap, SourceMap, SourceMapIndex, Token};

use super::utf16::Lines;
use super::written_name::{written_name, written_owner};
use crate::diagnostics::Diagnostics;
use crate::find::{self, Kind, Look, ScriptPlaces, SourcePaths};
use crate::input::{FoundBy, Role, SourceClaim, Store};
use crate::runtimes::names::script_path;
use crate::wasm::ModuleMap;

/// Larger maps are not read.
const MAX_MAP: usize = 256 << 20;

/// Where maps are looked for, and those that were found.
#[derive(Default)]
pub struct SourceMaps<'a> {
    search: Option<Search<'a>>,
    known: Mutex<FxHashMap<String, Option<Arc<SourceMap>>>>,
    read: Mutex<Read>,
    /// Texts in those maps, by the names of their sources: the map's script and the number in it. Of several the first script's.
    texts: Mutex<FxHashMap<String, (String, u32)>>,
    /// Texts of which functions were named, by map and number of the source in it.
    sources: Mutex<Sources>,
}

/// By where a map is, and the number of a source in it.
type Sources = FxHashMap<(usize, u32), Option<Arc<Source>>>;

/// The text of an original source.
struct Source {
    /// Where the map has none.
    file: Option<String>,
    lines: Lines,
}

/// Maps that were read, by where their text is: one script may have many names, and a map takes ten times its text.
type Read = FxHashMap<usize, Arc<SourceMap>>;

/// Where maps are looked for.
pub struct Search<'a> {
    /// Owns the files.
    pub store: &'a Store,
    /// For what is not used.
    pub diag: &'a Diagnostics,
    /// Where they may be.
    pub places: ScriptPlaces,
    /// Where original sources may be that maps name and do not have.
    pub sources: SourcePaths,
    /// Whether functions shall have the names of the originals, and not only lines their places.
    pub renames: bool,
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

/// A function in an original source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginalFunction {
    /// Where it is.
    pub place: Original,
    /// What it is called there, if its text is at hand and names it.
    pub name: Option<OriginalName>,
}

/// What a function is called in an original source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginalName {
    /// The name alone.
    pub name: String,
    /// The objects before it where it is assigned to: `Shape.prototype.`
    pub owner: String,
}

impl<'a> SourceMaps<'a> {
    /// None read yet.
    #[must_use]
    pub fn new(search: Search<'a>) -> Self {
        Self {
            search: Some(search),
            ..Self::default()
        }
    }

    /// One map as that of the script at a path, if it fits its text.
    #[must_use]
    pub fn of_map(script: &str, text: Option<&[u8]>, map: &[u8]) -> Option<Self> {
        let map = flat(sourcemap::decode_slice(map).ok()?)?;
        if misfit(&map, Path::new(script), text).is_some() {
            return None;
        }
        let maps = Self::default();
        maps.list_texts(script, &map);
        let known = FxHashMap::from_iter([(script.to_owned(), Some(Arc::new(map)))]);
        Some(Self {
            known: Mutex::new(known),
            ..maps
        })
    }

    /// The text of an original source that [`original`](Self::original) named, if its map brings it along.
    #[must_use]
    pub fn content(&self, file: &str) -> Option<String> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let (script, number) = texts.get(file)?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let map = known.get(script)?.as_ref()?;
        map.get_source_contents(*number).map(str::to_owned)
    }

    /// Makes the texts that a map brings along findable by name.
    fn list_texts(&self, script: &str, map: &SourceMap) {
        /// Large programs have some ten thousand sources.
        const MOST: usize = 1 << 20;
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        for number in 0..map.get_source_count() {
            let source = map.get_source(number);
            let Some(source) = source.filter(|_| map.get_source_contents(number).is_some()) else {
                continue;
            };
            if texts.len() >= MOST {
                break;
            }
            let name = absolute(Path::new(script), source);
            let new = (script.to_owned(), number);
            let known = texts.entry(name).or_insert_with(|| new.clone());
            // Whatever map was read first.
            if new < *known {
                *known = new;
            }
        }
    }

    /// Whether functions shall have the names of the originals.
    #[must_use]
    pub fn renames(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.renames)
    }

    /// Whether a script has a source map.
    #[must_use]
    pub fn has_map(&self, script: &str) -> bool {
        path_of(script).is_some_and(|path| self.map_of(&path).is_some())
    }

    /// Where a place (line and column from 1, column 0 for none) of a script comes from.
    #[must_use]
    pub fn original(&self, script: &str, line: u32, column: u32) -> Option<Original> {
        let path = path_of(script)?;
        let map = self.map_of(&path)?;
        let token = token_at(&map, line, column)?;
        original(&path, token)
    }

    /// The same for the place where a function begins, with its name there.
    #[must_use]
    pub fn function(&self, script: &str, line: u32, column: u32) -> Option<OriginalFunction> {
        let path = path_of(script)?;
        let map = self.map_of(&path)?;
        let token = token_at(&map, line, column)?;
        let place = original(&path, token)?;
        let name = self.name_at(&map, token, &place.file);
        Some(OriginalFunction { place, name })
    }

    fn name_at(&self, map: &Arc<SourceMap>, token: Token<'_>, file: &str) -> Option<OriginalName> {
        let number = token.get_src_id();
        let key = (Arc::as_ptr(map) as usize, number);
        let in_map = map.get_source_contents(number);
        let mut known = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let source = known.entry(key).or_insert_with(|| {
            let in_file = || self.search.as_ref()?.text_of(Path::new(file));
            let file = in_map.is_none().then(in_file).flatten();
            let lines = Lines::of(in_map.or(file.as_deref())?)?;
            Some(Arc::new(Source { file, lines }))
        });
        let source = source.clone()?;
        drop(known);
        let text = in_map.or(source.file.as_deref())?;
        let place = (token.get_src_line(), token.get_src_col());
        let name = written_name(text, source.lines.byte_of(text, place)?)?;
        Some(OriginalName {
            name: name.to_owned(),
            owner: written_owner(text, name).to_owned(),
        })
    }

    fn map_of(&self, script: &str) -> Option<Arc<SourceMap>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(script) {
            return found.clone();
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.search.as_ref()?.find(Path::new(script), &mut read);
        if let Some(map) = &found {
            self.list_texts(script, map);
        }
        known.insert(script.to_owned(), found.clone());
        found
    }
}

/// The path of a script, if it has one.
fn path_of(script: &str) -> Option<Cow<'_, str>> {
    let path = script_path(script);
    path.starts_with('/').then_some(path)
}

/// What the map has at a place or before it in its line.
fn token_at(map: &SourceMap, line: u32, column: u32) -> Option<Token<'_>> {
    let line = line.checked_sub(1)?;
    let token = map.lookup_token(line, column.saturating_sub(1))?;
    // A token counts to the end of its line.
    (token.get_dst_line() == line).then_some(token)
}

fn original(script: &str, token: Token<'_>) -> Option<Original> {
    Some(Original {
        file: absolute(Path::new(script), token.get_source()?),
        line: token.get_src_line().checked_add(1)?,
        column: token.get_src_col().saturating_add(1),
    })
}

/// A source beside the script it was compiled to; one that is no path (`webpack://app/src/a.ts`) as it is. A URL is never a
/// path, `file:` neither: only the map's own text is shown for it.
fn absolute(script: &Path, source: &str) -> String {
    if source.starts_with('/') || source.contains("://") {
        return source.to_owned();
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
    /// The text of an original source that a map names and does not have: the first file of its name that is proven to be a source.
    fn text_of(&self, name: &Path) -> Option<String> {
        let what = name.as_os_str().as_encoded_bytes();
        if !SourcePaths::can_be_path(what) {
            return None;
        }
        let look = Look::new(self.diag, Kind::Source, what);
        let mut places = self.sources.candidates(name, None);
        places.find_map(|(place, found_by)| {
            let door = look.doors([place]).next()?;
            let judged = self.store.open(&door);
            let judged = judged
                .map_err(|error| look.missed(door.path(), &error))
                .ok()?;
            let is_small = judged.meta().len() <= MAX_MAP as u64;
            let bytes = is_small.then(|| self.store.map_judged(&judged).ok())??;
            if !judged.is_source(bytes, found_by, &SourceClaim::default()) {
                look.missed(door.path(), "not proven to be source code");
                return None;
            }
            let text = std::str::from_utf8(bytes).ok()?.to_owned();
            look.took(door.path());
            self.store.used(name, door.path(), Role::Source);
            Some(text)
        })
    }

    /// The map of a script, if there is one that fits. Only then the script is what its name says: that may be any file.
    fn find(&self, script: &Path, read: &mut Read) -> Option<Arc<SourceMap>> {
        let found = self.places.scripts(script).find_map(|place| {
            let door = place.into_door()?;
            let judged = self.store.open(&door).ok()?;
            let text = self.store.map_judged(&judged).ok()?;
            (text.len() <= MAX_MAP).then_some((judged, text))
        });
        let text = found.as_ref().map(|(_, text)| *text);
        let path = found.as_ref().map(|(judged, _)| judged.door().path());
        let map = self.map_for(script, path, text, read)?;
        if let Some((judged, text)) = &found {
            let found_by = if judged.door().is_users() {
                FoundBy::Folder
            } else {
                FoundBy::Path
            };
            if judged.is_source(text, found_by, &SourceClaim::default()) {
                self.store.used(script, judged.door().path(), Role::Source);
            }
        }
        Some(map)
    }

    /// The first map that fits: in the script, in the folders that the user named, in the script's folder or below, beside where
    /// the script was.
    fn map_for(
        &self,
        script: &Path,
        found: Option<&Path>,
        text: Option<&[u8]>,
        read: &mut Read,
    ) -> Option<Arc<SourceMap>> {
        let url = text.and_then(mapping_url);
        let inside = url.filter(|url| url.starts_with("data:"));
        let inside = inside.and_then(|url| {
            once(read, url.as_bytes(), || {
                flat(sourcemap::decode_data_url(url).ok()?)
            })
        });
        if let Some(map) = inside {
            return self.fitting(map, script, script, text);
        }
        let (places, beside) = self.places.maps(script, found, url)?;
        let what = script.as_os_str().as_encoded_bytes();
        let look = Look::new(self.diag, Kind::SourceMap, what);
        look.doors(places).find_map(|door| {
            let path = door.path();
            let bytes = self.store.map(&door);
            let bytes = bytes.map_err(|error| look.missed(path, &error)).ok()?;
            look.missed(path, "not a map of that script");
            if bytes.len() > MAX_MAP {
                return None;
            }
            let map = once(read, bytes, || match sourcemap::decode_slice(bytes) {
                Ok(map) => flat(map),
                Err(why) => {
                    let path = path.display();
                    self.diag
                        .warn_beside(format!("{path}: not a source map ({why}); not used"));
                    None
                }
            })?;
            let map = self.fitting(map, path, script, text)?;
            look.took(path);
            self.store.used(&beside, path, Role::Jit);
            Some(map)
        })
    }

    /// The map, if it can be that of the script.
    fn fitting(
        &self,
        map: Arc<SourceMap>,
        path: &Path,
        script: &Path,
        text: Option<&[u8]>,
    ) -> Option<Arc<SourceMap>> {
        let why = misfit(&map, script, text);
        let (shown, script) = (path.display(), script.display());
        match why {
            Some(why) => {
                self.diag
                    .warn_beside(format!("{shown}: {why} ({script}); not used"));
                None
            }
            None => {
                self.diag
                    .note_beside(format!("{script}: sources by {shown}"));
                Some(map)
            }
        }
    }
}

/// Why a map is not that of a script.
fn misfit(map: &SourceMap, script: &Path, text: Option<&[u8]>) -> Option<&'static str> {
    let Some(text) = text else {
        // Without the script there is only its name.
        let name = script.file_name()?;
        let other = |file: &str| Path::new(file).file_name().is_some_and(|file| file != name);
        let is_other = map.get_file().is_some_and(other);
        return is_other.then_some("is the map of another script");
    };
    (!reaches_into(map, text)).then_some("has places that the script has not")
}

/// Whether the script has all places that the map tells of.
fn reaches_into(map: &SourceMap, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let lengths: Vec<usize> = text
        .split('\n')
        .map(|line| line.encode_utf16().count())
        .collect();
    // swc puts some places of long literals a few characters too far.
    const TOO_FAR: usize = 8;
    const ONE_OF: usize = 1000;
    let (mut all, mut beyond) = (0, 0);
    let are_near = map.tokens().all(|token| {
        let length = lengths.get(token.get_dst_line() as usize);
        let column = token.get_dst_col() as usize;
        all += 1;
        beyond += usize::from(length.is_some_and(|&length| column > length));
        length.is_some_and(|&length| column <= length + TOO_FAR)
    });
    are_near && beyond * ONE_OF <= all
}

fn flat(map: DecodedMap) -> Option<SourceMap> {
    match map {
        DecodedMap::Regular(map) => Some(map),
        DecodedMap::Index(map) => has_sound_places(&map).then(|| map.flatten().ok())?,
        DecodedMap::Hermes(_) => None,
    }
}

/// Whether places of sections can be moved by where the sections are: the library adds them up unchecked.
fn has_sound_places(map: &SourceMapIndex) -> bool {
    const MOST: u32 = 1 << 31;
    let is_sound = |(line, column): (u32, u32)| line < MOST && column < MOST;
    map.sections().all(|section| match section.get_sourcemap() {
        Some(DecodedMap::Regular(map)) => {
            is_sound(section.get_offset()) && map.tokens().all(|token| is_sound(token.get_dst()))
        }
        // Sections of sections are not in the format.
        _ => false,
    })
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
    pub(super) fn read(of: &ModuleMap<'_, '_>) -> Option<Self> {
        if of.url.starts_with("data:") {
            return flat(sourcemap::decode_data_url(of.url).ok()?).map(Self);
        }
        let what = of.module.as_os_str().as_encoded_bytes();
        let look = Look::new(of.diag, Kind::SourceMap, what);
        let door = find::map_of_module(of.module, of.url)?;
        let path = door.path();
        let bytes = of.store.map(&door);
        let bytes = bytes.map_err(|error| look.missed(path, &error)).ok()?;
        look.missed(path, "not a source map");
        let map = flat(sourcemap::decode_slice(bytes).ok()?)?;
        look.took(path);
        of.store.used(Path::new(path.file_name()?), path, Role::Jit);
        Some(Self(map))
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

/// A map by its text; `decode` reads it if nobody has.
fn once(
    read: &mut Read,
    text: &[u8],
    decode: impl FnOnce() -> Option<SourceMap>,
) -> Option<Arc<SourceMap>> {
    let place = text.as_ptr().addr();
    if let Some(known) = read.get(&place) {
        return Some(Arc::clone(known));
    }
    let map = Arc::new(decode()?);
    read.insert(place, Arc::clone(&map));
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_once_and_sources_without_text_are_not_listed() {
        with_files(&[("app.js", SCRIPT), ("app.js.map", MAP)], |maps| {
            let one = maps.map_of("/app/dist/app.js").expect("it fits");
            let other = maps.map_of("/app/./dist/../dist/app.js");
            assert!(Arc::ptr_eq(&one, &other.expect("the same script")));
            assert!(maps.texts.lock().expect("free").is_empty());
        });
    }

    /// `function f(){g()}` of line 3, and `g` of line 7, of `../src/app.ts`.
    const MAP: &str = r#"{"version":3,"file":"app.js","sources":["../src/app.ts"],"names":[],"mappings":"AAEA,aAIA"}"#;
    const SCRIPT: &str = "function f(){g()}\n//# sourceMappingURL=app.js.map\n";

    fn maps<'a>(store: &'a Store, diag: &'a Diagnostics, root: &Path) -> SourceMaps<'a> {
        SourceMaps::new(Search {
            store,
            diag,
            places: ScriptPlaces {
                roots: vec![root.to_owned()],
                ..ScriptPlaces::default()
            },
            sources: SourcePaths {
                symfs: Some(root.to_owned()),
                ..SourcePaths::default()
            },
            renames: true,
        })
    }

    fn with_files(files: &[(&str, &str)], test: impl Fn(&SourceMaps<'_>)) {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in ["app/dist", "app/src"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("made");
        }
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

    /// By the text that the map has, or by a file that is proven to be a source.
    #[test]
    fn functions_are_called_as_in_the_original() {
        let text = "\n\nfunction work () { return 1 }\n\n\n\nlet other = () => 2\n";
        let name = |maps: &SourceMaps<'_>, column| {
            let function = maps.function("/app/dist/app.js", 1, column)?;
            Some(function.name?.name)
        };
        let quoted = serde_json::to_string(text).expect("JSON");
        let map = MAP.replace(
            "\"names\"",
            &format!("\"sourcesContent\":[{quoted}],\"names\""),
        );
        with_files(&[("app.js", SCRIPT), ("app.js.map", &map)], |maps| {
            assert_eq!(name(maps, 10).as_deref(), Some("work"));
            assert_eq!(name(maps, 14), None);
            assert_eq!(maps.function("/app/dist/app.js", 2, 1), None);
            assert!(maps.has_map("/app/dist/app.js") && !maps.has_map("/app/dist/other.js"));
        });
        let files = [
            ("app.js", SCRIPT),
            ("app.js.map", MAP),
            ("../src/app.ts", text),
        ];
        with_files(&files, |maps| {
            assert_eq!(name(maps, 10).as_deref(), Some("work"))
        });
        let map = MAP.replace("../src/app.ts", "file:///app/src/app.ts");
        let files = [
            ("app.js", SCRIPT),
            ("app.js.map", &map),
            ("../src/app.ts", text),
        ];
        with_files(&files, |maps| assert_eq!(name(maps, 10), None));
        let binary = format!("{text}\0");
        let files = [
            ("app.js", SCRIPT),
            ("app.js.map", MAP),
            ("../src/app.ts", &binary),
        ];
        with_files(&files, |maps| assert_eq!(name(maps, 10), None));
    }

    /// swc puts places of long literals a few characters behind the ends of their lines.
    #[test]
    fn few_places_a_little_beyond_a_line_are_suffered() {
        let lines = "x\n".repeat(2000);
        let map = |last: u32| {
            let mut builder = sourcemap::SourceMapBuilder::new(None);
            for line in 0..2000 {
                let column = if line == 1000 { last } else { 0 };
                builder.add(line, column, line, 0, Some("a.js"), None, false);
            }
            builder.into_sourcemap()
        };
        let fits = |last| misfit(&map(last), Path::new("a.js"), Some(lines.as_bytes())).is_none();
        assert!(fits(1) && fits(9) && !fits(10));
        let few = misfit(&map(9), Path::new("a.js"), Some(&lines.as_bytes()[..100]));
        assert!(few.is_some());
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
    fn a_map_alone_tells_places_and_texts() {
        let map = MAP.replace("\"names\"", "\"sourcesContent\":[\"one\\ntwo\"],\"names\"");
        let text = Some(SCRIPT.as_bytes());
        let maps = SourceMaps::of_map("/app/dist/app.js", text, map.as_bytes()).expect("it fits");
        let file = maps
            .original("/app/dist/app.js", 1, 1)
            .expect("a place")
            .file;
        assert_eq!(maps.content(&file).as_deref(), Some("one\ntwo"));
        assert_eq!(maps.content("/app/src/other.ts"), None);
        assert_eq!(
            absolute(Path::new("/app/a.js"), "file:///etc/x"),
            "file:///etc/x"
        );
        assert_eq!(maps.original("/app/dist/other.js", 1, 1), None);
        assert!(SourceMaps::of_map("/app/dist/app.js", Some(b"f()"), map.as_bytes()).is_none());
    }

    #[test]
    fn hostile_maps_are_refused_or_harmless() {
        let section = |line: u64, column: u64| {
            format!(
                r#"{{"version":3,"sections":[{{"offset":{{"line":{line},"column":{column}}},"map":{MAP}}},{{"offset":{{"line":1,"column":0}},"map":{MAP}}}]}}"#
            )
        };
        let last = u64::from(u32::MAX);
        let maps = [
            section(last, 0),
            section(0, last),
            section(last, last),
            MAP.replace("AAEA,aAIA", "AAEA,+////DAIA"),
            MAP.replace("AAEA,aAIA", "AAgggggggggggggggggggggC"),
            MAP.replace("AAEA,aAIA", "AAD/////DA,aAIA"),
            MAP.replace("AAEA,aAIA", "DDDD"),
            MAP.replace("AAEA,aAIA", "A+/////////D,,,;;;;AAAAA"),
            MAP.replace(
                "\"sources\"",
                "\"sourceRoot\":\"\\u0000/../..\",\"sources\"",
            ),
            "{}".to_owned(),
            "[".repeat(100_000),
        ];
        for map in maps {
            for text in [None, Some(SCRIPT.as_bytes())] {
                let Some(maps) = SourceMaps::of_map("/app/dist/app.js", text, map.as_bytes())
                else {
                    continue;
                };
                for line in [1, 2, u32::MAX] {
                    for column in [0, 1, 14, u32::MAX] {
                        if let Some(at) = maps.original("/app/dist/app.js", line, column) {
                            assert!(at.line > 0 && at.column > 0, "{map}");
                        }
                    }
                }
            }
        }
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
