//! The filter that looks at rows; those that look at samples are [`crate::profile::SampleFilter`]'s.

use super::super::options::ReportOptions;
use super::Row;
use crate::profile::{Facet, Profile};

/// `--symbol-filter` looks at rows, not at samples; of branches at both ends.
pub(super) fn hidden_by_name(profile: &Profile, options: &ReportOptions, row: &Row) -> bool {
    let Some(part) = &options.filters.symbol_filter else {
        return false;
    };
    let source = profile.frame_of(profile[row.first.0].facets, Facet::Source);
    let mut own = std::iter::once(row.frame).chain(source);
    !own.any(|frame| profile.frame_name(frame).contains(part.as_str()))
}
