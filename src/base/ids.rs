//! Numbers that several stages name things by, and the lists that are asked with them. Imports nothing of the crate.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::Range;

pub use index_vec::{Idx, IndexSlice, IndexVec, index_vec};

/// What a kind of number is kept as.
pub(crate) trait Kept: Copy {
    fn keep(number: usize) -> Option<Self>;
    fn number(self) -> usize;
}

impl Kept for u16 {
    #[inline]
    fn keep(number: usize) -> Option<Self> {
        Self::try_from(number).ok()
    }

    #[inline]
    fn number(self) -> usize {
        self.into()
    }
}

impl Kept for u32 {
    #[inline]
    fn keep(number: usize) -> Option<Self> {
        Self::try_from(number).ok()
    }

    #[inline]
    fn number(self) -> usize {
        self as usize
    }
}

/// For kinds of numbers of which there may be none: an `Option` of one takes no more than the 32 bits of the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spare(NonZeroU32);

impl Kept for Spare {
    #[inline]
    fn keep(number: usize) -> Option<Self> {
        let next = u32::try_from(number).ok()?.checked_add(1)?;
        NonZeroU32::new(next).map(Self)
    }

    #[inline]
    fn number(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

/// Makes kinds of numbers that say which list they are of: `frames[frame]`, where a number of anything else does not compile.
macro_rules! numbers {
    ($($(#[$meta:meta])* $vis:vis struct $id:ident($inner:vis $int:ty);)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        $vis struct $id($inner $int);

        impl $crate::ids::Idx for $id {
            #[inline]
            fn from_usize(number: usize) -> Self {
                let kept = <$int as $crate::ids::Kept>::keep(number);
                Self(kept.expect("each took bytes of the recording or of a file, which are fewer"))
            }

            #[inline]
            fn index(self) -> usize {
                $crate::ids::Kept::number(self.0)
            }
        }
    )*};
}

pub(crate) use numbers;

numbers! {
    /// A comm: index into the names of the session and, in the same order, of the profile.
    #[derive(Default)]
    pub struct CommId(pub u32);
    /// A thread's life: index into the threads of the session and, in the same order, of the profile.
    pub struct ThreadId(pub u32);
}

/// A part of a list of these, in half the memory of a range.
pub(crate) struct Part<T> {
    start: u32,
    end: u32,
    list: PhantomData<fn() -> T>,
}

impl<T> Part<T> {
    /// From one place up to another.
    ///
    /// # Panics
    /// Beyond 4 G items.
    #[inline]
    pub(crate) fn new(range: Range<usize>) -> Self {
        let place = |at| u32::try_from(at).expect("fewer than 4 G items in one list");
        Self {
            start: place(range.start),
            end: place(range.end),
            list: PhantomData,
        }
    }

    /// Where it lies.
    #[inline]
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Its items, of the list that it was made of.
    #[inline]
    pub(crate) fn of(self, list: &[T]) -> &[T] {
        &list[self.range()]
    }
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self::new(0..0)
    }
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Part<T> {}

impl<T> PartialEq for Part<T> {
    fn eq(&self, other: &Self) -> bool {
        self.range() == other.range()
    }
}

impl<T> Eq for Part<T> {}

impl<T> fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    numbers! {
        struct Item(Spare);
    }

    #[test]
    fn one_of_none_takes_no_more_and_keeps_order() {
        assert_eq!(size_of::<Option<Item>>(), size_of::<u32>());
        let numbers = [0, 1, 0xffff_fffe].map(Item::from_usize);
        assert_eq!(numbers.map(Idx::index), [0, 1, 0xffff_fffe]);
        assert!(numbers.is_sorted());
        assert_eq!(Spare::keep(0xffff_ffff), None);
        assert_eq!(format!("{:?}", numbers[1]), "Item(1)");
    }

    #[test]
    fn a_part_gives_its_items() {
        assert_eq!(Part::new(1..3).of(&['a', 'b', 'c']), ['b', 'c']);
        assert!(Part::<char>::default().of(&[]).is_empty());
    }
}
