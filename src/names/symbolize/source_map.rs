//! Source maps: from places in a script that a compiler or bundler made to those in what it was made of.
//!
//! In: the script as the runtime named it, line and column. Out: file, line and column of the original, and what the function that
//! begins there is called in the original's text. A map is looked for by `--source-map`, by the script's own `sourceMappingURL`, and
//! beside the script; one that does not fit the script is not used. Each is read once, when it is first asked for. Of scripts, maps
//! and originals only those are believed that [`super::ran`] tells of.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use rustc_hash::FxHashMap;
use sourcemap::{DecodedMap, SourceMap, SourceMapIndex, Token};

use super::ran::{Ran, RanFunctions};
use super::utf16::Lines;
use super::written_name::{written_name, written_owner};
use crate::diagnostics::{Diagnostics, OfFiles};
use crate::find::{self, Kind, Look, ScriptPlaces, SourcePaths};
use crate::input::{Door, FoundBy, InputError, Judged, Role, SourceClaim, Store, facts_of};
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

/// Reads through all functions that a recording has of scripts.
type ReadFunctions<'a> = Box<dyn Fn() -> RanFunctions + Send + Sync + 'a>;

/// What tells whether a text is that which ran.
#[derive(Default)]
pub struct RanTexts<'a> {
    /// Asked once, by the first text.
    read: Option<ReadFunctions<'a>>,
    known: OnceLock<RanFunctions>,
    /// When the recording ended.
    ended: Option<SystemTime>,
}

impl<'a> RanTexts<'a> {
    /// By functions, which are read when a text is to be judged, and by the time when the recording ended.
    pub fn new(
        read: impl Fn() -> RanFunctions + Send + Sync + 'a,
        ended: Option<SystemTime>,
    ) -> Self {
        Self {
            read: Some(Box::new(read)),
            known: OnceLock::new(),
            ended,
        }
    }

    fn judge(&self, script: &str, text: &[u8]) -> Ran {
        let read = || self.read.as_ref().map(|read| read()).unwrap_or_default();
        self.known.get_or_init(read).judge(script, text)
    }

    /// Whether a file was written, or came to its place, when the recording had ended.
    fn is_since(&self, judged: &Judged) -> bool {
        let facts = facts_of(judged.file(), judged.meta());
        let written = || judged.meta().modified().ok();
        let changed = facts.map(|facts| facts.changed).or_else(written);
        changed
            .zip(self.ended)
            .is_some_and(|(changed, ended)| changed >= ended)
    }
}

static OTHER: OfFiles = OfFiles {
    one: "not the script that ran: its functions are not where the recording has them; no names, lines or text of it are used",
    several: "are not the scripts that ran: their functions are not where the recording has them; no names, lines or text of them \
              are used",
    advice: "Build that version again and name the folder of script and map with --source-map",
};
static IN_MEMORY: OfFiles = OfFiles {
    one: "not the text that ran, which was made of it in memory (as deno, tsx, ts-node, jest and vite do); recorded lines are those of \
          that text, and its own are not shown",
    several: "are not the texts that ran, which were made of them in memory (as deno, tsx, ts-node, jest and vite do); recorded lines are \
              those of those texts, and their own are not shown",
    advice: "To see their lines, compile to files with source maps (tsc --sourceMap, esbuild --sourcemap) and record those",
};
static SINCE: OfFiles = OfFiles {
    one: "written after the recording had ended, and nothing proves that it is what ran; no names and no text are taken from it",
    several: "were written after the recording had ended, and nothing proves that they are what ran; no names and no text are \
              taken from them",
    advice: "Name the folder of that version with --source-map (scripts and maps) or --source-root (what they were made of)",
};

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
    /// What tells whether they are those that ran.
    pub ran: RanTexts<'a>,
}

/// What became of a script.
enum Answer {
    Map(Arc<SourceMap>),
    Nothing,
    /// It is not the one that ran.
    Other,
}

