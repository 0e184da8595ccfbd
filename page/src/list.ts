/** The list of conversations: read once, then kept current by what the stream tells of it; read again now and then, and right after the page's own actions. */

import { signal } from "@preact/signals";
import { t } from "./i18n";
import { dayOf } from "./words";
import { type Api, SignedOut, Unavailable } from "./api";
import type { Connection } from "./connection";
import { nextFrame } from "./frames";
import type { LogEvent } from "./log";
import { RECALL_MS, type Shelf } from "./shelf";
import type { Found, Summary } from "./types";

const EVERY_MS = 60_000;
const FIRST_PAGE = 30;
const LARGEST_PAGE = 100;

export interface Group {
  title: string;
  needs: boolean;
  sessions: Summary[];
}

/** Those that need their user first, then the pinned ones, then the others by day. */
export function grouped(sessions: Summary[], now: Date): Group[] {
  const needs: Group = { title: t().list.needsYou, needs: true, sessions: [] };
  const pinned: Group = { title: t().list.pinned, needs: false, sessions: [] };
  const days = new Map<string, Group>();
  for (const session of sessions) {
    const title = dayOf(session.updated_at, now);
    const day = days.get(title) ?? { title, needs: false, sessions: [] };
    const group = session.state === "waiting" && !session.suspended ? needs : session.pinned ? pinned : day;
    if (group === day) days.set(title, day);
    group.sessions.push(session);
  }
  return [needs, pinned, ...days.values()].filter((group) => group.sessions.length > 0);
}

export class List {
  readonly sessions = signal<Summary[] | null>(null);
  readonly more = signal<string | null>(null);
  readonly query = signal("");
  readonly archived = signal(false);
  readonly loadingMore = signal(false);
  readonly found = signal<Found | null>(null);
  /** Up to where the list is known: what changed since is told. */
  rev = "0";
  #asked = 0;
  #news: LogEvent[] = [];
  #frame: (() => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running = false;

  constructor(private readonly api: Api, private readonly connection: Connection, private readonly shelf: Pick<Shelf, "keepList" | "list">) {}

  start(): void {
    this.#running = true;
    void this.refresh();
  }

  stop(): void {
    this.#running = false;
    clearTimeout(this.#timer);
  }

  forget(): void {
    this.stop();
    this.sessions.value = null;
    this.more.value = null;
    this.rev = "0";
  }

  search(query: string): void {
    this.query.value = query;
    this.#restart();
  }

  showArchived(archived: boolean): void {
    this.archived.value = archived;
    this.#restart();
  }

  #restart(): void {
    this.sessions.value = null;
    this.more.value = null;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    const asked = ++this.#asked;
    const late = setTimeout(() => void this.#recall(), RECALL_MS);
    try {
      const query = this.query.value.trim();
      if (query !== "") void this.api.search(query).then((found) => { if (this.query.value.trim() === query) this.found.value = found; }, () => undefined);
      else this.found.value = null;
      const shown = this.sessions.value ?? [];
      const limit = Math.min(LARGEST_PAGE, Math.max(FIRST_PAGE, shown.length));
      const page = await this.api.sessions({ query: this.query.value.trim(), limit, archived: this.archived.value });
      this.connection.request(true);
      if (asked !== this.#asked) return;
      const tail = shown.slice(limit).filter((old) => !page.sessions.some((session) => session.session_id === old.session_id));
      this.sessions.value = [...page.sessions, ...tail];
      if (tail.length === 0) this.more.value = page.next;
      if (query === "" && !this.archived.value) this.shelf.keepList(this.sessions.value);
    } catch (error) {
      if (error instanceof SignedOut) return this.connection.signedOut();
      if (error instanceof Unavailable) {
        this.connection.request(false);
        await this.#recall();
      }
    } finally {
      clearTimeout(late);
      if (asked === this.#asked && this.#running) this.#timer = setTimeout(() => void this.refresh(), EVERY_MS);
    }
  }

  /** As it was when this device last saw it, until the server can be asked. */
  async #recall(): Promise<void> {
    if (this.sessions.value !== null || this.query.value !== "" || this.archived.value) return;
    const kept = await this.shelf.list();
    if (kept !== null && this.sessions.value === null) this.sessions.value = kept;
  }

  async loadMore(): Promise<void> {
    const before = this.more.value;
    if (before === null || this.loadingMore.value) return;
    this.loadingMore.value = true;
    const asked = ++this.#asked; // a refresh that is under way would be merged wrongly: it no longer counts
    try {
      const page = await this.api.sessions({ query: this.query.value.trim(), limit: FIRST_PAGE, before, archived: this.archived.value });
      if (asked !== this.#asked) return;
      const shown = this.sessions.value ?? [];
      this.sessions.value = [...shown, ...page.sessions.filter((session) => !shown.some((other) => other.session_id === session.session_id))];
      this.more.value = page.next;
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
    } finally {
      this.loadingMore.value = false;
      if (this.#running) this.#timer = setTimeout(() => void this.refresh(), EVERY_MS);
    }
  }

  /** Shows a change at once; the next refresh brings the server's word. */
  patch(session_id: string, changed: Partial<Summary>): void {
    const shown = this.sessions.value ?? [];
    const next = shown.map((session) => (session.session_id === session_id ? { ...session, ...changed } : session));
    this.sessions.value = next.filter((session) => session.archived === this.archived.value);
  }

  /** What the stream tells. Many conversations may change at once: they are put into the list once per frame. */
  received(event: LogEvent): void {
    const first = this.rev === "0";
    if (typeof event.data.rev === "string") this.rev = event.data.rev;
    if (event.name === "list.reset" || (event.name === "stream.opened" && first)) return void this.refresh();
    if (event.name !== "list.removed" && event.name !== "list.changed") return;
    this.#news.push(event);
    this.#frame ??= nextFrame(() => this.#tell());
  }

  #tell(): void {
    const news = this.#news;
    this.#news = [];
    this.#frame = null;
    let shown = this.sessions.value;
    if (shown === null) return;
    for (const { name, data } of news) {
      shown = name === "list.changed" ? this.#with(shown, data.session as Summary) : shown.filter((session) => session.session_id !== data.session_id);
    }
    this.sessions.value = shown;
  }

  /** With a conversation in its place: the newest first. A search, and what is archived, are lists of their own. */
  #with(shown: Summary[], summary: Summary): Summary[] {
    const others = shown.filter((session) => session.session_id !== summary.session_id);
    const known = others.length < shown.length;
    if (summary.archived !== this.archived.value) return others;
    if (this.query.value.trim() !== "" && !known) return shown;
    const at = others.findIndex((session) => session.updated_at < summary.updated_at);
    if (at < 0 && this.more.value !== null && !known) return shown; // Further down than what is loaded.
    return at < 0 ? [...others, summary] : [...others.slice(0, at), summary, ...others.slice(at)];
  }

  /** It is no longer there. */
  drop(session_id: string): void {
    this.sessions.value = (this.sessions.value ?? []).filter((session) => session.session_id !== session_id);
  }
}
