// What can be done to tasks, topics and queues: each as a request, as a command, and in words.

import { h } from '../render.js';
import { t } from '../words.js';
import { absolute, count, instant, now } from '../time.js';
import { get, keyPath, queuePath, taskPath, topicPath } from '../api.js';
import { redraw, tell } from '../store.js';
import { doAtOnce, lookAgain, propose } from './dialog.js';
import { Download } from './download.js';

/** Names that follow a command; one that looks like a flag is none. @param {...string} given */
export const names = (...given) => (given.some((name) => name.startsWith('-')) ? ['--', ...given] : given);

/** A flag with its value, if there is one. @param {string} flag @param {string | undefined} value */
export const option = (flag, value) => (!value ? [] : value.startsWith('-') ? [`--${flag}=${value}`] : [`--${flag}`, value]);

/** @param {string} topic @param {string} id @param {() => void} done */
export async function cancel(topic, id, done) {
  const [asked, command, said] = [{ method: 'DELETE', path: taskPath(topic, id) }, ['cancel', ...names(topic, id)], t('cancel.said', { name: id })];
  const { settings } = await get(topicPath(topic)).catch(() => ({ settings: {} }));
  // What the history keeps can be taken back; what it does not is asked about.
  if (!/^0\D*$/.test(settings.history ?? '')) return doAtOnce(asked, command, said, { method: 'POST', path: taskPath(topic, id, 'restore') }, done);
  propose({ title: t('cancel.title'), text: t('cancel.text', { name: id }), verb: t('cancel'), subject: id, harm: true, typed: id, asked: () => asked, command: () => command, said: () => said, done });
}

/** A field for a point in time: how long from now, or when. @param {{ text: string }} given @param {() => void} [changed] */
export function timeField(given, changed) {
  return h('label', { class: 'field' }, h('span', null, t('move.field')),
    h('input', { class: 'input', value: given.text, placeholder: '15m', autocomplete: 'off', spellcheck: 'false', oninput: (/** @type {any} */ event) => { given.text = event.target.value; changed?.(); redraw(); } }),
    h('small', { class: 'soft' }, t('move.hint')));
}

/** @param {string} text */
export function timeOf(text) {
  const trimmed = text.trim();
  return /^\d{4}-/.test(trimmed) ? { at: trimmed } : { delay: trimmed };
}

/** @param {string} text */
const timeWords = (text) => ('at' in timeOf(text) ? option('at', text.trim()) : option('in', text.trim()));

/** @param {string} topic @param {string} id @param {string | number} due what it is now @param {() => void} done */
export function move(topic, id, due, done) {
  const given = { text: '15m' };
  propose({
    title: t('move.title'), text: t('move.text', { name: id }), verb: t('move'), subject: id,
    form: () => timeField(given), ready: () => given.text.trim() !== '',
    asked: () => ({ method: 'PATCH', path: taskPath(topic, id), body: timeOf(given.text) }),
    command: () => ['reschedule', ...timeWords(given.text), ...names(topic, id)],
    said: (answer) => t('move.said', { time: absolute(answer.due) }), undo: () => ({ method: 'PATCH', path: taskPath(topic, id), body: { at: due } }), done,
  });
}

/** Cancels or moves all tasks of a key, for producers: they may not sweep, and have nothing that undoes it. @param {'cancel' | 'move'} act @param {string} key @param {() => void} done */
export function changeKey(act, key, done) {
  const given = { text: '15m' };
  const isMove = act === 'move';
  const asked = (/** @type {{ dry_run?: boolean }} */ how) => (isMove ? { method: 'PATCH', path: keyPath(key), body: { ...timeOf(given.text), ...how } } : { method: 'DELETE', path: keyPath(key), query: how });
  propose({
    title: t(`sweep.${act}`), text: t(`sweep.${act}.text`), verb: t(act), subject: key, harm: !isMove, typed: key,
    form: () => (isMove ? timeField(given, lookAgain) : null), ready: () => !isMove || given.text.trim() !== '',
    preview: () => asked({ dry_run: true }), asked: () => asked({}),
    command: () => [isMove ? 'reschedule' : 'cancel', ...option('key', key), ...(isMove ? timeWords(given.text) : [])],
    said: () => '',
    done: ({ changed, too_late: late }, preview) => {
      tell(t('act.swept', { n: count(changed), late: count(late) }), changed === preview.changed ? 'good' : 'warm');
      done();
    },
  });
}

