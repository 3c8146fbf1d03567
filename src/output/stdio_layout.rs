//! Columns of a table: how wide they are, and what stands in the cells of a row.
//!
//! In: a table of a [`Report`]. Out: lines. Knows no titles and no shape of trees.

use std::io::{self, Write};
use std::ops::Range;

use super::stdio_text::{
    long_address, pad, push_colored, push_cut, push_left, push_padded, push_right, push_right_cut,
    push_task, short_address,
};
use super::stdio_tree::{self, TreeStyle};
use super::text::{harmless, harmless_payload};
use crate::parallel::{in_parallel, write_in_parallel};
use crate::report::keys::{Cell, Counter, Heading, Key, Measured, Part, Role, Shown, Width};
use crate::report::{ADDRESS_DIGITS, Counts, Report, Row, Table, TreeMaker, percent};

/// `12.34~ ±0.56`.
const RATE_WIDTH: usize = 14;

/// Widths and texts of one table.
pub(super) struct Layout<'r, 'p> {
    pub(super) report: &'r Report<'p>,
    pub(super) table: &'r Table,
    /// The columns, without those that are other events'.
    pub(super) fields: Vec<Key>,
    /// By column.
    pub(super) widths: Vec<usize>,
}

impl<'r, 'p> Layout<'r, 'p> {
    pub(super) fn of(report: &'r Report<'p>, table: &'r Table) -> Self {
        let fields = report.fields.iter().copied();
        let fields = fields.filter(|key| key.is_of(report.profile, table));
        let mut layout = Self {
            report,
            table,
            fields: fields.collect(),
            widths: Vec::new(),
        };
        let widest = widest(&layout);
        let pairs = layout.fields.iter().zip(widest);
        layout.widths = pairs
            .map(|(key, length)| layout.width(*key, length))
            .collect();
        layout
    }

    /// What `-w` says about a column. perf counts the columns before it leaves out constant ones, and forgets the widths
    /// with `--hierarchy`.
    fn given(&self, key: Key) -> Option<usize> {
        if self.report.options.rows.hierarchy {
            return None;
        }
        let at = self
            .report
            .columns
            .fields
            .iter()
            .position(|field| *field == key)?;
        self.report
            .options
            .layout
            .column_widths
            .get(at)
            .copied()
            .filter(|width| *width > 0)
    }

    fn width(&self, key: Key, widest: usize) -> usize {
        let given = self.given(key);
        let name = self.column_name(key).len();
        match &key.descriptor().role {
            Role::Counter(counter) => {
                let members = self.table.events.len();
                let group = if members > 1 {
                    members * counter.width
                } else {
                    0
                };
                given.unwrap_or(counter.width).max(group).max(name)
            }
            Role::Rate => given.unwrap_or(RATE_WIDTH).max(name),
            Role::Part(_) => given.unwrap_or(widest.max(name)),
        }
    }

    pub(super) fn separator(&self) -> &str {
        self.report
            .options
            .layout
            .separator
            .as_deref()
            .unwrap_or("  ")
    }

    pub(super) fn has_separator(&self) -> bool {
        self.report.options.layout.separator.is_some()
    }

    pub(super) fn column_name(&self, key: Key) -> &str {
        match key.descriptor().heading {
            Heading::Is(text) => text,
            Heading::Of(text) => text(self.report, self.table, key),
            Heading::OnRight(text) => text(self.report, key),
        }
    }

    /// Appends the name of a column as the header shows it.
    pub(super) fn push_column_name(&self, key: Key, width: usize, line: &mut Vec<u8>) {
        let name = harmless(self.column_name(key));
        if matches!(key.descriptor().heading, Heading::OnRight(_)) {
            push_right_cut(line, &name, width);
        } else if key.is_counter() {
            push_right(line, &name, width);
        } else {
            push_padded(line, &name, width);
        }
    }

    pub(super) fn write_column_names(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut line = b"# ".to_vec();
        for (i, (key, width)) in self.fields.iter().zip(&self.widths).enumerate() {
            if i > 0 {
                line.extend_from_slice(self.separator().as_bytes());
            }
            self.push_column_name(*key, *width, &mut line);
        }
        line.push(b'\n');
        if !self.has_separator() {
            line.extend_from_slice(b"# ");
            for (i, width) in self.widths.iter().enumerate() {
                if i > 0 {
                    line.extend_from_slice(b"  ");
                }
                line.resize(line.len() + width, b'.');
            }
            line.extend_from_slice(b"\n#\n");
        }
        out.write_all(&line)
    }

    pub(super) fn trees(&self) -> Option<TreeMaker<'r, 'p>> {
        self.report.has_trees.then(|| TreeMaker::new(self.report))
    }

    pub(super) fn write_rows(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.table.rows.len();
        if self.report.options.layout.threads > 1 && rows >= Self::MANY {
            return self.write_rows_in_parallel(rows, out);
        }
        self.write_some_rows(0..rows, self.trees().as_mut(), out)
    }

    /// Rows from which on threads are worth their start.
    const MANY: usize = 2048;

