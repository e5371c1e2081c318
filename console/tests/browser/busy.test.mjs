// Pages that are looked at while much happens: nothing moves, all answers have the policy, and many tabs go on beside each other.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PAGES, Server, browse, fill, open, settled } from './stage.mjs';

/** How long nothing may move. */
const LONG = 10_000;
/** So many connections a browser opens to one server. */
const CONNECTIONS = 6;
let browser, server;

before(async () => {
  [server, browser] = await Promise.all([new Server().start(), browse()]);
  await fill(server);
});

after(async () => {
  await browser.close();
  await server.end();
});

/** Lets things happen on the server: new tasks, some done, some dead, and numbers that grow by a digit. */
async function bustle(until) {
  for (let round = 0; Date.now() < until; round++) {
    await server.batch([...Array(200).keys()].map((n) => ({ topic: n % 2 ? 'order-unpaid' : 'sms', id: `live-${round}-${n}`, delay: n % 2 ? '50m' : '0ms', body: n })));
    await server.settle('sms', 60, { do: 'acknowledge' });
    await server.settle('sms', 40, { do: 'reject', note: `no such number ${round}` });
    await new Promise((done) => setTimeout(done, 300));
  }
}

test('nothing moves on any page in ten seconds in which much happens', async () => {
  // Somebody holds something when it begins, and has nothing any more when it ends.
  const { deliveries: held } = await server.ask('POST', '/v1/reserve', { queues: ['sms'], max: 2, consumer: 'worker-8', lease: '1h', wait: '10s' });
  assert.equal(held.length, 2);
  const watched = await Promise.all(Object.entries(PAGES).map(async ([name, path]) => {
    const page = await open(browser, server);
    await page.show(path);
    return { name, page };
  }));
  for (const { page } of watched) await page.evaluate(() => { window.shifted = 0; window.movers = []; window.before = document.querySelector('.page').textContent; });
  await server.ask('POST', '/v1/leases', { actions: held.map(({ lease }) => ({ do: 'acknowledge', lease })) });
  for (const { topic, id, standing: { holder } } of (await server.ask('GET', '/v1/queues/sms/deliveries?state=leased')).tasks) await server.ask('POST', `/v1/tasks/${topic}/${id}/revoke`, { holder });
  await bustle(Date.now() + LONG);
  let changed = 0;
  for (const { name, page } of watched) {
    const { shifted, movers, isChanged } = await page.evaluate(() => ({ shifted: window.shifted, movers: window.movers, isChanged: document.querySelector('.page').textContent !== window.before }));
    assert.deepEqual([shifted, movers], [0, []], name);
    changed += isChanged;
  }
  assert.ok(changed >= 6, `${changed} pages showed something new`);
  const [{ page }] = watched;
  await page.evaluate(() => { document.querySelector('.page').style.paddingTop = '120px'; });
  await page.waitForFunction(() => window.shifted > 0.01);
  await Promise.all(watched.map(({ page }) => page.context().close()));
});

