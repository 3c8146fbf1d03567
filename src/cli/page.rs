//! What a verb adds to its help: examples, the options of the short page, notes.

/// What help says of a verb besides its options.
pub(super) struct Page {
    /// Commands to copy, with what they are for.
    pub(super) examples: &'static [(&'static str, &'static str)],
    /// Options of the short page, by their long names; none are all of its own.
    pub(super) short: &'static [&'static str],
    /// What else there is to know, a paragraph a line.
    pub(super) notes: &'static str,
}
