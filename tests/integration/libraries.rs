//! Several questions of one [`Library`]: what it keeps from one never changes the answer to another.

use std::fs;
use std::path::{Path, PathBuf};

use pjit::ask::{Arena, Check, Fold, Library, Request, Summary};
use pjit::diagnostics::Diagnostics;
use pjit::load::{LoadOptions, Source};
use pjit::output::answer::{Format, write};

fn sample(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("samples")
        .join(file)
}

/// Files of the sample with programs beside it, in a folder that may be changed.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        fs::create_dir_all(folder.path().join(&below)).expect("a folder");
        for entry in fs::read_dir(sample("native").join(&below)).expect("the sample") {
            let entry = entry.expect("an entry");
            let path = below.join(entry.file_name());
            if entry.path().is_dir() {
                left.push(path);
            } else if path.starts_with("symfs") || path.starts_with("perf.data") {
                fs::copy(entry.path(), folder.path().join(&path)).expect("copied");
            }
        }
    }
    folder
}

/// Three pages about a recording: whether it is fit, its stacks, and where its time went.
fn pages(recording: &Path, library: &Library<'_>) -> String {
    let load = LoadOptions::of(Source::File(recording.to_owned()));
    let mut text = Vec::new();
    let checked = Request::of(load.clone(), Check::default()).ask(library);
    checked
        .expect("a verdict")
        .write_text(false, &mut text)
        .expect("written");
    let folded = Request::of(load.clone(), Fold::default()).ask(library);
    folded.expect("stacks").write(&mut text).expect("written");
    let summary = Request::of(load, Summary::default()).ask(library);
    write(&summary.expect("a summary"), Format::Text, None, &mut text).expect("written");
    String::from_utf8(text).expect("text")
}

/// What a library says that has not been asked before.
fn anew(recording: &Path) -> String {
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    pages(recording, &Library::of_one_question(&arena, &diag))
}

#[test]
fn files_that_change_between_questions_are_read_anew() {
    let folder = copy();
    let recording = folder.path().join("perf.data");
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    let library = Library::new(&arena, &diag);
    let first = pages(&recording, &library);
    assert_eq!(first, anew(&recording));
    assert_eq!(pages(&recording, &library), first, "asked once more");

    // A program that is gone, and is there again.
    let symfs = folder.path().join("symfs");
    let aside = folder.path().join("aside");
    fs::rename(&symfs, &aside).expect("renamed");
    let without = pages(&recording, &library);
    assert_eq!(without, anew(&recording));
    assert_ne!(without, first);
    fs::rename(&aside, &symfs).expect("renamed");
    assert_eq!(pages(&recording, &library), first);

    // Another recording of the same name, in the same file and in another.
    let other = fs::read(sample("minijit/perf.data")).expect("the sample");
    fs::write(&recording, &other).expect("written");
    let second = pages(&recording, &library);
    assert_eq!(second, anew(&recording));
    assert_ne!(second, first);
    let beside = folder.path().join("beside");
    fs::copy(sample("native/perf.data"), &beside).expect("copied");
    fs::rename(&beside, &recording).expect("renamed");
    assert_eq!(pages(&recording, &library), first);
}

/// The same program is opened once for several recordings, and each gets the answer that it gets alone.
#[test]
fn recordings_in_one_library_are_answered_as_alone() {
    let (arena, diag) = (Arena::new(), Diagnostics::new());
    let library = Library::new(&arena, &diag);
    for name in ["native", "wasmtime", "minijit", "node", "native"] {
        let recording = sample(name).join("perf.data");
        assert_eq!(pages(&recording, &library), anew(&recording), "{name}");
    }
}
