// One hot function, for some tenths of a second, and a line with its sum: node busy.js, bun busy.js, deno run busy.js.
function busy(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += i % 7;
  return sum;
}
let sum = 0;
for (let i = 0; i < 300; i++) sum += busy(1e6);
console.log(sum);
