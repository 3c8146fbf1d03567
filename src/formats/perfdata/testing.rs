//! Builds small recordings for tests, byte by byte.
//!
//! In: events, records and samples as plain values. Out: the bytes of a file, a stream, a file whose recorder
//! was killed, or one with compressed records. Shares no code and no constants with the reader, so that
//! a mistake in a layout cannot cancel out; written from `include/uapi/linux/perf_event.h`.

#![allow(dead_code, missing_docs, reason = "each test uses its own part")]

use std::collections::BTreeMap;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// An event to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct TestEvent {
    pub(crate) type_: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) regs_user: u64,
    pub(crate) regs_intr: u64,
    pub(crate) stack_user: u32,
    pub(crate) clockid: i32,
    pub(crate) ids: Vec<u64>,
    /// Size of the attribute in the file.
    pub(crate) attr_size: u32,
    pub(crate) name: &'static str,
}

pub(crate) const IP: u64 = 1;
pub(crate) const TID: u64 = 2;
pub(crate) const TIME: u64 = 4;
pub(crate) const ADDR: u64 = 8;
pub(crate) const READ: u64 = 0x10;
pub(crate) const CALLCHAIN: u64 = 0x20;
pub(crate) const ID: u64 = 0x40;
pub(crate) const CPU: u64 = 0x80;
pub(crate) const PERIOD: u64 = 0x100;
pub(crate) const STREAM_ID: u64 = 0x200;
pub(crate) const RAW: u64 = 0x400;
pub(crate) const BRANCH_STACK: u64 = 0x800;
pub(crate) const REGS_USER: u64 = 0x1000;
pub(crate) const STACK_USER: u64 = 0x2000;
pub(crate) const WEIGHT: u64 = 0x4000;
pub(crate) const DATA_SRC: u64 = 0x8000;
pub(crate) const IDENTIFIER: u64 = 0x1_0000;
pub(crate) const TRANSACTION: u64 = 0x2_0000;
pub(crate) const REGS_INTR: u64 = 0x4_0000;
pub(crate) const PHYS_ADDR: u64 = 0x8_0000;
pub(crate) const AUX: u64 = 0x10_0000;
pub(crate) const CGROUP: u64 = 0x20_0000;
pub(crate) const DATA_PAGE_SIZE: u64 = 0x40_0000;
pub(crate) const CODE_PAGE_SIZE: u64 = 0x80_0000;
pub(crate) const WEIGHT_STRUCT: u64 = 0x100_0000;

/// Flag bit: other records end with time and thread.
pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;

impl Default for TestEvent {
    /// `cpu-clock` as `perf record -c 1000` opens it.
    fn default() -> Self {
        Self {
            type_: 1,
            config: 0,
            sample_period: 1000,
            sample_type: IP | TID | TIME,
            read_format: 0,
            flags: SAMPLE_ID_ALL,
            branch_sample_type: 0,
            regs_user: 0,
            regs_intr: 0,
            stack_user: 0,
            clockid: 0,
            ids: vec![],
            attr_size: 128,
            name: "",
        }
    }
}

/// What a sample says; fields that its event does not ask for are not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TestSample {
    pub(crate) misc: u16,
    pub(crate) ip: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    pub(crate) addr: u64,
    pub(crate) id: u64,
    pub(crate) stream_id: u64,
    pub(crate) cpu: u32,
    pub(crate) period: u64,
    /// (value, id, lost) of the counters.
    pub(crate) read: Vec<(u64, u64, u64)>,
    pub(crate) callchain: Vec<u64>,
    pub(crate) raw: Vec<u8>,
    pub(crate) hw_idx: u64,
    pub(crate) branches: Vec<[u64; 3]>,
    pub(crate) user_abi: u64,
    pub(crate) user_regs: Vec<u64>,
    pub(crate) stack: Vec<u8>,
    pub(crate) stack_copied: u64,
    pub(crate) weight: u64,
    pub(crate) data_src: u64,
    pub(crate) transaction: u64,
    pub(crate) intr_abi: u64,
    pub(crate) intr_regs: Vec<u64>,
    pub(crate) phys_addr: u64,
    pub(crate) cgroup: u64,
    pub(crate) data_page_size: u64,
    pub(crate) code_page_size: u64,
    pub(crate) aux: Vec<u8>,
}

