//! Where objdump 2.40 writes an aarch64 instruction otherwise than yaxpeax-arm: names ([`NAMES`], [`hint`], [`system`]) and how
//! numbers and lists of registers are written ([`Operands`]).

use std::borrow::Cow;
use std::fmt::Write as _;

/// Writes an instruction: `raw` is the library's text.
pub(super) fn write(word: u32, raw: &str, address: u64, out: &mut String) {
    let (mnemonic, operands) = raw.split_once(' ').unwrap_or((raw, ""));
    if let Some((name, operand)) = hint(mnemonic, operands).or_else(|| cache(mnemonic, operands)) {
        out.push_str(name);
        if !operand.is_empty() {
            let _ = write!(out, "\t{operand}");
        }
        return;
    }
    if mnemonic == "mov" && is_long_move(word, operands) {
        return long_move(word, operands, out);
    }
    let (mnemonic, operands) = widened(mnemonic, operands);
    let operands = range(extended(word, operands));
    let mnemonic = renamed(mnemonic, &operands);
    out.push_str(mnemonic);
    if operands.is_empty() {
        return;
    }
    out.push('\t');
    Operands {
        mnemonic,
        is_decimal: is_decimal(mnemonic, &operands),
        memory: Memory::Before,
        address,
        out,
    }
    .write(&operands);
    explain(mnemonic, out);
}

/// What objdump says behind a branch on a condition: the names that it has for vectors of variable length.
pub(super) fn comment(text: &str) -> &'static str {
    const COMMENTS: &[(&str, &str)] = &[
        ("eq", "  // b.none"),
        ("ne", "  // b.any"),
        ("cs", "  // b.hs, b.nlast"),
        ("cc", "  // b.lo, b.ul, b.last"),
        ("mi", "  // b.first"),
        ("pl", "  // b.nfrst"),
        ("hi", "  // b.pmore"),
        ("ls", "  // b.plast"),
        ("ge", "  // b.tcont"),
        ("lt", "  // b.tstop"),
    ];
    let condition = text
        .strip_prefix("b.")
        .and_then(|rest| rest.split('\t').next());
    let known = COMMENTS.iter().find(|(name, _)| Some(*name) == condition);
    known.map_or("", |(_, comment)| comment)
}

/// Adds what objdump says behind constants and conditions.
fn explain(mnemonic: &str, out: &mut String) {
    const CONDITIONS: &[(&str, &str)] = &[
        ("eq", "eq = none"),
        ("ne", "ne = any"),
        ("cs", "cs = hs, nlast"),
        ("cc", "cc = lo, ul, last"),
        ("mi", "mi = first"),
        ("pl", "pl = nfrst"),
        ("hi", "hi = pmore"),
        ("ls", "ls = plast"),
        ("ge", "ge = tcont"),
        ("lt", "lt = tstop"),
    ];
    if mnemonic == "mov" {
        let Some((at, digits)) = out.find("#0x").map(|at| (at, out.len() - at - 3)) else {
            return;
        };
        let number = value(&out[at + 1..]);
        let is_wide = out.starts_with("mov\tx") || out.starts_with("mov\tsp");
        let number = if is_wide {
            number
        } else {
            i64::from(number as i32)
        };
        let blanks = 20usize.saturating_sub(digits);
        let _ = write!(out, "{:blanks$}\t// #{number}", "");
    } else if mnemonic.starts_with('c') || mnemonic.starts_with("fc") {
        let condition = out.rsplit(", ").next().unwrap_or_default();
        let known = CONDITIONS.iter().find(|(name, _)| *name == condition);
        if let Some((_, names)) = known {
            let _ = write!(out, "\t// {names}");
        }
    }
}

