// Signing in: a token, kept for as long as the tab is open.

import { h } from '../render.js';
import { t } from '../words.js';
import { Trouble, get } from '../api.js';
import { keepToken, redraw, state } from '../store.js';

/** @param {() => Promise<void>} enter */
export default function login(enter) {
  let text = '';
  /** @type {string | undefined} */
  let wrong;
  let isBusy = false;

  async function submit() {
    isBusy = true;
    keepToken(text.trim() || null);
    try {
      await get('/v1/me');
      [text, wrong] = ['', undefined];
      state.needsToken = false;
      await enter();
    } catch (error) {
      keepToken(null);
      wrong = error instanceof Trouble && error.status === 401 ? t('login.wrong') : t('code.unreachable');
    }
    isBusy = false;
    redraw();
  }

  return {
    title: () => t('login'),
    view: () => h('form', { class: 'login', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); if (!isBusy) submit(); } },
      h('h1', { id: 'title', tabindex: '-1' }, t('login')), h('p', { class: 'soft' }, t('login.about')),
      h('label', { class: 'field' }, h('span', null, t('login.token')),
        h('input', { class: 'input', type: 'password', autocomplete: 'off', value: text, 'aria-invalid': wrong ? 'true' : undefined, created: (/** @type {HTMLElement} */ node) => node.focus(), oninput: (/** @type {any} */ event) => { text = event.target.value; } }),
        h('small', { class: wrong ? 'bad' : 'soft', role: 'status' }, wrong ?? t('login.kept'))),
      h('p', null, h('button', { class: 'button main', type: 'submit', disabled: isBusy }, t('login.enter'))),
      h('div', { class: 'code-line' }, h('code', null, 'punctual token create --name amy --role operate'))),
  };
}
