"""Reduces an ELF file to what symbols and unwinding need for a set of addresses.

In: the bytes of a 64-bit little-endian ELF file and the file offsets that a recording touches. Out: the bytes of a
much smaller ELF file with the same build ID, program headers and addresses, in which those places keep their
symbols (with aliases and neighbours), their unwinding rules, their PLT names and, if asked, their code and DWARF.
Used by `make-sample`; no dependencies.

With code, every kept byte stays at its file offset and the rest is zeros. Without code, the sections move together
to the front of the file and the code sections become SHT_NOBITS, as in a debug file; program headers still say
where the code was.
"""
import bisect
import struct

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 0, 1, 2, 3, 4, 7, 8, 11
SHF_ALLOC, SHF_EXECINSTR = 2, 4
PT_NULL, PT_LOAD, PT_NOTE, PT_PHDR, PT_GNU_EH_FRAME, PT_GNU_STACK = 0, 1, 4, 6, 0x6474E550, 0x6474E551
EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
SHDR = struct.Struct("<IIQQQQIIQQ")
SYM = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")


class Section:
    def __init__(self, fields, names, data):
        (n, self.kind, self.flags, self.addr, self.offset, self.size, self.link, self.info, self.align, self.entsize) = fields
        self.name = names[n : names.index(b"\0", n)].decode() if names else ""
        self.data = b"" if self.kind == SHT_NOBITS else data[self.offset : self.offset + self.size]


class Elf:
    def __init__(self, data):
        self.data = data
        self.header = list(EHDR.unpack_from(data))
        phoff, shoff, phnum, shnum, shstrndx = (self.header[i] for i in (5, 6, 10, 12, 13))
        self.phdrs = [list(PHDR.unpack_from(data, phoff + 56 * i)) for i in range(phnum)]
        raw = [SHDR.unpack_from(data, shoff + 64 * i) for i in range(shnum)]
        names = data[raw[shstrndx][4] :][: raw[shstrndx][5]] if raw else b""
        self.sections = [Section(r, names, data) for r in raw]

    def section(self, name):
        return next((s for s in self.sections if s.name == name), None)

    def svma(self, offset):
        """The stated address of a file offset in an executable segment, or None."""
        for kind, flags, p_offset, vaddr, _, filesz, _, _ in self.phdrs:
            if kind == PT_LOAD and flags & 1 and p_offset <= offset < p_offset + filesz:
                return offset - p_offset + vaddr
        return None

    def build_id(self):
        note = self.section(".note.gnu.build-id")
        return note.data[16:].hex() if note else None


