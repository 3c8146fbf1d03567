//! What a frame contributes to the identity of a row.
//!
//! In: the profile's frames and the keys in use. Out: a dense class for each frame, equal exactly when
//! the frames fall into one row as far as DSO, symbol and source line decide (perf:
//! `sort__dso_cmp`, `sort__sym_cmp`, `sort__srcline_collapse` in `util/sort.c`). Called by [`super::rows`].

use std::cmp::Ordering;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::columns::Columns;
use super::keys::Key;
use super::options::ReportOptions;
use super::trie::NONE;
use crate::intern::ItemIndex;
use crate::profile::{Frame, FrameId, Object, Profile};

/// Rank of what has no DSO: behind all names.
pub(crate) const UNMAPPED: u32 = u32::MAX;

/// The parts of a row's identity that come from a frame; parts whose key is not in use are constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    /// Rank of the DSO's short name in byte order.
    pub(crate) dso: u32,
    /// Function or address.
    pub(crate) symbol: SymbolPart,
    /// Index into [`Classes::texts`].
    pub(crate) srcline: u32,
    /// Index into [`Classes::texts`].
    pub(crate) srcfile: u32,
}

/// The symbol's part of a row's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SymbolPart {
    /// The key is not in use.
    Unused,
    /// A symbol of the table; start and end. JIT code has a number too, because code made later may lie at the
    /// same place.
    Range(u64, u64, u32),
    /// An inlined function: number of its name, range of the function it was first seen in.
    Inlined(u32, u64, u64),
    /// No symbol: the address as printed.
    Address(u64),
}

/// Kind, start, end, number of the name.
pub(crate) type SymbolRank = (u8, i64, i64, u32);

impl SymbolPart {
    /// perf's ascending order: by start and end, unresolved last, by signed address.
    pub(crate) fn cmp_as_perf(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }

    /// What [`cmp_as_perf`](Self::cmp_as_perf) compares.
    pub(crate) fn rank(&self) -> SymbolRank {
        match *self {
            Self::Unused => (0, 0, 0, 0),
            Self::Range(start, end, id) => (1, start.cast_signed(), end.cast_signed(), id),
            Self::Inlined(name, start, end) => {
                (1, start.cast_signed(), end.cast_signed(), name + 1)
            }
            Self::Address(at) => (2, at.cast_signed(), 0, 0),
        }
    }
}

/// Classes of all frames.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    /// Distinct classes in order of first use.
    pub(crate) all: Vec<Class>,
    /// Class of each frame as a sample's own ip; [`NONE`] for frames that are none.
    pub(crate) leaf: Vec<u32>,
    /// Class of each frame as a caller, [`NONE`] for marks; empty unless callers are credited.
    pub(crate) caller: Vec<u32>,
    /// Source lines and files that classes refer to, sorted.
    pub(crate) texts: Vec<String>,
}

impl Classes {
    /// Classes of all frames of the profile.
    pub(crate) fn of(
        profile: &Profile,
        options: &ReportOptions,
        columns: &Columns,
        with_callers: bool,
    ) -> Self {
        let mut maker = Maker::new(profile, options, columns);
        // Which row an inlined function falls into depends on all frames before it.
        let is_leaf = if with_callers || options.ignore_callees.is_some() {
            vec![true; profile.frames.len()]
        } else {
            let mut is_leaf = vec![false; profile.frames.len()];
            let entries = profile.entries.iter();
            entries.for_each(|entry| is_leaf[entry.leaf.0 as usize] = true);
            is_leaf
        };
        let mut classes = Self {
            leaf: maker.classes(&is_leaf, false),
            ..Self::default()
        };
        if with_callers {
            // What stands for missing frames is no function to be credited.
            let is_caller: Vec<bool> = (0..is_leaf.len() as u32)
                .map(|frame| !profile.is_mark(FrameId(frame)))
                .collect();
            classes.caller = maker.classes(&is_caller, true);
        }
        classes.all = maker.all;
        classes.texts = maker.lines.texts;
        classes
    }
}

/// `file:line` as perf prints it for a row, also when there is no debug information.
pub(crate) fn srcline_text(profile: &Profile, options: &ReportOptions, frame: &Frame) -> String {
    if let Some(line) = known_srcline(profile, options, frame) {
        return line;
    }
    match (frame.symbol, frame.object) {
        (Some(symbol), _) => {
            let symbol = &profile[symbol];
            format!(
                "{}+{}",
                symbol.name,
                frame.object_address.wrapping_sub(symbol.start)
            )
        }
        (None, Some(object)) => {
            format!("{}[{:x}]", profile[object].short_name, frame.object_address)
        }
        (None, None) => "??:0".to_owned(),
    }
}

/// `file:line` of a frame whose code has debug information; without folders unless they are asked for.
pub(crate) fn known_srcline(
    profile: &Profile,
    options: &ReportOptions,
    frame: &Frame,
) -> Option<String> {
    let line = frame.line?;
    let file = profile[line.file].as_str();
    let shown = if options.full_source_path {
        file
    } else {
        file.rsplit_once('/').map_or(file, |(_, base)| base)
    };
    Some(format!("{shown}{}", line.suffix()))
}

/// The file of a source line; empty when there is none, as in perf.
fn srcfile_text(profile: &Profile, options: &ReportOptions, frame: &Frame) -> String {
    let line = known_srcline(profile, options, frame).unwrap_or_default();
    let file = line.rsplit_once(':').map_or("", |(file, _)| file);
    if file == "??" {
        String::new()
    } else {
        file.to_owned()
    }
}

/// Lines and files of all frames, by rank in byte order.
#[derive(Default)]
struct Lines {
    texts: Vec<String>,
    line_of: Vec<u32>,
    file_of: Vec<u32>,
}

