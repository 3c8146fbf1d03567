//! Texts that people read: README, pages, papers, help. Sentences are short, words plain, lines fit, and what is shown is real.

mod effects;
mod help;
mod messages;
mod pages;
mod prose;

use std::path::{Path, PathBuf};

/// The project's folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// README, papers and pages, by their paths from the project's folder.
fn texts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/guide", ".github/ISSUE_TEMPLATE"] {
        let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten();
        for entry in entries.flatten() {
            let path = Path::new(folder).join(entry.file_name());
            if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 25, "{found:?}");
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).expect("it is there")
}
