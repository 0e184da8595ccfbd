/**
 * Drafts on the server. What is typed is kept on this device at once and sent a moment later; a newer draft from another device is taken
 * over where nothing was typed here since, and otherwise what is typed here wins, because it is before somebody's eyes.
 */

import { type Api, Refused } from "./api";
import type { Store } from "./outbox";
import type { Drafts } from "./storage";

const AFTER_MS = 1000;

interface Known {
  rev: number;
  text: string;
}

export class KeptDrafts {
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(private readonly api: Pick<Api, "draft" | "keepDraft">, private readonly drafts: Drafts, private readonly store: Store, private readonly taken: () => void) {}

  /** What the server had when this device last heard of it. */
  #known(session: string): Known {
    const [rev = "0", text = ""] = (this.store.getItem(`holdfast.kept.${session}`) ?? "").split(/ (.*)/s);
    return { rev: Number(rev) || 0, text };
  }

  #know(session: string, { rev, text }: Known): void {
    this.store.setItem(`holdfast.kept.${session}`, `${rev} ${text}`);
  }

  changed(session: string): void {
    clearTimeout(this.#timers.get(session));
    this.#timers.set(session, setTimeout(() => {
      this.#timers.delete(session);
      void this.#send(session);
    }, AFTER_MS));
  }

  async fetch(session: string): Promise<void> {
    try {
      const theirs = await this.api.draft(session);
      const known = this.#known(session);
      const untouched = this.drafts.get(session) === known.text;
      this.#know(session, theirs);
      if (!untouched) return void this.#send(session);
      if (theirs.text === this.drafts.get(session)) return;
      this.drafts.set(session, theirs.text);
      this.taken();
    } catch {
      // It stays as it is on this device.
    }
  }

  async #send(session: string, again = true): Promise<void> {
    const text = this.drafts.get(session);
    const known = this.#known(session);
    if (text === known.text) return;
    try {
      this.#know(session, await this.api.keepDraft(session, { text, rev: known.rev }));
    } catch (error) {
      if (!(error instanceof Refused && error.status === 409) || !again) return;
      this.#know(session, await this.api.draft(session).catch(() => known));
      await this.#send(session, false);
    }
  }
}
