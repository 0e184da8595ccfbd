/** The sentences the page says about states, cuts, ends and times. */

import type { Message, Summary, ToolCall, Turn } from "./types";

const CUTS: Record<string, string> = { crash: "a crash", shutdown_timeout: "a shutdown", restart_timeout: "a restart", store_full: "a full disk" };

const DECISIONS: Record<string, string> = {
  R0: "Not resumed: it had been stopped (rule R0).",
  R1: "Not resumed: the conversation is suspended (rule R1).",
  R2: "Set aside: restarts cut it too often in a row (rule R2).",
  R3: "Nothing was left to do (rule R3).",
  R4: "Not tried again: the last recovery failed by itself (rule R4).",
  R5: "Still waiting for your answer (rule R5).",
  R6: "Set aside: too old to be resumed by itself (rule R6). Write to go on.",
  R7: "Held: it goes on when you write (rule R7).",
  R8: "Held: there is nowhere to answer now (rule R8).",
};

function cut(reason: string | null | undefined): string {
  return `Cut by ${CUTS[reason ?? ""] ?? "an interruption"}`;
}

/** What an interruption row says before anything is decided, in the server's words. */
export function cutText(reason: string, kept: boolean): string {
  return kept ? `${cut(reason)}. What had been written is kept.` : `${cut(reason)} before anything was written.`;
}

/** What an interruption row says: what cut the turn, and what was decided then. */
export function interruption(row: Message): string {
  if (!row.rule) return row.state === "recovering" ? `${row.text || `${cut(row.reason)}.`} Recovering…` : row.text || `${cut(row.reason)}.`;
  const rule = /^R\d+/.exec(row.rule)?.[0] ?? row.rule;
  if (row.attempt) return `${cut(row.reason)}. Resumed by rule ${rule}, attempt ${row.attempt}.`;
  return `${cut(row.reason)}. ${DECISIONS[rule] ?? `Decided by rule ${rule}.`}`;
}

/** What the page says below a turn that did not simply complete; null for one that did, or has not ended. */
export function turnEnd(turn: Turn): { tone: "failed" | "quiet"; text: string } | null {
  if (turn.state !== "ended") return null;
  const because = turn.error ? ` ${sentence(turn.error)}` : "";
  if (turn.outcome === "failed") return { tone: "failed", text: `This answer failed.${because}` };
  if (turn.outcome === "cancelled") return { tone: "quiet", text: `Stopped.${because}` };
  if (turn.outcome === "set_aside") return { tone: "quiet", text: `Set aside.${because || " Write again to go on from here."}` };
  return null;
}

/** What became of a tool call, in words. */
export function toolOutcome(call: ToolCall, running: boolean): string {
  if (call.outcome === "done") return "done";
  if (call.outcome === "failed") return "failed";
  if (call.outcome === "unknown") return "outcome unknown";
  return running ? "running" : "not finished";
}

export interface Badge {
  kind: "running" | "waiting" | "queued" | "interrupted" | "suspended";
  text: string;
}

export function badge(summary: Summary): Badge | null {
  if (summary.suspended) return { kind: "suspended", text: "suspended" };
  switch (summary.state) {
    case "running": return { kind: "running", text: "running" };
    case "waiting": return { kind: "waiting", text: "waiting for you" };
    case "interrupted": return { kind: "interrupted", text: "interrupted" };
    case "queued": return { kind: "queued", text: summary.queued > 1 ? `${summary.queued} queued` : "queued" };
    default: return null;
  }
}

export function titleOf(summary: { title: string | null }, first_words: string | null = null): string {
  return summary.title?.trim() || first_words || "Untitled conversation";
}

/** When something was, in few letters: as far from now as matters. */
export function ago(at: string, now: Date): string {
  const time = new Date(at);
  const seconds = (now.getTime() - time.getTime()) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  const same_year = time.getFullYear() === now.getFullYear();
  return time.toLocaleDateString(undefined, same_year ? { day: "numeric", month: "short" } : { day: "numeric", month: "short", year: "numeric" });
}

export function clock(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

export function moment(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleString();
}

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
