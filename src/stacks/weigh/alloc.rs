//! Presets of the heap: `alloc`, `alloc-count`, `live`, `live-count`, `peak`, `lifetime`.
//!
//! In: what [`super::heap`] paired. Out: a sample for each block that counts. Where the kernel walked the stack, that of
//! an entry lacks the calling function, whose frame is not made yet; the return's has it, and is taken.

use rustc_hash::FxHashMap;

use super::allocators::is_upper_layer;
use super::calls::{Probe, Reader, Said, probes};
use super::fields::have_chains;
use super::heap::{At, Block, BlockId, Fact, Gone, Pairing, Tally};
use super::made::Labels;
use super::read::Source;
use super::spec::Heap;
use super::timeline::{Step, Story};
use super::{Derived, Options, Pairs, WeighError, Weighed};
use crate::ids::{Idx, IndexSlice, IndexVec, ThreadId, index_vec};
use crate::jit::ProcessId;
use crate::perfdata::attr::sample_type;
use crate::perfdata::{Event, EventId};
use crate::session::marks::Moment;
use crate::session::{Filter, SampleId, SampleRef, Samples, Session};
use crate::unit::Unit;

/// Events of which more than this share was lost say nothing of what is left.
const MOST_LOST: f64 = 0.01;

/// Weighs by the heap.
pub(super) fn weigh(
    source: Source<'_, '_>,
    samples: &mut Samples,
    heap: Heap,
    options: &Options,
    filter: &Filter,
) -> Result<Weighed, WeighError> {
    let probes = probes(source, samples);
    check(source, samples, &probes, heap, options)?;
    let paired = paired(source, samples, &probes);
    let Paired { tally, .. } = &paired;
    let period = sampling(source, &probes).unwrap_or(1);
    let is_of_blocks = !matches!(heap, Heap::Alloc | Heap::AllocCount);
    let mut live = Vec::new();
    if is_of_blocks {
        live = live_lines(tally, samples);
        live.extend(left_out(tally, options)?);
    }
    let impossible = keep_blocks(source, samples, &probes, tally, heap, (options, filter));
    let mut event = describe(source, samples, &probes, heap, period);
    event.lines.extend(live);
    let mut quality = quality(&paired);
    if impossible > 0 {
        quality.push_str(&format!(
            ", {impossible} of more than an address space left out: they failed"
        ));
    }
    if is_of_blocks && is_blind(&probes) {
        quality.push_str(&format!(", {BLIND}"));
        source.diag.warn(format!(
            "--weight {}: {BLIND} (pjit record --live without --min)",
            options.text
        ));
    }
    Ok(Weighed {
        event: Some(event),
        quality: vec![quality],
        ..Weighed::default()
    })
}

/// What is to be said where frees are known, and reallocations are not.
const BLIND: &str = "realloc was not recorded: blocks that it freed or moved count as never freed, and what it gave is missing";

/// Whether blocks may be freed and made in a way that was not recorded.
fn is_blind(probes: &[Option<Probe>]) -> bool {
    let known = || probes.iter().flatten();
    // What `operator new` gives nobody reallocates.
    let is_lower = |probe: &Probe| probe.kind.allocates() && !is_upper_layer(&probe.name);
    known().any(is_lower) && !known().any(|probe| probe.name.contains("realloc"))
}

/// How well calls belong to returns, and frees to calls.
pub(super) fn pairs(source: Source<'_, '_>, samples: &Samples) -> Option<Pairs> {
    let probes = probes(source, samples);
    let allocates = |probe: &Probe| probe.kind.allocates() && probe.is_return;
    if !probes.iter().flatten().any(allocates) {
        return None;
    }
    let paired = paired(source, samples, &probes);
    let tally = &paired.tally;
    // Of what `posix_memalign` made, nobody knows where it is.
    let frees = tally.unpaired_frees.saturating_sub(tally.without_address);
    let without = [
        frees,
        tally.lost_frees,
        tally.without_return,
        tally.unpaired_returns,
    ];
    let mut text = quality(&paired);
    let is_blind = is_blind(&probes);
    if is_blind {
        text.push_str(&format!(", {BLIND}"));
    }
    Some(Pairs {
        text,
        is_blind,
        all: paired.said,
        without: without.iter().sum(),
        harms: true,
    })
}

