//! Probes on an allocator: which functions of a file get one, what it records, and what the kernel leaves out.
//!
//! In: the functions of the file, and what was asked for. Out: lines as the kernel takes them, and the words for perf. Opens nothing
//! and adds nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Note;
use crate::address::FileOffset;
use crate::arch::{Arch, CallRegisters};
use crate::dso::elf::ElfFile;
use crate::dso::symtab::{Function, functions};
use crate::runtimes::wasmtime_function;

/// What is wanted of allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alloc {
    /// Returns and frees, too.
    pub live: bool,
    /// Only calls for so many bytes and more.
    pub least: Option<u64>,
    /// The allocator: a library, a program, or a module that wasmtime compiled.
    pub library: Option<PathBuf>,
}

/// A probe on a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The event's name.
    pub name: String,
    is_return: bool,
    offset: u64,
    arguments: String,
    filter: Option<String>,
}

/// The probes of a recording, all on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probes {
    /// The name that all share and nobody else has.
    pub group: String,
    /// The allocator.
    pub file: PathBuf,
    /// In the order in which they are recorded.
    pub all: Vec<Probe>,
    /// Whether stacks are to be followed by frame pointers, as goroutines have them.
    pub frame_pointers: bool,
}

/// What is recorded of a call.
#[derive(Clone, Copy)]
enum Call {
    /// The argument of this number is the size.
    Size(usize),
    /// How many, and the size of each.
    Many,
    /// A block, and its new size.
    Again,
    /// Where the address goes, the alignment and the size.
    Into,
}

/// Functions that give memory, by the name of their event and by all the names that allocators have for them. What calls one that has
/// a probe would count twice, so the inner ones come first.
const CALLS: [(&str, &[&str], Call); 8] = [
    (
        "malloc",
        &[
            "malloc",
            "je_malloc",
            "_rjem_malloc",
            "mi_malloc",
            "__rust_alloc",
        ],
        Call::Size(0),
    ),
    (
        "calloc",
        &[
            "__libc_calloc",
            "calloc",
            "je_calloc",
            "_rjem_calloc",
            "mi_calloc",
        ],
        Call::Many,
    ),
    (
        "realloc",
        &[
            "__libc_realloc",
            "realloc",
            "je_realloc",
            "_rjem_realloc",
            "mi_realloc",
        ],
        Call::Again,
    ),
    (
        "aligned_alloc",
        &[
            "aligned_alloc",
            "je_aligned_alloc",
            "_rjem_aligned_alloc",
            "mi_aligned_alloc",
        ],
        Call::Size(1),
    ),
    (
        "memalign",
        &["memalign", "je_memalign", "_rjem_memalign", "mi_memalign"],
        Call::Size(1),
    ),
    (
        "posix_memalign",
        &[
            "posix_memalign",
            "je_posix_memalign",
            "_rjem_posix_memalign",
            "mi_posix_memalign",
        ],
        Call::Into,
    ),
    (
        "valloc",
        &["valloc", "je_valloc", "mi_valloc"],
        Call::Size(0),
    ),
    ("pvalloc", &["pvalloc", "mi_pvalloc"], Call::Size(0)),
];
const FREES: &[&str] = &["free", "je_free", "_rjem_free", "mi_free"];
/// The same in guests of wasmtime.
const GUEST_ALLOCATES: &[&str] = &["malloc", "dlmalloc", "runtime.alloc", "__rust_alloc"];
const GUEST_FREES: &[&str] = &["free", "dlfree", "__rust_dealloc"];
/// Go's own.
const OF_GO: &str = "runtime.mallocgc";
/// What only glibc has.
const OF_GLIBC: &str = "__libc_malloc";

/// Whether a program has an allocator of its own, which goes before that of a library.
#[must_use]
pub fn has_own_allocator(elf: &ElfFile<'_>) -> bool {
    let all = functions(elf);
    let exports = |name: &[u8]| all.iter().any(|f| f.is_global && f.name == name);
    let has = |name: &&str| all.iter().any(|f| f.name == name.as_bytes());
    let prefixed = ["je_malloc", "_rjem_malloc", "mi_malloc", OF_GO];
    exports(b"malloc") && exports(b"free") || prefixed.iter().any(has)
}

