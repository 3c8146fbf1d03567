//! Keys of branches and of accesses to memory: both ends of a branch, data, and what costs add up to.

use super::super::ends::{cacheline, line_text};
use super::super::options::ReportOptions;
use super::super::rows::Row;
use super::super::spec::{End, EndPart, Side};
use super::super::texts::dso_name;
use super::super::{ADDRESS_DIGITS, Report, apart::Order, level_char};
use super::{Cell, Descriptor, Key, Measured, Width, part};
use crate::needs::Needs;
use crate::profile::{Facet, Frame, Of, Profile, Symbol};

/// Ends that have a key, in the order of perf's words.
pub(super) const ALL: [End; 11] = {
    use EndPart::{Address, Cacheline, Datum, Dso, Line, Symbol};
    use Side::{Data, Source, Target};
    const fn end(side: Side, part: EndPart) -> End {
        End { side, part }
    }
    [
        end(Source, Dso),
        end(Target, Dso),
        end(Source, Symbol),
        end(Target, Symbol),
        end(Source, Address),
        end(Target, Address),
        end(Source, Line),
        end(Target, Line),
        end(Data, Datum),
        end(Data, Dso),
        end(Data, Cacheline),
    ]
};

/// What perf calls them, and what stands over their columns.
const WORDS: [(&str, &str); ALL.len()] = [
    ("dso_from", "Source Shared Object"),
    ("dso_to", "Target Shared Object"),
    ("symbol_from", "Source Symbol"),
    ("symbol_to", "Target Symbol"),
    ("addr_from", "Source Address"),
    ("addr_to", "Target Address"),
    ("srcline_from", "From Source:Line"),
    ("srcline_to", "To Source:Line"),
    ("symbol_daddr", "Data Symbol"),
    ("dso_daddr", "Data Object"),
    ("dcacheline", "Data Cacheline"),
];

static ENDS: [Descriptor; ALL.len()] = {
    let mut all = [descriptor_of(0); ALL.len()];
    let mut at = 1;
    while at < all.len() {
        all[at] = descriptor_of(at);
        at += 1;
    }
    all
};

const fn descriptor_of(at: usize) -> Descriptor {
    let (end, (name, heading)) = (ALL[at], WORDS[at]);
    let side = match end.side {
        Side::Source => Facet::Source.needs(),
        Side::Target => Needs::empty(),
        Side::Data => Facet::Data.needs(),
    };
    let more = match end.part {
        EndPart::Dso | EndPart::Symbol => Needs::empty(),
        EndPart::Address | EndPart::Datum | EndPart::Cacheline => Needs::ADDRESSES,
        EndPart::Line => Needs::LINES,
    };
    let order = Order::Sample(|samples, entry, key| match key {
        Key::End(chosen) => samples.end(entry, chosen),
        _ => 0,
    });
    part(name, heading, order, Width::Longest(0, room), cell).needs(side.union(more))
}

/// What is known of the key of an end.
pub(super) fn descriptor(end: End) -> &'static Descriptor {
    let at = ALL.iter().position(|known| *known == end);
    &ENDS[at.unwrap_or(0)]
}

impl Key {
    /// What rows have to be for it, if that is not samples.
    pub(crate) fn of(self) -> Option<Of> {
        match self {
            Self::End(End {
                side: Side::Data, ..
            }) => Some(Of::Access),
            Self::End(_) => Some(Of::Branch),
            Self::Facet(facet) => facet.of(),
            _ => None,
        }
    }
}

fn frame<'r>(report: &Report<'r>, row: &Row, key: Key) -> Option<(&'r Frame, End)> {
    let Key::End(end) = key else {
        return None;
    };
    let frame = end.frame(report.profile, report.entry(row))?;
    Some((&report.profile[frame], end))
}

fn cell<'r>(report: &'r Report<'_>, row: &'r Row, key: Key) -> Cell<'r> {
    let (profile, options) = (report.profile, report.options);
    let Some((frame, end)) = frame(report, row, key) else {
        return Cell::Filled("N/A".into());
    };
    let level = level_char(frame.mode);
    match end.part {
        EndPart::Dso => Cell::Filled(dso(profile, options, frame).into()),
        EndPart::Symbol => {
            let text = symbol_text(profile, frame, |_, _| false, frame.object_address.0);
            match frame.symbol {
                Some(_) => Cell::Cut(text.into()),
                None => Cell::Whole(text.into()),
            }
        }
        EndPart::Address => {
            let text = symbol_text(profile, frame, |_, at| at > 0, frame.object_address.0);
            Cell::Whole(text.into())
        }
        EndPart::Line => Cell::Cut(line_text(profile, options, frame).into()),
        EndPart::Datum => {
            let text = symbol_text(profile, frame, |symbol, _| symbol.is_data, frame.address.0);
            Cell::Whole(text.into())
        }
        EndPart::Cacheline => {
            let level = if frame.object.is_some() { level } else { 'X' };
            Cell::Whole(format!("[{level}] {}", long(cacheline(frame))).into())
        }
    }
}

