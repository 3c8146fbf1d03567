//! Instructions of ARM and Thumb, as far as they move the stack pointer, save registers or leave the straight way.
//!
//! In: bytes. Out: [`Step`]s. Whatever is not known to leave the registers concerned alone is said to clobber them.

/// What an instruction does with the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Nothing that counts.
    None,
    /// Pushes these registers (bit n is rn), and below them so many other words.
    Push(u16, i16),
    /// Pops these registers.
    Pop(u16),
    /// Moves the stack pointer down by so many words.
    Down(i16),
    /// A register becomes the stack pointer plus so many words.
    Frame(u8, i16),
    /// The stack pointer becomes a register plus so many words.
    FromFrame(u8, i16),
    /// A register grows by so many words.
    Raise(u8, i16),
    /// Nobody knows where the stack pointer is.
    Unknown,
}

/// Where the code goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Behind the instruction.
    On,
    /// There after a call.
    Call,
    /// At an offset from the instruction's start, or behind it.
    Branch(i32),
    /// Only there.
    Jump(i32),
    /// Behind a return or a jump to another function.
    Away,
    /// Somewhere in the function, probably.
    Table,
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) len: u8,
    pub(super) effect: Effect,
    pub(super) way: Way,
    /// On what it depends whether it is executed.
    pub(super) condition: Option<u8>,
    /// How many that follow may not be executed (Thumb's `it`).
    pub(super) conditions: u8,
}

impl Step {
    const fn new(len: u8, effect: Effect, way: Way) -> Self {
        Self {
            len,
            effect,
            way,
            condition: None,
            conditions: 0,
        }
    }
}

const SP: u32 = 13;
const PC_BIT: u16 = 1 << 15;

/// What popping registers means.
const fn pop(len: u8, registers: u16) -> Step {
    let way = if registers & PC_BIT != 0 {
        Way::Away
    } else {
        Way::On
    };
    Step::new(len, Effect::Pop(registers), way)
}

fn words(bytes: u32) -> Option<i16> {
    bytes
        .is_multiple_of(4)
        .then(|| i16::try_from(bytes / 4).ok())
        .flatten()
}

fn down(len: u8, bytes: Option<u32>, is_down: bool) -> Step {
    let effect = match bytes.and_then(words) {
        Some(words) => Effect::Down(if is_down { words } else { -words }),
        None => Effect::Unknown,
    };
    Step::new(len, effect, Way::On)
}

/// The Thumb instruction at the start of code.
pub(super) fn thumb(code: &[u8]) -> Option<Step> {
    let first = u16::from_le_bytes(*code.first_chunk()?);
    if first >> 11 >= 0b11101 {
        let second = u16::from_le_bytes(*code.get(2..)?.first_chunk()?);
        return Some(wide(u32::from(first), u32::from(second)));
    }
    Some(narrow(u32::from(first)))
}

fn narrow(op: u32) -> Step {
    let step = |effect, way| Step::new(2, effect, way);
    let registers = (op & 0xff) as u16;
    match op {
        0xb400..=0xb5ff => {
            let link = ((op >> 8 & 1) as u16) << 14;
            step(Effect::Push(registers | link, 0), Way::On)
        }
        0xbc00..=0xbdff => pop(2, registers | ((op >> 8 & 1) as u16) << 15),
        0xb000..=0xb0ff => down(2, Some((op & 0x7f) * 4), op & 0x80 != 0),
        // add rd, sp, #imm
        0xa800..=0xafff => step(
            Effect::Frame((op >> 8 & 7) as u8, (op & 0xff) as i16),
            Way::On,
        ),
        // adds r7, #imm; subs r7, #imm
        0x3700..=0x37ff | 0x3f00..=0x3fff => {
            let count = words(op & 0xff).unwrap_or(i16::MIN);
            let count = if op & 0x0800 == 0 {
                count
            } else {
                -count.max(-i16::MAX)
            };
            step(Effect::Raise(7, count), Way::On)
        }
        // add and mov of any registers
        0x4400..=0x44ff | 0x4600..=0x46ff => any_register(op),
        0x4700..=0x47ff => step(
            Effect::None,
            if op & 0x80 != 0 { Way::Call } else { Way::Away },
        ),
        // cbz, cbnz
        _ if op & 0xf500 == 0xb100 => {
            let distance = (op >> 3 & 0x1f) << 1 | (op >> 9 & 1) << 6;
            step(Effect::None, Way::Branch(distance.cast_signed() + 4))
        }
        0xde00..=0xdeff => step(Effect::None, Way::Away),
        0xdf00..=0xdfff => step(Effect::None, Way::On),
        0xd000..=0xddff => {
            let distance = i32::from((op & 0xff) as u8 as i8) * 2 + 4;
            step(Effect::None, Way::Branch(distance))
        }
        0xe000..=0xe7ff => {
            let distance = ((op << 21).cast_signed() >> 20) + 4;
            step(Effect::None, Way::Jump(distance))
        }
        0xbf00..=0xbfff if op & 15 != 0 => Step {
            conditions: 4 - (op & 15).trailing_zeros() as u8,
            ..step(Effect::None, Way::On)
        },
        _ => step(Effect::None, Way::On),
    }
}

