//! The words of keys: the texts of `--sort` and `--fields` in, lists of [`Key`]s out.
//!
//! Follows perf's tables (`util/sort.c`): a word stands for the first key of the table that begins with
//! it, whatever its case. Called by the command line; [`columns`](super::super::columns) makes columns of the result.

use std::fmt;

use super::super::spec::{FieldSpec, Key, SortSpec};
use crate::metrics::Metric;
use crate::profile::Facet;

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
                "{} key `{}` exists in perf report, but pjit does not support it",
                self.option, self.word
            )?;
        } else {
            write!(f, "unknown {} key: `{}`", self.option, self.word)?;
        }
        write!(f, "; keys: {}", known_keys().join(" "))
    }
}

impl std::error::Error for KeyError {}

/// A word of perf's.
enum Word {
    /// A key.
    Has(Key),
    /// One that pjit does not have.
    PerfOnly(&'static str),
}

use Word::{Has, PerfOnly};

impl Word {
    fn name(&self) -> &'static str {
        match self {
            Has(key) => key.name(),
            PerfOnly(name) => name,
        }
    }
}

/// Keys that divide samples into rows, in perf's order, because the first that fits a prefix wins.
const SORT_KEYS: &[Word] = &[
    Has(Key::Pid),
    Has(Key::Comm),
    Has(Key::Dso),
    Has(Key::Symbol),
    Has(Key::Parent),
    Has(Key::Facet(Facet::Cpu)),
    Has(Key::Socket),
    Has(Key::Srcline),
    Has(Key::Srcfile),
    PerfOnly("local_weight"),
    PerfOnly("weight"),
    PerfOnly("transaction"),
    Has(Key::Facet(Facet::Payload)),
    Has(Key::SymbolSize),
    Has(Key::DsoSize),
    Has(Key::Facet(Facet::Cgroup)),
    Has(Key::CgroupId),
    Has(Key::IpcNull),
    Has(Key::Time),
    PerfOnly("code_page_size"),
    PerfOnly("local_ins_lat"),
    PerfOnly("ins_lat"),
    PerfOnly("local_p_stage_cyc"),
    PerfOnly("p_stage_cyc"),
    PerfOnly("addr"),
    Has(Key::Tid),
    Has(Key::Tgid),
    PerfOnly("simd"),
    Has(Key::Symoff),
    PerfOnly("callchain_branch_predicted"),
    Has(Key::Facet(Facet::Parallelism)),
    Has(Key::State),
    Has(Key::Kind),
    Has(Key::Own),
];

/// Counters, which perf searches after the others.
const COUNTERS: &[Word] = &[
    Has(Key::Overhead),
    Has(Key::Latency),
    Has(Key::OverheadSys),
    Has(Key::OverheadUs),
    Has(Key::OverheadGuestSys),
    Has(Key::OverheadGuestUs),
    Has(Key::OverheadChildren),
    Has(Key::LatencyChildren),
    Has(Key::Sample),
    Has(Key::Period),
    PerfOnly("weight1"),
];

/// Keys of branch and memory recordings, which pjit does not read.
const BRANCH_AND_MEMORY: &[Word] = &[
    PerfOnly("dso_from"),
    PerfOnly("dso_to"),
    PerfOnly("symbol_from"),
    PerfOnly("symbol_to"),
    PerfOnly("mispredict"),
    PerfOnly("abort"),
    PerfOnly("in_tx"),
    PerfOnly("cycles"),
    PerfOnly("srcline_from"),
    PerfOnly("srcline_to"),
    PerfOnly("ipc_lbr"),
    PerfOnly("addr_from"),
    PerfOnly("addr_to"),
    PerfOnly("symbol_daddr"),
    PerfOnly("dso_daddr"),
    PerfOnly("locked"),
    PerfOnly("tlb"),
    PerfOnly("mem"),
    PerfOnly("snoop"),
    PerfOnly("dcacheline"),
    PerfOnly("symbol_iaddr"),
    PerfOnly("phys_daddr"),
    PerfOnly("data_page_size"),
    PerfOnly("blocked"),
];

/// Names of the keys that pjit has, counters first, as perf's help lists them.
#[must_use]
pub fn known_keys() -> Vec<&'static str> {
    let words = COUNTERS.iter().chain(SORT_KEYS);
    let keys = words.filter_map(|word| match word {
        Has(Key::IpcNull) | PerfOnly(_) => None,
        Has(key) => Some(key.name()),
    });
    keys.collect()
}

fn find(option: &'static str, word: &str) -> Result<Key, KeyError> {
    let fits = |name: &str| {
        name.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let tables = [SORT_KEYS, COUNTERS, BRANCH_AND_MEMORY];
    let found = tables
        .iter()
        .flat_map(|table| table.iter())
        .find(|known| fits(known.name()));
    match found {
        Some(Has(key)) => Ok(*key),
        Some(PerfOnly(name)) => Err(KeyError {
            option,
            word: (*name).to_owned(),
            known_to_perf: true,
        }),
        None => Err(KeyError {
            option,
            word: word.to_owned(),
            known_to_perf: false,
        }),
    }
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
        let text = spec.text.clone();
        for word in text.split_inclusive([',', ' ', '}']) {
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
    fn the_documentation_lists_all_keys() {
        let page = include_str!("../../../docs/perf.md");
        let row = page
            .lines()
            .find(|line| line.starts_with("| keys (`-s`, `-F`)"));
        let keys: Vec<String> = known_keys().iter().map(|key| format!("`{key}`")).collect();
        let expected = format!("| keys (`-s`, `-F`) | {} |", keys.join(", "));
        assert_eq!(row, Some(expected.as_str()));
    }

    #[test]
    fn every_key_has_one_word() {
        let mut names = known_keys();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for name in names {
            assert_eq!(find("--sort", name).map(|key| key.name()), Ok(name));
        }
    }

    #[test]
    fn errors_list_the_keys_and_tell_perf_only_ones_apart() {
        let unknown = FieldSpec::parse("nonsense")
            .expect_err("no such key")
            .to_string();
        assert!(
            unknown.contains("unknown --fields key: `nonsense`")
                && unknown.contains("overhead_children")
        );
        let unsupported = FieldSpec::parse("ins_lat")
            .expect_err("perf only")
            .to_string();
        assert!(
            unsupported.contains("exists in perf report"),
            "{unsupported}"
        );
        assert!(SortSpec::parse("+", "comm").is_err() && FieldSpec::parse("+").is_err());
    }
}
