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
                    "has no rate '{word}': one of {}, or EVENT/EVENT",
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

    /// Which events are summed above and below: none that counts what another one counts, and of the same modes of the
    /// processor on both sides, unless a user named the events or one side is time.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn events(&self, names: &[&str]) -> Result<(Vec<usize>, Vec<usize>), String> {
        let of_side = |side: &Side| {
            let found = side.events(names);
            if found.is_empty() {
                Err(format!("{}: no event {}", self.heading, side.name()))
            } else {
                Ok(found)
            }
        };
        let (above, below) = (of_side(&self.above)?, of_side(&self.below)?);
        let in_modes = |events: &[usize], modes: Modes| {
            let all = events.iter().map(|&index| (index, names[index]));
            let of = all.map(|(index, name)| (index, pmu(name), Modes::of(name)));
            let of = of.filter(|(.., own)| own.0 & modes.0 == own.0);
            disjoint(of.collect())
        };
        let is_free = |side: &Side| !matches!(side, Side::Known(_));
        if is_free(&self.above) || is_free(&self.below) {
            return Ok((in_modes(&above, Modes::ALL), in_modes(&below, Modes::ALL)));
        }
        // What both sides have, the most of it first.
        let mut modes: Vec<Modes> = (1..=Modes::ALL.0).map(Modes).collect();
        modes.sort_by_key(|modes| std::cmp::Reverse(modes.0.count_ones()));
        // Each PMU of a side has them.
        let cover = |all: &[usize], kept: &[usize], shared: Modes| {
            let of_pmu = |wanted| {
                let of = kept.iter().map(|index| names[*index]);
                let of = of.filter(|name| pmu(name) == wanted);
                of.fold(0, |joined, name| joined | Modes::of(name).0)
            };
            let mut pmus = all.iter().map(|index| pmu(names[*index]));
            pmus.all(|pmu| of_pmu(pmu) == shared.0)
        };
        let pairs = modes.into_iter().map(|modes| {
            let sides = (in_modes(&above, modes), in_modes(&below, modes));
            let is_whole = cover(&above, &sides.0, modes) && cover(&below, &sides.1, modes);
            is_whole.then_some(sides)
        });
        pairs.flatten().next().ok_or_else(|| {
            let (above, below) = (names[above[0]], names[below[0]]);
            format!(
                "{}: {above} and {below} count in different modes of the processor",
                self.heading
            )
        })
    }

    /// Which events are left out of every sum because others count the same.
    #[must_use]
    pub fn counted_twice(names: &[&str]) -> Vec<usize> {
        let all = 0..names.len();
        let kept = disjoint(
            all.clone()
                .map(|index| {
                    let name = names[index];
                    (index, (plain_name(name), pmu(name)), Modes::of(name))
                })
                .collect(),
        );
        all.filter(|index| !kept.contains(index)).collect()
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
                    None => {
                        // In full, with its modifiers, it is that event and no other.
                        let exact = (0..names.len()).filter(|index| names[*index] == name);
                        let exact: Vec<usize> = exact.collect();
                        if exact.is_empty() {
                            called(name)
                        } else {
                            exact
                        }
                    }
                }
            }
        }
    }
}

/// Modes of the processor in which an event counts, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes(u8);

impl Modes {
    /// User, kernel, hypervisor.
    const ALL: Self = Self(7);

    /// All but those that are excluded: user, kernel, hypervisor.
    #[must_use]
    pub fn without((user, kernel, hypervisor): (bool, bool, bool)) -> Self {
        Self(u8::from(!user) | u8::from(!kernel) << 1 | u8::from(!hypervisor) << 2)
    }

    /// As the modifiers of a name say it.
    fn of(name: &str) -> Self {
        let modifiers = modifiers(name);
        let has = |letter| modifiers.contains(letter);
        if has('u') || has('k') || has('h') {
            Self::without((!has('u'), !has('k'), !has('h')))
        } else {
            Self::ALL
        }
    }
}