/** @param {string} topic @param {string} id @param {string | undefined} queue @param {'dead' | 'history'} list @param {() => void} done */
export function replay(topic, id, queue, list, done) {
  propose({
    title: t('replay.title'), text: t('replay.text', { name: id }), verb: t('replay'), subject: id,
    asked: () => ({ method: 'POST', path: taskPath(topic, id, 'replay'), query: { queue } }),
    command: () => [list, 'replay', ...option('queue', queue), ...names(topic, id)],
    said: () => t('replay.said', { name: id }), done,
  });
}

/** @param {string} topic @param {string} id @param {string | undefined} queue @param {() => void} done */
export function purge(topic, id, queue, done) {
  const download = new Download({ topic, queue, ids: [id] });
  propose({
    title: t('purge.title'), text: t('purge.text', { name: id }), verb: t('purge'), harm: true, subject: id, form: () => download.view(),
    asked: () => ({ method: 'POST', path: taskPath(topic, id, 'purge'), query: { queue } }),
    command: () => ['dead', 'purge', ...option('queue', queue), ...names(topic, id)],
    said: () => t('purge.said', { name: id }), done,
  });
}

/** @param {string} topic @param {string} id @param {string | undefined} queue @param {() => void} done */
export function hasten(topic, id, queue, done) {
  propose({
    title: t('hasten.title'), text: t('hasten.text', { name: id }), verb: t('hasten'), subject: id,
    asked: () => ({ method: 'POST', path: taskPath(topic, id, 'hasten'), query: { queue } }),
    command: () => ['hasten', ...option('queue', queue), ...names(topic, id)],
    said: () => t('hasten.said', { name: id }), done,
  });
}

/** @param {string} topic @param {string} id @param {string} holder @param {string | undefined} queue @param {() => void} done */
export function revoke(topic, id, holder, queue, done) {
  propose({
    title: t('revoke.title'), text: t('revoke.text', { name: holder }), verb: t('revoke'), harm: true, subject: id,
    asked: () => ({ method: 'POST', path: taskPath(topic, id, 'revoke'), query: { queue }, body: { holder } }),
    command: () => ['revoke', ...option('holder', holder), ...option('queue', queue), ...names(topic, id)],
    said: () => t('revoke.said', { name: id }), done,
  });
}

/** @param {'topic' | 'queue'} kind @param {string} name @param {string} act */
const pathOf = (kind, name, act) => (kind === 'topic' ? topicPath(name, act) : queuePath(name, act));

/** @param {'topic' | 'queue'} kind @param {any} info what is paused @param {() => void} done */
export function resume(kind, { name, settings, pause }, done) {
  const until = settings.paused_until && instant(settings.paused_until) > now() ? { until: settings.paused_until } : {};
  const before = { ...until, ...(pause?.reason ? { reason: pause.reason } : {}) };
  return doAtOnce({ method: 'POST', path: pathOf(kind, name, 'resume') }, [`${kind}s`, 'resume', ...names(name)], t('resume.said', { name }),
    { method: 'POST', path: pathOf(kind, name, 'pause'), body: Object.keys(before).length ? before : undefined }, done);
}

/** Pauses it, a queue also for a while, and says why. @param {'topic' | 'queue'} kind @param {any} info @param {() => void} done */
export function pause(kind, { name }, done) {
  const given = { for: '', reason: '' };
  const set = (/** @type {'for' | 'reason'} */ field) => (/** @type {any} */ event) => { given[field] = event.target.value; redraw(); };
  const body = () => Object.fromEntries(Object.entries(given).map(([field, value]) => [field, value.trim()]).filter(([, value]) => value));
  propose({
    title: t(`pause.${kind}`), text: t(`pause.${kind}.text`, { name }), verb: t('pause'), subject: name,
    form: () => [h('label', { class: 'field' }, h('span', null, t('pause.reason'), h('small', { class: 'soft' }, ' ', t('optional'))), h('input', { class: 'input', value: given.reason, maxlength: 300, oninput: set('reason') })),
      kind === 'topic' ? null : h('label', { class: 'field' }, h('span', null, t('pause.field')),
        h('select', { class: 'input', value: given.for, onchange: set('for') },
          [['', t('pause.open')], ['5m', '5 m'], ['15m', '15 m'], ['1h', '1 h'], ['12h', '12 h']].map(([value, text]) => h('option', { value }, text))))],
    asked: () => ({ method: 'POST', path: pathOf(kind, name, 'pause'), body: Object.keys(body()).length ? body() : undefined }),
    command: () => [`${kind}s`, 'pause', ...option('for', given.for), ...option('reason', given.reason.trim()), ...names(name)],
    said: () => t('pause.said', { name }), undo: () => ({ method: 'POST', path: pathOf(kind, name, 'resume') }), done,
  });
}
