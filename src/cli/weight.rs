//! `--weight`: the same option of all verbs that read samples.

use clap::Args;

use crate::load::LoadOptions;
use crate::weigh::{Options, Spec};

/// What samples weigh.
#[derive(Debug, Clone, Default, Args)]
pub struct WeightArgs {
    /// Count bytes, waits or others (pjit help weights)
    #[arg(
        long = "weight",
        value_name = "SPEC",
        value_parser = parse,
        help_heading = "Weight"
    )]
    weight: Option<Given>,

    /// With --weight: show frames of the allocator and scheduler
    #[arg(long = "no-trim", help_heading = "Weight")]
    no_trim: bool,
}

/// The value as it was typed, and what it means.
#[derive(Debug, Clone)]
struct Given {
    text: String,
    spec: Spec,
}

fn parse(text: &str) -> Result<Given, String> {
    Ok(Given {
        text: text.trim().to_owned(),
        spec: Spec::parse(text)?,
    })
}

impl WeightArgs {
    /// Asks for the weight. `force` also shows what is known to be wrong; `shows_states` ends stacks with what threads
    /// were doing.
    pub fn apply(&self, load: &mut LoadOptions, force: bool, shows_states: bool) {
        let Some(given) = &self.weight else {
            load.weight.trims = !self.no_trim;
            return;
        };
        load.weight = Options {
            spec: given.spec.clone(),
            text: given.text.clone(),
            infers: false,
            force,
            trims: !self.no_trim,
            shows_states: shows_states && given.spec == Spec::Wall,
            tells_pairs: false,
        };
    }

    /// Whether a weight was asked for, be it the one that samples have.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.weight.is_some()
    }

    /// What was asked for.
    #[must_use]
    pub fn spec(&self) -> Spec {
        self.weight
            .as_ref()
            .map_or(Spec::Period, |given| given.spec.clone())
    }
}
