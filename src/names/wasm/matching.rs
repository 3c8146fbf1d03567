//! Which JIT code of a recording is that of a `.cwasm`.
//!
//! In: the code of a dump (address, size, bytes) and the functions of a compiled file. Out: pairs. wasmtime loads the machine
//! code of a module as one piece, so a function that has the same bytes votes for the address at which the piece would lie,
//! and a piece counts if nearly all functions in it are the same.

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::hash::BuildHasher;

use super::compiled::{Compiled, Function, wasm_function};
use crate::address::Avma;
use crate::jit::{JitCode, JitCodeId};

/// Of a hundred functions that have to be the same.
const ENOUGH: usize = 90;
/// Equal functions of a dump that are looked at; many trampolines are equal.
const EQUALS: usize = 16;

/// What is compared of a piece of code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Print {
    size: u64,
    hash: u64,
}

impl Print {
    fn new(size: u64, bytes: &[u8]) -> Self {
        Self {
            size,
            hash: FxBuildHasher.hash_one(bytes),
        }
    }

    fn of_code(code: JitCode<'_, '_>, by_name: bool) -> Self {
        let bytes = if by_name { code.name() } else { code.bytes() };
        Self::new(code.size(), bytes)
    }

    fn of_function(compiled: &Compiled<'_>, function: &Function<'_>, by_name: bool) -> Self {
        let name = || match wasm_function(function.name) {
            Some((_, Some(name))) => name,
            _ => function.name,
        };
        let bytes = if by_name {
            name()
        } else {
            compiled.code(function).unwrap_or_default()
        };
        Self::new(function.size.into(), bytes)
    }
}

/// The name of the first function of WebAssembly in a piece of code that ran otherwise than the file has it: the file is another
/// version. Memory that was used again has several functions at one address, of which one has to be the file's.
pub(super) fn differing<'c, 'a: 'c>(
    compiled: &Compiled<'_>,
    codes: impl Iterator<Item = JitCode<'c, 'a>>,
    text: Avma,
    by_name: bool,
) -> Option<String> {
    let mut seen: BTreeMap<u32, (bool, String)> = BTreeMap::new();
    for code in codes {
        let offset = code.start().0.checked_sub(text.0);
        let offset = offset.and_then(|offset| u32::try_from(offset).ok());
        let function = offset.and_then(|offset| {
            let at = compiled
                .functions
                .binary_search_by_key(&offset, |f| f.offset);
            at.ok().map(|at| &compiled.functions[at])
        });
        let Some(function) = function.filter(|function| function.wasm.is_some()) else {
            continue;
        };
        let of_file = compiled.code(function).unwrap_or_default();
        // A perf map has no bytes.
        let is_same = if by_name {
            code.size() == u64::from(function.size)
        } else {
            is_same_code(of_file, code.bytes())
        };
        let name = || String::from_utf8_lossy(code.name()).into_owned();
        let known = seen
            .entry(function.offset)
            .or_insert_with(|| (false, name()));
        known.0 |= is_same;
    }
    let mut seen = seen.into_values();
    seen.find(|(is_same, _)| !is_same).map(|(_, name)| name)
}

/// Whether code that was loaded is that of the file. Addresses of builtins are written into it when it is loaded.
fn is_same_code(of_file: &[u8], loaded: &[u8]) -> bool {
    const ADDRESS: usize = 8;
    let is_zero = |byte: &&u8| **byte == 0;
    // No farther than an address is long: a file may have megabytes of zeros.
    let is_address = |at: usize| {
        let before = of_file[..at].iter().rev().take(ADDRESS);
        let before = before.take_while(is_zero).count();
        let behind = of_file[at..].iter().take(ADDRESS);
        let behind = behind.take_while(is_zero).count();
        behind > 0 && before + behind >= ADDRESS
    };
    let mut differ = (0..of_file.len().min(loaded.len())).filter(|at| of_file[*at] != loaded[*at]);
    of_file.len() == loaded.len() && differ.all(is_address)
}

