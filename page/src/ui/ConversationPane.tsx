import type { ComponentChildren, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { requestOf } from "../answers";
import { grouped } from "../groups";
import { t } from "../i18n";
import { type Item, shownAlready } from "../outbox";
import type { Sent } from "../sending";
import { isWaiting, liveTurn, openTurn, reading, type View } from "../log";
import type { Message, Turn } from "../types";
import { turnEnd } from "../words";
import { DownIcon, Mark } from "./icons";
import { Near } from "./Markdown";
import { Failing, MessageRow, OutboxRow, SentRow, takenBy, TurnEnd, Working } from "./Messages";
import { Approvals } from "./ApprovalCard";
import { QuestionCard } from "./QuestionCard";
import { memo, sameProps, useApp } from "./shared";
import { Welcome } from "./Welcome";

const NOTHING: Message[] = [];

export function ConversationPane(): VNode {
  const app = useApp();
  const name = app.openName;
  const view = app.conversation.view.value;
  const items = app.sending.items.value.filter((item) => item.conversation === name);
  const sent = app.sending.sent.value.filter((other) => other.session_id === name && !view?.session.messages.some((message) => message.id === other.message_id));
  const is_open = app.route.value.session !== null;
  useSought(view);

  if (app.route.value.nowhere) return <Nowhere what={t().conversation.noPage} why={t().conversation.noPageWhy} />;
  if (app.conversation.missing.value) return <Nowhere what={t().conversation.noSession} why={t().conversation.noSessionWhy} />;
  if (is_open && view === null) return <Scroll key={name}><Loading /><OnTheirWay items={items} sent={sent} view={null} /></Scroll>;
  const empty = items.length === 0 && sent.length === 0 && (view === null || (view.session.messages.length === 0 && view.session.turns.length === 0));
  if (empty) return <Scroll key={name}><Welcome /></Scroll>;
  return (
    <Scroll key={name}>
      {view && <Rows view={view} />}
      <OnTheirWay items={items} sent={sent} view={view} />
    </Scroll>
  );
}

function Rows(props: { view: View }): VNode {
  const { session, failing } = props.view;
  const { settled, waiting } = reading(session.messages);
  const known = useRef<ReadonlySet<string>>(new Set());
  const app = useApp();
  const words = t().conversation;
  const away = app.connection.away.value;
  const open = openTurn(session);
  const last = settled[settled.length - 1];
  const ending = last?.parts[last.parts.length - 1]?.type;
  const writes = last?.role === "assistant" && last.turn_id === open?.id && (ending === "text" || last.tool_calls?.some((call) => call.outcome === null));
  const waits = open?.state === "waiting" && session.questions.length > 0;
  const works = liveTurn(session) !== null && !waits && !writes;
  const taken = new Map(settled.filter((message) => message.role === "assistant").map((message) => [message.id, takenBy(message, settled)]));
  const cuts = cutsOf(settled);
  const inside = new Set<string>();
  for (const messages of [...taken.values(), ...cuts.values()]) for (const message of messages) inside.add(message.id);
  const turns = new Map(session.turns.map((turn) => [turn.id, turn]));
  const answers_now = settled.some((message) => message.role === "assistant" && message.turn_id === open?.id && message.parts.length > 0);
  const asks = session.questions.map((question) => question.call_id).join("\n");
  // Whether the strand that the cards hang on begins above them: a call that only asks is drawn as its card.
  const begun = last?.role === "assistant" && last.turn_id === open?.id && last.parts.some((part) => part.type !== "call" || !session.questions.some((question) => question.call_id === part.call_id));
  const newest = session.turns[session.turns.length - 1];
  const lineOf = (row: Row): Line => {
    if ("turn" in row) return { key: `${row.turn.id}.end`, turn: row.turn, request: row.turn === newest && open === null ? requestOf(settled, row.turn) : null };
    const { message } = row;
    const is_open = open !== null && message.turn_id === open.id;
    return {
      key: message.id, message, running: is_open && open.state === "running" && !away, asks: is_open ? asks : "", taken: taken.get(message.id) ?? NOTHING,
      cuts: message.role === "assistant" ? (cuts.get(message.turn_id!) ?? NOTHING) : NOTHING, turn: message.role === "assistant" ? (turns.get(message.turn_id!) ?? null) : null,
    };
  };
  const { groups, plain } = grouped(rows(settled.filter((message) => !inside.has(message.id)), session.turns).map(lineOf), known.current);
  known.current = new Set(groups.map((lines) => lines[0]!.key));
  return (
    <>
      {session.earlier && <Earlier />}
      {groups.map((lines) => <Group key={`group.${lines[0]!.key}`} lines={lines} />)}
      {plain.map(drawn)}
      {works && open && <Working word={away ? words.unknownAway : open.state === "interrupted" ? words.recovering : words.working} turn={answers_now ? null : open} />}
      {failing && open && !away && <Failing failure={failing} />}
      {session.questions.length > 0 && (
        <div class={begun ? "answer asking begun" : "answer asking"} data-testid="asking">
          {!begun && <Mark size={20} />}
          <Approvals questions={session.questions.filter((question) => question.kind === "approval")} />
          {session.questions.filter((question) => question.kind !== "approval").map((question) => <QuestionCard key={question.question_id} question={question} />)}
        </div>
      )}
      {waiting.map((message) => <MessageRow key={message.id} message={message} running={false} waiting={isWaiting(message)} asks="" taken={NOTHING} />)}
    </>
  );
}

/** What a row is drawn with. */
type Line =
  | { key: string; message: Message; running: boolean; asks: string; taken: Message[]; cuts: Message[]; turn: Turn | null }
  | { key: string; turn: Turn; request: Message | null };

function drawn({ key, ...line }: Line): VNode {
  return "message" in line ? <MessageRow key={key} {...line} waiting={false} /> : <TurnEnd key={key} {...line} />;
}

/** So far from what is seen a group is read: before anybody gets there. */
const NEAR = "1500px 0px";

/** A group of older messages. It is laid out when it is seen and read when it comes near, and stays so. */
const Group = memo<{ lines: Line[] }>((props) => {
  const [near, setNear] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) setNear(true);
    }, { root: box.current!.closest(".scroll"), rootMargin: NEAR });
    seen.observe(box.current!);
    return () => seen.disconnect();
  }, []);
  return <div class="group" ref={box} data-near={near}><Near.Provider value={near}>{props.lines.map(drawn)}</Near.Provider></div>;
}, (before, after) => before.lines.length === after.lines.length && before.lines.every((line, index) => sameProps(line, after.lines[index]!)));

