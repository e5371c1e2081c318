// Every dialog of every page, by the keyboard: it can be used by everybody, does no harm by itself, and gives the focus back. What can
// be done with a mouse can be done without one.

import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { barriers, latin } from './reading.mjs';
import { PAGES, Server, browse, fill, open } from './stage.mjs';

/** Parts of names that stand in what dialogs say. */
const NAMES = ['order', 'unpaid', 'reminder', 'user', 'worker'];
let browser, server, pages;

before(async () => {
  [server, browser] = await Promise.all([new Server().start(), browse()]);
  await fill(server);
  const { tasks } = await server.ask('GET', '/v1/tasks?state=leased&limit=1');
  pages = { ...PAGES, 'task-leased': `tasks/sms/${tasks[0].id}`, 'topic-dead': 'topics/sms?tab=dead', 'queue-waiting': 'queues/reminder' };
});

after(async () => {
  await browser.close();
  await server.end();
});

/** What opens a dialog: it says so by its dots. Of those that do the same for each row, one. */
const openers = (page) => page.evaluate(() => {
  const found = [...document.querySelectorAll('.page button')].filter((button) => button.textContent.trim().endsWith('…') && !button.disabled);
  const seen = new Set();
  return found.map((button, index) => {
    button.dataset.opener = String(index);
    return { index, text: button.textContent.trim() };
  }).filter(({ text }) => !seen.has(text) && seen.add(text));
});

describe('every dialog opens by Enter, can be used by everybody, and gives the focus back', { concurrency: 2 }, () => {
  for (const [theme, language] of [['light', 'zh'], ['dark', 'en']]) it(`${theme}, ${language}`, async () => {
    const page = await open(browser, server, { theme, language });
    const done = new Set();
    for (const [name, path] of Object.entries(pages)) {
      await page.show(path);
      for (const { index, text } of await openers(page)) {
        const [kind, where] = [name.split('-')[0], `${name}: ${text}`];
        if (done.has(`${kind} ${text}`)) continue;
        done.add(`${kind} ${text}`);
        await page.focus(`[data-opener="${index}"]`);
        await page.keyboard.press('Enter');
        await page.waitForSelector('dialog[open]');
        await page.waitForFunction(() => !document.querySelector('dialog .preview') || document.querySelector('dialog .preview .badge'));
        const focus = await page.evaluate(() => ({ isInside: document.querySelector('dialog').contains(document.activeElement), isHarm: document.activeElement.matches('.harm, .dialog-foot .main') }));
        assert.deepEqual(focus, { isInside: true, isHarm: false }, where);
        const { checked, violations } = await barriers(page);
        assert.deepEqual(violations, [], where);
        assert.ok(checked.includes('color-contrast'), where);
        if (language === 'zh') assert.deepEqual((await latin(page, 'dialog')).filter((word) => !NAMES.includes(word)), [], where);
        await page.keyboard.press('Escape');
        await page.waitForSelector('dialog', { state: 'detached' });
        await page.waitForFunction((index) => document.activeElement?.dataset.opener === String(index), index, { timeout: 10_000 }).catch(() => assert.fail(`${where}: the focus did not come back`));
      }
    }
    assert.ok(done.size >= 10, `dialogs were found: ${[...done].join(', ')}`);
    assert.deepEqual([page.wrong, await page.evaluate(() => window.refused)], [[], []]);
    await page.context().close();
  });
});

test('what is wrong in a dialog is found', async () => {
  const page = await open(browser, server, { language: 'zh' });
  await page.show('tasks/order-unpaid/order-7000');
  const [first] = await openers(page);
  await page.focus(`[data-opener="${first.index}"]`);
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  await page.evaluate(() => {
    // A page that nobody looks at is not drawn again: what is planted stays.
    Object.defineProperty(document, 'hidden', { get: () => true });
    const [text, button] = [document.querySelector('dialog p'), document.querySelector('dialog .dialog-foot .button')];
    text.firstChild.nodeValue += ' pale words';
    Object.assign(text.style, { color: '#ddd', background: '#fff' });
    button.firstChild.nodeValue = '';
  });
  const { violations } = await barriers(page);
  assert.ok(violations.some((text) => text.startsWith('button-name')) && violations.some((text) => text.startsWith('color-contrast')), String(violations));
  assert.deepEqual((await latin(page, 'dialog')).filter((word) => !NAMES.includes(word)), ['pale', 'words']);
  await page.context().close();
});

/** What looks as if it could be clicked and cannot be reached by a key. A picture that is hidden from readers repeats what stands beside it. */
const unreachable = (page) => page.evaluate(() => {
  const isReached = (node) => node.closest('a[href], button, input, select, textarea, label, summary, svg[aria-hidden="true"], [tabindex]:not([tabindex="-1"])');
  return [...document.querySelectorAll('body *')].filter((node) => getComputedStyle(node).cursor === 'pointer' && !isReached(node)).map((node) => node.outerHTML.slice(0, 120));
});

/** Goes through a page by Tab, and says where the focus cannot be seen. */
async function walk(page, steps) {
  const unseen = [];
  const stops = new Set();
  for (let step = 0; step < steps; step++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const node = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(node);
      const { width, height } = node.getBoundingClientRect();
      return { name: node.outerHTML.slice(0, 120), isSeen: node === document.body || (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1 && width > 0 && height > 0) };
    });
    stops.add(at.name);
    if (!at.isSeen) unseen.push(at.name);
  }
  return { unseen, stops: stops.size };
}

test('everything that can be clicked can be reached by Tab, and it is seen where one is', async () => {
  const page = await open(browser, server);
  for (const [name, path] of Object.entries(pages)) {
    await page.show(path);
    assert.deepEqual(await unreachable(page), [], name);
    const { unseen, stops } = await walk(page, 16);
    assert.deepEqual(unseen, [], name);
    assert.ok(stops > 8, `${name}: ${stops} stops`);
  }
  await page.evaluate(() => {
    document.querySelector('.page h1').style.cursor = 'pointer';
    for (const node of document.querySelectorAll('a, button')) node.style.outline = 'none';
  });
  assert.ok((await unreachable(page)).length > 0, 'what only a mouse reaches is noticed');
  assert.ok((await walk(page, 3)).unseen.length > 0, 'what is not seen is noticed');
  await page.context().close();
});
