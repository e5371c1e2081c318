// Dead letters as lines of JSON, to keep before they are purged. They are read page by page, and each stands in the file
// as the server wrote it: numbers stay exact, and `punctual import --state dead` reads them.

import { h } from '../render.js';
import { t } from '../words.js';
import { send } from '../api.js';
import { count } from '../time.js';
import { redraw, state } from '../store.js';
import { rawItems, rawMember } from './body.js';

const PAGE = 500;
/** How many pages are read at most. */
const PAGES = 2_000;
/** What one file may hold, in bytes: a browser has to. */
const LARGEST = 256 << 20;

/** Gives a file to whoever looks. @param {Blob} file @param {string} name */
export function save(file, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name.replace(/[^\w.-]+/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export class Download {
  /** @param {Record<string, any>} select what a sweep would take @param {number} [largest] */
  constructor({ ids, state: _, ...query }, largest = LARGEST) {
    this.ids = ids ? new Set(ids) : undefined;
    this.query = query;
    this.largest = largest;
    this.written = 0;
    /** @type {'' | 'busy' | 'done' | 'cut' | 'failed'} */
    this.state = '';
  }

  /** Reads them all, unless the dialog is left meanwhile. */
  async begin() {
    const { dialog } = state;
    Object.assign(this, { state: 'busy', written: 0 });
    redraw();
    try {
      let file = new Blob([], { type: 'application/jsonl' });
      /** @type {string | undefined} */
      let cursor;
      let isMore = true;
      for (let pages = 0; isMore && pages < PAGES && file.size < this.largest; pages++) {
        const text = await send({ method: 'GET', path: '/v1/dead', query: { ...this.query, bodies: true, limit: PAGE, cursor } }, { text: true });
        if (state.dialog !== dialog) return;
        const { tasks, next } = JSON.parse(text);
        const lines = rawItems(rawMember(text, 'tasks') ?? '[]').filter((_, at) => !this.ids || this.ids.has(tasks[at].id));
        // What was read before lies with the browser, not in the memory of the page.
        file = new Blob([file, ...lines.map((line) => line + '\n')], { type: file.type });
        this.written += lines.length;
        cursor = next ?? undefined;
        // In one queue, an id stands once.
        isMore = cursor !== undefined && !(this.ids && this.query.queue && this.written === this.ids.size);
        redraw();
      }
      save(file, `dead-${this.query.topic ?? this.query.queue ?? 'letters'}.jsonl`);
      this.state = isMore ? 'cut' : 'done';
    } catch {
      this.state = 'failed';
    }
    redraw();
  }

  view() {
    return h('p', { class: 'keep' },
      h('button', { class: 'button small', type: 'button', disabled: this.state === 'busy', onclick: () => this.begin() }, t('keep')),
      h('span', { class: this.state === 'cut' || this.state === 'failed' ? 'warm' : 'soft', role: 'status' }, this.state ? t(`keep.${this.state}`, { n: count(this.written) }) : t('keep.hint')));
  }
}
