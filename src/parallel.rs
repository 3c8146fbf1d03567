//! Work spread over threads, with the results in order. Called by every stage that has pieces to share out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs `work` over the items on some threads; results in the order of the items.
pub(crate) fn in_parallel<T: Send, U: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> U + Sync,
) -> Vec<U> {
    let threads = threads.clamp(1, items.len().max(1));
    if threads == 1 {
        return items.into_iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<(Option<T>, Option<U>)>> = items
        .into_iter()
        .map(|item| Mutex::new((Some(item), None)))
        .collect();
    let worker = || {
        while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
            let item = slot.lock().unwrap_or_else(PoisonError::into_inner).0.take();
            let done = item.map(&work);
            slot.lock().unwrap_or_else(PoisonError::into_inner).1 = done;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(worker);
        }
        worker();
    });
    let done =
        |slot: Mutex<(_, Option<U>)>| slot.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    slots
        .into_iter()
        .map(|slot| done(slot).expect("every item was worked on"))
        .collect()
}
