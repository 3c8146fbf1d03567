//! Names of Rust's two manglings as one.
//!
//! In: a demangled name. Out: what both manglings tell of it. The older one, which rustc 1.95 uses, gives each instance of a
//! generic function one name and a hash; the newer one (RFC 2603, what rustc 1.99 uses) tells type arguments and numbers closures. Where two builds
//! differ in it, their functions can be compared by what both tell.

/// What both manglings tell: `h::work::<u64>` is `h::work`, `h::main::{closure#0}` is `h::main::{{closure}}`, and
/// `<h::Set<u64>>::add` is `h::Set::add`.
pub(super) fn plain_rust(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    // Of each open bracket that is shown: where it is, and whether a trait stands behind it.
    let mut open: Vec<Option<(usize, bool)>> = Vec::new();
    // Brackets that are not shown after all, and nothing else.
    let mut gone: Vec<usize> = Vec::new();
    let (mut hidden, mut before) = (0_usize, ' ');
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '<' => {
                let follows = plain.ends_with("::") || before.is_alphanumeric() || before == '_';
                // `core::slice::<impl [T]>::sort`, of the older one, is `<[u64]>::sort` in the other.
                let hides = hidden > 0 || follows;
                if hides && hidden == 0 && plain.ends_with("::") {
                    plain.truncate(plain.len() - 2);
                }
                hidden += usize::from(hides);
                open.push((!hides).then_some((plain.len(), false)));
                if !hides {
                    plain.push(c);
                }
            }
            // Of a function's type.
            '>' if before == '-' => {
                if hidden == 0 {
                    plain.push(c);
                }
            }
            '>' => match open.pop() {
                // An implementation of no trait.
                Some(Some((at, false))) if rest.peek() == Some(&':') => gone.push(at),
                Some(Some(_)) => plain.push(c),
                Some(None) => hidden -= 1,
                None => plain.push(c),
            },
            _ if hidden > 0 => {}
            '{' => {
                let inner: String =
                    std::iter::from_fn(|| rest.next_if(|next| *next != '}')).collect();
                rest.next();
                let word = inner.trim_start_matches('{');
                let (word, _) = word.split_once('#').unwrap_or((word, ""));
                match word
                    .strip_prefix("shim:")
                    .or_else(|| word.strip_suffix(".shim"))
                {
                    Some(kind) => plain.push_str(&format!("{{{{{kind}.shim}}}}")),
                    None => plain.push_str(&format!("{{{{{word}}}}}")),
                }
                rest.next_if_eq(&'}');
            }
            c => {
                if c == ' '
                    && plain.ends_with(" as")
                    && let Some(Some((_, is_of_trait))) = open.last_mut()
                {
                    *is_of_trait = true;
                }
                plain.push(c);
            }
        }
        before = c;
    }
    gone.sort_unstable();
    let shown = |(at, _): &(usize, char)| gone.binary_search(at).is_err();
    plain.char_indices().filter(shown).map(|(_, c)| c).collect()
}

/// The crate that has a function, by its name in the newer mangling: the demangled one, `<a::T as b::Trait>::f`, does not tell whether
/// that is `a` or `b`. Nothing of other names.
#[must_use]
pub fn crate_of_mangled(name: &[u8]) -> Option<&str> {
    let text = name.strip_prefix(b"_R")?;
    Mangled { text, at: 0 }.crate_of_path()
}

/// A name in the newer mangling, from behind `_R`, as far as it was read (RFC 2603).
struct Mangled<'n> {
    text: &'n [u8],
    at: usize,
}

