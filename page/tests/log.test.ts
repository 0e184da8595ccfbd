import { describe, expect, test } from "vitest";
import { apply, arrivesLate, isForeign, type LogEvent, liveTurn, openTurn, prepend, reading, type View, viewOf } from "../src/log";
import { NOTHING_USED } from "../src/models";
import type { Session } from "../src/types";
import { standing, turnEnd } from "../src/words";

function session(): Session {
  return {
    session_id: "s1", session_key: "agent:main:web:dm:1", title: "A title", created_at: "t0", updated_at: "t0", state: "idle", generation: 0,
    suspended: false, resume_pending: false, resume_reason: null, last_resume_marked_at: null, was_auto_reset: false, auto_reset_reason: null,
    interrupted_restarts: 0, current: true, left: false, rule: null, why: null, pinned: false, archived: false, queued: 0, model: null, cursor: "L.1", messages: [], earlier: null, answer_below: null, turns: [], questions: [], usage: NOTHING_USED,
  };
}

/** A log that is written event by event, from sequence 2 on. */
class Log {
  events: LogEvent[] = [];
  attempt = 1;

  add(name: string, data: Record<string, unknown> = {}): this {
    const seq = this.events.length + 2;
    if (name === "turn.started" || name === "turn.resumed") this.attempt = data.attempt as number;
    this.events.push({ id: `L.${seq}`, name, data: { at: `t${seq}`, ...data } });
    return this;
  }

  message(id: string, text: string): this {
    return this.add("message.accepted", { message_id: id, text, mode: "queue" });
  }

  start(turn: string, message: string, text: string, generation = 1): this {
    return this.add("turn.started", { turn_id: turn, attempt: 1, generation, cause: "message", causes: [message] })
      .add("message.written", { turn_id: turn, message_id: message, role: "user", text });
  }

  say(turn: string, offset: number, text: string, step = 0): this {
    return this.add("text", { turn_id: turn, attempt: this.attempt, step, offset, text });
  }

  view(from: View = viewOf(session())): View {
    return this.events.reduce(apply, from);
  }
}

const started = () => new Log().message("m1", "a").start("t1", "m1", "a");
const shown = (view: View) => view.session.messages.map((message) => `${message.role}:${message.text}`);

