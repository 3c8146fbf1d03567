//! What would put a finding right, as data: it is written when it is known how the recording was made.

use std::borrow::Cow;

use super::{Again, Finding, Level};

/// What would put a finding right: a command or an option with a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remedy {
    parts: Vec<Part>,
    /// `pjit record` does it without being told, so that it helps nobody who has recorded with that.
    is_done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Words(Cow<'static, str>),
    /// `pjit record`, with another way behind it.
    RecordOr,
    /// `pjit record` with these options, which recordings of it take once more.
    Record(Cow<'static, str>),
    /// Java's agent.
    JavaAgent,
}

impl Remedy {
    /// `pjit record`, and what it does without being told.
    pub(super) fn done(text: &'static str) -> Self {
        Self {
            is_done: true,
            ..Self::from(text)
        }
    }

    /// `pjit record` with options.
    pub(super) fn record(options: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Part::Record(options.into()))
    }

    /// Java with its agent.
    pub(super) fn java_agent() -> Self {
        Self::of(Part::JavaAgent)
    }

    /// `pjit record`, or what follows.
    pub(super) fn record_or() -> Self {
        Self::of(Part::RecordOr)
    }

    fn of(part: Part) -> Self {
        Self {
            parts: vec![part],
            is_done: false,
        }
    }

    /// With more behind it.
    pub(super) fn then(mut self, more: impl Into<Self>) -> Self {
        self.parts.extend(more.into().parts);
        self
    }

    /// True if it begins with these options of `pjit record`.
    pub(super) fn records_with(&self, wanted: &str) -> bool {
        matches!(self.parts.first(), Some(Part::Record(options)) if options == wanted)
    }

    /// The text for whoever made the recording; `again` if that was `pjit record`.
    pub(super) fn text(&self, again: Option<&Again>) -> Option<String> {
        if self.is_done && again.is_some() {
            return None;
        }
        let by = match again {
            Some(Again::By(command)) => Some(command.as_str()),
            Some(Again::Anew) | None => None,
        };
        let record = by.unwrap_or("pjit record");
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Words(words) => text += words,
                Part::RecordOr if again.is_some() => {}
                Part::RecordOr => text += "pjit record, or ",
                Part::Record(options) => text += &format!("{record} {options}"),
                Part::JavaAgent => {
                    text += &by.map_or_else(
                        || "java -agentpath:libperf-jvmti.so".to_owned(),
                        |command| format!("{command} --java-agent libperf-jvmti.so"),
                    );
                }
            }
        }
        Some(text)
    }
}

impl From<&'static str> for Remedy {
    fn from(words: &'static str) -> Self {
        Self::of(Part::Words(words.into()))
    }
}

impl From<String> for Remedy {
    fn from(words: String) -> Self {
        Self::of(Part::Words(words.into()))
    }
}

/// A finding whose remedies are not written yet.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) level: Level,
    pub(super) check: &'static str,
    text: String,
    pub(super) remedies: Vec<Remedy>,
}

/// A finding without remedies.
pub(super) fn finding(level: Level, check: &'static str, text: impl Into<String>) -> Draft {
    Draft {
        level,
        check,
        text: text.into(),
        remedies: Vec::new(),
    }
}

impl Draft {
    /// What is too little to alarm anybody is told without advice.
    pub(super) fn without_advice_below(mut self, level: Level) -> Self {
        if self.level < level {
            self.remedies.clear();
        }
        self
    }

    pub(super) fn fixed_by(
        mut self,
        remedies: impl IntoIterator<Item = impl Into<Remedy>>,
    ) -> Self {
        self.remedies.extend(remedies.into_iter().map(Into::into));
        self
    }

    /// The finding, for whoever made the recording.
    pub(super) fn written(self, again: Option<&Again>) -> Finding {
        let remedies = self.remedies.iter();
        Finding {
            level: self.level,
            check: self.check,
            text: self.text,
            fixes: remedies.filter_map(|remedy| remedy.text(again)).collect(),
        }
    }
}
