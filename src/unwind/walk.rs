//! The walk from frame to frame, for any architecture.
//!
//! In: registers and stack bytes of a sample, the code of its process. Out: frames and the reason for the end.
//! Everything that depends on a place only (which rule, which candidates) is worked out once and
//! memoised; what depends on the sample (does the candidate's return address follow a call) is checked each time.

use std::sync::Arc;

use gimli::{CfaRule, Register, RegisterRule, UnwindContext, UnwindTableRow};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arch::{Architecture, RegisterFile};
use super::cfi::{CfiTables, FdeRef, FileCfi, RowSource, Stub, Table};
use super::expr::{self, Inputs};
use super::jit::{self, CodeView, Habit};
use super::memo::{CallCheck, Entry, Memo, key_of};
use super::rules::{
    Candidate, Candidates, Check, IN_REGISTER, Kind, LOST, Pool, RowRange, Rows, Rule,
};
use super::{CodeSpace, FrameOrigin, Place, UserFrame, UserState};
use crate::address::{Avma, FileOffset, Svma};
use crate::dso::{DsoId, elf::ElfFile};
use crate::perfdata::Registers;
use crate::profile::StackEnd;
use crate::session::jit::{JitCode, JitCodeId, JitUnwinding};

/// One thread's unwinder for one architecture.
pub(super) struct Walker<'a, A> {
    memo: Memo,
    rules: RuleMaker<'a, A>,
    /// What the frames walked so far in this sample saved, leaf first.
    history: Vec<Step>,
}

/// What a frame did with its caller's registers.
#[derive(Clone, Copy, Debug)]
struct Step {
    saved: u32,
    cfa: u64,
    /// The frame's own stack pointer: what lies below it is free, its values were restored.
    sp: u64,
}

/// The copy of the stack.
#[derive(Clone, Copy)]
struct Stack<'b> {
    start: u64,
    bytes: &'b [u8],
}

