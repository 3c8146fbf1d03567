//! Readable names, as perf prints them (`util/symbol.c:dso__demangle_sym`, `util/demangle-java.c`,
//! `util/demangle-ocaml.c`).
//!
//! In: a symbol's name as the file has it. Out: Rust names without hashes and disambiguators, C++ names
//! without parameters, return types and clone suffixes (perf 6.1, libiberty), OCaml and Java names;
//! everything else as it is. Not for kernel symbols and perf map files, unless asked.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::misplaced::in_place;
use super::packs::whole_packs;
use super::rust_names::plain_rust;
use crate::runtimes::names::without_crate_hashes;

/// How mangled names are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NameStyle {
    /// C++ without parameters and return types, Rust without hashes.
    #[default]
    Short,
    /// The same, with Rust names as the older mangling has them: without arguments of types and numbers of closures.
    Plain,
    /// `-v`: C++ in full.
    Full,
    /// `--no-demangle`
    Raw,
}

/// Longest demangled name: a few hundred mangled bytes can stand for gigabytes.
const MAX_DEMANGLED: usize = 1 << 16;
/// How much longer than mangled a name may be, for many names may each stand for the longest. Real ones are some ten times
/// as long, where they repeat the arguments of templates.
const MAX_GROWTH: usize = 64;
/// Longest mangled name that is worth trying; compilers hash away longer ones.
pub(super) const MAX_MANGLED: usize = 1 << 16;

/// The name as text, in the given style. Bytes that are not UTF-8 are replaced.
#[must_use]
pub fn demangle(name: &[u8], style: NameStyle) -> Cow<'_, str> {
    if style == NameStyle::Raw || name.len() > MAX_MANGLED {
        return String::from_utf8_lossy(name);
    }
    let Ok(text) = std::str::from_utf8(name) else {
        return String::from_utf8_lossy(name);
    };
    // PLT entries are named after their targets: `NAME@plt`.
    if let Some(target) = text.strip_suffix("@plt") {
        return match demangle_known(target, style) {
            Some(target) => Cow::Owned(target + "@plt"),
            None => Cow::Borrowed(text),
        };
    }
    match demangle_known(text, style) {
        Some(shown) => shown.into(),
        None => without_crate_hashes(text),
    }
}

/// Whether a compiler of C++ spelled a name. Rust's older names begin in the same way, and end with a hash.
#[must_use]
pub fn is_of_cpp(name: &[u8]) -> bool {
    name.starts_with(b"_Z") && legacy_hash(name).is_none()
}

/// A name that compilers of C++ and Rust have made, without what they put behind it for a copy; nothing where it is another one. Of C
/// an author may give a function several names, with these nobody does.
#[must_use]
pub fn mangled(name: &[u8]) -> Option<&[u8]> {
    if !name.starts_with(b"_Z") && !name.starts_with(b"_R") {
        return None;
    }
    // Rust's older names have dots inside.
    let behind = legacy_hash(name).map(|(_, behind)| behind.len());
    let first = || name.iter().position(|c| *c == b'.').unwrap_or(name.len());
    Some(&name[..behind.map_or_else(first, |behind| name.len() - behind)])
}

/// What Rust's older names end with, `17h3e80e4da2489d3dfE`, and what compilers put behind that.
#[must_use]
pub fn legacy_hash(name: &[u8]) -> Option<(&str, &str)> {
    let name = std::str::from_utf8(name.strip_prefix(b"_ZN")?).ok()?;
    let (_, end) = name.rsplit_once("17h")?;
    let (hash, behind) = end.split_once('E')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then_some((hash, behind))
}

/// The demangled name, if some scheme applies.
fn demangle_known(name: &str, style: NameStyle) -> Option<String> {
    // All others begin so, and most names of code made at run time do not.
    if !name.starts_with(['_', 'Z', 'c']) {
        return demangle_java(name);
    }
    // As the demangler knows legacy names; to look for a hash in each name of JIT code would take longer than to shorten it.
    let legacy = ["_ZN", "ZN", "__ZN"].iter().any(|p| name.starts_with(p));
    let rust = name.starts_with("_R") || name.starts_with("__R");
    let rust = rust || legacy && name.contains("17h");
    if let Some(shown) = rust.then(|| demangle_rust(name)).flatten() {
        return Some(match style {
            NameStyle::Plain => plain_rust(&shown),
            _ => shown,
        });
    }
    if name.starts_with("_Z") || name.starts_with("___Z") || name.starts_with("_GLOBAL_") {
        return demangle_cpp(name, style);
    }
    if name.starts_with("caml") {
        return demangle_ocaml(name);
    }
    demangle_java(name)
}

