//! Which columns a report prints and by which keys its rows are ordered.
//!
//! In: options, and whether callers are credited. Out: [`Columns`]. Follows `setup_sorting` and `perf_hpp__init` of
//! perf (`util/sort.c`, `ui/hist.c`): counters in front, fields of `--fields +…`, then the keys.

use super::apart::Order;
use super::keys::{Key, SortSpec};
use super::options::{Latency, ReportOptions};
use crate::metrics::Metric;
use crate::needs::Needs;

/// The columns of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// What is printed, left to right.
    pub fields: Vec<Key>,
    /// What orders the rows, most important first.
    pub order: Vec<Key>,
    /// What the tree of `--hierarchy` is made of, a level each.
    pub levels: Vec<Vec<Key>>,
    /// Whether the self column is called `Self`.
    pub overhead_is_self: bool,
    /// What [`Key::Metric`] is a number of.
    pub metrics: Vec<Metric>,
}

impl Columns {
    /// Resolves `--sort`, `--fields` and the options that add columns. `children` says that they were asked for and
    /// `has_chains` that the recording has what they need.
    #[must_use]
    pub fn resolve(options: &ReportOptions, children: bool, has_chains: bool) -> Self {
        let strict = options.columns.fields.as_ref().is_some_and(|f| !f.appends);
        let levels = sort_levels(options, children, strict);
        let mut fields = default_fields(options, &levels, children, strict);
        let metrics = metrics(options, &mut fields);
        if let Some(extra) = &options.columns.fields {
            extra
                .keys
                .iter()
                .for_each(|key| push_once(&mut fields, *key));
        }
        let mut order: Vec<Key> = Vec::new();
        levels
            .iter()
            .flatten()
            .for_each(|key| push_once(&mut order, *key));
        order.iter().for_each(|key| push_once(&mut fields, *key));
        fields.iter().for_each(|key| push_once(&mut order, *key));
        order.retain(|key| !matches!(key, Key::Metric(_)));
        let credits = children && has_chains;
        if !credits && !strict {
            fields.retain(|key| !key.is_credited());
        }
        if !credits {
            order.retain(|key| !key.is_credited());
        }
        let levels = levels
            .into_iter()
            .filter(|level| level.iter().any(|key| !key.is_counter()))
            .collect();
        Self {
            fields,
            order,
            levels,
            overhead_is_self: credits && !strict,
            metrics,
        }
    }

    /// What has to be read and computed for all keys.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let keys = self.fields.iter().chain(&self.order);
        keys.map(|key| key.descriptor().needs).collect()
    }

    /// The keys that tell rows apart, with how they do it.
    pub(crate) fn orders(&self) -> Vec<(Key, Order)> {
        let keys = self.order.iter();
        keys.filter_map(|key| Some((*key, key.order()?))).collect()
    }

    /// Whether a column looks at latency.
    #[must_use]
    pub fn shows_latency(&self) -> bool {
        let mut keys = self.fields.iter().chain(&self.order);
        keys.any(|key| matches!(key, Key::Latency | Key::LatencyChildren))
    }

    /// Whether rows are told apart by a key.
    #[must_use]
    pub fn has_key(&self, key: Key) -> bool {
        self.order.contains(&key)
    }
}

/// The keys of `--sort`, or perf's own, with the counters that perf puts in front.
fn sort_levels(options: &ReportOptions, children: bool, strict: bool) -> Vec<Vec<Key>> {
    let given = options.columns.sort.as_ref();
    if given.is_none() && strict {
        return parent_level(options);
    }
    let mut levels = Vec::new();
    let chosen = given.or(options.columns.default_sort.as_ref());
    if !strict {
        let front = front_counters(options.columns.latency, children, chosen);
        levels.extend(front.into_iter().map(|key| vec![key]));
    }
    match chosen {
        Some(sort) => levels.extend(sort.levels.iter().cloned()),
        None => levels.extend([vec![Key::Comm], vec![Key::Dso], vec![Key::Symbol]]),
    }
    levels.extend(parent_level(options));
    levels
}

/// The counters that perf puts in front of the keys, unless those mention them (`util/sort.c:setup_overhead`).
fn front_counters(latency: Latency, children: bool, keys: Option<&SortSpec>) -> Vec<Key> {
    let mentions = |key: Key| keys.is_some_and(|keys| keys.mentions(key.name()));
    let own = match latency {
        Latency::Beside if mentions(Key::Latency) || mentions(Key::Overhead) => Vec::new(),
        _ => shares(latency, children),
    };
    own.into_iter().filter(|key| !mentions(*key)).collect()
}

