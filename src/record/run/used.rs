//! CPU time of processes, as `/proc/PID/stat` has it: to a hundredth of a second, which is less than samples can tell.

use std::fs;
use std::time::Duration;

/// CPU time of a process and of the children that it waited for, with theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    /// In programs.
    pub(super) user: Duration,
    /// In the kernel.
    pub(super) system: Duration,
}

impl Used {
    /// Of a process that is there, or that nobody waited for yet.
    pub(super) fn by(pid: u32) -> Option<Self> {
        Self::of(&times(pid)?)
    }

    fn of([user, system, of_children, system_of_children]: &[u64; 4]) -> Option<Self> {
        /// `USER_HZ` is 100 on all machines that pjit knows.
        const TICK: u64 = 10;
        let sum = |own: u64, others: u64| {
            let ticks = own.checked_add(others)?;
            Some(Duration::from_millis(ticks.checked_mul(TICK)?))
        };
        Some(Self {
            user: sum(*user, *of_children)?,
            system: sum(*system, *system_of_children)?,
        })
    }
}

/// Ticks of a process without its children.
pub(super) fn own_ticks(pid: u32) -> Option<u64> {
    let [user, system, ..] = times(pid)?;
    user.checked_add(system)
}

/// `utime`, `stime`, `cutime` and `cstime` of `/proc/PID/stat`.
fn times(pid: u32) -> Option<[u64; 4]> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parsed(&String::from_utf8_lossy(&stat))
}

/// The second field is the name in parentheses, in which there may be any of these.
fn parsed(stat: &str) -> Option<[u64; 4]> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse().ok();
    Some([next()?, next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_behind_any_name() {
        let fields = "Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
        for name in ["cat", "a b", ") S 1 1 1 ("] {
            assert_eq!(
                parsed(&format!("7 ({name}) {fields}")),
                Some([11, 12, 13, 14])
            );
        }
        assert_eq!(parsed("7 (cat) Z 1"), None);
        let used = Used::of(&[100, 1, 20, 2]).expect("small numbers");
        assert_eq!(used.user, Duration::from_millis(1200));
        assert_eq!(used.system, Duration::from_millis(30));
        assert_eq!(Used::of(&[u64::MAX, 0, 1, 0]), None);
    }
}
