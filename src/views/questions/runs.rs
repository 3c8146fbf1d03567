//! What is kept of each recording of a comparison: small tallies by identity, so that memory is that of one recording.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::aliases::{Aliases, Known, Named, shared_code};
use super::described::Described;
use super::facts::Facts;
use super::manglings::Manglings;
use super::scripts::Scripts;
use super::summary::labels;
use crate::functions::payers::{Payer, Payers};
use crate::functions::programs::{Programs, SameProgram};
use crate::functions::tally::{Count, Tally};
use crate::functions::{Basis, FunctionId, Functions, Identity};
use crate::ids::Idx;
use crate::profile::{FrameId, ObjectId, Profile, Symbol, SymbolId};
use crate::runtimes::crates::{crate_of, is_rust_std};
use crate::runtimes::query::{Fit, More, Query};
use crate::runtimes::{CleanName, Ecosystem, Producer};

/// One function in one recording.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Part {
    /// As the innermost frame.
    pub own: Count,
    /// Anywhere.
    pub inclusive: Count,
    /// As the innermost own frame.
    pub credited: Count,
    /// Whether it is own.
    pub is_own: bool,
    /// Σw² of the samples of the credited weight, and of self.
    pub squares: [f64; 2],
}

/// Weight of some samples, and how unequal they are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weight {
    /// Its sum, and how many they are.
    pub count: Count,
    /// Σw².
    pub squares: f64,
}

impl Weight {
    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.add(other.count, other.squares);
        self
    }

    fn add(&mut self, count: Count, squares: f64) {
        self.count.add(count);
        self.squares += squares;
    }
}

/// The samples in which a text names a frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// Their weight.
    pub weight: Weight,
    /// Whether there is such a function.
    pub is_there: bool,
    /// Functions that a name with a gap may be of.
    pub may_be: BTreeSet<Identity>,
    /// A larger function of them whose code is another one's, too, or the other way round; and that one.
    pub folded: Option<(String, String)>,
}

/// By what functions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// What own functions pay for.
    #[default]
    Credited,
    /// The innermost frame, of all functions.
    Own,
    /// What packages pay for, and what nobody does.
    Package,
    /// What is done.
    Activity,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Credited, Self::Own, Self::Package, Self::Activity];

    /// As options and documents have it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Credited => "credited",
            Self::Own => "self",
            Self::Package => "package",
            Self::Activity => "activity",
        }
    }

    /// What its rows are.
    #[must_use]
    pub const fn rows(self) -> &'static str {
        match self {
            Self::Credited | Self::Own => "functions",
            Self::Package => "packages",
            Self::Activity => "activities",
        }
    }

    /// Whether rows are functions.
    #[must_use]
    pub const fn is_of_functions(self) -> bool {
        matches!(self, Self::Credited | Self::Own)
    }
}

impl Part {
    /// Adds what is the same function or package.
    fn add(&mut self, other: &Self) {
        self.own.add(other.own);
        self.inclusive.add(other.inclusive);
        self.credited.add(other.credited);
        self.is_own |= other.is_own;
        self.squares[0] += other.squares[0];
        self.squares[1] += other.squares[1];
    }

    /// Its weight.
    #[must_use]
    pub const fn count(&self, by: By) -> Count {
        match by {
            By::Own => self.own,
            By::Credited | By::Package | By::Activity => self.credited,
        }
    }

    /// Σw² of its samples.
    #[must_use]
    pub const fn squares(&self, by: By) -> f64 {
        match by {
            By::Own => self.squares[1],
            By::Credited | By::Package | By::Activity => self.squares[0],
        }
    }

    /// Samples of equal weight that it is worth.
    #[must_use]
    pub fn samples(&self, by: By) -> f64 {
        let (weight, squares) = (self.count(by).period as f64, self.squares(by));
        if squares > 0.0 {
            weight * weight / squares
        } else {
            0.0
        }
    }
}

