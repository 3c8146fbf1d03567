//! perf's configuration files: `report.*`, `call-graph.*` and `buildid.dir` out of `~/.perfconfig`.
//!
//! The format is git's: `[section]`, `name = value`, `#` and `;` start comments. Other settings are perf's own business and are
//! skipped; a value that means nothing is a warning. Read only when not forbidden by `--no-config`.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::input::Door;
use crate::report::keys::SortSpec;
use crate::report::options::{CallGraph, ReportOptions};

/// Settings of the files that pjit honours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PerfConfig {
    settings: Vec<(String, String)>,
}

impl PerfConfig {
    /// Parses the text of a file; later settings win.
    pub fn add(&mut self, text: &str) {
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.split(']').next())
            {
                section = name.trim().to_ascii_lowercase();
            } else if let Some((name, value)) = line.split_once('=')
                && !line.starts_with(['#', ';'])
            {
                let name = format!("{section}.{}", name.trim().to_ascii_lowercase());
                self.settings.push((name, unquoted(value.trim())));
            }
        }
    }

    /// What the files say that are there.
    #[must_use]
    pub fn read(variable: Option<&Path>, home: Option<&Path>) -> Self {
        let mut config = Self::default();
        for path in Self::paths(variable, home) {
            if let Some(text) = small_file(&path) {
                config.add(&text);
            }
        }
        config
    }

    /// The files that perf reads: the one `PERF_CONFIG` names, or the system's and the user's.
    #[must_use]
    pub fn paths(variable: Option<&Path>, home: Option<&Path>) -> Vec<PathBuf> {
        match variable {
            Some(path) => vec![path.to_owned()],
            None => {
                let own = home.map(|home| home.join(".perfconfig"));
                std::iter::once(PathBuf::from("/etc/perfconfig"))
                    .chain(own)
                    .collect()
            }
        }
    }

    /// The build-ID cache to use.
    #[must_use]
    pub fn buildid_dir(&self, home: Option<&Path>) -> Option<PathBuf> {
        let value = self.last("buildid.dir")?;
        Some(match (value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(value),
        })
    }

    /// Applies the settings to the defaults, before the command line. Returns what was not understood.
    pub fn apply(&self, options: &mut ReportOptions) -> Vec<String> {
        self.settings
            .iter()
            .filter_map(|(name, value)| apply_one(name, value, options).err())
            .collect()
    }

    fn last(&self, name: &str) -> Option<&str> {
        self.settings
            .iter()
            .rev()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A configuration file; `None` when there is none, or it is not one.
fn small_file(path: &Path) -> Option<String> {
    const LARGEST: u64 = 1 << 20;
    let file = Door::named(path).open().ok()?;
    let is_small = file.meta().is_file() && file.meta().len() <= LARGEST;
    let mut bytes = Vec::new();
    let part = is_small
        .then(|| file.file().take(LARGEST))?
        .read_to_end(&mut bytes);
    part.ok()
        .map(|_| String::from_utf8_lossy(&bytes).into_owned())
}

/// The value without quotes, or without a comment behind it.
fn unquoted(value: &str) -> String {
    let quoted = value
        .strip_prefix('"')
        .and_then(|rest| rest.split('"').next());
    quoted
        .unwrap_or_else(|| {
            value
                .split(['#', ';'])
                .next()
                .unwrap_or_default()
                .trim_end()
        })
        .to_owned()
}

fn apply_one(name: &str, value: &str, options: &mut ReportOptions) -> Result<(), String> {
    let wrong = || format!("perfconfig: {name} = {value} is not understood and not used");
    match name {
        "report.children" => options.rows.children = boolean(value).ok_or_else(wrong)?,
        "report.group" => {
            options.rows.group = if boolean(value).ok_or_else(wrong)? {
                crate::report::options::Grouping::AsRecorded
            } else {
                crate::report::options::Grouping::Separate
            }
        }
        "report.skip-empty" => options.rows.skip_empty = boolean(value).ok_or_else(wrong)?,
        "report.percent-limit" => {
            options.rows.percent_limit = percentage(value).ok_or_else(wrong)?;
            options.chains.call_graph.threshold = options.rows.percent_limit;
        }
        "report.sort_order" => {
            let keys = SortSpec::parse(value, SortSpec::default_keys()).map_err(|_| wrong())?;
            if !keys.named.is_empty() {
                return Err(wrong());
            }
            options.columns.default_sort = Some(keys);
        }
        "call-graph.print-type" | "call-graph.order" | "call-graph.sort-key" => {
            apply_word(&mut options.chains.call_graph, value).ok_or_else(wrong)?;
        }
        "call-graph.threshold" => {
            options.chains.call_graph.threshold = percentage(value).ok_or_else(wrong)?
        }
        "call-graph.print-limit" => {
            options.chains.call_graph.print_limit = value.parse().map_err(|_| wrong())?
        }
        _ => {}
    }
    Ok(())
}

/// One word of `--call-graph`'s argument, but no number and no list.
fn apply_word(graph: &mut CallGraph, value: &str) -> Option<()> {
    let is_word = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphabetic());
    is_word.then_some(())?;
    graph.apply(value).ok().map(|_| ())
}

fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" | "" => Some(false),
        _ => None,
    }
}

fn percentage(value: &str) -> Option<f64> {
    value
        .trim_end_matches('%')
        .parse::<f64>()
        .ok()
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::options::{CallGraphMode, ChainOrder, Grouping};

    #[test]
    fn known_settings_become_defaults() {
        let mut config = PerfConfig::default();
        config.add(
            "# mine\n[report]\n\tchildren = false\n percent-limit = 2 # low\n group = off\n sort_order = dso,sym\n\
             [call-graph]\nprint-type = \"fractal\"\norder = callee\n[buildid]\n dir = ~/cache\n[ui]\n browser = off\n",
        );
        let mut options = ReportOptions::default();
        assert!(config.apply(&mut options).is_empty());
        assert!(
            !options.rows.children
                && options.rows.percent_limit == 2.0
                && options.chains.call_graph.threshold == 2.0
        );
        assert_eq!(options.rows.group, Grouping::Separate);
        assert_eq!(options.chains.call_graph.mode, CallGraphMode::Fractal);
        assert_eq!(options.chains.call_graph.order, Some(ChainOrder::Callee));
        assert_eq!(
            options.columns.default_sort.map(|sort| sort.levels.len()),
            Some(2)
        );
        assert_eq!(
            config.buildid_dir(Some(Path::new("/home/u"))),
            Some(PathBuf::from("/home/u/cache"))
        );
    }

    #[test]
    fn nonsense_is_told() {
        let mut config = PerfConfig::default();
        config.add("[report]\nchildren = maybe\nsort_order = nonsense\n[call-graph]\nprint-limit = -1\n=\n[");
        let told = config.apply(&mut ReportOptions::default());
        assert_eq!(told.len(), 3, "{told:?}");
    }
}
