//! Where the return address and the caller's frame pointer are at every instruction of a function, as its code tells.
//!
//! In: the states that an architecture's search found ([`super::arch::Architecture::flow`]). Out: [`Flow`], which answers how to
//! leave the function at an offset. For architectures whose calls push the return address.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::FrameOrigin;
use super::rules::{Candidate, Check, IN_REGISTER, LOST, Rule};
use crate::address::FileOffset;
use crate::dso::DsoId;
use crate::session::jit::JitCodeId;

/// The slot at a height, counted from the CFA.
fn slot(height: i32) -> Option<i16> {
    i16::try_from(-height / 8 - 1).ok()
}

/// DWARF numbers of the registers by which a frame is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointers {
    /// The stack pointer.
    pub(super) sp: u8,
    /// The frame pointer.
    pub(super) fp: u8,
}

/// What the frame pointer register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FramePointer {
    /// The caller's value.
    Callers,
    /// The address this many bytes below the return address.
    Frame(i32),
    /// 0, and the caller's value was not saved before: nothing is to be returned to.
    Cleared,
    /// Something else.
    Other,
}

/// Stack and frame pointer before an instruction. Heights are bytes below the return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// Of the stack pointer, if known.
    pub(super) height: Option<i32>,
    pub(super) fp: FramePointer,
    /// Of the slot that holds the caller's frame pointer.
    pub(super) saved: Option<i32>,
}

pub(super) const ENTRY: State = State {
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

/// Heights beyond this are damage.
const MAX_HEIGHT: i32 = 1 << 24;

impl Flow {
    /// Of what is known at each byte of the code: the length of the instruction that begins there and the state before it.
    pub(super) fn of(states: &[Option<(u8, State)>], exits: Vec<i64>) -> Self {
        let mut runs: Vec<(u32, Option<State>)> = Vec::new();
        let mut add = |at: usize, state: Option<State>| {
            if runs.last().map(|run| run.1) != Some(state) {
                runs.push((u32::try_from(at).unwrap_or(u32::MAX), state));
            }
        };
        let mut end = 0;
        for (at, known) in states.iter().enumerate() {
            match known {
                Some((len, state)) => {
                    add(at, Some(*state));
                    end = at + usize::from(*len);
                }
                None if at >= end => add(at, None),
                None => {}
            }
        }
        add(states.len(), None);
        Self { runs, exits }
    }

    /// Where the function ends by jumps to, counted from its start.
    pub(super) fn exits(&self) -> &[i64] {
        &self.exits
    }

    /// How to leave a found function at an offset, to a caller who must have called it.
    pub(super) fn proven(&self, at: usize, registers: Pointers) -> Option<Candidate> {
        let candidate = self.candidate(at, registers)?;
        Some(Candidate {
            check: Check::Proven,
            ..candidate
        })
    }

    /// How to leave the function at an offset; inside an instruction counts as at its start.
    pub(super) fn candidate(&self, at: usize, registers: Pointers) -> Option<Candidate> {
        self.state(at)?.candidate(registers)
    }

    /// The same without the help of the frame pointer, whose value the caller knows to be of no use.
    pub(super) fn by_stack_pointer(&self, at: usize, registers: Pointers) -> Option<Candidate> {
        let state = self.state(at)?;
        let height = state.height.filter(|&height| height >= 0)?;
        let fp_slot = state.saved.and_then(slot).unwrap_or(LOST);
        let rule = Rule::frame(registers.sp, height.checked_add(8)?, -1, fp_slot);
        Some(Candidate::new(rule, FrameOrigin::Prologue, Check::Call))
    }

    /// Whether the code takes more off the stack than it put there: it begins in the middle of a function.
    pub(super) fn begins_inside(&self) -> bool {
        let below = |state: State| state.height.is_some_and(|height| height < 0);
        self.runs.iter().any(|(_, state)| state.is_some_and(below))
    }

    /// Whether the function has cleared the frame pointer without having saved it, as code does below which there is nothing.
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
    fn candidate(self, registers: Pointers) -> Option<Candidate> {
        let (register, height) = match (self.fp, self.height) {
            (FramePointer::Frame(height), _) => (registers.fp, height),
            (_, Some(height)) => (registers.sp, height),
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
            (register, _) if register == registers.fp => FrameOrigin::FramePointer,
            (_, 0) => FrameOrigin::Frameless,
            _ => FrameOrigin::Prologue,
        };
        Some(Candidate::new(
            Rule::frame(register, height + 8, -1, fp_slot),
            origin,
            Check::NotRefuted,
        ))
    }

    /// Of the stack pointer, if there is no frame by the frame pointer.
    pub(super) const fn candidate_height(self) -> Option<i32> {
        match self.fp {
            FramePointer::Frame(_) => None,
            _ => self.height,
        }
    }

    /// What is common to both.
    pub(super) fn meet(self, other: Self) -> Self {
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

    pub(super) fn moved(self, bytes: i32) -> Self {
        let height = self
            .height
            .and_then(|h| h.checked_add(bytes))
            .filter(|h| h.abs() < MAX_HEIGHT);
        Self { height, ..self }
    }

    /// The value loaded from a slot becomes rbp.
    pub(super) fn load_fp(self, slot: Option<i32>) -> Self {
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
}

/// A function without call frame information.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Function {
    File(DsoId, FileOffset),
    /// The same, followed through jump tables, as what leads to functions is found; and how long it is thought to be.
    Reached(DsoId, FileOffset, u64),
    Jit(JitCodeId),
}

/// The flows of functions, as ips and as callers, shared by all threads: they meet the same ones, and to follow a
/// function takes as long as to unwind some stacks.
#[derive(Default)]
pub(super) struct Flows {
    shards: [Mutex<FlowsOf>; 16],
}

/// By function, and whether the place is an ip.
pub(super) type FlowsOf = FxHashMap<(Function, bool), Option<Arc<Flow>>>;

impl Flows {
    /// The flow of a function, made by whoever needs it first; seldom by two at the same time.
    pub(super) fn get(
        &self,
        key: (Function, bool),
        make: impl FnOnce() -> Option<Flow>,
    ) -> Option<Arc<Flow>> {
        let shard = FxBuildHasher.hash_one(key) as usize % self.shards.len();
        let shard = || {
            self.shards[shard]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = shard().get(&key) {
            return known.clone();
        }
        let flow = make().map(Arc::new);
        shard().entry(key).or_insert(flow).clone()
    }

    /// Forgets code that was made at run time, and says which files the others are in.
    pub(super) fn forget_code(&self) -> Vec<DsoId> {
        let mut files = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|(function, _), _| match function {
                Function::File(dso, _) | Function::Reached(dso, ..) => {
                    files.push(*dso);
                    true
                }
                Function::Jit(_) => false,
            });
        }
        files
    }
}
