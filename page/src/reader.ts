/**
 * Reads Markdown into tokens, also of a text that grows. The lexer is marked's; what a token looks like is decided where it is drawn, as
 * elements: there is no way from here to raw HTML.
 */

import { Marked, type Token, type TokenizerAndRendererExtension, type Tokens, type TokensList } from "marked";

export type { Token, Tokens };

/** A formula: between `$$` or `\[ \]` as a block without empty lines, between `\( \)` or single dollars within a line. */
export interface MathToken {
  type: "math" | "mathBlock";
  raw: string;
  text: string;
}

const mathBlock: TokenizerAndRendererExtension = {
  name: "mathBlock",
  level: "block",
  start: (text) => /\n {0,3}(\$\$|\\\[)/.exec(text)?.index,
  tokenizer(text) {
    const match = /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n)[^$])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\]) *(?:\n|$)/.exec(text);
    if (match) return { type: "mathBlock", raw: match[0], text: (match[1] ?? match[2] ?? "").trim() };
    return undefined;
  },
};

/** A dollar begins a formula only where no space follows, and ends one only where no space precedes and no digit follows: $5 and $6 are money. */
const math: TokenizerAndRendererExtension = {
  name: "math",
  level: "inline",
  start: (text) => /\$|\\\(/.exec(text)?.index,
  tokenizer(text) {
    // Bounded: each `\(` that is never closed would be followed to the end of its line.
    const match = /^(?:\\\(([^\n]{1,1000}?)\\\)|\$\$([^$\n]+?)\$\$|\$([^\s$`](?:[^$\n`]*[^\s$\\`])?)\$(?!\d))/.exec(text);
    if (match) return { type: "math", raw: match[0], text: (match[1] ?? match[2] ?? match[3] ?? "").trim() };
    return undefined;
  },
};

const marked = new Marked({ gfm: true, breaks: true, extensions: [mathBlock, math] });

/** Deeper than this nothing is nested: what is, is shown as the text it is. Marked reads nested quotes recursively. */
const DEEPEST = 40;

/** Each space belongs to one mark only: else the search would try every way to share them out. */
const TOO_DEEP = new RegExp(`^[ \\t]*(?:>[ \\t]*){${DEEPEST},}`, "gm");

/** One line ending, and no text that would exhaust the stack. */
function plain(text: string): string {
  const lines = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  return lines.replace(TOO_DEEP, (quotes) => quotes.replace(/>/g, "\\>"));
}

/** What is nested too deeply even so is one paragraph of plain text. */
function lexed(text: string): Token[] {
  try {
    return marked.lexer(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ type: "paragraph", raw: text, text, tokens: [{ type: "text", raw: text, text }] }];
  }
}

/** The blocks of a whole text. */
export function read(text: string): Token[] {
  return lexed(plain(text));
}

const OPEN_FENCE = /^(`{3,}|~{3,})[^\n]*\n/;
/** A list or table that is longer is not read again as a whole for a piece at its end. */
const LONG = 8;

/**
 * Reads a text that grows at its end, and gives what a reading of the whole would give. What lies before the last two blocks is settled: it
 * is not read again, and its tokens stay the same values, so that a drawing of them can be kept. So are the items of a long list and the
 * rows of a long table, but for the last two. An open fence only looks for its end.
 */
export class Reading {
  #given = "";
  #text = "";
  #tokens: Token[] = [];
  /** Somewhere it is said where links lead: that may change every block, so that all are read. */
  #links = "";

  read(given: string): Token[] {
    if (given === this.#given) return this.#tokens;
    const grown = given.startsWith(this.#given);
    const text = (grown ? this.#appended(given) : null) ?? plain(given);
    this.#tokens = grown && text.startsWith(this.#text) ? (this.#fence(text) ?? this.#long(text) ?? this.#grown(text)) : this.#whole(text, []);
    this.#given = given;
    this.#text = text;
    return this.#tokens;
  }

  /** What `plain` makes of it, where a look at the new piece is enough. */
  #appended(given: string): string | null {
    const piece = given.slice(this.#given.length);
    if (piece.includes("\r") || this.#given.endsWith("\r")) return null;
    const line = this.#text.slice(this.#text.lastIndexOf("\n") + 1) + piece;
    return line.length < DEEPEST || line.split(">", DEEPEST + 1).length <= DEEPEST ? this.#text + piece : null;
  }

  #whole(text: string, before: Token[]): Token[] {
    const tokens = lexed(text);
    const links = linksOf(tokens);
    const same = links === this.#links ? kept(before, tokens) : tokens;
    this.#links = links;
    return same;
  }

  #grown(text: string): Token[] {
    if (this.#links !== "") return this.#whole(text, this.#tokens);
    const blocks = this.#tokens.map((token, index) => (token.type === "space" ? -1 : index)).filter((index) => index >= 0);
    const settled = blocks.length > 2 ? blocks[blocks.length - 2]! : 0;
    const first = this.#tokens.slice(0, settled);
    const last = lexed(text.slice(lengthOf(first)));
    return linksOf(last) === "" ? [...first, ...kept(this.#tokens.slice(settled), last)] : this.#whole(text, this.#tokens);
  }

  /** A last block that is a fence still open, with what came since; null where there is none, or it may have been closed, now or before. */
  #fence(text: string): Token[] | null {
    const last = this.#tokens[this.#tokens.length - 1];
    if (last?.type !== "code") return null;
    const opened = OPEN_FENCE.exec(last.raw);
    const from = this.#text.length - last.raw.length;
    if (opened === null || !this.#text.endsWith(last.raw)) return null;
    const body = text.slice(from + opened[0].length);
    const begun = last.raw.slice(opened[0].length);
    // A closing fence may begin in the line that was being written, or be the last line already: the newline after it belongs to the token.
    const since = Math.max(0, begun.lastIndexOf("\n"));
    const end = begun.slice(begun.trimEnd().lastIndexOf("\n") + 1);
    if (body.slice(since).includes(opened[1]![0]!.repeat(3)) || end.trimStart().startsWith(opened[1]!)) return null;
    const code: Tokens.Code = { ...(last as Tokens.Code), raw: text.slice(from), text: body.replace(/\n$/, "") };
    return [...this.#tokens.slice(0, -1), code];
  }

  /** A last block that is a long list or table, of which only the end is read; null where there is none, or it has become something else. */
  #long(text: string): Token[] | null {
    const at = this.#tokens.findLastIndex((token) => token.type !== "space");
    const block = this.#tokens[at];
    if (block === undefined || this.#links !== "") return null;
    const first = this.#tokens.slice(0, at);
    const rest = text.slice(lengthOf(first));
    const made = block.type === "list" ? longList(block as Tokens.List, rest) : block.type === "table" ? longTable(block as Tokens.Table, rest) : null;
    return made && [...first, ...made];
  }
}

function lengthOf(tokens: { raw: string }[]): number {
  return tokens.reduce((sum, token) => sum + token.raw.length, 0);
}

/** Where links lead, by their names, as one value; empty where nothing says so. */
function linksOf(tokens: Token[]): string {
  const links = (tokens as Partial<TokensList>).links ?? {};
  return Object.keys(links).length > 0 ? JSON.stringify(links) : "";
}

/** The new tokens, or those from before where their source is the same. */
function kept(before: Token[], now: Token[]): Token[] {
  return now.map((token, index) => {
    const old = before[index];
    if (old?.type !== token.type) return token;
    if (old.raw === token.raw) return old;
    if (token.type === "blockquote") return { ...token, tokens: kept((old as Tokens.Blockquote).tokens, (token as Tokens.Blockquote).tokens) };
    if (token.type === "list") return { ...token, items: keptItems((old as Tokens.List).items, (token as Tokens.List).items) };
    return token.type === "table" ? { ...token, rows: keptRows((old as Tokens.Table).rows, (token as Tokens.Table).rows) } : token;
  });
}

function keptItems(before: Tokens.ListItem[], now: Tokens.ListItem[]): Tokens.ListItem[] {
  return now.map((item, index) => (before[index]?.raw === item.raw && before[index].loose === item.loose ? before[index] : item));
}

function keptRows(before: Tokens.TableCell[][], now: Tokens.TableCell[][]): Tokens.TableCell[][] {
  const same = (row: Tokens.TableCell[], old: Tokens.TableCell[] | undefined): boolean => old?.length === row.length && row.every((cell, index) => cell.text === old[index]!.text && cell.align === old[index]!.align);
  return now.map((row, index) => (same(row, before[index]) ? before[index]! : row));
}

const ITEM = /^(?:([*+-])|\d{1,9}([.)]))[ \t]/;

/** The blocks of `text`, which begins with this list: its last two items are read, those before them are as they were. */
function longList(list: Tokens.List, text: string): Token[] | null {
  const { items } = list;
  if (items.length <= LONG) return null;
  const settled = items.slice(0, -2);
  const from = lengthOf(settled);
  const tail = text.slice(from);
  const [mark, begins] = [ITEM.exec(items[0]!.raw), ITEM.exec(tail)];
  if (mark === null || begins === null || mark[1] !== begins[1] || mark[2] !== begins[2]) return null;
  const read = lexed(tail);
  const [end, ...others] = read;
  if (end?.type !== "list" || linksOf(read) !== "") return null;
  const { items: last, loose, raw } = end as Tokens.List;
  // An empty line makes all its items loose; and an item may have become part of the one before.
  if (loose !== list.loose || last.length < 2) return null;
  return [{ ...list, raw: text.slice(0, from) + raw, items: [...settled, ...keptItems(items.slice(-2), last)] }, ...others];
}

/** The same of a table: its head and its last two rows are read. */
function longTable(table: Tokens.Table, text: string): Token[] | null {
  const { rows, raw } = table;
  if (rows.length <= LONG) return null;
  const head = raw.indexOf("\n", raw.indexOf("\n") + 1) + 1;
  let from = raw.trimEnd().length;
  for (let line = 0; line < 2; line++) from = raw.lastIndexOf("\n", from - 1);
  if (head === 0 || ++from <= head) return null;
  const read = lexed(text.slice(0, head) + text.slice(from));
  const [end, ...others] = read;
  if (end?.type !== "table" || linksOf(read) !== "") return null;
  const { rows: last, raw: source } = end as Tokens.Table;
  if (last.length < 2) return null;
  return [{ ...table, raw: text.slice(0, from) + source.slice(head), rows: [...rows.slice(0, -2), ...keptRows(rows.slice(-2), last)] }, ...others];
}

/** An address that a link may lead to, as the browser writes it; null for every other one. */
export function safeHref(href: string): string | null {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

const KNOWN: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", mdash: "—", ndash: "–", hellip: "…" };
const entities = new Map<string, string>();

/** Character references as the characters they stand for. The browser knows the names; one at a time is given to it. */
export function characters(text: string): string {
  return text.includes("&") ? text.replace(/&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});/g, character) : text;
}

function character(reference: string): string {
  const name = reference.slice(1, -1);
  if (name.startsWith("#")) {
    const point = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
    return point === 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? "\ufffd" : String.fromCodePoint(point);
  }
  if (KNOWN[name] !== undefined) return KNOWN[name];
  if (typeof DOMParser === "undefined") return reference;
  let found = entities.get(name);
  if (found === undefined) entities.set(name, (found = new DOMParser().parseFromString(reference, "text/html").documentElement.textContent ?? reference));
  return found;
}
