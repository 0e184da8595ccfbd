/** The last hours as a picture. */

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { locale, t } from "../../i18n";
import { type Band, bands } from "../../plots";
import type { Life, PastPause, Timeline } from "../../types";
import { clock, duration } from "../../words";
import { useApp, useMedia } from "../shared";
import { Card, Unread } from "./shared";

const WIDTH = 1130;
const LEFT = 86;
const RIGHT = 1118;
/** How wide the words of a pause are. */
const PAUSE_WORDS = 110;

/** The last hours: which process served when, and how turns ended. */
export function Day(): VNode {
  const app = useApp();
  const words = t().ops;
  const { timeline, hours } = app.operations;
  const choose = (
    <fieldset class="seg">
      <legend class="sr-only">{words.day[hours.value]}</legend>
      {[1, 24, 168].map((each) => <label key={each}><input type="radio" name="hours" checked={hours.value === each} onChange={() => app.operations.show(each)} /><span>{words.hours[each]}</span></label>)}
    </fieldset>
  );
  return <Card id="day" title={words.day[hours.value] ?? ""} sub={words.daySub} right={choose} testid="day">{timeline.value ? <DayPlot timeline={timeline.value} hours={hours.value} retiring={app.safeMode.status.value?.retiring.map((each) => each.pid) ?? []} /> : <Unread />}</Card>;
}

