//! One ELF file: checked headers over borrowed bytes.
//!
//! In: the bytes of a file that may be anything. Out: segments, sections (decompressed on demand, once),
//! build ID, and the way between file offsets and stated addresses. Both classes and both byte orders;
//! nothing here panics or allocates more than a small multiple of what the file holds. Called by the
//! symbol tables, the unwinder and the inline lookup.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use object::Endianness;
use object::elf::{
    CompressionType, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, ET_CORE, ET_REL, FileHeader32,
    FileHeader64, FileType, NT_GNU_BUILD_ID, SHF_COMPRESSED, SHT_NOBITS, SHT_NOTE, SectionFlags,
    SectionType,
};
use object::pod::{bytes_of, bytes_of_slice, from_bytes};
use object::read::elf::{
    CompressionHeader, FileHeader, NoteIterator, ProgramHeader, SectionHeader as _,
};

use super::BuildId;
use crate::address::{FileOffset, Svma};
use crate::arch::Arch;
use crate::input::Store;

/// Why bytes are not a usable ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// No ELF magic.
    #[error("not an ELF file")]
    NotElf,
    /// Class or byte order byte is neither of the two known ones.
    #[error("ELF class or byte order unknown")]
    UnknownClass,
    /// The header or a header table lies outside the file.
    #[error("ELF headers reach past the end of the file")]
    Truncated,
}

/// A `PT_LOAD` program header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// `p_offset`
    pub file_offset: FileOffset,
    /// `p_filesz`
    pub file_size: u64,
    /// `p_vaddr`
    pub svma: Svma,
    /// `p_memsz`
    pub mem_size: u64,
    /// `PF_X`
    pub executable: bool,
    /// `PF_W`
    pub writable: bool,
}

/// A section with its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// `sh_addr`; for relocatable files without segments the file offset (see [`ElfFile::svma_of`]).
    pub svma: Svma,
    /// The bytes, decompressed; empty for `SHT_NOBITS`.
    pub data: &'a [u8],
    /// `sh_offset`
    pub file_offset: FileOffset,
}

/// A section header, normalised to 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionHeader<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: SectionType,
    pub(crate) flags: SectionFlags,
    pub(crate) addr: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) addralign: u64,
    pub(crate) entsize: u64,
}

/// Linkers make a dozen program headers, BOLT a few more; a larger number is damage.
const MAX_SEGMENTS: usize = 1024;

/// Class and byte order of a file: how its tables lie in its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) is_64: bool,
    pub(crate) endian: Endianness,
}

fn slice(data: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    data.get(start..end)
}

/// A NUL-terminated string at `offset` of a string table; empty when outside.
pub(crate) fn string_at(table: &[u8], offset: u32) -> &[u8] {
    /// No name is longer; a table without NULs must not be searched to its end for each symbol.
    const MAX_NAME: usize = 1 << 16;
    let tail = table.get(offset as usize..).unwrap_or_default();
    let tail = &tail[..tail.len().min(MAX_NAME)];
    memchr::memchr(0, tail).map_or(&[], |end| &tail[..end])
}

/// One ELF file, zero-copy over the bytes of a [`Store`]. Shareable by threads.
pub struct ElfFile<'a> {
    data: &'a [u8],
    layout: Layout,
    store: &'a Store,
    arch: Option<Arch>,
    file_type: FileType,
    entry: Svma,
    build_id: Option<BuildId>,
    is_whole: bool,
    segments: Vec<Segment>,
    /// Whether the segments are those of the program that the file was cut from, and the bytes are not.
    is_placed: bool,
    sections: Vec<SectionHeader<'a>>,
    decompressed: Vec<OnceLock<&'a [u8]>>,
    /// Bytes that sections may still be decompressed to.
    unpacked_left: AtomicU64,
}

impl std::fmt::Debug for ElfFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ElfFile")
            .field("arch", &self.arch)
            .field("build_id", &self.build_id)
            .field("segments", &self.segments)
            .field("sections", &self.sections.len())
            .finish_non_exhaustive()
    }
}

