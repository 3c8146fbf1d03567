//! The plan as commands that a person can type.

use std::ffi::OsStr;
use std::path::Path;

use super::Target;
use super::environment::Environment;
use super::options::Options;
use super::probes::Probes;

/// Lines for a shell that record the same, as far as perf does it alone; `stop_watch` ends a recording of what runs already.
#[must_use]
pub fn lines(
    environment: &Environment,
    options: &Options,
    target: &Target,
    folder: &Path,
    stop_watch: &[std::ffi::OsString],
) -> Vec<String> {
    let mut lines = vec![format!("mkdir -m 700 {}", quoted(folder.as_os_str()))];
    for file in &environment.files {
        let made = file.folder.join(file.name);
        lines.push(format!(
            "mkdir {} && echo {} >{}",
            quoted(file.folder.as_os_str()),
            quoted(OsStr::new(file.text.trim_end())),
            quoted(made.as_os_str())
        ));
    }
    for variable in &environment.variables {
        lines.push(format!(
            "export {}={}",
            variable.name,
            quoted(&variable.value)
        ));
    }
    const LIST: &str = "/sys/kernel/tracing/uprobe_events";
    let definitions = options.probes.iter().flat_map(Probes::lines);
    lines.extend(definitions.map(|probe| format!("echo {} >>{LIST}", quoted(OsStr::new(&probe)))));
    let mut words = vec!["perf".to_owned(), "record".to_owned()];
    words.extend(options.words().iter().map(|word| quoted(OsStr::new(word))));
    words.push("-o".to_owned());
    words.push(quoted(folder.join("perf.data").as_os_str()));
    let command = match target {
        Target::Command(command) => command.as_slice(),
        Target::Processes(pids) => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            words.extend(["-p".to_owned(), pids.join(",")]);
            stop_watch
        }
        Target::Machine => {
            words.push("-a".to_owned());
            stop_watch
        }
    };
    if !command.is_empty() {
        words.push("--".to_owned());
        words.extend(command.iter().map(|word| quoted(word)));
    }
    lines.push(words.join(" "));
    if let Some(probes) = &options.probes {
        let names = probes.all.iter().map(|probe| &probe.name);
        let group = &probes.group;
        lines.extend(names.map(|name| format!("echo -:{group}/{name} >>{LIST}")));
    }
    lines
}

/// A word for a shell, whatever is in it.
#[must_use]
pub fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Words as one line of a shell.
#[must_use]
pub fn line(words: &[std::ffi::OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::options::Asked;
    use super::super::{Facts, environment};
    use super::*;

    #[test]
    fn a_plan_can_be_typed() {
        let facts = Facts {
            is_root: true,
            locks_freely: true,
            sees_kernel: true,
            cpus: 2,
            here_is_writable: true,
            temporary_is_writable: true,
            ..Facts::default()
        };
        let target = Target::Command(vec!["node".into(), "a b.js".into()]);
        let folder = Path::new("/w/out");
        let without: Vec<String> = environment::words()
            .into_iter()
            .filter(|word| !["node", "php"].contains(word))
            .map(str::to_owned)
            .collect();
        let choice = environment::Choice {
            without,
            java_agent: None,
        };
        let environment = environment::plan(&BTreeMap::new(), &choice, &facts, folder);
        let options = Options::of(&Asked::default(), &target, &facts);
        assert_eq!(
            lines(&environment, &options, &target, folder, &[]),
            [
                "mkdir -m 700 /w/out",
                "mkdir /w/out/.php && echo opcache.jit_debug=0x20 >/w/out/.php/99-pjit.ini",
                "export NODE_OPTIONS='--perf-prof --interpreted-frames-native-stack'",
                "export PHP_INI_SCAN_DIR=:/w/out/.php",
                "perf record -F 999 -k mono --call-graph dwarf,65528 -m 16M -z --buildid-mmap -o /w/out/perf.data -- \
                 node 'a b.js'",
            ]
        );
        let machine = lines(
            &Environment::default(),
            &options,
            &Target::Machine,
            folder,
            &["sleep".into(), "10".into()],
        );
        assert!(machine[1].ends_with("-a -- sleep 10"), "{machine:?}");
    }
}
