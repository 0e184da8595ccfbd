import { describe, expect, test } from "vitest";
import { axis, picture, story, type TurnRecord } from "../src/spans";

const start = Date.parse("2026-01-01T00:00:00Z");
const at = (ms: number, name: string, data: Record<string, unknown> = {}): TurnRecord => ({ name, data: { at: new Date(start + ms).toISOString(), ...data } });

const KILLED = [
  at(0, "turn.started", { attempt: 1, pid: 41 }),
  at(1000, "tool.started", { call_id: "a", name: "terminal", arguments: { command: "ls" } }),
  at(2000, "tool.finished", { call_id: "a", outcome: "done" }),
  at(3000, "tool.started", { call_id: "b", name: "notify", arguments: {} }),
  at(8900, "turn.taken", { pid: 52 }),
  at(9000, "turn.interrupted", { reason: "crash", written: 12, lived_ms: 4000 }),
  at(9100, "turn.resumed", { attempt: 2, rule: "R9", why: "interrupted by a crash 5 s earlier" }),
  at(9200, "tool.finished", { call_id: "b", outcome: "unknown" }),
  at(10_000, "turn.ended", { outcome: "completed" }),
];

describe("a turn as a picture", () => {
  test("an interruption lasts from the last sign of life to the next attempt, not from when it was found", () => {
    const made = picture(KILLED, start + 99_000);
    expect(made.gaps).toEqual([{ from: start + 4000, to: start + 9100 }]);
    expect(made.attempts.map((span) => [span.from - start, span.to - start])).toEqual([[0, 4000], [9100, 10_000]]);
    expect(made.tools.map((span) => [span.label, span.tone])).toEqual([["terminal", "tool"], ["notify", "unknown"]]);
    expect(made.open).toBe(false);
  });

  test("which process ran it is told by its number, and nobody did while it was interrupted", () => {
    const { processes } = picture(KILLED, start);
    expect(processes.map((span) => [span.label, span.from - start, span.to - start, span.tone])).toEqual([["41", 0, 4000, "past"], ["52", 9100, 10_000, "process"]]);
    const waited = picture([at(0, "turn.started", { attempt: 1 }), at(10, "turn.waiting"), at(500, "turn.taken", { pid: 7 }), at(501, "turn.resumed", { attempt: 2 })], start + 900);
    expect(waited.processes.map((span) => [span.label, span.from - start, span.to - start])).toEqual([["", 0, 10], ["7", 501, 900]]);
    expect(story(KILLED).flatMap((each) => ("pid" in each ? [each.pid] : []))).toEqual(["41", "52"]);
  });

  test("a delivery that comes hours later leaves the turn its room, and what is only being sent is not told", () => {
    const made = picture([at(0, "turn.started", { attempt: 1 }), at(4000, "turn.ended", { outcome: "completed" }), at(4100, "delivery.changed", { state: "sending" }), at(7_200_000, "delivery.changed", { state: "sent" })], start);
    const { place, breaks, ticks } = axis(made, 100);
    expect(made.delivery).toEqual([{ at: start + 7_200_000, state: "sent" }]);
    expect(breaks).toHaveLength(1);
    expect(place(start + 4000)).toBeGreaterThan(60);
    expect(ticks.every((tick) => tick > start && tick < start + 4000)).toBe(true);
    expect(ticks.map((tick) => Math.round(place(tick)))).toEqual([20, 40, 60]);
  });

  test("one that waits is drawn until now, and nothing runs meanwhile", () => {
    const made = picture([at(0, "turn.started", { attempt: 1 }), at(50, "tool.started", { call_id: "q", name: "ask" }), at(100, "turn.waiting")], start + 3_600_000);
    expect(made.waits).toEqual([{ from: start + 100, to: start + 3_600_000 }]);
    expect(made.tools[0]!.to).toBe(start + 100);
  });

  test("a long wait is drawn short, with a break in the axis, and places keep their order", () => {
    const made = picture([at(0, "turn.started", { attempt: 1 }), at(2000, "turn.waiting")], start + 3_600_000);
    const { place, breaks } = axis(made, 100);
    expect(breaks).toHaveLength(1);
    expect([place(start), place(made.to)]).toEqual([0, 100]);
    expect(place(start + 2000)).toBeGreaterThan(50);
  });
});

test("the story names what happened in its order, with how long calls took", () => {
  const told = story(KILLED);
  expect(told.map((each) => each.kind)).toEqual(["started", "call", "call", "interrupted", "resumed", "ended"]);
  expect(told[1]).toMatchObject({ name: "terminal", outcome: "done", ms: 1000 });
  expect(told[3]).toMatchObject({ reason: "crash", written: 12, results: 1 });
});
