//! Recordings whose attribute, records and features are what a target wants them to be.

use crate::{FILE_LENGTH, FILE_START, PID, STACK};

/// Numbers of feature sections (`tools/perf/util/header.h`).
pub const TRACING_DATA: u32 = 1;
/// See [`TRACING_DATA`].
pub const ARCH: u32 = 6;

/// The parts of `perf_event_attr` that decide how records are read.
#[derive(Default)]
pub struct Attributes {
    /// `PERF_TYPE_*`
    pub kind: u32,
    /// What is counted.
    pub config: u64,
    /// `PERF_SAMPLE_*`
    pub sample_type: u64,
    /// `PERF_FORMAT_*`
    pub read_format: u64,
    /// `PERF_SAMPLE_BRANCH_*`
    pub branch_sample_type: u64,
    /// Registers of samples.
    pub sample_regs_user: u64,
    /// Registers of samples.
    pub sample_regs_intr: u64,
}

/// A file of one event: `records` as they are, and feature sections.
pub fn file(attributes: &Attributes, records: &[u8], features: &[(u32, Vec<u8>)]) -> Vec<u8> {
    const ATTR_SIZE: u64 = 128;
    let (attrs, data) = (104, 104 + ATTR_SIZE + 16);
    let mut out = b"PERFILE2".to_vec();
    let mut put = |values: &[u64]| values.iter().for_each(|v| out.extend(v.to_le_bytes()));
    put(&[
        104,
        ATTR_SIZE + 16,
        attrs,
        ATTR_SIZE + 16,
        data,
        records.len() as u64,
        0,
        0,
    ]);
    let bits = features
        .iter()
        .fold(0, |bits, (id, _)| bits | 1u64 << (id & 63));
    put(&[bits, 0, 0, 0]);
    // sample_id_all, mmap, comm, mmap2
    let flags = 1 << 18 | 1 << 8 | 1 << 9 | 1 << 23;
    put(&[
        u64::from(attributes.kind) | ATTR_SIZE << 32,
        attributes.config,
        1000,
    ]);
    put(&[
        attributes.sample_type,
        attributes.read_format,
        flags,
        0,
        0,
        0,
    ]);
    put(&[attributes.branch_sample_type, attributes.sample_regs_user]);
    put(&[8192 | 1 << 32, attributes.sample_regs_intr, 0, 0, 0]);
    put(&[0, 0]);
    out.extend(records);
    let mut features: Vec<_> = features.iter().collect();
    features.sort_by_key(|(id, _)| id & 63);
    features.dedup_by_key(|(id, _)| *id & 63);
    let mut at = out.len() as u64 + 16 * features.len() as u64;
    for (_, section) in &features {
        out.extend(at.to_le_bytes());
        out.extend((section.len() as u64).to_le_bytes());
        at += section.len() as u64;
    }
    features.iter().for_each(|(_, section)| out.extend(section));
    out
}

/// One record; `None` if it would be too long.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Option<Vec<u8>> {
    let size = u16::try_from(body.len().next_multiple_of(8) + 8).ok()?;
    let mut out = kind.to_le_bytes().to_vec();
    out.extend(misc.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(body);
    out.resize(usize::from(size), 0);
    Some(out)
}

/// MMAP of `/fuzzed`, without the `sample_id_all` part: readers take what is missing as unknown.
pub fn mapping() -> Vec<u8> {
    let mut body = PID.to_le_bytes().to_vec();
    body.extend(PID.to_le_bytes());
    [FILE_START, FILE_LENGTH, 0]
        .iter()
        .for_each(|v| body.extend(v.to_le_bytes()));
    body.extend(b"/fuzzed\0");
    body.extend([0; 40]);
    record(1, 2, &body).expect("it is short")
}

/// A recording of an aarch64 machine: a sample at each address of `ips`, with `stack`.
pub fn aarch64(ips: impl Iterator<Item = u64>, stack: &[u8]) -> Vec<u8> {
    /// IP, TID, TIME, REGS_USER, STACK_USER
    const SAMPLE: u64 = 1 | 2 | 4 | 1 << 12 | 1 << 13;
    let attributes = Attributes {
        kind: 1,
        sample_type: SAMPLE,
        sample_regs_user: (1 << 33) - 1,
        ..Attributes::default()
    };
    let low = STACK - stack.len() as u64;
    let mut records = mapping();
    for ip in ips {
        let mut body = Vec::new();
        let mut put = |v: u64| body.extend(v.to_le_bytes());
        put(ip);
        put(u64::from(PID) | u64::from(PID) << 32);
        put(1_000_000);
        put(2);
        (0..29).for_each(|n| put(low + n * 16));
        [
            low + stack.len() as u64 / 2 / 16 * 16,
            FILE_START + 0x1234,
            low,
            ip,
        ]
        .into_iter()
        .for_each(&mut put);
        put(stack.len() as u64);
        body.extend(stack);
        body.extend((stack.len() as u64).to_le_bytes());
        records.extend(record(9, 2, &body).expect("it is short"));
    }
    file(&attributes, &records, &[(ARCH, text(b"aarch64"))])
}

/// A string as header sections have it.
pub fn text(text: &[u8]) -> Vec<u8> {
    let mut out = (text.len() as u32 + 1).to_le_bytes().to_vec();
    out.extend(text);
    out.push(0);
    out
}

/// Splits bytes into parts, each behind its length (two bytes); the last takes what is left.
pub fn parts(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        bytes = rest;
        Some(part)
    })
}
