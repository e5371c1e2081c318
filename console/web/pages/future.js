// The future: how much comes due when, from minutes to years, together and by topic. A part of it is chosen by dragging
// or by keys; what stands out is marked, with how long it takes to hand out.

import { h } from '../render.js';
import { t } from '../words.js';
import { get, queuePath, topicPath } from '../api.js';
import { ask, here, linkTo } from '../router.js';
import { may, redraw, refresh } from '../store.js';
import { absolute, count, lengthOf, now, slotName, span } from '../time.js';
import { bars, herds, strip } from '../parts/chart.js';
import { badge, choice, empty, figure, heading, isolated, name, number, section } from '../parts/pieces.js';
import { sweep } from '../parts/sweep.js';
import { table } from '../parts/table.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** @type {Record<string, number>} */
const SPANS = { hour: HOUR, day: DAY, week: 7 * DAY, month: 31 * DAY, year: 366 * DAY };
/** The units of the API: up to which length each is used, and how many are drawn as one. */
const UNITS = [
  { unit: 'minute', length: MINUTE, most: 12 * HOUR, joined: [1, 2, 5, 10] },
  { unit: 'hour', length: HOUR, most: 16 * DAY, joined: [1, 2, 3, 6] },
  { unit: 'day', length: DAY, most: Infinity, joined: [1, 2, 7, 14, 28] },
];
const BARS = 124;
/** As many slots as the server tells at once. */
const SLOTS = 1440;
const TOPICS = 12;

/** @typedef {{ from: number, until: number, value: number, label: string, mark: boolean }} Slot */

