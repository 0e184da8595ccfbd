/** Colours for code, by highlight.js' grammars: a tree of pieces with class names, never HTML. Each language is a file of its own. */

import { createLowlight } from "lowlight";
import type { LanguageFn } from "highlight.js";

export type Grammar = { type: "text"; value: string } | { type: "piece"; className: string; children: Grammar[] };
export interface Tree {
  children: Grammar[];
}

const LANGUAGES: Record<string, () => Promise<{ default: LanguageFn }>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};
const OTHER_NAMES: Record<string, string> = { sh: "bash", shell: "bash", zsh: "bash", console: "bash", "c++": "cpp", cs: "csharp", html: "xml", svg: "xml", js: "javascript", jsx: "javascript", mjs: "javascript", ts: "typescript", tsx: "typescript", py: "python", rb: "ruby", rs: "rust", kt: "kotlin", yml: "yaml", toml: "ini", docker: "dockerfile", make: "makefile", md: "markdown", golang: "go", patch: "diff" };

const lowlight = createLowlight();

/** Null for a language that is not known here. */
export async function coloured(name: string, text: string): Promise<Tree | null> {
  const language = OTHER_NAMES[name] ?? name;
  const grammar = LANGUAGES[language];
  if (grammar === undefined) return null;
  if (!lowlight.registered(language)) lowlight.register({ [language]: (await grammar()).default });
  return { children: lowlight.highlight(language, text).children.flatMap(piece) };
}

interface Node {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: Node[];
}

function piece(node: Node): Grammar[] {
  if (node.type === "text") return [{ type: "text", value: node.value ?? "" }];
  if (node.type !== "element") return [];
  const names = Array.isArray(node.properties?.className) ? node.properties.className.join(" ") : "";
  return [{ type: "piece", className: names, children: (node.children ?? []).flatMap(piece) }];
}
