import { describe, expect, test } from "vitest";
import { characters, read, Reading, safeHref, type Token, type Tokens } from "../src/reader";

const kinds = (text: string): string[] => read(text).map((token) => token.type).filter((type) => type !== "space");
const inner = (text: string): Token[] => (read(text)[0] as { tokens: Token[] }).tokens;
const types = (tokens: Token[]): string[] => tokens.map((token) => token.type);

/** What is drawn of tokens: everything but their source. */
function shape(tokens: Token[]): unknown {
  return JSON.parse(JSON.stringify(tokens, (key, value: unknown) => (key === "raw" ? undefined : value)));
}

const TEXTS: Record<string, string> = {
  mixed: "# A\n\npara\nmore\r\n\r\n- one\n\n- two\n  - in\n\n1. x\n\n2. y\n\n|a|b|\n|-|-|\n|1|2|\n\n> q\n> r\n\n```py\n# no\n\n- no\n```\n***\n* z\n\nend 🪸",
  fence: "Before.\n\n```\nopen ` tick\n\n~~~ not the end\n  indented\n```\n\nAfter `code` and **bold**.\n\n~~~sh\nls\n~~~\nlast",
  closed: "```\n```\ntext\n\n```\ncode\n   ```\nmore\n\n~~~\n~~~\nthe *rest*",
  unclosed: "Text\n\n```ts\nconst a = 1;\nconst b = `x`;\n",
  lists: "1. one\n2. two\n   - inner\n     more\n\n   para\n3. three\n\n- [ ] open\n- [x] done\n\ntext\n- next",
  table: "| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | `|` |\n\nafter the table | with a bar",
  setext: "Title\n=====\n\nother\n---\n\n---\nend",
  html: "<div>\n*text*\n</div>\n\n<b>in</b> line <script>x</script>\n\n<!-- gone -->\n\nend",
  math: "Sum $x+1$ and \\(y\\).\n\n$$\n\\frac{a}{b}\n$$\n\nIt cost $5 and $6.\n\n\\[ z \\]\nend",
  quotes: "> one\nlazy\n\n> two\n> > three\n>\n> - list\n\nend",
  definitions: "[a] and [b].\n\n[a]: https://example.org/a\n\nMore of [a], [b] and [c].\n\n> [b]: https://example.org/b\n\n- [c]: https://example.org/c\n\n| [a] |\n|---|\n| [b] |\n\nLast: [c].",
  formulas: "$$\na\n\nb\n\nc\n\nd\n$$\n\n\\[\na\n\nb\n\nc\n\\]\n\n$$\na\n\n\n$$\nend",
  breaks: "one\r\ntwo\r\rthree\r\n\r\n- a\r\n- b\r",
  deep: `${"> ".repeat(38)}deep\n\n${"> ".repeat(45)}deeper\n\n${">".repeat(60)}\nend`,
};

const numbered = (count: number, item: (number: number) => string): string => Array.from({ length: count }, (_, index) => item(index + 1)).join("");

