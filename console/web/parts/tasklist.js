// A list of tasks, page after page. What is listed stays where it is: more is added at the end, and what is new is shown, when asked for.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { redraw } from '../store.js';
import { empty, failed, name, news, number, reason, standing, waiting, when } from './pieces.js';
import { Selection } from './selection.js';
import { Steady } from './steady.js';
import { table } from './table.js';

/** @typedef {import('punctual-api').components['schemas']['TaskInfo']} TaskInfo */

const PAGE = 50;
/** More rows than this are not read by anybody; a filter finds what is looked for. */
const MOST = 300;

/** @param {TaskInfo} task */
export const keyOf = (task) => `${task.topic}/${task.id}${task.queue ? ' ' + task.queue : ''}`;

export class TaskList {
  constructor() {
    /** @type {Steady<TaskInfo>} */
    this.steady = new Steady(keyOf);
    /** What the list shows, as one text. */
    this.asked = '';
    this.isThere = false;
    /** @type {any} */
    this.error = undefined;
    this.isBusy = false;
    this.selection = new Selection();
    this.path = '';
    /** @type {Record<string, any>} */
    this.query = {};
  }

  get tasks() {
    return this.steady.rows;
  }

  /** Reads the first page, or again as many as are shown; if nobody asked for it, nothing moves. @param {string} path @param {Record<string, any>} query @param {AbortSignal} [signal] @param {boolean} [isTick] */
  async load(path, query, signal, isTick = false) {
    const asked = path + JSON.stringify(query);
    const isNew = asked !== this.asked;
    if (isNew) {
      Object.assign(this, { isThere: false, error: undefined, path, query });
      this.steady.set([]);
      this.selection.clear();
    }
    this.asked = asked;
    this.more = () => this.add(path, query);
    const page = await get(path, { ...query, limit: Math.max(PAGE, Math.min(MOST, this.tasks.length)) }, signal);
    if (this.asked !== asked) return;
    if (isTick) this.steady.see(page.tasks, page.next ?? undefined);
    else this.steady.set(page.tasks, page.next ?? undefined);
    this.isThere = true;
    // A page may be empty and not the last: what is looked for stands further on.
    for (let tries = 0; this.steady.next && this.tasks.length === 0 && tries < 20; tries++) await this.add(path, query);
  }

  /** @param {string} path @param {Record<string, any>} query */
  async add(path, query) {
    this.isBusy = true;
    redraw();
    try {
      const page = await get(path, { ...query, limit: PAGE, cursor: this.steady.next });
      this.steady.add(page.tasks, page.next ?? undefined);
    } catch (error) {
      this.error = error;
    }
    this.isBusy = false;
    redraw();
  }

  /**
   * @param {{ label: string, columns: string[], none: any, acts?: (task: TaskInfo) => any, bulk?: import('./selection.js').Bulk }} how
   */
  view({ label, columns, none, acts, bulk }) {
    if (!this.isThere) return waiting();
    if (this.tasks.length === 0) return none;
    const chosen = columns.map((key) => COLUMNS[key]()).concat(acts ? [{ key: 'acts', label: t('acts'), cell: acts }] : []);
    const isFull = this.tasks.length >= MOST;
    return [
      news(this.steady),
      table({ label, columns: chosen, rows: this.tasks, keyOf, quiet: (task) => this.steady.gone.has(keyOf(task)), ...(bulk ? { selected: this.selection.keys, select: (key, on, range) => this.selection.pick(key, on, range, this.tasks.map(keyOf)) } : {}) }),
      bulk ? this.selection.bar(this.tasks, keyOf, bulk, () => this.selection.pickAll(this.path, this.query)) : null,
      this.error ? failed(this.error) : null,
      h('p', { class: 'more' }, h('span', { class: 'soft' }, t('list.shown', { n: this.tasks.length })), ' ',
        this.steady.next && !isFull ? h('button', { class: 'button', disabled: this.isBusy, onclick: () => this.more?.() }, t('list.more')) : null,
        isFull ? h('span', { class: 'soft' }, t('list.full')) : null),
    ];
  }
}

/** @type {Record<string, () => import('./table.js').Column>} */
const COLUMNS = {
  due: () => ({ key: 'due', label: t('due'), cell: (task) => when(task.due) }),
  since: () => ({ key: 'since', label: t('since'), cell: (task) => when(task.standing.since ?? task.due) }),
  at: () => ({ key: 'at', label: t('ended'), cell: (task) => when(task.standing.at) }),
  id: () => ({ key: 'id', label: t('id'), main: true, cell: (task) => name.task(task.topic, task.id) }),
  topic: () => ({ key: 'topic', label: t('topic'), cell: (task) => name.topic(task.topic) }),
  queue: () => ({ key: 'queue', label: t('queue'), cell: (task) => name.queue(task.queue ?? task.standing.queue) }),
  key: () => ({ key: 'key', label: t('key'), cell: (task) => name.key(task.key) }),
  state: () => ({ key: 'state', label: t('state'), cell: (task) => standing(task.standing) }),
  holder: () => ({ key: 'holder', label: t('holder'), cell: (task) => h('span', { class: 'isolated', dir: 'auto' }, task.standing.holder ?? '–') }),
  until: () => ({ key: 'until', label: t('until'), cell: (task) => when(task.standing.until) }),
  priority: () => ({ key: 'priority', label: t('priority'), number: true, cell: (task) => number(task.priority) }),
  attempts: () => ({ key: 'attempts', label: t('attempts'), number: true, cell: (task) => number(task.attempts) }),
  reason: () => ({ key: 'reason', label: t('reason'), wide: true, cell: (task) => h('div', null, reason(task.standing.reason), task.standing.note ? h('small', { class: 'note isolated', dir: 'auto' }, task.standing.note) : null) }),
};

/** No tasks, and why. @param {string} title @param {string} [text] @param {string} [code] */
export const none = (title, text, code) => empty(title, text, code);
