//! Who pays for a sample, and what it does.
//!
//! In: a profile and its functions. Out: for a stack its payer and its activity. The payer is the innermost frame that belongs to a
//! package; kernels, runtimes, standard libraries and code that `eval` made without a file belong to none, so that their caller
//! pays. The activity is told by the frames from the payer inwards, for what stands around the payer says nothing about what runs
//! now. Frames are looked at when a stack first asks for them: a view that does not ask builds nothing.

mod objects;
mod paid;
mod spending;
mod steps;

pub use paid::{Paid, Part as PaidPart};
pub use spending::{Activity, Group, Grouping, PaidFrame, Payment, Spending, UNKNOWN_HOST};
pub use steps::Step;

use std::cell::{OnceCell, RefCell};
use std::sync::OnceLock;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, PatternSet};
use rustc_hash::FxHashMap;

use self::objects::{Objects, Part};
use super::kinds::{Corrections, Kind};
use super::tally::WeightedStack;
use super::{Function, FunctionId, Functions, spelled};
use crate::ids::{IndexVec, index_vec};
use crate::profile::{
    CpuMode, Frame, FrameId, ObjectId, Origin, Profile, StackEnd, StackId, Symbol, SymbolId,
};
use crate::runtimes::crates::{crates_of_method, is_rust_std, may_be_rust_std};
use crate::runtimes::languages::{Language, is_of_library};
use crate::runtimes::names;
use crate::runtimes::package::{GO_LIBRARY, npm, of_go, pypi};
use crate::runtimes::tails::telling;
use crate::runtimes::{Activity as Row, Ecosystem, Producer, Scope, Tier, Whose};

crate::ids::numbers! {
    /// Index into the payers that were met.
    pub struct PayerId(pub u32);
    /// Index into the activities that were met.
    pub struct ActivityId(pub u16);
}

/// Who pays.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Payer {
    /// Where the package comes from; nothing where it is no package.
    pub ecosystem: Option<Ecosystem>,
    /// Its name, or what there is instead of one: `V8`, `node: modules`. Of a file as much of its path as tells it from others.
    pub name: String,
    /// The whole path of a file of the user's own code.
    pub path: String,
}

impl Payer {
    /// As tables show it.
    #[must_use]
    pub fn label(&self) -> String {
        match self.ecosystem {
            Some(Ecosystem::Own) => format!("{} (own)", self.name),
            Some(_) => self.name.clone(),
            None => format!("nobody: {}", self.name),
        }
    }
}

/// What is told of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Who pays.
    pub payer: PayerId,
    /// What is done.
    pub activity: ActivityId,
    /// Which frame belongs to who pays, from the leaf; none where nobody does.
    pub depth: Option<usize>,
}

/// What rows of activities say of a frame.
#[derive(Debug, Clone, Copy)]
struct Doing {
    rank: u8,
    activity: ActivityId,
    /// What it is a kind of.
    kind_of: Option<ActivityId>,
}

/// Of a profiler's own code, and of code of the kernel without a name.
static PROFILING: Row = Row::new(0, "profiling itself", "");
static OF_KERNEL: Row = Row::new(3, "kernel, other", "");

/// Who pays for a frame.
#[derive(Debug, Clone, Copy)]
enum Pays {
    /// Its caller.
    Nobody,
    /// The same; it is of this library.
    Std(StdId),
    /// This package.
    Package(PayerId),
    /// This crate, or Rust's library, of which it may be a part.
    Vendored(PayerId),
    /// Whoever has the function that runs there, which has no name.
    Nameless,
}

/// What stacks are asked for: small, for there are many of them.
#[derive(Debug, Clone, Copy)]
struct Known {
    pays: Pays,
    doing: Option<Doings>,
}

/// What a frame says about what runs.
#[derive(Debug, Clone, Copy)]
struct Doings {
    /// By rows, if one fits.
    row: Option<Doing>,
    /// If no frame of the stack has a row.
    alone: ActivityId,
}

/// Where a frame's code is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Kernel,
    Jit,
    Nowhere,
    In(ObjectId),
}

