//! Annotated functions as perf's `annotate --stdio` prints them.
//!
//! In: [`Block`]s of the `annotate` view. Called by `cli::annotate`.

use std::io::{self, Write};

use crate::code::{Block, Column, Line, Summary, Value, Versions};

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

/// Prints a block.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(block: &Block, color: bool, out: &mut dyn Write) -> io::Result<()> {
    if let Some(versions) = &block.versions {
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
        harmless(&block.file),
        block.event,
        block.samples,
        block.percent_type
    );
    writeln!(out, "{header}")?;
    writeln!(out, "{:-<1$}", "", header.chars().count() + 5)?;
    for line in &block.lines {
        write_line(block, line, width, color, out)?;
    }
    Ok(())
}

fn column_width(column: Column) -> usize {
    match column {
        Column::Percent | Column::Samples => NARROW,
        Column::Period => WIDE,
    }
}

fn write_versions(versions: &Versions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nVersions of {} in {} for {} ({} samples)\n",
        harmless(&versions.name),
        harmless(&versions.file),
        versions.event,
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

fn write_summary(summary: &Summary, color: bool, out: &mut dyn Write) -> io::Result<()> {
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

fn write_line(
    block: &Block,
    line: &Line,
    width: usize,
    color: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    match line {
        Line::Text { text, .. } if text.is_empty() => writeln!(out, " {:width$}:", ""),
        Line::Text { number, text } => {
            let number = number.map_or_else(String::new, |number| number.to_string());
            let text = expanded(&harmless_tabs(text));
            let columns = block.address_width;
            writeln!(out, " {:width$}: {number:<columns$} {text}", "")
        }
        Line::Code {
            values,
            address,
            text,
            place,
        } => {
            for value in values {
                write!(out, "{}", number(value, block.column, color))?;
            }
            let address = format!("{address:x}:");
            let blanks = (block.address_width + 1).saturating_sub(address.len());
            let line = expanded(&format!("{address}\t{}", harmless_tabs(text)));
            let (address, code) = line.split_at(address.len());
            if color {
                write!(
                    out,
                    " : {MAGENTA}  {:blanks$}{address}{NORMAL}{BLUE}{code}{NORMAL}",
                    ""
                )?;
            } else {
                write!(out, " :   {:blanks$}{address}{code}", "")?;
            }
            if let Some(place) = place {
                let (start, end) = if color { (BLUE, NORMAL) } else { ("", "") };
                write!(out, " {start}// {}{end}", harmless(place))?;
            }
            writeln!(out)
        }
    }
}

fn number(value: &Value, column: Column, color: bool) -> String {
    let text = match column {
        Column::Percent => format!("{:NARROW$.2}", value.percent),
        Column::Samples => format!("{:NARROW$}", value.number),
        Column::Period => format!("{:WIDE$}", value.number),
    };
    painted(color, value.percent, &text)
}

fn painted(color: bool, percent: f64, text: &str) -> String {
    let paint = if percent >= HOT {
        RED
    } else if percent > WARM {
        GREEN
    } else {
        return text.to_owned();
    };
    if color {
        format!("{paint}{text}{NORMAL}")
    } else {
        text.to_owned()
    }
}

/// The text with everything but TABs made harmless.
fn harmless_tabs(text: &str) -> String {
    text.split('\t')
        .map(harmless)
        .collect::<Vec<_>>()
        .join("\t")
}

/// TABs as blanks up to the next eighth column.
fn expanded(text: &str) -> String {
    const TAB: usize = 8;
    if !text.contains('\t') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + TAB);
    let mut column = 0;
    for c in text.chars() {
        if c == '\t' {
            let blanks = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        } else {
            out.push(c);
            column += 1;
        }
    }
    out
}
