//! Metrics: one event in another, as `perf stat` prints them behind its counts.
//!
//! On the ground floor, since views of samples and of totals have them. In: words of the command line and names of
//! events. Out: which events a metric divides, and by what it multiplies. Knows no samples.

/// One column: the sum of some events in the sum of others.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Above its column.
    pub heading: String,
    /// Behind a total, in perf's words.
    pub meaning: String,
    /// What is divided.
    above: Side,
    /// What it is divided by.
    below: Side,
    /// What the quotient is multiplied by.
    pub factor: f64,
    /// Digits behind the point, if they are always as many.
    digits: Option<usize>,
    /// Whether it is a share in percent.
    pub is_percent: bool,
}

/// Which events are summed.
#[derive(Debug, Clone, PartialEq)]
enum Side {
    /// Those of a name that perf gives, aliases settled.
    Known(&'static str),
    /// Time on a processor, in ns: the first clock event.
    Clock,
    /// What a user named: by name, or `%N` counted from 1.
    Given(String),
}

/// A metric that has a name.
struct Preset {
    key: &'static str,
    heading: &'static str,
    meaning: &'static str,
    above: &'static str,
    below: &'static str,
    factor: f64,
    digits: usize,
}

const fn preset(
    key: &'static str,
    (heading, meaning): (&'static str, &'static str),
    (above, below): (&'static str, &'static str),
    factor: f64,
    digits: usize,
) -> Preset {
    Preset {
        key,
        heading,
        meaning,
        above,
        below,
        factor,
        digits,
    }
}

/// Stands for the clock events.
const CLOCK: &str = "clock";

const PRESETS: [Preset; 11] = [
    preset(
        "ipc",
        ("IPC", "insn per cycle"),
        ("instructions", "cycles"),
        1.0,
        2,
    ),
    preset(
        "branch-miss",
        ("Br-miss%", "of all branches"),
        ("branch-misses", "branches"),
        100.0,
        2,
    ),
    preset(
        "cache-miss",
        ("Cache-miss%", "of all cache refs"),
        ("cache-misses", "cache-references"),
        100.0,
        2,
    ),
    preset(
        "l1d-miss",
        ("L1D-miss%", "of all L1-dcache accesses"),
        ("L1-dcache-load-misses", "L1-dcache-loads"),
        100.0,
        2,
    ),
    preset(
        "llc-miss",
        ("LLC-miss%", "of all LL-cache accesses"),
        ("LLC-load-misses", "LLC-loads"),
        100.0,
        2,
    ),
    preset(
        "mpki",
        ("Cache-MPKI", "cache misses per 1000 insn"),
        ("cache-misses", "instructions"),
        1000.0,
        2,
    ),
    preset(
        "mpki",
        ("Br-MPKI", "branch misses per 1000 insn"),
        ("branch-misses", "instructions"),
        1000.0,
        2,
    ),
    preset(
        "stall",
        ("Front%", "frontend cycles idle"),
        ("stalled-cycles-frontend", "cycles"),
        100.0,
        2,
    ),
    preset(
        "stall",
        ("Back%", "backend cycles idle"),
        ("stalled-cycles-backend", "cycles"),
        100.0,
        2,
    ),
    preset("ghz", ("GHz", "GHz"), ("cycles", CLOCK), 1.0, 3),
    preset(
        "fault-rate",
        ("Faults/s", "faults per second on CPU"),
        ("page-faults", CLOCK),
        1e9,
        0,
    ),
];

/// Names of one thing.
const ALIASES: [(&str, &str); 9] = [
    ("cpu-cycles", "cycles"),
    ("branch-instructions", "branches"),
    ("faults", "page-faults"),
    ("idle-cycles-frontend", "stalled-cycles-frontend"),
    ("idle-cycles-backend", "stalled-cycles-backend"),
    ("L1-dcache-load", "L1-dcache-loads"),
    ("L1-dcache-load-miss", "L1-dcache-load-misses"),
    ("LLC-load", "LLC-loads"),
    ("LLC-load-miss", "LLC-load-misses"),
];

impl Metric {
    /// What a word asks for; nothing if it is no metric.
    #[must_use]
    pub fn parse(word: &str) -> Option<Vec<Self>> {
        let named: Vec<Self> = PRESETS
            .iter()
            .filter(|preset| preset.key == word)
            .map(Self::from)
            .collect();
        if !named.is_empty() {
            return Some(named);
        }
        let (above, below) = word.split_once('/')?;
        // `FIELD/raw` is a key of tracepoints.
        if above.is_empty() || below.is_empty() || below == "raw" || below.contains('/') {
            return None;
        }
        Some(vec![Self {
            heading: word.to_owned(),
            meaning: format!("{above} per {below}"),
            above: Side::Given(above.to_owned()),
            below: Side::Given(below.to_owned()),
            factor: 1.0,
            digits: None,
            is_percent: false,
        }])
    }

