//! Three phases of about the same length, without a standard library.
#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

#[inline(always)]
fn mix(x: u32) -> u32 {
    let x = x ^ (x << 13);
    let x = x ^ (x >> 17);
    x ^ (x << 5)
}

#[inline(never)]
fn spin(table: &mut [u32; 1024], rounds: u32) -> u32 {
    let mut s = 2_463_534_242;
    for i in 0..rounds {
        s = mix(s);
        let k = (s ^ i) as usize % 1021;
        table[k] = table[k].wrapping_add(s / 7);
    }
    s
}

#[inline(never)]
fn primes(table: &mut [u32; 1024], below: u32) -> u32 {
    let mut found = 0;
    for n in 2..below {
        let mut divisors = 2..n;
        if divisors.all(|d| n % d != 0) {
            table[found] = n;
            found += 1;
        }
    }
    found as u32
}

#[inline(never)]
fn sort(table: &mut [u32; 1024]) {
    for i in 1..table.len() {
        let mut at = i;
        while at > 0 && table[at - 1] > table[at] {
            table.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn run(rounds: u32) -> u32 {
    let mut table = [0; 1024];
    let mut sum = 0u32;
    for round in 0..rounds {
        sum = sum.wrapping_add(spin(&mut table, 100_000 + round));
        sort(&mut table);
        sum = sum.wrapping_add(primes(&mut table, 1400));
    }
    sum
}