/// One recording.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// What it is.
    pub facts: Facts,
    /// All samples of the event that filters left.
    pub total: Count,
    /// Σw² of all of them.
    pub squares: f64,
    /// Functions by identity.
    pub functions: BTreeMap<Identity, Part>,
    /// Functions that have no sample here, only in the other side's runs, but that its files know; if somebody has looked there.
    pub known: Option<BTreeSet<Identity>>,
    /// The sources of all code that it made at run time and the objects that it mapped, if somebody has looked there.
    pub files: BTreeSet<String>,
    /// The heaviest caller of the larger functions.
    pub callers: BTreeMap<Identity, Identity>,
    /// What each text names that was asked for, by how well it fits.
    pub named: Vec<BTreeMap<Fit, Group>>,
    /// The same by what fits best in all runs ([`settle`]).
    pub groups: Vec<Group>,
    /// Self by kind and by object, for budgets.
    pub shares: BTreeMap<String, Weight>,
    /// Functions that are several of one name, which nothing tells apart.
    pub several: BTreeSet<Identity>,
    /// What ran.
    pub programs: Programs,
    /// How it was told what is own.
    pub basis: Basis,
    /// Scripts that ran, if functions are compared.
    pub scripts: Scripts,
    /// What the names of its Rust functions are of.
    pub manglings: Manglings,
    /// What else functions are called in their files, of those that are called otherwise there.
    pub others: BTreeMap<Identity, Named>,
    /// Packages that may have to pay for code that is another one's, too: how much of it, and which one.
    pub folded: BTreeMap<String, (u64, String)>,
    /// Of which of its functions debug information tells.
    pub described: Described,
    /// Whether names of native code are cut to what both manglings tell.
    pub is_plain: bool,
}

/// Whether two sides are of the same recordings, at two times.
#[must_use]
pub fn are_times<'r>(
    base: impl IntoIterator<Item = &'r Run>,
    new: impl IntoIterator<Item = &'r Run>,
) -> bool {
    let paths: BTreeSet<&str> = base
        .into_iter()
        .map(|run| run.facts.path.as_str())
        .collect();
    let others: BTreeSet<&str> = new.into_iter().map(|run| run.facts.path.as_str()).collect();
    paths == others && !paths.is_empty() && !paths.contains("")
}

/// The program of a comparison, if it has another name on each side.
#[must_use]
pub fn same_program(base: &[Run], new: &[Run]) -> Option<SameProgram> {
    if are_times(base, new) {
        return None;
    }
    let [base, new] = [base, new]
        .map(|runs| -> Vec<&Programs> { runs.iter().map(|run| &run.programs).collect() });
    SameProgram::of(&base, &new)
}

/// Runs of the base, with the program and functions of several names called as they are in the new side.
#[must_use]
pub fn by_one_name<'r>(
    base: &'r [Run],
    new: &[Run],
    program: Option<&SameProgram>,
) -> (Cow<'r, [Run]>, Aliases) {
    let base = match program {
        None => Cow::Borrowed(base),
        Some(program) => {
            let named = |identity: &Identity| program.as_new(identity.clone());
            base.iter().map(|run| renamed(run, named)).collect()
        }
    };
    let aliases = Aliases::of(&known(&base), &known(new));
    if aliases.is_empty() {
        return (base, aliases);
    }
    let named = |identity: &Identity| aliases.as_new(identity.clone());
    let base = base.iter().map(|run| renamed(run, named)).collect();
    (base, aliases)
}

/// The functions of some runs with their other names.
fn known(runs: &[Run]) -> Vec<Known<'_>> {
    let functions = runs
        .iter()
        .flat_map(|run| run.functions.keys().map(move |of| (run, of)));
    functions
        .map(|(run, of)| (of, run.others.get(of)))
        .collect()
}

fn renamed(run: &Run, named: impl Fn(&Identity) -> Identity + Copy) -> Run {
    let mut functions: BTreeMap<Identity, Part> = BTreeMap::new();
    for (of, part) in &run.functions {
        functions.entry(named(of)).or_default().add(part);
    }
    let callers = run.callers.iter();
    Run {
        functions,
        known: run
            .known
            .as_ref()
            .map(|known| known.iter().map(named).collect()),
        callers: callers.map(|(of, by)| (named(of), named(by))).collect(),
        facts: run.facts.clone(),
        named: Vec::new(),
        groups: run.groups.clone(),
        shares: run.shares.clone(),
        programs: run.programs.clone(),
        scripts: run.scripts.clone(),
        manglings: run.manglings,
        others: run
            .others
            .iter()
            .map(|(of, others)| (named(of), others.clone()))
            .collect(),
        folded: run.folded.clone(),
        described: run.described.clone(),
        is_plain: run.is_plain,
        files: run.files.clone(),
        several: run.several.iter().map(named).collect(),
        ..*run
    }
}

