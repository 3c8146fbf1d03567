//! Evidence in, findings out. One function for each line of the table, in its order.

use std::collections::BTreeSet;

use crate::collect::{DumpSizes, LARGEST_DUMP};
use crate::dso::KernelState;
use crate::jit::{Absence, ClockFit};
use crate::perfdata::{Damage, Ring, Trace};
use crate::profile::StackEnd;
use crate::runtimes::Producer;
use crate::runtimes::programs::{self, Told};
use crate::unit::Unit;

use super::advice;
use super::remedy::{Draft, Remedy, finding};
use super::wasm;
use super::{
    Brief, Clock, Culprit, Dump, Early, EndShare, Evidence, Level, Limits, Numbers, OfEvent,
    Reason, Skipped, Unresolved, Verdict, is_doubtful, percent,
};

/// Per cent of the samples from which on something that could be put right is worth a warning.
const WORTH_WARNING: f64 = 1.0;
/// Per cent of the samples that may be in what a runtime leaves out of every dump.
const MOST_IN_GAPS: f64 = 5.0;
/// Per cent of the time that short threads may have run unseen which is said: half of it is what to expect.
const MISSING_WORTH_WARNING: f64 = 5.0;
/// With more of it, less than half is known to be counted.
const MOST_MISSING: f64 = 50.0;
/// Per cent of the CPU time with samples below which conclusions are of something else than the program.
const LEAST_SEEN: f64 = 80.0;
/// Per cent of it with samples that is not worth a warning.
const SEEN_WITHOUT_WARNING: f64 = 90.0;
/// Nanoseconds without samples that say nothing: each thread lacks half a period, and the kernel counts in ticks.
const LEAST_UNSEEN: u64 = 50_000_000;
/// Per cent of the samples from which on a file without inline information is worth a note.
const WORTH_NOTING: f64 = 1.0;
/// So many names stand in one line.
const NAMES: usize = 3;

/// Holds the evidence against the limits.
#[must_use]
pub fn judge(evidence: &Evidence, limits: Limits) -> Verdict {
    judge_for(evidence, None, limits)
}

/// The same for an answer that counts so many samples of an event.
#[must_use]
pub fn judge_for(evidence: &Evidence, about: Option<(String, u64)>, limits: Limits) -> Verdict {
    let mut findings = Vec::new();
    recording(evidence, &limits, &mut findings);
    samples(evidence, about, &limits, &mut findings);
    let complete = stacks(evidence, &limits, &mut findings);
    symbols(evidence, &limits, &mut findings);
    clock(evidence, &mut findings);
    dumps(evidence, &limits, &mut findings);
    kernel(evidence, &mut findings);
    debug_info(evidence, &mut findings);
    wasm::judge(evidence, &mut findings);
    evidence.weights.judge(&mut findings);
    let mut remedies = findings.iter().flat_map(|finding| &finding.remedies);
    let advises_copies = remedies.any(|remedy| remedy.records_with(WITHOUT_G));
    let again = evidence.again.as_ref();
    let findings = findings.into_iter().map(|draft| draft.written(again));
    Verdict {
        path: evidence.path.clone(),
        limits,
        findings: findings.collect(),
        files: evidence.files.clone(),
        numbers: Numbers {
            samples: evidence.loss.samples,
            lost: evidence.loss.lost,
            complete,
            named: named(evidence),
            advised_stack_size: advised_stack_size(evidence),
            advises_copies,
            advises_no_z: evidence.whole.damage == Some(Damage::EndKept),
        },
    }
}

/// The advice where frame pointers do not lead to the end of stacks.
const WITHOUT_G: &str = "without -g";

/// Samples of which names are asked: what the idle task runs has one nearly always, and says nothing of the rest.
const fn busy(evidence: &Evidence) -> u64 {
    evidence.judged.samples.saturating_sub(evidence.judged.idle)
}

/// Samples with a name, as a part of all that are not of the idle task.
fn named(evidence: &Evidence) -> Option<f64> {
    let samples = busy(evidence);
    let unresolved: u64 = evidence.unresolved.iter().map(|part| part.samples).sum();
    (samples > 0).then(|| samples.saturating_sub(unresolved) as f64 / samples as f64)
}

/// What `--call-graph dwarf,SIZE` is advised, by the same rule as the advice.
fn advised_stack_size(evidence: &Evidence) -> Option<u64> {
    let is_walked = |end: StackEnd| !matches!(end, StackEnd::NotRecorded | StackEnd::Recorded);
    let count = |wanted: &dyn Fn(StackEnd) -> bool| -> u64 {
        let ends = evidence.ends.iter().filter(|share| wanted(share.end));
        ends.map(|share| share.samples).sum()
    };
    let short = count(&|end| end == StackEnd::DumpTooShort);
    let is_worth = percent(short, count(&is_walked)) >= WORTH_WARNING;
    is_worth.then(|| advice::dump_size(&evidence.sizes))?
}

