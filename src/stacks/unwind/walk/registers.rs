//! Registers that no rule tracks: found in the frames below that saved them, in signal frames, by DWARF expressions.
//!
//! In: a register that a frame needs. Out: its value there, if it is known for certain.

use super::{Basis, CodeSpace, Cursor, Frames, Located};
use crate::stack_end::StackEnd;
use crate::unwind::arch::{Architecture, RegisterFile};
use crate::unwind::evaluate::Evaluation;
use crate::unwind::memo::CallCheck;
use crate::unwind::rules::{IN_REGISTER, LOST, Rule};
use crate::unwind::stack::slot_at;
use crate::unwind::{CodeLocation, KeptRegisters};

impl<'w, 'a, A: Architecture, S: CodeSpace<'a>> Frames<'w, '_, 'a, A, S> {
    /// A CFA that counts from some other register, or from a stack pointer that is not known.
    #[cold]
    pub(super) fn odd_cfa(&mut self, rule: &Rule) -> Result<u64, StackEnd> {
        if rule.cfa_register != A::SP {
            let from = |base: u64| base.wrapping_add_signed(i64::from(rule.cfa_offset));
            let known = self.recover(rule.cfa_register).map(from);
            let cfa = known.or_else(|| {
                let kept = from(self.untouched(rule.cfa_register)?);
                self.returns_behind_a_call(kept, rule).then_some(kept)
            });
            return cfa.ok_or(StackEnd::LostRegister);
        }
        // AAPCS64: once saved, x29 points to the frame record, which is where the caller's x29 and x30 are.
        let record = rule.fp_slot > LOST && i32::from(rule.ra_slot) == i32::from(rule.fp_slot) + 1;
        let fp = self.cursor.fp.filter(|_| record).ok_or(StackEnd::NoRule)?;
        Ok(fp.wrapping_sub(slot_at::<A>(0, rule.fp_slot)))
    }

    /// What calls keep, but for the frame pointer, in the current frame.
    #[cold]
    pub(super) fn kept(&self) -> KeptRegisters {
        let registers = (0..32).filter(|n| A::is_callee_saved(*n) && *n != A::FP && *n != A::SP);
        let mut kept = KeptRegisters::default();
        for (value, register) in kept.iter_mut().zip(registers) {
            *value = self.recover(register);
        }
        kept
    }

    /// The value of a register in the current frame: from the nearest callee that saved it.
    pub(super) fn recover(&self, register: u8) -> Option<u64> {
        if register == A::SP {
            return self.cursor.sp_exact.then_some(self.cursor.sp);
        }
        if register == A::FP {
            return self.cursor.fp;
        }
        for step in self.walker.history.iter().rev() {
            if let Some(saved) = self.walker.rules.saved().find(step.saved, register) {
                let slot = step.cfa.wrapping_add_signed(saved?);
                if slot >= step.sp {
                    return self.stack.word::<A>(slot);
                }
            }
        }
        if !self.walker.history.is_empty() && !A::is_callee_saved(register) {
            return None;
        }
        match &self.basis {
            Basis::Sample(regs) => A::register(regs, register),
            Basis::File(file) => file.get(usize::from(register)).copied().flatten(),
        }
    }

    /// The value that a register had at the start, if it is one that functions need not keep and the call frame
    /// information of all frames below says nothing of it. Hand-written assembly counts its CFA from such a register
    /// across calls of its own functions, which leave it alone; others may not, so it takes another proof.
    fn untouched(&self, register: u8) -> Option<u64> {
        let saved = self.walker.rules.saved();
        let mut below = self.walker.history.iter();
        let keeps = below.all(|step| saved.find(step.saved, register).is_none());
        if A::is_callee_saved(register) || !keeps {
            return None;
        }
        match &self.basis {
            Basis::Sample(regs) => A::register(regs, register),
            Basis::File(file) => file.get(usize::from(register)).copied().flatten(),
        }
    }

    /// Whether a frame with this CFA returns to where the code is known to have called.
    fn returns_behind_a_call(&mut self, cfa: u64, rule: &Rule) -> bool {
        if cfa <= self.cursor.sp
            || !cfa.is_multiple_of(u64::from(A::WORD))
            || rule.ra_slot == IN_REGISTER
        {
            return false;
        }
        let Some(address) = self
            .stack
            .word::<A>(slot_at::<A>(cfa, rule.ra_slot))
            .map(A::strip)
        else {
            return false;
        };
        let caller = self.target(address, false);
        !matches!(caller.place, CodeLocation::Nothing)
            && self.call_check(&caller) == CallCheck::Call
    }

    /// Out of a signal handler, by the registers that the kernel saved; where it was interrupted.
    pub(super) fn sigreturn(&mut self) -> Result<u64, StackEnd> {
        let stack = self.stack;
        if !self.cursor.sp_exact {
            return Err(StackEnd::NoRule);
        }
        let saved = A::signal_registers(self.cursor.sp, &mut |at| stack.word::<A>(at));
        let (file, ip) = saved.ok_or(StackEnd::DumpTooShort)?;
        self.continue_from(file, true)?;
        Ok(ip)
    }

    /// Makes a frame of which all registers are known the current one.
    fn continue_from(&mut self, file: RegisterFile, interrupted: bool) -> Result<(), StackEnd> {
        let sp = file[usize::from(A::SP)].ok_or(StackEnd::NoRule)?;
        let link = if A::LINK_REGISTER && interrupted {
            file[usize::from(A::RA)]
        } else {
            None
        };
        self.cursor = Cursor {
            sp,
            sp_exact: true,
            fp: file[usize::from(A::FP)],
            lr: link.map(A::strip),
        };
        self.basis = Basis::File(Box::new(file));
        self.walker.history.clear();
        Ok(())
    }

    /// Goes to the caller by a row with expressions, evaluated in full: its address, and whether it was
    /// interrupted by a signal.
    pub(super) fn complex(
        &mut self,
        rule: &Rule,
        at: &Located<'w, 'a>,
    ) -> Result<(u64, bool), StackEnd> {
        let rules = &mut self.walker.rules;
        let complex = rules.complex(rule.complex()).ok_or(StackEnd::NoRule)?;
        let table = rules
            .table(&at.place, complex.fde.table)
            .ok_or(StackEnd::NoRule)?;
        let mut context = std::mem::take(&mut rules.context);
        let mut frame = Evaluation::<A, S>::new(
            self.code,
            self.stack,
            std::array::from_fn(|n| u8::try_from(n).ok().and_then(|n| self.recover(n))),
            self.cursor.lr,
            at.lookup.wrapping_add(u64::from(!self.leaf)),
            at.lookup.wrapping_sub(complex.svma),
        );
        let outcome = table.with_row(
            complex.fde.offset,
            complex.svma,
            &mut context,
            |row, source| {
                Some(
                    frame
                        .evaluate(row, source)
                        .map(|caller| (caller, source.signal)),
                )
            },
        );
        self.walker.rules.context = context;
        let ((file, address), signal) = outcome.unwrap_or(Err(StackEnd::NoRule))?;
        let sp = file[usize::from(A::SP)].unwrap_or(0);
        // A leaf may have its return address in any register, as `vfork` has, and no frame.
        let empty_leaf = self.leaf && sp == self.cursor.sp;
        if !signal && sp <= self.cursor.sp && !empty_leaf {
            return Err(StackEnd::CheckFailed);
        }
        self.continue_from(file, signal)?;
        Ok((A::strip(address), signal))
    }
}
