import { describe, expect, test } from "vitest";
import { answerText, requestOf, withMark, withText, write, writing, withCuts } from "../src/answers";
import { apply, type LogEvent, viewOf } from "../src/log";
import { NOTHING_USED } from "../src/models";
import type { Message, Part, Session, Turn } from "../src/types";
import { cutWords } from "../src/words";

const ids = (parts: Part[]) => parts.map((part) => `${part.id} ${part.type === "text" ? part.text : part.type === "call" ? part.call_id : part.type}`);

describe("the parts of an answer", () => {
  test("a call stands behind the text that was said before it, and keeps its number whatever becomes of the texts", () => {
    let parts = withText([], "t", 0, "🪸 one ");
    parts = withMark(parts, "t", 0, 6, { call_id: "a" });
    parts = withMark(parts, "t", 0, 6, { call_id: "b" });
    parts = withText(parts, "t", 0, "🪸 one two");
    expect(ids(parts)).toEqual(["t.0.0 🪸 one ", "t.0.1 a", "t.0.3 b", "t.0.4 two"]);
    expect(ids(withText(parts, "t", 0, "x"))).toEqual(["t.0.0 x", "t.0.1 a", "t.0.3 b"]);
  });

  test("the text of an answer is the last that was said", () => {
    const parts = withMark(withText(withText([], "t", 0, "one"), "t", 1, "two"), "t", 2, 0, { call_id: "a" });
    expect(answerText(parts)).toBe("two");
  });

  test("a piece at the end grows the last text, one before a call rewrites what stood there", () => {
    const parts = withMark(withText([], "t", 0, "one "), "t", 0, 4, { call_id: "a" });
    const grown = write(writing(parts, "t", 0, 1), parts, 4, "two");
    expect(ids(grown.parts)).toEqual(["t.0.0 one ", "t.0.1 a", "t.0.2 two"]);
    expect(ids(write(grown.writing, grown.parts, 7, "!").parts)).toEqual(["t.0.0 one ", "t.0.1 a", "t.0.2 two!"]);
    expect(ids(write(grown.writing, grown.parts, 0, "other").parts)).toEqual(["t.0.0 othe", "t.0.1 a", "t.0.2 r"]);
  });
});

describe("pieces that come late", () => {
  const session = { session_id: "s", cursor: "L.1", messages: [], turns: [], questions: [], earlier: null, usage: NOTHING_USED } as unknown as Session;
  const log = (...events: [string, Record<string, unknown>][]): LogEvent[] => events.map(([name, data], index) => ({ id: `L.${index + 2}`, name, data: { at: "t", turn_id: "t", ...data } }));
  const said = (events: LogEvent[]) => events.reduce(apply, viewOf(session)).session.messages.filter((m) => m.role === "assistant").map((m) => m.text);
  const begun: [string, Record<string, unknown>][] = [
    ["turn.started", { attempt: 1, generation: 1, cause: "message", causes: [] }], ["text", { attempt: 1, step: 0, offset: 0, text: "1 2 " }],
    ["turn.interrupted", { attempt: 1, reason: "crash", restarts: 1, written: 4 }], ["turn.resumed", { attempt: 2, rule: "R9", reason: "crash" }],
  ];

  test("change nothing that a later attempt has said, and are kept until it says something", () => {
    const late: [string, Record<string, unknown>] = ["text", { attempt: 1, step: 0, offset: 4, text: "3 " }];
    expect(said(log(...begun, late))).toEqual(["1 2 3 "]);
    const next: [string, Record<string, unknown>] = ["text", { attempt: 2, step: 0, offset: 4, text: "three" }];
    expect(said(log(...begun, next, late))).toEqual(["1 2 three"]);
  });

  test("change nothing that is on record", () => {
    expect(said(log(...begun, ["model.responded", { attempt: 2, step: 0, text: "whole" }], ["text", { attempt: 1, step: 0, offset: 0, text: "old" }]))).toEqual(["whole"]);
  });
});

