//! The report as `perf report --stdio` lays it out.
//!
//! In: a [`Report`]. Out: text. Layout facts from `ui/stdio/hist.c` and `ui/hist.c` of perf; its quirks are
//! kept, because scripts read this text (padding with `-t`, blanks at the ends of lines, widths that count hidden rows).

use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};

use super::stdio_hierarchy;
use super::stdio_layout::Layout;
use super::text::harmless;
use crate::profile::{
    Branch, Branched, EventId, EventSummary, Figures, Profile, Quality, StackEnd, Walked,
};
use crate::report::{Report, Table, percent};

/// Writes the whole report.
///
/// # Errors
///
/// What `out` returns.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    if !report.options.layout.quiet {
        write_opening(report, out)?;
    }
    for table in &report.tables {
        write_table(report, table, out)?;
    }
    if !report.options.layout.quiet {
        write_closing(report, out)?;
        out.write_all(b"#\n# (Tip: pjit fold prints the same stacks for flame graphs)\n#\n")?;
    }
    if report.options.layout.show_threads {
        write_counters(report.profile, out)?;
    }
    Ok(())
}

/// What is said of rows that are no samples, below all tables.
fn write_closing(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    if let Some(branches) = &report.profile.branches {
        // With a separator a program reads this, which would take them for rows.
        let mark = report
            .options
            .layout
            .separator
            .as_ref()
            .map_or("", |_| "# ");
        write_kinds(branches, mark, out)?;
    }
    if report.profile.accesses.is_some() {
        out.write_all(
            b"#\n# Events such as mem-loads sample only what costs more than a threshold: shares are of cost, not of accesses\n",
        )?;
    }
    Ok(())
}

/// Types of branches, where the processor tells (`util/branch.c:branch_type_stat_display`). Counted once for the whole recording,
/// while perf counts those of one branch for each row.
fn write_kinds(branches: &Branched, mark: &str, out: &mut dyn Write) -> io::Result<()> {
    let typed = branches.typed();
    if typed == 0 {
        return Ok(());
    }
    let backward = branches.kinds[Branch::CONDITIONAL] - branches.forward;
    let ways = [
        ("COND_FWD", branches.forward),
        ("COND_BWD", backward),
        ("CROSS_4K", branches.left_small_page),
        ("CROSS_2M", branches.left_large_page),
    ];
    let kinds = branches.kinds.iter().enumerate().skip(1);
    let kinds = kinds.map(|(kind, count)| (Branch::kind_name(kind), *count));
    out.write_all(b"#\n# Branch Statistics:\n#\n")?;
    for (name, count) in ways.into_iter().chain(kinds) {
        if count > 0 {
            writeln!(out, "{mark}{name:>8}: {:5.1}%", percent(count, typed))?;
        }
    }
    Ok(())
}

