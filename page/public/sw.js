// Keeps the page's own files, so that a reload while the server is away still shows the page. It never touches the API: what the server
// says is the server's to say. Pages are asked for first and taken from here if no answer comes; files named by their content never change.

const CACHE = "holdfast-page-1";
// A server that hangs, or a line that is very slow, must not keep the page from those who have it here.
const PATIENCE_MS = 3000;

async function keep() {
  const cache = await caches.open(CACHE);
  const page = await fetch("/", { cache: "no-store" });
  if (!page.ok) return;
  const text = await page.clone().text();
  const files = ["/favicon.svg", "/manifest.webmanifest", ...new Set(text.match(/\/assets\/[\w.-]+/g) ?? [])];
  await Promise.all(files.map(async (file) => (await cache.match(file)) ?? cache.add(file)));
  await cache.put("/", page); // Last: a page without its files would show nothing.
  const wanted = new Set(["/", ...files]);
  const old = (await cache.keys()).filter((request) => new URL(request.url).pathname.startsWith("/assets/index-") && !wanted.has(new URL(request.url).pathname));
  await Promise.all(old.map((request) => cache.delete(request)));
}

/** The answer, or the page that is kept here where there is none by then. */
async function soon(answer) {
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
  const found = await Promise.race([answer.catch(() => undefined), late]);
  return found ?? (await caches.match("/")) ?? answer;
}

self.addEventListener("install", (event) => event.waitUntil(keep().then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin || url.pathname.startsWith("/api/") || url.pathname.startsWith("/v1/")) return;
  if (request.mode === "navigate") {
    const answer = fetch(request);
    const is_page = url.pathname === "/" || url.pathname.startsWith("/s/");
    event.waitUntil(answer.then((found) => (found.ok && is_page ? keep() : undefined)).catch(() => undefined));
    event.respondWith(soon(answer));
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

/** Back to the page, in the tab that shows the conversation already, if one does. */
async function show(session) {
  const path = `/s/${encodeURIComponent(session)}`;
  const tabs = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const tab = tabs.find((each) => new URL(each.url).pathname === path) ?? tabs[0];
  if (tab === undefined) return self.clients.openWindow(path);
  tab.postMessage({ open: session });
  return tab.focus().catch(() => undefined);
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const session = event.notification.data?.session_id;
  if (session) event.waitUntil(show(session));
});
