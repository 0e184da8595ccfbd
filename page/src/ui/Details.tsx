/** A turn, next to its conversation: as a picture, as a story with its reasons, its calls, what it used, its records. */

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { locale, t } from "../i18n";
import { axis, type Considered, type Happening, picture, type Picture, story, type TurnRecord } from "../spans";
import type { Session, Turn } from "../types";
import { clock, duration, interruptedBy, moment, platformOf, price, turnSign, visible, type Shape } from "../words";
import { gist } from "./Calls";
import { CloseIcon, ShapeIcon, StateSign } from "./icons";
import { IconButton, useApp, useNow } from "./shared";

type Tab = "what" | "calls" | "usage" | "log";
const TABS: readonly Tab[] = ["what", "calls", "usage", "log"];

export function Details(props: { sheet: boolean }): VNode | null {
  const app = useApp();
  const session = app.conversation.view.value?.session;
  const wanted = app.details.value;
  const turn = session && (wanted === "newest" ? session.turns[session.turns.length - 1] : session.turns.find((each) => each.id === wanted));
  if (!session || !turn) return null;
  return <Panel key={turn.id} session={session} turn={turn} sheet={props.sheet} />;
}

/** The records of a turn, read again whenever something of it is on record. */
function useRecords(session: Session, turn: Turn): { records: TurnRecord[] | null; away: boolean } {
  const app = useApp();
  const [records, setRecords] = useState<TurnRecord[] | null>(null);
  const [failed, setFailed] = useState(false);
  const answer = session.messages.findLast((message) => message.role === "assistant" && message.turn_id === turn.id);
  const calls = answer?.tool_calls?.map((call) => call.outcome ?? "-").join("") ?? "";
  const key = [turn.id, turn.state, turn.attempt, turn.steps, calls, session.questions.length, app.connection.state.value].join("|");
  useEffect(() => {
    let over = false;
    app.api.turn(session.session_id, turn.id).then(
      (found) => { if (!over) { setRecords(found.events); setFailed(false); } },
      () => { if (!over) setFailed(true); },
    );
    return () => { over = true; };
  }, [key]);
  return { records, away: failed };
}

function Panel(props: { session: Session; turn: Turn; sheet: boolean }): VNode {
  const app = useApp();
  const { session, turn } = props;
  const words = t().details;
  const [tab, setTab] = useState<Tab>("what");
  const { records, away } = useRecords(session, turn);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    if (props.sheet) panel.current?.querySelector<HTMLElement>("button")?.focus();
  }, []);
  const calls = records?.filter((record) => record.name === "tool.started").length ?? 0;
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]!;
    setTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <aside class={props.sheet ? "details sheet" : "details"} aria-label={words.label(turn.generation)} data-testid="details" ref={panel}>
      <div class="details-head">
        <h2>{words.label(turn.generation)}</h2>
        <StateSign sign={turnSign(turn, session.questions.some((question) => question.turn_id === turn.id))} pill />
        <span class="grow" />
        <IconButton label={t().common.close} testid="close-details" onClick={() => app.closeDetails()}><CloseIcon /></IconButton>
      </div>
      <div class="tabs" role="tablist" aria-label={words.label(turn.generation)} onKeyDown={move}>
        {TABS.map((name) => (
          <button key={name} type="button" role="tab" id={`tab-${name}`} aria-selected={tab === name} aria-controls="details-body" tabIndex={tab === name ? 0 : -1} onClick={() => setTab(name)}>
            {words.tabs[name]}{name === "calls" && calls > 0 ? ` ${calls}` : ""}
          </button>
        ))}
      </div>
      <div class="details-body" id="details-body" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {records === null ? <p class="dim">{away ? words.away : words.loading}</p>
          : tab === "what" ? <What session={session} turn={turn} records={records} />
          : tab === "calls" ? <CallList records={records} />
          : tab === "usage" ? <Used turn={turn} />
          : <Records records={records} />}
      </div>
    </aside>
  );
}

