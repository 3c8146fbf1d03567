//! Options of `perf record`: what is asked for, and what is asked for where nothing is said.

use super::probes::{Alloc, Probes};
use super::{Facts, Target};

/// The largest copy of a stack that the kernel makes.
pub const LARGEST_STACK: u32 = 65_528;
/// The same where many processors fill their rings at once.
const STACK_OF_MANY: u32 = 32_768;
/// From so many processors on.
const MANY_CPUS: u64 = 8;
/// A ring holds at least so many samples.
const SAMPLES_IN_RING: u64 = 16;
/// Milliseconds for which a ring holds samples: so long perf may have to wait for a processor or a disk, and loses nothing.
const HELD: u64 = 64;
/// The lowest rate that is chosen, in samples a second.
const LEAST_RATE: u64 = 99;
/// Bytes of ring that hold them at any rate that was measured.
pub const RING: u64 = 16 << 20;
/// The smallest ring that is tried.
pub const LEAST_RING: u64 = 128 << 10;
/// A thread leaves a processor.
const SWITCHES: &str = "sched:sched_switch";
/// Switches are many, and stacks in the kernel are not copied.
const STACK_OF_SWITCHES: u32 = 4096;
/// Calls of an allocator come in bursts, and callers are near.
const RING_OF_CALLS: u64 = 64 << 20;
const STACK_OF_CALLS: u32 = 2048;
/// What rates are made of; apart, each with a period of its own.
const COUNTERS: [&str; 2] = ["cycles/period=1000003/", "instructions/period=1000003/"];
/// Samples a second.
pub const FREQUENCY: u64 = 999;

/// How stacks are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallGraph {
    /// A copy of so many bytes.
    Dwarf(u32),
    /// In perf's words.
    Other(String),
}

/// What perf is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-e`, none for perf's own choice.
    pub events: Vec<String>,
    /// `-F`
    pub frequency: Option<u64>,
    /// Whether that was the user's word.
    pub is_rate_given: bool,
    /// `-c`
    pub period: Option<u64>,
    /// `--call-graph`
    pub call_graph: CallGraph,
    /// `-m` in bytes, for each processor.
    pub ring: u64,
    /// Whether the size of the ring was the user's word.
    pub is_ring_given: bool,
    /// `-k mono`, the clock of dumps.
    pub clock: bool,
    /// `-z`
    pub compressed: bool,
    /// `--buildid-mmap`
    pub build_ids: bool,
    /// Without the kernel.
    pub user_only: bool,
    /// Probes on an allocator.
    pub probes: Option<Probes>,
    /// Any other options, in the user's words.
    pub more: Vec<String>,
}

/// What the user asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `-e`
    pub events: Vec<String>,
    /// `-F`
    pub frequency: Option<u64>,
    /// `-c`
    pub period: Option<u64>,
    /// `--call-graph`, `-g`
    pub call_graph: Option<CallGraph>,
    /// `-m` in bytes.
    pub ring: Option<u64>,
    /// `--no-z`
    pub uncompressed: bool,
    /// `--offcpu`: every switch of a thread, and a clock.
    pub off_cpu: bool,
    /// `--alloc`: calls of an allocator.
    pub alloc: Option<Alloc>,
    /// `--metrics`: counters of the processor, each sampled by itself.
    pub metrics: bool,
    /// `--perf`
    pub more: Vec<String>,
}

impl Asked {
    /// The same, but for what is asked for anew.
    #[must_use]
    pub fn with(mut self, own: Self) -> Self {
        if own.frequency.is_some() || own.period.is_some() {
            (self.frequency, self.period) = (own.frequency, own.period);
        }
        if !own.events.is_empty() {
            self.events = own.events;
        }
        Self {
            call_graph: own.call_graph.or(self.call_graph),
            ring: own.ring.or(self.ring),
            uncompressed: own.uncompressed || self.uncompressed,
            off_cpu: own.off_cpu || self.off_cpu,
            alloc: own.alloc.or(self.alloc),
            metrics: own.metrics || self.metrics,
            more: [self.more, own.more].concat(),
            ..self
        }
    }
}

