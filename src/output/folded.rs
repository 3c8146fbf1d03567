//! Folded stacks: `comm;root;…;leaf WEIGHT`, one line for each distinct stack, sorted.
//!
//! In: a profile with stacks. Out: what `inferno-collapse-perf` makes of `perf script`, had perf's stacks
//! been whole; the rules for names (argument lists cut, `;` made `:`, blanks in comms made `_`, unnamed frames
//! shown as their DSO) are those of inferno 0.12, `src/collapse/perf.rs`.

use std::borrow::Cow;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::text::{acts, is_plain};
use crate::flame::without_arguments;
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::functions::payers::{Paid, PaidPart};
use crate::ids::{IndexSlice, IndexVec, index_vec, numbers};
use crate::intern::{Sequences, byte_ranks};
use crate::needs::Needs;
use crate::parallel::in_parallel;
use crate::profile::CpuMode;
use crate::profile::{
    CommId, Entry, EventId, Frame, FrameId, ObjectId, Profile, StackId, SymbolId, ThreadId,
};

/// What a line weighs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weight {
    /// Sum of periods.
    #[default]
    Period,
    /// Number of samples.
    Samples,
}

/// How to print folded stacks.
#[derive(Clone, Debug, Default)]
pub struct FoldOptions {
    /// `comm-PID` instead of `comm`.
    pub pid: bool,
    /// `comm-PID/TID` instead of `comm`.
    pub tid: bool,
    /// `_[k]` behind kernel frames.
    pub annotate_kernel: bool,
    /// `_[j]` behind frames of code made at run time.
    pub annotate_jit: bool,
    /// What to add up.
    pub weight: Weight,
    /// Only these events; all if none is named. Weights of different events do not add up.
    pub events: Vec<EventId>,
    /// What stands between the comm and the stack: who pays, what is done.
    pub by: Vec<PaidPart>,
    /// Threads that sort and format; 0 counts as 1.
    pub threads: usize,
}

/// What folded stacks are made of.
pub const NEEDS: Needs = Needs::CHAINS;

/// Writes all stacks of the profile, sorted by their text.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(profile: &Profile, options: &FoldOptions, out: &mut dyn Write) -> io::Result<()> {
    /// Text is handed on in pieces of so many bytes. To put it together on several threads takes longer: it is copied
    /// from words that are in the cache, and the other core is giving the recording back.
    const PIECE: usize = 1 << 16;
    let groups = groups(profile, options);
    let names = Names::of(profile, options, &groups);
    let words = Words::new(&names, options.threads);
    let lines = lines(profile, &groups, &words);
    let order: Vec<LineId> = lines.in_order(options.threads, |weight| weight);
    let mut text = Vec::with_capacity(2 * PIECE);
    // Different frames may have one name.
    for same in order.chunk_by(|&a, &b| lines.get(a) == lines.get(b)) {
        for &word in lines.get(same[0]) {
            text.extend_from_slice(words.texts[word]);
        }
        let weights = same.iter().map(|&line| lines.tag(line));
        writeln!(text, " {}", weights.fold(0, u64::saturating_add))?;
        if text.len() >= PIECE {
            out.write_all(&text)?;
            text.clear();
        }
    }
    out.write_all(&text)
}

numbers! {
    /// A word, by its rank.
    struct WordId(u32);
    /// Index into [`Names::comms`].
    struct NameId(u32);
    /// A line, of which others may be equal.
    struct LineId(u32);
}

/// The parts of lines, each a word with a rank. A word in front of others ends in `;`, which no name contains,
/// so none of those is the beginning of another: lines are in the order of their text when they are in the order
/// of their words' ranks. Comparing ranks costs a fraction of comparing texts, which are kilobytes long and
/// begin alike, and no line need be put together before it is written.
struct Words<'n> {
    /// By rank.
    texts: IndexVec<WordId, &'n [u8]>,
    /// By frame: the rank of its name with and without a frame behind it; nothing if it is not used so.
    inner: IndexVec<FrameId, WordId>,
    last: IndexVec<FrameId, WordId>,
    /// By group: the rank of its comm.
    comms: Vec<WordId>,
}

/// The texts of words, each ending in `;`.
struct Names {
    /// By frame: its piece's text, and where its name ends in it.
    frames: Vec<(String, Vec<u32>)>,
    comms: IndexVec<NameId, String>,
    /// By group.
    comm_of: Vec<NameId>,
    /// By frame: whether it is at the end of lines, and whether it is before others.
    is_last: IndexVec<FrameId, bool>,
    is_inner: IndexVec<FrameId, bool>,
}

impl Names {
    /// Frames of which one thread makes the names at once.
    const PIECE: usize = 1024;

