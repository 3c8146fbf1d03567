//! Writes dumps for tests, byte by byte after the specification. Shares nothing with the reader, so a
//! mistake in a layout cannot cancel out.

/// A dump under construction.
pub(crate) struct DumpWriter {
    pub(crate) bytes: Vec<u8>,
    big_endian: bool,
}

impl DumpWriter {
    /// A file with the usual 40-byte header.
    pub(crate) fn new(pid: u32, timestamp: u64) -> Self {
        Self::with_header(false, 40, 0, pid, timestamp, 0)
    }

    /// A file of a big-endian machine.
    pub(crate) fn big_endian(pid: u32, timestamp: u64) -> Self {
        Self::with_header(true, 40, 0, pid, timestamp, 0)
    }

    /// A file with a header of any claimed size; sizes above 40 are filled with zeros.
    pub(crate) fn with_header(
        big_endian: bool,
        size: u32,
        pad1: u32,
        pid: u32,
        timestamp: u64,
        flags: u64,
    ) -> Self {
        let mut writer = Self {
            bytes: Vec::new(),
            big_endian,
        };
        writer.header(size, pad1, pid, timestamp, flags);
        writer
    }

    /// One more header, as a second writer in the process puts it.
    pub(crate) fn header(
        &mut self,
        size: u32,
        pad1: u32,
        pid: u32,
        timestamp: u64,
        flags: u64,
    ) -> &mut Self {
        let begin = self.bytes.len();
        for word in [0x4A69_5444, 1, size, 62, pad1, pid] {
            self.u32(word);
        }
        self.u64(timestamp);
        self.u64(flags);
        let end = begin + (size as usize).max(40);
        self.bytes.resize(end, 0);
        self
    }

    /// LOAD with `vma` equal to the code address.
    pub(crate) fn load(
        &mut self,
        time: u64,
        pid: u32,
        address: u64,
        index: u64,
        name: &[u8],
        code: &[u8],
    ) -> &mut Self {
        self.load_with(
            time,
            pid,
            address,
            address,
            code.len() as u64,
            index,
            name,
            code,
        )
    }

    /// LOAD with every field free.
    #[allow(
        clippy::too_many_arguments,
        reason = "one for each field of the record"
    )]
    pub(crate) fn load_with(
        &mut self,
        time: u64,
        pid: u32,
        vma: u64,
        code_address: u64,
        size: u64,
        index: u64,
        name: &[u8],
        code: &[u8],
    ) -> &mut Self {
        let mut body = Self {
            bytes: Vec::new(),
            big_endian: self.big_endian,
        };
        body.u32(pid);
        body.u32(pid);
        for word in [vma, code_address, size, index] {
            body.u64(word);
        }
        body.bytes.extend_from_slice(name);
        body.bytes.push(0);
        body.bytes.extend_from_slice(code);
        let body = body.bytes;
        self.record(0, time, &body)
    }

    /// MOVE.
    pub(crate) fn moved(
        &mut self,
        time: u64,
        pid: u32,
        from: u64,
        to: u64,
        size: u64,
        index: u64,
    ) -> &mut Self {
        let mut body = Self {
            bytes: Vec::new(),
            big_endian: self.big_endian,
        };
        body.u32(pid);
        body.u32(pid);
        for word in [to, from, to, size, index] {
            body.u64(word);
        }
        let body = body.bytes;
        self.record(1, time, &body)
    }

    /// DEBUG_INFO with `(address, line, column, name)`; `padding` bytes behind the entries.
    pub(crate) fn debug_info(
        &mut self,
        address: u64,
        entries: &[(u64, u32, u32, &[u8])],
        padding: usize,
    ) -> &mut Self {
        let mut body = Self {
            bytes: Vec::new(),
            big_endian: self.big_endian,
        };
        body.u64(address);
        body.u64(entries.len() as u64);
        for (at, line, column, name) in entries {
            body.u64(*at);
            body.u32(*line);
            body.u32(*column);
            body.bytes.extend_from_slice(name);
            body.bytes.push(0);
        }
        body.bytes.resize(body.bytes.len() + padding, 0);
        let body = body.bytes;
        self.record(2, 0, &body)
    }

    /// UNWINDING_INFO with its data as it stands.
    pub(crate) fn unwinding(
        &mut self,
        header_size: u64,
        mapped_size: u64,
        data: &[u8],
    ) -> &mut Self {
        let mut body = Self {
            bytes: Vec::new(),
            big_endian: self.big_endian,
        };
        for word in [data.len() as u64, header_size, mapped_size] {
            body.u64(word);
        }
        body.bytes.extend_from_slice(data);
        body.bytes.resize(body.bytes.len().next_multiple_of(8), 0);
        let body = body.bytes;
        self.record(4, 0, &body)
    }

    /// CLOSE.
    pub(crate) fn close(&mut self, time: u64) -> &mut Self {
        self.record(3, time, &[])
    }

    /// Any record.
    pub(crate) fn record(&mut self, id: u32, time: u64, body: &[u8]) -> &mut Self {
        self.u32(id);
        self.u32(16 + body.len() as u32);
        self.u64(time);
        self.bytes.extend_from_slice(body);
        self
    }

    fn u32(&mut self, value: u32) {
        let bytes = if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.bytes.extend_from_slice(&bytes);
    }

    fn u64(&mut self, value: u64) {
        let bytes = if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.bytes.extend_from_slice(&bytes);
    }
}

/// `.eh_frame` with one FDE for `size` bytes that lie `distance` bytes before the section: a CIE with
/// augmentation `zR` and pc-relative 4-byte pointers, as CPython and V8 write it.
pub(crate) fn eh_frame(distance: u64, size: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let cie: [u8; 16] = [0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 12, 7, 8];
    bytes.extend_from_slice(&(cie.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&cie);
    let fde_at = bytes.len();
    bytes.extend_from_slice(&16_u32.to_le_bytes());
    bytes.extend_from_slice(&(fde_at as u32 + 4).to_le_bytes());
    let pc_at = bytes.len() as i64;
    bytes.extend_from_slice(&((-(distance as i64) - pc_at) as i32).to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0]);
    bytes.extend_from_slice(&[0, 0, 0, 0]);
    bytes
}

/// A 20-byte `.eh_frame_hdr` with a table of one entry, or of none.
pub(crate) fn eh_frame_header(entries: u32) -> Vec<u8> {
    let mut bytes = vec![1, 0x1b, 0x03, 0x3b];
    bytes.extend_from_slice(&0_i32.to_le_bytes());
    bytes.extend_from_slice(&entries.to_le_bytes());
    bytes.resize(20, 0);
    bytes
}