impl Stack<'_> {
    #[inline]
    fn word(&self, at: u64) -> Option<u64> {
        let offset = usize::try_from(at.wrapping_sub(self.start)).ok()?;
        let tail = self.bytes.get(offset..)?;
        tail.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    fn read(&self, at: u64, size: u8) -> Option<u64> {
        let offset = usize::try_from(at.wrapping_sub(self.start)).ok()?;
        let size = usize::from(size);
        let bytes = self.bytes.get(offset..offset.checked_add(size)?)?;
        little_endian(bytes)
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// Up to eight bytes as a number.
fn little_endian(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// The registers of the current frame, as far as they are tracked.
#[derive(Clone, Copy)]
struct Cursor {
    sp: u64,
    /// `sp` is the real stack pointer, not just a lower bound of it.
    sp_exact: bool,
    fp: Option<u64>,
    /// The link register, in a frame that was interrupted.
    lr: Option<u64>,
}

/// Where the registers that a [`Cursor`] does not track start from.
enum Basis<'b> {
    Sample(Registers<'b>),
    File(Box<RegisterFile>),
}

/// The way from a frame to its caller.
#[derive(Clone, Copy)]
struct Caller {
    address: u64,
    cursor: Cursor,
    /// The caller was interrupted: its address is not a return address.
    interrupted: bool,
    origin: FrameOrigin,
    /// `None` when the basis was renewed.
    step: Option<Step>,
}

/// A place that a frame is at, with its rule.
#[derive(Clone, Copy)]
struct Located<'s, 'a> {
    lookup: u64,
    place: Place<'s, 'a>,
    /// `None` for places without identity.
    key: Option<u64>,
    entry: Entry,
}

impl<'a, A: Architecture> Walker<'a, A> {
    pub(super) fn new(tables: Arc<CfiTables<'a>>) -> Self {
        Self {
            memo: Memo::new(),
            rules: RuleMaker::new(tables),
            history: Vec::new(),
        }
    }

    pub(super) fn id_count(&self) -> u32 {
        self.memo.len()
    }

    /// See [`super::Unwinder::leaf_caller`].
    pub(super) fn leaf_caller<S: CodeSpace<'a>>(
        &mut self,
        ip: Avma,
        regs: &Registers<'_>,
        code: &S,
    ) -> Option<Avma> {
        if !A::LINK_REGISTER || regs.abi != A::ABI {
            return None;
        }
        let link = A::strip(A::register(regs, A::RA)?);
        let place = code.locate(ip);
        let rule = match key_of(&place.frame_place()) {
            None => self.rules.rule(&place, true, code),
            Some(key) => match self.memo.get(key) {
                Some(known) => known.rule,
                None => {
                    let rule = self.rules.rule(&place, true, code);
                    self.memo.insert(key, rule).rule
                }
            },
        };
        (rule.kind == Kind::Frame && rule.ra_slot == IN_REGISTER && link != 0)
            .then(|| Avma(link.wrapping_sub(1)))
    }

    pub(super) fn walk<S: CodeSpace<'a>>(
        &mut self,
        state: &UserState<'_>,
        code: &S,
        max_frames: usize,
        out: &mut Vec<UserFrame>,
    ) -> StackEnd {
        let regs = &state.regs;
        let start = (A::ip(regs), A::register(regs, A::SP));
        let (Some(ip), Some(sp)) = start else {
            return StackEnd::NoRegisters;
        };
        if regs.abi != A::ABI {
            return StackEnd::NoRegisters;
        }
        self.history.clear();
        let mut frames = Frames {
            walker: self,
            code,
            stack: Stack {
                start: sp,
                bytes: state.stack,
            },
            basis: Basis::Sample(state.regs),
            cursor: Cursor {
                sp,
                sp_exact: true,
                fp: A::register(regs, A::FP),
                lr: if A::LINK_REGISTER {
                    A::register(regs, A::RA).map(A::strip)
                } else {
                    None
                },
            },
            leaf: true,
        };
        frames.run(ip, max_frames, out)
    }
}

/// One walk.
struct Frames<'w, 'b, 'a, A, S> {
    walker: &'w mut Walker<'a, A>,
    code: &'w S,
    stack: Stack<'b>,
    basis: Basis<'b>,
    cursor: Cursor,
    /// The current frame was interrupted (by the sample or by a signal): its address is an ip.
    leaf: bool,
}

impl<'w, 'a, A: Architecture, S: CodeSpace<'a>> Frames<'w, '_, 'a, A, S> {
    fn run(&mut self, ip: u64, max_frames: usize, out: &mut Vec<UserFrame>) -> StackEnd {
        let mut at = self.locate(ip, true);
        let mut origin = FrameOrigin::Ip;
        loop {
            if out.len() >= max_frames {
                return StackEnd::TooDeep;
            }
            out.push(UserFrame {
                lookup: Avma(at.lookup),
                place: at.place.frame_place(),
                id: if at.key.is_some() {
                    at.entry.id
                } else {
                    UserFrame::NO_ID
                },
                origin,
            });
            match self.caller(&at) {
                Err(end) => return end,
                Ok((caller, place)) => {
                    origin = caller.origin;
                    self.enter(&caller);
                    at = place;
                }
            }
        }
    }

    /// Makes the caller the current frame.
    fn enter(&mut self, caller: &Caller) {
        self.cursor = caller.cursor;
        self.leaf = caller.interrupted;
        self.walker.history.extend(caller.step);
    }

    /// What lies at an address, with its rule; `leaf` if the address is an ip.
    #[inline]
    fn locate(&mut self, lookup: u64, leaf: bool) -> Located<'w, 'a> {
        let code = self.code;
        let place = code.locate(Avma(lookup));
        let key = key_of(&place.frame_place());
        let known = key.and_then(|key| self.walker.memo.get(key)).copied();
        let entry = known.unwrap_or_else(|| self.locate_new(&place, key, leaf));
        Located {
            lookup,
            place,
            key,
            entry,
        }
    }

    #[cold]
    fn locate_new(&mut self, place: &Place<'w, 'a>, key: Option<u64>, leaf: bool) -> Entry {
        let rule = self.walker.rules.rule(place, leaf, self.code);
        match key {
            Some(key) => self.walker.memo.insert(key, rule),
            None => Entry::unkept(rule),
        }
    }

