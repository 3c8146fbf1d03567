//! The functions of a profile: frames that are one function under one clean name, with their kinds.
//!
//! In: a profile and the user's rules. Out: [`Functions`], by which all questions count. A function is an object's label and a
//! clean name; copies, tiers and lives of the process are one. Where several functions of a recording have one name,
//! parameters or folders tell them apart: `work(int)` that calls `work(double)` is not recursive. Comparisons know only
//! [`Identity`], which is the same whatever else a recording has.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::kinds::{self, Corrections, Facts, Kind, OwnRules};
use crate::build_id::BuildId;
use crate::ids::{IndexVec, index_vec};
use crate::intern::ItemIndex;
use crate::profile::{
    CpuMode, Frame, FrameId, Object, ObjectId, Origin, Producer, Profile, SymbolId,
};
use crate::runtimes::CleanName;
use crate::runtimes::dump_names::numbers_of_dump;
use crate::runtimes::names::clean_object;

crate::ids::numbers! {
    /// Index into [`Functions::all`].
    pub struct FunctionId(pub u32);
}

/// By what a function is the same in every recording.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Object: `node`, `libc.so.6`, `[jit]`, `[kernel]`.
    pub object: String,
    /// Name, and where it is in the sources.
    pub name: CleanName,
}

/// What stands where a function has no name.
pub const UNKNOWN: &str = "[unknown]";

impl Identity {
    /// As `peek` accepts it and JSON says it: 32 bits of a hash of label and name. Directories take no part.
    #[must_use]
    pub fn hash(&self) -> u32 {
        let (line, column) = (self.name.line.to_string(), self.name.column.to_string());
        let parts = [
            &self.object,
            &self.name.name,
            self.name.file_name(),
            &line,
            &column,
        ];
        fnv(parts.iter().flat_map(|part| part.bytes().chain([0xff])))
    }

    /// As comparisons know it: wherever the file of the source lies.
    #[must_use]
    pub fn without_directory(&self) -> Self {
        let mut identity = self.clone();
        identity.name.file = identity.name.file_name().to_owned();
        identity
    }

    /// The hash as text.
    #[must_use]
    pub fn id(&self) -> String {
        format!("f:{:08x}", self.hash())
    }
}

/// FNV-1a: stable whatever the build, and there is nobody to deceive.
fn fnv(bytes: impl Iterator<Item = u8>) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 32)) as u32
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Object and clean name.
    pub identity: Identity,
    /// What tells it from others of this identity, as it is put behind the name: `(int)`, ` in /opt/old`.
    pub apart: Option<String>,
    /// The name as the recording has it, of the first frame.
    pub full: String,
    /// What kind of code it is.
    pub kind: Kind,
}

impl Function {
    /// [`Identity::id`], and what tells the function from others of that.
    #[must_use]
    pub fn id(&self) -> String {
        let id = self.identity.id();
        match &self.apart {
            None => id,
            Some(apart) => format!("{id}.{:08x}", fnv(apart.bytes())),
        }
    }

    /// The name with all that is known.
    #[must_use]
    pub fn full_name(&self) -> String {
        self.identity.name.full() + self.apart.as_deref().unwrap_or_default()
    }
}

/// Which functions there are, and which one each frame is.
#[derive(Debug, Default)]
pub struct Functions {
    /// In the order of their first frames.
    pub all: IndexVec<FunctionId, Function>,
    of_frame: IndexVec<FrameId, FunctionId>,
    /// How it was told what is own.
    pub basis: Basis,
    /// Whether the user said what is own.
    pub is_told: bool,
    /// Whose generated code there is.
    pub producers: Vec<Producer>,
    /// What the user knows better than the rules for packages and activities.
    pub corrections: Corrections,
}

/// How it was told what is own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// By names.
    #[default]
    Name,
    /// By source files, where they are known.
    Path,
    /// As the user said.
    Rules,
    /// Nothing was own by names, so the program is, whatever it is called.
    Program,
}

