//! What samples of memory accesses say: where the data came from, and what that cost.
//!
//! In: the words of the record (`union perf_mem_data_src` and `union perf_sample_weight`, `include/uapi/linux/perf_event.h`).
//! Out: their parts, and the words that perf 7.2 has for them (`util/mem-events.c`).

use super::attr::{Attr, sample_type};

/// What an access cost, in the units of the processor: cycles on most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// All of it.
    pub weight: u64,
    /// The part that the instruction waited.
    pub instruction_latency: u64,
    /// The part of a stage of the pipeline.
    pub stage_cycles: u64,
}

impl Cost {
    /// The parts of a word: one in older recordings.
    pub(super) const fn of(attr: &Attr, word: u64) -> Self {
        if attr.has(sample_type::WEIGHT_STRUCT) {
            Self {
                weight: word & 0xffff_ffff,
                instruction_latency: word >> 32 & 0xffff,
                stage_cycles: word >> 48,
            }
        } else {
            Self {
                weight: word,
                instruction_latency: 0,
                stage_cycles: 0,
            }
        }
    }
}

/// Where the data of an access came from: the word as it was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataSource(pub u64);

const NOT_KNOWN: &str = "N/A";

/// Words of numbered levels, of the older bits, and of how far away data was (`util/mem-events.c`).
const NUMBERS: [&str; 16] = [
    "",
    "L1",
    "L2",
    "L3",
    "L4",
    "L2 MHB",
    "Memory-side Cache",
    "L0",
    "Uncached",
    "CXL",
    "I/O",
    "Any cache",
    "LFB/MAB",
    "RAM",
    "PMEM",
    "",
];
const BITS: [&str; 14] = [
    "",
    "",
    "",
    "L1",
    "LFB/MAB",
    "L2",
    "L3",
    "Local RAM",
    "Remote RAM (1 hop)",
    "Remote RAM (2 hops)",
    "Remote Cache (1 hop)",
    "Remote Cache (2 hops)",
    "I/O",
    "Uncached",
];
const HOPS: [&str; 8] = [
    "",
    "core, same node ",
    "node, same socket ",
    "socket, same board ",
    "board ",
    "",
    "",
    "",
];

impl DataSource {
    const fn bits(self, from: u32, count: u32) -> u64 {
        self.0 >> from & ((1 << count) - 1)
    }

