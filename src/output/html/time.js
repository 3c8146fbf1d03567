// When: which samples count, and the panel that chooses them. All times are milliseconds since the recording's first sample.

// The moments of all samples from their columns, and what they are in each cell together.
function moments({time, series, unit}, cells, bytes) {
  const {step, from, rows} = time, n = cells.node.length, own = series.map(() => []);
  const m = {at: new Float64Array(rows), cell: new Int32Array(rows), period: new Float64Array(rows), samples: new Float64Array(rows), first: [0]};
  cells.series.forEach((s, c) => own[s].push(c));
  cells.period = new Float64Array(n);
  cells.samples = new Float64Array(n);
  let place = 0, k = 0;
  const next = () => {
    for (let value = 0, by = 1; ; by *= 128) {
      const byte = bytes[place++];
      value += (byte & 127) * by;
      if (!(byte > 127)) return value;
    }
  };
  time.series.forEach(([count, each, areOnes], s) => {
    const begin = k, end = k + count;
    for (let t = from, i = begin; i < end; i++) m.at[i] = t += next() * step;
    // Bytes of the same place stand together.
    for (let by = 1; by < own[s].length; by *= 256) for (let i = begin; i < end; i++) m.cell[i] += bytes[place++] * by;
    for (let i = begin; i < end; i++) m.cell[i] = own[s][m.cell[i]];
    if (each < 0) for (let i = begin; i < end; i++) m.period[i] = next() * unit;
    for (let i = begin; i < end; i++) m.samples[i] = areOnes ? 1 : next();
    if (each >= 0) for (let i = begin; i < end; i++) m.period[i] = m.samples[i] * each * unit;
    m.first.push(k = end);
  });
  for (let i = 0; i < rows; i++) {
    cells.period[m.cell[i]] += m.period[i];
    cells.samples[m.cell[i]] += m.samples[i];
  }
  return m;
}

// The first moment of a series that is not before a time.
function firstAt(m, series, time) {
  let low = m.first[series], high = m.first[series + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (m.at[middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// A column of the cells, of a range alone.
function within(m, n, column, run, [from, to]) {
  const sums = new Float64Array(n), weight = m[column];
  run.forEach((one, s) => {
    if (one < 0) return;
    for (let i = firstAt(m, s, from), end = firstAt(m, s, to); i < end; i++) sums[m.cell[i]] += weight[i];
  });
  return sums;
}

// What `weigh` takes: a range as run 0, and as run 1 what it is compared with: another range, or all that is outside of it.
function part(m, cells, column, run, range, other) {
  const n = cells.node.length, of = (one, column) => within(m, n, column, run, one);
  const weight = of(range, column), samples = of(range, 'samples');
  if (!other) return {cells: {...cells, samples}, weight, run};
  const rest = column => {
    if (other !== 'rest') return of(other, column);
    const inside = column === 'samples' ? samples : weight;
    return inside.map((sum, c) => cells[column][c] - sum);
  };
  const both = (a, b) => { const all = new Float64Array(2 * n); all.set(a); all.set(b, n); return all; };
  return {
    cells: {
      node: both(cells.node, cells.node),
      series: both(cells.series, cells.series.map(s => s + run.length)),
      samples: both(samples, rest('samples')),
    },
    weight: both(weight, rest(column)),
    run: [...run, ...run.map(one => one < 0 ? -1 : 1)],
  };
}

// Which functions have more or less of a range than of what it is compared with, by more than chance explains: five times the spread of
// a share, and half a point.
function unlikely(measured, sums) {
  const [n, rest] = measured.samples, ways = new Int8Array(sums[0].total.length);
  for (let f = 0; f < ways.length; f++) {
    const a = sums[0].total[f], b = sums[1].total[f], mean = (a * n + b * rest) / (n + rest);
    const spread = Math.sqrt(mean * (1 - mean) * (1 / n + 1 / rest));
    if (n > 7 && rest > 7 && Math.abs(a - b) > Math.max(5 * spread, .005)) ways[f] = a > b ? 1 : -1;
  }
  return ways;
}
