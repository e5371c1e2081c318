// A new task, as a form; the same as a command is always in sight.

import { h } from '../render.js';
import { t } from '../words.js';
import { send } from '../api.js';
import { go, here, linkTo } from '../router.js';
import { redraw, tell } from '../store.js';
import { absolute } from '../time.js';
import { timeOf } from '../parts/acts.js';
import { commands } from '../parts/dialog.js';
import { failed, heading, section } from '../parts/pieces.js';

export default function fresh() {
  const given = { topic: here()?.query.get('topic') ?? '', id: '', key: '', time: '1m', kind: 'body', content: '{"hello": "world"}', priority: '' };
  /** @type {any} */
  let error;
  let isBusy = false;
  const parsed = () => {
    try {
      JSON.parse(given.content);
      return true;
    } catch {
      return false;
    }
  };
  const isReady = () => given.topic.trim() !== '' && !isBusy && (given.kind === 'text' || parsed());
  const asked = () => {
    /** @type {any} */
    const body = { topic: given.topic.trim(), ...(given.time.trim() ? timeOf(given.time) : {}) };
    for (const name of /** @type {const} */ (['id', 'key'])) if (given[name].trim()) body[name] = given[name].trim();
    if (given.priority.trim()) body.priority = Number(given.priority);
    if (given.kind === 'text') body.text = given.content;
    const content = given.kind === 'body' && parsed() ? given.content : undefined;
    return { method: 'POST', path: '/v1/tasks', body, content };
  };
  const command = () => {
    const time = timeOf(given.time);
    const words = ['schedule', ...('at' in time ? ['--at', String(time.at)] : time.delay ? ['--in', time.delay] : [])];
    for (const name of /** @type {const} */ (['id', 'key', 'priority'])) if (given[name].trim()) words.push(`--${name}=${given[name].trim()}`);
    words.push(given.kind === 'text' ? '--text' : '--body-json', '--', given.topic.trim() || 'TOPIC', given.content);
    return words;
  };

  async function submit() {
    isBusy = true;
    redraw();
    try {
      const answer = await send(asked());
      tell(t('new.said', { name: answer.id, outcome: t(`outcome.${answer.outcome}`), time: answer.due ? absolute(answer.due) : '–' }), answer.outcome === 'existed' ? 'plain' : 'good');
      go(linkTo('tasks', [answer.topic, answer.id]));
    } catch (caught) {
      error = caught;
    }
    isBusy = false;
    redraw();
  }

  /** @param {keyof typeof given} name @param {{ hint?: string, holder?: string, required?: boolean, mode?: string }} [more] */
  const field = (name, { hint, holder, required, mode } = {}) => h('label', { class: 'field' }, h('span', null, t(`field.${name}`), required ? null : h('small', { class: 'soft' }, ' ', t('optional'))),
    h('input', { class: 'input', value: given[name], placeholder: holder, required, inputmode: mode, autocomplete: 'off', spellcheck: 'false', oninput: (/** @type {any} */ event) => { given[name] = event.target.value; redraw(); } }),
    h('small', { class: 'soft' }, hint ?? '\u00a0'));

  return {
    title: () => t('new'),
    view: () => [
      heading(t('new'), { about: t('new.about') }),
      section(t('new.task'), h('form', { class: 'form', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); if (isReady()) submit(); } },
        field('topic', { required: true, holder: 'order-unpaid' }), field('time', { hint: t('move.hint'), holder: '15m' }),
        field('id', { hint: t('field.id.hint') }), field('key', { hint: t('field.key.hint') }), field('priority', { mode: 'numeric', holder: '65536' }),
        h('label', { class: 'field' }, h('span', null, t('field.kind')), h('select', { class: 'input', value: given.kind, onchange: (/** @type {any} */ event) => { given.kind = event.target.value; redraw(); } },
          h('option', { value: 'body' }, 'JSON'), h('option', { value: 'text' }, t('body.text'))), h('small', null, '\u00a0')),
        h('label', { class: 'field whole' }, h('span', null, t('body')), h('textarea', { class: 'input code', rows: 6, spellcheck: 'false', value: given.content, oninput: (/** @type {any} */ event) => { given.content = event.target.value; redraw(); } }),
          h('small', { class: given.kind === 'body' && !parsed() ? 'bad' : 'soft' }, given.kind === 'body' && !parsed() ? t('new.json') : '\u00a0')),
        error ? failed(error) : null,
        h('p', { class: 'whole' }, h('button', { class: 'button main', type: 'submit', disabled: !isReady() }, t('new.submit'))))),
      section(t('act.same'), commands(asked(), command())),
    ],
  };
}
