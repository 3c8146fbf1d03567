//! Five functions of fixed work; the second argument scales `words` in per cent.
use std::collections::{BTreeMap, HashMap};

#[inline(never)]
fn tree(n: u64) -> u64 {
    let mut tree = BTreeMap::new();
    let mut x = 1_u64;
    for i in 0..n {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
        tree.insert(x >> 40, i);
    }
    tree.values().sum()
}

#[inline(never)]
fn words(n: u64) -> usize {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for i in 0..n {
        *counts.entry(format!("w{}", i % 500)).or_default() += 1;
    }
    counts.len()
}

#[inline(never)]
fn sorted(n: u64) -> u64 {
    let mut all: Vec<u64> = (0..n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    all.sort_by(|a, b| b.cmp(a));
    all[all.len() / 2]
}

#[inline(never)]
fn mix(n: u64) -> u64 {
    (0..n).fold(n, |x, _| (x ^ (x >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[inline(never)]
fn sieve(n: usize) -> usize {
    let mut composite = vec![false; n];
    for i in 2..n {
        let mut j = i * i;
        while j < n {
            composite[j] = true;
            j += i;
        }
    }
    composite.iter().filter(|c| !**c).count()
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (rounds, percent) = (arguments.first().unwrap_or(&10), arguments.get(1).unwrap_or(&100));
    let mut all = 0_u64;
    for _ in 0..*rounds {
        let sums = [tree(50_000), words(700 * percent) as u64, sorted(160_000), mix(5_000_000), sieve(800_000) as u64];
        all = sums.iter().fold(all, |all, sum| all.wrapping_add(*sum));
    }
    println!("{all}");
}