    /// The caller of the frame at `at`, checked.
    #[inline]
    fn caller(&mut self, at: &Located<'w, 'a>) -> Result<(Caller, Located<'w, 'a>), StackEnd> {
        let rule = at.entry.rule;
        match rule.kind {
            Kind::Frame | Kind::Record | Kind::SignalFrame => {
                let caller = self.apply(&rule, FrameOrigin::Cfi)?;
                self.arrive(caller)
            }
            Kind::End => Err(StackEnd::Complete),
            Kind::Complex => {
                let caller = self.complex(&rule, at)?;
                self.arrive(caller)
            }
            Kind::Sigreturn => {
                let caller = self.sigreturn()?;
                self.arrive(caller)
            }
            Kind::Guess => self.guess(rule.extra, at),
            Kind::None => Err(StackEnd::NoRule),
        }
    }

    /// Takes a step whose rule is trusted: the target must be executable.
    #[inline]
    fn arrive(&mut self, caller: Caller) -> Result<(Caller, Located<'w, 'a>), StackEnd> {
        if caller.address == 0 {
            return Err(StackEnd::Complete);
        }
        let place = self.target(&caller);
        if matches!(place.place, Place::Nothing) {
            Err(StackEnd::CheckFailed)
        } else {
            Ok((caller, place))
        }
    }

    fn target(&mut self, caller: &Caller) -> Located<'w, 'a> {
        if caller.interrupted {
            return self.locate(caller.address, true);
        }
        let before = self.locate(caller.address.wrapping_sub(1), false);
        // Nothing called the signal trampoline: its first instruction is the return address itself,
        // and what lies before may be another function.
        match before.entry.rule.kind {
            Kind::Sigreturn => self.locate(caller.address, true),
            _ => before,
        }
    }

    /// Applies a rule of the simple kind.
    #[inline]
    fn apply(&mut self, rule: &Rule, origin: FrameOrigin) -> Result<Caller, StackEnd> {
        let cfa = self.cfa(rule)?;
        let cursor = self.cursor;
        // Every frame lies above its callee's; a leaf with its return address in a register may have none.
        let empty_leaf = A::LINK_REGISTER && self.leaf && cfa == cursor.sp;
        if cfa <= cursor.sp && !empty_leaf {
            return Err(StackEnd::CheckFailed);
        }
        let address = if rule.ra_slot == IN_REGISTER {
            cursor.lr.ok_or(StackEnd::CheckFailed)?
        } else {
            self.stack
                .word(slot_at(cfa, rule.ra_slot))
                .ok_or(StackEnd::DumpTooShort)?
        };
        let fp = match rule.fp_slot {
            IN_REGISTER => cursor.fp,
            LOST => None,
            // Epilogues pop the register before their call frame information takes note (LLVM's never does).
            slot if slot_at(cfa, slot) < cursor.sp => cursor.fp,
            slot => self.stack.word(slot_at(cfa, slot)),
        };
        Ok(Caller {
            address: A::strip(address),
            cursor: Cursor {
                sp: cfa,
                sp_exact: rule.kind != Kind::Record,
                fp,
                lr: None,
            },
            interrupted: rule.kind == Kind::SignalFrame,
            origin,
            step: Some(Step {
                saved: rule.extra,
                cfa,
                sp: cursor.sp,
            }),
        })
    }

    #[inline]
    fn cfa(&mut self, rule: &Rule) -> Result<u64, StackEnd> {
        let register = rule.cfa_register;
        let base = if register == A::SP && self.cursor.sp_exact {
            Some(self.cursor.sp)
        } else if register == A::FP {
            self.cursor.fp
        } else {
            return self.odd_cfa(rule);
        };
        let base = base.ok_or(StackEnd::NoRule)?;
        Ok(base.wrapping_add_signed(i64::from(rule.cfa_offset)))
    }

