//! What frames are called in exports.

use std::borrow::Cow;

use super::text::harmless;
use crate::profile::{FrameId, Profile};

/// The name of a frame's symbol; without one its object in brackets, or that nothing is known. Harmless text.
pub(super) fn frame_name(profile: &Profile, frame: FrameId) -> Cow<'_, str> {
    let frame = &profile[frame];
    match (frame.symbol, frame.object) {
        (Some(symbol), _) => harmless(&profile[symbol].name),
        (None, Some(object)) => {
            let object = profile[object].short_name.trim_matches(['[', ']']);
            format!("[{}]", harmless(object)).into()
        }
        (None, None) => "[unknown]".into(),
    }
}
