import { describe, expect, test } from "vitest";
import { type SseEvent, SseParser } from "../src/sse";

const STREAM = [
  ": hello\n\n",
  "id: L.1\nevent: text\ndata: {\"text\":\"a\"}\n\n",
  ":beat\n\n",
  "id: L.2\r\nevent: text\r\ndata: one\r\ndata: two\r\n\r\n",
  "event: end\rdata:{}\r\r",
  "data:  two spaces \u2028 stay\nunknown: x\nretry\n\n",
  "event: nothing\n\n",
].join("");

const EVENTS: SseEvent[] = [
  { id: "L.1", name: "text", data: '{"text":"a"}' },
  { id: "L.2", name: "text", data: "one\ntwo" },
  { id: "L.2", name: "end", data: "{}" },
  { id: "L.2", name: "message", data: " two spaces \u2028 stay" },
];

describe("server-sent events", () => {
  test("are the same however the network cuts them", () => {
    for (let size = 1; size <= STREAM.length; size++) {
      const parser = new SseParser();
      const found: SseEvent[] = [];
      for (let at = 0; at < STREAM.length; at += size) found.push(...parser.push(STREAM.slice(at, at + size)));
      expect(found, `in pieces of ${size}`).toEqual(EVENTS);
    }
  });

  test("an event without its blank line is not given out: its connection broke", () => {
    expect(new SseParser().push("id: L.3\nevent: text\ndata: half\n")).toEqual([]);
  });

  test("a long line in small pieces costs what it is long, not its square", () => {
    const parser = new SseParser();
    const long = `id: L.1\nevent: snapshot\ndata: ${"x".repeat(8 << 20)}\n\n`;
    const found: SseEvent[] = [];
    const began = performance.now();
    for (let at = 0; at < long.length; at += 1024) found.push(...parser.push(long.slice(at, at + 1024)));
    expect(found.map((event) => event.data.length)).toEqual([8 << 20]);
    expect(performance.now() - began).toBeLessThan(2000);
  });
});
