//! Threads of the file: whose samples and markers go where.
//!
//! In: samples and waits of a profile. Out: tracks with the numbers of their stacks, which are entered in the shared tables on
//! the way. A track is a thread's life or, where CPUs were asked for, a CPU; no sample is in two.

use rustc_hash::FxHashMap;

use super::super::strings::TextId;
use super::super::text::{harmless, harmless_payload};
use super::FirefoxOptions;
use super::shared::{Places, Shared, Stack};
use crate::profile::{EventId, Profile, Sample, ThreadId, Wait};

/// Whose track it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Owner {
    Thread(ThreadId),
    /// Nothing where it is not known.
    Cpu(Option<u32>),
    /// Of phases, spells and gaps.
    When,
}

/// One sample of the event that is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) time: u64,
    pub(super) stack: Stack,
    pub(super) period: u64,
    /// Whether it was the idle task that ran.
    pub(super) is_idle: bool,
}

/// Something that happened, or lasted.
#[derive(Clone, Debug)]
pub(super) struct Marker {
    pub(super) from: u64,
    /// Nothing for what has no length.
    pub(super) to: Option<u64>,
    /// Number of its text.
    pub(super) name: TextId,
    pub(super) what: What,
}

/// What a marker tells.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A sample of another event.
    Event {
        period: u64,
        payload: Option<String>,
        stack: Stack,
    },
    /// A time off the processor.
    OffCpu {
        state: &'static str,
        payload: Option<String>,
        stack: Option<Stack>,
        /// What is said of its end, where that was not recorded.
        until: Option<&'static str>,
    },
    /// A thread got another comm.
    Renamed(String),
    /// A phase, a spell or a gap.
    When { thread: String, function: String },
}

/// A thread of the file.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) owner: Owner,
    pub(super) hits: Vec<Hit>,
    pub(super) markers: Vec<Marker>,
    /// Sum of the periods of its hits.
    pub(super) weight: u64,
}

impl Track {
    /// Gives stacks and texts the numbers that they have in the file.
    pub(super) fn arrange(&mut self, places: &Places) {
        let place = |stack: &mut Stack| *stack = places.stack(*stack);
        self.hits.iter_mut().for_each(|hit| place(&mut hit.stack));
        for marker in &mut self.markers {
            marker.name = places.text(marker.name);
            match &mut marker.what {
                What::Event { stack, .. } => place(stack),
                What::OffCpu { stack, .. } => stack.iter_mut().for_each(place),
                What::Renamed(_) | What::When { .. } => {}
            }
        }
    }
}

/// Shares everything out.
pub(super) fn tracks(
    profile: &Profile,
    options: FirefoxOptions,
    shared: &mut Shared<'_>,
) -> Vec<Track> {
    let mut sorter = Sorter {
        profile,
        options,
        shared,
        tracks: Vec::new(),
        known: FxHashMap::default(),
        roots: FxHashMap::default(),
        waits: waits_by_start(profile, options),
    };
    for (rank, sample) in profile.samples.iter().enumerate() {
        sorter.sample(sample, sample.time.unwrap_or(rank as u64));
    }
    if !options.per_cpu {
        sorter.waits_without_sample();
        sorter.renamed();
    }
    let mut tracks = sorter.tracks;
    if options.per_cpu {
        tracks.sort_by_key(|track| match track.owner {
            Owner::Cpu(Some(cpu)) => cpu,
            _ => u32::MAX,
        })
    } else {
        tracks.sort_by_key(|track| match track.owner {
            Owner::Thread(thread) => (profile[thread].pid, thread.0),
            Owner::Cpu(_) | Owner::When => (u32::MAX, 0),
        })
    }
    for track in &mut tracks {
        track.markers.sort_by_key(|marker| marker.from);
    }
    tracks
}

/// By thread and beginning; on CPUs there is nobody who waits.
fn waits_by_start(profile: &Profile, options: FirefoxOptions) -> FxHashMap<(ThreadId, u64), Wait> {
    let waits = profile.waits.iter().filter(|_| !options.per_cpu);
    waits
        .map(|wait| ((wait.thread, wait.from), *wait))
        .collect()
}

