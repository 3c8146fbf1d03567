//! Code that nothing describes: ways to the caller are tried in order and each has to stand its checks.
//!
//! In: the candidates of a place. Out: the caller that the first one leads to which nothing speaks against, or why none did.

use smallvec::SmallVec;

use super::{CodeSpace, Cursor, Frames, Located};
use crate::address::{Avma, FileOffset};
use crate::runtimes::Habit;
use crate::stack_end::StackEnd;
use crate::unwind::arch::Architecture;
use crate::unwind::memo::CallCheck;
use crate::unwind::rules::{
    Blind, Candidate, CandidateList, Candidates, Check, IN_REGISTER, Kind, Rule,
};
use crate::unwind::stack::FAR;
use crate::unwind::{CodeLocation, FrameOrigin, go, jit, sizes};

impl<'w, 'a, A: Architecture, S: CodeSpace<'a>> Frames<'w, '_, 'a, A, S> {
    /// Tries candidates in order.
    pub(super) fn guess(
        &mut self,
        list: CandidateList,
        at: &Located<'w, 'a>,
        origin: &mut FrameOrigin,
    ) -> Result<Located<'w, 'a>, StackEnd> {
        let candidates: Candidates = SmallVec::from_slice(self.walker.rules.candidates.get(list));
        let (cursor, depth) = (self.cursor, self.walker.history.len());
        let mut end = StackEnd::NoRule;
        let is_file = matches!(at.place, CodeLocation::File { .. });
        let by_size = self.by_size(at, &candidates);
        if let Some(candidate) = by_size {
            match self.attempt(&candidate, at) {
                Ok(caller) => {
                    *origin = candidate.origin;
                    self.leaf = false;
                    self.way = None;
                    return Ok(caller);
                }
                // Guesses inside of the copy would be wrong.
                Err(reason @ StackEnd::DumpTooShort) => {
                    self.walker.ended_by_guess = true;
                    return Err(reason);
                }
                Err(_) => {}
            }
            self.cursor = cursor;
            self.walker.history.truncate(depth);
        }
        for (n, candidate) in candidates.iter().enumerate() {
            match self.attempt(candidate, at) {
                Ok(caller) => {
                    *origin = candidate.origin;
                    self.leaf = false;
                    if n > 0 || candidate.not_self {
                        // Other words spoke against other candidates.
                        self.way = None;
                    }
                    if candidate.origin == FrameOrigin::FramePointer && is_interpreter(&at.place) {
                        self.leave_interpreter();
                    }
                    let blind = candidate.blind;
                    let leaves_out = |this: &Self, kind| match kind {
                        Blind::Callers => {
                            callee::<A>(&caller.place, caller.lookup)
                                != Some(start_of(candidate, at))
                        }
                        Blind::Everywhere | Blind::AtItsEnds => this.leaves_out(kind, at, &cursor),
                    };
                    if blind.is_some_and(|blind| leaves_out(self, blind)) {
                        *origin = FrameOrigin::PastFrames;
                        self.way = None;
                    }
                    return Ok(caller);
                }
                Err(StackEnd::Complete) => end = StackEnd::Complete,
                // What the code itself says leads behind the copy; guesses inside of it would be wrong.
                Err(reason @ StackEnd::DumpTooShort) if candidate.check == Check::Proven => {
                    let is_wrong = self.began_later(candidate, at, cursor.sp);
                    return Err(if is_wrong { StackEnd::NoRule } else { reason });
                }
                // Nothing tells that the register leads to a frame, and no frame pointer led here.
                Err(StackEnd::DumpTooShort)
                    if candidate.blind.is_some()
                        && is_file
                        && *origin != FrameOrigin::FramePointer
                        && self.may_return_inside(cursor.sp) => {}
                Err(reason) if end == StackEnd::NoRule => end = reason,
                Err(_) => {}
            }
            self.cursor = cursor;
            self.walker.history.truncate(depth);
        }
        let cleared = self.cursor.fp == Some(0);
        let code = self.code;
        if cleared && (is_base(&at.place, *origin) || self.walker.rules.is_base(&at.place, code)) {
            return Err(StackEnd::Complete);
        }
        self.walker.ended_by_guess = true;
        let end = blame(end, &at.place);
        // Haskell's stack is on the heap, and the frame pointer is the pointer to it.
        let elsewhere = matches!(self.plausible_frame_pointer(), Ok(false));
        if end == StackEnd::CheckFailed && elsewhere && self.walker.rules.is_haskell(&at.place) {
            return Err(StackEnd::OtherStack);
        }
        Err(end)
    }