test("an interruption stands in the text where it happened, and at its end where the text is shorter", () => {
  const row = (attempt: number, written: number) => ({ id: `c${attempt}`, role: "interruption" as const, text: "", parts: [], turn_id: "t", created_at: "", status: "complete" as const, attempt, written });
  const parts = [{ type: "text" as const, id: "t.0.0", step: 0, text: "1 2 🪸 4" }];
  const shown = withCuts(parts, [row(2, 4), row(3, 5)]);
  expect(shown.map((part) => (part.type === "text" ? part.text : part.type))).toEqual(["1 2 ", "cut", "🪸", "cut", " 4"]);
  const word = [{ type: "text" as const, id: "t.0.0", step: 0, text: "18 19 20" }];
  expect(withCuts(word, [row(2, 4)]).map((part) => (part.type === "text" ? part.text : part.type)), "not in the middle of a word").toEqual(["18 ", "cut", "19 20"]);
  expect(withCuts(parts, [row(2, 90)]).map((part) => part.type)).toEqual(["text", "cut"]);
  expect(withCuts(parts, [row(2, 7)]).map((part) => part.type)).toEqual(["text", "cut"]);
});

test("an interruption of a step stands behind what was kept of it, and before what is written again", () => {
  const row = (step: number, offset: number | null) => ({ id: `c${step}`, role: "interruption" as const, text: "", parts: [], turn_id: "t", created_at: "", status: "complete" as const, attempt: 2, written: 3, step, offset });
  const parts = [{ type: "text" as const, id: "t.0.0", step: 0, text: "one" }, { type: "call" as const, id: "t.0.1", step: 0, offset: 3, call_id: "a" }, { type: "text" as const, id: "t.1.0", step: 1, text: "two" }];
  const drawn = (...rows: ReturnType<typeof row>[]) => withCuts(parts, rows).map((part) => (part.type === "text" ? part.text : part.type));
  expect(drawn(row(1, 0))).toEqual(["one", "call", "cut", "two"]);
  expect(drawn(row(1, null))).toEqual(["one", "call", "two", "cut"]);
  expect(drawn(row(0, 0), row(1, 0))).toEqual(["cut", "one", "call", "cut", "two"]);
  expect(drawn(row(0, null))).toEqual(["one", "call", "cut", "two"]);
  expect(drawn(row(2, 0))).toEqual(["one", "call", "two", "cut"]);
});

test("only what had been written of the interrupted step is said to be written again", () => {
  const row = { id: "c", role: "interruption" as const, text: "Interrupted by a crash. What had been written is kept.", parts: [], turn_id: "t", created_at: "", status: "complete" as const, attempt: 2, step: 1, offset: 0, reason: "crash" };
  const parts = [{ type: "text" as const, id: "t.0.0", step: 0, text: "one" }, { type: "call" as const, id: "t.0.1", step: 0, offset: 3, call_id: "a" }, { type: "text" as const, id: "t.1.0", step: 1, text: "two" }];
  const kept = (written: number): string[] => withCuts(parts, [{ ...row, written }]).flatMap((part) => (part.type === "cut" ? [cutWords(part.row).kept] : []));
  expect(kept(3), "a call was interrupted, after all of the first step").toEqual(["What had been written is kept."]);
  expect(kept(7)).toEqual(["This part was written again from here."]);
});

describe("what a turn was asked for", () => {
  const turn = { id: "t" } as Turn;
  const row = (id: string, role: string, more: object = {}) => ({ id, role, turn_id: "t", text: id, parts: [], ...more }) as unknown as Message;

  test("it is what the turn started from, not what was said later to steer it", () => {
    expect(requestOf([row("earlier", "user", { turn_id: "s" }), row("request", "user"), row("answer", "assistant"), row("steered", "user")], turn)?.id).toBe("request");
  });

  test("it is not an answer to a question, and nothing where no person asked", () => {
    expect(requestOf([row("said", "user", { answers: {} })], turn)).toBe(null);
    expect(requestOf([row("due", "cause"), row("steered", "user")], turn)).toBe(null);
  });
});
