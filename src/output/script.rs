//! `pjit script`: one block a sample, in the layout of `perf script` (`builtin-script.c`), which
//! FlameGraph, inferno, speedscope and the Firefox Profiler read.
//!
//! In: a profile of samples, with frames kept apart by address. Addresses are absolute
//! and tids seven wide, as perf 7.2 prints them.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::address::Avma;
use crate::needs::Needs;
use crate::profile::{
    Branch, DataSource, EventSummary, Facet, Frame, FrameId, Holds, Profile, Sample,
};

use super::text::{harmless, harmless_payload};

/// A column of `-F`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Field {
    /// Thread name.
    Comm,
    /// Process id.
    Pid,
    /// Thread id.
    Tid,
    /// CPU, where recorded.
    Cpu,
    /// Time in seconds.
    Time,
    /// Event name.
    Event,
    /// Payload of a tracepoint.
    Trace,
    /// Address, and with it the call chain.
    Ip,
    /// Symbol.
    Sym,
    /// Offset in the symbol.
    Symoff,
    /// DSO.
    Dso,
    /// Weight.
    Period,
    /// Source line.
    Srcline,
    /// Address of the data.
    Addr,
    /// Where the data came from.
    DataSrc,
    /// What the access cost.
    Weight,
    /// What the instruction waited.
    InsLat,
    /// Branches by address.
    Brstack,
    /// The same by symbol.
    Brstacksym,
    /// The same by address in the file.
    Brstackoff,
}

impl Field {
    /// Every field by its name on the command line.
    pub const NAMES: [(&'static str, Self); 20] = [
        ("comm", Self::Comm),
        ("pid", Self::Pid),
        ("tid", Self::Tid),
        ("cpu", Self::Cpu),
        ("time", Self::Time),
        ("event", Self::Event),
        ("trace", Self::Trace),
        ("ip", Self::Ip),
        ("sym", Self::Sym),
        ("symoff", Self::Symoff),
        ("dso", Self::Dso),
        ("period", Self::Period),
        ("srcline", Self::Srcline),
        ("addr", Self::Addr),
        ("data_src", Self::DataSrc),
        ("weight", Self::Weight),
        ("ins_lat", Self::InsLat),
        ("brstack", Self::Brstack),
        ("brstacksym", Self::Brstacksym),
        ("brstackoff", Self::Brstackoff),
    ];

    /// What perf prints by default: the payload only for tracepoints, the period only for others, accesses only for events of
    /// the processor's own numbers.
    pub const DEFAULT: [Self; 15] = [
        Self::Comm,
        Self::Tid,
        Self::Cpu,
        Self::Time,
        Self::Event,
        Self::Trace,
        Self::Ip,
        Self::Sym,
        Self::Symoff,
        Self::Dso,
        Self::Period,
        Self::Addr,
        Self::DataSrc,
        Self::Weight,
        Self::InsLat,
    ];

    /// Those of branches; perf prints no more than the first.
    const BRANCHES: [Self; 3] = [Self::Brstack, Self::Brstacksym, Self::Brstackoff];

    /// What has to be recorded for it, and how to say that it was not.
    fn held(self, holds: Holds) -> Option<(bool, &'static str)> {
        Some(match self {
            Self::Cpu => (holds.cpu, "CPU numbers"),
            Self::Addr => (holds.address, "addresses of data (perf record -d)"),
            Self::DataSrc => (holds.data_source, "sources of data (perf mem record)"),
            Self::Weight => (holds.cost, "weights (perf record -W)"),
            Self::InsLat => (holds.instruction_latency, "latencies of instructions"),
            Self::Brstack | Self::Brstacksym | Self::Brstackoff => {
                (holds.branches, "branch stacks (perf record -b)")
            }
            _ => return None,
        })
    }
}

/// From where times count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// As the recording has them.
    #[default]
    Recorded,
    /// From the first sample that is printed.
    SinceFirst,
    /// From the sample before.
    SincePrevious,
}