/// Reduces a profile to what is compared. `is_plain`: see [`Run::is_plain`].
#[must_use]
pub fn reduce(
    profile: &Profile,
    functions: &Functions,
    tally: &Tally,
    facts: Facts,
    (groups, by): (&[Query], By),
    is_plain: bool,
) -> Run {
    let squares = Squares::of(profile, functions, tally);
    let mut run = Run {
        facts,
        total: tally.total,
        squares: squares.total,
        named: group_weights(profile, functions, tally, groups),
        programs: Programs::of(profile, tally.event),
        basis: functions.basis,
        described: Described::of(profile, functions, tally),
        is_plain,
        ..Run::default()
    };
    if by.is_of_functions() {
        run.scripts = Scripts::of(profile);
        run.manglings = Manglings::of(profile);
        run.several = several(profile, functions, is_plain);
        run.others = others(profile, functions);
    }
    let mut labels: FxHashMap<(&str, &str), Weight> = FxHashMap::default();
    for (at, (function, numbers)) in functions.all.iter().zip(&tally.numbers).enumerate() {
        if numbers.inclusive.samples == 0 {
            continue;
        }
        let identity = functions.identity(profile, FunctionId::from_usize(at));
        let part = run.functions.entry(identity).or_default();
        part.own.add(numbers.own);
        part.credited.add(numbers.credited);
        part.inclusive.add(numbers.inclusive);
        part.is_own |= functions.is_own(FunctionId::from_usize(at));
        part.squares[0] += squares.credited[at];
        part.squares[1] += squares.own[at];
        let object = function.identity.object.as_str();
        for (kind, label, count, square) in [
            ("kind", function.kind.word(), numbers.own, squares.own[at]),
            ("lib", object, numbers.physical, squares.physical[at]),
        ] {
            let sum = labels.entry((kind, label)).or_default();
            sum.add(count, square);
        }
    }
    let shares = labels.into_iter();
    run.shares = shares
        .map(|((kind, label), weight)| (format!("{kind}:{label}"), weight))
        .collect();
    if by.is_of_functions() {
        run.callers = callers(profile, functions, tally);
    } else {
        (run.functions, run.folded) = paid(profile, functions, tally, by);
    }
    run
}

/// Functions that are several pieces of code, which nothing tells apart. CPython writes code once for each function, with its name and
/// file alone: two lambdas of one function are one name, in one process two pieces. Where names of native code are cut, instances of
/// one function with other types have one name, and closures.
fn several(profile: &Profile, functions: &Functions, is_plain: bool) -> BTreeSet<Identity> {
    let may_be = |symbol: SymbolId| {
        let symbol = &profile[symbol];
        let is_native = || !symbol.inlined && !profile[symbol.object].is_kernel;
        match symbol.producer {
            Some(producer) => producer == Producer::CPython,
            None => is_plain && is_native(),
        }
    };
    let mut first: FxHashMap<(FunctionId, Option<ObjectId>), SymbolId> = FxHashMap::default();
    let mut several = BTreeSet::new();
    for (id, frame) in profile.frames.iter_enumerated() {
        if let Some(symbol) = frame.symbol.filter(|symbol| may_be(*symbol)) {
            let function = functions.of_frame(id);
            let known = first.entry((function, frame.object)).or_insert(symbol);
            if *known != symbol {
                several.insert(functions.identity(profile, function));
            }
        }
    }
    several
}

/// What else functions are called in their files.
fn others(profile: &Profile, functions: &Functions) -> BTreeMap<Identity, Named> {
    let mut all: BTreeMap<Identity, Named> = BTreeMap::new();
    for (id, frame) in profile.frames.iter_enumerated() {
        let symbol = frame.symbol.map(|symbol| &profile[symbol]);
        let others = symbol.filter(|symbol| !symbol.inlined);
        let Some(others) = others.and_then(|found| found.others.as_ref()) else {
            continue;
        };
        let plain = |name: &String| CleanName::of(name, None).name;
        let named = all
            .entry(functions.identity(profile, functions.of_frame(id)))
            .or_default();
        named.names.extend(others.names.iter().map(plain));
        if named.folded.is_none() {
            named.folded = others.folded.as_ref().map(plain);
        }
    }
    all
}

/// The packages that a function may be of where its code is another one's, too: that which pays, and those of the other names.
fn packages_of<'p>(symbol: &'p Symbol, payer: &'p str) -> BTreeSet<Cow<'p, str>> {
    let mut packages: BTreeSet<Cow<'p, str>> = [payer.into()].into();
    if let Some(others) = symbol.others.as_ref().filter(|of| of.folded.is_some()) {
        let of_others = others.names.iter().filter_map(|name| crate_of(name));
        packages.extend(
            of_others
                .filter(|name| !is_rust_std(name))
                .map(Cow::Borrowed),
        );
    }
    packages
}

