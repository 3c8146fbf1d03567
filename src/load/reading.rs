//! The stages, one after the other: reading, weights, stacks, symbols, the table.

use std::thread::Scope;

use super::LoadError;
use super::arena::Arena;
use super::clock::StageClock;
use super::companions::{companions, refuse_unfit, source_maps, story, tell_refused, wasm_code};
use super::known::Known;
use super::options::LoadOptions;
use super::roots;
use super::summary::{events_of, quality_of_events, summarise, warn_of_inference};
use super::switch::switched;
use super::times::{in_time, nothing_in_time};
use crate::check::{Stages, Weights};
use crate::collect::{self, Again, Collected, Learned, MapCache};
use crate::diagnostics::Diagnostics;
use crate::dso::{DsoTable, KernelLoader};
use crate::ids::{Idx, IndexVec, index_vec};
use crate::input::{Store, Window};
use crate::jit::JitBuilder;
use crate::metrics::position;
use crate::needs::Needs;
use crate::perfdata::attr::sample_type;
use crate::perfdata::{Event, EventId, FieldKey, NoField, OpenError, Recording};
use crate::profile::{self, Branched, Built, EventSummary, Facet, Material, Profile, Wait};
use crate::session::listing::{self, Listing};
use crate::session::marks::Asked;
use crate::session::{Filter, Samples, Session};
use crate::stitch::{self, Mended, Mending};
use crate::symbolize::{self, Answers, DebugStore};
use crate::unit::Unit;
use crate::weigh::{self, Interval, Spec, WeighError, Weighed};

/// Sees what the stages made before only the profile is left, if that is wanted. Without it what is not needed any more is given
/// back on the way.
pub(super) type Look<'l> = Option<&'l mut dyn FnMut(&Stages<'_, '_>, &mut Profile)>;

/// Goes through all stages, with what is `known` from other recordings whose files are in the same store.
pub(super) fn read_in<'a>(
    store: &'a Store,
    known: Option<&Known<'a>>,
    options: &LoadOptions,
    diag: &'a Diagnostics,
    mut look: Look<'_>,
) -> Result<Profile, LoadError> {
    refuse_unfit(&options.search, store)?;
    let options = &*in_time(options)?;
    let clock = StageClock::start();
    let recording = options.source.open(store, diag)?;
    check_cpus(&recording, options)?;
    let options = &*switched(&recording, options)?;
    let fields = fields(&recording, options)?;
    let run = |chosen: &LoadOptions, started, watch: &mut Look<'_>| {
        let reading = Reading {
            recording: &recording,
            store,
            known,
            options: chosen,
            needs: settled(chosen, &recording) | Needs::FIELDS.only_if(!fields.is_empty()),
            fields: fields.clone(),
            diag,
        };
        reading.run(started, watch)
    };
    let inferred = inferred(options, &recording);
    let mut made = run(inferred.as_ref().unwrap_or(options), clock, &mut look);
    if inferred.is_some() && matches!(made, Err(LoadError::Weight(_))) {
        // Nobody asked for what cannot be told.
        made = run(options, StageClock::start(), &mut look);
    }
    tell_refused(store, diag);
    made
}

/// The options with the weight that the recording's events are about, where no weight was asked for.
fn inferred(options: &LoadOptions, recording: &Recording<'_>) -> Option<LoadOptions> {
    let weight = &options.weight;
    let asks = !weight.spec.is_default() || !weight.infers;
    let (spec, text) = if asks { None } else { weigh::infer(recording) }?;
    let mut inferred = options.clone();
    inferred.weight.spec = spec;
    text.clone_into(&mut inferred.weight.text);
    Some(inferred)
}

