// Every page in a real browser: nothing is refused by the policy, nothing is asked of others, everybody can read it, and
// nothing moves. Each check has a control that it must find.

import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { barriers, latin } from './reading.mjs';
import { HOSTILE, PAGES, Server, browse, fill, infest, open } from './stage.mjs';

let browser, server;

before(async () => {
  [server, browser] = await Promise.all([new Server('--console-environment', 'production').start(), browse()]);
  await fill(server);
});

after(async () => {
  await browser.close();
  await server.end();
});

// Both looks side by side: two cores have two pages.
describe('every page can be used by everybody', { concurrency: 2 }, () => {
  for (const [theme, language] of [['light', 'en'], ['dark', 'zh']]) it(`${theme}, ${language}`, async () => {
    const page = await open(browser, server, { theme, language });
    for (const [name, path] of Object.entries(PAGES)) {
      await page.goto(server.url + '/console/' + path);
      await page.waitForFunction(() => document.querySelector('.page')?.children.length && !document.querySelector('[aria-busy="true"]'));
      const { checked, violations } = await barriers(page);
      assert.deepEqual(violations, [], name);
      assert.ok(checked.includes('color-contrast'), `${name}: contrast was looked at, so there was text`);
      if (language === 'zh') assert.deepEqual(await latin(page), [], name);
    }
    assert.deepEqual([page.wrong, page.foreign, await page.evaluate(() => window.refused)], [[], [], []]);
    await page.context().close();
  });
});

describe('every dialog can be used by everybody', { concurrency: 2 }, () => {
  for (const [theme, language] of [['light', 'zh'], ['dark', 'en']]) it(`${theme}, ${language}`, async () => {
    const page = await open(browser, server, { theme, language });
    const dialogs = {
      'rows of a list': ['topics/order-unpaid', async () => page.locator('tbody input[type=checkbox]').first().click(), '.bulk'],
      move: ['tasks/order-unpaid/order-7000', () => page.keyboard.press('m'), 'dialog'],
      sweep: ['keys/user-1', () => page.keyboard.press('c'), 'dialog .samples li'],
      spread: ['future', async () => { await page.locator('.needs button').first().click(); await page.locator('.detail button').first().click(); }, 'dialog .samples li'],
      pause: ['queues/sms', () => page.locator('.heading .acts button').click(), 'dialog'],
      settings: ['queues/sms?tab=settings', async () => { await page.locator('.form input').first().fill('5m'); await page.locator('.settings-foot .main:enabled').click(); }, 'dialog .changes'],
    };
    for (const [name, [path, act, shown]] of Object.entries(dialogs)) {
      await page.show(path);
      await act();
      await page.waitForSelector(shown);
      const { checked, violations } = await barriers(page);
      assert.deepEqual(violations, [], name);
      assert.ok(checked.includes('color-contrast'), name);
      if (language === 'zh') assert.deepEqual(await latin(page), [], name);
    }
    assert.deepEqual([page.wrong, await page.evaluate(() => window.refused)], [[], []]);
    await page.context().close();
  });
});

test('there are fonts, so that all this was about text', async () => {
  const page = await open(browser, server);
  await page.show('help');
  const widths = await page.evaluate(() => {
    const context = document.createElement('canvas').getContext('2d');
    context.font = '40px ' + getComputedStyle(document.body).fontFamily;
    const pixels = (text) => {
      context.clearRect(0, 0, 300, 150);
      context.fillText(text, 5, 60);
      return context.getImageData(0, 0, 100, 100).data.join();
    };
    return { latin: context.measureText('Punctual').width, isGlyph: pixels('订') !== pixels('\uFFFF') && pixels('订') !== pixels('单') };
  });
  assert.ok(widths.latin > 50 && widths.isGlyph, JSON.stringify(widths));
  await page.context().close();
});

test('the checks find what is planted', async () => {
  const page = await open(browser, server, { language: 'zh' });
  await page.show('help');
  await page.evaluate(() => {
    const button = document.createElement('button');
    const pale = document.createElement('p');
    pale.textContent = 'pale words';
    pale.style.color = '#eee';
    pale.style.background = '#fff';
    document.body.append(button, pale);
  });
  const { violations } = await barriers(page);
  assert.ok(violations.some((text) => text.startsWith('button-name')) && violations.some((text) => text.startsWith('color-contrast')), String(violations));
  assert.ok((await latin(page)).includes('pale'));
  const refused = await page.evaluate(() => {
    const outcomes = [];
    const attempt = (name, act) => {
      try {
        act();
        outcomes.push(name + ' went');
      } catch (error) {
        outcomes.push(name + ' ' + error.name);
      }
    };
    attempt('markup', () => (document.querySelector('.page').innerHTML = '<b>x</b>'));
    attempt('script', () => {
      const script = document.createElement('script');
      script.textContent = 'window.pwned = 1';
      document.body.append(script);
    });
    const link = document.createElement('img');
    link.src = 'http://127.0.0.2:9/x.png';
    document.body.append(link);
    const styled = document.createElement('p');
    styled.setAttribute('style', 'color: red');
    return new Promise((done) => setTimeout(() => done({ outcomes, refused: window.refused.length, pwned: window.pwned }), 300));
  });
  assert.deepEqual(refused.outcomes, ['markup TypeError', 'script TypeError']);
  assert.ok(refused.refused >= 3 && refused.pwned === undefined, JSON.stringify(refused));
  await page.context().close();
});

