/** What the operator's view shows, asked for while somebody looks at it. What cannot be had keeps its last value. */

import { signal } from "@preact/signals";
import { type Api, SignedOut } from "./api";
import type { Connection } from "./connection";
import type { AttentionItem, Inbox, LogLine, OutboxState, Rule, Timeline, UsageReport, WorkingTurn } from "./types";

const LIVE_MS = 2000;
const SLOW_EVERY = 10;

export class OperationsView {
  readonly turns = signal<WorkingTurn[] | null>(null);
  readonly attention = signal<AttentionItem[] | null>(null);
  readonly inbox = signal<Inbox | null>(null);
  readonly outbox = signal<OutboxState | null>(null);
  readonly timeline = signal<Timeline | null>(null);
  readonly usage = signal<UsageReport | null>(null);
  readonly rules = signal<Rule[] | null>(null);
  readonly log = signal<LogLine[] | null>(null);
  readonly hours = signal(24);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rounds = 0;
  #looking = 0;

  constructor(private readonly api: Api, private readonly connection: Connection, private readonly status: () => Promise<void>) {}

  /** Until what it gives is called. */
  look(): () => void {
    this.#looking++;
    this.#rounds = 0;
    void this.#round();
    return () => {
      this.#looking--;
      if (this.#looking === 0) clearTimeout(this.#timer);
    };
  }

  show(hours: number): void {
    this.hours.value = hours;
    this.timeline.value = null;
    void this.#slow();
  }

  async refresh(): Promise<void> {
    this.#rounds = 0;
    await this.#round();
  }

  async #round(): Promise<void> {
    clearTimeout(this.#timer);
    if (document.visibilityState === "visible") {
      const slow = this.#rounds++ % SLOW_EVERY === 0;
      await Promise.all([this.#quick(), slow ? this.#slow() : null]);
    }
    clearTimeout(this.#timer);
    if (this.#looking > 0) this.#timer = setTimeout(() => void this.#round(), LIVE_MS);
  }

  async #quick(): Promise<void> {
    await Promise.all([
      this.status(),
      this.#ask<{ turns: WorkingTurn[] }>("turns", (found) => (this.turns.value = found.turns)),
      this.#ask<{ items: AttentionItem[] }>("attention", (found) => (this.attention.value = found.items)),
      this.#ask<Inbox>("inbox", (found) => (this.inbox.value = found)),
      this.#ask<OutboxState>("outbox", (found) => (this.outbox.value = found)),
    ]);
  }

  async #slow(): Promise<void> {
    const hours = this.hours.value;
    await Promise.all([
      this.#ask<Timeline>("timeline", (found) => { if (this.hours.value === hours) this.timeline.value = found; }, hours),
      this.#ask<{ lines: LogLine[] }>("log", (found) => (this.log.value = found.lines), hours),
      this.api.usage(7).then((found) => (this.usage.value = found), (error: unknown) => this.#failed(error)),
      this.api.rules().then((found) => (this.rules.value = found.rules), (error: unknown) => this.#failed(error)),
    ]);
  }

  async #ask<T>(name: string, then: (found: T) => void, hours?: number): Promise<void> {
    try {
      then(await this.api.operations<T>(name, hours));
      this.connection.request(true);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (error instanceof SignedOut) this.connection.signedOut();
    else this.connection.request(false);
  }
}