/// The probes that a file needs.
///
/// # Errors
/// When nothing in it is known, or what was asked for cannot be had of it.
pub fn probes(
    elf: &ElfFile<'_>,
    file: &Path,
    alloc: &Alloc,
    by_frame_pointers: bool,
    group: &str,
) -> Result<Probes, Note> {
    let shown = file.display();
    // The kernel splits its lines there.
    let is_odd = |c: char| c.is_whitespace() || c == ':';
    if file.to_str().is_none_or(|path| path.contains(is_odd)) {
        let text = format!("{shown}: the kernel takes no probe on a path with blanks or colons");
        return Err(Note::new(text).mended_by("--lib with a link to it at another path"));
    }
    let registers = elf.arch().and_then(Arch::calls);
    let Some(registers) = registers else {
        let text = format!("{shown}: registers of this processor are not known");
        return Err(Note::new(text));
    };
    let mut making = Making {
        elf,
        all: functions(elf),
        registers,
        alloc,
        // The kernel finds no caller at an entry, whose frame is not made yet; at the return it does.
        returns: alloc.live || by_frame_pointers,
        made: Vec::new(),
        covered: BTreeSet::new(),
    };
    let mut frame_pointers = false;
    if elf.is_compiled_wasm() {
        making.guest();
    } else if let Some(at) = making.find(&[OF_GO]) {
        if alloc.live {
            let text = "--live cannot be had of Go programs: probes on returns crash them";
            return Err(Note::new(text).mended_by("--alloc alone"));
        }
        frame_pointers = true;
        making.of_go(at);
    } else if let (true, Some(least)) = (alloc.live, alloc.least) {
        if making.find(&[OF_GLIBC]).is_none() {
            let text = format!(
                "--live with --min reads the headers of glibc's blocks, and {shown} is another allocator"
            );
            return Err(Note::new(text).mended_by("--live alone"));
        }
        making.large_blocks(least);
    } else {
        making.plain();
    }
    if !making.made.iter().any(|probe| probe.name != "free") {
        let text = format!("{shown} has no allocator that is known");
        return Err(Note::new(text).mended_by("--lib FILE names another"));
    }
    Ok(Probes {
        group: group.to_owned(),
        file: file.to_owned(),
        all: making.made,
        frame_pointers,
    })
}

/// Probes in the making.
struct Making<'m, 'a> {
    elf: &'m ElfFile<'a>,
    all: Vec<Function<'a>>,
    registers: CallRegisters,
    alloc: &'m Alloc,
    returns: bool,
    made: Vec<Probe>,
    /// Where functions begin whose calls are recorded, by themselves or by what they call.
    covered: BTreeSet<u64>,
}

