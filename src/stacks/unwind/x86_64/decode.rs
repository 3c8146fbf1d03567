//! Just enough x86-64 decoding to follow the stack pointer through straight code.
//!
//! In: bytes at an instruction boundary. Out: the instruction's length and what it does to the stack and
//! to the flow of control. Opcode map: Intel SDM volume 2, appendix A. Unknown opcodes end the decoding
//! rather than being guessed.

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Instruction {
    pub(super) len: usize,
    pub(super) effect: Effect,
}

/// What an instruction does, as far as unwinding cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Neither stack pointer nor flow.
    Other,
    /// `push r64` (the register's number), or of something else (`None`).
    Push(Option<u8>),
    /// `pop r64`, or to memory.
    Pop(Option<u8>),
    /// `add`/`sub rsp, imm` or `lea rsp, [rsp+imm]`: bytes by which rsp grows.
    AddSp(i32),
    /// `mov rbp, rsp`
    SetFp,
    /// `mov rsp, rbp`, or `lea rsp, [rbp+imm]`.
    SpFromFp(i32),
    /// `mov [rsp+imm], rbp`
    StoreFp(i32),
    /// `mov rbp, [rsp+imm]`
    LoadFp(i32),
    /// `mov rbp, [rbp+imm]`
    LoadFpFromFrame(i32),
    /// `xor ebp, ebp`
    ClearFp,
    /// Writes something else to rbp.
    WriteFp,
    /// `leave`
    Leave,
    /// `ret`
    Return,
    /// Near call.
    Call,
    /// Conditional jump, with its distance from the end of the instruction.
    Branch(i32),
    /// `jmp`, with its distance from the end of the instruction if direct.
    Jump(Option<i32>),
    /// Writes rsp in a way that cannot be followed, or never goes on.
    Stop,
}

const RSP: u8 = 4;
const RBP: u8 = 5;

/// Decodes one instruction; `None` at the end of the bytes or at an unknown opcode.
pub(super) fn decode(code: &[u8]) -> Option<Instruction> {
    let mut at = 0;
    let mut wide_operand = true;
    while let byte @ (0x66 | 0xf2 | 0xf3 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65) =
        *code.get(at)?
    {
        wide_operand &= byte != 0x66;
        at += 1;
        if at > 14 {
            return None;
        }
    }
    let mut rex = 0;
    if let byte @ 0x40..=0x4f = *code.get(at)? {
        rex = byte;
        at += 1;
    }
    let opcode = *code.get(at)?;
    let body = code.get(at + 1..)?;
    let (len, effect) = match opcode {
        0x0f => two_byte(rex, body)?,
        0xc5 => vector(body.first().map(|_| 1)?, 1, body)?,
        0xc4 => vector(2, body.first()? & 0x1f, body)?,
        0x62 => vector(3, body.first()? & 0x07, body)?,
        _ => one_byte(opcode, rex, wide_operand, body)?,
    };
    let len = at + 1 + len;
    (len <= code.len()).then_some(Instruction { len, effect })
}

/// VEX and EVEX: `prefix` bytes, then opcode, ModRM and, in some, an immediate byte.
fn vector(prefix: usize, map: u8, body: &[u8]) -> Option<(usize, Effect)> {
    let opcode = *body.get(prefix)?;
    let rest = body.get(prefix + 1..)?;
    if map == 1 && opcode == 0x77 {
        return Some((prefix + 1, Effect::Other));
    }
    let immediate = match map {
        1 => usize::from(matches!(opcode, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6)),
        2 => 0,
        3 => 1,
        _ => return None,
    };
    Some((prefix + 1 + modrm_len(rest)? + immediate, Effect::Other))
}

fn two_byte(rex: u8, body: &[u8]) -> Option<(usize, Effect)> {
    let opcode = *body.first()?;
    let rest = &body[1..];
    let plain = |immediate: usize| Some((1 + modrm_len(rest)? + immediate, Effect::Other));
    match opcode {
        0x0b | 0x07 | 0x34 | 0x35 => Some((1, Effect::Stop)),
        // The kernel gives the stack pointer back as it was.
        0x05 => Some((1, Effect::Other)),
        // Conditional moves, multiplication, extension.
        0x40..=0x4f | 0xaf | 0xb6 | 0xb7 | 0xbe | 0xbf => {
            let destination = rest.first()? >> 3 & 7 | (rex & 4) << 1;
            Some((1 + modrm_len(rest)?, written(destination)))
        }
        0x06 | 0x08 | 0x09 | 0x0e | 0x30..=0x33 | 0x77 | 0xa2 | 0xaa | 0xc8..=0xcf => {
            Some((1, Effect::Other))
        }
        0x80..=0x8f => Some((5, Effect::Branch(distance32(rest)?))),
        0xa0 | 0xa8 => Some((1, Effect::Push(None))),
        0xa1 | 0xa9 => Some((1, Effect::Pop(None))),
        0x38 => Some((2 + modrm_len(rest.get(1..)?)?, Effect::Other)),
        0x3a => Some((3 + modrm_len(rest.get(1..)?)?, Effect::Other)),
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => plain(1),
        0x04 | 0x0a | 0x0c | 0x24..=0x27 | 0x36..=0x37 | 0x39 | 0x3b..=0x3f => None,
        _ => plain(0),
    }
}

