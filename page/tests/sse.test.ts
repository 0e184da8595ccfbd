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

  test("a byte order mark at the beginning is skipped", () => {
    expect(new SseParser().push("\ufeffdata: x\n\n")).toEqual([{ id: "", name: "message", data: "x" }]);
  });
});
