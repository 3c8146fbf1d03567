//! The tables that all threads of a file share: stacks as a tree, frames, functions, symbols, libraries, sources, texts.
//!
//! What samples use is entered when first met, and in the end put in the order of the file ([`arrange`]).

mod arrange;

pub(super) use arrange::Places;

use std::io::{self, Write};

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde_json::Value;

use super::super::columns::{long_list, number, text};
use super::super::names::frame_name;
use super::super::strings::{Strings, TextId};
use super::super::text::harmless;
use super::NONE;
use super::category::{self, Kind};
use super::libs::{LibId, Libs};
use crate::address::Avma;
use crate::functions::payers::Payers;
use crate::functions::{FunctionId, Functions};
use crate::ids::{Idx, IndexVec, Spare, index_vec, numbers};
use crate::profile::{CpuMode, Frame, FrameId, Profile, SourceLine, StackId, StringId, SymbolId};
use crate::runtimes::names::script_path;

numbers! {
    /// A stack of the file.
    pub(super) struct Stack(Spare);
    /// A frame of the file.
    struct RowId(Spare);
    /// A function of the file.
    struct FuncId(Spare);
    /// A symbol of the file.
    struct NativeId(Spare);
    /// A source file.
    struct SourceId(Spare);
}

/// A call path: its innermost frame, the path without it, and what is done where it ends.
struct Node {
    frame: RowId,
    prefix: Option<Stack>,
    doing: u16,
}

#[derive(Clone, Copy)]
struct FrameRow {
    /// [`NOWHERE`] for what is not in a file.
    address: u64,
    depth: u32,
    func: FuncId,
    native: Option<NativeId>,
    line: u32,
    column: u32,
    kind: Kind,
    /// What is done there, once all is arranged.
    doing: Option<u16>,
}

/// No address.
const NOWHERE: u64 = u64::MAX;

struct FuncRow {
    name: TextId,
    resource: Option<LibId>,
    source: Option<SourceId>,
    is_js: bool,
    /// Line and column of its beginning.
    start: Option<(u32, u32)>,
}

struct NativeRow {
    lib: LibId,
    address: u64,
    name: TextId,
    size: u64,
}

/// By symbol: the file of its lines, where it is not the one that the symbol's name has: that of a source map.
fn mapped(profile: &Profile) -> IndexVec<SymbolId, Option<StringId>> {
    let mut mapped = index_vec![None; profile.symbols.len()];
    // Lines of a function are in few files, and most in its own.
    let mut own: IndexVec<SymbolId, Option<StringId>> = index_vec![None; profile.symbols.len()];
    let plain = |file: &str| script_path(file).into_owned();
    for frame in &profile.frames {
        let (Some(id), Some(line)) = (frame.symbol, frame.line) else {
            continue;
        };
        let symbol = &profile[id];
        let Some(producer) = symbol.producer else {
            continue;
        };
        let is_new = mapped[id].is_none() && own[id] != Some(line.file);
        if !is_new || line.line == 0 || line.line == SourceLine::NO_LINE {
            continue;
        }
        let place = (producer.row().place)(symbol.name.as_bytes());
        let Some(file) = place.and_then(|place| symbol.name.get(place.file)) else {
            continue;
        };
        if plain(file) == plain(&profile[line.file]) {
            own[id] = Some(line.file);
        } else {
            mapped[id] = Some(line.file);
        }
    }
    mapped
}

/// What tells rows of functions apart.
type FuncKey = (TextId, Option<LibId>, Option<FunctionId>);

