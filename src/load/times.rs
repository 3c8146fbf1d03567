//! Ranges of time that are told as shares of a recording, or since its first sample.

use std::borrow::Cow;

use super::options::LoadOptions;
use super::source::Source;
use crate::address::Timestamp;
use crate::diagnostics::Diagnostics;
use crate::input::Store;
use crate::perfdata::{Delivered, OpenError};

/// The options with the samples to keep, once the times of the recording are known.
pub(super) fn in_time(options: &LoadOptions) -> Result<Cow<'_, LoadOptions>, OpenError> {
    let Some(time) = &options.time else {
        return Ok(Cow::Borrowed(options));
    };
    let times = match time.absolute() {
        Some(times) => times,
        None => {
            let (first, last) = sample_times(&options.source)?;
            time.resolve(first, last)
        }
    };
    let mut resolved = options.clone();
    resolved.filter.times = times;
    Ok(Cow::Owned(resolved))
}

/// Times of the first and the last sample in ns, for options that speak of shares of a recording or of its beginning.
///
/// # Errors
/// When the recording cannot be opened, is a stream (which can be read only once), or has no sample with a time.
fn sample_times(source: &Source) -> Result<(u64, u64), OpenError> {
    let store = Store::new();
    let unfit = |problem: &str| OpenError::Unfit {
        path: source.path().to_owned(),
        problem: problem.to_owned(),
    };
    if source.is_stream() {
        return Err(unfit(
            "shares of its time, and times since its first sample, are not known of a stream; save it to a file first",
        ));
    }
    // What is wrong with it is told when it is read.
    let diag = Diagnostics::new();
    let recording = source.open(&store, &diag)?;
    // Streams and slices (perf record --switch-output) have zeros there.
    let told = recording.features.sample_time;
    if let Some((first, last)) =
        told.filter(|(first, last)| first < last && Timestamp(*last).is_time())
    {
        return Ok((first, last));
    }
    let mut times: Option<(u64, u64)> = None;
    recording.deliver(&diag, &mut |_| {}, &mut |delivered| {
        if let Delivered::Sample(head) = delivered
            && head.time.is_time()
        {
            let t = head.time.0;
            let (first, last) = times.unwrap_or((t, t));
            times = Some((first.min(t), last.max(t)));
        }
    });
    times.ok_or_else(|| unfit("no sample has a time"))
}

/// Why no sample is left, if one was there to be left out by its time.
pub(super) fn nothing_in_time(
    options: &LoadOptions,
    seen: Option<(u64, u64)>,
) -> Option<OpenError> {
    options.time.as_ref()?;
    let (first, last) = seen?;
    if last == 0 {
        return Some(OpenError::Unfit {
            path: options.source.path().to_owned(),
            problem: "no sample has a time".to_owned(),
        });
    }
    let seconds = |ns: u64| format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000);
    let long = last.saturating_sub(first) as f64 * 1e-9;
    let problem = format!(
        "no samples within --time: the recording lasts from {} to {} ({long:.2} s); +1,+2 counts from its first sample",
        seconds(first),
        seconds(last)
    );
    Some(OpenError::Unfit {
        path: options.source.path().to_owned(),
        problem,
    })
}
