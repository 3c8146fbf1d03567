//! What stands in the cells of keys, and how long it is.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::apart::{own_function, without_numbers};
use super::super::options::ReportOptions;
use super::super::rows::Row;
use super::super::texts::{dso_name, srcfile_text, srcline_text};
use super::super::{ADDRESS_DIGITS, Report};
use super::{Cell, Key, Measured};
use crate::address::{Avma, AvmaRange};
use crate::functions::Functions;
use crate::functions::payers::PaidPart;
use crate::ids::IndexVec;
use crate::profile::{Facet, FieldKey, FieldValue, Frame, Object, ObjectId, Profile, Show};

fn text(text: &str) -> Measured<'_> {
    Measured {
        text: text.into(),
        ..Measured::default()
    }
}

pub(super) fn task<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let thread = &report.profile[row.thread];
    Cell::Task(thread.tid, &report.profile[thread.comm])
}

pub(super) fn process<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let thread = &report.profile[row.thread];
    Cell::Task(thread.pid, &report.profile[thread.program])
}

/// perf measures the thread's last comm, and cuts earlier ones to it.
pub(super) fn comm_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    text(&report.profile[report.profile[row.thread].comm])
}

pub(super) fn task_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    Measured {
        more: 8,
        ..comm_room(report, row, Key::Comm)
    }
}

pub(super) fn comm<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(report.profile[report.entry(row).comm].as_str().into())
}

pub(super) fn comm_nodigit<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(without_numbers(&report.profile[report.entry(row).comm]).into())
}

pub(super) fn comm_nodigit_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    Measured {
        text: without_numbers(&report.profile[report.entry(row).comm]).into(),
        ..Measured::default()
    }
}

fn shown_dso<'r>(report: &'r Report<'_>, row: &Row) -> &'r str {
    let object = report.profile[row.frame].object;
    object.map_or("[unknown]", |object| {
        dso_name(&report.profile[object], report.options)
    })
}

pub(super) fn dso<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(shown_dso(report, row).into())
}

pub(super) fn dso_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    let options = report.options;
    let frame = &report.profile[row.frame];
    // Room for addresses, unless the width is not perf's to choose.
    let has_room = frame.symbol.is_none()
        && options.layout.column_widths.is_empty()
        && options.layout.separator.is_none()
        && options.filters.samples.dsos.is_none();
    let name = frame.object.map_or("", |_| shown_dso(report, row));
    Measured {
        least: if has_room { ADDRESS_DIGITS } else { 0 },
        ..text(name)
    }
}

pub(super) fn symbol_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    let Some(symbol) = report.profile[row.frame].symbol else {
        return Measured {
            least: ADDRESS_DIGITS + 4 + 2,
            ..Measured::default()
        };
    };
    let shown_address = if report.options.layout.verbose > 0 {
        ADDRESS_DIGITS + 2 + 3
    } else {
        0
    };
    Measured {
        more: 4 + shown_address,
        ..text(&report.profile[symbol].name)
    }
}

pub(super) fn symbol_size<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let symbol = report.profile[row.frame].symbol;
    let size = symbol.map(|symbol| &report.profile[symbol]);
    Cell::Right(size.map_or("unknown".into(), |s| {
        s.end.since(s.start).to_string().into()
    }))
}

/// In the middle of a column, as symbols are not.
pub(super) fn symoff<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let frame = &report.profile[row.frame];
    let level = report.level(row);
    let Some(symbol) = frame.symbol.map(|symbol| &report.profile[symbol]) else {
        let address = report.shown_address(row);
        return Cell::Whole(format!("[{level}] {address:#011x}").into());
    };
    let offset = frame.offset_in(symbol);
    Cell::Whole(format!("[{level}] {}+{offset:#x}", symbol.name).into())
}

/// Higher addresses come first, as in perf.
pub(super) fn offsets(profile: &Profile) -> Vec<u64> {
    let frames = profile.frames.iter();
    frames.map(|frame| !frame.object_address.0).collect()
}

/// Those of the kernel come first, as in perf, which takes addresses for signed numbers.
pub(super) fn addresses(profile: &Profile) -> Vec<u64> {
    let frames = profile.frames.iter();
    frames.map(|frame| frame.address.0 ^ 1 << 63).collect()
}

pub(super) fn address<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Left(format!("{:#x}", report.profile[row.frame].address.0).into())
}

/// How large the mappings are that frames lie in; what was made at run time is no mapping, and as large as it is. Larger
/// ones come first, as in perf, and what is not known last.
pub(super) fn mapped_sizes(profile: &Profile) -> Vec<u64> {
    let pieces: IndexVec<ObjectId, Pieces> = profile.objects.iter().map(Pieces::of).collect();
    let size = |frame: &Frame| {
        let around = pieces[frame.object?].size_at(frame.address);
        let symbol = frame.symbol.map(|symbol| &profile[symbol]);
        let made = symbol.filter(|symbol| symbol.producer.is_some());
        around.or(made.map(|code| code.end.since(code.start)))
    };
    let frames = profile.frames.iter();
    frames.map(|frame| !size(frame).unwrap_or(0)).collect()
}

