//! Rows of call frame information as rules.
//!
//! In: the rows of one FDE as `gimli` evaluates them. Out: [`Row`]s, kept for the rest of the run, so
//! each FDE is evaluated once however many of its addresses are sampled. What does not
//! fit (expressions, odd registers) becomes [`Kind::Complex`] and is evaluated where it is met.

use gimli::{CfaRule, RegisterRule, UnwindTableRow};
use smallvec::SmallVec;

use super::arch::{Architecture, REGISTERS};
use super::rules::{IN_REGISTER, Kind, LOST, Rule, Saved, SavedSets};
use crate::ids::Part;

/// One row: the rule for the code from `start` to the next row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// From the start of the FDE's function.
    pub(super) start: u32,
    pub(super) rule: Rule,
}

/// Where the rows of an FDE lie in [`Rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    /// Stated address of the function.
    pub(super) base: u64,
    rows: Part<Row>,
}

/// All rows converted so far.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<Row>,
    pub(super) saved: SavedSets,
}

/// Largest number of rows that one FDE may have; real ones stay below some hundreds.
const MAX_ROWS: usize = 1 << 16;

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            rows: Vec::new(),
            saved: SavedSets::new(),
        }
    }

    /// Starts the rows of an FDE.
    pub(super) fn begin(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row of the FDE begun at `first`; `false` when there are too many.
    pub(super) fn push<A: Architecture>(
        &mut self,
        first: usize,
        base: u64,
        row: &UnwindTableRow<usize>,
        signal: bool,
    ) -> bool {
        let rule = self.convert::<A>(row, signal);
        let Ok(start) = u32::try_from(row.start_address().wrapping_sub(base)) else {
            return false;
        };
        match self.rows[first..].last() {
            Some(last) if last.rule == rule => return true,
            Some(last) if last.start == start => {
                self.rows.pop();
            }
            Some(last) if last.start > start => return false,
            _ => {}
        }
        self.rows.push(Row { start, rule });
        self.rows.len() - first < MAX_ROWS
    }

    /// Ends the FDE: code from `end` on has no rule.
    pub(super) fn finish(&mut self, first: usize, base: u64, end: u64) -> RowRange {
        let end = u32::try_from(end.wrapping_sub(base)).unwrap_or(u32::MAX);
        self.rows.push(Row {
            start: end,
            rule: Rule::NONE,
        });
        RowRange {
            base,
            rows: Part::new(first..self.rows.len()),
        }
    }

    /// Bytes of code that an FDE covers.
    pub(super) fn code_len(&self, range: RowRange) -> usize {
        let last = range.rows.of(&self.rows).last();
        last.map_or(0, |row| row.start as usize)
    }

    /// The rule in the body of a function: of the row with the largest frame.
    pub(super) fn body(&self, range: RowRange) -> Rule {
        let rows = range.rows.of(&self.rows).iter();
        let frames = rows.map(|row| row.rule);
        let frames = frames.filter(|rule| rule.kind == Kind::Frame);
        frames
            .max_by_key(|rule| rule.cfa_offset)
            .unwrap_or(Rule::NONE)
    }

    /// The rule at a stated address.
    pub(super) fn rule_at(&self, range: RowRange, svma: u64) -> Rule {
        let rows = range.rows.of(&self.rows);
        let at = svma.wrapping_sub(range.base);
        let behind = rows.partition_point(|row| u64::from(row.start) <= at);
        behind.checked_sub(1).map_or(Rule::NONE, |i| rows[i].rule)
    }

    fn convert<A: Architecture>(&mut self, row: &UnwindTableRow<usize>, signal: bool) -> Rule {
        let complex = Rule::of_kind(Kind::Complex);
        if row.register(gimli::Register(u16::from(A::RA))) == Some(RegisterRule::Undefined) {
            return Rule::of_kind(Kind::End);
        }
        let CfaRule::RegisterAndOffset {
            register: base,
            offset: distance,
        } = *row.cfa()
        else {
            return complex;
        };
        let (Ok(cfa_register), Ok(cfa_offset)) = (u8::try_from(base.0), i32::try_from(distance))
        else {
            return complex;
        };
        let ra_slot = if A::LINK_REGISTER { IN_REGISTER } else { -1 };
        let mut rule = Rule::frame(cfa_register, cfa_offset, ra_slot, IN_REGISTER);
        if signal {
            rule.kind = Kind::SignalFrame;
        }
        let mut others: SmallVec<[Saved; 8]> = SmallVec::new();
        for (register, how) in row.registers() {
            let Ok(register) = u8::try_from(register.0) else {
                continue;
            };
            if register == A::RA {
                match slot::<A>(how) {
                    Some(slot) if slot != LOST => rule.ra_slot = slot,
                    _ => return complex,
                }
            } else if register == A::FP {
                match slot::<A>(how) {
                    Some(slot) => rule.fp_slot = slot,
                    None => return complex,
                }
            } else if register == A::SP {
                return complex;
            } else if usize::from(register) < REGISTERS {
                match how {
                    RegisterRule::SameValue => {}
                    RegisterRule::Offset(offset) => {
                        others.push(Saved::new(register, Some(*offset)))
                    }
                    // The rare other rules are evaluated when this register is asked for: never so far.
                    _ => others.push(Saved::new(register, None)),
                }
            }
        }
        let is_pushed = A::LINK_REGISTER && A::WORD == 8 && matches!(rule.ra_slot, 0 | 1);
        if is_pushed && !signal && rule.cfa_register == A::SP {
            let bytes = i64::from(rule.count_from_callers_stack()) * 8;
            let moved = |saved: &Saved| {
                let offset = saved.offset().map(|offset| offset.wrapping_sub(bytes));
                Saved::new(saved.register(), offset)
            };
            others = others.iter().map(moved).collect();
        }
        others.sort_unstable_by_key(|s| s.0);
        rule = rule.with_saved(self.saved.0.intern(&others));
        if A::LINK_REGISTER && !signal {
            rule.record_at_cfa(A::SP, A::FP);
        }
        rule
    }
}

/// A simple rule as a slot; `None` when it needs evaluation.
fn slot<A: Architecture>(rule: &RegisterRule<usize>) -> Option<i16> {
    match *rule {
        RegisterRule::Undefined => Some(LOST),
        RegisterRule::SameValue => Some(IN_REGISTER),
        RegisterRule::Offset(bytes) if bytes % i64::from(A::WORD) == 0 => {
            let slot = bytes / i64::from(A::WORD);
            i16::try_from(slot).ok().filter(|&s| s > LOST)
        }
        _ => None,
    }
}
