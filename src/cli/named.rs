//! Paths that options name: what is not there is an error, before anything is read.
//!
//! Where companions of a recording are looked for, what is missing is normal. A path that somebody typed is not: a report
//! without names would be the only sign of a typing mistake.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::diagnostics::Diagnostics;
use crate::input::files_in;

/// A path, and what is to be there.
#[derive(Debug, Clone, Copy)]
pub struct Named<'p> {
    /// `--jitdump`
    pub option: &'static str,
    /// As it was given.
    pub path: &'p Path,
    /// What is to be there.
    pub wanted: Wanted,
}

/// What an option names.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    /// A file.
    File,
    /// A folder with anything in it.
    Folder,
    /// A folder with files of such names, which the words describe.
    FolderOf(fn(&[u8]) -> bool, &'static str),
    /// Such a folder, or a file of any name.
    FileOrFolderOf(fn(&[u8]) -> bool, &'static str),
}

/// Asks that all are there. A folder in which nothing can be found is a warning.
///
/// # Errors
/// Names the option and the path that is not there, or is not what it should be.
pub(super) fn require(named: &[Named<'_>], diag: &Diagnostics) -> anyhow::Result<()> {
    for Named {
        option,
        path,
        wanted,
    } in named
    {
        let shown = path.display();
        let found = fs::metadata(path).with_context(|| format!("{option}: {shown}"))?;
        let is_folder = found.is_dir();
        let (matches, what): (fn(&[u8]) -> bool, _) = match *wanted {
            Wanted::File => continue,
            Wanted::FileOrFolderOf(..) if !is_folder => continue,
            Wanted::Folder | Wanted::FolderOf(..) if !is_folder => {
                anyhow::bail!("{option}: {shown}: not a folder")
            }
            Wanted::Folder => (|_| true, "file"),
            Wanted::FolderOf(matches, what) | Wanted::FileOrFolderOf(matches, what) => {
                (matches, what)
            }
        };
        let files = files_in(path);
        let mut names = files.iter().filter_map(|file| file.file_name());
        if !names.any(|name| matches(name.as_encoded_bytes())) {
            diag.warn(format!("{option}: {shown}: no {what} in this folder"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &Path, wanted: Wanted) -> Result<Vec<String>, String> {
        let diag = Diagnostics::new();
        let option = "--it";
        let named = Named {
            option,
            path,
            wanted,
        };
        match require(&[named], &diag) {
            Ok(()) => Ok(diag.warnings()),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    #[test]
    fn what_is_named_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let (folder, file) = (folder.path(), folder.path().join("x.map"));
        let maps: fn(&[u8]) -> bool = |name| name.ends_with(b".map");
        let (of, either) = (Wanted::FolderOf, Wanted::FileOrFolderOf);
        let all = [
            Wanted::File,
            Wanted::Folder,
            of(maps, "map"),
            either(maps, "map"),
        ];
        for wanted in all {
            let told = said(&file, wanted).expect_err("it is not there");
            assert!(
                told.starts_with(&format!("--it: {}: No such file", file.display())),
                "{told}"
            );
        }
        let empty = said(folder, either(maps, "map")).expect("a folder");
        assert_eq!(
            empty,
            [format!("--it: {}: no map in this folder", folder.display())]
        );
        std::fs::write(&file, "").expect("written");
        for wanted in all {
            assert_eq!(said(folder, wanted), Ok(Vec::new()));
            let is_file = matches!(wanted, Wanted::File | Wanted::FileOrFolderOf(..));
            assert_eq!(said(&file, wanted).is_ok(), is_file, "{wanted:?}");
        }
    }
}
