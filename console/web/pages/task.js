// One task: where it stands and why, what has happened to it, and what it carries.

import { h } from '../render.js';
import { has, t } from '../words.js';
import { get, send, taskPath } from '../api.js';
import { may, redraw, refresh } from '../store.js';
import { absolute, count, instant, relative, size, span } from '../time.js';
import { cancel, hasten, move, purge, replay, revoke } from '../parts/acts.js';
import { badge, choice, copyButton, facts, heading, isolated, name, reason, section, standing, when } from '../parts/pieces.js';
import { hex, pretty, rawMember } from '../parts/body.js';
import { save } from '../parts/download.js';

/** Bodies are shown up to this many characters unless somebody wants more, and never beyond the second. */
const SHOWN = 64 << 10;
const MOST = 1 << 20;

/** @param {import('../router.js').Route} route */
export default function task({ names }) {
  /** @type {import('punctual-api').components['schemas']['TaskInfo']} */
  let info;
  /** @type {any} */
  let told;
  let text = '';
  const how = { form: 'pretty', isWhole: false };
  return {
    every: 2,
    title: () => names.id ?? '#' + names.number,
    async load(/** @type {AbortSignal} */ signal) {
      const path = names.number ? '/v1/numbers/' + encodeURIComponent(names.number) : taskPath(names.topic, names.id);
      // The text itself is kept: numbers in a body may be larger than those of a browser.
      text = await send({ method: 'GET', path }, { signal, text: true });
      info = JSON.parse(text);
      told = await get(taskPath(info.topic, info.id, 'timeline'), {}, signal);
    },
    view: () => [
      heading(isolated(info.id), {
        above: [name.topic(info.topic), info.number ? h('span', { class: 'soft' }, ' #', String(info.number)) : null],
        about: [standing(info.standing), ' ', h('span', null, why(told.why))],
        acts: acts(info),
      }),
      facts([
        [t('due'), when(info.due, { exact: true })], [t('scheduled.at'), when(info.scheduled_at, { exact: true })], [t('key'), name.key(info.key)],
        [t('queue'), name.queue(info.queue ?? (info.standing.state === 'leased' ? info.standing.queue : undefined))],
        [t('priority'), count(info.priority)], [t('attempts'), `${count(info.attempts)} (${t('failures', { n: info.failures })})`],
        ...[['ttl', info.ttl], ['lease', info.lease], ['max_lease', info.max_lease], ['routing_key', info.routing_key]].filter(([, value]) => value)
          .map(([word, value]) => /** @type {[any, any]} */ ([h('code', null, word), isolated(String(value))])),
      ]),
      info.deliveries?.length ? section(t('deliveries'), deliveries(info)) : null,
      section(t('timeline'), timeline(told)),
      section(t('body'), body(), { aside: choice(t('body'), [['pretty', t('body.pretty')], ['raw', t('body.raw')]], how.form, (form) => { how.form = form; redraw(); }) }),
      Object.keys(info.headers ?? {}).length ? section(t('headers'), facts(Object.entries(info.headers ?? {}).map(([header, value]) => [isolated(header), isolated(String(value))]))) : null,
    ],
  };

  function body() {
    const kind = info.text !== undefined && info.text !== null ? 'text' : info.base64 ? 'bytes' : 'json';
    const raw = kind === 'text' ? info.text ?? '' : kind === 'bytes' ? String(info.base64) : rawMember(text, 'body');
    if (raw === undefined) return h('p', { class: 'soft' }, t('body.none'));
    const shown = how.form === 'raw' ? raw : kind === 'json' ? pretty(raw) : kind === 'bytes' ? hex(raw, 4096) : raw;
    const limit = how.isWhole ? MOST : SHOWN;
    return [
      h('p', { class: 'soft body-kind' }, t(`body.${kind}`), ' · ', size(new Blob([raw]).size), ' ', raw.length <= MOST ? copyButton(raw, t('copy')) : null, ' ', download(raw)),
      h('pre', { class: 'body', tabindex: '0', 'aria-label': t('body') }, shown.slice(0, limit)),
      shown.length > limit && !how.isWhole ? h('button', { class: 'button', onclick: () => { how.isWhole = true; redraw(); } }, t('body.more')) : null,
    ];
  }

  /** @param {string} raw */
  function download(raw) {
    return h('button', { class: 'button quiet', onclick: () => save(new Blob([raw], { type: 'application/octet-stream' }), `${names.id ?? names.number}.txt`) }, t('body.download'));
  }
}

