//! From the table of samples to the tree: equal call paths are found by sorting, not by comparing texts.
//!
//! Names get ranks first; a call path is then a row of numbers, sorted rows are the tree depth first, and what two
//! neighbours have in common are their common nodes.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::functions::payers::{Payers, Step};
use crate::functions::{Functions, Identity};
use crate::ids::{Idx, IndexSlice, IndexVec, index_vec, numbers};
use crate::intern::{Sequences, byte_ranks};
use crate::parallel::in_parallel;
use crate::profile::{CommId, Entry, EntryId, EventId, FrameId, Profile, StackId, ThreadId};

use super::look::{
    Look, MORE, NO_PACKAGE, Nature, Place, RUNTIME, Votes, fold_runs, fold_runtime, recurring,
};
use super::names::{Naming, kind, push_folded, push_frame, shown};
use super::{
    Cell, CellId, Flame, Function, FunctionId, Kind, Moment, Node, NodeId, ObjectId, Series,
    SeriesId,
};

/// What stands at the bottom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Roots {
    /// The comm of the sample.
    #[default]
    Comm,
    /// The comm and the process.
    Process,
    /// The comm, the process and the thread.
    Thread,
}

/// How the tree is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// What stands at the bottom.
    pub roots: Roots,
    /// Only samples of this event.
    pub event: Option<EventId>,
    /// Leaves first, and the comm at the tips.
    pub reverse: bool,
    /// Which functions there are.
    pub naming: Naming,
    /// Whether weights are told apart by thread.
    pub by_thread: bool,
    /// Whether it is kept when each row of the profile was, where all have a time.
    pub by_moment: bool,
    /// Threads that work on it; 0 counts as 1.
    pub threads: usize,
}

/// Call paths before they are a tree.
#[derive(Debug)]
pub struct Paths {
    pub(super) functions: IndexVec<FunctionId, Function>,
    pub(super) objects: IndexVec<ObjectId, String>,
    pub(super) series: IndexVec<SeriesId, Series>,
    /// Functions from the bottom up.
    pub(super) all: Rows,
    /// By what functions are the same in another recording, where they are told apart. Code without a name is what it lies in.
    pub(super) identities: IndexVec<FunctionId, Option<Identity>>,
    /// What the frames of each path are, if somebody asked for it.
    pub(super) natures: Option<Box<Natures>>,
    /// By row of the profile: its path, and when it was; empty where nobody asked for it.
    pub(super) moments: Vec<(LineId, Moment)>,
}

/// What the frames of paths are.
#[derive(Debug, Default)]
pub(super) struct Natures {
    /// By path: of each of its functions.
    of: Sequences<LineId, Nature, ()>,
    /// Names of packages, of which the first is none, and of activities.
    names: [Vec<String>; 2],
}

/// Makes the tree.
///
/// # Panics
/// Beyond 4 G nodes.
#[must_use]
pub fn build(profile: &Profile, options: &Options) -> Flame {
    plant(paths(profile, options), options.threads)
}

/// Finds the call paths. Functions are numbered in the order of their names.
///
/// # Panics
/// Beyond 4 G of anything.
#[must_use]
pub fn paths(profile: &Profile, options: &Options) -> Paths {
    paths_as(profile, options, Names::Recorded)
}

/// What frames are called, and which of them are one function.
#[derive(Clone, Copy, Debug)]
pub enum Names<'l> {
    /// As the recording says: what has one name is one.
    Recorded,
    /// As the recording says, but functions of one name are told apart as tables tell them: for comparisons.
    Apart(&'l Functions),
    /// As they are read best.
    Readable(Look<'l>),
}

impl<'l> Names<'l> {
    const fn look(self) -> Option<Look<'l>> {
        match self {
            Self::Readable(look) => Some(look),
            Self::Recorded | Self::Apart(_) => None,
        }
    }
}

/// The same, with functions called otherwise.
///
/// # Panics
/// Beyond 4 G of anything.
#[must_use]
pub fn paths_as(profile: &Profile, options: &Options, names: Names<'_>) -> Paths {
    let series = series(profile, options);
    let (lines, moments) = lines(profile, options, &series);
    let words = Words::of(profile, options, &lines, names);
    let (all, natures) = match names.look() {
        None => {
            let all = rows(profile, options, &lines, &words.of_frame, &words.of_comm);
            (all, None)
        }
        Some(look) => {
            let (all, natures) = readable(profile, options, &lines, &words, look);
            (all, Some(Box::new(natures)))
        }
    };
    Paths {
        all,
        functions: words.functions,
        objects: objects(profile),
        series: series.all,
        identities: words.identities,
        natures,
        moments,
    }
}

