// The server: how late it is, how its store does, what it refuses.

import { h } from '../render.js';
import { t, has } from '../words.js';
import { get } from '../api.js';
import { count, micros, setNow, size } from '../time.js';
import { empty, facts, heading, number, section, when } from '../parts/pieces.js';
import { table } from '../parts/table.js';

const MEASURES = ['lateness_micros', 'offered_micros', 'taken_micros', 'commit_micros', 'commit_changes'];

/** A number among words. @param {number | undefined} times @param {string} [tone] */
const plain = (times, tone = '') => h('span', { class: times ? tone : 'none' }, times === undefined ? '–' : count(times));

export default function server() {
  /** @type {any} */
  let stats;
  return {
    every: 2,
    title: () => t('nav.server'),
    async load(/** @type {AbortSignal} */ signal) {
      stats = await get('/v1/stats', {}, signal);
      setNow(stats.now);
    },
    view() {
      const measures = MEASURES.filter((name) => stats[name]);
      const refused = Object.entries(stats.refusals ?? {}).sort((one, other) => Number(other[1]) - Number(one[1]));
      const link = stats.store?.link;
      return [
        heading(t('nav.server'), { about: ['Punctual ', stats.version, ' · ', t('since'), ' ', when(stats.started_at)] }),
        measures.length ? section(t('measures'), table({ label: t('measures'), keyOf: (name) => name, rows: measures, columns: [
          { key: 'name', label: t('measure'), main: true, wide: true, cell: (name) => t(`measure.${name}`) },
          ...['count', 'p50', 'p90', 'p99', 'p999', 'max'].map((part) => ({ key: part, label: part === 'count' ? t('count') : part === 'max' ? t('max') : part, number: true,
            cell: (/** @type {string} */ name) => (part === 'count' || name === 'commit_changes' ? number(stats[name][part]) : h('span', { class: 'number measured' }, stats[name].count ? micros(stats[name][part]) : '–')) })),
        ] }), { aside: h('span', { class: 'soft' }, t('since.start')) }) : null,
        stats.store ? section(t('store'), facts([
          [t('store.kind'), stats.store.kind ?? '–'], [t('store.disk'), size(stats.store.disk_bytes)], [t('store.memory'), size(stats.store.memory_bytes)],
          [t('commits.failed'), plain(stats.failed_commits, 'bad')], [t('commits.lost'), plain(stats.lost_commits, 'bad')],
          ...(link ? /** @type {[any, any][]} */ ([[t('store.trips'), count(link.round_trips)], [t('store.retries'), count(link.retries)], [t('store.failures'), plain(link.failures, 'bad')], [t('store.connections'), `${count(link.busy)} / ${count(link.connections)}`]]) : []),
        ])) : null,
        stats.happened ? section(t('happened'), facts(Object.entries(stats.happened).map(([what, times]) => [t(`happened.${what}`), plain(Number(times))])), { aside: h('span', { class: 'soft' }, t('since.start')) }) : null,
        section(t('refusals'), refused.length === 0 ? empty(t('refusals.none')) : facts(refused.map(([code, times]) => [has(`code.${code}`) ? t(`code.${code}`) : h('code', null, code), plain(Number(times))]))),
      ];
    },
  };
}