/// Refuses to grow past what the length of a mangled name allows.
pub(super) struct Bounded {
    text: String,
    most: usize,
}

impl Bounded {
    pub(super) fn of(mangled: &str) -> Self {
        let most = mangled.len().saturating_mul(MAX_GROWTH);
        Self {
            // Most are about as long.
            text: String::with_capacity(mangled.len()),
            most: most.min(MAX_DEMANGLED),
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Write for Bounded {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if self.text.len() + s.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(s);
        Ok(())
    }
}

fn demangle_rust(name: &str) -> Option<String> {
    // A second underscore in front: Mach-O style, accepted by perf 7.2.
    let name = name
        .strip_prefix('_')
        .filter(|n| n.starts_with("_R"))
        .unwrap_or(name);
    // What compilers append (`.llvm.123`, `.cold`, `.38341`) is not shown.
    let name = if name.starts_with("_R") {
        name.split('.').next().unwrap_or(name)
    } else {
        // Only with a hash is a legacy name Rust's: C++ mangles plain paths the same way.
        &name[..end_of_rust_hash(name)?]
    };
    let parsed = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded::of(name);
    write!(out, "{parsed:#}").ok()?;
    // Of a hash alone nothing is left.
    (!out.text.is_empty()).then_some(out.text)
}

/// Where a legacy name ends: behind `17h`, 16 hex digits and `E`.
fn end_of_rust_hash(name: &str) -> Option<usize> {
    name.match_indices("17h").find_map(|(at, _)| {
        let tail = name.as_bytes()[at + 3..].get(..17)?;
        let hash = tail[..16]
            .iter()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (hash && tail[16] == b'E').then_some(at + 20)
    })
}

fn demangle_cpp(name: &str, style: NameStyle) -> Option<String> {
    if style == NameStyle::Full {
        return demangle_itanium(name, false);
    }
    if let Some((kind, target)) = thunk(name) {
        // libiberty shows what a thunk leads to with its parameters.
        let target = target.split('.').next().unwrap_or(target);
        let target = demangle_itanium(&format!("_Z{target}"), false)?;
        return Some(kind.to_owned() + &target);
    }
    let mut text = like_libiberty(demangle_itanium(name, true)?);
    if !text.contains("std::") {
        return Some(text);
    }
    for (code, spelled, full, short) in STREAMS {
        if !name.contains(code) || name.contains(spelled) {
            continue;
        }
        // Constructors and destructors are those of the class in full.
        let special = ["C", "D"]
            .iter()
            .any(|kind| name.contains(&format!("{code}{kind}")));
        if !special {
            text = text.replace(full, short);
        }
    }
    if name.contains("Dn") {
        text = text.replace("std::nullptr_t", "decltype(nullptr)");
    }
    for (class, member, full) in CLASSES {
        if !text.contains(member) {
            continue;
        }
        let basic = full.split('<').next().unwrap_or(full);
        for tilde in ["", "~"] {
            let from = format!("{member}{tilde}{class}");
            text = text.replace(&from, &format!("std::{full}::{tilde}{basic}"));
        }
    }
    Some(text)
}

/// Abbreviated classes, which libiberty spells out for their constructors and destructors: name, what members begin with,
/// and the class in full.
const CLASSES: [(&str, &str, &str); 4] = [
    (
        "string",
        "std::string::",
        "basic_string<char, std::char_traits<char>, std::allocator<char> >",
    ),
    (
        "istream",
        "std::istream::",
        "basic_istream<char, std::char_traits<char> >",
    ),
    (
        "ostream",
        "std::ostream::",
        "basic_ostream<char, std::char_traits<char> >",
    ),
    (
        "iostream",
        "std::iostream::",
        "basic_iostream<char, std::char_traits<char> >",
    ),
];

/// Standard abbreviations that libiberty keeps short: code, the name in full manglings, and both texts.
const STREAMS: [(&str, &str, &str, &str); 3] = [
    (
        "Si",
        "13basic_istream",
        "std::basic_istream<char, std::char_traits<char> >",
        "std::istream",
    ),
    (
        "So",
        "13basic_ostream",
        "std::basic_ostream<char, std::char_traits<char> >",
        "std::ostream",
    ),
    (
        "Sd",
        "14basic_iostream",
        "std::basic_iostream<char, std::char_traits<char> >",
        "std::iostream",
    ),
];

/// How deep names may be nested. The library's own limit, 96, is reached by 17 templates within each other.
const DEEPEST: u32 = 640;

/// A C++ name, and what stands behind it.
fn parse_itanium(name: &str) -> Option<(cpp_demangle::BorrowedSymbol<'_>, &[u8])> {
    let options = cpp_demangle::ParseOptions::default().recursion_limit(DEEPEST);
    cpp_demangle::BorrowedSymbol::with_tail_and_options(name.as_bytes(), &options).ok()
}

/// The demangled name; `short` leaves out parameters and return types and ignores what follows the encoding:
/// `.cold`, `@GLIBCXX_3.4`.
fn demangle_itanium(name: &str, short: bool) -> Option<String> {
    let (symbol, tail) = parse_itanium(name)?;
    let mut options = cpp_demangle::DemangleOptions::new().recursion_limit(DEEPEST);
    if short {
        options = options.no_params().no_return_type();
    } else if name.starts_with("_ZZ") {
        // Of a function around a name only parameters are told.
        options = options.no_return_type();
    } else if !tail.is_empty() && !tail.starts_with(b".") {
        return None;
    }
    let whole = itanium_text(&symbol, name, &options)?;
    if short {
        return Some(whole);
    }
    let packs = || {
        let options = options.no_return_type().no_params();
        whole_packs(name, &itanium_text(&symbol, name, &options)?, &whole)
    };
    let packs = name.contains("Dp").then(packs).flatten();
    Some(with_suffixes(without_empty_packs(packs.unwrap_or(whole))))
}

/// A name that was read as text, which is no longer than `mangled` allows.
fn itanium_text(
    symbol: &cpp_demangle::BorrowedSymbol<'_>,
    mangled: &str,
    options: &cpp_demangle::DemangleOptions,
) -> Option<String> {
    let mut out = Bounded::of(mangled);
    symbol.structured_demangle(&mut out, options).ok()?;
    Some(in_place(out.text))
}

/// Behind the comma of an empty pack nothing stands.
fn without_empty_packs(text: String) -> String {
    if text.contains(", >") {
        return text.replace(", >", ">");
    }
    text
}

/// What a C++ name says behind the function's own: `(int) const` of `_ZNK1T4workEi`.
#[must_use]
pub fn parameters(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    if !name.starts_with("_Z") || name.len() > MAX_MANGLED {
        return None;
    }
    // Rust's older mangling has none.
    let behind = end_of_rust_hash(name).map(|end| &name[end..]);
    if behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('.')) {
        return None;
    }
    let (symbol, _) = parse_itanium(name)?;
    let text = |options: &cpp_demangle::DemangleOptions| itanium_text(&symbol, name, options);
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(DEEPEST);
    let options = options.no_return_type();
    let (whole, short) = (text(&options)?, text(&options.no_params())?);
    let whole = whole_packs(name, &short, &whole).unwrap_or(whole);
    let parameters = whole.strip_prefix(short.as_str())?;
    // A clone is the same function.
    let parameters = parameters.split(" [clone").next()?;
    (!parameters.is_empty()).then(|| without_empty_packs(parameters.to_owned()))
}

/// `_ZTh`, `_ZTv`, `_ZTc`: what kind of thunk, and the encoding behind its offsets.
fn thunk(name: &str) -> Option<(&'static str, &str)> {
    fn number(s: &str) -> Option<&str> {
        let digits = s.strip_prefix('n').unwrap_or(s);
        let end = digits.find(|c: char| !c.is_ascii_digit())?;
        digits[end..].strip_prefix('_')
    }
    fn behind_offset(s: &str) -> Option<&str> {
        match s.strip_prefix('h') {
            Some(rest) => number(rest),
            None => number(number(s.strip_prefix('v')?)?),
        }
    }
    if let Some(rest) = name.strip_prefix("_ZGTt") {
        return Some(("transaction clone for ", rest));
    }
    let rest = name.strip_prefix("_ZT")?;
    if let Some(rest) = rest.strip_prefix('c') {
        let rest = behind_offset(behind_offset(rest)?)?;
        return Some(("covariant return thunk to ", rest));
    }
    let kind = if rest.starts_with('h') {
        "non-virtual thunk to "
    } else {
        "virtual thunk to "
    };
    Some((kind, behind_offset(rest)?))
}

/// Where libiberty writes other things than the `cpp_demangle` crate: literals with suffixes, empty
/// parameter packs, qualifiers behind the parameters that are not shown.
fn like_libiberty(mut text: String) -> String {
    for qualifier in [" &&", " &", " volatile", " const"] {
        if text.ends_with(qualifier) && !text.contains("operator ") {
            text.truncate(text.len() - qualifier.len());
        }
    }
    let (mut functions, mut literal) = (false, false);
    for closed in memchr::memchr_iter(b')', text.as_bytes()) {
        match text.as_bytes()[closed + 1..] {
            [b',' | b'>' | b' ', ..] => functions = true,
            [b'-' | b'0'..=b'9', ..] => literal = true,
            _ => {}
        }
    }
    if functions && text.contains('<') {
        text = function_arguments(&text);
    }
    text = without_empty_packs(text);
    if text.contains(", )") {
        text = text.replace(", )", ")");
    }
    if literal { with_suffixes(text) } else { text }
}

/// Literals as libiberty writes them: `0ul` for `(unsigned long)0`.
fn with_suffixes(mut text: String) -> String {
    for (cast, suffix) in [
        ("(unsigned int)", "u"),
        ("(unsigned long)", "ul"),
        ("(unsigned long long)", "ull"),
        ("(int)", ""),
        ("(long)", "l"),
        ("(long long)", "ll"),
    ] {
        text = literals(text, cast, suffix);
    }
    text
}

/// Template arguments that are functions: libiberty writes the type as `R (A)`, the address of a member as
/// `&C::f`, and that of another function as `&(f(A))`.
fn function_arguments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 16);
    // Open brackets: position in the text, and where the argument that they started begins in `out`.
    let mut open: Vec<(u8, usize, usize)> = Vec::new();
    let mut argument = 0;
    let mut at = 0;
    while at < bytes.len() {
        if text[at..].starts_with("operator") {
            let symbols = &bytes[at + 8..];
            let symbol = symbols
                .iter()
                .position(|b| !b"<>=-!()[]+*/%^&|~,".contains(b));
            let symbol = match symbols {
                [b'(', b')', ..] => 2,
                _ => symbol.unwrap_or(symbols.len()).min(3),
            };
            // `operator()(int)`, `operator< <int>`: what follows the symbol is not part of it.
            let symbol = if symbols.first() == Some(&b'(') {
                symbol.min(2)
            } else {
                symbol
            };
            out.push_str(&text[at..at + 8 + symbol]);
            at += 8 + symbol;
            continue;
        }
        match bytes[at] {
            b'<' | b'(' | b'{' | b'[' => {
                open.push((bytes[at], out.len(), argument));
                out.push(char::from(bytes[at]));
                argument = out.len();
            }
            b'>' | b')' | b'}' | b']' => {
                let closed = open.pop();
                out.push(char::from(bytes[at]));
                let Some((bracket, opened_at, outer)) = closed else {
                    at += 1;
                    continue;
                };
                argument = outer;
                let in_template = open.last().is_some_and(|&(around, ..)| around == b'<');
                let rest = &text[at + 1..];
                let (rest, qualifier) = match rest.strip_prefix(" const") {
                    Some(rest) => (rest, " const"),
                    None => (rest, ""),
                };
                let ends = rest.starts_with([',', '>']);
                if bracket == b'(' && in_template && ends {
                    at += qualifier.len();
                    rewrite_function(&mut out, argument, opened_at, qualifier);
                }
            }
            b',' => {
                out.push(',');
                argument = out.len() + usize::from(bytes.get(at + 1) == Some(&b' '));
            }
            _ => {
                let next = text[at..].chars().next().map_or(1, char::len_utf8);
                out.push_str(&text[at..at + next]);
                at += next;
                continue;
            }
        }
        at += 1;
    }
    out
}

