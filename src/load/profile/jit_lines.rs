//! The source lines of addresses in JIT code, as dumps tell them.
//!
//! In: the distinct addresses. Out: [`JitLines`], asked in their order. To find one line, all lines of the code have to be
//! decoded, so this is done once for all addresses in it. Called by [`super::places`].

use crate::collect::{Pc, PcId};
use crate::ids::IndexSlice;
use crate::jit::JitCodeId;
use crate::jitdump::debug_info::{Line, line_at};
use crate::needs::Needs;
use crate::session::{Session, Target};

/// Lines of addresses that have one, the last address first.
#[derive(Debug, Default)]
pub(super) struct JitLines<'a> {
    left: Vec<(PcId, Line<'a>)>,
}

impl<'a> JitLines<'a> {
    /// Looks at all code that has lines; at none where nobody asks for them.
    pub(super) fn of(pcs: &IndexSlice<PcId, [Pc]>, session: &Session<'a>, needs: Needs) -> Self {
        if !needs.contains(Needs::LINES) {
            return Self::default();
        }
        let mut wanted: Vec<(JitCodeId, PcId)> = pcs
            .iter_enumerated()
            .filter_map(|(at, pc)| match pc.target {
                Target::Jit(id, _) if session.jit.code(id).has_lines() => Some((id, at)),
                _ => None,
            })
            .collect();
        wanted.sort_unstable();
        let mut left = Vec::with_capacity(wanted.len());
        for of_code in wanted.chunk_by(|a, b| a.0 == b.0) {
            let lines = session.jit.code(of_code[0].0).true_lines();
            left.extend(of_code.iter().filter_map(|&(_, at)| {
                let line = line_at(&lines, pcs[at].address)?;
                Some((at, line))
            }));
        }
        left.sort_unstable_by_key(|(pc, _)| std::cmp::Reverse(*pc));
        Self { left }
    }

    /// The line of an address behind those that were asked for before.
    pub(super) fn next(&mut self, pc: PcId) -> Option<Line<'a>> {
        while self.left.last().is_some_and(|(at, _)| *at < pc) {
            self.left.pop();
        }
        let (_, line) = self.left.pop_if(|(at, _)| *at == pc)?;
        Some(line)
    }
}
