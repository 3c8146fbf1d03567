//! The words of keys: the texts of `--sort` and `--fields` in, lists of [`Key`]s out.
//!
//! Follows perf's tables (`util/sort.c`): a word stands for the first key of the table that begins with
//! it, whatever its case. Called by the command line; [`columns`](super::super::columns) makes columns of the result.

use std::fmt;

use super::super::spec::{FieldSpec, Key, SortSpec};
use super::ends;
use super::table::KEYS;
use crate::metrics::Metric;
use crate::profile::{Facet, Show};

/// A word that names no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError {
    option: &'static str,
    word: String,
    known_to_perf: bool,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.known_to_perf {
            write!(
                f,
                "{} has no key '{}', which perf report has",
                self.option, self.word
            )?;
        } else {
            write!(f, "{} has no key '{}'", self.option, self.word)?;
        }
        write!(f, "\nhint: pjit help keys")
    }
}

impl std::error::Error for KeyError {}

/// Words of keys that divide samples into rows, in perf's order, because the first that fits a prefix wins. Words that are no
/// key's name are perf's alone; the last seven are pjit's own.
const PARTS: &str = "pid comm comm_nodigit dso symbol parent cpu socket srcline srcfile local_weight weight transaction trace \
    symbol_size dso_size cgroup cgroup_id ipc_null time code_page_size local_ins_lat ins_lat local_p_stage_cyc p_stage_cyc addr \
    tid tgid simd symoff callchain_branch_predicted parallelism state kind own package activity \
    recording host";

/// Words of counters, which perf searches after the others.
const COUNTERS: &str = "overhead latency overhead_sys overhead_us overhead_guest_sys overhead_guest_us overhead_children \
    latency_children sample period weight1";

/// Words of branches, which perf looks for if rows are those, and of accesses to memory.
const BRANCHES_AND_MEMORY: &str = "dso_from dso_to symbol_from symbol_to mispredict in_tx abort cycles srcline_from srcline_to \
    ipc_lbr addr_from addr_to symbol_daddr dso_daddr symbol_iaddr locked tlb mem snoop dcacheline phys_daddr data_page_size \
    blocked";

/// The key that has a word, if pjit has it.
fn key(word: &str) -> Option<Key> {
    all_keys().find(|key| key.name() == word)
}

/// All keys that have one word.
fn all_keys() -> impl Iterator<Item = Key> {
    let facets = Facet::ALL.into_iter();
    let shown = facets.filter(|facet| !matches!(facet.row().show, Show::Hidden));
    (KEYS.into_iter())
        .chain(shown.map(Key::Facet))
        .chain(ends::ALL.map(Key::End))
        .chain(ends::SUMS.map(Key::Sum))
}

/// Names of the keys that pjit has, counters first, as perf's help lists them.
#[must_use]
pub fn known_keys() -> Vec<&'static str> {
    let lists = [COUNTERS, PARTS, BRANCHES_AND_MEMORY];
    let words = lists.iter().flat_map(|list| list.split(' '));
    words
        .filter(|word| key(word).is_some_and(|key| key != Key::IpcNull))
        .collect()
}

