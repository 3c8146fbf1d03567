//! The cache of debuginfod's client: what is there, whether it is what it should be, and what is put away again.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Wanted, What};
use crate::dso::elf::ElfFile;
use crate::find::debuginfod::of_build;
use crate::input::{FoundBy, Store};

/// The cache of a client.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// What a cache has of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Absent,
    /// The file, of the right build.
    Here,
    /// A file of this path that is not of the build.
    Other(PathBuf),
    /// The client remembers in this file that no server had it.
    Missed {
        /// The file.
        file: PathBuf,
        /// When that was.
        at: SystemTime,
        /// From when on it asks again.
        again: SystemTime,
    },
}

impl Cache {
    /// The one in this folder.
    #[must_use]
    pub const fn of(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it has of a file.
    #[must_use]
    pub fn state(&self, wanted: &Wanted) -> State {
        for name in wanted.names() {
            let file = self.of_build(wanted).join(&name);
            let Ok(meta) = fs::symlink_metadata(&file) else {
                continue;
            };
            if meta.len() > 0 && self.is_it(wanted, &name) {
                return State::Here;
            }
            if meta.len() > 0 || !meta.is_file() {
                return State::Other(file);
            }
            let at = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let again = at + self.forgets_after();
            if again > SystemTime::now() {
                return State::Missed { file, at, again };
            }
        }
        State::Absent
    }

    /// Bytes of a file that is there.
    pub(super) fn size(&self, wanted: &Wanted) -> u64 {
        let names = wanted.names().into_iter();
        let sizes = names.map(|name| fs::symlink_metadata(self.of_build(wanted).join(name)));
        sizes.flatten().map(|meta| meta.len()).max().unwrap_or(0)
    }

    fn of_build(&self, wanted: &Wanted) -> PathBuf {
        self.folder.join(wanted.build.to_string())
    }

    /// Whether a file is what its name says.
    fn is_it(&self, wanted: &Wanted, name: &str) -> bool {
        /// Of a source.
        const MOST: u64 = 64 << 20;
        let Some(door) = of_build(&self.folder, &wanted.build, name).into_door() else {
            return false;
        };
        if let What::Source(_, claim) = &wanted.what {
            let mut text = Vec::new();
            let Ok(judged) = door.open() else {
                return false;
            };
            let read = judged.file().take(MOST + 1).read_to_end(&mut text);
            let is_whole = read.is_ok_and(|len| len as u64 <= MOST);
            return is_whole && judged.is_source(&text, FoundBy::Build, claim);
        }
        let store = Store::new();
        let Ok(bytes) = store.map(&door) else {
            return false;
        };
        ElfFile::parse(bytes, &store).is_ok_and(|elf| {
            let build = elf.build_id();
            elf.is_whole() && build.is_some_and(|build| build.matches(&wanted.build))
        })
    }

    /// How long the client remembers that no server has a file.
    fn forgets_after(&self) -> Duration {
        const SECONDS: u64 = 600;
        let mut text = String::new();
        let file = fs::File::open(self.folder.join("cache_miss_s"));
        let read = file.and_then(|file| file.take(32).read_to_string(&mut text));
        let seconds = read.ok().and_then(|_| text.trim().parse::<u32>().ok());
        Duration::from_secs(seconds.map_or(SECONDS, u64::from))
    }

    /// Removes what came instead of a file.
    pub(super) fn remove(&self, wanted: &Wanted) {
        for name in wanted.names() {
            let _ = fs::remove_file(self.of_build(wanted).join(name));
        }
    }

    /// What lies in the folder of a build; nothing if there is none.
    pub(super) fn listed(&self, wanted: &Wanted) -> Option<BTreeSet<OsString>> {
        let entries = fs::read_dir(self.of_build(wanted)).ok()?;
        Some(entries.flatten().map(|entry| entry.file_name()).collect())
    }

    /// Bytes that a client has written of a file yet. `before`: what was listed before it began.
    pub(super) fn written(&self, wanted: &Wanted, before: Option<&BTreeSet<OsString>>) -> u64 {
        let left = self.left(wanted, before).into_iter();
        let sizes = left.filter_map(|file| fs::symlink_metadata(file).ok());
        sizes.map(|meta| meta.len()).sum()
    }

    /// Removes what a client left that was ended.
    pub(super) fn tidy(&self, wanted: &Wanted, before: Option<&BTreeSet<OsString>>) {
        for file in self.left(wanted, before) {
            let _ = fs::remove_file(file);
        }
        if before.is_none() {
            // Only if nothing is in it.
            let _ = fs::remove_dir(self.of_build(wanted));
        }
    }

    fn left(&self, wanted: &Wanted, before: Option<&BTreeSet<OsString>>) -> Vec<PathBuf> {
        let is_old = |name: &OsString| before.is_some_and(|before| before.contains(name));
        let names = self.listed(wanted).unwrap_or_default().into_iter();
        let new = names.filter(|name| is_temporary(name) && !is_old(name));
        new.map(|name| self.of_build(wanted).join(name)).collect()
    }
}

/// Whether the client calls files so that are not whole: `NAME.XXXXXX`.
fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let (_, end) = name.split_at(name.len().saturating_sub(7));
    end.len() == 7 && end[0] == b'.' && end[1..].iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build_id::BuildId;

