//! Work spread over threads, with the results in order. Called by every stage that has pieces to share out.

use std::cmp;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

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

/// Sorts the items; in which order those come that are equal is not settled.
pub(crate) fn sort_in_parallel<T: Send>(
    items: &mut [T],
    threads: usize,
    compare: impl Fn(&T, &T) -> cmp::Ordering + Sync,
) {
    let sort = |piece: &mut [T]| piece.sort_unstable_by(&compare);
    sort_pieces(items, threads, sort, &compare);
}

/// The same for what is sorted by other means than comparing.
pub(crate) fn sort_pieces<T: Send>(
    items: &mut [T],
    threads: usize,
    sort: impl Fn(&mut [T]) + Sync,
    compare: impl Fn(&T, &T) -> cmp::Ordering,
) {
    /// Items from which on a thread is worth its start.
    const MANY: usize = 2048;
    let threads = threads.min(items.len() / MANY);
    if threads < 2 {
        return sort(items);
    }
    let piece = items.len().div_ceil(threads);
    in_parallel(items.chunks_mut(piece).collect(), threads, sort);
    // Finds the sorted runs that this is made of.
    items.sort_by(compare);
}

/// Makes so many pieces of text on threads, with a state for each thread, and writes them in order. Buffers are used
/// again: new memory costs more than what is written into it.
///
/// # Errors
/// The first one of a piece or of `out`.
pub(crate) fn write_in_parallel<S>(
    pieces: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    push: impl Fn(&mut S, usize, &mut Vec<u8>) -> io::Result<()> + Sync,
    out: &mut dyn Write,
) -> io::Result<()> {
    let threads = threads.min(pieces);
    if threads < 2 {
        let (mut state, mut text) = (state(), Vec::new());
        return (0..pieces).try_for_each(|piece| {
            text.clear();
            push(&mut state, piece, &mut text)?;
            out.write_all(&text)
        });
    }
    let next = AtomicUsize::new(0);
    let buffers: Mutex<Vec<Vec<u8>>> = Mutex::default();
    let kept = || buffers.lock().unwrap_or_else(PoisonError::into_inner);
    let (sender, made) = mpsc::sync_channel(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, kept, state, push) = (sender.clone(), &next, &kept, &state, &push);
            scope.spawn(move || {
                let mut state = state();
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces {
                        return;
                    }
                    let mut text = kept().pop().unwrap_or_default();
                    let done = push(&mut state, piece, &mut text);
                    // Nobody listens any more once the output is closed.
                    if sender.send((piece, done.map(|()| text))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut written = 0;
        for (piece, result) in made {
            early.insert(piece, result);
            while let Some(text) = early.remove(&written) {
                let mut text = text?;
                out.write_all(&text)?;
                text.clear();
                kept().push(text);
                written += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_written_in_order_on_any_number_of_threads() {
        for threads in [0, 1, 3, 100] {
            let push = |(): &mut (), piece: usize, text: &mut Vec<u8>| writeln!(text, "{piece}");
            let mut out = Vec::new();
            let written = write_in_parallel(50, threads, || (), push, &mut out);
            written.expect("a vector takes everything");
            let expected: String = (0..50).map(|piece| format!("{piece}\n")).collect();
            assert_eq!(String::from_utf8(out).expect("text"), expected);
        }
    }

    #[test]
    fn an_error_of_a_piece_ends_the_writing() {
        let push = |(): &mut (), piece: usize, text: &mut Vec<u8>| {
            text.push(b'.');
            (piece != 30)
                .then_some(())
                .ok_or_else(|| io::Error::other("full"))
        };
        for threads in [1, 3] {
            let mut out = Vec::new();
            write_in_parallel(50, threads, || (), push, &mut out).expect_err("piece 30");
            assert_eq!(out.len(), 30);
        }
    }

    #[test]
    fn many_items_are_sorted_on_any_number_of_threads() {
        let items: Vec<u32> = (0..20_000_u32)
            .map(|i| i.wrapping_mul(0x9e37_79b9) >> 7)
            .collect();
        let mut sorted = items.clone();
        sorted.sort_unstable();
        for threads in [1, 2, 7] {
            let mut items = items.clone();
            sort_in_parallel(&mut items, threads, u32::cmp);
            assert_eq!(items, sorted);
        }
    }
}
