//! What becomes of what was recorded: whether a file grows, which process has it mapped, and since when a process lives.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::Identity;

/// True if a file is longer now than it was.
#[must_use]
pub fn has_grown(path: &Path, len: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|now| now.len() > len)
}

/// True if a process that lives has a file mapped. False where the system does not show it.
#[must_use]
pub fn is_mapped_by(path: &Path, identity: Identity, pid: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let inode = identity.1.to_string();
    let name = path.file_name().map(|name| name.to_string_lossy());
    // `start-end rights offset device inode path`
    maps.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let has_inode = fields.nth(4) == Some(&inode);
        has_inode && name.as_ref().is_some_and(|name| line.ends_with(&**name))
    })
}

/// When a process that lives began, to a second. `None` where the system does not tell.
#[must_use]
pub fn began(pid: u32) -> Option<SystemTime> {
    /// `USER_HZ`, which is the same on all machines that pjit knows.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let up: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let age = up - start_ticks(&String::from_utf8_lossy(&stat))? as f64 / TICKS;
    SystemTime::now().checked_sub(Duration::try_from_secs_f64(age.max(0.0)).ok()?)
}

/// The 22nd field of `/proc/PID/stat`. The second is the name in parentheses, in which there may be any of these.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_tell_when_a_process_began() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        for name in ["cat", "a b", ") S 1 1 1 (", "x) R 0 0"] {
            assert_eq!(start_ticks(&format!("7 ({name}) {fields}")), Some(4242));
        }
        assert_eq!(start_ticks("7 (cat) S 1"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_began_before_now() {
        let began = began(std::process::id()).expect("the system tells it");
        let age = SystemTime::now().duration_since(began).expect("before now");
        assert!(age < Duration::from_secs(24 * 3600), "{age:?}");
        let first = super::began(1).expect("the system tells it");
        assert!(first <= began + Duration::from_secs(1));
    }
}
