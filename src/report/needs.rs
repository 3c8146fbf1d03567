//! What has to be read and computed for a report, as far as its columns and filters decide. Texts of tracepoints, which
//! perf's defaults bring, are the command line's business.

use super::columns::Columns;
use super::keys::KeyNeeds;
use super::options::{CallGraphMode, ChainKey, ReportOptions};

impl ReportOptions {
    /// What has to be read and computed for the view, whatever the recording has.
    #[must_use]
    pub fn needs(&self) -> KeyNeeds {
        let (rows, chains) = (&self.rows, &self.chains);
        let trees = chains.call_graph.mode != CallGraphMode::None;
        let has_key = |key| trees && chains.call_graph.key == key;
        let own = KeyNeeds {
            stacks: trees
                || (rows.children && !rows.hierarchy)
                || self.filters.exclude_other
                || chains.ignore_callees.is_some(),
            parallelism: self.filters.parallelism.is_some(),
            // Errors of rates are made of single periods, and each sample has a parallelism of its own.
            samples: self.columns.all_metrics || self.filters.parallelism.is_some(),
            lines: has_key(ChainKey::Address) || has_key(ChainKey::Srcline),
            // Rows show the address of their first sample with -v, and data symbols always do.
            addresses: has_key(ChainKey::Address) || self.layout.verbose > 0,
            ..KeyNeeds::NONE
        };
        own.and(Columns::resolve(self, rows.children, true).needs())
    }

    /// How far apart in time samples are that are read into entries of their own, in ns; nothing if time takes none apart.
    #[must_use]
    pub fn time_apart(&self) -> Option<u64> {
        match self.needs() {
            // The time key floors times itself then.
            KeyNeeds { samples: true, .. } => Some(1),
            KeyNeeds { time: true, .. } => Some(self.rows.time_quantum),
            _ => None,
        }
    }
}
