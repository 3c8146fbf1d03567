//! Names of D, read back (`_D1d5Shape4areaMFmZm` is `d.Shape.area`; D's ABI, "Name Mangling").
//!
//! In: a mangled name. Out: the qualified name, with `!(…)` for what a template was given, and `(ulong)` by itself, which tells it
//! from others of its name. A name that is not D's to its last letter is left as it is. perf 6.1 does not read them, so only views for people do.

use std::fmt::Write;

use super::demangle::{Bounded, MAX_MANGLED};

/// The name of a function as its author has it.
#[must_use]
pub fn decode(name: &[u8]) -> Option<String> {
    if name == b"_Dmain" {
        return Some("D main".to_owned());
    }
    let text = std::str::from_utf8(name).ok()?;
    joined(&read(text, false)?, Bounded::of(text), false)
}

/// What a function and those that it is inside of take: `(int) const`. Where that cannot be read, the mangled name.
#[must_use]
pub fn parameters(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    let Some(parts) = read(text, true) else {
        let text = text.split('.').next()?;
        return read(text, false).map(|_| format!(" {text}"));
    };
    let all: String = parts.into_iter().map(|part| part.parameters).collect();
    (!all.is_empty()).then_some(all)
}

fn read(text: &str, with_types: bool) -> Option<Vec<Part<'_>>> {
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
        types: with_types.then_some(text),
    };
    let parts = reader.mangled()?;
    (reader.at == text.len()).then_some(parts)
}

/// A name between two dots.
struct Part<'n> {
    name: &'n str,
    /// What a template was given.
    arguments: Option<String>,
    /// What a function takes.
    parameters: String,
}

