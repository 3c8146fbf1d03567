//! Whether a file may be written where the user said, and who may read it.
//!
//! In: the path of `-o`. Out: where the bytes go, or why nothing is written (status 2). What is no regular file is written as it
//! is. Of regular files none is replaced that this run has read, and none that is a recording, a dump or a program: what is
//! lost there cannot be made again. Other files are replaced, as all tools do it.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::input::{identity, rights_of_opened, was_opened};

/// Whether `-o` may replace what it otherwise leaves alone.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ReplaceArgs {
    /// Let -o replace recordings, programs and files that were read, and follow links
    #[arg(long = "force-output")]
    pub force_output: bool,
}

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct Refused {
    path: PathBuf,
    why: String,
}

/// Where bytes go.
pub(super) enum Place {
    /// A link to what standard output is.
    Stdout,
    /// No regular file: a terminal, a FIFO, `/dev/null`.
    AsItIs,
    /// A regular file, to be replaced if it is there.
    File(PathBuf),
}

impl Place {
    /// Where `path` leads.
    pub(super) fn of(path: &Path, force: bool) -> Result<Self, Refused> {
        let Ok(link) = path.symlink_metadata() else {
            return Ok(Self::File(path.to_owned()));
        };
        let found = path.metadata().ok();
        if let Some(meta) = found.as_ref().filter(|meta| !meta.is_file()) {
            if is_block_device(meta) && !force {
                return Err(refused(path, "is a block device"));
            }
            return Ok(Self::AsItIs);
        }
        let mut path = path.to_owned();
        if link.is_symlink() {
            if found.as_ref().is_some_and(is_stdout) {
                return Ok(Self::Stdout);
            }
            // Whoever may write in a folder may put a link there that leads to a file of whoever writes here.
            path = match path.canonicalize() {
                Ok(real) if force => real,
                Ok(real) => return Err(link_to(&path, &real)),
                Err(_) => return Err(link_to(&path, &path.read_link().unwrap_or_default())),
            };
        }
        if !force {
            may_be_replaced(&path)?;
        }
        Ok(Self::File(path))
    }
}

/// Whether nothing is lost that cannot be made again when the file is replaced.
pub(super) fn may_be_replaced(path: &Path) -> Result<(), Refused> {
    let Ok(meta) = path.symlink_metadata() else {
        return Ok(());
    };
    if meta.is_symlink() {
        return Err(link_to(path, &path.read_link().unwrap_or_default()));
    }
    if was_opened(path, &meta) {
        return Err(refused(path, "is a file that was read"));
    }
    if meta.len() == 0 {
        return Ok(());
    }
    let mut front = Vec::new();
    // Not by the store: it is not read for what is in it.
    let read = File::open(path).and_then(|file| file.take(8).read_to_end(&mut front));
    match read {
        Err(error) => Err(refused(path, &format!("cannot be looked at ({error})"))),
        Ok(_) => match kept(&front) {
            Some(what) => Err(refused(path, what)),
            None => Ok(()),
        },
    }
}

/// What a file is that is read and not written, by its first bytes.
fn kept(front: &[u8]) -> Option<&'static str> {
    const KEPT: [(&[u8], &str); 6] = [
        (b"PERFILE2", "is a recording"),
        (b"2ELIFREP", "is a recording"),
        (b"DTiJ", "is a JIT dump"),
        (b"JiTD", "is a JIT dump"),
        (b"\x7fELF", "is a program or a library"),
        (b"\0asm", "is a WebAssembly module"),
    ];
    let found = KEPT.iter().find(|(magic, _)| front.starts_with(magic));
    found.map(|(_, what)| *what)
}

fn refused(path: &Path, what: &str) -> Refused {
    Refused {
        path: path.to_owned(),
        why: format!("{what}, so nothing is written: name another file, or use --force-output"),
    }
}

fn link_to(path: &Path, real: &Path) -> Refused {
    let what = format!("is a link to {}", real.display());
    refused(path, &what)
}

fn is_stdout(meta: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let stdout = std::io::stdout().as_fd().try_clone_to_owned();
        let stdout = stdout.and_then(|stdout| File::from(stdout).metadata());
        let none = Path::new("");
        stdout.is_ok_and(|stdout| identity(none, &stdout) == identity(none, meta))
    }
    #[cfg(not(unix))]
    {
        let _ = meta;
        false
    }
}

fn is_block_device(meta: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_block_device(&meta.file_type());
    #[cfg(not(unix))]
    {
        let _ = meta;
        false
    }
}

/// Gives a file that nobody else may read yet its final rights: those of the file whose place it takes, or those that the user's
/// mask leaves; never more than what it was made from has, nor than `limit`.
#[cfg(unix)]
pub(super) fn settle_rights(
    file: &File,
    replaced: Option<&Path>,
    limit: u32,
) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let group = file.metadata()?.gid();
    let old = replaced.and_then(|path| path.symlink_metadata().ok());
    let old = old.filter(Metadata::is_file).map(|old| old.mode());
    let wanted = old.unwrap_or_else(|| !mask());
    let mode = wanted & rights_of_opened(Some(group)) & limit & 0o666;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Here files have no such rights.
#[cfg(not(unix))]
pub(super) fn settle_rights(_: &File, _: Option<&Path>, _: u32) -> std::io::Result<()> {
    Ok(())
}

/// What the user wants no new file to allow. Can only be asked by setting it: what another thread makes meanwhile is private.
#[cfg(unix)]
#[allow(
    clippy::useless_conversion,
    reason = "modes have 16 bits on some systems"
)]
pub(super) fn mask() -> u32 {
    use rustix::process::umask;
    let mask = umask(rustix::fs::Mode::from_raw_mode(0o077));
    umask(mask);
    mask.as_raw_mode().into()
}
