//! A nameless temporary file, for what must be kept and may not stay in memory.
//!
//! In: pieces of a stream that cannot be read twice. Out: the same pieces. Used by the readers of streams only.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Pieces in a file that has no name and goes with the process. The file is made when the first piece comes.
#[derive(Debug, Default)]
pub struct Spill {
    file: Option<File>,
    len: u64,
    /// No file can be made, or no more be written: on a full disk it is of no use to go on trying.
    given_up: bool,
}

impl Spill {
    /// Appends a piece; where it is, or `None` if it could not be written whole.
    pub fn put(&mut self, piece: &[u8]) -> Option<Range<u64>> {
        let written = self.write(piece);
        self.given_up |= written.is_none();
        let place = self.len..self.len + written?;
        self.len = place.end;
        Some(place)
    }

    fn write(&mut self, piece: &[u8]) -> Option<u64> {
        if self.given_up {
            return None;
        }
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(nameless(&std::env::temp_dir()).ok()?),
        };
        file.write_all_at(piece, self.len).ok()?;
        u64::try_from(piece.len()).ok()
    }

    /// A piece that was put there.
    ///
    /// # Errors
    /// What the system says.
    pub fn get(&self, place: &Range<u64>) -> io::Result<Vec<u8>> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let len = usize::try_from(place.end - place.start).map_err(io::Error::other)?;
        let mut piece = vec![0; len];
        file.read_exact_at(&mut piece, place.start)?;
        Ok(piece)
    }
}

/// A new file of this user only, with its name taken away at once.
fn nameless(directory: &Path) -> io::Result<File> {
    /// Names that others may have taken.
    const TRIES: u32 = 16;
    let id = std::process::id();
    let mut last = io::ErrorKind::AlreadyExists.into();
    for n in 0..TRIES {
        let path = directory.join(format!(".pjit-{id}-{n}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_was_put() {
        let mut spill = Spill::default();
        let first = spill.put(b"first").expect("a temporary directory");
        let none = spill.put(b"").expect("the same file");
        let second = spill.put(&[7; 100_000]).expect("the same file");
        assert_eq!(spill.get(&second).ok(), Some(vec![7; 100_000]));
        assert_eq!(spill.get(&first).ok().as_deref(), Some(&b"first"[..]));
        assert_eq!(spill.get(&none).ok(), Some(Vec::new()));
        assert!(spill.get(&(second.end..second.end + 1)).is_err());
    }

    #[test]
    fn leaves_no_name_behind() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = nameless(directory.path()).expect("the directory is empty");
        let left = std::fs::read_dir(directory.path()).expect("a directory");
        assert_eq!(left.count(), 0);
        drop(file);
        assert!(nameless(&directory.path().join("absent")).is_err());
    }

    #[test]
    fn takes_no_file_of_others() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let taken = directory
            .path()
            .join(format!(".pjit-{}-0", std::process::id()));
        std::os::unix::fs::symlink("/dev/full", &taken).expect("a new link");
        let file = nameless(directory.path()).expect("another name is free");
        assert!(file.metadata().is_ok_and(|m| m.is_file() && m.len() == 0));
        assert!(std::fs::symlink_metadata(&taken).is_ok());
    }
}
