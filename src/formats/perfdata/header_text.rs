//! The header of a recording as `perf report --header` prints it.
//!
//! In: the features and events of a recording. Out: lines. The text is that of perf 6.1
//! (`tools/perf/util/header.c`); names come out as they are in the recording, so whoever prints
//! the lines makes control characters harmless.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use tz::DateTime;

use crate::ids::IndexSlice;
use crate::input::local_time;

use super::attr::{Attr, read_format, sample_type};
use super::features::{BpfProgram, EventDesc, Features, MemoryNode, id};
use super::{Event, EventId, Recording};

/// The features that perf 6.1 knows, by number from 1.
const NAMES: [&str; 31] = [
    "TRACING_DATA",
    "BUILD_ID",
    "HOSTNAME",
    "OSRELEASE",
    "VERSION",
    "ARCH",
    "NRCPUS",
    "CPUDESC",
    "CPUID",
    "TOTAL_MEM",
    "CMDLINE",
    "EVENT_DESC",
    "CPU_TOPOLOGY",
    "NUMA_TOPOLOGY",
    "BRANCH_STACK",
    "PMU_MAPPINGS",
    "GROUP_DESC",
    "AUXTRACE",
    "STAT",
    "CACHE",
    "SAMPLE_TIME",
    "MEM_TOPOLOGY",
    "CLOCKID",
    "DIR_FORMAT",
    "BPF_PROG_INFO",
    "BPF_BTF",
    "COMPRESSED",
    "CPU_PMU_CAPS",
    "CLOCK_DATA",
    "HYBRID_TOPOLOGY",
    "PMU_CAPS",
];

/// Printed only with `-I`.
const FULL_ONLY: [u32; 5] = [
    id::CPU_TOPOLOGY,
    id::NUMA_TOPOLOGY,
    id::CACHE,
    id::MEM_TOPOLOGY,
    id::HYBRID_TOPOLOGY,
];

impl Recording<'_> {
    /// The lines of `perf report --header-only`, frame included; with `full` those of `-I`.
    #[must_use]
    pub fn header_lines(&self, full: bool) -> Vec<String> {
        self.features.header_lines(&self.events, full)
    }
}

impl Features {
    /// The lines of `perf report --header-only`, frame included; with `full` those of `-I`.
    #[must_use]
    pub fn header_lines(&self, events: &IndexSlice<EventId, [Event]>, full: bool) -> Vec<String> {
        let mut lines = vec!["# ========".to_owned()];
        let captured = self
            .captured
            .and_then(seconds)
            .and_then(local_time)
            .map(|t| ctime(&t));
        lines.push(format!(
            "# captured on    : {}",
            captured.unwrap_or_default()
        ));
        lines.push("# header version : 1".to_owned());
        lines.push(format!("# data offset    : {}", self.frame.data_offset));
        lines.push(format!("# data size      : {}", self.frame.data_size));
        lines.push(format!("# feat offset    : {}", self.frame.feat_offset));
        let end = ["# ========".to_owned(), "#".to_owned()];
        if self.frame.stream {
            // The features come after the header, as records.
            lines.extend(end);
            self.push_features(events, full, &mut lines);
        } else {
            self.push_features(events, full, &mut lines);
            lines.push(self.missing());
            lines.extend(end);
        }
        lines
    }

    fn missing(&self) -> String {
        let mut line = "# missing features: ".to_owned();
        for (feature, name) in (1..).zip(NAMES) {
            if !self.has(feature) {
                line.push_str(name);
                line.push(' ');
            }
        }
        line
    }

    fn push_features(
        &self,
        events: &IndexSlice<EventId, [Event]>,
        full: bool,
        lines: &mut Vec<String>,
    ) {
        for (feature, name) in (1..).zip(NAMES) {
            if !self.has(feature) {
                continue;
            }
            if FULL_ONLY.contains(&feature) && !full {
                lines.push(format!("# {name} info available, use -I to display"));
            } else {
                self.push_feature(feature, events, lines);
            }
        }
    }

