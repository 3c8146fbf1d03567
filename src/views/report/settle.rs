//! What of the options depends on the recording.

use super::keys::{Key, SortSpec};
use super::options::{CallGraphMode, Latency, ReportOptions, RowsOf};
use crate::metrics::Metric;
use crate::profile::Profile;

impl ReportOptions {
    /// Leaves out shares of latency where they would be those of periods, unless they were named
    /// (`ui/hist.c:perf_hpp__cancel_latency`).
    fn settle_latency(&mut self, profile: &Profile) {
        /// Per cent of the samples.
        const NEARLY_ALL: u64 = 99;
        let is_named = (self.columns.sort.as_ref()).is_some_and(|sort| sort.mentions("latency"));
        if self.columns.latency != Latency::Beside || is_named {
            return;
        }
        let (mut all, mut alone) = (0_u64, 0_u64);
        for entry in &profile.entries {
            all += entry.samples;
            if profile.facets.parallelism(entry.facets) == 1 {
                alone += entry.samples;
            }
        }
        if all > 0 && alone * 100 / all >= NEARLY_ALL {
            self.columns.latency = Latency::Off;
        }
    }

    /// Rows that are no samples have keys of their own, and callers are not credited (`builtin-report.c`). Branches have no
    /// chains at all. perf's column of the word `symbol` would be empty.
    fn settle_rows(&mut self, profile: &Profile) {
        if profile.branches.is_some() {
            self.rows.of = RowsOf::Branches;
            self.chains.call_graph.mode = CallGraphMode::None;
        }
        let Some(default) = self.rows.of.default_keys() else {
            return;
        };
        self.rows.children = false;
        let parsed = SortSpec::parse(default, "").ok();
        self.columns.default_sort = parsed.map(|sort| sort.without(Key::IpcNull));
        let sort = self.columns.sort.take();
        self.columns.sort = sort.map(|sort| sort.with_default(default).without(Key::IpcNull));
    }

    /// Fills in what depends on the recording: where all events are tracepoints, rows are told apart by their
    /// payloads (`util/sort.c:get_default_sort_order`).
    pub fn settle(&mut self, profile: &Profile) {
        if self.columns.all_metrics {
            let names: Vec<&str> = profile.events.iter().map(|e| e.name.as_str()).collect();
            self.columns.metrics = Metric::available(&names);
        }
        self.settle_latency(profile);
        self.columns.show_weight = profile.events.iter().any(|event| event.counted.is_some());
        if profile.events.iter().all(|event| event.is_tracepoint) {
            let default = if profile.fields.is_empty() || self.columns.sort.is_some() {
                SortSpec::TRACEPOINTS
            } else {
                // With --raw-trace.
                SortSpec::TRACE_FIELDS
            };
            let default = SortSpec::parse(default, "").ok();
            self.columns.default_sort = default.map(|sort| sort.with_fields(&profile.fields));
            let sort = self.columns.sort.as_ref();
            self.columns.sort = sort.map(|sort| sort.with_default(SortSpec::TRACEPOINTS));
        }
        self.settle_rows(profile);
        let sort = self.columns.sort.as_ref();
        self.columns.sort = sort.map(|sort| sort.with_fields(&profile.fields));
    }
}
