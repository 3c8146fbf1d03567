// When: which samples count, and the panel that chooses them. All times are milliseconds since the recording's first sample.

// The moments of all samples from their columns, and the cells with what these are in each together.
function moments({time, unit}, bytes) {
  const {step, from, rows} = time, n = time.series.reduce((sum, of) => sum + of[3], 0);
  const list = size => new Float64Array(size);
  const cells = {node: new Int32Array(n), series: new Int32Array(n), period: list(n), samples: list(n)};
  const m = {cells, at: list(rows), cell: new Int32Array(rows), period: list(rows), samples: list(rows), first: [0]};
  let place = 0, cell = 0;
  const next = () => {
    for (let value = 0, by = 1; ; by *= 128) {
      const byte = bytes[place++];
      value += (byte & 127) * by;
      if (!(byte > 127)) return value;
    }
  };
  time.series.forEach((of, s) => {
    of.push(cell);
    for (let node = 0; cell < of[4] + of[3]; cell++) {
      cells.node[cell] = node += next();
      cells.series[cell] = s;
    }
    m.first.push(m.first[s] + of[0]);
  });
  const all = run => time.series.forEach((of, s) => run(m.first[s], m.first[s + 1], of));
  all((i, end) => { for (let t = from; i < end; i++) m.at[i] = t += next() * step; });
  // Bytes of the same place stand together.
  for (let by = 1; by < n; by *= 256) {
    all((i, end, of) => { if (by < of[3]) for (; i < end; i++) m.cell[i] += bytes[place++] * by; });
  }
  all((i, end, of) => { for (; i < end; i++) m.period[i] = unit * (of[1] < 0 ? next() : of[1]); });
  all((i, end, of) => {
    for (; i < end; i++) {
      const count = m.samples[i] = of[2] ? 1 : next(), c = m.cell[i] += of[4];
      if (of[1] >= 0) m.period[i] *= count;
      cells.period[c] += m.period[i];
      cells.samples[c] += count;
    }
  });
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