fn find(option: &'static str, word: &str) -> Result<Key, KeyError> {
    let fits = |name: &&str| {
        name.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let lists = [PARTS, COUNTERS, BRANCHES_AND_MEMORY];
    let known = lists.iter().flat_map(|list| list.split(' ')).find(fits);
    known.and_then(key).ok_or_else(|| KeyError {
        option,
        word: known.unwrap_or(word).to_owned(),
        known_to_perf: known.is_some(),
    })
}

impl SortSpec {
    /// Parses the argument of `--sort`. `default_keys` stand for what `+` appends to.
    ///
    /// # Errors
    ///
    /// When a word names no key of pjit's, or nothing follows a `+`.
    pub fn parse(argument: &str, default_keys: &str) -> Result<Self, KeyError> {
        let invalid = || KeyError {
            option: "--sort",
            word: argument.to_owned(),
            known_to_perf: false,
        };
        let text = match argument.strip_prefix('+') {
            Some("") => return Err(invalid()),
            Some(more) => format!("{default_keys},{more}"),
            None => argument.to_owned(),
        };
        let mut spec = Self {
            levels: Vec::new(),
            text,
            added: argument.strip_prefix('+').map(str::to_owned),
            named: Vec::new(),
        };
        let mut in_braces = false;
        let words = spec.text.clone();
        for word in words.split_inclusive([',', ' ', '}']) {
            let opens = word.contains('{');
            let closes = word.contains('}');
            let word = word.trim_matches([',', ' ', '{', '}']);
            if !word.is_empty() {
                let key = match find("--sort", word) {
                    Err(error) if !error.known_to_perf => {
                        let number = u16::try_from(spec.named.len()).map_err(|_| error)?;
                        spec.named.push(word.to_owned());
                        Key::Named(number)
                    }
                    found => found?,
                };
                match spec.levels.last_mut() {
                    Some(level) if in_braces => level.push(key),
                    _ => spec.levels.push(vec![key]),
                }
            }
            in_braces = (in_braces || opens) && !closes;
        }
        // perf appends the column whenever the given text contains the word, even within another.
        if argument.contains("symbol") {
            spec.levels.push(vec![Key::IpcNull]);
        }
        if spec.levels.is_empty() {
            Err(invalid())
        } else {
            Ok(spec)
        }
    }

    /// The same with other keys in place of the default, if it adds to the default.
    #[must_use]
    pub fn with_default(&self, default_keys: &str) -> Self {
        let added = self.added.as_ref();
        let parsed = added.map(|added| Self::parse(&format!("+{added}"), default_keys));
        parsed.and_then(Result::ok).unwrap_or_else(|| self.clone())
    }
}

impl FieldSpec {
    /// Parses the argument of `--fields`.
    ///
    /// # Errors
    ///
    /// When a word names no key of pjit's, or nothing follows a `+`.
    pub fn parse(argument: &str) -> Result<Self, KeyError> {
        let (appends, words) = match argument.strip_prefix('+') {
            Some(rest) => (true, rest),
            None => (false, argument),
        };
        let (mut keys, mut metrics) = (Vec::new(), Vec::new());
        for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
            match Metric::parse(word) {
                Some(named) => named.into_iter().for_each(|metric| {
                    keys.push(Key::Metric(u8::try_from(metrics.len()).unwrap_or(u8::MAX)));
                    metrics.push(metric);
                }),
                None => keys.push(find("--fields", word)?),
            }
        }
        if keys.is_empty() {
            return Err(KeyError {
                option: "--fields",
                word: argument.to_owned(),
                known_to_perf: false,
            });
        }
        Ok(Self {
            keys,
            metrics,
            appends,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(text: &str) -> Vec<Key> {
        SortSpec::parse(text, SortSpec::default_keys())
            .expect("known keys")
            .levels
            .concat()
    }

    #[test]
    fn words_are_prefixes_and_the_first_of_the_table_wins() {
        assert_eq!(sort("c,D,s"), [Key::Comm, Key::Dso, Key::Symbol]);
        assert_eq!(
            sort("p,sa,pe,ti"),
            [Key::Pid, Key::Sample, Key::Period, Key::Time]
        );
        assert_eq!(sort("sym"), [Key::Symbol]);
    }

    #[test]
    fn the_word_symbol_brings_the_empty_column() {
        assert_eq!(sort("symbol"), [Key::Symbol, Key::IpcNull]);
        assert_eq!(sort("symbol_size"), [Key::SymbolSize, Key::IpcNull]);
        assert_eq!(
            sort("+cpu"),
            [Key::Comm, Key::Dso, Key::Symbol, Key::Facet(Facet::Cpu)]
        );
        let of_tracepoints = |text| {
            let spec = SortSpec::parse(text, SortSpec::default_keys()).expect("known keys");
            spec.with_default(SortSpec::TRACEPOINTS).levels.concat()
        };
        assert_eq!(
            of_tracepoints("+cpu"),
            [Key::Facet(Facet::Payload), Key::Facet(Facet::Cpu)]
        );
        assert_eq!(of_tracepoints("cpu"), [Key::Facet(Facet::Cpu)]);
    }

    #[test]
    fn braces_make_one_level() {
        let spec = SortSpec::parse("{comm,dso},sym", "").expect("known keys");
        assert_eq!(spec.levels, [vec![Key::Comm, Key::Dso], vec![Key::Symbol]]);
    }

    #[test]
    fn every_key_has_one_word() {
        let mut names = known_keys();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for name in all_keys().map(Key::name) {
            assert_eq!(find("--sort", name).map(|key| key.name()), Ok(name));
        }
    }

    #[test]
    fn errors_list_the_keys_and_tell_perf_only_ones_apart() {
        let unknown = FieldSpec::parse("nonsense")
            .expect_err("no such key")
            .to_string();
        assert!(
            unknown.contains("--fields has no key 'nonsense'")
                && unknown.contains("pjit help keys")
        );
        let unsupported = FieldSpec::parse("phys_daddr")
            .expect_err("perf only")
            .to_string();
        assert!(
            unsupported.contains("which perf report has"),
            "{unsupported}"
        );
        assert!(SortSpec::parse("+", "comm").is_err() && FieldSpec::parse("+").is_err());
    }
}