export default function future() {
  /** What was asked and answered last. @type {{ from: number, until: number, step: number, slots: Slot[], topics: { topic: string | null, due: number[] }[], cut: any } | undefined} */
  let known;
  /** A slot, of all or of one topic. @type {{ at: number, topic?: string } | undefined} */
  let chosen;
  /** @type {{ first: number, last: number } | undefined} */
  let brush;
  /** How fast the queues of a topic hand out, by topic. @type {Map<string, { rate?: number, queue: string, ttl?: string }>} */
  const pace = new Map();

  const range = () => {
    const query = here()?.query;
    const [from, until] = [Date.parse(query?.get('from') ?? ''), Date.parse(query?.get('until') ?? '')];
    if (from < until) return { from: Math.max(from, now()), until: Math.min(Math.max(until, now() + MINUTE), from + SLOTS * DAY), key: '' };
    const key = SPANS[query?.get('span') ?? ''] ? query?.get('span') ?? 'hour' : 'hour';
    return { from: now(), until: now() + SPANS[key], key };
  };
  const isTable = () => here()?.query.get('view') === 'table';

  /** Looks at another part of the future. @param {number} from @param {number} until */
  function zoom(from, until) {
    const begin = Math.max(from, now());
    chosen = brush = undefined;
    ask({ span: undefined, from: new Date(begin).toISOString(), until: new Date(Math.max(until, begin + MINUTE)).toISOString() });
    refresh();
  }
  /** @param {number} by how much longer @param {number} [aside] how far on, in windows */
  function turn(by, aside = 0) {
    const { from, until } = range();
    const length = Math.min(SLOTS * DAY, Math.max(5 * MINUTE, (until - from) * by));
    const middle = chosen && known && by < 1 ? known.slots[chosen.at].from : by < 1 ? (from + until) / 2 : from + length / 2;
    const begin = Math.max(now(), middle - length / 2 + aside * length);
    zoom(begin, begin + length);
  }
  const toggle = () => { ask({ view: isTable() ? undefined : 'table' }); };

  return {
    every: 20,
    title: () => t('nav.future'),
    keys: { t: toggle, '+': () => turn(0.5), '-': () => turn(2), ArrowRight: () => turn(1, 0.5), ArrowLeft: () => turn(1, -0.5) },
    async load(/** @type {AbortSignal} */ signal) {
      const { from, until } = range();
      const { unit, length, joined } = UNITS.find(({ most }) => until - from <= most) ?? UNITS[2];
      const first = Math.floor(from / length) * length;
      const slots = Math.min(SLOTS, Math.ceil((until - first) / length));
      const query = { unit, slots, from: new Date(from).toISOString() };
      // All together is exact; by topic it is counted on request, and may end early.
      const [all, apart] = await Promise.all([get('/v1/forecast', query, signal), get('/v1/forecast', { ...query, top: TOPICS }, signal)]);
      const step = joined.find((many) => slots / many <= BARS) ?? joined[joined.length - 1];
      const sums = (/** @type {number[]} */ values) => Array.from({ length: Math.ceil(values.length / step) }, (_, index) => values.slice(index * step, (index + 1) * step).reduce((one, other) => one + other, 0));
      const values = sums(all.slots.map((/** @type {any} */ slot) => slot.due));
      const marks = herds(values);
      known = {
        from, until, step: step * length, cut: all.counted_until ?? apart.topics_until,
        slots: values.map((value, index) => ({ value, mark: marks[index], from: first + index * step * length, until: first + (index + 1) * step * length, label: slotName(first + index * step * length, step * length) })),
        topics: (apart.topics ?? []).map((/** @type {any} */ { topic, due }) => ({ topic: topic ?? null, due: sums(due) })),
      };
      if (chosen && chosen.at >= known.slots.length) chosen = undefined;
      await Promise.all(herdsOf(known).map(({ topic }) => learnPace(topic)));
    },
    view() {
      if (!known) return null;
      const { slots, topics, cut } = known;
      const total = slots.reduce((sum, { value }) => sum + value, 0);
      const most = slots.reduce((one, other) => (other.value > one.value ? other : one), slots[0]);
      const found = herdsOf(known);
      return [
        heading(t('nav.future'), { about: t('future.about'), acts: choice(t('span'), Object.keys(SPANS).map((key) => [key, t(`span.${key}`)]), range().key, (key) => { chosen = undefined; ask({ span: key === 'hour' ? undefined : key, from: undefined, until: undefined }); refresh(); }) }),
        h('div', { class: 'figures few' }, figure(t('future.total'), count(total), { below: `${absolute(slots[0].from)} – ${absolute(slots[slots.length - 1].until)}` }),
          figure(t('future.most'), count(most.value), { below: most.value ? absolute(most.from) : '', tone: most.mark ? 'warm' : '' })),
        section(t('future.chart'), total === 0 ? empty(t('future.none'), t('future.none.text')) : isTable() ? numbers(known)
          : bars({ label: t('next.label', { n: count(total) }), bars: slots, height: 220, chosen: chosen?.at, brush, select: choose, over: drag, axis: (index) => (index % Math.ceil(slots.length / 8) === 0 ? slots[index].label : undefined) }),
        { aside: [
          h('span', { class: 'soft' }, t('future.zoom')), tool('−', t('zoom.out'), () => turn(2)), tool('+', t('zoom.in'), () => turn(0.5)), tool('←', t('zoom.back'), () => turn(1, -0.5)), tool('→', t('zoom.on'), () => turn(1, 0.5)),
          choice(t('future.view'), [['', t('future.bars')], ['table', t('future.table')]], isTable() ? 'table' : '', toggle),
        ] }),
        chosen ? detail(chosen) : null,
        found.length ? section(t('herds'), h('ul', { class: 'needs' }, found.map(({ topic, at, value }) => h('li', { key: `${topic} ${at}` }, badge(t('herd'), 'warm'),
          h('span', null, name.topic(topic), ' ', t('herd.text', { n: count(value), time: slots[at].label }), ' ', h('span', { class: 'soft isolated', dir: 'auto' }, drain(topic, value))),
          h('button', { class: 'button small', onclick: () => choose(at, topic) }, t('look')))))) : null,
        topics.length && total && !isTable() ? section(t('by.topic'), strips(known), { aside: cut ? h('span', { class: 'soft' }, t('future.until', { time: absolute(cut) })) : null }) : null,
      ];
    },
  };

  /** @param {number} at @param {string} [topic] */
  function choose(at, topic) {
    chosen = { at, topic };
    if (topic) learnPace(topic);
    redraw();
  }

  /** Some slots are marked while they are dragged over, and looked at closely then. @param {number} first @param {number} last @param {boolean} isOver */
  function drag(first, last, isOver) {
    brush = { first: Math.min(first, last), last: Math.max(first, last) };
    const slots = known?.slots ?? [];
    if (!isOver) return redraw();
    const [from, until] = [slots[brush.first]?.from ?? 0, slots[brush.last]?.until ?? 0];
    brush = undefined;
    zoom(from, until);
  }

  /** How fast what comes due of a topic is handed out: the slowest of its queues decides. @param {string} topic */
  async function learnPace(topic) {
    if (pace.has(topic)) return;
    try {
      const { settings } = await get(topicPath(topic));
      const fed = (settings.feeds ?? [{ queue: topic }]).slice(0, 4);
      const queues = await Promise.all(fed.map((/** @type {any} */ { queue }) => get(queuePath(queue)).catch(() => undefined)));
      const limited = queues.filter((queue) => queue?.settings.rate).sort((one, other) => one.settings.rate.per_second - other.settings.rate.per_second)[0];
      pace.set(topic, { rate: limited?.settings.rate.per_second, queue: limited?.name ?? fed[0].queue, ttl: settings.ttl });
      redraw();
    } catch {
      // How long it takes is not said then.
    }
  }

  /** @param {string} topic @param {number} value */
  function drain(topic, value) {
    const found = pace.get(topic);
    if (!found) return '';
    if (!found.rate) return t('herd.free', { name: found.queue });
    const time = t('herd.drain', { time: span((value / found.rate) * 1000), rate: count(found.rate), name: found.queue });
    const lost = found.ttl ? Math.floor(value - (found.rate * lengthOf(found.ttl)) / 1000) : 0;
    return lost > 0 ? `${time} ${t('herd.lost', { n: count(lost), ttl: found.ttl ?? '' })}` : time;
  }

  /** A slot from near. @param {{ at: number, topic?: string }} chosen */
  function detail({ at, topic }) {
    const { slots, topics, step } = /** @type {NonNullable<typeof known>} */ (known);
    const slot = slots[at];
    const parts = topics.filter(({ due }) => due[at]).sort((one, other) => other.due[at] - one.due[at]);
    const value = topic ? topics.find((one) => one.topic === topic)?.due[at] ?? 0 : slot.value;
    const filter = { topic, from: new Date(slot.from).toISOString(), until: new Date(slot.until).toISOString() };
    return section([topic ? [isolated(topic), ' · '] : null, `${absolute(slot.from)} – ${absolute(slot.until)}`], [
      h('p', null, t('herd.due', { n: count(value) }), ' ', topic ? h('span', { class: 'soft isolated', dir: 'auto' }, drain(topic, value)) : null),
      topic ? null : h('ul', { class: 'deliveries' }, parts.slice(0, 6).map((part) => h('li', { key: part.topic ?? '' }, part.topic === null ? h('span', { class: 'soft' }, t('others')) : h('button', { class: 'link', onclick: () => choose(at, part.topic ?? undefined) }, isolated(part.topic)), ' ', count(part.due[at])))),
    ], { class: 'detail', aside: [
      h('a', { class: 'button small', href: linkTo('tasks', [], filter) }, t('herd.tasks')),
      may('operate') && value ? ['spread', 'move', 'cancel'].map((act) => h('button', { key: act, class: 'button small', onclick: () => sweep({ act: /** @type {'spread'} */ (act), select: { ...filter, state: 'live' }, start: filter.from, done: refresh }) }, t(`${act}.dots`))) : null,
      step > MINUTE ? h('button', { class: 'button small', onclick: () => zoom(slot.from, slot.until) }, t('zoom.in')) : null,
      h('button', { class: 'button small quiet', onclick: () => { chosen = undefined; redraw(); } }, t('dismiss')),
    ] });
  }

  /** A strip for each topic: the darker, the more. @param {NonNullable<typeof known>} known */
  function strips({ topics, slots }) {
    const most = Math.max(1, ...topics.flatMap(({ due }) => due));
    return h('div', { class: 'strips' }, topics.map(({ topic, due }) => h('div', { key: topic ?? '', class: 'strip' },
      h('span', { class: 'strip-name' }, topic === null ? h('span', { class: 'soft' }, t('others')) : name.topic(topic)),
      strip(due, most, slots, chosen && chosen.topic === (topic ?? undefined) ? chosen.at : undefined, (at) => choose(at, topic ?? undefined)),
      number(due.reduce((one, other) => one + other, 0)))));
  }
}

