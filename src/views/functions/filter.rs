//! Filters: which samples are looked at, and which of their frames, as in pprof.
//!
//! In: a profile. Out: the same profile with fewer samples and shorter stacks; events keep their totals, so that shares stay those
//! of the whole. First tags, then focus and ignore on whole stacks, then `show_from`, `hide`, `show`. Every verb filters here.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexSet};

use super::kinds::OwnRules;
use super::payers::{Paid, Payers};
use super::table::object_label;
use super::tally::Count;
use super::{Functions, folder};
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec};
use crate::needs::Needs;
use crate::profile::{
    CommId, Entry, EventId, Facet, Facets, FacetsId, Frame, FrameId, Object, ObjectId, Profile,
    Sample, SampleFilter, SampleMatcher, StackEnd, StackId, Stacks, SymbolId, ThreadId, parents,
};
use crate::run_state::RunState;
use crate::runtimes::CleanName;
use crate::runtimes::query::{self, Fit, Query};
use crate::span_spec::Spans;

/// What a tag's expression is tried on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Name of the thread at the time.
    Comm,
    /// Process.
    Pid,
    /// Thread.
    Tid,
    /// Processor.
    Cpu,
    /// Name of the event.
    Event,
    /// Kind of the innermost frame.
    Kind,
    /// Who pays.
    Package,
    /// What is done.
    Activity,
    /// The recording, by the end of its path.
    Recording,
    /// The host that it was recorded on.
    Host,
}

impl Tag {
    /// All tags by name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("comm", Self::Comm),
        ("pid", Self::Pid),
        ("tid", Self::Tid),
        ("cpu", Self::Cpu),
        ("event", Self::Event),
        ("kind", Self::Kind),
        ("package", Self::Package),
        ("activity", Self::Activity),
        ("recording", Self::Recording),
        ("host", Self::Host),
    ];
}

/// What makes a frame the parent of its sample.
#[derive(Debug, Clone)]
pub enum Parent {
    /// A name that perf takes for one: `^sys_`, `^do_page_fault`.
    Usual,
    /// A name that matches.
    Matching(Regex),
}

impl Parent {
    fn regex(&self) -> Option<&Regex> {
        match self {
            Self::Usual => None,
            Self::Matching(regex) => Some(regex),
        }
    }
}

/// Texts that are searched for in names: expressions as in pprof, or names as tables print them.
#[derive(Debug, Clone)]
pub struct Patterns {
    texts: Vec<String>,
    queries: Vec<Query>,
    /// Those that are expressions, and which these are.
    set: RegexSet,
    of_set: Vec<usize>,
}

impl Patterns {
    /// Understands texts. What is no expression is a name.
    #[must_use]
    pub fn of(texts: &[String]) -> Self {
        let queries: Vec<Query> = texts.iter().map(|text| Query::of(text)).collect();
        let is_regex = |(at, query): (usize, &Query)| query.problem().is_none().then_some(at);
        let mut of_set: Vec<usize> = queries.iter().enumerate().filter_map(is_regex).collect();
        let set = RegexSet::new(of_set.iter().map(|at| &texts[*at])).unwrap_or_else(|_| {
            // Each alone is small enough, all together are not.
            of_set.clear();
            RegexSet::empty()
        });
        Self {
            texts: texts.to_vec(),
            queries,
            set,
            of_set,
        }
    }

    /// As they were given.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        self.texts.iter()
    }
}

/// What means something in an expression, and may stand in a name.
const SIGNS: [char; 13] = [
    '(', ')', '[', ']', '{', '}', '*', '+', '?', '|', '^', '$', '\\',
];

