/**
 * What the page shows of a conversation, as a pure fold over its log: `apply(view, event)` gives the view after the event.
 *
 * `view.session` has the shape of `GET /api/sessions/{id}`; what a reader who was away gets in one piece and what a reader who
 * stayed has folded together are the same. Beside it stand the few things only a live reader knows. Unchanged messages keep
 * their identity, so that a drawing of them can be kept too. Knows nothing of networks, clocks and the document.
 */

import { answerText, isMark, stepText, withAttached, withMark, withText, write, type Writing, writing } from "./answers";
import { countPoints } from "./codepoints";
import { delivered, owed, planned } from "./deliveries";
import { compacted, endThinking, failing, lastFailure, recordThoughts, responding, summarising, thinking, using } from "./models";
import { branchedText, cutText, journalText, leftOut } from "./words";
import type { BytesPart, Message, MessagePage, ModelFailure, Part, Question, Role, Session, Summary, ToolCall, ToolOutcome, Turn, TurnOutcome } from "./types";

export interface View {
  session: Session;
  /** The step that is being written. */
  writing: Writing | null;
  /** The message behind which the answer of a turn stands that has not said anything yet. */
  silent: { turn_id: string; behind: string | null } | null;
  /** The turn for which a stop is on record and whose end is still to come. */
  stopping: string | null;
  /** The `client_id` of messages that came over the stream, by their ids. */
  named: ReadonlyMap<string, string>;
  /** The request to a model that failed last, until the open turn shows anything else. */
  failing: ModelFailure | null;
}

export type Overview = Summary & Pick<Session, "usage">;

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
  const open = openTurn(session);
  const silent = open !== null && session.answer_below ? { turn_id: open.id, behind: session.answer_below } : null;
  return { session, writing: null, silent, stopping: null, named: new Map(), failing: lastFailure(open) };
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

/** Some of a late journal has arrived. Its events belong to places that are long past, so the conversation is read again. */
export function arrivesLate(event: LogEvent): boolean {
  return event.name === "journal.changed" && (Boolean(event.data.text) || (Array.isArray(event.data.call_ids) && event.data.call_ids.length > 0));
}

export function isWaiting(message: Message): boolean {
  return (message.role === "user" || message.role === "cause") && message.turn_id === null && message.status === "complete";
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

/** What is said of a conversation as a whole: its fields stay the same while an answer grows. */
export function summaryOf({ messages, turns, cursor, earlier, questions, answer_below, ...summary }: Session): Overview {
  return summary;
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
    return { ...viewOf(event.id ? { ...session, cursor: event.id } : session), named: view.named };
  }
  if (event.name === "end" || isKnown(view, event.id)) return view;
  const step = STEPS[event.name];
  if (view.failing !== null && FOLLOWS_FAILURE.has(event.name)) view = { ...view, failing: null };
  const next = withName(step ? step(met(view, event), event.data, event.id) : view, event.data);
  // Outside a turn, what is written are words to and from the gateway itself: a conversation does not live by them.
  const aside = event.name === "message.written" && text(event.data.turn_id) === null;
  const at = LIVELY.has(event.name) && !aside ? text(event.data.at) : null;
  return change(next, { cursor: event.id || next.session.cursor, updated_at: at ?? next.session.updated_at });
}

function withName(view: View, data: Data): View {
  const client_id = text(data.client_id);
  const id = text(data.message_id);
  return client_id === null || id === null ? view : { ...view, named: new Map(view.named).set(id, client_id) };
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
  "session.created", "session.resumed", "session.branched", "message.accepted", "message.written", "turn.started", "turn.ended", "turn.interrupted", "question.asked",
]);

