//! Who owned which addresses when: the rules by which loads, moves, forks and mappings end each
//! other, and the frozen index that answers for an address and a time.
//!
//! A claim is a rectangle: a range of addresses from one time to another. Within a process no two
//! claims share an address at a time, because a new claim ends every claim that it touches: as a whole, but where it
//! touches little of it and not its start ([`overlap`]). The loads of a dump are fed in here in order of time; see [`super::builder`]. Where nothing ever ended
//! anything, the loads themselves are the claims ([`super::lasting`]).

use rustc_hash::FxHashMap;

use super::codes::{Codes, DumpCodes};
use super::live::{Live, LiveMap, OwnClaim};
use super::memory::Again;
use super::segments::{Claim, Owner, Segments};
use super::{JitCodeId, JitObjectId, ProcessId};
use crate::address::{Avma, AvmaRange, Timestamp};
use crate::ids::{Idx, IndexVec};
use crate::jitdump::overlap;

/// End of a claim that nothing ended.
pub(super) const FOREVER: Timestamp = Timestamp(u64::MAX);
/// So many generations of processes with JIT code of their own may be asked one after the other.
const MAX_GENERATIONS: u32 = 8;
/// The same of processes whatever they have.
const MAX_ANCESTORS: usize = 64;

/// One process while time goes on.
#[derive(Default)]
struct State {
    live: LiveMap,
    claims: IndexVec<OwnClaim, Claim>,
    /// Has all loads of this dump instead, the first of them at that time.
    lasting: Option<(JitObjectId, Timestamp)>,
    /// Ranges of inherited claims that ended here, with the time: the process they belong to keeps them.
    ended: Vec<Claim>,
    inherited: Option<Inherited>,
    execs: Vec<Timestamp>,
    /// When memory was mapped again that may have got other code, in order.
    again: Vec<(Timestamp, AvmaRange)>,
    generation: u32,
}

/// The claims a child shares with its parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Inherited {
    parent: ProcessId,
    /// The fork.
    at: Timestamp,
    /// The child's exec.
    until: Timestamp,
}

/// Applies what happened, in order of time.
#[derive(Default)]
pub(super) struct ClaimsBuilder {
    processes: IndexVec<ProcessId, State>,
}

impl ClaimsBuilder {
    /// So many loads are to come for a process.
    pub(super) fn reserve(&mut self, process: ProcessId, loads: usize) {
        let state = self.state(process);
        state.claims.reserve(loads);
        state.live.reserve(loads);
    }

    /// The process has all loads of a dump, and nothing else ever touches them.
    pub(super) fn lasting(&mut self, process: ProcessId, dump: JitObjectId, first: Timestamp) {
        self.state(process).lasting = Some((dump, first));
    }

    /// New code at `range`; ends what it touches, and says whether there was anything. Empty ranges claim nothing.
    pub(super) fn load(
        &mut self,
        process: ProcessId,
        range: AvmaRange,
        code: JitCodeId,
        time: Timestamp,
    ) -> bool {
        if range.is_empty() {
            return false;
        }
        let ended = self.end_overlapping(process, range, time);
        self.claim(process, range, range.start, code, time);
        ended
    }

    /// A claim on addresses that nobody has; `origin` is where the first byte of the code lies.
    fn claim(
        &mut self,
        process: ProcessId,
        range: AvmaRange,
        origin: Avma,
        code: JitCodeId,
        time: Timestamp,
    ) {
        let state = self.state(process);
        let claim = state.claims.push(Claim {
            range,
            origin,
            from: time,
            to: FOREVER,
            code,
        });
        let live = Live {
            end: range.end,
            code,
            owner: process,
            claim,
        };
        state.live.insert(range.start, live);
    }

    /// The code in force at exactly `range`.
    pub(super) fn at(&self, process: ProcessId, range: AvmaRange) -> Option<JitCodeId> {
        // The caller goes on to look for what the range touches, which is in the cache then.
        let state = self.processes.get(process)?;
        let (start, live) = state.live.last_before(range.end)?;
        (start == range.start && live.end == range.end).then_some(live.code)
    }

    /// The code in force that begins at `start`.
    pub(super) fn starting_at(&self, process: ProcessId, start: Avma) -> Option<JitCodeId> {
        Some(self.processes.get(process)?.live.get(start)?.code)
    }