/// Whether a text has a folder or an ending in it: `src/`, `x.c`, `x\\.rs$`.
fn may_name_file(text: &str) -> bool {
    let mut parts = text.split('.').skip(1);
    text.contains('/') || parts.any(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// What to keep. Expressions are searched for in names of functions, paths of objects and of source files.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Only samples of these phases, by their numbers in `summary --over-time`. They become times before the recording is read.
    pub phases: Vec<usize>,
    /// Only samples in these spans. They are chosen while the recording is read.
    pub spans: Option<Spans>,
    /// Which samples, as `report` has it.
    pub samples: SampleFilter,
    /// Only samples with a parent, as `report` has it.
    pub parent: Option<Parent>,
    /// Only samples with a frame that matches.
    pub focus: Option<Patterns>,
    /// No samples with a frame that matches.
    pub ignore: Option<Patterns>,
    /// Frames that are removed.
    pub hide: Option<Patterns>,
    /// The only frames that are kept.
    pub show: Option<Patterns>,
    /// The only frames that are kept, by the package that each belongs to.
    pub show_packages: Option<RegexSet>,
    /// Frames above the outermost match are removed; so are samples without one.
    pub show_from: Option<Patterns>,
    /// Only samples in which one of these matches.
    pub tag_focus: Vec<(Tag, Regex)>,
    /// No samples in which one of these matches.
    pub tag_ignore: Vec<(Tag, Regex)>,
}

impl Filters {
    /// What is searched for in frames.
    const fn sets(&self) -> [&Option<Patterns>; 5] {
        [
            &self.focus,
            &self.ignore,
            &self.hide,
            &self.show,
            &self.show_from,
        ]
    }

    /// Whether nothing of what was read is filtered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
            && self.show_packages.is_none()
            && self.parent.is_none()
            && self.sets().iter().all(|set| set.is_none())
            && self.tag_focus.is_empty()
            && self.tag_ignore.is_empty()
    }

    /// Whether more is looked at than a sample's own frame.
    #[must_use]
    pub fn looks_at_stacks(&self) -> bool {
        let rest = Self {
            samples: SampleFilter::default(),
            ..self.clone()
        };
        // Frames without a symbol go, too.
        !rest.is_empty() || self.samples.resolved
    }

    /// What they look at.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.samples.needs()
            | (Needs::STACKS | Needs::INLINED).only_if(self.looks_at_stacks())
            | Facet::Cpu.needs().only_if(self.has_tag(Tag::Cpu))
            | Facet::Recording
                .needs()
                .only_if(self.has_tag(Tag::Recording))
            | Facet::Host.needs().only_if(self.has_tag(Tag::Host))
            | Needs::THREADS.only_if(self.has_tag(Tag::Pid) || self.has_tag(Tag::Tid))
            | Needs::KINDS.only_if(self.looks_at_functions() || self.says_more())
            | Needs::EVALED.only_if(self.sets().iter().any(|set| set.is_some()))
            | (Needs::KINDS | Needs::PLACES).only_if(self.may_name_files())
    }

    /// Whether a text may be meant for source files: of native code only debug information tells them, and that takes time.
    fn may_name_files(&self) -> bool {
        let sets = self.sets().into_iter().flatten();
        sets.flat_map(Patterns::texts)
            .any(|text| may_name_file(text))
    }

    /// Whether a function is told by more than its name.
    fn says_more(&self) -> bool {
        let sets = self.sets().into_iter().flatten();
        sets.flat_map(|of| &of.queries).any(Query::says_more)
    }

    /// Whether tags tell what functions are.
    fn looks_at_functions(&self) -> bool {
        self.has_tag(Tag::Kind) || self.looks_at_payers() || self.show_packages.is_some()
    }

    fn looks_at_payers(&self) -> bool {
        self.has_tag(Tag::Package) || self.has_tag(Tag::Activity)
    }

    /// Whether a tag is asked for.
    fn has_tag(&self, tag: Tag) -> bool {
        self.tag_focus
            .iter()
            .chain(&self.tag_ignore)
            .any(|(known, _)| *known == tag)
    }

    /// As they were given, for headers: `--focus B`.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let sets = [
            ("--focus", &self.focus),
            ("--ignore", &self.ignore),
            ("--hide", &self.hide),
            ("--show", &self.show),
            ("--show-from", &self.show_from),
        ];
        let mut texts = Vec::new();
        if !self.phases.is_empty() {
            let numbers: Vec<String> = self.phases.iter().map(usize::to_string).collect();
            texts.push(format!("--phase {}", numbers.join(",")));
        }
        texts.extend(self.spans.as_ref().map(Spans::option));
        texts.extend(self.samples.texts());
        if let Some(parent) = &self.parent {
            texts.push("--exclude-other".to_owned());
            texts.extend(parent.regex().map(|regex| format!("--parent {regex}")));
        }
        for (option, set) in sets {
            let patterns = set.iter().flat_map(Patterns::texts);
            texts.extend(patterns.map(|pattern| format!("{option} {pattern}")));
        }
        let packages = self.show_packages.iter().flat_map(RegexSet::patterns);
        texts.extend(packages.map(|pattern| format!("--show package={pattern}")));
        for (option, tags) in [
            ("--tagfocus", &self.tag_focus),
            ("--tagignore", &self.tag_ignore),
        ] {
            texts.extend(tags.iter().map(|(tag, regex)| {
                let name = Tag::ALL
                    .iter()
                    .find(|(_, known)| known == tag)
                    .map_or("", |(name, _)| name);
                format!("{option} {name}={regex}")
            }));
        }
        texts
    }
}

