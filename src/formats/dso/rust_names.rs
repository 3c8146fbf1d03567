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
                let inner: String = std::iter::from_fn(|| rest.next_if(|c| *c != '}')).collect();
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
}
