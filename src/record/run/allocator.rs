//! Which file has the allocator of what is recorded.
//!
//! What the user names; else a well-known one that is preloaded or linked, the program where it brings its own along, or the C
//! library. A command's libraries are told by its loader, those of a running process by its mappings.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::programs::code_in_line;
use super::{Failure, machine};
use crate::dso::elf::ElfFile;
use crate::find::program_to_run;
use crate::input::Store;
use crate::record::plan::Target;
use crate::record::plan::options::CallGraph;
use crate::record::plan::probes::{self, Alloc, Probes, has_own_allocator};
use crate::record::plan::trouble::Trouble;

/// Allocators that take the place of the C library's.
const KNOWN: [&str; 3] = ["jemalloc", "mimalloc", "tcmalloc"];
/// C libraries, by the beginning of their names.
const OF_C: [&str; 4] = ["libc.so", "libc-", "libc.musl", "ld-musl"];

/// The probes that the allocator of a target needs.
pub(super) fn probes(
    target: &Target,
    alloc: &Alloc,
    graph: Option<&CallGraph>,
    group: &str,
) -> Result<Probes, Failure> {
    let file = match (&alloc.library, target) {
        (Some(library), _) => library.clone(),
        (None, Target::Command(words)) => of_command(words)?,
        (None, Target::Processes(pids)) => of_processes(pids)?,
        (None, Target::Machine) => {
            return Err(Failure::of(Trouble::new(
                "--alloc with -a: which allocator?",
                ["--lib FILE names it, as /lib/x86_64-linux-gnu/libc.so.6"],
            )));
        }
    };
    // A process in a container has its files below a folder that only the kernel can name.
    let file = if file.starts_with("/proc") {
        file
    } else {
        file.canonicalize()
            .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?
    };
    let is_by_frame_pointers = matches!(graph, Some(CallGraph::Other(word)) if word == "fp");
    let store = Store::new();
    let elf = parsed(&store, &file)?;
    let made = probes::probes(&elf, &file, alloc, is_by_frame_pointers, group);
    made.map_err(|note| Failure {
        remedies: note.remedy.into_iter().collect(),
        ..Failure::new(note.text)
    })
}

fn parsed<'s>(store: &'s Store, file: &Path) -> Result<ElfFile<'s>, Failure> {
    let wrong = |why: String| Failure::new(format!("{}: {why}", file.display()));
    let bytes = store
        .map(&program_to_run(file))
        .map_err(|error| Failure::new(error.to_string()))?;
    ElfFile::parse(bytes, store).map_err(|error| wrong(error.to_string()))
}

/// What a command's program allocates with.
fn of_command(words: &[OsString]) -> Result<PathBuf, Failure> {
    let name = words.first().map(OsString::as_os_str).unwrap_or_default();
    let program = machine::program(name).unwrap_or_else(|| name.into());
    let program = interpreted_by(program);
    let store = Store::new();
    let elf = parsed(&store, &program)?;
    let loader = elf.section(".interp").map(|section| {
        let path = section.data.split(|&b| b == 0).next().unwrap_or_default();
        PathBuf::from(OsStr::from_bytes(path))
    });
    let libraries = loader.map(|loader| listed(&loader, &program));
    Ok(chosen(libraries.unwrap_or_default(), program, &elf))
}

/// The program that runs a script; what is no script is its own.
fn interpreted_by(program: PathBuf) -> PathBuf {
    const DEEPEST: usize = 4;
    let mut program = program;
    for _ in 0..DEEPEST {
        let front = front_of(&program);
        let Some(line) = front.strip_prefix(b"#!") else {
            break;
        };
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let Some(mut next) = words.next() else { break };
        // `#!/usr/bin/env -S NAME=value program`
        if next.ends_with(b"/env") {
            let is_program = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
            next = words.find(is_program).unwrap_or(next);
        }
        let next = OsString::from_vec(next.to_vec());
        match machine::program(&next) {
            Some(found) => program = found,
            None => break,
        }
    }
    program
}

