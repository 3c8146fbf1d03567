//! A recording as tables for SQL engines: the question of `pjit export --format parquet`.

use super::problem::tell_lost;
use super::{AskError, Question, Request, shown_event};
use crate::load::Library;
use crate::needs::Needs;
use crate::output::dataset::{DatasetOptions, Tables};

impl Question for DatasetOptions {
    type Answer = Tables;

    fn needs(&self) -> Needs {
        self.needs()
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Tables, AskError> {
        let diag = library.diag();
        let (mut profile, _) = request.profile(library)?;
        tell_lost(&profile, diag);
        if let Some(name) = request.event.as_deref() {
            let event = shown_event(&profile, Some(name))?;
            profile.entries.retain(|entry| entry.event == event);
            profile.samples.retain(|sample| sample.event == event);
        }
        let tables = Tables::of(&profile, &request.view);
        if !tables.has_date {
            diag.warn(format!(
                "{}: the recording does not tell its date, so it is under date={}: record with perf record -k mono",
                profile.recording.path, tables.date
            ));
        }
        Ok(tables)
    }
}