    /// Goes to the caller by a candidate and checks it; the registers are to be put back on failure.
    pub(super) fn attempt(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
    ) -> Result<Located<'w, 'a>, StackEnd> {
        let by_frame_pointer = candidate.rule.cfa_register == A::FP;
        if by_frame_pointer && !self.plausible_frame_pointer()? {
            return Err(StackEnd::CheckFailed);
        }
        // A link register that the frame record repeats: the function's frame is there already.
        let recorded = if candidate.not_self {
            self.recorded_address()
        } else {
            None
        };
        if let Some(register) = candidate.link {
            self.cursor.lr = self.recover(register);
        }
        let mut address = self.step(&candidate.rule)?;
        if by_frame_pointer && address == BARRIER && is_blob(&at.place) {
            address = self.behind_barrier()?;
        }
        if address == 0 && by_frame_pointer {
            return Err(StackEnd::Complete);
        }
        if address == 0 || recorded == Some(address) || self.is_self(candidate, at, address) {
            return Err(StackEnd::CheckFailed);
        }
        if self.code.is_return_probe(Avma(address)) {
            let original = self.behind_probe()?;
            return self.arrive(original, false);
        }
        let caller = self.target(address, false);
        let executable = !matches!(caller.place, CodeLocation::Nothing);
        if executable && self.passes(candidate, at, &caller) {
            Ok(caller)
        } else {
            self.entered(address).ok_or(StackEnd::CheckFailed)
        }
    }

    /// The way out of a method that was interrupted, where the sizes of frames prove it. Of the method itself nothing tells whether its
    /// frame is there: the frame pointer is its own, or its caller's before that is saved and when it is restored. Either lies
    /// as far from the stack pointer as in calls of that method, which is the same in all of them.
    fn by_size(&self, at: &Located<'w, 'a>, candidates: &[Candidate]) -> Option<Candidate> {
        let is_blind = |candidate: &&Candidate| candidate.blind == Some(Blind::AtItsEnds);
        if !self.leaf || !self.cursor.sp_exact {
            return None;
        }
        let own_frame = candidates.iter().find(is_blind)?;
        let CodeLocation::Jit { id: own, code, .. } = at.place else {
            return None;
        };
        let (sp, fp) = (self.cursor.sp, self.cursor.fp?);
        if !sizes::counts(code) {
            return None;
        }
        let word_size = u64::from(A::WORD);
        let own_size = self.code.frame_size(own);
        let is_in_body = own_size.is_some() && fp.checked_sub(sp) == own_size;
        // Whether the caller's frame begins behind the return address that is so many words up.
        let is_of_caller = |words: u64| {
            let behind = sp.checked_add((words + 1) * word_size);
            let size = behind.and_then(|behind| fp.checked_sub(behind));
            let address = self.stack.word::<A>(sp.wrapping_add(words * word_size));
            let Some(CodeLocation::Jit {
                id, code: caller, ..
            }) = address.map(|address| self.code.locate(Avma(address.wrapping_sub(1))))
            else {
                return false;
            };
            size.is_some() && sizes::counts(caller) && self.code.frame_size(id) == size
        };
        let is_bare = is_of_caller(0);
        // A method of unknown size that calls nothing may have both words on its stack from earlier calls.
        let is_saved =
            own_size.is_some() && self.stack.word::<A>(sp) == Some(fp) && is_of_caller(1);
        let above = |words: u8| {
            let offset = i32::from(words + 1) * i32::from(A::WORD);
            let rule = Rule::frame(A::SP, offset, -1, IN_REGISTER);
            Candidate::new(rule, FrameOrigin::Frameless, Check::NotRefuted)
        };
        match (is_in_body, is_bare, is_saved) {
            (true, false, false) => Some(Candidate {
                blind: None,
                ..*own_frame
            }),
            (false, true, false) => Some(above(0)),
            (false, false, true) => Some(above(1)),
            // Nothing is proven, or too much.
            _ => None,
        }
    }

