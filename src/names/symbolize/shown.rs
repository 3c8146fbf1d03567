//! Names as they are shown, for the recordings behind: to demangle one takes as long as to read a dozen.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::dso::NameStyle;
use crate::dso::demangle::demangle;

/// Names by what files have, each in one style.
#[derive(Default)]
pub(super) struct ShownNames(Mutex<Known>);

#[derive(Default)]
struct Known {
    style: NameStyle,
    names: FxHashMap<Box<[u8]>, Box<str>>,
    bytes: usize,
}

/// Bytes of names that are kept.
const MOST: usize = 16 << 20;

impl ShownNames {
    /// See [`demangle`].
    pub(super) fn of(&self, name: &[u8], style: NameStyle) -> String {
        if style == NameStyle::Raw {
            return demangle(name, style).into_owned();
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.style != style || known.bytes > MOST {
            *known = Known {
                style,
                ..Known::default()
            };
        }
        if let Some(shown) = known.names.get(name) {
            return shown.to_string();
        }
        let shown = demangle(name, style).into_owned();
        known.bytes += name.len() + shown.len();
        known.names.insert(name.into(), shown.as_str().into());
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_they_would_be_alone() {
        let shown = ShownNames::default();
        let names: [&[u8]; 3] = [b"_ZN3app4work17h0123456789abcdefE", b"_Z1fi", b"main\xff"];
        let styles = [NameStyle::Short, NameStyle::Full, NameStyle::Raw];
        for style in styles.into_iter().chain(styles) {
            for name in names.into_iter().chain(names) {
                assert_eq!(shown.of(name, style), demangle(name, style));
            }
        }
    }
}