impl<'a> ElfFile<'a> {
    /// Reads the headers. Section headers that cannot be read (a file cut behind its code, or one
    /// without any) are treated as absent; program headers likewise.
    ///
    /// # Errors
    /// When the bytes do not start with a whole ELF header.
    pub fn parse(data: &'a [u8], store: &'a Store) -> Result<Self, ElfError> {
        let ident = data.get(..16).ok_or(ElfError::NotElf)?;
        if &ident[..4] != b"\x7fELF" {
            return Err(ElfError::NotElf);
        }
        let (1 | 2, 1 | 2) = (ident[4], ident[5]) else {
            return Err(ElfError::UnknownClass);
        };
        let is_64 = ident[4] == 2;
        let headers = if is_64 {
            Headers::read::<FileHeader64<Endianness>>(data)
        } else {
            Headers::read::<FileHeader32<Endianness>>(data)
        };
        let headers = headers.ok_or(ElfError::Truncated)?;
        headers.tables.iter().for_each(|table| store.read(table));
        let (sections, segments) = (headers.sections, headers.segments);
        let decompressed = sections.iter().map(|_| OnceLock::new()).collect();
        let layout = Layout {
            is_64,
            endian: headers.endian,
        };
        let in_sections = sections.iter().filter(|s| s.kind == SHT_NOTE);
        let notes = in_sections.map(|s| (s.offset, s.size)).chain(headers.notes);
        let notes: Vec<_> = notes.filter_map(|(at, len)| slice(data, at, len)).collect();
        notes.iter().for_each(|notes| store.read(notes));
        let is_there =
            |s: &SectionHeader<'_>| s.kind == SHT_NOBITS || slice(data, s.offset, s.size).is_some();
        let has_sections = headers.sections_at == 0 || !sections.is_empty();
        let is_whole = has_sections && sections.iter().all(is_there);
        let id_in = |bytes: &&[u8]| build_id_in_notes(bytes, layout.endian);
        let build_id = notes.iter().find_map(id_in);
        Ok(Self {
            data,
            layout,
            store,
            arch: Arch::from_elf(headers.machine),
            file_type: headers.file_type,
            entry: Svma(headers.entry),
            build_id,
            is_whole,
            segments,
            is_placed: false,
            sections,
            decompressed,
            unpacked_left: AtomicU64::new(decompression_bound(data.len())),
        })
    }

    /// The processor.
    #[must_use]
    pub fn arch(&self) -> Option<Arch> {
        self.arch
    }

    /// Whether this is a 64-bit file.
    #[must_use]
    pub fn is_64(&self) -> bool {
        self.layout.is_64
    }

    /// Whether the file is big-endian.
    #[must_use]
    pub fn is_big_endian(&self) -> bool {
        self.layout.endian == Endianness::Big
    }

    /// Whether the file is `ET_REL`: an object file, or wasmtime's `.cwasm`.
    #[must_use]
    pub fn is_relocatable(&self) -> bool {
        self.file_type == ET_REL
    }

    /// Whether the file is `ET_CORE`: no program but what a process had in its memory.
    #[must_use]
    pub fn is_core_dump(&self) -> bool {
        self.file_type == ET_CORE
    }

    /// Whether it is what wasmtime compiled a module to (`.cwasm`).
    #[must_use]
    pub fn is_compiled_wasm(&self) -> bool {
        self.is_relocatable() && self.has_section(".wasmtime.engine")
    }

    /// Whether a program starts at a place: in `_start`, or ld.so's `_dl_start_user` behind it.
    #[must_use]
    pub fn is_start(&self, at: FileOffset) -> bool {
        const LONGEST: u64 = 256;
        let at = self.svma_of(at);
        at.is_some_and(|at| at.0.wrapping_sub(self.entry().0) < LONGEST)
    }

    /// `e_entry`
    #[must_use]
    pub fn entry(&self) -> Svma {
        self.entry
    }

    /// The build ID out of the first `NT_GNU_BUILD_ID` note.
    #[must_use]
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// Whether all of its sections are there: a file may have been cut on its way.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The `PT_LOAD` segments in file order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether the file was cut from a program and lacks the bytes of its code. Positions in it are then not those in the
    /// program: `objcopy --only-keep-debug` moves segments that have no bytes.
    pub(super) fn is_only_debug(&self) -> bool {
        let code = self.segments.iter().filter(|s| s.executable);
        let mut code = code.filter(|s| s.mem_size > 0).peekable();
        code.peek().is_some() && code.all(|s| s.file_size == 0)
    }

    /// Takes the segments for those of the program that the file was cut from.
    pub(super) fn placed(self, segments: Vec<Segment>) -> Self {
        Self {
            segments,
            is_placed: true,
            ..self
        }
    }

