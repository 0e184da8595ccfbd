import { describe, expect, test } from "vitest";
import { characters, read, Reading, safeHref, type Token } from "../src/reader";

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
  unclosed: "Text\n\n```ts\nconst a = 1;\nconst b = `x`;\n",
  lists: "1. one\n2. two\n   - inner\n     more\n\n   para\n3. three\n\n- [ ] open\n- [x] done\n\ntext\n- next",
  table: "| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | `|` |\n\nafter the table | with a bar",
  setext: "Title\n=====\n\nother\n---\n\n---\nend",
  html: "<div>\n*text*\n</div>\n\n<b>in</b> line <script>x</script>\n\n<!-- gone -->\n\nend",
  math: "Sum $x+1$ and \\(y\\).\n\n$$\n\\frac{a}{b}\n$$\n\nIt cost $5 and $6.\n\n\\[ z \\]\nend",
  quotes: "> one\nlazy\n\n> two\n> > three\n>\n> - list\n\nend",
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

  test("keeps the values of blocks that cannot change, and starts over with another text", () => {
    const reading = new Reading();
    const before = reading.read(TEXTS.mixed!);
    const after = reading.read(`${TEXTS.mixed} and more`);
    expect(after[0]).toBe(before[0]);
    expect(after[4]).toBe(before[4]);
    expect(shape(reading.read("other"))).toEqual(shape(read("other")));
  });

  test("an open fence costs no more the longer it is", () => {
    const reading = new Reading();
    let text = "```\n" + "a line of code\n".repeat(4000);
    reading.read(text);
    const began = performance.now();
    for (let piece = 0; piece < 500; piece++) reading.read((text += "word"));
    expect(performance.now() - began).toBeLessThan(2000);
  });
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
    for (const text of hostile) {
      const began = performance.now();
      expect(() => read(text), text.slice(0, 12)).not.toThrow();
      expect(performance.now() - began, text.slice(0, 12)).toBeLessThan(5000);
    }
  }, 60_000);
});
