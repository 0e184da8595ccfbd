/**
 * Text by Unicode code points. The log counts characters as code points, JavaScript's strings count UTF-16 units;
 * outside the Basic Multilingual Plane one of the former is two of the latter. A lone surrogate counts as one.
 */

function isPairAt(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  if (unit < 0xd800 || unit > 0xdbff) return false;
  const next = text.charCodeAt(index + 1); // NaN past the end: both comparisons are false
  return next >= 0xdc00 && next <= 0xdfff;
}

/** How many code points `text` has. */
export function countPoints(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    if (isPairAt(text, i)) {
      count--;
      i++;
    }
  }
  return count;
}

/** The first `points` code points of `text`; the whole of it where it has fewer. */
export function takePoints(text: string, points: number): string {
  let index = 0;
  for (let taken = 0; taken < points && index < text.length; taken++) {
    index += isPairAt(text, index) ? 2 : 1;
  }
  return text.slice(0, index);
}

/** A text whose length in code points is known, so that appending at its end never counts it again. */
export interface Counted {
  readonly text: string;
  readonly points: number;
}

export function counted(text: string): Counted {
  return { text, points: countPoints(text) };
}

/** The first `offset` code points of `so_far`, followed by `piece`. */
export function splice(so_far: Counted, offset: number, piece: string): Counted {
  const added = countPoints(piece);
  if (offset >= so_far.points) return { text: so_far.text + piece, points: so_far.points + added };
  return { text: takePoints(so_far.text, offset) + piece, points: Math.max(0, offset) + added };
}
