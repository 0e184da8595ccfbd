// Prints the table of sizes (SIZES.md), and says with its exit code whether the first load is within its limit.
// `--write` puts the table into the file.

import { readdirSync, readFileSync, statSync, writeFileSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILT = join(HERE, "../src/holdfast/web/static");
const GOAL_KB = 120;

const index = readFileSync(join(BUILT, "index.html"), "utf8");
const weight = (file) => statSync(existsSync(`${file}.br`) ? `${file}.br` : file).size / 1000;
const rows = readdirSync(join(BUILT, "assets"))
  .filter((name) => /\.(js|css)$/.test(name))
  .map((name) => ({ name: name.replace(/-[A-Za-z0-9_-]{8}(?=\.)/, ""), first: index.includes(name), kb: weight(join(BUILT, "assets", name)) }))
  .sort((a, b) => Number(b.first) - Number(a.first) || b.kb - a.kb);
const first = rows.filter((row) => row.first).reduce((sum, row) => sum + row.kb, 0);

const table = [
  "# What the page weighs",
  "",
  `Printed by \`node page/sizes.mjs --write\` from the built files: brotli, in KB. The first load is what a browser fetches before anything is shown, at most ${GOAL_KB} KB; the rest is fetched when it is wanted.`,
  "",
  "| file | when | KB |",
  "|---|---|---|",
  ...rows.map((row) => `| ${row.name} | ${row.first ? "first load" : "when wanted"} | ${row.kb.toFixed(1)} |`),
  `| **first load** | | **${first.toFixed(1)}** |`,
  "",
].join("\n");

if (process.argv.includes("--write")) writeFileSync(join(HERE, "SIZES.md"), table);
console.log(table);
process.exit(first <= GOAL_KB ? 0 : 1);