/// The counters of `-T`, a line for each task (`util/values.c`).
fn write_counters(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    // In the order of the recording.
    let (mut tasks, mut events) = (Vec::new(), Vec::new());
    let (mut known_tasks, mut known_events) = (FxHashSet::default(), FxHashSet::default());
    let mut sums: FxHashMap<(u32, u32, usize), u64> = FxHashMap::default();
    for &(pid, tid, event, count) in &profile.recording.counters {
        if known_tasks.insert((pid, tid)) {
            tasks.push((pid, tid));
        }
        if known_events.insert(event) {
            events.push(event);
        }
        let sum = sums.entry((pid, tid, event)).or_default();
        *sum = sum.wrapping_add(count);
    }
    let of = |task: (u32, u32), event: usize| -> u64 {
        sums.get(&(task.0, task.1, event)).copied().unwrap_or(0)
    };
    let digits = |n: u64| n.to_string().len();
    let widest = |ids: &mut dyn Iterator<Item = u32>| ids.map(|id| digits(id.into())).max();
    let pid_width = widest(&mut tasks.iter().map(|t| t.0)).map_or(3, |w| w.max(3));
    let tid_width = widest(&mut tasks.iter().map(|t| t.1)).map_or(3, |w| w.max(3));
    let columns: Vec<(usize, &str, usize)> = events
        .iter()
        .map(|&event| {
            let name = profile.events[event].name.as_str();
            let longest = tasks.iter().map(|task| digits(of(*task, event))).max();
            (event, name, longest.unwrap_or(0).max(name.len()))
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
    if report.options.layout.header {
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
    writeln!(
        out,
        "# {}\n#",
        harmless(&quality_line(report.profile, None))
    )
}

/// What became of stacks that were cut.
fn incomplete(profile: &Profile, figures: &Figures, walked: u64) -> Vec<String> {
    let quality = &profile.quality;
    let period = |end: StackEnd| figures.stack_ends[end];
    let mut parts = Vec::new();
    let stitched = figures.stitched();
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
        if period(end) > 0 && profile.marks[end].is_some() {
            parts.push(format!("{:.2}% {what}", percent(period(end), walked)));
        }
    }
    parts
}

/// What is to be said of stacks that the kernel or the processor recorded.
fn as_recorded(profile: &Profile, figures: &Figures, recorded: u64) -> Vec<String> {
    let mut parts = vec!["stacks as recorded".to_owned()];
    // As for cut stacks: without marks, the line is what it always was.
    let is_marked = profile.marks[StackEnd::CallerMissing].is_some();
    for (end, what, is_told) in [
        (StackEnd::CallerMissing, "without a caller", is_marked),
        (
            StackEnd::BranchesFull,
            "cut where the processor keeps no more calls",
            true,
        ),
        (
            StackEnd::ChainFull,
            "cut where the kernel records no more frames",
            true,
        ),
    ] {
        let period = figures.stack_ends[end];
        if period > 0 && is_told {
            let share = percent(period, recorded);
            parts.push(format!("{share:.2}% {what}"));
        }
    }
    parts
}

/// Of several recordings the one with the fewest whole stacks, where any has stacks that were unwound.
fn worst(profile: &Profile) -> Option<String> {
    let parts = &profile.recording.parts;
    let told = parts.iter().filter(|_| parts.len() > 1);
    let told = told.filter_map(|part| Some((part.whole?, &part.name)));
    let (whole, name) = told.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "worst: {} {:.0}% whole",
        harmless(name),
        100.0 * whole
    ))
}

/// How many stacks nobody has unwound, beside others.
fn as_recorded_beside(stacks: &Walked) -> Option<String> {
    let all = stacks.recorded.saturating_add(stacks.walked);
    let share = percent(stacks.recorded, all);
    (stacks.recorded > 0).then(|| format!("{share:.1}% of all stacks as recorded"))
}

/// The same in few words, for pages: what else there is to say are warnings.
#[must_use]
pub fn trust_line(profile: &Profile, event: EventId) -> String {
    let quality = profile.quality.figures(Some(event));
    let stacks = quality.walked();
    let mut parts = Vec::new();
    if stacks.walked > 0 {
        let whole = percent(stacks.complete, stacks.walked);
        let of = if stacks.recorded > 0 {
            "unwound stacks"
        } else {
            "stacks"
        };
        parts.push(format!("{whole:.1}% of {of} whole"));
        if quality.stitched() > 0 {
            let share = percent(quality.stitched(), stacks.walked);
            parts.push(format!("{share:.1}% completed from other samples"));
        }
        parts.extend(as_recorded_beside(&stacks));
    } else if stacks.recorded > 0 {
        parts.extend(as_recorded(profile, &quality, stacks.recorded));
    } else {
        parts.push("no stacks were recorded".to_owned());
    }
    if stacks.missing > 0 && stacks.missing < quality.stack_ends.total() {
        let share = percent(stacks.missing, quality.stack_ends.total());
        parts.push(format!("{share:.1}% without a stack"));
    }
    let named = quality.samples.saturating_sub(quality.unresolved_samples);
    parts.push(format!("{:.1}% named", percent(named, quality.samples)));
    if quality.doubtful_samples > 0 {
        let share = percent(quality.doubtful_samples, quality.samples);
        parts.push(format!("{share:.1}% by a doubtful name"));
    }
    parts.push(format!("{} lost", profile.lost_of(event)));
    parts.extend(worst(profile));
    let mut line = format!("Trust: {}", parts.join(", "));
    for weight in &profile.quality.weights {
        line.push_str(&format!("; {weight}"));
    }
    line
}

