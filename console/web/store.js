// What the whole console knows: who is there, what they like, what was said to them. A change asks for a redraw, and
// one redraw shows all changes of a moment.

/**
 * @typedef {import('punctual-api').components['schemas']['Me']} Me
 * @typedef {{ id: number, text: string, tone: 'good' | 'bad' | 'plain' | 'warm', act?: { label: string, do: () => void }, same?: { curl: string, command: string } }} Toast
 */

/** @type {{
 *   me: Me | undefined, needsToken: boolean, trouble: string | undefined, skew: number, live: boolean,
 *   toasts: Toast[], dialog: any, sweeps: any[] }} */
export const state = {
  me: undefined,
  needsToken: false,
  trouble: undefined,
  skew: 0,
  live: true,
  toasts: [],
  dialog: undefined,
  sweeps: [],
};

let draw = () => {};
let wanted = false;

/** Says what draws. @param {() => void} how */
export function drawBy(how) {
  draw = how;
}

/** Asks for everything to be shown as it is now. */
export function redraw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    draw();
  });
}

let ask = async () => {};

/** Says what asks for the page's content. @param {() => Promise<void>} how */
export function refreshBy(how) {
  ask = how;
}

/** Asks the server again for what is shown. */
export function refresh() {
  void ask();
}

let toasts = 0;

/**
 * Tells something that needs no answer; `same` is what was done, as commands.
 * @param {string} text @param {Toast['tone']} [tone] @param {Toast['act']} [act] @param {Toast['same']} [same]
 */
export function tell(text, tone = 'plain', act, same) {
  const toast = { id: ++toasts, text, tone, act, same };
  state.toasts = [...state.toasts.slice(-2), toast];
  setTimeout(() => dismiss(toast.id), act ? 30_000 : 8_000);
  redraw();
}

/** @param {number} id */
export function dismiss(id) {
  state.toasts = state.toasts.filter((toast) => toast.id !== id);
  redraw();
}

const TOKEN = 'punctual.token';

/** The token lives as long as the tab. @returns {string | null} */
export function token() {
  return sessionStorage.getItem(TOKEN);
}

/** @param {string | null} value */
export function keepToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

/** A preference, kept in this browser. @param {'theme' | 'language' | 'zone'} name */
export function preference(name) {
  try {
    return localStorage.getItem('punctual.' + name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param {'theme' | 'language' | 'zone'} name @param {string} value */
export function prefer(name, value) {
  try {
    localStorage.setItem('punctual.' + name, value);
  } catch {
    // A browser that keeps nothing forgets it with the tab.
  }
}

/** Whether this token may do something of this role. @param {'view' | 'operate' | 'admin' | 'produce' | 'consume'} role */
export function may(role) {
  const roles = state.me?.roles ?? [];
  return roles.includes(role) || roles.includes('admin');
}