    fn wanted() -> Wanted {
        Wanted {
            name: "hot".to_owned(),
            build: BuildId::new(&[0xab; 20]).expect("not zero"),
            what: What::Debug,
            samples: 1,
        }
    }

    #[test]
    fn a_miss_is_remembered_as_long_as_the_client_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::of(folder.path().to_owned());
        let wanted = wanted();
        assert_eq!(cache.state(&wanted), State::Absent);
        fs::create_dir(cache.of_build(&wanted)).expect("made");
        let file = cache.of_build(&wanted).join("debuginfo");
        fs::write(&file, "").expect("written");
        let State::Missed { at, again, .. } = cache.state(&wanted) else {
            panic!("a miss");
        };
        assert_eq!(again.duration_since(at).expect("later").as_secs(), 600);
        fs::write(folder.path().join("cache_miss_s"), "0").expect("written");
        assert_eq!(cache.state(&wanted), State::Absent);
        fs::write(folder.path().join("cache_miss_s"), "no number").expect("written");
        assert!(matches!(cache.state(&wanted), State::Missed { .. }));
        fs::write(&file, "<html>").expect("written");
        assert_eq!(cache.state(&wanted), State::Other(file));
    }

    #[test]
    fn what_was_cut_on_its_way_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::of(folder.path().to_owned());
        let this = fs::read(std::env::current_exe().expect("a path")).expect("read");
        let store = Store::new();
        let elf = ElfFile::parse(store.keep(this.clone()), &store).expect("an ELF file");
        // Not every linker makes build IDs without being asked.
        let Some(build) = elf.build_id() else {
            return;
        };
        let wanted = Wanted { build, ..wanted() };
        fs::create_dir(cache.of_build(&wanted)).expect("made");
        let file = cache.of_build(&wanted).join("debuginfo");
        for (len, state) in [
            (this.len(), State::Here),
            (this.len() / 2, State::Other(file.clone())),
            (4096, State::Other(file.clone())),
        ] {
            fs::write(&file, &this[..len]).expect("written");
            assert_eq!(cache.state(&wanted), state, "{len}");
        }
    }

    #[test]
    fn only_what_is_new_and_not_whole_is_put_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::of(folder.path().to_owned());
        let wanted = wanted();
        fs::create_dir(cache.of_build(&wanted)).expect("made");
        let write = |name: &str| fs::write(cache.of_build(&wanted).join(name), "12345");
        write("debuginfo.Others").expect("written");
        let before = cache.listed(&wanted);
        for name in ["debuginfo.AbC123", "debuginfo", "source-.x", "x.AbC12"] {
            write(name).expect("written");
        }
        assert_eq!(cache.written(&wanted, before.as_ref()), 5);
        cache.tidy(&wanted, before.as_ref());
        let left: Vec<OsString> = cache.listed(&wanted).expect("there").into_iter().collect();
        assert_eq!(
            left,
            ["debuginfo", "debuginfo.Others", "source-.x", "x.AbC12"]
        );
    }
}
