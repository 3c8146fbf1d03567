//! `pjit jitdump`: a dump in, its description and lists as text out.
//!
//! The one writer that does not print a profile: its subject is the file itself. Names are arbitrary bytes and
//! stand last in their lines.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::arch::Arch;
use crate::jitdump::dump::{Content, Load, Move, Reader, RecordHead};
use crate::jitdump::lint::{
    Finding, Grade, HeaderClock, header_clock, many, records_on_wall_clock, seconds, unit_name,
};
use crate::jitdump::survey::{Odd, Survey};
use crate::jitdump::unwinding::Unwinding;
use crate::runtimes::Producer;

use super::text::harmless_bytes;

/// What to print besides the description.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lists {
    /// Functions.
    pub functions: bool,
    /// Records.
    pub records: bool,
    /// Source lines.
    pub lines: bool,
    /// Unwinding information.
    pub unwinding: bool,
}

/// Prints what `survey` found in the file called `name`, and what is wrong with it.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_summary(
    name: &[u8],
    survey: &Survey,
    findings: &[Finding],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "File: {}", harmless_bytes(name))?;
    let facts = [
        ("Format", format(survey)),
        ("Producer", producer(survey)),
        ("Process", process(survey)),
        ("Header time", header_time(survey)),
        ("Records", records(survey)),
        ("Time", times(survey)),
        ("Code", code(survey)),
        ("Addresses", addresses(survey)),
        ("Lines", lines(survey)),
        ("Unwinding", unwinding(survey)),
    ];
    for (title, text) in facts {
        writeln!(out, "  {title:<12} {text}")?;
    }
    write_findings(survey.producer, findings, out)
}

