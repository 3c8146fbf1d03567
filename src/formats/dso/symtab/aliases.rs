//! All functions that begin at an address: aliases, and those that the linker or the compiler made one.

use super::SymbolTable;
use super::better::MAX_COMPARED;
use object::elf::{STT_FUNC, STT_GNU_IFUNC};

/// So many names of an address are told.
const MOST: usize = 256;

impl SymbolTable<'_> {
    /// The names of the functions that begin where a symbol of a file does, in the order of its tables, perhaps twice. The kernel's
    /// symbols do not tell which of them are functions.
    pub(crate) fn functions_at(&self, start: u64) -> Vec<&[u8]> {
        if !self.is_of_elf() {
            return Vec::new();
        }
        let at = start.wrapping_add(self.bias);
        let group = self.group(self.places.behind(&self.entries, at));
        if group.len() < 2 || self.entries[group.start].start != at {
            return Vec::new();
        }
        let is_function = |index: &usize| {
            let kind = self.facts(*index).kind;
            !self.is_made(*index) && matches!(kind, STT_FUNC | STT_GNU_IFUNC)
        };
        let names = group.take(MOST).filter(is_function);
        let names = names.map(|index| self.name(index));
        names.filter(|name| name.len() <= MAX_COMPARED).collect()
    }
}