/// How to print samples.
#[derive(Clone, Debug, Default)]
pub struct ScriptOptions {
    /// Columns.
    pub fields: BTreeSet<Field>,
    /// The columns are the default or a change of it: then tracepoints have an address only with a call chain.
    pub is_default: bool,
    /// Tracepoints have their period, too, which the default leaves out.
    pub all_periods: bool,
    /// Nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// From where times count.
    pub clock: Clock,
    /// Call chains; without, one address a line.
    pub chains: bool,
    /// Frames printed at most.
    pub max_stack: usize,
    /// Source files with their folders.
    pub full_source_path: bool,
    /// The header block comes before the samples.
    pub header: bool,
    /// Columns that were asked for by name: an event without what they show is an error.
    pub required: BTreeSet<Field>,
}

impl ScriptOptions {
    /// What the lines show.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let has_chains = self.chains && self.fields.contains(&Field::Ip);
        let has_lines = self.fields.contains(&Field::Srcline);
        let has = |field: &Field| self.fields.contains(field);
        let has_payloads = has(&Field::Trace);
        Needs::SAMPLES
            | Needs::ADDRESSES
            | Needs::INLINED
            | Needs::MARKS
            | (Needs::STACKS | Needs::RETURNS).only_if(has_chains)
            | Needs::LINES.only_if(has_lines)
            | Facet::Payload.needs().only_if(has_payloads)
            | Facet::DataSource.needs().only_if(has(&Field::DataSrc))
            | Facet::Cost.needs().only_if(has(&Field::Weight))
            | Facet::InstructionLatency
                .needs()
                .only_if(has(&Field::InsLat))
            | Needs::BRANCH_LISTS.only_if(Field::BRANCHES.iter().any(has))
            | Needs::KERNEL_RANGES.only_if(has(&Field::Brstackoff))
    }

    /// An event whose samples lack what was asked for by name: the column, the event and what it lacks.
    #[must_use]
    pub fn lacking<'p>(
        &self,
        profile: &'p Profile,
    ) -> Option<(&'static str, &'p str, &'static str)> {
        let required = Field::NAMES
            .iter()
            .filter(|(_, field)| self.required.contains(field));
        let events = profile.events.iter().filter(|event| event.samples > 0);
        let mut pairs =
            required.flat_map(|column| events.clone().map(move |event| (column, event)));
        pairs.find_map(|((name, field), event)| match field.held(event.holds)? {
            (false, what) => Some((*name, event.name.as_str(), what)),
            (true, _) => None,
        })
    }
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Number of samples.
    pub samples: usize,
    /// Those of them whose chains have more frames than were asked for.
    pub shortened: usize,
    /// Frames of the longest of these, without inlined ones.
    pub longest: usize,
}

/// Writes all samples in time order.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(
    profile: &Profile,
    options: &ScriptOptions,
    out: &mut dyn Write,
) -> io::Result<Written> {
    if options.header {
        for line in &profile.recording.header {
            writeln!(out, "{}", harmless(line))?;
        }
    }
    let width = profile
        .events
        .iter()
        .map(|event| event.name.len())
        .max()
        .unwrap_or(0);
    let has_chains = |event: &EventSummary| event.is_tracepoint && event.has_callchains;
    let printer = Printer {
        profile,
        options,
        width,
        bare_tracepoints: options.is_default
            && !(options.chains && profile.events.iter().any(has_chains)),
    };
    let mut written = Written::default();
    let mut from = None;
    for sample in &profile.samples {
        let time = sample.time.map(|time| {
            let start = *from.get_or_insert(time);
            match options.clock {
                Clock::Recorded => time,
                Clock::SinceFirst => time.saturating_sub(start),
                Clock::SincePrevious => {
                    from = Some(time);
                    time.saturating_sub(start)
                }
            }
        });
        let frames = printer.sample(sample, time, out)?;
        written.samples += 1;
        if frames > options.max_stack {
            written.shortened += 1;
            written.longest = written.longest.max(frames);
        }
    }
    Ok(written)
}

struct Printer<'p> {
    profile: &'p Profile,
    options: &'p ScriptOptions,
    /// Of the longest event name.
    width: usize,
    /// Tracepoints without addresses.
    bare_tracepoints: bool,
}