    /// Whether it says nothing: no operation, or none that is known, and no level.
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        let (operation, level, number) = (self.bits(0, 5), self.bits(5, 14), self.bits(33, 4));
        operation & !1 == 0 && level & !1 == 0 && (number == 0 || number == 15)
    }

    const fn only(self, from: u32, mask: u64) -> Self {
        Self(self.0 & mask << from)
    }

    /// What [`Self::level`] tells of it: words that read the same are the same number, however they were recorded.
    #[must_use]
    pub fn level_part(self) -> Self {
        let (bits, number) = (self.bits(5, 14), self.bits(33, 4));
        let found = match bits >> 1 & 3 {
            0 => 0,
            both if both & 1 != 0 => 2,
            _ => 4,
        };
        let older = |levels: u64| Self((levels | found) << 5);
        if NUMBERS[number as usize].is_empty() {
            return match bits & !7 {
                0 => Self(0),
                bits => older(bits),
            };
        }
        let hops = if HOPS[self.bits(43, 3) as usize].is_empty() {
            Self(0)
        } else {
            self.only(43, 7)
        };
        let far = hops.0 | self.only(37, 1).0;
        let word = NUMBERS[number as usize];
        match BITS.iter().position(|known| *known == word) {
            Some(bit) if far == 0 => older(1 << bit),
            _ => Self(far | self.only(33, 15).0 | found << 5),
        }
    }

    /// What [`Self::snoop`] tells of it.
    #[must_use]
    pub const fn snoop_part(self) -> Self {
        Self(self.only(19, 30).0 | self.only(38, 3).0)
    }

    /// What [`Self::translation`] tells of it.
    #[must_use]
    pub const fn translation_part(self) -> Self {
        self.only(26, 126)
    }

    /// What [`Self::locked`] tells of it.
    #[must_use]
    pub const fn locked_part(self) -> Self {
        match self.bits(24, 2) {
            0 => Self(0),
            2 => Self(2 << 24),
            _ => Self(1 << 24),
        }
    }

    /// What [`Self::blocked`] tells of it.
    #[must_use]
    pub const fn blocked_part(self) -> Self {
        match self.bits(40, 3) {
            2 | 4 | 6 => self.only(40, 7),
            _ => Self(0),
        }
    }

    /// What was done.
    #[must_use]
    pub fn operation(self) -> &'static str {
        const WORDS: [&str; 5] = [NOT_KNOWN, "LOAD", "STORE", "PFETCH", "EXEC"];
        let bits = self.bits(0, 5);
        let first = WORDS.iter().enumerate().find(|(at, _)| bits >> at & 1 != 0);
        first.map_or("No", |(_, word)| word)
    }

    /// Where in the hierarchy the data was, and whether it was there: by the number of the level where there is one, else by
    /// the older bits.
    #[must_use]
    pub fn level(self) -> String {
        let (bits, number) = (self.bits(5, 14), self.bits(33, 4) as usize);
        let found = match bits >> 1 & 3 {
            0 => "",
            both if both & 1 != 0 => " hit",
            _ => " miss",
        };
        let named = NUMBERS[number];
        if !named.is_empty() {
            let remote = if self.bits(37, 1) != 0 { "Remote " } else { "" };
            let hops = HOPS[self.bits(43, 3) as usize];
            return format!("{remote}{hops}{named}{found}");
        }
        match listed(bits, &BITS) {
            levels if levels.is_empty() => NOT_KNOWN.to_owned(),
            levels => format!("{levels}{found}"),
        }
    }

    /// Whether another processor's cache was asked, and what it had.
    #[must_use]
    pub fn snoop(self) -> String {
        const WORDS: [&str; 7] = ["", "None", "Hit", "Miss", "HitM", "Fwd", "Peer"];
        let bits = self.bits(19, 5) | self.bits(38, 2) << 5;
        or_not_known(listed(bits, &WORDS))
    }

    /// Where the translation of the address was.
    #[must_use]
    pub fn translation(self) -> String {
        const WORDS: [&str; 7] = ["", "", "", "L1", "L2", "Walker", "Fault"];
        let bits = self.bits(26, 7);
        let found = [(1, " hit"), (2, " miss")];
        let found: String = found
            .into_iter()
            .filter(|(bit, _)| bits >> bit & 1 != 0)
            .map(|(_, word)| word)
            .collect();
        or_not_known(listed(bits, &WORDS)) + &found
    }

    /// Whether it was an atomic operation.
    #[must_use]
    pub const fn locked(self) -> &'static str {
        match self.bits(24, 2) {
            0 => "No",
            2 => "Yes",
            _ => NOT_KNOWN,
        }
    }

    /// What it had to wait for, each with a blank before it as perf has it.
    #[must_use]
    pub fn blocked(self) -> &'static str {
        match self.bits(40, 3) {
            2 => " Data",
            4 => " Addr",
            6 => " Data Addr",
            _ => " N/A",
        }
    }

    /// All of it in one line, as `perf script` prints it.
    #[must_use]
    pub fn line(self) -> String {
        format!(
            "|OP {}|LVL {}|SNP {}|TLB {}|LCK {}|BLK {}",
            self.operation(),
            self.level(),
            self.snoop(),
            self.translation(),
            self.locked(),
            self.blocked()
        )
    }
}

/// The words of the bits that are set.
fn listed(bits: u64, words: &[&str]) -> String {
    let set = words.iter().enumerate();
    let set = set.filter(|(at, word)| bits >> at & 1 != 0 && !word.is_empty());
    let set: Vec<&str> = set.map(|(_, word)| *word).collect();
    set.join(" or ")
}

