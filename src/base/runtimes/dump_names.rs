//! Names of the files that runtimes write their dumps to.
//!
//! In: a name without its folder. Out: the ids of threads and processes in it, if it is one of a dump.

use smallvec::SmallVec;

/// The numbers in `jit-PID.dump` or `jit-TID-PID.dump` (without folder), or in the name of a temporary file,
/// `jit-PID-PID-XXXXXX`; `None` if it is no name of a dump.
#[must_use]
pub fn numbers_of_dump(name: &[u8]) -> Option<SmallVec<[u32; 2]>> {
    let numbers = name.strip_prefix(b"jit-")?;
    let numbers = match numbers.strip_suffix(b".dump") {
        Some(numbers) => numbers,
        None => numbers_of_temporary(numbers)?,
    };
    numbers.split(|&b| b == b'-').map(decimal).collect()
}

/// What stands before the six characters that `mkstemp` makes up: two numbers, or any file would do.
fn numbers_of_temporary(rest: &[u8]) -> Option<&[u8]> {
    const MADE_UP: usize = 6;
    let (numbers, made_up) = rest.split_at_checked(rest.len().checked_sub(MADE_UP)?)?;
    let numbers = numbers.strip_suffix(b"-")?;
    let is_made_up = made_up.iter().all(u8::is_ascii_alphanumeric);
    (is_made_up && numbers.contains(&b'-')).then_some(numbers)
}

/// Digits as a number; longer ones than an id of any kind has are no number.
pub(crate) fn decimal(digits: &[u8]) -> Option<u32> {
    let all_digits =
        !digits.is_empty() && digits.len() <= 20 && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| all_digits)?;
    // An index may exceed 32 bits; only whether it is one matters then.
    Some(u32::try_from(text.parse::<u64>().ok()?).unwrap_or(u32::MAX))
}