/// Rewrites the template argument from `argument` to the end of `out`, whose parameters start at `opened_at`;
/// `qualifier` follows them.
fn rewrite_function(out: &mut String, argument: usize, opened_at: usize, qualifier: &str) {
    let Some(name) = out.get(argument..opened_at) else {
        return;
    };
    if let Some(function) = name.strip_prefix('&') {
        let last = function.rsplit("::").next().unwrap_or_default();
        if function.contains("::") && !last.contains('>') {
            out.truncate(opened_at);
        } else {
            out.insert(argument + 1, '(');
            out.push_str(qualifier);
            out.push(')');
        }
        return;
    }
    let keywords = ["decltype", "sizeof", "noexcept", "alignof", "typeid"];
    let is_type = name.ends_with(|c: char| c.is_alphanumeric() || "_>*&]".contains(c));
    if is_type && !keywords.iter().any(|word| name.ends_with(word)) {
        out.insert(opened_at, ' ');
    }
    out.push_str(qualifier);
}

/// Rewrites `(TYPE)123` as `123SUFFIX`.
fn literals(text: String, cast: &str, suffix: &str) -> String {
    if !text.contains(cast) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(cast) {
        let number = &rest[at + cast.len()..];
        let digits = number.strip_prefix('-').unwrap_or(number);
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        if end == 0 {
            out.push_str(&rest[..at + cast.len()]);
            rest = number;
            continue;
        }
        let (literal, behind) = number.split_at(number.len() - digits.len() + end);
        out.push_str(&rest[..at]);
        out.push_str(literal);
        out.push_str(suffix);
        rest = behind;
    }
    out + rest
}

