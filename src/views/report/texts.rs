//! How objects and places in the sources read in rows, and in which order that puts them.

use super::options::ReportOptions;
use crate::ids::IndexVec;
use crate::profile::{Frame, Object, ObjectId, Profile};

/// Rank of what has no DSO: behind all names.
pub(crate) const UNMAPPED: u32 = u32::MAX;

/// `file:line` as perf prints it for a row, also when there is no debug information.
pub(crate) fn srcline_text(profile: &Profile, options: &ReportOptions, frame: &Frame) -> String {
    if let Some(line) = known_srcline(profile, options, frame) {
        return line;
    }
    match (frame.symbol, frame.object) {
        (Some(symbol), _) => {
            let symbol = &profile[symbol];
            format!("{}+{}", symbol.name, frame.offset_in(symbol))
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
    let shown = if options.layout.full_source_path {
        file
    } else {
        file.rsplit_once('/').map_or(file, |(_, base)| base)
    };
    Some(format!("{shown}{}", line.suffix()))
}

/// The file of a source line; empty when there is none, as in perf.
pub(crate) fn srcfile_text(profile: &Profile, options: &ReportOptions, frame: &Frame) -> String {
    let line = known_srcline(profile, options, frame).unwrap_or_default();
    let file = line.rsplit_once(':').map_or("", |(file, _)| file);
    if file == "??" {
        String::new()
    } else {
        file.to_owned()
    }
}

/// Rank of each object's name in byte order; equal names have one rank.
pub(crate) fn dso_ranks(profile: &Profile, options: &ReportOptions) -> IndexVec<ObjectId, u32> {
    ranks(
        &profile
            .objects
            .iter()
            .map(|object| dso_name(object, options))
            .collect::<Vec<_>>(),
    )
    .into()
}

/// The name that rows show, and that keeps them apart: the path with `-v`.
pub(crate) fn dso_name<'p>(object: &'p Object, options: &ReportOptions) -> &'p str {
    if options.layout.verbose > 0 {
        &object.long_name
    } else {
        &object.short_name
    }
}

/// Rank of each text in byte order; equal texts have one rank.
pub(crate) fn ranks<T: Copy + Ord>(texts: &[T]) -> Vec<u32> {
    let mut sorted = texts.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    texts
        .iter()
        .map(|text| sorted.binary_search(text).map_or(0, |at| at as u32))
        .collect()
}
