//! A nameless temporary file, for what must be kept and may not stay in memory.
//!
//! In: pieces of a stream that cannot be read twice. Out: the same pieces. Used by the readers of streams only.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

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
        let mut file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile().ok()?),
        };
        file.seek(SeekFrom::Start(self.len)).ok()?;
        file.write_all(piece).ok()?;
        u64::try_from(piece.len()).ok()
    }

    /// A piece that was put there.
    ///
    /// # Errors
    /// What the system says.
    pub fn get(&mut self, place: &Range<u64>) -> io::Result<Vec<u8>> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let len = usize::try_from(place.end - place.start).map_err(io::Error::other)?;
        let mut piece = vec![0; len];
        file.seek(SeekFrom::Start(place.start))?;
        file.read_exact(&mut piece)?;
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_was_put() {
        let mut spill = Spill::default();
        let first = spill.put(b"first").expect("a temporary directory");
        let none = spill.put(b"").expect("the same file");
        assert_eq!(spill.get(&first).ok().as_deref(), Some(&b"first"[..]));
        let second = spill.put(&[7; 100_000]).expect("the same file");
        assert_eq!(spill.get(&second).ok(), Some(vec![7; 100_000]));
        assert_eq!(spill.get(&first).ok().as_deref(), Some(&b"first"[..]));
        assert_eq!(spill.get(&none).ok(), Some(Vec::new()));
        assert!(spill.get(&(second.end..second.end + 1)).is_err());
    }
}