/// Names and operands of hints, by the library's text.
fn hint(mnemonic: &str, operands: &str) -> Option<(&'static str, String)> {
    const HINTS: &[(&str, &str, &str)] = &[
        ("#0x6", "dgh", ""),
        ("#0x7", "xpaclri", ""),
        ("#0x8", "pacia1716", ""),
        ("#0xa", "pacib1716", ""),
        ("#0xc", "autia1716", ""),
        ("#0xe", "autib1716", ""),
        ("#0x18", "paciaz", ""),
        ("#0x19", "paciasp", ""),
        ("#0x1a", "pacibz", ""),
        ("#0x1b", "pacibsp", ""),
        ("#0x1c", "autiaz", ""),
        ("#0x1d", "autiasp", ""),
        ("#0x1e", "autibz", ""),
        ("#0x1f", "autibsp", ""),
        ("#0x20", "bti", ""),
        ("#0x22", "bti", "c"),
        ("#0x24", "bti", "j"),
        ("#0x26", "bti", "jc"),
    ];
    let is_this = |hint: &&(&str, &str, &str)| hint.0 == operands;
    let known = HINTS.iter().filter(|_| mnemonic == "hint").find(is_this)?;
    Some((known.1, known.2.to_owned()))
}

/// Maintenance of caches, which is a system instruction with names for its numbers.
fn cache(mnemonic: &str, operands: &str) -> Option<(&'static str, String)> {
    const OPERATIONS: &[(&str, &str, &str)] = &[
        ("#0x3, c7, c4, #0x1", "dc", "zva"),
        ("#0x3, c7, c4, #0x3", "dc", "gva"),
        ("#0x3, c7, c4, #0x4", "dc", "gzva"),
        ("#0x3, c7, c10, #0x1", "dc", "cvac"),
        ("#0x3, c7, c11, #0x1", "dc", "cvau"),
        ("#0x3, c7, c12, #0x1", "dc", "cvap"),
        ("#0x3, c7, c14, #0x1", "dc", "civac"),
        ("#0x0, c7, c6, #0x1", "dc", "ivac"),
        ("#0x3, c7, c5, #0x1", "ic", "ivau"),
        ("#0x0, c7, c5, #0x0", "ic", "iallu"),
        ("#0x0, c7, c1, #0x0", "ic", "ialluis"),
    ];
    let (operation, register) = operands.rsplit_once(", ").filter(|_| mnemonic == "sys")?;
    let known = OPERATIONS.iter().find(|known| known.0 == operation)?;
    let operand = match register {
        "xzr" => known.2.to_owned(),
        register => format!("{}, {register}", known.2),
    };
    Some((known.1, operand))
}

/// Whether a constant is moved in another way than an assembler would choose for `mov`.
fn is_long_move(word: u32, operands: &str) -> bool {
    let number = operands
        .split_once('#')
        .map(|(_, number)| value(number).cast_unsigned());
    let (is_wide, shift) = (word >> 31 == 1, word >> 21 & 3);
    match (word >> 23 & 0xff, number) {
        // movz, movn
        (0xa5 | 0x25, Some(_)) => word >> 5 & 0xffff == 0 && shift != 0,
        // orr
        (0x64, Some(number)) => is_short(number, is_wide),
        _ => false,
    }
}

/// Whether sixteen bits make the number, the rest being equal.
fn is_short(number: u64, is_wide: bool) -> bool {
    let shifts = if is_wide { 0..4 } else { 0..2 };
    let mask = if is_wide { u64::MAX } else { u32::MAX.into() };
    shifts
        .map(|shift| !(0xffff << (16 * shift)))
        .any(|outside: u64| number & outside & mask == 0 || !number & outside & mask == 0)
}

fn long_move(word: u32, operands: &str, out: &mut String) {
    let register = operands.split(',').next().unwrap_or_default();
    let zero = if word >> 31 == 1 { "xzr" } else { "wzr" };
    let number = operands.split_once('#').map_or("", |(_, number)| number);
    let shift = 16 * (word >> 21 & 3);
    let _ = match word >> 23 & 0xff {
        0xa5 => write!(out, "movz\t{register}, #0x0, lsl #{shift}"),
        0x25 => write!(out, "movn\t{register}, #0x0, lsl #{shift}"),
        _ => write!(out, "orr\t{register}, {zero}, #{number}"),
    };
}

