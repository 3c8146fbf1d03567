//! How right completed stacks are: recordings with large copies of stacks are read as if less had been copied, and what was
//! completed is compared with the walk of the whole.
//!
//! `scripts/stitching` makes the recordings and runs this: `cargo bench --bench stitching -- FILE...`. A sample counts when its
//! stack is complete in the whole recording and cut in the other; a completed one is right when every address of it is.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::Path;

use pjit::collect::Options;
use pjit::diagnostics::Diagnostics;
use pjit::load::{LoadOptions, Source};
use pjit::needs::Needs;
use pjit::profile::{FrameId, Profile};
use pjit::stack_end::StackEnd;
use pjit::stitch::Mending;

/// Bytes of stacks that are left.
const SIZES: [usize; 3] = [8192, 4096, 2048];

fn main() {
    let words = std::env::args().skip(1);
    let files: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
    println!(
        "| recording | cut to | cut | completed | right | wrong frames | est. error | rooted | right | frames |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for file in &files {
        let whole = load(file, None, Mending::default());
        for size in SIZES {
            // What is stitched gets no root: the roots of all are judged without stitching.
            let graft = Mending {
                graft: true,
                stitch: false,
            };
            let rooted = load(file, Some(size), graft);
            let mending = Mending {
                graft: true,
                stitch: true,
            };
            let cut = load(file, Some(size), mending);
            println!("{}", line(file, size, &whole, &cut, &rooted));
        }
    }
}

fn load(file: &str, dump_limit: Option<usize>, mending: Mending) -> Profile {
    let options = LoadOptions {
        needs: Needs::STACKS | Needs::MARKS | Needs::SAMPLES | Needs::ADDRESSES,
        reading: Options {
            dump_limit,
            threads: 2,
            ..Options::default()
        },
        mending,
        ..LoadOptions::of(Source::File(file.into()))
    };
    pjit::load::load(&options, &Diagnostics::new()).expect("the recording can be read")
}

/// Stacks by sample.
fn stacks(profile: &Profile) -> impl Iterator<Item = (&[FrameId], StackEnd)> {
    let stack = |id| (profile.stacks.get(id), profile.stacks.end(id));
    let samples = profile.samples.iter();
    samples.map(move |sample| stack(sample.stack))
}

fn addresses(profile: &Profile, frames: &[FrameId]) -> Vec<u64> {
    let address = |frame: &FrameId| profile[*frame].address.0;
    frames.iter().map(address).collect()
}

/// What stands in the table.
#[derive(Default)]
struct Counts {
    whole: u64,
    cut: u64,
    done: u64,
    right: u64,
    frames: u64,
    wrong_frames: u64,
    missing_frames: u64,
}

impl Counts {
    /// Compares the samples that were completed to `wanted`; the appended frames are those behind the `skipped` ones.
    fn of(
        whole: &Profile,
        cut: &Profile,
        wanted: &[StackEnd],
        compare: impl Fn(&[u64], &[u64]) -> (u64, u64, u64),
    ) -> Self {
        let mut counts = Self::default();
        for ((frames, end), (true_frames, true_end)) in stacks(cut).zip(stacks(whole)) {
            if !matches!(true_end, StackEnd::Complete | StackEnd::FiberBase) {
                continue;
            }
            counts.whole += 1;
            if end.recorded() != StackEnd::DumpTooShort {
                continue;
            }
            counts.cut += 1;
            if !wanted.contains(&end) {
                continue;
            }
            counts.done += 1;
            let (wrong, appended, missing) =
                compare(&addresses(cut, frames), &addresses(whole, true_frames));
            counts.right += u64::from(wrong == 0);
            counts.frames += appended;
            counts.wrong_frames += wrong;
            counts.missing_frames += missing;
        }
        counts
    }
}

/// Frames of a stitched stack that differ from the whole one. How many were appended nobody knows any more: all count.
fn stitched(frames: &[u64], truth: &[u64]) -> (u64, u64, u64) {
    let pairs = frames.iter().zip(truth);
    let differing = pairs.filter(|(a, b)| a != b).count();
    let wrong = differing + frames.len().abs_diff(truth.len());
    (wrong as u64, frames.len() as u64, 0)
}

/// Frames of a rooted stack, behind the mark, that differ from the outermost ones of the whole one.
fn rooted(frames: &[u64], truth: &[u64]) -> (u64, u64, u64) {
    let mark = frames.iter().rposition(|at| *at == u64::MAX).unwrap_or(0);
    let root = &frames[mark + 1..];
    let pairs = root.iter().rev().zip(truth.iter().rev());
    let differing = pairs.filter(|(a, b)| a != b).count();
    let missing = truth.len().saturating_sub(mark);
    (differing as u64, root.len() as u64, missing as u64)
}

fn line(file: &str, size: usize, whole: &Profile, cut: &Profile, roots: &Profile) -> String {
    let name = Path::new(file).file_stem().unwrap_or_default();
    let ends = [StackEnd::Stitched, StackEnd::StitchedFiber];
    let one = Counts::of(whole, cut, &ends, stitched);
    let two = Counts::of(whole, roots, &[StackEnd::Rooted], rooted);
    let share = |part: u64, all: u64| match all {
        0 => "–".to_owned(),
        _ => format!("{:.1}", 100.0 * part as f64 / all as f64),
    };
    let error = match one.done {
        0 => "–".to_owned(),
        _ => format!("{:.1}%", 100.0 * cut.quality.stitch_error),
    };
    let mean = |part: u64| part as f64 / two.done.max(1) as f64;
    format!(
        "| {} | {size} | {} of {} ({}%) | {}% | {}% | {}% | {error} | {}% | {}% | {:.1} of {:.1} |",
        name.to_string_lossy(),
        one.cut,
        one.whole,
        share(one.cut, one.whole),
        share(one.done, one.cut),
        share(one.right, one.done),
        share(one.wrong_frames, one.frames),
        share(two.done, two.cut),
        share(two.right, two.done),
        mean(two.frames),
        mean(two.missing_frames),
    )
}