/// A file of a script's name.
struct Script<'s> {
    name: &'s Path,
    judged: Judged,
    text: &'s [u8],
    ran: OnceLock<Ran>,
}

impl Script<'_> {
    fn path(&self) -> &Path {
        self.judged.door().path()
    }
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

    /// Whether a file has the text of a script that ran, by the name that the runtime had for the script. If it has not, that is said.
    pub(crate) fn judge(&self, name: &str, judged: &Judged, text: &[u8]) -> Ran {
        let script = path_of(name).zip(self.search.as_ref());
        let Some((script, search)) = script else {
            return Ran::Unknown;
        };
        let ran = search.ran.judge(&script, text);
        if ran == Ran::No {
            search.tell_other(judged);
        }
        ran
    }

    /// Whether a file, which only the recording names, gives no text of an original that a map leads to: it was written since. If so,
    /// that is said.
    pub(crate) fn is_original_since(&self, name: &str, judged: &Judged, found_by: FoundBy) -> bool {
        let Some(search) = &self.search else {
            return false;
        };
        let is_since = search.is_unproven(judged, found_by) && self.is_original(name);
        if is_since {
            search.tell_since(judged.door().path());
        }
        is_since
    }

    /// Whether a map that was read leads to a file of this name.
    fn is_original(&self, name: &str) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut maps = known
            .iter()
            .filter_map(|(script, map)| Some((script, map.as_ref()?)));
        maps.any(|(script, map)| {
            let sources = (0..map.get_source_count()).filter_map(|number| map.get_source(number));
            sources
                .map(|source| absolute(Path::new(script), source))
                .any(|source| source == name)
        })
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

    fn name_at(&self, map: &Arc<SourceMap>, token: Token<'_>, path: &str) -> Option<OriginalName> {
        let number = token.get_src_id();
        let key = (Arc::as_ptr(map) as usize, number);
        let in_map = map.get_source_contents(number);
        let mut known = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let source = known.entry(key).or_insert_with(|| {
            let in_file = || self.search.as_ref()?.text_of(Path::new(path));
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
        let mut since = None;
        let found = places.find_map(|(place, found_by)| {
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
            if self.is_unproven(&judged, found_by) {
                look.missed(door.path(), "written after the recording ended");
                since = since.take().or_else(|| Some(door.path().to_owned()));
                return None;
            }
            let text = std::str::from_utf8(bytes).ok()?.to_owned();
            look.took(door.path());
            self.store.used(name, door.path(), Role::Source);
            Some(text)
        });
        if let Some(path) = since.filter(|_| found.is_none()) {
            self.tell_since(&path);
        }
        found
    }

    /// Whether nothing but a name that the recording has speaks for a file, which was written since.
    fn is_unproven(&self, judged: &Judged, found_by: FoundBy) -> bool {
        matches!(found_by, FoundBy::Path | FoundBy::Beside) && self.ran.is_since(judged)
    }

    fn tell_since(&self, path: &Path) {
        self.diag.warn_of_file(&SINCE, path.display().to_string());
    }

    fn tell_other(&self, judged: &Judged) {
        let why = if self.ran.is_since(judged) {
            &OTHER
        } else {
            &IN_MEMORY
        };
        let path = judged.door().path().display().to_string();
        self.diag.warn_of_file(why, path);
    }

    /// The map of a script, if there is one that fits. Only then the script is what its name says: that may be any file. A file that is
    /// another script is as if it were not there, and so are the maps beside it.
    fn find(&self, name: &Path, read: &mut Read) -> Option<Arc<SourceMap>> {
        let mut others = Vec::new();
        for place in self.places.scripts(name) {
            let open = || {
                let judged = self.store.open(&place.into_door()?).ok()?;
                let text = self.store.map_judged(&judged).ok()?;
                (text.len() <= MAX_MAP).then_some((judged, text))
            };
            let Some((judged, text)) = open() else {
                continue;
            };
            let script = Script {
                name,
                judged,
                text,
                ran: OnceLock::new(),
            };
            match self.map_of(&script, read) {
                Answer::Map(map) => {
                    self.note_used(&script);
                    return Some(map);
                }
                Answer::Nothing => return None,
                Answer::Other => others.extend(script.path().parent().map(Path::to_owned)),
            }
        }
        self.map_beside(name, &others, read)
    }

    fn note_used(&self, script: &Script<'_>) {
        let judged = &script.judged;
        let found_by = if judged.door().is_users() {
            FoundBy::Folder
        } else {
            FoundBy::Path
        };
        let is_proven = || judged.is_source(script.text, found_by, &SourceClaim::default());
        if self.ran(script) == Ran::Yes || is_proven() {
            self.store.used(script.name, script.path(), Role::Source);
        }
    }

    /// What functions and time tell of a script; said if it is another.
    fn ran(&self, script: &Script<'_>) -> Ran {
        *script.ran.get_or_init(|| {
            let ran = self.ran.judge(&script.name.to_string_lossy(), script.text);
            let is_given = script.judged.door().is_users();
            if ran == Ran::No {
                self.tell_other(&script.judged);
            } else if ran == Ran::Unknown && !is_given && self.ran.is_since(&script.judged) {
                self.tell_since(script.path());
                return Ran::No;
            }
            ran
        })
    }

    /// The first map that fits: in the script, in the folders that the user named, in the script's folder or below, beside where
    /// the script was.
    fn map_of(&self, script: &Script<'_>, read: &mut Read) -> Answer {
        let url = mapping_url(script.text);
        let inside = url.filter(|url| url.starts_with("data:"));
        let inside = inside.and_then(|data| {
            once(read, data.as_bytes(), || {
                flat(sourcemap::decode_data_url(data).ok()?)
            })
        });
        let fit = |map: Arc<SourceMap>, path: &Path| {
            if self.ran(script) == Ran::No {
                return Answer::Other;
            }
            let fitting = self.fitting(map, path, script.name, Some(script.text));
            fitting.map_or(Answer::Nothing, Answer::Map)
        };
        if let Some(map) = inside {
            return fit(map, script.name);
        }
        let places = self.places.maps(script.name, Some(script.path()), url);
        let Some((places, beside)) = places else {
            return Answer::Nothing;
        };
        let what = script.name.as_os_str().as_encoded_bytes();
        let look = Look::new(self.diag, Kind::SourceMap, what);
        for door in look.doors(places) {
            let Some((map, _)) = self.read_map(&look, &door, read) else {
                continue;
            };
            match fit(map, door.path()) {
                Answer::Nothing => {}
                Answer::Other => return Answer::Other,
                Answer::Map(map) => {
                    look.took(door.path());
                    self.store.used(&beside, door.path(), Role::Jit);
                    return Answer::Map(map);
                }
            }
        }
        // Lines of text that was made of it would be taken for its own. One that was edited since has the lines that ran; nobody
        // makes others of packages.
        let is_package = || script.name.to_string_lossy().contains("/node_modules/");
        let may_be_made = || !is_package() && !self.ran.is_since(&script.judged);
        let is_other = (is_typed(script.name) || may_be_made()) && self.ran(script) == Ran::No;
        if is_other {
            Answer::Other
        } else {
            Answer::Nothing
        }
    }

    /// The map of a script that is not there, by its name; not one that lies beside another script, or that was written since.
    fn map_beside(
        &self,
        script: &Path,
        others: &[PathBuf],
        read: &mut Read,
    ) -> Option<Arc<SourceMap>> {
        let (places, beside) = self.places.maps(script, None, None)?;
        let what = script.as_os_str().as_encoded_bytes();
        let look = Look::new(self.diag, Kind::SourceMap, what);
        look.doors(places).find_map(|door| {
            let path = door.path();
            let is_of_other = |other: &PathBuf| path.parent() == Some(other);
            if others.iter().any(is_of_other) {
                look.missed(path, "beside a script that did not run");
                return None;
            }
            let (map, judged) = self.read_map(&look, &door, read)?;
            if !door.is_users() && self.ran.is_since(&judged) {
                look.missed(path, "written after the recording ended");
                self.tell_since(path);
                return None;
            }
            let map = self.fitting(map, path, script, None)?;
            look.took(path);
            self.store.used(&beside, path, Role::Jit);
            Some(map)
        })
    }

    fn read_map(
        &self,
        look: &Look<'_>,
        door: &Door,
        read: &mut Read,
    ) -> Option<(Arc<SourceMap>, Judged)> {
        let path = door.path();
        let open = || {
            let judged = self.store.open(door)?;
            Ok((self.store.map_judged(&judged)?, judged))
        };
        let opened = open();
        let (bytes, judged) = opened
            .map_err(|error: InputError| look.missed(path, &error))
            .ok()?;
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
        Some((map, judged))
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

/// Whether a script is no JavaScript, so that what runs may be made of it first.
fn is_typed(script: &Path) -> bool {
    let extension = script.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["ts", "tsx", "mts", "cts", "jsx"].contains(&extension))
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
    let text = String::from_utf8_lossy(text);
    let lengths: Vec<usize> = text
        .split('\n')
        .map(|line| line.encode_utf16().count())
        .collect();
    if !reaches_into(map, &lengths) {
        return Some("has places that the script has not");
    }
    let why =
        "tells lines alone, and most of the script is one line: a minifier ran after it was made";
    let lines = text.split('\n').zip(lengths);
    let code: Vec<usize> = lines
        .map(|(line, length)| if names_map(line) { 0 } else { length })
        .collect();
    tells_lines_alone(map, &code).then_some(why)
}

/// Whether a line is the comment that names the script's map, or holds the whole map and so is longer than all code.
fn names_map(line: &str) -> bool {
    let line = line.trim_start();
    let comment = line.strip_prefix("//# ").or(line.strip_prefix("//@ "));
    comment.is_some_and(|comment| comment.starts_with("sourceMappingURL="))
}

/// Whether a map of several sources has one place for a line that most of the script stands in: webpack's `cheap-source-map` where a
/// minifier follows. All would be of one source.
fn tells_lines_alone(map: &SourceMap, lengths: &[usize]) -> bool {
    /// Characters that a line has that a minifier made.
    const LONG: usize = 2000;
    let all: usize = lengths.iter().sum();
    let longest = lengths.iter().copied().enumerate();
    let longest = longest.max_by_key(|(_, length)| *length);
    let Some((line, _)) = longest.filter(|(_, length)| *length >= LONG && length * 2 > all) else {
        return false;
    };
    let places = map.tokens().filter(|of| of.get_dst_line() as usize == line);
    map.get_source_count() > 1 && places.take(2).count() < 2
}

/// Whether the script has all places that the map tells of.
fn reaches_into(map: &SourceMap, lengths: &[usize]) -> bool {
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
        Some(DecodedMap::Regular(part)) => {
            is_sound(section.get_offset()) && part.tokens().all(|token| is_sound(token.get_dst()))
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
            ran: RanTexts::default(),
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

    /// Files of this machine at recorded paths, by the functions that ran and the time when the recording ended.
    #[cfg(target_os = "linux")]
    fn with_recorded(
        (functions, ended): (&[(u32, u32, &str)], SystemTime),
        (script, map, original): (&str, &str, &str),
        test: impl Fn(&SourceMaps<'_>, &str, &Diagnostics),
    ) {
        let folder = tempfile::Builder::new().prefix("pjit").tempdir();
        let folder = folder.expect("a folder");
        let path = folder.path().join("dist/app.js");
        for (name, text) in [
            ("dist/app.js", script),
            ("dist/app.js.map", map),
            ("src/app.ts", original),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let name = path.display().to_string();
        let (store, diag) = (Store::new(), Diagnostics::new());
        let read = || {
            let mut ran = RanFunctions::default();
            for (line, column, word) in functions {
                ran.add(&name, (*line, *column), word);
            }
            ran
        };
        let maps = SourceMaps::new(Search {
            store: &store,
            diag: &diag,
            places: ScriptPlaces {
                roots: vec![PathBuf::new()],
                ..ScriptPlaces::default()
            },
            sources: SourcePaths::default(),
            renames: true,
            ran: RanTexts::new(read, Some(ended)),
        });
        test(&maps, &name, &diag);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn scripts_are_proven_by_functions_or_by_time() {
        use std::time::Duration;
        let later = SystemTime::now() + Duration::from_secs(3600);
        let before = SystemTime::UNIX_EPOCH;
        let files = (SCRIPT, MAP, "");
        let has_map = |functions: &[(u32, u32, &str)], ended, said: &str| {
            let found = std::cell::Cell::new(false);
            with_recorded((functions, ended), files, |maps, name, diag| {
                found.set(maps.has_map(name));
                let warnings = diag.warnings().concat();
                assert_eq!(
                    warnings.contains(said),
                    !said.is_empty() || warnings.is_empty(),
                    "{warnings}"
                );
            });
            found.get()
        };
        assert!(has_map(&[], later, ""));
        assert!(!has_map(&[], before, "written after the recording"));
        assert!(has_map(&[(1, 11, "f")], before, ""));
        assert!(!has_map(&[(1, 11, "g")], before, "not the script that ran"));
        assert!(!has_map(&[(1, 12, "f")], later, "made of it in memory"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn originals_that_were_written_since_give_no_names() {
        use std::time::Duration;
        let text = "\n\nfunction work () { return 1 }\n\n\n\nlet other = () => 2\n";
        let later = SystemTime::now() + Duration::from_secs(3600);
        for (ended, name) in [(later, Some("work")), (SystemTime::UNIX_EPOCH, None)] {
            let ran = (&[(1, 11, "f")][..], ended);
            with_recorded(ran, (SCRIPT, MAP, text), |maps, script, diag| {
                let function = maps.function(script, 1, 11).expect("a place");
                assert_eq!(function.place.line, 3);
                assert_eq!(function.name.map(|name| name.name).as_deref(), name);
                assert_eq!(diag.has_warnings(), name.is_none());
            });
        }
    }

    /// Most of such a script is the comment with the map.
    #[test]
    fn maps_within_their_scripts_are_used() {
        // `{"version":3,"names":[],"sources":["a.js","b.js"],"mappings":"AAEA,aAIA","sourcesContent":["xxx…"]}`
        let (front, back) = (
            "IHsidmVyc2lvbiI6MywibmFtZXMiOltdLCJzb3VyY2VzIjpbImEuanMiLCJiLmpzIl0sIm1hcHBpbmdzIjoiQUFFQSxhQUlBIiwic291cmNlc0NvbnRlbnQiOlsi",
            "Il19",
        );
        let map = format!("{front}{}{back}", "eHh4".repeat(1000));
        let comments = ["//#", "//@"];
        for comment in comments {
            let url = format!("data:application/json;base64,{map}");
            let script = format!("function f(){{g()}}\n{comment} sourceMappingURL={url}\n");
            with_files(&[("app.js", &script)], |maps| {
                let found = maps.original("/app/dist/app.js", 1, 14);
                let found = found.map(|found| (found.file, found.line));
                assert_eq!(found, Some(("/app/dist/a.js".to_owned(), 7)));
            });
        }
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
        // One place for a line that a minifier made of all sources.
        let long = format!("{}\n//# sourceMappingURL=app.js.map\n", "f();".repeat(1000));
        let cheap = |mappings: &str| {
            format!(
                r#"{{"version":3,"file":"app.js","sources":["a.js","b.js"],"names":[],"mappings":"{mappings}"}}"#
            )
        };
        for (mappings, is_used) in [("AAAA", false), ("AAAA,IACA", true)] {
            let map = cheap(mappings);
            with_files(&[("app.js", &long), ("app.js.map", &map)], |maps| {
                let found = maps.original("/app/dist/app.js", 1, 1);
                assert_eq!(found.is_some(), is_used, "{mappings}");
            });
        }
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
