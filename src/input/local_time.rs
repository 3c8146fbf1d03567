//! The wall clock of this machine's time zone, for the two dates in a recording's header.

/// A date and time in the local time zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalTime {
    /// 2026
    pub year: i32,
    /// 1 to 12
    pub month: u8,
    /// 1 to 31
    pub day: u8,
    /// 0 to 23
    pub hour: u8,
    /// 0 to 59
    pub minute: u8,
    /// 0 to 60
    pub second: u8,
    /// 0 is Sunday.
    pub weekday: u8,
}

/// The local time of a moment given in seconds since 1970. `None` if no calendar reaches that far.
#[must_use]
pub fn local_time(unix_seconds: i64) -> Option<LocalTime> {
    #[expect(unsafe_code, reason = "the time zone rules are in libc")]
    // SAFETY: `tm` is plain data for which all zeros are valid (its pointer is only a name that we
    // do not read), both pointers are valid for the call, and pjit never changes the environment.
    let tm = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&raw const unix_seconds, &raw mut tm).is_null() {
            return None;
        }
        tm
    };
    let small = |n: i32| u8::try_from(n).ok();
    Some(LocalTime {
        year: tm.tm_year.checked_add(1900)?,
        month: small(tm.tm_mon)?.checked_add(1)?,
        day: small(tm.tm_mday)?,
        hour: small(tm.tm_hour)?,
        minute: small(tm.tm_min)?,
        second: small(tm.tm_sec)?,
        weekday: small(tm.tm_wday)?,
    })
}
