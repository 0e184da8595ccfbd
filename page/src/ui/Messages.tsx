/** The rows of a conversation: messages, interruptions, ends, and what is on its way. */

import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { type Shown, withCuts } from "../answers";
import type { App } from "../app";
import { isCommand } from "../commands";
import { t } from "../i18n";
import type { Item } from "../outbox";
import type { Answers, Attached, Delivery, Message, ModelFailure, Part, ToolCall, Turn } from "../types";
import { answeredBy, askingAgain, clock, cutWords, decided, deliverySign, failedRequest, passages, platformName, platformOf, saidBy, sentence, turnEnd, used, verdictWords, visible, visibleCode } from "../words";
import { Attachment, Attachments, FileChip } from "./Attachments";
import { Calls, gist } from "./Calls";
import { BranchIcon, CloseIcon, DotsIcon, Mark, PenIcon, PulseIcon, QuoteIcon, RetryIcon, ShapeIcon, StateSign } from "./icons";
import { Markdown } from "./Markdown";
import { Copy, IconButton, memo, Time, useApp, useNow } from "./shared";

/**
 * `asks` are the calls whose questions are open, a line each; `taken` the messages that the answer took, `cuts` the rows that tell of its interruptions;
 * `turn` that of an answer; `inside`: it stands in the answer that took it.
 */
export const MessageRow = memo<{
  message: Message; running: boolean; waiting: boolean; asks: string; taken: Message[]; cuts?: Message[]; turn?: Turn | null; inside?: boolean;
}>((props) => {
  const { message, running, waiting, asks, taken } = props;
  const words = t().conversation;
  const app = useApp();
  switch (message.role) {
    case "user":
      if (message.status === "command") return <Spoken id={message.id} text={message.text} note={null} at={message.created_at} />;
      if (message.status === "refused") return <Refused message={message} />;
      return (
        <Said
          id={message.id} text={message.text} parts={message.parts} verdict={message.answers?.kind === "approval"} status={message.status} by={who(app, message)} at={waiting ? null : message.created_at} answers={message.answers ? asked(message.answers) : null}
          note={waiting ? words.waitingTurn : (answeredBy(message.answers) ?? (message.edited_at ? words.edited : null))}
          action={<SaidActions message={message} waiting={waiting} begins={!props.inside} />}
        />
      );
    case "assistant": return message.status === "superseded" ? <Superseded message={message} /> : <Answer message={message} running={running} asks={asks} taken={taken} cuts={props.cuts ?? NONE} turn={props.turn ?? null} />;
    case "interruption": return <Cut row={message} />;
    default: return (
      <div class="notice" id={`m-${message.id}`} data-testid="message" data-role={message.role} data-status={message.status} dir="auto">
        {passages(message.text).map((passage, index) => (passage.quoted ? <blockquote key={index}>{passage.text}</blockquote> : <p key={index}>{passage.text}</p>))}
        {message.delivery && <DeliveryLine delivery={message.delivery} />}
      </div>
    );
  }
});

/** Who said it, where that is not simply you. */
function who(app: App, message: Message): string | null {
  const session_key = app.conversation.view.peek()?.session.session_key;
  return session_key === undefined ? null : saidBy(message, session_key);
}

/** `verdict`: it judges a call. */
function Said(props: { id?: string; text: string; verdict?: boolean; parts?: Part[]; files?: Attached[] | undefined; status: string; note: string | null; by?: string | null; at: string | null; answers?: string | null; action?: VNode | null; children?: ComponentChildren }): VNode {
  return (
    <article class={`said ${props.status}`} id={props.id && `m-${props.id}`} data-testid="message" data-role="user" data-status={props.status} aria-label={props.by ?? t().conversation.you}>
      {props.answers && <p class="said-about" dir="auto">{props.answers}</p>}
      {props.text !== "" && <div class="bubble">{props.verdict ? <Judged text={props.text} /> : <Markdown text={props.text} />}</div>}
      {props.parts && <Attachments parts={props.parts} />}
      {props.files && props.files.length > 0 && <div class="attachments">{props.files.map((file) => <FileChip key={file.attachment_id} name={file.name} size={file.size} />)}</div>}
      <div class="foot">
        {props.action}
        {props.note && <span class="note">{props.note}</span>}
        {props.by && <span class="by" data-testid="sender" dir="auto">{props.by}</span>}
        {props.at && <Time at={props.at} />}
      </div>
      {props.children}
    </article>
  );
}

/** A verdict. What it allows is shown as it is: nothing in it counts as markup, and nothing in it is invisible. */
function Judged(props: { text: string }): VNode {
  const words = verdictWords(props.text);
  if (words === null) return <Markdown text={props.text} />;
  return <div class="prose"><p dir="auto">{words.says}{words.pattern !== null && <> <code data-testid="allowed-pattern" dir="ltr">{visible(words.pattern)}</code></>}</p></div>;
}