/// `add` and `mov` with high registers.
fn any_register(op: u32) -> Step {
    let (to, from) = (op & 7 | op >> 4 & 8, op >> 3 & 15);
    let is_move = op & 0x0200 != 0;
    let effect = match (to, from) {
        (SP, from) if is_move => Effect::FromFrame(from as u8, 0),
        (SP, _) => Effect::Unknown,
        (to, SP) if is_move => Effect::Frame(to as u8, 0),
        _ => Effect::None,
    };
    let way = match (to, from) {
        (15, 14) => Way::Away,
        (15, _) => Way::Table,
        _ => Way::On,
    };
    Step::new(2, effect, way)
}

/// Thumb's 32-bit instructions.
fn wide(first: u32, second: u32) -> Step {
    let step = |effect, way| Step::new(4, effect, way);
    let registers = second as u16;
    let to = (second >> 8 & 15) as u8;
    match first {
        0xe92d => step(Effect::Push(registers, 0), Way::On),
        0xe8bd => pop(4, registers),
        // str rt, [sp, #-imm]!; ldr rt, [sp], #imm
        0xf84d if second & 0x0f00 == 0x0d00 => push_one(second >> 12, second & 0xff, 4),
        0xf85d if second & 0x0f00 == 0x0b00 => pop_one(second >> 12, second & 0xff, 4),
        // strd rt, rt2, [sp, #-imm]!; ldrd rt, rt2, [sp], #imm
        0xe96d => push_two(second),
        0xe8fd => down(4, Some((second & 0xff) * 4), false),
        // vpush, vpop
        0xed2d | 0xed6d if second & 0x0e00 == 0x0a00 => down(4, Some((second & 0xff) * 4), true),
        0xecbd | 0xecfd if second & 0x0e00 == 0x0a00 => down(4, Some((second & 0xff) * 4), false),
        // sub.w, add.w, subw, addw of the stack pointer
        0xf1ad | 0xf5ad | 0xf2ad | 0xf6ad | 0xf10d | 0xf50d | 0xf20d | 0xf60d
            if second & 0x8000 == 0 =>
        {
            let value = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xff;
            let plain = first & 0x0200 != 0;
            let bytes = if plain { Some(value) } else { expand(value) };
            let is_down = first & 0x00a0 == 0x00a0;
            sum(to, bytes, is_down)
        }
        // tbb, tbh; ldr pc
        0xe8d0..=0xe8df if second & 0xffe0 == 0xf000 => step(Effect::None, Way::Table),
        _ if first & 0xff70 == 0xf850 && second >> 12 == 15 => step(Effect::None, Way::Table),
        // ldm with pc
        _ if first & 0xfe50 == 0xe810 && second & 0x8000 != 0 => step(Effect::Unknown, Way::Away),
        _ if first >> 11 == 0b11110 && second & 0x8000 != 0 => branch(first, second),
        // data processing with the stack pointer as target
        _ if first & 0xfe00 == 0xea00 && to == 13 => step(Effect::Unknown, Way::On),
        _ => step(Effect::None, Way::On),
    }
}

