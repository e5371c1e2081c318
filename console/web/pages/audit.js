// Who did what: settings, pauses, and acts of people.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { ask, here } from '../router.js';
import { refresh } from '../store.js';
import { empty, heading, isolated, name, news, section, when } from '../parts/pieces.js';
import { Steady } from '../parts/steady.js';
import { table } from '../parts/table.js';

const FILTERS = ['by', 'what', 'topic', 'queue'];
const PAGE = 100;

/** What it was done to. @param {any} act */
function subject({ topic, id, queue, subject }) {
  if (topic && id) return name.task(topic, id);
  return topic ? name.topic(topic) : queue ? name.queue(queue) : isolated(subject ?? '–');
}

/** Acts with what tells them apart: some may be alike, and then the later ones count. @param {any[]} acts the latest first */
function keyed(acts) {
  /** @type {Map<string, number>} */
  const alike = new Map();
  return acts.toReversed().map((act) => {
    const text = JSON.stringify(act);
    alike.set(text, (alike.get(text) ?? 0) + 1);
    return { ...act, key: `${text} ${alike.get(text)}` };
  }).reverse();
}

export default function audit() {
  /** @type {any} */
  let found;
  /** @type {Steady<any>} */
  const acts = new Steady((act) => act.key);
  let listed = '';
  const asked = () => Object.fromEntries(FILTERS.map((name) => [name, here()?.query.get(name) ?? undefined]).filter(([, value]) => value));
  return {
    every: 5,
    title: () => t('nav.audit'),
    async load(/** @type {AbortSignal} */ signal, /** @type {boolean} */ isTick) {
      const filter = JSON.stringify(asked());
      found = await get('/v1/audit', { ...asked(), limit: PAGE }, signal);
      const [rows, next] = [keyed(found.acts), found.more ? 'more' : undefined];
      if (isTick && filter === listed) acts.see(rows, next);
      else acts.set(rows, next);
      listed = filter;
    },
    view() {
      const now = asked();
      return [
        heading(t('nav.audit'), { about: t('audit.about') }),
        h('div', { class: 'filters' }, FILTERS.map((name) => h('label', { key: name, class: 'field inline' }, h('span', null, t(`audit.${name}`)),
          h('input', { class: 'input small', value: now[name] ?? '', placeholder: t('all'), spellcheck: 'false', autocomplete: 'off', onchange: (/** @type {any} */ event) => { ask({ [name]: event.target.value.trim() }); refresh(); } })))),
        section(t('dead.list'), [
          news(acts),
          acts.rows.length === 0 ? empty(t(Object.keys(now).length ? 'filter.none.tasks' : 'audit.none')) : table({ label: t('nav.audit'), rows: acts.rows, keyOf: acts.keyOf, quiet: (act) => acts.gone.has(act.key), columns: [
            { key: 'at', label: t('time'), cell: (act) => when(act.at) },
            { key: 'by', label: t('audit.by'), cell: (act) => isolated(act.person ? `${act.person} (${act.by})` : act.by) },
            { key: 'what', label: t('audit.what'), main: true, cell: (act) => h('code', null, act.what) },
            { key: 'subject', label: t('audit.subject'), cell: subject },
            { key: 'detail', label: t('note'), wide: true, cell: (act) => (act.detail ? isolated(act.detail) : h('span', { class: 'none' }, '–')) },
          ] }),
          h('p', { class: 'more soft' }, found.more ? t('audit.more', { n: PAGE }) : null, ' ', found.known_since ? [t('known.since'), ' ', when(found.known_since)] : null),
        ]),
      ];
    },
  };
}
