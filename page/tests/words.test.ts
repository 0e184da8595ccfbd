import { expect, test } from "vitest";
import { answeredBy, judged, passages, visible } from "../src/words";

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
