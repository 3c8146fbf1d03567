//! The filter that looks at rows; those that look at samples are [`crate::profile::SampleFilter`]'s.

use super::super::options::ReportOptions;
use crate::profile::{Frame, Profile};

/// `--symbol-filter` looks at rows, not at samples.
pub(super) fn hidden_by_name(profile: &Profile, options: &ReportOptions, frame: &Frame) -> bool {
    let Some(part) = &options.filters.symbol_filter else {
        return false;
    };
    !frame
        .symbol
        .is_some_and(|symbol| profile[symbol].name.contains(part.as_str()))
}
