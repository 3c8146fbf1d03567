// The panel of the time: lanes of threads, spells above them, phases, buttons. It is put into the function of app.js, and only where
// there is a time.
function timePanel() {
  const {step, from, to, phases, spells, gaps} = data.time, LANE = 26, AXIS = 16, K = data.kinds.length;
  const chart = $('chart'), ink = chart.getContext('2d'), box = $('lanes');
  const span = words => {
    const [, a, b] = /^(\d+)-(\d+)$/.exec(words) || '';
    return +a < +b && b > from && a < to ? [+a, +b] : null;
  };
  const range = () => span(state.r);
  const other = () => state.q === 'rest' ? 'rest' : state.q === state.r ? null : span(state.q);
  const seconds = ms => (ms / 1000).toFixed(3);
  const kinds = Int8Array.from(cells.node, node => kindOf(tree.fn[node]));
  let width = 0, lanes = [], bins, painted, heat;

  // The five threads with most weight, then all others as one.
  function pick() {
    const sums = data.threads.map(() => 0);
    cells[measure().column].forEach((weight, c) => {
      const [event, thread] = data.series[cells.series[c]];
      if (event === measure().e) sums[thread] += weight;
    });
    const order = [...sums.keys()].filter(thread => sums[thread]).sort((a, b) => sums[b] - sums[a]);
    const own = innerHeight < 500 ? [] : order.slice(0, order.length > 6 ? 5 : 6);
    lanes = own.map(thread => [thread]);
    if (order.length > own.length) lanes.push(order.slice(own.length));
  }
  // Weights by place and kind; behind the kinds of a place is what matches. Threads have places of times, or are left out.
  function binned(size, placesOf) {
    const hit = new Uint8Array(tree.n), weights = time[measure().column], sums = new Float64Array(size * (K + 1));
    if (matched) for (let i = 1; i < tree.n; i++) hit[i] = hit[tree.parent[i]] | matched[tree.fn[i]];
    data.series.forEach(([event, thread], s) => {
      const placeOf = event === measure().e && placesOf(thread);
      if (placeOf) for (let i = time.first[s]; i < time.first[s + 1]; i++) {
        const at = placeOf(time.at[i], i) * (K + 1), cell = time.cell[i];
        sums[at + kinds[cell]] += weights[i];
        if (hit[cells.node[cell]]) sums[at + K] += weights[i];
      }
    });
    return sums;
  }
  function fill() {
    const laneOf = [];
    lanes.forEach((threads, lane) => { for (const thread of threads) laneOf[thread] = lane * width; });
    bins = binned(lanes.length * width, thread => thread in laneOf && (at => laneOf[thread] + Math.min(width - 1, Math.floor(xOf(at)))));
  }
  // The kinds of each place together, and what 99 of 100 places stay below that are not empty.
  const totals = bins => Float64Array.from({length: bins.length / (K + 1)}, (_, at) => bins.subarray(at * (K + 1), at * (K + 1) + K).reduce((a, b) => a + b));
  const fullOf = sums => (sums = sums.filter(Boolean).sort())[Math.floor(sums.length * .99)] || 1;
  // 1, 2 or 5 with zeros behind it, and no less than that.
  const round = least => {
    const ten = 10 ** Math.ceil(Math.log10(least));
    return [ten / 5, ten / 2, ten].find(one => one >= least);
  };
  const length = to - from, shareOf = ms => (ms - from) / length, xOf = ms => shareOf(ms) * width;
  const spread = (element, [a, b]) => Object.assign(element.style, {left: 100 * shareOf(a) + '%', width: 100 * (shareOf(b) - shareOf(a)) + '%'});
  const inks = () => ['--dim', '--mark', '--front'].map(name => getComputedStyle(body).getPropertyValue(name));
  const strength = number => [1, .7, .5][number] || .35;
  function paint() {
    const ratio = devicePixelRatio, height = lanes.length * LANE + AXIS;
    chart.width = width * ratio;
    chart.height = height * ratio;
    chart.style.height = height + 'px';
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [dim, mark] = inks();
    // A full lane is not a whole CPU: on a busy machine no thread gets that.
    const sums = totals(bins), full = fullOf(sums);
    const {unit, column} = measure(), isShare = data.time.cpu && unit === 'ns' && column === 'period', cpu = full * width / length / 1e4;
    $('names').textContent = '';
    $('names').style.paddingTop = $('phases').offsetHeight + 'px';
    lanes.forEach((threads, lane) => {
      const base = (lane + 1) * LANE - 2, [thread, ...more] = threads, one = !more.length, [, tid, comm] = data.threads[thread];
      // Few samples stand for more CPU than a column has.
      text($('names'), 'span', one ? `${tid} ${comm}` : `${threads.length} ${lane ? 'more ' : ''}threads`).title = 'full = ' +
        (isShare ? Math.min(100 * threads.length, cpu).toFixed() + ' % of a CPU' : format(full));
      ink.fillStyle = dim;
      ink.fillRect(0, base, width, 1);
      for (const [of, all] of gaps) if (one && of === thread) for (const [a, b] of all) ink.clearRect(xOf(a), base, xOf(b) - xOf(a), 1);
      for (let x = 0; x < width; x++) {
        const place = lane * width + x, at = place * (K + 1), sum = sums[place], all = Math.min(1, sum / full) * (LANE - 8) / sum;
        if (!sum) continue;
        let y = base;
        for (let k = 0; k < K; k++) {
          const high = bins[at + k] * all;
          if (!high) continue;
          ink.fillStyle = matched ? '#9997' : colorOf(hues[k], .3);
          ink.fillRect(x, y -= high, 1, high);
        }
        const lit = bins[at + K] && Math.max(2, bins[at + K] * all);
        ink.fillStyle = mark;
        ink.fillRect(x, base - lit, 1, lit);
      }
      // The first finding in the strongest colour.
      ink.fillStyle = mark;
      spells.forEach(([, thread, , all], number) => {
        ink.globalAlpha = strength(number);
        if (threads.includes(thread)) for (const [a, b] of all) ink.fillRect(xOf(a), base - LANE + 2, Math.max(2, xOf(b) - xOf(a)), 4);
      });
      ink.globalAlpha = 1;
    });
    ink.fillStyle = dim;
    ink.font = '11px system-ui';
    const tick = round(Math.max(1, 60 * length / width));
    for (let t = Math.ceil(from / tick) * tick; t < to; t += tick) {
      const words = +(t / 1000).toFixed(3) + ' s', wide = ink.measureText(words).width;
      ink.fillText(words, Math.max(0, Math.min(width - wide, xOf(t) - wide / 2)), height - 4);
    }
  }
  function place(id, span) {
    $(id).hidden = !span;
    if (span) spread($(id), span);
  }
  function tell() {
    const r = range(), q = other(), words = ([a, b]) => `${seconds(a)} to ${seconds(b)} s`;
    place('range', r);
    place('other', span(state.q));
    const against = q ? ', against ' + (q === 'rest' ? 'the rest' : words(q)) : state.q ? ', kept: choose another' : '';
    $('chosen').textContent = (r ? `${words(r)}: ${r[1] - r[0]} ms, ${format(Math.round(measured.sum[0]))}${against}` : 'Drag over the lanes to choose a time') + (step > 1 ? ` (steps of ${step} ms)` : '');
    $('chosen').title = r ? `--time +${seconds(r[0])},+${seconds(r[1])}` : '';
    for (const button of buttons) button.hidden = !r;
    buttons[3].textContent = state.q ? 'Alone' : 'Against rest';
  }
  function draw() {
    // What is beside the lanes first: it leaves them the rest of the width.
    if (heat) heat.arrange();
    const wide = box.clientWidth, look = [wide, state.m, state.s, innerHeight < 500, devicePixelRatio, dark.matches].join();
    if (look !== painted && wide) {
      painted = look;
      width = wide;
      pick();
      fill();
      paint();
    }
    tell();
    if (heat) heat.draw();
  }

  // ---- choosing
  function shift(by) {
    const r = range();
    if (!r) return;
    const [a, b] = r.map(one => one + by * (r[1] - r[0])), next = `${a}-${b}`;
    if (span(next)) go({r: next}, true);
  }
  // The next one in order of time, from the first one again behind the last.
  function onward(all) {
    const r = range(), next = all.find(one => r && one[0] > r[0]) || all[0];
    if (next) choose(next, next.of);
  }
  // A process of one thread has no threads to choose.
  const scopeOf = thread => $('scope').querySelector(`[value=t${thread}]`) ? 't' + thread : 'p' + data.threads[thread][0];
  const choose = ([a, b], t = state.t) => go({r: `${a}-${b}`, t, z: 0});
  const against = () => range() && go({q: state.q ? '' : 'rest'});
  const keep = () => range() && go({q: state.r});
  const inOrder = spells.flatMap(([, thread, , all]) => all.map(one => Object.assign(one, {of: scopeOf(thread)}))).sort((a, b) => a[0] - b[0]);
  Object.assign(keys, {
    r: against, R: keep, '[': () => shift(-1), ']': () => shift(1), 0: () => go({r: '', q: ''}),
    p: () => onward(phases), x: () => onward(inOrder),
  });
  function button(parent, words, title, action) {
    const made = text(parent, 'button', words);
    made.title = title;
    on(made, 'click', action);
    return made;
  }
  const buttons = [['◀', '[', keys['[']], ['▶', ']', keys[']']], ['Whole', '0', keys[0]], ['', 'r', against], ['Keep', 'R: compare the next with it', keep]].map(one => button($('moves'), ...one));
  for (const [words, thread, longest] of spells) {
    button($('spells'), words, 'x: long in one function without a break; two calls may be one', () => choose(longest, scopeOf(thread)));
  }
  if (phases.length > 1) phases.forEach(([a, b, name], number) => {
    const words = `${number + 1} ${name}`;
    spread(button($('phases'), words, `p: ${words}, ${seconds(a)} to ${seconds(b)} s`, () => choose([a, b])), [a, b]);
  });
  else $('phases').hidden = true;

  // ---- dragging
  let start = null, isDue = false, timer = 0;
  const timeAt = event => {
    const share = (event.clientX - box.getBoundingClientRect().left) / width;
    return Math.round((from + Math.max(0, Math.min(1, share)) * length) / step) * step;
  };
  on(box, 'pointerdown', event => {
    if (!event.button) box.setPointerCapture(event.pointerId);
    start = event.button ? null : timeAt(event);
  });
  on(box, 'pointermove', event => {
    if (start === null) return;
    const now = timeAt(event);
    if (now === start) return;
    state.r = [start, now].sort((a, b) => a - b).join('-');
    clearTimeout(timer);
    // All but the tree from the leaves is fast enough for each frame.
    if (state.v === 'up') {
      tell();
      timer = setTimeout(() => show({r: 1}), 150);
    } else if (!isDue) {
      isDue = true;
      requestAnimationFrame(() => { isDue = false; show({r: 1}); });
    }
  });
  on(box, 'lostpointercapture', event => {
    const isClick = Math.abs(timeAt(event) - start) < 3 * length / width;
    start = null;
    if (isClick) go({r: '', q: state.q === 'rest' ? '' : state.q}); else save();
  });
  $('time').hidden = false;
  // heat.js
  return {
    draw, range, other,
    // What the address says may be of another page.
    check: () => {
      if (!range()) state.r = '';
      if (state.q !== 'rest' && !span(state.q)) state.q = '';
    },
    help: [
      ['r', 'against the rest'], ['R', 'keep it, and compare the next one with it'], ['[ ]', 'time before, after'],
      ['0', 'the whole time'], ['x p', 'next spell, next phase'], ...(heat ? heat.help : []),
    ],
  };
}
