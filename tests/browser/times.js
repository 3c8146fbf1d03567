// Measures a page of `pjit flamegraph` in Chromium: node times.js CHROMIUM PAGE [TURNS]. Prints JSON: the number of nodes, when the
// first drawing is there, and of zooming and searching what a turn takes until it is drawn, as milliseconds of time (median)
// and of CPU (mean of the page's thread, which other work on the machine changes little).
'use strict';
const puppeteer = require('puppeteer-core');

// In the page: does it and waits for the second frame behind it.
async function turns(what, count) {
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const canvas = document.getElementById('canvas'), graph = document.getElementById('graph'), search = document.getElementById('search');
  const words = ['alloc', 'a', 'e', 'hash'], times = [];
  const zoom = turn => {
    if (turn % 2) return document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
    const box = canvas.getBoundingClientRect(), place = {clientX: box.left + 400, clientY: box.top + graph.clientHeight - 80};
    canvas.dispatchEvent(new MouseEvent('click', {bubbles: true, ...place}));
  };
  const look = turn => {
    search.value = words[turn % words.length];
    search.dispatchEvent(new Event('input', {bubbles: true}));
  };
  for (let turn = 0; turn < count; turn++) {
    const began = performance.now();
    (what === 'zoom' ? zoom : look)(turn);
    await frame();
    await frame();
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[count >> 1];
}

(async () => {
  const [chromium, file, count] = process.argv.slice(2);
  const browser = await puppeteer.launch({executablePath: chromium, args: ['--no-sandbox', '--disable-gpu'], protocolTimeout: 240000});
  const page = await browser.newPage();
  await page.setViewport({width: 1280, height: 800});
  await page.goto('file://' + file);
  await page.waitForSelector('body[data-ms]', {timeout: 120000});
  const answer = await page.evaluate(() => ({nodes: +document.body.dataset.nodes, first: +document.body.dataset.ms}));
  const session = await page.createCDPSession();
  await session.send('Performance.enable', {timeDomain: 'threadTicks'});
  const busy = async () => (await session.send('Performance.getMetrics')).metrics.find(one => one.name === 'TaskDuration').value;
  for (const what of ['zoom', 'search']) {
    const before = await busy(), turn = +count || 20;
    answer[what] = {ms: await page.evaluate(turns, what, turn)};
    answer[what].cpu = 1000 * (await busy() - before) / turn;
  }
  await browser.close();
  process.stdout.write(JSON.stringify(answer));
})().catch(error => {
  process.stderr.write(String(error && error.stack || error) + '\n');
  process.exit(1);
});