impl<'n> Mangled<'n> {
    /// How many steps lead to a crate, and how deep types are.
    const MOST: usize = 64;

    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn next_if(&mut self, byte: u8) -> bool {
        let is = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is);
        is
    }

    /// The crate at the root of a path; of an implementation that in which it stands.
    fn crate_of_path(&mut self) -> Option<&'n str> {
        for _ in 0..Self::MOST {
            match self.next()? {
                b'C' => return self.word(),
                b'N' => drop(self.next()?),
                b'I' => {}
                b'M' | b'X' => self.disambiguator()?,
                // A method that the trait has for all.
                b'Y' => self.skip_type(Self::MOST)?,
                b'B' => self.at = self.number()?,
                _ => return None,
            }
        }
        None
    }

    fn word(&mut self) -> Option<&'n str> {
        self.disambiguator()?;
        self.next_if(b'u');
        let mut length = 0_usize;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            length = length
                .checked_mul(10)?
                .checked_add(usize::from(digit - b'0'))?;
            self.at += 1;
        }
        self.next_if(b'_');
        let end = self.at.checked_add(length)?;
        let word = self.text.get(self.at..end)?;
        self.at = end;
        std::str::from_utf8(word).ok()
    }

    fn disambiguator(&mut self) -> Option<()> {
        if self.next_if(b's') {
            self.number()?;
        }
        Some(())
    }

    /// A number to the base of 62: `_` is 0, `0_` is 1.
    fn number(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        loop {
            let digit = match self.next()? {
                b'_' => return Some(number),
                digit @ b'0'..=b'9' => digit - b'0',
                digit @ b'a'..=b'z' => digit - b'a' + 10,
                digit @ b'A'..=b'Z' => digit - b'A' + 36,
                _ => return None,
            };
            number = number.checked_mul(62)?.checked_add(usize::from(digit))?;
            // One more than the digits say, but for none.
            number += usize::from(self.text.get(self.at) == Some(&b'_'));
        }
    }

    fn skip_path(&mut self, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match self.next()? {
            b'C' => drop(self.word()?),
            b'N' => {
                self.next()?;
                self.skip_path(depth)?;
                self.word()?;
            }
            b'M' => {
                self.disambiguator()?;
                self.skip_path(depth)?;
                self.skip_type(depth)?;
            }
            b'X' => {
                self.disambiguator()?;
                self.skip_path(depth)?;
                self.skip_type(depth)?;
                self.skip_path(depth)?;
            }
            b'Y' => {
                self.skip_type(depth)?;
                self.skip_path(depth)?;
            }
            b'I' => {
                self.skip_path(depth)?;
                while !self.next_if(b'E') {
                    match self.text.get(self.at)? {
                        b'L' => drop((self.next(), self.number()?)),
                        b'K' => {
                            self.next();
                            self.skip_constant()?;
                        }
                        _ => self.skip_type(depth)?,
                    }
                }
            }
            b'B' => drop(self.number()?),
            _ => return None,
        }
        Some(())
    }

    /// What names of functions seldom have in their types, functions and `dyn`, is not read.
    fn skip_type(&mut self, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match *self.text.get(self.at)? {
            b'a'..=b'z' => self.at += 1,
            b'S' | b'P' | b'O' => {
                self.at += 1;
                self.skip_type(depth)?;
            }
            b'A' => {
                self.at += 1;
                self.skip_type(depth)?;
                self.skip_constant()?;
            }
            b'R' | b'Q' => {
                self.at += 1;
                if self.next_if(b'L') {
                    self.number()?;
                }
                self.skip_type(depth)?;
            }
            b'T' => {
                self.at += 1;
                while !self.next_if(b'E') {
                    self.skip_type(depth)?;
                }
            }
            _ => self.skip_path(depth)?,
        }
        Some(())
    }

    fn skip_constant(&mut self) -> Option<()> {
        match self.next()? {
            b'B' => drop(self.number()?),
            b'p' => {}
            b'a'..=b'z' => while self.next()? != b'_' {},
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_manglings_have_one_plain_name() {
        for (older, newer) in [
            ("h::work", "h::work::<u64>"),
            ("h::main::{{closure}}", "h::main::{closure#0}"),
            (
                "h::par::{{closure}}::{{closure}}",
                "h::par::<&str>::{closure#1}::{closure#0}",
            ),
            ("<h::Ci as h::Shape>::area", "<h::Ci as h::Shape>::area"),
            ("h::Set<T>::add", "<h::Set<u64>>::add"),
            (
                "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
                "<alloc::vec::Vec<u8> as core::ops::drop::Drop>::drop",
            ),
            (
                "core::ptr::drop_in_place<alloc::vec::Vec<fn(i32) -> u8>>",
                "core::ptr::drop_in_place::<alloc::vec::Vec<fn(i32) -> u8>>",
            ),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
                "core::ops::function::FnOnce::call_once{shim:vtable#0}",
            ),
            (
                "<&T as core::fmt::Debug>::fmt",
                "<&T as core::fmt::Debug>::fmt",
            ),
        ] {
            assert_eq!(plain_rust(older), plain_rust(newer), "{older}");
        }
        assert_eq!(plain_rust("<h::Set<u64>>::add"), "h::Set::add");
        assert_eq!(plain_rust("h::main::{closure#0}"), "h::main::{{closure}}");
        assert_eq!(plain_rust("h::<impl h::T for u8>::f"), "h::f");
        assert_eq!(plain_rust("h::f<fn(u8) -> u8>::g"), "h::f::g");
        assert_eq!(plain_rust("main"), "main");
        for broken in [
            "<",
            ">",
            "a<b",
            "{",
            "{{",
            "a{closure#",
            "}}}}",
            "<a as b>>",
            "<<a>::b",
        ] {
            let _ = plain_rust(broken);
        }
    }

    /// As rustc 1.95 mangles them with `-C symbol-mangling-version=v0`.
    #[test]
    fn the_newer_mangling_tells_where_an_implementation_stands() {
        for (name, krate) in [
            ("_RNvXCse0t5XC0jcx_1cNtB2_1SNtCsciUMGOH01m6_1b1W1u", "c"),
            // The trait's own, for `c::G<(u8, [u16; 3])>`.
            (
                "_RNvYINtCse0t5XC0jcx_1c1GThAtj3_EENtCsciUMGOH01m6_1b1W1tB5_",
                "b",
            ),
            (
                "_RNvXNtCse0t5XC0jcx_1c4deepNtNtCslNYArtu3iFV_5alloc6string6StringNtB2_1V1v",
                "c",
            ),
            (
                "_RNvMs6_NtNtNtNtCslNYArtu3iFV_5alloc11collections5btree3map5entryINtB5_11VacantEntryyyE3get",
                "alloc",
            ),
        ] {
            assert_eq!(crate_of_mangled(name.as_bytes()), Some(krate), "{name}");
            for end in 0..name.len() {
                let _ = crate_of_mangled(&name.as_bytes()[..end]);
            }
        }
        for name in [
            "_ZN1aE",
            "_R",
            "_RNvB_",
            "_RY",
            "_RYB_",
            "_RC99999999999999999999_",
        ] {
            assert_eq!(crate_of_mangled(name.as_bytes()), None, "{name}");
        }
        let deep = format!("_RY{}", "S".repeat(1 << 20));
        assert_eq!(crate_of_mangled(deep.as_bytes()), None);
    }
}
