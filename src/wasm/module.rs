//! One file of WebAssembly: where functions lie, what they are called, and its custom sections.
//!
//! In: the bytes of a module, or of a component with modules inside. Out: [`CoreModule`]s in the order in which
//! wasmtime numbers them. What is damaged is left out; nothing is validated or compiled.

use std::ops::Range;

use rustc_hash::FxHashMap;
use wasmparser::{KnownCustom, Name, NameSectionReader, Parser, Payload};

/// The modules of a file, in order.
#[derive(Debug, Default)]
pub struct WasmFile<'a> {
    /// One for a plain module, any number for a component.
    pub modules: Vec<CoreModule<'a>>,
}

/// A core module.
#[derive(Debug, Default)]
pub struct CoreModule<'a> {
    /// Where the code section's contents begin in the file: what addresses in DWARF count from.
    pub code_start: u64,
    /// The code section's contents.
    pub code: &'a [u8],
    /// Functions that are imported: the indices of those with bodies come behind.
    pub imports: u32,
    bodies: Vec<Body>,
    names: Vec<(u32, &'a str)>,
    custom: Vec<(&'a str, &'a [u8])>,
}

/// A function's place in the file.
#[derive(Clone, Copy, Debug)]
struct Body {
    /// Behind the number of local variables: their declarations are the first to have positions.
    first: u64,
    end: u64,
}

impl<'a> WasmFile<'a> {
    /// Reads a file; `None` if it is no WebAssembly, or holds no code.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        if !bytes.starts_with(b"\0asm") {
            return None;
        }
        let mut reader = Reader {
            bytes,
            open: Vec::new(),
            file: Self::default(),
        };
        // Behind damage, only what was read before it is known.
        for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
            reader.take(payload);
        }
        reader.finish()
    }
}

/// Modules under construction: those of components lie inside one another.
struct Reader<'a> {
    bytes: &'a [u8],
    /// For each module or component that has begun: its number, if it is a module.
    open: Vec<Option<usize>>,
    file: WasmFile<'a>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, payload: Payload<'a>) {
        match payload {
            Payload::Version { encoding, .. } => {
                let is_module = encoding == wasmparser::Encoding::Module;
                let number = is_module.then_some(self.file.modules.len());
                if is_module {
                    self.file.modules.push(CoreModule::default());
                }
                self.open.push(number);
            }
            Payload::End(_) => {
                self.open.pop();
            }
            payload => {
                let bytes = self.bytes;
                let open = self.open.last().copied().flatten();
                if let Some(module) = open.and_then(|at| self.file.modules.get_mut(at)) {
                    module.take(payload, bytes);
                }
            }
        }
    }

    fn finish(self) -> Option<WasmFile<'a>> {
        let has_code = |module: &CoreModule<'_>| !module.bodies.is_empty();
        self.file.modules.iter().any(has_code).then_some(self.file)
    }
}

impl<'a> CoreModule<'a> {
    fn take(&mut self, payload: Payload<'a>, bytes: &'a [u8]) {
        match payload {
            Payload::ImportSection(section) => {
                let imports = section.into_imports().map_while(Result::ok);
                let functions = imports.filter(|import| {
                    matches!(
                        import.ty,
                        wasmparser::TypeRef::Func(_) | wasmparser::TypeRef::FuncExact(_)
                    )
                });
                self.imports = u32::try_from(functions.count()).unwrap_or(u32::MAX);
            }
            Payload::CodeSectionStart {
                unchecked_range: range,
                ..
            } => {
                self.code_start = range.start;
                self.code = part(bytes, range).unwrap_or_default();
            }
            Payload::CodeSectionEntry(body) => {
                let Range { start, end } = body.range();
                let locals = body.get_locals_reader();
                let first = locals.map_or(start, |reader| reader.original_position());
                self.bodies.push(Body { first, end });
            }
            Payload::CustomSection(section) => {
                self.custom.push((section.name(), section.data()));
                if let KnownCustom::Name(names) = section.as_known() {
                    self.names.extend(function_names(names));
                }
            }
            _ => {}
        }
    }

    /// The contents of the first custom section of this name.
    #[must_use]
    pub fn custom(&self, name: &str) -> Option<&'a [u8]> {
        let found = self.custom.iter().find(|(known, _)| *known == name);
        found.map(|(_, data)| *data).filter(|data| !data.is_empty())
    }

    /// Whether it has DWARF.
    #[must_use]
    pub fn has_dwarf(&self) -> bool {
        self.custom(".debug_info").is_some() && self.custom(".debug_line").is_some()
    }

    /// The name of a function by its index, imports counted.
    #[must_use]
    pub fn function_name(&self, index: u32) -> Option<&'a str> {
        let at = self
            .names
            .binary_search_by_key(&index, |(index, _)| *index)
            .ok()?;
        Some(self.names[at].1)
    }

    /// Functions by their names; of several with one name, none.
    #[must_use]
    pub fn indices_by_name(&self) -> FxHashMap<&'a [u8], u32> {
        let mut known: FxHashMap<&[u8], u32> = FxHashMap::default();
        let mut several = Vec::new();
        for &(index, name) in &self.names {
            if known.insert(name.as_bytes(), index).is_some() {
                several.push(name.as_bytes());
            }
        }
        for name in several {
            known.remove(name);
        }
        known
    }

    /// Positions in the file that belong to a function by its index, imports counted.
    #[must_use]
    pub fn body(&self, index: u32) -> Option<Range<u64>> {
        let body = self.bodies.get(index.checked_sub(self.imports)? as usize)?;
        Some(body.first..body.end)
    }

    /// Number of functions with bodies.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.bodies.len()
    }

    /// URL or path of a source map.
    #[must_use]
    pub fn source_map_url(&self) -> Option<&'a str> {
        let data = self.custom("sourceMappingURL")?;
        let mut reader = wasmparser::BinaryReader::new(data, 0);
        reader.read_unlimited_string().ok()
    }
}

fn part(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// Names of functions by rising index.
fn function_names(section: NameSectionReader<'_>) -> Vec<(u32, &str)> {
    let mut names = Vec::new();
    for subsection in section.into_iter().map_while(Result::ok) {
        if let Name::Function(map) = subsection {
            let map = map.into_iter().map_while(Result::ok);
            names.extend(map.map(|naming| (naming.index, naming.name)));
        }
    }
    names.sort_by_key(|(index, _)| *index);
    names
}
