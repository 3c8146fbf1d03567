/** How many primes lie below a limit. */
export function countPrimes(limit: number): number {
  const isComposite = new Uint8Array(limit);
  let count = 0;
  for (let n = 2; n < limit; n++) {
    if (isComposite[n] === 1) {
      continue;
    }
    count += 1;
    for (let m = n * 2; m < limit; m += n) {
      isComposite[m] = 1;
    }
  }
  return count;
}
