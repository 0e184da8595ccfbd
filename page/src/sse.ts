/** Server-sent events out of pieces of text, wherever the network split them. Knows the format, not what the events mean. */

import { createParser } from "eventsource-parser";

export interface SseEvent {
  id: string;
  name: string;
  data: string;
}

export class SseParser {
  #complete: SseEvent[] = [];
  #id = "";
  readonly #parser = createParser({
    onEvent: ({ id, event, data }) => {
      this.#id = id ?? this.#id;
      this.#complete.push({ id: this.#id, name: event ?? "message", data });
    },
  });

  /** The events that are complete with this piece. A line or an event that is not complete yet waits for the next. */
  push(piece: string): SseEvent[] {
    this.#parser.feed(piece);
    const complete = this.#complete;
    this.#complete = [];
    return complete;
  }
}