function What(props: { session: Session; turn: Turn; records: TurnRecord[] }): VNode {
  const { turn, records } = props;
  const open = turn.state !== "ended";
  const now = useNow(open && turn.state !== "waiting");
  const made = picture(records, now);
  return (
    <>
      <p class="sum" data-testid="turn-summary">{summary(made, records, turn, props.session)}</p>
      <PictureView made={made} chat={platformOf(props.session.session_key) !== "web"} />
      <ol class="story" data-testid="story">{story(records).map((happening, index, all) => <Event key={index} happening={happening} before={all[index - 1]} />)}</ol>
    </>
  );
}

function summary(made: Picture, records: TurnRecord[], turn: Turn, session: Session): string {
  const words = t().details;
  const idle = [...made.gaps, ...made.waits].reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const busy = duration(Math.max(0, made.to - made.from - idle));
  const said = [made.open && turn.state === "running" ? words.runs(busy, made.attempts.length) : words.ran(busy, made.attempts.length)];
  const cuts = records.filter((record) => record.name === "turn.interrupted");
  const gap = duration(made.gaps.reduce((sum, each) => sum + each.to - each.from, 0));
  const reason = interruptedBy(String(cuts[cuts.length - 1]?.data.reason ?? ""));
  if (cuts.length === 1) said.push(turn.state === "interrupted" || (turn.outcome === "set_aside" && made.attempts.length === 1) ? words.cutOpen(reason) : words.cutOnce(reason, gap));
  if (cuts.length > 1) said.push(words.cutOften(cuts.length, gap));
  if (turn.state === "waiting" && session.questions.some((question) => question.turn_id === turn.id)) said.push(words.waitsNow);
  return said.join(" ");
}

const WIDTH = 352;
const LEFT = 56;
const RIGHT = 342;

