// Names lead where they say: into paths, into commands, and back.

import assert from 'node:assert/strict';
import test from 'node:test';

globalThis.location = new URL('http://127.0.0.1:7400/console/');
globalThis.sessionStorage = { getItem: () => null };
const { linkTo, match, pathTo } = await import('../../web/router.js');
const { asCommand, asCurl, quoted, taskPath } = await import('../../web/api.js');
const { isOwn } = await import('../../web/render.js');

const NAMES = ['a', 'a/b', '%2e%2e', '?x=1#y', 'back\\slash', '订单', '🦀', '__proto__', "it's", '--all', ' …', '&amp;', '+'];

test('a name in a path is found again by the server and by the console', () => {
  for (const topic of NAMES) {
    for (const id of NAMES) {
      const url = new URL(taskPath(topic, id), 'http://server');
      assert.equal(url.search + url.hash, '');
      assert.deepEqual(url.pathname.split('/').slice(3).map(decodeURIComponent), [topic, id]);
      const page = new URL(linkTo('tasks', [topic, id], { q: id }), 'http://server');
      const found = match(page.pathname.slice('/console/'.length), page.search);
      assert.deepEqual([found.file, found.names, found.query.get('q')], ['task', { topic, id }, id]);
    }
  }
});

test('what would lead elsewhere is refused', () => {
  for (const name of ['.', '..', '']) {
    assert.throws(() => pathTo('/v1/tasks', 'dead', name));
    assert.throws(() => linkTo('topics', [name]));
  }
  for (const path of ['topics/..', 'topics/%2e%2e', 'topics/%2E', 'topics/', 'topics/%zz', 'no', 'tasks/a']) assert.equal(match(path), undefined, path);
  // The control: this is what a browser makes of such a path.
  assert.equal(new URL('/v1/tasks/%2e%2e/dead/purge', 'http://server').pathname, '/v1/dead/purge');
});

test('links of others are not links', () => {
  for (const own of ['/console/', '/console/topics/a%2Fb', '#title']) assert.ok(isOwn(own), own);
  for (const other of ['javascript:alert(1)', '//evil.example', '/\\evil.example', 'https://evil.example', 'data:text/html,x', ' javascript:x', 'x']) assert.ok(!isOwn(other), other);
});

test('commands are words of a shell, and names never flags', async () => {
  assert.equal(quoted('order-7'), 'order-7');
  assert.equal(quoted("it's; rm -rf $HOME `x`"), "'it'\\''s; rm -rf $HOME `x`'");
  const { execFileSync } = await import('node:child_process');
  for (const name of NAMES) {
    assert.equal(execFileSync('bash', ['-c', `printf %s ${quoted(name)}`]).toString(), name);
    const curl = asCurl({ method: 'POST', path: taskPath(name, name, 'purge'), body: { name } });
    const words = execFileSync('bash', ['-c', `printf '%s\\n' ${curl}`]).toString().split('\n');
    assert.equal(words.at(-2), `http://127.0.0.1:7400${taskPath(name, name, 'purge')}`);
  }
  assert.equal(asCommand('cancel', 'orders', 'a b'), "punctual cancel orders 'a b'");
});
