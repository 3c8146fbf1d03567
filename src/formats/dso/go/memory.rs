//! The memory of a program as its file has it, with the pointers that its loader would write.

use super::super::elf::ElfFile;

/// Bytes by stated address.
pub(super) struct Memory<'a> {
    bytes: &'a [u8],
    /// (address, file offset, length)
    parts: Vec<(u64, u64, u64)>,
    /// Sections that may hold pointers to tables: (address, bytes).
    data: Vec<(u64, &'a [u8])>,
    /// `.rela.dyn`, of programs that may be loaded anywhere.
    relocations: &'a [[u8; 24]],
}

impl<'a> Memory<'a> {
    pub(super) fn of(elf: &ElfFile<'a>) -> Self {
        elf.note_data();
        /// Where linkers put `runtime.firstmoduledata`, most likely first.
        const DATA: [&str; 5] = [
            ".go.module",
            ".noptrdata",
            ".data",
            ".data.rel.ro",
            ".data.rel.ro.local",
        ];
        let segments = elf.segments().iter();
        let parts = segments.map(|s| (s.svma.0, s.file_offset.0, s.file_size));
        let data = DATA.iter().filter_map(|name| elf.section(name));
        let relocations = elf.section(".rela.dyn").map_or(&[][..], |s| s.data);
        Self {
            bytes: elf.bytes(),
            parts: parts.collect(),
            data: data.map(|s| (s.svma.0, s.data)).collect(),
            relocations: relocations.as_chunks().0,
        }
    }

    /// One segment at address 0, which is all data.
    pub(super) fn of_bytes(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            parts: vec![(0, 0, bytes.len() as u64)],
            data: vec![(0, bytes)],
            relocations: &[],
        }
    }

    /// The bytes from an address to the end of its segment.
    pub(super) fn at(&self, at: u64) -> Option<&'a [u8]> {
        let inside =
            |&&(start, _, len): &&(u64, u64, u64)| at.checked_sub(start).is_some_and(|d| d < len);
        let &(start, offset, len) = self.parts.iter().find(inside)?;
        let from = usize::try_from(offset.checked_add(at - start)?).ok()?;
        let to = usize::try_from(offset.checked_add(len)?).ok()?;
        self.bytes.get(from..to.min(self.bytes.len()))
    }

    /// A pointer in memory.
    fn pointer(&self, at: u64) -> Option<u64> {
        let stored = u64::from_le_bytes(*self.at(at)?.first_chunk()?);
        if stored != 0 || self.relocations.is_empty() {
            return Some(stored);
        }
        let of = |r: &&[u8; 24]| r[..8] == at.to_le_bytes();
        let found = self.relocations.iter().find(of);
        Some(found.map_or(0, addend))
    }

    /// The first `N` words of the structure that begins with two pointers.
    pub(super) fn structure<const N: usize>(&self, first: u64, second: u64) -> Option<[u64; N]> {
        let start = self.find_stored(first, second).or_else(|| {
            let refers = |r: &&[u8; 24]| addend(r) == first;
            let mut places = self.relocations.iter().filter(refers).map(place);
            // Other pointers lead there as well; few.
            places
                .by_ref()
                .take(64)
                .find(|&at| self.pointer(at.wrapping_add(8)) == Some(second))
        })?;
        let mut words = [0; N];
        for (number, word) in (0u64..).zip(&mut words) {
            *word = self.pointer(start.checked_add(number * 8)?).unwrap_or(0);
        }
        Some(words)
    }

    fn find_stored(&self, first: u64, second: u64) -> Option<u64> {
        let mut wanted = [0; 16];
        wanted[..8].copy_from_slice(&first.to_le_bytes());
        wanted[8..].copy_from_slice(&second.to_le_bytes());
        self.data.iter().find_map(|&(start, data)| {
            let at = memchr::memmem::find(data, &wanted)?;
            start.checked_add(at as u64)
        })
    }
}

fn place(relocation: &[u8; 24]) -> u64 {
    relocation
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn addend(relocation: &[u8; 24]) -> u64 {
    relocation
        .last_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