function PictureView(props: { made: Picture; chat: boolean }): VNode {
  const { made } = props;
  const words = t().details;
  const { place, breaks, ticks } = axis(made, RIGHT - LEFT);
  const x = (at: number): number => Math.round((LEFT + place(at)) * 10) / 10;
  const wide = (from: number, to: number): number => Math.max(1.5, x(to) - x(from));
  const middle = (span: { from: number; to: number }): number => (x(span.from) + x(span.to)) / 2;
  // A lane in which nothing is would only take room.
  const tools = made.tools.length > 0;
  const height = 102 + (tools ? 28 : 0) + (props.chat ? 28 : 0);
  const last = height - 41; // Of the delivery.
  const second = (at: number): string => new Date(at).toLocaleTimeString(locale(), { minute: "2-digit", second: "2-digit" });
  const iso = (at: number): string => new Date(at).toISOString();
  const known = new Set(made.processes.map((span) => span.label)).size;
  const label = words.pictureLabel(clock(iso(made.from), true), clock(iso(made.to), true), made.attempts.length, made.tools.length, made.gaps.length, known);
  return (
    <figure class="pic">
      <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={label}>
        <defs><pattern id="nobody" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" class="f-amber-soft" /><rect width="2" height="5" class="f-amber" /></pattern></defs>
        {ticks.map((at, index) => <><path class="g" d={`M${x(at)} 18V${height - 20}`} />{(index === 0 || second(at) !== second(ticks[index - 1]!)) && <text x={x(at)} y="11" text-anchor="middle">{second(at)}</text>}</>)}
        <text x="0" y="34" class="strong">{words.lanes.process}</text>
        {made.processes.map((span) => (
          <>
            <rect data-testid="process-span" x={x(span.from)} y="25" width={wide(span.from, span.to)} height="11" rx="2.5" class={span.tone === "past" ? "f-faint" : "f-kelp-soft"} />
            {wide(span.from, span.to) > span.label.length * 6.5 + 4 && <text x={middle(span)} y="34" text-anchor="middle" class="strong">{span.label}</text>}
          </>
        ))}
        {made.gaps.map((gap) => <rect data-testid="nobody" x={x(gap.from)} y="20" width={wide(gap.from, gap.to)} height={height - 40} fill="url(#nobody)" opacity=".85" />)}
        <text x="0" y="61" class="strong">{words.lanes.attempt}</text>
        {made.attempts.map((span) => (
          <>
            <rect x={x(span.from)} y="51" width={wide(span.from, span.to)} height="14" rx="2.5" class="f-kelp" />
            {wide(span.from, span.to) > 14 && <text x={middle(span)} y="61.5" text-anchor="middle" class="t-on">{span.label}</text>}
          </>
        ))}
        {made.waits.map((wait) => <><rect x={x(wait.from)} y="51" width={wide(wait.from, wait.to)} height="14" rx="4" fill="none" class="s-amber" stroke-width="1.4" stroke-dasharray="3 2.4" /><path d={`M${x(wait.from) + Math.min(10, wide(wait.from, wait.to) / 2)} 53.6l4.4 4.4-4.4 4.4-4.4-4.4Z`} class="f-amber" /></>)}
        {tools && <text x="0" y="90" class="strong">{words.lanes.tools}</text>}
        {made.tools.map((span) => span.tone === "unknown"
          ? <rect x={x(span.from)} y="80" width={Math.max(5, wide(span.from, span.to))} height="14" rx="2" fill="none" class="s-amber" stroke-width="1.5" stroke-dasharray="2.4 1.8" />
          : <><rect x={x(span.from)} y="80" width={Math.max(2.5, wide(span.from, span.to))} height="14" rx="2.5" class={span.tone === "failed" ? "f-red" : "f-deep"} />{wide(span.from, span.to) > span.label.length * 6 + 6 && <text x={middle(span)} y="90.5" text-anchor="middle" class="t-on">{span.label}</text>}</>)}
        {props.chat && (
          <>
            <text x="0" y={last + 4} class="strong">{words.lanes.delivery}</text>
            <path d={`M${LEFT} ${last}H${RIGHT}`} class="s-faint" stroke-width="1.2" stroke-dasharray="1.5 4" stroke-linecap="round" />
            {made.delivery.map((each) => <circle data-testid="delivery-mark" cx={x(each.at)} cy={last} r="3.6" class={each.state === "sent" ? "f-kelp" : each.state === "unknown" ? "f-amber" : each.state === "dead" ? "f-red" : "f-paper s-faint"} stroke-width="1.4" />)}
          </>
        )}
        {breaks.map((at) => <><path d={`M${LEFT + at} 20l-2.4 ${(height - 40) / 3} 4 ${(height - 40) / 3} -2 ${(height - 40) / 3}`} fill="none" class="s-paper" stroke-width="5" /><path d={`M${LEFT + at - 2.6} 20l-2.4 ${(height - 40) / 3} 4 ${(height - 40) / 3} -2 ${(height - 40) / 3}M${LEFT + at + 2.6} 20l-2.4 ${(height - 40) / 3} 4 ${(height - 40) / 3} -2 ${(height - 40) / 3}`} fill="none" class="s-faint" stroke-width=".9" /></>)}
        <text x={LEFT} y={height - 4}>{clock(new Date(made.from).toISOString())}</text>
        {made.gaps.slice(-1).map((gap) => <text x={Math.min(RIGHT - 40, Math.max(LEFT + 70, (x(gap.from) + x(gap.to)) / 2))} y={height - 4} text-anchor="middle" class="t-amber">{duration(gap.to - gap.from)}</text>)}
        {made.waits.slice(-1).map((wait) => <text x={Math.min(RIGHT - 20, Math.max(LEFT + 70, middle(wait)))} y={height - 4} text-anchor="middle" class="t-amber">{duration(wait.to - wait.from)}</text>)}
      </svg>
      <div class="legend" aria-hidden="true"><span><i class="l-kelp" />{words.legend.writes}</span><span><i class="l-deep" />{words.legend.tool}</span><span><i class="l-gap" />{words.legend.gap}</span><span><i class="l-waits" />{words.legend.waits}</span></div>
    </figure>
  );
}

function Event(props: { happening: Happening; before: Happening | undefined }): VNode {
  const { happening, before } = props;
  const { shape, tone, body } = told(happening);
  const minute = (at: number): string => clock(new Date(at).toISOString());
  const date = new Date(happening.at);
  const second = `${String(date.getSeconds()).padStart(2, "0")}.${Math.floor(date.getMilliseconds() / 100)}`;
  const stamp = before && minute(before.at) === minute(happening.at) ? `:${second}` : `${minute(happening.at)}:${second}`;
  return (
    <li class={happening.kind === "interrupted" ? "ev broken" : "ev"} data-kind={happening.kind}>
      <time class="num" dateTime={new Date(happening.at).toISOString()} title={moment(new Date(happening.at).toISOString())}>{stamp}</time>
      <div><span class={`k ${tone}`}><ShapeIcon shape={shape} /></span>{body}</div>
    </li>
  );
}

