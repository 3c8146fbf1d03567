//! Where objdump 2.40 writes an x86 instruction otherwise than iced-x86: one rule each, with an example in the tests.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::disasm::Syntax;

/// What a rule knows: the instruction, its bytes, and the text so far.
struct Case<'c> {
    found: &'c Instruction,
    code: &'c [u8],
    text: &'c mut String,
    syntax: Syntax,
}

type Rule = fn(&mut Case<'_>);

/// In the order in which they have to be followed.
const ATT: &[Rule] = &[
    scale_without_index,
    size_of_stack,
    shift_by_one,
    multiply,
    string_segments,
    repeat,
    x87_defaults,
    ports,
    far,
    padding,
    rex,
];

const INTEL: &[Rule] = &[
    shift_by_one,
    multiply,
    wide_number,
    below_rip,
    address_alone,
    string_operands,
    x87_top,
    x87_defaults,
    repeat,
    padding,
    rex,
];

/// Follows the rules.
pub(super) fn mend(syntax: Syntax, found: &Instruction, code: &[u8], text: &mut String) {
    let rules = match syntax {
        Syntax::Att => ATT,
        Syntax::Intel => INTEL,
    };
    let mut case = Case {
        found,
        code,
        text,
        syntax,
    };
    rules.iter().for_each(|rule| rule(&mut case));
}

impl Case<'_> {
    fn replace(&mut self, old: &str, new: &str) -> bool {
        let at = self.text.find(old);
        if let Some(at) = at {
            self.text.replace_range(at..at + old.len(), new);
        }
        at.is_some()
    }

    /// Puts a word in front, and the mnemonic right behind it: the blanks behind a mnemonic only fill up six columns.
    fn prefix(&mut self, word: &str) {
        while self.replace("  ", " ") {}
        self.text.insert_str(0, word);
        self.pad();
    }

    /// Fills up the columns of a mnemonic that became longer or shorter.
    fn pad(&mut self) {
        const COLUMNS: usize = 6;
        while self.replace("  ", " ") {}
        let text = self.text.trim_end();
        let is_operand = |word: &str| word.starts_with(['$', '%', '(', '*', '-', '0']);
        let mut words = text.match_indices(' ').map(|(at, _)| at);
        let end = words.find(|&at| is_operand(&text[at + 1..]));
        if let Some(end) = end.filter(|end| *end < COLUMNS) {
            self.text.insert_str(end, &"      "[end..]);
        }
    }

    fn registers(&self) -> impl Iterator<Item = Register> + '_ {
        (0..self.found.op_count())
            .map(|at| self.found.op_register(at))
            .filter(|register| *register != Register::None)
    }

    /// The REX prefix, if it stands right before the opcode as it has to, and what precedes it.
    fn rex(&self) -> Option<u8> {
        let is_legacy = |byte: &u8| {
            matches!(
                byte,
                0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
            )
        };
        let rex = *self.code.iter().find(|byte| !is_legacy(byte))?;
        (self.found.code_size() == iced_x86::CodeSize::Code64 && rex & 0xf0 == 0x40).then_some(rex)
    }
}

/// A base without index has no scale.
fn scale_without_index(case: &mut Case<'_>) {
    while case.replace(",)", ")") {}
}

/// Jumps, calls, pushes and pops have the size of the stack without saying so.
fn size_of_stack(case: &mut Case<'_>) {
    let words: &[(&str, &str)] = match case.found.mnemonic() {
        Mnemonic::Call => &[("callq", "call")],
        Mnemonic::Jmp => &[("jmpq", "jmp")],
        Mnemonic::Push => &[("pushq", "push")],
        Mnemonic::Pop => &[("popq", "pop")],
        Mnemonic::Ret => &[("retq", "ret")],
        Mnemonic::Leave => &[("leaveq", "leave")],
        _ => return,
    };
    if words.iter().any(|(old, new)| case.replace(old, new)) {
        case.pad();
    }
}

