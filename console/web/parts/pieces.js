// Small pieces that every page is made of.

import { h } from '../render.js';
import { t, has } from '../words.js';
import { absolute, count, iso, relative } from '../time.js';
import { linkTo } from '../router.js';
import { redraw, tell } from '../store.js';

/** @typedef {import('../render.js').Child} Child */

/** Drawn signs, so that no font is needed. */
const SIGNS = {
  search: 'M11 11l4 4M12.5 7a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0z',
  pause: 'M5 3v10M11 3v10',
  play: 'M4.5 3l8 5-8 5z',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  alert: 'M8 2l6.5 11.5h-13zM8 6.5v3M8 11.6v.1',
  check: 'M3 8.5l3.5 3.5L13 4.5',
  close: 'M4 4l8 8M12 4l-8 8',
  more: 'M8 3.5v.1M8 8v.1M8 12.5v.1',
  plus: 'M8 3v10M3 8h10',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z',
  user: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14a5.5 5.5 0 0 1 11 0',
  overview: 'M2.5 8.5h3v5h-3zM6.5 2.5h3v11h-3zM10.5 6h3v7.5h-3z',
  future: 'M2.5 13.5h11M3 11l3-4 3 2 4-6',
  topics: 'M2.5 4h11M2.5 8h11M2.5 12h7',
  queues: 'M2.5 3h11v3h-11zM2.5 10h11v3h-11zM5 8h6',
  tasks: 'M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12zM8 4.5V8l2.5 1.5',
  dead: 'M3 3.5h10v6l-3 4H3zM13 9.5h-3v4',
  sweeps: 'M2.5 4h7M2.5 8h7M2.5 12h4M12 5v7M9.5 9.5L12 12l2.5-2.5',
  audit: 'M4 2h8v12H4zM6.5 5.5h3M6.5 8h3M6.5 10.5h3',
  nodes: 'M8 5a1.8 1.8 0 1 0 0-3.6A1.8 1.8 0 0 0 8 5zM3.5 14a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6zM12.5 14a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6zM7.2 5l-3 5.4M8.8 5l3 5.4M5.3 12.2h5.4',
  server: 'M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.8v.1M5 11.3v.1',
};

/** @param {keyof typeof SIGNS} name */
export function sign(name) {
  return h('svg', { class: 'sign', viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false' }, h('path', { d: SIGNS[name] }));
}

/** A time: when, and how far away. @param {string | number | null | undefined} time @param {{ exact?: boolean, only?: boolean }} [how] */
export function when(time, how = {}) {
  // What has no time takes the room of one: it may come and go.
  if (time === null || time === undefined) return h('span', { class: 'none when' }, '–');
  return h('time', { datetime: String(time), title: iso(time), class: 'when' },
    absolute(time, how.exact), how.only ? null : [' ', h('small', { class: 'soft' }, relative(time))]);
}

/** A number that may change while it is looked at. @param {number | undefined} number @param {string} [tone] */
export function number(number, tone) {
  return h('span', { class: 'number' + (number ? ' ' + (tone ?? '') : ' none') }, number === undefined ? '–' : padded(count(number)));
}

/** The width of nine digits and signs, by blanks as wide as those: a number that grows does not move. @param {string} text */
function padded(text) {
  const blank = [...'0,000,000'].map((sign) => (sign === '0' ? '\u2007' : '\u2008')).join('');
  return blank.slice(0, Math.max(0, blank.length - text.length)) + text;
}

/** @param {string} text @param {string} [tone] @param {string} [title] */
export function badge(text, tone = 'plain', title) {
  return h('span', { class: `badge ${tone}`, title }, text);
}

const TONES = { scheduled: 'plain', ready: 'warm', leased: 'cool', spread: 'cool', dead: 'bad', finished: 'good' };

/** Where a task stands, in a word. @param {any} standing */
export function standing(standing) {
  const word = standing.state === 'finished' ? `ending.${standing.ending}` : `state.${standing.state}`;
  const tone = standing.ending === 'cancelled' || standing.ending === 'purged' ? 'plain' : TONES[/** @type {keyof typeof TONES} */ (standing.state)];
  return badge(t(word), tone, standing.state === 'dead' ? reason(standing.reason) : undefined);
}

/** Why a task died. @param {string} word */
export function reason(word) {
  return has(`reason.${word}`) ? t(`reason.${word}`) : word;
}

/** A link to a topic, queue, key or task; names are shown as they are, on their own. */
export const name = {
  /** @param {string} topic */
  topic: (topic) => h('a', { class: 'name', href: linkTo('topics', [topic]) }, isolated(topic)),
  /** @param {string | null | undefined} queue */
  queue: (queue) => (queue ? h('a', { class: 'name', href: linkTo('queues', [queue]) }, isolated(queue)) : h('span', { class: 'none' }, '–')),
  /** @param {string | null | undefined} key */
  key: (key) => (key ? h('a', { class: 'name', href: linkTo('keys', [key]) }, isolated(key)) : h('span', { class: 'none' }, '–')),
  /** @param {string} topic @param {string} id */
  task: (topic, id) => h('a', { class: 'name', href: linkTo('tasks', [topic, id]) }, isolated(id)),
};

/** A name may hold marks that turn the direction of what follows; here they turn only the name. @param {string} text */
export function isolated(text) {
  return h('span', { class: 'isolated', dir: 'auto' }, text);
}

/**
 * The head of a page.
 * @param {Child} title @param {{ about?: Child, acts?: Child, above?: Child }} [more]
 */
export function heading(title, { about, acts, above } = {}) {
  return h('header', { class: 'heading' },
    h('div', { class: 'heading-text' }, above ? h('p', { class: 'above' }, above) : null,
      h('h1', { tabindex: '-1', id: 'title' }, title), about ? h('p', { class: 'about' }, about) : null),
    acts ? h('div', { class: 'acts' }, acts) : null);
}

/** Who paused it, since when, and why, as far as that is known. @param {any} pause */
export function pausedBy(pause) {
  if (!pause) return null;
  return [t('paused.by', { name: pause.by ?? '–' }), ' ', when(pause.since), pause.reason ? [' · ', isolated(pause.reason)] : null];
}

/** A titled part of a page. @param {Child} title @param {Child} body @param {{ aside?: Child, class?: string }} [more] */
export function section(title, body, { aside, class: kind = '' } = {}) {
  return h('section', { class: `section ${kind}` },
    h('header', { class: 'section-head' }, h('h2', null, title), aside ? h('div', { class: 'section-aside' }, aside) : null), body);
}

/** Facts in pairs. @param {[Child, Child][]} pairs */
export function facts(pairs) {
  return h('dl', { class: 'facts' }, pairs.map(([label, value]) => h('div', null, h('dt', null, label), h('dd', null, value))));
}

/** A large number with its name. @param {string} label @param {Child} value @param {{ href?: string, tone?: string, below?: Child, spark?: Child }} [more] */
export function figure(label, value, { href, tone = '', below, spark } = {}) {
  const inside = [h('span', { class: 'figure-label' }, label), h('span', { class: `figure-value ${tone}` }, value), h('span', { class: 'figure-below' }, below ?? '\u00a0'), spark];
  return href ? h('a', { class: 'figure', href }, inside) : h('div', { class: 'figure' }, inside);
}

/** Nothing is there: why, and what to do. @param {string} title @param {Child} [text] @param {string} [code] */
export function empty(title, text, code) {
  return h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, title), text ? h('p', null, text) : null,
    code ? h('div', { class: 'code-line' }, h('code', null, code), copyButton(code, t('copy'))) : null);
}

