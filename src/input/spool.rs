//! A file that comes through a pipe, made one again.
//!
//! In: a reader. Out: all its bytes, which live as long as the [`Store`]: in memory while they are few, else in a temporary
//! file without a name, mapped.

use std::io::{Read, Seek, Write};
use std::path::Path;

use super::{InputError, Store};

/// More than this goes to a file.
const IN_MEMORY: u64 = 24 << 20;

impl Store {
    /// All that `reader` has. `name` is for messages.
    ///
    /// # Errors
    /// When it cannot be read, or there is no room for it in the folder for temporary files.
    pub fn spool(&self, name: &Path, mut reader: impl Read) -> Result<&[u8], InputError> {
        let io = |error| InputError::io(name, error);
        let mut bytes = Vec::new();
        let front = reader.by_ref().take(IN_MEMORY).read_to_end(&mut bytes);
        if (front.map_err(io)? as u64) < IN_MEMORY {
            return Ok(self.keep(bytes));
        }
        let mut file = tempfile::tempfile().map_err(io)?;
        file.write_all(&bytes).map_err(io)?;
        drop(bytes);
        std::io::copy(&mut reader, &mut file).map_err(io)?;
        file.rewind().map_err(io)?;
        Ok(self.at(self.map_whole(name, &file)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_stay_and_many_come_back() {
        let store = Store::new();
        let name = Path::new("-");
        assert_eq!(store.spool(name, &b"few"[..]).expect("kept"), b"few");
        let many = IN_MEMORY + 5;
        let back = store
            .spool(name, std::io::repeat(7).take(many))
            .expect("kept");
        assert_eq!(back.len() as u64, many);
        assert!(back.iter().all(|byte| *byte == 7));
    }
}
