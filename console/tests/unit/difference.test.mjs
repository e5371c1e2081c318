// What settings differ in, and the patch that leads from one to the other.

import assert from 'node:assert/strict';
import test from 'node:test';
import { changed, differences, patchOf } from '../../web/parts/difference.js';

/** A merge patch, as RFC 7396 has it. */
function merged(target, patch) {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result = typeof target === 'object' && target && !Array.isArray(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

const SETTINGS = [
  {},
  { owner: 'a', rate: { per_second: 5 }, retry: { attempts: 5, backoff: { first: '1s', longest: '1h' } } },
  { owner: 'b', rate: { per_second: 5, burst: 9 }, retry: { attempts: 5, backoff: { first: '2s', longest: '1h' } } },
  { rate: { per_second: 6 }, feeds: [{ queue: 'x' }, { queue: 'y', pattern: '#' }], ttl: null },
  { feeds: [{ queue: 'y' }], priority: 0, paused: false },
];

test('the patch of all differences leads from one to the other, whichever they are', () => {
  for (const one of SETTINGS) {
    for (const other of SETTINGS) {
      const reached = merged(one, JSON.parse(JSON.stringify(patchOf(differences(one, other)))));
      assert.deepEqual(differences(reached, other), [], JSON.stringify([one, other]));
      assert.deepEqual(differences(changed(one, differences(one, other)), other), []);
    }
    assert.deepEqual(differences(one, one), []);
  }
});

test('only what differs is in the patch, and a limit is replaced whole', () => {
  const [, one, other] = SETTINGS;
  assert.deepEqual(differences(one, other).map(({ path }) => path), ['owner', 'rate', 'retry.backoff.first']);
  assert.deepEqual(JSON.parse(JSON.stringify(patchOf(differences(other, one)))), { owner: 'a', rate: { per_second: 5, burst: null }, retry: { backoff: { first: '1s' } } });
});

test('names that objects have by themselves are only names', () => {
  const hostile = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}');
  patchOf(differences({}, hostile));
  changed({}, differences({}, hostile));
  assert.equal({}.polluted, undefined);
});
