// All queues: what is ready, since when, and who holds how much.

import { h } from '../render.js';
import { t } from '../words.js';
import { here } from '../router.js';
import { count, instant, micros } from '../time.js';
import { all } from '../parts/names.js';
import { badge, empty, heading, name, number, section, when } from '../parts/pieces.js';
import { Sorting, table } from '../parts/table.js';
import { filter } from './topics.js';

const SHOWN = 300;

export default function queues() {
  /** @type {import('punctual-api').components['schemas']['QueueInfo'][]} */
  let found = [];
  const sorting = new Sorting('name');
  return {
    every: 3,
    title: () => t('nav.queues'),
    async load(/** @type {AbortSignal} */ signal) {
      found = await all('queues', signal);
    },
    view() {
      const text = here()?.query.get('filter') ?? '';
      const rows = found.filter((queue) => queue.name.toLowerCase().includes(text.toLowerCase()));
      return [
        heading(t('nav.queues'), { about: t('queues.about', { n: count(found.length) }) }),
        section(t('nav.queues'), found.length === 0 ? empty(t('queues.none'), t('queues.none.text')) : [
          rows.length === 0 ? empty(t('filter.none', { name: text })) : table({ label: t('nav.queues'), columns: columns(), rows: rows.slice(0, SHOWN), keyOf: (queue) => queue.name, sorting }),
          rows.length > SHOWN ? h('p', { class: 'more soft' }, t('list.cut', { n: count(SHOWN), all: count(rows.length) })) : null,
        ], { aside: found.length ? filter(text) : null }),
      ];
    },
  };
}

/** Whether a queue hands out nothing. @param {any} queue */
export const isPaused = (queue) => Boolean(queue.settings.paused || (queue.settings.paused_until && instant(queue.settings.paused_until) > Date.now()));

/** @returns {import('../parts/table.js').Column[]} */
export function columns() {
  return [
    { key: 'name', label: t('queue'), main: true, sort: (queue) => queue.name, cell: (queue) => [name.queue(queue.name), isPaused(queue) ? [' ', badge(t('paused'), 'warm')] : null] },
    { key: 'ready', label: t('ready'), number: true, sort: (queue) => queue.ready, cell: (queue) => number(queue.ready, 'warm') },
    { key: 'oldest', label: t('oldest'), sort: (queue) => (queue.oldest_ready ? -instant(queue.oldest_ready) : -Infinity), cell: (queue) => when(queue.oldest_ready) },
    { key: 'leased', label: t('leased'), number: true, sort: (queue) => queue.leased, cell: (queue) => number(queue.leased) },
    { key: 'dead', label: t('dead'), number: true, sort: (queue) => queue.dead, cell: (queue) => number(queue.dead, 'bad') },
    { key: 'offered', label: t('late.offered'), number: true, sort: (queue) => queue.offered_micros?.p99 ?? 0, cell: (queue) => late(queue.offered_micros) },
    { key: 'taken', label: t('late.taken'), number: true, sort: (queue) => queue.taken_micros?.p99 ?? 0, cell: (queue) => late(queue.taken_micros) },
  ];
}

/** @param {any} timing */
function late(timing) {
  return timing?.count ? h('span', { class: 'number measured' }, micros(timing.p99)) : h('span', { class: 'none' }, '–');
}