/// What else is known of a frame: small, too.
#[derive(Debug, Clone, Copy)]
struct Nature {
    place: Place,
    /// Which interprets Java, of which it has no names.
    is_java_interpreter: bool,
    /// Whether `eval` made it of a text that names no file.
    is_evaled: bool,
    /// Whose code it is, if it was made at run time.
    engine: Option<Producer>,
}

crate::ids::numbers! {
    struct KnownId(pub u32);
    /// Index into the names of standard libraries.
    struct StdId(pub u16);
}

/// Finds payers and activities of stacks.
pub struct Payers<'p> {
    profile: &'p Profile,
    functions: &'p Functions,
    objects: Objects,
    /// By symbol, and where there is none, by object and whether in the kernel.
    of_symbol: IndexVec<SymbolId, Option<KnownId>>,
    of_object: FxHashMap<(Option<ObjectId>, bool), KnownId>,
    known: IndexVec<KnownId, Known>,
    natures: IndexVec<KnownId, Nature>,
    libraries: IndexVec<StdId, &'static str>,
    of_frame: IndexVec<FrameId, Option<KnownId>>,
    payers: IndexVec<PayerId, Payer>,
    numbers: FxHashMap<Payer, PayerId>,
    /// What tells own files apart, by path.
    ends: OnceCell<FxHashMap<&'p str, &'p str>>,
    /// The same of those that are no packages.
    nobodies: Vec<(&'static str, PayerId)>,
    activities: IndexVec<ActivityId, &'static str>,
    /// Those that were asked for last.
    last: ActivityId,
    last_payer: PayerId,
    /// What automatons of activities have made of themselves, by scope.
    caches: RefCell<FxHashMap<usize, Cache>>,
}

impl<'p> Payers<'p> {
    /// Nothing is looked at yet.
    #[must_use]
    pub fn new(profile: &'p Profile, functions: &'p Functions) -> Self {
        Self {
            profile,
            functions,
            objects: Objects::of(profile),
            of_symbol: index_vec![None; profile.symbols.len()],
            of_object: FxHashMap::default(),
            known: IndexVec::with_capacity(profile.symbols.len()),
            natures: IndexVec::with_capacity(profile.symbols.len()),
            libraries: index_vec![RUST],
            of_frame: index_vec![None; profile.frames.len()],
            payers: IndexVec::new(),
            numbers: FxHashMap::default(),
            ends: OnceCell::new(),
            nobodies: Vec::new(),
            activities: IndexVec::new(),
            last: ActivityId(0),
            last_payer: PayerId(0),
            caches: RefCell::default(),
        }
    }

    /// Those that were met.
    #[must_use]
    pub fn all(&self) -> &IndexVec<PayerId, Payer> {
        &self.payers
    }

    /// Who pays for a stack, leaf first, and what it does: of its frames up to who pays the lowest rank wins, and within a rank the frame
    /// nearest the root.
    pub fn of(&mut self, frames: &[FrameId]) -> Told {
        let (mut std, mut payer, mut is_nameless) = (None, None, false);
        let mut best: Option<Doing> = None;
        let mut alone = None;
        // Whether all so far was inlined into the function that runs.
        let mut is_running = true;
        for (depth, frame) in frames.iter().enumerate() {
            let known = self.look(*frame);
            let Known { pays, doing } = self.known[known];
            let doing = doing.unwrap_or_else(|| self.doing_of(*frame, known));
            alone = alone.or(Some(doing.alone));
            if let Some(row) = doing.row
                && (row.rank < 3 || is_running)
                && best
                    .is_none_or(|best| row.rank <= best.rank && best.kind_of != Some(row.activity))
            {
                best = Some(row);
            }
            is_running = is_running && self.profile.is_inlined(*frame);
            match pays {
                Pays::Nobody => {}
                Pays::Std(library) => std = std.or(Some(library)),
                Pays::Vendored(id) if self.is_in_std(id, &frames[depth + 1..]) => {
                    // The first of all is Rust's.
                    std = std.or(Some(StdId(0)));
                }
                Pays::Package(id) | Pays::Vendored(id) => {
                    payer = Some((id, depth));
                    break;
                }
                Pays::Nameless => {
                    is_nameless = true;
                    break;
                }
            }
        }
        let activity = best.map(|best| best.activity).or(alone);
        let activity = activity.unwrap_or_else(|| self.named(UNKNOWN));
        let depth = payer.map(|(_, depth)| depth);
        let payer = payer.map(|(id, _)| id).unwrap_or_else(|| {
            let std = std.map(|library| self.libraries[library]);
            let name = if is_nameless {
                NAMELESS
            } else {
                self.without_payer(frames, std, activity)
            };
            self.nobody(name)
        });
        Told {
            payer,
            activity,
            depth,
        }
    }

