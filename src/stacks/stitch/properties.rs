//! What holds of completed stacks whatever a thread does.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::tests::{Frame, ONE, Samples};
use crate::collect::PathEnd;
use crate::ids::{Idx, IndexVec};
use crate::session::SampleId;

/// A step of a thread: how many frames it leaves, which ones it calls then, and how many of its innermost frames are copied.
type Step = (usize, Vec<u8>, usize);

/// A sample of it.
struct Sample {
    /// Outermost frame first.
    whole: Vec<Frame>,
    /// How many of the outermost frames were not copied.
    missing: usize,
}

/// The samples of a thread, each taken behind a step.
fn run(steps: &[Step]) -> Vec<Sample> {
    let mut stack: Vec<Frame> = vec![(0, 10_000, None)];
    let mut samples = Vec::new();
    for (left, called, copied) in steps {
        stack.truncate(stack.len().saturating_sub(*left).max(1));
        for call in called {
            let sp = 10_000 - 32 * stack.len() as u64;
            let fp = (call % 4 > 0).then_some(sp + u64::from(call / 4 % 2));
            stack.push((1 + u32::from(call / 8), sp, fp));
        }
        samples.push(Sample {
            whole: stack.clone(),
            missing: stack.len().saturating_sub(*copied),
        });
    }
    samples
}

/// The samples as two workers have them, put together.
fn collected(samples: &[Sample]) -> Samples {
    let mut parts = [Samples::default(), Samples::default()];
    for (place, sample) in samples.iter().enumerate() {
        let end = match sample.missing {
            0 => PathEnd::Start,
            _ => PathEnd::Cut,
        };
        let part = &mut parts[place / 8 % 2];
        part.next = SampleId::from_usize(place);
        part.add(ONE, end, &sample.whole[sample.missing..]);
    }
    let [mut all, other] = parts;
    all.paths.absorb(other.paths, 0);
    all
}

/// Whether frames, outermost first, have a border's place with the frame pointer that it has, as far as both are known, and
/// what lies outside of it, innermost first.
fn outside_of(frames: &[Frame], border: Frame) -> Option<Vec<u32>> {
    let fits = |fp: Option<u64>| fp.is_none() || border.2.is_none() || fp == border.2;
    let is_it = |frame: &Frame| (frame.0, frame.1) == (border.0, border.1) && fits(frame.2);
    let place = frames.iter().position(is_it).filter(|place| *place > 0)?;
    Some(frames[..place].iter().rev().map(|frame| frame.0).collect())
}

/// The number of completed stacks, if what is known speaks against none of them.
fn check(steps: &[Step]) -> Result<usize, TestCaseError> {
    let samples: IndexVec<SampleId, Sample> = run(steps).into();
    let (completed, refused) = collected(samples.as_raw_slice()).decided();
    // Whole stacks, and those that are taken for whole.
    let mut believed: IndexVec<SampleId, Option<Vec<Frame>>> = samples
        .iter()
        .map(|sample| (sample.missing == 0).then(|| sample.whole.clone()))
        .collect();
    let mut decided: Vec<SampleId> = refused.iter().map(|(rank, _)| *rank).collect();
    for one in &completed {
        decided.push(one.rank);
        let Sample { whole, missing } = &samples[one.rank];
        let outer = one.outside.iter().rev().zip(0_u64..);
        let outer = outer.map(|(pc, depth)| (pc.0, 10_000 - 32 * depth, None));
        let stack = outer.chain(whole[*missing..].iter().copied()).collect();
        believed[one.rank] = Some(stack);
    }
    decided.sort_unstable();
    let is_cut = |rank: &SampleId| samples[*rank].missing > 0;
    let cut: Vec<SampleId> = samples.indices().filter(is_cut).collect();
    prop_assert_eq!(decided, cut);
    for one in &completed {
        let sample = &samples[one.rank];
        let border = sample.whole[sample.missing];
        let outside: Vec<u32> = one.outside.iter().map(|pc| pc.0).collect();
        prop_assert_eq!(outside.len(), sample.missing);
        let donor = |stack: &Option<Vec<Frame>>| outside_of(stack.as_ref()?, border);
        let (before, after) = believed.split_at(one.rank);
        prop_assert!(before.iter().filter_map(donor).any(|way| way == outside));
        prop_assert!(
            after
                .iter()
                .skip(1)
                .filter_map(donor)
                .any(|way| way == outside)
        );
        let whole = samples.iter().filter(|sample| sample.missing == 0);
        let mut ways = whole.filter_map(|sample| outside_of(&sample.whole, border));
        prop_assert!(ways.all(|way| way == outside));
    }
    Ok(completed.len())
}

/// What is put outside of a stack is what its outermost frame had outside of it before and after, and never anything else;
/// each cut stack is decided once.
#[test]
fn nothing_is_put_outside_of_a_frame_that_was_not_there() {
    let step = (0..5_usize, vec(0..24_u8, 0..4), 2..24_usize);
    let mut runner = TestRunner::new(Config::with_cases(100));
    let completed = std::cell::Cell::new(0);
    let tried = runner.run(&vec(step, 50..600), |steps| {
        completed.set(completed.get() + check(&steps)?);
        Ok(())
    });
    assert_eq!(tried, Ok(()));
    assert!(completed.get() > 0, "nothing was completed");
}
