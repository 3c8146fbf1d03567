//! How functions are called in pictures.
//!
//! Everything shown comes from a recording, which anybody may have written: characters that act are replaced.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::profile::CpuMode;
use crate::profile::{Frame, Profile};
use crate::unseen::is_unseen;

use super::Kind;

/// Which names functions get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Naming {
    /// As in folded stacks: argument lists cut, no `;`. What has one name and kind is one function.
    #[default]
    Folded,
    /// Whole names; functions of different objects are different functions.
    Whole,
}

/// The text with what acts replaced: pictures of control characters, and U+FFFD for what changes the direction of text
/// or is no character at all.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    // Most names are plain ASCII, which one pass over the bytes finds out.
    let plain = |so_far: bool, byte: u8| so_far & (0x20..0x7f).contains(&byte);
    if text.bytes().fold(true, plain) || !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let replace = |c: char| match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ if acts(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    Cow::Owned(text.chars().map(replace).collect())
}

fn acts(c: char) -> bool {
    c.is_control()
        || is_unseen(c)
        // Not allowed in XML, and no characters.
        || u32::from(c) & 0xfffe == 0xfffe
}

/// The name of a frame, and what kind of code it is.
pub(super) fn push_frame(profile: &Profile, frame: &Frame, naming: Naming, text: &mut String) {
    let object = frame.object.map(|id| &profile[id]);
    let before = text.len();
    match (frame.symbol, object) {
        (Some(symbol), _) => {
            let name = shown(&profile[symbol].name);
            match naming {
                Naming::Folded => push_folded(without_arguments(&name), text),
                Naming::Whole => text.push_str(&name),
            }
        }
        (None, Some(object)) => {
            let file = object.long_name.rsplit('/').next();
            text.push('[');
            push_folded(&shown(file.unwrap_or(&object.long_name)), text);
            text.push(']');
        }
        (None, None) => text.push_str("[unknown]"),
    }
    if text.len() == before {
        text.push_str("[unnamed]");
    }
}

/// As inferno writes names: `;` is what separates frames.
pub(super) fn push_folded(name: &str, text: &mut String) {
    let mut parts = name.split(';');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        text.push(':');
        text.push_str(part);
    }
}

/// What kind of code a frame is.
pub(super) fn kind(profile: &Profile, frame: &Frame) -> Kind {
    let object = frame.object.map(|id| &profile[id]);
    let symbol = frame.symbol.map(|id| &profile[id]);
    if frame.mode == CpuMode::Kernel || object.is_some_and(|object| object.is_kernel) {
        Kind::Kernel
    } else if symbol.is_some_and(|symbol| symbol.inlined) {
        Kind::Inlined
    } else if symbol.is_some_and(|symbol| symbol.producer.is_some())
        || object.is_some_and(|object| object.is_jit)
    {
        Kind::Jit
    } else {
        Kind::User
    }
}

/// Cuts the function's argument list: from the first `(` outside brackets that begins neither a Go receiver
/// (`.(*T)`) nor `(anonymous namespace)` nor what D's templates are given (`!(…)`). What lies in another function keeps that
/// one's list, as in `f(int)::{lambda()#1}::operator`: without the rest it would be `f`, which is somebody else.
#[must_use]
pub fn without_arguments(name: &str) -> &str {
    if memchr::memchr(b'(', name.as_bytes()).is_none() {
        return name;
    }
    let mut depth = 0_i32;
    let mut previous = None;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '{' | '[' => depth += 1,
            '>' | '}' | ']' | ')' => depth -= 1,
            '(' => {
                let rest = &name[at..];
                let kept = previous == Some('.')
                    || rest.starts_with("(anonymous namespace)")
                    || previous == Some('!') && rest.starts_with("(…)")
                    || depth == 0 && is_around_another(rest);
                if depth == 0 && !kept && at > 0 {
                    return &name[..at];
                }
                depth += 1;
            }
            _ => {}
        }
        previous = Some(c);
    }
    name
}

/// Whether behind an argument list comes what is declared in the function: `(int) const::{lambda()#1}`.
fn is_around_another(list: &str) -> bool {
    let mut depth = 0_i32;
    let end = list.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    let behind = end.map_or("", |end| &list[end + 1..]);
    let words = [" const", " volatile", " &&", " &"];
    let behind = words
        .iter()
        .fold(behind, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    behind.starts_with("::")
}

/// Cuts argument lists as folded stacks have them, but where these tell functions apart.
pub fn shorten(labels: &mut [String]) {
    let mut only: FxHashMap<&str, Option<&str>> = FxHashMap::default();
    for label in &*labels {
        let known = only.entry(without_arguments(label)).or_insert(Some(label));
        *known = known.filter(|known| known == label);
    }
    let kept = |label: &String| {
        let short = without_arguments(label);
        only[short].map_or(label.len(), |_| short.len())
    };
    let kept: Vec<usize> = labels.iter().map(kept).collect();
    for (label, length) in labels.iter_mut().zip(kept) {
        label.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_where_they_tell_functions_apart() {
        let mut labels = ["work(int)", "work(double)", "f(int)", "f(int)", "g"].map(str::to_owned);
        shorten(&mut labels);
        assert_eq!(labels, ["work(int)", "work(double)", "f", "f", "g"]);
    }

    #[test]
    fn argument_lists_go_and_receivers_stay() {
        for (name, expected) in [
            ("foo(int)", "foo"),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            (
                "std::vector<f(int)>::push_back(int&&)",
                "std::vector<f(int)>::push_back",
            ),
            ("(anonymous namespace)::f(bool)", "(anonymous namespace)::f"),
            (
                "{lambda(auto:1&)#1}::operator()",
                "{lambda(auto:1&)#1}::operator",
            ),
            (
                "f(int)::{lambda(unsigned long)#2}::operator()(unsigned long) const",
                "f(int)::{lambda(unsigned long)#2}::operator",
            ),
            (
                "a::g(int (*)(int)) const::T::run(int)",
                "a::g(int (*)(int)) const::T::run",
            ),
            ("f(((", "f"),
            ("f(int) [clone .cold]", "f"),
            ("Hot.fib(int)", "Hot.fib"),
            ("d.Vec!(…).sum", "d.Vec!(…).sum"),
        ] {
            assert_eq!(without_arguments(name), expected);
        }
    }

    #[test]
    fn what_acts_is_shown_as_a_picture() {
        assert_eq!(shown("a\u{7}\u{1b}[31m\0\u{7f}"), "a␇␛[31m␀␡");
        assert_eq!(
            shown("größe\u{202e}x\u{9b}\u{ffff}"),
            "größe\u{fffd}x\u{fffd}\u{fffd}"
        );
        assert_eq!(shown("wasm[0]::fib"), "wasm[0]::fib");
    }
}