    /// Threads format pieces of the table; they are written in order.
    fn write_rows_in_parallel(&self, rows: usize, out: &mut dyn Write) -> io::Result<()> {
        const PIECE: usize = 128;
        let text = |trees: &mut Option<TreeMaker<'_, '_>>, piece: usize, text: &mut Vec<u8>| {
            let range = piece * PIECE..rows.min((piece + 1) * PIECE);
            self.write_some_rows(range, trees.as_mut(), text)
        };
        let threads = self.report.options.layout.threads;
        write_in_parallel(rows.div_ceil(PIECE), threads, || self.trees(), text, out)
    }

    fn write_some_rows(
        &self,
        range: Range<usize>,
        mut trees: Option<&mut TreeMaker<'_, '_>>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        for (index, row) in (range.start..).zip(&self.table.rows[range]) {
            if !self.report.is_shown(self.table, row) {
                continue;
            }
            line.clear();
            self.push_row(index, row, &mut line);
            out.write_all(&line)?;
            if let Some(trees) = &mut trees {
                self.write_tree(trees, index, row, out)?;
            }
        }
        Ok(())
    }

    /// Writes the chains below a row.
    pub(super) fn write_tree(
        &self,
        trees: &mut TreeMaker<'_, '_>,
        index: usize,
        row: &Row,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let tree = trees.tree(self.table, index);
        let counts = &row.counts;
        let value = if self.report.children {
            counts.children_period
        } else {
            counts.self_period
        };
        stdio_tree::write(&tree, &TreeStyle::of(self.report, self.table, value), out)
    }

    fn push_row(&self, index: usize, row: &Row, line: &mut Vec<u8>) {
        let fields = &self.fields;
        for (i, (key, width)) in fields.iter().zip(&self.widths).enumerate() {
            if i > 0 || !self.has_separator() {
                line.extend_from_slice(self.separator().as_bytes());
            }
            let start = line.len();
            self.push_cell(*key, index, row, *width, line);
            if i + 1 < fields.len() {
                pad(line, width.saturating_sub(line.len() - start));
            }
        }
        line.push(b'\n');
    }

    /// Appends one cell; it may be narrower than its column.
    fn push_cell(&self, key: Key, index: usize, row: &Row, width: usize, line: &mut Vec<u8>) {
        match &key.descriptor().role {
            Role::Counter(_) => self.push_counters(key, self.table.counts(index), width, line),
            Role::Rate => self.push_rate(key, row, width, line),
            Role::Part(part) => self.push_text_cell(key, part, row, width, line),
        }
    }

    /// Appends a rate with its error; nothing where there are too few samples for one.
    fn push_rate(&self, key: Key, row: &Row, width: usize, line: &mut Vec<u8>) {
        let metric = self.report.metric(key);
        let rate = self.report.rate(row, key);
        let text = metric.zip(rate).map_or_else(String::new, |(metric, rate)| {
            let (digits, mark) = (
                metric.digits(rate.value),
                if rate.is_smeared { "~" } else { "" },
            );
            format!("{:.digits$}{mark} ±{:.digits$}", rate.value, rate.error)
        });
        if !self.has_separator() {
            pad(line, width.saturating_sub(text.chars().count()));
        }
        line.extend_from_slice(text.as_bytes());
    }