/// The tree of paths whose functions are numbered in the order of siblings.
///
/// # Panics
/// Beyond 4 G nodes.
#[must_use]
pub fn plant(paths: Paths, threads: usize) -> Flame {
    let mut flame = Flame {
        functions: paths.functions,
        objects: paths.objects,
        series: paths.series,
        ..Flame::default()
    };
    let rows = paths.all;
    let order = rows.in_order(threads, |tag| tag.series);
    let mut votes = Votes::default();
    let cell_of = grow(&mut flame, &rows, &order, |nodes, line| {
        if let Some(natures) = &paths.natures {
            votes.add(nodes, natures.of.get(line), rows.tag(line).samples);
        }
    });
    if let Some(natures) = paths.natures {
        votes.settle(&mut flame, natures.names);
    }
    let placed = |(line, moment): (LineId, Moment)| Moment {
        cell: cell_of[line],
        ..moment
    };
    flame.moments = paths.moments.into_iter().map(placed).collect();
    let series_of = |moment: &Moment| flame.cells[moment.cell.index()].series;
    let key = |moment: &Moment| (series_of(moment), moment.time, moment.cell);
    flame.moments.sort_by_cached_key(key);
    flame
}

/// The last word of a line is not told from the same word before others, so a function's own samples are part of its node.
pub(super) type Rows = Sequences<LineId, FunctionId, Tag>;

numbers! {
    /// A path and its weight.
    pub(super) struct LineId(u32);
}

/// What a path weighs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Tag {
    pub(super) series: SeriesId,
    pub(super) period: u64,
    pub(super) samples: u64,
}

fn number(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 4 G of anything")
}

/// What distinct paths are distinct by, and their weight.
struct Line<'p> {
    entry: &'p Entry,
    tag: Tag,
}

struct AllSeries {
    all: IndexVec<SeriesId, Series>,
    numbers: FxHashMap<Series, SeriesId>,
}

fn series_of(entry: &Entry, options: &Options) -> Series {
    Series {
        event: entry.event,
        thread: options.by_thread.then_some(entry.thread),
        run: 0,
    }
}

fn is_wanted(entry: &Entry, options: &Options) -> bool {
    options.event.is_none_or(|event| event == entry.event)
}

fn series(profile: &Profile, options: &Options) -> AllSeries {
    let entries = profile.entries.iter().filter(|e| is_wanted(e, options));
    let mut numbers: FxHashMap<Series, SeriesId> = entries
        .map(|entry| (series_of(entry, options), SeriesId(0)))
        .collect();
    let mut all: IndexVec<SeriesId, Series> = numbers.keys().copied().collect();
    all.sort_unstable();
    for (id, series) in all.iter_enumerated() {
        numbers.insert(*series, id);
    }
    AllSeries { all, numbers }
}

/// One line for each path that is certain to be one: the rest is found when they are sorted. And which line each row of the profile
/// is in, if that is wanted and known.
fn lines<'p>(
    profile: &'p Profile,
    options: &Options,
    series: &AllSeries,
) -> (Vec<Line<'p>>, Vec<(LineId, Moment)>) {
    type Key = (CommId, ThreadId, SeriesId, StackId, Option<FrameId>);
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut line_of: IndexVec<EntryId, Option<LineId>> = index_vec![None; profile.entries.len()];
    let entries = profile.entries.iter_enumerated();
    for (id, entry) in entries.filter(|(_, entry)| is_wanted(entry, options)) {
        let thread = match options.roots {
            Roots::Comm => ThreadId(0),
            Roots::Process | Roots::Thread => entry.thread,
        };
        let alone = profile.stacks.get(entry.stack).is_empty();
        let series = series.numbers[&series_of(entry, options)];
        let key = (
            entry.comm,
            thread,
            series,
            entry.stack,
            alone.then_some(entry.leaf),
        );
        let at = *known.entry(key).or_insert(lines.len());
        if at < lines.len() {
            let tag = &mut lines[at].tag;
            tag.period = tag.period.saturating_add(entry.period);
            tag.samples = tag.samples.saturating_add(entry.samples);
        } else {
            let tag = Tag {
                series,
                period: entry.period,
                samples: entry.samples,
            };
            lines.push(Line { entry, tag });
        }
        line_of[id] = Some(LineId::from_usize(at));
    }
    let moments = if options.by_moment {
        moments(profile, &line_of)
    } else {
        Vec::new()
    };
    (lines, moments)
}

