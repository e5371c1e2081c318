// What stands around every page: the bar with the search, the navigation, what is being said.

import { h } from '../render.js';
import { t } from '../words.js';
import { absolute, clock, count, now, zone } from '../time.js';
import { LANGUAGES, language, learn } from '../words.js';
import { go, linkTo, PLACE } from '../router.js';
import { dismiss, keepToken, may, preference, prefer, redraw, state, token } from '../store.js';
import { badge, copy, sign } from './pieces.js';

/** @typedef {import('../render.js').Child} Child */

const meta = (/** @type {string} */ name) => document.querySelector(`meta[name="punctual-${name}"]`)?.getAttribute('content') ?? '';
export const TITLE = meta('title');
const ENVIRONMENT = meta('environment');

/** The navigation: page, key behind `g`, sign. @type {[string, string, any][]} */
export const NAVIGATION = [
  ['overview', 'o', 'overview'], ['future', 'f', 'future'], ['topics', 't', 'topics'], ['queues', 'q', 'queues'],
  ['tasks', 'a', 'tasks'], ['dead', 'd', 'dead'], ['consumers', 'c', 'user'], ['sweeps', 'w', 'sweeps'], ['audit', 'l', 'audit'], ['nodes', 'n', 'nodes'], ['server', 's', 'server'],
];

/** @param {string} page */
export const addressOf = (page) => (page === 'overview' ? PLACE : linkTo(page));

/** @param {{ nav: string, body: Child, search: Child, asOf: number }} how `asOf` is when the page was right */
export function frame({ nav, body, search, asOf }) {
  return [
    h('a', { class: 'skip', href: '#title', onclick: (/** @type {Event} */ event) => { event.preventDefault(); document.getElementById('title')?.focus(); } }, t('skip')),
    h('header', { class: 'bar' },
      h('a', { class: 'brand', href: PLACE }, logo(), h('span', { class: 'brand-name' }, TITLE)),
      ENVIRONMENT ? badge(ENVIRONMENT, /^prod/i.test(ENVIRONMENT) ? 'production' : 'environment') : null,
      search,
      h('div', { class: 'bar-end' }, chip(), live(), zones(), languages(), theme(), who())),
    state.trouble ? h('div', { class: 'banner', role: 'status' }, sign('alert'), ' ', t('banner.' + (state.trouble === 'unreachable' ? 'away' : 'busy')), asOf ? [' ', t('banner.asof', { time: absolute(asOf) })] : null) : null,
    h('div', { class: 'columns' },
      h('nav', { class: 'navigation', 'aria-label': t('navigation') }, NAVIGATION.filter(([page]) => page !== 'audit' || may('operate')).map(([page, key, picture]) =>
        h('a', { key: page, href: addressOf(page), class: 'nav-link', 'aria-current': nav === page ? 'page' : undefined, title: `g ${key}` }, sign(picture), h('span', null, t('nav.' + page)))),
      h('a', { class: 'nav-link nav-help', href: linkTo('help'), 'aria-current': nav === 'help' ? 'page' : undefined }, h('kbd', null, '?'), h('span', null, t('nav.help')))),
      h('main', { class: state.trouble ? 'page stale' : 'page', id: 'main' }, body)),
    h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' }, state.toasts.map((toast) =>
      h('div', { key: toast.id, class: `toast ${toast.tone}` }, h('span', null, toast.text),
        toast.act ? h('button', { class: 'button', title: 'u', onclick: () => { dismiss(toast.id); toast.act?.do(); } }, toast.act.label) : null,
        toast.same ? [h('button', { class: 'button quiet', title: t('copy.curl'), onclick: () => copy(toast.same?.curl ?? '') }, 'curl'), h('button', { class: 'button quiet', 'aria-label': t('copy.command'), title: t('copy.command'), onclick: () => copy(toast.same?.command ?? '') }, sign('copy'))] : null,
        h('button', { class: 'button quiet square', 'aria-label': t('dismiss'), onclick: () => dismiss(toast.id) }, sign('close'))))),
  ];
}

