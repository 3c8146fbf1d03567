//! ELF files for tests, put together byte by byte; shares nothing with the reader.

/// A symbol: name, value, size, info byte (binding * 16 + type), section index.
pub(crate) type TestSymbol<'s> = (&'s str, u64, u64, u8, u16);

/// Global function.
pub(crate) const FUNC: u8 = 0x12;
/// Local function.
pub(crate) const LOCAL_FUNC: u8 = 0x02;
/// Weak function.
pub(crate) const WEAK_FUNC: u8 = 0x22;
/// Local label.
pub(crate) const LABEL: u8 = 0x00;
/// Global object.
pub(crate) const OBJECT: u8 = 0x11;
/// Global indirect function.
pub(crate) const IFUNC: u8 = 0x1a;

/// `SHT_*`
pub(crate) const PROGBITS: u32 = 1;
pub(crate) const RELA: u32 = 4;

struct Section {
    name: String,
    kind: u32,
    flags: u64,
    addr: u64,
    data: Vec<u8>,
    link: u32,
    entsize: u64,
    offset: Option<u64>,
}

/// A 64-bit little-endian ELF file. Section 1 is `.text`, unless told otherwise.
pub(crate) struct ElfBuilder {
    machine: u16,
    kind: u16,
    sections: Vec<Section>,
    /// offset, address, size, flags
    segments: Vec<(u64, u64, u64, u32)>,
    /// Whether segments have no bytes in the file.
    has_no_bytes: bool,
}

impl ElfBuilder {
    /// A shared library with one executable segment: `size` bytes at file offset 0x1000 for address
    /// 0x2000 on, all of it `.text`.
    pub(crate) fn new(size: usize) -> Self {
        let mut elf = Self::without_text(62, 3);
        elf.segments.push((0x1000, 0x2000, size as u64, 5));
        elf.section_at(".text", PROGBITS, 6, 0x2000, 0x1000, vec![0x90; size]);
        elf
    }

    pub(crate) fn without_text(machine: u16, kind: u16) -> Self {
        Self {
            machine,
            kind,
            sections: Vec::new(),
            segments: Vec::new(),
            has_no_bytes: false,
        }
    }

    /// Makes it a debug file, whose segments have no bytes.
    pub(crate) fn without_bytes(&mut self) {
        self.has_no_bytes = true;
    }

    pub(crate) fn segment(&mut self, offset: u64, addr: u64, size: u64, flags: u32) {
        self.segments.push((offset, addr, size, flags));
    }

    /// Adds a section at a place of its own; returns its index.
    pub(crate) fn section(&mut self, name: &str, kind: u32, data: Vec<u8>) -> u16 {
        self.push(name, kind, 0, 0, None, data)
    }

    /// Adds a section at an address and file offset.
    pub(crate) fn section_at(
        &mut self,
        name: &str,
        kind: u32,
        flags: u64,
        addr: u64,
        offset: u64,
        data: Vec<u8>,
    ) -> u16 {
        self.push(name, kind, flags, addr, Some(offset), data)
    }

    fn push(
        &mut self,
        name: &str,
        kind: u32,
        flags: u64,
        addr: u64,
        offset: Option<u64>,
        data: Vec<u8>,
    ) -> u16 {
        self.sections.push(Section {
            name: name.to_owned(),
            kind,
            flags,
            addr,
            data,
            link: 0,
            entsize: 0,
            offset,
        });
        u16::try_from(self.sections.len()).expect("few sections")
    }

    pub(crate) fn link(&mut self, section: u16, link: u16, entsize: u64) {
        let section = &mut self.sections[usize::from(section) - 1];
        section.link = u32::from(link);
        section.entsize = entsize;
    }

