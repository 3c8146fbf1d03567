//! Spells: long stretches of one thread inside one function, without a break.
//!
//! Sampling knows no calls: two calls one behind the other are one spell, and a spell ends where a sample is elsewhere or where the
//! thread has none for a while. Where switches were recorded with stacks it ends where the thread waited outside of the function,
//! however long it had to wait for a processor.

use super::timeline::{ByFunction, FEWEST, Moment, OfThread, PathCounts, PathId, Timeline};
use crate::functions::FunctionId;
use crate::ids::{IndexVec, index_vec};
use crate::profile::ThreadId;

/// Long spells of a thread in a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Spell {
    /// The thread.
    pub thread: ThreadId,
    /// The function, the innermost of those with the same spells; an own one, if there is one.
    pub function: FunctionId,
    /// Times of the first and the last sample of each, in order.
    pub at: Vec<(u64, u64)>,
    /// How long each is.
    pub lengths: Vec<u64>,
    /// The median of that.
    pub median: u64,
    /// Place of the longest.
    pub longest: usize,
    /// The step in ns between their beginnings, where that is regular.
    pub every: Option<u64>,
}

impl Spell {
    /// How long they are together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lengths
            .iter()
            .fold(0, |sum, length| sum.saturating_add(*length))
    }
}

/// A spell shorter than this is none, in ns.
pub(super) const SHORTEST: u64 = 20_000_000;
/// A spell of fewer samples is none.
const LEAST: usize = 8;
/// Shares of a thread's samples between which a function may have spells. One that is nearly always there has no breaks.
pub(super) const SHARES: [f64; 2] = [0.005, 0.98];
/// A function with more than this may be the program itself, between its start and its end: it has spells only if it comes back.
pub(super) const MOSTLY: f64 = 0.8;
/// Spells of a function that are kept: of more the text would say no more.
const MOST: usize = 10_000;
/// How much of a spell a clock of CPU time has to see of its thread. Less is a thread that mostly sleeps, and whose short calls are
/// nearer to each other than its pauses usually are; one that rarely gets a processor has more.
const SEEN: f64 = 0.25;
/// Functions of a thread that are compared with each other.
const MOST_FUNCTIONS: usize = 1000;

pub(super) fn find(timeline: &Timeline<'_>, threads: &[OfThread<'_>]) -> Vec<Spell> {
    let mut all = Vec::new();
    let mut scratch = Scratch {
        paths: PathCounts::new(timeline),
        counts: ByFunction::new(timeline.functions),
        open: ByFunction::new(timeline.functions),
        followed: Followed::new(timeline),
    };
    for of in threads {
        let moments = timeline.whole(of.thread, &of.moments);
        if moments.len() >= FEWEST {
            let waits = timeline.whole(of.thread, &of.waits);
            of_thread(
                timeline,
                (of.thread, &moments, &waits),
                &mut scratch,
                &mut all,
            );
        }
    }
    all.sort_by_key(|spell| {
        (
            std::cmp::Reverse(spell.total()),
            spell.thread,
            spell.function,
        )
    });
    all
}

/// Runs of samples in one function.
struct Runs {
    function: FunctionId,
    /// From the first to the one behind the last, as places in the thread's samples.
    runs: Vec<(usize, usize)>,
    /// How deep it lies, where it was first met.
    depth: usize,
    /// Whether most samples of the thread are in it.
    is_most: bool,
}

impl Runs {
    fn len(&self) -> usize {
        self.runs.iter().map(|(from, to)| to - from).sum()
    }

    /// How many samples both have.
    fn common(&self, other: &Self) -> usize {
        let (mut sum, mut rest) = (0, other.runs.as_slice());
        for (from, to) in &self.runs {
            while let [(begin, end), more @ ..] = rest {
                sum += end.min(to).saturating_sub(*begin.max(from));
                if end > to {
                    break;
                }
                rest = more;
            }
        }
        sum
    }
}

