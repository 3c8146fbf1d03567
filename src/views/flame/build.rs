//! From the table of samples to the tree: equal call paths are found by sorting, not by comparing texts.
//!
//! Names get ranks first; a call path is then a row of numbers, sorted rows are the tree depth first, and what two
//! neighbours have in common are their common nodes.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::ids::{Idx, IndexSlice, IndexVec, index_vec, numbers};
use crate::intern::{Sequences, byte_ranks};
use crate::parallel::in_parallel;
use crate::profile::{CommId, Entry, EventId, FrameId, Profile, StackId, ThreadId};
use crate::questions::functions::Identity;

use super::names::{Naming, kind, push_frame, shown};
use super::{Cell, Flame, Function, FunctionId, Kind, Node, NodeId, ObjectId, Series, SeriesId};

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
    /// By what functions are the same in another recording, in paths of a difference. Without a name, as what it lies in.
    pub(super) identities: IndexVec<FunctionId, Option<Identity>>,
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
    let series = series(profile, options);
    let lines = lines(profile, options, &series);
    let words = Words::of(profile, options, &lines);
    Paths {
        all: rows(profile, options, &lines, &words.of_frame, &words.of_comm),
        functions: words.functions,
        objects: objects(profile),
        series: series.all,
        identities: IndexVec::new(),
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
    grow(&mut flame, &rows, &order);
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

/// One line for each path that is certain to be one: the rest is found when they are sorted.
fn lines<'p>(profile: &'p Profile, options: &Options, series: &AllSeries) -> Vec<Line<'p>> {
    type Key = (CommId, ThreadId, SeriesId, StackId, Option<FrameId>);
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    let mut lines: Vec<Line<'_>> = Vec::new();
    for entry in profile.entries.iter().filter(|e| is_wanted(e, options)) {
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
    }
    lines
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
}

impl Words {
    /// Frames of which one thread makes the names at once.
    const PIECE: usize = 1024;

    fn of(profile: &Profile, options: &Options, lines: &[Line<'_>]) -> Self {
        let mut is_used: IndexVec<FrameId, bool> = index_vec![false; profile.frames.len()];
        for part in lines.iter().flat_map(|line| frames(profile, line.entry)) {
            part.iter().for_each(|frame| is_used[*frame] = true);
        }
        let frames = is_used.indices();
        let used: Vec<FrameId> = frames.filter(|frame| is_used[*frame]).collect();
        let names = in_parallel(
            used.chunks(Self::PIECE).collect(),
            options.threads,
            |piece| frame_words(profile, options.naming, piece),
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
        let ranks: Vec<FunctionId> = byte_ranks(&texts, options.threads);
        let mut words = Self {
            functions: IndexVec::new(),
            of_frame: index_vec![FunctionId(0); profile.frames.len()],
            of_comm: Vec::new(),
        };
        let (of_frame, of_comm) = ranks.split_at(used.len());
        for (frame, rank) in used.iter().zip(of_frame) {
            words.of_frame[*frame] = *rank;
        }
        let of_line = comm_of_line.into_iter();
        words.of_comm = of_line.map(|comm| of_comm[comm]).collect();
        words.functions = functions(profile, options.naming, (&texts, &ranks), &used);
        words
    }
}

/// What ends a name: no name has it. Siblings come in the order of folded stacks, where `;` does.
pub(super) const END: char = ';';
/// Behind it is what else tells functions of one name apart.
pub(super) const APART: char = '\n';

/// The words of some frames, and where each ends.
fn frame_words(profile: &Profile, naming: Naming, piece: &[FrameId]) -> (String, Vec<u32>) {
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(piece.len()));
    for frame in piece {
        let frame = &profile[*frame];
        push_frame(profile, frame, naming, &mut text);
        text.push(END);
        text.push(APART);
        text.push(char::from(b'0' + kind(profile, frame) as u8));
        if let (Naming::Whole, Some(object)) = (naming, frame.object) {
            text.push_str(&object.index().to_string());
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
    used: &[FrameId],
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
            },
            None => Function {
                name,
                object: None,
                kind: Kind::Comm,
                symbol: None,
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

/// Makes nodes and cells of sorted paths.
fn grow(flame: &mut Flame, paths: &Rows, order: &[LineId]) {
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
        let node = open.last().copied().unwrap_or(Flame::ROOT);
        add(&mut flame.cells, node, paths.tag(line));
    }
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
