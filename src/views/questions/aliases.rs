//! Functions that have several names in their file: aliases, and equal code that a linker or a compiler made one.
//!
//! In: the functions of both sides. Out: what functions of the base are called in the new side ([`Aliases`]), and which functions' time may be
//! another one's ([`Folded`]). Which of its names a function has in tables depends on the others, so that one more renames it.

use std::collections::{BTreeMap, BTreeSet};

use crate::functions::{Beside, FunctionId, Functions, Identity};
use crate::profile::Profile;
use crate::runtimes::CleanName;

/// Object and name.
type Key<'r> = (&'r str, &'r str);

fn key(identity: &Identity) -> Key<'_> {
    (&identity.object, &identity.name.name)
}

/// What else a function is called in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// All other names.
    pub names: BTreeSet<String>,
    /// Another function whose code is the same.
    pub folded: Option<String>,
}

/// A function of a run, and what else it is called.
pub type Known<'r> = (&'r Identity, Option<&'r Named>);

/// The names in the new side, by object and name in the base, of functions that are there under a name of the same code.
#[derive(Debug, Clone, Default)]
pub struct Aliases(BTreeMap<(String, String), String>);

impl Aliases {
    /// Of runs whose objects are called alike. A function that has its name on the other side keeps it, and one that may be two there
    /// stays alone.
    #[must_use]
    pub fn of(base: &[Known<'_>], new: &[Known<'_>]) -> Self {
        if base.iter().chain(new).all(|(_, named)| named.is_none()) {
            return Self::default();
        }
        let (olds, news) = (Names::of(base), Names::of(new));
        let mut by_name: BTreeMap<Key<'_>, BTreeSet<&str>> = BTreeMap::new();
        for ((object, name), others) in news.without(&olds) {
            for known in others.iter().copied().chain([*name]) {
                by_name.entry((object, known)).or_default().insert(name);
            }
        }
        // By function of the new side: those of the base.
        let mut found: BTreeMap<Key<'_>, Vec<&str>> = BTreeMap::new();
        for ((object, name), others) in olds.without(&news) {
            let known = others.iter().copied().chain([*name]);
            let same = known.filter_map(|known| by_name.get(&(object, known)));
            let same: BTreeSet<&str> = same.flatten().copied().collect();
            if same.len() == 1 {
                let one = same.into_iter().map(|newer| (*object, newer));
                one.for_each(|newer| found.entry(newer).or_default().push(name));
            }
        }
        let pairs = found.into_iter();
        let pairs = pairs.filter_map(|((object, newer), older)| match older[..] {
            [old] => Some(((object.to_owned(), old.to_owned()), newer.to_owned())),
            _ => None,
        });
        Self(pairs.collect())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A function of the base as the new side calls it.
    #[must_use]
    pub fn as_new(&self, identity: Identity) -> Identity {
        let Identity { object, name, .. } = &identity;
        let key = (object.clone(), name.name.clone());
        match self.0.get(&key) {
            Some(newer) => by_name(&identity, newer),
            None => identity,
        }
    }
}

/// A function by another of its names. What tells it from others of its own name says nothing of that one.
pub(super) fn by_name(identity: &Identity, name: &str) -> Identity {
    let beside = Beside {
        path: identity.beside.path.clone(),
        ..Beside::default()
    };
    Identity {
        object: identity.object.clone(),
        name: CleanName::plain(name),
        beside,
    }
}

/// The functions of a side, with all their names.
struct Names<'r>(BTreeMap<Key<'r>, BTreeSet<&'r str>>);

impl<'r> Names<'r> {
    fn of(functions: &[Known<'r>]) -> Self {
        let mut names: BTreeMap<Key<'r>, BTreeSet<&str>> = BTreeMap::new();
        for (identity, named) in functions {
            let all = names.entry(key(identity)).or_default();
            let others = named.iter().flat_map(|of| &of.names);
            all.extend(others.map(String::as_str));
        }
        Self(names)
    }

    /// Those that the other side has not by these names.
    fn without<'n>(
        &'n self,
        other: &'n Self,
    ) -> impl Iterator<Item = (&'n Key<'r>, &'n BTreeSet<&'r str>)> {
        let all = self.0.iter();
        all.filter(|(key, _)| !other.0.contains_key(*key))
    }
}

/// Functions of both sides whose time may be another one's, by object and name.
#[derive(Debug, Clone, Default)]
pub struct Folded<'r>(BTreeMap<Key<'r>, &'r str>);

impl<'r> Folded<'r> {
    /// Those that are one with another one on some side, whichever of them has the name there.
    #[must_use]
    pub fn of(functions: impl IntoIterator<Item = (&'r Identity, &'r Named)>) -> Self {
        let mut all = BTreeMap::new();
        for (identity, named) in functions {
            let Some(folded) = &named.folded else {
                continue;
            };
            let (object, own) = key(identity);
            all.entry((object, own)).or_insert(folded.as_str());
            for name in named.names.iter().filter(|name| *name != own) {
                all.entry((object, name)).or_insert(own);
            }
        }
        Self(all)
    }