/** What can be done to it now. @param {any} info */
function acts(info) {
  const { topic, id, queue } = info;
  const { state, ending } = info.standing;
  const waits = state === 'scheduled' || state === 'ready';
  return [
    state === 'scheduled' && may('operate') ? h('button', { class: 'button', onclick: () => hasten(topic, id, queue ?? undefined, refresh) }, t('hasten.dots')) : null,
    waits && (may('produce') || may('operate')) ? [h('button', { class: 'button', 'data-key': 'm', onclick: () => move(topic, id, info.due, refresh) }, t('move.dots')), h('button', { class: 'button', 'data-key': 'c', onclick: () => cancel(topic, id, refresh) }, t('cancel'))] : null,
    state === 'leased' && may('operate') ? h('button', { class: 'button', onclick: () => revoke(topic, id, info.standing.holder, queue ?? undefined, refresh) }, t('revoke.dots')) : null,
    state === 'dead' && may('operate') ? [h('button', { class: 'button', 'data-key': 'r', onclick: () => replay(topic, id, queue ?? undefined, 'dead', refresh) }, t('replay.dots')), h('button', { class: 'button', onclick: () => purge(topic, id, queue ?? undefined, refresh) }, t('purge.dots'))] : null,
    state === 'finished' && ending !== 'forwarded' && may('operate') ? h('button', { class: 'button', 'data-key': 'r', onclick: () => replay(topic, id, undefined, 'history', refresh) }, t('replay.dots')) : null,
  ];
}

/** Why it is still here: what the server says, the main cause first. @param {any[]} causes */
function why(causes) {
  const time = (/** @type {any} */ at) => (at === undefined || at === null ? '' : `${absolute(at)} (${relative(at)})`);
  return causes.map((cause, index) => h('span', { key: index, class: 'isolated', dir: 'auto' }, t(`why.${cause.cause}${cause.cause === 'paused' && cause.until ? '.until' : ''}`, {
    ...cause, time: time(cause.at ?? cause.until), name: cause.queue ?? '', n: cause.attempt ?? cause.ahead ?? cause.per_second ?? cause.open?.length ?? 0, by: cause.by ?? '–',
    reason: cause.cause === 'dead' ? reason(cause.reason) : cause.reason ?? '', ending: cause.ending ? t(`ending.${cause.ending}`) : '',
  }), ' '));
}

/** @param {any} info */
function deliveries(info) {
  return h('ul', { class: 'deliveries' }, info.deliveries.map((/** @type {any} */ delivery) => h('li', { key: delivery.queue ?? delivery.number },
    name.queue(delivery.queue), ' ', standing(delivery.standing), ' ', h('span', { class: 'soft' }, t('attempts'), ' ', count(delivery.attempts)))));
}

/** @type {Record<string, string>} */
const TONES = { done: 'good', cancelled: '', dead: 'bad', failed: 'warm', lapsed: 'warm', rejected: 'warm', ready: 'warm' };

/** What has happened to it, and what is to come. @param {any} told */
function timeline({ entries, to_come: ahead, untold_attempts: untold, known_since: since }) {
  const steps = [...entries.map((/** @type {any} */ entry) => ({ ...entry, tone: TONES[entry.what] ?? '', text: happened(entry) })),
    ...ahead.map((/** @type {any} */ entry) => ({ ...entry, tone: 'ahead', text: t(`ahead.${entry.what}`, { n: entry.attempt ?? '', after: entry.after ?? '' }), note: undefined }))];
  return [h('ol', { class: 'timeline' }, steps.map((step, index) => {
    const before = steps[index - 1]?.at;
    const gap = step.at && before ? instant(step.at) - instant(before) : 0;
    return h('li', { key: index, class: step.tone }, gap >= 1000 ? h('span', { class: 'gap soft' }, span(gap)) : null,
      h('span', { class: 'line-at' }, step.exact === false ? '≥ ' : null, step.at ? when(step.at, { exact: true, only: true }) : '…'), h('span', { class: 'line-text' }, step.text, step.queue ? [' ', h('small', { class: 'soft' }, isolated(step.queue))] : null),
      step.note ? h('span', { class: 'note isolated', dir: 'auto' }, step.note) : null);
  })), h('p', { class: 'soft' }, untold ? [t('line.cut', { n: count(untold) }), ' '] : null, since ? [t('line.since'), ' ', when(since, { only: true })] : null)];
}

/** An entry of the timeline in words. @param {any} entry */
function happened({ what, who, attempt, until, act, reason: why }) {
  const by = who ? [' ', isolated(who)] : null;
  if (what === 'scheduled') return [t('line.scheduled', { time: until ? absolute(until) : '–' }), by];
  if (what === 'act') return [h('code', null, act), by];
  if (what === 'due' || what === 'ready') return t(`line.${what}`);
  if (what === 'leased') return [t('line.attempt', { n: attempt }), by, until ? [' ', h('small', { class: 'soft' }, t('line.until', { time: absolute(until) }))] : null];
  if (what === 'dead') return [t('line.dead'), ': ', reason(why)];
  if (has(`undone.${what}`)) return [t('line.attempt', { n: attempt }), ' ', badge(t(`undone.${what}`), 'warm'), by];
  return has(`ending.${what}`) ? t(`ending.${what}`) : h('code', null, what);
}
