/** The sentences the page says about states, interruptions, ends and times. Pure, given the language. */

import { locale, t } from "./i18n";
import type { Verdict } from "./outbox";
import type { Answers, Delivery, Life, LogLine, Message, ModelFailure, Question, Summary, Timeline, ToolCall, Turn, Usage } from "./types";

/** The server's own words, which the fold must use too. */
const SERVER: Record<string, string> = { crash: "a crash", shutdown_timeout: "a shutdown", restart_timeout: "a restart", store_full: "a full disk", store_gone: "the loss of the database", suspended: "a suspension", restored: "the restoring of a backup" };

/** Stands in a text where characters are missing, in the server's words. */
export function leftOut(count: number): string {
  return `\n[... ${count.toLocaleString("en")} characters left out ...]\n`;
}

/** What an interruption row says before anything is decided, in the server's words. */
export function cutText(reason: string, written: boolean, worked: boolean): string {
  const by = SERVER[reason] ?? "an interruption";
  if (written) return `Interrupted by ${by}. What had been written is kept.`;
  return worked ? `Interrupted by ${by}. The work so far is kept.` : `Interrupted by ${by} before anything was written.`;
}

/** What a conversation says below what it has from another one, in the server's words. */
export function branchedText(title: string | null, left_out: number): string {
  const named = title ? `in “${title}”` : "in another conversation";
  const missing = left_out > 1 ? ` Its first ${left_out} answers are left out.` : left_out === 1 ? " Its first answer is left out." : "";
  return `Everything above was said ${named} and is copied from there.${missing} From here on this is a conversation of its own.`;
}

/** The same, of an interruption whose journal is or was late. */
export function journalText(reason: string, state: "recovering" | "recovered" | "neutral"): string {
  return `Interrupted by ${SERVER[reason] ?? "an interruption"}. ${JOURNAL[state]}`;
}

const JOURNAL = {
  recovering: "Some of its output has not arrived yet; Holdfast is looking for it.",
  recovered: "Its output was recovered from the run journal.",
  neutral: "Some output may be missing.",
};

/** The step it happened in is written from its beginning: what had been written of it is gone. */
function isBegunAgain(row: Message): boolean {
  return row.offset === 0 && (row.written ?? 0) > 0;
}

/** What an interruption row says, in two parts: what interrupted it, and what is left of it. Server and page word the row alike. */
export function cutWords(row: Message): { what: string; kept: string } {
  const said = /^Interrupted by .*?(?:\. | (?=before anything))(.*)$/s.exec(row.text)?.[1] ?? row.text;
  const told = t().kept[said] ?? said;
  // What became of a journal is said in any case.
  const kept = !isBegunAgain(row) || row.state === "recovering" ? told : said === JOURNAL.recovered || said === JOURNAL.neutral ? `${told} ${t().askedAgain}` : t().askedAgain;
  return { what: t().cut(interruptedBy(row.reason)), kept };
}

export function interruptedBy(reason: string | null | undefined): string {
  const words = t().interruptedBy;
  return words[reason ?? ""] ?? words.other!;
}

/** Why a message would not simply continue this conversation; null if it would. The button next to it resumes the conversation. */
export function standing(session: Summary): string | null {
  const words = t().bars;
  if (session.suspended) return session.current ? words.suspended : words.suspendedLeft;
  if (!session.current) return words.left;
  if (session.state !== "interrupted" || !session.left) return null;
  const by = interruptedBy(session.resume_reason);
  return session.rule === "R8" ? words.nowhere(by) : words.held(by);
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
  const words = t().conversation;
  const because = turn.error ? ` ${sentence(turn.error)}` : "";
  if (turn.outcome === "failed") return { tone: "failed", text: words.failed(because) };
  if (turn.outcome === "cancelled") return { tone: "quiet", text: turn.stopped_because ? words.stopped(sentence(turn.stopped_because)) : words.stoppedError(because) };
  if (turn.outcome === "set_aside") return { tone: "quiet", text: words.setAside(because) };
  return null;
}

