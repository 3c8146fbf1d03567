//! What perf says where it cannot record, and what follows: less is asked for, or the command that mends it is told.
//!
//! In: perf's words in English. The first row that fits decides. Looks at nothing: the trial was made elsewhere.

use super::options::{Options, RING, size};
use super::{Facts, Note, Target};

/// Why nothing can be recorded, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong.
    pub text: String,
    /// Commands that mend it.
    pub remedies: Vec<String>,
}

impl Trouble {
    /// Trouble that these commands mend.
    #[must_use]
    pub fn new<const N: usize>(text: impl Into<String>, remedies: [&str; N]) -> Self {
        Self {
            text: text.into(),
            remedies: remedies.map(str::to_owned).to_vec(),
        }
    }
}

/// What follows from a trial that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Another one with less, and what is lost by that.
    Again(Box<Options>, Option<Note>),
    /// Nothing can be had.
    Ends(Trouble),
}

/// Reads what perf said about a trial with these options.
#[must_use]
pub fn next(said: &str, options: &Options, target: &Target, facts: &Facts) -> Next {
    let has = |words: &str| said.to_lowercase().contains(words);
    let again = |changed: Options, note| Next::Again(Box::new(changed), note);
    if is_of_ring(said) {
        return match options.with_less_ring().filter(|_| !options.is_ring_given) {
            Some(less) => {
                let note = of_ring(&less, facts);
                again(less, Some(note))
            }
            None => Next::Ends(Trouble::new(
                format!(
                    "the kernel gives no ring of {} a processor",
                    size(options.ring)
                ),
                [
                    "sudo sysctl kernel.perf_event_mlock_kb=65536",
                    "-m with a smaller size",
                ],
            )),
        };
    }
    if let Some(without) = without_unknown(said, options) {
        return again(without, None);
    }
    if has("no such process") || has("couldn't create thread/cpu maps") {
        let text = match target {
            Target::Processes(pids) => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                format!("process {} has ended", pids.join(" or "))
            }
            _ => "what was to be recorded has ended".to_owned(),
        };
        return Next::Ends(Trouble::new(text, []));
    }
    // Where it is forbidden to ask at all, the settings of perf_event_paranoid mend nothing.
    let is_filtered = (has("operation not permitted") && has("failed unexpectedly"))
        || has("function not implemented");
    let has_rights = facts.is_root || facts.paranoid.is_some_and(|paranoid| paranoid <= 2);
    if is_filtered && (facts.is_root || *target != Target::Machine) && has_rights {
        return Next::Ends(Trouble::new(
            "perf_event_open is forbidden here, as a container's seccomp profile does",
            [
                "docker run --cap-add PERFMON --security-opt seccomp=FILE, with a profile that lets perf_event_open through",
                "or on the host: sudo pjit record -p PID",
            ],
        ));
    }
    let is_forbidden = has("access to performance monitoring")
        || has("permission denied")
        || has("operation not permitted")
        || has("not permitted")
        || has("you may not have permission");
    if is_forbidden {
        let is_command = matches!(target, Target::Command(_));
        if options.has_tracepoints() {
            return Next::Ends(switches_forbidden());
        }
        if is_command && !options.user_only && facts.paranoid.is_none_or(|paranoid| paranoid <= 2) {
            let mut less = options.clone();
            less.user_only = true;
            return again(less, None);
        }
        return Next::Ends(forbidden(target, facts));
    }
    if options.build_ids && has("build id in mmap events") {
        let mut less = options.clone();
        less.build_ids = false;
        less.compressed = false;
        return again(less, None);
    }
    if has("no space left on device") {
        return Next::Ends(Trouble::new(
            "there is no space left",
            ["-o DIR on another disk"],
        ));
    }
    if options.has_counters() && (has("is not supported") || has("not supported by")) {
        return Next::Ends(Trouble::new(
            "there are no hardware counters here for cycles and instructions, as in most virtual machines",
            ["pjit record -- COMMAND samples the processors' time instead"],
        ));
    }
    let is_unknown = has("event syntax error") || has("unsupported tracepoint");
    if options.has_tracepoints() && is_unknown && !facts.is_root {
        return Next::Ends(switches_forbidden());
    }
    if options.has_tracepoints() && is_unknown {
        return Next::Ends(Trouble::new(
            "perf finds no sched:sched_switch here: tracefs is not mounted, or perf was built without libtraceevent",
            ["sudo mount -t tracefs none /sys/kernel/tracing"],
        ));
    }
    if options.clock && has("clockid") {
        let mut less = options.clone();
        less.clock = false;
        let note = Note::new("perf has no -k mono here: the clock of dumps is estimated");
        return again(less, Some(note));
    }
    Next::Ends(Trouble::new(
        format!("perf cannot record here: {}", first_lines(said)),
        [],
    ))
}

