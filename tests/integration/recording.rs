//! Builds recordings byte by byte, in file mode and as a pipe stream, knowing nothing of the readers.
//!
//! Only what the tests need: COMM, MMAP2, FORK, LOST, THROTTLE, SAMPLE and attributes. Layouts: `tools/perf/Documentation/perf.data-file-format.txt`
//! and `include/uapi/linux/perf_event.h`.

use std::collections::BTreeMap;

pub(crate) const SAMPLE_IP: u64 = 1 << 0;
pub(crate) const SAMPLE_TID: u64 = 1 << 1;
pub(crate) const SAMPLE_TIME: u64 = 1 << 2;
pub(crate) const SAMPLE_CALLCHAIN: u64 = 1 << 5;
pub(crate) const SAMPLE_PERIOD: u64 = 1 << 8;
pub(crate) const SAMPLE_REGS_USER: u64 = 1 << 12;
pub(crate) const SAMPLE_STACK_USER: u64 = 1 << 13;
pub(crate) const SAMPLE_IDENTIFIER: u64 = 1 << 16;

/// What samples of a recording carry besides their address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stacks {
    /// Nothing.
    None,
    /// The kernel's call chain.
    Callchain,
    /// A call chain, registers and a copy of the stack.
    Dwarf,
}

/// The marker in front of the kernel part of a call chain.
pub(crate) const CONTEXT_KERNEL: u64 = 128u64.wrapping_neg();

/// The marker in front of the user part of a call chain.
pub(crate) const CONTEXT_USER: u64 = 512u64.wrapping_neg();

/// The id of the one event.
const ID: u64 = 100;

/// A recording in the making: one event, `cpu-cycles`.
pub(crate) struct Recording {
    sample_type: u64,
    records: Vec<Vec<u8>>,
    /// Sections behind the data, by the number of the feature.
    features: BTreeMap<u32, Vec<u8>>,
}

/// One sample.
pub(crate) struct Sample<'a> {
    pub(crate) ip: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    pub(crate) period: u64,
    pub(crate) chain: &'a [u64],
    /// For [`Stacks::Dwarf`].
    pub(crate) user: Option<User<'a>>,
}

/// The user half of a sample.
#[derive(Clone, Copy)]
pub(crate) struct User<'a> {
    /// In the order of the bits of [`REGISTERS`].
    pub(crate) registers: &'a [u64; 20],
    pub(crate) stack: &'a [u8],
}

/// `sample_regs_user` of x86-64: AX BX CX DX SI DI BP SP IP FLAGS CS SS, R8 to R15.
const REGISTERS: u64 = 0xff_0fff;

/// Little-endian bytes.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }
    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }
    fn u64s(&mut self, values: &[u64]) -> &mut Self {
        values.iter().fold(self, |bytes, &v| bytes.u64(v))
    }
    fn text(&mut self, text: &[u8]) -> &mut Self {
        self.0.extend(text);
        self.0.push(0);
        while !self.0.len().is_multiple_of(8) {
            self.0.push(0);
        }
        self
    }
}

impl Recording {
    pub(crate) fn new(stacks: Stacks) -> Self {
        let also = match stacks {
            Stacks::None => 0,
            Stacks::Callchain => SAMPLE_CALLCHAIN,
            Stacks::Dwarf => SAMPLE_CALLCHAIN | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
        };
        let sample_type =
            SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_IDENTIFIER | also;
        Self {
            sample_type,
            records: Vec::new(),
            features: BTreeMap::new(),
        }
    }

    fn push(&mut self, kind: u32, misc: u16, body: &Bytes) {
        let mut record = Bytes::default();
        record
            .u32(kind)
            .u16(misc)
            .u16(u16::try_from(8 + body.0.len()).expect("records are small"));
        record.0.extend(&body.0);
        self.records.push(record.0);
    }

    /// What `sample_id_all` appends to every record.
    fn sample_id(body: &mut Bytes, pid: u32, tid: u32, time: u64) {
        body.u32(pid)
            .u32(tid)
            .u64(time)
            .u64(if time == 0 { 0 } else { ID });
    }

    pub(crate) fn comm(&mut self, pid: u32, tid: u32, comm: &[u8]) {
        let mut body = Bytes::default();
        body.u32(pid).u32(tid).text(comm);
        Self::sample_id(&mut body, pid, tid, 0);
        self.push(3, 0, &body);
    }

    pub(crate) fn map(&mut self, pid: u32, start: u64, length: u64, offset: u64, file: &[u8]) {
        let mut body = Bytes::default();
        body.u32(pid)
            .u32(pid)
            .u64s(&[start, length, offset])
            .u32(8)
            .u32(1)
            .u64(0)
            .u64(0)
            .u32(5)
            .u32(2)
            .text(file);
        Self::sample_id(&mut body, pid, pid, 0);
        self.push(10, 2, &body);
    }