/// The tables under construction.
pub(super) struct Shared<'p> {
    profile: &'p Profile,
    functions: &'p Functions,
    payers: Payers<'p>,
    pub(super) strings: Strings,
    libs: Libs<'p>,
    nodes: IndexVec<Stack, Node>,
    /// By prefix and frame, those that do not stand directly behind their prefix.
    branches: FxHashMap<(Option<Stack>, RowId), Stack>,
    /// By root and the profile's stack.
    known_stacks: FxHashMap<(Option<Stack>, StackId), Stack>,
    /// The path that was entered last, root first, and where it begins: the next has much of it.
    last: (Option<Stack>, Vec<(FrameId, Stack)>),
    frames: IndexVec<RowId, FrameRow>,
    known_frames: IndexVec<FrameId, Option<RowId>>,
    funcs: IndexVec<FuncId, FuncRow>,
    /// By name, resource and function: several may have one name.
    known_funcs: FxHashMap<FuncKey, FuncId>,
    of_symbol: IndexVec<SymbolId, Option<FuncId>>,
    /// By symbol: the file that a source map gives its lines, if one does.
    mapped: IndexVec<SymbolId, Option<StringId>>,
    /// Functions of scripts in a file that is not their first one.
    elsewhere: FxHashMap<(FuncId, StringId), FuncId>,
    /// Names of symbols.
    known_names: IndexVec<SymbolId, Option<TextId>>,
    natives: IndexVec<NativeId, NativeRow>,
    known_natives: IndexVec<SymbolId, Option<NativeId>>,
    /// What kind of code symbols are in their own object.
    known_kinds: IndexVec<SymbolId, Option<Kind>>,
    sources: IndexVec<SourceId, TextId>,
    /// By text.
    known_sources: FxHashMap<TextId, SourceId>,
    /// By file of the profile.
    of_file: FxHashMap<StringId, SourceId>,
    /// Names of the libraries, once all is arranged.
    resources: IndexVec<LibId, TextId>,
    /// Texts in the order of the file, once all is arranged.
    texts: IndexVec<TextId, TextId>,
}

impl<'p> Shared<'p> {
    pub(super) fn new(profile: &'p Profile, functions: &'p Functions) -> Self {
        Self {
            profile,
            functions,
            payers: Payers::new(profile, functions),
            strings: Strings::with_capacity(profile.symbols.len()),
            libs: Libs::new(profile),
            nodes: IndexVec::new(),
            branches: FxHashMap::default(),
            known_stacks: FxHashMap::default(),
            last: (None, Vec::new()),
            frames: IndexVec::with_capacity(profile.frames.len()),
            known_frames: index_vec![None; profile.frames.len()],
            funcs: IndexVec::with_capacity(profile.symbols.len()),
            known_funcs: FxHashMap::with_capacity_and_hasher(profile.symbols.len(), FxBuildHasher),
            of_symbol: index_vec![None; profile.symbols.len()],
            mapped: mapped(profile),
            elsewhere: FxHashMap::default(),
            known_names: index_vec![None; profile.symbols.len()],
            natives: IndexVec::with_capacity(profile.symbols.len()),
            known_natives: index_vec![None; profile.symbols.len()],
            known_kinds: index_vec![None; profile.symbols.len()],
            sources: IndexVec::new(),
            known_sources: FxHashMap::default(),
            of_file: FxHashMap::default(),
            resources: IndexVec::new(),
            texts: IndexVec::new(),
        }
    }

    /// A root that is no function: the name of a thread below what ran on a CPU.
    pub(super) fn root(&mut self, name: &str) -> Stack {
        let name = self.strings.id(name);
        let func = self.func((name, None, None));
        let frame = self.frames.push(FrameRow {
            address: NOWHERE,
            depth: 0,
            func,
            native: None,
            line: NONE,
            column: NONE,
            kind: category::OTHER,
            doing: None,
        });
        self.node(None, frame, &[])
    }

    /// The stack of a sample, upon a root if there is one.
    pub(super) fn stack(&mut self, root: Option<Stack>, stack: StackId, leaf: FrameId) -> Stack {
        let profile = self.profile;
        let frames = profile.stacks.get(stack);
        if frames.is_empty() {
            let frame = self.frame(leaf, 0, None);
            return self.node(root, frame, &[leaf]);
        }
        if let Some(&known) = self.known_stacks.get(&(root, stack)) {
            return known;
        }
        let node = self.path(root, frames);
        self.known_stacks.insert((root, stack), node);
        node
    }

