//! Follows a function's code from its start: how far the stack pointer was moved, and where the link register was put.
//!
//! In: the bytes of a function. Out: the [`State`] before the instruction at an offset, if all ways there agree. What no way leads
//! to that is in sight is where tables of jumps lead.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

use super::instruction::{self, Effect, Step, Way};

/// Functions whose code is longer are not followed.
const MAX_CODE: usize = 16 << 10;
/// Words of a frame beyond which it is damage.
const MAX_HEIGHT: i16 = 1 << 13;
/// DWARF's number of the link register.
const LR: u8 = 14;

/// Where a function's return address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// Still in the link register.
    Register,
    /// So many words below the caller's stack pointer.
    Slot(i16),
    /// Nobody knows.
    Lost,
}

/// The stack before an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// Words that the stack pointer is below the caller's, if that is known.
    pub(super) height: Option<i16>,
    pub(super) link: Link,
    /// A register that is so many words below the caller's stack pointer.
    pub(super) frame: Option<(u8, i16)>,
    /// The slots of r4 to r11, as words below the caller's stack pointer; 0 of those that were not saved, -1 of those
    /// that may have been.
    slots: [i16; 8],
    /// Instructions that an `it` still governs.
    conditions: u8,
}

const ENTRY: State = State {
    height: Some(0),
    link: Link::Register,
    frame: None,
    slots: [0; 8],
    conditions: 0,
};

impl State {
    /// The slot of one of r4 to r11.
    pub(super) fn saved(&self, register: u8) -> Option<i16> {
        let slot = self.slots.get(usize::from(register.checked_sub(4)?))?;
        (*slot > 0).then_some(*slot)
    }

    /// Whether one of r4 to r11 is what it was in the caller.
    pub(super) fn keeps(&self, register: u8) -> bool {
        let index = register.checked_sub(4).map(usize::from);
        let slot = index.and_then(|index| self.slots.get(index));
        slot == Some(&0) && self.frame.is_none_or(|(frame, _)| frame != register)
    }

    fn meet(self, other: Self) -> Self {
        let slots = std::array::from_fn(|i| match (self.slots[i], other.slots[i]) {
            (a, b) if a == b => a,
            _ => -1,
        });
        Self {
            height: self.height.filter(|_| self.height == other.height),
            link: if self.link == other.link {
                self.link
            } else {
                Link::Lost
            },
            frame: self.frame.filter(|_| self.frame == other.frame),
            slots,
            conditions: self.conditions.max(other.conditions),
        }
    }

    /// Behind an instruction that was executed.
    fn after(mut self, step: &Step) -> Self {
        match step.effect {
            Effect::None => {}
            Effect::Push(registers, below) => self.push(registers, below),
            Effect::Pop(registers) => self.pop(registers),
            Effect::Down(words) => self.down(words),
            Effect::Frame(register, words) => {
                let frame = self.height.and_then(|height| height.checked_sub(words));
                if matches!(register, 7 | 11) {
                    self.frame = frame.map(|height| (register, height));
                }
            }
            Effect::FromFrame(register, words) => {
                let frame = self.frame.filter(|(frame, _)| *frame == register);
                let height = frame.and_then(|(_, height)| height.checked_sub(words));
                self.height = height.filter(|height| (0..MAX_HEIGHT).contains(height));
            }
            Effect::Raise(register, words) => {
                let frame = self.frame.filter(|(frame, _)| *frame == register);
                self.frame =
                    frame.and_then(|(_, height)| Some((register, height.checked_sub(words)?)));
            }
            Effect::Unknown => self.height = None,
        }
        if step.way == Way::Call && self.link == Link::Register {
            self.link = Link::Lost;
        }
        self
    }

    fn down(&mut self, words: i16) {
        let height = self.height.and_then(|height| height.checked_add(words));
        self.height = height.filter(|height| (0..MAX_HEIGHT).contains(height));
    }