impl Options {
    /// What is recorded where nothing else is asked for, as far as settings let it.
    #[must_use]
    pub fn of(asked: &Asked, target: &Target, facts: &Facts) -> Self {
        let wanted = if asked.alloc.is_some() {
            RING_OF_CALLS
        } else {
            RING
        };
        let ring = asked.ring.unwrap_or_else(|| largest_ring(wanted, facts));
        let is_machine = *target == Target::Machine;
        let stack = if is_machine || facts.cpus > MANY_CPUS {
            STACK_OF_MANY
        } else {
            LARGEST_STACK
        };
        let call_graph = asked.call_graph.clone().unwrap_or({
            CallGraph::Dwarf(if asked.off_cpu {
                STACK_OF_SWITCHES
            } else if asked.alloc.is_some() {
                STACK_OF_CALLS
            } else {
                stack_for(stack, ring)
            })
        });
        let rate = |hertz: u64| facts.max_rate.map_or(hertz, |most| hertz.min(most.max(1)));
        let default = FREQUENCY.min(rate_for(&call_graph, ring));
        let mut frequency = match (asked.frequency, asked.period) {
            (None, Some(_)) => None,
            (asked, _) => Some(rate(asked.unwrap_or(default))),
        };
        let (mut events, mut more) = (asked.events.clone(), asked.more.clone());
        if asked.off_cpu {
            // The rate belongs to the clock alone: with -F switches would be sampled, too.
            let hertz = frequency.take().unwrap_or(FREQUENCY);
            events.extend([SWITCHES.to_owned(), format!("cpu-clock/freq={hertz}/")]);
            more.insert(0, "--switch-events".to_owned());
        }
        // With -F perf samples all events by frequency, those too that have a period of their own, and switches.
        let has_rate = |event: &String| event.contains("freq=") || event.contains("period=");
        if asked.frequency.is_none() && events.iter().any(has_rate) {
            frequency = None;
        }
        if asked.metrics {
            events.extend(COUNTERS.map(str::to_owned));
        }
        if asked.metrics || asked.alloc.is_some() {
            // Each event has its period, and a probe is recorded each time.
            frequency = None;
        }
        Self {
            events,
            frequency,
            is_rate_given: asked.frequency.is_some(),
            period: asked.period,
            call_graph,
            ring,
            is_ring_given: asked.ring.is_some(),
            clock: true,
            compressed: !asked.uncompressed,
            build_ids: true,
            user_only: false,
            probes: None,
            more,
        }
    }

    /// Whether there are tracepoints among the events, which take more rights.
    #[must_use]
    pub fn has_tracepoints(&self) -> bool {
        let has_switches = self.events.iter().any(|event| event.starts_with(SWITCHES));
        has_switches || self.probes.is_some()
    }

    /// Whether counters of the processor are among them, which nothing replaces.
    #[must_use]
    pub fn has_counters(&self) -> bool {
        COUNTERS
            .iter()
            .all(|&counter| self.events.iter().any(|event| event == counter))
    }

    /// The same with probes on an allocator.
    #[must_use]
    pub fn with_probes(self, probes: Probes, asked: &Asked) -> Self {
        let call_graph = match &asked.call_graph {
            None if probes.frame_pointers => CallGraph::Other("fp".to_owned()),
            _ => self.call_graph,
        };
        Self {
            call_graph,
            probes: Some(probes),
            ..self
        }
    }

    /// The words, without the file and the target.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(hertz) = self.frequency {
            option("-F", hertz.to_string());
        }
        if let Some(period) = self.period {
            option("-c", period.to_string());
        }
        for event in self.shown_events() {
            option("-e", event);
        }
        let probes = self.probes.iter().flat_map(Probes::words);
        words.extend(probes);
        let mut setting = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if self.clock {
            setting("-k", "mono".to_owned());
        }
        setting(
            "--call-graph",
            match &self.call_graph {
                CallGraph::Dwarf(bytes) => format!("dwarf,{bytes}"),
                CallGraph::Other(word) => word.clone(),
            },
        );
        setting("-m", size(self.ring));
        if self.compressed {
            words.push("-z".to_owned());
        }
        if self.build_ids {
            words.push("--buildid-mmap".to_owned());
        }
        words.extend(self.more.iter().cloned());
        words
    }

    fn shown_events(&self) -> Vec<String> {
        if !self.user_only {
            return self.events.clone();
        }
        if self.events.is_empty() {
            return vec!["cycles:u".to_owned()];
        }
        self.events.iter().map(|event| user_only(event)).collect()
    }

    /// Whether fewer samples are taken than elsewhere, for the ring holds no more.
    #[must_use]
    pub fn is_slowed(&self) -> bool {
        let most = rate_for(&self.call_graph, self.ring);
        !self.is_rate_given && most < FREQUENCY && self.frequency.is_some_and(|hertz| hertz <= most)
    }

    /// A smaller ring, and stacks and a rate of which it holds enough; none below the smallest.
    #[must_use]
    pub fn with_less_ring(&self) -> Option<Self> {
        let ring = match self.ring {
            ring if ring > RING => RING,
            ring if ring > 512 << 10 => 512 << 10,
            ring if ring > LEAST_RING => LEAST_RING,
            _ => return None,
        };
        let call_graph = match self.call_graph {
            CallGraph::Dwarf(bytes) => CallGraph::Dwarf(stack_for(bytes, ring)),
            CallGraph::Other(ref word) => CallGraph::Other(word.clone()),
        };
        let most = rate_for(&call_graph, ring);
        let slowed = self.frequency.map(|hertz| hertz.min(most));
        Some(Self {
            ring,
            frequency: if self.is_rate_given {
                self.frequency
            } else {
                slowed
            },
            call_graph,
            ..self.clone()
        })
    }
}

