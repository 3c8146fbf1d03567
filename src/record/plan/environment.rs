//! Variables that make runtimes tell of their code, merged with those that stand there.
//!
//! Nothing is replaced, nothing is said twice, and what the user's own value contradicts is left alone. The switches of all
//! runtimes are set at once: what a command starts is not known before, and none harms another.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Facts, Note};
use crate::runtimes::{Adds, Lands, Producer, Switch};

/// A variable of the command's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// All of its value.
    pub value: OsString,
    /// What of it is ours.
    pub added: String,
}

/// A file that a variable leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its folder, below that of the recording.
    pub folder: PathBuf,
    /// Its name.
    pub name: &'static str,
    /// All of it.
    pub text: &'static str,
}

/// What the command's environment gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables.
    pub variables: Vec<Variable>,
    /// Files that they lead to.
    pub files: Vec<Made>,
    /// What was left out, and why.
    pub notes: Vec<Note>,
}

/// Words that `--no-switch` takes.
#[must_use]
pub fn words() -> Vec<&'static str> {
    let words: BTreeSet<&str> = switches().map(|switch| switch.word).collect();
    words.into_iter().collect()
}

/// Files that variables may lead to, for a recording in this folder.
#[must_use]
pub fn made_files(folder: &Path) -> Vec<Made> {
    let made = switches().filter_map(|switch| match switch.adds {
        Adds::Folder { file, text } => Some(Made {
            folder: folder.join(format!(".{}", switch.word)),
            name: file,
            text,
        }),
        _ => None,
    });
    made.collect()
}

fn switches() -> impl Iterator<Item = &'static Switch> {
    Producer::all().flat_map(|runtime| runtime.switches)
}

/// What the user wants of runtimes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Runtimes, or `all`, that are left alone.
    pub without: Vec<String>,
    /// An agent for JVMs, by an absolute path.
    pub java_agent: Option<PathBuf>,
}

impl Choice {
    /// Whether a runtime is left alone.
    #[must_use]
    pub fn is_off(&self, word: &str) -> bool {
        self.without.iter().any(|off| off == word || off == "all")
    }
}

/// The runtime whose switch stands in the command itself: `python -X perf`, which another word for the same would change.
#[must_use]
pub fn answered(command: &[OsString]) -> Option<&'static str> {
    let is_perf = |word: &OsStr| word == "perf" || word == "perf_jit";
    let mut pairs = command.windows(2);
    let is_pair = pairs.any(|pair| pair[0] == "-X" && is_perf(&pair[1]));
    let is_one = || {
        command
            .iter()
            .any(|word| word == "-Xperf" || word == "-Xperf_jit")
    };
    (is_pair || is_one()).then_some("python")
}

/// What is added to variables that `given` has or has not. `folder`: that of the recording, absolute.
#[must_use]
pub fn plan(
    given: &BTreeMap<OsString, OsString>,
    choice: &Choice,
    facts: &Facts,
    folder: &Path,
) -> Environment {
    let mut environment = Environment::default();
    let mut lost: BTreeMap<Lost, Vec<&str>> = BTreeMap::new();
    let is_off = |word: &str| choice.is_off(word);
    for switch in switches().filter(|switch| !is_off(switch.word)) {
        let lands = match switch.lands {
            Lands::Here if !facts.here_is_writable => Some(Lost::Here),
            Lands::Temporary if !facts.temporary_is_writable => Some(Lost::Temporary),
            _ => None,
        };
        if let Some(lost_in) = lands {
            lost.entry(lost_in).or_default().push(switch.word);
            continue;
        }
        // Releases without a compiler end at a word that they do not know.
        if switch.word == "erlang" && facts.erlang_tells != Some(true) {
            if facts.erlang_tells == Some(false) {
                environment.notes.push(Note::new(
                    "this Erlang does not tell perf of its code (24 or newer with its JIT does): left as it is",
                ));
            }
            continue;
        }
        let agent = choice.java_agent.as_deref();
        let agent = agent.filter(|_| switch.variable == AGENT_IN);
        add(switch, given, folder, agent, &mut environment);
        let has_place = given.contains_key(OsStr::new(AGENT_WRITES));
        if agent.is_some() && !has_place {
            environment.variables.push(Variable {
                name: AGENT_WRITES,
                value: folder.into(),
                added: folder.display().to_string(),
            });
        }
    }
    for (place, mut words) in lost {
        words.dedup();
        let place = match place {
            Lost::Here => facts.here.display().to_string(),
            Lost::Temporary => "the folder for temporary files".to_owned(),
        };
        let text = format!(
            "{place} cannot be written, where dumps would lie: no switch for {}",
            words.join(", ")
        );
        environment.notes.push(Note::new(text));
    }
    environment
}