/** Who answered a question. On the page everybody is its owner. */
export function answeredBy(answers: Answers | undefined): string | null {
  if (!answers?.by) return null;
  const words = t().conversation;
  const who = answers.by === "owner" ? words.byYou : answers.by;
  return answers.verdict === "approve" ? words.approvedBy(who) : answers.verdict === "deny" ? words.deniedBy(who) : words.answeredBy(who);
}

/** How the server begins a verdict that also allows a pattern. */
const ALWAYS = "Approved, and from now on in this conversation: ";

/** A verdict on an approval, in the server's words. */
export function judged(verdict: Verdict, pattern: string | null): string {
  if (verdict.verdict === "deny") return verdict.reason ? `Denied: ${verdict.reason}` : "Denied.";
  return verdict.scope === "session" ? `${ALWAYS}${pattern}` : "Approved.";
}

/** The same in the words of the page, with the pattern apart from them: it is code. Null where a person put it in other words. */
export function verdictWords(text: string): { says: string; pattern: string | null } | null {
  const words = t().ask;
  if (text.startsWith(ALWAYS)) return { says: words.approvedAlways, pattern: text.slice(ALWAYS.length) };
  const says = { "Approved.": words.approved, "Denied.": words.denied }[text];
  return says === undefined ? null : { says, pattern: null };
}

/** Where an approved call would work: a folder and how it is confined, or other words for it. */
export interface Workplace {
  folder: string | null;
  sandbox: { name: string; network: boolean } | "none" | null;
  other: string | null;
}

