//! What the first lines of every answer say of a recording.

use std::collections::{BTreeMap, BTreeSet};

use super::idle::Idle;
use crate::check::{Level, Verdict};
use crate::functions::tally::{Tally, of_event};
use crate::profile::{
    CommId, EventId, EventSummary, Part, Predictions, Profile, Ring, Sampling, Thread,
};
use crate::stack_end::{ByEnd, StackEnd};
use crate::unit::Unit;

/// How weights came about, which says what chance has to do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Made {
    /// Samples stand for what was not sampled.
    #[default]
    Sampled,
    /// Each thing was recorded, with its time or as one: how many there are in a run, and how long ones, is chance.
    Each,
    /// Each thing was recorded with its size: nothing is left to chance but what the program does.
    Whole,
}

impl Made {
    fn of(event: &EventSummary) -> Self {
        let is_extrapolated = event
            .notes
            .iter()
            .any(|note| note.starts_with("Counted 1 in"));
        let is_each = event.is_whole || event.sampling == Sampling::Every(1);
        match (event.counted, event.unit) {
            (Some(_), Unit::Bytes | Unit::ByteSeconds | Unit::Blocks) if is_extrapolated => {
                Self::Sampled
            }
            (Some(_), Unit::Bytes | Unit::ByteSeconds | Unit::Blocks) => Self::Whole,
            (Some("intervals" | "calls"), _) => Self::Each,
            (None, Unit::Count) if is_each => Self::Each,
            _ => Self::Sampled,
        }
    }
}

/// A recording in a few words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// As it was named.
    pub path: String,
    /// Name of the process with most weight.
    pub program: String,
    /// What an interpreter was started with, if a command line tells.
    pub script: Option<String>,
    /// Its pid.
    pub pid: u32,
    /// Processes with samples.
    pub processes: usize,
    /// Threads with samples.
    pub threads: usize,
    /// From the first to the last sample, or what was chosen of that.
    pub wall_ns: Option<u64>,
    /// What was chosen of its time, if that is to be said.
    pub chosen: Option<String>,
    /// Time of the first sample.
    pub start_ns: Option<u64>,
    /// The recordings that were added up, where these are several.
    pub parts: Vec<Part>,
    /// The event that is counted.
    pub event: String,
    /// Whether its periods are nanoseconds of CPU.
    pub is_clock: bool,
    /// Which code it counts.
    pub ring: Ring,
    /// Whether it stands for CPU: clocks and cycles.
    pub is_cpu: bool,
    /// Whether its periods are nanoseconds off the processors.
    pub is_off_cpu: bool,
    /// What of it was left out because it was the idle task's.
    pub idle: Idle,
    /// What weights that were asked for are, and what has them; nothing where samples weigh what was recorded.
    pub weighed: Option<(Unit, &'static str)>,
    /// How its weights came about.
    pub made: Made,
    /// Whether it is a tracepoint.
    pub is_tracepoint: bool,
    /// Other events with samples, and how many these are.
    pub other_events: Vec<(String, u64)>,
    /// How callers were recorded, for most of what was.
    pub stacks: Option<String>,
    /// How well branches before samples were predicted, if that was asked for.
    pub predictions: Predictions,
    /// Samples that the kernel could not write.
    pub lost: u64,
    /// Whether the recorder was killed: what came then is missing, and nothing tells how much.
    pub is_unfinished: bool,
    /// How the recorded command ended, where `pjit record` tells.
    pub status: Option<u8>,
    /// Nanoseconds of what the event counts that the command used, by the kernel's own count.
    pub used_ns: Option<u64>,
    /// What `check` says against it.
    pub findings: Vec<Trouble>,
    /// Whether it is fit for conclusions.
    pub is_fit: bool,
    /// Command line of the recorder, as the header has it.
    pub command: Option<String>,
    /// Architecture, as the header has it.
    pub arch: Option<String>,
    /// Model of the processor.
    pub cpu: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
}

/// Something that speaks against a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Whether it makes the recording unfit.
    pub is_failure: bool,
    /// Its word in `check`'s table.
    pub code: &'static str,
    /// What was found.
    pub text: String,
}

/// What a command used of what an event counts.
fn used([user, system]: [u64; 2], event: &EventSummary) -> Option<u64> {
    match event.ring {
        _ if !event.is_cpu_time() => None,
        Ring::All => user.checked_add(system),
        Ring::User => Some(user),
        Ring::Kernel => None,
    }
}

impl Facts {
    /// How much the command used, where `check` found that much of it has no samples.
    #[must_use]
    pub fn used_unseen(&self) -> Option<u64> {
        let is_found = |trouble: &Trouble| trouble.code == "samples.unseen";
        self.used_ns.filter(|_| self.findings.iter().any(is_found))
    }