fn recording(evidence: &Evidence, limits: &Limits, out: &mut Vec<Draft>) {
    let whole = &evidence.whole;
    let bytes = whole.bytes;
    let stop =
        "stop perf record by Ctrl-C or kill -INT and let it end; kill -9 and a full disk make this";
    out.push(match whole.damage {
        None => finding(Level::Ok, "recording", format!("whole, {bytes} bytes of records")),
        Some(Damage::Unfinished) => finding(
            Level::Warn,
            "recording",
            "perf record was killed before it ended: what came after that is missing, nobody knows how much; so are build IDs, host \
             and names of events",
        )
        .fixed_by([stop]),
        Some(Damage::Cut(missing)) => {
            let share = percent(missing, bytes.saturating_add(missing));
            let level = if share > limits.max_lost { Level::Fail } else { Level::Warn };
            finding(level, "recording", format!("cut short: {missing} bytes of records are missing ({share:.2}%)"))
                .fixed_by(["copy the file again from where it was recorded", stop])
        }
        Some(Damage::EndCut) => finding(
            Level::Fail,
            "recording",
            format!("cut short behind {bytes} bytes of records: how much is missing, nothing tells"),
        )
        .fixed_by(["copy the file again from where it was recorded", stop]),
        Some(Damage::FileMissing(number)) => finding(
            Level::Fail,
            "recording",
            format!("its file data.{number} is missing, and the samples in it: those of one processor or thread"),
        )
        .fixed_by(["copy the whole folder again from where it was recorded"]),
        Some(Damage::SectionsCut) => finding(
            Level::Warn,
            "recording",
            "cut short behind the records: build IDs, host or names of events are missing",
        )
        .fixed_by(["copy the file again from where it was recorded", stop]),
        Some(Damage::EndKept) => finding(
            Level::Warn,
            "recording",
            format!("the last records are missing: perf record -z kept what did not fit into its last packet; {bytes} bytes of records are there"),
        )
        .fixed_by([Remedy::record("--no-z").then(", or perf record without -z")]),
        Some(Damage::Broken) => finding(
            Level::Fail,
            "recording",
            format!("damaged: nothing could be read behind the first {bytes} bytes of records"),
        )
        .fixed_by(["copy the file again from where it was recorded, or record again"]),
    });
    let unread = &evidence.unread;
    if unread.is_simpleperf {
        let text = "recorded by simpleperf; its symbols are not read";
        out.push(finding(Level::Note, "recording.simpleperf", text));
    }
    if let Some(trace) = unread.trace.filter(|_| evidence.loss.samples > 0) {
        let (name, size, limit) = (trace.name(), trace.bytes, trace.limit());
        let text = format!(
            "{name} of {size} bytes was recorded too, which pjit does not decode; these are the samples beside it{limit}"
        );
        let row = finding(Level::Note, "recording.trace", text);
        out.push(row.fixed_by([Trace::decoder(&advice::quoted(&evidence.path))]));
    }
    if let Some(stacks) = unread.branches {
        let shown = if stacks.are_shown {
            "the report shows branches"
        } else {
            "pjit report -b shows branches"
        };
        let text = format!("branch stacks of {} entries; {shown}", stacks.entries);
        out.push(finding(Level::Note, "recording.branches", text));
    }
    if unread.lacks_accesses {
        let text =
            "memory accesses were asked for, and no sample has one: the event does not record them";
        out.push(finding(Level::Note, "recording.accesses", text));
    }
    if whole.skipped > 0 {
        let text = format!(
            "{} records make no sense or are of an unknown kind",
            whole.skipped
        );
        out.push(finding(Level::Warn, "recording.records", text));
    }
    let unchecked: u64 = evidence
        .unchecked
        .iter()
        .map(|culprit| culprit.samples)
        .sum();
    if unchecked > 0 {
        let share = share_of(unchecked, evidence);
        let text = format!(
            "{share} of the samples lie in files that the recording has no build ID of; they are used as they are now: {}",
            names(&evidence.unchecked, evidence)
        );
        let fix = Remedy::done(
            "pjit record, which notes them as files are mapped, also in containers; or perf record --buildid-mmap, which does so too",
        );
        out.push(finding(Level::Note, "recording.build-ids", text).fixed_by([fix]));
    }
    if let Some(status @ 1..) = evidence.status {
        let text = format!(
            "the recorded command ended with status {status}: perhaps before its work was done"
        );
        out.push(finding(Level::Note, "recording.status", text));
    }
    if let Some(Early { after, ran }) = evidence.early {
        let of = ran.map(|ran| format!(" into the {:.1} s of the command", ran.as_secs_f64()));
        let text = format!(
            "the recording ends {:.1} s{}",
            after.as_secs_f64(),
            of.as_deref()
                .unwrap_or(" after its beginning, by a signal to perf"),
        );
        let fix = "record again, and signal the command alone: SIGINT and SIGTERM end perf";
        out.push(finding(Level::Warn, "recording.ended-early", text).fixed_by([fix]));
    }
}

fn samples(
    evidence: &Evidence,
    about: Option<(String, u64)>,
    limits: &Limits,
    out: &mut Vec<Draft>,
) {
    let loss = &evidence.loss;
    let (samples, lost) = (loss.samples, loss.lost);
    if let Some(trace) = evidence.unread.trace.filter(|_| samples == 0) {
        let (name, bytes, limit) = (trace.name(), trace.bytes, trace.limit());
        let text = format!("none, but {name} of {bytes} bytes, which pjit does not decode{limit}");
        let row = finding(Level::Fail, "samples", text);
        out.push(row.fixed_by([Trace::decoder(&advice::quoted(&evidence.path))]));
    } else if samples == 0 && lost == 0 {
        out.push(finding(Level::Fail, "samples", "none").fixed_by([
            Remedy::from("record longer, or another event: ").then(Remedy::record(
                "-e cpu-clock where there are no hardware counters",
            )),
        ]));
    }
    let judged = loss
        .lost_of_judged
        .zip(evidence.judged.event.as_deref())
        .filter(|_| lost > 0);
    let (share, missing) = match judged {
        Some((own, name)) => {
            let share = percent(own, own.saturating_add(evidence.judged.samples));
            let others = lost.saturating_sub(own);
            let text = format!("{own} of {name} lost ({share:.2}%), {others} of others");
            (share, text)
        }
        None => {
            let share = percent(lost, lost.saturating_add(samples));
            (share, format!("{lost} lost ({share:.2}%)"))
        }
    };
    let line = format!(
        "{} recorded{}, {missing}, throttled {} times",
        by_event(evidence),
        precision(evidence.judged.samples),
        loss.throttled
    );
    let level = match share {
        share if share > limits.max_lost => Level::Fail,
        share if share >= WORTH_WARNING => Level::Warn,
        share if share > 0.0 => Level::Note,
        _ => Level::Ok,
    };
    if samples > 0 || lost > 0 {
        let row = finding(level, "samples", line);
        out.push(if level > Level::Ok {
            row.fixed_by(advice::for_loss(&evidence.whole))
        } else {
            row
        });
    }
    if evidence.unfollowed > 0 {
        let which = match evidence.unfollowed {
            1 => "1 thread or process that began was".to_owned(),
            count => format!("{count} threads or processes that began were"),
        };
        let text = format!(
            "{which} not recorded: no event followed (perf record -i, --per-thread, or groups with :S)"
        );
        let fix = Remedy::from("record without these: ")
            .then(Remedy::record_or())
            .then("perf record without -i");
        out.push(finding(Level::Warn, "samples.not-followed", text).fixed_by([fix]));
    }
    match evidence.brief.used {
        Some(used) => unseen(evidence, used, out),
        None => brief(&evidence.brief, out),
    }
    few(evidence, about, limits, out);
    if let Some(event) = evidence.events.iter().find(|event| event.is_too_often) {
        let text = format!(
            "a clock ticks every 10 µs at most, and {} was asked for more often: its periods are no time",
            event.name
        );
        let fixes = ["-F 997", "-c 10000 or more"];
        out.push(finding(Level::Warn, "samples.period", text).fixed_by(fixes));
    }
    if loss.guests > 0 {
        let all = loss.guests.saturating_add(samples);
        let text = format!(
            "{:.2}% ran in guests, whose code the recording does not tell ({} of {all}); they are left out of all but totals",
            percent(loss.guests, all),
            loss.guests
        );
        let fix = Remedy::from("record in the guest, or the host alone: ")
            .then(Remedy::record("-e cycles:H"));
        out.push(finding(Level::Warn, "samples.guests", text).fixed_by([fix]));
    }
    if loss.throttled > 0 {
        let often = percent(loss.throttled, samples) >= WORTH_WARNING;
        let grade = if often { Level::Warn } else { Level::Note };
        let text = format!(
            "the kernel stopped sampling {} times because it took too long",
            loss.throttled
        );
        let fixes = [
            Remedy::record("-F with a lower frequency"),
            Remedy::from("sysctl kernel.perf_cpu_time_max_percent=0"),
        ];
        out.push(finding(grade, "samples.throttled", text).fixed_by(fixes));
    }
}

