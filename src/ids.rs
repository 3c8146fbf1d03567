//! Numbers that several stages name things by, and the lists that are asked with them. Imports nothing of the crate.

pub use index_vec::{Idx, IndexSlice, IndexVec, index_vec};

/// Makes kinds of numbers that say which list they are of: `frames[frame]`, where a number of anything else does not compile.
macro_rules! numbers {
    ($($(#[$meta:meta])* $vis:vis struct $id:ident($inner:vis $int:ty);)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        $vis struct $id($inner $int);

        impl $crate::ids::Idx for $id {
            #[inline]
            fn from_usize(number: usize) -> Self {
                Self(<$int>::try_from(number).expect("each took bytes of the recording or of a file, which are fewer"))
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

pub(crate) use numbers;

numbers! {
    /// A comm: index into the names of the session and, in the same order, of the profile.
    pub struct CommId(pub u32);
    /// A thread's life: index into the threads of the session and, in the same order, of the profile.
    pub struct ThreadId(pub u32);
}
