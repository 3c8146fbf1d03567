//! The thread's root under cut stacks.
//!
//! In: groups of complete stacks with one root, and the cut ones. Out: cut stacks that go on, behind a gap, with the outermost frames
//! that *all* complete stacks of the group share. A group has to be seen both before and after the cut sample: without
//! that, what ld.so did at a program's start would be put under the program itself.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::address::{Avma, FileOffset};
use crate::collect::{AddressStackId, Collected, Cut, Group, Owner, Pc, PcId, Placed, RootKey};
use crate::ids::IndexSlice;
use crate::perfdata::CpuMode;
use crate::session::{SampleId, Session, Target};
use crate::stack_end::StackEnd;

/// A stack that begins further away is another one; threads have 8 MB as a rule.
const FAR: u64 = 8 << 20;
/// Complete stacks that a group needs at least: what few share may be chance.
const LEAST: u64 = 8;
/// Of the complete stacks around a cut one, that many in 100 have to be of the group, or the thread has several stacks
/// (coroutines, goroutines) and the cut one may be any of them.
const NEARLY_ALL: u64 = 99;

/// Puts roots under the cut stacks for which one is known.
pub(super) fn graft(collected: &mut Collected, session: &Session<'_>) {
    let is_library = |pc: &Pc| is_of_c_library(pc, session);
    graft_by(collected, is_library, |pc| is_start(pc, session));
}

fn graft_by(
    collected: &mut Collected,
    is_library: impl Fn(&Pc) -> bool,
    is_start: impl Fn(&Pc) -> Option<bool>,
) {
    let roots = std::mem::take(&mut collected.roots);
    let threads = by_owner(roots.groups.raw, &collected.pcs, |common| {
        beginning(
            common,
            |pc| is_library(&collected.pcs[pc]),
            |pc| is_start(&collected.pcs[pc]),
        )
    });
    let mut cuts = roots.cuts;
    cuts.sort_unstable_by_key(|cut| cut.rank);
    let mut maker = GraftMaker::new(collected);
    for cut in &cuts {
        let groups = threads.get(&cut.owner).map_or(&[][..], Vec::as_slice);
        if let Some(root) = root_of(cut, groups) {
            maker.put_under(cut.rank, root);
        }
    }
}

/// The groups of each thread, cut to what they may be used for; threads with too many roots are left out.
fn by_owner(
    groups: Vec<(RootKey, Group)>,
    pcs: &IndexSlice<PcId, [Pc]>,
    beginning: impl Fn(&[Placed]) -> usize,
) -> BTreeMap<Owner, Vec<Group>> {
    /// A thread with more roots than that runs many stacks in turn.
    const MOST: usize = 256;
    let mut threads: BTreeMap<Owner, Vec<Group>> = BTreeMap::new();
    let mut place: FxHashMap<(Owner, Pc, Avma), usize> = FxHashMap::default();
    for (RootKey { owner, root }, group) in groups {
        let of_thread = threads.entry(owner).or_default();
        let new = of_thread.len();
        // Addresses of several workers are equal by what they are.
        let at = *(place.entry((owner, pcs[root.0], root.1))).or_insert(new);
        match of_thread.get_mut(at) {
            Some(known) => join(known, &group, pcs),
            None => of_thread.push(group),
        }
    }
    threads.retain(|_, own| own.len() <= MOST);
    for group in threads.values_mut().flatten() {
        let kept = beginning(&group.common);
        group.common.truncate(kept);
    }
    threads
}

/// Adds another worker's stacks with the same root.
fn join(known: &mut Group, group: &Group, pcs: &IndexSlice<PcId, [Pc]>) {
    let pc = |placed: &Placed| (pcs[placed.0], placed.1);
    known.first = known.first.min(group.first);
    known.last = known.last.max(group.last);
    known.samples += group.samples;
    let same = known.common.iter().zip(&group.common);
    let same = same.take_while(|(a, b)| pc(a) == pc(b)).count();
    known.common.truncate(same);
}