/// Threads and processes that ended before their next sample.
fn brief(brief: &Brief, out: &mut Vec<Draft>) {
    let level = match brief.share() {
        share if share > MOST_MISSING => Level::Fail,
        share if share >= MISSING_WORTH_WARNING => Level::Warn,
        _ => return,
    };
    let text = format!(
        "{}; about {} of {} that all ran is not in the recording",
        ended_before(brief),
        Unit::Nanoseconds.human(brief.missing),
        Unit::Nanoseconds.human(brief.missing.saturating_add(brief.sampled)),
    );
    out.push(finding(level, "samples.brief", text).fixed_by(for_brief()));
}

/// What helps where threads are too short to be sampled. The whole machine is another thing to record, so that this is no option for the same command.
fn for_brief() -> [Remedy; 2] {
    [
        Remedy::record("-F 9999"),
        "pjit record -a, whose clocks belong to CPUs, then summary --comm".into(),
    ]
}

fn ended_before(brief: &Brief) -> String {
    format!(
        "{} of {} threads that lived shortly ended before their first sample",
        brief.unsampled, brief.threads
    )
}

/// CPU time that the command used and no sample stands for. It knows better than lives of threads, which may have slept.
fn unseen(evidence: &Evidence, used: u64, out: &mut Vec<Draft>) {
    let (brief, loss) = (&evidence.brief, &evidence.loss);
    // Lost samples are a finding of their own.
    let lost = percent(loss.lost, loss.samples) / 100.0 * brief.sampled as f64;
    let seen = brief.sampled.saturating_add(lost as u64);
    let is_user = evidence.judged.ring == Ring::User;
    let level = match percent(seen, used) {
        _ if used.saturating_sub(seen) < LEAST_UNSEEN => return,
        // Of short programs the kernel guesses in which ring they ran.
        share if share < LEAST_SEEN && !is_user => Level::Fail,
        share if share < SEEN_WITHOUT_WARNING => Level::Warn,
        _ => return,
    };
    let seconds = |ns: u64| format!("{:.2}", ns as f64 / 1e9);
    let mut text = format!(
        "{} of {} s {}CPU time was sampled",
        seconds(brief.sampled),
        seconds(used),
        if is_user { "user " } else { "" }
    );
    let are_brief = brief.share() >= MISSING_WORTH_WARNING;
    if are_brief {
        text.push_str("; ");
        text.push_str(&ended_before(brief));
    }
    let row = finding(level, "samples.unseen", text);
    // What ended perf is said before, and no rate mends that; a higher one loses more where some are lost.
    let is_mended = are_brief || evidence.early.is_none();
    let is_lossy = percent(loss.lost, loss.lost.saturating_add(loss.samples)) >= WORTH_WARNING;
    let fixes = for_brief().into_iter().skip(usize::from(is_lossy));
    out.push(row.fixed_by(fixes.filter(|_| is_mended)));
}

/// `1000`, or `1003 (1000 of page-faults, 3 of cpu-clock)`: what is told of shares holds for one event.
fn by_event(evidence: &Evidence) -> String {
    let all = evidence.loss.samples;
    if evidence.events.len() < 2 {
        return all.to_string();
    }
    let mut events: Vec<&OfEvent> = evidence.events.iter().collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.samples));
    let shown = events.iter().take(NAMES);
    let mut shown: Vec<String> = shown
        .map(|event| format!("{} of {}", event.samples, event.name))
        .collect();
    if events.len() > NAMES {
        shown.push(format!("{} more events", events.len() - NAMES));
    }
    let judged = evidence.judged.event.as_deref();
    let judged = judged.map_or_else(String::new, |name| {
        format!("; what follows is about {name}")
    });
    format!("{all} ({}{judged})", shown.join(", "))
}

/// Whether there are enough samples to tell shares: of the event that is asked about, else of the one with most. Others that
/// have few are worth a note.
fn few(evidence: &Evidence, about: Option<(String, u64)>, limits: &Limits, out: &mut Vec<Draft>) {
    let is_few = |samples: u64| samples > 0 && samples < limits.min_samples;
    let fix =
        || Remedy::from("record longer, or ").then(Remedy::record("-F with a higher frequency"));
    let text = |samples: u64, name: Option<&str>| match name {
        Some(name) if evidence.events.len() > 1 => {
            format!("{samples} samples of {name} are too few to tell shares")
        }
        _ => format!("{samples} samples are too few to tell shares"),
    };
    let is_asked = about.is_some();
    let judged = &evidence.judged;
    let (name, samples) = match &about {
        Some((name, samples)) => (Some(name.as_str()), *samples),
        None => (judged.event.as_deref(), judged.samples),
    };
    if is_few(samples) {
        out.push(finding(Level::Fail, "samples.few", text(samples, name)).fixed_by([fix()]));
    }
    let others = evidence.events.iter().filter(|event| event.is_sampled);
    let are_several = judged.event.is_some();
    for event in others.filter(|event| are_several && !is_asked && is_few(event.samples)) {
        if name != Some(event.name.as_str()) {
            let text = text(event.samples, Some(&event.name));
            out.push(finding(Level::Note, "samples.few", text));
        }
    }
}

/// How well so many samples tell a share of 10%: 1.96 standard errors of a proportion.
fn precision(samples: u64) -> String {
    if samples == 0 {
        return String::new();
    }
    let points = 1.96 * 100.0 * (0.1 * 0.9 / samples as f64).sqrt();
    format!(" (10% means 10 +- {points:.1}%)")
}

/// Per cent of the samples from which on missing stacks are worth a warning.
const WORTH_WARNING_OF_NONE: f64 = 10.0;

