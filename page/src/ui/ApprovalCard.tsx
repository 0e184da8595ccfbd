import type { VNode } from "preact";
import { useId, useState } from "preact/hooks";
import type { Verdict } from "../outbox";
import type { Question } from "../types";
import { visible } from "../words";
import { Field } from "./Field";
import { Markdown } from "./Markdown";
import { OpenUntil, useExpired, useUnderway } from "./QuestionCard";
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
    <div class="approvals" data-testid="approvals">
      {questions.length > 1 && (
        <div class="approvals-head">
          <p>{questions.length} calls wait for your approval. The answer continues after the last one.</p>
          <button type="button" class="small-button" data-testid="approve-all" disabled={left.length === 0} onClick={() => left.forEach((question) => app.judge(question, ONCE))}>Approve all once</button>
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
  const title = useId();
  const always = useId();
  const [reason, setReason] = useState("");
  const [busy, setSent] = useUnderway(question.question_id);
  const over = useExpired(question);
  const off = busy || over;
  const judge = (verdict: Verdict): void => {
    if (off) return;
    app.judge(question, verdict);
    setSent();
  };
  const deny = (): void => judge({ verdict: "deny", scope: "once", ...(reason.trim() !== "" && { reason: reason.trim() }) });
  return (
    <section class="question" data-testid="approval" aria-labelledby={title}>
      <p class="question-title" id={title}>Approval needed</p>
      <div class="question-text"><Markdown text={question.call ? question.text.split("\n\n", 1)[0]! : question.text} /></div>
      {question.call && <Arguments of={question.call.arguments} />}
      <div class="question-choices">
        <button type="button" class="primary" data-testid="approve" disabled={off} onClick={() => judge(ONCE)}>Approve once</button>
        {question.pattern !== null && (
          <button type="button" class="small-button" data-testid="approve-always" disabled={off} aria-describedby={always} onClick={() => judge({ verdict: "approve", scope: "session" })}>Always for this conversation</button>
        )}
      </div>
      {question.pattern !== null && <p class="approval-pattern" id={always}>Always allows <code data-testid="approval-pattern">{visible(question.pattern)}</code></p>}
      <form class="question-form" onSubmit={(event) => { event.preventDefault(); deny(); }}>
        <Field value={reason} onInput={setReason} onSubmit={deny} label="Why not, for the agent" placeholder="Why not (optional)" disabled={off} testid="deny-reason" />
        <button type="submit" class="small-button deny" data-testid="deny" disabled={off}>Deny</button>
      </form>
      {busy ? <p class="question-foot" role="status">Your answer is on its way.</p> : <OpenUntil question={question} over={over} />}
    </section>
  );
}

/** Every argument, whole, as plain text. */
function Arguments(props: { of: unknown }): VNode {
  const named = Object.entries((props.of ?? {}) as Record<string, unknown>);
  if (named.length === 0) return <p class="approval-none">Without arguments.</p>;
  return (
    <dl class="approval-arguments" data-testid="approval-arguments">
      {named.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd><pre tabIndex={0} aria-label={name}>{visible(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre></dd>
        </div>
      ))}
    </dl>
  );
}
