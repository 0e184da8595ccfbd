/** A turn as a picture and as a story, from its records. Pure: events in, lanes and sentences out; the drawing is in `ui/`. */

export interface TurnRecord {
  name: string;
  data: Record<string, unknown>;
}

export type Tone = "writes" | "tool" | "failed" | "unknown" | "waits" | "process" | "past";

export interface Span {
  from: number;
  to: number;
  tone: Tone;
  label: string;
}

/** Times are in milliseconds. A gap is when nobody ran it; a break is a long wait that the axis leaves out. */
export interface Picture {
  from: number;
  to: number;
  attempts: Span[];
  tools: Span[];
  gaps: { from: number; to: number }[];
  waits: { from: number; to: number }[];
  delivery: { at: number; state: string }[];
  open: boolean;
}

/** A rule that was looked at, and the fact that it looked at: in the server's words and, if it is one that the page can word, by its name and numbers. */
export interface Considered {
  rule: string;
  fact: string;
  applies: boolean;
  known_as?: string;
  numbers?: number[];
}

export type Happening =
  | { at: number; kind: "started"; attempt: number }
  | { at: number; kind: "call"; name: string; arguments: unknown; outcome: string | null; ms: number | null }
  | { at: number; kind: "responded"; model: string; step: number; input: number; output: number }
  | { at: number; kind: "failed-request"; model: string; why: string }
  | { at: number; kind: "interrupted"; reason: string; written: number; results: number }
  | { at: number; kind: "resumed"; attempt: number; rule: string; why: string | null; considered: Considered[] }
  | { at: number; kind: "left"; rule: string; why: string | null; considered: Considered[] }
  | { at: number; kind: "asked"; form: string; text: string; expires_at: string | null }
  | { at: number; kind: "answered"; by: string | null; verdict: string | null }
  | { at: number; kind: "closed"; why: string }
  | { at: number; kind: "written"; characters: number }
  | { at: number; kind: "delivery"; state: string; tries: number }
  | { at: number; kind: "stop"; by: string | null }
  | { at: number; kind: "ended"; outcome: string; error: string | null; rule: string | null; why: string | null; considered: Considered[] };

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const count = (value: unknown): number => (typeof value === "number" ? value : 0);
const time = (record: TurnRecord): number => Date.parse(text(record.data.at)) || 0;

function considered(data: Record<string, unknown>): Considered[] {
  return Array.isArray(data.considered) ? (data.considered as Considered[]) : [];
}

/** `now`: until when a turn that has not ended is drawn. */
export function picture(records: TurnRecord[], now: number): Picture {
  const first = records[0] ? time(records[0]) : now;
  const made: Picture = { from: first, to: first, attempts: [], tools: [], gaps: [], waits: [], delivery: [], open: true };
  let attempt: Span | null = null;
  let idle: { from: number; gap: boolean } | null = null;
  const calls = new Map<string, Span>();
  const stop = (at: number): void => {
    if (attempt !== null) attempt.to = at;
    attempt = null;
  };
  const begin = (at: number, number: number): void => {
    if (idle !== null) (idle.gap ? made.gaps : made.waits).push({ from: idle.from, to: at });
    idle = null;
    attempt = { from: at, to: at, tone: "writes", label: String(number) };
    made.attempts.push(attempt);
  };
  for (const record of records) {
    const at = time(record);
    const { data } = record;
    made.to = Math.max(made.to, at);
    switch (record.name) {
      case "turn.started": begin(at, count(data.attempt) || 1); break;
      case "turn.resumed": begin(at, count(data.attempt)); break;
      case "turn.interrupted": {
        // It is on record when it was found; it happened when the attempt last showed a sign of life.
        const began = made.attempts[made.attempts.length - 1]?.from ?? at;
        const died = count(data.lived_ms) > 0 ? Math.min(at, began + count(data.lived_ms)) : at;
        stop(died);
        idle = { from: died, gap: true };
        for (const call of calls.values()) if (call.tone === "tool" && call.to === call.from) Object.assign(call, { to: died, tone: "unknown" });
        break;
      }
      case "turn.waiting":
        stop(at);
        idle = { from: at, gap: false };
        for (const call of calls.values()) call.to = at; // The call that asks: nothing runs while it waits.
        calls.clear();
        break;
      case "tool.started": {
        const span: Span = { from: at, to: at, tone: "tool", label: text(data.name) };
        calls.set(text(data.call_id), span);
        made.tools.push(span);
        break;
      }
      case "tool.finished": {
        const span = calls.get(text(data.call_id));
        if (span) Object.assign(span, { to: at, tone: data.outcome === "failed" ? "failed" : data.outcome === "unknown" ? "unknown" : "tool" });
        calls.delete(text(data.call_id));
        break;
      }
      case "delivery.changed": made.delivery.push({ at, state: text(data.state) }); break;
      case "turn.ended":
        stop(at);
        made.open = false;
        if (idle !== null) (idle.gap ? made.gaps : made.waits).push({ from: idle.from, to: at });
        idle = null;
        break;
    }
  }
  if (made.open) {
    made.to = Math.max(made.to, now);
    stop(made.to);
    const waiting = idle as { from: number; gap: boolean } | null;
    if (waiting !== null) (waiting.gap ? made.gaps : made.waits).push({ from: waiting.from, to: made.to });
    for (const call of calls.values()) if (call.tone === "tool") call.to = made.to;
  }
  return made;
}

