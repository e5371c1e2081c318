// What two settings differ in, and the merge patch that leads from one to the other.

/** @typedef {{ path: string, from: any, to: any }} Change what is undefined has its default */

/**
 * Every single setting by its path. Lists and limits count as one.
 * @param {any} settings @param {string} [within] @param {Record<string, any>} [into]
 */
export function leaves(settings, within = '', into = Object.create(null)) {
  for (const [name, value] of Object.entries(settings ?? {})) {
    if (value === null || value === undefined) continue;
    const isGroup = typeof value === 'object' && !Array.isArray(value) && name !== 'rate';
    if (isGroup) leaves(value, `${within}${name}.`, into);
    else into[within + name] = value;
  }
  return into;
}

/** A value as one text, alike for whoever wrote it. @param {any} value */
const textOf = (value) => JSON.stringify(value, (_, part) => (part && typeof part === 'object' && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort()) : part ?? undefined));

/** @param {any} before @param {any} after @returns {Change[]} */
export function differences(before, after) {
  const [from, to] = [leaves(before), leaves(after)];
  const paths = [...new Set([...Object.keys(from), ...Object.keys(to)])].sort();
  return paths.filter((path) => textOf(from[path]) !== textOf(to[path])).map((path) => ({ path, from: from[path], to: to[path] }));
}

/** The merge patch that makes these changes and no others. @param {Change[]} changes */
export function patchOf(changes) {
  const patch = {};
  for (const { path, to } of changes) {
    // A limit is replaced: without a word about its burst, the one before would stay.
    place(patch, path, to === undefined ? null : path === 'rate' ? { burst: null, ...to } : to);
  }
  return patch;
}

/** Puts a value where a path leads. A name is only a name, whatever it means to objects. @param {any} into @param {string} path @param {any} value */
export function place(into, path, value) {
  const put = (/** @type {string} */ name, /** @type {any} */ value) => Object.defineProperty(into, name, { value, enumerable: true, writable: true, configurable: true });
  const names = path.split('.');
  const last = /** @type {string} */ (names.pop());
  for (const name of names) {
    if (!Object.hasOwn(into, name) || typeof into[name] !== 'object' || !into[name]) put(name, {});
    into = into[name];
  }
  put(last, value);
}

/** Settings with these changes made to them. @param {any} settings @param {Change[]} changes */
export function changed(settings, changes) {
  const copy = JSON.parse(JSON.stringify(settings));
  for (const { path, to } of changes) place(copy, path, to);
  return copy;
}
