//! What may tell samples apart besides event, thread, comm and stack: each fact is a row of one table.
//!
//! A row of samples holds what all views need. What a few views ask for is a [`Facet`]. The values of a sample's facets are a
//! list, equal lists are kept once, and a row has the number of its list: who asks for no facet pays for none. A new one is a
//! variant and a row here, and a word of `report::keys::words` if it is not perf's.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{PcId, Shared};
use crate::address::Avma;
use crate::ids::{Idx, IndexSlice, IndexVec, Spare, index_vec, numbers};
use crate::intern::{ItemIndex, SequenceIndex, Sequences};
use crate::needs::Needs;
use crate::perfdata::{Branch, BranchStack, Cost, DataSource, Event, FieldValue, Sample};
use crate::session::{SampleId, SampleRef, Session};

numbers! {
    /// The list of a sample's values: index into [`Facets`].
    pub struct FacetsId(pub u32);
    /// A text among the values, or a field of a tracepoint.
    pub struct TextId(Spare);
}

impl FacetsId {
    /// That of all samples if no facet is asked for: there are no lists then.
    pub const NONE: Self = Self(0);
}

/// A fact of a sample that few views need.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Facet {
    /// The CPU that it was taken on.
    Cpu,
    /// How many threads ran at the same time.
    Parallelism,
    /// Its cgroup.
    Cgroup,
    /// The payload of a tracepoint as text.
    Payload,
    /// Size of the page that its instruction lies in.
    CodePageSize,
    /// The address of the data that it read or wrote.
    Data,
    /// Where that came from, as it was recorded.
    DataSource,
    /// What its access cost; of a branch the cycles before it.
    Cost,
    /// The part of that which the instruction waited.
    InstructionLatency,
    /// The part of that which a stage of the pipeline took.
    StageCycles,
    /// Where the data of its access was.
    Level,
    /// What other caches were asked.
    Snoop,
    /// Where the translation of the address was.
    Translation,
    /// Whether the access was an atomic operation.
    Locked,
    /// What the access had to wait for.
    Blocked,
    /// Where the branch was.
    Source,
    /// Whether it was predicted.
    Mispredict,
    /// Whether it was in a transaction.
    InTransaction,
    /// Whether it ended one.
    Abort,
    /// Cycles since the branch before it.
    Cycles,
    /// The recording that it is in.
    Recording,
    /// The host that it was taken on.
    Host,
}

/// What a facet is a fact of, where that is not any sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// A branch, if rows are those.
    Branch,
    /// An access to memory.
    Access,
}

/// All there is to know of a facet.
pub struct FacetRow {
    /// The word of its sort key.
    pub name: &'static str,
    /// What stands over its column.
    pub heading: &'static str,
    /// Width of its column at least.
    pub width: usize,
    /// What stands in its column.
    pub show: Show,
    read: Read,
}

