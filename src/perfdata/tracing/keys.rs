//! Fields of tracepoints as sort keys.
//!
//! In: the words of `--sort` that are no keys. Out: the [`FieldKey`]s they name in a recording, and their values in payloads.
//! Follows perf's `add_dynamic_entry` and `__sort__hde_entry` (`util/sort.c`): rows are told apart by a field's bytes, and show
//! what stands behind `NAME=` in the printed payload.

use super::field::Field;
use super::fields::behind;
use super::{Context, Functions, Tracepoints, print};
use crate::perfdata::{Event, EventId};

/// A field of one event's tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldKey {
    /// Number of the word that named it.
    pub word: usize,
    /// The event.
    pub event: EventId,
    /// Its name.
    pub name: String,
    /// Whether its value is shown, and not the text of the printed payload.
    pub is_raw: bool,
    /// Width of its column at least.
    pub width: usize,
    /// Whether its bytes lie elsewhere in the payload.
    pub is_elsewhere: bool,
    /// Its place among the keys of its event.
    pub place: usize,
    /// Its place among the fields of the tracepoint.
    number: usize,
}

/// What a payload says of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldValue {
    /// Its bytes, which tell rows apart.
    pub raw: Box<[u8]>,
    /// As it is shown.
    pub text: Box<str>,
}

/// Why a word names no field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoField {
    /// No event has such a field.
    #[error("no tracepoint of the recording has a field `{0}`")]
    Unknown(String),
    /// There are no tracepoints at all.
    #[error("`{0}` is no key, and the recording has no tracepoints of which it could be a field")]
    NoTracepoints(String),
    /// The part before the dot names no event, or several.
    #[error("`{0}`: {1} event of the recording is called so")]
    Event(String, &'static str),
    /// It is called by the name of an event that has no fields.
    #[error("`{0}`: the event is no tracepoint")]
    NoTracepoint(String),
    /// Behind the slash there is something else than `raw`.
    #[error("`{0}`: behind the slash perf knows nothing but `raw`")]
    Option(String),
}

/// A word in its parts: `EVENT.FIELD/raw`.
struct Word<'w> {
    text: &'w str,
    event: Option<&'w str>,
    field: &'w str,
    is_raw: bool,
}

impl<'w> Word<'w> {
    fn parse(text: &'w str, all_raw: bool) -> Result<Self, NoField> {
        let (event, rest) = match text.split_once('.') {
            Some((event, rest)) => (Some(event), rest),
            None => (None, text),
        };
        let (field, is_raw) = match rest.split_once('/') {
            Some((field, "raw")) => (field, true),
            Some(_) => return Err(NoField::Option(text.to_owned())),
            None => (rest, all_raw),
        };
        Ok(Self {
            text,
            event,
            field,
            is_raw,
        })
    }
}

impl Tracepoints {
    /// The fields that words name, in the order of words, events and fields; all as values if `raw`.
    ///
    /// # Errors
    /// When a word names none.
    pub fn field_keys(
        &self,
        words: &[String],
        events: &[Event],
        raw: bool,
    ) -> Result<Vec<FieldKey>, NoField> {
        let mut keys: Vec<FieldKey> = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let word = Word::parse(word, raw)?;
            let found = self.fields_of(&word, events)?;
            for (event, field, field_number) in found {
                let is_event = |key: &&FieldKey| key.event == event;
                keys.push(FieldKey {
                    word: number,
                    event,
                    name: field.name.clone(),
                    is_raw: word.is_raw,
                    width: width(field),
                    is_elsewhere: field.kind.is_dynamic(),
                    place: keys.iter().filter(is_event).count(),
                    number: field_number,
                });
            }
        }
        Ok(keys)
    }

    /// The fields that a word names.
    fn fields_of(
        &self,
        word: &Word<'_>,
        events: &[Event],
    ) -> Result<Vec<(EventId, &Field, usize)>, NoField> {
        let wanted = match word.event {
            Some(name) => vec![named(name, word.text, events)?],
            None => (0..events.len()).collect(),
        };
        let (is_all, in_all) = (word.field == "*", word.field == "trace_fields");
        let mut found = Vec::new();
        for at in wanted {
            let event = &events[at];
            let point = self.by_id.get(&event.attr.config);
            let Some(point) = point.filter(|_| event.attr.is_tracepoint()) else {
                continue;
            };
            let own = is_all && word.event.is_some() || in_all;
            let fields = point.fields.iter().enumerate();
            let fields = fields.filter(|(number, field)| match own {
                true => *number >= point.common,
                false => field.name == word.field,
            });
            let id = EventId(u16::try_from(at).unwrap_or(u16::MAX));
            let fields = fields.map(|(number, field)| (id, field, number));
            found.extend(fields.take(if own { usize::MAX } else { 1 }));
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let text = word.text.to_owned();
        let has_any = events.iter().any(|event| event.attr.is_tracepoint());
        Err(if has_any {
            NoField::Unknown(text)
        } else {
            NoField::NoTracepoints(text)
        })
    }

    /// What a payload says of the fields of its event, in the order of their places.
    pub fn field_values<'k>(
        &self,
        id: u64,
        keys: impl Iterator<Item = &'k FieldKey>,
        payload: &[u8],
        functions: &Functions<'_>,
    ) -> Box<[FieldValue]> {
        let Some(point) = self.by_id.get(&id) else {
            return Box::default();
        };
        let context = Context {
            data: payload,
            strings: &self.strings,
            functions,
            long_size: self.long_size,
        };
        let mut printed = None;
        let value = |key: &FieldKey| {
            let field = &point.fields[key.number];
            let mut text = None;
            if !key.is_raw {
                let printed = printed.get_or_insert_with(|| self.render(id, payload, functions));
                let printed = printed.as_deref().unwrap_or_default();
                text = behind(printed, &field.name).map(Box::from);
            }
            FieldValue {
                raw: context.bytes(field).into(),
                text: text.unwrap_or_else(|| print::field_text(field, &context).into()),
            }
        };
        keys.map(value).collect()
    }
}

/// The event that a name means: one with `:` in full, another as a part of one event's name, `%N` the `N`-th.
fn named(name: &str, word: &str, events: &[Event]) -> Result<usize, NoField> {
    let none = || NoField::Event(word.to_owned(), "no");
    let at = if let Some(number) = name.strip_prefix('%') {
        let number: usize = number.parse().map_err(|_| none())?;
        // As perf, which takes the first for 0.
        Some(number.saturating_sub(1)).filter(|at| *at < events.len())
    } else {
        let is_full = name.contains(':');
        let fits = |event: &Event| match is_full {
            true => event.name == name,
            false => event.name.contains(name),
        };
        let mut fitting = (0..events.len()).filter(|at| fits(&events[*at]));
        let first = fitting.next();
        if !is_full && fitting.next().is_some() {
            return Err(NoField::Event(word.to_owned(), "more than one"));
        }
        first
    };
    let at = at.ok_or_else(none)?;
    if events[at].attr.is_tracepoint() {
        Ok(at)
    } else {
        Err(NoField::NoTracepoint(word.to_owned()))
    }
}

/// Room for the name and for the number in hexadecimal.
fn width(field: &Field) -> usize {
    let room = match field.is_string {
        true => field.size,
        false => field.size.saturating_mul(2).saturating_add(2),
    };
    // A description may say anything of sizes.
    room.min(4096).max(field.name.len())
}