/** What the server asks about a call, taken apart, so that the page can ask it in its own words; null where an agent asks in words of its own. */
export function approvalOf(text: string, tool: string): { place: Workplace | null; forOthers: boolean } | null {
  const asked = text.split("\n\n", 1)[0]!;
  const start = `May I run \`${tool}\``;
  const rest = asked.startsWith(start) ? /^(?: in (.+?))?\?( It changes what other people's conversations are given.*)?$/s.exec(asked.slice(start.length)) : null;
  if (rest === null) return null;
  return { place: rest[1] === undefined ? null : workplace(rest[1]), forOthers: rest[2] !== undefined };
}

function workplace(place: string): Workplace {
  const [, folder, name, network] = /^(\/.*), (?:(\w+) sandbox, network (on|off)|no sandbox)$/s.exec(place) ?? [];
  if (folder === undefined) return { folder: null, sandbox: null, other: place };
  return { folder, sandbox: name === undefined ? "none" : { name, network: network === "on" }, other: null };
}

/** With what a reader would not see, or would see in another order, written out: nobody approves a text that looks like another one. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu, (hidden) => `⟨U+${hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

const EMOJI = /\p{Extended_Pictographic}[\u{1f3fb}-\u{1f3ff}]?\ufe0f?(?:\u200d\p{Extended_Pictographic}[\u{1f3fb}-\u{1f3ff}]?\ufe0f?)*|[\d#*]\ufe0f\u20e3|\r\n/gu;

/** The same for code and for what tools print: there an emoji and the ends of lines hide nothing. */
export function visibleCode(text: string): string {
  const marked = visible(text);
  if (marked === text) return text;
  let shown = "";
  let from = 0;
  for (const { 0: whole, index } of text.matchAll(EMOJI)) {
    shown += visible(text.slice(from, index)) + (whole === "\r\n" ? "\n" : whole);
    from = index + whole.length;
  }
  return shown + visible(text.slice(from));
}

/** Money, from millionths of a US dollar: two digits that say something, however little it is. */
export function price(cost: number): string {
  const dollars = cost / 1e6;
  const digits = dollars === 0 || dollars >= 0.1 ? 2 : Math.min(6, 1 - Math.floor(Math.log10(dollars)));
  return `$${dollars.toLocaleString(locale(), { minimumFractionDigits: 2, maximumFractionDigits: digits })}`;
}

/** What models used, in few words. */
export function used(usage: Usage): string[] {
  const unit = t().conversation.unit;
  const input = [unit.in(usage.input), usage.cached > 0 ? unit.cached(usage.cached) : ""].filter(Boolean).join(" ");
  const output = [unit.out(usage.output), usage.thought > 0 ? unit.thoughts(usage.thought) : ""].filter(Boolean).join(" ");
  const cost = usage.cost === null ? unit.noPrice : [price(usage.cost), usage.unpriced > 0 ? unit.unpriced(usage.unpriced) : ""].filter(Boolean).join(" ");
  return [input, output, cost];
}

/** What is said while a model that failed is waited for. `now` in milliseconds. */
export function askingAgain(failure: ModelFailure, now: number): string {
  const words = t().conversation;
  const model = failure.model || words.theModel;
  if (failure.retry_at === null) return words.noAnswer(model, sentence(failure.why));
  return words.askingAgain(model, Math.ceil((Date.parse(failure.retry_at) - now) / 1000), sentence(failure.why));
}

/** A failed request, behind the answer. */
export function failedRequest(failure: ModelFailure): string {
  const words = t().conversation;
  return words.failedRequest(failure.model || words.theModel, failure.tries, sentence(failure.why), failure.retry_at !== null);
}

/** How large a file is. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, scale] = bytes < 1e6 ? ["kB", 1e3] as const : bytes < 1e9 ? ["MB", 1e6] as const : ["GB", 1e9] as const;
  return `${(bytes / scale).toLocaleString(locale(), { maximumFractionDigits: 1 })} ${unit}`;
}

/** A state: which shape, and the word next to it. */
export interface Sign {
  shape: Shape;
  tone: "" | "kelp" | "deep" | "amber" | "red";
  text: string;
}

export type Shape =
  | "queued" | "running" | "waiting" | "interrupted" | "resumed" | "superseded" | "unknown" | "not-repeated" | "done" | "delivered" | "failed" | "suspended" | "hand-over" | "accepted" | "tool" | "next";

/** What a conversation does now. `away`: what is shown is what was last known. */
export function sign(summary: Summary, away = false): Sign | null {
  const words = t().state;
  if (summary.suspended) return { shape: "suspended", tone: "", text: words.suspended };
  switch (summary.state) {
    case "running": return { shape: "running", tone: away ? "" : "kelp", text: away ? words.wasRunning : words.running };
    case "waiting": return { shape: "waiting", tone: "amber", text: summary.needs === "approval" ? words.approval : summary.needs === "question" ? words.asks : words.waiting };
    case "interrupted": return { shape: "interrupted", tone: "amber", text: words.interrupted };
    case "queued": return { shape: "queued", tone: "", text: words.queued(summary.queued) };
    default: return summary.delivery === "unknown" ? { shape: "unknown", tone: "amber", text: words.deliveryUnknown } : summary.delivery === "dead" ? { shape: "failed", tone: "red", text: words.deliveryDead } : null;
  }
}

/** How far a message has come on its way to its chat. */
export function deliverySign(delivery: Delivery, platform: string): Sign {
  const words = t().state;
  switch (delivery.state) {
    case "sent": return { shape: "delivered", tone: "kelp", text: words.delivered(platform) };
    case "unknown": case "repeating": return { shape: "unknown", tone: "amber", text: words.deliveryUnknown };
    case "dead": return { shape: "failed", tone: "red", text: words.deliveryDead };
    default: return { shape: "queued", tone: "", text: delivery.tries > 0 && delivery.retry_at !== null ? words.deliveryWaits(platform) : words.sending(platform) };
  }
}

/** What became of a tool call. */
export function callSign(call: ToolCall, running: boolean): Sign {
  const words = t().state;
  if (call.outcome === "done") return { shape: "done", tone: "kelp", text: words.done };
  if (call.outcome === "failed") return { shape: "failed", tone: "red", text: words.failed };
  if (call.outcome === "unknown") return { shape: "not-repeated", tone: "amber", text: words.notRepeated };
  return running ? { shape: "running", tone: "deep", text: words.running } : { shape: "queued", tone: "", text: words.notFinished };
}

export function turnSign(turn: Turn, asks: boolean): Sign {
  const words = t().state;
  if (turn.state === "ended") {
    if (turn.outcome === "failed") return { shape: "failed", tone: "red", text: words.failed };
    if (turn.outcome === "cancelled") return { shape: "suspended", tone: "", text: words.cancelled };
    if (turn.outcome === "set_aside") return { shape: "suspended", tone: "amber", text: words.setAside };
    return { shape: "done", tone: "kelp", text: words.completed };
  }
  if (turn.state === "waiting" && asks) return { shape: "waiting", tone: "amber", text: words.waiting };
  if (turn.state === "interrupted") return { shape: "interrupted", tone: "amber", text: words.interrupted };
  return { shape: "running", tone: "kelp", text: words.running };
}

/** A title in words: without the marks of Markdown, on one line. */
export function plain(text: string): string {
  return text.replace(/```[^\n]*\n?|[`*_~#>|]+|!?\[([^\]]*)\]\([^)]*\)|<[^>\s][^>]*>/g, (_, words: string | undefined) => words ?? "").replace(/\s+/g, " ").trim();
}

export function titleOf(summary: { title: string | null }, first_words: string | null = null): string {
  // The server names what began with files alone after them, in brackets.
  return plain(summary.title ?? "").replace(/^\[(.*)\]$/, "$1") || plain(first_words ?? "") || summary.title?.trim() || t().list.untitled;
}

/** What was decided about a turn: how it ended, what interrupted it, or why it continued. */
export function decision(line: LogLine): string {
  const words = t().ops;
  const what = line.what === "left" && line.rule === "R5" ? words.leftWaiting : (words.what[line.what] ?? line.what);
  if (line.outcome === null) return what;
  if (line.what === "ended") return (t().details.ended[line.outcome] ?? line.outcome).toLowerCase();
  if (line.what === "resumed" && line.outcome === "answered") return words.continuedWithAnswer;
  return words.whatBy[line.what]?.(interruptedBy(line.outcome)) ?? what;
}

/** How the processes before the one that serves ended: how many crashed in a row, or that the last handed over. What that cost is null where not all of it lies in the hours that are shown. */
export function before(timeline: Timeline | null): { crashed: number; handedOver: boolean; cost: { interrupted: number; resumed: number; took_ms: number } | null } {
  const lives = timeline?.lives.slice(0, -1) ?? [];
  const crashed = lives.length - 1 - lives.findLastIndex((life) => life.end !== "crash");
  const handedOver = lives[lives.length - 1]?.end === "hand_over";
  const ends = lives.slice(lives.length - Math.max(crashed, handedOver ? 1 : 0));
  const shown = ends.length > 0 && ends.every((life) => Date.parse(life.until ?? "") >= Date.parse(timeline!.turns.since));
  const sum = (of: (life: Life) => number): number => ends.reduce((all, life) => all + of(life), 0);
  return { crashed, handedOver, cost: shown ? { interrupted: sum((life) => life.interrupted), resumed: sum((life) => life.resumed), took_ms: Math.max(...ends.map((life) => life.took_ms ?? 0)) } : null };
}

/** A length of time, as exactly as matters. */
export function duration(ms: number): string {
  const words = t().ago;
  const seconds = ms / 1000;
  if (seconds < 0.1) return words.milliseconds(Math.max(0, Math.round(ms)).toLocaleString(locale()));
  if (seconds < 10) return words.seconds(seconds.toLocaleString(locale(), { maximumFractionDigits: 1 }));
  if (seconds < 60) return words.seconds(Math.round(seconds).toLocaleString(locale()));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return words.minutesSeconds(minutes, Math.round(seconds % 60) % 60);
  if (minutes < 60) return words.minutes(minutes);
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? words.hoursMinutes(hours, minutes % 60) : words.days(Math.floor(hours / 24));
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Making a format takes longer than drawing a line of the list, so each is made once. */
function formatted(time: Date, options: Intl.DateTimeFormatOptions): string {
  const name = locale() + JSON.stringify(options);
  let format = formats.get(name);
  if (format === undefined) formats.set(name, (format = new Intl.DateTimeFormat(locale(), options)));
  return format.format(time);
}

/** When something was, in few letters, in a list that is ordered by days. */
export function when(at: string, now: Date): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  const days = dayNumber(now) - dayNumber(time);
  if (days <= 0) return clock(at);
  if (days < 7) return formatted(time, { weekday: "short" });
  const same_year = time.getFullYear() === now.getFullYear();
  return formatted(time, same_year ? { day: "numeric", month: "short" } : { day: "numeric", month: "short", year: "2-digit" });
}

function dayNumber(time: Date): number {
  return Math.round(new Date(time.getFullYear(), time.getMonth(), time.getDate()).getTime() / 86_400_000);
}

/** The day something belongs to: today, yesterday, a weekday, a month. */
export function dayOf(at: string, now: Date): string {
  const time = new Date(at);
  const days = dayNumber(now) - dayNumber(time);
  if (Number.isNaN(days) || days <= 0) return t().ago.today;
  if (days === 1) return t().ago.yesterday;
  if (days < 7) return formatted(time, { weekday: "long" });
  return formatted(time, { month: "long", ...(time.getFullYear() !== now.getFullYear() && { year: "numeric" }) });
}

export function clock(at: string, seconds = false): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? "" : formatted(time, { hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }), hour12: false });
}

