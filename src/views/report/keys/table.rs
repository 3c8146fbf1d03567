//! The descriptors of all keys.

use super::super::ADDRESS_DIGITS;
use super::super::apart::Order;
use super::super::rows::Counts;
use super::{Counter, Descriptor, Heading, Key, Role, Shown, Width, cells, ends, part};
use crate::functions::payers::PaidPart;
use crate::needs::Needs;
use crate::profile::{Facet, Show};

impl Key {
    /// All there is to know of it.
    #[must_use]
    pub(crate) fn descriptor(self) -> &'static Descriptor {
        match self {
            Self::Pid => &PID,
            Self::Tid => &TID,
            Self::Tgid => &TGID,
            Self::Comm => &COMM,
            Self::CommNodigit => &COMM_NODIGIT,
            Self::Dso => &DSO,
            Self::Symbol => &SYMBOL,
            Self::Parent => &PARENT,
            Self::Facet(facet) => &FACETS[facet as usize],
            Self::End(end) => ends::descriptor(end),
            Self::Sum(facet) => ends::sum_descriptor(facet),
            Self::Socket => &SOCKET,
            Self::Srcline => &SRCLINE,
            Self::Srcfile => &SRCFILE,
            Self::SymbolSize => &SYMBOL_SIZE,
            Self::Symoff => &SYMOFF,
            Self::Addr => &ADDR,
            Self::DsoSize => &DSO_SIZE,
            Self::CgroupId => &CGROUP_ID,
            Self::Kind => &KIND,
            Self::Own => &OWN,
            Self::Package => &PACKAGE,
            Self::Activity => &ACTIVITY,
            Self::IpcNull => &IPC_NULL,
            Self::Time => &TIME,
            Self::Overhead => &OVERHEAD,
            Self::Latency => &LATENCY,
            Self::LatencyChildren => &LATENCY_CHILDREN,
            Self::OverheadSys => &OVERHEAD_SYS,
            Self::OverheadUs => &OVERHEAD_US,
            Self::OverheadGuestSys => &OVERHEAD_GUEST_SYS,
            Self::OverheadGuestUs => &OVERHEAD_GUEST_US,
            Self::OverheadChildren => &OVERHEAD_CHILDREN,
            Self::Sample => &SAMPLE,
            Self::Period => &PERIOD,
            Self::State => &STATE,
            Self::Weight => &WEIGHT,
            Self::Metric(_) => &METRIC,
            Self::Named(_) => &NAMED,
            Self::Field(_) => &FIELD,
        }
    }
}

/// Keys that have one word, besides [`Facet`]s.
pub(super) const KEYS: [Key; 33] = {
    use Key::*;
    [
        Pid,
        Comm,
        CommNodigit,
        Dso,
        Symbol,
        Parent,
        Socket,
        Srcline,
        Srcfile,
        SymbolSize,
        DsoSize,
        CgroupId,
        IpcNull,
        Time,
        Addr,
        Tid,
        Tgid,
        Symoff,
        State,
        Kind,
        Own,
        Package,
        Activity,
        Overhead,
        Latency,
        OverheadSys,
        OverheadUs,
        OverheadGuestSys,
        OverheadGuestUs,
        OverheadChildren,
        LatencyChildren,
        Sample,
        Period,
    ]
};

/// A counter shown as a share of everything.
const fn share(width: usize, value: fn(&Counts) -> u64) -> Counter {
    Counter {
        value,
        is_credited: false,
        shown: Shown::Share,
        width,
    }
}

/// A counter shown as it is.
const fn number(shown: Shown, value: fn(&Counts) -> u64) -> Counter {
    Counter {
        shown,
        ..share(12, value)
    }
}

/// A key that counts.
const fn counter(name: &'static str, heading: Heading, counter: Counter) -> Descriptor {
    Descriptor {
        name,
        heading,
        needs: Needs::empty(),
        filter: None,
        role: Role::Counter(counter),
    }
}

/// A signed number as one that is in the same order.
fn ascending(number: i32) -> u64 {
    u64::from(number.cast_unsigned() ^ 1 << 31)
}

/// Periods are divided one by one.
const RUNNING: Needs = Facet::Parallelism.needs().union(Needs::MOMENTS);

/// The key of a facet.
const fn of_facet(facet: Facet) -> Descriptor {
    let row = facet.row();
    let width = match row.show {
        Show::Number(_) | Show::Right(_) | Show::Falling(_) | Show::Hidden => Width::Is(row.width),
        Show::Name | Show::Payload => Width::Longest(row.width, cells::facet_room),
    };
    part(
        row.name,
        row.heading,
        Order::Sample(|samples, entry, key| match key {
            Key::Facet(chosen) => samples.facet(entry, chosen),
            _ => 0,
        }),
        width,
        cells::facet,
    )
    .needs(facet.needs())
}