    /// A CFA that counts from some other register, or from a stack pointer that is not known.
    #[cold]
    fn odd_cfa(&mut self, rule: &Rule) -> Result<u64, StackEnd> {
        if rule.cfa_register != A::SP {
            let base = self.recover(rule.cfa_register).ok_or(StackEnd::NoRule)?;
            return Ok(base.wrapping_add_signed(i64::from(rule.cfa_offset)));
        }
        // AAPCS64: once saved, x29 points to the frame record, which is where the caller's x29 and x30 are.
        let record = rule.fp_slot > LOST && i32::from(rule.ra_slot) == i32::from(rule.fp_slot) + 1;
        let fp = self.cursor.fp.filter(|_| record).ok_or(StackEnd::NoRule)?;
        Ok(fp.wrapping_sub(slot_at(0, rule.fp_slot)))
    }

    /// The value of a register in the current frame: from the nearest callee that saved it.
    fn recover(&self, register: u8) -> Option<u64> {
        if register == A::SP {
            return self.cursor.sp_exact.then_some(self.cursor.sp);
        }
        if register == A::FP {
            return self.cursor.fp;
        }
        for step in self.walker.history.iter().rev() {
            if let Some(saved) = self.walker.rules.rows.saved.find(step.saved, register) {
                let slot = step.cfa.wrapping_add_signed(saved?);
                if slot >= step.sp {
                    return self.stack.word(slot);
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

    /// Tries candidates in order.
    fn guess(
        &mut self,
        list: u32,
        at: &Located<'w, 'a>,
    ) -> Result<(Caller, Located<'w, 'a>), StackEnd> {
        let candidates: Candidates = SmallVec::from_slice(self.walker.rules.candidates.get(list));
        let mut end = StackEnd::NoRule;
        for candidate in &candidates {
            match self.attempt(candidate, at) {
                Ok(found) => return Ok(found),
                Err(StackEnd::Complete) => end = StackEnd::Complete,
                Err(reason) if end == StackEnd::NoRule => end = reason,
                Err(_) => {}
            }
        }
        // Programs mark the end of the chain of frame pointers with 0 (System V ABI, AAPCS64).
        if self.cursor.fp == Some(0) {
            Err(StackEnd::Complete)
        } else {
            Err(end)
        }
    }

    fn attempt(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
    ) -> Result<(Caller, Located<'w, 'a>), StackEnd> {
        let frame_pointer = candidate.rule.cfa_register == A::FP;
        if frame_pointer {
            let fp = self.cursor.fp.ok_or(StackEnd::NoRule)?;
            if fp < self.cursor.sp || fp % 8 != 0 {
                return Err(StackEnd::CheckFailed);
            }
            // A value far above the stack is no frame pointer.
            if fp >= self.stack.end() && fp - self.stack.end() > 64 << 20 {
                return Err(StackEnd::CheckFailed);
            }
        }
        let caller = self.apply(&candidate.rule, candidate.origin)?;
        let (address, (before, behind)) = (caller.address, candidate.reach);
        if address == 0 && frame_pointer {
            return Err(StackEnd::Complete);
        }
        let inside = address.wrapping_sub(at.lookup.wrapping_sub(u64::from(before)))
            < u64::from(before) + u64::from(behind);
        if address == 0 || candidate.not_self && inside {
            return Err(StackEnd::CheckFailed);
        }
        let target = self.target(&caller);
        let executable = !matches!(target.place, Place::Nothing);
        if executable && self.passes(candidate, at, &target) {
            Ok((caller, target))
        } else {
            Err(StackEnd::CheckFailed)
        }
    }

    fn passes(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
        target: &Located<'w, 'a>,
    ) -> bool {
        match candidate.check {
            Check::Executable => true,
            Check::NotRefuted => self.call_check(target) != CallCheck::NoCall,
            Check::Call => self.call_check(target) == CallCheck::Call,
            Check::CallsHere => {
                let Some(distance) = bytes_before::<A>(target).and_then(A::call_target) else {
                    return false;
                };
                let callee = target.lookup.wrapping_add(1).wrapping_add_signed(distance);
                callee <= at.lookup && at.lookup - callee <= u64::from(candidate.reach.0)
            }
        }
    }

    /// Whether a return address follows a call.
    fn call_check(&mut self, target: &Located<'w, 'a>) -> CallCheck {
        if target.entry.call != CallCheck::Untested {
            return target.entry.call;
        }
        let check = match bytes_before::<A>(target) {
            // HotSpot's interpreter pushes its return entries and jumps.
            _ if is_interpreter(&target.place) => CallCheck::Call,
            None => CallCheck::NoBytes,
            Some(before) if A::ends_with_call(before) => CallCheck::Call,
            Some(_) => CallCheck::NoCall,
        };
        if let Some(key) = target.key {
            self.walker.memo.set_call(key, check);
        }
        check
    }

    /// Out of a signal handler, by the registers that the kernel saved.
    fn sigreturn(&mut self) -> Result<Caller, StackEnd> {
        let stack = self.stack;
        if !self.cursor.sp_exact {
            return Err(StackEnd::NoRule);
        }
        let saved = A::signal_registers(self.cursor.sp, &mut |at| stack.word(at));
        let (file, ip) = saved.ok_or(StackEnd::DumpTooShort)?;
        self.interrupted_caller(file, ip, true, FrameOrigin::Signal)
    }

    /// A caller all of whose registers are known.
    fn interrupted_caller(
        &mut self,
        file: RegisterFile,
        address: u64,
        interrupted: bool,
        origin: FrameOrigin,
    ) -> Result<Caller, StackEnd> {
        let sp = file[usize::from(A::SP)].ok_or(StackEnd::NoRule)?;
        let lr = if A::LINK_REGISTER && interrupted {
            file[usize::from(A::RA)].map(A::strip)
        } else {
            None
        };
        let cursor = Cursor {
            sp,
            sp_exact: true,
            fp: file[usize::from(A::FP)],
            lr,
        };
        self.basis = Basis::File(Box::new(file));
        self.walker.history.clear();
        Ok(Caller {
            address,
            cursor,
            interrupted,
            origin,
            step: None,
        })
    }

    /// A rule with expressions: evaluates the row in full.
    #[cold]
    fn complex(&mut self, rule: &Rule, at: &Located<'w, 'a>) -> Result<Caller, StackEnd> {
        let complex = self
            .walker
            .rules
            .complex
            .get(rule.extra as usize)
            .copied()
            .ok_or(StackEnd::NoRule)?;
        let table = self
            .walker
            .rules
            .table(&at.place, complex.fde.table)
            .ok_or(StackEnd::NoRule)?;
        let current: RegisterFile =
            std::array::from_fn(|n| self.recover(u8::try_from(n).unwrap_or(u8::MAX)));
        let mut context = std::mem::take(&mut self.walker.rules.context);
        let mut frame = Evaluation::<A, S> {
            code: self.code,
            stack: self.stack,
            registers: current,
            pc: at.lookup.wrapping_add(u64::from(!self.leaf)),
            bias: at.lookup.wrapping_sub(complex.svma),
            cfa: None,
            lr: self.cursor.lr,
            missed: false,
            arch: std::marker::PhantomData,
        };
        let outcome = table.with_row(
            complex.fde.offset,
            complex.svma,
            &mut context,
            |row, source| {
                Some(
                    frame
                        .evaluate(row, source)
                        .map(|(file, address)| (file, address, source.signal)),
                )
            },
        );
        self.walker.rules.context = context;
        let (file, address, signal) = outcome.unwrap_or(Err(StackEnd::NoRule))?;
        let sp = file[usize::from(A::SP)].unwrap_or(0);
        if !signal && sp <= self.cursor.sp {
            return Err(StackEnd::CheckFailed);
        }
        self.interrupted_caller(file, A::strip(address), signal, FrameOrigin::Cfi)
    }
}

/// Address of a slot.
#[inline]
fn slot_at(cfa: u64, slot: i16) -> u64 {
    cfa.wrapping_add_signed(i64::from(slot) * 8)
}

/// The bytes that end at a return address, as many as a call can have and are there. `None` when there
/// are none.
fn bytes_before<'a, A: Architecture>(target: &Located<'_, 'a>) -> Option<&'a [u8]> {
    match target.place {
        Place::File { offset, binary, .. } => {
            let end = offset.0.checked_add(1)?;
            let start = end.saturating_sub(A::CALL_BYTES as u64);
            binary?.bytes_at(FileOffset(start), usize::try_from(end - start).ok()?)
        }
        Place::Jit { code, offset, .. } => {
            let end = usize::try_from(offset).ok()?.checked_add(1)?;
            code.bytes.get(end.saturating_sub(A::CALL_BYTES)..end)
        }
        Place::Anonymous | Place::Nothing => None,
    }
}

/// Whether a place lies in code that is returned to without having called.
fn is_interpreter(place: &Place<'_, '_>) -> bool {
    matches!(place, Place::Jit { code, .. } if jit::is_hotspot_interpreter(code))
}

/// One frame whose row has expressions.
struct Evaluation<'w, 'b, A, S> {
    code: &'w S,
    stack: Stack<'b>,
    registers: RegisterFile,
    pc: u64,
    bias: u64,
    cfa: Option<u64>,
    lr: Option<u64>,
    /// Memory was asked for that is not at hand.
    missed: bool,
    arch: std::marker::PhantomData<A>,
}

impl<'a, A: Architecture, S: CodeSpace<'a>> Evaluation<'_, '_, A, S> {
    /// The caller's registers and the address in it.
    fn evaluate(
        &mut self,
        row: &UnwindTableRow<usize>,
        source: &RowSource<'_, 'a>,
    ) -> Result<(RegisterFile, u64), StackEnd> {
        let mut names_a_register = false;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => self
                .register(register.0)
                .map(|value| value.wrapping_add_signed(*offset)),
            CfaRule::Expression(expression) => {
                let code = source.expression(expression).ok_or(StackEnd::NoRule)?;
                names_a_register = matches!(code.first(), Some(0x50..=0x6f));
                expr::evaluate(code, source.encoding, None, self)
            }
        };
        // wasmtime's fibers compute the CFA of their base, on the stack that resumed them, from
        // `DW_OP_reg7`; nobody else writes that. The other stack was not copied.
        let fiber = names_a_register && !source.signal;
        let out_of_reach = if fiber {
            StackEnd::FiberBase
        } else {
            StackEnd::DumpTooShort
        };
        let cfa = cfa.ok_or(if self.missed {
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
            self.memory(slot_at(cfa, -1))
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
            None => Err(out_of_reach),
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
        self.read(at, 8)
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
            Place::File {
                offset,
                binary: Some(file),
                ..
            } => file
                .bytes_at(offset, usize::from(size))
                .and_then(little_endian),
            _ => None,
        };
        self.missed |= value.is_none();
        value
    }

    fn cfa(&self) -> Option<u64> {
        self.cfa
    }

    fn bias(&self) -> u64 {
        self.bias
    }
}

/// Finds and makes the rules of places, and owns what rules refer to.
struct RuleMaker<'a, A> {
    tables: Arc<CfiTables<'a>>,
    files: FxHashMap<DsoId, Arc<FileCfi<'a>>>,
    file_rows: FxHashMap<(DsoId, FdeRef), RowRange>,
    jit_rows: FxHashMap<JitCodeId, Option<(FdeRef, RowRange)>>,
    rows: Rows,
    candidates: Pool<Candidate>,
    complex: Vec<Complex>,
    context: UnwindContext<usize>,
    arch: std::marker::PhantomData<A>,
}

/// A rule that has to be evaluated where it is met.
#[derive(Clone, Copy, Debug)]
struct Complex {
    fde: FdeRef,
    svma: u64,
}

impl<'a, A: Architecture> RuleMaker<'a, A> {
    fn new(tables: Arc<CfiTables<'a>>) -> Self {
        Self {
            tables,
            files: FxHashMap::default(),
            file_rows: FxHashMap::default(),
            jit_rows: FxHashMap::default(),
            rows: Rows::new(),
            candidates: Pool::new(),
            complex: Vec::new(),
            context: UnwindContext::new(),
            arch: std::marker::PhantomData,
        }
    }

    /// The rule for a place; `leaf` if it is an ip.
    fn rule<S: CodeSpace<'a>>(&mut self, place: &Place<'_, 'a>, leaf: bool, space: &S) -> Rule {
        match *place {
            Place::File {
                dso,
                offset,
                binary,
                debug,
            } => self.file_rule(dso, offset, binary, debug, leaf, space),
            Place::Jit { id, code, offset } => self.jit_rule(id, code, offset, leaf),
            Place::Anonymous | Place::Nothing => self.unknown_code(leaf),
        }
    }

    fn unknown_code(&mut self, leaf: bool) -> Rule {
        self.guess(&CodeView {
            code: &[],
            at: 1,
            size: None,
            leaf,
            habit: Habit::Unknown,
        })
    }

    fn guess(&mut self, view: &CodeView<'_>) -> Rule {
        if view.habit == Habit::ErlangBase {
            return Rule::of_kind(Kind::End, 0);
        }
        let mut candidates = Candidates::new();
        A::guess(view, &mut candidates);
        self.candidate_rule(&candidates)
    }

    fn candidate_rule(&mut self, candidates: &[Candidate]) -> Rule {
        Rule::of_kind(Kind::Guess, self.candidates.intern(candidates))
    }

    fn file_rule<S: CodeSpace<'a>>(
        &mut self,
        dso: DsoId,
        offset: FileOffset,
        binary: Option<&ElfFile<'a>>,
        debug: Option<&ElfFile<'a>>,
        leaf: bool,
        space: &S,
    ) -> Rule {
        let Some(image) = binary.or(debug) else {
            return self.unknown_code(leaf);
        };
        // The code at the ip, or at the return address.
        let code = image.bytes_from(offset.plus(u64::from(!leaf)), 32);
        if A::is_sigreturn(code) {
            return Rule::of_kind(Kind::Sigreturn, 0);
        }
        let Some(svma) = image.svma_of(offset) else {
            return self.unknown_code(leaf);
        };
        let tables = &self.tables;
        let cfi = Arc::clone(
            self.files
                .entry(dso)
                .or_insert_with(|| tables.file(dso, binary, debug)),
        );
        let rule = match cfi.find(svma, binary, debug) {
            Some(fde) => self.rule_from_fde(dso, &cfi, fde, svma),
            None => Rule::NONE,
        };
        if rule.kind == Kind::None {
            return self.file_code(dso, offset, image, leaf, cfi.stub(svma), space);
        }
        let exit = if leaf && rule.kind == Kind::Frame {
            A::certain_exit(code)
        } else {
            None
        };
        match exit {
            Some(exit) if !same_frame(&exit.rule, &rule) => {
                let stated = Candidate::new(rule, FrameOrigin::Cfi, Check::Executable);
                self.candidate_rule(&[exit, stated])
            }
            _ => rule,
        }
    }

    fn rule_from_fde(&mut self, dso: DsoId, cfi: &FileCfi<'a>, fde: FdeRef, svma: Svma) -> Rule {
        let range = match self.file_rows.get(&(dso, fde)) {
            Some(known) => *known,
            None => {
                let table = cfi.table(fde.table);
                let rows = &mut self.rows;
                let converted =
                    table.and_then(|t| t.convert::<A>(fde.offset, &mut self.context, rows));
                let Some(range) = converted else {
                    return Rule::NONE;
                };
                self.file_rows.insert((dso, fde), range);
                range
            }
        };
        self.rule_in(range, fde, svma.0)
    }

    /// The rule of a converted FDE at an address.
    fn rule_in(&mut self, range: RowRange, fde: FdeRef, svma: u64) -> Rule {
        let rule = self.rows.rule_at(range, svma);
        if rule.kind != Kind::Complex {
            return rule;
        }
        let index = u32::try_from(self.complex.len()).unwrap_or(u32::MAX);
        self.complex.push(Complex { fde, svma });
        Rule::of_kind(Kind::Complex, index)
    }

    /// Code of a file without call frame information.
    fn file_code<S: CodeSpace<'a>>(
        &mut self,
        dso: DsoId,
        offset: FileOffset,
        image: &ElfFile<'a>,
        leaf: bool,
        stub: Option<(Stub, u64)>,
        space: &S,
    ) -> Rule {
        if leaf && stub.is_some() {
            return self.candidate_rule(&[A::stub()]);
        }
        if let Some(bounds) = space
            .function_bounds(dso, offset)
            .filter(|b| b.contains(&offset))
        {
            let size = bounds.end.since(bounds.start);
            let code = image.bytes_from(bounds.start, usize::try_from(size).unwrap_or(0));
            let at = usize::try_from(offset.since(bounds.start)).unwrap_or(usize::MAX);
            return self.guess(&CodeView {
                code,
                at,
                size: Some(size),
                leaf,
                habit: Habit::V8Pieces,
            });
        }
        // A few bytes before the place show whether it stands in the middle of a prologue.
        let before = offset.0.min(16);
        let code = image.bytes_from(FileOffset(offset.0 - before), 256);
        let at = usize::try_from(before).unwrap_or(0);
        self.guess(&CodeView {
            code,
            at,
            size: None,
            leaf,
            habit: Habit::Unknown,
        })
    }