/** What shows that the failure of a request is over: the model speaks, or the attempt has ended. */
const FOLLOWS_FAILURE = new Set(["text", "reasoning", "model.responded", "turn.started", "turn.interrupted", "turn.resumed", "turn.ended"]);

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

  "session.branched": (view, data, id) => {
    const notice = newMessage(`branched.${parseCursor(id)?.seq ?? id}`, "notice", { at: data.at, text: branchedText(text(data.title), number(data.left_out) ?? 0) }, null);
    return change(view, { messages: place(view.session.messages, notice) });
  },

  "session.resumed": (view) => change(view, { current: true, suspended: false, interrupted_restarts: 0, left: false }),

  "message.accepted": (view, data) => wait(view, { ...newMessage(text(data.message_id) ?? "", "user", data, null), ...sender(data) }),

  "cause.recorded": (view, data) => wait(view, { ...newMessage(text(data.cause_id) ?? "", "cause", data, null), cause: text(data.what) }),

  "cause.dropped": (view, data) => settled(change(view, { messages: view.session.messages.filter((m) => !isWaiting(m) || m.id !== data.cause_id) })),

  "cause.taken": (view, data) => {
    const id = turnId(data);
    const message = view.session.messages.find((m) => isWaiting(m) && m.id === data.cause_id);
    if (message === undefined) return view;
    const opened = openAnswer(change(view, { messages: view.session.messages.filter((m) => m !== message) }), id, data);
    const messages = above(opened.session, id, { ...message, turn_id: id });
    return settled(marked(change(opened, { messages }), data, { message_id: message.id }));
  },

  "message.refused": (view, data) => {
    const message = view.session.messages.find((m) => m.id === data.message_id);
    if (message === undefined || !isWaiting(message)) return view;
    const messages = place(view.session.messages.filter((m) => m !== message), { ...message, status: "refused" });
    return settled(change(view, { messages }));
  },

  "message.edited": (view, data) =>
    updateMessage(view, (m) => m.id === data.message_id, (m) => ({ ...m, text: text(data.text) ?? "", parts: partsOf(data), edited_at: text(data.at) ?? "" })),

  "message.written": written,

  "turn.started": (view, data) => {
    const id = turnId(data);
    const ids = new Set(Array.isArray(data.causes) ? data.causes : []);
    const turn: Turn = {
      id, generation: number(data.generation) ?? 0, attempt: number(data.attempt) ?? 1, steps: 0, cause: text(data.cause) ?? "", state: "running",
      outcome: null, rule: null, started_at: text(data.at) ?? "", ended_at: null, error: null, ...chosen(data),
    };
    const turns = [...view.session.turns.filter((other) => other.id !== id), turn];
    const messages = take(view.session.messages, (message) => ids.has(message.id), id);
    const begun = change(view, { turns, messages, generation: turn.generation, left: false, rule: null, why: null });
    return settled({ ...begun, writing: null, silent: silent(id, messages), stopping: null });
  },

  text: (view, data) => {
    const id = turnId(data);
    const opened = openAnswer(view, id, data);
    const answer = opened.session.messages[answerIndex(opened.session, id)]!;
    const step = number(data.step) ?? 0;
    const attempt = number(data.attempt) ?? 1;
    const known = view.writing?.turn_id === id && view.writing.step === step ? view.writing : null;
    if (isSuperseded(opened, answer, id, step, attempt, known)) return view;
    const so_far = known ? { ...known, attempt } : writing(answer.parts, id, step, attempt);
    const made = write(so_far, answer.parts, number(data.offset) ?? so_far.from + so_far.tail.points, text(data.text) ?? "");
    const written = updateMessage({ ...opened, writing: made.writing }, (m) => m === answer, (m) => said(m, made.parts));
    return number(data.offset) === 0 ? begunAgainAt(written, id, step, attempt) : written;
  },

  "model.responded": (view, data) => {
    const id = turnId(data);
    const step = number(data.step) ?? 0;
    const opened = openAnswer(view, id, data);
    const fixed = updateMessage(opened, (m) => isAnswer(m, id), (m) => said(m, withText(m.parts, id, step, text(data.text) ?? "")));
    const responded = updateTurn(fixed, id, responding(fixed.session.turns.find((turn) => turn.id === id), data));
    const again = begunAgainAt(responded, id, step, number(data.attempt) ?? 1);
    return { ...change(again, { usage: using(view.session.usage, data) }), writing: null };
  },

  "title.made": (view, data) => (data.usage ? change(view, { usage: using(view.session.usage, data) }) : view),

  "context.compacted": (view, data) => {
    const turn = turnId(data);
    const what = Array.isArray(data.trimmed) && data.trimmed.length > 0 ? data.trimmed[0] : data.through;
    const notice = newMessage(`${turn}.compacted.${what}`, "notice", { at: data.at, text: compacted(data) }, turn);
    const usage = summarising(view.session.turns.find((each) => each.id === turn)?.usage, data);
    const used = change(usage === undefined ? view : updateTurn(view, turn, { usage }), { usage: summarising(view.session.usage, data)! });
    if (view.silent?.turn_id !== turn || answerIndex(view.session, turn) >= 0) return settled(change(used, { messages: above(used.session, turn, notice) }));
    const { messages } = used.session;
    const index = messages.findIndex((message) => message.id === view.silent!.behind) + 1;
    const next = change(used, { messages: [...messages.slice(0, index), notice, ...messages.slice(index)] });
    return settled({ ...next, silent: { turn_id: turn, behind: notice.id } });
  },

  "model.failed": (view, data) => {
    const id = turnId(data);
    const failed = failing(view.session.turns.find((turn) => turn.id === id), data);
    return { ...updateTurn(view, id, { ...endThinking(view.session.turns.find((turn) => turn.id === id)), ...failed }), failing: failed.failures[failed.failures.length - 1]! };
  },

  reasoning: (view, data) => {
    const id = turnId(data);
    const step = number(data.step) ?? 0;
    const turn = view.session.turns.find((each) => each.id === id);
    return turn === undefined ? view : updateTurn(view, id, thinking(turn, step, text(data.text) ?? ""));
  },

  "agent.read": (view, data) => {
    const turn = view.session.turns.find((each) => each.id === turnId(data));
    return turn === undefined ? view : updateTurn(view, turn.id, recordThoughts(turn, text(data.thoughts) ?? ""));
  },

  "tool.started": (view, data) => {
    const call: ToolCall = {
      call_id: text(data.call_id) ?? "", step: number(data.step) ?? 0, name: text(data.name) ?? "tool", arguments: data.arguments ?? {}, outcome: null, result: null, output: "", started_at: text(data.at) ?? "",
    };
    const id = turnId(data);
    const opened = openAnswer(view, id, data);
    const calls = opened.session.messages[answerIndex(opened.session, id)]!.tool_calls ?? [];
    // A call that is made once more, by a later attempt, is the same call: what it printed before no longer counts.
    if (calls.some((other) => other.call_id === call.call_id)) return updateCall(opened, data, (other) => ({ ...begunAgain(other), started_at: call.started_at! }));
    return marked(updateMessage(opened, (m) => isAnswer(m, id), (m) => ({ ...m, tool_calls: [...calls, call] })), data, { call_id: call.call_id });
  },

  "tool.output": (view, data) => {
    const omitted = number(data.omitted) ?? 0;
    const piece = (omitted > 0 ? leftOut(omitted) : "") + (text(data.text) ?? "");
    return updateCall(view, data, (call) => ({ ...call, output: (call.output ?? "") + piece }));
  },

  "tool.finished": (view, data) =>
    updateCall(view, data, (call) => ({ ...call, finished_at: text(data.at) ?? "", outcome: (text(data.outcome) as ToolOutcome | null) ?? "unknown", result: data.result ?? null, ...(Array.isArray(data.parts) && { result_parts: data.parts as Part[] }) })),

  "question.asked": (view, data) => {
    const id = turnId(data);
    const asks = view.session.messages[answerIndex(view.session, id)]?.tool_calls?.find((call) => call.call_id === data.call_id);
    const question: Question = {
      question_id: text(data.question_id) ?? "", kind: text(data.form) ?? "question", turn_id: id, call_id: text(data.call_id) ?? "", text: text(data.text) ?? "", parts: partsOf(data),
      choices: Array.isArray(data.choices) ? (data.choices as string[]) : [], call: proposed(data.call) ?? (asks ? { name: asks.name, arguments: asks.arguments } : null), pattern: text(data.pattern),
      asked_at: text(data.at) ?? "", expires_at: text(data.expires_at),
    };
    const asked = change(view, { questions: [...view.session.questions.filter((other) => other.question_id !== question.question_id), question] });
    // Since version 0.1 a turn waits once it says so.
    return settled(data.ends_attempt === true ? updateTurn(asked, id, { state: "waiting" }) : asked);
  },

  "turn.waiting": (view, data) => settled(updateTurn(view, turnId(data), { state: "waiting" })),

  "question.answered": (view, data) => {
    const id = turnId(data);
    const named = text(data.message_id);
    const { messages } = view.session;
    // The answer may have come as a message: that one then belongs to the turn that asked.
    const waiting = messages.find((m) => isWaiting(m) && m.id === named);
    const asked = view.session.questions.find((question) => question.question_id === data.question_id);
    const answers = asked && { question_id: asked.question_id, kind: asked.kind, text: asked.text, call: asked.call, by: text(data.by), verdict: text(data.verdict) };
    const answer: Message = { ...(waiting ?? newMessage(named ?? `${text(data.question_id)}.answer`, "user", data, id)), turn_id: id, ...(answers && { answers }) };
    const others = change(view, { messages: messages.filter((m) => m !== waiting), questions: view.session.questions.filter((question) => question.question_id !== data.question_id) });
    const running = others.session.turns.find((turn) => turn.id === id)?.state === "running";
    const answered = change(others, { messages: running ? above(others.session, id, answer) : place(others.session.messages, answer) });
    // An answer is the result of the call that asked; a verdict is not, because its call has still to run.
    const closed = typeof data.verdict === "string" ? answered : updateCall(answered, data, (call) => ({ ...call, finished_at: text(data.at) ?? "", outcome: "done", result: data.text ?? null }));
    return settled(change(closed, { left: false }));
  },

  "question.closed": (view, data) => settled(change(view, { questions: view.session.questions.filter((question) => question.question_id !== data.question_id) })),

  "stop.requested": (view, data) => {
    const turn = text(data.turn_id) ?? openTurn(view.session)?.id ?? null;
    const why = view.session.turns.find((other) => other.id === turn)?.stopped_because ?? text(data.why);
    return { ...(turn !== null && why !== null ? updateTurn(view, turn, { stopped_because: why }) : view), stopping: turn };
  },

  "journal.changed": (view, data) =>
    updateMessage(view, (m) => m.stream_id === data.stream_id, (m) => {
      const { stream_id, tries, first_seen, ...row } = m;
      const state = data.state === "recovering" || data.state === "recovered" ? data.state : "neutral";
      const said = journalText(m.reason ?? "", state);
      const told = { ...row, state, text: said, parts: partsOf({ text: said }) } as Message;
      return state === "recovering" ? { ...told, stream_id: stream_id!, tries: number(data.tries) ?? 0, first_seen: first_seen! } : told;
    }),

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
    const cause = view.session.turns.find((turn) => turn.id === id)?.cause ?? "message";
    const stream_id = text(data.stream_id);
    const told = stream_id === null ? cutText(reason, wrote, worked) : journalText(reason, "recovering");
    const row: Message = {
      ...newMessage(`${id}.cut.${attempt}`, "interruption", { at: data.at, text: told }, id),
      state: stream_id !== null ? "recovering" : kept ? "recovered" : "neutral", reason, rule: null, decision: null, attempt: null, written: written ?? 0, step: steps(view, id), offset: steps(view, id) > 0 ? null : (written ?? 0),
      ...(cause === "message" ? {} : { cause }),
      ...(stream_id === null ? {} : { stream_id, tries: 0, first_seen: text(data.at) ?? "" }),
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
    const decided = change(updateTurn(decide(view, data, "resumed", attempt), id, { ...endThinking(view.session.turns.find((turn) => turn.id === id)), state: "running", attempt }), { left: false });
    // The answer goes on below whatever came between its attempts.
    const answer = decided.session.messages[answerIndex(decided.session, id)];
    if (answer === undefined) return settled({ ...decided, silent: silent(id, decided.session.messages) });
    return settled(change(decided, { messages: place(decided.session.messages.filter((m) => m !== answer), answer) }));
  },

  "turn.left": (view, data) => change(decide(view, data, "left"), { left: true }),

  "turn.ended": (view, data) => {
    const id = turnId(data);
    const outcome = (text(data.outcome) as TurnOutcome | null) ?? "completed";
    let next = updateMessage(view, (m) => isAnswer(m, id) && m.status === "partial", (m) => ({ ...m, status: "complete" }));
    if (text(data.rule) !== null) next = decide(next, data, DECIDED[outcome]);
    next = change(next, { questions: view.session.questions.filter((question) => question.turn_id !== id), left: false, ...(data.still_pending !== true && UNMARKED) });
    if (outcome === "completed") next = change(next, { interrupted_restarts: 0 });
    next = updateTurn(next, id, { ...endThinking(next.session.turns.find((turn) => turn.id === id)), state: "ended", outcome, error: text(data.error), ended_at: text(data.at) });
    return settled({ ...next, writing: null, stopping: null });
  },

  "delivery.planned": (view, data) => updateMessage(view, (m) => m.delivery?.delivery_id === data.delivery_id, (m) => ({ ...m, delivery: planned(m.delivery!, data) })),

  "delivery.changed": (view, data) => updateMessage(view, (m) => m.delivery?.delivery_id === data.delivery_id, (m) => ({ ...m, delivery: delivered(m.delivery!, data) })),

  damaged: (view, data, id) => {
    const words = `One record of this conversation could not be read: ${text(data.reason)}.`;
    const notice = newMessage(`notice.${parseCursor(id)?.seq ?? id}`, "notice", { at: data.at, text: words }, text(data.turn_id));
    return change(view, { messages: place(view.session.messages, notice) });
  },
};

