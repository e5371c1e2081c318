// Acts on many tasks: rows are selected, what is promised comes true or it is said that it did not, and it is undone.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Server, browse, fill, open, settled } from './stage.mjs';

let browser, server;

before(async () => {
  [server, browser] = await Promise.all([new Server().start(), browse()]);
  await fill(server);
});

after(async () => {
  await browser.close();
  await server.end();
});

/** Waits until the dialog says that it is over, and gives what it says. */
async function outcome(page) {
  await page.waitForFunction(() => /(^|\W)(done|stopped)/.test(document.querySelector('dialog .preview')?.textContent ?? ''));
  return page.textContent('dialog .preview');
}

/** Presses Undo, waits until the server has undone it, and gives what the dialog says. */
async function undone(page, where) {
  const [{ id }] = (await server.ask('GET', '/v1/sweeps')).sweeps;
  await page.click(`${where} >> text=Undo`);
  for (;;) {
    const [latest] = (await server.ask('GET', '/v1/sweeps')).sweeps;
    if (latest.undoes === id && latest.state === 'done') break;
    await page.waitForTimeout(100);
  }
  await page.waitForFunction(() => document.querySelectorAll('dialog .dialog-foot button').length === 1);
  return outcome(page);
}

const counted = (page) => page.waitForSelector('dialog .preview .badge');