/// Shifts to twice the width by nothing have a name.
fn widened<'t>(mnemonic: &'t str, operands: &'t str) -> (&'t str, &'t str) {
    const NAMES: &[(&str, &str)] = &[
        ("ushll", "uxtl"),
        ("ushll2", "uxtl2"),
        ("sshll", "sxtl"),
        ("sshll2", "sxtl2"),
    ];
    let name = NAMES.iter().find(|(shift, _)| *shift == mnemonic);
    match (name, operands.strip_suffix(", #0x0")) {
        (Some((_, name)), Some(rest)) => (name, rest),
        _ => (mnemonic, operands),
    }
}

/// Sums and differences with an extended register: the library takes two of the extensions for a shift, which they are with
/// the stack pointer.
fn extended(word: u32, operands: &str) -> Cow<'_, str> {
    const EXTENDED: u32 = 0x0b20_0000;
    let is_wide = word >> 31 == 1;
    let sets_flags = word >> 29 & 1 == 1;
    let has_stack = word >> 5 & 31 == 31 || word & 31 == 31 && !sets_flags;
    let name = match word >> 13 & 7 {
        2 if is_wide || !has_stack => "uxtw",
        3 if !has_stack => "uxtx",
        _ => return operands.into(),
    };
    if word & 0x1fe0_0000 != EXTENDED || operands.contains(name) {
        return operands.into();
    }
    match operands.find(", lsl #") {
        Some(_) => operands.replacen("lsl", name, 1).into(),
        None => format!("{operands}, {name}").into(),
    }
}

/// Lists of three registers or more are written as a range.
fn range(operands: Cow<'_, str>) -> Cow<'_, str> {
    let list = operands.find('{').zip(operands.find('}'));
    let Some((start, end)) = list.filter(|(start, end)| start < end) else {
        return operands;
    };
    let names: Vec<&str> = operands[start + 1..end].split(", ").collect();
    match names.as_slice() {
        [first, _, .., last] if names.len() > 2 && number_of(first) < number_of(last) => {
            format!("{}{{{first}-{last}{}", &operands[..start], &operands[end..]).into()
        }
        _ => operands,
    }
}

/// Names that are written otherwise.
fn renamed<'t>(mnemonic: &'t str, operands: &str) -> &'t str {
    const NAMES: &[(&str, &str)] = &[("b.hs", "b.cs"), ("b.lo", "b.cc")];
    let is_lane = || operands.starts_with('v') && operands.ends_with(']');
    if mnemonic == "mov" && is_lane() && !operands[..operands.find(',').unwrap_or(0)].contains('[')
    {
        return "dup";
    }
    let known = NAMES.iter().find(|(name, _)| *name == mnemonic);
    known.map_or(mnemonic, |(_, name)| name)
}

/// Whether the numbers of an instruction count bits, elements or digits.
fn is_decimal(mnemonic: &str, operands: &str) -> bool {
    let mut letters = operands.bytes();
    let is_vector = matches!(
        letters.next(),
        Some(b'v' | b'q' | b'd' | b's' | b'h' | b'b')
    ) && letters.next().is_some_and(|letter| letter.is_ascii_digit());
    let has_bits = matches!(mnemonic, "movi" | "mvni" | "orr" | "bic" | "fmov")
        || mnemonic.starts_with("fcmp")
        || mnemonic.starts_with("fccmp");
    let counts = matches!(
        mnemonic,
        "lsl"
            | "lsr"
            | "asr"
            | "ror"
            | "extr"
            | "ubfiz"
            | "ubfx"
            | "sbfiz"
            | "sbfx"
            | "bfi"
            | "bfxil"
            | "bfc"
            | "tbz"
            | "tbnz"
            | "udf"
            | "fcvtzs"
            | "fcvtzu"
            | "scvtf"
            | "ucvtf"
            | "sys"
            | "sysl"
    );
    counts || is_vector && !has_bits
}

/// Where an operand stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Before,
    Inside,
    Behind,
}

struct Operands<'o> {
    mnemonic: &'o str,
    is_decimal: bool,
    memory: Memory,
    address: u64,
    out: &'o mut String,
}

