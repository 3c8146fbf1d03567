//! Who pays for a sample, and what it does.
//!
//! In: a profile and its functions. Out: for a stack its payer and its activity. The payer is the innermost frame that belongs to a
//! package; kernels, runtimes, standard libraries and code made by `eval` belong to none, so that their caller pays. The activity
//! is told by the frames from the payer inwards, for what stands around the payer says nothing about what runs now. Frames are
//! looked at when a stack first asks for them: a view that does not ask builds nothing.

mod objects;
mod spending;

pub use spending::{Activity, Payment, Spending};

use std::cell::OnceCell;

use regex::bytes::{RegexSet, RegexSetBuilder};
use rustc_hash::FxHashMap;

use self::objects::{Objects, Part};
use super::functions::{FunctionId, Functions};
use super::kinds::Kind;
use crate::ids::{IndexVec, index_vec};
use crate::profile::{
    CpuMode, Frame, FrameId, Object, ObjectId, Origin, Profile, Symbol, SymbolId,
};
use crate::runtimes::package::{crate_of, is_rust_std, may_be_rust_std, of_go};
use crate::runtimes::{Ecosystem, Scope, Whose};

crate::ids::numbers! {
    /// Index into the payers that were met.
    pub struct PayerId(pub u32);
}

/// Who pays.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Payer {
    /// Where the package comes from; nothing where it is no package.
    pub ecosystem: Option<Ecosystem>,
    /// Its name, or what there is instead of one: `V8`, `node: modules`.
    pub name: String,
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

/// What rows of activities say of a frame: the rank and the word.
type Doing = (u8, &'static str);

/// What is known of a frame.
#[derive(Debug, Clone)]
struct Known {
    whose: Whose,
    /// A crate that may be a part of Rust's library.
    is_vendored: bool,
    doing: Option<Doing>,
    part: Part,
}

crate::ids::numbers! {
    struct KnownId(pub u32);
}

/// Finds payers and activities of stacks.
pub struct Payers<'p> {
    profile: &'p Profile,
    functions: &'p Functions,
    objects: Objects,
    sets: [OnceCell<RegexSet>; Scope::COUNT],
    /// By what decides: object, symbol, whether in the kernel.
    found: FxHashMap<(Option<ObjectId>, Option<SymbolId>, bool), KnownId>,
    known: IndexVec<KnownId, Known>,
    of_frame: IndexVec<FrameId, Option<KnownId>>,
    payers: IndexVec<PayerId, Payer>,
    numbers: FxHashMap<Payer, PayerId>,
}

impl<'p> Payers<'p> {
    /// Nothing is looked at yet.
    #[must_use]
    pub fn new(profile: &'p Profile, functions: &'p Functions) -> Self {
        Self {
            profile,
            functions,
            objects: Objects::of(profile),
            sets: [const { OnceCell::new() }; Scope::COUNT],
            found: FxHashMap::default(),
            known: IndexVec::new(),
            of_frame: index_vec![None; profile.frames.len()],
            payers: IndexVec::new(),
            numbers: FxHashMap::default(),
        }
    }

    /// Those that were met.
    #[must_use]
    pub fn all(&self) -> &IndexVec<PayerId, Payer> {
        &self.payers
    }

    /// Who pays for a stack, leaf first, and what it does.
    pub fn of(&mut self, frames: &[FrameId]) -> (PayerId, &'static str) {
        let known: Vec<KnownId> = frames.iter().map(|frame| self.look(*frame)).collect();
        let mut std = None;
        let mut payer = None;
        for (depth, id) in known.iter().enumerate() {
            match &self.known[*id].whose {
                Whose::Nobody => {}
                Whose::Std(name) => std = std.or(Some(*name)),
                Whose::Package(_, name) => {
                    if self.known[*id].is_vendored && self.is_in_std(name, &known[depth + 1..]) {
                        std = std.or(Some("Rust library"));
                        continue;
                    }
                    payer = Some(depth);
                    break;
                }
            }
        }
        let inner = payer.map_or(known.as_slice(), |depth| &known[..=depth]);
        let activity = self.activity(frames, inner);
        let who = match payer.map(|depth| &self.known[known[depth]].whose) {
            Some(Whose::Package(ecosystem, name)) => Payer {
                ecosystem: Some(*ecosystem),
                name: name.clone(),
            },
            _ => Payer {
                ecosystem: None,
                name: self.without_payer(frames, &known, std, activity).to_owned(),
            },
        };
        (self.number(who), activity)
    }

    fn number(&mut self, payer: Payer) -> PayerId {
        if let Some(known) = self.numbers.get(&payer) {
            return *known;
        }
        let id = self.payers.push(payer.clone());
        self.numbers.insert(payer, id);
        id
    }

