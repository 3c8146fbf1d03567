//! Where files of WebAssembly and what they were compiled to are looked for.
//!
//! In: what the user named, the recording's folder and command line. Out: opened files, each once, those that the user named
//! first.

use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashSet;

use super::compiled::Compiled;
use super::module::WasmFile;
use crate::diagnostics::Diagnostics;
use crate::input::{Door, Store, files_in};

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct WasmSearch {
    /// `--cwasm FILE_OR_DIR`
    pub cwasm: Vec<PathBuf>,
    /// `--wasm FILE_OR_DIR`
    pub wasm: Vec<PathBuf>,
}

/// A file that was found.
#[derive(Debug)]
pub(super) struct WasmInput<T> {
    pub(super) path: PathBuf,
    /// Whether the user named it.
    pub(super) is_named: bool,
    pub(super) content: T,
}

/// Opens what is found.
pub(super) struct Finder<'f, 'a> {
    pub(super) store: &'a Store,
    pub(super) diag: &'f Diagnostics,
    pub(super) search: &'f WasmSearch,
    /// The folder of the recording.
    pub(super) folder: &'f Path,
    /// Folders that stand for `/`.
    pub(super) roots: &'f [PathBuf],
    /// What was recorded, word by word.
    pub(super) command: &'f [String],
}

impl<'a> Finder<'_, 'a> {
    /// Compiled modules.
    pub(super) fn compiled(&self) -> Vec<WasmInput<Compiled<'a>>> {
        self.open(&self.search.cwasm, "cwasm", |bytes| {
            Compiled::parse(self.unpacked(bytes)?)
        })
    }

    /// Modules.
    pub(super) fn modules(&self) -> Vec<WasmInput<WasmFile<'a>>> {
        self.open(&self.search.wasm, "wasm", WasmFile::parse)
    }

    fn open<T>(
        &self,
        named: &[PathBuf],
        extension: &str,
        parse: impl Fn(&'a [u8]) -> Option<T>,
    ) -> Vec<WasmInput<T>> {
        let named_files = named.iter().flat_map(|path| {
            let inside = with_extension(path, extension);
            if inside.is_empty() {
                vec![Door::named(path)]
            } else {
                inside
            }
        });
        let named_files = named_files.map(|door| (door, true));
        let others = self.beside(extension).into_iter().map(|door| (door, false));
        let (mut known, mut read) = (FxHashSet::default(), FxHashSet::default());
        let mut found = Vec::new();
        for (door, is_named) in named_files.chain(others) {
            let path = door.path().to_owned();
            if !known.insert(plain(&path)) {
                continue;
            }
            let bytes = self.store.map(&door);
            // One file may have many names.
            if bytes
                .as_ref()
                .is_ok_and(|bytes| !read.insert(bytes.as_ptr()))
            {
                continue;
            }
            match bytes.map(&parse) {
                Ok(Some(content)) => found.push(WasmInput {
                    path,
                    is_named,
                    content,
                }),
                Ok(None) if is_named => {
                    let path = path.display();
                    self.diag
                        .warn(format!("{path}: not a .{extension} file; not used"));
                }
                Err(why) if is_named => self.diag.warn(format!("{why}; not used")),
                _ => {}
            }
        }
        found
    }

    /// Files beside the recording, and those that its command line names.
    fn beside(&self, extension: &str) -> Vec<Door> {
        let mut doors = with_extension(self.folder, extension);
        for word in self.command {
            // `--flag=module.wasm`
            let word = word
                .rsplit_once('=')
                .map_or(word.as_str(), |(_, value)| value);
            let path = Path::new(word);
            let is_module = ["wasm", "cwasm", "wat"].map(|known| has_extension(path, known));
            if !is_module.contains(&true) {
                continue;
            }
            let path = path.with_extension(extension);
            if path.is_absolute() {
                let roots = self.roots.iter();
                doors.extend(roots.filter_map(|root| Door::in_root(root, &path)));
                continue;
            }
            if path.components().all(|part| part != Component::ParentDir) {
                doors.push(Door::beneath(self.folder, &path));
            }
            doors.push(Door::recorded(path));
        }
        doors
    }

    /// wasmtime's cache holds the same file, compressed.
    fn unpacked(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        /// Over all of them.
        const MAX_UNPACKED: u64 = 1 << 30;
        if !bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            return Some(bytes);
        }
        let left = MAX_UNPACKED.saturating_sub(self.store.kept() as u64);
        let most = (bytes.len() as u64).saturating_mul(64).min(left);
        let out = crate::zstd::decode_all(bytes, usize::try_from(most).ok()?)?;
        Some(self.store.keep(out))
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The files of a folder with an extension, by name.
fn with_extension(folder: &Path, extension: &str) -> Vec<Door> {
    let files = files_in(folder).into_iter();
    let files = files.filter(|path| has_extension(path, extension));
    files
        .filter_map(|path| Some(Door::beneath(folder, path.file_name()?)))
        .collect()
}

/// A path without parts that lead nowhere.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}