/// Shares of rows, the credited ones in front.
fn shares(latency: Latency, children: bool) -> Vec<Key> {
    let pair = |overhead, by_latency| match latency {
        Latency::Off => vec![overhead],
        Latency::Beside => vec![overhead, by_latency],
        Latency::First => vec![by_latency, overhead],
    };
    let mut keys = Vec::new();
    if children {
        keys.extend(pair(Key::OverheadChildren, Key::LatencyChildren));
    }
    keys.extend(pair(Key::Overhead, Key::Latency));
    keys
}

fn parent_level(options: &ReportOptions) -> Vec<Vec<Key>> {
    options
        .chains
        .parent
        .as_ref()
        .map(|_| vec![Key::Parent])
        .into_iter()
        .collect()
}

/// The columns that come without being named.
fn default_fields(
    options: &ReportOptions,
    levels: &[Vec<Key>],
    children: bool,
    strict: bool,
) -> Vec<Key> {
    if strict {
        return Vec::new();
    }
    let mut fields = shares(options.columns.latency, children);
    if options.columns.latency != Latency::Off {
        fields.retain(|key| levels.iter().flatten().any(|known| known == key));
    }
    let wanted = [
        (options.columns.show_cpu_utilization, Key::OverheadSys),
        (options.columns.show_cpu_utilization, Key::OverheadUs),
        (options.columns.show_weight, Key::Weight),
        (
            options.columns.show_samples || options.columns.show_weight,
            Key::Sample,
        ),
        (options.columns.show_period, Key::Period),
    ];
    let wanted = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted);
    fields.extend(wanted.map(|(_, key)| key));
    fields
}

/// All metrics: those of `--fields`, then those of `--metrics`, which become columns here.
fn metrics(options: &ReportOptions, fields: &mut Vec<Key>) -> Vec<Metric> {
    let named = options.columns.fields.as_ref().map(|asked| &asked.metrics);
    let mut all = named.cloned().unwrap_or_default();
    for metric in &options.columns.metrics {
        if !all.contains(metric) {
            fields.extend(u8::try_from(all.len()).map(Key::Metric));
            all.push(metric.clone());
        }
    }
    all
}

fn push_once(keys: &mut Vec<Key>, key: Key) {
    if !keys.contains(&key) {
        keys.push(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::keys::FieldSpec;
    use crate::report::options::ColumnOptions;

    fn options(sort: Option<&str>, fields: Option<&str>) -> ReportOptions {
        ReportOptions {
            columns: ColumnOptions {
                sort: sort
                    .map(|s| SortSpec::parse(s, SortSpec::default_keys()).expect("known keys")),
                fields: fields.map(|f| FieldSpec::parse(f).expect("known fields")),
                show_samples: true,
                ..ColumnOptions::default()
            },
            ..ReportOptions::default()
        }
    }

    #[test]
    fn counters_come_first_and_order_rows() {
        let columns = Columns::resolve(&options(None, None), true, true);
        let keys = [
            Key::OverheadChildren,
            Key::Overhead,
            Key::Sample,
            Key::Comm,
            Key::Dso,
            Key::Symbol,
        ];
        assert_eq!(columns.fields, keys);
        assert_eq!(columns.order[..2], [Key::OverheadChildren, Key::Overhead]);
        assert_eq!(
            columns.order[2..],
            [Key::Comm, Key::Dso, Key::Symbol, Key::Sample]
        );
        assert!(columns.overhead_is_self);
    }

    #[test]
    fn without_chains_there_is_one_overhead() {
        let columns = Columns::resolve(&options(None, None), true, false);
        assert_eq!(columns.fields[..2], [Key::Overhead, Key::Sample]);
        assert!(!columns.overhead_is_self && !columns.has_key(Key::OverheadChildren));
    }

    #[test]
    fn fields_replace_everything_unless_they_append() {
        let exact = Columns::resolve(&options(None, Some("overhead,sym")), true, true);
        assert_eq!(exact.fields, [Key::Overhead, Key::Symbol]);
        assert_eq!(exact.order, [Key::Overhead, Key::Symbol]);
        let more = Columns::resolve(&options(Some("dso"), Some("+period")), false, false);
        assert_eq!(
            more.fields,
            [Key::Overhead, Key::Sample, Key::Period, Key::Dso]
        );
    }
}