const UNMARKED = { resume_pending: false, resume_reason: null, last_resume_marked_at: null };

/** Names of models have a colon, names of agents have none. */
function chosen(data: Data): { agent?: string } {
  const model = text(data.model);
  return model === null || model === "" || model.includes(":") ? {} : { agent: model };
}

/** How a decision that ended a cut turn is told. */
const DECIDED: Record<TurnOutcome, string> = { completed: "ended", failed: "ended", cancelled: "cancelled", set_aside: "set aside" };

/** Fields of a session that an event may change by name. */
const CHANGEABLE = [
  "title", "pinned", "archived", "suspended", "resume_pending", "resume_reason", "last_resume_marked_at",
  "was_auto_reset", "auto_reset_reason", "interrupted_restarts", "model",
] as const;

/** A message, whole. The answer takes the place of the one that was being written; a message that waited has its turn now. */
function written(view: View, data: Data): View {
  const role = (text(data.role) as Role | null) ?? "notice";
  const turn = text(data.turn_id);
  const body = text(data.text) ?? "";
  if (role === "assistant" && turn !== null) {
    const opened = openAnswer(view, turn, data);
    const finish = (m: Message): Message => ({ ...m, text: body, parts: finished(view, m, turn, data), status: "complete", created_at: text(data.at) ?? m.created_at, ...owed(data) });
    return updateMessage({ ...opened, writing: null }, (m) => isAnswer(m, turn), finish);
  }
  const id = text(data.message_id) ?? "";
  const known = view.session.messages.find((m) => m.id === id);
  if (known && !isWaiting(known)) return view;
  const message: Message = { ...newMessage(id, role, data, turn), ...owed(data) };
  if (known) message.created_at = known.created_at;
  if (role === "user" && turn === null) message.status = "command";
  const others = change(view, { messages: view.session.messages.filter((m) => m !== known) });
  if (role !== "user" || turn === null) return settled(change(others, { messages: place(others.session.messages, message) }));
  const requested = change(others, { messages: above(others.session, turn, message) });
  return settled(view.silent?.turn_id === turn ? { ...requested, silent: { turn_id: turn, behind: id } } : requested);
}

