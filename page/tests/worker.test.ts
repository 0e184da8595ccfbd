import { expect, test } from "vitest";
import SOURCE from "../public/sw.js?raw";

/** A browser around the worker: what its cache holds, and what the server answers; a file that the server does not have cannot be kept. */
class Around {
  readonly kept = new Map<string, string>();
  readonly #listeners = new Map<string, (event: unknown) => void>();

  constructor(public served: Record<string, string>) {
    const get = async (path: string): Promise<Response> => new Response(this.served[path] ?? "", { status: path in this.served ? 200 : 404 });
    const cache = {
      match: async (path: string) => this.kept.get(path),
      put: async (path: string, answer: Response) => void this.kept.set(path, await answer.text()),
      add: async (path: string) => {
        const answer = await get(path);
        if (!answer.ok) throw new TypeError(`cannot fetch ${path}`);
        this.kept.set(path, await answer.text());
      },
      keys: async () => [...this.kept.keys()].map((path) => ({ url: `http://here${path}` })),
      delete: async ({ url }: { url: string }) => this.kept.delete(new URL(url).pathname),
    };
    const self = { addEventListener: (name: string, listener: (event: unknown) => void) => this.#listeners.set(name, listener), skipWaiting: () => undefined };
    new Function("self", "caches", "fetch", SOURCE)(self, { open: async () => cache }, get);
  }

  async install(): Promise<void> {
    let work: Promise<void> = Promise.resolve();
    this.#listeners.get("install")!({ waitUntil: (promise: Promise<void>) => (work = promise) });
    await work.catch(() => undefined);
  }
}

const OWN = { "/favicon.svg": "icon", "/manifest.webmanifest": "{}" };

test("a page is kept only with its files: one that cannot be fetched leaves the page that works", async () => {
  const around = new Around({ ...OWN, "/": 'old <script src="/assets/index-old.js">', "/assets/index-old.js": "old" });
  await around.install();
  around.served = { ...OWN, "/": 'new <script src="/assets/index-new.js">' };
  await around.install();
  expect(around.kept.get("/")).toContain("old");
  expect(around.kept.get("/assets/index-old.js")).toBe("old");
  around.served["/assets/index-new.js"] = "new";
  await around.install();
  expect(around.kept.get("/")).toContain("new");
  expect(around.kept.has("/assets/index-old.js")).toBe(false);
});
