// Acts, with the keyboard alone, compared with what the API says afterwards; and what happens when things go wrong.

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

/** Goes to a control by the Tab key, as people without a mouse do. */
async function tabTo(page, name) {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab');
    const { text, isSeen } = await page.evaluate(() => {
      const node = document.activeElement;
      return { text: (node.getAttribute('aria-label') ?? node.textContent).trim(), isSeen: getComputedStyle(node).outlineStyle !== 'none' };
    });
    if (text === name) return assert.ok(isSeen, `${name}: the focus can be seen`);
  }
  assert.fail(`the Tab key does not lead to ${name}`);
}

/** Waits until the focus is on a control; says where it is instead. */
async function focusComesTo(page, name) {
  const isThere = (name) => document.activeElement.textContent.trim() === name;
  await page.waitForFunction(isThere, name, { timeout: 10_000 }).catch(() => {});
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), name);
}

test('a task is cancelled by keyboard at once, and that is undone by a key', async () => {
  const page = await open(browser, server);
  const before = await server.ask('GET', '/v1/tasks/order-unpaid/order-7001');
  await page.show('tasks/order-unpaid/order-7001');
  await tabTo(page, 'Cancel task');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.toast.good');
  assert.equal((await server.ask('GET', '/v1/tasks/order-unpaid/order-7001')).standing.ending, 'cancelled');
  await page.keyboard.press('u');
  await page.waitForFunction(() => document.querySelector('.toasts').textContent.includes('Undone'));
  const { due, body, standing } = await server.ask('GET', '/v1/tasks/order-unpaid/order-7001');
  assert.deepEqual([due, body, standing.state], [before.due, before.body, 'scheduled']);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('what cannot be undone is asked about, and the focus comes back', async () => {
  await server.batch([{ topic: 'forgetful', id: 'one', delay: '1h', text: 'x' }]);
  await server.ask('PATCH', '/v1/topics/forgetful', { history: '0s' });
  const page = await open(browser, server);
  await page.show('tasks/forgetful/one');
  await tabTo(page, 'Cancel task');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open] input');
  // What does harm is not what Enter does.
  await page.keyboard.press('Enter');
  assert.ok(await page.isDisabled('dialog .button.harm'));
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  await focusComesTo(page, 'Cancel task');
  assert.equal((await server.ask('GET', '/v1/tasks/forgetful/one')).standing.state, 'scheduled');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open] input');
  await page.keyboard.type('one');
  await page.waitForSelector('dialog .button.harm:not([disabled])');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.toast.good');
  assert.equal((await fetch(server.url + '/v1/tasks/forgetful/one')).status, 404);
  await page.context().close();
});

test('a task is moved, and the command that is shown does the same', async () => {
  const page = await open(browser, server);
  const before = await server.ask('GET', '/v1/tasks/order-unpaid/order-7002');
  await page.show('tasks/order-unpaid/order-7002');
  await tabTo(page, 'Move…');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open] input');
  await page.fill('dialog input', '2026-11-30T08:00:00Z');
  await page.evaluate(() => (document.querySelector('dialog details').open = true));
  const command = await page.textContent('dialog .code-line:nth-child(2) code >> text=2026-11-30');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.toast.good');
  assert.equal((await server.ask('GET', '/v1/tasks/order-unpaid/order-7002')).due, '2026-11-30T08:00:00.000Z');
  await page.click('.toast >> text=Undo');
  await page.waitForFunction(() => document.querySelector('.toasts').textContent.includes('Undone'));
  assert.equal((await server.ask('GET', '/v1/tasks/order-unpaid/order-7002')).due, before.due);
  const words = command.replace('order-7002', 'order-7003').split(' ');
  assert.equal(words.shift(), 'punctual');
  await server.command(...words);
  assert.equal((await server.ask('GET', '/v1/tasks/order-unpaid/order-7003')).due, '2026-11-30T08:00:00.000Z');
  await page.context().close();
});