/// What became of the samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// All of them.
    pub before: Count,
    /// Those that are left.
    pub after: Count,
}

/// Filters the samples and stacks of a profile; by event, what became of its samples, for there is no sum of different things.
/// What kinds are is the rules' business. Besides, texts with a gap that fit several functions, with how many these are.
pub fn apply(
    profile: &mut Profile,
    filters: &Filters,
    rules: &OwnRules,
) -> (IndexVec<EventId, Kept>, BTreeMap<String, usize>) {
    let frames = FrameMatches::of(profile, filters, rules);
    let mut stacks = Rewriter {
        frames: &frames,
        filters,
        known: index_vec![None; profile.stacks.len()],
        stacks: Stacks::default(),
    };
    let tags = Tags::of(profile, filters, rules);
    let (entries, samples) = (
        std::mem::take(&mut profile.entries),
        std::mem::take(&mut profile.samples),
    );
    let matcher = SampleMatcher::new(profile, &filters.samples);
    let mut kept: IndexVec<EventId, Kept> = index_vec![Kept::default(); profile.events.len()];
    let mut new = |of: Candidate, count: Count| {
        let kept = &mut kept[of.event];
        kept.before.add(count);
        let cpu = i32::try_from(of.cpu).unwrap_or(-1);
        let is_wanted = !matcher.hides(of.comm, of.thread, cpu, &[of.leaf]);
        let new = if is_wanted && tags.keeps(profile, &of) {
            stacks.place(profile, &of)
        } else {
            None
        };
        if new.is_some() {
            kept.after.add(count);
        }
        new
    };
    let entries = entries.into_iter().filter_map(|entry| {
        let count = Count {
            period: entry.period,
            samples: entry.samples,
        };
        let (leaf, stack) = new(Candidate::of_entry(&profile.facets, &entry), count)?;
        Some(Entry {
            leaf,
            stack,
            ..entry
        })
    });
    let entries = entries.collect();
    let samples = samples.into_iter().filter_map(|sample| {
        let count = Count {
            period: sample.period,
            samples: 1,
        };
        let (leaf, stack) = new(Candidate::of_sample(&sample), count)?;
        Some(Sample {
            leaf,
            stack,
            ..sample
        })
    });
    let samples: Vec<Sample> = samples.collect();
    (profile.entries, profile.samples) = (entries, samples);
    profile.stacks = stacks.stacks;
    for (event, Kept { before, after }) in profile.events.iter_mut().zip(&kept) {
        let dropped = |of: fn(&Count) -> u64| of(before).saturating_sub(of(after));
        let (dropped_samples, period) = (dropped(|c| c.samples), dropped(|c| c.period));
        event.filtered_samples = event.filtered_samples.saturating_add(dropped_samples);
        event.filtered_period = event.filtered_period.saturating_add(period);
    }
    (kept, frames.several)
}

/// What filters look at of an entry or a sample.
struct Candidate {
    event: EventId,
    state: RunState,
    comm: CommId,
    thread: ThreadId,
    cpu: i64,
    leaf: FrameId,
    facets: FacetsId,
    stack: StackId,
}

