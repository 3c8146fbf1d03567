//! The symbols of one DSO by perf's rules (`util/symbol-elf.c`, `util/symbol.c`).

/// A symbol that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolRef<'s> {
    /// Start, in file offsets for files, in addresses for identity DSOs.
    pub start: u64,
    /// End, exclusive.
    pub end: u64,
    /// The name as the file has it.
    pub name: &'s [u8],
    /// `STT_OBJECT`: rows print `name+0xOFF`.
    pub is_data: bool,
}

/// All symbols of one DSO.
pub struct SymbolTable<'a> {
    marker: std::marker::PhantomData<&'a ()>,
}

impl SymbolTable<'_> {
    /// The symbol that perf finds at an address.
    #[must_use]
    pub fn find(&self, at: u64) -> Option<SymbolRef<'_>> {
        let _ = (at, self.marker);
        None
    }
}
