/** The operator's view: how the gateway is, what runs, who is waited for, how the last hours went. */

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { locale, t } from "../i18n";
import type { AttentionItem, Status, Timeline, WorkingTurn } from "../types";
import { clock, duration, moment, platformName, platformOf, price, titleOf, visible, when, type Shape } from "../words";
import { AwayBar, SafeModeBanner } from "./Bars";
import { useGate } from "./Gate";
import { MenuIcon, PauseIcon, PlatformIcon, PlayIcon, RestartIcon, ShapeIcon, StateSign, StopIcon } from "./icons";
import { useDialog } from "./Keys";
import { IconButton, plainClick, useApp, useNow } from "./shared";

export function Operations(): VNode {
  const app = useApp();
  useEffect(() => app.operations.look(), []);
  return (
    <>
      <AwayBar />
      <SafeModeBanner />
      <div class="ops" data-testid="operations">
        <State />
        <Figures />
        <Day />
        <div class="two"><Running /><Needs /></div>
        <div class="two"><Boxes /><Usage /></div>
        <div class="two"><Log /><Rules /></div>
      </div>
    </>
  );
}

function Card(props: { title: string; sub?: string; right?: ComponentChildren; children: ComponentChildren; testid: string }): VNode {
  return (
    <section class="card" aria-label={props.title} data-testid={props.testid}>
      <header><h2>{props.title}</h2>{props.sub && <span class="dim">{props.sub}</span>}{props.right && <span class="right">{props.right}</span>}</header>
      {props.children}
    </section>
  );
}

function Empty(props: { children: ComponentChildren }): VNode {
  return <p class="empty">{props.children}</p>;
}

type Action = "pause" | "restart" | "stop";

/** The state as a sentence, and what can be done to it. What interrupts somebody asks first and says what it costs. */
function State(): VNode {
  const app = useApp();
  const words = t().ops;
  const sign = useGate();
  const status = app.safeMode.status.value;
  const [asking, setAsking] = useState<Action | null>(null);
  const [busy, setBusy] = useState(false);
  const act = async (what: Action | "unpause"): Promise<void> => {
    setBusy(true);
    await app.administer(what);
    setBusy(false);
  };
  const off = busy || status === null || app.connection.away.value;
  return (
    <div class="gatebar">
      <IconButton label={t().list.show} class="drawer-open" testid="show-list" onClick={() => app.showList()}><MenuIcon /></IconButton>
      <div>
        <h1><span class={`st ${sign.tone}`}><ShapeIcon shape={sign.shape} /></span>{sign.text}</h1>
        <p class="sub" data-testid="state-sentence">{status && sentence(status, app.operations.timeline.value)}</p>
      </div>
      <div class="acts-bar">
        {status?.gateway_state === "paused"
          ? <button type="button" class="b" data-testid="unpause" disabled={off} onClick={() => void act("unpause")}><PlayIcon />{words.unpause}</button>
          : <button type="button" class="b" data-testid="pause" disabled={off} onClick={() => setAsking("pause")}><PauseIcon />{words.pause}</button>}
        <button type="button" class="b" data-testid="restart" disabled={off} onClick={() => setAsking("restart")}><RestartIcon />{words.restart}</button>
        <button type="button" class="b danger" data-testid="stop-gateway" disabled={off} onClick={() => setAsking("stop")}><StopIcon />{words.stop}</button>
      </div>
      <Confirm asking={asking} status={status} no={() => setAsking(null)} yes={(what) => { setAsking(null); void act(what); }} />
    </div>
  );
}

function sentence(status: Status, timeline: Timeline | null): string {
  const words = t().ops;
  const said = [words.sentence(status.version, status.pid, when(status.started_at, new Date()))];
  const lives = timeline?.lives.slice(0, -1) ?? [];
  let crashed = 0;
  while (crashed < lives.length && lives[lives.length - 1 - crashed]!.end === "crash") crashed++;
  if (crashed > 0) said.push(words.lastCrash(crashed));
  if (status.paused_by) said.push(words.paused(status.paused_by, clock(status.paused_until ?? "")));
  if (status.retiring.length > 0) said.push(words.retiring(status.retiring.length));
  if (status.degraded) said.push(words.degradedBecause(status.degraded));
  return said.join(" ");
}