    fn push_feature(
        &self,
        feature: u32,
        events: &IndexSlice<EventId, [Event]>,
        lines: &mut Vec<String>,
    ) {
        let mut text = |label: &str, value: &Option<String>| {
            lines.push(format!(
                "# {label} : {}",
                value.as_deref().unwrap_or("(null)")
            ));
        };
        match feature {
            id::HOSTNAME => text("hostname", &self.hostname),
            id::OSRELEASE => text("os release", &self.os_release),
            id::VERSION => text("perf version", &self.perf_version),
            id::ARCH => text("arch", &self.arch),
            id::CPUDESC => text("cpudesc", &self.cpu_desc),
            id::CPUID => text("cpuid", &self.cpuid),
            id::NRCPUS => {
                lines.push(format!(
                    "# nrcpus online : {}",
                    self.nr_cpus_online.unwrap_or(0)
                ));
                lines.push(format!(
                    "# nrcpus avail : {}",
                    self.nr_cpus_avail.unwrap_or(0)
                ));
            }
            id::TOTAL_MEM => {
                lines.push(format!(
                    "# total memory : {} kB",
                    self.total_mem.unwrap_or(0)
                ));
            }
            id::CMDLINE => lines.push(self.cmdline_line()),
            id::EVENT_DESC => lines.extend(self.event_desc.iter().map(event_line)),
            id::CPU_TOPOLOGY => self.push_cpu_topology(lines),
            id::NUMA_TOPOLOGY => self.push_numa_topology(lines),
            id::BRANCH_STACK => lines.push("# contains samples with branch stack".to_owned()),
            id::PMU_MAPPINGS => lines.push(self.pmu_mappings_line()),
            id::GROUP_DESC => self.push_groups(events, lines),
            id::AUXTRACE => {
                lines.push("# contains AUX area data (e.g. instruction trace)".to_owned());
            }
            id::STAT => lines.push("# contains stat data".to_owned()),
            id::CACHE => self.push_caches(lines),
            id::SAMPLE_TIME => self.push_sample_time(lines),
            id::MEM_TOPOLOGY => self.push_mem_topology(lines),
            id::CLOCKID => {
                // perf multiplies the resolution in ns by 1000 and calls it MHz.
                let mhz = self.clockid.unwrap_or(0).wrapping_mul(1000);
                lines.push(format!("# clockid frequency: {mhz} MHz"));
            }
            id::DIR_FORMAT => {
                let version = self.dir_format.unwrap_or(0);
                lines.push(format!("# directory data version : {version}"));
            }
            id::BPF_PROG_INFO => self.bpf_programs.iter().for_each(|p| push_bpf(p, lines)),
            id::BPF_BTF => {
                lines.extend(
                    self.bpf_btf
                        .iter()
                        .map(|id| format!("# btf info of id {id}")),
                );
            }
            id::COMPRESSED => lines.extend(self.compression.map(|c| {
                let kind = if c.kind == 1 { "Zstd" } else { "Unknown" };
                format!(
                    "# compressed : {kind}, level = {}, ratio = {}",
                    c.level, c.ratio
                )
            })),
            id::CPU_PMU_CAPS => lines.push(caps_line("cpu", &self.cpu_pmu_caps)),
            id::CLOCK_DATA => self.push_clock_data(lines),
            id::HYBRID_TOPOLOGY => {
                lines.push("# hybrid cpu system:".to_owned());
                let pmus = self.hybrid_topology.iter();
                lines.extend(pmus.map(|(pmu, cpus)| format!("# {pmu} cpu list : {cpus}")));
            }
            id::PMU_CAPS => lines.extend(self.pmu_caps.iter().map(|p| caps_line(&p.pmu, &p.caps))),
            _ => {}
        }
    }