/// A function while its runs are found.
struct Open {
    /// The first of the run, as a place among samples.
    start: usize,
    /// The last thing of the run, as a place among samples and waits, which begin with 1.
    last: usize,
    /// Samples of the run.
    length: usize,
    /// In how many samples it is.
    count: usize,
    /// Where it stood in its first sample.
    depth: Option<usize>,
    /// Runs that are no short ones, from the first sample to the one behind the last.
    runs: Vec<(usize, usize)>,
    /// The same between samples elsewhere; of short ones the latest alone.
    stays: Vec<(usize, usize)>,
}

impl Open {
    fn new(count: usize) -> Self {
        Self {
            start: 0,
            last: 0,
            length: 0,
            count,
            depth: None,
            runs: Vec::new(),
            stays: Vec::new(),
        }
    }

    /// The run is over. Behind it the thread may have had no processor, and goes on.
    fn end(&mut self, lasts: impl Fn(usize, usize) -> u64) {
        if self.length == 0 {
            return;
        }
        let (from, to) = (self.start, self.start + self.length);
        let is_short = self.length < LEAST || lasts(from, to) < SHORTEST;
        if !is_short && self.runs.len() < MOST {
            self.runs.push((from, to));
        }
        let is_full = self.stays.len() >= MOST;
        match self.stays.last_mut() {
            Some((_, end)) if *end == from => *end = to,
            Some(last) if last.1 - last.0 < LEAST => *last = (from, to),
            _ if is_full => {}
            _ => self.stays.push((from, to)),
        }
    }
}

/// What each thread needs anew.
struct Scratch {
    paths: PathCounts,
    counts: ByFunction<usize>,
    open: ByFunction<Open>,
    followed: Followed,
}

/// Which functions of a path are followed. Samples are many and paths are few: each path is looked at once.
struct Followed {
    /// From where to where in `all`, of those that were met.
    of_path: IndexVec<PathId, Option<(usize, usize)>>,
    met: Vec<PathId>,
    /// The place of each among the open ones, and how deep it stands.
    all: Vec<(u32, usize)>,
}

impl Followed {
    fn new(timeline: &Timeline<'_>) -> Self {
        Self {
            of_path: index_vec![None; timeline.paths.len()],
            met: Vec::new(),
            all: Vec::new(),
        }
    }

    fn of(
        &mut self,
        timeline: &Timeline<'_>,
        path: PathId,
        open: &ByFunction<Open>,
    ) -> &[(u32, usize)] {
        let (from, to) = self.of_path[path].unwrap_or_else(|| {
            let from = self.all.len();
            let functions = timeline.functions_of(path).iter().enumerate();
            let followed = functions.filter_map(|(depth, of)| Some((open.place(*of)?, depth)));
            self.all.extend(followed);
            self.met.push(path);
            let both = (from, self.all.len());
            self.of_path[path] = Some(both);
            both
        });
        &self.all[from..to]
    }

    fn clear(&mut self) {
        self.all.clear();
        for path in self.met.drain(..) {
            self.of_path[path] = None;
        }
    }
}

