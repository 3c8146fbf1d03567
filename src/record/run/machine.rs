//! Facts of this machine, as far as settings tell; the trial tells the rest.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use rustix::fs::{Access, access};
use rustix::process::{Resource, geteuid, getrlimit};

use crate::find::{running_kallsyms, temporary_folder};
use crate::record::plan::Facts;

/// Reads them.
pub(super) fn facts() -> Facts {
    let here = std::env::current_dir().unwrap_or_default();
    let number = |name: &str| -> Option<i64> {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let positive = |name: &str| number(name).and_then(|number| u64::try_from(number).ok());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let text = |name: &str| fs::read_to_string(name).unwrap_or_default();
    let has = powers(&text("/proc/self/uid_map"), &text("/proc/self/status"));
    Facts {
        paranoid: number("perf_event_paranoid"),
        mlock_kb: positive("perf_event_mlock_kb"),
        memlock: getrlimit(Resource::Memlock).current,
        // Rings are counted by those that are there, whichever we may run on.
        cpus: online().unwrap_or(cpus),
        max_rate: positive("perf_event_max_sample_rate"),
        hides_kernel: hides_kernel(),
        kptr_restrict: number("kptr_restrict"),
        is_root: geteuid().is_root(),
        locks_freely: has(LOCKS),
        sees_kernel: has(PERFMON) || has(ADMINISTERS),
        here_is_writable: access(&here, Access::WRITE_OK).is_ok(),
        temporary_is_writable: access(temporary_folder(), Access::WRITE_OK).is_ok(),
        erlang_tells: erlang_tells(),
        here,
    }
}

/// Numbers of capabilities: `CAP_IPC_LOCK`, `CAP_SYS_ADMIN`, `CAP_PERFMON`.
const LOCKS: u32 = 14;
const ADMINISTERS: u32 = 21;
const PERFMON: u32 = 38;

/// Which capabilities count, by the map of users and the status of this process: the kernel asks for those of the machine, and root
/// of a namespace of users has all of them there alone.
fn powers(uid_map: &str, status: &str) -> impl Fn(u32) -> bool + use<> {
    let map: Vec<&str> = uid_map.split_whitespace().collect();
    // Empty where the kernel has no such namespaces.
    let is_of_machine = map.is_empty() || map == ["0", "0", "4294967295"];
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .filter(|_| is_of_machine);
    let held = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    let held = held.unwrap_or_default();
    move |number| held >> number & 1 == 1
}

/// Processors that are switched on: `0-3,6`.
fn online() -> Option<u64> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let ranges = text.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let count = last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?;
        Some(count + 1)
    });
    ranges.sum()
}

/// Whether addresses of kernel functions read as zeros.
fn hides_kernel() -> bool {
    use std::io::Read;
    let mut front = Vec::new();
    let opened = running_kallsyms().open();
    let Ok(judged) = opened else { return true };
    let read = judged.into_file().take(4000).read_to_end(&mut front);
    read.is_err()
        || !front.split(|&b| b == b'\n').any(|line| {
            let address = line.split(|&b| b == b' ').next().unwrap_or_default();
            address.iter().any(|&b| b != b'0')
        })
}

/// A program of this name on PATH, or at this path.
pub(crate) fn program(name: &OsStr) -> Option<PathBuf> {
    let is_path = name.as_encoded_bytes().contains(&b'/');
    if is_path {
        return is_executable(Path::new(name)).then(|| name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    let is_one = |meta: fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o111 != 0;
    fs::metadata(path).is_ok_and(is_one) && access(path, Access::EXEC_OK).is_ok()
}

/// Whether there is something of this name that cannot be run.
pub(super) fn is_there(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/') && fs::metadata(name).is_ok()
}

/// Whether the Erlang on PATH takes `+JPperf`: releases from 24 on whose emulator has its compiler. Asked of its files: starting it
/// takes longer than all else, and one without ends with its usage text.
fn erlang_tells() -> Option<bool> {
    let erl = program(OsStr::new("erl"))?.canonicalize().ok()?;
    // ROOT/bin/erl, or ROOT/erts-VERSION/bin/erl.
    let root = erl
        .ancestors()
        .find(|folder| folder.join("releases/start_erl.data").is_file());
    let Some(root) = root else { return Some(false) };
    let data = fs::read_to_string(root.join("releases/start_erl.data")).unwrap_or_default();
    let mut words = data.split_whitespace();
    let (version, release) = (words.next().unwrap_or_default(), words.next());
    let release: u32 = release.and_then(|word| word.parse().ok()).unwrap_or(0);
    let emulator = root.join(format!("erts-{version}/bin/beam.smp"));
    let knows = |bytes: Vec<u8>| memmem::find(&bytes, b"JPperf").is_some();
    Some(release >= 24 && fs::read(emulator).is_ok_and(knows))
}

/// What the system calls itself.
pub(super) fn os_release() -> String {
    fs::read_to_string("/etc/os-release").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps and masks of root here, below `unshare -Ur`, in a container as Docker makes it, and of an ordinary user.
    #[test]
    fn powers_are_those_over_the_machine() {
        let (machine, own) = ("         0          0 4294967295\n", "0 0 1\n");
        let status = |mask: &str| format!("Name:\tpjit\nCapInh:\t0\nCapEff:\t{mask}\n");
        for (map, mask, wanted) in [
            (machine, "000001fffeffffff", [true; 3]),
            ("", "000001ffffffffff", [true; 3]),
            (own, "000001ffffffffff", [false; 3]),
            (machine, "00000000a80425fb", [false; 3]),
            (machine, "0000004000000000", [false, false, true]),
            (machine, "0000000000000000", [false; 3]),
        ] {
            let has = powers(map, &status(mask));
            let found = [LOCKS, ADMINISTERS, PERFMON].map(has);
            assert_eq!(found, wanted, "{map} {mask}");
        }
        assert!(!powers(machine, "")(LOCKS));
    }
}