impl Lines {
    fn of(profile: &Profile, options: &ReportOptions, columns: &Columns) -> Self {
        let mut lines = Self::default();
        let collect = |text: fn(&Profile, &ReportOptions, &Frame) -> String| -> Vec<String> {
            profile
                .frames
                .iter()
                .map(|frame| text(profile, options, frame))
                .collect()
        };
        let line_texts = if columns.has_key(Key::Srcline) {
            collect(srcline_text)
        } else {
            Vec::new()
        };
        let file_texts = if columns.has_key(Key::Srcfile) {
            collect(srcfile_text)
        } else {
            Vec::new()
        };
        lines.texts = line_texts.iter().chain(&file_texts).cloned().collect();
        lines.texts.sort_unstable();
        lines.texts.dedup();
        let rank = |text: &String| lines.texts.binary_search(text).map_or(0, |at| at as u32);
        lines.line_of = line_texts.iter().map(rank).collect();
        lines.file_of = file_texts.iter().map(rank).collect();
        lines
    }
}

struct Maker<'p> {
    profile: &'p Profile,
    dso_ranks: Vec<u32>,
    has_dso: bool,
    has_symbol: bool,
    lines: Lines,
    all: Vec<Class>,
    ids: ItemIndex,
    /// Names of inlined functions, and by DSO and name the ranges of the rows they have so far.
    inlined_names: FxHashMap<&'p str, u32>,
    inlined: FxHashMap<(u32, u32), Vec<(u64, u64)>>,
}

impl<'p> Maker<'p> {
    fn new(profile: &'p Profile, options: &ReportOptions, columns: &Columns) -> Self {
        Self {
            profile,
            dso_ranks: dso_ranks(profile, options),
            has_dso: columns.has_key(Key::Dso),
            // perf keeps symbols of one size apart.
            has_symbol: columns.has_key(Key::Symbol) || columns.has_key(Key::SymbolSize),
            lines: Lines::of(profile, options, columns),
            all: Vec::new(),
            ids: ItemIndex::default(),
            inlined_names: FxHashMap::default(),
            inlined: FxHashMap::default(),
        }
    }

    /// Classes of the frames that are `wanted`.
    fn classes(&mut self, wanted: &[bool], as_caller: bool) -> Vec<u32> {
        let of = |(i, wanted): (u32, &bool)| match wanted {
            true => self.class(FrameId(i), as_caller),
            false => NONE,
        };
        (0..).zip(wanted).map(of).collect()
    }

    fn class(&mut self, id: FrameId, as_caller: bool) -> u32 {
        let frame = &self.profile[id];
        let dso = frame
            .object
            .map_or(UNMAPPED, |object| self.dso_ranks[object.0 as usize]);
        let symbol = if self.has_symbol {
            self.symbol_part(frame, dso, as_caller)
        } else {
            SymbolPart::Unused
        };
        // perf compares the DSOs of resolved symbols whether or not `dso` is a key.
        let needs_dso =
            self.has_dso || matches!(symbol, SymbolPart::Range(..) | SymbolPart::Inlined(..));
        let class = Class {
            dso: if needs_dso { dso } else { UNMAPPED },
            symbol,
            srcline: self.lines.line_of.get(id.0 as usize).copied().unwrap_or(0),
            srcfile: self.lines.file_of.get(id.0 as usize).copied().unwrap_or(0),
        };
        let all = &self.all;
        let new = all.len() as u32;
        let hash = |class: &Class| FxBuildHasher.hash_one(class);
        let is = |id: u32| all[id as usize] == class;
        let known = (self.ids).find_or_add(hash(&class), new, is, |id| hash(&all[id as usize]));
        known.unwrap_or_else(|| {
            self.all.push(class);
            new
        })
    }

    fn symbol_part(&mut self, frame: &Frame, dso: u32, as_caller: bool) -> SymbolPart {
        let Some(id) = frame.symbol else {
            return SymbolPart::Address(if as_caller {
                frame.address
            } else {
                frame.object_address
            });
        };
        let symbol = &self.profile[id];
        if !symbol.inlined {
            let is_jit = self.profile[symbol.object].is_jit;
            return SymbolPart::Range(symbol.start, symbol.end, if is_jit { id.0 + 1 } else { 0 });
        }
        let count = self.inlined_names.len() as u32;
        let name = *self.inlined_names.entry(&symbol.name).or_insert(count);
        // One inlined function in two functions that touch is one row, as in perf (`_sort__sym_cmp`).
        let ranges = self.inlined.entry((dso, name)).or_default();
        let touching = ranges
            .iter()
            .find(|(start, end)| *start <= symbol.end && *end >= symbol.start);
        let (start, end) = touching.copied().unwrap_or_else(|| {
            ranges.push((symbol.start, symbol.end));
            (symbol.start, symbol.end)
        });
        SymbolPart::Inlined(name, start, end)
    }
}

/// Rank of each object's name in byte order; equal names have one rank.
fn dso_ranks(profile: &Profile, options: &ReportOptions) -> Vec<u32> {
    ranks(
        &profile
            .objects
            .iter()
            .map(|object| dso_name(object, options))
            .collect::<Vec<_>>(),
    )
}

/// The name that rows show, and that keeps them apart: the path with `-v`.
pub(crate) fn dso_name<'p>(object: &'p Object, options: &ReportOptions) -> &'p str {
    if options.verbose > 0 {
        &object.long_name
    } else {
        &object.short_name
    }
}

/// Rank of each text in byte order; equal texts have one rank.
pub(crate) fn ranks(texts: &[&str]) -> Vec<u32> {
    let mut sorted = texts.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    texts
        .iter()
        .map(|text| sorted.binary_search(text).map_or(0, |at| at as u32))
        .collect()
}
