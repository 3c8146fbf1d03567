//! What tells rows apart: where the value of a key comes from, and what keys may ask of samples.
//!
//! Which key has which [`Order`] says its descriptor, which this does not know: rows and classes are given keys and orders.

use std::cell::OnceCell;
use std::cmp::Reverse;

use super::chains::Chains;
use super::ends::Ends;
use super::options::ReportOptions;
use super::spec::{End, Key};
use super::texts::ranks;
use crate::functions::payers::{Paid, PaidPart};
use crate::functions::{FunctionId, Functions};
use crate::ids::{Idx, IndexVec};
use crate::profile::{CommId, Entry, Facet, Namespace, Profile, Show, SymbolId, TextId, Thread};

/// Makes the texts of all frames.
pub(crate) type TextsOf = fn(&Profile, &ReportOptions, &Functions) -> Vec<String>;

/// Makes the numbers of all frames.
pub(crate) type NumbersOf = fn(&Profile) -> Vec<u64>;

/// Where the value comes from that tells rows apart. Equal values share a row, lower ones come first.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// From the sample.
    Sample(fn(&SampleValues<'_>, &Entry, Key) -> u64),
    /// From the frame: its DSO.
    Dso,
    /// From the frame: its symbol, which rows are printed in the order of by name or by place.
    Symbol { by_name: bool },
    /// From the frame: its symbol, and then a number.
    SymbolAnd(NumbersOf),
    /// From the frame: a number, of which all are made at once.
    FrameNumbers(NumbersOf),
    /// The same for a text.
    FrameTexts(TextsOf),
    /// Nowhere: all rows have the same.
    Nothing,
}

/// The keys that tell rows apart, most important first, each with where its value comes from.
pub(crate) type Orders = [(Key, Order)];

/// Rank of what there is none of: behind all.
const NONE: u32 = u32::MAX;

/// What keys ask of samples. Ranks are in byte order of the names, and made when first asked for.
pub(crate) struct SampleValues<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) options: &'a ReportOptions,
    chains: &'a Chains,
    functions: &'a Functions,
    paid: &'a Paid,
    ends: Ends,
    comms: OnceCell<IndexVec<CommId, u32>>,
    /// Of comms without their numbers.
    comms_nodigit: OnceCell<IndexVec<CommId, u32>>,
    symbols: OnceCell<IndexVec<SymbolId, u32>>,
    payloads: OnceCell<IndexVec<TextId, u32>>,
    /// Of values of fields.
    fields: OnceCell<IndexVec<TextId, u32>>,
    /// Of functions.
    names: OnceCell<IndexVec<FunctionId, u32>>,
    /// All cgroup namespaces, sorted.
    namespaces: OnceCell<Vec<Namespace>>,
}

/// The innermost function of a sample's stack that is the user's own.
pub(crate) fn own_function(
    profile: &Profile,
    functions: &Functions,
    entry: &Entry,
) -> Option<FunctionId> {
    let frames = profile.frames_of(entry.stack, &entry.leaf);
    let mut of_frames = frames.iter().map(|frame| functions.of_frame(*frame));
    of_frames.find(|function| functions.is_own(*function))
}

impl<'a> SampleValues<'a> {
    pub(super) fn new(
        profile: &'a Profile,
        options: &'a ReportOptions,
        chains: &'a Chains,
        (functions, paid): (&'a Functions, &'a Paid),
    ) -> Self {
        Self {
            profile,
            options,
            ends: Ends::default(),
            chains,
            functions,
            paid,
            names: OnceCell::new(),
            namespaces: OnceCell::new(),
            comms: OnceCell::new(),
            comms_nodigit: OnceCell::new(),
            symbols: OnceCell::new(),
            payloads: OnceCell::new(),
            fields: OnceCell::new(),
        }
    }

