//! Names of D, read back without types (`_D1d5Shape4areaMFmZm` is `d.Shape.area`; D's ABI, "Name Mangling").
//!
//! In: a mangled name. Out: the qualified name, with `!(…)` for what a template was given. Types are read only to find where a name
//! ends. A name that is not D's to its last letter is left as it is. perf 6.1 does not read them, so only views for people do.

use std::fmt::Write;

use super::demangle::{Bounded, MAX_MANGLED};

/// The name of a function as its author has it.
#[must_use]
pub fn decode(name: &[u8]) -> Option<String> {
    if name == b"_Dmain" {
        return Some("D main".to_owned());
    }
    let text = std::str::from_utf8(name).ok()?;
    // What compilers append to clones (`.constprop.0`) is not shown.
    let text = text.split('.').next()?;
    if !text.starts_with("_D") || text.len() > MAX_MANGLED {
        return None;
    }
    let mut reader = Reader {
        text: text.as_bytes(),
        at: 0,
        fuel: 1024 + 64 * text.len(),
        depth: 0,
    };
    let parts = reader.mangled()?;
    if reader.at < text.len() {
        return None;
    }
    joined(&parts, Bounded::of(text))
}

/// A name between two dots.
#[derive(Clone, Copy)]
struct Part<'n> {
    name: &'n str,
    is_template: bool,
}

fn joined(parts: &[Part<'_>], mut out: Bounded) -> Option<String> {
    let mut last: Option<&Part<'_>> = None;
    for part in parts {
        let is_same = |before: &Part<'_>| before.is_template && before.name == part.name;
        // The function of a template has its name once more.
        if last.is_some_and(is_same) && !part.is_template {
            continue;
        }
        if last.is_some() {
            out.write_str(".").ok()?;
        }
        let name = match part.name {
            "__ctor" => "this",
            "__dtor" => "~this",
            "__postblit" => "this(this)",
            name => name,
        };
        out.write_str(name).ok()?;
        if part.is_template {
            out.write_str("!(…)").ok()?;
        }
        last = Some(part);
    }
    (last.is_some()).then(|| out.into_text())
}

struct Reader<'n> {
    text: &'n [u8],
    at: usize,
    /// Steps that are left: what was read in vain is read again.
    fuel: usize,
    /// How deep types and names are in each other.
    depth: usize,
}