/// How many of the outermost frames are a program's or thread's beginning: the outermost one, and what the C library does before
/// it calls the program. Further inwards, all complete stacks may just be of one phase of the program; already
/// the program's first function may be somewhere else in another one. None are if they begin nothing but a coroutine: others of the
/// thread may begin elsewhere, and have no complete stack.
fn beginning(
    common: &[Placed],
    is_library: impl Fn(PcId) -> bool,
    is_start: impl Fn(PcId) -> Option<bool>,
) -> usize {
    let Some((&(root, _), inner)) = common.split_first() else {
        return 0;
    };
    let of_library = inner.iter().take_while(|(pc, _)| is_library(*pc)).count();
    let is_beginning = match is_start(root) {
        Some(true) => true,
        // `clone3` calls `start_thread`; what `makecontext` makes of a function calls that at once.
        Some(false) => is_library(root) && of_library > 0,
        None => of_library > 0,
    };
    if is_beginning { 1 + of_library } else { 0 }
}

/// Whether a program begins at an address, or a thread of one that has the C library in it; unknown without its file.
fn is_start(pc: &Pc, session: &Session<'_>) -> Option<bool> {
    const THREADS: [&[u8]; 5] = [
        b"clone3",
        b"__clone3",
        b"clone",
        b"__clone",
        b"start_thread",
    ];
    let Target::Dso(dso) = pc.target else {
        return Some(false);
    };
    let binary = session.dsos.binary(dso)?;
    let symbol = || session.dsos.symbols(dso)?.find(pc.address);
    let is_thread = || symbol().is_some_and(|symbol| THREADS.contains(&symbol.name));
    Some(binary.is_start(FileOffset(pc.address)) || is_thread())
}

/// Whether an address is in the C library or the dynamic linker.
fn is_of_c_library(pc: &Pc, session: &Session<'_>) -> bool {
    const NAMES: [&str; 7] = [
        "libc.so",
        "libc-2",
        "libc.musl",
        "ld-linux",
        "ld-musl",
        "ld-2",
        "libpthread",
    ];
    let Target::Dso(dso) = pc.target else {
        return false;
    };
    let name = &session.dsos.get(dso).short_name;
    NAMES.iter().any(|library| name.starts_with(library))
}

/// The frames to put under a cut stack, outermost first.
fn root_of<'g>(cut: &Cut, groups: &'g [Group]) -> Option<&'g [Placed]> {
    // What belongs to a fiber and what to its thread, addresses do not tell.
    if groups.iter().any(|group| group.is_fiber) {
        return None;
    }
    let around = groups
        .iter()
        .filter(|group| group.first < cut.rank && cut.rank < group.last);
    let all: u64 = around.clone().map(|group| group.samples).sum();
    let above = around.filter(|group| is_above(cut, group));
    let largest = above.max_by_key(|group| (group.samples, group.first))?;
    if largest.samples < LEAST || largest.samples < all * NEARLY_ALL / 100 {
        return None;
    }
    let lies_above = |placed: &&Placed| placed.1 > cut.sp;
    let frames = largest.common.iter().take_while(lies_above).count();
    (frames > 0).then(|| &largest.common[..frames])
}

/// Whether a group's root lies on the stack that was cut.
fn is_above(cut: &Cut, group: &Group) -> bool {
    let Some(&(_, root)) = group.common.first() else {
        return false;
    };
    let ends_before = cut.stack_end.is_some_and(|end| end < root);
    cut.sp < root && root.since(cut.sp) < FAR && !ends_before
}

/// Makes the new stacks.
struct GraftMaker<'c> {
    collected: &'c mut Collected,
    gap: PcId,
    /// The row to look at next; both rows and cut samples are in order of time.
    row: usize,
    /// By stack and frames under it.
    made: FxHashMap<(AddressStackId, Box<[Placed]>), AddressStackId>,
}

impl<'c> GraftMaker<'c> {
    fn new(collected: &'c mut Collected) -> Self {
        let gap = collected.make_gap();
        Self {
            collected,
            gap,
            row: 0,
            made: FxHashMap::default(),
        }
    }

