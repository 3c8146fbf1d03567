//! What is wrong or unusual in a dump: facts in, findings out, for `pjit jitdump`.
//!
//! A finding is an error where readers lose or misread something, a warning where the dump leaves the format
//! and a reader has to know, a note where it is only good to know. What perf does is told by
//! `util/jitdump.c` and `util/genelf.c`, the format by `jitdump-specification.txt`. Deviations that a runtime is
//! known for say so: its author need not search for the one dump that has them.

use super::dump::CutReason;
use super::survey::{Occurrences, Survey};
use crate::runtimes::{Lapse, Runtime};

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Grade {
    /// Good to know.
    Note,
    /// Leaves the format; readers have to know.
    Warning,
    /// Readers lose or misread something, or refuse the file.
    Error,
}

/// One thing that is wrong or unusual.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub grade: Grade,
    /// What it is, in one line of plain characters.
    pub text: String,
    /// Where it is first, in bytes from the start of the file.
    pub offset: Option<u64>,
    /// Whether the runtime that wrote the dump always does this.
    pub usual: bool,
}

/// The clock that a timestamp of the file header is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderClock {
    /// No timestamp.
    None,
    /// That of the records.
    Records,
    /// Since 1970, in units of so many nanoseconds.
    Wall {
        /// 1 for nanoseconds, 1000 for microseconds.
        unit: u64,
    },
    /// Neither; or nothing to compare it with.
    Unknown,
}

/// When the format was made, and 2100, in seconds since 1970.
const OF_JITDUMPS: std::ops::Range<u64> = 1_388_534_400..4_102_444_800;
const SECOND: u64 = 1_000_000_000;
/// A runtime writes its first record so soon.
const HOUR: u64 = 3600 * SECOND;
/// The highest version, and the flags, that perf accepts.
const VERSION: u32 = 1;
const FLAGS: u64 = 1;

/// The clock of the header's timestamp.
#[must_use]
pub fn header_clock(survey: &Survey) -> HeaderClock {
    let time = survey.header.timestamp;
    if time == 0 || survey.header.missing {
        return HeaderClock::None;
    }
    let first = survey.times.first;
    if first.is_some_and(|first| first.abs_diff(time) < HOUR) {
        return HeaderClock::Records;
    }
    // The nanoseconds of three weeks' uptime look like microseconds since 1970, but then the first record
    // comes soon after.
    let unit = [1, 1_000]
        .into_iter()
        .find(|unit| OF_JITDUMPS.contains(&(time / (SECOND / unit))));
    match (unit, first) {
        (Some(unit), Some(_)) => HeaderClock::Wall { unit },
        // The records of a process that was attached to may begin much later.
        (None, Some(first)) if time < first => HeaderClock::Records,
        _ => HeaderClock::Unknown,
    }
}

/// Whether timestamps of records count from 1970.
#[must_use]
pub fn records_on_wall_clock(survey: &Survey) -> bool {
    !survey.header.arch_timestamps
        && survey
            .times
            .first
            .is_some_and(|first| OF_JITDUMPS.contains(&(first / SECOND)))
}

/// Judges a dump. `named` is the process id in its file's name, where it has one. Errors come first.
#[must_use]
pub fn lint(survey: &Survey, named: Option<u32>) -> Vec<Finding> {
    let mut findings = Findings {
        runtime: survey.producer.row(),
        list: Vec::new(),
    };
    header(survey, named, &mut findings);
    clocks(survey, &mut findings);
    writers(survey, &mut findings);
    records(survey, &mut findings);
    loads(survey, &mut findings);
    debug_info(survey, &mut findings);
    unwinding(survey, &mut findings);
    let mut list = findings.list;
    list.sort_by_key(|finding| std::cmp::Reverse(finding.grade));
    list
}

struct Findings {
    runtime: &'static Runtime,
    list: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, grade: Grade, offset: Option<u64>, lapse: Option<Lapse>, text: String) {
        self.list.push(Finding {
            grade,
            text,
            offset,
            usual: lapse.is_some_and(|lapse| self.runtime.has(lapse)),
        });
    }

    /// About records that were found, if any were.
    fn found(
        &mut self,
        grade: Grade,
        found: Occurrences,
        lapse: Option<Lapse>,
        text: impl FnOnce(u64) -> String,
    ) {
        if found.count > 0 {
            self.add(grade, Some(found.first), lapse, text(found.count));
        }
    }
}