/// The lines about stacks; the share of whole ones.
fn stacks(evidence: &Evidence, limits: &Limits, out: &mut Vec<Draft>) -> Option<f64> {
    let count = |wanted: &dyn Fn(StackEnd) -> bool| -> u64 {
        evidence
            .ends
            .iter()
            .filter(|share| wanted(share.end))
            .map(|share| share.samples)
            .sum()
    };
    let all = count(&|_| true);
    let missing = count(&|end| end == StackEnd::NotRecorded);
    let recorded = count(&|end| end.is_recorded());
    let complete = count(&|end| end.is_complete());
    let walked = all - missing - recorded;
    let wanted = limits.min_complete.unwrap_or(Limits::MIN_COMPLETE);
    let is_asked_for = limits.min_complete.is_some_and(|least| least > 0.0);
    // A chain that only the kernel has part in is complete, but says nothing about the others.
    let only_kernel = walked == count(&|end| end == StackEnd::KernelOnly);
    if all == 0 {
        return None;
    }
    if missing == all {
        let level = if is_asked_for {
            Level::Fail
        } else {
            Level::Warn
        };
        out.push(
            finding(level, "stacks", "none were recorded: flat views only")
                .fixed_by([Remedy::done("pjit record")]),
        );
        return None;
    }
    let complete_share = if recorded > 0 && only_kernel {
        let share = percent(evidence.rooted, recorded);
        let level = match share {
            share if share >= wanted => Level::Note,
            _ if is_asked_for => Level::Fail,
            _ => Level::Warn,
        };
        let reach = format!(
            "{share:.2}% reach main or a thread's start ({} of {recorded})",
            evidence.rooted
        );
        let absent = if count(&|end| end == StackEnd::ChainFull) > 0 {
            "in the others functions built without are missing, or the outer ones of deep stacks"
        } else {
            "functions built without are missing in them"
        };
        let (text, fix) = if evidence.calls_kept > 0 {
            (
                format!(
                    "from the processor's record of calls (LBR): {reach}; what it does not keep is missing in them"
                ),
                for_calls_kept(),
            )
        } else {
            (
                format!("found by frame pointers: {reach}; {absent}"),
                Remedy::record(WITHOUT_G)
                    .then(", or build everything with -fno-omit-frame-pointer"),
            )
        };
        let row = finding(level, "stacks", text).fixed_by([fix]);
        out.push(row.without_advice_below(Level::Warn));
        out.extend(parts_of_recorded(evidence, recorded));
        share
    } else {
        let share = percent(complete, walked);
        let level = if share < wanted {
            Level::Fail
        } else {
            Level::Ok
        };
        let text = format!("{share:.2}% complete ({complete} of {walked})");
        out.push(finding(level, "stacks", text));
        let is_bad = level == Level::Fail;
        out.extend(
            evidence
                .ends
                .iter()
                .filter_map(|end| part_of_stacks(end, walked, is_bad, evidence))
                .map(|part| part.without_advice_below(Level::Warn)),
        );
        out.extend(skipped(evidence, walked));
        out.extend(completed(evidence, walked));
        if recorded > 0 {
            let note = format!("{recorded} samples have frame-pointer chains, as recorded");
            out.push(finding(Level::Note, "stacks.recorded", note));
            out.extend(parts_of_recorded(evidence, recorded));
        }
        share
    };
    if missing > 0 {
        let share = percent(missing, all);
        let level = match share {
            share if share < WORTH_WARNING_OF_NONE => Level::Note,
            _ if is_asked_for => Level::Fail,
            _ => Level::Warn,
        };
        let text = format!("{missing} samples have none ({share:.2}%)");
        let row = finding(level, "stacks.none", text).fixed_by([Remedy::done("pjit record")]);
        out.push(row.without_advice_below(Level::Warn));
    }
    Some(complete_share / 100.0)
}

/// The lines for what is known to be missing in chains that the kernel or the processor found.
fn parts_of_recorded(evidence: &Evidence, recorded: u64) -> Vec<Draft> {
    /// Per cent of the chains from which on missing callers are worth a warning.
    const WORTH_WARNING_OF_CALLERS: f64 = 5.0;
    let samples = |end: StackEnd| -> u64 {
        let of_end = evidence.ends.iter().filter(|share| share.end == end);
        of_end.map(|share| share.samples).sum()
    };
    let part = |end, worth, check, what: &str, fix: Option<Remedy>| {
        let share = percent(samples(end), recorded);
        let level = if share >= worth {
            Level::Warn
        } else {
            Level::Note
        };
        let row = finding(level, check, format!("{share:.2}% {what}")).fixed_by(fix);
        (share > 0.0).then(|| row.without_advice_below(Level::Warn))
    };
    let kept = format!(
        "have as many calls as the processor keeps ({}), so that outer ones may be missing",
        evidence.calls_kept
    );
    let (full, deeper) = match evidence.asked_frames {
        0 => (
            "have as many frames as the kernel records".to_owned(),
            "sysctl kernel.perf_event_max_stack=1024, and perf record -g --max-stack 1024",
        ),
        few => (
            format!("have as many frames as were asked for ({few})"),
            "perf record -g without --max-stack (perf lock record asks for 8)",
        ),
    };
    let full = full + ", so that outer ones are missing; [too deep] stands there";
    let mut ends = evidence.ends.iter();
    let lacks = ends.find(|share| share.end == StackEnd::CallerMissing);
    let copies = match lacks {
        // What its runtime has in assembler lacks the one caller; copies of Go's stacks end where it changes stacks.
        Some(share) if is_go(share, evidence) => None,
        _ => Some(Remedy::record(WITHOUT_G).then(": it copies stacks, which need no frames")),
    };
    let parts = [
        part(
            StackEnd::CallerMissing,
            WORTH_WARNING_OF_CALLERS,
            "stacks.caller-missing",
            "lack a caller, behind a function that has no frame of its own; [caller missing] stands there",
            copies,
        ),
        part(
            StackEnd::ChainFull,
            WORTH_WARNING,
            "stacks.too-deep",
            &full,
            Some(deeper.into()),
        ),
        part(
            StackEnd::BranchesFull,
            WORTH_WARNING,
            "stacks.calls-kept",
            &kept,
            Some(for_calls_kept()),
        ),
    ];
    parts.into_iter().flatten().collect()
}

/// The line for stacks within which frames are missing.
fn skipped(evidence: &Evidence, walked: u64) -> Option<Draft> {
    const AT_ENDS: &str = "before its frame is built or behind its end";
    let Skipped {
        samples,
        culprits,
        habitual,
    } = &evidence.skipped;
    let share = percent(*samples, walked);
    let level = if share >= WORTH_WARNING {
        Level::Warn
    } else {
        Level::Note
    };
    let is_kept = |culprit: &Culprit| culprit.runtime == Some(Producer::HotSpot);
    let are_kept = evidence.keeps_frames && culprits.iter().all(is_kept);
    // Of files only assembly without frame information is like that.
    let are_made = culprits.iter().any(|culprit| culprit.runtime.is_some());
    let made = if are_made { "made at run time " } else { "" };
    let mut text = format!(
        "{share:.2}% lack frames where [incomplete] stands, behind code {made}{}: {}",
        if are_kept {
            AT_ENDS
        } else {
            "without frame pointers"
        },
        names(culprits, evidence)
    );
    if !habitual.is_empty() && !are_kept {
        text += &format!(
            "; most samples of {} are so: it keeps none",
            habitual.join(", ")
        );
    }
    let row = finding(level, "stacks.skipped", text)
        .fixed_by(advice::for_frames(culprits, evidence.keeps_frames));
    (*samples > 0).then(|| row.without_advice_below(Level::Warn))
}

/// The lines for what was put under cut stacks.
fn completed(evidence: &Evidence, walked: u64) -> impl Iterator<Item = Draft> + use<> {
    let share = percent(evidence.mended.stitched, walked);
    let text = format!(
        "{share:.2}% were completed from other samples of their thread ({} of {walked}), an inference: est. error {:.1}%",
        evidence.mended.stitched,
        100.0 * evidence.mended.error
    );
    let stitched = evidence.mended.stitched > 0;
    let stitched = stitched.then(|| finding(Level::Note, "stacks.stitched", text));
    let grafted = percent(evidence.grafted, walked);
    let note = format!(
        "{grafted:.2}% are cut and got the outermost functions that all complete stacks of their thread share ({} of \
         {walked}); [cut] stands for what lies between",
        evidence.grafted
    );
    let rooted = evidence.grafted > 0;
    let rooted = rooted.then(|| finding(Level::Note, "stacks.rooted", note));
    stitched.into_iter().chain(rooted)
}

