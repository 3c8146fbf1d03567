//! The Firefox Profiler's processed format, version 66, for <https://profiler.firefox.com> and `profiler-cli`.
//!
//! In: a profile of samples, with lines and mapped ranges, whose frames are apart by address. Out: JSON, bit by bit and not yet compressed, in
//! which everything has its name: no server is asked for symbols. Fields and their meaning: `src/types/profile.ts` and
//! `docs-developer/CHANGELOG-formats.md` of firefox-devtools/profiler. Samples are those of one event; what other events and
//! switches recorded are markers, and so are phases, spells and gaps, in a track of their own. No text of a recording acts in a terminal or a page.

mod category;
mod libs;
mod meta;
mod shared;
mod threads;
mod tracks;
mod when;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use super::columns::hand_over;
use super::over_time::When;
use crate::functions::Functions;
use crate::functions::kinds::OwnRules;
use crate::needs::Needs;
use crate::profile::{EventId, Facet, Profile};
use shared::Shared;
use tracks::Owner;

/// No number.
const NONE: u32 = u32::MAX;

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirefoxOptions {
    /// The event whose samples are samples: index into [`Profile::events`].
    pub event: EventId,
    /// A track for each CPU instead of each thread; threads are roots of its stacks.
    pub per_cpu: bool,
}

/// What the file is made of.
pub const NEEDS: Needs = Needs::CHAINS
    .union(Needs::ADDRESSES)
    .union(Needs::LINES)
    .union(Needs::FUNCTION_LINES)
    .union(Needs::RANGES)
    .union(Needs::SAMPLES)
    .union(Facet::Payload.needs())
    .union(Needs::KINDS)
    .union(Needs::ORIGINALS);

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Samples of the event.
    pub samples: usize,
    /// Tracks of threads or CPUs.
    pub tracks: usize,
    /// Markers.
    pub markers: usize,
}

/// Writes the profile as JSON.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(
    profile: &Profile,
    options: FirefoxOptions,
    when: Option<When<'_>>,
    out: &mut dyn Write,
) -> io::Result<Written> {
    let functions = Functions::of(profile, &OwnRules::default());
    let mut shared = Shared::new(profile, &functions);
    let mut tracks = tracks::tracks(profile, options, &mut shared);
    tracks.extend(when.and_then(|when| when::track(when, &mut shared)));
    let places = shared.arrange();
    tracks.iter_mut().for_each(|track| track.arrange(&places));
    drop(places);
    let written = Written {
        samples: tracks.iter().map(|track| track.hits.len()).sum(),
        tracks: tracks
            .iter()
            .filter(|track| track.owner != Owner::When)
            .count(),
        markers: tracks.iter().map(|track| track.markers.len()).sum(),
    };
    let scale = threads::Scale::of(profile, options, &tracks);
    let mut json = String::new();
    json.push_str("{\"meta\":");
    json.push_str(&meta::meta(profile, options, &tracks, &scale, shared.categories()).to_string());
    json.push_str(",\"libs\":");
    shared.push_libs(&mut json);
    json.push_str(",\"threads\":[");
    let lives = threads::Lives::of(profile);
    for (at, track) in tracks.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        threads::write(profile, track, (&lives, &scale), &mut json, out)?;
    }
    json.push(']');
    drop(tracks);
    json.push_str(",\"shared\":");
    shared.write(&mut json, out)?;
    json.push('}');
    hand_over(&mut json, out)?;
    Ok(written)
}
