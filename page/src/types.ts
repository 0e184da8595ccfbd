/** The shapes of the HTTP API, as its documentation gives them. */

export type SessionState = "idle" | "queued" | "running" | "waiting" | "interrupted";

export interface Summary {
  session_id: string;
  session_key: string;
  title: string | null;
  created_at: string;
  updated_at: string;
  state: SessionState;
  generation: number;
  suspended: boolean;
  resume_pending: boolean;
  resume_reason: string | null;
  last_resume_marked_at: string | null;
  was_auto_reset: boolean;
  auto_reset_reason: string | null;
  interrupted_restarts: number;
  /** Its key points at it: messages to the key come here. */
  current: boolean;
  /** The last decision over its newest turn was to leave that turn as it is. */
  left: boolean;
  /** The label of that last decision, and its reason in words. */
  rule: string | null;
  why: string | null;
  pinned: boolean;
  archived: boolean;
  queued: number;
  /** The model that was chosen for it, null for the configured one. */
  model: string | null;
  /** The last words that were said, whether somebody has read them, what is needed of a person, and what became of sending them. */
  excerpt?: string | null;
  unread?: boolean;
  needs?: "question" | "approval" | null;
  delivery?: "unknown" | "dead" | null;
}

export interface TextPart {
  type: "text";
  text: string;
  /** In answers. */
  id?: string;
  step?: number;
  /** How many characters of the middle are not here. */
  text_omitted?: number;
}

/** A call, or a message that the turn took while it ran: it stands behind the first `offset` characters of its step. */
export type Mark = { type: "call"; id: string; step: number; offset: number; call_id: string } | { type: "message"; id: string; step: number; offset: number; message_id: string };

export interface BytesPart {
  type: "image" | "audio" | "file";
  digest: string;
  size: number;
  media_type: string;
  name: string | null;
  id?: string;
  step?: number;
}

/** A file that was uploaded and can be attached to messages. */
export interface Attached {
  attachment_id: string;
  name: string | null;
  size: number;
  type: string;
}

/** What a message says, in order. Every part of an answer has an id that never changes. */
export type Part = TextPart | Mark | BytesPart;

export type ToolOutcome = "done" | "failed" | "unknown";

export interface ToolCall {
  call_id: string;
  name: string;
  step: number;
  arguments: unknown;
  /** null while it runs */
  outcome: ToolOutcome | null;
  result: unknown;
  /** Where the result is more than text. */
  result_parts?: Part[];
  output: string | null; // what it printed so far
  started_at?: string;
  finished_at?: string;
  /** Its result came with a journal that was late; `late`: after it had been closed as unknown. */
  recovered?: true;
  late?: { outcome: ToolOutcome; result: string; finished_at: string };
}

/** `cause`: something other than a message that a turn started from or took. */
export type Role = "user" | "assistant" | "interruption" | "notice" | "cause";

/** How far a message has come on its way to its chat. `states`: of each message it is sent in. */
export interface Delivery {
  delivery_id: string;
  state: string;
  states: string[];
  tries: number;
  retry_at: string | null;
  error: string | null;
}

export interface Message {
  id: string;
  role: Role;
  text: string;
  parts: Part[];
  turn_id: string | null;
  created_at: string;
  /** Who wrote it: `owner` on the page, elsewhere the platform and their id; and what they are called, where that is known. */
  sender?: string;
  sender_name?: string;
  /** When its sender last changed it. */
  edited_at?: string;
  /** `refused`: no turn took it, and none will. `command`: said to the gateway, not to the agent. */
  status: "complete" | "partial" | "refused" | "command" | "superseded";
  /** Some of it came with a journal that was late. */
  recovered?: true;
  tool_calls?: ToolCall[];
  /** Of an answer to a question. */
  answers?: Answers;
  /** Of what is sent to a chat. */
  delivery?: Delivery;
  /** Of a cause: what it was. Of an interruption: what its turn had started from, if that was no message. */
  cause?: string | null;
  /** Of an interruption. */
  state?: "recovering" | "recovered" | "neutral";
  reason?: string | null;
  rule?: string | null;
  /** What was decided, in words. */
  decision?: string | null;
  attempt?: number | null;
  /** How long the answer was. */
  written?: number;
  /** Where in the answer it stands: behind so many characters of this step; null for all of them, 0 once the step is written again. */
  step?: number;
  offset?: number | null;
  /** While it waits for a journal. */
  stream_id?: string;
  tries?: number;
  first_seen?: string;
}

