import { describe, expect, test } from "vitest";
import { counted, countPoints, splice, takePoints } from "../src/codepoints";

describe("text by code points", () => {
  test("characters outside the basic plane count once, lone surrogates too", () => {
    expect(countPoints("")).toBe(0);
    expect(countPoints("aé日")).toBe(3);
    expect(countPoints("🪸🌊x")).toBe(3);
    expect(countPoints("👩‍👩‍👧")).toBe(5);
    expect(countPoints("\ud83ea")).toBe(2);
    expect(countPoints("\udc00\ud83e")).toBe(2);
  });

  test("taking never cuts a character in two", () => {
    expect(takePoints("a🪸b", 0)).toBe("");
    expect(takePoints("a🪸b", 1)).toBe("a");
    expect(takePoints("a🪸b", 2)).toBe("a🪸");
    expect(takePoints("a🪸b", 3)).toBe("a🪸b");
    expect(takePoints("a🪸b", 99)).toBe("a🪸b");
  });

  test("a piece goes to its offset: at the end, over a tail, or in place of everything", () => {
    const so_far = counted("one 🪸 two");
    expect(splice(so_far, 9, " three")).toEqual({ text: "one 🪸 two three", points: 15 });
    expect(splice(so_far, 5, "!")).toEqual({ text: "one 🪸!", points: 6 });
    expect(splice(so_far, 0, "anew")).toEqual({ text: "anew", points: 4 });
  });

  test("agrees with counting code points one by one, for any text", () => {
    const letters = ["a", "é", "日", "🪸", "\ud83e", "\udc00", "\u2028", "\0"];
    let seed = 7;
    const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
    for (let round = 0; round < 500; round++) {
      const text = Array.from({ length: Math.floor(random() * 12) }, () => letters[Math.floor(random() * letters.length)]!).join("");
      const points = Array.from(text);
      const take = Math.floor(random() * 14);
      expect(countPoints(text)).toBe(points.length);
      expect(takePoints(text, take)).toBe(points.slice(0, take).join(""));
    }
  });
});