impl Candidate {
    fn of_entry(facets: &Facets, entry: &Entry) -> Self {
        Self {
            event: entry.event,
            state: entry.state,
            comm: entry.comm,
            thread: entry.thread,
            cpu: facets.cpu(entry.facets).into(),
            leaf: entry.leaf,
            facets: entry.facets,
            stack: entry.stack,
        }
    }

    fn of_sample(sample: &Sample) -> Self {
        Self {
            event: sample.event,
            state: sample.state,
            comm: sample.comm,
            thread: sample.thread,
            cpu: sample.cpu.map_or(-1, i64::from),
            leaf: sample.leaf,
            facets: sample.facets,
            stack: sample.stack,
        }
    }
}

/// By frame: what matches it.
struct FrameMatches {
    parent: IndexVec<FrameId, bool>,
    focus: IndexVec<FrameId, bool>,
    ignore: IndexVec<FrameId, bool>,
    hidden: IndexVec<FrameId, bool>,
    show_from: IndexVec<FrameId, bool>,
    several: BTreeMap<String, usize>,
}

impl FrameMatches {
    fn of(profile: &Profile, filters: &Filters, rules: &OwnRules) -> Self {
        let names = FrameNames::of(profile);
        let mut several = BTreeMap::new();
        let mut by = |patterns: &Option<Patterns>| match patterns {
            Some(patterns) => names.matching(profile, patterns, &mut several),
            None => IndexVec::new(),
        };
        let mut hidden = by(&filters.hide);
        if filters.show.is_some() {
            hidden.resize(profile.frames.len(), false);
            for (is_hidden, shown) in hidden.iter_mut().zip(by(&filters.show)) {
                *is_hidden |= !shown;
            }
        }
        if let Some(packages) = &filters.show_packages {
            let functions = Functions::of(profile, rules);
            let mut payers = Payers::new(profile, &functions);
            hidden.resize(profile.frames.len(), false);
            for (frame, is_hidden) in hidden.iter_mut_enumerated() {
                let package = payers.package(frame);
                *is_hidden |= !package.is_some_and(|package| packages.is_match(package));
            }
        }
        if filters.samples.resolved {
            hidden.resize(profile.frames.len(), false);
            for (is_hidden, frame) in hidden.iter_mut().zip(&profile.frames) {
                *is_hidden |= frame.symbol.is_none();
            }
        }
        let parent = filters.parent.as_ref().map(|parent| {
            let symbols = parents(profile, parent.regex());
            let is = |frame: &Frame| frame.symbol.is_some_and(|symbol| symbols[symbol]);
            profile.frames.iter().map(is).collect()
        });
        Self {
            parent: parent.unwrap_or_default(),
            focus: by(&filters.focus),
            ignore: by(&filters.ignore),
            hidden,
            show_from: by(&filters.show_from),
            several,
        }
    }

    fn is_hidden(&self, frame: FrameId) -> bool {
        has(&self.hidden, frame)
    }
}

fn has(of_frame: &IndexSlice<FrameId, [bool]>, frame: FrameId) -> bool {
    of_frame.get(frame).copied().unwrap_or(false)
}

/// What names frames may be found by: those of symbols, clean and as they are.
struct FrameNames {
    clean: Vec<CleanName>,
}

impl FrameNames {
    fn of(profile: &Profile) -> Self {
        let symbols = profile.symbols.iter();
        Self {
            clean: symbols
                .map(|symbol| CleanName::of(&symbol.name, symbol.producer))
                .collect(),
        }
    }

    /// The symbols that a text fits best, and how.
    fn named(&self, profile: &Profile, query: &Query) -> (Vec<SymbolId>, Option<Fit>) {
        let names = profile.symbols.iter_enumerated().zip(&self.clean);
        let fits = names.map(|((id, symbol), clean)| {
            let folder = folder(&profile[symbol.object].long_name);
            let fit = symbol.fit(query, clean, (folder, &[]));
            ((id, fit), fit)
        });
        let found = query::best(fits);
        let fit = found.first().and_then(|(_, fit)| *fit);
        (found.into_iter().map(|(id, _)| id).collect(), fit)
    }

