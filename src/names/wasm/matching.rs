//! Which JIT code of a recording is that of a `.cwasm`.
//!
//! In: the code of a dump (address, size, bytes) and the functions of a compiled file. Out: pairs. wasmtime loads the machine
//! code of a module as one piece, so a function that has the same bytes votes for the address at which the piece would lie,
//! and a piece counts if nearly all functions in it are the same.

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
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
            }
        }
        matching.codes.sort_unstable();
        matching
    }
}
