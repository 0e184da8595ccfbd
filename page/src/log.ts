/**
 * What the page shows of a conversation, as a pure fold over its log: `apply(view, event)` gives the view after the event.
 *
 * `view.session` has the shape of `GET /api/sessions/{id}`; what a reader who was away gets in one piece and what a reader who
 * stayed has folded together are the same. Beside it stand the few things only a live reader knows. Unchanged messages keep
 * their identity, so that a drawing of them can be kept too. Knows nothing of networks, clocks and the document.
 */

import { type Counted, counted, splice } from "./codepoints";
import { cutText, leftOut } from "./words";
import type { Message, MessagePage, Question, Role, Session, ToolCall, ToolOutcome, Turn, TurnOutcome } from "./types";

export interface View {
  session: Session;
  /** The answer that is being written, with its length, so that appending is cheap. */
  writing: (Counted & { turn_id: string }) | null;
  /** The turn for which a stop is on record and whose end is still to come. */
  stopping: string | null;
  /** What the agent thought aloud in its present turn. It is not part of the record. */
  reasoning: { turn_id: string; text: string } | null;
}

export interface LogEvent {
  id: string;
  name: string;
  data: Record<string, unknown>;
}

export interface Cursor {
  log: string;
  seq: number;
}

export function parseCursor(id: string): Cursor | null {
  const match = /^(.+)\.(\d+)$/.exec(id);
  return match ? { log: match[1]!, seq: Number(match[2]) } : null;
}

export function viewOf(session: Session): View {
  return { session, writing: null, stopping: null, reasoning: null };
}

/** The view with a page of earlier messages above those it has. One that does not lead up to them changes nothing. */
export function prepend(view: View, page: MessagePage, before: string): View {
  const { session } = view;
  if (session.earlier !== before) return view;
  const known = new Set(session.messages.map((message) => message.id));
  const turns = new Set(session.turns.map((turn) => turn.id));
  return change(view, {
    messages: [...page.messages.filter((message) => !known.has(message.id)), ...session.messages],
    turns: [...page.turns.filter((turn) => !turns.has(turn.id)), ...session.turns],
    earlier: page.earlier,
  });
}

/** True for an event this view contains already. */
export function isKnown(view: View, id: string): boolean {
  const ours = parseCursor(view.session.cursor);
  const theirs = parseCursor(id);
  return ours !== null && theirs !== null && ours.log === theirs.log && theirs.seq <= ours.seq;
}

/** True for an event of another log: this view cannot be continued with it. */
export function isForeign(view: View, id: string): boolean {
  const ours = parseCursor(view.session.cursor);
  const theirs = parseCursor(id);
  return ours !== null && theirs !== null && ours.log !== theirs.log;
}

export function isWaiting(message: Message): boolean {
  return message.role === "user" && message.turn_id === null && message.status === "complete";
}

/**
 * The messages in the order in which they are read: those that have their turn, then those that wait for one. What the gateway said
 * since the first of them came, and what was said to it, stands among those that wait, by its time: a notice is read below what it is about.
 */
export function reading(messages: Message[]): { settled: Message[]; waiting: Message[] } {
  const waiting = messages.filter(isWaiting);
  const settled = messages.filter((message) => !isWaiting(message));
  const first = waiting[0];
  if (first === undefined) return { settled, waiting };
  let aside = settled.length;
  while (aside > 0 && settled[aside - 1]!.turn_id === null && settled[aside - 1]!.created_at >= first.created_at) aside--;
  const said = settled.splice(aside);
  const merged = [...waiting, ...said].sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0));
  return { settled, waiting: merged };
}

/** The turn that has not ended, if there is one. */
export function openTurn(session: Session): Turn | null {
  const last = session.turns[session.turns.length - 1];
  return last && last.state !== "ended" ? last : null;
}

/** The turn that is under way: one that was cut and left is not. */
export function liveTurn(session: Session): Turn | null {
  const open = openTurn(session);
  return open?.state === "interrupted" && session.left ? null : open;
}

