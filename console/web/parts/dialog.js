// Acts: what will happen is said before it does, weighty ones are confirmed by typing, and each can be copied as a command.

import { h } from '../render.js';
import { t } from '../words.js';
import { absolute, count } from '../time.js';
import { asCommand, asCurl, quoted, send } from '../api.js';
import { redraw, state, tell } from '../store.js';
import { badge, copyButton, failed, isolated } from './pieces.js';

/**
 * @typedef {import('../render.js').Child} Child
 * @typedef {import('../api.js').Asked} Asked
 * @typedef {{ title: string, text: Child, verb: string, asked: () => Asked, command: () => string[], preview?: () => Asked,
 *   form?: () => Child, ready?: () => boolean, harm?: boolean, typed?: string, said: (answer: any) => string, done?: (answer: any, preview?: any) => void,
 *   input?: () => string[] | undefined, undo?: (answer: any) => Asked | undefined, refused?: (error: any) => void, subject: string }} Act `undo` is the request that takes it back
 */

/** From how many on an act is confirmed by typing a name, and from how many on by typing the number as well. */
const MANY = 20;
const VERY_MANY = 100_000;
/** How long a count is good for, in milliseconds. */
const FRESH = 10_000;

/** Asks whether to do this. @param {Act} act */
export function propose(act) {
  const opener = document.activeElement;
  state.dialog = { act, typed: '', preview: undefined, error: undefined, busy: false, opener };
  redraw();
  if (act.preview) look();
}

/** Counts what would change. */
async function look() {
  const dialog = state.dialog;
  const asked = dialog.act.preview();
  dialog.counting = asked;
  try {
    const preview = await send(asked);
    // What was asked meanwhile is answered later.
    if (dialog.counting === asked) Object.assign(dialog, { preview, error: undefined, at: Date.now(), isOld: false });
  } catch (error) {
    if (dialog.counting === asked) Object.assign(dialog, { preview: undefined, error });
  }
  redraw();
}

/** @type {number | undefined} */
let later;

/** Counts again, once nobody types any more. What was counted stays in sight until then, and nothing is done by it. */
export function lookAgain() {
  clearTimeout(later);
  const dialog = state.dialog;
  dialog.isOld = true;
  later = setTimeout(() => state.dialog === dialog && look(), 300);
}

/** Closes it, and gives the focus back. */
export function close() {
  const opener = state.dialog?.opener;
  state.dialog = undefined;
  redraw();
  requestAnimationFrame(() => opener?.isConnected && opener.focus());
}

async function carryOut() {
  const dialog = state.dialog;
  /** @type {Act} */
  const act = dialog.act;
  dialog.busy = true;
  redraw();
  // What was promised a while ago is looked at again; if it is something else now, people decide anew.
  const promised = dialog.preview?.changed;
  if (dialog.at && Date.now() - dialog.at > FRESH) await look();
  if (dialog.preview?.changed !== promised) {
    Object.assign(dialog, { busy: false, typed: '' });
    return redraw();
  }
  try {
    const asked = act.asked();
    const answer = await send(asked);
    close();
    const undo = act.undo?.(answer);
    if (act.said(answer)) tell(act.said(answer), 'good', undo && { label: t('undo'), do: () => takeBack(undo, () => act.done?.(answer)) });
    act.done?.(answer, dialog.preview);
  } catch (error) {
    dialog.error = error;
    dialog.busy = false;
    act.refused?.(error);
    redraw();
  }
}

/** What has to be typed, if anything: a name for many tasks and for what cannot be undone, and for very many their number. @param {any} dialog */
function toType({ act, preview }) {
  if (act.typed === undefined || (act.preview && !preview)) return undefined;
  if (!preview) return act.typed;
  if (preview.changed <= MANY && preview.undo?.possible) return undefined;
  return [act.typed, preview.changed > VERY_MANY || !act.typed ? String(preview.changed) : ''].filter(Boolean).join(' ');
}