fn one_byte(opcode: u8, rex: u8, wide: bool, body: &[u8]) -> Option<(usize, Effect)> {
    let extend = |bit: u8, low: u8| low | u8::from(rex & bit != 0) << 3;
    let immediate = if wide { 4 } else { 2 };
    let with_modrm = |trailing: usize| Some((modrm_len(body)? + trailing, Effect::Other));
    match opcode {
        0x50..=0x57 => Some((0, Effect::Push(Some(extend(1, opcode & 7))))),
        0x58..=0x5f => Some((0, pop(extend(1, opcode & 7)))),
        0x81 | 0x83 => arithmetic(opcode, rex, immediate, body),
        0x89 | 0x8b | 0x8d => move_or_lea(opcode, rex, body),
        0x8f => Some((modrm_len(body)?, Effect::Pop(None))),
        0x01 | 0x03 | 0x09 | 0x0b | 0x21 | 0x23 | 0x29 | 0x2b | 0x31 | 0x33 => {
            // Operations on two registers; rsp as the destination cannot be followed.
            let (modrm, len) = (*body.first()?, modrm_len(body)?);
            let destination = if opcode & 2 == 0 {
                extend(1, modrm & 7)
            } else {
                extend(4, modrm >> 3 & 7)
            };
            let to_register = opcode & 2 != 0 || modrm >> 6 == 3;
            let clears = matches!((opcode, modrm), (0x31 | 0x33, 0xed)) && rex & 5 == 0;
            let effect = if clears {
                Effect::ClearFp
            } else if to_register {
                written(destination)
            } else {
                Effect::Other
            };
            Some((len, effect))
        }
        0x68 => Some((4, Effect::Push(None))),
        0x6a => Some((1, Effect::Push(None))),
        0x9c => Some((0, Effect::Push(None))),
        0x9d => Some((0, Effect::Pop(None))),
        0x70..=0x7f | 0xe0..=0xe3 => Some((1, Effect::Branch(distance8(body)?))),
        0xc2 => Some((2, Effect::Return)),
        0xc3 => Some((0, Effect::Return)),
        0xc9 => Some((0, Effect::Leave)),
        0xe8 => Some((4, Effect::Call)),
        0xe9 => Some((4, Effect::Jump(Some(distance32(body)?)))),
        0xeb => Some((1, Effect::Jump(Some(distance8(body)?)))),
        0xcc | 0xcd | 0xc8 | 0xcf | 0xf4 => Some((0, Effect::Stop)),
        0xff => {
            let len = modrm_len(body)?;
            Some((
                len,
                match body.first()? >> 3 & 7 {
                    2 | 3 => Effect::Call,
                    4 | 5 => Effect::Jump(None),
                    6 => Effect::Push(None),
                    _ => Effect::Other,
                },
            ))
        }
        0x69 | 0xc7 => with_modrm(immediate),
        0x6b | 0x80 | 0xc0 | 0xc1 | 0xc6 => with_modrm(1),
        0xf6 => with_modrm(usize::from(body.first()? >> 3 & 7 < 2)),
        0xf7 => with_modrm(if body.first()? >> 3 & 7 < 2 {
            immediate
        } else {
            0
        }),
        0xb8..=0xbf => Some((
            if rex & 8 != 0 { 8 } else { immediate },
            written(extend(1, opcode & 7)),
        )),
        0x00..=0x3f => match opcode & 7 {
            0..=3 => with_modrm(0),
            4 => Some((1, Effect::Other)),
            5 => Some((immediate, Effect::Other)),
            _ => None,
        },
        0x63 | 0x84..=0x8e | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe => with_modrm(0),
        0x90..=0x99
        | 0x9b
        | 0x9e
        | 0x9f
        | 0xa4..=0xa7
        | 0xaa..=0xaf
        | 0xec..=0xef
        | 0xf5
        | 0xf8..=0xfd => Some((0, Effect::Other)),
        0xa0..=0xa3 => Some((8, Effect::Other)),
        0xa8 | 0xb0..=0xb7 | 0xe4..=0xe7 => Some((1, Effect::Other)),
        0xa9 => Some((immediate, Effect::Other)),
        _ => None,
    }
}