test('hostile names and texts are shown as they are, on every page', async () => {
  const hostile = await new Server().start();
  const page = await open(browser, hostile);
  try {
    await infest(hostile);
    const encoded = encodeURIComponent;
    const paths = ['', 'topics', 'queues', 'tasks', 'dead', 'topics/target?tab=dead', 'topics/target?tab=history', 'topics/target?tab=leased', 'topics/target?tab=settings', 'queues/target', 'queues/target?tab=leased', 'queues/target?tab=dead', 'queues/target?tab=consumers', 'queues/target?tab=settings', 'consumers', 'audit', 'sweeps', 'future', 'future?view=table',
      ...HOSTILE.flatMap((name) => [`topics/${encoded(name)}`, `tasks/target/${encoded(name)}`, `keys/${encoded(name)}`, `find?q=${encoded(name)}`])];
    let shown = 0;
    for (const path of paths) {
      await page.show(path);
      const text = await page.evaluate(() => document.querySelector('.page').textContent);
      shown += HOSTILE.filter((name) => text.includes(name)).length;
      assert.ok(!(await page.evaluate(() => document.querySelector('.failed, .page img, .page script, .page b'))), `${path}: ${text.slice(0, 300)}`);
    }
    assert.ok(shown > HOSTILE.length * 5, `names were seen ${shown} times`);
    assert.deepEqual([await page.evaluate(() => window.pwned), page.wrong, page.foreign, await page.evaluate(() => window.refused)], [undefined, [], [], []]);
  } finally {
    await page.context().close();
    await hostile.end();
  }
});

test('nothing moves by itself while numbers change', async () => {
  const watched = await Promise.all(['', 'topics', 'tasks', 'topics/order-unpaid'].map(async (path) => {
    const page = await open(browser, server);
    await page.show(path);
    await page.evaluate(() => { window.shifted = 0; window.movers = []; });
    return [path, page];
  }));
  for (let round = 0; round < 3; round++) {
    await server.batch([...Array(400)].map((_, n) => ({ topic: 'order-unpaid', id: `live-${round}-${n}`, delay: '50m', body: n })));
    await watched[0][1].waitForTimeout(1100);
  }
  // All of them have shown the new numbers by now, or do it here.
  for (const [path, page] of watched.filter(([path]) => path !== 'tasks')) await page.waitForFunction(() => document.querySelector('.page').textContent.includes('1,440'), undefined, { timeout: 20_000 }).catch(() => assert.fail(`${path || 'overview'} shows old numbers`));
  for (const [path, page] of watched) assert.deepEqual(await page.evaluate(() => [window.shifted, window.movers]), [0, []], path);
  const [, [, page]] = watched;
  await page.evaluate(() => (document.querySelector('.heading').style.marginTop = '200px'));
  await page.waitForFunction(() => window.shifted > 0.01, undefined, { timeout: 10_000 }).catch(() => assert.fail('what moves is noticed'));
  await Promise.all(watched.map(([, page]) => page.context().close()));
});

test('the first look takes few requests and little, all from here', async () => {
  const page = await open(browser, server);
  await page.show('');
  const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize]));
  const files = loaded.filter(([path]) => path.startsWith('/console/'));
  const bytes = files.reduce((sum, [, size]) => sum + size, 0);
  assert.ok(files.length > 5 && files.length <= 25, `${files.length} files`);
  assert.ok(bytes > 5_000 && bytes <= 60 << 10, `${bytes} bytes`);
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  assert.ok(paint > 0, 'something was painted');
  assert.deepEqual(page.foreign, []);
  await page.context().close();
});

test('a phone shows every page without a sideways scroll, and cards instead of tables', async () => {
  const page = await open(browser, server, { width: 390, height: 844, language: 'zh' });
  for (const [name, path] of Object.entries(PAGES)) {
    await page.goto(server.url + '/console/' + path);
    await page.waitForFunction(() => document.querySelector('.page')?.children.length && !document.querySelector('[aria-busy="true"]'));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${name} is ${wide} wide`);
  }
  await page.context().close();
});