/// Of some events those that add up, the widest first: by number, what tells apart what does not overlap anyway, and modes.
#[must_use]
pub fn disjoint<K: PartialEq>(mut events: Vec<(usize, K, Modes)>) -> Vec<usize> {
    events.sort_by_key(|(index, _, modes)| (std::cmp::Reverse(modes.0.count_ones()), *index));
    let mut kept: Vec<(usize, K, Modes)> = Vec::new();
    for (index, key, modes) in events {
        let overlaps = |other: &(usize, K, Modes)| other.1 == key && other.2.0 & modes.0 != 0;
        // What counts in no mode overlaps nothing, and is nothing.
        if !kept.iter().any(overlaps) {
            kept.push((index, key, modes));
        }
    }
    let mut kept: Vec<usize> = kept.into_iter().map(|(index, ..)| index).collect();
    kept.sort_unstable();
    kept
}

/// The modifiers of an event's name: `u` of `cycles:u` and of `cpu_core/cycles/u`.
fn modifiers(name: &str) -> &str {
    let end = match name.rsplit_once('/') {
        Some((_, end)) => end.trim_start_matches(':'),
        None => name.rsplit_once(':').map_or("", |(_, end)| end),
    };
    if are_modifiers(end) { end } else { "" }
}

fn are_modifiers(end: &str) -> bool {
    !end.is_empty() && end.len() <= 8 && end.bytes().all(|b| b"ukhGHpPSDWebI".contains(&b))
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
    let name = match name.rsplit_once(':') {
        Some((front, end)) if are_modifiers(end) => front,
        _ => name,
    };
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| name)
}

/// The place of an event that was asked for: the one of this name, or else the only one that is called so without PMU, modifiers and
/// terms, as headers have it.
#[must_use]
pub fn position<'n>(names: impl IntoIterator<Item = &'n str>, wanted: &str) -> Option<usize> {
    let (mut place, mut is_only) = (None, true);
    for (at, name) in names.into_iter().enumerate() {
        if name == wanted {
            return Some(at);
        }
        if plain_name(name) == wanted {
            is_only = place.is_none();
            place = Some(at);
        }
    }
    place.filter(|_| is_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_by_the_names_in_headers() {
        let all = ["cpu-clock/freq=999/", "faults", "cycles:u", "cycles:k"];
        for (wanted, place) in [
            ("cpu-clock/freq=999/", Some(0)),
            ("cpu-clock", Some(0)),
            ("page-faults", Some(1)),
            ("faults", Some(1)),
            // Two are called so.
            ("cycles", None),
            ("cycles:k", Some(3)),
            ("cpu", None),
        ] {
            assert_eq!(position(all, wanted), place, "{wanted}");
        }
        assert_eq!(position(["cycles:u", "cycles"], "cycles"), Some(1));
    }

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
    fn what_two_events_count_is_counted_once() {
        let ipc = &Metric::parse("ipc").expect("known")[0];
        let of = |names: &[&str]| ipc.events(names).ok();
        let both = |above: &[usize], below: &[usize]| Some((above.to_vec(), below.to_vec()));
        assert_eq!(
            of(&["cycles", "cycles:u", "instructions"]),
            both(&[2], &[0])
        );
        assert_eq!(
            of(&["cycles:u", "cycles:k", "instructions:u"]),
            both(&[2], &[0])
        );
        let apart = ["cycles:u", "cycles:k", "cycles:h", "instructions"];
        assert_eq!(of(&apart), both(&[3], &[0, 1, 2]));
        assert_eq!(
            of(&["cycles", "cycles:u", "instructions:u"]),
            both(&[2], &[1])
        );
        assert_eq!(of(&["cycles", "cycles", "instructions"]), both(&[2], &[0]));
        assert_eq!(
            ipc.events(&["cycles", "instructions:u"]),
            Err(
                "IPC: instructions:u and cycles count in different modes of the processor"
                    .to_owned()
            )
        );
        let hybrid = ["cpu_core/cycles/u", "cpu_atom/cycles/", "instructions:u"];
        assert_eq!(of(&hybrid), None);
        let hybrid = ["cpu_core/cycles/u", "cpu_atom/cycles/u", "instructions:u"];
        assert_eq!(of(&hybrid), both(&[2], &[0, 1]));
        let ratio = &Metric::parse("instructions:u/cycles").expect("two")[0];
        let names = ["cycles", "instructions", "instructions:u"];
        assert_eq!(ratio.events(&names), Ok((vec![2], vec![0])));
        assert_eq!(
            Metric::counted_twice(&["cycles", "cpu-cycles:u", "cpu_atom/cycles/", "faults"]),
            [1]
        );
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