/// A recording under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestRecording {
    pub(crate) events: Vec<TestEvent>,
    /// All records, one after the other.
    pub(crate) data: Vec<u8>,
    /// Where each record ends in `data`.
    pub(crate) ends: Vec<usize>,
    features: BTreeMap<u32, Vec<u8>>,
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn pad8(out: &mut Vec<u8>) {
    while !out.len().is_multiple_of(8) {
        out.push(0);
    }
}

/// A frame of Zstandard with `piece` over and over, `blocks` times 128 KB of it in 15 bytes each.
pub(crate) fn over_and_over(piece: &[u8], blocks: usize) -> Vec<u8> {
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    let block = |out: &mut Vec<u8>, kind: usize, content: &[u8]| {
        let head = content.len() << 3 | kind << 1;
        out.extend(&(head as u32).to_le_bytes()[..3]);
        out.extend(content);
    };
    block(&mut out, 0, piece);
    // No literals, one sequence, each code by itself: 0 literals, the distance, 65539 bytes and more.
    let value = piece.len() as u64 + 3;
    let code = value.ilog2();
    let mut content = vec![0, 1, 0x54, 0, code as u8, 52];
    let bits = 1 << (code + 16) | (value - (1 << code)) << 16 | (131_072 - 65_539);
    let len = (code as usize + 17).div_ceil(8);
    content.extend(&bits.to_le_bytes()[..len]);
    for _ in 0..blocks {
        block(&mut out, 2, &content);
    }
    out
}

/// A string as feature sections hold it.
pub(crate) fn feature_string(text: &str) -> Vec<u8> {
    let padded = (text.len() + 1).div_ceil(64) * 64;
    let mut out = u32::to_le_bytes(padded as u32).to_vec();
    out.extend_from_slice(text.as_bytes());
    out.resize(4 + padded, 0);
    out
}

impl TestRecording {
    pub(crate) fn new(events: Vec<TestEvent>) -> Self {
        Self {
            events,
            ..Self::default()
        }
    }

    /// One default event.
    pub(crate) fn simple() -> Self {
        Self::new(vec![TestEvent::default()])
    }

    pub(crate) fn feature(&mut self, number: u32, section: Vec<u8>) -> &mut Self {
        self.features.insert(number, section);
        self
    }

    /// A record of any type; `body` is what follows the header.
    pub(crate) fn record(&mut self, type_: u32, misc: u16, body: &[u8]) -> &mut Self {
        put32(&mut self.data, type_);
        self.data.extend_from_slice(&misc.to_le_bytes());
        let size = u16::try_from(8 + body.len()).expect("a record fits into 64 KiB");
        self.data.extend_from_slice(&size.to_le_bytes());
        self.data.extend_from_slice(body);
        self.ends.push(self.data.len());
        self
    }

    /// A kernel record with its trailer of time and thread.
    pub(crate) fn kernel_record(
        &mut self,
        type_: u32,
        misc: u16,
        body: &[u8],
        time: u64,
    ) -> &mut Self {
        let event = self.events[0].clone();
        let mut body = body.to_vec();
        pad8(&mut body);
        if event.flags & SAMPLE_ID_ALL != 0 {
            let id = event.ids.first().copied().unwrap_or(0);
            // pid, tid; time; id; stream id; cpu; identifier
            for (bit, word) in [
                (TID, 7 << 32 | 7),
                (TIME, time),
                (ID, id),
                (STREAM_ID, id),
                (CPU, 0),
                (IDENTIFIER, id),
            ] {
                if event.sample_type & bit != 0 {
                    put64(&mut body, word);
                }
            }
        }
        self.record(type_, misc, &body)
    }

