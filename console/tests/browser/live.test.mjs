// What the server tells of itself: its pulse, who holds what, why a task is still there, who did what.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Server, browse, fill, open } from './stage.mjs';

let browser, server;

before(async () => {
  [server, browser] = await Promise.all([new Server().start(), browse()]);
  await fill(server);
});

after(async () => {
  await browser.close();
  await server.end();
});

/** Says to a page that nobody sees it, or that somebody does. */
const hide = (page, isHidden) => page.evaluate((isHidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event('visibilitychange'));
}, isHidden);

const isPulse = (request) => request.url().includes('/v1/pulse');

test('the overview follows the pulse, and a hidden tab has no stream', async () => {
  const page = await open(browser, server);
  await page.show('');
  const scheduled = page.locator('.figure', { hasText: 'Scheduled' });
  await page.waitForFunction(() => /\/s/.test(document.querySelector('.figures').textContent));
  const { happened } = await server.ask('GET', '/v1/stats');
  await server.batch([...Array(250)].map((_, n) => ({ topic: 'order-unpaid', id: `pulse-${n}`, delay: '50m', body: n })));
  const wanted = (happened.scheduled + 250).toLocaleString('en');
  await page.waitForFunction((wanted) => document.querySelector('.figures').textContent.includes(wanted), wanted);
  assert.match(await scheduled.textContent(), /[1-9]\S*\/s/);
  assert.ok((await page.locator('.figures .spark polyline').count()) >= 3);
  // Of each topic, what it got done: something of some, nothing of others.
  await page.waitForSelector('tr:has-text("invoice") .row-spark >> text=52 done');
  await page.waitForSelector('tr:has-text("coupon-end") .row-spark >> text=0 done');
  const top = async (topic) => Math.min(...(await page.getAttribute(`tr:has-text("${topic}") .row-spark polyline`, 'points')).split(' ').map((point) => Number(point.split(',')[1])));
  assert.deepEqual([await top('invoice'), await top('coupon-end')], [2, 19], 'a line that is up, and one that is not');
  const closed = page.waitForEvent('requestfailed', isPulse);
  await hide(page, true);
  await closed;
  let asked = 0;
  page.on('request', (request) => (asked += isPulse(request) ? 1 : 0));
  await page.waitForTimeout(2500);
  assert.equal(asked, 0, 'nobody looks, nobody asks');
  const opened = page.waitForEvent('request', isPulse);
  await hide(page, false);
  await opened;
  const left = page.waitForEvent('requestfailed', isPulse);
  await page.click('.navigation >> text=Topics');
  await left;
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a queue shows what is ready in its order, what is out, and who is there', async () => {
  const waiting = server.ask('POST', '/v1/reserve', { queues: ['nothing-here'], consumer: 'worker-9', wait: '30s' }).catch(() => {});
  const page = await open(browser, server);
  await page.show('queues/sms');
  const { tasks } = await server.ask('GET', '/v1/queues/sms/deliveries?state=ready&limit=50');
  assert.ok(tasks.length > 3);
  const shown = await page.$$eval('tbody th a.name', (links) => links.map((link) => link.textContent));
  assert.deepEqual(shown, tasks.map(({ id }) => id));
  await page.show('queues/sms?tab=leased');
  assert.match(await page.textContent('tbody'), /worker-3/);
  await page.show('queues/sms?tab=consumers');
  assert.match(await page.textContent('tbody'), /worker-3.*3/s);
  await page.show('consumers');
  assert.match(await page.textContent('.page'), /worker-3/);
  await page.click('.choice >> text=Waiting');
  await page.waitForFunction(() => document.querySelector('.page').textContent.includes('worker-9'));
  assert.deepEqual(page.wrong, []);
  await page.context().close();
  void waiting;
});

test('a task says what has happened to it, what is to come, and why it is still there', async () => {
  const page = await open(browser, server);
  await page.show('tasks/sms/sms-0');
  const line = await page.textContent('.timeline');
  for (const words of ['scheduled', 'Attempt 1', 'timeout: connect', 'Given up']) assert.ok(line.includes(words), `${words}: ${line}`);
  await page.show('tasks/order-unpaid/order-7000');
  assert.match(await page.textContent('.about'), /waits for its time/);
  assert.match(await page.textContent('.timeline .ahead'), /comes due/);
  const { tasks: [held] } = await server.ask('GET', '/v1/queues/sms/deliveries?state=leased&limit=1');
  await page.show(`tasks/sms/${held.id}`);
  assert.match(await page.textContent('.about'), /worker-3 has it/);
  await server.ask('POST', '/v1/queues/sms/pause', { reason: 'provider down' });
  const { tasks: [ready] } = await server.ask('GET', '/v1/queues/sms/deliveries?state=ready&limit=1');
  await page.show(`tasks/sms/${ready.id}`);
  assert.match(await page.textContent('.about'), /sms is paused.*provider down/);
  await server.ask('POST', '/v1/queues/sms/resume');
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('who did what is listed, and found by what it was', async () => {
  const page = await open(browser, server);
  await page.show('tasks/order-unpaid/order-7010');
  await page.keyboard.press('c');
  await page.waitForSelector('.toast.good');
  await page.show('audit');
  assert.match(await page.textContent('tbody'), /cancel.*order-7010/s, 'an act by hand is noted');
  assert.match(await page.textContent('tbody'), /pause-queue.*sms.*provider down/s);
  await page.fill('.filters input >> nth=1', 'pause-queue');
  await page.locator('.filters input >> nth=1').blur();
  await page.waitForFunction(() => !document.querySelector('tbody').textContent.includes('order-7010'));
  assert.match(page.url(), /what=pause-queue/);
  await page.context().close();
});

test('a server that was started anew is told of, and while it is away the page is grey and says from when it is', async () => {
  const page = await open(browser, server);
  await page.show('');
  await page.waitForFunction(() => /\/s/.test(document.querySelector('.figures').textContent));
  const { port } = server;
  await server.kill();
  await page.waitForSelector('.banner >> text=as of');
  assert.ok(await page.$('.page.stale .figures'));
  await server.start(port);
  await page.waitForSelector('.toast >> text=started anew');
  await page.waitForSelector('.page:not(.stale)');
  assert.equal(await page.locator('.toast >> text=is now version').count(), 0, 'it is the same version');
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a server that was replaced by another version is told of, and its console comes with the next page', async () => {
  const page = await open(browser, server);
  await page.show('topics');
  await page.waitForSelector('.live.on');
  const { version } = await server.ask('GET', '/v1/me');
  const other = version.replace(/\d+$/, (last) => String((Number(last) + 1) % 10));
  await server.become(other);
  const { port } = server;
  await server.kill();
  await page.waitForSelector('.live.away');
  assert.match(await page.getAttribute('.live.away', 'title'), /cannot be reached/);
  await server.start(port);
  await page.waitForSelector(`.toast >> text=is now version ${other}`);
  await page.waitForSelector('.live.on');
  // What is not loaded yet would be of the other version: then everything is, at the address that was asked for.
  await page.evaluate(() => { window.isOld = true; });
  await page.click('.navigation >> text=Queues');
  await page.waitForFunction(() => !window.isOld && document.querySelector('.page tbody'));
  assert.match(page.url(), /\/console\/queues$/);
  assert.match(await page.textContent('.page'), /sms/);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});