    /// What a text names to the letter, if it means another thing as an expression: `V::operator+=`, `[unknown]`. Marks of missing frames
    /// are no functions, and have nothing.
    fn exact(&self, profile: &Profile, query: &Query) -> Option<Exact> {
        let text = query.text();
        if !text.contains(SIGNS) {
            return None;
        }
        let (symbols, fit) = self.named(profile, query);
        if matches!(fit, Some(Fit::Printed | Fit::Raw | Fit::Name)) {
            return Some(Exact {
                symbols,
                ..Exact::default()
            });
        }
        let is_it = |object: &Object| {
            object.long_name == text || object_label(Some(object), object.is_kernel) == text
        };
        let objects = profile.objects.iter_enumerated();
        let objects = objects.filter(|(_, object)| is_it(object));
        let objects: Vec<ObjectId> = objects.map(|(id, _)| id).collect();
        let is_unknown = text == super::UNKNOWN;
        let is_mark = StackEnd::ALL.iter().any(|end| end.mark() == Some(text));
        (is_unknown || is_mark || !objects.is_empty()).then_some(Exact {
            symbols: Vec::new(),
            objects,
            is_unknown,
        })
    }

    /// By frame: whether a pattern matches it. Each symbol and object is tried once.
    fn matching(
        &self,
        profile: &Profile,
        patterns: &Patterns,
        several: &mut BTreeMap<String, usize>,
    ) -> IndexVec<FrameId, bool> {
        let set = &patterns.set;
        let mut has_met = vec![false; patterns.queries.len()];
        let queries = patterns.queries.iter();
        let exact: Vec<Option<Exact>> = queries.map(|of| self.exact(profile, of)).collect();
        let mut tried = |texts: &[&str]| {
            let mut is_any = false;
            for text in texts {
                for at in &set.matches(text) {
                    let query = patterns.of_set[at];
                    has_met[query] = true;
                    is_any |= exact[query].is_none();
                }
            }
            is_any
        };
        let symbols = profile.symbols.iter().zip(&self.clean);
        let mut symbols: IndexVec<SymbolId, bool> = symbols
            .map(|(symbol, clean)| {
                let recorded = symbol.recorded.as_ref();
                let recorded = recorded.map_or("", |recorded| &recorded.name);
                let is_recorded = !recorded.is_empty() && tried(&[recorded]);
                let place = symbol.place.as_ref().map_or("", |place| &place.file);
                let is_placed = !place.is_empty() && tried(&[place]);
                tried(&[&symbol.name, &clean.name, &clean.file]) || is_recorded || is_placed
            })
            .collect();
        let objects = profile.objects.iter();
        let mut objects: IndexVec<ObjectId, bool> =
            objects.map(|object| tried(&[&object.long_name])).collect();
        let mut is_unknown = tried(&[super::UNKNOWN]);
        // What finds nothing may be a name as tables print it, which is another thing as an expression, or none.
        let missed = patterns.queries.iter().zip(&exact).zip(has_met);
        let missed = missed.filter(|((_, name), is_met)| name.is_none() && !is_met);
        for ((query, _), _) in missed {
            let (found, fit) = self.named(profile, query);
            if fit == Some(Fit::Cut) {
                let full = |id: &SymbolId| (&self.clean[id.index()].name, &profile[*id].parameters);
                let functions: BTreeSet<_> = found.iter().map(full).collect();
                if functions.len() > 1 {
                    several.insert(query.text().to_owned(), functions.len());
                }
            }
            found.into_iter().for_each(|id| symbols[id] = true);
        }
        for name in exact.into_iter().flatten() {
            name.symbols.into_iter().for_each(|id| symbols[id] = true);
            name.objects.into_iter().for_each(|id| objects[id] = true);
            is_unknown |= name.is_unknown;
        }
        let frames = profile.frames.iter().map(|frame| {
            let of_symbol = match frame.symbol {
                Some(symbol) => symbols[symbol],
                None => is_unknown,
            };
            of_symbol || frame.object.is_some_and(|object| objects[object])
        });
        frames.collect()
    }
}

/// What a text names to the letter.
#[derive(Default)]
struct Exact {
    symbols: Vec<SymbolId>,
    objects: Vec<ObjectId>,
    /// What has no name.
    is_unknown: bool,
}