/// Which variable may load an agent.
const AGENT_IN: &str = "JAVA_TOOL_OPTIONS";
/// Below which folder it writes its dumps, else below that of the user.
const AGENT_WRITES: &str = "JITDUMPDIR";

/// Where a dump cannot be written.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Lost {
    Here,
    Temporary,
}

/// Adds what a switch needs, if anything.
fn add(
    switch: &Switch,
    given: &BTreeMap<OsString, OsString>,
    folder: &Path,
    agent: Option<&Path>,
    environment: &mut Environment,
) {
    let old = given.get(OsStr::new(switch.variable));
    let made = match switch.adds {
        Adds::Words { words, between } => {
            let agent = agent.map(|path| format!("-agentpath:{}", path.display()));
            let words: Vec<&str> = words.iter().copied().chain(agent.as_deref()).collect();
            let there = said_to(switch.word, given);
            there.and_then(|there| merged(old.map(OsString::as_os_str), &there, &words, between))
        }
        Adds::Value(value, answers) => {
            let is_answered = answers
                .iter()
                .any(|name| given.contains_key(OsStr::new(name)));
            (!is_answered).then(|| (value.into(), value.to_owned()))
        }
        Adds::Folder { file, text } => {
            let own = folder.join(format!(".{}", switch.word));
            let made = behind(old.map(OsString::as_os_str), &own);
            environment.files.push(Made {
                folder: own.clone(),
                name: file,
                text,
            });
            Some((made, own.display().to_string()))
        }
    };
    environment
        .variables
        .extend(made.map(|(value, added)| Variable {
            name: switch.variable,
            value,
            added,
        }));
}

/// What is said to a runtime by its variables; nothing where one contradicts a first word.
fn said_to(runtime: &str, given: &BTreeMap<OsString, OsString>) -> Option<Vec<Said>> {
    let mut said = Vec::new();
    let mut firsts = Vec::new();
    for switch in switches().filter(|switch| switch.word == runtime) {
        let Adds::Words { words, .. } = switch.adds else {
            continue;
        };
        firsts.extend(words.first().map(|word| Said::of(word)));
        let there = given.get(OsStr::new(switch.variable));
        let there = there.map(|value| value.to_string_lossy().replace(',', " "));
        let parts = there.as_deref().unwrap_or_default().split_whitespace();
        said.extend(parts.map(Said::of));
    }
    let is_refused = |first: &Said| said.iter().any(|said| said.contradicts(first));
    (!firsts.iter().any(is_refused)).then_some(said)
}

/// The words behind those of a variable, and which are new: those that are not `there`. Nothing if none is.
fn merged(
    old: Option<&OsStr>,
    there: &[Said],
    words: &[&str],
    between: char,
) -> Option<(OsString, String)> {
    let is_new = |word: &&str| {
        let word = Said::of(word);
        !there.iter().any(|said| said.is_about(&word))
    };
    let new: Vec<&str> = words.iter().copied().filter(is_new).collect();
    if new.is_empty() {
        return None;
    }
    let added = new.join(&between.to_string());
    let mut value = old.unwrap_or_default().to_owned();
    if !value.is_empty() {
        value.push(between.to_string());
    }
    value.push(&added);
    Some((value, added))
}

/// A folder behind those that are there. An empty part stands for what was compiled in, which a variable that is not set has
/// alone.
fn behind(old: Option<&OsStr>, folder: &Path) -> OsString {
    let mut value = old.unwrap_or_default().to_owned();
    // Set and empty: nothing is wanted but what is given.
    if old.is_none_or(|old| !old.is_empty()) {
        value.push(":");
    }
    value.push(folder);
    value
}

/// A word of a command line: what it is about, and whether it says yes.
struct Said {
    about: String,
    is_yes: bool,
}

impl Said {
    /// `--perf-prof`, `--no-perf-prof`, `--perf_prof`, `-XX:+Name`, `-XX:-Name`, `+JPperf true`
    fn of(word: &str) -> Self {
        let word = word.split([' ', '=']).next().unwrap_or(word);
        let (about, is_yes) = if let Some(name) = word.strip_prefix("-XX:-") {
            (name, false)
        } else if let Some(name) = word.strip_prefix("-XX:+") {
            (name, true)
        } else if let Some(name) = word.strip_prefix("--no-").or(word.strip_prefix("--no_")) {
            (name, false)
        } else {
            (word.strip_prefix("--").unwrap_or(word), true)
        };
        Self {
            about: about.replace('_', "-"),
            is_yes,
        }
    }

