// The settings of a topic or queue: as they are, as a form and as JSON; what changes is shown before it is saved, and
// nothing that somebody else has changed meanwhile is overwritten.

import { h } from '../render.js';
import { t } from '../words.js';
import { get, queuePath, topicPath } from '../api.js';
import { may, redraw, refresh, state } from '../store.js';
import { changed, differences, leaves, patchOf, place } from './difference.js';
import { propose, takeBack } from './dialog.js';
import { names, option } from './acts.js';
import { choice, facts, sign } from './pieces.js';

/**
 * @typedef {import('./difference.js').Change} Change
 * @typedef {'text' | 'span' | 'number' | 'rate' | 'feeds' | string[]} Kind
 */

/** What a form shows. Pauses are left out: they have buttons of their own. @type {Record<'topic' | 'queue', [string, Kind][]>} */
const FIELDS = {
  topic: [['owner', 'text'], ['history', 'span'], ['ttl', 'span'], ['priority', 'number'], ['rate', 'rate'], ['feeds', 'feeds']],
  queue: [['lease', 'span'], ['max_lease', 'span'], ['retry.attempts', 'number'], ['retry.backoff.first', 'span'], ['retry.backoff.longest', 'span'],
    ['retry.jitter_percent', 'number'], ['rate', 'rate'], ['order', ['due', 'arrival']], ['max_length', 'number'], ['overflow', ['refuse', 'drop_oldest']],
    ['dead_letter', 'text'], ['dead_retention', 'span']],
};

/** The flag of a setting on the command line. @param {string} path */
const flag = (path) => path.replace(/^retry\./, '').replace(/_percent$/, '').replaceAll(/[._]/g, '-');

/** A value as it is typed, here and on the command line. @param {any} value @returns {string} */
function typed(value) {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map(({ queue, pattern }) => (pattern ? `${queue}=${pattern}` : queue)).join('\n');
  if (typeof value === 'object') return value.burst ? `${value.per_second}:${value.burst}` : String(value.per_second);
  return String(value);
}

/** What was typed as a value. What is no number stays a text, and the server says so. @param {Kind} kind @param {string} text */
function read(kind, text) {
  const given = text.trim();
  if (!given) return undefined;
  const numberOf = (/** @type {string} */ text) => (/^\d+$/.test(text) ? Number(text) : text);
  if (kind === 'number') return numberOf(given);
  if (kind === 'rate') {
    const [often, burst] = given.split(':');
    return { per_second: numberOf(often), ...(burst ? { burst: numberOf(burst) } : {}) };
  }
  if (kind !== 'feeds') return given;
  return given.split('\n').filter((line) => line.trim()).map((line) => {
    const [queue, ...pattern] = line.trim().split('=');
    return pattern.length ? { queue, pattern: pattern.join('=') } : { queue };
  });
}

/** Settings without pauses. @param {any} settings */
function own({ paused: _, paused_until: __, ...rest }) {
  return rest;
}

/** @param {Change[]} changes */
export function changeList(changes) {
  const value = (/** @type {any} */ value) => (value === undefined ? h('span', { class: 'none' }, t('settings.default')) : h('code', null, h('span', { class: 'isolated', dir: 'auto' }, typed(value))));
  return h('ul', { class: 'changes' }, changes.map(({ path, from, to }) =>
    h('li', { key: path }, h('code', { class: 'soft' }, path), h('span', { class: 'change-from' }, value(from)), h('span', { 'aria-label': t('settings.becomes') }, '→'), h('span', { class: 'change-to' }, value(to)))));
}

export class SettingsForm {
  /** @param {'topic' | 'queue'} kind @param {string} name */
  constructor(kind, name) {
    this.kind = kind;
    this.name = name;
    this.path = kind === 'topic' ? topicPath(name) : queuePath(name);
    /** What the form began with, and what the server has now. @type {any} */
    this.base = undefined;
    /** @type {any} */
    this.latest = undefined;
    /** @type {any} */
    this.draft = undefined;
    /** What stands in fields, as it was typed. @type {Record<string, string>} */
    this.texts = {};
    this.form = 'form';
    /** JSON that cannot be read yet. @type {string | undefined} */
    this.json = undefined;
    /** The last change that was saved here, and how to undo it. @type {any} */
    this.saved = undefined;
  }

  /** Takes in what the server says. What is being edited stays. @param {any} info */
  see(info) {
    this.latest = info;
    if (this.base && this.changes().length) return;
    this.base = info;
    if (this.json === undefined) this.draft = own(info.settings);
  }

  changes() {
    return differences(own(this.base.settings), this.draft);
  }

  /** What somebody else has changed since. */
  theirs() {
    return differences(own(this.base.settings), own(this.latest.settings));
  }

  isOutdated() {
    return this.base.version !== this.latest.version;
  }

  /** Goes on with what the server has now; what was changed here is changed there. */
  takeOver() {
    const mine = this.changes();
    this.base = this.latest;
    this.draft = changed(own(this.latest.settings), mine);
    this.texts = {};
    if (state.dialog) state.dialog.error = undefined;
    redraw();
  }

  discard() {
    Object.assign(this, { base: this.latest, draft: own(this.latest.settings), texts: {}, json: undefined });
    redraw();
  }

  /** @param {string} path @param {Kind} kind @param {string} text */
  type(path, kind, text) {
    this.texts[path] = text;
    this.draft = changed(this.draft, []);
    // The first choice is the default, which may go without saying.
    const isUnsaid = Array.isArray(kind) && text === kind[0] && leaves(own(this.base.settings))[path] === undefined;
    place(this.draft, path, isUnsaid ? undefined : read(kind, text));
    redraw();
  }

