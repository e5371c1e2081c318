// Sweeps that are under way. They are asked for while there are some and somebody looks; when one ends that was begun here, it is said.

import { get } from '../api.js';
import { redraw, refresh, state, tell } from '../store.js';
import { t } from '../words.js';
import { count } from '../time.js';

/** What was promised of those that were begun here, and what to do in the end. @type {Map<string, { promised?: number, done?: () => void }>} */
const begun = new Map();

/** @param {any} sweep */
export const isRunning = (sweep) => sweep.state === 'running' || sweep.state === 'stopping';

/** @param {string} id */
export const latest = (id) => state.sweeps.find((sweep) => sweep.id === id);

/** @param {any[]} found */
function learn(found) {
  const ids = new Set(found.map(({ id }) => id));
  state.sweeps = [...found, ...state.sweeps.filter(({ id }) => !ids.has(id))];
  for (const sweep of found.filter((sweep) => !isRunning(sweep))) end(sweep);
  redraw();
}

/** @param {any} sweep */
function end(sweep) {
  const known = begun.get(sweep.id);
  if (!known) return;
  begun.delete(sweep.id);
  const isAsPromised = sweep.state !== 'stopped' && (known.promised === undefined || known.promised === sweep.changed);
  tell(t(sweep.state === 'stopped' ? 'act.halted' : 'act.swept', { n: count(sweep.changed), late: count(sweep.too_late) }), isAsPromised ? 'good' : 'warm');
  known.done?.();
  refresh();
}

/** Follows a sweep that was begun here. @param {any} sweep @param {number} [promised] @param {() => void} [done] */
export function begin(sweep, promised, done) {
  if (!begun.has(sweep.id)) begun.set(sweep.id, { promised, done });
  learn([sweep]);
  watch();
}

/** Asks which there are. */
export async function lookForSweeps() {
  try {
    learn((await get('/v1/sweeps')).sweeps.filter(isRunning));
    watch();
  } catch {
    // Whoever may not see them sees none.
  }
}

/** @type {number | undefined} */
let timer;

function watch() {
  const running = state.sweeps.filter(isRunning);
  if (timer || running.length === 0) return;
  timer = setTimeout(async () => {
    timer = undefined;
    if (!document.hidden) learn(await Promise.all(running.map((sweep) => get('/v1/sweeps/' + sweep.id).catch(() => sweep))));
    watch();
  }, 600);
}