    /// Enters a path; frames are leaf first.
    fn path(&mut self, root: Option<Stack>, frames: &[FrameId]) -> Stack {
        let (old_root, mut path) = std::mem::replace(&mut self.last, (root, Vec::new()));
        let equal = path.iter().zip(frames.iter().rev());
        let equal = equal.take_while(|((old, _), new)| old == *new).count();
        path.truncate(if old_root == root { equal } else { 0 });
        let mut node = path.last().map(|(_, node)| *node).or(root);
        for (at, &id) in frames.iter().enumerate().rev().skip(path.len()) {
            let frame = match self.known_frames[id] {
                Some(known) => known,
                None => self.called(id, &path),
            };
            let inner = self.node(node, frame, &frames[at..]);
            path.push((id, inner));
            node = Some(inner);
        }
        self.last = (root, path);
        node.expect("a path has frames")
    }

    /// A frame that is met for the first time, behind a path.
    fn called(&mut self, id: FrameId, path: &[(FrameId, Stack)]) -> RowId {
        let symbol = self.profile[id].symbol;
        let is_inlined = self.profile.is_inlined(id);
        let (depth, native) = match symbol {
            _ if is_inlined => self.inside(path),
            Some(symbol) => (0, self.native(symbol)),
            None => (0, None),
        };
        self.frame(id, depth, native)
    }

    /// How deep a function is that is inlined at the end of a path, and in which symbol.
    fn inside(&self, path: &[(FrameId, Stack)]) -> (u32, Option<NativeId>) {
        let frames = path.iter().rev().zip(1..);
        for (row, depth) in frames.filter_map(|((id, _), at)| Some((self.known_frames[*id]?, at))) {
            let row = &self.frames[row];
            if row.depth == 0 {
                return (depth, row.native);
            }
        }
        (0, None)
    }

    /// The rest of a path that is new stands in a row, so only its first node is looked up. The whole of it, leaf first, tells what is
    /// done where it ends.
    fn node(&mut self, prefix: Option<Stack>, frame: RowId, path: &[FrameId]) -> Stack {
        let new = self.nodes.next_idx();
        let behind = Stack::from_usize(prefix.map_or(0, |prefix| prefix.index() + 1));
        let is_it = |node: &Node| node.prefix == prefix && node.frame == frame;
        if self.nodes.get(behind).is_some_and(is_it) {
            return behind;
        }
        if behind != new {
            let node = *self.branches.entry((prefix, frame)).or_insert(new);
            if node != new {
                return node;
            }
        }
        let doing = match path {
            [] => 0,
            path => category::doing(self.payers.of(path).activity),
        };
        self.nodes.push(Node {
            frame,
            prefix,
            doing,
        })
    }

    fn frame(&mut self, id: FrameId, depth: u32, native: Option<NativeId>) -> RowId {
        if let Some(known) = self.known_frames[id] {
            return known;
        }
        let frame = &self.profile[id];
        let func = self.func_of(id);
        let lines = frame
            .line
            .filter(|line| line.line > 0 && line.line != SourceLine::NO_LINE);
        // A function has one file; what a line of another file counts from is not shown.
        let source = self.funcs[func].source;
        let line = lines.filter(|line| self.is_of_file(source, line.file));
        let address = frame.object.and_then(|object| {
            let address = (frame.address, frame.object_address);
            self.libs.address(object, address)
        });
        let column = line.map(|line| line.column).filter(|column| *column > 0);
        let row = FrameRow {
            address: address.unwrap_or(NOWHERE),
            depth,
            func,
            native,
            line: line.map_or(NONE, |line| line.line),
            column: column.unwrap_or(NONE),
            kind: self.kind(frame),
            doing: None,
        };
        let number = self.frames.push(row);
        self.known_frames[id] = Some(number);
        number
    }