    /// The same of a recorded stack: where its callers are in no record, the kernel was not alone, and somebody called the
    /// library.
    pub fn of_stack(&mut self, stack: StackId, leaf: FrameId) -> Told {
        let profile = self.profile;
        let mut told = self.of(profile.frames_of(stack, &leaf));
        if told.depth.is_some() {
            return told;
        }
        let end = profile.stacks.end(stack);
        // Of frames that are missing within a stack the outer ones are there, and who switches stacks is a runtime.
        let is_cut = end.mark().is_some() && !end.is_marked_inside() && end != StackEnd::OtherStack;
        let name = match &*self.payers[told.payer].name {
            ALONE if end == StackEnd::NotRecorded => "kernel, no callers",
            C_LIBRARY | RUST if is_cut => "stack cut",
            _ => return told,
        };
        told.payer = self.nobody(name);
        told
    }

    /// The same of samples of one stack: who could have run and did not, waits, whatever its stack says.
    pub fn of_samples(&mut self, stack: &WeightedStack) -> Told {
        let mut told = self.of_stack(stack.id(), stack.leaf());
        if stack.is_runnable {
            told.activity = self.named(NO_PROCESSOR);
        }
        told
    }

    /// The row of what nobody pays for.
    fn nobody(&mut self, name: &'static str) -> PayerId {
        if let Some((_, id)) = self.nobodies.iter().find(|(known, _)| *known == name) {
            return *id;
        }
        let id = self.number(None, name.to_owned(), String::new());
        self.nobodies.push((name, id));
        id
    }

    /// The number of an activity. There are some dozens, and mostly it is the one before.
    fn named(&mut self, name: &'static str) -> ActivityId {
        if self.activities.get(self.last) == Some(&name) {
            return self.last;
        }
        let mut known = self.activities.iter_enumerated();
        let known = known.find(|(_, known)| **known == name).map(|(id, _)| id);
        self.last = known.unwrap_or_else(|| self.activities.push(name));
        self.last
    }