impl Functions {
    /// Classifies all frames.
    #[must_use]
    pub fn of(profile: &Profile, rules: &OwnRules) -> Self {
        let mut found = TableMaker::new(profile, rules, false).make();
        if !found.has_own() && rules.own.is_none() {
            let program = TableMaker::new(profile, rules, true).make();
            if program.has_own() {
                found = program;
                found.basis = Basis::Program;
            }
        }
        found
    }

    /// The function of a frame.
    #[must_use]
    #[inline]
    pub fn of_frame(&self, frame: FrameId) -> FunctionId {
        self.of_frame[frame]
    }

    /// A function.
    #[must_use]
    #[inline]
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.all[id]
    }

    /// Whether it is the user's.
    #[must_use]
    #[inline]
    pub fn is_own(&self, id: FunctionId) -> bool {
        self.get(id).kind == Kind::Own
    }

    fn has_own(&self) -> bool {
        self.all.iter().any(|function| function.kind == Kind::Own)
    }
}

/// Label of all code that was made at run time.
pub const JIT: &str = "[jit]";

/// Whether a file's name is that of a dump, of which a part has no name.
fn is_dump(name: &str) -> bool {
    numbers_of_dump(name.as_bytes()).is_some()
}

/// The label under which an object is shown and compared.
#[must_use]
pub fn object_label(object: Option<&Object>, is_kernel: bool) -> String {
    match object {
        _ if is_kernel => "[kernel]".to_owned(),
        None => UNKNOWN.to_owned(),
        Some(object) if object.is_kernel => "[kernel]".to_owned(),
        Some(object) if object.is_jit || is_dump(&object.short_name) => JIT.to_owned(),
        Some(object) => clean_object(&object.long_name).to_owned(),
    }
}

/// g++ gives functions that are only ever inlined no namespace: the user's `operator()` and the library's are not one function.
fn labelled(clean: CleanName, whose: &str) -> CleanName {
    CleanName {
        name: format!("{} ({whose})", clean.name),
        ..clean
    }
}

struct TableMaker<'p> {
    profile: &'p Profile,
    rules: &'p OwnRules,
    /// Whether the program is own, whatever it is called; of a runtime, the packages that it executes.
    own_program: bool,
    /// Whether there is code that a known runtime made.
    makes_code: bool,
    is_main: IndexVec<ObjectId, bool>,
    /// By object: whether it is a runtime, once that was asked.
    is_runtime: IndexVec<ObjectId, Option<bool>>,
    /// Numbers of the functions by identity and by what tells apart.
    ids: ItemIndex<FunctionId>,
    /// Hashes of these.
    hashes: IndexVec<FunctionId, u64>,
    /// By function: what may tell it from others of its identity.
    marks: IndexVec<FunctionId, Mark<'p>>,
    /// By object: the first one that is the same file.
    files: IndexVec<ObjectId, ObjectId>,
    /// Functions of frames by what decides: object, symbol, whether in the kernel.
    known: FxHashMap<(Option<ObjectId>, Option<SymbolId>, bool), FunctionId>,
    out: Functions,
}

impl<'p> TableMaker<'p> {
    fn new(profile: &'p Profile, rules: &'p OwnRules, own_program: bool) -> Self {
        let mut is_main = index_vec![false; profile.objects.len()];
        for main in profile.threads.iter().filter_map(|thread| thread.main) {
            is_main[main] = true;
        }
        Self {
            profile,
            rules,
            own_program,
            makes_code: profile
                .symbols
                .iter()
                .any(|symbol| symbol.producer.is_some_and(Producer::is_known)),
            is_main,
            is_runtime: index_vec![None; profile.objects.len()],
            ids: ItemIndex::default(),
            hashes: IndexVec::new(),
            marks: IndexVec::new(),
            files: files(profile),
            known: FxHashMap::default(),
            out: Functions::default(),
        }
    }

