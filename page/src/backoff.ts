/** How long to wait before the next try: 0.2 s at first, growing to 3 s, scattered so that many pages do not come back in step. */

const FIRST_MS = 200;
const MOST_MS = 3000;

/** `tries` counts the failures in a row, from 1; `random` is within [0, 1). */
export function delayMs(tries: number, random: number): number {
  const full = Math.min(MOST_MS, FIRST_MS * 2 ** Math.max(0, tries - 1));
  return Math.round(full * (0.75 + random * 0.25));
}
