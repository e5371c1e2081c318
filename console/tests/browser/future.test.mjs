// The map of the future: bars that are right at every scale, herds with how long they take, dragging and keys.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Server, browse, open, settled } from './stage.mjs';

const HOUR = 3_600_000;
let browser, server;

before(async () => {
  [server, browser] = await Promise.all([new Server().start(), browse()]);
  const tasks = [];
  for (let n = 0; n < 120; n++) tasks.push({ topic: 'order', id: `o${n}`, delay: `${n}m` });
  for (let n = 0; n < 600; n++) tasks.push({ topic: 'coupon', id: `c${n}`, delay: '31m' });
  for (let n = 0; n < 30; n++) tasks.push({ topic: 'renewal', id: `r${n}`, delay: `${n * 24 + 30}h` });
  for (let n = 0; n < 300; n++) tasks.push({ topic: 'expiry', id: `e${n}`, delay: `${400 * 24}h` });
  await server.batch(tasks);
  await server.ask('PATCH', '/v1/queues/coupon', { rate: { per_second: 5 } });
});

after(async () => {
  await browser.close();
  await server.end();
});

const total = async (page) => Number((await page.textContent('.figure-value')).replaceAll(',', ''));

/** What the API says is due in what the address names. */
async function due(page) {
  const query = new URL(page.url()).searchParams;
  const { count, tasks } = await server.ask('GET', `/v1/tasks?limit=1000&from=${encodeURIComponent(query.get('from'))}&until=${encodeURIComponent(query.get('until'))}`);
  return count ?? tasks.length;
}

test('each span shows what falls due in it', async () => {
  const page = await open(browser, server);
  for (const [span, least, most] of [['hour', 655, 670], ['day', 715, 725], ['week', 720, 735], ['month', 745, 752], ['year', 745, 752]]) {
    await page.show(`future?span=${span}`);
    const shown = await total(page);
    assert.ok(shown >= least && shown <= most, `${span}: ${shown}`);
    assert.ok((await page.locator('.chart-slot').count()) <= 130);
  }
  await page.show(`future?from=${new Date(Date.now() + 398 * 24 * HOUR).toISOString()}&until=${new Date(Date.now() + 402 * 24 * HOUR).toISOString()}`);
  assert.equal(await total(page), 300, 'also beyond a year, by the hour');
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a herd is marked, with its topic and how long it takes, and leads to its tasks', async () => {
  const page = await open(browser, server);
  await page.show('future');
  const herd = page.locator('.needs li').first();
  const text = await herd.textContent();
  assert.doesNotMatch(text, /would expire/);
  assert.match(text, /coupon/);
  assert.match(text, /600 tasks/);
  assert.match(text, /Takes 2 m to hand out at 5\/s/);
  await herd.locator('button').click();
  await page.waitForSelector('.detail');
  await page.click('.detail >> text=See tasks');
  await settled(page);
  assert.match(page.url(), /topic=coupon/);
  assert.match(await page.textContent('tbody'), /coupon/);
  assert.doesNotMatch(await page.textContent('tbody'), /renewal|order/);
  await server.ask('PATCH', '/v1/topics/coupon', { ttl: '1m30s' });
  await page.show('future');
  await page.waitForSelector('.needs li >> text=With a time to live of 1m30s, 150 of them would expire before.');
  await page.context().close();
});

test('dragging, clicking and keys lead closer and back', async () => {
  const page = await open(browser, server);
  await page.show('future?span=day');
  const box = await page.locator('.chart-svg').boundingBox();
  await page.mouse.move(box.x + 2, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.2, box.y + 100, { steps: 4 });
  await page.waitForSelector('.chart-brush');
  await page.mouse.up();
  await page.waitForFunction(() => location.search.includes('from='));
  await settled(page);
  const length = () => Date.parse(new URL(page.url()).searchParams.get('until')) - Date.parse(new URL(page.url()).searchParams.get('from'));
  assert.ok(length() < 6.5 * HOUR && length() > 3 * HOUR, String(length()));
  const near = length();
  await page.keyboard.press('-');
  await page.waitForFunction((near) => Date.parse(new URLSearchParams(location.search).get('until')) - Date.parse(new URLSearchParams(location.search).get('from')) > near * 1.5, near);
  await page.keyboard.press('+');
  await page.keyboard.press('+');
  await page.keyboard.press('ArrowRight');
  await page.waitForTimeout(400);
  await settled(page);
  assert.ok(Math.abs((await total(page)) - (await due(page))) <= 4, 'slots begin at full minutes');
  await page.show('future');
  await page.locator('.chart-svg').click({ position: { x: 5, y: 100 } });
  await page.waitForSelector('.detail');
  await page.context().close();
});

test('the table has the same numbers, by the key t', async () => {
  const page = await open(browser, server);
  await page.show('future');
  const shown = await total(page);
  await page.keyboard.press('t');
  await page.waitForSelector('.section tbody tr');
  const sums = await page.$$eval('.section tbody tr', (rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => Number(cell.textContent.replace(/\D/g, '')))));
  assert.equal(sums.reduce((sum, [all]) => sum + all, 0), shown);
  for (const [all, ...topics] of sums) assert.equal(topics.reduce((one, other) => one + other, 0), all, 'topics add up');
  assert.match(page.url(), /view=table/);
  await page.keyboard.press('t');
  await page.waitForSelector('.chart-svg');
  await page.context().close();
});