    fn make(mut self) -> Functions {
        self.out
            .of_frame
            .raw
            .reserve_exact(self.profile.frames.len());
        for frame in &self.profile.frames {
            let is_kernel = frame.mode == CpuMode::Kernel;
            let key = (frame.object, frame.symbol, is_kernel);
            let id = match self.known.get(&key) {
                Some(id) => *id,
                None => {
                    let id = self.function(frame, is_kernel);
                    self.known.insert(key, id);
                    id
                }
            };
            self.out.of_frame.push(id);
        }
        self.tell_apart();
        self.out.basis = self.basis();
        self.out.is_told = self.rules.own.is_some();
        self.out.corrections = self.rules.corrections.clone();
        self.out.producers.sort_unstable();
        self.out.producers.dedup();
        self.out
    }

    fn basis(&self) -> Basis {
        let by_path = |symbol: &crate::profile::Symbol| {
            symbol.origin != Origin::Unknown && self.is_main[symbol.object]
        };
        if !self.rules.is_empty() {
            Basis::Rules
        } else if self.profile.symbols.iter().any(by_path) {
            Basis::Path
        } else {
            Basis::Name
        }
    }

    fn is_runtime(&mut self, object: ObjectId, is_main: bool) -> bool {
        let known = &mut self.is_runtime[object];
        let name = &self.profile[object].long_name;
        *known.get_or_insert_with(|| kinds::is_runtime(name, is_main))
    }

    fn function(&mut self, frame: &Frame, is_kernel: bool) -> FunctionId {
        let profile = self.profile;
        let object = frame.object.map(|id| &profile[id]);
        let symbol = frame.symbol.map(|id| &profile[id]);
        let producer = symbol.and_then(|symbol| symbol.producer);
        let name = symbol.map(|symbol| symbol.name.as_str());
        let main = frame.object.is_some_and(|id| self.is_main[id]);
        let is_runtime = frame.object.is_some_and(|id| self.is_runtime(id, main));
        // Builtins may lie in the program, too.
        let built_in = name.and_then(Producer::of_built_in);
        let built_in = built_in.filter(|_| main && is_runtime);
        let clean = match name {
            Some(name) => CleanName::of(name, built_in.or(producer)),
            None => CleanName {
                name: UNKNOWN.to_owned(),
                ..CleanName::default()
            },
        };
        let origin = symbol.map_or(Origin::Unknown, |symbol| symbol.origin);
        let facts = Facts {
            object,
            name,
            clean: &clean,
            producer,
            is_kernel,
            is_main: main,
            origin,
        };
        let kind = match kinds::classify(&facts, self.rules) {
            // A tool may be a package: what is not the user's is still not the runtime's that executes it.
            Kind::Dependency if self.own_program && producer.is_some() => Kind::Own,
            Kind::Runtime if self.own_program && main && !self.makes_code => Kind::Own,
            kind => kind,
        };
        let bare = symbol.is_some_and(|symbol| symbol.inlined) && !clean.name.contains("::");
        let clean = match origin {
            Origin::Std if bare => labelled(clean, "std"),
            Origin::Dependency if bare => labelled(clean, "dependency"),
            _ => clean,
        };
        self.out.producers.extend(producer);
        let object = match producer {
            Some(_) => JIT.to_owned(),
            None => object_label(object, is_kernel),
        };
        let identity = Identity {
            object,
            name: clean,
        };
        let mark = Mark {
            file: frame
                .object
                .filter(|_| symbol.is_some() && producer.is_none() && is_path(&identity.object))
                .map(|object| self.files[object]),
            parameters: symbol.and_then(|symbol| symbol.parameters.as_deref()),
        };
        let hash = FxBuildHasher.hash_one((&identity, mark));
        let (all, hashes, marks) = (&mut self.out.all, &mut self.hashes, &mut self.marks);
        let new = all.next_idx();
        let is = |id: FunctionId| {
            hashes[id] == hash && marks[id] == mark && all[id].identity == identity
        };
        let hash_of = |id: FunctionId| hashes[id];
        let known = self.ids.find_or_add(hash, new, is, hash_of);
        if known.is_none() {
            hashes.push(hash);
            marks.push(mark);
            let full = name.unwrap_or(UNKNOWN).to_owned();
            all.push(Function {
                identity,
                apart: None,
                full,
                kind,
            });
        }
        known.unwrap_or(new)
    }

