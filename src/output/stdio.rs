//! The report as `perf report --stdio` lays it out.
//!
//! In: a [`Report`]. Out: text. Layout facts from `ui/stdio/hist.c` and `ui/hist.c` of perf; its quirks are
//! kept, because scripts read this text (padding with `-t`, blanks at the ends of lines, widths that count hidden rows).

use std::io::{self, Write};
use std::ops::Range;

use super::stdio_hierarchy;
use super::stdio_tree::{self, TreeStyle};
use super::text::{harmless, harmless_payload};
use crate::parallel::{in_parallel, write_in_parallel};
use crate::profile::{EventSummary, Profile, Quality, StackEnd};
use crate::report::keys::{Cell, Counter, Heading, Key, Measured, Part, Role, Shown, Width};
use crate::report::{ADDRESS_DIGITS, Counts, Report, Row, Table, TreeMaker, percent};

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const RESET: &str = "\x1b[m";

/// `12.34~ ±0.56`.
const RATE_WIDTH: usize = 14;

/// Writes the whole report.
///
/// # Errors
///
/// What `out` returns.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    if !report.options.quiet {
        write_opening(report, out)?;
    }
    for table in &report.tables {
        write_table(report, table, out)?;
    }
    if !report.options.quiet {
        out.write_all(b"#\n# (Tip: pjit fold prints the same stacks for flame graphs)\n#\n")?;
    }
    if report.options.show_threads {
        write_counters(report.profile, out)?;
    }
    Ok(())
}