export function apply(view: View, event: LogEvent): View {
  if (event.name === "snapshot") {
    const session = event.data as unknown as Session;
    return viewOf(event.id ? { ...session, cursor: event.id } : session);
  }
  if (event.name === "end" || isKnown(view, event.id)) return view;
  const step = STEPS[event.name];
  const next = step ? step(met(view, event), event.data, event.id) : view;
  // Outside a turn, what is written are words to and from the gateway itself: a conversation does not live by them.
  const aside = event.name === "message.written" && text(event.data.turn_id) === null;
  const at = LIVELY.has(event.name) && !aside ? text(event.data.at) : null;
  return change(next, { cursor: event.id || next.session.cursor, updated_at: at ?? next.session.updated_at });
}

/** A turn whose start is damaged begins with the first of its events that reads. */
function met(view: View, event: LogEvent): View {
  const { data, name } = event;
  const in_turn = typeof data.position === "number" && name !== "damaged" && name !== "turn.started";
  if (!in_turn || view.session.turns.some((turn) => turn.id === data.turn_id)) return view;
  const generation = (view.session.turns[view.session.turns.length - 1]?.generation ?? 0) + 1;
  return STEPS["turn.started"]!(view, { at: data.at, turn_id: data.turn_id, attempt: data.attempt, generation, cause: "message" }, event.id);
}

/** What counts as a sign of life in the list of conversations. */
const LIVELY = new Set([
  "session.created", "session.resumed", "message.accepted", "message.written", "turn.started", "turn.ended", "turn.interrupted", "question.asked",
]);

type Data = Record<string, unknown>;
type Step = (view: View, data: Data, id: string) => View;

