//! Asks the processor to load bytes that will be read soon.

/// Starts loading the cache lines of `bytes` without waiting for them.
///
/// A walk over samples reads a few lines of every eight kilobytes: each is a miss that takes as long as
/// unwinding some ten frames. Asked for a few samples ahead, they are there in time.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "there is no safe name for this hint")]
        // SAFETY: a prefetch reads nothing architecturally and cannot fault; the pointer is in bounds besides.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
