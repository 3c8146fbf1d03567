//! The functions of a profile: frames that are one function under one clean name, with their kinds.
//!
//! In: a profile and the user's rules. Out: [`Functions`], by which all questions count. A function is an object's label and a
//! clean name, with its place in the sources as far as the name tells it; copies, tiers and lives of the process are one. Where
//! several functions of a recording have one name, parameters, the place of their definition or the object's folder tell them
//! apart: `work(int)` that calls `work(double)` is not recursive, and `static` functions of two files are two. Comparisons know an
//! [`Identity`], of which [`super::matching`] says when two are one function.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::kinds::{self, Corrections, Facts, Kind, OwnRules};
use crate::build_id::BuildId;
use crate::ids::{Idx as _, IndexVec, index_vec};
use crate::intern::ItemIndex;
use crate::profile::{
    CpuMode, Frame, FrameId, Object, ObjectId, Origin, Place, Producer, Profile, Symbol, SymbolId,
    more,
};
use crate::runtimes::dump_names::numbers_of_dump;
use crate::runtimes::languages::Language;
use crate::runtimes::names::{KERNEL, clean_object, told_apart};
use crate::runtimes::query::{Fit, More, Query};
use crate::runtimes::tails::telling;
use crate::runtimes::{CleanName, Scope};

crate::ids::numbers! {
    /// Index into [`Functions::all`].
    pub struct FunctionId(pub u32);
}

/// By what a function is known in a recording, whatever else that has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Object: `node`, `libc.so.6`, `[jit]`, `[kernel]`.
    pub object: String,
    /// Name, and where it is in the sources.
    pub name: CleanName,
    /// What else is known, in comparisons.
    pub beside: Beside,
}

/// What tells a function from others of its object and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Beside {
    /// Path of the file that it lies in; empty for the kernel and for code made at run time.
    pub path: String,
    /// Its parameters, where they are known.
    pub parameters: Option<Box<str>>,
    /// Where it is defined, where that is known and its name does not tell it.
    pub place: Option<Box<Place>>,
    /// The build of the file, where nothing but the order in it tells the function from others of its name.
    pub build: Option<BuildId>,
    /// Whether its name is a minifier's, as far as is known: another build may have that word for another function.
    pub is_word: bool,
}

impl Beside {
    /// Whether both may be of one function of a recording: nothing that is known of both differs.
    #[must_use]
    pub fn may_be(&self, candidate: &Self) -> bool {
        let parameters = (&self.parameters, &candidate.parameters);
        let places = (&self.place, &candidate.place);
        !matches!(parameters, (Some(one), Some(other)) if one != other)
            && !matches!(places, (Some(one), Some(other)) if one != other)
    }
}

/// What stands where a function has no name.
pub const UNKNOWN: &str = "[unknown]";

impl Identity {
    /// As `peek` accepts it and JSON says it: 32 bits of a hash of label and name. Folders take no part, nor what is known besides.
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

    /// The hash as text.
    #[must_use]
    pub fn id(&self) -> String {
        format!("f:{:08x}", self.hash())
    }
}

/// An id with what tells it from others.
fn id_of(identity: &Identity, twin: Option<&str>, apart: Option<&str>) -> String {
    let id = identity.id();
    if twin.is_none() && apart.is_none() {
        return id;
    }
    let parts = [twin, apart].into_iter().flatten();
    format!("{id}.{:08x}", fnv(parts.flat_map(str::bytes)))
}

/// What a function is called beside others, and its id there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Called {
    /// Its name as tables print it, with what tells it from the others.
    pub label: String,
    /// The same with all that is known of its place in the sources.
    pub full: String,
    /// What stands for it in JSON.
    pub id: String,
    /// What tells it from the others of its name.
    pub apart: Option<String>,
}

/// Calls functions so that no two of an object have one name.
#[must_use]
pub fn called(all: &[&Identity]) -> Vec<Called> {
    let names = all.iter().map(|of| (&of.name, of.object.as_str()));
    let mut groups: FxHashMap<Key<'_>, Vec<usize>> = FxHashMap::default();
    for (at, identity) in all.iter().enumerate() {
        groups.entry(key(identity)).or_default().push(at);
    }
    let mut told: Vec<Told> = vec![Told::default(); all.len()];
    for group in groups.into_values().filter(|group| group.len() > 1) {
        let members: Vec<_> = group.iter().map(|at| Mark::of_identity(all[*at])).collect();
        for (at, (_, one)) in group.iter().zip(tell(&members)) {
            told[*at] = one;
        }
    }
    let labels = told_apart(names).into_iter().zip(told).zip(all);
    labels
        .map(|((label, own), identity)| {
            let apart = own.apart.as_deref().unwrap_or_default();
            Called {
                label: label + apart,
                full: identity.name.full() + apart,
                id: id_of(identity, own.twin.as_deref(), own.apart.as_deref()),
                apart: own.apart,
            }
        })
        .collect()
}

