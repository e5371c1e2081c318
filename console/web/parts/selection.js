// Rows that were picked, or all that match; and the bar with what can be done to them.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { count } from '../time.js';
import { redraw } from '../store.js';
import { sign } from './pieces.js';
import { sweep } from './sweep.js';

/**
 * What can be done to rows of a list: which acts, and what selects all that match, if anything can.
 * @typedef {{ acts: import('./sweep.js').Doing[], state: string, all?: Record<string, any>, done: () => void }} Bulk
 */

/** The keys of acts. @type {Record<string, string>} */
const KEYS = { cancel: 'c', move: 'm', replay: 'r' };

export class Selection {
  constructor() {
    /** @type {Set<string>} */
    this.keys = new Set();
    /** How many match, if all of them are meant. @type {string | undefined} */
    this.all = undefined;
    /** @type {string | undefined} */
    this.last = undefined;
  }

  clear() {
    this.keys.clear();
    this.all = this.last = undefined;
    redraw();
  }

  /** Picks a row, or all rows from the last one picked. @param {string} key @param {boolean} isOn @param {boolean} isRange @param {string[]} rows */
  pick(key, isOn, isRange, rows) {
    const [one, other] = [rows.indexOf(this.last ?? ''), rows.indexOf(key)];
    const picked = isRange && one >= 0 ? rows.slice(Math.min(one, other), Math.max(one, other) + 1) : [key];
    for (const key of picked) isOn ? this.keys.add(key) : this.keys.delete(key);
    this.last = key;
    this.all = undefined;
    redraw();
  }

  /** Means all that match, and counts them. @param {string} path @param {Record<string, any>} query */
  async pickAll(path, query) {
    this.all = '';
    redraw();
    // Where nobody counts, what is about to be done is counted in any case.
    const counted = await get(path, { ...query, count: true }).catch(() => undefined);
    if (counted && this.all === '') this.all = (counted.more ? '> ' : '') + count(counted.count);
    redraw();
  }

  /**
   * @param {any[]} tasks those of the list @param {(task: any) => string} keyOf @param {Bulk} bulk @param {() => void} pickAll
   */
  bar(tasks, keyOf, bulk, pickAll) {
    const picked = tasks.filter((task) => this.keys.has(keyOf(task)));
    if (picked.length === 0) return null;
    const [{ topic, queue }] = picked;
    // Ids are those of one topic.
    const isOne = this.all !== undefined || picked.every((task) => task.topic === topic);
    const sameQueue = bulk.state === 'dead' && queue && picked.every((task) => task.queue === queue) ? { queue } : {};
    const select = this.all !== undefined ? { ...bulk.all, state: bulk.state } : { topic, ...sameQueue, state: bulk.state, ids: picked.map((task) => task.id) };
    const done = () => { this.clear(); bulk.done(); };
    return h('div', { class: 'bulk', role: 'region', 'aria-label': t('select') },
      h('strong', { 'aria-live': 'polite' }, this.all === undefined ? t('select.n', { n: picked.length }) : t('select.all.n', { n: this.all })),
      this.all === undefined && bulk.all ? h('button', { class: 'button small quiet', onclick: pickAll }, t('select.all')) : null,
      isOne ? bulk.acts.map((act) => h('button', { key: act, class: 'button small', 'data-key': KEYS[act], onclick: () => sweep({ act, select, done }) }, t(`${act}.dots`))) : h('span', { class: 'soft' }, t('select.one')),
      h('button', { class: 'button small quiet square', 'aria-label': t('dismiss'), onclick: () => this.clear() }, sign('close')));
  }
}
