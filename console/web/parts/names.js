// All topics, or all queues: every page of the list, since people sort and filter over all of them.

import { get } from '../api.js';

/** More than these are not shown; a filter of the server's own is needed then. */
const MOST = 2_000;

/** @param {'topics' | 'queues'} what @param {AbortSignal} signal @returns {Promise<any[]>} */
export async function all(what, signal) {
  /** @type {any[]} */
  const found = [];
  /** @type {string | undefined} */
  let cursor;
  do {
    const page = await get('/v1/' + what, { limit: 1000, cursor }, signal);
    found.push(...page[what]);
    cursor = page.next ?? undefined;
  } while (cursor && found.length < MOST);
  return found;
}