/// Shifts by one have an opcode of their own, which does not name the one.
fn shift_by_one(case: &mut Case<'_>) {
    let is_shift = matches!(
        case.found.mnemonic(),
        Mnemonic::Shl
            | Mnemonic::Sal
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
    );
    if is_shift {
        let skipped = usize::from(case.rex().is_some());
        let legacy = case.code.iter().take_while(|byte| {
            matches!(
                byte,
                0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
            )
        });
        let opcode = case.code.get(legacy.count() + skipped);
        if matches!(opcode, Some(0xd0 | 0xd1)) {
            case.replace("$0x1,", "");
            if case.text.ends_with(",0x1") {
                case.replace(",0x1", ",1");
            }
        }
    }
}

/// The product of a register and a number names the register twice.
fn multiply(case: &mut Case<'_>) {
    if case.found.mnemonic() == Mnemonic::Imul
        && case.found.op_count() == 3
        && case.text.matches(',').count() == 1
        && !case.text.contains(['(', '['])
        && let Some(comma) = case.text.rfind(',')
    {
        if let Some(operands) = case.text.find(' ').filter(|_| !case.text.contains('%')) {
            let register = format!("{},", case.text[operands..comma].trim_start());
            case.text.insert_str(comma + 1 - register.len(), &register);
        } else {
            let register = case.text[comma..].to_owned();
            case.text.push_str(&register);
        }
    }
}

/// String instructions name the segments that they use.
fn string_segments(case: &mut Case<'_>) {
    if !is_string(case.found) {
        return;
    }
    for (plain, full) in [
        ("(%rsi)", "%ds:(%rsi)"),
        ("(%rdi)", "%es:(%rdi)"),
        ("(%esi)", "%ds:(%esi)"),
        ("(%edi)", "%es:(%edi)"),
    ] {
        let has_segment = case
            .text
            .find(plain)
            .is_some_and(|at| case.text[..at].ends_with(':'));
        if !has_segment {
            case.replace(plain, full);
        }
    }
}

fn is_string(found: &Instruction) -> bool {
    use OpKind as K;
    (0..found.op_count()).any(|at| {
        matches!(
            found.op_kind(at),
            K::MemorySegSI
                | K::MemorySegESI
                | K::MemorySegRSI
                | K::MemoryESDI
                | K::MemoryESEDI
                | K::MemoryESRDI
        )
    })
}

/// `rep` has two names, and a third before a return.
fn repeat(case: &mut Case<'_>) {
    if !case.text.starts_with("rep") {
        return;
    }
    let is = |word: &str| case.text.starts_with(word);
    if is("repe ") {
        case.replace("repe ", "repz ");
    } else if is("repne ") {
        case.replace("repne ", "repnz ");
    } else if is("rep ") && !is_string(case.found) {
        case.replace("rep ", "repz ");
    }
}

/// Intel: a number of 64 bits has a mnemonic of its own.
fn wide_number(case: &mut Case<'_>) {
    if case.found.mnemonic() == Mnemonic::Mov && case.found.op1_kind() == OpKind::Immediate64 {
        case.replace("mov    ", "movabs ");
    }
    if case.found.mnemonic() == Mnemonic::Popfq {
        case.replace("popfq", "popf");
    }
    if case.found.mnemonic() == Mnemonic::Pushfq {
        case.replace("pushfq", "pushf");
    }
}

/// Intel: what lies below the instruction is written as a large number.
fn below_rip(case: &mut Case<'_>) {
    let Some(at) = case.text.find("[rip-0x") else {
        return;
    };
    let digits = at + "[rip-0x".len();
    let end = case.text[digits..].find(']').map(|end| digits + end);
    let number = end.and_then(|end| u64::from_str_radix(&case.text[digits..end], 16).ok());
    if let (Some(end), Some(number)) = (end, number) {
        let text = format!("[rip+{:#x}", number.wrapping_neg());
        case.text.replace_range(at..end, &text);
    }
}

/// Intel: an address without registers stands behind its segment, without brackets.
fn address_alone(case: &mut Case<'_>) {
    let Some(at) = case.text.find("[0x") else {
        return;
    };
    let Some(end) = case.text[at..].find(']').map(|end| at + end) else {
        return;
    };
    if case.text[at + 3..end]
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
    {
        case.text.remove(end);
        let segment = if case.text[..at].ends_with(':') {
            ""
        } else {
            "ds:"
        };
        case.text.replace_range(at..=at, segment);
    }
}