/// What functions have in common that have one id: object, name, base name of the file, line and column.
type Key<'i> = (&'i str, &'i str, &'i str, u32, u32);

fn key(identity: &Identity) -> Key<'_> {
    let name = &identity.name;
    (
        &identity.object,
        &name.name,
        name.file_name(),
        name.line,
        name.column,
    )
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
    /// What tells it from others of this identity, as it is put behind the name: `(int)`, ` a.c:12`, ` in /opt/old`.
    pub apart: Option<String>,
    /// The end of its source file's path that tells it from others of this identity but for folders.
    twin: Option<Box<str>>,
    /// The name as the recording has it, of the first frame.
    pub full: String,
    /// What kind of code it is.
    pub kind: Kind,
    /// Whether it stands for functions that have no name there ([`crate::runtimes::Runtime::nameless`]).
    pub is_nameless: bool,
}

impl Function {
    /// [`Identity::id`], and what tells the function from others of that.
    #[must_use]
    pub fn id(&self) -> String {
        id_of(&self.identity, self.twin.as_deref(), self.apart.as_deref())
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
    /// What is known of functions besides.
    besides: IndexVec<FunctionId, Known>,
    /// How it was told what is own.
    pub basis: Basis,
    /// Whether the user said what is own.
    pub is_told: bool,
    /// Whose generated code there is.
    pub producers: Vec<Producer>,
    /// By program: the language whose runtime is linked into it.
    pub languages: IndexVec<ObjectId, Option<Language>>,
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
    /// Nothing was own by names, and a runtime is not: the packages are that it executes.
    Packages,
}

impl Functions {
    /// Classifies all frames.
    #[must_use]
    pub fn of(profile: &Profile, rules: &OwnRules) -> Self {
        let mut found = TableMaker::new(profile, rules, false).make();
        if !found.has_own() && rules.own.is_none() {
            let maker = TableMaker::new(profile, rules, true);
            let has_runtime = maker.has_runtime;
            let program = maker.make();
            if program.has_own() {
                found = program;
                found.basis = if has_runtime || !found.producers.is_empty() {
                    Basis::Packages
                } else {
                    Basis::Program
                };
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

    /// By what a function is known in comparisons.
    #[must_use]
    pub fn identity(&self, profile: &Profile, id: FunctionId) -> Identity {
        let (function, known) = (self.get(id), &self.besides[id]);
        let path = known.file.map(|file| profile[file].long_name.clone());
        let beside = known.told_by.and_then(|symbol| {
            let symbol = &profile[symbol];
            (symbol.parameters.is_some() || symbol.place.is_some())
                .then(|| (symbol.parameters.clone(), symbol.place.clone()))
        });
        let (parameters, place) = beside.unwrap_or_default();
        let recorded = known
            .told_by
            .and_then(|symbol| profile[symbol].recorded.as_ref());
        let is_by_order = place.as_ref().is_some_and(|place| place.nth > 0);
        let build = known.file.filter(|_| is_by_order);
        Identity {
            beside: Beside {
                path: path.unwrap_or_default(),
                parameters,
                place,
                build: build.and_then(|file| profile[file].build_id),
                is_word: recorded.is_some_and(|recorded| recorded.is_word),
            },
            ..function.identity.clone()
        }
    }

    /// How a text that was typed for a function fits one, which tables print by some names.
    #[must_use]
    pub fn fit(
        &self,
        profile: &Profile,
        id: FunctionId,
        (query, printed): (&Query, &[&str]),
    ) -> Option<Fit> {
        let (function, known) = (self.get(id), &self.besides[id]);
        let symbol = known.told_by.map(|symbol| &profile[symbol]);
        let place = symbol.and_then(|symbol| symbol.place.as_deref());
        let order = place.map(Place::order).unwrap_or_default();
        let parameters = symbol.and_then(|symbol| symbol.parameters.as_deref());
        let more = More {
            folder: known.file.map(|file| folder(&profile[file].long_name)),
            printed,
            ..more(parameters, place, &order)
        };
        query.fit(&function.full, &function.identity.name, &more)
    }

    /// Whether it is the user's.
    #[must_use]
    #[inline]
    pub fn is_own(&self, id: FunctionId) -> bool {
        self.get(id).kind == Kind::Own
    }

    pub(crate) fn has_own(&self) -> bool {
        self.all.iter().any(|function| function.kind == Kind::Own)
    }
}

/// Label of all code that was made at run time.
pub const JIT: &str = "[jit]";

/// Whether a file's name is that of a dump, of which a part has no name.
#[must_use]
pub fn is_dump(name: &str) -> bool {
    numbers_of_dump(name.as_bytes()).is_some()
}

/// The label under which an object is shown and compared.
#[must_use]
pub(crate) fn object_label(object: Option<&Object>, is_kernel: bool) -> String {
    match object {
        _ if is_kernel => KERNEL.to_owned(),
        None => UNKNOWN.to_owned(),
        Some(object) if object.is_kernel => KERNEL.to_owned(),
        Some(object) if object.is_jit || is_dump(&object.short_name) => JIT.to_owned(),
        Some(object) => clean_object(&object.long_name).to_owned(),
    }
}

/// A function's name as its file has it, where it is shown by another one.
pub(crate) fn spelled(symbol: &Symbol) -> Option<&str> {
    symbol
        .recorded
        .as_ref()
        .map(|recorded| recorded.name.as_str())
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
    /// Whether there is a runtime that executes packages.
    has_runtime: bool,
    is_main: IndexVec<ObjectId, bool>,
    /// By program: its language, if that has a runtime that looks like C.
    languages: IndexVec<ObjectId, Option<Language>>,
    /// By object: whether it is a runtime, once that was asked.
    is_runtime: IndexVec<ObjectId, Option<bool>>,
    /// By object: its label.
    labels: IndexVec<ObjectId, String>,
    /// Numbers of the functions by identity and by what tells apart.
    ids: ItemIndex<FunctionId>,
    /// Hashes of these.
    hashes: IndexVec<FunctionId, u64>,
    /// By function: what may tell it from others of its identity, and what says so.
    marks: IndexVec<FunctionId, (Mark<'p>, Known)>,
    /// By object: the first one that is the same file.
    files: IndexVec<ObjectId, ObjectId>,
    /// Functions of frames by what decides: object, symbol, whether in the kernel.
    known: FxHashMap<(Option<ObjectId>, Option<SymbolId>, bool), FunctionId>,
    out: Functions,
}

impl<'p> TableMaker<'p> {
    fn new(profile: &'p Profile, rules: &'p OwnRules, own_program: bool) -> Self {
        let is_main = profile.are_programs();
        let is_runtime = |(object, is_program): (&Object, &bool)| {
            let name = object.long_name.rsplit('/').next().unwrap_or_default();
            matches!(Scope::of_file(name, *is_program), Some(Scope::Runtime(_)))
        };
        let has_runtime = profile.objects.iter().zip(&is_main).any(is_runtime);
        let mut languages = index_vec![None; profile.objects.len()];
        for symbol in &profile.symbols {
            let language = &mut languages[symbol.object];
            if is_main[symbol.object] && language.is_none() {
                *language = Language::of_name(symbol.recorded_name());
            }
        }
        Self {
            profile,
            rules,
            own_program,
            languages,
            has_runtime,
            makes_code: profile
                .symbols
                .iter()
                .any(|symbol| symbol.producer.is_some_and(Producer::is_known)),
            is_main,
            is_runtime: index_vec![None; profile.objects.len()],
            labels: profile
                .objects
                .iter()
                .map(|object| object_label(Some(object), false))
                .collect(),
            ids: ItemIndex::default(),
            hashes: IndexVec::new(),
            marks: IndexVec::new(),
            files: files(profile),
            known: FxHashMap::default(),
            out: Functions::default(),
        }
    }

    fn make(mut self) -> Functions {
        // Nearly each symbol is a function; what grows by itself is copied several times.
        let most = self.profile.symbols.len() + self.profile.objects.len();
        self.ids = ItemIndex::with_capacity(most);
        self.hashes.raw.reserve_exact(most);
        self.marks.raw.reserve_exact(most);
        self.out.all.raw.reserve_exact(most);
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
        self.out.languages = self.languages;
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
            spelled: symbol.filter(|_| producer.is_none()).and_then(spelled),
            clean: &clean,
            producer,
            is_kernel,
            is_main: main,
            is_runtime,
            origin,
            is_cpp: symbol.is_some_and(|symbol| symbol.is_cpp),
            language: frame.object.and_then(|id| self.languages[id]),
        };
        let kind = match kinds::classify(&facts, self.rules) {
            // A tool may be a package: what is not the user's is still not the runtime's that executes it.
            Kind::Dependency if self.own_program && (producer.is_some() || self.has_runtime) => {
                Kind::Own
            }
            Kind::Runtime if self.own_program && main && !self.makes_code && !self.has_runtime => {
                Kind::Own
            }
            kind => kind,
        };
        let bare = symbol.is_some_and(|symbol| symbol.inlined) && !clean.name.contains("::");
        let clean = match origin {
            Origin::Std if bare => labelled(clean, "std"),
            Origin::Dependency if bare => labelled(clean, "dependency"),
            _ => clean,
        };
        self.out.producers.extend(producer);
        let label = match producer {
            Some(_) => JIT.to_owned(),
            None => match frame.object.filter(|_| !is_kernel) {
                Some(id) => self.labels[id].clone(),
                None => object_label(None, is_kernel),
            },
        };
        let identity = Identity {
            object: label,
            name: clean,
            beside: Beside::default(),
        };
        let known = Known {
            file: frame
                .object
                .filter(|_| symbol.is_some() && producer.is_none() && is_path(&identity.object))
                .map(|id| self.files[id]),
            told_by: frame.symbol,
        };
        let mark = Mark {
            file: known.file.map(|file| profile[file].long_name.as_str()),
            parameters: symbol.and_then(|symbol| symbol.parameters.as_deref()),
            place: symbol.and_then(|symbol| symbol.place.as_deref()),
            source: "",
        };
        let hash = FxBuildHasher.hash_one((&identity, known.file, mark.parameters, mark.place));
        let (all, hashes, marks) = (&mut self.out.all, &mut self.hashes, &mut self.marks);
        let new = all.next_idx();
        let is = |id: FunctionId| {
            let (other, of) = &marks[id];
            hashes[id] == hash
                && of.file == known.file
                && (other.parameters, other.place) == (mark.parameters, mark.place)
                && all[id].identity == identity
        };
        let hash_of = |id: FunctionId| hashes[id];
        let found = self.ids.find_or_add(hash, new, is, hash_of);
        if found.is_none() {
            hashes.push(hash);
            marks.push((mark, known));
            let recorded = symbol.and_then(|symbol| symbol.recorded.as_ref());
            let recorded = recorded.map(|recorded| recorded.name.as_str());
            let full = recorded.or(name).unwrap_or(UNKNOWN).to_owned();
            let runtime = built_in.or(producer).map(Producer::row);
            let is_nameless = runtime.is_some_and(|row| row.nameless.contains(&full.as_str()));
            all.push(Function {
                identity,
                apart: None,
                twin: None,
                full,
                kind,
                is_nameless,
            });
        }
        found.unwrap_or(new)
    }

    /// Says what tells functions of one identity apart, and makes one of those that nothing does.
    fn tell_apart(&mut self) {
        let groups = namesakes(&self.out.all);
        if !groups.is_empty() {
            let mut same: IndexVec<FunctionId, FunctionId> = self.out.all.indices().collect();
            for group in groups {
                let all = &self.out.all;
                let members = group.iter().map(|id| Mark {
                    source: &all[*id].identity.name.file,
                    ..self.marks[*id].0
                });
                let members: Vec<Mark<'_>> = members.collect();
                let told = tell(&members);
                let mut firsts: FxHashMap<Mark<'_>, FunctionId> = FxHashMap::default();
                for (id, (mark, _)) in group.iter().zip(&told) {
                    same[*id] = *firsts.entry(*mark).or_insert(*id);
                }
                let told: Vec<Told> = told.into_iter().map(|(_, told)| told).collect();
                for (id, own) in group.iter().zip(told) {
                    let function = &mut self.out.all[*id];
                    (function.apart, function.twin) = (own.apart, own.twin);
                    // What tells most of it.
                    let (first, known) = (same[*id], self.marks[*id]);
                    let is_better = |of: &Mark<'_>, than: &Mark<'_>| {
                        (of.parameters.is_some(), of.place.is_some())
                            > (than.parameters.is_some(), than.place.is_some())
                    };
                    if is_better(&known.0, &self.marks[first].0) {
                        self.marks[first] = known;
                    }
                }
            }
            self.unite(&same);
        } else {
            self.out.besides = self.marks.iter().map(|(_, known)| *known).collect();
        }
    }

    /// Leaves one function where several are the same.
    fn unite(&mut self, same: &IndexVec<FunctionId, FunctionId>) {
        let mut numbers: IndexVec<FunctionId, FunctionId> = IndexVec::with_capacity(same.len());
        let mut left = 0;
        for (id, first) in same.iter_enumerated() {
            // The first of them has its number already.
            numbers.push(if *first == id {
                self.out.besides.push(self.marks[id].1);
                left += 1;
                FunctionId::from_usize(left - 1)
            } else {
                numbers[*first]
            });
        }
        let mut ids = same.iter_enumerated();
        let is_first = |_: &Function| ids.next().is_some_and(|(id, first)| id == *first);
        self.out.all.raw.retain(is_first);
        for function in &mut self.out.of_frame {
            *function = numbers[*function];
        }
    }
}

/// Functions that have one id: those of which there are several, in their order.
fn namesakes(all: &IndexVec<FunctionId, Function>) -> Vec<Vec<FunctionId>> {
    let mut hashes: IndexVec<FunctionId, u64> = IndexVec::with_capacity(all.len());
    let mut firsts: ItemIndex<FunctionId> = ItemIndex::with_capacity(all.len());
    // Most functions have no namesake, so that a list of each would take longer than all else here.
    let mut groups: BTreeMap<FunctionId, Vec<FunctionId>> = BTreeMap::new();
    for (id, function) in all.iter_enumerated() {
        let key_of = key(&function.identity);
        let hash = FxBuildHasher.hash_one(key_of);
        hashes.push(hash);
        let is = |other: FunctionId| hashes[other] == hash && key(&all[other].identity) == key_of;
        if let Some(first) = firsts.find_or_add(hash, id, is, |other| hashes[other]) {
            groups.entry(first).or_insert_with(|| vec![first]).push(id);
        }
    }
    groups.into_values().collect()
}

/// Where in a profile it stands what a function is known by.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The file that it is in, for code of files.
    file: Option<ObjectId>,
    /// What tells parameters and place.
    told_by: Option<SymbolId>,
}

/// What may tell a function from others of its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Mark<'p> {
    /// The path of the file that it is in, for code of files.
    file: Option<&'p str>,
    /// Its parameters, where they are known.
    parameters: Option<&'p str>,
    /// Where it is defined, where that is known and its name does not tell it.
    place: Option<&'p Place>,
    /// The path of its source file, where the name tells it.
    source: &'p str,
}

impl<'p> Mark<'p> {
    fn of_identity(identity: &'p Identity) -> Self {
        let Beside {
            path,
            parameters,
            place,
            build: _,
            is_word: _,
        } = &identity.beside;
        Self {
            file: (!path.is_empty()).then_some(path),
            parameters: parameters.as_deref(),
            place: place.as_deref(),
            source: &identity.name.file,
        }
    }
}

/// What tells a function from others.
#[derive(Debug, Clone, Default)]
struct Told {
    /// What is put behind the name.
    apart: Option<String>,
    /// The end of the source file's path.
    twin: Option<Box<str>>,
}

/// Says of functions that have one id what tells them apart; marks have what matters only.
fn tell<'p>(marks: &[Mark<'p>]) -> Vec<(Mark<'p>, Told)> {
    let mut sources: Vec<&str> = marks.iter().map(|mark| mark.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let ends = telling(&sources);
    let mut of_source: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (at, mark) in marks.iter().enumerate() {
        of_source.entry(mark.source).or_default().push(at);
    }
    let mut told: Vec<(Mark<'p>, Told)> =
        marks.iter().map(|mark| (*mark, Told::default())).collect();
    for group in of_source.into_values() {
        let members: Vec<Mark<'p>> = group.iter().map(|at| marks[*at]).collect();
        let apart = Apart::of(&members);
        for at in group {
            let mark = apart.mark(marks[at]);
            let source = sources.binary_search(&mark.source).ok();
            let twin = source
                .filter(|_| sources.len() > 1)
                .map(|number| ends[number].into());
            let apart = apart.text(marks[at]);
            told[at] = (mark, Told { apart, twin });
        }
    }
    told
}

/// What tells the functions of a group apart.
struct Apart<'p> {
    by_file: bool,
    /// Whether the folders of the files tell them apart.
    by_folder: bool,
    by_parameters: bool,
    /// The parameters that each file has, where there is one kind of them only.
    only: FxHashMap<Option<&'p str>, Option<&'p str>>,
    /// Of functions of one file and parameters, their places if there are several: the ends of paths that tell files apart.
    places: FxHashMap<Like<'p>, FxHashMap<Option<&'p Place>, &'p str>>,
}

/// File and parameters.
type Like<'p> = (Option<&'p str>, Option<&'p str>);

impl<'p> Apart<'p> {
    fn of(marks: &[Mark<'p>]) -> Self {
        let mut only: FxHashMap<Option<&str>, Option<&str>> = FxHashMap::default();
        let mut by_parameters = false;
        for mark in marks.iter().filter(|mark| mark.parameters.is_some()) {
            let known = only.entry(mark.file).or_insert(mark.parameters);
            if *known != mark.parameters {
                (*known, by_parameters) = (None, true);
            }
        }
        let first = marks.first().and_then(|mark| mark.file);
        let all_files: FxHashSet<&str> = marks.iter().filter_map(|mark| mark.file).collect();
        let folders: FxHashSet<&str> = all_files.iter().map(|file| folder(file)).collect();
        let mut apart = Self {
            by_folder: all_files.len() == folders.len(),
            by_file: marks.iter().any(|mark| mark.file != first),
            by_parameters,
            only,
            places: FxHashMap::default(),
        };
        if marks.iter().all(|mark| mark.place.is_none()) {
            return apart;
        }
        let mut places: FxHashMap<Like<'p>, FxHashMap<Option<&'p Place>, &'p str>> =
            FxHashMap::default();
        for mark in marks {
            let like = (mark.file, apart.parameters(*mark));
            places.entry(like).or_default().insert(mark.place, "");
        }
        places.retain(|_, places| places.len() > 1);
        for group in places.values_mut() {
            let files = group.keys().flatten().map(|place| place.file.as_str());
            let mut files: Vec<&str> = files.collect();
            files.sort_unstable();
            files.dedup();
            let ends = telling(&files);
            for (place, end) in group {
                let file = place.map(|place| files.binary_search(&place.file.as_str()));
                *end = file.and_then(Result::ok).map_or("", |at| ends[at]);
            }
        }
        apart.places = places;
        apart
    }

    /// An inlined copy, of which no parameters are known, is the only function of its name in the file.
    fn parameters(&self, mark: Mark<'p>) -> Option<&'p str> {
        let only = || self.only.get(&mark.file).copied().flatten();
        mark.parameters.or_else(only)
    }

    /// As far as it matters.
    fn mark(&self, mark: Mark<'p>) -> Mark<'p> {
        let parameters = self.parameters(mark);
        let by_place = self.places.contains_key(&(mark.file, parameters));
        Mark {
            file: mark.file.filter(|_| self.by_file),
            parameters: parameters.filter(|_| self.by_parameters),
            place: mark.place.filter(|_| by_place),
            source: mark.source,
        }
    }

    fn text(&self, mark: Mark<'p>) -> Option<String> {
        let ends = self.places.get(&(mark.file, self.parameters(mark)));
        let Mark {
            file,
            parameters,
            place,
            ..
        } = self.mark(mark);
        let mut text = parameters.unwrap_or_default().to_owned();
        if let (Some(place), Some(ends)) = (place, ends) {
            let others = ends.keys().flatten();
            let mut on_line = others.filter(|of| (&of.file, of.line) == (&place.file, place.line));
            let is_crowded = on_line.nth(1).is_some();
            text.push_str(&place.text(ends[&Some(place)], is_crowded));
        }
        if let Some(file) = file {
            text.push_str(" in ");
            text.push_str(if self.by_folder { folder(file) } else { file });
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The folder of a path.
#[must_use]
pub(crate) fn folder(path: &str) -> &str {
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
    use crate::functions::tally::Tally;
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
        // Two versions of one library.
        let names: Vec<String> = profile
            .objects
            .iter()
            .map(|of| of.short_name.clone())
            .collect();
        for (object, name) in profile.objects.iter_mut().zip(names) {
            object.long_name = format!("/opt/libn.so.1.{name}")
                .replace("old", "2")
                .replace("new", "3");
        }
        let expected = [
            ("work in /opt/libn.so.1.2", 10),
            ("work in /opt/libn.so.1.3", 5),
        ];
        assert_eq!(told(&profile), owned(&expected));
        // One file under two paths.
        for object in &mut profile.objects {
            object.build_id = BuildId::new(&[7; 20]);
        }
        assert_eq!(told(&profile), owned(&[("work", 15)]));
    }
}