describe("the fold over the log", () => {
  test("a message, its turn and its answer", () => {
    const log = new Log().message("m1", "hello").start("t1", "m1", "hello").say("t1", 0, "Hi").say("t1", 2, " there");
    const running = log.view();
    expect(shown(running)).toEqual(["user:hello", "assistant:Hi there"]);
    expect(running.session.messages.map((message) => [message.turn_id, message.status])).toEqual([["t1", "complete"], ["t1", "partial"]]);
    expect(running.session).toMatchObject({ state: "running", queued: 0, generation: 1, cursor: "L.6" });

    const ended = log.add("message.written", { turn_id: "t1", message_id: "x", role: "assistant", text: "Hi there." })
      .add("turn.ended", { turn_id: "t1", outcome: "completed" }).view();
    expect(shown(ended)).toEqual(["user:hello", "assistant:Hi there."]);
    expect(ended.session).toMatchObject({ state: "idle", updated_at: "t8" });
    expect(ended.session.turns).toEqual([{
      id: "t1", generation: 1, attempt: 1, steps: 0, cause: "message", state: "ended", outcome: "completed", rule: null, started_at: "t3", ended_at: "t8", error: null,
    }]);
    expect(openTurn(ended.session)).toBeNull();
  });

  test("a message keeps the client id it was sent with, also over a snapshot", () => {
    const log = new Log().add("message.accepted", { message_id: "m1", text: "a", client_id: "c1" }).message("m2", "b");
    log.add("message.written", { message_id: "m3", role: "user", text: "/status", client_id: "c3" });
    const names = [["m1", "c1"], ["m3", "c3"]];
    expect([...log.view().named]).toEqual(names);
    expect([...apply(log.view(), { id: "K.1", name: "snapshot", data: { ...session() } as never }).named]).toEqual(names);
  });

  test("what was seen already is not applied again, also when a reconnect repeats it", () => {
    const log = new Log().message("m1", "hello").start("t1", "m1", "hello").say("t1", 0, "Hi").say("t1", 2, " there");
    const once = log.view();
    expect(log.view(once)).toBe(once);
    const overlapping = [...log.events.slice(0, 4), ...log.events.slice(2)].reduce(apply, viewOf(session()));
    expect(overlapping.session).toEqual(once.session);
  });

  test("every place to leave and come back gives the same view", () => {
    const log = new Log().message("m1", "a").start("t1", "m1", "a").say("t1", 0, "one 🪸").message("m2", "b")
      .add("turn.interrupted", { turn_id: "t1", attempt: 1, reason: "crash", restarts: 1 })
      .add("turn.left", { turn_id: "t1", attempt: 1, rule: "R7", why: "interrupted by a crash 2 s earlier" })
      .add("message.written", { message_id: "c1", role: "user", text: "/resume" }).add("session.resumed", { by: "owner" })
      .add("turn.resumed", { turn_id: "t1", attempt: 2, rule: "R9", reason: "crash", why: "interrupted by a crash 12 s earlier" })
      .say("t1", 5, " two").add("turn.ended", { turn_id: "t1", outcome: "completed" }).start("t2", "m2", "b", 2).say("t2", 0, "three")
      .message("m3", "c").add("session.changed", { suspended: true }).add("message.refused", { message_id: "m3", reason: "suspended" })
      .add("turn.interrupted", { turn_id: "t2", attempt: 1, reason: "suspended", restarts: 0, written: 5 }).add("turn.left", { turn_id: "t2", rule: "R1" });
    const whole = log.view().session;
    for (let left = 0; left <= log.events.length; left++) {
      const before = log.events.slice(0, left).reduce(apply, viewOf(session()));
      // A snapshot goes over the wire: nothing may live in the view that is not in its JSON.
      const back = apply(viewOf(session()), { id: before.session.cursor, name: "snapshot", data: JSON.parse(JSON.stringify(before.session)) });
      expect(log.events.slice(left).reduce(apply, back).session, `left after ${left}`).toEqual(whole);
    }
  });

  test("offsets are code points: a text goes on, or begins anew", () => {
    const log = new Log().message("m1", "x").start("t1", "m1", "x").say("t1", 0, "🪸🌊").say("t1", 2, "!").say("t1", 1, "kelp");
    expect(shown(log.view())).toEqual(["user:x", "assistant:🪸kelp"]);
    expect(shown(log.say("t1", 0, "anew").say("t1", 4, "er").view())).toEqual(["user:x", "assistant:anewer"]);
  });

  test("a long answer leaves the other messages untouched", () => {
    const log = new Log().message("m1", "a").start("t1", "m1", "a").say("t1", 0, "one").add("turn.ended", { turn_id: "t1", outcome: "completed" })
      .message("m2", "b").start("t2", "m2", "b", 2).say("t2", 0, "two");
    const before = log.view();
    const after = log.say("t2", 3, " more").view(before);
    expect(after.session.messages.slice(0, 3).every((message, index) => message === before.session.messages[index])).toBe(true);
    expect(after.session.messages[3]).not.toBe(before.session.messages[3]);
  });

  test("messages that come while a turn runs wait at the end, in order, and are counted", () => {
    const log = new Log().message("m1", "a").start("t1", "m1", "a").message("m2", "b").message("m3", "c").say("t1", 0, "answer");
    const view = log.view();
    expect(shown(view)).toEqual(["user:a", "assistant:answer", "user:b", "user:c"]);
    expect(view.session).toMatchObject({ queued: 2, state: "running" });
    const ended = log.add("turn.ended", { turn_id: "t1", outcome: "completed" }).view();
    expect(ended.session.state).toBe("queued");
    const next = log.start("t2", "m2", "b", 2).say("t2", 0, "second").view();
    expect(shown(next)).toEqual(["user:a", "assistant:answer", "user:b", "assistant:second", "user:c"]);
    expect(next.session).toMatchObject({ queued: 1, generation: 2 });
  });

  test("a refused message stays in its place, waits no longer, and a notice says why", () => {
    const view = new Log().message("m1", "a").start("t1", "m1", "a").message("m2", "b").message("m3", "c")
      .add("message.refused", { message_id: "m2", reason: "suspended" }).add("message.written", { message_id: "m2.refused", role: "notice", text: "Not answered." })
      .say("t1", 0, "answer").view();
    expect(shown(view)).toEqual(["user:a", "assistant:answer", "user:b", "notice:Not answered.", "user:c"]);
    expect(view.session.messages.map((message) => message.status)).toEqual(["complete", "partial", "refused", "complete", "complete"]);
    expect(view.session.queued).toBe(1);
  });

  test("a command and its reply stand before what waits, and count for nothing", () => {
    const view = new Log().message("m1", "a").start("t1", "m1", "a").message("m2", "b")
      .add("message.written", { message_id: "c1", role: "user", text: "/status" }).add("message.written", { message_id: "c1.reply", role: "notice", text: "Running." }).view();
    expect(shown(view)).toEqual(["user:a", "user:/status", "notice:Running.", "user:b"]);
    expect(view.session.messages[1]).toMatchObject({ status: "command", turn_id: null });
    expect(view.session).toMatchObject({ queued: 1, state: "running" });
  });

  test("a cut turn says so, is resumed below the cut, and its answer stays one message", () => {
    const log = new Log().message("m1", "count").start("t1", "m1", "count").say("t1", 0, "1 2")
      .add("turn.interrupted", { turn_id: "t1", attempt: 1, reason: "crash", restarts: 1 });
    const cut = log.view();
    expect(cut.session).toMatchObject({ state: "interrupted", resume_pending: true, resume_reason: "crash", interrupted_restarts: 1 });
    expect(cut.session.messages.map((message) => message.role)).toEqual(["user", "assistant", "interruption"]);
    expect(cut.session.messages[2]).toMatchObject({ id: "t1.cut.1", state: "recovered", text: "Interrupted by a crash. What had been written is kept." });

    const resumed = log.add("turn.resumed", { turn_id: "t1", attempt: 2, rule: "R9", reason: "crash", why: "interrupted by a crash 12 s earlier" }).say("t1", 3, " 3").view();
    expect(resumed.session.messages.map((message) => message.role)).toEqual(["user", "interruption", "assistant"]);
    expect(resumed.session.messages[1]!.text).toBe("Interrupted by a crash. What had been written is kept.");
    expect(resumed.session.messages[1]).toMatchObject({ rule: "R9", attempt: 2, decision: "resumed: rule R9, interrupted by a crash 12 s earlier" });
    expect(resumed.session).toMatchObject({ rule: "R9", why: "interrupted by a crash 12 s earlier" });
    expect(resumed.session.messages[2]!.text).toBe("1 2 3");
    expect(resumed.session).toMatchObject({ state: "running", turns: [{ attempt: 2, rule: "R9", state: "running" }] });

    const ended = log.add("turn.ended", { turn_id: "t1", outcome: "completed" }).view();
    expect(ended.session).toMatchObject({ resume_pending: false, resume_reason: null, interrupted_restarts: 0 });
  });

  test("a cut turn that is not resumed says by which rule", () => {
    const view = new Log().message("m1", "a").start("t1", "m1", "a").add("turn.interrupted", { turn_id: "t1", attempt: 1, reason: "shutdown_timeout", restarts: 3 })
      .add("turn.ended", { turn_id: "t1", outcome: "set_aside", rule: "R2", why: "interrupted by a shutdown 3 s earlier" }).view();
    expect(view.session.messages[1]!.text).toBe("Interrupted by a shutdown before anything was written.");
    expect(view.session.messages[1]).toMatchObject({ decision: "set aside: rule R2, interrupted by a shutdown 3 s earlier" });
    expect(view.session.turns[0]).toMatchObject({ state: "ended", outcome: "set_aside", rule: "R2" });
  });

  test("a cut turn that is left is nothing under way, until it is resumed and decided upon again", () => {
    const log = new Log().message("m1", "a").start("t1", "m1", "a").add("turn.interrupted", { turn_id: "t1", attempt: 1, reason: "crash", restarts: 1 })
      .add("turn.left", { turn_id: "t1", rule: "R7", why: "interrupted by a crash 1 s earlier" });
    const left = log.view().session;
    expect(left).toMatchObject({ state: "interrupted", left: true, rule: "R7", resume_pending: true });
    expect(left.messages[1]).toMatchObject({ decision: "left: rule R7, interrupted by a crash 1 s earlier", attempt: null });
    expect(liveTurn(left)).toBeNull();
    expect(standing(left)).toBe("The last answer was interrupted by a crash and waits until you resume it.");
    const asked = log.add("session.resumed", { by: "owner" }).view().session;
    expect(standing(asked)).toBeNull();
    expect(liveTurn(asked)).not.toBeNull();
    const resumed = log.add("turn.resumed", { turn_id: "t1", attempt: 2, rule: "R9", reason: "crash", why: "interrupted by a crash 9 s earlier" }).view().session;
    expect(resumed.messages[1]).toMatchObject({ decision: "resumed: rule R9, interrupted by a crash 9 s earlier", attempt: 2 });
  });

  test("a message that goes on from a left turn leaves the mark to the turn that completes", () => {
    const log = new Log().message("m1", "a").start("t1", "m1", "a").add("turn.interrupted", { turn_id: "t1", attempt: 1, reason: "crash", restarts: 1 })
      .add("turn.left", { turn_id: "t1", rule: "R7", why: "w" }).add("turn.ended", { turn_id: "t1", outcome: "set_aside", rule: "R7", why: "w", still_pending: true });
    expect(log.view().session).toMatchObject({ resume_pending: true, resume_reason: "crash", left: false });
    const next = log.message("m2", "b").start("t2", "m2", "b", 2).view().session;
    expect(next).toMatchObject({ resume_pending: true, rule: null, why: null });
    expect(log.add("turn.ended", { turn_id: "t2", outcome: "completed" }).view().session).toMatchObject({ resume_pending: false, resume_reason: null });
  });

  test("a suspended session is not marked by a cut, and resuming it lifts the suspension", () => {
    const log = new Log().message("m1", "a").start("t1", "m1", "a").add("session.changed", { suspended: true })
      .add("turn.interrupted", { turn_id: "t1", attempt: 1, reason: "suspended", restarts: 1, written: 0 }).add("turn.left", { turn_id: "t1", rule: "R1" });
    const suspended = log.view().session;
    expect(suspended).toMatchObject({ suspended: true, resume_pending: false, interrupted_restarts: 1 });
    expect(suspended.messages[1]).toMatchObject({ text: "Interrupted by a suspension before anything was written.", decision: "left: rule R1" });
    expect(standing(suspended)).toContain("suspended");
    const elsewhere = viewOf({ ...suspended, current: false });
    const back = apply(elsewhere, { id: "L.99", name: "session.resumed", data: { at: "t99", by: "owner" } }).session;
    expect(back).toMatchObject({ suspended: false, current: true, left: false, interrupted_restarts: 0 });
    expect(standing(back)).toBeNull();
  });

  test("a mark comes with a reason and a time, and goes with both; a sign of life changes nothing", () => {
    const marked = new Log().add("session.changed", { resume_pending: true }).add("turn.alive", { turn_id: "t1" });
    expect(marked.view().session).toMatchObject({ resume_pending: true, resume_reason: "restart_timeout", last_resume_marked_at: "t2", messages: [], cursor: "L.3" });
    expect(marked.add("session.changed", { resume_pending: false }).view().session).toMatchObject({ resume_pending: false, resume_reason: null, last_resume_marked_at: null });
  });

  test("what is missing of an output is counted where it is missing", () => {
    const log = started().add("tool.started", { turn_id: "t1", call_id: "c1", name: "terminal", arguments: {}, effect: "unsafe" })
      .add("tool.output", { turn_id: "t1", call_id: "c1", text: "begin" })
      .add("tool.output", { turn_id: "t1", call_id: "c1", text: "end", omitted: 1234567 });
    expect(log.view().session.messages[1]!.tool_calls![0]!.output).toBe("begin\n[... 1,234,567 characters left out ...]\nend");
  });

  test("earlier messages come above those that are there, each once, and only where they lead up to them", () => {
    const now = started().view();
    const later = { ...now, session: { ...now.session, earlier: "m1" } };
    const old = { ...now.session.messages[0]!, id: "m0", turn_id: "t0" };
    const page = { messages: [old, now.session.messages[0]!], earlier: "m0", turns: [{ ...now.session.turns[0]!, id: "t0" }] };
    const whole = prepend(later, page, "m1").session;
    expect(whole.messages.map((message) => message.id)).toEqual(["m0", ...now.session.messages.map((message) => message.id)]);
    expect([whole.turns.map((turn) => turn.id), whole.earlier]).toEqual([["t0", "t1"], "m0"]);
    expect(prepend(later, page, "m9")).toBe(later);
  });

  test("tool calls of one name keep their own output, and one that is made again begins anew", () => {
    const call = (id: string) => ({ turn_id: "t1", call_id: id, name: "terminal", arguments: { command: id }, effect: "unsafe" });
    const log = new Log().message("m1", "a").start("t1", "m1", "a").add("tool.started", call("c1")).add("tool.started", call("c2"))
      .add("tool.output", { turn_id: "t1", call_id: "c2", text: "two\n" }).add("tool.output", { turn_id: "t1", call_id: "c1", text: "one\n" })
      .add("tool.finished", { turn_id: "t1", call_id: "c2", outcome: "failed", result: "exit code 1" });
    expect(log.view().session.messages[1]!.tool_calls).toEqual([
      { call_id: "c1", step: 0, name: "terminal", arguments: { command: "c1" }, outcome: null, result: null, output: "one\n", started_at: "t5" },
      { call_id: "c2", step: 0, name: "terminal", arguments: { command: "c2" }, outcome: "failed", result: "exit code 1", output: "two\n", started_at: "t6", finished_at: "t9" },
    ]);
    const again = log.add("tool.started", call("c1")).add("tool.output", { turn_id: "t1", call_id: "c1", text: "anew" }).view();
    expect(again.session.messages[1]!.tool_calls!.map((one) => one.output)).toEqual(["anew", "two\n"]);
  });

  test("a row whose journal is late waits, counts its tries and ends neutral; what arrives is read from the server", () => {
    const log = started().add("turn.interrupted", { turn_id: "t1", attempt: 1, reason: "crash", restarts: 1, written: 0, stream_id: "t1.1" });
    const changed = (state: string, tries = 0) => log.add("journal.changed", { turn_id: "t1", stream_id: "t1.1", state, tries, text: "", call_ids: [] }).view().session.messages[1];
    expect(log.view().session.messages[1]).toMatchObject({ state: "recovering", stream_id: "t1.1", tries: 0, first_seen: "t5" });
    expect(changed("recovering", 3)).toMatchObject({ state: "recovering", stream_id: "t1.1", tries: 3, first_seen: "t5" });
    const neutral = changed("neutral");
    expect([neutral!.text, neutral!.stream_id, neutral!.tries]).toEqual(["Interrupted by a crash. Some output may be missing.", undefined, undefined]);
    expect(log.events.some(arrivesLate)).toBe(false);
    expect(arrivesLate({ id: "L.9", name: "journal.changed", data: { text: "more" } })).toBe(true);
  });

  test("a question waits, and its answer belongs to the turn that asked, however it came", () => {
    const asked = new Log().message("m1", "ask").start("t1", "m1", "ask").add("question.asked", { turn_id: "t1", question_id: "q1", call_id: "c1", text: "Name?", expires_at: "t99", ends_attempt: true });
    expect(asked.view().session).toMatchObject({ state: "waiting", questions: [{ question_id: "q1", text: "Name?", turn_id: "t1", expires_at: "t99" }], turns: [{ state: "waiting" }] });

    const by_card = [...asked.events, { id: "L.6", name: "question.answered", data: { at: "t6", turn_id: "t1", question_id: "q1", call_id: "c1", text: "Kelp" } }].reduce(apply, viewOf(session()));
    expect(by_card.session).toMatchObject({ state: "running", questions: [] });
    expect(by_card.session.messages.at(-1)).toMatchObject({ id: "q1.answer", role: "user", text: "Kelp", turn_id: "t1" });

    const by_message = asked.message("m2", "Kelp").add("question.answered", { turn_id: "t1", question_id: "q1", call_id: "c1", text: "Kelp", message_id: "m2" }).view();
    expect(shown(by_message)).toEqual(["user:ask", "user:Kelp"]);
    expect(by_message.session.messages[1]).toMatchObject({ id: "m2", turn_id: "t1" });
    expect(by_message.session).toMatchObject({ queued: 0, state: "running" });
  });

  test("several questions may be open, and the turn waits until the last is answered", () => {
    const log = started();
    for (const id of ["q1", "q2"]) log.add("question.asked", { turn_id: "t1", question_id: id, call_id: `c.${id}`, text: `${id}?`, ends_attempt: false, choices: ["yes", "no"] });
    expect(log.view().session).toMatchObject({ state: "running", questions: [{ question_id: "q1", choices: ["yes", "no"] }, { question_id: "q2" }] });
    log.add("turn.waiting", { turn_id: "t1", question_ids: ["q1", "q2"] }).add("question.answered", { turn_id: "t1", question_id: "q1", call_id: "c.q1", text: "yes", last: false });
    expect(log.view().session).toMatchObject({ state: "waiting", questions: [{ question_id: "q2" }] });
    expect(log.add("question.answered", { turn_id: "t1", question_id: "q2", call_id: "c.q2", text: "no", last: true }).view().session).toMatchObject({ state: "running", questions: [] });
  });

  test("a stop is under way until the turn ends", () => {
    const log = new Log().message("m1", "hang").start("t1", "m1", "hang").add("stop.requested", { turn_id: "t1", by: "page" });
    expect(log.view().stopping).toBe("t1");
    const ended = log.add("turn.ended", { turn_id: "t1", outcome: "cancelled" }).view();
    expect(ended.stopping).toBeNull();
    expect(ended.session.turns[0]).toMatchObject({ outcome: "cancelled" });
  });

  test("names and flags change; what is unknown moves only the cursor", () => {
    const view = new Log().add("session.changed", { title: "New", pinned: true, secret: 1 }).add("delivery.changed", { delivery_id: "d", state: "sent" }).add("of.tomorrow").view();
    expect(view.session).toMatchObject({ title: "New", pinned: true, cursor: "L.4" });
    expect("secret" in view.session).toBe(false);
  });

  test("a turn whose start could not be read begins with the first of its events that can", () => {
    const view = new Log().message("m1", "a").add("damaged", { turn_id: "t1", attempt: 1, position: 0, reason: "checksum" })
      .add("message.written", { turn_id: "t1", attempt: 1, position: 1, message_id: "m1", role: "user", text: "a" }).say("t1", 0, "answer").view();
    expect(shown(view)).toEqual(["notice:One record of this conversation could not be read: checksum.", "user:a", "assistant:answer"]);
    expect(view.session).toMatchObject({ state: "running", queued: 0, generation: 1, turns: [{ id: "t1", attempt: 1, generation: 1, state: "running" }] });
  });

  test("an event of another log is recognised as such", () => {
    expect(isForeign(viewOf(session()), "K.5")).toBe(true);
    expect(isForeign(viewOf(session()), "L.5")).toBe(false);
  });
});