    /// Appends a counter for each event of the group.
    pub(super) fn push_counters<'c>(
        &self,
        key: Key,
        counts: impl Iterator<Item = &'c Counts>,
        width: usize,
        line: &mut Vec<u8>,
    ) {
        let Role::Counter(counter) = &key.descriptor().role else {
            return;
        };
        // In a group every event has the whole width that -w gives.
        let width = self.given(key).unwrap_or(if self.table.events.len() > 1 {
            counter.width
        } else {
            width
        });
        let totals = match counter.shown {
            Shown::LatencyShare => &self.table.latency_totals,
            _ => &self.table.totals,
        };
        for (each, total) in counts.zip(totals) {
            self.push_counter(counter, each, *total, width, line);
        }
    }

    /// Appends the text of a key.
    pub(super) fn push_text_cell(
        &self,
        key: Key,
        part: &Part,
        row: &Row,
        width: usize,
        line: &mut Vec<u8>,
    ) {
        let start = line.len();
        self.push_cell_text((part.cell)(self.report, row, key), row, width, line);
        // Within a cell the separator would be mistaken for one.
        if let Some(separator) = self
            .report
            .options
            .layout
            .separator
            .as_ref()
            .and_then(|s| s.bytes().next())
        {
            line[start..]
                .iter_mut()
                .filter(|byte| **byte == separator)
                .for_each(|byte| *byte = b'.');
        }
    }

    fn push_counter(
        &self,
        counter: &Counter,
        counts: &Counts,
        total: u64,
        width: usize,
        line: &mut Vec<u8>,
    ) {
        let least = |beside: usize| {
            if self.has_separator() {
                1
            } else {
                width.saturating_sub(beside)
            }
        };
        let value = (counter.value)(counts);
        let text = match counter.shown {
            Shown::Number => format!(" {value:>least$}", least = least(1)),
            Shown::Human => {
                // What callers are credited with is what they are in order of.
                let weight = if self.report.children {
                    counts.children_period
                } else {
                    value
                };
                let text = self.report.leader(self.table).unit.human(weight);
                format!(" {text:>least$}", least = least(1))
            }
            Shown::Share | Shown::LatencyShare if counter.is_credited && !self.report.children => {
                format!("{:>least$}", "N/A", least = least(0))
            }
            Shown::Share | Shown::LatencyShare => {
                let share = percent(value, total);
                let text = format!(" {share:>least$.2}%", least = least(2));
                return push_colored(line, share, self.report.options.layout.color, &text);
            }
        };
        line.extend_from_slice(text.as_bytes());
    }

    fn push_cell_text(&self, cell: Cell<'_>, row: &Row, width: usize, line: &mut Vec<u8>) {
        match cell {
            Cell::Filled(text) => push_padded(line, &harmless(&text), width),
            Cell::Cut(text) => push_cut(line, &harmless(&text), width),
            Cell::CutPayload(text) => push_cut(line, &harmless_payload(&text), width),
            Cell::Whole(text) => line.extend_from_slice(harmless(&text).as_bytes()),
            Cell::Left(text) => push_left(line, &harmless(&text), width),
            Cell::Right(text) => push_right(line, &harmless(&text), width),
            Cell::RightCut(text) => push_right_cut(line, &harmless(&text), width),
            Cell::Task(id, comm) => push_task(line, id, comm, width),
            Cell::Zeros(number) => {
                let digits = width.saturating_sub(3);
                let sign = if number < 0 { "-" } else { "" };
                let text = format!("{sign}{:0digits$}", number.unsigned_abs());
                push_right(line, &text, width);
            }
            Cell::Symbol => self.push_symbol(row, width, line),
        }
    }

    /// `[k] name`, `[.] name (inlined)`, `[.] 0x0000000000001234`.
    fn push_symbol(&self, row: &Row, width: usize, line: &mut Vec<u8>) {
        let profile = self.report.profile;
        let frame = &profile[row.frame];
        let address = self.report.shown_address(row);
        let start = line.len();
        if self.report.options.layout.verbose > 0 {
            let text = format!(
                "{:<w$} {} ",
                short_address(address),
                origin(self.report, row),
                w = ADDRESS_DIGITS + 2
            );
            line.extend_from_slice(text.as_bytes());
        }
        line.extend_from_slice(format!("[{}] ", self.report.level(row)).as_bytes());
        let Some(symbol) = frame.symbol.map(|symbol| &profile[symbol]) else {
            line.extend_from_slice(long_address(address).as_bytes());
            return;
        };
        if symbol.is_data {
            line.extend_from_slice(harmless(&symbol.name).as_bytes());
            // perf takes the function's address in memory from one in the file here.
            let offset = frame.offset_in(symbol);
            line.extend_from_slice(format!("+{}", short_address(offset)).as_bytes());
            return;
        }
        push_cut(
            line,
            &harmless(&symbol.name),
            width.saturating_sub(line.len() - start),
        );
        if symbol.inlined {
            line.extend_from_slice(b" (inlined)");
        }
    }
}

/// No column is wider, whatever is in it: one name of 60 kB would fill all other rows with as many blanks.
const WIDEST: usize = 4096;

/// By column: the room that the widest cell takes. Counters have their own measure.
fn widest(layout: &Layout<'_, '_>) -> Vec<usize> {
    let (report, table) = (layout.report, layout.table);
    let width_of = |key: &Key| match &key.descriptor().role {
        Role::Part(part) => (*key, part.width),
        Role::Counter(_) | Role::Rate => (*key, Width::Is(0)),
    };
    let widths: Vec<(Key, Width)> = layout.fields.iter().map(width_of).collect();
    let pieces = table.rows.chunks(4096).collect();
    let pieces = in_parallel(pieces, report.options.layout.threads, |rows: &[Row]| {
        let of = |(key, width): &(Key, Width)| match width {
            Width::Longest(_, room) => {
                let lengths = rows.iter().map(|row| length(&room(report, row, *key)));
                lengths.max()
            }
            Width::Is(_) | Width::Of(_) => None,
        };
        widths.iter().map(of).collect::<Vec<_>>()
    });
    let least = |(_, width): &(Key, Width)| match *width {
        Width::Is(width) | Width::Longest(width, _) => width,
        Width::Of(width) => width(report.options),
    };
    let mut widest: Vec<usize> = widths.iter().map(least).collect();
    for piece in pieces {
        for (most, length) in widest.iter_mut().zip(piece) {
            *most = (*most).max(length.unwrap_or(0).min(WIDEST));
        }
    }
    widest
}

/// The room that a row takes.
fn length(measured: &Measured<'_>) -> usize {
    let text = if measured.is_payload {
        harmless_payload(&measured.text)
    } else {
        harmless(&measured.text)
    };
    (text.len() + measured.more).max(measured.least)
}

/// perf's letter for where a row's symbol comes from.
fn origin(report: &Report<'_>, row: &Row) -> char {
    let object = report.profile[row.frame].object;
    object.map_or('!', |object| report.profile[object].origin)
}