/// How a column shows a facet, and which rows come first.
#[derive(Clone, Copy)]
pub enum Show {
    /// A number as text. Rows without one come first, then lower ones.
    Number(fn(Option<u64>) -> String),
    /// The same on the right of the column.
    Right(fn(Option<u64>) -> String),
    /// A number, of which larger ones come first.
    Falling(fn(u64) -> String),
    /// Nothing: it is no key, or keys show it in their own ways.
    Hidden,
    /// A name. Those that were met first come first.
    Name,
    /// A payload, which may be long and have tabs, in the order of bytes.
    Payload,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// From what the index kept.
    Index(fn(&SampleAt<'_, '_>) -> Option<u64>),
    /// From the record: a number.
    Record(fn(&Taken<'_>) -> Option<u64>),
    /// From the record: a number that has a name.
    Named(
        fn(&Taken<'_>) -> Option<u64>,
        fn(&Session<'_>, u64) -> String,
    ),
    /// From the record: a text.
    Text(fn(&SampleAt<'_, '_>, &Sample<'_>) -> Option<String>),
    /// From the record: an address.
    Place(fn(&Taken<'_>) -> Option<Place>),
    /// It is that of the recording, and known where recordings become one.
    Recording,
}

/// What a row is of: a sample, or one of its branches.
pub(super) struct Taken<'t> {
    pub(super) sample: &'t Sample<'t>,
    /// With its place in the sample.
    pub(super) branch: Option<(u64, Branch)>,
}

impl Taken<'_> {
    fn branch(&self) -> Option<Branch> {
        self.branch.map(|(_, branch)| branch)
    }

    fn cost(&self) -> Option<Cost> {
        match self.branch() {
            Some(branch) => Some(Cost {
                weight: branch.cycles().max(1),
                ..Cost::default()
            }),
            None => self.sample.weight,
        }
    }
}

/// An address of which it has to be found out what lies there.
pub(super) enum Place {
    /// An end of a branch, wherever that is.
    Branch(Avma),
    /// Data, as the sample's own mode sees it.
    Data(Avma),
}

impl Facet {
    /// All of them, in the order in which their values stand in lists.
    pub const ALL: [Self; 22] = [
        Self::Cpu,
        Self::Parallelism,
        Self::Cgroup,
        Self::Payload,
        Self::CodePageSize,
        Self::Data,
        Self::DataSource,
        Self::Cost,
        Self::InstructionLatency,
        Self::StageCycles,
        Self::Level,
        Self::Snoop,
        Self::Translation,
        Self::Locked,
        Self::Blocked,
        Self::Source,
        Self::Mispredict,
        Self::InTransaction,
        Self::Abort,
        Self::Cycles,
        Self::Recording,
        Self::Host,
    ];

    /// What is asked for where facts of branches are.
    #[must_use]
    pub fn of_branches() -> Needs {
        let all = Self::ALL.into_iter();
        let of_branches = all.filter(|facet| facet.of() == Some(Of::Branch));
        of_branches.map(Self::needs).collect()
    }

    /// What it is a fact of, where that is not any sample.
    #[must_use]
    pub const fn of(self) -> Option<Of> {
        match self {
            Self::Cpu | Self::Parallelism | Self::Cgroup | Self::Payload | Self::CodePageSize => {
                None
            }
            // Costs are told without --mem-mode, too.
            Self::Cost | Self::InstructionLatency | Self::StageCycles => None,
            Self::Recording | Self::Host => None,
            Self::Data
            | Self::DataSource
            | Self::Level
            | Self::Snoop
            | Self::Translation
            | Self::Locked
            | Self::Blocked => Some(Of::Access),
            Self::Source | Self::Mispredict | Self::InTransaction | Self::Abort | Self::Cycles => {
                Some(Of::Branch)
            }
        }
    }

    /// What is asked for where it is.
    #[must_use]
    pub const fn needs(self) -> Needs {
        Needs::facet(self as u32)
    }

    /// All there is to know of it.
    #[must_use]
    pub const fn row(self) -> FacetRow {
        match self {
            Self::Cpu => FacetRow {
                name: "cpu",
                heading: "CPU",
                width: 3,
                show: Show::Number(|cpu| cpu.map_or("-001".into(), |cpu| format!("{cpu:03}"))),
                read: Read::Index(|at| u64::try_from(at.head().cpu).ok()),
            },
            Self::Parallelism => FacetRow {
                name: "parallelism",
                heading: "Parallelism",
                width: 0,
                show: Show::Right(|threads| threads.unwrap_or(1).to_string()),
                read: Read::Index(|at| Some(at.session().parallelism.at(at.rank.0.into()).into())),
            },
            Self::Cgroup => FacetRow {
                name: "cgroup",
                heading: "Cgroup",
                width: 6,
                show: Show::Name,
                read: Read::Named(
                    |taken| taken.sample.cgroup.filter(|id| *id != 0),
                    |session, id| match session.cgroups.get(&id) {
                        Some(path) => path.clone(),
                        None => format!("{id:#x}"),
                    },
                ),
            },
            Self::Payload => FacetRow {
                name: "trace",
                heading: "Trace output",
                width: 0,
                show: Show::Payload,
                read: Read::Text(payload),
            },
            Self::CodePageSize => FacetRow {
                name: "code_page_size",
                heading: "Code Page Size",
                width: 6,
                show: Show::Number(|size| size.map_or("N/A".into(), page_size)),
                read: Read::Record(|taken| taken.sample.code_page_size.filter(|size| *size != 0)),
            },
            Self::Data => FacetRow {
                name: "data",
                heading: "",
                width: 0,
                show: Show::Hidden,
                read: Read::Place(|taken| taken.sample.addr.map(|at| Place::Data(Avma(at)))),
            },
            Self::DataSource => FacetRow {
                name: "data_src",
                heading: "",
                width: 0,
                show: Show::Hidden,
                read: Read::Record(|taken| Some(taken.sample.data_src?.0)),
            },
            Self::Cost => FacetRow {
                name: "local_weight",
                heading: "Local Weight",
                width: 12,
                show: Show::Falling(|cost| cost.to_string()),
                read: Read::Record(|taken| Some(taken.cost()?.weight)),
            },
            Self::InstructionLatency => FacetRow {
                name: "local_ins_lat",
                heading: "Local INSTR Latency",
                width: 13,
                show: Show::Falling(|cost| cost.to_string()),
                read: Read::Record(|taken| Some(taken.cost()?.instruction_latency)),
            },
            Self::StageCycles => FacetRow {
                name: "local_p_stage_cyc",
                heading: "Local Pipeline Stage Cycle",
                width: 13,
                show: Show::Falling(|cost| cost.to_string()),
                read: Read::Record(|taken| Some(taken.cost()?.stage_cycles)),
            },
            Self::Level => access(
                ("mem", "Memory access"),
                24,
                |part| words(part, DataSource::level),
                |taken| Some(taken.sample.data_src?.level_part().0),
            ),
            Self::Snoop => access(
                ("snoop", "Snoop"),
                12,
                |part| words(part, DataSource::snoop),
                |taken| Some(taken.sample.data_src?.snoop_part().0),
            ),
            Self::Translation => access(
                ("tlb", "TLB access"),
                22,
                |part| words(part, DataSource::translation),
                |taken| Some(taken.sample.data_src?.translation_part().0),
            ),
            Self::Locked => access(
                ("locked", "Locked"),
                6,
                |part| words(part, |of| of.locked().to_owned()),
                |taken| Some(taken.sample.data_src?.locked_part().0),
            ),
            Self::Blocked => access(
                ("blocked", "Blocked"),
                10,
                |part| words(part, |of| of.blocked().to_owned()),
                |taken| Some(taken.sample.data_src?.blocked_part().0),
            ),
            Self::Source => FacetRow {
                name: "source",
                heading: "",
                width: 0,
                show: Show::Hidden,
                read: Read::Place(|taken| Some(Place::Branch(taken.branch()?.from))),
            },
            Self::Mispredict => FacetRow {
                name: "mispredict",
                heading: "Branch Mispredicted",
                width: 0,
                show: Show::Number(|is_predicted| {
                    let words = ["Y", "N"];
                    let word = is_predicted.and_then(|is| words.get(usize::try_from(is).ok()?));
                    word.copied().unwrap_or("N/A").to_owned()
                }),
                read: Read::Record(|taken| taken.branch()?.is_predicted().map(u64::from)),
            },
            Self::InTransaction => FacetRow {
                name: "in_tx",
                heading: "Branch in transaction",
                width: 0,
                show: Show::Number(|is| if is == Some(1) { "T" } else { "." }.to_owned()),
                read: Read::Record(|taken| Some(taken.branch()?.in_transaction().into())),
            },
            Self::Abort => FacetRow {
                name: "abort",
                heading: "Transaction abort",
                width: 0,
                show: Show::Number(|is| if is == Some(1) { "A" } else { "." }.to_owned()),
                read: Read::Record(|taken| Some(taken.branch()?.is_abort().into())),
            },
            Self::Cycles => FacetRow {
                name: "cycles",
                heading: "Basic Block Cycles",
                width: 0,
                show: Show::Falling(|cycles| match cycles {
                    0 => "-".to_owned(),
                    cycles => cycles.to_string(),
                }),
                read: Read::Record(|taken| Some(taken.branch()?.cycles())),
            },
            Self::Recording => of_recording("recording", "Recording"),
            Self::Host => of_recording("host", "Host"),
        }
    }

    fn asked(needs: Needs) -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(move |facet| needs.contains(facet.needs()))
    }
}

/// A fact of all samples of a recording.
const fn of_recording(name: &'static str, heading: &'static str) -> FacetRow {
    FacetRow {
        name,
        heading,
        width: 0,
        show: Show::Name,
        read: Read::Recording,
    }
}

/// A fact of an access: what its text tells of the word, and nothing else, tells rows apart.
const fn access(
    (name, heading): (&'static str, &'static str),
    width: usize,
    show: fn(Option<u64>) -> String,
    read: fn(&Taken<'_>) -> Option<u64>,
) -> FacetRow {
    FacetRow {
        name,
        heading,
        width,
        show: Show::Number(show),
        read: Read::Record(read),
    }
}

/// The words for a part of what is known of an access.
fn words(part: Option<u64>, words: fn(DataSource) -> String) -> String {
    part.map_or_else(|| "N/A".to_owned(), |part| words(DataSource(part)))
}

/// Whether any facet that is asked for stands in the samples' records alone.
pub(super) fn are_in_records(needs: Needs) -> bool {
    const WHOLE: Needs = Needs::FIELDS
        .union(Needs::BRANCHES)
        .union(Needs::BRANCH_LISTS)
        .union(Needs::ACCESSES);
    let mut asked = Facet::asked(needs);
    needs.intersects(WHOLE)
        || asked.any(|facet| !matches!(facet.row().read, Read::Index(_) | Read::Recording))
}

/// In the largest unit of which it has two, as perf does: 1 GiB is `1024M`.
fn page_size(bytes: u64) -> String {
    let shift = [30, 20, 10].into_iter().find(|shift| bytes >> shift > 1);
    let unit = shift.map_or("B", |shift| ["K", "M", "G"][shift / 10 - 1]);
    format!("{}{unit}", bytes >> shift.unwrap_or(0))
}

fn payload(at: &SampleAt<'_, '_>, sample: &Sample<'_>) -> Option<String> {
    let payload = at.payload(sample)?;
    let (points, id) = (&at.shared.recording.tracepoints, at.event.attr.config);
    let text = if at.shared.options.raw_payloads {
        points.render_raw(id, payload)
    } else {
        points.render(id, payload, &|address| at.function(address))
    };
    text.map(|text| at.shared.budget.keep_text(text))
}

/// A sample, and all that is known where it is read.
pub(super) struct SampleAt<'s, 'a> {
    pub(super) shared: Shared<'s, 'a>,
    pub(super) rank: SampleId,
    /// Whose layout its record has.
    pub(super) event: &'s Event,
}

impl<'s, 'a> SampleAt<'s, 'a> {
    fn session(&self) -> &'s Session<'a> {
        self.shared.session
    }

    pub(super) fn head(&self) -> &'s SampleRef {
        &self.shared.samples.all[self.rank]
    }

    /// The payload of a tracepoint.
    fn payload<'b>(&self, sample: &Sample<'b>) -> Option<&'b [u8]> {
        sample.raw.filter(|_| self.event.attr.is_tracepoint())
    }

    /// The kernel function at an address.
    fn function(&self, address: u64) -> Option<(String, u64)> {
        let time = self.head().time;
        self.session().kernel_function(Avma(address), time)
    }
}

/// A value in a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Value {
    Nothing,
    Number(u64),
    Text(TextId),
    /// An address, by the number that it has in the table at hand: of the address first, then of its frame.
    Place(u32),
}

/// The values of the facets that were asked for.
#[derive(Debug, Default)]
pub struct Facets {
    /// By facet: its place in the lists, if it was asked for.
    places: [Option<usize>; Facet::ALL.len()],
    /// How many were. Behind their values stand the fields of the sample's event that were asked for.
    asked: usize,
    lists: Sequences<FacetsId, Value, ()>,
    texts: IndexVec<TextId, FieldValue>,
}

impl Facets {
    /// Those of one sample with a number.
    #[cfg(test)]
    pub(crate) fn of_number(facet: Facet, number: u64) -> (Self, FacetsId) {
        let mut writer = FacetsWriter::new(facet.needs());
        let list = writer.list(&[Value::Number(number)]);
        (writer.finish(), list)
    }

    /// The number that a sample has; nothing if there is none, or if nobody asked.
    #[must_use]
    pub fn number(&self, of: FacetsId, facet: Facet) -> Option<u64> {
        match self.value(of, facet)? {
            Value::Number(number) => Some(number),
            Value::Nothing | Value::Text(_) | Value::Place(_) => None,
        }
    }

    /// The same for an address: the number of its frame.
    #[must_use]
    pub fn place(&self, of: FacetsId, facet: Facet) -> Option<u32> {
        match self.value(of, facet)? {
            Value::Place(place) => Some(place),
            Value::Nothing | Value::Text(_) | Value::Number(_) => None,
        }
    }

    /// The branches of a sample, if they were asked for, latest first: the frames of both ends, and the flags.
    pub fn branches(&self, of: FacetsId) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let list = self.list(of).get(self.asked..).unwrap_or_default();
        list.as_chunks::<3>()
            .0
            .iter()
            .filter_map(|branch| match *branch {
                [Value::Place(from), Value::Place(to), Value::Number(flags)] => {
                    Some((from, to, flags))
                }
                _ => None,
            })
    }

    /// The same for a text.
    #[must_use]
    pub fn text(&self, of: FacetsId, facet: Facet) -> Option<TextId> {
        match self.value(of, facet)? {
            Value::Text(text) => Some(text),
            Value::Nothing | Value::Number(_) | Value::Place(_) => None,
        }
    }

    /// The same for what the text says.
    #[must_use]
    pub fn words(&self, of: FacetsId, facet: Facet) -> Option<&str> {
        let text = self.text(of, facet)?;
        Some(&self.texts[text].text)
    }

    /// The payload of a sample as text.
    #[must_use]
    pub fn payload(&self, of: FacetsId) -> Option<&str> {
        self.words(of, Facet::Payload)
    }

    /// The CPU of a sample, or -1.
    #[must_use]
    pub fn cpu(&self, of: FacetsId) -> i32 {
        let cpu = self.number(of, Facet::Cpu);
        cpu.and_then(|cpu| i32::try_from(cpu).ok()).unwrap_or(-1)
    }

    /// How many threads ran at a sample; 1 if nobody asked.
    #[must_use]
    pub fn parallelism(&self, of: FacetsId) -> u64 {
        self.number(of, Facet::Parallelism).unwrap_or(1)
    }

    /// The value of a field, by its place among those of its event.
    #[must_use]
    pub fn field(&self, of: FacetsId, place: usize) -> Option<TextId> {
        match self.list(of).get(self.asked + place)? {
            Value::Text(text) => Some(*text),
            Value::Nothing | Value::Number(_) | Value::Place(_) => None,
        }
    }

    /// All texts.
    #[must_use]
    pub fn texts(&self) -> &IndexSlice<TextId, [FieldValue]> {
        &self.texts
    }

    fn value(&self, of: FacetsId, facet: Facet) -> Option<Value> {
        let place = self.places[facet as usize]?;
        self.list(of).get(place).copied()
    }

    fn list(&self, of: FacetsId) -> &[Value] {
        if self.lists.is_empty() {
            return &[];
        }
        self.lists.get(of)
    }

    /// The addresses of a list.
    pub(crate) fn places(&self, of: FacetsId) -> impl Iterator<Item = PcId> + '_ {
        self.list(of).iter().filter_map(|value| match value {
            Value::Place(place) => Some(PcId(*place)),
            _ => None,
        })
    }

