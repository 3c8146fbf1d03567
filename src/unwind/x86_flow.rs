//! Where the return address and the caller's rbp are at every instruction of an x86-64 function, from
//! its code alone.
//!
//! In: the function's bytes from its first instruction. Out: [`Flow`], the state of the stack for each
//! instruction that can be reached by following direct jumps. Code behind a jump table stays unknown.
//! Used where neither call frame information nor a regular prologue tells: V8's builtins and bytecode
//! handlers build frames around calls only, HotSpot and LLVM build none.

use super::FrameOrigin;
use super::rules::{Candidate, Check, IN_REGISTER, LOST, Rule};
use super::x86_decode::{Effect, decode};

/// DWARF numbers.
const RBP: u8 = 6;
const RSP: u8 = 7;

/// The slot at a height, counted from the CFA.
fn slot(height: i32) -> Option<i16> {
    i16::try_from(-height / 8 - 1).ok()
}

/// What rbp holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FramePointer {
    /// The caller's value.
    Callers,
    /// The address this many bytes below the return address.
    Frame(i32),
    /// 0, and the caller's value was not saved before: nothing is to be returned to.
    Cleared,
    /// Something else.
    Other,
}

/// Stack and rbp before an instruction. Heights are bytes below the return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    /// Of the stack pointer, if known.
    height: Option<i32>,
    fp: FramePointer,
    /// Of the slot that holds the caller's rbp.
    saved: Option<i32>,
}

const ENTRY: State = State {
    height: Some(0),
    fp: FramePointer::Callers,
    saved: None,
};

/// The states of one function: runs of instructions with equal state, by offset.
#[derive(Debug, Default)]
pub(super) struct Flow {
    runs: Vec<(u32, Option<State>)>,
    /// Where direct jumps out of the function lead, from its start.
    exits: Vec<i64>,
}

/// Code beyond this is not followed; no function that is made at run time is that long.
const MAX_CODE: usize = 1 << 18;
/// Heights beyond this are damage.
const MAX_HEIGHT: i32 = 1 << 24;

impl Flow {
    /// Follows the code from its start. With `frame_by_call`, the first call builds the frame (V8's
    /// Sparkplug).
    pub(super) fn of(code: &[u8], frame_by_call: bool) -> Self {
        let code = &code[..code.len().min(MAX_CODE)];
        let mut search = Search::new(code, frame_by_call);
        search.reach(0, ENTRY);
        search.run();
        search.finish()
    }

    /// The same for a function of a file that nothing describes, and that may end before `code` does. Code that no
    /// direct jump leads to is that of jump tables, if there are some: the stack is there as it was at the jump.
    pub(super) fn of_found(code: &[u8]) -> Self {
        let code = &code[..code.len().min(MAX_CODE)];
        let mut search = Search::new(code, false);
        search.reach(0, ENTRY);
        search.run();
        search.follow_tables();
        search.note_exits_behind_tables();
        search.finish()
    }

    /// Where the function ends by jumps to, counted from its start.
    pub(super) fn exits(&self) -> &[i64] {
        &self.exits
    }

    /// How to leave a found function at an offset, to a caller who must have called it.
    pub(super) fn proven(&self, at: usize) -> Option<Candidate> {
        let candidate = self.candidate(at)?;
        Some(Candidate {
            check: Check::Proven,
            ..candidate
        })
    }

    /// How to leave the function at an offset; inside an instruction counts as at its start.
    pub(super) fn candidate(&self, at: usize) -> Option<Candidate> {
        self.state(at)?.candidate()
    }

    /// The same without the help of rbp, whose value the caller knows to be of no use.
    pub(super) fn by_stack_pointer(&self, at: usize) -> Option<Candidate> {
        let state = self.state(at)?;
        let height = state.height.filter(|&height| height >= 0)?;
        let fp_slot = state.saved.and_then(slot).unwrap_or(LOST);
        let rule = Rule::frame(RSP, height.checked_add(8)?, -1, fp_slot);
        Some(Candidate::new(rule, FrameOrigin::Prologue, Check::Call))
    }

    /// Whether the function has cleared rbp without having saved it, as code does below which there is nothing.
    pub(super) fn is_base(&self, at: usize) -> bool {
        self.state(at)
            .is_some_and(|state| state.fp == FramePointer::Cleared)
    }

    fn state(&self, at: usize) -> Option<State> {
        let at = u32::try_from(at).ok()?;
        let behind = self.runs.partition_point(|(start, _)| *start <= at);
        self.runs.get(behind.checked_sub(1)?)?.1
    }
}

impl State {
    fn candidate(self) -> Option<Candidate> {
        let (register, height) = match (self.fp, self.height) {
            (FramePointer::Frame(height), _) => (RBP, height),
            (_, Some(height)) => (RSP, height),
            _ => return None,
        };
        if height < 0 {
            return None;
        }
        let fp_slot = match (self.fp, self.saved) {
            (FramePointer::Callers, _) => IN_REGISTER,
            (_, Some(saved)) => slot(saved)?,
            _ => LOST,
        };
        let origin = match (register, height) {
            (RBP, _) => FrameOrigin::FramePointer,
            (_, 0) => FrameOrigin::Frameless,
            _ => FrameOrigin::Prologue,
        };
        Some(Candidate::new(
            Rule::frame(register, height + 8, -1, fp_slot),
            origin,
            Check::NotRefuted,
        ))
    }