static FACETS: [Descriptor; Facet::ALL.len()] = {
    let mut all = [of_facet(Facet::ALL[0]); Facet::ALL.len()];
    let mut at = 1;
    while at < all.len() {
        all[at] = of_facet(Facet::ALL[at]);
        at += 1;
    }
    all
};

static PID: Descriptor = part(
    "pid",
    "    Pid:Command",
    Order::Sample(|samples, entry, _| samples.thread(entry).tid.into()),
    Width::Longest(0, cells::task_room),
    cells::task,
)
.needs(Needs::THREADS);
static TID: Descriptor = part(
    "tid",
    "    Tid:Command",
    Order::Sample(|samples, entry, _| samples.thread(entry).tid.into()),
    Width::Longest(0, cells::task_room),
    cells::task,
)
.needs(Needs::THREADS);
static TGID: Descriptor = part(
    "tgid",
    "   Tgid:Command",
    Order::Sample(|samples, entry, _| samples.thread(entry).pid.into()),
    Width::Longest(0, cells::task_room),
    cells::process,
)
.needs(Needs::THREADS);
static COMM: Descriptor = part(
    "comm",
    "Command",
    Order::Sample(|samples, entry, _| samples.comm(entry).into()),
    Width::Longest(0, cells::comm_room),
    cells::comm,
)
.filter(|options| &options.filters.samples.comms);
static COMM_NODIGIT: Descriptor = part(
    "comm_nodigit",
    "CommandNoDigit",
    Order::Sample(|samples, entry, _| samples.comm_nodigit(entry).into()),
    Width::Longest(0, cells::comm_nodigit_room),
    cells::comm_nodigit,
);
static DSO: Descriptor = part(
    "dso",
    "Shared Object",
    Order::Dso,
    Width::Longest(0, cells::dso_room),
    cells::dso,
)
.filter(|options| &options.filters.samples.dsos);
static SYMBOL: Descriptor = part(
    "symbol",
    "Symbol",
    Order::Symbol { by_name: true },
    Width::Longest(0, cells::symbol_room),
    |_, _, _| super::Cell::Symbol,
)
.filter(|options| &options.filters.samples.symbols);
static PARENT: Descriptor = part(
    "parent",
    "Parent symbol",
    Order::Sample(|samples, entry, _| samples.parent(entry).into()),
    Width::Longest(0, cells::parent_room),
    cells::parent,
)
.needs(Needs::STACKS);
static SOCKET: Descriptor = part(
    "socket",
    "Socket",
    Order::Sample(|samples, entry, _| {
        let cpu = samples.profile.facets.cpu(entry.facets);
        ascending(samples.profile.recording.socket(cpu))
    }),
    Width::Is(6),
    cells::socket,
)
.needs(Facet::Cpu.needs());
static SRCLINE: Descriptor = part(
    "srcline",
    "Source:Line",
    Order::FrameTexts(cells::srclines),
    Width::Longest(0, cells::srcline_room),
    cells::srcline,
)
.needs(Needs::LINES);
static SRCFILE: Descriptor = part(
    "srcfile",
    "Source File",
    Order::FrameTexts(cells::srcfiles),
    Width::Longest(0, cells::srcfile_room),
    cells::srcfile,
)
.needs(Needs::LINES);
/// perf keeps symbols of one size apart.
static SYMBOL_SIZE: Descriptor = part(
    "symbol_size",
    "Symbol size",
    Order::Symbol { by_name: false },
    Width::Is(0),
    cells::symbol_size,
);
static SYMOFF: Descriptor = part(
    "symoff",
    "Symbol Offset",
    Order::SymbolAnd(cells::offsets),
    Width::Is(0),
    cells::symoff,
)
.needs(Needs::ADDRESSES);
static ADDR: Descriptor = part(
    "addr",
    "Address",
    Order::FrameNumbers(cells::addresses),
    Width::Is(ADDRESS_DIGITS + 2),
    cells::address,
)
.needs(Needs::ADDRESSES);
static DSO_SIZE: Descriptor = part(
    "dso_size",
    "DSO size",
    Order::FrameNumbers(cells::mapped_sizes),
    Width::Is(0),
    cells::dso_size,
)
.needs(
    Needs::ADDRESSES
        .union(Needs::RANGES)
        .union(Needs::KERNEL_RANGES),
);
static CGROUP_ID: Descriptor = part(
    "cgroup_id",
    "cgroup id (dev/inode)",
    Order::Sample(|samples, entry, _| samples.namespace(entry).into()),
    Width::Is(20),
    cells::cgroup_id,
)
.needs(Needs::MOMENTS);
/// pjit's own, as the next three.
static KIND: Descriptor = part(
    "kind",
    "Kind",
    Order::FrameTexts(cells::kinds),
    Width::Is("dependency".len()),
    cells::kind,
)
.needs(Needs::KINDS);
static OWN: Descriptor = part(
    "own",
    "Own function",
    Order::Sample(|samples, entry, _| samples.own(entry).into()),
    Width::Longest(0, cells::own_room),
    cells::own,
)
.needs(Needs::STACKS.union(Needs::KINDS));
static PACKAGE: Descriptor = part(
    "package",
    "Package",
    Order::Sample(|samples, entry, _| samples.paid(entry, PaidPart::Package)),
    Width::Longest(0, cells::package_room),
    cells::package,
)
.needs(Needs::STACKS.union(Needs::INLINED).union(Needs::KINDS));
static ACTIVITY: Descriptor = part(
    "activity",
    "Activity",
    Order::Sample(|samples, entry, _| samples.paid(entry, PaidPart::Activity)),
    Width::Longest(0, cells::activity_room),
    cells::activity,
)
.needs(Needs::STACKS.union(Needs::INLINED).union(Needs::KINDS));
static IPC_NULL: Descriptor = part(
    "ipc_null",
    "IPC   [IPC Coverage]",
    Order::Nothing,
    Width::Is(0),
    |_, _, _| super::Cell::Filled("-      -".into()),
);
static TIME: Descriptor = part(
    "time",
    "Time",
    Order::Sample(|samples, entry, _| samples.options.rows.step_of(entry)),
    Width::Of(cells::time_width),
    cells::time,
)
.needs(Needs::TIME);
static STATE: Descriptor = part(
    "state",
    "State",
    Order::Sample(|_, entry, _| entry.state as u64),
    Width::Is("blocked-io".len()),
    cells::state,
);