/// Reads the recording's history alone, and lets `look` see it. Kernel symbols and files are read when they are asked for.
pub(super) fn history<T>(
    options: &LoadOptions,
    diag: &Diagnostics,
    look: impl FnOnce(&Store, &Recording<'_>, &Session<'_>, &Samples) -> T,
) -> Result<T, LoadError> {
    let arena = Arena::new();
    let store = arena.store();
    let recording = options.source.open(store, diag)?;
    check_cpus(&recording, options)?;
    recording.read_once();
    let (dsos, jit) = companions(&recording, store, options, diag);
    let window = Window::new(store, recording.region(), Window::BEHIND);
    let asked = Asked {
        filter: options.filter.clone(),
        marks: false,
        parallelism: false,
    };
    let window = window.shared_by(options.reading.threads);
    let (session, samples) =
        Session::index(&recording, &window, dsos, jit, &asked, diag, &mut || {});
    let seen = look(store, &recording, &session, &samples);
    session.dsos.report_missed(|_| false);
    tell_refused(store, diag);
    Ok(seen)
}

/// Hands out the lines of a listing, one by one.
pub(super) fn list(
    listing: Listing,
    options: &LoadOptions,
    diag: &Diagnostics,
    line: &mut impl FnMut(&str) -> std::io::Result<()>,
) -> Result<std::io::Result<()>, LoadError> {
    refuse_unfit(&options.search, &Store::new())?;
    let options = &*in_time(options)?;
    history(
        options,
        diag,
        |_, recording, session, recorded| match listing {
            Listing::Stats => {
                let mut samples: IndexVec<EventId, u64> = recorded
                    .rowless
                    .iter()
                    .map(|(samples, _)| *samples)
                    .collect();
                for sample in &recorded.all {
                    samples[sample.event] += 1;
                }
                let lines = listing::stats(&session.stats, &recording.events, &samples);
                lines.iter().try_for_each(|text| line(text))
            }
            Listing::Tasks => listing::tasks(session, false, line),
            Listing::Mmaps => listing::tasks(session, true, line),
        },
    )
}

/// The fields of tracepoints that rows are told by.
fn fields(recording: &Recording<'_>, options: &LoadOptions) -> Result<Vec<FieldKey>, NoField> {
    let (points, events) = (&recording.tracepoints, &recording.events);
    let raw = options.reading.raw_payloads;
    let is_default = raw && options.needs.contains(Needs::ONLY_PAYLOADS);
    if is_default && events.iter().all(|event| event.attr.is_tracepoint()) {
        points.field_keys(&["trace_fields".to_owned()], events, raw)
    } else {
        points.field_keys(&options.fields, events, raw)
    }
}

/// What the recording and the weights make of what is needed.
fn settled(options: &LoadOptions, recording: &Recording<'_>) -> Needs {
    let weight = &options.weight;
    let mut needs = options.needs - options.refused;
    // Without stacks it would not be known where the program begins.
    needs |= Needs::STACKS.only_if(weight.trims && weight.spec.trims());
    let mending = options.mending;
    let mends = mending.graft || mending.stitch;
    needs |= Needs::ROOTS.only_if(needs.contains(Needs::STACKS) && mends);
    let is_tracepoint = |event: &Event| event.attr.is_tracepoint();
    let (asked, by_default) = (Facet::Payload.needs(), Needs::ONLY_PAYLOADS);
    let has_payloads = needs.contains(asked) && recording.events.iter().any(is_tracepoint)
        || needs.contains(by_default)
            && weight.spec.keeps_events()
            && recording.events.iter().all(is_tracepoint);
    needs.set(asked, has_payloads);
    settled_rows(needs, recording, weight.spec.is_default())
}

/// What rows are: branches have no chains, and what nobody recorded is not asked for.
fn settled_rows(needs: Needs, recording: &Recording<'_>, weighs_periods: bool) -> Needs {
    let shows = recording.shows_branches() && weighs_periods;
    let are_branches = needs.contains(Needs::BRANCHES) && recording.has_branch_stacks()
        || needs.contains(Needs::BRANCHES_AS_RECORDED) && shows;
    let are_accesses = needs.contains(Needs::ACCESSES) && recording.has_data_sources();
    let rows = Needs::BRANCHES.only_if(are_branches) | Needs::ACCESSES.only_if(are_accesses);
    let needs = (needs - Needs::BRANCHES - Needs::ACCESSES) | rows;
    if are_branches {
        needs - Needs::CHAINS - Needs::RETURNS - Needs::ROOTS
    } else {
        needs - Facet::of_branches()
    }
}