/// Addresses at which an object's mappings begin or end, each with the size of the first mapping that lies behind it.
struct Pieces(Vec<(Avma, Option<u64>)>);

impl Pieces {
    fn of(object: &Object) -> Self {
        let ranges = || object.ranges.iter().map(|mapped| mapped.range);
        let is_some = |range: &AvmaRange| range.start < range.end;
        let ends = (0..).zip(ranges()).filter(|(_, range)| is_some(range));
        let mut ends: Vec<(Avma, usize)> = ends
            .flat_map(|(at, range)| [(range.start, at), (range.end, at)])
            .collect();
        ends.sort_unstable();
        let mut open = BTreeSet::new();
        let pieces = ends.into_iter().map(|(address, at)| {
            if !open.remove(&at) {
                open.insert(at);
            }
            let first = open.first().map(|lowest| object.ranges[*lowest].range);
            (address, first.map(|range| range.end.since(range.start)))
        });
        Self(pieces.collect())
    }

    fn size_at(&self, address: Avma) -> Option<u64> {
        let before = self.0.partition_point(|(start, _)| *start <= address);
        self.0[..before].last()?.1
    }
}

pub(super) fn dso_size<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let size = !report.frame_number(row, Key::DsoSize);
    Cell::Right(match size {
        0 => "unknown".into(),
        size => size.to_string().into(),
    })
}

/// What perf says of threads of which it knows none is 0.
pub(super) fn cgroup_id<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let entry = report.entry(row);
    let namespace = report.profile[entry.thread].cgroup_at(entry.time);
    let (device, inode) = namespace.unwrap_or_default();
    Cell::Whole(format!("{device}/{inode:#x}").into())
}

pub(super) fn parent<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(report.parent(row).unwrap_or("[other]").into())
}

pub(super) fn parent_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    text(report.parent(row).unwrap_or_default())
}

pub(super) fn facet<'r>(report: &'r Report<'_>, row: &'r Row, key: Key) -> Cell<'r> {
    let Key::Facet(facet) = key else {
        return Cell::Whole("".into());
    };
    let (facets, of) = (&report.profile.facets, report.entry(row).facets);
    let number = || facets.number(of, facet);
    let text = || facet_text(report, row, facet).unwrap_or("N/A").into();
    match facet.row().show {
        Show::Number(show) => Cell::Left(show(number()).into()),
        Show::Right(show) => Cell::Right(show(number()).into()),
        Show::Falling(show) => Cell::Left(show(number().unwrap_or(0)).into()),
        Show::Hidden => Cell::Whole("".into()),
        Show::Name => Cell::Whole(text()),
        Show::Payload => Cell::CutPayload(text()),
    }
}

/// perf forgets payloads that it never compared with another, and cuts them to the width of the rest.
pub(super) fn facet_room<'r>(report: &'r Report<'_>, row: &'r Row, key: Key) -> Measured<'r> {
    let Key::Facet(facet) = key else {
        return Measured::default();
    };
    Measured {
        is_payload: matches!(facet.row().show, Show::Payload),
        ..text(facet_text(report, row, facet).unwrap_or_default())
    }
}

fn facet_text<'r>(report: &'r Report<'_>, row: &Row, facet: Facet) -> Option<&'r str> {
    let facets = &report.profile.facets;
    let text = facets.text(report.entry(row).facets, facet)?;
    Some(&facets.texts()[text].text)
}

pub(super) fn socket<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let cpu = report.profile.facets.cpu(report.entry(row).facets);
    Cell::Zeros(report.profile.recording.socket(cpu))
}

pub(super) fn srcline<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Cut(line(report, row))
}

pub(super) fn srcline_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    Measured {
        text: line(report, row),
        ..Measured::default()
    }
}

fn line<'r>(report: &Report<'_>, row: &Row) -> Cow<'r, str> {
    let frame = &report.profile[row.frame];
    srcline_text(report.profile, report.options, frame).into()
}

pub(super) fn srcfile<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Cut(report.frame_text(row, Key::Srcfile).into())
}

pub(super) fn srcfile_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    text(report.frame_text(row, Key::Srcfile))
}

pub(super) fn time<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    let time = report.options.rows.step_of(report.entry(row));
    let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
    Cell::Cut(if report.options.layout.nanoseconds {
        format!("{seconds}.{rest:09}").into()
    } else {
        format!("{seconds}.{:06}", rest / 1000).into()
    })
}

