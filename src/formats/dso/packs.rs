//! Parameter packs as libiberty writes them: the `&&` of `T&&...` stands behind each type of the pack.
//!
//! In: a mangled name, its text without and with parameters. Out: the text with parameters. The `cpp_demangle` crate (0.5.1)
//! writes what stands behind a pack's types once, behind the last: `f<int, double>(int, double&&)`, and `f<>(&&)`.

/// What may stand behind the types of a pack: as it is mangled, and as it is written.
const BEHIND: [(&str, &str); 4] = [("O", "&&"), ("RK", " const&"), ("R", "&"), ("P", "*")];

/// The text of a function template whose name is `short`, with each type of a pack whole. `None` where it is so already, or where it
/// cannot be told which parameters are the pack's: it has to be the last one, and its types the last ones of the template.
pub(super) fn whole_packs(mangled: &str, short: &str, text: &str) -> Option<String> {
    let (_, pack) = mangled.rsplit_once("Dp")?;
    let (behind, parameter) = BEHIND
        .iter()
        .find_map(|(code, behind)| Some((*behind, pack.strip_prefix(code)?)))?;
    let (number, rest) = parameter.strip_prefix('T')?.split_once('_')?;
    if !rest.is_empty() && !rest.starts_with(['.', '@']) {
        return None;
    }
    let first = match number {
        "" => 0,
        number => number.parse::<usize>().ok()?.checked_add(1)?,
    };
    let types = arguments(short)?.into_iter().skip(first);
    let types: Vec<&str> = types.filter(|argument| !argument.is_empty()).collect();
    let begin = text.find(short)? + short.len();
    let inside = text[begin..].strip_prefix('(')?;
    let (mut parameters, end) = parts(inside)?;
    if types.is_empty() {
        // Of a pack without types there is what would stand behind them.
        parameters.pop().filter(|last| *last == behind)?;
    }
    let of_pack = parameters.len().checked_sub(types.len())?;
    let are_there = |(each, of): (&&str, &&str)| each.starts_with(of);
    if !parameters[of_pack..].iter().zip(&types).all(are_there) {
        return None;
    }
    let whole = |argument: &&str| Some((*argument).to_owned() + suffix(argument, behind)?);
    let others = parameters[..of_pack]
        .iter()
        .map(|other| Some((*other).to_owned()));
    let all: Option<Vec<String>> = others.chain(types.iter().map(whole)).collect();
    let (before, after) = (&text[..begin], &inside[end..]);
    Some(format!("{before}({}{after}", all?.join(", ")))
}

/// What is between brackets at the beginning of a text, apart at its commas, and where the closing one is.
fn parts(inside: &str) -> Option<(Vec<&str>, usize)> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                found.push(inside[start..at].trim());
                return Some((found, at));
            }
            b')' | b'>' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.push(inside[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// What is written behind a type: a reference to a reference is one reference.
fn suffix(argument: &str, behind: &'static str) -> Option<&'static str> {
    // What is said of functions and arrays stands within them, and of a reference to one nothing is added.
    if behind == "&&" && argument.contains("(&)") && !argument.contains('<') {
        return Some("");
    }
    if argument.contains(['(', '[']) || argument.ends_with(" const") && behind == " const&" {
        return None;
    }
    match (argument.ends_with('&'), behind) {
        (false, behind) => Some(behind),
        (true, "&&") => Some(""),
        (true, _) => None,
    }
}

/// The arguments of the template at the end of a name.
fn arguments(name: &str) -> Option<Vec<&str>> {
    let inner = name.trim_end_matches(" const").strip_suffix('>')?;
    let (mut depth, mut end) = (0_usize, inner.len());
    let mut found = Vec::new();
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b'>' | b')' | b']' => depth += 1,
            b'<' if depth == 0 => {
                found.push(inner[at + 1..end].trim());
                found.reverse();
                return Some(found);
            }
            b'<' | b'(' | b'[' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.push(inner[at + 1..end].trim());
                end = at;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::dso::NameStyle;
    use crate::dso::demangle::{demangle, parameters};

    #[test]
    fn each_type_of_a_pack_has_what_stands_behind_the_pack() {
        // As c++filt has them.
        for (mangled, wanted) in [
            ("_Z1fIJidEEvDpOT_", "void f<int, double>(int&&, double&&)"),
            (
                "_Z1fIJidEEvDpRKT_",
                "void f<int, double>(int const&, double const&)",
            ),
            ("_Z1fIJidEEvDpRT_", "void f<int, double>(int&, double&)"),
            ("_Z1fIJidEEvDpPT_", "void f<int, double>(int*, double*)"),
            ("_Z1fIJiRdEEvDpOT_", "void f<int, double&>(int&&, double&)"),
            ("_Z1fIJRidEEvDpOT_", "void f<int&, double>(int&, double&&)"),
            (
                "_Z1fIcJidEEvT_DpOT0_",
                "void f<char, int, double>(char, int&&, double&&)",
            ),
            ("_Z1fIJRKdEEvDpOT_", "void f<double const&>(double const&)"),
            (
                "_Z1fIJRA7_KciEEvDpOT_",
                "void f<char const (&) [7], int>(char const (&) [7], int&&)",
            ),
            ("_Z1fIJEEvDpOT_", "void f<>()"),
            (
                "_Z1fIJPKcbEEvDpRKT_",
                "void f<char const*, bool>(char const* const&, bool const&)",
            ),
            (
                "_Z1fIJidEEvDpOT_.cold",
                "void f<int, double>(int&&, double&&) [clone .cold]",
            ),
            ("_Z1fIiJEEvOT_DpOT0_", "void f<int>(int&&)"),
            (
                "_Z1fIJSt6vectorIiSaIiEEdEEvDpOT_",
                "void f<std::vector<int, std::allocator<int> >, double>\
                 (std::vector<int, std::allocator<int> >&&, double&&)",
            ),
        ] {
            assert_eq!(
                demangle(mangled.as_bytes(), NameStyle::Full),
                wanted,
                "{mangled}"
            );
        }
        let told = parameters(b"_ZN1A1fIJidEEEvDpOT_");
        assert_eq!(told.as_deref(), Some("(int&&, double&&)"));
    }
}
