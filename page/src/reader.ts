/**
 * Reads Markdown into tokens, also of a text that grows. The lexer is marked's; what a token looks like is decided where it is drawn, as
 * elements: there is no way from here to raw HTML.
 */

import { Marked, type Token, type TokenizerAndRendererExtension, type Tokens } from "marked";

export type { Token, Tokens };

/** A formula: between `$$` or `\[ \]` as a block, between `\( \)` or single dollars within a line. */
export interface MathToken {
  type: "math" | "mathBlock";
  raw: string;
  text: string;
}

const mathBlock: TokenizerAndRendererExtension = {
  name: "mathBlock",
  level: "block",
  start: (text) => /(^|\n) {0,3}(\$\$|\\\[)/.exec(text)?.index,
  tokenizer(text) {
    const match = /^ {0,3}(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\]) *(?:\n|$)/.exec(text);
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
    const match = /^(?:\\\(([^\n]+?)\\\)|\$\$([^$\n]+?)\$\$|\$([^\s$`](?:[^$\n`]*[^\s$\\`])?)\$(?!\d))/.exec(text);
    if (match) return { type: "math", raw: match[0], text: (match[1] ?? match[2] ?? match[3] ?? "").trim() };
    return undefined;
  },
};

const marked = new Marked({ gfm: true, breaks: true, extensions: [mathBlock, math] });

/** Deeper than this nothing is nested: what is, is shown as the text it is. Marked reads nested quotes recursively. */
const DEEPEST = 40;

/** One line ending, and no text that would exhaust the stack. */
function plain(text: string): string {
  const lines = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  return lines.replace(new RegExp(`^( {0,3}>[ \\t]?){${DEEPEST},}`, "gm"), (quotes) => quotes.replace(/>/g, "\\>"));
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

/**
 * Reads a text that grows at its end. What lies before the last two blocks is settled: it is not read again, and its tokens stay the same
 * values, so that a drawing of them can be kept. An open fence only looks for its end.
 */
export class Reading {
  #text = "";
  #tokens: Token[] = [];

  read(given: string): Token[] {
    const text = plain(given);
    if (text === this.#text) return this.#tokens;
    const grown = text.startsWith(this.#text);
    this.#tokens = grown ? (this.#fence(text) ?? this.#grown(text)) : lexed(text);
    this.#text = text;
    return this.#tokens;
  }

  #grown(text: string): Token[] {
    const blocks = this.#tokens.map((token, index) => (token.type === "space" ? -1 : index)).filter((index) => index >= 0);
    const settled = blocks.length > 2 ? blocks[blocks.length - 2]! : 0;
    const kept = this.#tokens.slice(0, settled);
    const from = kept.reduce((sum, token) => sum + token.raw.length, 0);
    return [...kept, ...lexed(text.slice(from))];
  }

  /** A last block that is a fence still open, with what came since; null where there is none, or it may have been closed. */
  #fence(text: string): Token[] | null {
    const last = this.#tokens[this.#tokens.length - 1];
    if (last?.type !== "code") return null;
    const opened = OPEN_FENCE.exec(last.raw);
    const from = this.#text.length - last.raw.length;
    if (opened === null || !this.#text.endsWith(last.raw)) return null;
    const body = text.slice(from + opened[0].length);
    const begun = last.raw.slice(opened[0].length);
    // A closing fence may begin in the line that was being written.
    const since = Math.max(0, begun.lastIndexOf("\n"));
    if (body.slice(since).includes(opened[1]![0]!.repeat(3)) || begun.includes(`\n${opened[1]}`)) return null;
    const code: Tokens.Code = { ...(last as Tokens.Code), raw: text.slice(from), text: body.replace(/\n$/, "") };
    return [...this.#tokens.slice(0, -1), code];
  }
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
