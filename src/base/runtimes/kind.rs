//! What kind of code a function is.

/// What kind of code a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The user's own.
    Own,
    /// The standard library of the language, where it lies in the program or is compiled at run time.
    Std,
    /// Packages of others.
    Dependency,
    /// Shared libraries of the system.
    Library,
    /// The runtime that executes the program.
    Runtime,
    /// The kernel.
    Kernel,
    /// Neither own nor looked at closer: the user's rules decided.
    Other,
    /// Addresses that nothing is known of.
    Unknown,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = 8;

    /// All kinds.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Own,
        Self::Std,
        Self::Dependency,
        Self::Library,
        Self::Runtime,
        Self::Kernel,
        Self::Other,
        Self::Unknown,
    ];

    /// As it is printed and filtered by.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Std => "std",
            Self::Dependency => "dependency",
            Self::Library => "library",
            Self::Runtime => "runtime",
            Self::Kernel => "kernel",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}
