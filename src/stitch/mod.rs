//! Completing stacks that are larger than what was copied of them.
//!
//! In: rows of address stacks, and what complete stacks of the same threads have shown ([`crate::collect`]). Out: the same rows,
//! some with longer stacks. `--call-graph dwarf` copies so many bytes above the stack pointer; what was walked of a deeper stack
//! is right, but it ends somewhere inside, at its *border*. Between collecting and naming, so that nothing here
//! depends on names and all views get the same.
//!
//! ```text
//! graft    the root that all complete stacks of the thread share, with a gap   on by default
//! ```
//!
//! Decided by thread, time order and addresses alone, so that it never depends on the number of workers.

mod graft;

use crate::collect::Collected;
use crate::session::Session;

/// What to complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mending {
    /// Put the thread's root under cut stacks.
    pub graft: bool,
}

/// Completes what can be completed.
pub fn mend(collected: &mut Collected, session: &Session<'_>, what: Mending) {
    if what.graft && !collected.roots.cuts.is_empty() {
        graft::graft(collected, session);
    }
}
