//! Processes that ran in another root than the one that is looked at, as in a container.
//!
//! In: which mapped files are not at hand, and who had them mapped. Out: one warning for all such processes, in place of one for
//! each of their files.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::collect::Collected;
use crate::diagnostics::Diagnostics;
use crate::dso::{DsoId, DsoKind};
use crate::ids::{Idx, ThreadId};
use crate::jit::ProcessId;
use crate::session::{Session, Target};

/// A process none of whose files is at hand.
struct Lost {
    process: ProcessId,
    thread: ThreadId,
    files: Vec<DsoId>,
    /// Whether other files are in the place of some.
    has_others: bool,
}

/// Warns of processes that ran in other roots. The answer are their files, of which nothing else need be said.
pub(super) fn of_other_roots(
    session: &Session<'_>,
    collected: &Collected,
    diag: &Diagnostics,
) -> FxHashSet<DsoId> {
    let lost = lost(session);
    if let Some(said) = said(session, collected, &lost) {
        diag.warn(said);
    }
    lost.into_iter().flat_map(|lost| lost.files).collect()
}

fn lost(session: &Session<'_>) -> Vec<Lost> {
    let dsos = &session.dsos;
    let mut others = (0..dsos.len()).map(DsoId::from_usize);
    let has_root = dsos.is_given_roots() || dsos.is_of_here();
    let is_any = has_root && others.any(|id| dsos.is_of_other_root(id));
    if !is_any {
        return Vec::new();
    }
    let mut seen: FxHashSet<ProcessId> = FxHashSet::default();
    let threads = session.threads.iter_enumerated();
    let firsts = threads.filter(|(_, thread)| seen.insert(thread.process));
    let mut all: Vec<Lost> = firsts
        .filter_map(|(thread, life)| of_process(session, life.process, thread))
        .collect();
    // A program that is linked statically has no files that others have here. It is said to be of another root if who started it is,
    // or what that started.
    let parent = |lost: &Lost| session.threads[lost.thread].parent;
    let of_others = all.iter().filter(|lost| lost.has_others);
    let of_others = of_others.flat_map(|lost| [parent(lost), Some(pid(session, lost))]);
    let families: FxHashSet<u32> = of_others.flatten().collect();
    all.retain(|lost| {
        lost.has_others || parent(lost).is_some_and(|parent| families.contains(&parent))
    });
    all
}

/// Its files, if none of them is at hand.
fn of_process(session: &Session<'_>, process: ProcessId, thread: ThreadId) -> Option<Lost> {
    let dsos = &session.dsos;
    let mappings = session.final_mappings(thread);
    let files = mappings.filter(|mapping| mapping.executable && !mapping.anonymous);
    let files = files.map(|mapping| mapping.dso);
    let mut files: Vec<DsoId> = files
        .filter(|id| dsos.get(*id).kind == DsoKind::File)
        .collect();
    files.sort_unstable();
    files.dedup();
    let is_at_hand = |id: &DsoId| dsos.trouble(*id).is_none();
    if files.is_empty() || files.iter().any(is_at_hand) {
        return None;
    }
    // Of a program that was built again its libraries are still there.
    let has_others = files.len() > 1 && files.iter().any(|id| dsos.is_of_other_root(*id));
    Some(Lost {
        process,
        thread,
        files,
        has_others,
    })
}

fn pid(session: &Session<'_>, lost: &Lost) -> u32 {
    session.pid_of(lost.process)
}

fn said(session: &Session<'_>, collected: &Collected, lost: &[Lost]) -> Option<String> {
    /// So many are named.
    const MOST: usize = 3;
    let (all, mut samples) = samples(session, collected, lost);
    samples.retain(|(count, _)| *count > 0);
    let unnamed: u64 = samples.iter().map(|(count, _)| count).sum();
    samples.sort_by_key(|(count, number)| (std::cmp::Reverse(*count), *number));
    let name = |(_, number): &(u64, usize)| {
        let lost = &lost[*number];
        let comm = session.threads[lost.thread].comm;
        format!("{} {}", session.comms[comm], pid(session, lost))
    };
    let shown: Vec<String> = samples.iter().take(MOST).map(name).collect();
    let more = match samples.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = shown.join(", ");
    let processes = match samples.len() {
        0 => return None,
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    let is_given = session.dsos.is_given_roots();
    let (roots, folder) = match (roots(session, lost), is_given) {
        (1, true) => ("another root than --symfs gives".to_owned(), "its folder"),
        (1, false) => ("another root, as in a container".to_owned(), "its folder"),
        (count, true) => (
            format!("at least {count} other roots than --symfs gives"),
            "the folder of each",
        ),
        (count, false) => (
            format!("at least {count} other roots, as in containers"),
            "the folder of each",
        ),
    };
    let share = match 100.0 * unnamed as f64 / all.max(1) as f64 {
        share if share < 0.1 => "under 0.1%".to_owned(),
        share => format!("{share:.1}%"),
    };
    Some(format!(
        "{processes} ({shown}{more}) ran in {roots}; {share} of the samples lack names there. Give {folder} with --symfs DIR, or \
         record with pjit record, which keeps programs that are not here"
    ))
}

/// All samples, and by process those with a frame in files that are not at hand.
fn samples(
    session: &Session<'_>,
    collected: &Collected,
    lost: &[Lost],
) -> (u64, Vec<(u64, usize)>) {
    let numbers: FxHashMap<ProcessId, usize> = lost
        .iter()
        .enumerate()
        .map(|(number, lost)| (lost.process, number))
        .collect();
    let mut all = 0;
    let mut of: Vec<(u64, usize)> = (0..lost.len()).map(|number| (0, number)).collect();
    for row in &collected.rows {
        all += row.samples;
        let process = session.threads[row.key.thread].process;
        let Some(&number) = numbers.get(&process) else {
            continue;
        };
        let stack = collected.stacks.get(row.key.stack);
        let mut frames = std::iter::once(&row.key.leaf).chain(stack);
        let is_lost = frames.any(|pc| match collected.pcs[*pc].target {
            Target::Dso(dso) => lost[number].files.contains(&dso),
            _ => false,
        });
        of[number].0 += if is_lost { row.samples } else { 0 };
    }
    (all, of)
}

/// How many they are at least: two files of one path are in two.
fn roots(session: &Session<'_>, lost: &[Lost]) -> usize {
    let dsos = &session.dsos;
    // One file has several devices where it is mounted several times.
    let mut of_path: FxHashMap<&[u8], FxHashSet<_>> = FxHashMap::default();
    for id in lost.iter().flat_map(|lost| &lost.files) {
        let dso = dsos.get(*id);
        let files = of_path.entry(&dso.long_name).or_default();
        files.insert(dso.told_apart_by());
    }
    let counts = of_path.into_values().map(|files| files.len());
    counts.max().unwrap_or(1)
}
