// Pictures of every page: light and dark, English and Chinese, wide and on a phone.
// CONSOLE_TEST_BINARY=target/debug/punctual node screenshots.mjs DIRECTORY [PAGE…]

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { PAGES, Server, browse, fill, open } from './browser/stage.mjs';

const [directory = 'screenshots', ...wanted] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const server = await new Server('--console-environment', 'production').start();
const browser = await browse();
try {
  await fill(server);
  for (const width of [1280, 390]) {
    for (const theme of ['light', 'dark']) {
      for (const language of ['en', 'zh']) {
        const page = await open(browser, server, { theme, language, width, height: width === 390 ? 844 : 860 });
        for (const [name, path] of Object.entries(PAGES)) {
          if (wanted.length && !wanted.includes(name)) continue;
          await page.goto(server.url + '/console/' + path);
          await page.waitForFunction(() => document.querySelector('.page') && !document.querySelector('[aria-busy="true"]'));
          await page.waitForTimeout(name === 'overview' ? 4500 : 150);
          await page.screenshot({ path: join(directory, `${name}-${width}-${theme}-${language}.png`) });
        }
        await page.context().close();
      }
    }
  }
} finally {
  await browser.close();
  await server.end();
}