fn of_thread(
    timeline: &Timeline<'_>,
    (thread, moments, waits): (ThreadId, &[Moment], &[Moment]),
    scratch: &mut Scratch,
    out: &mut Vec<Spell>,
) {
    let n = moments.len();
    let share = |count: usize| count as f64 / n as f64;
    let Scratch {
        paths,
        counts,
        open,
        followed,
    } = scratch;
    counts.count(timeline, paths.of(moments));
    for (function, count) in counts.take() {
        if (SHARES[0]..=SHARES[1]).contains(&share(count)) {
            open.get_or_add(function, || Open::new(count));
        }
    }
    let period = usual_period(timeline, moments);
    let lasts = |from: usize, to: usize| moments[to - 1].time - moments[from].time + period;
    let tells_sleep = timeline.is_clock && !timeline.knows_waits();
    let is_seen = |(from, to): (usize, usize)| {
        let periods = moments[from..to].iter().map(|moment| moment.period);
        let cpu: u64 = periods.fold(0, u64::saturating_add);
        !tells_sleep || cpu as f64 >= SEEN * lasts(from, to) as f64
    };
    find_runs(timeline, (moments, waits), &lasts, (open, followed));
    followed.clear();
    let mut found = Vec::new();
    for (function, of) in open.take() {
        let share = share(of.count);
        let chance = longest_by_chance(n as f64, share);
        let is_long = |(from, to): &(usize, usize)| (to - from) as f64 >= 2.0 * chance;
        let times = of.stays.iter().filter(|stay| is_long(stay)).count();
        let mut long = of.runs;
        long.retain(|run| is_long(run) && is_seen(*run));
        let runs = Runs {
            function,
            runs: long,
            depth: of.depth.unwrap_or(0),
            is_most: share > MOSTLY,
        };
        let comes_back = times > 1 || !runs.is_most;
        if !runs.runs.is_empty() && comes_back && 2 * runs.len() >= of.count {
            found.push(runs);
        }
    }
    // What is nearly always there says less than what is in it.
    let (most, rest): (Vec<Runs>, Vec<Runs>) = found.into_iter().partition(|of| of.is_most);
    let mut told = distinct(timeline, rest);
    let most = distinct(timeline, most).into_iter();
    let most = most.filter(|of| told.iter().all(|in_it| of.common(in_it) == 0));
    let most: Vec<Runs> = most.collect();
    told.extend(most);
    for runs in told {
        let at = runs.runs.iter();
        let at: Vec<(u64, u64)> = at
            .map(|(from, to)| (moments[*from].time, moments[to - 1].time))
            .collect();
        let lengths: Vec<u64> = at.iter().map(|(from, to)| to - from + period).collect();
        let median = median(lengths.clone());
        let longest = (0..lengths.len())
            .rev()
            .max_by_key(|number| lengths[*number]);
        out.push(Spell {
            thread,
            function: runs.function,
            every: every(&at, median),
            median,
            longest: longest.unwrap_or(0),
            lengths,
            at,
        });
    }
}

/// The longest run of so large a share of so many samples that do not depend on each other.
pub(super) fn longest_by_chance(samples: f64, share: f64) -> f64 {
    (samples * (1.0 - share)).max(2.0).ln() / -share.ln()
}

/// Goes through the samples and waits of a thread.
fn find_runs(
    timeline: &Timeline<'_>,
    (moments, waits): (&[Moment], &[Moment]),
    lasts: &impl Fn(usize, usize) -> u64,
    (open, followed): (&mut ByFunction<Open>, &mut Followed),
) {
    let limit = if timeline.knows_waits() {
        u64::MAX
    } else {
        limit(moments)
    };
    let (mut place, mut wait, mut at) = (0, 0, 0);
    while let Some(moment) = moments.get(at) {
        // What a wait happened in goes on behind it.
        while let Some(next) = waits.get(wait).filter(|next| next.time <= moment.time) {
            place += 1;
            for function in timeline.functions_of(next.path) {
                if let Some(of) = open.get(*function).filter(|of| of.last + 1 == place) {
                    of.last = place;
                }
            }
            wait += 1;
        }
        let is_broken = at > 0 && moment.time - moments[at - 1].time > limit;
        // Nothing follows on what was before.
        place += 1 + usize::from(is_broken);
        let next_wait = waits.get(wait).map_or(u64::MAX, |next| next.time);
        let same = alike(&moments[at..], limit, next_wait);
        for (number, depth) in followed.of(timeline, moment.path, open) {
            let of = open.at(*number);
            if of.last + 1 != place {
                of.end(lasts);
                (of.start, of.length) = (at, 0);
            }
            of.depth.get_or_insert(*depth);
            (of.last, of.length) = (place + same - 1, of.length + same);
        }
        place += same - 1;
        at += same;
    }
    open.all().for_each(|of| of.end(lasts));
}

/// How many samples begin with the stack of the first one, without a break or a wait between them.
fn alike(moments: &[Moment], limit: u64, next_wait: u64) -> usize {
    let pairs = moments.windows(2);
    let goes_on = |pair: &&[Moment]| {
        let [one, next] = pair else { return false };
        next.path == one.path && next.time - one.time <= limit && next.time < next_wait
    };
    1 + pairs.take_while(goes_on).count()
}