export function moment(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleString(locale());
}

/** How long a question stays open; null where nothing ends it. */
export function openFor(question: Question, now: number): string | null {
  return question.expires_at === null ? null : duration(Math.max(0, Date.parse(question.expires_at) - now));
}

/** Where a conversation is held, by its key: `agent:<profile>:<platform>:...`. */
export function platformOf(session_key: string): string {
  return session_key.split(":")[2]?.replaceAll("%3A", ":").replaceAll("%25", "%") || "web";
}

/** What a person of a chat is called, as they say themselves, else by their id; null for the owner, who writes on the page. */
export function senderName(message: Message): string | null {
  const { sender, sender_name } = message;
  if (sender === undefined || sender === "owner") return null;
  return visible(sender_name || sender.slice(sender.indexOf(":") + 1));
}

/** Who said it, in a conversation that is held in a chat; null where everybody is its owner. */
export function saidBy(message: Message, session_key: string): string | null {
  const platform = platformOf(session_key);
  if (platform === "web" || message.sender === undefined) return null;
  const name = senderName(message);
  return name === null ? t().conversation.fromPage : t().conversation.from(name, platformName(platform));
}

/** With whom a private chat is held, as far as its messages say. */
export function correspondent(session_key: string, messages: readonly Message[]): string | null {
  if (session_key.split(":")[3] !== "dm") return null;
  const last = messages.findLast((message) => senderName(message) !== null);
  return last === undefined ? null : senderName(last);
}

/** Platforms have names, not keys. */
export function platformName(platform: string): string {
  return platform === "web" ? t().head.page : platform.charAt(0).toUpperCase() + platform.slice(1);
}

/** What was decided about an interrupted answer, in words. Its rule is for those who ask why. */
export function decided(row: Message): string {
  const words = t().decided;
  if (row.attempt) return isBegunAgain(row) ? words.again(row.attempt) : words.continued(row.attempt);
  const said = row.decision?.split(":", 1)[0];
  if (said === "left") return words.left[row.rule ?? ""] ?? words.left.other!;
  if (said === "set aside") return words.setAside[row.rule ?? ""] ?? words.setAside.other!;
  return said === "cancelled" ? words.cancelled : words.ended;
}

/** Which row of a conversation tells of the interruption before this attempt. */
export function cutBefore(messages: Message[], turn_id: string, attempt: number): Message | undefined {
  return messages.find((message) => message.role === "interruption" && message.turn_id === turn_id && message.attempt === attempt);
}

export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