    fn is_about(&self, other: &Self) -> bool {
        self.about == other.about
    }

    fn contradicts(&self, other: &Self) -> bool {
        self.is_about(other) && self.is_yes != other.is_yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            here_is_writable: true,
            temporary_is_writable: true,
            erlang_tells: Some(true),
            here: "/w".into(),
            ..Facts::default()
        }
    }

    #[test]
    fn a_switch_in_the_command_is_an_answer() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            answered(&words)
        };
        assert_eq!(of("env A=1 python3 -X perf job.py"), Some("python"));
        assert_eq!(of("python3 -Xperf_jit job.py"), Some("python"));
        assert_eq!(of("python3 -X dev perf"), None);
        assert_eq!(of("perf"), None);
    }

    fn choice(without: &[&str]) -> Choice {
        Choice {
            without: without.iter().map(|&word| word.to_owned()).collect(),
            java_agent: None,
        }
    }

    fn of(given: &[(&str, &str)], without: &[&str]) -> Environment {
        let given = given
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        plan(&given, &choice(without), &facts(), Path::new("/out"))
    }

    fn value(environment: &Environment, name: &str) -> Option<String> {
        let found = environment
            .variables
            .iter()
            .find(|found| found.name == name);
        found.map(|found| found.value.to_string_lossy().into_owned())
    }

    fn merged_into(name: &str, old: &str) -> Option<String> {
        value(&of(&[(name, old)], &[]), name)
    }

    #[test]
    fn all_runtimes_are_asked_at_once() {
        let environment = of(&[], &[]);
        let get = |name| value(&environment, name).expect(name);
        assert_eq!(
            get("NODE_OPTIONS"),
            "--perf-prof --interpreted-frames-native-stack"
        );
        assert_eq!(
            get("DENO_V8_FLAGS"),
            "--perf-prof,--interpreted-frames-native-stack"
        );
        assert_eq!(get("PYTHONPERFSUPPORT"), "1");
        assert_eq!(get("PYTHON_PERF_JIT_SUPPORT"), "1");
        // HotSpot 8 ends at words that it does not know in the first one.
        assert_eq!(get("JAVA_TOOL_OPTIONS"), "-XX:+IgnoreUnrecognizedVMOptions");
        assert_eq!(
            get("_JAVA_OPTIONS"),
            "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer"
        );
        assert_eq!(get("ERL_ZFLAGS"), "+JPperf true");
        assert_eq!(get("MONO_ENV_OPTIONS"), "--jitmap");
        assert_eq!(get("PHP_INI_SCAN_DIR"), ":/out/.php");
        assert_eq!(get("BUN_JSC_useJITDump"), "1");
        assert_eq!(environment.files.len(), 1);
        assert_eq!(environment.notes, []);
    }

    #[test]
    fn words_come_behind_those_that_are_there() {
        let node = |old| merged_into("NODE_OPTIONS", old);
        assert_eq!(
            node("--max-old-space-size=4096").as_deref(),
            Some("--max-old-space-size=4096 --perf-prof --interpreted-frames-native-stack")
        );
        assert_eq!(
            node("--perf-prof").as_deref(),
            Some("--perf-prof --interpreted-frames-native-stack")
        );
        assert_eq!(
            node("").as_deref(),
            Some("--perf-prof --interpreted-frames-native-stack")
        );
        assert_eq!(node("--interpreted_frames_native_stack --perf_prof"), None);
        assert_eq!(
            merged_into("_JAVA_OPTIONS", "-Xmx1g -XX:+DumpPerfMapAtExit").as_deref(),
            Some(
                "-Xmx1g -XX:+DumpPerfMapAtExit -XX:+UnlockDiagnosticVMOptions -XX:+PreserveFramePointer"
            )
        );
        assert_eq!(
            merged_into("DENO_V8_FLAGS", "--max-old-space-size=100").as_deref(),
            Some("--max-old-space-size=100,--perf-prof,--interpreted-frames-native-stack")
        );
        assert_eq!(
            merged_into("ERL_ZFLAGS", "+S 2").as_deref(),
            Some("+S 2 +JPperf true")
        );
    }

    #[test]
    fn what_the_user_said_stays() {
        for (name, old) in [
            ("NODE_OPTIONS", "--no-perf-prof"),
            ("NODE_OPTIONS", "--no_perf_prof --trace-gc"),
            ("JAVA_TOOL_OPTIONS", "-XX:-IgnoreUnrecognizedVMOptions"),
            ("_JAVA_OPTIONS", "-XX:-UnlockDiagnosticVMOptions"),
            ("ERL_ZFLAGS", "+JPperf false"),
            ("PYTHONPERFSUPPORT", "0"),
            ("MONO_ENV_OPTIONS", "--jitmap --debug"),
            ("DOTNET_PerfMapEnabled", "0"),
            ("BUN_JSC_useJITDump", "0"),
        ] {
            assert_eq!(merged_into(name, old), None, "{name}={old}");
        }
        // One answer counts for both variables.
        let python = of(&[("PYTHONPERFSUPPORT", "0")], &[]);
        assert_eq!(value(&python, "PYTHON_PERF_JIT_SUPPORT"), None);
        // What is said in one variable holds for the other of the same runtime.
        let java = |given| value(&of(&[("JAVA_TOOL_OPTIONS", given)], &[]), "_JAVA_OPTIONS");
        assert_eq!(
            java("-XX:-PreserveFramePointer").as_deref(),
            Some("-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit")
        );
        assert_eq!(java("-XX:-IgnoreUnrecognizedVMOptions"), None);
    }

    #[test]
    fn folders_are_added_and_none_is_lost() {
        let php = |old| merged_into("PHP_INI_SCAN_DIR", old);
        assert_eq!(php("/etc/my").as_deref(), Some("/etc/my:/out/.php"));
        assert_eq!(php(":/etc/my").as_deref(), Some(":/etc/my:/out/.php"));
        // Only what is given, and that is nothing.
        assert_eq!(php("").as_deref(), Some("/out/.php"));
    }

    #[cfg(unix)]
    #[test]
    fn values_that_are_no_text_stay_as_they_are() {
        use std::os::unix::ffi::OsStringExt;
        let old = OsString::from_vec(b"--title=\xff".to_vec());
        let given = [("NODE_OPTIONS".into(), old)].into();
        let made = plan(&given, &Choice::default(), &facts(), Path::new("/out"));
        let node = made
            .variables
            .iter()
            .find(|found| found.name == "NODE_OPTIONS");
        let bytes = node.map(|node| node.value.as_encoded_bytes().to_vec());
        assert!(bytes.is_some_and(|bytes| bytes.starts_with(b"--title=\xff --perf-prof")));
    }

    #[test]
    fn runtimes_can_be_left_alone() {
        let environment = of(&[], &["node", "php"]);
        assert_eq!(value(&environment, "NODE_OPTIONS"), None);
        assert_eq!(value(&environment, "PHP_INI_SCAN_DIR"), None);
        assert_eq!(environment.files, []);
        assert!(value(&environment, "DENO_V8_FLAGS").is_some());
        assert_eq!(of(&[], &["all"]), Environment::default());
        assert_eq!(words().len(), 10);
    }

    #[test]
    fn an_agent_comes_behind_the_switches_of_its_runtime() {
        let choice = Choice {
            java_agent: Some("/opt/agent.so".into()),
            ..Choice::default()
        };
        let given = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.into(), value.into()));
            plan(&pairs.collect(), &choice, &facts(), Path::new("/out"))
        };
        let made = given(&[]);
        let java = value(&made, "JAVA_TOOL_OPTIONS").expect("set");
        assert!(
            java.ends_with("VMOptions -agentpath:/opt/agent.so"),
            "{java}"
        );
        assert_eq!(value(&made, "JITDUMPDIR").as_deref(), Some("/out"));
        // Where somebody has said where, and that it is loaded.
        let made = given(&[
            ("JITDUMPDIR", "/d"),
            ("JAVA_TOOL_OPTIONS", "-agentpath:/opt/agent.so"),
        ]);
        assert_eq!(value(&made, "JITDUMPDIR"), None);
        let java = value(&made, "JAVA_TOOL_OPTIONS").expect("set");
        assert_eq!(java.matches("agentpath").count(), 1, "{java}");
    }

    #[test]
    fn no_switch_whose_dump_is_lost() {
        let facts = Facts {
            here_is_writable: false,
            erlang_tells: None,
            ..facts()
        };
        let made = plan(
            &BTreeMap::new(),
            &Choice::default(),
            &facts,
            Path::new("/out"),
        );
        assert_eq!(value(&made, "NODE_OPTIONS"), None);
        assert_eq!(value(&made, "ERL_ZFLAGS"), None);
        assert!(value(&made, "JAVA_TOOL_OPTIONS").is_some());
        let [note] = &made.notes[..] else {
            panic!("{:?}", made.notes)
        };
        assert_eq!(
            note.text,
            "/w cannot be written, where dumps would lie: no switch for node, deno, qemu"
        );
    }
}