/// The line for one reason why stacks ended early.
fn part_of_stacks(
    share: &EndShare,
    walked: u64,
    is_bad: bool,
    evidence: &Evidence,
) -> Option<Draft> {
    let per_cent = percent(share.samples, walked);
    let level = if per_cent >= WORTH_WARNING {
        Level::Warn
    } else {
        Level::Note
    };
    // Where no option helps, only a recording that is bad by it is worth an alarm.
    let helpless = if is_bad { level } else { Level::Note };
    let front = format!("{per_cent:.2}% ");
    let found_in = names(&share.culprits, evidence);
    Some(match share.end {
        StackEnd::DumpTooShort | StackEnd::Rooted | StackEnd::Stitched | StackEnd::StitchedFiber => finding(level, "stacks.short", front + &short_stacks(&evidence.sizes))
            .fixed_by([advice::for_short_stacks(&evidence.sizes, is_go(share, evidence))]),
        StackEnd::MissingFile => finding(level, "stacks.missing-file", front + "end in files that were not found: " + &found_in)
            .fixed_by(advice::for_files(&share.culprits, false)),
        StackEnd::ChangedFile => {
            finding(level, "stacks.changed-file", front + "end in files that were changed since: " + &found_in)
                .fixed_by(advice::for_files(&share.culprits, true))
        }
        StackEnd::UnknownCode => {
            finding(level, "stacks.jit", front + "end in run-time code that no dump or perf map tells of: " + &found_in)
                .fixed_by(for_unknown_code(evidence, share.samples))
        }
        StackEnd::NoRule => {
            finding(helpless, "stacks.no-rule", front + "end in code without unwinding information: " + &found_in)
                .fixed_by(advice::for_frames(&share.culprits, evidence.keeps_frames))
        }
        StackEnd::AbsentPage => finding(
            helpless,
            "stacks.absent-page",
            front + "go on behind a page that was not in memory, where the kernel stops to copy; no larger dump has more",
        )
        .fixed_by(["do not leave room on the stack untouched (large arrays), or record with --call-graph fp"]),
        StackEnd::OtherStack => finding(
            helpless,
            "stacks.other-stack",
            front + "go on on another stack, which perf does not record (the runtime switches between stacks): " + &found_in,
        )
        .fixed_by(is_go(share, evidence).then(|| {
            Remedy::record("-g").then(": Go keeps frame pointers, which lead from stack to stack")
        })),
        StackEnd::ReturnProbe => finding(
            helpless,
            "stacks.return-probe",
            front + "go on behind a return probe, which has replaced the return address",
        )
        .fixed_by(["record the functions' probes and those of their returns together, each call of them"]),
        StackEnd::LostRegister => finding(
            helpless,
            "stacks.register",
            front + "end in code whose unwinding information counts from a register that its callees may change: " + &found_in,
        ),
        StackEnd::CheckFailed => {
            finding(helpless, "stacks.implausible", front + "end where no caller is plausible, in code of: " + &found_in)
                .fixed_by(advice::for_frames(&share.culprits, evidence.keeps_frames))
        }
        StackEnd::NoRegisters => finding(
            helpless,
            "stacks.registers",
            front + &why_not_walked(evidence),
        )
        .fixed_by([Remedy::record("-g")]),
        StackEnd::TooDeep => finding(helpless, "stacks.too-deep", front + "have too many frames"),
        StackEnd::NotRecorded
        | StackEnd::Complete
        | StackEnd::FiberBase
        | StackEnd::KernelOnly
        | StackEnd::Recorded
        // Told apart from how stacks ended.
        | StackEnd::CallerMissing
        | StackEnd::BranchesFull
        | StackEnd::ChainFull
        | StackEnd::Skipped => {
            return None;
        }
    })
}

/// Whether most of the stacks that ended in this way are Go's.
fn is_go(share: &EndShare, evidence: &Evidence) -> bool {
    let mut ends = evidence.ends_in_go.iter();
    let of_go = ends.find(|(end, _)| *end == share.end.recorded());
    of_go.is_some_and(|(_, samples)| samples.saturating_mul(2) > share.samples)
}

/// Why walks could not begin.
fn why_not_walked(evidence: &Evidence) -> String {
    match &evidence.unknown_machine {
        Some(machine) => format!("were copied to be unwound, which pjit cannot do for {machine}"),
        None => {
            "were recorded without the registers or the stack that unwinding starts from".to_owned()
        }
    }
}

fn short_stacks(sizes: &DumpSizes) -> String {
    let DumpSizes {
        short,
        known,
        beyond,
        needed,
        copied,
    } = *sizes;
    let mut text = format!("are larger than the {copied} bytes recorded of them; ");
    if known == 0 {
        return text + "how large, this recording does not tell";
    }
    if known < short {
        text += &format!("as far as it tells ({known} of {short}), ");
    }
    match beyond {
        0 => text + &format!("the largest needs up to {needed} bytes"),
        _ if beyond == known => {
            text + &format!("they need more than the {LARGEST_DUMP} that perf can record")
        }
        _ => {
            text + &format!(
                "{beyond} need more than the {LARGEST_DUMP} that perf can record, the others up to {needed}"
            )
        }
    }
}

fn symbols(evidence: &Evidence, limits: &Limits, out: &mut Vec<Draft>) {
    let samples = busy(evidence);
    if samples == 0 {
        return;
    }
    let unresolved: u64 = evidence.unresolved.iter().map(|part| part.samples).sum();
    let share = percent(samples.saturating_sub(unresolved), samples);
    let level = if share < limits.min_resolved {
        Level::Fail
    } else {
        Level::Ok
    };
    let idle = match evidence.judged.idle {
        0 => String::new(),
        idle => format!("; {idle} of the idle task are left out"),
    };
    let text = format!(
        "{share:.2}% of the samples have a name ({} of {samples}{idle})",
        samples.saturating_sub(unresolved)
    );
    out.push(finding(level, "symbols", text));
    let copied: u64 = evidence.copied.iter().map(|culprit| culprit.samples).sum();
    if copied > 0 {
        let note = format!(
            "{} of the samples lie where the program copied code over its own at some time, as for large pages; it has the \
             names of the file: {}",
            share_of(copied, evidence),
            names(&evidence.copied, evidence)
        );
        out.push(finding(Level::Note, "symbols.copied", note));
    }
    shared(evidence, out);
    out.extend(
        evidence
            .unresolved
            .iter()
            .filter(|part| !is_told_of_kernel(part, evidence))
            .map(|part| part_of_symbols(part, evidence).without_advice_below(Level::Warn)),
    );
}

