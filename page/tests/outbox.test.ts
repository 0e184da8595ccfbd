import { describe, expect, test } from "vitest";
import { Refused, SignedOut, Unavailable } from "../src/api";
import { type Answer, type Carrier, type Item, type Listener, Outbox, type Post, sendAll, shownAlready, titleFrom } from "../src/outbox";
import { SafeStorage } from "../src/storage";
import type { Message } from "../src/types";

const item = (client_id: string, more: Partial<Item> = {}): Item => ({
  client_id, conversation: "s1", question_id: null, text: `text of ${client_id}`, order: Number(client_id.replace(/\D/g, "")), tries: 0, refused: null, ...more,
});

/** A server that keeps what it accepts by client id, and fails as told: before it has a message, or after. */
class Server implements Carrier {
  kept = new Map<string, string>();
  tries: string[] = [];
  posts: Post[] = [];
  created = 0;
  answers: ({ question: string } & Answer)[] = [];
  fail: { before?: Error; after?: Error }[] = [];

  async post(session: string, message: { text: string; client_id: string }): Promise<{ message_id: string; session_id: string }> {
    this.tries.push(message.client_id);
    this.posts.push(message);
    const failure = this.fail.shift() ?? {};
    if (failure.before) throw failure.before;
    const known = this.kept.get(message.client_id);
    if (known !== undefined && known !== message.text) throw new Refused(409, "client_id_reused", "other text");
    this.kept.set(message.client_id, message.text);
    if (failure.after) throw failure.after;
    return { message_id: `m-${message.client_id}`, session_id: session };
  }

  async create(): Promise<{ session_id: string }> {
    const failure = this.fail.shift() ?? {};
    if (failure.before) throw failure.before;
    this.created++;
    return { session_id: `s-new-${this.created}` };
  }

  async answer(question: string, answer: Answer): Promise<unknown> {
    const failure = this.fail.shift() ?? {};
    if (failure.before) throw failure.before;
    // As the server does: the same answer again is known by its name.
    const known = this.answers.find((other) => other.question === question);
    if (known === undefined) this.answers.push({ question, ...answer });
    else if (known.client_id !== answer.client_id) throw new Refused(409, "question_answered", "It is answered.");
    if (failure.after) throw failure.after;
    return {};
  }
}

const away = new Unavailable("away");

function listener(): Listener & { heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    changed: () => undefined,
    created: (name, session_id) => heard.push(`created ${name} ${session_id}`),
    accepted: (accepted, session_id, message_id) => heard.push(`accepted ${accepted.client_id} ${session_id} ${message_id}`),
  };
}