    /// Adds `.symtab` or `.dynsym` with its strings.
    pub(crate) fn symbols(&mut self, name: &str, symbols: &[TestSymbol<'_>]) -> u16 {
        let (mut strings, mut table) = (vec![0u8], vec![0u8; 24]);
        for &(symbol, value, size, info, section) in symbols {
            table.extend(u32::try_from(strings.len()).expect("short").to_le_bytes());
            table.extend([info, 0]);
            table.extend(section.to_le_bytes());
            table.extend(value.to_le_bytes());
            table.extend(size.to_le_bytes());
            strings.extend(symbol.as_bytes());
            strings.push(0);
        }
        let (kind, strings_name) = if name == ".dynsym" {
            (11, ".dynstr")
        } else {
            (2, ".strtab")
        };
        let strings = self.section(strings_name, 3, strings);
        let table = self.section(name, kind, table);
        self.link(table, strings, 24);
        table
    }

    /// Adds a note with this build ID.
    pub(crate) fn build_id(&mut self, id: &[u8]) {
        let mut note = Vec::new();
        note.extend(4u32.to_le_bytes());
        note.extend(u32::try_from(id.len()).expect("short").to_le_bytes());
        note.extend(3u32.to_le_bytes());
        note.extend(b"GNU\0");
        note.extend(id);
        note.resize(note.len().next_multiple_of(4), 0);
        self.section(".note.gnu.build-id", 7, note);
    }

    pub(crate) fn build(mut self) -> Vec<u8> {
        let mut names = vec![0u8];
        let mut name_at = Vec::new();
        self.section(".shstrtab", 3, Vec::new());
        for section in &self.sections {
            name_at.push(u32::try_from(names.len()).expect("short"));
            names.extend(section.name.as_bytes());
            names.push(0);
        }
        self.sections.last_mut().expect("just added").data = names;
        let mut out = vec![0u8; 64 + 56 * self.segments.len()];
        let mut headers = vec![0u8; 64];
        for placed in [true, false] {
            for section in self
                .sections
                .iter_mut()
                .filter(|s| s.offset.is_some() == placed)
            {
                let at = section
                    .offset
                    .unwrap_or(out.len().next_multiple_of(16) as u64);
                let start = usize::try_from(at).expect("small");
                out.resize(out.len().max(start + section.data.len()), 0);
                out[start..start + section.data.len()].copy_from_slice(&section.data);
                section.offset = Some(at);
            }
            if placed {
                // The rest goes behind everything that has a place.
                for section in self.sections.iter().filter(|s| s.offset.is_none()) {
                    assert!(section.addr == 0);
                }
            }
        }
        for (section, name) in self.sections.iter().zip(name_at) {
            headers.extend(name.to_le_bytes());
            headers.extend(section.kind.to_le_bytes());
            headers.extend(section.flags.to_le_bytes());
            headers.extend(section.addr.to_le_bytes());
            headers.extend(section.offset.expect("placed above").to_le_bytes());
            headers.extend((section.data.len() as u64).to_le_bytes());
            headers.extend(section.link.to_le_bytes());
            headers.extend(0u32.to_le_bytes());
            headers.extend(16u64.to_le_bytes());
            headers.extend(section.entsize.to_le_bytes());
        }
        let headers_at = out.len() as u64;
        out.extend(headers);
        self.write_file_header(&mut out, headers_at);
        out
    }

    fn write_file_header(&self, out: &mut [u8], headers_at: u64) {
        let count = |n: usize| u16::try_from(n).expect("few");
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        header.extend(self.kind.to_le_bytes());
        header.extend(self.machine.to_le_bytes());
        header.extend(1u32.to_le_bytes());
        header.extend(0u64.to_le_bytes());
        header.extend(64u64.to_le_bytes());
        header.extend(headers_at.to_le_bytes());
        header.extend(0u32.to_le_bytes());
        for field in [
            64,
            56,
            count(self.segments.len()),
            64,
            count(self.sections.len() + 1),
        ] {
            header.extend(field.to_le_bytes());
        }
        header.extend(count(self.sections.len()).to_le_bytes());
        for &(offset, addr, size, flags) in &self.segments {
            header.extend(1u32.to_le_bytes());
            header.extend(flags.to_le_bytes());
            let in_file = if self.has_no_bytes { 0 } else { size };
            for field in [offset, addr, addr, in_file, size, 0x1000] {
                header.extend(field.to_le_bytes());
            }
        }
        out[..header.len()].copy_from_slice(&header);
    }
}

/// An xz stream with a block for each of these.
#[cfg(test)]
pub(crate) fn xz(blocks: &[&[u8]]) -> Vec<u8> {
    use std::io::Write;
    use std::num::NonZeroU64;
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.lzma_options.dict_size = 1 << 16;
    let longest = blocks.iter().map(|block| block.len() as u64).max();
    options.set_block_size(longest.and_then(NonZeroU64::new));
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).expect("to memory");
    for block in blocks {
        writer.write_all(block).expect("to memory");
    }
    writer.finish().expect("to memory")
}