/// The code of one dump, or of a perf map, in which there are names instead of bytes.
pub(super) struct Loaded {
    by_name: bool,
    by_print: FxHashMap<Print, Vec<(Avma, JitCodeId)>>,
    /// By rising address.
    starts: Vec<Avma>,
}

/// How much of a file was found in a dump.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Matching {
    /// Code with the offset of its function, and the share of its piece that is the same, in thousandths.
    pub(super) codes: Vec<(JitCodeId, u32, u32)>,
    /// Functions that are the same at the best place, and how many there would have to be.
    pub(super) same: usize,
    pub(super) of: usize,
    /// Where the machine code lies, as far as enough of it is the same.
    pub(super) pieces: Vec<Avma>,
}

impl Loaded {
    pub(super) fn new<'c, 'a: 'c>(
        codes: impl Iterator<Item = (JitCodeId, JitCode<'c, 'a>)>,
        by_name: bool,
    ) -> Self {
        let mut loaded = Self {
            by_name,
            by_print: FxHashMap::default(),
            starts: Vec::new(),
        };
        for (id, code) in codes {
            let print = Print::of_code(code, by_name);
            let equals = loaded.by_print.entry(print).or_default();
            if equals.len() < EQUALS {
                equals.push((code.start(), id));
            }
            loaded.starts.push(code.start());
        }
        loaded.starts.sort_unstable();
        loaded.starts.dedup();
        loaded
    }

    /// Number of pieces of code in a range of memory.
    fn between(&self, start: Avma, length: usize) -> usize {
        let end = start.plus(length as u64);
        let before = |at: Avma| self.starts.partition_point(|known| *known < at);
        before(end).saturating_sub(before(start))
    }

    /// Finds the places where the dump has the file's code.
    pub(super) fn find(&self, compiled: &Compiled<'_>) -> Matching {
        let mut places: FxHashMap<Avma, Vec<(JitCodeId, u32)>> = FxHashMap::default();
        for function in &compiled.functions {
            let print = Print::of_function(compiled, function, self.by_name);
            for &(start, id) in self.by_print.get(&print).into_iter().flatten() {
                let text = Avma(start.0.wrapping_sub(function.offset.into()));
                places.entry(text).or_default().push((id, function.offset));
            }
        }
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_unstable_by_key(|(text, _)| *text);
        let mut matching = Matching::default();
        for (text, codes) in places {
            let loaded = self.between(text, compiled.text.len());
            let of = loaded.min(compiled.functions.len());
            // Code that was loaded several times at one place is there several times.
            let offsets: FxHashSet<u32> = codes.iter().map(|(_, offset)| *offset).collect();
            let same = offsets.len();
            // By (share, count): the best place is told of where none is good enough.
            if (same * matching.of, same) > (matching.same * of, matching.same) {
                (matching.same, matching.of) = (same, of);
            }
            if same * 100 >= of * ENOUGH {
                let share = u32::try_from(same * 1000 / of.max(1)).unwrap_or(u32::MAX);
                let codes = codes.into_iter();
                let shared = codes.map(|(code, offset)| (code, offset, share));
                matching.codes.extend(shared);
                matching.pieces.push(text);
            }
        }
        matching.codes.sort_unstable();
        matching
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_the_same_but_for_addresses_of_builtins() {
        let call = [&[0x48, 0xb8][..], &[0; 8], &[0xff, 0xd0]].concat();
        let mut loaded = call.clone();
        assert!(is_same_code(&call, &loaded));
        loaded[2..8].copy_from_slice(&[0x10, 0x20, 0x30, 0x40, 0x50, 0x7f]);
        assert!(is_same_code(&call, &loaded));
        loaded[11] = 0xd1;
        assert!(!is_same_code(&call, &loaded));
        assert!(!is_same_code(&call, &call[..11]));
        // A constant has fewer bytes.
        let (old, new) = ([0x81, 0xc1, 5, 0, 0, 0], [0x81, 0xc1, 5, 1, 0, 0]);
        assert!(!is_same_code(&old, &new) && is_same_code(&old, &old));
    }
}
