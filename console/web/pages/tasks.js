// Tasks that are not finished, of all topics or of one, by state and time. The filters are the address.

import { h } from '../render.js';
import { t } from '../words.js';
import { ask, here, linkTo } from '../router.js';
import { may, refresh } from '../store.js';
import { choice, heading, section, sign } from '../parts/pieces.js';
import { bulk } from '../parts/rowacts.js';
import { none, TaskList } from '../parts/tasklist.js';

const STATES = ['', 'scheduled', 'ready', 'leased', 'spread'];

export default function tasks() {
  const list = new TaskList();
  const asked = () => {
    const query = here()?.query ?? new URLSearchParams();
    const given = ['topic', 'state', 'from', 'until'].map((name) => [name, query.get(name) ?? undefined]);
    return Object.fromEntries(given.filter(([, value]) => value));
  };
  const change = (/** @type {Record<string, string | undefined>} */ changes) => {
    ask(changes);
    refresh();
  };
  return {
    every: 5,
    title: () => t('nav.tasks'),
    load: (/** @type {AbortSignal} */ signal, /** @type {boolean} */ isTick) => list.load('/v1/tasks', asked(), signal, isTick),
    view() {
      const now = asked();
      const field = (/** @type {string} */ name, /** @type {string} */ hint) => h('label', { class: 'field inline' }, h('span', null, t(name === 'from' ? 'due.from' : name === 'until' ? 'due.until' : name)),
        h('input', { class: 'input small', value: now[name] ?? '', placeholder: hint, spellcheck: 'false', autocomplete: 'off', onchange: (/** @type {any} */ event) => change({ [name]: event.target.value.trim() }) }));
      const isFiltered = Object.keys(now).length > 0;
      return [
        heading(t('nav.tasks'), { about: t('tasks.about'), acts: may('produce') ? h('a', { class: 'button main', href: linkTo('new', [], { topic: now.topic }) }, sign('plus'), ' ', t('new')) : null }),
        h('div', { class: 'filters' },
          choice(t('state'), STATES.map((state) => [state, state ? t(`state.${state}`) : t('all')]), now.state ?? '', (state) => change({ state })),
          field('topic', t('all')), field('from', '2026-11-16T14:00:00Z'), field('until', '2026-11-16T15:00:00Z'),
          isFiltered ? h('button', { class: 'button quiet', onclick: () => change({ topic: '', state: '', from: '', until: '' }) }, t('filter.clear')) : null),
        section(t('tasks.list'), list.view({ label: t('nav.tasks'), columns: ['due', 'topic', 'id', 'key', 'state', 'priority', 'attempts'], bulk: many(now),
          none: isFiltered ? none(t('filter.none.tasks')) : none(t('tasks.none'), t('tasks.none.text')) })),
      ];
    },
  };
}

/** All that match can be acted on if a sweep can tell them. @param {Record<string, any>} now */
function many({ state, ...filter }) {
  if (state === 'scheduled' || state === 'ready') return bulk(state, filter);
  return bulk('live', state ? undefined : filter);
}