/// Intel: string instructions show all their operands.
fn string_operands(case: &mut Case<'_>) {
    use Mnemonic as M;
    let (mnemonic, operands) = match case.found.mnemonic() {
        M::Movsb => ("movsb", "movs   BYTE PTR es:[rdi],BYTE PTR ds:[rsi]"),
        M::Movsw => ("movsw", "movs   WORD PTR es:[rdi],WORD PTR ds:[rsi]"),
        M::Movsd => ("movsd", "movs   DWORD PTR es:[rdi],DWORD PTR ds:[rsi]"),
        M::Movsq => ("movsq", "movs   QWORD PTR es:[rdi],QWORD PTR ds:[rsi]"),
        M::Cmpsb => ("cmpsb", "cmps   BYTE PTR ds:[rsi],BYTE PTR es:[rdi]"),
        M::Cmpsq => ("cmpsq", "cmps   QWORD PTR ds:[rsi],QWORD PTR es:[rdi]"),
        M::Stosb => ("stosb", "stos   BYTE PTR es:[rdi],al"),
        M::Stosw => ("stosw", "stos   WORD PTR es:[rdi],ax"),
        M::Stosd => ("stosd", "stos   DWORD PTR es:[rdi],eax"),
        M::Stosq => ("stosq", "stos   QWORD PTR es:[rdi],rax"),
        M::Scasb => ("scasb", "scas   al,BYTE PTR es:[rdi]"),
        M::Scasd => ("scasd", "scas   eax,DWORD PTR es:[rdi]"),
        M::Scasq => ("scasq", "scas   rax,QWORD PTR es:[rdi]"),
        M::Lodsb => ("lodsb", "lods   al,BYTE PTR ds:[rsi]"),
        M::Lodsd => ("lodsd", "lods   eax,DWORD PTR ds:[rsi]"),
        M::Lodsq => ("lodsq", "lods   rax,QWORD PTR ds:[rsi]"),
        _ => return,
    };
    if is_string(case.found)
        && case.found.segment_prefix() == Register::None
        && let Some(at) = case.text.find(mnemonic)
    {
        case.text.replace_range(at.., operands);
        if at > 0 {
            case.replace("   ", " ");
        }
    }
}

/// Intel: one-operand forms do not name the stack's top.
fn x87_top(case: &mut Case<'_>) {
    if !case.text.starts_with('f') || !case.text.contains("st") {
        return;
    }
    let has_memory = case.text.contains(" PTR ");
    if has_memory {
        case.replace(" st,", " ");
        if case.text.ends_with(",st") {
            case.text.truncate(case.text.len() - ",st".len());
        }
    } else if matches!(case.found.mnemonic(), Mnemonic::Fld | Mnemonic::Fxch) {
        case.replace(" st,", " ");
    } else if matches!(case.found.mnemonic(), Mnemonic::Fstp | Mnemonic::Fst)
        && case.text.ends_with(",st")
    {
        case.text.truncate(case.text.len() - ",st".len());
    }
}

/// The stack's top and the one below are named.
fn x87_defaults(case: &mut Case<'_>) {
    if case.syntax == Syntax::Intel {
        let operands = match case.text.as_str() {
            "fxch" | "fcom" | "fcomp" | "fucom" | "fucomp" => "st(1)",
            "fmulp" | "faddp" | "fsubp" | "fsubrp" | "fdivp" | "fdivrp" => "st(1),st",
            _ => return,
        };
        while case.text.len() < 7 {
            case.text.push(' ');
        }
        case.text.push_str(operands);
        return;
    }
    let operands = match case.text.as_str() {
        "fxch" | "fcom" | "fcomp" | "fucom" | "fucomp" => "%st(1)",
        "fmulp" | "faddp" | "fsubp" | "fsubrp" | "fdivp" | "fdivrp" => "%st,%st(1)",
        _ => return,
    };
    case.text.push(' ');
    case.text.push_str(operands);
    case.pad();
}

