//! Fields of tracepoints as sort keys.
//!
//! In: the words of `--sort` that are no keys. Out: the [`FieldKey`]s they name in a recording, and their values in payloads.
//! Follows perf's `add_dynamic_entry` and `__sort__hde_entry` (`util/sort.c`): rows are told apart by a field's bytes, and show
//! what stands behind `NAME=` in the printed payload. `FIELD~2` is not perf's: numbers between the same powers of two are one row.

use super::field::Field;
use super::fields::behind;
use super::{Context, Functions, Tracepoints, print};
use crate::ids::IndexSlice;
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
    /// Whose powers tell rows apart, if not the values themselves.
    base: Option<u64>,
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
    #[error("no tracepoint of this recording has a field '{0}'")]
    Unknown(String),
    /// There are no tracepoints at all.
    #[error("'{0}' is not a key, and this recording has no tracepoints with fields")]
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
    /// Behind the tilde there is no number.
    #[error(
        "`{0}`: behind the tilde stands the base of the powers between which values are one row, as in `size~2`"
    )]
    Base(String),
    /// There are no powers between which it could be.
    #[error("`{0}`: `{1}` is no number")]
    NoNumber(String, String),
}

/// A word in its parts: `EVENT.FIELD/raw`.
struct Word<'w> {
    text: &'w str,
    event: Option<&'w str>,
    field: &'w str,
    base: Option<u64>,
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
        let (field, base) = match field.split_once('~') {
            Some((field, base)) => {
                let base = base.parse().ok().filter(|base| *base > 1);
                let base = base.ok_or_else(|| NoField::Base(text.to_owned()))?;
                (field, Some(base))
            }
            None => (field, None),
        };
        Ok(Self {
            text,
            event,
            field,
            base,
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
        events: &IndexSlice<EventId, [Event]>,
        raw: bool,
    ) -> Result<Vec<FieldKey>, NoField> {
        let mut keys: Vec<FieldKey> = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let word = Word::parse(word, raw)?;
            let found = self.fields_of(&word, events)?;
            for (event, field, field_number) in found {
                let is_event = |key: &&FieldKey| key.event == event;
                let name = field.name.clone();
                let name = match word.base {
                    Some(_) if field.at().is_none() => {
                        return Err(NoField::NoNumber(word.text.to_owned(), name));
                    }
                    Some(base) => format!("{name}~{base}"),
                    None => name,
                };
                keys.push(FieldKey {
                    word: number,
                    event,
                    name,
                    is_raw: word.is_raw && word.base.is_none(),
                    base: word.base,
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
        events: &IndexSlice<EventId, [Event]>,
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
            let fields = fields.filter(|(number, field)| {
                if own {
                    *number >= point.common
                } else {
                    field.name == word.field
                }
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
            if let Some(base) = key.base {
                return between_powers(field.at().and_then(|at| at.number(payload)), base);
            }
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

/// The values between two powers of a number: `16..31`, `-31..-16`, `0`.
fn between_powers(value: Option<i128>, base: u64) -> FieldValue {
    let Some(value) = value else {
        return FieldValue {
            raw: Box::default(),
            text: Box::default(),
        };
    };
    let (size, base) = (value.unsigned_abs(), u128::from(base));
    let mut least = size.min(1);
    while size / base >= least && least > 0 {
        least *= base;
    }
    let most = (least * base).saturating_sub(1).max(least);
    let text = match (value < 0, least == most) {
        (false, true) => least.to_string(),
        (false, false) => format!("{least}..{most}"),
        (true, true) => format!("-{least}"),
        (true, false) => format!("-{most}..-{least}"),
    };
    // Higher bytes are higher values.
    let place = i128::try_from(least).unwrap_or(i128::MAX) * value.signum();
    let raw = place.wrapping_sub(i128::MIN).cast_unsigned().to_be_bytes();
    FieldValue {
        raw: raw.into(),
        text: text.into(),
    }
}

/// The event that a name means: one with `:` in full, another as a part of one event's name, `%N` the `N`-th.
fn named(name: &str, word: &str, events: &IndexSlice<EventId, [Event]>) -> Result<usize, NoField> {
    let none = || NoField::Event(word.to_owned(), "no");
    let at = if let Some(number) = name.strip_prefix('%') {
        let number: usize = number.parse().map_err(|_| none())?;
        // As perf, which takes the first for 0.
        Some(number.saturating_sub(1)).filter(|at| *at < events.len())
    } else {
        let is_full = name.contains(':');
        let fits = |event: &Event| {
            if is_full {
                event.name == name
            } else {
                event.name.contains(name)
            }
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
    let room = if field.is_string {
        field.size
    } else {
        field.size.saturating_mul(2).saturating_add(2)
    };
    // A description may say anything of sizes.
    room.min(4096).max(field.name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_powers_are_one_row() {
        let text = |value: i128, base: u64| between_powers(Some(value), base).text.into_string();
        let of_two = [0, 1, 2, 3, 4, 31, 32, -1, -17].map(|value| text(value, 2));
        let wanted = [
            "0", "1", "2..3", "2..3", "4..7", "16..31", "32..63", "-1", "-31..-16",
        ];
        assert_eq!(of_two, wanted);
        assert_eq!(text(1_048_576, 10), "1000000..9999999");
        let largest = u64::MAX;
        let of_two = format!("{}..{largest}", 1_u64 << 63);
        assert_eq!(text(largest.into(), 2), of_two);
        let squared = u128::from(largest).pow(2);
        let of_itself = format!("{largest}..{}", squared - 1);
        assert_eq!(text(largest.into(), largest), of_itself);
        let least = i128::from(i64::MIN);
        assert_eq!(
            text(least, 2),
            "-18446744073709551615..-9223372036854775808"
        );
        assert_eq!(text(0, 3), "0");
        let raw = |value: i128| between_powers(Some(value), 2).raw;
        assert!(raw(-40) < raw(-3) && raw(-3) < raw(0) && raw(0) < raw(1) && raw(5) < raw(8));
        assert_eq!(raw(20), raw(31));
    }
}