/// Without CPU numbers no sample is of a chosen CPU.
fn check_cpus(recording: &Recording<'_>, options: &LoadOptions) -> Result<(), OpenError> {
    let without = |event: &&Event| !event.attr.has(sample_type::CPU);
    let is_asked = !options.filter.cpus.is_empty();
    match recording.events.iter().find(without) {
        Some(event) if is_asked => Err(OpenError::NoCpus {
            path: options.source.path().to_owned(),
            event: event.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// One recording on its way through the stages.
struct Reading<'s, 'a> {
    recording: &'s Recording<'a>,
    store: &'a Store,
    known: Option<&'s Known<'a>>,
    options: &'s LoadOptions,
    needs: Needs,
    fields: Vec<FieldKey>,
    diag: &'a Diagnostics,
}

/// What weights make of the samples, and what they could be made of.
struct Weighing {
    weighed: Weighed,
    waits: Vec<Interval>,
    weights: Weights,
    /// What headers say of spans, if these were asked for.
    spans: Option<String>,
}

/// The stacks, and what was put under those that were cut.
struct Stacks {
    collected: Collected,
    mended: Mended,
}

impl<'a> Reading<'_, 'a> {
    fn run(self, mut clock: StageClock, look: &mut Look<'_>) -> Result<Profile, LoadError> {
        let (mut dsos, jit) = companions(self.recording, self.store, self.options, self.diag);
        if let Some(known) = self.known {
            dsos.share(&known.kin);
        }
        // Kept until the threads that use it have ended.
        let kernel = dsos.kernel_loader();
        std::thread::scope(|scope| {
            let (session, recorded) = self.index(scope, &kernel, dsos, jit);
            // The pieces of a stream are still there.
            let is_known_again = self.needs.contains(Needs::DIGEST);
            let digest = is_known_again.then(|| self.recording.digest());
            clock.lap("reading");
            let (session, samples, weighing) = self.weigh(session, recorded)?;
            if samples.all.is_empty()
                && let Some(error) = nothing_in_time(self.options, session.seen)
            {
                return Err(error.into());
            }
            if self.is_weighed() {
                clock.lap("weights");
            }
            let history = (&session, &samples);
            let stacks = self.stacks(history);
            clock.lap("stacks");
            let diag = self.diag;
            let mut profile = self.profile(history, weighing, stacks, &mut clock, look.take());
            profile.recording.digest = digest;
            clock.lap("table");
            diag.note(clock.summary());
            Ok(profile)
        })
    }

    /// Whether samples weigh something else than their periods.
    fn is_weighed(&self) -> bool {
        !self.options.weight.spec.is_default()
    }

    /// The recording's history, while what it leads to is read beside it.
    fn index<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        kernel: &'scope KernelLoader<'a>,
        mut dsos: DsoTable<'a>,
        mut jit: JitBuilder<'a>,
    ) -> (Session<'a>, Samples)
    where
        'a: 'scope,
    {
        // Of several recordings each has a thread: what is read beside one takes it from another.
        let is_alone = self.known.is_none() || self.options.reading.threads > 1;
        let knows_times = dsos.knows_times();
        if is_alone {
            let (dumps, symbols) = (jit.early_reader(), dsos.preloader());
            scope.spawn(|| dumps.run());
            if knows_times {
                scope.spawn(|| symbols.run());
            }
        }
        // Kernel symbols take longer to read than a small recording: on their way as soon as one is needed.
        let mut start = is_alone.then_some(|| scope.spawn(|| kernel.load()));
        let window = Window::new(self.store, self.recording.region(), self.kept_behind());
        Session::index(
            self.recording,
            &window.shared_by(self.options.reading.threads),
            dsos,
            jit,
            &self.asked(),
            self.diag,
            &mut || {
                kernel.want();
                if let Some(start) = start.take() {
                    start();
                }
            },
        )
    }

    /// How much of the recording stays mapped behind where it is read.
    fn kept_behind(&self) -> usize {
        let is_read_again = collect::reads_records(self.needs) || self.pairs() || self.is_weighed();
        if is_read_again {
            return Window::BEHIND_FIRST;
        }
        self.recording.read_once();
        Window::BEHIND
    }

    /// Whether events are looked at together, so that none may be left out before.
    fn pairs(&self) -> bool {
        self.options.weight.spec.pairs() || self.options.spans.is_some()
    }

    /// What is kept of the history. Pairs are made of all samples, and filtered then.
    fn asked(&self) -> Asked {
        let weight = &self.options.weight;
        let pairs = self.pairs();
        Asked {
            filter: if pairs {
                Filter::default()
            } else {
                self.options.filter.clone()
            },
            marks: pairs || self.needs.contains(Needs::WAITS) || weight.tells_pairs,
            parallelism: self.needs.contains(Facet::Parallelism.needs()),
        }
    }

    /// The samples as they weigh, and the history with what their records tell of it.
    fn weigh(
        &self,
        mut session: Session<'a>,
        recorded: Samples,
    ) -> Result<(Session<'a>, Samples, Weighing), WeighError> {
        if self.needs.contains(Needs::STACKS) && session.has_return_probes {
            let returns = weigh::returns(self.source(&session), &recorded);
            session = session.with_returns(returns);
        }
        if self.needs.contains(Needs::STACKS) && collect::needs_sizes(&session) {
            let (history, reading) = ((&session, &recorded), self.options.reading);
            let sizes = collect::sizes(self.recording, self.store, history, reading);
            session = session.with_frame_sizes(sizes);
        }
        let source = self.source(&session);
        let waits = if self.needs.contains(Needs::WAITS) {
            weigh::waits(source, &recorded)
        } else {
            Vec::new()
        };
        let mut weights = Weights::of(self.recording, &session, &recorded);
        let options = &self.options.weight;
        if options.tells_pairs {
            weights.pairs = weigh::found_pairs(source, &recorded);
        }
        let filter = &self.options.filter;
        let spans = self.options.spans.as_ref();
        let spans = spans.map(|spans| weigh::between(source, &recorded, spans));
        let spans = spans.transpose()?;
        let (mut samples, weighed) = weigh::weigh(source, recorded, options, filter)?;
        if let Some(spans) = &spans {
            let kept = samples.only(|sample| {
                let cpu = u32::try_from(sample.cpu).ok();
                let is_left = options.spec.pairs() || filter.keeps_at(sample.time.0, cpu);
                is_left && spans.has(sample.thread, sample.time.0)
            });
            session.parallelism = session.parallelism.only(&kept);
            if samples.all.is_empty() {
                return Err(WeighError(format!("no sample is left: {}", spans.said)));
            }
        }
        let weighing = Weighing {
            weighed,
            waits,
            weights,
            spans: spans.map(|spans| spans.said),
        };
        Ok((session, samples, weighing))
    }

    fn source<'h>(&'h self, session: &'h Session<'a>) -> weigh::Source<'h, 'a> {
        weigh::Source {
            recording: self.recording,
            session,
            store: self.store,
            threads: self.options.reading.threads,
            diag: self.diag,
        }
    }

    fn stacks(&self, (session, samples): (&Session<'a>, &Samples)) -> Stacks {
        let learned = match self.known {
            Some(known) => Learned::lasting(known.unwinder(session)),
            None => Learned::default(),
        };
        let stitches = self.stitches(samples);
        let needs = self.needs | Needs::PATHS.only_if(stitches);
        let mut collected = collect::collect(
            self.recording,
            self.store,
            (session, samples),
            &learned,
            (needs, self.options.reading),
            &self.fields,
            self.diag,
        );
        let mended = self.mend(&mut collected, (session, samples), learned, stitches);
        if let latest @ 1.. = session.jit.latest() {
            let latest = latest as f64 / 1e6;
            self.diag.note(format!(
                "dumps tell of some code only after it ran, by up to {latest:.1} ms"
            ));
        }
        Stacks { collected, mended }
    }

    /// Whether stacks are completed from others, which have to be read again for it.
    fn stitches(&self, samples: &Samples) -> bool {
        let is_asked = self.needs.contains(Needs::STACKS) && self.options.mending.stitch;
        let positions = samples.all.iter().map(|sample| sample.pos);
        let is_possible = is_asked && self.recording.is_read_directly(positions);
        if is_asked && !is_possible {
            self.diag.warn(
                "stacks are not completed from others (--stitch): streams and compressed recordings \
                 cannot be read at any place; save or decompress the recording first"
                    .to_owned(),
            );
        }
        is_possible
    }

    /// Completes cut stacks as far as the view wants it.
    fn mend(
        &self,
        collected: &mut Collected,
        (session, samples): (&Session<'a>, &Samples),
        learned: Learned<'a>,
        stitch: bool,
    ) -> Mended {
        let cache = MapCache::default();
        let limit = self.options.reading.dump_limit;
        let again = Again::new(self.recording, (session, samples), &cache, learned, limit);
        let what = Mending {
            stitch,
            ..self.options.mending
        };
        let mended = stitch::mend(collected, session, &again, what);
        if let Some(known) = self.known {
            known.keep(session, again.into_unwinder());
        }
        if what.stitch {
            let refused = mended.refused.iter();
            let refused: Vec<String> = refused
                .map(|(why, count)| format!(", {count} not ({why})"))
                .collect();
            let done = format!("{} stacks completed from others", mended.stitched);
            self.diag.note(format!("{done}{}", refused.concat()));
        }
        mended
    }

    /// Names and lines for all addresses, and the table of them.
    fn profile(
        self,
        (session, samples): (&Session<'a>, &Samples),
        weighing: Weighing,
        stacks: Stacks,
        clock: &mut StageClock,
        look: Look<'_>,
    ) -> Profile {
        let Self {
            recording,
            store,
            known: shared,
            options,
            needs,
            fields,
            diag,
        } = self;
        let Stacks {
            mut collected,
            mended,
        } = stacks;
        profile::settle_calls(&mut collected, session);
        let maps = source_maps((recording, session), store, (options, needs), diag);
        let wasm = wasm_code(
            session,
            &collected,
            recording,
            store,
            (options, needs),
            diag,
        );
        let queries = profile::queries(&collected, &wasm, needs);
        let dsos = &session.dsos;
        let threads = options.reading.threads;
        let request = symbolize::Request {
            queries: &queries,
            names: options.names,
            needs,
            bare: &options.bare,
            threads,
        };
        // Who looks may want more of the same sections.
        let is_all = shared.is_none() && look.is_none();
        let resolution = if is_all {
            let unpacked = Store::new();
            let debug = DebugStore::apart(&unpacked);
            symbolize::resolve_with(&debug, request, dsos, &wasm)
        } else {
            let none = DebugStore::default();
            let debug = shared.map_or(&none, |shared| &shared.debug);
            symbolize::resolve_with(debug, request, dsos, &wasm)
        };
        clock.lap("symbols");
        let elsewhere = roots::of_other_roots(session, &collected, diag);
        let answers = Answers {
            queries: &queries,
            resolution: &resolution,
            wasm: &wasm,
            maps: &maps,
        };
        let known = quality_of_events(recording, &collected, &session.jit);
        let branches = std::mem::take(&mut collected.branches);
        let accesses = collected.accesses;
        let material = match &look {
            Some(_) => Material::Lent(&collected),
            None => Material::Spent(&mut collected),
        };
        let Built { mut profile, met } = profile::build(
            material,
            (session, samples),
            &recording.events,
            answers,
            options.names.names,
            needs,
            threads,
        );
        let Weighing {
            weighed,
            waits,
            weights,
            spans,
        } = weighing;
        if let Some(trim) = weighed.trim {
            profile.trim(trim);
        }
        profile.events = match weighed.event {
            Some(event) => index_vec![event.into()],
            None => self::events(recording, (session, samples), options),
        };
        let chosen: Vec<String> = options.time_said.iter().cloned().chain(spans).collect();
        for event in &mut profile.events {
            event.notes.extend(chosen.iter().cloned());
        }
        profile.waits = waits.into_iter().map(Wait::from).collect();
        profile.fields = fields;
        summarise(&mut profile, recording, (session, samples), known, options);
        let is_narrowed = options.filter.is_narrow() || options.spans.is_some();
        let story = story(recording, store, options);
        if let Some(story) = &story {
            profile.recording.status = story.status;
            profile.recording.asked.clone_from(&story.command);
            let used = story.used.filter(|_| !is_narrowed);
            profile.recording.used = used
                .map(|used| used.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
        }
        profile.recording.chosen = (!chosen.is_empty()).then(|| chosen.join("; "));
        for lost in &weighed.left_out {
            let path = options.source.path().display();
            diag.warn(format!("{path}: {lost}"));
        }
        profile.quality.weights = weighed.quality;
        profile.quality.weights.extend(weighed.left_out);
        profile.quality.stitch_error = mended.error;
        warn_of_inference(&profile.quality, diag);
        if needs.contains(Needs::BRANCHES) {
            profile.quality.weights.extend(words_of_branches(&branches));
            profile.branches = Some(branches);
        }
        profile.accesses = needs.contains(Needs::ACCESSES).then_some(accesses);
        let stages = Stages {
            recording,
            session,
            samples,
            judged: judged(&profile, options.event.as_deref()),
            collected: &collected,
            is_narrowed,
            story: story.as_ref(),
            trim: weigh::infer(recording).and_then(|(spec, _)| spec.trim()),
            met: &met,
            mended: &mended,
            answers,
            weights: &weights,
            wasm: &wasm,
            diag,
        };
        if let Some(look) = look {
            look(&stages, &mut profile);
        }
        dsos.report_missed(|id| elsewhere.contains(&id));
        profile
    }
}

/// What the line about quality says where rows are branches.
fn words_of_branches(branches: &Branched) -> Vec<String> {
    let mut words = vec!["branches, not time; --no-branch-stack shows samples".to_owned()];
    if branches.empty > 0 {
        words.push(format!("{} empty branch entries left out", branches.empty));
    }
    words
}

/// The events as they are weighed: a sample that weighs one is no nanosecond.
fn events(
    recording: &Recording<'_>,
    history: (&Session<'_>, &Samples),
    options: &LoadOptions,
) -> IndexVec<EventId, EventSummary> {
    let mut events = events_of(recording, history);
    if options.weight.spec == Spec::Samples {
        for event in &mut events {
            event.unit = Unit::Count;
            event.counted = Some("samples");
        }
    }
    events
}

/// The event that evidence is about, where several have samples.
fn judged(profile: &Profile, wanted: Option<&str>) -> Option<EventId> {
    let events = profile.events.iter_enumerated();
    let mut sampled = events.filter(|(_, event)| event.samples > 0);
    sampled.nth(1)?;
    let names = || profile.events.iter().map(|event| event.name.as_str());
    let wanted = wanted.and_then(|name| position(names(), name));
    let wanted = wanted.map(EventId::from_usize);
    Some(wanted.unwrap_or_else(|| profile.main_event()))
}
