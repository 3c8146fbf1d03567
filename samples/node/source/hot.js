// The node sample: five phases of equal time. Runs for the milliseconds given, 250 a phase by default.
'use strict';
const limit = Number(process.argv[2] || 250);

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function matMul(a, b, n) {
  const out = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      out[i * n + j] = sum;
    }
  }
  return out;
}

function wordCount(text) {
  const words = new Map();
  for (const word of text.split(/\s+/)) words.set(word, (words.get(word) || 0) + 1);
  return words.size;
}

class Shape {
  constructor(size) { this.size = size; }
  area() { return this.size * this.size; }
}
class Ring extends Shape {
  area() { return super.area() * 0.75; }
}

const total = (shapes) => shapes.map((s) => s.area()).filter((x) => x > 2).reduce((a, b) => a + b, 0);

function sortStrings(list) {
  return [...list].sort((a, b) => (a.length - b.length) || (a < b ? -1 : 1));
}

function phase(name, work) {
  const end = Date.now() + limit;
  let rounds = 0;
  while (Date.now() < end) {
    for (let i = 0; i < 10; i++) work();
    rounds++;
  }
  return `${name} ${rounds}`;
}

const n = 32;
const a = Float64Array.from({ length: n * n }, (_, i) => i % 7);
const text = 'a rose is a rose is a rose and a nose is a nose '.repeat(20);
const shapes = Array.from({ length: 200 }, (_, i) => (i % 2 ? new Ring(i) : new Shape(i)));
const strings = Array.from({ length: 200 }, (_, i) => 'x'.repeat(i % 13) + (i * 7919 % 1000));
phase('fibonacci', () => fibonacci(16));
phase('matMul', () => matMul(a, a, n));
phase('wordCount', () => wordCount(text));
phase('total', () => total(shapes));
phase('sortStrings', () => sortStrings(strings));
