import { countPrimes } from "./primes";
import { Words } from "./words";

/** Does something until its time is over. */
function repeat(milliseconds: number, work: () => number): number {
  const end = Date.now() + milliseconds;
  let sum = 0;
  while (Date.now() < end) {
    sum += work();
  }
  return sum;
}

const words = new Words();
let sum = repeat(400, () => countPrimes(50_000));
sum += repeat(400, () => {
  for (let i = 0; i < 500; i++) {
    words.add(`the ${i % 100} quick ${i % 7} brown fox`);
  }
  return words.total;
});
console.log(sum > 0);