    fn cmdline_line(&self) -> String {
        let mut line = "# cmdline : ".to_owned();
        for arg in &self.cmdline {
            line.push_str(&arg.replace('\'', "\\'"));
            line.push(' ');
        }
        line
    }

    fn push_cpu_topology(&self, lines: &mut Vec<String>) {
        let Some(topology) = &self.cpu_topology else {
            return;
        };
        lines.extend(
            topology
                .sockets
                .iter()
                .map(|s| format!("# sibling sockets : {s}")),
        );
        lines.extend(
            topology
                .dies
                .iter()
                .map(|s| format!("# sibling dies    : {s}")),
        );
        lines.extend(
            topology
                .threads
                .iter()
                .map(|s| format!("# sibling threads : {s}")),
        );
        let has_dies = !topology.dies.is_empty();
        for (cpu, place) in topology.cpus.iter().enumerate() {
            let die = if has_dies {
                format!("Die ID {}, ", place.die)
            } else {
                String::new()
            };
            let (core, socket) = (place.core, place.socket);
            lines.push(format!(
                "# CPU {cpu}: Core ID {core}, {die}Socket ID {socket}"
            ));
        }
        if topology.cpus.is_empty() {
            let die = if has_dies { ", Die ID" } else { "" };
            lines.push(format!(
                "# Core ID{die} and Socket ID information is not available"
            ));
        }
    }

    fn push_numa_topology(&self, lines: &mut Vec<String>) {
        for n in &self.numa_nodes {
            let (node, total, free) = (n.node, n.total, n.free);
            lines.push(format!(
                "# node{node} meminfo  : total = {total} kB, free = {free} kB"
            ));
            lines.push(format!("# node{node} cpu list : {}", n.cpus));
        }
    }

    fn pmu_mappings_line(&self) -> String {
        if self.pmu_mappings.is_empty() {
            return "# pmu mappings: not available".to_owned();
        }
        let mappings: Vec<String> = self
            .pmu_mappings
            .iter()
            .map(|(n, name)| format!("{name} = {n}"))
            .collect();
        format!("# pmu mappings: {}", mappings.join(", "))
    }

    fn push_groups(&self, events: &IndexSlice<EventId, [Event]>, lines: &mut Vec<String>) {
        for group in self.groups.iter().filter(|g| g.members > 1) {
            let members = events.raw[group.places(events.len())].iter();
            let names: Vec<&str> = members.map(|e| e.name.as_str()).collect();
            let leader = group.leader.and_then(|leader| events.get(leader));
            let name = leader.and_then(|e| e.group_name.as_deref()).unwrap_or("");
            lines.push(format!("# group: {name}{{{}}}", names.join(",")));
        }
    }

    fn push_caches(&self, lines: &mut Vec<String>) {
        lines.push("# CPU cache info:".to_owned());
        for c in &self.caches {
            lines.push(format!(
                "#  L{} {:<15} {:>8} [{}]",
                c.level, c.kind, c.size, c.cpus
            ));
        }
    }

    fn push_sample_time(&self, lines: &mut Vec<String>) {
        let (first, last) = self.sample_time.unwrap_or((0, 0));
        lines.push(format!("# time of first sample : {}", microseconds(first)));
        lines.push(format!("# time of last sample : {}", microseconds(last)));
        let duration = last.wrapping_sub(first) as f64 / 1e6;
        lines.push(format!("# sample duration : {duration:10.3} ms"));
    }

    fn push_mem_topology(&self, lines: &mut Vec<String>) {
        let Some((block_size, nodes)) = &self.mem_topology else {
            return;
        };
        let nr = nodes.len();
        lines.push(format!(
            "# memory nodes (nr {nr}, block size {block_size:#x}):"
        ));
        for node in nodes {
            let blocks: u64 = node.blocks.iter().map(|w| u64::from(w.count_ones())).sum();
            let size = unit_number(block_size.wrapping_mul(blocks));
            lines.push(format!("#  {:3} [{size}]: {}", node.node, ranges(node)));
        }
    }

