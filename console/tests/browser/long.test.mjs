// A language whose words are half as long again, as some are: every text has room, on a desk and on a phone.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import en from '../../web/i18n/en.js';
import { PAGES, Server, browse, fill, open } from './stage.mjs';

let browser, server;

before(async () => {
  [server, browser] = await Promise.all([new Server().start(), browse()]);
  await fill(server);
  // Long names, as the ids of programs are.
  await server.batch([...Array(20).keys()].map((n) => ({ topic: 'a-topic-with-a-rather-long-name', id: `c0ffee00-1234-5678-9abc-${String(n).padStart(12, '0')}`, key: 'user-1', text: 'x' })));
  await server.settle('a-topic-with-a-rather-long-name', 12, { do: 'reject', note: 'no such order: 01M7HDC8V6177XAZ2JZP0X71P4, asked at 10.0.3.7 after three attempts' });
});

after(async () => {
  await browser.close();
  await server.end();
});

/** A text that is longer by half, and that no other page has. Values stay as they are. */
function lengthened(text) {
  const words = text.split(' ');
  const more = words.filter((word) => !word.includes('{')).slice(0, Math.ceil(words.length / 2));
  return `⟦${text} ${more.length ? more.join(' ') : text.replace(/\{\w+\}/g, '')}⟧`;
}
const LONG = Object.fromEntries(Object.entries(en).map(([key, text]) => [key, lengthened(text)]));

/** A page in that language. */
async function openLong(width, height) {
  const page = await open(browser, server, { width, height });
  await page.route('**/i18n/en.js', (route) => route.fulfill({ contentType: 'text/javascript; charset=utf-8', body: `export default ${JSON.stringify(LONG)};` }));
  return page;
}

/** Texts that stand out of their boxes, or out of the page; what scrolls by itself, or is cut with dots, does not. */
const overflowing = (page) => page.evaluate(() => {
  const scrolls = (node) => node && node !== document.documentElement && (['auto', 'scroll'].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  const isUnseen = (node) => node && (getComputedStyle(node).clipPath !== 'none' || isUnseen(node.parentElement));
  const found = document.documentElement.scrollWidth > innerWidth ? [`the page is ${document.documentElement.scrollWidth} wide`] : [];
  for (const node of document.querySelectorAll('button, .button, .badge, h1, h2, h3, label, summary, th, .nav-link, .figure, .pick, .empty, .banner')) {
    const { width, right, left } = node.getBoundingClientRect();
    if (!width || isUnseen(node) || getComputedStyle(node).visibility === 'hidden') continue;
    const isCut = getComputedStyle(node).textOverflow === 'ellipsis';
    const isOut = (right > innerWidth + 1 || left < -1) && !scrolls(node.parentElement);
    if ((node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0 && !isCut && getComputedStyle(node).display !== 'inline') || isOut) found.push(`${node.outerHTML.slice(0, 150)} ${node.scrollWidth} in ${node.clientWidth}`);
  }
  // A name of which each line has a letter or two can be read by nobody.
  for (const node of document.querySelectorAll('.page td, .page tbody th')) {
    const { width, height } = node.getBoundingClientRect();
    if (width > 0 && width < 80 && height > 100 && node.textContent.length > 8) found.push(`${node.textContent.slice(0, 40)} is squeezed: ${width} wide, ${height} high`);
  }
  return found;
});

describe('long words have room', { concurrency: 2 }, () => {
  for (const [where, width, height] of [['desk', 1280, 860], ['phone', 390, 844]]) it(where, async () => {
    const page = await openLong(width, height);
    for (const [name, path] of Object.entries(PAGES)) {
      await page.show(path);
      assert.ok((await page.textContent('body')).includes('⟦'), `${name}: it is the long language`);
      assert.deepEqual(await overflowing(page), [], name);
    }
    await page.evaluate(() => {
      const tight = document.createElement('button');
      tight.textContent = 'much too long for this';
      Object.assign(tight.style, { width: '30px', whiteSpace: 'nowrap', display: 'block', padding: '0' });
      document.querySelector('.page').append(tight);
    });
    assert.equal((await overflowing(page)).length, 1, 'what has no room is noticed');
    await page.show('dead');
    await page.evaluate(() => Object.assign(document.querySelector('.page tbody th').style, { display: 'block', minWidth: '0', width: '20px', wordBreak: 'break-all' }));
    assert.ok((await overflowing(page)).some((text) => text.includes('squeezed')), 'what is squeezed is noticed');
    await page.context().close();
  });
});