    /// Says what tells functions of one identity apart, and makes one of those that nothing does.
    fn tell_apart(&mut self) {
        let mut groups: FxHashMap<&Identity, Vec<FunctionId>> = FxHashMap::default();
        for (id, function) in self.out.all.iter_enumerated() {
            groups.entry(&function.identity).or_default().push(id);
        }
        let mut groups: Vec<Vec<FunctionId>> = groups
            .into_values()
            .filter(|group| group.len() > 1)
            .collect();
        if groups.is_empty() {
            return;
        }
        groups.sort_unstable();
        let mut same: IndexVec<FunctionId, FunctionId> = self.out.all.indices().collect();
        for group in groups {
            let apart = Apart::of(&group, &self.marks);
            let mut firsts: Vec<(Mark<'_>, FunctionId)> = Vec::new();
            for id in group {
                let mark = apart.mark(self.marks[id]);
                match firsts.iter().find(|(known, _)| *known == mark) {
                    Some((_, first)) => same[id] = *first,
                    None => {
                        firsts.push((mark, id));
                        self.out.all[id].apart = apart.text(mark, self.profile);
                    }
                }
            }
        }
        self.unite(&same);
    }

    /// Leaves one function where several are the same.
    fn unite(&mut self, same: &IndexVec<FunctionId, FunctionId>) {
        let mut numbers: IndexVec<FunctionId, FunctionId> = IndexVec::new();
        let mut left: IndexVec<FunctionId, Function> = IndexVec::new();
        for (id, function) in std::mem::take(&mut self.out.all).into_iter_enumerated() {
            // The first of them has its number already.
            numbers.push(match same[id] {
                first if first == id => left.push(function),
                first => numbers[first],
            });
        }
        self.out.all = left;
        for function in &mut self.out.of_frame {
            *function = numbers[*function];
        }
    }
}

/// What may tell a function from others of its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Mark<'p> {
    /// The file that it is in, for code of files.
    file: Option<ObjectId>,
    /// Its parameters, where they are known.
    parameters: Option<&'p str>,
}

/// What tells the functions of a group apart.
struct Apart<'p> {
    by_file: bool,
    by_parameters: bool,
    /// The parameters that each file has, where there is one kind of them only.
    only: FxHashMap<Option<ObjectId>, Option<&'p str>>,
}

impl<'p> Apart<'p> {
    fn of(group: &[FunctionId], marks: &IndexVec<FunctionId, Mark<'p>>) -> Self {
        let mut only: FxHashMap<Option<ObjectId>, Option<&'p str>> = FxHashMap::default();
        let mut by_parameters = false;
        let marks = || group.iter().map(|id| marks[*id]);
        for mark in marks().filter(|mark| mark.parameters.is_some()) {
            let known = only.entry(mark.file).or_insert(mark.parameters);
            if *known != mark.parameters {
                (*known, by_parameters) = (None, true);
            }
        }
        let first = marks().next().and_then(|mark| mark.file);
        Self {
            by_file: marks().any(|mark| mark.file != first),
            by_parameters,
            only,
        }
    }

    /// As far as it matters. An inlined copy, of which no parameters are known, is the only function of its name in the file.
    fn mark(&self, mark: Mark<'p>) -> Mark<'p> {
        let only = || self.only.get(&mark.file).copied().flatten();
        let parameters = mark.parameters.or_else(only);
        Mark {
            file: mark.file.filter(|_| self.by_file),
            parameters: parameters.filter(|_| self.by_parameters),
        }
    }

    fn text(&self, mark: Mark<'_>, profile: &Profile) -> Option<String> {
        let folder = mark.file.map(|file| folder(&profile[file].long_name));
        let folder = folder.map_or(String::new(), |folder| format!(" in {folder}"));
        let text = format!("{}{folder}", mark.parameters.unwrap_or_default());
        (!text.is_empty()).then_some(text)
    }
}

fn folder(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => ".",
    }
}

/// Whether a label stands for files, and not for the kernel or code made at run time.
fn is_path(label: &str) -> bool {
    !label.starts_with('[')
}

