//! Parameter packs as libiberty writes them: the `&&` of `T&&...` stands behind each type of the pack.
//!
//! In: a mangled name, its text without and with parameters. Out: the text with parameters. The `cpp_demangle` crate (0.5.1)
//! writes what stands behind a pack's types once, behind the last: `f<int, double>(int, double&&)`, and `f<>(&&)`.

/// What may stand behind the types of a pack: as it is mangled, and as it is written.
const BEHIND: [(&str, &str); 4] = [("O", "&&"), ("RK", " const&"), ("R", "&"), ("P", "*")];

/// The parameters `text` of a function template whose name is `short`, with each type of a pack whole. `None` where that is so
/// already, or where it cannot be told which types are the pack's.
pub(super) fn whole_packs(mangled: &str, short: &str, text: &str) -> Option<String> {
    let (_, pack) = mangled.split_once("Dp")?;
    let (behind, parameter) = BEHIND
        .iter()
        .find_map(|(code, behind)| Some((*behind, pack.strip_prefix(code)?)))?;
    let number = parameter.strip_prefix('T')?.split_once('_')?.0;
    let first = match number {
        "" => 0,
        number => number.parse::<usize>().ok()?.checked_add(1)?,
    };
    let types = arguments(short)?.into_iter().skip(first);
    let types: Vec<&str> = types.filter(|argument| !argument.is_empty()).collect();
    match types[..] {
        [] => {
            let alone = format!("({behind})");
            let at_end = format!(", {behind})");
            let before = text.strip_suffix(&at_end);
            let before = before.map(|before| before.to_owned() + ")");
            return before.or_else(|| Some(text.strip_suffix(&alone)?.to_owned() + "()"));
        }
        [_] => return None,
        _ => {}
    }
    let parameters = text.find(short)? + short.len();
    let written = types.join(", ");
    let mut places = text[parameters..].match_indices(&written);
    let (at, _) = places.next()?;
    if places.next().is_some() {
        return None;
    }
    let (before, rest) = text.split_at(parameters + at);
    let rest = &rest[written.len()..];
    // A reference in the pack has taken what stands behind it, so the last type may have nothing.
    let rest = rest.strip_prefix(behind).unwrap_or(rest);
    if !rest.starts_with([',', ')']) {
        return None;
    }
    let whole = |argument: &&str| Some((*argument).to_owned() + suffix(argument, behind)?);
    let types: Option<Vec<String>> = types.iter().map(whole).collect();
    Some(format!("{before}{}{rest}", types?.join(", ")))
}

/// What is written behind a type: a reference to a reference is one reference.
fn suffix(argument: &str, behind: &'static str) -> Option<&'static str> {
    // What is said of functions and arrays stands within them.
    if argument.contains(['(', '[']) {
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
            ("_Z1fIJEEvDpOT_", "void f<>()"),
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
