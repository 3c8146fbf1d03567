// Four functions of fixed work; the second argument scales countWords in per cent.
'use strict';
const rounds = Number(process.argv[2] || 10), percent = Number(process.argv[3] || 100);
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
function matrix(n) { const a = new Float64Array(n * n); for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { let s = 0; for (let k = 0; k < n; k++) s += (i ^ k) * (k + j); a[i * n + j] = s; } return a[n]; }
function countWords(n) { const counts = new Map(); for (let i = 0; i < n; i++) { const w = 'w' + (i * 7919 % 997); counts.set(w, (counts.get(w) || 0) + 1); } return counts.size; }
function ordered(n) { const a = []; for (let i = 0; i < n; i++) a.push(i * 40503 % 65521); a.sort((x, y) => x - y); return a[n >> 1]; }
let all = 0;
for (let r = 0; r < rounds; r++) all += fibonacci(27) + matrix(150) + countWords(Math.round(600 * percent)) + ordered(40000);
console.log(all);
