/**
 * The event stream of one session, for as long as it is watched: one connection at a time, begun again after the last event
 * that was received whenever it ends, for whatever reason. Knows how to stay connected, not what the events mean.
 */

import { type Fetch, failure, Refused, SignedOut } from "./api";
import { delayMs } from "./backoff";
import type { LogEvent } from "./log";
import type { Pause } from "./pause";
import { type SseEvent, SseParser } from "./sse";

/** Longer than two heartbeats: a connection that is silent for this long is dead, whatever the network says. */
const SILENCE_MS = 40_000;

export interface Watch {
  fetch: Fetch;
  /** The address of the stream, from where it is to continue. */
  path(): string;
  connected(): void;
  disconnected(): void;
  /** Something came, if only a heartbeat. */
  heard(): void;
  received(event: LogEvent): void;
  pause: Pause;
  random(): number;
  signal: AbortSignal;
}

/** Follows until `signal` ends it, or the server says that it is no use: signed out, or no such session. */
export async function follow(watch: Watch): Promise<"stopped" | "signed-out" | "gone"> {
  let failures = 0;
  while (!watch.signal.aborted) {
    let heard = false;
    try {
      await connection(watch, () => {
        heard = true;
        watch.heard();
      });
    } catch (error) {
      if (error instanceof SignedOut) return "signed-out";
      if (error instanceof Refused && (error.status === 404 || error.status === 410)) return "gone";
      // Anything else, a network error above all, is a reason to try again.
    }
    if (watch.signal.aborted) break;
    watch.disconnected();
    failures = heard ? 1 : failures + 1;
    await watch.pause.wait(delayMs(failures, watch.random()), watch.signal);
  }
  return "stopped";
}

async function connection(watch: Watch, heard: () => void): Promise<void> {
  const silence = new AbortController();
  const stop = (): void => silence.abort();
  watch.signal.addEventListener("abort", stop);
  let timer = setTimeout(stop, SILENCE_MS);
  try {
    const response = await watch.fetch(watch.path(), {
      headers: { Accept: "text/event-stream" }, credentials: "same-origin", cache: "no-store", signal: silence.signal,
    });
    if (!response.ok || response.body === null) throw await failure(response);
    watch.connected();
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const parser = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || watch.signal.aborted) return;
      heard();
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE_MS);
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        const received = logEvent(event);
        if (event.name === "end" && received.data.session_id === undefined) return;
        watch.received(received);
      }
    }
  } finally {
    clearTimeout(timer);
    watch.signal.removeEventListener("abort", stop);
    silence.abort();
  }
}

function logEvent(event: SseEvent): LogEvent {
  const data: unknown = JSON.parse(event.data);
  return { id: event.id, name: event.name, data: typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {} };
}