fn push_one(register: u32, bytes: u32, len: u8) -> Step {
    let effect = match words(bytes) {
        Some(count @ 1..) => Effect::Push(1 << register, count - 1),
        _ => Effect::Unknown,
    };
    Step::new(len, effect, Way::On)
}

fn pop_one(register: u32, bytes: u32, len: u8) -> Step {
    let way = if register == 15 { Way::Away } else { Way::On };
    let effect = match words(bytes) {
        Some(1) => Effect::Pop(1 << register),
        Some(count) => Effect::Down(-count),
        None => Effect::Unknown,
    };
    Step::new(len, effect, way)
}

/// `strd rt, rt2, [sp, #-imm]!`, which stores the first lowest.
fn push_two(second: u32) -> Step {
    let (one, two) = (second >> 12, second >> 8 & 15);
    let words = (second & 0xff) as i16;
    let effect = if one < two && words >= 2 {
        Effect::Push(1 << one | 1 << two, words - 2)
    } else {
        Effect::Unknown
    };
    Step::new(4, effect, Way::On)
}

/// The stack pointer and a constant.
fn sum(to: u8, bytes: Option<u32>, is_down: bool) -> Step {
    if u32::from(to) == SP {
        return down(4, bytes, is_down);
    }
    let effect = match bytes.and_then(words) {
        Some(words) => Effect::Frame(to, if is_down { -words } else { words }),
        None => Effect::None,
    };
    Step::new(4, effect, Way::On)
}

/// The constant that 12 bits of a Thumb instruction stand for.
fn expand(value: u32) -> Option<u32> {
    let low = value & 0xff;
    match value >> 8 {
        0 => Some(low),
        1 => Some(low << 16 | low),
        2 => Some(low << 24 | low << 8),
        3 => Some(low * 0x0101_0101),
        _ => Some((0x80 | value & 0x7f).rotate_right(value >> 7)),
    }
}

/// Thumb's wide branches and calls.
fn branch(first: u32, second: u32) -> Step {
    let step = |way| Step::new(4, Effect::None, way);
    let sign = first >> 10 & 1;
    match second & 0x5000 {
        // bl, blx
        0x4000 | 0x5000 => step(Way::Call),
        0x1000 => {
            let bit = |j: u32| !(j ^ sign) & 1;
            let (high, low) = (bit(second >> 13), bit(second >> 11));
            let offset =
                sign << 24 | high << 23 | low << 22 | (first & 0x3ff) << 12 | (second & 0x7ff) << 1;
            step(Way::Jump(((offset << 7).cast_signed() >> 7) + 4))
        }
        // Conditions 14 and 15 are system instructions.
        _ if first >> 6 & 14 == 14 => step(Way::On),
        _ => {
            let offset = sign << 20
                | (second >> 11 & 1) << 19
                | (second >> 13 & 1) << 18
                | (first & 0x3f) << 12
                | (second & 0x7ff) << 1;
            step(Way::Branch(((offset << 11).cast_signed() >> 11) + 4))
        }
    }
}

/// The ARM instruction at the start of code.
pub(super) fn arm(code: &[u8]) -> Option<Step> {
    let word = u32::from_le_bytes(*code.first_chunk()?);
    let condition = word >> 28;
    if condition == 15 {
        // blx of Thumb code, or nothing that counts.
        let way = if word & 0xfe00_0000 == 0xfa00_0000 {
            Way::Call
        } else {
            Way::On
        };
        return Some(Step::new(4, Effect::None, way));
    }
    let step = always(word & 0x0fff_ffff);
    if condition == 14 {
        return Some(step);
    }
    let way = match step.way {
        Way::Jump(to) => Way::Branch(to),
        way => way,
    };
    Some(Step {
        way,
        condition: Some((condition & 15) as u8),
        ..step
    })
}

