//! Several recordings as one profile.
//!
//! Recordings are read one after the other and forgotten; what belongs to more than one of them is opened once. One that cannot be
//! read is told and left out.

use std::convert::Infallible;

use super::LoadError;
use super::library::Library;
use super::options::LoadOptions;
use super::summary::report_quality;
use crate::check::Evidence;
use crate::needs::Needs;
use crate::profile::{Facet, Pool, Profile};

impl Library<'_> {
    /// Reads a recording, or several as one, and everything that belongs to it.
    ///
    /// # Errors
    /// When the recording, or a kernel symbol file that was named, cannot be opened at all; damage and missing companions are
    /// warnings.
    pub fn load(&self, options: &LoadOptions) -> Result<Profile, LoadError> {
        if are_several(options) {
            return Ok(load_several(self, options, false)?.0);
        }
        let profile = self.read(options, None)?;
        if options.tells_quality {
            report_quality(&profile.quality, self.diag());
        }
        Ok(profile)
    }

    /// The same with what each recording says about its own quality.
    ///
    /// # Errors
    /// As [`Library::load`].
    pub fn load_examined(
        &self,
        options: &LoadOptions,
    ) -> Result<(Profile, Vec<Evidence>), LoadError> {
        if are_several(options) {
            return load_several(self, options, true);
        }
        let (profile, evidence) = self.examine(options)?;
        Ok((profile, vec![evidence]))
    }
}

/// Whether more than one recording is asked for, or what tells one from others.
fn are_several(options: &LoadOptions) -> bool {
    let labels = Facet::Recording.needs() | Facet::Host.needs();
    !options.more.is_empty() || options.needs.intersects(labels)
}

/// All samples of some recordings, and what those that are in the profile say about their own quality if that `is_examined`.
///
/// # Errors
/// When none of them can be read, or the request fits none.
fn load_several(
    library: &Library<'_>,
    options: &LoadOptions,
    is_examined: bool,
) -> Result<(Profile, Vec<Evidence>), LoadError> {
    let diag = library.diag();
    let mut all: Vec<LoadOptions> = options.apart().collect();
    // Whatever the order in which they were named.
    all.sort_by_key(|one| one.source.name());
    let names = short_names(&all.iter().map(|one| one.source.name()).collect::<Vec<_>>());
    let all: Vec<(LoadOptions, String)> = all.into_iter().zip(names).collect();
    // Of one recording threads are what they are.
    let needs = options.needs.difference(options.refused) | Needs::THREADS.only_if(all.len() == 1);
    let mut pool = Pool::new(needs, options.normalizes);
    let mut known: Vec<Likeness> = Vec::new();
    let (mut evidence, mut left_out, mut first_error) = (Vec::new(), Vec::new(), None);
    let Ok(()) = library.in_turn(&all, |(one, name), library| {
        let read = if is_examined {
            library
                .examine(one)
                .map(|(profile, of_it)| (profile, Some(of_it)))
        } else {
            library.read(one, None).map(|profile| (profile, None))
        };
        match read {
            Ok((profile, _)) if profile.quality.samples() == 0 => {
                let path = one.source.name();
                if profile.recording.begin.is_none() {
                    left_out.push(format!("{path}: no samples"));
                } else {
                    diag.note(format!("{path}: no sample is asked for"));
                }
            }
            Ok((profile, of_one)) => {
                let copy = Likeness::of(&profile);
                if let Some(other) = known.iter().find(|known| known.is_of(&copy)) {
                    diag.warn(format!(
                        "{} and {} are one recording, which counts once",
                        other.path, copy.path
                    ));
                } else {
                    known.push(copy);
                    pool.add(profile, name);
                    evidence.extend(of_one);
                }
            }
            // It names the recording.
            Err(error) => {
                left_out.push(error.to_string());
                first_error.get_or_insert(error);
            }
        }
        Ok::<(), Infallible>(())
    });
    if known.is_empty()
        && let Some(error) = first_error
    {
        return Err(error);
    }
    diag.leave_out(&left_out, all.len());
    let profile = pool.finish();
    report_quality(&profile.quality, diag);
    Ok((profile, evidence))
}

/// What tells whether two files are copies of one recording.
struct Likeness {
    path: String,
    /// Of the first sample, in ns.
    begin: Option<u64>,
    facts: (String, u64, u64, u64),
}

impl Likeness {
    fn of(profile: &Profile) -> Self {
        let recording = &profile.recording;
        let weight = profile.events.iter().map(|event| event.period);
        let host = recording.parts.first().map(|part| part.host.clone());
        Self {
            path: recording.path.clone(),
            begin: recording.begin,
            facts: (
                host.unwrap_or_default(),
                recording.records,
                profile.quality.samples(),
                weight.fold(0, u64::wrapping_add),
            ),
        }
    }

    /// Without times nothing tells.
    fn is_of(&self, other: &Self) -> bool {
        self.begin.is_some() && self.begin == other.begin && self.facts == other.facts
    }
}

/// Paths without the folders that all have in common, and without a file name that all have: `hb/v2/r3`.
fn short_names(paths: &[String]) -> Vec<String> {
    let split: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let [first, others @ ..] = &split[..] else {
        return Vec::new();
    };
    if others.is_empty() {
        return paths.to_vec();
    }
    let is_common = |at: &usize| {
        let of = |parts: &[&str], index: usize| {
            (index + 1 < parts.len()).then(|| parts[index].to_owned())
        };
        others.iter().all(|other| of(other, *at) == of(first, *at))
    };
    let begin = (0..first.len() - 1).take_while(is_common).count();
    let is_one_name = others.iter().all(|other| other.last() == first.last());
    let names = split.iter().map(|parts| {
        let end = parts.len() - usize::from(is_one_name && parts.len() > begin + 1);
        parts[begin..end].join("/")
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_tells_recordings_apart() {
        let of = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            short_names(&paths)
        };
        assert_eq!(of(&["/a/b/x.data", "/a/c/x.data"]), ["b", "c"]);
        assert_eq!(of(&["/a/b/x.data", "/a/b/y.data"]), ["x.data", "y.data"]);
        assert_eq!(of(&["x/perf.data", "x/y/perf.data"]), ["perf.data", "y"]);
        assert_eq!(of(&["perf.data", "a/perf.data"]), ["perf.data", "a"]);
        assert_eq!(of(&["/a/perf.data"]), ["/a/perf.data"]);
        assert_eq!(of(&[]), [""; 0]);
    }
}
