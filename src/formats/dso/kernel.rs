//! The kernel's symbols: kallsyms, vmlinux, module files.
//!
//! In: what the recording says of its kernel, and where to look. Out: symbols of the kernel and of its
//! modules at the addresses of the recording (`util/symbol.c:dso__load_kernel_sym`, `dso__load_kallsyms`,
//! `maps__split_kallsyms`). Loaded in a thread of its own, since reading /proc/kallsyms takes longer than
//! anything else at the start.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use object::Endianness;
use object::elf::SHT_SYMTAB;

use super::BuildId;
use super::elf::{ElfFile, build_id_in_notes};
use super::kallsyms::{Kallsyms, NO_LINES, Texts};
use super::symtab::{RawTable, SymbolTable};
use crate::address::Avma;
use crate::diagnostics::Diagnostics;
use crate::find::{self, KALLSYMS, Kind, Look, SearchPaths, VMLINUX};
use crate::input::{Door, Role, Store};

/// What the recording tells about its kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelIdentity {
    /// `os_release` feature: `uname -r`.
    pub os_release: Option<String>,
    /// Build ID of `[kernel.kallsyms]` in the table of build IDs.
    pub build_id: Option<BuildId>,
}

/// Reference symbol of the kernel's map: `_text` or `_stext`, and where it was in the recorded kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReference {
    /// Name behind `[kernel.kallsyms]` in the map's name.
    pub symbol: Vec<u8>,
    /// `pgoff` of the map.
    pub address: Avma,
    /// Address behind the kernel's code: end of the map.
    pub end: Avma,
}

/// What became of the search for the kernel's symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelState {
    /// Found, and nothing speaks against them.
    Found,
    /// Found, but of another kernel: its code has another size.
    OtherBuild,
    /// What was found shows no addresses to ordinary users.
    Restricted,
    /// Not found.
    Missing,
}

/// What kallsyms looks like to those who must not know addresses.
const RESTRICTED: &str = "all addresses are 0, kernel symbols are restricted";

/// Largest kallsyms text; a kernel with every module loaded has some 20 MB.
const MAX_KALLSYMS: u64 = 64 << 20;

/// The symbols of one kernel, as its source has them.
pub(crate) struct KernelSymbols<'a> {
    /// For messages: a path, or what is missing.
    pub(crate) source: String,
    symbols: Symbols<'a>,
    /// Why there are none, if something stood in the way.
    pub(crate) problem: Option<String>,
    is_restricted: bool,
}