    /// Adds the lists of another table, whose addresses come after `pcs` others. Equal ones stay apart until the rows are
    /// numbered.
    pub(super) fn append(
        &mut self,
        other: Self,
        pcs: u32,
    ) -> impl Fn(FacetsId) -> FacetsId + use<> {
        let (lists, texts) = (self.lists.len(), self.texts.len());
        self.lists.append(&other.lists, |value| match value {
            Value::Text(text) => Value::Text(TextId::from_usize(texts + text.index())),
            Value::Place(place) => Value::Place(place + pcs),
            unchanged => unchanged,
        });
        self.texts.extend(other.texts);
        move |of| FacetsId::from_usize(lists + of.index())
    }
}

/// Makes lists, and finds those that are there.
#[derive(Debug, Default)]
pub(crate) struct FacetsWriter {
    facets: Facets,
    /// Where the values come from that are asked for: tables are not searched for each of a million branches.
    reads: Vec<Read>,
    lists: SequenceIndex<FacetsId>,
    texts: ItemIndex<TextId>,
    /// The list at hand.
    list: Vec<Value>,
}

impl FacetsWriter {
    /// For the facets that are asked for.
    pub(crate) fn new(needs: Needs) -> Self {
        let mut facets = Facets::default();
        for (place, facet) in Facet::asked(needs).enumerate() {
            facets.places[facet as usize] = Some(place);
            facets.asked = place + 1;
        }
        Self {
            facets,
            reads: Facet::asked(needs).map(|facet| facet.row().read).collect(),
            ..Self::default()
        }
    }

