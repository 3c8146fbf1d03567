  // The heat map: a column is a second, or the time in which spells come back, and its rows are the parts of that from below. So a
  // place is a slot of time, and these follow each other. It is put into the panel, and only where data.time has a period.
  const {period} = data.time, ROWS = 40, TALL = 3, figure = text($('time'), 'div', ''), map = text(figure, 'canvas', ''), note = text(figure, 'p', '');
  const colours = map.getContext('2d');
  let wide, columns, slot, origin, first, cursor = 0, isHere = false, slots, lit, filled;
  figure.id = 'heat';
  map.id = 'map';
  map.tabIndex = 0;
  note.setAttribute('role', 'status');
  const some = spells.some(of => of[4]);
  const timeOf = number => Math.max(from, Math.min(to, Math.round((origin + number * slot) / step) * step));
  const slotOf = at => Math.floor((at - origin) / slot);
  heat = {
    // No slot is shorter than a step, and no column smaller than two pixels.
    arrange() {
      const most = Math.min(260, innerWidth * .3), every = period * round(Math.max(1, 2 * length / (most - 4) / period, ROWS * step / period));
      slot = every / ROWS;
      origin = from - from % every;
      columns = Math.ceil((to - origin) / every);
      wide = Math.min(14, Math.floor(most / columns));
      map.style.width = columns * wide + 'px';
    },
    draw() {
      const look = [painted, columns, state.t].join(), size = columns * ROWS;
      if (look !== filled) {
        filled = look;
        // Steps that are nearly as long as slots would make a pattern of their own: each is spread over its length.
        slots = binned(size, thread => inScope(thread) && ((at, i) => slotOf(at + i * .618 % 1 * step)));
        lit = slots.filter((_, at) => at % (K + 1) === K);
        const most = fullOf(lit);
        lit = lit.map(weight => Math.min(1, weight / most));
        // Of spells those that come back, if there are any.
        if (!matched) spells.forEach(([, thread, , all, isRegular], number) => {
          if (inScope(thread) && (isRegular || !some)) for (const [a, b] of all) lit.fill(strength(number), slotOf(a), slotOf(b - 1) + 1);
        });
      }
      const ratio = devicePixelRatio, sums = totals(slots), full = fullOf(sums), r = range();
      map.width = columns * wide * ratio;
      map.height = ROWS * TALL * ratio;
      colours.scale(ratio, ratio);
      const style = getComputedStyle(body), box = number => [Math.floor(number / ROWS) * wide, (ROWS - 1 - number % ROWS) * TALL, wide, TALL];
      const put = (color, strength, number) => {
        colours.fillStyle = color;
        colours.globalAlpha = strength * (!r || timeOf(number + 1) > r[0] && timeOf(number) < r[1] ? 1 : .25);
        colours.fillRect(...box(number));
      };
      sums.forEach((sum, number) => {
        put(style.getPropertyValue('--dim'), Math.min(1, sum / full) * (matched ? .3 : .6), number);
        put(style.getPropertyValue('--mark'), lit[number], number);
      });
      if (isHere) {
        colours.globalAlpha = 1;
        colours.strokeStyle = style.getPropertyValue('--front');
        colours.strokeRect(...box(cursor));
      }
      const second = ms => +(ms / 1000).toFixed(3) + ' s', at = timeOf(cursor);
      note.textContent = first && first[1] === state.r ? `from ${second(timeOf(first[0]))}: choose its end` :
        isHere ? `${second(at)}: ${format(Math.round(sums[cursor]))}` : `Columns of ${second(slot * ROWS)}, from below`;
    },
    help: [['Tab', 'to the heat map; Enter chooses begin and end there']],
  };
  function point(number, is = true) {
    cursor = Math.max(0, Math.min(columns * ROWS - 1, number));
    isHere = is;
    heat.draw();
  }
  // The first choice is a slot, the second goes on to another.
  function take(number) {
    const [a, b] = first && first[1] === state.r ? [first[0], number].sort((a, b) => a - b) : [number, number];
    const r = `${timeOf(a)}-${timeOf(b + 1)}`;
    first = first && first[1] === state.r ? null : [number, r];
    go({r});
  }
  const under = event => {
    const box = map.getBoundingClientRect(), share = (part, all) => Math.max(0, Math.min(all - 1, Math.floor(part * all)));
    return share((event.clientX - box.left) / box.width, columns) * ROWS + ROWS - 1 - share((event.clientY - box.top) / box.height, ROWS);
  };
  on(map, 'pointermove', event => point(under(event)));
  on(map, 'pointerleave', () => point(cursor, false));
  on(map, 'focus', () => point(cursor));
  on(map, 'blur', () => point(cursor, false));
  on(map, 'click', event => { point(under(event)); take(cursor); });
  on(map, 'keydown', event => {
    const by = {ArrowUp: 1, ArrowDown: -1, ArrowLeft: -ROWS, ArrowRight: ROWS}[event.key];
    if (by) point(cursor + by); else if (event.key === 'Enter') take(cursor); else return;
    event.preventDefault();
    event.stopPropagation();
  });
