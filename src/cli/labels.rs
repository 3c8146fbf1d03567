//! `--label`: the same option of all verbs that write for servers and databases.

use clap::Args;

use super::verb::wrong_usage;
use crate::tags::{Tag, Tags};

/// What the user says of the recordings.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LabelArgs {
    /// pprof, parquet: give the recordings a label, such as host=web-1 (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    given_tags: Vec<Tag>,
}

impl LabelArgs {
    /// Whether there are any.
    pub(super) const fn is_given(&self) -> bool {
        !self.given_tags.is_empty()
    }

    /// The labels by key.
    ///
    /// # Errors
    /// When a key is given twice.
    pub(super) fn tags(&self) -> anyhow::Result<Tags> {
        Tags::of(self.given_tags.clone())
            .map_err(|key| wrong_usage(format!("--label: '{key}' is given twice")))
    }
}