/** What can be done with a message. On a phone it stands behind a button: four targets as large as a finger below every message are noise. */
function Acts(props: { children: ComponentChildren }): VNode {
  const [open, setOpen] = useState(false);
  return (
    <span class="acts" data-open={open}>
      {props.children}
      <IconButton label={t().acts.more} class="acts-more" expanded={open} testid="acts-more" onClick={() => setOpen(!open)}><DotsIcon /></IconButton>
    </span>
  );
}

/** What can be done with something you said. `begins`: its turn started from it. */
function SaidActions(props: { message: Message; waiting: boolean; begins: boolean }): VNode {
  const app = useApp();
  const { message, waiting } = props;
  const words = t().acts;
  return (
    <Acts>
      {message.text !== "" && <Copy text={message.text} label={words.copyMessage} />}
      {waiting && message.role === "user" && <IconButton label={words.withdraw} testid="withdraw" onClick={() => void app.withdraw(message)}><CloseIcon /></IconButton>}
      {!waiting && !message.answers && <IconButton label={words.edit} testid="edit" onClick={() => void app.reuse(message)}><PenIcon /></IconButton>}
      {!waiting && message.text !== "" && <IconButton label={words.quote} testid="quote" onClick={() => app.quote(message.text)}><QuoteIcon /></IconButton>}
      {props.begins && !waiting && !message.answers && message.turn_id !== null && <IconButton label={words.branch} testid="branch" onClick={() => void app.branch(message)}><BranchIcon /></IconButton>}
    </Acts>
  );
}

/** Words to the gateway itself. */
function Spoken(props: { id?: string; text: string; note: string | null; at: string | null }): VNode {
  return (
    <article class="spoken" id={props.id && `m-${props.id}`} data-testid="message" data-role="user" data-status="command" aria-label={t().conversation.command}>
      <code>{visibleCode(props.text)}</code>
      {props.note && <span class="note">{props.note}</span>}
      {props.at && <Time at={props.at} />}
    </article>
  );
}

/** A message the server has, whose event is still under way. */
export function SentRow(props: { text: string; files: Attached[] }): VNode {
  if (isCommand(props.text)) return <Spoken text={props.text} note={null} at={null} />;
  return <Said text={props.text} files={props.files} status="complete" note={t().conversation.sent} at={null} />;
}

/** A message that no turn took, and none will. A notice below it says why. */
function Refused(props: { message: Message }): VNode {
  const app = useApp();
  const { message } = props;
  const again = <button type="button" class="link" data-testid="put-back" onClick={() => void app.reuse(message)}>{t().conversation.writeAgain}</button>;
  return (
    <Said
      id={message.id}
      text={message.text}
      parts={message.parts}
      status="refused"
      note={t().conversation.notAnswered}
      by={who(app, message)}
      at={null}
      action={again}
    />
  );
}

/** A message that is kept here until the server has it. */
export const OutboxRow = memo<{ item: Item }>(({ item }) => {
  const app = useApp();
  const words = t().conversation;
  if (item.refused === null && isCommand(item.text)) return <Spoken text={item.text} note={item.tries > 1 ? words.kept : null} at={null} />;
  if (item.refused === null) return <Said text={item.text} files={item.attachments} verdict={item.verdict !== undefined} status="sending" note={item.tries > 1 ? words.kept : t().state.sendingHere} at={null} />;
  return (
    <Said text={item.text} files={item.attachments} status="refused" note={t().state.notSent} at={null}>
      <div class="said-problem" role="alert">
        <p>{item.refused.message}</p>
        <div>
          <button type="button" class="b small" onClick={() => app.sending.retry(item.client_id)}>{t().common.tryAgain}</button>
          <button type="button" class="b small quiet" onClick={() => app.sending.discard(item.client_id)}>{t().common.discard}</button>
        </div>
      </div>
    </Said>
  );
});

type Drawn = { kind: "part"; part: Shown; index: number } | { kind: "calls"; calls: ToolCall[]; id: string };

/** The parts in their order, with calls that follow one another gathered. A call that asks is shown as the question, not as a tool as well. */
function gathered(parts: Shown[], calls: Map<string, ToolCall>, asks: Set<string>): Drawn[] {
  const drawn: Drawn[] = [];
  parts.forEach((part, index) => {
    if (part.type !== "call") {
      if (part.type !== "text" || part.text.trim() !== "") drawn.push({ kind: "part", part, index });
      return;
    }
    const call = calls.get(part.call_id);
    if (call === undefined || (call.outcome === null && asks.has(call.call_id))) return;
    const last = drawn[drawn.length - 1];
    if (last?.kind === "calls") last.calls.push(call);
    else drawn.push({ kind: "calls", calls: [call], id: part.id });
  });
  return drawn;
}

