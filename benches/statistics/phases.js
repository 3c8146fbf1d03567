// Does four things in a mixture that changes: phases.js "A:60,B:40@1.5;A:50,B:50@1.5", shares and seconds of the processor. Prints the
// monotonic nanoseconds at which each mixture begins, and the last ends.
const spec = process.argv[2].split(";");
let seed = 12345;
const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
function fibo(n) { return n < 2 ? n : fibo(n - 1) + fibo(n - 2); }
function matMul() {
  const n = 24, a = new Float64Array(n * n).fill(1.5), c = new Float64Array(n * n);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let k = 0; k < n; k++) sum += a[i * n + k] * a[k * n + j];
      c[i * n + j] = sum;
    }
  return c[3];
}
function wordCount() {
  const found = new Map();
  for (const word of "the quick brown fox jumps over the lazy dog and the cat sat on a mat".split(" "))
    found.set(word, (found.get(word) || 0) + 1);
  return found.size;
}
function jsonTrip() {
  const o = { a: [1, 2, 3, 4, 5, 6, 7], b: "hello world", c: { d: 1, e: [{ x: 1 }, { y: 2 }] } };
  return JSON.stringify(JSON.parse(JSON.stringify(o))).length;
}
const work = {
  A: () => fibo(14), B: matMul,
  C: () => { for (let i = 0; i < 8; i++) wordCount(); },
  D: () => { for (let i = 0; i < 6; i++) jsonTrip(); },
};
const cost = {};
for (const name in work) {
  for (let i = 0; i < 3000; i++) work[name]();
  const begin = process.cpuUsage().user;
  for (let i = 0; i < 3000; i++) work[name]();
  cost[name] = (process.cpuUsage().user - begin) / 3000;
}
const spent = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };
let begin = spent();
for (const part of spec) {
  const [mixture, seconds] = part.split("@");
  const shares = mixture.split(",").map((of) => of.split(":")).map(([name, share]) => [name, share / cost[name]]);
  const all = shares.reduce((sum, [, share]) => sum + share, 0);
  console.log(process.hrtime.bigint().toString());
  while (spent() - begin < +seconds)
    for (let i = 0; i < 20; i++) {
      let at = random() * all;
      for (const [name, share] of shares) if ((at -= share) < 0) { work[name](); break; }
    }
  begin += +seconds;
}
console.log(process.hrtime.bigint().toString());
