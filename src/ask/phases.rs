//! `--phase`: which times phases are. They are known only to who has looked at the whole recording, so that it is read once before.

use super::narrow::narrow;
use super::problem::{AskError, require};
use crate::functions::Functions;
use crate::functions::filter::Filters;
use crate::functions::kinds::OwnRules;
use crate::load::{Library, LoadOptions};
use crate::questions;
use crate::questions::over_time::{self, OverTime, Phase};
use crate::time_spec::TimeSpec;

/// Chooses the times of phases by their numbers, if there are any. Weights, filters and the event of the question do not count: a
/// phase is the same time in all views.
///
/// # Errors
/// When the recording cannot be read twice, or has no such phase.
pub(super) fn in_phases(
    load: &mut LoadOptions,
    numbers: &[usize],
    own: &OwnRules,
) -> Result<(), AskError> {
    if numbers.is_empty() {
        return Ok(());
    }
    if !load.more.is_empty() || load.time.is_some() {
        let text = "--phase is of one recording, and takes the place of --time";
        return Err(AskError::Request(text.to_owned()));
    }
    let over = over_time(load, own)?;
    let path = load.source.name();
    require(!over.phases.is_empty(), || {
        format!("{path}: no phases: nothing changes for long in it")
    })?;
    let mut chosen = Vec::new();
    for number in numbers {
        let phase = over.phases.get(number - 1);
        chosen.push(phase.ok_or_else(|| {
            let text = format!("{path}: no phase {number}: it has {}", over.phases.len());
            AskError::Absent(text).with_hint("pjit summary --over-time")
        })?);
    }
    let ranges: Vec<(u64, u64)> = chosen.iter().map(|phase| (phase.from, phase.to)).collect();
    load.time = Some(TimeSpec::of(&ranges));
    load.time_said = Some(said(numbers, &chosen, over.begin));
    Ok(())
}

/// What `summary --over-time` says of the whole recording.
pub(super) fn over_time(load: &LoadOptions, own: &OwnRules) -> Result<OverTime, AskError> {
    let path = load.source.name();
    if load.source.is_stream() {
        let text = format!("{path}: phases are not known of a stream; save it to a file first");
        return Err(AskError::Absent(text));
    }
    let mut whole = LoadOptions {
        needs: questions::NEEDS | over_time::NEEDS,
        search: load.search.clone(),
        reading: load.reading,
        mending: load.mending,
        names: load.names,
        ..LoadOptions::of(load.source.clone())
    };
    whole.mending.graft = true;
    whole.weight.infers = true;
    // What is wrong with it is told when it is read for the answer.
    let mut profile = Library::aside(|library| library.load(&whole))?;
    let event = narrow(&mut profile, (None, false), (&Filters::default(), own))?.event;
    let functions = Functions::of(&profile, own);
    let over = OverTime::of(&profile, &functions, event);
    over.ok_or_else(|| AskError::Absent(format!("{path}: no sample has a time")))
}

/// `Phase 2: +0.411 to +1.196 s`
fn said(numbers: &[usize], chosen: &[&Phase], begin: u64) -> String {
    let since = |time: u64| time.saturating_sub(begin) as f64 * 1e-9;
    let one = |(number, phase): (&usize, &&Phase)| {
        let (from, to) = (since(phase.from), since(phase.to));
        format!("Phase {number}: +{from:.3} to +{to:.3} s")
    };
    let all: Vec<String> = numbers.iter().zip(chosen).map(one).collect();
    all.join("; ")
}
