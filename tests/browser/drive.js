// Drives a page in Chromium and prints what is seen as JSON: node drive.js CHROMIUM PAGE [STEP...].
//
// Steps: key:K, type:TEXT, click:SELECTOR, at:X,Y (a click in the graph), size:WxH, dark, light, still (reduced motion),
// hash:TEXT (the page opened anew there), select:SELECTOR=VALUE, shot:FILE, see (adds to the answer), back, wait:MS,
// drag:A,B (over the lanes, in shares of their width; with a + behind it the pointer stays down), heat:COLUMN,ROW (a click in
// the heat map, at a pixel of its width and a row from below), focus:SELECTOR, all (all rows of the table, with what their
// weights are).
'use strict';
const puppeteer = require('puppeteer-core');

async function see(page) {
  return page.evaluate(() => ({
    ...document.body.dataset,
    hash: location.hash,
    detail: document.getElementById('detail').textContent,
    focus: document.activeElement.id || document.activeElement.tagName,
    background: getComputedStyle(document.body).backgroundColor,
    wide: document.documentElement.scrollWidth,
    rows: [...document.querySelectorAll('#rows tr[data-at]')].slice(0, 8).map(row => [...row.children].map(cell => cell.textContent)),
    code: [...document.querySelectorAll('#code tr')].map(row => [...row.children].map(cell => cell.textContent)),
    tabs: [...document.querySelectorAll('#tabs button')].map(tab => tab.textContent),
    sorted: [...document.querySelectorAll('#heads th')].map(head => head.getAttribute('aria-sort')).join(),
    legend: [...document.querySelectorAll('#legend span')].map(entry => entry.textContent),
    labelled: document.getElementById('canvas').getAttribute('aria-label'),
    dialog: document.getElementById('dialog').open,
    scripts: document.scripts.length,
    images: document.images.length,
    panel: document.getElementById('time') && {
      chosen: document.getElementById('chosen').textContent,
      names: [...document.querySelectorAll('#names span')].map(name => [name.textContent, name.title]),
      spells: [...document.querySelectorAll('#spells button')].map(button => button.textContent),
      phases: [...document.querySelectorAll('#phases button')].map(button => button.textContent),
      high: document.getElementById('time').offsetHeight,
      stretched: document.getElementById('chart').width / document.getElementById('lanes').clientWidth / devicePixelRatio,
    },
  }));
}

// The heat map: its size, what is below it, and by pixel of its width the rows, from below, that have the colour of marks.
async function heat(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector('.heat canvas');
    if (!canvas || !canvas.offsetWidth) return null;
    const [wide, high] = [canvas.offsetWidth, canvas.offsetHeight];
    // Of a copy: what is read often is drawn in another way.
    const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
    const ink = copy.getContext('2d', {willReadFrequently: true});
    ink.drawImage(canvas, 0, 0);
    const {data} = ink.getImageData(0, 0, canvas.width, canvas.height), rows = [...Array(40).keys()];
    const isMarked = (x, row) => {
      const at = 4 * (Math.floor((39.5 - row) * canvas.height / 40) * canvas.width + Math.floor((x + .5) * canvas.width / wide));
      return data[at + 3] > 150 && data[at] > data[at + 1] + 60;
    };
    return {wide, high, note: canvas.nextSibling.textContent, marked: [...Array(wide).keys()].map(x => rows.filter(row => isMarked(x, row)))};
  });
}

// By function and object: its weights in words, and the names of these columns.
async function all(page) {
  return page.evaluate(() => {
    const heads = [...document.querySelectorAll('#heads th')].map(head => head.textContent.replace(/ [▾▴]$/, ''));
    const rows = [...document.querySelectorAll('#rows tr[data-at]')].map(row => [...row.children].map(cell => cell.title));
    return {heads, count: +document.getElementById('table').getAttribute('aria-rowcount') - 1, table: rows};
  });
}

(async () => {
  const [chromium, file, ...steps] = process.argv.slice(2);
  const browser = await puppeteer.launch({executablePath: chromium, args: ['--no-sandbox', '--disable-gpu'], protocolTimeout: 240000});
  const page = await browser.newPage();
  const answer = {errors: [], requests: [], seen: []};
  page.on('console', message => answer.errors.push(message.text()));
  page.on('pageerror', error => answer.errors.push(String(error)));
  page.on('dialog', dialog => { answer.errors.push('dialog: ' + dialog.message()); dialog.dismiss(); });
  page.on('request', request => answer.requests.push(request.url()));
  const settle = () => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done()))));
  const open = async hash => {
    await page.goto('about:blank');
    await page.goto('file://' + file + (hash || ''));
    await page.waitForSelector('body[data-ms], body[data-failed]', {timeout: 120000});
  };
  await page.setViewport({width: 1280, height: 800});
  await open();
  const steppers = {
    key: key => page.keyboard.press(key),
    type: text => page.keyboard.type(text),
    click: selector => page.click(selector),
    at: async place => {
      const [x, y] = place.split(',').map(Number), box = await (await page.$('#canvas')).boundingBox();
      await page.mouse.click(box.x + (x < 0 ? box.width + x : x), box.y + (y < 0 ? box.height + y : y));
    },
    size: size => page.setViewport({width: +size.split('x')[0], height: +size.split('x')[1]}),
    dark: () => page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'dark'}]),
    light: () => page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}]),
    still: () => page.emulateMediaFeatures([{name: 'prefers-reduced-motion', value: 'reduce'}]),
    hash: hash => open('#' + hash),
    select: words => { const at = words.indexOf('='); return page.select(words.slice(0, at), words.slice(at + 1)); },
    shot: path => page.screenshot({path}),
    see: async () => answer.seen.push({...await see(page), heat: await heat(page)}),
    all: async () => answer.seen.push(await all(page)),
    drag: async places => {
      const box = await (await page.$('#lanes')).boundingBox(), [a, b] = places.split(',').map(share => box.x + box.width * parseFloat(share));
      await page.mouse.move(a, box.y + 20);
      await page.mouse.down();
      for (let step = 1; step <= 4; step++) await page.mouse.move(a + (b - a) * step / 4, box.y + 20);
      if (!places.endsWith('+')) await page.mouse.up();
    },
    heat: async place => {
      const [x, row] = place.split(',').map(Number), box = await (await page.$('.heat canvas')).boundingBox();
      await page.mouse.click(box.x + x + .5, box.y + (39.5 - row) * box.height / 40);
    },
    focus: selector => page.focus(selector),
    back: () => page.goBack(),
    wait: ms => new Promise(done => setTimeout(done, +ms)),
    time: async code => answer.seen.push({ms: await page.evaluate('(() => {const t = performance.now();' + code + ';return performance.now() - t})()')}),
  };
  for (const step of steps) {
    const at = step.indexOf(':'), name = at < 0 ? step : step.slice(0, at);
    await steppers[name](at < 0 ? '' : step.slice(at + 1));
    await settle();
  }
  await browser.close();
  process.stdout.write(JSON.stringify(answer));
})().catch(error => {
  process.stderr.write(String(error && error.stack || error) + '\n');
  process.exit(1);
});