/// Makes new stacks of old ones.
struct Rewriter<'f> {
    frames: &'f FrameMatches,
    filters: &'f Filters,
    /// By old stack, if it was met: the new one, or nothing if its samples are dropped.
    known: IndexVec<StackId, Option<Option<StackId>>>,
    stacks: Stacks,
}

impl Rewriter<'_> {
    /// The leaf and the stack that stay.
    fn place(&mut self, profile: &Profile, of: &Candidate) -> Option<(FrameId, StackId)> {
        let chain = profile.stacks.get(of.stack);
        if chain.is_empty() {
            self.frames_left(std::slice::from_ref(&of.leaf))?;
            return Some((of.leaf, self.empty(profile.stacks.end(of.stack))));
        }
        let at = of.stack.index();
        let stack = match self.known[at] {
            Some(known) => known?,
            None => {
                let left = self.frames_left(chain);
                let end = profile.stacks.end(of.stack);
                let new = left.map(|frames| self.stacks.push(&frames, end));
                self.known[at] = Some(new);
                new?
            }
        };
        if self.frames.is_hidden(of.leaf) {
            return Some((*self.stacks.get(stack).first()?, stack));
        }
        Some((of.leaf, stack))
    }

    fn empty(&mut self, end: StackEnd) -> StackId {
        self.stacks.push(&[], end)
    }

    /// The frames that stay, leaf first; nothing if the samples go.
    fn frames_left(&self, chain: &[FrameId]) -> Option<Vec<FrameId>> {
        let any = |set: &IndexSlice<FrameId, [bool]>| chain.iter().any(|frame| has(set, *frame));
        if self.filters.focus.is_some() && !any(&self.frames.focus) || any(&self.frames.ignore) {
            return None;
        }
        if self.filters.parent.is_some() && !any(&self.frames.parent) {
            return None;
        }
        let mut end = chain.len();
        if self.filters.show_from.is_some() {
            end = chain
                .iter()
                .rposition(|frame| has(&self.frames.show_from, *frame))?
                + 1;
        }
        let left: Vec<FrameId> = chain[..end]
            .iter()
            .copied()
            .filter(|frame| !self.frames.is_hidden(*frame))
            .collect();
        (!left.is_empty()).then_some(left)
    }
}

/// What tags are tried on.
struct Tags<'f> {
    filters: &'f Filters,
    functions: Option<Functions>,
    paid: Paid,
}

impl<'f> Tags<'f> {
    fn of(profile: &Profile, filters: &'f Filters, rules: &OwnRules) -> Self {
        let functions = filters
            .looks_at_functions()
            .then(|| Functions::of(profile, rules));
        let paid = functions.as_ref().filter(|_| filters.looks_at_payers());
        let paid = paid.map(|found| Paid::of(profile, found));
        Self {
            filters,
            functions,
            paid: paid.unwrap_or_default(),
        }
    }

    fn keeps(&self, profile: &Profile, entry: &Candidate) -> bool {
        let matches =
            |(tag, regex): &(Tag, Regex)| regex.is_match(&self.value(profile, entry, *tag));
        let focus = &self.filters.tag_focus;
        (focus.is_empty() || focus.iter().any(matches))
            && !self.filters.tag_ignore.iter().any(matches)
    }

