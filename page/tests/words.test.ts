import { expect, test } from "vitest";
import { answeredBy, judged, passages, visible } from "../src/words";
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

test("who answered, and how a verdict reads", () => {
  const answers = { question_id: "q", kind: "approval", text: "", call: null, by: "owner", verdict: "approve" };
  expect([answeredBy(answers), answeredBy({ ...answers, by: "ada", verdict: "deny" }), answeredBy({ ...answers, verdict: null }), answeredBy({ ...answers, by: null }), answeredBy(undefined)])
    .toEqual(["approved by you", "denied by ada", "answered by you", null, null]);
  expect(judged({ verdict: "deny", scope: "once", reason: "no" }, null)).toBe("Denied: no");
  expect(judged({ verdict: "approve", scope: "session" }, "terminal(ls *)")).toBe("Approved, and from now on in this conversation: terminal(ls *)");
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