function told(it: Happening): { shape: Shape; tone: string; body: ComponentChildren } {
  const words = t().details;
  const n = (value: number): string => value.toLocaleString(locale());
  switch (it.kind) {
    case "started": return { shape: "running", tone: "kelp", body: <p><b>{words.started(it.attempt)}</b>{it.pid && `, ${words.inProcess(it.pid)}`}</p> };
    case "call": {
      const end = it.outcome === null ? words.call.running : it.outcome === "unknown" ? words.call.unknown : it.outcome === "failed" ? words.call.failed(duration(it.ms ?? 0)) : words.call.done(duration(it.ms ?? 0));
      return { shape: it.outcome === "unknown" ? "unknown" : it.outcome === "failed" ? "failed" : "tool", tone: it.outcome === "unknown" ? "amber" : it.outcome === "failed" ? "red" : "deep", body: <p><b>{visible(it.name)}</b> <code>{visible(gist(it.arguments)).slice(0, 80)}</code>, {end}</p> };
    }
    case "responded": return { shape: "done", tone: "kelp", body: <><p><b>{words.responded(it.model)}</b></p>{it.input + it.output > 0 && <p>{words.tokens(n(it.input), n(it.output))}</p>}</> };
    case "failed-request": return { shape: "failed", tone: "amber", body: <><p><b>{words.failedRequest(it.model)}</b></p><p>{it.why}</p></> };
    case "interrupted": return { shape: "interrupted", tone: "amber", body: <><p class="amber"><b>{words.interrupted(interruptedBy(it.reason))}.</b></p><p>{words.kept(n(it.written), it.results)}</p></> };
    case "resumed": return { shape: "resumed", tone: "kelp", body: <><p><b class="kelp">{words.resumed(it.attempt)}</b>{it.pid && `, ${words.inProcess(it.pid)}`}</p><Why rule={it.rule} why={it.why} considered={it.considered} /><p>{words.notRepeated}</p></> };
    case "left": return { shape: "suspended", tone: "amber", body: <><p><b>{words.left}</b></p><Why rule={it.rule} why={it.why} considered={it.considered} /></> };
    case "asked": return { shape: "waiting", tone: "amber", body: <><p class="amber"><b>{words.asked[it.form] ?? words.asked.question}</b></p><p>{it.call ? <><b>{visible(it.call.name)}</b> <code>{visible(gist(it.call.arguments)).slice(0, 160)}</code></> : visible(it.text.split("\n", 1)[0]!.slice(0, 160))}</p><p>{words.askedNote}</p></> };
    case "answered": return { shape: "accepted", tone: "kelp", body: <p><b>{words.answered[it.verdict ?? ""] ?? words.answered.other}</b>{it.by && `, ${it.by === "owner" ? t().conversation.byYou : it.by}`}</p> };
    case "closed": return { shape: "suspended", tone: "", body: <p><b>{words.closed}</b>{it.why && `: ${it.why}`}</p> };
    case "written": return { shape: "done", tone: "kelp", body: <p><b>{words.written(n(it.characters))}</b></p> };
    case "delivery": return { shape: it.state === "sent" ? "delivered" : it.state === "unknown" ? "unknown" : it.state === "dead" ? "failed" : "queued", tone: it.state === "sent" ? "kelp" : it.state === "unknown" ? "amber" : it.state === "dead" ? "red" : "", body: <p>{words.delivery[it.state] ?? it.state}</p> };
    case "stop": return { shape: "suspended", tone: "", body: <p><b>{words.stop}</b></p> };
    case "ended": return { shape: it.outcome === "completed" ? "done" : it.outcome === "failed" ? "failed" : "suspended", tone: it.outcome === "completed" ? "kelp" : it.outcome === "failed" ? "red" : "", body: <><p><b>{words.ended[it.outcome] ?? it.outcome}</b></p>{it.error && <p>{it.error}</p>}{it.rule && <Why rule={it.rule} why={it.why} considered={it.considered} />}</> };
  }
}