    /// Code goes to another address: what it has of its place ends, and it begins there.
    pub(super) fn moved(
        &mut self,
        process: ProcessId,
        from: AvmaRange,
        to: AvmaRange,
        code: JitCodeId,
        time: Timestamp,
    ) {
        let mut end = from.end;
        while let Some((start, live)) = self.state(process).live.last_before(end)
            && start >= from.start
        {
            if live.code == code {
                self.end(process, start, live, time);
            }
            end = start;
        }
        self.load(process, to, code, time);
    }

    /// A file was mapped, or something else took the addresses.
    pub(super) fn mapped(&mut self, process: ProcessId, range: AvmaRange, time: Timestamp) {
        if !range.is_empty() {
            self.end_overlapping(process, range, time);
        }
    }

    /// Memory was mapped again. Code of runtimes that map once ends, and what had other memory. A runtime may have written down what
    /// it is about to make executable: what it told a moment ago stays, if that was not mapped just before.
    pub(super) fn mapped_again(
        &mut self,
        process: ProcessId,
        (range, again): (AvmaRange, Again),
        time: Timestamp,
        maps_once: impl Fn(JitCodeId) -> bool,
    ) {
        /// No runtime waits for so long.
        const SOON: u64 = 100_000_000;
        if range.is_empty() {
            return;
        }
        self.state(process).again.push((time, range));
        let mut end = range.end;
        while let Some((start, live)) = self.state(process).live.last_before(end)
            && live.end > range.start
        {
            let from = self.processes[live.owner].claims[live.claim].from;
            let is_old = time.0.saturating_sub(from.0) > SOON;
            let is_mapped = again.before <= from && from.0 - again.before.0 <= SOON;
            let ends = if maps_once(live.code) {
                is_old || is_mapped
            } else {
                is_old && again.is_other
            };
            if ends {
                self.end(process, start, live, time);
            }
            end = start;
        }
    }

    /// The child has what the parent has now; later changes of either do not touch the other.
    pub(super) fn fork(&mut self, parent: ProcessId, child: ProcessId, time: Timestamp) {
        let ancestors = self.ancestors(parent).take(MAX_ANCESTORS + 1);
        let (count, is_own_ancestor) = ancestors.fold((0, parent == child), |(count, own), of| {
            (count + 1, own || of == child)
        });
        // Only damaged recordings have processes that descend from themselves.
        if is_own_ancestor {
            return;
        }
        let from = self.state(parent);
        let live = from.live.share();
        let has_lasting = from.lasting.is_some_and(|(_, first)| first <= time);
        let has_own = !from.claims.is_empty() || !from.ended.is_empty() || has_lasting;
        let generation = from.generation + u32::from(has_own);
        // A parent that only inherited is skipped: what it sees is its own parent at its own fork.
        let skipped = from
            .inherited
            .filter(|inherited| !has_own && inherited.until == FOREVER);
        let inherited = skipped.unwrap_or(Inherited {
            parent,
            at: time,
            until: FOREVER,
        });
        if generation > MAX_GENERATIONS || count > MAX_ANCESTORS {
            return self.copy_into(child, &live, time);
        }
        let to = self.state(child);
        (to.live, to.generation, to.inherited) = (live, generation, Some(inherited));
    }

    /// Those from whom a process has what it inherited, however long ago.
    fn ancestors(&self, process: ProcessId) -> impl Iterator<Item = ProcessId> {
        let parent = |of: &ProcessId| {
            let state = self.processes.get(*of)?;
            Some(state.inherited?.parent)
        };
        std::iter::successors(parent(&process), parent)
    }

    /// The process runs another program: nothing is left.
    pub(super) fn exec(&mut self, process: ProcessId, time: Timestamp) {
        let state = self.state(process);
        for (_, live) in std::mem::take(&mut state.live).iter() {
            if live.owner == process {
                state.claims[live.claim].to = time;
            }
        }
        if let Some(inherited) = &mut state.inherited {
            inherited.until = inherited.until.min(time);
        }
        state.execs.push(time);
        state.generation = 0;
    }

    /// The frozen index.
    pub(super) fn freeze(self) -> Claims {
        Claims {
            processes: self.processes.into_iter().map(State::freeze).collect(),
        }
    }