/** Long enough that only their ends are read. */
const LONG: Record<string, string> = {
  tight: `Before.\n\n${numbered(14, (n) => `- item **${n}** of it\n`)}\nAfter.`,
  ordered: numbered(13, (n) => `${n}. item\n   more\n`) + "text that follows\n\nend",
  loose: numbered(12, (n) => `* item ${n}\n\n`) + "end",
  "loose at last": `${numbered(12, (n) => `+ item ${n}\n`)}\n+ loose\n+ more\n`,
  "loose at first": `- a\n\n- b\n${numbered(12, (n) => `- item ${n}\n`)}`,
  nested: numbered(12, (n) => `- item ${n}\n  - inner\n    1. innermost\n\n       para\n  \`\`\`\n  - code\n  \`\`\`\n`) + "- [x] done\n- [ ] open\n",
  "other marks": `${numbered(10, (n) => `- item ${n}\n`)}+ another\n+ list\n1) one\n2) two\n1. three\n`,
  indented: `${numbered(10, (n) => `- item ${n}\n`)} - one\n  - two\n   - three\n    - four\n- five`,
  "a rule": `${numbered(10, (n) => `- item ${n}\n`)}- - -\n- item\n---\nend`,
  defined: `${numbered(10, (n) => `- item [a] ${n}\n`)}- [a]: https://example.org/\n- end`,
  table: `| a | b |\n|:--|--:|\n${numbered(14, (n) => `| ${n} | \`x|y\` **${n}** |\n`)}after\n\nend`,
  "a table and a text": `| a | b |\n|---|---|\n${numbered(12, (n) => `| ${n} | b |\n`)}\n| a | b |\n|---|\n\n- end`,
  "a bare table": `a | b\n--|--\n${numbered(12, (n) => `${n} | b\n`)}> quote\n\nend`,
  quote: numbered(12, (n) => `> line ${n}\n>\n> - item\n`) + "lazy\n\nend",
};

describe("a text that grows", () => {
  test.each(Object.entries(TEXTS))("%s reads the same as the whole, wherever it was cut", (_, text) => {
    for (let size = 1; size < 14; size++) {
      const reading = new Reading();
      let last: Token[] = [];
      for (let end = size; end < text.length + size; end += size) last = reading.read(text.slice(0, end));
      expect(shape(last), `pieces of ${size}`).toEqual(shape(read(text)));
    }
  });

  test.each(Object.entries({ ...TEXTS, ...LONG }))("%s reads the same as the whole at every character", (_, text) => {
    const reading = new Reading();
    for (let end = 1; end <= text.length; end++) expect(shape(reading.read(text.slice(0, end))), JSON.stringify(text.slice(0, end))).toEqual(shape(read(text.slice(0, end))));
  });

  test("the items of a long list and the rows of a long table stay the same values", () => {
    const reading = new Reading();
    const [before] = reading.read(LONG["ordered"]!.slice(0, 200)) as Tokens.List[];
    const [after] = reading.read(LONG["ordered"]!.slice(0, 205)) as Tokens.List[];
    expect(after!.items.slice(0, -2)).toEqual(before!.items.slice(0, after!.items.length - 2));
    for (const [index, item] of before!.items.slice(0, -2).entries()) expect(after!.items[index]).toBe(item);
    const [rows] = reading.read(LONG["table"]!.slice(0, 250)) as Tokens.Table[];
    const [more] = reading.read(LONG["table"]!.slice(0, 255)) as Tokens.Table[];
    for (const [index, row] of rows!.rows.slice(0, -2).entries()) expect(more!.rows[index]).toBe(row);
  });

  test("keeps the values of blocks that cannot change, and starts over with another text", () => {
    const reading = new Reading();
    const before = reading.read(TEXTS.mixed!);
    const after = reading.read(`${TEXTS.mixed} and more`);
    expect(after[0]).toBe(before[0]);
    expect(after[4]).toBe(before[4]);
    expect(shape(reading.read("other"))).toEqual(shape(read("other")));
  });

  /** What a hundred pieces cost at the end of a text that begins with `head` and has so many lines. */
  function cost(head: string, line: string, lines: number): number {
    const reading = new Reading();
    let text = head + line.repeat(lines);
    reading.read(text);
    const began = performance.now();
    for (let piece = 0; piece < 100; piece++) reading.read((text += piece % 10 === 9 ? `\n${line}` : " wor"));
    return performance.now() - began;
  }

  test.each([["a fence", "```\n", "a line of code\n"], ["a list", "", "- an item of a list\n"], ["a table", "| a | b |\n|---|---|\n", "| one | two |\n"], ["an answer", "", "Some *words* of `it`.\n\n"]])(
    "a piece at the end of %s costs about the same however long that is",
    (_, head, line) => {
      cost(head, line, 200);
      expect(cost(head, line, 4000)).toBeLessThan(20 * Math.max(cost(head, line, 200), 5));
    },
  );
});

