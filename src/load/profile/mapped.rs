//! Where the objects of a profile were mapped.
//!
//! In: stacks of addresses, with the samples that have them. Out: the mappings that these addresses lay in. Others are of no use
//! to who reads an export, and all mappings of all processes at all times may be a thousand times as many: a shell that forks
//! beside large programs hands all of its mappings on each time.

use rustc_hash::FxHashSet;

use crate::collect::{Collected, PcId};
use crate::ids::{IndexVec, index_vec};
use crate::jit::ProcessId;
use crate::session::maps::Mapping;
use crate::session::{Samples, Session, Target};

/// The mapping of each address in the process that met it first: each mapping once, by process and address.
pub(super) fn mappings(
    collected: &Collected,
    session: &Session<'_>,
    samples: &Samples,
) -> Vec<(ProcessId, Mapping)> {
    let mut stacks = index_vec![false; collected.stacks.len()];
    let mut pcs: IndexVec<PcId, bool> = index_vec![false; collected.pcs.len()];
    let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
    for row in &collected.rows {
        let is_known = std::mem::replace(&mut stacks[row.key.stack], true);
        let frames = if is_known {
            &[][..]
        } else {
            collected.stacks.get(row.key.stack)
        };
        for &pc in frames.iter().chain([&row.key.leaf]) {
            if std::mem::replace(&mut pcs[pc], true) {
                continue;
            }
            let Target::Dso(dso) = collected.pcs[pc].target else {
                continue;
            };
            let sample = &samples.all[collected.sample_of(row)];
            let space = session.space(sample.space);
            let Some(mapping) = space.maps.find(collected.pcs[pc].at) else {
                continue;
            };
            let (start, end) = (mapping.range.start, mapping.range.end);
            let is_of_it = mapping.dso == dso;
            if is_of_it && seen.insert((space.process, dso, start, end, mapping.offset)) {
                found.push((space.process, *mapping));
            }
        }
    }
    found.sort_by_key(|(process, mapping)| (*process, mapping.range.start, mapping.dso));
    found
}