    /// So many events that did not fit the buffer.
    pub(crate) fn lost(&mut self, events: u64, time: u64) {
        let mut body = Bytes::default();
        body.u64s(&[ID, events]);
        Self::sample_id(&mut body, 0, 0, time);
        self.push(2, 0, &body);
    }

    /// The kernel stopped sampling for a while.
    pub(crate) fn throttled(&mut self, time: u64) {
        let mut body = Bytes::default();
        body.u64s(&[time, ID, ID]);
        Self::sample_id(&mut body, 0, 0, time);
        self.push(5, 0, &body);
    }

    pub(crate) fn sample(&mut self, sample: &Sample<'_>) {
        self.sample_in(2, sample);
    }

    /// The same in a mode of the processor: 1 is the kernel, 2 a program.
    pub(crate) fn sample_in(&mut self, mode: u16, sample: &Sample<'_>) {
        let mut body = Bytes::default();
        body.u64(ID)
            .u64(sample.ip)
            .u32(sample.pid)
            .u32(sample.tid)
            .u64(sample.time)
            .u64(sample.period);
        if self.sample_type & SAMPLE_CALLCHAIN != 0 {
            body.u64(sample.chain.len() as u64).u64s(sample.chain);
        }
        if self.sample_type & SAMPLE_REGS_USER != 0 {
            match sample.user {
                Some(user) => body.u64(2).u64s(user.registers),
                None => body.u64(0),
            };
            let stack = sample.user.map_or(&[][..], |u| u.stack);
            let padded = stack.len().next_multiple_of(8);
            body.u64(padded as u64).0.extend(stack);
            body.0.resize(body.0.len() + padded - stack.len(), 0);
            if padded > 0 {
                body.u64(stack.len() as u64);
            }
        }
        self.push(9, mode, &body);
    }

    /// `perf_event_attr`, version with 128 bytes.
    fn attributes(&self) -> Bytes {
        /// `sample_id_all`, `mmap`, `comm`, `task`, `mmap2`, `comm_exec`, `inherit`, `use_clockid`.
        const FLAGS: u64 =
            1 << 18 | 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24 | 1 << 1 | 1 << 25;
        let mut attr = Bytes::default();
        // Type (software), size, config (cpu-clock), period, sample_type, read_format (ID), flags.
        attr.u32(1)
            .u32(128)
            .u64s(&[0, 1_000_000, self.sample_type, 4, FLAGS])
            .u32(1)
            .u32(0);
        let dwarf = self.sample_type & SAMPLE_REGS_USER != 0;
        let (registers, stack) = if dwarf { (REGISTERS, 8192) } else { (0, 0) };
        // Two configs, branch filter, user registers; stack size and clock (monotonic).
        attr.u64s(&[0, 0, 0, registers]).u32(stack).u32(1);
        attr.u64s(&[0, 0, 0, 0]);
        attr
    }

    /// As `perf record -o FILE` lays it out.
    pub(crate) fn file(&self) -> Vec<u8> {
        let data: Vec<u8> = self.records.concat();
        let attr = self.attributes();
        let (ids, attrs) = (104, 112);
        let start = attrs + attr.0.len() as u64 + 16;
        let present = self.features.keys().fold(0, |bits, bit| bits | 1 << bit);
        let mut out = Bytes::default();
        out.0.extend(b"PERFILE2");
        out.u64s(&[
            104,
            attr.0.len() as u64 + 16,
            attrs,
            attr.0.len() as u64 + 16,
            start,
            data.len() as u64,
            0,
            0,
            present,
            0,
            0,
            0,
        ]);
        out.u64(ID);
        out.0.extend(&attr.0);
        out.u64s(&[ids, 8]);
        out.0.extend(&data);
        let mut at = out.0.len() + 16 * self.features.len();
        for section in self.features.values() {
            out.u64s(&[at as u64, section.len() as u64]);
            at += section.len();
        }
        self.features
            .values()
            .for_each(|section| out.0.extend(section));
        out.0
    }

    /// As `perf record -o -` writes it: attributes as a record, no sizes in the header.
    pub(crate) fn stream(&self) -> Vec<u8> {
        let mut out = Bytes::default();
        out.0.extend(b"PERFILE2");
        out.u64(16);
        let attr = self.attributes();
        out.u32(64)
            .u16(0)
            .u16(u16::try_from(8 + attr.0.len() + 8).expect("small"));
        out.0.extend(&attr.0);
        out.u64(ID);
        out.0.extend(self.records.concat());
        out.0
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}

/// An executable mapping with everything that may be told of it.
pub(crate) struct Map<'a> {
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) file: &'a [u8],
    pub(crate) build_id: Option<[u8; 20]>,
}