function Answer(props: { message: Message; running: boolean; asks: string; taken: Message[]; cuts: Message[]; turn: Turn | null }): VNode | null {
  const { message, running, taken, turn } = props;
  const partial = message.status === "partial";
  const calls = new Map(message.tool_calls?.map((call) => [call.call_id, call]));
  const parts = props.cuts.length > 0 ? withCuts(message.parts, props.cuts) : message.parts;
  const last = parts[parts.length - 1];
  const own = message.parts.map((part) => ("digest" in part ? part.digest : "")).join(" ");
  const draw = (drawn: Drawn): VNode | null => {
    if (drawn.kind === "calls") return <Calls key={drawn.id} calls={drawn.calls} running={running} own={own} />;
    const { part, index } = drawn;
    switch (part.type) {
      case "text": return <Markdown key={part.id ?? index} text={part.text} writing={partial && running && part === last} />;
      case "message": {
        const inner = taken.find((other) => other.id === part.message_id);
        return inner === undefined ? null : <MessageRow key={part.id} message={inner} running={false} waiting={false} asks="" taken={NONE} inside />;
      }
      case "call": return null;
      case "cut": return <Cut key={part.row.id} row={part.row} />;
      default: return <Attachment key={part.id ?? index} part={part} />;
    }
  };
  const drawn = gathered(parts, calls, new Set(props.asks.split("\n"))).map(draw).filter((part) => part !== null);
  if (drawn.length === 0) return null;
  return (
    <article class={partial && running ? "answer lives" : "answer"} id={`m-${message.id}`} data-testid="message" data-role="assistant" data-status={message.status} aria-label={t().conversation.answer} aria-busy={partial && running}>
      <Mark size={20} />
      <div class="answer-body" {...(partial && { "aria-live": "off" })}>
        <Thoughts turn={turn} />
        {drawn}
        {!partial && <AnswerFoot message={message} turn={turn} />}
        {turn?.failures && turn.state === "ended" && <Failures failures={turn.failures} />}
      </div>
    </article>
  );
}

/** What an interrupted attempt had said, found after another one had continued. */
function Superseded(props: { message: Message }): VNode {
  const words = t().conversation;
  return (
    <details class="folded superseded" id={`m-${props.message.id}`} data-testid="message" data-role="assistant" data-status="superseded">
      <summary><ShapeIcon shape="superseded" />{words.superseded} ({words.recovered})</summary>
      <div><Markdown text={props.message.text} /></div>
    </details>
  );
}

function AnswerFoot(props: { message: Message; turn: Turn | null }): VNode {
  const app = useApp();
  const { message, turn } = props;
  return (
    <div class="foot">
      <Time at={message.created_at} />
      {message.recovered && <span class="note" data-testid="recovered">{t().conversation.recovered}</span>}
      {message.delivery && <DeliveryLine delivery={message.delivery} />}
      {turn?.agent && !turn.usage && <span class="spent">{turn.agent}</span>}
      {turn?.usage && turn.state === "ended" && <span class="spent" data-testid="answer-cost">{[turn.agent ?? turn.model, ...used(turn.usage)].filter(Boolean).join(" · ")}</span>}
      <Acts>
        {message.turn_id !== null && <IconButton label={t().acts.whatHappened} testid="turn-details" onClick={() => app.showDetails(message.turn_id!)}><PulseIcon /></IconButton>}
        {message.text !== "" && <Copy text={message.text} label={t().acts.copyAnswer} />}
        {message.text !== "" && <IconButton label={t().acts.quote} testid="quote" onClick={() => app.quote(message.text)}><QuoteIcon /></IconButton>}
        {turn?.state === "ended" && <IconButton label={t().acts.branch} testid="branch" onClick={() => void app.branch(message)}><BranchIcon /></IconButton>}
      </Acts>
    </div>
  );
}