/// What payloads said, of some samples.
fn said(
    source: Source<'_, '_>,
    samples: &[SampleRef],
    probes: &[Option<Probe>],
) -> Vec<Option<Said>> {
    let is_probe: Vec<bool> = probes.iter().map(Option::is_some).collect();
    source.read(samples, &is_probe, |event, sample| {
        let index = source.index(event)?;
        Some(probes[index].as_ref()?.said(sample))
    })
}

/// What all probes together tell.
struct Paired {
    tally: Tally,
    /// Samples that said something.
    said: u64,
    twins: u64,
    unreadable: u64,
}

/// Reads a piece of the samples after the other, and pairs what they say.
fn paired(source: Source<'_, '_>, recorded: &Samples, probes: &[Option<Probe>]) -> Paired {
    let session = source.session;
    /// Samples that are paired while what is known of an address is on its way from memory.
    const AHEAD: usize = 16;
    let mut reader = Reader::new(session, probes);
    let samples = recorded.all.as_raw_slice();
    let size = source.piece(samples);
    let mut piece = Vec::new();
    let mut read = 0;
    let mut said_something = 0;
    let mut pairing = Pairing::default();
    let mut losses = session.losses.iter().peekable();
    let last_of_processes = last_of_processes(session);
    for step in Story::of(session, recorded, &[]).steps() {
        let before = match step {
            Step::Sample(number, _) => number,
            Step::Mark(mark) => mark.before,
        };
        while losses.next_if(|lost| **lost <= before).is_some() {
            pairing.lost();
        }
        let (thread, stack, facts) = match step {
            Step::Sample(number, sample) => {
                let place = number.index();
                if place >= read {
                    let all = &samples[place..];
                    piece = said(source, &all[..all.len().min(size)], probes);
                    read = place + piece.len();
                    said_something += piece.iter().flatten().count() as u64;
                }
                let at = place + piece.len() - read;
                let soon = piece.get(at + AHEAD).copied().flatten();
                if let Some((process, heap, address)) =
                    soon.and_then(|said| reader.address(&samples[place + AHEAD], said))
                {
                    pairing.expect(process, heap, address);
                }
                let stack = piece[at].map_or(0, |said| said.stack);
                (sample.thread, stack, [reader.fact(sample, piece[at]), None])
            }
            Step::Mark(mark) => {
                let time = mark.time.0;
                let facts = match mark.what {
                    Moment::Born { parent, child } => [Some(Fact::Born { parent, child }), None],
                    Moment::Exec(process) => [Some(Fact::Exec { process, time }), None],
                    Moment::Exit => {
                        let process = session.threads[mark.thread].process;
                        let is_last = last_of_processes.get(&process) == Some(&mark.thread);
                        let end = is_last.then_some(Fact::End { process, time });
                        [Some(Fact::Exit), end]
                    }
                    _ => [None, None],
                };
                (mark.thread, 0, facts)
            }
        };
        let at = At {
            thread,
            process: session.threads[thread].process,
            sample: before,
            stack,
        };
        for fact in facts.into_iter().flatten() {
            pairing.take(at, fact);
        }
    }
    Paired {
        tally: pairing.finish(),
        said: said_something,
        twins: reader.twins,
        unreadable: reader.unreadable,
    }
}

/// The thread with whose end its process is over. A process whose first thread is not seen to end may go on.
fn last_of_processes(session: &Session<'_>) -> FxHashMap<ProcessId, ThreadId> {
    let exits = session.marks.iter();
    let exits = exits.filter(|mark| mark.what == Moment::Exit);
    let mut last: FxHashMap<ProcessId, ThreadId> = exits
        .map(|mark| (session.threads[mark.thread].process, mark.thread))
        .collect();
    for thread in &session.threads {
        if thread.end.is_none() && thread.pid == thread.tid {
            last.remove(&thread.process);
        }
    }
    last
}