    /// Gives the cut sample of a rank frames further out.
    fn put_under(&mut self, rank: SampleId, root: &[Placed]) {
        let rank = u64::from(rank.0);
        let rows = &self.collected.rows[self.row..];
        self.row += rows.partition_point(|row| row.first < rank);
        let Some(row) = self.collected.rows.get(self.row) else {
            return;
        };
        let stack = row.key.stack;
        if row.first == rank && self.collected.stacks.tag(stack) == StackEnd::DumpTooShort {
            self.collected.rows[self.row].key.stack = self.longer(stack, root);
        }
    }

    fn longer(&mut self, stack: AddressStackId, root: &[Placed]) -> AddressStackId {
        let Self {
            collected,
            gap,
            made,
            ..
        } = self;
        *made.entry((stack, root.into())).or_insert_with(|| {
            let mut frames = collected.stacks.get(stack).to_vec();
            frames.push(*gap);
            frames.extend(root.iter().rev().map(|(pc, _)| *pc));
            collected.stacks.push(&frames, StackEnd::Rooted)
        })
    }
}

impl Collected {
    /// The address that stands for missing frames.
    fn make_gap(&mut self) -> PcId {
        let pcs = &mut self.pcs;
        *self.gap.get_or_insert_with(|| {
            pcs.push(Pc {
                at: Avma(u64::MAX),
                target: Target::Nowhere,
                address: u64::MAX,
                mode: CpuMode::Unknown,
                returns: false,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{FacetsId, Row, RowKey};
    use crate::ids::{CommId, ThreadId};

    const OWNER: Owner = Owner {
        thread: ThreadId(0),
        program: 0,
    };

    /// Addresses 0 to 9, of which 1 and 2 are in the C library, and 7 is in a file that is not at hand.
    fn collected() -> Collected {
        let pcs = (0..10).map(|at| Pc {
            at: Avma(at),
            target: Target::Nowhere,
            address: at,
            mode: CpuMode::User,
            returns: false,
        });
        Collected {
            pcs: pcs.collect(),
            ..Collected::default()
        }
    }

    fn group(ranks: (u32, u32), samples: u64, frames: &[(u32, u64)]) -> (RootKey, Group) {
        let common: Vec<Placed> = frames
            .iter()
            .map(|&(pc, sp)| (PcId(pc), Avma(sp)))
            .collect();
        let key = RootKey {
            owner: OWNER,
            root: common[0],
        };
        let group = Group {
            first: SampleId(ranks.0),
            last: SampleId(ranks.1),
            samples,
            common,
            is_fiber: false,
        };
        (key, group)
    }

    fn cut(rank: u32, sp: u64) -> Cut {
        Cut {
            rank: SampleId(rank),
            owner: OWNER,
            sp: Avma(sp),
            stack_end: None,
        }
    }

    /// What stands under the border frame of the cut samples.
    fn grafted(groups: Vec<(RootKey, Group)>, cuts: &[Cut]) -> Vec<Vec<u64>> {
        let mut all = collected();
        all.roots.groups = groups.into();
        for cut in cuts {
            let stack = all.stacks.push(&[PcId(8), PcId(9)], StackEnd::DumpTooShort);
            let key = RowKey {
                event: crate::perfdata::EventId(0),
                state: crate::run_state::RunState::Unknown,
                comm: CommId(0),
                thread: cut.owner.thread,
                leaf: PcId(8),
                stack,
                facets: FacetsId::NONE,
                time: 0,
            };
            all.rows.push(Row {
                key,
                period: 1,
                samples: 1,
                first: cut.rank.0.into(),
            });
            all.roots.cuts.push(*cut);
        }
        let is_start = |pc: &Pc| (pc.at.0 != 7).then_some(pc.at.0 == 0);
        graft_by(&mut all, |pc| matches!(pc.at.0, 1 | 2), is_start);
        let stacks = all.rows.iter().map(|row| {
            let frames = all.stacks.get(row.key.stack);
            let at = |pc: &PcId| all.pcs[*pc].at.0;
            let is_rooted = all.stacks.tag(row.key.stack) == StackEnd::Rooted;
            assert_eq!(frames.get(2).copied(), all.gap.filter(|_| is_rooted));
            frames.iter().skip(3).map(at).collect()
        });
        stacks.collect()
    }

    /// `_start` of the program, libc, libc, `main` and a function.
    const PROGRAM: [(u32, u64); 5] = [(0, 900), (1, 890), (2, 880), (3, 870), (4, 860)];

    #[test]
    fn the_root_is_shown_as_far_as_the_programs_own_functions() {
        let groups = || vec![group((2, 9), 20, &PROGRAM)];
        assert_eq!(grafted(groups(), &[cut(5, 100)]), [vec![2, 1, 0]]);
        assert_eq!(grafted(groups(), &[cut(5, 885)]), [vec![1, 0]]);
        assert_eq!(
            grafted(vec![group((2, 9), 7, &PROGRAM)], &[cut(5, 100)]),
            [Vec::<u64>::new()]
        );
    }

    #[test]
    fn a_root_has_to_be_seen_before_and_after() {
        let groups = || vec![group((2, 9), 20, &PROGRAM)];
        let cuts = [
            cut(1, 100),
            cut(2, 100),
            cut(3, 100),
            cut(9, 100),
            cut(10, 100),
        ];
        let found = grafted(groups(), &cuts);
        let is_rooted: Vec<bool> = found.iter().map(|stack| !stack.is_empty()).collect();
        assert_eq!(is_rooted, [false, false, true, false, false]);
    }

    #[test]
    fn other_stacks_are_left_alone() {
        let nothing = |groups, cut: Cut| assert_eq!(grafted(groups, &[cut]), [Vec::<u64>::new()]);
        let known = || group((2, 9), 200, &PROGRAM);
        nothing(vec![known()], cut(5, 950));
        let far = [(0, 900 + FAR), (1, 890 + FAR)];
        nothing(vec![group((2, 9), 200, &far)], cut(5, 100));
        let ends = Cut {
            stack_end: Some(Avma(500)),
            ..cut(5, 100)
        };
        nothing(vec![known()], ends);
        let other_program = Owner {
            program: 1,
            ..OWNER
        };
        let after_exec = Cut {
            owner: other_program,
            ..cut(5, 100)
        };
        nothing(vec![known()], after_exec);
        // Of several stacks in turn it may be any.
        nothing(
            vec![known(), group((3, 8), 50, &[(4, 700), (5, 600)])],
            cut(5, 100),
        );
        let mut fiber = group((2, 3), 1, &[(4, 5000)]);
        fiber.1.is_fiber = true;
        nothing(vec![known(), fiber], cut(5, 100));
    }

    #[test]
    fn what_begins_a_coroutine_is_no_root_of_others() {
        let grafted = |frames: &[(u32, u64)]| {
            let found = grafted(vec![group((2, 9), 200, frames)], &[cut(5, 100)]);
            found.into_iter().next().expect("one was cut")
        };
        let nothing: [u64; 0] = [];
        assert_eq!(grafted(&[(3, 900), (4, 890)]), nothing);
        assert_eq!(grafted(&[(3, 900), (1, 890)]), nothing);
        assert_eq!(grafted(&[(1, 900), (3, 890)]), nothing);
        assert_eq!(grafted(&[(7, 900), (3, 890)]), nothing);
        assert_eq!(grafted(&[(7, 900), (1, 890)]), [1, 7]);
        // A thread.
        assert_eq!(grafted(&[(1, 900), (2, 890), (3, 880)]), [2, 1]);
        // The C library is in the program.
        assert_eq!(grafted(&[(0, 900), (3, 890)]), [0]);
    }

    #[test]
    fn what_several_workers_saw_is_one_group() {
        let mut other = group((6, 8), 4, &[(0, 900), (1, 890), (5, 860)]);
        other.1.first = SampleId(6);
        let groups = vec![group((2, 3), 4, &PROGRAM), other];
        assert_eq!(grafted(groups, &[cut(5, 100)]), [vec![1, 0]]);
    }
}