enum Symbols<'a> {
    None,
    Kallsyms(Arc<Kallsyms<'a>>),
    Vmlinux(Box<ElfFile<'a>>),
}

impl<'a> KernelSymbols<'a> {
    /// Finds and reads the symbols, in perf's order of sources with the copy beside the recording in front of
    /// those that are looked for: `--kallsyms`, `--vmlinux`, beside the recording, the build-ID cache, vmlinux in
    /// the usual places, and the running kernel if it is the recorded one.
    pub(super) fn load(
        store: &'a Store,
        texts: &Texts<'a>,
        search: &SearchPaths,
        identity: &KernelIdentity,
        diag: &Diagnostics,
    ) -> Self {
        let release = identity.os_release.as_deref().unwrap_or_default();
        let look = Look::new(diag, Kind::Kernel, format!("kernel {release}").as_bytes());
        if let Some(door) = search.named_kallsyms() {
            return Self::from_kallsyms(store, texts, &door, &look)
                .unwrap_or_else(|e| Self::missing(&e, door.path()));
        }
        if let Some(door) = search.named_vmlinux().filter(|_| !search.ignore_vmlinux) {
            return Self::from_vmlinux(store, &door, None, &look).map_or_else(
                |e| Self::missing(&e, door.path()),
                |found| found.said_if_other(identity.build_id.as_ref()),
            );
        }
        let found = Self::find(store, texts, search, identity, &look);
        match &search.bundle {
            Some(bundle) => Self {
                source: bundle.kernel.clone(),
                ..found
            },
            None => found,
        }
    }

    /// The same without those that were named.
    fn find(
        store: &'a Store,
        texts: &Texts<'a>,
        search: &SearchPaths,
        identity: &KernelIdentity,
        look: &Look<'_>,
    ) -> Self {
        let id = identity.build_id.as_ref();
        let mut restricted = None;
        for door in look.doors(search.all_kallsyms(id)) {
            match Self::from_kallsyms(store, texts, &door, look) {
                Ok(found) => return found,
                Err(problem) if problem == RESTRICTED => restricted = restricted.or(Some(door)),
                Err(_) => {}
            }
        }
        for door in look.doors(search.all_vmlinux(identity.os_release.as_deref(), id)) {
            // Without a build ID to check, only a file that is named for this release will do.
            if let Ok(found) = Self::from_vmlinux(store, &door, id, look) {
                return found;
            }
        }
        let other = match &search.symfs {
            Some(_) => Self::none("none: --symfs is given; use --kallsyms or --vmlinux"),
            None => Self::from_running_kernel(store, texts, identity, look),
        };
        match restricted {
            Some(door) if matches!(other.symbols, Symbols::None) => {
                Self::missing(RESTRICTED, door.path())
            }
            _ => other,
        }
    }

    fn missing(problem: &str, path: &Path) -> Self {
        Self {
            problem: Some(format!("{}: {problem}", path.display())),
            is_restricted: problem == RESTRICTED,
            ..Self::none("none")
        }
    }

    /// Whether these are the recorded kernel's. One build's code has one size, wherever it was loaded.
    pub(crate) fn state(&self, reference: Option<&KernelReference>) -> KernelState {
        if matches!(self.symbols, Symbols::None) {
            return if self.is_restricted {
                KernelState::Restricted
            } else {
                KernelState::Missing
            };
        }
        match reference.and_then(|reference| self.has_size_of(reference)) {
            Some(false) => KernelState::OtherBuild,
            _ => KernelState::Found,
        }
    }

    /// The kernel's map ends at `_etext`, with newer perfs at `_edata`. `None` where one side does not tell: maps of old
    /// perfs reach to the end of memory.
    fn has_size_of(&self, reference: &KernelReference) -> Option<bool> {
        /// No kernel has so much code.
        const MOST: u64 = 1 << 30;
        let recorded = reference.end.0.checked_sub(reference.address.0);
        let recorded =
            recorded.filter(|&size| size > 0 && size < MOST && reference.address.0 != 0)?;
        let of = |name: &[u8]| match &self.symbols {
            Symbols::None => None,
            Symbols::Kallsyms(kallsyms) => kallsyms.reference(name),
            Symbols::Vmlinux(elf) => address_in_vmlinux(elf, name),
        };
        let start = of(&reference.symbol)?;
        let size = |name| of(name)?.checked_sub(start);
        let (code, all) = (size(b"_etext")?, size(b"_edata"));
        let fits = |own: u64| recorded == own || recorded == own.next_multiple_of(4096);
        if fits(code) || all.is_some_and(fits) {
            return Some(true);
        }
        // Without `_edata`, a map that is much larger may end there.
        (all.is_some() || recorded < code + code / 4).then_some(false)
    }

    fn none(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            symbols: Symbols::None,
            problem: None,
            is_restricted: false,
        }
    }

    fn from_running_kernel(
        store: &'a Store,
        texts: &Texts<'a>,
        identity: &KernelIdentity,
        look: &Look<'_>,
    ) -> Self {
        let door = find::running_kallsyms();
        let path = door.path();
        if !is_running_kernel(identity) {
            look.missed(path, "of another kernel");
            let release = identity
                .os_release
                .as_deref()
                .unwrap_or("an unknown kernel");
            return Self::none(&format!(
                "none: recorded on {release}, which is not the running kernel; use --kallsyms or --vmlinux"
            ));
        }
        Self::from_kallsyms(store, texts, &door, look).unwrap_or_else(|problem| match problem.as_str() {
            RESTRICTED => Self {
                problem: Some(format!(
                    "{}: {RESTRICTED}; run as root, set kernel.kptr_restrict=0, or give --kallsyms FILE with a copy \
                     made by root",
                    path.display()
                )),
                is_restricted: true,
                ..Self::none("none: /proc/kallsyms shows this user no addresses (kptr_restrict)")
            },
            _ => Self::missing(&problem, path),
        })
    }

    fn from_kallsyms(
        store: &'a Store,
        texts: &Texts<'a>,
        door: &Door,
        look: &Look<'_>,
    ) -> Result<Self, String> {
        noted(look, door, |path| {
            let bytes = opened(store, door, look)?;
            let kallsyms = texts.said(bytes, || of_kallsyms(store, bytes))?;
            store.used(Path::new(KALLSYMS), path, Role::Kernel);
            Ok(Self {
                source: path.display().to_string(),
                symbols: Symbols::Kallsyms(kallsyms),
                problem: None,
                is_restricted: false,
            })
        })
    }

    fn from_vmlinux(
        store: &'a Store,
        door: &Door,
        expected: Option<&BuildId>,
        look: &Look<'_>,
    ) -> Result<Self, String> {
        noted(look, door, |path| {
            Self::of_vmlinux(store, path, opened(store, door, look)?, expected)
        })
    }

    fn of_vmlinux(
        store: &'a Store,
        path: &Path,
        bytes: &'a [u8],
        expected: Option<&BuildId>,
    ) -> Result<Self, String> {
        let elf = ElfFile::parse(bytes, store).map_err(|e| e.to_string())?;
        if let (Some(want), Some(found)) = (expected, elf.build_id())
            && !want.matches(&found)
        {
            return Err(format!(
                "build ID is {found}, the recorded kernel's is {want}"
            ));
        }
        if RawTable::of(&elf, ".symtab", SHT_SYMTAB).is_none() {
            return Err("has no symbol table".to_owned());
        }
        store.used(Path::new(VMLINUX), path, Role::Program);
        Ok(Self {
            source: path.display().to_string(),
            symbols: Symbols::Vmlinux(Box::new(elf)),
            problem: None,
            is_restricted: false,
        })
    }

    /// The vmlinux that the user named, with a word if it is not the recorded kernel's.
    fn said_if_other(mut self, recorded: Option<&BuildId>) -> Self {
        let found = self.vmlinux().and_then(ElfFile::build_id);
        if let (Some(want), Some(found)) = (recorded, found)
            && !want.matches(&found)
        {
            self.problem = Some(format!(
                "{}: build ID is {found}, the recorded kernel's is {want}; names and code of kernel functions may be wrong",
                self.source
            ));
        }
        self
    }

    /// The vmlinux file, for DWARF.
    pub(crate) fn vmlinux(&self) -> Option<&ElfFile<'a>> {
        match &self.symbols {
            Symbols::Vmlinux(elf) => Some(elf),
            _ => None,
        }
    }

    /// What to add to an address of the recording to get the source's: the distance of the reference
    /// symbol in both.
    pub(crate) fn bias(&self, reference: Option<&KernelReference>) -> u64 {
        let Some(reference) = reference.filter(|r| r.address.0 != 0) else {
            return 0;
        };
        let own = match &self.symbols {
            Symbols::None => None,
            Symbols::Kallsyms(kallsyms) => kallsyms.reference(&reference.symbol),
            Symbols::Vmlinux(elf) => address_in_vmlinux(elf, &reference.symbol),
        };
        own.map_or(0, |own| own.wrapping_sub(reference.address.0))
    }

    /// Whether these are addresses of a running kernel, but not of the recorded run of it.
    pub(crate) fn is_of_another_boot(&self, reference: Option<&KernelReference>) -> bool {
        matches!(self.symbols, Symbols::Kallsyms(_)) && self.bias(reference) != 0
    }

    /// The kernel's own symbols at the addresses of the recording.
    pub(crate) fn kernel(&self, reference: Option<&KernelReference>) -> Option<SymbolTable<'a>> {
        let bias = self.bias(reference);
        match &self.symbols {
            Symbols::None => None,
            Symbols::Kallsyms(k) => Some(SymbolTable::of_kallsyms(k.kernel.clone(), k.text, bias)),
            Symbols::Vmlinux(elf) => SymbolTable::of_vmlinux(elf, bias),
        }
    }

    /// The symbols of a module, by its name in brackets. Modules are not relocated: those of another boot
    /// lay elsewhere.
    pub(crate) fn module(
        &self,
        name: &str,
        reference: Option<&KernelReference>,
    ) -> Option<SymbolTable<'a>> {
        let Symbols::Kallsyms(kallsyms) = &self.symbols else {
            return None;
        };
        if self.is_of_another_boot(reference) {
            return None;
        }
        let entries = kallsyms.modules.get(name.as_bytes())?;
        Some(SymbolTable::of_kallsyms(entries.clone(), kallsyms.text, 0))
    }
}