/// The counters of `-T`, a line for each task (`util/values.c`).
fn write_counters(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let mut tasks: Vec<(u32, u32)> = Vec::new();
    let mut events: Vec<usize> = Vec::new();
    for &(pid, tid, event, _) in &profile.recording.counters {
        if !tasks.contains(&(pid, tid)) {
            tasks.push((pid, tid));
        }
        if !events.contains(&event) {
            events.push(event);
        }
    }
    let of = |task: (u32, u32), event: usize| -> u64 {
        let counters = profile.recording.counters.iter();
        counters
            .filter(|c| (c.0, c.1) == task && c.2 == event)
            .fold(0, |sum, c| sum.wrapping_add(c.3))
    };
    let digits = |n: u64| n.to_string().len();
    let widest = |ids: &mut dyn Iterator<Item = u32>| ids.map(|id| digits(id.into())).max();
    let pid_width = widest(&mut tasks.iter().map(|t| t.0)).map_or(3, |w| w.max(3));
    let tid_width = widest(&mut tasks.iter().map(|t| t.1)).map_or(3, |w| w.max(3));
    let columns: Vec<(usize, &str, usize)> = events
        .iter()
        .map(|&event| {
            let name = profile.events[event].name.as_str();
            let widest = tasks.iter().map(|task| digits(of(*task, event))).max();
            (event, name, widest.unwrap_or(0).max(name.len()))
        })
        .collect();
    write!(out, "# {:>pid_width$}  {:>tid_width$}", "PID", "TID")?;
    for (_, name, width) in &columns {
        write!(out, "  {:>width$}", harmless(name))?;
    }
    writeln!(out)?;
    for task in tasks {
        write!(out, "  {:pid_width$}  {:tid_width$}", task.0, task.1)?;
        for &(event, _, width) in &columns {
            write!(out, "  {:width$}", of(task, event))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the header block of `--header`.
///
/// # Errors
///
/// What `out` returns.
fn write_header(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    for line in &profile.recording.header {
        writeln!(out, "{}", harmless(line))?;
    }
    Ok(())
}

fn write_opening(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    if report.options.header {
        write_header(report.profile, out)?;
    } else {
        out.write_all(
            b"# To display the perf.data header info, please use --header/--header-only options.\n#\n",
        )?;
    }
    for (name, value) in &report.elided {
        writeln!(out, "# {name}: {}", harmless(value))?;
    }
    writeln!(
        out,
        "#\n# Total Lost Samples: {}\n#",
        report.profile.recording.lost_samples
    )?;
    writeln!(out, "# {}\n#", harmless(&quality_line(report.profile)))
}

/// What became of stacks that were cut.
fn incomplete(profile: &Profile, walked: u64) -> Vec<String> {
    let quality = &profile.quality;
    let period = |end: StackEnd| quality.stack_ends[end as usize];
    let mut parts = Vec::new();
    let stitched = period(StackEnd::Stitched).saturating_add(period(StackEnd::StitchedFiber));
    if stitched > 0 {
        let share = percent(stitched, walked);
        let error = 100.0 * quality.stitch_error;
        parts.push(format!(
            "{share:.2}% completed from other samples (est. error {error:.1}%)"
        ));
    }
    for (end, what) in [
        (StackEnd::Rooted, "cut (rooted)"),
        (StackEnd::DumpTooShort, "cut"),
    ] {
        // Without marks, stacks are what they always were, and so is the line.
        if period(end) > 0 && profile.marks[end as usize].is_some() {
            parts.push(format!("{:.2}% {what}", percent(period(end), walked)));
        }
    }
    parts
}

/// The line that tells how far the numbers below can be trusted.
#[must_use]
pub fn quality_line(profile: &Profile) -> String {
    let Quality {
        stack_ends,
        unresolved_samples,
        samples,
        dumps,
        kernel,
        weights,
        ..
    } = &profile.quality;
    let mut parts = Vec::new();
    let told = [StackEnd::NotRecorded, StackEnd::Recorded].map(|end| stack_ends[end as usize]);
    let all: u64 = stack_ends
        .iter()
        .fold(0, |sum, part| sum.wrapping_add(*part));
    let walked = all.wrapping_sub(told[0]).wrapping_sub(told[1]);
    let complete = [
        StackEnd::Complete,
        StackEnd::FiberBase,
        StackEnd::KernelOnly,
    ];
    let complete = complete
        .iter()
        .map(|end| stack_ends[*end as usize])
        .fold(0, u64::wrapping_add);
    if walked > 0 {
        parts.push(format!(
            "{:.2}% in complete stacks",
            percent(complete, walked)
        ));
        parts.extend(incomplete(profile, walked));
    } else if told[1] > 0 {
        parts.push("stacks as recorded".to_owned());
    }
    parts.push(format!(
        "{:.2}% unresolved",
        percent(*unresolved_samples, *samples)
    ));
    parts.push(format!("{} lost", profile.recording.lost_samples));
    if profile.recording.lost_chunks > 0 {
        parts.push(format!("{} chunks lost", profile.recording.lost_chunks));
    }
    let mut line = format!("Quality: {}", parts.join(", "));
    if !dumps.is_empty() {
        line.push_str(&format!("; JIT: {}", dumps.join(", ")));
    }
    for weight in weights {
        line.push_str(&format!("; {weight}"));
    }
    if !kernel.is_empty() {
        line.push_str(&format!("; kernel symbols: {kernel}"));
    }
    line
}

fn write_table(report: &Report<'_>, table: &Table, out: &mut dyn Write) -> io::Result<()> {
    if !report.options.quiet {
        write_title(report, table, out)?;
    }
    let layout = Layout::of(report, table);
    if report.options.hierarchy {
        let mut trees = layout.trees();
        stdio_hierarchy::write(&layout, trees.as_mut(), out)?;
    } else {
        if !report.options.quiet {
            layout.write_column_names(out)?;
        }
        layout.write_rows(out)?;
    }
    out.write_all(b"\n\n")
}

fn write_title(report: &Report<'_>, table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let (number, unit) = with_unit(table.samples);
    let plural = if table.is_plural { "s" } else { "" };
    write!(
        out,
        "# Samples: {number}{unit} of event{plural} '{}'",
        harmless(&table.title)
    )?;
    if let Some(time) = &report.options.time {
        write!(out, " (time slices: {})", harmless(time))?;
    }
    out.write_all(b"\n")?;
    write_total(report, table, out)?;
    if let Some(socket) = report.options.filter.socket {
        writeln!(out, "# Processor Socket: {socket}")?;
    }
    out.write_all(b"#\n")
}

/// What the table's periods add up to.
fn write_total(report: &Report<'_>, table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let event = &report.profile.events[table.events[0]];
    let Some(counted) = event.counted else {
        writeln!(out, "# Event count (approx.): {}", table.period)?;
        for note in &report.rates.notes {
            writeln!(out, "# {}", harmless(note))?;
        }
        return write_notes(event, out);
    };
    let (heading, total) = (event.unit.heading(), table.period);
    let human = event.unit.human(total);
    if human == total.to_string() {
        writeln!(out, "# {heading}: {total} in {} {counted}", table.samples)?;
    } else {
        let unit = event.unit.smallest();
        writeln!(
            out,
            "# {heading}: {total}{unit} ({human}) in {} {counted}",
            table.samples
        )?;
    }
    write_notes(event, out)
}

fn write_notes(event: &EventSummary, out: &mut dyn Write) -> io::Result<()> {
    let mut notes = event.notes.iter();
    notes.try_for_each(|note| writeln!(out, "# {}", harmless(note)))
}

/// perf's short form of large numbers, cut, not rounded.
fn with_unit(number: u64) -> (u64, char) {
    let (mut value, mut unit) = (number as f64, ' ');
    for next in ['K', 'M', 'G'] {
        if value <= 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    (value as u64, unit)
}

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
    fn of(report: &'r Report<'p>, table: &'r Table) -> Self {
        let fields = report.fields.iter().copied();
        let fields = fields.filter(|key| key.is_of(report.profile, table));
        let mut layout = Self {
            report,
            table,
            fields: fields.collect(),
            widths: Vec::new(),
        };
        let widest = widest(&layout);
        let fields = layout.fields.iter().zip(widest);
        layout.widths = fields
            .map(|(key, widest)| layout.width(*key, widest))
            .collect();
        layout
    }

    /// What `-w` says about a column. perf counts the columns before it leaves out constant ones, and forgets the widths
    /// with `--hierarchy`.
    fn given(&self, key: Key) -> Option<usize> {
        if self.report.options.hierarchy {
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
        self.report.options.separator.as_deref().unwrap_or("  ")
    }

    pub(super) fn has_separator(&self) -> bool {
        self.report.options.separator.is_some()
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

    fn write_column_names(&self, out: &mut dyn Write) -> io::Result<()> {
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

    fn trees(&self) -> Option<TreeMaker<'r, 'p>> {
        self.report.has_trees.then(|| TreeMaker::new(self.report))
    }

    fn write_rows(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.table.rows.len();
        if self.report.options.threads > 1 && rows >= Self::MANY {
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
        let threads = self.report.options.threads;
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
            Shown::LatencyShare | Shown::CreditedLatencyShare => &self.table.latency_totals,
            _ => &self.table.totals,
        };
        for (counts, total) in counts.zip(totals) {
            self.push_counter(counter, counts, *total, width, line);
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
        let least = |beside: usize| match self.has_separator() {
            true => 1,
            false => width.saturating_sub(beside),
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
            Shown::CreditedShare | Shown::CreditedLatencyShare if !self.report.children => {
                format!("{:>least$}", "N/A", least = least(0))
            }
            Shown::Share
            | Shown::CreditedShare
            | Shown::LatencyShare
            | Shown::CreditedLatencyShare => {
                let share = percent(value, total);
                let text = format!(" {share:>least$.2}%", least = least(2));
                return push_colored(line, share, self.report.options.color, &text);
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
        if self.report.options.verbose > 0 {
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
            let offset = address.wrapping_sub(frame.address_of(symbol).0);
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

/// By column: the room that the widest cell takes. Counters have their own measure.
fn widest(layout: &Layout<'_, '_>) -> Vec<usize> {
    let (report, table) = (layout.report, layout.table);
    let width = |key: &Key| match &key.descriptor().role {
        Role::Part(part) => (*key, part.width),
        Role::Counter(_) | Role::Rate => (*key, Width::Is(0)),
    };
    let widths: Vec<(Key, Width)> = layout.fields.iter().map(width).collect();
    let pieces = table.rows.chunks(4096).collect();
    let pieces = in_parallel(pieces, report.options.threads, |rows: &[Row]| {
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
        for (widest, length) in widest.iter_mut().zip(piece) {
            *widest = (*widest).max(length.unwrap_or(0));
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

/// An address as rows show it. perf leaves the `0x` out before a zero.
fn long_address(address: u64) -> String {
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

fn push_task(line: &mut Vec<u8>, id: u32, comm: &str, width: usize) {
    line.extend_from_slice(format!("{:>7}:", id.cast_signed()).as_bytes());
    push_padded(line, &harmless(comm), width.max(7) - 8);
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

fn pad(line: &mut Vec<u8>, blanks: usize) {
    line.resize(line.len() + blanks, b' ');
}

/// Appends exactly `width` bytes: text, cut or padded.
fn push_padded(line: &mut Vec<u8>, text: &str, width: usize) {
    let start = line.len();
    push_cut(line, text, width);
    pad(line, width.saturating_sub(line.len() - start));
}

/// Appends text that ends where the column does.
fn push_right(line: &mut Vec<u8>, text: &str, width: usize) {
    pad(line, width.saturating_sub(text.len()));
    line.extend_from_slice(text.as_bytes());
}

/// The same for no more of it than the column has room for.
fn push_right_cut(line: &mut Vec<u8>, text: &str, width: usize) {
    let mut shown = Vec::new();
    push_cut(&mut shown, text, width);
    pad(line, width.saturating_sub(shown.len()));
    line.extend_from_slice(&shown);
}

/// Appends at most `width` bytes of text, whole characters only.
fn push_cut(line: &mut Vec<u8>, text: &str, width: usize) {
    let mut end = text.len().min(width);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    line.extend_from_slice(&text.as_bytes()[..end]);
}
