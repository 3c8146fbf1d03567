//! Names of Nim as its compiler writes them into C, read back (`compiler/ccgutils.nim`, `mangle`).
//!
//! In: `NAME__MODULE_NUMBER` (Nim 1) or `NAME__MODULE_uNUMBER` (Nim 2). Out: `MODULE.NAME`. Signs are spelled by words, and then `_` ends the name.
//! What can be read in two ways is left as it is. perf does not read these names, so only views for people do.

/// What the compiler puts into each program: without it a name may be C's.
pub(super) const OF_RUNTIME: &[u8] = b"\0NimMain\0";
/// The same as a symbol.
pub(super) const MAIN: &[u8] = b"NimMain";

/// The words for signs. None begins another one.
const SIGNS: [(&str, char); 19] = [
    ("amp", '&'),
    ("at", '@'),
    ("backslash", '\\'),
    ("bar", '|'),
    ("colon", ':'),
    ("dollar", '$'),
    ("dot", '.'),
    ("emark", '!'),
    ("eq", '='),
    ("gt", '>'),
    ("lt", '<'),
    ("minus", '-'),
    ("percent", '%'),
    ("plus", '+'),
    ("qmark", '?'),
    ("roof", '^'),
    ("slash", '/'),
    ("star", '*'),
    ("tilde", '~'),
];

/// The name of a function as its author has it.
#[must_use]
pub fn decode(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    // What compilers append to clones (`.part.0`) is not shown.
    let name = name.split('.').next()?;
    let (name, place) = name.rsplit_once("__")?;
    let (module, number) = place.rsplit_once('_')?;
    let number = number.strip_prefix('u').unwrap_or(number);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_number || !is_name {
        return None;
    }
    let module = module_of(module)?;
    let name = match name.strip_suffix('_') {
        Some(spelled) => with_signs(spelled)?,
        None => name.to_owned(),
    };
    Some(format!("{module}.{name}"))
}

/// The last part of a module's path: `Z` is `/`. Capitals and `_` are spelled by their numbers, which cannot be told from digits.
fn module_of(path: &str) -> Option<&str> {
    let is_path = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'Z' | b'O');
    let module = path.rsplit('Z').next()?;
    let is_number = |pair: &[u8]| {
        matches!(
            pair,
            [b'6', b'5'..=b'9'] | [b'7' | b'8', b'0'..=b'9'] | [b'9', b'0' | b'5']
        )
    };
    let is_plain = path.bytes().all(is_path)
        && module.starts_with(|c: char| c.is_ascii_lowercase())
        && !module.contains('O')
        && !module.as_bytes().windows(2).any(is_number);
    is_plain.then_some(module)
}

/// A name that has signs: of nothing else, or of letters and one of them.
fn with_signs(spelled: &str) -> Option<String> {
    let mut signs = String::new();
    let mut rest = spelled;
    while let Some((word, sign)) = SIGNS.iter().find(|(word, _)| rest.starts_with(word)) {
        signs.push(*sign);
        rest = &rest[word.len()..];
    }
    if rest.is_empty() && !signs.is_empty() {
        return Some(signs);
    }
    let mut found = SIGNS.iter().flat_map(|(word, sign)| {
        let places = spelled.match_indices(word);
        places.map(move |(at, _)| (at, word.len(), *sign))
    });
    let (at, length, sign) = found.next().filter(|_| found.next().is_none())?;
    let (before, after) = (&spelled[..at], &spelled[at + length..]);
    Some(match (before, sign, after) {
        ("", ':', "anonymous") => "(anonymous)".to_owned(),
        _ => format!("{before}{sign}{after}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_whole_or_left() {
        let of = |name: &str| decode(name.as_bytes());
        for (name, shown) in [
            ("area__n_3", "n.area"),
            ("area__n_u3", "n.area"),
            ("pluspercentpercent___n_43", "n.+%%"),
            ("colonanonymous___n_18", "n.(anonymous)"),
            ("dollar___systemZdollars_3", "dollars.$"),
            ("eqdestroy___systemZassertions_23", "assertions.=destroy"),
            ("valueeq___shapes_7", "shapes.value="),
            ("add__system_2308.part.0", "system.add"),
            (
                "digits100__stdZprivateZdigitsutils_2",
                "digitsutils.digits100",
            ),
            (
                "parse__OOZOOZO110imbleZjester450O5Zjester_12",
                "jester.parse",
            ),
            ("backslashslash___n_1", "n.\\/"),
        ] {
            assert_eq!(of(name).as_deref(), Some(shown), "{name}");
        }
        for left in [
            "TM__Q5wkpxktOdTGvlSRo9bzt9aw_13",
            "area__my95mod_3",
            "area__n",
            "area__n_",
            "area__n_x3",
            "starts_eq___n_1",
            "formateq___n_2",
            "plain___n_2",
            "XC3XA9___n_2",
            "area\x1b__n_3",
            "__n_3",
            "nimGC_setStackBottom",
            "main",
            "",
        ] {
            assert_eq!(of(left), None, "{left:?}");
        }
    }
}
