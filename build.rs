//! The version with the commit that it is built from: `0.1.0 (786ddee 2026-11-23)`.
//!
//! Only of what is built to be used: while one tries things, a commit would be wrong and a build after each of them slow.
//! The commit is that of `PJIT_COMMIT`, else of the packed crate, else of git; without any there is the number alone.

use std::env;
use std::fs;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PJIT_COMMIT");
    let number = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let given = env::var("PJIT_COMMIT")
        .ok()
        .filter(|given| !given.is_empty());
    let commit = given.or_else(|| is_release.then(commit).flatten());
    let version = match commit {
        Some(commit) => format!("{number} ({commit})"),
        None => number,
    };
    println!("cargo:rustc-env=PJIT_VERSION={version}");
}

/// The commit of the folder, and its date if git is here.
fn commit() -> Option<String> {
    // `cargo package` puts it into the crate.
    if let Ok(text) = fs::read_to_string(".cargo_vcs_info.json") {
        let (_, rest) = text.split_once("\"sha1\": \"")?;
        return rest.get(..7).map(str::to_owned);
    }
    // A crate below somebody's project has that project's history above it.
    let top = git(&["rev-parse", "--show-prefix"])?;
    if !top.is_empty() {
        return None;
    }
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["log", "-1", "--format=%h %cs", "--abbrev=7"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
