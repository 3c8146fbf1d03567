//! The wall clock of this machine's time zone, for the two dates in a recording's header.

use tz::{DateTime, TimeZone};

/// The local time of a moment given in seconds since 1970. `None` if no calendar reaches that far.
///
/// As the C library has it: the zone that `TZ` names, else that of `/etc/localtime`, else UTC.
#[must_use]
pub fn local_time(unix_seconds: i64) -> Option<DateTime> {
    let zone = match std::env::var("TZ") {
        Ok(name) if name.is_empty() => Ok(TimeZone::utc()),
        Ok(name) => TimeZone::from_posix_tz(&name),
        Err(_) => TimeZone::local(),
    };
    let zone = zone.unwrap_or_else(|_| TimeZone::utc());
    DateTime::from_timespec(unix_seconds, 0, zone.as_ref()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_dates() {
        let noon = local_time(1_700_000_000).expect("a date of today's calendar");
        assert_eq!((noon.year(), noon.month()), (2023, 11));
        assert_eq!(local_time(i64::MAX), None);
    }
}
