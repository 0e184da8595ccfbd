/** The rows of a conversation: messages, cuts, ends, the open question, and what is on its way. */

import type { ComponentChildren, VNode } from "preact";
import { isCommand } from "../commands";
import type { Item } from "../outbox";
import { isMark } from "../answers";
import type { Answers, Attached, Message, ModelFailure, Part, Turn } from "../types";
import { answeredBy, askingAgain, clock, failedRequest, interruption, moment, passages, turnEnd, used } from "../words";
import { Attachment, Attachments, FileChip } from "./Attachments";
import { KnotIcon, Mark } from "./icons";
import { Markdown } from "./Markdown";
import { memo, useApp, useNow } from "./shared";
import { gist, ToolCard } from "./ToolCard";

function Time(props: { at: string }): VNode {
  return <time class="time" dateTime={props.at} title={moment(props.at)}>{clock(props.at)}</time>;
}

/** `asks` are the calls whose questions are open, a line each; `taken` the messages that the answer took; `turn` and `thoughts` those of an answer. */
export const MessageRow = memo<{
  message: Message; running: boolean; waiting: boolean; asks: string; taken: Message[]; turn?: Turn | null; thoughts?: string | null;
}>((props) => {
  const { message, running, waiting, asks, taken } = props;
  switch (message.role) {
    case "user": if (message.status === "command") return <Spoken text={message.text} note={null} at={message.created_at} />;
      if (message.status === "refused") return <Refused text={message.text} />;
      return <Said text={message.text} parts={message.parts} status={message.status} note={waiting ? "waiting for its turn" : (answeredBy(message.answers) ?? (message.edited_at ? "edited" : null))} at={waiting ? null : message.created_at} answers={message.answers ? asked(message.answers) : null} />;
    case "assistant": return <Answer message={message} running={running} asks={asks} taken={taken} turn={props.turn ?? null} thoughts={props.thoughts ?? null} />;
    case "interruption": return <Cut row={message} />;
    default: return (
      <div class="notice" data-testid="message" data-role={message.role} data-status={message.status}>
        {passages(message.text).map((passage, index) => (passage.quoted ? <blockquote key={index}>{passage.text}</blockquote> : <p key={index}>{passage.text}</p>))}
      </div>
    );
  }
});