    /// The facets of a sample, or of one of its branches. `taken` is what its record says, if that was read; `locate` finds
    /// out what lies at an address.
    pub(super) fn read(
        &mut self,
        at: &SampleAt<'_, '_>,
        taken: Option<&Taken<'_>>,
        locate: &mut dyn FnMut(Place) -> PcId,
    ) -> FacetsId {
        let needs = at.shared.needs;
        if self.facets.asked == 0 && !needs.intersects(Needs::FIELDS | Needs::BRANCH_LISTS) {
            return FacetsId::NONE;
        }
        let mut list = std::mem::take(&mut self.list);
        list.clear();
        for place in 0..self.reads.len() {
            let number = |number: Option<u64>| number.map_or(Value::Nothing, Value::Number);
            list.push(match self.reads[place] {
                Read::Index(read) => number(read(at)),
                Read::Recording => Value::Nothing,
                Read::Record(read) | Read::Named(read, _) => number(taken.and_then(read)),
                Read::Place(read) => match taken.and_then(read) {
                    Some(spot) => Value::Place(locate(spot).0),
                    None => Value::Nothing,
                },
                Read::Text(read) => match taken.and_then(|taken| read(at, taken.sample)) {
                    Some(text) => self.text(FieldValue {
                        raw: Box::default(),
                        text: text.into(),
                    }),
                    None => Value::Nothing,
                },
            });
        }
        let event = at.head().event;
        let fields = at.shared.fields.iter().filter(|key| key.event == event);
        let sample = taken.map(|taken| taken.sample);
        if let Some(payload) = sample.and_then(|sample| at.payload(sample)) {
            let (points, id) = (&at.shared.recording.tracepoints, at.event.attr.config);
            let values = points.field_values(id, fields, payload, &|address| at.function(address));
            list.extend(values.into_iter().map(|value| self.text(value)));
        }
        if needs.contains(Needs::BRANCH_LISTS) {
            let branches = sample.and_then(|sample| sample.branch_stack);
            for branch in branches.iter().flat_map(BranchStack::iter) {
                let mut end = |avma| Value::Place(locate(Place::Branch(avma)).0);
                list.extend([
                    end(branch.from),
                    end(branch.to),
                    Value::Number(branch.flags),
                ]);
            }
        }
        let id = self.list(&list);
        self.list = list;
        id
    }