    /// Of a profile, and what `check` found.
    #[must_use]
    pub fn of(profile: &Profile, tally: &Tally, verdict: Option<&Verdict>) -> Self {
        let told = |field| profile.recording.told(field).map(str::to_owned);
        let parts = &profile.recording.parts;
        let parts = if parts.len() > 1 {
            parts.clone()
        } else {
            Vec::new()
        };
        // Of several recordings the program is told by its name, as ids of two have nothing in common.
        let key_of = |thread: &Thread| match parts.as_slice() {
            [] => (thread.process, CommId(0)),
            _ => (0, thread.program),
        };
        let mut weights: BTreeMap<(u32, CommId), u64> = BTreeMap::new();
        let mut threads = BTreeSet::new();
        for entry in of_event(profile, tally.event) {
            let weight = weights.entry(key_of(&profile[entry.thread])).or_default();
            *weight = weight.saturating_add(entry.period);
            threads.insert(entry.thread);
        }
        let processes = threads.iter().flat_map(|id| profile[*id].processes());
        let processes = processes.collect::<BTreeSet<_>>().len();
        let count = if parts.is_empty() {
            threads.len()
        } else {
            let lives = threads.iter().flat_map(|id| &profile[*id].lives);
            lives.collect::<BTreeSet<_>>().len()
        };
        let heaviest = weights
            .iter()
            .max_by_key(|(key, weight)| (**weight, std::cmp::Reverse(**key)));
        let of_heaviest = heaviest.and_then(|(key, _)| {
            let mut all = threads.iter().map(|id| &profile[*id]);
            all.find(|thread| key_of(thread) == *key)
        });
        let pid = of_heaviest.map_or(0, |thread| thread.pid);
        let name_of = |event: EventId| {
            profile
                .events
                .get(event)
                .map_or("", |event| event.name.as_str())
        };
        let times = profile.recording.time_range;
        let event = profile.events.get(tally.event);
        let others = profile.events.iter_enumerated();
        let others = others.filter(|(at, other)| *at != tally.event && other.samples > 0);
        let program = of_heaviest.map(|thread| profile[thread.program].clone());
        let program = program.unwrap_or_default();
        Self {
            path: profile.recording.path.clone(),
            predictions: profile.predictions.clone(),
            script: script_of(profile, &program),
            program,
            pid,
            processes,
            threads: count,
            parts,
            wall_ns: profile.recording.length(),
            chosen: profile.recording.chosen.clone(),
            start_ns: times.map(|(first, _)| first),
            event: name_of(tally.event).to_owned(),
            is_clock: event.is_some_and(EventSummary::is_cpu_time),
            ring: event.map_or(Ring::All, |event| event.ring),
            is_cpu: event.is_some_and(EventSummary::is_cpu),
            is_off_cpu: event.is_some_and(EventSummary::is_off_cpu),
            idle: Idle::default(),
            weighed: event.and_then(|event| Some((event.unit, event.counted?))),
            made: event.map_or(Made::Sampled, Made::of),
            is_tracepoint: event.is_some_and(|event| event.is_tracepoint),
            other_events: others
                .map(|(_, other)| (other.name.clone(), other.samples))
                .collect(),
            stacks: stacks(&profile.quality.figures(Some(tally.event)).stack_ends)
                .map(str::to_owned),
            lost: profile.lost_of(tally.event),
            is_unfinished: profile.recording.is_unfinished,
            status: profile.recording.status,
            used_ns: event.and_then(|event| used(profile.recording.used?, event)),
            findings: verdict.map(troubles).unwrap_or_default(),
            is_fit: verdict.is_none_or(|verdict| verdict.is_fit(false)),
            command: profile.recording.command(),
            arch: told("arch"),
            cpu: told("cpudesc"),
            kernel: told("os release"),
        }
    }

    /// Whether weights are shown in seconds.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.is_clock || self.is_off_cpu || matches!(self.weighed, Some((Unit::Nanoseconds, _)))
    }

    /// Whether weights are bytes, blocks or the like: amounts that do not take time.
    #[must_use]
    pub fn is_amount(&self) -> bool {
        !self.is_time() && self.weighed.is_some()
    }

    /// What weights are, as JSON names it.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.weighed {
            Some((unit, _)) => unit.word(),
            None if self.is_time() => Unit::Nanoseconds.word(),
            None => Unit::Count.word(),
        }
    }

    /// What samples are called: `samples`, `blocks`.
    #[must_use]
    pub fn counted(&self) -> &'static str {
        self.weighed.map_or("samples", |(_, counted)| counted)
    }

    /// Name of the process, with its number.
    #[must_use]
    pub fn process(&self) -> String {
        let more = match self.processes {
            0 | 1 => String::new(),
            n if self.parts.is_empty() => format!(" and {} more", n - 1),
            n => format!(" and other processes, {n} in all"),
        };
        let script = match &self.script {
            Some(script) if self.processes < 2 && *script != self.program => format!(" {script}"),
            _ => String::new(),
        };
        let program = &self.program;
        if !self.parts.is_empty() {
            let hosts = self.parts.iter().map(|part| &part.host);
            let hosts = hosts.collect::<BTreeSet<_>>().len();
            let hosts = match hosts {
                0 | 1 => String::new(),
                hosts => format!(" on {hosts} hosts"),
            };
            return format!("{program}{script}{more}{hosts}");
        }
        format!("{program}{script} (pid {}){more}", self.pid.cast_signed())
    }
}