impl Printer<'_> {
    fn has(&self, field: Field) -> bool {
        self.options.fields.contains(&field)
    }

    /// Prints a sample, at a time as it is to be shown. Returns how many frames its chain has without inlined ones, if it is shown.
    fn sample(&self, sample: &Sample, time: Option<u64>, out: &mut dyn Write) -> io::Result<usize> {
        let event = &self.profile[sample.event];
        let with_ip = self.has(Field::Ip) && !(self.bare_tracepoints && event.is_tracepoint);
        let chains = self.options.chains && event.has_callchains && with_ip;
        self.task(sample, chains, out)?;
        if let Some(cpu) = sample.cpu.filter(|_| self.has(Field::Cpu)) {
            write!(out, "[{cpu:03}] ")?;
        }
        if let Some(time) = time.filter(|_| self.has(Field::Time)) {
            let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
            let stamp = if self.options.nanoseconds {
                format!("{seconds}.{rest:09}")
            } else {
                format!("{seconds}.{:06}", rest / 1000)
            };
            write!(out, "{stamp:>12}: ")?;
        }
        if self.has(Field::Period) && (self.options.all_periods || !event.is_tracepoint) {
            write!(out, "{:>10} ", sample.period)?;
        }
        if self.has(Field::Event) {
            write!(
                out,
                "{:>width$}: ",
                harmless(&event.name),
                width = self.width
            )?;
        }
        if self.has(Field::Trace)
            && let Some(text) = self.profile.facets.payload(sample.facets)
        {
            write!(out, "{}", harmless_payload(text))?;
        }
        self.access(sample, out)?;
        if !with_ip {
            self.branches(sample, out)?;
            writeln!(out)?;
            return Ok(0);
        }
        if !chains {
            write!(out, " ")?;
            self.frame(&self.profile[sample.leaf], out)?;
            self.branches(sample, out)?;
            writeln!(out)?;
            return Ok(0);
        }
        writeln!(out)?;
        let frames = self.profile.stacks.get(sample.stack);
        let mut shown = 0;
        for id in frames {
            let frame = &self.profile[*id];
            if shown == self.options.max_stack {
                // What is left out is counted.
                let all = frames
                    .iter()
                    .filter(|each| !self.profile.is_inlined(**each));
                shown = all.count();
                break;
            }
            shown += usize::from(!self.profile.is_inlined(*id));
            write!(out, "\t")?;
            self.frame(frame, out)?;
            writeln!(out)?;
        }
        self.branches(sample, out)?;
        writeln!(out)?;
        Ok(shown)
    }

    /// What was read or written, and what that cost, as far as it was recorded.
    fn access(&self, sample: &Sample, out: &mut dyn Write) -> io::Result<()> {
        let holds = self.profile[sample.event].holds;
        let facets = &self.profile.facets;
        let number = |facet| facets.number(sample.facets, facet).unwrap_or(0);
        let shows = |field| {
            let is_asked = self.options.required.contains(&field) || holds.is_raw;
            self.has(field) && is_asked && field.held(holds).is_some_and(|(held, _)| held)
        };
        if shows(Field::Addr) {
            write!(out, "{:>16x}", sample.address.unwrap_or(0))?;
        }
        if shows(Field::DataSrc) {
            let source = DataSource(number(Facet::DataSource));
            write!(out, " {:>16x} {:<70}", source.0, source.line())?;
        }
        if shows(Field::Weight) {
            write!(out, "{:>16}", number(Facet::Cost))?;
        }
        if shows(Field::InsLat) {
            write!(out, "{:>16}", number(Facet::InstructionLatency))?;
        }
        Ok(())
    }

    /// The branches before a sample, latest first, empty ones too.
    fn branches(&self, sample: &Sample, out: &mut dyn Write) -> io::Result<()> {
        let Some(field) = Field::BRANCHES.into_iter().find(|field| self.has(*field)) else {
            return Ok(());
        };
        for (from, to, branch) in self.profile.branches_of(sample.facets) {
            let flag = |is: bool, letter: char| if is { letter } else { '-' };
            write!(out, " ")?;
            self.branch_end(field, from, out)?;
            write!(out, "/")?;
            self.branch_end(field, to, out)?;
            let predicted = branch
                .is_predicted()
                .map_or('-', |is| if is { 'P' } else { 'M' });
            write!(
                out,
                "/{predicted}/{}/{}/{}/{}/{} ",
                flag(branch.in_transaction(), 'X'),
                flag(branch.is_abort(), 'A'),
                branch.cycles(),
                Branch::kind_name(branch.kind()),
                branch.speculation(),
            )?;
        }
        Ok(())
    }

    fn branch_end(&self, field: Field, end: FrameId, out: &mut dyn Write) -> io::Result<()> {
        let profile = self.profile;
        let frame = &profile[end];
        let symbol = frame.symbol.map(|symbol| &profile[symbol]);
        match (field, symbol) {
            (Field::Brstacksym, Some(symbol)) => {
                let offset = frame.offset_in(symbol);
                write!(out, "{}+{offset:#x}", harmless(&symbol.name))?;
            }
            (Field::Brstacksym, None) => write!(out, "[unknown]")?,
            (Field::Brstackoff, _) => write!(out, "{:#x}", self.offset(frame))?,
            _ => write!(out, "{:#x}", frame.address)?,
        }
        if !self.has(Field::Dso) {
            return Ok(());
        }
        let object = frame
            .object
            .map(|object| profile[object].long_name.as_str());
        write!(out, "({})", harmless(object.unwrap_or("[unknown]")))
    }

    /// The address in the file; of the kernel and its modules the distance from where they lie.
    fn offset(&self, frame: &Frame) -> u64 {
        let object = frame.object.map(|object| &self.profile[object]);
        let ranges = object
            .filter(|object| object.is_kernel)
            .map(|object| &object.ranges);
        let mut ranges = ranges.into_iter().flatten().map(|mapped| mapped.range);
        let around = ranges.find(|range| range.contains(frame.address));
        around.map_or(frame.object_address.0, |range| {
            frame.address.since(range.start)
        })
    }

    fn task(&self, sample: &Sample, chains: bool, out: &mut dyn Write) -> io::Result<()> {
        let thread = &self.profile[sample.thread];
        let (pid, tid) = (thread.pid.cast_signed(), thread.tid.cast_signed());
        if self.has(Field::Comm) {
            let comm = harmless(&self.profile[sample.comm]);
            if chains {
                write!(out, "{comm} ")?;
            } else {
                write!(out, "{comm:>16} ")?;
            }
        }
        match (self.has(Field::Pid), self.has(Field::Tid)) {
            (true, true) => write!(out, "{pid:>7}/{tid:<7} "),
            (true, false) => write!(out, "{pid:>7} "),
            (false, true) => write!(out, "{tid:>7} "),
            (false, false) => Ok(()),
        }
    }

    /// The source line on a line of its own; the kernel's code has the address in its place, as in perf.
    fn srcline(&self, frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let object = frame.object.map(|id| &self.profile[id]);
        match (frame.line, object) {
            (Some(line), _) => {
                let file = self.profile[line.file].as_str();
                let base = file.rsplit_once('/').map_or(file, |(_, base)| base);
                let shown = if self.options.full_source_path {
                    file
                } else {
                    base
                };
                write!(out, "\n  {}{}", harmless(shown), line.suffix())
            }
            (None, Some(object)) if object.is_kernel => {
                write!(
                    out,
                    "\n  {}[{:x}]",
                    harmless(&object.short_name),
                    frame.address
                )
            }
            _ => Ok(()),
        }
    }

    fn frame(&self, frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{:>16x}", frame.address)?;
        let symbol = frame.symbol.map(|id| &self.profile[id]);
        if self.has(Field::Sym) {
            match symbol {
                Some(symbol) => {
                    write!(out, " {}", harmless(&symbol.name))?;
                    // What stands for missing frames is nowhere.
                    if self.has(Field::Symoff) && frame.address != Avma(u64::MAX) {
                        write!(out, "+{:#x}", frame.offset_in(symbol))?;
                    }
                }
                None => write!(out, " [unknown]")?,
            }
        }
        let inlined = symbol.is_some_and(|symbol| symbol.inlined);
        if self.has(Field::Dso) && !inlined {
            match frame.object {
                Some(object) => write!(out, " ({})", harmless(&self.profile[object].long_name))?,
                None => write!(out, " ([unknown])")?,
            }
        }
        if self.has(Field::Srcline) {
            self.srcline(frame, out)?;
        }
        if inlined {
            write!(out, " (inlined)")?;
        }
        Ok(())
    }
}