/// What a kallsyms says, packed or not.
fn of_kallsyms<'a>(store: &'a Store, bytes: &'a [u8]) -> Result<Kallsyms<'a>, String> {
    if bytes.len() as u64 > MAX_KALLSYMS {
        return Err("is too large to be a kallsyms".to_owned());
    }
    let text = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut text = Vec::new();
        let unpacked = flate2::bufread::MultiGzDecoder::new(bytes)
            .take(MAX_KALLSYMS)
            .read_to_end(&mut text);
        unpacked.map_err(|e| format!("not a gzip file: {e}"))?;
        store.keep(text)
    } else {
        bytes
    };
    let kallsyms = Kallsyms::parse(text);
    if kallsyms.kernel.is_empty() && kallsyms.modules.is_empty() {
        return Err(NO_LINES.to_owned());
    }
    if kallsyms.is_restricted() {
        return Err(RESTRICTED.to_owned());
    }
    Ok(kallsyms)
}

fn address_in_vmlinux(elf: &ElfFile<'_>, name: &[u8]) -> Option<u64> {
    let table = RawTable::of(elf, ".symtab", SHT_SYMTAB)?;
    (0..table.len())
        .filter_map(|i| table.get(i))
        .find(|&s| table.name(s) == name)
        .map(|s| s.value)
}

