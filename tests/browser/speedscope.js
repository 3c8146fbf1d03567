// Opens a file in speedscope, in Chromium and without a network, and prints what its sandwich view has as JSON:
// node speedscope.js CHROMIUM FOLDER_OF_SPEEDSCOPE FILE.
'use strict';
const fs = require('fs');
const path = require('path');
const puppeteer = require('puppeteer-core');

(async () => {
  const [chromium, folder, file] = process.argv.slice(2);
  // As speedscope's own command does it: a script beside the file hands it over.
  const script = file + '.js', name = JSON.stringify(path.basename(file));
  fs.writeFileSync(script, `speedscope.loadFileFromBase64(${name}, "${fs.readFileSync(file).toString('base64')}")`);
  const browser = await puppeteer.launch({
    executablePath: chromium,
    // It draws with WebGL.
    args: ['--no-sandbox', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist', '--allow-file-access-from-files'],
    protocolTimeout: 240000,
  });
  const page = await browser.newPage();
  const answer = {errors: [], requests: [], title: '', rows: []};
  page.on('pageerror', error => answer.errors.push(String(error)));
  page.on('dialog', dialog => { answer.errors.push('dialog: ' + dialog.message()); dialog.dismiss(); });
  page.on('request', request => answer.requests.push(request.url()));
  await page.setViewport({width: 1280, height: 800});
  await page.goto('file://' + folder + '/dist/release/index.html#localProfilePath=' + script);
  await page.waitForFunction(() => document.body.innerText.includes('Left Heavy'), {timeout: 120000});
  await page.keyboard.press('3');
  // The head comes first.
  await page.waitForFunction(() => document.querySelectorAll('table tr').length > 1, {timeout: 60000});
  answer.title = await page.evaluate(() => document.title + ' ' + document.body.innerText.split('Sandwich').pop().slice(0, 200));
  answer.rows = await page.evaluate(() => [...document.querySelectorAll('table tr')].map(row => [...row.children].map(cell => cell.textContent)));
  console.log(JSON.stringify(answer));
  await browser.close();
})().catch(error => { console.error(error); process.exit(1); });
