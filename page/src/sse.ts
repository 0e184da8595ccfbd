/** Server-sent events out of pieces of text, however the network cut them. Knows the format, not what the events mean. */

export interface SseEvent {
  id: string;
  name: string;
  data: string;
}

export class SseParser {
  #rest = "";
  #started = false;
  #id = "";
  #name = "";
  #data: string[] = [];

  /** The events that are complete with this piece. A line or an event that is not complete yet waits for the next. */
  push(piece: string): SseEvent[] {
    let text = this.#rest + piece;
    // What waits holds no line end, except perhaps a CR at its very end: only what is new is searched.
    const search = Math.max(0, this.#rest.length - 1);
    if (!this.#started && text.length > 0) {
      this.#started = true;
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    }
    const events: SseEvent[] = [];
    let from = 0;
    for (let i = search; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit !== 10 && unit !== 13) continue;
      // A CR at the very end may be half of a CRLF: wait for what follows it.
      if (unit === 13 && i + 1 === text.length) break;
      this.#line(text.slice(from, i), events);
      if (unit === 13 && text.charCodeAt(i + 1) === 10) i++;
      from = i + 1;
    }
    this.#rest = text.slice(from);
    return events;
  }

  #line(line: string, events: SseEvent[]): void {
    if (line === "") {
      if (this.#data.length > 0) events.push({ id: this.#id, name: this.#name || "message", data: this.#data.join("\n") });
      this.#name = "";
      this.#data = [];
      return;
    }
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
  }
}
