//! Texts by number, each once, for formats that keep them in a table of their own.
//!
//! There can be hundreds of thousands, so they stand end to end and are looked up where they stand.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::ids::{Idx, IndexSlice, IndexVec, numbers};
use crate::intern::ItemIndex;

numbers! {
    /// One of [`Strings`].
    pub(super) struct TextId(pub(super) u32);
}

/// Interned texts; the first is empty.
#[derive(Debug)]
pub(super) struct Strings {
    texts: String,
    /// Where each ends.
    ends: IndexVec<TextId, usize>,
    /// Of each, so that other texts are not looked at.
    hashes: IndexVec<TextId, u32>,
    index: ItemIndex<TextId>,
}

impl Default for Strings {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl Strings {
    /// Room for so many texts to be found.
    pub(super) fn with_capacity(texts: usize) -> Self {
        let mut strings = Self {
            texts: String::new(),
            ends: IndexVec::new(),
            hashes: IndexVec::new(),
            index: ItemIndex::with_capacity(texts),
        };
        strings.id("");
        strings
    }

    /// The number of a text, as formats write it.
    pub(super) fn id(&mut self, text: &str) -> TextId {
        let new = self.ends.next_idx();
        let hash = FxBuildHasher.hash_one(text) as u32;
        let (texts, ends, hashes) = (&self.texts, &self.ends, &self.hashes);
        let is = |at| hashes[at] == hash && self::text(texts, ends, at) == text;
        let hash_of = |at| u64::from(hashes[at]);
        let known = self.index.find_or_add(hash.into(), new, is, hash_of);
        if let Some(known) = known {
            return known;
        }
        self.texts.push_str(text);
        self.hashes.push(hash);
        self.ends.push(self.texts.len())
    }

    /// The text of a number.
    pub(super) fn get(&self, id: TextId) -> &str {
        text(&self.texts, &self.ends, id)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// All of them by number.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let numbers = self.ends.indices();
        numbers.map(|id| text(&self.texts, &self.ends, id))
    }
}

fn text<'t>(texts: &'t str, ends: &IndexSlice<TextId, [usize]>, id: TextId) -> &'t str {
    let before = id.index().checked_sub(1);
    let start = before.map_or(0, |before| ends[before]);
    &texts[start..ends[id]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_one_number() {
        let mut strings = Strings::default();
        let names: Vec<String> = (0..1000).map(|n| format!("f{}", n % 400)).collect();
        let ids: Vec<u32> = names.iter().map(|name| strings.id(name).0).collect();
        assert_eq!(
            (strings.id("").0, ids[0], ids[399], ids[400]),
            (0, 1, 400, 1)
        );
        assert_eq!(
            (strings.get(TextId(0)), strings.get(TextId(400))),
            ("", "f399")
        );
        assert_eq!(strings.all().count(), 401);
    }
}