/// Names of code that is one of several functions.
fn shared(evidence: &Evidence, out: &mut Vec<Draft>) {
    let samples = evidence.shared.iter().map(|code| code.samples).sum();
    if percent(samples, busy(evidence)) < WORTH_NOTING {
        return;
    }
    let shown = evidence.shared.iter().take(NAMES);
    let shown: Vec<String> = shown
        .map(|code| format!("{} (or {})", code.name, code.other))
        .collect();
    let text = format!(
        "{} of the samples lie in code of which the linker or the compiler made one for several functions: {}",
        share_of(samples, evidence),
        shown.join(", ")
    );
    let row = finding(Level::Note, "symbols.shared", text);
    out.push(row.fixed_by(["link without --icf, to tell whose time it is"]));
}

/// Whether the row about the kernel says it.
fn is_told_of_kernel(part: &Unresolved, evidence: &Evidence) -> bool {
    let is_of_kernel = matches!(
        part.reason,
        Reason::RestrictedKernel
            | Reason::UntoldKernel
            | Reason::NoKernelSymbols
            | Reason::OtherKernel
    );
    is_of_kernel && evidence.kernel.samples > 0 && evidence.kernel.state != Some(KernelState::Found)
}

/// The line for one reason why samples have no name.
fn part_of_symbols(part: &Unresolved, evidence: &Evidence) -> Draft {
    let share = percent(part.samples, busy(evidence));
    let level = if share >= WORTH_WARNING {
        Level::Warn
    } else {
        Level::Note
    };
    let found_in = names(&part.culprits, evidence);
    let row = |check, what: &str| finding(level, check, format!("{share:.2}% {what}{found_in}"));
    match part.reason {
        Reason::MissingFile => row("symbols.missing-file", "in files that were not found: ")
            .fixed_by(advice::for_files(&part.culprits, false)),
        Reason::ChangedFile => row("symbols.changed-file", "in files that were changed since: ")
            .fixed_by(advice::for_files(&part.culprits, true)),
        Reason::AmbiguousFile => row(
            "symbols.ambiguous-file",
            "in files whose paths several files had while it was recorded: ",
        )
        .fixed_by([
            "pjit record and perf record --buildid-mmap tell them apart, by the build ID of each mapping; of this recording, give the \
             roots of the containers: --symfs DIR --symfs DIR",
        ]),
        Reason::NotElf => row(
            "symbols.not-elf",
            "in files that are there but are no ELF files, and so have no names: ",
        ),
        Reason::PeFile => row(
            "symbols.precompiled",
            "in .NET's precompiled code, whose files have no names for perf: ",
        )
        .fixed_by(["DOTNET_ReadyToRun=0 has .NET compile everything as it runs, so that its map tells of it"]),
        Reason::UnreadableFile => row(
            "symbols.unreadable-file",
            "in files that you may not read: ",
        )
        .fixed_by(["run pjit as the user who may, or give copies by --symfs DIR"]),
        Reason::NoSymbols => row("symbols.stripped", "in files that have no symbol there: ")
            .fixed_by(advice::for_stripped(
                &part.culprits[..part.culprits.len().min(NAMES)],
            )),
        Reason::JitWithoutDump => row(
            "symbols.jit",
            "in run-time code that no dump or perf map tells of: ",
        )
        .fixed_by(for_unknown_code(evidence, part.samples)),
        Reason::OtherRun => row(
            "symbols.other-run",
            "in code of dumps that may be another run's: ",
        )
        .fixed_by(for_stale_dumps()),
        Reason::RestrictedKernel => row(
            "symbols.kernel-restricted",
            "in the kernel, whose addresses are hidden: ",
        )
        .fixed_by(for_restricted_kernel()),
        Reason::UntoldKernel => row(
            "symbols.kernel-untold",
            "in code that the kernel made and tells of nowhere, such as the filters of sockets and seccomp: ",
        ),
        Reason::NoKernelSymbols => row(
            "symbols.kernel-missing",
            "in the kernel, whose symbols were not found: ",
        )
        .fixed_by(for_kernel_symbols()),
        Reason::OtherKernel => row(
            "symbols.kernel-changed",
            "in the kernel, with the names of another one: ",
        )
        .fixed_by(for_kernel_symbols()),
        Reason::UntoldProcess => row(
            "symbols.untold-process",
            "in processes whose start and mappings stand in no record: ",
        )
        .fixed_by([Remedy::from(
            "perf record -a repeats those of all processes in each slice of --switch-output; else records were lost: ",
        )
        .then(advice::larger_rings(&evidence.whole))]),
        Reason::Unmapped => match cut_dumps(evidence) {
            Some(dumps) => row(
                "symbols.unmapped",
                &format!("where nothing was mapped, and {dumps}: "),
            )
            .fixed_by([LET_IT_END]),
            None => row("symbols.unmapped", "where nothing was mapped: ").fixed_by([
                Remedy::from("lost records or perf record --no-… options hide mappings: ")
                    .then(advice::larger_rings(&evidence.whole)),
            ]),
        },
        Reason::Other => row("symbols.other", "in other places: "),
    }
}

/// What to do where the end of a dump is missing.
const LET_IT_END: &str =
    "let the program end by itself: what it had not written yet when it was killed is lost";

/// The dumps whose end is missing, in words.
fn cut_dumps(evidence: &Evidence) -> Option<String> {
    let is_cut = |dump: &&Dump| dump.cut.is_some() && !dump.is_growing;
    let mut cut = evidence.dumps.iter().filter(is_cut);
    let first = cut.next()?;
    Some(match cut.count() {
        0 => format!("{} was cut, so that not all code is known", first.name),
        more => format!(
            "{} and {more} more dumps were cut, so that not all code is known",
            first.name
        ),
    })
}

/// The processor's record of calls has no more than it keeps.
fn for_calls_kept() -> Remedy {
    Remedy::record_or()
        .then(Remedy::record("-g"))
        .then(" with everything built by -fno-omit-frame-pointer")
}

fn for_stale_dumps() -> [&'static str; 1] {
    ["remove old dumps before recording; --jitdump FILE_OR_DIR with the dump of this run"]
}

fn for_restricted_kernel() -> [&'static str; 2] {
    [
        "sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1, then record and report again; or do both as root",
        "sudo cat /proc/kallsyms >kallsyms on the recorded machine since its last boot, and --kallsyms kallsyms",
    ]
}

fn for_kernel_symbols() -> [&'static str; 2] {
    [
        "sudo cat /proc/kallsyms >kallsyms on the recorded machine since its last boot, and --kallsyms kallsyms",
        "or --vmlinux FILE with the recorded kernel's vmlinux",
    ]
}

