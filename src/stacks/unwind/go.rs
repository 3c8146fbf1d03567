//! Go's code: where its stacks end, and frames by the stack heights that its table of functions tells.
//!
//! In: the table and an address. Out: a rule. Every instruction of a Go function has a known distance from the stack
//! pointer to the return address; frame pointers are kept by most functions only, and not while they are set up.

use super::arch::Architecture;
use super::rules::{IN_REGISTER, Rule};
use crate::address::Svma;
use crate::dso::go::{GoBase, GoTable};
use crate::stack_end::StackEnd;

/// In [`Rule::extra`] of a base: its first instruction is the return address, which no call goes before.
const ENTERED_BY_RETURN: u32 = 1;
/// The same of a function whose caller is on another stack.
const SWITCHED: u32 = 2;

/// The rule of a caller's frame in which a stack of Go ends, if it is one.
pub(super) fn base(go: &GoTable<'_>, svma: Svma) -> Option<Rule> {
    let function = go.find(svma)?;
    Some(Rule::end(match function.base()? {
        // The runtime puts the address behind the first instruction of `goexit`, a NOP, on each new stack.
        GoBase::Beginning if svma == function.start => ENTERED_BY_RETURN,
        GoBase::Beginning => 0,
        GoBase::Switch => SWITCHED,
    }))
}

/// Why a stack ends by the rule of an outermost frame.
pub(super) fn end(rule: &Rule) -> StackEnd {
    if rule.is_end(SWITCHED) {
        return StackEnd::OtherStack;
    }
    StackEnd::Complete
}

/// Whether a place is returned to without having called.
pub(super) fn is_entered_by_return(rule: &Rule) -> bool {
    rule.is_end(ENTERED_BY_RETURN)
}

/// The rule at an address of a function, by its stack height.
pub(super) fn rule<A: Architecture>(go: &GoTable<'_>, svma: Svma) -> Option<Rule> {
    let function = go.find(svma)?;
    // With a link register, frames are laid out in another way.
    if A::LINK_REGISTER || function.moves_stack(go) || function.base().is_some() {
        return None;
    }
    let height = i32::try_from(go.stack_height(&function, svma)?).ok()?;
    // The frame pointer is saved beside the return address, in all functions that have a frame.
    let fp_slot = if height > 0 { -2 } else { IN_REGISTER };
    Some(Rule::frame(A::SP, height.checked_add(8)?, -1, fp_slot))
}