    /// The number of a list.
    fn list(&mut self, list: &[Value]) -> FacetsId {
        self.lists.intern(&mut self.facets.lists, list, ())
    }

    fn text(&mut self, text: FieldValue) -> Value {
        let texts = &mut self.facets.texts;
        let hash = |each: &FieldValue| FxBuildHasher.hash_one(each);
        let new = texts.next_idx();
        let is = |at: TextId| texts[at] == text;
        let known = (self.texts).find_or_add(hash(&text), new, is, |at| hash(&texts[at]));
        Value::Text(known.unwrap_or_else(|| texts.push(text)))
    }

    /// What was written.
    pub(crate) fn finish(self) -> Facets {
        self.facets
    }
}

/// The facets of several recordings as one: what is equal becomes one.
#[derive(Debug, Default)]
pub struct FacetsPool(FacetsWriter);

impl FacetsPool {
    /// Adds the lists of a recording, which has the same facets; `frame` gives the frames of addresses their new numbers, and
    /// `labels` are facts of all its samples. The answer are the new numbers of lists, none where nobody asked for facets.
    pub fn add(
        &mut self,
        of: &Facets,
        frame: &dyn Fn(u32) -> u32,
        labels: [(Facet, &str); 2],
    ) -> IndexVec<FacetsId, FacetsId> {
        let out = &mut self.0;
        (out.facets.places, out.facets.asked) = (of.places, of.asked);
        let labels = labels.map(|(facet, text)| {
            let place = of.places[facet as usize]?;
            let text = out.text(FieldValue {
                raw: Box::default(),
                text: text.into(),
            });
            Some((place, text))
        });
        let mut moved = IndexVec::with_capacity(of.lists.len());
        for id in of.lists.ids() {
            let list = of.lists.get(id).iter().map(|value| match value {
                Value::Text(text) => out.text(of.texts[*text].clone()),
                Value::Place(place) => Value::Place(frame(*place)),
                other => *other,
            });
            let mut list: Vec<Value> = list.collect();
            for (place, text) in labels.into_iter().flatten() {
                if let Some(value) = list.get_mut(place) {
                    *value = text;
                }
            }
            moved.push(out.list(&list));
        }
        moved
    }

