//! Stitching on samples that are put together by hand.

use std::collections::BTreeMap;

use super::Mended;
use super::decide::{Completed, Judge, Refusal, decide};
use super::gate::{Gate, Stacks};
use super::index::Index;
use crate::address::Avma;
use crate::collect::{Owner, PathEnd, Paths, Pc, PcId};
use crate::ids::{IndexSlice, ThreadId};
use crate::perfdata::CpuMode;
use crate::session::{SampleId, Target};
use crate::unwind::{Activation, KeptRegisters};

/// A frame: address, stack pointer, frame pointer.
pub(super) type Frame = (u32, u64, Option<u64>);

#[derive(Default)]
pub(super) struct Samples {
    pub(super) paths: Paths,
    registers: BTreeMap<SampleId, KeptRegisters>,
    bytes: BTreeMap<SampleId, (Avma, Vec<u8>)>,
    pub(super) next: SampleId,
}

impl Stacks for Samples {
    fn stack(&self, rank: SampleId) -> Option<(Avma, &[u8])> {
        let (sp, bytes) = self.bytes.get(&rank)?;
        Some((*sp, bytes))
    }

    fn registers(&self, rank: SampleId, _: usize) -> Option<KeptRegisters> {
        self.registers.get(&rank).copied()
    }
}

const fn owner(thread: u32, program: u32) -> Owner {
    Owner {
        thread: ThreadId(thread),
        program,
    }
}

pub(super) const ONE: Owner = owner(0, 0);

impl Samples {
    /// Adds the next sample, from the outermost frame inwards. Its number.
    pub(super) fn add(&mut self, owner: Owner, end: PathEnd, frames: &[Frame]) -> SampleId {
        let frames = frames.iter().map(|&(pc, sp, fp)| {
            let activation = Activation {
                sp: Avma(sp),
                fp,
                is_exact: true,
            };
            (PcId(pc), activation)
        });
        self.paths.add(self.next, owner, end, frames);
        let next = SampleId(self.next.0 + 1);
        std::mem::replace(&mut self.next, next)
    }

    /// So many keys of a thread at which all agree: each is good for two tries.
    fn agreeing(&mut self, owner: Owner, keys: u32) {
        for n in 0..keys {
            let key = (10 + n, 5000, None);
            let whole = [(1, 9000, None), (2, 8000, None), key, (3, 4000, None)];
            self.add(owner, PathEnd::Start, &whole);
            self.add(owner, PathEnd::Cut, &whole[2..]);
            self.add(owner, PathEnd::Start, &whole);
        }
    }

    pub(super) fn decided(&self) -> (Vec<Completed>, Vec<(SampleId, Refusal)>) {
        let pcs: Vec<Pc> = (0..100)
            .map(|at| Pc {
                at: Avma(at),
                target: Target::Nowhere,
                address: at,
                mode: CpuMode::User,
                returns: false,
            })
            .collect();
        let mut index = Index::new(self.paths.clone(), IndexSlice::new(&pcs));
        let mut gate = Gate::new(&index, self);
        decide(&mut index, &mut gate, &Judge::new(self))
    }

    /// What lies outside of a completed stack, or why it is not completed.
    fn fate(&self, rank: SampleId) -> Result<Vec<u32>, Refusal> {
        let (completed, refused) = self.decided();
        if let Some((_, why)) = refused.iter().find(|(at, _)| *at == rank) {
            return Err(*why);
        }
        let one = completed.into_iter().find(|one| one.rank == rank);
        let outside = one.expect("each cut stack has a fate").outside;
        Ok(outside.iter().map(|pc| pc.0).collect())
    }
}

const KEY: Frame = (50, 600, Some(7));
const LEAF: Frame = (51, 500, None);
const X: [Frame; 2] = [(1, 900, None), (52, 800, None)];
const Y: [Frame; 2] = [(1, 900, None), (53, 800, None)];

/// A stack that goes on like `outside` outside of the key.
fn whole(outside: &[Frame]) -> Vec<Frame> {
    [outside, &[KEY, LEAF]].concat()
}

/// The samples of a thread in which a stack is cut at the key between two complete ones, and the number of that.
fn between(before: &[Frame], after: &[Frame], agreeing: u32) -> (Samples, SampleId) {
    let mut samples = Samples::default();
    samples.agreeing(ONE, agreeing);
    samples.add(ONE, PathEnd::Start, before);
    let cut = samples.add(ONE, PathEnd::Cut, &[KEY, LEAF]);
    samples.add(ONE, PathEnd::Start, after);
    (samples, cut)
}

#[test]
fn a_stack_goes_on_as_all_others_do() {
    let (samples, cut) = between(&whole(&X), &whole(&X), 9);
    assert_eq!(samples.fate(cut), Ok(vec![52, 1]));
}

#[test]
fn a_thread_that_is_not_known_well_is_left_alone() {
    let (samples, cut) = between(&whole(&X), &whole(&X), 0);
    assert_eq!(samples.fate(cut), Err(Refusal::Unsure));
}

#[test]
fn whoever_goes_on_differently_anywhere_speaks_against_all() {
    let (mut samples, cut) = between(&whole(&X), &whole(&X), 30);
    samples.agreeing(ONE, 30);
    samples.add(ONE, PathEnd::Start, &whole(&Y));
    assert_eq!(samples.fate(cut), Err(Refusal::Ambiguous));
    // The end is part of how a stack goes on.
    let (mut samples, cut) = between(&whole(&X), &whole(&X), 30);
    samples.add(ONE, PathEnd::Fiber, &whole(&X));
    assert_eq!(samples.fate(cut), Err(Refusal::Ambiguous));
}

