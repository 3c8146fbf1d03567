//! The recordings of a comparison, as they are named on the command line.

use std::path::PathBuf;

use clap::Args;

use super::filters::TimeArgs;
use super::input::{Environment, InputArgs};
use super::question::QuestionArgs;
use crate::ask::Request;
use crate::load::Source;

/// Recordings of two sides, and how they are read.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    /// Recordings of the base, or BASE and NEW
    #[arg(value_name = "BASE")]
    base: Vec<PathBuf>,

    /// New recordings
    #[arg(long = "to", value_name = "NEW", num_args = 1..)]
    to: Vec<PathBuf>,

    /// The recordings' companions.
    #[command(flatten)]
    pub(super) input: InputArgs,

    #[command(flatten)]
    question: QuestionArgs,
}

impl RunArgs {
    /// The paths of base and new: with `--to` all words are the base.
    ///
    /// # Errors
    /// When there are none, or it is not clear which side they are on. `may_be_one` stands for both.
    pub(super) fn paths(
        &self,
        needs_base: bool,
        may_be_one: bool,
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>), String> {
        if !self.input.input.is_empty() {
            return Err(
                "-i is not for comparisons: name both sides\nhint: pjit diff BASE NEW".to_owned(),
            );
        }
        match (self.base.as_slice(), self.to.as_slice()) {
            ([base, new], []) => Ok((vec![base.clone()], vec![new.clone()])),
            ([one], []) if may_be_one => Ok((vec![one.clone()], vec![one.clone()])),
            ([new], []) if !needs_base => Ok((Vec::new(), vec![new.clone()])),
            (base, []) if base.len() != 2 => Err(
                "name two recordings, or both sides with --to\nhint: pjit diff base/ --to new/"
                    .to_owned(),
            ),
            ([], _) if needs_base => {
                Err("no recording of the base is named\nhint: pjit diff base/ --to new/".to_owned())
            }
            (base, new) => Ok((base.to_vec(), new.to_vec())),
        }
    }

    /// What says which time is looked at.
    pub(super) const fn times(&self) -> &TimeArgs {
        self.question.times()
    }

    /// The request for a view of them.
    ///
    /// # Errors
    /// When an expression or a list is none.
    pub(super) fn request<Q>(
        &self,
        environment: &Environment,
        view: Q,
    ) -> Result<Request<Q>, String> {
        let load = self.input.load_options_of(Source::Default, environment);
        self.question.request(load, &self.input, view)
    }
}