    /// Understands a list of words.
    ///
    /// # Errors
    /// Names the word that is no metric.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let mut all = Vec::new();
        for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
            let metrics = Self::parse(word).ok_or_else(|| {
                format!(
                    "unknown metric `{word}`: there are {} and EVENT/EVENT",
                    Self::keys()
                )
            })?;
            for metric in metrics {
                if !all.contains(&metric) {
                    all.push(metric);
                }
            }
        }
        Ok(all)
    }

    /// The words there are.
    #[must_use]
    pub fn keys() -> String {
        let mut keys: Vec<&str> = PRESETS.iter().map(|preset| preset.key).collect();
        keys.dedup();
        keys.join(", ")
    }

    /// Whether it is so much in a second.
    #[must_use]
    pub fn is_rate_in_time(&self) -> bool {
        self.below == Side::Clock && self.factor > 1.0
    }

    /// Digits behind the point that a value is worth.
    #[must_use]
    pub fn digits(&self, value: f64) -> usize {
        /// Of a number of any size.
        const SIGNIFICANT: i32 = 4;
        self.digits.unwrap_or_else(|| {
            let size = if value == 0.0 {
                0
            } else {
                value.abs().log10().floor() as i32 + 1
            };
            usize::try_from((SIGNIFICANT - size).clamp(0, 12)).unwrap_or(0)
        })
    }

    /// Those that these events have.
    #[must_use]
    pub fn available(names: &[&str]) -> Vec<Self> {
        let all = PRESETS.iter().map(Self::from);
        all.filter(|metric| metric.events(names).is_ok()).collect()
    }

    /// Which events are summed above and below.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn events(&self, names: &[&str]) -> Result<(Vec<usize>, Vec<usize>), String> {
        let side = |side: &Side| {
            let found = side.events(names);
            if found.is_empty() {
                Err(format!("{}: no event {}", self.heading, side.name()))
            } else {
                Ok(found)
            }
        };
        Ok((side(&self.above)?, side(&self.below)?))
    }
}

impl From<&Preset> for Metric {
    fn from(preset: &Preset) -> Self {
        let side = |name| match name {
            CLOCK => Side::Clock,
            name => Side::Known(name),
        };
        Self {
            heading: preset.heading.to_owned(),
            meaning: preset.meaning.to_owned(),
            above: side(preset.above),
            below: side(preset.below),
            factor: preset.factor,
            digits: Some(preset.digits),
            is_percent: preset.heading.ends_with('%'),
        }
    }
}

impl Side {
    fn name(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Clock => "cpu-clock or task-clock",
            Self::Given(name) => name,
        }
    }

    fn events(&self, names: &[&str]) -> Vec<usize> {
        let called = |wanted: &str| -> Vec<usize> {
            let wanted = plain_name(wanted);
            (0..names.len())
                .filter(|index| plain_name(names[*index]) == wanted)
                .collect()
        };
        match self {
            Self::Known(name) => called(name),
            Self::Clock => {
                let first = names.iter().position(|name| is_clock(name));
                first.into_iter().collect()
            }
            Self::Given(name) => {
                let number = name.strip_prefix('%').and_then(|n| n.parse::<usize>().ok());
                match number {
                    Some(number) => number
                        .checked_sub(1)
                        .filter(|index| *index < names.len())
                        .into_iter()
                        .collect(),
                    None => called(name),
                }
            }
        }
    }
}

/// Whether an event counts the time on a processor in ns.
#[must_use]
pub fn is_clock(name: &str) -> bool {
    matches!(plain_name(name), "cpu-clock" | "task-clock")
}

/// The PMU that a name tells, `cpu_core` of `cpu_core/cycles/`.
#[must_use]
pub fn pmu(name: &str) -> Option<&str> {
    let (front, rest) = name.split_once('/')?;
    let first = rest.split([',', '/']).next().unwrap_or_default();
    (!first.is_empty() && !first.contains('=')).then_some(front)
}

/// An event's name without PMU, modifiers and terms, by its usual name where there are several: `cycles` for
/// `cpu_core/cpu-cycles/u`, `instructions` for `instructions/period=1000/`.
#[must_use]
pub fn plain_name(name: &str) -> &str {
    let name = match (pmu(name), name.split_once('/')) {
        (Some(_), Some((_, rest))) => rest.split([',', '/']).next().unwrap_or(rest),
        (None, Some((front, _))) => front,
        (_, None) => name,
    };
    let is_modifiers = |end: &str| {
        !end.is_empty() && end.len() <= 8 && end.bytes().all(|b| b"ukhGHpPSDWebI".contains(&b))
    };
    let name = match name.rsplit_once(':') {
        Some((front, end)) if is_modifiers(end) => front,
        _ => name,
    };
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_pmus_modifiers_and_terms() {
        for (name, plain) in [
            ("cycles:u", "cycles"),
            ("cpu-cycles:ppp", "cycles"),
            ("cpu_core/cycles/u", "cycles"),
            ("cpu_atom/branch-instructions,period=3/", "branches"),
            ("instructions/period=1000003/", "instructions"),
            ("sched:sched_switch", "sched:sched_switch"),
            ("L1-dcache-load-misses:u", "L1-dcache-load-misses"),
            ("faults", "page-faults"),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
        assert_eq!(pmu("cpu_core/cycles/"), Some("cpu_core"));
        assert_eq!(pmu("cycles/freq=9/"), None);
    }

    #[test]
    fn words_are_metrics_or_not() {
        assert_eq!(Metric::parse("mpki").map(|all| all.len()), Some(2));
        assert_eq!(Metric::parse("ip"), None);
        assert_eq!(Metric::parse("prev_state/raw"), None);
        let own = Metric::parse("%2/task-clock").expect("two events");
        let names = ["page-faults:u", "sched:sched_switch", "task-clock"];
        assert_eq!(own[0].events(&names), Ok((vec![1], vec![2])));
        assert!(Metric::parse_list("ipc,nonsense").is_err());
    }

    #[test]
    fn what_there_is_can_be_had() {
        let names = [
            "cpu_core/cycles/",
            "cpu_atom/cycles/",
            "instructions",
            "cpu-clock",
        ];
        let headings: Vec<String> = Metric::available(&names)
            .into_iter()
            .map(|metric| metric.heading)
            .collect();
        assert_eq!(headings, ["IPC", "GHz"]);
        let ipc = &Metric::parse("ipc").expect("known")[0];
        assert_eq!(ipc.events(&names), Ok((vec![2], vec![0, 1])));
        assert_eq!(
            ipc.events(&["cycles"]),
            Err("IPC: no event instructions".to_owned())
        );
    }
}