test('a topic and a queue are paused with a reason, resumed, and that is undone', async () => {
  const page = await open(browser, server);
  await page.show('topics/reminder');
  await page.click('text=Pause intake');
  await page.fill('dialog input', 'too many reminders');
  await page.click('dialog .button.main');
  await page.waitForSelector('.toast.good');
  const paused = await server.ask('GET', '/v1/topics/reminder');
  assert.deepEqual([paused.settings.paused, paused.pause.reason], [true, 'too many reminders']);
  await page.waitForSelector('.about >> text=too many reminders');
  await page.click('.toast >> text=Undo');
  await page.waitForSelector('text=Pause intake');
  assert.equal((await server.ask('GET', '/v1/topics/reminder')).settings.paused, false);
  await page.show('queues/reminder');
  await page.click('text=Pause…');
  await page.fill('dialog input', 'the provider is down');
  await page.selectOption('dialog select', '15m');
  await page.click('dialog .button.main');
  await page.waitForSelector('h1 .badge');
  const { settings, pause } = await server.ask('GET', '/v1/queues/reminder');
  assert.ok(settings.paused_until && pause.reason === 'the provider is down');
  await page.click('.acts >> text=Resume');
  await page.waitForSelector('text=Pause…');
  await page.locator('.toast', { hasText: 'resumed' }).getByText('Undo').click();
  await page.waitForSelector('h1 .badge');
  const again = await server.ask('GET', '/v1/queues/reminder');
  assert.deepEqual([again.settings.paused_until, again.pause.reason], [settings.paused_until, 'the provider is down']);
  await page.context().close();
});

test('a task is scheduled by the form and found by the search', async () => {
  const page = await open(browser, server);
  await page.show('');
  await page.keyboard.press('n');
  await page.waitForSelector('.form');
  await page.fill('.form input >> nth=0', 'by-hand');
  await page.fill('.form input >> nth=2', 'a/b?c');
  await page.click('.form .button.main');
  await page.waitForSelector('.timeline');
  assert.deepEqual((await server.ask('GET', '/v1/tasks/by-hand/a%2Fb%3Fc')).body, { hello: 'world' });
  await page.keyboard.press('/');
  await page.keyboard.type('a/b?c');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.deliveries a');
  assert.ok((await page.textContent('.deliveries')).includes('by-hand'));
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.waitForSelector('tbody a.name');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const second = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.tabs');
  assert.equal(await page.textContent('h1 .isolated'), second);
  await page.context().close();
});

test('a server that is killed and comes back is found again, without a reload', async () => {
  const page = await open(browser, server);
  await page.show('');
  await page.evaluate(() => (window.mark = 1));
  const { port } = server;
  await server.kill();
  await page.waitForSelector('.banner');
  assert.ok(await page.$('.figures'), 'what was known stays');
  await server.start(port);
  await page.waitForSelector('.banner', { state: 'detached' });
  assert.equal(await page.evaluate(() => window.mark), 1);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('eight tabs load at once', async () => {
  const pages = await Promise.all([...Array(8)].map(() => open(browser, server)));
  await Promise.all(pages.map((page) => page.show('')));
  for (const page of pages) assert.ok(await page.$('.figures'));
  await Promise.all(pages.map((page) => page.context().close()));
});

test('a token is asked for, kept for the tab, and decides what is offered', async () => {
  const guarded = new Server();
  const tokens = {};
  for (const role of ['view', 'operate', 'admin']) tokens[role] = await guarded.command('token', 'create', '--name', role, '--role', role, '--data', guarded.directory + '/data');
  await guarded.start();
  try {
    await guarded.ask('POST', '/v1/tasks', { topic: 'shop', id: 'one', text: 'x' }, tokens.admin);
    const page = await open(browser, guarded);
    await page.goto(guarded.url + '/console/topics/shop');
    await page.waitForSelector('.login input');
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.login .bad');
    await page.fill('.login input', tokens.view);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.tabs');
    assert.equal(await page.textContent('h1 .isolated'), 'shop', 'the page that was asked for');
    assert.equal(await page.$('text=Pause intake'), null, 'who looks is offered nothing to do');
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage)).then((kept) => kept.includes('token')), false);
    await page.context().close();
    for (const [role, isOffered] of [['view', false], ['operate', true], ['admin', true]]) {
      const page = await open(browser, guarded, { token: tokens[role] });
      await page.show('topics/shop');
      assert.equal((await page.$('.heading .acts button')) !== null, isOffered, role);
      const { status } = await fetch(guarded.url + '/v1/topics/shop/pause', { method: 'POST', headers: { authorization: 'Bearer ' + tokens[role] } });
      assert.equal(status === 200, isOffered, `${role}: the server agrees`);
      await page.context().close();
    }
  } finally {
    await guarded.end();
  }
});