/// Whether a dump was expected decides where to look for it.
fn for_unknown_code(evidence: &Evidence, samples: u64) -> Vec<Remedy> {
    let missing = evidence
        .absent
        .iter()
        .any(|absent| absent.why == Absence::Missing);
    if missing {
        return vec!["--jitdump FILE_OR_DIR with the dumps that are named below as missing".into()];
    }
    if let Some(fix) = evidence.dumps.iter().find_map(Dump::given_up) {
        return vec![fix.into()];
    }
    if let Some(fix) = evidence.loses_dumps {
        return vec![fix.into()];
    }
    let has_empty = || {
        evidence
            .absent
            .iter()
            .any(|absent| absent.why == Absence::Empty)
    };
    if cut_dumps(evidence).is_some() || has_empty() {
        return vec![LET_IT_END.into()];
    }
    let (maps, dumps): (Vec<_>, Vec<_>) = evidence.dumps.iter().partition(|dump| dump.is_perf_map);
    if let Some(dump) = dumps.iter().find(|dump| dump.is_growing) {
        return vec![Remedy::from(format!(
            "{} is still being written, in large pieces: when the program has ended, ask again with --jitdump",
            dump.name
        ))];
    }
    // What every dump lacks is little; of more nobody knows that it is this.
    let is_little = percent(samples, busy(evidence)) <= MOST_IN_GAPS;
    let in_dumps = dumps
        .iter()
        .filter(|_| is_little)
        .find_map(|dump| dump.producer.row().gaps_in_dump);
    let in_maps = || maps.iter().find_map(|map| map.producer.row().gaps_in_map);
    if let Some(reason) = in_dumps.or_else(in_maps) {
        return vec![reason.into()];
    }
    let tell = || Remedy::from("have the runtime tell: ").then(Remedy::record_or());
    let told = evidence.untold.first().map(|name| programs::told_by(name));
    match told.unwrap_or_default() {
        Told::By(recipe) => {
            let besides = match recipe.besides {
                "" => String::new(),
                besides => format!(" ({besides})"),
            };
            return vec![tell().then(format!("{}{besides}", recipe.begins))];
        }
        Told::Never(name) => {
            return vec![Remedy::from(format!(
                "{name} has no switch that tells of its code; what it compiles stays without names"
            ))];
        }
        Told::Unknown => {}
    }
    vec![
        tell().then("by hand as pjit guide record says"),
        "--jitdump FILE_OR_DIR or --perf-map FILE_OR_DIR where it did, and they were moved".into(),
    ]
}

fn clock(evidence: &Evidence, out: &mut Vec<Draft>) {
    let name = match &evidence.clock {
        Clock::Monotonic => "monotonic (-k mono), that of dumps".to_owned(),
        Clock::Scheduler => "the kernel's own (no -k)".to_owned(),
        Clock::Other(name) => format!("{name} (-k {name})"),
        Clock::Absent { .. } => "no times were recorded".to_owned(),
    };
    if evidence.clock == (Clock::Absent { is_apart: true }) {
        let text = format!(
            "{name}: each processor's records stand by themselves, so it is not sure which thread and program a sample is of"
        );
        let row = finding(Level::Warn, "clock", text);
        out.push(row.fixed_by(["record without --no-timestamp"]));
        return;
    }
    let dumps = || evidence.dumps.iter().filter(|dump| !dump.is_perf_map);
    let worst = dumps().map(|dump| clock_level(dump, &evidence.clock)).max();
    let (level, text) = match worst {
        None => (Level::Ok, format!("{name}; no dump has to fit it")),
        Some(Level::Ok) => (Level::Ok, name),
        Some(level) => {
            let odd = dumps().filter(|dump| clock_level(dump, &evidence.clock) == level);
            let told: Vec<String> = odd
                .take(NAMES)
                .map(|dump| format!("{}: {}", dump.name, clock_words(dump)))
                .collect();
            (level, format!("{name}; {}", told.join("; ")))
        }
    };
    let row = finding(level, "clock", text);
    out.push(if level > Level::Ok {
        row.fixed_by([Remedy::done(
            "pjit record, which takes the clock of dumps (-k mono)",
        )])
    } else {
        row
    });
}

fn clock_level(dump: &Dump, clock: &Clock) -> Level {
    match dump.clock_fit {
        ClockFit::Same => Level::Ok,
        ClockFit::Converted => Level::Ok,
        // Measured to be next to nothing, or not measurable; with nothing to go by in a dump without functions.
        ClockFit::Assumed if dump.functions == 0 || *clock == Clock::Monotonic => Level::Ok,
        // Told as a dump of another run.
        ClockFit::Unused if is_doubtful(dump.clock_fit, clock) => Level::Ok,
        ClockFit::Assumed | ClockFit::Shifted | ClockFit::Unused => Level::Warn,
    }
}

fn clock_words(dump: &Dump) -> &str {
    match dump.clock_fit {
        ClockFit::Assumed => "its times are used as they are, though its clock is another",
        _ => &dump.clock,
    }
}

fn dumps(evidence: &Evidence, limits: &Limits, out: &mut Vec<Draft>) {
    let told: Vec<String> = evidence
        .dumps
        .iter()
        .map(|dump| {
            let noun = if dump.functions == 1 {
                "function"
            } else {
                "functions"
            };
            format!("{} ({} {noun})", dump.name, dump.functions)
        })
        .collect();
    let shown = told
        .iter()
        .take(NAMES)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let missing = evidence
        .absent
        .iter()
        .filter(|absent| absent.why == Absence::Missing);
    out.push(match told.len() {
        0 => match missing.count() {
            0 => finding(Level::Ok, "dumps", "none used"),
            n => finding(Level::Note, "dumps", format!("none of {n} was found")),
        },
        n if n > NAMES => finding(
            Level::Ok,
            "dumps",
            format!("{shown} and {} more", n - NAMES),
        ),
        _ => finding(Level::Ok, "dumps", shown),
    });
    absent_dumps(evidence, out);
    for dump in &evidence.dumps {
        part_of_dumps(dump, &evidence.clock, out);
    }
    let replaced: u64 = evidence.dumps.iter().map(|dump| dump.replaced).sum();
    if replaced > 0 {
        let text =
            format!("{replaced} loads took the place of other code; they are told apart by time");
        out.push(finding(Level::Note, "dumps.overlaps", text));
    }
    doubtful(evidence, limits, out);
    if evidence.late > 0 {
        let share = share_of(evidence.late, evidence);
        let longest = evidence.latest as f64 / 1e6;
        let text = format!(
            "{share} of the samples lie in code that its dump tells of only later, by up to {longest:.1} ms"
        );
        out.push(finding(Level::Note, "dumps.late", text));
    }
    if evidence.twins > 0 {
        let share = share_of(evidence.twins, evidence);
        let text = format!(
            "{share} of the samples lie in copies of code that a dump tells of, known by length, time and instructions"
        );
        out.push(finding(Level::Note, "dumps.copies", text));
    }
}

fn doubtful(evidence: &Evidence, limits: &Limits, out: &mut Vec<Draft>) {
    let (own, called) = evidence.doubtful;
    if own + called == 0 {
        return;
    }
    let share = percent(own, evidence.judged.samples);
    let callers = percent(called, evidence.judged.samples);
    let level = if 100.0 - share < limits.min_resolved {
        Level::Fail
    } else if share + callers >= WORTH_WARNING {
        Level::Warn
    } else {
        Level::Note
    };
    let text = format!(
        "{share:.2}% of the samples lie where perf maps tell of several functions, {callers:.2}% more were called there; the last name \
         is shown, for maps have no times"
    );
    let fix = Remedy::done("record a dump, which has times: pjit record asks runtimes for it");
    out.push(finding(level, "dumps.reused", text).fixed_by([fix]));
}