    fn of(profile: &Profile, options: &FoldOptions, groups: &[(&Entry, u64)]) -> Self {
        let count = profile.frames.len();
        let (mut is_last, mut is_inner) = (index_vec![false; count], index_vec![false; count]);
        let mut threads = FxHashMap::default();
        let (mut comms, mut comm_of) = (IndexVec::new(), Vec::with_capacity(groups.len()));
        let paid = if options.by.is_empty() {
            Paid::default()
        } else {
            Paid::of(profile, &Functions::of(profile, &OwnRules::default()))
        };
        for (entry, _) in groups {
            let (last, inner) = ends(profile, entry);
            is_last[last] = true;
            inner.iter().for_each(|&frame| is_inner[frame] = true);
            let thread = (options.pid || options.tid).then_some(entry.thread);
            let by: Vec<usize> = options
                .by
                .iter()
                .map(|part| paid.ranked(*part, entry).0)
                .collect();
            let comm = threads
                .entry((entry.comm, thread, by))
                .or_insert_with(|| comms.push(comm(profile, entry, options, &paid)));
            comm_of.push(*comm);
        }
        let numbers: Vec<FrameId> = profile.frames.indices().collect();
        let pieces = numbers.chunks(Self::PIECE).collect();
        let frames = in_parallel(pieces, options.threads, |piece| {
            let (mut text, mut ends) = (String::new(), Vec::with_capacity(piece.len()));
            for &frame in piece {
                if is_last[frame] || is_inner[frame] {
                    push_frame(profile, &profile.frames[frame], options, &mut text);
                    text.push(';');
                }
                ends.push(index(text.len()));
            }
            (text, ends)
        });
        Self {
            frames,
            comms,
            comm_of,
            is_last,
            is_inner,
        }
    }

    fn frame(&self, frame: usize) -> &[u8] {
        let (text, ends) = &self.frames[frame / Self::PIECE];
        let at = frame % Self::PIECE;
        let start = if at == 0 { 0 } else { ends[at - 1] };
        &text.as_bytes()[start as usize..ends[at] as usize]
    }
}

impl<'n> Words<'n> {
    fn new(names: &'n Names, threads: usize) -> Self {
        let used = |is_used: &IndexSlice<FrameId, [bool]>| -> Vec<usize> {
            (0..is_used.len()).filter(|frame| is_used[*frame]).collect()
        };
        let (inner, last) = (used(&names.is_inner), used(&names.is_last));
        let mut texts: Vec<&[u8]> = Vec::with_capacity(inner.len() + last.len());
        texts.extend(inner.iter().map(|frame| names.frame(*frame)));
        texts.extend(last.iter().map(|frame| {
            let name = names.frame(*frame);
            name.strip_suffix(b";").unwrap_or(name)
        }));
        texts.extend(names.comms.iter().map(|comm| comm.as_bytes()));
        let ranks: Vec<WordId> = byte_ranks(&texts, threads);
        let by_frame = |frames: &[usize], own: &[WordId]| {
            let mut of_frame = index_vec![WordId(0); names.is_last.len()];
            for (frame, rank) in frames.iter().zip(own) {
                of_frame[*frame] = *rank;
            }
            of_frame
        };
        let (of_inner, rest) = ranks.split_at(inner.len());
        let (of_last, of_comm) = rest.split_at(last.len());
        let of_comm: &IndexSlice<NameId, [WordId]> = IndexSlice::new(of_comm);
        let comms = names.comm_of.iter().map(|comm| of_comm[*comm]);
        let mut words = Self {
            texts: index_vec![b"".as_slice(); texts.len()],
            inner: by_frame(&inner, of_inner),
            last: by_frame(&last, of_last),
            comms: comms.collect(),
        };
        for (text, rank) in texts.iter().zip(&ranks) {
            words.texts[*rank] = text;
        }
        words
    }
}

/// The leaf of an entry's line, and the frames before it, innermost first.
fn ends<'p>(profile: &'p Profile, entry: &Entry) -> (FrameId, &'p [FrameId]) {
    match profile.stacks.get(entry.stack) {
        [] => (
            entry.leaf,
            profile.marks[profile.stacks.end(entry.stack)].as_slice(),
        ),
        [leaf, callers @ ..] => (*leaf, callers),
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 4 G frames")
}

type Lines = Sequences<LineId, WordId, u64>;

/// The words of each line from the comm to the leaf, and its weight.
fn lines(profile: &Profile, groups: &[(&Entry, u64)], words: &Words<'_>) -> Lines {
    let mut lines = Sequences::default();
    let mut line = Vec::new();
    for ((entry, weight), comm) in groups.iter().zip(&words.comms) {
        let (leaf, callers) = ends(profile, entry);
        line.clear();
        line.push(*comm);
        let inner = |frame: &FrameId| words.inner[*frame];
        line.extend(callers.iter().rev().map(inner));
        line.push(words.last[leaf]);
        lines.push(&line, *weight);
    }
    lines
}

/// One entry for each line that is certain to be one, with the line's weight: texts are made for these only.
fn groups<'p>(profile: &'p Profile, options: &FoldOptions) -> Vec<(&'p Entry, u64)> {
    let mut found: FxHashMap<(CommId, Option<ThreadId>, StackId, Option<FrameId>), usize> =
        FxHashMap::default();
    let mut groups: Vec<(&Entry, u64)> = Vec::new();
    let events = profile.events.indices();
    let is_wanted: IndexVec<EventId, bool> = events
        .map(|event| options.events.is_empty() || options.events.contains(&event))
        .collect();
    for entry in &profile.entries {
        if !is_wanted[entry.event] {
            continue;
        }
        let weight = match options.weight {
            Weight::Period => entry.period,
            Weight::Samples => entry.samples,
        };
        let thread = (options.pid || options.tid).then_some(entry.thread);
        let alone = profile.stacks.get(entry.stack).is_empty();
        let key = (entry.comm, thread, entry.stack, alone.then_some(entry.leaf));
        match found.entry(key) {
            Occupied(at) => {
                let sum = &mut groups[*at.get()].1;
                *sum = sum.saturating_add(weight);
            }
            Vacant(at) => {
                at.insert(groups.len());
                groups.push((entry, weight));
            }
        }
    }
    groups
}

