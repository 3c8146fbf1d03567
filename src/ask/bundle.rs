//! What has to be taken along with a recording: the question of `pjit bundle`.

use super::{AskError, Question, Request};
use crate::assembly;
use crate::bundle::{self, Plan, Wanted};
use crate::load::Library;
use crate::needs::Needs;
use crate::profile::Profile;

/// What has to be taken along with a recording.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// What is wanted of it.
    pub wanted: Wanted,
    /// Which code and sources views could show.
    pub code: assembly::Request,
}

/// What goes into a bundle.
pub struct Bundled {
    /// The bytes of which files go where.
    pub plan: Plan,
    /// Kept, for it takes long to be given back.
    _profile: Profile,
}

impl Question for Bundle {
    type Answer = Bundled;

    fn needs(&self) -> Needs {
        bundle::NEEDS
    }

    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Bundled, AskError> {
        let Bundle { wanted, code } = &request.view;
        let (profile, plan) = library.bundle(&request.load_options()?, code, *wanted)?;
        let warnings = plan.warnings.iter();
        warnings.for_each(|line| library.diag().warn(line.clone()));
        Ok(Bundled {
            plan,
            _profile: profile,
        })
    }
}
