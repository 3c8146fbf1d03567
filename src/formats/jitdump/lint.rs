//! What is wrong or unusual in a dump: facts in, findings out, for `pjit jitdump`.
//!
//! A finding is an error where readers lose or misread something, a warning where the dump leaves the format
//! and a reader has to know, a note where it is only good to know. What perf does is told by
//! `util/jitdump.c` and `util/genelf.c`, the format by `jitdump-specification.txt`. Deviations that a runtime is
//! known for say so: its author need not search for the one dump that has them.

use std::ops::RangeBounds;

use Grade::{Error, Note, Warning};

use super::dump::CutReason;
use super::survey::{Odd, Survey};
use crate::runtimes::Lapse;

/// Severity.
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
    /// Severity.
    pub grade: Grade,
    /// The finding in one line of plain characters.
    pub text: String,
    /// Offset of the first record in the file.
    pub offset: Option<u64>,
    /// True if the runtime that wrote the dump always does this.
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

/// True if timestamps of records count from 1970.
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
        survey,
        list: Vec::new(),
    };
    findings.header(named);
    findings.clocks();
    findings.cut();
    findings.odd(..=Odd::UnlikeMove);
    findings.end();
    findings.odd(Odd::Nowhere..);
    let mut list = findings.list;
    list.sort_by_key(|finding| std::cmp::Reverse(finding.grade));
    list
}

struct Findings<'s> {
    survey: &'s Survey,
    list: Vec<Finding>,
}