const STEPS: Record<string, Step> = {
  "session.created": (view, data) =>
    change(view, { title: text(data.title) ?? view.session.title, session_key: text(data.session_key) ?? view.session.session_key }),

  "session.changed": (view, data) => {
    const changed: Data = {};
    for (const field of CHANGEABLE) if (field in data) changed[field] = data[field];
    // A mark has a reason and a time; both come and go with it.
    const marks = { resume_reason: "restart_timeout", last_resume_marked_at: text(data.at) };
    if (changed.resume_pending === true) return change(view, { ...marks, ...changed } as Partial<Session>);
    if (changed.resume_pending === false) return change(view, { ...changed, ...UNMARKED } as Partial<Session>);
    return change(view, changed as Partial<Session>);
  },

  "session.resumed": (view) => change(view, { current: true, suspended: false, interrupted_restarts: 0, left: false }),

  "message.accepted": (view, data) => {
    const id = text(data.message_id) ?? "";
    if (view.session.messages.some((message) => message.id === id)) return view;
    const message = newMessage(id, "user", text(data.text) ?? "", null, data);
    return settled(change(view, { messages: [...view.session.messages, message] }));
  },

  "message.refused": (view, data) => {
    const message = view.session.messages.find((m) => m.id === data.message_id);
    if (message === undefined || !isWaiting(message)) return view;
    const messages = place(view.session.messages.filter((m) => m !== message), { ...message, status: "refused" });
    return settled(change(view, { messages }));
  },

  "message.written": written,

  "turn.started": (view, data) => {
    const id = turnId(data);
    const ids = new Set(Array.isArray(data.causes) ? data.causes : []);
    const turn: Turn = {
      id, generation: number(data.generation) ?? 0, attempt: number(data.attempt) ?? 1, cause: text(data.cause) ?? "", state: "running",
      outcome: null, rule: null, started_at: text(data.at) ?? "", ended_at: null, error: null,
    };
    const turns = [...view.session.turns.filter((other) => other.id !== id), turn];
    const messages = take(view.session.messages, (message) => ids.has(message.id), id);
    const begun = change(view, { turns, messages, generation: turn.generation, left: false, rule: null, why: null });
    return settled({ ...begun, writing: null, reasoning: null, stopping: null });
  },

  text: (view, data) => {
    const id = turnId(data);
    const opened = openAnswer(view, id, data);
    const answer = opened.session.messages[answerIndex(opened.session, id)]!;
    const so_far = view.writing?.turn_id === id ? view.writing : counted(answer.text);
    const writing = { ...splice(so_far, number(data.offset) ?? so_far.points, text(data.text) ?? ""), turn_id: id };
    return updateMessage({ ...opened, writing }, (m) => m === answer, (m) => ({ ...m, text: writing.text }));
  },

  reasoning: (view, data) => {
    const id = turnId(data);
    const before = view.reasoning?.turn_id === id ? view.reasoning.text : "";
    return { ...view, reasoning: { turn_id: id, text: before + (text(data.text) ?? "") } };
  },

  "tool.started": (view, data) => {
    const call: ToolCall = {
      call_id: text(data.call_id) ?? "", name: text(data.name) ?? "tool", arguments: data.arguments ?? {}, outcome: null, result: null, output: "",
    };
    const id = turnId(data);
    const opened = openAnswer(view, id, data);
    return updateMessage(opened, (m) => isAnswer(m, id), (m) => {
      const calls = m.tool_calls ?? [];
      // A call that is made again, by a later attempt, is the same call: what it printed before no longer counts.
      const again = calls.some((other) => other.call_id === call.call_id);
      return { ...m, tool_calls: again ? calls.map((other) => (other.call_id === call.call_id ? { ...other, output: "" } : other)) : [...calls, call] };
    });
  },

  "tool.output": (view, data) => {
    const omitted = number(data.omitted) ?? 0;
    const piece = (omitted > 0 ? leftOut(omitted) : "") + (text(data.text) ?? "");
    return updateCall(view, data, (call) => ({ ...call, output: (call.output ?? "") + piece }));
  },

  "tool.finished": (view, data) =>
    updateCall(view, data, (call) => ({ ...call, outcome: (text(data.outcome) as ToolOutcome | null) ?? "unknown", result: data.result ?? null })),

  "question.asked": (view, data) => {
    const question: Question = {
      question_id: text(data.question_id) ?? "", turn_id: text(data.turn_id), call_id: text(data.call_id) ?? "", text: text(data.text) ?? "",
      asked_at: text(data.at) ?? "", expires_at: text(data.expires_at),
    };
    return settled(updateTurn(change(view, { question }), turnId(data), { state: "waiting" }));
  },

  "question.answered": (view, data) => {
    const id = text(data.turn_id) ?? view.session.question?.turn_id ?? null;
    const named = text(data.message_id);
    const { messages } = view.session;
    // The answer may have come as a message: that one then belongs to the turn that asked.
    const waiting = messages.find((m) => isWaiting(m) && (named === null ? m.text === data.text : m.id === named));
    const answer = waiting ?? newMessage(named ?? `${text(data.question_id)}.answer`, "user", text(data.text) ?? "", null, data);
    const answered = place(messages.filter((m) => m !== waiting), { ...answer, turn_id: id });
    const closed = updateCall(change(view, { question: null, messages: answered }), data, (call) => ({ ...call, outcome: "done", result: data.text ?? null }));
    return settled(change(closed, { left: false }));
  },

  "stop.requested": (view, data) => ({ ...view, stopping: text(data.turn_id) ?? openTurn(view.session)?.id ?? null }),

  "turn.interrupted": (view, data) => {
    const id = turnId(data);
    const reason = text(data.reason) ?? "crash";
    const attempt = number(data.attempt) ?? view.session.turns.find((turn) => turn.id === id)?.attempt ?? 1;
    const written = number(data.written);
    const answer = view.session.messages[answerIndex(view.session, id)];
    const worked = (answer?.tool_calls?.length ?? 0) > 0;
    const wrote = written === null ? (answer?.text ?? "") !== "" : written > 0;
    const kept = wrote || worked;
    const opened = wrote ? openAnswer(view, id, data) : view; // It stands above the row that tells of its interruption.
    const row: Message = {
      ...newMessage(`${id}.cut.${attempt}`, "interruption", cutText(reason, wrote, worked), id, data),
      state: kept ? "recovered" : "neutral", reason, rule: null, decision: null, attempt: null,
    };
    const cut = updateTurn(change(opened, { messages: place(opened.session.messages, row) }), id, { state: "interrupted" });
    const counted = change(cut, { interrupted_restarts: number(data.restarts) ?? view.session.interrupted_restarts });
    // Suspended wins: such a session is never marked.
    if (view.session.suspended) return settled(counted);
    return settled(change(counted, { resume_pending: true, resume_reason: reason, last_resume_marked_at: text(data.at) }));
  },

  "turn.resumed": (view, data) => {
    const id = turnId(data);
    const attempt = number(data.attempt) ?? 1;
    const decided = change(updateTurn(decide(view, data, "resumed", attempt), id, { state: "running", attempt }), { left: false });
    // The answer goes on below whatever came between its attempts.
    const answer = decided.session.messages[answerIndex(decided.session, id)];
    const messages = answer ? place(decided.session.messages.filter((m) => m !== answer), answer) : decided.session.messages;
    return settled(change(decided, { messages }));
  },

  "turn.left": (view, data) => change(decide(view, data, "left"), { left: true }),

  "turn.ended": (view, data) => {
    const id = turnId(data);
    const outcome = (text(data.outcome) as TurnOutcome | null) ?? "completed";
    let next = updateMessage(view, (m) => isAnswer(m, id) && m.status === "partial", (m) => ({ ...m, status: "complete" }));
    if (text(data.rule) !== null) next = decide(next, data, DECIDED[outcome]);
    next = change(next, { question: null, left: false, ...(data.still_pending !== true && UNMARKED) });
    if (outcome === "completed") next = change(next, { interrupted_restarts: 0 });
    next = updateTurn(next, id, { state: "ended", outcome, error: text(data.error), ended_at: text(data.at) });
    return settled({ ...next, writing: null, stopping: null, reasoning: null });
  },

  damaged: (view, data, id) => {
    const said = `One record of this conversation could not be read: ${text(data.reason)}.`;
    const notice = newMessage(`notice.${parseCursor(id)?.seq ?? id}`, "notice", said, text(data.turn_id), data);
    return change(view, { messages: place(view.session.messages, notice) });
  },
};