/** What went wrong, in the console's words and the server's. @param {any} error @param {() => void} [again] */
export function failed(error, again) {
  const code = `code.${error.code}`;
  return h('div', { class: 'empty failed', role: 'alert' },
    h('p', { class: 'empty-title' }, has(code) ? t(code) : t('code.other')),
    h('p', { lang: 'en' }, error.message), again ? h('p', null, h('button', { class: 'button', onclick: again }, t('again'))) : null);
}

/** That a list has changed since it was shown: whoever wants sees it as it is now. @param {import('./steady.js').Steady<any>} rows */
export function news(rows) {
  const show = () => {
    rows.show();
    redraw();
    requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector('.page .table-frame'))?.focus({ preventScroll: true }));
  };
  return h('div', { class: 'news', role: 'status' }, rows.latest ? h('button', { class: 'button small', type: 'button', onclick: show },
    rows.fresh ? t('list.new', { n: count(rows.fresh) }) : t('list.gone', { n: count(rows.gone.size) })) : null);
}

/** Room for what is on its way. @param {number} [lines] */
export function waiting(lines = 6) {
  return h('div', { class: 'waiting', 'aria-busy': 'true', role: 'status' }, h('span', { class: 'unseen' }, t('loading')),
    Array.from({ length: lines }, () => h('div', { class: 'waiting-line' })));
}

/** Has a row of links that is wider than the screen show where one is. @param {HTMLElement} row */
export function bringIntoSight(row) {
  const current = /** @type {HTMLElement | null} */ (row.querySelector('[aria-current]'));
  if (!current) return;
  const [outer, inner] = [row.getBoundingClientRect(), current.getBoundingClientRect()];
  if (inner.left < outer.left || inner.right > outer.right) row.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
}

/** Ways to look at the same thing. @param {{ key: string, label: Child, href: string, now: boolean }[]} tabs @param {string} label */
export function tabs(tabs, label) {
  return h('nav', { class: 'tabs', 'aria-label': label, created: bringIntoSight }, tabs.map((tab) =>
    h('a', { key: tab.key, href: tab.href, class: 'tab', 'aria-current': tab.now ? 'page' : undefined }, tab.label)));
}

/** One of a few. @param {string} label @param {[string, string][]} choices @param {string} now @param {(choice: string) => void} choose */
export function choice(label, choices, now, choose) {
  return h('div', { class: 'choice', role: 'group', 'aria-label': label }, choices.map(([value, text]) =>
    h('button', { key: value, type: 'button', 'aria-pressed': String(value === now), onclick: () => choose(value) }, text)));
}

/** Copies a text, also where a browser allows no clipboard: plain HTTP. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'unseen';
    const place = document.querySelector('dialog[open]') ?? document.body;
    const before = document.activeElement;
    place.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    if (before instanceof HTMLElement) before.focus();
  }
  tell(t('copied'), 'good');
}

/** @param {string} text @param {string} label */
export function copyButton(text, label) {
  return h('button', { class: 'button quiet', type: 'button', title: label, onclick: () => copy(text) }, sign('copy'), ' ', label);
}
