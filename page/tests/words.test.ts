import { expect, test } from "vitest";
import { answeredBy, approvalOf, before, correspondent, decision, judged, passages, saidBy, verdictWords, visible, visibleCode } from "../src/words";
import type { Life, LogLine, Message } from "../src/types";
import { de } from "../src/words/de";
import { en } from "../src/words/en";

test("a notice is plain text, with what it quotes set apart", () => {
  expect(passages("Not answered. Send them again:\n\n> one\n> two *stars*\n>\n> more")).toEqual([
    { quoted: false, text: "Not answered. Send them again:" }, { quoted: true, text: "one\ntwo *stars*\n\nmore" },
  ]);
  expect(passages("3. c\n2. b\n\n/resume NUMBER goes back.")).toEqual([{ quoted: false, text: "3. c\n2. b\n\n/resume NUMBER goes back." }]);
});

test("what cannot be seen is written out before somebody approves it", () => {
  expect(visible("rm \u202Etxt.exe\u200B\u001B[0m\r\n\tok ü 🪸")).toBe("rm ⟨U+202E⟩txt.exe⟨U+200B⟩⟨U+001B⟩[0m⟨U+000D⟩\n\tok ü 🪸");
});

test("in code and output an emoji and the ends of lines are left as they are, and nothing else that hides", () => {
  expect(visibleCode("ok ✔️ 👩🏽‍🚀 1️⃣\r\nif a\u202E { \u200D\uFE0F}\r#\u001B[0m🪸\u200D\u202Ex")).toBe("ok ✔️ 👩🏽‍🚀 1️⃣\nif a⟨U+202E⟩ { ⟨U+200D⟩⟨U+FE0F⟩}⟨U+000D⟩#⟨U+001B⟩[0m🪸⟨U+200D⟩⟨U+202E⟩x");
  expect(visibleCode("const plain = 1;")).toBe("const plain = 1;");
});

test("who answered, and how a verdict reads", () => {
  const answers = { question_id: "q", kind: "approval", text: "", call: null, by: "owner", verdict: "approve" };
  expect([answeredBy(answers), answeredBy({ ...answers, by: "ada", verdict: "deny" }), answeredBy({ ...answers, verdict: null }), answeredBy({ ...answers, by: null }), answeredBy(undefined)])
    .toEqual(["approved by you", "denied by ada", "answered by you", null, null]);
  expect(judged({ verdict: "deny", scope: "once", reason: "no" }, null)).toBe("Denied: no");
  expect(judged({ verdict: "approve", scope: "session" }, "terminal(ls *)")).toBe("Approved, and from now on in this conversation: terminal(ls *)");
  expect(verdictWords(judged({ verdict: "approve", scope: "session" }, "a(*b* c)"))).toEqual({ says: "Approved, and from now on in this conversation:", pattern: "a(*b* c)" });
  expect(verdictWords(judged({ verdict: "approve", scope: "once" }, "a"))).toEqual({ says: "Approved.", pattern: null });
  expect(verdictWords(judged({ verdict: "deny", scope: "once" }, "a"))).toEqual({ says: "Denied.", pattern: null });
  expect(verdictWords("Denied: *not* now"), "a reason is a person's own words").toBeNull();
});

test("what an interruption left is counted only where there is some of it", () => {
  const told = (characters: string, results: number): string => en.details.kept(characters, results);
  expect([told("47", 0), told("47", 1), told("0", 2), told("0", 1), told("0", 0)])
    .toEqual(["47 characters were kept.", "47 characters and one result were kept.", "2 results were kept.", "One result was kept.", "Nothing had been written yet."]);
});

test("every language words the same facts, and a schedule by what it is", () => {
  expect(Object.keys(de.details.facts).sort()).toEqual(Object.keys(en.details.facts).sort());
  const time = (ms: number): string => `${ms / 1000} s`;
  expect(de.details.facts.fresh!([4000], time)).toBe("Sein letztes Lebenszeichen war vor 4 s.");
  const plan = { when: "every weekday at 08:05 (UTC)", at: null, every_s: null, cron: null, time_zone: "UTC" };
  const told = (more: object): string[] => [en, de].map((words) => words.ops.schedules.planned({ ...plan, ...more }, (seconds) => `${seconds} s`));
  expect(told({ cron: "5 8 * * 1-5" })).toEqual(["every weekday at 08:05 (UTC)", "jeden Werktag um 08:05 (UTC)"]);
  expect(told({ cron: "5 8 * * 1,0" })[1]).toBe("jeden Montag und Sonntag um 08:05 (UTC)");
  expect(told({ cron: "*/5 8 * * *" })[1]).toBe("cron */5 8 * * * (UTC)");
  expect(told({ every_s: 90 })[1]).toBe("alle 90 s");
});