impl Findings<'_> {
    fn add(
        &mut self,
        grade: Grade,
        offset: Option<u64>,
        lapse: Option<Lapse>,
        text: impl Into<String>,
    ) {
        let runtime = self.survey.producer.row();
        self.list.push(Finding {
            grade,
            text: text.into(),
            offset,
            usual: lapse.is_some_and(|lapse| runtime.has(lapse)),
        });
    }

    /// About the file as a whole.
    fn say(&mut self, grade: Grade, text: impl Into<String>) {
        self.add(grade, None, None, text);
    }

    /// About records that are odd in one of these ways.
    fn odd(&mut self, ways: impl RangeBounds<Odd>) {
        let survey = self.survey;
        for (&odd, found) in survey.odd.range(ways) {
            let plural = if found.count == 1 { "" } else { "s" };
            let text = text(odd).replacen("(s)", plural, 1);
            let more = match odd {
                Odd::Backwards => {
                    format!(", by up to {} s", seconds(survey.times.longest_step_back))
                }
                Odd::UnknownKind(kind) => format!(" {kind}; readers skip them"),
                _ => String::new(),
            };
            let text = format!("{} {text}{more}", found.count);
            self.add(grade(odd), Some(found.first), lapse(odd), text);
        }
    }

    fn header(&mut self, named: Option<u32>) {
        let header = &self.survey.header;
        if header.missing {
            let text = "no file header where it should be; perf refuses the file";
            return self.add(Error, Some(0), None, text);
        }
        if header.version > VERSION {
            let version = header.version;
            let text = format!("version {version}; perf refuses what is above {VERSION}");
            self.say(Error, text);
        } else if header.version == 0 {
            self.say(Warning, "version 0; the only one is 1");
        }
        self.header_size();
        if header.elf_machine == 0 {
            let text = "the header names no machine (elf_mach is 0)";
            self.add(Warning, None, Some(Lapse::NoMachine), text);
        }
        if header.pad1 != 0 {
            let text = format!("the header's padding is not 0 but {:#010x}", header.pad1);
            self.add(Note, None, Some(Lapse::Padding), text);
        }
        let unknown = header.flags & !FLAGS;
        if unknown != 0 {
            let text = format!("unknown flags {unknown:#x}; perf refuses the file");
            self.say(Error, text);
        }
        if let Some(named) = named.filter(|&named| named != header.pid) {
            let text = format!(
                "the file is named for pid {named}, its header is of pid {}; perf inject refuses one that is not of the process",
                header.pid
            );
            self.say(Warning, text);
        }
    }

    fn header_size(&mut self) {
        let (claimed, real) = (u64::from(self.survey.header.size), self.survey.records_at);
        let says = format!("the header says it has {claimed} bytes");
        if claimed < real {
            let text = format!("{says}; it has {real}, and records begin behind them");
            self.add(Warning, None, Some(Lapse::HeaderSize), text);
        } else if claimed > real {
            let text =
                format!("{says}, but records begin at {real}; perf begins to read at {claimed}");
            self.say(Error, text);
        } else if real > 40 {
            let more = real - 40;
            let text = format!("the header has {more} bytes more than the 40 of version 1");
            self.say(Note, text);
        }
    }

    fn clocks(&mut self) {
        let (first, header) = (self.survey.times.first, &self.survey.header);
        let wall_clock = records_on_wall_clock(self.survey);
        match header_clock(self.survey) {
            HeaderClock::None if !header.missing => {
                self.say(Note, "the header has no timestamp");
            }
            HeaderClock::Wall { unit } if !wall_clock => {
                let text = format!(
                    "the header's timestamp is wall-clock time in {}, those of the records are not: it cannot tell how clocks are related",
                    unit_name(unit)
                );
                self.add(Warning, None, Some(Lapse::WallClockHeader), text);
            }
            HeaderClock::Unknown if first.is_some() => {
                let text = "the header's timestamp is on another clock than those of the records";
                self.say(Warning, text);
            }
            HeaderClock::Records if first.is_some_and(|first| first < header.timestamp) => {
                let text = "records are older than the header: did the process append to the file of an earlier one?";
                self.say(Warning, text);
            }
            _ => {}
        }
        if header.arch_timestamps {
            let text = "timestamps are values of the processor's counter; only a recording with a TIME_CONV record can place them";
            self.say(Note, text);
        }
        if wall_clock {
            let text = "timestamps are wall-clock time; pjit record takes CLOCK_MONOTONIC";
            self.say(Warning, text);
        }
    }

    fn cut(&mut self) {
        let Some(cut) = &self.survey.cut else {
            return;
        };
        let rest = cut.rest;
        let text = match (cut.reason, self.survey.cut_size) {
            (CutReason::EndOfFile, Some(size)) => format!(
                "cut: {rest} bytes behind the last whole record, of {size} that the next one claims (was the process killed?)"
            ),
            (CutReason::EndOfFile, None) => format!(
                "cut: {rest} bytes behind the last whole record, too few for the head of one (was the process killed?)"
            ),
            (CutReason::TooSmall, _) => format!(
                "a record claims fewer bytes than its own head has: nothing behind it can be read, {rest} bytes"
            ),
        };
        self.add(Error, Some(cut.offset), None, text);
    }

    /// A dump without an end, or without functions.
    fn end(&mut self) {
        let Survey { counts, cut, .. } = self.survey;
        let producer = self.survey.producer;
        if counts.closes == 0 && cut.is_none() {
            let (grade, text) = if producer.is_known() && !producer.row().has(Lapse::NoClose) {
                (
                    Warning,
                    "no CLOSE record, which this runtime writes when it ends: was it killed?",
                )
            } else {
                (Note, "no CLOSE record at the end")
            };
            self.add(grade, None, Some(Lapse::NoClose), text);
        }
        if counts.loads == 0 {
            let text = "no function in it: the runtime had none, or no names of them, or was killed before it wrote any";
            self.say(Warning, text);
        }
    }
}

const fn grade(odd: Odd) -> Grade {
    match odd {
        Odd::Unusable
        | Odd::LostMove
        | Odd::Nowhere
        | Odd::Wrapping
        | Odd::Unterminated
        | Odd::UnreadableLines
        | Odd::MisfitUnwinding => Error,
        Odd::Nameless
        | Odd::Repeated
        | Odd::LinesBefore
        | Odd::LinesBehind
        | Odd::EmptyUnwinding => Note,
        _ => Warning,
    }
}

