//! Which mappings are copies of code that a dump tells of, proven by the samples.
//!
//! In: what may be a copy by its length and time ([`super::memory`]), where samples were taken. Out: the copies
//! that are kept. Equal lengths alone prove nothing: code that no dump tells of would get the names of a module as large.
//! Where a copy runs, its original does not, and samples lie where instructions of the original begin.

use std::collections::BTreeSet;

use super::{JitIndex, ProcessId, Twin};
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::arch::Arch;
use crate::diagnostics::Diagnostics;
use crate::disasm::{Disassembler, Syntax, for_arch};

/// So many addresses are looked at.
const ENOUGH: usize = 64;
/// So many have to fit: code with other instructions passes with one in four, or fewer, each.
const FEWEST: usize = 3;
/// And so many for each that does not, where a debugger's breakpoints stand.
const FOR_EACH_ODD: usize = 10;
/// Code that far behind the start of its function is not looked at.
const FAR: u64 = 1 << 16;

/// What the samples say about a copy.
#[derive(Default)]
struct Witness {
    /// Whether the original runs, too.
    original_ran: bool,
    /// Where the copy ran.
    at: BTreeSet<Avma>,
}

impl JitIndex<'_> {
    /// Keeps those copies that the samples prove. `ran` tells where samples were taken, `ran_in` in which pages those that
    /// are not asked for.
    pub fn prove_twins(
        &mut self,
        arch: Option<Arch>,
        ran: impl Iterator<Item = (ProcessId, Avma)>,
        ran_in: impl Iterator<Item = (ProcessId, AvmaRange)>,
        diag: &Diagnostics,
    ) {
        if self.twins.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.twins);
        let mut witnesses: Vec<_> = all
            .into_iter()
            .flat_map(|(process, twins)| twins.into_iter().map(move |twin| (process, twin)))
            .map(|(process, twin)| (process, twin, Witness::default()))
            .collect();
        witnesses.sort_by_key(|(process, twin, _)| (*process, twin.copy.start));
        let of_process = |sorted: &[(ProcessId, Twin, Witness)], process| {
            let first = sorted.partition_point(|(of, _, _)| *of < process);
            let behind = sorted.partition_point(|(of, _, _)| *of <= process);
            first..behind
        };
        for (process, at) in ran {
            let own = of_process(&witnesses, process);
            for (_, twin, witness) in &mut witnesses[own] {
                witness.original_ran |= twin.origin().contains(at);
                if twin.copy.contains(at) && witness.at.len() < ENOUGH {
                    witness.at.insert(at);
                }
            }
        }
        for (process, range) in ran_in {
            let own = of_process(&witnesses, process);
            for (_, twin, witness) in &mut witnesses[own] {
                witness.original_ran |= twin.origin().overlaps(&range);
            }
        }
        for (process, twin, witness) in witnesses {
            let fitting = self.fitting(process, &twin, &witness, arch);
            if let Some(fitting) = fitting.filter(|_| !witness.original_ran) {
                diag.note(format!(
                    "code at {:#x} is taken for the copy of that at {:#x}: {fitting} addresses of samples fit",
                    twin.copy.start, twin.original
                ));
                self.twins.entry(process).or_default().push(twin);
            }
        }
    }

    /// How many of the addresses are those of instructions of the original, if they prove that it is one.
    fn fitting(
        &self,
        process: ProcessId,
        twin: &Twin,
        witness: &Witness,
        arch: Option<Arch>,
    ) -> Option<usize> {
        let mut decoder = for_arch(arch?, Syntax::Att)?;
        let looks = witness.at.iter().filter_map(|&at| {
            let at = twin.original.plus(at.since(twin.copy.start));
            self.is_instruction(process, at, &mut *decoder)
        });
        let (fit, odd): (Vec<bool>, Vec<bool>) = looks.partition(|&fits| fits);
        let is_proven = fit.len() >= FEWEST && fit.len() >= odd.len() * FOR_EACH_ODD;
        is_proven.then_some(fit.len())
    }

    /// Whether an instruction begins at an address of code that was loaded at some time; `None` if nobody can say.
    fn is_instruction(
        &self,
        process: ProcessId,
        at: Avma,
        decoder: &mut dyn Disassembler,
    ) -> Option<bool> {
        let last = Timestamp(u64::MAX - 1);
        let claim = self.claims.at(&self.codes, process, at, last)?;
        let wanted = at.since(claim.start);
        let bytes = self.codes.code(claim.code).bytes();
        if wanted > FAR || wanted >= bytes.len() as u64 {
            return None;
        }
        let (mut offset, mut text) = (0_u64, String::new());
        while offset < wanted {
            let rest = &bytes[usize::try_from(offset).ok()?..];
            let instruction = decoder.decode(rest, claim.start.plus(offset).0, &mut text);
            offset += u64::from(instruction.len.max(1));
        }
        Some(offset == wanted)
    }
}
