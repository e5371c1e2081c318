// Who may do what: for each role, each act is offered if and only if the server carries it out.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import en from '../../web/i18n/en.js';
import { Server, browse, open } from './stage.mjs';

/** One that sees no lists. */
const PRODUCER = ['--role', 'produce'];
/** Tokens: their roles, and the topics that they are bound to. */
const TOKENS = {
  view: ['--role', 'view'], produce: ['--role', 'view', '--role', 'produce'], operate: ['--role', 'operate'], admin: ['--role', 'admin'],
  bound: ['--role', 'operate', '--topic', 'shop'],
};

/** Acts: where each is offered and by which text, and what the server is asked then. Each token has tasks of its own to do them to. */
const ACTS = [
  ['topics/shop', 'pause.intake', 'POST', () => '/v1/topics/shop/pause', () => '/v1/topics/shop/resume'],
  ['queues/shop', 'pause.dots', 'POST', () => '/v1/queues/shop/pause', () => '/v1/queues/shop/resume'],
  ['tasks/shop/waits-WHO', 'hasten.dots', 'POST', (who) => `/v1/tasks/shop/hasten-${who}/hasten`],
  ['tasks/shop/waits-WHO', 'move.dots', 'PATCH', (who) => `/v1/tasks/shop/waits-${who}`],
  ['tasks/shop/waits-WHO', 'cancel.dots', 'DELETE', (who) => `/v1/tasks/shop/waits-${who}`],
  ['tasks/shop/held-WHO', 'revoke.dots', 'POST', (who) => `/v1/tasks/shop/held-${who}/revoke`],
  ['tasks/shop/dead-WHO', 'replay.dots', 'POST', (who) => `/v1/tasks/shop/dead-${who}/replay`],
  ['tasks/shop/dead-WHO', 'purge.dots', 'POST', (who) => `/v1/tasks/shop/late-${who}/purge`],
  ['dead?topic=shop', 'replay.all', 'POST', () => '/v1/sweeps', undefined, () => ({ select: { topic: 'shop', state: 'dead' }, do: 'replay', dry_run: true })],
  ['dead?topic=shop', 'purge.all', 'POST', () => '/v1/sweeps', undefined, () => ({ select: { topic: 'shop', state: 'dead' }, do: 'purge', dry_run: true })],
  ['keys/WHO', 'cancel.dots', 'DELETE', (who) => `/v1/keys/${who}?dry_run=true`],
  ['keys/WHO', 'move.dots', 'PATCH', (who) => `/v1/keys/${who}`, undefined, () => ({ by: '1h', dry_run: true })],
  ['topics', 'new', 'POST', () => '/v1/tasks', undefined, () => ({ topic: 'shop', delay: '1h', text: 'x' })],
  ['tasks', 'new', 'POST', () => '/v1/tasks', undefined, () => ({ topic: 'shop', delay: '1h', text: 'x' })],
  ['topics/shop', 'new', 'POST', () => '/v1/tasks', undefined, () => ({ topic: 'shop', delay: '1h', text: 'x' })],
];
const BODIES = { PATCH: { delay: '2h' } };

let browser, server;
const tokens = {};

before(async () => {
  server = new Server();
  for (const [who, flags] of Object.entries({ ...TOKENS, producer: PRODUCER })) tokens[who] = await server.command('token', 'create', '--name', who, ...flags, '--data', server.directory + '/data');
  [, browser] = await Promise.all([server.start(), browse()]);
  const { admin } = tokens;
  const ask = (method, path, body) => server.ask(method, path, body, admin);
  for (const who of Object.keys(TOKENS)) {
    const due = (id) => ({ topic: 'shop', id: `${id}-${who}`, key: who, text: 'x' });
    await ask('POST', '/v1/tasks/batch', { tasks: [due('dead'), due('late')] });
    const { deliveries } = await ask('POST', '/v1/reserve', { queues: ['shop'], max: 2, wait: '10s' });
    await ask('POST', '/v1/leases', { actions: deliveries.map(({ lease }) => ({ do: 'reject', lease, note: 'given up' })) });
    await ask('POST', '/v1/tasks', due('held'));
    assert.equal((await ask('POST', '/v1/reserve', { queues: ['shop'], max: 1, wait: '10s', lease: '1h' })).deliveries.length, 1);
    await ask('POST', '/v1/tasks/batch', { tasks: ['waits', 'hasten'].map((id) => ({ ...due(id), delay: '1h' })) });
  }
  await ask('POST', '/v1/tasks', { topic: 'other', id: 'one', delay: '1h', text: 'x' });
});

after(async () => {
  await browser.close();
  await server.end();
});