fn header(survey: &Survey, named: Option<u32>, to: &mut Findings) {
    use Grade::{Error, Note, Warning};
    let header = &survey.header;
    if header.missing {
        let text = "no file header where it should be; perf refuses the file".into();
        return to.add(Error, Some(0), None, text);
    }
    if header.version > VERSION {
        let text = format!(
            "version {}; perf refuses what is above {VERSION}",
            header.version
        );
        to.add(Error, None, None, text);
    } else if header.version == 0 {
        to.add(Warning, None, None, "version 0; the only one is 1".into());
    }
    header_size(survey, to);
    if header.elf_machine == 0 {
        let text = "the header names no machine (elf_mach is 0)".into();
        to.add(Warning, None, Some(Lapse::NoMachine), text);
    }
    if header.pad1 != 0 {
        let text = format!("the header's padding is not 0 but {:#010x}", header.pad1);
        to.add(Note, None, Some(Lapse::Padding), text);
    }
    if header.flags & !FLAGS != 0 {
        let text = format!(
            "unknown flags {:#x}; perf refuses the file",
            header.flags & !FLAGS
        );
        to.add(Error, None, None, text);
    }
    if let Some(named) = named.filter(|&named| named != header.pid) {
        let text = format!(
            "the file is named for pid {named}, its header is of pid {}; perf inject refuses one that is not of the process",
            header.pid
        );
        to.add(Warning, None, None, text);
    }
}

fn header_size(survey: &Survey, to: &mut Findings) {
    let (claimed, real) = (u64::from(survey.header.size), survey.records_at);
    if claimed < real {
        let text = format!(
            "the header says it has {claimed} bytes; it has {real}, and records begin behind them"
        );
        to.add(Grade::Warning, None, Some(Lapse::HeaderSize), text);
    } else if claimed > real {
        let text = format!(
            "the header says it has {claimed} bytes, but records begin at {real}; perf begins to read at {claimed}"
        );
        to.add(Grade::Error, None, None, text);
    } else if real > 40 {
        let text = format!(
            "the header has {} bytes more than the 40 of version 1",
            real - 40
        );
        to.add(Grade::Note, None, None, text);
    }
}

fn clocks(survey: &Survey, to: &mut Findings) {
    use Grade::{Note, Warning};
    let (times, header) = (&survey.times, &survey.header);
    let wall_clock = records_on_wall_clock(survey);
    match header_clock(survey) {
        HeaderClock::None if !header.missing => {
            to.add(Note, None, None, "the header has no timestamp".into());
        }
        HeaderClock::Wall { unit } if !wall_clock => {
            let text = format!(
                "the header's timestamp is wall-clock time in {}, those of the records are not: it cannot tell how clocks are related",
                unit_name(unit)
            );
            to.add(Warning, None, Some(Lapse::WallClockHeader), text);
        }
        HeaderClock::Unknown if times.first.is_some() => {
            let text =
                "the header's timestamp is on another clock than those of the records".into();
            to.add(Warning, None, None, text);
        }
        HeaderClock::Records if times.first.is_some_and(|first| first < header.timestamp) => {
            let text = "records are older than the header: did the process append to the file of an earlier one?".into();
            to.add(Warning, None, None, text);
        }
        _ => {}
    }
    if header.arch_timestamps {
        let text = "timestamps are values of the processor's counter; only a recording with a TIME_CONV record can place them".into();
        to.add(Note, None, None, text);
    }
    if wall_clock {
        let text = "timestamps are wall-clock time; pjit record takes CLOCK_MONOTONIC".into();
        to.add(Warning, None, None, text);
    }
    to.found(Warning, times.backwards, None, |n| {
        let step = seconds(times.longest_step_back);
        format!(
            "{} earlier than the record before, by up to {step} s",
            many(n, "record")
        )
    });
    to.found(Warning, times.zero, None, |n| {
        format!("{} without a timestamp", many(n, "record"))
    });
}