#[test]
fn both_sides_are_needed() {
    let (mut samples, _) = between(&whole(&X), &whole(&X), 30);
    let late = samples.add(ONE, PathEnd::Cut, &[KEY, LEAF]);
    assert_eq!(samples.fate(late), Err(Refusal::OneSided));
    let elsewhere = samples.add(ONE, PathEnd::Cut, &[(50, 601, Some(7)), LEAF]);
    assert_eq!(samples.fate(elsewhere), Err(Refusal::NoDonor));
}

#[test]
fn another_frame_pointer_is_another_activation() {
    let other = (KEY.0, KEY.1, Some(8));
    let (samples, cut) = between(&whole(&X), &[&X[..], &[other, LEAF]].concat(), 30);
    assert_eq!(samples.fate(cut), Err(Refusal::OneSided));
    let differing = [&Y[..], &[other, LEAF]].concat();
    let (mut samples, cut) = between(&whole(&X), &whole(&X), 30);
    samples.add(ONE, PathEnd::Start, &differing);
    assert_eq!(samples.fate(cut), Ok(vec![52, 1]));
}

#[test]
fn other_registers_are_another_activation() {
    let registers = |value: u64| {
        let mut registers = KeptRegisters::default();
        registers[1] = Some(value);
        registers
    };
    let with = |before: u64, after: u64| {
        let (mut samples, cut) = between(&whole(&X), &whole(&X), 30);
        samples
            .registers
            .insert(SampleId(cut.0 - 1), registers(before));
        samples.registers.insert(cut, registers(5));
        samples
            .registers
            .insert(SampleId(cut.0 + 1), registers(after));
        samples.fate(cut)
    };
    assert_eq!(with(5, 5), Ok(vec![52, 1]));
    assert_eq!(with(5, 6), Err(Refusal::Mismatch));
    assert_eq!(with(6, 5), Err(Refusal::Mismatch));
}

#[test]
fn threads_and_programs_do_not_know_each_other() {
    for other in [owner(1, 0), owner(0, 1)] {
        let (mut samples, _) = between(&whole(&X), &whole(&X), 30);
        samples.agreeing(other, 30);
        let cut = samples.add(other, PathEnd::Cut, &[KEY, LEAF]);
        samples.add(ONE, PathEnd::Start, &whole(&X));
        assert_eq!(samples.fate(cut), Err(Refusal::NoDonor));
    }
}

/// What was completed may complete others, which were cut further in.
#[test]
fn completed_stacks_are_donors() {
    let inner: Frame = (54, 300, None);
    let mut samples = Samples::default();
    samples.agreeing(ONE, 9);
    samples.add(ONE, PathEnd::Start, &whole(&X));
    samples.add(ONE, PathEnd::Cut, &[KEY, inner, LEAF]);
    let cut = samples.add(ONE, PathEnd::Cut, &[inner, LEAF]);
    samples.add(ONE, PathEnd::Cut, &[KEY, inner, LEAF]);
    samples.add(ONE, PathEnd::Start, &whole(&X));
    assert_eq!(samples.fate(cut), Ok(vec![50, 52, 1]));
}

/// Where donors go on in several ways, the one with the most similar bytes is believed, and that is tried.
#[test]
fn bytes_that_tell_nothing_close_the_gate() {
    let fate = |telling: bool| {
        let mut samples = Samples::default();
        samples.agreeing(ONE, 9);
        for n in 0..200_u32 {
            let (way, value) = if n / 4 % 2 == 0 { (X, 1) } else { (Y, 2) };
            let key = (60, 600, Some(u64::from(n / 8 % 2)));
            let rank = samples.add(ONE, PathEnd::Start, &[&way[..], &[key, LEAF]].concat());
            // Those that are equal go on differently, or not.
            let value = if telling { value } else { n as u8 % 4 };
            samples.bytes.insert(rank, (Avma(500), vec![value; 400]));
        }
        let other = samples.add(ONE, PathEnd::Cut, &[(60, 600, Some(9)), LEAF]);
        samples.add(ONE, PathEnd::Start, &whole(&X));
        let cut = samples.add(ONE, PathEnd::Cut, &[KEY, LEAF]);
        samples.add(ONE, PathEnd::Start, &whole(&X));
        samples.bytes.insert(other, (Avma(500), vec![0; 200]));
        samples.bytes.insert(cut, (Avma(500), vec![0; 200]));
        samples.fate(cut)
    };
    assert_eq!(fate(true), Ok(vec![52, 1]));
    assert_eq!(fate(false), Err(Refusal::Unsure));
}

#[test]
fn what_was_done_is_counted() {
    let (mut samples, _) = between(&whole(&X), &whole(&X), 9);
    samples.add(ONE, PathEnd::Cut, &[KEY, LEAF]);
    let (completed, refused) = samples.decided();
    let mended = Mended::of(&completed, &refused);
    assert_eq!(mended.stitched, 10);
    assert!(mended.error > 0.0 && mended.error < 0.05, "{mended:?}");
    assert_eq!(mended.refused, [("others are all earlier or all later", 1)]);
}
