/**
 * A small, safe reading of markdown: text in, plain values out, which the page draws as elements. There is no way from here to
 * raw HTML. Every step is linear in the length of the text, or bounded, so that no answer can stall the page.
 */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "break" }
  | { kind: "strong" | "em" | "del"; parts: Inline[] }
  | { kind: "link"; href: string; parts: Inline[] };

export type Block =
  | { kind: "paragraph"; text: string }
  | { kind: "heading"; level: number; text: string }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: string[] }
  | { kind: "table"; head: string[]; rows: string[][] }
  | { kind: "rule" };

const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_LINE = /^\|?(?: *:?-+:? *\|)* *:?-+:? *\|?$/; // of a trimmed line

/** The blocks of a text, in order. What is inside a block (items, quotes) is again text for `blocks` or `inline`. */
export function blocks(text: string): Block[] {
  return placed(text).found;
}

/**
 * Reads a text that grows at its end. What came before the last two blocks cannot change any more, so it is not read again, and
 * its blocks stay the same values.
 */
export class Reading {
  #text = "";
  #found: Block[] = [];
  #starts: number[] = [];

  read(text: string): Block[] {
    const kept = text.startsWith(this.#text) ? Math.max(0, this.#found.length - 2) : 0;
    const from = kept > 0 ? this.#starts[kept]! : 0;
    const { found, starts } = placed(text.slice(from));
    this.#found = [...this.#found.slice(0, kept), ...found];
    this.#starts = [...this.#starts.slice(0, kept), ...starts.map((start) => start + from)];
    this.#text = text;
    return this.#found;
  }
}

/** The blocks of a text, and where in it each begins. */
function placed(text: string): { found: Block[]; starts: number[] } {
  const raw = text.split("\n");
  const lines = raw.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  const found: Block[] = [];
  const starts: number[] = [];
  let passed = 0; // lines, and with `at` the characters in them
  let at = 0;
  let i = 0;
  while (i < lines.length) {
    const line = lines[i]!;
    if (line.trim() === "") {
      i++;
      continue;
    }
    for (; passed < i; passed++) at += raw[passed]!.length + 1;
    starts.push(at);
    const fence = FENCE.exec(line);
    if (fence) {
      const close = closeOf(fence[1]!);
      let end = i + 1;
      while (end < lines.length && !close.test(lines[end]!)) end++;
      found.push({ kind: "code", language: fence[2]!.trim().split(/\s/, 1)[0] ?? "", text: lines.slice(i + 1, end).join("\n") });
      i = end + 1;
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      found.push({ kind: "heading", level: heading[1]!.length, text: heading[2]!.trim().replace(/(?:^|\s)#+$/, "") });
      i++;
      continue;
    }
    if (RULE.test(line)) {
      found.push({ kind: "rule" });
      i++;
      continue;
    }
    if (QUOTE.test(line)) {
      const inner: string[] = [];
      for (; i < lines.length; i++) {
        const quoted = QUOTE.exec(lines[i]!);
        if (!quoted) break;
        inner.push(quoted[1]!);
      }
      found.push({ kind: "quote", text: inner.join("\n") });
      continue;
    }
    if (ITEM.test(line)) {
      const [list, next] = listAt(lines, i);
      found.push(list);
      i = next;
      continue;
    }
    if (line.includes("|") && i + 1 < lines.length && lines[i + 1]!.includes("|") && TABLE_LINE.test(lines[i + 1]!.trim())) {
      const head = cells(line);
      const rows: string[][] = [];
      for (i += 2; i < lines.length && lines[i]!.includes("|") && lines[i]!.trim() !== ""; i++) rows.push(cells(lines[i]!));
      found.push({ kind: "table", head, rows });
      continue;
    }
    const paragraph = [line];
    for (i++; i < lines.length && !interrupts(lines[i]!); i++) paragraph.push(lines[i]!);
    found.push({ kind: "paragraph", text: paragraph.join("\n") });
  }
  return { found, starts };
}

function closeOf(fence: string): RegExp {
  return new RegExp(`^ {0,3}${fence[0] === "`" ? "`" : "~"}{${fence.length},}\\s*$`);
}

function interrupts(line: string): boolean {
  return line.trim() === "" || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || /^ {0,3}(?:[-*+]|1[.)]) +\S/.test(line);
}

function cells(line: string): string[] {
  return line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|").map((cell) => cell.trim());
}

/** The list that begins at line `from`, and the line after it. An item holds its indented lines, also across blank ones. */
function listAt(lines: string[], from: number): [Block, number] {
  const first = ITEM.exec(lines[from]!)!;
  const ordered = /\d/.test(first[2]!);
  const items: string[][] = [];
  let indent = Infinity; // where the text of the present item begins
  let i = from;
  for (; i < lines.length; i++) {
    const line = lines[i]!;
    const depth = line.search(/\S/);
    const item = depth < indent && !RULE.test(line) ? ITEM.exec(line) : null;
    if (depth < 0) {
      const next = lines[i + 1] ?? "";
      if (next.trim() === "" || (next.search(/\S/) < indent && !continues(next, ordered))) break;
      items[items.length - 1]!.push("");
    } else if (item) {
      if (/\d/.test(item[2]!) !== ordered) break;
      indent = item[1]!.length + item[2]!.length + Math.min(Math.max(item[3]!.length, 1), 4);
      items.push([item[4]!]);
    } else if (depth >= indent) {
      items[items.length - 1]!.push(line.slice(indent));
    } else if (!interrupts(line) && lines[i - 1]!.trim() !== "") {
      items[items.length - 1]!.push(line.trimStart());
    } else break;
  }
  return [{ kind: "list", ordered, start: ordered ? parseInt(first[2]!, 10) : 1, items: items.map((lines) => lines.join("\n").trimEnd()) }, i];
}

function continues(line: string, ordered: boolean): boolean {
  const item = ITEM.exec(line);
  return item !== null && /\d/.test(item[2]!) === ordered;
}

const LINK = /\[((?:[^[\]\n\\]|\\.){1,500})\]\(<?([^()\s<>]{1,2000}(?:\([^()\s<>]{0,500}\)[^()\s<>]{0,500})?)>?(?:\s+"[^"\n]{0,300}")?\)/y;
const BARE = /https?:\/\/[^\s<>"'`\])}]{1,2000}/y;
const DEEPEST = 8;

/** The parts of one piece of running text. */
export function inline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = [];
  const missing = new Set<string>();
  let plain = "";
  const flush = (): void => {
    if (plain !== "") parts.push({ kind: "text", text: plain });
    plain = "";
  };
  const add = (part: Inline, next: number): number => {
    flush();
    parts.push(part);
    return next;
  };

  /** The part that begins at `i` with `char`, added; where it ends, or null for plain text. */
  const special = (char: string, i: number): number | null => {
    if (char === "\\" && i + 1 < text.length && /[!-/:-@[-`{-~]/.test(text[i + 1]!)) {
      plain += text[i + 1];
      return i + 2;
    }
    if (char === "\n") {
      plain = plain.trimEnd();
      return add({ kind: "break" }, i + 1);
    }
    if (char === "`") {
      const ticks = runAt(text, i, "`");
      const marker = "`".repeat(ticks);
      const end = missing.has(marker) ? -1 : closingTicks(text, i + ticks, ticks);
      if (end < 0) {
        missing.add(marker);
        plain += marker;
        return i + ticks;
      }
      const inside = text.slice(i + ticks, end).replace(/\n/g, " ");
      const padded = inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "";
      return add({ kind: "code", text: padded ? inside.slice(1, -1) : inside }, end + ticks);
    }
    if (depth >= DEEPEST) return null;
    if (char === "[") {
      LINK.lastIndex = i;
      const link = LINK.exec(text);
      const href = link && safeHref(link[2]!);
      return link && href ? add({ kind: "link", href, parts: inline(link[1]!, depth + 1) }, LINK.lastIndex) : null;
    }
    if (char === "h" && (i === 0 || !/[\p{L}\p{N}_]/u.test(text[i - 1]!))) {
      BARE.lastIndex = i;
      const bare = BARE.exec(text);
      if (!bare) return null;
      const shown = bare[0].replace(/[.,;:!?*_~]+$/, "");
      const href = safeHref(shown);
      return href ? add({ kind: "link", href, parts: [{ kind: "text", text: shown }] }, i + shown.length) : null;
    }
    for (const [marker, kind] of EMPHASES) {
      if (char !== marker[0] || !text.startsWith(marker, i) || missing.has(marker) || !opens(text, i, marker)) continue;
      const end = closing(text, i + marker.length, marker);
      if (end < 0) {
        missing.add(marker);
        continue;
      }
      return add({ kind, parts: inline(text.slice(i + marker.length, end), depth + 1) }, end + marker.length);
    }
    if ("*_~".includes(char)) {
      // A run that opens nothing is plain as a whole: its tail must not be read as another marker.
      const run = runAt(text, i, char);
      plain += char.repeat(run);
      return i + run;
    }
    return null;
  };

  let i = 0;
  while (i < text.length) {
    const char = text[i]!;
    const next = SPECIAL.test(char) ? special(char, i) : null;
    if (next !== null) {
      i = next;
      continue;
    }
    plain += char;
    i++;
  }
  flush();
  return parts;
}

const SPECIAL = /[\\\n`[h*_~]/;
const EMPHASES: readonly (readonly [string, "strong" | "em" | "del"])[] = [
  ["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"],
];

function runAt(text: string, i: number, char: string): number {
  let end = i;
  while (text[end] === char) end++;
  return end - i;
}

function closingTicks(text: string, from: number, ticks: number): number {
  for (let i = text.indexOf("`", from); i >= 0; i = text.indexOf("`", i)) {
    const run = runAt(text, i, "`");
    if (run === ticks) return i;
    i += run;
  }
  return -1;
}

function isWord(char: string | undefined): boolean {
  return char !== undefined && /[\p{L}\p{N}_]/u.test(char);
}

/** A marker opens when something follows it at once; an underscore within a word is part of the word. */
function opens(text: string, i: number, marker: string): boolean {
  const after = text[i + marker.length];
  if (after === undefined || /\s/.test(after)) return false;
  return marker[0] !== "_" || !isWord(text[i - 1]);
}

function closing(text: string, from: number, marker: string): number {
  for (let i = text.indexOf(marker, from); i >= 0; i = text.indexOf(marker, i + 1)) {
    if (i === from || /\s/.test(text[i - 1]!) || text[i - 1] === "\\") continue;
    if (marker.length === 1 && (text[i + 1] === marker || text[i - 1] === marker)) {
      // Part of a double marker, which belongs to a strong inside.
      while (text[i + 1] === marker) i++;
      continue;
    }
    if (marker.length === 2 && text[i + 2] === marker[0]) continue;
    if (marker[0] === "_" && isWord(text[i + marker.length])) continue;
    return i;
  }
  return -1;
}

/** The address, if it is one a page may lead to. */
export function safeHref(address: string): string | null {
  try {
    const url = new URL(address);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}
