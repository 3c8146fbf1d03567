//! C's `printf` as far as `print fmt` uses it.
//!
//! In: one conversion (`%-8s`, `%#016llx`) and its value. Out: bytes. Called by [`super::print`].

/// Wider than any field that is meant to be read; formats of a file do not decide how much is printed.
const MAX_WIDTH: usize = 1024;

/// A conversion without its `%` and its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spec {
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) zero: bool,
    pub(super) alternate: bool,
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
    /// The argument before the value is the width, or the precision.
    pub(super) star: Option<Star>,
    /// `h` counts down, `l` up.
    pub(super) length: i8,
}

/// What a `*` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Star {
    Width,
    Precision,
}

impl Spec {
    /// Reads flags, width, precision and length; gives what follows.
    pub(super) fn parse(text: &str) -> (Self, &str) {
        let mut spec = Self::default();
        let mut in_precision = false;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            match c {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                '#' => spec.alternate = true,
                '.' => {
                    in_precision = true;
                    spec.precision = Some(0);
                }
                '*' if in_precision => spec.star = Some(Star::Precision),
                '*' => spec.star = Some(Star::Width),
                'h' => spec.length = spec.length.saturating_sub(1),
                'l' => spec.length = spec.length.saturating_add(1),
                'L' => spec.length = 2,
                'z' | 'Z' => spec.length = 1,
                '0' if !in_precision && spec.width == 0 => spec.zero = true,
                '0'..='9' => spec.digit(c, in_precision),
                _ => break,
            }
            rest = &rest[1..];
        }
        (spec, rest)
    }

    fn digit(&mut self, digit: char, in_precision: bool) {
        let number = if in_precision {
            self.precision.get_or_insert(0)
        } else {
            &mut self.width
        };
        let digit = digit.to_digit(10).unwrap_or(0) as usize;
        *number = (*number * 10 + digit).min(MAX_WIDTH);
    }

    /// The same with the value of its `*`.
    pub(super) fn with_star(mut self, value: i32) -> Self {
        let given = usize::try_from(value).ok().map(|n| n.min(MAX_WIDTH));
        match self.star.take() {
            Some(Star::Precision) => self.precision = given,
            Some(Star::Width) => {
                self.left |= value < 0;
                self.width = (value.unsigned_abs() as usize).min(MAX_WIDTH);
            }
            None => {}
        }
        self
    }

    fn cut_signed(&self, value: u64) -> i64 {
        match self.length {
            ..=-2 => i64::from(value as i8),
            -1 => i64::from(value as i16),
            0 => i64::from(value as i32),
            _ => value.cast_signed(),
        }
    }

    fn cut_unsigned(&self, value: u64) -> u64 {
        match self.length {
            ..=-2 => u64::from(value as u8),
            -1 => u64::from(value as u16),
            0 => u64::from(value as u32),
            _ => value,
        }
    }

    /// Appends a number.
    pub(super) fn number(&self, letter: char, value: u64, out: &mut Vec<u8>) {
        let unsigned = self.cut_unsigned(value);
        let (sign, digits) = match letter {
            // A NUL would end the text.
            'c' if value as u8 == 0 => return self.pad(&[], out),
            'c' => return self.pad(&[value as u8], out),
            'd' | 'i' => {
                let signed = self.cut_signed(value);
                let sign = match signed {
                    ..0 => "-",
                    _ if self.plus => "+",
                    _ => "",
                };
                (sign, signed.unsigned_abs().to_string())
            }
            'x' if self.alternate && unsigned != 0 => ("0x", format!("{unsigned:x}")),
            'X' if self.alternate && unsigned != 0 => ("0X", format!("{unsigned:X}")),
            'x' => ("", format!("{unsigned:x}")),
            'X' => ("", format!("{unsigned:X}")),
            'o' if self.alternate && unsigned != 0 => ("", format!("0{unsigned:o}")),
            'o' => ("", format!("{unsigned:o}")),
            _ => ("", unsigned.to_string()),
        };
        let digits = match self.precision {
            Some(0) if unsigned == 0 => String::new(),
            Some(precision) => format!("{digits:0>precision$}"),
            None => digits,
        };
        let zeros = if self.zero && !self.left && self.precision.is_none() {
            self.width.saturating_sub(sign.len() + digits.len())
        } else {
            0
        };
        let text = format!("{sign}{}{digits}", "0".repeat(zeros));
        self.pad(text.as_bytes(), out);
    }

    /// Appends a string, up to its NUL.
    pub(super) fn string(&self, text: &[u8], out: &mut Vec<u8>) {
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        let end = self.precision.map_or(end, |precision| end.min(precision));
        self.pad(text.get(..end).unwrap_or_default(), out);
    }

    fn pad(&self, text: &[u8], out: &mut Vec<u8>) {
        let blanks = self.width.saturating_sub(text.len());
        if self.left {
            out.extend_from_slice(text);
        }
        out.resize(out.len() + blanks, b' ');
        if !self.left {
            out.extend_from_slice(text);
        }
    }
}
