// Rows that are looked at while the list changes. Each keeps its place: one that has left the list stays, marked, and
// those that are new wait until somebody wants to see them.

/** @template T */
export class Steady {
  /** @param {(row: T) => string} keyOf */
  constructor(keyOf) {
    this.keyOf = keyOf;
    /** @type {T[]} */
    this.rows = [];
    /** Where the list goes on behind them, if it does. @type {string | undefined} */
    this.next = undefined;
    /** Those that have left the list. @type {Set<string>} */
    this.gone = new Set();
    /** How many are new. */
    this.fresh = 0;
    /** What the list is now, if it is something else. @type {{ rows: T[], next: string | undefined } | undefined} */
    this.latest = undefined;
  }

  /** Shows these, and forgets what was there. @param {T[]} rows @param {string} [next] */
  set(rows, next) {
    Object.assign(this, { rows, next, gone: new Set(), fresh: 0, latest: undefined });
  }

  /** Adds what follows. @param {T[]} rows @param {string} [next] */
  add(rows, next) {
    const known = new Set(this.rows.map(this.keyOf));
    this.rows = [...this.rows, ...rows.filter((row) => !known.has(this.keyOf(row)))];
    this.next = next;
  }

  /** Learns what the list begins with now, and moves nothing. @param {T[]} rows @param {string} [next] */
  see(rows, next) {
    if (this.rows.length === 0) return this.set(rows, next);
    const [there, places] = [new Map(rows.map((row) => [this.keyOf(row), row])), new Map(this.rows.map((row, place) => [this.keyOf(row), place]))];
    // Up to the last row that both have, what is missing has left. Behind it, it may only have been pushed away.
    const last = rows.findLastIndex((row) => places.has(this.keyOf(row)));
    const until = next === undefined ? Infinity : last < 0 ? -1 : places.get(this.keyOf(rows[last])) ?? -1;
    this.rows.forEach((row, place) => {
      const key = this.keyOf(row);
      if (there.has(key)) this.gone.delete(key);
      else if (place < until) this.gone.add(key);
    });
    this.rows = this.rows.map((row) => there.get(this.keyOf(row)) ?? row);
    // What stands behind the last row followed it before, if anything did: it only moved up.
    const end = this.next === undefined ? -1 : rows.findIndex((row) => places.get(this.keyOf(row)) === this.rows.length - 1);
    const compared = end < 0 ? rows : rows.slice(0, end);
    this.fresh = compared.filter((row) => !places.has(this.keyOf(row))).length;
    this.latest = this.fresh || this.gone.size ? { rows, next } : undefined;
  }

  /** Shows the list as it is now. */
  show() {
    if (this.latest) this.set(this.latest.rows, this.latest.next);
  }
}
