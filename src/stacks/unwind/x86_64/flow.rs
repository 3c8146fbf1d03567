//! Follows an x86-64 function by its code alone.
//!
//! In: the function's bytes from its first instruction. Out: [`Flow`], of the state of the stack before each
//! instruction that can be reached by following direct jumps. Code behind a jump table stays unknown.
//! Used where neither call frame information nor a regular prologue tells: V8's builtins and bytecode
//! handlers build frames around calls only, HotSpot and LLVM build none.

use super::decode::{Effect, decode};
use crate::unwind::flow::{ENTRY, Flow, FramePointer, State};

/// Code beyond this is not followed; no function that is made at run time is that long.
const MAX_CODE: usize = 1 << 18;

/// Follows the code from its start. With `frame_by_call`, the first call builds the frame (V8's
/// Sparkplug).
pub(in crate::stacks::unwind) fn follow(code: &[u8], frame_by_call: bool) -> Flow {
    let code = &code[..code.len().min(MAX_CODE)];
    let mut search = Search::new(code, frame_by_call);
    search.reach(0, ENTRY);
    search.run();
    search.finish()
}

/// The same for a function of a file that nothing describes, and that may end before `code` does. Code that no
/// direct jump leads to is that of jump tables, if there are some: the stack is there as it was at the jump.
pub(in crate::stacks::unwind) fn follow_found(code: &[u8]) -> Flow {
    let code = &code[..code.len().min(MAX_CODE)];
    let mut search = Search::new(code, false);
    search.reach(0, ENTRY);
    search.run();
    search.follow_tables();
    search.note_exits_behind_tables();
    search.finish()
}

/// The state behind an instruction; `None` if the stack pointer is lost.
fn after(before: State, effect: Effect) -> Option<State> {
    const RBP: u8 = 5;
    let frame = match before.fp {
        FramePointer::Frame(height) => Some(height),
        _ => None,
    };
    Some(match effect {
        Effect::Other | Effect::Call | Effect::Branch(_) | Effect::Jump(_) => before,
        Effect::Push(register) => {
            let pushed = before.moved(8);
            let saves = register == Some(RBP) && before.fp == FramePointer::Callers;
            State {
                saved: if saves { pushed.height } else { pushed.saved },
                ..pushed
            }
        }
        Effect::Pop(Some(RBP)) => before.load_fp(before.height).moved(-8),
        Effect::Pop(_) => before.moved(-8),
        Effect::AddSp(bytes) => before.moved(bytes.checked_neg()?),
        Effect::SetFp => match before.height {
            Some(height) => State {
                fp: FramePointer::Frame(height),
                ..before
            },
            None => State {
                fp: FramePointer::Other,
                ..before
            },
        },
        Effect::SpFromFp(offset) => State {
            height: Some(frame?.checked_sub(offset)?),
            ..before
        },
        Effect::StoreFp(offset) if before.fp == FramePointer::Callers => State {
            saved: before.height.and_then(|h| h.checked_sub(offset)),
            ..before
        },
        Effect::StoreFp(_) => before,
        Effect::LoadFp(offset) => before.load_fp(before.height.and_then(|h| h.checked_sub(offset))),
        Effect::LoadFpFromFrame(offset) => {
            before.load_fp(frame.and_then(|h| h.checked_sub(offset)))
        }
        Effect::ClearFp if before.fp == FramePointer::Callers && before.saved.is_none() => State {
            fp: FramePointer::Cleared,
            ..before
        },
        Effect::WriteFp | Effect::ClearFp => State {
            fp: FramePointer::Other,
            ..before
        },
        Effect::Leave => State {
            height: Some(frame?),
            ..before
        }
        .load_fp(frame)
        .moved(-8),
        Effect::Return | Effect::Stop => return None,
    })
}

/// The search in progress.
struct Search<'c> {
    code: &'c [u8],
    /// By offset: length of the instruction and the state before it.
    states: Vec<Option<(u8, State)>>,
    /// Instructions whose successors have to be told.
    open: Vec<usize>,
    frame_by_call: bool,
    /// What is common to all jumps through tables.
    at_tables: Option<State>,
    exits: Vec<i64>,
}

/// Jumps out of one function that are noted.
const MOST_EXITS: usize = 256;

impl<'c> Search<'c> {
    fn new(code: &'c [u8], frame_by_call: bool) -> Self {
        Self {
            code,
            states: vec![None; code.len()],
            open: Vec::new(),
            frame_by_call,
            at_tables: None,
            exits: Vec::new(),
        }
    }

    fn run(&mut self) {
        while let Some(at) = self.open.pop() {
            self.visit(at);
        }
    }

