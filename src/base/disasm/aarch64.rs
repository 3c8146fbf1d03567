//! aarch64: yaxpeax-arm, with the rules by which objdump 2.40 writes otherwise ([`rules`]).

mod rules;

use std::fmt::Write as _;

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction as Decoded, Opcode, Operand};

use super::{Disassembler, Flow, Instruction};

/// The disassembler.
#[derive(Default)]
pub(super) struct Aarch64 {
    decoder: InstDecoder,
    /// What the library writes.
    raw: String,
}

impl Disassembler for Aarch64 {
    fn decode(&mut self, bytes: &[u8], address: u64, text: &mut String) -> Instruction {
        text.clear();
        let Some(word) = bytes.first_chunk::<4>() else {
            let _ = write!(text, ".byte\t{:#04x}", bytes.first().unwrap_or(&0));
            return bad(1);
        };
        let number = u32::from_le_bytes(*word);
        let found: Result<Decoded, _> = self.decoder.decode(&mut U8Reader::new(word));
        let Ok(found) = found else {
            let _ = write!(text, ".inst\t{number:#010x} ; undefined");
            return bad(4);
        };
        self.raw.clear();
        let _ = write!(self.raw, "{found}");
        rules::write(number, &self.raw, address, text);
        Instruction {
            comment: rules::comment(text),
            ..facts(&found, address)
        }
    }
}

fn bad(len: u8) -> Instruction {
    Instruction {
        len,
        is_bad: true,
        ..Instruction::default()
    }
}

/// What the view wants to know.
fn facts(found: &Decoded, address: u64) -> Instruction {
    use Opcode as O;
    let place = found.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) if found.opcode == Opcode::ADRP => {
            Some((address & !0xfff).wrapping_add_signed(*offset))
        }
        Operand::PCOffset(offset) => Some(address.wrapping_add_signed(*offset)),
        _ => None,
    });
    let flow = match found.opcode {
        O::B | O::BR | O::RET | O::ERET | O::UDF => Flow::Leaves,
        O::BL | O::BLR | O::Bcc(_) | O::CBZ | O::CBNZ | O::TBZ | O::TBNZ => Flow::Branch,
        _ => Flow::Next,
    };
    let is_branch = flow != Flow::Next;
    Instruction {
        len: 4,
        flow,
        target: place.filter(|_| is_branch),
        memory: place.filter(|_| !is_branch),
        ..Instruction::default()
    }
}