    fn push_clock_data(&self, lines: &mut Vec<String>) {
        let Some(data) = self.clock_data else {
            lines.push("# reference time disabled".to_owned());
            return;
        };
        let clock = data.clockid;
        let date = i64::try_from(data.wall_ns / 1_000_000_000)
            .ok()
            .and_then(local_time);
        let date = date.map_or_else(
            || "<error>".to_owned(),
            |t| {
                let micros = data.wall_ns % 1_000_000_000 / 1000;
                format!("{} {}.{micros:06}", ymd(&t), hms(&t))
            },
        );
        let (seconds, nanos) = (data.clock_ns / 1_000_000_000, data.clock_ns % 1_000_000_000);
        lines.push(format!("# clockid: {clock} ({})", clock.0.cast_unsigned()));
        lines.push(format!(
            "# reference time: {date} = {} (TOD) = {seconds}.{nanos:09} ({clock})",
            microseconds(data.wall_ns)
        ));
    }
}

/// Seconds since 1970, also before it.
fn seconds(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).ok(),
        Err(before) => i64::try_from(before.duration().as_secs()).ok().map(|s| -s),
    }
}

/// `Sat Nov 21 11:25:09 2026`
fn ctime(t: &DateTime) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let day = DAYS.get(usize::from(t.week_day())).unwrap_or(&"???");
    let month = usize::from(t.month())
        .checked_sub(1)
        .and_then(|m| MONTHS.get(m))
        .unwrap_or(&"???");
    format!("{day} {month} {:2} {} {}", t.month_day(), hms(t), t.year())
}

fn ymd(t: &DateTime) -> String {
    format!("{}-{:02}-{:02}", t.year(), t.month(), t.month_day())
}

fn hms(t: &DateTime) -> String {
    format!("{:02}:{:02}:{:02}", t.hour(), t.minute(), t.second())
}

/// Seconds with six decimals, cut.
fn microseconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// Bytes in the largest unit that leaves at least 2.
fn unit_number(bytes: u64) -> String {
    let mut n = bytes;
    let mut unit = 'B';
    for larger in ['K', 'M', 'G'] {
        if n / 1024 <= 1 {
            break;
        }
        (n, unit) = (n / 1024, larger);
    }
    format!("{n}{unit}")
}

/// The set bits as perf prints bitmaps: `0-23,32-199`, cut to its buffer.
fn ranges(node: &MemoryNode) -> String {
    const BUFFER: usize = 99;
    let bit = |n: u64| {
        let word = usize::try_from(n / 64)
            .ok()
            .and_then(|w| node.blocks.get(w));
        n < node.bits && word.is_some_and(|w| w & (1 << (n % 64)) != 0)
    };
    let bits = node.bits.min(node.blocks.len() as u64 * 64);
    let mut text = String::new();
    let mut n = 0;
    while n < bits && text.len() < BUFFER {
        if !bit(n) {
            n += 1;
            continue;
        }
        let end = (n..=bits).find(|&end| !bit(end)).unwrap_or(bits);
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match end - n {
            1 => write!(text, "{comma}{n}"),
            _ => write!(text, "{comma}{n}-{}", end - 1),
        };
        n = end;
    }
    text.truncate(BUFFER);
    text
}

fn caps_line(pmu: &str, caps: &[(String, String)]) -> String {
    if caps.is_empty() {
        return format!("# {pmu} pmu capabilities: not available");
    }
    let caps: Vec<String> = caps
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("# {pmu} pmu capabilities: {}", caps.join(", "))
}

