//! x86: iced-x86, with the rules by which objdump 2.40 writes otherwise ([`rules`]).

mod rules;

use std::fmt::Write as _;

use iced_x86::{
    Decoder, DecoderError, DecoderOptions, Formatter, FormatterOutput, FormatterTextKind,
    GasFormatter, IntelFormatter, Mnemonic, OpKind,
};

use super::{Disassembler, Flow, Instruction, Syntax};

/// The disassembler for 32 or 64 bits.
pub(super) struct X86 {
    bits: u32,
    formatter: Box<dyn Formatter>,
    syntax: Syntax,
}

impl X86 {
    pub(super) fn new(bits: u32, syntax: Syntax) -> Self {
        let mut formatter: Box<dyn Formatter> = match syntax {
            Syntax::Att => Box::new(GasFormatter::new()),
            Syntax::Intel => Box::new(IntelFormatter::new()),
        };
        settle(formatter.options_mut(), syntax);
        Self {
            bits,
            formatter,
            syntax,
        }
    }
}

/// Takes the formatter's words: targets of jumps stand without `0x`.
struct Text<'t>(&'t mut String);

impl FormatterOutput for Text<'_> {
    fn write(&mut self, text: &str, kind: FormatterTextKind) {
        let is_target = matches!(
            kind,
            FormatterTextKind::LabelAddress | FormatterTextKind::FunctionAddress
        );
        let text = text
            .strip_prefix("0x")
            .filter(|_| is_target)
            .unwrap_or(text);
        self.0.push_str(text);
    }
}

/// The settings that come nearest to objdump.
fn settle(options: &mut iced_x86::FormatterOptions, syntax: Syntax) {
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_add_leading_zero_to_hex_numbers(false);
    options.set_leading_zeros(false);
    options.set_branch_leading_zeros(false);
    options.set_displacement_leading_zeros(false);
    options.set_first_operand_char_index(7);
    options.set_rip_relative_addresses(true);
    options.set_signed_memory_displacements(true);
    options.set_signed_immediate_operands(false);
    options.set_always_show_scale(true);
    options.set_show_zero_displacements(true);
    options.set_show_useless_prefixes(true);
    options.set_show_branch_size(false);
    options.set_gas_show_mnemonic_size_suffix(false);
    if syntax == Syntax::Intel {
        options.set_memory_size_options(iced_x86::MemorySizeOptions::Always);
        options.set_uppercase_keywords(true);
    }
}

impl Disassembler for X86 {
    fn decode(&mut self, bytes: &[u8], address: u64, text: &mut String) -> Instruction {
        text.clear();
        let mut decoder =
            Decoder::with_ip(self.bits, bytes, address, DecoderOptions::NO_INVALID_CHECK);
        let found = decoder.decode();
        if found.is_invalid() {
            if decoder.last_error() == DecoderError::NoMoreBytes {
                let _ = write!(text, ".byte {:#x}", bytes[0]);
            } else {
                text.push_str("(bad)");
            }
            return Instruction {
                len: 1,
                is_bad: true,
                ..Instruction::default()
            };
        }
        self.formatter.format(&found, &mut Text(text));
        let code = &bytes[..found.len().min(bytes.len())];
        rules::mend(self.syntax, &found, code, text);
        facts(&found)
    }
}

/// What the view wants to know.
fn facts(found: &iced_x86::Instruction) -> Instruction {
    let is_near = matches!(
        found.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    let flow = match found.mnemonic() {
        Mnemonic::Jmp | Mnemonic::Ret | Mnemonic::Retf | Mnemonic::Iretq | Mnemonic::Sysretq => {
            Flow::Leaves
        }
        Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2 | Mnemonic::Hlt | Mnemonic::Int3 => {
            Flow::Leaves
        }
        Mnemonic::Call => Flow::Branch,
        _ if is_near => Flow::Branch,
        _ => Flow::Next,
    };
    Instruction {
        len: u8::try_from(found.len()).unwrap_or(1),
        flow,
        target: is_near.then(|| found.near_branch_target()),
        memory: found
            .is_ip_rel_memory_operand()
            .then(|| found.ip_rel_memory_address()),
        immediate: (found.op_count() == 2 && found.op1_kind() == OpKind::Immediate64)
            .then(|| found.immediate64()),
        comment: "",
        is_bad: false,
    }
}