/** Fetches the page before: when it comes into view, or when it is pressed. What is being read stays where it is. */
function Earlier(): VNode {
  const app = useApp();
  const [busy, setBusy] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const load = async (): Promise<void> => {
    const box = button.current?.closest(".scroll");
    const below = box ? box.scrollHeight - box.scrollTop : 0;
    setBusy(true);
    await app.conversation.earlier();
    setBusy(false);
    requestAnimationFrame(() => {
      // Unless somebody was led to a message meanwhile.
      if (box && box.scrollTop < 400 && app.sought.value === null && !box.querySelector(".found")) box.scrollTop = box.scrollHeight - below;
    });
  };
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => {
      const box = button.current?.closest(".scroll");
      // Only who has scrolled up wants more: a short page would fetch everything.
      if (entries.some((entry) => entry.isIntersecting) && box && box.scrollHeight > box.clientHeight * 2) void load();
    });
    seen.observe(button.current!);
    return () => seen.disconnect();
  }, []);
  return <button type="button" class="b small earlier" data-testid="earlier" ref={button} disabled={busy} onClick={() => void load()}>{t().conversation.earlier}</button>;
}

/** Brings a message into view that somebody looks for, once it is there. */
function useSought(view: View | null): void {
  const app = useApp();
  const sought = app.sought.value;
  useEffect(() => {
    if (sought === null || view === null) return;
    const element = document.getElementById(`m-${sought}`);
    if (element === null) {
      if (!view.session.earlier) app.sought.value = null;
      else void app.conversation.earlier().then((came) => { if (!came) app.lost(sought); });
      return;
    }
    app.sought.value = null;
    // What was skipped has to be laid out before its place is known.
    requestAnimationFrame(() => {
      element.scrollIntoView({ block: "center" });
      element.classList.add("found");
      setTimeout(() => element.classList.remove("found"), 3000);
    });
  }, [sought, view]);
}

type Row = { message: Message } | { turn: Turn };