/// The event with perf's modifier for user space.
fn user_only(event: &str) -> String {
    match event.rsplit_once([':', '/']) {
        _ if event.ends_with('/') => format!("{event}u"),
        // A tracepoint has a colon in its name, and no modifiers.
        Some((front, modifiers))
            if !front.is_empty() && modifiers.chars().all(|c| "kuhpPGHSDIWeb".contains(c)) =>
        {
            if modifiers.contains('u') && !modifiers.contains('k') {
                event.to_owned()
            } else {
                let rest = modifiers.replace(['k', 'h'], "");
                format!("{front}:u{rest}")
            }
        }
        Some(_) => event.to_owned(),
        None => format!("{event}:u"),
    }
}

/// The copy of stacks for a ring. A small one gets half of the largest, which is enough for nearly all programs, before its rate
/// becomes lower; cut stacks are worse than fewer samples.
fn stack_for(wanted: u32, ring: u64) -> u32 {
    let holds_all = rate_for(&CallGraph::Dwarf(wanted), ring) >= FREQUENCY;
    let most = if holds_all { wanted } else { STACK_OF_MANY };
    let fits = ring / SAMPLES_IN_RING / 8 * 8;
    wanted
        .min(most)
        .min(u32::try_from(fits).unwrap_or(LARGEST_STACK))
}

/// Samples a second of which a ring holds those of [`HELD`] milliseconds. Chains of frame pointers are small.
fn rate_for(call_graph: &CallGraph, ring: u64) -> u64 {
    let CallGraph::Dwarf(stack) = *call_graph else {
        return u64::MAX;
    };
    let samples = ring / u64::from(stack.max(1));
    // One less than a round number, which keeps time with nothing that runs.
    let hertz = samples.saturating_mul(1000) / HELD;
    hertz.saturating_sub(1).max(LEAST_RATE)
}

/// The largest ring that this user may have; a power of two.
fn largest_ring(wanted: u64, facts: &Facts) -> u64 {
    /// The kernel counts the page in front of the ring, too.
    const FRONT: u64 = 4096;
    let is_free = facts.locks_freely || facts.paranoid.is_some_and(|paranoid| paranoid < 0);
    let (Some(kilobytes), Some(memlock), false) = (facts.mlock_kb, facts.memlock, is_free) else {
        return wanted;
    };
    let most = (kilobytes << 10)
        .saturating_add(memlock / facts.cpus.max(1))
        .saturating_sub(FRONT);
    let fits = most.checked_ilog2().map_or(0, |log| 1u64 << log);
    fits.clamp(LEAST_RING, wanted)
}

