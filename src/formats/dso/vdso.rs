//! The vdso of this very process: the kernel's image that no file holds.
//!
//! In: nothing. Out: its bytes, for recordings of the running kernel.

use std::io::{Read, Seek, SeekFrom};

use crate::input::Store;

/// No kernel's vdso is larger.
const MAX_SIZE: u64 = 1 << 20;

/// The bytes of the `[vdso]` mapping of this process, kept in the store.
pub(crate) fn own(store: &Store) -> Option<&[u8]> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let (start, end) = (
        u64::from_str_radix(start, 16).ok()?,
        u64::from_str_radix(end, 16).ok()?,
    );
    let len = end.checked_sub(start).filter(|&len| len <= MAX_SIZE)?;
    let mut memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    let mut image = vec![0; usize::try_from(len).ok()?];
    memory.read_exact(&mut image).ok()?;
    Some(store.keep(image))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::dso::elf::ElfFile;

    #[test]
    fn own_vdso_is_an_elf_file() {
        let store = Store::new();
        // Some sandboxes have none.
        if let Some(bytes) = own(&store) {
            let elf = ElfFile::parse(bytes, &store).expect("the kernel's image is sound");
            assert_eq!(elf.arch(), Arch::host());
            assert!(elf.build_id().is_some());
        }
    }
}
