// Both languages say everything, and every text that the console asks for is there.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import en from '../../web/i18n/en.js';
import zh from '../../web/i18n/zh.js';

const web = new URL('../../web/', import.meta.url).pathname;
const sources = readdirSync(web, { recursive: true }).filter((name) => name.endsWith('.js') && !name.startsWith('i18n'))
  .map((name) => [name, readFileSync(join(web, name), 'utf8')]);

/** What is missing in one of two dictionaries, or stands for another value there. */
function differences(one, other) {
  const values = (text) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort().join();
  return Object.keys({ ...one, ...other }).filter((key) => !one[key] || !other[key] || values(one[key]) !== values(other[key]));
}

test('both languages have the same texts with the same values', () => {
  assert.deepEqual(differences(en, zh), []);
  assert.deepEqual(differences({ a: 'x {n}', b: 'y' }, { a: 'x', b: 'y' }), ['a']);
  assert.deepEqual(differences({ a: 'x', b: 'y' }, { a: 'x' }), ['b']);
});

test('Chinese texts are in Chinese', () => {
  const plain = Object.entries(zh).filter(([, text]) => !/[\u4e00-\u9fff]/.test(text.replace(/\{\w+\}/g, ''))).map(([key]) => key);
  assert.deepEqual(plain, ['body.json']);
});

/** The keys that a source asks for by name. */
function asked(text) {
  return [...text.matchAll(/\bt\('([\w.-]+)'/g)].map(([, key]) => key).filter((key) => !key.endsWith('.'));
}

test('every text that is asked for is there', () => {
  const isThere = (key) => key in en || `${key}.other` in en;
  let seen = 0;
  for (const [name, text] of sources) {
    for (const key of asked(text)) {
      assert.ok(isThere(key), `${name} asks for ${key}`);
      seen++;
    }
  }
  assert.ok(seen > 150, `${seen} were found`);
  assert.ok(!isThere('no.such.text'));
});

test('no text stands in the sources', () => {
  // A child of an element that is words and not asked for.
  const loose = (text) => [...text.matchAll(/, '([A-Z][a-z]+ [a-z ]+)'/g)].map(([, found]) => found);
  assert.deepEqual(loose("h('p', null, 'Some words')"), ['Some words']);
  for (const [name, text] of sources) assert.deepEqual(loose(text), [], name);
});

test('every code of the API has a text', () => {
  const page = readFileSync(new URL('../../../docs/http.md', import.meta.url), 'utf8');
  const table = page.slice(page.indexOf('| code | status |'), page.indexOf('An error about a field'));
  const codes = [...table.matchAll(/^\| (`.+?) \|/gm)].flatMap(([, cell]) => [...cell.matchAll(/`([a-z-]+)`/g)].map(([, code]) => code));
  assert.ok(codes.length > 25, String(codes));
  for (const code of codes) assert.ok(`code.${code}` in en, code);
});

test('the console asks for nothing but the public API', () => {
  const paths = sources.flatMap(([name, text]) => [...text.matchAll(/['"`](\/[a-z][\w/.]{2,})/g)].map(([, path]) => [name, path]));
  assert.ok(paths.length > 10);
  for (const [name, path] of paths) assert.match(path, /^\/(v1(\/|$)|console\/)/, `${name}: ${path}`);
});
