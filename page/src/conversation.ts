/** The conversation that is open: its view, kept current by the one event stream of this page, and the stopping of its turn. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { type Api, type Fetch, Refused, SignedOut, Unavailable } from "./api";
import { delayMs } from "./backoff";
import type { Connection } from "./connection";
import { nextFrame } from "./frames";
import { randomId } from "./ids";
import { apply, arrivesLate, isForeign, type LogEvent, liveTurn, openTurn, prepend, type View, viewOf } from "./log";
import { Pause } from "./pause";
import { RECALL_MS, type Shelf } from "./shelf";
import { follow } from "./stream";

const KEPT_VIEWS = 20;
/** A page nobody looks at gives its connection back after a while: browsers allow only a few per server. */
const HIDDEN_MS = 60_000;
/** Longer than a heartbeat: a connection this quiet may have died while the machine slept. */
const QUIET_MS = 20_000;

/** What else comes over the stream: changes of the list, and the status. */
export interface Channels {
  /** Up to where the list is known. */
  rev(): string;
  received(event: LogEvent): void;
}

const CHANNELS = new Set(["stream.opened", "list.changed", "list.removed", "list.reset", "status"]);

export class Conversation {
  readonly #view = signal<View | null>(null);
  readonly #missing = signal(false);
  /** The turn whose stop the user asked for, until it ended. */
  readonly stopAsked = signal<string | null>(null);
  readonly #kept = new Map<string, View>();
  readonly #pause = new Pause();
  readonly #stopPause = new Pause();
  #session: string | null = null;
  #watching: AbortController | null = null;
  #pending: LogEvent[] = [];
  /** The view is no longer what its session is, and cannot be continued. */
  #stale = false;
  #frame: (() => void) | null = null;
  /** When the present connection last gave a sign of life; 0 before it did. */
  #heard = 0;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  /** The page of messages that is on its way. */
  #earlier: { asked: string; coming: Promise<boolean> } | null = null;

  constructor(private readonly api: Api, private readonly fetch: Fetch, private readonly connection: Connection, private readonly channels: Channels, private readonly shelf: Pick<Shelf, "keep" | "session">) {}

  get view(): ReadonlySignal<View | null> {
    return this.#view;
  }

  /** True when the server does not know the session that was opened. */
  get missing(): ReadonlySignal<boolean> {
    return this.#missing;
  }

  /** Whether the session is its key's current one, as the list has it. */
  placed(session: string, current: boolean): void {
    const view = this.#view.value;
    if (view?.session.session_id === session && view.session.current !== current) this.#show({ ...view, session: { ...view.session, current } });
  }

  /** Shows and follows a session; null follows the list alone. */
  open(session: string | null): void {
    if (session === this.#session && this.#watching !== null) return;
    this.#unwatch();
    this.#session = session;
    this.#stale = false;
    this.#missing.value = false;
    this.stopAsked.value = null;
    this.#view.value = session === null ? null : (this.#kept.get(session) ?? null);
    this.#watch(session);
  }

  /** Nothing is shown and nothing followed any more. */
  close(): void {
    this.#unwatch();
    this.#session = null;
    this.#view.value = null;
    this.connection.stream("none");
  }

  /** There is reason to believe that a try would work now, or that the connection is not what it seems. */
  wake(): void {
    if (this.#watching !== null && this.#heard > 0 && Date.now() - this.#heard > QUIET_MS) {
      this.#unwatch();
      this.#watch(this.#session);
    }
    this.#pause.wake();
    this.#stopPause.wake();
  }

  visible(is_visible: boolean): void {
    clearTimeout(this.#hidden);
    if (!is_visible) this.#hidden = setTimeout(() => this.#unwatch(), HIDDEN_MS);
    else if (this.#watching === null) this.#watch(this.#missing.value ? null : this.#session);
    else this.wake();
  }

  /**
   * Fetches the page of messages before those that are here, and says whether it came. Nothing changes where it cannot be had: the button
   * stays. Asking again while it is on its way is the same request.
   */
  earlier(): Promise<boolean> {
    const session = this.#session;
    const before = this.#view.value?.session.earlier;
    if (session === null || !before) return Promise.resolve(false);
    const asked = `${session} ${before}`;
    if (this.#earlier?.asked !== asked) {
      const coming = this.#fetchEarlier(session, before).finally(() => {
        if (this.#earlier?.coming === coming) this.#earlier = null;
      });
      this.#earlier = { asked, coming };
    }
    return this.#earlier.coming;
  }

  async #fetchEarlier(session: string, before: string): Promise<boolean> {
    try {
      const page = await this.api.earlier(session, before);
      const view = this.#view.value;
      if (this.#session === session && view !== null) this.#show(prepend(view, page, before));
      return true;
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      return false;
    }
  }

  firstWords(session: string): string | null {
    const open = this.#view.peek()?.session; // Also one that only this device remembers.
    const known = this.#kept.get(session)?.session ?? (open?.session_id === session ? open : undefined);
    const first = known?.messages.find((message) => message.role === "user" && message.status !== "command");
    const file = first?.parts.find((part) => "digest" in part);
    const text = first?.text || (file && "digest" in file ? file.name : null);
    return text ? text.slice(0, 60) : null;
  }

  forget(): void {
    this.close();
    this.#kept.clear();
  }

  /** Asks for the end of the running turn, again and again while the server is away, but never for that of a later turn. */
  async stop(): Promise<void> {
    const session = this.#session;
    const turn = this.#view.value && liveTurn(this.#view.value.session);
    if (session === null || !turn || this.stopAsked.value === turn.id) return;
    this.stopAsked.value = turn.id;
    const client_id = randomId();
    const wanted = (): boolean => this.#session === session && this.stopAsked.value === turn.id && this.#openTurn() === turn.id;
    for (let tries = 1; wanted(); tries++) {
      try {
        await this.api.stop(session, turn.id, client_id);
        return;
      } catch (error) {
        if (!(error instanceof Unavailable)) {
          // Nothing to stop: its end is on its way. Signed out or refused: the button comes back.
          if (!(error instanceof Refused && error.code === "nothing_to_stop")) this.stopAsked.value = null;
          if (error instanceof SignedOut) this.connection.signedOut();
          return;
        }
        await this.#stopPause.wait(delayMs(tries, Math.random()));
      }
    }
  }

  #openTurn(): string | null {
    const view = this.#view.value;
    return (view && openTurn(view.session)?.id) ?? null;
  }

  #unwatch(): void {
    this.#watching?.abort();
    this.#watching = null;
    this.#flush();
  }

