/** Numbers as pictures. Pure: what is drawn, not how. */

/** The newest number of a series, and null where there is none. */
export function newest(values: readonly (number | null)[]): number | null {
  for (let index = values.length - 1; index >= 0 && index >= values.length - 3; index--) if (values[index] != null) return values[index]!;
  return null;
}

/** Of what is measured only when something happens: what was measured, and which was the newest, counted from the end; null where nothing was. */
export function happened(values: readonly (number | null)[]): { values: number[]; newest: number; ago: number } | null {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return null;
  return { values: known, newest: known[known.length - 1]!, ago: values.length - 1 - values.findLastIndex((value) => value !== null) };
}

/** From the first number on, but at least so many of the newest. */
export function begun(values: readonly (number | null)[], least: number): (number | null)[] {
  const first = values.findIndex((value) => value !== null);
  return first === -1 ? [] : values.slice(Math.max(0, Math.min(first, values.length - least)));
}

/** At most so many numbers: the highest of each stretch. */
export function thinned(values: readonly (number | null)[], most: number): (number | null)[] {
  const stretch = Math.max(1, Math.ceil(values.length / most));
  const found: (number | null)[] = [];
  for (let start = 0; start < values.length; start += stretch) {
    const known = values.slice(start, start + stretch).filter((value) => value !== null);
    found.push(known.length === 0 ? null : Math.max(...known));
  }
  return found;
}

/** The lines of a sparkline, a path for each stretch without a gap: from the lowest to the highest number, or in the middle where all are the same. */
export function spark(values: readonly (number | null)[], width: number, height: number): string[] {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return [];
  const [low, high] = [Math.min(0, ...known), Math.max(...known)];
  const x = (index: number): string => ((index / Math.max(1, values.length - 1)) * width).toFixed(1);
  const y = (value: number): string => (high === low ? height - 1 : height - 1 - ((value - low) / (high - low)) * (height - 2)).toFixed(1);
  const paths: string[] = [];
  let path = "";
  values.forEach((value, index) => {
    if (value === null) {
      if (path) paths.push(path);
      path = "";
    } else path += `${path ? "L" : "M"}${x(index)} ${y(value)}`;
  });
  if (path) paths.push(path);
  return paths.map((each) => (each.includes("L") ? each : `${each}h1`));
}

export interface Band<T> {
  from: number;
  to: number;
  /** How long it was, whatever of it is shown; null where that is not known. */
  ms: number | null;
  /** Whether there is room for its words: some way from those of the one before it. */
  told: boolean;
  of: T;
}

/** Stretches of time within the shown ones. One of which no end is known is a moment. `apart`: how far from each other words must be. */
export function bands<T extends { since: string; ended_at: string | null; holds: boolean }>(all: readonly T[], from: number, to: number, apart: number): Band<T>[] {
  let said = -Infinity;
  return all.flatMap((of) => {
    const begun = Date.parse(of.since);
    const over = of.holds ? to : of.ended_at === null ? begun : Date.parse(of.ended_at);
    if (over < from || begun > to) return [];
    const [left, right] = [Math.max(from, begun), Math.min(to, over)];
    const middle = (left + right) / 2;
    const told = middle - said >= apart;
    if (told) said = middle;
    return [{ from: left, to: right, ms: of.holds || of.ended_at !== null ? over - begun : null, told, of }];
  });
}

export interface Stack {
  day: string;
  total: number;
  parts: { name: string; value: number }[];
}

/** Days as stacks of what each had its part in; those beyond the first `most` are one. `names` in the order in which they are stacked. */
export function stacks(rows: readonly { day: string; name: string; value: number }[], names: readonly string[], most: number, rest: string): Stack[] {
  const shown = names.length > most ? names.slice(0, most - 1) : names;
  const days = new Map<string, Map<string, number>>();
  for (const row of rows) {
    const name = shown.includes(row.name) ? row.name : rest;
    const day = days.get(row.day) ?? new Map<string, number>();
    day.set(name, (day.get(name) ?? 0) + row.value);
    days.set(row.day, day);
  }
  const order = [...shown, rest];
  return [...days.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, values]) => {
    const parts = order.flatMap((name) => (values.has(name) ? [{ name, value: values.get(name)! }] : []));
    return { day, parts, total: parts.reduce((sum, part) => sum + part.value, 0) };
  });
}

/** A round number at or above the highest, to draw a scale to. */
export function scale(highest: number): number {
  if (highest <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 5, 10].map((step) => step * unit).find((step) => step >= highest)!;
}
