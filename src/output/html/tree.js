// The tree and what is computed of it: no document, no window. Nodes are numbers, depth first, 0 stands for everything.
'use strict';

// Parents, ends of subtrees and depths from the levels that each node closes.
function grow(up, fn) {
  const n = up.length + 1, ints = () => new Int32Array(n);
  const t = {n, fn: ints(), parent: ints(), end: ints(), depth: ints()};
  t.fn[0] = -1;
  const open = [0];
  for (let i = 1; i < n; i++) {
    for (let k = up[i - 1]; k > 0; k--) t.end[open.pop()] = i;
    t.parent[i] = open[open.length - 1];
    t.depth[i] = open.length;
    t.fn[i] = fn[i - 1];
    open.push(i);
  }
  while (open.length) t.end[open.pop()] = n;
  return t;
}

// Weights of all nodes. `run` tells of each series whether it counts: 0 as what is shown, 1 as what it is compared with,
// -1 not at all. `column` is a column of the cells. With two sides weights are those of a run of each, by `scale`, both in
// shares of the first; without a scale each is in shares of itself. `shape` tells which of the two is drawn.
function weigh(t, cells, column, run, two, scale, shape) {
  const m = {own: [new Float64Array(t.n)], total: [], sum: [0, 0], samples: [0, 0], two};
  m.pick = (after, before) => !two || shape === 'after' ? after : shape === 'before' ? before : Math.max(after, before);
  if (two) m.own.push(new Float64Array(t.n));
  for (let c = 0; c < column.length; c++) {
    const r = run[cells.series[c]];
    if (r < 0) continue;
    const weight = two && scale ? column[c] * scale[r] : column[c];
    m.own[r][cells.node[c]] += weight;
    m.sum[r] += weight;
    m.samples[r] += cells.samples[c];
  }
  m.base = m.sum.map(sum => two && scale ? m.sum[0] || m.sum[1] : sum);
  for (let r = 0; r < m.own.length; r++) {
    const own = m.own[r];
    if (two && m.base[r]) for (let i = 0; i < t.n; i++) own[i] /= m.base[r];
    const total = own.slice();
    for (let i = t.n - 1; i > 0; i--) total[t.parent[i]] += total[i];
    m.total.push(total);
  }
  m.width = !two || shape === 'after' ? m.total[0] : shape === 'before' ? m.total[1] : widths(t, m);
  return m;
}

// Widths of two runs: what vanished has room too.
function widths(t, m) {
  const [total, before] = m.total;
  const width = new Float64Array(t.n), callees = new Float64Array(t.n);
  for (let i = t.n - 1; i >= 0; i--) {
    width[i] = Math.max(total[i], before[i], callees[i]);
    if (i) callees[t.parent[i]] += width[i];
  }
  return width;
}

// Own and total weights by function, recursion counted once.
function table(t, m, count) {
  const sums = m.own.map(() => ({own: new Float64Array(count), total: new Float64Array(count)}));
  const inside = new Int32Array(count);
  for (let i = 1; i < t.n; i++) {
    const f = t.same[i], outermost = i >= inside[f];
    if (outermost) inside[f] = t.end[i];
    for (let r = 0; r < sums.length; r++) {
      sums[r].own[f] += m.own[r][i];
      if (outermost) sums[r].total[f] += m.total[r][i];
    }
  }
  return sums;
}

// The outermost nodes of a function.
function outermost(t, f) {
  const found = [];
  for (let i = 1; i < t.n;) {
    if (t.same[i] === f) { found.push(i); i = t.end[i]; } else i++;
  }
  return found;
}

// Weight of what matches, what is inside it not counted again.
function matchedWeight(t, m, matched) {
  let sum = 0;
  for (let i = 1; i < t.n;) {
    if (matched[t.fn[i]]) { sum += m.total[0][i]; i = t.end[i]; } else i++;
  }
  return sum;
}

// Views are trees to draw: all have these.
function topDown(t, m) {
  return {
    root: 0,
    fn: h => t.fn[h],
    width: h => m.width[h],
    own: (h, r) => m.own[r][h],
    total: (h, r) => m.total[r][h],
    parent: h => h ? t.parent[h] : -1,
    first: h => h + 1 < t.end[h] ? h + 1 : -1,
    next: h => h && t.end[h] < t.end[t.parent[h]] ? t.end[h] : -1,
    depth: h => t.depth[h],
    exists: h => h >= 0 && h < t.n,
    around: h => t.around && t.around[h],
    node: h => h,
  };
}

