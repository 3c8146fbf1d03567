//! Which keys there are, and what `--sort` and `--fields` ask for: plain data.
//!
//! All else that is to be known of keys, their words too, stands in [`super::keys`].

use crate::metrics::Metric;
use crate::profile::{Facet, FieldKey};

/// What a row is made of, or what one of its columns shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// Thread id and final comm.
    Pid,
    /// The same under a header that says so; perf has no such key.
    Tid,
    /// Process id and its leader's comm.
    Tgid,
    /// Comm at the time of the sample.
    Comm,
    /// The same with `<N>` in place of numbers.
    CommNodigit,
    /// Short name of the DSO.
    Dso,
    /// Function or address.
    Symbol,
    /// First frame of the chain that matches `--parent`.
    Parent,
    /// A fact of the sample.
    Facet(Facet),
    /// An end of a branch, or the data of an access.
    End(End),
    /// What a fact of a row's samples adds up to.
    Sum(Facet),
    /// Number of the processor's socket.
    Socket,
    /// `file:line`.
    Srcline,
    /// Source file.
    Srcfile,
    /// Bytes of the symbol.
    SymbolSize,
    /// Function and offset in it.
    Symoff,
    /// Address of the instruction.
    Addr,
    /// Bytes of the mapping.
    DsoSize,
    /// Device and inode of the thread's cgroup namespace.
    CgroupId,
    /// What kind of code the function is.
    Kind,
    /// Who pays for the sample.
    Package,
    /// What the sample does.
    Activity,
    /// The innermost function of the stack that is the user's own.
    Own,
    /// The empty column that perf appends when the keys' text contains `symbol`.
    IpcNull,
    /// Quantised time of the sample.
    Time,
    /// Self share of the period.
    Overhead,
    /// Self share of the period over the number of threads that ran.
    Latency,
    /// The same at or below the row.
    LatencyChildren,
    /// Share of the period in kernel mode.
    OverheadSys,
    /// Share of the period in user mode.
    OverheadUs,
    /// Share of the period in a guest's kernel.
    OverheadGuestSys,
    /// Share of the period in a guest's user mode.
    OverheadGuestUs,
    /// Share of the period at or below the row.
    OverheadChildren,
    /// Number of samples.
    Sample,
    /// Period.
    Period,
    /// What the thread was doing, where the weight tells.
    State,
    /// The weight as people read it, with its unit.
    Weight,
    /// A rate of events: the number of a metric.
    Metric(u8),
    /// What a word names that is no key: fields of tracepoints, which stand in its place when the recording is known.
    Named(u16),
    /// A field of a tracepoint, see [`crate::profile::Profile::fields`].
    Field(u16),
}

/// An end, and what of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct End {
    /// Which.
    pub side: Side,
    /// What.
    pub part: EndPart,
}

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Where a branch was.
    Source,
    /// Where it led.
    Target,
    /// What an access read or wrote.
    Data,
}

/// What is shown of an end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EndPart {
    /// The short name of its DSO.
    Dso,
    /// Its function.
    Symbol,
    /// The function with the distance from its start.
    Address,
    /// `file:line`.
    Line,
    /// The name of the data, or its address.
    Datum,
    /// The cache line around it.
    Cacheline,
}

/// What `--sort` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortSpec {
    /// The text, with perf's defaults in front when it began with `+`.
    pub(super) text: String,
    /// What was added to the default with `+`.
    pub(super) added: Option<String>,
    /// The keys by level; a level has several only for `{a,b}`, which matters with `--hierarchy`.
    pub levels: Vec<Vec<Key>>,
    /// The words that are no keys but may be fields of tracepoints, see [`Key::Named`].
    pub named: Vec<String>,
}

impl SortSpec {
    /// The same with fields in place of the words that name them.
    #[must_use]
    pub fn with_fields(&self, fields: &[FieldKey]) -> Self {
        let of_word = |word: u16| {
            let fields = (0..).zip(fields);
            let own = fields.filter(move |(_, field)| field.word == usize::from(word));
            own.map(|(number, _)| Key::Field(number))
        };
        let resolved = |level: &Vec<Key>| {
            let mut keys = Vec::new();
            for key in level {
                match key {
                    Key::Named(word) => keys.extend(of_word(*word)),
                    key => keys.push(*key),
                }
            }
            keys
        };
        Self {
            levels: self.levels.iter().map(resolved).collect(),
            ..self.clone()
        }
    }

    /// The same without a key.
    #[must_use]
    pub(super) fn without(mut self, key: Key) -> Self {
        self.levels
            .iter_mut()
            .for_each(|level| level.retain(|known| *known != key));
        self.levels.retain(|level| !level.is_empty());
        self
    }

    /// The keys as they were given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it adds to the default.
    #[must_use]
    pub fn adds_to_default(&self) -> bool {
        self.added.is_some()
    }

    /// perf's key when none are given and all events are tracepoints (`util/sort.c:get_default_sort_order`).
    pub const TRACEPOINTS: &str = "trace";

    /// The same with `--raw-trace`.
    pub const TRACE_FIELDS: &str = "trace_fields";

    /// Those of branches.
    pub const BRANCHES: &str = "comm,dso_from,symbol_from,symbol_to,cycles";

    /// Those of accesses to memory.
    pub const ACCESSES: &str =
        "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat";

    /// perf's keys when none are given.
    #[must_use]
    pub fn default_keys() -> &'static str {
        "comm,dso,symbol"
    }

    /// Whether a counter is named anywhere in the text: perf then does not put it in front itself, and
    /// looks for no more than the letters.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        self.text.contains(name)
    }

    /// Whether a key is among them.
    #[must_use]
    pub fn has(&self, key: Key) -> bool {
        self.levels.iter().flatten().any(|known| *known == key)
    }

    /// Whether the text begins with `sym`: the first frame of a tree is then not repeated.
    #[must_use]
    pub fn starts_with_symbol(&self) -> bool {
        self.text.starts_with("sym")
    }
}

/// What `--fields` asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldSpec {
    /// Columns in order.
    pub keys: Vec<Key>,
    /// The metrics among them.
    pub metrics: Vec<Metric>,
    /// Whether the default columns stay in front (`+…`).
    pub appends: bool,
}