/** The messages, and after the last of each turn how the turn ended, where that needs saying. */
function rows(messages: Message[], turns: Turn[]): Row[] {
  const ends = new Map(turns.filter((turn) => turnEnd(turn) !== null).map((turn) => [turn.id, turn]));
  if (ends.size === 0) return messages.map((message) => ({ message }));
  const last = new Map(messages.map((message, index) => [message.turn_id, index]));
  return messages.flatMap((message, index) => {
    const turn = message.turn_id !== null && last.get(message.turn_id) === index ? ends.get(message.turn_id) : undefined;
    return turn ? [{ message }, { turn }] : [{ message }];
  });
}

/** Kept from one drawing to the next, so that an answer that did not change is not drawn again for their sake. */
const cutsBefore = new Map<string, Message[]>();
const NO_CUTS: Map<string, Message[]> = new Map();

/** The interruptions that are drawn within an answer, where they happened: of an answer that continued after it had something to show. */
function cutsOf(messages: Message[]): Map<string, Message[]> {
  if (!messages.some((message) => message.role === "interruption")) return NO_CUTS;
  const answered = new Set(messages.filter((message) => message.role === "assistant" && message.parts.length > 0).map((message) => message.turn_id));
  const found = new Map<string, Message[]>();
  for (const message of messages) {
    if (message.role !== "interruption" || !message.attempt || message.turn_id === null) continue;
    if ((message.written || message.step) && answered.has(message.turn_id)) found.set(message.turn_id, [...(found.get(message.turn_id) ?? []), message]);
  }
  for (const [turn, rows] of found) {
    const before = cutsBefore.get(turn);
    if (before?.length === rows.length && before.every((row, index) => row === rows[index])) found.set(turn, before);
    else cutsBefore.set(turn, rows);
  }
  return found;
}

/** What the server has not shown yet. An item whose message the stream shows already (its acknowledgement is late) is not drawn twice. */
function OnTheirWay(props: { items: Item[]; sent: Sent[]; view: View | null }): VNode {
  const app = useApp();
  const arrived = shownAlready(props.items, props.view?.session.messages ?? [], app.sending.acknowledged, props.view?.named ?? new Map());
  return (
    <>
      {props.sent.map((sent) => <SentRow key={sent.client_id} text={sent.text} files={sent.attachments} />)}
      {props.items.filter((item) => !arrived.has(item.client_id)).map((item) => <OutboxRow key={item.client_id} item={item} />)}
    </>
  );
}

function Loading(): VNode {
  return <div class="loading" role="status"><span class="sr-only">{t().conversation.loading}</span><i /><i /><i /></div>;
}

function Nowhere(props: { what: string; why: string }): VNode {
  const app = useApp();
  return (
    <div class="scroll">
      <div class="welcome">
        <h2>{props.what}</h2>
        <p>{props.why}</p>
        <button type="button" class="b kelp" onClick={() => app.go(null)}>{t().conversation.startNew}</button>
      </div>
    </div>
  );
}

/** The scrolling part. It stays at the end while the reader is there and leaves a reader who went up in peace, until they say something. */
function Scroll(props: { children: ComponentChildren }): VNode {
  const app = useApp();
  const spoken = app.spoken.value;
  const sought = app.sought.value;
  const box = useRef<HTMLDivElement>(null);
  const inside = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const [away, setAway] = useState(false);
  const toEnd = (): void => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  const scrolled = (): void => {
    if (box.current === null) return; // An event that comes after the view has changed.
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    stuck.current = scrollHeight - scrollTop - clientHeight < 60;
    setAway(!stuck.current);
  };
  useLayoutEffect(() => {
    stuck.current = true;
    toEnd();
  }, [spoken]);
  // Who looks for a message does not want to be taken to the end.
  useLayoutEffect(() => {
    if (sought !== null) stuck.current = false;
  }, [sought]);
  useEffect(() => {
    const grown = new ResizeObserver(() => {
      if (stuck.current && app.sought.value === null && !box.current?.querySelector(".found")) toEnd();
    });
    grown.observe(inside.current!);
    grown.observe(box.current!);
    return () => grown.disconnect();
  }, []);
  return (
    <div class="scroll-frame">
      <div class="scroll" ref={box} onScroll={scrolled}>
        <div class="rows" ref={inside} role="log" aria-label={t().conversation.messages} aria-live="polite" aria-relevant="additions">{props.children}</div>
      </div>
      {away && (
        <button type="button" class="to-end" onClick={() => { stuck.current = true; toEnd(); }} aria-label={t().conversation.toEnd} title={t().conversation.toEnd}><DownIcon /></button>
      )}
    </div>
  );
}