/// Without functions that have the same spells as others: the innermost own one of these stays, else the innermost.
fn distinct(timeline: &Timeline<'_>, mut found: Vec<Runs>) -> Vec<Runs> {
    found.sort_by_key(|of| {
        (
            std::cmp::Reverse(of.len()),
            std::cmp::Reverse(of.depth),
            of.function,
        )
    });
    found.truncate(MOST_FUNCTIONS);
    let mut kept: Vec<Runs> = Vec::new();
    for of in found {
        let same = kept.iter_mut().find(|known| {
            let least = of.len().min(known.len()) as f64;
            of.common(known) as f64 >= 0.8 * least
        });
        let Some(known) = same else {
            kept.push(of);
            continue;
        };
        let own = |runs: &Runs| timeline.functions.is_own(runs.function);
        // Of a runtime's loop nobody knows what ran in it: the own function that most of it was says more.
        let least = if own(&of) && !own(known) { 0.5 } else { 0.9 };
        let covers = of.len() as f64 >= least * known.len() as f64;
        if covers && (own(&of), of.depth) > (own(known), known.depth) {
            *known = of;
        }
    }
    kept
}

/// How long a thread may have no sample within a spell: four of its long steps.
pub(super) fn limit(moments: &[Moment]) -> u64 {
    const LEAST: u64 = 5_000_000;
    // Where more than one in twenty would have to be longer, and is not, nobody needs to know them in order.
    let pairs = moments.windows(2);
    let long = pairs.filter(|pair| pair[1].time - pair[0].time > LEAST / 4);
    if long.count() < moments.len() / 20 {
        return LEAST;
    }
    let length = long_step(moments).map_or(0, |step| step.saturating_mul(4));
    length.clamp(LEAST, 50_000_000)
}

/// The time between samples that one in twenty exceeds.
pub(super) fn long_step(moments: &[Moment]) -> Option<u64> {
    let mut steps = steps(moments);
    let place = steps.len() * 95 / 100;
    (place < steps.len()).then(|| *steps.select_nth_unstable(place).1)
}

/// Times between samples.
fn steps(moments: &[Moment]) -> Vec<u64> {
    let pairs = moments.windows(2);
    pairs.map(|pair| pair[1].time - pair[0].time).collect()
}

/// The time that a sample stands for.
pub(super) fn usual_period(timeline: &Timeline<'_>, moments: &[Moment]) -> u64 {
    if timeline.is_clock {
        let first = moments.first().map_or(0, |moment| moment.period);
        if moments.iter().all(|moment| moment.period == first) {
            return first;
        }
        return median(moments.iter().map(|moment| moment.period).collect());
    }
    median(steps(moments))
}

/// The middle one, of an even number the mean of both.
pub(super) fn median(mut of: Vec<u64>) -> u64 {
    let (middle, is_odd) = (of.len() / 2, of.len() % 2 == 1);
    if of.is_empty() {
        return 0;
    }
    let (lower, one, _) = of.select_nth_unstable(middle);
    match lower.iter().max() {
        Some(lower) if !is_odd => lower.midpoint(*one),
        _ => *one,
    }
}

/// The median step between beginnings, if steps vary by less than a quarter. Pieces that are near to each other count as one.
fn every(at: &[(u64, u64)], median_length: u64) -> Option<u64> {
    let mut begins: Vec<u64> = Vec::new();
    let mut end = None;
    for (from, to) in at {
        if end.is_none_or(|end: u64| from - end > median_length / 2) {
            begins.push(*from);
        }
        end = Some(*to);
    }
    let steps: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.len() < 3 {
        return None;
    }
    let mean = steps.iter().map(|step| *step as f64).sum::<f64>() / steps.len() as f64;
    let squares = steps.iter().map(|step| (*step as f64 - mean).powi(2));
    let spread = (squares.sum::<f64>() / steps.len() as f64).sqrt();
    (spread < 0.25 * mean).then(|| median(steps))
}
