//! Parts of C++ names that the `cpp_demangle` crate (0.5.1) writes in the wrong place, put where they belong.
//!
//! In: its text. Out: the text as libiberty has it. Two cases were found among 9 005 names of libraries: what is said of a member of
//! a class that was named before stands behind the class (`Node*::Record` for `Node::Record*`), and the suffix of a literal operator
//! looks like a class (`operator_km::operator ""` for `operator"" _km`).

/// What may be said of a type, and be in the wrong place.
const SAID: [&str; 3] = [" const", "*", "&"];

/// Parts of a text that are moved at most: real names have one or two.
const MOST: usize = 64;

/// The text with all of these in their places.
pub(super) fn in_place(text: String) -> String {
    let text = literal_operators(text);
    members(&text).unwrap_or(text)
}

/// `operator"" _km` for `operator_km::operator ""`.
fn literal_operators(mut text: String) -> String {
    const WRONG: &str = "::operator \"\"";
    const WORD: &str = "operator";
    let is_name = |c: char| c == '_' || c.is_alphanumeric();
    for _ in 0..MOST {
        let wrong = text.find(WRONG).and_then(|at| {
            let begin = text[..at].rfind(WORD)?;
            let suffix = &text[begin + WORD.len()..at];
            let is_suffix = !suffix.is_empty() && suffix.chars().all(is_name);
            is_suffix.then(|| (begin..at + WRONG.len(), format!("{WORD}\"\" {suffix}")))
        });
        let Some((wrong, right)) = wrong else { break };
        text.replace_range(wrong, &right);
    }
    text
}

/// What is said of a type, behind the members of the type that follow. Nothing where nothing is before a member.
fn members(text: &str) -> Option<String> {
    let is_there = |said: &&str| {
        let before_member = text.match_indices(*said);
        before_member
            .map(|(at, found)| &text[at + found.len()..])
            .any(|rest| rest.starts_with("::"))
    };
    SAID.iter().find(|said| is_there(said))?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut moved = 0;
    while let Some(at) = rest.find("::").filter(|_| moved < MOST) {
        let (before, after) = (&rest[..at], &rest[at..]);
        out.push_str(before);
        let said = said_at_the_end(&out);
        let kept = out.len() - said;
        // `operator*::{lambda()#1}` is a lambda of an operator, and `operator char const*` converts.
        let is_operator = out[..kept].rsplit("::").next();
        let is_operator = is_operator.is_some_and(|part| part.contains("operator"));
        // `Loop::run(long) const::{lambda(long)#1}` is a lambda of a member function that is `const`.
        let function = out[..kept].trim_end().trim_end_matches(SAID[0]);
        let is_function = function.ends_with(')');
        if said == 0 || is_operator || is_function {
            out.push_str("::");
            rest = &after[2..];
            continue;
        }
        moved += 1;
        let suffix = out.split_off(kept);
        let end = end_of_members(after);
        out.push_str(&after[..end]);
        out.push_str(&suffix);
        rest = &after[end..];
    }
    out.push_str(rest);
    Some(out)
}

/// Length of what a text says of a type at its end.
fn said_at_the_end(text: &str) -> usize {
    let mut left = text;
    while let Some(shorter) = SAID.iter().find_map(|said| left.strip_suffix(said)) {
        left = shorter;
    }
    text.len() - left.len()
}

/// Where the members end that a text begins with: `::Record` of `::Record, int`, `::Of<int>::Kind` of `::Of<int>::Kind&`.
fn end_of_members(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'{' => depth += 1,
            b'>' | b'}' if depth > 0 => depth -= 1,
            b':' | b'_' | b'$' | 0x80.. => {}
            byte if byte.is_ascii_alphanumeric() => {}
            _ if depth > 0 => {}
            _ => return at,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_where_they_belong() {
        for (wrong, right) in [
            ("a::b", "a::b"),
            (
                "std::pair<clang::Node*, clang::Node*::Record> >::operator=",
                "std::pair<clang::Node*, clang::Node::Record*> >::operator=",
            ),
            (
                "f<Watcher::Event const::Kind&>",
                "f<Watcher::Event::Kind const&>",
            ),
            (
                "f<A const*::B<int*>::C, int>",
                "f<A::B<int*>::C const*, int>",
            ),
            ("A::operator*::{lambda()#1}", "A::operator*::{lambda()#1}"),
            ("int A::*, int (A::*)()", "int A::*, int (A::*)()"),
            (
                "Loop::run(long) const::{lambda(long)#1}::operator()",
                "Loop::run(long) const::{lambda(long)#1}::operator()",
            ),
            (
                "void apply<A::f() const &::Local*::Of>(A::f() const &::Local*::Of)",
                "void apply<A::f() const &::Local::Of*>(A::f() const &::Local::Of*)",
            ),
            ("lit::operator_km::operator \"\"", "lit::operator\"\" _km"),
            (
                "operator_s::operator \"\"(char const*)",
                "operator\"\" _s(char const*)",
            ),
            ("::operator \"\"", "::operator \"\""),
            ("ä*::ö", "ä::ö*"),
        ] {
            assert_eq!(in_place(wrong.to_owned()), right);
        }
    }
}
