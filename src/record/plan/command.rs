//! What a command line says before it is run: what its folder is called, and what will be lost of it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::Note;

/// What the program is called, as a part of a file's name.
#[must_use]
pub fn name(command: &[OsString]) -> String {
    let program = command.first().map(OsString::as_os_str).unwrap_or_default();
    let name = Path::new(program).file_name().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    let name: String = name
        .to_string_lossy()
        .chars()
        .filter(|&c| is_plain(c))
        .take(32)
        .collect();
    if name.is_empty() {
        "command".to_owned()
    } else {
        name
    }
}

/// The command with the switch of wasmtime, which takes it as an argument alone; otherwise as it is.
#[must_use]
pub fn with_switch(command: &[OsString], without: &[String]) -> Vec<OsString> {
    const SWITCH: &str = "--profile";
    let is_off = without.iter().any(|off| off == "wasmtime" || off == "all");
    let says_so = |word: &OsString| word.to_string_lossy().starts_with(SWITCH);
    if is_off || name(command) != "wasmtime" || command.iter().any(says_so) {
        return command.to_owned();
    }
    let runs = ["run", "serve"].map(OsStr::new);
    let at = match command.get(1) {
        Some(word) if runs.contains(&word.as_os_str()) => 2,
        _ => 1,
    };
    let mut command = command.to_owned();
    command.insert(at, format!("{SWITCH}=jitdump").into());
    command
}

/// What is lost on the way to the program that is meant.
#[must_use]
pub fn notes(command: &[OsString]) -> Vec<Note> {
    let text = |at: usize| {
        let word: Option<&OsString> = command.get(at);
        word.map(|word| word.to_string_lossy()).unwrap_or_default()
    };
    let name = name(command);
    let clears = match name.as_str() {
        "sudo" | "doas" | "ssh" => true,
        "env" => matches!(&*text(1), "-i" | "--ignore-environment" | "-"),
        "docker" | "podman" => matches!(&*text(1), "run" | "exec" | "compose"),
        _ => false,
    };
    let mut notes = Vec::new();
    if matches!(name.as_str(), "sudo" | "doas") {
        let note = Note::new(format!(
            "{name} runs as another user, whom this recording cannot follow"
        ));
        notes.push(note.mended_by("sudo pjit record …"));
    } else if clears {
        let mut note = Note::new(format!(
            "{name} hands no variables on: runtimes behind it get no switches"
        ));
        if matches!(name.as_str(), "docker" | "podman") {
            note =
                note.mended_by("pjit record -p PID of the program in the container, on the host");
        }
        notes.push(note);
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(name(&words("/usr/bin/npm run build")), "npm");
        assert_eq!(name(&words("./a;b$(c)")), "abc");
        assert_eq!(name(&words("…")), "command");
        assert_eq!(name(&[]), "command");
    }

    #[test]
    fn wasmtime_alone_gets_an_argument() {
        let line = |line: &str, off: &[String]| {
            let made = with_switch(&words(line), off);
            made.join(OsStr::new(" ")).to_string_lossy().into_owned()
        };
        assert_eq!(
            line("wasmtime run a.wasm", &[]),
            "wasmtime run --profile=jitdump a.wasm"
        );
        assert_eq!(
            line("/x/wasmtime a.wasm", &[]),
            "/x/wasmtime --profile=jitdump a.wasm"
        );
        for same in ["wasmtime run --profile=guest a.wasm", "node run a.js"] {
            assert_eq!(line(same, &[]), same);
        }
        assert_eq!(line("wasmtime a", &["all".to_owned()]), "wasmtime a");
    }

    #[test]
    fn what_clears_the_environment_is_told() {
        for line in [
            "sudo make",
            "env -i node x",
            "ssh host make",
            "docker run x",
        ] {
            assert_eq!(notes(&words(line)).len(), 1, "{line}");
        }
        for line in ["env A=1 make", "docker ps", "make", "sudoku"] {
            assert_eq!(notes(&words(line)), [], "{line}");
        }
    }
}
