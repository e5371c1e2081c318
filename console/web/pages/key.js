// All tasks of one key, in every state.

import { h } from '../render.js';
import { t } from '../words.js';
import { keyPath } from '../api.js';
import { may, refresh } from '../store.js';
import { changeKey } from '../parts/acts.js';
import { sweep } from '../parts/sweep.js';
import { heading, isolated, section } from '../parts/pieces.js';
import { none, TaskList } from '../parts/tasklist.js';

/** @param {import('../router.js').Route} route */
export default function key({ names: { key } }) {
  const list = new TaskList();
  // A sweep can be undone; whoever may not begin one changes the key itself.
  const act = (/** @type {'move' | 'cancel'} */ act) => (may('operate') ? sweep({ act, select: { key }, done: refresh }) : changeKey(act, key, refresh));
  return {
    every: 5,
    title: () => key,
    load: (/** @type {AbortSignal} */ signal, /** @type {boolean} */ isTick) => list.load(keyPath(key), {}, signal, isTick),
    view: () => [
      heading(isolated(key), { above: t('key'), about: t('key.about'), acts: may('operate') || may('produce') ? [
        h('button', { class: 'button', 'data-key': 'm', onclick: () => act('move') }, t('move.dots')),
        h('button', { class: 'button', 'data-key': 'c', onclick: () => act('cancel') }, t('cancel.dots')),
      ] : null }),
      section(t('key.list'), list.view({ label: t('nav.tasks'), columns: ['due', 'topic', 'id', 'queue', 'state', 'attempts'], none: none(t('key.none'), t('key.none.text')) })),
    ],
  };
}