fn absent_dumps(evidence: &Evidence, out: &mut Vec<Draft>) {
    let describe = |paths: Vec<String>| {
        let shown = paths
            .iter()
            .take(NAMES)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        if paths.len() > NAMES {
            format!("{shown} and {} more", paths.len() - NAMES)
        } else {
            shown
        }
    };
    let path = |absent: &crate::jit::JitAbsent| String::from_utf8_lossy(&absent.path).into_owned();
    let of = |why: Absence| -> Vec<String> {
        let absent = evidence.absent.iter().filter(|absent| absent.why == why);
        let told = absent.map(|absent| format!("{} (process {})", path(absent), absent.pid));
        told.collect()
    };
    let (missing, empty) = (of(Absence::Missing), of(Absence::Empty));
    if !missing.is_empty() {
        let fix = "--jitdump FILE_OR_DIR, or put them beside the recording";
        let text = format!("not found: {}", describe(missing));
        out.push(finding(Level::Warn, "dumps.missing", text).fixed_by([fix]));
    }
    if !empty.is_empty() {
        let text = format!(
            "empty: {}: the process ended without writing it, as by os._exit or kill",
            describe(empty)
        );
        let fix = evidence.loses_dumps.unwrap_or(LET_IT_END);
        out.push(finding(Level::Warn, "dumps.empty", text).fixed_by([fix]));
    }
    let mut stale = BTreeSet::new();
    for absent in evidence.absent.iter() {
        if let Absence::Stale(problem) = absent.why {
            let path = path(absent);
            // Several lives of a process ask for one file.
            if !stale.insert(path.clone()) {
                continue;
            }
            let text = format!("{path} is not used: {problem}");
            let fix = format!(
                "remove it, or --perf-map {} if it is the right one",
                advice::quoted(&path)
            );
            out.push(finding(Level::Warn, "dumps.stale", text).fixed_by([fix]));
        }
    }
}

fn part_of_dumps(dump: &Dump, clock: &Clock, out: &mut Vec<Draft>) {
    let name = &dump.name;
    if dump.is_growing {
        let text = format!(
            "{name} is still being written, {} functions so far",
            dump.functions
        );
        out.push(finding(Level::Note, "dumps.growing", text));
    } else if let Some(rest) = dump.cut {
        let text = format!(
            "{name} ends within a record, the last {rest} bytes are not whole; what was to follow is missing"
        );
        let let_it_end =
            "let the program end by itself, with room on the disk; copy the dump after that";
        let of_runtime = dump.given_up().or(dump.producer.row().loses_dumps);
        let fix = of_runtime.unwrap_or(let_it_end);
        out.push(finding(Level::Warn, "dumps.cut", text).fixed_by([fix]));
    }
    if dump.malformed > 0 {
        let text = format!(
            "{name} has {} records of unknown or impossible form (pjit jitdump lists them)",
            dump.malformed
        );
        out.push(finding(Level::Warn, "dumps.records", text));
    }
    if dump.foreign > 0 {
        let total = dump.foreign.saturating_add(dump.functions);
        let text = format!(
            "{name}: {} of {total} functions are of an earlier or unknown process and not used",
            dump.foreign
        );
        out.push(finding(Level::Warn, "dumps.stale", text).fixed_by(for_stale_dumps()));
    }
    if is_doubtful(dump.clock_fit, clock) && dump.functions > 0 {
        let text = format!(
            "{name}: nothing in it happened while it was recorded: of another run, or on another clock"
        );
        out.push(finding(Level::Warn, "dumps.stale", text).fixed_by(for_stale_dumps()));
    }
}

fn kernel(evidence: &Evidence, out: &mut Vec<Draft>) {
    let kernel = &evidence.kernel;
    let share = share_of(kernel.samples, evidence);
    let source = &kernel.source;
    let row = match kernel.state {
        _ if evidence.judged.ring == Ring::User => finding(
            Level::Note,
            "kernel",
            "time in the kernel was not recorded: the event counts user mode alone (:u)",
        )
        .fixed_by(["sudo sysctl kernel.perf_event_paranoid=1, and record again"]),
        _ if kernel.samples == 0 => finding(Level::Ok, "kernel", "no samples in the kernel"),
        Some(KernelState::Found) => finding(Level::Ok, "kernel", format!("{share} of the samples, symbols of {source}")),
        Some(KernelState::OtherBuild) => finding(
            Level::Warn,
            "kernel",
            format!("{share} of the samples; {source} is not of the recorded kernel, whose code has another size"),
        )
        .fixed_by(for_kernel_symbols()),
        Some(KernelState::Restricted) => {
            finding(Level::Warn, "kernel", format!("{share} of the samples; all addresses of its symbols are 0"))
                .fixed_by(for_restricted_kernel())
        }
        Some(KernelState::Missing) => finding(Level::Warn, "kernel", format!("{share} of the samples; symbols: {source}"))
            .fixed_by(for_kernel_symbols())
            .fixed_by(kernel.build_id.map(|build| {
                format!("or pjit fetch, which may bring its debug file (build ID {build})")
            })),
        None => finding(Level::Warn, "kernel", format!("{share} of the samples; the recording does not tell where it lay"))
            .fixed_by(for_restricted_kernel()),
    };
    out.push(row);
}

fn debug_info(evidence: &Evidence, out: &mut Vec<Draft>) {
    let worth = |culprit: &&Culprit| percent(culprit.samples, busy(evidence)) >= WORTH_NOTING;
    let bare: Vec<Culprit> = evidence
        .without_dwarf
        .iter()
        .filter(worth)
        .cloned()
        .collect();
    if bare.is_empty() {
        out.push(finding(Level::Ok, "debug-info", "nothing missing"));
        return;
    }
    let samples = bare.iter().map(|culprit| culprit.samples).sum();
    let text = format!(
        "{} of the samples lie in files that do not tell inlined functions: {}",
        share_of(samples, evidence),
        names(&bare, evidence)
    );
    let row = finding(Level::Note, "debug-info", text);
    out.push(row.fixed_by(advice::for_stripped(&bare[..bare.len().min(NAMES)])));
}

/// The heaviest names with their shares.
fn names(culprits: &[Culprit], evidence: &Evidence) -> String {
    let shown = culprits.iter().take(NAMES);
    let name = |culprit: &Culprit| {
        let are_several = culprits
            .iter()
            .filter(|of| of.name == culprit.name)
            .nth(1)
            .is_some();
        let inode = culprit.inode.filter(|_| are_several);
        let inode = inode.map_or_else(String::new, |inode| format!(" (inode {inode})"));
        format!("{}{inode}", culprit.name)
    };
    let mut text = shown
        .map(|culprit| format!("{} {}", name(culprit), share_of(culprit.samples, evidence)))
        .collect::<Vec<_>>()
        .join(", ");
    if culprits.len() > NAMES {
        text.push_str(&format!(" and {} more", culprits.len() - NAMES));
    }
    text
}

fn share_of(samples: u64, evidence: &Evidence) -> String {
    format!("{:.2}%", percent(samples, busy(evidence)))
}
