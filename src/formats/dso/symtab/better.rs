//! Which of several symbols at one address perf shows (`choose_best_symbol`).

use std::cmp::Ordering;

use super::SymbolTable;
use crate::dso::demangle::{NameStyle, demangle};
use crate::dso::entries::{DYNSYM, SYMTAB};
use object::elf::{STB_GLOBAL, STB_WEAK, STT_NOTYPE, SymbolBind, SymbolType};

/// Finds the best of the symbols at one address, as far as somebody wants to know.
pub(super) struct Contest {
    pub(super) best: usize,
    /// Behind those that took part.
    behind: usize,
    /// What counts of the best one's name, if it had to be found.
    shown: Option<(NameStyle, Shown)>,
}

impl Contest {
    pub(super) fn new(first: usize) -> Self {
        Self {
            best: first,
            behind: first + 1,
            shown: None,
        }
    }

    /// Lets the entries before some other take part.
    pub(super) fn go_on(&mut self, table: &SymbolTable<'_>, behind: usize) {
        for other in self.behind..behind {
            if self.is_beaten(table, other) {
                self.best = other;
            }
        }
        self.behind = self.behind.max(behind);
    }

    /// `choose_best_symbol`: whether a later symbol replaces the best so far.
    pub(super) fn is_beaten(&mut self, table: &SymbolTable<'_>, later: usize) -> bool {
        let (a, b) = (table.facts(self.best), table.facts(later));
        let rank = |f: &Facts| {
            (
                f.sized,
                f.kind != STT_NOTYPE,
                f.binding != STB_WEAK,
                f.binding == STB_GLOBAL,
            )
        };
        match rank(&a).cmp(&rank(&b)) {
            Ordering::Greater => false,
            Ordering::Less => {
                self.shown = None;
                true
            }
            Ordering::Equal => self.has_worse_name(table, later),
        }
    }

    fn has_worse_name(&mut self, table: &SymbolTable<'_>, later: usize) -> bool {
        // A file's `.symtab` repeats its `.dynsym`: the better of the names was found there already.
        let repeated = table.symtab_is_complete
            && table.entries[later].origin.table() == DYNSYM
            && table.entries[self.best].origin.table() == SYMTAB;
        if repeated {
            return false;
        }
        let (a, b) = (table.name(self.best), table.name(later));
        if same_when_demangled(a, b) {
            return false;
        }
        // perf demangles before it compares. Longer names are only made to cost time.
        let style = if a.len().max(b.len()) <= MAX_COMPARED {
            NameStyle::Short
        } else {
            NameStyle::Raw
        };
        let known = self.shown.filter(|&(of, _)| of == style);
        let a = known.map_or_else(|| Shown::of(a, style), |(_, shown)| shown);
        let b = Shown::of(b, style);
        let beaten = a.is_worse_than(b);
        self.shown = Some((style, if beaten { b } else { a }));
        beaten
    }
}

/// What counts of a name as it is shown.
#[derive(Clone, Copy)]
struct Shown {
    underscores: usize,
    len: usize,
    is_system_call: bool,
}

impl Shown {
    fn of(name: &[u8], style: NameStyle) -> Self {
        let text = demangle(name, style);
        Self {
            underscores: text.bytes().take_while(|&c| c == b'_').count(),
            len: text.len(),
            is_system_call: text.starts_with("SyS") || text.starts_with("compat_SyS"),
        }
    }

    fn is_worse_than(self, later: Self) -> bool {
        let less_shown = (self.underscores, later.len).cmp(&(later.underscores, self.len));
        match less_shown {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => self.is_system_call,
        }
    }
}

/// Longest name that is demangled for a comparison of aliases.
pub(super) const MAX_COMPARED: usize = 2048;

/// Cheap answers to most comparisons: the same symbol in both tables, and the variants of a C++ constructor or
/// destructor (`C1`, `C2`, `D0`, …), whose names differ in one digit.
fn same_when_demangled(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut different = a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y);
    let Some((at, (x, y))) = different.next() else {
        return true;
    };
    // Rust: instances of one function that the linker folded differ in their hash, `17h…E` at the end.
    let hash = a.len().saturating_sub(20);
    if at >= hash + 3 && a.starts_with(b"_ZN") && a.ends_with(b"E") && a[hash..].starts_with(b"17h")
    {
        return true;
    }
    let variant = a.starts_with(b"_Z") && at > 2 && matches!(a[at - 1], b'C' | b'D');
    variant && x.is_ascii_digit() && y.is_ascii_digit() && different.next().is_none()
}

/// What perf looks at of a symbol before its name.
pub(super) struct Facts {
    pub(super) sized: bool,
    pub(super) kind: SymbolType,
    pub(super) binding: SymbolBind,
}