impl Operands<'_> {
    fn write(&mut self, operands: &str) {
        for (number, operand) in operands.split(", ").enumerate() {
            if number > 0 {
                self.out.push_str(", ");
            }
            self.operand(operand);
        }
    }

    fn operand(&mut self, text: &str) {
        if text.starts_with('[') {
            self.memory = Memory::Inside;
        }
        match text.split_once('#') {
            _ if text.starts_with('$') => self.place(&text[1..]),
            Some((before, number)) => self.number(before, number),
            None => self.word(text),
        }
        if text.contains(']') {
            self.memory = Memory::Behind;
        }
    }

    /// What was relative to the instruction: of `adrp` the page.
    fn place(&mut self, offset: &str) {
        let from = match self.mnemonic {
            "adrp" => self.address & !0xfff,
            _ => self.address,
        };
        let _ = write!(self.out, "{:x}", from.wrapping_add_signed(value(offset)));
    }

    fn number(&mut self, before: &str, text: &str) {
        let end = text.find([']', '!']).unwrap_or(text.len());
        let (number, behind) = text.split_at(end);
        let is_nothing = number == "0" && before.ends_with("sxtw ");
        if is_nothing {
            self.out.push_str(before.trim_end());
        } else if self.mnemonic == "fmov" {
            let value: f64 = number.parse().unwrap_or(0.0);
            let _ = write!(self.out, "{before}#{}", scientific(value));
        } else if self.is_decimal || self.memory != Memory::Before {
            let _ = write!(self.out, "{before}#{}", value(number));
        } else {
            let _ = write!(self.out, "{before}#{number}");
        }
        self.out.push_str(behind);
    }

    fn word(&mut self, text: &str) {
        let is_conditional = self.mnemonic.starts_with('c') || self.mnemonic.starts_with("fc");
        let is_system = matches!(self.mnemonic, "sys" | "sysl") && text.starts_with('c');
        let text = match text {
            "hs" if is_conditional => "cs",
            "lo" if is_conditional => "cc",
            text if is_system => return self.out.push_str(&text.to_uppercase()),
            text => system(text),
        };
        self.out.push_str(text);
    }
}

/// Registers of the system that programs use, by the library's text.
fn system(text: &str) -> &str {
    const NAMES: &[(&str, &str)] = &[
        ("s3_3_c4_c4_0", "fpcr"),
        ("s3_3_c4_c4_1", "fpsr"),
        ("s3_3_c4_c2_0", "nzcv"),
        ("s3_3_c0_c0_1", "ctr_el0"),
        ("s3_3_c0_c0_7", "dczid_el0"),
        ("s3_3_c14_c0_0", "cntfrq_el0"),
        ("s3_3_c14_c0_1", "cntpct_el0"),
        ("s3_3_c14_c0_2", "cntvct_el0"),
        ("s3_3_c13_c0_3", "tpidrro_el0"),
        ("s3_3_c13_c0_5", "tpidr2_el0"),
        ("s3_3_c2_c4_0", "rndr"),
        ("s3_3_c2_c4_1", "rndrrs"),
        ("s3_0_c0_c4_0", "id_aa64pfr0_el1"),
        ("s3_0_c0_c6_0", "id_aa64isar0_el1"),
        ("s3_0_c0_c6_1", "id_aa64isar1_el1"),
        ("s3_0_c0_c7_0", "id_aa64mmfr0_el1"),
        ("s3_0_c4_c1_0", "sp_el0"),
        ("s3_0_c4_c0_0", "spsr_el1"),
        ("s3_0_c4_c0_1", "elr_el1"),
        ("s3_0_c13_c0_4", "tpidr_el1"),
    ];
    let known = NAMES.iter().find(|(library, _)| *library == text);
    known.map_or(text, |(_, name)| name)
}