test('rows are selected by mouse, by range and by keys, and nothing is refreshed meanwhile', async () => {
  const page = await open(browser, server);
  await page.show('topics/order-unpaid');
  const boxes = page.locator('tbody input[type=checkbox]');
  await boxes.nth(1).click();
  await boxes.nth(4).click({ modifiers: ['Shift'] });
  await page.waitForSelector('.bulk >> text=4 selected');
  await boxes.nth(2).click();
  await page.waitForSelector('.bulk >> text=3 selected');
  const ids = () => page.$$eval('tbody th a.name', (links) => links.map((link) => link.textContent));
  const first = await ids();
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.mouse.move(5, 5);
  await page.waitForTimeout(3600);
  assert.deepEqual(asked.filter((url) => url.includes('/v1/tasks')), []);
  assert.deepEqual(await ids(), first);
  await page.click('.bulk [aria-label="Dismiss"]');
  await page.waitForSelector('.bulk', { state: 'detached' });
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.keyboard.press('j');
  await page.keyboard.press('Space');
  await page.waitForSelector('.bulk >> text=2 selected');
  for (let row = 0; row < 3; row++) await page.keyboard.press('j');
  await page.keyboard.press('e');
  await page.waitForSelector('.bulk >> text=5 selected');
  assert.deepEqual(await page.$$eval('tbody tr', (rows) => rows.slice(0, 6).map((row) => row.classList.contains('chosen'))), [true, true, true, true, true, false]);
  // Those that were picked stay picked.
  await page.keyboard.press('k');
  await page.keyboard.press('e');
  await page.waitForTimeout(100);
  assert.equal(await page.locator('tr.chosen').count(), 5);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a few tasks are cancelled after a preview, and come back as they were', async () => {
  const page = await open(browser, server);
  await page.show('topics/order-unpaid');
  const boxes = page.locator('tbody input[type=checkbox]');
  for (const row of [0, 1, 2]) await boxes.nth(row).click();
  await page.waitForSelector('.bulk >> text=3 selected');
  const ids = await page.$$eval('tr.chosen a.name', (links) => links.filter((link) => link.href.includes('/tasks/')).map((link) => link.textContent));
  assert.equal(ids.length, 3);
  const before = await Promise.all(ids.map((id) => server.ask('GET', `/v1/tasks/order-unpaid/${id}`)));
  await page.keyboard.press('c');
  await counted(page);
  assert.match(await page.textContent('dialog .preview'), /3 tasks will change/);
  assert.equal(await page.locator('dialog .samples li').count(), 3);
  assert.equal(await page.locator('dialog input').count(), 0, 'few, and it can be undone: nothing to type');
  await page.click('dialog .button.harm:enabled');
  assert.match(await outcome(page), /3 changed/);
  for (const id of ids) assert.equal((await server.ask('GET', `/v1/tasks/order-unpaid/${id}`)).standing.ending, 'cancelled');
  assert.match(await undone(page, 'dialog'), /3 changed/);
  const after = await Promise.all(ids.map((id) => server.ask('GET', `/v1/tasks/order-unpaid/${id}`)));
  for (const [index, { due, body, priority, standing }] of after.entries()) {
    assert.deepEqual({ due, body, priority, state: standing.state }, { due: before[index].due, body: before[index].body, priority: before[index].priority, state: 'scheduled' });
  }
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('all that match are more than are listed, and many are confirmed by typing', async () => {
  const page = await open(browser, server);
  await page.show('tasks?topic=coupon-end');
  await page.locator('tbody input[type=checkbox]').first().click();
  await page.click('.bulk >> text=Select all that match');
  await page.waitForFunction(() => document.querySelector('.bulk').textContent.includes('All 900'));
  await page.click('.bulk >> text=Move…');
  await page.waitForSelector('dialog input');
  await page.locator('dialog input').first().fill('2h');
  await counted(page);
  await page.waitForFunction(() => document.querySelector('dialog .preview').textContent.includes('900 tasks'));
  // The name is not typed yet, nor when only a part of it is.
  await page.waitForSelector('dialog .button.main:disabled');
  await page.locator('dialog input').last().fill('coupon-en');
  await page.waitForTimeout(100);
  assert.ok(await page.isDisabled('dialog .button.main'));
  await page.locator('dialog input').last().fill('coupon-end');
  await page.click('dialog .button.main:enabled');
  assert.match(await outcome(page), /900 changed/);
  const { due } = await server.ask('GET', '/v1/tasks/coupon-end/coupon-7');
  assert.ok(Math.abs(Date.parse(due) - Date.now() - 7_200_000) < 60_000, due);
  await page.click('dialog >> text=Dismiss');
  await page.show('sweeps');
  assert.match(await page.textContent('tbody'), /Move tasks.*coupon-end/s);
  await page.click('tbody a.name >> nth=0');
  await settled(page);
  assert.match(await undone(page, '.acts'), /900 changed/);
  await page.context().close();
});

test('a herd of the future is spread over a while', async () => {
  const page = await open(browser, server);
  await page.show('future');
  await page.locator('.needs li', { hasText: 'coupon-end' }).first().locator('button').click();
  await page.click('.detail >> text=Spread…');
  await page.waitForSelector('dialog input');
  await page.locator('dialog input').first().fill('10m');
  await page.waitForFunction(() => document.querySelector('dialog .preview')?.textContent.includes('900 tasks'));
  await page.locator('dialog input').last().fill('coupon-end');
  await page.click('dialog .button.main:enabled');
  assert.match(await outcome(page), /900 changed/);
  const { tasks } = await server.ask('GET', '/v1/tasks?topic=coupon-end&limit=1000');
  const dues = tasks.map(({ due }) => Date.parse(due)).sort((one, other) => one - other);
  assert.ok(dues.at(-1) - dues[0] > 500_000 && dues.at(-1) - dues[0] <= 600_000, 'over ten minutes');
  const minutes = new Map();
  for (const due of dues) minutes.set(Math.floor((due - dues[0]) / 60_000), (minutes.get(Math.floor((due - dues[0]) / 60_000)) ?? 0) + 1);
  for (const many of [...minutes.values()].slice(0, 10)) assert.ok(many > 60 && many < 120, String([...minutes]));
  await page.context().close();
});

test('an outcome that differs from what was promised is not shown as all good', async () => {
  const page = await open(browser, server);
  await page.show('topics/reminder');
  for (const row of [0, 1]) await page.locator('tbody input[type=checkbox]').nth(row).click();
  await page.waitForSelector('.bulk >> text=2 selected');
  const [id] = await page.$$eval('tr.chosen a.name', (links) => links.filter((link) => link.href.includes('/tasks/')).map((link) => link.textContent));
  await page.click('.bulk >> text=Cancel…');
  await counted(page);
  await server.ask('DELETE', `/v1/tasks/reminder/${id}`);
  await page.click('dialog .button.harm:enabled');
  assert.match(await outcome(page), /1 changed/);
  assert.match(await page.textContent('dialog p.warm'), /2/);
  assert.ok(await page.$('.toast.warm'));
  await page.context().close();
});

test('a group of dead letters without a note leads to those alone, and the command that is shown means no others', async () => {
  await server.batch([...Array(5).keys()].map((n) => ({ topic: 'terse', id: `terse-${n}`, body: n })));
  await server.settle('terse', 3, { do: 'reject' });
  await server.settle('terse', 2, { do: 'reject', note: 'a reason' });
  const page = await open(browser, server);
  const rows = () => page.locator('.section:last-child tbody tr').count();
  await page.show('dead?topic=terse');
  assert.equal(await rows(), 5);
  await page.locator('tr', { hasText: 'without a note' }).locator('th a').click();
  await page.waitForSelector('.filters >> text=without a note');
  await page.waitForFunction(() => document.querySelectorAll('.section:last-child tbody tr').length === 3);
  const asked = new URL(page.url()).searchParams;
  assert.deepEqual([asked.get('note'), asked.get('topic')], ['', 'terse']);
  await page.reload();
  await settled(page);
  assert.equal(await rows(), 3, 'the address alone says so, too');
  await page.click('.acts >> text=Purge all…');
  await counted(page);
  assert.match(await page.textContent('dialog .preview'), /3 tasks/);
  const command = await page.locator('dialog .code-line code').last().textContent();
  await page.keyboard.press('Escape');
  const words = command.split(' ').slice(1);
  assert.ok(words.includes('--note='), command);
  assert.match(await server.command(...words, '--dry-run'), /\b3\b/);
  assert.match(await server.command(...words.filter((word) => word !== '--note='), '--dry-run'), /\b5\b/, 'without it, more would be meant');
  await page.context().close();
});

test('what a purge would take is downloaded first, exact, page by page, and can be imported again', async () => {
  const many = 1203;
  const bodies = (n) => `{"topic":"bin","id":"bin-${n}","key":"k","headers":{"a":"b"},"body":{"n":9007199254740993,"at":${n}}}`;
  for (let from = 0; from < many; from += 401) {
    const answer = await fetch(server.url + '/v1/tasks/batch', { method: 'POST', headers: { 'content-type': 'application/json' }, body: `{"tasks":[${[...Array(401).keys()].map((n) => bodies(from + n)).join()}]}` });
    assert.ok(answer.ok);
  }
  await server.settle('bin', many, { do: 'reject', note: 'not now' });
  const page = await open(browser, server);
  const asked = [];
  page.on('request', (request) => request.url().includes('bodies=true') && asked.push(request.url()));
  const downloaded = async (name) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('dialog .keep button')]);
    assert.equal(file.suggestedFilename(), 'dead-bin.jsonl');
    const path = `${server.directory}/${name}.jsonl`;
    await file.saveAs(path);
    return path;
  };
  await page.show('topics/bin?tab=dead');
  // Of rows that were picked, those alone.
  for (const row of [0, 1]) await page.locator('tbody input[type=checkbox]').nth(row).click();
  await page.waitForSelector('.bulk >> text=2 selected');
  const picked = await page.$$eval('tr.chosen a.name', (links) => links.filter((link) => link.href.includes('/tasks/')).map((link) => link.textContent));
  await page.click('.bulk >> text=Purge…');
  await counted(page);
  const few = readFileSync(await downloaded('few'), 'utf8').trim().split('\n').map((line) => JSON.parse(line).id);
  assert.deepEqual(few.sort(), picked.sort());
  assert.equal(asked.length, 1, 'and what follows them is not read');
  await page.keyboard.press('Escape');
  await page.show('dead?queue=bin&reason=rejected');
  await page.click('.acts >> text=Purge all…');
  await counted(page);
  asked.length = 0;
  const path = await downloaded('all');
  await page.waitForSelector('dialog .keep >> text=1,203 saved');
  assert.equal(asked.length, Math.ceil(many / 500), 'page by page');
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  assert.equal(new Set(lines.map((line) => JSON.parse(line).id)).size, many);
  assert.ok(lines.every((line) => line.includes('9007199254740993') && line.includes('not now')), 'large numbers stay exact');
  // What is too much for one file is cut, and said to be.
  const cut = await page.evaluate(async () => {
    const { Download } = await import(document.querySelector('script[type=module]').src.replace('main.js', 'parts/download.js'));
    const download = new Download({ queue: 'bin', state: 'dead' }, 100);
    await download.begin();
    return [download.state, download.written];
  });
  assert.deepEqual(cut, ['cut', 500]);
  await page.fill('dialog input', 'bin');
  await page.click('dialog .button.harm:enabled');
  assert.match(await outcome(page), /1,203 changed/);
  assert.equal((await fetch(server.url + '/v1/tasks/bin/bin-7')).status, 404);
  await server.command('--url', server.url, 'import', '--state', 'dead', path);
  const answer = await fetch(server.url + '/v1/tasks/bin/bin-7');
  assert.match(await answer.text(), /"body":\{"n":9007199254740993,"at":7\}/);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a download that breaks is not said to be whole', async () => {
  await server.batch([{ topic: 'broken', id: 'one', text: 'x' }]);
  await server.settle('broken', 1, { do: 'reject' });
  const page = await open(browser, server);
  await page.show('tasks/broken/one');
  await page.click('.acts >> text=Purge…');
  await page.waitForSelector('dialog .keep');
  await page.context().setOffline(true);
  await page.click('dialog .keep button');
  await page.waitForSelector('dialog .keep .warm >> text=Nothing was saved');
  await page.context().setOffline(false);
  await page.click('dialog .keep button');
  await page.waitForSelector('dialog .keep >> text=1 saved');
  await page.context().close();
});