fn write_findings(producer: Producer, findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    const GRADES: [(Grade, &str); 3] = [
        (Grade::Error, "error"),
        (Grade::Warning, "warning"),
        (Grade::Note, "note"),
    ];
    let of = |grade| {
        findings
            .iter()
            .filter(move |finding| finding.grade == grade)
    };
    let counts = GRADES.map(|(grade, noun)| (of(grade).count() as u64, noun));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|&(count, noun)| many(count, noun));
    writeln!(out, "  {:<12} {}", "Lints", joined(counts, "none"))?;
    for (grade, noun) in GRADES {
        for finding in of(grade) {
            write!(out, "    {noun}: {}", finding.text)?;
            if finding.usual {
                write!(out, " (usual for {})", producer.row().short_name)?;
            }
            if let Some(offset) = finding.offset {
                write!(out, " [{offset:#x}]")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// The parts in a line, or a word where there are none.
fn joined(parts: impl Iterator<Item = String>, none: &str) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        return none.to_owned();
    }
    parts.join(", ")
}

fn format(survey: &Survey) -> String {
    let (header, bytes) = (&survey.header, survey.file_size);
    if header.missing {
        return format!("jitdump records without a header; {bytes} bytes");
    }
    let order = if header.big_endian { "big" } else { "little" };
    let counter = if header.arch_timestamps {
        " (processor counter)"
    } else {
        ""
    };
    format!(
        "jitdump version {}, {}, {order} endian, header of {} bytes, flags {:#x}{counter}; {bytes} bytes",
        header.version,
        machine(header.elf_machine),
        header.size,
        header.flags,
    )
}

/// `e_machine` of ELF, for what JITs run on.
fn machine(number: u32) -> String {
    let known = u16::try_from(number).ok().and_then(Arch::from_elf);
    let name = match number {
        _ if let Some(arch) = known => arch.name(),
        0 => "no machine",
        8 => "MIPS",
        20 => "PowerPC",
        21 => "PowerPC64",
        22 => "s390",
        243 => "RISC-V",
        258 => "LoongArch",
        _ => return format!("machine {number}"),
    };
    name.to_owned()
}

fn producer(survey: &Survey) -> String {
    let (like, asked) = survey.names_like;
    let (name, asked) = (survey.producer.row().name, many(asked, "name"));
    if survey.producer == Producer::Unknown {
        format!("{name} (nothing characteristic in {asked})")
    } else if like > 0 {
        format!("{name}, by {like} of {asked}")
    } else {
        format!("{name}, by the form of header or records")
    }
}

fn process(survey: &Survey) -> String {
    let Survey { pids, tids, .. } = survey;
    let own = survey.header.pid;
    let mut text = format!("pid {own}");
    if pids.iter().any(|&pid| pid != own) {
        text.push_str(&format!("; records of pid {}", listed(pids)));
    }
    if !tids.is_empty() {
        let s = if tids.len() == 1 { "" } else { "s" };
        text.push_str(&format!("; code loaded by thread{s} {}", listed(tids)));
    }
    text
}

/// The first few of them.
fn listed(numbers: &BTreeSet<u32>) -> String {
    const SHOWN: usize = 6;
    let shown = numbers.iter().take(SHOWN).map(u32::to_string);
    let more = if numbers.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", joined(shown, ""))
}

fn header_time(survey: &Survey) -> String {
    let time = survey.header.timestamp;
    match header_clock(survey) {
        HeaderClock::None => "none".to_owned(),
        HeaderClock::Records if survey.header.arch_timestamps => {
            format!("{time}, a counter value as in the records")
        }
        HeaderClock::Records => format!("{} s, on the clock of the records", seconds(time)),
        HeaderClock::Wall { unit } => {
            let whole_seconds = time / (1_000_000_000 / unit);
            let (unit, date) = (unit_name(unit), utc(whole_seconds));
            format!("{time}, {unit} since 1970: {date}")
        }
        HeaderClock::Unknown => format!("{time}, on an unknown clock"),
    }
}

fn records(survey: &Survey) -> String {
    let counts = &survey.counts;
    let kinds = [
        (counts.loads, "LOAD"),
        (counts.moves, "MOVE"),
        (counts.debug_infos, "DEBUG_INFO"),
        (counts.unwindings, "UNWINDING_INFO"),
        (counts.closes, "CLOSE"),
        (counts.unknown, "unknown"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    joined(kinds.map(|(count, kind)| format!("{count} {kind}")), "none")
}

fn times(survey: &Survey) -> String {
    let Some(first) = survey.times.first else {
        return "none".to_owned();
    };
    let last = survey.times.last;
    if survey.header.arch_timestamps {
        return format!("{first} to {last} (counter values)");
    }
    let clock = if records_on_wall_clock(survey) {
        "nanoseconds since 1970"
    } else {
        "CLOCK_MONOTONIC, by the look of it"
    };
    let (from, to, span) = (seconds(first), seconds(last), seconds(last - first));
    format!("{from} to {to} s, {span} s in all ({clock})")
}

fn code(survey: &Survey) -> String {
    let code = &survey.code;
    let Some(lowest) = code.lowest else {
        return "none".to_owned();
    };
    format!(
        "{}, {} bytes (largest {}), at {lowest:#x} to {:#x}; {}, the longest of {} bytes",
        many(survey.counts.loads, "function"),
        code.bytes,
        code.largest,
        code.highest,
        many(code.names, "different name"),
        code.longest_name
    )
}

fn addresses(survey: &Survey) -> String {
    let parts = [
        (survey.count(Odd::Repeated), "the same code again"),
        (survey.code.replaced, "in the place of an earlier function"),
        (survey.code.overlapping, "across earlier functions"),
    ];
    let used = parts.iter().filter(|(count, _)| *count > 0);
    let used = used.map(|&(count, how)| format!("{} {how}", many(count, "LOAD")));
    joined(used, "none used twice")
}

fn lines(survey: &Survey) -> String {
    let lines = &survey.lines;
    if lines.functions == 0 {
        return "none".to_owned();
    }
    format!(
        "{} in {} of {}",
        many(lines.entries, "line"),
        many(lines.functions, "function"),
        many(lines.files, "file")
    )
}

fn unwinding(survey: &Survey) -> String {
    if survey.unwindings == 0 {
        return "none".to_owned();
    }
    let empty = survey.count(Odd::EmptyUnwinding);
    let described = survey.unwindings - empty;
    let mut sizes: Vec<_> = survey.unwinding_sizes.iter().collect();
    sizes.sort_by_key(|&(_, count)| Reverse(count));
    let shown = sizes.iter().take(3);
    let shown = shown.map(|((data, header, mapped), n)| format!("{data}/{header}/{mapped} ({n})"));
    let shown = joined(shown, "");
    let more = if sizes.len() > 3 { ", …" } else { "" };
    let layout = if survey.count(Odd::HeaderFirst) > 0 {
        "; header in front"
    } else {
        ""
    };
    format!(
        "{described} described, {empty} with an empty table; data/header/mapped bytes: {shown}{more}{layout}"
    )
}

/// The line or lines that a list has for a record.
type Show = fn(&Survey, RecordHead, &Content<'_>) -> Option<String>;

/// Prints the lists of a dump.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_lists(
    bytes: &[u8],
    survey: &Survey,
    lists: Lists,
    out: &mut dyn Write,
) -> io::Result<()> {
    let lists: [(bool, &str, Show); 4] = [
        (
            lists.records,
            "Records:\n    Offset      Size                 Time Kind           Content",
            record,
        ),
        (
            lists.functions,
            "Functions:\n   Index            Address     Size                 Time        Tid Has Name",
            function,
        ),
        (lists.lines, "Lines:", lines_of),
        (
            lists.unwinding,
            "Unwinding information:\n           Address     Size     Data   Header   Mapped Layout        eh_frame at Name",
            unwinding_of,
        ),
    ];
    for (_, heading, show) in lists.iter().filter(|(is_wanted, ..)| *is_wanted) {
        writeln!(out, "\n{heading}")?;
        let mut reader = Reader::new(bytes).map_err(io::Error::other)?;
        while let Some((head, content)) = reader.step() {
            if let Some(text) = show(survey, head, &content) {
                writeln!(out, "{text}")?;
            }
        }
    }
    Ok(())
}

fn shown_time(survey: &Survey, time: u64) -> String {
    if survey.header.arch_timestamps {
        time.to_string()
    } else {
        seconds(time)
    }
}

fn record(survey: &Survey, head: RecordHead, content: &Content<'_>) -> Option<String> {
    let (kind, text) = match content {
        Content::Header(header) => {
            let (version, pid, time) = (header.version, header.pid, header.timestamp);
            (
                "header",
                format!("version {version}, pid {pid}, timestamp {time}"),
            )
        }
        Content::Load(load) => {
            let (index, at, size) = (load.index, load.address.0, load.size);
            let name = harmless_bytes(load.name);
            ("LOAD", format!("{index} {at:#x} +{size:#x} {name}"))
        }
        Content::Move(moved) => {
            let Move {
                index,
                from,
                to,
                size,
                ..
            } = moved;
            (
                "MOVE",
                format!("{index} {:#x} -> {:#x} +{size:#x}", from.0, to.0),
            )
        }
        Content::DebugInfo(info) => {
            let (at, lines) = (info.code_address().0, many(info.count(), "line"));
            ("DEBUG_INFO", format!("{at:#x} {lines}"))
        }
        Content::Close => ("CLOSE", String::new()),
        Content::Unwinding(unwinding) => {
            let (data, header, mapped) = sizes(unwinding);
            let empty = if unwinding.is_empty() { ", empty" } else { "" };
            (
                "UNWINDING_INFO",
                format!("data {data}, header {header}, mapped {mapped}{empty}"),
            )
        }
        Content::Unknown => ("unknown", format!("kind {}", head.id)),
        Content::Unusable => (kind_name(head.id), unusable(head)),
    };
    let (offset, size, time) = (head.offset, head.size, shown_time(survey, head.time));
    let line = format!("{offset:>#10x} {size:>9} {time:>20} {kind:<14} {text}");
    Some(line.trim_end().to_owned())
}

/// Bytes of an unwinding record's data, of the header in it, and of what is mapped.
const fn sizes(unwinding: &Unwinding<'_>) -> (usize, usize, u64) {
    let header = unwinding.header().len();
    let data = header + unwinding.eh_frame().len();
    (data, header, unwinding.mapped_size())
}

fn unusable(head: RecordHead) -> String {
    if head.present < head.size {
        format!("cut: {} bytes are there", head.present)
    } else {
        "unusable: too short, or of an impossible size".to_owned()
    }
}

const fn kind_name(id: u32) -> &'static str {
    match id {
        0 => "LOAD",
        1 => "MOVE",
        2 => "DEBUG_INFO",
        3 => "CLOSE",
        4 => "UNWINDING_INFO",
        _ => "unknown",
    }
}

fn function(survey: &Survey, _: RecordHead, content: &Content<'_>) -> Option<String> {
    let (index, at, size, time) = match content {
        Content::Load(load) => (load.index, load.address, load.size, load.time),
        Content::Move(moved) => (moved.index, moved.to, moved.size, moved.time),
        _ => return None,
    };
    let (tid, has, name) = match content {
        Content::Load(load) => (load.tid.to_string(), has(load), harmless_bytes(load.name)),
        Content::Move(moved) => {
            let name = format!("[moved from {:#x}]", moved.from.0);
            (String::new(), "---".to_owned(), name.into())
        }
        _ => return None,
    };
    let (at, time) = (at.0, shown_time(survey, time));
    Some(format!(
        "{index:>8} {at:>#18x} {size:>8} {time:>20} {tid:>10} {has} {name}"
    ))
}

/// The marks of a function, which `--help` explains.
fn has(load: &Load<'_>) -> String {
    let lines = if load.lines.is_some() { 'L' } else { '-' };
    let unwinding = match &load.unwinding {
        None => '-',
        Some(unwinding) if unwinding.is_empty() => 'u',
        Some(_) => 'U',
    };
    let is_cut = (load.code.len() as u64) < load.size;
    let cut = if is_cut { 'c' } else { '-' };
    String::from_iter([lines, unwinding, cut])
}

fn lines_of(survey: &Survey, _: RecordHead, content: &Content<'_>) -> Option<String> {
    let Content::Load(load) = content else {
        return None;
    };
    let info = load.lines.as_ref()?;
    let mut text = format!("{:#x} {}:", load.address.0, harmless_bytes(load.name));
    for line in info.lines(&load.of_lines(survey.producer)) {
        let (offset, number, column) = (line.offset, line.line, line.column);
        let file = harmless_bytes(line.file);
        text.push_str(&format!(
            "\n  {offset:>+#8x} {number:>5}:{column:<4} {file}"
        ));
    }
    Some(text)
}

fn unwinding_of(_: &Survey, _: RecordHead, content: &Content<'_>) -> Option<String> {
    let Content::Load(load) = content else {
        return None;
    };
    let unwinding = load.unwinding.as_ref()?;
    let (data, header, mapped) = sizes(unwinding);
    let (layout, base) = if unwinding.is_empty() {
        ("empty", "-".to_owned())
    } else {
        let layout = if unwinding.header_first() {
            "first"
        } else {
            "last"
        };
        let base = unwinding.resolve(load.address, load.size);
        (
            layout,
            base.map_or_else(|| "misfit".to_owned(), |at| format!("{:#x}", at.base.0)),
        )
    };
    let (at, size, name) = (load.address.0, load.size, harmless_bytes(load.name));
    Some(format!(
        "{at:>#18x} {size:>8} {data:>8} {header:>8} {mapped:>8} {layout:<6} {base:>18} {name}"
    ))
}

/// Seconds since 1970 as date and time of day.
fn utc(since_1970: u64) -> String {
    let seconds = i64::try_from(since_1970).unwrap_or(i64::MAX);
    let time = tz::UtcDateTime::from_timespec(seconds, 0);
    time.map_or_else(
        |_| "none".to_owned(),
        |t| {
            let (year, month, day) = (t.year(), t.month(), t.month_day());
            let (hour, minute, second) = (t.hour(), t.minute(), t.second());
            format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates_are_those_of_date() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_260_704), "2026-11-21 11:31:44 UTC");
        assert_eq!(utc(4_102_444_799), "2099-12-31 23:59:59 UTC");
    }
}
