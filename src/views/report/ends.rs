//! What rows show besides the sample's own address: both ends of a branch, and the data of an access.
//!
//! In: an entry, and which end of it. Out: its frame, and a number that is equal for what reads the same. The order is that of
//! perf's comparisons (`util/sort.c`). How it reads is the business of [`super::keys`].

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::options::ReportOptions;
use super::spec::{End, EndPart, Side};
use super::texts::{UNMAPPED, dso_ranks, known_srcline};
use crate::ids::IndexVec;
use crate::profile::{Entry, Facet, Frame, FrameId, Profile};

impl End {
    /// The frame at this end of an entry.
    #[must_use]
    pub(crate) fn frame(self, profile: &Profile, entry: &Entry) -> Option<FrameId> {
        match self.side {
            Side::Target => Some(entry.leaf),
            Side::Source => profile.frame_of(entry.facets, Facet::Source),
            Side::Data => profile.frame_of(entry.facets, Facet::Data),
        }
    }
}

/// Bytes of a cache line, as perf has them.
const LINE: u64 = 64;

/// The cache line of an address in its object's space.
pub(crate) const fn cacheline(frame: &Frame) -> u64 {
    frame.object_address.0 & !(LINE - 1)
}

/// The place in the sources that is known, or perf's words for none.
pub(crate) fn line_text(profile: &Profile, options: &ReportOptions, frame: &Frame) -> String {
    let known = known_srcline(profile, options, frame);
    known.unwrap_or_else(|| "??:0".to_owned())
}

/// Ranks of all frames by what is shown of them, made when first asked for.
#[derive(Default)]
pub(crate) struct Ends {
    ranks: [OnceCell<IndexVec<FrameId, u32>>; EndPart::Cacheline as usize + 1],
}

impl Ends {
    /// Where an entry stands by what one of its ends shows; equal for what reads the same.
    pub(crate) fn rank(
        &self,
        end: End,
        entry: &Entry,
        (profile, options): (&Profile, &ReportOptions),
    ) -> u64 {
        let ranks = &self.ranks[end.part as usize];
        let ranks = ranks.get_or_init(|| ranks_of(end.part, profile, options));
        let frame = end.frame(profile, entry);
        frame.map_or(u64::MAX, |frame| ranks[frame].into())
    }
}

fn ranks_of(part: EndPart, profile: &Profile, options: &ReportOptions) -> IndexVec<FrameId, u32> {
    let frames = profile.frames.iter();
    // perf takes addresses for signed numbers.
    let address = |frame: &Frame| frame.address.0.cast_signed();
    // Backwards, as perf has it for these.
    let of_objects = dso_ranks(profile, options);
    let dso = |frame: &Frame| !frame.object.map_or(UNMAPPED, |object| of_objects[object]);
    match part {
        EndPart::Dso => frames.map(dso).collect(),
        EndPart::Symbol => ranked(frames.map(|frame| match frame.symbol {
            Some(symbol) => {
                let symbol = &profile[symbol];
                let range = (symbol.start.0.cast_signed(), symbol.end.0.cast_signed());
                ((frame.mode, Ok(symbol.name.as_str())), (0, range))
            }
            None => {
                let at = address(frame);
                ((frame.mode, Err(at)), (1, (at, 0)))
            }
        })),
        EndPart::Address => ranked(frames.map(|frame| {
            let place = (dso(frame), address(frame));
            (place, place)
        })),
        EndPart::Line => {
            let texts: Vec<String> = frames
                .map(|frame| line_text(profile, options, frame))
                .collect();
            ranked(texts.iter().map(|text| (text, text)))
        }
        EndPart::Datum => ranked(frames.map(|frame| {
            let name = frame.symbol.map(|symbol| {
                let symbol = &profile[symbol];
                let offset = symbol.is_data.then(|| frame.offset_in(symbol));
                (symbol.name.as_str(), offset)
            });
            let at = address(frame);
            ((frame.mode, name.ok_or(at)), at)
        })),
        EndPart::Cacheline => ranked(frames.map(|frame| {
            let line = (frame.mode, frame.object, cacheline(frame));
            // Files, which have numbers of inodes, come after memory that is none.
            let object = frame.object.map(|object| &profile[object]);
            let place = (
                object.is_none(),
                object.is_some_and(|object| !object.identity),
            );
            (line, (frame.mode, place, cacheline(frame), frame.object))
        })),
    }
}

/// A rank for what frames show, in the order of the lowest place that has it.
fn ranked<T: Hash + Eq + Copy + Ord, O: Copy + Ord>(
    shown: impl Iterator<Item = (T, O)>,
) -> IndexVec<FrameId, u32> {
    let shown: Vec<(T, O)> = shown.collect();
    let mut lowest: FxHashMap<T, O> = FxHashMap::default();
    for (text, place) in &shown {
        let known = lowest.entry(*text).or_insert(*place);
        *known = *place.min(known);
    }
    let ordered: BTreeSet<(O, T)> = shown
        .iter()
        .map(|(text, _)| (lowest[text], *text))
        .collect();
    let ranks: FxHashMap<T, u32> = (0..)
        .zip(&ordered)
        .map(|(rank, (_, text))| (*text, rank))
        .collect();
    shown.iter().map(|(text, _)| ranks[text]).collect()
}