/// When what lines weigh was taken; nothing if that is not known of all.
fn moments(
    profile: &Profile,
    line_of: &IndexSlice<EntryId, [Option<LineId>]>,
) -> Vec<(LineId, Moment)> {
    let placed = profile.moments().filter_map(|of| {
        let line = line_of.get(EntryId::from_usize(of.portion)).copied()??;
        let moment = Moment {
            time: of.time,
            cell: CellId(0),
            period: of.period,
            samples: of.samples,
        };
        Some((line, moment))
    });
    let moments: Vec<(LineId, Moment)> = placed.collect();
    let told: u64 = moments.iter().map(|(_, moment)| moment.samples).sum();
    let entries = profile.entries.iter().zip(line_of);
    let wanted = entries.filter(|(_, line)| line.is_some());
    let all: u64 = wanted.map(|(entry, _)| entry.samples).sum();
    if told == all { moments } else { Vec::new() }
}

/// The frames of an entry, innermost first: its own, then those around them.
fn frames<'p>(profile: &'p Profile, entry: &'p Entry) -> [&'p [FrameId]; 2] {
    match profile.stacks.get(entry.stack) {
        [] => {
            let mark = &profile.marks[profile.stacks.end(entry.stack)];
            [std::slice::from_ref(&entry.leaf), mark.as_slice()]
        }
        frames => [frames, &[]],
    }
}

/// The functions that paths are made of.
struct Words {
    functions: IndexVec<FunctionId, Function>,
    /// By frame; of no meaning for one that no path has.
    of_frame: IndexVec<FrameId, FunctionId>,
    /// By line.
    of_comm: Vec<FunctionId>,
    /// What stands for frames that are left out: those around packages, and those that recur.
    instead: [FunctionId; 2],
    /// By function, where they are told apart.
    identities: IndexVec<FunctionId, Option<Identity>>,
}

impl Words {
    /// Frames of which one thread makes the names at once.
    const PIECE: usize = 1024;

    fn of(profile: &Profile, options: &Options, lines: &[Line<'_>], called: Names<'_>) -> Self {
        let look = called.look();
        let mut is_used: IndexVec<FrameId, bool> = index_vec![false; profile.frames.len()];
        for part in lines.iter().flat_map(|line| frames(profile, line.entry)) {
            part.iter().for_each(|frame| is_used[*frame] = true);
        }
        let frames = is_used.indices();
        let used: Vec<FrameId> = frames.filter(|frame| is_used[*frame]).collect();
        let names = in_parallel(
            used.chunks(Self::PIECE).collect(),
            options.threads,
            |piece| frame_words(profile, options.naming, piece, called),
        );
        let mut texts: Vec<&[u8]> = Vec::with_capacity(used.len());
        for (text, ends) in &names {
            let mut start = 0;
            for end in ends {
                texts.push(&text.as_bytes()[start..*end as usize]);
                start = *end as usize;
            }
        }
        let (comms, comm_of_line) = comm_words(profile, options, lines);
        texts.extend(comms.iter().map(|comm| comm.as_bytes()));
        // No function has them, whatever it is called.
        let instead = [RUNTIME, MORE].map(|name| format!("{name}{END}{APART}9"));
        let first_instead = texts.len();
        if look.is_some() {
            texts.extend(instead.iter().map(|word| word.as_bytes()));
        }
        let ranks: Vec<FunctionId> = byte_ranks(&texts, options.threads);
        let mut words = Self {
            functions: IndexVec::new(),
            of_frame: index_vec![FunctionId(0); profile.frames.len()],
            of_comm: Vec::new(),
            instead: [0, 1].map(|at| {
                let rank = ranks.get(first_instead + at);
                rank.copied().unwrap_or(FunctionId(u32::MAX))
            }),
            identities: IndexVec::new(),
        };
        let (of_frame, of_comm) = ranks.split_at(used.len());
        for (frame, rank) in used.iter().zip(of_frame) {
            words.of_frame[*frame] = *rank;
        }
        let of_line = comm_of_line.into_iter();
        words.of_comm = of_line.map(|comm| of_comm[comm]).collect();
        let texts = (texts.as_slice(), ranks.as_slice());
        words.functions = functions(profile, options.naming, texts, (&used, first_instead));
        if look.is_some_and(|look| look.labels.is_some()) {
            words.tell_raw(profile, &used);
        }
        if let Names::Apart(functions) = called {
            words.identify(profile, functions, &used);
        }
        words
    }
}

impl Words {
    /// Texts that are told of a function: one for each tier is enough.
    const RAW: usize = 6;

