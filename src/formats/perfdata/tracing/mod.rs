//! Tracepoints as the recording describes them: names, fields, and payloads as text.
//!
//! In: the TRACING_DATA section (`trace.dat` header layout of versions 0.5 and 0.6; `util/trace-event-read.c`).
//! Out: [`Tracepoints`], which names an event by its id and prints the raw data of a sample the
//! way `perf script` does, that is as libtraceevent does without plugins: by the `print fmt` of the
//! format description where that is understood ([`expr`], [`eval`], [`print`]), else as a list of fields.
//! Where libtraceevent misreads C (`a & (b | c)`, `a ? b : c ? d : e`), the value that C gives is printed.
//! Called when a recording is opened, and for each sample when a view shows payloads.

mod eval;
mod expr;
mod field;
mod fields;
mod format;
mod keys;
mod pointer;
mod print;
mod printf;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::bytes::{Cursor, until_nul};
pub use fields::FieldAt;
use format::Tracepoint;
pub use keys::{FieldKey, FieldValue, NoField};

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Where an address of the kernel lies: name of the function and its start.
pub type Functions<'f> = dyn Fn(u64) -> Option<(String, u64)> + 'f;

/// All tracepoints that a recording describes.
#[derive(Debug, Clone, Default)]
pub struct Tracepoints {
    by_id: BTreeMap<u64, Tracepoint>,
    /// Strings of the kernel that payloads point to.
    strings: BTreeMap<u64, String>,
    /// Bytes of the kernel's `long`.
    long_size: usize,
}

/// A payload and what its text depends on.
#[derive(Clone, Copy)]
struct Context<'c> {
    data: &'c [u8],
    strings: &'c BTreeMap<u64, String>,
    functions: &'c Functions<'c>,
    long_size: usize,
}

impl Tracepoints {
    /// Reads the section as far as it makes sense.
    #[must_use]
    pub(super) fn parse(section: &[u8]) -> Self {
        let mut points = Self::default();
        // What was read before the section stopped making sense is kept.
        let _ = points.read(section);
        points
    }

    fn read(&mut self, section: &[u8]) -> Option<()> {
        let mut c = Cursor::new(section.strip_prefix(MAGIC)?);
        string(&mut c)?; // version
        let big_endian = *c.take(1)?.first()? != 0;
        if big_endian {
            return None;
        }
        self.long_size = usize::from(*c.take(1)?.first()?);
        c.u32()?; // page size
        for _ in ["header_page", "header_event"] {
            string(&mut c)?;
            sized(&mut c)?;
        }
        for _ in 0..c.u32()? {
            sized(&mut c)?; // formats of ftrace's own events
        }
        for _ in 0..c.u32()? {
            let system = String::from_utf8_lossy(string(&mut c)?);
            for _ in 0..c.u32()? {
                let text = String::from_utf8_lossy(sized(&mut c)?);
                if let Some((id, point)) = Tracepoint::parse(&system, &text, self.long_size) {
                    self.by_id.insert(id, point);
                }
            }
        }
        let kallsyms = c.u32()?;
        c.take(u64::from(kallsyms))?;
        let strings = c.u32()?;
        self.strings = kernel_strings(c.take(u64::from(strings))?);
        Some(())
    }

    /// `system:name` of an id.
    #[must_use]
    pub fn name(&self, id: u64) -> Option<String> {
        let point = self.by_id.get(&id)?;
        Some(format!("{}:{}", point.system, point.name))
    }

    /// The payload of a sample as text; `None` when the recording does not describe the tracepoint.
    #[must_use]
    pub fn render(&self, id: u64, data: &[u8], functions: &Functions<'_>) -> Option<String> {
        let point = self.by_id.get(&id)?;
        let context = Context {
            data,
            strings: &self.strings,
            functions,
            long_size: self.long_size,
        };
        let mut out = Vec::with_capacity(160);
        print::payload(point, &context, &mut out);
        // Some formats end the line themselves.
        out.pop_if(|last| *last == b'\n');
        Some(lossy(out))
    }

    /// All fields of a payload by their types, as ` NAME=VALUE` each.
    #[must_use]
    pub fn render_raw(&self, id: u64, data: &[u8]) -> Option<String> {
        let point = self.by_id.get(&id)?;
        let context = Context {
            data,
            strings: &self.strings,
            functions: &|_| None,
            long_size: self.long_size,
        };
        let mut out = Vec::with_capacity(160);
        print::fields(point, &context, &mut out);
        Some(lossy(out))
    }
}

fn lossy(text: Vec<u8>) -> String {
    match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

fn string<'b>(c: &mut Cursor<'b>) -> Option<&'b [u8]> {
    let text = until_nul(c.rest())?;
    c.take(text.len() as u64 + 1)?;
    Some(text)
}

fn sized<'b>(c: &mut Cursor<'b>) -> Option<&'b [u8]> {
    let len = c.u64()?;
    c.take(len)
}

/// Lines `0xADDRESS : "TEXT"` of the kernel's `printk_formats`.
fn kernel_strings(lines: &[u8]) -> BTreeMap<u64, String> {
    String::from_utf8_lossy(lines)
        .lines()
        .filter_map(|line| {
            let (address, text) = line.split_once(':')?;
            let address = address.trim().trim_start_matches("0x");
            let text = text.strip_prefix(' ').unwrap_or(text);
            let text = text.strip_prefix('"').unwrap_or(text);
            let text = text.strip_suffix('"').unwrap_or(text);
            let text = text.strip_suffix("\\n").unwrap_or(text);
            Some((u64::from_str_radix(address, 16).ok()?, text.to_owned()))
        })
        .collect()
}