/** The dialog, if one is open. */
export function dialog() {
  const open = state.dialog;
  if (!open) return null;
  if (open.view) return open.view();
  /** @type {Act} */
  const act = open.act;
  const typed = toType(open);
  const nothing = open.preview && open.preview.changed === 0;
  const ready = !open.busy && !nothing && (!act.preview || (open.preview && !open.isOld)) && (!typed || open.typed === typed) && (act.ready?.() ?? true);
  return modal(act.title, [
    h('form', { id: 'act', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); if (ready) carryOut(); } },
      h('p', null, act.text),
      act.form?.(),
      act.preview ? preview(open) : null,
      typed ? h('label', { class: 'field' }, h('span', null, t('act.type', { name: typed })),
        h('input', { class: 'input', value: open.typed, autocomplete: 'off', spellcheck: 'false', oninput: (/** @type {any} */ event) => { open.typed = event.target.value; redraw(); } })) : null,
      open.error ? failed(open.error) : null),
    h('details', { class: 'same' }, h('summary', null, t('act.same')), commands(act.asked(), act.command(), act.input?.())),
  ], [
    h('button', { class: 'button', type: 'button', onclick: close }, t('act.leave')),
    h('button', { class: 'button ' + (act.harm ? 'harm' : 'main'), type: 'submit', disabled: !ready, onclick: () => ready && carryOut() }, act.verb),
  ]);
}

/** The counts of a dry run; room is kept for them. @param {any} open */
function preview({ preview, error, isOld }) {
  if (error && !preview) return null;
  const parts = preview ? [
    badge(t('act.will', { n: (preview.more ? '> ' : '') + count(preview.changed) }), 'cool'),
    preview.too_late ? badge(t('act.late', { n: count(preview.too_late) }), 'warm') : null,
    preview.no_room ? badge(t('act.full', { n: count(preview.no_room) }), 'warm') : null,
    isOld ? h('span', { class: 'soft' }, t('act.counting')) : null,
  ] : h('span', { class: 'soft' }, t('act.counting'));
  const { samples = [], undo } = preview ?? {};
  return h('div', { class: 'foretold' }, h('p', { class: 'preview', 'aria-live': 'polite' }, parts),
    h('ul', { class: 'samples' }, samples.map((/** @type {any} */ task) => h('li', { key: `${task.topic}/${task.id}` }, isolated(`${task.topic} / ${task.id}`), ' ', h('small', { class: 'soft' }, absolute(task.due))))),
    undo ? h('p', { class: 'soft' }, undo.possible ? [undo.until ? t('undo.until', { time: absolute(undo.until) }) : t('undo.can'), ' ', excepted(undo)] : [t('undo.cannot'), ' ', h('span', { lang: 'en' }, undo.why)]) : null);
}

/** The topics whose tasks do not come back. @param {any} undo */
export const excepted = (undo) => (undo.except?.length ? h('span', { class: 'warm isolated' }, t('undo.except', { names: undo.except.join(', ') })) : null);

/** A request as commands to copy; `input` is what the second reads. @param {Asked} asked @param {string[]} command @param {string[]} [input] */
export function commands(asked, command, input) {
  const line = (/** @type {string} */ text, /** @type {string} */ label) => h('div', { class: 'code-line' }, h('code', null, text), copyButton(text, label));
  return h('div', { class: 'commands' }, line(asCurl(asked), t('copy.curl')), command.length ? line((input ? `printf '%s\\n' ${input.map(quoted).join(' ')} | ` : '') + asCommand(...command), t('copy.command')) : null);
}

/** A window over the page. @param {string} title @param {Child} body @param {Child} foot */
export function modal(title, body, foot) {
  return h('dialog', { key: 'dialog', class: 'dialog', 'aria-labelledby': 'dialog-title', oncancel: (/** @type {Event} */ event) => { event.preventDefault(); close(); },
    created: (/** @type {HTMLDialogElement} */ node) => { node.showModal(); (/** @type {HTMLElement | null} */ (node.querySelector('form input, form select, form textarea')) ?? node.querySelector('.dialog-foot button'))?.focus(); } },
    h('h2', { id: 'dialog-title' }, title), h('div', { class: 'dialog-body' }, body), h('footer', { class: 'dialog-foot' }, foot));
}

/** Does something that can be undone at once, and offers that. @param {Asked} asked @param {string[]} command @param {string} said @param {Asked} undo @param {() => void} done */
export async function doAtOnce(asked, command, said, undo, done) {
  try {
    await send(asked);
    tell(said, 'good', { label: t('undo'), do: () => takeBack(undo, done) }, { curl: asCurl(asked), command: asCommand(...command) });
    done();
  } catch (error) {
    tell(/** @type {Error} */ (error).message, 'bad');
  }
}

/** Undoes something, and says so. @param {Asked} undo @param {() => void} [done] */
export async function takeBack(undo, done) {
  try {
    await send(undo);
    tell(t('undo.said'), 'good');
  } catch (error) {
    tell(/** @type {Error} */ (error).message, 'bad');
  }
  done?.();
}