    /// All of them.
    #[must_use]
    pub fn finish(self) -> Facets {
        self.0.finish()
    }
}

/// Gives lists and texts new numbers in the order in which they are asked for, which does not depend on threads. What is equal in
/// the tables of two threads becomes one.
pub(crate) struct FacetsNumberer<'c, 'a> {
    of: &'c Facets,
    session: &'c Session<'a>,
    /// The number of an address's frame.
    frame: &'c dyn Fn(PcId) -> u32,
    known: IndexVec<FacetsId, Option<FacetsId>>,
    /// Numbers that have a name; two may have the same.
    names: FxHashMap<(usize, u64), TextId>,
    out: FacetsWriter,
}

impl<'c, 'a> FacetsNumberer<'c, 'a> {
    /// Nothing is numbered yet but frames.
    pub(crate) fn new(
        of: &'c Facets,
        session: &'c Session<'a>,
        frame: &'c dyn Fn(PcId) -> u32,
    ) -> Self {
        let mut out = FacetsWriter::default();
        (out.facets.places, out.facets.asked) = (of.places, of.asked);
        Self {
            of,
            session,
            frame,
            known: index_vec![None; of.lists.len()],
            names: FxHashMap::default(),
            out,
        }
    }

    /// The new number of a list.
    pub(crate) fn number(&mut self, id: FacetsId) -> FacetsId {
        if self.known.is_empty() {
            return id;
        }
        if let Some(known) = self.known[id] {
            return known;
        }
        let list: Vec<Value> = (0..)
            .zip(self.of.lists.get(id))
            .map(|(place, value)| self.renumbered(place, *value))
            .collect();
        let new = self.out.list(&list);
        self.known[id] = Some(new);
        new
    }

    fn renumbered(&mut self, place: usize, value: Value) -> Value {
        let facet = || {
            Facet::ALL
                .into_iter()
                .find(|facet| self.of.places[*facet as usize] == Some(place))
        };
        match value {
            Value::Nothing => value,
            Value::Place(pc) => Value::Place((self.frame)(PcId(pc))),
            Value::Text(text) => self.out.text(self.of.texts[text].clone()),
            Value::Number(number) => match facet().map(|facet| facet.row().read) {
                Some(Read::Named(_, name)) => {
                    let (session, texts) = (self.session, &mut self.out.facets.texts);
                    let known = self.names.entry((place, number));
                    Value::Text(*known.or_insert_with(|| {
                        texts.push(FieldValue {
                            raw: Box::default(),
                            text: name(session, number).into(),
                        })
                    }))
                }
                _ => value,
            },
        }
    }

    /// All that was asked for.
    pub(crate) fn finish(self) -> Facets {
        self.out.finish()
    }
}
