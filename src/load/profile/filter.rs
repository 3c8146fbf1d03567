//! Filters that look at a sample's own frame, thread, comm and CPU, as `perf report` has them.
//!
//! What becomes of the others is the view's business: `report` hides their rows and keeps their weight, the rest of the views
//! forget them.

use crate::address::Avma;
use crate::ids::IndexVec;
use crate::needs::Needs;
use crate::runtimes::CleanName;
use crate::runtimes::query::{More, Query};

use super::{CommId, Facet, Frame, FrameId, ObjectId, Place, Profile, SymbolId, ThreadId, more};

/// Which samples are wanted; nothing said is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleFilter {
    /// Only these comms.
    pub comms: Option<Vec<String>>,
    /// Only these DSOs, by short or long name.
    pub dsos: Option<Vec<String>>,
    /// Only these symbols, by name or address.
    pub symbols: Option<Vec<String>>,
    /// Only these processes.
    pub pids: Option<Vec<u32>>,
    /// Only these threads.
    pub tids: Option<Vec<u32>>,
    /// Only the CPUs of this socket.
    pub socket: Option<i32>,
    /// Only symbols that contain this.
    pub symbol_part: Option<String>,
    /// Only what has a symbol.
    pub resolved: bool,
}

impl SampleFilter {
    /// Whether all samples are wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What it looks at.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let mut words = self.symbols.iter().flatten();
        Facet::Cpu.needs().only_if(self.socket.is_some())
            | Needs::KINDS.only_if(words.any(|word| Query::of(word).says_more()))
    }

    /// As it was given, for headers: `--comms node`.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let numbers = |list: &Option<Vec<u32>>| {
            let list = list.as_ref()?.iter().map(u32::to_string);
            Some(list.collect::<Vec<_>>().join(","))
        };
        let names = |list: &Option<Vec<String>>| Some(list.as_ref()?.join(","));
        let all = [
            ("--comms", names(&self.comms)),
            ("--dsos", names(&self.dsos)),
            ("--symbols", names(&self.symbols)),
            ("--pid", numbers(&self.pids)),
            ("--tid", numbers(&self.tids)),
            (
                "--socket-filter",
                self.socket.map(|socket| socket.to_string()),
            ),
            ("--symbol-filter", self.symbol_part.clone()),
        ];
        let given = all
            .into_iter()
            .filter_map(|(option, value)| Some((option, value?)));
        let unresolved = self.resolved.then(|| "--hide-unresolved".to_owned());
        given
            .map(|(option, value)| format!("{option} {value}"))
            .chain(unresolved)
            .collect()
    }
}

/// By symbol: whether a frame of it is the parent of a sample, as `--parent` has it; what perf takes for one if no expression is
/// given. Marks are no functions.
///
/// # Panics
/// Never: what perf takes is an expression.
#[must_use]
pub fn parents(profile: &Profile, regex: Option<&regex::Regex>) -> IndexVec<SymbolId, bool> {
    /// In `util/sort.c`.
    const DEFAULT: &str = "^sys_|^do_page_fault";
    let fallback = regex::Regex::new(DEFAULT).expect("the built-in pattern is valid");
    matching_functions(profile, regex.unwrap_or(&fallback))
}

/// By symbol: whether an expression is found in its name.
#[must_use]
pub fn matching_functions(profile: &Profile, regex: &regex::Regex) -> IndexVec<SymbolId, bool> {
    let symbols = profile.symbols.iter();
    let mut found: IndexVec<SymbolId, bool> =
        symbols.map(|symbol| regex.is_match(&symbol.name)).collect();
    for mark in profile.marks.0.iter().flatten() {
        if let Some(symbol) = profile[*mark].symbol {
            found[symbol] = false;
        }
    }
    found
}

/// A filter made ready for a profile.
pub struct SampleMatcher<'a> {
    profile: &'a Profile,
    filter: &'a SampleFilter,
    comms: Option<IndexVec<CommId, bool>>,
    objects: Option<IndexVec<ObjectId, bool>>,
    /// By symbol: whether it is one of those asked for by the name that tables print. Names that symbols have come first.
    printed: Option<IndexVec<SymbolId, bool>>,
}

