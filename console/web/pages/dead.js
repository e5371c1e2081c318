// Dead letters: why they died, and what is to become of them.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { ask, here, linkTo } from '../router.js';
import { may, refresh } from '../store.js';
import { bulk, deadActs } from '../parts/rowacts.js';
import { sweep } from '../parts/sweep.js';
import { count } from '../time.js';
import { choice, heading, isolated, name, news, number, reason, section, when } from '../parts/pieces.js';
import { Steady } from '../parts/steady.js';
import { table } from '../parts/table.js';
import { none, TaskList } from '../parts/tasklist.js';

const REASONS = ['', 'out-of-attempts', 'rejected', 'expired', 'pushed-out', 'unrouted', 'lost'];

/** How long groups are good for, in milliseconds. */
const PAUSE = 20_000;

export default function dead() {
  const list = new TaskList();
  /** @type {Steady<import('punctual-api').components['schemas']['DeadGroup']>} */
  const groups = new Steady((group) => JSON.stringify([group.reason, group.queue, group.note]));
  let others = 0;
  let [grouped, groupedAt] = ['', 0];
  const asked = () => {
    const query = here()?.query ?? new URLSearchParams();
    // No note is a filter, too.
    return Object.fromEntries(['topic', 'queue', 'reason', 'note'].map((name) => [name, query.get(name) ?? undefined]).filter(([name, value]) => value || (name === 'note' && value === '')));
  };
  const change = (/** @type {Record<string, string | undefined>} */ changes) => {
    ask(changes);
    refresh();
  };
  const again = () => {
    groupedAt = 0;
    refresh();
  };
  return {
    every: 5,
    title: () => t('nav.dead'),
    async load(/** @type {AbortSignal} */ signal, /** @type {boolean} */ isTick) {
      const { note, ...filter } = asked();
      // Groups are counted row by row: not at every look.
      const isNew = grouped !== JSON.stringify(filter);
      const isOld = isNew || Date.now() - groupedAt > PAUSE;
      const [regrouped] = await Promise.all([isOld ? get('/v1/dead/groups', { by: 'reason,queue,note', ...filter }, signal) : undefined, list.load('/v1/dead', asked(), signal, isTick)]);
      if (!regrouped) return;
      if (isTick && !isNew) groups.see(regrouped.groups);
      else groups.set(regrouped.groups);
      [others, grouped, groupedAt] = [regrouped.others, JSON.stringify(filter), Date.now()];
    },
    view() {
      const now = asked();
      const canSweep = may('operate') && list.tasks.length > 0;
      const all = (/** @type {'replay' | 'purge'} */ act) => sweep({ act, select: { ...now, state: 'dead' }, done: again });
      const field = (/** @type {'topic' | 'queue'} */ name) => h('label', { class: 'field inline' }, h('span', null, t(name)),
        h('input', { class: 'input small', value: now[name] ?? '', placeholder: t('all'), spellcheck: 'false', autocomplete: 'off', onchange: (/** @type {any} */ event) => change({ [name]: event.target.value.trim() }) }));
      const isFiltered = Object.keys(now).length > 0;
      return [
        heading(t('nav.dead'), { about: t('dead.about'), acts: canSweep ? [
          h('button', { class: 'button', onclick: () => all('replay') }, t('replay.all')),
          h('button', { class: 'button', onclick: () => all('purge') }, t('purge.all')),
        ] : null }),
        h('div', { class: 'filters' },
          choice(t('reason'), REASONS.map((word) => [word, word ? reason(word) : t('all')]), now.reason ?? '', (word) => change({ reason: word })),
          field('topic'), field('queue'),
          now.note === undefined ? null : h('span', { class: 'field inline' }, h('span', null, t('note')), now.note ? h('code', null, isolated(now.note)) : h('span', null, t('groups.none'))),
          isFiltered ? h('button', { class: 'button quiet', onclick: () => change({ topic: '', queue: '', reason: '', note: undefined }) }, t('filter.clear')) : null),
        groups.rows.length ? section(t('groups'), [news(groups), table({ label: t('groups'), columns: columns(now.topic, again), rows: groups.rows, keyOf: groups.keyOf, quiet: (group) => groups.gone.has(groups.keyOf(group)) }),
          others ? h('p', { class: 'more soft' }, t('groups.others', { n: count(others) })) : null], { class: 'groups' }) : null,
        section(t('dead.list'), list.view({ label: t('nav.dead'), columns: ['at', 'topic', 'id', 'queue', 'reason', 'attempts'], acts: deadActs(), bulk: bulk('dead', now, again),
          none: isFiltered ? none(t('filter.none.tasks')) : none(t('dead.none'), t('dead.none.text')) })),
      ];
    },
  };
}

/** @param {string | undefined} topic @param {() => void} done @returns {import('../parts/table.js').Column[]} */
function columns(topic, done) {
  const filter = (/** @type {any} */ group) => linkTo('dead', [], { topic, reason: group.reason ?? undefined, queue: group.queue ?? undefined, note: group.note ?? '' });
  const acts = (/** @type {any} */ group) => h('div', { class: 'row-acts' }, /** @type {const} */ (['replay', 'purge']).map((act) => h('button', { key: act, class: 'button small' + (act === 'purge' ? ' quiet' : ''),
    onclick: () => sweep({ act, select: { topic, queue: group.queue ?? undefined, reason: group.reason ?? undefined, note: group.note ?? '', state: 'dead' }, done }) }, t(`${act}.dots`))));
  return [
    { key: 'reason', label: t('reason'), main: true, cell: (group) => h('a', { href: filter(group) }, reason(group.reason ?? '')) },
    { key: 'note', label: t('note'), wide: true, cell: (group) => (group.note ? h('code', null, isolated(group.note)) : h('span', { class: 'none' }, t('groups.none'))) },
    { key: 'queue', label: t('queue'), cell: (group) => name.queue(group.queue) },
    { key: 'hour', label: t('groups.hour'), number: true, cell: (group) => number(group.last_hour) },
    { key: 'day', label: t('groups.day'), number: true, cell: (group) => number(group.last_day) },
    { key: 'count', label: t('groups.all'), number: true, cell: (group) => number(group.count, 'bad') },
    { key: 'last', label: t('groups.last'), cell: (group) => when(group.last_at) },
    ...(may('operate') ? [{ key: 'acts', label: t('acts'), cell: acts }] : []),
  ];
}
