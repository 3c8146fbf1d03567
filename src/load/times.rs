//! Ranges of time that are told as shares of a recording.

use std::path::PathBuf;

use super::options::LoadOptions;
use super::source::Source;
use crate::diagnostics::Diagnostics;
use crate::input::Store;
use crate::perfdata::{Delivered, OpenError};
use crate::session::Filter;
use crate::time_spec::TimeSpec;

/// The samples to keep, once the times of the recording are known.
pub(super) fn in_time(
    time: &TimeSpec,
    options: &LoadOptions,
    diag: &Diagnostics,
) -> Result<Filter, OpenError> {
    let times = match time.absolute() {
        Some(times) => times,
        None => {
            let (first, last) = sample_times(&options.source, diag)?;
            time.resolve(first, last)
        }
    };
    Ok(Filter {
        times,
        ..options.filter.clone()
    })
}

/// Times of the first and the last sample in ns, for options that speak of shares of a recording.
///
/// # Errors
/// When the recording cannot be opened, is a stream (which can be read only once), or has no sample with a time.
fn sample_times(source: &Source, diag: &Diagnostics) -> Result<(u64, u64), OpenError> {
    let store = Store::new();
    let damaged = |problem: &str| OpenError::Damaged {
        path: PathBuf::from(source.name()),
        problem: problem.to_owned(),
    };
    if source.is_stream() {
        return Err(damaged(
            "shares of its time are not known of a stream; save it to a file first",
        ));
    }
    let recording = source.open(&store, diag)?;
    if let Some(times) = recording.features.sample_time {
        return Ok(times);
    }
    let mut times: Option<(u64, u64)> = None;
    let diag = Diagnostics::new();
    recording.deliver(&diag, &mut |_| {}, &mut |delivered| {
        if let Delivered::Sample(head) = delivered {
            let t = head.time.0;
            let (first, last) = times.unwrap_or((t, t));
            times = Some((first.min(t), last.max(t)));
        }
    });
    times.ok_or_else(|| damaged("no sample has a time"))
}
