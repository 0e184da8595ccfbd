/** Whether the page is in touch with its server, and since when it is not. */

import { signal } from "@preact/signals";

export type ConnectionState = "live" | "reconnecting" | "signed-out";

/** A shorter absence is not worth a word. */
const CALM_MS = 1000;

export class Connection {
  readonly state = signal<ConnectionState>("reconnecting");
  /** True once the server has been away for long enough to say so. */
  readonly away = signal(false);
  #streaming = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #back: (() => void)[] = [];

  constructor() {
    this.#startTimer();
  }

  /** Calls `then` whenever the server is back. */
  onBack(then: () => void): void {
    this.#back.push(then);
  }

  /** The stream speaks for the connection for as long as there is one. */
  stream(state: "open" | "broken" | "none"): void {
    this.#streaming = state !== "none";
    if (state !== "none" && this.state.value !== "signed-out") this.#set(state === "open" ? "live" : "reconnecting");
  }

  /** What a request met. It counts where no stream knows better. */
  request(answered: boolean): void {
    if (this.state.value !== "signed-out" && !this.#streaming) this.#set(answered ? "live" : "reconnecting");
  }

  signedIn(): void {
    this.#set("live");
  }

  signedOut(): void {
    this.#set("signed-out");
  }

  #set(state: ConnectionState): void {
    if (this.state.value === state) return;
    this.state.value = state;
    clearTimeout(this.#timer);
    if (state === "reconnecting") this.#startTimer();
    else this.away.value = false;
    if (state === "live") for (const then of this.#back) then();
  }

  #startTimer(): void {
    this.#timer = setTimeout(() => (this.away.value = true), CALM_MS);
  }
}
