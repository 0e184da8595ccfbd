/** Texts that want to be more than text. The browser's tests draw the same ones. */

import { expect, test } from "vitest";
import { read, safeHref, type Token } from "../src/reader";
import vectors from "./vectors.json";

function all(tokens: readonly Token[]): Token[] {
  return tokens.flatMap((token) => {
    const { tokens: inner, items, header, rows } = token as { tokens?: Token[]; items?: Token[]; header?: { tokens: Token[] }[]; rows?: { tokens: Token[] }[][] };
    const cells = [...(header ?? []), ...(rows ?? []).flat()].flatMap((cell) => all(cell.tokens));
    return [token, ...all(inner ?? []), ...all(items ?? []), ...cells];
  });
}

test.each(vectors)("%s leads nowhere but to the web", (text) => {
  for (const token of all(read(text))) {
    const href = (token as { href?: string }).href;
    if (href === undefined) continue;
    const safe = safeHref(href);
    expect(safe === null || /^(https?|mailto):/.test(safe), `${token.type} ${href}`).toBe(true);
  }
});