fn push_bpf(program: &BpfProgram, lines: &mut Vec<String>) {
    let functions = program.ksyms.len();
    if functions != program.lens.len() || functions != program.tags.len() {
        return;
    }
    let single = functions == 1;
    if !single {
        lines.push(format!("# bpf_prog_info {}:", program.id));
    }
    let parts = program.ksyms.iter().zip(&program.lens).zip(&program.tags);
    for (n, ((addr, len), tag)) in parts.enumerate() {
        let tag: String = tag.iter().map(|b| format!("{b:02x}")).collect();
        let (prefix, name) = if single {
            (
                format!("bpf_prog_info {}", program.id),
                program.name.as_str(),
            )
        } else {
            (format!("\tsub_prog {n}"), "F")
        };
        let underscore = if name.is_empty() { "" } else { "_" };
        lines.push(format!(
            "# {prefix}: bpf_prog_{tag}{underscore}{name} addr {addr:#x} size {len}"
        ));
    }
}

/// One event with everything of its attribute that is not 0.
fn event_line(event: &EventDesc) -> String {
    let mut line = format!("# event : name = {}, ", event.name);
    if !event.ids.is_empty() {
        let ids: Vec<String> = event.ids.iter().map(u64::to_string).collect();
        let _ = write!(line, ", id = {{ {} }}", ids.join(", "));
    }
    for (name, value) in attr_fields(&event.attr) {
        let _ = write!(line, ", {name} = {value}");
    }
    line
}

/// The flag word's fields from its bit 0 on: name and width.
const FLAGS: [(&str, u32); 37] = [
    ("disabled", 1),
    ("inherit", 1),
    ("pinned", 1),
    ("exclusive", 1),
    ("exclude_user", 1),
    ("exclude_kernel", 1),
    ("exclude_hv", 1),
    ("exclude_idle", 1),
    ("mmap", 1),
    ("comm", 1),
    ("freq", 1),
    ("inherit_stat", 1),
    ("enable_on_exec", 1),
    ("task", 1),
    ("watermark", 1),
    ("precise_ip", 2),
    ("mmap_data", 1),
    ("sample_id_all", 1),
    ("exclude_host", 1),
    ("exclude_guest", 1),
    ("exclude_callchain_kernel", 1),
    ("exclude_callchain_user", 1),
    ("mmap2", 1),
    ("comm_exec", 1),
    ("use_clockid", 1),
    ("context_switch", 1),
    ("write_backward", 1),
    ("namespaces", 1),
    ("ksymbol", 1),
    ("bpf_event", 1),
    ("aux_output", 1),
    ("cgroup", 1),
    ("text_poke", 1),
    ("build_id", 1),
    ("inherit_thread", 1),
    ("remove_on_exec", 1),
    ("sigtrap", 1),
];

fn attr_fields(attr: &Attr) -> Vec<(&'static str, String)> {
    let decimal = |name, value: u64| (value != 0).then(|| (name, value.to_string()));
    let hex = |name, value: u64| (value != 0).then(|| (name, format!("{value:#x}")));
    let mut fields = Vec::new();
    fields.extend(decimal("type", u64::from(attr.type_)));
    fields.extend(decimal("size", u64::from(attr.size)));
    fields.extend(hex("config", attr.config));
    fields.extend(decimal(
        "{ sample_period, sample_freq }",
        attr.sample_period,
    ));
    fields.extend(bits("sample_type", attr.sample_type, &SAMPLE_TYPES));
    fields.extend(bits("read_format", attr.read_format, &READ_FORMATS));
    let mut shift = 0;
    for (name, width) in FLAGS {
        fields.extend(decimal(name, (attr.flags >> shift) & ((1 << width) - 1)));
        shift += width;
    }
    fields.extend(decimal(
        "{ wakeup_events, wakeup_watermark }",
        u64::from(attr.wakeup),
    ));
    fields.extend(decimal("bp_type", u64::from(attr.bp_type)));
    fields.extend(hex("{ bp_addr, config1 }", attr.config1));
    fields.extend(hex("{ bp_len, config2 }", attr.config2));
    fields.extend(bits(
        "branch_sample_type",
        attr.branch_sample_type,
        &BRANCH_TYPES,
    ));
    fields.extend(hex("sample_regs_user", attr.sample_regs_user));
    fields.extend(decimal(
        "sample_stack_user",
        u64::from(attr.sample_stack_user),
    ));
    fields.extend((attr.clockid != 0).then(|| ("clockid", attr.clockid.to_string())));
    fields.extend(hex("sample_regs_intr", attr.sample_regs_intr));
    fields.extend(decimal("aux_watermark", u64::from(attr.aux_watermark)));
    fields.extend(decimal(
        "sample_max_stack",
        u64::from(attr.sample_max_stack),
    ));
    fields.extend(decimal("aux_sample_size", u64::from(attr.aux_sample_size)));
    fields.extend(decimal("sig_data", attr.sig_data));
    fields
}

