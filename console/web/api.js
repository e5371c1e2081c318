// What is asked of the server: the public API, and nothing else. Every request can also be shown as a command.

import { redraw, state, token } from './store.js';
import { pathTo } from './router.js';

/**
 * A request that is not sent yet.
 * @typedef {{ method: string, path: string, query?: Record<string, any>, body?: any, content?: string, match?: string }} Asked `content` is JSON as
 *   people wrote it, for the member `body`: numbers in it may be larger than those of a browser. `match` is the version that settings must have.
 */

/** What the server refused, or that it was not reached. */
export class Trouble extends Error {
  /** @param {string} code @param {number} status @param {string} detail @param {any} [problem] */
  constructor(code, status, detail, problem) {
    super(detail);
    this.code = code;
    this.status = status;
    this.problem = problem;
  }
}

/** @param {Asked} asked */
export function addressOf({ path, query = {} }) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return path + (search ? '?' + search : '');
}

/** The body of a request. @param {Asked} asked */
export function textOf({ body, content }) {
  const text = JSON.stringify(body);
  return content === undefined ? text : `${text.slice(0, -1)},"body":${content.trim()}}`;
}

/**
 * Sends a request and gives the answer.
 * @param {Asked} asked @param {{ signal?: AbortSignal, text?: boolean }} [how]
 * @returns {Promise<any>}
 */
export async function send(asked, how = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  const secret = token();
  if (secret) headers.authorization = 'Bearer ' + secret;
  if (asked.body !== undefined) headers['content-type'] = 'application/json';
  // Who acts by hand is told apart from programs with the same token.
  if (asked.method !== 'GET' && /^[\x21-\x7e]{1,128}$/.test(state.me?.name ?? '')) headers['punctual-by'] = state.me?.name ?? '';
  if (asked.match) headers['if-match'] = `"${asked.match}"`;
  const body = asked.body === undefined ? undefined : textOf(asked);
  let answer;
  try {
    answer = await fetch(addressOf(asked), { method: asked.method, headers, body, signal: how.signal, cache: 'no-store' });
  } catch (error) {
    if (how.signal?.aborted) throw error;
    trouble('unreachable');
    throw new Trouble('unreachable', 0, String(error));
  }
  if (answer.ok) {
    trouble(undefined);
    if (answer.status === 204) return undefined;
    const text = await answer.text();
    return how.text ? text : JSON.parse(text);
  }
  const problem = await answer.json().catch(() => undefined);
  const code = problem?.code ?? 'unreachable';
  if (answer.status === 401 && !state.needsToken) {
    state.needsToken = true;
    redraw();
  }
  if (answer.status === 503 && code !== 'outcome-unknown') trouble(code);
  throw new Trouble(code, answer.status, problem?.detail ?? answer.statusText, problem);
}

/** @param {string | undefined} code */
function trouble(code) {
  if (state.trouble === code) return;
  state.trouble = code;
  redraw();
}

/** @param {string} path @param {Record<string, any>} [query] @param {AbortSignal} [signal] */
export const get = (path, query, signal) => send({ method: 'GET', path, query }, { signal });

/** Where a task is. @param {string} topic @param {string} id @param {string} [act] */
export const taskPath = (topic, id, act) => pathTo('/v1/tasks', topic, id) + (act ? '/' + act : '');
/** @param {string} topic @param {string} [act] */
export const topicPath = (topic, act) => pathTo('/v1/topics', topic) + (act ? '/' + act : '');
/** @param {string} queue @param {string} [act] */
export const queuePath = (queue, act) => pathTo('/v1/queues', queue) + (act ? '/' + act : '');
/** @param {string} key */
export const keyPath = (key) => pathTo('/v1/keys', key);

/** A word as a shell reads it. @param {string} word */
export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}

/** The request as people type it. The token is named, not shown. @param {Asked} asked */
export function asCurl(asked) {
  const words = ['curl', '-s'];
  if (asked.method !== 'GET') words.push('-X', asked.method);
  if (token()) words.push('-H', '"authorization: Bearer $PUNCTUAL_TOKEN"');
  if (asked.match) words.push('-H', quoted(`If-Match: "${asked.match}"`));
  if (asked.body !== undefined) words.push('--json', quoted(textOf(asked)));
  words.push(quoted(location.origin + addressOf(asked)));
  return words.join(' ');
}

/** Words of the command line. @param {...string} words */
export function asCommand(...words) {
  const url = location.origin.endsWith(':7400') && location.hostname === '127.0.0.1' ? [] : ['--url', location.origin];
  return ['punctual', ...url, ...words].map(quoted).join(' ');
}
