//! Divide and conquer on scoped threads: sorting, folding and a recursive map, as work-stealing libraries nest them.
use std::time::{Duration, Instant};

fn sort(values: &mut [u64], depth: u32) {
    if values.len() < 48 {
        for i in 1..values.len() {
            let mut j = i;
            while j > 0 && values[j - 1] > values[j] {
                values.swap(j - 1, j);
                j -= 1;
            }
        }
        return;
    }
    let pivot = values[values.len() / 2];
    let (mut i, mut j) = (0, values.len() - 1);
    loop {
        while values[i] < pivot {
            i += 1;
        }
        while values[j] > pivot {
            j -= 1;
        }
        if i >= j {
            break;
        }
        values.swap(i, j);
        i += 1;
        j -= 1;
    }
    let (low, high) = values.split_at_mut(i);
    join(depth, move || sort(low, depth + 1), move || sort(high, depth + 1));
}

fn join(depth: u32, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
    if depth < 2 {
        std::thread::scope(|scope| {
            scope.spawn(a);
            b();
        });
    } else {
        a();
        b();
    }
}

#[inline(never)]
fn fold(values: &[u64], depth: u32, f: &dyn Fn(u64) -> u64) -> u64 {
    if values.len() <= 16 {
        return values.iter().fold(0, |sum, v| f(*v).wrapping_add(sum));
    }
    let (low, high) = values.split_at(values.len() / 2);
    fold(low, depth + 1, f).wrapping_mul(31) ^ fold(high, depth + 1, f)
}

fn main() {
    let until = Instant::now() + Duration::from_secs(6);
    let (mut state, mut sum) = (7_u64, 0_u64);
    while Instant::now() < until {
        let mut values: Vec<u64> = (0..400_000)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                state >> 33
            })
            .collect();
        sort(&mut values, 0);
        sum ^= fold(&values, 0, &|v| v.rotate_left(7) ^ 0x55);
    }
    println!("{}", sum % 10);
}
