//! Single fields of payloads, as numbers and as text.
//!
//! In: a tracepoint's id, a field's name, the payload of a sample. Out: [`FieldAt`], which reads the number without
//! looking at anything else, and the text that perf's sort keys show (`util/sort.c`, `hde_entry`). Called by
//! [`crate::weigh`] for millions of samples: what can be worked out once is.

use super::eval::read;
use super::field::{Field, Kind};
use super::{Functions, Tracepoints};

/// Where a number lies in the payloads of one tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldAt {
    offset: usize,
    size: usize,
    is_signed: bool,
}

impl FieldAt {
    /// A number of so many bytes, if there are such.
    #[must_use]
    pub fn new(offset: usize, size: usize, is_signed: bool) -> Option<Self> {
        matches!(size, 1 | 2 | 4 | 8).then_some(Self {
            offset,
            size,
            is_signed,
        })
    }

    /// The field's value; `None` when the payload ends before it.
    #[must_use]
    pub fn number(&self, payload: &[u8]) -> Option<i128> {
        let end = self.offset.checked_add(self.size)?;
        payload.get(self.offset..end)?;
        let value = read(payload, self.offset, self.size);
        let bits = 64 - 8 * u32::try_from(self.size.min(8)).ok()?;
        Some(if self.is_signed {
            i128::from((value << bits).cast_signed() >> bits)
        } else {
            i128::from(value)
        })
    }
}

impl Field {
    /// Where the number is, if the field is one.
    pub(super) fn at(&self) -> Option<FieldAt> {
        let at = FieldAt::new(self.offset, self.size, self.is_signed);
        at.filter(|_| self.kind == Kind::Scalar)
    }
}

impl Tracepoints {
    fn find(&self, id: u64, name: &str) -> Option<&Field> {
        let fields = &self.by_id.get(&id)?.fields;
        fields.iter().find(|field| field.name == name)
    }

    /// Where the number `name` is in payloads of the tracepoint `id`.
    #[must_use]
    pub fn field(&self, id: u64, name: &str) -> Option<FieldAt> {
        self.find(id, name)?.at()
    }

    /// The names of a tracepoint's own fields, in order.
    pub fn field_names(&self, id: u64) -> impl Iterator<Item = &str> {
        let point = self.by_id.get(&id);
        let fields = point.map_or(&[][..], |point| &point.fields[point.common..]);
        fields.iter().map(|field| field.name.as_str())
    }

    /// A field as the printed payload shows it: what stands behind `NAME=` up to the next blank.
    #[must_use]
    pub fn field_text(
        &self,
        id: u64,
        name: &str,
        payload: &[u8],
        functions: &Functions<'_>,
    ) -> Option<String> {
        self.find(id, name)?;
        let text = self.render(id, payload, functions)?;
        behind(&text, name).map(str::to_owned)
    }
}

/// What stands behind `NAME=`, where that begins a word.
pub(super) fn behind<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find(name) {
        let start = from + at;
        let rest = &text[start + name.len()..];
        let begins = start == 0 || text.as_bytes()[start - 1] == b' ';
        if let Some(value) = rest.strip_prefix('=').filter(|_| begins) {
            return value.split(' ').next();
        }
        from = start + name.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_sign() {
        let at = |size, is_signed| FieldAt {
            offset: 1,
            size,
            is_signed,
        };
        let data = [0, 0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0];
        assert_eq!(at(4, true).number(&data), Some(-2));
        assert_eq!(at(4, false).number(&data), Some(0xffff_fffe));
        assert_eq!(at(1, true).number(&data), Some(-2));
        assert_eq!(at(8, false).number(&data), Some(0x1_ffff_fffe));
        assert_eq!(at(8, true).number(&data[..8]), None);
    }

    #[test]
    fn a_field_is_the_word_behind_its_name() {
        let text = "prev_pid=7 pid=8 state=R+ ==> x";
        assert_eq!(behind(text, "pid"), Some("8"));
        assert_eq!(behind(text, "state"), Some("R+"));
        assert_eq!(behind(text, "prev"), None);
    }
}