function Confirm(props: { asking: Action | null; status: Status | null; yes: (what: Action) => void; no: () => void }): VNode {
  const words = t().ops;
  const { asking, status } = props;
  const dialog = useDialog(asking !== null, props.no);
  const turns = status?.running_turns ?? 0;
  const says = asking === "pause" ? words.ask.pauseSays(turns) : asking === "restart" ? words.ask.restartSays(turns, status?.supervisor ?? "plain") : words.ask.stopSays(turns);
  return (
    <dialog class="dialog" ref={dialog} aria-labelledby="confirm-title" data-testid="confirm">
      {asking && (
        <div>
          <h2 id="confirm-title">{words.ask[asking]}</h2>
          <p>{says}</p>
          <div class="foot">
            <button type="button" class="b" autofocus onClick={() => dialog.current?.close()}>{t().common.cancel}</button>
            <button type="button" class={asking === "stop" ? "b danger" : "b kelp"} data-testid="confirm-yes" onClick={() => props.yes(asking)}>{words[asking]}</button>
          </div>
        </div>
      )}
    </dialog>
  );
}

function Figures(): VNode {
  const app = useApp();
  const words = t().ops.figures;
  const now = useNow(true, 1000);
  const status = app.safeMode.status.value;
  const { inbox, outbox, attention } = app.operations;
  const retiring = status?.retiring.reduce((sum, each) => sum + each.running_turns, 0) ?? 0;
  const unknown = outbox.value?.deliveries.filter((each) => each.state === "unknown" || each.state === "repeating").length ?? 0;
  const needs = attention.value;
  const oldest = needs?.[0]?.since;
  const since = (at: string): string => duration(now - Date.parse(at));
  return (
    <ul class="figs">
      <Figure title={words.running} value={status?.running_turns} foot={retiring > 0 ? words.retiring(retiring) : ""} />
      <Figure title={words.inbox} value={inbox.value?.waiting} foot={inbox.value?.oldest_at ? words.waits(since(inbox.value.oldest_at)) : inbox.value ? words.nothingWaits : ""} />
      <Figure title={words.outbox} value={outbox.value?.deliveries.length} foot={unknown > 0 ? words.unknown(unknown) : outbox.value ? words.allDelivered : ""} warns={unknown > 0} />
      <Figure title={words.held} value={status?.suspended} foot={status && status.pending > 0 ? words.pending(status.pending) : ""} />
      <Figure title={words.needs} value={needs?.length} foot={oldest ? words.oldest(since(oldest)) : needs ? words.nobody : ""} needs={(needs?.length ?? 0) > 0} />
    </ul>
  );
}

function Figure(props: { title: string; value: number | undefined; foot: string; warns?: boolean; needs?: boolean }): VNode {
  return (
    <li class={props.needs ? "card fig needs" : "card fig"}>
      <h2>{props.title}</h2>
      <p class="v">{props.value === undefined ? t().ops.unknown : props.value.toLocaleString(locale())}</p>
      <p class={props.warns ? "fig-foot amber" : "fig-foot"}>{props.foot}</p>
    </li>
  );
}

const WIDTH = 1130;
const LEFT = 86;
const RIGHT = 1118;

/** The last hours: which process served when, and how turns ended. */
function Day(): VNode {
  const app = useApp();
  const words = t().ops;
  const { timeline, hours } = app.operations;
  const choose = (
    <fieldset class="seg">
      <legend class="sr-only">{words.day}</legend>
      {[1, 24, 168].map((each) => <label key={each}><input type="radio" name="hours" checked={hours.value === each} onChange={() => app.operations.show(each)} /><span>{words.hours[each]}</span></label>)}
    </fieldset>
  );
  return <Card title={words.day} sub={words.daySub} right={choose} testid="day">{timeline.value ? <DayPlot timeline={timeline.value} hours={hours.value} /> : <Empty>{t().details.loading}</Empty>}</Card>;
}