    /// Says by what functions are known in another recording.
    fn identify(&mut self, profile: &Profile, functions: &Functions, used: &[FrameId]) {
        let mut identities = index_vec![None; self.functions.len()];
        for frame in used {
            let identity: &mut Option<Identity> = &mut identities[self.of_frame[*frame]];
            identity.get_or_insert_with(|| match profile[*frame].symbol {
                Some(_) => functions.identity(profile, functions.of_frame(*frame)),
                // Wherever it lies in an object of this name.
                None => functions.get(functions.of_frame(*frame)).identity.clone(),
            });
        }
        self.identities = identities;
    }

    /// Says what the recording calls functions whose names are other ones here.
    fn tell_raw(&mut self, profile: &Profile, used: &[FrameId]) {
        for frame in used {
            let Some(symbol) = profile[*frame].symbol else {
                continue;
            };
            let function = &mut self.functions[self.of_frame[*frame]];
            let raw = shown(profile[symbol].recorded_name());
            let is_told = function.name == raw || function.raw.iter().any(|known| *known == raw);
            if !is_told && function.raw.len() < Self::RAW {
                function.raw.push(raw.into_owned());
            }
        }
        for function in &mut self.functions {
            function.raw.sort_unstable();
        }
    }
}

/// What ends a name: no name has it. Siblings come in the order of folded stacks, where `;` does.
pub(super) const END: char = ';';
/// Behind it is what else tells functions of one name apart.
pub(super) const APART: char = '\n';

/// The words of some frames, and where each ends.
fn frame_words(
    profile: &Profile,
    naming: Naming,
    piece: &[FrameId],
    called: Names<'_>,
) -> (String, Vec<u32>) {
    let labels = called
        .look()
        .and_then(|look| Some((look.functions, look.labels?)));
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(piece.len()));
    for id in piece {
        let frame = &profile[*id];
        let label = labels.filter(|_| frame.symbol.is_some());
        let label = label.map(|(functions, texts)| texts[functions.of_frame(*id).index()].as_str());
        match (label.filter(|label| !label.is_empty()), naming) {
            (Some(label), Naming::Whole) => text.push_str(&shown(label)),
            (Some(label), Naming::Folded) => push_folded(&shown(label), &mut text),
            (None, _) => push_frame(profile, frame, naming, &mut text),
        }
        text.push(END);
        text.push(APART);
        text.push(char::from(b'0' + kind(profile, frame) as u8));
        if let (Naming::Whole, Some(object)) = (naming, frame.object) {
            text.push_str(&object.index().to_string());
        }
        if let Names::Apart(functions) = called {
            text.push(END);
            text.push_str(&functions.of_frame(*id).index().to_string());
        }
        ends.push(number(text.len()));
    }
    (text, ends)
}