/// Words that follow the number of records; `(s)` becomes the plural's.
const fn text(odd: Odd) -> &'static str {
    match odd {
        Odd::Backwards => "record(s) earlier than the record before",
        Odd::NoTime => "record(s) without a timestamp",
        Odd::Foreign => {
            "record(s) of another process than the header's (forked with the file open, or appended to an old file)"
        }
        Odd::ImpossibleTid => "LOAD(s) by a thread id that no thread has (a pthread_t, not a tid?)",
        Odd::HeaderWithin => {
            "more header(s) among the records: several writers, or a file appended to"
        }
        Odd::Unusable => "record(s) too short for their kind, or of an impossible size",
        Odd::UnknownKind(_) => "record(s) of the unknown kind",
        Odd::AfterClose => "record(s) behind a CLOSE, which should be the last",
        Odd::LostMove => "MOVE(s) from an address where no code is",
        Odd::UnlikeMove => "MOVE(s) with another size or code_index than the code they move",
        Odd::Nowhere => "LOAD(s) without an address",
        Odd::Wrapping => "LOAD(s) beyond the last address there is",
        Odd::Reaching => {
            "LOAD(s) by a few bytes across the end of one function and the start of the next: are sizes rounded up?"
        }
        Odd::Unterminated => "LOAD(s) with a name that no NUL ends",
        Odd::NoVma => "LOAD(s) with vma 0; only code_addr tells where the code is",
        Odd::OtherVma => "LOAD(s) with a vma that is not code_addr; perf takes code_addr",
        Odd::ShortCode => "LOAD(s) with fewer bytes of code than code_size says",
        Odd::Apart => {
            "LOAD(s) with bytes between name and code; perf reads code from the record's end, others behind the name"
        }
        Odd::Empty => "LOAD(s) of no code at all (code_size 0)",
        Odd::RepeatedIndex => {
            "LOAD(s) with the code_index of an earlier one; a MOVE cannot tell them apart"
        }
        Odd::Nameless => "LOAD(s) without a name",
        Odd::Repeated => "LOAD(s) of code that was loaded before: same address, same bytes",
        Odd::UnreadableLines => "LOAD(s) with line tables that cannot be read",
        Odd::ShiftedLines => {
            "LOAD(s) with line addresses 0x40 too high (an ELF header's size, for old perf): perf's lines are off by 64 bytes"
        }
        Odd::BrokenFileNames => {
            "LOAD(s) with file names in line tables that are not text (freed memory?)"
        }
        Odd::StrayLines => "DEBUG_INFO record(s) with no LOAD of its address behind it",
        Odd::LateLines => {
            "DEBUG_INFO record(s) behind the LOAD they describe; they belong in front of it"
        }
        Odd::LinesBefore => "LOAD(s) with lines for addresses before the code",
        Odd::LinesBehind => "LOAD(s) with lines for addresses behind the code",
        Odd::MisfitUnwinding => {
            "LOAD(s) with frame descriptions that lie outside the code, whatever the address of .eh_frame"
        }
        Odd::StrayUnwinding => "UNWINDING_INFO record(s) with no LOAD behind it",
        Odd::HeaderFirst => {
            "UNWINDING_INFO record(s) with .eh_frame_hdr in front, as the specification has it; perf takes the end for it"
        }
        Odd::EmptyUnwinding => {
            "LOAD(s) with an empty unwinding table, which asks for frame pointers"
        }
    }
}

/// The lapse of runtimes that makes it usual.
const fn lapse(odd: Odd) -> Option<Lapse> {
    Some(match odd {
        Odd::ImpossibleTid => Lapse::PthreadIds,
        Odd::NoVma => Lapse::NoVma,
        Odd::ShortCode => Lapse::ShortCode,
        Odd::Repeated => Lapse::Repeats,
        Odd::ShiftedLines => Lapse::ShiftedLines,
        Odd::BrokenFileNames => Lapse::BrokenFileNames,
        Odd::LinesBefore => Lapse::LinesBefore,
        Odd::HeaderFirst => Lapse::HeaderFirst,
        Odd::EmptyUnwinding => Lapse::EmptyUnwinding,
        _ => return None,
    })
}

/// Name of a unit of so many nanoseconds.
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
