// Times and numbers as people read them. The server's clock is the truth; the browser's differs from it by `state.skew`.

import { state, preference } from './store.js';
import { language } from './words.js';

/** The server's time, in milliseconds. */
export function now() {
  return Date.now() + state.skew;
}

/** Learns how far this clock is off, from what the server says. @param {string | number} serverTime */
export function setNow(serverTime) {
  const skew = instant(serverTime) - Date.now();
  // An answer takes some time to come; what it took is no skew.
  if (Math.abs(skew - state.skew) > 300) state.skew = skew;
}

/** A time of the API: RFC 3339, or milliseconds beyond the year 9999. @param {string | number} time */
export function instant(time) {
  return typeof time === 'number' ? time : Date.parse(time);
}

/** The browser's own time zone. */
const OWN = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The time zone that times are shown in. */
export function zone() {
  const chosen = new URLSearchParams(location.search).get('tz') ?? preference('zone');
  return chosen && isZone(chosen) ? chosen : OWN;
}

/** @param {string} name */
export function isZone(name) {
  return name === OWN || kept('zone ' + name, () => {
    try {
      return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }));
    } catch {
      return false;
    }
  });
}

/** @type {Map<string, any>} */
const formats = new Map();

/** What was made once for a purpose: making a format takes longer than to use it a hundred times. @template T @param {string} key @param {() => T} make @returns {T} */
function kept(key, make) {
  if (!formats.has(key)) formats.set(key, make());
  return formats.get(key);
}

/** @param {Intl.DateTimeFormatOptions} options */
function format(options) {
  const [spoken, place] = [language(), zone()];
  return kept(`time ${spoken} ${place} ${JSON.stringify(options)}`, () => new Intl.DateTimeFormat(spoken, { timeZone: place, hourCycle: 'h23', ...options }));
}

/** @type {Intl.DateTimeFormatOptions} */
const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit' };
/** @type {Intl.DateTimeFormatOptions} */
const DAY = { year: 'numeric', month: '2-digit', day: '2-digit' };

/** The date as numbers, alike in every language: 2026-11-16. @param {number} at */
export function day(at) {
  const parts = Object.fromEntries(format(DAY).formatToParts(at).map(({ type, value }) => [type, value]));
  return `${parts.year}-${parts.month}-${parts.day}`;
}

/** The time of day. @param {number} at @param {boolean} [exact] to the millisecond */
export function clock(at, exact = false) {
  return format(exact ? { ...CLOCK, fractionalSecondDigits: 3 } : CLOCK).format(at);
}

/** The hour and minute. @param {number} at */
export function minute(at) {
  return format({ hour: '2-digit', minute: '2-digit' }).format(at);
}

/** What a slot of this length is called. @param {number} at @param {number} length */
export function slotName(at, length) {
  if (length < 3_600_000) return day(at) === day(now()) ? minute(at) : `${day(at).slice(5)} ${minute(at)}`;
  return length < 86_400_000 ? `${day(at).slice(5)} ${minute(at)}` : day(at);
}

/** The day and the time; today's day goes without saying. @param {string | number} time @param {boolean} [exact] */
export function absolute(time, exact = false) {
  const at = instant(time);
  if (!Number.isFinite(at) || at > 8.64e15) return String(time);
  return day(at) === day(now()) && !exact ? clock(at) : `${day(at)} ${clock(at, exact)}`;
}

/** ISO 8601 in the chosen zone, with its offset, for whoever looks closely. @param {string | number} time */
export function iso(time) {
  const at = instant(time);
  if (!Number.isFinite(at) || at > 8.64e15) return String(time);
  const place = zone();
  const name = kept('offset ' + place, () => new Intl.DateTimeFormat('en', { timeZone: place, timeZoneName: 'longOffset' })).formatToParts(at);
  const offset = name.find(({ type }) => type === 'timeZoneName')?.value.replace('GMT', '') || 'Z';
  return `${day(at)}T${clock(at, true).replace(',', '.')}${offset}`;
}

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [['year', 31_557_600], ['month', 2_629_800], ['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1]];

/** How far away: in 3 min, 2 hr ago. @param {string | number} time */
export function relative(time) {
  const seconds = (instant(time) - now()) / 1000;
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length * 0.95) ?? ['second', 1];
  const spoken = language();
  return kept('far ' + spoken, () => new Intl.RelativeTimeFormat(spoken, { style: 'short', numeric: 'auto' })).format(Math.round(seconds / length), unit);
}

/** @param {Intl.NumberFormatOptions} [options] */
function numeral(options = {}) {
  const spoken = language();
  return kept(`number ${spoken} ${JSON.stringify(options)}`, () => new Intl.NumberFormat(spoken, options));
}

/** A whole number, with the language's separators. @param {number | bigint} number */
export function count(number) {
  return numeral().format(number);
}

/** A large number in few characters: 12K. @param {number} number */
export function brief(number) {
  return numeral({ notation: 'compact', maximumFractionDigits: 1 }).format(number);
}

/** A rate. @param {number} perSecond */
export function rate(perSecond) {
  const digits = perSecond < 10 ? 1 : 0;
  return numeral({ maximumFractionDigits: digits }).format(perSecond) + '/s';
}

/** A length of time in microseconds, as it was measured. @param {number} micros */
export function micros(micros) {
  if (micros < 1_000) return `${micros} µs`;
  const show = (/** @type {number} */ value) => numeral({ maximumSignificantDigits: 3 }).format(value);
  if (micros < 1_000_000) return `${show(micros / 1_000)} ms`;
  return micros < 120_000_000 ? `${show(micros / 1_000_000)} s` : span(micros / 1_000);
}

/** The milliseconds of a length of time as the server writes it: `1h30m`. @param {string} text */
export function lengthOf(text) {
  /** @type {Record<string, number>} */
  const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
  return [...text.matchAll(/(\d+)(ms|[smhdw])/g)].reduce((sum, [, number, unit]) => sum + Number(number) * units[unit], 0);
}

/** A length of time in milliseconds: 1 h 30 m. @param {number} millis */
export function span(millis) {
  const seconds = Math.round(millis / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} m ${seconds % 60 ? (seconds % 60) + ' s' : ''}`.trim();
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60) || ''}${Math.floor((seconds % 3600) / 60) ? ' m' : ''}`.trim();
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600) || ''}${Math.floor((seconds % 86_400) / 3600) ? ' h' : ''}`.trim();
}

/** A number of bytes. @param {number} bytes */
export function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes > 0 ? Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10)) : 0;
  return numeral({ maximumFractionDigits: 1 }).format(bytes / 1024 ** power) + ' ' + units[power];
}
