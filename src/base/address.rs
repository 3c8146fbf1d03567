//! The address spaces and the clock, as types that cannot be mixed up.
//!
//! In many binaries the three kinds of address are equal, so a mix-up passes most tests; only the
//! types catch it. This module imports nothing.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The address `bytes` further on, wrapping at the end of the address space.
            #[must_use]
            pub const fn plus(self, bytes: u64) -> Self {
                Self(self.0.wrapping_add(bytes))
            }

            /// How many bytes this address lies behind `other`, wrapping.
            #[must_use]
            pub const fn since(self, other: Self) -> u64 {
                self.0.wrapping_sub(other.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address! {
    /// Actual virtual memory address: an address in the recorded process (or kernel) as it ran.
    /// Instruction pointers, callchain entries and mapping starts are of this kind.
    Avma
}
address! {
    /// Stated virtual memory address: the address an ELF file claims for a byte. Symbol values,
    /// section addresses and DWARF use it. `avma - svma` is the bias of a mapping.
    Svma
}
address! {
    /// Byte position in a file: what `pgoff` of a mapping counts in, and the space in which
    /// perf keeps the symbols of a file (`ip - start + pgoff`).
    FileOffset
}

/// Bytes from the beginning of a function's code that was made at run time: what its lines count in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CodeOffset(pub u32);

impl CodeOffset {
    /// No function is longer: what is told to lie behind 4 GB is at their end.
    #[must_use]
    pub fn clipped(bytes: u64) -> Self {
        Self(u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

/// Nanoseconds on the recording's clock (with `-k mono`: `CLOCK_MONOTONIC`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Before everything: what synthesised records carry.
    pub const START: Self = Self(0);

    /// Whether it is a time at all. What `perf record --off-cpu` adds up until the end has numbers in place of times.
    #[must_use]
    pub const fn is_time(self) -> bool {
        /// `OFF_CPU_TIMESTAMP`
        const NUMBERS: u64 = 0xffff_ffff_0000_0000;
        self.0 < NUMBERS
    }
}

/// A half-open range of process addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AvmaRange {
    /// First address inside.
    pub start: Avma,
    /// First address behind.
    pub end: Avma,
}

impl AvmaRange {
    /// The range of `len` bytes from `start`, clipped at the end of the address space.
    #[must_use]
    pub const fn new(start: Avma, len: u64) -> Self {
        Self {
            start,
            end: Avma(start.0.saturating_add(len)),
        }
    }

    /// Whether `at` lies inside.
    #[must_use]
    pub const fn contains(&self, at: Avma) -> bool {
        self.start.0 <= at.0 && at.0 < self.end.0
    }

    /// Whether the two ranges share an address.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.start.0 < other.end.0 && other.start.0 < self.end.0
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Whether no address lies inside.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.end.0 <= self.start.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_half_open_and_clipped() {
        let r = AvmaRange::new(Avma(0x1000), 0x10);
        assert!(r.contains(Avma(0x1000)) && r.contains(Avma(0x100f)) && !r.contains(Avma(0x1010)));
        let top = AvmaRange::new(Avma(u64::MAX - 1), 0x10);
        assert_eq!(top.end, Avma(u64::MAX));
        assert!(!r.overlaps(&AvmaRange::new(Avma(0x1010), 1)));
    }
}
