//! Numbers that several stages name things by. Imports nothing.

/// A comm: index into the names of the session and, in the same order, of the profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommId(pub u32);
/// A thread's life: index into the threads of the session and, in the same order, of the profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(pub u32);