test('what is new in a list waits until somebody wants to see it, and what has left stays in its place', async () => {
  const page = await open(browser, server);
  const ids = () => page.$$eval('tbody th a.name', (links) => links.map((link) => link.textContent));
  await server.batch([1, 2, 3].map((n) => ({ topic: 'steady', id: `second-${n}`, delay: `${20 + n}m`, body: n })));
  await page.show('topics/steady');
  await page.mouse.move(5, 5);
  const [first, rows] = [await page.locator('tbody tr').first().boundingBox(), await ids()];
  assert.deepEqual(rows, ['second-1', 'second-2', 'second-3']);
  assert.equal(await page.locator('.news button').count(), 0, 'nothing is new yet');
  await page.evaluate(() => { window.shifted = 0; window.movers = []; });
  await server.batch([...Array(37).keys()].map((n) => ({ topic: 'steady', id: `first-${n}`, delay: '10m', body: n })));
  await server.ask('DELETE', '/v1/tasks/steady/second-2');
  await page.waitForSelector('.news >> text=37 new – show');
  assert.deepEqual([await ids(), await page.locator('tbody tr').first().boundingBox()], [rows, first]);
  assert.equal(await page.textContent('tr.quiet a.name'), 'second-2');
  assert.match(await page.textContent('tr.quiet th'), /not here any more/, 'for those who do not see it, too');
  assert.deepEqual(await page.evaluate(() => [window.shifted, window.movers]), [0, []]);
  await page.locator('.news button').focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.news button', { state: 'detached' });
  assert.equal((await ids()).length, 39);
  assert.equal(await page.locator('tr.quiet').count(), 0);
  assert.equal(await page.evaluate(() => document.activeElement.className), 'table-frame', 'the focus is on what was asked for');
  // Whoever acts or asks sees what came of it at once.
  await server.ask('DELETE', '/v1/tasks/steady/first-0');
  await page.keyboard.press('r');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 38);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('what needs somebody comes and goes without moving anything', async () => {
  const page = await open(browser, server);
  await page.show('');
  const rows = await page.locator('.needs li').count();
  await page.evaluate(() => { window.shifted = 0; window.movers = []; });
  const queues = ['order-unpaid', 'coupon-end', 'reminder', 'sms', 'a-new-one', 'another-one', 'and-a-third'];
  const all = (act) => Promise.all(queues.map((queue) => server.ask('POST', `/v1/queues/${queue}/${act}`)));
  const badge = (number) => page.waitForFunction((number) => document.querySelector('.section .badge')?.textContent === String(number), number);
  const before = Number(await page.textContent('.section .badge'));
  for (const queue of queues.slice(4)) await server.ask('PUT', `/v1/queues/${queue}`, {});
  await all('pause');
  await badge(before + queues.length);
  assert.match(await page.textContent('.needs .rest'), /\d/, 'those that found no row are counted');
  await all('resume');
  await badge(before);
  assert.equal(await page.locator('.needs li').count(), rows);
  assert.deepEqual(await page.evaluate(() => [window.shifted, window.movers]), [0, []]);
  await page.context().close();
});

/** What every answer of the console says to a browser. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

test('every answer of the console has the policy, and no page breaks it', async () => {
  const page = await open(browser, server);
  const heard = new Map();
  page.on('response', (answer) => heard.set(new URL(answer.url()).pathname, answer.headers()));
  for (const path of Object.values(PAGES)) await page.show(path);
  const [ours, others] = [[...heard].filter(([path]) => path.startsWith('/console/')), [...heard].filter(([path]) => !path.startsWith('/console/'))];
  assert.ok(ours.length > 30 && others.length > 5, `${ours.length} and ${others.length} answers`);
  for (const [path, headers] of ours) {
    assert.equal(headers['content-security-policy'], POLICY, path);
    assert.equal(headers['x-content-type-options'], 'nosniff', path);
  }
  assert.ok(others.every(([, headers]) => headers['content-security-policy'] !== POLICY), 'what has another policy is noticed');
  assert.deepEqual([page.foreign, await page.evaluate(() => window.refused)], [[], []]);
  // Nothing but the server: without it, the page says so and stays.
  await page.show('');
  await page.context().setOffline(true);
  await page.waitForSelector('.banner');
  await page.context().setOffline(false);
  await page.waitForSelector('.banner', { state: 'detached' });
  await page.context().close();
});

/** Tabs as people have them, one in front and the others hidden: without a screen, a browser takes all for visible. */
const HIDES = () => {
  let isHidden = false;
  Object.defineProperty(document, 'hidden', { get: () => isHidden });
  window.hide = (is) => {
    isHidden = is;
    document.dispatchEvent(new Event('visibilitychange'));
  };
};

test('eight tabs of one browser all go on', async () => {
  const first = await open(browser, server);
  const context = first.context();
  await context.addInitScript(HIDES);
  const tabs = [first, ...(await Promise.all([...Array(7)].map(() => context.newPage())))];
  for (const tab of tabs) {
    await tab.goto(server.url + '/console/');
    await settled(tab);
    await tab.evaluate(() => window.hide(true));
  }
  await server.batch([{ topic: 'new-here', id: 'one', delay: '1h', text: 'x' }]);
  for (const tab of tabs) {
    await tab.evaluate(() => window.hide(false));
    await tab.waitForSelector('text=new-here');
    await tab.evaluate(() => window.hide(true));
  }
  await context.close();
});

/** Follows the streams that the tabs of a browser have open. */
function streams(context) {
  const open = new Set();
  context.on('request', (request) => request.url().endsWith('/v1/pulse') && open.add(request));
  for (const over of ['requestfailed', 'requestfinished']) context.on(over, (request) => open.delete(request));
  return open;
}

/** Waits until a tab has heard of something new: a task more has been scheduled. */
async function hears(tab) {
  const { happened } = await server.ask('GET', '/v1/stats');
  await server.batch([{ topic: 'heard', delay: '1h', text: 'x' }]);
  await tab.waitForFunction((wanted) => Number(document.querySelector('.figures').textContent.match(/Scheduled.*?([\d,]+) in all/)?.[1].replaceAll(',', '')) > wanted, happened.scheduled);
}

test('eight visible tabs hear the pulse by one connection, and another tab listens when the first is closed', async () => {
  const first = await open(browser, server);
  const context = first.context();
  const listening = streams(context);
  const tabs = [first, ...(await Promise.all([...Array(7)].map(() => context.newPage())))];
  for (const tab of tabs) {
    await tab.goto(server.url + '/console/');
    await settled(tab);
  }
  for (const tab of tabs) await hears(tab);
  assert.equal(listening.size, 1, 'one listens for all');
  const [speaker] = listening;
  const left = tabs.filter((tab) => tab !== speaker.frame().page());
  assert.equal(left.length, 7);
  await speaker.frame().page().close();
  for (const tab of left) await hears(tab);
  listening.delete(speaker);
  assert.equal(listening.size, 1, 'another one listens');
  assert.notEqual([...listening][0], speaker);
  await context.close();
});

test('tabs without locks, or with tokens of their own, listen for themselves', async () => {
  const first = await open(browser, server);
  const context = first.context();
  const listening = streams(context);
  const second = await context.newPage();
  await second.addInitScript(() => Object.defineProperty(Navigator.prototype, 'locks', { get: () => undefined }));
  const third = await context.newPage();
  await third.addInitScript(() => sessionStorage.setItem('punctual.token', 'another'));
  for (const tab of [first, second, third]) {
    await tab.goto(server.url + '/console/');
    await settled(tab);
    await hears(tab);
  }
  assert.equal(listening.size, 3, 'more than one connection would be noticed');
  await context.close();
});

test('tabs that held a connection each would stop one another', async () => {
  const first = await open(browser, server);
  const context = first.context();
  const tabs = [first, ...(await Promise.all([...Array(CONNECTIONS)].map(() => context.newPage())))];
  for (const tab of tabs.slice(0, CONNECTIONS)) {
    await tab.goto(server.url + '/console/help');
    await settled(tab);
    await tab.evaluate(() => fetch('/v1/reserve', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ queues: ['nobody'], wait: '30s' }) }).then(() => {}, () => {}) && undefined);
  }
  const gone = tabs[CONNECTIONS].goto(server.url + '/console/help', { timeout: 3_000 });
  await assert.rejects(gone, /Timeout/, 'the one that is too much is noticed');
  await context.close();
});
