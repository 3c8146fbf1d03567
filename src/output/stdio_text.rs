//! Pieces of text in lines of a report: cut, padded, coloured.

use super::text::harmless;
use crate::report::ADDRESS_DIGITS;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const RESET: &str = "\x1b[m";

/// An address as rows show it. perf leaves the `0x` out before a zero.
pub(super) fn long_address(address: u64) -> String {
    if address == 0 {
        "0".repeat(ADDRESS_DIGITS)
    } else {
        format!("{address:#018x}")
    }
}

/// An address as chains show it.
pub(super) fn short_address(address: u64) -> String {
    if address == 0 {
        "0".to_owned()
    } else {
        format!("{address:#x}")
    }
}

pub(super) fn push_task(line: &mut Vec<u8>, id: u32, comm: &str, width: usize) {
    line.extend_from_slice(format!("{:>7}:", id.cast_signed()).as_bytes());
    match width.max(7).checked_sub(8) {
        Some(room) => push_padded(line, &harmless(comm), room),
        // perf's room is less than nothing then, which its printf takes for no end.
        None => line.extend_from_slice(harmless(comm).as_bytes()),
    }
}

/// Appends text coloured by perf's limits.
pub(super) fn push_colored(line: &mut Vec<u8>, share: f64, color: bool, text: &str) {
    let code = match share {
        _ if !color => "",
        s if s >= 5.0 => RED,
        s if s > 0.5 => GREEN,
        _ => "",
    };
    line.extend_from_slice(code.as_bytes());
    line.extend_from_slice(text.as_bytes());
    if !code.is_empty() {
        line.extend_from_slice(RESET.as_bytes());
    }
}

pub(super) fn pad(line: &mut Vec<u8>, blanks: usize) {
    line.resize(line.len() + blanks, b' ');
}

/// Appends exactly `width` bytes: text, cut or padded.
pub(super) fn push_padded(line: &mut Vec<u8>, text: &str, width: usize) {
    let start = line.len();
    push_cut(line, text, width);
    pad(line, width.saturating_sub(line.len() - start));
}

/// Appends text and fills the column.
pub(super) fn push_left(line: &mut Vec<u8>, text: &str, width: usize) {
    line.extend_from_slice(text.as_bytes());
    pad(line, width.saturating_sub(text.len()));
}

/// Appends text that ends where the column does.
pub(super) fn push_right(line: &mut Vec<u8>, text: &str, width: usize) {
    pad(line, width.saturating_sub(text.len()));
    line.extend_from_slice(text.as_bytes());
}

/// The same for no more of it than the column has room for.
pub(super) fn push_right_cut(line: &mut Vec<u8>, text: &str, width: usize) {
    let mut shown = Vec::new();
    push_cut(&mut shown, text, width);
    pad(line, width.saturating_sub(shown.len()));
    line.extend_from_slice(&shown);
}

/// Appends at most `width` bytes of text, whole characters only.
pub(super) fn push_cut(line: &mut Vec<u8>, text: &str, width: usize) {
    let mut end = text.len().min(width);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    line.extend_from_slice(&text.as_bytes()[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf("%7d:%-*.*s", …)` with less than no room.
    #[test]
    fn tasks_have_any_width() {
        let shown = |width| {
            let mut line = Vec::new();
            push_task(&mut line, 42, "worker", width);
            String::from_utf8(line).expect("text")
        };
        for (width, text) in [
            (0, "     42:worker"),
            (7, "     42:worker"),
            (8, "     42:"),
            (11, "     42:wor"),
            (16, "     42:worker  "),
        ] {
            assert_eq!(shown(width), text, "{width}");
        }
    }
}