/** The rules in their order, a line each, up to the one that decided; the facts they looked at, where these are on record, for who wants them. */
function Why(props: { rule: string; why: string | null; considered: Considered[] }): VNode {
  const words = t().details;
  const says = new Map(words.rules);
  const at = words.rules.findIndex(([label]) => label === props.rule);
  const looked = props.considered.length > 0 ? props.considered : words.rules.slice(0, at + 1).map(([rule], index) => ({ rule, fact: "", applies: index === at }));
  const [facts, setFacts] = useState(false);
  if (looked.length === 0 && !props.why) return <></>;
  const more = looked.some(({ fact, applies }) => fact && !applies);
  return (
    <div class={facts ? "why facts-shown" : "why"} data-testid="why">
      <ul>
        {looked.map((each, index) => {
          const { rule, fact, applies } = each;
          // A rule that looked at several facts is one line.
          return <li key={index} class={applies ? "hit" : ""} hidden={!facts && !applies && looked[index - 1]?.rule === rule}><span>{rule}</span><span>{says.get(rule) ?? rule}{fact && <i data-testid="fact" hidden={!facts && !applies}>{worded(each)}</i>}</span><span>{applies ? words.applies : words.no}</span></li>;
        })}
      </ul>
      {more && <button type="button" class="link" data-testid="facts" aria-expanded={facts} onClick={() => setFacts(!facts)}>{facts ? words.hideFacts : words.showFacts}</button>}
      {props.why && (locale() === "en" || !props.considered.some((each) => each.known_as)) && <p>{props.why}</p>}
    </div>
  );
}

/** A fact in the language of the page; one that an older version has on record, in the words it has. */
function worded(looked: Considered): string {
  const said = t().details.facts[looked.known_as ?? ""];
  return said ? said(looked.numbers ?? [], duration) : looked.fact;
}

function CallList(props: { records: TurnRecord[] }): VNode {
  const calls = story(props.records).filter((each) => each.kind === "call");
  if (calls.length === 0) return <p class="dim">{t().details.noCalls}</p>;
  return (
    <ol class="call-list">
      {calls.map((call, index) => {
        const { shape, tone } = told(call);
        return <li key={index}><span class={`k ${tone}`}><ShapeIcon shape={shape} /></span><div><p><b>{visible(call.name)}</b> <span class="dim num">{call.ms === null ? t().details.call.running : duration(call.ms)}</span></p><pre tabIndex={0} dir="ltr">{visible(JSON.stringify(call.arguments, null, 2) ?? "")}</pre></div></li>;
      })}
    </ol>
  );
}

function Used(props: { turn: Turn }): VNode {
  const words = t().details;
  const { responses, usage } = props.turn;
  if (!responses || !usage) return <p class="dim">{words.noUsage}</p>;
  const n = (value: number): string => value.toLocaleString(locale());
  return (
    <table class="tb">
      <thead><tr><th>{words.response}</th><th class="r">{words.input}</th><th class="r">{words.output}</th><th class="r">{words.cost}</th></tr></thead>
      <tbody>
        {responses.map((each) => <tr key={each.step}><td>{each.step + 1} · {each.model}</td><td class="r">{n(each.input)}</td><td class="r">{n(each.output)}</td><td class="r">{each.cost === null ? "–" : price(each.cost)}</td></tr>)}
        <tr class="total"><td>{words.total}</td><td class="r">{n(usage.input)}</td><td class="r">{n(usage.output)}</td><td class="r">{usage.cost === null ? "–" : price(usage.cost)}</td></tr>
      </tbody>
    </table>
  );
}

function Records(props: { records: TurnRecord[] }): VNode {
  return (
    <ol class="records">
      {props.records.map((record, index) => {
        const { at, turn_id: _, ...rest } = record.data;
        return <li key={index}><details><summary><time class="num">{clock(String(at), true)}</time> <b>{record.name}</b></summary><pre tabIndex={0} dir="ltr">{visible(JSON.stringify(rest, null, 2))}</pre></details></li>;
      })}
    </ol>
  );
}