fn joined(parts: &[Part<'_>], mut out: Bounded, is_whole: bool) -> Option<String> {
    let mut last: Option<&Part<'_>> = None;
    for part in parts {
        let is_same = |before: &Part<'_>| before.arguments.is_some() && before.name == part.name;
        // The function of a template has its name once more.
        if last.is_some_and(is_same) && part.arguments.is_none() {
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
        match &part.arguments {
            Some(arguments) if is_whole => write!(out, "!({arguments})").ok()?,
            Some(_) => out.write_str("!(…)").ok()?,
            None => {}
        }
        if is_whole {
            out.write_str(&part.parameters).ok()?;
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
    /// The whole text, where types are wanted.
    types: Option<&'n str>,
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
        let mut parts = self.qualified()?;
        if self.take(b"Z") {
            return Some(parts);
        }
        if self.peek() == Some(b'M') || self.is_function() {
            parts.last_mut()?.parameters = self.method()?;
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
                let mut part = reader.name()?;
                let before = reader.at;
                match reader.method() {
                    Some(parameters) if reader.is_name() => part.parameters = parameters,
                    _ => reader.at = before,
                }
                parts.push(part);
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
            let mut arguments = Vec::new();
            loop {
                let from = reader.at + 1;
                let text = match reader.next()? {
                    b'Z' => break,
                    b'H' => continue,
                    b'T' => reader.type_()?,
                    b'V' => {
                        let kind = reader.first_of_type();
                        reader.type_()?;
                        let value = reader.at;
                        reader.value(kind?)?;
                        reader.since(value).trim_start_matches('i').to_owned()
                    }
                    b'S' if reader.text[reader.at..].starts_with(b"_D") => {
                        let parts = reader.mangled()?;
                        reader.text_of(&parts)?
                    }
                    b'S' => {
                        let parts = reader.qualified()?;
                        reader.text_of(&parts)?
                    }
                    b'X' => {
                        let length = reader.number()?;
                        let end = reader.at.checked_add(length)?;
                        reader.at = Some(end).filter(|end| *end <= reader.text.len())?;
                        reader.since(from)
                    }
                    _ => return None,
                };
                arguments.push(text);
            }
            Some(Part {
                name,
                arguments: Some(arguments.join(", ")),
                parameters: String::new(),
            })
        })
    }

    /// What was read, as it stands there.
    fn since(&self, from: usize) -> String {
        let text = self.types.and_then(|text| text.get(from..self.at));
        text.unwrap_or_default().to_owned()
    }

    /// A name in a type.
    fn text_of(&mut self, parts: &[Part<'_>]) -> Option<String> {
        let Some(text) = self.types else {
            return Some(String::new());
        };
        let name = joined(parts, Bounded::of(text), true)?;
        self.fuel = self.fuel.checked_sub(name.len())?;
        Some(name)
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

    fn type_(&mut self) -> Option<String> {
        /// By letter, from `a`.
        const BASIC: [&str; 23] = [
            "char",
            "bool",
            "creal",
            "double",
            "real",
            "float",
            "byte",
            "ubyte",
            "int",
            "ireal",
            "uint",
            "long",
            "ulong",
            "typeof(null)",
            "ifloat",
            "idouble",
            "cfloat",
            "cdouble",
            "short",
            "ushort",
            "wchar",
            "void",
            "dchar",
        ];
        let text = self.nested(|reader| {
            Some(match reader.next()? {
                b'O' => format!("shared({})", reader.type_()?),
                b'x' => format!("const({})", reader.type_()?),
                b'y' => format!("immutable({})", reader.type_()?),
                b'A' => match reader.type_()?.as_str() {
                    "immutable(char)" => "string".to_owned(),
                    of => format!("{of}[]"),
                },
                b'P' if reader.is_function() => reader.type_()?,
                b'P' => format!("{}*", reader.type_()?),
                b'N' => match reader.next()? {
                    b'g' => format!("inout({})", reader.type_()?),
                    b'h' => format!("__vector({})", reader.type_()?),
                    b'n' => "noreturn".to_owned(),
                    _ => return None,
                },
                b'G' => {
                    let length = reader.number()?;
                    format!("{}[{length}]", reader.type_()?)
                }
                b'H' => {
                    let key = reader.type_()?;
                    format!("{}[{key}]", reader.type_()?)
                }
                b'D' => {
                    let modifiers = reader.modifiers();
                    format!("{} delegate{modifiers}", reader.type_()?)
                }
                b'F' | b'U' | b'V' | b'W' | b'R' | b'Y' => {
                    reader.at -= 1;
                    let parameters = reader.function()?;
                    format!("{} function{parameters}", reader.type_()?)
                }
                b'I' | b'C' | b'S' | b'E' | b'T' => {
                    let parts = reader.qualified()?;
                    reader.text_of(&parts)?
                }
                b'B' if reader.peek()?.is_ascii_digit() => {
                    let count = reader.number()?;
                    let types: Option<Vec<_>> = (0..count).map(|_| reader.type_()).collect();
                    format!("({})", types?.join(", "))
                }
                b'B' => reader.parameters()?,
                b'Q' => {
                    reader.at -= 1;
                    let target = reader.back_reference()?;
                    let behind = std::mem::replace(&mut reader.at, target);
                    let text = match reader.types {
                        Some(_) => reader.type_()?,
                        None => String::new(),
                    };
                    reader.at = behind;
                    text
                }
                b'z' => match reader.next()? {
                    b'i' => "cent".to_owned(),
                    b'k' => "ucent".to_owned(),
                    _ => return None,
                },
                letter => (*BASIC.get(usize::from(letter.checked_sub(b'a')?))?).to_owned(),
            })
        })?;
        if self.types.is_some() {
            self.fuel = self.fuel.checked_sub(text.len())?;
        }
        Some(text)
    }

    /// `const`, `immutable`, `shared`, `inout`
    fn modifiers(&mut self) -> String {
        let all = [
            ("x", " const"),
            ("y", " immutable"),
            ("O", " shared"),
            ("Ng", " inout"),
        ];
        let mut text = String::new();
        while let Some((_, word)) = all.iter().find(|(code, _)| self.take(code.as_bytes())) {
            text.push_str(word);
        }
        text
    }

    /// What follows the name of a function, but its own type.
    fn method(&mut self) -> Option<String> {
        let modifiers = if self.take(b"M") {
            self.modifiers()
        } else {
            String::new()
        };
        Some(self.function()? + &modifiers)
    }

    /// Whether a function's type follows.
    fn is_function(&self) -> bool {
        matches!(self.peek(), Some(b'F' | b'U' | b'V' | b'W' | b'R' | b'Y'))
    }

    /// How it is called, and its parameters.
    fn function(&mut self) -> Option<String> {
        self.is_function().then_some(())?;
        self.next()?;
        while let [b'N', second, ..] = &self.text[self.at..]
            && matches!(second, b'a'..=b'f' | b'i' | b'j' | b'l' | b'm')
        {
            self.at += 2;
        }
        self.parameters()
    }

    fn parameters(&mut self) -> Option<String> {
        let mut all = Vec::new();
        loop {
            let end = match self.peek()? {
                b'X' => Some("...)"),
                b'Y' => Some(", ...)"),
                b'Z' => Some(")"),
                _ => None,
            };
            if let Some(end) = end {
                self.at += 1;
                return Some(format!("({}{end}", all.join(", ")));
            }
            while self.take(b"M") || self.take(b"Nk") {}
            let codes = [
                ("IK", "in ref "),
                ("I", "in "),
                ("J", "out "),
                ("K", "ref "),
                ("L", "lazy "),
            ];
            let kind = codes.iter().find(|(code, _)| self.take(code.as_bytes()));
            let kind = kind.map_or("", |(_, word)| word);
            all.push(kind.to_owned() + &self.type_()?);
        }
    }
}

const fn plain(name: &str) -> Part<'_> {
    Part {
        name,
        arguments: None,
        parameters: String::new(),
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

    #[test]
    fn parameters_tell_overloads_apart() {
        let of = |name: &str| parameters(name.as_bytes());
        for (name, shown) in [
            ("_D2d34overFiZm", "(int)"),
            ("_D2d34overFAyaZm.constprop.0", "(string)"),
            (
                "_D1d4pickFKSQk3VecPFNbiZvZm",
                "(ref d.Vec, void function(int))",
            ),
            (
                "_D1d4pickFS1d__T3VecTmVii3ZQlQtXm",
                "(d.Vec!(ulong, 3), d.Vec!(ulong, 3)...)",
            ),
            (
                "_D1d5Shape4areaMxFHAyamDFNbZiZm",
                "(ulong[string], int function() delegate) const",
            ),
            ("_D1d4mainFiZ5innerMFNaNbZm", "(int)()"),
        ] {
            assert_eq!(of(name).as_deref(), Some(shown), "{name}");
        }
        for none in ["_Dmain", "_D1d5valuei", "_D1d4pickFQ", "main"] {
            assert_eq!(of(none), None, "{none}");
        }
        // A type that leads back to itself is told by the mangled name.
        assert_eq!(of("_D1d1fFPQbZv").as_deref(), Some(" _D1d1fFPQbZv"));
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
        // Each type is twice the one before it.
        let mut name = "_D1d1fFi".to_owned();
        let mut before = name.len() - 1;
        for _ in 0..100 {
            let begin = name.len();
            name.push('H');
            for _ in 0..2 {
                let distance = name.len() - before;
                assert!(distance < 26, "{distance}");
                name.extend(['Q', char::from(b'a' + distance as u8)]);
            }
            before = begin;
        }
        name.push_str("Zv");
        assert_eq!(parameters(name.as_bytes()), Some(format!(" {name}")));
        let deep = format!("_D1d1fF{}", "P".repeat(60_000));
        assert_eq!(parameters(deep.as_bytes()), None);
    }
}