export type TurnOutcome = "completed" | "failed" | "cancelled" | "set_aside";

export interface Turn {
  id: string;
  generation: number;
  attempt: number;
  /** How many responses of a model it has. */
  steps: number;
  cause: string;
  state: "running" | "waiting" | "interrupted" | "ended";
  outcome: TurnOutcome | null;
  rule: string | null;
  started_at: string;
  ended_at: string | null;
  error: string | null;
  /** Of a turn whose models were asked; `model` is the one that answered last. */
  model?: string;
  /** The agent that was chosen to answer, if it is not one of the models. */
  agent?: string;
  usage?: Usage;
  /** Why it was stopped, if nobody said stop. */
  stopped_because?: string;
  responses?: ModelResponse[];
  /** What was thought aloud, by step. */
  thoughts?: Thought[] | undefined;
  failures?: ModelFailure[];
}

/** `kept`: on record, so that it stays when the step fails or is interrupted. */
export interface Thought {
  step: number;
  text: string;
  kept: boolean;
}

/** Tokens: `cached` and `stored` are parts of `input`, `thought` of `output`. */
interface Tokens {
  input: number;
  output: number;
  cached: number;
  stored: number;
  thought: number;
}

/** What models used over all `requests`. `cost`: in millionths of a US dollar, of those whose price is known; null if none is. */
export interface Usage extends Tokens {
  requests: number;
  cost: number | null;
  unpriced: number;
}

export interface ModelResponse extends Tokens {
  step: number;
  model: string;
  finish: string;
  cost: number | null;
}

/** A request to a model that failed. `retry_at`: when the same model is asked again; null if it is not. */
export interface ModelFailure {
  at: string;
  step: number;
  model: string;
  tries: number;
  error: string;
  why: string;
  retry_at: string | null;
}

export interface Answers {
  question_id: string;
  kind: string;
  text: string;
  call: Question["call"];
  by: string | null;
  /** `approve` or `deny`, of an approval. */
  verdict: string | null;
}

export interface Question {
  question_id: string;
  kind: string;
  turn_id: string | null;
  call_id: string;
  text: string;
  parts: Part[];
  choices: string[];
  /** The call that asks, or the one that an approval is for. */
  call: { name: string; arguments: unknown } | null;
  /** What an approval may allow from now on; null where that is not possible. */
  pattern: string | null;
  asked_at: string;
  expires_at: string | null;
}

/** A page of a conversation. `earlier`: null, or what leads to the page before it. */
export interface MessagePage {
  messages: Message[];
  earlier: string | null;
  turns: Turn[];
}

export interface Session extends Summary, MessagePage {
  cursor: string;
  /** As of the last snapshot: the message below which the answer of the open turn will stand that has not said anything yet. */
  answer_below: string | null;
  /** The open ones, oldest first. */
  questions: Question[];
  /** Of all its turns. */
  usage: Usage;
}

/** `sends`: its text goes to the agent, as a message. */
export interface Command {
  name: string;
  /** How it is written, and what it does. */
  form: string;
  sentence: string;
  sends: boolean;
}

export interface Status {
  pid: number;
  version: string;
  gateway_state: string;
  started_at: string;
  since: string;
  why: string | null;
  running_turns: number;
  retiring: { pid: number; running_turns: number }[];
  inbox: number;
  outbox: number;
  suspended: number;
  pending: number;
  /** Several starts in a row crashed: no interrupted work is resumed automatically. */
  safe_mode: boolean;
  paused_by: string | null;
  paused_until: string | null;
  platforms: string[];
  supervisor: string;
  agent: string | null;
  /** Those that a conversation may choose, the default first. */
  models?: string[];
  degraded: string | null;
}

export interface SessionPage {
  sessions: Summary[];
  next: string | null;
}

/** A message with the words of a search, or a title. `excerpt`: pairs of a text and whether it is a find. */
export interface Hit {
  session_id: string;
  session_key: string;
  title: string | null;
  archived: boolean;
  message_id: string | null;
  at: string;
  excerpt: [string, boolean][];
}

export interface Found {
  hits: Hit[];
}