describe("what is read in which order", () => {
  const ids = (log: Log): string[][] => {
    const { settled, waiting } = reading(log.events.reduce(apply, viewOf(session())).session.messages);
    return [settled.map((message) => message.id), waiting.map((message) => message.id)];
  };

  test("a notice about a message that waits stands below it, and above what came later", () => {
    const log = new Log().message("m1", "one").start("t1", "m1", "one").message("m2", "two");
    log.add("message.written", { message_id: "n1", role: "notice", text: "It is kept.", turn_id: null }).message("m3", "three");
    expect(ids(log)).toEqual([["m1"], ["m2", "n1", "m3"]]);
  });

  test("what was said before anything waited stays where it was", () => {
    const log = new Log().add("message.written", { message_id: "n1", role: "notice", text: "Welcome.", turn_id: null }).message("m1", "one");
    expect(ids(log)).toEqual([["n1"], ["m1"]]);
  });

  test("a notice still stands below its message, and above the answer, when that has its turn", () => {
    const log = new Log().message("m1", "one").add("message.written", { message_id: "n1", role: "notice", text: "It is kept.", turn_id: null });
    log.start("t1", "m1", "one").add("message.written", { message_id: "n2", role: "notice", text: "Stopping.", turn_id: null });
    expect(ids(log.add("text", { turn_id: "t1", attempt: 1, offset: 0, text: "an answer" }))).toEqual([["m1", "n1", "t1.answer", "n2"], []]);
  });
});

