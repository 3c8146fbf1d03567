//! Allocates known numbers of bytes in known places, with the names of Rust's own functions in between.

use std::hint::black_box;

#[inline(never)]
fn site_vec() -> Vec<u8> {
    Vec::with_capacity(1000)
}

#[inline(never)]
fn site_zeroed() -> Vec<u8> {
    vec![0; 300]
}

#[inline(never)]
fn site_box() -> Box<[u64; 8]> {
    Box::new(black_box([7; 8]))
}

/// 4, 8, 16 and 32 numbers: 32, 64, 128 and 256 bytes.
#[inline(never)]
fn site_push() -> Vec<u64> {
    let mut numbers = Vec::new();
    for number in 0..20 {
        numbers.push(black_box(number));
    }
    numbers
}

#[inline(never)]
fn site_string() -> String {
    "seventeen letters".to_owned()
}

fn main() {
    for _ in 0..500 {
        black_box(site_vec());
        black_box(site_zeroed());
        black_box(site_box());
        black_box(site_push());
        black_box(site_string());
    }
}
