//! What becomes of a file that was read: whether it grows, and which process has it mapped.

use std::path::Path;

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
