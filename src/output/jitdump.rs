//! `pjit jitdump`: a dump in, its description and lists as text out.
//!
//! The one writer that does not print a profile: its subject is the file itself. Names are arbitrary bytes and
//! stand last in their lines.

use std::io::{self, Write};

use crate::arch::Arch;
use crate::jitdump::dump::{Content, Header, Load, Move, Reader, RecordHead};
use crate::jitdump::lint::{
    Finding, Grade, HeaderClock, header_clock, many, records_on_wall_clock, seconds, unit_name,
};
use crate::jitdump::survey::{Occurrences, Survey, code_of_lines};
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

impl Lists {
    const fn any(self) -> bool {
        self.functions || self.records || self.lines || self.unwinding
    }
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
    let lines = [
        ("Format", format(survey)),
        ("Producer", producer(survey)),
        ("Process", process(survey)),
        ("Header time", header_time(survey)),
        ("Records", records(survey)),
        ("Time", times(survey)),
        ("Code", code(survey)),
        ("Addresses", addresses(survey)),
        ("Lines", debug_info(survey)),
        ("Unwinding", unwinding(survey)),
    ];
    for (title, text) in lines {
        writeln!(out, "  {title:<12} {text}")?;
    }
    write_findings(survey.producer, findings, out)
}

fn write_findings(producer: Producer, findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    if findings.is_empty() {
        return writeln!(out, "  {:<12} none", "Lints");
    }
    let of = |grade| findings.iter().filter(|f| f.grade == grade).count() as u64;
    let counts = [
        (Grade::Error, "error"),
        (Grade::Warning, "warning"),
        (Grade::Note, "note"),
    ];
    let counts = counts.map(|(grade, noun)| (of(grade), noun));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|&(count, noun)| many(count, noun)).collect();
    writeln!(out, "  {:<12} {}", "Lints", counts.join(", "))?;
    for finding in findings {
        let grade = match finding.grade {
            Grade::Error => "error",
            Grade::Warning => "warning",
            Grade::Note => "note",
        };
        let place = finding
            .offset
            .map_or_else(String::new, |offset| format!(" [{offset:#x}]"));
        let usual = if finding.usual {
            format!(" (usual for {})", producer.row().short_name)
        } else {
            String::new()
        };
        writeln!(out, "    {grade}: {}{usual}{place}", finding.text)?;
    }
    Ok(())
}

fn format(survey: &Survey) -> String {
    let header = &survey.header;
    if header.missing {
        return format!(
            "jitdump records without a header; {} bytes",
            survey.file_size
        );
    }
    let order = if header.big_endian {
        "big endian"
    } else {
        "little endian"
    };
    format!(
        "jitdump version {}, {}, {order}, header of {} bytes, flags {:#x}{}; {} bytes",
        header.version,
        machine(header.elf_machine),
        header.size,
        header.flags,
        if header.arch_timestamps {
            " (processor counter)"
        } else {
            ""
        },
        survey.file_size
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
    let name = survey.producer.row().name;
    if survey.producer == Producer::Unknown {
        return format!("{name} (nothing characteristic in {})", many(asked, "name"));
    }
    let by = if like > 0 {
        format!("by {like} of {}", many(asked, "name"))
    } else {
        "by the form of header or records".to_owned()
    };
    format!("{name}, {by}")
}

fn process(survey: &Survey) -> String {
    let writers = &survey.writers;
    let mut text = format!("pid {}", survey.header.pid);
    let pids: Vec<u32> = writers.pids.keys().copied().collect();
    if !pids.is_empty() && pids != [survey.header.pid] {
        text.push_str(&format!("; records of pid {}", listed(&pids)));
    }
    let tids: Vec<u32> = writers.tids.keys().copied().collect();
    match tids.as_slice() {
        [] => {}
        [tid] => text.push_str(&format!("; code loaded by thread {tid}")),
        _ => text.push_str(&format!("; code loaded by threads {}", listed(&tids))),
    }
    text
}

/// The first few of them.
fn listed(numbers: &[u32]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = numbers.iter().take(SHOWN).map(u32::to_string).collect();
    let more = if numbers.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
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
            let whole_second = time / (1_000_000_000 / unit);
            format!(
                "{time}, {} since 1970: {}",
                unit_name(unit),
                utc(whole_second)
            )
        }
        HeaderClock::Unknown => format!("{time}, on an unknown clock"),
    }
}

fn records(survey: &Survey) -> String {
    let counts = &survey.counts;
    let unknown: u64 = counts.unknown;
    let kinds = [
        (counts.loads, "LOAD"),
        (counts.moves, "MOVE"),
        (counts.debug_infos, "DEBUG_INFO"),
        (counts.unwindings, "UNWINDING_INFO"),
        (counts.closes, "CLOSE"),
        (unknown, "unknown"),
    ];
    let shown: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    if shown.is_empty() {
        "none".to_owned()
    } else {
        shown.join(", ")
    }
}

