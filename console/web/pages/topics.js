// All topics: how much waits, is with consumers, or died.

import { h } from '../render.js';
import { t } from '../words.js';
import { ask, here, linkTo } from '../router.js';
import { may } from '../store.js';
import { count } from '../time.js';
import { all } from '../parts/names.js';
import { badge, empty, heading, isolated, name, number, section } from '../parts/pieces.js';
import { Sorting, table } from '../parts/table.js';

/** How many rows are drawn; the filter finds the others. */
const SHOWN = 300;

export default function topics() {
  /** @type {import('punctual-api').components['schemas']['TopicInfo'][]} */
  let found = [];
  const sorting = new Sorting('name');
  return {
    every: 3,
    title: () => t('nav.topics'),
    async load(/** @type {AbortSignal} */ signal) {
      found = await all('topics', signal);
    },
    view() {
      const text = here()?.query.get('filter') ?? '';
      const rows = found.filter((topic) => topic.name.toLowerCase().includes(text.toLowerCase()));
      return [
        heading(t('nav.topics'), { about: t('topics.about', { n: count(found.length) }), acts: may('produce') ? h('a', { class: 'button', href: linkTo('new') }, t('new')) : null }),
        section(t('nav.topics'), found.length === 0
          ? empty(t('topics.none'), t('topics.none.text'), `curl -s ${location.origin}/v1/tasks --json '{"topic":"hello","delay":"3s","text":"world"}'`)
          : [
            rows.length === 0 ? empty(t('filter.none', { name: text })) : table({ label: t('nav.topics'), columns: columns(), rows: rows.slice(0, SHOWN), keyOf: (topic) => topic.name, sorting }),
            rows.length > SHOWN ? h('p', { class: 'more soft' }, t('list.cut', { n: count(SHOWN), all: count(rows.length) })) : null,
          ], { aside: found.length ? filter(text) : null }),
      ];
    },
  };
}

/** @param {string} text */
export function filter(text) {
  return h('input', { class: 'input small', type: 'search', 'aria-label': t('filter'), placeholder: t('filter'), value: text, oninput: (/** @type {any} */ event) => ask({ filter: event.target.value }) });
}

/** @returns {import('../parts/table.js').Column[]} */
export function columns() {
  return [
    { key: 'name', label: t('topic'), main: true, sort: (topic) => topic.name, cell: (topic) => [name.topic(topic.name), topic.settings.paused ? [' ', badge(t('paused'), 'warm')] : null] },
    { key: 'owner', label: t('owner'), sort: (topic) => topic.settings.owner ?? '', cell: (topic) => (topic.settings.owner ? isolated(topic.settings.owner) : h('span', { class: 'none' }, '–')) },
    { key: 'waiting', label: t('waiting'), number: true, sort: (topic) => topic.waiting, cell: (topic) => number(topic.waiting) },
    { key: 'leased', label: t('leased'), number: true, sort: (topic) => topic.leased, cell: (topic) => number(topic.leased) },
    { key: 'dead', label: t('dead'), number: true, sort: (topic) => topic.dead, cell: (topic) => number(topic.dead, 'bad') },
    { key: 'history', label: t('history'), number: true, sort: (topic) => topic.history, cell: (topic) => number(topic.history) },
  ];
}
