//! Tables and call graphs as perf prints them: the question of `pjit report`.

use super::{AskError, Question, Request, filter, require_samples};
use crate::diagnostics::Diagnostics;
use crate::load::{self, LoadError};
use crate::needs::Needs;
use crate::perfdata::NoField;
use crate::profile::{Facet, Profile};
use crate::report::keys::known_keys;
use crate::report::options::ReportOptions;
use crate::report::{self, ReportError};

/// Tables and call graphs.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Rows, columns, chains and layout.
    pub options: ReportOptions,
    /// Payloads of tracepoints are shown as their fields are stored, not as the kernel would print them.
    pub raw_trace: bool,
}

/// A recording whose report can be built.
pub struct Reported {
    profile: Profile,
    options: ReportOptions,
}

impl Question for Report {
    type Answer = Reported;

    fn needs(&self) -> Needs {
        let needs = self.options.needs() | self.options.filters.samples.needs();
        match &self.options.columns.sort {
            _ if needs.contains(Facet::Payload.needs()) => needs,
            Some(sort) if !sort.adds_to_default() => needs,
            Some(_) if self.raw_trace => needs | Facet::Payload.needs(),
            // perf's default for recordings of tracepoints alone.
            _ => needs | Needs::ONLY_PAYLOADS,
        }
    }

    fn answer(request: &Request<Self>, diag: &Diagnostics) -> Result<Reported, AskError> {
        let mut load = request.load_options();
        let mut options = request.view.options.clone();
        load.reading.raw_payloads = request.view.raw_trace;
        load.reading.time_step = options.rows.time_quantum;
        let sort = options.columns.sort.as_ref();
        load.fields = sort.map_or_else(Vec::new, |sort| sort.named.clone());
        let loaded = load::load(&load, diag);
        let mut profile = loaded.map_err(|error| match error {
            LoadError::Field(error) => AskError::Request(no_key(&error)),
            error => error.into(),
        })?;
        require_samples(&profile)?;
        filter(&mut profile, &request.filters, &request.own)?;
        options.settle(&profile);
        Ok(Reported { profile, options })
    }
}

impl Reported {
    /// Builds the tables.
    ///
    /// # Errors
    /// When call graphs, latencies or rates are wanted and the recording has none.
    pub fn build(&self) -> Result<report::Report<'_>, ReportError> {
        report::build(&self.profile, &self.options)
    }
}

/// What is said of a word of `--sort` that is neither a key nor a field.
fn no_key(error: &NoField) -> String {
    let keys = known_keys().join(" ");
    format!("unknown --sort key: {error}; keys: {keys}")
}