/** A step that was interrupted is written from its beginning: the interruption stands before what is said now. */
function begunAgainAt(view: View, turn_id: string, step: number, attempt: number): View {
  const concerns = (m: Message): boolean => m.role === "interruption" && m.turn_id === turn_id && m.step === step && m.offset !== 0 && Boolean(m.attempt) && attempt >= m.attempt!;
  if (!view.session.messages.some(concerns)) return view;
  return change(view, { messages: view.session.messages.map((m) => (concerns(m) ? { ...m, offset: 0 } : m)) });
}

/** The parts of an answer that is on record: what no response fixed is the text of the step that was open. */
function finished(view: View, answer: Message, turn_id: string, data: Data): Part[] {
  const body = text(data.text) ?? "";
  const open = steps(view, turn_id);
  const responded = answer.parts.filter((part) => (part.step ?? 0) < open);
  const parts = withText(answer.parts, turn_id, open, open > 0 && body === answerText(responded) ? "" : body);
  const attached = partsOf(data).filter((part): part is BytesPart => part.type !== "text" && !isMark(part));
  return attached.length > 0 ? withAttached(parts, turn_id, attached) : parts;
}

/** With these parts, and the text that follows from them. */
function said(answer: Message, parts: Part[]): Message {
  return { ...answer, parts, text: answerText(parts) };
}