pub(super) fn time_width(options: &ReportOptions) -> usize {
    if options.layout.nanoseconds { 16 } else { 12 }
}

pub(super) fn state<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(report.entry(row).state.name().into())
}

/// The field of a key, and its value in a row's sample.
fn field<'r>(
    report: &'r Report<'_>,
    row: &Row,
    key: Key,
) -> (Option<&'r FieldKey>, Option<&'r FieldValue>) {
    let Key::Field(number) = key else {
        return (None, None);
    };
    let field = report.profile.fields.get(usize::from(number));
    let facets = &report.profile.facets;
    let value = field.and_then(|field| facets.field(report.entry(row).facets, field.place));
    (field, value.map(|value| &facets.texts()[value]))
}

pub(super) fn field_value<'r>(report: &'r Report<'_>, row: &'r Row, key: Key) -> Cell<'r> {
    let (_, value) = field(report, row, key);
    Cell::RightCut(value.map_or("", |value| &value.text).into())
}

/// perf measures numbers as hexadecimal, and texts that lie elsewhere in the payload by their bytes.
pub(super) fn field_room<'r>(report: &'r Report<'_>, row: &'r Row, key: Key) -> Measured<'r> {
    let (key, value) = field(report, row, key);
    let Some((key, value)) = key.zip(value) else {
        return Measured::default();
    };
    let least = if key.is_elsewhere { value.raw.len() } else { 0 };
    let shown = if key.is_raw { "" } else { &value.text };
    Measured {
        least: key.width.max(least),
        ..text(shown)
    }
}

pub(super) fn field_name<'r>(report: &'r Report<'_>, key: Key) -> &'r str {
    let Key::Field(number) = key else {
        return "";
    };
    let field = report.profile.fields.get(usize::from(number));
    field.map_or("", |field| &field.name)
}

pub(super) fn srclines(profile: &Profile, options: &ReportOptions, _: &Functions) -> Vec<String> {
    let frames = profile.frames.iter();
    frames
        .map(|frame| srcline_text(profile, options, frame))
        .collect()
}

pub(super) fn srcfiles(profile: &Profile, options: &ReportOptions, _: &Functions) -> Vec<String> {
    let frames = profile.frames.iter();
    frames
        .map(|frame| srcfile_text(profile, options, frame))
        .collect()
}

pub(super) fn kinds(profile: &Profile, _: &ReportOptions, functions: &Functions) -> Vec<String> {
    let frames = profile.frames.indices();
    let kind = |frame| functions.get(functions.of_frame(frame)).kind.word();
    frames.map(|frame| kind(frame).to_owned()).collect()
}

pub(super) fn kind<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(report.frame_text(row, Key::Kind).into())
}

fn own_name<'r>(report: &'r Report<'_>, row: &Row) -> &'r str {
    let function = own_function(report.profile, &report.functions, report.entry(row));
    function.map_or("[no own function]", |id| {
        report.functions.get(id).identity.name.name.as_str()
    })
}

pub(super) fn own<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(own_name(report, row).into())
}

fn paid<'r>(report: &'r Report<'_>, row: &Row, part: PaidPart) -> &'r str {
    let entry = report.entry(row);
    report.paid.ranked(part, entry).1
}

pub(super) fn package<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(paid(report, row, PaidPart::Package).into())
}

pub(super) fn package_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    text(paid(report, row, PaidPart::Package))
}

pub(super) fn activity<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Cell<'r> {
    Cell::Filled(paid(report, row, PaidPart::Activity).into())
}

pub(super) fn activity_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    text(paid(report, row, PaidPart::Activity))
}

pub(super) fn own_room<'r>(report: &'r Report<'_>, row: &'r Row, _: Key) -> Measured<'r> {
    text(own_name(report, row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::FileOffset;
    use crate::ids::Idx;
    use crate::profile::{MappedRange, ObjectId};
    use crate::report::testing::ProfileBuilder;

    #[test]
    fn the_first_mapping_that_has_an_address_tells_its_size() {
        let mut builder = ProfileBuilder::default();
        builder.sample("c", "f", 1);
        let mut object = builder.finish().objects[ObjectId::from_usize(0)].clone();
        let ranges = [(10, 20), (12, 40), (5, 100), (7, 7), (50, 45)];
        object.ranges = ranges
            .map(|(start, end)| MappedRange {
                pid: 1,
                range: AvmaRange {
                    start: Avma(start),
                    end: Avma(end),
                },
                offset: FileOffset(0),
            })
            .to_vec();
        let pieces = Pieces::of(&object);
        for address in 0..=110 {
            let address = Avma(address);
            let mut around = object.ranges.iter().map(|mapped| mapped.range);
            let around = around.find(|range| range.contains(address));
            let size = around.map(|range| range.end.since(range.start));
            assert_eq!(pieces.size_at(address), size, "{address:?}");
        }
    }
}