/// Packages, or activities, as if they were functions: each sample belongs to one. And how much packages have of code that may be
/// another one's.
fn paid(
    profile: &Profile,
    functions: &Functions,
    tally: &Tally,
    by: By,
) -> (BTreeMap<Identity, Part>, BTreeMap<String, (u64, String)>) {
    let mut folded: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut payers = Payers::new(profile, functions);
    let mut parts: BTreeMap<Identity, Part> = BTreeMap::new();
    for stack in &tally.stacks {
        let told = payers.of_samples(stack);
        let (object, name) = if by == By::Package {
            let payer = &payers.all()[told.payer];
            let ecosystem = payer.ecosystem.map_or("nobody", Ecosystem::word);
            let frame = told.depth.map(|depth| stack.frames(profile)[depth]);
            let symbol = frame.and_then(|frame| profile[frame].symbol);
            if let Some(symbol) = symbol.filter(|symbol| !profile[*symbol].is_cpp) {
                let packages = packages_of(&profile[symbol], &payer.name);
                for name in &packages {
                    let Some(other) = packages.iter().find(|other| *other != name) else {
                        break;
                    };
                    let known = folded.entry(name.to_string());
                    let (weight, _) = known.or_insert_with(|| (0, other.to_string()));
                    *weight = weight.saturating_add(stack.count.period);
                }
            }
            (ecosystem, package(payer))
        } else {
            ("", CleanName::plain(payers.activities()[told.activity]))
        };
        let identity = Identity {
            object: object.to_owned(),
            name,
            ..Identity::default()
        };
        let part = parts.entry(identity).or_default();
        part.credited.add(stack.count);
        part.squares[0] += stack.squares;
        part.is_own = true;
    }
    (parts, folded)
}

/// A file has another name beside others; its path is the same.
fn package(payer: &Payer) -> CleanName {
    let file = CleanName {
        file: payer.path.clone(),
        ..CleanName::default()
    };
    match payer.path.as_str() {
        "" => CleanName::plain(&payer.name),
        _ => CleanName {
            name: file.file_name().to_owned(),
            ..file
        },
    }
}

/// Σw² of all samples, and by function of credited weight, of self and by the address.
struct Squares {
    total: f64,
    credited: Vec<f64>,
    own: Vec<f64>,
    physical: Vec<f64>,
}

impl Squares {
    fn of(profile: &Profile, functions: &Functions, tally: &Tally) -> Self {
        let none = || vec![0.0; functions.all.len()];
        let mut sums = Self {
            total: 0.0,
            credited: none(),
            own: none(),
            physical: none(),
        };
        for stack in &tally.stacks {
            sums.total += stack.squares;
            let first = functions.of_frame(stack.frames(profile)[0]);
            sums.own[first.index()] += stack.squares;
            let physical = functions.of_frame(stack.leaf());
            sums.physical[physical.index()] += stack.squares;
            if let Some(payer) = stack.payer {
                sums.credited[payer.index()] += stack.squares;
            }
        }
        sums
    }
}

/// For each text the weight of the samples with a frame that it names, by how well it fits.
fn group_weights(
    profile: &Profile,
    functions: &Functions,
    tally: &Tally,
    groups: &[Query],
) -> Vec<BTreeMap<Fit, Group>> {
    if groups.is_empty() {
        return Vec::new();
    }
    let labels = labels(functions, false);
    let mut folded = shared_code(profile, functions);
    folded.retain(|id, _| is_large(tally, *id));
    let weight = |group: &Query| {
        let fit_of = |id: FunctionId| {
            let function = functions.get(id);
            let names = [labels[id.index()].as_str(), function.full.as_str()];
            let fit = functions.fit(profile, id, (group, &names))?;
            Some(of_name(fit, group, &function.identity.name))
        };
        let fits: Vec<Option<Fit>> = functions.all.indices().map(fit_of).collect();
        let mut found: BTreeMap<Fit, Group> = BTreeMap::new();
        for (function, fit) in functions.all.iter().zip(&fits) {
            let Some(fit) = *fit else { continue };
            let sum = found.entry(fit).or_default();
            sum.is_there = true;
            if fit == Fit::Cut {
                sum.may_be.insert(function.identity.clone());
            }
        }
        for (fit, sum) in &mut found {
            let is_met = |frame: &FrameId| fits[functions.of_frame(*frame).index()] == Some(*fit);
            for stack in &tally.stacks {
                if stack.frames(profile).iter().any(is_met) {
                    sum.weight.add(stack.count, stack.squares);
                }
            }
            let is_named = |(id, (_, other)): &(&FunctionId, &(String, String))| {
                let clean = CleanName::plain(other);
                let of_other = group.fit(other, &clean, &More::default());
                let of_other = of_other.map(|other_fit| of_name(other_fit, group, &clean));
                [fits[id.index()], of_other].contains(&Some(*fit))
            };
            let told = folded.iter().find(is_named);
            sum.folded = told.map(|(_, told)| told.clone());
        }
        found
    };
    groups.iter().map(weight).collect()
}