/** The answer with something that stands in its place between its texts. */
function marked(view: View, data: Data, what: { call_id: string } | { message_id: string }): View {
  const id = turnId(data);
  const step = number(data.step) ?? 0;
  return updateMessage({ ...view, writing: null }, (m) => isAnswer(m, id), (m) => {
    // Behind a response, everything stands behind its text.
    const offset = step < steps(view, id) ? countPoints(stepText(m.parts, step)) : (number(data.offset) ?? 0);
    return { ...m, parts: withMark(m.parts, id, step, offset, what) };
  });
}

/** How many responses of a model the turn has: the texts of these steps are on record. */
function steps(view: View, turn_id: string): number {
  return view.session.turns.find((turn) => turn.id === turn_id)?.steps ?? 0;
}

/** A piece that came late, and that a record or a later attempt has said over. */
function isSuperseded(view: View, answer: Message, turn_id: string, step: number, attempt: number, known: Writing | null): boolean {
  const turn = view.session.turns.find((other) => other.id === turn_id);
  if (answer.status !== "partial" || turn?.state === "ended") return true;
  if (step < (turn?.steps ?? 0)) return true;
  if (known !== null) return attempt < known.attempt;
  return attempt < (turn?.attempt ?? 1) && stepText(answer.parts, step) !== "";
}