fn times(survey: &Survey) -> String {
    let times = &survey.times;
    let Some(first) = times.first else {
        return "none".to_owned();
    };
    if survey.header.arch_timestamps {
        return format!("{first} to {} (counter values)", times.last);
    }
    let clock = if records_on_wall_clock(survey) {
        "nanoseconds since 1970"
    } else {
        "CLOCK_MONOTONIC, by the look of it"
    };
    let (from, to) = (seconds(first), seconds(times.last));
    format!(
        "{from} to {to} s, {} s in all ({clock})",
        seconds(times.last.saturating_sub(first))
    )
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
    let code = &survey.code;
    let parts = [
        (code.repeated, "the same code again"),
        (code.replaced, "in the place of an earlier function"),
        (code.overlapping, "across earlier functions"),
    ];
    let used: Vec<String> = parts
        .iter()
        .filter(|(found, _)| found.count > 0)
        .map(|(found, what)| format!("{} {what}", many(found.count, "LOAD")))
        .collect();
    if used.is_empty() {
        "none used twice".to_owned()
    } else {
        used.join(", ")
    }
}

fn debug_info(survey: &Survey) -> String {
    let debug = &survey.debug;
    if debug.functions == 0 {
        return "none".to_owned();
    }
    format!(
        "{} in {} of {}",
        many(debug.entries, "line"),
        many(debug.functions, "function"),
        many(debug.files, "file")
    )
}

fn unwinding(survey: &Survey) -> String {
    let facts = &survey.unwinding;
    if facts.functions == 0 {
        return "none".to_owned();
    }
    let described = facts.functions - facts.empty.count;
    let mut text = format!(
        "{described} described, {} with an empty table",
        facts.empty.count
    );
    let mut sizes: Vec<(&(u64, u64, u64), &Occurrences)> = facts.sizes.iter().collect();
    sizes.sort_by_key(|&(sizes, found)| (std::cmp::Reverse(found.count), *sizes));
    let shown: Vec<String> = sizes
        .iter()
        .take(3)
        .map(|((data, header, mapped), found)| {
            format!("{data}/{header}/{mapped} ({})", found.count)
        })
        .collect();
    let more = if sizes.len() > 3 { ", …" } else { "" };
    let layout = if facts.header_first.count > 0 {
        "; header in front"
    } else {
        ""
    };
    text.push_str(&format!(
        "; data/header/mapped bytes: {}{more}{layout}",
        shown.join(", ")
    ));
    text
}

/// Prints the lists of a dump.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_lists(
    bytes: &[u8],
    producer: Producer,
    lists: Lists,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !lists.any() {
        return Ok(());
    }
    if lists.records {
        writeln!(
            out,
            "\nRecords:\n{:>10} {:>9} {:>20} {:<14} Content",
            "Offset", "Size", "Time", "Kind"
        )?;
        each(bytes, |clock, head, content| {
            record(clock, head, content, out)
        })?;
    }
    if lists.functions {
        writeln!(
            out,
            "\nFunctions:\n{:>8} {:>18} {:>8} {:>20} {:>10} {:<3} Name",
            "Index", "Address", "Size", "Time", "Tid", "Has"
        )?;
        each(bytes, |clock, _, content| function(clock, content, out))?;
    }
    if lists.lines {
        writeln!(out, "\nLines:")?;
        each(bytes, |_, _, content| lines_of(content, producer, out))?;
    }
    if lists.unwinding {
        writeln!(
            out,
            "\nUnwinding information:\n{:>18} {:>8} {:>8} {:>8} {:>8} {:<6} {:>18} Name",
            "Address", "Size", "Data", "Header", "Mapped", "Layout", "eh_frame at"
        )?;
        each(bytes, |_, _, content| unwinding_of(content, out))?;
    }
    Ok(())
}

fn each<'a>(
    bytes: &'a [u8],
    mut print: impl FnMut(Clock, RecordHead, &Content<'a>) -> io::Result<()>,
) -> io::Result<()> {
    let Ok(mut reader) = Reader::new(bytes) else {
        return Ok(());
    };
    let clock = Clock {
        counts_cycles: reader.header().arch_timestamps,
    };
    while let Some((head, content)) = reader.step() {
        print(clock, head, &content)?;
    }
    Ok(())
}

/// How a dump's times are to be read.
#[derive(Clone, Copy)]
struct Clock {
    counts_cycles: bool,
}

impl Clock {
    fn show(self, time: u64) -> String {
        if self.counts_cycles {
            time.to_string()
        } else {
            seconds(time)
        }
    }
}