/// Names of the bits that are set, in perf's order, which is not that of the bits.
fn bits(
    name: &'static str,
    value: u64,
    names: &[(u64, &'static str)],
) -> Option<(&'static str, String)> {
    let set: Vec<&str> = names
        .iter()
        .filter(|(bit, _)| value & bit != 0)
        .map(|(_, n)| *n)
        .collect();
    (value != 0).then(|| (name, set.join("|")))
}

const SAMPLE_TYPES: [(u64, &str); 24] = [
    (sample_type::IP, "IP"),
    (sample_type::TID, "TID"),
    (sample_type::TIME, "TIME"),
    (sample_type::ADDR, "ADDR"),
    (sample_type::READ, "READ"),
    (sample_type::CALLCHAIN, "CALLCHAIN"),
    (sample_type::ID, "ID"),
    (sample_type::CPU, "CPU"),
    (sample_type::PERIOD, "PERIOD"),
    (sample_type::STREAM_ID, "STREAM_ID"),
    (sample_type::RAW, "RAW"),
    (sample_type::BRANCH_STACK, "BRANCH_STACK"),
    (sample_type::REGS_USER, "REGS_USER"),
    (sample_type::STACK_USER, "STACK_USER"),
    (sample_type::IDENTIFIER, "IDENTIFIER"),
    (sample_type::REGS_INTR, "REGS_INTR"),
    (sample_type::DATA_SRC, "DATA_SRC"),
    (sample_type::WEIGHT, "WEIGHT"),
    (sample_type::PHYS_ADDR, "PHYS_ADDR"),
    (sample_type::AUX, "AUX"),
    (sample_type::CGROUP, "CGROUP"),
    (sample_type::DATA_PAGE_SIZE, "DATA_PAGE_SIZE"),
    (sample_type::CODE_PAGE_SIZE, "CODE_PAGE_SIZE"),
    (sample_type::WEIGHT_STRUCT, "WEIGHT_STRUCT"),
];

const READ_FORMATS: [(u64, &str); 5] = [
    (read_format::TOTAL_TIME_ENABLED, "TOTAL_TIME_ENABLED"),
    (read_format::TOTAL_TIME_RUNNING, "TOTAL_TIME_RUNNING"),
    (read_format::ID, "ID"),
    (read_format::GROUP, "GROUP"),
    (read_format::LOST, "LOST"),
];

const BRANCH_TYPES: [(u64, &str); 19] = [
    (1 << 0, "USER"),
    (1 << 1, "KERNEL"),
    (1 << 2, "HV"),
    (1 << 3, "ANY"),
    (1 << 4, "ANY_CALL"),
    (1 << 5, "ANY_RETURN"),
    (1 << 6, "IND_CALL"),
    (1 << 7, "ABORT_TX"),
    (1 << 8, "IN_TX"),
    (1 << 9, "NO_TX"),
    (1 << 10, "COND"),
    (1 << 11, "CALL_STACK"),
    (1 << 12, "IND_JUMP"),
    (1 << 13, "CALL"),
    (1 << 14, "NO_FLAGS"),
    (1 << 15, "NO_CYCLES"),
    (1 << 16, "TYPE_SAVE"),
    (1 << 17, "HW_INDEX"),
    (1 << 18, "PRIV_SAVE"),
];
