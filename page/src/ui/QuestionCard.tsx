import type { VNode } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { t } from "../i18n";
import type { Question } from "../types";
import { moment, openFor } from "../words";
import { Attachments } from "./Attachments";
import { Field } from "./Field";
import { ShapeIcon } from "./icons";
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
  const now = useNow(true, 10_000);
  const left = openFor(props.question, now);
  if (left === null) return null;
  const until = moment(props.question.expires_at!);
  return <span class="dim" title={until}>{props.over ? t().ask.expired(until) : t().ask.openFor(left)}</span>;
}

export function AskHead(props: { id: string; text: string }): VNode {
  return <p class="ask-head" id={props.id}><span class="st amber"><ShapeIcon shape="waiting" /></span>{props.text}</p>;
}

export function QuestionCard(props: { question: Question }): VNode {
  const app = useApp();
  const { question } = props;
  const title = useId();
  const draft = `question.${question.question_id}`;
  const [text, setText] = useState(() => app.drafts.get(draft));
  const [busy, setSent] = useUnderway(question.question_id);
  const over = useExpired(question);
  const words = t().ask;
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
    <section class="ask" data-testid="question" aria-labelledby={title}>
      <AskHead id={title} text={words.question} />
      <div class="ask-text"><Markdown text={question.text} /></div>
      <Attachments parts={question.parts} />
      {question.choices.length > 0 && (
        <div class="ask-choices">
          {question.choices.map((choice) => <button type="button" key={choice} class="b" data-testid="question-choice" disabled={busy || over} onClick={() => answer(choice, true)}>{choice}</button>)}
        </div>
      )}
      <form class="ask-form" onSubmit={(event) => { event.preventDefault(); answer(text); }}>
        <Field value={text} onInput={type} onSubmit={() => answer(text)} label={words.answer} placeholder={busy ? words.onItsWay : words.answer} disabled={busy || over} testid="question-answer" />
        <button type="submit" class="b kelp" data-testid="question-send" disabled={busy || over || text.trim() === ""}>{words.answerButton}</button>
      </form>
      <div class="ask-foot"><OpenUntil question={question} over={over} /></div>
    </section>
  );
}