test("what the server asks about a call is taken apart, and what an agent asks in its own words is not", () => {
  const call = "\n\n```\n./deploy\n```";
  expect(approvalOf(`May I run \`terminal\` in /srv/a, b?, bubblewrap sandbox, network on?${call}`, "terminal")).toEqual({ place: { folder: "/srv/a, b?", sandbox: { name: "bubblewrap", network: true }, other: null }, forOthers: false });
  expect(approvalOf(`May I run \`terminal\` in /srv/a, no sandbox?${call}`, "terminal")?.place).toEqual({ folder: "/srv/a", sandbox: "none", other: null });
  expect(approvalOf(`May I run \`write_file\` in the memory? It changes what other people's conversations are given, so only an administrator can approve it.${call}`, "write_file"))
    .toEqual({ place: { folder: null, sandbox: null, other: "the memory" }, forOthers: true });
  expect(approvalOf(`May I run \`notify\`?${call}`, "notify")).toEqual({ place: null, forOthers: false });
  expect(approvalOf("Shall I delete it?", "terminal")).toBeNull();
});

test("a decision is worded by what was decided", () => {
  const line: LogLine = { at: "", what: "ended", session_id: "s", title: null, turn_id: "t", attempt: 1, outcome: "completed", rule: null, why: null };
  expect([line, { ...line, outcome: "set_aside" }, { ...line, what: "resumed", outcome: "answered" }, { ...line, what: "resumed", outcome: "crash" }, { ...line, what: "interrupted", outcome: "crash" }, { ...line, what: "left", outcome: null, rule: "R5" }, { ...line, what: "left", outcome: null, rule: "R7" }].map(decision))
    .toEqual(["completed", "set aside", "continued with the answer", "continued after a crash", "interrupted by a crash", "waits for an answer", "not continued"]);
  expect(de.ops.continuedWithAnswer).toBe("mit der Antwort fortgesetzt");
});

test("what the ends before the serving process cost is the sum, and only said of the hours that are shown", () => {
  const life = (at: number, end: Life["end"], interrupted = 0, resumed = 0, took_ms: number | null = null): Life =>
    ({ pid: at, version: null, started_at: new Date(at).toISOString(), until: end && new Date(at + 9).toISOString(), ended_at: null, end, interrupted, resumed, took_ms });
  const turns = { since: new Date(100).toISOString(), bucket_s: 1, completed: [], failed: [], other: [], interrupted: [] };
  const of = (...lives: Life[]): ReturnType<typeof before> => before({ lives: [...lives, life(900, null)], pauses: [], turns, partial: false });
  expect(of(life(200, "stop", 9), life(300, "crash", 2, 1, 50), life(400, "crash", 1, 1, 20))).toEqual({ crashed: 2, handedOver: false, cost: { interrupted: 3, resumed: 2, took_ms: 50 } });
  expect(of(life(300, "crash", 1), life(400, "hand_over"))).toEqual({ crashed: 0, handedOver: true, cost: { interrupted: 0, resumed: 0, took_ms: 0 } });
  for (const lives of [[life(10, "crash")], [life(10, "crash"), life(300, "crash", 1, 1, 5)], [life(10, "hand_over")]]) expect(of(...lives).cost).toBeNull();
  for (const nothing of [before(null), of(), of(life(300, "crash"), life(400, "stop"))]) expect(nothing).toEqual({ crashed: 0, handedOver: false, cost: null });
});

test("in a chat everybody has a name, and the owner is the one who writes on the page", () => {
  const message = (more: object): Message => ({ id: "m", role: "user", text: "", parts: [], turn_id: null, created_at: "", status: "complete", ...more });
  const [ana, nameless, own, older] = [message({ sender: "telegram:7", sender_name: "Ana\u202E" }), message({ sender: "telegram:7:1" }), message({ sender: "owner" }), message({})];
  const dm = "agent:main:telegram:dm:7";
  expect([ana, nameless, own, older].map((each) => saidBy(each!, dm))).toEqual(["Ana⟨U+202E⟩, from Telegram", "7:1, from Telegram", "You, from this page", null]);
  expect(saidBy(own!, "agent:main:web:page:1")).toBeNull();
  expect([correspondent(dm, [ana!, nameless!, own!]), correspondent(dm, [own!]), correspondent("agent:main:telegram:group:9", [ana!])]).toEqual(["7:1", null, null]);
});

test("numbers and their words agree", () => {
  expect([en.ops.retiring(1), en.ops.retiring(2)]).toEqual(["One older process finishes its turns.", "2 older processes finish their turns."]);
  expect([de.ops.timelineLabel(3, 1), de.ops.timelineLabel(3, 2)]).toEqual(["Wie Durchgänge endeten: 3 Durchgänge, 1 Prozess starb.", "Wie Durchgänge endeten: 3 Durchgänge, 2 Prozesse starben."]);
  expect(de.ops.lastCost(3, 1, "2 s")).toBe("3 Durchgänge wurden unterbrochen; einer ging innerhalb von 2 s nach dem Neustart weiter.");
  expect(de.ops.lastCost(3, 2, "2 s")).toBe("3 Durchgänge wurden unterbrochen; 2 gingen innerhalb von 2 s nach dem Neustart weiter.");
  expect(de.ops.schedules.skipped("it was told already")).toBe("zuletzt ausgelassen: er war schon ausgelöst");
});