    /// What activities are called.
    #[must_use]
    pub fn activities(&self) -> &IndexVec<ActivityId, &'static str> {
        &self.activities
    }

    /// The number of a package or an own file; nothing where it is neither.
    fn met(&mut self, whose: Whose) -> Option<PayerId> {
        match whose {
            Whose::Nobody | Whose::Std(_) => None,
            Whose::Package(ecosystem, name) => {
                Some(self.number(Some(ecosystem), name, String::new()))
            }
            Whose::File(path) => {
                let name = self.end(&path).to_owned();
                Some(self.number(Some(Ecosystem::Own), name, path))
            }
        }
    }

    /// As much of an own file's path as tells it from the others.
    fn end<'f>(&self, path: &'f str) -> &'f str
    where
        'p: 'f,
    {
        let ends = self
            .ends
            .get_or_init(|| own_ends(self.functions, self.profile));
        ends.get(path).copied().unwrap_or(path)
    }

    fn number(&mut self, ecosystem: Option<Ecosystem>, name: String, path: String) -> PayerId {
        let payer = Payer {
            ecosystem,
            name,
            path,
        };
        // One package has many functions.
        if self.payers.get(self.last_payer) == Some(&payer) {
            return self.last_payer;
        }
        self.last_payer = match self.numbers.get(&payer) {
            Some(known) => *known,
            None => {
                let id = self.payers.push(payer.clone());
                self.numbers.insert(payer, id);
                id
            }
        };
        self.last_payer
    }

    /// Whether the next frame outwards of another package is of Rust's library.
    fn is_in_std(&mut self, of: PayerId, outwards: &[FrameId]) -> bool {
        let mut others = outwards.iter().filter_map(|frame| {
            let known = self.look(*frame);
            match self.known[known].pays {
                Pays::Std(_) => Some(true),
                Pays::Nameless => Some(false),
                Pays::Package(id) | Pays::Vendored(id) if id != of => Some(false),
                Pays::Package(_) | Pays::Vendored(_) | Pays::Nobody => None,
            }
        });
        others.next().unwrap_or(false)
    }

    /// What a frame says about what runs, asked for the first time.
    fn doing_of(&mut self, id: FrameId, known: KnownId) -> Doings {
        let frame = &self.profile[id];
        let symbol = frame.symbol.map(|number| &self.profile[number]);
        let function = self.functions.get(self.functions.of_frame(id));
        let part = self.part(self.natures[known].place);
        let producer = symbol.and_then(|symbol| symbol.producer);
        let given = &self.functions.corrections.activities;
        let named = (!given.is_empty()).then(|| self.names(frame.object, symbol, function));
        let named = named.and_then(|names: Vec<&str>| Corrections::first(given, &names).copied());
        if let Some(name) = named {
            let name = self.named(name);
            let doing = Doings {
                row: Some(Doing {
                    rank: 0,
                    activity: name,
                    kind_of: None,
                }),
                alone: name,
            };
            self.known[known].doing = Some(doing);
            return doing;
        }
        let (row, alone) = match (part, symbol, producer) {
            // Its names are the program's, which may be anything; what compiled it is known.
            (Part::Jit, Some(symbol), Some(producer))
                if self.kind_of_made(symbol, producer, function) != Kind::Runtime =>
            {
                let alone = match (producer.row().tier)(&symbol.name) {
                    Tier::Interpreted => "interpreter",
                    Tier::Baseline => "baseline code",
                    Tier::Middle | Tier::Optimised => "optimised code",
                    Tier::Unknown | Tier::Builtin | Tier::RegExp | Tier::Wasm => {
                        producer.row().made
                    }
                };
                (None, alone)
            }
            _ => {
                let alone = match (part, symbol) {
                    (Part::Runtime(_), _) => "runtime, other",
                    (Part::Nothing, _) | (_, None) => UNKNOWN,
                    (Part::Jit, _) => producer.map_or(UNKNOWN, |producer| producer.row().made),
                    _ => "code",
                };
                (self.doing(frame.object, symbol, part), alone)
            }
        };
        let doing = Doings {
            row: row.map(|row| Doing {
                rank: row.rank,
                activity: self.named(row.name),
                kind_of: row.kind_of.map(|general| self.named(general)),
            }),
            alone: self.named(alone),
        };
        self.known[known].doing = Some(doing);
        doing
    }

    /// What stands in place of a payer.
    fn without_payer(
        &self,
        frames: &[FrameId],
        std: Option<&'static str>,
        activity: ActivityId,
    ) -> &'static str {
        let known = || {
            let ids = frames.iter().filter_map(|frame| self.of_frame[*frame]);
            ids.map(|id| &self.natures[id])
        };
        if !frames.is_empty() && known().all(|known| matches!(known.place, Place::Kernel)) {
            let is_idle = self.activities[activity] == "idle";
            return if is_idle { "idle" } else { ALONE };
        }
        if known().any(|known| known.is_java_interpreter) {
            return "Java, interpreted (no names)";
        }
        if known().any(|known| known.is_evaled) {
            return EVALED;
        }
        if let Some(std) = std.filter(|std| !matches!(*std, C_LIBRARY | "standard library")) {
            return std;
        }
        let parts = || known().map(|known| self.part(known.place));
        let runtime = parts().find_map(|part| match part {
            Part::Runtime(scope) => Some(scope.name()),
            _ => None,
        });
        let engine = || known().find_map(|known| Some(known.engine?.row().engine));
        let c = || {
            parts()
                .any(|part| matches!(part, Part::C))
                .then_some(C_LIBRARY)
        };
        // Of Haskell and others; what it is made of in C was met below it.
        let library = std.filter(|std| *std == "standard library");
        runtime
            .or_else(engine)
            .or(library)
            .or_else(c)
            .or(std)
            .unwrap_or(UNKNOWN)
    }

    #[inline]
    fn look(&mut self, id: FrameId) -> KnownId {
        match self.of_frame[id] {
            Some(known) => known,
            None => self.look_first(id),
        }
    }

    #[cold]
    fn look_first(&mut self, id: FrameId) -> KnownId {
        let profile = self.profile;
        let frame = &profile[id];
        let is_kernel = frame.mode == CpuMode::Kernel;
        let key = (frame.object, is_kernel);
        let known = match frame.symbol {
            Some(symbol) => self.of_symbol[symbol],
            None => self.of_object.get(&key).copied(),
        };
        let known = known.unwrap_or_else(|| {
            let added = self.frame(frame, self.functions.of_frame(id), is_kernel);
            match frame.symbol {
                Some(symbol) => self.of_symbol[symbol] = Some(added),
                None => {
                    self.of_object.insert(key, added);
                }
            }
            added
        });
        self.of_frame[id] = Some(known);
        known
    }

    fn frame(&mut self, frame: &Frame, function: FunctionId, is_kernel: bool) -> KnownId {
        let profile = self.profile;
        let symbol = frame.symbol.map(|id| &profile[id]);
        let place = match frame.object {
            _ if is_kernel => Place::Kernel,
            _ if symbol.is_some_and(|symbol| symbol.producer.is_some()) => Place::Jit,
            None => Place::Nowhere,
            Some(object) => Place::In(object),
        };
        let whose = self.whose(frame.object, symbol, function, self.part(place));
        let has_origin = symbol.is_some_and(|symbol| symbol.origin != Origin::Unknown);
        let may_be_std = match &whose {
            Whose::Package(Ecosystem::Crate, name) => !has_origin && may_be_rust_std(name),
            _ => false,
        };
        let pays = match whose {
            _ if self.functions.get(function).is_nameless => Pays::Nameless,
            Whose::Std(name) => Pays::Std(self.library(name)),
            whose => match self.met(whose) {
                None => Pays::Nobody,
                Some(id) if may_be_std => Pays::Vendored(id),
                Some(id) => Pays::Package(id),
            },
        };
        let made = symbol.and_then(|symbol| Some((symbol, symbol.producer?.row())));
        let interpreter = made.and_then(|(made_symbol, runtime)| {
            let name = runtime.interpreter?;
            Some(made_symbol.name.as_bytes() == name)
        });
        let engine = made.filter(|(_, runtime)| runtime.producer.is_known());
        self.natures.push(Nature {
            place,
            is_java_interpreter: interpreter.unwrap_or(false),
            is_evaled: made.is_some_and(|(made_symbol, runtime)| {
                (runtime.fileless)(made_symbol.name.as_bytes()).is_some()
            }),
            engine: engine.map(|(_, runtime)| runtime.producer),
        });
        self.known.push(Known { pays, doing: None })
    }

    fn part(&self, place: Place) -> &Part {
        match place {
            Place::Kernel => &Part::Kernel,
            Place::Jit => &Part::Jit,
            Place::Nowhere => &Part::Nothing,
            Place::In(object) => self.objects.part(object),
        }
    }

    /// The number of a standard library. There are some dozens at most.
    fn library(&mut self, name: &'static str) -> StdId {
        let mut known = self.libraries.iter_enumerated();
        let known = known.find(|(_, known)| **known == name).map(|(id, _)| id);
        known.unwrap_or_else(|| self.libraries.push(name))
    }

    /// Whose a frame is.
    fn whose(
        &self,
        id: Option<ObjectId>,
        symbol: Option<&Symbol>,
        function: FunctionId,
        part: &Part,
    ) -> Whose {
        let function = self.functions.get(function);
        let given = &self.functions.corrections.packages;
        if !given.is_empty() {
            let names = self.names(id, symbol, function);
            if let Some(name) = Corrections::first(given, &names) {
                return Whose::Package(Ecosystem::Named, name.clone());
            }
        }
        let whose = match (symbol, part) {
            (_, Part::Kernel | Part::Nothing) => return Whose::Nobody,
            (None, Part::Jit) => Whose::Nobody,
            (Some(symbol), Part::Jit) => match symbol.producer {
                Some(producer) => {
                    let (name, clean) = (symbol.name.as_str(), &function.identity.name);
                    let kind = self.kind_of_made(symbol, producer, function);
                    (producer.row().package)(name, clean, kind)
                }
                None => Whose::Nobody,
            },
            (_, Part::Package(ecosystem, name)) => Whose::Package(*ecosystem, name.clone()),
            (_, Part::Library(name)) => Whose::Package(Ecosystem::Object, name.clone()),
            (_, Part::Program(name)) => match id {
                Some(id) => self.in_program(id, symbol, function.kind, name),
                None => Whose::Nobody,
            },
            (_, Part::Std(name)) => Whose::Std(name),
            (_, Part::C | Part::Runtime(_) | Part::Profiler) => Whose::Nobody,
        };
        // What the user says comes first.
        match (function.kind, whose) {
            (Kind::Own, Whose::Package(_, name)) if self.functions.is_told => {
                Whose::Package(Ecosystem::Own, name)
            }
            (Kind::Own, Whose::File(path)) => Whose::File(path),
            (Kind::Own, _) if self.functions.is_told => {
                let object = id.map(|id| objects::label(&self.profile[id].long_name));
                Whose::Package(Ecosystem::Own, object.unwrap_or_default())
            }
            (Kind::Other, Whose::Package(Ecosystem::Own, name)) => {
                Whose::Package(Ecosystem::Object, name)
            }
            (Kind::Other, Whose::File(path)) => {
                Whose::Package(Ecosystem::Object, self.end(&path).to_owned())
            }
            (_, whose) => whose,
        }
    }

    /// What the user's own rules look at.
    fn names<'n>(
        &'n self,
        id: Option<ObjectId>,
        symbol: Option<&'n Symbol>,
        function: &'n Function,
    ) -> Vec<&'n str> {
        let clean = &function.identity.name;
        let object = id.map(|id| self.profile[id].long_name.as_str());
        let names = [
            symbol.map(|symbol| symbol.name.as_str()),
            Some(clean.name.as_str()),
            Some(clean.file.as_str()),
            object,
        ];
        names.into_iter().flatten().collect()
    }

    /// The kind of code that was made at run time, whatever the user calls own.
    fn kind_of_made(&self, symbol: &Symbol, producer: Producer, function: &Function) -> Kind {
        if self.functions.is_told || matches!(function.kind, Kind::Other) {
            return (producer.row().kind)(&symbol.name, &function.identity.name);
        }
        function.kind
    }

    /// Whose a function of a program is, into which everything may be linked.
    fn in_program(
        &self,
        id: ObjectId,
        symbol: Option<&Symbol>,
        kind: Kind,
        program: &str,
    ) -> Whose {
        let ecosystem = if kind == Kind::Own {
            Ecosystem::Own
        } else {
            Ecosystem::Object
        };
        let own = || Whose::Package(ecosystem, program.to_owned());
        let is_own_crate =
            |name: &str| self.objects.is_own_crate(id, name) || name == program.replace('-', "_");
        let Some(symbol) = symbol else {
            return own();
        };
        if self.objects.is_go(id) {
            let is_own = kind == Kind::Own && symbol.origin == Origin::Own;
            // C that a module brings along has no path in its names, as assembly of Go's library.
            if !symbol.name.contains(['.', '/']) {
                match (&symbol.package, symbol.origin) {
                    (Some(module), Origin::Dependency) => {
                        return Whose::Package(Ecosystem::Go, module.to_string());
                    }
                    _ if is_own => return own(),
                    _ => {}
                }
            }
            return match of_go(&symbol.name, program) {
                // Other packages of the program's module, or of one beside it.
                Whose::Package(Ecosystem::Go, name) if is_own => {
                    Whose::Package(Ecosystem::Own, name)
                }
                // A module may be called without a dot, as the library's packages are: its files tell.
                Whose::Std(GO_LIBRARY) if is_own => {
                    let module = symbol.name.split(['/', '.']).next();
                    Whose::Package(Ecosystem::Own, module.unwrap_or(program).to_owned())
                }
                whose => whose,
            };
        }
        if !self.objects.is_rust(id) {
            let name = spelled(symbol).unwrap_or(&symbol.name);
            return match kind {
                Kind::Std if self.language(id).is_some() || is_of_library(name) => {
                    Whose::Std("standard library")
                }
                Kind::Std => Whose::Std(C_LIBRARY),
                _ => own(),
            };
        }
        // Own code for a type of others, where nothing else tells it.
        let own_of = |name: &&str| symbol.origin == Origin::Own && !is_own_crate(name);
        let mut krate = symbol.crate_of();
        if krate.as_ref().is_some_and(own_of) {
            let all = crates_of_method(&symbol.name);
            krate = all.into_iter().find(|name| is_own_crate(name)).or(krate);
        }
        match krate {
            None if kind == Kind::Std => Whose::Std(C_LIBRARY),
            // Inlined functions have no crate in their names.
            None => match self.objects.only_own_crate(id) {
                Some(name) if kind == Kind::Own => Whose::Package(Ecosystem::Own, name.to_owned()),
                _ => own(),
            },
            Some(name) if is_rust_std(name) || symbol.origin == Origin::Std => Whose::Std(RUST),
            Some(name) => {
                let is_own = symbol.origin == Origin::Own
                    || symbol.origin == Origin::Unknown && is_own_crate(name);
                let crate_ecosystem = if is_own {
                    Ecosystem::Own
                } else {
                    Ecosystem::Crate
                };
                Whose::Package(crate_ecosystem, name.to_owned())
            }
        }
    }

    /// The scope of a program's language, if that has a runtime of its own in it.
    fn language(&self, id: ObjectId) -> Option<Scope> {
        self.functions.languages[id].and_then(Language::scope)
    }

    /// What a frame alone says about what runs: the rank and the word.
    fn doing(
        &self,
        id: Option<ObjectId>,
        symbol: Option<&Symbol>,
        part: &Part,
    ) -> Option<&'static Row> {
        if matches!(part, Part::Profiler) {
            return Some(&PROFILING);
        }
        let Some(symbol) = symbol else {
            return matches!(part, Part::Kernel).then_some(&OF_KERNEL);
        };
        let is_go = id.is_some_and(|id| self.objects.is_go(id));
        let is_compiler = id.is_some_and(|id| self.objects.is_compiler(id));
        let scopes = match part {
            Part::Nothing => [None, None],
            Part::Kernel => [Some(Scope::Kernel), None],
            Part::Jit => [symbol.producer.map(Scope::Runtime), None],
            Part::Runtime(scope) => [Some(*scope), Some(Scope::Native)],
            _ if is_compiler => [Some(Scope::Compiler), Some(Scope::Native)],
            _ if is_go => [Some(Scope::Go), Some(Scope::Native)],
            Part::Program(_) => [id.and_then(|id| self.language(id)), Some(Scope::Native)],
            _ => [Some(Scope::Native), None],
        };
        let mut caches = self.caches.borrow_mut();
        let scopes = scopes.into_iter().flatten();
        let name = match symbol.producer {
            Some(_) => &symbol.name,
            None => plain(&symbol.name),
        };
        // What the user wrote may be called as a part of a library is, and is no phase of that. Sources of C's library are in no
        // folder that tells.
        let is_own = symbol.origin == Origin::Own && matches!(part, Part::Program(_));
        let may_be = |scope: &Scope, row: &&Row| !is_own || *scope != Scope::Native || row.rank > 1;
        let found = scopes
            .filter_map(|scope| row_of(scope, &mut caches, name).filter(|row| may_be(&scope, row)));
        found.min_by_key(|row| row.rank)
    }
}

