//! What a thread was doing: on the ground floor, because samples, rows and views name it.

/// What a thread was doing for the time that a row weighs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum RunState {
    /// Nobody asked.
    #[default]
    Unknown,
    /// It ran.
    OnCpu,
    /// It waited for something.
    Blocked,
    /// It waited for a device, without being interruptible (state D).
    BlockedIo,
    /// It could have run and had no processor.
    Runnable,
}

impl RunState {
    /// As the sort key `state` shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::OnCpu => "on-cpu",
            Self::Blocked => "blocked",
            Self::BlockedIo => "blocked-io",
            Self::Runnable => "runnable",
        }
    }

    /// As a frame behind the others; nothing for who runs.
    #[must_use]
    pub const fn frame(self) -> Option<&'static str> {
        match self {
            Self::Unknown | Self::OnCpu => None,
            Self::Blocked => Some("[blocked]"),
            Self::BlockedIo => Some("[io]"),
            Self::Runnable => Some("[runnable]"),
        }
    }
}