/// `camlFoo__bar_12` is `Foo.bar_12`; `$xx` is the character with that code.
fn demangle_ocaml(name: &str) -> Option<String> {
    let rest = name.strip_prefix("caml")?;
    if !rest.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let bytes = rest.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |i: usize| bytes.get(at + i).and_then(|&b| char::from(b).to_digit(16));
        match (bytes[at], bytes.get(at + 1)) {
            (b'_', Some(b'_')) => {
                out.push(b'.');
                at += 2;
            }
            (b'$', Some(_)) if hex(1).is_some() && hex(2).is_some() => {
                let code = hex(1).unwrap_or(0) * 16 + hex(2).unwrap_or(0);
                out.push(u8::try_from(code).unwrap_or(b'?'));
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Where in a JVM signature the reader is.
#[derive(Clone, Copy, PartialEq)]
enum JavaPart {
    Start,
    Class,
    Function,
    Types,
    ClassArgument,
}

/// `Lpkg/Cls;name(I[JLjava/lang/String;)V` is `pkg.Cls.name(int, long[], java.lang.String)`. Follows perf where
/// that is generous (any text outside the grammar is copied) and where it is wrong: the brackets of
/// an array of objects land on the next primitive type.
fn demangle_java(name: &str) -> Option<String> {
    // Nearly all names of code have no class in them.
    memchr::memchr(b';', name.as_bytes())?;
    let signature = &name[..=name.rfind(')')?];
    let mut out = String::with_capacity(signature.len() + 16);
    let mut part = JavaPart::Start;
    let (mut brackets, mut arguments) = (0usize, 0usize);
    let mut chars = signature.chars().peekable();
    while let Some(c) = chars.next() {
        let argument_starts = part == JavaPart::Types;
        match c {
            'L' if matches!(part, JavaPart::Start | JavaPart::Types) => {
                if argument_starts {
                    separate(&mut out, &mut arguments);
                    part = JavaPart::ClassArgument;
                } else {
                    part = JavaPart::Class;
                }
            }
            'B' | 'C' | 'D' | 'F' | 'I' | 'J' | 'S' | 'Z' if argument_starts => {
                separate(&mut out, &mut arguments);
                out.push_str(java_type(c));
                out.extend(std::iter::repeat_n("[]", std::mem::take(&mut brackets)));
            }
            'V' if argument_starts => {
                out.push_str("void");
                out.extend(std::iter::repeat_n("[]", std::mem::take(&mut brackets)));
            }
            '[' if argument_starts => brackets += 1,
            '(' if part == JavaPart::Function => {
                out.push(c);
                part = JavaPart::Types;
            }
            ')' if argument_starts => {
                out.push(c);
                arguments = 0;
            }
            ';' if part == JavaPart::Class => {
                if chars.peek().is_some_and(char::is_ascii_alphabetic) {
                    out.push('.');
                }
                part = JavaPart::Function;
            }
            ';' if part == JavaPart::ClassArgument => part = JavaPart::Types,
            '/' if matches!(part, JavaPart::Class | JavaPart::ClassArgument) => out.push('.'),
            '[' | '(' | ')' | ';' | '/' => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

fn separate(out: &mut String, arguments: &mut usize) {
    if *arguments > 0 {
        out.push_str(", ");
    }
    *arguments += 1;
}

const fn java_type(code: char) -> &'static str {
    match code {
        'B' => "byte",
        'C' => "char",
        'D' => "double",
        'F' => "float",
        'I' => "int",
        'J' => "long",
        'S' => "short",
        _ => "boolean",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(name: &str) -> String {
        demangle(name.as_bytes(), NameStyle::Short).into_owned()
    }

    #[test]
    fn names_that_compilers_made_are_told_from_those_of_c() {
        for (name, told) in [
            ("_ZN5audio3mixEi", Some("_ZN5audio3mixEi")),
            ("_ZN5audio3mixEi.cold", Some("_ZN5audio3mixEi")),
            ("_RNvC1a1b", Some("_RNvC1a1b")),
            (
                "_ZN3std2rt10lang..start17h0123456789abcdefE.llvm.7",
                Some("_ZN3std2rt10lang..start17h0123456789abcdefE"),
            ),
            ("compress", None),
            ("__memcpy_avx", None),
        ] {
            let found = mangled(name.as_bytes());
            assert_eq!(found, told.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn nested_templates_have_names_and_hostile_ones_end() {
        // void hot<W<W<…int…>>>(…)
        let nested = |depth: usize| {
            let (open, close) = ("1WI".repeat(depth), "E".repeat(depth));
            format!("_Z3hotI{open}i{close}EvT_")
        };
        for depth in [1, 17, 41, 100] {
            let name = short(&nested(depth));
            let expected = format!("hot<{}int{} >", "W<".repeat(depth), ">".repeat(depth));
            let plain = |text: &str| text.replace(' ', "");
            assert_eq!(plain(&name), plain(&expected), "{depth}");
        }
        // On the stack that worker threads have.
        let hostile = move || {
            for part in [
                "1WI", "P", "N1aE", "FvP", "XcvT_", "Z1fvEN", "S_I", "Dp", "KJ", "TnI",
            ] {
                let name = format!("_Z1f{}", part.repeat(MAX_MANGLED / 4));
                let _ = demangle(name.as_bytes(), NameStyle::Short);
                let name = format!("_Z1fI{}", part.repeat(1000));
                let _ = demangle(name.as_bytes(), NameStyle::Full);
                let _ = parameters(name.as_bytes());
            }
        };
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        thread
            .spawn(hostile)
            .expect("a thread")
            .join()
            .expect("it ended");
    }

    #[test]
    fn rust_without_hashes() {
        assert_eq!(
            short("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(
            short("_ZN4core3ptr27drop_in_place$LT$$RF$u8$GT$17h0123456789abcdefE.llvm.1234567890"),
            "core::ptr::drop_in_place<&u8>"
        );
        // Nothing would be left.
        assert_eq!(short("_ZN17h0123456789abcdefE"), "h0123456789abcdef");
        assert_eq!(
            short("_RINvNtC3std3mem8align_ofjdE"),
            "std::mem::align_of::<usize, f64>"
        );
        assert_eq!(
            short("_RNvCskwGfYPst2Cb_3foo16example_function"),
            "foo::example_function"
        );
        assert_eq!(
            short("_RNvCskwGfYPst2Cb_3foo3bar.llvm.9D1C9369"),
            "foo::bar"
        );
    }

    #[test]
    fn parameters_stand_behind_names() {
        for (name, expected) in [
            ("_Z4worki", Some("(int)")),
            ("_Z4workd.part.0", Some("(double)")),
            ("main", None),
            ("_ZN4core3ptr17h0123456789abcdefE", None),
        ] {
            assert_eq!(parameters(name.as_bytes()).as_deref(), expected, "{name}");
        }
        assert!(parameters(b"_ZNK1T4workEi").is_some_and(|text| text.starts_with("(int)")));
    }

    #[test]
    fn cpp_without_parameters() {
        assert_eq!(short("_Z3fooi"), "foo");
        assert_eq!(short("_Z3foov.cold"), "foo");
        assert_eq!(short("_ZN1AILb1EE1bEv"), "A<true>::b");
        assert_eq!(
            short("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        assert_eq!(short("_ZN3FibILj14EE3runEv"), "Fib<14u>::run");
        assert_eq!(short("_ZTv0_n24_N1AD1Ev"), "virtual thunk to A::~A()");
        let covariant = short("_ZTcv0_n16_h16_N1a1fEv");
        assert_eq!(covariant, "covariant return thunk to a::f()");
        assert_eq!(short("_ZNO1A1fEv"), "A::f");
        assert_eq!(
            short("_ZNSoD1Ev"),
            "std::basic_ostream<char, std::char_traits<char> >::~basic_ostream"
        );
        assert_eq!(short("_ZNSo3putEc"), "std::ostream::put");
        assert_eq!(
            short("_ZN1AIFivEXadL_ZN1B1gEiEEXadL_Z1hvEEE1fEv"),
            "A<int (), &B::g, &(h())>::f"
        );
        assert_eq!(short("_Z1fIM1AKFviEEvT_"), "f<void (A::*)(int) const>");
        assert_eq!(short("_ZNKSs4sizeEv@plt"), "std::string::size@plt");
        assert_eq!(short("_Z"), "_Z");
        assert_eq!(demangle(b"_Z3fooi", NameStyle::Full), "foo(int)");
        assert_eq!(demangle(b"_Z3fooi", NameStyle::Raw), "_Z3fooi");
    }

    #[test]
    fn java_signatures() {
        assert_eq!(short("LHot;fib(I)I"), "Hot.fib(int)");
        assert_eq!(
            short("Ljava/util/HashMap;put(Ljava/lang/Object;[J)V"),
            "java.util.HashMap.put(java.lang.Object, long[])"
        );
        assert_eq!(short("LA;<init>()V"), "A<init>()");
        assert_eq!(
            short("I2C/C2I adapters(0xbb)@0x7f"),
            "I2C/C2I adapters(0xbb)@0x7f"
        );
    }

    #[test]
    fn other_languages_and_engines() {
        assert_eq!(short("camlFoo__bar_12"), "Foo.bar_12");
        assert_eq!(short("camlStdlib__List__$2b$3d_7"), "Stdlib.List.+=_7");
        for same in [
            "caml_alloc",
            "LazyCompile:~f (x.js:1)",
            "JS:*fib /x.js:1:13",
            "wasm[0]::function[12]::bar",
            "foo(bar)",
        ] {
            assert_eq!(short(same), same);
        }
    }

    #[test]
    fn blow_up_is_cut() {
        // Every S_ doubles: without a bound this would be 2^60 characters.
        let mut name = String::from("_Z1fSt4pairIiiE");
        for i in 0..60 {
            let digit = char::from_digit(i % 36, 36)
                .unwrap_or('0')
                .to_ascii_uppercase();
            name.push_str(&format!("St4pairIS{digit}_S{digit}_E"));
        }
        assert!(demangle(name.as_bytes(), NameStyle::Full).len() <= MAX_DEMANGLED);
    }
}