describe("the outbox", () => {
  test("keeps an item until the server has it, and sends it once though the first acknowledgement was lost", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    server.fail = [{ after: away }];
    outbox.put(item("c1"));
    expect(await sendAll(outbox, server, listener())).toBe("again");
    expect(outbox.items()).toMatchObject([{ client_id: "c1", tries: 1 }]);
    const told = listener();
    expect(await sendAll(outbox, server, told)).toBe("done");
    expect(outbox.items()).toEqual([]);
    expect(server.tries).toEqual(["c1", "c1"]);
    expect([...server.kept.keys()]).toEqual(["c1"]);
    expect(told.heard).toEqual(["accepted c1 s1 m-c1"]);
  });

  test("is still there for a page that was loaded anew", async () => {
    const storage = new SafeStorage(null);
    new Outbox(storage).put(item("c1"));
    expect(new Outbox(storage).items()).toEqual([item("c1")]);
  });

  test("sends each conversation in order; one that is held up does not hold up the others", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    for (const one of [item("c2"), item("c1"), item("c3", { conversation: "s2" })]) outbox.put(one);
    server.fail = [{ before: away }];
    expect(await sendAll(outbox, server, listener())).toBe("again");
    expect(server.tries).toEqual(["c1", "c3"]);
    expect(await sendAll(outbox, server, listener())).toBe("done");
    expect(server.tries).toEqual(["c1", "c3", "c1", "c2"]);
  });

  test("a refusal stays on its item with the server's words and holds up nothing", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    server.fail = [{ before: new Refused(429, "lane_full", "The lane is full.") }];
    outbox.put(item("c1"));
    outbox.put(item("c2"));
    expect(await sendAll(outbox, server, listener())).toBe("done");
    expect(outbox.items()).toMatchObject([{ client_id: "c1", refused: { code: "lane_full", message: "The lane is full." } }]);
    expect([...server.kept.keys()]).toEqual(["c2"]);
  });

  test("someone who is signed out loses nothing", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    server.fail = [{ before: new SignedOut("no") }];
    outbox.put(item("c1"));
    expect(await sendAll(outbox, server, listener())).toBe("signed-out");
    expect(outbox.items()).toMatchObject([{ client_id: "c1", refused: null }]);
  });

  test("a conversation begun while the server was away is made once, and all its messages follow into it", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    outbox.put(item("c1", { conversation: "new:x" }));
    outbox.put(item("c2", { conversation: "new:x" }));
    server.fail = [{ before: away }];
    expect(await sendAll(outbox, server, listener())).toBe("again");
    expect(server.created).toBe(0);
    server.fail = [{}, { after: away }];
    const told = listener();
    await sendAll(outbox, server, told);
    await sendAll(outbox, server, told);
    expect(server.created).toBe(1);
    expect(outbox.items()).toEqual([]);
    expect(told.heard).toEqual(["created new:x s-new-1", "accepted c1 s-new-1 m-c1", "accepted c2 s-new-1 m-c2"]);
  });

  test("an answer whose acknowledgement was lost counts as given; one that came too late is shown", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    server.fail = [{ after: away }];
    outbox.put(item("c1", { question_id: "q1" }));
    expect(await sendAll(outbox, server, listener())).toBe("again");
    expect(await sendAll(outbox, server, listener())).toBe("done");
    expect(outbox.items()).toEqual([]);
    expect(server.answers).toEqual([{ question: "q1", text: "text of c1", client_id: "c1" }]);

    outbox.put(item("c2", { question_id: "q1" }));
    expect(await sendAll(outbox, server, listener())).toBe("done");
    expect(outbox.items()).toMatchObject([{ client_id: "c2", refused: { code: "question_answered" } }]);
  });

  test("a choice is given as one, and a verdict with its scope and reason", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    outbox.put(item("c1", { question_id: "q1", text: "boat", chosen: true }));
    outbox.put(item("c2", { question_id: "q2", text: "Denied: no", verdict: { verdict: "deny", scope: "once", reason: "no" } }));
    expect(await sendAll(outbox, server, listener())).toBe("done");
    expect(server.answers).toEqual([{ question: "q1", choice: "boat", client_id: "c1" }, { question: "q2", verdict: "deny", scope: "once", reason: "no", client_id: "c2" }]);
  });

  test("a message goes with its mode and its files, also where it has no words", async () => {
    const outbox = new Outbox(new SafeStorage(null));
    const server = new Server();
    const file = { attachment_id: "a1", name: "sea.png", size: 1, type: "image/png" };
    outbox.put(item("c1", { conversation: "new:x", text: "", mode: "steer", attachments: [file] }));
    outbox.put(item("c2"));
    expect(await sendAll(outbox, server, listener())).toBe("done");
    expect(server.posts).toEqual([{ text: "", client_id: "c1", mode: "steer", attachments: ["a1"] }, { text: "text of c2", client_id: "c2" }]);
  });

  test("what is in storage and is not ours, or is damaged, is passed over", () => {
    const storage = new SafeStorage(null);
    storage.setItem("holdfast.outbox.bad", "{");
    storage.setItem("holdfast.outbox.odd", '{"x":1}');
    storage.setItem("something.else", "1");
    expect(new Outbox(storage).items()).toEqual([]);
  });
});

describe("what is drawn of the outbox", () => {
  const message = (id: string, text: string, at: number): Message => ({ id, role: "user", text, parts: [{ type: "text", text }], turn_id: null, created_at: new Date(at).toISOString(), status: "complete" });
  const now = Date.parse("2030-01-01T00:00:00Z");

  test("an item the stream shows already is not drawn twice", () => {
    const items = [item("c1", { text: "yes", order: now, tries: 1 })];
    expect([...shownAlready(items, [message("m1", "yes", now + 20)], new Set(), new Map())]).toEqual(["c1"]);
  });

  test("an equal text from before, or one that is known to be another item's, hides nothing", () => {
    const items = [item("c2", { text: "yes", order: now, tries: 1 })];
    expect(shownAlready(items, [message("m1", "yes", now - 60_000)], new Set(), new Map()).size).toBe(0);
    expect(shownAlready(items, [message("m1", "yes", now - 1000)], new Set(["m1"]), new Map()).size).toBe(0);
  });

  test("a message that carries its client id is known by it, before anything else is known of the item, whatever the clocks say", () => {
    const items = [item("c1", { text: "yes", order: now, tries: 0 }), item("c2", { text: "yes", order: now + 1, tries: 1 })];
    const messages = [message("m1", "yes", now - 3_600_000), message("m2", "yes", now + 20)];
    expect([...shownAlready(items, messages, new Set(), new Map([["m1", "c1"], ["m2", "other"]]))]).toEqual(["c1"]);
  });

  test("two equal items need two messages", () => {
    const items = [item("c1", { text: "yes", order: now, tries: 1 }), item("c2", { text: "yes", order: now + 1, tries: 1 })];
    expect([...shownAlready(items, [message("m1", "yes", now)], new Set(), new Map())]).toEqual(["c1"]);
  });
});

describe("titles", () => {
  test("are the first words, cut between words and never within a character", () => {
    expect(titleFrom("  run   date\nnow ")).toBe("run date now");
    expect(titleFrom("word ".repeat(30))).toMatch(/^(word )+word…$/);
    expect(titleFrom("🪸".repeat(80))).toBe(`${"🪸".repeat(60)}…`);
  });
});
