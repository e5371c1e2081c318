// Rows that keep their places: compared with a list that changes at random and is read page by page.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Steady } from '../../web/parts/steady.js';

const PAGE = 8;

/** The same numbers for the same seed. */
function dice(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A list in the order of its numbers, as a server pages it. */
class Listed {
  constructor(roll) {
    this.roll = roll;
    this.ids = new Set();
    for (let many = roll(20); many > 0; many--) this.ids.add(roll(1000));
  }

  /** Some come and some go. */
  change() {
    for (let many = this.roll(6); many > 0; many--) this.ids.add(this.roll(1000));
    for (const id of [...this.ids]) if (this.roll(5) === 0) this.ids.delete(id);
  }

  page(limit = PAGE) {
    const all = [...this.ids].sort((one, other) => one - other);
    return [all.slice(0, limit).map((id) => ({ id, seen: this.roll(1000) })), all.length > limit ? String(all[limit - 1]) : undefined];
  }
}

/** What is wrong with how `Kind` follows a list that changes. */
function faults(Kind, seed) {
  const [roll, wrong] = [dice(seed), []];
  const listed = new Listed(roll);
  const steady = new Kind((row) => String(row.id));
  steady.set(...listed.page());
  for (let round = 0; round < 12; round++) {
    listed.change();
    const [before, marked] = [steady.rows.map(({ id }) => id), new Set(steady.gone)];
    const [rows, next] = listed.page();
    steady.see(rows, next);
    const now = steady.rows.map(({ id }) => id);
    if (before.length && String(now) !== String(before)) wrong.push('a row has moved');
    if (steady.rows.some((row) => rows.some((latest) => latest.id === row.id && latest !== row))) wrong.push('a row is not as it is now');
    // One that had left and has come back behind what was read is not known of.
    if (now.some((id) => steady.gone.has(String(id)) && listed.ids.has(id) && (!marked.has(String(id)) || rows.some((row) => row.id === id)))) wrong.push('a row that is there is taken for gone');
    if (next === undefined && now.some((id) => !steady.gone.has(String(id)) && !listed.ids.has(id))) wrong.push('a row that is gone is not marked');
    if (steady.fresh > rows.filter(({ id }) => !now.includes(id)).length) wrong.push('more is called new than is');
    const known = Math.max(...now.filter((id) => listed.ids.has(id) && rows.some((row) => row.id === id)));
    if (steady.fresh < rows.filter(({ id }) => id < known && !now.includes(id)).length) wrong.push('what is new between rows is not told');
    if (roll(4) === 0) {
      steady.show();
      if (steady.latest !== undefined || steady.fresh || steady.gone.size) wrong.push('something is left after it was shown');
    }
  }
  return wrong;
}

test('rows keep their places, those that left are marked, and those that are new are counted', () => {
  for (let seed = 1; seed <= 2000; seed++) assert.deepEqual(faults(Steady, seed), [], `seed ${seed}`);
});

test('lists that do it otherwise are noticed', () => {
  class Hasty extends Steady {
    see(rows, next) {
      this.set(rows, next);
    }
  }
  class Gloomy extends Steady {
    see(rows, next) {
      super.see(rows, next);
      const there = new Set(rows.map(this.keyOf));
      for (const row of this.rows) if (!there.has(this.keyOf(row))) this.gone.add(this.keyOf(row));
    }
  }
  class Blind extends Steady {
    see(rows, next) {
      super.see(rows, next);
      this.fresh = 0;
      this.gone.clear();
    }
  }
  const found = (Kind) => new Set([...Array(200).keys()].flatMap((seed) => faults(Kind, seed + 1)));
  assert.ok(found(Hasty).has('a row has moved'));
  assert.ok(found(Gloomy).has('a row that is there is taken for gone'));
  for (const fault of ['a row that is gone is not marked', 'what is new between rows is not told']) assert.ok(found(Blind).has(fault), fault);
});

test('what is new at the end of a list that was all there is new, and what only moved up is not', () => {
  const rows = (...ids) => ids.map((id) => ({ id }));
  const whole = new Steady((row) => String(row.id));
  whole.set(rows(1, 2));
  whole.see(rows(1, 2, 3));
  assert.equal(whole.fresh, 1);
  whole.show();
  assert.deepEqual(whole.rows, rows(1, 2, 3));
  const part = new Steady((row) => String(row.id));
  part.set(rows(1, 2), '2');
  part.see(rows(2, 3), '3');
  assert.deepEqual([part.fresh, [...part.gone], part.rows], [0, ['1'], rows(1, 2)]);
  part.see(rows(1, 1.5), '1.5');
  assert.equal(part.fresh, 1, 'one that takes the place of the last');
  part.add(rows(2, 3), '3');
  assert.deepEqual(part.rows, rows(1, 2, 3));
});