fn record(
    clock: Clock,
    head: RecordHead,
    content: &Content<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (kind, text) = match content {
        Content::Header(header) => ("header", header_text(header)),
        Content::Load(load) => (
            "LOAD",
            format!(
                "{} {:#x} +{:#x} {}",
                load.index,
                load.address.0,
                load.size,
                harmless_bytes(load.name)
            ),
        ),
        Content::Move(moved) => ("MOVE", move_text(moved)),
        Content::DebugInfo(info) => (
            "DEBUG_INFO",
            format!(
                "{:#x} {}",
                info.code_address().0,
                many(info.count(), "line")
            ),
        ),
        Content::Close => ("CLOSE", String::new()),
        Content::Unwinding(unwinding) => ("UNWINDING_INFO", sizes_text(unwinding)),
        Content::Unknown => ("unknown", format!("kind {}", head.id)),
        Content::Unusable => (kind_name(head.id), unusable(head)),
    };
    let time = clock.show(head.time);
    writeln!(
        out,
        "{}",
        format!(
            "{:>#10x} {:>9} {time:>20} {kind:<14} {text}",
            head.offset, head.size
        )
        .trim_end()
    )
}

fn header_text(header: &Header) -> String {
    format!(
        "version {}, pid {}, timestamp {}",
        header.version, header.pid, header.timestamp
    )
}

fn move_text(moved: &Move) -> String {
    format!(
        "{} {:#x} -> {:#x} +{:#x}",
        moved.index, moved.from.0, moved.to.0, moved.size
    )
}

fn sizes_text(unwinding: &Unwinding<'_>) -> String {
    let header = unwinding.header().len();
    let empty = if unwinding.is_empty() { ", empty" } else { "" };
    format!(
        "data {}, header {header}, mapped {}{empty}",
        header + unwinding.eh_frame().len(),
        unwinding.mapped_size()
    )
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

fn function(clock: Clock, content: &Content<'_>, out: &mut dyn Write) -> io::Result<()> {
    match content {
        Content::Load(load) => {
            let has = [
                if load.lines.is_some() { 'L' } else { '-' },
                match load.unwinding {
                    None => '-',
                    Some(unwinding) if unwinding.is_empty() => 'u',
                    Some(_) => 'U',
                },
                if (load.code.len() as u64) < load.size {
                    'c'
                } else {
                    '-'
                },
            ];
            let has: String = has.iter().collect();
            writeln!(
                out,
                "{:>8} {:>#18x} {:>8} {:>20} {:>10} {has} {}",
                load.index,
                load.address.0,
                load.size,
                clock.show(load.time),
                load.tid,
                harmless_bytes(load.name)
            )
        }
        Content::Move(moved) => writeln!(
            out,
            "{:>8} {:>#18x} {:>8} {:>20} {:>10} --- [moved from {:#x}]",
            moved.index,
            moved.to.0,
            moved.size,
            clock.show(moved.time),
            "",
            moved.from.0
        ),
        _ => Ok(()),
    }
}

fn lines_of(content: &Content<'_>, producer: Producer, out: &mut dyn Write) -> io::Result<()> {
    let Content::Load(load) = content else {
        return Ok(());
    };
    let Some(info) = &load.lines else {
        return Ok(());
    };
    writeln!(out, "{:#x} {}:", load.address.0, harmless_bytes(load.name))?;
    for line in info.lines(&code_of_lines(load, producer)) {
        writeln!(
            out,
            "  {:>+#8x} {:>5}:{:<4} {}",
            line.offset,
            line.line,
            line.column,
            harmless_bytes(line.file)
        )?;
    }
    Ok(())
}

fn unwinding_of(content: &Content<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Content::Load(load) = content else {
        return Ok(());
    };
    let Some(unwinding) = &load.unwinding else {
        return Ok(());
    };
    let header = unwinding.header().len();
    writeln!(
        out,
        "{:>#18x} {:>8} {:>8} {header:>8} {:>8} {:<6} {:>18} {}",
        load.address.0,
        load.size,
        header + unwinding.eh_frame().len(),
        unwinding.mapped_size(),
        layout(unwinding),
        base(load, unwinding),
        harmless_bytes(load.name)
    )
}

fn layout(unwinding: &Unwinding<'_>) -> &'static str {
    if unwinding.is_empty() {
        "empty"
    } else if unwinding.header_first() {
        "first"
    } else {
        "last"
    }
}

fn base(load: &Load<'_>, unwinding: &Unwinding<'_>) -> String {
    if unwinding.is_empty() {
        return "-".to_owned();
    }
    unwinding
        .resolve(load.address, load.size)
        .map_or_else(|| "misfit".to_owned(), |at| format!("{:#x}", at.base.0))
}

/// Seconds since 1970 as date and time of day, UTC (Gregorian calendar, by eras of 400 years from March 1st, 0).
fn utc(since_1970: u64) -> String {
    let (days, second) = (since_1970 / 86_400 + 719_468, since_1970 % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02} UTC",
        second % 60
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
