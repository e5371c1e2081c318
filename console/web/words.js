// The console's texts, in the chosen language. Both dictionaries have the same keys.

import { preference } from './store.js';

/** @type {Record<string, string>} */
let dictionary = {};

export const LANGUAGES = ['en', 'zh'];

/** The chosen language, or the browser's if the console speaks it. */
export function language() {
  const wanted = new URLSearchParams(location.search).get('lang') ?? preference('language') ?? navigator.language;
  return LANGUAGES.find((known) => wanted.toLowerCase().startsWith(known)) ?? 'en';
}

/** Fetches the words of the chosen language. */
export async function learn() {
  const words = await (language() === 'zh' ? import('./i18n/zh.js') : import('./i18n/en.js'));
  dictionary = words.default;
  document.documentElement.lang = language() === 'zh' ? 'zh-CN' : 'en';
}

/**
 * A text. `{name}` stands for a value; with `n` among them, a key may have forms for one and for other numbers.
 * @param {string} key @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  let text = dictionary[key];
  if (text === undefined && 'n' in values) {
    const form = new Intl.PluralRules(language()).select(Number(String(values.n).replace(/\D/g, '')));
    text = dictionary[`${key}.${form}`] ?? dictionary[`${key}.other`];
  }
  if (text === undefined) return key;
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ''));
}

/** Whether there is such a text. @param {string} key */
export const has = (key) => key in dictionary;