export interface Draft {
  text: string;
  rev: number;
}

export interface Rule {
  rule_id: string;
  session_id: string;
  pattern: string;
  by: string;
  created_at: string;
  /** What ends it, besides its removal: `reset`. */
  until: string;
}

export interface UsageReport {
  since: string;
  days: { day: string; turns: number; usage: Usage }[];
  senders: { sender: string | null; turns: number; usage: Usage }[];
  models: { model: string | null; turns: number; usage: Usage }[];
  rows: { day: string; model: string | null; turns: number; usage: Usage }[];
  conversations: { session_id: string; title: string | null; turns: number; usage: Usage }[];
  total: Usage;
}

// What an operator sees

export interface WorkingTurn {
  turn_id: string;
  session_id: string;
  title: string | null;
  platform: string;
  attempt: number;
  phase: { kind: string; name: string | null; since: string };
  started_at: string;
  last_sign_at: string;
  pid: number | null;
  retiring: boolean;
}

export interface AttentionItem {
  kind: string;
  id: string;
  session_id: string | null;
  title: string | null;
  text: string;
  since: string;
  expires_at: string | null;
  rule: string | null;
  why: string | null;
  actions: string[];
}

export interface Inbox {
  waiting: number;
  oldest_at: string | null;
  lanes: { session_id: string; session_key: string; title: string | null; waiting: number; oldest_at: string; behind: string }[];
}

export interface OutboxState {
  deliveries: { delivery_id: string; session_id: string; title: string | null; platform: string; state: string; tries: number; at: string; retry_at: string | null; error: string | null }[];
  counts: Record<string, Record<string, number>>;
  dead: DeadPlace[];
}

/** Where nothing arrives any more. */
export interface DeadPlace {
  platform: string;
  chat: string;
  thread: string | null;
  since: string;
  why: string;
}

export interface Platforms {
  platforms: {
    name: string; account: string | null; state: "connecting" | "connected" | "away" | "refused" | "off"; since: string | null; last_update_at: string | null; retry_at: string | null;
    error: string | null; last_error: string | null; last_error_at: string | null; waiting: number; refused: number; last_refused: string | null; last_refused_at: string | null; taken_in: number; delivered: number; outbox: Record<string, number>; dead: DeadPlace[];
  }[];
  readers: number;
  taken_in: number;
  counted_since: string;
}

export interface Person {
  platform: string;
  user: string;
  name: string;
  at: string;
}

export interface People {
  paired: Person[];
  asking: Person[];
}

export interface Schedule {
  schedule_id: string;
  session_id: string;
  session_key: string;
  text: string;
  when: string;
  at: string | null;
  every_s: number | null;
  cron: string | null;
  time_zone: string;
  by: string;
  due_at: string;
  last_at: string | null;
  skipped: string | null;
  paused_at: string | null;
}

/** A background process that runs. */
export interface BackgroundProcess {
  process_id: string;
  session_id: string;
  command: string;
  started_at: string;
  notify: boolean;
}

/** What the serving process measured, a number for each step, null where nothing was. */
export interface Series {
  since: string;
  step_s: number;
  series: Record<string, (number | null)[]>;
}

export interface Timeline {
  lives: Life[];
  pauses: PastPause[];
  turns: { since: string; bucket_s: number; completed: number[]; failed: number[]; other: number[]; interrupted: number[] };
  partial: boolean;
}

/** A pause of the gateway. `ended_at`: null while it `holds`, and where its end was not recorded. */
export interface PastPause {
  holder: string;
  since: string;
  until: string;
  ended_at: string | null;
  holds: boolean;
}

/** A process that served until `until`. `ended_at`: when it was gone; after a hand-over it may finish its turns until then. `interrupted`: turns that its end interrupted; of these `resumed` continued, the last `took_ms` later. */
export interface Life {
  pid: number;
  version: string | null;
  started_at: string;
  until: string | null;
  ended_at: string | null;
  end: "hand_over" | "stop" | "crash" | null;
  interrupted: number;
  resumed: number;
  took_ms: number | null;
}

export interface LogLine {
  at: string;
  what: string;
  session_id: string;
  title: string | null;
  turn_id: string | null;
  attempt: number;
  outcome: string | null;
  rule: string | null;
  why: string | null;
}
