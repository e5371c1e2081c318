// Bodies are shown as they are: large numbers exact, JSON laid out and not changed.

import assert from 'node:assert/strict';
import test from 'node:test';
import { hex, pretty, rawItems, rawMember } from '../../web/parts/body.js';
import { herds, nice } from '../../web/parts/chart.js';
import { Sorting } from '../../web/parts/table.js';

const rawBody = (answer) => rawMember(answer, 'body');

test('the body is cut out of an answer as the server wrote it', () => {
  const body = '{"n": 9007199254740993, "x": [1e400, "\\"body\\": 1", {}]}';
  assert.equal(rawBody(`{"topic":"a","headers":{"body":"no"},"text2":"\\"body\\":3","body":${body},"z":1}`), body);
  for (const value of ['null', '"a\\\\"', '[]', '-0.10', '{}', '[{"body":1}]']) assert.equal(rawBody(`{"id":"x","body":${value}}`), value);
  assert.equal(rawBody('{"text":"body"}'), undefined);
  // The control: what a browser's own parser makes of it.
  assert.equal(JSON.parse(body.replace('1e400', '1')).n, 9007199254740992);
});

test('the items of an answer are cut apart as the server wrote them', () => {
  const items = ['{"n": 9007199254740993}', '"], ["', '[1,[2]]', 'null', '-0.10'];
  assert.deepEqual(rawItems(rawMember(`{"tasks":[${items.join(' , ')}],"next":"]"}`, 'tasks')), items);
  assert.deepEqual([rawItems('[]'), rawItems('[ ]'), rawItems('[{}]')], [[], [], ['{}']]);
});

test('JSON over several lines means the same', () => {
  for (const json of ['{"a":[1,2,{"b":"x, y: {}"}],"c":{},"d":[]}', '[]', '"a"', '12345678901234567890', '{"a" : 1 , "b":[ ] }']) {
    assert.deepEqual(JSON.parse(pretty(json)), JSON.parse(json));
  }
  assert.equal(pretty('{"a":[1,{}]}'), '{\n  "a": [\n    1,\n    {}\n  ]\n}');
  assert.ok(pretty('[12345678901234567890]').includes('12345678901234567890'));
});

test('bytes are shown in hexadecimal up to a limit', () => {
  assert.equal(hex(btoa('Hi\0'), 100), '000000  48 69 00'.padEnd(8 + 48) + ' Hi·');
  assert.equal(hex(btoa('x'.repeat(100)), 32).split('\n').length, 2);
});

test('a herd is many, and far more than usual', () => {
  assert.deepEqual(herds([10, 12, 900, 11, 0]), [false, false, true, false, false]);
  assert.deepEqual(herds([1, 1, 1, 50]), [false, false, false, false], 'few are no herd');
  assert.deepEqual(herds([500, 600, 550]), [false, false, false], 'what is usual is no herd');
  assert.deepEqual([nice(3), nice(900), nice(41_000), nice(1)], [4, 1000, 50_000, 2]);
});

test('rows keep their places when their numbers change', () => {
  const columns = [{ key: 'n', label: '', cell: () => '', sort: (row) => row.n }];
  const sorting = new Sorting('n', true);
  const names = (rows) => sorting.sorted(rows, columns, (row) => row.name).map((row) => row.name).join('');
  assert.equal(names([{ name: 'a', n: 1 }, { name: 'b', n: 3 }, { name: 'c', n: 2 }]), 'bca');
  assert.equal(names([{ name: 'a', n: 9 }, { name: 'b', n: 0 }, { name: 'c', n: 2 }, { name: 'd', n: 99 }]), 'bcad');
});
