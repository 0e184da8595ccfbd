import { describe, expect, test } from "vitest";
import { blocks, inline, Reading, safeHref } from "../src/markdown";

const text = (value: string) => ({ kind: "text", text: value });

describe("blocks", () => {
  test("paragraphs are separated by blank lines and keep their line breaks", () => {
    expect(blocks("one\ntwo\n\n\nthree")).toEqual([
      { kind: "paragraph", text: "one\ntwo" },
      { kind: "paragraph", text: "three" },
    ]);
  });

  test("a fence keeps what is inside untouched, and one that is still being written is open to the end", () => {
    expect(blocks("```python\n# not a heading\n\n- not a list\n```\nafter")).toEqual([
      { kind: "code", language: "python", text: "# not a heading\n\n- not a list" },
      { kind: "paragraph", text: "after" },
    ]);
    expect(blocks("````\n```\nx")).toEqual([{ kind: "code", language: "", text: "```\nx" }]);
  });

  test("lists hold their indented lines, nested lists and blank lines between items", () => {
    expect(blocks("- one\n  - inner\n\n- two\nlazy\n\nafter")).toEqual([
      { kind: "list", ordered: false, start: 1, items: ["one\n- inner", "two\nlazy"] },
      { kind: "paragraph", text: "after" },
    ]);
    expect(blocks("3. three\n4. four\n- other")).toEqual([
      { kind: "list", ordered: true, start: 3, items: ["three", "four"] },
      { kind: "list", ordered: false, start: 1, items: ["other"] },
    ]);
  });

  test("a line that begins with a number in mid-paragraph is no list", () => {
    expect(blocks("it happened in\n1984. Really")).toEqual([{ kind: "paragraph", text: "it happened in\n1984. Really" }]);
  });

  test("headings, quotes, rules and tables", () => {
    expect(blocks("## A title ##\n> quoted\n> more\n---\n| a | b |\n|---|:-:|\n| 1 | 2 |")).toEqual([
      { kind: "heading", level: 2, text: "A title" },
      { kind: "quote", text: "quoted\nmore" },
      { kind: "rule" },
      { kind: "table", head: ["a", "b"], rows: [["1", "2"]] },
    ]);
  });
});

describe("a text that grows", () => {
  const whole = "# A\n\npara\nmore\r\n\r\n- one\n\n- two\n  - in\n\n1. x\n\n2. y\n\na|b\n|-|-|\n|1|2|\n\n> q\n> r\n\n```py\n# no\n\n- no\n```\n***\n* z\n\nend 🪸";

  test("reads the same as the whole text, wherever it was cut", () => {
    for (let size = 1; size < 12; size++) {
      const reading = new Reading();
      for (let end = 0; end < whole.length + size; end += size) {
        const so_far = whole.slice(0, end);
        expect(reading.read(so_far), JSON.stringify(so_far)).toEqual(blocks(so_far));
      }
    }
  });

  test("keeps the values of blocks that cannot change, and begins anew with another text", () => {
    const reading = new Reading();
    const before = reading.read(whole);
    const after = reading.read(`${whole} and more`);
    expect(after[0]).toBe(before[0]);
    expect(reading.read("other")).toEqual(blocks("other"));
  });
});

describe("inline", () => {
  test("code, strong, emphasis and strike-through", () => {
    expect(inline("a `b*c*` **d *e*** ~~f~~")).toEqual([
      text("a "),
      { kind: "code", text: "b*c*" },
      text(" "),
      { kind: "strong", parts: [text("d "), { kind: "em", parts: [text("e")] }] },
      text(" "),
      { kind: "del", parts: [text("f")] },
    ]);
  });

  test("names with underscores, products and markers without a partner stay as they are", () => {
    expect(inline("snake_case_name")).toEqual([text("snake_case_name")]);
    expect(inline("2 * 3 * 4")).toEqual([text("2 * 3 * 4")]);
    expect(inline("a **b and `c")).toEqual([text("a **b and `c")]);
    expect(inline("\\*not\\*")).toEqual([text("*not*")]);
  });

  test("line breaks are kept", () => {
    expect(inline("a  \nb")).toEqual([text("a"), { kind: "break" }, text("b")]);
  });

  test("links lead to http and https only; anything else stays text", () => {
    expect(inline("[site](https://example.org/a_(b))")).toEqual([{ kind: "link", href: "https://example.org/a_(b)", parts: [text("site")] }]);
    for (const bad of ["javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:x", "/relative", "file:///etc/passwd"]) {
      expect(safeHref(bad)).toBeNull();
      expect(inline(`[x](${bad})`).every((part) => part.kind === "text")).toBe(true);
    }
    expect(inline("see https://example.org/x.")).toEqual([
      text("see "),
      { kind: "link", href: "https://example.org/x", parts: [text("https://example.org/x")] },
      text("."),
    ]);
  });

  test("markup of other kinds is text", () => {
    expect(inline("<img src=x onerror=alert(1)>")).toEqual([text("<img src=x onerror=alert(1)>")]);
  });

  test("hostile text takes no time to speak of", () => {
    const hostile = ["*", "_", "`", "[", "**a ", "~", " ", "> ", "# ", "- ", "|-", "[a](", "`` ` "].map((piece) => piece.repeat(20_000));
    hostile.push(`|-|${" ".repeat(50_000)}x`, `# ${" ".repeat(50_000)}x`, `~~~${"~".repeat(50_000)}\``, `\`${" ".repeat(50_000)}x\``);
    const began = performance.now();
    for (const piece of hostile) {
      for (const block of blocks(piece)) if ("text" in block) inline(block.text);
    }
    expect(performance.now() - began).toBeLessThan(3000);
  });
});
