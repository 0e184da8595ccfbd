/** The examples of the specification: a text that grows reads as the whole does, whatever has come of it. The browser's tests draw them. */

import { tests } from "commonmark-spec";
import { expect, test } from "vitest";
import { read, Reading, type Token } from "../src/reader";

const shape = (tokens: Token[]): string => JSON.stringify(tokens, (key, value: unknown) => (key === "raw" ? undefined : value));

test("all of them are here", () => expect(tests.length).toBeGreaterThan(600));

test.each(tests.map((each) => [each.number, each.markdown] as const))("example %i reads the same as the whole, after every character and from every cut", (_, text) => {
  const reading = new Reading();
  for (let end = 1; end <= text.length; end++) expect(shape(reading.read(text.slice(0, end))), JSON.stringify(text.slice(0, end))).toEqual(shape(read(text.slice(0, end))));
  for (let cut = 1; cut < text.length; cut++) {
    const second = new Reading();
    second.read(text.slice(0, cut));
    expect(shape(second.read(text)), `cut at ${cut}`).toEqual(shape(read(text)));
  }
});
