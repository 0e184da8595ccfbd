/** The list of conversations: read once, then kept current by what the stream tells of it; read again now and then, and right after the page's own actions. */

import { type ReadonlySignal, signal } from "@preact/signals";
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
/** However old they are, these are shown. */
const ALWAYS = ["waiting", "pinned"] as const;

export interface Group {
  title: string;
  needs: boolean;
  sessions: Summary[];
}

function needs(session: Summary): boolean {
  return session.state === "waiting" && !session.suspended;
}

function always(session: Summary): boolean {
  return needs(session) || session.pinned;
}

/** The newest first. */
function byTime(a: Summary, b: Summary): number {
  return a.updated_at < b.updated_at ? 1 : -1;
}

/** Those that need their user first, then the pinned ones, then the others by day. */
export function grouped(sessions: Summary[], now: Date): Group[] {
  const asking: Group = { title: t().list.needsYou, needs: true, sessions: [] };
  const pinned: Group = { title: t().list.pinned, needs: false, sessions: [] };
  const days = new Map<string, Group>();
  for (const session of sessions) {
    const title = dayOf(session.updated_at, now);
    const day = days.get(title) ?? { title, needs: false, sessions: [] };
    const group = needs(session) ? asking : session.pinned ? pinned : day;
    if (group === day) days.set(title, day);
    group.sessions.push(session);
  }
  return [asking, pinned, ...days.values()].filter((group) => group.sessions.length > 0);
}

export class List {
  readonly #sessions = signal<Summary[] | null>(null);
  readonly more = signal<string | null>(null);
  readonly query = signal("");
  readonly archived = signal(false);
  /** Those that were deleted and can still be brought back, while somebody looks at them. */
  readonly deleted = signal<Summary[] | null>(null);
  readonly loadingMore = signal(false);
  readonly found = signal<Found | null>(null);
  /** Up to where the list is known: what changed since is told. */
  rev = "0";
  /** The newest ones, without a gap; and of those before them the ones that are shown however old they are. */
  #loaded: Summary[] | null = null;
  #apart: Summary[] = [];
  #asked = 0;
  #news: LogEvent[] = [];
  #frame: (() => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running = false;

  constructor(private readonly api: Api, private readonly connection: Connection, private readonly shelf: Pick<Shelf, "keepList" | "list">) {}

  get sessions(): ReadonlySignal<Summary[] | null> {
    return this.#sessions;
  }