    /// Claims of its own for a child whose line of ancestors is too long to ask.
    fn copy_into(&mut self, child: ProcessId, live: &LiveMap, time: Timestamp) {
        for (start, current) in live.iter() {
            let range = AvmaRange {
                start,
                end: current.end,
            };
            let origin = self.origin(current);
            self.claim(child, range, origin, current.code, time);
        }
    }

    fn state(&mut self, process: ProcessId) -> &mut State {
        let at = process.index();
        if self.processes.len() <= at {
            self.processes.resize_with(at + 1, State::default);
        }
        &mut self.processes[at]
    }

    fn end_overlapping(&mut self, process: ProcessId, range: AvmaRange, time: Timestamp) -> bool {
        let mut ended = false;
        let Some(number) = self.processes.get(process).map(|_| process.index()) else {
            return ended;
        };
        while let Some((start, live)) = self.processes[number].live.last_before(range.end)
            && live.end > range.start
        {
            let old = AvmaRange {
                start,
                end: live.end,
            };
            let origin = self.origin(live);
            self.end(process, start, live, time);
            if overlap::is_slight(old, range) {
                for part in overlap::untouched(old, range) {
                    self.claim(process, part, origin, live.code, time);
                }
            }
            ended = true;
        }
        ended
    }

    /// Where the first byte of the code lies of which a claim has a part.
    fn origin(&self, live: Live) -> Avma {
        self.processes[live.owner].claims[live.claim].origin
    }

    fn end(&mut self, process: ProcessId, start: Avma, live: Live, time: Timestamp) {
        let state = self.state(process);
        state.live.remove(start);
        if live.owner == process {
            state.claims[live.claim].to = time;
        } else {
            let range = AvmaRange {
                start,
                end: live.end,
            };
            state.ended.push(Claim {
                range,
                origin: start,
                from: time,
                to: FOREVER,
                code: live.code,
            });
        }
    }
}

impl State {
    fn freeze(self) -> Option<Box<ProcessClaims>> {
        drop(self.live);
        let frozen = ProcessClaims {
            claims: match self.lasting {
                Some((dump, _)) => Own::Lasting(dump),
                None => Own::Ended(Segments::new(self.claims.raw)),
            },
            ended: Segments::new(self.ended),
            inherited: self.inherited,
            execs: self.execs,
            again: self.again,
        };
        let empty = frozen.claims.is_empty() && frozen.inherited.is_none();
        (!empty).then(|| Box::new(frozen))
    }
}

/// The claims of all processes, immutable.
#[derive(Debug, Default)]
pub(super) struct Claims {
    processes: IndexVec<ProcessId, Option<Box<ProcessClaims>>>,
}

#[derive(Debug)]
struct ProcessClaims {
    claims: Own,
    ended: Segments,
    inherited: Option<Inherited>,
    execs: Vec<Timestamp>,
    again: Vec<(Timestamp, AvmaRange)>,
}

/// Claims that a process did not inherit.
#[derive(Debug)]
enum Own {
    /// The loads of a dump, each from its time on for ever.
    Lasting(JitObjectId),
    /// Of which some may have ended.
    Ended(Segments),
}

impl Claims {
    /// The last end of each code's claims; none of code that was never touched.
    pub(super) fn ends(&self) -> FxHashMap<JitCodeId, Timestamp> {
        let mut ends = FxHashMap::default();
        for process in self.processes.iter().flatten() {
            if let Own::Ended(segments) = &process.claims {
                for (code, end) in segments.ends() {
                    let known = ends.entry(code).or_insert(end);
                    *known = end.max(*known);
                }
            }
        }
        ends
    }
}

impl Own {
    fn is_empty(&self) -> bool {
        match self {
            Self::Lasting(_) => false,
            Self::Ended(segments) => segments.is_empty(),
        }
    }

    /// The claim in force at `time`.
    #[inline]
    fn at(&self, codes: &Codes<'_>, at: Avma, time: Timestamp) -> Option<Owner> {
        match self {
            Self::Lasting(dump) => {
                loaded(codes.loads(*dump)?, at).filter(|claim| claim.from <= time)
            }
            Self::Ended(segments) => segments.at(at, time),
        }
    }

    /// The first claim that begins after `time`.
    fn after(&self, codes: &Codes<'_>, at: Avma, time: Timestamp) -> Option<Owner> {
        match self {
            Self::Lasting(dump) => {
                loaded(codes.loads(*dump)?, at).filter(|claim| claim.from > time)
            }
            Self::Ended(segments) => segments.after(at, time),
        }
    }

