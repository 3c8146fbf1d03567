//! One file of WebAssembly: where functions lie, what they are called, and its custom sections.
//!
//! In: the bytes of a module, or of a component with modules inside. Out: [`CoreModule`]s in the order in which
//! wasmtime numbers them. What is damaged is left out; nothing is validated or compiled.

use std::ops::Range;

use crate::dso::NameStyle;
use crate::dso::demangle::{demangle, legacy_hash};
use crate::ids::{IndexVec, numbers};
use rustc_hash::FxHashMap;
use wasmparser::{KnownCustom, Name, NameSectionReader, Parser, Payload};

/// The modules of a file, in order.
#[derive(Debug, Default)]
pub struct WasmFile<'a> {
    /// One for a plain module, any number for a component.
    pub modules: Vec<CoreModule<'a>>,
}

numbers! {
    /// A function of a module, imports counted.
    pub struct FunctionIndex(pub u32);
    /// Index into [`CoreModule::bodies`].
    struct BodyId(u32);
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
    bodies: IndexVec<BodyId, Body>,
    names: Vec<(FunctionIndex, &'a str)>,
    custom: Vec<(&'a str, &'a [u8])>,
}

/// A function's place in the file.
#[derive(Clone, Copy, Debug)]
struct Body {
    /// Behind the number of local variables: their declarations are the first to have positions.
    first: u64,
    /// Behind the declarations.
    operators: u64,
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
                let operators = body.get_binary_reader_for_operators();
                let operators = operators.map_or(first, |reader| reader.original_position());
                self.bodies.push(Body {
                    first,
                    operators,
                    end,
                });
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

    /// Whether what describes its code is the same as of another one with the same code.
    #[must_use]
    pub fn tells_the_same(&self, other: &Self) -> bool {
        [".debug_info", ".debug_line"]
            .iter()
            .all(|name| self.custom(name) == other.custom(name))
            && self.source_map_url() == other.source_map_url()
    }

    /// The name of a function by its index, imports counted.
    #[must_use]
    pub fn function_name(&self, index: FunctionIndex) -> Option<&'a str> {
        let at = self
            .names
            .binary_search_by_key(&index, |(index, _)| *index)
            .ok()?;
        Some(self.names[at].1)
    }

    /// Functions by their names, as [`shown`] has them; of several with one name, none.
    #[must_use]
    pub fn indices_by_name(&self) -> FxHashMap<String, FunctionIndex> {
        let mut known: FxHashMap<String, Option<FunctionIndex>> = FxHashMap::default();
        for &(index, name) in &self.names {
            let several = known.contains_key(&shown(name.as_bytes()));
            known.insert(shown(name.as_bytes()), (!several).then_some(index));
        }
        let certain = known.into_iter().filter_map(|(name, at)| Some((name, at?)));
        certain.collect()
    }

    /// Positions in the file that belong to a function by its index, imports counted.
    #[must_use]
    pub fn body(&self, index: FunctionIndex) -> Option<Range<u64>> {
        let body = self.body_of(index)?;
        Some(body.first..body.end)
    }

    /// Position in the file of a function's first operator, by its index, imports counted.
    #[must_use]
    pub fn first_operator(&self, index: FunctionIndex) -> Option<u64> {
        Some(self.body_of(index)?.operators)
    }

    fn body_of(&self, index: FunctionIndex) -> Option<&Body> {
        self.bodies.get(BodyId(index.0.checked_sub(self.imports)?))
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

/// A name by which functions of a module and of a dump can be compared: wasmtime demangles names, and puts what tells crates
/// of one name apart behind them (`core[9f8d08631ff90aa5]::fmt`).
#[must_use]
pub fn shown(name: &[u8]) -> String {
    let demangled = demangle(name, NameStyle::Full);
    let mut text = String::with_capacity(demangled.len());
    for (number, piece) in demangled.split('[').enumerate() {
        let closed = piece.split_once(']');
        match closed.filter(|(id, _)| number > 0 && is_crate_id(id)) {
            Some((_, rest)) => text.push_str(rest),
            None if number > 0 => text.extend(["[", piece]),
            None => text.push_str(piece),
        }
    }
    if let Some((hash, "")) = legacy_hash(name) {
        text.push_str("::h");
        text.push_str(hash);
    }
    text
}

fn is_crate_id(text: &str) -> bool {
    text.len() > 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn part(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// Names of functions by rising index.
fn function_names(section: NameSectionReader<'_>) -> Vec<(FunctionIndex, &str)> {
    let mut names = Vec::new();
    for subsection in section.into_iter().map_while(Result::ok) {
        if let Name::Function(map) = subsection {
            let map = map.into_iter().map_while(Result::ok);
            names.extend(map.map(|naming| (FunctionIndex(naming.index), naming.name)));
        }
    }
    names.sort_by_key(|(index, _)| *index);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One import, two functions, names for the second and third, and a link to a source map.
    const MODULE: &[u8] = b"\0asm\x01\0\0\0\
        \x01\x04\x01\x60\0\0\
        \x02\x07\x01\x01m\x01f\0\0\
        \x03\x03\x02\0\0\
        \x0a\x0b\x02\x02\0\x0b\x06\x01\x02\x7f\x01\x01\x0b\
        \0\x13\x04name\x01\x0c\x02\x01\x03one\x02\x04_two\
        \0\x16\x10sourceMappingURL\x04x.js";

    #[test]
    fn functions_have_bodies_and_names() {
        let file = WasmFile::parse(MODULE).expect("a module");
        let [module] = &file.modules[..] else {
            panic!("{} modules", file.modules.len());
        };
        assert_eq!((module.imports, module.functions()), (1, 2));
        let code = usize::try_from(module.code_start).expect("small");
        assert_eq!(&MODULE[code..code + 2], [2, 2]);
        assert_eq!(module.code, &MODULE[code..code + 11]);
        let body = |index| {
            module
                .body(FunctionIndex(index))
                .map(|body| (body.start - module.code_start, body.end - module.code_start))
        };
        // Behind the number of local variables.
        assert_eq!(body(1), Some((3, 4)));
        assert_eq!(body(2), Some((6, 11)));
        assert_eq!((body(0), body(3)), (None, None));
        assert_eq!(
            module.first_operator(FunctionIndex(2)),
            Some(module.code_start + 8)
        );
        assert_eq!(module.function_name(FunctionIndex(1)), Some("one"));
        assert_eq!(module.function_name(FunctionIndex(0)), None);
        assert_eq!(
            module.indices_by_name().get("_two"),
            Some(&FunctionIndex(2))
        );
        assert_eq!(module.source_map_url(), Some("x.js"));
        assert!(!module.has_dwarf());
    }

    #[test]
    fn names_of_a_dump_are_those_of_the_module() {
        let pairs = [
            (
                "core[9f8d08631ff90aa5]::panicking::panic_fmt",
                "core::panicking::panic_fmt",
            ),
            (
                "_ZN3hot4spin17h3e80e4da2489d3dfE",
                "hot::spin::h3e80e4da2489d3df",
            ),
            ("<[u8]>::len", "<[u8]>::len"),
            ("a[1]", "a[1]"),
        ];
        for (name, expected) in pairs {
            assert_eq!(shown(name.as_bytes()), expected);
        }
    }

    #[test]
    fn modules_of_a_component_are_numbered() {
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        for _ in 0..2 {
            component.extend([1, u8::try_from(MODULE.len()).expect("short")]);
            component.extend(MODULE);
        }
        let file = WasmFile::parse(&component).expect("a component");
        let starts: Vec<u64> = file
            .modules
            .iter()
            .map(|module| module.code_start)
            .collect();
        assert_eq!(starts.len(), 2);
        assert_eq!(starts[1] - starts[0], MODULE.len() as u64 + 2);
    }

    #[test]
    fn cut_modules_are_read_as_far_as_they_go() {
        for end in 0..MODULE.len() {
            let file = WasmFile::parse(&MODULE[..end]);
            let functions = file.map_or(0, |file| file.modules[0].functions());
            assert!(functions <= 2);
        }
        assert!(WasmFile::parse(b"\0asm\x01\0\0\0").is_none());
        assert!(WasmFile::parse(b"\x7fELF").is_none());
    }
}