    pub(crate) fn finished_round(&mut self) -> &mut Self {
        self.record(68, 0, &[])
    }

    pub(crate) fn comm(&mut self, pid: u32, tid: u32, comm: &str, time: u64) -> &mut Self {
        let mut body = vec![];
        put32(&mut body, pid);
        put32(&mut body, tid);
        body.extend_from_slice(comm.as_bytes());
        body.push(0);
        self.kernel_record(3, 0, &body, time)
    }

    /// FORK (7) or EXIT (4).
    pub(crate) fn task(&mut self, type_: u32, misc: u16, ids: [u32; 4], time: u64) -> &mut Self {
        let mut body = vec![];
        ids.iter().for_each(|id| put32(&mut body, *id));
        put64(&mut body, time);
        self.kernel_record(type_, misc, &body, time)
    }

    /// MMAP2 of an executable file mapping, user mode.
    pub(crate) fn mmap2(
        &mut self,
        pid: u32,
        start: u64,
        len: u64,
        pgoff: u64,
        name: &str,
        time: u64,
    ) -> &mut Self {
        let mut body = vec![];
        put32(&mut body, pid);
        put32(&mut body, pid);
        [start, len, pgoff]
            .iter()
            .for_each(|word| put64(&mut body, *word));
        put32(&mut body, 8);
        put32(&mut body, 1);
        put64(&mut body, 4242);
        put64(&mut body, 0);
        put32(&mut body, 5); // read, execute
        put32(&mut body, 2); // private
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        self.kernel_record(10, 2, &body, time)
    }

    /// A sample of event number `event`.
    pub(crate) fn sample(&mut self, event: usize, sample: &TestSample) -> &mut Self {
        let body = sample_body(&self.events[event], sample);
        self.record(9, sample.misc, &body)
    }

    /// The attribute of an event, cut or filled up to its size.
    fn attr(event: &TestEvent) -> Vec<u8> {
        let mut a = vec![];
        put32(&mut a, event.type_);
        put32(&mut a, event.attr_size);
        for word in [
            event.config,
            event.sample_period,
            event.sample_type,
            event.read_format,
            event.flags,
        ] {
            put64(&mut a, word);
        }
        put32(&mut a, 0); // wakeup
        put32(&mut a, 0); // bp_type
        put64(&mut a, 0); // config1
        put64(&mut a, 0); // config2
        put64(&mut a, event.branch_sample_type);
        put64(&mut a, event.regs_user);
        put32(&mut a, event.stack_user);
        a.extend_from_slice(&event.clockid.to_le_bytes());
        put64(&mut a, event.regs_intr);
        a.resize(event.attr_size as usize, 0);
        a
    }

    fn event_desc(&self) -> Vec<u8> {
        let mut out = vec![];
        put32(&mut out, self.events.len() as u32);
        put32(&mut out, self.events[0].attr_size);
        for event in &self.events {
            out.extend(Self::attr(event));
            put32(&mut out, event.ids.len() as u32);
            out.extend(feature_string(event.name));
            event.ids.iter().for_each(|id| put64(&mut out, *id));
        }
        out
    }

    /// Everything up to the records: header, ids, attributes. Returns where the records begin.
    fn front(&self, data_size: u64, features: [u64; 4]) -> Vec<u8> {
        let attr_size = u64::from(self.events[0].attr_size) + 16;
        let ids: usize = self.events.iter().map(|e| e.ids.len() * 8).sum();
        let attrs_at = 104 + ids as u64;
        let attrs_len = attr_size * self.events.len() as u64;
        let mut out = b"PERFILE2".to_vec();
        for word in [
            104,
            attr_size,
            attrs_at,
            attrs_len,
            attrs_at + attrs_len,
            data_size,
            0,
            0,
        ] {
            put64(&mut out, word);
        }
        features.iter().for_each(|word| put64(&mut out, *word));
        assert_eq!(out.len(), 104);
        for event in &self.events {
            event.ids.iter().for_each(|id| put64(&mut out, *id));
        }
        let mut ids_at = 104;
        for event in &self.events {
            out.extend(Self::attr(event));
            put64(&mut out, ids_at);
            put64(&mut out, event.ids.len() as u64 * 8);
            ids_at += event.ids.len() as u64 * 8;
        }
        out
    }

