/**
 * What the user sent and the server has not acknowledged yet. An item is in storage, under its `client_id`, before the first
 * try, and leaves it only when the server said that it is on disk, or when the user discards it. Every try carries the same
 * `client_id`, so a try whose answer was lost does no harm. One item is one key: tabs share the storage without overwriting each other.
 */

import { Refused, SignedOut, Unavailable } from "./api";
import { isCommand } from "./commands";
import type { Attached, Message } from "./types";

export type Mode = "queue" | "steer" | "interrupt";

/** A message, as the server takes it. */
export interface Post {
  text: string;
  client_id: string;
  mode?: Mode;
  attachments?: string[];
}

/** What is said to an approval. */
export interface Verdict {
  verdict: "approve" | "deny";
  scope: "once" | "session";
  reason?: string;
}

/** How an answer is given: as words, as one of the choices, or as a verdict. */
export type Answer = { client_id: string } & ({ text: string } | { choice: string } | Verdict);

export interface Item {
  client_id: string;
  /** A session, or a conversation that has none yet: `new:` and a name of our own. */
  conversation: string;
  /** The question this answers, or null for a message. */
  question_id: string | null;
  text: string;
  /** Of an answer: the text is one of the question's choices, or stands for a verdict. */
  chosen?: boolean;
  verdict?: Verdict;
  /** Of a message: what becomes of it while an answer is being written, and the files that go with it. */
  mode?: Mode;
  attachments?: Attached[];
  /** Keeps the order of sending. */
  order: number;
  tries: number;
  /** Why the server said no. Such an item waits for its user. */
  refused: { code: string; message: string } | null;
}

export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

const PREFIX = "holdfast.outbox.";

export class Outbox {
  constructor(private readonly store: Store) {}

  put(item: Item): void {
    this.store.setItem(PREFIX + item.client_id, JSON.stringify(item));
  }

  remove(client_id: string): void {
    this.store.removeItem(PREFIX + client_id);
  }

  get(client_id: string): Item | null {
    return parse(this.store.getItem(PREFIX + client_id));
  }

  /** Everything that is kept, in the order of sending. */
  items(): Item[] {
    const items: Item[] = [];
    for (let i = 0; i < this.store.length; i++) {
      const key = this.store.key(i);
      if (key === null || !key.startsWith(PREFIX)) continue;
      const item = parse(this.store.getItem(key));
      if (item !== null) items.push(item);
    }
    return items.sort((a, b) => a.order - b.order || (a.client_id < b.client_id ? -1 : 1));
  }
}

function parse(stored: string | null): Item | null {
  if (stored === null) return null;
  try {
    const item = JSON.parse(stored) as Item;
    return typeof item.client_id === "string" && typeof item.text === "string" && typeof item.conversation === "string" ? item : null;
  } catch {
    return null;
  }
}

/** The server's clock and ours may differ by a little. */
const CLOCKS_MS = 5000;

/**
 * The items that the conversation shows already as messages: the server has them, and only its acknowledgement is late or was
 * lost. `named` are the client ids of messages that came over the stream; of those that a snapshot brought, only the text is known.
 * This decides what is drawn, never what is sent: a text is no proof, and every item is sent until it is acknowledged.
 */
export function shownAlready(items: Item[], messages: Message[], acknowledged: ReadonlySet<string>, named: ReadonlyMap<string, string>): Set<string> {
  const here = new Set(messages.map((message) => named.get(message.id)));
  const shown = new Set(items.map((item) => item.client_id).filter((id) => here.has(id)));
  const taken = new Set<string>();
  for (const item of items) {
    if (item.tries === 0 || item.refused !== null || shown.has(item.client_id)) continue;
    const match = messages.find((message) => message.role === "user" && message.text === item.text && !acknowledged.has(message.id)
      && !taken.has(message.id) && !named.has(message.id) && Date.parse(message.created_at) >= item.order - CLOCKS_MS);
    if (match === undefined) continue;
    taken.add(match.id);
    shown.add(item.client_id);
  }
  return shown;
}

/** What sending needs of the server. */
export interface Carrier {
  create(): Promise<{ session_id: string }>;
  post(session: string, message: Post): Promise<{ message_id: string; session_id: string }>;
  answer(question: string, answer: Answer): Promise<unknown>;
}

/** What sending tells the page. */
export interface Listener {
  changed(): void;
  /** The conversation `name` has a session now. */
  created(name: string, session_id: string): void;
  /** The server has it. `message_id` is null for an answer to a question. */
  accepted(item: Item, session_id: string, message_id: string | null): void;
}

export type Round = "done" | "again" | "signed-out";

export function isNew(conversation: string): boolean {
  return conversation.startsWith("new:");
}

/** The first words of a message, as the title of the conversation it begins, until the server has one for it. A command names nothing. */
export function titleFrom(text: string): string {
  if (isCommand(text)) return "";
  const words = text.trim().replace(/\s+/g, " ");
  const points = Array.from(words);
  if (points.length <= 60) return words;
  const cut = points.slice(0, 60).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > 30 ? cut.slice(0, space) : cut}…`;
}

/**
 * Tries to send everything that waits, once, each conversation in its order. A conversation whose item has to be tried again
 * keeps its later ones back; one that was refused does not. `again` asks for another round, later.
 */
export async function sendAll(outbox: Outbox, carrier: Carrier, listener: Listener): Promise<Round> {
  const held = new Set<string>();
  for (;;) {
    const next = outbox.items().find((item) => item.refused === null && !held.has(item.conversation));
    if (next === undefined) return held.size > 0 ? "again" : "done";
    try {
      await sendOne(next, outbox, carrier, listener);
    } catch (error) {
      if (error instanceof SignedOut) return "signed-out";
      if (!(error instanceof Unavailable)) throw error;
      held.add(next.conversation);
    }
    listener.changed();
  }
}

async function sendOne(item: Item, outbox: Outbox, carrier: Carrier, listener: Listener): Promise<void> {
  const trying = { ...item, tries: item.tries + 1 };
  outbox.put(trying);
  try {
    if (item.question_id !== null) {
      await carrier.answer(item.question_id, answerOf(item));
      outbox.remove(item.client_id);
      listener.accepted(item, item.conversation, null);
      return;
    }
    let session = item.conversation;
    if (isNew(session)) {
      session = (await carrier.create()).session_id;
      for (const other of outbox.items()) if (other.conversation === item.conversation) outbox.put({ ...other, conversation: session });
      listener.created(item.conversation, session);
    }
    const answered = await carrier.post(session, postOf(item));
    outbox.remove(item.client_id);
    listener.accepted({ ...item, conversation: session }, answered.session_id, answered.message_id);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // It may have been discarded in the meantime: then it stays so.
    const kept = outbox.get(item.client_id);
    if (kept !== null) outbox.put({ ...kept, refused: { code: error.code, message: error.message } });
  }
}

function postOf({ client_id, text, mode, attachments }: Item): Post {
  return { text, client_id, ...(mode && { mode }), ...(attachments?.length && { attachments: attachments.map((file) => file.attachment_id) }) };
}

function answerOf({ client_id, text, chosen, verdict }: Item): Answer {
  return verdict ? { ...verdict, client_id } : chosen ? { choice: text, client_id } : { text, client_id };
}
