//! The descriptors of all keys.

use super::super::trie::NONE;
use super::{
    CellOf, Counter, Descriptor, Heading, Key, KeyNeeds, Order, Part, Role, Shown, Width, cells,
};

impl Key {
    /// All there is to know of it.
    #[must_use]
    pub(crate) fn descriptor(self) -> &'static Descriptor {
        match self {
            Self::Pid => &PID,
            Self::Tid => &TID,
            Self::Tgid => &TGID,
            Self::Comm => &COMM,
            Self::Dso => &DSO,
            Self::Symbol => &SYMBOL,
            Self::Parent => &PARENT,
            Self::Cpu => &CPU,
            Self::Socket => &SOCKET,
            Self::Srcline => &SRCLINE,
            Self::Srcfile => &SRCFILE,
            Self::SymbolSize => &SYMBOL_SIZE,
            Self::Cgroup => &CGROUP,
            Self::Trace => &TRACE,
            Self::Kind => &KIND,
            Self::Own => &OWN,
            Self::IpcNull => &IPC_NULL,
            Self::Time => &TIME,
            Self::Overhead => &OVERHEAD,
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

/// A key that divides samples.
const fn part(
    name: &'static str,
    heading: &'static str,
    order: Order,
    width: Width,
    cell: CellOf,
) -> Descriptor {
    Descriptor {
        name,
        heading: Heading::Is(heading),
        needs: KeyNeeds::NONE,
        filter: None,
        role: Role::Part(Part { order, width, cell }),
    }
}

/// A key that counts.
const fn counter(name: &'static str, heading: Heading, counter: Counter) -> Descriptor {
    Descriptor {
        name,
        heading,
        needs: KeyNeeds::NONE,
        filter: None,
        role: Role::Counter(counter),
    }
}

impl Descriptor {
    const fn needs(self, needs: KeyNeeds) -> Self {
        Self { needs, ..self }
    }

    const fn filter(self, filter: super::FilterOf) -> Self {
        Self {
            filter: Some(filter),
            ..self
        }
    }
}

/// A signed number as one that is in the same order.
fn ascending(number: i32) -> u64 {
    u64::from(number.cast_unsigned() ^ 1 << 31)
}

const CPU_NUMBERS: KeyNeeds = KeyNeeds {
    cpu: true,
    ..KeyNeeds::NONE
};
const LINES: KeyNeeds = KeyNeeds {
    lines: true,
    ..KeyNeeds::NONE
};

static PID: Descriptor = part(
    "pid",
    "    Pid:Command",
    Order::Sample(|samples, entry, _| samples.thread(entry).tid.into()),
    Width::Longest(0, cells::task_room),
    cells::task,
);
static TID: Descriptor = part(
    "tid",
    "    Tid:Command",
    Order::Sample(|samples, entry, _| samples.thread(entry).tid.into()),
    Width::Longest(0, cells::task_room),
    cells::task,
);
static TGID: Descriptor = part(
    "tgid",
    "   Tgid:Command",
    Order::Sample(|samples, entry, _| samples.thread(entry).pid.into()),
    Width::Longest(0, cells::task_room),
    cells::process,
);
static COMM: Descriptor = part(
    "comm",
    "Command",
    Order::Sample(|samples, entry, _| samples.comm(entry).into()),
    Width::Longest(0, cells::comm_room),
    cells::comm,
)
.filter(|options| &options.filter.comms);
static DSO: Descriptor = part(
    "dso",
    "Shared Object",
    Order::Dso,
    Width::Longest(0, cells::dso_room),
    cells::dso,
)
.filter(|options| &options.filter.dsos);
static SYMBOL: Descriptor = part(
    "symbol",
    "Symbol",
    Order::Symbol { by_name: true },
    Width::Longest(0, cells::symbol_room),
    |_, _, _| super::Cell::Symbol,
)
.filter(|options| &options.filter.symbols);
static PARENT: Descriptor = part(
    "parent",
    "Parent symbol",
    Order::Sample(|samples, entry, _| samples.parent(entry).into()),
    Width::Longest(0, cells::parent_room),
    cells::parent,
)
.needs(KeyNeeds {
    stacks: true,
    ..KeyNeeds::NONE
});
static CPU: Descriptor = part(
    "cpu",
    "CPU",
    Order::Sample(|_, entry, _| ascending(entry.cpu)),
    Width::Is(3),
    cells::cpu,
)
.needs(CPU_NUMBERS);
static SOCKET: Descriptor = part(
    "socket",
    "Socket",
    Order::Sample(|samples, entry, _| ascending(samples.profile.recording.socket(entry.cpu))),
    Width::Is(6),
    cells::socket,
)
.needs(CPU_NUMBERS);
static SRCLINE: Descriptor = part(
    "srcline",
    "Source:Line",
    Order::FrameTexts(cells::srclines),
    Width::Longest(0, cells::srcline_room),
    cells::srcline,
)
.needs(LINES);
static SRCFILE: Descriptor = part(
    "srcfile",
    "Source File",
    Order::FrameTexts(cells::srcfiles),
    Width::Longest(0, cells::srcfile_room),
    cells::srcfile,
)
.needs(LINES);
/// perf keeps symbols of one size apart.
static SYMBOL_SIZE: Descriptor = part(
    "symbol_size",
    "Symbol size",
    Order::Symbol { by_name: false },
    Width::Is(0),
    cells::symbol_size,
);
static CGROUP: Descriptor = part(
    "cgroup",
    "Cgroup",
    Order::Sample(|_, entry, _| entry.cgroup.map_or(NONE, |name| name.0).into()),
    Width::Longest(6, cells::cgroup_room),
    cells::cgroup,
)
.needs(KeyNeeds {
    cgroup: true,
    ..KeyNeeds::NONE
});
static TRACE: Descriptor = part(
    "trace",
    "Trace output",
    Order::Sample(|samples, entry, _| samples.payload(entry).into()),
    Width::Longest(0, cells::trace_room),
    cells::trace,
)
.needs(KeyNeeds {
    trace: true,
    ..KeyNeeds::NONE
});
/// pjit's own, as the next one.
static KIND: Descriptor = part(
    "kind",
    "Kind",
    Order::FrameTexts(cells::kinds),
    Width::Is("dependency".len()),
    cells::kind,
)
.needs(KeyNeeds {
    kinds: true,
    ..KeyNeeds::NONE
});
static OWN: Descriptor = part(
    "own",
    "Own function",
    Order::Sample(|samples, entry, _| samples.own(entry).into()),
    Width::Longest(0, cells::own_room),
    cells::own,
)
.needs(KeyNeeds {
    stacks: true,
    kinds: true,
    ..KeyNeeds::NONE
});
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
    Order::Sample(|_, entry, _| entry.time),
    Width::Of(cells::time_width),
    cells::time,
)
.needs(KeyNeeds {
    time: true,
    ..KeyNeeds::NONE
});
static STATE: Descriptor = part(
    "state",
    "State",
    Order::Sample(|_, entry, _| entry.state as u64),
    Width::Is("blocked-io".len()),
    cells::state,
);

static OVERHEAD: Descriptor = counter(
    "overhead",
    Heading::Of(|report, _, _| match report.columns.overhead_is_self {
        true => "Self",
        false => "Overhead",
    }),
    Counter {
        value: |counts| counts.self_period,
        shown: Shown::Share,
        width: 8,
    },
);
static OVERHEAD_CHILDREN: Descriptor = counter(
    "overhead_children",
    Heading::Is("Children"),
    Counter {
        value: |counts| counts.children_period,
        shown: Shown::CreditedShare,
        width: 8,
    },
);
static OVERHEAD_SYS: Descriptor = counter(
    "overhead_sys",
    Heading::Is("sys"),
    Counter {
        value: |counts| counts.by_mode[0],
        shown: Shown::Share,
        width: 8,
    },
);
static OVERHEAD_US: Descriptor = counter(
    "overhead_us",
    Heading::Is("usr"),
    Counter {
        value: |counts| counts.by_mode[1],
        shown: Shown::Share,
        width: 8,
    },
);
static OVERHEAD_GUEST_SYS: Descriptor = counter(
    "overhead_guest_sys",
    Heading::Is("guest sys"),
    Counter {
        value: |counts| counts.by_mode[2],
        shown: Shown::Share,
        width: 9,
    },
);
static OVERHEAD_GUEST_US: Descriptor = counter(
    "overhead_guest_us",
    Heading::Is("guest usr"),
    Counter {
        value: |counts| counts.by_mode[3],
        shown: Shown::Share,
        width: 9,
    },
);
static SAMPLE: Descriptor = counter(
    "sample",
    Heading::Of(|report, table, _| match report.leader(table).counted {
        Some("blocks") => "Blocks",
        Some("intervals") => "Intervals",
        Some("calls") => "Calls",
        _ => "Samples",
    }),
    Counter {
        value: |counts| counts.samples,
        shown: Shown::Number,
        width: 12,
    },
);
static PERIOD: Descriptor = counter(
    "period",
    Heading::Is("Period"),
    Counter {
        value: |counts| counts.self_period,
        shown: Shown::Number,
        width: 12,
    },
);
static WEIGHT: Descriptor = counter(
    "weight",
    Heading::Of(|report, table, _| report.leader(table).unit.heading()),
    Counter {
        value: |counts| counts.self_period,
        shown: Shown::Human,
        width: 12,
    },
);
static METRIC: Descriptor = Descriptor {
    name: "metric",
    heading: Heading::Of(|report, _, key| report.metric(key).map_or("", |metric| &metric.heading)),
    needs: KeyNeeds {
        samples: true,
        ..KeyNeeds::NONE
    },
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