fn writers(survey: &Survey, to: &mut Findings) {
    use Grade::Warning;
    let writers = &survey.writers;
    to.found(Warning, writers.foreign, None, |n| {
        format!(
            "{} of another process than the header's (forked with the file open, or appended to an old file)",
            many(n, "record")
        )
    });
    to.found(
        Warning,
        writers.impossible_tids,
        Some(Lapse::PthreadIds),
        |n| {
            format!(
                "{} by a thread id that no thread has (a pthread_t, not a tid?)",
                many(n, "LOAD")
            )
        },
    );
    to.found(Warning, survey.headers_within, None, |n| {
        format!(
            "{} among the records: several writers, or a file appended to",
            many(n, "more header")
        )
    });
}

fn records(survey: &Survey, to: &mut Findings) {
    use Grade::{Error, Note, Warning};
    cut(survey, to);
    to.found(Error, survey.unusable, None, |n| {
        format!(
            "{} too short for their kind, or of an impossible size",
            many(n, "record")
        )
    });
    for (&kind, &found) in &survey.unknown_kinds {
        to.found(Warning, found, None, |n| {
            format!(
                "{} of the unknown kind {kind}; readers skip them",
                many(n, "record")
            )
        });
    }
    to.found(Warning, survey.after_close, None, |n| {
        format!(
            "{} behind a CLOSE, which should be the last",
            many(n, "record")
        )
    });
    to.found(Error, survey.lost_moves, None, |n| {
        format!("{} from an address where no code is", many(n, "MOVE"))
    });
    to.found(Warning, survey.unlike_moves, None, |n| {
        format!(
            "{} with another size or code_index than the code they move",
            many(n, "MOVE")
        )
    });
    if survey.counts.closes == 0 && survey.cut.is_none() {
        let writes_one = survey.producer.is_known() && !to.runtime.has(Lapse::NoClose);
        let text = if writes_one {
            "no CLOSE record, which this runtime writes when it ends: was it killed?"
        } else {
            "no CLOSE record at the end"
        };
        let grade = if writes_one { Warning } else { Note };
        to.add(grade, None, Some(Lapse::NoClose), text.into());
    }
}

fn cut(survey: &Survey, to: &mut Findings) {
    let Some(cut) = &survey.cut else {
        return;
    };
    let text = match (cut.reason, survey.cut_size) {
        (CutReason::EndOfFile, Some(size)) => format!(
            "cut: {} bytes behind the last whole record, of {size} that the next one claims (was the process killed?)",
            cut.rest
        ),
        (CutReason::EndOfFile, None) => format!(
            "cut: {} bytes behind the last whole record, too few for the head of one (was the process killed?)",
            cut.rest
        ),
        (CutReason::TooSmall, _) => format!(
            "a record claims fewer bytes than its own head has: nothing behind it can be read, {} bytes",
            cut.rest
        ),
    };
    to.add(Grade::Error, Some(cut.offset), None, text);
}