    /// Of the stack pointer, if there is no frame by rbp.
    const fn candidate_height(self) -> Option<i32> {
        match self.fp {
            FramePointer::Frame(_) => None,
            _ => self.height,
        }
    }

    /// What is common to both.
    fn meet(self, other: Self) -> Self {
        Self {
            height: self.height.filter(|_| self.height == other.height),
            fp: if self.fp == other.fp {
                self.fp
            } else {
                FramePointer::Other
            },
            saved: self.saved.filter(|_| self.saved == other.saved),
        }
    }

    fn moved(self, bytes: i32) -> Self {
        let height = self
            .height
            .and_then(|h| h.checked_add(bytes))
            .filter(|h| h.abs() < MAX_HEIGHT);
        Self { height, ..self }
    }

    /// The value loaded from a slot becomes rbp.
    fn load_fp(self, slot: Option<i32>) -> Self {
        let callers = slot.is_some() && slot == self.saved;
        Self {
            fp: if callers {
                FramePointer::Callers
            } else {
                FramePointer::Other
            },
            ..self
        }
    }

    /// The state behind an instruction; `None` if the stack pointer is lost.
    fn after(self, effect: Effect) -> Option<Self> {
        const RBP: u8 = 5;
        let frame = match self.fp {
            FramePointer::Frame(height) => Some(height),
            _ => None,
        };
        Some(match effect {
            Effect::Other | Effect::Call | Effect::Branch(_) | Effect::Jump(_) => self,
            Effect::Push(register) => {
                let pushed = self.moved(8);
                let saves = register == Some(RBP) && self.fp == FramePointer::Callers;
                Self {
                    saved: if saves { pushed.height } else { pushed.saved },
                    ..pushed
                }
            }
            Effect::Pop(Some(RBP)) => self.load_fp(self.height).moved(-8),
            Effect::Pop(_) => self.moved(-8),
            Effect::AddSp(bytes) => self.moved(bytes.checked_neg()?),
            Effect::SetFp => match self.height {
                Some(height) => Self {
                    fp: FramePointer::Frame(height),
                    ..self
                },
                None => Self {
                    fp: FramePointer::Other,
                    ..self
                },
            },
            Effect::SpFromFp(offset) => Self {
                height: Some(frame?.checked_sub(offset)?),
                ..self
            },
            Effect::StoreFp(offset) if self.fp == FramePointer::Callers => Self {
                saved: self.height.and_then(|h| h.checked_sub(offset)),
                ..self
            },
            Effect::StoreFp(_) => self,
            Effect::LoadFp(offset) => self.load_fp(self.height.and_then(|h| h.checked_sub(offset))),
            Effect::LoadFpFromFrame(offset) => {
                self.load_fp(frame.and_then(|h| h.checked_sub(offset)))
            }
            Effect::ClearFp if self.fp == FramePointer::Callers && self.saved.is_none() => Self {
                fp: FramePointer::Cleared,
                ..self
            },
            Effect::WriteFp | Effect::ClearFp => Self {
                fp: FramePointer::Other,
                ..self
            },
            Effect::Leave => Self {
                height: Some(frame?),
                ..self
            }
            .load_fp(frame)
            .moved(-8),
            Effect::Return | Effect::Stop => return None,
        })
    }
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
                // Padding stands before loops, which something leads to, and before other functions.
                None if behind_padding => return,
                None => {
                    self.reach(at, state);
                    self.run();
                    if self.states[at].is_none_or(|(len, _)| len == 0) {
                        return;
                    }
                }
            }
        }
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
        if let Effect::Jump(distance) = instruction.effect {
            // With the stack as it was at the entry, the jump is to another function.
            if distance.is_none() && state.candidate_height() != Some(0) {
                self.at_tables = Some(self.at_tables.map_or(state, |known| known.meet(state)));
            }
            return;
        }
        let Some(mut after) = state.after(instruction.effect) else {
            return;
        };
        if instruction.effect == Effect::Call && self.frame_by_call {
            self.frame_by_call = false;
            after = State {
                height: None,
                fp: FramePointer::Frame(8),
                saved: Some(8),
            };
        }
        self.reach(next, after);
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
        let mut runs: Vec<(u32, Option<State>)> = Vec::new();
        let mut add = |at: usize, state: Option<State>| {
            if runs.last().map(|run| run.1) != Some(state) {
                runs.push((u32::try_from(at).unwrap_or(u32::MAX), state));
            }
        };
        let mut end = 0;
        for (at, known) in self.states.iter().enumerate() {
            match known {
                Some((len, state)) => {
                    add(at, Some(*state));
                    end = at + usize::from(*len);
                }
                None if at >= end => add(at, None),
                None => {}
            }
        }
        add(self.code.len(), None);
        Flow {
            runs,
            exits: self.exits,
        }
    }
}