function DayPlot(props: { timeline: Timeline; hours: number }): VNode {
  const words = t().ops;
  const { lives, turns } = props.timeline;
  const from = Date.parse(turns.since);
  const to = from + turns.bucket_s * 1000 * turns.completed.length;
  const x = (at: number): number => LEFT + ((Math.min(to, Math.max(from, at)) - from) / (to - from)) * (RIGHT - LEFT);
  const shown = lives.filter((life) => life.until === null || Date.parse(life.until) > from).slice(-8);
  const rows = shown.length;
  const base = 40 + rows * 24;
  const bars = base + 92;
  const most = Math.max(4, ...turns.completed.map((_, index) => turns.completed[index]! + turns.failed[index]! + turns.other[index]! + turns.interrupted[index]!));
  const high = (count: number): number => (count / most) * 70;
  const sum = (list: number[]): number => list.reduce((all, each) => all + each, 0);
  const [completed, failed, other, interrupted] = [sum(turns.completed), sum(turns.failed), sum(turns.other), sum(turns.interrupted)];
  const step = props.hours === 1 ? 600_000 : props.hours === 24 ? 3 * 3_600_000 : 86_400_000;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at < to - step / 3; at += step) ticks.push(at);
  const deaths = shown.filter((life) => life.end === "crash").length;
  const width = (RIGHT - LEFT) / turns.completed.length - 2;
  return (
    <div class="plot">
      <svg viewBox={`0 0 ${WIDTH} ${bars + 30}`} role="img" aria-label={words.timelineLabel(completed + failed + other, deaths)}>
        {ticks.map((at) => <><path class="g" d={`M${x(at)} 20V${bars}`} /><text x={x(at)} y="12" text-anchor="middle">{props.hours > 24 ? new Date(at).toLocaleDateString(locale(), { weekday: "short" }) : clock(new Date(at).toISOString())}</text></>)}
        <text x={RIGHT} y="12" text-anchor="end" class="strong">{words.nowWord}</text>
        <text x="0" y="44" class="strong">{words.processes}</text>
        {shown.map((life, index) => {
          const [start, end] = [x(Date.parse(life.started_at)), life.until === null ? RIGHT : x(Date.parse(life.until))];
          const y = 30 + index * 24;
          const told = life.until === null || life.end === null ? "" : (life.end === "crash" ? words.crashed : words.stopped)(clock(life.until), life.pid);
          const room = end - start > 90;
          return (
            <>
              <rect x={start} y={y} width={Math.max(3, end - start)} height="18" rx="5" class={life.until === null ? "f-kelp-soft" : "f-faint"} />
              {room ? <text x={start + 9} y={y + 13} class="strong">{life.pid}</text> : <text x={start - 8} y={y + 13} text-anchor="end" class="strong">{life.pid}</text>}
              {told !== "" && (end > WIDTH / 2 ? <text x={Math.max(240, (room ? end : start - 52) - 12)} y={y + 13} text-anchor="end" class={life.end === "crash" ? "t-amber" : ""}>{told}</text> : <text x={end + 12} y={y + 13} class={life.end === "crash" ? "t-amber" : ""}>{told}</text>)}
            </>
          );
        })}
        <text x="0" y={bars - 62} class="strong">{words.turns}</text>
        <text x="0" y={bars - 47}>{words.per(duration(turns.bucket_s * 1000))}</text>
        <path class="g" d={`M${LEFT} ${bars}H${RIGHT}`} /><text x={LEFT - 8} y={bars + 4} text-anchor="end">0</text>
        <path class="g" d={`M${LEFT} ${bars - high(most)}H${RIGHT}`} /><text x={LEFT - 8} y={bars - high(most) + 4} text-anchor="end">{most}</text>
        {turns.completed.map((_, index) => {
          const left = LEFT + (index / turns.completed.length) * (RIGHT - LEFT) + 1;
          let y = bars;
          return ([[turns.completed[index]!, "f-kelp-mid"], [turns.other[index]!, "f-faint"], [turns.interrupted[index]!, "f-amber"], [turns.failed[index]!, "f-red"]] as const).map(([count, kind]) => {
            if (count === 0) return null;
            y -= Math.max(2, high(count));
            return <rect x={left} y={y} width={width} height={Math.max(1.5, high(count) - 0.6)} rx="1.2" class={kind} />;
          });
        })}
        <text x={RIGHT} y={bars + 22} text-anchor="end">{words.totals(completed + failed + other, completed, failed, interrupted)}</text>
      </svg>
      <div class="legend" aria-hidden="true"><span><i class="l-kelp-mid" />{words.completed}</span><span><i class="l-amber" />{words.interrupted}</span><span><i class="l-red" />{words.failed}</span><span><i class="l-faint" />{words.otherEnds}</span></div>
    </div>
  );
}

function Open(props: { session: string; children: ComponentChildren; class?: string }): VNode {
  const app = useApp();
  return <a class={props.class ?? "plain"} href={`/s/${encodeURIComponent(props.session)}`} onClick={plainClick(() => app.go(props.session))}>{props.children}</a>;
}

