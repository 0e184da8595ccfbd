/** The sentences the page says about states, interruptions, ends and times. */

import type { Verdict } from "./outbox";
import type { Answers, Message, ModelFailure, Session, Summary, ToolCall, Turn, Usage } from "./types";

const INTERRUPTIONS: Record<string, string> = { crash: "a crash", shutdown_timeout: "a shutdown", restart_timeout: "a restart", store_full: "a full disk", store_gone: "the loss of the database", suspended: "a suspension", restored: "the restoring of a backup" };

function interruptedBy(reason: string | null | undefined): string {
  return INTERRUPTIONS[reason ?? ""] ?? "an interruption";
}

/** Stands in a text where characters are missing, in the server's words. */
export function leftOut(count: number): string {
  return `\n[... ${count.toLocaleString("en")} characters left out ...]\n`;
}

/** What an interruption row says before anything is decided, in the server's words. */
export function cutText(reason: string, written: boolean, worked: boolean): string {
  if (written) return `Interrupted by ${interruptedBy(reason)}. What had been written is kept.`;
  return worked ? `Interrupted by ${interruptedBy(reason)}. The work so far is kept.` : `Interrupted by ${interruptedBy(reason)} before anything was written.`;
}

/** What an interruption row says of the cut. What was decided then stands below it. */
export function interruption(row: Message): string {
  const said = row.text || `Interrupted by ${interruptedBy(row.reason)}.`;
  return row.state === "recovering" && !row.rule ? `${said} Recovering…` : said;
}

/** Why a message would not simply continue this conversation; null if it would. The button next to it resumes the conversation. */
export function standing(session: Session): string | null {
  if (session.suspended && !session.current) return "This conversation is suspended, and a newer one replaced it. Messages go there; Resume continues this one.";
  if (session.suspended) return "This conversation is suspended. Resume continues it; a message starts a new one.";
  if (!session.current) return "A newer conversation replaced this one. Messages go there.";
  if (session.state !== "interrupted" || !session.left) return null;
  const nowhere = session.rule === "R8" ? ": there is nowhere to send it now" : " until you resume it";
  return `The last answer was interrupted by ${interruptedBy(session.resume_reason)} and waits${nowhere}.`;
}

/** The gateway's own words: plain, but for the lines in which it quotes. */
export function passages(text: string): { quoted: boolean; text: string }[] {
  const found: { quoted: boolean; lines: string[] }[] = [];
  for (const line of text.split("\n")) {
    const quoted = line.startsWith(">");
    const last = found[found.length - 1];
    if (last?.quoted !== quoted) found.push({ quoted, lines: [] });
    found[found.length - 1]!.lines.push(quoted ? line.replace(/^> ?/, "") : line);
  }
  return found.map(({ quoted, lines }) => ({ quoted, text: lines.join("\n").trim() })).filter((passage) => passage.text !== "");
}

/** What the page says below a turn that did not simply complete; null for one that did, or has not ended. */
export function turnEnd(turn: Turn): { tone: "failed" | "quiet"; text: string } | null {
  if (turn.state !== "ended") return null;
  const because = turn.error ? ` ${sentence(turn.error)}` : "";
  if (turn.outcome === "failed") return { tone: "failed", text: `This answer failed.${because}` };
  if (turn.outcome === "cancelled") return { tone: "quiet", text: turn.stopped_because ? `Stopped: ${sentence(turn.stopped_because)}` : `Stopped.${because}` };
  if (turn.outcome === "set_aside") return { tone: "quiet", text: `Set aside.${because}` };
  return null;
}

/** Who answered a question. On the page everybody is its owner. */
export function answeredBy(answers: Answers | undefined): string | null {
  if (!answers?.by) return null;
  const who = answers.by === "owner" ? "you" : answers.by;
  return `${answers.verdict === "approve" ? "approved" : answers.verdict === "deny" ? "denied" : "answered"} by ${who}`;
}

/** A verdict on an approval, in the server's words. */
export function judged(verdict: Verdict, pattern: string | null): string {
  if (verdict.verdict === "deny") return verdict.reason ? `Denied: ${verdict.reason}` : "Denied.";
  return verdict.scope === "session" ? `Approved, and from now on in this conversation: ${pattern}` : "Approved.";
}

/** With what a reader would not see, or would see in another order, written out: nobody approves a text that looks like another one. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu, (hidden) => `⟨U+${hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** What became of a tool call, in words. */
export function toolOutcome(call: ToolCall, running: boolean): string {
  if (call.outcome === "done") return "done";
  if (call.outcome === "failed") return "failed";
  if (call.outcome === "unknown") return "outcome unknown";
  return running ? "running" : "not finished";
}

/** Money, from millionths of a US dollar: two digits that say something, however little it is. */
export function price(cost: number): string {
  const dollars = cost / 1e6;
  const digits = dollars === 0 || dollars >= 0.1 ? 2 : Math.min(6, 1 - Math.floor(Math.log10(dollars)));
  return `$${dollars.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: digits })}`;
}

/** What models used, in few words. */
export function used(usage: Usage): string[] {
  const n = (tokens: number): string => tokens.toLocaleString("en");
  const input = `${n(usage.input)} in${usage.cached > 0 ? ` (${n(usage.cached)} cached)` : ""}`;
  const output = `${n(usage.output)} out${usage.thought > 0 ? ` (${n(usage.thought)} thoughts)` : ""}`;
  const cost = usage.cost === null ? "price not known" : `${price(usage.cost)}${usage.unpriced > 0 ? ` and ${n(usage.unpriced)} without a known price` : ""}`;
  return [input, output, cost];
}

/** What is said while a model that failed is waited for. `now` in milliseconds. */
export function askingAgain(failure: ModelFailure, now: number): string {
  const model = failure.model || "The model";
  if (failure.retry_at === null) return `${model} did not answer: ${sentence(failure.why)}`;
  const seconds = Math.ceil((Date.parse(failure.retry_at) - now) / 1000);
  return `${seconds > 0 ? `Asking ${model} again in ${seconds} s` : `Asking ${model} again`}: ${sentence(failure.why)}`;
}

/** A failed request, behind the answer. */
export function failedRequest(failure: ModelFailure): string {
  const then = failure.retry_at === null ? "" : " Asked again.";
  return `${failure.model || "The model"} did not answer (try ${failure.tries}): ${sentence(failure.why)}${then}`;
}

/** How large a file is. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, scale] = bytes < 1e6 ? ["kB", 1e3] as const : bytes < 1e9 ? ["MB", 1e6] as const : ["GB", 1e9] as const;
  return `${(bytes / scale).toLocaleString("en", { maximumFractionDigits: 1 })} ${unit}`;
}

export interface Badge {
  kind: "running" | "waiting" | "queued" | "interrupted" | "suspended";
  text: string;
}

/** `away`: what is shown is what was last known. */
export function badge(summary: Summary, away = false): Badge | null {
  if (summary.suspended) return { kind: "suspended", text: "suspended" };
  switch (summary.state) {
    case "running": return { kind: "running", text: away ? "was running" : "running" };
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
