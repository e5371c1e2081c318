// Acts on many tasks: what would change is counted first, what happens is shown while it does, and it can be stopped and undone.

import { h } from '../render.js';
import { t } from '../words.js';
import { send } from '../api.js';
import { redraw, state, tell } from '../store.js';
import { count } from '../time.js';
import { option, timeField, timeOf } from './acts.js';
import { close, lookAgain, modal, propose } from './dialog.js';
import { Download } from './download.js';
import { badge } from './pieces.js';
import { begin, isRunning, latest } from './running.js';

/**
 * @typedef {'cancel' | 'move' | 'spread' | 'replay' | 'purge' | 'hasten'} Doing
 * @typedef {Record<string, any>} Select
 */

/** @param {{ act: Doing, select: Select, start?: string, done?: () => void }} how */
export function sweep({ act, select, start, done }) {
  const given = { text: '15m', start: start ?? '', over: '10m' };
  const time = () => (act === 'move' ? timeOf(given.text) : act === 'spread' ? { ...(given.start.trim() ? { start: given.start.trim() } : {}), over: given.over.trim() } : {});
  // Only what waits for its time can come sooner.
  const chosen = Object.fromEntries(Object.entries(act === 'hasten' ? { ...select, state: 'scheduled' } : select).filter(([, value]) => value !== undefined));
  const isAll = Object.keys(chosen).every((name) => name === 'state');
  const body = () => ({ select: isAll ? { ...chosen, all: true } : chosen, do: act, ...time() });
  const download = act === 'purge' ? new Download(chosen) : undefined;
  propose({
    title: t(`sweep.${act}`), text: t(`sweep.${act}.text`), verb: t(act), subject: act, harm: act === 'cancel' || act === 'purge',
    typed: chosen.topic ?? chosen.queue ?? chosen.key ?? '', form: () => (download ? download.view() : form(act, given)), ready: () => act !== 'move' || given.text.trim() !== '',
    preview: () => ({ method: 'POST', path: '/v1/sweeps', body: { ...body(), dry_run: true } }),
    asked: () => ({ method: 'POST', path: '/v1/sweeps', body: body() }),
    command: () => ['sweep', '--do', act, ...words({ ...chosen, ...time() }), ...(isAll ? ['--all'] : [])], input: () => chosen.ids,
    said: () => '', done: (answer, preview) => { follow(answer, preview.changed, done); },
  });
}

/** As flags of the command line, also what is empty: without it, more would be meant. Ids are read from where they are piped to. @param {Record<string, any>} given */
function words({ ids, ...given }) {
  const flags = Object.entries(given).flatMap(([name, value]) => (value === '' ? [`--${name.replace('_', '-')}=`] : option(name.replace('_', '-'), String(value))));
  return ids ? [...flags, '--ids=/dev/stdin', '--yes'] : flags;
}

/** @param {Doing} act @param {{ text: string, start: string, over: string }} given */
function form(act, given) {
  if (act === 'move') return timeField(given, lookAgain);
  if (act !== 'spread') return null;
  const field = (/** @type {'over' | 'start'} */ name, /** @type {string} */ holder) => h('label', { class: 'field' }, h('span', null, t(`spread.${name}`)),
    h('input', { class: 'input', value: given[name], placeholder: holder, autocomplete: 'off', spellcheck: 'false', oninput: (/** @type {any} */ event) => { given[name] = event.target.value; lookAgain(); redraw(); } }));
  return [field('over', '10m'), field('start', t('spread.now'))];
}

/** Shows how far a sweep is, until it is over or somebody looks elsewhere. @param {any} begun @param {number} [promised] @param {() => void} [done] */
function follow(begun, promised, done) {
  begin(begun, promised, done);
  state.dialog = { opener: document.activeElement, view: () => {
    const info = latest(begun.id) ?? begun;
    return modal(t(`sweep.${info.do}`), progress(info, promised), buttons(info, true));
  } };
  redraw();
}

/** What became of it. @param {any} info @param {number} [promised] */
export function progress(info, promised) {
  const most = Math.max(promised ?? 0, info.matched, 1);
  const differs = !isRunning(info) && promised !== undefined && info.changed !== promised;
  return [
    h('progress', { class: 'progress', value: isRunning(info) ? info.matched : most, max: most, 'aria-label': t(`sweep.state.${info.state}`) }),
    h('p', { class: 'preview', 'aria-live': 'polite' }, badge(t(`sweep.state.${info.state}`), isRunning(info) ? 'cool' : differs ? 'warm' : 'good'), badge(t('sweep.changed', { n: count(info.changed) }), 'plain'),
      info.too_late ? badge(t('act.late', { n: count(info.too_late) }), 'warm') : null, info.no_room ? badge(t('act.full', { n: count(info.no_room) }), 'warm') : null),
    differs ? h('p', { class: 'warm' }, t(info.state === 'stopped' ? 'sweep.halted' : 'sweep.differs', { n: count(promised) })) : null,
  ];
}

/** @param {any} info @param {boolean} [isDialog] */
export function buttons(info, isDialog) {
  const ask = (/** @type {string} */ act) => send({ method: 'POST', path: `/v1/sweeps/${info.id}/${act}` });
  const attempt = (/** @type {Promise<any>} */ asked, /** @type {(answer: any) => void} */ then) => asked.then(then, (error) => tell(error.message, 'bad'));
  return [
    isRunning(info) ? h('button', { class: 'button', type: 'button', onclick: () => attempt(ask('stop'), begin) }, t('sweep.stop')) : null,
    !isRunning(info) && info.undo?.possible && !info.undone_by ? h('button', { class: 'button', type: 'button', onclick: () => attempt(ask('undo'), (answer) => follow(answer, info.changed)) }, t('undo')) : null,
    isDialog ? h('button', { class: 'button main', type: 'button', onclick: close }, isRunning(info) ? t('sweep.leave') : t('dismiss')) : null,
  ];
}