/** A message or another cause waits for its turn. */
function wait(view: View, message: Message): View {
  if (view.session.messages.some((other) => other.id === message.id)) return view;
  return settled(change(view, { messages: [...view.session.messages, message] }));
}

/** The parts that an event carries; where it carries none, its text is the only one. */
function partsOf(data: Data): Part[] {
  if (Array.isArray(data.parts)) return data.parts as Part[];
  const body = text(data.text) ?? "";
  return body === "" ? [] : [{ type: "text", text: body }];
}

function change(view: View, changed: Partial<Session>): View {
  return { ...view, session: { ...view.session, ...changed } };
}

/** The call that an approval is for. */
function proposed(call: unknown): Question["call"] {
  return call !== null && typeof call === "object" && "name" in call && "arguments" in call ? { name: String(call.name), arguments: call.arguments } : null;
}

/** The state and the count of waiting messages, as they follow from turns, messages and question. */
function settled(view: View): View {
  const { session } = view;
  const queued = session.messages.filter(isWaiting).length;
  const open = openTurn(session);
  const idle = queued > 0 ? "queued" : "idle";
  const state = open === null ? idle : open.state === "waiting" ? (session.questions.length > 0 ? "waiting" : "running") : open.state === "interrupted" ? "interrupted" : "running";
  return change(view, { state, queued });
}

