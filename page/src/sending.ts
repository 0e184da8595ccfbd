/** Carries the outbox to the server for as long as there is something in it. */

import { signal } from "@preact/signals";
import type { Connection } from "./connection";
import { delayMs } from "./backoff";
import { randomId } from "./ids";
import { type Carrier, type Item, type Listener, Outbox, type Round, sendAll, type Store } from "./outbox";
import { Pause } from "./pause";
import type { Attached } from "./types";

/** What the server has and the stream has not shown yet. It only bridges the moment between the two. */
export interface Sent {
  client_id: string;
  session_id: string;
  message_id: string;
  text: string;
  attachments: Attached[];
  at: number;
}

export class Sending {
  readonly items = signal<Item[]>([]);
  readonly sent = signal<Sent[]>([]);
  /** The messages that are known to be ours, by an acknowledgement. */
  readonly acknowledged = new Set<string>();
  readonly #outbox: Outbox;
  readonly #pause = new Pause();
  #running = false;
  #again = false;

  constructor(
    store: Store,
    private readonly carrier: Carrier,
    private readonly connection: Connection,
    private readonly told: { created(name: string, session_id: string): void; accepted(asked: string, session_id: string): void },
  ) {
    this.#outbox = new Outbox(store);
    this.reread();
  }

  /** Keeps the text first, then tries to send it. */
  send(conversation: string, text: string, more: Partial<Pick<Item, "question_id" | "chosen" | "verdict" | "mode" | "attachments">> = {}): void {
    const last = this.items.value[this.items.value.length - 1]?.order ?? 0;
    this.#outbox.put({ client_id: randomId(), conversation, question_id: null, text, ...more, order: Math.max(Date.now(), last + 1), tries: 0, refused: null });
    this.reread();
    this.wake();
  }

  retry(client_id: string): void {
    const item = this.#outbox.get(client_id);
    if (item === null) return;
    // A name that was used for another text is of no use to this one.
    const next = item.refused?.code === "client_id_reused" ? randomId() : client_id;
    this.#outbox.remove(client_id);
    this.#outbox.put({ ...item, client_id: next, refused: null });
    this.reread();
    this.wake();
  }

  discard(client_id: string): void {
    this.#outbox.remove(client_id);
    this.reread();
  }

  discardAll(): void {
    for (const item of this.#outbox.items()) this.#outbox.remove(item.client_id);
    this.sent.value = [];
    this.reread();
  }

  /** Another tab may have changed what is kept. */
  reread(): void {
    this.items.value = this.#outbox.items();
  }

  /** The stream shows these now. */
  seen(message_ids: Set<string>, now: number): void {
    const left = this.sent.value.filter((sent) => !message_ids.has(sent.message_id) && now - sent.at < 30_000);
    if (left.length !== this.sent.value.length) this.sent.value = left;
  }

  wake(): void {
    this.#pause.wake();
    if (this.#running) this.#again = true;
    else void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    let failures = 0;
    do {
      this.#again = false;
      if (this.#outbox.items().every((item) => item.refused !== null)) continue;
      const round = await alone(() => sendAll(this.#outbox, this.carrier, this.#listener));
      this.reread();
      if (round === "signed-out") {
        this.connection.signedOut();
        break;
      }
      failures = round === "again" ? failures + 1 : 0;
      if (round === "again") {
        this.connection.request(false);
        this.#again = true;
        await this.#pause.wait(delayMs(failures, Math.random()));
      }
    } while (this.#again);
    this.#running = false;
  }

  readonly #listener: Listener = {
    changed: () => this.reread(),
    created: (name, session_id) => this.told.created(name, session_id),
    accepted: (item, session_id, message_id) => {
      if (message_id !== null) {
        this.acknowledged.add(message_id);
        this.sent.value = [...this.sent.value, { client_id: item.client_id, session_id, message_id, text: item.text, attachments: item.attachments ?? [], at: Date.now() }];
      }
      this.reread();
      this.told.accepted(item.conversation, session_id);
    },
  };
}

/** One tab sends at a time, where the browser can arrange that; elsewhere the `client_id` makes a second try harmless. */
async function alone(round: () => Promise<Round>): Promise<Round> {
  if (!("locks" in navigator) || navigator.locks === undefined) return round();
  return navigator.locks.request("holdfast.outbox", round) as Promise<Round>;
}
