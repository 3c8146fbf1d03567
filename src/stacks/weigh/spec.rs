//! What `--weight` was told: the name of a preset, a pair of events, or expressions.

use super::Trim;
use super::expr::Expr;
use crate::span_spec::Pair;

/// What samples weigh.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Spec {
    /// As recorded.
    #[default]
    Period,
    /// One each.
    Samples,
    /// What was asked of an allocator.
    Heap(Heap),
    /// Time between a switch away from a thread and the next one to it.
    Waits(Waits),
    /// Time on a processor.
    OnCpu,
    /// Both: all of a thread's life.
    Wall,
    /// Pages that came into being.
    Faults,
    /// Time from the first event of a pair to the second.
    Duration(Option<Pair>),
    /// Values of expressions.
    Expressions(Vec<Term>),
}

/// What of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heap {
    /// Bytes asked for.
    Alloc,
    /// Calls.
    AllocCount,
    /// Bytes that were not freed.
    Live,
    /// Blocks that were not freed.
    LiveCount,
    /// Bytes that were there when there were most.
    Peak,
    /// Bytes times seconds that they were there.
    Lifetime,
}

/// Which waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// All.
    OffCpu,
    /// For something.
    Blocked,
    /// For a processor.
    Runnable,
}

/// `EVENT=EXPR` or `EXPR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The event, if one was named.
    pub event: Option<String>,
    /// Its weight.
    pub expr: Expr,
}

impl Spec {
    /// The presets and their names.
    pub const PRESETS: [(&'static str, Self); 15] = [
        ("period", Self::Period),
        ("samples", Self::Samples),
        ("alloc", Self::Heap(Heap::Alloc)),
        ("alloc-count", Self::Heap(Heap::AllocCount)),
        ("live", Self::Heap(Heap::Live)),
        ("live-count", Self::Heap(Heap::LiveCount)),
        ("peak", Self::Heap(Heap::Peak)),
        ("lifetime", Self::Heap(Heap::Lifetime)),
        ("offcpu", Self::Waits(Waits::OffCpu)),
        ("blocked", Self::Waits(Waits::Blocked)),
        ("runnable", Self::Waits(Waits::Runnable)),
        ("oncpu", Self::OnCpu),
        ("wall", Self::Wall),
        ("faults", Self::Faults),
        ("duration", Self::Duration(None)),
    ];

    /// Which frames views leave out in front of stacks that are weighed so.
    #[must_use]
    pub const fn trim(&self) -> Option<Trim> {
        match self {
            Self::Heap(_) => Some(Trim::Allocators),
            Self::Waits(_) | Self::Wall => Some(Trim::Scheduler),
            _ => None,
        }
    }

    /// Understands a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some((_, preset)) = Self::PRESETS.iter().find(|(name, _)| *name == text) {
            return Ok(preset.clone());
        }
        if text.contains("..") {
            return Ok(Self::Duration(Some(Pair::parse(text)?)));
        }
        let terms = split_outside(text, ',').map(Term::parse);
        terms.collect::<Result<_, _>>().map(Self::Expressions)
    }

    /// Whether it changes anything.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Period
    }

    /// Whether samples are still of the events that were recorded.
    #[must_use]
    pub fn keeps_events(&self) -> bool {
        matches!(self, Self::Period | Self::Samples)
    }

    /// Whether stacks begin with frames that belong to the measurement.
    #[must_use]
    pub fn trims(&self) -> bool {
        matches!(self, Self::Heap(_) | Self::Waits(_) | Self::Wall)
    }

    /// Whether events are looked at together, so that none may be left out before.
    #[must_use]
    pub fn pairs(&self) -> bool {
        match self {
            Self::Period | Self::Samples | Self::Faults | Self::Expressions(_) => false,
            Self::Heap(_) | Self::Waits(_) | Self::OnCpu | Self::Wall | Self::Duration(_) => true,
        }
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, String> {
        let (event, expr) = match assignment(text) {
            Some(at) => (Some(text[..at].trim()), &text[at + 1..]),
            None => (None, text),
        };
        if event == Some("") {
            return Err(format!("`{}`: no event in front of `=`", text.trim()));
        }
        let expr = Expr::parse(expr).map_err(|problem| {
            let names: Vec<&str> = Spec::PRESETS.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            format!(
                "has no weight '{}' ({problem}): one of {names}\nhint: pjit help weights",
                text.trim()
            )
        })?;
        Ok(Self {
            event: event.map(str::to_owned),
            expr,
        })
    }
}

/// Where the `=` is that is no part of a comparison.
fn assignment(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
    let is_comparison =
        bytes.get(at + 1) == Some(&b'=') || matches!(before, Some(b'<' | b'>' | b'!'));
    (!is_comparison).then_some(at)
}

/// The parts between separators that are in no parentheses.
fn split_outside(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_i64;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == separator && depth <= 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_pairs_and_expressions_are_told_apart() {
        assert_eq!(Spec::parse("wall"), Ok(Spec::Wall));
        let pair = Spec::parse("block:a..block:b by sector").expect("a pair");
        let expected = Pair {
            from: "block:a".into(),
            to: "block:b".into(),
            by: Some("sector".into()),
        };
        assert_eq!(pair, Spec::Duration(Some(expected)));
        let Ok(Spec::Expressions(terms)) =
            Spec::parse("probe:malloc=size, probe:calloc = max(nmemb,1)*size,a==b")
        else {
            panic!("expressions");
        };
        let events: Vec<_> = terms.iter().map(|term| term.event.as_deref()).collect();
        assert_eq!(events, [Some("probe:malloc"), Some("probe:calloc"), None]);
        assert!(Spec::parse("=size").is_err() && Spec::parse("a..").is_err());
    }
}
