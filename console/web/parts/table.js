// Tables: rows that keep their place while numbers change, sorted by a column if wanted. On a phone each row is a card.

import { h } from '../render.js';
import { t } from '../words.js';
import { sign } from './pieces.js';
import { redraw } from '../store.js';

/**
 * @typedef {import('../render.js').Child} Child
 * @typedef {{ key: string, label: string, head?: Child, cell: (row: any) => Child, sort?: (row: any) => string | number, number?: boolean, main?: boolean, wide?: boolean }} Column
 */

/** How a table is sorted, and the order of its rows: those stay where they are until people sort them again. */
export class Sorting {
  /** @param {string} column @param {boolean} [down] */
  constructor(column, down = false) {
    this.column = column;
    this.down = down;
    /** @type {Map<string, number>} */
    this.places = new Map();
  }

  /** @param {string} column @param {boolean} isNumber */
  by(column, isNumber) {
    this.down = this.column === column ? !this.down : isNumber;
    this.column = column;
    this.places.clear();
    redraw();
  }

  /**
   * The rows in order. Those that were there before keep their place; new ones stand where they belong at the end.
   * @template T @param {T[]} rows @param {Column[]} columns @param {(row: T) => string} keyOf
   * @returns {T[]}
   */
  sorted(rows, columns, keyOf) {
    const sort = columns.find((column) => column.key === this.column)?.sort;
    const place = (/** @type {T} */ row) => this.places.get(keyOf(row)) ?? Infinity;
    const ordered = [...rows].sort((one, other) => {
      const [first, second] = [place(one), place(other)];
      if (first !== second) return first < second ? -1 : 1;
      if (!sort) return 0;
      const [a, b] = [sort(one), sort(other)];
      const order = typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b));
      return this.down ? -order : order;
    });
    ordered.forEach((row, index) => this.places.set(keyOf(row), index));
    return ordered;
  }
}

/**
 * @param {{ label: string, columns: Column[], rows: any[], keyOf: (row: any) => string, sorting?: Sorting,
 *   selected?: Set<string>, select?: (key: string, on: boolean, range: boolean) => void, quiet?: (row: any) => boolean }} how
 */
export function table({ label, columns, rows, keyOf, sorting, selected, select, quiet }) {
  const shown = sorting ? sorting.sorted(rows, columns, keyOf) : rows;
  return h('div', { class: 'table-frame', tabindex: '0', role: 'region', 'aria-label': label },
    h('table', { class: 'table' },
      h('caption', { class: 'unseen' }, label),
      h('thead', null, h('tr', null, select ? h('th', { scope: 'col', class: 'tick' }, h('span', { class: 'unseen' }, t('select'))) : null,
        columns.map((column) => head(column, sorting)))),
      h('tbody', null, shown.map((row) => line(row, keyOf(row), columns, selected, select, quiet)))));
}

/** @param {Column} column @param {Sorting | undefined} sorting */
function head(column, sorting) {
  const isNow = sorting?.column === column.key;
  const order = isNow ? (sorting?.down ? 'descending' : 'ascending') : undefined;
  const kind = `${column.number ? 'right' : ''} ${column.wide ? 'wide' : ''}`.trim() || undefined;
  const inside = sorting && column.sort
    ? h('button', { type: 'button', class: 'sort', onclick: () => sorting.by(column.key, Boolean(column.number)) }, column.label,
      h('span', { class: 'sort-sign' }, isNow ? sign(sorting.down ? 'down' : 'up') : null))
    : column.head ?? column.label;
  return h('th', { key: column.key, scope: 'col', class: kind, 'aria-sort': order }, inside);
}

/**
 * @param {any} row @param {string} key @param {Column[]} columns @param {Set<string>} [selected]
 * @param {(key: string, on: boolean, range: boolean) => void} [select] @param {(row: any) => boolean} [quiet]
 */
function line(row, key, columns, selected, select, quiet) {
  return h('tr', { key, 'data-row': key, class: (selected?.has(key) ? 'chosen ' : '') + (quiet?.(row) ? 'quiet' : '') || undefined },
    select ? h('td', { class: 'tick' }, h('input', { type: 'checkbox', 'aria-label': t('select.row', { name: key }), checked: selected?.has(key) ?? false,
      onclick: (/** @type {any} */ event) => select(key, event.target.checked, event.shiftKey) })) : null,
    columns.map((column) => h(column.main ? 'th' : 'td', { key: column.key, scope: column.main ? 'row' : undefined, 'data-label': column.label,
      class: `${column.number ? 'right' : ''} ${column.main ? 'main' : ''} ${column.wide ? 'wide' : ''}`.trim() || undefined }, column.cell(row), column.main && quiet?.(row) ? h('span', { class: 'unseen' }, ' ', t('list.left')) : null)));
}
