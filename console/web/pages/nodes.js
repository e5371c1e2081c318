// The nodes of the delay center, and which of them has which shard.

import { h } from '../render.js';
import { t } from '../words.js';
import { get } from '../api.js';
import { count } from '../time.js';
import { badge, heading, isolated, number, section, when } from '../parts/pieces.js';
import { Sorting, table } from '../parts/table.js';

export default function nodes() {
  /** @type {any[]} */
  let nodes = [];
  /** @type {any[]} */
  let shards = [];
  const [byName, byNumber] = [new Sorting('name'), new Sorting('shard')];
  return {
    every: 3,
    title: () => t('nav.nodes'),
    async load(/** @type {AbortSignal} */ signal) {
      const [found, owned] = await Promise.all([get('/v1/nodes', {}, signal), get('/v1/shards', {}, signal)]);
      nodes = found.nodes;
      shards = owned.shards;
    },
    view: () => [
      heading(t('nav.nodes'), { about: t('nodes.about', { n: count(nodes.length), shards: count(shards.length) }) }),
      section(t('nodes'), table({ label: t('nodes'), columns: nodeColumns(), rows: nodes, keyOf: (node) => node.name, sorting: byName })),
      section(t('shards'), table({ label: t('shards'), columns: shardColumns(), rows: shards, keyOf: (shard) => String(shard.shard), sorting: byNumber })),
    ],
  };
}

/** @returns {import('../parts/table.js').Column[]} */
function nodeColumns() {
  return [
    { key: 'name', label: t('node'), main: true, sort: (node) => node.name, cell: (node) => [isolated(node.name), node.is_this ? [' ', badge(t('node.this'), 'cool')] : null] },
    { key: 'state', label: t('state'), cell: (node) => (!node.is_there ? badge(t('node.gone'), 'bad') : node.is_draining ? badge(t('node.draining'), 'warm') : badge(t('node.there'), 'good')) },
    { key: 'shards', label: t('shards'), number: true, sort: (node) => node.shards, cell: (node) => number(node.shards) },
    { key: 'since', label: t('since'), cell: (node) => when(node.since) },
    { key: 'skew', label: t('skew'), number: true, cell: (node) => (node.skew_ms === null || node.skew_ms === undefined ? h('span', { class: 'none' }, '–') : `${count(node.skew_ms)} ms`) },
    { key: 'version', label: t('version'), cell: (node) => node.version ?? '–' },
    { key: 'url', label: t('address'), cell: (node) => (node.url ? isolated(node.url) : h('span', { class: 'none' }, '–')) },
  ];
}

/** @returns {import('../parts/table.js').Column[]} */
function shardColumns() {
  return [
    { key: 'shard', label: t('shard'), main: true, sort: (shard) => shard.shard, cell: (shard) => String(shard.shard) },
    { key: 'node', label: t('node'), cell: (shard) => (shard.node ? isolated(shard.node) : badge(t('shard.nobody'), 'bad')) },
    { key: 'pinned', label: t('pinned'), cell: (shard) => (shard.pinned_to ? isolated(shard.pinned_to) : h('span', { class: 'none' }, '–')) },
    { key: 'fence', label: t('fence'), number: true, cell: (shard) => number(shard.fence) },
  ];
}
