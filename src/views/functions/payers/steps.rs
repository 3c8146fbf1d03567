//! What the frames of a stack are on the way from its root: whose, and what runs there. Pictures show it by colour.

use super::{ActivityId, Doing, PayerId, Payers, Pays};
use crate::profile::FrameId;

/// What a frame of a stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its own package, if it belongs to one.
    pub package: Option<PayerId>,
    /// That, or the package of its nearest caller that belongs to one: who pays if the stack ends here.
    pub payer: Option<PayerId>,
    /// What is done if the stack ends here.
    pub activity: ActivityId,
}

impl Payers<'_> {
    /// The package that a frame itself belongs to.
    pub fn package(&mut self, frame: FrameId) -> Option<&str> {
        let known = self.look(frame);
        match self.known[known].pays {
            Pays::Nobody | Pays::Nameless | Pays::Std(_) => None,
            Pays::Package(id) | Pays::Vendored(id) => Some(&self.payers[id].name),
        }
    }

    /// What each frame of a stack is, leaf first as the frames are. The first tells what [`of`](Self::of) says of the stack.
    pub fn steps(&mut self, frames: &[FrameId], steps: &mut Vec<Step>) {
        steps.clear();
        let mut payer = None;
        // Of the frames from the payer inwards; the last rank counts for the function that runs alone.
        let (mut best, mut running): (Option<Doing>, Option<Doing>) = (None, None);
        for (depth, frame) in frames.iter().enumerate().rev() {
            let known = self.look(*frame);
            let pays = self.known[known].pays;
            let package = match pays {
                Pays::Nobody | Pays::Nameless | Pays::Std(_) => None,
                Pays::Vendored(id) if self.is_in_std(id, &frames[depth + 1..]) => None,
                Pays::Package(id) | Pays::Vendored(id) => Some(id),
            };
            if package.is_some() || matches!(pays, Pays::Nameless) {
                (payer, best, running) = (package, None, None);
            }
            let doing = match self.known[known].doing {
                Some(doing) => doing,
                None => self.doing_of(*frame, known),
            };
            let lowest = |a: Option<Doing>, b: Option<Doing>| match (a, b) {
                (Some(a), Some(b)) if b.rank < a.rank || b.kind_of == Some(a.activity) => Some(b),
                (a, b) => a.or(b),
            };
            let (last, others) = match doing.row {
                Some(row) if row.rank == 3 => (Some(row), None),
                row => (None, row),
            };
            running = running.filter(|_| self.profile.is_inlined(*frame)).or(last);
            best = lowest(best, others);
            let here = lowest(best, running);
            steps.push(Step {
                package,
                payer,
                activity: here.map_or(doing.alone, |here| here.activity),
            });
        }
        steps.reverse();
    }
}
