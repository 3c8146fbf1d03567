//! Annotated functions as perf's `annotate --stdio` prints them.
//!
//! In: [`Block`]s of the `annotate` view. Called by `cli::annotate`.

use std::io::{self, Write};

use crate::code::{Block, Column, Line, Plan, Summary, Value, Versions};
use crate::parallel::write_in_parallel;

use super::text::harmless;

/// Columns of one number.
const NARROW: usize = 8;
const WIDE: usize = 12;
/// Per cent from which on a line is hot, and above which it is warm.
const HOT: f64 = 5.0;
const WARM: f64 = 0.5;
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BLUE: &str = "\x1b[34m";
const MAGENTA: &str = "\x1b[35m";
const NORMAL: &str = "\x1b[m";

/// Blocks that may wait for the one before them.
const AHEAD: usize = 64;

/// Prints all blocks, made on some threads.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(plan: &Plan<'_>, color: bool, threads: usize, out: &mut dyn Write) -> io::Result<()> {
    for first in (0..plan.len()).step_by(AHEAD) {
        let count = AHEAD.min(plan.len() - first);
        let push = |(): &mut (), number: usize, text: &mut Vec<u8>| {
            push_block(&plan.block(first + number), color, text)
        };
        write_in_parallel(count, threads, || (), push, out)?;
    }
    Ok(())
}

fn push_block(block: &Block<'_>, color: bool, out: &mut Vec<u8>) -> io::Result<()> {
    if let Some(versions) = block.versions {
        write_versions(versions, out)?;
    }
    if let Some(summary) = &block.summary {
        write_summary(summary, color, out)?;
    }
    let width = block.columns * column_width(block.column);
    let title = match block.column {
        Column::Percent => "Percent",
        Column::Samples => "Samples",
        Column::Period => "Period",
    };
    let header = format!(
        " {title:<width$}|\tSource code & Disassembly of {} for {} ({} samples, percent: {})",
        harmless(block.file),
        harmless(block.event),
        block.samples,
        block.percent_type
    );
    writeln!(out, "{header}")?;
    writeln!(out, "{:-<1$}", "", header.chars().count() + 5)?;
    for line in &block.lines {
        push_line(block, line, width, color, out)?;
    }
    Ok(())
}

fn column_width(column: Column) -> usize {
    match column {
        Column::Percent | Column::Samples => NARROW,
        Column::Period => WIDE,
    }
}