/// How the callers of most samples were recorded; nothing where only the kernel's are known.
fn stacks(ends: &ByEnd<u64>) -> Option<&'static str> {
    let mut sums = [
        (0_u64, "not at all"),
        (0, "by copies of stacks (dwarf)"),
        (0, "as chains (-g, lbr)"),
    ];
    for end in StackEnd::ALL {
        let way = match end {
            StackEnd::KernelOnly => continue,
            StackEnd::NotRecorded => 0,
            end if end.is_recorded() => 2,
            _ => 1,
        };
        sums[way].0 = sums[way].0.saturating_add(ends[end]);
    }
    let most = sums.into_iter().max_by_key(|(sum, _)| *sum);
    most.filter(|(sum, _)| *sum > 0).map(|(_, way)| way)
}

/// What an interpreter was started with: what `pjit record` was asked to run tells, else the recorder's own words.
fn script_of(profile: &Profile, program: &str) -> Option<String> {
    let asked = profile.recording.asked.first();
    // A script of a folder on the path, as `tsc`, names its interpreter inside.
    let by_itself = || {
        asked
            .filter(|_| is_interpreter(program))
            .map(|first| last_part(first).to_owned())
    };
    script(&profile.recording.command()?).or_else(by_itself)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a program runs what others wrote, with a version in its name or without.
fn is_interpreter(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    [
        "node", "python", "java", "bun", "deno", "ruby", "php", "wasmtime", "perl", "lua", "luajit",
    ]
    .contains(&name)
}

/// The script or archive that the recorded command gives an interpreter: `webpack` of `node node_modules/.bin/webpack`.
fn script(command: &str) -> Option<String> {
    const ENDS: [&str; 12] = [
        ".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".php", ".jar", ".pl", ".lua", ".wasm",
    ];
    let mut words = command.split_ascii_whitespace();
    let is_tool = |word: &str| word.contains("node_modules/.bin/");
    // A tool begins with the name of its interpreter.
    if let Some(tool) = words.clone().next().filter(|word| is_tool(word)) {
        return Some(last_part(tool).to_owned());
    }
    // The command stands behind the recorder's options, whose values are no programs.
    let interpreter = words.find(|word| is_interpreter(last_part(word)))?;
    if last_part(interpreter) == "java" {
        return main_class(words);
    }
    let is_script = |word: &&str| {
        !word.starts_with('-') && (ENDS.iter().any(|end| word.ends_with(end)) || is_tool(word))
    };
    words.find(is_script).map(|word| last_part(word).to_owned())
}

/// What Java runs: an archive, a source, or a class, without its package.
fn main_class<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<String> {
    const WITH_VALUE: [&str; 8] = [
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-modules",
        "--add-opens",
        "--add-exports",
    ];
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            let name = last_part(word);
            let is_file = [".jar", ".java"].iter().any(|end| name.ends_with(end));
            let class = name.rsplit('.').next().filter(|_| !is_file);
            return Some(class.unwrap_or(name).to_owned());
        }
    }
    None
}

/// Warnings and failures of a verdict.
fn troubles(verdict: &Verdict) -> Vec<Trouble> {
    let bad = verdict
        .findings
        .iter()
        .filter(|finding| finding.level >= Level::Warn);
    bad.map(|finding| Trouble {
        is_failure: finding.level == Level::Fail,
        code: finding.check,
        text: finding.text.clone(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_what_interpreters_were_given() {
        for (command, name) in [
            ("node --cpu-prof node_modules/.bin/webpack", Some("webpack")),
            ("node_modules/.bin/eslint src", Some("eslint")),
            ("perf record -F 999 v/bin/python3.11 job.py", Some("job.py")),
            ("rg node_modules/.bin/tsc", None),
            ("sqlite3 :memory:", None),
            (
                "java -Xmx1g -cp a.jar:b.jar org.app.Main x.py",
                Some("Main"),
            ),
            ("/usr/bin/java -jar lib/app.jar -cp b", Some("app.jar")),
            ("java src/Hot.java", Some("Hot.java")),
            ("java -m app/org.app.Main", Some("Main")),
            ("java -version", None),
        ] {
            assert_eq!(script(command).as_deref(), name, "{command}");
        }
    }
}
