//! The program of a comparison where its file has another name on each side: `app-old` and `app-new`.
//!
//! In: what the recordings of both sides ran. Out: the two names, if each side has one program that the other has not. `diff`, `gate`
//! and `flamegraph --diff` then take both for one object; what a function is called is not looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{is_runtime, without_version};
use super::tally::of_event;
use super::{Identity, object_label};
use crate::ids::{IndexVec, index_vec};
use crate::profile::{EventId, ObjectId, Profile, ThreadId};
use crate::runtimes::Ecosystem;

/// What a recording ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Programs {
    /// Weight of the processes that ran it, by label.
    weights: BTreeMap<String, u64>,
    total: u64,
    /// Labels of all objects that samples or frames hit.
    objects: BTreeSet<String>,
}

impl Programs {
    /// Of the samples of an event.
    #[must_use]
    pub fn of(profile: &Profile, event: EventId) -> Self {
        let mut of_thread: IndexVec<ThreadId, u64> = index_vec![0; profile.threads.len()];
        for entry in of_event(profile, event) {
            let weight = &mut of_thread[entry.thread];
            *weight = weight.saturating_add(entry.period);
        }
        let label = |id: ObjectId| object_label(Some(&profile[id]), false);
        let mut programs = Self {
            objects: profile.objects.indices().map(label).collect(),
            ..Self::default()
        };
        for (thread, weight) in profile.threads.iter().zip(of_thread) {
            programs.total = programs.total.saturating_add(weight);
            if let Some(main) = thread.main.filter(|_| weight > 0) {
                let sum = programs.weights.entry(label(main)).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        programs
    }

    /// One program that ran all the time.
    #[cfg(test)]
    pub(crate) fn for_tests(label: &str, weight: u64) -> Self {
        Self {
            weights: [(label.to_owned(), weight)].into(),
            total: weight,
            objects: [label.to_owned()].into(),
        }
    }

    /// Whether a program has a tenth of the weight: others may have been hit by chance.
    fn is_large(&self, label: &str) -> bool {
        let weight = self.weights.get(label).copied().unwrap_or(0);
        weight > 0 && u128::from(weight) * 10 >= u128::from(self.total)
    }
}

/// One program by two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameProgram {
    /// In the base.
    pub base: String,
    /// In the new side.
    pub new: String,
}

impl SameProgram {
    /// The names, if either side has exactly one program in all of its recordings that the other side does not have at all.
    #[must_use]
    pub fn of(base: &[&Programs], new: &[&Programs]) -> Option<Self> {
        let (old, new) = (only_in(base, new)?, only_in(new, base)?);
        // Node.js is no other version of Python.
        let is_known = is_runtime(old, true) || is_runtime(new, true);
        (!is_known || without_version(old) == without_version(new)).then(|| Self {
            base: old.to_owned(),
            new: new.to_owned(),
        })
    }

    /// As a line says it.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} (base) and {} (new) are taken for one program",
            self.base, self.new
        )
    }

    /// A function or package of the base, as the new side would call it.
    #[must_use]
    pub fn as_new(&self, identity: Identity) -> Identity {
        renamed(identity, &self.base, &self.new)
    }

    /// A function or package of the new side, as the base would call it.
    #[must_use]
    pub fn as_base(&self, identity: Identity) -> Identity {
        renamed(identity, &self.new, &self.base)
    }
}

fn renamed(mut identity: Identity, from: &str, to: &str) -> Identity {
    if identity.object == from {
        to.clone_into(&mut identity.object);
    } else if is_of_file(&identity) {
        // Names of crates have no dashes.
        let names = [
            (from, to.to_owned()),
            (&from.replace('-', "_"), to.replace('-', "_")),
        ];
        let name = &mut identity.name.name;
        if let Some((_, new)) = names.into_iter().find(|(old, _)| *old == name) {
            *name = new;
        }
    }
    identity
}

/// Whether an identity is that of a package which is called as a file or a crate: where it comes from stands for the object.
fn is_of_file(identity: &Identity) -> bool {
    let words = [Ecosystem::Own, Ecosystem::Object].map(Ecosystem::word);
    let is_package = words.contains(&identity.object.as_str());
    is_package && identity.beside.path.is_empty() && identity.name.file.is_empty()
}

