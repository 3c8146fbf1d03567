//! What would put a finding right: commands and options, ready to be typed.

use std::collections::BTreeSet;

use crate::collect::{DumpSizes, LARGEST_DUMP};
use crate::runtimes::{Producer, Runtime, programs};

use super::remedy::Remedy;
use super::{Culprit, Whole};

/// Sizes are recommended in steps of so many bytes.
const STEP: u64 = 1024;
/// Registers and the longest chain of callers of a sample, whose record holds 64 KB with its copied stack.
const LEFT_OUT: u64 = 2048;

/// `--call-graph dwarf,SIZE` that would have sufficed for all stacks that a dump can hold; `None` where no
/// larger one can be had.
pub(super) fn dump_size(sizes: &DumpSizes) -> Option<u64> {
    let wanted = match sizes.known - sizes.beyond {
        0 => LARGEST_DUMP,
        // Larger than what was too short, even where the kernel took some of what was asked for.
        _ => sizes
            .needed
            .max(sizes.copied + 1)
            .next_multiple_of(STEP)
            .min(LARGEST_DUMP),
    };
    // Of the largest the kernel leaves out what the record's other parts take.
    let is_largest = sizes.copied + LEFT_OUT > LARGEST_DUMP;
    (wanted > sizes.copied && !is_largest).then_some(wanted)
}

/// How to record stacks that were cut: the one way that helps most of them. Go keeps frame pointers always, and goroutines
/// whose stacks are cut are as a rule deep.
pub(super) fn for_short_stacks(sizes: &DumpSizes, is_go: bool) -> Remedy {
    let helps_most = sizes.known == 0 || sizes.beyond * 2 <= sizes.known;
    match dump_size(sizes).filter(|_| helps_most) {
        Some(size) => Remedy::record(format!("--call-graph dwarf,{size}")),
        None if is_go => Remedy::record("-g"),
        None => Remedy::record("-g")
            .then(", with everything built by -fno-omit-frame-pointer, has no such limit"),
    }
}

/// How code gets frames that can be followed. `were_kept`: runtimes that can be told to keep frame pointers were told so.
pub(super) fn for_frames(culprits: &[Culprit], were_kept: bool) -> Vec<Remedy> {
    let runtimes = || culprits.iter().filter_map(|culprit| culprit.runtime);
    let has_file = culprits.iter().any(|culprit| culprit.runtime.is_none());
    let of_file = has_file
        .then_some("build it with -fasynchronous-unwind-tables, or with -fno-omit-frame-pointer");
    let is_there = |runtime: &&Runtime| runtimes().any(|found| found == runtime.producer);
    let named = Producer::all().filter(is_there).filter_map(|runtime| {
        let agent = runtime.agent.filter(|_| were_kept);
        let agent = agent.map(|why| Remedy::java_agent().then(why));
        agent.or_else(|| runtime.frames.map(Remedy::from))
    });
    let has_other = runtimes().any(|runtime| runtime.row().frames.is_none());
    let of_others = has_other.then_some(
        "code made at run time: have the runtime keep frame pointers or write a jitdump, which has the code",
    );
    let (of_file, of_others) = (of_file.map(Remedy::from), of_others.map(Remedy::from));
    of_file.into_iter().chain(named).chain(of_others).collect()
}

/// Where to put files that were not found. `changed`: something else lies in their place.
pub(super) fn for_files(culprits: &[Culprit], changed: bool) -> Vec<String> {
    let paths = culprits.iter().map(|culprit| culprit.path.as_str());
    let mut fixes = Vec::new();
    if let Some(path) = paths.clone().find(|path| path.starts_with('/')) {
        let path = match path.strip_suffix(" (deleted)") {
            Some(name) if name.starts_with("/memfd:") => name,
            _ => path,
        };
        let target = quoted(&format!("symfs{path}"));
        let which = if changed {
            "of the recorded build "
        } else {
            ""
        };
        fixes.push(format!(
            "copy the files {which}from the recorded machine to a folder, as in {target}, and give it: --symfs symfs"
        ));
        fixes.push(
            "or on that machine: perf buildid-cache --add FILE, and --buildid-dir ~/.debug here"
                .to_owned(),
        );
    }
    fixes.extend(for_builds(culprits));
    if paths.into_iter().any(|path| path.starts_with("[vdso")) {
        fixes.push(
            "[vdso]: copy ~/.debug/[vdso] of the recorded machine, and give --buildid-dir, or put the image into symfs/[vdso]"
                .to_owned(),
        );
    }
    fixes
}