    fn value(&self, profile: &Profile, entry: &Candidate, tag: Tag) -> String {
        let thread = &profile[entry.thread];
        let words = |facet| {
            let words = profile.facets.words(entry.facets, facet);
            words.unwrap_or_default().to_owned()
        };
        match tag {
            Tag::Comm => profile[entry.comm].clone(),
            Tag::Pid => thread.pid.cast_signed().to_string(),
            Tag::Tid => thread.tid.cast_signed().to_string(),
            Tag::Cpu => entry.cpu.to_string(),
            Tag::Event => profile[entry.event].name.clone(),
            Tag::Package => {
                let payer = self.paid.payer(entry.stack, entry.leaf);
                payer.map_or_else(String::new, |payer| payer.name.clone())
            }
            Tag::Activity => {
                let activity = self.paid.activity(entry.stack, entry.leaf, entry.state);
                activity.unwrap_or_default().to_owned()
            }
            Tag::Recording => words(Facet::Recording),
            Tag::Host => words(Facet::Host),
            Tag::Kind => {
                let frames = profile.stacks.get(entry.stack);
                let frame = frames.first().copied().unwrap_or(entry.leaf);
                let functions = self.functions.as_ref();
                functions
                    .map_or("", |f| f.get(f.of_frame(frame)).kind.word())
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::tally::Tally;
    use crate::report::testing::ProfileBuilder;

    /// main→A→B→C 10, main→A→B→A→D 20, main→X→C 5, main→B→E (inlined) 7.
    fn reference() -> Profile {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "C;B;A;main", 10);
        builder.sample("x", "D;A;B;A;main", 20);
        builder.sample("x", "C;X;main", 5);
        let (leaf, frames) = (
            builder.frame("B"),
            ["E(inlined)", "B", "main"].map(|f| builder.frame(f)),
        );
        builder.sample_at("x", leaf, &frames, 7);
        builder.finish()
    }

    fn set(pattern: &str) -> Option<Patterns> {
        Some(Patterns::of(&[pattern.to_owned()]))
    }

    /// Weight that is left, and (self, inclusive) of functions.
    fn filtered(filters: &Filters) -> (u64, impl Fn(&str) -> (u64, u64) + use<>) {
        let mut profile = reference();
        let kept = apply(&mut profile, filters, &OwnRules::default()).0[EventId(0)];
        assert_eq!(kept.before.period, 42);
        let functions = Functions::of(&profile, &OwnRules::default());
        let tally = Tally::of(&profile, &functions, crate::profile::EventId(0));
        assert_eq!(tally.total.period, kept.after.period);
        let numbers = move |name: &str| {
            let at = functions
                .all
                .iter()
                .position(|f| f.identity.name.name == name);
            at.map_or((0, 0), |at| {
                (
                    tally.numbers[at].own.period,
                    tally.numbers[at].inclusive.period,
                )
            })
        };
        (kept.after.period, numbers)
    }

    #[test]
    fn a_name_that_is_another_expression_is_that_name() {
        let whole = || {
            let mut builder = ProfileBuilder::default();
            for (name, weight) in [
                ("V::operator=", 1),
                ("V::operator+=", 2),
                ("V::operator|", 4),
                ("V::operator()", 8),
                ("app::evaluate_a_batch<std::vector<int>>", 16),
                ("app::evaluate_a_batch<std::vector<long>>", 32),
            ] {
                builder.sample("x", &format!("{name};main"), weight);
            }
            builder.finish()
        };
        let left = |text: &str| {
            let filters = Filters {
                focus: set(text),
                ..Filters::default()
            };
            let mut profile = whole();
            let (kept, several) = apply(&mut profile, &filters, &OwnRules::default());
            let several: Vec<_> = several.into_iter().collect();
            (kept[EventId(0)].after.period, several)
        };
        for (text, weight) in [
            ("V::operator=", 1),
            ("V::operator+=", 2),
            ("V::operator|", 4),
            ("V::operator()", 8),
            ("operator", 15),
            ("operator[+|]", 6),
            // A mark, which is no function, and no class of characters.
            ("[cut]", 0),
        ] {
            assert_eq!(left(text), (weight, Vec::new()), "{text}");
        }
        let cut = "app::evalu...ector<int>>".to_owned();
        assert_eq!(left(&cut), (16, Vec::new()));
        let of_both = "app::evalu...>>".to_owned();
        assert_eq!(left(&of_both), (48, vec![(of_both, 2)]));
    }

    #[test]
    fn events_of_different_units_are_not_added_up() {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "A;main", 100);
        builder.sample("x", "B;main", 100);
        let faults = builder.add_event("page-faults");
        builder.event = faults;
        builder.sample("x", "A;main", 3);
        let mut profile = builder.finish();
        let filters = Filters {
            focus: set("^A$"),
            ..Filters::default()
        };
        let (kept, _) = apply(&mut profile, &filters, &OwnRules::default());
        let parts = |kept: &Kept| (kept.after.period, kept.before.period);
        assert_eq!(
            kept.iter().map(parts).collect::<Vec<_>>(),
            [(100, 200), (3, 3)]
        );
        assert_eq!(profile.events[faults].filtered_period, 0);
    }

    #[test]
    fn samples_and_frames_go_as_in_pprof() {
        let (left, _) = filtered(&Filters {
            focus: set("^B$"),
            ..Filters::default()
        });
        assert_eq!(left, 37);
        let (left, _) = filtered(&Filters {
            ignore: set("^X$"),
            ..Filters::default()
        });
        assert_eq!(left, 37);
        let (left, numbers) = filtered(&Filters {
            show_from: set("^B$"),
            ..Filters::default()
        });
        assert_eq!((left, numbers("A").1, numbers("main")), (37, 20, (0, 0)));
        let (left, numbers) = filtered(&Filters {
            hide: set("^B$"),
            ..Filters::default()
        });
        assert_eq!((left, numbers("A").1, numbers("E")), (42, 30, (7, 7)));
        let (left, numbers) = filtered(&Filters {
            show: set("^(A|C)$"),
            ..Filters::default()
        });
        assert_eq!((left, numbers("A"), numbers("C")), (35, (20, 30), (15, 15)));
        let both = Filters {
            focus: set("^B$"),
            hide: set("^B$"),
            ..Filters::default()
        };
        let (left, numbers) = filtered(&both);
        assert_eq!((left, numbers("B")), (37, (0, 0)));
    }

    #[test]
    fn tags_are_those_of_samples() {
        let tag = |tag: Tag, pattern: &str| vec![(tag, Regex::new(pattern).expect("valid"))];
        for (filters, left) in [
            (
                Filters {
                    tag_focus: tag(Tag::Comm, "^x$"),
                    ..Filters::default()
                },
                42,
            ),
            (
                Filters {
                    tag_ignore: tag(Tag::Event, "cycles"),
                    ..Filters::default()
                },
                0,
            ),
            (
                Filters {
                    tag_focus: tag(Tag::Kind, "^library$"),
                    ..Filters::default()
                },
                42,
            ),
            (
                Filters {
                    tag_focus: tag(Tag::Pid, "^7$"),
                    ..Filters::default()
                },
                0,
            ),
        ] {
            assert_eq!(filtered(&filters).0, left, "{:?}", filters.texts());
        }
    }

    proptest::proptest! {
        #[test]
        fn filters_compose(
            stacks in proptest::collection::vec(("[a-e](;[a-e]){0,6}", 1_u64..100), 1..20),
            one in "[a-e]", other in "[a-e]"
        ) {
            let build = || {
                let mut builder = ProfileBuilder::default();
                stacks.iter().for_each(|(stack, weight)| builder.sample("x", stack, *weight));
                builder.finish()
            };
            let run = |filters: &[Filters]| {
                let mut profile = build();
                filters.iter().for_each(|f| { apply(&mut profile, f, &OwnRules::default()); });
                let text = |e: &Entry| {
                    let frames = profile.stacks.get(e.stack).iter();
                    let names = frames.map(|f| profile[*f].symbol);
                    (names.collect::<Vec<_>>(), e.period)
                };
                profile.entries.iter().map(text).collect::<Vec<_>>()
            };
            let (focus, hide) = (
                Filters { focus: set(&format!("^{one}$")), ..Filters::default() },
                Filters { hide: set(&format!("^{other}$")), ..Filters::default() },
            );
            let both = Filters { focus: focus.focus.clone(), hide: hide.hide.clone(), ..Filters::default() };
            proptest::prop_assert_eq!(run(&[focus.clone(), hide.clone()]), run(&[both]));
            // What is dropped and what is kept is everything.
            let ignore = Filters { ignore: focus.focus.clone(), ..Filters::default() };
            let weight = |entries: Vec<(Vec<Option<SymbolId>>, u64)>| -> u64 { entries.iter().map(|(_, w)| w).sum() };
            let all: u64 = stacks.iter().map(|(_, w)| w).sum();
            proptest::prop_assert_eq!(weight(run(&[focus])) + weight(run(&[ignore])), all);
        }
    }
}