    fn push(&mut self, registers: u16, below: i16) {
        let count = i16::try_from(registers.count_ones()).unwrap_or(0);
        let base = self.height;
        self.down(count + below);
        let Some(base) = base.filter(|_| self.height.is_some()) else {
            return;
        };
        // The highest register lies highest.
        let set = (0..16u8).rev().filter(|n| registers >> n & 1 != 0);
        for (slot, register) in (base + 1..).zip(set) {
            match register {
                LR if self.link == Link::Register => self.link = Link::Slot(slot),
                4..=11 if self.keeps(register) => self.slots[usize::from(register - 4)] = slot,
                _ => {}
            }
        }
    }

    fn pop(&mut self, registers: u16) {
        let Some(height) = self.height else { return };
        let set = (0..16u8).filter(|n| registers >> n & 1 != 0);
        for (slot, register) in (0..height + 1).rev().zip(set) {
            match register {
                13 => return self.height = None,
                LR if self.link == Link::Slot(slot) => self.link = Link::Register,
                4..=11 if self.saved(register) == Some(slot) => {
                    self.slots[usize::from(register - 4)] = 0;
                    self.frame = self.frame.filter(|(frame, _)| *frame != register);
                }
                _ => {}
            }
        }
        self.down(-i16::try_from(registers.count_ones()).unwrap_or(0));
    }
}

/// The state before the instruction that covers the byte at `at`.
pub(super) fn state(code: &[u8], at: usize) -> Option<State> {
    if at >= code.len() || code.len() > MAX_CODE {
        return None;
    }
    let decode = if is_arm(code) {
        instruction::arm
    } else {
        instruction::thumb
    };
    let states = follow(code, decode);
    // An instruction has four bytes at most.
    let mut from = (at.saturating_sub(3)..=at).rev();
    from.find_map(|start| {
        let state = states[start]?;
        let step = decode(&code[start..])?;
        (start + usize::from(step.len) > at).then_some(state)
    })
}

type Decode = fn(&[u8]) -> Option<Step>;

/// The states before all instructions that can be reached.
fn follow(code: &[u8], decode: Decode) -> Vec<Option<State>> {
    let mut states: Vec<Option<State>> = vec![None; code.len()];
    let mut tables = BTreeMap::new();
    let mut next = Some((0, ENTRY));
    while let Some((start, entered)) = next {
        states[start] = Some(entered);
        follow_from(start, code, decode, &mut states, &mut tables);
        next = unreached(start, code, decode, &states).and_then(|start| {
            // What a table leads to stands behind its jump.
            let (_, state) = tables.range(..start).next_back()?;
            Some((start, *state))
        });
    }
    states
}

/// The first instruction from a place on to which nothing led so far.
fn unreached(from: usize, code: &[u8], decode: Decode, states: &[Option<State>]) -> Option<usize> {
    let mut at = from;
    while states.get(at)?.is_some() {
        at += usize::from(decode(&code[at..])?.len);
    }
    Some(at)
}

/// Follows all ways from a place; `tables` are the jumps whose target is not in sight, with what holds there.
fn follow_from(
    start: usize,
    code: &[u8],
    decode: Decode,
    states: &mut [Option<State>],
    tables: &mut BTreeMap<usize, State>,
) {
    let mut open: SmallVec<[usize; 32]> = smallvec![start];
    while let Some(at) = open.pop() {
        let Some((state, step)) = states[at].zip(decode(&code[at..])) else {
            continue;
        };
        if step.way == Way::Table {
            tables.insert(at, state);
        }
        let behind = code.get(at + usize::from(step.len)..).and_then(decode);
        let both = behind.and_then(|behind| popped_and_left(at, state, &step, &behind));
        if both.is_some()
            && let Some(jump) = states.get_mut(at + usize::from(step.len))
        {
            // Whether the change was made is not known there, but where that leads.
            jump.get_or_insert(state.meet(state.after(&step)));
        }
        for (to, reached) in both.unwrap_or_else(|| next(at, state, &step)) {
            let Some(known) = to.and_then(|to| states.get_mut(to)) else {
                continue;
            };
            let met = known.map_or(reached, |known| known.meet(reached));
            // What is known only gets less, so this ends.
            if *known != Some(met) {
                *known = Some(met);
                open.extend(to);
            }
        }
    }
}

