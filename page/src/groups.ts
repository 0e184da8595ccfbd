/**
 * Which rows of a long conversation stand together. The last hundred stand alone; older ones are in groups that a browser skips while they
 * are out of sight. A group that is there keeps its beginning, whatever is put before it or behind it: it is not drawn again for that.
 */

export const PLAIN = 100;
export const GROUP = 20;

export interface Grouped<T> {
  groups: T[][];
  plain: T[];
}

/** `known`: the keys of the rows that groups began with when this was last asked. */
export function grouped<T extends { key: string }>(rows: T[], known: ReadonlySet<string>): Grouped<T> {
  const last = rows.length - PLAIN;
  const starts = last < GROUP ? [] : rows.flatMap((row, index) => (index <= last - GROUP && known.has(row.key) ? [index] : []));
  let until = starts.length > 0 ? starts[starts.length - 1]! + GROUP : 0;
  for (; last - until >= GROUP; until += GROUP) starts.push(until);
  for (let first = starts[0] ?? 0; first > 0; starts.unshift(first)) first = Math.max(0, first - GROUP);
  return { groups: starts.map((start, index) => rows.slice(start, starts[index + 1] ?? until)), plain: rows.slice(until) };
}