  #watch(session: string | null): void {
    const watching = new AbortController();
    this.#watching = watching;
    this.#heard = 0;
    void this.#run(session, watching.signal).then((end) => {
      if (this.#watching === watching) this.#watching = null;
      if (end === "signed-out") this.connection.signedOut();
      if (end === "gone" && this.#watching === null) this.#gone();
    });
  }

  /** The server does not know the session: the list is still followed. */
  #gone(): void {
    this.#unwatch();
    this.#missing.value = true;
    this.#watch(null);
  }

  async #run(session: string | null, signal: AbortSignal): Promise<"stopped" | "signed-out" | "gone"> {
    const loaded = session !== null && (this.#view.value === null || this.#stale) ? await this.#load(session, signal) : "loaded";
    if (loaded !== "loaded") return loaded;
    return follow({
      fetch: this.fetch,
      path: () => {
        this.#flush();
        const asked = new URLSearchParams({ list: this.channels.rev(), status: "1" });
        if (session !== null) asked.append("session", session);
        if (session !== null) asked.append("after", this.#view.value?.session.cursor ?? "0");
        return `/api/events?${asked}`;
      },
      connected: () => this.connection.stream("open"),
      disconnected: () => {
        this.#heard = 0;
        this.connection.stream("broken");
      },
      heard: () => (this.#heard = Date.now()),
      received: (event) => this.#receive(event),
      pause: this.#pause,
      random: Math.random,
      signal,
    });
  }

  async #load(session: string, signal: AbortSignal): Promise<"loaded" | "stopped" | "signed-out" | "gone"> {
    const late = setTimeout(() => void this.#recall(session, signal), RECALL_MS);
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        const whole = await this.api.session(session).finally(() => clearTimeout(late));
        if (signal.aborted) break;
        this.#stale = false;
        this.#show(viewOf(whole));
        return "loaded";
      } catch (error) {
        if (error instanceof SignedOut) return "signed-out";
        if (error instanceof Refused && (error.status === 404 || error.status === 410)) return "gone";
        if (signal.aborted) break;
        this.connection.stream("broken");
        if (tries === 1) await this.#recall(session, signal);
        await this.#pause.wait(delayMs(tries, Math.random()), signal);
      }
    }
    return "stopped";
  }

  /** As it was when this device last saw it, until the server can be asked. */
  async #recall(session: string, signal: AbortSignal): Promise<void> {
    const kept = await this.shelf.session(session);
    if (kept !== null && !signal.aborted && this.#view.value === null) this.#view.value = viewOf(kept);
  }

  /** Events are gathered and folded once per frame: a fast answer costs one drawing per frame, not one per piece. */
  #receive(event: LogEvent): void {
    if (CHANNELS.has(event.name)) return this.channels.received(event);
    if (event.name === "end") {
      if (event.data.session_id === this.#session) this.#gone();
      return;
    }
    this.#pending.push(event);
    if (this.#frame === null) this.#frame = nextFrame(() => this.#flush());
  }

  #flush(): void {
    this.#frame?.();
    this.#frame = null;
    const events = this.#pending;
    this.#pending = [];
    let view = this.#view.value;
    if (events.length === 0 || view === null) return;
    try {
      for (const event of events) {
        if (event.name !== "snapshot" && (isForeign(view, event.id) || arrivesLate(event))) return this.#reload();
        view = apply(view, event);
      }
    } catch (error) {
      console.error("an event could not be applied; the conversation is loaded again", error);
      return this.#reload();
    }
    this.#show(view);
  }

  #show(view: View): void {
    this.#view.value = view;
    const asked = this.stopAsked.value;
    if (asked !== null && openTurn(view.session)?.id !== asked) this.stopAsked.value = null;
    this.shelf.keep(view.session);
    this.#kept.delete(view.session.session_id);
    this.#kept.set(view.session.session_id, view);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_VIEWS) break;
      this.#kept.delete(oldest);
    }
  }

  /** What is here cannot be continued: only the whole session helps. What is shown stays until that is here. */
  #reload(): void {
    const session = this.#session;
    this.#unwatch();
    this.#stale = true;
    if (session !== null) {
      this.#kept.delete(session);
      this.#watch(session);
    }
  }
}