fn write_versions(versions: &Versions, out: &mut Vec<u8>) -> io::Result<()> {
    writeln!(
        out,
        "\nVersions of {} in {} for {} ({} samples)\n",
        harmless(&versions.name),
        harmless(&versions.file),
        harmless(&versions.event),
        versions.samples
    )?;
    let columns = " version    share  samples     bytes             address           first            last  tier";
    writeln!(out, "{columns}")?;
    for row in &versions.rows {
        let bytes = row
            .bytes
            .map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
        let address = row
            .address
            .map_or_else(|| "-".to_owned(), |at| format!("{at:#x}"));
        let first = if row.first == 0 {
            "the beginning".to_owned()
        } else {
            seconds(row.first)
        };
        let last = row.last.map_or_else(|| "the end".to_owned(), seconds);
        let line = format!(
            "{:8}  {:6.2}% {:8}  {bytes:>8}  {address:>18}  {first:>14}  {last:>14}  {}",
            row.number, row.share, row.samples, row.tier
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out)
}

fn seconds(ns: u64) -> String {
    format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}

fn write_summary(summary: &Summary, color: bool, out: &mut Vec<u8>) -> io::Result<()> {
    writeln!(out, "\nSorted summary for file {}", harmless(&summary.path))?;
    writeln!(out, "----------------------------------------------\n")?;
    if summary.rows.is_empty() {
        return writeln!(out, " Nothing higher than {WARM}%");
    }
    for (percent, place) in &summary.rows {
        let number = painted(color, *percent, &format!(" {percent:7.2} "));
        writeln!(out, "{number}{}", harmless(place))?;
    }
    Ok(())
}

fn push_line(
    block: &Block<'_>,
    line: &Line<'_>,
    width: usize,
    color: bool,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    match line {
        Line::Text { text, .. } if text.is_empty() => writeln!(out, " {:width$}:", "")?,
        Line::Text { number, text } => {
            let columns = block.address_width;
            write!(out, " {:width$}: ", "")?;
            match number {
                Some(number) => write!(out, "{number:<columns$} ")?,
                None => write!(out, "{:columns$} ", "")?,
            }
            push_expanded(text, 0, out);
            out.push(b'\n');
        }
        Line::Code {
            values,
            address,
            text,
            place,
        } => {
            for value in values {
                push_number(value, block.column, color, out)?;
            }
            push_code(*address, block.address_width, text, color, out);
            if let Some(place) = place {
                let (start, end) = if color { (BLUE, NORMAL) } else { ("", "") };
                write!(out, " {start}// {}{end}", harmless(place))?;
            }
            out.push(b'\n');
        }
    }
    Ok(())
}

/// An address, and the instruction there.
fn push_code(address: u64, width: usize, text: &str, color: bool, out: &mut Vec<u8>) {
    let paint = |color_of: &str, into: &mut Vec<u8>| {
        if color {
            into.extend_from_slice(color_of.as_bytes());
        }
    };
    out.extend_from_slice(b" : ");
    paint(MAGENTA, out);
    out.extend_from_slice(b"  ");
    let digits = hex_digits(address);
    out.resize(out.len() + width.saturating_sub(digits), b' ');
    push_hex(address, digits, out);
    out.push(b':');
    paint(NORMAL, out);
    paint(BLUE, out);
    push_blanks(digits + 1, out);
    push_expanded(text, next_stop(digits + 1), out);
    paint(NORMAL, out);
}

fn hex_digits(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(4) as usize
}

fn push_hex(number: u64, digits: usize, out: &mut Vec<u8>) {
    let digit = |at: usize| b"0123456789abcdef"[(number >> (4 * at) & 15) as usize];
    out.extend((0..digits).rev().map(digit));
}

fn push_number(value: &Value, column: Column, color: bool, out: &mut Vec<u8>) -> io::Result<()> {
    let paint = paint_of(color, value.percent);
    out.extend_from_slice(paint.unwrap_or_default().as_bytes());
    match column {
        // Most instructions have no samples.
        Column::Percent if value.percent == 0.0 => out.extend_from_slice(b"    0.00"),
        Column::Percent => write!(out, "{:NARROW$.2}", value.percent)?,
        Column::Samples => write!(out, "{:NARROW$}", value.number)?,
        Column::Period => write!(out, "{:WIDE$}", value.number)?,
    }
    out.extend_from_slice(paint.map_or("", |_| NORMAL).as_bytes());
    Ok(())
}

fn painted(color: bool, percent: f64, text: &str) -> String {
    match paint_of(color, percent) {
        Some(paint) => format!("{paint}{text}{NORMAL}"),
        None => text.to_owned(),
    }
}

fn paint_of(color: bool, percent: f64) -> Option<&'static str> {
    match percent {
        _ if !color => None,
        hot if hot >= HOT => Some(RED),
        warm if warm > WARM => Some(GREEN),
        _ => None,
    }
}

const TAB: usize = 8;

/// The column that a TAB leads to.
fn next_stop(column: usize) -> usize {
    column + TAB - column % TAB
}

fn push_blanks(column: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + next_stop(column) - column, b' ');
}

/// The text from a column on, made harmless, with TABs as blanks up to the next eighth column.
fn push_expanded(text: &str, mut column: usize, out: &mut Vec<u8>) {
    for (number, part) in text.split('\t').enumerate() {
        if number > 0 {
            push_blanks(column, out);
            column = next_stop(column);
        }
        let part = harmless(part);
        out.extend_from_slice(part.as_bytes());
        column += if part.is_ascii() {
            part.len()
        } else {
            part.chars().count()
        };
    }
}
