// Bars and strips over time, drawn as SVG. Slots are chosen by a click, and several by dragging.

import { h } from '../render.js';
import { brief, count } from '../time.js';

/** @typedef {{ value: number, label: string, mark?: boolean }} Bar */

/** Which of so many slots an event is over. @param {PointerEvent} event @param {number} many */
function slotOf(event, many) {
  const { left, width } = /** @type {Element} */ (event.currentTarget).getBoundingClientRect();
  return Math.max(0, Math.min(many - 1, Math.floor(((event.clientX - left) / width) * many)));
}

/**
 * What a pointer does over slots: a click chooses one, dragging several.
 * @param {number} many @param {(at: number) => void} [select] @param {(first: number, last: number, isOver: boolean) => void} [over]
 */
function pointing(many, select, over) {
  if (!select) return {};
  const begun = (/** @type {any} */ event) => Number(event.currentTarget.dataset.begun ?? -1);
  return {
    onpointerdown: (/** @type {any} */ event) => {
      if (event.button) return;
      event.currentTarget.dataset.begun = slotOf(event, many);
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onpointermove: (/** @type {any} */ event) => {
      if (over && begun(event) >= 0 && slotOf(event, many) !== begun(event)) over(begun(event), slotOf(event, many), false);
    },
    onpointerup: (/** @type {any} */ event) => {
      const [first, last] = [begun(event), slotOf(event, many)];
      delete event.currentTarget.dataset.begun;
      if (first < 0) return;
      if (first === last || !over) select(last);
      else over(first, last, true);
    },
  };
}

/**
 * @param {{ label: string, bars: Bar[], height?: number, axis: (index: number) => string | undefined, chosen?: number, brush?: { first: number, last: number },
 *   select?: (at: number) => void, over?: (first: number, last: number, isOver: boolean) => void }} how
 */
export function bars({ label, bars, height = 150, axis, chosen, brush, select, over }) {
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  const top = nice(most);
  const width = 1000 / Math.max(1, bars.length);
  return h('div', { class: 'chart' },
    h('div', { class: 'chart-scale', 'aria-hidden': 'true' }, h('span', null, brief(top)), h('span', null, brief(top / 2)), h('span', null, '0')),
    h('div', { class: 'chart-body' },
      h('svg', { viewBox: `0 0 1000 ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label, class: 'chart-svg' + (over ? ' brushed' : ''), style: { height: `${height}px` }, ...pointing(bars.length, select, over) },
        [0, 0.5].map((part) => h('line', { x1: 0, x2: 1000, y1: 0.5 + part * height, y2: 0.5 + part * height, class: 'chart-line' })),
        brush ? h('rect', { x: brush.first * width, y: 0, width: (brush.last - brush.first + 1) * width, height, class: 'chart-brush' }) : null,
        bars.map((bar, index) => {
          const tall = bar.value ? Math.max(2, (bar.value / top) * (height - 2)) : 0;
          return h('g', null, h('rect', { x: index * width, y: 0, width, height, class: 'chart-slot' + (index === chosen ? ' chosen' : '') }, h('title', null, `${bar.label}: ${count(bar.value)}`)),
            h('rect', { x: index * width + width * 0.12, y: height - tall, width: width * 0.76, height: tall, class: bar.mark ? 'chart-bar mark' : 'chart-bar' }));
        })),
      h('div', { class: 'chart-axis', 'aria-hidden': 'true' }, bars.map((_, index) => {
        const text = axis(index);
        return text === undefined ? null : h('span', { style: { left: `${(index / bars.length) * 100}%` } }, text);
      }))));
}

/** The next round number. @param {number} most */
export function nice(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 4, 5, 8, 10].find((step) => step * power >= most) ?? 10;
  return Math.max(2, step * power);
}

/** The slots that stand out: more than ten times what is usual, and many. @param {number[]} values @param {number} [many] */
export function herds(values, many = 100) {
  const filled = values.filter((value) => value > 0).sort((a, b) => a - b);
  const usual = filled[Math.floor(filled.length / 2)] ?? 0;
  return values.map((value) => value >= many && filled.length > 2 && value > usual * 10);
}

/** A line without numbers: how it went. What is not known is a gap. @param {(number | null)[]} values */
export function spark(values) {
  const most = Math.max(1, ...values.map((value) => value ?? 0));
  const points = values.map((value, at) => (value === null ? '' : `${(at / Math.max(1, values.length - 1)) * 100},${19 - (value / most) * 17}`)).filter(Boolean).join(' ');
  return h('svg', { class: 'spark', viewBox: '0 0 100 20', preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false' }, h('polyline', { points, fill: 'none' }));
}

/** A row of slots: the darker, the more. @param {number[]} values @param {number} most @param {{ label: string }[]} slots @param {number} [chosen] @param {(at: number) => void} [select] */
export function strip(values, most, slots, chosen, select) {
  return h('svg', { class: 'strip-svg', viewBox: `0 0 ${slots.length} 1`, preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false', ...pointing(slots.length, select) },
    chosen === undefined ? null : h('rect', { x: chosen, y: 0, width: 1, height: 1, class: 'chart-brush' }),
    values.map((value, index) => (value === 0 ? null
      : h('rect', { x: index, y: 0, width: 0.9, height: 1, class: 'chart-bar', style: { opacity: 0.25 + 0.75 * (Math.log1p(value) / Math.log1p(most)) } }, h('title', null, `${slots[index]?.label}: ${count(value)}`)))));
}
