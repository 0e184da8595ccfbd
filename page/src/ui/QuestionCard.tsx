import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Question } from "../types";
import { moment } from "../words";
import { Field } from "./Field";
import { Attachments } from "./Attachments";
import { Markdown } from "./Markdown";
import { useApp, useNow } from "./shared";

/** Whether an answer to the question is on its way, and how to say that one is. A refused one is not: it can be given again. */
export function useUnderway(question_id: string): [boolean, () => void] {
  const [sent, setSent] = useState(false);
  const items = useApp().sending.items.value.filter((item) => item.question_id === question_id);
  const refused = items.some((item) => item.refused !== null);
  useEffect(() => {
    if (refused) setSent(false);
  }, [refused]);
  return [(sent && !refused) || items.some((item) => item.refused === null), () => setSent(true)];
}

/** Whether its time is over, as far as this clock knows: the server has the last word. */
export function useExpired(question: Question): boolean {
  const now = useNow(question.expires_at !== null);
  return question.expires_at !== null && Date.parse(question.expires_at) <= now;
}

export function OpenUntil(props: { question: Question; over: boolean }): VNode | null {
  const { expires_at } = props.question;
  if (expires_at === null) return null;
  return <p class="question-foot">{props.over ? `Expired ${moment(expires_at)}: it can no longer be answered.` : `Open until ${moment(expires_at)}. It waits across restarts.`}</p>;
}

export function QuestionCard(props: { question: Question }): VNode {
  const app = useApp();
  const { question } = props;
  const draft = `question.${question.question_id}`;
  const [text, setText] = useState(() => app.drafts.get(draft));
  const [busy, setSent] = useUnderway(question.question_id);
  const over = useExpired(question);
  const type = (value: string): void => {
    setText(value);
    app.drafts.set(draft, value);
  };
  const answer = (said: string, chosen = false): void => {
    if (said.trim() === "" || busy || over) return;
    app.answer(question.question_id, said, chosen);
    setSent();
    if (!chosen) type("");
  };
  return (
    <section class="question" data-testid="question" aria-label="A question for you">
      <p class="question-title">Holdfast asks</p>
      <div class="question-text"><Markdown text={question.text} /></div>
      <Attachments parts={question.parts} />
      {question.choices.length > 0 && (
        <div class="question-choices">
          {question.choices.map((choice) => <button type="button" key={choice} class="small-button" data-testid="question-choice" disabled={busy || over} onClick={() => answer(choice, true)}>{choice}</button>)}
        </div>
      )}
      <form class="question-form" onSubmit={(event) => { event.preventDefault(); answer(text); }}>
        <Field value={text} onInput={type} onSubmit={() => answer(text)} label="Your answer" placeholder={busy ? "Your answer is on its way" : "Your answer"} disabled={busy || over} testid="question-answer" />
        <button type="submit" class="primary" data-testid="question-send" disabled={busy || over || text.trim() === ""}>Answer</button>
      </form>
      <OpenUntil question={question} over={over} />
    </section>
  );
}
