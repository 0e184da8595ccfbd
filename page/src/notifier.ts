/** Tells of what happens while nobody looks at the page, if its user wants that. Of several tabs one does. */

import { t } from "./i18n";
import type { List } from "./list";
import type { Store } from "./outbox";
import type { Preferences } from "./preferences";
import type { Summary } from "./types";
import { titleOf } from "./words";

/** What was told last, by any tab: a tab that takes over hears from the server what changed while it was away, also what was told meanwhile. */
const TOLD = "holdfast.told";
const MOST_TOLD = 50;

/** What a notifier needs of the page. */
export interface Surroundings {
  /** Shows a conversation. */
  open(session_id: string): void;
  /** This tab is now the one that tells: it has to be connected, also while it is hidden. */
  takesOver(): void;
}

export class Notifier {
  #holds = false;

  constructor(private readonly preferences: Preferences, private readonly list: Pick<List, "sessions">, private readonly store: Store, private readonly around: Surroundings) {
    preferences.notifying.subscribe((on) => {
      if (on) this.#hold();
    });
    // Somebody pressed what the worker showed.
    navigator.serviceWorker?.addEventListener("message", ({ data }: MessageEvent<{ open?: unknown } | null>) => {
      if (typeof data?.open === "string") around.open(data.open);
    });
  }

  /** This tab stays connected while it is hidden. */
  get keeps(): boolean {
    return this.preferences.notifying.value && this.#holds;
  }

  /** The first tab that asks has the lock until it is closed; elsewhere every tab tells. */
  #hold(): void {
    if (this.#holds) return;
    if (navigator.locks === undefined) return void (this.#holds = true);
    void navigator.locks.request("holdfast.notify", () => {
      this.#holds = true;
      this.around.takesOver();
      return new Promise<void>(() => undefined);
    });
  }

  /** A conversation looks different: before the list knows. */
  changed(session: Summary): void {
    if (!this.keeps || document.visibilityState === "visible") return;
    const before = this.list.sessions.value?.find((other) => other.session_id === session.session_id);
    const said = wanted(before, session);
    if (said === null || this.#isTold(session)) return;
    void this.#show(said, session).catch(() => undefined); // The list says it as well, and must not wait for this.
  }

  /** Whether a tab has told of this already; if not, this one does now. */
  #isTold(session: Summary): boolean {
    const news = `${session.session_id} ${session.state} ${session.updated_at}`;
    const told = (this.store.getItem(TOLD) ?? "").split("\n");
    if (told.includes(news)) return true;
    this.store.setItem(TOLD, [news, ...told].slice(0, MOST_TOLD).join("\n"));
    return false;
  }

  /** By the worker where there is one, which knows how to come back to the page: Android allows nothing else. */
  async #show(said: string, session: Summary): Promise<void> {
    const options = { body: session.excerpt ?? "", tag: session.session_id, icon: "/favicon.svg", data: { session_id: session.session_id } };
    const worker = await navigator.serviceWorker?.getRegistration();
    if (worker?.active) return worker.showNotification(said, options);
    const shown = new Notification(said, options);
    shown.onclick = () => {
      window.focus();
      this.around.open(session.session_id);
      shown.close();
    };
  }
}

/** What is worth a word: that somebody is asked, and that an answer is there. */
export function wanted(before: Summary | undefined, now: Summary): string | null {
  const words = t().notify;
  const title = titleOf(now);
  if (now.state === "waiting" && before?.state !== "waiting") return now.needs === "approval" ? words.approval(title) : words.asks(title);
  if (now.state === "idle" && before !== undefined && before.state !== "idle" && now.unread) return words.answered(title);
  return null;
}
