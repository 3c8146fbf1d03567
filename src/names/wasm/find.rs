//! Opens files of WebAssembly and what they were compiled to, where [`crate::find`] says, each once.

use std::path::PathBuf;

use rustc_hash::FxHashSet;

use super::compiled::Compiled;
use super::module::WasmFile;
use crate::diagnostics::Diagnostics;
use crate::find::{Kind, Look, SearchPaths, WasmKind};
use crate::input::Store;

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
    pub(super) search: &'f SearchPaths,
    /// What was recorded, word by word.
    pub(super) command: &'f [String],
}

impl<'a> Finder<'_, 'a> {
    /// Compiled modules.
    pub(super) fn compiled(&self) -> Vec<WasmInput<Compiled<'a>>> {
        self.open(WasmKind::Compiled, |bytes| {
            Compiled::parse(self.unpacked(bytes)?)
        })
    }

    /// Modules.
    pub(super) fn modules(&self) -> Vec<WasmInput<WasmFile<'a>>> {
        self.open(WasmKind::Module, WasmFile::parse)
    }

    fn open<T>(&self, kind: WasmKind, parse: impl Fn(&'a [u8]) -> Option<T>) -> Vec<WasmInput<T>> {
        let extension = kind.extension();
        let (mut read, mut found) = (FxHashSet::default(), Vec::new());
        let look = Look::new(self.diag, Kind::Wasm, format!("*.{extension}").as_bytes());
        for (place, is_named) in self.search.webassembly(kind, self.command) {
            let Some(door) = look.doors([place]).next() else {
                continue;
            };
            let path = door.path().to_owned();
            let bytes = self.store.map(&door);
            // One file may have many names.
            if bytes
                .as_ref()
                .is_ok_and(|bytes| !read.insert(bytes.as_ptr()))
            {
                look.missed(&path, "the same as another");
                continue;
            }
            match bytes.map(&parse) {
                Ok(Some(content)) => {
                    look.took(&path);
                    found.push(WasmInput {
                        path,
                        is_named,
                        content,
                    });
                }
                Ok(None) => {
                    look.missed(&path, "not such a file");
                    if is_named {
                        let path = path.display();
                        self.diag
                            .warn(format!("{path}: not a .{extension} file; not used"));
                    }
                }
                Err(why) => {
                    look.missed(&path, &why);
                    if is_named {
                        self.diag.warn(format!("{why}; not used"));
                    }
                }
            }
        }
        found
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
