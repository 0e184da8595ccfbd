import { describe, expect, test } from "vitest";
import { apply, type LogEvent, viewOf } from "../src/log";
import { NOTHING_USED, using } from "../src/models";
import type { ModelFailure, Session } from "../src/types";
import { askingAgain, failedRequest, price, used } from "../src/words";

const session = { cursor: "L.1", messages: [], earlier: null, answer_below: null, turns: [], questions: [], usage: NOTHING_USED } as unknown as Session;
const log = (...events: [string, Record<string, unknown>][]): LogEvent[] =>
  events.map(([name, data], index) => ({ id: `L.${index + 2}`, name, data: { at: "2026-01-01T00:00:00.000Z", turn_id: "t1", attempt: 1, ...data } }));
const start: [string, Record<string, unknown>] = ["turn.started", { generation: 1, cause: "message", causes: [] }];
const failed: [string, Record<string, unknown>] = ["model.failed", { step: 0, tries: 1, error: "busy", why: "overloaded", model: "chat:a", retry_at: "2026-01-01T00:00:05.000Z" }];

describe("the models of a turn", () => {
  test("responses are summed up for the turn and for the conversation, and a price that is not known is counted", () => {
    const priced = { step: 0, text: "a", provider: "chat", model: "a", usage: { input: 10, output: 5, cached: 4 }, cost: 1200 };
    const { session: after } = log(start, ["model.responded", priced], ["model.responded", { step: 1, text: "b", provider: "chat", model: "b", usage: { input: 20 }, cost: null }])
      .reduce(apply, viewOf(session));
    const sum = { requests: 2, input: 30, output: 5, cached: 4, stored: 0, thought: 0, cost: 1200, unpriced: 1 };
    expect(after.usage).toEqual(sum);
    expect(after.turns[0]).toMatchObject({ model: "chat:b", steps: 2, usage: sum });
    expect(after.turns[0]!.responses!.map(({ model, cost }) => [model, cost])).toEqual([["chat:a", 1200], ["chat:b", null]]);
    expect(using(NOTHING_USED, { usage: { input: 1 }, cost: null }).cost).toBeNull();
  });

  test("a failed request is shown until the model speaks, and stays on record", () => {
    const waiting = log(start, failed).reduce(apply, viewOf(session));
    expect(waiting.failing?.why).toBe("overloaded");
    expect(viewOf(waiting.session).failing?.why).toBe("overloaded");
    for (const name of ["text", "reasoning", "model.responded", "turn.ended"]) {
      const after = log(start, failed, [name, { step: 0, text: "x" }]).reduce(apply, viewOf(session));
      expect([name, after.failing, after.session.turns[0]!.failures!.length]).toEqual([name, null, 1]);
    }
  });

  test("thoughts grow with their step, its response settles them, and without one they go with the turn", () => {
    const think = (step: number, text: string): [string, Record<string, unknown>] => ["reasoning", { step, text }];
    const thoughts = (...events: [string, Record<string, unknown>][]) => log(start, ...events).reduce(apply, viewOf(session)).session.turns[0]!.thoughts;
    const responded: [string, Record<string, unknown>] = ["model.responded", { step: 0, text: "x", thoughts: "one two!" }];
    const ended: [string, Record<string, unknown>] = ["turn.ended", { outcome: "completed" }];
    expect(thoughts(think(0, "one "), think(0, "two"), think(1, "three"))).toEqual([{ step: 0, text: "one two", kept: false }, { step: 1, text: "three", kept: false }]);
    expect(thoughts(think(0, "one "), responded, think(0, "late"))).toEqual([{ step: 0, text: "one two!", kept: true }]);
    expect(thoughts(think(0, "one "), responded, think(1, "three"), ended)).toEqual([{ step: 0, text: "one two!", kept: true }]);
    expect(thoughts(think(0, "one "), ["model.failed", { step: 0, error: "busy" }], think(0, "two"))).toEqual([{ step: 0, text: "two", kept: false }]);
    expect(thoughts(think(0, "one "), ["turn.resumed", { attempt: 2 }])).toBeUndefined();
    expect(thoughts(think(0, "one "), ended)).toBeUndefined();
    const read = (thoughts: string): [string, Record<string, unknown>] => ["agent.read", { offset: 9, thoughts }];
    const kept = [{ step: 0, text: "one two", kept: true }];
    expect(thoughts(think(0, "one "), read("one two"), think(0, "three"))).toEqual([...kept, { step: 0, text: "three", kept: false }]);
    expect(thoughts(think(0, "one "), read("one two"), read(""), think(0, "three"), ended)).toEqual(kept);
  });
});

describe("in words", () => {
  test.each([[0, "$0.00"], [12, "$0.000012"], [1234, "$0.0012"], [98_700, "$0.099"], [120_000, "$0.12"], [1_234_567_800, "$1,234.57"]])("%i millionths", (cost, words) => {
    expect(price(cost)).toBe(words);
  });

  test("what was used", () => {
    expect(used({ ...NOTHING_USED, requests: 2, input: 1200, cached: 400, output: 30, cost: 1200, unpriced: 1 })).toEqual(["1,200 in (400 cached)", "30 out", "$0.0012 and 1 without a known price"]);
    expect(used({ ...NOTHING_USED, requests: 1, input: 1, output: 3, thought: 2, cost: null, unpriced: 1 })).toEqual(["1 in", "3 out (2 thoughts)", "price not known"]);
  });

  test("when a model is asked again", () => {
    const failure: ModelFailure = { at: "", step: 0, model: "chat:a", tries: 1, error: "busy", why: "overloaded", retry_at: "2026-01-01T00:00:05.000Z" };
    const zero = Date.parse("2026-01-01T00:00:00.000Z");
    expect(askingAgain(failure, zero)).toBe("Asking chat:a again in 5 s: overloaded.");
    expect(askingAgain(failure, zero + 9000)).toBe("Asking chat:a again: overloaded.");
    expect(askingAgain({ ...failure, retry_at: null }, zero)).toBe("chat:a did not answer: overloaded.");
    expect(failedRequest(failure)).toBe("chat:a did not answer (try 1): overloaded. Asked again.");
  });
});
