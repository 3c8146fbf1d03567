//! What a file is that is no recording, by how it begins.
//!
//! In: the first bytes of a file. Out: what it probably is, and what to do with it. People name the wrong one of two files beside
//! each other, or one that another program has to unpack first.

/// What a file is that is no recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// Without a byte.
    Empty,
    /// Packed by a program.
    Packed(Packer),
    /// An executable or a library.
    Program,
    /// The memory of a program that crashed.
    Core,
    /// What a runtime writes of its functions.
    Dump,
    /// Folded stacks: `a;b 12`.
    Stacks,
    /// What `perf script` prints.
    Script,
    /// JSON.
    Json,
    /// Other text.
    Text,
    /// Not known.
    Other,
}

/// Programs that pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packer {
    /// `gzip`
    Gzip,
    /// `zstd`
    Zstd,
    /// `xz`
    Xz,
    /// `bzip2`
    Bzip2,
}

/// So much of a file is looked at.
const FRONT: usize = 4096;

impl Foreign {
    /// What begins so.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(FRONT)];
        match bytes {
            [] => Self::Empty,
            [0x1f, 0x8b, ..] => Self::Packed(Packer::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Packed(Packer::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Packed(Packer::Xz),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Packed(Packer::Bzip2),
            [0x7f, b'E', b'L', b'F', ..] => of_elf(bytes),
            [b'D', b'T', b'i', b'J', ..] | [b'J', b'i', b'T', b'D', ..] => Self::Dump,
            _ => text(bytes).map_or(Self::Other, of_text),
        }
    }

    /// What is wrong with it.
    pub(super) const fn problem(self) -> &'static str {
        match self {
            Self::Empty => {
                "empty (0 bytes): perf record was ended before it wrote, or the disk is full"
            }
            Self::Packed(Packer::Gzip) => "packed by gzip",
            Self::Packed(Packer::Zstd) => "packed by zstd",
            Self::Packed(Packer::Xz) => "packed by xz",
            Self::Packed(Packer::Bzip2) => "packed by bzip2",
            Self::Program => "a program, not a recording",
            Self::Core => "a core dump, not a recording",
            Self::Dump => "a dump of JIT code, not a recording",
            Self::Stacks => "folded stacks, not a recording",
            Self::Script => "text that perf script printed, not a recording",
            Self::Json => "JSON, perhaps a profile of another tool, not a recording of perf",
            Self::Text => "text, not a recording of perf",
            Self::Other => "not a recording of perf: it does not start with PERFILE2",
        }
    }

    /// What to do with it, if there is something.
    pub(super) const fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::Packed(Packer::Gzip) => {
                "unpack it: tar xzf for a bundle, then name its folder; gunzip for others"
            }
            Self::Packed(Packer::Zstd) => "unpack it: unzstd FILE",
            Self::Packed(Packer::Xz) => "unpack it: unxz FILE",
            Self::Packed(Packer::Bzip2) => "unpack it: bunzip2 FILE",
            Self::Program => "record it: pjit record -- FILE",
            Self::Dump => "pjit jitdump FILE lists its functions",
            Self::Stacks => "pjit flamegraph FILE draws them",
            Self::Script => "name the file that perf script read: perf.data",
            _ => return None,
        })
    }
}

/// A program or the memory of one: `e_type`, behind the 16 bytes of `e_ident`, in the file's own order of bytes.
fn of_elf(bytes: &[u8]) -> Foreign {
    const ET_CORE: u16 = 4;
    let kind = match bytes {
        [_, _, _, _, _, 2, _, ..] => bytes.get(16..18).map(|kind| [kind[1], kind[0]]),
        _ => bytes.get(16..18).map(|kind| [kind[0], kind[1]]),
    };
    match kind.map(u16::from_le_bytes) {
        Some(ET_CORE) => Foreign::Core,
        _ => Foreign::Program,
    }
}

/// The bytes as text, if they can be some: the last character may be cut.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_plain = |c: char| !c.is_control() || c.is_ascii_whitespace();
    (!text.is_empty() && text.chars().all(is_plain)).then_some(text)
}

fn of_text(text: &str) -> Foreign {
    // The last line may be cut.
    let whole = text.rfind('\n').map_or(text, |end| &text[..end]);
    let lines = || whole.lines().filter(|line| !line.trim().is_empty());
    let is_stack = |line: &str| {
        let count = line.trim_end().rsplit_once(' ');
        count.is_some_and(|(_, count)| count.parse::<f64>().is_ok_and(|count| count >= 0.0))
    };
    if lines().all(is_stack) && lines().any(|line| line.contains(';')) {
        return Foreign::Stacks;
    }
    if lines().any(|line| line.starts_with('#')) && whole.contains("# captured on")
        || lines().any(is_frame) && lines().any(|line| line.trim_end().ends_with(':'))
    {
        return Foreign::Script;
    }
    let mut begin = text.chars().filter(|c| !c.is_whitespace());
    match (begin.next(), begin.next()) {
        (Some('{'), Some('"' | '}')) | (Some('['), Some('{' | '[' | '"' | ']')) => Foreign::Json,
        _ => Foreign::Text,
    }
}

/// `    55d0c0de main+0x1c (/usr/bin/app)`, as frames stand in what `perf script` prints.
fn is_frame(line: &str) -> bool {
    let frame = line.trim_start();
    let address = frame.split(' ').next().unwrap_or_default();
    frame.len() < line.len()
        && frame.trim_end().ends_with(')')
        && address.len() >= 6
        && address.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_first_bytes() {
        let elf = |order: u8, kind: [u8; 2]| {
            let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
            bytes[5] = order;
            bytes.resize(16, 0);
            bytes.extend(kind);
            bytes
        };
        let frame = "app 12 1.5: 250000 cpu-clock:\n\tffffffff8100 start+0x1 ([kernel.kallsyms])\n";
        let cases: [(&[u8], Foreign); 20] = [
            (b"", Foreign::Empty),
            (b"\x1f\x8b\x08", Foreign::Packed(Packer::Gzip)),
            (b"\x28\xb5\x2f\xfd\0", Foreign::Packed(Packer::Zstd)),
            (b"\xfd7zXZ\0\0", Foreign::Packed(Packer::Xz)),
            (b"BZh91AY", Foreign::Packed(Packer::Bzip2)),
            (b"\x7fELF", Foreign::Program),
            (&elf(1, [3, 0]), Foreign::Program),
            (&elf(1, [4, 0]), Foreign::Core),
            (&elf(2, [0, 4]), Foreign::Core),
            (b"DTiJ\x01\0\0\0", Foreign::Dump),
            (b"JiTD\0\0\0\x01", Foreign::Dump),
            (b"main;work 12\nmain;wo", Foreign::Stacks),
            (b"main 12\nmain;work 3.5\n", Foreign::Stacks),
            (frame.as_bytes(), Foreign::Script),
            (b"# captured on    : Mon\n#\n", Foreign::Script),
            (b" {\n \"nodes\": []}", Foreign::Json),
            (b"# Title\n\nSome text.\n", Foreign::Text),
            ("Gr\u{fc}\u{df}e".as_bytes(), Foreign::Text),
            (b"\xff\xfe\0\0", Foreign::Other),
            (b"PERFILE\0", Foreign::Other),
        ];
        for (bytes, wanted) in cases {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(Foreign::of(bytes), wanted, "{shown}");
        }
        // A character that is cut is no other file's.
        let long = "\u{fc}".repeat(FRONT);
        assert_eq!(Foreign::of(long.as_bytes()), Foreign::Text);
        assert_eq!(Foreign::of(&long.as_bytes()[..3]), Foreign::Text);
    }
}