    /// Whether the next frame outwards of another package is of Rust's library.
    fn is_in_std(&self, name: &str, outwards: &[KnownId]) -> bool {
        let mut others = outwards
            .iter()
            .filter_map(|id| match &self.known[*id].whose {
                Whose::Std(_) => Some(true),
                Whose::Package(_, other) if other != name => Some(false),
                Whose::Package(..) | Whose::Nobody => None,
            });
        others.next().unwrap_or(false)
    }

    /// What a stack does: the lowest rank wins, and within a rank the frame nearest the root.
    fn activity(&self, frames: &[FrameId], inner: &[KnownId]) -> &'static str {
        let mut best: Option<Doing> = None;
        for (depth, id) in inner.iter().enumerate().rev() {
            let Some(doing) = self.known[*id].doing else {
                continue;
            };
            let counts = depth == 0 || doing.0 < 3;
            if counts && best.is_none_or(|best| doing.0 < best.0) {
                best = Some(doing);
            }
        }
        if let Some((_, name)) = best {
            return name;
        }
        let Some(leaf) = inner.first() else {
            return UNKNOWN;
        };
        let frame = &self.profile[frames[0]];
        match self.known[*leaf].part {
            Part::Runtime(_) => "runtime, other",
            Part::Jit if frame.symbol.is_some() => "compiled code",
            Part::Jit | Part::Nothing => UNKNOWN,
            _ if frame.symbol.is_none() => UNKNOWN,
            _ => "code",
        }
    }

    /// What stands in place of a payer.
    fn without_payer(
        &self,
        frames: &[FrameId],
        known: &[KnownId],
        std: Option<&'static str>,
        activity: &'static str,
    ) -> &str {
        let part = |id: &KnownId| &self.known[*id].part;
        if !known.is_empty() && known.iter().all(|id| matches!(part(id), Part::Kernel)) {
            return if activity == "idle" {
                "idle"
            } else {
                "the kernel alone"
            };
        }
        if frames.iter().any(|frame| self.is_java_interpreter(*frame)) {
            return "Java, interpreted (no names)";
        }
        if let Some(std) = std.filter(|std| !matches!(*std, "C library" | "standard library")) {
            return std;
        }
        let runtime = known.iter().find_map(|id| match part(id) {
            Part::Runtime(scope) => Some(scope.name()),
            _ => None,
        });
        if let Some(runtime) = runtime {
            return runtime;
        }
        let jit = frames.iter().find_map(|frame| {
            let symbol = self.profile[*frame].symbol.map(|id| &self.profile[id]);
            symbol.and_then(|symbol| symbol.producer)
        });
        match jit {
            Some(producer) if producer.is_known() => producer.row().engine,
            _ if known.iter().any(|id| matches!(part(id), Part::C)) => "C library",
            _ => std.unwrap_or(UNKNOWN),
        }
    }

    fn is_java_interpreter(&self, frame: FrameId) -> bool {
        let symbol = self.profile[frame].symbol.map(|id| &self.profile[id]);
        symbol.is_some_and(|symbol| {
            let runtime = symbol.producer.map(|producer| producer.row());
            runtime
                .and_then(|runtime| runtime.interpreter)
                .is_some_and(|name| symbol.name.as_bytes() == name)
        })
    }

    fn look(&mut self, id: FrameId) -> KnownId {
        if let Some(known) = self.of_frame[id] {
            return known;
        }
        let frame = &self.profile[id];
        let is_kernel = frame.mode == CpuMode::Kernel;
        let key = (frame.object, frame.symbol, is_kernel);
        let known = match self.found.get(&key) {
            Some(known) => *known,
            None => {
                let known = self.frame(frame, self.functions.of_frame(id), is_kernel);
                let known = self.known.push(known);
                self.found.insert(key, known);
                known
            }
        };
        self.of_frame[id] = Some(known);
        known
    }

    fn frame(&self, frame: &Frame, function: FunctionId, is_kernel: bool) -> Known {
        let part = match frame.object {
            _ if is_kernel => Part::Kernel,
            None => Part::Nothing,
            Some(object) => self.objects.part(object).clone(),
        };
        let object = frame.object.map(|id| &self.profile[id]);
        let symbol = frame.symbol.map(|id| &self.profile[id]);
        let (whose, is_vendored) = self.whose(frame.object, object, symbol, function, &part);
        let doing = self.doing(frame.object, symbol, &part);
        Known {
            whose,
            is_vendored,
            doing,
            part,
        }
    }

    /// Whose a frame is, and whether that may be Rust's library after all.
    fn whose(
        &self,
        id: Option<ObjectId>,
        object: Option<&Object>,
        symbol: Option<&Symbol>,
        function: FunctionId,
        part: &Part,
    ) -> (Whose, bool) {
        let function = self.functions.get(function);
        let whose = match (symbol, part) {
            (_, Part::Kernel | Part::Nothing) => return (Whose::Nobody, false),
            (None, Part::Jit) => Whose::Nobody,
            (Some(symbol), Part::Jit) => match symbol.producer {
                Some(producer) => (producer.row().package)(&symbol.name, &function.identity.name),
                None => Whose::Nobody,
            },
            (_, Part::Package(ecosystem, name)) => Whose::Package(*ecosystem, name.clone()),
            (_, Part::Library(name)) => Whose::Package(Ecosystem::Object, name.clone()),
            (_, Part::Program(name)) => match id {
                Some(id) => self.in_program(id, symbol, function.kind, name),
                None => Whose::Nobody,
            },
            (_, Part::C | Part::Runtime(_) | Part::Profiler) => Whose::Nobody,
        };
        // What the user says comes first.
        let label = || match &whose {
            Whose::Package(_, name) => name.clone(),
            Whose::Nobody | Whose::Std(_) => {
                object.map_or_else(String::new, |object| objects::label(&object.long_name))
            }
        };
        let whose = match (function.kind, &whose) {
            (Kind::Own, _) if self.functions.is_told => Whose::Package(Ecosystem::Own, label()),
            (Kind::Other, Whose::Package(Ecosystem::Own, name)) => {
                Whose::Package(Ecosystem::Object, name.clone())
            }
            _ => whose,
        };
        let is_vendored = matches!(&whose, Whose::Package(Ecosystem::Crate, name) if may_be_rust_std(name))
            && symbol.is_some_and(|symbol| symbol.origin == Origin::Unknown);
        (whose, is_vendored)
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
        let Some(symbol) = symbol else {
            return own();
        };
        if self.objects.is_go(id) {
            return of_go(&symbol.name, program);
        }
        if !self.objects.is_rust(id) {
            return match kind {
                Kind::Std => Whose::Std("C library"),
                _ => own(),
            };
        }
        match crate_of(&symbol.name) {
            None if kind == Kind::Std => Whose::Std("C library"),
            // Inlined functions have no crate in their names.
            None => match self.objects.only_own_crate(id) {
                Some(name) if kind == Kind::Own => Whose::Package(Ecosystem::Own, name.to_owned()),
                _ => own(),
            },
            Some(name) if is_rust_std(name) || symbol.origin == Origin::Std => {
                Whose::Std("Rust library")
            }
            Some(name) => {
                let is_own = symbol.origin == Origin::Own
                    || symbol.origin == Origin::Unknown
                        && (self.objects.is_own_crate(id, name)
                            || name == program.replace('-', "_"));
                let ecosystem = if is_own {
                    Ecosystem::Own
                } else {
                    Ecosystem::Crate
                };
                Whose::Package(ecosystem, name.to_owned())
            }
        }
    }

    /// What a frame alone says about what runs.
    fn doing(&self, id: Option<ObjectId>, symbol: Option<&Symbol>, part: &Part) -> Option<Doing> {
        if matches!(part, Part::Profiler) {
            return Some((0, "profiling itself"));
        }
        let Some(symbol) = symbol else {
            return matches!(part, Part::Kernel).then_some((3, "kernel, other"));
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
            _ => [Some(Scope::Native), None],
        };
        let is_made = matches!(part, Part::Jit);
        let found = scopes.into_iter().flatten().filter_map(|scope| {
            let rows = scope.rows();
            let matches = self.set(scope).matches(symbol.name.as_bytes());
            let rows = matches.iter().map(|row| &rows[row]);
            let rows = rows.filter(|row| is_made || !OF_MADE_CODE.contains(&row.name));
            rows.min_by_key(|row| row.rank)
                .map(|row| (row.rank, row.name))
        });
        found.min_by_key(|doing| doing.0)
    }

    /// The patterns of a scope, made when it first occurs.
    fn set(&self, scope: Scope) -> &RegexSet {
        self.sets[scope.index()].get_or_init(|| {
            let patterns = scope.rows().iter().map(|row| row.pattern);
            let mut set = RegexSetBuilder::new(patterns);
            // Classes of Unicode's letters take a quarter of a summary; names of code are ASCII where it matters.
            let set = set.unicode(false).ignore_whitespace(true).build();
            set.unwrap_or_else(|_| RegexSet::empty())
        })
    }
}

/// What nothing is known of.
const UNKNOWN: &str = "unknown";

/// Activities of code that is made at run time, whatever a runtime's own functions are called.
const OF_MADE_CODE: [&str; 2] = ["compiled code", "guest code"];

#[cfg(test)]
mod tests;
