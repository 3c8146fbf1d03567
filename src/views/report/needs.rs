//! What has to be read and computed for a report, as far as its columns and filters decide. Texts of tracepoints, which
//! perf's defaults bring, are the command line's business.

use super::columns::Columns;
use super::keys::SortSpec;
use super::options::{CallGraphMode, ChainKey, ReportOptions, RowsOf};
use crate::needs::Needs;
use crate::profile::Facet;

impl ReportOptions {
    /// What has to be read and computed for the view, whatever the recording has.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let (rows, chains) = (&self.rows, &self.chains);
        let trees = chains.call_graph.mode != CallGraphMode::None;
        let has_key = |key| trees && chains.call_graph.key == key;
        let has_chains = trees
            || (rows.children && !rows.hierarchy)
            || self.filters.exclude_other
            || chains.ignore_callees.is_some();
        // Errors of rates are made of single periods.
        let has_moments = self.columns.all_metrics;
        let has_levels = self.filters.parallelism.is_some();
        let has_lines = has_key(ChainKey::Address) || has_key(ChainKey::Srcline);
        // Rows show the address of their first sample with -v, and data symbols always do.
        let has_addresses = has_key(ChainKey::Address) || self.layout.verbose > 0;
        // Callers are those of perf.
        let own = (Needs::STACKS | Needs::RETURNS).only_if(has_chains)
            | Needs::MOMENTS.only_if(has_moments)
            | Facet::Parallelism.needs().only_if(has_levels)
            | Needs::LINES.only_if(has_lines)
            | Needs::ADDRESSES.only_if(has_addresses)
            | self.needs_of_rows()
            | Columns::resolve(self, rows.children, true).needs();
        let marks_chains = own.contains(Needs::STACKS);
        own | Needs::MARKS | Needs::INLINED.only_if(marks_chains)
    }

    /// What rows are of, and what keys will be asked for if they are branches. Filters look at both ends.
    fn needs_of_rows(&self) -> Needs {
        let (sort, filters) = (self.columns.sort.as_ref(), &self.filters);
        let samples = &filters.samples;
        let has_default = sort.is_none_or(SortSpec::adds_to_default);
        let filters_ends = samples.dsos.is_some()
            || samples.symbols.is_some()
            || filters.symbol_filter.is_some()
            || filters.hide_unresolved;
        let ends = Facet::Source.needs().only_if(has_default || filters_ends)
            | Facet::Cycles.needs().only_if(has_default);
        match self.rows.of {
            RowsOf::AsRecorded => Needs::BRANCHES_AS_RECORDED | ends,
            RowsOf::Samples => Needs::empty(),
            RowsOf::Branches => Needs::BRANCHES | ends,
            RowsOf::Accesses => Needs::ACCESSES,
        }
    }
}