/// The options without the one that this perf does not know.
fn without_unknown(said: &str, options: &Options) -> Option<Options> {
    let said = said.to_lowercase();
    let is_unknown = |name: &str| {
        let at = said
            .find("unknown option")
            .or(said.find("unknown switch"))?;
        said[at..].lines().next()?.contains(name).then_some(())
    };
    let mut less = options.clone();
    if options.build_ids && is_unknown("buildid-mmap").is_some() {
        less.build_ids = false;
        // perf finds no build IDs in what it has compressed.
        less.compressed = false;
    } else if options.compressed
        && (is_unknown("compression-level").is_some()
            || is_unknown("`z'").is_some()
            || said.contains("compression is not supported")
            || said.contains("compression was not built"))
    {
        less.compressed = false;
    } else {
        return None;
    }
    Some(less)
}

fn switches_forbidden() -> Trouble {
    Trouble::new(
        "this user may not record switches of threads",
        [
            "sudo pjit record --offcpu …",
            "or: sudo sysctl kernel.perf_event_paranoid=-1",
        ],
    )
}

fn forbidden(target: &Target, facts: &Facts) -> Trouble {
    let paranoid = facts.paranoid.map_or(String::new(), |paranoid| {
        format!(" (kernel.perf_event_paranoid is {paranoid})")
    });
    match target {
        Target::Machine => Trouble::new(
            format!("this user may not record the whole machine{paranoid}"),
            [
                "sudo pjit record -a …",
                "or: sudo sysctl kernel.perf_event_paranoid=-1",
            ],
        ),
        Target::Processes(_) => Trouble::new(
            "these processes belong to another user",
            ["sudo pjit record -p …"],
        ),
        Target::Command(_) => Trouble::new(
            format!("this user may not record{paranoid}"),
            [
                "sudo pjit record …",
                "or: sudo sysctl kernel.perf_event_paranoid=1",
            ],
        ),
    }
}

/// Whether perf got no ring of the size that it asked for.
#[must_use]
pub fn is_of_ring(said: &str) -> bool {
    let said = said.to_lowercase();
    said.contains("error mapping pages") || said.contains("failed to mmap")
}

/// The note of [`of_ring`], if settings alone make the ring small.
#[must_use]
pub fn of_small_ring(options: &Options, facts: &Facts) -> Option<Note> {
    let is_small = options.ring < RING && !options.is_ring_given;
    is_small.then(|| of_ring(options, facts))
}

/// What is lost by a ring that is smaller than it should be.
#[must_use]
pub fn of_ring(options: &Options, facts: &Facts) -> Note {
    let limit = facts.mlock_kb.map_or(String::new(), |limit| {
        format!(" (kernel.perf_event_mlock_kb is {limit})")
    });
    let ring = size(options.ring);
    let text = match options.frequency.filter(|_| options.is_slowed()) {
        Some(hertz) => format!(
            "a ring of {ring} a processor{limit}: {hertz} samples a second, and a busy machine may lose some"
        ),
        None => format!("a ring of {ring} a processor{limit}: a busy machine may lose samples"),
    };
    Note {
        is_of_loss: true,
        ..Note::new(text).mended_by("sudo sysctl kernel.perf_event_mlock_kb=65536")
    }
}

/// The package that has perf, by the names in `/etc/os-release`.
#[must_use]
pub fn no_perf(os_release: &str) -> Trouble {
    let ids: Vec<&str> = os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split_whitespace())
        .collect();
    let is = |wanted: &[&str]| ids.iter().any(|id| wanted.contains(id));
    let install = if is(&["ubuntu"]) {
        "sudo apt install linux-tools-common linux-tools-$(uname -r)"
    } else if is(&["debian"]) {
        "sudo apt install linux-perf"
    } else if is(&["fedora", "rhel", "centos"]) {
        "sudo dnf install perf"
    } else if is(&["arch"]) {
        "sudo pacman -S perf"
    } else if is(&["suse", "opensuse"]) {
        "sudo zypper install perf"
    } else if is(&["alpine"]) {
        "sudo apk add perf"
    } else {
        "install the package that has perf (linux-perf, linux-tools, perf)"
    };
    Trouble::new("there is no perf on PATH", [install])
}

/// What the settings say that no trial shows.
#[must_use]
pub fn of_settings(options: &Options, facts: &Facts) -> Vec<Note> {
    let mut notes = Vec::new();
    let in_kernel = facts.sees_kernel || facts.paranoid.is_none_or(|paranoid| paranoid < 2);
    if options.user_only || !in_kernel {
        let note = Note::new("time in the kernel is left out");
        notes.push(note.mended_by("sudo sysctl kernel.perf_event_paranoid=1"));
    } else if facts.hides_kernel {
        let restrict = facts.kptr_restrict.unwrap_or(1);
        let note = Note::new(format!(
            "functions of the kernel have no names (kernel.kptr_restrict is {restrict})"
        ));
        notes.push(note.mended_by("sudo sysctl kernel.kptr_restrict=0"));
    }
    notes
}

