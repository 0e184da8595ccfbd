// Keeps the page's own files, so that a reload while the server is away still shows the page. It never touches the API: what the server
// says is the server's to say. Pages are asked for first and only then taken from here; files named by their content never change.

const CACHE = "holdfast-page-1";

async function keep() {
  const cache = await caches.open(CACHE);
  const page = await fetch("/", { cache: "no-store" });
  if (!page.ok) return;
  const text = await page.clone().text();
  await cache.put("/", page);
  const files = ["/favicon.svg", "/manifest.webmanifest", ...new Set(text.match(/\/assets\/[\w.-]+/g) ?? [])];
  await Promise.all(files.map(async (file) => (await cache.match(file)) ?? cache.add(file)));
  const wanted = new Set(["/", ...files]);
  const old = (await cache.keys()).filter((request) => new URL(request.url).pathname.startsWith("/assets/index-") && !wanted.has(new URL(request.url).pathname));
  await Promise.all(old.map((request) => cache.delete(request)));
}

self.addEventListener("install", (event) => event.waitUntil(keep().then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin || url.pathname.startsWith("/api/") || url.pathname.startsWith("/v1/")) return;
  if (request.mode === "navigate") {
    event.respondWith(
      fetch(request).then(
        (answer) => {
          if (answer.ok && (url.pathname === "/" || url.pathname.startsWith("/s/"))) event.waitUntil(keep());
          return answer;
        },
        async () => (await caches.match("/")) ?? Response.error(),
      ),
    );
  } else if (url.pathname.startsWith("/assets/") || url.pathname === "/favicon.svg") {
    event.respondWith(
      caches.match(request).then(
        (kept) =>
          kept ??
          fetch(request).then((answer) => {
            const copy = answer.clone();
            if (answer.ok) event.waitUntil(caches.open(CACHE).then((cache) => cache.put(request, copy)));
            return answer;
          }),
      ),
    );
  }
});
