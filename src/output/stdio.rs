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
use crate::report::keys::Key;
use crate::report::{
    Counts, Report, Row, Table, TreeMaker, counter, dso_name, percent, srcline_text,
};
use crate::unit::Unit;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const RESET: &str = "\x1b[m";

/// `12.34~ ±0.56`.
const RATE_WIDTH: usize = 14;

/// Digits of an address as rows show it.
const ADDRESS_DIGITS: usize = 16;

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
    if let Some(socket) = report.options.socket {
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
    /// By field.
    pub(super) widths: Vec<usize>,
}

impl<'r, 'p> Layout<'r, 'p> {
    fn of(report: &'r Report<'p>, table: &'r Table) -> Self {
        let mut layout = Self {
            report,
            table,
            widths: Vec::new(),
        };
        let texts = TextWidths::of(report, table);
        layout.widths = report
            .fields
            .iter()
            .map(|key| layout.width(*key, &texts))
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

    fn width(&self, key: Key, texts: &TextWidths) -> usize {
        let given = self.given(key);
        let name = self.column_name(key).len();
        if let Key::Metric(_) = key {
            return given.unwrap_or(RATE_WIDTH).max(name);
        }
        if key.is_counter() {
            let members = self.table.events.len();
            let group = if members > 1 {
                members * counter_width(key)
            } else {
                0
            };
            return given.unwrap_or(counter_width(key)).max(group).max(name);
        }
        given.unwrap_or_else(|| texts.width(key).max(name))
    }

    pub(super) fn separator(&self) -> &str {
        self.report.options.separator.as_deref().unwrap_or("  ")
    }

    pub(super) fn has_separator(&self) -> bool {
        self.report.options.separator.is_some()
    }

    pub(super) fn column_name(&self, key: Key) -> &str {
        match key {
            Key::Overhead if self.report.columns.overhead_is_self => "Self",
            Key::Overhead => "Overhead",
            Key::OverheadChildren => "Children",
            Key::OverheadSys => "sys",
            Key::OverheadUs => "usr",
            Key::OverheadGuestSys => "guest sys",
            Key::OverheadGuestUs => "guest usr",
            Key::Sample => self.counted(),
            Key::Period => "Period",
            Key::Pid => "    Pid:Command",
            Key::Tid => "    Tid:Command",
            Key::Tgid => "   Tgid:Command",
            Key::Comm => "Command",
            Key::Dso => "Shared Object",
            Key::Symbol => "Symbol",
            Key::Parent => "Parent symbol",
            Key::Cpu => "CPU",
            Key::Socket => "Socket",
            Key::Srcline => "Source:Line",
            Key::Srcfile => "Source File",
            Key::SymbolSize => "Symbol size",
            Key::State => "State",
            Key::Weight => self.unit().heading(),
            Key::Cgroup => "Cgroup",
            Key::Trace => "Trace output",
            Key::IpcNull => "IPC   [IPC Coverage]",
            Key::Time => "Time",
            Key::Metric(number) => {
                let metric = self.report.rates.metrics.get(usize::from(number));
                metric.map_or("", |metric| metric.heading.as_str())
            }
        }
    }

    /// What the weights of the table are.
    fn unit(&self) -> Unit {
        self.event().unit
    }

    /// The heading for the number of samples.
    fn counted(&self) -> &'static str {
        match self.event().counted {
            Some("blocks") => "Blocks",
            Some("intervals") => "Intervals",
            Some("calls") => "Calls",
            _ => "Samples",
        }
    }

    fn event(&self) -> &EventSummary {
        &self.report.profile.events[self.table.events[0]]
    }

    /// Appends the name of a column as the header shows it.
    pub(super) fn push_column_name(&self, key: Key, width: usize, line: &mut Vec<u8>) {
        let name = self.column_name(key);
        if key.is_counter() {
            pad(line, width.saturating_sub(name.len()));
            line.extend_from_slice(name.as_bytes());
        } else {
            push_padded(line, name, width);
        }
    }