    fn jit_rule(&mut self, id: JitCodeId, code: &JitCode<'a>, offset: u64, leaf: bool) -> Rule {
        let view = CodeView::of_jit(code, offset, leaf);
        let exit = if leaf {
            A::certain_exit(view.rest())
        } else {
            None
        };
        let recorded = match code.unwinding() {
            Some(JitUnwinding::EhFrame { .. }) => self.recorded_rule(id, code, offset),
            Some(JitUnwinding::FramePointer) | None => Rule::NONE,
        };
        match (recorded.kind, exit) {
            (Kind::None, _) => self.guess(&view),
            (Kind::Frame, Some(exit)) if !same_frame(&exit.rule, &recorded) => {
                let stated = Candidate::new(recorded, FrameOrigin::Cfi, Check::Executable);
                self.candidate_rule(&[exit, stated])
            }
            _ => recorded,
        }
    }

    /// The rule of the unwinding record that came with JIT code.
    fn recorded_rule(&mut self, id: JitCodeId, code: &JitCode<'a>, offset: u64) -> Rule {
        let known = match self.jit_rows.get(&id) {
            Some(known) => *known,
            None => {
                let converted = self.convert_jit(code);
                self.jit_rows.insert(id, converted);
                converted
            }
        };
        match known {
            Some((fde, range)) => self.rule_in(range, fde, code.start.plus(offset).0),
            None => Rule::NONE,
        }
    }