  #show(loaded: Summary[] | null, apart: Summary[]): void {
    const here = new Set(loaded?.map((session) => session.session_id));
    this.#loaded = loaded;
    this.#apart = apart.filter((session) => !here.has(session.session_id));
    this.#sessions.value = loaded && [...loaded, ...this.#apart];
  }

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
    this.deleted.value = null;
    this.#show(null, []);
    this.more.value = null;
    this.rev = "0";
  }

  search(query: string): void {
    this.deleted.value = null;
    this.query.value = query;
    this.#restart();
  }

  showArchived(archived: boolean): void {
    this.deleted.value = null;
    this.archived.value = archived;
    this.#restart();
  }

  showDeleted(shown: boolean): void {
    if (this.archived.value) this.showArchived(false);
    this.deleted.value = shown ? [] : null;
    if (shown) void this.#lookAtDeleted();
  }

  async #lookAtDeleted(): Promise<void> {
    try {
      const pages = await Promise.all([false, true].map((archived) => this.api.sessions({ state: "deleted", archived, limit: LARGEST_PAGE })));
      if (this.deleted.value !== null) this.deleted.value = pages.flatMap((page) => page.sessions).sort(byTime);
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
    }
  }

  #restart(): void {
    this.#show(null, []);
    this.more.value = null;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.deleted.value !== null) void this.#lookAtDeleted();
    const asked = ++this.#asked;
    const late = setTimeout(() => void this.#recall(), RECALL_MS);
    try {
      const query = this.query.value.trim();
      if (query !== "") void this.api.search(query).then((found) => { if (this.query.value.trim() === query) this.found.value = found; }, () => undefined);
      else this.found.value = null;
      const shown = this.#loaded ?? [];
      const limit = Math.min(LARGEST_PAGE, Math.max(FIRST_PAGE, shown.length));
      const plain = query === "" && !this.archived.value;
      const [page, apart] = await Promise.all([this.api.sessions({ query, limit, archived: this.archived.value }), plain ? this.#older() : []]);
      this.connection.request(true);
      if (asked !== this.#asked) return;
      const tail = shown.slice(limit).filter((old) => !page.sessions.some((session) => session.session_id === old.session_id));
      this.#show([...page.sessions, ...tail], apart ?? this.#apart);
      if (tail.length === 0) this.more.value = page.next;
      if (plain) this.shelf.keepList([...this.#apart, ...this.#loaded!]);
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

  /** Those that are shown however old they are. Null where that cannot be told now: a process of the version before knows no `pinned`. */
  async #older(): Promise<Summary[] | null> {
    try {
      const pages = await Promise.all(ALWAYS.map((state) => this.api.sessions({ state, limit: LARGEST_PAGE })));
      const found = new Map(pages.flatMap((page) => page.sessions).filter(always).map((session) => [session.session_id, session]));
      return [...found.values()].sort(byTime);
    } catch {
      return null;
    }
  }

  /** As it was when this device last saw it, until the server can be asked. */
  async #recall(): Promise<void> {
    if (this.#loaded !== null || this.query.value !== "" || this.archived.value) return;
    const kept = await this.shelf.list();
    if (kept !== null && this.#loaded === null) this.#show(kept, []);
  }

  async loadMore(): Promise<void> {
    const before = this.more.value;
    if (before === null || this.loadingMore.value) return;
    this.loadingMore.value = true;
    const asked = ++this.#asked; // a refresh that is under way would be merged wrongly: it no longer counts
    try {
      const page = await this.api.sessions({ query: this.query.value.trim(), limit: FIRST_PAGE, before, archived: this.archived.value });
      if (asked !== this.#asked) return;
      const shown = this.#loaded ?? [];
      this.#show([...shown, ...page.sessions.filter((session) => !shown.some((other) => other.session_id === session.session_id))], this.#apart);
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
    const next = (shown: Summary[]): Summary[] =>
      shown.map((session) => (session.session_id === session_id ? { ...session, ...changed } : session)).filter((session) => session.archived === this.archived.value);
    if (this.#loaded !== null) this.#show(next(this.#loaded), next(this.#apart));
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
    if (this.deleted.value !== null) void this.#lookAtDeleted();
    let shown = this.#loaded;
    let apart = this.#apart;
    if (shown === null) return;
    for (const { name, data } of news) {
      const changed = name === "list.changed" ? (data.session as Summary) : null;
      const gone = changed?.session_id ?? data.session_id;
      apart = apart.filter((session) => session.session_id !== gone);
      if (changed === null) shown = shown.filter((session) => session.session_id !== gone);
      else if (this.#isFurtherDown(shown, changed)) apart = always(changed) ? [...apart, changed] : apart;
      else shown = this.#with(shown, changed);
    }
    this.#show(shown, apart);
  }

  /** Than what is loaded. A search, and what is archived, are lists of their own. */
  #isFurtherDown(shown: Summary[], summary: Summary): boolean {
    if (summary.archived || this.archived.value || this.query.value.trim() !== "" || this.more.value === null) return false;
    return shown.every((session) => session.session_id !== summary.session_id && session.updated_at >= summary.updated_at);
  }

  /** With a conversation in its place: the newest first. A search, and what is archived, are lists of their own. */
  #with(shown: Summary[], summary: Summary): Summary[] {
    const others = shown.filter((session) => session.session_id !== summary.session_id);
    const known = others.length < shown.length;
    if (summary.archived !== this.archived.value) return others;
    if (this.query.value.trim() !== "" && !known) return shown;
    const at = others.findIndex((session) => session.updated_at < summary.updated_at);
    if (at < 0 && this.more.value !== null && !known) return shown;
    return at < 0 ? [...others, summary] : [...others.slice(0, at), summary, ...others.slice(at)];
  }

  /** It is no longer there. */
  drop(session_id: string): void {
    const left = (shown: Summary[]): Summary[] => shown.filter((session) => session.session_id !== session_id);
    if (this.#loaded !== null) this.#show(left(this.#loaded), left(this.#apart));
  }
}