    /// Whether its segments are those of the program that it was cut from, as far as they are known. It has no code.
    pub(crate) fn is_placed(&self) -> bool {
        self.is_placed
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// The first section of exactly this name, decompressed. `None` when there is none, or when
    /// its bytes lie outside the file or cannot be decompressed.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<Section<'a>> {
        let index = self
            .sections
            .iter()
            .position(|s| s.name == name.as_bytes())?;
        self.section_at(index)
    }

    /// Whether a section of exactly this name exists with bytes in the file (`SHT_NOBITS` does not count).
    #[must_use]
    pub fn has_section(&self, name: &str) -> bool {
        self.sections
            .iter()
            .any(|s| s.name == name.as_bytes() && s.kind != SHT_NOBITS)
    }

    /// The DWARF section of this name (`.debug_info`), also in the old compressed form `.zdebug_info`.
    /// Empty sections count as absent.
    #[must_use]
    pub fn debug_section(&self, name: &str) -> Option<&'a [u8]> {
        let plain = self
            .section(name)
            .map(|s| s.data)
            .filter(|data| !data.is_empty());
        plain.or_else(|| {
            let old = format!(".z{}", name.strip_prefix('.')?);
            self.section(&old)
                .map(|s| s.data)
                .filter(|data| !data.is_empty())
        })
    }

    /// The same without noting all of it as read, which is left to the caller. Of compressed ones all was read.
    pub(crate) fn debug_section_unread(&self, name: &str) -> Option<&'a [u8]> {
        let plain = self.sections.iter().find(|s| s.name == name.as_bytes());
        match plain {
            Some(header) if !header.flags.contains(SHF_COMPRESSED) && header.kind != SHT_NOBITS => {
                let data = slice(self.data, header.offset, header.size);
                data.filter(|data| !data.is_empty())
                    .or_else(|| self.debug_section(name))
            }
            _ => self.debug_section(name),
        }
    }

    /// The same, but unpacked for the caller alone if it is compressed.
    pub(crate) fn debug_section_apart(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let of_name = |wanted: &str| {
            let is_it = |s: &SectionHeader<'_>| s.name == wanted.as_bytes() && s.size > 0;
            self.sections.iter().position(is_it)
        };
        let old = || of_name(&format!(".z{}", name.strip_prefix('.')?));
        let index = of_name(name).or_else(old)?;
        let header = &self.sections[index];
        let is_unpacked = !is_compressed(header) || self.decompressed[index].get().is_some();
        if is_unpacked || header.kind == SHT_NOBITS {
            return self.debug_section_unread(name).map(Cow::Borrowed);
        }
        self.note_section(header);
        Some(Cow::Owned(self.unpack(header)?))
    }

    /// Who owns the bytes.
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// The stated address of a file position: through the executable `PT_LOAD` that contains it, else
    /// through any other. Executable ones go first because a linker may let page-rounded segments
    /// overlap in file space (lld). In relocatable files without segments stated addresses are file offsets.
    #[must_use]
    pub fn svma_of(&self, at: FileOffset) -> Option<Svma> {
        if self.segments.is_empty() {
            return self.is_relocatable().then_some(Svma(at.0));
        }
        let within =
            |s: &&Segment| at.0 >= s.file_offset.0 && at.since(s.file_offset) < s.file_size;
        // A mapping is page-rounded, so code may also be sampled in the slack before a segment.
        let nearest = || {
            let page = |s: &&Segment| at.0 | 0xfff == s.file_offset.0 | 0xfff;
            self.segments.iter().filter(|s| s.executable).find(page)
        };
        let segment = self
            .segments
            .iter()
            .filter(|s| s.executable)
            .find(within)
            .or_else(|| self.segments.iter().find(within))
            .or_else(nearest)?;
        Some(Svma(
            segment.svma.0.wrapping_add(at.since(segment.file_offset)),
        ))
    }

    /// The file position of a stated address, through the first `PT_LOAD` whose memory contains it.
    #[must_use]
    pub fn file_offset_of(&self, at: Svma) -> Option<FileOffset> {
        if self.segments.is_empty() {
            return self.is_relocatable().then_some(FileOffset(at.0));
        }
        let size = |s: &Segment| s.mem_size.max(s.file_size);
        let segment = self
            .segments
            .iter()
            .find(|s| at.0 >= s.svma.0 && at.since(s.svma) < size(s))?;
        Some(FileOffset(
            segment.file_offset.0.wrapping_add(at.since(segment.svma)),
        ))
    }

    /// `len` bytes of the file from a position.
    #[must_use]
    pub fn bytes_at(&self, at: FileOffset, len: usize) -> Option<&'a [u8]> {
        if self.is_placed {
            return None;
        }
        let bytes = slice(self.data, at.0, len as u64)?;
        self.store.read(bytes);
        Some(bytes)
    }

    /// As many bytes as the file has from a position on, at most `len`; empty outside.
    #[must_use]
    pub fn bytes_from(&self, at: FileOffset, len: usize) -> &'a [u8] {
        let start = usize::try_from(at.0).ok().filter(|_| !self.is_placed);
        let tail = start.and_then(|start| self.data.get(start..));
        let tail = tail.unwrap_or_default();
        let bytes = &tail[..tail.len().min(len)];
        self.store.read(bytes);
        bytes
    }

    /// Notes that the loaded data of the file may be looked at anywhere, but not its code.
    pub(crate) fn note_data(&self) {
        let segments = self
            .segments
            .iter()
            .filter(|s| !s.executable && !self.is_placed);
        for segment in segments {
            let data = slice(self.data, segment.file_offset.0, segment.file_size);
            self.store.read(data.unwrap_or_default());
        }
    }

    /// All section headers, the null section included, in index order.
    pub(crate) fn section_headers(&self) -> &[SectionHeader<'a>] {
        &self.sections
    }

    /// The file's class and byte order.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The section with this index, decompressed.
    pub(crate) fn section_at(&self, index: usize) -> Option<Section<'a>> {
        let header = self.sections.get(index)?;
        self.note_section(header);
        let data = if header.kind == SHT_NOBITS {
            &[]
        } else if is_compressed(header) {
            self.decompressed_section(index, header)?
        } else {
            slice(self.data, header.offset, header.size)?
        };
        let relative = self.is_relocatable() && self.segments.is_empty() && header.addr == 0;
        Some(Section {
            svma: Svma(if relative { header.offset } else { header.addr }),
            data,
            file_offset: FileOffset(header.offset),
        })
    }

    /// Notes that the bytes of a section are looked at.
    fn note_section(&self, header: &SectionHeader<'_>) {
        if header.kind != SHT_NOBITS {
            let raw = slice(self.data, header.offset, header.size);
            self.store.read(raw.unwrap_or_default());
        }
    }

    fn decompressed_section(&self, index: usize, header: &SectionHeader<'a>) -> Option<&'a [u8]> {
        let cell = self.decompressed.get(index)?;
        if let Some(done) = cell.get() {
            return (!done.is_empty()).then_some(done);
        }
        // An empty buffer remembers the failure.
        let done = *cell.get_or_init(|| {
            let data = self.unpack(header).unwrap_or_default();
            self.store.keep(data)
        });
        (!done.is_empty()).then_some(done)
    }

    fn unpack(&self, header: &SectionHeader<'_>) -> Option<Vec<u8>> {
        let raw = slice(self.data, header.offset, header.size)?;
        let (kind, size, packed) = if !header.flags.contains(SHF_COMPRESSED) {
            // `.zdebug_*`: "ZLIB", then the size as eight big-endian bytes.
            let (size, packed) = raw.strip_prefix(b"ZLIB")?.split_first_chunk()?;
            (ELFCOMPRESS_ZLIB, u64::from_be_bytes(*size), packed)
        } else if self.layout.is_64 {
            compression::<FileHeader64<Endianness>>(raw, self.layout.endian)?
        } else {
            compression::<FileHeader32<Endianness>>(raw, self.layout.endian)?
        };
        let left = self
            .unpacked_left
            .load(Ordering::Relaxed)
            .checked_sub(size)?;
        self.unpacked_left.store(left, Ordering::Relaxed);
        decompress(kind, packed, usize::try_from(size).ok()?)
    }
}

