//! Writes the files of a bundle: into a folder of its own, or into one archive.
//!
//! In: names, and where bytes come from ([`Item`]). Effect: nothing that is there is overwritten, and the folder or archive
//! gets its name when it is whole. An archive has no name until then; a folder has another one, and goes when a signal
//! ends the process. Names are trusted to be plain (`crate::bundle` sees to that). The same files give the same bytes.
//! Who may not read one of the files may not read the bundle either: a recording holds parts of a program's memory.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tar::{Builder, EntryType, GnuExtSparseHeader, GnuHeader, GnuSparseHeader, Header};

#[cfg(unix)]
use super::target::mask;
use super::terminal::{Output, new_private, refuse_existing};
use crate::input::{Origin, Rights};
use crate::output::gzip::{Effort, Packer};

/// Where the files go.
pub(super) enum Parcel {
    /// Below a folder.
    Folder(Folder),
    /// Into an archive, below a folder of this name; with the rights that all of its files have.
    Archive(Box<Builder<Packer<Output>>>, PathBuf, u32),
}

/// What is to be written of a file.
pub(super) struct Content {
    source: Box<dyn ReadSeek>,
    /// As the file has them, holes included.
    pub(super) len: u64,
    /// Seconds since 1970 at which it was changed.
    pub(super) modified: u64,
    /// The parts that are not left out: all, or the blocks around what is kept.
    kept: Option<Vec<Range<u64>>>,
    pub(super) rights: Rights,
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// Holes are made of whole blocks, as file systems have them.
const BLOCK: u64 = 4096;

impl Content {
    /// Opens a file, or takes bytes from memory.
    pub(super) fn open(origin: &Origin) -> anyhow::Result<Self> {
        Ok(match origin {
            Origin::File(kept) => {
                let (file, meta) = kept.open()?;
                // Files of /proc show more to root than to others, whatever their modes are.
                let rights = if kept.path().starts_with("/proc") {
                    Rights::PRIVATE
                } else {
                    Rights::of(&meta)
                };
                Self {
                    source: Box::new(file),
                    len: meta.len(),
                    modified: seconds(meta.modified()),
                    kept: None,
                    rights,
                }
            }
            Origin::Moved(path) => {
                anyhow::bail!(
                    "{}: another file took its place while it was read",
                    path.display()
                )
            }
            Origin::Memory(bytes) => Self::of_bytes(bytes.clone(), Rights::PUBLIC),
        })
    }

    /// Bytes that are there.
    pub(super) fn of_bytes(bytes: Vec<u8>, rights: Rights) -> Self {
        Self {
            len: bytes.len() as u64,
            source: Box::new(io::Cursor::new(bytes)),
            modified: 0,
            kept: None,
            rights,
        }
    }

    /// Other bytes made of these.
    pub(super) fn made_into(&self, bytes: Vec<u8>) -> Self {
        Self::of_bytes(bytes, self.rights)
    }

    /// Leaves out the blocks in which nothing is of these ranges (ordered and disjoint).
    pub(super) fn reduced(mut self, ranges: &[Range<usize>]) -> Self {
        let mut blocks: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            let start = range.start as u64 / BLOCK * BLOCK;
            let end = (range.end as u64).next_multiple_of(BLOCK).min(self.len);
            match blocks.last_mut() {
                Some(last) if start <= last.end => last.end = end.max(last.end),
                _ if start < end => blocks.push(start..end),
                _ => {}
            }
        }
        self.kept = Some(blocks);
        self
    }

