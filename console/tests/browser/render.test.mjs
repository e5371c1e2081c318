// The rendering core against another one: random trees and random changes give the same document as Preact does.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { browse } from './stage.mjs';

const files = {
  '/render.js': readFileSync(new URL('../../web/render.js', import.meta.url)),
  '/preact.js': readFileSync(createRequire(import.meta.url).resolve('preact').replace(/preact\.(js|cjs|mjs)$/, 'preact.mjs')),
};
let browser, page, server;

before(async () => {
  server = createServer((request, answer) => {
    answer.setHeader('content-type', request.url.endsWith('.js') ? 'text/javascript' : 'text/html');
    answer.end(files[request.url] ?? '<!doctype html><title>x</title><div id="ours"></div><div id="theirs"></div>');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  browser = await browse();
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
});

after(async () => {
  await browser.close();
  server.close();
});

test('random trees and changes give the document that Preact gives', async () => {
  const { rounds, moved, differences } = await page.evaluate(async () => {
    const ours = await import('/render.js');
    const theirs = await import('/preact.js');
    let state = 7;
    const draw = (below) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const tree = (depth, key) => {
      if (depth === 0 || draw(5) === 0) return draw(3) === 0 ? null : `t${draw(4)}`;
      const isKeyed = draw(2) === 0;
      const keys = [...Array(draw(6)).keys()].map((n) => n + draw(2) * 10).sort(() => draw(3) - 1);
      const unique = [...new Set(keys)];
      const children = isKeyed ? unique.map((n) => tree(depth - 1, n)).filter((child) => child && typeof child === 'object') : unique.map(() => tree(depth - 1));
      return { tag: ['div', 'p', 'span', 'b'][draw(4)], props: { ...(draw(2) ? { class: `c${draw(3)}` } : {}), ...(draw(3) ? {} : { 'data-x': `x${draw(2)}` }), ...(key === undefined ? {} : { key }) }, children };
    };
    const made = (h, node) => (node && typeof node === 'object' ? h(node.tag, node.props, ...node.children.map((child) => made(h, child))) : node);
    const [left, right] = [document.getElementById('ours'), document.getElementById('theirs')];
    const differences = [];
    let moved = 0;
    for (let round = 0; round < 3000; round++) {
      const described = { tag: 'div', props: {}, children: [tree(4), tree(3)] };
      const before = new Set(left.querySelectorAll('*'));
      ours.patch(left, made(ours.h, described));
      theirs.render(made(theirs.h, described), right);
      moved += [...left.querySelectorAll('*')].filter((node) => before.has(node)).length;
      const theirsNow = right.cloneNode(true);
      theirsNow.normalize();
      if (!left.firstChild.isEqualNode(theirsNow.firstChild)) differences.push([left.innerHTML, right.innerHTML]);
    }
    return { rounds: 3000, moved, differences: differences.slice(0, 2) };
  });
  assert.deepEqual(differences, []);
  assert.ok(moved > rounds, `nodes stay where they can: ${moved}`);
});

test('nodes with keys are moved and not made anew, with what people have typed into them', async () => {
  const kept = await page.evaluate(async () => {
    const { h, patch } = await import('/render.js');
    const root = document.createElement('div');
    document.body.append(root);
    const row = (key) => h('p', { key }, h('input', { id: 'field-' + key }));
    patch(root, ['a', 'b', 'c', 'd'].map(row));
    const nodes = Object.fromEntries([...root.children].map((node) => [node.firstChild.id, node]));
    root.querySelector('#field-c').value = 'typed';
    patch(root, ['d', 'c', 'x', 'a'].map(row));
    const order = [...root.children].map((node) => node.firstChild.id).join();
    return { order, same: ['a', 'c', 'd'].every((key) => root.contains(nodes['field-' + key])), typed: root.querySelector('#field-c').value };
  });
  assert.deepEqual(kept, { order: 'field-d,field-c,field-x,field-a', same: true, typed: 'typed' });
});

test('strings are text, and nothing else is let in', async () => {
  const seen = await page.evaluate(async () => {
    const { h, patch } = await import('/render.js');
    const root = document.createElement('div');
    document.body.append(root);
    const refused = [];
    const refuse = (name, make) => {
      try {
        patch(root, make());
      } catch {
        refused.push(name);
      }
    };
    refuse('script', () => h('script', null, 'window.pwned = 1'));
    refuse('iframe', () => h('iframe', { src: 'javascript:1' }));
    refuse('srcdoc', () => h('div', { srcdoc: 'x' }));
    refuse('innerHTML', () => h('div', { innerHTML: '<img>' }));
    refuse('formaction', () => h('button', { formaction: 'javascript:1' }));
    patch(root, [h('a', { href: 'javascript:window.pwned=1' }, '<img src=x onerror=window.pwned=1>'), h('p', { title: '"><script>' }, 'x')]);
    return { refused, href: root.querySelector('a').hasAttribute('href'), images: root.querySelectorAll('img, script').length, text: root.textContent, pwned: window.pwned };
  });
  assert.deepEqual(seen, { refused: ['script', 'iframe', 'srcdoc', 'innerHTML', 'formaction'], href: false, images: 0, text: '<img src=x onerror=window.pwned=1>x', pwned: undefined });
});

test('listeners are exchanged, and removed attributes go', async () => {
  const seen = await page.evaluate(async () => {
    const { h, patch } = await import('/render.js');
    const root = document.createElement('div');
    const heard = [];
    const draw = (name, props) => patch(root, h('button', { onclick: name && (() => heard.push(name)), ...props }, 'x'));
    draw('one', { title: 'a', disabled: false, style: { width: '3px' } });
    root.firstChild.click();
    draw('two', { 'aria-label': 'b' });
    root.firstChild.click();
    draw(undefined, {});
    root.firstChild.click();
    return { heard, html: root.innerHTML.replace(' style=""', '') };
  });
  assert.deepEqual(seen, { heard: ['one', 'two'], html: '<button>x</button>' });
});