impl<'a> Map<'a> {
    /// One page.
    pub(crate) const fn page(time: u64, pid: u32, start: u64, file: &'a [u8]) -> Self {
        Self {
            time,
            pid,
            start,
            length: 0x1000,
            offset: 0,
            file,
            build_id: None,
        }
    }
}

impl Recording {
    /// MMAP2.
    pub(crate) fn map_at(&mut self, map: &Map<'_>) {
        let mut body = Bytes::default();
        body.u32(map.pid)
            .u32(map.pid)
            .u64s(&[map.start, map.length, map.offset]);
        match map.build_id {
            Some(id) => {
                body.u32(20);
                body.0.extend(id);
            }
            None => {
                body.u32(8).u32(1).u64s(&[0, 0]);
            }
        }
        body.u32(5).u32(2).text(map.file);
        Self::sample_id(&mut body, map.pid, map.pid, map.time);
        let misc = if map.build_id.is_some() { 1 << 14 } else { 0 };
        self.push(10, 2 | misc, &body);
    }

    /// COMM of a process that runs another program.
    pub(crate) fn exec(&mut self, pid: u32, comm: &[u8], time: u64) {
        let mut body = Bytes::default();
        body.u32(pid).u32(pid).text(comm);
        Self::sample_id(&mut body, pid, pid, time);
        self.push(3, 1 << 13, &body);
    }

    /// FORK of a process.
    pub(crate) fn fork(&mut self, pid: u32, parent: u32, time: u64) {
        let mut body = Bytes::default();
        body.u32(pid).u32(parent).u32(pid).u32(parent).u64(time);
        Self::sample_id(&mut body, parent, parent, time);
        self.push(7, 0, &body);
    }

    pub(crate) fn exit(&mut self, pid: u32, parent: u32, time: u64) {
        let mut body = Bytes::default();
        body.u32(pid).u32(parent).u32(pid).u32(parent).u64(time);
        Self::sample_id(&mut body, pid, pid, time);
        self.push(4, 0, &body);
    }

    /// The kernel's map: where its code is, and where its first symbol.
    pub(crate) fn kernel_map(&mut self, start: u64, length: u64, name: &[u8]) {
        let mut body = Bytes::default();
        body.u32(u32::MAX)
            .u32(0)
            .u64s(&[start, length, start])
            .text(name);
        Self::sample_id(&mut body, u32::MAX, 0, 0);
        self.push(1, 1, &body);
    }

    /// KSYMBOL: a BPF program that comes or goes.
    pub(crate) fn kernel_symbol(&mut self, start: u64, name: &[u8], comes: bool, time: u64) {
        let mut body = Bytes::default();
        body.u64(start)
            .u32(0x100)
            .u16(1)
            .u16(u16::from(!comes))
            .text(name);
        Self::sample_id(&mut body, 0, 0, time);
        self.push(17, 0, &body);
    }

    /// A section of text, as `HOSTNAME` (3), `OSRELEASE` (4), `CPUDESC` (8) are.
    pub(crate) fn text_feature(&mut self, feature: u32, text: &[u8]) {
        self.features.insert(feature, counted(text));
    }

    /// `SAMPLE_TIME`: of the first and the last sample.
    pub(crate) fn sample_times(&mut self, first: u64, last: u64) {
        let mut section = Bytes::default();
        section.u64s(&[first, last]);
        self.features.insert(21, section.0);
    }

    /// `CLOCK_DATA`: one moment on the wall clock and on the monotonic one.
    pub(crate) fn clock_data(&mut self, wall: u64, monotonic: u64) {
        let mut section = Bytes::default();
        section.u32(1).u32(1).u64s(&[wall, monotonic]);
        self.features.insert(29, section.0);
    }

    /// `CMDLINE`: words with a count in front.
    pub(crate) fn command_line(&mut self, words: &[&[u8]]) {
        let mut section = Bytes::default();
        section.u32(u32::try_from(words.len()).expect("few"));
        words
            .iter()
            .for_each(|word| section.0.extend(counted(word)));
        self.features.insert(11, section.0);
    }

    /// `EVENT_DESC`: the name of the event.
    pub(crate) fn name_event(&mut self, name: &[u8]) {
        let mut section = Bytes::default();
        let attr = self.attributes().0;
        section
            .u32(1)
            .u32(u32::try_from(attr.len()).expect("small"));
        section.0.extend(attr);
        section.u32(1).0.extend(counted(name));
        section.u64(ID);
        self.features.insert(12, section.0);
    }
}

/// `perf_header_string`: length, bytes, zeros up to 64.
fn counted(text: &[u8]) -> Vec<u8> {
    let length = (text.len() + 1).next_multiple_of(64);
    let mut bytes = u32::try_from(length).expect("small").to_le_bytes().to_vec();
    bytes.extend(text);
    bytes.resize(4 + length, 0);
    bytes
}