    /// HotSpot's interpreter makes room for a method's locals between its frame and its caller's, and keeps in its frame where
    /// the caller's stack ended (`interpreter_frame_sender_sp_offset`). Compiled callers without frame pointers count from there.
    fn leave_interpreter(&mut self) {
        /// A method's locals are far fewer.
        const MOST: u64 = 1 << 20;
        let word_size = u64::from(A::WORD);
        let kept = self.cursor.sp.checked_sub(3 * word_size);
        let Some(sp) = kept.and_then(|at| self.stack.word::<A>(at)) else {
            return;
        };
        let room = sp.wrapping_sub(self.cursor.sp);
        if room > 0 && room < MOST && sp.is_multiple_of(word_size) && sp < self.stack.end() {
            self.cursor.sp = sp;
            // The words that led here are not all that counts.
            self.way = None;
        }
    }

    /// Whether the step from a frame of JIT code to the current one went past others. Code that leaves the frame pointer alone
    /// has its native caller's in it, and what that leads to looks like a caller: Mono's stacks went from any function
    /// to what had called the program's `Main`. The words between give it away: return addresses into two other functions
    /// of the same sort. One proves nothing, for it may be left over from a call that is done. Code that does build a frame goes past
    /// its caller in its first and last instructions alone, where the return address is the first word or behind the saved register.
    #[cold]
    fn leaves_out(&self, blind: Blind, at: &Located<'w, 'a>, from: &Cursor) -> bool {
        /// Runtimes keep their code within reach of direct calls.
        const NEAR: u64 = 1 << 31;
        let CodeLocation::Jit { id: own, .. } = at.place else {
            return false;
        };
        let word_size = u64::from(A::WORD);
        // The step has taken the return address and the frame pointer.
        let frame = self.cursor.sp.saturating_sub(2 * word_size);
        let end = match blind {
            Blind::Everywhere | Blind::Callers => frame,
            Blind::AtItsEnds => frame.min(from.sp.saturating_add(2 * word_size)),
        };
        let (mut slot, mut first) = (from.sp, None);
        while from.sp_exact && slot < end {
            let Some(word) = self.stack.word::<A>(slot) else {
                break;
            };
            slot = slot.saturating_add(word_size);
            let before = word.wrapping_sub(1);
            if before.wrapping_sub(at.lookup).wrapping_add(NEAR) >= 2 * NEAR {
                continue;
            }
            let CodeLocation::Jit { id, code, offset } = self.code.locate(Avma(before)) else {
                continue;
            };
            let until = usize::try_from(offset).map_or(0, |offset| offset.saturating_add(1));
            let is_refuted = match code.bytes().get(..until) {
                Some(bytes) if until > 0 => !A::ends_with_call(bytes),
                _ => false,
            };
            if id == own || is_refuted {
                continue;
            }
            match first {
                None if blind == Blind::AtItsEnds => return true,
                None => first = Some(id),
                Some(known) if known != id => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// The return address that lies behind a word of HotSpot's: methods call its entry barrier, which puts that word between its
    /// frame and the return address.
    #[cold]
    fn behind_barrier(&mut self) -> Result<u64, StackEnd> {
        // The words that led here are not all that counts.
        self.way = None;
        let slot = self.cursor.sp;
        let word = self.stack.word::<A>(slot);
        let address = word.ok_or_else(|| self.stack.why_absent(slot))?;
        self.cursor.sp = slot.saturating_add(u64::from(A::WORD));
        Ok(address)
    }

    /// Whether a call in the copy leads to an address between the beginning of a function that was found and the place: then
    /// another function begins there, and the way out is not that of the one that was found.
    #[cold]
    fn began_later(&mut self, candidate: &Candidate, at: &Located<'w, 'a>, sp: u64) -> bool {
        let CodeLocation::File {
            dso,
            offset,
            binary,
            debug,
        } = at.place
        else {
            return false;
        };
        let place_of = |address: u64| CodeLocation::File {
            dso,
            offset: FileOffset(offset.0.wrapping_add(address.wrapping_sub(at.lookup))),
            binary,
            debug,
        };
        let start = start_of(candidate, at).0;
        let is_later = |to: u64| start < to && to <= at.lookup;
        for slot in (sp..self.stack.end()).step_by(usize::from(A::WORD)) {
            let word = self.stack.word::<A>(slot).map_or(0, A::strip);
            let lookup = word.wrapping_sub(1);
            let Some(Avma(callee)) = callee::<A>(&place_of(lookup), lookup) else {
                continue;
            };
            let leaves = |exit| is_later(callee.wrapping_add_signed(exit));
            let rules = &mut self.walker.rules;
            if is_later(callee) || rules.leaves_to(&place_of(callee), leaves) {
                return true;
            }
        }
        false
    }

    /// Whether a word of the copy may be a return address.
    #[cold]
    fn may_return_inside(&self, sp: u64) -> bool {
        let mut slots = (sp..self.stack.end()).step_by(usize::from(A::WORD));
        slots.any(|slot| {
            let word = self.stack.word::<A>(slot).map_or(0, A::strip);
            let place = self.code.locate(Avma(word.wrapping_sub(1)));
            let bytes = bytes_before::<A>(&place);
            !matches!(place, CodeLocation::Nothing) && bytes.is_none_or(A::ends_with_call)
        })
    }

    /// Code that is returned to at its start, if that is at an address: what runtimes put on the stack and
    /// nothing calls.
    #[cold]
    fn entered(&mut self, address: u64) -> Option<Located<'w, 'a>> {
        self.way = None;
        match self.code.locate(Avma(address)) {
            CodeLocation::Jit {
                code, offset: 0, ..
            } if jit::is_entered_by_return(code) => Some(self.locate(address, true)),
            _ => None,
        }
    }

    /// The return address beside the frame pointer's target.
    fn recorded_address(&self) -> Option<u64> {
        let fp = self.cursor.fp?;
        self.stack
            .word::<A>(fp.checked_add(u64::from(A::WORD))?)
            .map(A::strip)
    }

    /// Whether the frame pointer may point to a frame: aligned, and on the stack or not far behind
    /// what was copied of it.
    fn plausible_frame_pointer(&self) -> Result<bool, StackEnd> {
        let fp = self.cursor.fp.ok_or(StackEnd::NoRule)?;
        Ok(fp >= self.cursor.sp
            && fp.is_multiple_of(u64::from(A::WORD))
            && fp < self.stack.end().saturating_add(FAR))
    }

    /// Whether a return address leads into the function itself, which the candidate forbids.
    pub(super) fn is_self(
        &self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
        address: u64,
    ) -> bool {
        let (before, behind) = (u64::from(candidate.reach.0), u64::from(candidate.reach.1));
        let from_start = address.wrapping_sub(at.lookup.wrapping_sub(before));
        candidate.not_self && from_start < before + behind
    }

    pub(super) fn passes(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
        caller: &Located<'w, 'a>,
    ) -> bool {
        match candidate.check {
            Check::Executable => true,
            Check::NotRefuted => self.call_check(caller) != CallCheck::NoCall,
            Check::Call => self.call_check(caller) == CallCheck::Call,
            Check::Proven => {
                self.call_check(caller) == CallCheck::Call && self.called(candidate, at, caller)
            }
            Check::CallsHere => {
                let Some(distance) = bytes_before::<A>(&caller.place).and_then(A::call_target)
                else {
                    return false;
                };
                let callee = caller.lookup.wrapping_add(1).wrapping_add_signed(distance);
                callee <= at.lookup && at.lookup - callee <= u64::from(candidate.reach.0)
            }
        }
    }

    /// Whether a call may be one of the function around a place: of its first instruction, of another function that
    /// jumps there, or of an address that the instruction does not tell.
    fn called(
        &mut self,
        candidate: &Candidate,
        at: &Located<'w, 'a>,
        caller: &Located<'w, 'a>,
    ) -> bool {
        let Some(Avma(callee)) = callee::<A>(&caller.place, caller.lookup) else {
            return true;
        };
        let Avma(start) = start_of(candidate, at);
        // What a program's start calls may go on in the C library by any number of jumps.
        if callee == start || self.cursor.fp == Some(0) && is_start(&caller.place) {
            return true;
        }
        let place = self.code.locate(Avma(callee));
        let CodeLocation::File {
            dso,
            offset,
            binary: Some(image),
            ..
        } = place
        else {
            return false;
        };
        let is_same_file = matches!(at.place, CodeLocation::File { dso: own, .. } if own == dso);
        A::is_stub(image.bytes_from(offset, 16))
            || is_same_file && {
                let to = start.wrapping_sub(callee).cast_signed();
                self.walker.rules.leaves_to(&place, |exit| exit == to)
            }
    }

    /// Whether a return address follows a call.
    pub(super) fn call_check(&mut self, target: &Located<'w, 'a>) -> CallCheck {
        if target.entry.call != CallCheck::Untested {
            return target.entry.call;
        }
        let check = match bytes_before::<A>(&target.place) {
            // HotSpot's interpreter pushes its return entries and jumps.
            _ if is_interpreter(&target.place) => CallCheck::Call,
            // The kernel wrote that it be returned to.
            _ if target.entry.rule.kind == Kind::Sigreturn => CallCheck::Call,
            _ if go::is_entered_by_return(&target.entry.rule) => CallCheck::Call,
            None => CallCheck::NoBytes,
            Some(before) if A::ends_with_call(before) => CallCheck::Call,
            Some(_) => CallCheck::NoCall,
        };
        self.walker.memo.set_call(&target.entry, check);
        check
    }
}

/// Where the function of a place starts, as far as a candidate knows.
fn start_of(candidate: &Candidate, at: &Located<'_, '_>) -> Avma {
    Avma(at.lookup.wrapping_sub(u64::from(candidate.reach.0)))
}

/// Whether a frame pointer of 0 marks the base of a thread (System V ABI, AAPCS64), as it does where a chain of
/// frame pointers led to it, and at a program's start. Code that uses the register for something else may
/// also hold a 0 there. `origin` is how the place was reached.
fn is_base(place: &CodeLocation<'_, '_>, origin: FrameOrigin) -> bool {
    match *place {
        _ if origin == FrameOrigin::FramePointer => true,
        CodeLocation::File { binary: None, .. } => origin == FrameOrigin::Cfi,
        _ => is_start(place),
    }
}

/// Whether a place lies where a program starts.
pub(super) fn is_start(place: &CodeLocation<'_, '_>) -> bool {
    match *place {
        CodeLocation::File {
            offset,
            binary: Some(binary),
            ..
        } => binary.is_start(offset),
        _ => false,
    }
}

/// Why no candidate led on: where the code is not at hand, that is why. Run-time code nearly always has
/// frame pointers, so that one behind the copied stack tells more there.
const fn blame(end: StackEnd, place: &CodeLocation<'_, '_>) -> StackEnd {
    match (place, end) {
        (_, StackEnd::Complete) => end,
        (CodeLocation::File { binary: None, .. }, _) => StackEnd::MissingFile,
        (CodeLocation::Anonymous, StackEnd::DumpTooShort) => end,
        (CodeLocation::Anonymous, _) => StackEnd::UnknownCode,
        (CodeLocation::Nothing, _) => StackEnd::CheckFailed,
        _ => end,
    }
}

/// The bytes that end at a return address, as many as a call can have and are there. `None` when there
/// are none.
fn bytes_before<'a, A: Architecture>(place: &CodeLocation<'_, 'a>) -> Option<&'a [u8]> {
    match *place {
        CodeLocation::File { offset, binary, .. } => {
            let end = offset.0.checked_add(1)?;
            let start = end.saturating_sub(A::CALL_BYTES as u64);
            binary?.bytes_at(FileOffset(start), usize::try_from(end - start).ok()?)
        }
        CodeLocation::Jit { code, offset, .. } => {
            let end = usize::try_from(offset).ok()?.checked_add(1)?;
            code.bytes().get(end.saturating_sub(A::CALL_BYTES)..end)
        }
        CodeLocation::Anonymous | CodeLocation::Nothing => None,
    }
}

/// Whether the instruction in front of a place saved the frame pointer.
pub(super) fn is_just_saved<A: Architecture>(place: &CodeLocation<'_, '_>) -> bool {
    let CodeLocation::File {
        offset,
        binary: Some(binary),
        ..
    } = *place
    else {
        return false;
    };
    let before = offset.0.checked_sub(1);
    let before = before.and_then(|at| binary.bytes_at(FileOffset(at), 1));
    before.is_some_and(A::ends_with_saved_frame_pointer)
}

/// What the call in front of a return address calls, where the instruction tells it.
pub(super) fn callee<A: Architecture>(caller: &CodeLocation<'_, '_>, lookup: u64) -> Option<Avma> {
    let distance = bytes_before::<A>(caller).and_then(A::call_target)?;
    let behind = lookup.wrapping_add(1);
    Some(Avma(behind.wrapping_add_signed(distance)))
}

/// What HotSpot's entry barrier puts on the stack, in place of a stack pointer to leave by.
const BARRIER: u64 = u64::MAX;

/// Whether a place lies in code of a runtime itself.
fn is_blob(place: &CodeLocation<'_, '_>) -> bool {
    matches!(place, CodeLocation::Jit { code, .. } if code.habit() == Habit::Blob)
}

/// Whether a place lies in code that is returned to without having called.
fn is_interpreter(place: &CodeLocation<'_, '_>) -> bool {
    matches!(place, CodeLocation::Jit { code, .. } if jit::is_interpreter(*code))
}