    /// What kind of code a frame is; of most, the symbol tells.
    fn kind(&mut self, frame: &Frame) -> Kind {
        let profile = self.profile;
        let is_own = |symbol: &SymbolId| frame.object == Some(profile[*symbol].object);
        match frame.symbol.filter(is_own) {
            Some(symbol) if frame.mode == CpuMode::User => {
                *self.known_kinds[symbol].get_or_insert_with(|| category::kind(profile, frame))
            }
            _ => category::kind(profile, frame),
        }
    }

    /// Whether a source is a file of the profile.
    fn is_of_file(&self, source: Option<SourceId>, file: StringId) -> bool {
        let Some(source) = source else { return false };
        match self.of_file.get(&file) {
            Some(&known) => known == source,
            None => {
                let text = self.strings.get(self.sources[source]);
                text == harmless(&self.profile[file])
            }
        }
    }

    fn func_of(&mut self, id: FrameId) -> FuncId {
        let profile = self.profile;
        let frame = &profile[id];
        let resource = frame.object.and_then(|object| self.libs.number(object));
        let Some(symbol) = frame.symbol else {
            let name = self.strings.id(&frame_name(profile, id));
            return self.func((name, resource, None));
        };
        let func = match self.of_symbol[symbol] {
            Some(func) => func,
            None => {
                let name = self.name(symbol);
                let function = self.functions.of_frame(id);
                let func = self.func((name, resource, Some(function)));
                self.of_symbol[symbol] = Some(func);
                self.place_in_name(func, symbol);
                func
            }
        };
        let Some(line) = frame.line else {
            return func;
        };
        let row = &self.funcs[func];
        let (source, is_js) = (row.source, row.is_js);
        match source {
            None => self.funcs[func].source = Some(self.source_of(line.file)),
            // A source map covers a script in part: what is in another file is another function, so that no line is lost.
            Some(_) if is_js && line.line > 0 && !self.is_of_file(source, line.file) => {
                return self.in_file(func, line.file);
            }
            Some(_) => {}
        }
        func
    }

    /// The same function in another file.
    fn in_file(&mut self, func: FuncId, file: StringId) -> FuncId {
        if let Some(known) = self.elsewhere.get(&(func, file)) {
            return *known;
        }
        let source = Some(self.source_of(file));
        let row = &self.funcs[func];
        let new = self.funcs.push(FuncRow {
            name: row.name,
            resource: row.resource,
            source,
            is_js: row.is_js,
            start: None,
        });
        self.elsewhere.insert((func, file), new);
        new
    }

    /// The source of a file of the profile.
    fn source_of(&mut self, file: StringId) -> SourceId {
        if let Some(&known) = self.of_file.get(&file) {
            return known;
        }
        let source = self.source(&self.profile[file]);
        self.of_file.insert(file, source);
        source
    }

    fn name(&mut self, symbol: SymbolId) -> TextId {
        let name = || self.strings.id(&harmless(&self.profile[symbol].name));
        *self.known_names[symbol].get_or_insert_with(name)
    }

    /// Functions of scripts are told by their names where they begin.
    ///
    /// Not where a source map says that they are in another file: then their lines tell.
    fn place_in_name(&mut self, func: FuncId, id: SymbolId) {
        let profile = self.profile;
        let symbol = &profile[id];
        let name = symbol.name.as_str();
        if !profile[symbol.object].is_jit && symbol.producer.is_none() {
            return;
        }
        let runtime = symbol.producer.unwrap_or_default().row();
        self.funcs[func].is_js = (runtime.is_script)(name);
        let Some(place) = (runtime.place)(name.as_bytes()) else {
            return;
        };
        let Some(file) = name.get(place.file) else {
            return;
        };
        if let Some(original) = self.mapped[id] {
            let source = self.source_of(original);
            self.funcs[func].source = Some(source);
            return;
        }
        let source = self.source(file);
        let row = &mut self.funcs[func];
        row.source = Some(source);
        row.start = Some((place.line, place.column));
    }