/// Where symbols of files without any come from.
pub(super) fn for_stripped(culprits: &[Culprit]) -> Vec<String> {
    let (mut packages, mut unknown, mut own) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut has_modules = false;
    let (parts, culprits): (Vec<_>, Vec<_>) =
        culprits.iter().partition(|culprit| culprit.rest.is_some());
    for culprit in &culprits {
        match Source::of(culprit) {
            Source::Package(name) => drop(packages.insert(name)),
            Source::UnknownPackage => unknown.push(quoted(&culprit.path)),
            Source::Own => own.push(culprit.name.as_str()),
            Source::Module => has_modules = true,
            Source::Nobody => {}
        }
    }
    let mut fixes = Vec::new();
    if !packages.is_empty() {
        let packages: Vec<String> = packages.into_iter().collect();
        fixes.push(format!("apt install {}", packages.join(" ")));
    }
    if !unknown.is_empty() {
        fixes.push(format!(
            "apt install the -dbgsym packages that find-dbgsym-packages {} (of debian-goodies) names",
            unknown.join(" ")
        ));
    }
    if !own.is_empty() {
        fixes.push(format!(
            "build {} with -g, without -s and strip",
            own.join(", ")
        ));
    }
    fixes.extend(parts.iter().filter_map(|culprit| {
        let rest = culprit.rest.as_ref()?;
        let place = if rest.starts_with('/') {
            let target = quoted(&format!("symfs{rest}"));
            format!("to {target}, and give it: --symfs symfs")
        } else {
            "to there, as seen from its debug file".to_owned()
        };
        Some(format!(
            "copy the {rest} that {} was built with {place}",
            culprit.name
        ))
    }));
    fixes.extend(for_builds(culprits));
    if has_modules {
        fixes.push("-m reads kernel modules from their files".to_owned());
    }
    fixes
}

/// What a server may have, of the first whose build is known.
fn for_builds<'c>(culprits: impl IntoIterator<Item = &'c Culprit>) -> Option<String> {
    culprits.into_iter().find_map(|culprit| {
        let id = culprit.build_id.filter(|_| culprit.path.starts_with('/'))?;
        let name = &culprit.name;
        Some(format!(
            "pjit fetch may bring the debug file of {name} (build ID {id})"
        ))
    })
}

/// Who has the symbols of a file.
enum Source {
    Package(String),
    UnknownPackage,
    Own,
    Module,
    Nobody,
}

impl Source {
    fn of(culprit: &Culprit) -> Self {
        const LIBC: [&str; 9] = [
            "libc.so.",
            "libm.so.",
            "libmvec.so.",
            "libpthread.so.",
            "librt.so.",
            "libdl.so.",
            "libresolv.so.",
            "ld-linux",
            "libc-",
        ];
        let (name, path) = (&culprit.name, &culprit.path);
        if path.contains(".ko") && name.starts_with('[') {
            return Self::Module;
        }
        // Runtimes are released without symbols, and nobody builds them anew.
        let is_released = || programs::is_runtime(name) && !path.starts_with("/usr/bin/");
        if !path.starts_with('/') || is_released() {
            return Self::Nobody;
        }
        if LIBC.iter().any(|prefix| name.starts_with(prefix)) {
            return Self::Package("libc6-dbg".to_owned());
        }
        let python = name
            .strip_prefix("libpython")
            .or(name.strip_prefix("python"));
        if let Some(version) = python.and_then(python_version) {
            return Self::Package(format!("python{version}-dbg"));
        }
        let system = [
            "/usr/bin/",
            "/usr/sbin/",
            "/usr/lib",
            "/bin/",
            "/sbin/",
            "/lib",
        ];
        if system.iter().any(|folder| path.starts_with(folder)) {
            Self::UnknownPackage
        } else {
            Self::Own
        }
    }
}

/// `3.11` of `3.11` and `3.11.so.1.0`.
fn python_version(rest: &str) -> Option<&str> {
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let version = rest[..end].trim_end_matches('.');
    version.starts_with("3.").then_some(version)
}

/// Larger rings than the recording had.
pub(super) fn larger_rings(whole: &Whole) -> Remedy {
    Remedy::record(if whole.has_large_rings {
        "-m 64M"
    } else {
        "-m 16M"
    })
}

/// A larger buffer, or less to put into it.
pub(super) fn for_loss(whole: &Whole) -> [Remedy; 2] {
    let less = match whole.frequency {
        Some(hertz) => Remedy::record(format!("-F {}", (hertz / 4).max(1))),
        None => Remedy::record("-c with a larger period"),
    };
    [
        larger_rings(whole).then(" (as root, or after sysctl kernel.perf_event_mlock_kb=65536)"),
        less.then(", and no larger --call-graph dwarf,SIZE than needed"),
    ]
}

/// A word for a shell, whatever is in it. Control characters are made visible where it is printed.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