/// The comm, with what else the first word of a line is to say.
fn comm(profile: &Profile, entry: &Entry, options: &FoldOptions, paid: &Paid) -> String {
    let comm = harmless(&profile[entry.comm]).replace(' ', "_");
    let thread = &profile[entry.thread];
    // perf prints absent ids as -1.
    let id = |id: u32| i64::from(id.cast_signed());
    let mut text = if options.tid {
        format!("{comm}-{}/{};", id(thread.pid), id(thread.tid))
    } else if options.pid {
        format!("{comm}-{};", id(thread.pid))
    } else {
        format!("{comm};")
    };
    for part in &options.by {
        let (_, name) = paid.ranked(*part, entry);
        text.push_str(&harmless(name));
        text.push(';');
    }
    text
}

fn push_frame(profile: &Profile, frame: &Frame, options: &FoldOptions, text: &mut String) {
    let object = frame.object.map(|id| &profile[id]);
    match (frame.symbol, object) {
        (Some(symbol), _) => {
            let name = harmless(&profile[symbol].name);
            text.push_str(without_arguments(&name));
        }
        (None, Some(object)) => {
            let file = object
                .long_name
                .rsplit('/')
                .next()
                .unwrap_or(&object.long_name);
            text.push('[');
            text.push_str(&harmless(file));
            text.push(']');
        }
        (None, None) => text.push_str("[unknown]"),
    }
    let kernel = object.is_some_and(|object| object.is_kernel) || frame.mode == CpuMode::Kernel;
    if options.annotate_kernel && kernel {
        text.push_str("_[k]");
    } else if options.annotate_jit && is_jit(profile, frame) {
        text.push_str("_[j]");
    }
}

/// Whether the code was made at run time: a dump's mapping is an object like others.
fn is_jit(profile: &Profile, frame: &Frame) -> bool {
    let of_object = |object: ObjectId| profile[object].is_jit;
    let of_symbol = |symbol: SymbolId| profile[symbol].producer.is_some();
    frame.object.is_some_and(of_object) || frame.symbol.is_some_and(of_symbol)
}

/// A name that cannot end a frame or a line, nor reach a terminal as a control character.
fn harmless(name: &str) -> Cow<'_, str> {
    let is_plain = is_plain(name) && memchr::memchr(b';', name.as_bytes()).is_none();
    if !is_plain && name.contains(|c: char| c == ';' || acts(c)) {
        let replace = |c: char| match c {
            ';' => ':',
            c if acts(c) => '?',
            c => c,
        };
        return Cow::Owned(name.chars().map(replace).collect());
    }
    Cow::Borrowed(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn lines_are_in_the_order_of_their_text_and_each_there_once() {
        let mut builder = ProfileBuilder::default();
        // Characters on both sides of `;`, and names that begin like others.
        for (comm, stack) in [
            ("x", "ab;c"),
            ("x", "ab"),
            ("x", "ab1;c"),
            ("x", "ab<T>;c"),
            ("x", "ab<T>"),
            ("x", "ab;c;d"),
            ("x", "a;b"),
            ("x-1", "a"),
            ("x:", "a"),
            ("x", "ab;c"),
        ] {
            builder.sample(comm, stack, 2);
        }
        let mut out = Vec::new();
        let written = write(&builder.finish(), &FoldOptions::default(), &mut out);
        written.expect("a vector takes everything");
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let mut sorted = lines.clone();
        sorted.sort_by_key(|line| line.rsplit_once(' ').map(|(stack, _)| stack));
        assert_eq!(lines, sorted);
        assert_eq!(lines.len(), 9);
        assert!(lines.iter().any(|line| line.ends_with(" 4")));
    }

    #[test]
    fn names_cannot_break_lines_or_frames() {
        assert_eq!(harmless("a;b\nc\x1b[31m"), "a:b?c?[31m");
        assert_eq!(harmless("plain"), "plain");
    }
}