fn opened<'a>(store: &'a Store, door: &Door, look: &Look<'_>) -> Result<&'a [u8], String> {
    store.map(door).map_err(|error| {
        look.missed(door.path(), &error);
        "cannot be read".to_owned()
    })
}

/// What is made of the file behind a door, with a note of what became of it.
fn noted<T>(
    look: &Look<'_>,
    door: &Door,
    read: impl FnOnce(&Path) -> Result<T, String>,
) -> Result<T, String> {
    let path = door.path();
    let read = read(path);
    match &read {
        Ok(_) => look.took(path),
        Err(why) => look.missed(path, why.clone()),
    }
    read
}

/// Whether /proc/kallsyms speaks of the recorded kernel: same build ID, or, where none was recorded, same release.
fn is_running_kernel(identity: &KernelIdentity) -> bool {
    if let Some(recorded) = &identity.build_id {
        let notes = std::fs::read("/sys/kernel/notes").unwrap_or_default();
        let running = build_id_in_notes(&notes, Endianness::default());
        return running.is_some_and(|running| running.matches(recorded));
    }
    let running = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    identity
        .os_release
        .as_deref()
        .is_some_and(|recorded| recorded == running.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::dso::build_elf::{ElfBuilder, FUNC, LABEL, PROGBITS};
    use crate::dso::{DsoKind, DsoTable};

    const TEXT: &[u8] = b"0000000000000000 A fixed_percpu_data\n\
        ffffffff81000000 T _stext\n\
        ffffffff81000000 T _text\n\
        ffffffff81000010 t local\n\
        ffffffff81000010 T alias\n\
        ffffffff81000040 D some_data\n\
        ffffffff81000050 r rodata\n\
        ffffffffc0000000 t mod_a\t[ext4]\n\
        ffffffffc0000100 T mod_b\t[ext4]\n\
        bad line\n\
        ffffffffc0002000 t other\t[fuse]";

    fn symbols(store: &Store) -> KernelSymbols<'_> {
        KernelSymbols {
            source: String::new(),
            symbols: Symbols::Kallsyms(Arc::new(Kallsyms::parse(store.keep(TEXT.to_vec())))),
            problem: None,
            is_restricted: false,
        }
    }

    #[test]
    fn last_listed_wins_and_ends_follow() {
        let store = Store::new();
        let all = symbols(&store);
        let kernel = all.kernel(None).expect("has symbols");
        let name = |at| {
            kernel
                .find(at)
                .map(|s| String::from_utf8_lossy(s.name).into_owned())
        };
        assert_eq!(name(0xffff_ffff_8100_0000).as_deref(), Some("_text"));
        assert_eq!(name(0xffff_ffff_8100_0020).as_deref(), Some("alias"));
        let data = kernel.find(0xffff_ffff_8100_0048).expect("data");
        assert!(data.is_data && data.end == 0xffff_ffff_8100_2000);
        assert_eq!(name(0xffff_ffff_c000_0000), None);
        let module = all.module("[ext4]", None).expect("module");
        assert_eq!(
            module.find(0xffff_ffff_c000_0123).expect("inside").name,
            b"mod_b"
        );
        assert_eq!(module.find(0xffff_ffff_c000_2000), None);
        assert!(all.module("[xfs]", None).is_none());
    }

    #[test]
    fn equal_texts_are_read_once() {
        let (store, texts) = (Store::new(), Texts::default());
        let read = |text: &[u8]| {
            let bytes = store.keep(text.to_vec());
            texts.said(bytes, || of_kallsyms(&store, bytes))
        };
        let first = read(TEXT).expect("symbols");
        let again = texts.said(store.keep(TEXT.to_vec()), || unreachable!("read before"));
        assert!(Arc::ptr_eq(&first, &again.expect("symbols")));
        let shorter = &TEXT[..TEXT.len() - 10];
        assert!(!Arc::ptr_eq(&first, &read(shorter).expect("symbols")));
        // What cannot be used is no other text's.
        assert_eq!(read(b"none").err().as_deref(), Some(NO_LINES));
        assert!(read(TEXT).is_ok());
    }

    #[test]
    fn relocated_by_reference_symbol() {
        let store = Store::new();
        let all = symbols(&store);
        let reference = KernelReference {
            symbol: b"_text".to_vec(),
            address: Avma(0xffff_ffff_a000_0000),
            end: Avma(0),
        };
        let kernel = all.kernel(Some(&reference)).expect("has symbols");
        let found = kernel.find(0xffff_ffff_a000_0011).expect("moved");
        assert_eq!(
            (found.name, found.start),
            (&b"alias"[..], 0xffff_ffff_a000_0010)
        );
    }

    fn kernel_name(search: SearchPaths, at: u64) -> (Option<String>, Vec<String>) {
        let (store, diag) = (Store::new(), Diagnostics::new());
        let mut dsos = DsoTable::new(&store, search, &diag);
        dsos.set_kernel_reference(KernelReference {
            symbol: b"_text".to_vec(),
            address: Avma(0xffff_ffff_a000_0000),
            end: Avma(0),
        });
        let dso = dsos.intern(b"[kernel.kallsyms]_text", DsoKind::Kernel, None, None);
        let found = dsos.symbols(dso).and_then(|table| table.find(at));
        let name = found.map(|s| String::from_utf8_lossy(s.name).into_owned());
        (
            name,
            diag.take().into_iter().map(|(_, text)| text).collect(),
        )
    }

    #[test]
    fn sources_in_order() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let at = 0xffff_ffff_a000_0011;
        let beside = || SearchPaths {
            recording_dir: Some(dir.path().to_owned()),
            ..SearchPaths::default()
        };
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, TEXT).expect("to memory");
        let packed = gzip.finish().expect("to memory");
        std::fs::write(dir.path().join("kallsyms.gz"), packed).expect("write");
        assert_eq!(kernel_name(beside(), at).0.as_deref(), Some("alias"));

        let mut elf = ElfBuilder::without_text(62, 2);
        let base = 0xffff_ffff_8100_0000;
        elf.section_at(".text", PROGBITS, 6, base, 0x1000, vec![0; 64]);
        let symbols = [
            ("_text", base, 0, LABEL, 1),
            ("of_vmlinux", base + 16, 8, FUNC, 1),
        ];
        elf.symbols(".symtab", &symbols);
        let vmlinux = dir.path().join("vmlinux");
        std::fs::write(&vmlinux, elf.build()).expect("write");
        let search = || SearchPaths {
            vmlinux: Some(vmlinux.clone()),
            ..beside()
        };
        assert_eq!(kernel_name(search(), at).0.as_deref(), Some("of_vmlinux"));
        let ignored = SearchPaths {
            ignore_vmlinux: true,
            ..search()
        };
        assert_eq!(kernel_name(ignored, at).0.as_deref(), Some("alias"));

        let zeros = dir.path().join("zeros");
        std::fs::write(&zeros, "0000000000000000 T _text\n0000000000000000 t x\n").expect("write");
        let (name, said) = kernel_name(
            SearchPaths {
                kallsyms: Some(zeros),
                ..beside()
            },
            at,
        );
        assert_eq!(name, None);
        assert!(
            said.iter().any(|line| line.contains("restricted")),
            "{said:?}"
        );
    }
}