/** What a page offers to do, in words. */
async function offered(page, path) {
  await page.show(path);
  return page.evaluate(() => [...document.querySelectorAll('.page button, .page a.button')].filter((node) => !node.disabled).map((node) => node.textContent.trim()));
}

/** Whether the server does it. */
async function isDone(who, method, path, body) {
  const answer = await fetch(server.url + path, { method, headers: { authorization: 'Bearer ' + tokens[who], 'content-type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await answer.text();
  assert.ok(answer.ok || answer.status === 403, `${who}: ${method} ${path}: ${answer.status} ${text}`);
  return answer.ok;
}

test('what is offered is what the server does, for every role', async () => {
  const counts = {};
  for (const who of Object.keys(TOKENS)) {
    const page = await open(browser, server, { token: tokens[who] });
    // Everything is looked at before anything is done.
    const offers = [];
    for (const [path, words] of ACTS) {
      const texts = await offered(page, path.replace('WHO', who));
      // What is asked about before it is done has dots; what can be undone is done at once, and has none.
      offers.push([en[words], en[words.replace('.dots', '')]].some((text) => text !== undefined && texts.includes(text)));
    }
    counts[who] = offers.filter(Boolean).length;
    for (const [index, [path, words, method, target, undo, body]] of ACTS.entries()) {
      const done = await isDone(who, method, target(who), body?.(who) ?? BODIES[method]);
      assert.equal(offers[index], done, `${who}, ${path}, ${words}: offered and done`);
      if (done && undo) await isDone(who, method, undo());
    }
    assert.deepEqual(page.wrong, []);
    await page.context().close();
  }
  assert.ok(counts.view === 0 && counts.produce > 0 && counts.produce < counts.admin && counts.operate > counts.produce && counts.admin === ACTS.length, JSON.stringify(counts));
});

test('a token that may only produce moves and cancels what has a key', async () => {
  const page = await open(browser, server, { token: tokens.producer });
  const ask = (path) => server.ask('GET', path, undefined, tokens.admin);
  await server.batch([1, 2].map((n) => ({ topic: 'shop', id: `keyed-${n}`, key: 'it’s', delay: '1h', text: 'x' })), tokens.producer);
  await page.show('keys/' + encodeURIComponent('it’s'));
  assert.deepEqual((await offered(page, 'keys/' + encodeURIComponent('it’s'))).filter((text) => text.includes('…')), ['Move…', 'Cancel…']);
  const announced = (words) => page.waitForFunction((words) => document.querySelector('dialog .preview')?.textContent.includes(words), words);
  await page.keyboard.press('m');
  await page.locator('dialog input').first().fill('2030-01-01T00:00:00Z');
  await announced('2 tasks will change');
  await page.locator('dialog input').last().fill('it’s');
  await page.click('dialog .button.main:enabled');
  await page.waitForSelector('.toast.good >> text=2 changed, 0 too late');
  assert.equal((await ask('/v1/tasks/shop/keyed-1')).due, '2030-01-01T00:00:00.000Z');
  await page.keyboard.press('c');
  await announced('2 tasks will change');
  const curl = await page.locator('dialog .code-line code').first().textContent();
  assert.ok(curl.includes('DELETE') && curl.includes('/v1/keys/it%E2%80%99s') && !curl.includes('dry_run'), curl);
  // Somebody else was quicker: that is said, and not shown as all good.
  await server.ask('DELETE', '/v1/tasks/shop/keyed-1', undefined, tokens.admin);
  await page.locator('dialog input').fill('it’s');
  await page.click('dialog .button.harm:enabled');
  await page.waitForSelector('.toast.warm >> text=1 changed');
  assert.equal((await ask('/v1/tasks/shop/keyed-2')).standing.ending, 'cancelled');
  assert.equal(await isDone('producer', 'POST', '/v1/sweeps', { select: { key: 'it’s' }, do: 'cancel', dry_run: true }), false, 'it may not sweep');
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a token that is bound to a topic sees nothing else', async () => {
  const page = await open(browser, server, { token: tokens.bound });
  for (const path of ['', 'topics', 'queues', 'tasks', 'future']) {
    await page.show(path);
    assert.ok(!(await page.textContent('.page')).includes('other/') && !(await page.$('.page a[href$="/other"]')), path);
  }
  await page.goto(server.url + '/console/topics/other');
  await page.waitForSelector('.failed, .empty');
  assert.deepEqual(await page.$$('.page .tabs'), []);
  await page.context().close();
  const whole = await open(browser, server, { token: tokens.admin });
  await whole.show('topics');
  assert.ok(await whole.$('.page a[href$="/other"]'), 'somebody else sees it');
  await whole.context().close();
});