fn always(word: u32) -> Step {
    let step = |effect, way| Step::new(4, effect, way);
    let to = (word >> 12 & 15) as u8;
    let constant = (word & 0xff).rotate_right((word >> 8 & 15) * 2);
    match word & 0x0fff_0000 {
        0x092d_0000 => return step(Effect::Push(word as u16, 0), Way::On),
        0x08bd_0000 => return pop(4, word as u16),
        0x052d_0000 => return push_one(u32::from(to), word & 0xfff, 4),
        0x049d_0000 => return pop_one(u32::from(to), word & 0xfff, 4),
        0x0d2d_0000 | 0x0d6d_0000 if word & 0x0e00 == 0x0a00 => {
            return down(4, Some((word & 0xff) * 4), true);
        }
        0x0cbd_0000 | 0x0cfd_0000 if word & 0x0e00 == 0x0a00 => {
            return down(4, Some((word & 0xff) * 4), false);
        }
        _ => {}
    }
    match word & 0x0fff_f000 {
        0x024d_d000 => return down(4, Some(constant), true),
        0x028d_d000 => return down(4, Some(constant), false),
        _ => {}
    }
    match word & 0x0ff0_f000 {
        // sub sp, rn, #imm; add sp, rn, #imm
        0x0240_d000 | 0x0280_d000 => {
            let from = (word >> 16 & 15) as u8;
            let effect = words(constant).map_or(Effect::Unknown, |words| {
                Effect::FromFrame(
                    from,
                    if word & 0x0080_0000 != 0 {
                        words
                    } else {
                        -words
                    },
                )
            });
            return step(effect, Way::On);
        }
        _ => {}
    }
    match word {
        // add rd, sp, #imm; mov rd, sp; mov sp, rm
        _ if word & 0x0fff_0000 == 0x028d_0000 => {
            let effect = words(constant).map_or(Effect::None, |words| Effect::Frame(to, words));
            step(effect, Way::On)
        }
        _ if word & 0x0fff_0fff == 0x01a0_000d => step(Effect::Frame(to, 0), Way::On),
        _ if word & 0x0fff_fff0 == 0x01a0_d000 => {
            step(Effect::FromFrame((word & 15) as u8, 0), Way::On)
        }
        _ if word & 0x0f00_0000 == 0x0b00_0000 => step(Effect::None, Way::Call),
        _ if word & 0x0f00_0000 == 0x0a00_0000 => {
            let distance = ((word << 8).cast_signed() >> 6) + 8;
            step(Effect::None, Way::Jump(distance))
        }
        _ if word & 0x0fff_fff0 == 0x012f_ff30 => step(Effect::None, Way::Call),
        _ if word & 0x0fff_fff0 == 0x012f_ff10 => step(Effect::None, Way::Away),
        // ldm with pc; anything else that loads pc or computes it
        _ if word & 0x0e10_8000 == 0x0810_8000 => step(Effect::Unknown, Way::Away),
        0x01a0_f00e => step(Effect::None, Way::Away),
        _ if is_load_or_sum(word) && to == 15 => step(Effect::None, Way::Table),
        _ if is_load_or_sum(word) && to == 13 => step(Effect::Unknown, Way::On),
        _ => step(Effect::None, Way::On),
    }
}

/// Whether bits 12 to 15 name a register that is written: data processing without comparisons, loads.
const fn is_load_or_sum(word: u32) -> bool {
    let compares = word & 0x0180_0000 == 0x0100_0000;
    match word >> 26 & 3 {
        // Multiplications have their target elsewhere.
        0 => !compares && word & 0x0200_0090 != 0x90,
        1 => word & 0x0010_0000 != 0,
        _ => false,
    }
}

/// Whether bytes end with a call, in either instruction set.
pub(super) fn ends_with_call(before: &[u8]) -> bool {
    ends_with_register_call(before) || ends_with_direct_call(before) || ends_with_old_call(before)
}

fn ends_with_direct_call(before: &[u8]) -> bool {
    let Some(word) = last_word(before) else {
        return false;
    };
    let (first, second) = (word & 0xffff, word >> 16);
    let thumb = first >> 11 == 0b11110 && second & 0xc000 == 0xc000;
    let arm = word & 0x0f00_0000 == 0x0b00_0000 && word >> 28 != 15;
    thumb || arm || word & 0xfe00_0000 == 0xfa00_0000
}

/// Whether they end with a call of what a register holds.
pub(super) fn ends_with_register_call(before: &[u8]) -> bool {
    let narrow = before.last_chunk().map(|half| u16::from_le_bytes(*half));
    let thumb = narrow.is_some_and(|half| half & 0xff87 == 0x4780);
    thumb || last_word(before).is_some_and(|word| word & 0x0fff_fff0 == 0x012f_ff30)
}