/// How many calls a sample stands for, where they were counted and not all recorded.
fn sampling(source: Source<'_, '_>, probes: &[Option<Probe>]) -> Option<u64> {
    let events = source.recording.events.iter().zip(probes);
    let mut sampled = events.filter(|(event, probe)| probe.is_some() && is_sampled(event));
    sampled.next().map(|(event, _)| event.attr.sample_period)
}

/// With the period in each sample, the kernel records every hit of a tracepoint, whatever was asked for.
fn is_sampled(event: &Event) -> bool {
    let attr = &event.attr;
    attr.is_freq() || attr.sample_period > 1 && !attr.has(sample_type::PERIOD)
}

/// Refuses what the recording cannot tell, and warns of what it tells badly.
fn check(
    source: Source<'_, '_>,
    samples: &Samples,
    probes: &[Option<Probe>],
    heap: Heap,
    options: &Options,
) -> Result<(), WeighError> {
    let text = &options.text;
    let known = || probes.iter().flatten();
    if !known().any(|probe| probe.kind.allocates() && !probe.is_return) {
        let text = format!("--weight {text}: no event allocates (pjit record --alloc)");
        return Err(WeighError(text));
    }
    let has_returns = known().any(|probe| probe.kind.allocates() && probe.is_return);
    let is_of_blocks = !matches!(heap, Heap::Alloc | Heap::AllocCount);
    if is_of_blocks && !known().any(|probe| !probe.kind.allocates()) {
        let text = format!("--weight {text}: frees were not recorded (pjit record --live)");
        return Err(WeighError(text));
    }
    if is_of_blocks && !has_returns {
        let text = format!(
            "--weight {text}: returns of allocators were not recorded (pjit record --live)"
        );
        return Err(WeighError(text));
    }
    let is_lower = |probe: &Probe| probe.kind.allocates() && !is_upper_layer(&probe.name);
    let has_two_layers = known().any(|probe| probe.is_upper) && known().any(is_lower);
    if !has_returns && has_two_layers {
        let names: Vec<&str> = known().map(|probe| probe.name.as_str()).collect();
        return Err(WeighError(format!(
            "--weight {text}: {} call each other, and returns were not recorded: probe one layer",
            names.join(", ")
        )));
    }
    if let Some(period) = sampling(source, probes) {
        if is_of_blocks && !options.force {
            return Err(WeighError(format!(
                "--weight {text}: calls were counted 1 in {period}, not recorded each (--force)"
            )));
        }
        source.diag.warn(format!(
            "--weight {text}: counted 1 in {period}: rare large blocks may be missing (--filter 'size >= 1024' leaves \
             out small ones instead)"
        ));
    }
    check_loss(source, samples, probes, is_of_blocks, options)
}

fn check_loss(
    source: Source<'_, '_>,
    samples: &Samples,
    probes: &[Option<Probe>],
    is_of_blocks: bool,
    options: &Options,
) -> Result<(), WeighError> {
    let is_probe = |index: usize| probes[index].is_some();
    let lost = source
        .session
        .stats
        .lost_of(|event| is_probe(event.index()));
    let there = samples
        .all
        .iter()
        .filter(|s| is_probe(usize::from(s.event.0)));
    let there = there.count() as u64;
    let share = lost as f64 / (lost as f64 + there as f64).max(1.0);
    if share <= MOST_LOST {
        return Ok(());
    }
    let percent = share * 100.0;
    let text = &options.text;
    if is_of_blocks && !options.force {
        return Err(WeighError(format!(
            "--weight {text}: {percent:.1} % of the events were lost: live bytes would be wrong (--force)"
        )));
    }
    source.diag.warn(format!(
        "--weight {text}: {lost} of {} events were lost ({percent:.1} %): what they allocated is missing \
         (pjit record -m 64M, smaller stacks)",
        lost.saturating_add(there)
    ));
    Ok(())
}

/// So many bytes no request gets: addresses that a program is given without asking for larger ones have fewer than 48 bits.
const IMPOSSIBLE: u64 = 1 << 48;