struct Sorter<'s, 'p> {
    profile: &'s Profile,
    options: FirefoxOptions,
    shared: &'s mut Shared<'p>,
    tracks: Vec<Track>,
    known: FxHashMap<Owner, usize>,
    /// By thread: what stands below its stacks on CPUs.
    roots: FxHashMap<ThreadId, Stack>,
    waits: FxHashMap<(ThreadId, u64), Wait>,
}

impl Sorter<'_, '_> {
    fn track(&mut self, owner: Owner) -> &mut Track {
        let at = *self.known.entry(owner).or_insert_with(|| {
            self.tracks.push(Track {
                owner,
                hits: Vec::new(),
                markers: Vec::new(),
                weight: 0,
            });
            self.tracks.len() - 1
        });
        &mut self.tracks[at]
    }

    fn sample(&mut self, sample: &Sample, time: u64) {
        let (owner, root) = if self.options.per_cpu {
            (Owner::Cpu(sample.cpu), Some(self.root(sample.thread)))
        } else {
            (Owner::Thread(sample.thread), None)
        };
        let stack = self.shared.stack(root, sample.stack, sample.leaf);
        let wait = self
            .is_switch(sample.event)
            .then(|| self.waits.remove(&(sample.thread, time)))
            .flatten();
        if let Some(wait) = wait {
            let payload = self.payload(sample);
            self.off_cpu(wait, payload, Some(stack));
        }
        if sample.event == self.options.event {
            let is_idle = self.profile[sample.thread].tid == 0;
            let track = self.track(owner);
            track.weight = track.weight.saturating_add(sample.period);
            track.hits.push(Hit {
                time,
                stack,
                period: sample.period,
                is_idle,
            });
        } else if wait.is_none() {
            let what = What::Event {
                period: sample.period,
                payload: self.payload(sample),
                stack,
            };
            let name = harmless(&self.profile[sample.event].name);
            let name = self.shared.strings.id(&name);
            self.track(owner).markers.push(Marker {
                from: time,
                to: None,
                name,
                what,
            });
        }
    }

    fn root(&mut self, thread: ThreadId) -> Stack {
        if let Some(&known) = self.roots.get(&thread) {
            return known;
        }
        let of = &self.profile[thread];
        let (comm, tid) = (harmless(&self.profile[of.comm]), of.tid.cast_signed());
        let root = self.shared.root(&format!("{comm} ({tid})"));
        self.roots.insert(thread, root);
        root
    }

    fn is_switch(&self, event: EventId) -> bool {
        let event = &self.profile[event];
        event.is_tracepoint && event.name.starts_with("sched:sched_switch")
    }

    fn payload(&self, sample: &Sample) -> Option<String> {
        let payload = self.profile.facets.payload(sample.facets);
        payload.map(|text| harmless_payload(text).into_owned())
    }

    fn off_cpu(&mut self, wait: Wait, payload: Option<String>, stack: Option<Stack>) {
        let end = self
            .profile
            .recording
            .time_range
            .map_or(wait.from, |(_, last)| last);
        let marker = Marker {
            from: wait.from,
            to: Some(wait.to.unwrap_or(end).max(wait.from)),
            name: self.shared.strings.id("off CPU"),
            what: What::OffCpu {
                state: wait.state.name(),
                payload,
                stack,
                until: match wait.to {
                    None => Some("until the end of the recording"),
                    Some(_) => wait.is_bound.then_some("at most until its next switch"),
                },
            },
        };
        self.track(Owner::Thread(wait.thread)).markers.push(marker);
    }

    /// Switches that were recorded without a sample have no stack. Of threads that no sample is of nothing is shown.
    fn waits_without_sample(&mut self) {
        for wait in &self.profile.waits {
            let is_left = self.waits.contains_key(&(wait.thread, wait.from));
            if is_left && self.known.contains_key(&Owner::Thread(wait.thread)) {
                self.off_cpu(*wait, None, None);
            }
        }
    }

    fn renamed(&mut self) {
        let name = self.shared.strings.id("renamed");
        for track in &mut self.tracks {
            let Owner::Thread(thread) = track.owner else {
                continue;
            };
            for &(from, comm) in self.profile[thread].comms.iter().skip(1) {
                let what = What::Renamed(harmless(&self.profile[comm]).into_owned());
                track.markers.push(Marker {
                    from,
                    to: None,
                    name,
                    what,
                });
            }
        }
    }
}
