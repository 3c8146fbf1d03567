//! What of the options depends on the recording.

use super::keys::SortSpec;
use super::options::{Latency, ReportOptions};
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
        let sort = self.columns.sort.as_ref();
        self.columns.sort = sort.map(|sort| sort.with_fields(&profile.fields));
    }
}
