//! Functions that have several names in their file: aliases, and code that a linker made one. And equal code of which one side alone has
//! debug information.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bundle::succeed;
use crate::inlines::{code, recording_of};
use crate::support::{pjit, program, skip};

/// A program of C in a folder of its own.
struct Built(PathBuf);

impl Built {
    fn of(folder: &Path, source: &str, options: &[&str]) -> Self {
        fs::create_dir_all(folder).expect("made");
        fs::write(folder.join("prog.c"), source).expect("written");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-o", "prog", "prog.c"]).args(options);
        succeed(cc.current_dir(folder));
        Self(folder.join("prog"))
    }

    /// Three recordings in which functions have so many samples.
    fn runs(&self, functions: &[(&str, usize)]) -> Vec<PathBuf> {
        let listed = succeed(Command::new("nm").args(["-S", "-n"]).arg(&self.0));
        let listed = String::from_utf8(listed.stdout).expect("UTF-8");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let code = code(&fs::read(&self.0).expect("built"));
        let mut places = Vec::new();
        for (name, samples) in functions {
            let line = listed
                .lines()
                .find(|line| line.ends_with(&format!(" {name}")));
            let words: Vec<&str> = line.expect("a symbol").split(' ').collect();
            let (start, size) = (number(words[0]), number(words[1]));
            let inside = code
                .iter()
                .filter(|at| (start..start + size).contains(&at.1));
            places.extend(inside.copied().cycle().take(*samples));
        }
        let path = self.0.to_str().expect("a plain path");
        let runs = [0, 1, 2].map(|run| {
            let data = self.0.with_file_name(format!("{run}.data"));
            fs::write(&data, recording_of(path.as_bytes(), &places)).expect("written");
            data
        });
        runs.to_vec()
    }
}

fn has_tools() -> bool {
    let has = ["cc", "nm"].iter().all(|name| program(name).is_some());
    if !has {
        skip("cc", "it cannot be built");
    }
    has
}

/// Status and all that `pjit gate` says.
fn gate(base: &[PathBuf], new: &[PathBuf]) -> (Option<i32>, String) {
    let mut command = pjit();
    command.arg("gate").args(base).arg("--to").args(new);
    command.args(["--any-growth", "10%", "--no-new", "2%"]);
    let output = command.output().expect("the binary can be run");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn text(verb: &[&str], data: &Path) -> String {
    let output = pjit().args(verb).arg(data).output();
    let output = output.expect("the binary can be run");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// A function that does something for a while.
fn body(name: &str) -> String {
    let body = "sum += n;".repeat(100);
    format!(
        "__attribute__((noinline)) int {name}(int n) {{ volatile int sum = n; {body} return sum; }}\n"
    )
}

#[test]
fn another_name_makes_no_other_function() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let main = "int main(int n, char **v) { return compress(n) + other(n); }\n";
    let plain = body("compress") + &body("other") + main;
    let alias = "int compress_v2_compat(int) __attribute__((alias(\"compress\")));\n";
    let base = Built::of(&folder.path().join("old"), &plain, &[]);
    let new = Built::of(&folder.path().join("new"), &(plain + alias), &[]);
    let base = base.runs(&[("compress", 1000), ("other", 1000)]);
    let equal = new.runs(&[("compress", 1000), ("other", 1000)]);
    let (status, said) = gate(&base, &equal);
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = gate(&equal, &base);
    assert_eq!(status, Some(0), "{said}");
    // A true growth is one of that function. What was not sampled is still there.
    let slower = new.runs(&[("compress", 2000), ("other", 1000)]);
    let (status, said) = gate(&base, &slower);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("compress_v2_compat +"), "{said}");
    let other = Built(folder.path().join("old/prog")).runs(&[("other", 1000)]);
    let (_, said) = gate(&other, &slower);
    assert!(!said.contains("only one side has"), "{said}");
    // Who runs is called as perf calls it.
    let said = text(&["report", "-i"], &slower[0]);
    assert!(said.contains("compress_v2_compat"), "{said}");
}

#[test]
fn code_of_several_functions_is_no_verdict_on_one() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let names = "int audio(int) __asm__(\"_ZN5audio3mixEi\");\nint render(int) __asm__(\"_ZN6render5blendEi\");\n";
    let main = "int main(int n, char **v) { return audio(n) + render(n) + other(n); }\n";
    let apart = names.to_owned() + &body("audio") + &body("render") + &body("other") + main;
    let alias = "int render(int) __attribute__((alias(\"_ZN5audio3mixEi\")));\n";
    let one = names.to_owned() + &body("audio") + alias + &body("other") + main;
    let apart = Built::of(&folder.path().join("apart"), &apart, &[]);
    let one = Built::of(&folder.path().join("one"), &one, &[]);
    let (audio, render) = ("_ZN5audio3mixEi", "_ZN6render5blendEi");
    let apart = apart.runs(&[(audio, 1000), (render, 1000), ("other", 1000)]);
    let one = one.runs(&[(audio, 2000), ("other", 1000)]);
    for (base, new) in [(&apart, &one), (&one, &apart)] {
        let (status, said) = gate(base, new);
        assert_ne!(status, Some(3), "{said}");
        assert!(said.contains("nothing tells whose time it is"), "{said}");
    }
    assert_eq!(
        gate(&one, &one.clone()).0.filter(|status| *status == 3),
        None
    );
    let data = &one[0];
    let said = text(&["check", "-i"], data);
    assert!(said.contains("note  symbols.shared"), "{said}");
    let (shown, other) = ("render::blend", "audio::mix");
    let either = format!("{shown} (or {other})");
    assert!(said.contains(&either), "{said}");
    for verb in [
        &["summary", "-i"][..],
        &["list", "render::blend", "-i"],
        &["annotate", "render::blend", "-i"],
    ] {
        let said = text(verb, data);
        assert!(said.contains(&either), "{verb:?}: {said}");
    }
    assert!(!text(&["check", "-i"], &apart[0]).contains("symbols.shared"));
}

#[test]
fn debug_information_of_one_side_alone_is_no_change() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = body("step").replace("noinline", "always_inline")
        + "__attribute__((noinline)) int encode(int n) { return step(n) + 1; }\n"
        + &body("decode")
        + "int main(int n, char **v) { return encode(n) + decode(n); }\n";
    let source = source.replacen(
        "__attribute__((always_inline))",
        "static inline __attribute__((always_inline))",
        1,
    );
    let [bare, told] = ["-g0", "-g"].map(|option| {
        let built = Built::of(&folder.path().join(option), &source, &[option]);
        built.runs(&[("encode", 1000), ("decode", 1000)])
    });
    for (base, new) in [(&bare, &told), (&told, &bare)] {
        let (status, said) = gate(base, new);
        assert_eq!(status, Some(0), "{said}");
        let why = "warning: prog: debug information on one side only";
        assert!(said.contains(why), "{said}");
    }
    let (_, said) = gate(&told, &told.clone());
    assert!(!said.contains("debug information"), "{said}");
}