/** The clock of the icon, in the colour of the text. */
function logo() {
  return h('svg', { class: 'logo', viewBox: '0 0 32 32', 'aria-hidden': 'true', focusable: 'false' },
    h('circle', { cx: 16, cy: 18, r: 11 }), h('path', { d: 'M16 11.5V18l4.5 3M12.5 2.5h7' }));
}

/** A sweep that is under way, wherever people are. */
function chip() {
  const running = state.sweeps.filter(({ state }) => state === 'running' || state === 'stopping');
  if (running.length === 0) return null;
  const [{ id, do: act, changed }] = running;
  return h('a', { class: 'badge cool chip', href: running.length === 1 ? linkTo('sweeps', [id]) : linkTo('sweeps') }, t(`sweep.${act}`), ' ', count(changed), running.length > 1 ? ` +${running.length - 1}` : null);
}

function live() {
  const label = state.live ? t('live.pause') : t('live.resume');
  const isAway = Boolean(state.trouble);
  return [
    h('button', { class: 'live ' + (isAway ? 'away' : state.live ? 'on' : ''), title: isAway ? t('live.away') : `${label} (p)`, 'aria-label': label, 'aria-pressed': String(state.live), onclick: () => { state.live = !state.live; redraw(); } }, h('span', { class: 'dot' })),
    h('span', { class: 'clock' }, clock(now())),
  ];
}

function zones() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = [...new Set([own, 'UTC', 'Asia/Shanghai', 'Asia/Tokyo', 'Asia/Singapore', 'Asia/Kolkata', 'Europe/Berlin', 'Europe/London', 'America/New_York', 'America/Los_Angeles', zone()])];
  return h('select', { class: 'pick', 'aria-label': t('zone'), title: t('zone'), value: zone(), onchange: (/** @type {any} */ event) => { prefer('zone', event.target.value); redraw(); } },
    known.map((name) => h('option', { key: name, value: name }, name.split('/').at(-1)?.replaceAll('_', ' '))));
}

function languages() {
  const next = LANGUAGES.find((other) => other !== language()) ?? 'en';
  return h('button', { class: 'pick', lang: next, title: next === 'zh' ? '中文' : 'English', onclick: async () => { prefer('language', next); await learn(); redraw(); } }, next === 'zh' ? '中文' : 'EN');
}

/** Shows the chosen colours. */
export function dress() {
  const theme = new URLSearchParams(location.search).get('theme') ?? preference('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/** Light and dark change places. */
export function changeTheme() {
  const isDark = document.documentElement.dataset.theme === 'dark' || (!document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  prefer('theme', isDark ? 'light' : 'dark');
  dress();
  redraw();
}

function theme() {
  return h('button', { class: 'pick square', 'aria-label': t('theme'), title: t('theme'), onclick: changeTheme }, sign('moon'));
}

function who() {
  if (!state.me) return null;
  return h('details', { class: 'menu' }, h('summary', { class: 'pick', title: t('who') }, sign('user'), h('span', { class: 'who-name' }, state.me.name)),
    h('div', { class: 'menu-body' }, h('p', null, h('strong', null, state.me.name)),
      h('p', { class: 'soft' }, t('who.roles'), ': ', state.me.roles.join(', ')),
      h('p', { class: 'soft' }, t('who.topics'), ': ', state.me.topics.join(', ')),
      h('button', { class: 'button', onclick: leave }, token() ? t('who.leave') : t('who.token'))));
}

function leave() {
  keepToken(null);
  state.me = undefined;
  state.needsToken = true;
  redraw();
}

/** The search at the top: a number, a key, a topic or a queue. @param {{ text: string }} given */
export function search(given) {
  return h('form', { class: 'search', role: 'search', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); if (given.text.trim()) go(linkTo('find', [], { q: given.text.trim() })); } },
    sign('search'), h('input', { class: 'search-input', id: 'search', type: 'search', 'aria-label': t('search'), placeholder: t('search.hint'), value: given.text, autocomplete: 'off', spellcheck: 'false', oninput: (/** @type {any} */ event) => { given.text = event.target.value; } }),
    h('kbd', { 'aria-hidden': 'true' }, '/'));
}