/// The patterns of a scope, made when it first occurs, for all recordings. The lazy automaton alone: `RegexSet` makes a second one
/// backwards, and looks for literals, which together takes twice as long. Nothing if they are no patterns.
fn set(scope: Scope) -> Option<&'static DFA> {
    static SETS: [OnceLock<Option<DFA>>; Scope::COUNT] = [const { OnceLock::new() }; Scope::COUNT];
    let set = SETS[scope.index()].get_or_init(|| {
        let patterns = scope.rows().iter().map(|row| row.pattern);
        // Classes of Unicode's letters take a quarter of a summary; names of code are ASCII where it matters.
        let syntax = syntax::Config::new().unicode(false).utf8(false);
        let syntax = syntax.ignore_whitespace(true);
        let mut parsed = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let one = syntax::parse_with(pattern, &syntax).ok()?;
            // All begin where the name does: else each state has all beginnings in it, of which hardly any can be met there.
            parsed.push(
                if one
                    .properties()
                    .look_set_prefix()
                    .contains_anchor_haystack()
                {
                    one
                } else {
                    let anywhere = format!("^(?s:.*)(?:{pattern}\n)");
                    syntax::parse_with(&anywhere, &syntax).ok()?
                },
            );
        }
        let forward = thompson::Config::new()
            .utf8(false)
            .which_captures(WhichCaptures::None);
        let nfa = thompson::Compiler::new()
            .configure(forward)
            .build_many_from_hir(&parsed);
        let all = DFA::config().match_kind(MatchKind::All);
        let set = DFA::builder().configure(all).build_from_nfa(nfa.ok()?);
        set.ok()
    });
    set.as_ref()
}

