/** The browser's storage, or memory where the browser refuses it (private windows, a full quota): the page then works, but forgets on reload. */

import type { Store } from "./outbox";

export class SafeStorage implements Store {
  readonly #memory = new Map<string, string>();

  constructor(private readonly under: Storage | null) {}

  static ofBrowser(): SafeStorage {
    try {
      return new SafeStorage(window.localStorage);
    } catch {
      return new SafeStorage(null);
    }
  }

  /** The keys of both places, each once. */
  #keys(): string[] {
    const keys = new Set(this.#memory.keys());
    for (let i = 0; this.under !== null && i < this.under.length; i++) keys.add(this.under.key(i)!);
    return [...keys];
  }

  get length(): number {
    return this.#keys().length;
  }

  key(index: number): string | null {
    return this.#keys()[index] ?? null;
  }

  getItem(key: string): string | null {
    return this.#memory.get(key) ?? this.under?.getItem(key) ?? null;
  }

  setItem(key: string, value: string): void {
    try {
      if (this.under === null) throw new Error("no storage");
      this.under.setItem(key, value);
      this.#memory.delete(key);
    } catch {
      this.#memory.set(key, value);
    }
  }

  removeItem(key: string): void {
    this.#memory.delete(key);
    this.under?.removeItem(key);
  }

  removeAll(prefix: string): void {
    for (const key of this.#keys()) if (key.startsWith(prefix)) this.removeItem(key);
  }
}

/** What is typed and not sent, by conversation. */
export class Drafts {
  constructor(private readonly store: Store) {}

  get(conversation: string): string {
    return this.store.getItem(`holdfast.draft.${conversation}`) ?? "";
  }

  set(conversation: string, text: string): void {
    if (text === "") this.store.removeItem(`holdfast.draft.${conversation}`);
    else this.store.setItem(`holdfast.draft.${conversation}`, text);
  }
}
