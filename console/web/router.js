// Which page an address means, and how to get to another one. Names in addresses are percent-encoded segments.

import { redraw } from './store.js';

export const PLACE = '/console/';

/**
 * Every page: its address, the file that draws it, and where it stands in the navigation.
 * @type {{ path: string, file: string, nav: string }[]}
 */
export const PAGES = [
  { path: '', file: 'overview', nav: 'overview' },
  { path: 'future', file: 'future', nav: 'future' },
  { path: 'topics', file: 'topics', nav: 'topics' },
  { path: 'topics/:topic', file: 'topic', nav: 'topics' },
  { path: 'queues', file: 'queues', nav: 'queues' },
  { path: 'queues/:queue', file: 'queue', nav: 'queues' },
  { path: 'tasks', file: 'tasks', nav: 'tasks' },
  { path: 'tasks/:topic/:id', file: 'task', nav: 'tasks' },
  { path: 'n/:number', file: 'task', nav: 'tasks' },
  { path: 'keys/:key', file: 'key', nav: 'tasks' },
  { path: 'dead', file: 'dead', nav: 'dead' },
  { path: 'consumers', file: 'consumers', nav: 'consumers' },
  { path: 'sweeps', file: 'sweeps', nav: 'sweeps' },
  { path: 'sweeps/:id', file: 'sweeps', nav: 'sweeps' },
  { path: 'audit', file: 'audit', nav: 'audit' },
  { path: 'nodes', file: 'nodes', nav: 'nodes' },
  { path: 'server', file: 'server', nav: 'server' },
  { path: 'new', file: 'new', nav: 'tasks' },
  { path: 'find', file: 'find', nav: '' },
  { path: 'help', file: 'help', nav: '' },
];

/**
 * @typedef {{ file: string, nav: string, names: Record<string, string>, query: URLSearchParams, path: string }} Route
 */

/**
 * The page at a path behind PLACE, if there is one.
 * @param {string} path @param {string} [query]
 * @returns {Route | undefined}
 */
export function match(path, query = '') {
  const segments = path.split('/');
  for (const page of PAGES) {
    const wanted = page.path.split('/');
    if (wanted.length !== segments.length) continue;
    /** @type {Record<string, string>} */
    const names = {};
    const fits = wanted.every((word, index) => {
      if (!word.startsWith(':')) return word === segments[index];
      const name = decoded(segments[index]);
      if (name === undefined) return false;
      names[word.slice(1)] = name;
      return true;
    });
    if (fits) return { file: page.file, nav: page.nav, names, query: new URLSearchParams(query), path };
  }
  return undefined;
}

/** A segment as the name that it stands for. @param {string} segment */
function decoded(segment) {
  try {
    const name = decodeURIComponent(segment);
    return isName(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a name can stand in a path: `.` and `..` would lead elsewhere, however they are written. @param {string} name */
export function isName(name) {
  return name !== '' && name !== '.' && name !== '..';
}

/**
 * A path of segments below a root, each encoded.
 * @param {string} root @param {...(string | number)} names
 */
export function pathTo(root, ...names) {
  for (const name of names) if (!isName(String(name))) throw new Error(`not a name: ${name}`);
  return root + names.map((name) => '/' + encodeURIComponent(name)).join('');
}

/**
 * The address of a page. What is undefined is left out; what is empty is not: a note may be.
 * @param {string} page @param {(string | number)[]} [names] @param {Record<string, string | number | undefined>} [query]
 */
export function linkTo(page, names = [], query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return pathTo(PLACE + page, ...names) + (search ? '?' + search : '');
}

/** @returns {Route | undefined} */
export function here() {
  const { pathname, search } = location;
  return match(pathname.startsWith(PLACE) ? pathname.slice(PLACE.length) : '', search);
}

/** @type {() => void} */
let arrived = () => {};

/** Goes to an address of the console. @param {string} href @param {boolean} [replace] */
export function go(href, replace = false) {
  if (replace) history.replaceState(null, '', href);
  else history.pushState(null, '', href);
  arrived();
}

/** Changes the query of this page; what is undefined goes. @param {Record<string, string | undefined>} changes */
export function ask(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name);
    else query.set(name, value);
  }
  const search = query.toString();
  history.replaceState(null, '', location.pathname + (search ? '?' + search : ''));
  redraw();
}

/** Follows links within the console without loading it again. @param {() => void} onArrival */
export function follow(onArrival) {
  arrived = onArrival;
  addEventListener('popstate', onArrival);
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
    const href = link?.getAttribute('href');
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!href || !plain || event.defaultPrevented || !href.startsWith(PLACE) || link?.hasAttribute('download')) return;
    event.preventDefault();
    go(href);
  });
}
