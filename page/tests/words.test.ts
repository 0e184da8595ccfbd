import { expect, test } from "vitest";
import { passages } from "../src/words";

test("a notice is plain text, with what it quotes set apart", () => {
  expect(passages("Not answered. Send them again:\n\n> one\n> two *stars*\n>\n> more")).toEqual([
    { quoted: false, text: "Not answered. Send them again:" }, { quoted: true, text: "one\ntwo *stars*\n\nmore" },
  ]);
  expect(passages("3. c\n2. b\n\n/resume NUMBER goes back.")).toEqual([{ quoted: false, text: "3. c\n2. b\n\n/resume NUMBER goes back." }]);
});
