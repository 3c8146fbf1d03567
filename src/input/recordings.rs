//! The recordings that paths stand for, where several are asked for.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::identity;

/// What recordings, and pipe streams saved to a file, begin with.
pub const MAGIC: &[u8; 8] = b"PERFILE2";

/// Why a folder gives no recordings.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It cannot be read.
    #[error("{0}")]
    Read(String, #[source] std::io::Error),
    /// There are none in it.
    #[error("{0}: no recording in this folder")]
    Empty(String),
}

/// Folders as the recordings in them: `perf.data`, files that end in `.data`, slices that end in `.data.TIME`, folders of
/// `perf record --threads`, and folders that hold a `perf.data`. A folder of `perf record --threads` is a recording itself,
/// whatever it is called.
///
/// # Errors
/// When a folder cannot be read or has none.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FolderError> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() || is_recording(path) {
            all.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        let mut unfinished = Vec::new();
        let unread = |error| FolderError::Read(path.display().to_string(), error);
        for entry in std::fs::read_dir(path).map_err(unread)? {
            let entry = entry.map_err(unread)?.path();
            let inner = entry.join("perf.data");
            if is_recording(&entry) {
                found.push(entry);
            } else if entry.is_dir() && (inner.is_file() || is_recording(&inner)) {
                found.push(inner);
            } else if entry.is_file() && entry.extension().is_some_and(|e| e == "data") {
                found.push(entry);
            } else if let Some(unsliced) = unsliced(&entry).filter(|_| entry.is_file()) {
                found.push(entry);
                unfinished.push(unsliced);
            }
        }
        // perf is writing the next slice to it, or was when it ended.
        found.retain(|entry| !unfinished.contains(entry));
        if found.is_empty() {
            return Err(FolderError::Empty(path.display().to_string()));
        }
        found.sort();
        all.extend(found);
    }
    Ok(all)
}

/// The recording that `pjit record` wrote last into a folder of its own here.
#[must_use]
pub fn newest_recorded(here: &Path) -> Option<PathBuf> {
    let inside = std::fs::read_dir(here).ok()?.flatten();
    let ours = inside.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"pjit-"));
    let recordings = ours.map(|entry| entry.path().join("perf.data"));
    recordings
        .filter(|path| path.is_file())
        .max_by_key(|path| (written(path), path.clone()))
}

/// When a recording was written.
#[must_use]
pub fn written(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path)
        .and_then(|meta| meta.modified())
        .ok()
}

/// Whether a folder is what `perf record --threads` writes: a file `data` that begins as recordings do, and others beside it.
fn is_recording(folder: &Path) -> bool {
    begins_as_recording(&folder.join("data"))
}

/// Whether a path is that of a recording, or of a folder with one.
#[must_use]
pub fn is_recording_at(path: &Path) -> bool {
    begins_as_recording(path) || is_recording(path) || begins_as_recording(&path.join("perf.data"))
}

fn begins_as_recording(path: &Path) -> bool {
    let mut magic = [0; 8];
    // What is no file may keep its reader waiting.
    if !path.is_file() {
        return false;
    }
    let file = std::fs::File::open(path);
    let read = file.and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *MAGIC
}

/// The path without the time that `perf record --switch-output` puts behind it: `perf.data` of
/// `perf.data.2026112315451439`.
fn unsliced(path: &Path) -> Option<PathBuf> {
    let time = path.extension()?.to_str()?;
    let before = path.with_extension("");
    let is_slice = time.bytes().all(|byte| byte.is_ascii_digit())
        && before.extension().is_some_and(|e| e == "data");
    is_slice.then_some(before)
}

/// A recording that is named twice would be two runs that agree to the last sample, and any difference certain. Says which one
/// stands on both sides.
///
/// # Errors
/// When one is twice on a side; the text says which.
pub fn told_apart(base: &[PathBuf], new: &[PathBuf]) -> Result<Option<PathBuf>, String> {
    let mut known: BTreeMap<(u64, u64), bool> = BTreeMap::new();
    let mut shared = None;
    let base = base.iter().map(|path| (path, false));
    for (path, is_new) in base.chain(new.iter().map(|path| (path, true))) {
        let Ok(data) = std::fs::metadata(path) else {
            continue;
        };
        if !data.is_file() {
            continue;
        }
        match known.insert(identity(path, &data), is_new) {
            Some(before) if before == is_new => {
                return Err(format!("{}: the same recording twice", path.display()));
            }
            Some(_) => shared = Some(path.clone()),
            None => {}
        }
    }
    Ok(shared)
}

/// Bytes of a recording, of all files where it is a folder.
#[must_use]
pub fn recording_size(path: &Path) -> u64 {
    let length = |each: &Path| std::fs::metadata(each).map_or(0, |data| data.len());
    if !path.is_dir() {
        return length(path);
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    files.map(|file| length(&file.path())).sum()
}

/// False for pipes and what is like them: a second reader would wait, or get what comes next.
#[must_use]
pub fn can_be_read_again(path: &Path) -> bool {
    path.is_file() || path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_recording_is_not_two_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let [a, b] = ["a.data", "b.data"].map(|name| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).expect("written");
            path
        });
        let link = folder.path().join("link.data");
        std::os::unix::fs::symlink(&a, &link).expect("a link");
        let one = |path: &PathBuf| vec![path.clone()];
        assert_eq!(told_apart(&one(&a), &one(&b)), Ok(None));
        assert_eq!(told_apart(&one(&a), &one(&link)), Ok(Some(link.clone())));
        assert!(told_apart(&[a, link], &one(&b)).is_err());
    }

    #[test]
    fn folders_of_several_threads_are_recordings() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = folder.path().join("a.data");
        let (two, none) = (folder.path().join("b/perf.data"), folder.path().join("c"));
        for (path, begins) in [
            (&one, "PERFILE2 and more"),
            (&two, "PERFILE2"),
            (&none, "text"),
        ] {
            std::fs::create_dir_all(path).expect("a folder");
            std::fs::write(path.join("data"), begins).expect("a file");
        }
        let found = |path: &Path| expand(&[path.to_owned()]).ok();
        assert_eq!(found(&one), Some(vec![one.clone()]));
        assert_eq!(found(&two), Some(vec![two.clone()]));
        assert_eq!(found(folder.path()), Some(vec![one.clone(), two.clone()]));
        assert_eq!(found(&none), None);
    }

    #[test]
    fn folders_hold_recordings_and_slices() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["0.data", "1.data", "2.data"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let all = expand(&[folder.path().to_owned()]).expect("recordings");
        assert_eq!(all.len(), 3);
        let slices = tempfile::tempdir().expect("a folder");
        for name in [
            "r.data",
            "r.data.2026112315451439",
            "r.data.2026112315451539",
            "r.data.old",
        ] {
            std::fs::write(slices.path().join(name), "").expect("a file");
        }
        let found = expand(&[slices.path().to_owned()]).expect("recordings");
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(
            names,
            ["r.data.2026112315451439", "r.data.2026112315451539"]
        );
    }
}
