// One topic: how much there is of it, its tasks, and its settings.

import { h } from '../render.js';
import { t } from '../words.js';
import { get, topicPath } from '../api.js';
import { here, linkTo } from '../router.js';
import { may, refresh } from '../store.js';
import { count } from '../time.js';
import { pause, resume } from '../parts/acts.js';
import { bulk, deadActs } from '../parts/rowacts.js';
import { SettingsForm } from '../parts/settings.js';
import { badge, figure, heading, isolated, name, pausedBy, section, sign, tabs } from '../parts/pieces.js';
import { none, TaskList } from '../parts/tasklist.js';

const TABS = /** @type {const} */ (['waiting', 'leased', 'dead', 'history', 'settings']);

/** @param {import('../router.js').Route} route */
export default function topic({ names: { topic } }) {
  /** @type {import('punctual-api').components['schemas']['TopicInfo']} */
  let info;
  const list = new TaskList();
  const form = new SettingsForm('topic', topic);
  const tab = () => TABS.find((known) => known === here()?.query.get('tab')) ?? 'waiting';
  /** What each tab lists. @type {Record<typeof TABS[number], [string, Record<string, string>] | undefined>} */
  const lists = {
    waiting: ['/v1/tasks', { topic }], leased: ['/v1/tasks', { topic, state: 'leased' }], dead: ['/v1/dead', { topic }], history: ['/v1/history', { topic }], settings: undefined,
  };
  return {
    every: 3,
    title: () => topic,
    async load(/** @type {AbortSignal} */ signal, /** @type {boolean} */ isTick) {
      const listed = lists[tab()];
      [info] = await Promise.all([get(topicPath(topic), {}, signal), listed && list.load(...listed, undefined, isTick)]);
      form.see(info);
    },
    view() {
      const now = tab();
      const counts = { waiting: info.waiting, leased: info.leased, dead: info.dead, history: info.history, settings: undefined };
      return [
        heading([isolated(topic), info.settings.paused ? [' ', badge(t('paused'), 'warm')] : null], {
          above: h('a', { href: linkTo('topics') }, t('nav.topics')),
          about: [info.pause ? [pausedBy(info.pause), ' · '] : null, info.settings.owner ? [t('owner'), ': ', isolated(info.settings.owner), ' · '] : null, t('feeds'), ': ', feeds(info, topic)],
          acts: [
            may('operate') ? h('button', { class: 'button', onclick: () => (info.settings.paused ? resume : pause)('topic', info, refresh) }, sign(info.settings.paused ? 'play' : 'pause'), ' ', info.settings.paused ? t('resume') : t('pause.intake')) : null,
            may('produce') ? h('a', { class: 'button', href: linkTo('new', [], { topic }) }, sign('plus'), ' ', t('new')) : null,
          ],
        }),
        h('div', { class: 'figures' },
          figure(t('waiting'), count(info.waiting)), figure(t('leased'), count(info.leased)),
          figure(t('dead'), count(info.dead), { tone: info.dead ? 'bad' : '' }),
          figure(t('happened.done'), count(info.happened?.done ?? 0), { below: t('since.start') }),
          figure(t('happened.failed'), count(info.happened?.failed ?? 0), { below: t('since.start') })),
        tabs(TABS.map((key) => ({ key, now: key === now, href: linkTo('topics', [topic], { tab: key === 'waiting' ? undefined : key }),
          label: [t(`tab.${key}`), counts[key] === undefined ? null : h('span', { class: 'tab-count' }, count(counts[key] ?? 0))] })), topic),
        section(t(`tab.${now}`), body(now), { class: 'tabbed' }),
      ];

      /** @param {typeof TABS[number]} now */
      function body(now) {
        if (now === 'settings') return form.view();
        const label = t(`tab.${now}`);
        if (now === 'waiting') return list.view({ label, columns: ['due', 'id', 'key', 'state', 'priority', 'attempts'], bulk: bulk('live', { topic }), none: none(t('tasks.none'), t('tasks.none.waiting')) });
        if (now === 'leased') return list.view({ label, columns: ['until', 'id', 'key', 'queue', 'holder', 'attempts'], none: none(t('tasks.none.leased')) });
        if (now === 'dead') return list.view({ label, columns: ['at', 'id', 'key', 'queue', 'reason', 'attempts'], none: none(t('dead.none'), t('dead.none.text')), acts: deadActs(), bulk: bulk('dead', { topic }) });
        return list.view({ label, columns: ['at', 'id', 'key', 'state', 'attempts'], bulk: bulk('finished', { topic }), none: none(t('history.none'), t('history.none.text')) });
      }
    },
  };
}

/** The queues that its tasks go to. @param {any} info @param {string} topic */
function feeds(info, topic) {
  const feeds = info.settings.feeds ?? [];
  if (feeds.length === 0) return name.queue(topic);
  return feeds.map((/** @type {any} */ feed, /** @type {number} */ index) => [index ? ', ' : '', name.queue(feed.queue), feed.pattern ? h('small', { class: 'soft isolated' }, ' ', feed.pattern) : null]);
}