/// The one program that all recordings of a side spend time in and no recording of the other side knows.
fn only_in<'p>(side: &[&'p Programs], other: &[&Programs]) -> Option<&'p str> {
    let all = side.first()?.weights.keys().map(String::as_str);
    let mut only = all.filter(|label| {
        let is_file = !label.starts_with('[');
        is_file
            && side.iter().all(|programs| programs.is_large(label))
            && !other
                .iter()
                .any(|programs| programs.objects.contains(*label))
    });
    let first = only.next();
    first.filter(|_| only.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::CleanName;

    fn programs(weights: &[(&str, u64)], objects: &[&str]) -> Programs {
        let labels = weights
            .iter()
            .map(|(label, _)| *label)
            .chain(objects.iter().copied());
        Programs {
            weights: weights
                .iter()
                .map(|(label, w)| ((*label).to_owned(), *w))
                .collect(),
            total: weights.iter().map(|(_, w)| w).sum(),
            objects: labels.map(str::to_owned).collect(),
        }
    }

    fn same(base: &[&Programs], new: &[&Programs]) -> Option<(String, String)> {
        SameProgram::of(base, new).map(|found| (found.base, found.new))
    }

    #[test]
    fn one_program_on_each_side_is_the_same() {
        let old = programs(&[("app-old", 90), ("dash", 5)], &["libc.so.6"]);
        let new = programs(&[("app-new", 80), ("dash", 9)], &["libc.so.6"]);
        let names = Some(("app-old".to_owned(), "app-new".to_owned()));
        assert_eq!(same(&[&old], &[&new]), names);
        assert_eq!(same(&[&old, &old], &[&new, &new, &new]), names);
        assert_eq!(same(&[&old], &[&old]), None);
        assert_eq!(same(&[], &[&new]), None);
    }

    #[test]
    fn what_is_not_clear_is_left_alone() {
        let old = programs(&[("app-old", 90)], &[]);
        let two = programs(&[("app-new", 50), ("helper", 50)], &[]);
        let chance = programs(&[("app-new", 95), ("helper", 5)], &[]);
        assert_eq!(same(&[&old], &[&two]), None);
        assert!(same(&[&old], &[&chance]).is_some());
        // Another program in each run of a side.
        let other = programs(&[("other", 90)], &[]);
        assert_eq!(same(&[&old, &other], &[&chance]), None);
        // The base has the new program, too: as a library, or beside the other one.
        let both = programs(&[("app-old", 90)], &["app-new"]);
        assert_eq!(same(&[&both], &[&chance]), None);
        let node = programs(&[("node", 90)], &[]);
        assert_eq!(same(&[&old], &[&node]), None);
        let python = programs(&[("python3", 90)], &[]);
        assert_eq!(same(&[&python], &[&node]), None);
        let versions = ["node-20", "node-22"].map(|name| programs(&[(name, 9)], &[]));
        assert!(same(&[&versions[0]], &[&versions[1]]).is_some());
        let jit = programs(&[("[jit]", 90)], &[]);
        assert_eq!(same(&[&old], &[&jit]), None);
    }
    #[test]
    fn the_packages_of_the_program_are_one_too() {
        let same = SameProgram {
            base: "app-old".to_owned(),
            new: "app-new".to_owned(),
        };
        let package = |from: Ecosystem, name: &str, file: &str| Identity {
            object: from.word().to_owned(),
            name: CleanName {
                file: file.to_owned(),
                ..CleanName::plain(name)
            },
            ..Identity::default()
        };
        for (from, old, file, new) in [
            (Ecosystem::Own, "app-old", "", "app-new"),
            (Ecosystem::Object, "app-old", "", "app-new"),
            (Ecosystem::Own, "app_old", "", "app_new"),
            (Ecosystem::Own, "app-old", "/w/app-old", "app-old"),
            (Ecosystem::Npm, "app-old", "", "app-old"),
            (Ecosystem::Own, "other", "", "other"),
        ] {
            let (old, new) = (package(from, old, file), package(from, new, file));
            assert_eq!(same.as_new(old.clone()), new);
            assert_eq!(same.as_base(new), old);
        }
    }
}