/** The herds by topic, the largest first. @param {{ topics: { topic: string | null, due: number[] }[] }} known */
function herdsOf({ topics }) {
  return topics.flatMap(({ topic, due }) => (topic === null ? [] : herds(due).flatMap((isHerd, at) => (isHerd || (due[at] >= 100 && due[at] === sumOf(due)) ? [{ topic, at, value: due[at] }] : []))))
    .sort((one, other) => other.value - one.value).slice(0, 8);
}

/** @param {number[]} values */
const sumOf = (values) => values.reduce((one, other) => one + other, 0);

/** @param {string} text @param {string} label @param {() => void} act */
const tool = (text, label, act) => h('button', { class: 'button small square', 'aria-label': label, title: label, onclick: act }, text);

/** The same numbers as a table. @param {{ slots: Slot[], topics: { topic: string | null, due: number[] }[] }} known */
function numbers({ slots, topics }) {
  const rows = slots.map((slot, at) => ({ ...slot, at })).filter(({ value }) => value > 0);
  return table({ label: t('future.chart'), rows, keyOf: (slot) => String(slot.from), columns: [
    { key: 'time', label: t('time'), main: true, cell: (slot) => h('a', { class: 'name', href: linkTo('tasks', [], { from: new Date(slot.from).toISOString(), until: new Date(slot.until).toISOString() }) }, slot.label) },
    { key: 'all', label: t('all'), number: true, cell: (slot) => number(slot.value, slot.mark ? 'warm' : '') },
    ...topics.map(({ topic, due }) => ({ key: 't ' + topic, label: topic ?? t('others'), head: topic === null ? undefined : isolated(topic), number: true, cell: (/** @type {any} */ slot) => number(due[slot.at] ?? 0) })),
  ] });
}
