//! Values of expressions for one payload.
//!
//! In: an [`Expr`], the tracepoint's fields and the payload. Out: a number, or the range of bytes that an
//! array has. What lies outside of the payload counts as 0 or as empty. Called by [`super::print`].

use std::ops::Range;

use super::expr::{Expr, cut, without_casts};
use super::field::{Field, Kind};
use super::{Context, Tracepoint};

/// A little-endian number of 1, 2, 4 or 8 bytes; 0 for other sizes and outside of the payload.
pub(super) fn read(data: &[u8], at: usize, size: usize) -> u64 {
    let end = at.saturating_add(size);
    match (size, data.get(at..end)) {
        (1 | 2 | 4 | 8, Some(bytes)) => bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        _ => 0,
    }
}

impl Context<'_> {
    /// The number in a field.
    pub(super) fn scalar(&self, field: &Field) -> u64 {
        read(self.data, field.offset, field.size)
    }

    /// Where the bytes of a field are.
    pub(super) fn range(&self, field: &Field) -> Range<usize> {
        if !field.kind.is_dynamic() {
            // A size of 0 stands for all that follows.
            let end = match field.size {
                0 => self.data.len(),
                size => field.offset.saturating_add(size).min(self.data.len()),
            };
            return field.offset.min(end)..end;
        }
        let place = self.scalar(field);
        let mut start = (place & 0xffff) as usize;
        if field.kind == Kind::Relative {
            start = start.saturating_add(field.offset + field.size);
        }
        let length = match field.size {
            2 => self.data.len(),
            _ => (place >> 16 & 0xffff) as usize,
        };
        let end = start.saturating_add(length).min(self.data.len());
        start.min(end)..end
    }

    /// The bytes of a field.
    pub(super) fn bytes(&self, field: &Field) -> &[u8] {
        self.data.get(self.range(field)).unwrap_or_default()
    }

    /// The value of an expression as a number.
    pub(super) fn number(&self, expr: &Expr, point: &Tracepoint) -> u64 {
        let number = |part: &Expr| self.number(part, point);
        match expr {
            Expr::Atom(_, value) => *value,
            Expr::Field(field) => self.scalar(&point.fields[*field]),
            Expr::Cast(cast, inner) => cut(number(inner), cast.bits),
            Expr::Unary(op, value) => op.apply(number(value)),
            Expr::Binary(op, left, right) => op.apply(number(left), number(right)),
            Expr::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                number(if number(condition) != 0 { yes } else { no })
            }
            Expr::Index(array, index) => self.element(array, number(index), point),
            Expr::Dynamic(field) => self.range(&point.fields[*field]).start as u64,
            Expr::DynamicLength(field) => self.range(&point.fields[*field]).len() as u64,
            Expr::Record
            | Expr::Flags(..)
            | Expr::Symbolic(..)
            | Expr::Hex(..)
            | Expr::Numbers(..)
            | Expr::Str(_)
            | Expr::Bits(_)
            | Expr::Cpus(_) => 0,
        }
    }

    fn element(&self, array: &Expr, index: u64, point: &Tracepoint) -> u64 {
        let (cast, array) = without_casts(array);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let (at, size) = match array {
            Expr::Field(field) => {
                let field = &point.fields[*field];
                let size = field.element;
                (
                    field.offset.saturating_add(index.saturating_mul(size)),
                    size,
                )
            }
            Expr::Dynamic(field) => {
                let field = &point.fields[*field];
                let size = match field.element {
                    0 => self.long_size,
                    size => size,
                };
                // The index counts bytes here, whatever the type, in libtraceevent.
                (self.range(field).start.saturating_add(index), size)
            }
            _ => return 0,
        };
        let value = read(self.data, at, size);
        cut(value, cast.map_or(0, |cast| cast.pointed))
    }

    /// Elements of an array as `__print_array` shows them; an unknown size reads bytes.
    pub(super) fn elements(&self, start: usize, count: u64, size: usize) -> Vec<u64> {
        let there = self.data.len().saturating_sub(start) / size.max(1);
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(there);
        (0..count)
            .map(|i| read(self.data, start + i * size, size))
            .collect()
    }
}