    fn func(&mut self, key: FuncKey) -> FuncId {
        let (name, resource, _) = key;
        let new = || {
            self.funcs.push(FuncRow {
                name,
                resource,
                source: None,
                is_js: false,
                start: None,
            })
        };
        *self.known_funcs.entry(key).or_insert_with(new)
    }

    fn source(&mut self, file: &str) -> SourceId {
        let file = self.strings.id(&harmless(file));
        let new = || self.sources.push(file);
        *self.known_sources.entry(file).or_insert_with(new)
    }

    fn native(&mut self, id: SymbolId) -> Option<NativeId> {
        if let Some(known) = self.known_natives[id] {
            return Some(known);
        }
        let symbol = &self.profile[id];
        let address = self
            .libs
            .address(symbol.object, (Avma(symbol.start.0), symbol.start));
        let lib = self.libs.number(symbol.object);
        let (address, lib) = address.zip(lib)?;
        let row = NativeRow {
            lib,
            address,
            name: self.name(id),
            size: symbol.end.0.saturating_sub(symbol.start.0),
        };
        let number = self.natives.push(row);
        self.known_natives[id] = Some(number);
        Some(number)
    }

    /// What frames may do.
    pub(super) fn categories(&self) -> Value {
        category::list(self.payers.activities().iter().copied())
    }

    /// The libraries, as a list of their own in the file.
    pub(super) fn push_libs(&self, json: &mut String) {
        self.libs.push(json);
    }

    /// Writes all tables as one object, the end of which stays in `json`.
    pub(super) fn write(self, json: &mut String, out: &mut dyn Write) -> io::Result<()> {
        json.push_str("{\"stackTable\":{");
        column("frame", &self.nodes.raw, json, out, |node, json| {
            number(node.frame.index() as u64, json)
        })?;
        let mut at = 0;
        column("prefixOffset", &self.nodes.raw, json, out, |node, json| {
            let offset = match node.prefix {
                None => 0,
                Some(prefix) => at - prefix.index() as u64,
            };
            number(offset, json);
            at += 1;
        })?;
        end(self.nodes.len(), json);
        self.write_frames(json, out)?;
        self.write_funcs(json, out)?;
        json.push_str(",\"resourceTable\":{");
        let names = &self.resources.raw;
        let all: Vec<u64> = (0..names.len() as u64).collect();
        column("lib", &all, json, out, |lib, json| number(*lib, json))?;
        column("name", names, json, out, |name, json| {
            number(name.0.into(), json)
        })?;
        column("host", &all, json, out, |_, json| json.push_str("null"))?;
        // A library.
        column("type", &all, json, out, |_, json| json.push('1'))?;
        end(names.len(), json);
        self.write_natives(json, out)?;
        self.write_sources(json, out)?;
        json.push_str(
            ",\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0}",
        );
        json.push_str(",\"stringArray\":");
        long_list(json, &self.texts.raw, out, |id, json| {
            text(self.strings.get(*id), json)
        })?;
        json.push('}');
        Ok(())
    }

    fn write_frames(&self, json: &mut String, out: &mut dyn Write) -> io::Result<()> {
        json.push_str(",\"frameTable\":{");
        let rows = &self.frames.raw;
        column("address", rows, json, out, |row, json| match row.address {
            NOWHERE => json.push_str("-1"),
            address => number(address, json),
        })?;
        column("inlineDepth", rows, json, out, |row, json| {
            number(row.depth.into(), json)
        })?;
        column("category", rows, json, out, |row, json| {
            number(row.doing.unwrap_or_default().into(), json)
        })?;
        column("subcategory", rows, json, out, |row, json| {
            number(row.kind.into(), json)
        })?;
        column("func", rows, json, out, |row, json| {
            number(row.func.index() as u64, json)
        })?;
        column("nativeSymbol", rows, json, out, |row, json| {
            optional_id(row.native, json)
        })?;
        column("innerWindowID", rows, json, out, |_, json| json.push('0'))?;
        column("line", rows, json, out, |row, json| {
            optional(row.line, json)
        })?;
        column("column", rows, json, out, |row, json| {
            optional(row.column, json)
        })?;
        column("originalLocation", rows, json, out, |_, json| {
            json.push_str("null")
        })?;
        end(rows.len(), json);
        Ok(())
    }

