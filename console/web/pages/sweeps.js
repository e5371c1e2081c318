// Acts on many tasks: which there were, and how far each of them is.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { linkTo } from '../router.js';
import { may } from '../store.js';
import { absolute } from '../time.js';
import { badge, empty, facts, heading, isolated, news, number, section, when } from '../parts/pieces.js';
import { excepted } from '../parts/dialog.js';
import { isRunning } from '../parts/running.js';
import { buttons, progress } from '../parts/sweep.js';
import { Steady } from '../parts/steady.js';
import { table } from '../parts/table.js';

/** What it was about. @param {any} sweep */
function about({ select, ids }) {
  const given = Object.entries(select).filter(([, value]) => value !== null && value !== false);
  return h('span', { class: 'isolated', dir: 'auto' }, given.map(([name, value]) => `${name} ${value}`).concat(ids ? [`ids ${ids}`] : []).join(', '));
}

/** @param {any} sweep */
const stateOf = (sweep) => badge(t(`sweep.state.${sweep.state}`), isRunning(sweep) ? 'cool' : sweep.state === 'done' ? 'good' : 'warm');

/** @param {any} sweep */
const doing = (sweep) => [t(`sweep.${sweep.do}`), sweep.undoes ? [' ', badge(t('sweep.undo'))] : null];

/** @param {import('../router.js').Route} route */
export default function sweeps({ names: { id } }) {
  /** @type {Steady<any>} */
  const found = new Steady((sweep) => sweep.id);
  return {
    every: 1,
    title: () => t('nav.sweeps'),
    async load(/** @type {AbortSignal} */ signal, /** @type {boolean} */ isTick) {
      const sweeps = id ? [await get('/v1/sweeps/' + encodeURIComponent(id), {}, signal)] : (await get('/v1/sweeps', {}, signal)).sweeps;
      if (isTick) found.see(sweeps);
      else found.set(sweeps);
    },
    view: () => (id ? one(found.rows[0]) : [
      heading(t('nav.sweeps'), { about: t('sweeps.about') }),
      section(t('dead.list'), found.rows.length === 0 ? empty(t('sweeps.none'), t('sweeps.none.text')) : [news(found), table({ label: t('nav.sweeps'), rows: found.rows, keyOf: found.keyOf, quiet: (sweep) => found.gone.has(sweep.id), columns: [
        { key: 'at', label: t('begun'), cell: (sweep) => when(sweep.begun_at) },
        { key: 'do', label: t('sweep'), main: true, cell: (sweep) => h('a', { class: 'name', href: linkTo('sweeps', [sweep.id]) }, doing(sweep)) },
        { key: 'select', label: t('sweep.select'), wide: true, cell: about },
        { key: 'who', label: t('who.by'), cell: (sweep) => isolated(sweep.who ?? '–') },
        { key: 'state', label: t('state'), cell: stateOf },
        { key: 'changed', label: t('changed'), number: true, cell: (sweep) => number(sweep.changed) },
        { key: 'late', label: t('late'), number: true, cell: (sweep) => number(sweep.too_late, 'warm') },
      ] })]),
    ]),
  };

  /** @param {any} sweep */
  function one(sweep) {
    const link = (/** @type {string} */ id) => h('a', { href: linkTo('sweeps', [id]) }, id);
    return [
      heading(doing(sweep), { above: h('a', { href: linkTo('sweeps') }, t('nav.sweeps')), about: about(sweep), acts: may('operate') ? buttons(sweep) : null }),
      section(t('happened'), [progress(sweep), facts([
        [t('begun'), when(sweep.begun_at, { exact: true })], [t('ended'), when(sweep.ended_at, { exact: true })], [t('who.by'), isolated(sweep.who ?? '–')],
        ...['at', 'by', 'start', 'over'].filter((name) => sweep[name] !== undefined && sweep[name] !== null).map((name) => /** @type {[any, any]} */ ([h('code', null, name), String(sweep[name])])),
        ...(sweep.undoes ? /** @type {[any, any][]} */ ([[t('sweep.undoes'), link(sweep.undoes)]]) : []), ...(sweep.undone_by ? /** @type {[any, any][]} */ ([[t('sweep.undone'), link(sweep.undone_by)]]) : []),
        [t('undo'), sweep.undo?.possible ? [sweep.undo.until ? t('undo.until', { time: absolute(sweep.undo.until) }) : t('yes'), ' ', excepted(sweep.undo)] : h('span', { lang: 'en' }, sweep.undo?.why ?? t('no'))],
      ])]),
    ];
  }
}
