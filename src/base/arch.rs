//! Processor architectures: what files, kernels and dumps call them, and what all stages must know of them.
//!
//! One row each. A new architecture is a row here, an unwinder in `crate::unwind` and a disassembler in `crate::disasm`; the compiler
//! names the matches that lack it. Numbers are those of `e_machine` in the ELF specifications, names those of `uname -m`.

/// An architecture whose code and stacks are understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arch {
    /// x86-64, samples with the 64-bit register ABI.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// 32-bit x86, also on a 64-bit kernel.
    X86,
    /// 32-bit ARM, also on a 64-bit kernel.
    Arm,
}

/// What an architecture is called, and what its kernel runs.
struct Row {
    /// Name in listings of dumps.
    name: &'static str,
    /// `e_machine` of its ELF files.
    elf: u16,
    /// The 32-bit architecture that its kernel runs too.
    narrow: Option<Arch>,
    /// Whether each instruction is a word of four bytes.
    has_words: bool,
    /// Whether symbols such as `$x` and `$d` mark where code and data begin.
    marks_code: bool,
    /// Sizes of the header of a PLT and of its entries; nothing where each section has its own.
    plt: Option<(u64, u64)>,
    /// How functions are called, if probes can follow it.
    calls: Option<CallRegisters>,
}

/// Registers of the first arguments of a call, and of its result, as `perf probe` names them.
#[derive(Clone, Copy, Debug)]
pub struct CallRegisters {
    /// Of arguments.
    pub arguments: [&'static str; 4],
    /// Of the result.
    pub result: &'static str,
}

impl Arch {
    const ALL: [Self; 4] = [Self::X86_64, Self::Aarch64, Self::X86, Self::Arm];

    const fn row(self) -> Row {
        match self {
            Self::X86_64 => Row {
                name: "x86-64",
                elf: 62,
                narrow: Some(Self::X86),
                has_words: false,
                marks_code: false,
                plt: None,
                calls: Some(CallRegisters {
                    arguments: ["%di", "%si", "%dx", "%cx"],
                    result: "%ax",
                }),
            },
            Self::Aarch64 => Row {
                name: "aarch64",
                elf: 183,
                narrow: Some(Self::Arm),
                has_words: true,
                marks_code: true,
                plt: Some((32, 16)),
                calls: Some(CallRegisters {
                    arguments: ["%x0", "%x1", "%x2", "%x3"],
                    result: "%x0",
                }),
            },
            Self::X86 => Row {
                name: "i386",
                elf: 3,
                narrow: None,
                has_words: false,
                marks_code: false,
                plt: None,
                calls: None,
            },
            // Thumb code has instructions of two and of four bytes.
            Self::Arm => Row {
                name: "ARM",
                elf: 40,
                narrow: None,
                has_words: false,
                marks_code: true,
                plt: Some((20, 12)),
                calls: None,
            },
        }
    }

    /// The architecture of this process.
    #[must_use]
    pub const fn host() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// The architecture with this `e_machine` in its ELF files and dumps.
    #[must_use]
    pub fn from_elf(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.elf() == number)
    }

    /// The architecture that `uname -m` names so.
    #[must_use]
    pub fn from_uname(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Aarch64),
            "i386" | "i486" | "i586" | "i686" => Some(Self::X86),
            name if name.starts_with("arm") => Some(Self::Arm),
            _ => None,
        }
    }

    /// `e_machine` of its ELF files.
    #[must_use]
    pub const fn elf(self) -> u16 {
        self.row().elf
    }

    /// Its name in listings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The 32-bit architecture that its kernel runs too.
    #[must_use]
    pub const fn narrow(self) -> Option<Self> {
        self.row().narrow
    }

    /// True if a kernel of this architecture can run a program of the other one (`None`: one that is not known). Of 32-bit kernels
    /// this is not asked: their name in a recording may be that of a 32-bit `perf` on a 64-bit kernel.
    #[must_use]
    pub fn runs(self, program: Option<Self>) -> bool {
        self.narrow().is_none() || program == Some(self) || program == self.narrow()
    }

    /// True for both kinds of x86, whose instructions are encoded alike.
    #[must_use]
    pub const fn is_x86(self) -> bool {
        matches!(self, Self::X86_64 | Self::X86)
    }

    /// True if each instruction is a word of four bytes.
    #[must_use]
    pub const fn has_words(self) -> bool {
        self.row().has_words
    }

    /// True if symbols such as `$x` and `$d` mark where code and data begin.
    #[must_use]
    pub const fn marks_code(self) -> bool {
        self.row().marks_code
    }

    /// Sizes of the header of a PLT and of its entries; nothing where each section has its own.
    #[must_use]
    pub const fn plt(self) -> Option<(u64, u64)> {
        self.row().plt
    }

    /// Registers of calls, if probes can follow these.
    #[must_use]
    pub const fn calls(self) -> Option<CallRegisters> {
        self.row().calls
    }
}

#[cfg(test)]
mod tests {
    use super::Arch;

    #[test]
    fn numbers_and_names_lead_back() {
        for arch in Arch::ALL {
            assert_eq!(Arch::from_elf(arch.elf()), Some(arch));
        }
        assert_eq!(Arch::from_elf(243), None);
        assert_eq!(Arch::from_uname("arm64"), Some(Arch::Aarch64));
        assert_eq!(Arch::from_uname("armv7l"), Some(Arch::Arm));
        assert_eq!(Arch::from_uname("riscv64"), None);
    }

    #[test]
    fn kernels_run_their_own_and_narrower_programs() {
        assert!(Arch::X86_64.runs(Some(Arch::X86_64)));
        assert!(Arch::X86_64.runs(Some(Arch::X86)));
        assert!(!Arch::X86_64.runs(Some(Arch::Aarch64)));
        assert!(!Arch::X86_64.runs(None), "a program for RISC-V, say");
        assert!(Arch::Aarch64.runs(Some(Arch::Arm)));
        assert!(Arch::X86.runs(Some(Arch::X86_64)));
    }
}