    fn convert_jit(&mut self, code: &JitCode<'a>) -> Option<(FdeRef, RowRange)> {
        let table = jit_table(code)?;
        // The record may describe more than this code; its FDE must start with it or contain it.
        let offset = table.find_by_walk(code.start.0)?;
        let range = table.convert::<A>(offset, &mut self.context, &mut self.rows)?;
        Some((FdeRef { table: 0, offset }, range))
    }

    /// The table that a complex rule at a place refers to.
    fn table(&self, place: &Place<'_, 'a>, number: u8) -> Option<Table<'a>> {
        match place {
            Place::File { dso, .. } => self.files.get(dso)?.table(number).cloned(),
            Place::Jit { code, .. } => jit_table(code),
            Place::Anonymous | Place::Nothing => None,
        }
    }
}

fn jit_table<'a>(code: &JitCode<'a>) -> Option<Table<'a>> {
    match code.unwinding()? {
        JitUnwinding::EhFrame { eh_frame, base } => Some(Table::jit(eh_frame, base)),
        JitUnwinding::FramePointer => None,
    }
}

/// Whether two rules lead to the same caller.
fn same_frame(a: &Rule, b: &Rule) -> bool {
    (a.cfa_register, a.cfa_offset, a.ra_slot) == (b.cfa_register, b.cfa_offset, b.ra_slot)
}