/// Bytes as perf takes them.
#[must_use]
pub fn size(bytes: u64) -> String {
    const MEGA: u64 = 1 << 20;
    const KILO: u64 = 1 << 10;
    match bytes {
        _ if bytes >= MEGA && bytes.is_multiple_of(MEGA) => format!("{}M", bytes / MEGA),
        _ if bytes.is_multiple_of(KILO) => format!("{}K", bytes / KILO),
        _ => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Target {
        Target::Command(vec!["true".into()])
    }

    fn root() -> Facts {
        Facts {
            is_root: true,
            locks_freely: true,
            cpus: 2,
            ..Facts::default()
        }
    }

    fn line(asked: &Asked, target: &Target, facts: &Facts) -> String {
        Options::of(asked, target, facts).words().join(" ")
    }

    #[test]
    fn defaults() {
        let asked = Asked::default();
        assert_eq!(
            line(&asked, &command(), &root()),
            "-F 999 -k mono --call-graph dwarf,65528 -m 16M -z --buildid-mmap"
        );
        assert_eq!(
            line(&asked, &Target::Machine, &root()),
            "-F 999 -k mono --call-graph dwarf,32768 -m 16M -z --buildid-mmap"
        );
        let large = Facts {
            cpus: 64,
            max_rate: Some(500),
            ..root()
        };
        assert_eq!(
            line(&asked, &command(), &large),
            "-F 500 -k mono --call-graph dwarf,32768 -m 16M -z --buildid-mmap"
        );
    }

    fn user(memlock: u64, cpus: u64) -> Facts {
        Facts {
            mlock_kb: Some(516),
            memlock: Some(memlock),
            paranoid: Some(2),
            cpus,
            ..Facts::default()
        }
    }

    /// The ring, the rate and the bytes of a stack.
    fn sizes(options: &Options) -> (u64, u64, u32) {
        let CallGraph::Dwarf(stack) = options.call_graph else {
            panic!("copies of stacks")
        };
        (options.ring, options.frequency.expect("a rate"), stack)
    }

    #[test]
    fn a_small_ring_holds_the_samples_of_a_while() {
        let made = |facts: &Facts| sizes(&Options::of(&Asked::default(), &command(), facts));
        assert_eq!(made(&user(8 << 20, 2)), (4 << 20, 999, 65_528));
        assert_eq!(made(&user(8 << 20, 4)), (2 << 20, 999, 32_768));
        assert_eq!(made(&user(8 << 20, 8)), (1 << 20, 499, 32_768));
        assert_eq!(made(&user(8 << 20, 64)), (512 << 10, 249, 32_768));
        assert_eq!(made(&user(0, 2)), (512 << 10, 249, 32_768));
        let slow = Facts {
            max_rate: Some(100),
            ..user(0, 2)
        };
        assert_eq!(made(&slow), (512 << 10, 100, 32_768));
        let none = Facts {
            memlock: None,
            ..user(0, 2)
        };
        assert_eq!(made(&none), (16 << 20, 999, 65_528));
        // Root of a container has what users have.
        let inside = Facts {
            is_root: true,
            ..user(8 << 20, 2)
        };
        assert_eq!(made(&inside), (4 << 20, 999, 65_528));
    }

    #[test]
    fn less_of_a_ring_has_fewer_samples_and_smaller_stacks() {
        let of = |asked: &Asked| Options::of(asked, &command(), &user(0, 2));
        let large = Options::of(&Asked::default(), &command(), &root());
        let less = large.with_less_ring().expect("there is a smaller one");
        assert_eq!(sizes(&less), (512 << 10, 249, 32_768));
        assert!(less.is_slowed() && !large.is_slowed());
        let least = less.with_less_ring().expect("there is a smaller one");
        assert_eq!(sizes(&least), (LEAST_RING, 249, 8192));
        assert_eq!(least.with_less_ring(), None);
        // What the user said stays.
        let given = of(&Asked {
            frequency: Some(1999),
            ..Asked::default()
        });
        assert_eq!(sizes(&given), (512 << 10, 1999, 32_768));
        assert!(!given.is_slowed());
        let less = given.with_less_ring().expect("there is a smaller one");
        assert_eq!(less.frequency, Some(1999));
        let given = of(&Asked {
            call_graph: Some(CallGraph::Dwarf(65_528)),
            ..Asked::default()
        });
        assert_eq!(sizes(&given), (512 << 10, 124, 65_528));
        let chains = of(&Asked {
            call_graph: Some(CallGraph::Other("fp".to_owned())),
            ..Asked::default()
        });
        assert_eq!(chains.frequency, Some(FREQUENCY));
    }

    #[test]
    fn what_is_asked_for_is_taken() {
        let asked = Asked {
            events: vec!["cycles:pp".to_owned(), "sched:sched_switch".to_owned()],
            period: Some(1000),
            call_graph: Some(CallGraph::Other("fp".to_owned())),
            ring: Some(1 << 20),
            uncompressed: true,
            more: vec!["--switch-events".to_owned()],
            ..Asked::default()
        };
        let mut options = Options::of(&asked, &command(), &root());
        assert_eq!(
            options.words().join(" "),
            "-c 1000 -e cycles:pp -e sched:sched_switch -k mono --call-graph fp -m 1M --buildid-mmap --switch-events"
        );
        options.user_only = true;
        let line = options.words().join(" ");
        assert!(
            line.contains("-e cycles:upp -e sched:sched_switch"),
            "{line}"
        );
    }

    #[test]
    fn what_is_asked_for_anew_wins() {
        let before = Asked {
            events: vec!["cycles".to_owned()],
            frequency: Some(99),
            ring: Some(1 << 20),
            ..Asked::default()
        };
        let anew = Asked {
            period: Some(7),
            uncompressed: true,
            ..Asked::default()
        };
        assert_eq!(
            before.clone().with(anew),
            Asked {
                frequency: None,
                period: Some(7),
                uncompressed: true,
                ..before
            }
        );
    }

    #[test]
    fn events_of_user_space() {
        for (event, wanted) in [
            ("cycles", "cycles:u"),
            ("cycles:u", "cycles:u"),
            ("cycles:kpp", "cycles:upp"),
            ("cpu/cycles,period=1/", "cpu/cycles,period=1/u"),
            ("sched:sched_switch", "sched:sched_switch"),
        ] {
            assert_eq!(user_only(event), wanted);
        }
    }

    #[test]
    fn sizes_as_perf_reads_them() {
        for (bytes, word) in [
            (16 << 20, "16M"),
            (512 << 10, "512K"),
            (1 << 10, "1K"),
            (12, "12B"),
        ] {
            assert_eq!(size(bytes), word);
        }
    }
}