/// The port of input and output is written as memory.
fn ports(case: &mut Case<'_>) {
    use Mnemonic as M;
    if matches!(
        case.found.mnemonic(),
        M::In | M::Out | M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd
    ) {
        case.replace("%dx", "(%dx)");
    }
}

/// Far returns do not tell their size.
fn far(case: &mut Case<'_>) {
    match case.found.mnemonic() {
        Mnemonic::Retf => case.replace("lretl", "lret"),
        Mnemonic::Iretd => case.replace("iretl", "iret"),
        _ => return,
    };
    case.pad();
}

/// Padding: what its prefixes do not change is named in front.
fn padding(case: &mut Case<'_>) {
    if case.found.mnemonic() != Mnemonic::Nop {
        return;
    }
    let prefixes = case
        .code
        .iter()
        .take_while(|byte| matches!(byte, 0x66 | 0x2e));
    let sizes = prefixes.filter(|byte| **byte == 0x66).count();
    if case.replace("%cs:", "") || case.replace("cs:", "") {
        case.prefix("cs ");
    }
    for _ in 1..sizes {
        case.prefix("data16 ");
    }
}

/// A REX prefix without effect is named.
fn rex(case: &mut Case<'_>) {
    let Some(rex) = case.rex() else { return };
    let is_stack = matches!(
        case.found.mnemonic(),
        Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Jmp | Mnemonic::Ret
    );
    if rex == 0x40 {
        let needs = |r: Register| {
            matches!(
                r,
                Register::SPL | Register::BPL | Register::SIL | Register::DIL
            )
        };
        let is_needed = case.registers().any(needs);
        if !is_needed {
            case.prefix("rex ");
        }
    } else if rex == 0x48 && is_stack && case.found.op_count() == 1 {
        case.prefix("rex.W ");
    } else if rex & 0xf8 == 0x48 && is_plain_vector(case) {
        const NAMES: [&str; 8] = [
            "rex.W ",
            "rex.WB ",
            "rex.WX ",
            "rex.WXB ",
            "rex.WR ",
            "rex.WRB ",
            "rex.WRX ",
            "rex.WRXB ",
        ];
        case.prefix(NAMES[usize::from(rex & 7)]);
    }
}

/// Moves of whole vectors have one size.
fn is_plain_vector(case: &Case<'_>) -> bool {
    use Mnemonic as M;
    matches!(
        case.found.mnemonic(),
        M::Movdqu | M::Movdqa | M::Movups | M::Movaps | M::Movupd | M::Movapd | M::Movsd | M::Movss
    ) && case
        .registers()
        .any(|register| (Register::XMM0..=Register::XMM31).contains(&register))
}

#[cfg(test)]
mod tests {
    use crate::arch::Arch;
    use crate::disasm::{Syntax, for_arch};

    fn text(syntax: Syntax, code: &[u8]) -> String {
        let mut text = String::new();
        for_arch(Arch::X86_64, syntax)
            .expect("has one")
            .decode(code, 0x1000, &mut text);
        text
    }