    fn write_funcs(&self, json: &mut String, out: &mut dyn Write) -> io::Result<()> {
        json.push_str(",\"funcTable\":{");
        let rows = &self.funcs.raw;
        let truth = |is: bool, into: &mut String| into.push_str(if is { "true" } else { "false" });
        column("name", rows, json, out, |row, json| {
            number(row.name.0.into(), json)
        })?;
        column("isJS", rows, json, out, |row, json| truth(row.is_js, json))?;
        column("relevantForJS", rows, json, out, |_, json| {
            truth(false, json)
        })?;
        column("resource", rows, json, out, |row, json| {
            match row.resource {
                None => json.push_str("-1"),
                Some(resource) => number(resource.index() as u64, json),
            }
        })?;
        column("source", rows, json, out, |row, json| {
            optional_id(row.source, json)
        })?;
        column("lineNumber", rows, json, out, |row, json| {
            optional(row.start.map_or(NONE, |(line, _)| line), json);
        })?;
        column("columnNumber", rows, json, out, |row, json| {
            let column = row
                .start
                .map(|(_, column)| column)
                .filter(|column| *column > 0);
            optional(column.unwrap_or(NONE), json);
        })?;
        column("originalLocation", rows, json, out, |_, json| {
            json.push_str("null")
        })?;
        end(rows.len(), json);
        Ok(())
    }

    fn write_natives(&self, json: &mut String, out: &mut dyn Write) -> io::Result<()> {
        json.push_str(",\"nativeSymbols\":{");
        let rows = &self.natives.raw;
        column("libIndex", rows, json, out, |row, json| {
            number(row.lib.index() as u64, json)
        })?;
        column("address", rows, json, out, |row, json| {
            number(row.address, json)
        })?;
        column("name", rows, json, out, |row, json| {
            number(row.name.0.into(), json)
        })?;
        column("functionSize", rows, json, out, |row, json| {
            match row.size {
                0 => json.push_str("null"),
                size => number(size, json),
            }
        })?;
        end(rows.len(), json);
        Ok(())
    }

    fn write_sources(&self, json: &mut String, out: &mut dyn Write) -> io::Result<()> {
        json.push_str(",\"sources\":{");
        let rows = &self.sources.raw;
        column("id", rows, json, out, |_, json| json.push_str("null"))?;
        column("filename", rows, json, out, |file, json| {
            number(file.0.into(), json)
        })?;
        column("startLine", rows, json, out, |_, json| json.push('1'))?;
        column("startColumn", rows, json, out, |_, json| json.push('1'))?;
        column("sourceMapURL", rows, json, out, |_, json| {
            json.push_str("null")
        })?;
        column("content", rows, json, out, |_, json| json.push_str("null"))?;
        end(rows.len(), json);
        Ok(())
    }
}

/// A column of a table, with a comma behind.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn column<T>(
    name: &str,
    rows: &[T],
    json: &mut String,
    out: &mut dyn Write,
    mut push: impl FnMut(&T, &mut String),
) -> io::Result<()> {
    text(name, json);
    json.push(':');
    long_list(json, rows, out, |row, json| push(row, json))?;
    json.push(',');
    Ok(())
}

/// The end of a table.
pub(super) fn end(length: usize, json: &mut String) {
    json.push_str("\"length\":");
    number(length as u64, json);
    json.push('}');
}

/// [`NONE`] is null.
fn optional(value: u32, json: &mut String) {
    match value {
        NONE => json.push_str("null"),
        value => number(value.into(), json),
    }
}

/// None is null.
fn optional_id(id: Option<impl Idx>, json: &mut String) {
    match id {
        None => json.push_str("null"),
        Some(id) => number(id.index() as u64, json),
    }
}
