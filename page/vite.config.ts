import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const BUILT = "../src/holdfast/web/static";
/** Smaller files gain nothing. */
const WORTH_BYTES = 1024;

/** Leaves a compressed copy of each built file beside it: the server compresses nothing itself. */
function compressed(): Plugin {
  return {
    name: "compressed",
    closeBundle() {
      for (const name of readdirSync(BUILT, { recursive: true, encoding: "utf8" })) {
        const file = join(BUILT, name);
        if (!/\.(css|html|js|json|svg|txt|webmanifest)$/.test(name) || statSync(file).size < WORTH_BYTES) continue;
        const content = readFileSync(file);
        writeFileSync(`${file}.br`, brotliCompressSync(content));
        writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}

// The server serves the page under a policy without inline script or style: nothing may be inlined.
export default defineConfig({
  base: "/",
  plugins: [compressed()],
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:8420" },
  },
});