  /** @param {string} text */
  typeJson(text) {
    try {
      const draft = JSON.parse(text);
      if (typeof draft !== 'object' || Array.isArray(draft) || !draft) throw new Error('no object');
      Object.assign(this, { draft, texts: {}, json: undefined });
    } catch {
      this.json = text;
    }
    redraw();
  }

  save() {
    const before = this.base;
    propose({
      title: t('settings.save.title'), text: t('settings.save.text', { name: this.name }), verb: t('settings.save'), subject: this.name,
      form: () => [changeList(this.changes()), this.conflict()], ready: () => this.changes().length > 0 && !this.isOutdated(),
      asked: () => ({ method: 'PATCH', path: this.path, match: this.base.version, body: patchOf(this.changes()) }),
      command: () => [`${this.kind}s`, 'set', ...this.changes().flatMap(({ path, to }) => words(path, to)), '--if-version', this.base.version, ...names(this.name)],
      said: () => t('settings.said', { name: this.name }), refused: () => this.ask(),
      undo: (answer) => this.undoing(answer, before), done: (answer) => {
        this.saved = { version: answer.version, undo: this.undoing(answer, before) };
        this.latest = answer;
        this.discard();
        refresh();
      },
    });
  }

  /** The request that makes everything as it was. @param {any} answer @param {any} before */
  undoing(answer, before) {
    return { method: 'PATCH', path: this.path, match: answer.version, body: patchOf(differences(own(answer.settings), own(before.settings))) };
  }

  /** Looks what the server has now. */
  async ask() {
    this.latest = await get(this.path);
    redraw();
  }

  /** What others have changed, if anything, and what to do about it. */
  conflict() {
    if (!this.isOutdated()) return null;
    return h('div', { class: 'conflict', role: 'alert' }, h('p', null, sign('alert'), ' ', t('settings.conflict')), changeList(this.theirs()),
      h('button', { class: 'button small', type: 'button', onclick: () => this.takeOver() }, t('settings.over')));
  }

  view() {
    if (!may('admin')) return [h('p', { class: 'soft' }, t('settings.asis')), facts(Object.entries(leaves(this.latest.settings)).map(([path, value]) => [h('code', null, path), h('span', { class: 'isolated', dir: 'auto' }, typed(value))]))];
    const changes = this.changes();
    const isReady = changes.length > 0 && this.json === undefined;
    const canUndo = this.saved?.version === this.latest.version && !changes.length;
    return h('form', { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); if (isReady) this.save(); } },
      h('div', { class: 'settings-head' }, choice(t('settings.form'), [['form', t('settings.form')], ['json', 'JSON']], this.form, (form) => { this.form = form; this.json = undefined; redraw(); }),
        h('span', { class: 'soft' }, t('settings.hint'))),
      this.form === 'json' ? this.text() : h('div', { class: 'form' }, FIELDS[this.kind].map(([path, kind]) => this.field(path, kind))),
      changes.length ? this.conflict() : null,
      h('div', { class: 'settings-foot' },
        h('button', { class: 'button main', type: 'submit', disabled: !isReady }, t('settings.review', { n: changes.length })),
        changes.length || this.json !== undefined ? h('button', { class: 'button', type: 'button', onclick: () => this.discard() }, t('settings.discard')) : null,
        canUndo ? h('button', { class: 'button', type: 'button', onclick: () => takeBack(this.saved.undo, () => { this.saved = undefined; refresh(); }) }, t('settings.undo')) : null));
  }

  /** All of it as a text. */
  text() {
    const text = this.json ?? JSON.stringify(this.draft, (_, value) => value ?? undefined, 2);
    return h('label', { class: 'field' }, h('span', { class: 'unseen' }, 'JSON'),
      h('textarea', { class: 'input code', rows: 16, spellcheck: 'false', value: text, onchange: (/** @type {any} */ event) => this.typeJson(event.target.value), oninput: (/** @type {any} */ event) => { this.json = event.target.value; redraw(); } }),
      h('small', { class: 'soft' }, this.json === undefined ? '\u00a0' : t('settings.unread')));
  }

  /** @param {string} path @param {Kind} kind */
  field(path, kind) {
    const value = leaves(this.draft)[path];
    const text = this.texts[path] ?? (typed(value) || (Array.isArray(kind) ? kind[0] : ''));
    const isChanged = typed(leaves(own(this.base.settings))[path]) !== typed(value);
    const given = { class: 'input', value: text, oninput: (/** @type {any} */ event) => this.type(path, kind, event.target.value) };
    const input = Array.isArray(kind)
      ? h('select', { ...given, oninput: undefined, onchange: given.oninput }, kind.map((word) => h('option', { value: word }, t(`set.${path}.${word}`))))
      : kind === 'feeds' ? h('textarea', { ...given, class: 'input code', rows: 3, spellcheck: 'false', placeholder: 'billing=order.*.paid' })
        : h('input', { ...given, inputmode: kind === 'number' ? 'numeric' : undefined, placeholder: kind === 'rate' ? '500:2000' : kind === 'span' ? '1h30m' : undefined, autocomplete: 'off', spellcheck: 'false' });
    return h('label', { key: path, class: 'field' + (isChanged ? ' touched' : '') }, h('span', null, t(`set.${path}`), ' ', h('code', { class: 'soft' }, path)), input, h('small', { class: 'soft' }, t(`set.${path}.about`)));
  }
}

/** A change as words of the command line. @param {string} path @param {any} to */
function words(path, to) {
  if (to === undefined) return ['--unset', flag(path)];
  return typed(to).split('\n').flatMap((text) => option(flag(path), text));
}