/// `[k] name`, with the distance from its start for some, or the address of what has no name.
fn symbol_text(
    profile: &Profile,
    frame: &Frame,
    has_offset: fn(&Symbol, u64) -> bool,
    address: u64,
) -> String {
    let level = level_char(frame.mode);
    let Some(symbol) = frame.symbol.map(|symbol| &profile[symbol]) else {
        return format!("[{level}] {}", long(address));
    };
    let (name, offset) = (&symbol.name, frame.offset_in(symbol));
    if has_offset(symbol, offset) {
        format!("[{level}] {name}+{offset:#x}")
    } else {
        format!("[{level}] {name}")
    }
}

/// An address as rows show it. perf leaves the `0x` out before a zero.
fn long(address: u64) -> String {
    if address == 0 {
        "0".repeat(ADDRESS_DIGITS)
    } else {
        format!("{address:#018x}")
    }
}

fn dso<'p>(profile: &'p Profile, options: &ReportOptions, frame: &Frame) -> &'p str {
    let object = frame.object.map(|object| &profile[object]);
    object.map_or("[unknown]", |object| dso_name(object, options))
}

/// Addresses have the room of an address; DSOs of what has no name are not measured, but have that room, too.
fn room<'r>(report: &'r Report<'_>, row: &'r Row, key: Key) -> Measured<'r> {
    let (profile, options) = (report.profile, report.options);
    let Some((frame, end)) = frame(report, row, key) else {
        return Measured::default();
    };
    let layout = &options.layout;
    let is_free = layout.column_widths.is_empty()
        && layout.separator.is_none()
        && options.filters.samples.dsos.is_none();
    let shown_address = if layout.verbose > 0 {
        ADDRESS_DIGITS + 2 + 3
    } else {
        0
    };
    let symbol = frame.symbol.map(|symbol| profile[symbol].name.as_str());
    let more = match end.part {
        EndPart::Symbol => 4 + shown_address,
        EndPart::Datum => 4 + ADDRESS_DIGITS + 2,
        EndPart::Cacheline => 4 + ADDRESS_DIGITS + 3,
        EndPart::Address | EndPart::Dso | EndPart::Line => 0,
    };
    match (end.part, symbol) {
        (EndPart::Line, _) => Measured {
            text: line_text(profile, options, frame).into(),
            ..Measured::default()
        },
        (EndPart::Dso, None) if end.side != Side::Data || frame.object.is_none() => Measured {
            least: if is_free { ADDRESS_DIGITS } else { 0 },
            ..Measured::default()
        },
        (EndPart::Dso, _) => Measured {
            text: dso(profile, options, frame).into(),
            ..Measured::default()
        },
        (EndPart::Address, Some(_)) => Measured::default(),
        (_, None) => Measured {
            least: ADDRESS_DIGITS + 4 + 2,
            ..Measured::default()
        },
        (_, Some(name)) => Measured {
            text: name.into(),
            more,
            ..Measured::default()
        },
    }
}

/// The key of what the costs of a row's samples add up to.
const fn sum(name: &'static str, heading: &'static str, facet: Facet) -> Descriptor {
    let order = Order::Sample(|samples, entry, key| match key {
        Key::Sum(summed) => samples.facet(entry, summed),
        _ => 0,
    });
    part(
        name,
        heading,
        order,
        Width::Is(facet.row().width),
        |report, row, key| {
            let Key::Sum(summed) = key else {
                return Cell::Whole("".into());
            };
            let one = report
                .profile
                .facets
                .number(report.entry(row).facets, summed);
            let sum = one.unwrap_or(0).saturating_mul(row.counts.samples);
            Cell::Left(sum.to_string().into())
        },
    )
    .needs(facet.needs())
}

static WEIGHT: Descriptor = sum("weight", "Weight", Facet::Cost);
static LATENCY: Descriptor = sum("ins_lat", "INSTR Latency", Facet::InstructionLatency);
static CYCLES: Descriptor = sum("p_stage_cyc", "Pipeline Stage Cycle", Facet::StageCycles);

/// Facts of accesses that rows have sums of.
pub(super) const SUMS: [Facet; 3] = [Facet::Cost, Facet::InstructionLatency, Facet::StageCycles];

/// What is known of the key of a sum.
pub(super) const fn sum_descriptor(facet: Facet) -> &'static Descriptor {
    match facet {
        Facet::InstructionLatency => &LATENCY,
        Facet::StageCycles => &CYCLES,
        _ => &WEIGHT,
    }
}
