  // The heat map: a column is a second, or the time in which spells come back, and its rows are the parts of that from below. So a
  // place is a slot of time, and these follow each other. It is put into the panel, and only where data.time has a period.
  const ROWS = 40, TALL = 3, figure = text($('time'), 'div', '', 'heat'), map = text(figure, 'canvas', ''), note = text(figure, 'p', '');
  const pen = map.getContext('2d');
  let wide, columns, slot, origin, first, filled, sums, full, lit, spot = 0, here = false;
  Object.assign(map, {tabIndex: 0, role: 'application', ariaLabel: 'Heat map: arrows move, Enter chooses begin and end'});
  note.role = 'status';
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  const timeOf = number => clamp(Math.round((origin + number * slot) / step) * step, from, to);
  const slotOf = at => Math.floor((at - origin) / slot);
  const isOpen = () => first && first[1] === state.r;
  function fillHeat() {
    // Steps that are nearly as long as slots would make a pattern of their own: each is spread over its length.
    const all = binned(columns * ROWS, thread => inScope(thread) && ((at, i) => slotOf(at + i * .618 % 1 * step)));
    lit = all.filter((_, at) => at % (K + 1) === K);
    const most = fullOf(lit);
    lit = lit.map(weight => Math.min(1, weight / most));
    sums = totals(all);
    full = fullOf(sums);
    // Of spells those that come back, if there are any.
    if (!matched) spells.forEach(([, thread, , all, isRegular], number) => {
      if (inScope(thread) && (isRegular || !spells.some(of => of[4]))) for (const [a, b] of all) lit.fill(strength(number), slotOf(a), slotOf(b - 1) + 1);
    });
  }
  heat = {
    // No slot is shorter than a step, and no column smaller than two pixels.
    arrange() {
      const {period} = data.time, most = Math.min(260, innerWidth * .3);
      const every = period * round(Math.max(1, 2 * length / (most - 4) / period, ROWS * step / period));
      slot = every / ROWS;
      origin = from - from % every;
      columns = Math.ceil((to - origin) / every);
      wide = Math.min(14, Math.floor(most / columns));
      map.style.width = columns * wide + 'px';
    },
    draw() {
      const look = [painted, columns, state.t].join(), ratio = devicePixelRatio, r = range();
      if (look !== filled) {
        filled = look;
        fillHeat();
      }
      map.width = columns * wide * ratio;
      map.height = ROWS * TALL * ratio;
      pen.scale(ratio, ratio);
      const [dim, mark, front] = inks();
      const box = number => [Math.floor(number / ROWS) * wide, (ROWS - 1 - number % ROWS) * TALL, wide, TALL];
      const put = (color, alpha, number) => {
        pen.fillStyle = color;
        pen.globalAlpha = alpha;
        if (alpha) pen.fillRect(...box(number));
      };
      sums.forEach((sum, number) => {
        const is = !r || timeOf(number + 1) > r[0] && timeOf(number) < r[1] ? 1 : .25;
        put(dim, Math.min(1, sum / full) * (matched ? .3 : .6) * is, number);
        put(mark, lit[number] * is, number);
      });
      if (here) {
        pen.globalAlpha = 1;
        pen.strokeStyle = front;
        pen.strokeRect(...box(spot));
      }
      const second = ms => +(ms / 1000).toFixed(3) + ' s', words = second(timeOf(spot));
      note.textContent = isOpen() ? `from ${second(timeOf(first[0]))}: choose its end` :
        here ? `${words}: ${format(Math.round(sums[spot]))}` : `Columns of ${second(slot * ROWS)}, from below`;
    },
    help: [['Tab', 'to the heat map; Enter chooses begin and end']],
  };
  function point(number, is = true) {
    spot = clamp(number, 0, columns * ROWS - 1);
    here = is;
    heat.draw();
  }
  // The first choice is a slot, the second goes on to another one.
  function take() {
    const [a, b] = isOpen() ? [first[0], spot].sort((a, b) => a - b) : [spot, spot], r = `${timeOf(a)}-${timeOf(b + 1)}`;
    first = isOpen() ? null : [spot, r];
    go({r});
  }
  function follow(event) {
    const box = map.getBoundingClientRect(), share = (part, all) => clamp(Math.floor(part * all), 0, all - 1);
    point(share((event.clientX - box.left) / box.width, columns) * ROWS + ROWS - 1 - share((event.clientY - box.top) / box.height, ROWS));
  }
  on(map, 'pointermove', follow);
  for (const [what, is] of [['focus', true], ['blur', false], ['pointerleave', false]]) on(map, what, () => point(spot, is));
  on(map, 'click', event => { follow(event); take(); });
  on(map, 'keydown', event => {
    const by = {ArrowUp: 1, ArrowDown: -1, ArrowLeft: -ROWS, ArrowRight: ROWS}[event.key];
    if (by) point(spot + by); else if (event.key === 'Enter') take(); else return;
    event.preventDefault();
    event.stopPropagation();
  });