    /// Another function that has the code, too.
    #[must_use]
    pub fn other(&self, identity: &Identity) -> Option<&'r str> {
        self.0.get(&key(identity)).copied()
    }
}

/// Functions of a recording whose code is another one's, too: what both are called.
#[must_use]
pub fn shared_code(
    profile: &Profile,
    functions: &Functions,
) -> BTreeMap<FunctionId, (String, String)> {
    let frames = profile.frames.iter_enumerated();
    let shared = frames.filter_map(|(id, frame)| {
        let symbol = &profile[frame.symbol?];
        let other = symbol.folded_with()?;
        Some((
            functions.of_frame(id),
            (symbol.name.clone(), other.to_owned()),
        ))
    });
    shared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str) -> Identity {
        Identity {
            object: "app".to_owned(),
            name: CleanName::plain(name),
            ..Identity::default()
        }
    }

    /// Functions with their other names.
    type Side = Vec<(Identity, Option<Named>)>;

    fn side(functions: &[(&str, &[&str])]) -> Side {
        let function = |(name, others): &(&str, &[&str])| {
            let named = Named {
                names: others.iter().map(|name| (*name).to_owned()).collect(),
                folded: others.first().map(|name| (*name).to_owned()),
            };
            (identity(name), Some(named).filter(|_| !others.is_empty()))
        };
        functions.iter().map(function).collect()
    }

    fn known(side: &Side) -> Vec<Known<'_>> {
        let known = side.iter();
        known.map(|(of, named)| (of, named.as_ref())).collect()
    }

    fn told(base: &Side, new: &Side, name: &str) -> String {
        let aliases = Aliases::of(&known(base), &known(new));
        aliases.as_new(identity(name)).name.name
    }

    #[test]
    fn a_function_is_found_by_any_of_its_names() {
        let plain = side(&[("compress", &[]), ("main", &[])]);
        let longer = side(&[("compress_v2_compat", &["compress"]), ("main", &[])]);
        assert_eq!(told(&plain, &longer, "compress"), "compress_v2_compat");
        assert_eq!(told(&longer, &plain, "compress_v2_compat"), "compress");
        assert_eq!(told(&plain, &longer, "main"), "main");
        // Both names of one side are others than those of the other side but for one.
        let other = side(&[("zip", &["compress"])]);
        assert_eq!(told(&other, &longer, "zip"), "compress_v2_compat");
        // It has its name on both sides.
        let both = side(&[("compress", &[]), ("compress_v2_compat", &[])]);
        assert_eq!(told(&both, &longer, "compress"), "compress");
        // It may be either, or both are one.
        let two = side(&[("a", &["compress"]), ("b", &["compress"])]);
        assert_eq!(told(&plain, &two, "compress"), "compress");
        assert_eq!(told(&two, &plain, "a"), "a");
    }

    #[test]
    fn folded_functions_are_told_by_either_name() {
        let all = side(&[("audio::mix", &["render::blend"]), ("main", &[])]);
        let folded = known(&all)
            .into_iter()
            .filter_map(|(of, named)| Some((of, named?)));
        let folded = Folded::of(folded);
        assert_eq!(folded.other(&identity("audio::mix")), Some("render::blend"));
        assert_eq!(folded.other(&identity("render::blend")), Some("audio::mix"));
        assert_eq!(folded.other(&identity("main")), None);
    }
}