/// What it means that a register gets a value that nobody follows.
const fn written(register: u8) -> Effect {
    match register {
        RSP => Effect::Stop,
        RBP => Effect::WriteFp,
        _ => Effect::Other,
    }
}

fn distance8(body: &[u8]) -> Option<i32> {
    body.first().map(|byte| i32::from(byte.cast_signed()))
}

fn distance32(body: &[u8]) -> Option<i32> {
    body.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

const fn pop(register: u8) -> Effect {
    if register == RSP {
        Effect::Stop
    } else {
        Effect::Pop(Some(register))
    }
}

/// `81`/`83`: `add`, `sub` and the like with an immediate.
fn arithmetic(opcode: u8, rex: u8, immediate: usize, body: &[u8]) -> Option<(usize, Effect)> {
    let modrm = *body.first()?;
    let len = modrm_len(body)?;
    let size = if opcode == 0x83 { 1 } else { immediate };
    let compares = modrm >> 3 & 7 == 7;
    if modrm & 0xc7 == 0xc0 | RBP && rex & 1 == 0 && !compares {
        return Some((len + size, Effect::WriteFp));
    }
    if modrm & 0xc7 != 0xc0 | RSP || rex & 1 != 0 {
        return Some((len + size, Effect::Other));
    }
    let bytes = body.get(len..len + size)?;
    let value = match size {
        1 => i32::from(bytes[0].cast_signed()),
        4 => i32::from_le_bytes(*bytes.first_chunk()?),
        _ => return None,
    };
    let effect = match modrm >> 3 & 7 {
        0 => Effect::AddSp(value),
        5 => Effect::AddSp(value.checked_neg()?),
        7 => Effect::Other,
        _ => Effect::Stop,
    };
    Some((len + size, effect))
}

/// `89`, `8b` and `8d`: `mov` and `lea`.
fn move_or_lea(opcode: u8, rex: u8, body: &[u8]) -> Option<(usize, Effect)> {
    let modrm = *body.first()?;
    let len = modrm_len(body)?;
    let reg = modrm >> 3 & 7 | (rex & 4) << 1;
    let rm = modrm & 7 | (rex & 1) << 3;
    let register_form = modrm >> 6 == 3;
    let effect = match opcode {
        0x8d if reg == RSP => match address(rex, body) {
            Some((RSP, offset)) => Effect::AddSp(offset),
            Some((RBP, offset)) => Effect::SpFromFp(offset),
            _ => Effect::Stop,
        },
        0x8d if reg == RBP => Effect::WriteFp,
        0x8d => Effect::Other,
        _ if register_form => {
            let (to, from) = if opcode == 0x89 { (rm, reg) } else { (reg, rm) };
            match (to, from) {
                (RBP, RSP) => Effect::SetFp,
                (RSP, RBP) => Effect::SpFromFp(0),
                (RSP, _) => Effect::Stop,
                (RBP, _) => Effect::WriteFp,
                _ => Effect::Other,
            }
        }
        0x89 if reg == RBP && rex & 8 != 0 => match address(rex, body) {
            Some((RSP, offset)) => Effect::StoreFp(offset),
            _ => Effect::Other,
        },
        0x8b if reg == RSP => Effect::Stop,
        0x8b if reg == RBP => match address(rex, body) {
            Some((RSP, offset)) if rex & 8 != 0 => Effect::LoadFp(offset),
            Some((RBP, offset)) if rex & 8 != 0 => Effect::LoadFpFromFrame(offset),
            _ => Effect::WriteFp,
        },
        _ => Effect::Other,
    };
    Some((len, effect))
}

/// Base register and offset of a memory operand without index.
fn address(rex: u8, body: &[u8]) -> Option<(u8, i32)> {
    let modrm = *body.first()?;
    let mut base = modrm & 7;
    let mut at = 1;
    if base == 4 {
        let sib = *body.get(1)?;
        if sib >> 3 & 7 != 4 || rex & 2 != 0 {
            return None;
        }
        base = sib & 7;
        at = 2;
    }
    let offset = match modrm >> 6 {
        0 if base != 5 => 0,
        1 => i32::from(body.get(at)?.cast_signed()),
        2 => i32::from_le_bytes(*body.get(at..)?.first_chunk()?),
        _ => return None,
    };
    Some((base | (rex & 1) << 3, offset))
}

/// Length of ModRM, SIB and displacement.
fn modrm_len(body: &[u8]) -> Option<usize> {
    let modrm = *body.first()?;
    let (mode, rm) = (modrm >> 6, modrm & 7);
    let sib = usize::from(mode != 3 && rm == 4);
    let displacement = match mode {
        0 if rm == 5 => 4,
        0 if rm == 4 && body.get(1)? & 7 == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(1 + sib + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(code: &[u8]) -> Instruction {
        decode(code).expect("is an instruction")
    }

    #[test]
    fn effects() {
        let cases: &[(&[u8], Effect)] = &[
            (&[0x55], Effect::Push(Some(5))),
            (&[0x41, 0x57], Effect::Push(Some(15))),
            (&[0x41, 0x5c], Effect::Pop(Some(12))),
            (&[0x48, 0x89, 0xe5], Effect::SetFp),
            (&[0x48, 0x8b, 0xec], Effect::SetFp),
            (&[0x48, 0x89, 0xec], Effect::SpFromFp(0)),
            (&[0x48, 0x8d, 0x65, 0xd8], Effect::SpFromFp(-40)),
            (&[0x48, 0x83, 0xec, 0x18], Effect::AddSp(-24)),
            (&[0x48, 0x81, 0xec, 0, 1, 0, 0], Effect::AddSp(-256)),
            (&[0x48, 0x83, 0xc4, 0x18], Effect::AddSp(24)),
            (&[0x48, 0x8d, 0x64, 0x24, 0xf8], Effect::AddSp(-8)),
            (&[0x48, 0x83, 0xe4, 0xf0], Effect::Stop),
            (&[0x48, 0x83, 0xfc, 0x10], Effect::Other),
            (&[0x48, 0x89, 0x6c, 0x24, 0x10], Effect::StoreFp(16)),
            (&[0x48, 0x8b, 0x6c, 0x24, 0x10], Effect::LoadFp(16)),
            (&[0x48, 0x8b, 0x6d, 0x00], Effect::LoadFpFromFrame(0)),
            (&[0x48, 0x8b, 0x6f, 0x08], Effect::WriteFp),
            (&[0x75, 0xfe], Effect::Branch(-2)),
            (&[0x48, 0x8d, 0x6c, 0x24, 0x10], Effect::WriteFp),
            (&[0x8b, 0xe8], Effect::WriteFp),
            (&[0x31, 0xed], Effect::ClearFp),
            (&[0x48, 0x31, 0xed], Effect::ClearFp),
            (&[0x45, 0x31, 0xed], Effect::Other),
            (&[0x01, 0xfd], Effect::WriteFp),
            (&[0x01, 0xef], Effect::Other),
            (&[0x83, 0xc5, 0x01], Effect::WriteFp),
            (&[0x83, 0xfd, 0x01], Effect::Other),
            (&[0xbd, 1, 0, 0, 0], Effect::WriteFp),
            (&[0x41, 0xbd, 1, 0, 0, 0], Effect::Other),
            (&[0x0f, 0xb6, 0x2f], Effect::WriteFp),
            (&[0x44, 0x0f, 0xb6, 0x2f], Effect::Other),
            (&[0x0f, 0x05], Effect::Other),
            (&[0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff], Effect::Other),
            (&[0xf3, 0x0f, 0x1e, 0xfa], Effect::Other),
            (&[0x66, 0x66, 0x90], Effect::Other),
            (&[0xc5, 0xf8, 0x77], Effect::Other),
            (&[0x49, 0x3b, 0xa7, 0x40, 3, 0, 0], Effect::Other),
            (&[0x0f, 0x87, 1, 0, 0, 0], Effect::Branch(1)),
            (&[0xff, 0xe0], Effect::Jump(None)),
            (&[0xff, 0xd1], Effect::Call),
            (&[0xc2, 8, 0], Effect::Return),
            (&[0xc9], Effect::Leave),
            (&[0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8], Effect::Other),
            (&[0x41, 0xf7, 0xc5, 1, 0, 0, 0], Effect::Other),
            (&[0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1], Effect::Other),
        ];
        for (code, effect) in cases {
            assert_eq!(
                one(code),
                Instruction {
                    len: code.len(),
                    effect: *effect
                },
                "{code:02x?}"
            );
        }
    }

    #[test]
    fn cut_instructions_are_refused() {
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0x48]), None);
        assert_eq!(decode(&[0x48, 0x81, 0xec, 0]), None);
        assert_eq!(decode(&[0x66; 40]), None);
        assert_eq!(decode(&[0xe8, 0, 0]), None);
    }
}