/// Where an instruction leads, and the states there.
fn next(at: usize, state: State, step: &Step) -> [(Option<usize>, State); 2] {
    let is_certain = step.condition.is_none() && state.conditions == 0;
    let governed = State {
        conditions: if step.conditions > 0 {
            step.conditions
        } else {
            state.conditions.saturating_sub(1)
        },
        ..state
    };
    let done = governed.after(step);
    let behind = at.checked_add(usize::from(step.len));
    let there = |distance: i32| at.checked_add_signed(isize::try_from(distance).ok()?);
    // A way out that may not be taken leaves the frame as it was; other changes may or may not have happened.
    let on = match step.way {
        _ if is_certain => done,
        Way::Away | Way::Table | Way::Jump(_) => governed,
        _ => governed.meet(done),
    };
    match step.way {
        Way::On | Way::Call => [(behind, on), (None, on)],
        Way::Branch(to) => [(behind, on), (there(to), on)],
        Way::Jump(to) => [(behind.filter(|_| !is_certain), on), (there(to), done)],
        Way::Away | Way::Table => [(behind.filter(|_| !is_certain), on), (None, on)],
    }
}

/// A change of the frame and a jump under the same condition: both are done or none.
fn popped_and_left(
    at: usize,
    state: State,
    step: &Step,
    behind: &Step,
) -> Option<[(Option<usize>, State); 2]> {
    let Way::Branch(distance) = behind.way else {
        return None;
    };
    let same = step.condition.is_some() && step.condition == behind.condition;
    if !same || step.way != Way::On || step.effect == Effect::None {
        return None;
    }
    let jump = at.checked_add(usize::from(step.len))?;
    let to = jump.checked_add_signed(isize::try_from(distance).ok()?);
    let on = jump.checked_add(usize::from(behind.len));
    Some([(on, state), (to, state.after(step))])
}