function DayPlot(props: { timeline: Timeline; hours: number; retiring: number[] }): VNode {
  const words = t().ops;
  const { retiring } = props;
  const box = useRef<HTMLDivElement>(null);
  const narrow = useMedia("(max-width: 1000px)");
  // Where it is wider than the window, the newest comes first; from then on it stays where a reader has moved it.
  useEffect(() => {
    if (box.current) box.current.scrollLeft = box.current.scrollWidth;
  }, [props.hours, narrow]);
  const { lives, turns } = props.timeline;
  const from = Date.parse(turns.since);
  const to = from + Math.round((turns.bucket_s * turns.completed.length) / 3600) * 3_600_000; // Buckets are given in whole seconds.
  const x = (at: number): number => LEFT + ((Math.min(to, Math.max(from, at)) - from) / (to - from)) * (RIGHT - LEFT);
  const shown = lives.filter((life) => life.until === null || Date.parse(life.ended_at ?? life.until) > from).slice(-8);
  const pauses = bands(props.timeline.pauses, from, to, ((to - from) * PAUSE_WORDS) / (RIGHT - LEFT));
  const rows = shown.length;
  const base = (pauses.length > 0 ? 60 : 40) + rows * 24;
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
    <div class="plot long" tabIndex={0} role="region" aria-label={words.day[props.hours]} ref={box}>
      <svg viewBox={`0 0 ${WIDTH} ${bars + 30}`} role="img" aria-label={[words.timelineLabel(completed + failed + other, deaths), ...shown.map(ending), ...pauses.map(({ of }) => pausing(of))].filter(Boolean).join(" ")}>
        <defs><pattern id="finishes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" class="f-kelp-soft" /><rect width="2.5" height="6" class="f-kelp-mid" /></pattern></defs>
        {ticks.map((at) => <><path class="g" d={`M${x(at)} 20V${bars}`} /><text x={x(at)} y="12" text-anchor="middle">{props.hours > 24 ? new Date(at).toLocaleDateString(locale(), { weekday: "short" }) : clock(new Date(at).toISOString())}</text></>)}
        <text x={RIGHT} y="12" text-anchor="end" class="strong">{words.nowWord}</text>
        {pauses.map((band) => <Paused key={band.of.since} band={band} x={x} y={base - 14} bottom={bars} />)}
        <text x="0" y="44" class="strong">{words.processes}</text>
        {shown.map((life, index) => <Strand key={`${life.pid} ${life.started_at}`} life={life} y={30 + index * 24} x={x} retires={retiring.includes(life.pid)} />)}
        <text x="0" y={bars - 40} class="strong">{words.turns}</text>
        <text x="0" y={bars - 25}>{words.per(duration(turns.bucket_s * 1000))}</text>
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

/** A pause as a band over everything that it held up, with its words below the processes. */
function Paused(props: { band: Band<PastPause>; x: (at: number) => number; y: number; bottom: number }): VNode {
  const { band, x, y, bottom } = props;
  const [left, right] = [x(band.from), x(band.to)];
  const middle = Math.min(RIGHT - PAUSE_WORDS / 2, Math.max(LEFT + PAUSE_WORDS / 2, (left + right) / 2));
  return (
    <g data-testid="pause-mark" data-holds={band.of.holds}>
      <title>{pausing(band.of)}</title>
      <rect x={left} y="20" width={Math.max(2, right - left)} height={bottom - 20} class="f-deep-mid" opacity=".2" />
      {band.told && <text x={middle} y={y} text-anchor="middle">{t().ops.pausedFor(band.ms === null ? "" : duration(band.ms))}</text>}
    </g>
  );
}

function pausing(pause: PastPause): string {
  const words = t().ops;
  return pause.holds ? words.stillPaused(pause.holder, clock(pause.since)) : words.pausedBy(pause.holder, clock(pause.since), pause.ended_at === null ? "" : clock(pause.ended_at));
}

/** A process as a strand: how long it served, hatched where it finished its turns after a hand-over, and how it ended. */
function Strand(props: { life: Life; y: number; x: (at: number) => number; retires: boolean }): VNode {
  const { life, y, x } = props;
  const words = t().ops;
  const [start, end] = [x(Date.parse(life.started_at)), life.until === null ? RIGHT : x(Date.parse(life.until))];
  const finished = life.end !== "hand_over" ? end : life.ended_at !== null ? x(Date.parse(life.ended_at)) : props.retires ? RIGHT : end;
  const name = words.served(life.pid, life.version);
  const told = ending(life);
  const room = end - start > name.length * 7 + 18;
  const wide = told.length * 5.6;
  const tone = life.end === "crash" ? "t-amber" : life.end === "hand_over" ? "t-kelp" : "";
  const inside = room && end - start > name.length * 7 + wide + 36;
  const left = room ? start : start - name.length * 7 - 16;
  return (
    <g data-testid="life" data-end={life.end ?? "serves"}>
      <rect x={start} y={y} width={Math.max(3, end - start)} height="18" rx="5" class={life.until === null ? "f-kelp-soft" : "f-faint"} />
      {finished - end > 2 && <rect x={end} y={y} width={finished - end} height="18" rx="5" fill="url(#finishes)"><title>{words.finishes}</title></rect>}
      <text x={room ? start + 9 : start - 8} y={y + 13} text-anchor={room ? "start" : "end"} class="strong">{name}</text>
      {told !== "" && (inside ? <text x={end - 9} y={y + 13} text-anchor="end" class={tone}>{told}</text>
        : left - wide - 12 > LEFT ? <text x={left - 12} y={y + 13} text-anchor="end" class={tone}>{told}</text>
        : <text x={Math.max(finished, end) + 10} y={y + 13} class={tone}>{told}</text>)}
      {life.end === "crash" && <path d={`M${end - 3.5} ${y + 5.5}l7 7m0 -7l-7 7`} class="s-amber" fill="none" stroke-width="1.6" stroke-linecap="round" />}
      {life.end === "hand_over" && <path d={`M${end - 6} ${y + 7}h8m-4 4h8`} class="s-kelp" fill="none" stroke-width="1.8" stroke-linecap="round" />}
    </g>
  );
}

/** How a process ended, and what that cost; nothing while it serves. */
function ending(life: Life): string {
  if (life.until === null || life.end === null) return "";
  const words = t().ops;
  const cost = life.interrupted === 0 ? words.cost.none : [words.cost.some(life.interrupted), life.resumed > 0 ? words.cost.resumed(life.resumed, duration(life.took_ms ?? 0)) : ""].filter(Boolean).join(", ");
  return { crash: words.crashed, stop: words.stopped, hand_over: words.handedOver }[life.end](clock(life.until), cost);
}