fn is_compressed(header: &SectionHeader<'_>) -> bool {
    header.flags.contains(SHF_COMPRESSED) || header.name.starts_with(b".zdebug_")
}

/// What the headers of a file say, of either class.
struct Headers<'a> {
    endian: Endianness,
    machine: u16,
    file_type: FileType,
    entry: u64,
    /// Where its sections stand, 0 if it has none.
    sections_at: u64,
    sections: Vec<SectionHeader<'a>>,
    segments: Vec<Segment>,
    /// Offsets and sizes.
    notes: Vec<(u64, u64)>,
    /// The bytes that all of this was read from.
    tables: Vec<&'a [u8]>,
}

impl<'a> Headers<'a> {
    fn read<H: FileHeader<Endian = Endianness>>(data: &'a [u8]) -> Option<Self> {
        let header = H::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let mut headers = Self {
            endian,
            machine: header.e_machine(endian).0,
            file_type: header.e_type(endian),
            entry: header.e_entry(endian).into(),
            sections_at: header.e_shoff(endian).into(),
            sections: Vec::new(),
            segments: Vec::new(),
            notes: Vec::new(),
            tables: vec![bytes_of(header)],
        };
        headers.read_sections(header, endian, data);
        let programs = header.program_headers(endian, data).unwrap_or_default();
        headers.tables.push(bytes_of_slice(programs));
        for program in programs.iter().take(MAX_SEGMENTS) {
            headers.add_program(program, endian);
        }
        Some(headers)
    }

