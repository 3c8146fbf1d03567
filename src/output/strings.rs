//! Texts by number, each once, for formats that keep them in a table of their own.

use rustc_hash::FxHashMap;

/// Interned texts; the first is empty.
#[derive(Debug)]
pub(super) struct Strings {
    all: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            all: vec![String::new()],
            known: FxHashMap::from_iter([(String::new(), 0)]),
        }
    }
}

impl Strings {
    /// The number of a text.
    pub(super) fn id(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let id = u32::try_from(self.all.len()).expect("fewer than 4 G texts");
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), id);
        id
    }

    /// All of them by number.
    pub(super) fn all(&self) -> &[String] {
        &self.all
    }
}
