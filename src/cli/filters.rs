//! Filters that all views of a profile share, with pprof's names.

use clap::Args;
use regex::Regex;

use super::question::regexes;
use crate::load::LoadOptions;
use crate::profile::Profile;
use crate::questions::filter::{Filters, Kept, Tag, apply};
use crate::questions::kinds::OwnRules;

/// Which samples are looked at, and which of their frames.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Samples and frames")]
pub struct StackFilterArgs {
    /// Only samples with a matching frame: name of a function, path of its object or source file (repeatable)
    #[arg(long = "focus", value_name = "REGEX")]
    focus: Vec<String>,

    /// No samples with a matching frame
    #[arg(long = "ignore", value_name = "REGEX")]
    ignore: Vec<String>,

    /// Remove matching frames; what they weigh goes to their callers
    #[arg(long = "hide", value_name = "REGEX")]
    hide: Vec<String>,

    /// Keep matching frames only
    #[arg(long = "show", value_name = "REGEX")]
    show: Vec<String>,

    /// Cut what is above the outermost matching frame, and samples without one
    #[arg(long = "show-from", value_name = "REGEX")]
    show_from: Vec<String>,

    /// Only samples with this tag: KEY is comm, pid, tid, cpu, event or kind
    #[arg(long = "tagfocus", value_name = "KEY=REGEX")]
    tag_focus: Vec<String>,

    /// No samples with this tag
    #[arg(long = "tagignore", value_name = "KEY=REGEX")]
    tag_ignore: Vec<String>,
}

impl StackFilterArgs {
    /// The filters.
    ///
    /// # Errors
    /// When an expression is not one, or a tag is not known.
    pub fn filters(&self) -> Result<Filters, String> {
        Ok(Filters {
            focus: regexes("--focus", &self.focus)?,
            ignore: regexes("--ignore", &self.ignore)?,
            hide: regexes("--hide", &self.hide)?,
            show: regexes("--show", &self.show)?,
            show_from: regexes("--show-from", &self.show_from)?,
            tag_focus: tags("--tagfocus", &self.tag_focus)?,
            tag_ignore: tags("--tagignore", &self.tag_ignore)?,
        })
    }
}

fn tags(option: &str, texts: &[String]) -> Result<Vec<(Tag, Regex)>, String> {
    let tag = |text: &String| {
        let names = || Tag::ALL.map(|(name, _)| name).join(", ");
        let (key, pattern) = text
            .split_once('=')
            .ok_or_else(|| format!("{option}: KEY=REGEX, not '{text}'"))?;
        let known = Tag::ALL.iter().find(|(name, _)| *name == key);
        let (_, tag) =
            known.ok_or_else(|| format!("{option}: no key '{key}'; there are {}", names()))?;
        // Told by the same words as of the others.
        regexes(option, &[pattern.to_owned()])?;
        let regex = Regex::new(pattern).map_err(|error| format!("{option}: {error}"))?;
        Ok((*tag, regex))
    };
    texts.iter().map(tag).collect()
}

/// Has everything read that the filters look at.
pub fn prepare(filters: &Filters, load: &mut LoadOptions) {
    if filters.is_empty() {
        return;
    }
    load.needs.stacks = true;
    load.needs.cpu |= filters.needs(Tag::Cpu);
    load.names.origins |= filters.needs(Tag::Kind);
}

/// Filters a profile; a line for headers if there was anything to filter.
///
/// # Errors
/// When no sample is left.
pub fn filter(
    profile: &mut Profile,
    filters: &Filters,
    rules: &OwnRules,
) -> anyhow::Result<Option<String>> {
    if filters.is_empty() {
        return Ok(None);
    }
    let Kept { before, after } = apply(profile, filters, rules);
    let options = filters.texts().join(" ");
    let path = &profile.recording.path;
    anyhow::ensure!(after.samples > 0, "{path}: no sample is left by {options}");
    let share = 100.0 * after.period as f64 / before.period.max(1) as f64;
    let line = format!(
        "Filter: {options}: {} of {} samples ({share:.1}%)",
        after.samples, before.samples
    );
    for event in &mut profile.events {
        event.notes.push(line.clone());
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_known_keys() {
        let ok = tags("--tagfocus", &["comm=^node$".to_owned()]).expect("a tag");
        assert_eq!(ok[0].0, Tag::Comm);
        for bad in ["comm", "x=y", "pid=("] {
            assert!(tags("--tagfocus", &[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