/// The number of a register in a list.
fn number_of(register: &str) -> u32 {
    let digits = register.trim_start_matches('v');
    let end = digits.find('.').unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

/// As C's `%.18e`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.18e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// The value of `+0x10`, `-0x10`, `0x10` or `10`.
fn value(text: &str) -> i64 {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value: u64 = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap_or(0),
        None => digits.parse().unwrap_or(0),
    };
    let value = value.cast_signed();
    if is_negative {
        value.wrapping_neg()
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use crate::arch::Arch;
    use crate::disasm::{Syntax, for_arch};

    /// Words, and what `objdump -d` of binutils 2.40 prints at 0x1038.
    const EXAMPLES: &[(u32, &str)] = &[
        (0x9100_03fd, "mov\tx29, sp"),
        (0xf947_3c84, "ldr\tx4, [x4, #3704]"),
        (0xa9bf_7bfd, "stp\tx29, x30, [sp, #-16]!"),
        (0xd110_43ff, "sub\tsp, sp, #0x410"),
        (0x9400_0023, "bl\t10c4"),
        (0x9400_0000, "bl\t1038"),
        (0x54ff_ffa2, "b.cs\t102c"),
        (0xb400_00e1, "cbz\tx1, 1054"),
        (0x3708_0760, "tbnz\tw0, #1, 1124"),
        (0xd000_0c64, "adrp\tx4, 18f000"),
        (0x9a81_22c3, "csel\tx3, x22, x1, cs\t// cs = hs, nlast"),
        (0x7a58_0324, "ccmp\tw25, w24, #0x4, eq\t// eq = none"),
        (0xd37c_ef5a, "lsl\tx26, x26, #4"),
        (0xd37c_7eb5, "ubfiz\tx21, x21, #4, #32"),
        (0x3876_c821, "ldrb\tw1, [x1, w22, sxtw]"),
        (0x8b3b_4ebb, "add\tx27, x21, w27, uxtw #3"),
        (0xeb27_405f, "cmp\tx2, w7, uxtw"),
        (0xeb28_605f, "cmp\tx2, x8, uxtx"),
        (0x6b23_409f, "cmp\tw4, w3, uxtw"),
        (0xd503_245f, "bti\tc"),
        (0xd503_233f, "paciasp"),
        (0xd503_201f, "nop"),
        (0xd65f_03c0, "ret"),
        (0xd53b_4401, "mrs\tx1, fpcr"),
        (0xd50b_7423, "dc\tzva, x3"),
        (0xd52b_777f, "sysl\txzr, #3, C7, C7, #3"),
        (0x4e20_9801, "cmeq\tv1.16b, v0.16b, #0"),
        (0x0f0c_8443, "shrn\tv3.8b, v2.8h, #4"),
        (0x6f00_e400, "movi\tv0.2d, #0x0"),
        (0x1e6e_101f, "fmov\td31, #1.000000000000000000e+00"),
        (0x1e60_2008, "fcmp\td0, #0.0"),
        (0x4c40_001c, "ld4\t{v28.16b-v31.16b}, [x0]"),
        (0x4c9f_40b9, "st3\t{v25.16b-v27.16b}, [x5], #48"),
        (0x2f20_a7ff, "uxtl\tv31.2d, v31.2s"),
        (0x4e08_07de, "dup\tv30.2d, v30.d[0]"),
        (0xd2a0_0000, "movz\tx0, #0x0, lsl #16"),
        (0xb240_03ed, "orr\tx13, xzr, #0x1"),
        (
            0xb201_f3ed,
            "mov\tx13, #0xaaaaaaaaaaaaaaaa    \t// #-6148914691236517206",
        ),
        (0x5280_0088, "mov\tw8, #0x4                   \t// #4"),
        (0x0000_0003, "udf\t#3"),
        (0xe400_e000, ".inst\t0xe400e000 ; undefined"),
    ];

    #[test]
    fn texts_are_objdumps() {
        let mut disassembler = for_arch(Arch::Aarch64, Syntax::Att).expect("has one");
        let mut text = String::new();
        for (word, expected) in EXAMPLES {
            disassembler.decode(&word.to_le_bytes(), 0x1038, &mut text);
            assert_eq!(text, *expected, "{word:08x}");
        }
    }
}