/// Whether code is ARM's and not Thumb's: most of its words say that they are executed always, or are of the vector unit.
fn is_arm(code: &[u8]) -> bool {
    let words = code.as_chunks::<4>().0;
    let words = &words[..words.len().min(32)];
    let always = |word: &&[u8; 4]| matches!(word[3], 0xe0..=0xef | 0xf2..=0xf5);
    // `bx lr`: as Thumb that would be two instructions of no sense.
    let returns = |word: &[u8; 4]| *word == 0xe12f_ff1eu32.to_le_bytes();
    words.iter().filter(always).count() * 2 > words.len() || words.iter().any(returns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thumb(halves: &[u16]) -> Vec<u8> {
        halves.iter().flat_map(|half| half.to_le_bytes()).collect()
    }

    fn arm(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Height, and where the return address is.
    fn at(code: &[u8], at: usize) -> Option<(Option<i16>, Link)> {
        state(code, at).map(|state| (state.height, state.link))
    }

    #[test]
    fn thumb_prologue_and_ways_out() {
        let code = thumb(&[
            0xb100, // cbz r0, 4 (the way out without a frame, behind the next)
            0xe000, // b 6
            0x4770, // bx lr
            0xe92d, 0x41f0, // push.w {r4-r8, lr}
            0xb082, // sub sp, #8
            0xf000, 0xf800, // bl
            0xb002, // add sp, #8
            0xbf08, // it eq
            0xe8bd, 0x81f0, // popeq.w {r4-r8, pc}
            0xbf00, // nop
            0xe8bd, 0x81f0, // pop.w {r4-r8, pc}
            0xde00,
        ]);
        assert_eq!(at(&code, 0), Some((Some(0), Link::Register)));
        assert_eq!(at(&code, 4), Some((Some(0), Link::Register)), "bx lr");
        assert_eq!(at(&code, 6), Some((Some(0), Link::Register)));
        assert_eq!(at(&code, 10), Some((Some(6), Link::Slot(1))));
        let in_call = state(&code, 15).expect("inside the call");
        assert_eq!((in_call.height, in_call.link), (Some(8), Link::Slot(1)));
        assert_eq!((in_call.saved(7), in_call.saved(4)), (Some(3), Some(6)));
        assert_eq!(at(&code, 18), Some((Some(6), Link::Slot(1))), "it");
        assert_eq!(at(&code, 24), Some((Some(6), Link::Slot(1))), "not left");
        assert_eq!(at(&code, 30), None, "nothing leads there");
        assert_eq!(at(&code, 1000), None);
    }

    #[test]
    fn a_call_takes_the_link_register() {
        let code = thumb(&[0x4780, 0xbf00, 0x4770]);
        assert_eq!(at(&code, 0), Some((Some(0), Link::Register)));
        assert_eq!(at(&code, 2), Some((Some(0), Link::Lost)));
    }

    #[test]
    fn frames_by_r7() {
        let code = thumb(&[
            0xb580, // push {r7, lr}
            0xb084, // sub sp, #16
            0xaf02, // add r7, sp, #8
            0x4485, // add sp, r0
            0xbf00, // nop
            0x3708, // adds r7, #8
            0x46bd, // mov sp, r7
            0xbd80, // pop {r7, pc}
        ]);
        let grown = state(&code, 8).expect("a state");
        assert_eq!((grown.height, grown.frame), (None, Some((7, 4))));
        assert!(!grown.keeps(7) && grown.keeps(8) && !grown.keeps(12));
        assert_eq!(at(&code, 14), Some((Some(2), Link::Slot(1))));
    }

    #[test]
    fn arm_code_with_conditions_and_tables() {
        let code = arm(&[
            0xe52d_8004, // str r8, [sp, #-4]!
            0xe252_2040, // subs r2, r2, #64
            0x349d_8004, // ldrlo r8, [sp], #4
            0x3a00_0004, // blo 0x24
            0xe08f_f003, // add pc, pc, r3
            0xe320_f000, // nop
            0xe320_f000, // nop
            0xe49d_8004, // ldr r8, [sp], #4
            0xe12f_ff1e, // bx lr
            0xe12f_ff1e, // bx lr
        ]);
        assert_eq!(at(&code, 8), Some((Some(1), Link::Register)));
        assert_eq!(
            at(&code, 0x10),
            Some((Some(1), Link::Register)),
            "not popped"
        );
        assert_eq!(
            at(&code, 0x18),
            Some((Some(1), Link::Register)),
            "by the table"
        );
        assert_eq!(at(&code, 0x20), Some((Some(0), Link::Register)));
        assert_eq!(at(&code, 0x24), Some((Some(0), Link::Register)), "popped");
    }

    #[test]
    fn a_frame_beyond_all_measure_is_none() {
        // sub sp, sp, #0; add r11, sp, #0; sub sp, r11, #0x1fffc; pop {pc}
        let code = arm(&[
            0xe24d_d000,
            0xe28d_b000,
            0xe24b_d97f,
            0xe24b_daff,
            0xe8bd_8000,
        ]);
        assert_eq!(at(&code, 8), Some((Some(0), Link::Register)));
        assert_eq!(at(&code, 16).and_then(|(height, _)| height), None);
    }

    #[test]
    fn ways_that_disagree_leave_it_unknown() {
        let code = thumb(&[
            0xb100, // cbz r0, 4
            0xb510, // push {r4, lr}
            0xbf00, // nop
            0x4770,
        ]);
        assert_eq!(at(&code, 4), Some((None, Link::Lost)));
        assert_eq!(state(&code, 4).and_then(|state| state.saved(4)), None);
        assert_eq!(state(&code, 4).map(|state| state.keeps(4)), Some(false));
    }
}