const UNMARKED = { resume_pending: false, resume_reason: null, last_resume_marked_at: null };

/** How a decision that ended a cut turn is told. */
const DECIDED: Record<TurnOutcome, string> = { completed: "ended", failed: "ended", cancelled: "cancelled", set_aside: "set aside" };

/** Fields of a session that an event may change by name. */
const CHANGEABLE = [
  "title", "pinned", "archived", "suspended", "resume_pending", "resume_reason", "last_resume_marked_at",
  "was_auto_reset", "auto_reset_reason", "interrupted_restarts",
] as const;

/** A message, whole. The answer takes the place of the one that was being written; a message that waited has its turn now. */
function written(view: View, data: Data): View {
  const role = (text(data.role) as Role | null) ?? "notice";
  const turn = text(data.turn_id);
  const body = text(data.text) ?? "";
  if (role === "assistant" && turn !== null) {
    const opened = openAnswer(view, turn, data);
    return updateMessage({ ...opened, writing: null }, (m) => isAnswer(m, turn), (m) => ({ ...m, text: body, status: "complete", created_at: text(data.at) ?? m.created_at }));
  }
  const id = text(data.message_id) ?? "";
  const known = view.session.messages.find((m) => m.id === id);
  if (known && !isWaiting(known)) return updateMessage(view, (m) => m === known, (m) => ({ ...m, text: body }));
  const message = newMessage(id, role, body, turn, data);
  if (known) message.created_at = known.created_at;
  if (role === "user" && turn === null) message.status = "command";
  return settled(change(view, { messages: place(view.session.messages.filter((m) => m !== known), message) }));
}

function change(view: View, changed: Partial<Session>): View {
  return { ...view, session: { ...view.session, ...changed } };
}

/** The state and the count of waiting messages, as they follow from turns, messages and question. */
function settled(view: View): View {
  const { session } = view;
  const queued = session.messages.filter(isWaiting).length;
  const open = openTurn(session);
  const idle = queued > 0 ? "queued" : "idle";
  const state = open === null ? idle : open.state === "waiting" ? (session.question ? "waiting" : "running") : open.state === "interrupted" ? "interrupted" : "running";
  return change(view, { state, queued });
}

function newMessage(id: string, role: Role, body: string, turn_id: string | null, data: Data): Message {
  return { id, role, text: body, turn_id, created_at: text(data.at) ?? "", status: "complete" };
}

