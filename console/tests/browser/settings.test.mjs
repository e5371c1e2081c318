// Settings, as a form and as JSON: what changes is shown before, nobody's change is overwritten, and it can be undone.

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

/** The field of a setting. */
const field = (page, path) => page.locator('.field', { has: page.locator(`code:text-is("${path}")`) }).locator('input, select, textarea');
const review = (page) => page.click('.settings-foot .button.main:enabled');
const save = (page) => page.click('dialog .button.main:enabled');
const said = (page) => page.waitForSelector('.toast.good');

test('what changes is shown before it is saved, only that changes, and it is undone', async () => {
  const page = await open(browser, server);
  await page.show('queues/sms?tab=settings');
  const before = await server.ask('GET', '/v1/queues/sms');
  assert.ok(await page.isDisabled('.settings-foot .button.main'), 'nothing has changed');
  await field(page, 'lease').fill('2m');
  await field(page, 'retry.attempts').fill('9');
  await field(page, 'rate').fill('500:2000');
  await field(page, 'overflow').selectOption('drop_oldest');
  // The page is asked for again meanwhile, and what was typed stays.
  await page.waitForTimeout(3500);
  await review(page);
  await page.waitForSelector('dialog .changes');
  assert.deepEqual(await page.$$eval('dialog .changes li', (lines) => lines.map((line) => line.textContent)),
    ['lease30s→2m', 'overflowrefuse→drop_oldest', 'ratedefault→500:2000', `retry.attempts${before.settings.retry.attempts}→9`]);
  assert.deepEqual(await server.ask('GET', '/v1/queues/sms'), before, 'nothing is saved yet');
  const command = await page.textContent('dialog .code-line:nth-child(2) code');
  await save(page);
  await said(page);
  const after = await server.ask('GET', '/v1/queues/sms');
  assert.deepEqual(after.settings, { ...before.settings, lease: '2m', overflow: 'drop_oldest', rate: { per_second: 500, burst: 2000 }, retry: { ...before.settings.retry, attempts: 9 } });
  await page.keyboard.press('u');
  await page.waitForFunction(() => document.querySelector('.toasts').textContent.includes('Undone'));
  assert.deepEqual((await server.ask('GET', '/v1/queues/sms')).settings, before.settings);
  assert.deepEqual((await server.ask('GET', '/v1/queues/sms')).version, before.version);
  // The command does the same.
  const words = command.split(' ');
  assert.equal(words.shift(), 'punctual');
  await server.command(...words);
  assert.deepEqual((await server.ask('GET', '/v1/queues/sms')).settings, after.settings);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a limit and a burst go when they are emptied, and JSON says the same as the form', async () => {
  const page = await open(browser, server);
  await page.show('topics/coupon-end?tab=settings');
  assert.equal(await field(page, 'rate').inputValue(), '500:500');
  await field(page, 'rate').fill('');
  await field(page, 'feeds').fill('coupon-end\naudit=coupon.#');
  await page.click('.settings-head >> text=JSON');
  const text = await page.inputValue('textarea[rows="16"]');
  assert.deepEqual(JSON.parse(text).feeds, [{ queue: 'coupon-end' }, { queue: 'audit', pattern: 'coupon.#' }]);
  await page.fill('textarea[rows="16"]', '{"history": "2d",');
  await page.waitForSelector('.settings-foot .button.main:disabled');
  await page.fill('textarea[rows="16"]', text.replace('"marketing@example.org"', '"growth@example.org"'));
  await page.locator('textarea').blur();
  await page.click('.settings-head >> text=Form');
  assert.equal(await field(page, 'owner').inputValue(), 'growth@example.org');
  await review(page);
  await save(page);
  await said(page);
  const { settings } = await server.ask('GET', '/v1/topics/coupon-end');
  assert.deepEqual([settings.owner, settings.rate ?? null, settings.feeds.length], ['growth@example.org', null, 2]);
  await page.click('text=Undo the last change');
  await page.waitForFunction(() => document.querySelector('.toasts').textContent.includes('Undone'));
  const back = (await server.ask('GET', '/v1/topics/coupon-end')).settings;
  assert.deepEqual([back.owner, back.rate, back.feeds ?? null], ['marketing@example.org', { per_second: 500, burst: 500 }, null]);
  await page.context().close();
});

test('what somebody else changes meanwhile is shown, and not overwritten', async () => {
  const page = await open(browser, server);
  await page.show('topics/reminder?tab=settings');
  await field(page, 'owner').fill('mine@example.org');
  await review(page);
  await page.waitForSelector('dialog .changes');
  await server.ask('PATCH', '/v1/topics/reminder', { owner: 'theirs@example.org', ttl: '5m' });
  await save(page);
  await page.waitForSelector('dialog .conflict');
  assert.ok((await page.textContent('dialog .conflict')).includes('theirs@example.org'));
  assert.equal((await server.ask('GET', '/v1/topics/reminder')).settings.owner, 'theirs@example.org');
  await page.waitForSelector('dialog .button.main:disabled');
  await page.click('dialog .conflict button');
  // What is replaced now.
  await page.waitForFunction(() => document.querySelector('dialog .changes').textContent.includes('theirs@example.org'));
  await save(page);
  await said(page);
  const { settings } = await server.ask('GET', '/v1/topics/reminder');
  assert.deepEqual([settings.owner, settings.ttl], ['mine@example.org', '5m']);
  await page.context().close();
});

test('what the server refuses is said, and who only looks gets no form', async () => {
  const page = await open(browser, server);
  await page.show('queues/sms?tab=settings');
  await field(page, 'lease').fill('soon');
  await review(page);
  await save(page);
  await page.waitForSelector('dialog .failed');
  assert.match(await page.textContent('dialog .failed'), /lease/);
  await page.keyboard.press('Escape');
  await page.click('text=Discard');
  await page.waitForFunction(() => document.querySelector('.form input').value !== 'soon');
  await page.context().close();

  const guarded = new Server();
  const create = (role) => guarded.command('token', 'create', '--name', role, '--role', role, '--data', guarded.directory + '/data');
  const [admin, operate] = [await create('admin'), await create('operate')];
  await guarded.start();
  try {
    await guarded.ask('POST', '/v1/tasks', { topic: 'shop', id: 'one', text: 'x' }, admin);
    for (const [token, forms] of [[admin, 1], [operate, 0]]) {
      const page = await open(browser, guarded, { token });
      await page.show('topics/shop?tab=settings');
      assert.equal(await page.locator('.settings-foot').count(), forms);
      await page.context().close();
    }
    const { status } = await fetch(guarded.url + '/v1/topics/shop', { method: 'PATCH', headers: { authorization: 'Bearer ' + operate, 'content-type': 'application/json' }, body: '{"ttl":"1m"}' });
    assert.equal(status, 403, 'the server agrees');
  } finally {
    await guarded.end();
  }
});
