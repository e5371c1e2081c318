// What was typed into the search, and what it leads to.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { here } from '../router.js';
import { badge, empty, heading, isolated, name, section, standing, when } from '../parts/pieces.js';

export default function find() {
  /** @type {import('punctual-api').components['schemas']['Found']} */
  let found = { hits: [], is_complete: true };
  const wanted = () => here()?.query.get('q')?.trim() ?? '';
  return {
    title: () => t('search'),
    async load(/** @type {AbortSignal} */ signal) {
      const q = wanted();
      found = q ? await get('/v1/find', { q }, signal) : { hits: [], is_complete: true };
    },
    view: () => [
      heading(t('search'), { about: isolated(wanted()) }),
      section(t('found'), found.hits.length === 0 ? empty(t('found.none'), t('found.none.text')) : [
        h('ul', { class: 'deliveries' }, found.hits.map((hit, index) => h('li', { key: index }, badge(t(hit.kind), 'plain'), ' ', link(hit)))),
        found.is_complete ? null : h('p', { class: 'more soft' }, t('found.cut')),
      ]),
    ],
  };
}

/** @param {import('punctual-api').components['schemas']['Hit']} hit */
function link(hit) {
  switch (hit.kind) {
    case 'task': return [name.topic(hit.topic), ' / ', name.task(hit.topic, hit.id), ' ', standing(hit.standing), ' ', when(hit.due)];
    case 'key': return name.key(hit.key);
    case 'topic': return name.topic(hit.name);
    default: return name.queue(hit.name);
  }
}