    /// Whether the address was ever covered.
    fn ever(&self, codes: &Codes<'_>, at: Avma) -> bool {
        match self {
            Self::Lasting(dump) => codes
                .loads(*dump)
                .and_then(|dump| loaded(dump, at))
                .is_some(),
            Self::Ended(segments) => segments.ever(at),
        }
    }

    /// The code of some claim that ever touched the range.
    fn touching(&self, codes: &Codes<'_>, range: AvmaRange) -> Option<JitCodeId> {
        match self {
            Self::Lasting(dump) => {
                let (dump, first) = codes.loads(*dump)?;
                let places = dump.places.as_ref()?;
                Some(places.touching(&dump.loads, range).next()?.code(first))
            }
            Self::Ended(segments) => segments.touching(range),
        }
    }
}

/// The only load of a dump at an address; the dump comes with its first code.
#[inline]
fn loaded((dump, first): (&DumpCodes<'_>, JitCodeId), at: Avma) -> Option<Owner> {
    let number = dump.places.as_ref()?.at(&dump.loads, at)?;
    let load = &dump.loads[number];
    Some(Owner {
        start: load.start,
        from: load.time,
        to: FOREVER,
        code: number.code(first),
    })
}

impl Claims {
    fn of(&self, process: ProcessId) -> Option<&ProcessClaims> {
        self.processes.get(process)?.as_deref()
    }

    /// Whether a process ever had code, its own or inherited.
    pub(super) fn has_any(&self, process: ProcessId) -> bool {
        self.of(process).is_some()
    }

    /// The claim in force at `time`, own or inherited.
    pub(super) fn at(
        &self,
        codes: &Codes<'_>,
        process: ProcessId,
        at: Avma,
        time: Timestamp,
    ) -> Option<Owner> {
        self.at_with_span(codes, process, at, time)
            .map(|(claim, _)| claim)
    }

    /// The same, and between which times the answer would be the same.
    pub(super) fn at_with_span(
        &self,
        codes: &Codes<'_>,
        process: ProcessId,
        at: Avma,
        time: Timestamp,
    ) -> Option<(Owner, (Timestamp, Timestamp))> {
        let own = self.of(process)?;
        let (mut holder, mut time) = (own, time);
        loop {
            if let Some(claim) = holder.claims.at(codes, at, time) {
                let is_own = std::ptr::eq(holder, own);
                // What was inherited may be hidden at other times.
                let until = if is_own { claim.to } else { claim.from };
                return Some((claim, (claim.from, until)));
            }
            let inherited = holder
                .inherited
                .filter(|inherited| time < inherited.until)?;
            if holder.ended.at(at, time).is_some() {
                return None;
            }
            time = time.min(inherited.at);
            holder = self.of(inherited.parent)?;
        }
    }

    /// The first claim after `time` that covers the address, before the process runs another program or maps other memory there.
    pub(super) fn after(
        &self,
        codes: &Codes<'_>,
        process: ProcessId,
        at: Avma,
        time: Timestamp,
    ) -> Option<Owner> {
        let process = self.of(process)?;
        let claim = process.claims.after(codes, at, time)?;
        let exec_between = process
            .execs
            .iter()
            .any(|&exec| time < exec && exec <= claim.from);
        let later = process.again.partition_point(|(again, _)| *again <= time);
        let mut between = process.again[later..]
            .iter()
            .take_while(|(again, _)| *again <= claim.from);
        let is_other = between.any(|(_, range)| range.contains(at));
        (!exec_between && !is_other).then_some(claim)
    }

    /// Whether any claim of the process ever covered the address.
    pub(super) fn ever(&self, codes: &Codes<'_>, process: ProcessId, at: Avma) -> bool {
        let mut process = self.of(process);
        while let Some(claims) = process {
            if claims.claims.ever(codes, at) {
                return true;
            }
            process = claims
                .inherited
                .and_then(|inherited| self.of(inherited.parent));
        }
        false
    }

    /// Whether any claim of the process itself ever touched the range, and what code it was.
    pub(super) fn touching(
        &self,
        codes: &Codes<'_>,
        process: ProcessId,
        range: AvmaRange,
    ) -> Option<JitCodeId> {
        self.of(process)?.claims.touching(codes, range)
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