describe("what a model no longer sees, and what was stopped for a message", () => {
  const summary = { turn_id: "t1", through: 0, summary: "S.", problem: null, trimmed: [], model: "m", usage: { input: 7 }, cost: 5 };
  const words = "The conversation has become too long for the model. It sees a summary of the earlier messages from here on.";

  test("a summary is told of above the answer, and what it used counts", () => {
    const silent = started().add("context.compacted", summary).say("t1", 0, "Hi").view();
    expect(shown(silent)).toEqual(["user:a", `notice:${words}`, "assistant:Hi"]);
    expect(silent.session.messages[1]).toMatchObject({ id: "t1.compacted.0", turn_id: "t1" });
    expect([silent.session.usage.input, silent.session.turns[0]!.usage!.cost]).toEqual([7, 5]);
    const later = started().say("t1", 0, "Hi").add("context.compacted", { ...summary, summary: "", trimmed: ["c1"], model: "" }).view();
    expect(shown(later)).toEqual(["user:a", "notice:This turn has become too long for the model. It sees only the beginning and the end of a long result.", "assistant:Hi"]);
    expect(later.session.usage.requests).toBe(0);
  });

  test("an edited message has its new words, waiting or not", () => {
    const edit = { message_id: "m1", text: "b", effect: "recorded" };
    for (const log of [new Log().message("m1", "a"), started()]) {
      const [message] = log.add("message.edited", edit).view().session.messages;
      expect(message).toMatchObject({ text: "b", parts: [{ type: "text", text: "b" }], edited_at: `t${log.events.length + 1}` });
    }
  });

  test("a turn that a message interrupted says so", () => {
    const view = started().add("stop.requested", { turn_id: "t1", by: "owner", why: "interrupted by a new message" }).add("turn.ended", { turn_id: "t1", outcome: "cancelled" }).view();
    expect(turnEnd(view.session.turns[0]!)?.text).toBe("Stopped: interrupted by a new message.");
  });
});