    fn read_sections<H: FileHeader>(&mut self, header: &H, endian: H::Endian, data: &'a [u8]) {
        let sections = header.section_headers(endian, data).unwrap_or_default();
        let names = header.shstrndx(endian, data).ok();
        let names = names.and_then(|names| sections.get(names as usize));
        let names = names.and_then(|names| {
            let (at, len) = (names.sh_offset(endian).into(), names.sh_size(endian).into());
            slice(data, at, len)
        });
        let names = names.unwrap_or_default();
        self.tables.extend([bytes_of_slice(sections), names]);
        let normalised = sections.iter().map(|section| SectionHeader {
            name: string_at(names, section.sh_name(endian)),
            kind: section.sh_type(endian),
            flags: section.sh_flags(endian),
            addr: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            link: section.sh_link(endian),
            addralign: section.sh_addralign(endian).into(),
            entsize: section.sh_entsize(endian).into(),
        });
        self.sections = normalised.collect();
    }

    fn add_program<P: ProgramHeader>(&mut self, program: &P, endian: P::Endian) {
        let (offset, size) = program.file_range(endian);
        match program.p_type(endian) {
            object::elf::PT_LOAD => self.segments.push(Segment {
                file_offset: FileOffset(offset),
                file_size: size,
                svma: Svma(program.p_vaddr(endian).into()),
                mem_size: program.p_memsz(endian).into(),
                executable: program.p_flags(endian).contains(object::elf::PF_X),
                writable: program.p_flags(endian).contains(object::elf::PF_W),
            }),
            object::elf::PT_NOTE => self.notes.push((offset, size)),
            _ => {}
        }
    }
}

/// The first GNU build ID in a run of notes.
pub(crate) fn build_id_in_notes(notes: &[u8], endian: Endianness) -> Option<BuildId> {
    // Notes are the same in both classes.
    let mut notes = NoteIterator::<FileHeader32<Endianness>>::new(endian, 4, notes).ok()?;
    while let Some(note) = notes.next().ok()? {
        if note.n_type(endian) == NT_GNU_BUILD_ID && note.name() == b"GNU" {
            return BuildId::new(note.desc());
        }
    }
    None
}

/// Bytes that the sections of a file may become in sum (they may all lie on the same compressed bytes): deflate cannot exceed
/// 1:1032, zstd knows no limit, real DWARF stays below 1:50.
const fn decompression_bound(file: usize) -> u64 {
    (file as u64).saturating_mul(64).saturating_add(4 << 20)
}

/// What is said in front of the packed bytes of a section, and these.
fn compression<H: FileHeader>(
    section: &[u8],
    endian: H::Endian,
) -> Option<(CompressionType, u64, &[u8])> {
    let (header, packed) = from_bytes::<H::CompressionHeader>(section).ok()?;
    Some((
        header.ch_type(endian),
        header.ch_size(endian).into(),
        packed,
    ))
}

/// `size` bytes out of packed ones.
fn decompress(kind: CompressionType, packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let out = match kind {
        ELFCOMPRESS_ZLIB => {
            // In one go: a reader would copy its window for each piece.
            let mut out = Vec::with_capacity(size);
            flate2::Decompress::new(true)
                .decompress_vec(packed, &mut out, flate2::FlushDecompress::Finish)
                .ok()?;
            out
        }
        ELFCOMPRESS_ZSTD => crate::zstd::decode_all(packed, size)?,
        _ => return None,
    };
    (out.len() == size).then_some(out)
}
