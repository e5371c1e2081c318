// The pulse of the server: a small snapshot each second, read as a stream while somebody looks. Browsers have few
// connections to one server, so a hidden tab has none, and of the visible ones with the same token one listens for all.

import { token } from '../store.js';

/** @param {(pulse: any) => void} heard @returns {() => void} how to stop it */
export function follow(heard) {
  /** @type {AbortController | undefined} */
  let open;
  let isOver = false;
  const turn = () => {
    if (document.hidden || isOver) {
      open?.abort();
      open = undefined;
    } else if (!open) {
      open = new AbortController();
      void share(open.signal, heard);
    }
  };
  document.addEventListener('visibilitychange', turn);
  turn();
  return () => {
    isOver = true;
    document.removeEventListener('visibilitychange', turn);
    turn();
  };
}

/**
 * Hears what the tab says that listens, and listens once that has stopped. Who holds the lock listens: it is given up
 * with the tab, however that ends. A page that came by plain HTTP from elsewhere has no locks, and listens for itself.
 * @param {AbortSignal} signal @param {(pulse: any) => void} heard
 */
async function share(signal, heard) {
  if (!navigator.locks || !globalThis.crypto?.subtle) return listen(signal, heard);
  const name = 'punctual.pulse ' + (await digest(token() ?? ''));
  if (signal.aborted) return;
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }) => heard(data);
  signal.addEventListener('abort', () => channel.close());
  const speak = (/** @type {any} */ pulse) => {
    channel.postMessage(pulse);
    heard(pulse);
  };
  await navigator.locks.request(name, { signal }, () => listen(signal, speak)).catch(() => {});
}

/** What tells tokens apart and none of them: what one may see is not for another. @param {string} text */
async function digest(text) {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Listens until it is told to stop; what breaks is begun again. @param {AbortSignal} signal @param {(pulse: any) => void} heard */
async function listen(signal, heard) {
  for (let pause = 1000; !signal.aborted; pause = Math.min(pause * 2, 15_000)) {
    try {
      const secret = token();
      const answer = await fetch('/v1/pulse', { signal, cache: 'no-store', headers: secret ? { authorization: 'Bearer ' + secret } : {} });
      // Who may not listen need not try again.
      if (answer.status === 401 || answer.status === 403 || answer.status === 404 || !answer.body) return;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; answer.ok; ) {
        const { value, done } = await reader.read();
        if (done) break;
        pause = 500;
        const parts = (rest + value).split('\n\n');
        rest = parts.pop() ?? '';
        for (const part of parts) {
          const data = part.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n');
          if (data && !signal.aborted) heard(JSON.parse(data));
        }
      }
    } catch {
      // It is asked again below, and the page's own questions say what is wrong.
    }
    // The next tab that listens does not wait for this one to have waited.
    if (!signal.aborted) await new Promise((done) => { setTimeout(done, pause); signal.addEventListener('abort', done, { once: true }); });
  }
}
