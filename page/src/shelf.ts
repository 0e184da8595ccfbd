/** The last conversations as they were, on this device: what a reload shows while the server is away. It is never taken for more than that. */

import { clear, createStore, get, set } from "idb-keyval";
import type { Session, Summary } from "./types";

/** A server that has not answered by then may hang: what is kept here is shown meanwhile. */
export const RECALL_MS = 1500;
const LATER_MS = 1500;
const MOST = 10;
const LIST = "list";
const ORDER = "order";

export class Shelf {
  readonly #store = typeof indexedDB === "undefined" ? null : createStore("holdfast", "shelf");
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

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
    for (const timer of this.#timers.values()) clearTimeout(timer);
    if (this.#store) await clear(this.#store).catch(() => undefined);
  }

  #later(key: string, value: unknown): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.set(key, setTimeout(() => void this.#put(key, value), LATER_MS));
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
