//! The functions of a profile: frames that are one function under one clean name, with their kinds.
//!
//! In: a profile and the user's rules. Out: [`Functions`], by which all questions count. A function is an object's label and a
//! clean name; copies, tiers and lives of the process are one.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::kinds::{self, Facts, Kind, OwnRules};
use crate::ids::{IndexVec, index_vec};
use crate::intern::ItemIndex;
use crate::profile::{
    CpuMode, Frame, FrameId, Object, ObjectId, Origin, Producer, Profile, SymbolId,
};
use crate::runtimes::CleanName;
use crate::runtimes::names::clean_object;
use crate::session::jit::numbers_of_dump;

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
        // FNV-1a: stable whatever the build, and there is nobody to deceive.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in parts.iter().flat_map(|part| part.bytes().chain([0xff])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        (hash ^ (hash >> 32)) as u32
    }

    /// The hash as text.
    #[must_use]
    pub fn id(&self) -> String {
        format!("f:{:08x}", self.hash())
    }
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Object and clean name.
    pub identity: Identity,
    /// The name as the recording has it, of the first frame.
    pub full: String,
    /// What kind of code it is.
    pub kind: Kind,
}

/// Which functions there are, and which one each frame is.
#[derive(Debug, Default)]
pub struct Functions {
    /// In the order of their first frames.
    pub all: IndexVec<FunctionId, Function>,
    of_frame: IndexVec<FrameId, FunctionId>,
    /// How it was told what is own.
    pub basis: Basis,
    /// Whose generated code there is.
    pub producers: Vec<Producer>,
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
    /// Whether the program is own, whatever it is called.
    own_program: bool,
    is_main: IndexVec<ObjectId, bool>,
    /// By object: whether it is a runtime, once that was asked.
    is_runtime: IndexVec<ObjectId, Option<bool>>,
    /// Numbers of the functions by identity.
    ids: ItemIndex<FunctionId>,
    /// Hashes of their identities.
    hashes: IndexVec<FunctionId, u64>,
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
            is_main,
            is_runtime: index_vec![None; profile.objects.len()],
            ids: ItemIndex::default(),
            hashes: IndexVec::new(),
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
        self.out.basis = self.basis();
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
            Kind::Runtime if self.own_program && main => Kind::Own,
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
        let hash = FxBuildHasher.hash_one(&identity);
        let (all, hashes) = (&mut self.out.all, &mut self.hashes);
        let new = all.next_idx();
        let is = |id: FunctionId| hashes[id] == hash && all[id].identity == identity;
        let hash_of = |id: FunctionId| hashes[id];
        let known = self.ids.find_or_add(hash, new, is, hash_of);
        if known.is_none() {
            hashes.push(hash);
            let full = name.unwrap_or(UNKNOWN).to_owned();
            all.push(Function {
                identity,
                full,
                kind,
            });
        }
        known.unwrap_or(new)
    }
}
