/** What the operator's view shows, asked for while somebody looks at it, and what an operator does there. What cannot be had keeps its last value. */

import { signal } from "@preact/signals";
import { type Api, Refused, SignedOut } from "./api";
import type { Connection } from "./connection";
import { t } from "./i18n";
import { randomId } from "./ids";
import type { AttentionItem, BackgroundProcess, Inbox, LogLine, OutboxState, People, Platforms, Rule, Schedule, Series, Timeline, UsageReport, WorkingTurn } from "./types";

const LIVE_MS = 2000;
const SLOW_EVERY = 10;

export type Order = "pause" | "unpause" | "restart" | "stop";

/** What asks first: what will happen, and the word on the button. */
export interface Asking {
  title: string;
  says: string;
  yes: string;
  danger: boolean;
  run: () => Promise<unknown>;
}

export class OperationsView {
  readonly turns = signal<WorkingTurn[] | null>(null);
  readonly attention = signal<AttentionItem[] | null>(null);
  readonly inbox = signal<Inbox | null>(null);
  readonly outbox = signal<OutboxState | null>(null);
  readonly platforms = signal<Platforms | null>(null);
  readonly people = signal<People | null>(null);
  readonly schedules = signal<Schedule[] | null>(null);
  readonly processes = signal<BackgroundProcess[] | null>(null);
  readonly series = signal<Series | null>(null);
  readonly timeline = signal<Timeline | null>(null);
  readonly usage = signal<UsageReport | null>(null);
  readonly rules = signal<Rule[] | null>(null);
  readonly log = signal<LogLine[] | null>(null);
  readonly hours = signal(24);
  readonly days = signal(7);
  readonly asking = signal<Asking | null>(null);
  /** Something that was ordered is being done. */
  readonly busy = signal(false);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rounds = 0;
  #looking = 0;

  constructor(private readonly api: Api, private readonly connection: Connection, private readonly status: () => Promise<void>, private readonly say: (text: string) => void) {}

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

  showDays(days: number): void {
    this.days.value = days;
    this.usage.value = null;
    void this.#slow();
  }

  async refresh(): Promise<void> {
    this.#rounds = 0;
    await this.#round();
  }

  // What an operator does

  async administer(what: Order): Promise<void> {
    this.busy.value = true;
    await this.#done(this.api.admin(what, what === "pause" ? { for_s: 3600 } : {}), t().ops.ask.done[what]);
    this.busy.value = false;
  }

  stopTurn(session_id: string, turn_id: string): Promise<boolean> {
    return this.#done(this.api.stop(session_id, turn_id, randomId()));
  }

  resume(session_id: string): Promise<boolean> {
    return this.#done(this.api.resume(session_id, randomId()));
  }

  removeRule(rule_id: string): Promise<boolean> {
    return this.#done(this.api.removeRule(rule_id));
  }

  letIn(platform: string, user: string, name: string): Promise<boolean> {
    return this.#done(this.api.order("POST", "/api/ops/people", { platform, user, name }), t().ops.people.done(name || user));
  }

  /** By the code that a stranger was given. */
  letInByCode(code: string): Promise<boolean> {
    return this.#done(this.api.order("POST", "/api/ops/people", { code }), t().ops.people.doneByCode);
  }

  turnAway(platform: string, user: string): Promise<boolean> {
    return this.#done(this.api.order("DELETE", `/api/ops/people/${encodeURIComponent(platform)}/${encodeURIComponent(user)}`));
  }

  pauseSchedule(schedule_id: string, paused: boolean): Promise<boolean> {
    return this.#done(this.api.order("PATCH", `/api/schedules/${encodeURIComponent(schedule_id)}`, { paused }));
  }

  removeSchedule(schedule_id: string): Promise<boolean> {
    return this.#done(this.api.order("DELETE", `/api/schedules/${encodeURIComponent(schedule_id)}`));
  }

  endProcess(process_id: string): Promise<boolean> {
    return this.#done(this.api.order("POST", `/api/processes/${encodeURIComponent(process_id)}/kill`, {}));
  }

  decideDelivery(delivery_id: string, action: "retry" | "drop" | "sent"): Promise<boolean> {
    return this.#done(this.api.order("POST", `/api/ops/outbox/${encodeURIComponent(delivery_id)}`, { action }));
  }

  /** Gives whether it was done. */
  async #done(request: Promise<unknown>, done: string | null = null): Promise<boolean> {
    let well = false;
    try {
      await request;
      well = true;
      if (done !== null) this.say(done);
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      else this.say(error instanceof Refused ? error.message : t().common.away);
    }
    await this.refresh();
    return well;
  }

  // What is asked for

  async #round(): Promise<void> {
    clearTimeout(this.#timer);
    if (document.visibilityState === "visible") {
      const slow = this.#rounds++ % SLOW_EVERY === 0;
      const [, told] = await Promise.all([this.#quick(), slow ? this.#slow() : true]);
      if (!told) this.#rounds = 0; // What is asked for rarely is not waited for until its turn comes again.
    }
    clearTimeout(this.#timer);
    if (this.#looking > 0) this.#timer = setTimeout(() => void this.#round(), LIVE_MS);
  }

  async #quick(): Promise<void> {
    await Promise.all([
      this.status(),
      this.#ask<{ turns: WorkingTurn[] }>("/api/ops/turns", (found) => (this.turns.value = found.turns)),
      this.#ask<{ items: AttentionItem[] }>("/api/ops/attention", (found) => (this.attention.value = found.items)),
      this.#ask<Inbox>("/api/ops/inbox", (found) => (this.inbox.value = found)),
      this.#ask<OutboxState>("/api/ops/outbox", (found) => (this.outbox.value = found)),
      this.#ask<{ processes: BackgroundProcess[] }>("/api/processes", (found) => (this.processes.value = found.processes)),
      this.#ask<Platforms>("/api/ops/platforms", (found) => (this.platforms.value = found)),
    ]);
  }

  /** Gives whether the server answered everything. */
  async #slow(): Promise<boolean> {
    const hours = this.hours.value;
    const days = this.days.value;
    const told = await Promise.all([
      this.#ask<Timeline>(`/api/ops/timeline?hours=${hours}`, (found) => { if (this.hours.value === hours) this.timeline.value = found; }),
      this.#ask<{ lines: LogLine[] }>(`/api/ops/log?hours=${hours}`, (found) => (this.log.value = found.lines)),
      this.#ask<Series>("/api/ops/series", (found) => (this.series.value = found)),
      this.#ask<People>("/api/ops/people", (found) => (this.people.value = found)),
      this.#ask<{ schedules: Schedule[] }>("/api/schedules", (found) => (this.schedules.value = found.schedules)),
      this.#ask<UsageReport>(`/api/usage?days=${days}`, (found) => { if (this.days.value === days) this.usage.value = found; }),
      this.#ask<{ rules: Rule[] }>("/api/rules", (found) => (this.rules.value = found.rules)),
    ]);
    return told.every(Boolean);
  }

  /** Gives whether the server answered, if only with a refusal. */
  async #ask<T>(path: string, then: (found: T) => void): Promise<boolean> {
    try {
      then((await this.api.order("GET", path)) as T);
      this.connection.request(true);
      return true;
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      else if (!(error instanceof Refused)) this.connection.request(false);
      return error instanceof Refused;
    }
  }
}