describe("what is read", () => {
  test("blocks", () => {
    expect(kinds(TEXTS.mixed!)).toEqual(["heading", "paragraph", "list", "list", "table", "blockquote", "code", "hr", "list", "paragraph"]);
    expect(kinds("it happened in\n1984. Really")).toEqual(["paragraph"]);
  });

  test("a line break is a line break", () => {
    expect(types(inner("one\ntwo"))).toEqual(["text", "br", "text"]);
  });

  test("names with underscores and products stay as they are", () => {
    for (const text of ["snake_case_name", "2 * 3 * 4", "a **b and `c"]) expect(types(inner(text)).every((type) => type === "text"), text).toBe(true);
  });

  test("formulas, and money", () => {
    expect(types(inner("Sum $x+1$ and \\(y\\)."))).toEqual(["text", "math", "text", "math", "text"]);
    expect(types(inner("It cost $5 and $6."))).toEqual(["text"]);
    expect(kinds("$$\na\n$$")).toEqual(["mathBlock"]);
    expect(types(inner("!\\[foo]"))).not.toContain("br");
    expect(types(inner("a$$b"))).toEqual(["text"]);
    expect(types(inner(`\\(${"x".repeat(900)}\\) and $${"x".repeat(900)}$`))).toEqual(["math", "text", "math"]);
  });

  test("character references", () => {
    expect(characters("a &amp; b &#35; &#x1F41F; &nosuch; &#0;")).toBe("a & b # 🐟 &nosuch; \ufffd");
  });
});

describe("what must not happen", () => {
  test("links lead to http, https and mail only", () => {
    expect(safeHref("https://example.org/a_(b)")).toBe("https://example.org/a_(b)");
    expect(safeHref("mailto:a@example.org")).toBe("mailto:a@example.org");
    const bad = ["javascript:alert(1)", "JaVaScRiPt:x", " javascript:x", "java\nscript:x", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "/relative", "#anchor", "//host", "blob:x", "about:blank", "", "jar:x", "view-source:https://x", "filesystem:x", "tel:1"];
    for (const href of bad) expect(safeHref(href), href).toBeNull();
  });

  test("markup of other kinds stays what it is: tokens of HTML, which are drawn as text", () => {
    for (const text of ["<img src=x onerror=alert(1)>", "<script>x</script>", "<iframe srcdoc=x>", "<svg/onload=x>", "<a href=javascript:x>y</a>", "<style>*{}</style>", "<math><mi xlink:href=x>"]) {
      const found = read(text).flatMap((token) => (token.type === "paragraph" ? (token as { tokens: Token[] }).tokens : [token]));
      for (const token of found) expect(["html", "text", "escape"], `${text}: ${token.type}`).toContain(token.type);
    }
  });

  test("no text takes the page's time, or its stack", () => {
    const hostile = ["*", "_", "`", "[", "**a ", "~", "> ", "# ", "- ", "|-", "[a](", "`` ` ", "$", "\\(", "<", "&", "![", "1. ", "$$", "***", "a_"].map((piece) => piece.repeat(5000));
    hostile.push("x".repeat(100_000), ">".repeat(5000), "> ".repeat(5000) + "deep", "- ".repeat(300) + "deep", `|-|${" ".repeat(20_000)}x`, "[".repeat(2000) + "]".repeat(2000));
    hostile.push("\\(".repeat(150_000));
    for (let deep = 10; deep < 40; deep += 4) hostile.push("> ".repeat(deep) + "deep", "- > ".repeat(deep) + "deep", `${"> ".repeat(deep)}\nlazy\n${"> ".repeat(deep - 3)}more`);
    for (const text of hostile) {
      const began = performance.now();
      expect(() => read(text), text.slice(0, 12)).not.toThrow();
      expect(performance.now() - began, text.slice(0, 12)).toBeLessThan(5000);
    }
  }, 60_000);
});