/// perf's own words, without blank lines.
fn first_lines(said: &str) -> String {
    const LINES: usize = 3;
    let lines = said.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).take(LINES).collect();
    if lines.is_empty() {
        "it says nothing".to_owned()
    } else {
        lines.join(" / ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Asked;
    use super::*;

    fn command() -> Target {
        Target::Command(vec!["true".into()])
    }

    fn user() -> Facts {
        Facts {
            paranoid: Some(2),
            cpus: 2,
            ..Facts::default()
        }
    }

    fn root() -> Facts {
        Facts {
            is_root: true,
            sees_kernel: true,
            ..user()
        }
    }

    fn after(said: &str, target: &Target, facts: &Facts) -> Next {
        let options = Options::of(&Asked::default(), target, facts);
        next(said, &options, target, facts)
    }

    fn less(said: &str, target: &Target, facts: &Facts) -> Options {
        match after(said, target, facts) {
            Next::Again(options, _) => *options,
            Next::Ends(trouble) => panic!("{said}: {trouble:?}"),
        }
    }

    fn end(said: &str, target: &Target, facts: &Facts) -> Trouble {
        match after(said, target, facts) {
            Next::Ends(trouble) => trouble,
            Next::Again(options, _) => panic!("{said}: {options:?}"),
        }
    }

    const MAPPING: &str = "Permission error mapping pages.\nConsider increasing \
                           /proc/sys/kernel/perf_event_mlock_kb,\nor try again with a smaller value of -m/--mmap_pages.";
    const LIMITED: &str = "Error:\nAccess to performance monitoring and observability operations is limited.\n\
                           Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open\n\
                           -1: Allow use of (almost) all events by all users\n\
                           Ignore mlock limit after perf_event_mlock_kb without CAP_IPC_LOCK";
    const SECCOMP: &str = "Error:\nperf_event_open(...) failed unexpectedly with error 1 (Operation not permitted)\n\
                           No permission to enable cycles event.\n";

    #[test]
    fn a_ring_that_is_too_large_becomes_smaller() {
        let less = less(MAPPING, &command(), &user());
        assert_eq!(less.ring, 512 << 10);
        let note = of_ring(&less, &user());
        assert!(note.text.contains("249 samples a second"), "{note:?}");
        assert!(note.is_of_loss);
        assert_eq!(of_small_ring(&less, &user()), Some(note));
        let large = Options::of(&Asked::default(), &command(), &user());
        assert_eq!(of_small_ring(&large, &user()), None);
    }

    #[test]
    fn without_rights_commands_are_recorded_without_the_kernel() {
        assert!(less(LIMITED, &command(), &user()).user_only);
        let machine = end(LIMITED, &Target::Machine, &user());
        assert!(machine.remedies[0].starts_with("sudo pjit record -a"));
        let other = end(LIMITED, &Target::Processes(vec![1]), &user());
        assert!(other.text.contains("another user"));
        // Debian's and Ubuntu's kernels forbid everything then.
        let facts = Facts {
            paranoid: Some(3),
            ..user()
        };
        assert!(end(LIMITED, &command(), &facts).text.contains("is 3"));
    }

    #[test]
    fn filters_of_containers_are_told_from_rights() {
        let trouble = end(SECCOMP, &command(), &root());
        assert!(trouble.remedies[0].contains("--cap-add PERFMON"));
        // perf says this of forbidden calls as well.
        let both =
            format!("no support to record build id in mmap events, update your kernel.\n{SECCOMP}");
        assert_eq!(end(&both, &command(), &root()), trouble);
    }

    #[test]
    fn what_perf_does_not_know_is_left_out() {
        let said = "  Error: unknown option `buildid-mmap'\n\n Usage: perf record -z";
        let made = less(said, &command(), &root());
        assert!(!made.build_ids && !made.compressed);
        let old = "no support to record build id in mmap events, update your kernel.";
        assert!(!less(old, &command(), &root()).build_ids);
        let no_zstd = "Compression is not supported";
        let made = less(no_zstd, &command(), &root());
        assert!(made.build_ids && !made.compressed);
    }

    #[test]
    fn what_nothing_is_known_of_is_told_in_perfs_words() {
        let gone = end(
            "Couldn't create thread/CPU maps: No such process",
            &Target::Processes(vec![7]),
            &root(),
        );
        assert_eq!(gone.text, "process 7 has ended");
        let odd = end("\nsome\n\nthing\n", &command(), &root());
        assert_eq!(odd.text, "perf cannot record here: some / thing");
        assert!(end("", &command(), &root()).text.contains("says nothing"));
    }

    #[test]
    fn packages_by_system() {
        let install = |text: &str| no_perf(text).remedies.concat();
        assert_eq!(install("ID=debian\n"), "sudo apt install linux-perf");
        assert!(install("ID=ubuntu\nID_LIKE=debian").contains("linux-tools-$(uname -r)"));
        assert!(install("ID=rocky\nID_LIKE=\"rhel fedora\"").contains("dnf"));
        assert!(install("").contains("the package that has perf"));
    }
}