function Running(): VNode {
  const app = useApp();
  const words = t().ops;
  const turns = app.operations.turns.value;
  return (
    <Card title={words.sections.turns} sub={words.live} testid="running">
      {turns === null ? <Empty>{t().details.loading}</Empty> : turns.length === 0 ? <Empty>{words.runningEmpty}</Empty> : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={words.sections.turns}>
          <table class="tb">
            <thead><tr><th>{words.conversation}</th><th>{words.now}</th><th class="r">{words.forTime}</th><th class="r">{words.lastSign}</th><th>{words.process}</th><th><span class="sr-only">{words.action}</span></th></tr></thead>
            <tbody>{turns.map((turn) => <RunningTurn key={turn.turn_id} turn={turn} />)}</tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function RunningTurn(props: { turn: WorkingTurn }): VNode {
  const app = useApp();
  const words = t().ops;
  const { turn } = props;
  const now = useNow(true);
  const tool = turn.phase.kind === "tool";
  return (
    <tr data-testid="running-turn">
      <td class="t"><Open session={turn.session_id}>{titleOf(turn)}</Open></td>
      <td><StateSign sign={{ shape: tool ? "tool" : "running", tone: tool ? "deep" : "kelp", text: words.attempt(tool ? (turn.phase.name ?? "") : words.model, turn.attempt) }} /></td>
      <td class="r">{duration(now - Date.parse(turn.started_at))}</td>
      <td class="r">{duration(Math.max(0, now - Date.parse(turn.last_sign_at)))}</td>
      <td class="num">{turn.pid ?? words.unknown}{turn.retiring && <span class="dim"> {words.retires}</span>}</td>
      <td><button type="button" class="b small" onClick={() => void app.stopTurn(turn.session_id, turn.turn_id)}>{t().composer.stop}</button></td>
    </tr>
  );
}

function Needs(): VNode {
  const app = useApp();
  const words = t().ops;
  const items = app.operations.attention.value;
  return (
    <Card title={words.needs} testid="needs">
      {items === null ? <Empty>{t().details.loading}</Empty> : items.length === 0 ? <Empty>{words.figures.nobody}</Empty> : <ul class="people">{items.map((item) => <Needed key={`${item.kind}.${item.id}`} item={item} />)}</ul>}
    </Card>
  );
}

function Needed(props: { item: AttentionItem }): VNode {
  const app = useApp();
  const words = t().ops;
  const { item } = props;
  const now = useNow(true, 10_000);
  const shapes: Record<string, [Shape, string]> = { suspended: ["suspended", ""], pending: ["interrupted", "amber"], delivery_unknown: ["unknown", "amber"] };
  const [shape, tone] = shapes[item.kind] ?? ["waiting", "amber"];
  const asked = item.text.split("\n\n").map((part) => part.trim());
  const said = item.kind === "approval" && asked[1] ? visible(asked[1].replace(/^```\w*\n?|\n?```$/g, "")) : asked[0];
  const about = [titleOf(item), duration(now - Date.parse(item.since)), item.expires_at ? words.openForTime(duration(Date.parse(item.expires_at) - now)) : item.rule, item.why].filter(Boolean).join(" · ");
  return (
    <li data-testid="needed" data-kind={item.kind}>
      <span class={`k ${tone}`}><ShapeIcon shape={shape} /></span>
      <p>{words.kinds[item.kind] ?? item.kind}{said ? ": " : ""}{said && (item.kind === "approval" ? <code>{said}</code> : said)}</p>
      <p class="sub" title={moment(item.since)}>{about}</p>
      {item.actions.includes("resume")
        ? <button type="button" class="b small" onClick={() => void app.resumeSession(item.session_id)}>{words.resume}</button>
        : <Open session={item.session_id} class="b small">{t().common.open}</Open>}
    </li>
  );
}

function Boxes(): VNode {
  const app = useApp();
  const words = t().ops;
  const now = useNow(true, 5000);
  const { inbox, outbox } = app.operations;
  const platforms = app.safeMode.status.value?.platforms ?? [];
  const lanes = inbox.value?.lanes ?? [];
  const owed = outbox.value?.deliveries ?? [];
  return (
    <Card title={words.inbox} testid="boxes">
      {lanes.length === 0 && owed.length === 0 && <Empty>{words.inboxEmpty}</Empty>}
      {lanes.length + owed.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={words.inbox}>
          <table class="tb"><tbody>
            {lanes.map((lane) => <tr key={lane.session_id}><td><PlatformIcon platform={platformOf(lane.session_key)} small /></td><td class="t"><Open session={lane.session_id}>{titleOf(lane)}</Open></td><td>{words.messagesWait(lane.waiting)}, {words.behind[lane.behind] ?? lane.behind}</td><td class="r">{duration(now - Date.parse(lane.oldest_at))}</td></tr>)}
            {owed.map((each) => <tr key={each.delivery_id}><td><PlatformIcon platform={each.platform} small /></td><td class="t"><Open session={each.session_id}>{titleOf(each)}</Open></td><td><StateSign sign={{ shape: each.state === "unknown" ? "unknown" : "queued", tone: each.state === "unknown" ? "amber" : "", text: words.delivery[each.state] ?? each.state }} />{each.error && <span class="dim"> {each.error}</span>}</td><td class="r">{duration(now - Date.parse(each.at))}</td></tr>)}
          </tbody></table>
        </div>
      )}
      <p class="empty">{platforms.length === 0 ? words.noPlatforms : <>{words.platforms}: {platforms.map(platformName).join(", ")}</>}</p>
    </Card>
  );
}

function Usage(): VNode {
  const app = useApp();
  const words = t().ops;
  const report = app.operations.usage.value;
  const used = report !== null && report.total.requests > 0;
  const tokens = report ? report.total.input + report.total.output : 0;
  const right = used ? <span class="num">{report.total.cost === null ? "" : `${price(report.total.cost)} · `}{words.tokens(tokens.toLocaleString(locale(), { notation: "compact" }))}</span> : undefined;
  return <Card title={words.usage} sub={words.days(7)} right={right} testid="usage">{report === null ? <Empty>{t().details.loading}</Empty> : used ? <UsagePlot days={report.days} /> : <Empty>{words.usageEmpty}</Empty>}</Card>;
}

function UsagePlot(props: { days: { day: string; usage: { cost: number | null; input: number; output: number } }[] }): VNode {
  const { days } = props;
  const by_cost = days.every((day) => day.usage.cost !== null);
  const value = (day: (typeof days)[number]): number => (by_cost ? day.usage.cost! : day.usage.input + day.usage.output);
  const most = Math.max(1, ...days.map(value));
  const step = 478 / Math.max(7, days.length);
  return (
    <div class="plot">
      <svg viewBox="0 0 520 150" role="img" aria-label={`${t().ops.usageLabel}: ${days.map((day) => `${day.day} ${by_cost ? price(value(day)) : value(day)}`).join(", ")}`}>
        <path class="g" d="M34 122H512" />
        {days.map((day, index) => {
          const high = (value(day) / most) * 90;
          const left = 42 + index * step;
          return <><rect x={left} y={122 - high} width={step * 0.55} height={Math.max(1, high)} rx="2" class="f-kelp-mid" /><text x={left + step * 0.275} y={114 - high} text-anchor="middle" class="strong">{by_cost ? price(value(day)) : value(day).toLocaleString(locale(), { notation: "compact" })}</text><text x={left + step * 0.275} y="140" text-anchor="middle">{new Date(`${day.day}T12:00`).toLocaleDateString(locale(), { weekday: "short" })}</text></>;
        })}
      </svg>
    </div>
  );
}

function Rules(): VNode {
  const app = useApp();
  const words = t().ops;
  const rules = app.operations.rules.value;
  return (
    <Card title={words.rules} testid="rules">
      {rules === null ? <Empty>{t().details.loading}</Empty> : rules.length === 0 ? <Empty>{words.rulesEmpty}</Empty> : (
        <ul class="people">
          {rules.map((rule) => (
            <li key={rule.rule_id}>
              <span class="k"><ShapeIcon shape="accepted" /></span>
              <p><code>{visible(rule.pattern)}</code></p>
              <p class="sub"><Open session={rule.session_id}>{t().common.open}</Open> · {rule.by} · {when(rule.created_at, new Date())}</p>
              <button type="button" class="b small" onClick={() => void app.removeRule(rule.rule_id)}>{words.remove}</button>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Log(): VNode {
  const app = useApp();
  const words = t().ops;
  const lines = app.operations.log.value;
  const tone = (what: string, outcome: string | null): string => (what === "interrupted" || what === "left" ? "amber" : outcome === "failed" ? "red" : what === "resumed" ? "kelp" : "");
  return (
    <Card title={words.log} sub={words.logSub} testid="log">
      {lines === null ? <Empty>{t().details.loading}</Empty> : lines.length === 0 ? <Empty>{words.logEmpty}</Empty> : (
        <ol class="log" tabIndex={0} aria-label={words.log}>
          {lines.map((line, index) => (
            <li key={index}>
              <time dateTime={line.at} title={moment(line.at)}>{clock(line.at, true)}</time> <b class={tone(line.what, line.outcome)}>{words.what[line.what] ?? line.what}{line.outcome && ` ${line.outcome}`}</b>{" "}
              <Open session={line.session_id}>{titleOf(line)}</Open>{line.attempt > 1 && ` attempt=${line.attempt}`}{line.rule && ` rule=${line.rule}`}{line.why && ` · ${line.why}`}
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
