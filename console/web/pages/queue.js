// One queue: what is ready and since when, what is out, what died, and its settings.

import { h } from '../render.js';
import { t } from '../words.js';
import { get, queuePath } from '../api.js';
import { here, linkTo } from '../router.js';
import { may, refresh } from '../store.js';
import { absolute, count, micros, relative } from '../time.js';
import { pause, resume } from '../parts/acts.js';
import { bulk, deadActs } from '../parts/rowacts.js';
import { sweep } from '../parts/sweep.js';
import { SettingsForm } from '../parts/settings.js';
import { badge, figure, heading, isolated, pausedBy, section, sign, tabs } from '../parts/pieces.js';
import { none, TaskList } from '../parts/tasklist.js';
import { Consumers } from './consumers.js';
import { isPaused } from './queues.js';

const TABS = /** @type {const} */ (['ready', 'leased', 'dead', 'history', 'consumers', 'settings']);

/** @param {import('../router.js').Route} route */
export default function queue({ names: { queue } }) {
  /** @type {import('punctual-api').components['schemas']['QueueInfo']} */
  let info;
  const list = new TaskList();
  const consumers = new Consumers();
  const form = new SettingsForm('queue', queue);
  const tab = () => TABS.find((known) => known === here()?.query.get('tab')) ?? 'ready';
  return {
    every: 3,
    title: () => queue,
    async load(/** @type {AbortSignal} */ signal, /** @type {boolean} */ isTick) {
      const now = tab();
      const read = (/** @type {string} */ path, /** @type {Record<string, string>} */ query) => list.load(path, query, undefined, isTick);
      const ask = { ready: () => read(queuePath(queue, 'deliveries'), { state: 'ready' }), leased: () => read(queuePath(queue, 'deliveries'), { state: 'leased' }),
        dead: () => read('/v1/dead', { queue }), history: () => read('/v1/history', { queue }), settings: () => undefined,
        consumers: () => consumers.load({ queue }, signal) };
      [info] = await Promise.all([get(queuePath(queue), {}, signal), ask[now]()]);
      form.see(info);
    },
    view() {
      const now = tab();
      const paused = isPaused(info);
      const late = (/** @type {any} */ timing) => (timing?.count ? micros(timing.p99) : '–');
      return [
        heading([isolated(queue), paused ? [' ', badge(info.settings.paused_until ? t('paused.until', { time: absolute(info.settings.paused_until) }) : t('paused'), 'warm')] : null], {
          above: h('a', { href: linkTo('queues') }, t('nav.queues')), about: paused ? pausedBy(info.pause) : null,
          acts: may('operate') ? h('button', { class: 'button', onclick: () => (paused ? resume : pause)('queue', info, refresh) }, sign(paused ? 'play' : 'pause'), ' ', paused ? t('resume') : t('pause.dots')) : null,
        }),
        h('div', { class: 'figures' },
          figure(t('ready'), count(info.ready), { tone: info.ready ? 'warm' : '', below: info.oldest_ready ? [t('oldest'), ' ', relative(info.oldest_ready)] : undefined }),
          figure(t('leased'), count(info.leased)),
          figure(t('dead'), count(info.dead), { tone: info.dead ? 'bad' : '' }),
          figure(t('late.offered'), late(info.offered_micros), { below: 'p99' }), figure(t('late.taken'), late(info.taken_micros), { below: 'p99' })),
        tabs(TABS.map((key) => ({ key, now: key === now, href: linkTo('queues', [queue], { tab: key === 'ready' ? undefined : key }), label: [t(`tab.${key}`), key === 'ready' || key === 'leased' || key === 'dead' ? h('span', { class: 'tab-count' }, count(info[key])) : null] })), queue),
        section(t(`tab.${now}`), body(now), { class: 'tabbed', aside: now === 'consumers' ? consumers.choice() : now === 'dead' && info.dead && may('operate') ? [
          h('button', { class: 'button', onclick: () => sweep({ act: 'replay', select: { queue, state: 'dead' }, done: refresh }) }, t('replay.all')),
          h('button', { class: 'button quiet', onclick: () => sweep({ act: 'purge', select: { queue, state: 'dead' }, done: refresh }) }, t('purge.all')),
        ] : null }),
      ];

      /** @param {typeof TABS[number]} now */
      function body(now) {
        if (now === 'settings') return form.view();
        const label = t(`tab.${now}`);
        if (now === 'consumers') return consumers.view();
        if (now === 'ready') return list.view({ label, columns: ['since', 'topic', 'id', 'key', 'priority', 'attempts'], bulk: bulk('ready', { queue }), none: none(t('ready.none'), t('ready.none.text')) });
        if (now === 'leased') return list.view({ label, columns: ['until', 'topic', 'id', 'key', 'holder', 'attempts'], none: none(t('leased.none')) });
        if (now === 'dead') return list.view({ label, columns: ['at', 'topic', 'id', 'key', 'reason', 'attempts'], none: none(t('dead.none'), t('dead.none.text')), acts: deadActs(), bulk: bulk('dead', { queue }) });
        return list.view({ label, columns: ['at', 'topic', 'id', 'key', 'state', 'attempts'], none: none(t('history.none'), t('history.none.text')) });
      }
    },
  };
}
