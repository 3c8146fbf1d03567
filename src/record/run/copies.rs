//! Copies of programs and libraries that a reading needs later, below `symfs/`.
//!
//! By themselves only those that will be gone. With `--files` all that samples hit, with their debug files, as `pjit bundle` finds them:
//! so a copy of the folder tells the same elsewhere. No name leads out of the folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::folder::{free_space, new_file};
use super::gather::Moved;
use super::keeper::Kept;
use super::programs::{is_fleeting, still_there};
use crate::assembly;
use crate::bundle::{NEEDS, Wanted, place_of_program};
use crate::diagnostics::Diagnostics;
use crate::find::{SearchPaths, place_of_build};
use crate::input::{Judged, Origin, Role, identity};
use crate::load::{Arena, Library, LoadOptions, Mapped, Source};
use crate::record::plan::{Note, Target};

/// Room that stays free.
const LEAST_FREE: u64 = 200 << 20;

/// Copies what will be gone.
pub(super) fn keep_fleeting(
    folder: &Path,
    programs: &BTreeMap<Vec<u8>, Mapped>,
    samples: &BTreeMap<u32, u64>,
    target: &Target,
    kept: &Kept,
) -> (Vec<Moved>, Vec<Note>) {
    let mut copying = Copying::into(folder);
    // The command is a copy of pjit until it begins.
    let own = std::env::current_exe().unwrap_or_default();
    for (path, mapped) in programs {
        // Of the whole machine only what was busy.
        let counts = |pid: &u32| *target != Target::Machine || samples.contains_key(pid);
        if !mapped.by.iter().any(counts) || own.as_os_str().as_bytes() == path {
            continue;
        }
        let recorded = Path::new(OsStr::from_bytes(path));
        let is_foreign = mapped.by.iter().any(|&pid| kept.is_elsewhere(pid));
        let still = || {
            let may_be_it = is_fleeting(path) && !is_foreign;
            may_be_it.then(|| still_there(recorded, &mapped.builds))?
        };
        let mut files = kept.programs().files(path, &mapped.builds);
        if files.is_empty() {
            files.extend(still());
        }
        // Containers share files with this machine, too.
        let stays = |judged: &Judged| {
            let here = fs::metadata(recorded);
            !is_fleeting(path)
                && here.is_ok_and(|here| identity(recorded, &here) == judged.identity())
        };
        files.retain(|(judged, _)| !stays(judged));
        // Only one of several builds can have the path.
        for (nth, (judged, build)) in files.iter().enumerate() {
            let place = match (nth, build) {
                (0, _) => place_of_program(recorded),
                (_, Some(build)) => place_of_program(&place_of_build(build)),
                (_, None) => None,
            };
            if let Some(place) = place {
                copying.copy(&place, recorded, judged.file());
            }
        }
    }
    copying.done()
}

/// Copies all that a reading of the recording took of this machine.
pub(super) fn keep_all(folder: &Path, search: SearchPaths) -> (Vec<Moved>, Vec<Note>) {
    let diag = Diagnostics::new();
    let mut load = LoadOptions::of(Source::File(folder.join("perf.data")));
    load.needs = NEEDS;
    load.search = search;
    let code = assembly::Request {
        lines: true,
        ..assembly::Request::default()
    };
    let wanted = Wanted {
        slim: false,
        without_source: true,
    };
    let arena = Arena::new();
    let library = Library::of_one_question(&arena, &diag);
    let plan = match library.bundle(&load, &code, wanted) {
        Ok((_, plan)) => plan,
        Err(error) => return (Vec::new(), vec![Note::new(error.to_string())]),
    };
    let mut copying = Copying::into(folder);
    for item in plan.items.iter().filter(|item| item.role != Role::Source) {
        match &item.origin {
            Origin::File(kept) if kept.path().starts_with(folder) => {}
            Origin::File(kept) => match kept.open() {
                Ok((file, _)) => copying.copy(&item.place, kept.path(), &file),
                Err(error) => copying.notes.push(Note::new(error.to_string())),
            },
            Origin::Memory(bytes) => copying.write(&item.place, bytes),
            Origin::Moved(path) => copying.notes.push(Note::new(format!(
                "{}: another file took its place",
                path.display()
            ))),
        }
    }
    let missing = plan.missing.len();
    if let Some(first) = plan.missing.first() {
        let more = match missing {
            1 => String::new(),
            _ => format!(", and {} more", missing - 1),
        };
        copying
            .notes
            .push(Note::new(format!("not copied: {first}{more}")));
    }
    copying.done()
}

/// Copies into the folder of a recording.
struct Copying<'c> {
    folder: &'c Path,
    moved: Vec<Moved>,
    notes: Vec<Note>,
    is_full: bool,
}

impl<'c> Copying<'c> {
    fn into(folder: &'c Path) -> Self {
        Self {
            folder,
            moved: Vec::new(),
            notes: Vec::new(),
            is_full: false,
        }
    }

    fn copy(&mut self, place: &Path, from: &Path, file: &File) {
        let meta = file.metadata().ok();
        let len = meta.as_ref().map_or(0, std::fs::Metadata::len);
        if self.is_full || free_space(self.folder).is_some_and(|free| free < len + LEAST_FREE) {
            self.is_full = true;
            return;
        }
        let copied = self.new_file(place).and_then(|to| {
            let Some(mut to) = to else { return Ok(false) };
            // Whoever looked for its build ID has read a small file to its end.
            io::Seek::rewind(&mut &*file)?;
            io::copy(&mut &*file, &mut to)?;
            // Sources that are newer than their program are told by its time.
            if let Some(written) = meta.and_then(|meta| meta.modified().ok()) {
                to.set_modified(written)?;
            }
            Ok(true)
        });
        match copied {
            Ok(true) => self.moved.push(Moved {
                name: place.to_string_lossy().into_owned(),
                from: from.to_owned(),
                copied: true,
            }),
            Ok(false) => {}
            Err(error) => {
                let text = format!("{}: {error}", place.display());
                self.notes.push(Note::new(text));
            }
        }
    }

    fn write(&mut self, place: &Path, bytes: &[u8]) {
        let written = self.new_file(place).and_then(|to| match to {
            Some(mut to) => io::Write::write_all(&mut to, bytes),
            None => Ok(()),
        });
        if let Err(error) = written {
            let text = format!("{}: {error}", place.display());
            self.notes.push(Note::new(text));
        }
    }

    /// A new file below the folder, with its folders; none where there is one already.
    fn new_file(&self, place: &Path) -> io::Result<Option<File>> {
        let to = self.folder.join(place);
        if to.symlink_metadata().is_ok() {
            return Ok(None);
        }
        if let Some(parent) = to.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
        }
        new_file(&to).map(Some)
    }

    fn done(mut self) -> (Vec<Moved>, Vec<Note>) {
        if self.is_full {
            let note = Note::new("there is no room for copies of programs");
            self.notes.push(note.mended_by("-o DIR on another disk"));
        }
        (self.moved, self.notes)
    }
}
