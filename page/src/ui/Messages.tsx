/** The rows of a conversation: messages, cuts, ends, the open question, and what is on its way. */

import type { ComponentChildren, VNode } from "preact";
import { isCommand } from "../commands";
import type { Item } from "../outbox";
import type { Message, Turn } from "../types";
import { clock, interruption, moment, passages, turnEnd } from "../words";
import { KnotIcon, Mark } from "./icons";
import { Markdown } from "./Markdown";
import { memo, useApp } from "./shared";
import { gist, ToolCard } from "./ToolCard";

function Time(props: { at: string }): VNode {
  return <time class="time" dateTime={props.at} title={moment(props.at)}>{clock(props.at)}</time>;
}

/** `asks` is the question that is open in this message's turn; `answers` the one that this message answers. */
export const MessageRow = memo<{ message: Message; running: boolean; waiting: boolean; asks: string | null; answers: string | null }>((props) => {
  const { message, running, waiting, asks, answers } = props;
  switch (message.role) {
    case "user": if (message.status === "command") return <Spoken text={message.text} note={null} at={message.created_at} />;
      if (message.status === "refused") return <Refused text={message.text} />;
      return <Said text={message.text} status={message.status} note={waiting ? "waiting for its turn" : null} at={waiting ? null : message.created_at} answers={answers} />;
    case "assistant": return <Answer message={message} running={running} asks={asks} />;
    case "interruption": return <Cut row={message} />;
    default: return (
      <div class="notice" data-testid="message" data-role="notice" data-status={message.status}>
        {passages(message.text).map((passage, index) => (passage.quoted ? <blockquote key={index}>{passage.text}</blockquote> : <p key={index}>{passage.text}</p>))}
      </div>
    );
  }
});

function Said(props: { text: string; status: string; note: string | null; at: string | null; answers?: string | null; action?: VNode; children?: ComponentChildren }): VNode {
  return (
    <article class={`said ${props.status}`} data-testid="message" data-role="user" data-status={props.status} aria-label="You">
      {props.answers && <p class="said-about">{props.answers}</p>}
      <div class="bubble">{props.text}</div>
      <div class="said-foot">
        {props.action}
        {props.note && <span class="said-note">{props.note}</span>}
        {props.at && <Time at={props.at} />}
      </div>
      {props.children}
    </article>
  );
}

/** Words to the gateway itself. */
function Spoken(props: { text: string; note: string | null; at: string | null }): VNode {
  return (
    <article class="spoken" data-testid="message" data-role="user" data-status="command" aria-label="Your command">
      <code>{props.text}</code>
      {props.note && <span class="said-note">{props.note}</span>}
      {props.at && <Time at={props.at} />}
    </article>
  );
}

/** A message the server has, whose event is still under way. */
export function SentRow(props: { text: string }): VNode {
  if (isCommand(props.text)) return <Spoken text={props.text} note={null} at={null} />;
  return <Said text={props.text} status="complete" note="sent" at={null} />;
}

/** A message that no turn took, and none will. A notice below it says why. */
function Refused(props: { text: string }): VNode {
  const app = useApp();
  const again = <button type="button" class="text-button" data-testid="put-back" onClick={() => app.putBack(props.text)}>Write it again</button>;
  return <Said text={props.text} status="refused" note="not answered" at={null} action={again} />;
}

/** A message that is kept here until the server has it. */
export const OutboxRow = memo<{ item: Item }>(({ item }) => {
  const app = useApp();
  if (item.refused === null && isCommand(item.text)) return <Spoken text={item.text} note={item.tries > 1 ? "sending… kept until Holdfast has it" : null} at={null} />;
  if (item.refused === null) return <Said text={item.text} status="sending" note={item.tries > 1 ? "sending… kept until Holdfast has it" : "sending…"} at={null} />;
  return (
    <Said text={item.text} status="refused" note="not sent" at={null}>
      <div class="said-problem" role="alert">
        <p>{item.refused.message}</p>
        <div class="said-actions">
          <button type="button" class="small-button" onClick={() => app.sending.retry(item.client_id)}>Try again</button>
          <button type="button" class="small-button quiet" onClick={() => app.sending.discard(item.client_id)}>Discard</button>
        </div>
      </div>
    </Said>
  );
});

function Answer(props: { message: Message; running: boolean; asks: string | null }): VNode | null {
  const { message, running, asks } = props;
  const partial = message.status === "partial";
  // The call that asks is shown as the question, not as a tool as well.
  const calls = message.tool_calls?.filter((call) => asks === null || call.outcome !== null || gist(call.arguments) !== asks) ?? [];
  if (calls.length === 0 && message.text === "") return null;
  return (
    <article class="answer" data-testid="message" data-role="assistant" data-status={message.status} aria-label="Holdfast's answer" aria-busy={partial && running}>
      <span class="answer-mark"><Mark size={20} /></span>
      <div class="answer-body" {...(partial && { "aria-live": "off" })}>
        {calls.map((call) => <ToolCard key={call.call_id} call={call} running={running} />)}
        {message.text !== "" && <Markdown text={message.text} writing={partial && running} />}
        <div class="answer-foot">{!partial && <Time at={message.created_at} />}</div>
      </div>
    </article>
  );
}

function Cut(props: { row: Message }): VNode {
  return (
    <div class="cut" data-testid="interruption" data-state={props.row.state} data-rule={props.row.rule ?? undefined}>
      <span class="cut-knot"><KnotIcon /></span>
      <div>
        <p>{interruption(props.row)} <Time at={props.row.created_at} /></p>
        {props.row.decision && <p class="cut-decision" data-testid="decision">{props.row.decision}</p>}
      </div>
    </div>
  );
}

export const TurnEnd = memo<{ turn: Turn }>(({ turn }) => {
  const end = turnEnd(turn);
  if (end === null) return <></>;
  return <div class={`turn-end ${end.tone}`} data-testid="turn-end" data-outcome={turn.outcome ?? undefined}><p>{end.text}</p></div>;
});

export function Working(props: { reasoning: string | null; word: string }): VNode {
  return (
    <div class="working">
      <span class="answer-mark"><Mark size={20} /></span>
      <div>
        <p class="working-word"><span class="dots" aria-hidden="true"><i /><i /><i /></span>{props.word}</p>
        {props.reasoning && <details class="reasoning"><summary>Thinking</summary><p>{props.reasoning}</p></details>}
      </div>
    </div>
  );
}