    /// All bytes. What has no size of its own (files of /proc) is read to its end.
    pub(super) fn read(&mut self) -> io::Result<Vec<u8>> {
        const MOST: u64 = 256 << 20;
        let mut bytes = Vec::new();
        self.source.rewind()?;
        (&mut self.source).take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Bytes that are not left out.
    pub(super) fn size(&self) -> u64 {
        self.parts().iter().map(|part| part.end - part.start).sum()
    }

    fn parts(&self) -> Vec<Range<u64>> {
        let whole = || std::iter::once(0..self.len).collect();
        self.kept.clone().unwrap_or_else(whole)
    }

    /// Calls `write` with a reader of each part. A file that was cut meanwhile is an error.
    fn each_part(
        &mut self,
        mut write: impl FnMut(u64, &mut dyn Read) -> io::Result<()>,
    ) -> io::Result<()> {
        for part in self.parts() {
            self.source.seek(SeekFrom::Start(part.start))?;
            let len = part.end - part.start;
            let mut reader = (&mut self.source).take(len);
            write(part.start, &mut reader)?;
            if reader.limit() > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

impl Parcel {
    /// An archive, or standard output for none; `name` is the folder in it.
    pub(super) fn archive(path: Option<&Path>, name: PathBuf, threads: usize) -> io::Result<Self> {
        let packer = Packer::new(Output::to_new(path)?, threads, Effort::Small)?;
        Ok(Self::Archive(Box::new(Builder::new(packer)), name, 0o777))
    }

    /// Adds a file; nothing of it is left behind if that fails.
    pub(super) fn add(
        &mut self,
        place: &Path,
        content: &mut Content,
        modified: u64,
    ) -> io::Result<()> {
        match self {
            Self::Folder(folder) => folder.add(place, content, modified),
            Self::Archive(archive, name, rights) => {
                // It may be unpacked by anyone, of any group.
                *rights &= content.rights.for_copy(None);
                append(archive, &name.join(place), content, modified)
            }
        }
    }

    /// Gives it its name.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Folder(folder) => Ok(folder.finish()?),
            Self::Archive(archive, _, rights) => {
                let mut out = archive.into_inner()?.finish()?;
                out.limit_rights(rights);
                out.finish()
            }
        }
    }
}

/// Adds an entry in GNU's format, which knows long names and holes.
fn append<W: Write>(
    archive: &mut Builder<W>,
    path: &Path,
    content: &mut Content,
    modified: u64,
) -> io::Result<()> {
    let name = path.as_os_str().as_encoded_bytes();
    let mut header = Header::new_gnu();
    header.set_mode(content.rights.for_copy(None) & 0o644);
    header.set_mtime(modified);
    header.set_size(content.size());
    if name.len() < header.as_old().name.len() {
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
    } else {
        append_long_name(archive, name)?;
        let short = &name[..header.as_old().name.len() - 1];
        header.as_old_mut().name[..short.len()].copy_from_slice(short);
    }
    let mut map = Vec::new();
    if content.kept.is_some() {
        header.set_entry_type(EntryType::GNUSparse);
        let gnu = header.as_gnu_mut().expect("made as such");
        map = sparse_map(gnu, &content.parts(), content.len);
    }
    header.set_cksum();
    let out = archive.get_mut();
    out.write_all(header.as_bytes())?;
    out.write_all(&map)?;
    let size = content.size();
    content.each_part(|_, part| io::copy(part, out).map(drop))?;
    pad(out, size)
}

/// The name of the entry behind it.
fn append_long_name<W: Write>(archive: &mut Builder<W>, name: &[u8]) -> io::Result<()> {
    const LINK: &[u8] = b"././@LongLink";
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..LINK.len()].copy_from_slice(LINK);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(name.len() as u64 + 1);
    header.set_cksum();
    let out = archive.get_mut();
    out.write_all(header.as_bytes())?;
    out.write_all(name)?;
    out.write_all(&[0])?;
    pad(out, name.len() as u64 + 1)
}

/// Fills up the last block of an entry.
fn pad(out: &mut dyn Write, size: u64) -> io::Result<()> {
    const ENTRY: usize = 512;
    let used = (size % ENTRY as u64) as usize;
    let fill = (ENTRY - used) % ENTRY;
    out.write_all(&[0; ENTRY][..fill])
}

/// Puts the parts of a file with holes into its header, and those that find no room there into blocks behind it.
fn sparse_map(header: &mut GnuHeader, parts: &[Range<u64>], len: u64) -> Vec<u8> {
    header.set_real_size(len);
    // A part of no bytes at the end tells how long the file is.
    let end = len..len;
    let mut parts = parts.iter().chain([&end]).peekable();
    let mut fill = |slots: &mut [GnuSparseHeader]| {
        for (slot, part) in slots.iter_mut().zip(parts.by_ref()) {
            slot.set_offset(part.start);
            slot.set_length(part.end - part.start);
        }
        parts.peek().is_some()
    };
    let mut goes_on = fill(&mut header.sparse);
    header.set_is_extended(goes_on);
    let mut blocks = Vec::new();
    while goes_on {
        let mut block = GnuExtSparseHeader::new();
        goes_on = fill(&mut block.sparse);
        block.set_is_extended(goes_on);
        blocks.extend_from_slice(block.as_bytes());
    }
    blocks
}

/// A folder that has another name until it is whole.
pub(super) struct Folder {
    temporary: Temporary,
    path: PathBuf,
    /// What all of its files allow.
    rights: u32,
}

impl Folder {
    /// Makes it beside its final name.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        refuse_existing(path)?;
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        refuse_existing(&temporary)?;
        // Signals are waited for before there is anything to take away.
        let temporary = Temporary::new(temporary);
        temporary.unless_gone(|| private_folder(&temporary.path))?;
        Ok(Self {
            temporary,
            path: path.to_owned(),
            rights: 0o777,
        })
    }