/// Leaves a sample for each block, where it was: there may be as many of them as there is memory for. Gives how many were asked
/// for and cannot be.
fn keep_blocks(
    source: Source<'_, '_>,
    weighed: &mut Samples,
    probes: &[Option<Probe>],
    tally: &Tally,
    heap: Heap,
    (options, filter): (&Options, &Filter),
) -> u64 {
    let mut impossible = 0;
    let events = &source.recording.events;
    let mut labels = Labels::default();
    let samples = &mut weighed.all;
    let end = samples.last().map_or(0, |sample| sample.time.0);
    let mut is_kept: IndexVec<SampleId, bool> = index_vec![false; samples.len()];
    let mut rest = 0_u128;
    // What later blocks need of samples is not changed by earlier ones: each has a call and a return of its own, and is
    // gone before its successor is there.
    for (number, block) in tally.blocks.iter_enumerated() {
        if block.bytes() >= IMPOSSIBLE {
            impossible += 1;
            continue;
        }
        let call = samples[block.call];
        let time = lifetime(samples, block, tally, end);
        let Some(weight) = weight(heap, block, number, tally, time, &mut rest) else {
            continue;
        };
        if !filter.keeps_at(call.time.0, u32::try_from(call.cpu).ok()) {
            continue;
        }
        let attr = &events[call.layout].attr;
        let is_walked_by_kernel =
            attr.has(sample_type::CALLCHAIN) && !attr.has(sample_type::STACK_USER);
        let is_at_return = is_walked_by_kernel && block.end != block.call;
        let place = if is_at_return { block.end } else { block.call };
        let sample = &mut samples[place];
        if is_at_return && !options.trims {
            let probe = probes[call.event.index()].as_ref();
            sample.label = labels.of(probe.map_or("", |probe| probe.name.as_str()));
        }
        sample.period = weight.saturating_mul(call.period.max(1));
        sample.time = call.time;
        sample.event = EventId(0);
        is_kept[place] = true;
    }
    let mut is_kept = is_kept.into_iter();
    samples.retain(|_| is_kept.next() == Some(true));
    samples.shrink_to_fit();
    // Those at returns are told at the time of their calls.
    if !samples.raw.is_sorted_by_key(|sample| sample.time) {
        samples.sort_by_key(|sample| sample.time);
    }
    weighed.labels = labels.texts;
    impossible
}

/// How long a block was there, in ns.
fn lifetime(
    samples: &IndexSlice<SampleId, [SampleRef]>,
    block: &Block,
    tally: &Tally,
    end: u64,
) -> u64 {
    let time = |sample: SampleId| samples.get(sample).map(|s| s.time.0);
    let from = time(block.call).unwrap_or(end);
    let to = match tally.gone(block) {
        Gone::Never => None,
        Gone::With(sample) => time(sample),
        Gone::At(moment) => Some(moment),
    };
    to.unwrap_or(end).saturating_sub(from)
}

/// What a block weighs, if it counts. `rest` is what rounding left over.
fn weight(
    heap: Heap,
    block: &Block,
    number: BlockId,
    tally: &Tally,
    time: u64,
    rest: &mut u128,
) -> Option<u64> {
    /// Nanoseconds in a millisecond times bytes in a KiB.
    const STEP: u128 = 1_000_000 * 1024;
    match heap {
        Heap::Alloc => Some(block.bytes()),
        Heap::AllocCount => Some(1),
        Heap::Live => tally.is_live(block).then_some(block.bytes()),
        Heap::LiveCount => tally.is_live(block).then_some(1),
        Heap::Peak => tally.is_of_peak(number).then_some(block.bytes()),
        Heap::Lifetime => {
            *rest += u128::from(block.bytes()) * u128::from(time);
            let steps = *rest / STEP;
            *rest %= STEP;
            u64::try_from(steps).ok()
        }
    }
}

