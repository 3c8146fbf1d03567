// The page around the tree: reads the data, draws, and answers keys and clicks. Text of the recording goes into the page as
// text only.
(async () => {
  const $ = id => document.getElementById(id), on = (element, what, action) => element.addEventListener(what, action), body = document.body;
  const began = performance.now();
  const ROW = 18, TALL = 24, LEAST = 0.5;
  const calm = matchMedia('(prefers-reduced-motion: reduce)');
  const dark = matchMedia('(prefers-color-scheme: dark)');

  function fail(text) {
    $('trouble').textContent = text;
    $('trouble').hidden = false;
    body.dataset.failed = text;
  }
  if (typeof DecompressionStream === 'undefined') {
    return fail('This browser is too old for the page: Chrome 80, Firefox 113 and Safari 16.4 can read it.');
  }

  async function read() {
    const text = $('data').textContent.trim().slice(1, -1);
    let bytes;
    if (Uint8Array.fromBase64) {
      bytes = Uint8Array.fromBase64(text);
    } else {
      const raw = atob(text);
      bytes = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    }
    $('data').remove();
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const all = new Uint8Array(await new Response(stream).arrayBuffer()), end = all.indexOf(0);
    // Behind a zero, which no JSON has, are columns.
    columnBytes = all.subarray(end + 1);
    return JSON.parse(new TextDecoder().decode(end < 0 ? all : all.subarray(0, end)));
  }
  let data, columnBytes;
  try { data = await read(); } catch (error) { return fail('The data of this page is damaged: ' + error.message); }

  // ---- what the data says
  const fns = data.fns, count = fns.name.length, isDifference = data.runs > 1;
  const tree = grow(data.up, data.fn);
  const time = data.time && moments(data, columnBytes), cells = time ? time.cells : data.cells;
  if (!time) {
    let last = 0;
    cells.node = Int32Array.from(cells.node, step => last += step);
    cells.period = cells.period.map(period => period * data.unit);
  }
  // Two sides: two recordings, or two times of one. Which functions weigh more or less in the first.
  let two = isDifference, ways = fns.way;
  if (two) tree.around = around(tree, ways);
  const KINDS = data.kinds;
  // By function: what it is in lists, where it is one whether it is inlined or not.
  const same = fns.name.map((_, f) => f);
  for (const [f, other] of fns.same) same[f] = other;
  tree.same = tree.fn.map(f => f < 0 ? f : same[f]);
  // By node: whose it is, and what runs there.
  const tree0 = tree;
  tree.package = [0, ...data.package];
  tree.activity = [0, ...data.activity];
  const nameOf = f => f < 0 ? 'all' : fns.name[f];
  const objectOf = f => f < 0 || fns.object[f] < 0 ? '' : data.objects[fns.object[f]];
  const kindOf = f => f < 0 ? 0 : fns.kind[f];

  // ---- what is shown; most of it is in the address
  const initial = {v: data.view, m: data.measure, t: 'all', z: 0, f: -1, s: '', i: data.inverted ? 1 : 0, o: '-own', c: data.color};
  if (time) Object.assign(initial, {r: '', q: ''});
  const state = {...initial};
  let measured, sums, view, rows = [], selected = 0, matched = null, focusRow = 0, hover = null;

  const measures = [];
  data.events.forEach((event, e) => {
    measures.push({id: e + 'p', event, e, column: 'period', label: event.name, unit: event.unit});
    measures.push({id: e + 's', event, e, column: 'samples', label: event.name + ' (samples)', unit: ''});
  });
  const measure = () => measures.find(one => one.id === state.m) || measures[0];
  const inScope = thread => {
    const [way, id] = [state.t[0], +state.t.slice(1)];
    const one = data.threads[thread];
    return state.t === 'all' || way === 'p' && one[0] === id || way === 't' && thread === id;
  };

  function format(weight) {
    const {unit, event} = measure();
    if (measure().column === 'samples') return weight.toLocaleString('en') + ' samples';
    if (!weight) return '0';
    if (unit) {
      const steps = STEPS[unit] || STEPS.ns;
      const [word, by] = steps.find(step => weight >= step[1]) || steps.at(-1), number = weight / by;
      return (by === 1 || number >= 999.5 ? Math.round(number) : number.toPrecision(3)) + ' ' + word;
    }
    return weight.toLocaleString('en') + ' ' + event.name;
  }
  const STEPS = {ns: [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]], B: [['MiB', 2 ** 20], ['KiB', 1024], ['B', 1]]};
  // Two weights in one unit: 0.70 → 1.05 s.
  function arrow(before, after) {
    const [b, a] = [before, after].map(part => part * measured.base[0]), most = Math.max(a, b);
    const isSamples = measure().column === 'samples', steps = !isSamples && STEPS[measure().unit] || [[isSamples ? 'samples' : measure().event.name, 1]];
    const [word, by] = steps.find(step => most >= step[1]) || steps.at(-1), digits = most / by < 100 ? 2 : 0;
    return `${(b / by).toFixed(digits)} → ${(a / by).toFixed(digits)} ${word}`;
  }
  const cut = (words, most) => words.length > most ? words.slice(0, most) + '…' : words;
  const percent = share => (100 * share).toFixed(2) + ' %';
  const points = share => {
    const words = Math.abs(100 * share).toFixed(2);
    return (!+words ? '±' : share > 0 ? '+' : '−') + words;
  };
  const share = weight => two ? weight : weight / (measured.sum[0] || 1);
  const absolute = (part, run) => format(Math.round(two ? part * measured.base[run] : part));

  function remeasure() {
    const {e, column} = measure();
    const run = data.series.map(([event, thread, run]) => event === e && inScope(thread) ? run : -1);
    const range = panel && panel.range(), other = range && panel.other(), had = two;
    two = isDifference || !!other;
    const some = range ? part(time, cells, column, run, range, other) : {cells, weight: cells[column], run};
    measured = weigh(tree, some.cells, some.weight, some.run, two, data.scale, data.shape || 'after');
    sums = table(tree, measured, count);
    order = null;
    if (time) {
      ways = two && unlikely(measured, sums);
      tree.around = two && around(tree, ways);
    }
    if (had !== two) {
      $('heads').textContent = '';
      legend();
    }
  }

  function makeView() {
    if (state.v === 'up') view = merged(tree, measured, 'leaves', -1, leaves(tree, measured));
    else if (state.v === 'around') {
      if (state.f < 0) state.f = heaviest();
      const nodes = outermost(tree, state.f);
      view = merged(tree, measured, 'callees', state.f, nodes);
      view.above = merged(tree, measured, 'callers', state.f, nodes);
    } else view = topDown(tree, measured);
    if (state.v !== 'down') state.z = 0;
    if (!view.exists(state.z)) state.z = 0;
    selected = state.z;
  }
  function heaviest() {
    let best = 0;
    for (let f = 1; f < count; f++) if (sums[0].own[f] > sums[0].own[best]) best = f;
    return best;
  }

  // ---- colours
  // With points of lightness, light and dark: so far apart that all kinds are told with any kind of sight.
  const hues = [[225, 8], [42, 92, 4, 0], [205, 75, -14, -10], [145, 48, 4, 3], [16, 85, -8, -9], [0, 0]];
  // Of packages and activities, the heaviest first; of the others.
  const PALETTE = [[42, 92], [205, 75], [145, 48], [276, 62], [16, 85], [335, 70], [75, 55], [226, 70]], OTHER = [36, 30];
  const tints = new Map();
  const paint = (names, at) => state.c === 'package' && at === names.length - 1 ? hues[0] : PALETTE[at] || OTHER;
  function colorOf([hue, saturation, light = 0, darker = 0], off) {
    return dark.matches ? `hsl(${hue} ${saturation * .6}% ${26 + 11 * off + darker}%)` : `hsl(${hue} ${saturation}% ${69 + 13 * off + light}%)`;
  }
  function tint(view, h) {
    const f = view.fn(h), names = kindOf(f) && colors[state.c];
    const at = names ? tree[state.c][view.node(h)] : -1, key = at * count + f;
    if (!tints.has(key)) {
      let hash = 0;
      for (const c of nameOf(f)) hash = (hash * 31 + c.codePointAt(0)) | 0;
      const color = at < 0 || f === data.runtime ? hues[at < 0 ? kindOf(f) : 0] : paint(names, at);
      tints.set(key, colorOf(color, ((hash >>> 4) % 64) / 64));
    }
    return tints.get(key);
  }
  const colors = data.packages.length ? {package: data.packages, activity: data.activities, kind: null} : {};
  // Blue for less, orange for more, where a test says so; pale around it; grey is the rest.
  function change(tree, h) {
    const f = tree.fn(h), way = f < 0 ? 0 : ways[f], pale = !way && tree.around && tree.around(h);
    if (!way && !pale) return dark.matches ? 'hsl(0 0% 30%)' : 'hsl(0 0% 88%)';
    const more = way ? way > 0 : tree.total(h, 0) > tree.total(h, 1), hue = more !== !!data.negate ? 28 : 212;
    return dark.matches ? `hsl(${hue} ${pale ? 25 : 80}% ${pale ? 32 : 38}%)` : `hsl(${hue} 90% ${pale ? 90 : 62}%)`;
  }
  const sign = (tree, h) => {
    if (!two) return '';
    const after = tree.total(h, 0), before = tree.total(h, 1);
    if (isDifference && !before && after) return '+ ';
    if (isDifference && before && !after) return '− ';
    const way = tree.fn(h) < 0 ? 0 : ways[tree.fn(h)];
    return way ? (way > 0 ? '▲ ' : '▼ ') : '';
  };

  // ---- the graph
  const canvas = $('canvas'), ink = canvas.getContext('2d'), graph = $('graph');
  const FONT = '12px ui-monospace, Menlo, Consolas, monospace';
  let wide = 7.2, depth = 0, above = 0;

  function arrange() {
    const pixels = graph.clientWidth;
    rows = layout(view, state.z, pixels, LEAST);
    above = 0;
    if (view.above) {
      const callers = layout(view.above, 0, pixels, LEAST).slice(1);
      above = callers.length;
      callers.reverse().forEach(row => row.forEach(frame => { frame.other = view.above; }));
      rows = [...callers, ...rows];
      rows.forEach((row, number) => row.forEach(frame => { frame.row = number; }));
    }
    depth = rows.length;
    $('space').style.height = depth * ROW + 'px';
  }
  const flipped = () => !state.i && state.v === 'down';
  const yOf = row => (flipped() ? Math.max(depth * ROW, graph.clientHeight) - (row + 1) * ROW : row * ROW);
  const rowAt = y => Math.floor(flipped() ? (Math.max(depth * ROW, graph.clientHeight) - 1 - y) / ROW : y / ROW);

  function draw() {
    const width = graph.clientWidth, height = graph.clientHeight, ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = width + 'px';
      canvas.style.height = height + 'px';
    }
    const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue(name);
    const [back, front, mark, pick, line] = ['--back', '--front', '--mark', '--pick', '--line'].map(color);
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.fillStyle = back;
    ink.fillRect(0, 0, width, height);
    ink.font = FONT;
    ink.textBaseline = 'middle';
    wide = ink.measureText('m').width;
    const top = graph.scrollTop;
    for (let number = 0; number < depth; number++) {
      const y = yOf(number) - top;
      if (y + ROW < 0 || y > height) continue;
      for (const frame of rows[number] || []) drawFrame(frame, y, front, mark, line);
    }
    const frame = frameOf(selected);
    if (frame) {
      ink.strokeStyle = pick;
      ink.lineWidth = 2;
      ink.strokeRect(frame.x + 1, yOf(frame.row) - top + 1, Math.max(frame.w - 2, 1), ROW - 3);
    }
  }
  function drawFrame(frame, y, front, mark, line) {
    const {h, x, w} = frame, tree = frame.other || view, f = tree.fn(h);
    const gone = two && !tree.total(h, 0);
    ink.globalAlpha = state.v === 'down' && state.z && tree.depth(h) < tree.depth(state.z) ? .55 : 1;
    ink.fillStyle = two && f >= 0 ? change(tree, h) : tint(tree, h);
    ink.fillRect(x, y, Math.max(w - (w > 2 ? 1 : 0), LEAST), ROW - 1);
    if (matched && f >= 0 && matched[f]) {
      ink.fillStyle = mark;
      ink.fillRect(x, y + ROW - 4, Math.max(w - 1, 1), 3);
    }
    if (gone && w > 3) {
      ink.strokeStyle = front;
      ink.lineWidth = 1;
      ink.setLineDash([3, 2]);
      ink.strokeRect(x + .5, y + .5, w - 2, ROW - 2);
      ink.setLineDash([]);
    }
    const room = Math.floor((w - 8) / wide);
    if (room >= 2) {
      const label = sign(tree, h) + nameOf(f);
      ink.fillStyle = front;
      ink.fillText(cut(label, room - (label.length > room)), x + 4, y + ROW / 2, w - 6);
    }
    ink.globalAlpha = 1;
  }
  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }
  const frameOf = h => {
    const row = rows[view.depth(h) + above];
    return row && row.find(frame => frame.h === h && !frame.other);
  };
  function under(event) {
    const box = canvas.getBoundingClientRect();
    const number = rowAt(event.clientY - box.top + graph.scrollTop);
    return frameAt(rows[number], event.clientX - box.left);
  }

  // ---- words
  function text(parent, tag, words, name) {
    const element = document.createElement(tag);
    element.textContent = words;
    if (name) element.className = name;
    parent.append(element);
    return element;
  }
  function describe(tree, h) {
    const f = tree.fn(h), own = tree.own(h, 0), total = tree.total(h, 0);
    const parts = [];
    if (f >= 0) parts.push([KINDS[kindOf(f)], objectOf(f)].filter(Boolean).join(', '));
    if (isDifference) {
      const before = tree.total(h, 1), times = before && total ? `, ${(total / before).toFixed(2)} times` : total ? ', new here' : ', vanished';
      parts.push(arrow(before, total) + times);
      if (tree !== view.above && state.v !== 'up' && own + tree.own(h, 1)) parts.push('self ' + arrow(tree.own(h, 1), own));
      if (f >= 0 && kindOf(f)) parts.push(data.words[fns.word[f]]);
      return [nameOf(f), parts.join(' · ')];
    }
    if (tree.node && f >= 0 && kindOf(f) && data.packages.length) {
      const node = tree.node(h);
      parts.push(`${data.packages[tree0.package[node]]}: ${data.activities[tree0.activity[node]]}`);
    }
    const rest = of => two ? `, ${otherWord()} ${percent(of(h, 1))}` : '';
    parts.push(`total ${absolute(total, 0)} (${percent(share(total))}${rest(tree.total)})`);
    if (tree !== view.above && state.v !== 'up') parts.push(`self ${absolute(own, 0)} (${percent(share(own))}${rest(tree.own)})`);
    if (f >= 0 && fns.raw[f]) parts.push(fns.raw[f]);
    return [nameOf(f), parts.join(' · ')];
  }
  function tell(tree, h) {
    const detail = $('detail'), [name, rest] = describe(tree, h);
    detail.textContent = '';
    text(detail, 'b', cut(name, 400));
    detail.append(' ' + rest);
    canvas.setAttribute('aria-label', `Flame graph. ${cut(name, 200)}: ${rest}`);
  }
  // A function of the table, described as a node is.
  const tellFunction = f => tell({fn: () => f, own: (h, r) => sums[r].own[f], total: (h, r) => sums[r].total[f]}, 0);

  // ---- the table
  const otherWord = () => panel.other() === 'rest' ? 'rest' : 'other';
  const columnsNow = () => [
    {id: 'own', label: 'Self', number: true, value: f => sums[0].own[f]},
    {id: 'total', label: 'Total', number: true, value: f => sums[0].total[f]},
    ...(two && !isDifference ? [{id: 'other', label: otherWord() === 'rest' ? 'Rest' : 'Other', number: true, run: 1, value: f => sums[1].total[f]}] : []),
    ...(two ? [{id: 'change', label: 'Change', number: true, value: f => sums[0].total[f] - sums[1].total[f]}] : []),
    {id: 'name', label: 'Function', value: nameOf},
    {id: 'object', label: 'Object', value: objectOf},
    {id: 'kind', label: 'Kind', value: f => KINDS[kindOf(f)]},
  ];
  let order = null;
  function sorted() {
    if (order) return order;
    const down = state.o[0] === '-', columns = columnsNow(), column = columns.find(one => one.id === state.o.slice(1)) || columns[0];
    order = [];
    for (let f = 0; f < count; f++) {
      const here = sums.some(sum => sum.total[f] > 0);
      if (here && kindOf(f) && (!matched || matched[f])) order.push(f);
    }
    const values = order.map(column.value);
    const by = column.number ? (a, b) => values[a] - values[b] : (a, b) => values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : 0;
    const places = order.map((_, at) => at).sort((a, b) => (down ? -by(a, b) : by(a, b)) || order[a] - order[b]);
    return order = places.map(at => order[at]);
  }
  function drawTable() {
    const list = $('list'), all = sorted(), heads = $('heads'), columns = columnsNow();
    if (!heads.children.length) for (const column of columns) {
      const head = text(heads, 'th', '', column.number ? 'number' : column.id);
      head.scope = 'col';
      const button = text(head, 'button', column.label);
      button.type = 'button';
      on(button, 'click', () => {
        const {id, number} = column, same = state.o.slice(1) === id;
        go({o: ((same ? state.o[0] === '+' : number) ? '-' : '+') + id});
      });
    }
    [...heads.children].forEach((head, at) => {
      const is = state.o.slice(1) === columns[at].id;
      head.setAttribute('aria-sort', is ? (state.o[0] === '-' ? 'descending' : 'ascending') : 'none');
      head.firstChild.textContent = columns[at].label + (is ? (state.o[0] === '-' ? ' ▾' : ' ▴') : '');
    });
    $('table').setAttribute('aria-rowcount', all.length + 1);
    const first = Math.max(0, Math.floor(list.scrollTop / TALL) - 8);
    const last = Math.min(all.length, first + Math.ceil(list.clientHeight / TALL) + 24);
    const tbody = $('rows'), kept = document.activeElement && tbody.contains(document.activeElement);
    tbody.textContent = '';
    const space = height => {
      const row = text(tbody, 'tr', '', 'space'), cell = text(row, 'td', '');
      cell.style.height = height + 'px';
      row.setAttribute('aria-hidden', 'true');
    };
    space(first * TALL);
    for (let at = first; at < last; at++) {
      const f = all[at], row = text(tbody, 'tr', '', f === state.f ? 'picked' : '');
      row.setAttribute('aria-rowindex', at + 2);
      row.tabIndex = at === focusRow ? 0 : -1;
      row.dataset.at = at;
      for (const column of columns) {
        const value = column.value(f);
        const words = !column.number ? value : column.id === 'change' ? points(value) : percent(share(value));
        const cell = text(row, 'td', cut(words, 300), column.number ? 'number' : column.id);
        cell.title = column.number && column.id !== 'change' ? absolute(value, column.run || 0) : cut(words, 2000);
      }
      if (kept && at === focusRow) row.focus({preventScroll: true});
    }
    space((all.length - last) * TALL);
  }
  function moveRow(by) {
    const all = sorted(), list = $('list');
    if (!all.length) return;
    focusRow = Math.max(0, Math.min(all.length - 1, focusRow + by));
    const y = focusRow * TALL;
    if (y < list.scrollTop) list.scrollTop = y;
    if (y + 3 * TALL > list.scrollTop + list.clientHeight) list.scrollTop = y + 3 * TALL - list.clientHeight;
    state.f = all[focusRow];
    drawTable();
    const row = $('rows').querySelector(`[data-at="${focusRow}"]`);
    if (row) row.focus({preventScroll: true});
    tellFunction(state.f);
    save(true);
  }

  // ---- the code
  const codes = data.code || [];
  // The function itself, or those that it was inlined into.
  function holders(f) {
    const found = new Set();
    for (let i = 1; i < tree.n; i++) if (tree.same[i] === f) {
      let at = i;
      while (KINDS[kindOf(tree.fn[at])] === 'inlined') at = tree.parent[at];
      found.add(tree.fn[at]);
    }
    return found;
  }
  function drawCode() {
    const box = $('code');
    if (state.f < 0) state.f = codes[0].fn;
    const inside = holders(state.f), own = codes.filter(one => inside.has(one.fn));
    box.textContent = '';
    text(box, 'h2', cut(nameOf(state.f), 400));
    if (!own.length) text(box, 'p', 'Its code is not in the page.');
    if (state.r) text(box, 'p', 'Shares are of the whole recording, not of the chosen time.');
    let hot = 0;
    for (const one of own) {
      const lines = text(box, 'table', '');
      text(lines, 'caption', (one.fn === state.f ? '' : `Inlined in ${cut(nameOf(one.fn), 200)}, `) + one.title);
      for (const [percent, place, words, isCode] of one.lines) {
        const row = text(lines, 'tr', '', isCode ? '' : 'source');
        text(row, 'td', percent ? percent.toFixed(2) : '', 'number');
        text(row, 'td', place, 'place');
        text(row, 'td', words);
        if (percent) row.style.background = `color-mix(in srgb, var(--mark) ${Math.min(36, 4 + 1.6 * percent)}%, transparent)`;
        if (percent > hot) { hot = percent; box.hot = row; }
      }
    }
    if (hot) box.hot.scrollIntoView({block: 'center'});
  }

  // ---- search
  function look() {
    matched = null;
    if (state.s) {
      let pattern;
      const isPlain = /^[^A-Z]*$/.test(state.s);
      const make = words => new RegExp(words, isPlain ? 'i' : '');
      try { pattern = make(state.s); } catch { pattern = make(state.s.replace(/[^\w\s]/g, '\\$&')); }
      matched = new Uint8Array(count);
      for (let f = 0; f < count; f++) if (pattern.test(fns.name[f]) || pattern.test(fns.raw[f])) matched[f] = 1;
    }
    order = null;
  }
  function tellMatched() {
    if (!matched) { $('matched').textContent = ''; delete body.dataset.matched; return; }
    const part = share(matchedWeight(tree, measured, matched));
    $('matched').textContent = 'Matched: ' + percent(part);
    body.dataset.matched = (100 * part).toFixed(2);
  }
  function nextMatch(by) {
    if (!matched) return;
    const found = [];
    for (let r = 0; r < depth; r++) for (const frame of rows[r] || []) {
      if (!frame.other && view.fn(frame.h) >= 0 && matched[view.fn(frame.h)]) found.push(frame);
    }
    if (!found.length) return;
    const at = found.findIndex(frame => frame.h === selected);
    choose(found[(at + by + found.length) % found.length].h);
  }

  // ---- going about
  function save(quiet) {
    const words = new URLSearchParams();
    for (const key in initial) if (String(state[key]) !== String(initial[key])) words.set(key, state[key]);
    const hash = '#' + words;
    if (hash === (location.hash || '#')) return;
    if (quiet) history.replaceState(null, '', hash); else history.pushState(null, '', hash);
  }
  function load() {
    const words = new URLSearchParams(location.hash.slice(1));
    for (const key in initial) {
      const value = words.has(key) ? words.get(key) : initial[key];
      state[key] = typeof initial[key] === 'number' ? Number(value) | 0 : String(value);
    }
    if (!measures.some(one => one.id === state.m)) state.m = initial.m;
    if (!tabs.some(tab => tab.id === state.v)) state.v = initial.v;
    if (!(state.c in colors)) state.c = initial.c;
    if (!$('scope').querySelector(`option[value="${CSS.escape(state.t)}"]`)) state.t = 'all';
    state.f = state.f < 0 || state.f >= count ? -1 : same[state.f];
    if (state.z < 0) state.z = 0;
    if (panel) panel.check();
  }
  function go(changes, quiet) {
    Object.assign(state, changes);
    show(changes);
    save(quiet);
  }
  const tabs = [
    {id: 'down', label: 'Flame graph', key: 'f'}, {id: 'up', label: 'Bottom-up', key: 'b'},
    {id: 'around', label: 'Callers and callees', key: 'c'}, {id: 'table', label: 'Table', key: 't'},
    ...(codes.length ? [{id: 'code', label: 'Code', key: 's'}] : []),
  ];
  const isGraph = () => state.v !== 'table' && state.v !== 'code';
  for (const tab of tabs) {
    const button = text($('tabs'), 'button', tab.label);
    Object.assign(button, {type: 'button', id: 'tab-' + tab.id, title: tab.key});
    button.setAttribute('role', 'tab');
    on(button, 'click', () => open(tab.id));
  }
  function open(v) {
    const f = view && isGraph() ? view.fn(selected) : state.f;
    go({v, z: 0, f: f >= 0 ? same[f] : state.f});
  }

  function show(changes = state) {
    // Another time is another measure of all.
    if ('r' in changes || 'q' in changes) changes = {...changes, m: state.m};
    const has = (...keys) => keys.some(key => key in changes);
    if (has('m', 't')) remeasure();
    if (has('s')) look();
    if (has('c')) { tints.clear(); legend(); }
    if (has('o')) order = null;
    if (has('m', 't', 'v') || has('f') && state.v === 'around') {
      const zoom = state.z;
      if (isGraph() || !view) makeView();
      if (state.v === 'down' && view.exists(zoom)) selected = state.z = zoom;
    }
    for (const tab of tabs) $('tab-' + tab.id).setAttribute('aria-selected', tab.id === state.v);
    $('graph').hidden = !isGraph();
    $('code').hidden = state.v !== 'code';
    $('list').hidden = state.v !== 'table';
    $('flip').hidden = state.v !== 'down';
    $('flip').textContent = state.i ? 'Root below' : 'Root on top';
    $('reset').hidden = !state.z;
    $('event').value = state.m;
    $('color').value = state.c;
    $('scope').value = state.t;
    if (document.activeElement !== $('search')) $('search').value = state.s;
    tellMatched();
    if (isGraph()) {
      if (has('z', 'v', 'i', 'f', 'm', 't')) selected = view.exists(selected) && !has('z') ? selected : state.z;
      arrange();
      if (has('z', 'v', 'i', 't', 'm')) scrollTo(selected, true);
      if (!calm.matches && has('z')) canvas.animate([{opacity: .35}, {opacity: 1}], {duration: 140});
      draw();
      tell(view, selected);
    } else if (state.v === 'code') {
      if (has('v', 'f', 'r')) drawCode();
      tellFunction(state.f);
    } else {
      if (has('v', 's', 'o')) { $('list').scrollTop = 0; focusRow = Math.max(0, has('v') ? sorted().indexOf(state.f) : 0); }
      if (has('v') && focusRow > 10) $('list').scrollTop = (focusRow - 5) * TALL;
      drawTable();
      if (state.f >= 0) tellFunction(state.f); else tell(topDown(tree, measured), 0);
    }
    if (panel) panel.draw();
    publish();
  }
  function scrollTo(h, whole) {
    const frame = frameOf(h);
    if (!frame) return;
    const y = yOf(frame.row), height = graph.clientHeight;
    if (whole && h === 0 && !above) { graph.scrollTop = flipped() ? depth * ROW : 0; return; }
    if (whole && above) { graph.scrollTop = Math.max(0, y - height / 2); return; }
    if (y < graph.scrollTop + ROW) graph.scrollTop = y - ROW;
    if (y + 2 * ROW > graph.scrollTop + height) graph.scrollTop = y + 2 * ROW - height;
  }
  function choose(h) {
    if (h < 0) return;
    selected = h;
    if (!frameOf(h)) { go({z: view.parent(h) < 0 ? 0 : view.parent(h)}); selected = h; }
    scrollTo(h);
    redraw();
    tell(view, h);
    publish();
  }
  // What tests and scripts read.
  function publish() {
    const [total, other] = measured.sum, [samples, others] = measured.samples;
    Object.assign(body.dataset, {view: state.v, zoom: state.z, selected, name: nameOf(view ? view.fn(selected) : -1), total, samples});
    if (time) Object.assign(body.dataset, {other, others});
  }

  // ---- clicks and keys
  on(graph, 'scroll', redraw);
  on($('list'), 'scroll', () => requestAnimationFrame(drawTable));
  on(canvas, 'mousemove', event => {
    const frame = under(event);
    if (frame === hover) return;
    hover = frame;
    canvas.title = frame ? describe(frame.other || view, frame.h).join('\n').slice(0, 1500) : '';
    if (frame) tell(frame.other || view, frame.h); else tell(view, selected);
  });
  on(canvas, 'mouseleave', () => { hover = null; tell(view, selected); });
  on(canvas, 'click', event => {
    const frame = under(event);
    if (!frame) return;
    if (state.v === 'around') return void go({f: (frame.other || view).fn(frame.h), z: 0});
    go({z: frame.h});
  });
  on($('rows'), 'click', event => {
    const row = event.target.closest('[data-at]');
    if (!row) return;
    if (focusRow === +row.dataset.at && state.f === sorted()[focusRow]) return void go({v: 'around'});
    focusRow = +row.dataset.at;
    moveRow(0);
  });
  on($('event'), 'change', () => go({m: $('event').value}));
  on($('color'), 'change', () => go({c: $('color').value}));
  on($('scope'), 'change', () => go({t: $('scope').value, z: 0}));
  on($('search'), 'input', () => go({s: $('search').value}, true));
  on($('flip'), 'click', () => go({i: 1 - state.i}));
  on($('reset'), 'click', () => go({z: 0}));
  on($('help'), 'click', () => $('dialog').showModal());
  on($('close'), 'click', () => $('dialog').close());
  on($('search'), 'keydown', event => {
    if (event.key === 'Enter') { if (state.v === 'table') moveRow(0); else { graph.focus(); nextMatch(1); } event.preventDefault(); }
    if (event.key === 'Escape') { $('search').value = ''; go({s: ''}, true); graph.focus(); }
    event.stopPropagation();
  });
  on($('tabs'), 'keydown', event => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by) return;
    const at = tabs.findIndex(tab => tab.id === state.v), next = tabs[(at + by + tabs.length) % tabs.length];
    open(next.id);
    $('tab-' + next.id).focus();
    event.stopPropagation();
    event.preventDefault();
  });

  function siblingOf(h, by) {
    const parent = view.parent(h);
    if (parent < 0) return -1;
    let before = -1;
    for (let kid = view.first(parent); kid >= 0; kid = view.next(kid)) {
      if (kid === h) return by < 0 ? before : view.next(kid);
      before = kid;
    }
    return -1;
  }
  function widest(h) {
    let best = -1;
    for (let kid = view.first(h); kid >= 0; kid = view.next(kid)) if (best < 0 || view.width(kid) > view.width(best)) best = kid;
    return best;
  }
  const deeper = () => choose(widest(selected)), outer = () => choose(view.parent(selected));
  const graphKeys = {
    ArrowUp: () => flipped() ? deeper() : outer(),
    ArrowDown: () => flipped() ? outer() : deeper(),
    ArrowLeft: () => choose(siblingOf(selected, -1)),
    ArrowRight: () => choose(siblingOf(selected, 1)),
    Home: () => choose(state.z),
    Enter: () => state.v === 'around' ? go({f: view.fn(selected), z: 0}) : go({z: selected}),
    Escape: () => go({z: 0}),
  };
  const page = () => Math.max(1, Math.floor($('list').clientHeight / TALL) - 2);
  const tableKeys = {
    ArrowUp: () => moveRow(-1), ArrowDown: () => moveRow(1), PageUp: () => moveRow(-page()), PageDown: () => moveRow(page()),
    Home: () => moveRow(-1e9), End: () => moveRow(1e9), Enter: () => go({v: 'around', z: 0}),
  };
  const keys = {
    '/': () => $('search').focus(), n: () => nextMatch(1), N: () => nextMatch(-1), i: () => state.v === 'down' && go({i: 1 - state.i}),
    '?': () => $('dialog').showModal(),
  };
  for (const tab of tabs) keys[tab.key] = () => { open(tab.id); (tab.id === 'table' ? moveRow(0) : tab.id === 'code' ? $('code').focus() : graph.focus()); };
  on(document, 'keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || $('dialog').open || /^(SELECT|INPUT)$/.test(event.target.tagName)) return;
    if (event.target.tagName === 'BUTTON' && event.key === 'Enter') return;
    const own = state.v === 'table' ? tableKeys : isGraph() ? graphKeys : {};
    const action = own[event.key] || keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  addEventListener('popstate', () => { load(); show(); });
  addEventListener('resize', () => show({i: state.i}));
  on(dark, 'change', () => show({c: state.c}));

  // ---- what is there to choose
  function fill() {
    for (const one of measures) {
      const option = text($('event'), 'option', one.label);
      option.value = one.id;
    }
    for (const word in colors) text($('color'), 'option', word).value = word;
    $('color').parentElement.hidden = !data.packages.length;
    const scope = $('scope'), option = (parent, value, words) => { text(parent, 'option', words).value = value; };
    option(scope, 'all', 'all threads');
    const processes = new Map();
    data.threads.forEach(([pid, tid, comm], at) => {
      if (!processes.has(pid)) processes.set(pid, []);
      processes.get(pid).push([at, tid, comm]);
    });
    for (const [pid, threads] of processes) {
      const main = threads.find(([, tid]) => tid === pid) || threads[0];
      const group = text(scope, 'optgroup', '');
      group.label = `${main[2]} ${pid}`;
      option(group, 'p' + pid, `${main[2]} ${pid}, all threads`);
      if (threads.length > 1) for (const [at, tid, comm] of threads) option(group, 't' + at, `${comm} ${pid}/${tid}`);
    }
    const help = [
      ['↑ ↓ ← →', 'move through the tree or the table'], ['Enter', 'zoom in; callers and callees of a row'], ['Esc', 'zoom out'],
      ['/', 'search'], ['n N', 'next and previous match'], [tabs.map(tab => tab.key).join(' '), tabs.map(tab => tab.label.toLowerCase()).join(', ')],
      ['i', 'root on top or below'], ['?', 'this help'],
    ];
    if (panel) help.splice(-1, 0, ...panel.help);
    for (const [key, words] of help) { text($('keylist'), 'dt', key); text($('keylist'), 'dd', words); }
  }
  function legend() {
    const box = $('legend');
    box.textContent = '';
    const entry = (color, words) => {
      const item = text(box, 'span', '');
      text(item, 'i', '').style.background = color;
      item.append(words);
    };
    if (two && !isDifference) {
      entry('hsl(212 90% 60%)', '▼ less than elsewhere');
      entry('hsl(0 0% 60%)', 'what chance would do');
      entry('hsl(28 90% 60%)', '▲ more');
      text(box, 'span', 'pale: around a change');
    } else if (isDifference) {
      const hues = data.negate ? [28, 212] : [212, 28], color = hue => `hsl(${hue} 90% 60%)`;
      entry(color(hues[0]), '▼ less, − vanished');
      entry('hsl(0 0% 60%)', 'no change found');
      entry(color(hues[1]), '▲ more, + new');
      text(box, 'span', 'pale: around a change');
      if (data.note) text(box, 'span', data.note);
    } else if (colors[state.c]) {
      const names = colors[state.c], last = state.c === 'package' ? names.length - 1 : names.length;
      names.forEach((name, at) => {
        if (at < PALETTE.length && at < last || at === last) entry(colorOf(paint(names, at), .5), cut(name, 40));
      });
      if (last > PALETTE.length) entry(colorOf(OTHER, .5), 'others');
    } else {
      const seen = new Set(fns.kind);
      KINDS.forEach((kind, number) => {
        if (number && seen.has(number)) entry(colorOf(hues[number], .5), kind);
      });
    }
  }

  // panel.js
  const panel = time && timePanel();
  fill();
  for (const id of ['bar', 'main', 'foot']) $(id).hidden = false;
  load();
  legend();
  show();
  const top = sorted().length, best = [...Array(count).keys()].filter(kindOf).sort((a, b) => sums[0].own[b] - sums[0].own[a]).slice(0, 5);
  Object.assign(body.dataset, {
    nodes: tree.n - 1, functions: top,
    top: JSON.stringify(best.map(f => [nameOf(f), two ? sums[0].own[f] * measured.base[0] : sums[0].own[f]])),
  });
  body.dataset.ready = 1;
  requestAnimationFrame(() => requestAnimationFrame(() => { body.dataset.ms = Math.round(performance.now() - began); }));
})();
