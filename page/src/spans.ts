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
  /** Which process ran it, by its number; an empty label where that is no longer known. */
  processes: Span[];
  /** When the turn ended; what comes later is its delivery. */
  ended: number | null;
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
  | { at: number; kind: "started"; attempt: number; pid: string }
  | { at: number; kind: "call"; name: string; arguments: unknown; outcome: string | null; ms: number | null }
  | { at: number; kind: "responded"; model: string; step: number; input: number; output: number }
  | { at: number; kind: "failed-request"; model: string; why: string }
  | { at: number; kind: "interrupted"; reason: string; written: number; results: number }
  | { at: number; kind: "resumed"; attempt: number; pid: string; rule: string; why: string | null; considered: Considered[] }
  | { at: number; kind: "left"; rule: string; why: string | null; considered: Considered[] }
  | { at: number; kind: "asked"; form: string; text: string; call: { name: string; arguments: unknown } | null; expires_at: string | null }
  | { at: number; kind: "answered"; by: string | null; verdict: string | null }
  | { at: number; kind: "closed"; why: string }
  | { at: number; kind: "written"; characters: number }
  | { at: number; kind: "delivery"; state: string; tries: number }
  | { at: number; kind: "stop"; by: string | null }
  | { at: number; kind: "ended"; outcome: string; error: string | null; rule: string | null; why: string | null; considered: Considered[] };

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const count = (value: unknown): number => (typeof value === "number" ? value : 0);
const pid = (data: Record<string, unknown>): string => (typeof data.pid === "number" ? String(data.pid) : "");
const time = (record: TurnRecord): number => Date.parse(text(record.data.at)) || 0;

function proposed(call: unknown): { name: string; arguments: unknown } | null {
  const { name, arguments: given } = (call ?? {}) as Record<string, unknown>;
  return typeof name === "string" ? { name, arguments: given } : null;
}

function considered(data: Record<string, unknown>): Considered[] {
  return Array.isArray(data.considered) ? (data.considered as Considered[]) : [];
}

/** `now`: until when a turn that has not ended is drawn. */
export function picture(records: TurnRecord[], now: number): Picture {
  const first = records[0] ? time(records[0]) : now;
  const made: Picture = { from: first, to: first, attempts: [], tools: [], gaps: [], waits: [], delivery: [], open: true, processes: [], ended: null };
  let attempt: Span | null = null;
  let process: Span | null = null;
  let holder = "";
  let idle: { from: number; gap: boolean } | null = null;
  const calls = new Map<string, Span>();
  const stop = (at: number): void => {
    if (attempt !== null) attempt.to = at;
    if (process !== null) process.to = at;
    attempt = process = null;
  };
  const begin = (at: number, number: number): void => {
    if (idle !== null) (idle.gap ? made.gaps : made.waits).push({ from: idle.from, to: at });
    idle = null;
    attempt = { from: at, to: at, tone: "writes", label: String(number) };
    made.attempts.push(attempt);
    process = { from: at, to: at, tone: "process", label: holder };
    made.processes.push(process);
  };
  for (const record of records) {
    const at = time(record);
    const { data } = record;
    made.to = Math.max(made.to, at);
    switch (record.name) {
      case "turn.taken": holder = pid(data); break;
      case "turn.started":
        holder = pid(data);
        begin(at, count(data.attempt) || 1);
        break;
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
      case "delivery.changed": if (data.state !== "sending") made.delivery.push({ at, state: text(data.state) }); break;
      case "turn.ended":
        stop(at);
        made.open = false;
        made.ended = at;
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
  for (const span of made.processes.slice(0, -1)) span.tone = "past";
  return made;
}

/** The axis: a time becomes a place between 0 and `width`. A wait, also one for the delivery, that is longer than all the work is drawn short. */
export function axis(made: Picture, width: number): { place: (at: number) => number; breaks: number[]; ticks: number[] } {
  const sent = made.ended !== null && made.to > made.ended ? [{ from: made.ended, to: made.to }] : [];
  const idle = [...made.waits, ...made.gaps, ...sent].sort((a, b) => a.from - b.from);
  const resting = idle.reduce((sum, span) => sum + span.to - span.from, 0);
  const total = Math.max(1, made.to - made.from);
  const busy = Math.max(1, total - resting);
  const drawn_as = (length: number): number => (length > Math.max(busy, 1000) ? Math.max(busy * 0.4, 1000) : length);
  const pieces: { from: number; to: number; length: number }[] = [];
  let at = made.from;
  for (const span of idle) {
    if (span.from > at) pieces.push({ from: at, to: span.from, length: span.from - at });
    pieces.push({ from: span.from, to: span.to, length: drawn_as(span.to - span.from) });
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
  // Times at even places, but none within a wait: there the axis may be broken.
  let passed = 0;
  const ticks: number[] = [];
  for (const piece of pieces) {
    const rests = idle.some((span) => span.from === piece.from && span.to === piece.to);
    for (const share of [0.2, 0.4, 0.6, 0.8]) {
      const into = share * drawn - passed;
      if (!rests && into >= 0 && into < piece.length) ticks.push(piece.from + into);
    }
    passed += piece.length;
  }
  return { place, breaks, ticks };
}

export function story(records: TurnRecord[]): Happening[] {
  const told: Happening[] = [];
  const calls = new Map<string, Extract<Happening, { kind: "call" }>>();
  let results = 0;
  let holder = "";
  for (const record of records) {
    const { data } = record;
    const at = time(record);
    switch (record.name) {
      case "turn.started": told.push({ at, kind: "started", attempt: count(data.attempt) || 1, pid: pid(data) }); break;
      case "turn.taken": holder = pid(data); break;
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
      case "turn.resumed": told.push({ at, kind: "resumed", attempt: count(data.attempt), pid: holder, rule: text(data.rule), why: text(data.why) || null, considered: considered(data) }); break;
      case "turn.left": told.push({ at, kind: "left", rule: text(data.rule), why: text(data.why) || null, considered: considered(data) }); break;
      case "question.asked": told.push({ at, kind: "asked", form: text(data.form) || "question", text: text(data.text), call: data.form === "approval" ? proposed(data.call) : null, expires_at: text(data.expires_at) || null }); break;
      case "question.answered": told.push({ at, kind: "answered", by: text(data.by) || null, verdict: text(data.verdict) || null }); break;
      case "question.closed": told.push({ at, kind: "closed", why: text(data.why) }); break;
      case "message.written": if (data.role === "assistant") told.push({ at, kind: "written", characters: text(data.text).length }); break;
      case "delivery.changed": if (data.state !== "sending") told.push({ at, kind: "delivery", state: text(data.state), tries: count(data.tries) }); break;
      case "stop.requested": told.push({ at, kind: "stop", by: text(data.by) || null }); break;
      case "turn.ended": told.push({ at, kind: "ended", outcome: text(data.outcome), error: text(data.error) || null, rule: text(data.rule) || null, why: text(data.why) || null, considered: considered(data) }); break;
    }
  }
  return told;
}