/// By object: the first one of the same path, or of the same name and build ID: containers have many paths for one file.
fn files(profile: &Profile) -> IndexVec<ObjectId, ObjectId> {
    let mut by_path: FxHashMap<&str, ObjectId> = FxHashMap::default();
    let mut by_build: FxHashMap<(&str, BuildId), ObjectId> = FxHashMap::default();
    let mut files = IndexVec::new();
    for (id, object) in profile.objects.iter_enumerated() {
        let path = object.long_name.as_str();
        let build = object.build_id.map(|build| (clean_object(path), build));
        let known = build.and_then(|build| by_build.get(&build));
        let file = known.or(by_path.get(path)).copied().unwrap_or(id);
        by_path.entry(path).or_insert(file);
        if let Some(build) = build {
            by_build.entry(build).or_insert(file);
        }
        files.push(file);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::tally::Tally;
    use crate::report::testing::ProfileBuilder;

    /// Functions with what tells them apart, and which are their own callers.
    fn told(profile: &Profile) -> Vec<(String, u64)> {
        let functions = Functions::of(profile, &OwnRules::default());
        let tally = Tally::of(profile, &functions, crate::profile::EventId(0));
        let ids = functions.all.indices();
        let mut all: Vec<(String, u64)> = ids
            .map(|id| {
                let name = functions.get(id).full_name();
                (name, tally.of_function(id).inclusive.period)
            })
            .collect();
        all.sort_unstable();
        all
    }

    fn owned(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
        rows.iter()
            .map(|(name, weight)| ((*name).to_owned(), *weight))
            .collect()
    }

    /// `_Z4workd`, called by `_Z4worki` and by a clone of it, of which one copy was inlined.
    fn overloads(parameters: [Option<&str>; 3]) -> Profile {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "work2;work;main", 10);
        builder.sample("x", "work1;main", 5);
        builder.sample("x", "work(inlined);main", 1);
        let mut profile = builder.finish();
        for (name, parameters) in ["work", "work1", "work2"].into_iter().zip(parameters) {
            let mut symbols = profile.symbols.iter_mut();
            let symbol = symbols
                .find(|s| s.name == name && !s.inlined)
                .expect("a symbol");
            symbol.parameters = parameters.map(Box::from);
        }
        for symbol in &mut profile.symbols {
            symbol.name = symbol.name.trim_end_matches(['1', '2']).to_owned();
        }
        profile
    }

    #[test]
    fn parameters_tell_functions_of_one_name_apart() {
        let profile = overloads([Some("(int)"), Some("(int)"), Some("(double)")]);
        let expected = [
            ("main", 16),
            ("work", 1),
            ("work(double)", 10),
            ("work(int)", 15),
        ];
        assert_eq!(told(&profile), owned(&expected));
        // Inlined ones as well, as far as their parameters are known.
        let mut inlined = profile;
        let mut symbols = inlined.symbols.iter_mut();
        let symbol = symbols.find(|symbol| symbol.inlined).expect("a symbol");
        symbol.parameters = Some("(double)".into());
        let expected = [("main", 16), ("work(double)", 11), ("work(int)", 15)];
        assert_eq!(told(&inlined), owned(&expected));
        // Copies of one function stay one, inlined ones too.
        for parameters in [[None; 3], [Some("(int)"); 3]] {
            let profile = overloads(parameters);
            assert_eq!(told(&profile), owned(&[("main", 16), ("work", 16)]));
        }
    }

    #[test]
    fn folders_tell_programs_of_one_name_apart() {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "work@old", 10);
        builder.sample("x", "work@new", 5);
        let mut profile = builder.finish();
        let is_path = |path: &str| path.starts_with("/usr/bin/");
        assert!(
            profile
                .objects
                .iter()
                .all(|object| is_path(&object.long_name))
        );
        for object in &mut profile.objects {
            object.long_name = format!("/opt/{}/srv", object.short_name);
        }
        let expected = [("work in /opt/new", 5), ("work in /opt/old", 10)];
        assert_eq!(told(&profile), owned(&expected));
        // One file under two paths.
        for object in &mut profile.objects {
            object.build_id = BuildId::new(&[7; 20]);
        }
        assert_eq!(told(&profile), owned(&[("work", 15)]));
    }
}
