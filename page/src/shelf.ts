/** The last conversations as they were, on this device: what a reload shows while the server is away. It is never taken for more than that. */

import { clear, createStore, get, set } from "idb-keyval";
import type { Session, Summary } from "./types";

/** A server that has not answered by then may hang: what is kept here is shown meanwhile. */
export const RECALL_MS = 1500;
/** It is kept once it rests for a moment, and now and then while it does not: an answer that is being written never rests. */
const LATER_MS = 1500;
const LATEST_MS = 5000;
const MOST = 10;
const LIST = "list";
const ORDER = "order";

export class Shelf {
  readonly #store = typeof indexedDB === "undefined" ? null : createStore("holdfast", "shelf");
  readonly #waiting = new Map<string, { timer: ReturnType<typeof setTimeout>; since: number }>();

  keepList(sessions: Summary[]): void {
    this.#later(LIST, sessions.slice(0, 40));
  }

  async list(): Promise<Summary[] | null> {
    return this.#get<Summary[]>(LIST);
  }

  keep(session: Session): void {
    this.#later(`s.${session.session_id}`, { ...session, messages: session.messages.slice(-100) });
  }

  async session(id: string): Promise<Session | null> {
    return this.#get<Session>(`s.${id}`);
  }

  async forget(): Promise<void> {
    for (const { timer } of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
    if (this.#store) await clear(this.#store).catch(() => undefined);
  }

  #later(key: string, value: unknown): void {
    const waiting = this.#waiting.get(key);
    clearTimeout(waiting?.timer);
    const since = waiting?.since ?? Date.now();
    const put = (): void => {
      this.#waiting.delete(key);
      void this.#put(key, value);
    };
    this.#waiting.set(key, { timer: setTimeout(put, Math.max(0, Math.min(LATER_MS, since + LATEST_MS - Date.now()))), since });
  }

  /** Where there is no room the oldest goes; where there is no store at all, nothing is kept. */
  async #put(key: string, value: unknown): Promise<void> {
    if (this.#store === null) return;
    try {
      await set(key, value, this.#store);
      if (key === LIST) return;
      const order = [key, ...((await get<string[]>(ORDER, this.#store)) ?? []).filter((other) => other !== key)];
      await set(ORDER, order.slice(0, MOST), this.#store);
      for (const old of order.slice(MOST)) await set(old, undefined, this.#store);
    } catch {
      // The page works without it.
    }
  }

  async #get<T>(key: string): Promise<T | null> {
    if (this.#store === null) return null;
    return (await get<T>(key, this.#store).catch(() => undefined)) ?? null;
  }
}