impl<'a> Making<'_, 'a> {
    /// The first of these names that is there.
    fn find(&self, names: &[&str]) -> Option<Function<'a>> {
        let mut names = names.iter();
        names.find_map(|name| {
            let found = self.all.iter().find(|f| f.name == name.as_bytes());
            found.copied()
        })
    }

    /// The same in a module of wasmtime, where names stand behind numbers.
    fn find_in_guest(&self, names: &[&str]) -> Option<Function<'a>> {
        let own = |f: &Function<'a>| wasmtime_function(f.name).and_then(|(.., own)| own);
        let mut names = names.iter();
        names.find_map(|name| {
            let is_it = |f: &&Function<'a>| own(f) == Some(name.as_bytes());
            self.all.iter().find(is_it).copied()
        })
    }

    fn add(&mut self, name: &str, is_return: bool, at: FileOffset, arguments: String) {
        let least = self.alloc.least;
        let filter = least.filter(|_| {
            !is_return
                && matches!(
                    name,
                    "malloc"
                        | "realloc"
                        | "aligned_alloc"
                        | "memalign"
                        | "posix_memalign"
                        | "valloc"
                        | "pvalloc"
                )
        });
        self.made.push(Probe {
            name: if is_return {
                format!("{name}_ret__return")
            } else {
                name.to_owned()
            },
            is_return,
            offset: at.0,
            arguments,
            filter: filter.map(|minimum| format!("size >= {minimum}")),
        });
    }

    /// A call, and its return if that is wanted.
    fn call(&mut self, name: &str, at: FileOffset, arguments: String, gives: &str) {
        self.add(name, false, at, arguments);
        if self.returns {
            self.add(name, true, at, gives.to_owned());
        }
    }

    /// An allocator with C's functions.
    fn plain(&mut self) {
        let [a, b, c, _] = self.registers.arguments;
        let result = self.registers.result;
        for (name, names, call) in CALLS {
            let Some(function) = self.find(names) else {
                continue;
            };
            // Aliases are one function. `realloc` calls `malloc` for some of its calls only; the reader leaves those out.
            let is_counted = self.covered.contains(&function.offset.0)
                || name != "realloc" && self.calls_what_is_covered(&function);
            self.covered.insert(function.offset.0);
            if is_counted {
                continue;
            }
            let arguments = match call {
                Call::Size(0) => format!("size={a}:u64"),
                Call::Size(_) => format!("align={a}:u64 size={b}:u64"),
                Call::Many => format!("nmemb={a}:u64 size={b}:u64"),
                Call::Again => format!("ptr={a}:u64 size={b}:u64"),
                Call::Into => format!("align={b}:u64 size={c}:u64"),
            };
            let gives = match call {
                // It returns no address but whether it failed.
                Call::Into => format!("failed={result}:u32"),
                _ => format!("ptr={result}:u64"),
            };
            self.call(name, function.offset, arguments, &gives);
        }
        if let (true, Some(free)) = (self.alloc.live, self.find(FREES)) {
            self.add("free", false, free.offset, format!("ptr={a}:u64"));
        }
    }

    /// glibc's blocks from a size on, by the header in front of them: so calls and frees of the others are left out together.
    fn large_blocks(&mut self, least: u64) {
        /// A header has so many bytes that count.
        const HEADER: u64 = 8;
        let a = self.registers.arguments[0];
        let result = self.registers.result;
        let of_chunk = Some(format!("chunk >= {least}"));
        if let Some(malloc) = self.find(&["malloc"]) {
            self.add("malloc", false, malloc.offset, format!("size={a}:u64"));
            let gives = format!("ptr={result}:u64 chunk=-8({result}):u64");
            self.add("malloc", true, malloc.offset, gives);
        }
        if let Some(free) = self.find(&["free"]) {
            let takes = format!("ptr={a}:u64 chunk=-8({a}):u64");
            self.add("free", false, free.offset, takes);
        }
        for probe in &mut self.made {
            probe.filter = match probe.name.as_str() {
                "malloc" => Some(format!("size >= {}", least.saturating_sub(HEADER))),
                _ => of_chunk.clone(),
            };
        }
    }

    /// A guest of wasmtime: two contexts go before its arguments, and addresses have 32 bits.
    fn guest(&mut self) {
        let [context, _, a, b] = self.registers.arguments;
        let gives = format!("ptr={}:u32", self.registers.result);
        let ctx = format!("ctx={context}:u64");
        let calls: [(&str, &[&str], String); 3] = [
            ("malloc", GUEST_ALLOCATES, format!("size={a}:u32 {ctx}")),
            (
                "calloc",
                &["calloc"],
                format!("nmemb={a}:u32 size={b}:u32 {ctx}"),
            ),
            (
                "realloc",
                &["realloc"],
                format!("ptr={a}:u32 size={b}:u32 {ctx}"),
            ),
        ];
        for (name, names, arguments) in calls {
            if let Some(function) = self.find_in_guest(names) {
                self.call(name, function.offset, arguments, &gives);
            }
        }
        if let (true, Some(free)) = (self.alloc.live, self.find_in_guest(GUEST_FREES)) {
            self.add("free", false, free.offset, format!("ptr={a}:u32 {ctx}"));
        }
    }

    /// Go: stacks of goroutines move, and a probe on a return would crash the program. One that is preempted in the check of its stack
    /// begins the function once more, and its call would count twice: so the probe stands behind that check, and behind the making
    /// of the frame, without which call chains lack the caller.
    fn of_go(&mut self, at: Function<'_>) {
        const FRONT: usize = 64;
        let code = self.elf.bytes_from(at.offset, FRONT);
        let behind = FileOffset(at.offset.0 + behind_prologue(code) as u64);
        // The first argument is where results are.
        let size = format!("size={}:u64", self.registers.result);
        self.add("malloc", false, behind, size);
    }

    /// Whether a function calls, or jumps to, one whose calls are recorded.
    fn calls_what_is_covered(&self, function: &Function<'_>) -> bool {
        const LARGEST: u64 = 1 << 16;
        let size = usize::try_from(function.size.min(LARGEST)).unwrap_or(0);
        let code = self.elf.bytes_from(function.offset, size);
        let targets = match self.elf.arch() {
            Some(Arch::X86_64) => calls_of_x86(code, function.offset.0),
            _ => calls_of_aarch64(code, function.offset.0),
        };
        targets.iter().any(|at| self.covered.contains(at))
    }
}