function Said(props: { text: string; parts?: Part[]; files?: Attached[] | undefined; status: string; note: string | null; at: string | null; answers?: string | null; action?: VNode; children?: ComponentChildren }): VNode {
  return (
    <article class={`said ${props.status}`} data-testid="message" data-role="user" data-status={props.status} aria-label="You">
      {props.answers && <p class="said-about">{props.answers}</p>}
      {props.text !== "" && <div class="bubble">{props.text}</div>}
      {props.parts && <Attachments parts={props.parts} />}
      {props.files && props.files.length > 0 && <div class="attachments">{props.files.map((file) => <FileChip key={file.attachment_id} name={file.name} size={file.size} />)}</div>}
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
export function SentRow(props: { text: string; files: Attached[] }): VNode {
  if (isCommand(props.text)) return <Spoken text={props.text} note={null} at={null} />;
  return <Said text={props.text} files={props.files} status="complete" note="sent" at={null} />;
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
  if (item.refused === null) return <Said text={item.text} files={item.attachments} status="sending" note={item.tries > 1 ? "sending… kept until Holdfast has it" : "sending…"} at={null} />;
  return (
    <Said text={item.text} files={item.attachments} status="refused" note="not sent" at={null}>
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

/** Its parts in their order. A call that asks is shown as the question, not as a tool as well. */
function Answer(props: { message: Message; running: boolean; asks: string; taken: Message[]; turn: Turn | null; thoughts: string | null }): VNode | null {
  const { message, running, taken, turn } = props;
  const partial = message.status === "partial";
  const asks = new Set(props.asks.split("\n"));
  const calls = new Map(message.tool_calls?.map((call) => [call.call_id, call]));
  const last = message.parts[message.parts.length - 1];
  const own = message.parts.map((part) => ("digest" in part ? part.digest : "")).join(" ");
  const draw = (part: Part, index: number): VNode | null => {
    switch (part.type) {
      case "text": return <Markdown key={part.id ?? index} text={part.text} writing={partial && running && part === last} />;
      case "call": {
        const call = calls.get(part.call_id);
        return call === undefined || (call.outcome === null && asks.has(call.call_id)) ? null : <ToolCard key={part.id} call={call} running={running} own={own} />;
      }
      case "message": {
        const message = taken.find((other) => other.id === part.message_id);
        return message === undefined ? null : <MessageRow key={part.id} message={message} running={false} waiting={false} asks="" taken={NONE} />;
      }
      default: return <Attachment key={part.id ?? index} part={part} />;
    }
  };
  const drawn = message.parts.map(draw).filter((part) => part !== null);
  if (drawn.length === 0) return null;
  return (
    <article class="answer" data-testid="message" data-role="assistant" data-status={message.status} aria-label="Holdfast's answer" aria-busy={partial && running}>
      <span class="answer-mark"><Mark size={20} /></span>
      <div class="answer-body" {...(partial && { "aria-live": "off" })}>
        {props.thoughts && <Thoughts text={props.thoughts} />}
        {drawn}
        <div class="answer-foot">
          {turn?.usage && turn.state === "ended" && <p class="spent" data-testid="answer-cost">{[turn.model, ...used(turn.usage)].filter(Boolean).join(" · ")}</p>}
          {!partial && <Time at={message.created_at} />}
        </div>
        {turn?.failures && turn.state === "ended" && <Failures failures={turn.failures} />}
      </div>
    </article>
  );
}

/** What was asked, in a line. */
function asked(answers: Answers): string {
  return answers.kind === "approval" && answers.call ? `${answers.call.name}: ${gist(answers.call.arguments)}` : answers.text;
}

/** The same for every answer that took no message, so that it need not be drawn for its sake. */
const NONE: Message[] = [];

/** The messages among these that an answer took while it was written: they are read there. */
export function takenBy(answer: Message, messages: Message[]): Message[] {
  const ids = new Set(answer.parts.flatMap((part) => (isMark(part) && part.type === "message" ? [part.message_id] : [])));
  if (ids.size === 0) return NONE;
  const found = messages.filter((message) => ids.has(message.id));
  return found.length > 0 ? found : NONE;
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

function Thoughts(props: { text: string }): VNode {
  return <details class="folded" data-testid="thoughts"><summary>Thoughts</summary><p tabIndex={0}>{props.text}</p></details>;
}

/** Behind an answer: how often its models had to be asked again, and why. */
function Failures(props: { failures: ModelFailure[] }): VNode {
  const { length } = props.failures;
  return (
    <details class="folded" data-testid="model-failures">
      <summary>{length === 1 ? "One request to a model failed" : `${length} requests to a model failed`}</summary>
      <ul>{props.failures.map((failure, index) => <li key={index}>{failedRequest(failure)} <Time at={failure.at} /></li>)}</ul>
    </details>
  );
}

/** A request to a model failed, and nothing has come since. */
export function Failing(props: { failure: ModelFailure }): VNode {
  const now = useNow(props.failure.retry_at !== null);
  return <p class="failing" role="status" data-testid="asking-again">{askingAgain(props.failure, now)}</p>;
}

export function Working(props: { thoughts: string | null; word: string }): VNode {
  return (
    <div class="working">
      <span class="answer-mark"><Mark size={20} /></span>
      <div>
        <p class="working-word"><span class="dots" aria-hidden="true"><i /><i /><i /></span>{props.word}</p>
        {props.thoughts && <Thoughts text={props.thoughts} />}
      </div>
    </div>
  );
}
