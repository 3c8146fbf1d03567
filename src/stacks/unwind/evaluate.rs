//! One step by a row of call frame information that has expressions or odd registers: all registers, by
//! the letter of the DWARF standard.

use std::marker::PhantomData;

use gimli::{CfaRule, Register, RegisterRule, UnwindTableRow};

use super::arch::{Architecture, RegisterFile};
use super::cfi::RowSource;
use super::expr::{self, Inputs};
use super::stack::{Stack, little_endian, slot_at};
use super::{CodeLocation, CodeSpace};
use crate::address::Avma;
use crate::stack_end::StackEnd;

/// One frame whose row has expressions.
pub(super) struct Evaluation<'w, 'b, A, S> {
    code: &'w S,
    stack: Stack<'b>,
    registers: RegisterFile,
    pc: u64,
    bias: u64,
    cfa: Option<u64>,
    lr: Option<u64>,
    /// Memory was asked for that is not at hand.
    missed: Option<u64>,
    arch: PhantomData<A>,
}

impl<'w, 'b, A, S> Evaluation<'w, 'b, A, S> {
    /// A frame with these registers at `pc`, in code whose addresses exceed the stated ones by `bias`.
    pub(super) const fn new(
        code: &'w S,
        stack: Stack<'b>,
        registers: RegisterFile,
        lr: Option<u64>,
        pc: u64,
        bias: u64,
    ) -> Self {
        Self {
            code,
            stack,
            registers,
            pc,
            bias,
            cfa: None,
            lr,
            missed: None,
            arch: PhantomData,
        }
    }
}

/// Whether a CFA is that of a fiber's base, which lies on the stack that resumed it. wasmtime's begin with a register's own
/// location (`DW_OP_reg7`), corosensei's (wasmer), which says that it was interrupted, are read from where the frame pointer
/// points (`DW_OP_breg6 0; DW_OP_deref; DW_OP_plus_uconst`). Nobody else writes that: a realigned stack's are read from
/// elsewhere.
fn is_fibers_base<A: Architecture>(code: &[u8], is_signal: bool) -> bool {
    match *code {
        [0x50..=0x6f, ..] => !is_signal,
        [by, 0, 0x06, 0x23, _] => u16::from(by) == 0x70 + u16::from(A::FP),
        _ => false,
    }
}

impl<'a, A: Architecture, S: CodeSpace<'a>> Evaluation<'_, '_, A, S> {
    /// The caller's registers and the address in it.
    pub(super) fn evaluate(
        &mut self,
        row: &UnwindTableRow<usize>,
        source: &RowSource<'_, 'a>,
    ) -> Result<(RegisterFile, u64), StackEnd> {
        let mut fiber = false;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => self
                .register(register.0)
                .map(|value| value.wrapping_add_signed(*offset)),
            CfaRule::Expression(expression) => {
                let code = source.expression(expression).ok_or(StackEnd::NoRule)?;
                fiber = is_fibers_base::<A>(&code, source.signal);
                expr::evaluate(code, source.encoding, None, self)
            }
        };
        // The other stack was not copied.
        let missed = self.missed;
        let stack = self.stack;
        let out_of_reach = if fiber {
            StackEnd::FiberBase
        } else {
            missed.map_or(StackEnd::DumpTooShort, |at| stack.why_absent(at))
        };
        let cfa = cfa.ok_or(if self.missed.is_some() {
            out_of_reach
        } else {
            StackEnd::NoRule
        })?;
        self.cfa = Some(cfa);
        let mut file: RegisterFile = std::array::from_fn(|n| {
            let kept = u8::try_from(n).is_ok_and(A::is_callee_saved);
            self.registers[n].filter(|_| kept)
        });
        file[usize::from(A::SP)] = Some(cfa);
        let mut address = if A::LINK_REGISTER {
            self.lr
        } else {
            self.memory(slot_at::<A>(cfa, -1))
        };
        for (register, rule) in row.registers() {
            let value = self.restore(rule, *register, source);
            if register.0 == u16::from(A::RA) {
                address = value;
            }
            if let Some(slot) = file.get_mut(usize::from(register.0)) {
                *slot = value;
            }
        }
        match address {
            Some(address) => Ok((file, address)),
            None if fiber => Err(out_of_reach),
            None => Err(self.missed.map_or(out_of_reach, |at| stack.why_absent(at))),
        }
    }

    fn restore(
        &mut self,
        rule: &RegisterRule<usize>,
        register: Register,
        source: &RowSource<'_, 'a>,
    ) -> Option<u64> {
        let cfa = self.cfa?;
        match rule {
            RegisterRule::SameValue => self.register(register.0),
            RegisterRule::Offset(offset) => self.memory(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => self.register(other.0),
            RegisterRule::Expression(expression) => {
                let at = expr::evaluate(
                    source.expression(expression)?,
                    source.encoding,
                    Some(cfa),
                    self,
                )?;
                self.memory(at)
            }
            RegisterRule::ValExpression(expression) => expr::evaluate(
                source.expression(expression)?,
                source.encoding,
                Some(cfa),
                self,
            ),
            RegisterRule::Constant(value) => Some(*value),
            RegisterRule::Undefined | RegisterRule::Architectural => None,
        }
    }

    fn memory(&mut self, at: u64) -> Option<u64> {
        self.read(at, A::WORD)
    }
}

impl<'a, A: Architecture, S: CodeSpace<'a>> Inputs for Evaluation<'_, '_, A, S> {
    fn register(&mut self, dwarf: u16) -> Option<u64> {
        if !A::LINK_REGISTER && dwarf == u16::from(A::RA) {
            return Some(self.pc);
        }
        if A::LINK_REGISTER && dwarf == u16::from(A::RA) {
            return self.lr;
        }
        self.registers.get(usize::from(dwarf)).copied().flatten()
    }

    /// Memory comes from the stack copy, else from the file that is mapped there.
    fn read(&mut self, address: u64, size: u8) -> Option<u64> {
        if let Some(value) = self.stack.read(address, size) {
            return Some(value);
        }
        let value = match self.code.locate(Avma(address)) {
            CodeLocation::File {
                offset,
                binary: Some(file),
                ..
            } => file
                .bytes_at(offset, usize::from(size))
                .and_then(little_endian),
            _ => None,
        };
        if value.is_none() {
            self.missed = self.missed.or(Some(address));
        }
        value
    }

    fn cfa(&self) -> Option<u64> {
        self.cfa
    }

    fn bias(&self) -> u64 {
        self.bias
    }
}