fn loads(survey: &Survey, to: &mut Findings) {
    use Grade::{Error, Note, Warning};
    let code = &survey.code;
    if survey.counts.loads == 0 {
        let text = "no function in it: the runtime had none, or no names of them, or was killed before it wrote any";
        to.add(Warning, None, None, text.into());
    }
    to.found(Error, code.nowhere, None, |n| {
        format!("{} without an address", many(n, "LOAD"))
    });
    to.found(Error, code.wrapping, None, |n| {
        format!("{} beyond the last address there is", many(n, "LOAD"))
    });
    to.found(Warning, code.reaching, None, |n| {
        format!(
            "{} by a few bytes across the end of one function and the start of the next: are sizes rounded up?",
            many(n, "LOAD")
        )
    });
    to.found(Error, code.unterminated, None, |n| {
        format!("{} with a name that no NUL ends", many(n, "LOAD"))
    });
    to.found(Warning, code.no_vma, Some(Lapse::NoVma), |n| {
        format!(
            "{} with vma 0; only code_addr tells where the code is",
            many(n, "LOAD")
        )
    });
    to.found(Warning, code.other_vma, None, |n| {
        format!(
            "{} with a vma that is not code_addr; perf takes code_addr",
            many(n, "LOAD")
        )
    });
    to.found(Warning, code.short, Some(Lapse::ShortCode), |n| {
        format!(
            "{} with fewer bytes of code than code_size says",
            many(n, "LOAD")
        )
    });
    to.found(Warning, code.apart, None, |n| {
        format!("{} with bytes between name and code; perf reads code from the record's end, others behind the name", many(n, "LOAD"))
    });
    to.found(Warning, code.empty, None, |n| {
        format!("{} of no code at all (code_size 0)", many(n, "LOAD"))
    });
    to.found(Warning, code.repeated_index, None, |n| {
        format!(
            "{} with the code_index of an earlier one; a MOVE cannot tell them apart",
            many(n, "LOAD")
        )
    });
    to.found(Note, code.nameless, None, |n| {
        format!("{} without a name", many(n, "LOAD"))
    });
    to.found(Note, code.repeated, Some(Lapse::Repeats), |n| {
        format!(
            "{} of code that was loaded before: same address, same bytes",
            many(n, "LOAD")
        )
    });
}

fn debug_info(survey: &Survey, to: &mut Findings) {
    use Grade::{Error, Note, Warning};
    let debug = &survey.debug;
    to.found(Error, debug.unreadable, None, |n| {
        format!("{} with line tables that cannot be read", many(n, "LOAD"))
    });
    to.found(Warning, debug.shifted, Some(Lapse::ShiftedLines), |n| {
        format!("{} with line addresses 0x40 too high (an ELF header's size, for old perf): perf's lines are off by 64 bytes", many(n, "LOAD"))
    });
    to.found(
        Warning,
        debug.broken_names,
        Some(Lapse::BrokenFileNames),
        |n| {
            format!(
                "{} with file names in line tables that are not text (freed memory?)",
                many(n, "LOAD")
            )
        },
    );
    to.found(Warning, debug.stray, None, |n| {
        format!(
            "{} with no LOAD of its address behind it",
            many(n, "DEBUG_INFO record")
        )
    });
    to.found(Warning, debug.late, None, |n| {
        format!(
            "{} behind the LOAD they describe; they belong in front of it",
            many(n, "DEBUG_INFO record")
        )
    });
    to.found(Note, debug.before, Some(Lapse::LinesBefore), |n| {
        format!(
            "{} with lines for addresses before the code",
            many(n, "LOAD")
        )
    });
    to.found(Note, debug.behind, None, |n| {
        format!(
            "{} with lines for addresses behind the code",
            many(n, "LOAD")
        )
    });
}

fn unwinding(survey: &Survey, to: &mut Findings) {
    use Grade::{Error, Note, Warning};
    let facts = &survey.unwinding;
    to.found(Error, facts.misfit, None, |n| {
        format!("{} with frame descriptions that lie outside the code, whatever the address of .eh_frame", many(n, "LOAD"))
    });
    to.found(Warning, facts.stray, None, |n| {
        format!(
            "{} with no LOAD behind it",
            many(n, "UNWINDING_INFO record")
        )
    });
    to.found(Warning, facts.header_first, Some(Lapse::HeaderFirst), |n| {
        format!("{} with .eh_frame_hdr in front, as the specification has it; perf takes the end for it", many(n, "UNWINDING_INFO record"))
    });
    to.found(Note, facts.empty, Some(Lapse::EmptyUnwinding), |n| {
        format!(
            "{} with an empty unwinding table, which asks for frame pointers",
            many(n, "LOAD")
        )
    });
}

/// What a unit of so many nanoseconds is called.
#[must_use]
pub const fn unit_name(nanoseconds: u64) -> &'static str {
    match nanoseconds {
        1 => "nanoseconds",
        _ => "microseconds",
    }
}

/// Nanoseconds as seconds with nine digits.
#[must_use]
pub fn seconds(nanoseconds: u64) -> String {
    format!("{}.{:09}", nanoseconds / SECOND, nanoseconds % SECOND)
}

/// `1 LOAD`, `2 LOADs`
#[must_use]
pub fn many(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}