/// `mov lr, pc` and what sets the pc, as before ARMv5.
fn ends_with_old_call(before: &[u8]) -> bool {
    let Some([.., a, b, c, d, _, _, _, _]) = before.get(before.len().saturating_sub(8)..) else {
        return false;
    };
    let moved = u32::from_le_bytes([*a, *b, *c, *d]) == 0xe1a0_e00f;
    let away = last_word(before).map(|word| always(word & 0x0fff_ffff).way);
    moved && matches!(away, Some(Way::Away | Way::Table))
}

fn last_word(bytes: &[u8]) -> Option<u32> {
    bytes.last_chunk().map(|word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls() {
        let thumb = |halves: &[u16]| {
            let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
            ends_with_call(&bytes)
        };
        assert!(thumb(&[0xbf00, 0xbf00, 0xf7ff, 0xfeb8]), "bl");
        assert!(thumb(&[0xbf00, 0xbf00, 0xf7ff, 0xeeb8]), "blx");
        assert!(thumb(&[0xbf00, 0x47e0]), "blx r12");
        assert!(!thumb(&[0xbf00, 0xbf00, 0xf7ff, 0xbeb8]), "b.w");
        assert!(!thumb(&[0xbf00, 0x4770]), "bx lr");
        assert!(!thumb(&[]));
        let arm = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            ends_with_call(&bytes)
        };
        assert!(arm(&[0xebff_fffe]), "bl");
        assert!(arm(&[0x0b00_0000]), "bleq");
        assert!(arm(&[0xe12f_ff33]), "blx r3");
        assert!(arm(&[0xe1a0_e00f, 0xe12f_ff13]), "mov lr, pc; bx r3");
        assert!(arm(&[0xe1a0_e00f, 0xe590_f000]), "mov lr, pc; ldr pc, [r0]");
        assert!(!arm(&[0xe1a0_0000, 0xe12f_ff13]), "bx r3");
        assert!(!arm(&[0xe1a0_0000]), "nop");
    }

    #[test]
    fn branches_lead_where_they_say() {
        let way = |halves: &[u16]| {
            let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
            thumb(&bytes).map(|step| step.way)
        };
        // As llvm-objdump prints them.
        assert_eq!(way(&[0xd020]), Some(Way::Branch(64 + 4)), "beq #64");
        assert_eq!(way(&[0xd1e7]), Some(Way::Branch(-50 + 4)), "bne #-50");
        assert_eq!(way(&[0xe7e9]), Some(Way::Jump(-46 + 4)), "b #-46");
        assert_eq!(way(&[0xb343]), Some(Way::Branch(80 + 4)), "cbz r3, #80");
        assert_eq!(
            way(&[0xf0c0, 0x8124]),
            Some(Way::Branch(584 + 4)),
            "blo.w #584"
        );
        assert_eq!(
            way(&[0xf42b, 0xa807]),
            Some(Way::Branch(-86002 + 4)),
            "beq.w"
        );
        assert_eq!(
            arm(&0x1aff_fffbu32.to_le_bytes()).map(|s| s.way),
            Some(Way::Branch(-20 + 8))
        );
        assert_eq!(
            arm(&0xeaff_ff1du32.to_le_bytes()).map(|s| s.way),
            Some(Way::Jump(-908 + 8))
        );
    }

    #[test]
    fn constants() {
        assert_eq!(expand(0x0ff), Some(0xff));
        assert_eq!(expand(0x1ab), Some(0x00ab_00ab));
        // sub.w sp, sp, #1024: f5ad 6d80
        assert_eq!(wide(0xf5ad, 0x6d80).effect, Effect::Down(256));
        // add.w r7, sp, #8: f10d 0708
        assert_eq!(wide(0xf10d, 0x0708).effect, Effect::Frame(7, 2));
        // addw sp, sp, #4092: f60d 7dfc
        assert_eq!(wide(0xf60d, 0x7dfc).effect, Effect::Down(-1023));
        // vpush {d8-d9}: ed2d 8b04
        assert_eq!(wide(0xed2d, 0x8b04).effect, Effect::Down(4));
    }
}
