//! `--between`, `--within` and `--slowest`: which times of threads are looked at. On the ground floor: views say it, and who reads
//! recordings does it.

use crate::time_spec::parse_quantum;

/// `A..B by FIELD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Event that begins.
    pub from: String,
    /// Event that ends.
    pub to: String,
    /// Field that both have, which tells what belongs together; else the thread does.
    pub by: Option<String>,
}

impl Pair {
    /// Understands `A..B` and `A..B by FIELD`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, ""));
        let (to, by) = match to.split_once(" by ") {
            Some((to, by)) => (to, Some(by.trim().to_owned())),
            None => (to, None),
        };
        let (from, to) = (from.trim(), to.trim());
        let has_all = !from.is_empty() && !to.is_empty() && by.as_deref() != Some("");
        if !has_all {
            return Err("a pair is `EVENT..EVENT` or `EVENT..EVENT by FIELD`".to_owned());
        }
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
            by,
        })
    }
}

/// Which spans are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Spans {
    /// The events.
    pub pair: Pair,
    /// As it was typed.
    pub text: String,
    /// Which of them, if not all.
    pub slowest: Option<(Slowest, String)>,
}

/// Which spans are the slowest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Slowest {
    /// This share of them, from 0 to 1, and one at least.
    Share(f64),
    /// So many.
    Count(usize),
    /// Those that take longer, in ns.
    LongerThan(u64),
}

impl Slowest {
    /// Understands `1%`, `5` and `>30ms`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("--slowest takes 1%, a number or >30ms, not '{text}'");
        if let Some(time) = text.strip_prefix('>') {
            let has_unit = time.ends_with('s');
            let time = parse_quantum(time).ok().filter(|_| has_unit);
            return time.map(Self::LongerThan).ok_or_else(wrong);
        }
        if let Some(share) = text.strip_suffix('%') {
            let share = share.parse::<f64>().ok();
            let share = share.filter(|share| *share > 0.0 && *share <= 100.0);
            return share
                .map(|share| Self::Share(share / 100.0))
                .ok_or_else(wrong);
        }
        let count = text.parse().ok().filter(|count| *count > 0);
        count.map(Self::Count).ok_or_else(wrong)
    }
}

impl Spans {
    /// The option as it was typed.
    #[must_use]
    pub fn option(&self) -> String {
        match &self.slowest {
            None => format!("--between {}", self.text),
            Some((_, slowest)) => format!("--within {} --slowest {slowest}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowest_are_shares_numbers_or_times() {
        assert_eq!(Slowest::parse("1%"), Ok(Slowest::Share(0.01)));
        assert_eq!(Slowest::parse("5"), Ok(Slowest::Count(5)));
        assert_eq!(Slowest::parse(">30ms"), Ok(Slowest::LongerThan(30_000_000)));
        for bad in [
            "", "0", "0%", "101%", "-1", ">", ">30", "30ms", ">-1ms", "nan%",
        ] {
            assert!(Slowest::parse(bad).is_err(), "{bad}");
        }
    }
}