/// The name of a native function without its symbol's version, a clone's number, and what glibc calls its own copies:
/// `pthread_mutex_lock` of `pthread_mutex_lock@@GLIBC_2.2.5`.
fn plain(name: &str) -> &str {
    let name = names::native(name);
    let name = name.strip_suffix("@plt").unwrap_or(name);
    name.strip_prefix("__GI_").unwrap_or(name)
}

/// What a scope's rows say of a name: that with the lowest rank.
fn row_of(scope: Scope, caches: &mut FxHashMap<usize, Cache>, name: &str) -> Option<&'static Row> {
    let set = set(scope)?;
    let rows = scope.rows();
    let cache = caches
        .entry(scope.index())
        .or_insert_with(|| set.create_cache());
    let mut matches = PatternSet::new(rows.len());
    let input = Input::new(name.as_bytes()).anchored(Anchored::Yes);
    set.try_which_overlapping_matches(cache, &input, &mut matches)
        .ok()?;
    let rows = matches.iter().map(|row| &rows[row.as_usize()]);
    rows.min_by_key(|row| row.rank)
}

/// By path of an own file: as much of it as tells it from the others.
fn own_ends<'p>(functions: &'p Functions, profile: &'p Profile) -> FxHashMap<&'p str, &'p str> {
    let files = functions
        .all
        .iter()
        .map(|of| of.identity.name.file.as_str());
    let is_own = |file: &&str| !file.is_empty() && npm(file).is_none() && pypi(file).is_none();
    let made = profile
        .optimised
        .iter()
        .filter_map(|(whose, _)| match whose {
            Whose::File(path) => Some(path.as_str()),
            _ => None,
        });
    let mut files: Vec<&str> = files.filter(is_own).chain(made).collect();
    files.sort_unstable();
    files.dedup();
    let ends = telling(&files);
    files.into_iter().zip(ends).collect()
}

/// What was made at run time of texts that name no file, and that no package called.
const EVALED: &str = "code made by eval";
/// What runs where functions of scripts have no names.
const NAMELESS: &str = "unnamed JS";
/// What threads do that could run and have no processor.
const NO_PROCESSOR: &str = "waiting for a processor";
/// Where no program has part in a stack.
const ALONE: &str = "the kernel alone";
/// What nothing is known of.
const UNKNOWN: &str = "unknown";
/// Rust's library.
const RUST: &str = "Rust library";
/// C's library.
const C_LIBRARY: &str = "C library";

#[cfg(test)]
mod tests;