    /// Bytes, and what `objdump -d` of binutils 2.40 prints.
    const EXAMPLES: &[(&[u8], &str)] = &[
        (b"\x48\x8b\x7c\x24\x10", "mov    0x10(%rsp),%rdi"),
        (b"\x8b\x04\x25\x10\0\0\0", "mov    0x10,%eax"),
        (b"\x8b\x44\x48\x00", "mov    0x0(%rax,%rcx,2),%eax"),
        (b"\x74\x10", "je     1012"),
        (b"\xe8\x10\0\0\0", "call   1015"),
        (b"\xff\x15\x10\0\0\0", "call   *0x10(%rip)"),
        (b"\xff\x35\x10\0\0\0", "push   0x10(%rip)"),
        (b"\xff\xe0", "jmp    *%rax"),
        (b"\x3e\xff\xe0", "notrack jmp *%rax"),
        (b"\xc3", "ret"),
        (b"\xc9", "leave"),
        (b"\xd1\xe8", "shr    %eax"),
        (b"\xc1\xe8\x01", "shr    $0x1,%eax"),
        (b"\x48\xd1\xa5\x58\xf9\xff\xff", "shlq   -0x6a8(%rbp)"),
        (b"\x69\xc0\x6d\x4e\xc6\x41", "imul   $0x41c64e6d,%eax,%eax"),
        (b"\x6b\xc8\x07", "imul   $0x7,%eax,%ecx"),
        (b"\xf3\xab", "rep stos %eax,%es:(%rdi)"),
        (b"\xa4", "movsb  %ds:(%rsi),%es:(%rdi)"),
        (b"\xf3\xa6", "repz cmpsb %es:(%rdi),%ds:(%rsi)"),
        (b"\xf2\x48\xaf", "repnz scas %es:(%rdi),%rax"),
        (b"\xf3\xc3", "repz ret"),
        (b"\x0f\x1f\x00", "nopl   (%rax)"),
        (
            b"\x66\x2e\x0f\x1f\x84\0\0\0\0\0",
            "cs nopw 0x0(%rax,%rax,1)",
        ),
        (
            b"\x66\x66\x2e\x0f\x1f\x84\0\0\0\0\0",
            "data16 cs nopw 0x0(%rax,%rax,1)",
        ),
        (b"\x66\x66\x90", "data16 xchg %ax,%ax"),
        (b"\xd9\xc9", "fxch   %st(1)"),
        (b"\xde\xc9", "fmulp  %st,%st(1)"),
        (b"\xec", "in     (%dx),%al"),
        (b"\xf3\x48\x0f\x7f\x0c\x24", "rex.W movdqu %xmm1,(%rsp)"),
        (b"\x40\x0f\xb6\xf0", "rex movzbl %al,%esi"),
        (b"\x40\x0f\xb6\xf6", "movzbl %sil,%esi"),
        (b"\x06\x90", "(bad)"),
        (b"\xe8\x10", ".byte 0xe8"),
    ];

    /// The same with `-M intel`.
    const INTEL_EXAMPLES: &[(&[u8], &str)] = &[
        (b"\x48\x8b\x7c\x24\x10", "mov    rdi,QWORD PTR [rsp+0x10]"),
        (
            b"\x64\x48\x8b\x04\x25\x28\0\0\0",
            "mov    rax,QWORD PTR fs:0x28",
        ),
        (b"\x0f\xb6\x04\x25\0\0\0\0", "movzx  eax,BYTE PTR ds:0x0"),
        (
            b"\x49\xbb\xf8\xbf\xff\xff\xff\xff\xf7\xff",
            "movabs r11,0xfff7ffffffffbff8",
        ),
        (
            b"\x48\x8d\x05\x92\xfe\xff\xff",
            "lea    rax,[rip+0xfffffffffffffe92]",
        ),
        (b"\xd1\xe8", "shr    eax,1"),
        (b"\xc1\xe8\x01", "shr    eax,0x1"),
        (b"\x69\xc0\x6d\x4e\xc6\x41", "imul   eax,eax,0x41c64e6d"),
        (b"\xf3\xab", "rep stos DWORD PTR es:[rdi],eax"),
        (b"\xa4", "movs   BYTE PTR es:[rdi],BYTE PTR ds:[rsi]"),
        (b"\xdb\x6c\x24\x18", "fld    TBYTE PTR [rsp+0x18]"),
        (b"\xdd\xd8", "fstp   st(0)"),
        (b"\xd9\xc0", "fld    st(0)"),
        (b"\xd9\xca", "fxch   st(2)"),
        (b"\xde\xc9", "fmulp  st(1),st"),
        (b"\x9d", "popf"),
        (b"\x75\x10", "jne    1012"),
    ];

    #[test]
    fn texts_are_objdumps_in_intels_syntax() {
        for (code, expected) in INTEL_EXAMPLES {
            assert_eq!(text(Syntax::Intel, code), *expected, "{code:02x?}");
        }
    }

    #[test]
    fn texts_are_objdumps() {
        for (code, expected) in EXAMPLES {
            assert_eq!(text(Syntax::Att, code), *expected, "{code:02x?}");
        }
    }
}
