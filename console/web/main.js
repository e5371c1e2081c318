// The beginning: which page is shown, when it asks again, and what the keys do.

import { patch } from './render.js';
import { follow, go, here, linkTo } from './router.js';
import { get, Trouble } from './api.js';
import { dismiss, drawBy, redraw, refreshBy, state, tell } from './store.js';
import { learn, t } from './words.js';
import { now, setNow } from './time.js';
import { addressOf, dress, frame, NAVIGATION, search, TITLE, changeTheme } from './parts/frame.js';
import { bringIntoSight, empty, failed, waiting } from './parts/pieces.js';
import { dialog } from './parts/dialog.js';
import { lookForSweeps } from './parts/running.js';

/**
 * What a file in pages/ makes: what it asks, what it shows, and how often it asks again, in seconds.
 * It may have keys of its own, which come before those of every page. Nobody asked for a `tick`: it must move nothing.
 * @typedef {{ title: () => string, load?: (signal: AbortSignal, isTick: boolean) => Promise<void>, view: () => import('./render.js').Child, every?: number, keys?: Record<string, () => void>, leave?: () => void }} Page
 */

/** @type {{ route: import('./router.js').Route | undefined, page: Page | undefined, error: any, isThere: boolean, at: number, asOf: number, stop: AbortController | undefined }} */
const shown = { route: undefined, page: undefined, error: undefined, isThere: false, at: 0, asOf: 0, stop: undefined };
const searched = { text: '' };
const root = /** @type {HTMLElement} */ (document.getElementById('app'));

/**
 * The file that draws a page. A server of another version has this version's files no more: then everything is loaded anew, at the same address.
 * @param {import('./router.js').Route} route
 */
async function fileOf(route) {
  try {
    return await import(`./pages/${route.file}.js`);
  } catch (error) {
    shown.at = Date.now();
    const page = await fetch(location.pathname, { cache: 'no-store' }).then((answer) => answer.text(), () => undefined);
    const isOther = page !== undefined && !page.includes(new URL(import.meta.url).pathname);
    if (isOther) location.reload();
    else shown.error = new Trouble('unreachable', 0, String(error));
    redraw();
    return undefined;
  }
}

async function arrive() {
  const route = here();
  const isSame = route && shown.page && route.path === shown.route?.path;
  shown.route = route;
  if (!isSame) {
    shown.stop?.abort();
    shown.page?.leave?.();
    Object.assign(shown, { page: undefined, error: undefined, isThere: false });
    redraw();
    if (route) {
      const file = await fileOf(route);
      if (shown.route !== route || !file) return;
      shown.page = file.default(route);
    }
    scrollTo(0, 0);
  }
  await refresh();
  requestAnimationFrame(() => document.querySelectorAll('.navigation').forEach((row) => bringIntoSight(/** @type {HTMLElement} */ (row))));
  // A new page is read from its title on, unless somebody is typing already.
  const isFree = () => document.activeElement === document.body || !document.activeElement;
  if (!isSame) requestAnimationFrame(() => isFree() && document.getElementById('title')?.focus({ preventScroll: true }));
}

/** Asks for what the page shows; by itself if it is a tick. */
async function refresh(isTick = false) {
  const { page } = shown;
  if (!page && shown.route && shown.error) return void arrive();
  if (!page || state.needsToken) return redraw();
  shown.stop?.abort();
  const stop = (shown.stop = new AbortController());
  shown.at = Date.now();
  try {
    await page.load?.(stop.signal, isTick);
    const wasAway = Boolean(shown.error);
    Object.assign(shown, { error: undefined, isThere: true, asOf: now() });
    if (wasAway) whoAmI();
  } catch (error) {
    if (stop.signal.aborted) return;
    shown.error = error;
  }
  if (shown.page === page) redraw();
}

async function whoAmI() {
  try {
    const before = state.me?.version;
    state.me = await get('/v1/me');
    if (state.me) setNow(state.me.now);
    if (before && state.me && before !== state.me.version) tell(t('server.new', { version: state.me.version }), 'plain', { label: t('server.reload'), do: () => location.reload() });
    state.needsToken = false;
  } catch {
    // The page says what is wrong.
  }
}

/** Called when somebody has signed in. */
async function enter() {
  await whoAmI();
  await refresh();
}

/** @type {Page | undefined} */
let login;

