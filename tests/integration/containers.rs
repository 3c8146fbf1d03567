//! Programs in two containers that have the same paths there: each has its own names or none.
//!
//! The roots are two versions of Debian, which `.ci/run` has debootstrap make.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::live::Lab;
use crate::support::skip;

const SUITES: [&str; 2] = ["bookworm", "trixie"];
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
const LIBRARY: &str = "lib/x86_64-linux-gnu/libc.so.6";
/// In both roots, and not here.
const APP: &str = "opt/pjit-app";

/// The two, each with a linked program and a static one of the same paths.
fn roots(lab: &Lab) -> Option<[PathBuf; 2]> {
    let made = SUITES.map(|suite| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("target/roots")
            .join(suite);
        let own = lab.path(suite);
        let built = |name: &str, flags: &[&str]| {
            let status = Command::new("gcc")
                .args(["-O1", "-g", &format!("-DNAME={name}")])
                .args(flags)
                .arg(Lab::program("sorts.c"))
                .status();
            status.is_ok_and(|status| status.success())
        };
        for file in [LOADER, LIBRARY] {
            let to = own.join(file);
            fs::create_dir_all(to.parent()?).ok()?;
            fs::copy(root.join(file), to).ok()?;
        }
        let app = own.join(APP);
        fs::create_dir_all(&app).ok()?;
        let [linked, alone] = ["linked", "alone"].map(|name| app.join(name).display().to_string());
        let is_built = built("of_both", &["-o", &linked])
            && built(&format!("of_{suite}"), &["-static", "-o", &alone]);
        is_built.then_some(own)
    });
    let [Some(first), Some(second)] = made else {
        skip("roots", "target/roots has no two roots of debootstrap");
        return None;
    };
    Some([first, second])
}

fn recorded(lab: &Lab, roots: &[PathBuf; 2]) -> Option<()> {
    let inside = |root: &Path, program: &str| {
        format!("unshare -Umr chroot {} /{APP}/{program} 8", root.display())
    };
    if !Command::new("sh")
        .args(["-c", &inside(&roots[0], "linked")])
        .status()
        .is_ok_and(|status| status.success())
    {
        skip("unshare", "no namespace can be made");
        return None;
    }
    let all = roots
        .iter()
        .flat_map(|root| ["linked", "alone"].map(|program| inside(root, program)));
    let script = all.map(|line| line + " & ").collect::<String>() + "wait";
    lab.record("x.data", &["-e", "cpu-clock", "-g"], &["sh", "-c", &script])?;
    Some(())
}

/// The functions of the programs' own files, by process.
fn names(lab: &Lab, options: &[&str]) -> (BTreeMap<String, BTreeSet<String>>, String) {
    let view = [
        &["report", "--stdio", "--no-children", "-g", "none", "-s"],
        &["pid,dso,sym"][..],
        options,
    ]
    .concat();
    let (status, out, said) = lab.pjit(&view, "x.data");
    assert_eq!(status, 0, "{said}");
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in out.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, process, "linked" | "alone", _, name] = words[..] {
            let of = names.entry(process.to_owned()).or_default();
            of.extend((!name.starts_with("0x")).then(|| name.to_owned()));
        }
    }
    assert_eq!(names.len(), 4, "{out}");
    (names, said)
}

#[test]
fn each_root_has_its_own_names() {
    let lab = Lab::empty("containers");
    let Some(roots) = roots(&lab) else { return };
    let (flat, program) = (lab.path("flat"), roots[0].join(APP).join("alone"));
    fs::create_dir(&flat).expect("made");
    // Afterwards a file is not the one that was there: its inode was written.
    fs::hard_link(program, flat.join("alone")).expect("linked");
    if recorded(&lab, &roots).is_none() {
        return;
    }
    let of_roots = |said: &str| {
        said.lines()
            .filter(|line| line.contains(" ran in "))
            .count()
    };
    // Without the roots there are no names, and one message for all of it.
    let (none, said) = names(&lab, &[]);
    assert!(none.values().all(BTreeSet::is_empty), "{none:?}");
    assert_eq!(said.matches("warning:").count(), 1, "{said}");
    assert!(said.contains("4 processes (") && said.contains("at least 2 other roots"));
    assert!(said.lines().all(|line| line.len() <= 300), "{said}");
    let [first, second] = roots.each_ref().map(|root| root.display().to_string());
    // With one of them there are its names, and none for the other one's programs.
    let (one, said) = names(&lab, &["--symfs", &first]);
    let has = |names: &BTreeMap<String, BTreeSet<String>>, wanted: &str| {
        let of = names.values().filter(|names| names.contains(wanted));
        of.count()
    };
    assert_eq!(has(&one, "of_bookworm"), 1, "{one:?}");
    assert_eq!(has(&one, "of_trixie"), 0, "{one:?}");
    assert_eq!(has(&one, "of_both"), 1, "{one:?}");
    assert_eq!(of_roots(&said), 1, "{said}");
    for order in [[&first, &second], [&second, &first]] {
        let (both, _) = names(&lab, &["--symfs", order[0], "--symfs", order[1]]);
        assert_eq!(has(&both, "of_bookworm"), 1, "{both:?}");
        assert_eq!(has(&both, "of_trixie"), 1, "{both:?}");
        assert_eq!(has(&both, "of_both"), 2, "{both:?}");
        let mixed = both
            .values()
            .filter(|names| names.contains("of_bookworm") && names.contains("of_trixie"));
        assert_eq!(mixed.count(), 0, "{both:?}");
    }
    // Files side by side are known by the last parts of their paths.
    let flat = lab.path("flat").display().to_string();
    let (found, _) = names(&lab, &["--symfs", &format!("{flat},flat")]);
    assert_eq!(has(&found, "of_bookworm"), 1, "{found:?}");
    assert_eq!(has(&found, "of_trixie"), 0, "{found:?}");
    for whole in [flat.clone(), format!("{flat},hierarchy")] {
        let (found, _) = names(&lab, &["--symfs", &whole]);
        assert!(found.values().all(BTreeSet::is_empty), "{found:?}");
    }
}