impl<'n> Reader<'n> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        self.fuel = self.fuel.checked_sub(1)?;
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, wanted: &[u8]) -> bool {
        let is_there = self.text[self.at..].starts_with(wanted);
        self.at += if is_there { wanted.len() } else { 0 };
        is_there
    }

    /// Reads something that may be inside of itself.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        const MOST: usize = 64;
        self.depth += 1;
        let is_deep = self.depth > MOST;
        let result = (!is_deep).then(|| read(self)).flatten();
        self.depth -= 1;
        result
    }

    fn mangled(&mut self) -> Option<Vec<Part<'n>>> {
        self.take(b"_D").then_some(())?;
        let parts = self.qualified()?;
        if self.take(b"Z") {
            return Some(parts);
        }
        if self.take(b"M") {
            self.modifiers();
        }
        self.type_()?;
        Some(parts)
    }

    /// Names that are inside of each other, of functions with their parameters.
    fn qualified(&mut self) -> Option<Vec<Part<'n>>> {
        self.nested(|reader| {
            let mut parts = Vec::new();
            loop {
                // What has no name.
                while reader.take(b"0") {}
                parts.push(reader.name()?);
                let before = reader.at;
                if reader.method().is_none() || !reader.is_name() {
                    reader.at = before;
                }
                if !reader.is_name() {
                    return Some(parts);
                }
            }
        })
    }

    fn is_name(&self) -> bool {
        match self.peek() {
            Some(b'0'..=b'9') => true,
            Some(b'_') => self.is_template(),
            Some(b'Q') => {
                let target = self.ahead().back_reference();
                target.is_some_and(|target| self.text[target].is_ascii_digit())
            }
            _ => false,
        }
    }

    fn is_template(&self) -> bool {
        let rest = &self.text[self.at..];
        rest.starts_with(b"__T") || rest.starts_with(b"__U")
    }

    /// The same reader, to look ahead with.
    const fn ahead(&self) -> Self {
        Self { ..*self }
    }

    fn name(&mut self) -> Option<Part<'n>> {
        if self.is_template() {
            return self.template();
        }
        let before = self.at;
        let length = self.number();
        if length.is_none() || !self.is_template() {
            self.at = before;
            return self.word().map(plain);
        }
        // Compilers before 2017 wrote how long it is.
        let end = self.at.checked_add(length?)?;
        self.template().filter(|_| self.at == end)
    }

    /// A name behind its length, or where one leads back to.
    fn word(&mut self) -> Option<&'n str> {
        if self.peek() == Some(b'Q') {
            let at = self.back_reference()?;
            let mut behind = Reader { at, ..self.ahead() };
            return (behind.peek() != Some(b'Q'))
                .then(|| behind.word())
                .flatten();
        }
        let length = self.number()?;
        let bytes = self.text.get(self.at..)?.get(..length)?;
        let word = std::str::from_utf8(bytes).ok()?;
        let is_inner = |c: char| c == '_' || c.is_alphanumeric();
        let is_word = !word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(is_inner);
        self.at += length;
        (is_word && length > 0).then_some(word)
    }

    /// Decimal.
    fn number(&mut self) -> Option<usize> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        self.at += digits;
        Some(number)
    }

    /// Where a letter `Q` leads to: so many bytes in front of it, in base 26.
    fn back_reference(&mut self) -> Option<usize> {
        let from = self.at;
        self.take(b"Q").then_some(())?;
        let mut distance: usize = 0;
        loop {
            let (digit, is_last) = match self.next()? {
                byte @ b'A'..=b'Z' => (byte - b'A', false),
                byte @ b'a'..=b'z' => (byte - b'a', true),
                _ => return None,
            };
            distance = distance.checked_mul(26)?.checked_add(usize::from(digit))?;
            if is_last {
                return from.checked_sub(distance).filter(|_| distance > 0);
            }
        }
    }

    /// A template with what it was given.
    fn template(&mut self) -> Option<Part<'n>> {
        self.nested(|reader| {
            reader.at += b"__T".len();
            let name = reader.word()?;
            loop {
                match reader.next()? {
                    b'Z' => break,
                    b'H' => {}
                    b'T' => reader.type_()?,
                    b'V' => {
                        let kind = reader.first_of_type();
                        reader.type_()?;
                        reader.value(kind?)?;
                    }
                    b'S' if reader.text[reader.at..].starts_with(b"_D") => {
                        reader.mangled()?;
                    }
                    b'S' => {
                        reader.qualified()?;
                    }
                    b'X' => {
                        let length = reader.number()?;
                        let end = reader.at.checked_add(length)?;
                        reader.at = Some(end).filter(|end| *end <= reader.text.len())?;
                    }
                    _ => return None,
                }
            }
            Some(Part {
                name,
                is_template: true,
            })
        })
    }

    /// The letter of the type that follows.
    fn first_of_type(&self) -> Option<u8> {
        let mut ahead = self.ahead();
        while ahead.peek() == Some(b'Q') {
            // Each leads further back.
            ahead.at = ahead.back_reference()?;
        }
        ahead.peek()
    }

    /// What a template was given that is no type; `kind` is the letter of its type.
    fn value(&mut self, kind: u8) -> Option<()> {
        self.nested(|reader| match reader.peek()? {
            b'0'..=b'9' => reader.number().map(drop),
            _ => match reader.next()? {
                b'n' => Some(()),
                b'i' | b'N' => reader.number().map(drop),
                b'e' => reader.real(),
                b'c' => {
                    reader.real()?;
                    reader.take(b"c").then_some(())?;
                    reader.real()
                }
                b'a' | b'w' | b'd' => {
                    let length = reader.number()?.checked_mul(2)?;
                    reader.take(b"_").then_some(())?;
                    let digits = reader.text.get(reader.at..)?.get(..length)?;
                    reader.at += length;
                    digits.iter().all(u8::is_ascii_hexdigit).then_some(())
                }
                of @ (b'A' | b'S') => {
                    let count = reader.number()?;
                    let values = if of == b'A' && kind == b'H' { 2 } else { 1 };
                    // Their types are not told.
                    (0..count.checked_mul(values)?).try_for_each(|_| reader.value(0))
                }
                b'f' => reader.mangled().map(drop),
                _ => None,
            },
        })
    }

    /// A number with a fraction, in hexadecimal.
    fn real(&mut self) -> Option<()> {
        if self.take(b"NAN") || self.take(b"INF") || self.take(b"NINF") {
            return Some(());
        }
        self.take(b"N");
        let rest = &self.text[self.at..];
        let is_digit = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
        let digits = rest.iter().take_while(is_digit).count();
        self.at += digits;
        (digits > 0 && self.take(b"P")).then_some(())?;
        self.take(b"N");
        self.number().map(drop)
    }

    fn type_(&mut self) -> Option<()> {
        self.nested(|reader| match reader.next()? {
            b'O' | b'x' | b'y' | b'A' | b'P' => reader.type_(),
            b'N' => match reader.next()? {
                b'g' | b'h' => reader.type_(),
                b'n' => Some(()),
                _ => None,
            },
            b'G' => {
                reader.number()?;
                reader.type_()
            }
            b'H' => {
                reader.type_()?;
                reader.type_()
            }
            b'D' => {
                reader.modifiers();
                reader.type_()
            }
            b'F' | b'U' | b'V' | b'W' | b'R' | b'Y' => {
                reader.at -= 1;
                reader.function()?;
                reader.type_()
            }
            b'I' | b'C' | b'S' | b'E' | b'T' => reader.qualified().map(drop),
            b'B' if reader.peek()?.is_ascii_digit() => {
                let count = reader.number()?;
                (0..count).try_for_each(|_| reader.type_())
            }
            b'B' => reader.parameters(),
            b'Q' => {
                reader.at -= 1;
                reader.back_reference().map(drop)
            }
            b'z' => matches!(reader.next()?, b'i' | b'k').then_some(()),
            b'a'..=b'w' => Some(()),
            _ => None,
        })
    }

    /// `const`, `immutable`, `shared`, `inout`
    fn modifiers(&mut self) {
        while self.take(b"x") || self.take(b"y") || self.take(b"O") || self.take(b"Ng") {}
    }

    /// What follows the name of a function in which there is another one.
    fn method(&mut self) -> Option<()> {
        if self.take(b"M") {
            self.modifiers();
        }
        self.function()
    }

    /// How it is called, and its parameters.
    fn function(&mut self) -> Option<()> {
        if !matches!(self.next()?, b'F' | b'U' | b'V' | b'W' | b'R' | b'Y') {
            return None;
        }
        while let [b'N', second, ..] = &self.text[self.at..]
            && matches!(second, b'a'..=b'f' | b'i' | b'j' | b'l' | b'm')
        {
            self.at += 2;
        }
        self.parameters()
    }

    fn parameters(&mut self) -> Option<()> {
        loop {
            if matches!(self.peek()?, b'X' | b'Y' | b'Z') {
                self.at += 1;
                return Some(());
            }
            while self.take(b"M") || self.take(b"Nk") {}
            match self.peek()? {
                b'I' => {
                    self.at += 1;
                    self.take(b"K");
                }
                b'J' | b'K' | b'L' => self.at += 1,
                _ => {}
            }
            self.type_()?;
        }
    }
}

