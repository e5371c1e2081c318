// What is wrong with a page for those who read it: barriers for people who cannot see it well, and words of another language.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What is wrong with a page for people who cannot see it well. */
export async function barriers(page) {
  const session = await page.context().newCDPSession(page);
  // The policy lets no script in from outside; the inspector is not a page.
  await session.send('Runtime.evaluate', { expression: `window.axe || (() => { ${AXE} })()` });
  const found = await session.send('Runtime.evaluate', { awaitPromise: true, returnByValue: true,
    expression: "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then(({ violations, passes }) => ({ checked: passes.map(({ id }) => id), violations: violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html.slice(0, 120) + ' ' + node.any.map((check) => check.message).join(' ')).slice(0, 3).join(' | ')) }))" });
  await session.detach();
  return found.result.value;
}

/** Words in Latin letters that are shown to people, as far as they are not known; names, code and what the server says are left out. */
export async function latin(page, within = 'body') {
  const found = await page.evaluate((within) => {
    const walker = document.createTreeWalker(document.querySelector(within), NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      const around = walker.currentNode.parentElement;
      if (around.closest('noscript, script, code, pre, kbd, .isolated, .name, .brand, .badge.production, [lang="en"], .pick, .note, select, .menu, time, h1')) continue;
      for (const word of walker.currentNode.nodeValue.match(/[A-Za-z]{3,}/g) ?? []) found.push(word);
    }
    return [...new Set(found)];
  }, within);
  return found.filter((word) => !KNOWN.includes(word));
}
const KNOWN = ['JSON', 'max', 'curl', 'KiB', 'MiB', 'Punctual', 'punctual', 'memory', 'almanac', 'topics', 'queues', 'set', 'HTTP', 'sms', 'invoice', 'order', 'user', 'coupon', 'end', 'Shift'];