    /// Offset of the first record in [`Self::file`].
    pub(crate) fn data_offset(&self) -> usize {
        self.front(0, [0; 4]).len()
    }

    /// The recording as `perf record -o FILE` writes it.
    pub(crate) fn file(&self) -> Vec<u8> {
        self.file_with(&self.data)
    }

    fn file_with(&self, data: &[u8]) -> Vec<u8> {
        let mut features = self.features.clone();
        if self.events.iter().any(|e| !e.name.is_empty()) {
            features.insert(12, self.event_desc());
        }
        let mut bits = [0u64; 4];
        for number in features.keys() {
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        let mut out = self.front(data.len() as u64, bits);
        out.extend_from_slice(data);
        let mut at = out.len() as u64 + 16 * features.len() as u64;
        for section in features.values() {
            put64(&mut out, at);
            put64(&mut out, section.len() as u64);
            at += section.len() as u64;
        }
        features
            .values()
            .for_each(|section| out.extend_from_slice(section));
        out
    }

    /// The file as a killed `perf record` leaves it.
    pub(crate) fn unclosed_file(&self) -> Vec<u8> {
        let mut out = self.front(0, [0b1_1111_1100, 0, 0, 0]);
        out.extend_from_slice(&self.data);
        out
    }

    /// The recording as `perf record -o -` writes it.
    pub(crate) fn stream(&self) -> Vec<u8> {
        let mut head = Self::default();
        for event in &self.events {
            let mut body = Self::attr(event);
            event.ids.iter().for_each(|id| put64(&mut body, *id));
            head.record(64, 0, &body);
        }
        let mut features = self.features.clone();
        if self.events.iter().any(|e| !e.name.is_empty()) {
            features.insert(12, self.event_desc());
        }
        for (number, section) in features {
            let mut body = u64::from(number).to_le_bytes().to_vec();
            body.extend(section);
            head.record(80, 0, &body);
        }
        let mut out = b"PERFILE2".to_vec();
        put64(&mut out, 16);
        out.extend(head.data);
        out.extend_from_slice(&self.data);
        out
    }

    /// The records packed into COMPRESSED (`two`: COMPRESSED2) records, `piece` bytes of plain records in
    /// each, so that records are split between them.
    pub(crate) fn compressed_data(&self, piece: usize, two: bool) -> Vec<u8> {
        let mut packed = Self::default();
        for plain in self.data.chunks(piece) {
            let payload = compress_to_vec(plain, CompressionLevel::Fastest);
            if two {
                let mut body = (payload.len() as u64).to_le_bytes().to_vec();
                body.extend_from_slice(&payload);
                pad8(&mut body);
                packed.record(83, 0, &body);
            } else {
                packed.record(81, 0, &payload);
            }
        }
        packed.data
    }

    /// A file as `perf record -z` writes it.
    pub(crate) fn compressed_file(&self, piece: usize, two: bool) -> Vec<u8> {
        let mut described = self.clone();
        // Version, zstd, level, ratio, size of the ring buffer.
        let compressed = [1u32, 1, 1, 8, 1 << 20].map(u32::to_le_bytes).concat();
        described.feature(27, compressed);
        described.file_with(&self.compressed_data(piece, two))
    }

    /// A stream as `perf record -z -o -` writes it.
    pub(crate) fn compressed_stream(&self, piece: usize) -> Vec<u8> {
        let mut packed = self.clone();
        packed.data = self.compressed_data(piece, true);
        packed.stream()
    }
}

/// The body of a SAMPLE record.
fn sample_body(event: &TestEvent, s: &TestSample) -> Vec<u8> {
    let mut out = vec![];
    let has = |bit| event.sample_type & bit != 0;
    let front = [
        (IDENTIFIER, s.id),
        (IP, s.ip),
        (TID, u64::from(s.tid) << 32 | u64::from(s.pid)),
        (TIME, s.time),
        (ADDR, s.addr),
        (ID, s.id),
        (STREAM_ID, s.stream_id),
        (CPU, u64::from(s.cpu)),
        (PERIOD, s.period),
    ];
    for (bit, word) in front {
        if has(bit) {
            put64(&mut out, word);
        }
    }
    if has(READ) {
        put_read(&mut out, event.read_format, &s.read);
    }
    if has(CALLCHAIN) {
        put64(&mut out, s.callchain.len() as u64);
        s.callchain.iter().for_each(|ip| put64(&mut out, *ip));
    }
    if has(RAW) {
        put32(&mut out, s.raw.len() as u32);
        out.extend_from_slice(&s.raw);
        pad8(&mut out);
    }
    if has(BRANCH_STACK) {
        put64(&mut out, s.branches.len() as u64);
        if event.branch_sample_type & (1 << 17) != 0 {
            put64(&mut out, s.hw_idx);
        }
        s.branches
            .iter()
            .flatten()
            .for_each(|word| put64(&mut out, *word));
        if event.branch_sample_type & (1 << 19) != 0 {
            s.branches.iter().for_each(|_| put64(&mut out, 1));
        }
    }
    if has(REGS_USER) {
        put_regs(&mut out, s.user_abi, &s.user_regs);
    }
    if has(STACK_USER) {
        put64(&mut out, s.stack.len() as u64);
        if !s.stack.is_empty() {
            out.extend_from_slice(&s.stack);
            put64(&mut out, s.stack_copied);
        }
    }
    if has(WEIGHT) || has(WEIGHT_STRUCT) {
        put64(&mut out, s.weight);
    }
    for (bit, word) in [(DATA_SRC, s.data_src), (TRANSACTION, s.transaction)] {
        if has(bit) {
            put64(&mut out, word);
        }
    }
    if has(REGS_INTR) {
        put_regs(&mut out, s.intr_abi, &s.intr_regs);
    }
    let back = [
        (PHYS_ADDR, s.phys_addr),
        (CGROUP, s.cgroup),
        (DATA_PAGE_SIZE, s.data_page_size),
        (CODE_PAGE_SIZE, s.code_page_size),
    ];
    for (bit, word) in back {
        if has(bit) {
            put64(&mut out, word);
        }
    }
    if has(AUX) {
        put64(&mut out, s.aux.len() as u64);
        out.extend_from_slice(&s.aux);
    }
    out
}

fn put_regs(out: &mut Vec<u8>, abi: u64, regs: &[u64]) {
    put64(out, abi);
    if abi != 0 {
        regs.iter().for_each(|reg| put64(out, *reg));
    }
}

/// Counter values as `read_format` orders them.
fn put_read(out: &mut Vec<u8>, format: u64, counters: &[(u64, u64, u64)]) {
    let (enabled, running, id, group, lost) = (
        format & 1 != 0,
        format & 2 != 0,
        format & 4 != 0,
        format & 8 != 0,
        format & 16 != 0,
    );
    let times = |out: &mut Vec<u8>| {
        if enabled {
            put64(out, 111);
        }
        if running {
            put64(out, 222);
        }
    };
    if group {
        put64(out, counters.len() as u64);
        times(out);
    }
    for (value, counter, lost_count) in counters {
        put64(out, *value);
        if !group {
            times(out);
        }
        if id {
            put64(out, *counter);
        }
        if lost {
            put64(out, *lost_count);
        }
    }
}