function body() {
  if (state.needsToken) return login ? login.view() : null;
  if (!shown.route) return empty(t('nowhere'), t('nowhere.text'));
  if (shown.error && !shown.isThere) return failed(shown.error, () => refresh());
  if (!shown.page || !shown.isThere) return waiting(10);
  return shown.page.view();
}

function draw() {
  if (state.needsToken && !login) {
    import('./pages/login.js').then((file) => {
      login ??= file.default(enter);
      redraw();
    });
  }
  const title = shown.page && !state.needsToken ? shown.page.title() + ' · ' + TITLE : TITLE;
  if (document.title !== title) document.title = title;
  patch(root, [frame({ nav: shown.route?.nav || shown.route?.file || '', body: body(), search: search(searched), asOf: shown.isThere ? shown.asOf : 0 }), dialog()]);
}

/** Whether somebody is in the middle of something that must not move. */
function isDisturbing() {
  const { activeElement } = document;
  return Boolean(state.dialog) || document.querySelector('.table-frame:hover tbody, .menu[open], [data-begun], .bulk') !== null || Boolean(activeElement?.closest('.page :is(input:not([type=checkbox]), textarea, select)'));
}

/** Once a second the clock goes on; a page asks again when its time has come, somebody looks, and nothing is disturbed. */
function tick() {
  if (document.hidden) return;
  const pause = state.trouble || (shown.error && !shown.page) ? 3 : shown.page?.every ?? 0;
  const isTime = pause > 0 && Date.now() - shown.at >= pause * 1000 - 50;
  if (isTime && state.live && !state.needsToken && !isDisturbing()) refresh(true);
  redraw();
}

let isGoing = false;

/** @param {KeyboardEvent} event */
function press(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || state.dialog) return;
  if (event.key === 'Escape') target.blur();
  if (target.closest('input:not([type=checkbox]), textarea, select') || (event.key === ' ' && !target.closest('a'))) return;
  const goes = isGoing && NAVIGATION.find(([, key]) => key === event.key);
  isGoing = event.key === 'g' && !isGoing;
  if (goes) return go(addressOf(goes[0]));
  /** @type {Record<string, () => void>} */
  const acts = {
    '/': () => document.getElementById('search')?.focus(),
    '?': () => go(linkTo('help')),
    n: () => go(linkTo('new')),
    r: () => void refresh(),
    p: () => { state.live = !state.live; redraw(); },
    t: changeTheme,
    j: () => step(1),
    k: () => step(-1),
    u: undo,
    '.': () => /** @type {HTMLElement | null} */ (document.querySelector('.bulk button, .page .acts :is(button, a)'))?.focus(),
    ...shown.page?.keys,
  };
  const act = pressed(event.key) ?? acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

/** The button that a key stands for, if the page has one; or the box of the row. @param {string} key */
function pressed(key) {
  const row = document.activeElement?.closest('tbody tr');
  const box = key === 'x' || key === ' ' || key === 'e' ? row?.querySelector('input') : undefined;
  if (box && key === 'e') return () => extend(box);
  const button = /^[a-z]$/.test(key) ? document.querySelector(`.page [data-key="${key}"]`) : undefined;
  const found = /** @type {HTMLElement | null | undefined} */ (box ?? button);
  return found ? () => found.click() : undefined;
}

/** Selects all rows from the one that was picked last up to this one, as a click with Shift does. @param {HTMLInputElement} box */
function extend(box) {
  box.checked = false;
  box.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey: true }));
}

/** Undoes what was done last, for as long as that is offered. */
function undo() {
  const toast = state.toasts.findLast(({ act }) => act);
  if (!toast) return;
  dismiss(toast.id);
  toast.act?.do();
}

/** Goes to the next row, or the one before. @param {number} by */
function step(by) {
  const links = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('.page tbody a.name'))];
  const rows = links.filter((link, index) => index === 0 || link.closest('tr') !== links[index - 1].closest('tr'));
  const at = rows.findIndex((link) => link.closest('tr')?.contains(document.activeElement));
  rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

async function begin() {
  dress();
  drawBy(draw);
  refreshBy(refresh);
  await Promise.all([learn(), whoAmI()]);
  follow(arrive);
  addEventListener('keydown', press);
  document.addEventListener('visibilitychange', tick);
  setInterval(tick, 1000);
  await arrive();
  lookForSweeps();
  setInterval(() => {
    if (document.hidden || state.needsToken) return;
    lookForSweeps();
    // A server may have been replaced between two questions.
    whoAmI();
  }, 30_000);
}

begin();