/// The line that tells how far the numbers below can be trusted: those of an event, or of all.
#[must_use]
pub fn quality_line(profile: &Profile, event: Option<EventId>) -> String {
    let Quality {
        dumps,
        kernel,
        weights,
        ..
    } = &profile.quality;
    let mut line = format!("Quality: {}", quality_figures(profile, event));
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

/// Of several events that whose samples have the fewest names: a share of all samples is true of none.
fn least_resolved(profile: &Profile) -> Option<String> {
    let events = profile.quality.events.iter_enumerated();
    let shares = events.filter(|(_, of)| of.samples > 0);
    let shares = shares.map(|(id, of)| (percent(of.unresolved_samples, of.samples), id));
    let shares: Vec<(f64, EventId)> = shares.collect();
    let (share, id) = *shares.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = &profile.events.get(id)?.name;
    (shares.len() > 1).then(|| format!(" ({share:.2}% of {})", harmless(name)))
}

/// Its shares and numbers alone, without names of files.
#[must_use]
pub fn quality_figures(profile: &Profile, event: Option<EventId>) -> String {
    let figures = profile.quality.figures(event);
    let Figures {
        unresolved_samples,
        doubtful_samples,
        samples,
        ..
    } = &figures;
    let mut parts = Vec::new();
    let stacks = figures.walked();
    let Walked {
        recorded,
        walked,
        complete,
        ..
    } = stacks;
    if walked > 0 {
        parts.push(format!(
            "{:.2}% in complete stacks",
            percent(complete, walked)
        ));
        parts.extend(incomplete(profile, &figures, walked));
        parts.extend(as_recorded_beside(&stacks));
    } else if recorded > 0 {
        parts.extend(as_recorded(profile, &figures, recorded));
    }
    let mut unresolved = format!("{:.2}% unresolved", percent(*unresolved_samples, *samples));
    if event.is_none() && *unresolved_samples > 0 {
        unresolved.extend(least_resolved(profile));
    }
    parts.push(unresolved);
    if *doubtful_samples > 0 {
        let share = percent(*doubtful_samples, *samples);
        parts.push(format!("{share:.2}% by a doubtful name"));
    }
    let lost = event.map_or(profile.recording.lost, |event| profile.lost_of(event));
    parts.push(format!("{lost} lost"));
    parts.extend(worst(profile));
    if profile.recording.lost_chunks > 0 {
        parts.push(format!("{} chunks lost", profile.recording.lost_chunks));
    }
    parts.join(", ")
}

fn write_table(report: &Report<'_>, table: &Table, out: &mut dyn Write) -> io::Result<()> {
    if !report.options.layout.quiet {
        write_title(report, table, out)?;
    }
    let layout = Layout::of(report, table);
    if report.options.rows.hierarchy {
        let mut trees = layout.trees();
        stdio_hierarchy::write(&layout, trees.as_mut(), out)?;
    } else {
        if !report.options.layout.quiet {
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
    if let Some(time) = &report.options.layout.time {
        write!(out, " (time slices: {})", harmless(time))?;
    }
    out.write_all(b"\n")?;
    write_total(report, table, out)?;
    if let Some(socket) = report.options.filters.samples.socket {
        writeln!(out, "# Processor Socket: {socket}")?;
    }
    out.write_all(b"#\n")
}

/// What the table's periods add up to.
fn write_total(report: &Report<'_>, table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let event = &report.profile.events[table.events[0]];
    if report.profile.accesses.is_some() {
        let columns = &report.options.columns;
        let sort = columns.sort.as_ref().or(columns.default_sort.as_ref());
        let keys = sort.map_or("", |sort| sort.text());
        writeln!(out, "# Total weight : {}", table.period)?;
        writeln!(out, "# Sort order   : {}", harmless(keys))?;
        return write_notes(event, out);
    }
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
