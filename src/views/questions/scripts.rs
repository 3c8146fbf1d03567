//! Which scripts of a recording have source maps.
//!
//! In: a profile. Out: [`Scripts`]. Where one side of a comparison has the map of a bundle and the other has not, the names of the
//! one are those of the original, of the other those of a minifier: both are compared by the runtime's words then.

use std::collections::BTreeSet;

use crate::profile::Profile;
use crate::runtimes::CleanName;

use crate::runtimes::package::is_package;

/// The scripts that functions with samples are of, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scripts {
    mapped: BTreeSet<String>,
    /// Without a map; those of packages are what their authors wrote.
    bare: BTreeSet<String>,
}

impl Scripts {
    /// Those of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let mut scripts = Self::default();
        for symbol in &profile.symbols {
            let producer = symbol
                .producer
                .filter(|producer| producer.row().has_source_maps);
            let Some(producer) = producer else {
                continue;
            };
            let clean = CleanName::of(symbol.recorded_name(), Some(producer));
            if symbol.recorded.is_some() {
                scripts.mapped.insert(clean.file);
            } else if clean.file.starts_with('/')
                && !is_package(&clean.file)
                && (clean.line, clean.column) != (1, 1)
            {
                scripts.bare.insert(clean.file);
            }
        }
        scripts
    }

    /// A script of which one of these has the map and another one has not, where those have none at all or one of this name.
    #[must_use]
    pub fn at_odds<'s>(all: &[&'s Self]) -> Option<&'s str> {
        let mapped: BTreeSet<&str> = all
            .iter()
            .flat_map(|of| &of.mapped)
            .map(|path| base(path))
            .collect();
        if mapped.is_empty() {
            return None;
        }
        // What ran without a map beside a bundle is what its authors wrote.
        let has_both = all.iter().filter(|of| !of.mapped.is_empty());
        let written: BTreeSet<&String> = has_both.flat_map(|of| &of.bare).collect();
        let mut bare = all.iter().flat_map(|of| {
            let paths = of.bare.iter();
            paths.map(|path| (of.mapped.is_empty() && !written.contains(path), path))
        });
        let found = bare.find(|(is_all, path)| *is_all || mapped.contains(base(path)));
        found.map(|(_, path)| path.as_str())
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts(mapped: &[&str], bare: &[&str]) -> Scripts {
        let [mapped, bare] =
            [mapped, bare].map(|all| all.iter().map(|path| (*path).to_owned()).collect());
        Scripts { mapped, bare }
    }

    #[test]
    fn a_map_on_one_side_alone_is_noticed() {
        let mapped = scripts(&["/app/out.js"], &["/app/tool.js"]);
        let bare = scripts(&[], &["/old/out.js"]);
        assert_eq!(Scripts::at_odds(&[&mapped, &bare]), Some("/old/out.js"));
        assert_eq!(Scripts::at_odds(&[&mapped, &mapped]), None);
        assert_eq!(Scripts::at_odds(&[&bare, &bare]), None);
        // A name with a hash in it is another one in each build.
        let hashed = scripts(&[], &["/old/out.12ab.js"]);
        assert_eq!(
            Scripts::at_odds(&[&hashed, &mapped]),
            Some("/old/out.12ab.js")
        );
        let other = scripts(&["/old/out.js"], &["/old/tool2.js"]);
        assert_eq!(Scripts::at_odds(&[&mapped, &other]), None);
        let half = scripts(&["/old/main.js"], &["/old/out.js"]);
        assert_eq!(Scripts::at_odds(&[&mapped, &half]), Some("/old/out.js"));
        assert_eq!(Scripts::at_odds(&[&mapped, &Scripts::default()]), None);
        let tool = scripts(&[], &["/app/tool.js"]);
        assert_eq!(Scripts::at_odds(&[&mapped, &tool]), None);
    }
}
