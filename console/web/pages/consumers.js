// Consumers: who holds which deliveries, and who waits for some. They come and go all the time; whoever was seen keeps
// their row, so that nothing moves.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { redraw } from '../store.js';
import { count } from '../time.js';
import { choice, empty, heading, isolated, name, number, section, when } from '../parts/pieces.js';
import { table } from '../parts/table.js';

/** @typedef {import('punctual-api').components['schemas']['ConsumerList']} ConsumerList */

/** From how many rows on those are left out that are gone. */
const MANY = 200;

export default function consumers() {
  const seen = new Consumers();
  return {
    every: 2,
    title: () => t('nav.consumers'),
    load: (/** @type {AbortSignal} */ signal) => seen.load({}, signal),
    view: () => [heading(t('nav.consumers'), { about: t('consumers.about') }), section(t('nav.consumers'), seen.view(), { aside: seen.choice() })],
  };
}

export class Consumers {
  constructor() {
    this.which = 'holding';
    /** @type {ConsumerList | undefined} */
    this.found = undefined;
    /** @type {Record<string, Map<string, any>>} */
    this.rows = { holding: new Map(), waiting: new Map() };
  }

  /** @param {{ queue?: string }} query @param {AbortSignal} signal */
  async load(query, signal) {
    this.found = await get('/v1/consumers', query, signal);
    const { holders = [], consumers = [] } = this.found ?? {};
    this.keep(this.rows.holding, holders.map((holder) => [JSON.stringify([holder.name, holder.queue]), holder]));
    // Several consumers may have one name.
    /** @type {Map<string, number>} */
    const alike = new Map();
    this.keep(this.rows.waiting, consumers.map((one) => {
      const key = JSON.stringify([one.name, one.node, one.queues]);
      alike.set(key, (alike.get(key) ?? 0) + 1);
      return [`${key} ${alike.get(key)}`, one];
    }));
  }

  /** @param {Map<string, any>} rows @param {[string, any][]} found */
  keep(rows, found) {
    const now = new Map(found);
    for (const [key, row] of rows) {
      if (now.has(key)) continue;
      if (rows.size > MANY) rows.delete(key);
      else rows.set(key, { ...row, isGone: true });
    }
    for (const [key, row] of now) rows.set(key, { ...row, key });
  }

  choice() {
    return choice(t('nav.consumers'), [['holding', t('consumers.holding')], ['waiting', t('consumers.waiting')]], this.which, (which) => { this.which = which; redraw(); });
  }

  view() {
    const isHolding = this.which === 'holding';
    const rows = [...this.rows[this.which].values()];
    const { holders_left_out: others = 0, leases_unknown: unknown = 0, count: waiting = 0, consumers = [] } = this.found ?? {};
    const more = isHolding ? (others || unknown ? t('consumers.others', { n: count(others), leases: count(unknown) }) : '') : waiting > consumers.length ? t('list.cut', { n: count(consumers.length), all: count(waiting) }) : '';
    return [
      h('p', { class: 'soft' }, more || '\u00a0'),
      rows.length === 0 ? (isHolding ? empty(t('consumers.none.holding')) : empty(t('consumers.none'), t('consumers.none.text')))
        : table({ label: t(`consumers.${this.which}`), rows, keyOf: (row) => row.key, quiet: (row) => row.isGone, columns: isHolding ? HOLDING() : WAITING() }),
    ];
  }
}

/** @returns {import('../parts/table.js').Column[]} */
const HOLDING = () => [
  { key: 'name', label: t('holder'), main: true, cell: (holder) => isolated(holder.name) },
  { key: 'queue', label: t('queue'), cell: (holder) => name.queue(holder.queue) },
  { key: 'leases', label: t('consumers.leases'), number: true, cell: (holder) => number(holder.isGone ? 0 : holder.leases) },
  { key: 'oldest', label: t('oldest'), cell: (holder) => when(holder.isGone ? undefined : holder.oldest) },
  { key: 'end', label: t('consumers.end'), cell: (holder) => when(holder.isGone ? undefined : holder.next_end) },
];

/** @returns {import('../parts/table.js').Column[]} */
const WAITING = () => [
  { key: 'name', label: t('holder'), main: true, cell: (one) => isolated(one.name ?? '–') },
  { key: 'queues', label: t('nav.queues'), wide: true, cell: (one) => one.queues.map((/** @type {string} */ queue, /** @type {number} */ index) => [index ? ', ' : '', name.queue(queue)]) },
  { key: 'max', label: t('consumers.max'), number: true, cell: (one) => number(one.isGone ? 0 : one.max) },
  { key: 'node', label: t('node'), cell: (one) => isolated(one.node) },
];