/** With `message` after everything that has its turn and before what still waits for one. */
function place(messages: Message[], message: Message): Message[] {
  let end = messages.length;
  while (end > 0 && isWaiting(messages[end - 1]!)) end--;
  return [...messages.slice(0, end), message, ...messages.slice(end)];
}

/** The waiting messages that `taken` names now belong to the turn, and stand before those that still wait. */
function take(messages: Message[], taken: (message: Message) => boolean, turn_id: string): Message[] {
  const mine = messages.filter((message) => isWaiting(message) && taken(message));
  return mine.reduce((rest, message) => placeAbove(rest, { ...message, turn_id }), messages.filter((message) => !mine.includes(message)));
}

/** Above what the gateway said and heard while it waited: a notice stands below the message it is about. */
function placeAbove(messages: Message[], message: Message): Message[] {
  let end = messages.length;
  while (end > 0 && isWaiting(messages[end - 1]!)) end--;
  while (end > 0 && messages[end - 1]!.turn_id === null && messages[end - 1]!.created_at >= message.created_at) end--;
  return [...messages.slice(0, end), message, ...messages.slice(end)];
}

function isAnswer(message: Message, turn_id: string): boolean {
  return message.role === "assistant" && message.turn_id === turn_id;
}

function answerIndex(session: Session, turn_id: string): number {
  return session.messages.findLastIndex((message) => isAnswer(message, turn_id));
}

/** With an answer of this turn to write to. An answer is one message, however many attempts it takes. */
function openAnswer(view: View, turn_id: string, data: Data): View {
  if (answerIndex(view.session, turn_id) >= 0) return view;
  const answer: Message = { ...newMessage(`${turn_id}.answer`, "assistant", "", turn_id, data), status: "partial", tool_calls: [] };
  // Behind what belongs to the turn and what was said before it started; before what was said since. The same place, whether its pieces
  // are read or not.
  const { messages, turns } = view.session;
  const started_at = turns.find((turn) => turn.id === turn_id)?.started_at ?? "";
  let behind = messages.findLastIndex((message) => message.turn_id === turn_id) + 1;
  const isAside = (message: Message | undefined) => message !== undefined && message.turn_id === null && !isWaiting(message) && message.created_at <= started_at;
  while (behind > 0 && isAside(messages[behind])) behind++;
  return change(view, { messages: behind > 0 ? [...messages.slice(0, behind), answer, ...messages.slice(behind)] : place(messages, answer) });
}

function updateMessage(view: View, which: (message: Message) => boolean, how: (message: Message) => Message): View {
  const index = view.session.messages.findLastIndex(which);
  if (index < 0) return view;
  const messages = view.session.messages.slice();
  messages[index] = how(messages[index]!);
  return change(view, { messages });
}

function updateCall(view: View, data: Data, how: (call: ToolCall) => ToolCall): View {
  const id = data.call_id;
  const has = (message: Message) =>
    (data.turn_id === undefined || data.turn_id === null || message.turn_id === data.turn_id) && (message.tool_calls?.some((call) => call.call_id === id) ?? false);
  return updateMessage(view, has, (m) => ({ ...m, tool_calls: m.tool_calls!.map((call) => (call.call_id === id ? how(call) : call)) }));
}

function updateTurn(view: View, id: string, changed: Partial<Turn>): View {
  return change(view, { turns: view.session.turns.map((turn) => (turn.id === id ? { ...turn, ...changed } : turn)) });
}

/** Says what was decided: of the session, on the turn, and on the row that tells of its cut. A turn that was left is decided upon again. */
function decide(view: View, data: Data, decision: string, attempt: number | null = null): View {
  const id = turnId(data);
  const rule = text(data.rule);
  const why = text(data.why);
  const told = `${decision}: rule ${rule}${why ? `, ${why}` : ""}`;
  const decided = updateTurn(change(view, { rule, why }), id, { rule });
  const row = decided.session.messages.findLast((m) => m.role === "interruption" && m.turn_id === id);
  // A resumed attempt is over with its cut: what is decided later concerns another one.
  if (row === undefined || row.attempt) return decided;
  return updateMessage(decided, (m) => m === row, (m) => ({ ...m, rule, decision: told, attempt }));
}

function turnId(data: Data): string {
  return text(data.turn_id) ?? "";
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function number(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