/// The first line of a file, if it is short.
fn front_of(path: &Path) -> Vec<u8> {
    use std::io::Read;
    const LONGEST: u64 = 256;
    let mut front = Vec::new();
    if let Ok(file) = program_to_run(path).open() {
        // What cannot be read is no script.
        let _ = file.into_file().take(LONGEST).read_to_end(&mut front);
    }
    front
}

/// The libraries of a program, in the order of the loader, which lists them and runs nothing.
fn listed(loader: &Path, program: &Path) -> Vec<PathBuf> {
    let output = Command::new(loader)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let bytes = output.map(|output| output.stdout).unwrap_or_default();
    let lines = bytes.split(|&b| b == b'\n');
    lines.filter_map(path_in_line).collect()
}

/// `NAME => /PATH (0xADDRESS)`, or `/PATH (0xADDRESS)`
fn path_in_line(line: &[u8]) -> Option<PathBuf> {
    let line = line.trim_ascii();
    let end = memchr::memmem::rfind(line, b" (0x")?;
    let line = &line[..end];
    let path = match memchr::memmem::find(line, b" => ") {
        Some(at) => &line[at + 4..],
        None => line,
    };
    path.starts_with(b"/")
        .then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// What running processes allocate with: the first one's.
fn of_processes(pids: &[u32]) -> Result<PathBuf, Failure> {
    let pid = pids.first().copied().unwrap_or_default();
    let process = PathBuf::from(format!("/proc/{pid}"));
    let maps = fs::read(process.join("maps")).map_err(|error| {
        Failure::new(match error.kind() {
            io::ErrorKind::NotFound => format!("process {pid} has ended"),
            _ => format!("process {pid}: {error}"),
        })
    })?;
    let program = process.join("exe");
    let mut libraries: Vec<PathBuf> = Vec::new();
    for (_, path) in maps.split(|&b| b == b'\n').filter_map(code_in_line) {
        let path = PathBuf::from(OsStr::from_bytes(path));
        if !libraries.contains(&path) {
            libraries.push(path);
        }
    }
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let is_ours = own.is_some() && own == fs::read_link(process.join("ns/mnt")).ok();
    if !is_ours {
        let below = |path: PathBuf| crate::find::seen_by(&process, &path);
        libraries = libraries.into_iter().map(below).collect();
    }
    let named = fs::read_link(&program).map_or(program.clone(), |path| {
        if is_ours {
            path
        } else {
            crate::find::seen_by(&process, &path)
        }
    });
    let store = Store::new();
    let elf = parsed(&store, &named)?;
    Ok(chosen(libraries, named, &elf))
}

/// The allocator among a program and its libraries.
fn chosen(libraries: Vec<PathBuf>, program: PathBuf, elf: &ElfFile<'_>) -> PathBuf {
    let is_named = |path: &PathBuf, names: &[&str], anywhere: bool| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_it = |known: &&str| name.starts_with(known) || anywhere && name.contains(known);
        names.iter().any(is_it)
    };
    let known = libraries.iter().find(|path| is_named(path, &KNOWN, true));
    let of_c = libraries.iter().find(|path| is_named(path, &OF_C, false));
    match (known, of_c) {
        (Some(known), _) => known.clone(),
        (None, _) if has_own_allocator(elf) => program,
        (None, Some(of_c)) => of_c.clone(),
        (None, None) => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loaders_list() {
        let path = |line: &str| path_in_line(line.as_bytes());
        let is = |path: &str| Some(PathBuf::from(path));
        assert_eq!(
            path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)"),
            is("/lib/libc.so.6")
        );
        assert_eq!(path("\t/lib64/ld.so.2 (0x00007f)"), is("/lib64/ld.so.2"));
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(path("\tlibx.so => not found"), None);
    }

    #[test]
    fn scripts_are_run_by_a_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        let by = |text: &str| {
            fs::write(&script, text).expect("written");
            interpreted_by(script.clone())
        };
        assert_eq!(by("#!/bin/sh -e\n"), Path::new("/bin/sh"));
        let env = by("#!/usr/bin/env -S A=1 sh\n");
        assert_eq!(env.file_name(), Some(OsStr::new("sh")), "{}", env.display());
        for own in ["", "#!", "#!\n", "#!/nothing/here\n", "\x7fELF"] {
            assert_eq!(by(own), script, "{own}");
        }
    }
}
