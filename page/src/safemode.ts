/** What the server says of itself, above all whether it is in safe mode: asked for when there is reason to, and now and then for as long as it is. */

import { signal } from "@preact/signals";
import { t } from "./i18n";
import { type Api, Refused, SignedOut, Unavailable } from "./api";
import type { Connection } from "./connection";
import type { Status } from "./types";

const EVERY_MS = 30_000;

export class SafeMode {
  readonly on = signal(false);
  readonly status = signal<Status | null>(null);
  /** True while its end is being asked for. */
  readonly ending = signal(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly api: Api, private readonly connection: Connection, private readonly say: (text: string) => void, private readonly heard: (status: Status) => void) {}

  /** A server enters safe mode only when it starts, so a page that stays connected need not ask. */
  async check(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      this.hear(await this.api.status());
    } catch (error) {
      if (error instanceof SignedOut) return this.connection.signedOut();
    }
    clearTimeout(this.#timer);
    if (this.on.value) this.#timer = setTimeout(() => void this.check(), EVERY_MS);
  }

  /** The server says so, asked or not. */
  hear(status: Status): void {
    this.on.value = status.safe_mode;
    this.status.value = status;
    this.heard(status);
  }

  /** Nobody looks: nobody asks. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  forget(): void {
    this.rest();
    this.on.value = false;
    this.status.value = null;
  }

  /** Ends it, and with it the holding of everything that was cut. */
  async end(): Promise<void> {
    if (this.ending.value) return;
    this.ending.value = true;
    try {
      await this.api.resumeAll();
    } catch (error) {
      if (error instanceof SignedOut) this.connection.signedOut();
      else if (error instanceof Refused) this.say(error.message);
      else if (error instanceof Unavailable) this.say(t().bars.stillSafe);
      else throw error;
    } finally {
      this.ending.value = false;
    }
    await this.check();
  }
}