impl<'a> SampleMatcher<'a> {
    /// Tries names once.
    #[must_use]
    pub fn new(profile: &'a Profile, filter: &'a SampleFilter) -> Self {
        let comms = filter
            .comms
            .as_ref()
            .map(|list| profile.comms.iter().map(|c| list.contains(c)).collect());
        let objects = filter.dsos.as_ref().map(|list| {
            let objects = profile.objects.iter();
            let is_listed =
                |o: &super::Object| list.contains(&o.short_name) || list.contains(&o.long_name);
            objects.map(is_listed).collect()
        });
        Self {
            profile,
            filter,
            comms,
            objects,
            printed: filter
                .symbols
                .as_ref()
                .and_then(|list| printed(profile, list)),
        }
    }

    /// Whether a sample is not wanted. `own`: its own frame, or both ends of a branch, of which one has to be wanted.
    #[must_use]
    pub fn hides(&self, comm: CommId, thread: ThreadId, cpu: i32, own: &[FrameId]) -> bool {
        let thread = &self.profile[thread];
        let is_out = |list: &Option<Vec<u32>>, id: u32| {
            list.as_ref().is_some_and(|list| !list.contains(&id))
        };
        let socket = self.filter.socket;
        socket.is_some_and(|wanted| self.profile.recording.socket(cpu) != wanted)
            || self.comms.as_ref().is_some_and(|comms| !comms[comm])
            || is_out(&self.filter.pids, thread.pid)
            || is_out(&self.filter.tids, thread.tid)
            || !own
                .iter()
                .any(|frame| self.is_wanted(&self.profile[*frame]))
    }

    fn is_wanted(&self, frame: &Frame) -> bool {
        let filter = self.filter;
        let is_of = |objects: &IndexVec<ObjectId, bool>| frame.object.is_some_and(|of| objects[of]);
        self.objects.as_ref().is_none_or(is_of)
            && (filter.symbols.as_ref()).is_none_or(|list| self.is_listed(list, frame))
            && !(filter.resolved && frame.symbol.is_none())
            && (filter.symbol_part.as_ref()).is_none_or(|part| self.has_part(part, frame))
    }

    fn has_part(&self, part: &str, frame: &Frame) -> bool {
        let symbol = frame.symbol.map(|symbol| &self.profile[symbol]);
        symbol.is_some_and(|symbol| symbol.name.contains(part))
    }

    /// `-S` takes names, and addresses of a symbol's start or of a sample.
    fn is_listed(&self, list: &[String], frame: &Frame) -> bool {
        let symbol = frame.symbol.map(|symbol| &self.profile[symbol]);
        let is_at = |word: &String, address: Avma| {
            let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
            digits.is_some_and(|digits| u64::from_str_radix(digits, 16) == Ok(address.0))
        };
        let is_printed = |id| self.printed.as_ref().is_some_and(|of| of[id]);
        frame.symbol.is_some_and(is_printed)
            || list.iter().any(|word| {
                symbol.is_some_and(|s| s.name == *word || is_at(word, frame.address_of(s)))
                    || is_at(word, frame.address)
            })
    }
}

/// By symbol: whether a table prints it as one of these words. Words that are the name of a symbol are that symbol's alone.
fn printed(profile: &Profile, list: &[String]) -> Option<IndexVec<SymbolId, bool>> {
    let is_name = |word: &String| profile.symbols.iter().any(|symbol| symbol.name == *word);
    let words = list
        .iter()
        .filter(|word| !word.starts_with("0x") && !is_name(word));
    let words: Vec<Query> = words.map(|word| Query::of(word)).collect();
    if words.is_empty() {
        return None;
    }
    let symbols = profile.symbols.iter();
    let is_meant = symbols.map(|symbol| {
        let clean = CleanName::of(&symbol.name, symbol.producer);
        let order = symbol
            .place
            .as_deref()
            .map(Place::order)
            .unwrap_or_default();
        let more = More {
            printed: &[&clean.name],
            ..more(
                symbol.parameters.as_deref(),
                symbol.place.as_deref(),
                &order,
            )
        };
        words
            .iter()
            .any(|word| word.fit_printed(&clean, &more).is_some())
    });
    Some(is_meant.collect())
}