/** So many that a sweep takes a while. */
const MANY = 60_000;

test('a sweep that is under way is told of in the bar, and stopped in the middle it says what was done', async () => {
  for (let from = 0; from < MANY; from += 1000) await server.batch([...Array(1000).keys()].map((n) => ({ topic: 'many', id: `many-${from + n}`, delay: '5h' })));
  const page = await open(browser, server);
  await page.show('tasks?topic=many');
  assert.equal(await page.locator('.chip').count(), 0, 'nothing is under way');
  await page.locator('tbody input[type=checkbox]').first().click();
  await page.click('.bulk >> text=Select all that match');
  await page.click('.bulk >> text=Cancel…');
  await page.waitForFunction((many) => document.querySelector('dialog .preview')?.textContent.includes(many), MANY.toLocaleString('en'));
  await page.fill('dialog input', 'many');
  const [answer] = await Promise.all([page.waitForResponse((answer) => answer.url().endsWith('/v1/sweeps') && answer.status() === 202), page.click('dialog .button.harm:enabled')]);
  const { id } = await answer.json();
  while ((await server.ask('GET', `/v1/sweeps/${id}`)).changed === 0);
  // The server stands still in the middle of it, for as long as it takes to look and to press Stop.
  server.process.kill('SIGSTOP');
  assert.match(await page.textContent('.chip'), /Cancel tasks/);
  assert.equal(await page.getAttribute('.chip', 'href'), `/console/sweeps/${id}`);
  assert.match(await page.textContent('dialog .preview'), /under way/);
  const stopping = page.waitForRequest((request) => request.url().endsWith('/stop'));
  await page.click('dialog >> text=Stop');
  await stopping;
  server.process.kill('SIGCONT');
  assert.match(await outcome(page), /stopped/);
  const { state, matched, changed, too_late: late } = await server.ask('GET', `/v1/sweeps/${id}`);
  assert.equal(state, 'stopped');
  assert.ok(changed > 0 && changed < MANY && changed + late === matched, JSON.stringify({ matched, changed, late }));
  const said = changed.toLocaleString('en');
  assert.ok((await page.textContent('dialog .preview')).includes(`${said} changed`));
  assert.match(await page.textContent('dialog p.warm'), /60,000 were announced: it was stopped/);
  await page.waitForSelector(`.toast.warm >> text=Stopped: ${said} changed`);
  await page.waitForSelector('.chip', { state: 'detached' });
  assert.equal((await server.ask('GET', '/v1/topics/many')).waiting, MANY - changed, 'what is said is what was done');
  // The part that was done is undone.
  assert.ok((await undone(page, 'dialog')).includes(`${said} changed`));
  assert.equal((await server.ask('GET', '/v1/topics/many')).waiting, MANY);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('dead letters are replayed by filter, and purged only after typing', async () => {
  const page = await open(browser, server);
  const { dead } = await server.ask('GET', '/v1/queues/sms');
  await page.show('dead?queue=sms&reason=rejected');
  await page.click('.acts >> text=Purge all…');
  await counted(page);
  assert.match(await page.textContent('dialog .foretold'), /Cannot be undone/);
  assert.ok(await page.isDisabled('dialog .button.harm'));
  await page.fill('dialog input', 'sms');
  await page.click('dialog .button.harm:enabled');
  assert.match(await outcome(page), /4 changed/);
  assert.equal((await server.ask('GET', '/v1/queues/sms')).dead, dead - 4);
  await page.context().close();
});
