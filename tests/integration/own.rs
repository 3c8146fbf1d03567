//! What is taken for the user's own code: small programs with libraries in them, with debug information in all places where it may be,
//! and without. Every address of a program is a sample.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bundle::{DEBUG_FILES, succeed};
use crate::inlines::{code, recording_of};
use crate::support::{pjit, skip};

/// By what it was told what is own, and kinds by name.
fn kinds(program: &Path) -> (String, BTreeMap<String, String>) {
    let code = code(&fs::read(program).expect("built"));
    let data = program.with_extension("data");
    let path = program.to_str().expect("a plain path");
    fs::write(&data, recording_of(path.as_bytes(), &code)).expect("written");
    let view = ["summary", "--format", "json", "--budget", "1000000", "-i"];
    let answer = succeed(pjit().args(view).arg(&data)).stdout;
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let functions = answer["functions"].as_array().expect("functions").iter();
    let kinds = functions.map(|function| (text(&function["name"]), text(&function["kind"])));
    (text(&answer["own"]["rule"]), kinds.collect())
}

/// Names of the functions of a kind, without gaps between functions.
fn of_kind(kinds: &BTreeMap<String, String>, kind: &str) -> Vec<String> {
    let own = kinds
        .iter()
        .filter(|(name, of)| *of == kind && *name != "[unknown]");
    own.map(|(name, _)| name.clone()).collect()
}

fn has(program: &str) -> bool {
    let found = Command::new("which").arg(program).output();
    found.is_ok_and(|output| output.status.success())
}

/// Of the functions that have no namespace one is the user's.
const SORTING: &str = "#include <algorithm>\n#include <cstdio>\n#include <vector>\n\
    int main(int argc, char **argv) {\n\
      std::vector<int> v;\n\
      for (int i = 0; i < 1000; i++) v.push_back(i * argc % 97);\n\
      std::sort(v.begin(), v.end(), [](int a, int b) { return a % 13 < b % 13; });\n\
      std::printf(\"%d %s\\n\", v[argc], argv[0]);\n\
    }\n";

#[test]
fn lambdas_are_own_and_their_library_is_not() {
    for (oracle, name, how) in DEBUG_FILES {
        if let Some(missing) = ["c++", "objcopy", oracle]
            .into_iter()
            .find(|name| !has(name))
        {
            skip(
                if missing == "objcopy" {
                    "objdump"
                } else {
                    missing
                },
                name,
            );
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.cc"), SORTING).expect("written");
        succeed(Command::new("sh").args(["-ec", how]).current_dir(&folder));
        let (rule, kinds) = kinds(&folder.path().join("a"));
        assert_eq!(rule, "path", "{name}");
        assert_eq!(of_kind(&kinds, "own"), ["main", "operator()"], "{name}");
        assert!(of_kind(&kinds, "std").len() > 20, "{name}: {kinds:?}");
    }
}

const GO: &str = r#"package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

type shape struct{ side float64 }

//go:noinline
func (s *shape) area() float64 { return s.side * s.side }

//go:noinline
func join(n int) int {
	var b strings.Builder
	for i := 0; i < n; i++ {
		b.WriteString(strconv.Itoa(i))
	}
	return b.Len()
}

func main() {
	list := []int{3, 1, 2}
	sort.Slice(list, func(a, b int) bool { return list[a] < list[b] })
	s := &shape{2}
	fmt.Println(join(len(os.Args)), list, s.area())
}
"#;

#[test]
fn of_a_go_program_the_main_package_is_own() {
    if !has("go") {
        return skip("go", "it cannot be run");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("main.go"), GO).expect("written");
    for flags in ["-ldflags=", "-ldflags=-w"] {
        let mut build = Command::new("go");
        build.args(["build", flags, "-o", "program", "main.go"]);
        build.env("GO111MODULE", "off").env("GOFLAGS", "");
        build.env("GOCACHE", folder.path().join("cache"));
        succeed(build.current_dir(&folder));
        let (_, kinds) = kinds(&folder.path().join("program"));
        let own = of_kind(&kinds, "own");
        assert!(own.iter().all(|name| name.starts_with("main.")), "{own:?}");
        for name in ["main.main", "main.join"] {
            assert!(own.iter().any(|own| own == name), "{own:?}");
        }
        assert!(
            of_kind(&kinds, "std").len() > 500,
            "{flags}: {}",
            kinds.len()
        );
    }
}

/// A crate as cargo unpacks it, whose functions take closures.
const CRATE: &str = "#[inline(never)]
pub fn spread<T>(items: &mut [T], with: impl Fn(&mut T)) { for item in items { with(item); } }
#[inline(never)]
pub fn sum(items: &[u64]) -> u64 { items.iter().fold(7, |a, b| a.rotate_left(5) ^ *b) }
";

const USER: &str = "#[inline(never)]
fn total(items: &[u64]) -> u64 { par::sum(items) ^ items.len() as u64 }
fn main() {
    let mut items: Vec<u64> = std::env::args().map(|word| word.len() as u64).collect();
    par::spread(&mut items, |item| *item = item.wrapping_mul(31) % 17);
    println!(\"{}\", total(&items));
}
";

#[test]
fn crates_of_others_are_dependencies() {
    let version = Command::new("rustc").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return skip("rustc", "it cannot be run");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder
        .path()
        .join(".cargo/registry/src/index/par-1.0.0/src");
    fs::create_dir_all(&source).expect("made");
    fs::write(source.join("lib.rs"), CRATE).expect("written");
    fs::write(folder.path().join("app.rs"), USER).expect("written");
    let rustc = |arguments: &[&str]| {
        let mut rustc = Command::new("rustc");
        rustc.args(["-O", "-C", "debuginfo=2", "-C", "codegen-units=1"]);
        succeed(rustc.args(arguments).current_dir(&folder));
    };
    let library = source.join("lib.rs");
    let library = library.to_str().expect("a plain path");
    rustc(&[
        "--crate-type=rlib",
        "--crate-name=par",
        "-o",
        "libpar.rlib",
        library,
    ]);
    rustc(&["--extern=par=libpar.rlib", "-o", "app", "app.rs"]);
    let (rule, kinds) = kinds(&folder.path().join("app"));
    assert_eq!(rule, "path");
    let own = of_kind(&kinds, "own");
    let is_own = |part: &str| own.iter().any(|name| name.contains(part));
    assert!(
        is_own("total") && is_own("main::{{closure}}") | is_own("main::{closure"),
        "{own:?}"
    );
    assert!(!is_own("par::"), "{own:?}");
    let theirs = of_kind(&kinds, "dependency");
    let is_theirs = |part: &str| theirs.iter().any(|name| name.contains(part));
    assert!(is_theirs("sum") && is_theirs("spread"), "{theirs:?}");
}
