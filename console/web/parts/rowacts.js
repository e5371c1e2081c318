// What can be done to the rows of a list: to one, and to many.

import { h } from '../render.js';
import { t } from '../words.js';
import { may, refresh } from '../store.js';
import { purge, replay } from './acts.js';

/** Acts on dead letters, for whoever may. @returns {((task: any) => any) | undefined} */
export function deadActs() {
  if (!may('operate')) return undefined;
  return (task) => h('div', { class: 'row-acts' },
    h('button', { class: 'button small', onclick: () => replay(task.topic, task.id, task.queue ?? undefined, 'dead', refresh) }, t('replay')),
    h('button', { class: 'button small quiet', onclick: () => purge(task.topic, task.id, task.queue ?? undefined, refresh) }, t('purge')));
}

/**
 * Acts on many rows, for whoever may.
 * @param {'live' | 'dead' | 'finished' | 'scheduled' | 'ready'} state @param {Record<string, any>} [all] what selects all that match @param {() => void} [done]
 * @returns {import('./selection.js').Bulk | undefined}
 */
export function bulk(state, all, done = refresh) {
  if (!may('operate')) return undefined;
  return { state, all, done, acts: state === 'dead' ? ['replay', 'purge'] : state === 'finished' ? ['replay'] : state === 'ready' ? ['cancel', 'move', 'spread'] : ['cancel', 'move', 'spread', 'hasten'] };
}
