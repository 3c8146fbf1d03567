//! Where functions return to whose return address a probe has replaced.
//!
//! In: for each thread, when such calls began and ended, and where they went. Out: for a thread at a time, the true
//! addresses behind the trampolines on its stack. Calls nest strictly, which makes the n-th trampoline from the top that of
//! the n-th pending call.

use rustc_hash::FxHashMap;

use crate::address::{Avma, Timestamp};
use crate::ids::{Idx, IndexVec, Spare, ThreadId, numbers};

/// The mapping of the trampoline.
pub const TRAMPOLINES: &[u8] = b"[uprobes]";

numbers! {
    /// A call of a thread, in the order in which they began.
    struct CallId(Spare);
}

/// Calls of one thread that may be pending. The kernel follows no more (`MAX_URETPROBE_DEPTH` of `linux/uprobes.h`): deeper ones
/// have neither a trampoline nor a return.
pub const DEEPEST: usize = 64;

/// The calls of all threads.
#[derive(Debug, Default)]
pub struct Returns {
    threads: FxHashMap<ThreadId, Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    all: IndexVec<CallId, Call>,
    /// Those that have not returned, outermost first.
    open: Vec<CallId>,
    /// The one that returned last, if nothing has begun since.
    last: Option<CallId>,
}

/// A call of a probed function.
#[derive(Debug, Clone, Copy)]
struct Call {
    function: u64,
    from: Timestamp,
    /// All ones if it never returned.
    to: Timestamp,
    back: Avma,
    /// The pending call around it.
    outer: Option<CallId>,
    /// That one jumped here: they have one return address.
    shares_outer: bool,
}

impl Returns {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// A thread enters a function whose return is probed.
    pub fn enter(&mut self, thread: ThreadId, time: Timestamp, function: u64) {
        let calls = self.threads.entry(thread).or_default();
        calls.last = None;
        if calls.open.len() >= DEEPEST {
            return;
        }
        let number = calls.all.push(Call {
            function,
            from: time,
            to: Timestamp(u64::MAX),
            back: Avma(0),
            outer: calls.open.last().copied(),
            shares_outer: false,
        });
        calls.open.push(number);
    }

    /// A thread returns from one, to `back`.
    pub fn leave(&mut self, thread: ThreadId, time: Timestamp, function: u64, back: Avma) {
        let calls = self.threads.entry(thread).or_default();
        let is_it = |number: &CallId| calls.all[*number].function == function;
        let Some(at) = calls.open.iter().rposition(is_it) else {
            return;
        };
        // Those that were jumped over are not pending any more, and never were for certain.
        for number in calls.open.drain(at + 1..) {
            let call = &mut calls.all[number];
            call.to = call.from;
        }
        let Some(number) = calls.open.pop() else {
            return;
        };
        let call = &mut calls.all[number];
        (call.to, call.back) = (time, back);
        if let Some(last) = calls.last.replace(number) {
            let inner = &mut calls.all[last];
            // A function that calls itself always returns to one place, too: that is no jump.
            inner.shares_outer =
                inner.outer == Some(number) && inner.back == back && inner.function != function;
        }
    }

    /// The address behind the `nth` trampoline from the top of a thread's stack.
    #[must_use]
    pub fn behind(&self, thread: ThreadId, time: Timestamp, nth: usize) -> Option<Avma> {
        let calls = &self.threads.get(&thread)?.all;
        let before = calls.raw.partition_point(|call| call.from < time);
        let mut next = before.checked_sub(1).map(CallId::from_usize);
        let mut passed = 0;
        while let Some(number) = next {
            let call = &calls[number];
            next = call.outer;
            let is_pending = time < call.to && call.from < time;
            if !is_pending || call.shares_outer {
                continue;
            }
            if passed == nth {
                return (call.back.0 != 0).then_some(call.back);
            }
            passed += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadId = ThreadId(1);

    fn at(returns: &Returns, time: u64) -> Vec<u64> {
        let behind = |nth| returns.behind(THREAD, Timestamp(time), nth);
        (0..).map_while(behind).map(|at| at.0).collect()
    }

    #[test]
    fn trampolines_belong_to_the_calls_that_are_pending() {
        let mut returns = Returns::default();
        returns.enter(THREAD, Timestamp(10), 0xa);
        returns.enter(THREAD, Timestamp(20), 0xb);
        returns.leave(THREAD, Timestamp(30), 0xb, Avma(0xa5));
        returns.enter(THREAD, Timestamp(40), 0xb);
        returns.leave(THREAD, Timestamp(50), 0xb, Avma(0xa7));
        returns.leave(THREAD, Timestamp(60), 0xa, Avma(0x1));
        assert_eq!(at(&returns, 10), [0_u64; 0]);
        assert_eq!(at(&returns, 15), [0x1]);
        assert_eq!(at(&returns, 25), [0xa5, 0x1]);
        assert_eq!(at(&returns, 35), [0x1]);
        assert_eq!(at(&returns, 45), [0xa7, 0x1]);
        assert_eq!(at(&returns, 60), [0_u64; 0]);
    }

    #[test]
    fn functions_that_jump_share_a_return_address() {
        let mut returns = Returns::default();
        returns.enter(THREAD, Timestamp(10), 0xa);
        returns.enter(THREAD, Timestamp(20), 0xb);
        returns.leave(THREAD, Timestamp(30), 0xb, Avma(0x1));
        returns.leave(THREAD, Timestamp(31), 0xa, Avma(0x1));
        assert_eq!(at(&returns, 25), [0x1]);
    }

    #[test]
    fn a_function_that_calls_itself_has_a_trampoline_for_each_call() {
        let mut returns = Returns::default();
        returns.enter(THREAD, Timestamp(10), 0xa);
        returns.enter(THREAD, Timestamp(20), 0xa);
        returns.enter(THREAD, Timestamp(30), 0xa);
        returns.leave(THREAD, Timestamp(40), 0xa, Avma(0xa5));
        returns.leave(THREAD, Timestamp(41), 0xa, Avma(0xa5));
        returns.leave(THREAD, Timestamp(42), 0xa, Avma(0x1));
        assert_eq!(at(&returns, 35), [0xa5, 0xa5, 0x1]);
    }

    #[test]
    fn what_never_returned_has_no_address() {
        let mut returns = Returns::default();
        returns.enter(THREAD, Timestamp(10), 0xa);
        returns.enter(THREAD, Timestamp(20), 0xb);
        returns.leave(THREAD, Timestamp(40), 0xa, Avma(0x1));
        returns.enter(THREAD, Timestamp(50), 0xb);
        assert_eq!(at(&returns, 30), [0x1]);
        assert_eq!(at(&returns, 60), [0_u64; 0]);
    }
}