    /// Goes on behind instructions that do not, with what is known at jumps through tables.
    fn follow_tables(&mut self) {
        let Some(state) = self.at_tables else {
            return;
        };
        let (mut at, mut behind_padding) = (0, false);
        while at < self.code.len() {
            match self.states[at] {
                // An instruction that is not known; where the next one begins, nobody can tell.
                Some((0, _)) => return,
                Some((len, _)) => (at, behind_padding) = (at + usize::from(len), false),
                None if matches!(self.code[at], 0xcc | 0x90) => {
                    (at, behind_padding) = (at + 1, true)
                }
                // Padding stands before loops, to which something may lead only through the table, and before other functions.
                None if behind_padding && !self.leads_back(at, state) => return,
                None => {
                    self.reach(at, state);
                    self.run();
                    if self.states[at].is_none_or(|(len, _)| len == 0) {
                        return;
                    }
                    behind_padding = false;
                }
            }
        }
    }

    /// Whether code jumps to what is known of the function, or runs into it, with the stack as it is there.
    fn leads_back(&self, mut at: usize, state: State) -> bool {
        /// Instructions that are looked at.
        const MOST: usize = 32;
        let mut state = state;
        let is_known = |place: usize, reached: State| {
            let there = self.states.get(place).copied().flatten();
            reached.height.is_some_and(|height| height > 0)
                && there.is_some_and(|(len, known)| len > 0 && known.height == reached.height)
        };
        for _ in 0..MOST {
            let Some(instruction) = self.code.get(at..).and_then(decode) else {
                return false;
            };
            let next = at + instruction.len;
            if let Effect::Branch(distance) | Effect::Jump(Some(distance)) = instruction.effect
                && next
                    .checked_add_signed(distance as isize)
                    .is_some_and(|target| is_known(target, state))
            {
                return true;
            }
            let Some(behind) = after(state, instruction.effect) else {
                return false;
            };
            if matches!(instruction.effect, Effect::Jump(_)) {
                return false;
            }
            if is_known(next, behind) {
                return true;
            }
            (at, state) = (next, behind);
        }
        false
    }

    fn reach(&mut self, at: usize, state: State) {
        let Some(slot) = self.states.get_mut(at) else {
            return;
        };
        let (len, merged) = match *slot {
            None => (0, state),
            Some((len, known)) => (len, known.meet(state)),
        };
        // A state only ever loses knowledge, so this ends.
        if *slot != Some((len, merged)) {
            *slot = Some((len, merged));
            self.open.push(at);
        }
    }

    fn visit(&mut self, at: usize) {
        let Some((_, state)) = self.states[at] else {
            return;
        };
        let Some(instruction) = decode(&self.code[at..]) else {
            return;
        };
        let next = at + instruction.len;
        self.states[at] = Some((u8::try_from(instruction.len).unwrap_or(u8::MAX), state));
        let distance = match instruction.effect {
            Effect::Branch(distance) | Effect::Jump(Some(distance)) => {
                isize::try_from(distance).ok()
            }
            _ => None,
        };
        match distance.map(|distance| next.checked_add_signed(distance)) {
            Some(Some(target)) if target < self.code.len() => self.reach(target, state),
            Some(_) => self.note_exit(next, instruction.effect),
            None => {}
        }
        if let Effect::Jump(displacement) = instruction.effect {
            // With the stack as it was at the entry, the jump is to another function.
            if displacement.is_none() && state.candidate_height() != Some(0) {
                self.at_tables = Some(self.at_tables.map_or(state, |known| known.meet(state)));
            }
            return;
        }
        let Some(mut behind) = after(state, instruction.effect) else {
            return;
        };
        if instruction.effect == Effect::Call && self.frame_by_call {
            self.frame_by_call = false;
            behind = State {
                height: None,
                fp: FramePointer::Frame(8),
                saved: Some(8),
            };
        }
        self.reach(next, behind);
    }

    /// A jump through a table that leaves the stack as it was at the entry looks like one to another function, and nothing
    /// leads to what it chooses from: there, what looks like a jump out of the function counts as one.
    fn note_exits_behind_tables(&mut self) {
        let code = self.code;
        for at in memchr::memchr_iter(0xe9, code) {
            let distance = code.get(at + 1..).and_then(|rest| rest.first_chunk());
            if let Some(distance) = distance
                && self.states[at].is_none()
            {
                let distance = i32::from_le_bytes(*distance);
                let inside = (at + 5)
                    .checked_add_signed(distance as isize)
                    .is_some_and(|target| target < code.len());
                if !inside {
                    self.note_exit(at + 5, Effect::Jump(Some(distance)));
                }
            }
        }
    }

    fn note_exit(&mut self, next: usize, effect: Effect) {
        let (Effect::Branch(distance) | Effect::Jump(Some(distance))) = effect else {
            return;
        };
        let target = i64::try_from(next).map(|next| next + i64::from(distance));
        if let Ok(target) = target
            && self.exits.len() < MOST_EXITS
            && !self.exits.contains(&target)
        {
            self.exits.push(target);
        }
    }

    fn finish(self) -> Flow {
        Flow::of(&self.states, self.exits)
    }
}