// Nodes merged by function on the way up or down, made when they are looked at. `at` are the nodes the way has come to,
// `from` those whose weights count.
function merged(t, m, way, fn, nodes) {
  const view = {
    root: 0,
    fn: h => list[h].fn,
    width: h => list[h].width,
    own: (h, r) => list[h].own[r],
    total: (h, r) => list[h].total[r],
    parent: h => list[h].parent,
    first: h => (expand(h), list[h].first),
    next: h => list[h].next,
    depth: h => list[h].depth,
    exists: h => h >= 0 && h < list.length,
    node: h => list[h].node,
  };
  const list = [];
  const runs = m.own.length, byOwn = way === 'leaves';
  function add(fn, parent) {
    const zero = () => new Array(runs).fill(0);
    const depth = parent < 0 ? 0 : list[parent].depth + 1;
    list.push({fn, parent, depth, node: 0, width: 0, own: zero(), total: zero(), at: [], from: [], first: -1, next: -1, done: false});
    return list.length - 1;
  }
  function put(node, at, from) {
    node.node = node.node || at;
    node.at.push(at);
    node.from.push(from);
    for (let r = 0; r < runs; r++) {
      node.total[r] += (byOwn ? m.own : m.total)[r][from];
      if (way === 'callees' || node.depth < 2 && byOwn) node.own[r] += m.own[r][from];
    }
    node.width += byOwn ? m.pick(...m.own.map(own => own[from])) : m.width[from];
  }
  function expand(h) {
    const node = list[h];
    if (node.done) return;
    node.done = true;
    const kids = new Map();
    const visit = (at, from) => {
      let kid = kids.get(t.same[at]);
      if (kid === undefined) kids.set(t.same[at], kid = add(t.same[at], h));
      put(list[kid], at, from);
    };
    for (let k = 0; k < node.at.length; k++) {
      const at = node.at[k];
      if (way === 'callees') {
        for (let c = at + 1; c < t.end[at]; c = t.end[c]) visit(c, c);
      } else if (byOwn && h === 0) {
        visit(at, node.from[k]);
      } else if (t.parent[at]) {
        visit(t.parent[at], node.from[k]);
      }
    }
    const order = [...kids.values()].sort((a, b) => list[b].width - list[a].width || list[a].fn - list[b].fn);
    node.first = order.length ? order[0] : -1;
    for (let k = 1; k < order.length; k++) list[order[k - 1]].next = order[k];
    if (h) node.at = node.from = [];
  }
  const root = list[add(fn, -1)];
  for (const node of nodes) put(root, node, node);
  return view;
}

// All nodes with weight of their own, for the tree from the leaves.
function leaves(t, m) {
  const found = [];
  for (let i = 1; i < t.n; i++) if (m.own.some(own => own[i] > 0)) found.push(i);
  return found;
}

// What of a view can be seen below `zoom`, in rows; what is narrower than `least` pixels is left out with all it calls.
function layout(view, zoom, pixels, least) {
  const rows = [];
  const put = (row, h, x, w) => (rows[row] || (rows[row] = [])).push({h, x, w, row});
  for (let h = view.parent(zoom); h >= 0; h = view.parent(h)) put(view.depth(h), h, 0, pixels);
  const scale = pixels / (view.width(zoom) || 1);
  const todo = [[zoom, 0]];
  while (todo.length) {
    let [h, x] = todo.pop();
    const w = view.width(h) * scale;
    put(view.depth(h), h, x, w);
    for (let kid = view.first(h); kid >= 0; kid = view.next(kid)) {
      const width = view.width(kid) * scale;
      if (width >= least) todo.push([kid, x]);
      x += width;
    }
  }
  for (const row of rows) row.sort((a, b) => a.x - b.x);
  return rows;
}

// The frame of a row at a place.
function frameAt(row, x) {
  let low = 0, high = row ? row.length : 0;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].x + row[middle].w <= x) low = middle + 1; else high = middle;
  }
  const frame = row && row[low];
  return frame && frame.x <= x ? frame : null;
}

// What nodes call, or call again, that changed: by function, 1 for more and -1 for less.
function around(t, way) {
  const found = new Uint8Array(t.n);
  for (let i = t.n - 1; i > 0; i--) if (found[i] || way[t.fn[i]]) found[t.parent[i]] = 1;
  return found;
}
