import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Question } from "../types";
import { moment } from "../words";
import { Field } from "./Field";
import { Attachments } from "./Attachments";
import { Markdown } from "./Markdown";
import { useApp } from "./shared";

export function QuestionCard(props: { question: Question }): VNode {
  const app = useApp();
  const { question } = props;
  const draft = `question.${question.question_id}`;
  const [text, setText] = useState(() => app.drafts.get(draft));
  const [sent, setSent] = useState(false);
  const refused = app.sending.items.value.some((item) => item.question_id === question.question_id && item.refused !== null);
  const busy = sent && !refused;
  const type = (value: string): void => {
    setText(value);
    app.drafts.set(draft, value);
  };
  const answer = (said: string = text): void => {
    if (said.trim() === "" || busy) return;
    app.answer(question.question_id, said);
    setSent(true);
    type("");
  };
  return (
    <section class="question" data-testid="question" aria-label="A question for you">
      <p class="question-title">Holdfast asks</p>
      <div class="question-text"><Markdown text={question.text} /></div>
      <Attachments parts={question.parts} />
      {question.choices.length > 0 && (
        <div class="question-choices">
          {question.choices.map((choice) => <button type="button" key={choice} class="small-button" data-testid="question-choice" disabled={busy} onClick={() => answer(choice)}>{choice}</button>)}
        </div>
      )}
      <form class="question-form" onSubmit={(event) => { event.preventDefault(); answer(); }}>
        <Field value={text} onInput={type} onSubmit={() => answer()} label="Your answer" placeholder={busy ? "Your answer is on its way" : "Your answer"} disabled={busy} testid="question-answer" />
        <button type="submit" class="primary" data-testid="question-send" disabled={busy || text.trim() === ""}>Answer</button>
      </form>
      {question.expires_at && <p class="question-foot">Open until {moment(question.expires_at)}. It waits across restarts.</p>}
    </section>
  );
}