/** The axis: a time becomes a place between 0 and `width`. A wait that is longer than everything else together is drawn short. */
export function axis(made: Picture, width: number): { place: (at: number) => number; breaks: number[] } {
  const idle = [...made.waits, ...made.gaps].sort((a, b) => a.from - b.from);
  const resting = idle.reduce((sum, span) => sum + span.to - span.from, 0);
  const total = Math.max(1, made.to - made.from);
  const busy = Math.max(1, total - resting);
  const longest = Math.max(busy * 0.5, 1000);
  const pieces: { from: number; to: number; length: number }[] = [];
  let at = made.from;
  for (const span of idle) {
    if (span.from > at) pieces.push({ from: at, to: span.from, length: span.from - at });
    pieces.push({ from: span.from, to: span.to, length: Math.min(span.to - span.from, longest) });
    at = Math.max(at, span.to);
  }
  if (made.to > at) pieces.push({ from: at, to: made.to, length: made.to - at });
  const drawn = Math.max(1, pieces.reduce((sum, piece) => sum + piece.length, 0));
  const place = (time: number): number => {
    let passed = 0;
    for (const piece of pieces) {
      if (time <= piece.to) return ((passed + (piece.to > piece.from ? (Math.max(0, time - piece.from) / (piece.to - piece.from)) * piece.length : 0)) / drawn) * width;
      passed += piece.length;
    }
    return width;
  };
  const breaks = pieces.filter((piece) => piece.length < piece.to - piece.from).map((piece) => (place(piece.from) + place(piece.to)) / 2);
  return { place, breaks };
}

export function story(records: TurnRecord[]): Happening[] {
  const told: Happening[] = [];
  const calls = new Map<string, Extract<Happening, { kind: "call" }>>();
  let results = 0;
  for (const record of records) {
    const { data } = record;
    const at = time(record);
    switch (record.name) {
      case "turn.started": told.push({ at, kind: "started", attempt: count(data.attempt) || 1 }); break;
      case "tool.started": {
        const call = { at, kind: "call" as const, name: text(data.name), arguments: data.arguments, outcome: null, ms: null };
        calls.set(text(data.call_id), call);
        told.push(call);
        break;
      }
      case "tool.finished": {
        const call = calls.get(text(data.call_id));
        results++;
        if (call) Object.assign(call, { outcome: text(data.outcome), ms: at - call.at });
        break;
      }
      case "model.responded": {
        const usage = (data.usage ?? {}) as Record<string, unknown>;
        told.push({ at, kind: "responded", model: text(data.model), step: count(data.step), input: count(usage.input), output: count(usage.output) });
        break;
      }
      case "model.failed": told.push({ at, kind: "failed-request", model: text(data.model), why: text(data.why) }); break;
      case "turn.interrupted": told.push({ at, kind: "interrupted", reason: text(data.reason), written: count(data.written), results }); break;
      case "turn.resumed": told.push({ at, kind: "resumed", attempt: count(data.attempt), rule: text(data.rule), why: text(data.why) || null, considered: considered(data) }); break;
      case "turn.left": told.push({ at, kind: "left", rule: text(data.rule), why: text(data.why) || null, considered: considered(data) }); break;
      case "question.asked": told.push({ at, kind: "asked", form: text(data.form) || "question", text: text(data.text), expires_at: text(data.expires_at) || null }); break;
      case "question.answered": told.push({ at, kind: "answered", by: text(data.by) || null, verdict: text(data.verdict) || null }); break;
      case "question.closed": told.push({ at, kind: "closed", why: text(data.why) }); break;
      case "message.written": if (data.role === "assistant") told.push({ at, kind: "written", characters: text(data.text).length }); break;
      case "delivery.changed": told.push({ at, kind: "delivery", state: text(data.state), tries: count(data.tries) }); break;
      case "stop.requested": told.push({ at, kind: "stop", by: text(data.by) || null }); break;
      case "turn.ended": told.push({ at, kind: "ended", outcome: text(data.outcome), error: text(data.error) || null, rule: text(data.rule) || null, why: text(data.why) || null, considered: considered(data) }); break;
    }
  }
  return told;
}