class Symbols:
    """A symbol table: rows (name, info, other, section name or number, value, size)."""

    def __init__(self, elf, name):
        self.rows = []
        table = elf.section(name)
        if table is None or not table.data:
            return
        strings = elf.sections[table.link].data
        for i in range(len(table.data) // 24):
            n, info, other, shndx, value, size = SYM.unpack_from(table.data, 24 * i)
            where = elf.sections[shndx].name if 0 < shndx < len(elf.sections) else shndx
            self.rows.append((strings[n : strings.index(b"\0", n)], info, other, where, value, size))

    def covering(self, touched):
        """The indices of the functions at the touched addresses, with their aliases and both neighbours."""
        functions = sorted((r[4], i) for i, r in enumerate(self.rows) if r[1] & 15 in (0, 2, 10) and r[3] and r[0])
        starts = sorted({f[0] for f in functions})
        keep = set()
        for at in touched:
            k = bisect.bisect_right(starts, at) - 1
            keep.update(starts[max(k - 1, 0) : k + 2])
            # A longer function may have begun before others that lie inside it.
            for j in range(max(k - 16, 0), k):
                if any(v == starts[j] and at < v + self.rows[i][5]
                       for v, i in functions[bisect.bisect_left(functions, (starts[j], 0)) :][:4]):
                    keep.add(starts[j])
        return [i for v, i in functions if v in keep]

    def ranges(self, indices):
        return [(self.rows[i][4], self.rows[i][4] + self.rows[i][5]) for i in indices if self.rows[i][5]]


def uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


SIZES = {0: 8, 2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}


def read_pointer(data, at, encoding):
    size = SIZES[encoding & 15]
    value = int.from_bytes(data[at : at + size], "little", signed=encoding & 15 >= 8)
    return value, size


class EhFrame:
    """The entries of an .eh_frame section, and the same with only some of them."""

    def __init__(self, section):
        self.section, self.cies, self.fdes = section, {}, []
        data, at = section.data, 0
        while at + 4 <= len(data):
            (length,) = struct.unpack_from("<I", data, at)
            if length == 0 or length >= 0xFFFFFFF0:
                break
            end = at + 4 + length
            (ident,) = struct.unpack_from("<I", data, at + 4)
            if ident == 0:
                self.cies[at] = self.cie(at, end)
            else:
                cie = at + 4 - ident
                fde, _ = self.cies[cie][1], None
                start, size = read_pointer(data, at + 8, fde)
                if fde & 0x70 == 0x10:
                    start += section.addr + at + 8
                count, _ = read_pointer(data, at + 8 + size, fde & 15 & ~8)
                self.fdes.append((start & (1 << 64) - 1, count, at, end, cie))
            at = end
        self.fdes.sort()

    def cie(self, at, end):
        """(end, FDE pointer encoding, LSDA encoding or None, position and encoding of the personality or None)"""
        data, p = self.section.data, at + 9
        stop = data.index(b"\0", p)
        augmentation, p = data[p:stop].decode(), stop + 1
        fde, lsda, personality = 0, None, None
        _, p = uleb(data, p)
        _, p = uleb(data, p)  # data alignment: signed, same length
        _, p = uleb(data, p)
        if augmentation.startswith("z"):
            _, p = uleb(data, p)
            for letter in augmentation[1:]:
                if letter == "R":
                    fde, p = data[p], p + 1
                elif letter == "L":
                    lsda, p = data[p], p + 1
                elif letter == "P":
                    personality = (p + 1, data[p])
                    p += 1 + SIZES[data[p] & 15]
        return end, fde, lsda, personality, augmentation

    def covering(self, touched):
        starts, keep = [f[0] for f in self.fdes], set()
        for at in touched:
            k = bisect.bisect_right(starts, at) - 1
            if k >= 0 and at < self.fdes[k][0] + self.fdes[k][1]:
                keep.add(k)
        return [self.fdes[k] for k in sorted(keep)]

    def moved(self, out, at, old, new, encoding):
        """Rewrites a pc-relative pointer that moved from `old` to `new`."""
        value, size = read_pointer(out, at, encoding)
        if encoding & 0x70 == 0x10 and value:
            value = (value + old - new) & (1 << 8 * size) - 1
            out[at : at + size] = value.to_bytes(size, "little")

    def subset(self, fdes, hdr_addr):
        """(.eh_frame bytes, .eh_frame_hdr bytes) with only these FDEs, at the same section addresses."""
        data, base, out, places, table = self.section.data, self.section.addr, bytearray(), {}, []
        for start, _, at, end, cie in fdes:
            cie_end, fde, lsda, personality, augmentation = self.cies[cie]
            if cie not in places:
                places[cie] = len(out)
                out += data[cie:cie_end]
                if personality:
                    self.moved(out, places[cie] + personality[0] - cie, base + cie, base + places[cie], personality[1])
            new = len(out)
            out += data[at:end]
            struct.pack_into("<I", out, new + 4, new + 4 - places[cie])
            self.moved(out, new + 8, base + at, base + new, fde)
            size = SIZES[fde & 15]
            if augmentation.startswith("z") and lsda is not None and lsda != 0xFF:
                _, p = uleb(data, at + 8 + 2 * size)
                self.moved(out, new + p - at, base + at, base + new, lsda)
            table.append((start, base + new))
        out += b"\0\0\0\0"
        hdr = bytearray(b"\x01\x1b\x03\x3b") + struct.pack("<iI", base - (hdr_addr + 4), len(table))
        for start, place in sorted(table):
            hdr += struct.pack("<ii", start - hdr_addr, place - hdr_addr)
        return bytes(out), bytes(hdr)


class Writer:
    """Collects the sections of the new file and lays them out."""

    def __init__(self, elf, in_place):
        self.elf, self.in_place = elf, in_place
        self.sections = [("", SHT_NULL, 0, 0, 0, b"", "", 0, 0, 0, 0)]
        head = elf.header[5] + 56 * len(elf.phdrs)
        self.out = bytearray(elf.data[:head])

    def index(self, name):
        return next((i for i, s in enumerate(self.sections) if s[0] == name), 0)

    def put(self, at, data):
        if len(self.out) < at + len(data):
            self.out += bytes(at + len(data) - len(self.out))
        self.out[at : at + len(data)] = data

    def add(self, name, kind, flags, addr, data, offset=None, size=None, link="", info=0, align=8, entsize=0):
        """Adds a section; at its old file offset if `offset` is given, else behind all the others."""
        if offset is None:
            offset = -1
        self.sections.append((name, kind, flags, addr, offset, data, link, info, align, entsize, len(data) if size is None else size))

    def finish(self):
        names, name_at = b"\0", {}
        for s in self.sections + [(".shstrtab",)]:
            if s[0] and s[0] not in name_at:
                name_at[s[0]] = len(names)
                names += s[0].encode() + b"\0"
        self.add(".shstrtab", SHT_STRTAB, 0, 0, names, align=1)
        rows = []
        for s in self.sections:
            if s[4] >= 0 and s[1] != SHT_NOBITS:
                self.put(s[4], s[5])
        for name, kind, flags, addr, offset, data, link, info, align, entsize, size in self.sections:
            if offset < 0:
                offset = (len(self.out) + 7) & ~7
                self.put(offset, data)
            rows.append(SHDR.pack(name_at.get(name, 0), kind, flags, addr, offset, size, self.index(link) if link else 0, info, align, entsize))
            if name == ".eh_frame_hdr":
                for p in self.elf.phdrs:
                    if p[0] == PT_GNU_EH_FRAME:
                        p[2], p[5], p[6] = offset, size, size
        shoff = (len(self.out) + 7) & ~7
        self.put(shoff, b"".join(rows))
        header = self.elf.header[:]
        header[6], header[12], header[13] = shoff, len(rows), len(rows) - 1
        self.put(0, EHDR.pack(*header))
        for i, p in enumerate(self.elf.phdrs):
            if p[0] not in (PT_LOAD, PT_NOTE, PT_PHDR, PT_GNU_EH_FRAME, PT_GNU_STACK):
                p[0] = PT_NULL
            self.put(header[5] + 56 * i, PHDR.pack(*p))
        return bytes(self.out)


def pack_symbols(rows, writer, first=()):
    """(symbol table bytes, strings, number of local symbols, new index of each row): `first` rows, then locals, then globals."""
    order = list(first) + sorted((r for r in set(rows) - set(first)), key=lambda r: (r[1] >> 4 != 0, r[4], r[0]))
    strings, at, out, index = b"\0", {}, bytearray(24), {}
    for i, (name, info, other, where, value, size) in enumerate(order):
        if name and name not in at:
            at[name] = len(strings)
            strings += name + b"\0"
        shndx = writer.index(where) if isinstance(where, str) else where
        out += SYM.pack(at.get(name, 0), info, other, shndx or (0 if where == 0 else 0xFFF1), value, size)
        index[order[i]] = i + 1
    return bytes(out), strings, 1 + sum(1 for r in order if r[1] >> 4 == 0), index


def reduce_elf(data, touched_offsets, code, debug_file=None, dwarf=False):
    """The reduced file. `code`: keep the bytes of touched functions in place; `dwarf`: keep .debug_*;
    `debug_file`: take .symtab from these bytes."""
    elf = Elf(data)
    touched = sorted({a for a in map(elf.svma, touched_offsets) if a is not None})
    symbols, dynamic = Symbols(Elf(debug_file) if debug_file else elf, ".symtab"), Symbols(elf, ".dynsym")
    kept, kept_dynamic = symbols.covering(touched), dynamic.covering(touched)
    writer = Writer(elf, code)
    keep = lambda s: s.offset if code else None
    ranges = symbols.ranges(kept) + dynamic.ranges(kept_dynamic)

    eh, hdr = elf.section(".eh_frame"), elf.section(".eh_frame_hdr")
    frames = []
    if eh and eh.data:
        frame = EhFrame(eh)
        frames = frame.covering(touched)
        ranges += [(f[0], f[0] + f[1]) for f in frames]
    for s in elf.sections:
        if s.kind == SHT_NOTE and s.flags & SHF_ALLOC and s.offset < 4096:
            writer.add(s.name, SHT_NOTE, s.flags, s.addr, s.data, s.offset, align=4)
        elif s.flags & SHF_EXECINSTR and s.flags & SHF_ALLOC:
            if code:
                body = bytearray(len(s.data))
                if s.name.startswith(".plt") and s.size < 65536:
                    body[:] = s.data
                for start, end in ranges:
                    a, b = max(start - s.addr, 0), min(end - s.addr, s.size)
                    if a < b and b - a < 65536:
                        body[a:b] = s.data[a:b]
                for at in touched:
                    # What is called from a place without a symbol or rule.
                    a, b = max(at - s.addr - 16, 0), min(at - s.addr + 16, s.size)
                    if a < b:
                        body[a:b] = s.data[a:b]
                writer.add(s.name, SHT_PROGBITS, s.flags, s.addr, bytes(body), s.offset, align=s.align)
            else:
                writer.add(s.name, SHT_NOBITS, s.flags, s.addr, b"", s.offset, size=s.size, align=s.align)
    if eh and eh.data:
        eh_bytes, hdr_bytes = frame.subset(frames, hdr.addr if hdr else 0)
        writer.add(".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh.addr, eh_bytes, keep(eh))
        if hdr:
            writer.add(".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, hdr.addr, hdr_bytes, keep(hdr), align=4)
    if dynamic.rows:
        table, strings = elf.section(".dynsym"), elf.section(".dynstr")
        relocations = []
        for name in (".rela.plt", ".rela.dyn"):
            s = elf.section(name)
            if s and s.data and (code or name == ".rela.plt"):
                rows = list(RELA.iter_unpack(s.data))
                relocations.append((s, [r for r in rows if name == ".rela.plt" or r[1] & 0xFFFFFFFF in (6, 37)]))
        wanted = [dynamic.rows[i] for i in kept_dynamic]
        wanted += [dynamic.rows[r[1] >> 32] for _, rows in relocations for r in rows if r[1] >> 32]
        packed, text, local, index = pack_symbols(wanted, writer)
        writer.add(".dynsym", SHT_DYNSYM, SHF_ALLOC, table.addr, packed, keep(table), link=".dynstr", info=local, entsize=24)
        writer.add(".dynstr", SHT_STRTAB, SHF_ALLOC, strings.addr, text, keep(strings), align=1)
        for s, rows in relocations:
            body = b"".join(RELA.pack(o, index.get(dynamic.rows[i >> 32], 0) << 32 | i & 0xFFFFFFFF, a) for o, i, a in rows)
            writer.add(s.name, SHT_RELA, s.flags, s.addr, body, keep(s), link=".dynsym", entsize=24)
    if dwarf:
        for s in elf.sections:
            if s.name.startswith(".debug_") and not s.flags & SHF_ALLOC:
                writer.add(s.name, s.kind, s.flags, 0, s.data, align=s.align, entsize=s.entsize)
    if symbols.rows:
        packed, text, local, _ = pack_symbols([symbols.rows[i] for i in kept], writer)
        writer.add(".symtab", SHT_SYMTAB, 0, 0, packed, link=".strtab", info=local, entsize=24)
        writer.add(".strtab", SHT_STRTAB, 0, 0, text, align=1)
    return writer.finish()
