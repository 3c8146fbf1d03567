//! The Rust half of the native sample: six phases of equal time, then it starts `hot-cpp`.
//!
//! Built with line tables, so inlined functions are known: see ../NOTES.md.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs `work` until `limit` has passed.
#[inline(never)]
fn phase(limit: Duration, work: &mut dyn FnMut()) {
    let start = Instant::now();
    while start.elapsed() < limit {
        work();
    }
}

/// Plain recursion.
#[inline(never)]
fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

/// Generic recursion: one function for each depth.
trait Deep {
    fn descend(&self, n: u64) -> u64;
}
struct Bottom;
struct Level<T>(T);
impl Deep for Bottom {
    #[inline(never)]
    fn descend(&self, n: u64) -> u64 {
        (0..n).fold(0, |sum, i| black_box(sum ^ mix(i)))
    }
}
impl<T: Deep> Deep for Level<T> {
    #[inline(never)]
    fn descend(&self, n: u64) -> u64 {
        1 + black_box(self.0.descend(n))
    }
}

/// Inlined everywhere: shows only as an inlined frame.
#[inline(always)]
fn mix(x: u64) -> u64 {
    rotate(x.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Inlined into `mix`, and so into whatever `mix` is inlined into.
#[inline(always)]
fn rotate(x: u64) -> u64 {
    let mut y = x;
    for _ in 0..8 {
        y = black_box(y.rotate_left(7) ^ x);
    }
    y
}

/// Sorting with a closure: library code between two functions of ours.
#[inline(never)]
fn sort_numbers(numbers: &mut [u64]) {
    for (i, slot) in numbers.iter_mut().enumerate() {
        *slot = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    }
    numbers.sort_unstable_by(|a, b| compare(*a, *b));
}

#[inline(never)]
fn compare(a: u64, b: u64) -> std::cmp::Ordering {
    a.reverse_bits().cmp(&b.reverse_bits())
}

/// Hashing and allocation.
#[inline(never)]
fn count_words(text: &str) -> usize {
    let mut words: HashMap<String, usize> = HashMap::new();
    for word in text.split_whitespace() {
        *words.entry(word.to_owned()).or_default() += 1;
    }
    words.len()
}

/// Dynamic dispatch.
trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Ring(u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        (0..200).fold(self.0, |a, i| black_box(a.wrapping_mul(i | 1)))
    }
}
impl Shape for Ring {
    #[inline(never)]
    fn area(&self) -> u64 {
        (0..200).fold(self.0, |a, i| black_box(a ^ (a << 1) ^ i))
    }
}

#[inline(never)]
fn total_area(shapes: &[Box<dyn Shape>]) -> u64 {
    shapes.iter().fold(0, |sum, shape| sum.wrapping_add(shape.area()))
}

/// Time in the kernel.
#[inline(never)]
fn read_maps() -> usize {
    std::fs::read("/proc/self/maps").map_or(0, |text| text.len())
}

fn main() {
    let limit = Duration::from_millis(std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(200));
    phase(limit, &mut || {
        black_box(fibonacci(black_box(20)));
    });
    let deep = Level(Level(Level(Level(Level(Level(Bottom))))));
    phase(limit, &mut || {
        black_box(deep.descend(black_box(500)));
    });
    let mut numbers = vec![0; 4096];
    phase(limit, &mut || sort_numbers(black_box(&mut numbers)));
    let text = "a rose is a rose is a rose and a nose is a nose when it blows ".repeat(20);
    let counter = std::thread::Builder::new()
        .name("word counter".to_owned())
        .spawn(move || {
            phase(limit, &mut || {
                black_box(count_words(black_box(&text)));
            })
        })
        .expect("threads can be started");
    counter.join().expect("the counter does not panic");
    let shapes: Vec<Box<dyn Shape>> =
        (0..64).map(|i| if i % 2 == 0 { Box::new(Square(i)) as Box<dyn Shape> } else { Box::new(Ring(i)) }).collect();
    phase(limit, &mut || {
        black_box(total_area(black_box(&shapes)));
    });
    phase(limit, &mut || {
        black_box(read_maps());
    });
    let cpp = std::env::current_exe().expect("this program has a path").with_file_name("hot-cpp");
    let status = std::process::Command::new(cpp).arg(limit.as_millis().to_string()).status().expect("hot-cpp is there");
    assert!(status.success());
}