/// Where 32-bit calls and jumps may lead, in offsets of the file: code lies in one segment. Some of these are no instructions, which is
/// no harm: that they lead to a beginning is what counts.
fn calls_of_x86(code: &[u8], start: u64) -> Vec<u64> {
    let calls = code.windows(5).enumerate();
    let calls = calls.filter(|(_, bytes)| matches!(bytes[0], 0xe8 | 0xe9));
    let target = |(at, bytes): (usize, &[u8])| {
        let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let behind = start.wrapping_add(at as u64 + 5);
        behind.wrapping_add_signed(i64::from(distance))
    };
    calls.map(target).collect()
}

/// The same of `b` and `bl`.
fn calls_of_aarch64(code: &[u8], start: u64) -> Vec<u64> {
    let words = code.chunks_exact(4).enumerate().filter_map(|(at, word)| {
        let word = u32::from_le_bytes(word.try_into().ok()?);
        (word >> 26 & 0x1f == 5).then_some((at, word))
    });
    let target = |(at, word): (usize, u32)| {
        // 26 bits with a sign, in words.
        let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
        start
            .wrapping_add(at as u64 * 4)
            .wrapping_add_signed(distance)
    };
    words.map(target).collect()
}

/// How many bytes Go's functions begin with before they do anything, on x86-64: the check of the stack, and the frame.
fn behind_prologue(code: &[u8]) -> usize {
    let mut at = 0;
    // lea -N(%rsp),%r12, if N is large; cmp 0x10(%r14),%rsp or %r12; jbe
    let lea = [
        [0x4c, 0x8d, 0x64, 0x24].as_slice(),
        &[0x4c, 0x8d, 0xa4, 0x24],
    ];
    let large = skip(code, 0, lea[0], 1).or_else(|| skip(code, 0, lea[1], 4));
    let large = large.unwrap_or_default();
    let compares = [
        [0x49, 0x3b, 0x66, 0x10].as_slice(),
        &[0x4d, 0x3b, 0x66, 0x10],
    ];
    let compared = compares
        .iter()
        .find_map(|bytes| skip(code, large, bytes, 0));
    let jumped = compared.and_then(|behind| {
        skip(code, behind, &[0x76], 1).or_else(|| skip(code, behind, &[0x0f, 0x86], 4))
    });
    if let Some(behind) = jumped {
        at = behind;
    }
    // sub $N,%rsp; mov %rbp,M(%rsp); lea M(%rsp),%rbp; since Go 1.21 push %rbp; mov %rsp,%rbp
    let room =
        skip(code, at, &[0x48, 0x83, 0xec], 1).or_else(|| skip(code, at, &[0x48, 0x81, 0xec], 4));
    let saved = room.and_then(|behind| {
        skip(code, behind, &[0x48, 0x89, 0x6c, 0x24], 1)
            .or_else(|| skip(code, behind, &[0x48, 0x89, 0xac, 0x24], 4))
    });
    let framed = saved.and_then(|behind| {
        skip(code, behind, &[0x48, 0x8d, 0x6c, 0x24], 1)
            .or_else(|| skip(code, behind, &[0x48, 0x8d, 0xac, 0x24], 4))
    });
    framed
        .or_else(|| skip(code, at, &[0x55, 0x48, 0x89, 0xe5], 0))
        .unwrap_or(at)
}

/// Behind these bytes and so many more, if they are there.
fn skip(code: &[u8], at: usize, bytes: &[u8], more: usize) -> Option<usize> {
    let rest = code.get(at..)?.strip_prefix(bytes)?;
    (rest.len() >= more).then_some(at + bytes.len() + more)
}