    fn write_column_names(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut line = b"# ".to_vec();
        for (i, (key, width)) in self.report.fields.iter().zip(&self.widths).enumerate() {
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
        let fields = &self.report.fields;
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
        if let Key::Metric(number) = key {
            self.push_rate(usize::from(number), row, width, line);
        } else if key.is_counter() {
            self.push_counters(key, self.table.counts(index), width, line);
        } else {
            self.push_text_cell(key, row, width, line);
        }
    }

    /// Appends a rate with its error; nothing where there are too few samples for one.
    fn push_rate(&self, number: usize, row: &Row, width: usize, line: &mut Vec<u8>) {
        let metric = self.report.rates.metrics.get(number);
        let rate = self.report.rate(row, number);
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
        for (counts, total) in counts.zip(&self.table.totals) {
            self.push_counter(key, counts, *total, width, line);
        }
    }

    /// Appends the text of a key.
    pub(super) fn push_text_cell(&self, key: Key, row: &Row, width: usize, line: &mut Vec<u8>) {
        let start = line.len();
        self.push_text(key, row, width, line);
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
        key: Key,
        counts: &Counts,
        total: u64,
        width: usize,
        line: &mut Vec<u8>,
    ) {
        // In a group every event has the whole width that -w gives.
        let width = self.given(key).unwrap_or(if self.table.events.len() > 1 {
            counter_width(key)
        } else {
            width
        });
        let text = match key {
            Key::Sample | Key::Period => {
                let least = if self.has_separator() {
                    1
                } else {
                    width.saturating_sub(1)
                };
                format!(" {:>least$}", counter(key, counts))
            }
            Key::Weight => {
                let least = if self.has_separator() {
                    1
                } else {
                    width.saturating_sub(1)
                };
                // What callers are credited with is what they are in order of.
                let weight = if self.report.children {
                    counts.children_period
                } else {
                    counts.self_period
                };
                let text = self.unit().human(weight);
                format!(" {text:>least$}")
            }
            Key::OverheadChildren if !self.report.children => {
                let least = if self.has_separator() { 1 } else { width };
                format!("{:>least$}", "N/A")
            }
            _ => {
                let least = if self.has_separator() {
                    1
                } else {
                    width.saturating_sub(2)
                };
                let share = percent(counter(key, counts), total);
                return push_colored(
                    line,
                    share,
                    self.report.options.color,
                    &format!(" {share:>least$.2}%"),
                );
            }
        };
        line.extend_from_slice(text.as_bytes());
    }

    fn push_text(&self, key: Key, row: &Row, width: usize, line: &mut Vec<u8>) {
        let profile = self.report.profile;
        let entry = self.report.entry(row);
        let frame = &profile[row.frame];
        let thread = &profile[row.thread];
        match key {
            Key::Comm => push_padded(line, &harmless(&profile[entry.comm]), width),
            Key::Dso => push_padded(line, &harmless(shown_dso(self.report, row)), width),
            Key::Symbol => self.push_symbol(row, width, line),
            Key::Pid | Key::Tid => {
                push_thread(line, thread.tid, &profile[thread.comm], width);
            }
            Key::Tgid => push_thread(line, thread.pid, leader_comm(profile, row), width),
            Key::Parent => push_padded(
                line,
                &harmless(self.report.parent(row).unwrap_or("[other]")),
                width,
            ),
            Key::Cpu if entry.cpu < 0 => {
                line.extend_from_slice(format!("-{:03}", -entry.cpu).as_bytes())
            }
            Key::Cpu => line.extend_from_slice(format!("{:03}", entry.cpu).as_bytes()),
            Key::Socket => {
                let socket = profile.recording.socket(entry.cpu);
                let digits = width.saturating_sub(3);
                let sign = if socket < 0 { "-" } else { "" };
                let text = format!("{sign}{:0digits$}", socket.unsigned_abs());
                pad(line, width.saturating_sub(text.len()));
                line.extend_from_slice(text.as_bytes());
            }
            Key::Srcline => push_cut(
                line,
                &harmless(&srcline_text(profile, self.report.options, frame)),
                width,
            ),
            Key::Srcfile => push_cut(line, &harmless(self.report.srcfile(row)), width),
            Key::SymbolSize => {
                let size = frame.symbol.map(|symbol| &profile[symbol]);
                let size = size.map_or_else(
                    || "unknown".to_owned(),
                    |s| s.end.wrapping_sub(s.start).to_string(),
                );
                pad(line, width.saturating_sub(size.len()));
                line.extend_from_slice(size.as_bytes());
            }
            Key::State => push_padded(line, entry.state.name(), width),
            Key::Cgroup => {
                line.extend_from_slice(harmless(cgroup_name(self.report, row)).as_bytes())
            }
            Key::Trace => push_cut(line, &harmless_payload(trace_text(self.report, row)), width),
            Key::IpcNull => push_padded(line, "-      -", width),
            Key::Time => push_cut(
                line,
                &time_text(entry.time, self.report.options.nanoseconds),
                width,
            ),
            _ => {}
        }
    }

    /// `[k] name`, `[.] name (inlined)`, `[.] 0x0000000000001234`.
    fn push_symbol(&self, row: &Row, width: usize, line: &mut Vec<u8>) {
        let profile = self.report.profile;
        let frame = &profile[row.frame];
        let address = if row.is_caller {
            frame.address
        } else {
            frame.object_address
        };
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
            let bias = frame.address.wrapping_sub(frame.object_address);
            line.extend_from_slice(harmless(&symbol.name).as_bytes());
            let offset = address.wrapping_sub(symbol.start.wrapping_add(bias));
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

/// The longest texts of columns whose width depends on the rows.
#[derive(Default)]
struct TextWidths {
    comm: usize,
    thread: usize,
    dso: usize,
    symbol: usize,
    parent: usize,
    srcline: usize,
    srcfile: usize,
    cgroup: usize,
    trace: usize,
    time: usize,
}

impl TextWidths {
    fn of(report: &Report<'_>, table: &Table) -> Self {
        let pieces = table.rows.chunks(4096).collect();
        let pieces = in_parallel(pieces, report.options.threads, |rows| {
            Self::of_rows(report, rows)
        });
        let mut widths = Self {
            time: if report.options.nanoseconds { 16 } else { 12 },
            cgroup: 6,
            ..Self::default()
        };
        for piece in &pieces {
            widths.widen(piece);
        }
        widths
    }

    fn of_rows(report: &Report<'_>, rows: &[Row]) -> Self {
        let mut widths = Self::default();
        let has = |key| report.fields.contains(&key);
        let (lines, files) = (has(Key::Srcline), has(Key::Srcfile));
        let of_entry = has(Key::Parent) || has(Key::Trace) || has(Key::Cgroup);
        for row in rows {
            widths.add(report, row);
            if of_entry {
                widths.add_entry(report, row);
            }
            if lines {
                let frame = &report.profile[row.frame];
                widths.srcline = widths
                    .srcline
                    .max(harmless(&srcline_text(report.profile, report.options, frame)).len());
            }
            if files {
                widths.srcfile = widths.srcfile.max(harmless(report.srcfile(row)).len());
            }
        }
        widths
    }

    fn widen(&mut self, other: &Self) {
        let Self {
            comm,
            thread,
            dso,
            symbol,
            parent,
            srcline,
            srcfile,
            cgroup,
            trace,
            time,
        } = *other;
        self.comm = self.comm.max(comm);
        self.thread = self.thread.max(thread);
        self.dso = self.dso.max(dso);
        self.symbol = self.symbol.max(symbol);
        self.parent = self.parent.max(parent);
        self.srcline = self.srcline.max(srcline);
        self.srcfile = self.srcfile.max(srcfile);
        self.cgroup = self.cgroup.max(cgroup);
        self.trace = self.trace.max(trace);
        self.time = self.time.max(time);
    }

    fn add(&mut self, report: &Report<'_>, row: &Row) {
        let (profile, options) = (report.profile, report.options);
        let frame = &profile[row.frame];
        let shown_address = if options.verbose > 0 {
            ADDRESS_DIGITS + 2 + 3
        } else {
            0
        };
        if let Some(symbol) = frame.symbol {
            let name = &profile[symbol].name;
            self.symbol = self.symbol.max(harmless(name).len() + 4 + shown_address);
        } else {
            self.symbol = self.symbol.max(ADDRESS_DIGITS + 4 + 2);
            // Room for addresses, unless the width is not perf's to choose.
            if options.column_widths.is_empty()
                && options.separator.is_none()
                && options.dsos.is_none()
            {
                self.dso = self.dso.max(ADDRESS_DIGITS);
            }
        }
        // perf measures the thread's last comm, and cuts earlier ones to it.
        let thread = &profile[row.thread];
        let comm = harmless(&profile[thread.comm]).len();
        if comm > self.comm {
            self.comm = comm;
            self.thread = comm + 8;
        }
        if frame.object.is_some() {
            self.dso = self.dso.max(harmless(shown_dso(report, row)).len());
        }
    }

    /// The columns that come from the entry of a row.
    fn add_entry(&mut self, report: &Report<'_>, row: &Row) {
        let profile = report.profile;
        if let Some(parent) = report.parent(row) {
            self.parent = self.parent.max(harmless(parent).len());
        }
        // perf forgets those that it never compared with another, and cuts them to the width of the rest.
        if let Some(text) = report.entry(row).trace {
            let text = &profile[text];
            self.trace = self.trace.max(harmless_payload(text).len());
        }
        self.cgroup = self.cgroup.max(harmless(cgroup_name(report, row)).len());
    }

    fn width(&self, key: Key) -> usize {
        match key {
            Key::Comm => self.comm,
            Key::Pid | Key::Tid | Key::Tgid => self.thread,
            Key::Dso => self.dso,
            Key::Symbol => self.symbol,
            Key::Parent => self.parent,
            Key::Srcline => self.srcline,
            Key::Srcfile => self.srcfile,
            Key::State => "blocked-io".len(),
            Key::Cgroup => self.cgroup,
            Key::Trace => self.trace,
            Key::Time => self.time,
            Key::Cpu => 3,
            Key::Socket => 6,
            _ => 0,
        }
    }
}

const fn counter_width(key: Key) -> usize {
    match key {
        Key::Sample | Key::Period | Key::Weight => 12,
        Key::OverheadGuestSys | Key::OverheadGuestUs => 9,
        _ => 8,
    }
}

/// Name of a row's DSO.
fn shown_dso<'p>(report: &Report<'p>, row: &Row) -> &'p str {
    let object = report.profile[row.frame].object;
    object.map_or("[unknown]", |object| {
        dso_name(&report.profile[object], report.options)
    })
}

fn cgroup_name<'p>(report: &Report<'p>, row: &Row) -> &'p str {
    let name = report.entry(row).cgroup;
    name.map_or("N/A", |name| report.profile[name].as_str())
}

/// Payload of a row's tracepoint.
fn trace_text<'p>(report: &Report<'p>, row: &Row) -> &'p str {
    let text = report.entry(row).trace;
    text.map_or("N/A", |text| report.profile[text].as_str())
}

fn leader_comm<'p>(profile: &'p Profile, row: &Row) -> &'p str {
    let thread = &profile[row.thread];
    let leader = profile
        .threads
        .iter()
        .rev()
        .find(|other| other.tid == thread.pid)
        .unwrap_or(thread);
    &profile[leader.comm]
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

fn time_text(time: u64, nanoseconds: bool) -> String {
    let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
    if nanoseconds {
        format!("{seconds}.{rest:09}")
    } else {
        format!("{seconds}.{:06}", rest / 1000)
    }
}

fn push_thread(line: &mut Vec<u8>, id: u32, comm: &str, width: usize) {
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

/// Appends at most `width` bytes of text, whole characters only.
fn push_cut(line: &mut Vec<u8>, text: &str, width: usize) {
    let mut end = text.len().min(width);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    line.extend_from_slice(&text.as_bytes()[..end]);
}
