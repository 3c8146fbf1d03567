//! Names of Haskell as GHC writes them into files, read back (z-encoding, `GHC.Utils.Encoding`).
//!
//! In: `PACKAGE_MODULE_NAME_info`, where all signs but letters and digits are spelled. Out: `MODULE.NAME`. A name that does not
//! decode to the last letter is left as it is. perf does not read them, so only views for people do.

/// What ends the names of code.
const ENDINGS: [&str; 7] = [
    "_con_info",
    "_info",
    "_closure",
    "_slow",
    "_fast",
    "_entry",
    "_ret",
];

/// What all that GHC compiles is linked with: without it a name may be C's.
pub(super) const OF_RUNTIME: &[u8] = b"\0stg_upd_frame_info\0";

/// The name of a function as its author has it.
#[must_use]
pub fn decode(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let body = ENDINGS
        .iter()
        .find_map(|ending| name.strip_suffix(ending))?;
    let mut parts = body.rsplit('_');
    let (function, module) = (parts.next()?, parts.next()?);
    let (_package, more) = (parts.next(), parts.next());
    if more.is_some() {
        return None;
    }
    let module = decoded(module)?;
    let function = decoded(function)?;
    let is_module = module.split('.').all(is_module_part);
    (is_module && is_function(&function)).then(|| format!("{module}.{function}"))
}

/// A word, a sign, or what GHC makes of either (`$w<+%>`).
fn is_function(name: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '#' | '$' | ':' | '*');
    let is_word = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    !name.is_empty() && !name.contains(char::is_control) && (!is_word || name.chars().all(is_inner))
}

fn is_module_part(part: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'');
    part.starts_with(char::is_uppercase) && part.chars().all(is_inner)
}

/// A part with its signs.
fn decoded(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            'z' | 'Z' => {
                let mut ahead = rest.clone();
                let code = ahead.next()?;
                if code.is_ascii_digit() {
                    let (coded, after) = rest.as_str().split_once(if c == 'z' {
                        'U'
                    } else {
                        end_of_tuple(rest.as_str())?
                    })?;
                    if c == 'z' {
                        out.push(character(coded)?);
                    } else {
                        let is_boxed = rest.as_str()[coded.len()..].starts_with('T');
                        out.push_str(&tuple(coded, is_boxed)?);
                    }
                    rest = after.chars();
                } else {
                    out.push(sign(c, code)?);
                    rest = ahead;
                }
            }
            _ => out.push(c),
        }
    }
    Some(out)
}

/// What a spelled sign is.
const fn sign(first: char, second: char) -> Option<char> {
    Some(match (first, second) {
        ('z', 'z') => 'z',
        ('z', 'a') => '&',
        ('z', 'b') => '|',
        ('z', 'c') => '^',
        ('z', 'd') => '$',
        ('z', 'e') => '=',
        ('z', 'g') => '>',
        ('z', 'h') => '#',
        ('z', 'i') => '.',
        ('z', 'l') => '<',
        ('z', 'm') => '-',
        ('z', 'n') => '!',
        ('z', 'p') => '+',
        ('z', 'q') => '\'',
        ('z', 'r') => '\\',
        ('z', 's') => '/',
        ('z', 't') => '*',
        ('z', 'u') => '_',
        ('z', 'v') => '%',
        ('Z', 'Z') => 'Z',
        ('Z', 'C') => ':',
        ('Z', 'L') => '(',
        ('Z', 'R') => ')',
        ('Z', 'M') => '[',
        ('Z', 'N') => ']',
        _ => return None,
    })
}

/// `zHEXU`
fn character(hex: &str) -> Option<char> {
    let code = u32::from_str_radix(hex, 16).ok()?;
    char::from_u32(code).filter(|c| !c.is_control())
}

/// `ZnT` and `ZnH`: which letter ends it.
fn end_of_tuple(text: &str) -> Option<char> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    text[end..]
        .chars()
        .next()
        .filter(|end| matches!(end, 'T' | 'H'))
}

/// A constructor of tuples, which takes so many.
fn tuple(count: &str, is_boxed: bool) -> Option<String> {
    /// Of GHC.
    const MOST: usize = 64;
    let count: usize = count.parse().ok().filter(|count| *count <= MOST)?;
    let commas = ",".repeat(count.saturating_sub(1));
    Some(match (is_boxed, count) {
        (true, _) => format!("({commas})"),
        (false, 0 | 1) => "(# #)".to_owned(),
        (false, _) => format!("(#{commas}#)"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_whole_or_left() {
        let of = |name: &str| decode(name.as_bytes());
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(of("Main_zdwzlzpzvzg_info"), some("Main.$w<+%>"));
        assert_eq!(of("Main_buildzq_info"), some("Main.build'"));
        assert_eq!(
            of("containerszm0zi6zi5zi1_DataziMapziInternal_insert_entry"),
            some("Data.Map.Internal.insert")
        );
        assert_eq!(
            of("ghczmprim_GHCziTuple_Z3T_con_info"),
            some("GHC.Tuple.(,,)")
        );
        assert_eq!(
            of("ghczmprim_GHCziPrim_Z2H_con_info"),
            some("GHC.Prim.(#,#)")
        );
        assert_eq!(of("ghczmprim_GHCziTypes_ZC_con_info"), some("GHC.Types.:"));
        assert_eq!(
            of("ghczmprim_GHCziTypes_ZMZN_closure"),
            some("GHC.Types.[]")
        );
        assert_eq!(of("Main_z3bbU_info"), some("Main.λ"));
        for left in [
            "Main_size_info",
            "main_loop_info",
            "rJ8_info",
            "stg_upd_frame_info",
            "a_Main_x_y_info",
            "Main_x",
            "Main_\x1b_info",
            "Main_z_info",
            "Main__info",
            "Main_z1bU_info",
            "Main_zffffffffffU_info",
            "Main_Z99T_info",
            "Main_Z9_info",
            "Mainzi_x_info",
            "_info",
            "",
        ] {
            assert_eq!(of(left), None, "{left}");
        }
        assert_eq!(decode(b"Main_\xff_info"), None);
    }
}