describe("what the server says besides", () => {
  test("a question that is closed is no longer asked", () => {
    const log = started().add("question.asked", { turn_id: "t1", question_id: "q1", call_id: "c1", form: "elicitation", text: "Which?", ends_attempt: false });
    expect(log.view().session.questions).toHaveLength(1);
    expect(log.add("question.closed", { turn_id: "t1", question_id: "q1", call_id: "c1", why: "the call that asked was interrupted" }).view().session.questions).toEqual([]);
  });

  test("a turn names the agent that was chosen, and no model before it has answered", () => {
    const turn = (model: string | null) => new Log().add("turn.started", { turn_id: "t1", attempt: 1, generation: 1, cause: "message", causes: [], model }).view().session.turns[0]!;
    expect(turn("helper").agent).toBe("helper");
    expect("agent" in turn("anthropic:opus")).toBe(false);
    expect("agent" in turn(null)).toBe(false);
  });

  test("a message to a chat has arrived when all of its messages have", () => {
    const log = started().add("message.written", { turn_id: "t1", message_id: "t1.answer", role: "assistant", text: "yes", delivery_id: "d1" });
    const delivery = () => log.view().session.messages.find((message) => message.role === "assistant")!.delivery!;
    expect(delivery()).toEqual({ delivery_id: "d1", state: "pending", states: ["pending"], tries: 0, retry_at: null, error: null });
    log.add("delivery.planned", { delivery_id: "d1", pieces: 2 }).add("delivery.changed", { delivery_id: "d1", part: 0, state: "sent", tries: 1 });
    expect(delivery().state).toBe("pending");
    log.add("delivery.changed", { delivery_id: "d1", part: 1, state: "dead", tries: 8, error: "The chat is gone" });
    expect(delivery()).toMatchObject({ state: "dead", error: "The chat is gone" });
  });
});