/// How a text fits a name in whatever run: a name without more is printed so where the run has no other one, and what it finds as an
/// expression may be a part of a name.
fn of_name(fit: Fit, group: &Query, name: &CleanName) -> Fit {
    match fit {
        Fit::Printed if group.text() == name.name => Fit::Name,
        Fit::Raw => Fit::Name,
        Fit::Pattern => Fit::Part,
        fit => fit,
    }
}

/// Of what texts name, leaves what fits best in any of the runs: a name that is printed is that function, and no expression.
pub fn settle(base: &mut [Run], new: &mut [Run]) {
    let runs = || base.iter().chain(new.iter());
    let count = runs().map(|run| run.named.len()).max().unwrap_or(0);
    let fits = |at: usize| runs().filter_map(move |run| run.named[at].keys().next().copied());
    let best: Vec<Option<Fit>> = (0..count).map(|at| fits(at).min()).collect();
    for run in base.iter_mut().chain(new) {
        let named = std::mem::take(&mut run.named).into_iter().zip(&best);
        let groups = named.map(|(mut found, fit)| found.remove(&(*fit)?));
        run.groups = groups.map(Option::unwrap_or_default).collect();
    }
}

/// Whether a function has a two-hundredth of the total.
fn is_large(tally: &Tally, id: FunctionId) -> bool {
    let weight = tally.of_function(id).inclusive.period;
    u128::from(weight) * 200 >= u128::from(tally.total.period)
}

/// The heaviest caller of each function that has a two-hundredth of the total.
fn callers(
    profile: &Profile,
    functions: &Functions,
    tally: &Tally,
) -> BTreeMap<Identity, Identity> {
    let large: Vec<bool> = (0..functions.all.len())
        .map(|at| is_large(tally, FunctionId::from_usize(at)))
        .collect();
    let mut edges = EdgeSums::default();
    for stack in &tally.stacks {
        let mut callee: Option<FunctionId> = None;
        for frame in stack.frames(profile) {
            let caller = functions.of_frame(*frame);
            if let Some(callee) = callee.filter(|callee| *callee != caller) {
                edges.add((callee, caller), stack.count.period);
            }
            callee = large[caller.index()].then_some(caller);
        }
    }
    let mut best: BTreeMap<FunctionId, (u64, std::cmp::Reverse<FunctionId>)> = BTreeMap::new();
    for ((callee, caller), weight) in edges.all() {
        let candidate = (weight, std::cmp::Reverse(caller));
        let known = best.entry(callee).or_insert(candidate);
        *known = candidate.max(*known);
    }
    let identity = |id: FunctionId| functions.identity(profile, id);
    best.into_iter()
        .map(|(callee, (_, caller))| (identity(callee), identity(caller.0)))
        .collect()
}

type Edge = (FunctionId, FunctionId);

/// Sums by edge. Most stacks go along the same few edges: their sums are at hand, without a search.
struct EdgeSums {
    near: Vec<Option<(Edge, u64)>>,
    far: FxHashMap<Edge, u64>,
}

impl Default for EdgeSums {
    fn default() -> Self {
        Self {
            near: vec![None; Self::NEAR],
            far: FxHashMap::default(),
        }
    }
}

impl EdgeSums {
    const NEAR: usize = 1 << 10;

    fn add(&mut self, edge: Edge, weight: u64) {
        let mixed = edge.0.0.wrapping_mul(0x9e37_79b1) ^ edge.1.0.wrapping_mul(0x85eb_ca6b);
        let slot = &mut self.near[(mixed >> 22) as usize % Self::NEAR];
        match slot {
            Some((known, sum)) if *known == edge => *sum = sum.saturating_add(weight),
            slot => {
                if let Some(old) = slot.replace((edge, weight)) {
                    put(&mut self.far, old);
                }
            }
        }
    }

    fn all(self) -> FxHashMap<Edge, u64> {
        let Self { near, mut far } = self;
        near.into_iter()
            .flatten()
            .for_each(|sum| put(&mut far, sum));
        far
    }
}

fn put(sums: &mut FxHashMap<Edge, u64>, (edge, weight): (Edge, u64)) {
    let sum = sums.entry(edge).or_default();
    *sum = sum.saturating_add(weight);
}
