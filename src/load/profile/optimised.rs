//! For whom a runtime made optimised code.
//!
//! In: all code that was loaded. Out: bytes by package. Threads that compile name no package on their stacks; the bytes of what
//! they made are the best estimate of for whom they worked that was found. Called by [`super::build`].

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::ids::Idx;
use crate::jit::JitCodeId;
use crate::runtimes::names::script_path;
use crate::runtimes::{CleanName, Producer, Tier, Whose};
use crate::session::Session;
use crate::symbolize::SourceMaps;

/// Bytes by package, the most first. A bundle is the packages that it was made of, where its map tells.
pub(super) fn optimised(session: &Session<'_>, maps: &SourceMaps<'_>) -> Vec<(Whose, u64)> {
    let mut sums: FxHashMap<Whose, u64> = FxHashMap::default();
    for id in (0..session.jit.code_count()).map(JitCodeId::from_usize) {
        let code = session.jit.code(id);
        let producer = code.producer();
        if producer != Producer::V8 {
            continue;
        }
        let name = String::from_utf8_lossy(code.name());
        let row = producer.row();
        if (row.tier)(&name) != Tier::Optimised {
            continue;
        }
        let mut clean = CleanName::of(&name, Some(producer));
        if let Some(file) = session.jit.evaled_file(id) {
            clean.file = script_path(file).into_owned();
        }
        if row.has_source_maps
            && let Some(original) = maps.original(&clean.file, clean.line, clean.column)
        {
            clean.file = original.file;
        }
        let kind = (row.kind)(&name, &clean);
        let whose = (row.package)(&name, &clean, kind);
        if let Whose::Package(..) | Whose::File(_) = whose {
            let sum = sums.entry(whose).or_default();
            *sum = sum.saturating_add(code.size());
        }
    }
    let mut sums: Vec<(Whose, u64)> = sums.into_iter().collect();
    sums.sort_by(|(one, size), (other, than)| {
        (Reverse(size), one.name()).cmp(&(Reverse(than), other.name()))
    });
    sums
}
