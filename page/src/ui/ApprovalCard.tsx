import type { VNode } from "preact";
import { useId, useState } from "preact/hooks";
import { t } from "../i18n";
import type { Verdict } from "../outbox";
import type { Question } from "../types";
import { approvalOf, visible, type Workplace } from "../words";
import { Field } from "./Field";
import { Markdown } from "./Markdown";
import { AskHead, OpenUntil, useExpired, useUnderway } from "./QuestionCard";
import { useApp } from "./shared";

const ONCE: Verdict = { verdict: "approve", scope: "once" };

/** The calls that wait for an approval; several of one step together. */
export function Approvals(props: { questions: Question[] }): VNode | null {
  const app = useApp();
  const { questions } = props;
  const given = new Set(app.sending.items.value.filter((item) => item.refused === null).map((item) => item.question_id));
  const left = questions.filter((question) => !given.has(question.question_id));
  if (questions.length === 0) return null;
  return (
    <div data-testid="approvals">
      {questions.length > 1 && (
        <div class="asks-head">
          <p>{t().ask.several(questions.length)}</p>
          <button type="button" class="b small" data-testid="approve-all" disabled={left.length === 0} onClick={() => left.forEach((question) => app.judge(question, ONCE))}>{t().ask.approveAll}</button>
        </div>
      )}
      {questions.map((question) => <ApprovalCard key={question.question_id} question={question} />)}
    </div>
  );
}

/** One call, shown whole, with what each button leads to. */
function ApprovalCard(props: { question: Question }): VNode {
  const app = useApp();
  const { question } = props;
  const words = t().ask;
  const title = useId();
  const always = useId();
  const [reason, setReason] = useState("");
  const [busy, setSent] = useUnderway(question.question_id);
  const over = useExpired(question);
  const off = busy || over;
  const asked = question.call && approvalOf(question.text, question.call.name);
  const judge = (verdict: Verdict): void => {
    if (off) return;
    app.judge(question, verdict);
    setSent();
  };
  const deny = (): void => judge({ verdict: "deny", scope: "once", ...(reason.trim() !== "" && { reason: reason.trim() }) });
  return (
    <section class="ask" data-testid="approval" aria-labelledby={title}>
      <AskHead id={title} text={words.approval} />
      <Asked question={question} />
      {question.call && <Arguments of={question.call.arguments} />}
      <dl class="facts">
        {question.call && <><dt>{words.tool}</dt><dd>{visible(question.call.name)}</dd></>}
        {asked?.place && <Place of={asked.place} />}
        <dt>{words.bindsTo}</dt><dd>{words.bindsToThis}</dd>
        {question.pattern !== null && <><dt>{words.alwaysAllows}</dt><dd id={always}><code data-testid="approval-pattern">{visible(question.pattern)}</code></dd><dt>{words.until}</dt><dd>{words.untilReset}</dd></>}
      </dl>
      <div class="ask-foot">
        <button type="button" class="b kelp" data-testid="approve" disabled={off} onClick={() => judge(ONCE)}>{words.approve}</button>
        {question.pattern !== null && (
          <button type="button" class="b" data-testid="approve-always" disabled={off} aria-describedby={always} onClick={() => judge({ verdict: "approve", scope: "session" })}>{words.approveAlways}</button>
        )}
        {busy ? <span class="dim" role="status">{words.onItsWaySentence}</span> : <OpenUntil question={question} over={over} />}
      </div>
      <form class="ask-form deny" onSubmit={(event) => { event.preventDefault(); deny(); }}>
        <Field value={reason} onInput={setReason} onSubmit={deny} label={words.denyReason} placeholder={words.denyReasonHint} disabled={off} testid="deny-reason" />
        <button type="submit" class="b" data-testid="deny" disabled={off}>{words.deny}</button>
      </form>
    </section>
  );
}

/** What is asked, in a line: in the page's words where the server asks, else in those of the agent that does. */
function Asked(props: { question: Question }): VNode {
  const { call, text } = props.question;
  const words = t().ask;
  const asked = call && approvalOf(text, call.name);
  if (!call || !asked) return <div class="ask-text"><Markdown text={visible(call ? text.split("\n\n", 1)[0]! : text)} /></div>;
  const command = Object.keys((call.arguments ?? {}) as object).includes("command");
  return (
    <div class="ask-text">
      <p class="ask-what" data-testid="approval-asks">{command ? words.runCommand : words.runTool(visible(call.name))}</p>
      {asked.forOthers && <p class="ask-others">{words.forOthers}</p>}
    </div>
  );
}

function Place(props: { of: Workplace }): VNode {
  const words = t().ask;
  const { folder, sandbox, other } = props.of;
  if (other !== null) return <><dt>{words.where}</dt><dd>{visible(other)}</dd></>;
  return (
    <>
      <dt>{words.folder}</dt><dd><code data-testid="approval-folder">{visible(folder ?? "")}</code></dd>
      <dt>{words.sandbox}</dt><dd>{sandbox === "none" || sandbox === null ? words.noSandbox : words.sandboxed(sandbox.name, sandbox.network)}</dd>
    </>
  );
}

/** Every argument, whole, as plain text. */
function Arguments(props: { of: unknown }): VNode {
  const named = Object.entries((props.of ?? {}) as Record<string, unknown>);
  if (named.length === 0) return <p class="ask-text dim">{t().ask.noArguments}</p>;
  return (
    <dl class={named.length === 1 ? "arguments one" : "arguments"} data-testid="approval-arguments">
      {named.map(([name, value]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd><pre tabIndex={0} dir="ltr" aria-label={name}>{visible(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre></dd>
        </div>
      ))}
    </dl>
  );
}
