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
}

/** `cause`: something other than a message that a turn started from or took. */
export type Role = "user" | "assistant" | "interruption" | "notice" | "cause";

export interface Message {
  id: string;
  role: Role;
  text: string;
  parts: Part[];
  turn_id: string | null;
  created_at: string;
  /** `refused`: no turn took it, and none will. `command`: said to the gateway, not to the agent. */
  status: "complete" | "partial" | "refused" | "command";
  tool_calls?: ToolCall[];
  /** Of a cause: what it was. */
  cause?: string | null;
  /** Of an interruption. */
  state?: "recovering" | "recovered" | "neutral";
  reason?: string | null;
  rule?: string | null;
  /** What was decided, in words. */
  decision?: string | null;
  attempt?: number | null;
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
}

export interface Question {
  question_id: string;
  kind: string;
  turn_id: string | null;
  call_id: string;
  text: string;
  parts: Part[];
  choices: string[];
  call: { name: string; arguments: unknown } | null;
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
  /** The open ones, oldest first. */
  questions: Question[];
}

export interface Status {
  /** Several starts in a row crashed: no interrupted work is resumed automatically. */
  safe_mode: boolean;
}

export interface SessionPage {
  sessions: Summary[];
  next: string | null;
}