    /// The thread of a sample.
    pub(crate) fn thread(&self, entry: &Entry) -> &'a Thread {
        &self.profile[entry.thread]
    }

    /// Rank of the comm.
    pub(crate) fn comm(&self, entry: &Entry) -> u32 {
        let names = || self.profile.comms.iter().map(String::as_str);
        let ranks = self.comms.get_or_init(|| ranks_of(names()));
        ranks[entry.comm]
    }

    /// The same without its numbers.
    pub(crate) fn comm_nodigit(&self, entry: &Entry) -> u32 {
        let ranks = self.comms_nodigit.get_or_init(|| {
            let comms = self.profile.comms.iter();
            let names: Vec<String> = comms.map(|comm| without_numbers(comm)).collect();
            ranks_of(names.iter().map(String::as_str))
        });
        ranks[entry.comm]
    }

    /// Rank of the name of the frame that `--parent` found, [`NONE`] if there is none.
    pub(crate) fn parent(&self, entry: &Entry) -> u32 {
        let parent = self.chains.parent(entry.stack);
        let symbol = parent.and_then(|frame| self.profile[frame].symbol);
        let names = || self.profile.symbols.iter().map(|s| s.name.as_str());
        let ranks = self.symbols.get_or_init(|| ranks_of(names()));
        symbol.map_or(NONE, |symbol| ranks[symbol])
    }

    /// Rank of the value of a field, [`NONE`] if the sample is of another event or has none.
    pub(crate) fn field(&self, entry: &Entry, key: Key) -> u32 {
        let Key::Field(number) = key else {
            return NONE;
        };
        let field = &self.profile.fields[usize::from(number)];
        if field.event != entry.event {
            return NONE;
        }
        let facets = &self.profile.facets;
        let ranks = self.fields.get_or_init(|| {
            // Higher bytes come first, as in perf.
            let raw = facets.texts().iter().map(|value| Reverse(&*value.raw));
            ranks(&raw.collect::<Vec<_>>()).into()
        });
        let value = facets.field(entry.facets, field.place);
        value.map_or(NONE, |value| ranks[value])
    }

    /// Place of who pays, or of what is done, among all by name.
    pub(crate) fn paid(&self, entry: &Entry, part: PaidPart) -> u64 {
        let (place, _) = self.paid.ranked(part, entry);
        place as u64
    }

    /// Rank of the name of the own function, [`NONE`] if there is none.
    pub(crate) fn own(&self, entry: &Entry) -> u32 {
        let names = || {
            self.functions
                .all
                .iter()
                .map(|f| f.identity.name.name.as_str())
        };
        let ranks = self.names.get_or_init(|| ranks_of(names()));
        let own = own_function(self.profile, self.functions, entry);
        own.map_or(NONE, |function| ranks[function])
    }

    /// Rank of the thread's cgroup namespace, behind those that are none.
    pub(crate) fn namespace(&self, entry: &Entry) -> u32 {
        let all = self.namespaces.get_or_init(|| {
            let threads = self.profile.threads.iter();
            let mut all: Vec<Namespace> = threads
                .flat_map(|thread| thread.cgroups.iter().map(|(_, namespace)| *namespace))
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        });
        let own = self.thread(entry).cgroup_at(entry.time);
        let rank = own.and_then(|own| all.binary_search(&own).ok());
        rank.map_or(0, |rank| rank as u32 + 1)
    }

    /// Where an end of a branch, or the data of an access, stands among others.
    pub(crate) fn end(&self, entry: &Entry, end: End) -> u64 {
        self.ends.rank(end, entry, (self.profile, self.options))
    }

    /// Where a facet stands among others.
    pub(crate) fn facet(&self, entry: &Entry, facet: Facet) -> u64 {
        let facets = &self.profile.facets;
        let text = || facets.text(entry.facets, facet);
        match facet.row().show {
            Show::Number(_) | Show::Right(_) => {
                let number = facets.number(entry.facets, facet);
                number.map_or(0, |number| number.saturating_add(1))
            }
            Show::Falling(_) => !facets.number(entry.facets, facet).unwrap_or(0),
            Show::Hidden => 0,
            Show::Name => text().map_or(NONE.into(), |text| text.index() as u64),
            Show::Payload => {
                let texts = || facets.texts().iter().map(|value| &*value.text);
                let ranks = self.payloads.get_or_init(|| ranks_of(texts()));
                text().map_or(NONE, |text| ranks[text]).into()
            }
        }
    }
}

/// A text with `<N>` in place of each number.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_number = false;
    for c in text.chars() {
        let is_digit = c.is_ascii_digit();
        if !is_digit {
            out.push(c);
        } else if !in_number {
            out.push_str("<N>");
        }
        in_number = is_digit;
    }
    out
}

fn ranks_of<'t, I: Idx>(texts: impl Iterator<Item = &'t str>) -> IndexVec<I, u32> {
    ranks(&texts.collect::<Vec<_>>()).into()
}
