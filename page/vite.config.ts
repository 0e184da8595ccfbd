import { defineConfig } from "vite";

// The server serves the page under a policy without inline script or style: nothing may be inlined.
export default defineConfig({
  base: "/",
  build: {
    outDir: "../src/holdfast/web/static",
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