/** How far it has come on its way to its chat, and what can be done about it. */
function DeliveryLine(props: { delivery: Delivery }): VNode {
  const app = useApp();
  const { delivery } = props;
  const session = app.conversation.view.value?.session;
  const platform = platformName(platformOf(session?.session_key ?? ""));
  const words = t().acts;
  const waits = delivery.state === "pending" && delivery.tries > 0;
  const open = waits || delivery.state === "unknown";
  const decide = (action: "retry" | "drop" | "sent"): void => void app.operations.decideDelivery(delivery.delivery_id, action);
  return (
    <span class="delivery" data-testid="delivery" data-state={delivery.state}>
      <StateSign sign={deliverySign(delivery, platform)} />
      {delivery.error && delivery.state !== "sent" && <span>{sentence(delivery.error)}</span>}
      {waits && delivery.retry_at && <span>{words.nextTry(clock(delivery.retry_at))}</span>}
      {(open || delivery.state === "dead") && <button type="button" class="link" data-testid="send-again" onClick={() => decide("retry")}>{delivery.state === "dead" ? words.sendAgain : words.sendNow}</button>}
      {(delivery.state === "dead" || delivery.state === "unknown") && <button type="button" class="link" data-testid="arrived" onClick={() => decide("sent")}>{words.arrived}</button>}
      {open && <button type="button" class="link" data-testid="give-up" onClick={() => decide("drop")}>{words.giveUp}</button>}
    </span>
  );
}

/** What was asked, in a line. */
function asked(answers: Answers): string {
  return answers.kind === "approval" && answers.call ? visible(`${answers.call.name}: ${gist(answers.call.arguments)}`) : answers.text;
}

/** The same for every answer that took no message, so that it need not be drawn for its sake. */
const NONE: Message[] = [];

/** The messages among these that an answer took while it was written: they are read there. */
export function takenBy(answer: Message, messages: Message[]): Message[] {
  if (!answer.parts.some((part) => part.type === "message")) return NONE;
  const ids = new Set(answer.parts.flatMap((part) => (part.type === "message" ? [part.message_id] : [])));
  const found = messages.filter((message) => ids.has(message.id));
  return found.length > 0 ? found : NONE;
}

/** An interruption: what it was, and what became of it. The rule and its facts stand behind the link. */
function Cut(props: { row: Message }): VNode {
  const app = useApp();
  const { row } = props;
  const words = t().conversation;
  const { what, kept } = cutWords(row);
  return (
    <div class="cut" data-testid="interruption" data-state={row.state} data-rule={row.rule ?? undefined}>
      <ShapeIcon shape="interrupted" />
      <p><b>{what}.</b> {kept} <Time at={row.created_at} seconds /></p>
      {row.state === "recovering" && <p class="then" data-testid="looked-for">{words.lookedFor(row.tries ?? 0, clock(row.first_seen ?? row.created_at))}</p>}
      {row.decision && (
        <p class="then">
          <span data-testid="decision" title={row.decision}>{decided(row)}</span>{" "}
          {row.turn_id !== null && <button type="button" class="link" data-testid="what-happened" onClick={() => app.showDetails(row.turn_id!)}>{words.what}</button>}
        </p>
      )}
    </div>
  );
}

/** `request`: what can be asked for again. */
export const TurnEnd = memo<{ turn: Turn; request: Message | null }>(({ turn, request }) => {
  const app = useApp();
  const [asking, setAsking] = useState(false);
  const again = async (): Promise<void> => {
    setAsking(true);
    setAsking(await app.again(request!)); // It stays so once that is sent: the next turn takes the button away.
  };
  const end = turnEnd(turn);
  if (end === null) return <></>;
  return (
    <div class={`turn-end ${end.tone}`} data-testid="turn-end" data-outcome={turn.outcome ?? undefined}>
      <p>{end.text}</p>
      {request !== null && <button type="button" class="b small" data-testid="retry" disabled={asking} onClick={() => void again()}><RetryIcon />{t().acts.retry}</button>}
    </div>
  );
});

function Thoughts(props: { turn: Turn | null }): VNode | null {
  const text = props.turn?.thoughts?.map((thought) => thought.text).join("\n\n");
  return text ? <details class="folded" data-testid="thoughts"><summary>{t().conversation.thoughts}</summary><p tabIndex={0} dir="auto">{text}</p></details> : null;
}

/** Behind an answer: how often its models had to be asked again, and why. */
function Failures(props: { failures: ModelFailure[] }): VNode {
  return (
    <details class="folded" data-testid="model-failures">
      <summary>{t().conversation.failures(props.failures.length)}</summary>
      <ul>{props.failures.map((failure, index) => <li key={index}>{failedRequest(failure)} <Time at={failure.at} /></li>)}</ul>
    </details>
  );
}

/** A request to a model failed, and nothing has come since. */
export function Failing(props: { failure: ModelFailure }): VNode {
  const now = useNow(props.failure.retry_at !== null);
  return <p class="failing" role="status" data-testid="asking-again">{askingAgain(props.failure, now)}</p>;
}

export function Working(props: { turn: Turn | null; word: string }): VNode {
  return (
    <div class="answer bare">
      <Mark size={20} />
      <p class="working-word"><span class="dots" aria-hidden="true"><i /><i /><i /></span>{props.word}</p>
      <Thoughts turn={props.turn} />
    </div>
  );
}
