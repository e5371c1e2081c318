// The overview: whether it is on time, what needs somebody, what comes next.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { linkTo } from '../router.js';
import { redraw, state, tell } from '../store.js';
import { absolute, count, instant, micros, minute, now, rate, relative, setNow } from '../time.js';
import { all } from '../parts/names.js';
import { bars, herds, spark } from '../parts/chart.js';
import { follow } from '../parts/pulse.js';
import { badge, empty, figure, heading, section, sign } from '../parts/pieces.js';
import { Sorting, table } from '../parts/table.js';
import { columns as topicColumns } from './topics.js';
import { isPaused } from './queues.js';

/** @typedef {import('punctual-api').components['schemas']['Stats']} Stats */

/** A queue whose oldest delivery waits longer than this needs somebody. */
const LONG = 60_000;
const ROWS = 12;
/** How much of what needs somebody is listed. */
const MOST = 6;
/** How long the last hour of a topic is good for, in milliseconds: a slot of it. */
const MINUTE = 60_000;

export default function overview() {
  /** @type {Stats} */
  let stats;
  /** The last seconds, as the server's pulse told of them. @type {any[]} */
  let past = [];
  /** The last hour, a minute each. @type {Record<string, (number | null)[]>} */
  let series = {};
  /** @type {any} */
  let forecast;
  /** @type {any[]} */
  let topics = [];
  /** @type {any[]} */
  let queues = [];
  const sorting = new Sorting('trouble', true);
  const hours = new Hours();
  const stop = follow((pulse) => {
    setNow(pulse.now);
    if (!state.live) return;
    const last = past.at(-1);
    if (last && last.started_at !== pulse.started_at) {
      past = [];
      tell(t('server.restarted', { time: absolute(pulse.started_at) }));
    }
    past = [...past, pulse].slice(-11);
    redraw();
  });
  /** What stands in which row of what needs somebody. @type {(string | undefined)[]} */
  const places = [];
  return {
    every: 5,
    title: () => t('nav.overview'),
    leave: stop,
    async load(/** @type {AbortSignal} */ signal) {
      const metric = 'scheduled,done,failed,dead,lateness_p99';
      const hour = get('/v1/series', { metric, step: '1m', from: new Date(now() - 3_600_000).toISOString() }, signal).then((answer) => answer.series, () => ({}));
      [stats, forecast, topics, queues, series] = await Promise.all([get('/v1/stats', {}, signal), get('/v1/forecast', { unit: 'minute', slots: 60 }, signal), all('topics', signal), all('queues', signal), hour]);
      void hours.load(listed(topics), signal);
    },
    view: () => [
      heading(t('nav.overview'), { about: [t('overview.since', { time: absolute(stats.started_at), far: relative(stats.started_at), version: stats.version })] }),
      headline(stats, past, series),
      needs(queues, topics, stats, places),
      next(forecast),
      section(t('nav.topics'), topics.length === 0
        ? empty(t('topics.none'), t('topics.none.text'), `curl -s ${location.origin}/v1/tasks --json '{"topic":"hello","delay":"3s","text":"world"}'`)
        : table({ label: t('nav.topics'), columns: columns(hours), rows: listed(topics), keyOf: (topic) => topic.name, sorting }),
      { aside: h('a', { href: linkTo('topics') }, t('all.topics', { n: count(topics.length) })) }),
    ],
  };
}

/** @param {any} topic */
const trouble = (topic) => topic.dead * 1e6 + (topic.settings.paused ? 1e5 : 0) + topic.leased + topic.waiting / 1e6;

/** Those with the most trouble. @param {any[]} topics */
const listed = (topics) => [...topics].sort((a, b) => trouble(b) - trouble(a)).slice(0, ROWS);

/** What topics got done in the last hour: one question for each, when a minute of it is over, and one after the other. */
class Hours {
  constructor() {
    /** @type {Map<string, { done: (number | null)[], at: number }>} */
    this.known = new Map();
  }

  /** @param {any[]} topics @param {AbortSignal} signal */
  async load(topics, signal) {
    const names = new Set(topics.map((topic) => topic.name));
    for (const name of this.known.keys()) if (!names.has(name)) this.known.delete(name);
    for (const name of names) {
      if (Date.now() - (this.known.get(name)?.at ?? 0) < MINUTE) continue;
      const answer = await get('/v1/series', { topic: name, metric: 'done', step: '1m', from: new Date(now() - 3_600_000).toISOString() }, signal).catch(() => undefined);
      if (signal.aborted) return;
      this.known.set(name, { done: answer?.series.done ?? [], at: Date.now() });
      redraw();
    }
  }

  /** @param {string} name */
  spark(name) {
    const done = this.known.get(name)?.done ?? [];
    const total = done.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0);
    return h('span', { class: 'row-spark', title: t('done.hour', { n: count(total) }) }, spark(done), h('span', { class: 'unseen' }, t('done.hour', { n: count(total) })));
  }
}

/** @param {Hours} hours @returns {import('../parts/table.js').Column[]} */
function columns(hours) {
  const [first, ...others] = topicColumns();
  return [{ ...first, sort: undefined }, ...others.map((column) => ({ ...column, sort: undefined })), { key: 'trouble', label: t('happened.failed'), number: true, cell: (topic) => h('span', { class: 'number' + (topic.happened?.failed ? '' : ' none') }, count(topic.happened?.failed ?? 0)) },
    { key: 'hour', label: t('last.hour'), cell: (topic) => hours.spark(topic.name) }];
}

