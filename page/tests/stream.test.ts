import { describe, expect, test } from "vitest";
import type { Fetch } from "../src/api";
import { delayMs } from "../src/backoff";
import { Pause } from "../src/pause";
import { follow } from "../src/stream";

/** A connection that says `text` in one piece and then ends. */
function saying(text: string): Response {
  return new Response(new TextEncoder().encode(text), { headers: { "Content-Type": "text/event-stream" } });
}

function event(seq: number): string {
  return `id: L.${seq}\nevent: text\ndata: {"seq":${seq}}\n\n`;
}

async function watch(connections: (() => Response | Promise<Response>)[]): Promise<{ end: string; asked: string[]; seen: string[]; states: string[] }> {
  const stop = new AbortController();
  const asked: string[] = [];
  const seen: string[] = [];
  const states: string[] = [];
  let cursor = "L.0";
  const fetch: Fetch = async (path) => {
    asked.push(decodeURIComponent(path.split("after=")[1]!));
    const next = connections.shift();
    if (next === undefined) {
      stop.abort();
      throw new TypeError("stopped");
    }
    return next();
  };
  const end = await follow({
    fetch, path: () => `/api/events?session=s1&after=${cursor}`, connected: () => states.push("connected"), disconnected: () => states.push("disconnected"),
    heard: () => undefined,
    received: (got) => seen.push((cursor = got.id)),
    pause: new (class extends Pause { override async wait(): Promise<void> {} })(),
    random: () => 0, signal: stop.signal,
  });
  return { end, asked, seen, states };
}

describe("following a stream", () => {
  test("goes on after the last event, whether the connection ended, was ended on purpose, or could not be made", async () => {
    const found = await watch([
      () => saying(event(1) + event(2) + "id: L.3\nevent: text\ndata: {\"ha"),
      () => { throw new TypeError("refused"); },
      () => new Response("{}", { status: 503 }),
      () => saying(`${event(3)}event: end\ndata: {"reason":"shutdown"}\n\n`),
      () => saying(event(4)),
    ]);
    expect(found.asked).toEqual(["L.0", "L.2", "L.2", "L.2", "L.3", "L.4"]);
    expect(found.seen).toEqual(["L.1", "L.2", "L.3", "L.4"]);
    expect(found.end).toBe("stopped");
    expect(found.states).toEqual(["connected", "disconnected", "disconnected", "disconnected", "connected", "disconnected", "connected", "disconnected"]);
  });

  test("ends where trying again is no use", async () => {
    expect((await watch([() => new Response("{}", { status: 401 })])).end).toBe("signed-out");
    expect((await watch([() => new Response("{}", { status: 404 })])).end).toBe("gone");
  });
});

describe("the wait before the next try", () => {
  test("grows from a fifth of a second to three seconds, scattered downwards", () => {
    expect([1, 2, 3, 4, 5, 6, 50].map((tries) => delayMs(tries, 1))).toEqual([200, 400, 800, 1600, 3000, 3000, 3000]);
    expect(delayMs(50, 0)).toBe(2250);
  });

  test("is cut short by a wake", async () => {
    const pause = new Pause();
    const waited = pause.wait(60_000);
    pause.wake();
    await waited;
  });
});