fn describe(
    source: Source<'_, '_>,
    samples: &Samples,
    probes: &[Option<Probe>],
    heap: Heap,
    period: u64,
) -> Derived {
    let mut names: Vec<&str> = Vec::new();
    let calls = probes.iter().flatten();
    for probe in calls.filter(|probe| probe.kind.allocates() && !probe.is_return) {
        if !names.contains(&probe.name.as_str()) {
            names.push(&probe.name);
        }
    }
    let names = names.join(", ");
    let (name, unit) = match heap {
        Heap::Alloc => (format!("alloc (bytes of {names})"), Unit::Bytes),
        Heap::AllocCount => (format!("alloc-count (calls of {names})"), Unit::Blocks),
        Heap::Live => (format!("live (bytes of {names} not freed)"), Unit::Bytes),
        Heap::LiveCount => (
            format!("live-count (blocks of {names} not freed)"),
            Unit::Blocks,
        ),
        Heap::Peak => (
            format!("peak (bytes of {names} when most were there)"),
            Unit::Bytes,
        ),
        Heap::Lifetime => (
            format!("lifetime (bytes of {names} times their time)"),
            Unit::ByteSeconds,
        ),
    };
    let mut lines = Vec::new();
    if period > 1 && matches!(heap, Heap::Alloc | Heap::AllocCount) {
        // Each sample stands for others of the same size, or of none.
        let squares: f64 = samples.all.iter().map(|s| (s.period as f64).powi(2)).sum();
        let error = unit.human(squares.sqrt() as u64);
        lines.push(format!("Counted 1 in {period}: ± {error}"));
    }
    let of: Vec<bool> = probes.iter().map(Option::is_some).collect();
    Derived {
        name,
        unit,
        counted: match unit {
            Unit::Blocks => "samples",
            _ => "blocks",
        },
        lines,
        has_callchains: have_chains(source.recording, &of),
    }
}

/// `Live at end: 6242880 bytes (5.95 MiB) in 1005 blocks; peak 6291456 at 12.345678 s`, and what of that went with its
/// process.
fn live_lines(tally: &Tally, samples: &Samples) -> Vec<String> {
    let live = tally.blocks.iter().filter(|block| tally.is_live(block));
    let peak = samples.all.get(tally.peak_at);
    let peak_at = peak.map_or(0, |sample| sample.time.0);
    let (seconds, micros) = (peak_at / 1_000_000_000, peak_at / 1000 % 1_000_000);
    let (bytes, blocks) = tally.ended;
    let all = tally.live.saturating_add(bytes);
    let mut lines = vec![format!(
        "Live at end: {all} bytes ({}) in {} blocks; peak {} at {seconds}.{micros:06} s",
        Unit::Bytes.human(all),
        live.count(),
        tally.peak
    )];
    if blocks > 0 {
        lines.push(format!(
            "Not freed before their processes ended: {bytes} of these bytes in {blocks} blocks"
        ));
    }
    lines
}

/// What is said of blocks that nobody knows the address of, as `posix_memalign` returns none: whether they were freed is not known.
/// A leak of them was called none.
fn left_out(tally: &Tally, options: &Options) -> Result<Option<String>, WeighError> {
    let (count, bytes) = (tally.without_address, tally.bytes_without_address);
    if count == 0 {
        return Ok(None);
    }
    let sizes = tally.blocks.iter().map(Block::bytes);
    let all = sizes.fold(0, u64::saturating_add).max(1);
    let share = bytes as f64 / all as f64;
    if share > MOST_LOST && !options.force {
        return Err(WeighError(format!(
            "--weight {}: {:.1}% of the bytes are in {count} blocks without an address (posix_memalign returns none): whether \
             they were freed is not known (--force leaves them out; --weight alloc has them)",
            options.text,
            100.0 * share
        )));
    }
    Ok(Some(format!(
        "Left out: {bytes} bytes in {count} blocks without an address, of which nobody knows whether they were freed"
    )))
}

/// `heap: 24220 blocks, 200 nested left out, 200 without address, 200 unpaired frees`.
fn quality(paired: &Paired) -> String {
    let tally = &paired.tally;
    let mut text = format!("heap: {} blocks", tally.blocks.len());
    // Where no return was recorded, there is no address at all.
    let some_have = tally.without_address < tally.blocks.len() as u64;
    for (count, what) in [
        (tally.nested, "nested left out"),
        (
            tally.without_address * u64::from(some_have),
            "without address",
        ),
        (tally.failed, "failed"),
        (tally.unpaired_frees, "unpaired frees"),
        (tally.lost_frees, "lost frees"),
        (tally.without_return, "without return"),
        (tally.unpaired_returns, "returns without call"),
        (paired.twins, "twins of PLTs and probes left out"),
        (paired.unreadable, "without their fields"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}