/** How fast something happens, over the last moments. @param {any[]} past @param {string} what */
function speed(past, what) {
  const known = past.filter(({ happened }) => happened);
  const [first, last] = [known[0], known.at(-1)];
  if (!first || instant(last.now) - instant(first.now) < 900) return '–';
  return rate(((last.happened[what] - first.happened[what]) * 1000) / (instant(last.now) - instant(first.now)));
}

/** @param {Stats} stats @param {any[]} past @param {Record<string, (number | null)[]>} series */
function headline(stats, past, series) {
  const pulse = past.findLast(({ total }) => total) ?? stats;
  const total = pulse.total;
  // Lateness that was long ago says nothing about now.
  const late = past.at(-1)?.lateness_micros;
  const worst = Math.max(-1, ...(series.lateness_p99 ?? []).map((value) => value ?? -1));
  const happened = (/** @type {'scheduled' | 'done' | 'failed'} */ what, /** @type {string} */ label) => figure(label, speed(past, what), { below: t('total', { n: count(pulse.happened?.[what] ?? 0) }), spark: spark(series[what] ?? []) });
  return h('div', { class: 'figures four' },
    figure(t('lateness'), late?.count ? micros(late.p99) : '–', { below: late?.count ? ['p50 ', micros(late.p50)] : t('lateness.none'), tone: late?.count && late.p99 > 1_000_000 ? 'bad' : '', spark: spark(series.lateness_p99 ?? []) }),
    figure(t('lateness.worst'), worst < 0 ? '–' : micros(worst), { below: t('lateness.hour'), tone: worst > 1_000_000 ? 'bad' : '' }),
    happened('scheduled', t('rate.in')), happened('done', t('rate.done')), happened('failed', t('rate.failed')),
    total ? figure(t('waiting'), count(total.waiting), { href: linkTo('tasks'), below: t('ready.n', { n: count(total.ready) }) }) : null,
    total ? figure(t('leased'), count(total.leased), { href: linkTo('tasks', [], { state: 'leased' }), below: t('consumers.n', { n: count(stats.waiting_consumers ?? 0) }) }) : null,
    total ? figure(t('dead'), count(total.dead), { href: linkTo('dead'), tone: total.dead ? 'bad' : '', spark: spark(series.dead ?? []) }) : null);
}

/**
 * What somebody should look at. Each keeps its row while it lasts, and there are as many rows as at the beginning: what comes later and finds none free is counted.
 * @param {any[]} queues @param {any[]} topics @param {Stats} stats @param {(string | undefined)[]} places
 */
function needs(queues, topics, stats, places) {
  /** @type {Map<string, { text: string, href: string }>} */
  const found = new Map();
  for (const queue of queues) {
    if (isPaused(queue)) found.set(`p ${queue.name}`, { text: t('needs.paused', { name: queue.name, n: count(queue.ready) }), href: linkTo('queues', [queue.name]) });
    else if (queue.oldest_ready && now() - instant(queue.oldest_ready) > LONG) found.set(`o ${queue.name}`, { text: t('needs.old', { name: queue.name, n: count(queue.ready), far: relative(queue.oldest_ready) }), href: linkTo('queues', [queue.name]) });
    if (queue.dead) found.set(`d ${queue.name}`, { text: t('needs.dead', { name: queue.name, n: count(queue.dead) }), href: linkTo('dead', [], { queue: queue.name }) });
  }
  for (const topic of topics) if (topic.settings.paused) found.set(`t ${topic.name}`, { text: t('needs.topic', { name: topic.name }), href: linkTo('topics', [topic.name]) });
  if (stats.failed_commits) found.set('commits', { text: t('needs.commits', { n: count(stats.failed_commits) }), href: linkTo('server') });
  if (!places.length) places.push(...Array(Math.min(MOST, Math.max(1, found.size))).fill(undefined));
  places.forEach((key, place) => { if (key !== undefined && !found.has(key)) places[place] = undefined; });
  const homeless = [...found.keys()].filter((key) => !places.includes(key));
  places.forEach((key, place) => { places[place] = key ?? homeless.shift(); });
  return section(t('needs'), h('ul', { class: 'needs' }, places.map((key, place) => {
    const need = key === undefined ? undefined : found.get(key);
    if (need) return h('li', { key: place }, sign('alert'), h('span', { class: 'isolated', dir: 'auto' }, need.text), h('a', { class: 'button small', href: need.href }, t('look')));
    return h('li', { key: place, class: 'calm' }, place === 0 && found.size === 0 ? [sign('check'), h('span', null, t('needs.nothing'))] : null);
  }), h('li', { key: 'rest', class: 'rest soft' }, homeless.length ? t('needs.more', { n: homeless.length }) : null)), { aside: found.size ? badge(count(found.size), 'warm') : null });
}

/** @param {any} forecast */
function next(forecast) {
  const values = forecast.slots.map((/** @type {any} */ slot) => slot.due);
  const total = values.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0);
  const marks = herds(values);
  return section(t('next.hour'), bars({
    label: t('next.label', { n: count(total) }), height: 120,
    bars: forecast.slots.map((/** @type {any} */ slot, /** @type {number} */ index) => ({ value: slot.due, label: minute(instant(slot.from)), mark: marks[index] })),
    axis: (index) => (index % 10 === 0 ? minute(instant(forecast.slots[index].from)) : undefined),
  }), { aside: [h('span', { class: 'soft' }, t('next.total', { n: count(total) })), ' ', h('a', { href: linkTo('future') }, t('nav.future'))] });
}