const fn plain(name: &str) -> Part<'_> {
    Part {
        name,
        is_template: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that LDC 1.30 and GDC 12 made.
    #[test]
    fn names_are_read_back_whole_or_left() {
        let of = |name: &str| decode(name.as_bytes());
        for (name, shown) in [
            ("_D1d5Shape4areaMFmZm", "d.Shape.area"),
            ("_D1d__T3VecTmVii3ZQl3sumMxFNaNbNiNfmZm", "d.Vec!(…).sum"),
            (
                "_D1d4mainFZ__T9__lambda4TmZQnFNaNbNiNfmZm",
                "d.main.__lambda4!(…)",
            ),
            (
                "_D1d__T9templatedSQq4mainFZ9__lambda4TS3std5range__T4iotaTmTmZQkFmmZ6ResultZQCrMFNaNbNiNfQBzZm.constprop.0",
                "d.templated!(…)",
            ),
            (
                "_D3std5range__T4iotaTmTmZQkFmmZ6Result5emptyMxFNaNbNdNiNfZb",
                "std.range.iota!(…).Result.empty",
            ),
            (
                "_D3std5range__T4iotaTmTmZQkFmmZ6Result6__ctorMFNaNbNcNiNfmmZSQChQCg__TQCdTmTmZQClFmmZQCc",
                "std.range.iota!(…).Result.this",
            ),
            (
                "_D4core8internal6string__T18signedToTempStringVki10ZQBaFNaNbNiNflNkMAaZQd",
                "core.internal.string.signedToTempString!(…)",
            ),
            (
                "_D3std9exception__T7enforceHTCQBcQBb14ErrnoExceptionZ__TQBlTiZQBrFNfiLAxaAyamZi",
                "std.exception.enforce!(…).enforce!(…)",
            ),
            ("_Dmain", "D main"),
        ] {
            assert_eq!(of(name).as_deref(), Some(shown), "{name}");
        }
        for left in [
            "_D1d5Shape4areaMFmZ",
            "_D1d5Shape4areaMFmZmm",
            "_D1d5Shape9area",
            "_D5a\x1b[0mFZv",
            "_DTOR",
            "_D",
            "_D1d",
            "_D1dQaFZv",
            "_D1dQbFZv_",
            "_D99999999999999999999d",
            "main",
            "",
        ] {
            assert_eq!(of(left), None, "{left:?}");
        }
    }

    /// A name may lead back to a long one very often, and nest its types and functions.
    #[test]
    fn work_and_text_are_bounded() {
        let long = "x".repeat(20_000);
        let mut name = format!("_D{}{long}", long.len());
        for _ in 0..5_000 {
            let distance = name.len() - 2;
            let digits =
                [17576, 676, 26].map(|unit| char::from(b'A' + (distance / unit % 26) as u8));
            let last = char::from(b'a' + (distance % 26) as u8);
            name.push('Q');
            name.extend(digits);
            name.push(last);
        }
        assert_eq!(decode((name + "Z").as_bytes()), None);
        assert_eq!(
            decode(format!("_D1dF{}", "P".repeat(60_000)).as_bytes()),
            None
        );
        assert_eq!(
            decode(format!("_D1d{}", "FS1d".repeat(10_000)).as_bytes()),
            None
        );
        assert_eq!(decode(b"_D1d__T1tVAiA99999999999999ZFZv"), None);
    }
}
