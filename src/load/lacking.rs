//! Which builds lack names or inlined functions, that a debuginfod server may have.
//!
//! In: what the reading stages made of a recording. Out: builds that are proven to be those that were mapped, with the samples that
//! would be told more of. Nothing is asked of anybody here.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::build_id::BuildId;
use crate::check::{Stages, is_named, lacks_debug_information};
use crate::collect::PcId;
use crate::dso::{DsoId, DsoKind, KernelState};
use crate::profile::StackEnd;
use crate::session::Target;

/// What a recording lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lacking {
    /// Samples of the recording.
    pub samples: u64,
    /// Builds of which a server may have more, in no order.
    pub builds: Vec<LackingBuild>,
    /// Files of which more would help and no build ID is proven, with their samples.
    pub unproven: BTreeMap<String, u64>,
}

/// A build of which a server may have more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LackingBuild {
    /// Its file, as reports show it.
    pub name: String,
    /// The build.
    pub build: BuildId,
    /// Samples that have a frame in it without a name, or without the functions that were inlined there.
    pub samples: u64,
    /// Whether the mapped file itself is not at hand.
    pub lacks_program: bool,
    /// Whether stacks end there, for that reason.
    pub ends_stacks: bool,
}

/// A file, and what it lacks.
#[derive(Default)]
struct Seen {
    lacks_debug: bool,
    samples: u64,
    ends_stacks: bool,
}

/// Looks for them.
pub(super) fn gather(stages: &Stages<'_, '_>) -> Lacking {
    let session = stages.session;
    let dsos = &session.dsos;
    let (stacks, pcs) = (&stages.collected.stacks, &stages.collected.pcs);
    let mut seen: FxHashMap<DsoId, Seen> = FxHashMap::default();
    let mut lacking = Lacking::default();
    let mut named: FxHashMap<PcId, bool> = FxHashMap::default();
    let mut met: FxHashSet<DsoId> = FxHashSet::default();
    for row in &stages.collected.rows {
        lacking.samples += row.samples;
        let stack = stacks.get(row.key.stack);
        met.clear();
        for pc in std::iter::once(&row.key.leaf).chain(stack) {
            let Target::Dso(dso) = pcs[*pc].target else {
                continue;
            };
            let is_file = match dsos.get(dso).kind {
                DsoKind::File => true,
                DsoKind::Kernel => dsos.kernel_state() != Some(KernelState::Found),
                _ => false,
            };
            if !is_file || met.contains(&dso) {
                continue;
            }
            let of_file = seen.entry(dso).or_insert_with(|| Seen {
                lacks_debug: lacks_debug_information(session, dso),
                ..Seen::default()
            });
            let mut is_named = || {
                let is_named = || is_named(stages, dso, pcs[*pc].address);
                *named.entry(*pc).or_insert_with(is_named)
            };
            if of_file.lacks_debug || !is_named() {
                of_file.samples += row.samples;
                met.insert(dso);
            }
        }
        let is_end = stacks.tag(row.key.stack).recorded() == StackEnd::MissingFile;
        if let Some(Target::Dso(dso)) = stack.last().map(|last| pcs[*last].target)
            && let Some(of_file) = seen.get_mut(&dso).filter(|_| is_end)
        {
            of_file.ends_stacks = true;
        }
    }
    for (dso, of_file) in seen.into_iter().filter(|(_, of_file)| of_file.samples > 0) {
        let name = dsos.get(dso).short_name.clone();
        let is_kernel = dsos.get(dso).kind == DsoKind::Kernel;
        let build = if is_kernel {
            dsos.kernel_build_id()
        } else {
            dsos.build_id(dso)
        };
        match build {
            Some(build) => lacking.builds.push(LackingBuild {
                name,
                build,
                samples: of_file.samples,
                lacks_program: !is_kernel && dsos.binary(dso).is_none(),
                ends_stacks: of_file.ends_stacks,
            }),
            None => *lacking.unproven.entry(name).or_default() += of_file.samples,
        }
    }
    lacking
}