impl Probes {
    /// Lines for `uprobe_events`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |probe: &Probe| {
            format!(
                "{}:{}/{} {}:{:#x} {}",
                if probe.is_return { 'r' } else { 'p' },
                self.group,
                probe.name,
                self.file.display(),
                probe.offset,
                probe.arguments
            )
        };
        self.all.iter().map(line).collect()
    }

    /// Options of perf.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for probe in &self.all {
            words.extend(["-e".to_owned(), format!("{}:{}", self.group, probe.name)]);
            if let Some(filter) = &probe.filter {
                words.extend(["--filter".to_owned(), filter.clone()]);
            }
        }
        words
    }

    /// The functions that have one.
    #[must_use]
    pub fn functions(&self) -> String {
        let calls = self.all.iter().filter(|probe| !probe.is_return);
        let names: Vec<&str> = calls.map(|probe| probe.name.as_str()).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dso::build_elf::{ElfBuilder, FUNC, LOCAL_FUNC, TestSymbol};
    use crate::input::Store;

    fn of(
        symbols: &[TestSymbol<'_>],
        code: &[(usize, &[u8])],
        alloc: &Alloc,
        fp: bool,
    ) -> Result<Vec<String>, Note> {
        let mut builder = ElfBuilder::new(0x1000);
        builder.symbols(".symtab", symbols);
        let mut bytes = builder.build();
        for (at, code) in code {
            bytes[*at..at + code.len()].copy_from_slice(code);
        }
        let store = Store::new();
        let elf = ElfFile::parse(&bytes, &store).expect("a file");
        let made = probes(&elf, Path::new("/lib/x.so"), alloc, fp, "pjit_7")?;
        Ok(made.lines())
    }

    fn at(name: &str, address: u64) -> TestSymbol<'_> {
        (name, address, 0x20, FUNC, 1)
    }

    const PLAIN: Alloc = Alloc {
        live: false,
        least: None,
        library: None,
    };

    #[test]
    fn functions_get_one_probe_each_and_aliases_none() {
        let symbols = [
            at("malloc", 0x2100),
            at("__libc_malloc", 0x2100),
            at("free", 0x2200),
            at("aligned_alloc", 0x2300),
            at("memalign", 0x2300),
            at("valloc", 0x2400),
            at("pvalloc@@GLIBC_2.2.5", 0x2500),
        ];
        // valloc jumps to aligned_alloc: 0x1405 + 0xfffffefb = 0x1300.
        let jump: &[u8] = &[0xe9, 0xfb, 0xfe, 0xff, 0xff];
        let lines = of(&symbols, &[(0x1400, jump)], &PLAIN, false).expect("an allocator");
        assert_eq!(
            lines,
            [
                "p:pjit_7/malloc /lib/x.so:0x1100 size=%di:u64",
                "p:pjit_7/aligned_alloc /lib/x.so:0x1300 align=%di:u64 size=%si:u64",
                "p:pjit_7/pvalloc /lib/x.so:0x1500 size=%di:u64",
            ]
        );
        let lines = of(&symbols, &[], &PLAIN, false).expect("an allocator");
        assert_eq!(lines.len(), 4, "{lines:?}");
        let live = Alloc {
            live: true,
            ..PLAIN
        };
        let lines = of(&symbols, &[], &live, false).expect("an allocator");
        assert_eq!(
            lines[1],
            "r:pjit_7/malloc_ret__return /lib/x.so:0x1100 ptr=%ax:u64"
        );
        assert_eq!(
            lines.last().map(String::as_str),
            Some("p:pjit_7/free /lib/x.so:0x1200 ptr=%di:u64")
        );
        // Frame pointers know no caller at an entry.
        let lines = of(&symbols, &[], &PLAIN, true).expect("an allocator");
        assert_eq!(lines.len(), 8, "{lines:?}");
    }

    #[test]
    fn small_calls_are_left_out_where_the_kernel_can() {
        let words = |symbols: &[TestSymbol<'_>], alloc: &Alloc| {
            let mut builder = ElfBuilder::new(0x1000);
            builder.symbols(".dynsym", symbols);
            let (bytes, store) = (builder.build(), Store::new());
            let elf = ElfFile::parse(&bytes, &store).expect("a file");
            let made = probes(&elf, Path::new("/x"), alloc, false, "g");
            made.map(|made| made.words().join(" "))
        };
        let symbols = [
            at("malloc", 0x2100),
            at("calloc", 0x2200),
            at("free", 0x2300),
        ];
        let least = Alloc {
            least: Some(1024),
            ..PLAIN
        };
        assert_eq!(
            words(&symbols, &least).expect("probes"),
            "-e g:malloc --filter size >= 1024 -e g:calloc"
        );
        let live = Alloc {
            live: true,
            ..least
        };
        let other = words(&symbols, &live).expect_err("no glibc");
        assert!(other.text.contains("another allocator"), "{}", other.text);
        let glibc = [&symbols[..], &[at("__libc_malloc", 0x2100)]].concat();
        assert_eq!(
            words(&glibc, &live).expect("probes"),
            "-e g:malloc --filter size >= 1016 -e g:malloc_ret__return --filter chunk >= 1024 -e g:free --filter chunk >= 1024"
        );
    }

    #[test]
    fn what_cannot_be_had_is_told() {
        let none = of(
            &[at("main", 0x2100), at("free", 0x2200)],
            &[],
            &PLAIN,
            false,
        );
        assert!(
            none.expect_err("nothing")
                .text
                .contains("no allocator that is known")
        );
        let live = Alloc {
            live: true,
            ..PLAIN
        };
        let go = of(&[at(OF_GO, 0x2100)], &[], &live, false);
        assert!(go.expect_err("no returns").text.contains("Go programs"));
        let bytes = ElfBuilder::new(16).build();
        let store = Store::new();
        let elf = ElfFile::parse(&bytes, &store).expect("a file");
        for path in ["/a b", "/a:b", "/a\nb"] {
            assert!(probes(&elf, Path::new(path), &PLAIN, false, "g").is_err());
        }
    }

    #[test]
    fn go_is_met_behind_what_its_functions_begin_with() {
        // cmp 0x10(%r14),%rsp; jbe; push %rbp; mov %rsp,%rbp
        let code: &[u8] = &[
            0x49, 0x3b, 0x66, 0x10, 0x0f, 0x86, 1, 2, 3, 4, 0x55, 0x48, 0x89, 0xe5,
        ];
        assert_eq!(behind_prologue(code), 14);
        assert_eq!(behind_prologue(&code[..10]), 10);
        // lea -0x80(%rsp),%r12; cmp 0x10(%r14),%r12; jbe; sub; mov; lea
        let code: &[u8] = &[
            0x4c, 0x8d, 0x64, 0x24, 0x80, 0x4d, 0x3b, 0x66, 0x10, 0x76, 9, 0x48, 0x83, 0xec, 0x40,
            0x48, 0x89, 0x6c, 0x24, 0x38, 0x48, 0x8d, 0x6c, 0x24, 0x38, 0x90,
        ];
        assert_eq!(behind_prologue(code), 25);
        assert_eq!(behind_prologue(&[0x90; 64]), 0);
        assert_eq!(behind_prologue(&[]), 0);
        let lines = of(&[at(OF_GO, 0x2100)], &[(0x1100, code)], &PLAIN, false).expect("probes");
        assert_eq!(lines, ["p:pjit_7/malloc /lib/x.so:0x1119 size=%ax:u64"]);
    }

    #[test]
    fn calls_of_both_processors() {
        assert_eq!(calls_of_x86(&[0x90, 0xe8, 1, 0, 0, 0], 0x10), [0x17]);
        // bl +8, b -4
        let code = [2u32 | 0x9400_0000, 0x17ff_ffff]
            .map(u32::to_le_bytes)
            .concat();
        assert_eq!(calls_of_aarch64(&code, 0x100), [0x108, 0x100]);
    }

    #[test]
    fn programs_with_an_allocator_are_known() {
        let has = |symbols: &[TestSymbol<'_>]| {
            let mut builder = ElfBuilder::new(16);
            builder.symbols(".symtab", symbols);
            let (bytes, store) = (builder.build(), Store::new());
            has_own_allocator(&ElfFile::parse(&bytes, &store).expect("a file"))
        };
        assert!(has(&[at("malloc", 0x2000), at("free", 0x2004)]));
        assert!(has(&[("_rjem_malloc", 0x2000, 4, LOCAL_FUNC, 1)]));
        // Somebody's own function of that name, and imports.
        assert!(!has(&[
            ("malloc", 0x2000, 4, LOCAL_FUNC, 1),
            at("free", 0x2004)
        ]));
        assert!(!has(&[("malloc", 0, 0, FUNC, 0), ("free", 0, 0, FUNC, 0)]));
    }
}