function newMessage(id: string, role: Role, data: Data, turn_id: string | null): Message {
  return { id, role, text: text(data.text) ?? "", parts: partsOf(data), turn_id, created_at: text(data.at) ?? "", status: "complete" };
}

/** Who wrote it, and what that person is called. */
function sender(data: Data): Pick<Message, "sender" | "sender_name"> {
  const [who, name] = [text(data.sender), text(data.sender_name)];
  return { ...(who !== null && { sender: who }), ...(name !== null && name !== "" && { sender_name: name }) };
}

/** With `message` above the answer of its turn, which continues below it; where there is no answer yet, as `place` says. */
function above(session: Session, turn_id: string, message: Message): Message[] {
  const index = answerIndex(session, turn_id);
  const { messages } = session;
  return index < 0 ? place(messages, message) : [...messages.slice(0, index), message, ...messages.slice(index)];
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

function silent(turn_id: string, messages: Message[]): View["silent"] {
  return { turn_id, behind: messages.findLast((message) => !isWaiting(message))?.id ?? null };
}

function isAnswer(message: Message, turn_id: string): boolean {
  return message.role === "assistant" && message.turn_id === turn_id && message.status !== "superseded";
}

function answerIndex(session: Session, turn_id: string): number {
  return session.messages.findLastIndex((message) => isAnswer(message, turn_id));
}

/** With an answer of this turn to write to. An answer is one message, however many attempts it takes. */
function openAnswer(view: View, turn_id: string, data: Data): View {
  if (answerIndex(view.session, turn_id) >= 0) return view;
  const answer: Message = { ...newMessage(`${turn_id}.answer`, "assistant", { at: data.at }, turn_id), status: "partial", tool_calls: [] };
  // Where its turn started, or continued: behind what the turn took until then and what was said before it started. Above what was said
  // since, and above the row that tells of an interruption over which nothing is decided.
  const { messages, turns } = view.session;
  if (view.silent?.turn_id === turn_id) {
    const index = view.silent.behind === null ? -1 : messages.findIndex((message) => message.id === view.silent!.behind);
    return change(view, { messages: [...messages.slice(0, index + 1), answer, ...messages.slice(index + 1)] });
  }
  const started_at = turns.find((turn) => turn.id === turn_id)?.started_at ?? "";
  const isBefore = (message: Message) => message.turn_id === turn_id && message.role !== "notice" && (message.role !== "interruption" || Boolean(message.attempt));
  let behind = messages.findLastIndex(isBefore) + 1;
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

/** A call that runs once more, without what its last run left. */
function begunAgain({ finished_at, recovered, late, result_parts, ...call }: ToolCall): ToolCall {
  return { ...call, output: "", outcome: null, result: null };
}

function updateTurn(view: View, id: string, changed: Partial<Turn>): View {
  return change(view, { turns: view.session.turns.map((turn) => (turn.id === id ? { ...turn, ...changed } : turn)) });
}

/** Says what was decided: of the session, on the turn, and on the row that tells of its interruption. A turn that was left is decided about again. */
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