fn or_not_known(text: String) -> String {
    if text.is_empty() {
        NOT_KNOWN.to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words by hand, from the header's shifts.
    #[test]
    fn words_say_where_data_came_from() {
        let level = |bits: u64, number: u64| DataSource(2 | bits << 5 | number << 33).level();
        assert_eq!(level(0b1010, 0), "L1 hit");
        assert_eq!(level(0b1010, 1), "L1 hit", "once, not twice");
        assert_eq!(level(0b10_0100, 0), "L2 miss");
        assert_eq!(level(0b10_1010, 0), "L1 or L2 hit");
        assert_eq!(level(1, 14), "PMEM");
        assert_eq!(level(1, 15), "N/A");
        assert_eq!(level(0, 0), "N/A");
        let remote = DataSource(0x1026_0000_0022);
        assert_eq!(remote.level(), "Remote node, same socket L3");
        assert_eq!((remote.snoop().as_str(), remote.locked()), ("N/A", "No"));
        assert_eq!(DataSource(0x86_0000_0842).snoop(), "Peer");
        assert_eq!(DataSource(0x46_0000_0842).snoop(), "Fwd");
        assert_eq!(DataSource(1 << 19 | 1 << 38).snoop(), "Fwd", "not N/A");
        assert_eq!(DataSource(0x2_2800_0142).translation(), "L1 hit");
        assert_eq!(DataSource(0b1_1010 << 26).translation(), "L1 or L2 hit");
        assert_eq!(DataSource(1 << 26).translation(), "N/A");
        assert_eq!(DataSource(2 << 24).locked(), "Yes");
        assert_eq!(DataSource(1 << 24).locked(), "N/A");
        assert_eq!(DataSource(6 << 40).blocked(), " Data Addr");
        assert_eq!(DataSource(7 << 40).blocked(), " N/A");
        assert_eq!(DataSource(0x2_0000_0144).operation(), "STORE");
        assert_eq!(DataSource(0).operation(), "No");
    }

    /// A part tells the same as the whole, and two parts that tell the same are equal.
    #[test]
    fn parts_are_what_is_told() {
        type Part = (fn(DataSource) -> DataSource, fn(DataSource) -> String);
        let parts: [Part; 5] = [
            (DataSource::level_part, DataSource::level),
            (DataSource::snoop_part, DataSource::snoop),
            (DataSource::translation_part, DataSource::translation),
            (DataSource::locked_part, |of| of.locked().to_owned()),
            (DataSource::blocked_part, |of| of.blocked().to_owned()),
        ];
        let mut state = 41_u64;
        let mut known = rustc_hash::FxHashMap::default();
        for round in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(round);
            // Few bits, so that many texts are equal.
            let word = DataSource(state >> 3 & state.rotate_left(17) & ((1 << 46) - 1));
            for (kind, (part, text)) in parts.iter().enumerate() {
                let (part, text) = (part(word), text(word));
                let same = parts[kind].1(part);
                assert_eq!(same, text, "{:#x} as {:#x}", word.0, part.0);
                let first = *known.entry((kind, text.clone())).or_insert(part);
                assert_eq!(first, part, "{text}");
            }
        }
        assert!(known.len() > 100, "{}", known.len());
    }

    #[test]
    fn what_is_not_known_is_nothing() {
        // As the kernel fills it in where nobody else does: N/A of everything.
        let not_known = 1 | 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26;
        assert!(DataSource(0).is_nothing() && DataSource(not_known).is_nothing());
        assert!(DataSource(not_known | 15 << 33).is_nothing());
        assert!(!DataSource(0x2_2800_0142).is_nothing());
        assert!(!DataSource(0x1c_0000_0022).is_nothing(), "a number only");
    }

    #[test]
    fn newer_costs_have_three_parts() {
        let with = |sample_type| Attr {
            sample_type,
            ..Attr::default()
        };
        let word = 7 << 48 | 5 << 32 | 0x8000_0003;
        let parts = Cost {
            weight: 0x8000_0003,
            instruction_latency: 5,
            stage_cycles: 7,
        };
        assert_eq!(Cost::of(&with(sample_type::WEIGHT_STRUCT), word), parts);
        assert_eq!(Cost::of(&with(sample_type::WEIGHT), word).weight, word);
    }
}
