//! Asks the processor to load bytes that will be read soon.

/// Starts loading the cache lines of `items` without waiting for them.
///
/// A walk over samples reads a few lines of every eight kilobytes: each is a miss that takes as long as
/// unwinding some ten frames. Asked for a few samples ahead, they are there in time.
#[inline]
pub fn prefetch<T>(items: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of_val(items)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "there is no safe name for this hint")]
        // SAFETY: a prefetch reads nothing architecturally and cannot fault; the pointer is in bounds besides.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().cast::<i8>().wrapping_add(offset));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = items;
}
