//! Which namespaces and classes the entries of a unit stand in.
//!
//! In: a unit. Out: the full name of a function that has a plain one alone: GCC gives functions that no other unit sees no linkage
//! name, so that `app::(anonymous namespace)::f` would be `f` where it is inlined, and have its full name where it stands by itself.

use std::sync::Arc;

use gimli::{AttributeValue, UnitOffset, constants as dw};

use super::abbreviations::number;
use super::dwarf::{ATTRIBUTES_PER_BYTE, DebugInfo, MAX_ATTRIBUTES, Unit, string};

/// Longest name that is put together.
const MAX_NAME: usize = 1 << 10;
/// How many scopes around an entry are looked at.
const MAX_DEPTH: usize = 64;
/// What stands for a namespace without a name, as in demangled names.
const ANONYMOUS: &[u8] = b"(anonymous namespace)";

/// Entries of a unit that others stand in, in their order.
#[derive(Default)]
pub(super) struct Scopes<'a>(Vec<Scope<'a>>);

struct Scope<'a> {
    /// Where its entry begins.
    start: usize,
    /// Where the entries inside it end.
    end: usize,
    /// The one around it.
    parent: Option<usize>,
    /// Nothing for a scope that cannot be spelled: a function, a class without a name.
    name: Option<&'a [u8]>,
}

impl<'a> Scopes<'a> {
    /// Those of a unit of C++; none of other languages. A damaged unit gives what was found before the damage.
    pub(super) fn of(info: &DebugInfo<'a>, unit: &Unit<'a>) -> Self {
        let mut found = Self::default();
        if is_cpp(unit) {
            let _ = found.read(info, unit);
        }
        found
    }

    fn read(&mut self, info: &DebugInfo<'a>, unit: &Unit<'a>) -> Option<()> {
        let (header, table) = (&unit.header, Arc::clone(&unit.table));
        let root = header.root_offset().0;
        let all = header.range_from(UnitOffset(root)..).ok()?.slice();
        let mut attributes_left =
            (header.length_including_self()).saturating_mul(ATTRIBUTES_PER_BYTE);
        // The scopes that are open, nothing for entries that are none.
        let mut open: Vec<Option<usize>> = Vec::new();
        let mut rest = all;
        while !rest.is_empty() {
            let start = root + all.len() - rest.len();
            let code = number(&mut rest)?;
            if code == 0 {
                if let Some(scope) = open.pop().flatten() {
                    self.0[scope].end = start;
                }
                continue;
            }
            let abbreviation = table.get(code)?;
            table.pass(abbreviation, &mut rest, header)?;
            if !abbreviation.has_children {
                continue;
            }
            let is_namespace = abbreviation.tag == dw::DW_TAG_namespace;
            let scope = match abbreviation.tag {
                dw::DW_TAG_namespace
                | dw::DW_TAG_class_type
                | dw::DW_TAG_structure_type
                | dw::DW_TAG_union_type => {
                    let count = table.specs(abbreviation).len();
                    attributes_left = attributes_left.checked_sub(count)?;
                    let name = name_of(info, unit, UnitOffset(start));
                    Some(name.or(is_namespace.then_some(ANONYMOUS)))
                }
                dw::DW_TAG_subprogram => Some(None),
                _ => None,
            };
            let parent = open.iter().rev().find_map(|outer| *outer);
            let scope = scope.map(|name| {
                self.0.push(Scope {
                    start,
                    end: usize::MAX,
                    parent,
                    name,
                });
                self.0.len() - 1
            });
            open.push(scope);
        }
        Some(())
    }

    /// A name with the scopes around its entry in front; nothing if it has none, or one of them has no name to write.
    pub(super) fn qualified(&self, at: UnitOffset, name: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        let mut parts = vec![name];
        let mut size = name.len();
        let behind = self.0.partition_point(|scope| scope.start < at.0);
        let mut next = behind.checked_sub(1);
        for _ in 0..MAX_DEPTH {
            let Some(scope) = next.map(|next| &self.0[next]) else {
                return (parts.len() > 1).then(|| {
                    parts.reverse();
                    parts.join(&b"::"[..])
                });
            };
            if at.0 < scope.end {
                let part = scope.name.filter(|text| !text.starts_with(b"<"))?;
                size += part.len() + 2;
                if size > MAX_NAME {
                    return None;
                }
                parts.push(part);
            }
            next = scope.parent;
        }
        None
    }
}

fn is_cpp(unit: &Unit<'_>) -> bool {
    let language = unit.root().and_then(|(mut entries, specs)| {
        let mut attributes = specs
            .iter()
            .map_while(|spec| entries.read_attribute(*spec).ok());
        attributes.find(|attribute| attribute.name() == dw::DW_AT_language)
    });
    let Some(AttributeValue::Language(language)) = language.map(|found| found.value()) else {
        return false;
    };
    matches!(
        language,
        dw::DW_LANG_C_plus_plus
            | dw::DW_LANG_C_plus_plus_03
            | dw::DW_LANG_C_plus_plus_11
            | dw::DW_LANG_C_plus_plus_14
            | dw::DW_LANG_C_plus_plus_17
            | dw::DW_LANG_C_plus_plus_20
    )
}

fn name_of<'a>(info: &DebugInfo<'a>, unit: &Unit<'a>, at: UnitOffset) -> Option<&'a [u8]> {
    let (mut entries, specs) = unit.entry(at)?;
    if specs.len() > MAX_ATTRIBUTES {
        return None;
    }
    let mut attributes = specs
        .iter()
        .map_while(|spec| entries.read_attribute(*spec).ok());
    let name = attributes.find(|attribute| attribute.name() == dw::DW_AT_name)?;
    string(info, unit, name.value()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_scopes_around_them() {
        let scope = |start, end, parent, name: Option<&'static [u8]>| Scope {
            start,
            end,
            parent,
            name,
        };
        // app { (anonymous) { } f() { class local { } } } <lambda> { }
        let scopes = Scopes(vec![
            scope(10, 100, None, Some(b"app")),
            scope(20, 40, Some(0), Some(ANONYMOUS)),
            scope(50, 90, Some(0), None),
            scope(60, 80, Some(2), Some(b"local")),
            scope(110, 120, None, Some(b"<lambda(int)>")),
        ]);
        let told = |at| {
            let name = scopes.qualified(UnitOffset(at), b"g")?;
            Some(String::from_utf8(name).expect("ASCII"))
        };
        assert_eq!(told(15).as_deref(), Some("app::g"));
        assert_eq!(told(30).as_deref(), Some("app::(anonymous namespace)::g"));
        assert_eq!(told(45).as_deref(), Some("app::g"));
        assert_eq!(told(70), None);
        assert_eq!(told(95).as_deref(), Some("app::g"));
        assert_eq!(told(105), None);
        assert_eq!(told(115), None);
        assert_eq!(told(5), None);
    }
}
