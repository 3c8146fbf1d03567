//! Names of tracepoints, from the formats that a recording carries.
//!
//! In: the TRACING_DATA section (`Documentation/trace-cmd`'s file format, version 0.5 or 0.6). Out: id →
//! `system:name`. Only needed when no event description names the event.

use std::collections::BTreeMap;

use super::bytes::{Cursor, until_nul};

/// Tracepoint id → `system:name`.
pub(super) type Tracepoints = BTreeMap<u64, String>;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The names that the section gives; none if it makes no sense.
pub(super) fn names(section: &[u8]) -> Tracepoints {
    let mut names = BTreeMap::new();
    // What was read before the section stopped making sense is kept.
    let _ = read(section, &mut names);
    names
}

fn read(section: &[u8], names: &mut Tracepoints) -> Option<()> {
    let mut c = Cursor::new(section.strip_prefix(MAGIC)?);
    string(&mut c)?; // version
    let big_endian = *c.take(1)?.first()? != 0;
    if big_endian {
        return None;
    }
    c.take(1)?; // size of a long
    c.u32()?; // page size
    for _ in ["header_page", "header_event"] {
        string(&mut c)?;
        sized(&mut c)?;
    }
    for _ in 0..c.u32()? {
        sized(&mut c)?; // formats of ftrace's own events
    }
    for _ in 0..c.u32()? {
        let system = string(&mut c)?;
        for _ in 0..c.u32()? {
            let format = sized(&mut c)?;
            if let Some((id, name)) = id_and_name(format) {
                names.insert(id, format!("{}:{name}", String::from_utf8_lossy(system)));
            }
        }
    }
    Some(())
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

/// The `name:` and `ID:` lines of a format file.
fn id_and_name(format: &[u8]) -> Option<(u64, String)> {
    let format = String::from_utf8_lossy(format);
    let field = |key: &str| {
        format
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .map(str::trim)
    };
    Some((field("ID:")?.parse().ok()?, field("name:")?.to_owned()))
}
