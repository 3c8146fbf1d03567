//! Everything that decides what ends up in the profile.

use std::path::PathBuf;

use super::source::Source;
use crate::collect;
use crate::find::{SearchPaths, SourcePaths};
use crate::needs::Needs;
use crate::session::Filter;
use crate::span_spec::Spans;
use crate::stitch::Mending;
use crate::symbolize;
use crate::time_spec::TimeSpec;
use crate::weigh;

/// Everything that decides what ends up in the profile.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The recording.
    pub source: Source,
    /// Other recordings, whose samples are added to its samples; [`super::Library::load`] and the like read them.
    pub more: Vec<Source>,
    /// Whether all of them weigh the same.
    pub normalizes: bool,
    /// Where all that belongs to the recording is looked for; its folder is filled in here.
    pub search: SearchPaths,
    /// Samples to keep.
    pub filter: Filter,
    /// Ranges of time to keep besides, as shares of the recording perhaps.
    pub time: Option<TimeSpec>,
    /// What headers say of that time.
    pub time_said: Option<String>,
    /// Events between which samples are kept.
    pub switch: SwitchNames,
    /// Times of threads between two events to keep, if not all.
    pub spans: Option<Spans>,
    /// Name of the event that evidence is about; without one, the main one ([`crate::profile::Profile::main_event`]).
    pub event: Option<String>,
    /// What is computed.
    pub needs: Needs,
    /// What is not computed, whoever needs it: the user does not want to see it.
    pub refused: Needs,
    /// Objects whose debug information is not read, by the names that tables show: in a comparison the other side has none.
    pub bare: Vec<String>,
    /// Threads, limits and formats.
    pub reading: collect::Options,
    /// What is done about stacks that were cut.
    pub mending: Mending,
    /// How names are shown.
    pub names: symbolize::Options,
    /// `-I`: the header block in full.
    pub full_header: bool,
    /// Words of `--sort` that are fields of tracepoints.
    pub fields: Vec<String>,
    /// What samples weigh.
    pub weight: weigh::Options,
    /// A warning and a note tell how whole stacks are.
    pub tells_quality: bool,
}

/// Names of the events that begin and end what is kept, as perf has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchNames {
    /// `--switch-on`
    pub on: Option<String>,
    /// `--switch-off`
    pub off: Option<String>,
    /// `--show-on-off-events`
    pub shows: bool,
    /// Those on CPUs that are not kept count, as in perf's report, but not in its script.
    pub of_any_cpu: bool,
}

impl LoadOptions {
    /// The whole recording with merged stacks, without inlined functions, and what belongs to it where perf would look.
    #[must_use]
    pub fn of(source: Source) -> Self {
        Self {
            source,
            more: Vec::new(),
            normalizes: false,
            search: SearchPaths::default(),
            filter: Filter::default(),
            time: None,
            time_said: None,
            switch: SwitchNames::default(),
            spans: None,
            event: None,
            needs: Needs::STACKS | Needs::MARKS,
            refused: Needs::empty(),
            bare: Vec::new(),
            reading: collect::Options::default(),
            mending: Mending::default(),
            names: symbolize::Options::default(),
            full_header: false,
            fields: Vec::new(),
            weight: weigh::Options::default(),
            tells_quality: true,
        }
    }

    /// Each recording for itself; not of each is told how whole its stacks are.
    pub fn apart(&self) -> impl Iterator<Item = Self> + '_ {
        let sources = std::iter::once(&self.source).chain(&self.more);
        sources.map(|source| Self {
            source: source.clone(),
            more: Vec::new(),
            tells_quality: false,
            ..self.clone()
        })
    }

    /// Where sources are looked for: below these folders, and beside the recording.
    #[must_use]
    pub fn sources(&self, roots: &[PathBuf]) -> SourcePaths {
        let folder = self.source.folder();
        let bundle = self.search.beside(&folder).bundle;
        SourcePaths {
            roots: roots.to_vec(),
            beside: Some(folder),
            prefix: None,
            strip: 0,
            symfs: bundle.map(|bundle| bundle.root),
            recorded: self.source.written(),
            debuginfod: self.search.debuginfod.clone(),
        }
    }
}