    fn add(&mut self, place: &Path, content: &mut Content, modified: u64) -> io::Result<()> {
        let path = self.temporary.path.join(place);
        let file = self.temporary.unless_gone(|| {
            fs::create_dir_all(path.parent().unwrap_or(&self.temporary.path))?;
            new_private(&path)
        })?;
        let written = fill(&file, content, modified);
        let written = written.and_then(|()| {
            let rights = content.rights.for_copy(group_of(&file)?);
            self.rights &= rights;
            set_rights(&path, rights & 0o644)
        });
        if written.is_err() {
            // Half a file would be taken for a whole one.
            let _ = fs::remove_file(&path);
        }
        written
    }

    fn finish(self) -> io::Result<()> {
        self.temporary.unless_gone(|| {
            // Who may read all files may look into the folder.
            let rights = self.rights & 0o444;
            set_rights(&self.temporary.path, 0o700 | rights | rights >> 2)?;
            refuse_existing(&self.path)?;
            fs::rename(&self.temporary.path, &self.path)
        })
    }
}

/// Makes a folder into which nobody else may look.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Allows this, as far as the user's mask does.
fn set_rights(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !mask()))
    }
    #[cfg(not(unix))]
    {
        let _ = (path, mode);
        Ok(())
    }
}

fn group_of(file: &File) -> io::Result<Option<u32>> {
    #[cfg(unix)]
    return Ok(Some(std::os::unix::fs::MetadataExt::gid(&file.metadata()?)));
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(None)
    }
}

/// Writes what is kept; the rest becomes holes.
fn fill(mut file: &File, content: &mut Content, modified: u64) -> io::Result<()> {
    content.each_part(|start, part| {
        file.seek(SeekFrom::Start(start))?;
        io::copy(part, &mut file).map(drop)
    })?;
    file.set_len(content.len)?;
    file.set_modified(UNIX_EPOCH + Duration::from_secs(modified))
}

/// Seconds since 1970 at which a file was changed.
pub(super) fn modified_of(path: &Path) -> u64 {
    seconds(fs::metadata(path).and_then(|meta| meta.modified()))
}

fn seconds(modified: io::Result<SystemTime>) -> u64 {
    let since = modified.map(|time: SystemTime| time.duration_since(UNIX_EPOCH));
    since.map_or(0, |since| since.map_or(0, |since| since.as_secs()))
}

/// A folder that goes when it is dropped, or when a signal ends the process.
struct Temporary {
    path: PathBuf,
    #[cfg(unix)]
    guard: signals::Guard,
}

impl Temporary {
    fn new(path: PathBuf) -> Self {
        Self {
            #[cfg(unix)]
            guard: signals::Guard::new(&path),
            path,
        }
    }

    /// Does something short in the folder while no signal removes it.
    fn unless_gone<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        #[cfg(unix)]
        let _held = self.guard.hold();
        work()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It has its final name, or nobody is left to be told.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Signals that end the process take the folder along.
#[cfg(unix)]
mod signals {
    use std::path::Path;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::{Handle, Signals};

    /// Waits for signals while it is there.
    pub(super) struct Guard {
        busy: Arc<Mutex<()>>,
        handle: Option<Handle>,
    }

    impl Guard {
        pub(super) fn new(folder: &Path) -> Self {
            let busy = Arc::new(Mutex::new(()));
            let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter();
            let wanted = wanted.filter(|signal| !is_ignored(*signal));
            let signals = Signals::new(wanted).ok();
            let handle = signals.as_ref().map(Signals::handle);
            if let Some(mut signals) = signals {
                let (busy, folder) = (Arc::clone(&busy), folder.to_owned());
                std::thread::spawn(move || {
                    for signal in signals.forever() {
                        // Held to the end: nothing is made in what is gone.
                        let _held = busy.lock().unwrap_or_else(PoisonError::into_inner);
                        let _ = std::fs::remove_dir_all(&folder);
                        let _ = signal_hook::low_level::emulate_default_handler(signal);
                    }
                });
            }
            Self { busy, handle }
        }

        pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
            self.busy.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// True if the process was started with this signal ignored, as `nohup` and scripts start jobs in the background: it
    /// stays so. False where the system does not show it.
    fn is_ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            if let Some(handle) = &self.handle {
                handle.close();
            }
        }
    }
}