/// The distinct words at the bottom, and by line which it is.
fn comm_words(
    profile: &Profile,
    options: &Options,
    lines: &[Line<'_>],
) -> (Vec<String>, Vec<usize>) {
    let mut known = FxHashMap::default();
    let (mut comms, mut of_line) = (Vec::new(), Vec::with_capacity(lines.len()));
    for Line { entry, .. } in lines {
        let thread = (options.roots != Roots::Comm).then_some(entry.thread);
        let at = *known.entry((entry.comm, thread)).or_insert_with(|| {
            comms.push(comm_word(profile, entry, options));
            comms.len() - 1
        });
        of_line.push(at);
    }
    (comms, of_line)
}

fn comm_word(profile: &Profile, entry: &Entry, options: &Options) -> String {
    let comm = shown(&profile[entry.comm]);
    let mut word = match options.naming {
        Naming::Folded => comm.replace(' ', "_").replace(';', ":"),
        Naming::Whole => comm.into_owned(),
    };
    let thread = &profile[entry.thread];
    // perf prints absent ids as -1.
    let id = |id: u32| i64::from(id.cast_signed());
    match options.roots {
        Roots::Comm => {}
        Roots::Process => word.push_str(&format!("-{}", id(thread.pid))),
        Roots::Thread => word.push_str(&format!("-{}/{}", id(thread.pid), id(thread.tid))),
    }
    if word.is_empty() {
        word.push_str("[unnamed]");
    }
    format!("{word}{END}{APART}{}", Kind::Comm as u8)
}

/// What the words stand for, by rank. Words of frames come first.
fn functions(
    profile: &Profile,
    naming: Naming,
    (texts, ranks): (&[&[u8]], &[FunctionId]),
    (used, first_instead): (&[FrameId], usize),
) -> IndexVec<FunctionId, Function> {
    let count = ranks.iter().max().map_or(0, |last| last.index() + 1);
    let mut first: IndexVec<FunctionId, usize> = index_vec![usize::MAX; count];
    for (word, rank) in ranks.iter().enumerate().rev() {
        first[*rank] = word;
    }
    let function = |word: usize| {
        // Nearly all are text, and to find that out alone takes a tenth of the time.
        let text = std::str::from_utf8(texts[word])
            .map_or_else(|_| String::from_utf8_lossy(texts[word]), Cow::Borrowed);
        let name = text.rsplit_once(APART).map_or(&*text, |(name, _)| name);
        let name = name.strip_suffix(END).unwrap_or(name).to_owned();
        match used.get(word).map(|frame| &profile[*frame]) {
            Some(frame) => Function {
                name,
                object: frame
                    .object
                    .filter(|_| naming == Naming::Whole)
                    .map(|object| ObjectId::from_usize(object.index())),
                kind: kind(profile, frame),
                symbol: frame.symbol,
                raw: Vec::new(),
            },
            None => Function {
                name,
                object: None,
                kind: if word < first_instead {
                    Kind::Comm
                } else {
                    Kind::User
                },
                symbol: None,
                raw: Vec::new(),
            },
        }
    };
    first.into_iter().map(function).collect()
}

/// In the order of the profile.
fn objects(profile: &Profile) -> IndexVec<ObjectId, String> {
    let name = |object: &crate::profile::Object| shown(&object.short_name).into_owned();
    profile.objects.iter().map(name).collect()
}

/// The words of each line from the bottom up.
fn rows(
    profile: &Profile,
    options: &Options,
    lines: &[Line<'_>],
    of_frame: &IndexSlice<FrameId, [FunctionId]>,
    of_comm: &[FunctionId],
) -> Rows {
    let mut paths = Sequences::default();
    let mut path = Vec::new();
    for (line, comm) in lines.iter().zip(of_comm) {
        let words = frames(profile, line.entry);
        path.clear();
        for part in words {
            path.extend(part.iter().map(|frame| of_frame[*frame]));
        }
        path.push(*comm);
        if !options.reverse {
            path.reverse();
        }
        paths.push(&path, line.tag);
    }
    paths
}

/// The words of each line from the bottom up, as they are read best, and what each of them is.
fn readable(
    profile: &Profile,
    options: &Options,
    lines: &[Line<'_>],
    words: &Words,
    look: Look<'_>,
) -> (Rows, Natures) {
    let mut payers = Payers::new(profile, look.functions);
    let (mut paths, mut steps) = (Vec::with_capacity(lines.len()), Vec::new());
    for (line, comm) in lines.iter().zip(&words.of_comm) {
        paths.push(places(
            profile,
            (line, *comm),
            words,
            &mut payers,
            look,
            &mut steps,
        ));
    }
    let recurring = if look.folds_runs {
        recurring(paths.iter().map(Vec::as_slice))
    } else {
        Default::default()
    };
    let (mut rows, mut natures) = (Rows::default(), Natures::default());
    let (mut functions, mut of_path, mut folded) = (Vec::new(), Vec::new(), Vec::new());
    for (line, path) in lines.iter().zip(&mut paths) {
        path.reverse();
        if look.folds_runs {
            fold_runs(path, &recurring, words.instead[1], &mut folded);
            std::mem::swap(path, &mut folded);
        }
        if options.reverse {
            path.reverse();
        }
        functions.clear();
        functions.extend(path.iter().map(|place| place.0));
        of_path.clear();
        of_path.extend(path.iter().map(|place| place.1));
        rows.push(&functions, line.tag);
        natures.of.push(&of_path, ());
    }
    let packages = payers
        .all()
        .iter()
        .map(|payer| shown(&payer.label()).into_owned());
    natures.names = [
        std::iter::once(NO_PACKAGE.to_owned())
            .chain(packages)
            .collect(),
        payers
            .activities()
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
    ];
    (rows, natures)
}

/// The frames of a line, leaf first, and the comm.
fn places(
    profile: &Profile,
    (line, comm): (&Line<'_>, FunctionId),
    words: &Words,
    payers: &mut Payers<'_>,
    look: Look<'_>,
    steps: &mut Vec<Step>,
) -> Vec<Place> {
    let short = |number: usize| u16::try_from(number).unwrap_or(0);
    let [frames, marks] = frames(profile, line.entry);
    payers.steps(frames, steps);
    let nature = |step: &Step| Nature {
        package: step.payer.map_or(0, |payer| short(payer.index() + 1)),
        activity: short(step.activity.index()),
        folded: 0,
    };
    let all = frames.iter().zip(steps.iter());
    let mut path: Vec<Place> = all
        .map(|(frame, step)| (words.of_frame[*frame], nature(step)))
        .collect();
    let outermost = path.last().map(|place| place.1).unwrap_or_default();
    let around = marks.iter().map(|mark| words.of_frame[*mark]);
    path.extend(around.chain([comm]).map(|function| (function, outermost)));
    if look.folds_runtime {
        let is_own: Vec<bool> = steps.iter().map(|step| step.package.is_some()).collect();
        fold_runtime(&mut path, &is_own, words.instead[0]);
    }
    path
}

/// Makes nodes and cells of sorted paths; `told` is told which nodes a path leads through. Says which cell each path is in.
fn grow(
    flame: &mut Flame,
    paths: &Rows,
    order: &[LineId],
    mut told: impl FnMut(&[NodeId], LineId),
) -> IndexVec<LineId, CellId> {
    let mut cell_of = index_vec![CellId(0); paths.len()];
    flame.nodes.push(Node {
        parent: Flame::ROOT,
        function: FunctionId(u32::MAX),
    });
    // The nodes of the last path, without the root.
    let mut open: Vec<NodeId> = Vec::new();
    let mut last: &[FunctionId] = &[];
    for &line in order {
        let path = paths.get(line);
        let common = last.iter().zip(path).take_while(|(a, b)| a == b).count();
        open.truncate(common);
        for &function in &path[common..] {
            let parent = open.last().copied().unwrap_or(Flame::ROOT);
            open.push(flame.nodes.push(Node { parent, function }));
        }
        last = path;
        told(&open, line);
        let node = open.last().copied().unwrap_or(Flame::ROOT);
        add(&mut flame.cells, node, paths.tag(line));
        cell_of[line] = CellId::from_usize(flame.cells.len() - 1);
    }
    cell_of
}

fn add(cells: &mut Vec<Cell>, node: NodeId, tag: Tag) {
    if let Some(cell) = cells.last_mut()
        && cell.node == node
        && cell.series == tag.series
    {
        cell.period = cell.period.saturating_add(tag.period);
        cell.samples = cell.samples.saturating_add(tag.samples);
        return;
    }
    cells.push(Cell {
        node,
        series: tag.series,
        period: tag.period,
        samples: tag.samples,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::ProfileBuilder;

    /// The profile and whether its rows are told by time.
    fn timed(times: [u64; 4]) -> Flame {
        let mut builder = ProfileBuilder::default();
        for (stack, period) in [("b;main", 60), ("a;main", 30), ("b;main", 6), ("main", 4)] {
            builder.sample("x", stack, period);
        }
        let mut profile = builder.finish();
        for (entry, time) in profile.entries.iter_mut().zip(times) {
            entry.time = time;
        }
        let options = Options {
            by_thread: true,
            by_moment: true,
            ..Options::default()
        };
        build(&profile, &options)
    }

    #[test]
    fn moments_are_in_order_and_add_up_to_cells() {
        let flame = timed([40, 30, 20, 30]);
        let name = |moment: &Moment| {
            let node = flame.cells[moment.cell.index()].node;
            flame.function(node).map(|f| f.name.as_str())
        };
        let told: Vec<_> = flame
            .moments
            .iter()
            .map(|moment| (moment.time, name(moment), moment.period))
            .collect();
        let expected = [
            (20, Some("b"), 6),
            (30, Some("main"), 4),
            (30, Some("a"), 30),
            (40, Some("b"), 60),
        ];
        assert_eq!(told, expected);
        for (at, cell) in flame.cells.iter().enumerate() {
            let own = flame.moments.iter().filter(|of| of.cell.index() == at);
            let sums = own.fold((0, 0), |sum, of| (sum.0 + of.period, sum.1 + of.samples));
            assert_eq!(sums, (cell.period, cell.samples));
        }
    }

    #[test]
    fn there_are_no_moments_where_a_time_is_missing() {
        assert!(timed([40, 0, 20, 30]).moments.is_empty());
    }
}