static OVERHEAD: Descriptor = counter(
    "overhead",
    Heading::Of(|report, _, _| {
        if report.columns.overhead_is_self {
            "Self"
        } else {
            "Overhead"
        }
    }),
    share(8, |counts| counts.self_period),
);
static OVERHEAD_CHILDREN: Descriptor = counter(
    "overhead_children",
    Heading::Is("Children"),
    Counter {
        is_credited: true,
        ..share(8, |counts| counts.children_period)
    },
);
static LATENCY: Descriptor = counter(
    "latency",
    Heading::Is("Latency"),
    Counter {
        shown: Shown::LatencyShare,
        ..share(8, |counts| counts.latency)
    },
)
.needs(RUNNING);
/// perf forgets that its column is as wide as others.
static LATENCY_CHILDREN: Descriptor = counter(
    "latency_children",
    Heading::Is("Latency"),
    Counter {
        shown: Shown::LatencyShare,
        is_credited: true,
        ..share(7, |counts| counts.children_latency)
    },
)
.needs(RUNNING);
static OVERHEAD_SYS: Descriptor = counter(
    "overhead_sys",
    Heading::Is("sys"),
    share(8, |counts| counts.by_mode[0]),
);
static OVERHEAD_US: Descriptor = counter(
    "overhead_us",
    Heading::Is("usr"),
    share(8, |counts| counts.by_mode[1]),
);
static OVERHEAD_GUEST_SYS: Descriptor = counter(
    "overhead_guest_sys",
    Heading::Is("guest sys"),
    share(9, |counts| counts.by_mode[2]),
);
static OVERHEAD_GUEST_US: Descriptor = counter(
    "overhead_guest_us",
    Heading::Is("guest usr"),
    share(9, |counts| counts.by_mode[3]),
);
static SAMPLE: Descriptor = counter(
    "sample",
    Heading::Of(|report, table, _| match report.leader(table).counted {
        Some("blocks") => "Blocks",
        Some("intervals") => "Intervals",
        Some("calls") => "Calls",
        _ => "Samples",
    }),
    number(Shown::Number, |counts| counts.samples),
);
static PERIOD: Descriptor = counter(
    "period",
    Heading::Is("Period"),
    number(Shown::Number, |counts| counts.self_period),
);
static WEIGHT: Descriptor = counter(
    "weight",
    Heading::Of(|report, table, _| report.leader(table).unit.heading()),
    number(Shown::Human, |counts| counts.self_period),
);
static METRIC: Descriptor = Descriptor {
    name: "metric",
    heading: Heading::Of(|report, _, key| report.metric(key).map_or("", |metric| &metric.heading)),
    needs: Needs::MOMENTS,
    filter: None,
    role: Role::Rate,
};
static NAMED: Descriptor = part("named", "", Order::Nothing, Width::Is(0), |_, _, _| {
    super::Cell::Filled("".into())
});
static FIELD: Descriptor = Descriptor {
    heading: Heading::OnRight(cells::field_name),
    ..part(
        "field",
        "",
        Order::Sample(|samples, entry, key| samples.field(entry, key).into()),
        Width::Longest(0, cells::field_room),
        cells::field_value,
    )
};
